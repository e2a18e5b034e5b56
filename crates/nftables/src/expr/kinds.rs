//! The numbers and flags that expressions are made of (`linux/netfilter/nf_tables.h`). Open sets are newtypes, so that
//! what a newer kernel says survives; flags keep bits that have no name here.

use std::fmt;

use bitflags::bitflags;
use sluicegate_netlink::DecodeError;
use sluicegate_netlink::attr::{Attribute, Writer};

use crate::datatype::{DataType, Order};
use crate::expr::wire::Value;
use crate::key::Part;

macro_rules! wire_newtype {
    ($name:ident $inner:ident) => {
        impl Value for $name {
            fn write(&self, w: &mut Writer<'_>, kind: u16) {
                self.0.write(w, kind);
            }

            fn read(attribute: &Attribute<'_>) -> Result<Self, DecodeError> {
                $inner::read(attribute).map(Self)
            }
        }
    };
}

macro_rules! numbers {
    ($($(#[$doc:meta])* $name:ident $inner:ident { $($konst:ident = $value:literal $word:literal,)* })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(pub $inner);

        impl $name {
            $(#[doc = concat!("`", $word, "`")] pub const $konst: Self = Self($value);)*

            /// Every one that has a name here.
            pub const ALL: &'static [Self] = &[$(Self::$konst),*];

            /// Its word, in nft's language where that has one.
            #[must_use]
            pub fn name(self) -> Option<&'static str> {
                match self.0 {
                    $($value => Some($word),)*
                    _ => None,
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self.name() {
                    Some(name) => f.write_str(name),
                    None => write!(f, "{:#x}", self.0),
                }
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self)
            }
        }

        wire_newtype! { $name $inner }
    )*};
}

numbers! {
    /// Where the offset of a payload expression counts from (`enum nft_payload_bases`).
    PayloadBase u32 { LINK = 0 "ll", NETWORK = 1 "nh", TRANSPORT = 2 "th", INNER = 3 "ih", TUNNEL = 4 "tunnel", }

    /// What of the packet (`enum nft_meta_keys`).
    MetaKey u32 {
        LEN = 0 "length", PROTOCOL = 1 "protocol", PRIORITY = 2 "priority", MARK = 3 "mark", IIF = 4 "iif", OIF = 5 "oif",
        IIFNAME = 6 "iifname", OIFNAME = 7 "oifname", IIFTYPE = 8 "iiftype", OIFTYPE = 9 "oiftype", SKUID = 10 "skuid",
        SKGID = 11 "skgid", NFTRACE = 12 "nftrace", RTCLASSID = 13 "rtclassid", SECMARK = 14 "secmark",
        NFPROTO = 15 "nfproto", L4PROTO = 16 "l4proto", IBRNAME = 17 "ibrname", OBRNAME = 18 "obrname",
        PKTTYPE = 19 "pkttype", CPU = 20 "cpu", IIFGROUP = 21 "iifgroup", OIFGROUP = 22 "oifgroup", CGROUP = 23 "cgroup",
        RANDOM = 24 "random", IPSEC = 25 "ipsec", IIFKIND = 26 "iifkind", OIFKIND = 27 "oifkind", IBRPVID = 28 "ibrpvid",
        IBRVPROTO = 29 "ibrvproto", TIME = 30 "time", DAY = 31 "day", HOUR = 32 "hour", SDIF = 33 "sdif",
        SDIFNAME = 34 "sdifname", BROUTE = 35 "broute", IBRHWADDR = 37 "ibrhwaddr",
    }

    /// What of the connection (`enum nft_ct_keys`).
    CtKey u32 {
        STATE = 0 "state", DIRECTION = 1 "direction", STATUS = 2 "status", MARK = 3 "mark", SECMARK = 4 "secmark",
        EXPIRATION = 5 "expiration", HELPER = 6 "helper", L3PROTO = 7 "l3proto", SADDR = 8 "saddr", DADDR = 9 "daddr",
        PROTOCOL = 10 "protocol", PROTO_SRC = 11 "proto-src", PROTO_DST = 12 "proto-dst", LABEL = 13 "label",
        PACKETS = 14 "packets", BYTES = 15 "bytes", AVGPKT = 16 "avgpkt", ZONE = 17 "zone", EVENT = 18 "event",
        SADDR_IP = 19 "ip saddr", DADDR_IP = 20 "ip daddr", SADDR_IP6 = 21 "ip6 saddr", DADDR_IP6 = 22 "ip6 daddr", ID = 23 "id",
    }

    /// Which direction of a connection (`enum ip_conntrack_dir`).
    Direction u8 { ORIGINAL = 0 "original", REPLY = 1 "reply", }

    /// What of the route (`enum nft_rt_keys`).
    RtKey u32 {
        CLASSID = 0 "classid", NEXTHOP_IP = 1 "ip nexthop", NEXTHOP_IP6 = 2 "ip6 nexthop", MTU = 3 "mtu", IPSEC = 4 "ipsec",
    }

    /// What of the socket (`enum nft_socket_keys`).
    SocketKey u32 { TRANSPARENT = 0 "transparent", MARK = 1 "mark", WILDCARD = 2 "wildcard", CGROUPV2 = 3 "cgroupv2", }

    /// What a look-up of the routing table gives (`enum nft_fib_result`).
    FibResult u32 { OIF = 1 "oif", OIFNAME = 2 "oifname", ADDRTYPE = 3 "type", }

    /// How numbers are generated (`enum nft_ng_types`).
    NumgenMode u32 { INCREMENTAL = 0 "inc", RANDOM = 1 "random", }

    /// Which hash (`enum nft_hash_types`).
    HashType u32 { JENKINS = 0 "jhash", SYMMETRIC = 1 "symhash", }

    /// What of a transformation by xfrm (`enum nft_xfrm_keys`).
    XfrmKey u32 {
        DADDR_IP = 1 "ip daddr", DADDR_IP6 = 2 "ip6 daddr", SADDR_IP = 3 "ip saddr", SADDR_IP6 = 4 "ip6 saddr", REQID = 5 "reqid",
        SPI = 6 "spi",
    }

    /// What of a tunnel (`enum nft_tunnel_keys`).
    TunnelKey u32 { PATH = 0 "path", ID = 1 "id", }

    /// How two values are compared (`enum nft_cmp_ops`).
    CmpOp u32 { EQ = 0 "==", NEQ = 1 "!=", LT = 2 "<", LTE = 3 "<=", GT = 4 ">", GTE = 5 ">=", }

    /// Inside or outside a range (`enum nft_range_ops`).
    RangeOp u32 { EQ = 0 "==", NEQ = 1 "!=", }

    /// What is done with bits (`enum nft_bitwise_ops`).
    BitwiseOp u32 { BOOL = 0 "bool", LSHIFT = 1 "<<", RSHIFT = 2 ">>", AND = 3 "&", OR = 4 "|", XOR = 5 "^", }

    /// From host to network order or back (`enum nft_byteorder_ops`).
    ByteorderOp u32 { NTOH = 0 "ntoh", HTON = 1 "hton", }

    /// Source or destination (`enum nft_nat_types`).
    NatType u32 { SNAT = 0 "snat", DNAT = 1 "dnat", }

    /// How a packet is refused (`enum nft_reject_types`).
    RejectType u32 { ICMP_UNREACH = 0 "icmp", TCP_RST = 1 "tcp reset", ICMPX_UNREACH = 2 "icmpx", }

    /// Packets or bytes (`enum nft_limit_type`).
    LimitType u32 { PACKETS = 0 "packets", BYTES = 1 "bytes", }

    /// What is done with the element of a dynamic set (`enum nft_dynset_ops`).
    DynsetOp u32 { ADD = 0 "add", UPDATE = 1 "update", DELETE = 2 "delete", }

    /// Which header an exthdr expression looks into (`enum nft_exthdr_op`).
    ExthdrOp u32 { IPV6 = 0 "ipv6", TCPOPT = 1 "tcp option", IPV4 = 2 "ip option", SCTP = 3 "sctp chunk", DCCP = 4 "dccp option", }

    /// Which checksum a changed payload needs (`enum nft_payload_csum_types`).
    ChecksumType u32 { NONE = 0 "none", INET = 1 "inet", SCTP = 2 "sctp", }

    /// The kind of a stateful object (`NFT_OBJECT_*`).
    ObjectKind u32 {
        COUNTER = 1 "counter", QUOTA = 2 "quota", CT_HELPER = 3 "ct helper", LIMIT = 4 "limit", CONNLIMIT = 5 "connlimit",
        TUNNEL = 6 "tunnel", CT_TIMEOUT = 7 "ct timeout", SECMARK = 8 "secmark", CT_EXPECT = 9 "ct expectation", SYNPROXY = 10 "synproxy",
    }

    /// A verdict's number (`NF_*` of `linux/netfilter.h`, `NFT_*` of `enum nft_verdicts`, as two's complement).
    VerdictCode u32 {
        DROP = 0 "drop", ACCEPT = 1 "accept", QUEUE = 3 "queue", CONTINUE = 0xffff_ffff "continue", BREAK = 0xffff_fffe "break",
        JUMP = 0xffff_fffd "jump", GOTO = 0xffff_fffc "goto", RETURN = 0xffff_fffb "return",
    }
}

macro_rules! wire_flags {
    ($($name:ident $inner:ident)*) => {$(
        impl Value for $name {
            fn write(&self, w: &mut Writer<'_>, kind: u16) {
                self.bits().write(w, kind);
            }

            fn read(attribute: &Attribute<'_>) -> Result<Self, DecodeError> {
                $inner::read(attribute).map(Self::from_bits_retain)
            }
        }
    )*};
}

bitflags! {
    /// What a fib expression looks up (`enum nft_fib_flags`).
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub struct FibFlags: u32 {
        /// `NFTA_FIB_F_SADDR`
        const SADDR = 1;
        /// `NFTA_FIB_F_DADDR`
        const DADDR = 2;
        /// `NFTA_FIB_F_MARK`
        const MARK = 4;
        /// `NFTA_FIB_F_IIF`
        const IIF = 8;
        /// `NFTA_FIB_F_OIF`
        const OIF = 16;
        /// `NFTA_FIB_F_PRESENT`: only whether there is a route.
        const PRESENT = 32;

        const _ = !0;
    }

    /// How an address or port is chosen (`NF_NAT_RANGE_*` of `linux/netfilter/nf_nat.h`).
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub struct NatFlags: u32 {
        /// `NF_NAT_RANGE_MAP_IPS`: there is an address. The kernel sets it.
        const MAP_IPS = 1;
        /// `NF_NAT_RANGE_PROTO_SPECIFIED`: there is a port. The kernel sets it.
        const PROTO_SPECIFIED = 2;
        /// `random`
        const RANDOM = 4;
        /// `persistent`
        const PERSISTENT = 8;
        /// `fully-random`
        const FULLY_RANDOM = 16;
        /// `NF_NAT_RANGE_NETMAP`: keep the rest of the address.
        const NETMAP = 64;

        const _ = !0;
    }

    /// What a log line says (`NF_LOG_*` of `linux/netfilter/nf_log.h`).
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub struct LogFlags: u32 {
        /// `flags tcp sequence`
        const TCP_SEQUENCE = 1;
        /// `flags tcp options`
        const TCP_OPTIONS = 2;
        /// `flags ip options`
        const IP_OPTIONS = 4;
        /// `flags skuid`
        const SKUID = 8;
        /// `flags ether`
        const ETHER = 32;

        const _ = !0;
    }

    /// Flags of a limit, quota or connlimit: match above instead of below (`NFT_LIMIT_F_INV`, `NFT_QUOTA_F_INV`, `NFT_CONNLIMIT_F_INV`).
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub struct Invert: u32 {
        /// Match above.
        const OVER = 1;

        const _ = !0;
    }

    /// Flags of a look-up (`enum nft_lookup_flags`).
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub struct LookupFlags: u32 {
        /// `NFT_LOOKUP_F_INV`: match what is not in the set.
        const INVERT = 1;

        const _ = !0;
    }

    /// Flags of an exthdr expression (`NFT_EXTHDR_F_*`).
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub struct ExthdrFlags: u32 {
        /// `NFT_EXTHDR_F_PRESENT`: only whether it is there.
        const PRESENT = 1;

        const _ = !0;
    }

    /// Flags of a dynset expression (`enum nft_dynset_flags`).
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub struct DynsetFlags: u32 {
        /// `NFT_DYNSET_F_INV`
        const INVERT = 1;
        /// `NFT_DYNSET_F_EXPR`: it has expressions.
        const EXPR = 2;

        const _ = !0;
    }

    /// Flags of a queue expression (`NFT_QUEUE_FLAG_*`).
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub struct QueueFlags: u16 {
        /// `bypass`
        const BYPASS = 1;
        /// `fanout`
        const FANOUT = 2;

        const _ = !0;
    }

    /// Flags of a synproxy (`NF_SYNPROXY_OPT_*` of `linux/netfilter/nf_synproxy.h`).
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub struct SynproxyFlags: u32 {
        /// `mss`
        const MSS = 1;
        /// `wscale`
        const WSCALE = 2;
        /// `sack-perm`
        const SACK_PERM = 4;
        /// `timestamp`
        const TIMESTAMP = 8;
        /// `NF_SYNPROXY_OPT_ECN`
        const ECN = 16;

        const _ = !0;
    }

    /// Flags of an osf expression (`enum nft_osf_flags`).
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub struct OsfFlags: u32 {
        /// `NFT_OSF_F_VERSION`
        const VERSION = 1;

        const _ = !0;
    }

    /// Flags of a payload that is changed (`enum nft_payload_csum_flags`).
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub struct ChecksumFlags: u32 {
        /// `NFT_PAYLOAD_L4CSUM_PSEUDOHDR`: the transport header's checksum covers it.
        const PSEUDO_HEADER = 1;

        const _ = !0;
    }
}

wire_flags! {
    FibFlags u32 NatFlags u32 LogFlags u32 Invert u32 LookupFlags u32 ExthdrFlags u32 DynsetFlags u32 QueueFlags u16
    SynproxyFlags u32 OsfFlags u32 ChecksumFlags u32
}

/// A register (`enum nft_registers`): 0 takes a verdict, 1 to 4 are 16 bytes each, 8 to 23 the same as four bytes each.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Register(pub u32);

impl Register {
    /// `NFT_REG_VERDICT`
    pub const VERDICT: Self = Self(0);

    /// The register that starts at a word (of four bytes, from 0), under the name that nft uses: the 16-byte one where
    /// there is one.
    #[must_use]
    pub const fn word(word: u32) -> Self {
        if word.is_multiple_of(4) { Self(1 + word / 4) } else { Self(8 + word) }
    }

    /// The word that it starts at; `None` for the verdict.
    #[must_use]
    pub const fn first_word(self) -> Option<u32> {
        match self.0 {
            1..=4 => Some((self.0 - 1) * 4),
            8..=23 => Some(self.0 - 8),
            _ => None,
        }
    }
}

impl fmt::Debug for Register {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "reg {}", self.0)
    }
}

