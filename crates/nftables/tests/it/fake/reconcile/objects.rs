//! Each kind of object by itself: what changes in place, and what is replaced whole with what refers to it.

use std::time::Duration;

use sluicegate_nftables::fake::Fake;
use sluicegate_nftables::lang::{Counter, Expression, Limit, Match, ObjectName, ObjectReference, Payload};
use sluicegate_nftables::lang::{Quota, TimeUnit, Verdict, Vmap};
use sluicegate_nftables::reconcile::{self, Difference, Foreign, Options};
use sluicegate_nftables::*;

use crate::fake::address;
use crate::kernel::cases::{comment, name};

fn table() -> TableId {
    TableId::new(Family::INET, name("t"))
}

fn empty() -> TableContent {
    TableContent::new(Table::new(table()))
}

/// What makes a kernel with one table one with another, which is checked on the fake.
fn difference_with(before: &TableContent, after: &TableContent, options: &Options<'_>) -> Difference {
    let mut kernel = Fake::new();
    before.to_transaction().apply(&mut kernel).unwrap();
    let wanted = std::slice::from_ref(after);
    let difference = reconcile::difference(wanted, &kernel.ruleset(), options).unwrap();
    let applied = difference.transaction.apply(&mut kernel);
    applied.unwrap_or_else(|error| panic!("{error}\n{}", difference.transaction));
    let rest = reconcile::difference(wanted, &kernel.ruleset(), options).unwrap();
    assert!(rest.is_empty(), "{}and then\n{}", difference.transaction, rest.transaction);
    difference
}

fn difference(before: &TableContent, after: &TableContent) -> Difference {
    difference_with(before, after, &Options::default())
}

/// The operations, and what is replaced whole.
fn said(difference: &Difference) -> String {
    let replaced = difference.replaced.iter().map(|replaced| format!("# {replaced}\n"));
    difference.transaction.to_string() + &replaced.collect::<String>()
}

fn base(priority: i32) -> Chain {
    Chain::base(table().chain(name("in")), ChainType::Filter, Hook::Input, Priority(priority))
}

fn regular() -> Chain {
    Chain::new(table().chain(name("c")))
}

fn accept(port: u16) -> Rule {
    table().chain(name("in")).rule().then(Match::new(Payload::TCP_DPORT, Port(port))).then(Verdict::Accept)
}

fn counted(port: u16) -> Rule {
    table()
        .chain(name("in"))
        .rule()
        .then(Match::new(Payload::TCP_DPORT, Port(port)))
        .then(Counter::default())
        .then(Verdict::Accept)
}

#[test]
fn a_table_is_replaced_for_its_comment_and_changed_in_place_to_be_dormant() {
    let with = |flags, text: Option<&str>| {
        let mut table = Table::new(table()).flags(flags);
        table.comment = text.map(comment);
        TableContent::new(table).chain(base(0), [accept(1)])
    };
    let plain = with(TableFlags::empty(), None);
    let changed = difference(&plain, &with(TableFlags::empty(), Some("new")));
    assert_eq!(
        said(&changed),
        "delete table inet t\nadd table inet t { comment \"new\" ; }\n\
         add chain inet t in { type filter hook input priority 0 ; }\nadd rule inet t in tcp dport 1 accept\n\
         # table inet t replaced: its comment differs\n"
    );
    let dormant = with(TableFlags::DORMANT, None);
    assert_eq!(said(&difference(&plain, &dormant)), "add table inet t { flags dormant ; }\n");
    assert_eq!(said(&difference(&dormant, &plain)), "add table inet t\n");
    let mut another = base(5);
    another.id = table().chain(name("more"));
    let more = plain.clone().chain(another, []);
    let said = said(&difference(&dormant, &more));
    let why = "it cannot become dormant or awake together with new base chains or devices";
    assert!(said.ends_with(&format!("# table inet t replaced: {why}\n")), "{said}");
}

