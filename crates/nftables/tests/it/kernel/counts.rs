//! What the kernel counts of sets and chains by itself.

use std::net::Ipv4Addr;

use sluicegate_netlink::{NetlinkFamily, Options, Socket};
use sluicegate_nftables::lang::Counter;
use sluicegate_nftables::*;

use crate::kernel::cases::name;
use crate::kernel::needs;

fn socket() -> Socket {
    Socket::open(NetlinkFamily::NETFILTER, &Options::default()).expect("a socket")
}

#[test]
fn elements_are_counted_as_they_were_sent() {
    let counted = needs::met("counts");
    testns::netns(|| {
        let t = TableId::new(Family::IP, name("t"));
        let ip = |last| Ipv4Addr::new(10, 0, 0, last);
        let sets = [
            (Set::new(t.set(name("none")), DataType::IPV4_ADDR), vec![]),
            (Set::new(t.set(name("keys")), DataType::IPV4_ADDR), vec![ip(1).into(), ip(2).into()]),
            (
                Set::new(t.set(name("intervals")), DataType::IPV4_ADDR).flags(SetFlags::INTERVAL),
                vec![Element::range(ip(1), ip(5)), ip(9).into(), Element::range(ip(100), ip(200))],
            ),
            // The last one has no end of its own; the marker before the first of a new set makes up for it.
            (
                Set::new(t.set(name("open")), DataType::IPV4_ADDR).flags(SetFlags::INTERVAL),
                vec![Element::range(ip(1), ip(5)), Element::range(ip(100), Ipv4Addr::BROADCAST)],
            ),
            (
                Set::new(t.set(name("ranges")), [DataType::IPV4_ADDR, DataType::INET_SERVICE])
                    .flags(SetFlags::INTERVAL),
                vec![Element::range((ip(1), Port(1)), (ip(1), Port(9)))],
            ),
            // The catch-all is kept elsewhere, and not counted.
            (Set::new(t.set(name("rest")), DataType::IPV4_ADDR), vec![ip(1).into(), Element::catch_all()]),
        ];
        let mut tx = Transaction::new();
        tx.add(Table::new(t.clone()));
        for (set, elements) in &sets {
            tx.add(set.clone()).add(Elements::new(&set.id, elements.clone()));
        }
        tx.apply(&mut socket()).expect("all of them");
        for (set, elements) in sets {
            let listed = read::set(&mut socket(), &set.id).expect("it answers");
            let listed = listed.expect("it is there");
            let number = elements.iter().filter(|element| !element.is_catch_all()).count();
            assert_eq!(listed.count, counted.then_some(u32::try_from(number).expect("few")), "{}", set.id);
            assert_eq!(listed.backend.is_some_and(|backend| !backend.is_empty()), counted, "{}", set.id);
            assert!(listed.rest.is_empty(), "{}: {:?}", set.id, listed.rest);
        }
    });
}

/// iptables-nft gives each chain a count to start from where it is asked to keep them.
#[test]
fn packets_that_come_to_a_policy_are_counted_where_the_chain_was_made_so() {
    if !testns::have(&["iptables-nft-restore"]) {
        return;
    }
    testns::netns(|| {
        let saved = "*filter\n:INPUT ACCEPT [5:600]\n:FORWARD ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\nCOMMIT\n";
        let output = testns::feed(&["iptables-nft-restore", "-c"], saved);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let mut tx = Transaction::new();
        let t = TableId::new(Family::INET, name("other"));
        tx.add(Table::new(t.clone()));
        tx.add(Chain::base(t.chain(name("c")), ChainType::Filter, Hook::Input, Priority::FILTER));
        tx.apply(&mut socket()).expect("another chain");
        let chain = |family, table, chain| {
            let id = TableId::new(family, name(table)).chain(name(chain));
            read::chain(&mut socket(), &id).expect("it answers").expect("it is there")
        };
        let counted = chain(Family::IP, "filter", "INPUT").counter;
        assert_eq!(counted, Some(Counter { packets: 5, bytes: 600 }));
        assert_eq!(chain(Family::INET, "other", "c").counter, None);
    });
}
