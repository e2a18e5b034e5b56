//! Judges constants by the key that they stand beside: bits that the key does not have, a prefix of what has none,
//! numbers that no interface or day has.
//!
//! nft 1.0.6 refuses all of these. The kernel takes them, and compares with what no packet has.

use crate::check::LowerError;
use crate::datatype::DataType;
use crate::expr::{MetaKey, SocketKey};
use crate::key::Part;
use crate::tree::{Expression, Socket, Value};

/// What a constant beside a key may be.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Room {
    of: DataType,
    /// Of a key that is not whole bytes.
    bits: Option<u16>,
    /// Where not all numbers of these bits are values.
    largest: Option<u64>,
}

impl Room {
    /// Returns that of a key of one part, if its type is known. An operation on bits leaves the key as many as it
    /// has; a shift may need others.
    pub(crate) fn of(key: &Expression) -> Option<Self> {
        if let Expression::Binary(binary) = key
            && !binary.op.is_shift()
            && !binary.left.is_constant()
        {
            return Self::of(&binary.left);
        }
        let of = key.part()?.data_type();
        Some(Self { of, bits: odd_bits(key), largest: largest_result(key).or_else(|| largest(of)) })
    }

    /// Returns that of a part of a key: nft does not compare it with the results that there may be.
    fn of_part(key: &Expression) -> Option<Self> {
        Self::of(key).map(|room| Self { largest: largest(room.of), ..room })
    }

    /// Refuses a number that the key cannot have.
    pub(crate) fn value(self, value: &Value) -> Result<(), LowerError> {
        let Value::Number(number) = value else { return Ok(()) };
        let wanted = match (self.bits, self.largest) {
            (_, Some(largest)) if *number > largest && self.of == DataType::IFACE_INDEX => {
                "the index of an interface, which is at most 2147483647".to_owned()
            }
            (_, Some(largest)) if *number > largest => format!("{} from 0 to {largest}", self.of),
            (Some(bits), _) if number.checked_shr(bits.into()).unwrap_or(0) > 0 => {
                format!("{} of {bits} bits", self.of)
            }
            _ => return Ok(()),
        };
        Err(LowerError::Constant { value: number.to_string(), wanted })
    }

    /// Refuses constants that the key cannot have, each of a set too.
    fn constant(self, constant: &Expression) -> Result<(), LowerError> {
        match constant {
            Expression::Value(value) => self.value(value),
            Expression::Range(range) => {
                self.value(&range.0)?;
                self.value(&range.1)
            }
            // That of no bits is everything.
            Expression::Prefix(prefix) if prefix.length > 0 && !self.has_prefixes() => {
                Err(LowerError::Unsupported {
                    what: "a value of this type has no prefix",
                    expression: constant.to_string(),
                })
            }
            Expression::Prefix(prefix) => self.value(&prefix.value),
            Expression::Elem(elem) => self.constant(&elem.value),
            Expression::Set(members) => members.iter().try_for_each(|member| self.constant(member)),
            _ => Ok(()),
        }
    }

    /// Whether the first bits of a value say something. nft takes a number behind bits for that of a prefix, but
    /// lists it as a mask, and lists no prefix of a result.
    fn has_prefixes(self) -> bool {
        let is_text = matches!(self.of, DataType::IFNAME | DataType::STRING | DataType::VERDICT);
        !is_text && !self.of.is_bitmask() && (self.largest.is_none() || self.of == DataType::IFACE_INDEX)
    }
}

/// Judges what a key is compared with or looked up among.
pub(crate) fn compared(key: &Expression, with: &Expression) -> Result<(), LowerError> {
    match key {
        Expression::Concat(_) => looked_up(key, with),
        // Most rules compare with addresses and with sets, which need no look at the key.
        _ if is_judged_by_type(with) => Ok(()),
        single => Room::of(single).map_or(Ok(()), |room| room.constant(with)),
    }
}

/// Whether a constant has the bits of its own type, or is a set with a name.
fn is_judged_by_type(constant: &Expression) -> bool {
    match constant {
        Expression::Value(value) => !matches!(value, Value::Number(_)),
        Expression::Named(_) => true,
        _ => false,
    }
}

/// Judges a key of a map, or a member of a set of keys with several parts.
pub(crate) fn looked_up(key: &Expression, among: &Expression) -> Result<(), LowerError> {
    match (key, among) {
        (Expression::Concat(_), Expression::Set(members)) => {
            members.iter().try_for_each(|member| looked_up(key, member))
        }
        (_, Expression::Elem(elem)) => looked_up(key, &elem.value),
        (Expression::Concat(keys), Expression::Concat(values)) => {
            keys.iter().zip(values).try_for_each(|(key, value)| looked_up(key, value))
        }
        (Expression::Concat(_), _) => Ok(()),
        (_, value) if is_judged_by_type(value) => Ok(()),
        (single, value) => Room::of_part(single).map_or(Ok(()), |room| room.constant(value)),
    }
}

/// Returns the number of bits of a key's values, where these are not whole bytes.
pub(crate) fn odd_bits(key: &Expression) -> Option<u16> {
    match key {
        Expression::Exthdr(field) if field.is_presence() => None,
        Expression::Binary(binary) if !binary.op.is_shift() => odd_bits(&binary.left),
        other => other.bits().filter(|bits| !bits.is_multiple_of(8)).or_else(|| match other.part()? {
            Part::Type(of) => Some(of.bits()).filter(|bits| !bits.is_multiple_of(8)),
            _ => None,
        }),
    }
}

/// Returns the largest result of what is calculated modulo a number, or is a bit.
pub(crate) fn largest_result(key: &Expression) -> Option<u64> {
    let (modulus, offset) = match key {
        Expression::Numgen(of) => (of.modulus, of.offset),
        Expression::Jhash(of) => (of.modulus, of.offset),
        Expression::Symhash(of) => (of.modulus, of.offset),
        // To nft these have one bit, whatever they lie in.
        Expression::Socket(Socket { key: SocketKey::TRANSPARENT | SocketKey::WILDCARD, .. })
        | Expression::Meta(MetaKey::NFTRACE) => return Some(1),
        Expression::Binary(binary) if !binary.op.is_shift() => return largest_result(&binary.left),
        _ => return None,
    };
    modulus.checked_sub(1)?.checked_add(offset).map(u64::from)
}

/// Returns the largest number of a type, where that is not the number of its bits.
pub(crate) fn largest(of: DataType) -> Option<u64> {
    match of {
        // `if_nametoindex` is an int.
        DataType::IFACE_INDEX => Some(i32::MAX.unsigned_abs().into()),
        DataType::DAY => Some(6),
        _ => None,
    }
}
