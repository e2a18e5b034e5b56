//! Every verb with every object that it knows, by text and by netlink, on the same ruleset.

use std::net::Ipv4Addr;

use sluicegate_nftables::expr::ObjectKind;
use sluicegate_nftables::lang::{Counter, Verdict, Vmap};
use sluicegate_nftables::probe::{Feature, supports};
use sluicegate_nftables::*;

use crate::kernel::cases::name;
use crate::kernel::parity::{apply, difference, listing};

struct World {
    t: TableId,
}

impl World {
    fn chain(&self, n: &str) -> ChainId {
        self.t.chain(name(n))
    }

    fn set(&self) -> SetId {
        self.t.set(name("s"))
    }

    fn map(&self) -> SetId {
        self.t.map(name("m"))
    }

    fn intervals(&self) -> SetId {
        self.t.set(name("iv"))
    }

    fn interval_map(&self) -> SetId {
        self.t.map(name("ivm"))
    }

    fn marks(&self) -> SetId {
        self.t.set(name("marks"))
    }

    fn concatenations(&self) -> SetId {
        self.t.set(name("ivc"))
    }

    fn counter(&self) -> ObjectId {
        self.t.object(ObjectKind::COUNTER, name("hits"))
    }

    /// What is there before each verb. Handles: chains 1 and 2, set 3, map 4, object 5, rules 6, 7 and 8,
    /// those of intervals 9 to 12.
    fn base(&self) -> Transaction {
        let mut tx = Transaction::new();
        tx.add(Table::new(self.t.clone()));
        tx.add(Chain::new(self.chain("c"))).add(Chain::new(self.chain("unused")));
        tx.add(Set::new(self.set(), DataType::IPV4_ADDR));
        tx.add(Elements::new(&self.set(), [1_u8, 2, 3].map(|i| Ipv4Addr::new(1, 1, 1, i))));
        tx.add(Set::verdict_map(self.map(), DataType::IPV4_ADDR));
        tx.add_element(&self.map(), Element::new(Ipv4Addr::new(1, 1, 1, 1)).verdict(Verdict::Drop));
        tx.add(StatefulObject::new(self.counter(), ObjectConfig::Counter(Counter::default())));
        for verdict in [Verdict::Accept, Verdict::Drop, Verdict::Return] {
            tx.add(self.chain("c").rule().then(verdict));
        }
        tx.add(Set::new(self.intervals(), DataType::IPV4_ADDR).flags(SetFlags::INTERVAL));
        tx.add_element(&self.intervals(), Ipv4Addr::new(9, 9, 9, 9));
        tx.add(Set::verdict_map(self.interval_map(), DataType::MARK).flags(SetFlags::INTERVAL));
        tx.add_element(&self.interval_map(), Element::new(Mark(7)).verdict(Verdict::Drop));
        let types = [DataType::MARK, DataType::IPV4_ADDR];
        tx.add(Set::new(self.concatenations(), types).flags(SetFlags::INTERVAL));
        tx.add(Set::new(self.marks(), DataType::MARK).flags(SetFlags::INTERVAL));
        tx.add_element(&self.marks(), Mark(7));
        tx
    }
}

type Verb = fn(&World, &mut Transaction);

