//! From the kernel's expressions back to the typed language, as nft lists them. What the language cannot say stays as it is
//! ([`Statement::Raw`]); nothing is lost.

mod bits;
mod constant;
mod headers;
mod inner;
mod lookup;
mod matching;
mod statement;

use std::collections::HashMap;

use crate::expr::{self, CtKey, Data, Expr, FibFlags, HashType, MetaKey, PayloadBase, Register};
use crate::family::Family;
use crate::key::Part;
use crate::lang::expression::*;
use crate::lang::lower::imply::Link;
use crate::lang::raise::constant::constant;
use crate::lang::{Payload, Statement};
use crate::name::Name;
use crate::object::element::is_turned;
use crate::object::{Element, Set, SetFlags};
pub(crate) use statement::{state, synproxy};

/// The statements that these expressions are.
pub(crate) fn raise(family: Family, sets: &Sets, exprs: &[Expr]) -> Vec<Statement> {
    let mut raise = Raise::new(family, sets);
    for expr in exprs {
        if raise.expression(expr).is_none() {
            // Not half a rule in one language and half in another: registers may be shared.
            return vec![Statement::Raw(exprs.to_vec())];
        }
    }
    if raise.inside.is_unsaid() {
        return vec![Statement::Raw(exprs.to_vec())];
    }
    raise.out.into_iter().flatten().collect()
}

/// The sets of a table, by name, with the elements of those that belong to a rule.
pub(crate) type Sets = HashMap<Name, (Set, Vec<Element>)>;

pub(crate) struct Raise<'a> {
    family: Family,
    sets: &'a Sets,
    registers: HashMap<u32, Held>,
    /// `None` where a statement turned out to be implied by a later one.
    out: Vec<Option<Statement>>,
    link: Link,
    /// VLAN tags inside the first one.
    inner_tags: u16,
    network: Option<u64>,
    transport: Option<u64>,
    /// The type of ICMP message.
    icmp: Option<u8>,
    /// Where in `out` the headers were matched.
    implied: headers::Implied,
    /// What is known of the packet inside a tunnel's.
    inside: inner::Inside,
}

/// What a register holds.
#[derive(Debug, Clone)]
pub(crate) enum Held {
    /// Something of the packet, of so many bytes.
    Loaded {
        expression: Expression,
        bytes: u32,
        /// Kept bits and toggled bits.
        mask: Option<(Vec<u8>, Vec<u8>)>,
        /// Where it came from, if from a header.
        place: Option<(PayloadBase, u32)>,
        /// Whether it was moved to the lowest bits, as the field that it is.
        moved: bool,
        /// Whether its bytes were turned: for a comparison by order, a look-up in a set of intervals, or a shift.
        turned: bool,
    },
    /// A constant.
    Constant(Vec<u8>),
    /// A protocol inside a tunnel, which the language only has as what a field implies.
    Inside(MetaKey),
}

impl<'a> Raise<'a> {
    fn new(family: Family, sets: &'a Sets) -> Self {
        let network = match family {
            Family::IP | Family::IP6 | Family::ARP => Some(u64::from(family.0)),
            _ => None,
        };
        Self {
            family,
            sets,
            registers: HashMap::new(),
            out: Vec::new(),
            link: if family == Family::BRIDGE { Link::Ether } else { Link::Unknown },
            inner_tags: 0,
            network,
            transport: None,
            icmp: None,
            implied: headers::Implied::default(),
            inside: inner::Inside::default(),
        }
    }

