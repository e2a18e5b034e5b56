//! Ports with their protocol, and ICMP messages that stand in for them.

use std::fmt;

use crate::address::{split_inside, split_range, unbracket};
use crate::{Family, Names, Protocol, Reason, icmp, number};

/// Returns true for the protocols whose ports can be a range.
pub(crate) fn has_ports(protocol: Protocol) -> bool {
    matches!(protocol, Protocol::TCP | Protocol::UDP | Protocol::SCTP | Protocol::UDPLITE)
}

/// Parses a protocol as ipset does: a name or alias of `/etc/protocols`, `icmpv6` in any case, or a number,
/// which may be octal or hexadecimal.
fn parse_protocol(text: &str) -> Result<Protocol, Reason> {
    // The frequent ones first: a restore file has one on every line.
    match text {
        "tcp" => return Ok(Protocol::TCP),
        "udp" => return Ok(Protocol::UDP),
        _ if text.eq_ignore_ascii_case("icmpv6") => return Ok(Protocol::ICMPV6),
        _ => {}
    }
    Protocol::from_name(text)
        .or_else(|| number::parse_u8(text).ok().map(Protocol))
        .ok_or_else(|| Reason::Protocol(text.to_owned()))
}

/// A port of a protocol, or a range of ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Port {
    /// The protocol, never 0 in an [`Entry`](crate::Entry).
    pub protocol: Protocol,
    /// The port. Type and code (`type << 8 | code`) for ICMP and ICMPv6; 0 for all other protocols without
    /// ports.
    pub from: u16,
    /// The other end of a range, which the kernel expands.
    pub to: Option<u16>,
}

impl Port {
    /// Returns a port of TCP.
    #[must_use]
    pub const fn tcp(port: u16) -> Self {
        Self { protocol: Protocol::TCP, from: port, to: None }
    }

    /// Returns a port of UDP.
    #[must_use]
    pub const fn udp(port: u16) -> Self {
        Self { protocol: Protocol::UDP, from: port, to: None }
    }

    /// Returns a port of SCTP.
    #[must_use]
    pub const fn sctp(port: u16) -> Self {
        Self { protocol: Protocol::SCTP, from: port, to: None }
    }

    /// Returns an ICMP or ICMPv6 message, or any protocol without ports (with type and code 0).
    #[must_use]
    pub const fn message(protocol: Protocol, kind: u8, code: u8) -> Self {
        Self { protocol, from: u16::from_be_bytes([kind, code]), to: None }
    }

    /// Reads `port`, `port-port`, `protocol:port`, `protocol:port-port`, `icmp:name`, `icmp:type/code`,
    /// `protocol:0`.
    ///
    /// # Errors
    /// [`Reason::Protocol`], [`Reason::Service`], [`Reason::OutOfRange`] and the other variants about ports.
    pub fn parse(text: &str, family: Family, names: &dyn Names) -> Result<Self, Reason> {
        let Some((written, rest)) = split_inside(text, ':') else {
            let (from, to) = parse_numbers(text, "tcp", names)?;
            return Ok(Self { protocol: Protocol::TCP, from, to });
        };
        let protocol = parse_protocol(written)?;
        match protocol {
            Protocol::ICMP if family != Family::Ipv4 => {
                Err(Reason::IcmpFamily { protocol, family: Family::Ipv4 })
            }
            Protocol::ICMPV6 if family != Family::Ipv6 => {
                Err(Reason::IcmpFamily { protocol, family: Family::Ipv6 })
            }
            Protocol::ICMP | Protocol::ICMPV6 => {
                Ok(Self { protocol, from: icmp::parse(rest, protocol)?, to: None })
            }
            _ if has_ports(protocol) => {
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

/// Reads the element of a `bitmap:port`, whose protocol is only used to look up a service.
pub(crate) fn parse_bare(text: &str, names: &dyn Names) -> Result<(u16, Option<u16>), Reason> {
    let (protocol, rest) = split_inside(text, ':').unwrap_or(("tcp", text));
    match parse_protocol(protocol)? {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Numeric;

    /// The values that ipset 7.17 printed for the same words, on Linux 6.18.
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
            ("Tcp:81", "expected the name or number of an IP protocol, found 'Tcp'"),
            ("gre:1", "protocol gre has no ports: only the pseudo port 0 can be used with it"),
            ("icmp:8", "expected an ICMP message (a name or TYPE/CODE), found '8'"),
            ("icmp:256/0", "expected a number from 0 to 255, found '256'"),
            ("icmpv6:ping", "protocol ipv6-icmp can be used with family inet6 only"),
            ("99999", "expected a number from 0 to 65535, found '99999'"),
            ("5-", "expected a port or a tcp service, found '5-'"),
            (":5", "expected a port or a tcp service, found ':5'"),
            ("tcp:", "expected a port or a tcp service, found 'tcp:'"),
            ("http", "expected a port or a tcp service, found 'http'"),
        ] {
            let read = match Port::parse(text, Family::Ipv4, &Numeric) {
                Ok(port) => port.to_string(),
                Err(reason) => reason.to_string(),
            };
            assert_eq!(read, printed, "{text}");
        }
    }

    #[test]
    fn services_are_looked_up_with_the_protocol_as_written() {
        struct Http;
        impl Names for Http {
            fn host(&self, _: &str, _: Family) -> Option<std::net::IpAddr> {
                None
            }
            fn service(&self, name: &str, protocol: &str) -> Option<u16> {
                (name == "http-alt" && protocol == "tcp").then_some(8080)
            }
        }
        assert_eq!(Port::parse("[http-alt]", Family::Ipv4, &Http), Ok(Port::tcp(8080)));
        assert_eq!(
            Port::parse("tcp:[http-alt]-8082", Family::Ipv4, &Http),
            Ok(Port { to: Some(8082), ..Port::tcp(8080) })
        );
        assert!(Port::parse("udp:[http-alt]", Family::Ipv4, &Http).is_err());
        assert_eq!(parse_bare("tcp:[http-alt]", &Http), Ok((8080, None)));
        assert!(parse_bare("sctp:5", &Http).is_err());
    }
}
