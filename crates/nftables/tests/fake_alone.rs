//! What the fake does, without a kernel to compare with.

use std::net::Ipv4Addr;
use std::time::Duration;

use sluicegate_nftables::expr::ObjectKind;
use sluicegate_nftables::fake::Fake;
use sluicegate_nftables::lang::{Counter, Payload, Verdict, Vmap};
use sluicegate_nftables::*;

fn name(name: &str) -> Name {
    name.parse().expect("a name of the tests")
}

fn table() -> TableId {
    TableId::new(Family::IP, name("t"))
}

fn ip(last: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, last)
}

fn applied(fake: &mut Fake, fill: impl FnOnce(&mut Transaction)) -> Result<Applied, Error> {
    let mut tx = Transaction::new();
    fill(&mut tx);
    tx.apply(fake)
}

/// The errors, each with its operation.
fn codes(result: Result<Applied, Error>) -> Vec<(Option<usize>, i32)> {
    result.expect_err("it is to be refused").failures().iter().map(|f| (f.operation, f.error.code)).collect()
}

#[test]
fn all_of_a_transaction_happens_or_nothing() {
    let (mut fake, t) = (Fake::new(), table());
    let refused = applied(&mut fake, |tx| {
        tx.add(Table::new(t.clone())).delete(t.chain(name("absent"))).delete(t.set(name("absent")));
    });
    assert_eq!(codes(refused), [(Some(1), 2), (Some(2), 2)]);
    assert_eq!((fake.to_string().as_str(), fake.generation()), ("", 1));
}

#[test]
fn what_is_in_use_is_busy() {
    let (mut fake, t) = (Fake::new(), table());
    applied(&mut fake, |tx| {
        tx.add(Table::new(t.clone()));
        tx.add(Chain::new(t.chain(name("a")))).add(Chain::new(t.chain(name("b"))));
        tx.add(t.chain(name("a")).rule().then(Verdict::Jump(name("b"))));
        let counter = ObjectConfig::Counter(Counter::default());
        tx.add(StatefulObject::new(t.object(ObjectKind::COUNTER, name("hits")), counter));
        tx.add(Set::object_map(t.map(name("m")), DataType::IPV4_ADDR, ObjectKind::COUNTER));
        tx.add_element(&t.map(name("m")), Element::new(ip(1)).object(name("hits")));
    })
    .unwrap();
    let busy = applied(&mut fake, |tx| {
        tx.delete(t.chain(name("b"))).delete(t.object(ObjectKind::COUNTER, name("hits")));
    });
    assert_eq!(codes(busy), [(Some(0), 16), (Some(1), 16)]);
    applied(&mut fake, |tx| {
        tx.flush(t.chain(name("a"))).delete(t.chain(name("b")));
        tx.delete(t.map(name("m"))).delete(t.object(ObjectKind::COUNTER, name("hits")));
    })
    .unwrap();
    assert_eq!(fake.to_string(), "table ip t {\n\tchain a {\n\t}\n}\n");
}

#[test]
fn a_loop_that_packets_can_reach_is_found_and_blamed_on_its_rule() {
    let (mut fake, t) = (Fake::new(), table());
    let [a, b] = ["a", "b"].map(|n| t.chain(name(n)));
    applied(&mut fake, |tx| {
        tx.add(Table::new(t.clone())).add(Chain::new(a.clone())).add(Chain::new(b.clone()));
        tx.add(a.rule().then(Verdict::Jump(name("b")))).add(b.rule().then(Verdict::Jump(name("a"))));
    })
    .unwrap();
    let entry = t.chain(name("entry"));
    let looped = applied(&mut fake, |tx| {
        tx.add(Chain::base(entry.clone(), ChainType::Filter, Hook::Input, Priority::FILTER));
        tx.add(entry.rule().then(Counter::default()));
        tx.add(entry.rule().then(Verdict::Goto(name("a"))));
    });
    assert_eq!(codes(looped), [(Some(2), 31)]);
}

