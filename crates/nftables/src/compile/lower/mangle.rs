//! Lowers statements that change the packet or its metadata: `KEY set VALUE`, `reset`.

use crate::check::LowerError;
use crate::compile::constant::{Bounds, Place};
use crate::compile::lower::Lower;
use crate::compile::lower::load::{combine, flatten};
use crate::datatype::Order;
use crate::expr::{self, ChecksumFlags, ChecksumType, ExthdrOp, PayloadBase, Register};
use crate::key::Part;
use crate::tree::exthdr::Exthdr;
use crate::tree::{Expression, Mangle, Payload, RawPayload};

impl Lower<'_> {
    pub(super) fn mangle(&mut self, mangle: &Mangle) -> Result<(), LowerError> {
        let sreg = Some(Register::word(0));
        match &mangle.key {
            // The value is converted to the byte order of the key.
            Expression::Meta(key) => {
                self.load_for(&mangle.value, key.part(), 0)?;
                self.push(expr::Meta { dreg: None, key: *key, sreg });
            }
            Expression::Ct(ct) => {
                self.load_for(&mangle.value, ct.key.part(), 0)?;
                self.push(expr::Ct { dreg: None, key: ct.key, direction: ct.direction, sreg });
            }
            Expression::Exthdr(option) if option.op() == ExthdrOp::TCPOPT => {
                // The kernel can rewrite TCP options only.
                self.load_for(&mangle.value, option.part(), 0)?;
                self.push(exthdr(*option, sreg, false));
            }
            Expression::Payload(payload) => self.mangle_payload(*payload, &mangle.value)?,
            Expression::RawPayload(raw) => self.mangle_raw(*raw, mangle)?,
            other => {
                return Err(LowerError::Unsupported {
                    what: "expected a field or key that can be set",
                    expression: other.to_string(),
                });
            }
        }
        Ok(())
    }

    /// Lowers a change of a header field. The kernel updates checksums only for whole 16-bit words: a smaller
    /// field is loaded with its neighbours, changed, and written back with them.
    fn mangle_payload(&mut self, payload: Payload, value: &Expression) -> Result<(), LowerError> {
        self.imply(&payload.into())?;
        let (csum_type, csum_offset, csum_flags) = checksum(payload);
        let at = self.offset_of(payload);
        let first = at / 8;
        let last = (at + payload.bits()).div_ceil(8);
        let (mut start, mut end) = (first, last);
        // The Internet checksum is a sum of 16-bit words that start at even offsets.
        if csum_type.is_some() {
            (start, end) = (first - first % 2, last.next_multiple_of(2));
        }
        let write = expr::Payload {
            dreg: None,
            base: payload.base(),
            offset: u32::from(start),
            len: u32::from(end - start),
            sreg: Some(Register::word(0)),
            csum_type: Some(csum_type.unwrap_or(ChecksumType::NONE)),
            csum_offset: Some(csum_offset),
            csum_flags: Some(csum_flags),
        };
        let (part, bits) = (payload.part(), payload.bits());
        self.change(&Changed { field: payload.into(), part, at, bits }, value, write)
    }

    /// Lowers a change of header bits by offset. Bits that do not fill whole bytes are written back with
    /// their neighbours, and so is an odd number of bytes where the kernel updates a checksum.
    fn mangle_raw(&mut self, raw: RawPayload, mangle: &Mangle) -> Result<(), LowerError> {
        let unsupported = |what| LowerError::Unsupported { what, expression: mangle.key.to_string() };
        let end_bit = raw.offset.checked_add(raw.bits).filter(|_| raw.bits > 0);
        let end_bit = end_bit.ok_or_else(|| unsupported("expected a number of bits"))?;
        let (mut start, mut end) = (raw.offset / 8, end_bit.div_ceil(8));
        let flags = raw_checksum(raw.base);
        if !flags.is_empty() && (end - start) % 2 == 1 {
            (start, end) = if start % 2 == 1 { (start - 1, end) } else { (start, end + 1) };
        }
        let is_whole = raw.bits == (end - start) * 8;
        if end - start > MAX_BYTES || !is_whole && end - start > 8 {
            return Err(unsupported("expected at most 16 whole bytes, or bits of at most 8 bytes"));
        }
        let write = expr::Payload {
            dreg: None,
            base: raw.base,
            offset: u32::from(start),
            len: u32::from(end - start),
            sreg: Some(Register::word(0)),
            // Raw bytes are in an unknown header, so no header checksum can be updated.
            csum_type: Some(ChecksumType::NONE),
            csum_offset: Some(0),
            csum_flags: Some(flags),
        };
        let part = mangle.key.part().unwrap_or(Part::Integer { bytes: 1, order: Order::Network });
        let (at, bits) = (raw.offset, raw.bits);
        self.change(&Changed { field: raw.into(), part, at, bits }, &mangle.value, write)
    }

    /// Loads the new value of a field, with the bits beside it as they are, and writes it.
    fn change(&mut self, of: &Changed, value: &Expression, write: expr::Payload) -> Result<(), LowerError> {
        if u32::from(of.bits) == write.len * 8 {
            // The value replaces whole words, so nothing has to be loaded.
            self.load_for(value, of.part, 0)?;
        } else {
            // The bits are at the end of a number of that many bytes.
            let end = (write.offset + write.len) * 8;
            let shift = end.saturating_sub(u32::from(of.at) + u32::from(of.bits));
            let bytes = u8::try_from(write.len).unwrap_or(16);
            let wide = Part::Integer { bytes, order: Order::Network };
            let shift = u16::try_from(shift).unwrap_or(u16::MAX);
            let place = Place { bytes: usize::from(bytes), shift, ..Place::of(wide) };
            let (mask, xor) = change_of_bits(of, value, place)?;
            self.push(expr::Payload {
                dreg: Some(Register::word(0)),
                sreg: None,
                csum_type: None,
                csum_offset: None,
                csum_flags: None,
                ..write
            });
            self.bitwise(0, mask, xor);
        }
        self.push(write);
        Ok(())
    }
}

