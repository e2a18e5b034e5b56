//! The sockets of health-check node ports, opened and closed as services change.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use sluicegate_services::{Family, NodePorts, ServiceName};

use super::http::{Handler, Listening, Server};
use super::service_health::ServiceHealth;

/// The open sockets, and their services.
#[derive(Debug, Default)]
pub(super) struct Ports {
    open: BTreeMap<SocketAddr, Open>,
}

#[derive(Debug)]
struct Open {
    owner: (Family, ServiceName),
    /// Closes the port when dropped.
    _listening: Listening,
}

impl Ports {
    /// Opens and closes sockets, so that they match `services` on these addresses. Returns what could not be
    /// opened, which is retried the next time. `handler` returns the handler of a service.
    ///
    /// Each port has one service, as the model decides.
    pub(super) fn follow(
        &mut self,
        server: &Server,
        services: &ServiceHealth,
        addresses: impl Fn(Family) -> NodePorts,
        handler: impl Fn(Family, &ServiceName) -> Handler,
    ) -> Vec<String> {
        let mut warnings = Vec::new();
        let wanted = wanted(services, addresses);
        self.open.retain(|address, open| wanted.get(address) == Some(&open.owner));
        for (address, owner) in wanted {
            if self.open.contains_key(&address) {
                continue;
            }
            let (family, name) = &owner;
            match server.listen(
                &format!("the health check of service {name}"),
                address,
                handler(*family, name),
            ) {
                Ok(listening) => {
                    self.open.insert(address, Open { owner, _listening: listening });
                }
                Err(error) => warnings.push(error.to_string()),
            }
        }
        warnings
    }

    /// Returns the number of open sockets.
    pub(super) fn len(&self) -> usize {
        self.open.len()
    }
}

fn wanted(
    services: &ServiceHealth,
    addresses: impl Fn(Family) -> NodePorts,
) -> BTreeMap<SocketAddr, (Family, ServiceName)> {
    let mut wanted = BTreeMap::new();
    let on: BTreeMap<Family, BTreeSet<IpAddr>> =
        Family::BOTH.into_iter().map(|family| (family, listen_on(family, addresses(family)))).collect();
    for (family, name, check) in services.iter() {
        for ip in on.get(&family).into_iter().flatten() {
            wanted.insert(SocketAddr::new(*ip, check.port.get()), (family, name.clone()));
        }
    }
    wanted
}

fn listen_on(family: Family, addresses: NodePorts) -> BTreeSet<IpAddr> {
    match (addresses, family) {
        (NodePorts::On(addresses), _) => addresses,
        (NodePorts::All, Family::Ipv4) => [IpAddr::from(Ipv4Addr::UNSPECIFIED)].into(),
        (NodePorts::All, Family::Ipv6) => [IpAddr::from(Ipv6Addr::UNSPECIFIED)].into(),
    }
}
