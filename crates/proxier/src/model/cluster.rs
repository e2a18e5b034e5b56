//! The state of the cluster as this node sees it, and what changed since it was last asked.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::SystemTime;

use ipnet::IpNet;

use super::{Family, Node, Protocol, Service, ServiceName, ServicePort, Slice, SliceName, Topology};

/// Services and their endpoints, this node, and the networks of cluster IPs.
///
/// Changes are noted per service, with the state before the first of them: a service that is changed and changed back
/// has not changed. Asking what changed costs what changed, whatever the size of the cluster.
#[derive(Debug, Default)]
pub struct Cluster {
    node: Node,
    services: HashMap<ServiceName, Entry>,
    slices: HashMap<SliceName, ServiceName>,
    service_cidrs: BTreeMap<String, Box<[IpNet]>>,
    pending: BTreeMap<ServiceName, Pending>,
    service_changes: u64,
    endpoint_changes: u64,
    /// The services of which some traffic must stay on its node.
    local: BTreeSet<ServiceName>,
}

/// What is known of one service: its configuration and its slices by name. Cloning it copies references only.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Entry {
    service: Option<Arc<Service>>,
    slices: BTreeMap<Arc<str>, Arc<Slice>>,
}

/// A service that was touched since it was last asked for.
#[derive(Debug)]
struct Pending {
    before: Entry,
    /// It counts as changed even when it is as before: what it means has changed.
    forced: bool,
    /// The times of the events behind its changed slices.
    triggers: Vec<(Family, SystemTime)>,
}

impl Pending {
    const fn new(before: Entry, forced: bool) -> Self {
        Self { before, forced, triggers: Vec::new() }
    }
}

/// How much has changed: since the beginning, and since [`Cluster::take_changes`] was called last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChangeCounts {
    /// Times that a service was set or removed and so became different.
    pub services: u64,
    /// Times that a slice was set or removed and so became different.
    pub endpoints: u64,
    /// Services whose configuration is not as it was.
    pub services_pending: usize,
    /// Services whose slices are not as they were.
    pub endpoints_pending: usize,
}

impl Entry {
    fn is_empty(&self) -> bool {
        self.service.is_none() && self.slices.is_empty()
    }

    fn ports(&self, name: &ServiceName, family: Family, node: &str) -> Vec<ServicePort<'_>> {
        let Some(service) = self.service.as_deref().filter(|s| s.cluster_ip(family).is_some()) else {
            return Vec::new();
        };
        let slices: Vec<&Slice> = self.slices.values().map(AsRef::as_ref).collect();
        ServicePort::all(name, service, &slices, family, node)
    }

    fn has_udp(&self) -> bool {
        let service = self.service.iter().flat_map(|service| service.ports.iter().map(|port| port.protocol));
        let slices = self.slices.values().flat_map(|slice| slice.ports.iter().map(|port| port.protocol));
        service.chain(slices).any(|protocol| protocol == Protocol::Udp)
    }
}

impl Cluster {
    /// An empty cluster, seen from `node`.
    #[must_use]
    pub fn new(node: Node) -> Self {
        Self { node, ..Self::default() }
    }

    /// This node.
    #[must_use]
    pub const fn node(&self) -> &Node {
        &self.node
    }

    /// Where this node is.
    #[must_use]
    pub fn topology(&self) -> Topology {
        Topology { node: self.node.name.clone(), zone: self.node.zone.clone() }
    }

    /// How many services there are, those that have only slices left out.
    #[must_use]
    pub fn service_count(&self) -> usize {
        self.services.values().filter(|entry| entry.service.is_some()).count()
    }

    /// The names of all services, in no order.
    pub fn service_names(&self) -> impl Iterator<Item = &ServiceName> {
        self.services.iter().filter(|(_, entry)| entry.service.is_some()).map(|(name, _)| name)
    }

