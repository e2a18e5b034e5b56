//! Expressions into registers.

use std::net::IpAddr;

use crate::datatype::{DataType, Order};
use crate::expr::{
    self, BitwiseOp, ByteorderOp, ExthdrFlags, FibFlags, HashType, NumgenMode, PayloadBase, Register,
};
use crate::key::Part;
use crate::lang::constant::{Bounds, Place};
use crate::lang::lower::inner::tunnel_of;
use crate::lang::lower::{Lower, LowerError};
use crate::lang::{Binary, BinaryOp, Expression, Payload, Value};
use crate::object::element::is_turned;

impl Lower<'_> {
    /// Loads an expression, with what it implies, into the registers from a word on. Returns its bytes.
    pub(crate) fn load(&mut self, expression: &Expression, word: u32) -> Result<u32, LowerError> {
        self.imply(expression)?;
        self.load_plain(expression, word)
    }

    /// Loads a constant of a given type, or else as [`load`](Self::load).
    pub(crate) fn load_as(
        &mut self,
        expression: &Expression,
        parts: &[Part],
        word: u32,
    ) -> Result<u32, LowerError> {
        match (expression, parts) {
            (Expression::Value(value), [part]) => {
                let bytes = Place::of(*part).bytes(value)?;
                Ok(self.immediate(bytes, word))
            }
            (Expression::Concat(list), parts) if list.len() == parts.len() && expression.is_constant() => {
                let mut total = 0;
                for (item, part) in list.iter().zip(parts) {
                    let length = self.load_as(item, std::slice::from_ref(part), word + total / 4)?;
                    total += length.next_multiple_of(4);
                }
                Ok(total)
            }
            (Expression::Map(map), parts) => self.load_map(map, parts, word),
            _ => self.load(expression, word),
        }
    }

    /// Loads a value for a place of its own order: numbers of the host's order are turned for a header or an address, fields of headers for a
    /// mark.
    ///
    /// nft turns fields since 1.0.8; nft 1.0.6 has none of them be a mark. It turns what is written to headers, but too many bytes for a port, and
    /// numbers that become addresses since 1.0.9, if `numgen` makes them.
    pub(super) fn load_for(
        &mut self,
        expression: &Expression,
        to: Part,
        word: u32,
    ) -> Result<u32, LowerError> {
        if to.order() == Order::Host && is_of_headers(expression) {
            self.imply(expression)?;
            return self.load_number(expression, to, word);
        }
        let from = expression.part().filter(|part| part.order() != to.order() && !expression.is_constant());
        let Some(from) = from.filter(|_| to.order() == Order::Network) else {
            return self.load_as(expression, &[to], word);
        };
        if from.bytes() < to.bytes() && to.bytes() > 4 {
            return Err(LowerError::Unsupported {
                what: "this has fewer bytes than what it is put into",
                expression: expression.to_string(),
            });
        }
        let bytes = self.load_as(expression, &[to], word)?;
        if is_turned(from) && matches!(to.bytes(), 2 | 4 | 8) {
            self.turn_register(word, u32::try_from(to.bytes()).unwrap_or(0));
        }
        Ok(bytes)
    }

    /// A number, or what is done with one, for a place in the host's order.
    fn load_number(&mut self, expression: &Expression, to: Part, word: u32) -> Result<u32, LowerError> {
        let bytes = u32::try_from(to.bytes()).unwrap_or(u32::MAX);
        if let Expression::Binary(binary) = expression {
            return self.load_operation(binary, Some(to), word);
        }
        has_word(expression)?;
        let field = self.load_field(expression, word)?;
        let own = field.bytes_of(expression);
        if own > bytes || own > 4 {
            return Err(LowerError::Unsupported {
                what: "this has more bytes than what it is put into",
                expression: expression.to_string(),
            });
        }
        self.mask(&field, word);
        if !is_of_headers(expression) {
            return Ok(bytes);
        }
        if field.bytes > 1 {
            self.turn_words(word, ByteorderOp::NTOH, field.bytes);
        }
        let shift = u32::from(field.shift);
        match field.bytes {
            // The number is the last bytes of four, or else ends behind them.
            3 => self.shift_by(word, 4, BitwiseOp::RSHIFT, shift + 8),
            5 => self.shift_by(word, 8, BitwiseOp::LSHIFT, 8 - shift),
            _ if shift == 0 => {}
            own => self.shift_by(word, own, BitwiseOp::RSHIFT, shift),
        }
        Ok(bytes)
    }

    pub(super) fn load_plain(&mut self, expression: &Expression, word: u32) -> Result<u32, LowerError> {
        has_word(expression)?;
        let field = self.load_field(expression, word)?;
        self.mask(&field, word);
        if field.shift == 0 {
            return Ok(field.bytes);
        }
        let bytes = field.bytes_of(expression);
        self.move_down(&field, bytes, word);
        Ok(bytes)
    }

    /// Loads the bytes that an expression lies in; where it is a bit field, without cutting it out of them.
    pub(super) fn load_field(&mut self, expression: &Expression, word: u32) -> Result<Field, LowerError> {
        let dreg = Register::word(word);
        let whole =
            |bytes: usize| Field { bytes: u32::try_from(bytes).unwrap_or(u32::MAX), mask: None, shift: 0 };
        let part = expression.part().map_or(0, Part::bytes);
        if word >= WORDS || word + u32::try_from(part.div_ceil(4)).unwrap_or(WORDS) > WORDS {
            return Err(LowerError::Registers { expression: expression.to_string() });
        }
        let (offset, bits) = match expression {
            Expression::RawPayload(raw) => (raw.offset, raw.bits),
            Expression::Exthdr(exthdr) => (exthdr.offset(), exthdr.bits()),
            _ => (0, 1),
        };
        if bits == 0 || (u32::from(offset % 8) + u32::from(bits)).div_ceil(8) > MAX_BYTES {
            return Err(LowerError::Unsupported {
                what: "bits of 1 to 16 bytes can be loaded at once",
                expression: expression.to_string(),
            });
        }
        match expression {
            Expression::Payload(p) => return Ok(self.load_start(*p, p.bits(), word)),
            Expression::Inner(inner) => return Ok(self.load_inner_field(inner.tunnel, inner.field, word)),
            Expression::RawPayload(p) => return Ok(self.load_payload(p.base, p.offset, p.bits, word)),
            Expression::Exthdr(exthdr) => {
                let field = Field::of(exthdr.offset(), exthdr.bits());
                self.push(expr::Exthdr {
                    dreg: Some(dreg),
                    kind: exthdr.kind(),
                    offset: Some(u32::from(exthdr.offset() / 8)),
                    len: Some(field.bytes),
                    flags: exthdr.is_presence().then_some(ExthdrFlags::PRESENT),
                    op: Some(exthdr.op()),
                    sreg: None,
                });
                return Ok(field);
            }
            Expression::Meta(key) => self.push(expr::Meta { dreg: Some(dreg), key: *key, sreg: None }),
            Expression::Ct(ct) => {
                self.push(expr::Ct { dreg: Some(dreg), key: ct.key, direction: ct.direction, sreg: None });
            }
            Expression::Rt(rt) => self.push(expr::Rt { dreg, key: rt.key }),
            Expression::Socket(socket) => {
                self.push(expr::Socket { key: socket.key, dreg, level: socket.level });
            }
            Expression::Osf(osf) => self.push(expr::Osf {
                dreg,
                ttl: Some(osf.ttl),
                // The kernel knows this one, or none at all.
                flags: osf.version.then_some(expr::OsfFlags::VERSION),
            }),
            Expression::Fib(fib) => {
                let flags = if fib.check { fib.flags | FibFlags::PRESENT } else { fib.flags };
                self.push(expr::Fib { dreg, result: fib.result, flags });
            }
            Expression::Numgen(numgen) => self.push(expr::Numgen {
                dreg,
                modulus: numgen.modulus,
                mode: NumgenMode(numgen.mode.0),
                offset: Some(numgen.offset),
            }),
            Expression::Jhash(jhash) => {
                // The result is put at `word`, what is hashed behind it.
                let from = word.next_multiple_of(4) + 4;
                let length = self.load_plain(&jhash.of, from)?;
                self.push(expr::Hash {
                    sreg: Some(Register::word(from)),
                    dreg,
                    len: Some(length),
                    modulus: jhash.modulus,
                    seed: jhash.seed,
                    offset: Some(jhash.offset),
                    of: Some(HashType::JENKINS),
                });
            }
            Expression::Symhash(symhash) => self.push(expr::Hash {
                sreg: None,
                dreg,
                len: None,
                modulus: symhash.modulus,
                seed: None,
                offset: Some(symhash.offset),
                of: Some(HashType::SYMMETRIC),
            }),
            Expression::Ipsec(ipsec) => self.push(expr::Xfrm {
                dreg,
                key: ipsec.key,
                direction: u8::from(ipsec.out),
                number: Some(ipsec.number),
            }),
            Expression::Tunnel(key) => self.push(expr::Tunnel { key: *key, dreg, mode: None }),
            Expression::Concat(list) => {
                let mut total = 0;
                for item in list {
                    total += self.load_plain(item, word + total / 4)?.next_multiple_of(4);
                }
                return Ok(whole(usize::try_from(total).unwrap_or(0)));
            }
            Expression::Binary(binary) => {
                return self.load_operation(binary, None, word).map(|bytes| whole(bytes as usize));
            }
            Expression::Map(map) => {
                let bytes = self.load_map(map, &[], word)?;
                return Ok(whole(bytes as usize));
            }
            Expression::Value(value) => {
                let part = expression.part().ok_or_else(|| LowerError::Unsupported {
                    what: "a number needs something that says its width",
                    expression: expression.to_string(),
                })?;
                let bytes = Place::of(part).bytes(value)?;
                self.immediate(bytes, word);
            }
            Expression::Prefix(_)
            | Expression::Range(_)
            | Expression::Set(_)
            | Expression::Elem(_)
            | Expression::Named(_) => {
                return Err(LowerError::Unsupported {
                    what: "this is no single value",
                    expression: expression.to_string(),
                });
            }
        }
        Ok(whole(part))
    }

    pub(super) fn load_payload(&mut self, base: PayloadBase, offset: u16, bits: u16, word: u32) -> Field {
        let field = Field::of(offset, bits);
        self.push(field.load(base, offset, word));
        field
    }

    /// Loads the first bits of a field. Those of a tunnel's own header are found where the kernel looks for what is inside.
    pub(super) fn load_start(&mut self, field: Payload, bits: u16, word: u32) -> Field {
        match tunnel_of(field) {
            Some(tunnel) => self.load_inner(tunnel, field.base(), field.offset(), bits, word),
            None => self.load_payload(field.base(), self.offset_of(field), bits, word),
        }
    }

    /// Clears all bits but the field's.
    pub(super) fn mask(&mut self, field: &Field, word: u32) {
        if let Some(mask) = &field.mask {
            let xor = vec![0; mask.len()];
            self.bitwise(word, mask.clone(), xor);
        }
    }

    /// Moves a field down to the lowest bits of so many bytes, which are the first of the register's, in network order.
    ///
    /// The kernel shifts words of the host's order, so what lies in several bytes is turned before and, where it stays in several, back. nft does the
    /// first since 1.0.8; it does not turn back, and so never finds a key of two bytes (`frag frag-off @s`).
    pub(super) fn move_down(&mut self, field: &Field, bytes: u32, word: u32) {
        let shift = u32::from(field.shift);
        match (field.bytes, bytes) {
            _ if shift == 0 => {}
            (1, _) => self.shift_by(word, 1, BitwiseOp::RSHIFT, shift),
            (2, 1) if cfg!(target_endian = "little") => {
                self.turn_words(word, ByteorderOp::NTOH, 2);
                self.shift_by(word, 2, BitwiseOp::RSHIFT, shift);
            }
            (own, _) => {
                let whole = if (own, bytes) == (2, 2) { 2 } else { own.next_multiple_of(4) };
                self.turn_words(word, ByteorderOp::NTOH, whole);
                // A number that needs a byte less ends where that byte starts.
                match bytes < own {
                    true => self.shift_by(word, whole, BitwiseOp::LSHIFT, 8 - shift),
                    false => self.shift_by(word, whole, BitwiseOp::RSHIFT, shift),
                }
                self.turn_words(word, ByteorderOp::HTON, whole);
            }
        }
    }

    /// What something is done with: for a place in the host's order, or as it is.
    fn load_operand(&mut self, operand: &Expression, to: Option<Part>, word: u32) -> Result<u32, LowerError> {
        match (operand, to) {
            (Expression::Binary(binary), to) => self.load_operation(binary, to, word),
            (_, Some(to)) => self.load_number(operand, to, word),
            (_, None) => self.load_plain(operand, word),
        }
    }

    /// All of `& | ^` with constants in a row are one `(x & mask) ^ xor`; each with something else is one with that in another register.
    fn load_operation(&mut self, binary: &Binary, to: Option<Part>, word: u32) -> Result<u32, LowerError> {
        if let BinaryOp::ShiftLeft | BinaryOp::ShiftRight = binary.op {
            let bytes = self.load_operand(&binary.left, to, word)?;
            let by = Place { bytes: 4, ..Place::of(DataType::INTEGER.into()) };
            let by = crate::key::integer(Order::Host, &Bounds::of(&binary.right, by)?.low);
            let op = if binary.op == BinaryOp::ShiftLeft { BitwiseOp::LSHIFT } else { BitwiseOp::RSHIFT };
            let network = binary.left.part().is_some_and(|part| part.order() == Order::Network);
            let turned = bytes > 1 && to.is_none() && network;
            let whole = if bytes == 2 { 2 } else { bytes.next_multiple_of(4) };
            if turned {
                self.turn_words(word, ByteorderOp::NTOH, whole);
            }
            self.shift_by(word, bytes, op, u32::try_from(by).unwrap_or(u32::MAX));
            if turned {
                self.turn_words(word, ByteorderOp::HTON, whole);
            }
            return Ok(bytes);
        }
        let (inner, ops) = flatten(binary);
        let bytes = self.load_operand(inner, to, word)?;
        let part = to.or_else(|| inner.part()).ok_or_else(|| LowerError::Unsupported {
            what: "only one value at a time can be masked",
            expression: Expression::Binary(Box::new(binary.clone())).to_string(),
        })?;
        let place = Place { bytes: bytes as usize, ..Place::of(part) };
        let mut rest = ops.as_slice();
        while let Some(((op, right), others)) = rest.split_first() {
            let constants = rest.iter().take_while(|(_, right)| right.is_constant()).count();
            if let Some((row, others)) = rest.split_at_checked(constants).filter(|(row, _)| !row.is_empty()) {
                let (mask, xor) = combine(row, place)?;
                self.bitwise(word, mask, xor);
                rest = others;
                continue;
            }
            self.with_register(*op, right, place, word)?;
            rest = others;
        }
        Ok(bytes)
    }

    /// Does something with a register and another value, which is put behind it. Linux 6.13.
    fn with_register(
        &mut self,
        op: BinaryOp,
        right: &Expression,
        left: Place,
        word: u32,
    ) -> Result<(), LowerError> {
        let second = word.next_multiple_of(4) + 4;
        let bytes = self.load_for(right, left.part, second)? as usize;
        let fits = match left.part.order() {
            Order::Host => bytes == left.bytes || bytes < left.bytes && left.bytes <= 4,
            Order::Network => bytes == left.bytes,
        };
        if !fits {
            return Err(LowerError::Unsupported {
                what: "this is not as wide as what it is joined with",
                expression: right.to_string(),
            });
        }
        let register = Register::word(word);
        self.push(expr::Bitwise {
            sreg: register,
            dreg: register,
            len: u32::try_from(left.bytes).unwrap_or(u32::MAX),
            mask: None,
            xor: None,
            op: Some(match op {
                BinaryOp::And => BitwiseOp::AND,
                BinaryOp::Or => BitwiseOp::OR,
                _ => BitwiseOp::XOR,
            }),
            data: None,
            sreg2: Some(Register::word(second)),
        });
        Ok(())
    }
}

