//! Random histories: a few transactions over few names, so that most of what they say meets something that is there.
//!
//! An operation is made of a few random bytes, which proptest makes fewer and smaller when it looks for the least case.
//!
//! Left out is what the kernel decides by chance or by its version: the representation of sets with `policy memory` and a size (it depends on
//! the bytes of the kernel's structures), elements that expire meanwhile, objects and expressions of modules, devices.

use std::time::Duration;

use proptest::prelude::*;
use sluicegate_nftables::expr::{self, MetaKey, ObjectKind, Register};
use sluicegate_nftables::lang::*;
use sluicegate_nftables::*;

use crate::address;
use crate::cases::name;

/// One transaction and how it is sent.
#[derive(Debug, Clone)]
pub(crate) struct Step {
    pub(crate) transaction: Transaction,
    /// Only check it.
    pub(crate) check: bool,
    /// Only for this generation, or for one that is not.
    pub(crate) bound: bool,
    pub(crate) stale: bool,
}

/// A few transactions, of which the first makes most of what the others use.
pub(crate) fn history() -> impl Strategy<Value = Vec<Step>> {
    let operations = prop::collection::vec(prop::array::uniform10(any::<u8>()), 1..14);
    let step = (operations, 0..40_u8).prop_map(|(operations, how)| {
        let mut transaction = Transaction::new();
        for bytes in operations {
            operation(&mut transaction, &mut Bytes(&bytes));
        }
        Step { transaction, check: how == 39, bound: how >= 37, stale: how == 38 }
    });
    (any::<u8>(), prop::collection::vec(step, 1..7)).prop_map(|(base, steps)| {
        let base = Step { transaction: ground(base), check: false, bound: false, stale: false };
        std::iter::once(base).chain(steps).collect()
    })
}

/// The bytes of an operation, one after the other; zeros when they are used up.
struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn next(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    fn below(&mut self, limit: u8) -> u8 {
        self.next() % limit
    }

    fn one_in(&mut self, n: u8) -> bool {
        self.below(n) == n - 1
    }

    fn pick<T: Clone>(&mut self, list: &[T]) -> T {
        list[usize::from(self.next()) % list.len()].clone()
    }
}

/// Most of the objects that operations are about. Each bit of `without` leaves something out.
fn ground(without: u8) -> Transaction {
    let mut tx = Transaction::new();
    let has = |bit: u8| without & 1 << bit == 0;
    for t in [table(0), table(1)] {
        tx.add(Table::new(t.clone()));
        if has(0) {
            for n in ["a", "b", "c"] {
                tx.add(Chain::new(t.chain(name(n))));
            }
        }
        if has(1) {
            let base = |n: &str, kind, hook| Chain::base(t.chain(name(n)), kind, hook, Priority(0));
            tx.add(base("in", ChainType::Filter, Hook::Input));
            tx.add(base("post", ChainType::Nat, Hook::Postrouting));
        }
        if has(2) {
            tx.add(object(&t, "n", 0)).add(object(&t, "q", 1));
        }
        if has(3) {
            for kind in 0..KINDS {
                tx.add(set(&t, kind, kind));
            }
        }
    }
    tx
}

