//! What we read back and print, against `nft list ruleset` with its options.

use std::collections::BTreeMap;

use sluicegate_netlink::{NetlinkFamily, Options, Socket};
use sluicegate_nftables::lang::Statement;
use sluicegate_nftables::{Family, ListOptions, TimeZone, Transaction, read};

use crate::kernel::cases;
use crate::kernel::parity::{but_for_protocols, difference, normal};

#[test]
fn a_ruleset_is_listed_as_nft_lists_it() {
    if !testns::have(&["nft"]) {
        return;
    }
    let failed: Vec<String> = cases::all().iter().filter_map(|case| lists_as_nft(case).err()).collect();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

/// Loads a case by nft, and compares our listing with its own.
pub(crate) fn lists_as_nft(case: &cases::Case) -> Result<(), String> {
    let Some(namespace) = testns::Netns::new() else { return Ok(()) };
    let script = case.transaction.to_string();
    namespace.run(|| {
        if !testns::feed(&["nft", "-f", "-"], &script).status.success() {
            // The parity test says why.
            return Ok(());
        }
        let forms = [("-a", true, true), ("", true, false), ("-s", false, false)];
        // An older kernel changes what is read, which the fullest form shows. Emulated, each takes nft half a second.
        let forms = if testns::guest().is_some() { &forms[..1] } else { &forms[..] };
        for &(flags, state, handles) in forms {
            let mut options = list_options();
            (options.state, options.handles) = (state, handles);
            let mut nft = normal(&testns::sh(&format!("TZ=UTC nft {flags} list ruleset")));
            let mut ours = normal(&listing(&options));
            but_for_protocols(&mut nft, &mut ours);
            if nft != ours {
                return Err(format!("{} {flags}:\n{}", case.name, difference(&nft, &ours)));
            }
        }
        Ok(())
    })
}

/// Rules of nft 1.0.6 that its own listing makes others of, or nothing: prefixes of types with names, of the first
/// bytes of a field, and bits that were toggled.
#[test]
fn what_nft_makes_of_bits_is_listed_as_what_it_is() {
    if !testns::have(&["nft"]) {
        return;
    }
    let made = |text: &str, load: &(dyn Fn(&str) + Sync)| {
        let namespace = testns::Netns::new()?;
        Some(namespace.run(|| {
            load(text);
            let mut socket = Socket::open(NetlinkFamily::NETFILTER, &Options::default()).unwrap();
            let rules = read::ruleset(&mut socket, Family::UNSPEC).unwrap().rules;
            (format!("{:?}", rules[0].expressions), listing(&ListOptions::default()))
        }))
    };
    let by_nft = |text: &str| assert!(testns::feed(&["nft", "-f", "-"], text).status.success(), "{text}");
    let by_us = |text: &str| {
        let mut socket = Socket::open(NetlinkFamily::NETFILTER, &Options::default()).unwrap();
        drop(Transaction::parse(text).unwrap().apply(&mut socket).unwrap());
    };
    for (family, rule, listed) in [
        ("bridge", "ether type 0x800/8", "ether type 0x0800/8"),
        ("inet", "meta protocol 0x800/8", "meta protocol 0x0800/8"),
        ("ip6", "frag id 0x12345678/16", "frag id 305397760/16"),
        ("inet", "@th,0,24 0xabcdef/8", "@th,0,8 0xab"),
        ("ip", "ip dscp ^ 3 == 7", "ip dscp ^ cs0 == 0x04"),
        ("ip", "tcp dport ^ 3 { 1, 7 }", "tcp dport { 2, 4 }"),
    ] {
        let text = format!("table {family} t {{\n chain c {{\n  {rule}\n }}\n}}\n");
        let Some((nft, list)) = made(&text, &by_nft) else { return };
        assert!(list.contains(listed), "{rule}: {list}");
        let Some((ours, _)) = made(&list, &by_us) else { return };
        assert_eq!(nft, ours, "{rule}");
    }
    // nft sends a mask of one byte for two, and lists `& 0x8`.
    let text = "table bridge t {\n chain c {\n  vlan id 0x800/1\n }\n}\n";
    let Some((_, list)) = made(text, &by_nft) else { return };
    assert!(list.contains("vlan id & 2048 == 2048"), "{list}");
}

/// A mask of all bits changes nothing, but is an expression that nft 1.0.6 makes: of a prefix of all bits, of `| 0`,
/// and of a mask that was written. Whatever the type, and the order of its bytes, it is listed as itself, or as
/// expressions without words.
#[test]
fn a_mask_of_all_bits_is_listed_as_what_it_is() {
    if !testns::have(&["nft"]) {
        return;
    }
    let ones = |bits: u32| format!("{:#x}", u64::MAX >> (64 - bits));
    let numbers = [
        ("inet", "meta mark", 32, "1"),
        ("inet", "ct mark", 32, "1"),
        ("inet", "ct state", 32, "1"),
        ("inet", "ct status", 32, "1"),
        ("inet", "ct zone", 16, "1"),
        ("inet", "ct bytes", 64, "1"),
        ("inet", "meta skuid", 32, "1"),
        ("inet", "meta cpu", 32, "1"),
        ("inet", "meta length", 32, "1"),
        ("inet", "meta priority", 32, "1"),
        ("inet", "meta iiftype", 16, "1"),
        ("inet", "meta iifgroup", 32, "1"),
        ("inet", "iif", 32, "1"),
        ("inet", "meta rtclassid", 32, "1"),
        ("inet", "meta hour", 32, "1"),
        ("inet", "meta time", 64, "1"),
        ("inet", "fib daddr type", 32, "1"),
        ("inet", "rt classid", 32, "1"),
        ("inet", "jhash ip saddr mod 8", 32, "1"),
        ("inet", "meta pkttype", 8, "1"),
        ("inet", "meta l4proto", 8, "6"),
        ("inet", "tcp dport", 16, "80"),
        ("inet", "tcp sequence", 32, "1"),
        ("inet", "@th,0,16", 16, "1"),
        ("inet", "tcp option maxseg size", 16, "1"),
        ("bridge", "ether type", 16, "2048"),
        ("bridge", "vlan pcp", 3, "1"),
        ("arp", "arp operation", 16, "1"),
        ("ip", "ip ttl", 8, "1"),
        ("ip", "ip dscp", 6, "1"),
        ("inet", "ct label", 128, "1"),
    ];
    let mut keys: Vec<_> =
        numbers.map(|(of, key, bits, value)| (of, key, ones(bits.min(64)), "0", value, bits)).into();
    let all = ["255.255.255.255", "ff:ff:ff:ff:ff:ff", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"];
    keys.push(("ip", "ip saddr", all[0].to_owned(), "0.0.0.0", "192.0.2.1", 32));
    keys.push(("ip", "ct original ip saddr", all[0].to_owned(), "0.0.0.0", "192.0.2.1", 32));
    keys.push(("bridge", "ether saddr", all[1].to_owned(), "0:0:0:0:0:0", "0:11:22:33:44:55", 48));
    keys.push(("ip6", "ip6 saddr", all[2].to_owned(), "::", "2001:db8::1", 128));
    let mut rules = Vec::new();
    for (family, key, all, none, value, bits) in &keys {
        for what in [
            format!("& {all} == {value}"),
            format!("& {all} < {value}"),
            format!("& {all} {{ {value} }}"),
            format!("| {none} == {value}"),
            format!("{value}/{bits}"),
            format!("{value}/{}", bits - 1),
        ] {
            // nft lists such a prefix of a device as one of a negative number, and reads no number there.
            if !(*key == "iif" && what.ends_with("/31")) {
                rules.push((*family, format!("{key} {what}")));
            }
        }
    }
    // Of the values of hours and dates, bits are no words.
    let count = reload(&rules);
    assert!(count.is_none_or(|[said, wordless]| said > 100 && wordless < 15), "{count:?}");
}

/// Each byte of a name or a comment that nft can read is listed as itself; of what it cannot read, nothing is loaded.
#[test]
fn bytes_of_names_are_listed_as_they_are() {
    if !testns::have(&["nft"]) {
        return;
    }
    let mut rules = Vec::new();
    for byte in ["\u{1}", "\t", "\r", "\n", "\u{1b}", "\u{7f}", "\u{85}", "\\", " "] {
        for rule in [
            format!("iifname \"a{byte}b\" drop"),
            format!("iifname != \"a{byte}b*\" drop"),
            format!("iifname \"a{byte}*\" drop"),
            format!("iifname {{ \"a{byte}b\", \"{byte}*\" }}"),
            format!("iifname {{ \"a{byte}\\*\", \"c*\" }}"),
            format!("iifname . meta mark {{ \"a{byte}b\" . 1 }}"),
            format!("iifname vmap {{ \"a{byte}b\" : drop }}"),
            format!("meta mark 1 drop comment \"a{byte}b\""),
            format!("log prefix \"a{byte}b\" comment \"{byte}\""),
            format!("ct helper \"a{byte}b\" drop"),
        ] {
            rules.push(("inet", rule));
        }
    }
    let count = reload(&rules);
    assert!(count.is_none_or(|[said, _]| said > 85), "{count:?}");
}

/// Loads each rule by nft, in a table of its own, and what we list of it by us and by nft. Returns how many were the
/// same again, and how many have no words; `None` where there are no namespaces. What nft does not take is left out.
fn reload(rules: &[(&str, String)]) -> Option<[usize; 2]> {
    let by_nft = |text: &str| testns::feed(&["nft", "-f", "-"], text).status.success();
    let by_us = |text: &str| {
        let mut socket = open(NetlinkFamily::NETFILTER);
        Transaction::parse(text).is_ok_and(|parsed| parsed.apply(&mut socket).is_ok())
    };
    let [first, second, third] = [testns::Netns::new()?, testns::Netns::new()?, testns::Netns::new()?];
    first.run(|| {
        let table = |at: &usize| {
            let (family, rule) = &rules[*at];
            format!("table {family} t{at} {{\n chain c {{\n  {rule}\n }}\n}}\n")
        };
        // By halves, where nft does not take one of them.
        let mut parts = vec![(0..rules.len()).collect::<Vec<_>>()];
        while let Some(part) = parts.pop() {
            if !by_nft(&part.iter().map(table).collect::<String>()) && part.len() > 1 {
                let (one, other) = part.split_at(part.len() / 2);
                parts.extend([one.to_vec(), other.to_vec()]);
            }
        }
    });
    let (mut wordless, mut texts) = (0, String::new());
    let ruleset = first.run(|| read::ruleset(&mut open(NetlinkFamily::NETFILTER), Family::UNSPEC)).ok()?;
    for table in ruleset.content() {
        let is_raw = |statement: &Statement| matches!(statement, Statement::Raw(_));
        match table.chains[0].1[0].statements.iter().any(is_raw) {
            true => {
                let text = table.to_string();
                assert!(!second.run(|| by_us(&text)) && !third.run(|| by_nft(&text)), "{text}");
                wordless += 1;
            }
            false => texts += &table.to_string(),
        }
    }
    second.run(|| {
        let parsed = Transaction::parse(&texts).unwrap_or_else(|error| panic!("{error}\n{texts}"));
        parsed.apply(&mut open(NetlinkFamily::NETFILTER)).expect("what was listed");
    });
    let output = third.run(|| testns::feed(&["env", "TZ=UTC", "nft", "-f", "-"], &texts));
    assert!(output.status.success(), "{}\n{texts}", String::from_utf8_lossy(&output.stderr));
    let held = |namespace: &testns::Netns| -> BTreeMap<String, String> {
        let ruleset = namespace.run(|| read::ruleset(&mut open(NetlinkFamily::NETFILTER), Family::UNSPEC));
        let ruleset = ruleset.expect("a ruleset");
        let elements = |set: &(read::Set, Vec<read::Element>)| {
            let mut list: Vec<_> = set.1.iter().map(|element| format!("{element:?}")).collect();
            list.sort_unstable();
            (set.0.table.to_string(), list.join(" "))
        };
        let mut held: BTreeMap<String, String> = ruleset.sets.iter().map(elements).collect();
        for rule in &ruleset.rules {
            let text = format!("{:?} {:?}", rule.comment(), rule.expressions);
            *held.entry(rule.table.to_string()).or_default() += &text;
        }
        held
    };
    let (was, ours, nft) = (held(&first), held(&second), held(&third));
    for (table, text) in &ours {
        let at: usize = table[1..].parse().expect("a number");
        assert_eq!((Some(text), Some(text)), (was.get(table), nft.get(table)), "{:?}", rules[at]);
    }
    Some([ours.len(), wordless])
}

/// Two hours before UTC: POSIX counts westwards.
#[test]
fn times_are_listed_in_the_time_zone_of_the_reader() {
    if !testns::have(&["nft"]) {
        return;
    }
    let mut options = ListOptions::default();
    options.time_zone = Some(TimeZone::fixed(2 * 60 * 60));
    for case in cases::times::cases() {
        let (Some(first), Some(second)) = (testns::Netns::new(), testns::Netns::new()) else { return };
        let loaded = first.run(|| testns::feed(&["nft", "-f", "-"], &case.transaction.to_string()));
        assert!(loaded.status.success(), "{}", String::from_utf8_lossy(&loaded.stderr));
        let nft = normal(&first.run(|| testns::sh("TZ=UTC-2 nft -s list ruleset")));
        let text = first.run(|| listing(&options));
        assert_eq!(nft, normal(&text), "{}", case.name);
        assert!(text.contains('"'), "no time in {text}");
        // Read in that time zone it means the same.
        let loaded = second.run(|| testns::feed(&["env", "TZ=UTC-2", "nft", "-f", "-"], &text));
        assert!(loaded.status.success(), "{}", String::from_utf8_lossy(&loaded.stderr));
        let plain = |namespace: &testns::Netns| normal(&namespace.run(|| listing(&ListOptions::default())));
        assert_eq!(plain(&first), plain(&second), "{}", case.name);
    }
}

/// What is listed can be loaded, and is then listed alike.
#[test]
fn a_listing_is_a_script() {
    if !testns::have(&["nft"]) {
        return;
    }
    for case in cases::all() {
        let (Some(first), Some(second)) = (testns::Netns::new(), testns::Netns::new()) else { return };
        let script = case.transaction.to_string();
        if !first.run(|| testns::feed(&["nft", "-f", "-"], &script)).status.success() {
            continue;
        }
        let listed = first.run(here);
        let output = second.run(|| testns::feed(&["env", "TZ=UTC", "nft", "-f", "-"], &listed));
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}: {said}\n{listed}", case.name);
        assert_eq!(normal(&second.run(here)), normal(&listed), "{}", case.name);
    }
}

fn listing(options: &ListOptions) -> String {
    let ruleset = read::ruleset(&mut open(NetlinkFamily::NETFILTER), Family::UNSPEC).expect("a ruleset");
    ruleset.content().iter().map(|table| table.display(options).to_string()).collect()
}

/// Names as this machine has them, but times in UTC.
fn here() -> String {
    listing(&list_options())
}

fn list_options() -> ListOptions {
    read::list_options(&mut open(NetlinkFamily::ROUTE)).expect("names")
}

fn open(family: NetlinkFamily) -> Socket {
    Socket::open(family, &Options::default()).expect("a socket")
}
