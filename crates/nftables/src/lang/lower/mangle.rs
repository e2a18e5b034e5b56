//! What changes the packet, or what is known of it: `KEY set VALUE`, `reset`.

use crate::datatype::Order;
use crate::expr::{self, ChecksumFlags, ChecksumType, ExthdrOp, PayloadBase, Register};
use crate::key::Part;
use crate::lang::constant::{Bounds, Place};
use crate::lang::exthdr::Exthdr;
use crate::lang::lower::agree::type_of;
use crate::lang::lower::load::{combine, flatten};
use crate::lang::lower::{Lower, LowerError};
use crate::lang::{Expression, Mangle, Payload};

impl Lower<'_> {
    pub(super) fn mangle(&mut self, mangle: &Mangle) -> Result<(), LowerError> {
        let sreg = Some(Register::word(0));
        self.is_given(&mangle.value, &[type_of(&mangle.key)])?;
        match &mangle.key {
            Expression::Meta(key) => {
                self.load_for(&mangle.value, key.part(), 0)?;
                self.push(expr::Meta { dreg: None, key: *key, sreg });
            }
            Expression::Ct(ct) => {
                self.load_for(&mangle.value, ct.key.part(), 0)?;
                self.push(expr::Ct { dreg: None, key: ct.key, direction: ct.direction, sreg });
            }
            Expression::Exthdr(option) if option.op() == ExthdrOp::TCPOPT => {
                self.load_for(&mangle.value, option.part(), 0)?;
                self.push(exthdr(*option, sreg, false));
            }
            Expression::Payload(payload) => self.mangle_payload(*payload, &mangle.value)?,
            Expression::RawPayload(raw) if raw.offset.is_multiple_of(8) && raw.bits.is_multiple_of(8) => {
                let part = mangle.key.part().unwrap_or(Part::Integer { bytes: 1, order: Order::Network });
                self.load_for(&mangle.value, part, 0)?;
                self.push(expr::Payload {
                    dreg: None,
                    base: raw.base,
                    offset: u32::from(raw.offset / 8),
                    len: u32::from(raw.bits / 8),
                    sreg,
                    csum_type: Some(ChecksumType::NONE),
                    csum_offset: Some(0),
                    csum_flags: Some(raw_checksum(raw.base)),
                });
            }
            other => {
                return Err(LowerError::Unsupported {
                    what: "this cannot be set",
                    expression: other.to_string(),
                });
            }
        }
        Ok(())
    }

    /// The kernel mends checksums of whole pairs of bytes only: a smaller field is read with its neighbours, changed, and
    /// written with them.
    fn mangle_payload(&mut self, payload: Payload, value: &Expression) -> Result<(), LowerError> {
        self.imply(&payload.into())?;
        let (csum_type, csum_offset, csum_flags) = checksum(payload);
        let at = self.offset_of(payload);
        let first = at / 8;
        let last = (at + payload.bits()).div_ceil(8);
        let (mut start, mut end) = (first, last);
        if csum_type.is_some() {
            (start, end) = (first - first % 2, last.next_multiple_of(2));
        }
        let whole = at == start * 8 && payload.bits() == (end - start) * 8;
        let (offset, len) = (u32::from(start), u32::from(end - start));
        if whole {
            self.load_for(value, payload.part(), 0)?;
        } else {
            let shift = end * 8 - at - payload.bits();
            let wide = Part::Integer { bytes: u8::try_from(len).unwrap_or(16), order: Order::Network };
            let place = Place { bytes: usize::from(end - start), shift, ..Place::of(wide) };
            let (mask, xor) = change_of_bits(payload, value, place)?;
            self.push(expr::Payload {
                dreg: Some(Register::word(0)),
                base: payload.base(),
                offset,
                len,
                sreg: None,
                csum_type: None,
                csum_offset: None,
                csum_flags: None,
            });
            self.bitwise(0, mask, xor);
        }
        self.push(expr::Payload {
            dreg: None,
            base: payload.base(),
            offset,
            len,
            sreg: Some(Register::word(0)),
            csum_type: Some(csum_type.unwrap_or(ChecksumType::NONE)),
            csum_offset: Some(csum_offset),
            csum_flags: Some(csum_flags),
        });
        Ok(())
    }
}

