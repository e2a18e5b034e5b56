//! Raises bytes to constants.

use crate::datatype::{DataType, Order};
use crate::key::{Part, integer};
use crate::name::InterfaceName;
use crate::tree::expression::*;
use crate::tree::value::*;

/// Returns bytes as a constant of a type.
pub(super) fn constant(part: Part, bytes: &[u8]) -> Expression {
    Expression::Value(value(part, bytes))
}

pub(super) fn value(part: Part, bytes: &[u8]) -> Value {
    let of = part.data_type();
    match (of, bytes.len()) {
        (DataType::IPV4_ADDR, 4) => {
            <[u8; 4]>::try_from(bytes).map_or(Value::Bytes(bytes.into()), |b| Value::Address(b.into()))
        }
        (DataType::IPV6_ADDR, 16) => {
            <[u8; 16]>::try_from(bytes).map_or(Value::Bytes(bytes.into()), |b| Value::Address(b.into()))
        }
        (DataType::ETHER_ADDR | DataType::LL_ADDR, 6) => <[u8; 6]>::try_from(bytes)
            .map_or(Value::Bytes(bytes.into()), |b| Value::Ether(crate::EtherAddr(b))),
        (DataType::IFNAME, _) => Value::Interface(InterfaceName::from_bytes(bytes)),
        (DataType::STRING, _) => Value::Text(InterfaceName::from_bytes(bytes)),
        // Numbers of up to eight bytes are listed as numbers, longer ones as bytes.
        (_, 0..=8) => Value::Number(integer(part.order(), bytes)),
        _ => Value::Bytes(bytes.into()),
    }
}

/// Returns the value if nft's words name it: an hour below 24 h, a date in whole seconds.
pub(super) fn said(part: Part, value: Value) -> Option<Value> {
    let is_said = match (part.data_type(), &value) {
        (DataType::HOUR, Value::Number(seconds)) => *seconds < 24 * 60 * 60,
        (DataType::DATE, Value::Number(nanoseconds)) => nanoseconds.is_multiple_of(1_000_000_000),
        _ => true,
    };
    is_said.then_some(value)
}

/// Returns a value as a range: nft lists a single address as a prefix of full length.
pub(super) fn range_of_one(value: Value) -> Expression {
    match value {
        Value::Address(address) => {
            let length = if address.is_ipv4() { 32 } else { 128 };
            Expression::prefix(value, length)
        }
        other => other.into(),
    }
}

/// Converts a value that the kernel compares in network byte order back to the byte order of its type.
pub(super) fn swap_bytes(part: Part, bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    if crate::key::is_byte_swapped(part) {
        bytes.reverse();
    }
    bytes
}

/// Converts bytes to bits; `None` if the result exceeds 16 bits.
pub(super) fn in_bits(bytes: u32) -> Option<u16> {
    u16::try_from(bytes.checked_mul(8)?).ok()
}

/// Returns the position and the number of the ones of a mask; `None` if they are not contiguous.
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

/// Returns the prefix length of a mask for addresses or marks, if it is a prefix.
pub(super) fn leading_ones(part: Part, mask: &[u8]) -> Option<u8> {
    if !part.data_type().has_prefixes() {
        return None;
    }
    let mask = swap_bytes(part, mask);
    let bits: u32 = mask.iter().map(|byte| byte.count_ones()).sum();
    let leading: u32 = {
        let whole = mask.iter().take_while(|byte| **byte == 0xff).count();
        u32::try_from(whole).ok()? * 8 + mask.get(whole).map_or(0, |byte| byte.leading_ones())
    };
    (bits == leading).then(|| u8::try_from(bits).ok()).flatten()
}
