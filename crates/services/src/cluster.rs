//! The state of the cluster as this node sees it, and what changed since it was last asked.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::SystemTime;

use ipnet::IpNet;

use crate::conflict::{Claims, ServiceClaims};
use crate::slots::{NO_SLOTS, Tables};
use crate::{
    ClaimKind, Conflict, Family, Frontend, Node, NotServed, Protocol, Service, ServiceName, ServicePort,
    Slice, SliceName, Topology, Warning,
};

/// Services and their endpoints, this node, and the networks of cluster IPs.
///
/// Changes are noted per service, with the state before the first of them: a service that is changed and
/// changed back has not changed. Asking what changed costs what changed, whatever the size of the cluster.
/// Cloning it copies maps of references.
///
/// ```
/// use sluicegate_services::{Cluster, Family, Node, Port, Service, ServiceName};
///
/// let mut cluster = Cluster::new(Node::new("node-1", ["192.168.0.2".parse()?]));
/// let web = ServiceName::new("demo", "web")?;
/// cluster.set_service(&web, Service::new(["10.96.0.10".parse()?], [Port::tcp("http", 80)?])?);
/// assert_eq!(cluster.ports(&web, Family::Ipv4).len(), 1);
/// assert_eq!(cluster.ports(&web, Family::Ipv6).len(), 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Cluster {
    node: Node,
    services: HashMap<ServiceName, Entry>,
    slices: HashMap<SliceName, ServiceName>,
    service_cidrs: BTreeMap<String, Box<[IpNet]>>,
    pending: BTreeMap<ServiceName, Pending>,
    service_changes: u64,
    endpoint_changes: u64,
    /// The services that have a traffic policy Local.
    local: BTreeSet<ServiceName>,
    claims: Claims,
    /// The tables that schedulers of services ask for.
    tables: Tables,
    forbids_external_ips: bool,
    /// The addresses of objects that are not served.
    not_served: BTreeMap<ServiceName, Box<[NotServed]>>,
}

/// One service: its configuration, and its slices by name. Cloning it copies references only.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Entry {
    service: Option<Arc<Service>>,
    slices: Slices,
    /// The frontends that it claims and another service has.
    lost: BTreeSet<Frontend>,
}

/// The slices of one service, sorted by name. Most services have one, for which a tree would allocate a node
/// of eleven.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Slices(Vec<(Arc<str>, Arc<Slice>)>);

impl Slices {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn iter(&self) -> impl Iterator<Item = (&str, &Slice)> + Clone {
        self.0.iter().map(|(name, slice)| (&**name, &**slice))
    }

    fn get(&self, name: &str) -> Option<&Slice> {
        let place = self.find(name).ok()?;
        self.0.get(place).map(|(_, slice)| &**slice)
    }

    fn insert(&mut self, name: &Arc<str>, slice: Slice) {
        let new = (Arc::clone(name), Arc::new(slice));
        match self.find(name) {
            Ok(place) => {
                if let Some(old) = self.0.get_mut(place) {
                    *old = new;
                }
            }
            Err(place) => {
                self.0.reserve_exact(1);
                self.0.insert(place, new);
            }
        }
    }

    fn remove(&mut self, name: &str) {
        if let Ok(place) = self.find(name) {
            self.0.remove(place);
        }
    }

    fn find(&self, name: &str) -> Result<usize, usize> {
        self.0.binary_search_by(|(other, _)| (**other).cmp(name))
    }
}

/// A service that was touched since the last [`Cluster::take_changes`].
#[derive(Clone, Debug)]
struct Pending {
    before: Entry,
    /// Whether it counts as changed even if its objects are as before, because the node has changed.
    forced: bool,
    /// The times of the events behind its changed slices.
    triggers: Vec<(Family, SystemTime)>,
}

impl Pending {
    const fn new(before: Entry, forced: bool) -> Self {
        Self { before, forced, triggers: Vec::new() }
    }
}

