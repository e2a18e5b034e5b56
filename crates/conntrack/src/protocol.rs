//! Address families and transport protocols, by their numbers and by the names that conntrack(8) gives them.

use std::fmt;
use std::net::IpAddr;

/// The family of a flow's addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Family {
    /// `AF_INET`.
    Ipv4,
    /// `AF_INET6`.
    Ipv6,
}

impl Family {
    /// Both.
    pub const BOTH: [Self; 2] = [Self::Ipv4, Self::Ipv6];

    /// The family of an address.
    #[must_use]
    pub const fn of(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(_) => Self::Ipv4,
            IpAddr::V6(_) => Self::Ipv6,
        }
    }

    /// `AF_INET` (2) or `AF_INET6` (10).
    #[must_use]
    pub const fn number(self) -> u8 {
        match self {
            Self::Ipv4 => 2,
            Self::Ipv6 => 10,
        }
    }
}

/// `ipv4` or `ipv6`.
impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Ipv4 => "ipv4",
            Self::Ipv6 => "ipv6",
        })
    }
}

/// A transport protocol: `IPPROTO_*` of `linux/in.h`. Any number is possible; the named ones have ports, keys or types in
/// their tuples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Protocol(pub u8);

impl Protocol {
    /// `IPPROTO_ICMP`.
    pub const ICMP: Self = Self(1);
    /// `IPPROTO_TCP`.
    pub const TCP: Self = Self(6);
    /// `IPPROTO_UDP`.
    pub const UDP: Self = Self(17);
    /// `IPPROTO_DCCP`.
    pub const DCCP: Self = Self(33);
    /// `IPPROTO_GRE`.
    pub const GRE: Self = Self(47);
    /// `IPPROTO_ICMPV6`.
    pub const ICMPV6: Self = Self(58);
    /// `IPPROTO_SCTP`.
    pub const SCTP: Self = Self(132);
    /// `IPPROTO_UDPLITE`.
    pub const UDPLITE: Self = Self(136);

    /// Those with a name here.
    pub const NAMED: [Self; 8] =
        [Self::ICMP, Self::TCP, Self::UDP, Self::DCCP, Self::GRE, Self::ICMPV6, Self::SCTP, Self::UDPLITE];

    /// The name that conntrack(8) prints and takes, `None` for those that it calls `unknown`.
    #[must_use]
    pub const fn name(self) -> Option<&'static str> {
        Some(match self {
            Self::ICMP => "icmp",
            Self::TCP => "tcp",
            Self::UDP => "udp",
            Self::DCCP => "dccp",
            Self::GRE => "gre",
            Self::ICMPV6 => "icmpv6",
            Self::SCTP => "sctp",
            Self::UDPLITE => "udplite",
            _ => return None,
        })
    }

    /// The protocol with this name, whatever its case.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::NAMED
            .into_iter()
            .find(|protocol| protocol.name().is_some_and(|known| known.eq_ignore_ascii_case(name)))
    }

    /// Its tuples have ports (of GRE: keys).
    #[must_use]
    pub const fn has_ports(self) -> bool {
        matches!(self, Self::TCP | Self::UDP | Self::UDPLITE | Self::SCTP | Self::DCCP | Self::GRE)
    }

    /// Its tuples have type, code and id.
    #[must_use]
    pub const fn is_icmp(self) -> bool {
        matches!(self, Self::ICMP | Self::ICMPV6)
    }
}

/// Its name, or its number.
impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.pad(name),
            None => self.0.fmt(f),
        }
    }
}
