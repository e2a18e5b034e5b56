//! One port of a service in one family, with its endpoints joined from all slices: what a planner is given.

use std::cmp::Ordering;
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU16;
use std::sync::Arc;

use super::{Family, Hints, PortName, Service, ServiceName, Slice};

/// An endpoint of a service port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// Address and port.
    pub address: SocketAddr,
    /// It runs on this node.
    pub is_local: bool,
    /// It is ready.
    pub ready: bool,
    /// It still answers, ready or not.
    pub serving: bool,
    /// It is on its way out.
    pub terminating: bool,
    /// For whom it is meant.
    pub hints: Option<Arc<Hints>>,
}

impl Endpoint {
    /// Still answers while on its way out: what traffic falls back to.
    #[must_use]
    pub const fn serves_terminating(&self) -> bool {
        self.serving && self.terminating
    }
}

/// One port of one service in one family, and its endpoints.
#[derive(Clone, Debug)]
pub struct ServicePort<'a> {
    /// Its name, the key of what is planned for it.
    pub name: PortName,
    /// The family of every address below.
    pub family: Family,
    /// The service that it belongs to.
    pub service: &'a Service,
    /// The cluster IP.
    pub cluster_ip: IpAddr,
    /// The port of cluster, external and load-balancer IPs.
    pub port: NonZeroU16,
    /// The port of the node's own addresses.
    pub node_port: Option<NonZeroU16>,
    /// Every endpoint, whatever its state, sorted by its text (`10.0.0.10:80` before `10.0.0.9:80`).
    pub endpoints: Vec<Endpoint>,
}

impl<'a> ServicePort<'a> {
    /// The ports of a service in one family: none when it has no cluster IP of that family.
    pub(super) fn all(
        name: &ServiceName,
        service: &'a Service,
        slices: &[&Slice],
        family: Family,
        node: &str,
    ) -> Vec<Self> {
        let Some(cluster_ip) = service.cluster_ip(family) else { return Vec::new() };
        let ports = service.ports.iter().map(|port| Self {
            name: PortName { service: name.clone(), port: Arc::clone(&port.name), protocol: port.protocol },
            family,
            service,
            cluster_ip,
            port: port.port,
            node_port: port.node_port,
            endpoints: Vec::new(),
        });
        ports.map(|port| Self { endpoints: endpoints(&port.name, slices, family, node), ..port }).collect()
    }

    /// It can be reached by something else than its cluster IP.
    #[must_use]
    pub fn externally_accessible(&self) -> bool {
        self.node_port.is_some()
            || self.service.load_balancer_ips(self.family).next().is_some()
            || self.service.external_ips(self.family).next().is_some()
    }

    /// Some of its traffic may go to any node's endpoints.
    #[must_use]
    pub fn uses_cluster_endpoints(&self) -> bool {
        !self.service.internal_local || self.externally_accessible()
    }

    /// Some of its traffic must stay on the node.
    #[must_use]
    pub fn uses_local_endpoints(&self) -> bool {
        self.service.internal_local || (self.service.external_local && self.externally_accessible())
    }
}

/// Joins the slices. The same address and port seen twice counts once: the later wins, unless it is terminating.
fn endpoints(name: &PortName, slices: &[&Slice], family: Family, node: &str) -> Vec<Endpoint> {
    let of_family = slices.iter().filter(|slice| slice.family == family);
    let capacity = of_family.clone().map(|slice| slice.endpoints.len()).sum();
    let mut found: Vec<Endpoint> = Vec::with_capacity(capacity);
    let mut contributions = 0;
    for slice in of_family {
        let ports =
            slice.ports.iter().filter(|port| port.name == name.port && port.protocol == name.protocol);
        for port in ports {
            contributions += 1;
            found.extend(slice.endpoints.iter().map(|endpoint| Endpoint {
                address: SocketAddr::new(endpoint.ip, port.port.get()),
                is_local: !node.is_empty() && endpoint.node.as_deref() == Some(node),
                ready: endpoint.ready,
                serving: endpoint.serving,
                terminating: endpoint.terminating,
                hints: endpoint.hints.clone(),
            }));
        }
    }
    // A stable sort keeps the order of arrival among equals, of which the right one then survives.
    found.sort_by(|a, b| by_text(&a.address, &b.address));
    if contributions > 0 {
        found.dedup_by(|later, kept| {
            let same = later.address == kept.address;
            if same && !later.terminating {
                std::mem::swap(later, kept);
            }
            same
        });
    }
    found
}

/// Plain byte order of the texts `ip:port` and `[ip]:port`.
fn by_text(a: &SocketAddr, b: &SocketAddr) -> Ordering {
    if a == b {
        return Ordering::Equal;
    }
    Text::of(a).as_bytes().cmp(Text::of(b).as_bytes())
}

/// The text of an address in place: sorting makes many of them.
struct Text {
    bytes: [u8; 64],
    length: usize,
}

impl Text {
    fn of(address: &SocketAddr) -> Self {
        let mut text = Self { bytes: [0; 64], length: 0 };
        match address {
            SocketAddr::V4(v4) => {
                for (index, octet) in v4.ip().octets().into_iter().enumerate() {
                    if index > 0 {
                        text.push(b'.');
                    }
                    text.decimal(octet.into());
                }
                text.push(b':');
                text.decimal(v4.port());
            }
            SocketAddr::V6(_) => {
                use std::io::Write as _;
                let mut rest = &mut text.bytes[..];
                // The longest text is 47 bytes, so nothing is cut.
                let _ = write!(rest, "{address}");
                let left = rest.len();
                text.length = text.bytes.len() - left;
            }
        }
        text
    }

    fn decimal(&mut self, number: u16) {
        let mut divisor = 10_000;
        while divisor > 1 && number / divisor == 0 {
            divisor /= 10;
        }
        while divisor > 0 {
            // A remainder of ten fits into a byte.
            self.push(b'0' + u8::try_from(number / divisor % 10).unwrap_or_default());
            divisor /= 10;
        }
    }

    fn push(&mut self, byte: u8) {
        if let Some(slot) = self.bytes.get_mut(self.length) {
            *slot = byte;
            self.length += 1;
        }
    }

    fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_order_is_that_of_the_texts(a: SocketAddr, b: SocketAddr) {
            let plain = |address: &SocketAddr| match address {
                // Scope and flow are no part of an endpoint.
                SocketAddr::V6(v6) => SocketAddr::new((*v6.ip()).into(), v6.port()),
                SocketAddr::V4(_) => *address,
            };
            let (a, b) = (plain(&a), plain(&b));
            prop_assert_eq!(by_text(&a, &b), a.to_string().cmp(&b.to_string()));
        }
    }
}