#[test]
fn a_chain_gets_a_policy_in_place_and_is_replaced_for_all_else() {
    let with = |chain: Chain| empty().chain(chain, [accept(1)]);
    let changed = difference(&with(base(0)), &with(base(0).policy(Policy::Drop)));
    assert_eq!(said(&changed), "add chain inet t in { type filter hook input priority 0 ; policy drop ; }\n");
    let changed = difference(&with(base(0).policy(Policy::Drop)), &with(base(0)));
    assert_eq!(
        said(&changed),
        "add chain inet t in { type filter hook input priority 0 ; policy accept ; }\n"
    );
    let replaced = |chain: Chain| {
        let difference = difference(&with(base(0)), &with(chain));
        assert_eq!((difference.deleted.rules, difference.added.rules), (1, 1));
        difference.replaced[0].to_string()
    };
    assert_eq!(replaced(base(7)), "chain inet t in replaced: its priority differs");
    assert_eq!(replaced(base(0).comment(comment("new"))), "chain inet t in replaced: its comment differs");
    let id = table().chain(name("in"));
    let elsewhere = Chain::base(id.clone(), ChainType::Filter, Hook::Output, Priority(0));
    assert_eq!(replaced(elsewhere), "chain inet t in replaced: its hook differs");
    assert_eq!(replaced(Chain::new(id)), "chain inet t in replaced: its type differs");
}

#[test]
fn devices_of_chains_and_flowtables_come_and_go_in_place() {
    let t = TableId::new(Family::NETDEV, name("t"));
    let with = |devices: &[&str]| {
        let devices: Vec<InterfaceName> = devices.iter().map(|name| name.parse().unwrap()).collect();
        let chain = Chain::base(t.chain(name("c")), ChainType::Filter, Hook::Ingress, Priority(0));
        TableContent::new(Table::new(t.clone())).chain(chain.devices(devices), [])
    };
    assert_eq!(
        said(&difference(&with(&["a", "b"]), &with(&["b", "c"]))),
        "delete chain netdev t c { devices = { \"a\" } ; }\n\
         add chain netdev t c { type filter hook ingress \
             devices = { \"b\", \"c\" } priority 0 ; policy accept ; }\n"
    );
    let flows = |devices: &[&str], priority, flags| {
        let flowtable = Flowtable::new(table().flowtable(name("f")), Priority(priority));
        let devices = devices.iter().map(|name| name.parse().unwrap());
        let offload = table().chain(name("c")).rule().then(lang::Statement::FlowAdd(name("f")));
        empty().flowtable(flowtable.devices(devices).flags(flags)).chain(regular(), [offload])
    };
    let none = FlowtableFlags::empty();
    assert_eq!(
        said(&difference(&flows(&["a", "b"], 0, none), &flows(&["b"], 0, FlowtableFlags::COUNTER))),
        "delete flowtable inet t f { devices = { \"a\" } ; }\n\
         add flowtable inet t f { hook ingress priority filter ; devices = { \"b\" } ; counter ; }\n"
    );
    let replaced = difference(&flows(&["a"], 0, none), &flows(&["a"], 5, none));
    assert_eq!(replaced.replaced[0].to_string(), "flowtable inet t f replaced: its priority differs");
    assert_eq!((replaced.deleted.rules, replaced.added.rules), (1, 1), "the rule that refers to it");
}

#[test]
fn a_replaced_chain_takes_along_the_rules_and_elements_that_lead_to_it() {
    let with = |chain: Chain| {
        let map = table().map(name("m"));
        let jump = || Verdict::Jump(name("c"));
        let to = Element::new(address(1)).verdict(jump());
        let other = Element::new(address(2)).verdict(Verdict::Drop);
        let rules = [accept(1), counted(2), accept(3)];
        let mut rules = rules.to_vec();
        rules.insert(1, base(0).id.rule().then(jump()));
        rules.push(base(0).id.rule().then(Vmap::new(Payload::IP_SADDR, &map.name)));
        empty()
            .chain(chain, [])
            .chain(base(0), rules)
            .set(Set::verdict_map(map, DataType::IPV4_ADDR), [to, other])
    };
    assert_eq!(
        said(&difference(&with(regular()), &with(regular().comment(comment("new"))))),
        "delete rule inet t in handle 5\n\
         delete element inet t m { 10.0.0.1 }\n\
         delete chain inet t c\n\
         add chain inet t c { comment \"new\" ; }\n\
         add element inet t m { 10.0.0.1 : jump c }\n\
         insert rule inet t in position 6 jump c\n\
         # chain inet t c replaced: its comment differs\n"
    );
}

fn set_of(set: Set, elements: &[Element]) -> TableContent {
    let looked_up = Match::new(Payload::TCP_DPORT, Expression::named(&set.id.name));
    let rule = base(0).id.rule().then(looked_up).then(Verdict::Accept);
    empty().set(set, elements.to_vec()).chain(base(0), [rule])
}

