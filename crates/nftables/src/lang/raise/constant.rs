//! Bytes as constants.

use crate::datatype::{DataType, Order};
use crate::key::{Part, integer};
use crate::lang::expression::*;
use crate::lang::value::*;
use crate::name::InterfaceName;

/// Bytes as a constant of a type.
pub(super) fn constant(part: Part, bytes: &[u8]) -> Expression {
    Expression::Value(value(part, bytes))
}

pub(super) fn value(part: Part, bytes: &[u8]) -> Value {
    let of = part.data_type();
    let text = |bytes: &[u8]| {
        let end = bytes.iter().position(|byte| *byte == 0);
        let text =
            String::from_utf8_lossy(bytes.get(..end.unwrap_or(bytes.len())).unwrap_or_default()).into_owned();
        InterfaceName::held(&match text.strip_suffix('*') {
            // A name that is cut before its NUL stands for all that start so.
            _ if end.is_none() && bytes.len() < 16 => text + "*",
            Some(stem) => format!("{stem}\\*"),
            None => text,
        })
    };
    match (of, bytes.len()) {
        (DataType::IPV4_ADDR, 4) => {
            <[u8; 4]>::try_from(bytes).map_or(Value::Bytes(bytes.to_vec()), |b| Value::Address(b.into()))
        }
        (DataType::IPV6_ADDR, 16) => {
            <[u8; 16]>::try_from(bytes).map_or(Value::Bytes(bytes.to_vec()), |b| Value::Address(b.into()))
        }
        (DataType::ETHER_ADDR | DataType::LL_ADDR, 6) => <[u8; 6]>::try_from(bytes)
            .map_or(Value::Bytes(bytes.to_vec()), |b| Value::Ether(crate::EtherAddr(b))),
        (DataType::IFNAME, _) => Value::Interface(text(bytes)),
        (DataType::STRING, _) => Value::Text(text(bytes)),
        (_, 0..=8) => Value::Number(integer(part.order(), bytes)),
        _ => Value::Bytes(bytes.to_vec()),
    }
}

/// A value where there could be a range of them: nft shows an address as the longest of prefixes.
pub(super) fn range_of_one(value: Value) -> Expression {
    match value {
        Value::Address(address) => {
            let length = if address.is_ipv4() { 32 } else { 128 };
            Expression::Prefix(Prefix { value, length })
        }
        other => other.into(),
    }
}

/// Order comparisons are made in network order.
pub(super) fn turned(part: Part, bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    if crate::object::element::is_turned(part) {
        bytes.reverse();
    }
    bytes
}

/// Bytes as bits, where that many can be meant.
pub(super) fn in_bits(bytes: u32) -> Option<u16> {
    u16::try_from(bytes.checked_mul(8)?).ok()
}

/// Where the ones of a mask start and how many there are, if they are in one row.
pub(super) fn ones(mask: &[u8]) -> Option<(u16, u16)> {
    if mask.len() > 8 {
        return None;
    }
    let number = integer(Order::Network, mask);
    let width = u32::try_from(mask.len() * 8).ok()?;
    let (lead, bits) = (number.leading_zeros() - (64 - width), number.count_ones());
    let below = width - lead.min(width) - bits.min(width - lead.min(width));
    let row = bits > 0 && number >> below == u64::MAX >> (64 - bits);
    Some((u16::try_from(lead).ok()?, u16::try_from(bits).ok()?)).filter(|_| row)
}

/// The length of a prefix of addresses or marks that a mask is.
pub(super) fn leading_ones(part: Part, mask: &[u8]) -> Option<u8> {
    if !part.data_type().has_prefixes() {
        return None;
    }
    let mask = turned(part, mask);
    let bits: u32 = mask.iter().map(|byte| byte.count_ones()).sum();
    let leading: u32 = {
        let whole = mask.iter().take_while(|byte| **byte == 0xff).count();
        u32::try_from(whole).ok()? * 8 + mask.get(whole).map_or(0, |byte| byte.leading_ones())
    };
    (bits == leading).then(|| u8::try_from(bits).ok()).flatten()
}
