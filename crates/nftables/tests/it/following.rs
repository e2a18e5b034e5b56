//! A copy of the ruleset that follows commits, and what it says of them.

use std::net::Ipv4Addr;

use sluicegate_nftables::expr::ObjectKind;
use sluicegate_nftables::fake::{Fake, Fault};
use sluicegate_nftables::lang::{BoundChain, BoundRule, Counter, Expression, Match, Payload, Verdict};
use sluicegate_nftables::monitor::{Commit, Event, Follower, GROUP, Lost, Monitor};
use sluicegate_nftables::*;

fn name(name: &str) -> Name {
    name.parse().expect("a name of the tests")
}

fn table() -> TableId {
    TableId::new(Family::INET, name("t"))
}

fn ip(last: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, last)
}

/// A kernel, and a copy that listens to it.
struct Watched {
    kernel: Fake,
    monitor: Monitor<Fake>,
    copy: Follower,
}

impl Watched {
    fn new(kernel: &Fake, within: impl Into<Within>) -> Self {
        let mut listener = kernel.open();
        listener.join(GROUP).expect("the group of events");
        let copy = Follower::read(&mut kernel.open(), within).expect("a ruleset");
        Self { kernel: kernel.open(), monitor: Monitor::with_transport(listener), copy }
    }

    fn heard(&mut self) -> Vec<Event> {
        let events = std::iter::from_fn(|| Some(self.monitor.events().expect("events")));
        events.take_while(|events| !events.is_empty()).flatten().collect()
    }

    fn take(&mut self) -> Result<Vec<Commit>, Lost> {
        let events = self.heard();
        events.into_iter().filter_map(|event| self.copy.apply(event).transpose()).collect()
    }

    /// What is said of a transaction.
    fn said(&mut self, fill: impl FnOnce(&mut Transaction)) -> String {
        let mut transaction = Transaction::new();
        fill(&mut transaction);
        transaction.apply(&mut self.kernel).expect("the kernel takes it");
        let commits = self.take().expect("the copy follows");
        let [commit] = commits.as_slice() else { panic!("one commit: {commits:?}") };
        assert_eq!(self.copy.generation(), commit.generation.id);
        let mut options = ListOptions::default();
        options.handles = true;
        let listing = |ruleset: &read::Ruleset| -> String {
            ruleset.content().iter().map(|table| table.display(&options).to_string()).collect()
        };
        assert_eq!(listing(&self.copy.ruleset()), listing(&self.kernel.ruleset()));
        // Chains of rules' own, which a listing has in their rules, and the rules in them.
        let inside = |ruleset: read::Ruleset| -> (Vec<u64>, Vec<u64>) {
            let chains = ruleset.chains.iter().map(|chain| chain.handle);
            (chains.collect(), ruleset.rules.iter().map(|rule| rule.handle).collect())
        };
        assert_eq!(inside(self.copy.ruleset()), inside(self.kernel.ruleset()));
        commit.transaction.to_string()
    }
}

/// With a chain of three rules, whose handles are 2 to 4.
fn three_rules() -> (Watched, ChainId) {
    let mut watched = Watched::new(&Fake::new(), Family::UNSPEC);
    let chain = table().chain(name("c"));
    watched.said(|tx| {
        tx.add(Table::new(table())).add(Chain::new(chain.clone()));
        for port in [1, 2, 3] {
            tx.add(accept(&chain, port));
        }
    });
    (watched, chain)
}

fn accept(chain: &ChainId, port: u16) -> Rule {
    chain.rule().then(Match::new(Payload::TCP_DPORT, Port(port))).then(Verdict::Accept)
}

#[test]
fn a_rule_is_said_with_its_place() {
    let (mut watched, c) = three_rules();
    let mut said = |fill: &dyn Fn(&mut Transaction)| watched.said(fill);
    let said_of = |place: &str, port: u16| format!("{place}tcp dport {port} accept\n");
    assert_eq!(
        said(&|tx| {
            tx.add(accept(&c, 4));
        }),
        said_of("add rule inet t c ", 4)
    );
    assert_eq!(
        said(&|tx| {
            tx.insert(accept(&c, 5));
        }),
        said_of("insert rule inet t c ", 5)
    );
    assert_eq!(
        said(&|tx| {
            tx.add(accept(&c, 6).position(3));
        }),
        said_of("add rule inet t c position 3 ", 6)
    );
    // Before the third is behind the one that was made last.
    assert_eq!(
        said(&|tx| {
            tx.insert(accept(&c, 7).position(4));
        }),
        said_of("add rule inet t c position 7 ", 7)
    );
    assert_eq!(
        said(&|tx| {
            tx.delete(RuleId { chain: c.clone(), handle: 3 });
        }),
        "delete rule inet t c handle 3\n"
    );
}

