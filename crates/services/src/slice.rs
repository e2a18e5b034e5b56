//! An EndpointSlice as a proxy needs it.

use std::net::IpAddr;
use std::num::NonZeroU16;
use std::sync::Arc;
use std::time::SystemTime;

use crate::address::special;
use crate::{Error, Family, Invalid, Protocol, ServiceName};

/// `namespace` and `name` of an EndpointSlice.
///
/// ```
/// use sluicegate_services::SliceName;
///
/// assert_eq!(SliceName::new("demo", "web-1").to_string(), "demo/web-1");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SliceName {
    /// The namespace, which is its service's too.
    pub namespace: Arc<str>,
    /// The name: a DNS subdomain, never part of a rule.
    pub name: Arc<str>,
}

impl std::fmt::Display for SliceName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // They come from an object whose names nobody may have checked.
        write!(f, "{}/{}", self.namespace.escape_debug(), self.name.escape_debug())
    }
}

/// The endpoints that one slice contributes to a service.
///
/// ```
/// use sluicegate_services::{Family, ServiceName, Slice, SliceEndpoint, SlicePort};
///
/// let endpoint = SliceEndpoint::new("10.244.1.7".parse()?);
/// let ports = [SlicePort::tcp("http", 8080)?];
/// // An address of the other family is an error.
/// assert!(Slice::new(ServiceName::new("demo", "web")?, Family::Ipv6, ports, [endpoint]).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slice {
    /// The service that the endpoints belong to.
    pub service: ServiceName,
    /// The family of all addresses.
    pub family: Family,
    /// The ports that every endpoint has.
    pub ports: Box<[SlicePort]>,
    /// The endpoints.
    pub endpoints: Box<[SliceEndpoint]>,
    /// When what made the controller write this slice happened: its annotation
    /// `endpoints.kubernetes.io/last-change-trigger-time`, where it has a readable one.
    pub last_change: Option<SystemTime>,
}

/// A port of every endpoint of a slice; `name` and `protocol` say which Service port it serves.
///
/// ```
/// use sluicegate_services::SlicePort;
///
/// // Serves the port of the Service that has this name, whatever its number there.
/// let port = SlicePort::tcp("http", 8080)?;
/// assert_eq!((&*port.name, u16::from(port.port)), ("http", 8080));
/// # Ok::<(), sluicegate_services::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlicePort {
    /// The Service port's name.
    pub name: Arc<str>,
    /// The Service port's protocol.
    pub protocol: Protocol,
    /// The port at the endpoint.
    pub port: NonZeroU16,
}

/// One address of a slice, with its conditions, node and hints.
///
/// ```
/// use sluicegate_services::SliceEndpoint;
///
/// let mut endpoint = SliceEndpoint::new("10.244.1.7".parse()?).on_node("node-1");
/// // It is about to end, and answers until it does.
/// (endpoint.ready, endpoint.terminating) = (false, true);
/// assert!(endpoint.serving);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SliceEndpoint {
    /// The address.
    pub ip: IpAddr,
    /// The node that it runs on.
    pub node: Option<Arc<str>>,
    /// `ready`, which means true when absent.
    pub ready: bool,
    /// `serving`, which means true when absent.
    pub serving: bool,
    /// `terminating`, which means false when absent.
    pub terminating: bool,
    /// The clients that should use it; `None` without hints.
    pub hints: Option<Arc<Hints>>,
}

/// The zones and nodes whose clients should use an endpoint. Empty lists mean that there is no hint of that
/// level.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hints {
    /// `hints.forZones`.
    pub zones: Box<[Box<str>]>,
    /// `hints.forNodes`.
    pub nodes: Box<[Box<str>]>,
}

impl SliceName {
    /// Creates a name from its two parts. A slice is only named in maps and messages, so any text will do.
    #[must_use]
    pub fn new(namespace: &str, name: &str) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }
}

impl Slice {
    /// Creates a slice of `service`.
    ///
    /// ```
    /// use sluicegate_services::{Family, ServiceName, Slice, SliceEndpoint, SlicePort};
    ///
    /// let web = ServiceName::new("demo", "web")?;
    /// let endpoint = SliceEndpoint::new("10.244.1.7".parse()?).on_node("node-1");
    /// let slice = Slice::new(web, Family::Ipv4, [SlicePort::tcp("http", 8080)?], [endpoint])?;
    /// assert!(slice.endpoints[0].ready);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Invalid`] when an address is not of `family`, or cannot be an endpoint's (unspecified,
    /// loopback, link-local, multicast, broadcast, IPv4 mapped into IPv6).
    pub fn new(
        service: ServiceName,
        family: Family,
        ports: impl IntoIterator<Item = SlicePort>,
        endpoints: impl IntoIterator<Item = SliceEndpoint>,
    ) -> Result<Self, Error> {
        let endpoints: Box<[SliceEndpoint]> = endpoints.into_iter().collect();
        for (index, endpoint) in endpoints.iter().enumerate() {
            check_address(endpoint.ip, family).map_err(|reason| Invalid {
                object: format!("EndpointSlice of Service {service}"),
                field: format!("endpoints[{index}].ip"),
                reason: reason.to_string(),
            })?;
        }
        Ok(Self { service, family, ports: ports.into_iter().collect(), endpoints, last_change: None })
    }
}

