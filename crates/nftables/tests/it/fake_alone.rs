//! What the fake does, without a kernel to compare with.

use std::net::Ipv4Addr;
use std::time::Duration;

use sluicegate_nftables::expr::{MetaKey, ObjectKind};
use sluicegate_nftables::fake::{Fake, Fault};
use sluicegate_nftables::lang::{Counter, Expression, Log, Payload, SetUpdate, Verdict, Vmap};
use sluicegate_nftables::monitor::{Change, Event, GROUP, Monitor};
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
fn refusals(result: Result<Applied, Error>) -> Vec<(Option<usize>, Errno)> {
    result.expect_err("it is to be refused").failures().iter().map(|f| (f.operation, f.error.errno)).collect()
}

#[test]
fn all_of_a_transaction_happens_or_nothing() {
    let (mut fake, t) = (Fake::new(), table());
    let refused = applied(&mut fake, |tx| {
        tx.add(Table::new(t.clone())).delete(t.chain(name("absent"))).delete(t.set(name("absent")));
    });
    assert_eq!(refusals(refused), [(Some(1), Errno::ENOENT), (Some(2), Errno::ENOENT)]);
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
    assert_eq!(refusals(busy), [(Some(0), Errno::EBUSY), (Some(1), Errno::EBUSY)]);
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
    assert_eq!(refusals(looped), [(Some(2), Errno::EMLINK)]);
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
    let places: Vec<_> = error.failures().iter().map(|f| (f.operation, f.element, f.error.errno)).collect();
    assert_eq!(
        places,
        [
            (Some(0), Some(2), Errno::ENFILE),
            (Some(1), Some(1), Errno::EEXIST),
            (Some(2), Some(0), Errno::EINVAL)
        ]
    );
}

#[test]
fn a_transaction_for_another_generation_is_refused() {
    let mut fake = Fake::new();
    let mut tx = Transaction::new();
    tx.add(Table::new(table()));
    let options = ApplyOptions::default().generation(fake.generation());
    assert_eq!(tx.apply_with(&mut fake, options).unwrap().generation, 2);
    assert!(tx.apply_with(&mut fake, options).unwrap_err().is_generation_changed());
}

#[test]
fn a_check_applies_nothing() {
    let mut fake = Fake::new();
    let options = ApplyOptions::default().check();
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
    assert_eq!(
        read::elements(&mut fake, &TableId::new(Family::IP, name("t")).set(name("m"))).unwrap().len(),
        2
    );
    fake.advance(Duration::from_secs(1));
    assert_eq!(
        read::elements(&mut fake, &TableId::new(Family::IP, name("t")).set(name("m"))).unwrap().len(),
        1
    );
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
    let handle = read::chains(&mut fake, TableId::new(Family::IP, name("t"))).unwrap()[1].handle;
    let refused = applied(&mut fake, |tx| {
        tx.rename_handle(b.clone(), handle, name("a")).rename_handle(b.clone(), 77, name("c"));
    })
    .unwrap_err();
    let what: Vec<_> = refused.failures().iter().map(|f| (f.verb, f.object(), f.error.errno)).collect();
    let chain = "chain ip t b".to_owned();
    assert_eq!(what, [("rename", chain.clone(), Errno::EEXIST), ("rename", chain, Errno::ENOENT)]);
    applied(&mut fake, |tx| {
        tx.rename(b.clone(), name("c")).add(b.rule().then(Verdict::Accept));
    })
    .unwrap();
    let chains = "\tchain a {\n\t\tjump c\n\t}\n\n\tchain c {\n\t\tdrop\n\t\taccept\n\t}\n";
    assert_eq!(fake.to_string(), format!("table ip t {{\n{chains}}}\n"));
    let gone = applied(&mut fake, |tx| {
        tx.add(b.rule().then(Verdict::Accept));
    });
    assert_eq!(refusals(gone), [(Some(0), Errno::ENOENT)]);
}