#[test]
fn a_rule_that_replaces_is_said_to_wherever_it_is() {
    for handle in [2, 3, 4] {
        let (mut watched, c) = three_rules();
        let said = watched.said(|tx| {
            tx.replace(accept(&c, 9).handle(handle));
        });
        let expected = match handle {
            // The kernel tells the place of one in the middle as that of any other.
            3 => {
                "delete rule inet t c handle 3\nadd rule inet t c position 2 tcp dport 9 accept\n".to_owned()
            }
            _ => format!("replace rule inet t c handle {handle} tcp dport 9 accept\n"),
        };
        assert_eq!(said, expected);
    }
    // One goes and one comes, which is no replacement.
    let (mut watched, c) = three_rules();
    let said = watched.said(|tx| {
        tx.delete(RuleId { chain: c.clone(), handle: 2 }).add(accept(&c, 9));
    });
    assert_eq!(said, "delete rule inet t c handle 2\nadd rule inet t c tcp dport 9 accept\n");
}

/// All of a commit's rules are in their places before the first of them is told of.
#[test]
fn rules_that_stand_behind_later_ones_find_their_places() {
    let (mut watched, c) = three_rules();
    watched.said(|tx| {
        tx.add(accept(&c, 4).position(3)).add(accept(&c, 5).position(3)).add(accept(&c, 6).position(3));
        tx.insert(accept(&c, 7)).insert(accept(&c, 8));
    });
}

#[test]
fn what_belongs_to_a_rule_is_said_in_it() {
    let (mut watched, c) = three_rules();
    let ports = Match::new(Payload::TCP_DPORT, Expression::set([Port(80), Port(443)]));
    let bound = BoundChain::jump([BoundRule::new().then(ports).then(Counter::default())]);
    let said = watched.said(|tx| {
        tx.add(c.rule().then(bound.clone()));
    });
    assert_eq!(said, "add rule inet t c jump { tcp dport { 80, 443 } counter; }\n");
    let rules = watched.kernel.ruleset().rules;
    let handle = rules.iter().rfind(|rule| rule.chain == c.name).expect("a rule").handle;
    let said = watched.said(|tx| {
        tx.delete(RuleId { chain: c.clone(), handle });
    });
    assert_eq!(said, format!("delete rule inet t c handle {handle}\n"));
}

#[test]
fn a_chain_is_renamed_where_it_is_referred_to() {
    let (mut watched, c) = three_rules();
    let t = table();
    let map = t.map(name("m"));
    watched.said(|tx| {
        tx.add(Chain::new(t.chain(name("old")))).add(c.rule().then(Verdict::Jump(name("old"))));
        tx.add(Set::verdict_map(map.clone(), DataType::IPV4_ADDR));
        tx.add_element(&map, Element::new(ip(1)).verdict(Verdict::Goto(name("old"))));
    });
    let said = watched.said(|tx| {
        tx.rename(t.chain(name("old")), name("new"));
    });
    assert_eq!(said, "rename chain inet t old new\n");
    let said = watched.said(|tx| {
        tx.add(t.chain(name("new")).rule().then(Verdict::Drop));
    });
    assert_eq!(said, "add rule inet t new drop\n");
}

