//! Names that stand for numbers: protocols, services, ICMP types, priorities, classes of differentiated
//! services.

mod icmp;
mod protocols;
mod services;

pub(crate) use icmp::{ICMP, ICMP6, MH};
use protocols::PROTOCOLS;
pub(crate) use protocols::is_exact;
use services::SERVICES;

use crate::Family;

/// Returns the number of a protocol by name.
pub(crate) fn protocol_number(name: &str) -> Option<u8> {
    PROTOCOLS.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, number)| *number)
}

/// Returns the name that iptables-save prints for a protocol; `None` for one that it prints as a number.
///
/// ```
/// use sluicegate_iptables_save::{protocol_name, protocol_number};
/// assert_eq!((protocol_name(58), protocol_number("icmpv6")), (Some("ipv6-icmp"), Some(58)));
/// ```
#[must_use]
pub fn protocol_name(number: u8) -> Option<&'static str> {
    PROTOCOLS.iter().find(|(_, known)| *known == number).map(|(name, _)| *name)
}

/// Returns the types of ICMP, or ICMPv6, that have a name: the name, the type, and the code if it is of one code
/// only. Several names of one type stand side by side.
#[must_use]
pub fn icmp_types(family: Family) -> &'static [(&'static str, u8, Option<u8>)] {
    if family == Family::Ipv4 { ICMP } else { ICMP6 }
}

/// Returns the port of a service by name.
pub(crate) fn service_port(name: &str) -> Option<u16> {
    service(name).map(|(_, port, _)| *port)
}

/// Returns whether a service is known for a protocol.
pub(crate) fn service_has(name: &str, protocol: u8) -> bool {
    service(name).is_some_and(|(.., protocols)| protocols.contains(&protocol))
}

fn service(name: &str) -> Option<&'static (&'static str, u16, &'static [u8])> {
    let at = SERVICES.binary_search_by(|(known, ..)| (*known).cmp(name)).ok()?;
    SERVICES.get(at)
}

/// Classes of differentiated services and their code points (RFC 2474, 2597, 3246).
pub(crate) const DSCP_CLASSES: &[(&str, u8)] = &[
    ("CS0", 0x00),
    ("CS1", 0x08),
    ("CS2", 0x10),
    ("CS3", 0x18),
    ("CS4", 0x20),
    ("CS5", 0x28),
    ("CS6", 0x30),
    ("CS7", 0x38),
    ("BE", 0x00),
    ("AF11", 0x0a),
    ("AF12", 0x0c),
    ("AF13", 0x0e),
    ("AF21", 0x12),
    ("AF22", 0x14),
    ("AF23", 0x16),
    ("AF31", 0x1a),
    ("AF32", 0x1c),
    ("AF33", 0x1e),
    ("AF41", 0x22),
    ("AF42", 0x24),
    ("AF43", 0x26),
    ("EF", 0x2e),
];

/// Types of service by name (RFC 1349).
pub(crate) const TOS: &[(&str, u8)] = &[
    ("Minimize-Delay", 0x10),
    ("Maximize-Throughput", 0x08),
    ("Maximize-Reliability", 0x04),
    ("Minimize-Cost", 0x02),
    ("Normal-Service", 0x00),
];

/// Priorities of syslog(3) by name.
pub(crate) const LOG_LEVELS: &[(&str, u8)] = &[
    ("emerg", 0),
    ("panic", 0),
    ("alert", 1),
    ("crit", 2),
    ("error", 3),
    ("warning", 4),
    ("notice", 5),
    ("info", 6),
    ("debug", 7),
];

/// TCP options by name, with their kinds (RFC 9293, 7323, 2018, 2385).
pub(crate) const TCP_OPTIONS: &[(&str, u8)] =
    &[("mss", 2), ("wscale", 3), ("sack-permitted", 4), ("sack", 5), ("timestamp", 8), ("md5", 19)];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_agree() {
        assert_eq!(protocol_number("TCP"), Some(6));
        assert_eq!(protocol_name(132), Some("sctp"));
        assert_eq!(service_port("https"), Some(443));
        assert_eq!(service_port("no-such"), None);
        assert!(service_has("http", 6) && !service_has("http", 17));
        assert!(SERVICES.windows(2).all(|pair| pair[0].0 < pair[1].0));
    }
}
