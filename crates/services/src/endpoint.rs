//! One port of a service in one family, with its endpoints joined from all slices: the input of planners.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU16;
use std::sync::Arc;

use crate::{Family, Frontend, Hints, PortName, Protocol, Service, ServiceName, Slice};

/// An endpoint of a service port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// The address and port.
    pub address: SocketAddr,
    /// Whether it runs on this node.
    pub is_local: bool,
    /// Whether it is known to run on another node. Where no object names its node, it may run on this one.
    pub is_remote: bool,
    /// Whether it is ready.
    pub ready: bool,
    /// Whether it serves, be it ready or terminating.
    pub serving: bool,
    /// Whether it is terminating.
    pub terminating: bool,
    /// The clients that should use it, as topology hints.
    pub hints: Option<Arc<Hints>>,
}

impl Endpoint {
    /// Returns `true` if it still serves while it terminates: such endpoints get traffic if none is ready.
    #[must_use]
    pub const fn serves_terminating(&self) -> bool {
        self.serving && self.terminating
    }
}

/// One port of one service in one family, and its endpoints.
///
/// Its addresses and node port are those that it has: what another service has instead is left out, whatever
/// `service` says ([`Cluster::conflicts`](crate::Cluster::conflicts)).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ServicePort<'a> {
    /// Its name, the key of the rules planned for it.
    pub name: PortName,
    /// The family of every address below.
    pub family: Family,
    /// The service that it belongs to.
    pub service: &'a Service,
    /// The cluster IP, unless another service has it with this port.
    pub cluster_ip: Option<IpAddr>,
    /// The external IPs.
    pub external_ips: Vec<IpAddr>,
    /// The load balancer's addresses.
    pub load_balancer_ips: Vec<IpAddr>,
    /// The port of cluster, external and load-balancer IPs.
    pub port: NonZeroU16,
    /// The port of the node's own addresses.
    pub node_port: Option<NonZeroU16>,
    /// The service's port for health checks, which all its ports share.
    pub health_check_node_port: Option<NonZeroU16>,
    /// Every endpoint, whatever its state, sorted by its text (`10.0.0.10:80` before `10.0.0.9:80`).
    pub endpoints: Vec<Endpoint>,
}

impl ServicePort<'_> {
    /// Returns its frontends, each once: the cluster IP, the external IPs, the load balancer's addresses, the
    /// node port.
    #[must_use]
    pub fn frontends(&self) -> Vec<Frontend> {
        let mut seen = BTreeSet::new();
        let ips = self.cluster_ip.iter().chain(&self.external_ips).chain(&self.load_balancer_ips);
        let of_ips = ips.filter(|ip| seen.insert(**ip));
        let of_ips = of_ips.map(|ip| Frontend::Address(*ip, self.name.protocol, self.port));
        let node_port = self.node_port.map(|port| Frontend::NodePort(self.family, self.name.protocol, port));
        of_ips.chain(node_port).collect()
    }
}

impl<'a> ServicePort<'a> {
    /// Returns the ports of a service in one family that have a frontend: none when it has no cluster IP of
    /// that family. `lost` are the frontends that other services have.
    pub(crate) fn all(
        name: &ServiceName,
        service: &'a Service,
        lost: &BTreeSet<Frontend>,
        slices: &(impl Iterator<Item = &'a Slice> + Clone),
        family: Family,
        node: &str,
    ) -> Vec<Self> {
        let Some(cluster_ip) = service.cluster_ip(family) else { return Vec::new() };
        let mut ports = Vec::with_capacity(service.ports.len());
        for port in &service.ports {
            let protocol = port.protocol;
            let has = |ip: &IpAddr| !lost.contains(&Frontend::Address(*ip, protocol, port.port));
            let has_node_port =
                |protocol, number| !lost.contains(&Frontend::NodePort(family, protocol, number));
            let health_check = service.health_check_node_port;
            let port = Self {
                name: PortName { service: name.clone(), port: Arc::clone(&port.name), protocol },
                family,
                service,
                cluster_ip: Some(cluster_ip).filter(has),
                external_ips: service.external_ips(family).filter(has).collect(),
                load_balancer_ips: service.load_balancer_ips(family).filter(has).collect(),
                port: port.port,
                node_port: port.node_port.filter(|number| has_node_port(protocol, *number)),
                health_check_node_port: health_check.filter(|number| has_node_port(Protocol::Tcp, *number)),
                endpoints: Vec::new(),
            };
            if port.cluster_ip.is_some() || port.externally_accessible() {
                ports.push(Self { endpoints: endpoints(&port.name, slices.clone(), family, node), ..port });
            }
        }
        ports
    }

    /// Returns `true` if it can be reached at an address other than its cluster IP.
    #[must_use]
    pub fn externally_accessible(&self) -> bool {
        self.node_port.is_some() || !self.load_balancer_ips.is_empty() || !self.external_ips.is_empty()
    }

    /// Returns `true` if some of its traffic may go to any node's endpoints.
    #[must_use]
    pub fn uses_cluster_endpoints(&self) -> bool {
        !self.service.internal_local || self.externally_accessible()
    }

    /// Returns `true` if some of its traffic must stay on the node.
    #[must_use]
    pub fn uses_local_endpoints(&self) -> bool {
        self.service.internal_local || (self.service.external_local && self.externally_accessible())
    }
}

/// Joins the slices. The same address and port seen twice counts once, as the copy that is of most use: a
/// slice that lags behind does not take an endpoint away, whatever the order of slices.
fn endpoints<'a>(
    name: &PortName,
    slices: impl Iterator<Item = &'a Slice> + Clone,
    family: Family,
    node: &str,
) -> Vec<Endpoint> {
    let of_family = slices.filter(|slice| slice.family == family);
    let capacity = of_family.clone().map(|slice| slice.endpoints.len()).sum();
    let mut found: Vec<Endpoint> = Vec::with_capacity(capacity);
    for slice in of_family {
        let ports =
            slice.ports.iter().filter(|port| port.name == name.port && port.protocol == name.protocol);
        for port in ports {
            found.extend(slice.endpoints.iter().map(|endpoint| Endpoint {
                address: SocketAddr::new(endpoint.ip, port.port.get()),
                is_local: !node.is_empty() && endpoint.node.as_deref() == Some(node),
                is_remote: !node.is_empty()
                    && endpoint.node.as_deref().is_some_and(|other| !other.is_empty() && other != node),
                ready: endpoint.ready,
                serving: endpoint.serving,
                terminating: endpoint.terminating,
                hints: endpoint.hints.clone(),
            }));
        }
    }
    // Most slices are written in an order of their own, often this one; strictly in order, it has no doubles.
    if found.is_sorted_by(|a, b| compare_v4(a, b) == Some(Ordering::Less)) {
        return found;
    }
    // The sort must be stable: equal endpoints stay in the order of their slices, which decides the one kept.
    sort_by_text(&mut found);
    found.dedup_by(|later, kept| {
        let same = later.address == kept.address;
        if same && usefulness(later) >= usefulness(kept) {
            std::mem::swap(later, kept);
        }
        same
    });
    found
}

