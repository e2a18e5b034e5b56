//! Raises comparisons to matches.

use crate::compile::raise::constant::{constant, in_bits, leading_ones, ones, said, swap_bytes, value};
use crate::compile::raise::{Content, Raise};
use crate::datatype::{DataType, Order};
use crate::expr::{self, CmpOp, CtKey, PayloadBase, RangeOp};
use crate::family::Family;
use crate::key::{Part, integer};
use crate::tree::expression::*;
use crate::tree::value::*;
use crate::tree::{Match, MatchOp, Statement};

impl Raise<'_> {
    pub(super) fn compare(&mut self, c: &expr::Cmp) -> Option<()> {
        let word = c.sreg.first_word()?;
        let data = c.data.value()?;
        let mut content = self.registers.get(&word)?.clone();
        // nft takes the match of the IP version for one that this key implies.
        if self.address_of_any_family == Some(c.sreg)
            && c.op == CmpOp::EQ
            && let Content::Loaded { expression: Expression::Ct(ct), mask: None, .. } = &mut content
            && self.drop_network_match()
        {
            *ct = of_one_family(*ct);
        }
        let Content::Loaded { expression, bytes, mask, place, moved, byte_swapped } = &content else {
            return self.compare_inside(&content, c.op, data);
        };
        // A constant of more bytes than were loaded is none of the field's values. (nft 1.0.6 makes such for shifts.)
        if usize::try_from(*bytes).is_ok_and(|bytes| data.len() > bytes) {
            return None;
        }
        // nft byte-swaps a whole value only for `<` and `>`; its language cannot express an equality of
        // swapped bytes.
        if matches!(c.op, CmpOp::EQ | CmpOp::NEQ) && *byte_swapped && !moved {
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
            // nft compares only the leading bytes of a masked prefix, which is shorter than the field.
            let bytes = matches!(expression, Expression::RawPayload(_));
            let start = |part: &Part| (bytes || is_address(*part)) && data.len() < part.bytes();
            let m = match expression.part().filter(start) {
                None => self.masked(&content, op, data)?,
                Some(part) => self.masked_start(&content, op, data, part.bytes())?,
            };
            return self.emit_match(m);
        }
        // Bytes that are not a field may be several: nft merges comparisons of adjacent fields.
        if let (Some((base, start)), Expression::RawPayload(_), None) = (place, expression, mask)
            && matches!(op, MatchOp::In | MatchOp::Neq)
            && let Some(matches) = self.fields(*base, *start, op, data)
        {
            return matches.into_iter().try_for_each(|m| self.emit_match(m));
        }
        // Inside a tunnel, too, the bytes may be several fields, or the start of one.
        if let Expression::Inner(inner) = expression
            && mask.is_none()
            && in_bits(u32::try_from(data.len()).ok()?) != Some(inner.field.bits())
        {
            return self.emit_inside(*inner, op, data);
        }
        if let Expression::Exthdr(field) = expression
            && mask.is_none()
            && usize::try_from(*bytes).is_ok_and(|bytes| bytes == data.len())
            && in_bits(*bytes)? < field.bits()
            && matches!(op, MatchOp::In | MatchOp::Neq)
        {
            let right = short_prefix(field.part(), data)?;
            return self.emit_match(Match { left: expression.clone(), op, right });
        }
        let left = self.whole(&content)?;
        let part = left.part()?;
        let is_text = matches!(part.data_type(), DataType::IFNAME | DataType::STRING);
        // `x\*` is a name that ends with `*`, not all names that start with `x\`.
        if is_text && data.len() < part.bytes() && data.last() == Some(&b'\\') {
            return None;
        }
        // Bits behind the compared bytes that are cleared, too, are equal to zeros.
        let data = match mask {
            Some((mask, xor)) if [mask, xor].iter().all(|of| is_zero(of.get(data.len()..))) => {
                &padded(data, mask.len())
            }
            _ => data,
        };
        // nft compares only the leading bytes for a prefix of whole bytes.
        if matches!(op, MatchOp::In | MatchOp::Neq)
            && let Some(prefix) = short_prefix(part, data)
        {
            return self.emit_match(Match { left, op, right: prefix });
        }
        // A comparison of the leading bytes of other types has no syntax.
        if data.len() < part.bytes() && !is_text {
            return None;
        }
        let ordered = matches!(op, MatchOp::Lt | MatchOp::Gt | MatchOp::Lte | MatchOp::Gte);
        // Numbers are in network byte order for `<` and `>`.
        let right = said(part, value(part, &if ordered { swap_bytes(part, data) } else { data.to_vec() }))?;
        let right = Expression::Value(right);
        // The bits of a field are compared where they are, but for `FIELD ^ CONSTANT == CONSTANT`.
        if *moved && mask.is_none() && matches!(op, MatchOp::In | MatchOp::Neq) && is_field(&left) {
            let op = if op == MatchOp::In { MatchOp::Eq } else { op };
            return self.emit_match(Match { left: left.xor(0_u32), op, right });
        }
        self.emit_match(Match { left, op: equality(op, part), right })
    }

    /// Emits a match, and records what it determines about the headers. It may complete a range with the
    /// match before it.
    fn emit_match(&mut self, m: Match) -> Option<()> {
        // nft lowers a range as `>=` and `<=` on the same register.
        if m.op == MatchOp::Lte && self.make_range(&m.left, &m.right) {
            return Some(());
        }
        match &m.left {
            Expression::Payload(field) => {
                self.drop_implied_by_field(*field, matches!(m.op, MatchOp::In | MatchOp::Neq));
            }
            other => self.drop_implied_by(other),
        }
        self.note(&m.left, m.op, &m.right);
        self.emit(m)
    }

    /// Merges two comparisons of one expression into a range.
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

    /// Raises a comparison of masked bits.
    fn masked(&self, content: &Content, op: MatchOp, data: &[u8]) -> Option<Match> {
        let Content::Loaded { expression, mask: Some((mask, _)), .. } = content else { return None };
        let whole = self.whole(content)?;
        // The mask extracts a bit field, so the constant is shifted to its value.
        if !matches!(whole, Expression::Binary(_)) {
            let op = whole.part().map_or(op, |part| equality(op, part));
            return Some(Match { left: whole, op, right: bit_field(mask, data)?.into() });
        }
        let part = expression.part()?;
        let zero = data.iter().all(|byte| *byte == 0);
        let left = expression.clone();
        // `(x & bits) != 0` is how nft lowers a match of any of the bits, `== 0` of none.
        if part.data_type().is_bitmask() && zero && matches!(op, MatchOp::In | MatchOp::Neq) {
            let op = if op == MatchOp::Neq { MatchOp::In } else { MatchOp::None };
            return Some(Match { left, op, right: value(part, mask).into() });
        }
        // A mask of leading ones is a prefix, unless it is of all bits, which nft does not send for a prefix, or the
        // constant has bits outside of it: that never matches, and is listed as it is. The prefix of a field is of
        // its own bits, which may be fewer than its bytes.
        if matches!(op, MatchOp::In | MatchOp::Neq)
            && left.bits().is_none_or(|bits| bits.is_multiple_of(8))
            && let Some(length) = leading_ones(part, mask)
            && mask.iter().any(|byte| *byte != 0xff)
            && data.iter().zip(mask).all(|(data, mask)| data & !mask == 0)
        {
            let right = Expression::prefix(value(part, data), length);
            return Some(Match { left, op, right });
        }
        // Without an operator nft would read the bits as any of them.
        let op = if op == MatchOp::In { MatchOp::Eq } else { op };
        let ordered = matches!(op, MatchOp::Lt | MatchOp::Gt | MatchOp::Lte | MatchOp::Gte);
        let right = said(part, value(part, &if ordered { swap_bytes(part, data) } else { data.to_vec() }))?;
        Some(Match { left: whole, op, right: right.into() })
    }

    /// Raises a comparison of masked bits at the start of an address, or of other bytes of a header. The rest
    /// is not compared, so its mask is zero.
    fn masked_start(&self, content: &Content, op: MatchOp, data: &[u8], width: usize) -> Option<Match> {
        let mut content = content.clone();
        let Content::Loaded { mask: Some((mask, xor)), .. } = &mut content else { return None };
        if mask.len() < data.len() || !matches!(op, MatchOp::In | MatchOp::Neq) {
            return None;
        }
        mask.truncate(data.len());
        mask.resize(width, 0);
        xor.resize(width, 0);
        self.masked(&content, op, &padded(data, width))
    }

    /// Raises bytes of a header as matches of the fields in them: nft merges comparisons of adjacent fields.
    /// The last field may be compared in part, as a prefix.
    fn fields(&self, base: PayloadBase, start: u32, op: MatchOp, data: &[u8]) -> Option<Vec<Match>> {
        // Without a known transport protocol nft lists the bytes by offset.
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
                false => Expression::prefix(value(part, &bytes), u8::try_from(width).ok()?),
            };
            matches.push(Match { left: field.into(), op: equality(op, part), right });
            (at, from, left) = (at + width, from + width, left - width);
        }
        // Bytes after the last known field are listed by offset.
        if left > 0 && !matches.is_empty() {
            let raw = RawPayload { base, offset: at, bits: left };
            let right = Value::Number(integer(Order::Network, &bits(data, from, left, left)));
            matches.push(Match { left: raw.into(), op, right: right.into() });
        }
        // `!=` of several fields together is not `!=` of each.
        (matches.len() == 1 || op == MatchOp::In && !matches.is_empty()).then_some(matches)
    }

    pub(super) fn range(&mut self, r: &expr::Range) -> Option<()> {
        let content = self.registers.get(&r.sreg.first_word()?)?.clone();
        let left = self.whole(&content)?;
        let part = left.part()?;
        let (from, to) = (r.from.value()?, r.to.value()?);
        let bounds = match &content {
            // The bounds of a bit field are shifted to its place.
            Content::Loaded { mask: Some((mask, _)), .. } if !matches!(left, Expression::Binary(_)) => {
                (bit_field(mask, from)?, bit_field(mask, to)?)
            }
            _ => {
                // The kernel compares as many bytes as the bounds have: those behind the field have no words.
                let width = left.bits().map_or_else(|| part.bytes(), |bits| usize::from(bits.div_ceil(8)));
                let bound = |bytes: &[u8]| {
                    let of_field = (bytes.len() == width).then(|| swap_bytes(part, bytes))?;
                    said(part, value(part, &of_field))
                };
                (bound(from)?, bound(to)?)
            }
        };
        self.drop_implied_by(&left);
        let right = Expression::Range(Box::new(bounds));
        let op = match r.op {
            RangeOp::EQ => MatchOp::In,
            RangeOp::NEQ => MatchOp::Neq,
            _ => return None,
        };
        self.emit(Match { left, op, right })
    }
}