fn ports() -> Set {
    Set::new(table().set(name("s")), DataType::INET_SERVICE)
}

#[test]
fn a_set_changes_its_size_and_times_in_place_and_is_replaced_for_all_else() {
    let one = [Element::new(Port(1))];
    let with = |set| set_of(set, &one);
    let sized = difference(&with(ports().size(4)), &with(ports().size(8)));
    assert_eq!(said(&sized), "add set inet t s { type inet_service ; size 8 ; }\n");
    let old = Options::default().update_sets(false);
    let sized = difference_with(&with(ports().size(4)), &with(ports().size(8)), &old);
    assert_eq!(sized.replaced[0].to_string(), "set inet t s replaced: its size differs");
    assert_eq!((sized.added.rules, sized.added.elements), (1, 1));
    let keep = Options::default().keep_sizes();
    let sized = difference_with(&with(ports().size(4)), &with(ports().size(8)), &keep);
    assert_eq!((sized.is_empty(), &sized.sizes[..]), (true, &[(ports().id, 4)][..]));
    let many: Vec<_> = (1..=5).map(|n| Element::new(Port(n))).collect();
    let sized = difference_with(&with(ports().size(4)), &set_of(ports().size(8), &many), &keep);
    assert_eq!(sized.replaced[0].to_string(), "set inet t s replaced: its size differs", "they do not fit");

    let hour = |hours: u64| with(ports().timeout(Duration::from_secs(3600 * hours)));
    // The element has the timeout of the set, so that it goes and comes with the new one.
    assert_eq!(
        said(&difference(&hour(1), &hour(2))),
        "delete element inet t s { 1 }\nadd set inet t s { type inet_service ; timeout 2h ; }\n\
         add element inet t s { 1 timeout 2h }\n"
    );

    let replaced = |set| difference(&with(ports()), &with(set)).replaced[0].to_string();
    assert_eq!(replaced(ports().comment(comment("new"))), "set inet t s replaced: its comment differs");
    assert_eq!(replaced(ports().flags(SetFlags::INTERVAL)), "set inet t s replaced: its flags differ");
    let mut typed = ports();
    typed.key = Expression::from(Payload::TCP_DPORT).into();
    assert_eq!(replaced(typed), "set inet t s replaced: what nft notes with it differs");
    assert_eq!(
        replaced(ports().statement(Counter::default())),
        "set inet t s replaced: what its elements carry differs"
    );
    let constant = |n| set_of(ports().flags(SetFlags::CONSTANT), &[Element::new(Port(n))]);
    let replaced = difference(&constant(1), &constant(2));
    assert_eq!(
        replaced.replaced[0].to_string(),
        "set inet t s replaced: it is constant, and its elements differ"
    );
}

#[test]
fn elements_differ_by_key_value_comment_and_timeout() {
    let map = Set::map(table().map(name("m")), DataType::INET_SERVICE, DataType::MARK);
    let with = |elements: &[Element]| empty().set(map.clone(), elements.to_vec());
    let to = |n, mark| Element::new(Port(n)).value(Mark(mark));
    assert_eq!(
        said(&difference(&with(&[to(1, 1), to(2, 2)]), &with(&[to(1, 1), to(2, 9), to(4, 4)]))),
        "delete element inet t m { 2 }\n\
         add element inet t m { 2 : 0x00000009, 4 : 0x00000004 }\n"
    );
    let noted = difference(&with(&[to(1, 1)]), &with(&[to(1, 1).comment(comment("new"))]));
    assert_eq!((noted.deleted.elements, noted.added.elements), (1, 1));
    let ranges = ports().flags(SetFlags::INTERVAL);
    let with = |elements: &[Element]| empty().set(ranges.clone(), elements.to_vec());
    let before = [Element::range(Port(1), Port(5)), Element::range(Port(9), Port(u16::MAX))];
    let after = [Element::range(Port(1), Port(5)), Element::range(Port(6), Port(6))];
    assert_eq!(
        said(&difference(&with(&before), &with(&after))),
        "delete element inet t s { 9-65535 }\nadd element inet t s { 6 }\n"
    );
}

