//! Elements that are looked up by their values: what of a whole list has them, and what `nft get element`
//! says.

use std::net::Ipv4Addr;

use sluicegate_netlink::{NetlinkFamily, Options, Socket};
use sluicegate_nftables::lang::{Counter, Statement, Verdict};
use sluicegate_nftables::probe::{Feature, supports};
use sluicegate_nftables::*;

use crate::kernel::cases::name;

fn socket() -> Socket {
    Socket::open(NetlinkFamily::NETFILTER, &Options::default()).expect("a socket")
}

fn t() -> TableId {
    TableId::new(Family::IP, name("t"))
}

fn ip(last: u8) -> Ipv4Addr {
    Ipv4Addr::new(1, 1, 1, last)
}

fn intervals() -> (Set, Vec<Element>) {
    let list = vec![
        ip(1).into(),
        Element::range(ip(10), ip(20)),
        // It begins where the one before ends; and so do two of a single key.
        Element::range(ip(21), ip(30)),
        ip(31).into(),
        ip(32).into(),
        Element::range(ip(34), ip(63)),
        Element::range(ip(200), Ipv4Addr::BROADCAST),
    ];
    (Set::new(t().set(name("intervals")), DataType::IPV4_ADDR).flags(SetFlags::INTERVAL), list)
}

fn ranges() -> (Set, Vec<Element>) {
    let key = |low, port| (ip(low), Port(port));
    let list = vec![
        Element::range(key(1, 3), key(1, 5)),
        Element::range(key(32, 80), key(63, 80)),
        Element::range(key(7, 7), key(7, 7)),
    ];
    let types = [DataType::IPV4_ADDR, DataType::INET_SERVICE];
    (Set::new(t().set(name("ranges")), types).flags(SetFlags::INTERVAL), list)
}

fn made(sets: &[(Set, Vec<Element>)]) {
    let mut tx = Transaction::new();
    tx.add(Table::new(t()));
    for (set, list) in sets {
        tx.add(set.clone()).add(Elements::new(&set.id, list.clone()));
    }
    tx.apply(&mut socket()).expect("all of them");
}

fn found(set: &Set, wanted: impl Into<Element>) -> Option<Element> {
    read::find(&mut socket(), set, &wanted.into()).expect("it answers")
}

#[test]
fn every_key_finds_the_interval_that_it_is_in() {
    testns::netns(|| {
        let (set, list) = intervals();
        made(&[(set.clone(), list.clone())]);
        let holding = |low: Ipv4Addr, high: Ipv4Addr| {
            let bound = |key: &Key| -> Vec<u8> { key.bytes().to_vec() };
            let holds = |element: &&Element| {
                let last = bound(&element.end().unwrap_or(element.key()));
                bound(&element.key()) <= low.octets().to_vec() && high.octets().to_vec() <= last
            };
            list.iter().find(holds).cloned()
        };
        for low in 0..70 {
            assert_eq!(found(&set, ip(low)), holding(ip(low), ip(low)), "{low}");
            for high in [low, low + 1, low + 10, low + 30] {
                let wanted = Element::range(ip(low), ip(high));
                assert_eq!(found(&set, wanted), holding(ip(low), ip(high)), "{low}-{high}");
            }
        }
        assert_eq!(found(&set, Ipv4Addr::BROADCAST), list.last().cloned());
        assert_eq!(found(&set, Element::range(ip(210), Ipv4Addr::BROADCAST)), list.last().cloned());
        assert_eq!(found(&set, Element::catch_all()), None);
    });
}