/// Returns an address of a connection by the key of its IP version, which needs no match of that.
fn of_one_family(ct: Ct) -> Ct {
    let key = match (ct.key, ct.family) {
        (CtKey::SADDR, Some(Family::IP)) => CtKey::SADDR_IP,
        (CtKey::DADDR, Some(Family::IP)) => CtKey::DADDR_IP,
        (CtKey::SADDR, Some(Family::IP6)) => CtKey::SADDR_IP6,
        (CtKey::DADDR, Some(Family::IP6)) => CtKey::DADDR_IP6,
        _ => return ct,
    };
    Ct { key, family: None, ..ct }
}

/// Returns the prefix of a value of which only the first bytes are compared.
fn short_prefix(part: Part, data: &[u8]) -> Option<Expression> {
    let is_text = matches!(part.data_type(), DataType::IFNAME | DataType::STRING);
    let is_start = !data.is_empty() && data.len() < part.bytes();
    if is_start && !is_text && part.order() == Order::Network { prefix_of(part, data) } else { None }
}

/// Returns the prefix of all values that start with these bytes.
pub(super) fn prefix_of(part: Part, start: &[u8]) -> Option<Expression> {
    let length = u8::try_from(start.len() * 8).ok()?;
    Some(Expression::prefix(value(part, &padded(start, part.bytes())), length))
}