#[test]
fn rules_are_counted_as_the_operations_before_leave_them() {
    let (mut fake, t) = (Fake::new(), table());
    let c = t.chain(name("c"));
    let mark = |n| c.rule().then(lang::Match::new(MetaKey::MARK, Mark(n)));
    applied(&mut fake, |tx| {
        tx.add(Table::new(t.clone())).add(Chain::new(c.clone()));
        for n in 1..4 {
            tx.add(mark(n));
        }
    })
    .unwrap();
    let handles: Vec<_> =
        read::rules(&mut fake, Family::IP).unwrap().iter().map(|rule| rule.handle).collect();
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
        "operation 3: rule ip t c index 1 meta mark 0x00000008: the index is out of range: the chain has 1 \
         rules"
    );
    assert!(matches!(beyond.encode(ApplyOptions::default()), Err(Error::Index { rules: None, .. })));
    assert_eq!(marks(&fake).len(), 4);
}

#[test]
fn a_single_key_of_a_set_of_intervals_is_that_key_alone() {
    let (mut fake, t) = (Fake::new(), table());
    let set = t.set(name("s"));
    applied(&mut fake, |tx| {
        tx.add(Table::new(t.clone()));
        tx.add(Set::new(set.clone(), DataType::IPV4_ADDR).flags(SetFlags::INTERVAL));
    })
    .expect("nothing is wrong");
    applied(&mut fake, |tx| _ = tx.add_element(&set, ip(1)).add_element(&set, ip(9)))
        .expect("nothing is wrong");
    assert!(fake.to_string().contains("elements = { 10.0.0.1, 10.0.0.9 }"), "{fake}");
    applied(&mut fake, |tx| _ = tx.delete_element(&set, ip(9))).expect("it is there");
    assert!(fake.to_string().contains("elements = { 10.0.0.1 }"), "{fake}");
    // Of sets that are not there, the operation itself says so.
    let absent = t.set(name("absent"));
    let refused = applied(&mut fake, |tx| _ = tx.add_element(&absent, ip(1)));
    assert_eq!(refusals(refused), [(Some(0), Errno::ENOENT)]);
}

#[test]
fn what_was_read_can_be_added_elsewhere() {
    let (mut fake, t) = (Fake::new(), table());
    applied(&mut fake, |tx| {
        tx.add(Table::new(t.clone())).add(Chain::new(t.chain(name("c"))));
        tx.add(Set::new(t.set(name("s")), DataType::IPV4_ADDR));
        tx.add(t.chain(name("c")).rule().then(Counter::default()))
            .add(t.chain(name("c")).rule().then(Verdict::Drop));
    })
    .expect("nothing is wrong");
    let mut copy = Transaction::new();
    for content in fake.ruleset().content() {
        copy.add(content.table);
        for (set, elements) in content.sets {
            let id = set.id.clone();
            copy.add(set).add(Elements::new(&id, elements));
        }
        for (chain, rules) in content.chains {
            copy.add(chain);
            rules.into_iter().for_each(|rule| _ = copy.add(rule));
        }
    }
    assert_eq!(
        copy.to_string(),
        "add table ip t\nadd set ip t s { type ipv4_addr ; }\n# add element ip t s {  }\nadd chain ip t c\n\
         add rule ip t c counter\nadd rule ip t c drop\n"
    );
    let mut other = Fake::new();
    copy.apply(&mut other).expect("nothing is wrong");
    assert_eq!(other.to_string(), fake.to_string());
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
    assert_eq!(
        read::elements(&mut fake, &TableId::new(Family::IP, name("t")).set(name("m"))).unwrap().len(),
        10_000
    );
}

/// What is too much for one datagram of 50,000 bytes, and can be sent in pieces.
fn too_much(tx: &mut Transaction, t: &TableId) {
    tx.add(Table::new(t.clone())).add(Set::new(t.set(name("large")), DataType::IPV4_ADDR));
    tx.add(Elements::new(&t.set(name("large")), (0..5_000_u32).map(Ipv4Addr::from)));
}

