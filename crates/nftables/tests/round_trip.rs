//! There and back without a kernel: what is encoded, read by the decoders of dumps, and raised to the typed language again.

#![allow(clippy::unwrap_used, reason = "constants of the tests")]

use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use proptest::prelude::*;
use sluicegate_netlink::message::Messages;
use sluicegate_nftables::expr::ObjectKind;
use sluicegate_nftables::lang::{Counter, Quota, Verdict};
use sluicegate_nftables::*;

#[allow(dead_code, unreachable_pub, reason = "shared with the tests that need a kernel")]
#[path = "kernel/cases.rs"]
mod cases;

/// What a dump would say after this transaction, but for what the kernel adds.
fn held(tx: &Transaction) -> read::Ruleset {
    let batch = tx.encode(ApplyOptions::default()).unwrap();
    let mut all = read::Ruleset::default();
    for message in Messages::new(batch.bytes().unwrap()) {
        let message = message.unwrap();
        let [subsystem, command] = message.header.kind.to_be_bytes();
        if subsystem != 10 {
            continue;
        }
        let (header, attributes) = message.netfilter().unwrap();
        let family = Family(header.family);
        match command {
            0 => all.tables.push(read::Table::decode(family, attributes).unwrap()),
            3 => all.chains.push(read::Chain::decode(family, attributes).unwrap()),
            6 => all.rules.push(read::Rule::decode(family, attributes).unwrap()),
            9 => all.sets.push((read::Set::decode(family, attributes).unwrap(), Vec::new())),
            12 => {
                let name = attributes.clone().find(2).unwrap().unwrap().str().unwrap().to_owned();
                let set = all.sets.iter_mut().rev().find(|(set, _)| *set.name == *name).unwrap();
                set.1.extend(read::Element::decode_list(attributes).unwrap());
            }
            18 => all.objects.push(read::Object::decode(family, attributes).unwrap()),
            22 => all.flowtables.push(read::Flowtable::decode(family, attributes).unwrap()),
            other => panic!("command {other}"),
        }
    }
    all
}

fn content(tx: &Transaction) -> TableContent {
    held(tx).content().remove(0)
}

/// The sets that rules of a case can refer to, with one rule.
fn with_one_rule(case: &cases::Case, rule: Rule) -> Transaction {
    let mut tx = Transaction::new();
    tx.add(Table::new(rule.chain.table.clone())).add(Chain::new(rule.chain.clone()));
    for operation in case.transaction.operations() {
        if let Operation::Add(Object::Set(set)) = operation {
            tx.add(set.clone());
        }
    }
    tx.add(rule);
    tx
}

/// A rule that was read back may be worded otherwise, but it has to mean the same: the same expressions, the same anonymous sets.
#[test]
fn a_rule_that_is_read_back_means_what_it_meant() {
    let (mut tried, mut failed) = (0, Vec::new());
    for case in cases::all() {
        for operation in case.transaction.operations() {
            let Operation::Add(Object::Rule(rule)) = operation else { continue };
            tried += 1;
            let first = with_one_rule(&case, rule.clone());
            let chains = content(&first).chains;
            let mut again = chains.into_iter().find(|(chain, _)| chain.id == rule.chain).unwrap().1.remove(0);
            again.handle = None;
            let (before, after) =
                (in_order(held(&first)), in_order(held(&with_one_rule(&case, again.clone()))));
            if before != after {
                failed.push(format!("{}: {rule}\n    is read as {again}", case.name));
            }
        }
    }
    assert!(tried > 100, "only {tried} rules");
    assert!(failed.is_empty(), "{} of {tried}:\n{}", failed.len(), failed.join("\n"));
}

/// The elements of a set have no order.
fn in_order(mut all: read::Ruleset) -> read::Ruleset {
    for (_, elements) in &mut all.sets {
        elements.sort_by_key(|element| (element.key.clone(), element.flags.bits()));
    }
    all
}

fn table() -> TableId {
    TableId::new(Family::INET, cases::name("t"))
}

fn a_name() -> impl Strategy<Value = Name> {
    "[a-z_][a-zA-Z0-9_./-]{0,40}_x".prop_map(|name| Name::new(&name).unwrap())
}

