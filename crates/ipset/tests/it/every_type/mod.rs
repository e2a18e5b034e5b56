//! One set of each type, filled by our client and by the real ipset: both must list the same entries.

use std::collections::BTreeSet;

use sluicegate_ipset::text::Output;
use sluicegate_ipset::{
    Addresses, Client, Comment, CreateOptions, Element, Entry, EntryOptions, Exist, Family, Interface,
    Listing, Mac, Numeric, Place, Port, Protocol, Range, SetName, SetSpec, SetType, SkbMark, SkbPrio, Style,
    text,
};

/// Pseudo-random numbers, the same in each run.
pub(crate) struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        // The finalizer of SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    fn byte(&mut self) -> u8 {
        u8::try_from(self.below(256)).unwrap()
    }

    fn bytes<const N: usize>(&mut self) -> [u8; N] {
        std::array::from_fn(|_| self.byte())
    }

    fn one_in(&mut self, chances: u64) -> bool {
        self.below(chances) == 0
    }
}

/// Returns a host, network or range that is valid for the family; with `small`, one inside of `10.0.0.0/22`.
fn addresses(n: &mut Numbers, family: Family, small: bool, single: bool) -> Addresses {
    if family == Family::Ipv6 {
        let address = std::net::IpAddr::from(n.bytes::<16>());
        let prefix = u8::try_from(1 + n.below(128)).unwrap();
        return if single || n.one_in(2) { address.into() } else { (address, prefix).into() };
    }
    let base =
        if small { [10, 0, u8::try_from(n.below(4)).unwrap(), 1 + n.byte() / 2] } else { n.bytes::<4>() };
    let address = std::net::IpAddr::from(base);
    match n.below(4) {
        _ if single => address.into(),
        0 => (address, u8::try_from(28 + n.below(5)).unwrap()).into(),
        1 => {
            let [a, b, c, d] = base;
            Addresses::Range { from: address, to: [a, b, c, d | 7].into() }
        }
        _ => address.into(),
    }
}

fn port(n: &mut Numbers, family: Family) -> Port {
    let number = u16::try_from(n.below(65_000)).unwrap();
    match n.below(6) {
        0 => Port { protocol: Protocol::UDP, from: number, to: Some(number + 3) },
        1 if family == Family::Ipv6 => Port::message(Protocol::ICMPV6, n.byte(), n.byte()),
        1 => Port::message(Protocol::ICMP, n.byte(), n.byte()),
        2 => Port::message(Protocol(47), 0, 0),
        3 => Port::sctp(number),
        _ => Port::tcp(number),
    }
}

fn element(n: &mut Numbers, kind: SetType, family: Family) -> Element {
    let mac = Mac(n.bytes());
    match kind {
        SetType::BitmapIp => Element::Ip(addresses(n, family, true, false)),
        SetType::BitmapIpMac => {
            Element::IpMac(addresses(n, family, true, true), if n.one_in(2) { Some(mac) } else { None })
        }
        SetType::BitmapPort => {
            let from = u16::try_from(n.below(1000)).unwrap();
            Element::Port(from, if n.one_in(3) { Some(from + 5) } else { None })
        }
        // IPv6 elements of these are single addresses.
        SetType::HashIp => Element::Ip(addresses(n, family, false, family == Family::Ipv6)),
        SetType::HashMac => Element::Mac(mac),
        SetType::HashIpMac => Element::IpMac(addresses(n, family, false, true), Some(mac)),
        SetType::HashNet => Element::Ip(addresses(n, family, false, false)),
        SetType::HashNetNet => {
            Element::NetNet(addresses(n, family, false, false), addresses(n, family, false, false))
        }
        SetType::HashIpPort => {
            Element::IpPort(addresses(n, family, false, family == Family::Ipv6), port(n, family))
        }
        SetType::HashNetPort => Element::IpPort(addresses(n, family, false, false), port(n, family)),
        SetType::HashIpPortIp => Element::IpPortIp(
            addresses(n, family, false, family == Family::Ipv6),
            port(n, family),
            addresses(n, family, false, true),
        ),
        SetType::HashIpPortNet => Element::IpPortIp(
            addresses(n, family, false, family == Family::Ipv6),
            port(n, family),
            addresses(n, family, false, false),
        ),
        SetType::HashIpMark => Element::IpMark(
            addresses(n, family, false, family == Family::Ipv6),
            u32::try_from(n.below(1 << 32)).unwrap(),
        ),
        SetType::HashNetPortNet => Element::IpPortIp(
            addresses(n, family, false, false),
            port(n, family),
            addresses(n, family, false, false),
        ),
        SetType::HashNetIface => {
            let interface = Interface::new(&format!("eth{}", n.below(20))).unwrap();
            let interface = if n.one_in(4) { interface.physdev() } else { interface };
            Element::NetInterface(addresses(n, family, false, false), interface)
        }
        _ => Element::Set(SetName::new(&format!("member{}", n.below(8))).unwrap(), None),
    }
}

