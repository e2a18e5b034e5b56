//! Matches of the headers of transport protocols.

use crate::typed::{Flag, List, Not, Ports, Span, typed};

typed! {
    /// Ports, types and options of DCCP.
    Dccp = "dccp" {
        /// Source port.
        source_port: Option<Not<Ports>> = "source-port",
        /// Destination port.
        destination_port: Option<Not<Ports>> = "destination-port",
        /// `REQUEST`, `RESPONSE`, `DATA` and so on.
        types: Option<Not<List>> = "dccp-types",
        /// An option by its number.
        option: Option<Not<u8>> = "dccp-option",
    }
    /// Type of an ICMP message.
    Icmp = "icmp" {
        /// Name, `type`, or `type/code`.
        icmp_type: Not<String> = "icmp-type",
    }
    /// Type of an ICMPv6 message.
    Icmp6 = "icmp6" {
        /// Name, `type`, or `type/code`.
        icmpv6_type: Not<String> = "icmpv6-type",
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
    /// The operating system that a SYN packet looks like.
    Osf = "osf" {
        /// Its name, as in `Linux`.
        genre: Not<String> = "genre",
        /// How the TTL is compared: 0 as it is, 1 at most, 2 not at all.
        ttl: Option<u8> = "ttl",
        /// What is logged: 0 all that match, 1 the first, 2 all known.
        log: Option<u8> = "log",
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
    /// The maximum segment size in a SYN packet.
    Tcpmss = "tcpmss" {
        /// From and to.
        mss: Not<Span<u16>> = "mss",
    }
    /// Ports of UDP.
    Udp = "udp" {
        /// Source port.
        source_port: Option<Not<Ports>> = "source-port",
        /// Destination port.
        destination_port: Option<Not<Ports>> = "destination-port",
    }
}
