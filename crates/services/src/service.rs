//! A Service as a proxy needs it.

use std::collections::HashSet;
use std::net::IpAddr;
use std::num::NonZeroU16;
use std::sync::Arc;
use std::time::SystemTime;

use ipnet::IpNet;

use crate::name::is_label;
use crate::{Error, Family, Invalid, Protocol, Scheduler};

/// The configuration of one Service: all ports, both families.
///
/// ```
/// use sluicegate_services::{Port, Service};
///
/// let mut service = Service::new(["10.96.0.10".parse()?], [Port::tcp("http", 80)?])?;
/// service.affinity_seconds = Some(10_800); // sessionAffinity: ClientIP
/// let service = service.with_external_ips(["203.0.113.7".parse()?]);
/// assert_eq!(service.external_ips.len(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Service {
    /// The cluster IP of each family, IPv4 first.
    pub cluster_ips: [Option<IpAddr>; 2],
    /// The ports, in the manifest's order.
    pub ports: Box<[Port]>,
    /// `spec.externalIPs`, both families.
    pub external_ips: Box<[IpAddr]>,
    /// Those of `spec.externalIPs` that are left out, because the operator forbids them
    /// ([`Cluster::forbid_external_ips`](crate::Cluster::forbid_external_ips)).
    pub forbidden_external_ips: Box<[IpAddr]>,
    /// The load balancer's addresses that are to be handled here (`ipMode` VIP or absent), both families.
    pub load_balancer_ips: Box<[IpAddr]>,
    /// `spec.loadBalancerSourceRanges`, both families. [`Service::source_ranges`] knows what a /0 among them
    /// means.
    pub source_ranges: Box<[IpNet]>,
    /// Whether a range is missing from `source_ranges` because it is invalid. A family without a range then
    /// admits no client instead of all.
    pub source_ranges_incomplete: bool,
    /// `externalTrafficPolicy: Local` on a service that can be reached from outside by its type.
    pub external_local: bool,
    /// `internalTrafficPolicy: Local`.
    pub internal_local: bool,
    /// Seconds that a client stays with its endpoint; `None` without session affinity.
    pub affinity_seconds: Option<u32>,
    /// How an endpoint is chosen for a new connection; `None` for the default of the node. Under session
    /// affinity it has no effect.
    pub scheduler: Option<Scheduler>,
    /// The port on which a load balancer asks whether this node has endpoints.
    pub health_check_node_port: Option<NonZeroU16>,
    /// When the object was created (`metadata.creationTimestamp`), where that is known. Of two services that
    /// claim the same frontend, the older one has it.
    pub created: Option<SystemTime>,
}

impl Service {
    /// Creates a service with these cluster IPs, at most one of each family, and these ports. Everything else
    /// is as in a Service of type `ClusterIP` that says nothing of it; set what differs with the `with_`
    /// methods or the fields.
    ///
    /// ```
    /// use sluicegate_services::{Port, Service};
    ///
    /// let service = Service::new(["172.30.0.10".parse()?], [Port::udp("dns", 53)?, Port::tcp("dns-tcp",
    /// 53)?])?; assert_eq!(service.ports.len(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Invalid`] when two cluster IPs are of one family, or two ports have the same name, number or
    /// node port and the same protocol.
    pub fn new(
        cluster_ips: impl IntoIterator<Item = IpAddr>,
        ports: impl IntoIterator<Item = Port>,
    ) -> Result<Self, Error> {
        let invalid = |field: &str, reason| {
            Error::from(Invalid { object: "Service".to_owned(), field: field.to_owned(), reason })
        };
        let mut by_family = [None; 2];
        for ip in cluster_ips {
            let family = Family::of(ip);
            if by_family[family as usize].replace(ip).is_some() {
                return Err(invalid(
                    "cluster_ips",
                    format!("expected one {family} address at most, found more"),
                ));
            }
        }
        let ports: Box<[Port]> = ports.into_iter().collect();
        let mut taken = Taken::default();
        for (index, port) in ports.iter().enumerate() {
            taken.take(port).map_err(|duplicate| {
                invalid(&format!("ports[{index}].{}", duplicate.field()), duplicate.to_string())
            })?;
        }
        Ok(Self {
            cluster_ips: by_family,
            ports,
            external_ips: Box::default(),
            forbidden_external_ips: Box::default(),
            load_balancer_ips: Box::default(),
            source_ranges: Box::default(),
            source_ranges_incomplete: false,
            external_local: false,
            internal_local: false,
            affinity_seconds: None,
            scheduler: None,
            health_check_node_port: None,
            created: None,
        })
    }

    /// Sets the addresses outside of the cluster that lead to this node:
    /// [`Service::external_ips`](Self#structfield.external_ips).
    #[must_use]
    pub fn with_external_ips(self, ips: impl IntoIterator<Item = IpAddr>) -> Self {
        Self { external_ips: ips.into_iter().collect(), ..self }
    }

