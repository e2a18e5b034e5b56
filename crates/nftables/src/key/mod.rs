//! Keys and values of set elements, packed as the kernel keeps them: no allocation, no text.

mod part;
mod values;

use std::fmt;

use crate::lang::{Wording, Words, write_part};
use part::Kind;
pub use part::Part;
pub(crate) use part::{integer, integer_bytes, width};
pub use values::{EtherAddr, KeyPart, Mark, Number, Port, Protocol, QueueNumber};

/// The key of an element, or the value that a data map gives for it: one typed part, or a concatenation of up to eight.
///
/// 64 bytes at most (`NFT_DATA_VALUE_MAXLEN`), inline. Parts know their types, so a key prints itself as nft does and can be
/// compared with the type of the set that it is for.
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
    /// Of `bytes`, padding between parts included and behind the last part too.
    length: u8,
    parts: u8,
    kinds: [Kind; MAX_PARTS],
}

impl Key {
    /// A key of no part, to [`push`](Self::push) to.
    #[must_use]
    pub const fn new() -> Self {
        Self { bytes: [0; MAX_BYTES], length: 0, parts: 0, kinds: [Kind::NONE; MAX_PARTS] }
    }

    /// Appends a part.
    ///
    /// # Panics
    /// When the key would pass 64 bytes or eight parts; no set of the kernel's has such a key.
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
    /// `None` when their lengths do not agree.
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

    /// The bytes as the kernel has them: a single part as it is, several padded to four bytes each.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        let length = if self.parts == 1 { self.kinds[0].part().bytes() } else { usize::from(self.length) };
        self.bytes.get(..length).unwrap_or_default()
    }

    /// The types of its parts.
    pub fn types(&self) -> impl ExactSizeIterator<Item = Part> + '_ {
        self.kinds.iter().take(usize::from(self.parts)).map(|kind| kind.part())
    }

    /// Each part's type and bytes, without padding.
    pub fn parts(&self) -> impl Iterator<Item = (Part, &[u8])> + '_ {
        let mut at = 0;
        self.types().map(move |part| {
            let value = self.bytes.get(at..at + part.bytes()).unwrap_or_default();
            at += part.bytes().next_multiple_of(4);
            (part, value)
        })
    }

    /// Appends a part of any type, for types that have no Rust type of their own here.
    ///
    /// # Panics
    /// When `value` has not the length of `part`, and as [`and`](Self::and).
    pub fn append(&mut self, part: Part, value: &[u8]) {
        assert!(
            self.try_append(part, value).is_some(),
            "{part:?} of {} bytes does not fit a key",
            value.len()
        );
    }

    /// The bytes, to be changed in place.
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        let length = self.bytes().len();
        self.bytes.get_mut(..length).unwrap_or_default()
    }

    /// Makes it the next value of its only part; false, and all zero, behind the last.
    pub(crate) fn increment(&mut self) -> bool {
        let (length, host) = (self.bytes().len(), crate::object::element::is_turned(self.kinds[0].part()));
        let bytes = self.bytes.get_mut(..length).unwrap_or_default();
        let add = |byte: &mut u8| {
            *byte = byte.wrapping_add(1);
            *byte != 0
        };
        if host { bytes.iter_mut().any(add) } else { bytes.iter_mut().rev().any(add) }
    }

    /// Makes it the value before of its only part; all ones before the first.
    pub(crate) fn decrement(&mut self) {
        let (length, host) = (self.bytes().len(), crate::object::element::is_turned(self.kinds[0].part()));
        let bytes = self.bytes.get_mut(..length).unwrap_or_default();
        let subtract = |byte: &mut u8| {
            *byte = byte.wrapping_sub(1);
            *byte != u8::MAX
        };
        let _ = if host { bytes.iter_mut().any(subtract) } else { bytes.iter_mut().rev().any(subtract) };
    }

    /// The highest value of its only part.
    pub(crate) fn last_of_type(&self) -> Self {
        let mut last = *self;
        let length = self.bytes().len();
        last.bytes.get_mut(..length).unwrap_or_default().fill(0xff);
        last
    }

    /// As [`append`](Self::append); `None` where it does not fit.
    pub(crate) fn try_append(&mut self, part: Part, value: &[u8]) -> Option<()> {
        if value.len() != part.bytes() {
            return None;
        }
        self.place(Kind::of(part)?, value.len())?.copy_from_slice(value);
        Some(())
    }

    /// Appends a value whose width its type fixes: the quick way, for elements by the ten thousand.
    #[inline]
    fn put<const N: usize>(&mut self, kind: Kind, value: [u8; N]) {
        match self.place(kind, N) {
            Some(place) => place.copy_from_slice(&value),
            None => panic!("a part of {N} bytes does not fit a key of {} bytes", self.length),
        }
    }

    /// Makes room for one more part.
    #[inline]
    fn place(&mut self, kind: Kind, length: usize) -> Option<&mut [u8]> {
        let at = usize::from(self.length);
        let end = at + length.next_multiple_of(4);
        *self.kinds.get_mut(usize::from(self.parts))? = kind;
        let place = self.bytes.get_mut(at..end)?;
        self.length = u8::try_from(end).ok()?;
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

/// By bytes, then by type: the order in which an interval set sorts.
impl Ord for Key {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.bytes().cmp(other.bytes()).then_with(|| self.kinds.cmp(&other.kinds))
    }
}

impl std::hash::Hash for Key {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        // Keys of one set have one type; the bytes tell them apart.
        state.write(self.bytes());
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// As nft writes it: `10.0.0.1 . tcp . 80`.
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

const MAX_BYTES: usize = 64;
const MAX_PARTS: usize = 8;

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use super::*;
    use crate::InterfaceName;
    use crate::datatype::{DataType, Order};

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
