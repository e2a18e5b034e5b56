//! Every pair of header fields in one rule: what nft implies before them, joins, and takes apart again, and
//! what we do.

use sluicegate_nftables::lang::{Expression, Match, MatchOp, Payload, Value};
use sluicegate_nftables::*;

use crate::kernel::cases::fields::is_unread;
use crate::kernel::cases::{Case, name};
use crate::kernel::listing::lists_as_nft;
use crate::kernel::parity::compare;

#[test]
fn every_pair_of_fields_is_loaded_and_listed_as_nft_does() {
    // A kernel only keeps these rules: what one does with them, all do, and a guest takes long.
    if testns::guest().is_some() || !testns::have(&["nft"]) {
        return;
    }
    let (mut failed, mut tried) = (Vec::new(), 0);
    for (family, protocols) in [
        (Family::IP, &["ip", "icmp", "tcp", "udp", "ether"] as &[_]),
        (Family::IP6, &["ip6", "icmpv6", "udp", "sctp"]),
        (Family::INET, &["ether", "ip", "ip6", "udp", "icmp", "icmpv6"]),
        (Family::BRIDGE, &["ether", "vlan", "ip", "arp", "udp", "icmp"]),
        (Family::NETDEV, &["ether", "vlan", "ip6", "udp"]),
        (Family::ARP, &["arp"]),
    ] {
        let fields: Vec<_> = Payload::ALL
            .iter()
            .copied()
            .filter(|field| protocols.contains(&field.protocol()) && !is_unread(&(*field).into()))
            .collect();
        let table = TableId::new(family, name("t"));
        let chain = table.chain(name("c"));
        let mut rules = Vec::new();
        for first in &fields {
            for second in &fields {
                let rule = chain.rule().then(equal(*first, 1)).then(equal(*second, 2));
                if !contradict(*first, *second) && !is_misread(family, *first, *second) && loads(&rule) {
                    rules.push(rule);
                }
            }
        }
        tried += rules.len();
        // nft sends a script at once, and without privileges its send buffer does not grow.
        for some in rules.chunks(200) {
            let mut transaction = Transaction::new();
            transaction.add(Table::new(table.clone())).add(Chain::new(chain.clone()));
            some.iter().for_each(|rule| _ = transaction.add(rule.clone()));
            let case = Case { name: "pairs of fields", transaction };
            failed.extend(compare(&case).err());
            failed.extend(lists_as_nft(&case).err());
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    assert!(tried > 3000, "only {tried} pairs");
}

fn equal(field: Payload, number: u64) -> Match {
    let bytes = usize::from(field.bits().div_ceil(8));
    let mut value = vec![0; bytes];
    // No protocol that has a header of its own, which the other field would contradict.
    let number = if field.data_type() == DataType::INET_PROTO { 250 + number } else { number };
    value[bytes - 1] = u8::try_from(number).unwrap();
    let value: Expression = match field.data_type() {
        DataType::IPV4_ADDR => Value::Address(<[u8; 4]>::try_from(value).unwrap().into()).into(),
        DataType::IPV6_ADDR => Value::Address(<[u8; 16]>::try_from(value).unwrap().into()).into(),
        DataType::ETHER_ADDR => Value::Ether(EtherAddr(value.try_into().unwrap())).into(),
        _ if field.bits() == 1 => 1_u64.into(),
        _ => number.into(),
    };
    Match::with(field, if field.data_type().is_bitmask() { MatchOp::Eq } else { MatchOp::In }, value)
}

/// nft refuses a rule that contradicts itself. Where it knows what is in the frame it takes no VLAN tag any
/// more.
fn contradict(first: Payload, second: Payload) -> bool {
    let network = |field: Payload| match field.protocol() {
        "ip" | "icmp" => Some("ip"),
        "ip6" | "icmpv6" => Some("ip6"),
        "arp" => Some("arp"),
        _ => None,
    };
    let differ = |a: Option<&str>, b: Option<&str>| a.is_some() && b.is_some() && a != b;
    let transport = |field: Payload| field.transport().map(|_| field.protocol());
    differ(network(first), network(second))
        || differ(transport(first), transport(second))
        || second.protocol() == "vlan" && network(first).is_some()
        || first.protocol() == "arp" && transport(second).is_some()
}

/// Some of it we refuse too: messages of one type with a field of another.
fn loads(rule: &Rule) -> bool {
    let mut transaction = Transaction::new();
    transaction.add(rule.clone());
    transaction.encode(ApplyOptions::default()).is_ok()
}

/// What nft 1.0.6 lists as something else than what it loaded.
fn is_misread(family: Family, first: Payload, second: Payload) -> bool {
    // Once it has seen a VLAN tag, it takes the start of the frame for one too (`vlan id 3 vlan pcp 0 vlan
    // dei 0 ...`).
    first.protocol() == "vlan" && second == Payload::ETHER_DADDR
        // In a table of one protocol it takes every type of frames for that protocol's, and does not show it.
        || family == Family::IP && first == Payload::ETHER_TYPE && second.protocol() == "ip"
        // Joined to the checksum, these come before the type that would tell what they are.
        || first == Payload::ICMPV6_CHECKSUM
            && matches!(second, Payload::ICMPV6_ID | Payload::ICMPV6_MAX_DELAY)
}
