//! Addresses, networks and ranges, in the notation of `ipset`.

use std::fmt::{self, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::{Family, Names, Reason, number};

/// One address, a network, or a range of addresses.
///
/// The type and family of an element determine which of these it can have; [`Entry::new`](crate::Entry::new)
/// checks it. A network may have host bits set (`10.0.0.1/8`): the kernel masks them. The kernel expands
/// networks and ranges if the type stores single addresses, and splits ranges into networks if it stores
/// networks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Addresses {
    /// One address.
    Host(IpAddr),
    /// All addresses that share the first `prefix` bits.
    Network {
        /// Any address of the network.
        address: IpAddr,
        /// Bits, at most 32 or 128.
        prefix: u8,
    },
    /// All addresses from the lower to the higher one, both included, in either order.
    Range {
        /// One end.
        from: IpAddr,
        /// The other end, of the same family.
        to: IpAddr,
    },
}

impl Addresses {
    /// Returns the address that is written first: the only one, that of the network, or one end of the range.
    #[must_use]
    pub fn first(&self) -> IpAddr {
        match *self {
            Self::Host(address) | Self::Network { address, .. } | Self::Range { from: address, .. } => {
                address
            }
        }
    }

    /// Returns the family; `None` if the ends of a range have different families.
    #[must_use]
    pub fn family(&self) -> Option<Family> {
        let family = Family::of(self.first());
        match self {
            Self::Range { to, .. } if Family::of(*to) != family => None,
            _ => Some(family),
        }
    }

    /// Returns true for a single address, with or without its full prefix length.
    #[must_use]
    pub fn is_host(&self) -> bool {
        match self {
            Self::Host(_) => true,
            Self::Network { address, prefix } => *prefix == Family::of(*address).bits(),
            Self::Range { .. } => false,
        }
    }

    /// Reads an address, `address/prefix` or `address-address`.
    ///
    /// IPv4 addresses may be short as for `inet_aton(3)` (`10.1` is 10.0.0.1). A name with a dash stands in
    /// square brackets.
    ///
    /// # Errors
    /// [`Reason::Address`], [`Reason::OutOfRange`], [`Reason::Bracket`].
    pub fn parse(text: &str, family: Family, names: &dyn Names) -> Result<Self, Reason> {
        if let Some((address, prefix)) = split_inside(text, '/') {
            let prefix = number::parse_u8(prefix)?;
            if prefix > family.bits() {
                return Err(Reason::OutOfRange {
                    text: prefix.to_string(),
                    min: 0,
                    max: u64::from(family.bits()),
                });
            }
            return Ok(Self::Network { address: host(unbracket(address)?, family, names)?, prefix });
        }
        match split_range(text)? {
            Some((from, to)) => Ok(Self::Range {
                from: host(unbracket(from)?, family, names)?,
                to: host(unbracket(to)?, family, names)?,
            }),
            None => Ok(Self::Host(host(unbracket(text)?, family, names)?)),
        }
    }
}

impl From<IpAddr> for Addresses {
    fn from(address: IpAddr) -> Self {
        Self::Host(address)
    }
}

impl From<Ipv4Addr> for Addresses {
    fn from(address: Ipv4Addr) -> Self {
        Self::Host(address.into())
    }
}

impl From<Ipv6Addr> for Addresses {
    fn from(address: Ipv6Addr) -> Self {
        Self::Host(address.into())
    }
}

impl From<(IpAddr, u8)> for Addresses {
    fn from((address, prefix): (IpAddr, u8)) -> Self {
        Self::Network { address, prefix }
    }
}

impl fmt::Display for Addresses {
    /// Prints the addresses as `ipset` does: a network of one address without its prefix length.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Host(address) => write_address(f, *address),
            Self::Network { address, .. } if self.is_host() => write_address(f, *address),
            Self::Network { address, prefix } => {
                write_address(f, *address)?;
                write!(f, "/{prefix}")
            }
            Self::Range { from, to } => {
                write_address(f, *from)?;
                f.write_char('-')?;
                write_address(f, *to)
            }
        }
    }
}

/// Writes an address as `inet_ntop(3)` does: as Rust does, except that `::102:304` is `::1.2.3.4`.
pub(crate) fn write_address(f: &mut fmt::Formatter<'_>, address: IpAddr) -> fmt::Result {
    if let IpAddr::V6(v6) = address
        && let [0, 0, 0, 0, 0, 0, high, low] = v6.segments()
        && high != 0
    {
        let [a, b] = high.to_be_bytes();
        let [c, d] = low.to_be_bytes();
        return write!(f, "::{a}.{b}.{c}.{d}");
    }
    // Directly to the writer: with a width or precision, std uses a buffer.
    write!(f, "{address}")
}

/// Reads one address, or looks a name up.
pub(crate) fn host(text: &str, family: Family, names: &dyn Names) -> Result<IpAddr, Reason> {
    let parsed = match family {
        Family::Ipv6 => text.parse::<Ipv6Addr>().ok().map(IpAddr::V6),
        _ => text.parse::<Ipv4Addr>().ok().or_else(|| short_ipv4(text)).map(IpAddr::V4),
    };
    parsed
        .or_else(|| names.host(text, family).filter(|address| Family::of(*address) == family))
        .ok_or_else(|| Reason::Address { text: text.to_owned(), family })
}

