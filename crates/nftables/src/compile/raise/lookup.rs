//! Raises lookups in sets and maps, and the members of anonymous ones.

use crate::compile::raise::constant::{range_of_one, value};
use crate::compile::raise::{Content, Raise};
use crate::datatype::DataType;
use crate::expr::{self, LookupFlags, Register};
use crate::key::{Key, Part, is_byte_swapped};
use crate::name::InterfaceName;
use crate::object::element::{prefix_length, wildcard};
use crate::object::{Element, ElementData, Set, SetData, SetFlags};
use crate::tree::expression::*;
use crate::tree::value::*;
use crate::tree::{Match, MatchOp, Vmap};

impl Raise<'_> {
    pub(super) fn lookup(&mut self, l: &expr::Lookup) -> Option<()> {
        let sets = self.sets;
        let (set, elements) = sets.get(&l.set)?;
        let looked_up = self.looked_up(l.sreg, set)?;
        // nft drops the matches that the fields of a key imply, as for a comparison. If the result goes to a
        // register, that is decided where it is used.
        if l.dreg.is_none_or(|dreg| dreg == Register::VERDICT) {
            self.drop_implied_by(&looked_up.key);
        }
        let anonymous = set.is_anonymous();
        let members = || elements.iter().map(|e| looked_up.member(e)).collect::<Option<Vec<_>>>();
        match (l.dreg, &set.data) {
            (None, _) => {
                // An anonymous set is listed with its members, a named one by its name.
                let right =
                    if anonymous { Expression::Set(members()?) } else { Expression::Named(l.set.clone()) };
                let invert = l.flags.is_some_and(|flags| flags.contains(LookupFlags::INVERT));
                self.emit(Match {
                    left: looked_up.key,
                    op: if invert { MatchOp::Neq } else { MatchOp::In },
                    right,
                })
            }
            // A lookup into the verdict register is a verdict map.
            (Some(Register::VERDICT), _) => {
                let map = if anonymous {
                    let verdict = |e: &Element| match e.data() {
                        ElementData::Verdict(verdict) => Some(verdict),
                        _ => None,
                    };
                    let pairs = members()?.into_iter().zip(elements).map(|(k, e)| Some((k, verdict(e)?)));
                    Mapping::Anonymous(pairs.collect::<Option<_>>()?)
                } else {
                    Mapping::Named(l.set.clone())
                };
                self.emit(Vmap { key: looked_up.key, map })
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
                // The values are ranges, each with its lower and upper bound.
                if matches!(set.data, Some(SetData::Interval(_))) {
                    bytes *= 2;
                }
                let expression = Expression::Map(Box::new(Map { key: looked_up.key, map }));
                self.load(dreg, expression, u32::try_from(bytes).ok()?)
            }
            _ => None,
        }
    }

    /// Returns the expression that is looked up in a set.
    pub(super) fn looked_up<'s>(&self, register: Register, set: &'s Set) -> Option<LookedUp<'s>> {
        // If the bits stay where they are in the header, the elements of the set are shifted to match.
        let moved = !matches!(self.content(register)?, Content::Loaded { moved: false, .. });
        let key = self.key_of(register, set)?;
        let shift = if moved { 0 } else { field_shift(&key) };
        Some(LookedUp { set, key, shift })
    }
}

/// The key of a lookup, and the set.
pub(super) struct LookedUp<'a> {
    set: &'a Set,
    pub(super) key: Expression,
    /// The number of bits below a bit field in the bytes that contain it.
    shift: u16,
}