/// A field that is changed.
struct Changed {
    field: Expression,
    part: Part,
    /// Bits from its base.
    at: u16,
    bits: u16,
}

/// Returns the mask and the xor that set a field to a value, or change it by constants, within the bytes that
/// contain it.
fn change_of_bits(of: &Changed, value: &Expression, place: Place) -> Result<(Vec<u8>, Vec<u8>), LowerError> {
    let change = match value {
        // `ip dscp set ip dscp | 1` changes bits; with any other operand the value has to be constant.
        Expression::Binary(binary) => match flatten(binary) {
            (field, ops) if *field == of.field && ops.iter().all(|(op, _)| !op.is_shift()) => Some(ops),
            _ => None,
        },
        _ => None,
    };
    let too_large = || LowerError::Constant {
        value: value.to_string(),
        wanted: format!("{} of {} bits", of.part.data_type(), of.bits),
    };
    let changed = match change {
        Some(ops) => combine(&ops, place, None),
        // Assigning clears all bits of the field and sets those of the value.
        None => Bounds::of(value, place).map(|bounds| (vec![0; place.bytes], bounds.low)),
    };
    let (mask, xor) = changed.map_err(|error| match error {
        // The error describes the containing bytes, not the field.
        LowerError::Constant { .. } => too_large(),
        other => other,
    })?;
    // The bits of the neighbours stay as they are.
    let ones = u64::MAX >> 64_u32.saturating_sub(of.bits.into()).min(63);
    let own = crate::key::integer_bytes(Order::Network, place.bytes, ones << place.shift);
    if xor.iter().zip(&own).any(|(xor, own)| xor & !own != 0) {
        return Err(too_large());
    }
    Ok((mask.into_iter().zip(own).map(|(mask, own)| mask | !own).collect(), xor))
}

pub(super) fn exthdr(option: Exthdr, sreg: Option<Register>, reset: bool) -> expr::Exthdr {
    expr::Exthdr {
        dreg: None,
        kind: option.kind(),
        // Without offset and length the kernel removes the whole option.
        offset: (!reset).then(|| u32::from(option.offset() / 8)),
        len: (!reset).then(|| u32::from(option.bits().div_ceil(8))),
        flags: None,
        op: Some(option.op()),
        sreg,
    }
}

/// Returns the checksum to update for a write of raw bytes: after the transport header it is the transport
/// checksum. Other raw bytes may be in any header.
pub(crate) fn raw_checksum(base: PayloadBase) -> ChecksumFlags {
    match base {
        PayloadBase::INNER => ChecksumFlags::PSEUDO_HEADER,
        _ => ChecksumFlags::empty(),
    }
}

/// Bytes that a register holds.
const MAX_BYTES: u16 = 16;