fn operation(tx: &mut Transaction, bytes: &mut Bytes<'_>) {
    let t = table(if bytes.one_in(4) {
        1
    } else if bytes.one_in(30) {
        2
    } else {
        0
    });
    match bytes.below(33) {
        0 => {
            let flags = bytes.pick(&[TableFlags::empty(), TableFlags::empty(), TableFlags::DORMANT]);
            make(tx, bytes, Table::new(t).flags(flags));
        }
        1..=3 => {
            let chain = chain(&t, bytes);
            make(tx, bytes, chain);
        }
        4..=11 => rule(tx, &t, bytes),
        12 | 13 => {
            let kind = bytes.below(KINDS);
            let as_name = if bytes.one_in(8) { bytes.below(KINDS) } else { kind };
            let set = set(&t, as_name, kind);
            let set = varied(set, bytes);
            make(tx, bytes, set);
        }
        14..=21 => {
            let elements = elements(&t, bytes);
            match bytes.below(8) {
                0..=4 => make(tx, bytes, elements),
                5 | 6 => {
                    tx.delete(elements);
                }
                _ => {
                    tx.destroy(elements);
                }
            }
        }
        22 => {
            let kind = bytes.below(3);
            let object = object(&t, bytes.pick(&["n", "q"]), kind);
            make(tx, bytes, object);
        }
        23..=28 => {
            let target = target(&t, bytes);
            if bytes.one_in(3) {
                tx.destroy(target)
            } else {
                tx.delete(target)
            };
        }
        29..=31 => flush(tx, t, bytes),
        _ => {
            // Names that nothing adds: the kernel lets one transaction rename a chain and make another of that name, which then are two.
            let handle = u64::from(bytes.below(12)) + 1;
            let old = t.chain(chain_name(bytes));
            tx.rename(old, handle, name(bytes.pick(&["e", "f"])));
        }
    }
}

fn make(tx: &mut Transaction, bytes: &mut Bytes<'_>, object: impl Into<Object>) {
    if bytes.one_in(4) {
        tx.create(object)
    } else {
        tx.add(object)
    };
}

fn flush(tx: &mut Transaction, t: TableId, bytes: &mut Bytes<'_>) {
    match bytes.below(8) {
        0 => tx.flush(Flush::Ruleset(bytes.pick(&[Family::UNSPEC, Family::IP, Family::INET, Family::IP6]))),
        1 => tx.flush(t),
        2..=4 => tx.flush(t.chain(chain_name(bytes))),
        _ => tx.flush(set_id(&t, bytes.below(KINDS))),
    };
}

fn target(t: &TableId, bytes: &mut Bytes<'_>) -> Target {
    match bytes.below(9) {
        0 => t.clone().into(),
        1..=3 => t.chain(chain_name(bytes)).into(),
        4 | 5 => {
            let chain = t.chain(chain_name(bytes));
            RuleId { chain, handle: u64::from(bytes.below(60)) + 1 }.into()
        }
        6 | 7 => set_id(t, bytes.below(KINDS)).into(),
        _ => t
            .object(bytes.pick(&[ObjectKind::COUNTER, ObjectKind::QUOTA]), name(bytes.pick(&["n", "q"])))
            .into(),
    }
}

fn table(number: u8) -> TableId {
    match number {
        0 => TableId::new(Family::IP, name("t")),
        1 => TableId::new(Family::INET, name("t")),
        _ => TableId::new(Family::IP6, name("u")),
    }
}

fn chain_name(bytes: &mut Bytes<'_>) -> Name {
    name(bytes.pick(&["a", "b", "c", "d", "in", "post", "a", "b", "e"]))
}

fn chain(t: &TableId, bytes: &mut Bytes<'_>) -> Chain {
    let id = t.chain(name(bytes.pick(&["a", "b", "c", "d", "in", "post", "a", "b"])));
    if bytes.below(3) > 0 {
        return Chain::new(id);
    }
    let kind = bytes.pick(&[
        ChainType::Filter,
        ChainType::Nat,
        ChainType::Route,
        ChainType::Filter,
        ChainType::Nat,
        ChainType::Other(name("other")),
    ]);
    let hook = bytes.pick(&[Hook::Input, Hook::Postrouting, Hook::Prerouting, Hook::Forward, Hook::Output]);
    let chain = Chain::base(id, kind, hook, Priority(bytes.pick(&[0, 0, 10, -200, -199])));
    match bytes.below(4) {
        0 => chain.policy(Policy::Drop),
        1 => chain.policy(Policy::Accept),
        _ => chain,
    }
}

