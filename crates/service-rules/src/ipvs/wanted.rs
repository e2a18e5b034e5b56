//! The objects that all services together need, and the effects of a change of some services.
//!
//! Two service ports may want the same entry (an endpoint of both, an address with two ports), so that each
//! is counted. Two may want the same virtual server: while services are replanned one by one, or where an
//! external IP is an address of the node that the model does not know, with a port that is another's node
//! port. As in the other modes, the address then goes before the node port, and among equals the name
//! decides.

use std::collections::BTreeMap;

use sluicegate_ipset::Element;
use sluicegate_ipvs::{DestinationConfig, Forward, ServiceId, Table};
use sluicegate_services::{PortName, ServiceName};

use super::port::{PortPlan, Server, Vip};
use super::set::Set;

/// The wanted objects of the kernel, except for iptables rules.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Wanted {
    entries: BTreeMap<(Set, Element), usize>,
    /// The number of distinct entries of each set.
    sizes: [usize; Set::ALL.len()],
    /// The claims to each virtual server; the first one has it.
    servers: BTreeMap<ServiceId, BTreeMap<(bool, PortName), Server>>,
    refused: BTreeMap<Vip, usize>,
}

/// The objects that were touched, with their previous state.
#[derive(Debug, Default)]
pub(super) struct Touched {
    pub(super) entries: BTreeMap<(Set, Element), bool>,
    pub(super) servers: BTreeMap<ServiceId, Option<Server>>,
}

impl Wanted {
    /// Notes the present state of the objects of a service port, which is about to be added or removed.
    pub(super) fn touch(&self, plan: &PortPlan, touched: &mut Touched) {
        for key in &plan.entries {
            touched.entries.entry(*key).or_insert_with(|| self.has(key));
        }
        for (id, _) in &plan.servers {
            touched.servers.entry(*id).or_insert_with(|| self.server(id).cloned());
        }
    }

    pub(super) fn add(&mut self, plan: &PortPlan) {
        for key in &plan.entries {
            let count = self.entries.entry(*key).or_default();
            if *count == 0 {
                self.sizes[key.0 as usize] += 1;
            }
            *count += 1;
        }
        for (id, server) in &plan.servers {
            self.servers
                .entry(*id)
                .or_default()
                .insert((server.is_node_port, plan.name.clone()), server.clone());
        }
        for vip in &plan.refused {
            *self.refused.entry(*vip).or_default() += 1;
        }
    }

    pub(super) fn remove(&mut self, plan: &PortPlan) {
        for key in &plan.entries {
            if drop_one(&mut self.entries, key) {
                self.sizes[key.0 as usize] -= 1;
            }
        }
        for (id, server) in &plan.servers {
            if let Some(claims) = self.servers.get_mut(id) {
                claims.remove(&(server.is_node_port, plan.name.clone()));
                if claims.is_empty() {
                    self.servers.remove(id);
                }
            }
        }
        for vip in &plan.refused {
            drop_one(&mut self.refused, vip);
        }
    }

    pub(super) fn has(&self, key: &(Set, Element)) -> bool {
        self.entries.contains_key(key)
    }

    pub(super) fn server(&self, id: &ServiceId) -> Option<&Server> {
        self.servers.get(id)?.values().next()
    }

    pub(super) fn owner(&self, id: &ServiceId) -> Option<&ServiceName> {
        let (_, port) = self.servers.get(id)?.keys().next()?;
        Some(&port.service)
    }

    pub(super) fn elements(&self, set: Set) -> impl Iterator<Item = &Element> {
        let of_set = self.entries.keys().filter(move |(of, _)| *of == set);
        of_set.map(|(_, element)| element)
    }

    pub(super) fn size(&self, set: Set) -> usize {
        self.sizes[set as usize]
    }

    pub(super) fn refused(&self) -> impl Iterator<Item = &Vip> {
        self.refused.keys()
    }

    /// Returns all virtual servers.
    pub(super) fn table(&self) -> Table {
        let mut table = Table::new();
        for (id, claims) in &self.servers {
            if let Some(server) = claims.values().next() {
                put(&mut table, *id, server);
            }
        }
        table
    }
}

/// Adds a virtual server to a table.
pub(super) fn put(table: &mut Table, id: ServiceId, server: &Server) {
    let entry = table.service(id, server.config);
    for endpoint in server.endpoints.iter() {
        entry.destination(*endpoint, DestinationConfig::new(Forward::Masquerade));
    }
}

/// Decrements a count. Returns true if that was the last.
fn drop_one<K: Ord>(counts: &mut BTreeMap<K, usize>, key: &K) -> bool {
    let Some(count) = counts.get_mut(key) else { return false };
    *count -= 1;
    let last = *count == 0;
    if last {
        counts.remove(key);
    }
    last
}