    /// One expression; `None` where the language has no words for it.
    fn expression(&mut self, expr: &Expr) -> Option<()> {
        match expr {
            Expr::Payload(p) if p.dreg.is_some() => self.payload(p),
            Expr::Meta(m) if m.dreg.is_some() => self.hold_part(m.dreg?, m.key.into()),
            Expr::Ct(c) if c.dreg.is_some() => {
                self.hold_part(c.dreg?, Ct { key: self.ct_key(c.key), direction: c.direction }.into())
            }
            Expr::Rt(r) => self.hold_part(r.dreg, Expression::Rt(Rt { key: r.key })),
            Expr::Socket(s) => {
                let level = s.level.filter(|_| s.key == expr::SocketKey::CGROUPV2);
                self.hold_part(s.dreg, Expression::Socket(Socket { key: s.key, level }))
            }
            Expr::Osf(o) => {
                let version = o.flags.is_some_and(|flags| flags.contains(expr::OsfFlags::VERSION));
                self.hold_part(o.dreg, Expression::Osf(Osf { ttl: o.ttl.unwrap_or(0), version }))
            }
            Expr::Fib(f) => {
                let check = f.flags.contains(FibFlags::PRESENT);
                let fib = Fib { flags: f.flags - FibFlags::PRESENT, result: f.result, check };
                self.hold(f.dreg, fib.into(), u32::try_from(fib.held_part().bytes()).ok()?)
            }
            Expr::Numgen(n) => {
                let numgen = Numgen { mode: n.mode, modulus: n.modulus, offset: n.offset.unwrap_or(0) };
                self.hold_part(n.dreg, numgen.into())
            }
            Expr::Hash(h) => self.hash(h),
            Expr::Xfrm(x) => {
                let ipsec = Ipsec { key: x.key, out: x.direction != 0, number: x.number.unwrap_or(0) };
                self.hold_part(x.dreg, Expression::Ipsec(ipsec))
            }
            Expr::Exthdr(e) if e.dreg.is_some() => self.exthdr(e),
            Expr::Tunnel(t) if t.mode.is_none_or(|mode| mode == 0) => self.hold_part(t.dreg, t.key.into()),
            Expr::Inner(i) => self.inner(i),
            Expr::Immediate(i) if i.dreg == Register::VERDICT => match &i.data {
                Data::Verdict(verdict) => self.say(verdict.clone()),
                _ => None,
            },
            Expr::Immediate(i) => {
                let held = Held::Constant(i.data.value()?.to_vec());
                self.registers.insert(i.dreg.first_word()?, held);
                Some(())
            }
            Expr::Bitwise(b) => self.bitwise(b),
            Expr::Byteorder(b) if b.sreg == b.dreg => self.turn(b.sreg),
            Expr::Cmp(c) => self.compare(c),
            Expr::Range(r) => self.range(r),
            Expr::Lookup(l) => self.lookup(l),
            other => self.statement(other),
        }
    }

    /// An address of a connection, whose family follows from the rest.
    fn ct_key(&self, key: CtKey) -> CtKey {
        match (key, self.network_is(Family::IP), self.network_is(Family::IP6)) {
            (CtKey::SADDR, true, _) => CtKey::SADDR_IP,
            (CtKey::DADDR, true, _) => CtKey::DADDR_IP,
            (CtKey::SADDR, _, true) => CtKey::SADDR_IP6,
            (CtKey::DADDR, _, true) => CtKey::DADDR_IP6,
            (other, _, _) => other,
        }
    }

    fn hash(&mut self, h: &expr::Hash) -> Option<()> {
        let offset = h.offset.unwrap_or(0);
        if h.of == Some(HashType::SYMMETRIC) {
            return self.hold_part(h.dreg, Expression::Symhash(Symhash { modulus: h.modulus, offset }));
        }
        let of = self.key(h.sreg?, h.len?, &[], false)?;
        let (modulus, seed) = (h.modulus, h.seed);
        self.hold_part(h.dreg, Expression::Jhash(Box::new(Jhash { of, modulus, seed, offset })))
    }

    fn hold(&mut self, register: Register, expression: Expression, bytes: u32) -> Option<()> {
        let held = Held::Loaded { expression, bytes, mask: None, place: None, moved: false, turned: false };
        self.put(register, held)
    }

    /// Fills registers: what was in the words of a new value is gone.
    fn put(&mut self, register: Register, held: Held) -> Option<()> {
        let word = register.first_word()?;
        if let Held::Loaded { bytes, .. } = held {
            (1..bytes.div_ceil(4).min(16)).for_each(|more| drop(self.registers.remove(&(word + more))));
        }
        self.registers.insert(word, held);
        Some(())
    }

    fn hold_part(&mut self, register: Register, expression: Expression) -> Option<()> {
        let bytes = u32::try_from(expression.part()?.bytes()).ok()?;
        self.hold(register, expression, bytes)
    }

    fn held(&self, register: Register) -> Option<&Held> {
        self.registers.get(&register.first_word()?)
    }

    /// A register's value where a value of this type is wanted.
    fn value(&mut self, register: Register, part: Part) -> Option<Expression> {
        match self.held(register)? {
            Held::Constant(bytes) => Some(constant(part, bytes.get(..part.bytes()).unwrap_or(bytes))),
            held => {
                let expression = self.whole(held).filter(has_word)?;
                self.forget_for(&expression);
                Some(expression)
            }
        }
    }

