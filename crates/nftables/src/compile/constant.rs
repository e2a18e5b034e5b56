//! Encodes constants as bytes: a value, a prefix, a range or a concatenation of them, for a given type.

use sluicegate_netlink::text::{byte_len, encode};

use crate::check::LowerError;
use crate::check::elements::NAMES_HAVE_NO_ORDER;
use crate::datatype::{DataType, Order};
use crate::key::{Part, integer_bytes};
use crate::name::InterfaceName;
use crate::tree::{Expression, Prefix, Value};

/// The bounds of a constant, both included; equal for a single value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Bounds {
    pub(crate) low: Vec<u8>,
    pub(crate) high: Vec<u8>,
    /// The prefix length in bits, if the constant is a prefix.
    pub(crate) prefix: Option<u8>,
}

impl Bounds {
    pub(crate) fn is_single(&self) -> bool {
        self.low == self.high
    }

    fn single(bytes: Vec<u8>) -> Self {
        Self { high: bytes.clone(), low: bytes, prefix: None }
    }

    /// Returns the bounds of a constant expression, as values of `length` bytes of type `part`, shifted to
    /// the position of a bit field.
    pub(crate) fn of(expression: &Expression, place: Place) -> Result<Self, LowerError> {
        match expression {
            Expression::Value(Value::Interface(name) | Value::Text(name)) if name.prefix().is_some() => {
                Self::of_wildcard(name, place)
            }
            Expression::Value(value) => place.bytes(value).map(Self::single),
            Expression::Prefix(prefix) => Self::of_prefix(prefix, place),
            // To nft 1.0.6 and later they have none, and the kernel would compare the letters.
            Expression::Range(_) if matches!(place.part.data_type(), DataType::IFNAME | DataType::STRING) => {
                Err(LowerError::Unsupported { what: NAMES_HAVE_NO_ORDER, expression: expression.to_string() })
            }
            Expression::Range(range) => {
                let (low, high) = (place.bytes(&range.0)?, place.bytes(&range.1)?);
                // In host byte order of a little-endian machine the most significant byte is the last one.
                let ordered = match place.part.order() {
                    Order::Host if cfg!(target_endian = "little") => low.iter().rev().le(high.iter().rev()),
                    _ => low <= high,
                };
                match ordered {
                    true => Ok(Self { low, high, prefix: None }),
                    false => Err(LowerError::Backwards { range: expression.to_string() }),
                }
            }
            other => Err(LowerError::NotConstant { expression: other.to_string() }),
        }
    }

    /// Returns the bounds of all interface names with a prefix (`eth*`).
    fn of_wildcard(name: &InterfaceName, place: Place) -> Result<Self, LowerError> {
        let stem = byte_len(name.as_str().trim_end_matches('*'));
        let mut low = place.bytes(&Value::Interface(name.clone()))?;
        let mut high = low.clone();
        low.get_mut(stem..).unwrap_or_default().fill(0);
        high.get_mut(stem..).unwrap_or_default().fill(0xff);
        Ok(Self { low, high, prefix: None })
    }

    fn of_prefix(prefix: &Prefix, place: Place) -> Result<Self, LowerError> {
        // A prefix starts at the most significant byte: numbers in host byte order are reversed for the mask.
        let host = crate::key::is_byte_swapped(place.part);
        let mut low = place.bytes(&prefix.value)?;
        if host {
            low.reverse();
        }
        let bits = place.width();
        if usize::from(prefix.length) > bits {
            return Err(LowerError::PrefixLength { length: prefix.length, bits });
        }
        // The prefix starts at the first bit of the field, which may lie amid its bytes.
        let end = (low.len() * 8).saturating_sub(usize::from(place.shift));
        let free = (end - bits.min(end)) + usize::from(prefix.length)..end;
        let mut high = low.clone();
        for (i, (l, h)) in low.iter_mut().zip(&mut high).enumerate() {
            let free = (0..8).fold(0, |byte, bit| byte << 1 | u8::from(free.contains(&(i * 8 + bit))));
            *l &= !free;
            *h |= free;
        }
        if host {
            low.reverse();
            high.reverse();
        }
        Ok(Self { low, high, prefix: Some(prefix.length) })
    }
}

