//! Comparisons as matches.

use crate::datatype::{DataType, Order};
use crate::expr::{self, CmpOp, PayloadBase, RangeOp};
use crate::key::{Part, integer};
use crate::lang::expression::*;
use crate::lang::raise::constant::{constant, in_bits, leading_ones, ones, turned, value};
use crate::lang::raise::{Held, Raise};
use crate::lang::value::*;
use crate::lang::{Match, MatchOp, Statement};

impl Raise<'_> {
    pub(super) fn compare(&mut self, c: &expr::Cmp) -> Option<()> {
        let word = c.sreg.first_word()?;
        let data = c.data.value()?;
        let held = self.registers.get(&word)?.clone();
        let Held::Loaded { expression, mask, place, moved, turned: is_turned, .. } = &held else {
            return self.compare_inside(&held, c.op, data);
        };
        if matches!(c.op, CmpOp::EQ | CmpOp::NEQ) && *is_turned && !moved {
            return None;
        }
        let op = match c.op {
            CmpOp::EQ => MatchOp::In,
            CmpOp::NEQ => MatchOp::Neq,
            CmpOp::LT => MatchOp::Lt,
            CmpOp::GT => MatchOp::Gt,
            CmpOp::LTE => MatchOp::Lte,
            _ => MatchOp::Gte,
        };
        if let Some((_, xor)) = mask
            && xor.iter().all(|byte| *byte == 0)
        {
            let bytes = matches!(expression, Expression::RawPayload(_));
            let start = |part: &Part| (bytes || is_address(*part)) && data.len() < part.bytes();
            let m = match expression.part().filter(start) {
                None => self.masked(&held, op, data)?,
                Some(part) => self.masked_start(&held, op, data, part.bytes())?,
            };
            return self.say_match(m);
        }
        if let (Some((base, start)), Expression::RawPayload(_), None) = (place, expression, mask)
            && matches!(op, MatchOp::In | MatchOp::Neq)
            && let Some(matches) = self.fields(*base, *start, op, data)
        {
            return matches.into_iter().try_for_each(|m| self.say_match(m));
        }
        if let Expression::Inner(inner) = expression
            && mask.is_none()
            && in_bits(u32::try_from(data.len()).ok()?) != Some(inner.field.bits())
        {
            return self.say_inside(*inner, op, data);
        }
        let left = self.whole(&held)?;
        let part = left.part()?;
        if matches!(op, MatchOp::In | MatchOp::Neq)
            && let Some(prefix) = short_prefix(part, data)
        {
            return self.say_match(Match { left, op, right: prefix });
        }
        // What starts so: there are words for that of names alone.
        if data.len() < part.bytes() && !matches!(part.data_type(), DataType::IFNAME | DataType::STRING) {
            return None;
        }
        let ordered = matches!(op, MatchOp::Lt | MatchOp::Gt | MatchOp::Lte | MatchOp::Gte);
        let right = constant(part, &if ordered { turned(part, data) } else { data.to_vec() });
        self.say_match(Match { left, op: equality(op, part), right })
    }

    /// Says a match, and what it says of the headers. With the one before it may be a range.
    fn say_match(&mut self, m: Match) -> Option<()> {
        if m.op == MatchOp::Lte && self.make_range(&m.left, &m.right) {
            return Some(());
        }
        match &m.left {
            Expression::Payload(field) => self.forget_of(*field, matches!(m.op, MatchOp::In | MatchOp::Neq)),
            other => self.forget_for(other),
        }
        self.note(&m.left, m.op, &m.right);
        self.say(m)
    }

    /// Two comparisons with the same thing are a range.
    fn make_range(&mut self, left: &Expression, high: &Expression) -> bool {
        let Some(Some(Statement::Match(m))) = self.out.last_mut() else { return false };
        let (Expression::Value(low), Expression::Value(high)) = (&m.right, high) else { return false };
        if m.left != *left || m.op != MatchOp::Gte {
            return false;
        }
        m.right = Expression::Range(Box::new((low.clone(), high.clone())));
        m.op = MatchOp::In;
        true
    }

    /// A comparison of some bits.
    fn masked(&self, held: &Held, op: MatchOp, data: &[u8]) -> Option<Match> {
        let Held::Loaded { expression, mask: Some((mask, _)), .. } = held else { return None };
        let whole = self.whole(held)?;
        if !matches!(whole, Expression::Binary(_)) {
            let op = whole.part().map_or(op, |part| equality(op, part));
            return Some(Match { left: whole, op, right: bit_field(mask, data)?.into() });
        }
        let part = expression.part()?;
        let zero = data.iter().all(|byte| *byte == 0);
        let left = expression.clone();
        if part.data_type().is_bitmask() && zero && matches!(op, MatchOp::In | MatchOp::Neq) {
            let op = if op == MatchOp::Neq { MatchOp::In } else { MatchOp::None };
            return Some(Match { left, op, right: value(part, mask).into() });
        }
        if matches!(op, MatchOp::In | MatchOp::Neq)
            && let Some(length) = leading_ones(part, mask)
            && data.iter().zip(mask).all(|(data, mask)| data & !mask == 0)
        {
            let right = Expression::Prefix(Prefix { value: value(part, data), length });
            return Some(Match { left, op, right });
        }
        let op = if op == MatchOp::In { MatchOp::Eq } else { op };
        let ordered = matches!(op, MatchOp::Lt | MatchOp::Gt | MatchOp::Lte | MatchOp::Gte);
        let right = constant(part, &if ordered { turned(part, data) } else { data.to_vec() });
        Some(Match { left: whole, op, right })
    }

    /// A comparison of some bits of the start of an address, or of bytes of a header. What is not compared counts for nothing.
    fn masked_start(&self, held: &Held, op: MatchOp, data: &[u8], width: usize) -> Option<Match> {
        let mut held = held.clone();
        let Held::Loaded { mask: Some((mask, xor)), .. } = &mut held else { return None };
        if mask.len() < data.len() || !matches!(op, MatchOp::In | MatchOp::Neq) {
            return None;
        }
        mask.truncate(data.len());
        mask.resize(width, 0);
        xor.resize(width, 0);
        self.masked(&held, op, &padded(data, width))
    }

    /// Bytes of a header as the fields that lie in them: nft compares neighbours at once. Of the last field it may be the
    /// beginning only, a prefix.
    fn fields(&self, base: PayloadBase, start: u32, op: MatchOp, data: &[u8]) -> Option<Vec<Match>> {
        if base == PayloadBase::TRANSPORT && self.transport.is_none() {
            return None;
        }
        let mut at = in_bits(start)?;
        let (mut from, mut left) = (0, in_bits(u32::try_from(data.len()).ok()?)?);
        let mut matches = Vec::new();
        for field in self.known_fields(base) {
            if self.offset_of(field) != at || left == 0 {
                continue;
            }
            let width = field.bits().min(left);
            let part = field.part();
            let bytes = bits(data, from, width, field.bits());
            let right = match width == field.bits() {
                true => constant(part, &bytes),
                false => Expression::Prefix(Prefix {
                    value: value(part, &bytes),
                    length: u8::try_from(width).ok()?,
                }),
            };
            matches.push(Match { left: field.into(), op: equality(op, part), right });
            (at, from, left) = (at + width, from + width, left - width);
        }
        if left > 0 && !matches.is_empty() {
            let raw = RawPayload { base, offset: at, bits: left };
            let right = Value::Number(integer(Order::Network, &bits(data, from, left, left)));
            matches.push(Match { left: raw.into(), op, right: right.into() });
        }
        // Several fields that differ as a whole are not each another.
        (matches.len() == 1 || op == MatchOp::In && !matches.is_empty()).then_some(matches)
    }

    pub(super) fn range(&mut self, r: &expr::Range) -> Option<()> {
        let held = self.registers.get(&r.sreg.first_word()?)?.clone();
        let left = self.whole(&held)?;
        let part = left.part()?;
        let (from, to) = (r.from.value()?, r.to.value()?);
        let bounds = match &held {
            Held::Loaded { mask: Some((mask, _)), .. } if !matches!(left, Expression::Binary(_)) => {
                (bit_field(mask, from)?, bit_field(mask, to)?)
            }
            _ => (value(part, &turned(part, from)), value(part, &turned(part, to))),
        };
        self.forget_for(&left);
        let right = Expression::Range(Box::new(bounds));
        let op = if r.op == RangeOp::NEQ { MatchOp::Neq } else { MatchOp::In };
        self.say(Match { left, op, right })
    }
}