/// Orders the copies of an endpoint: a ready one comes before all others; then one that is not terminating,
/// as addresses of pods that end are given to new ones; then one that serves; then one of this node.
const fn usefulness(copy: &Endpoint) -> (bool, bool, bool, bool) {
    (copy.ready, copy.ready || !copy.terminating, copy.ready || copy.serving, copy.is_local)
}

/// Sorts by the plain byte order of the texts `ip:port` and `[ip]:port`. Arrivals that are equal keep their
/// order.
fn sort_by_text(endpoints: &mut [Endpoint]) {
    if endpoints.iter().all(|endpoint| endpoint.address.is_ipv4()) {
        endpoints.sort_by(|a, b| compare_v4(a, b).unwrap_or(Ordering::Equal));
    } else {
        // The keys of IPv6 are texts, which are not made twice.
        endpoints.sort_by_cached_key(|endpoint| endpoint.address.to_string());
    }
}

/// Compares the texts of two IPv4 endpoints by the first number in which they differ: as each number is
/// followed by what is no digit, the others decide nothing. Returns `None` if one of them is IPv6.
fn compare_v4(a: &Endpoint, b: &Endpoint) -> Option<Ordering> {
    let (SocketAddr::V4(a), SocketAddr::V4(b)) = (a.address, b.address) else { return None };
    let (octets, others) = (a.ip().octets(), b.ip().octets());
    for (place, (octet, other)) in octets.into_iter().zip(others).enumerate() {
        if octet != other {
            let next = if place == 3 { b':' } else { b'.' };
            return Some(digits(octet, next).cmp(&digits(other, next)));
        }
    }
    Some(match a.port() == b.port() {
        true => Ordering::Equal,
        false => port_digits(a.port()).cmp(&port_digits(b.port())),
    })
}

/// Returns the digits of an octet and a further byte, from the highest byte of the result on.
fn digits(octet: u8, next: u8) -> u32 {
    let digit = |n: u8| b'0' + n;
    u32::from_be_bytes(match octet {
        0..=9 => [digit(octet), next, 0, 0],
        10..=99 => [digit(octet / 10), digit(octet % 10), next, 0],
        _ => [digit(octet / 100), digit(octet / 10 % 10), digit(octet % 10), next],
    })
}

fn port_digits(port: u16) -> u64 {
    let (mut rest, mut text, mut shift) = (port, 0, 0);
    while rest > 0 {
        text |= u64::from(b'0' + u8::try_from(rest % 10).unwrap_or_default()) << shift;
        (rest, shift) = (rest / 10, shift + 8);
    }
    // To the left, where comparison begins.
    if shift == 0 { u64::from(b'0') << 56 } else { text << (64 - shift) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn numbers_of_few_digits_sort_as_text(a: [bool; 4], b: [bool; 4], ports: (u16, u16)) {
            let address = |bits: [bool; 4], port| SocketAddr::new(bits.map(|bit| if bit { 10 } else { 1 }).into(), port % 120);
            let (a, b) = (address(a, ports.0), address(b, ports.1));
            prop_assert_eq!(compare_v4(&endpoint(a), &endpoint(b)), Some(a.to_string().cmp(&b.to_string())));
        }

        #[test]
        fn the_order_is_that_of_the_texts(addresses: Vec<(IpAddr, u16)>, first_alone: bool) {
            let mut all: Vec<_> = addresses
                .into_iter()
                .map(|(ip, port)| SocketAddr::new(ip, port))
                .filter(|address| address.is_ipv4() || !first_alone)
                .map(endpoint)
                .collect();
            sort_by_text(&mut all);
            prop_assert!(all.is_sorted_by_key(|endpoint| endpoint.address.to_string()));
        }
    }

    fn endpoint(address: SocketAddr) -> Endpoint {
        let (is_local, is_remote) = (false, false);
        Endpoint { address, is_local, is_remote, ready: true, serving: true, terminating: false, hints: None }
    }
}