/// Counts of changes: since the beginning, and since the last [`Cluster::take_changes`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChangeCounts {
    /// Number of times that setting or removing a service changed it.
    pub services: u64,
    /// Number of times that setting or removing a slice changed it.
    pub endpoints: u64,
    /// Number of services whose configuration has changed since the last [`Cluster::take_changes`].
    pub services_pending: usize,
    /// Number of services whose slices have changed since the last [`Cluster::take_changes`].
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
        let slices = self.slices.iter().map(|(_, slice)| slice);
        ServicePort::all(name, service, &self.lost, &slices, family, node)
    }

    fn has(&self, is_wanted: impl Fn(Protocol) -> bool) -> bool {
        let service = self.service.iter().flat_map(|service| service.ports.iter().map(|port| port.protocol));
        let slices = self.slices.iter().flat_map(|(_, slice)| slice.ports.iter().map(|port| port.protocol));
        service.chain(slices).any(is_wanted)
    }
}

impl Cluster {
    /// Creates an empty cluster, seen from `node`.
    #[must_use]
    pub fn new(node: Node) -> Self {
        Self { node, ..Self::default() }
    }

    /// Leaves `spec.externalIPs` of every service out, as kube-proxy does where the feature gate
    /// `AllowServiceExternalIPs` is off (KEP-5707): whoever may write a Service could otherwise take the
    /// traffic to any address (CVE-2020-8554). [`Service::forbidden_external_ips`] says which were left out.
    ///
    /// ```
    /// use sluicegate_services::{Cluster, Family, Port, Service, ServiceName};
    ///
    /// let mut cluster = Cluster::default();
    /// cluster.forbid_external_ips();
    /// let (name, address) = (ServiceName::new("demo", "web")?, "192.0.2.1".parse()?);
    /// let service = Service::new(["172.30.0.1".parse()?], [Port::tcp("http", 80)?])?;
    /// cluster.set_service(&name, service.with_external_ips([address]));
    /// assert!(cluster.ports(&name, Family::Ipv4)[0].external_ips.is_empty());
    /// assert_eq!(*cluster.service(&name).unwrap().forbidden_external_ips, [address]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn forbid_external_ips(&mut self) {
        self.forbids_external_ips = true;
        let with = |(name, entry): (&ServiceName, &Entry)| Some((name.clone(), entry.service.clone()?));
        let known: Vec<_> = self.services.iter().filter_map(with).collect();
        for (name, service) in known {
            self.set_service(&name, Service::clone(&service));
        }
    }

    /// Returns the services of which external IPs are left out, in the order of names.
    pub fn forbidden_external_ips(&self) -> impl Iterator<Item = (&ServiceName, &[IpAddr])> {
        let mut found: Vec<_> = self
            .services
            .iter()
            .filter_map(|(name, entry)| Some((name, &*entry.service.as_ref()?.forbidden_external_ips)))
            .filter(|(_, left_out)| !left_out.is_empty())
            .collect();
        found.sort_unstable_by_key(|(name, _)| *name);
        found.into_iter()
    }

    /// Returns this node.
    #[must_use]
    pub const fn node(&self) -> &Node {
        &self.node
    }

    /// Returns the name and zone of this node, as [`categorize`](crate::categorize()) takes them.
    #[must_use]
    pub fn topology(&self) -> Topology {
        Topology { node: self.node.name.clone(), zone: self.node.zone.clone() }
    }

    /// Returns the number of services. Those for which there are only slices do not count.
    #[must_use]
    pub fn service_count(&self) -> usize {
        self.services.values().filter(|entry| entry.service.is_some()).count()
    }

    /// Returns the names of all services, in no order.
    pub fn service_names(&self) -> impl Iterator<Item = &ServiceName> {
        self.services.iter().filter(|(_, entry)| entry.service.is_some()).map(|(name, _)| name)
    }

    /// Iterates over all services, in no order that means anything.
    pub fn services(&self) -> impl Iterator<Item = ClusterService<'_>> {
        // The order in which they lie in memory, mostly that of their arrival, when their slices and names
        // were allocated too. In the order of the hash, each would have to wait for memory.
        let address = |entry: &Entry| entry.service.as_ref().map(|service| Arc::as_ptr(service).addr());
        let mut present: Vec<_> =
            self.services.iter().filter_map(|(name, entry)| Some((address(entry)?, name, entry))).collect();
        present.sort_unstable_by_key(|(address, ..)| *address);
        present.into_iter().map(|(_, name, entry)| ClusterService { name, entry, node: &self.node.name })
    }

    /// Returns the services with a traffic policy Local, in the order of names; every one with a health-check
    /// node port is among them.
    pub fn local_services(&self) -> impl Iterator<Item = (&ServiceName, &Service)> {
        self.local.iter().filter_map(|name| Some((name, self.service(name)?)))
    }

    /// Returns the configuration of a service.
    #[must_use]
    pub fn service(&self, name: &ServiceName) -> Option<&Service> {
        self.services.get(name)?.service.as_deref()
    }

    /// Returns the slices of a service, by name.
    pub fn slices(&self, name: &ServiceName) -> impl Iterator<Item = &Slice> {
        self.named_slices(name).map(|(_, slice)| slice)
    }

    /// Returns the slices of a service with their names, in the order of names.
    pub fn named_slices(&self, name: &ServiceName) -> impl Iterator<Item = (&str, &Slice)> {
        self.services.get(name).into_iter().flat_map(|entry| entry.slices.iter())
    }

    /// Returns the service that has a frontend, and the field by which it claims it; `None` when no service
    /// claims it.
    ///
    /// A node port is claimed for the addresses of this node as well, so that both of its frontends lead to
    /// its service.
    ///
    /// ```
    /// use sluicegate_services::{ClaimKind, Cluster, Frontend, Port, Protocol, Service, ServiceName};
    ///
    /// let mut cluster = Cluster::default();
    /// let (name, ip) = (ServiceName::new("demo", "web")?, "172.30.0.1".parse()?);
    /// cluster.set_service(&name, Service::new([ip], [Port::tcp("http", 80)?])?);
    /// let frontend = |port: u16| Frontend::Address(ip, Protocol::Tcp, port.try_into().unwrap());
    /// assert_eq!(cluster.owner(&frontend(80)), Some((&name, ClaimKind::ClusterIp)));
    /// assert_eq!(cluster.owner(&frontend(81)), None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn owner(&self, frontend: &Frontend) -> Option<(&ServiceName, ClaimKind)> {
        self.claims.winner(frontend).map(|claim| (&claim.service, claim.kind))
    }

    /// Returns the names of all slices, in no order.
    pub fn slice_names(&self) -> impl Iterator<Item = &SliceName> {
        self.slices.keys()
    }

    /// Returns the networks from which cluster IPs are taken, in the order of their objects' names; none when
    /// not known.
    pub fn service_cidrs(&self, family: Family) -> impl Iterator<Item = IpNet> {
        self.service_cidrs.values().flatten().copied().filter(move |net| Family::of_net(net) == family)
    }

    /// Returns the ports of a service in one family, with their endpoints; none if the service does not
    /// exist. Frontends that another service has ([`conflicts`](Self::conflicts)) are left out, and so is a
    /// port that has none left.
    #[must_use]
    pub fn ports(&self, name: &ServiceName, family: Family) -> Vec<ServicePort<'_>> {
        self.services.get(name).map(|entry| entry.ports(name, family, &self.node.name)).unwrap_or_default()
    }

    /// Returns every frontend that a service claims in vain, because another service has it, in one order.
    ///
    /// A cluster IP wins over external and load-balancer IPs and over node ports, whose claim extends to the
    /// addresses of this node that are known. Among equals the older object wins ([`Service::created`]), then
    /// the first by name. The service that loses is left without that frontend and keeps its others.
    pub fn conflicts(&self) -> impl Iterator<Item = Conflict> {
        self.claims.conflicts()
    }

    /// Returns the number of [`conflicts`](Self::conflicts).
    #[must_use]
    pub fn conflict_count(&self) -> usize {
        self.claims.conflict_count()
    }

    /// Sets a service, or removes it with `None`. Where it claims a frontend that another service claims, or
    /// releases one, that service may change with it.
    pub fn set_service(&mut self, name: &ServiceName, service: impl Into<Option<Service>>) {
        let mut service = service.into();
        if self.forbids_external_ips {
            service.iter_mut().for_each(Service::forbid_external_ips);
        }
        for (other, scheduler) in self.tables.set(name, service.as_mut()) {
            self.touch(&other, |entry| {
                entry.service.iter_mut().for_each(|service| {
                    Arc::make_mut(service).scheduler = Some(scheduler);
                });
            });
        }
        if self.service(name) == service.as_ref() {
            return;
        }
        self.service_changes += 1;
        let claimed = |service: &Service| ServiceClaims::of(service, &self.node);
        let (before, after) = (self.service(name).map(claimed), service.as_ref().map(claimed));
        let (before, after) = match (before, after) {
            (Some(before), Some(after)) if before.is_same(&after) => (None, None),
            changed => changed,
        };
        self.release(name, before);
        match &service {
            Some(service) if service.internal_local || service.external_local => {
                self.local.insert(name.clone());
            }
            _ => {
                self.local.remove(name);
            }
        }
        self.touch(name, |entry| entry.service = service.map(Arc::new));
        self.claim(name, after);
    }

    /// Returns a warning where a service asks for [`Scheduler::Maglev`](crate::Scheduler::Maglev) and does not have
    /// it: the tables of all services together have at most 1048576 slots (2^20), as each is an element in the kernel
    /// of every node. Those of older objects come first, as with [`conflicts`](Self::conflicts); the others choose at
    /// random. What a node has by default does not count.
    #[must_use]
    pub fn scheduler_without_slots(&self, name: &ServiceName) -> Option<Warning> {
        let scheduler = self.tables.refused(name)?;
        Some(Warning::SchedulerWithoutEffect { service: name.clone(), scheduler, why: NO_SLOTS })
    }

    /// Returns the services that have a warning by [`scheduler_without_slots`](Self::scheduler_without_slots), by age.
    pub fn services_without_slots(&self) -> impl Iterator<Item = &ServiceName> {
        self.tables.all_refused()
    }

    /// Sets the addresses that the object of this name lists and that are not served, to tell those who ask.
    pub fn set_not_served(&mut self, name: &ServiceName, addresses: Vec<NotServed>) {
        if addresses.is_empty() {
            self.not_served.remove(name);
        } else {
            self.not_served.insert(name.clone(), addresses.into());
        }
    }

    /// Returns the addresses that objects list and that are not served, by name.
    pub fn not_served(&self) -> impl Iterator<Item = (&ServiceName, &[NotServed])> {
        self.not_served.iter().map(|(name, addresses)| (name, &**addresses))
    }

    /// Sets a slice, or removes it with `None`. One that now belongs to another service leaves the first.
    pub fn set_slice(&mut self, name: &SliceName, slice: impl Into<Option<Slice>>) {
        let slice = slice.into();
        let owner = slice.as_ref().map(|slice| slice.service.clone());
        let known = self.slices.get(name).and_then(|owner| self.services.get(owner)?.slices.get(&name.name));
        if known == slice.as_ref() {
            return;
        }
        self.endpoint_changes += 1;
        let previous = match &owner {
            Some(owner) => self.slices.insert(name.clone(), owner.clone()),
            None => self.slices.remove(name),
        };
        if let Some(previous) = previous.filter(|previous| Some(previous) != owner.as_ref()) {
            self.touch(&previous, |entry| entry.slices.remove(&name.name));
            // As kube-proxy does: which of the service's times was the removed slice's is not known.
            self.pending.entry(previous).and_modify(|pending| pending.triggers.clear());
        }
        if let (Some(owner), Some(slice)) = (owner, slice) {
            let trigger = slice.last_change.map(|time| (slice.family, time));
            self.touch(&owner, |entry| entry.slices.insert(&name.name, slice));
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

    /// Sets this node. A new name or zone concerns every service, so that all of them count as changed; new
    /// addresses concern those with a node port that another service claims there.
    pub fn set_node(&mut self, node: Node) {
        if (&node.name, &node.zone) != (&self.node.name, &self.node.zone) {
            for (name, entry) in &self.services {
                let before = || Pending::new(entry.clone(), true);
                self.pending.entry(name.clone()).or_insert_with(before).forced = true;
            }
        }
        let before = std::mem::replace(&mut self.node, node);
        if before.addresses != self.node.addresses {
            self.claim_anew(&before);
        }
    }

    /// Returns `true` if anything has changed since the last [`Cluster::take_changes`].
    #[must_use]
    pub fn has_changes(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Returns the counts of changes.
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
            let before = &pending.before;
            let is_changed = (&before.service, &before.lost) != (&now.service, &now.lost);
            counts.services_pending += usize::from(is_changed);
            counts.endpoints_pending += usize::from(pending.before.slices != now.slices);
        }
        counts
    }

    /// Returns the services that changed since the last call, in the order of names.
    pub fn take_changes(&mut self) -> Changes {
        let change = |(name, pending): (ServiceName, Pending)| Change {
            name,
            before: pending.before,
            triggers: pending.triggers,
        };
        Changes(std::mem::take(&mut self.pending).into_iter().map(change).collect())
    }

    /// Claims the frontends of the services with node ports again, after the node had other addresses.
    fn claim_anew(&mut self, before: &Node) {
        let with_node_ports = |(name, entry): (&ServiceName, &Entry)| {
            let service = entry.service.as_ref()?;
            service
                .ports
                .iter()
                .any(|port| port.node_port.is_some())
                .then(|| (name.clone(), Arc::clone(service)))
        };
        let services: Vec<_> = self.services.iter().filter_map(with_node_ports).collect();
        for (name, service) in &services {
            self.release(name, Some(ServiceClaims::of(service, before)));
            self.claim(name, Some(ServiceClaims::of(service, &self.node)));
        }
    }

    /// Returns `true` if nothing is left of services that are gone.
    #[cfg(test)]
    pub(crate) fn claims_are_empty(&self) -> bool {
        self.claims.is_empty() && self.services.is_empty()
    }

    fn claim(&mut self, name: &ServiceName, claimed: Option<ServiceClaims>) {
        for (frontend, claim) in claimed.into_iter().flat_map(|claimed| claimed.claims(name)) {
            if let Some(loser) = self.claims.add(frontend, claim) {
                self.touch(&loser, |entry| entry.lost.extend([frontend]));
            }
        }
    }

    fn release(&mut self, name: &ServiceName, claimed: Option<ServiceClaims>) {
        for (frontend, claim) in claimed.into_iter().flat_map(|claimed| claimed.claims(name)) {
            if let Some(freed) = self.claims.remove(frontend, &claim) {
                self.touch(&freed, |entry| entry.lost.retain(|lost| *lost != frontend));
            }
        }
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

/// A service that was looked up in a [`Cluster`].
#[derive(Clone, Copy, Debug)]
pub struct ClusterService<'a> {
    /// The service's name.
    pub name: &'a ServiceName,
    entry: &'a Entry,
    node: &'a str,
}

impl<'a> ClusterService<'a> {
    /// Returns the service's ports in one family that have a frontend, with their endpoints; none if it has
    /// no cluster IP there.
    #[must_use]
    pub fn ports(&self, family: Family) -> Vec<ServicePort<'a>> {
        self.entry.ports(self.name, family, self.node)
    }

    /// Returns `true` if the service has a cluster IP of this family.
    #[must_use]
    pub fn has(&self, family: Family) -> bool {
        self.entry.service.as_deref().is_some_and(|service| service.cluster_ip(family).is_some())
    }
}

