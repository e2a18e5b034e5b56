//! The types of parts of a key, and the conversion of numbers to bytes.

use crate::datatype::{DataType, Order};

/// The type of one part of a key: a data type, or an integer that only has a length (`numgen`, raw payload).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Part {
    /// A named type.
    Type(DataType),
    /// A value of a named type with one byte more than the type: `ip6 dscp`, which spans two bytes.
    Wide(DataType),
    /// An integer of this length.
    Integer {
        /// The length in bytes, 1 to 16.
        bytes: u8,
        /// The byte order.
        order: Order,
    },
}

impl Part {
    /// Returns the length of a value in bytes.
    #[must_use]
    pub fn bytes(self) -> usize {
        match self {
            Self::Type(of) => of.bytes(),
            Self::Wide(of) => of.bytes() + 1,
            Self::Integer { bytes, .. } => usize::from(bytes),
        }
    }

    /// Returns the byte order of a value.
    #[must_use]
    pub fn order(self) -> Order {
        match self {
            Self::Type(of) | Self::Wide(of) => of.order(),
            Self::Integer { order, .. } => order,
        }
    }

    /// Returns the data type that nft uses for it.
    #[must_use]
    pub fn data_type(self) -> DataType {
        match self {
            Self::Type(of) | Self::Wide(of) => of,
            Self::Integer { .. } => DataType::INTEGER,
        }
    }
}

impl From<DataType> for Part {
    fn from(of: DataType) -> Self {
        Self::Type(of)
    }
}

/// A [`Part`] in one byte: the number of a data type, with a flag for wide values; or a length with flags for
/// integers and network byte order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Kind(u8);

impl Kind {
    pub(super) const IPV4_ADDR: Self = Self::named(DataType::IPV4_ADDR);
    pub(super) const IPV6_ADDR: Self = Self::named(DataType::IPV6_ADDR);
    pub(super) const ETHER_ADDR: Self = Self::named(DataType::ETHER_ADDR);
    pub(super) const INET_PROTO: Self = Self::named(DataType::INET_PROTO);
    pub(super) const INET_SERVICE: Self = Self::named(DataType::INET_SERVICE);
    pub(super) const MARK: Self = Self::named(DataType::MARK);
    pub(super) const IFNAME: Self = Self::named(DataType::IFNAME);
    /// An integer of four bytes in host byte order.
    pub(super) const NUMBER: Self = Self(0x84);
    /// An integer of two bytes in host byte order.
    pub(super) const QUEUE: Self = Self(0x82);

    #[inline]
    pub(super) fn byte(self) -> u8 {
        self.0
    }

    #[inline]
    pub(super) fn from_byte(byte: u8) -> Self {
        Self(byte)
    }

    const fn named(of: DataType) -> Self {
        Self(of.id())
    }

    pub(super) fn of(part: Part) -> Option<Self> {
        match part {
            Part::Type(of) => Some(Self(of.id())),
            Part::Wide(of) => Some(Self(0x40 | of.id())),
            Part::Integer { bytes: bytes @ 1..=16, order: Order::Host } => Some(Self(0x80 | bytes)),
            Part::Integer { bytes: bytes @ 1..=16, order: Order::Network } => Some(Self(0xc0 | bytes)),
            Part::Integer { .. } => None,
        }
    }

    pub(super) fn part(self) -> Part {
        match self.0 {
            0xc0.. => Part::Integer { bytes: self.0 & 0x1f, order: Order::Network },
            0x80.. => Part::Integer { bytes: self.0 & 0x1f, order: Order::Host },
            0x40.. => Part::Wide(DataType::from_id(self.0 & 0x3f).unwrap_or(DataType::INTEGER)),
            id => Part::Type(DataType::from_id(id).unwrap_or(DataType::INTEGER)),
        }
    }
}

/// Returns the length of a value in registers in bytes: several parts are padded to four bytes each.
pub(crate) fn width(parts: &[Part]) -> usize {
    match parts {
        [only] => only.bytes(),
        parts => parts.iter().map(|part| part.bytes().next_multiple_of(4)).sum(),
    }
}

/// Converts up to eight bytes to a number.
pub(crate) fn integer(order: Order, bytes: &[u8]) -> u64 {
    let add = |sum: u64, byte: &u8| sum << 8 | u64::from(*byte);
    let little = order == Order::Host && cfg!(target_endian = "little");
    if little { bytes.iter().rev().fold(0, add) } else { bytes.iter().fold(0, add) }
}

/// Converts a number to its lowest `length` bytes.
pub(crate) fn integer_bytes(order: Order, length: usize, number: u64) -> Vec<u8> {
    let mut bytes: Vec<u8> =
        number.to_le_bytes().into_iter().chain(std::iter::repeat(0)).take(length).collect();
    if order == Order::Network || cfg!(target_endian = "big") {
        bytes.reverse();
    }
    bytes
}

/// Returns whether an interval set stores values of this type byte-swapped: numbers in host byte order, on
/// little-endian machines.
pub(crate) fn is_byte_swapped(part: Part) -> bool {
    let text = matches!(part.data_type(), DataType::IFNAME | DataType::STRING);
    part.order() == Order::Host && !text && cfg!(target_endian = "little")
}