#[test]
fn sizes_overlaps_and_wrong_types_are_refused_by_element() {
    let (mut fake, t) = (Fake::new(), table());
    let (few, ranges) = (t.set(name("few")), t.set(name("ranges")));
    applied(&mut fake, |tx| {
        tx.add(Table::new(t.clone())).add(Set::new(few.clone(), DataType::IPV4_ADDR).size(2));
        tx.add(Set::new(ranges.clone(), DataType::IPV4_ADDR).flags(SetFlags::INTERVAL));
        tx.add_element(&ranges, Element::range(ip(10), ip(20)));
    })
    .unwrap();
    let error = applied(&mut fake, |tx| {
        tx.add(Elements::new(&few, [ip(1), ip(2), ip(3)]));
        tx.add(Elements::new(&ranges, [Element::range(ip(1), ip(2)), Element::range(ip(15), ip(30))]));
        tx.add_element(&few, Port(1));
    })
    .unwrap_err();
    let places: Vec<_> = error.failures().iter().map(|f| (f.operation, f.element, f.error.code)).collect();
    assert_eq!(places, [(Some(0), Some(2), 23), (Some(1), Some(1), 17), (Some(2), Some(0), 22)]);
}

#[test]
fn a_transaction_for_another_generation_is_refused() {
    let mut fake = Fake::new();
    let mut tx = Transaction::new();
    tx.add(Table::new(table()));
    let options = ApplyOptions { generation: Some(fake.generation()), ..ApplyOptions::default() };
    assert_eq!(tx.apply_with(&mut fake, options).unwrap().generation, 2);
    assert!(tx.apply_with(&mut fake, options).unwrap_err().is_generation_changed());
}

#[test]
fn a_check_applies_nothing() {
    let mut fake = Fake::new();
    let options = ApplyOptions { check: true, ..ApplyOptions::default() };
    let mut tx = Transaction::new();
    tx.add(Table::new(table()));
    tx.apply_with(&mut fake, options).unwrap();
    assert!(fake.ruleset().tables.is_empty());
}

#[test]
fn elements_go_when_time_passes_and_give_their_chain_free() {
    let (mut fake, t) = (Fake::new(), table());
    let map = t.map(name("m"));
    applied(&mut fake, |tx| {
        tx.add(Table::new(t.clone())).add(Chain::new(t.chain(name("c"))));
        tx.add(Set::verdict_map(map.clone(), DataType::IPV4_ADDR).timeout(Duration::from_secs(60)));
        tx.add_element(&map, Element::new(ip(1)).verdict(Verdict::Goto(name("c"))));
        let long = Duration::from_secs(600);
        tx.add_element(&map, Element::new(ip(2)).timeout(long).verdict(Verdict::Drop));
    })
    .unwrap();
    fake.advance(Duration::from_secs(59));
    assert_eq!(read::elements(&mut fake, Family::IP, "t", "m").unwrap().len(), 2);
    fake.advance(Duration::from_secs(1));
    assert_eq!(read::elements(&mut fake, Family::IP, "t", "m").unwrap().len(), 1);
    applied(&mut fake, |tx| {
        tx.delete(t.chain(name("c")));
    })
    .unwrap();
}

#[test]
fn a_renamed_chain_keeps_its_rules_and_what_jumps_to_it() {
    let (mut fake, t) = (Fake::new(), table());
    let [a, b] = ["a", "b"].map(|n| t.chain(name(n)));
    applied(&mut fake, |tx| {
        tx.add(Table::new(t.clone())).add(Chain::new(a.clone())).add(Chain::new(b.clone()));
        tx.add(a.rule().then(Verdict::Jump(name("b")))).add(b.rule().then(Verdict::Drop));
    })
    .unwrap();
    let handle = read::chains(&mut fake, Family::IP, Some("t")).unwrap()[1].handle;
    let refused = applied(&mut fake, |tx| {
        tx.rename(b.clone(), handle, name("a")).rename(b.clone(), 77, name("c"));
    })
    .unwrap_err();
    let what: Vec<_> = refused.failures().iter().map(|f| (f.verb, f.object.as_str(), f.error.code)).collect();
    assert_eq!(what, [("rename", "chain ip t b", 17), ("rename", "chain ip t b", 2)]);
    applied(&mut fake, |tx| {
        tx.rename(b.clone(), handle, name("c")).add(b.rule().then(Verdict::Accept));
    })
    .unwrap();
    let chains = "\tchain a {\n\t\tjump c\n\t}\n\n\tchain c {\n\t\tdrop\n\t\taccept\n\t}\n";
    assert_eq!(fake.to_string(), format!("table ip t {{\n{chains}}}\n"));
    let gone = applied(&mut fake, |tx| {
        tx.add(b.rule().then(Verdict::Accept));
    });
    assert_eq!(codes(gone), [(Some(0), 2)]);
}