const VERBS: &[(&str, Verb)] = &[
    ("add what is there", |w, tx| {
        tx.add(Table::new(w.t.clone()))
            .add(Chain::new(w.chain("c")))
            .add(Set::new(w.set(), DataType::IPV4_ADDR));
        tx.add_element(&w.set(), Ipv4Addr::new(1, 1, 1, 1));
    }),
    ("create", |w, tx| {
        let other = TableId::new(Family::IP6, name("other"));
        tx.create(Table::new(other)).create(Chain::new(w.chain("new")));
        let new = w.t.set(name("new"));
        tx.create(Set::new(new.clone(), DataType::MARK)).create(Elements::new(&new, [Mark(1)]));
        tx.create(StatefulObject::new(
            w.t.object(ObjectKind::COUNTER, name("more")),
            ObjectConfig::Counter(Counter::default()),
        ));
    }),
    ("insert", |w, tx| {
        tx.insert(w.chain("c").rule().then(Counter::default()));
    }),
    ("insert before", |w, tx| {
        tx.insert(w.chain("c").rule().then(Counter::default()).position(RULES[1]));
    }),
    ("add behind", |w, tx| {
        tx.add(w.chain("c").rule().then(Counter::default()).position(RULES[0]));
    }),
    ("count", |w, tx| {
        let mark = |n| w.chain("c").rule().then(lang::Match::new(expr::MetaKey::MARK, Mark(n)));
        tx.add(mark(1).index(0)).insert(mark(2).index(0)).add(mark(3).index(4)).add(mark(4).index(1));
        tx.insert(mark(5)).insert(mark(6).index(1)).add(mark(7)).insert(mark(8).index(8));
    }),
    ("replace", |w, tx| {
        tx.replace(
            w.chain("c").rule().then(Vmap::new(lang::Payload::IP_SADDR, &w.map().name)).handle(RULES[1]),
        );
    }),
    ("rename", |w, tx| {
        // The old name is the one that counts until the transaction is done.
        tx.rename(w.chain("c"), name("renamed")).rename_handle(w.chain("unused"), CHAINS[1], name("other"));
        tx.add(w.chain("c").rule().then(Verdict::Jump(name("unused"))));
    }),
    ("delete rule", |w, tx| {
        tx.delete(RuleId { chain: w.chain("c"), handle: RULES[2] });
    }),
    ("delete chain", |w, tx| {
        tx.delete(w.chain("unused"));
    }),
    ("delete set and map", |w, tx| {
        tx.delete(w.set()).delete(w.map());
    }),
    ("delete elements", |w, tx| {
        tx.delete_element(&w.set(), Ipv4Addr::new(1, 1, 1, 1))
            .delete_element(&w.set(), Ipv4Addr::new(1, 1, 1, 3));
        tx.delete_element(&w.map(), Element::new(Ipv4Addr::new(1, 1, 1, 1)).verdict(Verdict::Drop));
    }),
    ("add single keys of intervals", |w, tx| {
        tx.add_element(&w.intervals(), Ipv4Addr::new(1, 1, 1, 1));
        tx.add_element(&w.interval_map(), Element::new(Mark(0x10)).verdict(Verdict::Accept));
        tx.create(Elements::new(&w.intervals(), [Ipv4Addr::new(8, 8, 8, 8)]));
        tx.add_element(&w.concatenations(), (Mark(1), Ipv4Addr::new(1, 1, 1, 1)));
    }),
    ("delete single keys of intervals, and put wider ones in their place", |w, tx| {
        tx.delete_element(&w.intervals(), Ipv4Addr::new(9, 9, 9, 9));
        tx.delete_element(&w.interval_map(), Mark(7));
        tx.add_element(&w.interval_map(), Element::range(Mark(1), Mark(20)).verdict(Verdict::Drop));
    }),
    ("single keys of intervals that are counted for", |w, tx| {
        tx.add(w.chain("c").rule().then(Counter::default()).index(0));
        tx.add_element(&w.intervals(), Ipv4Addr::new(1, 1, 1, 1));
    }),
    ("look up in intervals", |w, tx| {
        let mark = || lang::Expression::Meta(expr::MetaKey::MARK);
        tx.add(w.chain("c").rule().then(Vmap::new(mark(), &w.interval_map().name)));
        let inner = lang::BoundRule::new().then(Vmap::new(mark(), &w.interval_map().name));
        tx.add(w.chain("c").rule().then(lang::BoundChain::jump([inner])));
        let saddr = lang::Match::new(lang::Payload::IP_SADDR, lang::Expression::named(&w.intervals().name));
        tx.add(w.chain("c").rule().then(saddr));
        let marks = lang::Expression::named(&w.marks().name);
        tx.add(w.chain("c").rule().then(lang::Match::not(mark(), marks)));
    }),
    ("single keys of a map of intervals that is named as a set", |w, tx| {
        let made = w.t.map(name("made"));
        tx.add(Set::map(made, DataType::IPV4_ADDR, DataType::MARK).flags(SetFlags::INTERVAL));
        let element = Element::new(Ipv4Addr::new(1, 1, 1, 1)).value(Mark(1));
        tx.add_element(&w.t.set(name("made")), element);
    }),
    ("delete object", |w, tx| {
        tx.delete(w.counter());
    }),
    ("delete by handle", |w, tx| {
        tx.delete(HandleId::Chain(w.t.clone(), CHAINS[1]));
        tx.delete(HandleId::Set(w.t.clone(), 3)).delete(HandleId::Set(w.t.clone(), 4));
        tx.delete(HandleId::Stateful(w.t.clone(), ObjectKind::COUNTER, 5));
    }),
    ("delete table by handle", |_, tx| {
        // The first of its namespace.
        tx.delete(HandleId::Table(Family::IP, 1));
    }),
    ("delete table", |w, tx| {
        tx.delete(&w.t);
    }),
    ("flush chain", |w, tx| {
        tx.flush(w.chain("c"));
    }),
    ("flush table", |w, tx| {
        tx.flush(&w.t);
    }),
    ("flush set and map", |w, tx| {
        tx.flush(w.set()).flush(w.map());
    }),
    ("flush ruleset of a family", |_, tx| {
        tx.flush(Flush::Ruleset(Family::IP));
    }),
    ("flush ruleset of another family", |_, tx| {
        tx.flush(Flush::Ruleset(Family::IP6));
    }),
    ("flush ruleset", |_, tx| {
        tx.flush(Flush::Ruleset(Family::UNSPEC));
    }),
];

