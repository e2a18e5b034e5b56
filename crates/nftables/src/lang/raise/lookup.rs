//! Look-ups in sets and maps, and the members of those without a name.

use crate::datatype::DataType;
use crate::expr::{self, LookupFlags, Register};
use crate::key::{Key, Part};
use crate::lang::expression::*;
use crate::lang::raise::constant::{range_of_one, value};
use crate::lang::raise::{Held, Raise};
use crate::lang::value::*;
use crate::lang::{Match, MatchOp, Vmap};
use crate::name::InterfaceName;
use crate::object::element::{is_turned, prefix_length, wildcard};
use crate::object::{Element, ElementData, Set, SetData, SetFlags};

impl Raise<'_> {
    pub(super) fn lookup(&mut self, l: &expr::Lookup) -> Option<()> {
        let sets = self.sets;
        let (set, elements) = sets.get(&l.set)?;
        let looked_up = self.looked_up(l.sreg, set)?;
        let anonymous = set.is_anonymous();
        let members = || elements.iter().map(|e| looked_up.member(e)).collect::<Option<Vec<_>>>();
        match (l.dreg, &set.data) {
            (None, _) => {
                let right =
                    if anonymous { Expression::Set(members()?) } else { Expression::Named(l.set.clone()) };
                let invert = l.flags.is_some_and(|flags| flags.contains(LookupFlags::INVERT));
                self.say(Match {
                    left: looked_up.key,
                    op: if invert { MatchOp::Neq } else { MatchOp::In },
                    right,
                })
            }
            (Some(Register::VERDICT), _) => {
                let map = if anonymous {
                    let verdict = |e: &Element| match e.data() {
                        ElementData::Verdict(verdict) => Some(verdict.clone()),
                        _ => None,
                    };
                    let pairs = members()?.into_iter().zip(elements).map(|(k, e)| Some((k, verdict(e)?)));
                    Mapping::Anonymous(pairs.collect::<Option<_>>()?)
                } else {
                    Mapping::Named(l.set.clone())
                };
                self.say(Vmap { key: looked_up.key, map })
            }
            (Some(dreg), Some(SetData::Value(of) | SetData::Interval(of))) => {
                let parts = of.parts();
                let map = if anonymous {
                    let pairs = members()?.into_iter().zip(elements).map(|(k, e)| Some((k, data_of(e)?)));
                    Mapping::Anonymous(pairs.collect::<Option<_>>()?)
                } else {
                    Mapping::Named(l.set.clone())
                };
                let mut bytes: usize = parts.iter().map(|part| part.bytes().next_multiple_of(4)).sum();
                if matches!(set.data, Some(SetData::Interval(_))) {
                    bytes *= 2;
                }
                let expression = Expression::Map(Box::new(Map { key: looked_up.key, map }));
                self.hold(dreg, expression, u32::try_from(bytes).ok()?)
            }
            _ => None,
        }
    }

    /// What is looked up in a set.
    pub(super) fn looked_up<'s>(&mut self, register: Register, set: &'s Set) -> Option<LookedUp<'s>> {
        let moved = !matches!(self.held(register)?, Held::Loaded { moved: false, .. });
        let key = self.key_of(register, set)?;
        let shift = if moved { 0 } else { field_shift(&key) };
        Some(LookedUp { set, key, shift })
    }
}

/// A key, and the set that it is looked up in.
pub(super) struct LookedUp<'a> {
    set: &'a Set,
    pub(super) key: Expression,
    /// How far above the lowest bit of its bytes a bit field ends.
    shift: u16,
}