    /// Sets the addresses of the load balancer that lead to this node.
    #[must_use]
    pub fn with_load_balancer_ips(self, ips: impl IntoIterator<Item = IpAddr>) -> Self {
        Self { load_balancer_ips: ips.into_iter().collect(), ..self }
    }

    /// Sets the networks whose clients may use the load balancer's addresses; none means all.
    #[must_use]
    pub fn with_source_ranges(self, ranges: impl IntoIterator<Item = IpNet>) -> Self {
        Self { source_ranges: ranges.into_iter().collect(), ..self }
    }

    /// Sets whether traffic from outside stays on the node that it reaches.
    #[must_use]
    pub const fn with_external_local(mut self, local: bool) -> Self {
        self.external_local = local;
        self
    }

    /// Sets whether traffic from inside the cluster stays on its node.
    #[must_use]
    pub const fn with_internal_local(mut self, local: bool) -> Self {
        self.internal_local = local;
        self
    }

    /// Sets how many seconds after its last connection a client still gets the same endpoint.
    #[must_use]
    pub const fn with_affinity_seconds(mut self, seconds: u32) -> Self {
        self.affinity_seconds = Some(seconds);
        self
    }

    /// Sets how an endpoint is chosen for a new connection.
    #[must_use]
    pub const fn with_scheduler(mut self, scheduler: Scheduler) -> Self {
        self.scheduler = Some(scheduler);
        self
    }

    /// Returns how an endpoint is chosen for a new connection, on a node with this default. Session affinity
    /// has its own way to choose, so that a service with it has none.
    ///
    /// ```
    /// use sluicegate_services::{Scheduler, Service};
    ///
    /// let service = Service::new([], [])?;
    /// assert_eq!(service.scheduler(Scheduler::RoundRobin), Some(Scheduler::RoundRobin));
    /// let service = service.with_scheduler(Scheduler::SourceHash);
    /// assert_eq!(service.scheduler(Scheduler::RoundRobin), Some(Scheduler::SourceHash));
    /// assert_eq!(service.with_affinity_seconds(60).scheduler(Scheduler::RoundRobin), None);
    /// # Ok::<(), sluicegate_services::Error>(())
    /// ```
    #[must_use]
    pub fn scheduler(&self, default: Scheduler) -> Option<Scheduler> {
        self.affinity_seconds.is_none().then(|| self.scheduler.unwrap_or(default))
    }

    /// Sets when the object was created.
    #[must_use]
    pub const fn with_created(mut self, created: SystemTime) -> Self {
        self.created = Some(created);
        self
    }

    /// Returns the networks of one family whose clients may use the load balancer's addresses; `None` means
    /// that all clients may, which one /0 says for all. Without a network, no client may.
    #[must_use]
    pub fn source_ranges(&self, family: Family) -> Option<impl Iterator<Item = &IpNet> + Clone> {
        let of_family = self.source_ranges.iter().filter(move |net| Family::of_net(net) == family);
        let is_open = match of_family.clone().next() {
            None => !self.source_ranges_incomplete,
            Some(_) => of_family.clone().any(|net| net.prefix_len() == 0),
        };
        (!is_open).then_some(of_family)
    }

    /// Returns the external IPs of one family.
    pub fn external_ips(&self, family: Family) -> impl Iterator<Item = IpAddr> + Clone {
        self.external_ips.iter().copied().filter(move |ip| Family::of(*ip) == family)
    }

    /// Leaves out the external IPs.
    pub(crate) fn forbid_external_ips(&mut self) {
        if !self.external_ips.is_empty() {
            self.forbidden_external_ips = std::mem::take(&mut self.external_ips);
        }
    }

    /// Returns the load balancer's addresses of one family.
    pub fn load_balancer_ips(&self, family: Family) -> impl Iterator<Item = IpAddr> + Clone {
        self.load_balancer_ips.iter().copied().filter(move |ip| Family::of(*ip) == family)
    }

    /// Returns the cluster IP of one family.
    #[must_use]
    pub fn cluster_ip(&self, family: Family) -> Option<IpAddr> {
        self.cluster_ips[family as usize]
    }
}

/// An address that a Service lists and that is not served here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NotServed {
    /// The address.
    pub ip: IpAddr,
    /// The field that has it.
    pub field: &'static str,
    /// The reason.
    pub why: &'static str,
}

/// One port of a Service.
///
/// ```
/// use sluicegate_services::Port;
///
/// let port = Port::tcp("http", 80)?.with_node_port(30_080)?;
/// assert_eq!(port.node_port.map(u16::from), Some(30_080));
/// assert!(Port::tcp("http", 0).is_err());
/// # Ok::<(), sluicegate_services::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Port {
    /// Its name; empty when it has none.
    pub name: Arc<str>,
    /// Its protocol.
    pub protocol: Protocol,
    /// The port of the cluster IP, the external and load-balancer IPs.
    pub port: NonZeroU16,
    /// The port of the node's addresses.
    pub node_port: Option<NonZeroU16>,
}

