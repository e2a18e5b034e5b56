//! Matches of the header of every packet, and of its contents.

use crate::typed::{Flag, Not, Span, typed};

typed! {
    /// A BPF program that decides.
    Bpf = "bpf" {
        /// The program as text, `count,code jt jf k,...`.
        bytecode: Option<String> = "bytecode",
        /// The path of a pinned program.
        object_pinned: Option<String> = "object-pinned",
    }
    /// The differentiated services field of the IP header.
    Dscp = "dscp" {
        /// Code point, up to 63.
        dscp: Option<Not<u8>> = "dscp",
        /// Class, as in `EF` or `CS1`.
        dscp_class: Option<Not<String>> = "dscp-class",
    }
    /// Explicit congestion notification.
    Ecn = "ecn" {
        /// The bit CWR of TCP.
        tcp_cwr: Flag = "ecn-tcp-cwr",
        /// The bit ECE of TCP.
        tcp_ece: Flag = "ecn-tcp-ece",
        /// The code point of the IP header, up to 3.
        ip_ect: Option<Not<u8>> = "ecn-ip-ect",
    }
    /// The hop limit of IPv6.
    Hl = "hl" {
        /// The value.
        eq: Option<Not<u8>> = "hl-eq",
        /// Below it.
        lt: Option<u8> = "hl-lt",
        /// Above it.
        gt: Option<u8> = "hl-gt",
    }
    /// The length of the packet in bytes.
    Length = "length" {
        /// From and to.
        length: Not<Span<u16>> = "length",
    }
    /// Text inside the packet.
    StringMatch = "string" {
        /// The text.
        string: Option<Not<String>> = "string",
        /// The text with bytes in hexadecimal between bars, as in `GET|0d0a|`.
        hex_string: Option<Not<String>> = "hex-string",
        /// `bm` or `kmp`.
        algo: String = "algo",
        /// Offset to start at.
        from: Option<u16> = "from",
        /// Offset to end at.
        to: Option<u16> = "to",
        /// Upper and lower case are the same.
        icase: bool = "icase",
    }
    /// The type of service field.
    Tos = "tos" {
        /// Value with a mask if wanted, or a name.
        tos: Not<String> = "tos",
    }
    /// The time to live of IPv4.
    Ttl = "ttl" {
        /// The value.
        eq: Option<Not<u8>> = "ttl-eq",
        /// Below it.
        lt: Option<u8> = "ttl-lt",
        /// Above it.
        gt: Option<u8> = "ttl-gt",
    }
    /// Any four bytes of the packet.
    U32 = "u32" {
        /// Tests, as in `0&0xff=0x1:0x2,5&&4>>2@8=1`.
        u32: Not<String> = "u32",
    }
}