fn is_field(expression: &Expression) -> bool {
    matches!(expression, Expression::Payload(_) | Expression::Exthdr(_) | Expression::Inner(_))
}

fn is_address(part: Part) -> bool {
    matches!(part.data_type(), DataType::IPV4_ADDR | DataType::IPV6_ADDR)
}

fn is_zero(bytes: Option<&[u8]>) -> bool {
    bytes.is_some_and(|bytes| bytes.iter().all(|byte| *byte == 0))
}

/// Pads bytes with zeros at the end.
fn padded(bytes: &[u8], width: usize) -> Vec<u8> {
    let mut padded = bytes.to_vec();
    padded.resize(width, 0);
    padded
}

/// Returns the value of a bit field, shifted down to the lowest bit.
fn bit_field(mask: &[u8], data: &[u8]) -> Option<Value> {
    let (lead, bits) = ones(mask)?;
    let below = mask.len() * 8 - usize::from(lead + bits);
    integer(Order::Network, data).checked_shr(u32::try_from(below).ok()?).map(Value::Number)
}

/// Returns the operator of an equality. For a bit mask nft needs `==`: without an operator it matches any of
/// the bits.
fn equality(op: MatchOp, part: Part) -> MatchOp {
    if op == MatchOp::In && part.data_type().is_bitmask() { MatchOp::Eq } else { op }
}