/// What is kept of the bytes that a field lies in, and what is toggled: to give it a value, or to change it by constants.
fn change_of_bits(
    field: Payload,
    value: &Expression,
    place: Place,
) -> Result<(Vec<u8>, Vec<u8>), LowerError> {
    let change = match value {
        Expression::Binary(binary) => match flatten(binary) {
            (Expression::Payload(of), ops) if *of == field => Some(ops),
            _ => None,
        },
        _ => None,
    };
    let too_large = || LowerError::Constant {
        value: value.to_string(),
        wanted: format!("{} of {} bits", field.part().data_type(), field.bits()),
    };
    let changed = match change {
        Some(ops) => combine(&ops, place),
        None => Bounds::of(value, place).map(|bounds| (vec![0; place.bytes], bounds.low)),
    };
    let (mask, xor) = changed.map_err(|error| match error {
        // That speaks of the bytes that the field lies in.
        LowerError::Constant { .. } => too_large(),
        other => other,
    })?;
    let ones = u64::MAX >> (64 - u32::from(field.bits()));
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
        offset: (!reset).then(|| u32::from(option.offset() / 8)),
        len: (!reset).then(|| u32::from(option.bits().div_ceil(8))),
        flags: None,
        op: Some(option.op()),
        sreg,
    }
}

/// Bytes without a name may be of anything; inside a transport header's data, its checksum covers them.
pub(crate) fn raw_checksum(base: PayloadBase) -> ChecksumFlags {
    match base {
        PayloadBase::INNER => ChecksumFlags::PSEUDO_HEADER,
        _ => ChecksumFlags::empty(),
    }
}

/// What has to be mended when a field of a header changes: the header's own checksum, and the one behind it.
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
        "ip6"
            if matches!(
                payload,
                Payload::IP6_SADDR | Payload::IP6_DADDR | Payload::IP6_NEXTHDR | Payload::IP6_LENGTH
            ) =>
        {
            (None, 0, ChecksumFlags::PSEUDO_HEADER)
        }
        "tcp" => (Some(ChecksumType::INET), 16, none),
        // Where the checksum is nought there is none, and it stays so. Only the kernel that finds it by itself asks; nft has it do so since 1.1.1.
        "udp" => (None, 0, ChecksumFlags::PSEUDO_HEADER),
        "icmp" | "icmpv6" | "igmp" => (Some(ChecksumType::INET), 2, none),
        "sctp" => (Some(ChecksumType::SCTP), 8, none),
        _ => (None, 0, none),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lang::{Match, Statement};

    #[test]
    fn the_checksum_of_udp_is_left_to_the_kernel_to_find() {
        let none = ChecksumFlags::empty();
        assert_eq!(checksum(Payload::TCP_DPORT), (Some(ChecksumType::INET), 16, none));
        assert_eq!(checksum(Payload::UDP_DPORT), (None, 0, ChecksumFlags::PSEUDO_HEADER));
    }

    fn bits(field: Payload, value: impl Into<Expression>) -> Result<(Vec<u8>, Vec<u8>), String> {
        let table = crate::TableId::new(crate::Family::INET, crate::Name::held("t"));
        let statement = Mangle::new(field, value).into();
        let lowered = crate::lang::lower::lower_alone(&table, &[statement]);
        let exprs = lowered.map_err(|error| error.to_string())?.exprs;
        let bytes = |data: &Option<expr::Data>| data.as_ref().and_then(expr::Data::value).unwrap().to_vec();
        let change = exprs.iter().find_map(|expr| match expr {
            expr::Expr::Bitwise(b) => Some((bytes(&b.mask), bytes(&b.xor))),
            _ => None,
        });
        Ok(change.unwrap())
    }

    /// The byte codes of the first three are those of nft's test `ip/ip.t`.
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
        let table = crate::TableId::new(crate::Family::BRIDGE, crate::Name::held("t"));
        crate::lang::lower::lower_alone(&table, &rule).unwrap();
    }

    #[test]
    fn more_bits_than_a_field_has_are_refused() {
        let dscp = || Expression::from(Payload::IP_DSCP);
        assert_eq!(bits(Payload::IP_DSCP, 64_u32).unwrap_err(), "64 is no dscp of 6 bits");
        assert!(bits(Payload::IP_DSCP, dscp().or(64_u32)).unwrap_err().ends_with("is no dscp of 6 bits"));
        assert_eq!(bits(Payload::IP_TTL, 256_u32).unwrap_err(), "256 is no integer of 8 bits");
        assert_eq!(bits(Payload::IP_TTL, 70_000_u32).unwrap_err(), "70000 is no integer of 8 bits");
        let of_another = Expression::from(Payload::IP_ECN).or(1_u32);
        assert_eq!(bits(Payload::IP_DSCP, of_another).unwrap_err(), "`ip ecn | ect1` is not a constant");
    }
}
