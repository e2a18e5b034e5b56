//! What is valid and probably not what was meant: services that serve nobody, or more clients than their
//! author believes.

use std::collections::HashMap;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU16;

use ipnet::IpNet;

use crate::{
    ClaimKind, Cluster, Endpoint, Family, Frontend, PortName, Scheduler, Service, ServiceName, ServicePort,
    Slice,
};

/// Something in valid objects that is probably not what was meant.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Warning {
    /// No endpoint of a service port can be used.
    Unserved {
        /// The service port.
        port: PortName,
        /// The family.
        family: Family,
        /// The reason.
        why: Unserved,
    },
    /// The source ranges of a load balancer are all of the other family, so that everybody may come in.
    OpenToAll {
        /// The service.
        service: ServiceName,
        /// The family without a range.
        family: Family,
        /// The addresses of this family.
        addresses: Vec<IpAddr>,
        /// The ranges.
        ranges: Vec<IpNet>,
    },
    /// An endpoint is the address of a service. What is sent there is not translated a second time.
    EndpointOfService {
        /// The service port with the endpoint.
        port: PortName,
        /// The endpoint.
        endpoint: SocketAddr,
        /// The service that has the address.
        owner: ServiceName,
        /// The field by which it has the address.
        kind: ClaimKind,
    },
    /// A service asks for a scheduler that has no effect.
    SchedulerWithoutEffect {
        /// The service.
        service: ServiceName,
        /// The scheduler.
        scheduler: Scheduler,
        /// What decides instead, as the end of a sentence.
        why: &'static str,
    },
}

/// Why a service port has no endpoint that can be used.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unserved {
    /// No slice belongs to the service.
    NoSlice,
    /// The slices have addresses of the other family.
    OtherFamily,
    /// The slices have no port of this name and protocol.
    NoPort {
        /// The ports that they have, as `web/tcp`.
        found: Vec<String>,
        /// Number of endpoints that would be used if the ports matched.
        usable: usize,
    },
    /// The slices with this port have no endpoint.
    NoEndpoint,
    /// None of the endpoints is ready, or serves while terminating.
    NoneUsable {
        /// Number of endpoints.
        count: usize,
    },
}

impl Cluster {
    /// Returns why no endpoint of a service port can be used; `None` where one can.
    ///
    /// ```
    /// use sluicegate_services::{Cluster, Family, Port, Service, ServiceName, Unserved};
    ///
    /// let (mut cluster, name) = (Cluster::default(), ServiceName::new("demo", "web")?);
    /// cluster.set_service(&name, Service::new(["172.30.0.1".parse()?], [Port::tcp("http", 80)?])?);
    /// let [port] = &cluster.ports(&name, Family::Ipv4)[..] else { unreachable!() };
    /// assert_eq!(cluster.unserved(port), Some(Unserved::NoSlice));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn unserved(&self, port: &ServicePort<'_>) -> Option<Unserved> {
        let is_usable = |endpoint: &Endpoint| endpoint.ready || endpoint.serves_terminating();
        if port.endpoints.iter().any(is_usable) {
            return None;
        }
        if !port.endpoints.is_empty() {
            return Some(Unserved::NoneUsable { count: port.endpoints.len() });
        }
        let slices: Vec<&Slice> = self.slices(&port.name.service).collect();
        if slices.is_empty() {
            return Some(Unserved::NoSlice);
        }
        let of_family: Vec<_> = slices.into_iter().filter(|slice| slice.family == port.family).collect();
        if of_family.is_empty() {
            return Some(Unserved::OtherFamily);
        }
        let ports = || of_family.iter().flat_map(|slice| slice.ports.iter());
        if ports().any(|p| p.name == port.name.port && p.protocol == port.name.protocol) {
            return Some(Unserved::NoEndpoint);
        }
        let mut found: Vec<_> = ports().map(|port| named(&port.name, port.protocol)).collect();
        found.sort();
        found.dedup();
        let endpoints = of_family.iter().flat_map(|slice| slice.endpoints.iter());
        let usable = endpoints.filter(|e| e.ready || (e.serving && e.terminating)).count();
        Some(Unserved::NoPort { found, usable })
    }

    /// Returns everything in the objects that is probably not what was meant, by the names of services.
    #[must_use]
    pub fn warnings(&self) -> Vec<Warning> {
        let addresses = self.cluster_ips();
        let mut names: Vec<_> = self.service_names().collect();
        names.sort();
        let mut warnings = Vec::new();
        for name in names {
            if let Some(service) = self.service(name) {
                warnings.extend(service.open_to_all(name));
                warnings.extend(service.scheduler_without_effect(name));
                warnings.extend(self.scheduler_without_slots(name));
            }
            for family in Family::BOTH {
                for port in self.ports(name, family) {
                    if let Some(why) = self.unserved(&port) {
                        warnings.push(Warning::Unserved { port: port.name.clone(), family, why });
                    }
                    let of_service = |endpoint: &Endpoint| {
                        let (owner, kind) = self.owner_of_endpoint(endpoint, &port, &addresses)?;
                        let (port, endpoint) = (port.name.clone(), endpoint.address);
                        Some(Warning::EndpointOfService { port, endpoint, owner: owner.clone(), kind })
                    };
                    warnings.extend(port.endpoints.iter().filter_map(of_service));
                }
            }
        }
        warnings
    }

    fn cluster_ips(&self) -> HashMap<IpAddr, &ServiceName> {
        let of = |name| self.service(name).into_iter().flat_map(|service| service.cluster_ips);
        self.service_names().flat_map(|name| of(name).flatten().map(move |ip| (ip, name))).collect()
    }

    /// Returns the service that has the address of an endpoint: as its cluster IP with any port, or as another
    /// address with this one. A node may have the latter itself, and answer there.
    fn owner_of_endpoint<'a>(
        &'a self,
        endpoint: &Endpoint,
        port: &ServicePort<'_>,
        cluster_ips: &HashMap<IpAddr, &'a ServiceName>,
    ) -> Option<(&'a ServiceName, ClaimKind)> {
        let ip = endpoint.address.ip();
        if let Some(owner) = cluster_ips.get(&ip) {
            return Some((owner, ClaimKind::ClusterIp));
        }
        let number = NonZeroU16::new(endpoint.address.port())?;
        let owner = self.owner(&Frontend::Address(ip, port.name.protocol, number))?;
        (owner.1 != ClaimKind::NodePort && !self.node().addresses.contains(&ip)).then_some(owner)
    }
}

