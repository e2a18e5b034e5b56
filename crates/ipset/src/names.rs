//! Names in place of numbers: hosts and services, which only the system can look up.

use std::net::IpAddr;

use crate::Family;

/// Looks up what the text of an entry may name.
///
/// The crate reads numbers and the names of protocols and ICMP messages by itself. Host names and service names need
/// a resolver and `/etc/services`: whoever wants them implements this, everybody else passes [`Numeric`].
pub trait Names {
    /// The first address of a host in this family.
    fn host(&self, name: &str, family: Family) -> Option<IpAddr>;

    /// The port of a service under a protocol as it was written (`tcp`).
    fn service(&self, name: &str, protocol: &str) -> Option<u16>;
}

/// Knows no names: entries must be numbers.
#[derive(Debug, Clone, Copy, Default)]
pub struct Numeric;

impl Names for Numeric {
    fn host(&self, _: &str, _: Family) -> Option<IpAddr> {
        None
    }

    fn service(&self, _: &str, _: &str) -> Option<u16> {
        None
    }
}
