//! Keys and values of set elements, packed as the kernel keeps them: no allocation, no text.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::InterfaceName;
use crate::datatype::{DataType, Order};

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

/// The type of one part of a key: a data type, or a number that has only a width (`numgen`, raw payload).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Part {
    /// A named type.
    Type(DataType),
    /// An integer of so many bytes.
    Integer {
        /// Its bytes, 1 to 16.
        bytes: u8,
        /// Their order.
        order: Order,
    },
}

impl Key {
    /// A key of no part, to [`push`](Self::push) to.
    #[must_use]
    pub const fn new() -> Self {
        Self { bytes: [0; MAX_BYTES], length: 0, parts: 0, kinds: [Kind(0); MAX_PARTS] }
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

    /// The bytes with padding behind the last part too.
    pub(crate) fn padded(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.length)).unwrap_or_default()
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

    fn try_append(&mut self, part: Part, value: &[u8]) -> Option<()> {
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
        let kinds = |key: &Self| key.kinds.map(|kind| kind.0);
        self.bytes().cmp(other.bytes()).then_with(|| kinds(self).cmp(&kinds(other)))
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
        for (i, (part, value)) in self.parts().enumerate() {
            if i > 0 {
                f.write_str(" . ")?;
            }
            write_part(f, part, value)?;
        }
        Ok(())
    }
}

impl Part {
    /// Bytes of a value.
    #[must_use]
    pub fn bytes(self) -> usize {
        match self {
            Self::Type(of) => of.bytes(),
            Self::Integer { bytes, .. } => usize::from(bytes),
        }
    }

    /// The order of its bytes.
    #[must_use]
    pub fn order(self) -> Order {
        match self {
            Self::Type(of) => of.order(),
            Self::Integer { order, .. } => order,
        }
    }

    /// The data type that nft gives it.
    #[must_use]
    pub fn data_type(self) -> DataType {
        match self {
            Self::Type(of) => of,
            Self::Integer { .. } => DataType::INTEGER,
        }
    }
}

impl From<DataType> for Part {
    fn from(of: DataType) -> Self {
        Self::Type(of)
    }
}

/// A [`Part`] in one byte: the number of a data type, or a width with marks for "integer" and "network order".
#[derive(Clone, Copy, PartialEq, Eq)]
struct Kind(u8);

impl Kind {
    const IPV4_ADDR: Self = Self::named(DataType::IPV4_ADDR);
    const IPV6_ADDR: Self = Self::named(DataType::IPV6_ADDR);
    const ETHER_ADDR: Self = Self::named(DataType::ETHER_ADDR);
    const INET_PROTO: Self = Self::named(DataType::INET_PROTO);
    const INET_SERVICE: Self = Self::named(DataType::INET_SERVICE);
    const MARK: Self = Self::named(DataType::MARK);
    const IFNAME: Self = Self::named(DataType::IFNAME);
    /// An integer of four bytes in host order.
    const NUMBER: Self = Self(0x84);

    const fn named(of: DataType) -> Self {
        Self(of.id())
    }

    fn of(part: Part) -> Option<Self> {
        match part {
            Part::Type(of) => Some(Self(of.id())),
            Part::Integer { bytes: bytes @ 1..=16, order: Order::Host } => Some(Self(0x80 | bytes)),
            Part::Integer { bytes: bytes @ 1..=16, order: Order::Network } => Some(Self(0xc0 | bytes)),
            Part::Integer { .. } => None,
        }
    }

    fn part(self) -> Part {
        match self.0 {
            0xc0.. => Part::Integer { bytes: self.0 & 0x1f, order: Order::Network },
            0x80.. => Part::Integer { bytes: self.0 & 0x1f, order: Order::Host },
            id => Part::Type(DataType::from_id(id).unwrap_or(DataType::INTEGER)),
        }
    }
}

/// A value that can be part of a key.
pub trait KeyPart {
    /// Appends it; see [`Key::append`].
    fn push(&self, key: &mut Key);
}

/// A transport protocol (`inet_proto`). Open: any number is one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Protocol(pub u8);

impl Protocol {
    /// `IPPROTO_ICMP`.
    pub const ICMP: Self = Self(1);
    /// `IPPROTO_TCP`.
    pub const TCP: Self = Self(6);
    /// `IPPROTO_UDP`.
    pub const UDP: Self = Self(17);
    /// `IPPROTO_ICMPV6`.
    pub const ICMPV6: Self = Self(58);
    /// `IPPROTO_SCTP`.
    pub const SCTP: Self = Self(132);
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match DataType::INET_PROTO.symbol_of(self.0.into()) {
            Some(name) => f.write_str(name),
            None => write!(f, "{}", self.0),
        }
    }
}

/// A port (`inet_service`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Port(pub u16);

/// A packet or connection mark (`mark`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mark(pub u32);

/// What `numgen` and the hashes give: a 32-bit integer in host order. A set that has one needs the `typeof` form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Number(pub u32);

/// A link-layer address of six bytes (`ether_addr`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EtherAddr(pub [u8; 6]);

impl fmt::Display for EtherAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

macro_rules! key_parts {
    ($($rust:ty, $self:ident => $kind:expr, $bytes:expr;)*) => {$(
        impl KeyPart for $rust {
            #[inline]
            fn push(&self, key: &mut Key) {
                let $self = self;
                key.put($kind, $bytes);
            }
        }

        impl From<$rust> for Key {
            fn from(part: $rust) -> Self {
                Self::new().and(part)
            }
        }
    )*};
}