impl Service {
    /// Returns the families in which source ranges were meant to keep clients from the load balancer's
    /// addresses, and keep nobody, as kube-proxy's do: all ranges are of the other family.
    pub fn open_to_all(&self, name: &ServiceName) -> impl Iterator<Item = Warning> {
        Family::BOTH.into_iter().filter_map(move |family| {
            let is_meant = !self.source_ranges.is_empty()
                && self.source_ranges.iter().all(|net| Family::of_net(net) != family);
            let addresses: Vec<_> = self.load_balancer_ips(family).collect();
            let is_open = is_meant && self.source_ranges(family).is_none() && !addresses.is_empty();
            is_open.then(|| Warning::OpenToAll {
                service: name.clone(),
                family,
                addresses,
                ranges: self.source_ranges.to_vec(),
            })
        })
    }
}

impl Service {
    /// Returns a warning where the service asks for a scheduler, and session affinity decides instead.
    #[must_use]
    pub fn scheduler_without_effect(&self, name: &ServiceName) -> Option<Warning> {
        let why = "its session affinity decides which endpoint a client gets";
        self.affinity_seconds.and_then(|_| self.scheduler_not_used(name, why))
    }

    /// Returns a warning where the service asks for a scheduler other than `random`, none of which its proxy
    /// has: `why` says so, as the end of a sentence.
    #[must_use]
    pub fn scheduler_not_used(&self, name: &ServiceName, why: &'static str) -> Option<Warning> {
        let scheduler = self.scheduler.filter(|scheduler| *scheduler != Scheduler::Random)?;
        Some(Warning::SchedulerWithoutEffect { service: name.clone(), scheduler, why })
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unserved { port, family, why } => {
                write!(f, "Service {}: nobody serves port {} ({family}): ", port.service, shown(port))?;
                match why {
                    Unserved::NoPort { .. } => {
                        let wanted = named(&port.port, port.protocol);
                        write!(f, "expected a port {wanted} in its EndpointSlices, {why}")
                    }
                    _ => why.fmt(f),
                }
            }
            Self::OpenToAll { service, family, addresses, ranges } => write!(
                f,
                "Service {service}: every {family} client may use the load balancer's address {}: \
                 spec.loadBalancerSourceRanges has no {family} network, only {}",
                list(addresses),
                list(ranges)
            ),
            Self::EndpointOfService { port, endpoint, owner, kind } => write!(
                f,
                "Service {}: the endpoint {endpoint} of port {} is the {kind} of Service {owner}: what is sent \
                 there is not translated again, and gets lost",
                port.service,
                shown(port)
            ),
            Self::SchedulerWithoutEffect { service, scheduler, why } => {
                write!(f, "Service {service}: {}: {scheduler} has no effect: {why}", Scheduler::FIELD)
            }
        }
    }
}