/// Whether some of what a value is made from is in network order.
fn is_of_headers(expression: &Expression) -> bool {
    match expression {
        Expression::Binary(binary) => is_of_headers(&binary.left) || is_of_headers(&binary.right),
        other if other.is_constant() => false,
        other => other.part().is_some_and(|part| part.order() == Order::Network),
    }
}

/// Bytes in a register, and which of their bits count.
pub(super) struct Field {
    pub(super) bytes: u32,
    mask: Option<Vec<u8>>,
    pub(super) shift: u16,
}

/// Refuses what nft has no word for where it is not compared.
pub(super) fn has_word(expression: &Expression) -> Result<(), LowerError> {
    match expression {
        Expression::Fib(fib) if !fib.has_word() => Err(LowerError::Unsupported {
            what: "whether there is a route is asked with the result `oif`",
            expression: expression.to_string(),
        }),
        _ => Ok(()),
    }
}

impl Field {
    /// The bytes that so many bits from an offset lie in.
    pub(super) fn of(offset: u16, bits: u16) -> Self {
        let bytes = (offset % 8 + bits).div_ceil(8);
        let shift = bytes * 8 - offset % 8 - bits;
        let mask = (bits != bytes * 8).then(|| {
            let own = offset % 8..offset % 8 + bits;
            let byte = |i| (0..8).fold(0, |byte, bit| byte << 1 | u8::from(own.contains(&(i * 8 + bit))));
            (0..bytes).map(byte).collect()
        });
        Self { bytes: u32::from(bytes), mask, shift }
    }