fn rule(tx: &mut Transaction, t: &TableId, bytes: &mut Bytes<'_>) {
    let chain = t.chain(chain_name(bytes));
    let (place, handle) = (bytes.below(12), u64::from(bytes.below(60)) + 1);
    let mut rule = chain.rule();
    rule.statements = statements(t, bytes);
    match place {
        0 => tx.insert(rule),
        1 => tx.insert(rule.position(handle)),
        2 => tx.add(rule.position(handle)),
        3 | 4 => tx.replace(rule.handle(handle)),
        5 => tx.create(rule),
        // Seldom: without such a rule in the chain nothing of the transaction is tried.
        6 if bytes.one_in(3) => {
            let rule = rule.index(u32::from(bytes.below(2)));
            if bytes.one_in(2) { tx.add(rule) } else { tx.insert(rule) }
        }
        _ => tx.add(rule),
    };
}

fn verdict(bytes: &mut Bytes<'_>) -> Verdict {
    match bytes.below(6) {
        0 => Verdict::Accept,
        1 => Verdict::Drop,
        2 => Verdict::Goto(chain_name(bytes)),
        _ => Verdict::Jump(chain_name(bytes)),
    }
}

fn statements(t: &TableId, bytes: &mut Bytes<'_>) -> Vec<Statement> {
    let saddr = || Expression::from(Payload::IP_SADDR);
    let member = |bytes: &mut Bytes<'_>| set_name(bytes.below(KINDS));
    let interval = |bytes: &mut Bytes<'_>| {
        let (a, b) = (bytes.below(16), bytes.below(16));
        if bytes.one_in(2) { (a, a) } else { (a.min(b), a.max(b)) }
    };
    match bytes.below(18) {
        0..=3 => vec![verdict(bytes).into()],
        4 => vec![Counter::default().into(), Match::new(saddr(), address(3)).into(), verdict(bytes).into()],
        5 => vec![Match::new(saddr(), Expression::named(&member(bytes))).into(), Verdict::Drop.into()],
        6 => vec![Vmap::new(saddr(), &name("verdicts")).into()],
        7 if bytes.one_in(2) => {
            let pair = Expression::concat([saddr(), Payload::TH_DPORT.into()]);
            vec![Vmap::new(pair, &name("vpairs")).into()]
        }
        7 => vec![Vmap::new(saddr(), &name("vranges")).into()],
        8 => {
            vec![Match::new(saddr(), Expression::set([address(1), address(2)])).into(), verdict(bytes).into()]
        }
        9 => {
            let of = [(address(1), verdict(bytes)), (address(2), verdict(bytes))];
            let of: Vec<_> = of.into_iter().map(|(key, verdict)| (Expression::from(key), verdict)).collect();
            vec![Vmap::new(saddr(), of).into()]
        }
        10 => vec![Match::new(MetaKey::MARK, saddr().map(&member(bytes))).into()],
        11 => vec![bytes.pick(&[
            Statement::Masquerade(PortNat::default()),
            Statement::Snat(Nat::to(address(1))),
            Statement::Dnat(Nat::to(address(1))),
            Statement::Reject(Reject::Default),
        ])],
        12 => {
            let kind = bytes.pick(&[ObjectKind::COUNTER, ObjectKind::QUOTA]);
            let object = if bytes.one_in(2) {
                ObjectName::Map(Box::new(saddr()), member(bytes))
            } else {
                ObjectName::Named(name(bytes.pick(&["n", "q"])))
            };
            vec![ObjectReference { kind, object }.into()]
        }
        13 => {
            let update = SetUpdate::update(&member(bytes), saddr());
            vec![
                match bytes.below(4) {
                    0 => SetUpdate { timeout: Some(Duration::from_secs(7200)), ..update },
                    1 => SetUpdate { statements: vec![Counter::default().into()], ..update },
                    2 => SetUpdate { value: Some(MetaKey::MARK.into()), ..update },
                    _ => update,
                }
                .into(),
            ]
        }
        16 => {
            let of: Vec<_> = (0..3).map(|_| interval(bytes)).collect();
            let of = of.into_iter().map(|(low, high)| Expression::range(address(low), address(high)));
            vec![Match::new(saddr(), Expression::set(of)).into()]
        }
        17 => {
            let of: Vec<_> = (0..2).map(|_| (interval(bytes), verdict(bytes))).collect();
            let key = |(low, high)| Expression::range(address(low), address(high));
            let of: Vec<_> = of.into_iter().map(|(of, verdict)| (key(of), verdict)).collect();
            vec![Vmap::new(saddr(), of).into()]
        }
        14 => vec![Statement::Raw(raw(t, bytes))],
        _ => vec![
            Match::new(MetaKey::MARK, saddr().map(&name("marks"))).into(),
            Match::new(saddr(), Expression::named(&name("addresses"))).into(),
        ],
    }
}