#[test]
fn a_large_change_that_is_only_checked_is_not_made_in_pieces() {
    let (mut fake, t) = (Fake::new(), table());
    fake.limit_send(50_000);
    let mut tx = Transaction::new();
    too_much(&mut tx, &t);
    let check = ApplyOptions::default().check();
    let error = tx.apply_with(&mut fake, check).unwrap_err();
    assert!(matches!(error, Error::Netlink(sluicegate_netlink::Error::TooBig { limit: 50_000, .. })));
    assert_eq!((fake.generation(), fake.ruleset().tables.len()), (1, 0));
    tx.apply(&mut fake).unwrap();
}

#[test]
fn where_a_piece_does_not_fit_either_nothing_is_sent() {
    let (mut fake, t) = (Fake::new(), table());
    fake.limit_send(50_000);
    let rules = applied(&mut fake, |tx| {
        tx.add(Table::new(t.clone())).add(Chain::new(t.chain(name("c"))));
        for _ in 0..2_000 {
            tx.add(t.chain(name("c")).rule().then(Counter::default()));
        }
    });
    assert!(matches!(rules, Err(Error::Netlink(sluicegate_netlink::Error::TooBig { .. }))));
    assert_eq!((fake.generation(), fake.ruleset().tables.len()), (1, 0));
}

#[test]
fn in_pieces_what_goes_and_comes_again_is_there_in_the_end() {
    let (mut fake, t) = (Fake::new(), table());
    let hits = t.object(ObjectKind::COUNTER, name("hits"));
    let flowtable = t.flowtable(name("f"));
    let make = |tx: &mut Transaction, packets| {
        tx.add(StatefulObject::new(hits.clone(), Counter { packets, bytes: 0 }.into()));
        tx.add(Flowtable::new(flowtable.clone(), Priority(0)));
        tx.add(Chain::new(t.chain(name("c"))));
    };
    applied(&mut fake, |tx| make(tx.add(Table::new(t.clone())), 1)).unwrap();
    let chain = fake.ruleset().chains[0].handle;
    fake.limit_send(50_000);
    let made = applied(&mut fake, |tx| {
        too_much(tx, &t);
        tx.delete(hits.clone()).delete(flowtable.clone()).delete(t.chain(name("c")));
        make(tx, 2);
    });
    assert!(made.unwrap().batches > 1);
    let listed = fake.ruleset();
    assert_eq!((listed.chains.len(), listed.flowtables.len()), (1, 1));
    assert!(fake.to_string().contains("counter hits"));
    assert!(listed.chains[0].handle > chain);
    // By its handle nobody can tell which name is free then; what cannot be sent at once is not sent.
    let handle = HandleId::Chain(t.clone(), listed.chains[0].handle);
    let unsure = applied(&mut fake, |tx| {
        tx.delete(handle);
        make(tx, 3);
        tx.add(Elements::new(&t.set(name("large")), (5_000..10_000_u32).map(Ipv4Addr::from)));
    });
    assert!(matches!(unsure, Err(Error::Netlink(sluicegate_netlink::Error::TooBig { .. }))));
    assert_eq!(fake.ruleset(), listed);
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
    let mut find = |last| {
        read::element(&mut fake, &TableId::new(Family::IP, name("t")).set(name("s")), &ip(last).octets())
            .unwrap()
    };
    assert!(find(1).is_some() && find(2).is_none());
}

/// All events that wait.
fn events(monitor: &mut Monitor<Fake>) -> Vec<Event> {
    std::iter::from_fn(|| Some(monitor.events().expect("events")).filter(|events| !events.is_empty()))
        .flatten()
        .collect()
}

fn listener(fake: &Fake) -> Monitor<Fake> {
    let mut socket = fake.open();
    socket.join(GROUP).expect("the group of events");
    Monitor::with_transport(socket)
}