/// Returns the checksums to update when a header field changes: that of the header itself, and the transport
/// checksum if its pseudo-header contains the field.
fn checksum(payload: Payload) -> (Option<ChecksumType>, u32, ChecksumFlags) {
    let none = ChecksumFlags::empty();
    match payload.protocol() {
        "ip" => {
            let covered = matches!(
                payload,
                Payload::IP_SADDR | Payload::IP_DADDR | Payload::IP_PROTOCOL | Payload::IP_LENGTH
            );
            let flags = if covered { ChecksumFlags::PSEUDO_HEADER } else { none };
            (Some(ChecksumType::INET), 10, flags)
        }
        // IPv6 has no header checksum, but some of its fields are part of the transport checksum.
        "ip6"
            if matches!(
                payload,
                Payload::IP6_SADDR | Payload::IP6_DADDR | Payload::IP6_NEXTHDR | Payload::IP6_LENGTH
            ) =>
        {
            (None, 0, ChecksumFlags::PSEUDO_HEADER)
        }
        "tcp" => (Some(ChecksumType::INET), 16, none),
        // A UDP checksum of zero means that there is none, and it has to stay zero. Only the kernel's own
        // update of the transport checksum respects that; nft uses it since 1.1.1.
        "udp" => (None, 0, ChecksumFlags::PSEUDO_HEADER),
        "icmp" | "icmpv6" | "igmp" => (Some(ChecksumType::INET), 2, none),
        "sctp" => (Some(ChecksumType::SCTP), 8, none),
        _ => (None, 0, none),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::{Match, Statement};

    #[test]
    fn the_checksum_of_udp_is_left_to_the_kernel_to_find() {
        let none = ChecksumFlags::empty();
        assert_eq!(checksum(Payload::TCP_DPORT), (Some(ChecksumType::INET), 16, none));
        assert_eq!(checksum(Payload::UDP_DPORT), (None, 0, ChecksumFlags::PSEUDO_HEADER));
    }

    fn bits(field: Payload, value: impl Into<Expression>) -> Result<(Vec<u8>, Vec<u8>), String> {
        let table = crate::TableId::new(crate::Family::INET, crate::Name::from_kernel("t"));
        let statement = Mangle::new(field, value).into();
        let lowered = crate::compile::lower::lower_alone(&table, &[statement]);
        let exprs = lowered.map_err(|error| error.to_string())?.exprs;
        let bytes = |data: &Option<expr::Data>| data.as_ref().and_then(expr::Data::value).unwrap().to_vec();
        let change = exprs.iter().find_map(|expr| match expr {
            expr::Expr::Bitwise(b) => Some((bytes(&b.mask), bytes(&b.xor))),
            _ => None,
        });
        Ok(change.unwrap())
    }

    /// The bytecode of the first three is that of nft's test `ip/ip.t`.
    #[test]
    fn bits_are_changed_among_those_of_their_neighbours() {
        let dscp = || Expression::from(Payload::IP_DSCP);
        let of = |value| bits(Payload::IP_DSCP, value).unwrap();
        assert_eq!(of(dscp().or(1_u32)), (vec![0xff, 0xfb], vec![0, 4]));
        assert_eq!(of(dscp().and(1_u32)), (vec![0xff, 0x07], vec![0, 0]));
        assert_eq!(of(dscp().and(0x1f_u32)), (vec![0xff, 0x7f], vec![0, 0]));
        assert_eq!(of(dscp().xor(0x3f_u32)), (vec![0xff, 0xff], vec![0, 0xfc]));
        assert_eq!(of(dscp().and(0xf_u32).or(0x10_u32)), (vec![0xff, 0x3f], vec![0, 0x40]));
        let ttl = Expression::from(Payload::IP_TTL).and(0xf0_u32);
        assert_eq!(bits(Payload::IP_TTL, ttl).unwrap(), (vec![0xf0, 0xff], vec![0, 0]));
    }

    #[test]
    fn any_number_of_tags_may_be_looked_through() {
        let tag = || Statement::from(Match::new(Payload::VLAN_TYPE, 0x8100_u32));
        let mut rule: Vec<_> = std::iter::repeat_with(tag).take(3_000).collect();
        rule.push(Mangle::new(Payload::VLAN_TYPE, 1_u32).into());
        let table = crate::TableId::new(crate::Family::BRIDGE, crate::Name::from_kernel("t"));
        crate::compile::lower::lower_alone(&table, &rule).unwrap();
    }

    #[test]
    fn more_bits_than_a_field_has_are_refused() {
        let dscp = || Expression::from(Payload::IP_DSCP);
        assert_eq!(bits(Payload::IP_DSCP, 64_u32).unwrap_err(), "expected dscp of 6 bits, found 64");
        assert!(
            bits(Payload::IP_DSCP, dscp().or(64_u32))
                .unwrap_err()
                .starts_with("expected dscp of 6 bits, found ")
        );
        assert_eq!(bits(Payload::IP_TTL, 256_u32).unwrap_err(), "expected integer of 8 bits, found 256");
        assert_eq!(bits(Payload::IP_TTL, 70_000_u32).unwrap_err(), "expected integer of 8 bits, found 70000");
        let of_another = Expression::from(Payload::IP_ECN).or(1_u32);
        assert_eq!(
            bits(Payload::IP_DSCP, of_another).unwrap_err(),
            "`ip ecn | ect1` is of type ecn, expected dscp"
        );
    }
}