/// Returns a range of bits as the highest bits of a field.
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
    use crate::compile::raise::{Raise, Sets, in_words};
    use crate::expr::{Bitwise, Cmp, Data, Expr, Register};
    use crate::family::Family;
    use crate::tree::Payload;

    /// Returns the text of a masked comparison with the start of an address. If it is shorter than the
    /// address, it stems from a prefix.
    fn text_of(field: Payload, mask: &[u8], op: CmpOp, data: &[u8]) -> String {
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
        let sets = Sets::new();
        let statements = in_words(Raise::new(family, &sets), &exprs);
        match &statements[..] {
            [Statement::Raw(_)] => String::new(),
            all => all.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "),
        }
    }

    #[test]
    fn bounds_have_words_where_they_are_as_wide_as_what_is_loaded() {
        let load = |dreg, field: Payload| expr::Payload {
            dreg: Some(dreg),
            base: field.base(),
            offset: u32::from(field.offset() / 8),
            len: u32::from(field.bits() / 8),
            sreg: None,
            csum_type: None,
            csum_offset: None,
            csum_flags: None,
        };
        let sreg = Register::word(0);
        let key = expr::Meta { dreg: Some(sreg), key: expr::MetaKey::MARK, sreg: None };
        let loads = [
            (load(sreg, Payload::IP_SADDR).into(), 4),
            (load(sreg, Payload::IP_TTL).into(), 1),
            (Expr::from(key), 4),
        ];
        for (load, width) in loads {
            for bytes in 1..=16 {
                let bound = |last| {
                    let mut bound = vec![0; bytes];
                    bound[bytes - 1] = last;
                    Data::Value(bound.into())
                };
                let range = expr::Range { sreg, op: RangeOp::EQ, from: bound(1), to: bound(2) };
                let sets = Sets::new();
                let statements = in_words(Raise::new(Family::IP, &sets), &[load.clone(), range.into()]);
                let is_raw = matches!(statements[..], [Statement::Raw(_)]);
                assert_eq!(is_raw, bytes != width, "{bytes} for {load:?}: {statements:?}");
            }
        }
    }

    /// nft 1.0.6 generates these for a mask next to a prefix, and lists masks that are not the ones in
    /// effect.
    #[test]
    fn bits_of_the_start_of_an_address_are_bits_of_the_address() {
        let v4 = |mask: &[u8], op, data: &[u8]| text_of(Payload::IP_SADDR, mask, op, data);
        assert_eq!(v4(&[255, 255, 0], CmpOp::EQ, &[10, 1, 0]), "ip saddr 10.1.0.0/16");
        assert_eq!(v4(&[255, 255, 0, 255], CmpOp::NEQ, &[10, 1, 0]), "ip saddr != 10.1.0.0/16");
        assert_eq!(v4(&[255, 0, 255], CmpOp::EQ, &[10, 0, 2]), "ip saddr & 255.0.255.0 == 10.0.2.0");
        let v6 = text_of(Payload::IP6_SADDR, &[0xff, 0xff, 0, 0], CmpOp::EQ, &[0x20, 1, 0, 0]);
        assert_eq!(v6, "ip6 saddr 2001::/16");
        // Bits outside of the mask are kept; comparing their order is not the order of the address.
        assert_eq!(v4(&[255, 255], CmpOp::EQ, &[10, 1, 2]), "ip saddr & 255.255.0.0 == 10.1.2.0");
        assert_eq!(v4(&[255, 255, 0], CmpOp::LT, &[10, 1, 0]), "");
    }

    #[test]
    fn an_address_with_bits_that_are_masked_is_no_prefix() {
        let v4 = |op| text_of(Payload::IP_SADDR, &[255, 255, 0, 0], op, &[10, 1, 2, 3]);
        assert_eq!(v4(CmpOp::EQ), "ip saddr & 255.255.0.0 == 10.1.2.3");
        assert_eq!(v4(CmpOp::NEQ), "ip saddr & 255.255.0.0 != 10.1.2.3");
    }
}
