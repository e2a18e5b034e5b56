//! The sockets of the health-check node ports: opened and closed as services come, change and go.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::http::{Handler, Listening, Server};
use super::service_health::ServiceHealth;
use crate::model::{Family, NodePorts, ServiceName};

/// Which sockets are open, and whose each is.
#[derive(Debug, Default)]
pub(super) struct Ports {
    open: BTreeMap<SocketAddr, Open>,
}

#[derive(Debug)]
struct Open {
    owner: (Family, ServiceName),
    /// Held for what its end does: the port is closed.
    _listening: Listening,
}

impl Ports {
    /// Opens and closes what differs from what `services` want on these addresses; says what could not be opened, which is
    /// tried again the next time. `handler` makes the answers of a service.
    ///
    /// Of two services that want one port the first by name has it, whichever came first.
    pub(super) fn follow(
        &mut self,
        server: &Server,
        services: &ServiceHealth,
        addresses: impl Fn(Family) -> NodePorts,
        handler: impl Fn(Family, &ServiceName) -> Handler,
    ) -> Vec<String> {
        let mut troubles = Vec::new();
        let wanted = wanted(services, addresses, &mut troubles);
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
                Err(error) => troubles.push(error.to_string()),
            }
        }
        troubles
    }

    /// How many sockets are open.
    pub(super) fn len(&self) -> usize {
        self.open.len()
    }
}

fn wanted(
    services: &ServiceHealth,
    addresses: impl Fn(Family) -> NodePorts,
    troubles: &mut Vec<String>,
) -> BTreeMap<SocketAddr, (Family, ServiceName)> {
    let mut wanted: BTreeMap<SocketAddr, (Family, ServiceName)> = BTreeMap::new();
    let on: BTreeMap<Family, BTreeSet<IpAddr>> =
        Family::BOTH.into_iter().map(|family| (family, listen_on(family, addresses(family)))).collect();
    for (family, name, check) in services.iter() {
        for ip in on.get(&family).into_iter().flatten() {
            let address = SocketAddr::new(*ip, check.port.get());
            match wanted.get(&address) {
                Some((_, owner)) => troubles.push(format!(
                    "the health check of service {name} cannot listen on {address}: service {owner} has the same port"
                )),
                None => drop(wanted.insert(address, (family, name.clone()))),
            }
        }
    }
    wanted
}

fn listen_on(family: Family, addresses: NodePorts) -> BTreeSet<IpAddr> {
    match (addresses, family) {
        (NodePorts::On(addresses), _) => addresses,
        (NodePorts::All, Family::V4) => [IpAddr::from(Ipv4Addr::UNSPECIFIED)].into(),
        (NodePorts::All, Family::V6) => [IpAddr::from(Ipv6Addr::UNSPECIFIED)].into(),
    }
}