    /// The bytes that an expression's value has, which may be fewer than those that it lies in.
    fn bytes_of(&self, expression: &Expression) -> u32 {
        expression.part().map_or(self.bytes, |part| u32::try_from(part.bytes()).unwrap_or(u32::MAX))
    }

    /// Loads them from a header.
    pub(super) fn load(&self, base: PayloadBase, offset: u16, word: u32) -> expr::Payload {
        expr::Payload {
            dreg: Some(Register::word(word)),
            base,
            offset: u32::from(offset / 8),
            len: self.bytes,
            sreg: None,
            csum_type: None,
            csum_offset: None,
            csum_flags: None,
        }
    }
}

/// The innermost operand and what is done with it, in order.
pub(super) fn flatten(binary: &Binary) -> (&Expression, Vec<(BinaryOp, &Expression)>) {
    let mut ops = vec![(binary.op, &binary.right)];
    let mut inner = &binary.left;
    while let Expression::Binary(b) = inner
        && !matches!(b.op, BinaryOp::ShiftLeft | BinaryOp::ShiftRight)
    {
        ops.push((b.op, &b.right));
        inner = &b.left;
    }
    ops.reverse();
    // A constant comes second, whatever it is said to be.
    if let Some((_, first)) = ops.first_mut()
        && inner.is_constant()
    {
        std::mem::swap(&mut inner, first);
    }
    (inner, ops)
}

