//! Families: the protocol a table sees (`enum nfproto`, `linux/netfilter.h`).

use std::fmt;
use std::str::FromStr;

/// The family of a table.
///
/// An open set: a number without a name prints as `family 0x2a`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Family(pub u8);

impl Family {
    /// `NFPROTO_UNSPEC`: any, in a request that reads or flushes.
    pub const UNSPEC: Self = Self(0);
    /// `NFPROTO_INET`: IPv4 and IPv6 in one table.
    pub const INET: Self = Self(1);
    /// `NFPROTO_IPV4`.
    pub const IP: Self = Self(2);
    /// `NFPROTO_ARP`.
    pub const ARP: Self = Self(3);
    /// `NFPROTO_NETDEV`: packets of one device, before anything else saw them.
    pub const NETDEV: Self = Self(5);
    /// `NFPROTO_BRIDGE`.
    pub const BRIDGE: Self = Self(7);
    /// `NFPROTO_IPV6`.
    pub const IP6: Self = Self(10);

    /// Its word in nft's language.
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

/// A word that names no family.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no family; there are ip, ip6, inet, arp, bridge and netdev")]
pub struct UnknownFamily(pub String);

const NAMES: &[(Family, &str)] = &[
    (Family::IP, "ip"),
    (Family::IP6, "ip6"),
    (Family::INET, "inet"),
    (Family::ARP, "arp"),
    (Family::BRIDGE, "bridge"),
    (Family::NETDEV, "netdev"),
];
