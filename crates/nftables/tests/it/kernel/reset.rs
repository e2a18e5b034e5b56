//! What has been counted is read and set back in one step.

use std::net::Ipv4Addr;

use sluicegate_netlink::{self as netlink, Errno, NetlinkFamily, Options, Socket};
use sluicegate_nftables::expr::{Expr, ObjectKind};
use sluicegate_nftables::lang::{Counter, Verdict};
use sluicegate_nftables::probe::{Feature, supports};
use sluicegate_nftables::*;

use crate::kernel::cases::name;

const COUNTED: Counter = Counter { packets: 7, bytes: 700 };

fn table() -> TableId {
    TableId::new(Family::IP, name("t"))
}

/// A counter as an object, in a rule and in an element; each has counted.
fn counted() -> Transaction {
    let (t, set) = (table(), table().set(name("s")));
    let mut tx = Transaction::new();
    tx.add(Table::new(t.clone())).add(Chain::new(t.chain(name("c"))));
    tx.add(StatefulObject::new(t.object(ObjectKind::COUNTER, name("hits")), ObjectConfig::Counter(COUNTED)));
    tx.add(t.chain(name("c")).rule().then(COUNTED).then(Verdict::Drop));
    let mut counting = Set::new(set.clone(), DataType::IPV4_ADDR);
    counting.statements = vec![Counter::default().into()];
    tx.add(counting).add_element(&set, Element::new(Ipv4Addr::LOCALHOST).statement(COUNTED));
    tx
}

fn in_a_kernel(test: impl FnOnce(&mut Socket) + Send) {
    testns::netns(|| {
        let mut socket = Socket::open(NetlinkFamily::NETFILTER, &Options::default()).expect("a socket");
        counted().apply(&mut socket).expect("it can be applied");
        test(&mut socket);
    });
}

/// What the counters among these expressions have counted.
fn packets(expressions: &[Expr]) -> Vec<u64> {
    let counters = expressions.iter().filter_map(|expression| match expression {
        Expr::Counter(counter) => counter.packets,
        _ => None,
    });
    counters.collect()
}

/// `None`, and a word, where the kernel is too old to reset such things, as it has said when asked.
fn reset<T>(socket: &mut Socket, feature: Feature, result: Result<T, Error>) -> Option<T> {
    let has = supports(socket, feature).expect("it answers");
    match result {
        Err(Error::Netlink(netlink::Error::Kernel(error))) if error.errno == Errno::EINVAL && !has => {
            testns::lacks(&format!("{feature:?}"));
            None
        }
        result => {
            assert!(has, "it was not known to have {feature:?}");
            Some(result.expect("they can be reset"))
        }
    }
}

#[test]
fn objects_are_reset() {
    in_a_kernel(|socket| {
        let counts = |objects: Vec<read::Object>| {
            let mut socket = Socket::open(NetlinkFamily::NETFILTER, &Options::default()).unwrap();
            let mut listed = read::Ruleset::new(read::tables(&mut socket, Family::IP).unwrap());
            listed.objects = objects;
            listed.content()[0].objects.iter().map(|object| object.config.clone()).collect::<Vec<_>>()
        };
        let before = read::reset_objects(socket, TableId::new(Family::IP, name("t"))).unwrap();
        assert_eq!(counts(before), [ObjectConfig::Counter(COUNTED)]);
        let after = read::objects(socket, TableId::new(Family::IP, name("t"))).unwrap();
        assert_eq!(counts(after), [ObjectConfig::Counter(Counter::default())]);
    });
}

#[test]
fn rules_are_reset() {
    in_a_kernel(|socket| {
        let result = read::reset_chain_rules(socket, &TableId::new(Family::IP, name("t")).chain(name("c")));
        let Some(before) = reset(socket, Feature::RuleReset, result) else { return };
        assert_eq!(packets(&before[0].expressions), [7]);
        let after = read::chain_rules(socket, &TableId::new(Family::IP, name("t")).chain(name("c"))).unwrap();
        assert_eq!(packets(&after[0].expressions), [0]);
    });
}

#[test]
fn elements_are_reset() {
    in_a_kernel(|socket| {
        let result = read::reset_elements(socket, &TableId::new(Family::IP, name("t")).set(name("s")));
        let Some(before) = reset(socket, Feature::ElementReset, result) else { return };
        assert_eq!(packets(&before[0].details().expressions), [7]);
        let after = read::elements(socket, &TableId::new(Family::IP, name("t")).set(name("s"))).unwrap();
        assert_eq!(packets(&after[0].details().expressions), [0]);
    });
}