/// Expressions that are wrong in one way or another.
fn raw(t: &TableId, bytes: &mut Bytes<'_>) -> Vec<expr::Expr> {
    let sreg = Register(bytes.pick(&[1, 8, 9, 0, 23, 30]));
    let value = |len: u8| expr::Data::Value(vec![1; usize::from(len)]);
    let chain = chain_name(bytes);
    match bytes.below(7) {
        0 => vec![expr::Cmp { sreg, op: expr::CmpOp::EQ, data: value(bytes.below(30)) }.into()],
        1 => vec![expr::Unknown { name: name("nothing"), data: Vec::new() }]
            .into_iter()
            .map(expr::Expr::Unknown)
            .collect(),
        2 => vec![
            expr::Immediate { dreg: Register(0), data: expr::Data::Verdict(Verdict::Jump(chain)) }.into(),
            expr::Immediate { dreg: sreg, data: value(bytes.below(30)) }.into(),
            expr::Cmp { sreg, op: expr::CmpOp::EQ, data: value(bytes.below(20)) }.into(),
        ],
        3 => vec![expr::Immediate { dreg: sreg, data: expr::Data::Verdict(Verdict::Jump(chain)) }.into()],
        4 => vec![expr::Immediate { dreg: Register(0), data: value(4) }.into()],
        5 => {
            let set = set_id(t, bytes.below(KINDS)).name;
            let immediate = expr::Immediate { dreg: Register(1), data: value(bytes.pick(&[4, 8, 16])) };
            let dreg = bytes.pick(&[None, Some(Register(0)), Some(Register(1)), Some(Register(23))]);
            let flags = bytes.pick(&[None, Some(expr::LookupFlags::INVERT)]);
            vec![immediate.into(), expr::Lookup { set, sreg: Register(1), dreg, set_id: None, flags }.into()]
        }
        _ => vec![expr::Immediate { dreg: Register(0), data: expr::Data::Code(expr::VerdictCode(3)) }.into()],
    }
}

fn object(t: &TableId, n: &str, kind: u8) -> StatefulObject {
    let config = match kind {
        0 => ObjectConfig::Counter(Counter::default()),
        1 => ObjectConfig::Quota(Quota { bytes: 1 << 20, used: 0, over: true }),
        _ => ObjectConfig::Quota(Quota { bytes: 1 << 30, used: 0, over: false }),
    };
    StatefulObject::new(t.object(config.kind(), name(n)), config)
}

const NAMES: [&str; 16] = [
    "addresses",
    "marks",
    "verdicts",
    "ranges",
    "vranges",
    "pairs",
    "counted",
    "timed",
    "grows",
    "things",
    "vpairs",
    "tranges",
    "twice",
    "ports",
    "frugal",
    "routes",
];
const KINDS: u8 = 16;

fn set_name(kind: u8) -> Name {
    name(NAMES[usize::from(kind)])
}

fn set_id(t: &TableId, kind: u8) -> SetId {
    if [1, 2, 4, 9, 10, 15].contains(&kind) { t.map(set_name(kind)) } else { t.set(set_name(kind)) }
}

