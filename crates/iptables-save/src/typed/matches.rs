//! Matches as structures. Names and meanings are those of iptables-extensions(8).

use super::{List, MarkMask, Not, Port, Ports, Probability, SetUse, typed};

/// A match that is used, negated or not, without a value.
type Flag = Option<Not<()>>;

typed! {
    /// Types of the addresses of a packet, as routing sees them.
    Addrtype = "addrtype" {
        /// Of the source.
        src_type: Option<Not<List>> = "src-type",
        /// Of the destination.
        dst_type: Option<Not<List>> = "dst-type",
        /// As seen from the interface that the packet came in by.
        limit_iface_in: bool = "limit-iface-in",
        /// As seen from the interface that the packet goes out by.
        limit_iface_out: bool = "limit-iface-out",
    }
    /// A comment; matches every packet.
    Comment = "comment" {
        /// At most 255 bytes.
        comment: String = "comment",
    }
    /// The mark of the connection.
    Connmark = "connmark" {
        /// Value and mask.
        mark: Not<MarkMask> = "mark",
    }
    /// The connection that a packet belongs to.
    Conntrack = "conntrack" {
        /// `NEW`, `ESTABLISHED`, `RELATED`, `INVALID`, `UNTRACKED`, `SNAT`, `DNAT`.
        ctstate: Option<Not<List>> = "ctstate",
        /// Protocol by number or name.
        ctproto: Option<Not<String>> = "ctproto",
        /// Source of the original direction.
        ctorigsrc: Option<Not<String>> = "ctorigsrc",
        /// Destination of the original direction.
        ctorigdst: Option<Not<String>> = "ctorigdst",
        /// Source of the reply direction.
        ctreplsrc: Option<Not<String>> = "ctreplsrc",
        /// Destination of the reply direction.
        ctrepldst: Option<Not<String>> = "ctrepldst",
        /// Source port of the original direction.
        ctorigsrcport: Option<Not<Ports>> = "ctorigsrcport",
        /// Destination port of the original direction.
        ctorigdstport: Option<Not<Ports>> = "ctorigdstport",
        /// Source port of the reply direction.
        ctreplsrcport: Option<Not<Ports>> = "ctreplsrcport",
        /// Destination port of the reply direction.
        ctrepldstport: Option<Not<Ports>> = "ctrepldstport",
        /// `NONE`, `EXPECTED`, `SEEN_REPLY`, `ASSURED`, `CONFIRMED`.
        ctstatus: Option<Not<List>> = "ctstatus",
        /// Seconds left, or a range of them.
        ctexpire: Option<Not<String>> = "ctexpire",
        /// `ORIGINAL` or `REPLY`.
        ctdir: Option<String> = "ctdir",
    }
    /// A rate for each group of packets.
    Hashlimit = "hashlimit" {
        /// Matches up to this rate, as in `10/sec` or `512kb/s`.
        upto: Option<Not<String>> = "hashlimit-upto",
        /// Matches above this rate.
        above: Option<Not<String>> = "hashlimit-above",
        /// Packets, or bytes with a unit.
        burst: Option<String> = "hashlimit-burst",
        /// What makes a group: `srcip`, `srcport`, `dstip`, `dstport`.
        mode: Option<List> = "hashlimit-mode",
        /// Name of the table, a file in `/proc/net/ipt_hashlimit`.
        name: String = "hashlimit-name",
        /// Buckets.
        htable_size: Option<u32> = "hashlimit-htable-size",
        /// Most entries.
        htable_max: Option<u32> = "hashlimit-htable-max",
        /// Milliseconds between clean-ups.
        htable_gcinterval: Option<u32> = "hashlimit-htable-gcinterval",
        /// Milliseconds until an idle entry goes.
        htable_expire: Option<u32> = "hashlimit-htable-expire",
        /// Prefix length of sources.
        srcmask: Option<u8> = "hashlimit-srcmask",
        /// Prefix length of destinations.
        dstmask: Option<u8> = "hashlimit-dstmask",
        /// Measures the rate instead of limiting it.
        rate_match: bool = "hashlimit-rate-match",
        /// Seconds of the measurement.
        rate_interval: Option<u32> = "hashlimit-rate-interval",
    }
    /// Type of an ICMP message.
    Icmp = "icmp" {
        /// Name, `type`, or `type/code`.
        icmp_type: Not<String> = "icmp-type",
    }
    /// Type of an `ICMPv6` message.
    Icmp6 = "icmp6" {
        /// Name, `type`, or `type/code`.
        icmpv6_type: Not<String> = "icmpv6-type",
    }
    /// The IPVS connection that a packet belongs to.
    Ipvs = "ipvs" {
        /// It belongs to one at all.
        ipvs: Flag = "ipvs",
        /// Protocol of the virtual service.
        vproto: Option<Not<String>> = "vproto",
        /// Address of the virtual service.
        vaddr: Option<Not<String>> = "vaddr",
        /// Port of the virtual service.
        vport: Option<Not<Port>> = "vport",
        /// `ORIGINAL` or `REPLY`.
        vdir: Option<String> = "vdir",
        /// `GATE`, `IPIP` or `MASQ`.
        vmethod: Option<Not<String>> = "vmethod",
        /// Port of the controlling connection.
        vportctl: Option<Not<Port>> = "vportctl",
    }
    /// A rate of all packets together.
    Limit = "limit" {
        /// As in `3/hour`.
        limit: Option<String> = "limit",
        /// Packets.
        burst: Option<u32> = "limit-burst",
    }
    /// The mark of the packet.
    Mark = "mark" {
        /// Value and mask.
        mark: Not<MarkMask> = "mark",
    }
    /// Up to 15 ports.
    Multiport = "multiport" {
        /// Source ports, as in `80,443,1024:2048`.
        sports: Option<Not<List>> = "sports",
        /// Destination ports.
        dports: Option<Not<List>> = "dports",
        /// Either.
        ports: Option<Not<List>> = "ports",
    }
    /// Ports of a bridge.
    Physdev = "physdev" {
        /// The packet came in by a bridge.
        is_in: Flag = "physdev-is-in",
        /// By this port of it; `+` at the end for any ending.
        r#in: Option<Not<String>> = "physdev-in",
        /// The packet goes out by a bridge.
        is_out: Flag = "physdev-is-out",
        /// By this port of it.
        out: Option<Not<String>> = "physdev-out",
        /// It is bridged, not routed.
        is_bridged: Flag = "physdev-is-bridged",
    }
    /// A list of addresses that were seen.
    Recent = "recent" {
        /// Adds the address.
        set: Flag = "set",
        /// Is the address there?
        rcheck: Flag = "rcheck",
        /// The same, and notes the time.
        update: Flag = "update",
        /// The same, and removes it.
        remove: Flag = "remove",
        /// Seen within so many seconds.
        seconds: Option<u32> = "seconds",
        /// Forgets older ones.
        reap: bool = "reap",
        /// Seen so many times.
        hitcount: Option<u32> = "hitcount",
        /// With the same TTL.
        rttl: bool = "rttl",
        /// Name of the list; `DEFAULT` without one.
        name: Option<String> = "name",
        /// Mask of addresses.
        mask: Option<String> = "mask",
        /// The source counts.
        rsource: bool = "rsource",
        /// The destination counts.
        rdest: bool = "rdest",
    }
    /// Ports and chunks of SCTP.
    Sctp = "sctp" {
        /// Source port.
        source_port: Option<Not<Ports>> = "source-port",
        /// Destination port.
        destination_port: Option<Not<Ports>> = "destination-port",
        /// `all`, `any` or `only`, and the list of chunks.
        chunk_types: Option<Not<(String, String)>> = "chunk-types",
    }
    /// An element of an ipset.
    Set = "set" {
        /// The set and the parts of the packet.
        match_set: Not<SetUse> = "match-set",
        /// An element that is flagged `nomatch` does.
        return_nomatch: bool = "return-nomatch",
        /// Negated: counters stay as they are.
        update_counters: Flag = "update-counters",
        /// Negated: counters of members of a list stay as they are.
        update_subcounters: Flag = "update-subcounters",
        /// Packets counted.
        packets_eq: Option<Not<u64>> = "packets-eq",
        /// Packets counted, below.
        packets_lt: Option<u64> = "packets-lt",
        /// Packets counted, above.
        packets_gt: Option<u64> = "packets-gt",
        /// Bytes counted.
        bytes_eq: Option<Not<u64>> = "bytes-eq",
        /// Bytes counted, below.
        bytes_lt: Option<u64> = "bytes-lt",
        /// Bytes counted, above.
        bytes_gt: Option<u64> = "bytes-gt",
    }
    /// The older form of the states of [`Conntrack`].
    State = "state" {
        /// `NEW`, `ESTABLISHED`, `RELATED`, `INVALID`, `UNTRACKED`.
        state: Not<List> = "state",
    }
    /// At random, or every n-th packet.
    Statistic = "statistic" {
        /// `random` or `nth`.
        mode: String = "mode",
        /// Of `random`.
        probability: Option<Not<Probability>> = "probability",
        /// Of `nth`.
        every: Option<Not<u32>> = "every",
        /// Of `nth`: which of them, from 0.
        packet: Option<u32> = "packet",
    }
    /// Ports, flags and options of TCP.
    Tcp = "tcp" {
        /// Source port.
        source_port: Option<Not<Ports>> = "source-port",
        /// Destination port.
        destination_port: Option<Not<Ports>> = "destination-port",
        /// An option by its number.
        tcp_option: Option<Not<u8>> = "tcp-option",
        /// SYN set; ACK, RST and FIN not.
        syn: Flag = "syn",
        /// Flags that are looked at, and those of them that must be set.
        tcp_flags: Option<Not<(String, String)>> = "tcp-flags",
    }
    /// Ports of UDP.
    Udp = "udp" {
        /// Source port.
        source_port: Option<Not<Ports>> = "source-port",
        /// Destination port.
        destination_port: Option<Not<Ports>> = "destination-port",
    }
}