    /// The values of registers from one on, where values of these types are wanted.
    fn values(&mut self, register: Register, parts: &[Part]) -> Option<Expression> {
        let mut word = register.first_word()?;
        if let [] | [_] = parts {
            return self.value(register, *parts.first()?);
        }
        if let Held::Loaded { expression: map @ Expression::Map(_), .. } = self.held(register)? {
            return Some(map.clone());
        }
        let mut list = Vec::new();
        for part in parts {
            list.push(self.value(Register::word(word), *part)?);
            word = word.checked_add(u32::try_from(part.bytes().div_ceil(4)).ok()?)?;
        }
        Some(Expression::Concat(list))
    }

    /// The key of a set that the registers from one on hold.
    fn key_of(&mut self, register: Register, set: &Set) -> Option<Expression> {
        self.key(register, set.key_bytes(), &set.key.parts(), set.flags.contains(SetFlags::INTERVAL))
    }

    /// What the registers from one on hold, of so many bytes. Constants are of these types; intervals may be looked up in it.
    fn key(&mut self, register: Register, bytes: u32, types: &[Part], intervals: bool) -> Option<Expression> {
        let first = register.first_word()?;
        let mut word = first;
        let end = word.checked_add(bytes.div_ceil(4))?;
        let mut parts = Vec::new();
        while word < end {
            let held = self.registers.get(&word)?;
            let (expression, length) = match held {
                Held::Loaded { bytes, moved, turned, .. } => {
                    // A bit field is turned to be moved. nft before 1.0.8 did not, and later versions do not turn it back.
                    if *turned && !intervals && (!moved || *bytes > 2) {
                        return None;
                    }
                    (self.whole(held).filter(has_word)?, *bytes)
                }
                Held::Constant(bytes) => {
                    let of = part_at(types, word - first)?;
                    let mut bytes = bytes.get(..of.bytes())?.to_vec();
                    if intervals && is_turned(of) {
                        bytes.reverse();
                    }
                    (constant(of, &bytes), u32::try_from(of.bytes()).ok()?)
                }
                Held::Inside(_) => return None,
            };
            parts.push(expression);
            word = word.checked_add(length.div_ceil(4).max(1))?;
        }
        parts.iter().for_each(|part| self.forget_for(part));
        if parts.len() > 1 {
            // Among several parts nft has ports be ports, also of a protocol that has none.
            parts.iter_mut().for_each(|part| port_of(part).into_iter().for_each(|port| *part = port.into()));
        }
        if parts.len() == 1 { parts.pop() } else { Some(Expression::Concat(parts)) }
    }

    fn say(&mut self, statement: impl Into<Statement>) -> Option<()> {
        let statement = statement.into();
        if !matches!(statement, Statement::Match(_)) {
            // What was matched before it is for this statement, too.
            self.implied = headers::Implied::default();
            self.inside.keep_said();
        }
        self.out.push(Some(statement));
        Some(())
    }
}

/// Whether nft has a word for it where it is not compared.
fn has_word(expression: &Expression) -> bool {
    !matches!(expression, Expression::Fib(fib) if !fib.has_word())
}

/// The port that bytes of the transport header are in most protocols.
fn port_of(expression: &Expression) -> Option<Payload> {
    let Expression::RawPayload(raw) = expression else { return None };
    let ports = [Payload::TH_SPORT, Payload::TH_DPORT];
    ports
        .into_iter()
        .find(|port| (raw.base, raw.offset, raw.bits) == (port.base(), port.offset(), port.bits()))
}

/// The part of a key that starts at a word of it.
fn part_at(types: &[Part], word: u32) -> Option<Part> {
    let mut at = 0;
    for of in types {
        if at == word {
            return Some(*of);
        }
        at += u32::try_from(of.bytes().div_ceil(4)).ok()?;
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::expr::sample::Source;

    proptest! {
        #[test]
        fn no_expressions_make_it_panic_or_are_lost(numbers in prop::collection::vec(any::<u64>(), 16..64), order in prop::collection::vec(any::<prop::sample::Index>(), 1..12)) {
            let all = Expr::samples(&mut Source::new(numbers));
            let exprs: Vec<_> = order.iter().map(|index| index.get(&all).clone()).collect();
            for family in [Family::IP, Family::INET, Family::BRIDGE] {
                let statements = raise(family, &Sets::new(), &exprs);
                if let [Statement::Raw(kept)] = statements.as_slice() {
                    prop_assert_eq!(kept, &exprs);
                }
                let _ = statements.iter().map(ToString::to_string).count();
            }
        }
    }
}
