//! Every object with every verb that nft has for it, on a real kernel. A pair that was not tried fails the
//! test.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::time::Duration;

use sluicegate_netlink::{NetlinkFamily, Options, Socket};
use sluicegate_nftables::expr::ObjectKind;
use sluicegate_nftables::lang::{Connlimit, Counter, Limit, Quota, Synproxy, TimeUnit, Verdict};
use sluicegate_nftables::probe::{Feature, supports};
use sluicegate_nftables::*;

use crate::kernel::cases::name;

/// What nft has (nft(8) of 1.1): rules are listed with their chain, elements with their set. `handle` is
/// deletion by handle; a rule is deleted by its handle alone.
const PAIRS: &[(&str, &str)] = &[
    ("ruleset", "flush list"),
    ("table", "add create delete handle destroy flush list get"),
    ("chain", "add create delete handle destroy flush rename list get"),
    ("rule", "add insert replace handle destroy list get reset"),
    ("set", "add create delete handle destroy flush list get reset"),
    ("map", "add create delete handle destroy flush list get reset"),
    ("element", "add create delete destroy list get reset"),
    ("flowtable", "add create delete handle destroy list get"),
    ("counter", "add create delete handle destroy list get reset"),
    ("quota", "add create delete handle destroy list get reset"),
    ("limit", "add create delete handle destroy list get"),
    ("synproxy", "add create delete handle destroy list get"),
    ("ct helper", "add create delete handle destroy list get"),
    ("ct timeout", "add create delete handle destroy list get"),
    ("ct expectation", "add create delete handle destroy list get"),
    ("ct count", "add create delete handle destroy list get"),
    ("tunnel", "add create delete handle destroy list get"),
    // Secmarks are refused where no security module is: what becomes of them is asked in `objects`.
];

/// A kernel, and what has been tried on it.
struct Tried {
    socket: Socket,
    pairs: BTreeSet<(String, &'static str)>,
    destroys: bool,
}

impl Tried {
    fn apply(&mut self, fill: impl FnOnce(&mut Transaction) -> &mut Transaction) {
        let mut tx = Transaction::new();
        fill(&mut tx);
        tx.apply(&mut self.socket).unwrap_or_else(|error| panic!("{error}\n{tx}"));
        self.pairs.extend(tx.operations().iter().map(pair));
    }

    /// Notes that something was read, and what it gave.
    fn read<T>(&mut self, object: &str, verb: &'static str, result: Result<T, Error>) -> T {
        self.pairs.insert((object.to_owned(), verb));
        result.unwrap_or_else(|error| panic!("{verb} {object}: {error}"))
    }