/// The place that a constant has to fit: its type and its length in bytes. A bit field also has a length in
/// bits, and a shift.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) part: Part,
    pub(crate) bytes: usize,
    pub(crate) shift: u16,
    pub(crate) bits: Option<u16>,
}

impl Place {
    /// Returns the place of a whole value: of a type that is narrower than its bytes, the lowest bits of them.
    pub(crate) fn of(part: Part) -> Self {
        let bits = match part {
            Part::Type(of) => Some(of.bits()).filter(|bits| !bits.is_multiple_of(8)),
            _ => None,
        };
        Self { part, bytes: part.bytes(), shift: 0, bits }
    }

    /// Returns the number of bits that a value has.
    fn width(self) -> usize {
        match (self.bits, self.part) {
            (Some(bits), _) => bits.into(),
            // Bits beside a field of whole bytes that starts amid a byte are not its own.
            (None, part) if part.bytes() > 0 => self.bytes.min(part.bytes()) * 8,
            (None, _) => self.bytes * 8,
        }
    }

    /// Encodes a value as bytes.
    pub(crate) fn bytes(self, value: &Value) -> Result<Vec<u8>, LowerError> {
        let mismatch = || LowerError::Constant {
            value: Expression::Value(value.clone()).to_string(),
            wanted: match self.bits {
                Some(bits) => format!("{} of {bits} bits", self.part.data_type()),
                None => format!(
                    "{} of {} byte{}",
                    self.part.data_type(),
                    self.bytes,
                    if self.bytes == 1 { "" } else { "s" }
                ),
            },
        };
        let bytes = match value {
            Value::Number(number) => return self.number(*number).ok_or_else(mismatch),
            Value::Address(std::net::IpAddr::V4(address)) => address.octets().to_vec(),
            Value::Address(std::net::IpAddr::V6(address)) => address.octets().to_vec(),
            Value::Ether(address) => address.0.to_vec(),
            Value::Bytes(bytes) => bytes.to_vec(),
            Value::Interface(name) | Value::Text(name) => {
                let text = name.literal();
                let text = &*encode(&text);
                // `IFNAMSIZ` and the lengths of other names include a NUL.
                if text.is_empty() || text.len() > MAX_TEXT || text.contains(&0) {
                    return Err(mismatch());
                }
                let mut bytes = vec![0; self.bytes];
                let to = bytes.get_mut(..text.len()).ok_or_else(mismatch)?;
                to.copy_from_slice(text);
                bytes
            }
        };
        if bytes.len() == self.bytes && self.takes(value) { Ok(bytes) } else { Err(mismatch()) }
    }

    /// Returns whether a value that is not a plain number can have this type. A type of raw bytes only
    /// requires the length to match.
    fn takes(self, value: &Value) -> bool {
        let of = self.part.data_type();
        let integer = of == DataType::INTEGER;
        match value {
            Value::Address(address) if address.is_ipv4() => integer || of == DataType::IPV4_ADDR,
            Value::Address(_) => integer || of == DataType::IPV6_ADDR,
            Value::Ether(_) => integer || matches!(of, DataType::ETHER_ADDR | DataType::LL_ADDR),
            Value::Interface(_) | Value::Text(_) => matches!(of, DataType::IFNAME | DataType::STRING),
            Value::Number(_) | Value::Bytes(_) => true,
        }
    }

    fn number(self, number: u64) -> Option<Vec<u8>> {
        if matches!(self.part.data_type(), DataType::IFNAME | DataType::STRING | DataType::VERDICT) {
            return None;
        }
        // The comparison would involve bits that the field does not have, and never be equal.
        if self.bits.and_then(|bits| number.checked_shr(bits.into())).is_some_and(|more| more > 0) {
            return None;
        }
        let shifted = number.checked_shl(u32::from(self.shift))?;
        let bits = u32::try_from(self.bytes * 8).ok()?;
        let fits = shifted >> self.shift == number && (bits >= 64 || shifted >> bits == 0);
        fits.then(|| integer_bytes(self.part.order(), self.bytes, shifted))
    }
}

/// The length of the longest name.
const MAX_TEXT: usize = 15;