/// Options of an entry in a set with all extensions. The timeout is 0, so that no clock is compared.
fn options(n: &mut Numbers, kind: SetType) -> EntryOptions {
    let networks = matches!(
        kind,
        SetType::HashNet
            | SetType::HashNetNet
            | SetType::HashNetPort
            | SetType::HashIpPortNet
            | SetType::HashNetPortNet
            | SetType::HashNetIface
    );
    let mut options = EntryOptions::default();
    options.timeout = Some(0);
    options.nomatch = networks && n.one_in(4);
    options.wildcard = kind == SetType::HashNetIface && n.one_in(4);
    options.packets = Some(n.below(1 << 40));
    options.bytes = Some(n.below(1 << 60));
    if n.one_in(3) {
        options.comment = Some(Comment::new(&format!("no. {}", n.below(100))).unwrap());
    }
    options.skbmark = n.one_in(3).then_some(SkbMark { mark: 0x10, mask: 0xff });
    options.skbprio = n.one_in(3).then_some(SkbPrio { major: 1, minor: 0x10 });
    options.skbqueue = n.one_in(3).then_some(7);
    options
}

fn spec(name: &str, kind: SetType, family: Family) -> SetSpec {
    let hash = kind.name().starts_with("hash:");
    let mut options = CreateOptions::default();
    options.hashsize = hash.then_some(64);
    options.maxelem = hash.then_some(100_000);
    options.bucketsize = hash.then_some(4);
    options.initval = hash.then_some(0x1234_5678);
    options.forceadd = hash;
    options.timeout = Some(0);
    options.counters = true;
    options.comment = true;
    options.skbinfo = true;
    options.range = match kind {
        SetType::BitmapPort => Some(Range::Ports(0, 1100)),
        SetType::BitmapIp | SetType::BitmapIpMac => Some(Range::Addresses(([10, 0, 0, 0].into(), 22).into())),
        _ => None,
    };
    options.markmask = (kind == SetType::HashIpMark).then_some(0x00ff_ffff);
    SetSpec::new(SetName::new(name).unwrap(), kind, family, options).unwrap()
}

fn name(name: &str) -> SetName {
    SetName::new(name).unwrap()
}

/// Returns the elements and options of a set, without their order.
fn contents(listing: &Listing) -> BTreeSet<String> {
    listing.entries.iter().map(ToString::to_string).collect()
}

fn only(client: &mut Client, set: SetName) -> Listing {
    let mut listings = client.list(Some(set)).unwrap();
    assert_eq!(listings.len(), 1);
    listings.remove(0)
}