fn a_comment() -> impl Strategy<Value = Comment> {
    "[ !#-~]{1,100}".prop_map(|text| Comment::new(&text).unwrap())
}

/// nft and kernel keep times of sets in milliseconds; nought is none.
fn a_time() -> impl Strategy<Value = Duration> {
    (1_u64..1 << 40).prop_map(Duration::from_millis)
}

fn a_type() -> impl Strategy<Value = DataType> {
    prop::sample::select(vec![
        DataType::IPV4_ADDR,
        DataType::IPV6_ADDR,
        DataType::INET_PROTO,
        DataType::INET_SERVICE,
        DataType::MARK,
        DataType::ETHER_ADDR,
    ])
}

fn push(mut key: Key, of: DataType, number: u128) -> Key {
    let low = u32::try_from(number & 0xffff_ffff).unwrap();
    let [.., a, b] = low.to_be_bytes();
    match of {
        DataType::IPV4_ADDR => key.push(Ipv4Addr::from(low)),
        DataType::IPV6_ADDR => key.push(Ipv6Addr::from(number)),
        DataType::INET_PROTO => key.push(Protocol(b)),
        DataType::INET_SERVICE => key.push(Port(u16::from_be_bytes([a, b]))),
        DataType::MARK => key.push(Mark(low)),
        _ => key.push(EtherAddr([2, 0, 0, 0, a, b])),
    }
    key
}

fn key(types: &[DataType], numbers: &[u128]) -> Key {
    types.iter().zip(numbers).fold(Key::new(), |key, (of, number)| push(key, *of, *number))
}

fn numbers() -> impl Strategy<Value = Vec<[u128; 4]>> {
    prop::collection::vec(any::<[u128; 4]>(), 0..20)
}

/// Elements in some order, each once.
fn sorted(mut elements: Vec<Element>) -> Vec<Element> {
    elements.sort_by_cached_key(|element| element.key().bytes().to_vec());
    elements.dedup_by(|a, b| a.key() == b.key());
    elements
}

