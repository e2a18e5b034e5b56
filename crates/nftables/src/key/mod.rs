//! Keys and values of set elements, packed as the kernel stores them, without allocations.

mod part;
pub(crate) mod text;
mod values;

use std::fmt;

use crate::key::text::write_part;
use crate::wording::{Wording, Words};
use part::Kind;
pub use part::Part;
pub(crate) use part::{integer, integer_bytes, is_byte_swapped, width};
pub use values::{EtherAddr, KeyPart, Mark, Number, Port, QueueNumber};

/// The key of an element, or its value in a data map: one typed part, or a concatenation of up to eight.
///
/// It has at most 64 bytes (`NFT_DATA_VALUE_MAXLEN`), stored inline. The parts have types, so a key prints as
/// nft prints it, and can be compared with the type of a set.
///
/// ```
/// use sluicegate_nftables::{Key, Port, Protocol};
///
/// let key = Key::from((std::net::Ipv4Addr::new(10, 0, 0, 1), Protocol::TCP, Port(80)));
/// assert_eq!(key.to_string(), "10.0.0.1 . tcp . 80");
/// assert_eq!(key.bytes(), [10, 0, 0, 1, 6, 0, 0, 0, 0, 80, 0, 0]);
/// ```
#[derive(Clone, Copy)]
pub struct Key {
    bytes: [u8; MAX_BYTES],
    /// The length of `bytes`, including the padding after each part.
    length: u8,
    /// The length of `bytes` without the padding of a single part.
    width: u8,
    parts: u8,
    /// A [`Kind`] for each part.
    kinds: [u8; MAX_PARTS],
}

impl Key {
    /// Creates a key without parts; see [`push`](Self::push).
    #[must_use]
    pub const fn new() -> Self {
        Self { bytes: [0; MAX_BYTES], length: 0, width: 0, parts: 0, kinds: [0; MAX_PARTS] }
    }

    /// Restores a key from its [`kinds`](Self::kinds) and [`bytes`](Self::bytes).
    pub(crate) fn unpack(kinds: &[u8], bytes: &[u8]) -> Self {
        let mut key = Self::new();
        if let (Some(to_kinds), Some(to_bytes)) =
            (key.kinds.get_mut(..kinds.len()), key.bytes.get_mut(..bytes.len()))
        {
            to_kinds.copy_from_slice(kinds);
            to_bytes.copy_from_slice(bytes);
            key.parts = u8::try_from(kinds.len()).unwrap_or_default();
            key.width = u8::try_from(bytes.len()).unwrap_or_default();
            key.length = u8::try_from(bytes.len().next_multiple_of(4)).unwrap_or_default();
        }
        key
    }

    /// Returns a byte for the type of each part, from which [`types_of`] restores the types.
    #[inline]
    pub(crate) fn kinds(&self) -> &[u8] {
        self.kinds.get(..usize::from(self.parts)).unwrap_or_default()
    }

    /// Appends a part.
    ///
    /// # Panics
    /// If the key would exceed 64 bytes or eight parts. The kernel has no sets with such keys.
    #[must_use]
    #[allow(clippy::needless_pass_by_value, reason = "parts are small, and literals read better without &")]
    pub fn and(mut self, part: impl KeyPart) -> Self {
        part.push(&mut self);
        self
    }

    /// Appends a part.
    ///
    /// # Panics
    /// As [`and`](Self::and).
    #[allow(clippy::needless_pass_by_value, reason = "as above")]
    pub fn push(&mut self, part: impl KeyPart) {
        part.push(self);
    }

    /// Splits the bytes of a key from the kernel into parts of these types.
    ///
    /// Returns `None` if the lengths do not match.
    #[must_use]
    pub fn decode(parts: &[Part], bytes: &[u8]) -> Option<Self> {
        let mut key = Self::new();
        let mut rest = bytes;
        for (i, part) in parts.iter().enumerate() {
            let (value, tail) = rest.split_at_checked(part.bytes())?;
            key.try_append(*part, value)?;
            let last = i + 1 == parts.len();
            let padding = if last { tail.len() } else { part.bytes().next_multiple_of(4) - part.bytes() };
            if last && padding > 3 {
                return None;
            }
            rest = tail.get(padding..)?;
        }
        rest.is_empty().then_some(key)
    }

