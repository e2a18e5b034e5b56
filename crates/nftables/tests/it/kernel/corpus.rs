//! Rule sets as people write them, against nft itself: what `nft -f` loads is listed by us as `nft -s list
//! ruleset` lists it, and what we read back, sent by netlink elsewhere, is there what it was here.
//!
//! `corpus/*.nft` are our own words. What needs something that not every kernel has is in a file of its own,
//! which [`needs`] names.

use std::fmt::Write as _;
use std::sync::OnceLock;

use sluicegate_netlink::{NetlinkFamily, Options, Socket};
use sluicegate_nftables::lang::Statement;
use sluicegate_nftables::{
    Element, Elements, Family, ListOptions, Rule, Set, SetFlags, TableContent, Transaction, read,
};

use crate::kernel::needs;
use crate::kernel::parity::{LIST, apply, but_for_protocols, listing};

/// A file of the corpus, and what became of it in a namespace of its own.
pub(crate) struct Corpus {
    pub(crate) name: &'static str,
    text: &'static str,
    loaded: OnceLock<Option<Loaded>>,
}

pub(crate) struct Loaded {
    /// As `nft -s list ruleset` lists it.
    listed: Vec<String>,
    pub(crate) content: Vec<TableContent>,
    /// The names that the machine has for numbers.
    options: ListOptions,
}

impl Corpus {
    const fn new(name: &'static str, text: &'static str) -> Self {
        Self { name, text, loaded: OnceLock::new() }
    }

    /// `None` where no namespace can be made, or this kernel lacks what it takes, which has been said.
    pub(crate) fn loaded(&self) -> Option<&Loaded> {
        self.loaded.get_or_init(|| self.load()).as_ref()
    }

    fn load(&self) -> Option<Loaded> {
        if !needs::met(self.name) {
            return None;
        }
        let namespace = self.namespace()?;
        namespace.run(|| {
            let output = testns::feed(&["nft", "-f", "-"], self.text);
            assert!(output.status.success(), "{}: {}", self.name, String::from_utf8_lossy(&output.stderr));
            let ruleset =
                read::ruleset(&mut open(NetlinkFamily::NETFILTER), Family::UNSPEC).expect("a ruleset");
            Some(Loaded {
                listed: lines(&testns::sh("TZ=UTC nft -s list ruleset")),
                content: ruleset.content(),
                options: read::list_options(&mut open(NetlinkFamily::ROUTE)).expect("names"),
            })
        })
    }

    /// A namespace that holds it; `None` as of [`loaded`](Self::loaded).
    #[cfg(feature = "json")]
    pub(crate) fn loaded_again(&self) -> Option<testns::Netns> {
        let namespace = self.namespace().filter(|_| needs::met(self.name))?;
        namespace.run(|| {
            let output = testns::feed(&["nft", "-f", "-"], self.text);
            assert!(output.status.success(), "{}: {}", self.name, String::from_utf8_lossy(&output.stderr));
        });
        Some(namespace)
    }

    /// With the devices that some chains are hooked to.
    pub(crate) fn namespace(&self) -> Option<testns::Netns> {
        let namespace = testns::Netns::new()?;
        if self.text.contains("d0") {
            namespace.run(|| {
                let _ = testns::sh("ip link add d0 type veth peer name d1");
            });
        }
        Some(namespace)
    }

    /// What is listed otherwise than nft lists it, but for what is known.
    fn difference(&self) -> Option<String> {
        let loaded = self.loaded()?;
        let ours: String =
            loaded.content.iter().map(|table| table.display(&loaded.options).to_string()).collect();
        let (mut nft, mut ours) = (loaded.listed.clone(), lines(&ours));
        for known in OTHERWISE.iter().filter(|known| known.file == self.name) {
            let place = nft
                .iter()
                .zip(&ours)
                .position(|(nft, ours)| (nft.trim(), ours.trim()) == (known.nft, known.ours));
            let Some(place) = place else { return Some(format!("no longer otherwise: {}", known.nft)) };
            nft.remove(place);
            ours.remove(place);
        }
        but_for_protocols(&mut nft, &mut ours);
        difference(&nft, &ours)
    }