impl SlicePort {
    /// Creates a port, for the port of the Service that has this name and protocol.
    ///
    /// # Errors
    /// [`Error::PortNumber`] when `number` is 0.
    pub fn new(protocol: Protocol, name: &str, number: u16) -> Result<Self, Error> {
        let port = NonZeroU16::new(number).ok_or(Error::PortNumber)?;
        Ok(Self { name: name.into(), protocol, port })
    }

    /// Creates a TCP port.
    ///
    /// # Errors
    /// As [`SlicePort::new`].
    pub fn tcp(name: &str, number: u16) -> Result<Self, Error> {
        Self::new(Protocol::Tcp, name, number)
    }

    /// Creates a UDP port.
    ///
    /// # Errors
    /// As [`SlicePort::new`].
    pub fn udp(name: &str, number: u16) -> Result<Self, Error> {
        Self::new(Protocol::Udp, name, number)
    }
}

impl SliceEndpoint {
    /// Creates a ready endpoint, on no known node, for clients anywhere.
    #[must_use]
    pub const fn new(ip: IpAddr) -> Self {
        Self { ip, node: None, ready: true, serving: true, terminating: false, hints: None }
    }

    /// Sets the node that it runs on.
    #[must_use]
    pub fn on_node(self, node: impl Into<Arc<str>>) -> Self {
        Self { node: Some(node.into()), ..self }
    }
}

/// What is wrong with the address of an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum WrongAddress {
    #[error("expected an {family} address, as the slice has, found {ip}")]
    Family { family: Family, ip: IpAddr },
    #[error("expected a unicast address that other machines can have, found {ip} ({kind})")]
    Special { ip: IpAddr, kind: &'static str },
}

/// Checks the address of an endpoint in a slice of `family`.
pub(crate) fn check_address(ip: IpAddr, family: Family) -> Result<(), WrongAddress> {
    if Family::of(ip) != family {
        return Err(WrongAddress::Family { family, ip });
    }
    special(ip).map_or(Ok(()), |kind| Err(WrongAddress::Special { ip, kind }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_another_kind_are_refused() {
        let unicast = |address: &str, kind| {
            format!("expected a unicast address that other machines can have, found {address} ({kind})")
        };
        let of_family =
            |address, family| format!("expected an {family} address, as the slice has, found {address}");
        let cases = [
            (Family::Ipv4, "fd00::1", of_family("fd00::1", "IPv4")),
            (Family::Ipv6, "10.0.0.2", of_family("10.0.0.2", "IPv6")),
            (Family::Ipv4, "0.0.0.0", unicast("0.0.0.0", "unspecified")),
            (Family::Ipv4, "224.0.0.1", unicast("224.0.0.1", "multicast")),
            (Family::Ipv4, "127.0.0.1", unicast("127.0.0.1", "loopback")),
            (Family::Ipv4, "127.255.255.254", unicast("127.255.255.254", "loopback")),
            (Family::Ipv4, "169.254.169.254", unicast("169.254.169.254", "link-local")),
            (Family::Ipv4, "255.255.255.255", unicast("255.255.255.255", "broadcast")),
            (Family::Ipv6, "::", unicast("::", "unspecified")),
            (Family::Ipv6, "::1", unicast("::1", "loopback")),
            (Family::Ipv6, "fe80::1", unicast("fe80::1", "link-local")),
            (Family::Ipv6, "febf::1", unicast("febf::1", "link-local")),
            (Family::Ipv6, "ff02::1", unicast("ff02::1", "multicast")),
            (Family::Ipv6, "::ffff:127.0.0.1", unicast("::ffff:127.0.0.1", "IPv4 mapped into IPv6")),
        ];
        for (family, address, reason) in cases {
            let web = ServiceName::new("demo", "web").unwrap();
            let good = if family == Family::Ipv4 { "10.0.0.1" } else { "fd00::2" };
            let endpoints = [good, address].map(|text| SliceEndpoint::new(text.parse().unwrap()));
            let error = Slice::new(web, family, [], endpoints).unwrap_err().to_string();
            assert_eq!(error, format!("EndpointSlice of Service demo/web: endpoints[1].ip: {reason}"));
        }
    }
}
