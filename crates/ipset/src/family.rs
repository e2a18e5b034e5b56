//! Address families of sets (`NFPROTO_*` of `linux/netfilter.h`).

use std::fmt;
use std::net::IpAddr;

use crate::Reason;

/// The address family of a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Family {
    /// `NFPROTO_UNSPEC`: a type that stores no addresses (`bitmap:port`, `hash:mac`, `list:set`).
    Unspecified,
    /// `NFPROTO_IPV4`.
    #[default]
    Inet,
    /// `NFPROTO_IPV6`.
    Inet6,
}

impl Family {
    /// Longest prefix of an address: 32 or 128.
    #[must_use]
    pub fn bits(self) -> u8 {
        if self == Self::Inet6 { 128 } else { 32 }
    }

    /// The family of an address.
    #[must_use]
    pub fn of(address: IpAddr) -> Self {
        if address.is_ipv4() { Self::Inet } else { Self::Inet6 }
    }

    /// Reads `inet`, `inet6` and the other words that `ipset` takes for them.
    ///
    /// # Errors
    /// [`Reason::Family`].
    pub fn parse(word: &str) -> Result<Self, Reason> {
        match word {
            "inet" | "ipv4" | "-4" => Ok(Self::Inet),
            "inet6" | "ipv6" | "-6" => Ok(Self::Inet6),
            "any" | "unspec" => Ok(Self::Unspecified),
            _ => Err(Reason::Family(word.to_owned())),
        }
    }

    /// The number in a message.
    #[must_use]
    pub fn number(self) -> u8 {
        match self {
            Self::Unspecified => 0,
            Self::Inet => 2,
            Self::Inet6 => 10,
        }
    }

    /// The family of a number, if it is one that sets have.
    #[must_use]
    pub fn from_number(number: u8) -> Option<Self> {
        [Self::Unspecified, Self::Inet, Self::Inet6].into_iter().find(|family| family.number() == number)
    }

    /// `IPv4` or `IPv6`, for messages to people.
    #[must_use]
    pub(crate) fn of_addresses(self) -> &'static str {
        if self == Self::Inet6 { "IPv6" } else { "IPv4" }
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unspecified => "unspec",
            Self::Inet => "inet",
            Self::Inet6 => "inet6",
        })
    }
}
