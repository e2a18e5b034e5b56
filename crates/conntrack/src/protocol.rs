//! Protocols and address families as conntrack(8) names them, and the kinds of their tuples.

use std::fmt;

use sluicegate_netlink::{Family, Protocol};

/// The protocols that conntrack(8) knows by name.
pub const NAMED: [Protocol; 8] = [
    Protocol::ICMP,
    Protocol::TCP,
    Protocol::UDP,
    Protocol::DCCP,
    Protocol::GRE,
    Protocol::ICMPV6,
    Protocol::SCTP,
    Protocol::UDPLITE,
];

/// Returns the name that conntrack(8) prints and reads, `None` for a protocol that it prints as `unknown`. It
/// differs from that in `/etc/protocols` for `icmpv6`.
#[must_use]
pub const fn name(protocol: Protocol) -> Option<&'static str> {
    Some(match protocol {
        Protocol::ICMP => "icmp",
        Protocol::TCP => "tcp",
        Protocol::UDP => "udp",
        Protocol::DCCP => "dccp",
        Protocol::GRE => "gre",
        Protocol::ICMPV6 => "icmpv6",
        Protocol::SCTP => "sctp",
        Protocol::UDPLITE => "udplite",
        _ => return None,
    })
}

/// Returns the protocol that conntrack(8) knows by this name, whatever its case.
#[must_use]
pub fn from_name(text: &str) -> Option<Protocol> {
    NAMED.into_iter().find(|protocol| name(*protocol).is_some_and(|known| known.eq_ignore_ascii_case(text)))
}

/// Returns true for protocols whose tuples have ports; those of GRE are keys.
#[must_use]
pub const fn has_ports(protocol: Protocol) -> bool {
    matches!(
        protocol,
        Protocol::TCP | Protocol::UDP | Protocol::UDPLITE | Protocol::SCTP | Protocol::DCCP | Protocol::GRE
    )
}

/// Prints a protocol as conntrack(8) does: its name, or its number if it has none.
#[derive(Debug, Clone, Copy)]
pub struct Name(pub Protocol);

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match name(self.0) {
            Some(name) => f.pad(name),
            None => self.0.0.fmt(f),
        }
    }
}

/// Returns the name of a family that conntrack(8) prints.
pub(crate) const fn family_name(family: Family) -> &'static str {
    match family {
        Family::Ipv4 => "ipv4",
        Family::Ipv6 => "ipv6",
    }
}