wire_newtype! { Register u32 }

impl MetaKey {
    /// The type of its value.
    #[must_use]
    pub fn part(self) -> Part {
        let integer = |bytes, order| Part::Integer { bytes, order };
        match self {
            Self::PROTOCOL | Self::IBRVPROTO => DataType::ETHER_TYPE.into(),
            Self::PRIORITY => DataType::CLASSID.into(),
            Self::MARK => DataType::MARK.into(),
            Self::IIF | Self::OIF | Self::SDIF => DataType::IFACE_INDEX.into(),
            Self::IIFNAME | Self::OIFNAME | Self::IBRNAME | Self::OBRNAME => DataType::IFNAME.into(),
            Self::IIFKIND | Self::OIFKIND | Self::SDIFNAME => DataType::IFNAME.into(),
            Self::IIFTYPE | Self::OIFTYPE => DataType::IFACE_TYPE.into(),
            Self::SKUID => DataType::UID.into(),
            Self::SKGID => DataType::GID.into(),
            Self::RTCLASSID => DataType::REALM.into(),
            Self::NFPROTO => DataType::NF_PROTO.into(),
            Self::L4PROTO => DataType::INET_PROTO.into(),
            Self::PKTTYPE => DataType::PKT_TYPE.into(),
            Self::IIFGROUP | Self::OIFGROUP => DataType::DEVGROUP.into(),
            Self::IPSEC => DataType::BOOLEAN.into(),
            Self::TIME => DataType::DATE.into(),
            Self::DAY => DataType::DAY.into(),
            Self::HOUR => DataType::HOUR.into(),
            Self::IBRHWADDR => DataType::ETHER_ADDR.into(),
            Self::NFTRACE | Self::BROUTE => integer(1, Order::Host),
            Self::IBRPVID => integer(2, Order::Host),
            Self::RANDOM => integer(4, Order::Network),
            _ => integer(4, Order::Host),
        }
    }
}