    /// `destroy`, of what is there and then of what is not.
    fn destroy(&mut self, target: impl Into<Target>) {
        let target = target.into();
        if self.destroys {
            (0..2).for_each(|_| self.apply(|tx| tx.destroy(target.clone())));
        }
    }
}

fn pair(operation: &Operation) -> (String, &'static str) {
    let set = |id: &SetId| if id.map { "map" } else { "set" }.to_owned();
    let object = match operation {
        Operation::Insert(_) | Operation::Replace(_) => "rule".to_owned(),
        Operation::Rename(_) => "chain".to_owned(),
        Operation::Flush(Flush::Ruleset(_)) => "ruleset".to_owned(),
        Operation::Flush(Flush::Set(id)) => set(id),
        Operation::Flush(other) => other.to_string(),
        Operation::Add(object) | Operation::Create(object) => match object {
            Object::Set(of) => set(&of.id),
            Object::Stateful(object) => object.id.kind.to_string(),
            _ => operation.object(),
        },
        Operation::Delete(target) | Operation::Destroy(target) => match target {
            Target::Set(id) => set(id),
            Target::Stateful(id) => id.kind.to_string(),
            Target::Handle(HandleId::Stateful(_, kind, _)) => kind.to_string(),
            _ => operation.object(),
        },
        _ => panic!("{operation} is not known here"),
    };
    let by_handle = matches!(operation, Operation::Delete(Target::Handle(_) | Target::Rule(_)));
    let verb = if by_handle { "handle" } else { operation.verb() };
    let known = PAIRS.iter().map(|(known, _)| *known).filter(|known| object.starts_with(known));
    (known.max_by_key(|known| known.len()).unwrap_or_else(|| panic!("{object}?")).to_owned(), verb)
}

fn table() -> TableId {
    TableId::new(Family::INET, name("t"))
}

fn tables(k: &mut Tried) {
    k.apply(|tx| tx.create(Table::new(table())));
    k.apply(|tx| tx.add(Table::new(table())).flush(table()));
    let all = read::tables(&mut k.socket, Family::INET);
    assert_eq!(k.read("table", "list", all).len(), 1);
    let listed = read::table(&mut k.socket, &table());
    let listed = k.read("table", "get", listed).expect("it is there");
    k.apply(|tx| tx.delete(HandleId::Table(Family::INET, listed.handle)));
    let absent = read::table(&mut k.socket, &table());
    assert_eq!(absent.expect("the kernel answers"), None);
    k.apply(|tx| tx.add(Table::new(table())));
    k.destroy(table());
    k.apply(|tx| tx.add(Table::new(table())));
    k.apply(|tx| tx.delete(table()));
    k.apply(|tx| tx.add(Table::new(table())));
    let ruleset = read::ruleset(&mut k.socket, Family::UNSPEC);
    assert_eq!(k.read("ruleset", "list", ruleset).tables.len(), 1);
    k.apply(|tx| tx.flush(Flush::Ruleset(Family::UNSPEC)));
    assert!(read::tables(&mut k.socket, Family::UNSPEC).expect("tables").is_empty());
}

fn chains_and_rules(k: &mut Tried) {
    let (c, other) = (table().chain(name("c")), table().chain(name("other")));
    k.apply(|tx| tx.add(Table::new(table())).add(Chain::new(c.clone())).create(Chain::new(other.clone())));
    let counted = || c.rule().then(Counter { packets: 3, bytes: 300 });
    k.apply(|tx| tx.add(counted()).add(c.rule().then(Verdict::Drop)).insert(c.rule().then(Verdict::Accept)));
    let listed = |k: &mut Tried| {
        let rules = read::chain_rules(&mut k.socket, &c);
        k.read("rule", "list", rules).iter().map(|rule| rule.handle).collect::<Vec<_>>()
    };
    let handles = listed(k);
    assert_eq!(handles.len(), 3);
    let packets = |rule: &read::Rule| match rule.expressions.as_slice() {
        [expr::Expr::Counter(counter)] => counter.packets,
        other => panic!("{other:?}"),
    };
    if supports(&mut k.socket, Feature::RuleReset).expect("it answers") {
        let reset = read::reset_rule(&mut k.socket, &c, handles[1]);
        assert_eq!(packets(&k.read("rule", "reset", reset).expect("it is there")), Some(3));
        let after = read::rule(&mut k.socket, &c, handles[1]);
        assert_eq!(packets(&k.read("rule", "get", after).expect("it is there")), Some(0));
    }
    let absent = read::rule(&mut k.socket, &c, 4711);
    assert_eq!(k.read("rule", "get", absent), None);
    k.apply(|tx| tx.replace(counted().handle(handles[0])));
    k.apply(|tx| tx.delete(RuleId { chain: c.clone(), handle: handles[2] }));
    k.destroy(RuleId { chain: c.clone(), handle: handles[1] });

    k.apply(|tx| tx.rename(other.clone(), name("renamed")));
    let all = read::chains(&mut k.socket, TableId::new(Family::INET, name("t")));
    assert_eq!(k.read("chain", "list", all).len(), 2);
    let renamed = read::chain(&mut k.socket, &table().chain(name("renamed")));
    let renamed = k.read("chain", "get", renamed).expect("it has the new name");
    k.apply(|tx| tx.delete(HandleId::Chain(table(), renamed.handle)));
    k.apply(|tx| tx.flush(&c));
    assert!(listed(k).is_empty());
    k.apply(|tx| tx.add(Chain::new(other.clone())));
    let listed = read::chain(&mut k.socket, &other).expect("it answers").expect("it is there");
    k.destroy(HandleId::Chain(table(), listed.handle));
    k.apply(|tx| tx.add(Chain::new(other.clone())).delete(&other));
    k.destroy(&c);
    k.apply(|tx| tx.delete(table()));
}

fn sets_and_elements(k: &mut Tried) {
    let key = Ipv4Addr::new(1, 1, 1, 1);
    let (set, map) = (table().set(name("s")), table().map(name("m")));
    let counting = |id: &SetId, data: bool| {
        let mut of = match data {
            true => Set::map(id.clone(), DataType::IPV4_ADDR, DataType::MARK),
            false => Set::new(id.clone(), DataType::IPV4_ADDR),
        };
        of.statements = vec![Counter::default().into()];
        of
    };
    for (id, data) in [(set, false), (map, true)] {
        let what = if data { "map" } else { "set" };
        let element = |n: u8| {
            let element =
                Element::new(Ipv4Addr::new(1, 1, 1, n)).statement(Counter { packets: 5, bytes: 500 });
            if data { element.value(Mark(n.into())) } else { element }
        };
        k.apply(|tx| tx.add(Table::new(table())).create(counting(&id, data)).add(counting(&id, data)));
        k.apply(|tx| tx.add_element(&id, element(1)).create(Elements::new(&id, [element(2), element(3)])));
        let packets = |element: &read::Element| match element.details().expressions.as_slice() {
            [expr::Expr::Counter(counter)] => counter.packets,
            other => panic!("{other:?}"),
        };
        if supports(&mut k.socket, Feature::ElementReset).expect("it answers") {
            let reset = read::reset_element(&mut k.socket, &id, &key.octets());
            assert_eq!(packets(&k.read("element", "reset", reset).expect("it is there")), Some(5));
            let after = read::element(&mut k.socket, &id, &key.octets());
            assert_eq!(packets(&k.read("element", "get", after).expect("it is there")), Some(0));
            let all = read::reset_elements(&mut k.socket, &id);
            assert_eq!(k.read(what, "reset", all).iter().filter_map(packets).sum::<u64>(), 10);
        }
        let absent = read::element(&mut k.socket, &id, &[9; 4]);
        assert_eq!(k.read("element", "get", absent), None);
        k.apply(|tx| tx.delete_element(&id, element(1)));
        k.destroy(Elements::new(&id, [element(2)]));
        let left = read::elements(&mut k.socket, &id);
        assert_eq!(k.read("element", "list", left).len(), if k.destroys { 1 } else { 2 });
        k.apply(|tx| tx.flush(&id));
        assert!(read::elements(&mut k.socket, &id).expect("elements").is_empty());
        let all = read::sets(&mut k.socket, TableId::new(Family::INET, name("t")));
        assert_eq!(k.read(what, "list", all).len(), 1);
        let listed = read::set(&mut k.socket, &id);
        let listed = k.read(what, "get", listed).expect("it is there");
        k.apply(|tx| tx.delete(HandleId::Set(table(), listed.handle)));
        k.pairs.insert((what.to_owned(), "handle"));
        k.apply(|tx| tx.add(counting(&id, data)));
        k.destroy(&id);
        k.apply(|tx| tx.add(counting(&id, data)));
        k.apply(|tx| tx.delete(&id));
    }
    k.apply(|tx| tx.delete(table()));
}

fn flowtables(k: &mut Tried) {
    let id = table().flowtable(name("f"));
    let made = || Flowtable::new(id.clone(), Priority(0));
    k.apply(|tx| tx.add(Table::new(table())).create(made()).add(made()));
    let all = read::flowtables(&mut k.socket, TableId::new(Family::INET, name("t")));
    assert_eq!(k.read("flowtable", "list", all).len(), 1);
    let listed = read::flowtable(&mut k.socket, &id);
    let listed = k.read("flowtable", "get", listed).expect("it is there");
    k.apply(|tx| tx.delete(HandleId::Flowtable(table(), listed.handle)));
    k.apply(|tx| tx.add(made()));
    k.apply(|tx| tx.delete(id.clone()));
    k.apply(|tx| tx.add(made()));
    k.destroy(id.clone());
    k.apply(|tx| tx.delete(table()));
}

/// One of every kind, with the family of its table.
fn objects() -> Vec<(Family, ObjectConfig)> {
    let limit = Limit { rate: 5, per: TimeUnit::Second, burst: None, bytes: false, over: false };
    let helper =
        ObjectConfig::CtHelper { helper: name("ftp"), protocol: Protocol::TCP, family: Some(Family::IP) };
    let timeout = ObjectConfig::CtTimeout {
        protocol: Protocol::UDP,
        family: Some(Family::IP),
        policy: vec![("replied", Duration::from_secs(10))],
    };
    let expectation = ObjectConfig::CtExpectation {
        protocol: Protocol::TCP,
        port: 1234,
        timeout: Duration::from_secs(10),
        size: 3,
        family: Some(Family::IP),
    };
    vec![
        (Family::IP, Counter { packets: 7, bytes: 700 }.into()),
        (Family::IP, Quota { bytes: 1000, used: 70, over: false }.into()),
        (Family::IP, limit.into()),
        (Family::IP, Synproxy { mss: Some(1460), wscale: Some(7), timestamp: true, sack_perm: true }.into()),
        (Family::IP, helper),
        (Family::IP, timeout),
        (Family::IP, expectation),
        (Family::IP, Connlimit { count: 5, over: true }.into()),
        (Family::NETDEV, Tunnel::v4(7, Ipv4Addr::LOCALHOST, Ipv4Addr::LOCALHOST).into()),
    ]
}

fn stateful(k: &mut Tried) {
    for (family, config) in objects() {
        let t = TableId::new(family, name("t"));
        let id = t.object(config.kind(), name("o"));
        let what = id.kind.to_string();
        let made = || StatefulObject::new(id.clone(), config.clone());
        k.apply(|tx| tx.add(Table::new(t.clone())).create(made()).add(made()));
        let all = read::objects(&mut k.socket, TableId::new(family, name("t")));
        assert_eq!(k.read(&what, "list", all).len(), 1);
        let listed = |k: &mut Tried| {
            let listed = read::object(&mut k.socket, &id);
            k.read(&what, "get", listed)
        };
        let before = listed(k).expect("it is there");
        if matches!(id.kind, ObjectKind::COUNTER | ObjectKind::QUOTA) {
            let reset = read::reset_object(&mut k.socket, &id);
            assert_eq!(k.read(&what, "reset", reset).as_ref(), Some(&before));
            assert_ne!(listed(k), Some(before.clone()), "{what}: what was counted is nought now");
        }
        k.apply(|tx| tx.delete(HandleId::Stateful(t.clone(), id.kind, before.handle)));
        assert_eq!(listed(k), None);
        k.apply(|tx| tx.add(made()));
        k.apply(|tx| tx.delete(id.clone()));
        k.apply(|tx| tx.add(made()));
        k.destroy(id.clone());
        k.apply(|tx| tx.delete(&t));
    }
}

#[test]
fn every_pair_that_nft_has_is_tried() {
    testns::netns(|| {
        let mut socket = Socket::open(NetlinkFamily::NETFILTER, &Options::default()).expect("a socket");
        let mut has = |feature| supports(&mut socket, feature).expect("it answers");
        let destroys = has(Feature::Destroy);
        let lacks = |object: &str, verb: &str, has: &mut dyn FnMut(Feature) -> bool| match (object, verb) {
            // Not in every kernel; the guest's has them.
            ("flowtable", _) if !has(Feature::Flowtable) => true,
            (_, "destroy") => !has(Feature::Destroy),
            ("rule", "reset") => !has(Feature::RuleReset),
            ("element" | "set" | "map", "reset") => !has(Feature::ElementReset),
            _ => false,
        };
        let mut wanted = BTreeSet::new();
        for (object, verbs) in PAIRS {
            let verbs = verbs.split(' ').filter(|verb| !lacks(object, verb, &mut has));
            wanted.extend(verbs.map(|verb| ((*object).to_owned(), verb)));
        }
        let flows = has(Feature::Flowtable);
        let mut k = Tried { socket, pairs: BTreeSet::new(), destroys };
        tables(&mut k);
        chains_and_rules(&mut k);
        sets_and_elements(&mut k);
        stateful(&mut k);
        if flows {
            flowtables(&mut k);
        }
        let missing: Vec<_> = wanted.difference(&k.pairs).collect();
        assert!(missing.is_empty(), "never tried: {missing:?}");
        let unknown: Vec<_> = k.pairs.difference(&wanted).collect();
        assert!(unknown.is_empty(), "tried, and not in the table: {unknown:?}");
    });
}

/// Kinds that come later have to find their place in the table above.
#[test]
fn every_kind_of_object_is_in_the_table() {
    let known = |kind: ObjectKind| PAIRS.iter().any(|(object, _)| *object == kind.to_string());
    let kinds = (1..=10).map(ObjectKind).filter(|kind| *kind != ObjectKind::SECMARK);
    assert_eq!(kinds.filter(|kind| !known(*kind)).collect::<Vec<_>>(), []);
    assert_eq!(objects().len(), 9);
}