/// Reads digits and dots as `inet_aton(3)` does: one to four numbers, the last of which fills all remaining
/// bytes.
fn short_ipv4(text: &str) -> Option<Ipv4Addr> {
    if !text.bytes().all(|b| b.is_ascii_digit() || b == b'.') {
        return None;
    }
    let mut bits = 0_u32;
    let mut left = 4_u32;
    let mut parts = text.split('.').peekable();
    while let Some(part) = parts.next() {
        let value = number::parse_u32(part).ok()?;
        left = left.checked_sub(1)?;
        let last = parts.peek().is_none();
        let limit = if last { u32::MAX >> (8 * (3 - left)) } else { 0xff };
        if value > limit {
            return None;
        }
        bits |= if last { value } else { value << (8 * left) };
    }
    Some(bits.into())
}

/// Splits at the first separator, unless the text begins or ends with one.
pub(crate) fn split_inside(text: &str, separator: char) -> Option<(&str, &str)> {
    if text.starts_with(separator) || text.ends_with(separator) { None } else { text.split_once(separator) }
}

/// Splits `a-b`; `a` may be in brackets and then have dashes of its own.
pub(crate) fn split_range(text: &str) -> Result<Option<(&str, &str)>, Reason> {
    if !text.starts_with('[') {
        return Ok(split_inside(text, '-'));
    }
    let bracket = || Reason::Bracket(text.to_owned());
    let end = text.find(']').ok_or_else(bracket)? + 1;
    let (from, rest) = (text.get(..end).unwrap_or_default(), text.get(end..).unwrap_or_default());
    match rest.strip_prefix('-') {
        _ if rest.is_empty() => Ok(None),
        Some(to) => Ok(Some((from, to))),
        None => Err(bracket()),
    }
}

/// Removes the square brackets around a name.
pub(crate) fn unbracket(text: &str) -> Result<&str, Reason> {
    match text.strip_prefix('[') {
        None => Ok(text),
        Some(rest) => rest.strip_suffix(']').ok_or_else(|| Reason::Bracket(text.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Numeric;

    fn read(text: &str, family: Family) -> String {
        match Addresses::parse(text, family, &Numeric) {
            Ok(addresses) => addresses.to_string(),
            Err(reason) => reason.to_string(),
        }
    }

    /// The values that ipset 7.17 stored and printed for the same words, on Linux 6.18.
    #[test]
    fn the_notations_of_ipset_are_read() {
        for (text, printed) in [
            ("10.0.0.1", "10.0.0.1"),
            ("10.0.0.0/8", "10.0.0.0/8"),
            ("10.0.0.1/32", "10.0.0.1"),
            ("10.0.0.1-10.0.0.3", "10.0.0.1-10.0.0.3"),
            ("[10.0.0.1]-[10.0.0.3]", "10.0.0.1-10.0.0.3"),
            ("[10.0.0.1]", "10.0.0.1"),
            ("1.2.3", "1.2.0.3"),
            ("010.1", "8.0.0.1"),
            ("192.168/0x10", "192.0.0.168/16"),
            ("4294967295", "255.255.255.255"),
            ("4294967296", "expected an IPv4 address, found '4294967296'"),
            ("256.1.1.1", "expected an IPv4 address, found '256.1.1.1'"),
            ("1.2.3.4.5", "expected an IPv4 address, found '1.2.3.4.5'"),
            ("0x0a.1", "expected an IPv4 address, found '0x0a.1'"),
            ("::1", "expected an IPv4 address, found '::1'"),
            ("1.1.1.0/33", "expected a number from 0 to 32, found '33'"),
            ("1.1.1.0/", "expected an IPv4 address, found '1.1.1.0/'"),
            ("1.1.1.1-", "expected an IPv4 address, found '1.1.1.1-'"),
            ("-", "expected an IPv4 address, found '-'"),
            ("", "expected an IPv4 address, found ''"),
            (
                "[10.0.0.1-10.0.0.3",
                "expected a closing bracket at the end of the name, found '[10.0.0.1-10.0.0.3'",
            ),
        ] {
            assert_eq!(read(text, Family::Ipv4), printed);
        }
    }

    #[test]
    fn ipv6_prints_as_inet_ntop_does() {
        for (text, printed) in [
            ("1::/64", "1::/64"),
            ("::", "::"),
            ("::1", "::1"),
            ("::1.2.3.4", "::1.2.3.4"),
            ("::5:6", "::0.5.0.6"),
            ("::ffff:1.2.3.4", "::ffff:1.2.3.4"),
            ("1:0:0:2:0:0:0:3", "1:0:0:2::3"),
            ("10.0.0.1", "expected an IPv6 address, found '10.0.0.1'"),
            ("1::/129", "expected a number from 0 to 128, found '129'"),
        ] {
            assert_eq!(read(text, Family::Ipv6), printed);
        }
    }
}
