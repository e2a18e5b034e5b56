//! The numbers of expressions that have names: keys, operations, kinds.

use std::fmt;

use sluicegate_netlink::attr::{Attribute, Writer};

use crate::expr::wire::{Fault, Value};

macro_rules! numbers {
    ($($(#[$doc:meta])* $name:ident $inner:ident {
        $($konst:ident = $value:literal $word:literal,)* })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(pub $inner);

        impl $name {
            $(#[doc = concat!("`", $word, "`")] pub const $konst: Self = Self($value);)*

            /// All values with a name.
            pub const ALL: &'static [Self] = &[$(Self::$konst),*];

            /// Returns the name of the value, nft's keyword where there is one.
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

        impl Value for $name {
            fn write(&self, w: &mut Writer<'_>, kind: u16) {
                self.0.write(w, kind);
            }

            fn read(attribute: &Attribute<'_>) -> Result<Self, Fault> {
                $inner::read(attribute).map(Self)
            }
        }

        #[cfg(test)]
        impl $crate::expr::sample::Sample for $name {
            fn sample(source: &mut $crate::expr::sample::Source) -> Self {
                Self(<$inner as $crate::expr::sample::Sample>::sample(source))
            }
        }
    )*};
}

numbers! {
    /// The header that the offset of a payload expression counts from (`enum nft_payload_bases`).
    PayloadBase u32 {
        LINK = 0 "ll", NETWORK = 1 "nh", TRANSPORT = 2 "th", INNER = 3 "ih", TUNNEL = 4 "tunnel",
    }

    /// A property of the packet (`enum nft_meta_keys`).
    MetaKey u32 {
        LEN = 0 "length", PROTOCOL = 1 "protocol", PRIORITY = 2 "priority", MARK = 3 "mark", IIF = 4 "iif",
        OIF = 5 "oif", IIFNAME = 6 "iifname", OIFNAME = 7 "oifname", IIFTYPE = 8 "iiftype",
        OIFTYPE = 9 "oiftype", SKUID = 10 "skuid", SKGID = 11 "skgid", NFTRACE = 12 "nftrace",
        RTCLASSID = 13 "rtclassid", SECMARK = 14 "secmark", NFPROTO = 15 "nfproto", L4PROTO = 16 "l4proto",
        IBRNAME = 17 "ibrname", OBRNAME = 18 "obrname", PKTTYPE = 19 "pkttype", CPU = 20 "cpu",
        IIFGROUP = 21 "iifgroup", OIFGROUP = 22 "oifgroup", CGROUP = 23 "cgroup", RANDOM = 24 "random",
        IPSEC = 25 "ipsec", IIFKIND = 26 "iifkind", OIFKIND = 27 "oifkind", IBRPVID = 28 "ibrpvid",
        IBRVPROTO = 29 "ibrvproto", TIME = 30 "time", DAY = 31 "day", HOUR = 32 "hour", SDIF = 33 "sdif",
        SDIFNAME = 34 "sdifname", BROUTE = 35 "broute", IBRHWADDR = 37 "ibrhwaddr",
    }

    /// A property of the connection (`enum nft_ct_keys`).
    CtKey u32 {
        STATE = 0 "state", DIRECTION = 1 "direction", STATUS = 2 "status", MARK = 3 "mark",
        SECMARK = 4 "secmark", EXPIRATION = 5 "expiration", HELPER = 6 "helper", L3PROTO = 7 "l3proto",
        SADDR = 8 "saddr", DADDR = 9 "daddr", PROTOCOL = 10 "protocol", PROTO_SRC = 11 "proto-src",
        PROTO_DST = 12 "proto-dst", LABEL = 13 "label", PACKETS = 14 "packets", BYTES = 15 "bytes",
        AVGPKT = 16 "avgpkt", ZONE = 17 "zone", EVENT = 18 "event", SADDR_IP = 19 "ip saddr",
        DADDR_IP = 20 "ip daddr", SADDR_IP6 = 21 "ip6 saddr", DADDR_IP6 = 22 "ip6 daddr", ID = 23 "id",
    }

    /// A direction of a connection (`enum ip_conntrack_dir`).
    Direction u8 { ORIGINAL = 0 "original", REPLY = 1 "reply", }

    /// A property of the route (`enum nft_rt_keys`).
    RtKey u32 {
        CLASSID = 0 "classid", NEXTHOP_IP = 1 "ip nexthop", NEXTHOP_IP6 = 2 "ip6 nexthop", MTU = 3 "mtu",
        IPSEC = 4 "ipsec",
    }

    /// A property of the socket (`enum nft_socket_keys`).
    SocketKey u32 {
        TRANSPARENT = 0 "transparent", MARK = 1 "mark", WILDCARD = 2 "wildcard", CGROUPV2 = 3 "cgroupv2",
    }

    /// The result of a routing table lookup (`enum nft_fib_result`).
    FibResult u32 { OIF = 1 "oif", OIFNAME = 2 "oifname", ADDRTYPE = 3 "type", }

    /// How numbers are generated (`enum nft_ng_types`).
    NumgenMode u32 { INCREMENTAL = 0 "inc", RANDOM = 1 "random", }

    /// A hash function (`enum nft_hash_types`).
    HashType u32 { JENKINS = 0 "jhash", SYMMETRIC = 1 "symhash", }

    /// A property of an xfrm transformation (`enum nft_xfrm_keys`).
    XfrmKey u32 {
        DADDR_IP = 1 "ip daddr", DADDR_IP6 = 2 "ip6 daddr", SADDR_IP = 3 "ip saddr",
        SADDR_IP6 = 4 "ip6 saddr", REQID = 5 "reqid", SPI = 6 "spi",
    }

    /// A property of a tunnel (`enum nft_tunnel_keys`).
    TunnelKey u32 { PATH = 0 "path", ID = 1 "id", }

    /// The type of a tunnel (`enum nft_inner_type`). The kernel does not interpret the number; nft 1.0.6
    /// continues the enumeration with its own.
    InnerType u32 { VXLAN = 1 "vxlan", GENEVE = 2 "geneve", GRE = 3 "gre", GRETAP = 4 "gretap", }

    /// A comparison operator (`enum nft_cmp_ops`).
    CmpOp u32 { EQ = 0 "==", NEQ = 1 "!=", LT = 2 "<", LTE = 3 "<=", GT = 4 ">", GTE = 5 ">=", }

    /// Whether a range expression matches inside or outside (`enum nft_range_ops`).
    RangeOp u32 { EQ = 0 "==", NEQ = 1 "!=", }

    /// A bitwise operation (`enum nft_bitwise_ops`).
    BitwiseOp u32 { BOOL = 0 "bool", LSHIFT = 1 "<<", RSHIFT = 2 ">>", AND = 3 "&", OR = 4 "|", XOR = 5 "^", }

    /// A byte order conversion (`enum nft_byteorder_ops`).
    ByteorderOp u32 { NTOH = 0 "ntoh", HTON = 1 "hton", }

    /// The kind of address translation (`enum nft_nat_types`).
    NatType u32 { SNAT = 0 "snat", DNAT = 1 "dnat", }

    /// The type of reply to a rejected packet (`enum nft_reject_types`).
    RejectType u32 { ICMP_UNREACH = 0 "icmp", TCP_RST = 1 "tcp reset", ICMPX_UNREACH = 2 "icmpx", }

    /// The unit of a limit (`enum nft_limit_type`).
    LimitType u32 { PACKETS = 0 "packets", BYTES = 1 "bytes", }

    /// An operation on an element of a dynamic set (`enum nft_dynset_ops`).
    DynsetOp u32 { ADD = 0 "add", UPDATE = 1 "update", DELETE = 2 "delete", }

    /// The kind of header that an exthdr expression reads (`enum nft_exthdr_op`).
    ExthdrOp u32 {
        IPV6 = 0 "ipv6", TCPOPT = 1 "tcp option", IPV4 = 2 "ip option", SCTP = 3 "sctp chunk",
        DCCP = 4 "dccp option",
    }

    /// The type of checksum that a payload write updates (`enum nft_payload_csum_types`).
    ChecksumType u32 { NONE = 0 "none", INET = 1 "inet", SCTP = 2 "sctp", }

    /// The kind of a stateful object (`NFT_OBJECT_*`).
    ObjectKind u32 {
        COUNTER = 1 "counter", QUOTA = 2 "quota", CT_HELPER = 3 "ct helper", LIMIT = 4 "limit",
        CONNLIMIT = 5 "ct count", TUNNEL = 6 "tunnel", CT_TIMEOUT = 7 "ct timeout", SECMARK = 8 "secmark",
        CT_EXPECT = 9 "ct expectation", SYNPROXY = 10 "synproxy",
    }

    /// The number of a verdict: `NF_*` of `linux/netfilter.h`, and `NFT_*` of `enum nft_verdicts` as two's
    /// complement.
    VerdictCode u32 {
        DROP = 0 "drop", ACCEPT = 1 "accept", QUEUE = 3 "queue", CONTINUE = 0xffff_ffff "continue",
        BREAK = 0xffff_fffe "break", JUMP = 0xffff_fffd "jump", GOTO = 0xffff_fffc "goto",
        RETURN = 0xffff_fffb "return",
    }
}
