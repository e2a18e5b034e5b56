//! The two families of IP addresses.

use std::fmt;
use std::net::IpAddr;

/// A family of IP addresses, such as that of an IPVS service or of a flow.
///
/// The enum is exhaustive: these objects have addresses of the two families only. A table of nftables can
/// also belong to `inet`, `arp`, `bridge` or `netdev`: its family is a type of `sluicegate-nftables`.
///
/// ```
/// use sluicegate_netlink::Family;
///
/// assert_eq!(Family::of([192, 0, 2, 1].into()), Family::Ipv4);
/// assert_eq!(Family::ALL, [Family::Ipv4, Family::Ipv6]);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Family {
    /// `AF_INET`, `NFPROTO_IPV4`.
    Ipv4,
    /// `AF_INET6`, `NFPROTO_IPV6`.
    Ipv6,
}

impl Family {
    /// Both families, in the order of their numbers.
    pub const ALL: [Self; 2] = [Self::Ipv4, Self::Ipv6];

    /// Returns the family of an address.
    #[must_use]
    pub const fn of(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(_) => Self::Ipv4,
            IpAddr::V6(_) => Self::Ipv6,
        }
    }

    /// Returns the number that messages carry: `AF_INET` (2) or `AF_INET6` (10).
    #[must_use]
    pub const fn number(self) -> u8 {
        match self {
            Self::Ipv4 => 2,
            Self::Ipv6 => 10,
        }
    }

    /// Returns the family with this number, `None` for any other number.
    #[must_use]
    pub const fn from_number(number: u8) -> Option<Self> {
        match number {
            2 => Some(Self::Ipv4),
            10 => Some(Self::Ipv6),
            _ => None,
        }
    }

    /// Returns the length of an address in bits, which is that of its longest prefix: 32 or 128.
    #[must_use]
    pub const fn bits(self) -> u8 {
        match self {
            Self::Ipv4 => 32,
            Self::Ipv6 => 128,
        }
    }
}

/// `IPv4` or `IPv6`.
impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Ipv4 => "IPv4",
            Self::Ipv6 => "IPv6",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, Ipv6Addr};

    #[test]
    fn numbers_lead_back_to_the_family() {
        for family in Family::ALL {
            assert_eq!(Family::from_number(family.number()), Some(family));
        }
        assert_eq!(Family::from_number(1), None);
    }

    #[test]
    fn an_address_has_the_bits_of_its_family() {
        assert_eq!(Family::of(Ipv4Addr::LOCALHOST.into()).bits(), 32);
        assert_eq!(Family::of(Ipv6Addr::LOCALHOST.into()).bits(), 128);
    }
}
