//! The sixteen set types: names, what an element is made of, options, and the kernel revisions that brought them.
//!
//! Facts: ipset(8), `ipset help TYPE` of ipset 7.17, and the answers of `IPSET_CMD_TYPE`.

use std::fmt;
use std::str::FromStr;

use crate::{Family, Reason};

/// A type of set.
///
/// ```
/// use sluicegate_ipset::SetType;
///
/// assert_eq!("hash:ip,port".parse(), Ok(SetType::HashIpPort));
/// assert_eq!("nethash".parse(), Ok(SetType::HashNet)); // a name of old
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

/// What one place of an element holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// One address.
    Address,
    /// Addresses: any form for IPv4, one alone for IPv6.
    Addresses,
    /// A network: any form for IPv4, no range for IPv6.
    Network,
    /// A port with its protocol, or a range of ports.
    Port,
    /// A port number or range; the protocol only serves to look a name up.
    PortNumber,
    Mac,
    Mark,
    Interface,
    Set,
}

/// What an option of `create` is called; in the order in which `ipset` prints them.
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

/// An extension of a type, which came to the kernel with some revision of the type.
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
    /// Oldest and newest revision that this crate speaks.
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

    /// The type's name, as the kernel knows it.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.facts().name
    }

    /// How many parts an element has: 1 to 3. A match in a rule needs as many `src,dst` words.
    #[must_use]
    pub fn dimension(self) -> usize {
        self.facts().parts.len()
    }

    /// The oldest and the newest revision of the type that this crate speaks. See [`Client::revision`](crate::Client::revision).
    #[must_use]
    pub fn revisions(self) -> (u8, u8) {
        self.facts().revisions
    }

    /// The families that the type has; the first is the default.
    #[must_use]
    pub fn families(self) -> &'static [Family] {
        match self {
            Self::BitmapPort | Self::HashMac | Self::ListSet => &[Family::Unspecified],
            Self::BitmapIp | Self::BitmapIpMac => &[Family::Inet],
            _ => &[Family::Inet, Family::Inet6],
        }
    }

    /// The family of a set of this type when none is named.
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

    /// The revision that brought a feature, `None` where the type never had it.
    pub(crate) fn since(self, feature: Feature) -> Option<u8> {
        self.facts().features.iter().find(|(f, _)| *f == feature).map(|(_, revision)| *revision)
    }

    pub(crate) fn facts(self) -> &'static Facts {
        match self {
            Self::BitmapIp => &BITMAP_IP,
            Self::BitmapIpMac => &BITMAP_IP_MAC,
            Self::BitmapPort => &BITMAP_PORT,
            Self::HashIp => &HASH_IP,
            Self::HashMac => &HASH_MAC,
            Self::HashIpMac => &HASH_IP_MAC,
            Self::HashNet => &HASH_NET,
            Self::HashNetNet => &HASH_NET_NET,
            Self::HashIpPort => &HASH_IP_PORT,
            Self::HashNetPort => &HASH_NET_PORT,
            Self::HashIpPortIp => &HASH_IP_PORT_IP,
            Self::HashIpPortNet => &HASH_IP_PORT_NET,
            Self::HashIpMark => &HASH_IP_MARK,
            Self::HashNetPortNet => &HASH_NET_PORT_NET,
            Self::HashNetIface => &HASH_NET_IFACE,
            Self::ListSet => &LIST_SET,
        }
    }
}

impl FromStr for SetType {
    type Err = Reason;

