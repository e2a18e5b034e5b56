//! What the kernel refuses is led back to the operation and the element.

use std::net::Ipv4Addr;

use sluicegate_netlink::{Options, Protocol as NetlinkProtocol, Socket, Transport};
use sluicegate_nftables::lang::Verdict;
use sluicegate_nftables::*;

use crate::cases::name;

fn socket() -> Socket {
    Socket::open(NetlinkProtocol::NETFILTER, &Options::default()).expect("a socket of our own namespace")
}

fn table() -> TableId {
    TableId::new(Family::IP, name("t"))
}

#[test]
fn every_refused_operation_is_named_down_to_the_element() {
    testns::netns(|| {
        let (t, set) = (table(), table().set(name("s")));
        let mut tx = Transaction::new();
        tx.add(Table::new(t.clone())).add(Set::new(set.clone(), DataType::IPV4_ADDR).size(3));
        for i in 0..5 {
            tx.add_element(&set, Ipv4Addr::new(1, 1, 1, i));
        }
        tx.add(t.chain(name("absent")).rule().then(Verdict::Accept));
        let error = tx.apply(&mut socket()).unwrap_err();
        let said = error.to_string();
        assert!(
            said.starts_with(
                "operation 3: add element ip t s { 1.1.1.3 }: ENFILE (the set is full: its size is reached)\n\
             operation 4: add rule ip t absent: ENOENT ("
            ),
            "{said}"
        );
        let places: Vec<_> = error.failures().iter().map(|f| (f.operation, f.element)).collect();
        assert_eq!(places, [(Some(2), Some(3)), (Some(3), None)]);
        assert!(read::tables(&mut socket(), Family::IP).unwrap().is_empty(), "nothing is applied");
    });
}

#[test]
fn what_exists_what_is_missing_and_what_is_busy_is_told_apart() {
    testns::netns(|| {
        let mut socket = socket();
        let (t, c) = (table(), table().chain(name("c")));
        let mut tx = Transaction::new();
        tx.delete(&t);
        assert!(tx.apply(&mut socket).unwrap_err().is_not_found());
        let mut tx = Transaction::new();
        tx.create(Table::new(t.clone()));
        tx.apply(&mut socket).unwrap();
        assert!(tx.apply(&mut socket).unwrap_err().is_already_exists());
        let mut tx = Transaction::new();
        tx.add(Chain::new(c.clone())).add(Chain::new(t.chain(name("d"))));
        tx.add(t.chain(name("d")).rule().then(Verdict::Jump(name("c"))));
        tx.apply(&mut socket).unwrap();
        let mut tx = Transaction::new();
        tx.delete(&c);
        assert!(tx.apply(&mut socket).unwrap_err().is_busy());
    });
}

#[test]
fn a_transaction_for_an_old_generation_is_refused() {
    testns::netns(|| {
        let mut socket = socket();
        let before = read::generation(&mut socket).unwrap().id;
        let mut tx = Transaction::new();
        tx.add(Table::new(table()));
        let options = ApplyOptions { generation: Some(before), ..ApplyOptions::default() };
        let applied = tx.apply_with(&mut socket, options).unwrap();
        assert_ne!(applied.generation, before);
        assert_eq!(applied.generation, read::generation(&mut socket).unwrap().id);
        assert!(tx.apply_with(&mut socket, options).unwrap_err().is_generation_changed());
    });
}

#[test]
fn a_check_applies_nothing_and_finds_errors() {
    testns::netns(|| {
        let mut socket = socket();
        let options = ApplyOptions { check: true, ..ApplyOptions::default() };
        let mut tx = Transaction::new();
        tx.add(Table::new(table()));
        tx.apply_with(&mut socket, options).unwrap();
        assert!(read::tables(&mut socket, Family::IP).unwrap().is_empty());
        tx.delete(table().chain(name("c")));
        assert!(tx.apply_with(&mut socket, options).unwrap_err().is_not_found());
    });
}

/// A socket whose send buffer cannot grow, as without privileges.
struct Narrow(Socket, usize);

impl Transport for Narrow {
    fn send(&mut self, datagram: &[u8]) -> Result<(), sluicegate_netlink::Error> {
        assert!(datagram.len() <= self.1, "{} bytes do not fit", datagram.len());
        self.0.send(datagram)
    }

    fn receive(
        &mut self,
        buffer: &mut Vec<u8>,
        wait: sluicegate_netlink::Wait,
    ) -> Result<bool, sluicegate_netlink::Error> {
        self.0.receive(buffer, wait)
    }

    fn send_limit(&mut self, _: usize) -> usize {
        self.1
    }
}

#[test]
fn a_large_change_is_split_with_what_makes_it_reachable_last() {
    testns::netns(|| {
        let (t, map) = (table(), table().map(name("m")));
        let mut tx = Transaction::new();
        tx.add(Table::new(t.clone()));
        tx.add(Chain::base(t.chain(name("entry")), ChainType::Filter, Hook::Input, Priority::FILTER));
        tx.add(t.chain(name("entry")).rule().then(lang::Vmap::new(lang::Payload::IP_DADDR, &map.name)));
        tx.add(Set::verdict_map(map.clone(), DataType::IPV4_ADDR));
        let elements: Vec<_> =
            (0..30_000_u32).map(|i| Element::new(Ipv4Addr::from(i)).verdict(Verdict::Drop)).collect();
        tx.add(Elements::new(&map, elements));
        let mut narrow = Narrow(socket(), 200_000);
        let error = tx.apply(&mut narrow);
        let applied = error.unwrap();
        assert!(applied.batches > 5, "{applied:?}");
        let found = read::elements(&mut socket(), Family::IP, "t", "m").unwrap();
        assert_eq!(found.len(), 30_000);
        assert_eq!(read::rules(&mut socket(), Family::IP, Some("t"), None).unwrap().len(), 1);
    });
}