#[test]
fn rules_are_counted_as_the_operations_before_leave_them() {
    let (mut fake, t) = (Fake::new(), table());
    let c = t.chain(name("c"));
    let mark = |n| c.rule().then(lang::Match::new(expr::MetaKey::MARK, Mark(n)));
    applied(&mut fake, |tx| {
        tx.add(Table::new(t.clone())).add(Chain::new(c.clone()));
        for n in 1..4 {
            tx.add(mark(n));
        }
    })
    .unwrap();
    let handles: Vec<_> =
        read::rules(&mut fake, Family::IP, None, None).unwrap().iter().map(|rule| rule.handle).collect();
    applied(&mut fake, |tx| {
        tx.delete(RuleId { chain: c.clone(), handle: handles[0] });
        tx.add(mark(4).index(0)).replace(mark(5).handle(handles[2])).insert(mark(6).index(2));
    })
    .unwrap();
    let marks = |fake: &Fake| -> Vec<String> {
        fake.to_string()
            .lines()
            .filter_map(|l| l.trim().strip_prefix("meta mark 0x0000000"))
            .map(str::to_owned)
            .collect()
    };
    assert_eq!(marks(&fake), ["2", "4", "6", "5"]);
    let mut beyond = Transaction::new();
    beyond.flush(c.clone()).add(mark(7)).add(mark(8).index(1));
    let error = beyond.apply(&mut fake).unwrap_err();
    assert!(error.is_not_found());
    assert_eq!(
        error.to_string(),
        "operation 3: rule ip t c index 1 meta mark 0x00000008: no such index: the chain has 1 rules"
    );
    assert!(matches!(beyond.encode(ApplyOptions::default()), Err(Error::Index { rules: None, .. })));
    assert_eq!(marks(&fake).len(), 4);
}

#[test]
fn a_clone_is_a_kernel_of_its_own() {
    let mut fake = Fake::new();
    applied(&mut fake, |tx| {
        tx.add(Table::new(table()));
    })
    .unwrap();
    let before = fake.clone();
    applied(&mut fake, |tx| {
        tx.delete(table());
    })
    .unwrap();
    assert_eq!((before.ruleset().tables.len(), fake.ruleset().tables.len()), (1, 0));
}

#[test]
fn a_narrow_one_gets_a_large_change_in_pieces() {
    let (mut fake, t) = (Fake::new(), table());
    fake.limit_send(100_000);
    let map = t.map(name("m"));
    let applied = applied(&mut fake, |tx| {
        tx.add(Table::new(t.clone()));
        tx.add(Chain::base(t.chain(name("c")), ChainType::Filter, Hook::Input, Priority::FILTER));
        tx.add(t.chain(name("c")).rule().then(Vmap::new(Payload::IP_DADDR, &map.name)));
        tx.add(Set::verdict_map(map.clone(), DataType::IPV4_ADDR));
        let elements = (0..10_000_u32).map(|i| Element::new(Ipv4Addr::from(i)).verdict(Verdict::Drop));
        tx.add(Elements::new(&map, elements));
    });
    assert!(applied.unwrap().batches > 3);
    assert_eq!(read::elements(&mut fake, Family::IP, "t", "m").unwrap().len(), 10_000);
}

#[test]
fn one_element_can_be_looked_up() {
    let (mut fake, t) = (Fake::new(), table());
    let set = t.set(name("s"));
    applied(&mut fake, |tx| {
        tx.add(Table::new(t.clone())).add(Set::new(set.clone(), DataType::IPV4_ADDR));
        tx.add_element(&set, ip(1));
    })
    .unwrap();
    let mut find = |last| read::element(&mut fake, Family::IP, "t", "s", &ip(last).octets()).unwrap();
    assert!(find(1).is_some() && find(2).is_none());
}
