//! Names of hosts and services, which only the system can look up.

use std::net::IpAddr;

use crate::Family;

/// Looks up the host and service names in the text of an entry.
///
/// The crate reads numbers and the names of protocols and ICMP messages by itself. Host names and service
/// names need a resolver and `/etc/services`: implement this trait for them, or pass [`Numeric`].
///
/// ```
/// use std::net::IpAddr;
///
/// use sluicegate_ipset::{Family, Names};
///
/// struct WellKnown;
///
/// impl Names for WellKnown {
///     fn host(&self, _: &str, _: Family) -> Option<IpAddr> {
///         None // no name is resolved
///     }
///
///     fn service(&self, name: &str, _: &str) -> Option<u16> {
///         [("ssh", 22), ("http", 80)].iter().find(|(known, _)| *known == name).map(|(_, port)| *port)
///     }
/// }
///
/// assert_eq!(WellKnown.service("ssh", "tcp"), Some(22));
/// ```
pub trait Names {
    /// Returns the first address of a host in this family.
    fn host(&self, name: &str, family: Family) -> Option<IpAddr>;

    /// Returns the port of a service for a protocol, which is given as it was written (`tcp`).
    fn service(&self, name: &str, protocol: &str) -> Option<u16>;
}

/// Refuses all names: hosts and services must be numeric.
///
/// ```
/// use sluicegate_ipset::{Entry, Family, Numeric, SetType};
///
/// let read = |text| Entry::parse(SetType::HashIpPort, Family::Ipv4, text, &Numeric);
/// assert!(read("192.0.2.1,tcp:80").is_ok());
/// assert_eq!(
///     read("192.0.2.1,http").unwrap_err().to_string(),
///     "expected a port or a tcp service, found 'http'"
/// );
/// ```
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
