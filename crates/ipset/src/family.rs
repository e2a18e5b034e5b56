//! Address families of sets (`NFPROTO_*` of `linux/netfilter.h`).
//!
//! A type of this crate's own beside [`netlink::Family`](sluicegate_netlink::Family), because a set without
//! addresses has a family too: messages carry `NFPROTO_UNSPEC`, and ipset prints and parses the word.

use std::fmt;
use std::net::IpAddr;

use crate::Reason;

/// The address family of a set.
///
/// ```
/// use sluicegate_ipset::Family;
///
/// assert_eq!(Family::parse("inet6")?, Family::Ipv6);
/// assert_eq!(Family::of([192, 0, 2, 1].into()), Family::Ipv4);
/// assert_eq!(Family::Ipv4.bits(), 32);
/// # Ok::<(), sluicegate_ipset::Reason>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Family {
    /// `NFPROTO_UNSPEC`: a type that stores no addresses (`bitmap:port`, `hash:mac`, `list:set`).
    Unspecified,
    /// `NFPROTO_IPV4`.
    #[default]
    Ipv4,
    /// `NFPROTO_IPV6`.
    Ipv6,
}

impl Family {
    /// Returns the length of the longest prefix of an address: 32 or 128.
    #[must_use]
    pub fn bits(self) -> u8 {
        if self == Self::Ipv6 { 128 } else { 32 }
    }

    /// Returns the family of an address.
    #[must_use]
    pub fn of(address: IpAddr) -> Self {
        if address.is_ipv4() { Self::Ipv4 } else { Self::Ipv6 }
    }

    /// Parses `inet`, `inet6` and the aliases that `ipset` accepts.
    ///
    /// # Errors
    /// [`Reason::Family`].
    pub fn parse(word: &str) -> Result<Self, Reason> {
        match word {
            "inet" | "ipv4" | "-4" => Ok(Self::Ipv4),
            "inet6" | "ipv6" | "-6" => Ok(Self::Ipv6),
            "any" | "unspec" => Ok(Self::Unspecified),
            _ => Err(Reason::Family(word.to_owned())),
        }
    }

    /// Returns the number that messages carry.
    #[must_use]
    pub fn number(self) -> u8 {
        match self {
            Self::Unspecified => 0,
            Self::Ipv4 => 2,
            Self::Ipv6 => 10,
        }
    }

    /// Returns the family with this number, `None` for a number that sets do not have.
    #[must_use]
    pub fn from_number(number: u8) -> Option<Self> {
        [Self::Unspecified, Self::Ipv4, Self::Ipv6].into_iter().find(|family| family.number() == number)
    }

    /// Returns `IPv4` or `IPv6`, for errors.
    #[must_use]
    pub(crate) fn of_addresses(self) -> &'static str {
        if self == Self::Ipv6 { "IPv6" } else { "IPv4" }
    }
}

impl From<sluicegate_netlink::Family> for Family {
    fn from(family: sluicegate_netlink::Family) -> Self {
        match family {
            sluicegate_netlink::Family::Ipv4 => Self::Ipv4,
            sluicegate_netlink::Family::Ipv6 => Self::Ipv6,
        }
    }
}

/// The words of ipset: `inet`, `inet6`, `unspec`.
impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unspecified => "unspec",
            Self::Ipv4 => "inet",
            Self::Ipv6 => "inet6",
        })
    }
}