#[test]
fn whoever_listens_is_told_of_each_commit_and_of_nothing_else() {
    let (mut fake, t) = (Fake::new(), table());
    let mut early = listener(&fake);
    applied(&mut fake, |tx| {
        tx.add(Table::new(t.clone())).add(Chain::new(t.chain(name("c"))));
        tx.add(t.chain(name("c")).rule().then(Verdict::Drop));
    })
    .unwrap();
    let mut late = listener(&fake);
    let _ = applied(&mut fake, |tx| {
        tx.delete(t.set(name("absent")));
    });
    let check = ApplyOptions::default().check();
    let mut tx = Transaction::new();
    tx.delete(t.clone()).apply_with(&mut fake.open(), check).unwrap();
    applied(&mut fake, |tx| {
        tx.delete(t.chain(name("c")));
    })
    .unwrap();
    let kinds = |events: Vec<Event>| -> Vec<String> {
        let name = |event: Event| match event {
            Event::Table(change, _) => format!("{change:?} table"),
            Event::Chain(change, _) => format!("{change:?} chain"),
            Event::Rule(change, _) => format!("{change:?} rule"),
            Event::Generation(generation) => format!("generation {}", generation.id),
            other => format!("{other:?}"),
        };
        events.into_iter().map(name).collect()
    };
    let second = ["Deleted rule", "Deleted chain", "generation 3"];
    assert_eq!(kinds(events(&mut late)), second);
    let first = ["New table", "New chain", "New(Last) rule", "generation 2"];
    assert_eq!(kinds(events(&mut early)), [&first[..], &second[..]].concat());
    assert!(fake.join(GROUP + 1).is_err());
}

#[test]
fn who_listens_and_is_too_slow_is_told_that_too() {
    let (mut fake, t) = (Fake::new(), table());
    let mut monitor = listener(&fake);
    applied(&mut fake, |tx| {
        tx.add(Table::new(t.clone()));
    })
    .unwrap();
    fake.inject(Fault::Overrun);
    applied(&mut fake, |tx| {
        tx.add(Chain::new(t.chain(name("c"))));
    })
    .unwrap();
    let seen = events(&mut monitor);
    assert!(
        matches!(&seen[..], [Event::Overrun, Event::Chain(Change::New, _), Event::Generation(_)]),
        "{seen:?}"
    );
}

#[test]
fn a_table_with_an_owner_is_nobody_elses_and_goes_with_it() {
    let fake = Fake::new();
    let [ours, kept, free] = ["ours", "kept", "free"].map(|n| TableId::new(Family::IP, name(n)));
    let mut owner = fake.open();
    applied(&mut owner, |tx| {
        tx.add(Table::new(ours.clone()).flags(TableFlags::OWNER));
        tx.add(Table::new(kept.clone()).flags(TableFlags::OWNER | TableFlags::PERSIST));
        tx.add(Table::new(free.clone()));
    })
    .unwrap();
    let mut other = fake.open();
    let refused = applied(&mut other, |tx| {
        tx.add(Chain::new(ours.chain(name("c")))).delete(kept.clone()).add(Chain::new(free.chain(name("c"))));
    });
    assert_eq!(refusals(refused), [(Some(0), Errno::EPERM), (Some(1), Errno::EPERM)]);
    // Who flushes everything leaves them alone.
    applied(&mut other, |tx| {
        tx.flush(Flush::Ruleset(Family::UNSPEC));
    })
    .unwrap();
    let tables = |fake: &Fake| -> Vec<(String, u32)> {
        fake.ruleset().tables.iter().map(|t| (t.name.to_string(), t.flags.bits())).collect()
    };
    assert_eq!(tables(&fake).len(), 2);
    drop(owner);
    assert_eq!(tables(&fake), [("kept".to_owned(), TableFlags::PERSIST.bits())]);
    applied(&mut other, |tx| {
        tx.add(Table::new(kept.clone()).flags(TableFlags::OWNER | TableFlags::PERSIST));
    })
    .unwrap();
    assert_eq!(fake.ruleset().tables[0].owner, Some(other.port()));
}

