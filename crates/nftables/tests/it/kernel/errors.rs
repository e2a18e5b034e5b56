//! What the kernel refuses is led back to the operation and the element.

use std::net::Ipv4Addr;

use sluicegate_netlink::{Errno, NetlinkFamily, Options, Socket, Transport};
use sluicegate_nftables::lang::{BoundChain, BoundRule, Verdict};
use sluicegate_nftables::*;

use crate::kernel::cases::name;

fn socket() -> Socket {
    Socket::open(NetlinkFamily::NETFILTER, &Options::default()).expect("a socket of our own namespace")
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
        let blamed: Vec<_> =
            error.failures().iter().map(|f| f.attribute.as_ref().unwrap().to_string()).collect();
        assert_eq!(blamed, ["NFTA_SET_ELEM_LIST_ELEMENTS/NFTA_LIST_ELEM[3]", "NFTA_RULE_CHAIN"]);
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
fn a_chain_that_is_not_there_cannot_be_renamed() {
    testns::netns(|| {
        let (t, c) = (table(), table().chain(name("c")));
        let mut tx = Transaction::new();
        tx.add(Table::new(t.clone())).add(Chain::new(c.clone())).rename(c.clone(), name("d"));
        assert!(matches!(
            tx.encode(ApplyOptions::default()),
            Err(Error::Rename { operation: 2, asked: false, .. })
        ));
        let error = tx.apply(&mut socket()).unwrap_err();
        assert!(error.is_not_found());
        assert_eq!(
            error.to_string(),
            "operation 3: rename chain ip t c: the kernel has no such chain; one that the same transaction \
             adds has no handle yet"
        );
        assert!(read::tables(&mut socket(), Family::IP).unwrap().is_empty(), "nothing is applied");
    });
}

#[test]
fn a_chain_of_a_rule_is_of_that_rule_alone() {
    testns::netns(|| {
        let mut socket = socket();
        let (t, c) = (table(), table().chain(name("c")));
        let mut tx = Transaction::new();
        tx.add(Table::new(t.clone())).add(Chain::new(c.clone()));
        tx.add(c.rule().then(BoundChain::jump([BoundRule::new().then(Verdict::Accept)])));
        tx.apply(&mut socket).unwrap();
        let chains = read::chains(&mut socket, TableId::new(Family::IP, name("t"))).unwrap();
        let bound = chains.iter().find(|chain| chain.flags.contains(read::ChainFlags::BINDING)).unwrap();
        let bound = t.chain(bound.name.clone());
        let mut refused = |what: &str, fill: &dyn Fn(&mut Transaction)| {
            let mut tx = Transaction::new();
            fill(&mut tx);
            let error = tx.apply(&mut socket).expect_err(what);
            assert_eq!(error.failures()[0].operation, Some(0), "{what}: {error}");
            (error.failures()[0].error.errno, error.to_string())
        };
        // Nobody else adds a rule to it, jumps to it, empties it or deletes it.
        let (code, said) = refused("a rule", &|tx| {
            tx.add(bound.rule().then(Verdict::Drop));
        });
        assert_eq!(code, Errno::EOPNOTSUPP, "{said}");
        assert!(said.contains("the chain belongs to another rule"), "{said}");
        let (code, said) = refused("a jump", &|tx| {
            tx.add(c.rule().then(Verdict::Jump(bound.name.clone())));
        });
        assert_eq!(code, Errno::EINVAL, "{said}");
        let (code, said) = refused("a deletion", &|tx| {
            tx.delete(&bound);
        });
        assert!([Errno::EBUSY, Errno::EOPNOTSUPP].contains(&code), "{said}");

        // It goes with its rule.
        let rule = read::chain_rules(&mut socket, &TableId::new(Family::IP, name("t")).chain(name("c")))
            .unwrap()
            .remove(0);
        let mut tx = Transaction::new();
        tx.delete(RuleId { chain: c.clone(), handle: rule.handle });
        tx.apply(&mut socket).unwrap();
        assert_eq!(read::chains(&mut socket, TableId::new(Family::IP, name("t"))).unwrap().len(), 1);
        assert!(read::rules(&mut socket, TableId::new(Family::IP, name("t"))).unwrap().is_empty());
    });
}

#[test]
fn what_is_refused_in_a_chain_of_a_rule_leads_back_to_the_rule() {
    testns::netns(|| {
        let (t, c) = (table(), table().chain(name("c")));
        let mut tx = Transaction::new();
        tx.add(Table::new(t.clone())).add(Chain::new(c.clone())).add(c.rule());
        tx.add(c.rule().then(BoundChain::jump([
            BoundRule::new().then(Verdict::Accept),
            BoundRule::new().then(Verdict::Jump(name("absent"))),
        ])));
        let error = tx.apply(&mut socket()).unwrap_err();
        let failure = &error.failures()[0];
        assert_eq!((failure.operation, failure.error.errno), (Some(3), Errno::ENOENT), "{error}");
        assert!(error.to_string().starts_with("operation 4: add rule ip t c: ENOENT"), "{error}");

        // The kernel has no such chains within each other: this is said before anything is sent.
        let inner = BoundChain::goto([BoundRule::new().then(Verdict::Drop)]);
        let mut tx = Transaction::new();
        tx.add(c.rule().then(BoundChain::jump([BoundRule::new().then(inner)])));
        let said = tx.apply(&mut socket()).unwrap_err().to_string();
        assert!(
            said.contains("a chain inside a rule cannot contain another one: `goto { drop; }`"),
            "{said}"
        );
    });
}

#[test]
fn the_expression_that_is_refused_is_named() {
    testns::netns(|| {
        let (t, c) = (table(), table().chain(name("c")));
        let mut tx = Transaction::new();
        tx.add(Table::new(t.clone())).add(Chain::new(c.clone()));
        let port = lang::Match::new(lang::Payload::TCP_DPORT, Port(22));
        tx.add(c.rule().then(port).then(lang::Counter::default()).then(Verdict::Goto(name("absent"))));
        let error = tx.apply(&mut socket()).unwrap_err();
        let attribute = error.failures()[0].attribute.as_ref().unwrap();
        // `tcp dport 22` is four expressions, the counter a fifth.
        assert_eq!(attribute.expression(), Some((5, "immediate")));
        assert_eq!(attribute.to_string(), "NFTA_RULE_EXPRESSIONS/NFTA_LIST_ELEM[5]");
        assert!(error.to_string().ends_with(" at expression 6 (immediate)"), "{error}");
    });
}

#[test]
fn a_transaction_for_an_old_generation_is_refused() {
    testns::netns(|| {
        let mut socket = socket();
        let before = read::generation(&mut socket).unwrap().id;
        let mut tx = Transaction::new();
        tx.add(Table::new(table()));
        let options = ApplyOptions::default().generation(before);
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
        let options = ApplyOptions::default().check();
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
        let found =
            read::elements(&mut socket(), &TableId::new(Family::IP, name("t")).set(name("m"))).unwrap();
        assert_eq!(found.len(), 30_000);
        assert_eq!(read::rules(&mut socket(), TableId::new(Family::IP, name("t"))).unwrap().len(), 1);
    });
}