    /// All services, in no order.
    pub fn services(&self) -> impl Iterator<Item = ClusterService<'_>> {
        let present = self.services.iter().filter(|(_, entry)| entry.service.is_some());
        present.map(|(name, entry)| ClusterService { name, entry, node: &self.node.name })
    }

    /// The services with a traffic policy Local, in the order of names; every one with a health-check node port is among them.
    pub fn local_services(&self) -> impl Iterator<Item = (&ServiceName, &Service)> {
        self.local.iter().filter_map(|name| Some((name, self.service(name)?)))
    }

    /// The configuration of a service.
    #[must_use]
    pub fn service(&self, name: &ServiceName) -> Option<&Service> {
        self.services.get(name)?.service.as_deref()
    }

    /// The slices of a service, by name.
    pub fn slices(&self, name: &ServiceName) -> impl Iterator<Item = &Slice> {
        self.services.get(name).into_iter().flat_map(|entry| entry.slices.values().map(AsRef::as_ref))
    }

    /// The names of all slices, in no order.
    pub fn slice_names(&self) -> impl Iterator<Item = &SliceName> {
        self.slices.keys()
    }

    /// The networks from which cluster IPs are taken, in the order of their objects' names; none when not known.
    pub fn service_cidrs(&self, family: Family) -> impl Iterator<Item = IpNet> {
        self.service_cidrs.values().flatten().copied().filter(move |net| Family::of_net(net) == family)
    }

    /// The ports of a service in one family, with their endpoints; none for a service that is not there.
    #[must_use]
    pub fn ports(&self, name: &ServiceName, family: Family) -> Vec<ServicePort<'_>> {
        self.services.get(name).map(|entry| entry.ports(name, family, &self.node.name)).unwrap_or_default()
    }

    /// Sets or removes a service.
    pub fn set_service(&mut self, name: &ServiceName, service: Option<Service>) {
        if self.service(name) == service.as_ref() {
            return;
        }
        self.service_changes += 1;
        match &service {
            Some(service) if service.internal_local || service.external_local => {
                self.local.insert(name.clone());
            }
            _ => {
                self.local.remove(name);
            }
        }
        self.touch(name, |entry| entry.service = service.map(Arc::new));
    }

    /// Sets or removes a slice. One that now belongs to another service leaves the first.
    pub fn set_slice(&mut self, name: &SliceName, slice: Option<Slice>) {
        let owner = slice.as_ref().map(|slice| slice.service.clone());
        let held = self.slices.get(name).and_then(|owner| self.services.get(owner)?.slices.get(&name.name));
        if held.map(AsRef::as_ref) == slice.as_ref() {
            return;
        }
        self.endpoint_changes += 1;
        let previous = match &owner {
            Some(owner) => self.slices.insert(name.clone(), owner.clone()),
            None => self.slices.remove(name),
        };
        if let Some(previous) = previous.filter(|previous| Some(previous) != owner.as_ref()) {
            self.touch(&previous, |entry| drop(entry.slices.remove(&name.name)));
            // As kube-proxy does: which of the service's times was the removed slice's is not known.
            self.pending.entry(previous).and_modify(|pending| pending.triggers.clear());
        }
        if let (Some(owner), Some(slice)) = (owner, slice) {
            let trigger = slice.last_change.map(|time| (slice.family, time));
            self.touch(&owner, |entry| drop(entry.slices.insert(Arc::clone(&name.name), Arc::new(slice))));
            self.pending.entry(owner).and_modify(|pending| pending.triggers.extend(trigger));
        }
    }

    /// Sets the networks of one ServiceCIDR object, or removes it with none.
    pub fn set_service_cidr(&mut self, name: &str, cidrs: &[IpNet]) {
        if cidrs.is_empty() {
            self.service_cidrs.remove(name);
        } else {
            self.service_cidrs.insert(name.to_owned(), cidrs.into());
        }
    }

    /// Sets this node. A new name or zone concerns every service, so that all of them count as changed.
    pub fn set_node(&mut self, node: Node) {
        if (&node.name, &node.zone) != (&self.node.name, &self.node.zone) {
            for (name, entry) in &self.services {
                let before = || Pending::new(entry.clone(), true);
                self.pending.entry(name.clone()).or_insert_with(before).forced = true;
            }
        }
        self.node = node;
    }

    /// True when something changed since the last [`Cluster::take_changes`].
    #[must_use]
    pub fn has_changes(&self) -> bool {
        !self.pending.is_empty()
    }

    /// How much has changed.
    #[must_use]
    pub fn change_counts(&self) -> ChangeCounts {
        let mut counts = ChangeCounts {
            services: self.service_changes,
            endpoints: self.endpoint_changes,
            ..ChangeCounts::default()
        };
        let gone = Entry::default();
        for (name, pending) in &self.pending {
            let now = self.services.get(name).unwrap_or(&gone);
            counts.services_pending += usize::from(pending.before.service != now.service);
            counts.endpoints_pending += usize::from(pending.before.slices != now.slices);
        }
        counts
    }

    /// What changed since the last call, in the order of names.
    pub fn take_changes(&mut self) -> Changes {
        let change = |(name, pending): (ServiceName, Pending)| Change {
            name,
            before: pending.before,
            triggers: pending.triggers,
        };
        Changes(std::mem::take(&mut self.pending).into_iter().map(change).collect())
    }

    fn touch(&mut self, name: &ServiceName, change: impl FnOnce(&mut Entry)) {
        let entry = self.services.entry(name.clone()).or_default();
        let fresh = || Pending::new(entry.clone(), false);
        let pending = self.pending.entry(name.clone()).or_insert_with(fresh);
        change(entry);
        if !pending.forced && pending.before == *entry {
            self.pending.remove(name);
        }
        if self.services.get(name).is_some_and(Entry::is_empty) {
            self.services.remove(name);
        }
    }
}

