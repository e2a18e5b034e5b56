//! How values are packed into bytes: numbers in as few as they need, text with its length before it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

/// A value that is packed into bytes and read back. Nothing outside of the process sees the bytes.
pub(super) trait Pack: Sized {
    /// Appends the value; `None` if it has no packed form.
    fn pack(&self, to: &mut Vec<u8>) -> Option<()>;

    /// Takes a value from the start; `None` if there is none.
    fn unpack(from: &mut &[u8]) -> Option<Self>;
}

/// Implements [`Pack`] for structs, field by field.
macro_rules! structs {
    ($($name:ident { $($field:tt),* })*) => {$(
        impl $crate::tree::statements::pack::Pack for $name {
            fn pack(&self, to: &mut Vec<u8>) -> Option<()> {
                $(self.$field.pack(to)?;)*
                Some(())
            }

            fn unpack(from: &mut &[u8]) -> Option<Self> {
                Some(Self { $($field: $crate::tree::statements::pack::Pack::unpack(from)?),* })
            }
        }
    )*};
}

/// Implements [`Pack`] for enums: the number of the variant, then its fields.
macro_rules! enums {
    ($($name:ident { $($number:literal $variant:ident $(($($field:ident),*))?,)* })*) => {$(
        impl $crate::tree::statements::pack::Pack for $name {
            fn pack(&self, to: &mut Vec<u8>) -> Option<()> {
                match self {
                    $(Self::$variant $(($($field),*))? => {
                        to.push($number);
                        $($($field.pack(to)?;)*)?
                    })*
                    #[allow(unreachable_patterns, reason = "most enums are packed whole")]
                    _ => return None,
                }
                Some(())
            }

            fn unpack(from: &mut &[u8]) -> Option<Self> {
                Some(match u8::unpack(from)? {
                    $($number => {
                        $($(let $field = $crate::tree::statements::pack::Pack::unpack(from)?;)*)?
                        Self::$variant $(($($field),*))?
                    })*
                    _ => return None,
                })
            }
        }
    )*};
}

/// Implements [`Pack`] for flags.
macro_rules! flags {
    ($($name:ident)*) => {$(
        impl $crate::tree::statements::pack::Pack for $name {
            fn pack(&self, to: &mut Vec<u8>) -> Option<()> {
                self.bits().pack(to)
            }

            fn unpack(from: &mut &[u8]) -> Option<Self> {
                $crate::tree::statements::pack::Pack::unpack(from).map(Self::from_bits_retain)
            }
        }
    )*};
}

/// Implements [`Pack`] for names, which are text that has been checked.
macro_rules! names {
    ($($name:ident)*) => {$(
        impl $crate::tree::statements::pack::Pack for $name {
            fn pack(&self, to: &mut Vec<u8>) -> Option<()> {
                $crate::tree::statements::pack::put_bytes(self.as_str().as_bytes(), to)
            }

            fn unpack(from: &mut &[u8]) -> Option<Self> {
                let bytes = $crate::tree::statements::pack::take_bytes(from)?;
                std::str::from_utf8(bytes).ok().map(Self::from_kernel)
            }
        }
    )*};
}

pub(super) use {enums, flags, names, structs};

/// Seven bits a byte, the lowest ones first; the highest bit says that another byte follows.
impl Pack for u64 {
    #[allow(clippy::cast_possible_truncation, reason = "the lowest seven bits are meant")]
    fn pack(&self, to: &mut Vec<u8>) -> Option<()> {
        let mut rest = *self;
        while rest >= 0x80 {
            to.push(rest as u8 | 0x80);
            rest >>= 7;
        }
        to.push(rest as u8);
        Some(())
    }

    fn unpack(from: &mut &[u8]) -> Option<Self> {
        let mut number = 0;
        for shift in (0..Self::BITS).step_by(7) {
            let byte = u8::unpack(from)?;
            number |= Self::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }
}

macro_rules! smaller_numbers {
    ($($number:ident)*) => {$(
        impl Pack for $number {
            fn pack(&self, to: &mut Vec<u8>) -> Option<()> {
                u64::from(*self).pack(to)
            }

            fn unpack(from: &mut &[u8]) -> Option<Self> {
                u64::unpack(from)?.try_into().ok()
            }
        }
    )*};
}

smaller_numbers! { u16 u32 }

impl Pack for u8 {
    fn pack(&self, to: &mut Vec<u8>) -> Option<()> {
        to.push(*self);
        Some(())
    }

    fn unpack(from: &mut &[u8]) -> Option<Self> {
        let (first, rest) = from.split_first()?;
        *from = rest;
        Some(*first)
    }
}

impl Pack for bool {
    fn pack(&self, to: &mut Vec<u8>) -> Option<()> {
        u8::from(*self).pack(to)
    }

