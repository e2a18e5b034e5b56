//! The end marker at key zero, sent with the first elements of a new interval set in the cases in which nft does.

use std::net::Ipv4Addr;

use sluicegate_netlink::{NetlinkFamily, Options, Socket};
use sluicegate_nftables::*;

use crate::kernel::cases::name;

/// Scripts, each loaded into an empty ruleset.
const SCRIPTS: [&str; 12] = [
    "table ip t {\n set s { type ipv4_addr; flags interval; elements = { 10.0.0.0/8, 12.0.0.1 }\n }\n}",
    "table ip t {\n set s { type ipv4_addr; flags interval; elements = { 10.0.0.0/8, 0.0.0.0/8 }\n }\n}",
    "table ip t {\n map m { type mark : mark; flags interval; elements = { 1-2 : 3, 4 : 5 }\n }\n}",
    "table ip t {\n map m { type ipv4_addr . mark : mark; flags interval; elements = { 10.0.0.0/8 . 1-2 : 3 }\n }\n}",
    "table ip t {\n set s { type ipv4_addr; elements = { 10.0.0.1 }\n }\n}",
    "add table ip t\nadd set ip t s { type ipv4_addr; flags interval; }\n\
     add element ip t s { 10.0.0.0/8 }\nadd element ip t s { 1.0.0.0/8, 2.1.1.1-2.1.1.9 }",
    "add table ip t\nadd set ip t s { type ipv4_addr; flags interval; }\n\
     add element ip t s { 10.0.0.0/8 }\nadd element ip t s { 0.0.0.0/7 }",
    "add table ip t\nadd set ip t s { type ipv4_addr; flags interval; auto-merge; elements = { 10.0.0.0/8 }; }\n\
     add element ip t s { 10.1.0.0-11.1.1.1 }",
    "add table ip t\nadd set ip t s { type ipv4_addr; flags interval; auto-merge; elements = { 10.0.0.0/8 }; }\n\
     add element ip t s { 0.0.0.0-1.1.1.1 }",
    "add table ip t\ncreate map ip t m { type inet_service : verdict; flags interval; }\n\
     add element ip t m { 80-90 : drop, 95-99 : accept }",
    "add table ip t\nadd set ip t s { type ipv6_addr; flags interval; }\n\
     add element ip t s { fe80::/10 }\ndelete element ip t s { fe80::/10 }\nadd element ip t s { 1::/16 }",
    "add table ip t\nadd set ip t s { type ipv4_addr; flags interval; elements = { 1.0.0.0/8 }; }\n\
     delete table ip t\nadd table ip t\n\
     add set ip t s { type ipv4_addr; flags interval; elements = { 0.0.0.0/8, 3.0.0.0/8 }; }",
];

fn nft(script: &str) {
    let output = testns::feed(&["nft", "-f", "-"], script);
    assert!(output.status.success(), "{script}\n{}", String::from_utf8_lossy(&output.stderr));
}

fn apply(transaction: &Transaction) {
    let mut socket = Socket::open(NetlinkFamily::NETFILTER, &Options::default()).expect("a socket");
    transaction.apply(&mut socket).unwrap_or_else(|error| panic!("{transaction}\n{error}"));
}

fn parse(script: &str) -> Transaction {
    Transaction::parse(script).unwrap_or_else(|error| panic!("{script}\n{error}"))
}

/// The elements of all sets, the markers among them.
fn elements() -> Vec<String> {
    let text = testns::sh("nft --debug=netlink list ruleset");
    let mut lines: Vec<_> =
        text.lines().filter(|line| line.starts_with("\telement")).map(str::to_owned).collect();
    lines.sort_unstable();
    lines
}

#[test]
fn new_sets_have_the_marker_where_nft_gives_it() {
    if !testns::have(&["nft"]) {
        return;
    }
    let mut with_marker = 0;
    for script in SCRIPTS {
        let (Some(theirs), Some(own)) = (testns::Netns::new(), testns::Netns::new()) else { return };
        let expected = theirs.run(|| {
            nft(script);
            elements()
        });
        let transaction = parse(script);
        let found = own.run(|| {
            apply(&transaction);
            elements()
        });
        assert_eq!(found, expected, "{script}");
        with_marker += usize::from(expected.iter().any(|line| line.contains("element 00000000  : 1 [end]")));
        // A listing shows nothing of it.
        let (nft_list, list) =
            (theirs.run(|| testns::sh("nft list ruleset")), own.run(|| testns::sh("nft list ruleset")));
        assert_eq!(list, nft_list, "{script}");
    }
    assert!((4..SCRIPTS.len()).contains(&with_marker), "{with_marker}");
}

#[test]
fn sets_with_elements_get_no_marker_with_more() {
    if !testns::have(&["nft"]) {
        return;
    }
    let set = TableId::new(Family::IP, name("t")).set(name("s"));
    let range = Element::range(Ipv4Addr::new(12, 0, 0, 0), Ipv4Addr::new(12, 255, 255, 255));
    let mut more = Transaction::new();
    more.add(Elements::new(&set, [range]));
    for (first, change, typed) in [
        ("0.0.0.0/8", "add element ip t s { 12.0.0.0/8 }", more.clone()),
        ("1.0.0.0/8", "add element ip t s { 12.0.0.0/8 }", more),
        ("0.0.0.0/8", NEW, parse(NEW)),
        ("1.0.0.0/8", NEW, parse(NEW)),
    ] {
        let (Some(theirs), Some(own)) = (testns::Netns::new(), testns::Netns::new()) else { return };
        let start = format!(
            "table ip t {{\n set s {{ type ipv4_addr; flags interval; elements = {{ {first} }}\n }}\n}}"
        );
        let expected = theirs.run(|| {
            nft(&start);
            nft(change);
            elements()
        });
        let found = own.run(|| {
            apply(&parse(&start));
            apply(&typed);
            // What is there already is no error: nothing is sent twice that must be new.
            apply(&typed);
            elements()
        });
        assert_eq!(found, expected, "{first}: {change}");
    }
}

/// A definition of the set, with elements: nft sends the marker along.
const NEW: &str = "add set ip t s { type ipv4_addr; flags interval; elements = { 12.0.0.0/8 }; }";