#[test]
fn quotas_change_in_place_and_other_objects_are_replaced_with_their_counts() {
    let object = |config: ObjectConfig| StatefulObject::new(table().object(config.kind(), name("o")), config);
    let used = |kind| {
        let object = ObjectReference { kind, object: ObjectName::Named(name("o")) };
        base(0).id.rule().then(object)
    };
    let with = |object: StatefulObject| {
        let rule = used(object.id.kind);
        empty().object(object).chain(base(0), [rule])
    };
    let quota = |bytes| with(object(Quota { bytes, used: 0, over: true }.into()));
    assert_eq!(
        said(&difference(&quota(1 << 20), &quota(2 << 20))),
        "add quota inet t o { over 2 mbytes ; }\n"
    );
    let limit = |rate| {
        let limit = Limit { rate, per: TimeUnit::Second, burst: None, bytes: false, over: false };
        with(object(limit.into()))
    };
    assert_eq!(
        said(&difference(&limit(5), &limit(6))),
        "delete rule inet t in handle 3\ndelete limit inet t o\n\
         add limit inet t o { rate 6/second burst 5 packets ; }\nadd rule inet t in limit name \"o\"\n\
         # limit inet t o replaced: its configuration differs\n"
            .replace(" burst 5 packets", "")
    );
    let counted = with(object(Counter { packets: 3, bytes: 400 }.into()));
    assert!(difference(&counted, &with(object(Counter::default().into()))).is_empty());
    let noted = with(object(Counter::default().into()).comment(comment("new")));
    let noted = said(&difference(&counted, &noted));
    assert!(noted.contains("packets 3 bytes 400"), "{noted}");
}

#[test]
fn what_something_that_stays_refers_to_stays_too() {
    let jump = counted(1);
    let theirs = base(0).id.rule().then(Verdict::Jump(name("c"))).comment(comment("theirs"));
    let before = empty().chain(regular(), []).chain(base(0), [theirs, jump]);
    let wanted = empty().chain(base(0), [accept(2)]);
    let keep = |foreign: Foreign<'_>| match foreign {
        Foreign::Rule(rule) => rule.comment().as_deref() == Some("theirs"),
        _ => false,
    };
    let kept = difference_with(&before, &wanted, &Options::default().keep(&keep));
    assert_eq!(said(&kept), "delete rule inet t in handle 4\nadd rule inet t in tcp dport 2 accept\n");
    let gone = difference(&before, &wanted);
    assert!(said(&gone).ends_with("delete chain inet t c\nadd rule inet t in tcp dport 2 accept\n"));
}

#[test]
fn a_chain_that_elements_lead_to_is_emptied_first_where_that_is_asked_for() {
    let map = Set::verdict_map(table().map(name("m")), DataType::INET_SERVICE);
    let leads = Element::new(Port(1)).verdict(Verdict::Goto(name("c")));
    let drop = regular().id.rule().then(Verdict::Drop);
    let before = empty().chain(regular(), [drop]).set(map.clone(), [leads]);
    let wanted = empty().set(map, []);
    let mut kernel = Fake::new();
    before.to_transaction().apply(&mut kernel).unwrap();
    let options = Options::default().empty_first();
    let first = reconcile::sync(&mut kernel, std::slice::from_ref(&wanted), &options).unwrap().difference;
    assert_eq!(said(&first), "flush chain inet t c\ndelete element inet t m { 1 }\n");
    assert_eq!(first.emptied, [regular().id]);
    let second = reconcile::sync(&mut kernel, &[wanted], &options).unwrap().difference;
    assert_eq!(said(&second), "delete chain inet t c\n");
}

#[test]
fn errors_name_the_object() {
    let said = |content: TableContent| {
        reconcile::difference(&[content], &read::Ruleset::default(), &Options::default())
            .unwrap_err()
            .to_string()
    };
    let twice = empty().chain(regular(), []).chain(regular(), []);
    assert_eq!(said(twice), "chain inet t c: there is another one of this name");
    let elsewhere = TableId::new(Family::IP, name("other"));
    let elsewhere = empty().chain(Chain::new(elsewhere.chain(name("c"))), []);
    assert_eq!(said(elsewhere), "chain ip other c: it is listed in table inet t");
    let rule = accept(1);
    let misplaced = empty().chain(regular(), [rule]);
    assert_eq!(said(misplaced), "rule inet t in tcp dport 1 accept: it is listed in chain inet t c");
    let wrong = base(0).id.rule().then(Match::new(Payload::TCP_DPORT, address(1)));
    let wrong = said(empty().chain(base(0), [wrong]));
    assert!(wrong.starts_with("rule inet t in tcp dport 10.0.0.1: "), "{wrong}");
}