impl fmt::Display for Unserved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSlice => f.write_str("no EndpointSlice belongs to it"),
            Self::OtherFamily => f.write_str("its EndpointSlices have addresses of the other family alone"),
            Self::NoPort { found, usable } => {
                let found = if found.is_empty() { "none".to_owned() } else { found.join(", ") };
                let would =
                    if *usable == 1 { "endpoint that would be used" } else { "endpoints that would be used" };
                write!(f, "found {found} (with {usable} {would})")
            }
            Self::NoEndpoint => f.write_str("its EndpointSlices with this port have no endpoint"),
            Self::NoneUsable { count: 1 } => {
                f.write_str("its only endpoint is neither ready nor serving while terminating")
            }
            Self::NoneUsable { count } => {
                write!(f, "none of its {count} endpoints is ready, or serves while terminating")
            }
        }
    }
}

fn shown(port: &PortName) -> String {
    named(&port.port, port.protocol)
}

/// Returns how a port is told: by its name, if it has one.
fn named(name: &str, protocol: crate::Protocol) -> String {
    if name.is_empty() { format!("without a name/{protocol}") } else { format!("{name}/{protocol}") }
}

fn list<T: ToString>(items: &[T]) -> String {
    items.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Node, Port, SliceEndpoint, SliceName, SlicePort};

    fn name(text: &str) -> ServiceName {
        ServiceName::new("demo", text).unwrap()
    }

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    /// A cluster with the service `web` at 172.30.0.1 port http/80, and this slice.
    fn web(family: Family, ports: &[SlicePort], endpoints: &[SliceEndpoint]) -> Cluster {
        let mut cluster = Cluster::new(Node::new("here", [ip("192.168.0.2")]));
        cluster.set_service(
            &name("web"),
            Service::new([ip("172.30.0.1")], [Port::tcp("http", 80).unwrap()]).unwrap(),
        );
        let slice = Slice::new(name("web"), family, ports.to_vec(), endpoints.to_vec()).unwrap();
        cluster.set_slice(&SliceName::new("demo", "web-1"), slice);
        cluster
    }

    fn said(cluster: &Cluster) -> Vec<String> {
        cluster.warnings().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn the_reason_for_which_nobody_serves_is_told() {
        let http = || SlicePort::tcp("http", 8080).unwrap();
        let ready = || SliceEndpoint::new(ip("10.0.0.1"));
        let unready = || SliceEndpoint { ready: false, serving: false, ..ready() };
        let draining = || SliceEndpoint { ready: false, terminating: true, ..ready() };
        let ended = || SliceEndpoint { terminating: true, ..unready() };
        let of_v6 = SliceEndpoint::new(ip("fd00::1"));
        for (family, ports, endpoints, why) in [
            (Family::Ipv4, vec![http()], vec![ready()], None),
            (
                Family::Ipv4,
                vec![http()],
                vec![unready(), SliceEndpoint { ip: ip("10.0.0.2"), ..draining() }],
                None,
            ),
            (Family::Ipv4, vec![http()], vec![unready()], Some("its only endpoint is neither")),
            (
                Family::Ipv4,
                vec![http()],
                vec![unready(), SliceEndpoint { ip: ip("10.0.0.2"), ..ended() }],
                Some("none of its 2 endpoints is ready"),
            ),
            (Family::Ipv4, vec![http()], vec![], Some("have no endpoint")),
            (Family::Ipv6, vec![http()], vec![of_v6], Some("the other family")),
            (
                Family::Ipv4,
                vec![SlicePort::tcp("web", 8080).unwrap(), SlicePort::udp("http", 8080).unwrap()],
                vec![ready(), unready()],
                Some(
                    "expected a port http/tcp in its EndpointSlices, found http/udp, web/tcp (with 1 endpoint that",
                ),
            ),
            (
                Family::Ipv4,
                vec![SlicePort::tcp("", 1).unwrap()],
                vec![ready()],
                Some("found without a name/tcp"),
            ),
            (Family::Ipv4, vec![], vec![ready()], Some("found none (with 1 ")),
        ] {
            let found = said(&web(family, &ports, &endpoints));
            match why {
                None => assert_eq!(found, [""; 0]),
                Some(why) => {
                    assert!(found.len() == 1 && found[0].contains(why), "{why}: {found:?}");
                    assert!(found[0].starts_with("Service demo/web: "), "{found:?}");
                }
            }
        }
        let mut cluster = web(Family::Ipv4, &[], &[]);
        cluster.set_slice(&SliceName::new("demo", "web-1"), None);
        assert!(said(&cluster)[0].contains("no EndpointSlice belongs to it"));
    }

    #[test]
    fn source_ranges_of_the_other_family_keep_nobody_out() {
        let set = |ranges: &[&str], addresses: &[&str]| {
            let mut cluster = web(
                Family::Ipv4,
                &[SlicePort::tcp("http", 1).unwrap()],
                &[SliceEndpoint::new(ip("10.0.0.1"))],
            );
            let service = cluster.service(&name("web")).unwrap().clone();
            let service = service
                .with_source_ranges(ranges.iter().map(|net| net.parse().unwrap()))
                .with_load_balancer_ips(addresses.iter().map(|text| ip(text)));
            cluster.set_service(&name("web"), service);
            said(&cluster)
        };
        let found = set(&["2001:db8::/32", "2001:db9::/32"], &["203.0.113.1"]);
        assert_eq!(
            found,
            ["Service demo/web: every IPv4 client may use the load balancer's address 203.0.113.1: \
              spec.loadBalancerSourceRanges has no IPv4 network, only 2001:db8::/32, 2001:db9::/32"]
        );
        assert_eq!(set(&["10.0.0.0/8"], &["2001:db8::1"]).len(), 1);
        assert_eq!(set(&["10.0.0.0/8"], &["203.0.113.1"]), [""; 0]);
        assert_eq!(set(&["10.0.0.0/8", "2001:db8::/32"], &["203.0.113.1", "2001:db8::1"]), [""; 0]);
        assert_eq!(set(&[], &["203.0.113.1"]), [""; 0]);
    }

    #[test]
    fn an_endpoint_that_is_an_address_of_a_service_is_told() {
        let with = |endpoint: &str, port: u16| {
            let ports = [SlicePort::tcp("http", port).unwrap()];
            let mut cluster = web(Family::Ipv4, &ports, &[SliceEndpoint::new(ip(endpoint))]);
            let other = Service::new([ip("172.30.0.2")], [Port::tcp("", 81).unwrap()]).unwrap();
            cluster
                .set_service(&name("other"), other.with_external_ips(["203.0.113.1", "192.168.0.2"].map(ip)));
            let told = said(&cluster);
            told.into_iter().filter(|line| line.starts_with("Service demo/web")).collect::<Vec<_>>()
        };
        for (endpoint, port, kind) in [
            ("172.30.0.2", 8080, Some("cluster IP of Service demo/other")),
            ("172.30.0.1", 80, Some("cluster IP of Service demo/web")),
            ("203.0.113.1", 81, Some("external IP of Service demo/other")),
            ("203.0.113.1", 82, None),
            // The node answers there itself, as for a pod in its network.
            ("192.168.0.2", 81, None),
            ("10.0.0.1", 81, None),
        ] {
            let found = with(endpoint, port);
            match kind {
                None => assert_eq!(found, [""; 0], "{endpoint}:{port}"),
                Some(kind) => {
                    assert!(found.len() == 1 && found[0].contains(kind), "{endpoint}:{port}: {found:?}");
                }
            }
        }
    }

    #[test]
    fn a_scheduler_without_effect_is_told() {
        let service = || Service::new([ip("172.30.0.1")], []).unwrap().with_scheduler(Scheduler::SourceHash);
        let warning = |service: &Service| service.scheduler_without_effect(&name("web"));
        assert_eq!(warning(&service()), None);
        let mut cluster = Cluster::default();
        cluster.set_service(&name("web"), service().with_affinity_seconds(60));
        let field = "metadata.annotations[sluicegate.github.io/scheduler]";
        let why = "its session affinity decides which endpoint a client gets";
        assert_eq!(said(&cluster), [format!("Service demo/web: {field}: source-hash has no effect: {why}")]);
        assert!(service().scheduler_not_used(&name("web"), "so").is_some());
        assert_eq!(service().with_scheduler(Scheduler::Random).scheduler_not_used(&name("web"), "so"), None);
    }
}