#[test]
fn concatenations_maps_and_the_catch_all_are_found() {
    testns::netns(|| {
        let verdicts = Set::verdict_map(t().map(name("verdicts")), DataType::MARK).flags(SetFlags::INTERVAL);
        let list = vec![
            Element::range(Mark(3), Mark(0x300)).verdict(Verdict::Drop),
            Element::catch_all().verdict(Verdict::Accept),
        ];
        let plain = Set::new(t().set(name("plain")), [DataType::INET_PROTO, DataType::MARK]);
        let listed = Element::new((Protocol::TCP, Mark(5)));
        made(&[ranges(), (verdicts.clone(), list.clone()), (plain.clone(), vec![listed.clone()])]);
        assert_eq!(found(&verdicts, Mark(0x200)), Some(list[0].clone()));
        assert_eq!(found(&verdicts, Mark(0x301)), None, "the catch-all is found by its own name only");
        assert_eq!(found(&verdicts, Element::catch_all()), Some(list[1].clone()));
        assert_eq!(found(&plain, listed.clone()), Some(listed));
        assert_eq!(found(&plain, (Protocol::UDP, Mark(5))), None);
        let (set, list) = ranges();
        let key = |low, port| (ip(low), Port(port));
        assert_eq!(found(&set, key(1, 4)), Some(list[0].clone()));
        assert_eq!(found(&set, Element::range(key(33, 80), key(40, 80))), Some(list[1].clone()));
        assert_eq!(found(&set, Element::range(key(33, 80), key(99, 80))), None);
        assert_eq!(found(&set, Element::range(key(1, 5), key(1, 6))), None);
        assert_eq!(found(&set, key(7, 7)).as_ref().map(Element::key), Some(Key::from(key(7, 7))));
        assert_eq!(found(&set, key(8, 7)), None);
    });
}

#[test]
fn an_interval_is_found_and_its_counter_set_back() {
    testns::netns(|| {
        let (mut set, _) = intervals();
        set.statements = vec![Counter::default().into()];
        let counted = Counter { packets: 7, bytes: 700 };
        let element = Element::range(ip(10), ip(20)).statement(counted);
        made(&[(set.clone(), vec![element.clone(), Element::catch_all().statement(counted)])]);
        let reset = |wanted: Element| read::find_and_reset(&mut socket(), &set, &wanted);
        if !supports(&mut socket(), Feature::ElementReset).expect("it answers") {
            testns::lacks("ElementReset");
            assert!(reset(ip(15).into()).is_err());
            return;
        }
        let counts = |element: Option<Element>| element.map(|element| element.statements().to_vec());
        let (seven, none) = (vec![Statement::from(counted)], vec![Statement::from(Counter::default())]);
        assert_eq!(reset(Element::range(ip(15), ip(25))).expect("it answers"), None);
        assert_eq!(reset(ip(15).into()).expect("it answers"), Some(element));
        assert_eq!(counts(found(&set, ip(10))), Some(none.clone()));
        assert_eq!(counts(reset(Element::catch_all()).expect("it answers")), Some(seven));
        assert_eq!(counts(found(&set, Element::catch_all())), Some(none));
    });
}

/// What nft 1.0.6 finds is what we find. It says nothing, or another thing, of what [`read::find`] names.
#[test]
fn nft_finds_the_same() {
    if !testns::have(&["nft"]) {
        return;
    }
    testns::netns(|| {
        let (addresses, pairs) = (intervals().0, ranges().0);
        let apart = [Element::range(ip(10), ip(20)), ip(22).into(), Element::range(ip(32), ip(63))];
        made(&[(addresses.clone(), apart.to_vec()), ranges()]);
        let key = |low, port| (ip(low), Port(port));
        let mut all: Vec<(&Set, Element)> = (0..66).map(|low| (&addresses, ip(low).into())).collect();
        all.extend((0..40).map(|low| (&addresses, Element::range(ip(low), ip(low + 3)))));
        all.extend((0..9).map(|port| (&pairs, key(1, port).into())));
        all.extend([(&pairs, Element::range(key(33, 80), key(40, 80))), (&pairs, key(64, 80).into())]);
        let mut found_some = 0;
        for (set, wanted) in all {
            let nft = testns::sh(&format!("nft get element {} {{ {wanted} }} 2>&1 || true", set.id));
            let ours = found(set, wanted.clone());
            match &ours {
                Some(element) => {
                    let said = format!("elements = {{ {element} }}");
                    assert!(nft.contains(&said), "{wanted}: {said}\n{nft}");
                    found_some += 1;
                }
                // Where a range reaches out of an interval, nft says what kernels of different ages answer.
                None if wanted.end().is_some() => {}
                None => assert!(nft.contains("No such file or directory"), "{wanted}: {nft}"),
            }
        }
        assert!(found_some > 50, "{found_some}");
    });
}