    /// Returns the bytes as the kernel stores them: several parts are padded to four bytes each.
    #[inline]
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.width)).unwrap_or_default()
    }

    /// Returns the types of the parts.
    pub fn types(&self) -> impl ExactSizeIterator<Item = Part> + '_ {
        types_of(self.kinds())
    }

    /// Returns the type and the bytes of each part, without padding.
    pub fn parts(&self) -> impl Iterator<Item = (Part, &[u8])> + '_ {
        let mut at = 0;
        self.types().map(move |part| {
            let value = self.bytes.get(at..at + part.bytes()).unwrap_or_default();
            at += part.bytes().next_multiple_of(4);
            (part, value)
        })
    }

    /// Appends a part of any type, for data types without a Rust type in this crate.
    ///
    /// # Panics
    /// If the length of `value` is not that of `part`, and as [`and`](Self::and).
    pub fn append(&mut self, part: Part, value: &[u8]) {
        assert!(
            self.try_append(part, value).is_some(),
            "{part:?} of {} bytes does not fit a key",
            value.len()
        );
    }

    /// Increments the value of its only part; returns `false`, with all bits zero, after the last value.
    pub(crate) fn increment(&mut self) -> bool {
        let length = self.bytes().len();
        let host = self.types().next().is_some_and(is_byte_swapped);
        let bytes = self.bytes.get_mut(..length).unwrap_or_default();
        let add = |byte: &mut u8| {
            *byte = byte.wrapping_add(1);
            *byte != 0
        };
        if host { bytes.iter_mut().any(add) } else { bytes.iter_mut().rev().any(add) }
    }

    /// Decrements the value of its only part; before the first value it becomes all ones.
    pub(crate) fn decrement(&mut self) {
        let length = self.bytes().len();
        let host = self.types().next().is_some_and(is_byte_swapped);
        let bytes = self.bytes.get_mut(..length).unwrap_or_default();
        let subtract = |byte: &mut u8| {
            *byte = byte.wrapping_sub(1);
            *byte != u8::MAX
        };
        let _ = if host { bytes.iter_mut().any(subtract) } else { bytes.iter_mut().rev().any(subtract) };
    }

    /// Returns the key with the highest value of its only part.
    pub(crate) fn last_of_type(&self) -> Self {
        let mut last = *self;
        let length = self.bytes().len();
        last.bytes.get_mut(..length).unwrap_or_default().fill(0xff);
        last
    }

    /// Appends a part as [`append`](Self::append) does; `None` if it does not fit.
    pub(crate) fn try_append(&mut self, part: Part, value: &[u8]) -> Option<()> {
        if value.len() != part.bytes() {
            return None;
        }
        self.place(Kind::of(part)?, value.len())?.copy_from_slice(value);
        Some(())
    }

    /// Appends a value with a length that is known at compile time, which is fast enough for tens of
    /// thousands of elements.
    #[inline]
    fn put<const N: usize>(&mut self, kind: Kind, value: [u8; N]) {
        match self.place(kind, N) {
            Some(place) => place.copy_from_slice(&value),
            None => panic!("a part of {N} bytes does not fit a key of {} bytes", self.length),
        }
    }

    /// Extends the key by one part, and returns its bytes.
    #[inline]
    fn place(&mut self, kind: Kind, length: usize) -> Option<&mut [u8]> {
        let at = usize::from(self.length);
        let end = at + length.next_multiple_of(4);
        *self.kinds.get_mut(usize::from(self.parts))? = kind.byte();
        let place = self.bytes.get_mut(at..end)?;
        self.length = u8::try_from(end).ok()?;
        self.width = if self.parts == 0 { u8::try_from(length).ok()? } else { self.length };
        self.parts += 1;
        place.get_mut(..length)
    }
}

impl Default for Key {
    fn default() -> Self {
        Self::new()
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.bytes() == other.bytes() && self.types().eq(other.types())
    }
}

impl Eq for Key {}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// Compares by bytes, then by types: the order of an interval set.
impl Ord for Key {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.bytes().cmp(other.bytes()).then_with(|| self.kinds.cmp(&other.kinds))
    }
}

impl std::hash::Hash for Key {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        // The keys of a set have the same types, so only the bytes differ.
        state.write(self.bytes());
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Formats the value in nft's syntax: `10.0.0.1 . tcp . 80`.
impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(f, Wording::SCRIPT)
    }
}

impl Words for Key {
    fn write(&self, f: &mut fmt::Formatter<'_>, with: Wording<'_>) -> fmt::Result {
        for (i, (part, value)) in self.parts().enumerate() {
            if i > 0 {
                f.write_str(" . ")?;
            }
            write_part(f, part, value, with.part(i))?;
        }
        Ok(())
    }
}

/// Returns the types for which [`Key::kinds`] has bytes.
#[inline]
pub(crate) fn types_of(kinds: &[u8]) -> impl ExactSizeIterator<Item = Part> + '_ {
    kinds.iter().map(|kind| Kind::from_byte(*kind).part())
}

/// Returns the byte of a type, as [`Key::kinds`] has it; `None` for a width that no key can have.
#[cfg(feature = "text")]
pub(crate) fn kind_of(part: Part) -> Option<u8> {
    Kind::of(part).map(Kind::byte)
}

/// `NFT_DATA_VALUE_MAXLEN`.
pub(crate) const MAX_BYTES: usize = 64;
pub(crate) const MAX_PARTS: usize = 8;

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use super::*;
    use crate::datatype::{DataType, Order};
    use crate::{InterfaceName, Protocol};

    const PARTS: [Part; 3] = [
        Part::Type(DataType::IPV4_ADDR),
        Part::Type(DataType::INET_PROTO),
        Part::Integer { bytes: 4, order: Order::Host },
    ];

    #[test]
    fn a_key_survives_the_kernel() {
        let key = Key::from((Ipv4Addr::new(1, 2, 3, 4), Protocol::UDP, Number(7)));
        assert_eq!(Key::decode(&PARTS, key.bytes()), Some(key));
        assert_eq!(Key::decode(&PARTS, &key.bytes()[..11]), None);
        assert_eq!(key.to_string(), "1.2.3.4 . udp . 7");
    }

    #[test]
    fn a_single_part_is_not_padded() {
        assert_eq!(Key::from(Port(80)).bytes(), [0, 80]);
        assert_eq!(Key::from((Port(80), Protocol::TCP)).bytes(), [0, 80, 0, 0, 6, 0, 0, 0]);
    }

    #[test]
    fn parts_print_by_type() {
        assert_eq!(Key::from(Mark(0x4000)).to_string(), "0x00004000");
        assert_eq!(Key::from(Protocol(99)).to_string(), "99");
        assert_eq!(Key::from(EtherAddr([1, 2, 3, 0xa, 0xb, 0xc])).to_string(), "01:02:03:0a:0b:0c");
        assert_eq!(Key::from(InterfaceName::new("eth0").unwrap()).to_string(), "\"eth0\"");
    }

    #[test]
    #[should_panic(expected = "does not fit a key")]
    fn a_key_over_64_bytes_is_refused() {
        let a = Ipv6Addr::UNSPECIFIED;
        let _ = Key::from((a, a, a, a)).and(Port(1));
    }
}
