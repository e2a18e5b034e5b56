//! Rules that are refused for what they mean, through each of the three doors: as text, as JSON and as values. Each
//! door names the same statement, in its own way: by columns, by a JSON pointer, by an index.
//!
//! nft refuses the text as well, at a place within that statement or, where it notices the mistake later, behind it.

use sluicegate_nftables::lang::Statement;
use sluicegate_nftables::lang::parse::Script;
use sluicegate_nftables::{
    ApplyOptions, Chain, ChainType, DataType, Error, Family, Hook, Name, Priority, Set, Table, TableId,
    Transaction,
};

use crate::language::kernel::namespace;

/// The statements of a rule, of which this one is refused.
type Wrong = (Family, &'static [&'static str], usize);

const WRONG: &[Wrong] = &[
    // The order of statements.
    (Family::IP, &["accept", "counter"], 1),
    (Family::IP, &["tcp dport 22", "drop", "accept"], 2),
    (Family::IP, &["reject", "counter"], 1),
    // Protocols.
    (Family::IP, &["counter", "ip6 saddr ::1"], 1),
    (Family::IP6, &["ip saddr 192.0.2.1", "counter"], 0),
    (Family::INET, &["ip saddr 192.0.2.1", "ip6 daddr ::1", "accept"], 1),
    (Family::INET, &["tcp dport 80", "udp dport 80"], 1),
    (Family::INET, &["meta nfproto ipv6", "counter", "ip saddr 192.0.2.1"], 2),
    (Family::ARP, &["tcp dport 80"], 0),
    (Family::IP, &["meta nfproto ipv4"], 0),
    (Family::IP, &["rt ip6 nexthop ::1"], 0),
    (Family::IP6, &["counter", "rt ip nexthop 192.0.2.1"], 1),
    // What a reply is for.
    (Family::INET, &["udp dport 53", "reject with tcp reset"], 1),
    (Family::INET, &["meta l4proto { udp, sctp }", "reject with tcp reset"], 1),
    (Family::INET, &["meta l4proto { tcp, udp }", "reject with tcp reset"], 1),
    (Family::IP, &["ip protocol { tcp, udp }", "counter", "reject with tcp reset"], 2),
    (Family::INET, &["meta nfproto ipv6", "reject with icmp type host-unreachable"], 1),
    (Family::IP, &["reject with icmpx type no-route"], 0),
    // NAT.
    (Family::IP, &["redirect to :80"], 0),
    (Family::IP, &["counter", "dnat to 192.0.2.1:80"], 1),
    (Family::IP, &["dnat to tcp dport"], 0),
    (Family::INET, &["ip saddr 192.0.2.1", "dnat ip6 to ::1"], 1),
    (Family::INET, &["meta nfproto { ipv4, ipv6 }", "dnat ip to 192.0.2.1"], 1),
    (Family::INET, &["meta nfproto { ipv4, ipv6 }", "snat ip to 192.0.2.1"], 1),
    (Family::INET, &["meta nfproto { ipv4, ipv6 }", "meta l4proto tcp", "tproxy ip to 192.0.2.1:80"], 2),
    (Family::INET, &["meta nfproto ipv4", "meta l4proto tcp", "tproxy ip6 to [::1]:50080"], 2),
    (Family::IP, &["dnat to th dport map { 80 : 192.0.2.1 . 80 }"], 0),
    (Family::IP, &["dup to meta mark"], 0),
    (Family::NETDEV, &["fwd to meta mark"], 0),
    // Types.
    (Family::IP, &["counter", "ip saddr @ports"], 1),
    (Family::IP, &["tcp dport . ip saddr @ports"], 0),
    (Family::IP, &["counter", "ip saddr map @ports2 == 5"], 1),
    (Family::IP, &["tcp dport set ip saddr map @ports2"], 0),
    (Family::IP, &["ct original saddr . meta mark { 192.0.2.1 . 0x14 }"], 0),
    (Family::IP, &["counter", "meta mark set ether saddr"], 1),
    // Numbers.
    (Family::IP, &["meta mark set meta mark << 32"], 0),
    (Family::IP, &["counter", "meta mark & ct mark == 1"], 1),
    (Family::IP, &["counter", "limit rate 0/second"], 1),
];

