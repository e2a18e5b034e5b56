//! The sixteen set types: names, the parts of an element, options, and the revisions that introduced them.
//!
//! Facts: ipset(8), `ipset help TYPE` of ipset 7.17, and the answers of `IPSET_CMD_TYPE`.

mod facts;

use std::fmt;
use std::str::FromStr;

use crate::{Family, Reason};

/// A type of set.
///
/// ```
/// use sluicegate_ipset::SetType;
///
/// assert_eq!("hash:ip,port".parse(), Ok(SetType::HashIpPort));
/// assert_eq!("nethash".parse(), Ok(SetType::HashNet)); // the name in ipset 4
/// assert_eq!(SetType::HashNetPortNet.to_string(), "hash:net,port,net");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum SetType {
    /// `bitmap:ip`: IPv4 addresses, or networks of one size, from a range of at most 65,536.
    BitmapIp,
    /// `bitmap:ip,mac`: IPv4 addresses from a range, each with an optional MAC address.
    BitmapIpMac,
    /// `bitmap:port`: port numbers from a range.
    BitmapPort,
    /// `hash:ip`: addresses, or networks of one size.
    HashIp,
    /// `hash:mac`: MAC addresses.
    HashMac,
    /// `hash:ip,mac`: pairs of address and MAC address.
    HashIpMac,
    /// `hash:net`: networks of any size.
    HashNet,
    /// `hash:net,net`: pairs of networks.
    HashNetNet,
    /// `hash:ip,port`: pairs of address and port with its protocol.
    HashIpPort,
    /// `hash:net,port`: pairs of network and port.
    HashNetPort,
    /// `hash:ip,port,ip`: address, port, second address.
    HashIpPortIp,
    /// `hash:ip,port,net`: address, port, network.
    HashIpPortNet,
    /// `hash:ip,mark`: pairs of address and packet mark.
    HashIpMark,
    /// `hash:net,port,net`: network, port, second network.
    HashNetPortNet,
    /// `hash:net,iface`: pairs of network and interface name.
    HashNetIface,
    /// `list:set`: an ordered list of other sets.
    ListSet,
}

/// The kind of one part of an element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// One address.
    Address,
    /// Addresses: any form for IPv4, a single address for IPv6.
    Addresses,
    /// A network: any form for IPv4, no range for IPv6.
    Network,
    /// A port with its protocol, or a range of ports.
    Port,
    /// A port number or range; a protocol is only used to look up a name.
    PortNumber,
    Mac,
    Mark,
    Interface,
    Set,
}

/// The options of `create`, in the order in which `ipset` prints them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CreateWord {
    Family,
    Range,
    Size,
    Markmask,
    Hashsize,
    Maxelem,
    Netmask,
    Bitmask,
    Timeout,
    Counters,
    Comment,
    Forceadd,
    Skbinfo,
    Bucketsize,
    Initval,
}

/// A feature of a type, which a revision of the type introduced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Feature {
    Counters,
    Comment,
    Forceadd,
    Skbinfo,
    Bucketsize,
    Masks,
    Nomatch,
    Wildcard,
}

/// The kinds of set, which share their error codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Method {
    Bitmap,
    Hash,
    List,
}

pub(crate) struct Facts {
    pub(crate) name: &'static str,
    pub(crate) aliases: &'static [&'static str],
    pub(crate) method: Method,
    pub(crate) parts: &'static [Part],
    pub(crate) create: &'static [CreateWord],
    /// The oldest and the newest revision that this crate supports.
    pub(crate) revisions: (u8, u8),
    pub(crate) features: &'static [(Feature, u8)],
}

impl SetType {
    /// All types.
    pub const ALL: [Self; 16] = [
        Self::BitmapIp,
        Self::BitmapIpMac,
        Self::BitmapPort,
        Self::HashIp,
        Self::HashMac,
        Self::HashIpMac,
        Self::HashNet,
        Self::HashNetNet,
        Self::HashIpPort,
        Self::HashNetPort,
        Self::HashIpPortIp,
        Self::HashIpPortNet,
        Self::HashIpMark,
        Self::HashNetPortNet,
        Self::HashNetIface,
        Self::ListSet,
    ];