/// The first bytes of an address, which stand for all that start so.
fn short_prefix(part: Part, data: &[u8]) -> Option<Expression> {
    if is_address(part) && data.len() < part.bytes() { prefix_of(part, data) } else { None }
}

/// All values of a part that start with these bytes.
pub(super) fn prefix_of(part: Part, start: &[u8]) -> Option<Expression> {
    let length = u8::try_from(start.len() * 8).ok()?;
    Some(Expression::Prefix(Prefix { value: value(part, &padded(start, part.bytes())), length }))
}

fn is_address(part: Part) -> bool {
    matches!(part.data_type(), DataType::IPV4_ADDR | DataType::IPV6_ADDR)
}

/// Bytes with zeros behind them.
fn padded(bytes: &[u8], width: usize) -> Vec<u8> {
    let mut padded = bytes.to_vec();
    padded.resize(width, 0);
    padded
}

/// The value of a bit field, which lies some bits above the lowest.
fn bit_field(mask: &[u8], data: &[u8]) -> Option<Value> {
    let (lead, bits) = ones(mask)?;
    let below = mask.len() * 8 - usize::from(lead + bits);
    integer(Order::Network, data).checked_shr(u32::try_from(below).ok()?).map(Value::Number)
}

/// Without an operator, a bit mask would be asked for any of its bits.
fn equality(op: MatchOp, part: Part) -> MatchOp {
    if op == MatchOp::In && part.data_type().is_bitmask() { MatchOp::Eq } else { op }
}