    fn unpack(from: &mut &[u8]) -> Option<Self> {
        u8::unpack(from).map(|byte| byte != 0)
    }
}

impl<const N: usize> Pack for [u8; N] {
    fn pack(&self, to: &mut Vec<u8>) -> Option<()> {
        to.extend_from_slice(self);
        Some(())
    }

    fn unpack(from: &mut &[u8]) -> Option<Self> {
        let (array, rest) = from.split_first_chunk()?;
        *from = rest;
        Some(*array)
    }
}

impl Pack for Box<[u8]> {
    fn pack(&self, to: &mut Vec<u8>) -> Option<()> {
        put_bytes(self, to)
    }

    fn unpack(from: &mut &[u8]) -> Option<Self> {
        take_bytes(from).map(Self::from)
    }
}

impl Pack for IpAddr {
    fn pack(&self, to: &mut Vec<u8>) -> Option<()> {
        match self {
            Self::V4(address) => (false, address.octets()).pack(to),
            Self::V6(address) => (true, address.octets()).pack(to),
        }
    }

    fn unpack(from: &mut &[u8]) -> Option<Self> {
        Some(if bool::unpack(from)? {
            Ipv6Addr::from(<[u8; 16]>::unpack(from)?).into()
        } else {
            Ipv4Addr::from(<[u8; 4]>::unpack(from)?).into()
        })
    }
}

impl Pack for Duration {
    fn pack(&self, to: &mut Vec<u8>) -> Option<()> {
        (self.as_secs(), self.subsec_nanos()).pack(to)
    }

    fn unpack(from: &mut &[u8]) -> Option<Self> {
        let (seconds, nanos): (u64, u32) = Pack::unpack(from)?;
        (nanos < 1_000_000_000).then(|| Self::new(seconds, nanos))
    }
}

impl<T: Pack> Pack for Option<T> {
    fn pack(&self, to: &mut Vec<u8>) -> Option<()> {
        self.is_some().pack(to)?;
        self.as_ref().map_or(Some(()), |value| value.pack(to))
    }

    fn unpack(from: &mut &[u8]) -> Option<Self> {
        Some(if bool::unpack(from)? { Some(T::unpack(from)?) } else { None })
    }
}

impl<T: Pack> Pack for Box<T> {
    fn pack(&self, to: &mut Vec<u8>) -> Option<()> {
        T::pack(self, to)
    }

    fn unpack(from: &mut &[u8]) -> Option<Self> {
        T::unpack(from).map(Self::new)
    }
}

impl<T: Pack> Pack for Vec<T> {
    fn pack(&self, to: &mut Vec<u8>) -> Option<()> {
        u64::try_from(self.len()).ok()?.pack(to)?;
        self.iter().try_for_each(|value| value.pack(to))
    }

    fn unpack(from: &mut &[u8]) -> Option<Self> {
        (0..u64::unpack(from)?).map(|_| T::unpack(from)).collect()
    }
}

impl<A: Pack, B: Pack> Pack for (A, B) {
    fn pack(&self, to: &mut Vec<u8>) -> Option<()> {
        self.0.pack(to)?;
        self.1.pack(to)
    }

    fn unpack(from: &mut &[u8]) -> Option<Self> {
        Some((A::unpack(from)?, B::unpack(from)?))
    }
}

/// Appends bytes with their length before them.
pub(super) fn put_bytes(bytes: &[u8], to: &mut Vec<u8>) -> Option<()> {
    u64::try_from(bytes.len()).ok()?.pack(to)?;
    to.extend_from_slice(bytes);
    Some(())
}

/// Takes what [`put_bytes`] appended.
pub(super) fn take_bytes<'a>(from: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = usize::try_from(u64::unpack(from)?).ok()?;
    let (bytes, rest) = from.split_at_checked(length)?;
    *from = rest;
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_back() {
        for number in [0, 0x7f, 0x80, 0x3fff, 0x4000, u64::from(u32::MAX), u64::MAX] {
            let mut bytes = Vec::new();
            number.pack(&mut bytes).unwrap();
            assert_eq!(u64::unpack(&mut &*bytes), Some(number));
            assert_eq!(bytes.len(), (64 - number.leading_zeros()).max(1).div_ceil(7) as usize);
        }
    }

    #[test]
    fn cut_bytes_are_refused() {
        assert_eq!(u64::unpack(&mut &[0x80][..]), None);
        assert_eq!(u64::unpack(&mut &[0xff; 11][..]), None);
        assert_eq!(u16::unpack(&mut &[0xff, 0xff, 0x7f][..]), None, "more than 16 bits");
        assert_eq!(take_bytes(&mut &[2, 1][..]), None);
        assert_eq!(Vec::<u8>::unpack(&mut &[3, 1, 1][..]), None);
    }
}
