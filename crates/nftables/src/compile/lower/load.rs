//! Loads expressions into registers.

use std::net::IpAddr;

use crate::check::LowerError;
use crate::compile::constant::{Bounds, Place};
use crate::compile::lower::Lower;
use crate::datatype::{DataType, Order};
use crate::expr::{
    self, BitwiseOp, ByteorderOp, CtKey, ExthdrFlags, FibFlags, HashType, NumgenMode, PayloadBase, Register,
};
use crate::family::Family;
use crate::key::{Part, is_byte_swapped};
use crate::tree::exthdr::Exthdr;
use crate::tree::{Binary, BinaryOp, Expression, Payload, Value, tunnel_of};

impl Lower<'_> {
    /// Adds the matches that an expression implies, and loads it into registers from `word` on. Returns its
    /// length in bytes.
    pub(crate) fn load(&mut self, expression: &Expression, word: u32) -> Result<u32, LowerError> {
        self.imply(expression)?;
        self.load_plain(expression, word)
    }

    /// Loads a constant as a value of these types, and any other expression as [`load`](Self::load) does.
    pub(crate) fn load_as(
        &mut self,
        expression: &Expression,
        parts: &[Part],
        word: u32,
    ) -> Result<u32, LowerError> {
        match (expression, parts) {
            // A number has no length of its own, so it takes that of the type.
            (Expression::Value(value), [part]) => {
                let bytes = Place::of(*part).bytes(value)?;
                Ok(self.immediate(bytes, word))
            }
            (Expression::Concat(list), parts) if list.len() == parts.len() && expression.is_constant() => {
                // In a concatenation each constant takes the length of the type at its position.
                let mut total = 0;
                for (item, part) in list.iter().zip(parts) {
                    let length = self.load_as(item, std::slice::from_ref(part), word + total / 4)?;
                    total += length.next_multiple_of(4);
                }
                Ok(total)
            }
            // The values of an anonymous map are constants, which need the types too.
            (Expression::Map(map), parts) => self.load_map(map, parts, word),
            _ => self.load(expression, word),
        }
    }

    /// Loads a value for a destination with its own byte order. Numbers in host byte order are byte-swapped
    /// for a header field or an address, header fields for a mark.
    ///
    /// nft swaps header fields since 1.0.8; 1.0.6 refuses them as a mark. nft swaps what is written to header
    /// fields, but too many bytes for a port. Numbers from `numgen` that become addresses it swaps since
    /// 1.0.9.
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
        // `numgen` and hashes yield four bytes, which cannot fill an IPv6 address.
        if from.bytes() < to.bytes() && to.bytes() > 4 {
            return Err(LowerError::Unsupported {
                what: "the value has fewer bytes than its destination",
                expression: expression.to_string(),
            });
        }
        let bytes = self.load_as(expression, &[to], word)?;
        // `nft_byteorder` swaps units of 2, 4 or 8 bytes, and refuses others.
        if is_byte_swapped(from) && matches!(to.bytes(), 2 | 4 | 8) {
            self.swap_register(word, u32::try_from(to.bytes()).unwrap_or(0));
        }
        Ok(bytes)
    }

    /// Loads a number, or an operation on numbers, in host byte order.
    fn load_number(&mut self, expression: &Expression, to: Part, word: u32) -> Result<u32, LowerError> {
        let bytes = u32::try_from(to.bytes()).unwrap_or(u32::MAX);
        if let Expression::Binary(binary) = expression {
            return self.load_operation(binary, Some(to), word);
        }
        is_expressible(expression)?;
        let field = self.load_field(expression, word)?;
        let own = field.bytes_of(expression);
        // The kernel stores a mark as one 32-bit word; the upper bytes of a longer field would be lost.
        if own > bytes || own > 4 {
            return Err(LowerError::Unsupported {
                what: "the value has more bytes than its destination",
                expression: expression.to_string(),
            });
        }
        self.mask(&field, word);
        if !is_of_headers(expression) {
            return Ok(bytes);
        }
        // A single byte has no order.
        if field.bytes > 1 {
            self.swap_words(word, ByteorderOp::NTOH, field.bytes);
        }
        let shift = u32::from(field.shift);
        // The field ends `shift` bits before the end of its last byte.
        match field.bytes {
            // Swapped as a 32-bit word, three bytes are its upper ones. Five bytes span two words: shifted
            // left, the field ends with the first one.
            3 => self.shift_by(word, 4, BitwiseOp::RSHIFT, shift + 8),
            5 => self.shift_by(word, 8, BitwiseOp::LSHIFT, 8 - shift),
            _ if shift == 0 => {}
            own => self.shift_by(word, own, BitwiseOp::RSHIFT, shift),
        }
        Ok(bytes)
    }

    pub(super) fn load_plain(&mut self, expression: &Expression, word: u32) -> Result<u32, LowerError> {
        is_expressible(expression)?;
        let field = self.load_field(expression, word)?;
        self.mask(&field, word);
        if field.shift == 0 {
            return Ok(field.bytes);
        }
        let bytes = field.bytes_of(expression);
        self.move_down(&field, bytes, word);
        Ok(bytes)
    }

    /// Loads the bytes that contain an expression; of a bit field, all bits of these bytes.
    pub(super) fn load_field(&mut self, expression: &Expression, word: u32) -> Result<Field, LowerError> {
        let dreg = Register::word(word);
        let whole =
            |bytes: usize| Field { bytes: u32::try_from(bytes).unwrap_or(u32::MAX), mask: None, shift: 0 };
        let part = expression.part().map_or(0, Part::bytes);
        // `nft_validate_register_store` refuses a value that extends beyond the last register.
        if word >= WORDS || word + u32::try_from(part.div_ceil(4)).unwrap_or(WORDS) > WORDS {
            return Err(LowerError::Registers { expression: expression.to_string() });
        }
        let (offset, bits) = match expression {
            Expression::RawPayload(raw) => (raw.offset, raw.bits),
            Expression::Exthdr(exthdr) => (exthdr.offset(), exthdr.bits()),
            _ => (0, 1),
        };
        // A constant has at most 16 bytes (`struct nft_data`), so a longer field could not be compared with
        // anything.
        if bits == 0 || (u32::from(offset % 8) + u32::from(bits)).div_ceil(8) > MAX_BYTES {
            return Err(LowerError::Unsupported {
                what: "expected bits of 1 to 16 bytes",
                expression: expression.to_string(),
            });
        }
        match expression {
            Expression::Payload(p) => return Ok(self.load_start(*p, p.bits(), word)),
            Expression::Inner(inner) => return Ok(self.load_inner_field(inner.tunnel, inner.field, word)),
            Expression::RawPayload(p) => return Ok(self.load_payload(p.base, p.offset, p.bits, word)),
            Expression::Exthdr(exthdr) => {
                self.load_option(*exthdr, exthdr.bits(), word);
                return Ok(Field::of(exthdr.offset(), exthdr.bits()));
            }
            Expression::Meta(key) => self.push(expr::Meta { dreg: Some(dreg), key: *key, sreg: None }),
            Expression::Ct(ct) => {
                // Where neither the table nor a match determines the IP version, the key has to.
                let known = self.judge.context().network;
                let key = match (ct.key, ct.family.filter(|family| known != Some(*family))) {
                    (CtKey::SADDR, Some(Family::IP)) => CtKey::SADDR_IP,
                    (CtKey::DADDR, Some(Family::IP)) => CtKey::DADDR_IP,
                    (CtKey::SADDR, Some(Family::IP6)) => CtKey::SADDR_IP6,
                    (CtKey::DADDR, Some(Family::IP6)) => CtKey::DADDR_IP6,
                    (key, _) => key,
                };
                self.push(expr::Ct { dreg: Some(dreg), key, direction: ct.direction, sreg: None });
            }
            Expression::Rt(rt) => self.push(expr::Rt { dreg, key: rt.key }),
            Expression::Socket(socket) => {
                self.push(expr::Socket { key: socket.key, dreg, level: socket.level });
            }
            Expression::Osf(osf) => self.push(expr::Osf {
                dreg,
                ttl: Some(osf.ttl),
                // `NFT_OSF_F_VERSION` is the only value that the kernel accepts, so the attribute is left out
                // otherwise.
                flags: osf.version.then_some(expr::OsfFlags::VERSION),
            }),
            Expression::Fib(fib) => {
                // `fib ... exists` differs from a lookup only in this flag.
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
                // The result goes to `word`, the data to hash to the next 16-byte register, so that they do
                // not overlap.
                let from = (word + 1).next_multiple_of(4);
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
                // The symmetric hash reads the packet's flow, not a register.
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
            // Without a mode the kernel matches tunnels in both directions; nft never sends one.
            Expression::Tunnel(key) => self.push(expr::Tunnel { key: *key, dreg, mode: None }),
            Expression::Concat(list) => {
                let mut total = 0;
                for item in list {
                    // Each part of a concatenation starts at its own 32-bit register, as the fields of a
                    // set's key do.
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
                // A number that is looked up alone has no field that determines its length.
                let part = expression.part().ok_or_else(|| LowerError::Unsupported {
                    what: "the width of this number is not known",
                    expression: expression.to_string(),
                })?;
                let bytes = Place::of(part).bytes(value)?;
                self.immediate(bytes, word);
            }
            Expression::Prefix(_)
            | Expression::Range(_)
            | Expression::Set(_)
            | Expression::Any
            | Expression::Elem(_)
            | Expression::Named(_) => {
                return Err(LowerError::Unsupported {
                    what: "expected a single value",
                    expression: expression.to_string(),
                });
            }
        }
        Ok(whole(part))
    }

    /// Loads the bytes that contain the first `bits` of a field of an extension header, an option or a chunk.
    pub(super) fn load_option(&mut self, of: Exthdr, bits: u16, word: u32) {
        // The kernel locates options and chunks by their type, and counts the offset from there.
        self.push(expr::Exthdr {
            dreg: Some(Register::word(word)),
            kind: of.kind(),
            offset: Some(u32::from(of.offset() / 8)),
            len: Some(Field::of(of.offset(), bits).bytes),
            flags: of.is_presence().then_some(ExthdrFlags::PRESENT),
            op: Some(of.op()),
            sreg: None,
        });
    }

    pub(super) fn load_payload(&mut self, base: PayloadBase, offset: u16, bits: u16, word: u32) -> Field {
        let field = Field::of(offset, bits);
        self.push(field.load(base, offset, word));
        field
    }

    /// Loads the first `bits` of a field. For a field of a tunnel's own header, an `inner` expression finds
    /// where that header starts.
    pub(super) fn load_start(&mut self, field: Payload, bits: u16, word: u32) -> Field {
        match tunnel_of(field) {
            Some(tunnel) => self.load_inner(tunnel, field.base(), field.offset(), bits, word),
            None => self.load_payload(field.base(), self.offset_of(field), bits, word),
        }
    }

    /// Clears all bits that do not belong to the field.
    pub(super) fn mask(&mut self, field: &Field, word: u32) {
        if let Some(mask) = &field.mask {
            let xor = vec![0; mask.len()];
            self.bitwise(word, mask.clone(), xor);
        }
    }

    /// Shifts a field to the lowest bits of a value of `bytes` bytes in network byte order, at the start of
    /// the register.
    ///
    /// The kernel shifts words in host byte order, so a field in several bytes is byte-swapped before, and
    /// afterwards swapped back unless the result has a single byte. nft swaps before since 1.0.8, but not
    /// back, so it never finds a key of two bytes (`frag frag-off @s`).
    pub(super) fn move_down(&mut self, field: &Field, bytes: u32, word: u32) {
        let shift = u32::from(field.shift);
        match (field.bytes, bytes) {
            _ if shift == 0 => {}
            // One byte has no order.
            (1, _) => self.shift_by(word, 1, BitwiseOp::RSHIFT, shift),
            // On a little-endian machine the lowest byte of the shifted word comes first, where a key of one
            // byte is read: no swap back.
            (2, 1) if cfg!(target_endian = "little") => {
                self.swap_words(word, ByteorderOp::NTOH, 2);
                self.shift_by(word, 2, BitwiseOp::RSHIFT, shift);
            }
            (own, _) => {
                let whole = if (own, bytes) == (2, 2) { 2 } else { own.next_multiple_of(4) };
                self.swap_words(word, ByteorderOp::NTOH, whole);
                // If the number needs a byte less than the field spans, it has to end where that byte starts.
                match bytes < own {
                    true => self.shift_by(word, whole, BitwiseOp::LSHIFT, 8 - shift),
                    false => self.shift_by(word, whole, BitwiseOp::RSHIFT, shift),
                }
                self.swap_words(word, ByteorderOp::HTON, whole);
            }
        }
    }

    /// Loads the left operand of an operation, converted to the byte order of `to` if that is given.
    fn load_operand(&mut self, operand: &Expression, to: Option<Part>, word: u32) -> Result<u32, LowerError> {
        match (operand, to) {
            (Expression::Binary(binary), to) => self.load_operation(binary, to, word),
            (_, Some(to)) => self.load_number(operand, to, word),
            (_, None) => self.load_plain(operand, word),
        }
    }

    /// Loads `x OP y`. Several `& | ^` with constants are one `(x & mask) ^ xor`; another kind of right
    /// operand needs a second register.
    fn load_operation(&mut self, binary: &Binary, to: Option<Part>, word: u32) -> Result<u32, LowerError> {
        if let BinaryOp::ShiftLeft | BinaryOp::ShiftRight = binary.op {
            let bytes = self.load_operand(&binary.left, to, word)?;
            // The number of bits is sent as a `u32` in host byte order, whatever the left operand is.
            let by = Place { bytes: 4, ..Place::of(DataType::INTEGER.into()) };
            let by = crate::key::integer(Order::Host, &Bounds::of(&binary.right, by)?.low);
            let op = if binary.op == BinaryOp::ShiftLeft { BitwiseOp::LSHIFT } else { BitwiseOp::RSHIFT };
            // A shift works on words in host byte order: bits of a header field that cross bytes would go the
            // wrong way.
            let network = binary.left.part().is_some_and(|part| part.order() == Order::Network);
            let byte_swapped = bytes > 1 && to.is_none() && network;
            let whole = if bytes == 2 { 2 } else { bytes.next_multiple_of(4) };
            if byte_swapped {
                self.swap_words(word, ByteorderOp::NTOH, whole);
            }
            self.shift_by(word, bytes, op, u32::try_from(by).unwrap_or(u32::MAX));
            if byte_swapped {
                self.swap_words(word, ByteorderOp::HTON, whole);
            }
            return Ok(bytes);
        }
        let (inner, ops) = flatten(binary);
        // The mask that extracts an unshifted bit field is combined with the constants into one expression,
        // as nft does.
        let field = match (inner, to, ops.first()) {
            (
                Expression::Payload(_) | Expression::RawPayload(_) | Expression::Exthdr(_),
                None,
                Some((_, first)),
            ) if first.is_constant() => Some(self.load_field(inner, word)?),
            _ => None,
        };
        let (bytes, mut cut) = match field {
            Some(field) if field.shift == 0 => (field.bytes, field.mask),
            // Constants apply to the value, so a shifted field has to be moved down first.
            Some(field) => {
                self.mask(&field, word);
                let bytes = field.bytes_of(inner);
                self.move_down(&field, bytes, word);
                (bytes, None)
            }
            None => (self.load_operand(inner, to, word)?, None),
        };
        let part = to.or_else(|| inner.part()).ok_or_else(|| LowerError::Unsupported {
            what: "only a single value can be masked or shifted",
            expression: Expression::Binary(Box::new(binary.clone())).to_string(),
        })?;
        let place = Place { bytes: bytes as usize, ..Place::of(part) };
        let mut rest = ops.as_slice();
        while let Some(((op, right), others)) = rest.split_first() {
            let constants = rest.iter().take_while(|(_, right)| right.is_constant()).count();
            // nft emits one `bitwise` for consecutive constants.
            if let Some((row, others)) = rest.split_at_checked(constants).filter(|(row, _)| !row.is_empty()) {
                let (mask, xor) = combine(row, place, cut.take())?;
                self.bitwise(word, mask, xor);
                rest = others;
                continue;
            }
            self.with_register(*op, right, place, word)?;
            rest = others;
        }
        Ok(bytes)
    }

    /// Combines a register with another value, which is loaded into the next register (since Linux 6.13).
    fn with_register(
        &mut self,
        op: BinaryOp,
        right: &Expression,
        left: Place,
        word: u32,
    ) -> Result<(), LowerError> {
        // A value may fill a 16-byte register, so the second operand goes to the next one.
        let second = word.next_multiple_of(4) + 4;
        let bytes = self.load_for(right, left.part, second)? as usize;
        // A shorter number in host byte order is extended by zeros in its word. In network byte order the
        // bytes would not align.
        let fits = match left.part.order() {
            Order::Host => bytes == left.bytes || bytes < left.bytes && left.bytes <= 4,
            Order::Network => bytes == left.bytes,
        };
        if !fits {
            return Err(LowerError::Unsupported {
                what: "the two operands differ in width",
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

/// Returns whether an operand of a value is in network byte order.
fn is_of_headers(expression: &Expression) -> bool {
    match expression {
        Expression::Binary(binary) => is_of_headers(&binary.left) || is_of_headers(&binary.right),
        other if other.is_constant() => false,
        // nft takes as many bytes as a mark has as they are, where they have no name. Fewer are a number.
        Expression::RawPayload(raw) if raw.bits == 32 => false,
        other => other.part().is_some_and(|part| part.order() == Order::Network),
    }
}

/// The bytes of a field in a register, and which of their bits belong to it.
pub(super) struct Field {
    pub(super) bytes: u32,
    mask: Option<Vec<u8>>,
    pub(super) shift: u16,
}

/// Refuses an expression that nft's language only has as part of a comparison.
pub(super) fn is_expressible(expression: &Expression) -> Result<(), LowerError> {
    match expression {
        Expression::Fib(fib) if !fib.is_expressible() => Err(LowerError::Unsupported {
            what: "only the result `oif` can be asked for the existence of a route",
            expression: expression.to_string(),
        }),
        _ => Ok(()),
    }
}

impl Field {
    /// Returns the bytes that contain `bits` bits from an offset.
    pub(super) fn of(offset: u16, bits: u16) -> Self {
        let bytes = (offset % 8 + bits).div_ceil(8);
        let shift = bytes * 8 - offset % 8 - bits;
        // The kernel loads whole bytes, so the bits beside the field have to be masked out.
        let mask = (bits != bytes * 8).then(|| {
            let own = offset % 8..offset % 8 + bits;
            let byte = |i| (0..8).fold(0, |byte, bit| byte << 1 | u8::from(own.contains(&(i * 8 + bit))));
            (0..bytes).map(byte).collect()
        });
        Self { bytes: u32::from(bytes), mask, shift }
    }

    /// Returns the length of an expression's value in bytes, which may be less than the bytes that contain
    /// it.
    pub(super) fn bytes_of(&self, expression: &Expression) -> u32 {
        expression.part().map_or(self.bytes, |part| u32::try_from(part.bytes()).unwrap_or(u32::MAX))
    }

    /// Returns the expression that loads the field from a header.
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

/// Returns the innermost operand and the operations on it, in order.
pub(super) fn flatten(binary: &Binary) -> (&Expression, Vec<(BinaryOp, &Expression)>) {
    let mut ops = vec![(binary.op, &binary.right)];
    let mut inner = &binary.left;
    while let Expression::Binary(b) = inner
        // A shift is not part of `(x & mask) ^ xor`.
        && !matches!(b.op, BinaryOp::ShiftLeft | BinaryOp::ShiftRight)
    {
        ops.push((b.op, &b.right));
        inner = &b.left;
    }
    ops.reverse();
    // The constant becomes mask or xor, so it has to be the right operand: `1 | meta mark` is lowered as
    // `meta mark | 1`.
    if let Some((_, first)) = ops.first_mut()
        && inner.is_constant()
    {
        std::mem::swap(&mut inner, first);
    }
    (inner, ops)
}

/// Combines several operations with constants into one `(x & mask) ^ xor`. `cut` is the mask of the bit
/// field, if its bits have not been extracted yet.
pub(super) fn combine(
    ops: &[(BinaryOp, &Expression)],
    place: Place,
    cut: Option<Vec<u8>>,
) -> Result<(Vec<u8>, Vec<u8>), LowerError> {
    let mut mask = cut.unwrap_or_else(|| vec![0xff; place.bytes]);
    let mut xor = vec![0; place.bytes];
    for (op, constant) in ops {
        let constant = match constant {
            // An address combined with a mark is a number in host byte order.
            Expression::Value(Value::Address(IpAddr::V4(address))) if place.part.order() == Order::Host => {
                Bounds::of(&u32::from(*address).into(), place)?.low
            }
            constant => Bounds::of(constant, place)?.low,
        };
        for ((m, x), c) in mask.iter_mut().zip(&mut xor).zip(constant) {
            // `|` clears a bit by the mask and sets it by the xor.
            (*m, *x) = match op {
                BinaryOp::And => (*m & c, *x & c),
                BinaryOp::Or => (*m & !c, *x & !c | c),
                _ => (*m, *x ^ c),
            };
        }
    }
    Ok((mask, xor))
}

/// The maximum length of a constant (`struct nft_data`).
const MAX_BYTES: u32 = 16;
/// `NFT_REG32_COUNT`
pub(super) const WORDS: u32 = 16;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compile::lower::lower_alone;
    use crate::expr::{CtKey, Expr, MetaKey};
    use crate::tree::{Mangle, Match, RawPayload, SetUpdate, Statement};
    use crate::{Family, Name, TableId};

    /// Returns the operations on registers in short: `load 2`, `& c00f`, `ntoh 2 2`, `>> 6`.
    fn lowered(family: Family, statement: impl Into<Statement>) -> Vec<String> {
        let table = TableId::new(family, Name::from_kernel("t"));
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

    /// The bytecode is that of nft's tests `ip6/ip6.t` and `ip6/ct.t`.
    #[test]
    #[cfg(target_endian = "little")]
    fn bits_across_bytes_are_moved_as_nft_moves_them() {
        let dscp = || Expression::from(Payload::IP6_DSCP);
        let (set, map) = (Name::from_kernel("s"), Name::from_kernel("m"));
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

    /// No version of nft gets this right: a key of two bytes has to be in network byte order, like the set's
    /// elements.
    #[test]
    fn a_key_of_several_bytes_is_swapped_back() {
        let key = |field: Expression| {
            let all = lowered(Family::IP6, Match::new(field, Expression::named(&Name::from_kernel("s"))));
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

    /// The bytecode is that of nft's tests `any/ct.t`, `ip/ct.t` and `ip6/ct.t`.
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
        // A constant is always the second operand.
        let first = Expression::from(1_u32).or(meta());
        assert_eq!(set(Family::IP, first), ["meta", "& feffffff ^ 01000000", "ct"]);
    }

    #[test]
    fn values_of_other_widths_are_not_joined() {
        let table = TableId::new(Family::IP, Name::from_kernel("t"));
        let set = |field: Payload, with: Payload| {
            let statement = Mangle::new(field, Expression::from(field).or(with)).into();
            lower_alone(&table, &[statement]).map(drop).map_err(|e| e.to_string())
        };
        set(Payload::IP_SADDR, Payload::IP_DADDR).unwrap();
        let refused = "the two operands differ in width: `tcp dport`";
        assert_eq!(set(Payload::IP_SADDR, Payload::TCP_DPORT).unwrap_err(), refused);
    }

    /// The first case is from nft's test `ip/numgen.t`.
    #[test]
    fn numbers_are_byte_swapped_for_addresses_and_ports() {
        let number = || {
            Expression::Numgen(crate::tree::Numgen { mode: NumgenMode::INCREMENTAL, modulus: 7, offset: 1 })
        };
        let dnat = Statement::dnat(crate::tree::Nat::to_port(number(), number()));
        let rule = [Match::new(MetaKey::L4PROTO, 6_u32).into(), dnat];
        let table = TableId::new(Family::IP, Name::from_kernel("t"));
        let exprs = lower_alone(&table, &rule).unwrap().exprs;
        let all: Vec<_> = exprs.iter().map(short).collect();
        assert_eq!(all, ["meta", "cmp", "numgen", "hton 4 4", "numgen", "hton 2 2", "nat"]);
        let wide = Mangle::new(Payload::IP6_SADDR, number()).into();
        let table = TableId::new(Family::IP6, Name::from_kernel("t"));
        let refused = lower_alone(&table, &[wide]).unwrap_err().to_string();
        assert_eq!(refused, "the value has fewer bytes than its destination: `numgen inc mod 7 offset 1`");
    }

    #[test]
    fn what_is_wider_than_a_mark_is_refused() {
        let table = TableId::new(Family::IP6, Name::from_kernel("t"));
        let mark = |field: Payload| {
            let statement = Mangle::new(MetaKey::MARK, Expression::from(field)).into();
            lower_alone(&table, &[statement]).map(drop).map_err(|e| e.to_string())
        };
        mark(Payload::IP6_FLOWLABEL).unwrap();
        let refused = "`ip6 saddr` is of type ipv6_addr, expected mark";
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
            let refused = format!("expected bits of 1 to 16 bytes: `@th,{offset},{bits}`");
            assert_eq!(loads(raw.into()).unwrap_err(), refused);
            let option = Exthdr::tcp_option_at(253, offset, bits);
            assert!(loads(option.into()).unwrap_err().starts_with("expected bits of 1 to 16 bytes"));
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
