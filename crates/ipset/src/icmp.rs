//! Names of ICMP and ICMPv6 messages (RFC 792, RFC 4443, RFC 4861), as `ipset help hash:ip,port` lists them.

use crate::address::split_inside;
use crate::{Protocol, Reason, number};

/// Returns the name that `ipset` prints for a type and code.
pub(crate) fn name(protocol: Protocol, message: u16) -> Option<&'static str> {
    table(protocol).iter().find(|(_, number)| *number == message).map(|(name, _)| *name)
}

/// Reads a name or the start of one, or `type/code`.
pub(crate) fn parse(text: &str, protocol: Protocol) -> Result<u16, Reason> {
    let starts = |name: &str| name.get(..text.len()).is_some_and(|start| start.eq_ignore_ascii_case(text));
    if let Some((_, number)) = table(protocol).iter().find(|(name, _)| starts(name)) {
        return Ok(*number);
    }
    let (kind, code) = split_inside(text, '/').ok_or_else(|| Reason::Icmp {
        text: text.to_owned(),
        name: if protocol == Protocol::ICMP { "ICMP" } else { "ICMPv6" },
    })?;
    Ok(message(number::parse_u8(kind)?, number::parse_u8(code)?))
}

fn table(protocol: Protocol) -> &'static [(&'static str, u16)] {
    match protocol {
        Protocol::ICMP => ICMP,
        Protocol::ICMPV6 => ICMPV6,
        _ => &[],
    }
}

const fn message(kind: u8, code: u8) -> u16 {
    u16::from_be_bytes([kind, code])
}

/// Names and numbers of ICMP messages. Of two names for a message the first is printed.
const ICMP: &[(&str, u16)] = &[
    ("echo-reply", message(0, 0)),
    ("pong", message(0, 0)),
    ("network-unreachable", message(3, 0)),
    ("host-unreachable", message(3, 1)),
    ("protocol-unreachable", message(3, 2)),
    ("port-unreachable", message(3, 3)),
    ("fragmentation-needed", message(3, 4)),
    ("source-route-failed", message(3, 5)),
    ("network-unknown", message(3, 6)),
    ("host-unknown", message(3, 7)),
    ("network-prohibited", message(3, 9)),
    ("host-prohibited", message(3, 10)),
    ("TOS-network-unreachable", message(3, 11)),
    ("TOS-host-unreachable", message(3, 12)),
    ("communication-prohibited", message(3, 13)),
    ("host-precedence-violation", message(3, 14)),
    ("precedence-cutoff", message(3, 15)),
    ("source-quench", message(4, 0)),
    ("network-redirect", message(5, 0)),
    ("host-redirect", message(5, 1)),
    ("TOS-network-redirect", message(5, 2)),
    ("TOS-host-redirect", message(5, 3)),
    ("echo-request", message(8, 0)),
    ("ping", message(8, 0)),
    ("router-advertisement", message(9, 0)),
    ("router-solicitation", message(10, 0)),
    ("ttl-zero-during-transit", message(11, 0)),
    ("ttl-zero-during-reassembly", message(11, 1)),
    ("ip-header-bad", message(12, 0)),
    ("required-option-missing", message(12, 1)),
    ("timestamp-request", message(13, 0)),
    ("timestamp-reply", message(14, 0)),
    ("address-mask-request", message(17, 0)),
    ("address-mask-reply", message(18, 0)),
];

const ICMPV6: &[(&str, u16)] = &[
    ("no-route", message(1, 0)),
    ("communication-prohibited", message(1, 1)),
    ("address-unreachable", message(1, 3)),
    ("port-unreachable", message(1, 4)),
    ("packet-too-big", message(2, 0)),
    ("ttl-zero-during-transit", message(3, 0)),
    ("ttl-zero-during-reassembly", message(3, 1)),
    ("bad-header", message(4, 0)),
    ("unknown-header-type", message(4, 1)),
    ("unknown-option", message(4, 2)),
    ("echo-request", message(128, 0)),
    ("ping", message(128, 0)),
    ("echo-reply", message(129, 0)),
    ("pong", message(129, 0)),
    ("router-solicitation", message(133, 0)),
    ("router-advertisement", message(134, 0)),
    ("neighbour-solicitation", message(135, 0)),
    ("neigbour-solicitation", message(135, 0)),
    ("neighbour-advertisement", message(136, 0)),
    ("neigbour-advertisement", message(136, 0)),
    ("redirect", message(137, 0)),
];