    /// Returns the type's name.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.facts().name
    }

    /// Returns the number of parts of an element: 1 to 3. A match in a rule has the same number of `src` and
    /// `dst` words.
    #[must_use]
    pub fn dimension(self) -> usize {
        self.facts().parts.len()
    }

    /// Returns the oldest and the newest revision of the type that this crate supports. See
    /// [`Client::revision`](crate::Client::revision).
    #[must_use]
    pub fn revisions(self) -> (u8, u8) {
        self.facts().revisions
    }

    /// Returns the families that the type has; the first is the default.
    #[must_use]
    pub fn families(self) -> &'static [Family] {
        match self {
            Self::BitmapPort | Self::HashMac | Self::ListSet => &[Family::Unspecified],
            Self::BitmapIp | Self::BitmapIpMac => &[Family::Ipv4],
            _ => &[Family::Ipv4, Family::Ipv6],
        }
    }

    /// Returns the family of a set of this type when none is named.
    #[must_use]
    pub fn default_family(self) -> Family {
        self.families().first().copied().unwrap_or_default()
    }

    pub(crate) fn method(self) -> Method {
        self.facts().method
    }

    pub(crate) fn parts(self) -> &'static [Part] {
        self.facts().parts
    }

    pub(crate) fn takes(self, word: CreateWord) -> bool {
        self.facts().create.contains(&word)
    }

    /// Returns the revision that introduced a feature, `None` if the type does not have it.
    pub(crate) fn since(self, feature: Feature) -> Option<u8> {
        self.facts().features.iter().find(|(f, _)| *f == feature).map(|(_, revision)| *revision)
    }

    pub(crate) fn facts(self) -> &'static Facts {
        match self {
            Self::BitmapIp => &facts::BITMAP_IP,
            Self::BitmapIpMac => &facts::BITMAP_IP_MAC,
            Self::BitmapPort => &facts::BITMAP_PORT,
            Self::HashIp => &facts::HASH_IP,
            Self::HashMac => &facts::HASH_MAC,
            Self::HashIpMac => &facts::HASH_IP_MAC,
            Self::HashNet => &facts::HASH_NET,
            Self::HashNetNet => &facts::HASH_NET_NET,
            Self::HashIpPort => &facts::HASH_IP_PORT,
            Self::HashNetPort => &facts::HASH_NET_PORT,
            Self::HashIpPortIp => &facts::HASH_IP_PORT_IP,
            Self::HashIpPortNet => &facts::HASH_IP_PORT_NET,
            Self::HashIpMark => &facts::HASH_IP_MARK,
            Self::HashNetPortNet => &facts::HASH_NET_PORT_NET,
            Self::HashNetIface => &facts::HASH_NET_IFACE,
            Self::ListSet => &facts::LIST_SET,
        }
    }
}

impl FromStr for SetType {
    type Err = Reason;

    /// Reads a type's name, or its name in ipset 4 (`iphash`, `ipmap`).
    fn from_str(name: &str) -> Result<Self, Reason> {
        Self::ALL
            .into_iter()
            .find(|kind| kind.name() == name || kind.facts().aliases.contains(&name))
            .ok_or_else(|| Reason::SetType(name.to_owned()))
    }
}

impl fmt::Display for SetType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl CreateWord {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Family => "family",
            Self::Range => "range",
            Self::Size => "size",
            Self::Markmask => "markmask",
            Self::Hashsize => "hashsize",
            Self::Maxelem => "maxelem",
            Self::Netmask => "netmask",
            Self::Bitmask => "bitmask",
            Self::Timeout => "timeout",
            Self::Counters => "counters",
            Self::Comment => "comment",
            Self::Forceadd => "forceadd",
            Self::Skbinfo => "skbinfo",
            Self::Bucketsize => "bucketsize",
            Self::Initval => "initval",
        }
    }
}

impl Feature {
    pub(crate) fn option(self) -> &'static str {
        match self {
            Self::Counters => "counters",
            Self::Comment => "comment",
            Self::Forceadd => "forceadd",
            Self::Skbinfo => "skbinfo",
            Self::Bucketsize => "bucketsize",
            Self::Masks => "netmask or bitmask",
            Self::Nomatch => "nomatch",
            Self::Wildcard => "wildcard",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_read_back() {
        for kind in SetType::ALL {
            assert_eq!(kind.name().parse(), Ok(kind));
            for alias in kind.facts().aliases {
                assert_eq!(alias.parse(), Ok(kind));
            }
        }
    }

    #[test]
    fn no_feature_needs_more_than_the_newest_revision() {
        for kind in SetType::ALL {
            let (oldest, newest) = kind.revisions();
            assert!(oldest <= newest, "{kind}");
            assert!(kind.facts().features.iter().all(|(_, since)| *since <= newest), "{kind}");
        }
    }
}
