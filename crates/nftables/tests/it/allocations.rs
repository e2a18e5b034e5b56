//! What encoding costs in memory: nothing for an element, whatever it has.

use std::net::Ipv4Addr;
use std::time::Duration;

use allocation_counter::measure;
use sluicegate_nftables::lang::{Counter, Verdict};
use sluicegate_nftables::*;

const COUNT: u32 = 20_000;

/// Allocations of encoding so many elements of a set of which the transaction knows the definition.
fn allocations(set: &Set, element: impl Fn(u32) -> Element, count: u32) -> u64 {
    let mut tx = Transaction::new();
    tx.add(set.clone()).add(Elements::new(&set.id, (0..count).map(element)));
    let counted = measure(|| drop(tx.encode(ApplyOptions::default()).unwrap()));
    assert!(counted.count_total > 0, "the buffer itself is counted");
    counted.count_total
}

/// What is allowed is the growth of two buffers (bytes, tags), which double: 14 times each from one element
/// to this many, at the most.
fn assert_none_each(what: &str, set: &Set, element: impl Fn(u32) -> Element + Copy) {
    let (one, many) = (allocations(set, element, 1), allocations(set, element, COUNT));
    assert!(many <= one + 2 * 16, "{what}: {one} allocations for one element, {many} for {COUNT}");
}

fn table() -> TableId {
    TableId::new(Family::IP, "t".parse().unwrap())
}

fn address(number: u32) -> Ipv4Addr {
    Ipv4Addr::from(0x0a00_0000 + 2 * number)
}

#[test]
fn an_element_of_a_set_or_map_costs_no_allocation() {
    let map = table().map("m".parse().unwrap());
    let key = |i| Key::from((address(i), Protocol::TCP, Port(80)));
    let types = [DataType::IPV4_ADDR, DataType::INET_PROTO, DataType::INET_SERVICE];

    let set = Set::new(table().set("s".parse().unwrap()), types);
    assert_none_each("keys", &set, |i| key(i).into());
    let data = Set::map(map.clone(), types, [DataType::IPV4_ADDR, DataType::INET_SERVICE]);
    assert_none_each("values", &data, |i| Element::new(key(i)).value((address(i), Port(8080))));
    assert_none_each("ranges of values", &data, |i| {
        Element::new(key(i)).value_range((address(i), Port(1)), (address(i + 1), Port(9)))
    });
    let chain: Name = "service-AXK6CI2C-demo/web/tcp/http".parse().unwrap();
    let verdicts = Set::verdict_map(map, types);
    assert_none_each("verdicts", &verdicts, |i| Element::new(key(i)).verdict(Verdict::Goto(chain.clone())));
}

#[test]
fn an_interval_costs_no_allocation() {
    let id = table().set("s".parse().unwrap());
    let one = Set::new(id.clone(), DataType::IPV4_ADDR).flags(SetFlags::INTERVAL);
    assert_none_each("addresses", &one, |i| Element::range(address(i), address(i)));
    let host = Set::new(id.clone(), DataType::MARK).flags(SetFlags::INTERVAL);
    assert_none_each("numbers of host order", &host, |i| Element::range(Mark(4 * i), Mark(4 * i + 1)));
    let both = Set::new(id, [DataType::IPV4_ADDR, DataType::MARK]).flags(SetFlags::INTERVAL);
    assert_none_each("concatenations", &both, |i| {
        Element::range((address(i), Mark(1)), (address(i), Mark(7)))
    });
}

#[test]
fn what_few_elements_have_costs_no_allocation() {
    let set = Set::new(table().set("s".parse().unwrap()), DataType::IPV4_ADDR)
        .flags(SetFlags::TIMEOUT)
        .statement(Counter::default());
    let comment = Comment::new("demo/web").unwrap();
    assert_none_each("comments, times, counters", &set, |i| {
        Element::new(address(i))
            .comment(comment.clone())
            .timeout(Duration::from_secs(60))
            .expires(Duration::from_secs(30))
            .statement(Counter::default())
    });
}

#[test]
fn a_deletion_costs_no_allocation() {
    let set = table().set("s".parse().unwrap());
    let count = |count: u32| {
        let mut tx = Transaction::new();
        tx.delete(Elements::new(&set, (0..count).map(|i| Element::from(address(i)))));
        measure(|| drop(tx.encode(ApplyOptions::default()).unwrap())).count_total
    };
    let (one, many) = (count(1), count(COUNT));
    assert!(many <= one + 2 * 16, "{one} allocations for one element, {many} for {COUNT}");
}
