//! Rules in every place, of statements that refer to what may be there.

use sluicegate_nftables::expr::{MetaKey, PayloadBase};
use sluicegate_nftables::lang::*;
use sluicegate_nftables::*;

use super::chains::chain_name;
use super::objects::{KINDS_OF_OBJECTS, NAMES, limit};
use super::sets::{ALL, Carried, Data, KINDS, Keys, set_name};
use super::{Bytes, raw, seconds};
use crate::fake::address;
use crate::kernel::cases::name;

pub(super) fn rule(tx: &mut Transaction, t: &TableId, bytes: &mut Bytes<'_>) {
    let chain = t.chain(chain_name(bytes));
    let (place, handle) = (bytes.below(12), bytes.handle());
    let mut rule = chain.rule();
    rule.comment = bytes.comment();
    rule.statements = statements(t, bytes).into();
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

pub(super) fn verdict(bytes: &mut Bytes<'_>) -> Verdict {
    match bytes.below(8) {
        0 => Verdict::Accept,
        1 => Verdict::Drop,
        2 => Verdict::Goto(chain_name(bytes)),
        3 => bytes.pick(&[Verdict::Return, Verdict::Continue]),
        _ => Verdict::Jump(chain_name(bytes)),
    }
}

/// Four bytes that every family has.
fn word(family: Family) -> Expression {
    match family {
        Family::IP | Family::INET => Payload::IP_SADDR.into(),
        Family::ARP => Payload::ARP_SADDR_IP.into(),
        _ => RawPayload { base: PayloadBase::NETWORK, offset: 96, bits: 32 }.into(),
    }
}

/// What is looked up in a set of this kind.
fn key(family: Family, keys: Keys) -> Expression {
    let port = || RawPayload { base: PayloadBase::TRANSPORT, offset: 16, bits: 16 };
    let v6 = || Expression::from(RawPayload { base: PayloadBase::NETWORK, offset: 64, bits: 128 });
    match keys {
        Keys::Address | Keys::Typeof => word(family),
        Keys::Port => port().into(),
        Keys::Protocol => MetaKey::L4PROTO.into(),
        Keys::Mark => MetaKey::MARK.into(),
        Keys::Pair => Expression::concat([word(family), port().into()]),
        Keys::Triple => Expression::concat([word(family), port().into(), MetaKey::MARK.into()]),
        Keys::Long => Expression::concat([v6(), v6(), v6(), v6()]),
    }
}

fn statements(t: &TableId, bytes: &mut Bytes<'_>) -> Vec<Statement> {
    let saddr = || word(t.family);
    match bytes.below(24) {
        0..=3 => vec![verdict(bytes).into()],
        4 => vec![counted(bytes).into(), Match::new(saddr(), address(3)).into(), verdict(bytes).into()],
        5..=8 => vec![looked_up(t, bytes)],
        9 => {
            let member = Expression::set([address(1), address(2)]);
            vec![Match::new(saddr(), member).into(), verdict(bytes).into()]
        }
        10 => {
            let of = [(address(1), verdict(bytes)), (address(2), verdict(bytes))];
            let of: Vec<_> = of.into_iter().map(|(key, verdict)| (Expression::from(key), verdict)).collect();
            vec![Vmap::new(saddr(), of).into()]
        }
        11 => {
            let of: Vec<_> = (0..3).map(|_| interval(bytes)).collect();
            vec![Match::new(saddr(), Expression::set(of)).into()]
        }
        12 => {
            let of: Vec<_> = (0..2).map(|_| (interval(bytes), verdict(bytes))).collect();
            vec![Vmap::new(saddr(), of).into()]
        }
        13 => vec![statement_of_hooks(t.family, bytes)],
        14 | 15 => vec![object(t, bytes)],
        16 | 17 => vec![update(t, bytes)],
        18 => vec![Statement::Raw(raw::wrong(t, bytes))],
        19 | 20 => vec![Statement::Raw(raw::any(t.family, bytes))],
        21 => vec![bound(t, bytes, 0)],
        22 => vec![state(t.family, bytes), verdict(bytes).into()],
        _ => vec![
            Match::new(MetaKey::MARK, saddr().map(&name("marks"))).into(),
            Match::new(saddr(), Expression::named(&name("addresses"))).into(),
        ],
    }
}

fn interval(bytes: &mut Bytes<'_>) -> Expression {
    let (a, b) = (bytes.below(16), bytes.below(16));
    let (low, high) = if bytes.one_in(2) { (a, a) } else { (a.min(b), a.max(b)) };
    Expression::range(address(low), address(high))
}

/// A set or map used as it is meant to be, or not.
fn looked_up(t: &TableId, bytes: &mut Bytes<'_>) -> Statement {
    let kind = usize::from(bytes.below(KINDS));
    let other = usize::from(bytes.below(KINDS));
    let of = &ALL[if bytes.one_in(10) { other } else { kind }];
    let (set, key) = (name(ALL[kind].name), key(t.family, of.key));
    match of.data {
        Data::Verdict => Vmap::new(key, &set).into(),
        Data::Mark => Match::new(MetaKey::MARK, key.map(&set)).into(),
        Data::Address | Data::Range => Match::new(word(t.family), key.map(&set)).into(),
        Data::Object(of) => ObjectReference { kind: of, object: ObjectName::Map(Box::new(key), set) }.into(),
        Data::None | Data::Pair if bytes.one_in(8) => Match::not(key, Expression::named(&set)).into(),
        Data::None | Data::Pair => Match::new(key, Expression::named(&set)).into(),
    }
}

/// What works at some hooks only. Bridges have modules of their own for these.
fn statement_of_hooks(family: Family, bytes: &mut Bytes<'_>) -> Statement {
    if family == Family::BRIDGE {
        return Statement::Notrack;
    }
    bytes.pick(&[
        Statement::masquerade(PortNat::default()),
        Statement::snat(Nat::to(address(1))),
        Statement::dnat(Nat::to(address(1))),
        Statement::redirect(PortNat::default()),
        Statement::Reject(Reject::Default),
        Statement::Notrack,
        Statement::Synproxy(Synproxy { mss: Some(1460), ..Synproxy::default() }),
    ])
}

fn object(t: &TableId, bytes: &mut Bytes<'_>) -> Statement {
    let at = usize::from(bytes.below(10));
    let kind = KINDS_OF_OBJECTS[at];
    let n = name(if bytes.one_in(8) { bytes.pick(&NAMES) } else { NAMES[at] });
    let object = match bytes.below(5) {
        0 => ObjectName::Map(Box::new(word(t.family)), set_name(bytes.below(KINDS))),
        1 => {
            let pair = |low: u8| (Expression::from(address(low)), n.clone());
            ObjectName::Among(Box::new(word(t.family)), vec![pair(1), pair(2)])
        }
        _ => ObjectName::Named(n),
    };
    ObjectReference { kind, object }.into()
}

fn update(t: &TableId, bytes: &mut Bytes<'_>) -> Statement {
    let kind = usize::from(bytes.below(KINDS));
    let update = SetUpdate::update(&name(ALL[kind].name), key(t.family, ALL[kind].key));
    let carries = if t.family == Family::BRIDGE { &[] } else { ALL[kind].carries };
    let op = bytes.pick(&[SetOp::Update, SetOp::Add, SetOp::Delete]);
    let update = SetUpdate { op, ..update };
    match bytes.below(6) {
        0 => SetUpdate { timeout: Some(seconds(7200)), ..update },
        1 => SetUpdate { statements: vec![Counter::default().into()], ..update },
        2 => SetUpdate { value: Some(MetaKey::MARK.into()), ..update },
        3 => SetUpdate { statements: carries.iter().map(|carried| carried.statement()).collect(), ..update },
        4 => {
            let more = bytes.pick(&[Carried::Limit, Carried::Quota, Carried::Last]);
            SetUpdate { statements: vec![more.statement(), Counter::default().into()], ..update }
        }
        _ => update,
    }
    .into()
}

/// A chain of the rule's own, in which there may be another.
fn bound(t: &TableId, bytes: &mut Bytes<'_>, depth: u8) -> Statement {
    let rules = (0..bytes.below(3)).map(|_| {
        let mut rule = BoundRule::new();
        rule.comment = bytes.comment();
        rule.statements = match bytes.below(6) {
            0 | 1 => vec![verdict(bytes).into()],
            2 => vec![looked_up(t, bytes)],
            3 => vec![Match::new(word(t.family), Expression::set([address(1), address(2)])).into()],
            4 => vec![object(t, bytes)],
            _ if depth < 2 => vec![bound(t, bytes, depth + 1)],
            _ => vec![statement_of_hooks(t.family, bytes)],
        };
        rule
    });
    let rules: Vec<BoundRule> = rules.collect();
    if bytes.one_in(2) { BoundChain::goto(rules).into() } else { BoundChain::jump(rules).into() }
}

/// What counts or limits.
fn state(family: Family, bytes: &mut Bytes<'_>) -> Statement {
    match bytes.below(6) {
        0 => limit(bytes).into(),
        1 => Quota { bytes: 1 << 20, used: bytes.pick(&[0, 5]), over: bytes.one_in(2) }.into(),
        2 => Last::default().into(),
        3 if family != Family::BRIDGE => Statement::Connlimit(Connlimit { count: 3, over: bytes.one_in(2) }),
        4 => Log { group: bytes.pick(&[None, Some(1)]), ..Log::default() }.into(),
        _ => counted(bytes).into(),
    }
}

/// A counter as one begins, or that has counted.
fn counted(bytes: &mut Bytes<'_>) -> Counter {
    if bytes.one_in(2) { Counter { packets: 5, bytes: 600 } } else { Counter::default() }
}
