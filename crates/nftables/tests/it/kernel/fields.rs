//! How nft notes each field in a set that is keyed by it; and what nft 1.0.6 does not know, on the kernel
//! alone.

use sluicegate_netlink::{NetlinkFamily, Options, Socket};
use sluicegate_nftables::lang::Expression;
use sluicegate_nftables::*;

use crate::kernel::cases::fields::{fields, is_unread};
use crate::kernel::cases::{name, newer};
use crate::kernel::needs;
use crate::kernel::parity::apply;

/// A set for each field.
fn sets(fields: impl IntoIterator<Item = Expression>) -> Transaction {
    let table = TableId::new(Family::INET, name("t"));
    let mut transaction = Transaction::new();
    transaction.add(Table::new(table.clone()));
    for (i, field) in fields.into_iter().enumerate() {
        transaction.add(Set::new(table.set(name(&format!("s{i}"))), SetType::Typeof(field)));
    }
    transaction
}

fn read_all() -> read::Ruleset {
    let mut socket = Socket::open(NetlinkFamily::NETFILTER, &Options::default()).expect("a socket");
    read::ruleset(&mut socket, Family::UNSPEC).expect("a ruleset")
}

#[test]
fn every_field_is_noted_as_nft_notes_it() {
    if !testns::have(&["nft"]) {
        return;
    }
    let (Some(by_text), Some(by_netlink)) = (testns::Netns::new(), testns::Netns::new()) else { return };
    // nft 1.0.6 has no sets of "exists" and "missing": it takes `typeof exthdr frag` for that header's first
    // field. And for an option by number it notes the difference of two of its pointers.
    let odd = |field: &Expression| {
        let Expression::Exthdr(e) = field else { return false };
        e.is_presence() || e.header().is_none()
    };
    let tried: Vec<_> = fields().into_iter().filter(|field| !is_unread(field) && !odd(field)).collect();
    let transaction = sets(tried.clone());
    let output = by_text.run(|| testns::feed(&["nft", "-f", "-"], &transaction.to_string()));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    by_netlink.run(|| apply(&transaction)).expect("a load by netlink");
    let (text, netlink) = (by_text.run(read_all).sets, by_netlink.run(read_all).sets);
    assert_eq!(text.len(), tried.len());
    for ((field, (text, _)), (netlink, _)) in tried.iter().zip(&text).zip(&netlink) {
        assert_eq!(text.name, netlink.name);
        assert_eq!((text.key_type, text.key_len), (netlink.key_type, netlink.key_len), "{field}");
        assert_eq!(hex(&text.user_data), hex(&netlink.user_data), "{field}");
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Loaded by netlink and read back in the language, word for word.
#[test]
fn what_nft_1_0_6_cannot_list_is_read_back() {
    for case in newer() {
        if !needs::met(case.name) {
            continue;
        }
        let Some(namespace) = testns::Netns::new() else { return };
        let rules = |tx: &Transaction| -> Vec<Rule> {
            let rule = |operation: &Operation| match operation {
                Operation::Add(Object::Rule(rule)) if rule.to_string().split(' ').all(needs::met) => {
                    Some(rule.clone())
                }
                _ => None,
            };
            tx.operations().iter().filter_map(rule).collect()
        };
        let sent = rules(&case.transaction);
        if sent.is_empty() {
            continue;
        }
        let mut transaction = Transaction::new();
        for operation in case.transaction.operations() {
            if let Operation::Add(object @ (Object::Table(_) | Object::Chain(_) | Object::Set(_))) = operation
            {
                transaction.add(object.clone());
            }
        }
        for rule in &sent {
            transaction.add(rule.clone());
        }
        namespace.run(|| apply(&transaction)).unwrap_or_else(|why| panic!("{}: {why}", case.name));
        let listed = namespace.run(read_all).content().remove(0).chains.remove(0).1;
        for (sent, listed) in sent.iter().zip(&listed) {
            assert_eq!(sorted(&body(listed)), sorted(&as_shown(&body(sent))), "{}", case.name);
        }
        assert_eq!(sent.len(), listed.len());
    }
}

/// In other words, where nft shows others.
fn as_shown(text: &str) -> String {
    // Many types of messages have a target, so the match on these stays.
    let types = "icmpv6 type { mld-listener-query, mld-listener-report, mld-listener-done, \
                 nd-neighbor-solicit, nd-neighbor-advert, nd-redirect } icmpv6 taddr";
    // Both lie in the same place of a routing header.
    text.replace("icmpv6 taddr", types).replace("rt2 addr", "srh sid[1]")
}

fn body(rule: &Rule) -> String {
    let mut bare = rule.clone();
    bare.handle = None;
    bare.to_string()
}

/// With the members of its sets in order.
fn sorted(text: &str) -> String {
    let mut parts = text.split('{');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |before, part| {
        let (members, after) = part.split_once('}').expect("a set");
        let mut members: Vec<_> = members.trim().split(", ").collect();
        members.sort_unstable();
        format!("{before}{{ {} }}{after}", members.join(", "))
    })
}
