//! Constants of ctnetlink that several files use: subsystem, commands, attributes of a flow.
//!
//! All from `linux/netfilter/nfnetlink.h` and `linux/netfilter/nfnetlink_conntrack.h`.

/// `NFNL_SUBSYS_CTNETLINK`
pub(crate) const SUBSYSTEM: u8 = 1;

/// `NFNL_SUBSYS_CTNETLINK_EXP`
pub(crate) const EXPECTATIONS: u8 = 2;

/// `enum ctnl_exp_msg_types`
pub(crate) mod expectation {
    /// `IPCTNL_MSG_EXP_NEW`
    pub(crate) const NEW: u8 = 0;
    /// `IPCTNL_MSG_EXP_GET`
    pub(crate) const GET: u8 = 1;
    /// `IPCTNL_MSG_EXP_DELETE`
    pub(crate) const DELETE: u8 = 2;
    /// `IPCTNL_MSG_EXP_GET_STATS_CPU`
    pub(crate) const GET_STATS_CPU: u8 = 3;
}

/// `enum cntl_msg_types`
pub(crate) mod command {
    /// `IPCTNL_MSG_CT_NEW`
    pub(crate) const NEW: u8 = 0;
    /// `IPCTNL_MSG_CT_GET`
    pub(crate) const GET: u8 = 1;
    /// `IPCTNL_MSG_CT_DELETE`
    pub(crate) const DELETE: u8 = 2;
    /// `IPCTNL_MSG_CT_GET_CTRZERO`
    pub(crate) const GET_CTRZERO: u8 = 3;
    /// `IPCTNL_MSG_CT_GET_STATS_CPU`
    pub(crate) const GET_STATS_CPU: u8 = 4;
    /// `IPCTNL_MSG_CT_GET_STATS`
    pub(crate) const GET_STATS: u8 = 5;
    /// `IPCTNL_MSG_CT_GET_DYING`
    pub(crate) const GET_DYING: u8 = 6;
    /// `IPCTNL_MSG_CT_GET_UNCONFIRMED`
    pub(crate) const GET_UNCONFIRMED: u8 = 7;
}

/// `enum ctattr_type`
pub(crate) mod cta {
    /// `CTA_TUPLE_ORIG`, nested
    pub(crate) const TUPLE_ORIG: u16 = 1;
    /// `CTA_TUPLE_REPLY`, nested
    pub(crate) const TUPLE_REPLY: u16 = 2;
    /// `CTA_STATUS`, be32
    pub(crate) const STATUS: u16 = 3;
    /// `CTA_PROTOINFO`, nested
    pub(crate) const PROTOINFO: u16 = 4;
    /// `CTA_HELP`, nested
    pub(crate) const HELP: u16 = 5;
    /// `CTA_NAT_SRC`, nested
    pub(crate) const NAT_SRC: u16 = 6;
    /// `CTA_TIMEOUT`, be32, seconds
    pub(crate) const TIMEOUT: u16 = 7;
    /// `CTA_MARK`, be32
    pub(crate) const MARK: u16 = 8;
    /// `CTA_COUNTERS_ORIG`, nested
    pub(crate) const COUNTERS_ORIG: u16 = 9;
    /// `CTA_COUNTERS_REPLY`, nested
    pub(crate) const COUNTERS_REPLY: u16 = 10;
    /// `CTA_USE`, be32
    pub(crate) const USE: u16 = 11;
    /// `CTA_ID`, be32
    pub(crate) const ID: u16 = 12;
    /// `CTA_NAT_DST`, nested
    pub(crate) const NAT_DST: u16 = 13;
    /// `CTA_SECMARK`, be32
    pub(crate) const SECMARK: u16 = 17;
    /// `CTA_ZONE`, be16
    pub(crate) const ZONE: u16 = 18;
    /// `CTA_SECCTX`, nested
    pub(crate) const SECCTX: u16 = 19;
    /// `CTA_TIMESTAMP`, nested
    pub(crate) const TIMESTAMP: u16 = 20;
    /// `CTA_MARK_MASK`, be32
    pub(crate) const MARK_MASK: u16 = 21;
    /// `CTA_LABELS`, 16 bytes
    pub(crate) const LABELS: u16 = 22;
    /// `CTA_FILTER`, nested
    pub(crate) const FILTER: u16 = 25;
    /// `CTA_STATUS_MASK`, be32
    pub(crate) const STATUS_MASK: u16 = 26;
}

/// `enum ctattr_filter` and the bits inside, which are private to the kernel (`nf_internals.h`); u32 in host
/// order.
pub(crate) mod filter {
    /// `CTA_FILTER_ORIG_FLAGS`
    pub(crate) const ORIG_FLAGS: u16 = 1;
    /// `CTA_FILTER_REPLY_FLAGS`
    pub(crate) const REPLY_FLAGS: u16 = 2;
    /// `CTA_FILTER_F_CTA_IP_SRC`
    pub(crate) const IP_SRC: u32 = 1;
    /// `CTA_FILTER_F_CTA_IP_DST`
    pub(crate) const IP_DST: u32 = 1 << 1;
    /// `CTA_FILTER_F_CTA_PROTO_NUM`
    pub(crate) const PROTO_NUM: u32 = 1 << 3;
    /// `CTA_FILTER_F_CTA_PROTO_SRC_PORT`
    pub(crate) const SRC_PORT: u32 = 1 << 4;
    /// `CTA_FILTER_F_CTA_PROTO_DST_PORT`
    pub(crate) const DST_PORT: u32 = 1 << 5;
}

/// `CTA_STATS_GLOBAL_ENTRIES`, be32: the number of flows.
pub(crate) const STATS_GLOBAL_ENTRIES: u16 = 1;

/// `enum ctattr_nat` and `enum ctattr_protonat`
pub(crate) mod nat {
    /// `CTA_NAT_V4_MINIP`, 4 bytes
    pub(crate) const V4_MINIP: u16 = 1;
    /// `CTA_NAT_PROTO`, nested
    pub(crate) const PROTO: u16 = 3;
    /// `CTA_NAT_V6_MINIP`, 16 bytes
    pub(crate) const V6_MINIP: u16 = 4;
    /// `CTA_PROTONAT_PORT_MIN`, be16
    pub(crate) const PORT_MIN: u16 = 1;
    /// `CTA_PROTONAT_PORT_MAX`, be16
    pub(crate) const PORT_MAX: u16 = 2;
}
