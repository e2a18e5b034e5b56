//! Matches: a value, a prefix, a range, or a set.

use crate::datatype::{DataType, Order};
use crate::expr::{self, CmpOp, Data, RangeOp, Register};
use crate::key::Part;
use crate::lang::constant::{Bounds, Place};
use crate::lang::lower::lookup::KeyForm;
use crate::lang::lower::{Lower, LowerError};
use crate::lang::{Expression, Inner, Match, MatchOp, Payload, Prefix, Value};
use crate::object::element::is_turned;

impl Lower<'_> {
    pub(crate) fn matching(&mut self, m: &Match) -> Result<(), LowerError> {
        self.imply(&m.left)?;
        let right = match &m.right {
            // One member is no set, but where it is a concatenation nft keeps it one. Here it also stays one where a comparison would lose
            // what it carries, or its comment.
            Expression::Set(members) => match members.as_slice() {
                [only] if !matches!(only, Expression::Concat(_) | Expression::Elem(_)) => only,
                _ => &m.right,
            },
            right => right,
        };
        self.match_right(m, right)?;
        self.note_protocol(&m.left, m.op, right);
        Ok(())
    }

    fn match_right(&mut self, m: &Match, right: &Expression) -> Result<(), LowerError> {
        if matches!(right, Expression::Named(_) | Expression::Set(_) | Expression::Concat(_)) {
            equality(m)?;
        }
        match right {
            Expression::Named(name) => self.look_up(&m.left, m.op, name.clone(), None),
            Expression::Set(members) => {
                let keys = self.load_key(&m.left, &[], KeyForm::of(members.iter()), 0)?;
                let (name, number) = self.anonymous_set(&m.left, &keys, members)?;
                self.push_lookup(m.op, name, Some(number));
                Ok(())
            }
            Expression::Concat(_) => {
                let keys = self.load_key(&m.left, &[], KeyForm::of(std::iter::once(right)), 0)?;
                let (name, number) = self.anonymous_set(&m.left, &keys, std::slice::from_ref(right))?;
                self.push_lookup(m.op, name, Some(number));
                Ok(())
            }
            // One constant, or a range of them, for several things at once.
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
        let field = self.load_field(&m.left, 0)?;
        self.mask(&field, 0);
        let place = self.place(&m.left)?;
        let part = place.part;
        let bytes = match &m.left {
            // Whether there is a route is compared with as many bytes as the route's interface would be, but in sets it is one byte.
            Expression::Fib(fib) => fib.held_part().bytes(),
            _ => field.bytes as usize,
        };
        let place = Place { bytes, shift: field.shift, ..place };
        if let Value::Interface(name) | Value::Text(name) = value
            && let Some(stem) = name.prefix()
        {
            self.compare(0, equality(m)?, stem.as_bytes().to_vec());
            return Ok(());
        }
        let bytes = place.bytes(value)?;
        let bits = part.data_type().is_bitmask() && !matches!(m.left, Expression::Binary(_));
        match m.op {
            MatchOp::In | MatchOp::None if bits => {
                let op = if m.op == MatchOp::In { CmpOp::NEQ } else { CmpOp::EQ };
                let zero = vec![0; bytes.len()];
                self.bitwise(0, bytes, zero.clone());
                self.compare(0, op, zero);
            }
            MatchOp::In | MatchOp::Eq | MatchOp::Neq => {
                self.compare(0, equality(m)?, bytes);
                let tells_protocol =
                    [Payload::ETHER_TYPE, Payload::VLAN_TYPE, Payload::IP_PROTOCOL, Payload::IP6_NEXTHDR];
                let field = match &m.left {
                    Expression::Payload(field) | Expression::Inner(Inner { field, .. }) => Some(field),
                    _ => None,
                };
                self.may_be_joined(field.is_some_and(|field| tells_protocol.contains(field)));
            }
            MatchOp::Lt | MatchOp::Gt | MatchOp::Lte | MatchOp::Gte => {
                let bytes = self.in_network_order(part, bytes, 0);
                self.compare(0, order(m.op), bytes);
            }
            MatchOp::None => {
                return Err(LowerError::Unsupported {
                    what: "this is no bit mask",
                    expression: m.to_string(),
                });
            }
        }
        Ok(())
    }

    fn match_prefix(&mut self, m: &Match, prefix: &Prefix) -> Result<(), LowerError> {
        let right = Expression::Prefix(prefix.clone());
        let bounds = Bounds::of(&right, self.place(&m.left)?)?;
        let (whole, rest) = (usize::from(prefix.length / 8), prefix.length % 8);
        if let Expression::Payload(field) | Expression::Inner(Inner { field, .. }) = &m.left
            && rest == 0
            && whole > 0
        {
            // Whole bytes: load only these.
            let bytes = bounds.low.get(..whole).unwrap_or_default().to_vec();
            let bits = u16::from(prefix.length);
            match &m.left {
                Expression::Inner(inner) => {
                    self.load_inner(inner.tunnel, field.base(), field.offset(), bits, 0)
                }
                _ => self.load_start(*field, bits, 0),
            };
            self.compare(0, equality(m)?, bytes);
            return Ok(());
        }
        self.load_plain(&m.left, 0)?;
        if self.place(&m.left)?.part.order() == Order::Network && rest == 0 && whole > 0 {
            let bytes = bounds.low.get(..whole).unwrap_or_default().to_vec();
            self.compare(0, equality(m)?, bytes);
            return Ok(());
        }
        let mask: Vec<u8> = bounds.low.iter().zip(&bounds.high).map(|(low, high)| !(low ^ high)).collect();
        let zero = vec![0; mask.len()];
        self.bitwise(0, mask, zero);
        self.compare(0, equality(m)?, bounds.low);
        Ok(())
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
        if equality(m)? == CmpOp::NEQ {
            let (from, to) = (Data::Value(low.into()), Data::Value(high.into()));
            self.push(expr::Range { sreg: Register::word(0), op: RangeOp::NEQ, from, to });
        } else {
            self.compare(0, CmpOp::GTE, low);
            self.compare(0, CmpOp::LTE, high);
        }
        Ok(())
    }

    /// Hours from the evening to the next morning are all but those of the day between. The two bounds, a second each, are taken for the day's, as
    /// nft has it.
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

    /// Order is by bytes: what is in host order has to be turned before it is compared so.
    fn in_network_order(&mut self, part: Part, bytes: Vec<u8>, word: u32) -> Vec<u8> {
        let size = u32::try_from(bytes.len()).unwrap_or(0);
        if !is_turned(part) || size == 1 {
            return bytes;
        }
        self.turn_register(word, size);
        reversed(bytes)
    }
}

fn equality(m: &Match) -> Result<CmpOp, LowerError> {
    match m.op {
        MatchOp::In | MatchOp::Eq => Ok(CmpOp::EQ),
        MatchOp::Neq => Ok(CmpOp::NEQ),
        _ => {
            Err(LowerError::Unsupported { what: "this can only be equal or not", expression: m.to_string() })
        }
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
    use crate::lang::lower::lower_alone;
    use crate::lang::{RawPayload, Statement};
    use crate::{Family, TableId};

    /// nft 1.0.6: `Value 69 exceeds valid range 0-15`. Compared, it would never be equal.
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
                assert!(error.starts_with(&format!("{} is no ", most + 1)), "{text}: {error}");
                assert!(error.ends_with(&format!(" of {bits} bits")), "{text}: {error}");
            }
        }
    }
}
