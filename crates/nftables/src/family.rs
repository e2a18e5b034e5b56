//! Address families of tables (`enum nfproto`, `linux/netfilter.h`).

use std::fmt;
use std::str::FromStr;

/// The family of a table.
///
/// Any number is allowed: one without a name prints as `family 0x2a`.
///
/// ```
/// use sluicegate_nftables::Family;
///
/// assert_eq!("inet".parse(), Ok(Family::INET));
/// assert_eq!(Family::IP6.to_string(), "ip6");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Family(pub u8);

impl Family {
    /// `NFPROTO_UNSPEC`: every family, in a request that lists or flushes.
    pub const UNSPEC: Self = Self(0);
    /// `NFPROTO_INET`: IPv4 and IPv6 in one table.
    pub const INET: Self = Self(1);
    /// `NFPROTO_IPV4`: IPv4.
    pub const IP: Self = Self(2);
    /// `NFPROTO_ARP`: ARP.
    pub const ARP: Self = Self(3);
    /// `NFPROTO_NETDEV`: all packets of a device, at its ingress or egress.
    pub const NETDEV: Self = Self(5);
    /// `NFPROTO_BRIDGE`: packets that pass a bridge.
    pub const BRIDGE: Self = Self(7);
    /// `NFPROTO_IPV6`: IPv6.
    pub const IP6: Self = Self(10);

    /// Returns the keyword of the family in nft's language.
    #[must_use]
    pub fn name(self) -> Option<&'static str> {
        NAMES.iter().find(|(family, _)| *family == self).map(|(_, name)| *name)
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "family {:#x}", self.0),
        }
    }
}

impl FromStr for Family {
    type Err = UnknownFamily;

    fn from_str(name: &str) -> Result<Self, UnknownFamily> {
        NAMES
            .iter()
            .find(|(_, known)| *known == name)
            .map(|(family, _)| *family)
            .ok_or_else(|| UnknownFamily(name.to_owned()))
    }
}

/// The error for a word that is not the name of a family.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected a family (ip, ip6, inet, arp, bridge or netdev), found {0:?}")]
pub struct UnknownFamily(pub String);

const NAMES: &[(Family, &str)] = &[
    (Family::IP, "ip"),
    (Family::IP6, "ip6"),
    (Family::INET, "inet"),
    (Family::ARP, "arp"),
    (Family::BRIDGE, "bridge"),
    (Family::NETDEV, "netdev"),
];