/// Adds the same entries to a set by our client and to another by `ipset restore`, and compares the listings.
pub(crate) fn same_as_ipset(kind: SetType, family: Family, count: usize) {
    let mut client = Client::open().unwrap();
    if kind == SetType::ListSet {
        for member in 0..8 {
            let member = SetSpec::new(
                name(&format!("member{member}")),
                SetType::HashIp,
                Family::Ipv4,
                CreateOptions::default(),
            );
            client.create(&member.unwrap(), Exist::Fail).unwrap();
        }
    }
    let (ours, theirs) = (spec("ours", kind, family), spec("theirs", kind, family));
    client.create(&ours, Exist::Fail).unwrap();
    client.create(&ours, Exist::Ignore).unwrap();
    assert!(client.create(&ours, Exist::Fail).unwrap_err().is_already_exists());

    let mut numbers = Numbers(u64::from(family.number()));
    let entries: Vec<Entry> = (0..count)
        .map(|_| {
            let element = element(&mut numbers, kind, family);
            Entry::new(kind, family, element).unwrap().with(options(&mut numbers, kind)).unwrap()
        })
        .collect();
    // A few entries first: ipset 7.17 loses some ports when its output exceeds 8 KiB.
    for entries in [entries.get(..10).unwrap(), &entries] {
        fill_both(&mut client, &ours, &theirs, entries);
        if entries.len() == 10 {
            listings_are_equal(&mut client);
        }
    }
    predictions_hold(&mut client, &ours, &entries);
    entries_are_found_and_go(&mut client, &ours, &entries);
}

/// Adds entries to one set by messages, and to the other by our text and the real tool, which must read it.
fn fill_both(client: &mut Client, ours: &SetSpec, theirs: &SetSpec, entries: &[Entry]) {
    client.add(ours.name(), entries, Exist::Ignore).unwrap();
    let mut file = format!("{theirs}\n");
    for entry in entries {
        file.push_str(&format!("add theirs {entry}\n"));
    }
    let restored = testns::feed(&["ipset", "-exist", "restore"], &file);
    assert!(restored.status.success(), "{}\n{file}", String::from_utf8_lossy(&restored.stderr));

    let (listed, other) = (only(client, ours.name()), only(client, theirs.name()));
    assert_eq!(contents(&listed), contents(&other), "{ours}");
    assert_eq!(listed.info.options, other.info.options);
    assert_eq!(client.header(ours.name()).unwrap().kind, ours.set_type());
}

/// Checks that we print the output of the real tool byte for byte, and read what it saves.
fn listings_are_equal(client: &mut Client) {
    let sets = client.save(None).unwrap();
    for (output, command) in
        [(Output::Save, "ipset save"), (Output::Plain, "ipset list"), (Output::Xml, "ipset -o xml list")]
    {
        let sets = if output == Output::Save { sets.clone() } else { client.list(None).unwrap() };
        let mut rendered = String::new();
        Style::new(output).write(&mut rendered, &sets).unwrap();
        equal_lines(&rendered, &testns::sh(command));
        let mut rendered = String::new();
        Style { sorted: true, ..Style::new(output) }.write(&mut rendered, &sets).unwrap();
        equal_lines(&rendered, &testns::sh(&format!("{command} -s")));
    }
    let mut saved = testns::sh("ipset save").lines().map(str::to_owned).collect::<Vec<_>>();
    let lines = text::parse(&saved.join("\n"), &Numeric, |_| None).unwrap();
    let again: Vec<_> = lines.iter().map(|line| line.command.to_string()).collect();
    // Options that ipset 7.17 omits are printed for wanted sets only, so the output need not be filtered.
    saved.retain(|line| !line.is_empty());
    assert_eq!(again, saved);
}

fn equal_lines(ours: &str, theirs: &str) {
    for (number, (ours, theirs)) in ours.lines().zip(theirs.lines()).enumerate() {
        assert_eq!(ours, theirs, "line {}", number + 1);
    }
    assert_eq!(ours.len(), theirs.len());
}