    /// Reads a type's name, or the one that it had in ipset 4 (`iphash`, `ipmap`).
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

use CreateWord as W;
use Feature as F;

const BITMAP: &[W] = &[W::Range, W::Timeout, W::Counters, W::Comment, W::Skbinfo];
const BITMAP_FEATURES: &[(F, u8)] = &[(F::Counters, 1), (F::Comment, 2), (F::Skbinfo, 3)];

const HASH: &[W] = &[
    W::Family,
    W::Hashsize,
    W::Maxelem,
    W::Timeout,
    W::Counters,
    W::Comment,
    W::Forceadd,
    W::Skbinfo,
    W::Bucketsize,
    W::Initval,
];

const BITMAP_IP: Facts = Facts {
    name: "bitmap:ip",
    aliases: &["ipmap"],
    method: Method::Bitmap,
    parts: &[Part::Addresses],
    create: &[W::Range, W::Netmask, W::Timeout, W::Counters, W::Comment, W::Skbinfo],
    revisions: (0, 3),
    features: BITMAP_FEATURES,
};

const BITMAP_IP_MAC: Facts = Facts {
    name: "bitmap:ip,mac",
    aliases: &["macipmap"],
    method: Method::Bitmap,
    parts: &[Part::Address, Part::Mac],
    create: BITMAP,
    revisions: (0, 3),
    features: BITMAP_FEATURES,
};

const BITMAP_PORT: Facts = Facts {
    name: "bitmap:port",
    aliases: &["portmap"],
    method: Method::Bitmap,
    parts: &[Part::PortNumber],
    create: BITMAP,
    revisions: (0, 3),
    features: BITMAP_FEATURES,
};

const HASH_IP: Facts = Facts {
    name: "hash:ip",
    aliases: &["iphash"],
    method: Method::Hash,
    parts: &[Part::Addresses],
    create: &[
        W::Family,
        W::Hashsize,
        W::Maxelem,
        W::Netmask,
        W::Bitmask,
        W::Timeout,
        W::Counters,
        W::Comment,
        W::Forceadd,
        W::Skbinfo,
        W::Bucketsize,
        W::Initval,
    ],
    revisions: (0, 6),
    features: &[
        (F::Counters, 1),
        (F::Comment, 2),
        (F::Forceadd, 3),
        (F::Skbinfo, 4),
        (F::Bucketsize, 5),
        (F::Masks, 6),
    ],
};

const HASH_MAC: Facts = Facts {
    name: "hash:mac",
    aliases: &["machash"],
    method: Method::Hash,
    parts: &[Part::Mac],
    create: &[
        W::Hashsize,
        W::Maxelem,
        W::Timeout,
        W::Counters,
        W::Comment,
        W::Forceadd,
        W::Skbinfo,
        W::Bucketsize,
        W::Initval,
    ],
    revisions: (0, 1),
    features: &[(F::Counters, 0), (F::Comment, 0), (F::Forceadd, 0), (F::Skbinfo, 0), (F::Bucketsize, 1)],
};

const HASH_IP_MAC: Facts = Facts {
    name: "hash:ip,mac",
    aliases: &["ipmachash"],
    method: Method::Hash,
    parts: &[Part::Address, Part::Mac],
    create: HASH,
    revisions: (0, 1),
    features: &[(F::Counters, 0), (F::Comment, 0), (F::Forceadd, 0), (F::Skbinfo, 0), (F::Bucketsize, 1)],
};

const HASH_NET: Facts = Facts {
    name: "hash:net",
    aliases: &["nethash"],
    method: Method::Hash,
    parts: &[Part::Network],
    create: HASH,
    revisions: (0, 7),
    features: &[
        (F::Nomatch, 2),
        (F::Counters, 3),
        (F::Comment, 4),
        (F::Forceadd, 5),
        (F::Skbinfo, 6),
        (F::Bucketsize, 7),
    ],
};

const HASH_NET_NET: Facts = Facts {
    name: "hash:net,net",
    aliases: &["netnethash"],
    method: Method::Hash,
    parts: &[Part::Network, Part::Network],
    create: &[
        W::Family,
        W::Hashsize,
        W::Maxelem,
        W::Timeout,
        W::Counters,
        W::Comment,
        W::Forceadd,
        W::Skbinfo,
        W::Bucketsize,
        W::Initval,
        W::Bitmask,
        W::Netmask,
    ],
    revisions: (0, 4),
    features: &[
        (F::Nomatch, 0),
        (F::Counters, 0),
        (F::Comment, 0),
        (F::Forceadd, 1),
        (F::Skbinfo, 2),
        (F::Bucketsize, 3),
        (F::Masks, 4),
    ],
};

const HASH_IP_PORT: Facts = Facts {
    name: "hash:ip,port",
    aliases: &["ipporthash"],
    method: Method::Hash,
    parts: &[Part::Addresses, Part::Port],
    create: &[
        W::Family,
        W::Hashsize,
        W::Maxelem,
        W::Timeout,
        W::Counters,
        W::Comment,
        W::Forceadd,
        W::Skbinfo,
        W::Bucketsize,
        W::Initval,
        W::Netmask,
        W::Bitmask,
    ],
    revisions: (1, 7),
    features: &[
        (F::Counters, 2),
        (F::Comment, 3),
        (F::Forceadd, 4),
        (F::Skbinfo, 5),
        (F::Bucketsize, 6),
        (F::Masks, 7),
    ],
};

const HASH_NET_PORT: Facts = Facts {
    name: "hash:net,port",
    aliases: &["netporthash"],
    method: Method::Hash,
    parts: &[Part::Network, Part::Port],
    create: HASH,
    revisions: (1, 8),
    features: NET_PORT_FEATURES,
};

const NET_PORT_FEATURES: &[(F, u8)] = &[
    (F::Nomatch, 3),
    (F::Counters, 4),
    (F::Comment, 5),
    (F::Forceadd, 6),
    (F::Skbinfo, 7),
    (F::Bucketsize, 8),
];

const HASH_IP_PORT_IP: Facts = Facts {
    name: "hash:ip,port,ip",
    aliases: &["ipportiphash"],
    method: Method::Hash,
    parts: &[Part::Addresses, Part::Port, Part::Address],
    create: HASH,
    revisions: (1, 6),
    features: &[(F::Counters, 2), (F::Comment, 3), (F::Forceadd, 4), (F::Skbinfo, 5), (F::Bucketsize, 6)],
};

const HASH_IP_PORT_NET: Facts = Facts {
    name: "hash:ip,port,net",
    aliases: &["ipportnethash"],
    method: Method::Hash,
    parts: &[Part::Addresses, Part::Port, Part::Network],
    create: HASH,
    revisions: (1, 8),
    features: NET_PORT_FEATURES,
};

const HASH_IP_MARK: Facts = Facts {
    name: "hash:ip,mark",
    aliases: &["ipmarkhash"],
    method: Method::Hash,
    parts: &[Part::Addresses, Part::Mark],
    create: &[
        W::Family,
        W::Markmask,
        W::Hashsize,
        W::Maxelem,
        W::Timeout,
        W::Counters,
        W::Comment,
        W::Forceadd,
        W::Skbinfo,
        W::Bucketsize,
        W::Initval,
    ],
    revisions: (0, 3),
    features: &[(F::Counters, 0), (F::Comment, 0), (F::Forceadd, 1), (F::Skbinfo, 2), (F::Bucketsize, 3)],
};

const HASH_NET_PORT_NET: Facts = Facts {
    name: "hash:net,port,net",
    aliases: &["netportnethash"],
    method: Method::Hash,
    parts: &[Part::Network, Part::Port, Part::Network],
    create: HASH,
    revisions: (0, 3),
    features: &[
        (F::Nomatch, 0),
        (F::Counters, 0),
        (F::Comment, 0),
        (F::Forceadd, 1),
        (F::Skbinfo, 2),
        (F::Bucketsize, 3),
    ],
};

const HASH_NET_IFACE: Facts = Facts {
    name: "hash:net,iface",
    aliases: &["netifacehash"],
    method: Method::Hash,
    parts: &[Part::Network, Part::Interface],
    create: HASH,
    revisions: (0, 8),
    features: &[
        (F::Nomatch, 1),
        (F::Counters, 3),
        (F::Comment, 4),
        (F::Forceadd, 5),
        (F::Skbinfo, 6),
        (F::Wildcard, 7),
        (F::Bucketsize, 8),
    ],
};

const LIST_SET: Facts = Facts {
    name: "list:set",
    aliases: &["setlist"],
    method: Method::List,
    parts: &[Part::Set],
    create: &[W::Size, W::Timeout, W::Counters, W::Comment, W::Skbinfo],
    revisions: (0, 3),
    features: &[(F::Counters, 1), (F::Comment, 2), (F::Skbinfo, 3)],
};

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
    fn no_feature_came_after_the_newest_revision() {
        for kind in SetType::ALL {
            let (oldest, newest) = kind.revisions();
            assert!(oldest <= newest, "{kind}");
            assert!(kind.facts().features.iter().all(|(_, since)| *since <= newest), "{kind}");
        }
    }
}