impl LookedUp<'_> {
    /// A member of an anonymous set, with what it carries and its comment. The language has no word for one that goes by and by.
    pub(super) fn member(&self, element: &Element) -> Option<Expression> {
        if element.get_timeout().is_some() || element.get_expires().is_some() {
            return None;
        }
        let (statements, comment) = (element.statements().to_vec(), element.get_comment().cloned());
        Some(Elem { value: self.constant(element)?, statements, comment }.into())
    }

    /// Its value: a constant, a prefix, a range, or a concatenation of such.
    fn constant(&self, element: &Element) -> Option<Expression> {
        if element.is_catch_all() {
            return Some(Expression::any());
        }
        let wanted = self.key.parts();
        let (low, high) = (element.key(), element.end().unwrap_or(element.key()));
        if let (Some(low), Some(high)) = (self.split(low, &wanted), self.split(high, &wanted)) {
            let parts = wanted.iter().zip(low).zip(high);
            let parts = parts.map(|((part, low), high)| bounds(*part, &low, &high, self.shift));
            return parts.collect::<Option<_>>().map(Expression::Concat);
        }
        let several = low.types().len() > 1;
        let mut parts = Vec::new();
        for (i, ((held, low), (_, high))) in low.parts().zip(high.parts()).enumerate() {
            let fits = |part: &Part| match several && held.data_type() == DataType::INTEGER {
                true => part.bytes().next_multiple_of(4) == held.bytes().next_multiple_of(4),
                false => part.bytes() == held.bytes(),
            };
            let part = wanted.get(i).copied().filter(fits).unwrap_or(held);
            let (low, high) = (self.as_part(part, held, low), self.as_part(part, held, high));
            parts.push(bounds(part, &low, &high, self.shift)?);
        }
        if parts.len() == 1 { parts.pop() } else { Some(Expression::Concat(parts)) }
    }

    /// A key in the parts that are looked up, where the set does not say which it has: nft notes nothing of a hash, nor of any other part then.
    fn split(&self, key: &Key, wanted: &[Part]) -> Option<Vec<Vec<u8>>> {
        let padded =
            |parts: &[Part]| parts.iter().map(|part| part.bytes().next_multiple_of(4)).sum::<usize>();
        let known = self.set.key.parts();
        if wanted.len() <= known.len() || padded(wanted) != padded(&known) {
            return None;
        }
        let mut bytes = Vec::new();
        for (part, value) in key.parts() {
            bytes.extend(self.turned(part, value.to_vec()));
            bytes.resize(bytes.len().next_multiple_of(4), 0);
        }
        let mut rest = bytes.as_slice();
        let mut parts = Vec::new();
        for part in wanted {
            let (own, behind) = rest.split_at_checked(part.bytes().next_multiple_of(4))?;
            parts.push(self.turned(*part, own.get(..part.bytes())?.to_vec()));
            rest = behind;
        }
        Some(parts)
    }

    /// The bytes of a set's part as those of the part that is looked up in it: of integers nft notes neither the width nor, always, the order.
    fn as_part(&self, part: Part, held: Part, bytes: &[u8]) -> Vec<u8> {
        let mut bytes = self.turned(held, bytes.to_vec());
        bytes.resize(part.bytes(), 0);
        self.turned(part, bytes)
    }

    /// The other way round, if the set keeps such a part so.
    fn turned(&self, part: Part, mut bytes: Vec<u8>) -> Vec<u8> {
        if self.set.flags.contains(SetFlags::INTERVAL) && is_turned(part) {
            bytes.reverse();
        }
        bytes
    }
}

/// The value that an element of an anonymous map gives.
fn data_of(element: &Element) -> Option<Expression> {
    let several = |low: &Key, high: &Key| {
        let parts = low.parts().zip(high.parts());
        let mut parts =
            parts.map(|((part, low), (_, high))| bounds(part, low, high, 0)).collect::<Option<Vec<_>>>()?;
        if parts.len() == 1 { parts.pop() } else { Some(Expression::Concat(parts)) }
    };
    match element.data() {
        ElementData::Value(value) => several(value, value),
        ElementData::Range(range) => Some(interval(several(&range.0, &range.1)?)),
        _ => None,
    }
}

/// What maps to an interval of data, also where that is of one value only.
fn interval(data: Expression) -> Expression {
    match data {
        Expression::Value(value) => range_of_one(value),
        Expression::Concat(mut parts) if parts.iter().all(|part| matches!(part, Expression::Value(_))) => {
            if let Some(Expression::Value(first)) = parts.first() {
                let first = range_of_one(first.clone());
                parts.splice(..1, [first]);
            }
            Expression::Concat(parts)
        }
        several => several,
    }
}

/// One part, which lies so many bits above the lowest.
fn bounds(part: Part, low: &[u8], high: &[u8], shift: u16) -> Option<Expression> {
    let down = |bytes: &[u8]| match value(part, bytes) {
        Value::Number(number) => Value::Number(number.checked_shr(shift.into()).unwrap_or(0)),
        other => other,
    };
    Some(match prefix_length(part, low, high) {
        _ if low == high => Expression::Value(down(low)),
        Some(length) => Expression::Prefix(Prefix { value: down(low), length: u8::try_from(length).ok()? }),
        None => match wildcard(part, low, high) {
            Some(stem) => Expression::Value(Value::Interface(InterfaceName::held(&(stem + "*")))),
            None => Expression::Range(Box::new((down(low), down(high)))),
        },
    })
}

/// How far above the lowest bit of its bytes a bit field ends.
fn field_shift(of: &Expression) -> u16 {
    let (offset, bits) = match of {
        Expression::Payload(p) | Expression::Inner(Inner { field: p, .. }) => (p.offset(), p.bits()),
        Expression::Exthdr(e) => (e.offset(), e.bits()),
        _ => return 0,
    };
    (offset % 8 + bits).div_ceil(8) * 8 - offset % 8 - bits
}