/// Checks that `stored` predicts the kernel: a second sync changes nothing, and one with fewer entries
/// deletes the rest.
fn predictions_hold(client: &mut Client, spec: &SetSpec, entries: &[Entry]) {
    // Counters and timeout 0 stay as they were added, so that entries with options need no change either.
    let changes = client.sync(spec, entries).unwrap();
    let repeated = client.sync(spec, entries).unwrap();
    assert!(repeated.is_empty(), "{} {}: {changes:?}, then {repeated:?}", spec.set_type(), spec.family());
    assert_eq!(changes.deleted, 0, "{} {}: {changes:?}", spec.set_type(), spec.family());
    let half = entries.get(..entries.len() / 2).unwrap();
    client.sync(spec, half).unwrap();
    let mut expected = BTreeSet::new();
    let info = only(client, spec.name()).info;
    for entry in half {
        expected.extend(entry.stored(&info.options).unwrap().iter().map(|entry| entry.element().to_string()));
    }
    if spec.set_type() == SetType::BitmapIpMac {
        // The set has one entry for each address, whatever its MAC address is.
        expected = expected.iter().map(|element| element.split(',').next().unwrap().to_owned()).collect();
    }
    let found: BTreeSet<_> = only(client, spec.name())
        .entries
        .iter()
        .map(|entry| match entry.element() {
            Element::IpMac(address, _) if spec.set_type() == SetType::BitmapIpMac => address.to_string(),
            element => element.to_string(),
        })
        .collect();
    assert_eq!(found, expected, "{} {}", spec.set_type(), spec.family());
}

fn entries_are_found_and_go(client: &mut Client, spec: &SetSpec, entries: &[Entry]) {
    let set = spec.name();
    client.replace(spec, entries).unwrap();
    let names = client.names().unwrap();
    assert!(names.iter().all(|name| !name.to_string().contains(".new")), "{names:?}");
    let listing = only(client, set);
    for entry in listing.entries.iter().take(20) {
        assert!(client.test(set, entry).unwrap(), "{entry}");
    }
    for entry in listing.entries.iter().take(3) {
        let nomatch = if entry.options().nomatch { " nomatch" } else { "" };
        let said = testns::try_sh(&format!("ipset test {set} {}{nomatch}", entry.element()));
        assert!(said.status.success(), "{entry}");
    }
    client.delete(set, &listing.entries, Exist::Fail).unwrap();
    assert!(only(client, set).entries.is_empty());
    if let Some(gone) = listing.entries.first() {
        assert!(!client.test(set, gone).unwrap());
        assert!(client.delete(set, std::slice::from_ref(gone), Exist::Fail).unwrap_err().is_already_exists());
        client.delete(set, std::slice::from_ref(gone), Exist::Ignore).unwrap();
    }
    if spec.set_type() == SetType::ListSet {
        order_in_a_list_is_kept(client, set);
    }
    client.destroy(set, Exist::Fail).unwrap();
    assert!(client.header(set).unwrap_err().is_not_found());
}

fn order_in_a_list_is_kept(client: &mut Client, list: SetName) {
    let member = |number: u8| name(&format!("member{number}"));
    let entry =
        |set, place| Entry::new(SetType::ListSet, Family::Unspecified, Element::Set(set, place)).unwrap();
    client.flush(list).unwrap();
    let wanted = [
        entry(member(1), None),
        entry(member(2), Some(Place::Before(member(1)))),
        entry(member(3), Some(Place::After(member(2)))),
    ];
    client.add(list, &wanted, Exist::Fail).unwrap();
    let order: Vec<_> = only(client, list).entries.iter().map(|entry| entry.element().to_string()).collect();
    assert_eq!(order, ["member2", "member3", "member1"]);
    assert!(client.test(list, &entry(member(3), Some(Place::After(member(2))))).unwrap());
    assert!(!client.test(list, &entry(member(1), Some(Place::After(member(2))))).unwrap());
    assert!(client.destroy(member(1), Exist::Fail).unwrap_err().is_busy());
}
