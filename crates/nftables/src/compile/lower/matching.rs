//! Lowers matches: with a value, a prefix, a range, or a set.

use sluicegate_netlink::text::encode;

use crate::check::LowerError;
use crate::compile::constant::{Bounds, Place};
use crate::compile::lower::Lower;
use crate::compile::lower::fold::{toggled, without_xor};
use crate::compile::lower::load::is_expressible;
use crate::compile::lower::lookup::KeyForm;
use crate::datatype::{DataType, Order};
use crate::expr::{self, CmpOp, Data, RangeOp, Register};
use crate::key::{Part, is_byte_swapped};
use crate::tree::{Expression, Inner, Match, MatchOp, Payload, Prefix, Value};

impl Lower<'_> {
    pub(crate) fn matching(&mut self, m: &Match) -> Result<(), LowerError> {
        self.imply(&m.left)?;
        let right = match &m.right {
            // nft lowers a set with a single member as that member. A concatenation stays a set, and so does
            // a member with statements or a comment, which a comparison would lose.
            Expression::Set(members) => match members.as_slice() {
                [only] if !matches!(only, Expression::Concat(_) | Expression::Elem(_)) => only,
                _ => &m.right,
            },
            right => right,
        };
        self.match_right(m, right)?;
        // Only after the match: the comparison itself must not rely on it.
        self.note_protocol(&m.left, m.op, right);
        Ok(())
    }

    fn match_right(&mut self, m: &Match, right: &Expression) -> Result<(), LowerError> {
        // A set has no order: `<` and `>` need a single value.
        if matches!(right, Expression::Named(_) | Expression::Set(_) | Expression::Concat(_)) {
            equality(m)?;
        }
        match right {
            Expression::Named(name) => self.look_up(&m.left, m.op, name.clone(), None),
            Expression::Set(members) => {
                let (left, members) = without_xor(&m.left, members, |member| member);
                let keys = self.load_key(left, &[], KeyForm::of(members.iter()), 0)?;
                let (name, number) = self.anonymous_set(left, &keys, &members)?;
                self.push_lookup(m.op, name, Some(number));
                Ok(())
            }
            Expression::Concat(_) => {
                // Constants in several registers cannot be compared at once, so nft uses a set with one
                // element.
                let keys = self.load_key(&m.left, &[], KeyForm::of(std::iter::once(right)), 0)?;
                let (name, number) = self.anonymous_set(&m.left, &keys, std::slice::from_ref(right))?;
                self.push_lookup(m.op, name, Some(number));
                Ok(())
            }
            // A single constant or range cannot be compared with a concatenation.
            single if matches!(m.left, Expression::Concat(_)) && single.is_constant() => {
                Err(LowerError::Constant {
                    value: single.to_string(),
                    wanted: format!("value of {} parts", m.left.parts().len()),
                })
            }
            Expression::Prefix(prefix) => self.match_prefix(m, prefix),
            Expression::Range(_) => self.match_range(m, right),
            Expression::Value(value) => self.match_value(m, value),
            other => Err(LowerError::NotConstant { expression: other.to_string() }),
        }
    }

    fn match_value(&mut self, m: &Match, value: &Value) -> Result<(), LowerError> {
        // nft folds the constants of `x ^ a == b`.
        if toggled(&m.left).is_some() && matches!(m.op, MatchOp::In | MatchOp::Eq | MatchOp::Neq) {
            return self.match_xor(m, value);
        }
        let field = self.load_field(&m.left, 0)?;
        self.mask(&field, 0);
        let place = self.place(&m.left)?;
        let part = place.part;
        let bytes = match &m.left {
            // The existence of a route is compared with as many bytes as the index or name of the interface
            // has, but is one byte in sets.
            Expression::Fib(fib) => fib.result_part().bytes(),
            _ => field.bytes as usize,
        };
        let place = Place { bytes, shift: field.shift, ..place };
        if let Value::Interface(name) | Value::Text(name) = value
            && let Some(stem) = name.prefix()
        {
            // The kernel compares as many bytes as the constant has, so `eth*` compares three.
            self.compare(0, equality(m)?, encode(stem).into_owned());
            return Ok(());
        }
        let bytes = place.bytes(value)?;
        // The bits of an operation's result are compared as a number, as nft does.
        let bits = part.data_type().is_bitmask() && !matches!(m.left, Expression::Binary(_));
        match m.op {
            MatchOp::In | MatchOp::None if bits => {
                // Without an operator a bit mask matches any of the bits, `(left & bits) != 0`; with `!` it
                // matches none of them.
                let op = if m.op == MatchOp::In { CmpOp::NEQ } else { CmpOp::EQ };
                let zero = vec![0; bytes.len()];
                self.bitwise(0, bytes, zero.clone());
                self.compare(0, op, zero);
            }
            MatchOp::In | MatchOp::Eq | MatchOp::Neq => {
                self.compare(0, equality(m)?, bytes);
                // Later headers rely on these fields: their comparison may grow, but not move.
                let is_protocol =
                    [Payload::ETHER_TYPE, Payload::VLAN_TYPE, Payload::IP_PROTOCOL, Payload::IP6_NEXTHDR];
                let field = match &m.left {
                    Expression::Payload(field) | Expression::Inner(Inner { field, .. }) => Some(field),
                    _ => None,
                };
                self.note_comparison(field.is_some_and(|field| is_protocol.contains(field)));
            }
            MatchOp::Lt | MatchOp::Gt | MatchOp::Lte | MatchOp::Gte => {
                // `nft_cmp` compares with `memcmp`, which orders numbers in network byte order only.
                let bytes = self.in_network_order(part, bytes, 0);
                self.compare(0, order(m.op), bytes);
            }
            MatchOp::None => {
                return Err(LowerError::Unsupported {
                    what: "expected a bit mask",
                    expression: m.to_string(),
                });
            }
        }
        Ok(())
    }

    /// Lowers `x ^ a == b` as `x == a ^ b`, like nft.
    fn match_xor(&mut self, m: &Match, value: &Value) -> Result<(), LowerError> {
        let (mut left, mut constants) = (&m.left, vec![value]);
        while let Some((inner, toggled)) = toggled(left) {
            constants.push(toggled);
            left = inner;
        }
        let bytes = self.load_plain(left, 0)? as usize;
        let place = Place { bytes, ..self.place(left)? };
        let mut folded = vec![0; bytes];
        for constant in constants {
            folded.iter_mut().zip(place.bytes(constant)?).for_each(|(all, byte)| *all ^= byte);
        }
        self.compare(0, equality(m)?, folded);
        Ok(())
    }

    fn match_prefix(&mut self, m: &Match, prefix: &Prefix) -> Result<(), LowerError> {
        let right = Expression::Prefix(Box::new(prefix.clone()));
        let place = self.place(&m.left)?;
        let bounds = Bounds::of(&right, place)?;
        // Of a field that is narrower than its bytes, no prefix is whole bytes.
        let whole = match (prefix.length % 8, place.bits) {
            (0, None) => usize::from(prefix.length / 8),
            _ => 0,
        };
        // A prefix of whole bytes needs no mask: only these bytes are loaded and compared.
        if whole > 0 && self.load_first(&m.left, u16::from(prefix.length)) {
            let bytes = bounds.low.get(..whole).unwrap_or_default().to_vec();
            self.compare(0, equality(m)?, bytes);
            return Ok(());
        }
        // Other prefixes are compared under a mask. Of a field at the end of its bytes that mask alone takes the
        // bits beside the field away, as it does of `FIELD & MASK`, which is how this is listed.
        is_expressible(&m.left)?;
        let field = self.load_field(&m.left, 0)?;
        if field.shift > 0 || place.bits.is_none() {
            self.mask(&field, 0);
            self.move_down(&field, field.bytes_of(&m.left), 0);
        }
        // In network byte order the leading bytes of the register are the prefix.
        if place.part.order() == Order::Network && whole > 0 {
            let bytes = bounds.low.get(..whole).unwrap_or_default().to_vec();
            self.compare(0, equality(m)?, bytes);
            return Ok(());
        }
        let mut mask: Vec<u8> =
            bounds.low.iter().zip(&bounds.high).map(|(low, high)| !(low ^ high)).collect();
        if let Some(bits) = place.bits {
            // The bits above the field are no part of the prefix.
            let ones = u64::MAX >> 64_u16.saturating_sub(bits).min(63);
            let own = crate::key::integer_bytes(place.part.order(), mask.len(), ones);
            mask.iter_mut().zip(own).for_each(|(mask, own)| *mask &= own);
        }
        let zero = vec![0; mask.len()];
        self.bitwise(0, mask, zero);
        self.compare(0, equality(m)?, bounds.low);
        Ok(())
    }

    /// Loads the first bits of a header's field, which are whole bytes; returns whether it is one.
    fn load_first(&mut self, of: &Expression, bits: u16) -> bool {
        match of {
            Expression::Payload(field) => drop(self.load_start(*field, bits, 0)),
            Expression::Inner(Inner { tunnel, field, .. }) => {
                self.load_inner(*tunnel, field.base(), field.offset(), bits, 0);
            }
            Expression::RawPayload(raw) if raw.offset.is_multiple_of(8) => {
                self.load_payload(raw.base, raw.offset, bits, 0);
            }
            Expression::Exthdr(field) if field.offset().is_multiple_of(8) => {
                self.load_option(*field, bits, 0);
            }
            _ => return false,
        }
        true
    }

    fn match_range(&mut self, m: &Match, right: &Expression) -> Result<(), LowerError> {
        if let Some(day) = self.across_midnight(m, right) {
            return self.match_range(&day, &day.right);
        }
        let field = self.load_field(&m.left, 0)?;
        self.mask(&field, 0);
        let place = self.place(&m.left)?;
        let part = place.part;
        let bounds = Bounds::of(right, Place { bytes: field.bytes as usize, shift: field.shift, ..place })?;
        let low = self.in_network_order(part, bounds.low, 0);
        let high = if part.order() == Order::Host { reversed(bounds.high) } else { bounds.high };
        // Two comparisons can only match inside the range; for outside there is `range`, since Linux 4.9.
        if equality(m)? == CmpOp::NEQ {
            let (from, to) = (Data::Value(low.into()), Data::Value(high.into()));
            self.push(expr::Range { sreg: Register::word(0), op: RangeOp::NEQ, from, to });
        } else {
            self.compare(0, CmpOp::GTE, low);
            self.compare(0, CmpOp::LTE, high);
        }
        Ok(())
    }

    /// Returns the match for hours that wrap around midnight: the complement of the hours between. Like nft,
    /// it assigns both bounds (one second each) to the complement.
    fn across_midnight(&self, m: &Match, right: &Expression) -> Option<Match> {
        let Expression::Range(range) = right else { return None };
        let (Value::Number(from), Value::Number(to)) = &**range else { return None };
        let hours = m.left.part()?.data_type() == DataType::HOUR;
        let op = match m.op {
            MatchOp::In | MatchOp::Eq => MatchOp::Neq,
            MatchOp::Neq => MatchOp::In,
            _ => return None,
        };
        (hours && from > to).then(|| Match { left: m.left.clone(), op, right: Expression::range(*to, *from) })
    }

    /// Byte-swaps a number in host byte order before a comparison with `<` or `>`, which the kernel makes
    /// with `memcmp`.
    fn in_network_order(&mut self, part: Part, bytes: Vec<u8>, word: u32) -> Vec<u8> {
        let size = u32::try_from(bytes.len()).unwrap_or(0);
        // A single byte has no order.
        if !is_byte_swapped(part) || size == 1 {
            return bytes;
        }
        self.swap_register(word, size);
        reversed(bytes)
    }
}