impl Port {
    /// Creates a port without a node port. `name` may be empty for the only port of a service.
    ///
    /// # Errors
    /// [`Error::PortName`] when `name` is neither empty nor a DNS label, [`Error::PortNumber`] when `number`
    /// is 0.
    pub fn new(protocol: Protocol, name: &str, number: u16) -> Result<Self, Error> {
        if !name.is_empty() && !is_label(name) {
            return Err(Error::PortName { name: name.to_owned() });
        }
        let port = NonZeroU16::new(number).ok_or(Error::PortNumber)?;
        Ok(Self { name: name.into(), protocol, port, node_port: None })
    }

    /// Creates a TCP port.
    ///
    /// # Errors
    /// As [`Port::new`].
    pub fn tcp(name: &str, number: u16) -> Result<Self, Error> {
        Self::new(Protocol::Tcp, name, number)
    }

    /// Creates a UDP port.
    ///
    /// # Errors
    /// As [`Port::new`].
    pub fn udp(name: &str, number: u16) -> Result<Self, Error> {
        Self::new(Protocol::Udp, name, number)
    }

    /// Sets the port of the node's addresses.
    ///
    /// # Errors
    /// [`Error::PortNumber`] when `number` is 0.
    pub fn with_node_port(self, number: u16) -> Result<Self, Error> {
        Ok(Self { node_port: Some(NonZeroU16::new(number).ok_or(Error::PortNumber)?), ..self })
    }
}

/// The names and numbers of the ports of a service, each of which one port can have.
#[derive(Debug, Default)]
pub(crate) struct Taken {
    names: HashSet<(Arc<str>, Protocol)>,
    numbers: HashSet<(NonZeroU16, Protocol)>,
    node_ports: HashSet<(NonZeroU16, Protocol)>,
}

impl Taken {
    /// Takes the name and numbers of `port`, or what comes before the first that an earlier port has. The
    /// node port is the last.
    pub(crate) fn take(&mut self, port: &Port) -> Result<(), Duplicate> {
        let protocol = port.protocol;
        if self.names.contains(&(Arc::clone(&port.name), protocol)) {
            return Err(Duplicate::Name(Arc::clone(&port.name)));
        }
        if !self.numbers.insert((port.port, protocol)) {
            return Err(Duplicate::Number(port.port, protocol));
        }
        self.names.insert((Arc::clone(&port.name), protocol));
        match port.node_port {
            Some(number) if !self.node_ports.insert((number, protocol)) => {
                Err(Duplicate::NodePort(number, protocol))
            }
            _ => Ok(()),
        }
    }
}

/// What a port has in common with an earlier one of the same service.
#[derive(Debug)]
pub(crate) enum Duplicate {
    Name(Arc<str>),
    Number(NonZeroU16, Protocol),
    NodePort(NonZeroU16, Protocol),
}

impl Duplicate {
    /// Returns `true` if the node port alone is a duplicate.
    #[cfg(feature = "k8s-openapi")]
    pub(crate) const fn is_node_port(&self) -> bool {
        matches!(self, Self::NodePort(..))
    }

    /// Returns the field's name in the API.
    pub(crate) const fn field(&self) -> &'static str {
        match self {
            Self::Name(_) => "name",
            Self::Number(..) => "port",
            Self::NodePort(..) => "nodePort",
        }
    }
}

impl std::fmt::Display for Duplicate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Name(name) => write!(f, "duplicate of {name:?}"),
            Self::Number(number, protocol) | Self::NodePort(number, protocol) => {
                write!(f, "duplicate of {number}/{protocol}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_made_by_hand_is_checked_as_one_of_the_api() {
        let ip = |text: &str| text.parse::<IpAddr>().unwrap();
        let port = |name, number| Port::tcp(name, number).unwrap();
        let message = |ips: &[&str], ports: Vec<Port>| {
            Service::new(ips.iter().map(|text| ip(text)), ports).unwrap_err().to_string()
        };
        assert_eq!(
            message(&["10.0.0.1", "10.0.0.2"], Vec::new()),
            "Service: cluster_ips: expected one IPv4 address at most, found more"
        );
        assert_eq!(
            message(&["10.0.0.1"], vec![port("a", 80), port("a", 81)]),
            "Service: ports[1].name: duplicate of \"a\""
        );
        assert_eq!(
            message(&["10.0.0.1"], vec![port("a", 80), port("b", 80)]),
            "Service: ports[1].port: duplicate of 80/tcp"
        );
        let node_port = |name, number| port(name, number).with_node_port(30000).unwrap();
        assert_eq!(
            message(&["10.0.0.1"], vec![node_port("a", 80), node_port("b", 81)]),
            "Service: ports[1].nodePort: duplicate of 30000/tcp"
        );
        assert_eq!(Port::tcp("a b", 80).unwrap_err(), Error::PortName { name: "a b".to_owned() });
        assert_eq!(Port::tcp("a", 0).unwrap_err(), Error::PortNumber);
        assert_eq!(port("a", 80).with_node_port(0).unwrap_err(), Error::PortNumber);
    }
}