key_parts! {
    Ipv4Addr, v => Kind::IPV4_ADDR, v.octets();
    Ipv6Addr, v => Kind::IPV6_ADDR, v.octets();
    Protocol, v => Kind::INET_PROTO, [v.0];
    Port, v => Kind::INET_SERVICE, v.0.to_be_bytes();
    Mark, v => Kind::MARK, v.0.to_ne_bytes();
    EtherAddr, v => Kind::ETHER_ADDR, v.0;
    Number, v => Kind::NUMBER, v.0.to_ne_bytes();
    InterfaceName, v => Kind::IFNAME, interface(v);
}

impl KeyPart for IpAddr {
    #[inline]
    fn push(&self, key: &mut Key) {
        match self {
            Self::V4(address) => address.push(key),
            Self::V6(address) => address.push(key),
        }
    }
}

impl From<IpAddr> for Key {
    fn from(address: IpAddr) -> Self {
        Self::new().and(address)
    }
}

macro_rules! key_tuples {
    ($(($($name:ident),*))*) => {$(
        impl<$($name: KeyPart),*> From<($($name,)*)> for Key {
            #[inline]
            #[allow(non_snake_case, reason = "the type's letter names its value")]
            fn from(($($name,)*): ($($name,)*)) -> Self {
                let mut key = Self::new();
                $($name.push(&mut key);)*
                key
            }
        }
    )*};
}

key_tuples! { (A, B) (A, B, C) (A, B, C, D) (A, B, C, D, E) }

fn interface(name: &InterfaceName) -> [u8; 16] {
    let mut bytes = [0; 16];
    for (to, from) in bytes.iter_mut().zip(name.as_str().as_bytes()) {
        *to = *from;
    }
    bytes
}

/// One value as nft writes it in a set, by its type.
pub(crate) fn write_part(f: &mut fmt::Formatter<'_>, part: Part, value: &[u8]) -> fmt::Result {
    let number = integer(part.order(), value);
    match part.data_type() {
        DataType::IPV4_ADDR => match <[u8; 4]>::try_from(value) {
            Ok(octets) => write!(f, "{}", Ipv4Addr::from(octets)),
            Err(_) => write_hex(f, value),
        },
        DataType::IPV6_ADDR => match <[u8; 16]>::try_from(value) {
            Ok(octets) => write!(f, "{}", Ipv6Addr::from(octets)),
            Err(_) => write_hex(f, value),
        },
        DataType::ETHER_ADDR | DataType::LL_ADDR => match <[u8; 6]>::try_from(value) {
            Ok(bytes) => write!(f, "{}", EtherAddr(bytes)),
            Err(_) => write_hex(f, value),
        },
        DataType::IFNAME | DataType::STRING => {
            let end = value.iter().position(|b| *b == 0).unwrap_or(value.len());
            write!(
                f,
                "{}",
                InterfaceName::held(&String::from_utf8_lossy(value.get(..end).unwrap_or_default()))
            )
        }
        _ if value.len() > 8 => write_hex(f, value),
        of => write_number(f, of, number),
    }
}

/// A number as nft writes it for a type: the name of the value, hexadecimal for marks and bit masks, else decimal.
pub(crate) fn write_number(f: &mut fmt::Formatter<'_>, of: DataType, number: u64) -> fmt::Result {
    if of.is_bitmask() {
        return write_bits(f, of, number);
    }
    if let Some(symbol) = of.symbol_of(number) {
        return match of {
            DataType::DAY => write!(f, "\"{symbol}\""),
            _ => f.write_str(symbol),
        };
    }
    match of {
        DataType::MARK => write!(f, "{number:#010x}"),
        DataType::CLASSID => write!(f, "{:x}:{:x}", number >> 16, number & 0xffff),
        DataType::ETHER_TYPE => write!(f, "{number:#06x}"),
        DataType::DSCP | DataType::ECN => write!(f, "{number:#04x}"),
        _ => write!(f, "{number}"),
    }
}

fn write_bits(f: &mut fmt::Formatter<'_>, of: DataType, number: u64) -> fmt::Result {
    let mut rest = number;
    let mut first = true;
    for (symbol, bit) in of.symbols() {
        if number & bit != 0 {
            if !first {
                f.write_str(",")?;
            }
            f.write_str(symbol)?;
            (rest, first) = (rest & !bit, false);
        }
    }
    match (rest, first) {
        (0, false) => Ok(()),
        (_, true) => write!(f, "{rest:#x}"),
        (_, false) => write!(f, ",{rest:#x}"),
    }
}

fn write_hex(f: &mut fmt::Formatter<'_>, value: &[u8]) -> fmt::Result {
    f.write_str("0x")?;
    value.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
}

/// The number that up to eight bytes are.
pub(crate) fn integer(order: Order, bytes: &[u8]) -> u64 {
    let add = |sum: u64, byte: &u8| sum << 8 | u64::from(*byte);
    let little = order == Order::Host && cfg!(target_endian = "little");
    if little { bytes.iter().rev().fold(0, add) } else { bytes.iter().fold(0, add) }
}

/// The lowest `length` bytes of a number, in an order.
pub(crate) fn integer_bytes(order: Order, length: usize, number: u64) -> Vec<u8> {
    let mut bytes: Vec<u8> =
        number.to_le_bytes().into_iter().chain(std::iter::repeat(0)).take(length).collect();
    if order == Order::Network || cfg!(target_endian = "big") {
        bytes.reverse();
    }
    bytes
}

const MAX_BYTES: usize = 64;
const MAX_PARTS: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

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
