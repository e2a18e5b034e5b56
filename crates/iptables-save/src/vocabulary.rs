//! The words of iptables for bits and numbers of the kernel. Each list stands here once, for what reads and prints
//! rules, for listings, and for who makes the kernel's structures.

/// Types of addresses by their bits: `XT_ADDRTYPE_*` of `linux/netfilter/xt_addrtype.h`.
pub const ADDRESS_TYPES: &[(&str, u32)] = &[
    ("UNSPEC", 1 << 0),
    ("UNICAST", 1 << 1),
    ("LOCAL", 1 << 2),
    ("BROADCAST", 1 << 3),
    ("ANYCAST", 1 << 4),
    ("MULTICAST", 1 << 5),
    ("BLACKHOLE", 1 << 6),
    ("UNREACHABLE", 1 << 7),
    ("PROHIBIT", 1 << 8),
    ("THROW", 1 << 9),
    ("NAT", 1 << 10),
    ("XRESOLVE", 1 << 11),
];

/// States of connections by their bits, in the order in which iptables saves them: `XT_CONNTRACK_STATE_*` of
/// `linux/netfilter/xt_conntrack.h`.
pub const CONNTRACK_STATES: &[(&str, u32)] = &[
    ("INVALID", 1 << 0),
    ("NEW", 1 << 3),
    ("RELATED", 1 << 2),
    ("ESTABLISHED", 1 << 1),
    ("UNTRACKED", 1 << 8),
    ("SNAT", 1 << 6),
    ("DNAT", 1 << 7),
];

/// Statuses of connections by their bits: `IPS_*` of `linux/netfilter/nf_conntrack_common.h`.
pub const CONNTRACK_STATUSES: &[(&str, u32)] =
    &[("NONE", 0), ("EXPECTED", 1 << 0), ("SEEN_REPLY", 1 << 1), ("ASSURED", 1 << 2), ("CONFIRMED", 1 << 3)];

/// Events of connections by their bits: `IPCT_*` of `linux/netfilter/nf_conntrack_common.h`.
pub const CONNTRACK_EVENTS: &[(&str, u32)] = &[
    ("new", 1 << 0),
    ("related", 1 << 1),
    ("destroy", 1 << 2),
    ("reply", 1 << 3),
    ("assured", 1 << 4),
    ("protoinfo", 1 << 5),
    ("helper", 1 << 6),
    ("mark", 1 << 7),
    ("natseqinfo", 1 << 8),
    ("secmark", 1 << 9),
];

/// Flags of TCP by their bits (RFC 9293).
pub const TCP_FLAGS: &[(&str, u32)] =
    &[("FIN", 0x01), ("SYN", 0x02), ("RST", 0x04), ("PSH", 0x08), ("ACK", 0x10), ("URG", 0x20)];

/// Packet types of DCCP by their bits, `1 << DCCP_PKT_*` of `linux/dccp.h`; invalid are all that RFC 4340
/// reserves.
pub const DCCP_TYPES: &[(&str, u32)] = &[
    ("REQUEST", 1 << 0),
    ("RESPONSE", 1 << 1),
    ("DATA", 1 << 2),
    ("ACK", 1 << 3),
    ("DATAACK", 1 << 4),
    ("CLOSEREQ", 1 << 5),
    ("CLOSE", 1 << 6),
    ("RESET", 1 << 7),
    ("SYNC", 1 << 8),
    ("SYNCACK", 1 << 9),
    ("INVALID", 0xfc00),
];

/// Chunk types of SCTP (RFC 9260, 3758, 4820, 5061, 6525, 8260) in the order of their numbers, and the letters of
/// their flags, the last of which is bit 0.
pub const SCTP_CHUNKS: &[(&str, u8, &str)] = &[
    ("DATA", 0, "IUBE"),
    ("INIT", 1, ""),
    ("INIT_ACK", 2, ""),
    ("SACK", 3, ""),
    ("HEARTBEAT", 4, ""),
    ("HEARTBEAT_ACK", 5, ""),
    ("ABORT", 6, "T"),
    ("SHUTDOWN", 7, ""),
    ("SHUTDOWN_ACK", 8, ""),
    ("ERROR", 9, ""),
    ("COOKIE_ECHO", 10, ""),
    ("COOKIE_ACK", 11, ""),
    ("ECN_ECNE", 12, ""),
    ("ECN_CWR", 13, ""),
    ("SHUTDOWN_COMPLETE", 14, "T"),
    // iptables takes flags of this chunk and does not save them.
    ("I_DATA", 64, "IUBE"),
    ("ASCONF_ACK", 128, ""),
    ("RE_CONFIG", 130, ""),
    ("PAD", 132, ""),
    ("FORWARD_TSN", 192, ""),
    ("ASCONF", 193, ""),
    ("I_FORWARD_TSN", 194, ""),
];

/// Extension headers of IPv6 by their bits, each by the name that is saved: `MASK_*` of
/// `linux/netfilter_ipv6/ip6t_ipv6header.h`.
pub const IPV6_HEADERS: &[(&str, u32)] = &[
    ("hop-by-hop", 128),
    ("ipv6-opts", 64),
    ("ipv6-route", 32),
    ("ipv6-frag", 16),
    ("ah", 8),
    ("esp", 4),
    ("ipv6-nonxt", 2),
    ("protocol", 1),
];

/// Returns the bits of words that are separated by commas; of a word that is not in the table, none.
pub(crate) fn bits(words: &str, table: &[(&str, u32)]) -> u32 {
    let bit = |word: &str| table.iter().find(|(known, _)| *known == word).map_or(0, |(_, bits)| *bits);
    words.split(',').map(bit).fold(0, |all, bits| all | bits)
}

/// Returns the first `N` words of a table.
pub(crate) const fn words<const N: usize>(table: &[(&'static str, u32)]) -> [&'static str; N] {
    let mut words = [""; N];
    let mut at = 0;
    while at < N {
        words[at] = table[at].0;
        at += 1;
    }
    words
}
