//! Ports with their protocol, and ICMP messages that stand in for them.

use std::fmt;

use crate::address::{split_inside, split_range, unbracket};
use crate::{Family, Names, Reason, icmp, number};

/// An IP protocol number (`IPPROTO_*` of `linux/in.h`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Protocol(pub u8);

impl Protocol {
    /// `IPPROTO_ICMP`: what stands for the port is type and code.
    pub const ICMP: Self = Self(1);
    /// `IPPROTO_TCP`: what a port without a protocol means.
    pub const TCP: Self = Self(6);
    /// `IPPROTO_UDP`.
    pub const UDP: Self = Self(17);
    /// `IPPROTO_ICMPV6`: what stands for the port is type and code.
    pub const ICMPV6: Self = Self(58);
    /// `IPPROTO_SCTP`.
    pub const SCTP: Self = Self(132);
    /// `IPPROTO_UDPLITE`.
    pub const UDPLITE: Self = Self(136);

    /// True for the protocols whose ports can be a range.
    #[must_use]
    pub fn has_ports(self) -> bool {
        matches!(self, Self::TCP | Self::UDP | Self::SCTP | Self::UDPLITE)
    }

    /// The name that `ipset` prints.
    #[must_use]
    pub fn name(self) -> Option<&'static str> {
        PROTOCOLS.iter().find(|(number, ..)| *number == self.0).map(|(_, name, _)| *name)
    }

    /// Reads a name or a number.
    ///
    /// # Errors
    /// [`Reason::Protocol`].
    pub fn parse(text: &str) -> Result<Self, Reason> {
        // The common ones first: a restore file has one on every line.
        match text {
            "tcp" => return Ok(Self::TCP),
            "udp" => return Ok(Self::UDP),
            _ if text.eq_ignore_ascii_case("icmpv6") => return Ok(Self::ICMPV6),
            _ => {}
        }
        PROTOCOLS
            .iter()
            .find(|(_, name, alias)| *name == text || (*alias == text && !alias.is_empty()))
            .map(|(number, ..)| Self(*number))
            .or_else(|| number::parse_u8(text).ok().map(Self))
            .ok_or_else(|| Reason::Protocol(text.to_owned()))
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "{}", self.0),
        }
    }
}

/// A port of a protocol, or a range of ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Port {
    /// The protocol, never 0 in an [`Entry`](crate::Entry).
    pub protocol: Protocol,
    /// The port. Type and code (`type << 8 | code`) for ICMP and ICMPv6; 0 for all other protocols without ports.
    pub from: u16,
    /// The other end of a range, which the kernel expands.
    pub to: Option<u16>,
}

impl Port {
    /// A port of TCP.
    #[must_use]
    pub const fn tcp(port: u16) -> Self {
        Self { protocol: Protocol::TCP, from: port, to: None }
    }

    /// A port of UDP.
    #[must_use]
    pub const fn udp(port: u16) -> Self {
        Self { protocol: Protocol::UDP, from: port, to: None }
    }

    /// A port of SCTP.
    #[must_use]
    pub const fn sctp(port: u16) -> Self {
        Self { protocol: Protocol::SCTP, from: port, to: None }
    }

    /// An ICMP or ICMPv6 message, or any protocol without ports (with type and code 0).
    #[must_use]
    pub const fn message(protocol: Protocol, kind: u8, code: u8) -> Self {
        Self { protocol, from: u16::from_be_bytes([kind, code]), to: None }
    }

    /// Reads `port`, `port-port`, `protocol:port`, `protocol:port-port`, `icmp:name`, `icmp:type/code`, `protocol:0`.
    ///
    /// # Errors
    /// Everything that can be wrong with a port; see the variants of [`Reason`].
    pub fn parse(text: &str, family: Family, names: &dyn Names) -> Result<Self, Reason> {
        let Some((written, rest)) = split_inside(text, ':') else {
            let (from, to) = parse_numbers(text, "tcp", names)?;
            return Ok(Self { protocol: Protocol::TCP, from, to });
        };
        let protocol = Protocol::parse(written)?;
        match protocol {
            Protocol::ICMP if family != Family::Inet => {
                Err(Reason::IcmpFamily { protocol, family: Family::Inet })
            }
            Protocol::ICMPV6 if family != Family::Inet6 => {
                Err(Reason::IcmpFamily { protocol, family: Family::Inet6 })
            }
            Protocol::ICMP | Protocol::ICMPV6 => {
                Ok(Self { protocol, from: icmp::parse(rest, protocol)?, to: None })
            }
            _ if protocol.has_ports() => {
                let (from, to) = parse_numbers(rest, written, names)?;
                Ok(Self { protocol, from, to })
            }
            _ if rest == "0" => Ok(Self { protocol, from: 0, to: None }),
            _ => Err(Reason::PseudoPort(protocol)),
        }
    }
}