/// The handles of the two chains, as the kernel numbers the objects of a new table.
const CHAINS: [u64; 2] = [1, 2];

/// The handles of the three rules.
const RULES: [u64; 3] = [6, 7, 8];

#[test]
fn verbs_do_by_netlink_what_they_do_by_text() {
    if !testns::have(&["nft"]) {
        return;
    }
    let world = World { t: TableId::new(Family::IP, name("t")) };
    let mut failed = Vec::new();
    for (what, verb) in VERBS {
        let (Some(by_text), Some(by_netlink)) = (testns::Netns::new(), testns::Netns::new()) else { return };
        let mut tx = Transaction::new();
        verb(&world, &mut tx);
        let output = by_text.run(|| {
            apply(&world.base()).expect("what is there before");
            testns::feed(&["nft", "-f", "-"], &tx.to_string())
        });
        let result = by_netlink.run(|| {
            apply(&world.base()).expect("what is there before");
            apply(&tx)
        });
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        if !output.status.success() || result.is_err() {
            failed.push(format!("{what}: nft said {said:?}, netlink {result:?}\n{tx}"));
            continue;
        }
        let list = || listing("nft -a --debug=netlink list ruleset");
        let (text, netlink) = (by_text.run(list), by_netlink.run(list));
        if text != netlink {
            failed.push(format!("{what}:\n{}", difference(&text, &netlink)));
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

/// nft 1.0.6 does not know the word, so there is only the kernel to ask.
#[test]
fn destroy_deletes_what_is_there_and_accepts_what_is_not() {
    testns::netns(|| {
        let mut socket = sluicegate_netlink::Socket::open(
            sluicegate_netlink::NetlinkFamily::NETFILTER,
            &sluicegate_netlink::Options::default(),
        )
        .expect("a socket");
        if !supports(&mut socket, Feature::Destroy).expect("it answers") {
            return testns::lacks("destroy");
        }
        let world = World { t: TableId::new(Family::IP, name("t")) };
        apply(&world.base()).expect("what is there before");
        for _ in 0..2 {
            let mut tx = Transaction::new();
            tx.destroy(world.set())
                .destroy(world.map())
                .destroy(world.intervals())
                .destroy(world.interval_map())
                .destroy(world.concatenations())
                .destroy(world.marks())
                .destroy(world.chain("unused"))
                .destroy(world.counter());
            apply(&tx).expect("there or not");
        }
        let listed = read::ruleset(&mut socket, TableId::new(Family::IP, name("t"))).expect("a ruleset");
        assert_eq!((listed.chains.len(), listed.sets.len(), listed.objects.len()), (1, 0, 0));
        for _ in 0..2 {
            let mut tx = Transaction::new();
            tx.destroy(&world.t);
            apply(&tx).expect("there or not");
        }
        assert!(read::tables(&mut socket, Family::IP).expect("tables").is_empty());
    });
}