fn equality(m: &Match) -> Result<CmpOp, LowerError> {
    match m.op {
        MatchOp::In | MatchOp::Eq => Ok(CmpOp::EQ),
        MatchOp::Neq => Ok(CmpOp::NEQ),
        _ => Err(LowerError::Unsupported {
            what: "only `==` and `!=` are possible here",
            expression: m.to_string(),
        }),
    }
}

fn order(op: MatchOp) -> CmpOp {
    match op {
        MatchOp::Lt => CmpOp::LT,
        MatchOp::Gt => CmpOp::GT,
        MatchOp::Lte => CmpOp::LTE,
        _ => CmpOp::GTE,
    }
}

fn reversed(mut bytes: Vec<u8>) -> Vec<u8> {
    if cfg!(target_endian = "little") {
        bytes.reverse();
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compile::lower::lower_alone;
    use crate::tree::{RawPayload, Statement};
    use crate::{Family, TableId};

    /// Every field of a number of bits that is not whole bytes, under every prefix: the mask is of the field's
    /// first bits, and the constant has no others. (nft 1.0.6 crashes on them.)
    #[test]
    fn a_prefix_is_of_the_first_bits_of_its_field() {
        let mut tried = 0;
        for field in Payload::ALL.iter().filter(|field| !field.bits().is_multiple_of(8)) {
            let ones = u64::MAX >> (64 - field.bits());
            for length in 0..=field.bits() {
                let prefix = Expression::prefix(ones, u8::try_from(length).unwrap());
                let statement = [Statement::from(Match::new(*field, prefix))];
                let families = [Family::IP, Family::IP6, Family::INET, Family::BRIDGE, Family::ARP];
                let lower =
                    |family| lower_alone(&TableId::new(family, "t".parse().unwrap()), &statement).ok();
                let Some(exprs) = families.into_iter().find_map(lower).map(|lowered| lowered.exprs) else {
                    continue;
                };
                let number = |data: &Data| crate::key::integer(Order::Network, data.value().unwrap());
                let mask = exprs.iter().rev().find_map(|expr| match expr {
                    expr::Expr::Bitwise(bits) => bits.mask.as_ref().map(number),
                    _ => None,
                });
                let constant = match exprs.last() {
                    Some(expr::Expr::Cmp(cmp)) => number(&cmp.data),
                    other => panic!("{field}: {other:?}"),
                };
                let first = ones & !ones.checked_shr(length.into()).unwrap_or(0);
                assert_eq!((mask, constant), (Some(first), first), "{field} under a prefix of {length}");
                tried += 1;
            }
        }
        assert!(tried > 60, "{tried} prefixes");
    }

    /// nft 1.0.6: `Value 69 exceeds valid range 0-15`. The comparison could never be equal.
    #[test]
    fn a_number_has_no_more_bits_than_the_field_that_it_is_compared_with() {
        let table = TableId::new(Family::BRIDGE, "t".parse().unwrap());
        let refused =
            |statement: Match| lower_alone(&table, &[Statement::from(statement)]).map_err(|e| e.to_string());
        let raw = RawPayload { base: expr::PayloadBase::NETWORK, offset: 4, bits: 4 };
        for (field, most) in [
            (Expression::from(Payload::IP_HDRLENGTH), 15_u32),
            (Payload::IP_ECN.into(), 3),
            (Payload::IP_DSCP.into(), 63),
            (Payload::VLAN_ID.into(), 4095),
            (raw.into(), 15),
        ] {
            let among = |number: u32| {
                let pair = [field.clone(), Payload::IP_TTL.into()];
                [
                    Match::new(field.clone(), number),
                    Match::with(field.clone(), MatchOp::Lte, number),
                    Match::new(field.clone(), Expression::range(1_u32, number)),
                    Match::new(field.clone(), Expression::set([0, number])),
                    Match::new(
                        Expression::concat(pair),
                        Expression::set([Expression::concat([number.into(), 1_u32.into()])]),
                    ),
                ]
            };
            among(most).into_iter().for_each(|good| drop(refused(good).unwrap()));
            for wrong in among(most + 1) {
                let text = wrong.to_string();
                let error = refused(wrong).unwrap_err();
                let bits = 32 - most.leading_zeros();
                assert!(error.ends_with(&format!(", found {}", most + 1)), "{text}: {error}");
                assert!(error.contains(&format!(" of {bits} bits, found ")), "{text}: {error}");
            }
        }
    }
}