impl fmt::Display for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.protocol)?;
        let [kind, code] = self.from.to_be_bytes();
        match (icmp::name(self.protocol, self.from), self.protocol) {
            (Some(name), _) => f.write_str(name),
            (None, Protocol::ICMP | Protocol::ICMPV6) => write!(f, "{kind}/{code}"),
            _ => write_numbers(f, self.from, self.to),
        }
    }
}

/// Reads the element of a `bitmap:port`: a protocol only serves to look a service up.
pub(crate) fn parse_bare(text: &str, names: &dyn Names) -> Result<(u16, Option<u16>), Reason> {
    let (protocol, rest) = split_inside(text, ':').unwrap_or(("tcp", text));
    match Protocol::parse(protocol)? {
        Protocol::TCP | Protocol::UDP => parse_numbers(rest, protocol, names),
        _ => Err(Reason::TcpOrUdp(text.to_owned())),
    }
}

pub(crate) fn write_numbers(f: &mut dyn fmt::Write, from: u16, to: Option<u16>) -> fmt::Result {
    write!(f, "{from}")?;
    match to {
        Some(to) => write!(f, "-{to}"),
        None => Ok(()),
    }
}

fn parse_numbers(text: &str, protocol: &str, names: &dyn Names) -> Result<(u16, Option<u16>), Reason> {
    let one = |text: &str| parse_one(text, protocol, names);
    match split_range(text)? {
        Some((from, to)) => Ok((one(from)?, Some(one(to)?))),
        None => Ok((one(text)?, None)),
    }
}

fn parse_one(text: &str, protocol: &str, names: &dyn Names) -> Result<u16, Reason> {
    match number::parse_u16(text) {
        Ok(port) => Ok(port),
        Err(out @ Reason::OutOfRange { .. }) => Err(out),
        Err(_) => names
            .service(unbracket(text)?, protocol)
            .ok_or_else(|| Reason::Service { text: text.to_owned(), protocol: protocol.to_owned() }),
    }
}

/// Number, name and second name, as Debian's netbase has them in `/etc/protocols`.
const PROTOCOLS: &[(u8, &str, &str)] = &[
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
    use crate::Numeric;

    /// What ipset 7.17 printed for the same words, on Linux 6.18.
    #[test]
    fn ports_are_read_and_printed_as_ipset_does() {
        for (text, printed) in [
            ("80", "tcp:80"),
            ("0x50", "tcp:80"),
            ("010", "tcp:8"),
            ("80-82", "tcp:80-82"),
            ("6:80", "tcp:80"),
            ("TCP:81", "tcp:81"),
            ("udp:53", "udp:53"),
            ("udplite:5", "udplite:5"),
            ("sctp:5-7", "sctp:5-7"),
            ("icmp:ping", "icmp:echo-request"),
            ("icmp:8/0", "icmp:echo-request"),
            ("icmp:200/9", "icmp:200/9"),
            ("gre:0", "gre:0"),
            ("200:0", "200:0"),
            ("vrrp:0", "vrrp:0"),
            ("Tcp:81", "'Tcp' is not a protocol"),
            ("gre:1", "protocol gre has no ports: only the pseudo port 0 can be used with it"),
            ("icmp:8", "'8' is not an ICMP message: a name or TYPE/CODE is needed"),
            ("icmp:256/0", "'256' is out of range 0-255"),
            ("icmpv6:ping", "protocol ipv6-icmp can be used with family inet6 only"),
            ("99999", "'99999' is out of range 0-65535"),
            ("5-", "'5-' is neither a number nor a tcp service"),
            (":5", "':5' is neither a number nor a tcp service"),
            ("tcp:", "'tcp:' is neither a number nor a tcp service"),
            ("http", "'http' is neither a number nor a tcp service"),
        ] {
            let read = match Port::parse(text, Family::Inet, &Numeric) {
                Ok(port) => port.to_string(),
                Err(reason) => reason.to_string(),
            };
            assert_eq!(read, printed, "{text}");
        }
    }

    #[test]
    fn services_are_asked_with_the_protocol_as_written() {
        struct Http;
        impl Names for Http {
            fn host(&self, _: &str, _: Family) -> Option<std::net::IpAddr> {
                None
            }
            fn service(&self, name: &str, protocol: &str) -> Option<u16> {
                (name == "http-alt" && protocol == "tcp").then_some(8080)
            }
        }
        assert_eq!(Port::parse("[http-alt]", Family::Inet, &Http), Ok(Port::tcp(8080)));
        assert_eq!(
            Port::parse("tcp:[http-alt]-8082", Family::Inet, &Http),
            Ok(Port { to: Some(8082), ..Port::tcp(8080) })
        );
        assert!(Port::parse("udp:[http-alt]", Family::Inet, &Http).is_err());
        assert_eq!(parse_bare("tcp:[http-alt]", &Http), Ok((8080, None)));
        assert!(parse_bare("sctp:5", &Http).is_err());
    }
}