#[test]
fn what_is_injected_happens_once() {
    let (mut fake, t) = (Fake::new(), table());
    let make = |fake: &mut Fake| {
        applied(fake, |tx| {
            tx.create(Table::new(t.clone()));
        })
    };
    fake.inject(Fault::Refuse(Errno::ENOMEM));
    fake.inject(Fault::Interrupt);
    assert_eq!(refusals(make(&mut fake)), [(Some(0), Errno::ENOMEM)]);
    assert!(matches!(
        read::reset_objects(&mut fake, Family::IP),
        Err(Error::Netlink(sluicegate_netlink::Error::Interrupted(_)))
    ));
    fake.inject(Fault::Interrupt);
    assert_eq!(read::tables(&mut fake, Family::UNSPEC).unwrap(), []);
    make(&mut fake).unwrap();
    let mut theirs = Transaction::new();
    theirs.delete(t.clone());
    fake.inject(Fault::Meanwhile(theirs));
    make(&mut fake).unwrap();
    assert_eq!(refusals(make(&mut fake)), [(Some(0), Errno::EEXIST)]);
}

/// None at all means that elements stay, or that they have the set's own time.
#[test]
fn a_time_that_is_shorter_than_can_be_said_is_not_lost() {
    let (mut fake, t) = (Fake::new(), table());
    let short = Duration::from_micros(10);
    let (id, chain) = (t.set(name("s")), t.chain(name("c")));
    let mut tx = Transaction::new();
    tx.add(Table::new(t.clone()));
    tx.add(Set::new(id.clone(), DataType::MARK).timeout(short).gc_interval(short));
    let update =
        SetUpdate { timeout: Some(short), ..SetUpdate::update(&id.name, Expression::from(MetaKey::MARK)) };
    tx.add(Chain::new(chain.clone())).add(chain.rule().then(update));
    let text = tx.to_string();
    tx.apply(&mut fake).expect("the fake takes it");
    let listed = fake.ruleset().content();
    assert_eq!(listed[0].sets[0].0.timeout, Some(Duration::from_millis(1)));
    assert_eq!(listed[0].sets[0].0.gc_interval, Some(Duration::from_millis(1)));
    for text in [text, listed[0].to_string()] {
        assert_eq!(text.matches(" 1ms").count(), 3, "{text}");
    }
}

#[test]
fn what_cannot_be_sent_is_refused_and_not_left_out() {
    let t = table();
    let set = Set::new(t.set(name("s")), DataType::INET_SERVICE);
    let element = Element::new(Port(80));
    let policy = vec![("established", Duration::from_secs(9)), ("established?", Duration::from_secs(9))];
    let states = ObjectConfig::CtTimeout { protocol: Protocol::TCP, family: None, policy };
    let refused = |message: &str, fill: &dyn Fn(&mut Transaction)| {
        let error = applied(&mut Fake::new(), fill).expect_err("it is to be refused");
        assert!(matches!(error, Error::Statement { operation: 0, .. }), "{error:?}");
        assert_eq!(error.to_string(), message);
    };
    refused("operation 1: set ip t s: an element cannot carry this statement: `accept`", &|tx| {
        tx.add(set.clone().statement(Counter::default()).statement(Verdict::Accept));
    });
    refused("operation 1: element ip t s: an element cannot carry this statement: `log`", &|tx| {
        tx.add_element(&set.id, element.clone().statement(Log::default()));
    });
    refused("operation 1: ct timeout ip t o: expected state of tcp, found established?", &|tx| {
        tx.add(StatefulObject::new(t.object(ObjectKind::CT_TIMEOUT, name("o")), states.clone()));
    });
}
