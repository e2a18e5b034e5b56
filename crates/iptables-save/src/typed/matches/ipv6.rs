//! Matches of the extension headers of IPv6.

use crate::typed::{List, Not, Span, typed};

typed! {
    /// The destination options header of IPv6.
    Dst = "dst" {
        /// Length of the header in bytes.
        len: Option<Not<u32>> = "dst-len",
        /// Options, `type:length`.
        opts: Option<List> = "dst-opts",
    }
    /// The fragment header of IPv6.
    Frag = "frag" {
        /// Identification.
        fragid: Option<Not<Span<u32>>> = "fragid",
        /// Length of the header.
        fraglen: Option<Not<u32>> = "fraglen",
        /// The reserved bits are zero.
        fragres: bool = "fragres",
        /// The first fragment.
        fragfirst: bool = "fragfirst",
        /// A fragment that others follow.
        fragmore: bool = "fragmore",
        /// The last fragment.
        fraglast: bool = "fraglast",
    }
    /// The hop-by-hop options header of IPv6.
    Hbh = "hbh" {
        /// Length of the header in bytes.
        len: Option<Not<u32>> = "hbh-len",
        /// Options, `type:length`.
        opts: Option<List> = "hbh-opts",
    }
    /// The headers of an IPv6 packet.
    Ipv6header = "ipv6header" {
        /// `hop-by-hop`, `ipv6-opts`, `ipv6-route`, `ipv6-frag`, `ah`, `esp`, `ipv6-nonxt`, `protocol`.
        header: Not<List> = "header",
        /// There may be others.
        soft: bool = "soft",
    }
    /// The type of a Mobility Header.
    Mh = "mh" {
        /// Name or number, or a range.
        mh_type: Option<Not<String>> = "mh-type",
    }
    /// The routing header of IPv6.
    Rt = "rt" {
        /// Its type.
        rt_type: Option<Not<u32>> = "rt-type",
        /// Segments left.
        segsleft: Option<Not<Span<u32>>> = "rt-segsleft",
        /// Length of the header.
        len: Option<Not<u32>> = "rt-len",
        /// The reserved field of type 0 counts.
        zero_res: bool = "rt-0-res",
        /// Addresses of type 0.
        zero_addrs: Option<List> = "rt-0-addrs",
        /// The list of addresses is a beginning.
        zero_not_strict: bool = "rt-0-not-strict",
    }
    /// The segment routing header of IPv6.
    Srh = "srh" {
        /// Next header.
        next_hdr: Option<Not<u8>> = "srh-next-hdr",
        /// Length of the header.
        hdr_len_eq: Option<Not<u8>> = "srh-hdr-len-eq",
        /// Length above.
        hdr_len_gt: Option<Not<u8>> = "srh-hdr-len-gt",
        /// Length below.
        hdr_len_lt: Option<Not<u8>> = "srh-hdr-len-lt",
        /// Segments left.
        segs_left_eq: Option<Not<u8>> = "srh-segs-left-eq",
        /// Segments left, above.
        segs_left_gt: Option<Not<u8>> = "srh-segs-left-gt",
        /// Segments left, below.
        segs_left_lt: Option<Not<u8>> = "srh-segs-left-lt",
        /// Last entry.
        last_entry_eq: Option<Not<u8>> = "srh-last-entry-eq",
        /// Last entry, above.
        last_entry_gt: Option<Not<u8>> = "srh-last-entry-gt",
        /// Last entry, below.
        last_entry_lt: Option<Not<u8>> = "srh-last-entry-lt",
        /// Tag.
        tag: Option<Not<u16>> = "srh-tag",
        /// Previous segment.
        psid: Option<Not<String>> = "srh-psid",
        /// Next segment.
        nsid: Option<Not<String>> = "srh-nsid",
        /// Last segment.
        lsid: Option<Not<String>> = "srh-lsid",
    }
}
