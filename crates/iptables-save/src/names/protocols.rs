//! Names of protocols and services, as Debian 12 ships them in /etc/protocols and /etc/services (netbase
//! 6.4), which follow the registries of IANA; and the names that iptables knows without those files.

/// Returns whether a name of a protocol is written as in /etc/protocols, which has most a second time in capitals:
/// of the words of the tool `-p` alone is made small before it is looked up there.
pub(crate) fn is_exact(word: &str) -> bool {
    let small = word.to_ascii_lowercase();
    if small == word {
        return true;
    }
    match SPELT.iter().find(|(name, _)| *name == small) {
        Some((_, spelling)) => spelling.contains(&word),
        None => word == word.to_ascii_uppercase(),
    }
}

/// Names that have another spelling than capitals, or none.
const SPELT: &[(&str, &[&str])] = &[
    ("ipencap", &[]),
    ("ipv6", &["IPv6"]),
    ("ipv6-route", &["IPv6-Route"]),
    ("ipv6-frag", &["IPv6-Frag"]),
    ("esp", &[]),
    ("ah", &[]),
    ("ipv6-icmp", &["IPv6-ICMP"]),
    ("icmpv6", &[]),
    ("ipv6-nonxt", &["IPv6-NoNxt"]),
    ("ipv6-opts", &["IPv6-Opts"]),
    ("ospf", &[]),
    ("mobility-header", &["Mobility-Header"]),
    ("mh", &[]),
    ("ipv6-mh", &[]),
    ("udplite", &["UDPLite"]),
    ("mpls-in-ip", &["MPLS-in-IP"]),
    ("manet", &[]),
    ("shim6", &["Shim6"]),
    ("ethernet", &["Ethernet"]),
];

/// Protocol names and numbers; the first name of a number is the one that iptables-save prints.
pub(crate) const PROTOCOLS: &[(&str, u8)] = &[
    ("icmp", 1),
    ("igmp", 2),
    ("ggp", 3),
    ("ipencap", 4),
    ("ip-encap", 4),
    ("st", 5),
    ("tcp", 6),
    ("egp", 8),
    ("igp", 9),
    ("pup", 12),
    ("udp", 17),
    ("hmp", 20),
    ("xns-idp", 22),
    ("rdp", 27),
    ("iso-tp4", 29),
    ("dccp", 33),
    ("xtp", 36),
    ("ddp", 37),
    ("idpr-cmtp", 38),
    ("ipv6", 41),
    ("ipv6-route", 43),
    ("ipv6-frag", 44),
    ("idrp", 45),
    ("rsvp", 46),
    ("gre", 47),
    ("esp", 50),
    ("ipsec-esp", 50),
    ("ah", 51),
    ("ipsec-ah", 51),
    ("skip", 57),
    ("ipv6-icmp", 58),
    ("ipv6-nonxt", 59),
    ("ipv6-opts", 60),
    ("rspf", 73),
    ("cphb", 73),
    ("vmtp", 81),
    ("eigrp", 88),
    ("ospf", 89),
    ("ospfigp", 89),
    ("ax.25", 93),
    ("ipip", 94),
    ("etherip", 97),
    ("encap", 98),
    ("pim", 103),
    ("ipcomp", 108),
    ("vrrp", 112),
    ("l2tp", 115),
    ("isis", 124),
    ("sctp", 132),
    ("fc", 133),
    ("mobility-header", 135),
    ("udplite", 136),
    ("mpls-in-ip", 137),
    ("manet", 138),
    ("hip", 139),
    ("shim6", 140),
    ("wesp", 141),
    ("rohc", 142),
    ("ethernet", 143),
    ("icmpv6", 58),
    ("mh", 135),
    ("ipv6-mh", 135),
];