/// Some bits of a header as the highest of a field's.
fn bits(data: &[u8], from: u16, width: u16, field: u16) -> Vec<u8> {
    let mut out = vec![0; usize::from(field.div_ceil(8))];
    for i in 0..width {
        let at = from + i;
        let bit = data.get(usize::from(at / 8)).map_or(0, |byte| byte >> (7 - at % 8) & 1);
        let to = field.next_multiple_of(8) - field + i;
        if let Some(byte) = out.get_mut(usize::from(to / 8)) {
            *byte |= bit << (7 - to % 8);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expr::{Bitwise, Cmp, Data, Expr, Register};
    use crate::family::Family;
    use crate::lang::Payload;
    use crate::lang::raise::{Sets, raise};

    /// What a comparison of some bits of an address says. Whose length is less than the address's, it was made for a prefix.
    fn said(field: Payload, mask: &[u8], op: CmpOp, data: &[u8]) -> String {
        let (register, len) = (Register::word(0), u32::try_from(mask.len()).unwrap());
        let load = expr::Payload {
            dreg: Some(register),
            base: field.base(),
            offset: u32::from(field.offset() / 8),
            len: u32::from(field.bits() / 8),
            sreg: None,
            csum_type: None,
            csum_offset: None,
            csum_flags: None,
        };
        let xor = Some(Data::Value(vec![0; mask.len()].into()));
        let mask = Some(Data::Value(mask.into()));
        let bits =
            Bitwise { sreg: register, dreg: register, len, mask, xor, op: None, data: None, sreg2: None };
        let compare = Cmp { sreg: register, op, data: Data::Value(data.into()) };
        let exprs: [Expr; 3] = [load.into(), bits.into(), compare.into()];
        let family = if field.bits() == 32 { Family::IP } else { Family::IP6 };
        let statements = raise(family, &Sets::new(), &exprs);
        match &statements[..] {
            [Statement::Raw(_)] => String::new(),
            all => all.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "),
        }
    }

    /// nft 1.0.6 makes them of a mask beside a prefix, and lists masks that are not those that count.
    #[test]
    fn bits_of_the_start_of_an_address_are_bits_of_the_address() {
        let v4 = |mask: &[u8], op, data: &[u8]| said(Payload::IP_SADDR, mask, op, data);
        assert_eq!(v4(&[255, 255, 0], CmpOp::EQ, &[10, 1, 0]), "ip saddr 10.1.0.0/16");
        assert_eq!(v4(&[255, 255, 0, 255], CmpOp::NEQ, &[10, 1, 0]), "ip saddr != 10.1.0.0/16");
        assert_eq!(v4(&[255, 0, 255], CmpOp::EQ, &[10, 0, 2]), "ip saddr & 255.0.255.0 == 10.0.2.0");
        let v6 = said(Payload::IP6_SADDR, &[0xff, 0xff, 0, 0], CmpOp::EQ, &[0x20, 1, 0, 0]);
        assert_eq!(v6, "ip6 saddr 2001::/16");
        // Bits behind the mask are kept as they are; their order is not that of the address.
        assert_eq!(v4(&[255, 255], CmpOp::EQ, &[10, 1, 2]), "");
        assert_eq!(v4(&[255, 255, 0], CmpOp::LT, &[10, 1, 0]), "");
    }

    #[test]
    fn an_address_with_bits_that_are_masked_is_no_prefix() {
        let v4 = |op| said(Payload::IP_SADDR, &[255, 255, 0, 0], op, &[10, 1, 2, 3]);
        assert_eq!(v4(CmpOp::EQ), "ip saddr & 255.255.0.0 == 10.1.2.3");
        assert_eq!(v4(CmpOp::NEQ), "ip saddr & 255.255.0.0 != 10.1.2.3");
    }
}