/// `(x & mask) ^ xor` for a row of operations with constants.
pub(super) fn combine(
    ops: &[(BinaryOp, &Expression)],
    place: Place,
) -> Result<(Vec<u8>, Vec<u8>), LowerError> {
    let mut mask = vec![0xff; place.bytes];
    let mut xor = vec![0; place.bytes];
    for (op, constant) in ops {
        let constant = match constant {
            // What is done with an address that has become a number.
            Expression::Value(Value::Address(IpAddr::V4(address))) if place.part.order() == Order::Host => {
                Bounds::of(&u32::from(*address).into(), place)?.low
            }
            constant => Bounds::of(constant, place)?.low,
        };
        for ((m, x), c) in mask.iter_mut().zip(&mut xor).zip(constant) {
            (*m, *x) = match op {
                BinaryOp::And => (*m & c, *x & c),
                BinaryOp::Or => (*m & !c, *x & !c | c),
                _ => (*m, *x ^ c),
            };
        }
    }
    Ok((mask, xor))
}

/// Bytes of a constant that can be compared with (`struct nft_data`).
const MAX_BYTES: u32 = 16;
/// `NFT_REG32_COUNT`
pub(super) const WORDS: u32 = 16;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expr::{CtKey, Expr, MetaKey};
    use crate::lang::exthdr::Exthdr;
    use crate::lang::lower::lower_alone;
    use crate::lang::{Mangle, Match, RawPayload, SetUpdate, Statement};
    use crate::{Family, Name, TableId};

    /// What is done with registers, as nft shows it in short: `load 2`, `& c00f`, `ntoh 2 2`, `>> 6`.
    fn lowered(family: Family, statement: impl Into<Statement>) -> Vec<String> {
        let table = TableId::new(family, Name::held("t"));
        let lowered = lower_alone(&table, &[statement.into()]).unwrap();
        lowered.exprs.iter().map(short).collect()
    }

    fn short(expr: &Expr) -> String {
        let hex = |data: &Option<expr::Data>| {
            let bytes = data.as_ref().and_then(expr::Data::value).unwrap_or_default();
            bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>()
        };
        let by = |data: &Option<expr::Data>| {
            crate::key::integer(Order::Host, data.as_ref().unwrap().value().unwrap())
        };
        match expr {
            Expr::Payload(p) => format!("load {}", p.len),
            Expr::Exthdr(e) => format!("load {}", e.len.unwrap()),
            Expr::Byteorder(b) if b.op == ByteorderOp::NTOH => format!("ntoh {} {}", b.len, b.size),
            Expr::Byteorder(b) => format!("hton {} {}", b.len, b.size),
            Expr::Bitwise(b) if b.op == Some(BitwiseOp::LSHIFT) => format!("<< {}", by(&b.data)),
            Expr::Bitwise(b) if b.op == Some(BitwiseOp::RSHIFT) => format!(">> {}", by(&b.data)),
            Expr::Bitwise(b) if b.sreg2.is_some() => {
                let word = |register: Register| register.first_word().unwrap();
                format!("{} {:?} {}", word(b.sreg), b.op.unwrap(), word(b.sreg2.unwrap()))
            }
            Expr::Bitwise(b) => format!("& {} ^ {}", hex(&b.mask), hex(&b.xor)),
            other => other.name().to_owned(),
        }
    }

    /// The byte codes are those of nft's tests `ip6/ip6.t` and `ip6/ct.t`.
    #[test]
    #[cfg(target_endian = "little")]
    fn bits_across_bytes_are_moved_as_nft_moves_them() {
        let dscp = || Expression::from(Payload::IP6_DSCP);
        let (set, map) = (Name::held("s"), Name::held("m"));
        let number = ["load 2", "& 0fc0 ^ 0000", "ntoh 2 2", ">> 6"];
        let with = |last: &[&'static str]| [&number, last].concat();
        let look_up = Match::new(dscp(), Expression::named(&set));
        assert_eq!(lowered(Family::IP6, look_up), with(&["lookup"]));
        assert_eq!(lowered(Family::IP6, SetUpdate::update(&set, dscp())), with(&["dynset"]));
        let pair = Expression::concat([dscp(), Payload::IP6_DADDR.into()]);
        assert_eq!(
            lowered(Family::IP6, Match::new(pair.clone(), Expression::named(&set))),
            with(&["load 16", "lookup"])
        );
        let of_pair = Mangle::new(MetaKey::MARK, pair.map(&map));
        assert_eq!(lowered(Family::IP6, of_pair), with(&["load 16", "lookup", "meta"]));
        assert_eq!(lowered(Family::IP6, Mangle::new(MetaKey::MARK, dscp())), with(&["meta"]));
        let shifted = dscp().binary(BinaryOp::ShiftLeft, 2_u32).or(0x10_u32);
        let ct = Mangle::new(CtKey::MARK, shifted);
        assert_eq!(lowered(Family::IP6, ct), with(&["<< 2", "& efffffff ^ 10000000", "ct"]));
    }

    /// No version of nft does this right: a key of two bytes is in network order, as the set's elements are.
    #[test]
    fn a_key_of_several_bytes_is_turned_back() {
        let key = |field: Expression| {
            let all = lowered(Family::IP6, Match::new(field, Expression::named(&Name::held("s"))));
            all[2..all.len() - 1].to_vec()
        };
        let at = |offset, bits| key(RawPayload { base: PayloadBase::NETWORK, offset, bits }.into());
        let frag = Exthdr::find(expr::ExthdrOp::IPV6, "frag", "frag-off").unwrap();
        assert_eq!(key(frag.into()), ["ntoh 2 2", ">> 3", "hton 2 2"]);
        assert_eq!(at(4, 10), ["ntoh 2 2", ">> 2", "hton 2 2"]);
        assert_eq!(at(7, 16), ["ntoh 4 4", "<< 7", "hton 4 4"]);
        assert_eq!(at(4, 33), ["ntoh 4 4", "ntoh 4 4", ">> 3", "hton 4 4", "hton 4 4"]);
        assert_eq!(at(4, 20), Vec::<String>::new());
    }

    /// The byte codes are those of nft's tests `any/ct.t`, `ip/ct.t` and `ip6/ct.t`.
    #[test]
    #[cfg(target_endian = "little")]
    fn two_values_are_joined_in_two_registers() {
        let (meta, ct) = (|| Expression::from(MetaKey::MARK), || Expression::from(CtKey::MARK));
        let set = |family, value| lowered(family, Mangle::new(CtKey::MARK, value));
        assert_eq!(
            set(Family::IP, ct().and(0xffff_0000_u32).or(meta().and(0xffff_u32))),
            ["ct", "& 0000ffff ^ 00000000", "meta", "& ffff0000 ^ 00000000", "0 BitwiseOp(|) 4", "ct"]
        );
        let last = ["0 BitwiseOp(|) 4", "& fffdffff ^ 00020000", "ct"];
        assert_eq!(
            set(Family::IP, ct().or(Payload::IP_DSCP).or(0x200_u32)),
            [&["ct", "load 1", "& fc ^ 00", ">> 2"], &last[..]].concat()
        );
        assert_eq!(
            set(Family::IP6, ct().or(Payload::IP6_DSCP).or(0x200_u32)),
            [&["ct", "load 2", "& 0fc0 ^ 0000", "ntoh 2 2", ">> 6"], &last[..]].concat()
        );
        // A constant comes second.
        let first = Expression::from(1_u32).or(meta());
        assert_eq!(set(Family::IP, first), ["meta", "& feffffff ^ 01000000", "ct"]);
    }

    #[test]
    fn values_of_other_widths_are_not_joined() {
        let table = TableId::new(Family::IP, Name::held("t"));
        let set = |field: Payload, with: Payload| {
            let statement = Mangle::new(field, Expression::from(field).or(with)).into();
            lower_alone(&table, &[statement]).map(drop).map_err(|e| e.to_string())
        };
        set(Payload::IP_SADDR, Payload::IP_DADDR).unwrap();
        let refused = "this is not as wide as what it is joined with: `tcp dport`";
        assert_eq!(set(Payload::IP_SADDR, Payload::TCP_DPORT).unwrap_err(), refused);
    }

    /// The first is of nft's test `ip/numgen.t`.
    #[test]
    fn numbers_are_turned_into_addresses_and_ports() {
        let number = || {
            Expression::Numgen(crate::lang::Numgen { mode: NumgenMode::INCREMENTAL, modulus: 7, offset: 1 })
        };
        let dnat = Statement::Dnat(crate::lang::Nat::to_port(number(), number()));
        assert_eq!(lowered(Family::IP, dnat), ["numgen", "hton 4 4", "numgen", "hton 2 2", "nat"]);
        let wide = Mangle::new(Payload::IP6_SADDR, number()).into();
        let table = TableId::new(Family::IP6, Name::held("t"));
        let refused = lower_alone(&table, &[wide]).unwrap_err().to_string();
        assert_eq!(refused, "this has fewer bytes than what it is put into: `numgen inc mod 7 offset 1`");
    }

    #[test]
    fn what_is_wider_than_a_mark_is_refused() {
        let table = TableId::new(Family::IP6, Name::held("t"));
        let mark = |field: Payload| {
            let statement = Mangle::new(MetaKey::MARK, Expression::from(field)).into();
            lower_alone(&table, &[statement]).map(drop).map_err(|e| e.to_string())
        };
        mark(Payload::IP6_FLOWLABEL).unwrap();
        let refused = "this has more bytes than what it is put into: `ip6 saddr`";
        assert_eq!(mark(Payload::IP6_SADDR).unwrap_err(), refused);
    }

    #[test]
    fn no_bits_and_too_many_are_refused() {
        let table = TableId::new(Family::INET, "t".parse().unwrap());
        let loads = |of: Expression| {
            let set = Expression::set([Expression::from(0_u32), 1_u32.into()]);
            lower_alone(&table, &[Match::new(of, set).into()]).map_err(|e| e.to_string())
        };
        for (offset, bits) in [(0, 0), (4, 0), (4, 128), (3, u16::MAX)] {
            let raw = RawPayload { base: PayloadBase::TRANSPORT, offset, bits };
            let refused = format!("bits of 1 to 16 bytes can be loaded at once: `@th,{offset},{bits}`");
            assert_eq!(loads(raw.into()).unwrap_err(), refused);
            let option = Exthdr::tcp_option_at(253, offset, bits);
            assert!(loads(option.into()).unwrap_err().starts_with("bits of 1 to 16 bytes"));
        }
        for (offset, bits) in [(4, 4), (0, 64), (5, 1), (4, 64), (0, 128)] {
            loads(Exthdr::tcp_option_at(253, offset, bits).into()).unwrap();
        }
    }

    #[test]
    fn a_bit_field_is_cut_out_of_its_bytes_however_many() {
        let mask = |offset, bits| Field::of(offset, bits).mask;
        assert_eq!(mask(0, 16), None);
        assert_eq!(mask(12, 20).as_deref(), Some(&[0x0f, 0xff, 0xff][..]));
        assert_eq!(mask(8, 6).as_deref(), Some(&[0xfc][..]));
        let wide = mask(4, 68).unwrap();
        assert_eq!((wide.len(), wide[0], wide[8]), (9, 0x0f, 0xff));
        assert_eq!(mask(4, 64).unwrap()[8], 0xf0);
    }
}