    /// What is otherwise where that was sent which was read here, than where nft loaded the same as text.
    fn difference_when_sent(&self) -> Option<String> {
        let loaded = self.loaded()?;
        let (by_text, by_netlink) = (self.namespace()?, self.namespace()?);
        let transaction = transaction(&loaded.content, |rule| {
            !NOT_SENT.contains(&rule)
                && !is_raw(rule)
                && !MENDED.iter().any(|m| (m.file, m.rule) == (self.name, rule))
        });
        let output = by_text.run(|| testns::feed(&["nft", "-f", "-"], &transaction.to_string()));
        if !output.status.success() {
            return Some(format!("nft refuses what we say: {}", String::from_utf8_lossy(&output.stderr)));
        }
        if let Err(error) = by_netlink.run(|| apply(&transaction)) {
            return Some(error);
        }
        difference(&by_text.run(listed), &by_netlink.run(listed))
    }
}

/// nft 1.0.6 ends with a segmentation fault when these are added to a set that there is.
fn crashes(set: &Set, elements: &[Element]) -> bool {
    set.flags.contains(SetFlags::INTERVAL) && elements.iter().any(Element::is_catch_all)
}

/// The listing says that it has no words.
fn is_raw(rule: &str) -> bool {
    rule.contains("unknown expressions")
}

/// What is not sent again.
const NOT_SENT: &[&str] = &[
    // nft lists these as they are where we sent them, and otherwise where it has made them itself.
    "tcp window . meta mark { 300-500 . 0x00000001, 7 . 0x00000002 }",
    "tcp doff . meta mark vmap { 5 . 0x00000001 : accept }",
    "vlan id . vlan pcp { 5 . 2 }",
    // nft hashes out of other registers than we do.
    "@th,64,64 . jhash iifname mod 7 { 0x1 . 2 }",
    "ct bytes . jhash iifname mod 7 . ct zone { 1 . 2 . 3, 4 . 5 . 6 }",
];

fn open(family: NetlinkFamily) -> Socket {
    Socket::open(family, &Options::default()).expect("a socket")
}

fn lines(text: &str) -> Vec<String> {
    text.lines().map(str::to_owned).collect()
}

fn listed() -> Vec<String> {
    // nft swaps single bytes, too, where all of a key is byte-swapped; that does nothing.
    listing(LIST).into_iter().filter(|line| !line.ends_with(", 2, 1) ]")).collect()
}

/// What makes a ruleset again, of some of its rules: what is referred to comes first.
fn transaction(tables: &[TableContent], of: impl Fn(&str) -> bool) -> Transaction {
    let mut tx = Transaction::new();
    for content in tables {
        tx.add(content.table.clone());
        content.objects.iter().for_each(|object| {
            tx.add(object.clone());
        });
        content.sets.iter().for_each(|(set, _)| {
            tx.add(set.clone());
        });
        content.flowtables.iter().for_each(|flowtable| {
            tx.add(flowtable.clone());
        });
        content.chains.iter().for_each(|(chain, _)| {
            tx.add(chain.clone());
        });
        for (set, elements) in content.sets.iter().filter(|(set, elements)| !crashes(set, elements)) {
            tx.add(Elements::new(&set.id, elements.iter().cloned()));
        }
        let rules = content.chains.iter().flat_map(|(_, rules)| rules);
        for rule in rules.filter(|rule| of(&rule.body().to_string())) {
            tx.add(rule.clone());
        }
    }
    tx
}

/// The lines that differ, in pairs where there are as many here as there.
fn difference(nft: &[String], ours: &[String]) -> Option<String> {
    if nft == ours {
        return None;
    }
    let mut text = String::new();
    let (nft, ours) = (paragraphs(nft), paragraphs(ours));
    if nft.len() != ours.len() {
        return Some(crate::kernel::parity::difference(&nft, &ours));
    }
    for (nft, ours) in nft.iter().zip(&ours).filter(|(nft, ours)| nft != ours) {
        let _ = writeln!(text, "< {nft}\n> {ours}");
    }
    Some(text)
}

/// Lines, those of the kernel's expressions of a rule together.
fn paragraphs(lines: &[String]) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    for line in lines {
        match out.last_mut() {
            Some(last) if line.starts_with("  [") => *last += line,
            _ => out.push(line.clone()),
        }
    }
    out
}

macro_rules! corpus {
    ($($name:ident)*) => {
        pub(crate) static FILES: [Corpus; [$(stringify!($name)),*].len()] =
            [$(Corpus::new(stringify!($name), include_str!(concat!("corpus/", stringify!($name),
                ".nft")))),*];
    };
}

corpus! {
    bridge chains comments concat ct dynset elements ether_vlan_arp exthdr fib_rt_socket l4 mangle maps meta
    meters nat netdev objects
    payload_ip payload_ip6 protocols ranges raw sets statements
    bridge_ct bridge_meta bridge_reject concat_protocol flowtables netdev_reject offload queue
}

#[test]
fn what_nft_loads_is_listed_as_nft_lists_it() {
    check(Corpus::difference);
}

