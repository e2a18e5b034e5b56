//! The facts of each type: parts, options in the order in which `ipset` prints them, revisions.
//!
//! From `ipset help TYPE` of ipset 7.17.

use super::{CreateWord as W, Facts, Feature as F, Method, Part};

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

pub(super) const BITMAP_IP: Facts = Facts {
    name: "bitmap:ip",
    aliases: &["ipmap"],
    method: Method::Bitmap,
    parts: &[Part::Addresses],
    create: &[W::Range, W::Netmask, W::Timeout, W::Counters, W::Comment, W::Skbinfo],
    revisions: (0, 3),
    features: BITMAP_FEATURES,
};

pub(super) const BITMAP_IP_MAC: Facts = Facts {
    name: "bitmap:ip,mac",
    aliases: &["macipmap"],
    method: Method::Bitmap,
    parts: &[Part::Address, Part::Mac],
    create: BITMAP,
    revisions: (0, 3),
    features: BITMAP_FEATURES,
};

pub(super) const BITMAP_PORT: Facts = Facts {
    name: "bitmap:port",
    aliases: &["portmap"],
    method: Method::Bitmap,
    parts: &[Part::PortNumber],
    create: BITMAP,
    revisions: (0, 3),
    features: BITMAP_FEATURES,
};

pub(super) const HASH_IP: Facts = Facts {
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

pub(super) const HASH_MAC: Facts = Facts {
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

pub(super) const HASH_IP_MAC: Facts = Facts {
    name: "hash:ip,mac",
    aliases: &["ipmachash"],
    method: Method::Hash,
    parts: &[Part::Address, Part::Mac],
    create: HASH,
    revisions: (0, 1),
    features: &[(F::Counters, 0), (F::Comment, 0), (F::Forceadd, 0), (F::Skbinfo, 0), (F::Bucketsize, 1)],
};

pub(super) const HASH_NET: Facts = Facts {
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

pub(super) const HASH_NET_NET: Facts = Facts {
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

pub(super) const HASH_IP_PORT: Facts = Facts {
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

pub(super) const HASH_NET_PORT: Facts = Facts {
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

pub(super) const HASH_IP_PORT_IP: Facts = Facts {
    name: "hash:ip,port,ip",
    aliases: &["ipportiphash"],
    method: Method::Hash,
    parts: &[Part::Addresses, Part::Port, Part::Address],
    create: HASH,
    revisions: (1, 6),
    features: &[(F::Counters, 2), (F::Comment, 3), (F::Forceadd, 4), (F::Skbinfo, 5), (F::Bucketsize, 6)],
};

pub(super) const HASH_IP_PORT_NET: Facts = Facts {
    name: "hash:ip,port,net",
    aliases: &["ipportnethash"],
    method: Method::Hash,
    parts: &[Part::Addresses, Part::Port, Part::Network],
    create: HASH,
    revisions: (1, 8),
    features: NET_PORT_FEATURES,
};

pub(super) const HASH_IP_MARK: Facts = Facts {
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

pub(super) const HASH_NET_PORT_NET: Facts = Facts {
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

pub(super) const HASH_NET_IFACE: Facts = Facts {
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

pub(super) const LIST_SET: Facts = Facts {
    name: "list:set",
    aliases: &["setlist"],
    method: Method::List,
    parts: &[Part::Set],
    create: &[W::Size, W::Timeout, W::Counters, W::Comment, W::Skbinfo],
    revisions: (0, 3),
    features: &[(F::Counters, 1), (F::Comment, 2), (F::Skbinfo, 3)],
};