impl LookedUp<'_> {
    /// Returns a member of an anonymous set, with its statements and comment; `None` for a member with a
    /// timeout, for which there is no syntax in a rule.
    pub(super) fn member(&self, element: &Element) -> Option<Expression> {
        if element.get_timeout().is_some() || element.get_expires().is_some() {
            return None;
        }
        let (statements, comment) = (element.statements().to_vec(), element.get_comment().cloned());
        Some(Elem { value: self.constant(element)?, statements, comment }.into())
    }

    /// Returns the value of a member: a constant, a prefix, a range, or a concatenation of them.
    fn constant(&self, element: &Element) -> Option<Expression> {
        if element.is_catch_all() {
            return Some(Expression::any());
        }
        let wanted = self.key.parts();
        let (low, high) = (element.key(), element.last());
        if let (Some(low), Some(high)) = (self.split(&low, &wanted), self.split(&high, &wanted)) {
            let parts = wanted.iter().zip(low).zip(high);
            let parts = parts.map(|((part, low), high)| bounds(*part, &low, &high, self.shift));
            return parts.collect::<Option<_>>().map(Expression::Concat);
        }
        // The fields of a concatenation are padded to 32 bits, so an integer may be narrower than its field.
        let several = low.types().len() > 1;
        let mut parts = Vec::new();
        for (i, ((set_part, low), (_, high))) in low.parts().zip(high.parts()).enumerate() {
            let fits = |part: &Part| match several && set_part.data_type() == DataType::INTEGER {
                true => part.bytes().next_multiple_of(4) == set_part.bytes().next_multiple_of(4),
                false => part.bytes() == set_part.bytes(),
            };
            let part = wanted.get(i).copied().filter(fits).unwrap_or(set_part);
            let (low, high) = (self.as_part(part, set_part, low), self.as_part(part, set_part, high));
            parts.push(bounds(part, &low, &high, self.shift)?);
        }
        match parts.pop() {
            Some(single) if parts.is_empty() => Some(self.within_field(single)),
            last => Some(Expression::Concat(parts.into_iter().chain(last).collect())),
        }
    }

    /// Ends a range where the field ends: an interval without an end goes on to the end of the bytes.
    fn within_field(&self, mut member: Expression) -> Expression {
        let bits = self.key.bits().filter(|bits| *bits < 64);
        if let (Expression::Range(range), Some(bits)) = (&mut member, bits)
            && let Value::Number(high) = &mut range.1
        {
            *high = (*high).min((1 << bits) - 1);
        }
        member
    }

    /// Splits a key into the parts of the expression that is looked up, if the set does not tell its parts:
    /// nft stores no user data for a hash, and then for no other part either.
    fn split(&self, key: &Key, wanted: &[Part]) -> Option<Vec<Vec<u8>>> {
        let padded =
            |parts: &[Part]| parts.iter().map(|part| part.bytes().next_multiple_of(4)).sum::<usize>();
        let known = self.set.key.parts();
        if wanted.len() <= known.len() || padded(wanted) != padded(&known) {
            return None;
        }
        let mut bytes = Vec::new();
        for (part, value) in key.parts() {
            bytes.extend(self.swap_in_intervals(part, value.to_vec()));
            bytes.resize(bytes.len().next_multiple_of(4), 0);
        }
        let mut rest = bytes.as_slice();
        // Each part of a concatenation is padded to 32 bits.
        let mut parts = Vec::new();
        for part in wanted {
            let (own, behind) = rest.split_at_checked(part.bytes().next_multiple_of(4))?;
            parts.push(self.swap_in_intervals(*part, own.get(..part.bytes())?.to_vec()));
            rest = behind;
        }
        Some(parts)
    }

    /// Converts a part of the set's key to the part that is looked up in it: for integers nft stores neither
    /// the length nor, in some cases, the byte order.
    fn as_part(&self, part: Part, set_part: Part, bytes: &[u8]) -> Vec<u8> {
        let mut bytes = self.swap_in_intervals(set_part, bytes.to_vec());
        bytes.resize(part.bytes(), 0);
        self.swap_in_intervals(part, bytes)
    }

    /// Byte-swaps a part if the set stores it byte-swapped.
    fn swap_in_intervals(&self, part: Part, mut bytes: Vec<u8>) -> Vec<u8> {
        if self.set.flags.contains(SetFlags::INTERVAL) && is_byte_swapped(part) {
            bytes.reverse();
        }
        bytes
    }
}

/// Returns the value of an element of an anonymous map.
fn data_of(element: &Element) -> Option<Expression> {
    let several = |low: &Key, high: &Key| {
        let parts = low.parts().zip(high.parts());
        let mut parts =
            parts.map(|((part, low), (_, high))| bounds(part, low, high, 0)).collect::<Option<Vec<_>>>()?;
        if parts.len() == 1 { parts.pop() } else { Some(Expression::Concat(parts)) }
    };
    match element.data() {
        ElementData::Value(value) => several(&value, &value),
        ElementData::Range(low, high) => Some(interval(several(&low, &high)?)),
        _ => None,
    }
}

/// Raises the value of an interval map, even if the interval is a single value.
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

/// Raises one part of a key, which is shifted by this number of bits.
fn bounds(part: Part, low: &[u8], high: &[u8], shift: u16) -> Option<Expression> {
    let down = |bytes: &[u8]| match value(part, bytes) {
        Value::Number(number) => Value::Number(number.checked_shr(shift.into()).unwrap_or(0)),
        other => other,
    };
    // nft lists a range as a prefix if it is one, and names with a common start as a wildcard.
    Some(match prefix_length(part, low, high) {
        _ if low == high => Expression::Value(down(low)),
        Some(length) => Expression::prefix(down(low), u8::try_from(length).ok()?),
        None => match wildcard(part, low, high) {
            Some(stem) => Expression::Value(Value::Interface(InterfaceName::from_kernel(&(stem + "*")))),
            None => Expression::Range(Box::new((down(low), down(high)))),
        },
    })
}

/// Returns the number of bits below a bit field in the bytes that contain it.
fn field_shift(of: &Expression) -> u16 {
    let (offset, bits) = match of {
        Expression::Payload(p) | Expression::Inner(Inner { field: p, .. }) => (p.offset(), p.bits()),
        Expression::Exthdr(e) => (e.offset(), e.bits()),
        _ => return 0,
    };
    (offset % 8 + bits).div_ceil(8) * 8 - offset % 8 - bits
}
