//! Targets that change headers.

use crate::typed::{List, typed};

typed! {
    /// Fills in checksums that were left to the network card.
    Checksum = "CHECKSUM" {
        /// Always set.
        fill: bool = "checksum-fill",
    }
    /// Sets the differentiated services field.
    Dscp = "DSCP" {
        /// Code point, up to 63.
        set_dscp: Option<u8> = "set-dscp",
        /// Class, as in `EF`.
        set_dscp_class: Option<String> = "set-dscp-class",
    }
    /// Changes the bits of explicit congestion notification.
    Ecn = "ECN" {
        /// Clears those of TCP.
        tcp_remove: bool = "ecn-tcp-remove",
        /// Sets CWR to 0 or 1.
        tcp_cwr: Option<u8> = "ecn-tcp-cwr",
        /// Sets ECE to 0 or 1.
        tcp_ece: Option<u8> = "ecn-tcp-ece",
        /// Sets the code point of the IP header.
        ip_ect: Option<u8> = "ecn-ip-ect",
    }
    /// Changes the hop limit of IPv6.
    Hl = "HL" {
        /// To this.
        set: Option<u8> = "hl-set",
        /// Less so many.
        dec: Option<u8> = "hl-dec",
        /// More so many.
        inc: Option<u8> = "hl-inc",
    }
    /// Changes the maximum segment size of TCP.
    Tcpmss = "TCPMSS" {
        /// To this.
        set_mss: Option<u16> = "set-mss",
        /// To what the path takes.
        clamp_mss_to_pmtu: bool = "clamp-mss-to-pmtu",
    }
    /// Removes TCP options.
    Tcpoptstrip = "TCPOPTSTRIP" {
        /// By kind, or by name.
        strip_options: Option<List> = "strip-options",
    }
    /// Changes the type of service field.
    Tos = "TOS" {
        /// To this, with a mask if wanted, or a name.
        set_tos: Option<String> = "set-tos",
        /// ANDs.
        and_tos: Option<u8> = "and-tos",
        /// ORs.
        or_tos: Option<u8> = "or-tos",
        /// XORs.
        xor_tos: Option<u8> = "xor-tos",
    }
    /// Changes the time to live of IPv4.
    Ttl = "TTL" {
        /// To this.
        set: Option<u8> = "ttl-set",
        /// Less so many.
        dec: Option<u8> = "ttl-dec",
        /// More so many.
        inc: Option<u8> = "ttl-inc",
    }
}
