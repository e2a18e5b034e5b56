//! The objects that all services together need, and the effects of a change of some services.
//!
//! Two service ports may want the same entry (an endpoint of both, an address with two ports), so that each
//! is counted. Two may want the same virtual server: while services are replanned one by one, or where an
//! external IP is an address of the node that the model does not know, with a port that is another's node
//! port. As in the other modes, the address then goes before the node port, and among equals the name
//! decides.

use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Unbounded};

use sluicegate_ipset::Element;
use sluicegate_ipvs::{Command, DestinationConfig, Forward, ServiceId, Table, diff};
use sluicegate_services::{PortName, ServiceName};

use super::port::{PortPlan, Server, Vip};
use super::set::Set;

/// The wanted objects of the kernel, except for iptables rules.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Wanted {
    /// The entries of each set, with the number of service ports that want them.
    entries: [BTreeMap<Element, usize>; Set::ALL.len()],
    /// The claims to each virtual server, in their order; the first one has it. Most have one, for which a
    /// tree would allocate a node of eleven.
    servers: BTreeMap<ServiceId, Vec<Claim>>,
    refused: BTreeMap<Vip, usize>,
}

/// A service port's claim to a virtual server.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Claim {
    port: PortName,
    server: Server,
}

impl Claim {
    fn order(&self) -> (bool, &PortName) {
        (self.server.is_node_port, &self.port)
    }
}

/// The objects that were touched, with their previous state.
#[derive(Debug, Default)]
pub(super) struct PreviousState {
    pub(super) entries: BTreeMap<(Set, Element), bool>,
    pub(super) servers: BTreeMap<ServiceId, Option<Server>>,
}

impl Wanted {
    /// Notes the present state of the objects of a service port, which is about to be added or removed.
    pub(super) fn touch(&self, plan: &PortPlan, touched: &mut PreviousState) {
        for key in &plan.entries {
            touched.entries.entry(*key).or_insert_with(|| self.has(key));
        }
        for (id, _) in &plan.servers {
            touched.servers.entry(*id).or_insert_with(|| self.server(id).cloned());
        }
    }

    pub(super) fn add(&mut self, plan: &PortPlan) {
        for (set, element) in &plan.entries {
            *self.entries[*set as usize].entry(*element).or_default() += 1;
        }
        for (id, server) in &plan.servers {
            let claim = Claim { port: plan.name.clone(), server: server.clone() };
            let claims = self.servers.entry(*id).or_insert_with(|| Vec::with_capacity(1));
            match claims.binary_search_by(|other| other.order().cmp(&claim.order())) {
                Ok(place) => claims[place] = claim,
                Err(place) => claims.insert(place, claim),
            }
        }
        for vip in &plan.refused {
            *self.refused.entry(*vip).or_default() += 1;
        }
    }

    pub(super) fn remove(&mut self, plan: &PortPlan) {
        for (set, element) in &plan.entries {
            drop_one(&mut self.entries[*set as usize], element);
        }
        for (id, server) in &plan.servers {
            if let Some(claims) = self.servers.get_mut(id) {
                claims.retain(|claim| claim.order() != (server.is_node_port, &plan.name));
                if claims.is_empty() {
                    self.servers.remove(id);
                }
            }
        }
        for vip in &plan.refused {
            drop_one(&mut self.refused, vip);
        }
    }

    pub(super) fn has(&self, (set, element): &(Set, Element)) -> bool {
        self.entries[*set as usize].contains_key(element)
    }

    pub(super) fn server(&self, id: &ServiceId) -> Option<&Server> {
        self.servers.get(id)?.first().map(|claim| &claim.server)
    }

    /// Returns the number of virtual servers.
    pub(super) fn server_count(&self) -> usize {
        self.servers.len()
    }

    pub(super) fn owner(&self, id: &ServiceId) -> Option<&ServiceName> {
        self.servers.get(id)?.first().map(|claim| &claim.port.service)
    }

    pub(super) fn elements(&self, set: Set) -> impl ExactSizeIterator<Item = &Element> {
        self.entries[set as usize].keys()
    }

    pub(super) fn size(&self, set: Set) -> usize {
        self.entries[set as usize].len()
    }

    pub(super) fn refused(&self) -> impl Iterator<Item = &Vip> {
        self.refused.keys()
    }

    /// Returns all virtual servers.
    pub(super) fn table(&self) -> Table {
        let mut table = Table::new();
        self.servers().for_each(|(id, server)| put(&mut table, *id, server));
        table
    }

    /// Returns the commands that lead from the listed virtual servers to the wanted ones.
    pub(super) fn commands(&self, listed: &Table) -> Vec<Command> {
        let (mut commands, mut known) = (Vec::new(), Table::new());
        for (id, server) in self.servers() {
            if listed.get(id).is_some() {
                put(&mut known, *id, server);
                continue;
            }
            // A first sync has nothing else, and a table of all these would be made to be read once.
            commands.push(Command::AddService { id: *id, config: server.config });
            commands.extend(server.endpoints.iter().map(|endpoint| Command::AddDestination {
                service: *id,
                id: *endpoint,
                config: DESTINATION,
            }));
        }
        commands.append(&mut diff(&known, listed));
        commands
    }

    /// Returns the virtual servers after this one, and then all others.
    pub(super) fn servers_after(
        &self,
        id: Option<&ServiceId>,
    ) -> impl Iterator<Item = (&ServiceId, &Server)> {
        let after = self.servers.range((id.map_or(Unbounded, Excluded), Unbounded));
        let others = id.into_iter().flat_map(|id| self.servers.range(..=id));
        after.chain(others).filter_map(|(id, claims)| Some((id, &claims.first()?.server)))
    }

    fn servers(&self) -> impl Iterator<Item = (&ServiceId, &Server)> {
        self.servers_after(None)
    }
}

/// The configuration of all our destinations, except for the weight.
pub(super) const DESTINATION: DestinationConfig = DestinationConfig::new(Forward::Masquerade);

/// Adds a virtual server to a table.
pub(super) fn put(table: &mut Table, id: ServiceId, server: &Server) {
    let entry = table.service(id, server.config);
    for endpoint in server.endpoints.iter() {
        entry.destination(*endpoint, DESTINATION);
    }
}

/// Decrements a count.
fn drop_one<K: Ord>(counts: &mut BTreeMap<K, usize>, key: &K) {
    if let Some(count) = counts.get_mut(key) {
        *count -= 1;
        if *count == 0 {
            counts.remove(key);
        }
    }
}