/// A service of a cluster, found already.
#[derive(Clone, Copy, Debug)]
pub struct ClusterService<'a> {
    /// Its name.
    pub name: &'a ServiceName,
    entry: &'a Entry,
    node: &'a str,
}

impl<'a> ClusterService<'a> {
    /// Its ports in one family, with their endpoints; none when it has no cluster IP there.
    #[must_use]
    pub fn ports(&self, family: Family) -> Vec<ServicePort<'a>> {
        self.entry.ports(self.name, family, self.node)
    }

    /// It has a cluster IP of this family.
    #[must_use]
    pub fn has(&self, family: Family) -> bool {
        self.entry.service.as_deref().is_some_and(|service| service.cluster_ip(family).is_some())
    }
}

/// What changed between two calls of [`Cluster::take_changes`].
#[derive(Debug, Default)]
pub struct Changes(Vec<Change>);

impl Changes {
    /// The services that changed, in order.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &ServiceName> {
        self.0.iter().map(|change| &change.name)
    }

    /// Each change with the state before it.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Change> {
        self.0.iter()
    }

    /// Nothing changed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Connection tracking may hold flows to endpoints that are no more: a service with a UDP port changed.
    #[must_use]
    pub fn concerns_udp(&self, now: &Cluster) -> bool {
        let after = |name| now.services.get(name).is_some_and(Entry::has_udp);
        self.0.iter().any(|change| change.before.has_udp() || after(&change.name))
    }
}

/// One service that changed, and what it was before.
#[derive(Debug)]
pub struct Change {
    /// Which.
    pub name: ServiceName,
    before: Entry,
    triggers: Vec<(Family, SystemTime)>,
}

impl Change {
    /// The ports that it had before the change, with their endpoints.
    #[must_use]
    pub fn ports_before(&self, family: Family, node: &str) -> Vec<ServicePort<'_>> {
        self.before.ports(&self.name, family, node)
    }

    /// When the events happened that led to new contents of its slices, as the slices tell.
    #[must_use]
    pub fn triggers(&self) -> &[(Family, SystemTime)] {
        &self.triggers
    }
}

#[cfg(test)]
mod tests;