#[test]
fn objects_sets_and_elements_are_said() {
    let (mut watched, _) = three_rules();
    let t = table();
    let set = t.set(name("s"));
    let said = watched.said(|tx| {
        let counter = ObjectConfig::Counter(Counter { packets: 1, bytes: 2 });
        tx.add(StatefulObject::new(t.object(ObjectKind::COUNTER, name("hits")), counter));
        tx.add(Set::new(set.clone(), DataType::IPV4_ADDR).flags(SetFlags::INTERVAL));
        tx.add_element(&set, Element::range(ip(1), ip(3))).add_element(&set, Element::new(ip(9)));
    });
    assert_eq!(
        said,
        "add counter inet t hits { packets 1 bytes 2 ; }\n\
         add set inet t s { type ipv4_addr ; flags interval ; }\n\
         add element inet t s { 10.0.0.1-10.0.0.3, 10.0.0.9 }\n"
    );
    let said = watched.said(|tx| {
        tx.delete_element(&set, Element::range(ip(1), ip(3)));
    });
    assert_eq!(said, "delete element inet t s { 10.0.0.1-10.0.0.3 }\n");
    let said = watched.said(|tx| {
        tx.delete(t.clone());
    });
    assert!(said.ends_with("delete chain inet t c\ndelete table inet t\n"), "{said}");
    assert!(watched.copy.ruleset().tables.is_empty());
}

#[test]
fn only_the_table_that_was_read_is_followed() {
    let mut watched = Watched::new(&Fake::new(), table());
    assert_eq!(
        watched.said(|tx| {
            tx.add(Table::new(table()));
        }),
        "add table inet t\n"
    );
    let mut transaction = Transaction::new();
    transaction.add(Table::new(TableId::new(Family::IP, name("other"))));
    transaction.apply(&mut watched.kernel).expect("the kernel takes it");
    let commits = watched.take().expect("the copy follows");
    assert_eq!((commits.len(), commits[0].events.len(), watched.copy.ruleset().tables.len()), (1, 0, 1));
}

/// Nobody tells that a table went with its owner's socket.
#[test]
fn a_table_that_is_made_again_is_another_one() {
    let mut watched = Watched::new(&Fake::new(), Family::UNSPEC);
    let mut owner = watched.kernel.open();
    let mut transaction = Transaction::new();
    transaction.add(Table::new(table()).flags(TableFlags::OWNER)).add(Chain::new(table().chain(name("c"))));
    transaction.apply(&mut owner).expect("the kernel takes it");
    assert_eq!(watched.take().expect("the copy follows").len(), 1);
    drop(owner);
    assert_eq!(
        watched.said(|tx| {
            tx.add(Table::new(table()));
        }),
        "add table inet t\n"
    );
    assert!(watched.copy.ruleset().chains.is_empty());
}

/// What was told before the ruleset was read, and is in it, is passed over.
#[test]
fn what_is_known_already_is_passed_over() {
    let fake = Fake::new();
    let mut watched = Watched::new(&fake, Family::UNSPEC);
    let mut transaction = Transaction::new();
    transaction.add(Table::new(table()));
    transaction.apply(&mut fake.open()).expect("the kernel takes it");
    watched.copy = Follower::read(&mut fake.open(), Family::UNSPEC).expect("a ruleset");
    assert_eq!(watched.take(), Ok(Vec::new()));
    assert_eq!(watched.copy.ruleset().tables.len(), 1);
}

#[test]
fn a_loss_is_found_and_named() {
    let apply = |watched: &mut Watched, chain: &str| {
        let mut transaction = Transaction::new();
        transaction.add(Chain::new(table().chain(name(chain))));
        transaction.apply(&mut watched.kernel).expect("the kernel takes it");
    };
    let (mut watched, _) = three_rules();
    watched.kernel.inject(Fault::Overrun);
    apply(&mut watched, "d");
    // What comes after does not fit what is known, even where it seems to.
    let events = watched.heard();
    assert_eq!(events.len(), 3);
    for event in events {
        assert_eq!(watched.copy.apply(event), Err(Lost::Overrun));
    }

    let (mut watched, _) = three_rules();
    apply(&mut watched, "d");
    let _ = watched.heard();
    apply(&mut watched, "e");
    let lost = watched.take().expect_err("a commit is missing");
    assert_eq!(lost.to_string(), "events were lost: expected generation 3, found 4");

    let (mut watched, c) = three_rules();
    let mut transaction = Transaction::new();
    transaction.delete(c.clone());
    transaction.apply(&mut watched.kernel).expect("the kernel takes it");
    let mut events = watched.heard();
    // The first rule goes twice, another one not at all.
    events[1] = events[0].clone();
    let lost = events.into_iter().find_map(|event| watched.copy.apply(event).err()).expect("it is found");
    assert_eq!(
        lost.to_string(),
        "events were lost: an event names a rule with handle 2 of chain inet t c that the copy does not have"
    );
}