proptest! {
    #[test]
    fn a_table_survives(flags in 0_u32..8, comment in prop::option::of(a_comment())) {
        let mut table = Table::new(table()).flags(TableFlags::from_bits_retain(flags));
        table.comment = comment;
        let mut tx = Transaction::new();
        tx.add(table.clone());
        prop_assert_eq!(content(&tx).table, table);
    }

    #[test]
    fn a_chain_survives(name in a_name(), base in any::<bool>(), priority in any::<i32>(), policy in prop::option::of(any::<bool>()), hook in 0_usize..5, comment in prop::option::of(a_comment())) {
        let hooks = [Hook::Prerouting, Hook::Input, Hook::Forward, Hook::Output, Hook::Postrouting];
        let id = table().chain(name);
        let mut chain = Chain::new(id.clone());
        if base {
            chain = Chain::base(id, ChainType::Filter, hooks[hook], Priority(priority));
            if let Some(accept) = policy {
                chain = chain.policy(if accept { Policy::Accept } else { Policy::Drop });
            }
        }
        chain.comment = comment;
        let mut tx = Transaction::new();
        tx.add(Table::new(table())).add(chain.clone());
        prop_assert_eq!(&content(&tx).chains[0].0, &chain);
    }

    #[test]
    fn a_set_with_its_elements_survives(types in prop::collection::vec(a_type(), 1..4), numbers in numbers(), comment in prop::option::of(a_comment()), timeout in prop::option::of(a_time()), size in prop::option::of(1_u32..), commented in any::<bool>()) {
        let id = table().set(cases::name("s"));
        let mut set = Set::new(id.clone(), SetType::Types(types.clone()));
        set.comment = comment;
        set.size = size;
        if let Some(timeout) = timeout {
            set = set.timeout(timeout);
        }
        let elements = numbers.iter().map(|numbers| {
            let element = Element::new(key(&types, numbers));
            if commented { element.comment(Comment::new("one").unwrap()).statement(Counter::default()) } else { element }
        });
        let elements = sorted(elements.collect());
        let mut tx = Transaction::new();
        tx.add(Table::new(table())).add(set.clone()).add(Elements::new(&id, elements.clone()));
        let (read_set, read_elements) = content(&tx).sets.remove(0);
        prop_assert_eq!(read_set, set);
        prop_assert_eq!(sorted(read_elements), elements);
    }

    #[test]
    fn a_map_with_its_elements_survives(types in prop::collection::vec(a_type(), 1..4), data in prop::collection::vec(a_type(), 1..3), verdicts in any::<bool>(), numbers in numbers()) {
        let id = table().map(cases::name("m"));
        let set = match verdicts {
            true => Set::verdict_map(id.clone(), SetType::Types(types.clone())),
            false => Set::map(id.clone(), SetType::Types(types.clone()), SetType::Types(data.clone())),
        };
        let elements = numbers.iter().map(|numbers| {
            let element = Element::new(key(&types, numbers));
            match (verdicts, numbers[3] % 3) {
                (false, _) => element.value(key(&data, &numbers[2..])),
                (true, 0) => element.verdict(Verdict::Drop),
                (true, 1) => element.verdict(Verdict::Goto(cases::name("there"))),
                (true, _) => element.verdict(Verdict::Jump(cases::name("there"))),
            }
        });
        let elements = sorted(elements.collect());
        let mut tx = Transaction::new();
        tx.add(Table::new(table())).add(set.clone()).add(Elements::new(&id, elements.clone()));
        let (read_set, read_elements) = content(&tx).sets.remove(0);
        prop_assert_eq!(read_set, set);
        prop_assert_eq!(sorted(read_elements), elements);
    }

    #[test]
    fn intervals_survive(of in prop::sample::select(vec![DataType::IPV4_ADDR, DataType::INET_SERVICE, DataType::MARK]), bounds in prop::collection::btree_set(any::<u16>(), 0..20)) {
        // Bounds in ascending order make intervals that do not touch: each begins at least two behind the end of the one before.
        let bounds: Vec<u128> = bounds.into_iter().map(|bound| u128::from(bound) & !1).collect::<std::collections::BTreeSet<_>>().into_iter().collect();
        let id = table().set(cases::name("s"));
        let set = Set::new(id.clone(), of).flags(SetFlags::INTERVAL);
        let elements: Vec<Element> = bounds.chunks_exact(2).map(|ends| Element::range(push(Key::new(), of, ends[0]), push(Key::new(), of, ends[1]))).collect();
        let mut tx = Transaction::new();
        tx.add(Table::new(table())).add(set).add(Elements::new(&id, elements.clone()));
        prop_assert_eq!(content(&tx).sets.remove(0).1, elements);
    }

    #[test]
    fn counters_and_quotas_survive(packets in any::<u64>(), bytes in any::<u64>(), over in any::<bool>(), comment in prop::option::of(a_comment())) {
        let counter = ObjectConfig::Counter(Counter { packets, bytes });
        let quota = ObjectConfig::Quota(Quota { bytes, over, used: packets });
        let objects = [(ObjectKind::COUNTER, counter), (ObjectKind::QUOTA, quota)].map(|(kind, config)| {
            let mut object = StatefulObject::new(table().object(kind, cases::name("o")), config);
            object.comment = comment.clone();
            object
        });
        let mut tx = Transaction::new();
        tx.add(Table::new(table()));
        for object in &objects {
            tx.add(object.clone());
        }
        prop_assert_eq!(content(&tx).objects, objects);
    }

    #[test]
    fn a_flowtable_survives(name in a_name(), priority in any::<i32>(), devices in prop::collection::btree_set("[a-z]{1,10}[0-9]", 0..4), flags in 0_u32..4) {
        let mut flowtable = Flowtable::new(table().flowtable(name), Priority(priority));
        flowtable.devices = devices.iter().map(|device| InterfaceName::new(device).unwrap()).collect();
        flowtable.flags = FlowtableFlags::from_bits_retain(flags);
        let mut tx = Transaction::new();
        tx.add(Table::new(table())).add(flowtable.clone());
        prop_assert_eq!(content(&tx).flowtables, [flowtable]);
    }
}

#[test]
fn conntrack_objects_survive() {
    let (objects, mut tx) = (cases::conntrack_objects(&table()), Transaction::new());
    tx.add(Table::new(table()));
    for object in &objects {
        tx.add(object.clone());
    }
    assert_eq!(content(&tx).objects, objects);
}