/// A set of some kind under the name that usually is of that kind.
fn set(t: &TableId, as_name: u8, kind: u8) -> Set {
    let mut id = set_id(t, kind);
    id.name = set_name(as_name);
    let address = DataType::IPV4_ADDR;
    match kind {
        0 => Set::new(id, address).size(3),
        1 => Set::map(id, address, DataType::MARK),
        2 => Set::verdict_map(id, address),
        3 => Set::new(id, address).flags(SetFlags::INTERVAL).size(4),
        4 => Set::verdict_map(id, address).flags(SetFlags::INTERVAL),
        5 => Set::new(id, [address, DataType::INET_SERVICE]).flags(SetFlags::INTERVAL),
        6 => {
            let mut set = Set::new(id, address).flags(SetFlags::DYNAMIC);
            set.statements = vec![Counter::default().into()];
            set
        }
        7 => Set::new(id, address).timeout(Duration::from_secs(36_000)),
        8 => Set::new(id, address).flags(SetFlags::DYNAMIC | SetFlags::TIMEOUT),
        9 => Set::object_map(id, address, ObjectKind::COUNTER),
        10 => Set::verdict_map(id, [address, DataType::INET_SERVICE]).flags(SetFlags::INTERVAL).size(3),
        11 => Set::new(id, address).flags(SetFlags::INTERVAL).timeout(Duration::from_secs(36_000)),
        12 => {
            let mut set = Set::new(id, address).flags(SetFlags::DYNAMIC).size(4);
            set.statements = vec![Counter::default().into(), Statement::Last];
            set
        }
        13 => Set::new(id, DataType::INET_SERVICE),
        14 => Set { policy: Some(SetPolicy::Memory), ..Set::new(id, address) },
        _ => Set::map(id, address, address).flags(SetFlags::INTERVAL),
    }
}

/// Something about a set that may not fit the one that is there, or not go together.
fn varied(mut set: Set, bytes: &mut Bytes<'_>) -> Set {
    match bytes.below(10) {
        0 => set.flags |= SetFlags::CONSTANT,
        1 => set.size = Some(2),
        2 => set.size = None,
        3 => set.flags |= SetFlags::INTERVAL,
        4 => set.timeout = Some(Duration::from_secs(18_000)),
        5 => set.flags |= SetFlags::DYNAMIC,
        6 => set.statements = vec![Counter::default().into()],
        _ => {}
    }
    set
}

fn elements(t: &TableId, bytes: &mut Bytes<'_>) -> Elements {
    let kind = bytes.below(KINDS);
    let of = if bytes.one_in(12) { bytes.below(KINDS) } else { kind };
    let count = bytes.below(3) + 1;
    let list: Vec<Element> = (0..count).map(|_| element(of, bytes)).collect();
    Elements::new(&set_id(t, kind), list)
}

fn element(kind: u8, bytes: &mut Bytes<'_>) -> Element {
    let (a, b) = (bytes.below(16), bytes.below(16));
    let (low, high) = if bytes.one_in(30) { (a.max(b), a.min(b)) } else { (a.min(b), a.max(b)) };
    let element = match kind {
        _ if bytes.one_in(12) => Element::catch_all(),
        3 | 4 | 11 | 15 => Element::range(address(low), address(high)),
        13 => Element::new(Port(u16::from(a))),
        5 | 10 => {
            let port = |n: u8| Port(u16::from(n));
            let (p, q) = (bytes.below(8), bytes.below(8));
            Element::range((address(low), port(p.min(q))), (address(high), port(p.max(q))))
        }
        _ => Element::new(address(a)),
    };
    match kind {
        1 => element.value(Mark(u32::from(b % 2))),
        2 | 4 | 10 => element.verdict(verdict(bytes)),
        15 if b == 0 => element.value(Port(1)),
        15 => element.value(address(b)),
        6 | 12 if b == 0 => element.statement(Counter { packets: 3, bytes: 4 }),
        7 | 8 | 11 if b < 3 => element.timeout(Duration::from_secs(7200 * (1 + u64::from(b)))),
        7 | 11 if b < 6 => element.expires(Duration::from_secs(18_000 * u64::from(b - 2))),
        9 => element.object(name(bytes.pick(&["n", "n", "q"]))),
        _ => element,
    }
}