#[test]
fn what_was_read_can_be_sent_and_is_the_same() {
    check(Corpus::difference_when_sent);
}

fn check(difference: impl Fn(&Corpus) -> Option<String>) {
    if !testns::have(&["nft", "ip"]) {
        return;
    }
    let failed: Vec<_> =
        FILES.iter().filter_map(|file| Some(format!("{}.nft:\n{}", file.name, difference(file)?))).collect();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

/// A line that we list otherwise than nft 1.0.6, because what that says is not so.
pub(crate) struct Otherwise {
    pub(crate) file: &'static str,
    nft: &'static str,
    pub(crate) ours: &'static str,
}

const fn otherwise(file: &'static str, nft: &'static str, ours: &'static str) -> Otherwise {
    Otherwise { file, nft, ours }
}

pub(crate) const OTHERWISE: &[Otherwise] = &[
    // nft: it shows the shift that cuts the field out, and then refuses to read it.
    otherwise("concat", "ip dscp >> 2 . ip saddr { cs1 . 1.1.1.1 }", "ip dscp . ip saddr { cs1 . 1.1.1.1 }"),
    otherwise(
        "concat",
        "ip dscp >> 2 . tcp dport { cs1 . 80, ef . 443 }",
        "ip dscp . tcp dport { cs1 . 80, ef . 443 }",
    ),
    // nft: it does not know how wide these integers are, and takes parts of others for them.
    otherwise(
        "concat",
        "tcp window . meta mark { 0 . 0x012c0000-0x01f40000, 0 . 0x00070000 }",
        "tcp window . meta mark { 300-500 . 0x00000001, 7 . 0x00000002 }",
    ),
    otherwise(
        "concat",
        "tcp doff >> 4 . meta mark vmap { 0 . 0x00000005 : accept }",
        "tcp doff . meta mark vmap { 5 . 0x00000001 : accept }",
    ),
    otherwise("concat", "vlan id . vlan pcp >> 5 { 0 . 0 }", "vlan id . vlan pcp { 5 . 2 }"),
    otherwise("dynset", "add @the_dscp { ip dscp >> 2 }", "add @the_dscp { ip dscp }"),
    // nft: it takes the width of both ends for that of one value, and drops what was noted. Mended in 1.0.8.
    otherwise("maps", "type ipv4_addr : interval ipv4_addr", "typeof ip saddr : interval ip daddr"),
    otherwise(
        "maps",
        "type ipv4_addr . inet_service : interval ipv4_addr . inet_service",
        "typeof ip saddr . tcp dport : interval ip daddr . tcp dport",
    ),
    // nft: it does not know the type of a constant that is a key.
    otherwise("dynset", "add @s { 0xa020304 [invalid type] }", "add @s { 10.2.3.4 }"),
    otherwise("dynset", "add @p { 0x50 [invalid type] }", "add @p { 80 }"),
    otherwise(
        "dynset",
        "add @m { 0xa020304 [invalid type] timeout 3s : 0x00000002 }",
        "add @m { 10.2.3.4 timeout 3s : 0x00000002 }",
    ),
    // nft: it does not know the type of a port here.
    otherwise(
        "ct",
        "meta l4proto tcp ct original proto-dst { 0x50 [invalid type], 0x1bb [invalid type] }",
        "meta l4proto tcp ct original proto-dst { 80, 443 }",
    ),
    // nft: it puts the bytes of a prefix at the wrong end of the address.
    otherwise("ct", "ct original ip saddr 0.192.168.1", "ct original ip saddr 192.168.1.0/24"),
    otherwise("ct", "ct original ip6 daddr ::32.1.13.184", "ct original ip6 daddr 2001:db8::/32"),
    // nft: it does not find the field.
    otherwise(
        "exthdr",
        "frag unknown & 0xfff8 [invalid type] vmap { 8 : accept, 40 : drop }",
        "frag frag-off vmap { 1 : accept, 5 : drop }",
    ),
    otherwise(
        "exthdr",
        "(frag unknown & 0xfff8 [invalid type]) >> 3 & 0x1 [invalid type] == 0x0 [invalid type]",
        "frag frag-off & 1 == 0",
    ),
    // nft: it leaves out the protocol, without which it does not read a port.
    otherwise(
        "nat",
        "dnat to tcp dport map { 80 : 10.0.0.1 }:tcp sport map { 1 : 2 }",
        "meta l4proto tcp dnat to tcp dport map { 80 : 10.0.0.1 }:tcp sport map { 1 : 2 }",
    ),
    // nft: it leaves out the second of two that contradict each other, without which it does not read the
    // field.
    otherwise(
        "protocols",
        "meta nfproto ipv4 ip6 saddr ::1",
        "meta nfproto ipv4 meta nfproto ipv6 ip6 saddr ::1",
    ),
    // nft: it puts the bytes of a prefix at the wrong end of the address.
    otherwise("protocols", "ct original ip saddr 0.192.168.1", "ct original ip saddr 192.168.1.0/24"),
    // nft: it does not read a name in a range.
    otherwise("meta", "meta priority none-0:7", "meta priority 0:0-0:7"),
    // nft: it forgets the protocol, and takes the bytes for a port's.
    otherwise("mangle", "th sport set th sport & 255", "icmp type set echo-reply"),
    otherwise("mangle", "th sport set th sport & 65280", "icmp code set net-unreachable"),
    otherwise("mangle", "th sport set th sport & 33279 | 33024", "icmpv6 type set echo-reply"),
    otherwise("mangle", "th sport set th sport & 65280", "icmpv6 code set no-route"),
    otherwise(
        "mangle",
        "meta nfproto ipv4 th sport set th sport & 65285 | 5",
        "meta nfproto ipv4 igmp mrt set 5",
    ),
    // nft: it does not find a field that was cut out and then cut again.
    otherwise(
        "ranges",
        "(tcp option mptcp unknown & 240) >> 4 & 3 == 1",
        "tcp option mptcp subtype & 3 == 1",
    ),
    otherwise(
        "ranges",
        "(frag unknown & 0xfff8 [invalid type]) >> 3 & 0x1 [invalid type] == 0x1 [invalid type]",
        "frag frag-off & 1 == 1",
    ),
    // nft: it leaves out a port that comes from a map.
    // nft sends the bytes of these in another order than it says, so that what is read back would be another rule.
    otherwise("exthdr", "frag frag-off { 40, * }", RAW[0].1),
    otherwise("nat", "dnat to numgen inc mod 7 offset 167772161", RAW[1].1),
    otherwise("nat", "dnat to jhash ip saddr mod 7 offset 167772161", RAW[2].1),
    otherwise("nat", "tcp dport 80 redirect to :numgen inc mod 7 offset 80", RAW[3].1),
    otherwise("nat", "meta l4proto tcp redirect to :jhash tcp dport mod 3", RAW[4].1),
    otherwise("payload_ip", "tcp dport set numgen inc mod 7 offset 80", RAW[5].1),
    otherwise("sets", "ip6 dscp @the_dscp", RAW[6].1),
    otherwise("sets", "frag frag-off @tof24", RAW[7].1),
    otherwise(
        "statements",
        "tcp dport 80 tproxy ip to",
        "tcp dport 80 tproxy ip to :tcp dport map { 80 : 8080 }",
    ),
];

/// A rule for which nft 1.0.6 sends expressions that do not do what it says. Ours are those of the version of
/// nft that mended it.
struct Mended {
    file: &'static str,
    rule: &'static str,
}

const fn mended(file: &'static str, rule: &'static str) -> Mended {
    Mended { file, rule }
}

const MENDED: &[Mended] = &[
    // nft 1.0.8: bits across bytes are byte-swapped to be shifted.
    mended("sets", "ip6 dscp @the_dscp"),
    // No version yet: where they stay several bytes, they are swapped back.
    mended("sets", "frag frag-off @tof24"),
    mended("exthdr", "frag frag-off { 40, * }"),
    mended("exthdr", "frag frag-off & 1 == 0"),
    mended("ranges", "frag frag-off & 1 == 1"),
    // nft 1.0.9: numbers that become addresses are byte-swapped, if `numgen` makes them.
    mended("nat", "dnat to numgen inc mod 7 offset 167772161"),
    // No version yet: hashes, and ports.
    mended("nat", "dnat to jhash ip saddr mod 7 offset 167772161"),
    mended("nat", "tcp dport 80 redirect to :numgen inc mod 7 offset 80"),
    mended("nat", "meta l4proto tcp redirect to :jhash tcp dport mod 3"),
    // nft 1.1.1: where there is no checksum of UDP, none is made.
    mended("mangle", "udp dport set 53"),
    mended("mangle", "udp sport set 53"),
    mended("mangle", "udp length set 8"),
    mended("mangle", "udp checksum set 0"),
    mended("mangle", "ip protocol udp udp dport set 53"),
    // No version yet: two bytes of the four that were swapped are written.
    mended("payload_ip", "tcp dport set numgen inc mod 7 offset 80"),
];

#[test]
fn what_nft_1_0_6_gets_wrong_is_sent_otherwise_and_read_as_what_it_is() {
    check(|file| {
        let loaded = file.loaded()?;
        let wrong = |mended: &Mended| {
            let (by_text, by_netlink) = (file.namespace()?, file.namespace()?);
            let mut transaction = transaction(&loaded.content, |rule| rule == mended.rule);
            // What nft made of some has no words, so they are read from the text.
            if let Some((_, listed, words)) =
                RAW.iter().find(|raw| (raw.0, raw.2) == (mended.file, mended.rule))
            {
                let mut rules = loaded.content.iter().flat_map(|of| &of.chains).flat_map(|(_, rules)| rules);
                let rule = rules.find(|rule| rule.body().to_string() == *listed).expect("a rule");
                transaction.add(Rule::parse(&rule.chain, words).expect("a rule"));
            }
            let output = by_text.run(|| testns::feed(&["nft", "-f", "-"], &transaction.to_string()));
            assert!(output.status.success(), "{}: {}", mended.rule, String::from_utf8_lossy(&output.stderr));
            by_netlink.run(|| apply(&transaction)).unwrap_or_else(|why| panic!("{}: {why}", mended.rule));
            let bytecode = || listing(LIST).into_iter().filter(|line| line.starts_with("  [")).collect();
            let (nft, ours): (Vec<_>, Vec<_>) = (by_text.run(bytecode), by_netlink.run(bytecode));
            let read =
                || read::ruleset(&mut open(NetlinkFamily::NETFILTER), Family::UNSPEC).expect("a ruleset");
            let listed = by_netlink.run(read).content();
            let mut rules = listed.iter().flat_map(|table| &table.chains).flat_map(|(_, rules)| rules);
            let is_read = rules.all(|rule| rule.body().to_string() == mended.rule);
            (nft == ours || !is_read).then(|| format!("{}\n{nft:#?}\n{ours:#?}", mended.rule))
        };
        MENDED.iter().filter(|mended| mended.file == file.name).find_map(wrong)
    });
}

/// Rules of nft 1.0.6 that have no words, as it sends other expressions than it says ([`MENDED`]): file, what we
/// list of them, and what it says.
const RAW: &[(&str, &str, &str)] = &[
    (
        "exthdr",
        r#"unknown expressions "meta", "cmp", "exthdr", "bitwise", "bitwise", "lookup""#,
        "frag frag-off { 40, * }",
    ),
    ("nat", r#"unknown expressions "numgen", "nat""#, "dnat to numgen inc mod 7 offset 167772161"),
    (
        "nat",
        r#"unknown expressions "payload", "hash", "nat""#,
        "dnat to jhash ip saddr mod 7 offset 167772161",
    ),
    (
        "nat",
        r#"unknown expressions "meta", "cmp", "payload", "cmp", "numgen", "redir""#,
        "tcp dport 80 redirect to :numgen inc mod 7 offset 80",
    ),
    (
        "nat",
        r#"unknown expressions "meta", "cmp", "payload", "hash", "redir""#,
        "meta l4proto tcp redirect to :jhash tcp dport mod 3",
    ),
    (
        "payload_ip",
        r#"unknown expressions "meta", "cmp", "numgen", "byteorder", "payload""#,
        "tcp dport set numgen inc mod 7 offset 80",
    ),
    (
        "sets",
        r#"unknown expressions "meta", "cmp", "payload", "bitwise", "bitwise", "lookup""#,
        "ip6 dscp @the_dscp",
    ),
    (
        "sets",
        r#"unknown expressions "meta", "cmp", "exthdr", "bitwise", "bitwise", "lookup""#,
        "frag frag-off @tof24",
    ),
];

#[test]
fn every_rule_has_words_but_what_nft_sends_otherwise_than_it_says() {
    if testns::Netns::new().is_none() || !testns::have(&["nft", "ip"]) {
        return;
    }
    let mut unknown = Vec::new();
    for file in &FILES {
        let Some(loaded) = file.loaded() else { continue };
        for rule in loaded.content.iter().flat_map(|content| &content.chains).flat_map(|(_, rules)| rules) {
            if rule.statements.iter().any(|s| matches!(s, Statement::Raw(_))) {
                unknown.push((file.name, rule.body().to_string()));
            }
        }
    }
    let raw: Vec<_> = RAW.iter().map(|(file, listed, _)| (*file, (*listed).to_owned())).collect();
    // A guest's kernel does not take every rule.
    let is_known = match testns::guest() {
        Some(_) => unknown.iter().all(|rule| raw.contains(rule)),
        None => unknown == raw,
    };
    assert!(is_known, "{unknown:#?}");
}