impl CtKey {
    /// The type of its value. `saddr` and `daddr` without a family are taken as IPv4's.
    #[must_use]
    pub fn part(self) -> Part {
        let integer = |bytes| Part::Integer { bytes, order: Order::Host };
        match self {
            Self::STATE => DataType::CT_STATE.into(),
            Self::DIRECTION => DataType::CT_DIR.into(),
            Self::STATUS => DataType::CT_STATUS.into(),
            Self::MARK => DataType::MARK.into(),
            Self::HELPER => DataType::STRING.into(),
            Self::L3PROTO => DataType::NF_PROTO.into(),
            Self::SADDR | Self::DADDR | Self::SADDR_IP | Self::DADDR_IP => DataType::IPV4_ADDR.into(),
            Self::SADDR_IP6 | Self::DADDR_IP6 => DataType::IPV6_ADDR.into(),
            Self::PROTOCOL => DataType::INET_PROTO.into(),
            Self::PROTO_SRC | Self::PROTO_DST => DataType::INET_SERVICE.into(),
            Self::LABEL => DataType::CT_LABEL.into(),
            Self::PACKETS | Self::BYTES | Self::AVGPKT => integer(8),
            Self::ZONE => integer(2),
            Self::EVENT => DataType::CT_EVENT.into(),
            Self::ID => Part::Integer { bytes: 4, order: Order::Network },
            _ => integer(4),
        }
    }
}

