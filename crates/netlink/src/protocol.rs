//! IP protocols by number, and the names that `/etc/protocols` gives them.

use std::fmt;
use std::str::FromStr;

/// A protocol on top of IP, by its number (`IPPROTO_*` of `linux/in.h`). Open: any number is a valid
/// protocol.
///
/// It prints and parses as the name in `/etc/protocols`, or as a number if it has none. Some tools spell
/// protocols differently (conntrack `icmpv6`, ipvsadm `TCP`); the crates for these tools do so too.
///
/// ```
/// use sluicegate_netlink::Protocol;
///
/// assert_eq!("sctp".parse(), Ok(Protocol::SCTP));
/// assert_eq!(Protocol(58).to_string(), "ipv6-icmp");
/// assert_eq!(Protocol(200).to_string(), "200");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Protocol(pub u8);

impl Protocol {
    /// `IPPROTO_ICMP`.
    pub const ICMP: Self = Self(1);
    /// `IPPROTO_TCP`.
    pub const TCP: Self = Self(6);
    /// `IPPROTO_UDP`.
    pub const UDP: Self = Self(17);
    /// `IPPROTO_DCCP`.
    pub const DCCP: Self = Self(33);
    /// `IPPROTO_GRE`.
    pub const GRE: Self = Self(47);
    /// `IPPROTO_ESP`.
    pub const ESP: Self = Self(50);
    /// `IPPROTO_AH`.
    pub const AH: Self = Self(51);
    /// `IPPROTO_ICMPV6`.
    pub const ICMPV6: Self = Self(58);
    /// `IPPROTO_SCTP`.
    pub const SCTP: Self = Self(132);
    /// `IPPROTO_UDPLITE`.
    pub const UDPLITE: Self = Self(136);

    /// Returns the protocol's name in `/etc/protocols`, `None` for a number that is not there.
    #[must_use]
    pub fn name(self) -> Option<&'static str> {
        NAMES.iter().find(|(number, ..)| *number == self.0).map(|(_, name, _)| *name)
    }

    /// Returns the protocol that `/etc/protocols` lists under this name or alias. As there, case matters:
    /// `tcp` and `TCP` are names, `Tcp` is not.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        NAMES
            .iter()
            .find(|(_, known, alias)| *known == name || (*alias == name && !alias.is_empty()))
            .map(|(number, ..)| Self(*number))
    }

    /// Returns true for ICMP and ICMPv6, whose messages have a type and a code instead of ports.
    #[must_use]
    pub const fn is_icmp(self) -> bool {
        matches!(self, Self::ICMP | Self::ICMPV6)
    }
}

/// The name in `/etc/protocols`, or the number.
impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.pad(name),
            None => self.0.fmt(f),
        }
    }
}

/// Parses a name or alias of `/etc/protocols`, `icmpv6`, or a decimal number.
impl FromStr for Protocol {
    type Err = UnknownProtocol;

    fn from_str(text: &str) -> Result<Self, UnknownProtocol> {
        if text == "icmpv6" {
            return Ok(Self::ICMPV6);
        }
        Self::from_name(text)
            .or_else(|| text.parse().ok().map(Self))
            .ok_or_else(|| UnknownProtocol(text.to_owned()))
    }
}

/// A word that is not the name of a protocol, nor a number from 0 to 255.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected the name of an IP protocol or a number from 0 to 255, found `{0}`")]
pub struct UnknownProtocol(pub String);

impl fmt::Debug for UnknownProtocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Number, name and alias, as Debian's netbase has them in `/etc/protocols`; the most frequent first.
const NAMES: &[(u8, &str, &str)] = &[
    (6, "tcp", "TCP"),
    (17, "udp", "UDP"),
    (132, "sctp", "SCTP"),
    (1, "icmp", "ICMP"),
    (58, "ipv6-icmp", "IPv6-ICMP"),
    (136, "udplite", "UDPLite"),
    (0, "ip", "IP"),
    (0, "hopopt", "HOPOPT"),
    (2, "igmp", "IGMP"),
    (3, "ggp", "GGP"),
    (4, "ipencap", "IP-ENCAP"),
    (5, "st", "ST"),
    (8, "egp", "EGP"),
    (9, "igp", "IGP"),
    (12, "pup", "PUP"),
    (20, "hmp", "HMP"),
    (22, "xns-idp", "XNS-IDP"),
    (27, "rdp", "RDP"),
    (29, "iso-tp4", "ISO-TP4"),
    (33, "dccp", "DCCP"),
    (36, "xtp", "XTP"),
    (37, "ddp", "DDP"),
    (38, "idpr-cmtp", "IDPR-CMTP"),
    (41, "ipv6", "IPv6"),
    (43, "ipv6-route", "IPv6-Route"),
    (44, "ipv6-frag", "IPv6-Frag"),
    (45, "idrp", "IDRP"),
    (46, "rsvp", "RSVP"),
    (47, "gre", "GRE"),
    (50, "esp", "IPSEC-ESP"),
    (51, "ah", "IPSEC-AH"),
    (57, "skip", "SKIP"),
    (59, "ipv6-nonxt", "IPv6-NoNxt"),
    (60, "ipv6-opts", "IPv6-Opts"),
    (73, "rspf", "RSPF"),
    (73, "rspf", "CPHB"),
    (81, "vmtp", "VMTP"),
    (88, "eigrp", "EIGRP"),
    (89, "ospf", "OSPFIGP"),
    (93, "ax.25", "AX.25"),
    (94, "ipip", "IPIP"),
    (97, "etherip", "ETHERIP"),
    (98, "encap", "ENCAP"),
    (103, "pim", "PIM"),
    (108, "ipcomp", "IPCOMP"),
    (112, "vrrp", "VRRP"),
    (115, "l2tp", "L2TP"),
    (124, "isis", "ISIS"),
    (133, "fc", "FC"),
    (135, "mobility-header", "Mobility-Header"),
    (137, "mpls-in-ip", "MPLS-in-IP"),
    (138, "manet", ""),
    (139, "hip", "HIP"),
    (140, "shim6", "Shim6"),
    (141, "wesp", "WESP"),
    (142, "rohc", "ROHC"),
    (143, "ethernet", "Ethernet"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_parsed_back() {
        for (number, name, alias) in NAMES {
            assert_eq!(name.parse(), Ok(Protocol(*number)));
            assert!(alias.is_empty() || alias.parse() == Ok(Protocol(*number)), "{alias}");
        }
        for number in 0..=255 {
            assert_eq!(Protocol(number).to_string().parse(), Ok(Protocol(number)));
        }
    }

    #[test]
    fn the_error_contains_the_text_that_is_neither_a_name_nor_a_number() {
        for text in ["", "Tcp", "256", "-1", "tcp "] {
            assert_eq!(text.parse::<Protocol>(), Err(UnknownProtocol(text.to_owned())));
        }
    }
}