/// The services that changed between two calls of [`Cluster::take_changes`].
#[derive(Debug, Default)]
pub struct Changes(Vec<Change>);

impl Changes {
    /// Returns the services that changed, in order.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &ServiceName> {
        self.0.iter().map(|change| &change.name)
    }

    /// Iterates over the changes, each with the state before it.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Change> {
        self.0.iter()
    }

    /// Returns `true` if nothing changed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the changes of services that have, or had, a port or an endpoint of a protocol that is wanted.
    pub fn concerning<'a>(
        &'a self,
        now: &'a Cluster,
        is_wanted: impl Fn(Protocol) -> bool + Copy + 'a,
    ) -> impl Iterator<Item = &'a Change> {
        let after = move |name| now.services.get(name).is_some_and(|entry| entry.has(is_wanted));
        self.0.iter().filter(move |change| change.before.has(is_wanted) || after(&change.name))
    }

    /// Returns `true` if a service with a UDP port changed, so that connection tracking may have flows to
    /// endpoints that are gone.
    #[must_use]
    pub fn concerns_udp(&self, now: &Cluster) -> bool {
        self.concerning(now, |protocol| protocol == Protocol::Udp).next().is_some()
    }
}

/// One service that changed, and its earlier state.
#[derive(Debug)]
pub struct Change {
    /// The name of the service.
    pub name: ServiceName,
    before: Entry,
    triggers: Vec<(Family, SystemTime)>,
}

impl Change {
    /// Returns the ports that the service had before the change, with their endpoints.
    #[must_use]
    pub fn ports_before(&self, family: Family, node: &str) -> Vec<ServicePort<'_>> {
        self.before.ports(&self.name, family, node)
    }

    /// Returns the times of the events that led to the new content of the service's slices, as the slices'
    /// annotations state them.
    #[must_use]
    pub fn triggers(&self) -> &[(Family, SystemTime)] {
        &self.triggers
    }
}

#[cfg(test)]
mod tests;