fn world(table: &TableId) -> Transaction {
    let name = |text: &str| -> Name { text.parse().unwrap() };
    let mut world = Transaction::new();
    world.add(Table::new(table.clone())).add(Chain::new(table.chain(name("c"))));
    world.add(Set::new(table.set(name("ports")), DataType::INET_SERVICE));
    world.add(Set::map(table.map(name("ports2")), DataType::INET_SERVICE, DataType::IPV4_ADDR));
    world
}

/// The operations of the world.
const WORLD: usize = 4;

#[test]
fn each_door_refuses_the_same_statement() {
    let mut faults = Vec::new();
    for (family, statements, wrong) in WRONG {
        let table = TableId::new(*family, "t".parse().unwrap());
        let chain = table.chain("c".parse().unwrap());
        let (text, columns) = as_text(&world(&table), *family, statements, *wrong);
        match Transaction::parse(&text).map(drop) {
            Ok(()) => faults.push(format!("text: {text}")),
            Err(error) => {
                let at = &error.mistakes[0];
                if at.line != text.lines().count() || !columns.contains(&at.column) {
                    faults.push(format!("the text's place: {error}"));
                }
            }
        }
        // A statement alone has nothing before it. One that is refused alone has no tree, and no other door.
        let alone: Option<Vec<_>> = statements.iter().map(|text| parse(&table, text)).collect();
        let Some(alone) = alone else { continue };
        let rule = alone.into_iter().fold(chain.rule(), sluicegate_nftables::Rule::then);
        let mut values = world(&table);
        values.add(rule);
        match values.encode(ApplyOptions::default()) {
            Err(Error::Statement { operation: WORLD, statement, .. }) if statement == Some(*wrong) => {}
            other => faults.push(format!("values: {statements:?}: {:?}", other.map(drop))),
        }
        let json = values.to_json().to_string();
        let place = format!("/nftables/{WORLD}/add/rule/expr/{wrong}");
        match Transaction::from_json(&json) {
            Err(error) if error.mistakes.len() == 1 && error.mistakes[0].path.starts_with(&place) => {}
            other => faults.push(format!("JSON: {json}: {:?}", other.map(drop))),
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn nft_refuses_the_text_in_that_statement_too() {
    if !testns::have(&["nft"]) {
        return;
    }
    let Some(namespace) = namespace() else { return };
    let mut faults = Vec::new();
    for (family, statements, wrong) in WRONG {
        let table = TableId::new(*family, "t".parse().unwrap());
        let (text, columns) = as_text(&world(&table), *family, statements, *wrong);
        let output = namespace.run(|| testns::feed(&["nft", "-c", "-f", "-"], &text));
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let place = said.split(": Error").next().and_then(|place| place.rsplit_once(':')?.1.split_once('-'));
        let last = place.and_then(|(_, last)| last.parse::<usize>().ok());
        if output.status.success() || last.is_none_or(|last| last < columns.start) {
            faults.push(format!("{text}{said}"));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// Every hook of every family, with and without a device: all doors take what nft 1.0.6 takes. A chain of family
/// netdev without a device, which nft 1.0.8 takes and the kernel since 6.4, sees no packet: it is refused as text
/// and as JSON, and taken from a program, which may add devices later.
#[test]
fn the_hooks_of_devices_have_one_through_each_door() {
    if !testns::have(&["nft"]) {
        return;
    }
    let Some(namespace) = namespace() else { return };
    let families = [Family::IP, Family::IP6, Family::INET, Family::ARP, Family::BRIDGE, Family::NETDEV];
    let (mut faults, mut taken) = (Vec::new(), 0);
    for (family, hook, device) in families.into_iter().flat_map(|family| {
        Hook::ALL.iter().flat_map(move |hook| [false, true].map(|device| (family, *hook, device)))
    }) {
        let id = TableId::new(family, "t".parse().unwrap());
        let chain = Chain::base(id.chain("c".parse().unwrap()), ChainType::Filter, hook, Priority(0));
        let chain = if device { chain.devices(["lo".parse().unwrap()]) } else { chain };
        let mut values = Transaction::new();
        values.add(Table::new(id)).add(chain);
        let (text, json) = (values.to_string(), values.to_json().to_string());
        let is_later = family == Family::NETDEV && hook.number(family).is_some() && !device;
        let doors = [
            namespace.run(|| testns::feed(&["nft", "-c", "-f", "-"], &text)).status.success(),
            Transaction::parse(&text).is_ok(),
            Transaction::from_json(&json).is_ok(),
            values.encode(ApplyOptions::default()).is_ok() && !is_later,
        ];
        taken += usize::from(doors[0]);
        if doors.iter().any(|door| *door != doors[0]) {
            faults.push(format!("{doors:?}: {text}"));
        }
    }
    assert!(taken > 0 && faults.is_empty(), "{taken} taken\n{}", faults.join("\n"));
}

/// nft refuses all of these: "Range expression is undefined for network interface name types".
#[test]
fn names_have_no_ranges_in_json() {
    const WORLD: &str = r#"{"add": {"table": {"family": "inet", "name": "t"}}},
        {"add": {"chain": {"family": "inet", "table": "t", "name": "c"}}}"#;
    let rule = |of: &str| {
        format!(r#"{{"add": {{"rule": {{"family": "inet", "table": "t", "chain": "c", "expr": [{of}]}}}}}}"#)
    };
    let matching = |key: &str, right: &str| {
        rule(&format!(r#"{{"match": {{"op": "==", "left": {key}, "right": {right}}}}}"#))
    };
    let name = r#"{"meta": {"key": "iifname"}}"#;
    let both = r#"{"concat": [{"meta": {"key": "oifname"}}, {"meta": {"key": "mark"}}]}"#;
    let wrong = [
        matching(name, r#"{"range": ["a", "b"]}"#),
        matching(r#"{"osf": {"key": "name"}}"#, r#"{"range": ["a", "b"]}"#),
        matching(name, r#"{"set": ["x", {"range": ["a", "b"]}]}"#),
        matching(both, r#"{"set": [{"concat": [{"range": ["a", "b"]}, 1]}]}"#),
        rule(&format!(
            r#"{{"vmap": {{"key": {name},
                "data": {{"set": [[{{"range": ["a", "b"]}}, {{"accept": null}}]]}}}}}}"#
        )),
        r#"{"add": {"set": {"family": "inet", "table": "t", "name": "s", "type": "ifname",
            "flags": ["interval"], "elem": [{"range": ["a", "b"]}]}}}"#
            .to_owned(),
    ];
    let right = [
        matching(name, r#"{"set": ["x", "a*"]}"#),
        matching(both, r#"{"set": [{"concat": ["x", {"range": [1, 3]}]}]}"#),
    ];
    let read = |command: &String| {
        let read = Transaction::from_json(&format!(r#"{{"nftables": [{WORLD}, {command}]}}"#));
        read.map_err(|error| error.to_string())
            .and_then(|read| read.encode(ApplyOptions::default()).map_err(|error| error.to_string()))
    };
    for command in &wrong {
        let said = read(command).map(drop).expect_err(command);
        assert!(said.contains("names have no order"), "{command}: {said}");
    }
    right.iter().for_each(|command| drop(read(command).expect(command)));
}

fn parse(table: &TableId, text: &str) -> Option<Statement> {
    let world = world(table);
    let sets = |id: &sluicegate_nftables::SetId| {
        world.operations().iter().find_map(|operation| match operation {
            sluicegate_nftables::Operation::Add(sluicegate_nftables::Object::Set(set))
                if set.id.name == id.name =>
            {
                Some((**set).clone())
            }
            _ => None,
        })
    };
    let mut options = sluicegate_nftables::lang::parse::ParseOptions::default();
    options.sets = Some(&sets);
    Statement::parse_with(table.family, text, &options).ok()
}

/// The script of a rule, and the columns of one of its statements in the last line.
fn as_text(
    world: &Transaction,
    family: Family,
    statements: &[&str],
    wrong: usize,
) -> (String, std::ops::Range<usize>) {
    let head = format!("add rule {family} t c ");
    let start = head.len() + statements[..wrong].iter().map(|text| text.len() + 1).sum::<usize>() + 1;
    let text = format!("{world}{head}{}\n", statements.join(" "));
    // It is all that is wrong.
    assert!(Script::parse(&world.to_string(), &Default::default()).is_ok());
    (text, start..start + statements[wrong].len())
}