impl RtKey {
    /// The type of its value.
    #[must_use]
    pub fn part(self) -> Part {
        match self {
            Self::CLASSID => DataType::REALM.into(),
            Self::NEXTHOP_IP => DataType::IPV4_ADDR.into(),
            Self::NEXTHOP_IP6 => DataType::IPV6_ADDR.into(),
            Self::IPSEC => DataType::BOOLEAN.into(),
            _ => Part::Integer { bytes: 2, order: Order::Host },
        }
    }
}

impl SocketKey {
    /// The type of its value.
    #[must_use]
    pub fn part(self) -> Part {
        match self {
            Self::MARK => DataType::MARK.into(),
            Self::CGROUPV2 => DataType::CGROUPSV2.into(),
            _ => Part::Integer { bytes: 1, order: Order::Host },
        }
    }
}

impl XfrmKey {
    /// The type of its value.
    #[must_use]
    pub fn part(self) -> Part {
        match self {
            Self::DADDR_IP | Self::SADDR_IP => DataType::IPV4_ADDR.into(),
            Self::DADDR_IP6 | Self::SADDR_IP6 => DataType::IPV6_ADDR.into(),
            Self::SPI => Part::Integer { bytes: 4, order: Order::Network },
            _ => Part::Integer { bytes: 4, order: Order::Host },
        }
    }
}
