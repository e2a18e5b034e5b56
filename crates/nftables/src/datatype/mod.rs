//! nft's data types: their numbers in `NFTA_SET_KEY_TYPE`, sizes, byte orders and symbolic constants.
//!
//! The kernel stores the numbers without interpreting them (except that of verdicts); nft needs them to list
//! sets and maps. They are those of `enum datatypes` in nft's `datatype.h`. Numbers and symbolic constants
//! were compared with nft 1.0.6 (`nft describe TYPE`).

mod symbols;

use std::fmt;

use symbols::*;

/// A data type of nft(8), "DATA TYPES".
///
/// Only the types that are constants of this type exist.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DataType(u8);

struct Row {
    name: &'static str,
    bits: u16,
    order: Order,
    /// Whether a match without an operator means "any of these bits".
    bitmask: bool,
    symbols: &'static [(&'static str, u64)],
}

/// The byte order of a value in a register or a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Order {
    /// Host byte order (`BYTEORDER_HOST_ENDIAN`, 1).
    Host,
    /// Network byte order (`BYTEORDER_BIG_ENDIAN`, 2).
    Network,
}

macro_rules! data_types {
    ($($(#[$doc:meta])* $konst:ident = $id:literal $name:literal $bits:literal $order:ident $bitmask:literal
        $symbols:expr;)*) => {
        impl DataType {
            $($(#[$doc])* pub const $konst: Self = Self($id);)*

            /// All types with a name, ordered by number.
            pub const ALL: &'static [Self] = &[$(Self::$konst),*];
        }

        /// The table of types, indexed by number.
        static ROWS: [Option<Row>; 64] = {
            let mut rows = [const { None }; 64];
            $(rows[$id] = Some(Row { name: $name, bits: $bits, order: Order::$order, bitmask: $bitmask,
                symbols: $symbols });)*
            rows
        };
    };
}

data_types! {
    /// `verdict`: the data of a verdict map. It has no values of its own.
    VERDICT = 1 "verdict" 0 Host false &[];
    /// `nf_proto`: ipv4 or ipv6, in one byte.
    NF_PROTO = 2 "nf_proto" 8 Host false NF_PROTO;
    /// `bitmask` of eight bits, as in `comp flags`; sets cannot have this type by name.
    BITMASK = 3 "bitmask" 8 Network false &[];
    /// `integer` of 32 bits in host byte order; integers of other sizes come from expressions.
    INTEGER = 4 "integer" 32 Host false &[];
    /// `string`.
    STRING = 5 "string" 128 Host false &[];
    /// `ll_addr`: a link-layer address of any kind.
    LL_ADDR = 6 "ll_addr" 48 Network false &[];
    /// `ipv4_addr`.
    IPV4_ADDR = 7 "ipv4_addr" 32 Network false &[];
    /// `ipv6_addr`.
    IPV6_ADDR = 8 "ipv6_addr" 128 Network false &[];
    /// `ether_addr`.
    ETHER_ADDR = 9 "ether_addr" 48 Network false &[];
    /// `ether_type`.
    ETHER_TYPE = 10 "ether_type" 16 Network false ETHER_TYPE;
    /// `arp_op`.
    ARP_OP = 11 "arp_op" 16 Network false ARP_OP;
    /// `inet_proto`: the transport protocol.
    INET_PROTO = 12 "inet_proto" 8 Network false INET_PROTO;
    /// `inet_service`: a port.
    INET_SERVICE = 13 "inet_service" 16 Network false &[];
    /// `icmp_type`.
    ICMP_TYPE = 14 "icmp_type" 8 Network false ICMP_TYPE;
    /// `tcp_flag`.
    TCP_FLAG = 15 "tcp_flag" 8 Network true TCP_FLAG;
    /// `dccp_pkttype`.
    DCCP_PKTTYPE = 16 "dccp_pkttype" 4 Network false DCCP_PKTTYPE;
    /// `mh_type`.
    MH_TYPE = 17 "mh_type" 8 Network false MH_TYPE;
    /// `time`: a relative time in milliseconds.
    TIME = 18 "time" 32 Host false &[];
    /// `mark`.
    MARK = 19 "mark" 32 Host false &[];
    /// `iface_index`.
    IFACE_INDEX = 20 "iface_index" 32 Host false &[];
    /// `iface_type`.
    IFACE_TYPE = 21 "iface_type" 16 Host false IFACE_TYPE;
    /// `realm`.
    REALM = 22 "realm" 32 Host false &[];
    /// `classid`.
    CLASSID = 23 "classid" 32 Host false &[];
    /// `uid`.
    UID = 24 "uid" 32 Host false &[];
    /// `gid`.
    GID = 25 "gid" 32 Host false &[];
    /// `ct_state`.
    CT_STATE = 26 "ct_state" 32 Host true CT_STATE;
    /// `ct_dir`.
    CT_DIR = 27 "ct_dir" 8 Host false CT_DIR;
    /// `ct_status`.
    CT_STATUS = 28 "ct_status" 32 Host true CT_STATUS;
    /// `icmpv6_type`.
    ICMPV6_TYPE = 29 "icmpv6_type" 8 Network false ICMPV6_TYPE;
    /// `ct_label`.
    CT_LABEL = 30 "ct_label" 128 Host true &[];
    /// `pkt_type`.
    PKT_TYPE = 31 "pkt_type" 8 Host false PKT_TYPE;
    /// `icmp_code`.
    ICMP_CODE = 32 "icmp_code" 8 Network false ICMP_CODE;
    /// `icmpv6_code`.
    ICMPV6_CODE = 33 "icmpv6_code" 8 Network false ICMPV6_CODE;
    /// `icmpx_code`.
    ICMPX_CODE = 34 "icmpx_code" 8 Network false ICMPX_CODE;
    /// `devgroup`.
    DEVGROUP = 35 "devgroup" 32 Host false &[];
    /// `dscp`, six bits.
    DSCP = 36 "dscp" 6 Network false DSCP;
    /// `ecn`, two bits.
    ECN = 37 "ecn" 2 Network false ECN;
    /// `fib_addrtype`.
    FIB_ADDRTYPE = 38 "fib_addrtype" 32 Host false FIB_ADDRTYPE;
    /// `boolean`: exists or missing.
    BOOLEAN = 39 "boolean" 8 Host false BOOLEAN;
    /// `ct_event`.
    CT_EVENT = 40 "ct_event" 32 Host true CT_EVENT;
    /// `ifname`: sixteen bytes, padded with NUL.
    IFNAME = 41 "ifname" 128 Host false &[];
    /// `igmp_type`.
    IGMP_TYPE = 42 "igmp_type" 8 Network false IGMP_TYPE;
    /// The type `time` of `meta time`: nanoseconds since 1970.
    DATE = 43 "time" 64 Host false &[];
    /// `hour`: seconds since midnight, UTC.
    HOUR = 44 "hour" 32 Host false &[];
    /// `day` of the week.
    DAY = 45 "day" 8 Network false DAY;
    /// `cgroupsv2`.
    CGROUPSV2 = 46 "cgroupsv2" 64 Host false &[];
}

impl DataType {
    /// Returns the type with this number.
    #[must_use]
    pub fn from_id(id: u8) -> Option<Self> {
        ROWS.get(usize::from(id))?.is_some().then_some(Self(id))
    }

    /// Returns the type with this name in nft's language.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|t| t.name() == name).copied()
    }

    /// Returns the number of the type in `NFTA_SET_KEY_TYPE`.
    #[must_use]
    pub const fn id(self) -> u8 {
        self.0
    }

    /// Returns the keyword of the type in nft's language.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// Returns the number of bits of a value.
    #[must_use]
    pub fn bits(self) -> u16 {
        self.row().bits
    }

    /// Returns the number of bytes of a value.
    #[must_use]
    pub fn bytes(self) -> usize {
        usize::from(self.row().bits).div_ceil(8)
    }

    /// Returns the byte order of a value.
    #[must_use]
    pub fn order(self) -> Order {
        self.row().order
    }

    /// Returns whether a match without an operator means "any of these bits" (`ct state new,established`).
    #[must_use]
    pub fn is_bitmask(self) -> bool {
        self.row().bitmask
    }

    /// Returns whether nft lists an interval of this type as a prefix when it is one.
    pub(crate) fn has_prefixes(self) -> bool {
        matches!(self, Self::IPV4_ADDR | Self::IPV6_ADDR | Self::MARK | Self::REALM | Self::DEVGROUP)
    }

    /// Returns the value of a symbolic constant: `established` of `ct_state` is 2.
    #[must_use]
    pub fn value_of(self, symbol: &str) -> Option<u64> {
        self.row().symbols.iter().find(|(name, _)| *name == symbol).map(|(_, value)| *value)
    }

    /// Returns the symbolic constant that nft shows for a value.
    #[must_use]
    pub fn symbol_of(self, value: u64) -> Option<&'static str> {
        self.row().symbols.iter().find(|(_, v)| *v == value).map(|(name, _)| *name)
    }

    /// Returns the symbolic constants, in the order in which nft tries them.
    #[must_use]
    pub fn symbols(self) -> &'static [(&'static str, u64)] {
        self.row().symbols
    }

    fn row(self) -> &'static Row {
        const UNNAMED: Row =
            Row { name: "integer", bits: 32, order: Order::Host, bitmask: false, symbols: &[] };
        ROWS.get(usize::from(self.0)).and_then(Option::as_ref).unwrap_or(&UNNAMED)
    }
}

impl fmt::Display for DataType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.row().name)
    }
}

impl fmt::Debug for DataType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.row().name)
    }
}
