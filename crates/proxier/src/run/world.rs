//! The state of the cluster as it follows a source: updates in, [`Cluster`] out.
//!
//! What is invalid is left out and reported, as `source::entry` says. A service that the kernel refuses is left
//! out as well, and retried when it changes, and after a time that doubles with each refusal.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::{Duration, Instant};

use ipnet::IpNet;
use sluicegate_services::{Changes, Cluster, Node, Service, ServiceName, Slice, SliceName, Warning};

use crate::source::Object;
use crate::source::entry::{Entry, Validated, service_of};
use crate::source::update::{Kind, ObjectName, Update};

/// The properties of this node that flags set. They are known before its Node object, and override it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThisNode {
    /// The name.
    pub name: String,
    /// The primary addresses, at most one for each family, instead of those of the object.
    pub addresses: Vec<IpAddr>,
    /// The networks of the pods, instead of those of the object.
    pub pod_cidrs: Vec<IpNet>,
}

impl ThisNode {
    /// Returns the node that the object describes, if there is one, with the properties that flags set.
    #[must_use]
    pub fn with(&self, object: Option<&Node>) -> Node {
        let mut node = object.cloned().unwrap_or_default();
        node.name.clone_from(&self.name);
        if !self.pod_cidrs.is_empty() {
            node.pod_cidrs.clone_from(&self.pod_cidrs);
        }
        for ip in self.addresses.iter().rev().filter(|ip| !ip.is_unspecified()) {
            node.addresses.retain(|other| other != ip);
            node.addresses.insert(0, *ip);
        }
        node
    }
}

/// The effect of an update.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Effect {
    /// Whether there is something to program.
    pub is_change: bool,
    /// Whether this node changed.
    pub is_node: bool,
    /// Whether another node changed, of which nothing is programmed.
    pub is_other_node: bool,
    /// The objects and items of objects that are invalid and left out, each with its reason.
    pub problems: Vec<String>,
    /// Those of them that concern a service, by its own object or one of its slices.
    pub concerning: Vec<(ServiceName, String)>,
}

/// The cluster, and the services that are left out of it.
#[derive(Debug)]
pub struct World {
    this: ThisNode,
    node: Option<Node>,
    cluster: Cluster,
    listed: BTreeSet<Kind>,
    /// Of the kinds that are being listed: what was known before, and was not sent since.
    unlisted: BTreeMap<Kind, BTreeSet<ObjectName>>,
    cidrs: BTreeMap<String, Vec<IpNet>>,
    left_out: BTreeMap<ServiceName, LeftOut>,
    forbids_external_ips: bool,
    /// The other nodes, as far as the source has them.
    others: BTreeMap<String, Node>,
    /// Why no service has a scheduler of its own, if none has.
    without_schedulers: Option<&'static str>,
    /// The services of which was told that there are too few slots for their tables.
    without_slots: BTreeSet<ServiceName>,
}

/// The cluster at one moment, for readers.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// The cluster, without the services that are left out.
    pub cluster: Cluster,
    /// The services that the kernel refuses, each with its reason.
    pub refused: Vec<(ServiceName, String)>,
}

/// A service that the kernel refuses.
#[derive(Debug, Default)]
struct LeftOut {
    service: Option<Service>,
    refused: Option<Refused>,
}

/// A refusal of a service by the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Refused {
    why: String,
    again: Instant,
    wait: Duration,
    /// Whether the service is in the cluster again, to be retried by the next sync.
    is_readmitted: bool,
}

impl World {
    /// Returns a state without objects.
    #[must_use]
    pub fn new(this: ThisNode) -> Self {
        let cluster = Cluster::new(this.with(None));
        Self {
            this,
            node: None,
            cluster,
            listed: BTreeSet::new(),
            unlisted: BTreeMap::new(),
            cidrs: BTreeMap::new(),
            left_out: BTreeMap::new(),
            forbids_external_ips: false,
            others: BTreeMap::new(),
            without_schedulers: None,
            without_slots: BTreeSet::new(),
        }
    }

    /// Returns the cluster, without the services that are left out.
    #[must_use]
    pub const fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// Returns a copy for readers, which costs as much as copying references to all objects.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        let refused = self.refused().map(|(name, why)| (name.clone(), why.to_owned())).collect();
        Snapshot { cluster: self.cluster.clone(), refused }
    }

    /// Returns the cluster, to keep it without what follows the source.
    #[must_use]
    pub fn into_cluster(self) -> Cluster {
        self.cluster
    }

    /// Leaves the external IPs of every service out, and reports each ([`Cluster::forbid_external_ips`]).
    pub fn forbid_external_ips(&mut self) {
        self.cluster.forbid_external_ips();
        self.forbids_external_ips = true;
    }

    /// Reports each service that asks for a scheduler: none has an effect, and this is why.
    pub fn leave_schedulers_out(&mut self, why: &'static str) {
        self.without_schedulers = Some(why);
    }

    /// Adds networks of cluster IPs to those of objects, under a name that no object may have.
    pub fn set_service_cidr(&mut self, name: &str, cidrs: &[IpNet]) {
        self.cluster.set_service_cidr(name, cidrs);
    }

    /// Returns all nodes that the source has: of an API server this one alone.
    pub fn nodes(&self) -> impl Iterator<Item = &Node> {
        self.node.iter().chain(self.others.values())
    }

    /// Returns the other nodes, as far as the source has them: an API server is asked for this one alone.
    pub fn other_nodes(&self) -> impl Iterator<Item = &Node> {
        self.others.values()
    }

    /// Returns whether there is a Node object of this node.
    #[must_use]
    pub const fn has_node(&self) -> bool {
        self.node.is_some()
    }

    /// Returns whether all objects of a kind were listed once.
    #[must_use]
    pub fn has_listed(&self, kind: Kind) -> bool {
        self.listed.contains(&kind)
    }

    /// Returns true when all services and all slices were listed once, so that what is missing does not
    /// exist.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.listed.contains(&Kind::Service) && self.listed.contains(&Kind::EndpointSlice)
    }

    /// Returns what changed since the last call.
    pub fn take_changes(&mut self) -> Changes {
        self.cluster.take_changes()
    }

    /// Applies an update. [`Update::Warning`], [`Update::Unusable`] and [`Update::Hopeless`]
    /// change nothing.
    pub fn apply(&mut self, update: Update) -> Effect {
        let mut effect = Effect::default();
        let (node, cidrs) = (self.cluster.node().clone(), self.cidrs.clone());
        let of_service = match &update {
            Update::Apply(object) => matches!(object, Object::Service(_)),
            Update::Delete(name) => matches!(name, ObjectName::Service { .. }),
            Update::Replace(kind, _) | Update::Listed(kind) => *kind == Kind::Service,
            _ => false,
        };
        match update {
            Update::Apply(object) => self.list(&object, &mut effect),
            Update::Delete(name) => self.delete(&name, &mut effect),
            Update::Replace(kind, objects) => self.replace(kind, &objects, &mut effect),
            Update::Listing(kind) => self.begin_list(kind),
            Update::Listed(kind) => self.end_list(kind, &mut effect),
            Update::Unreadable(kind, name, _) => self.keep(kind, name.as_ref(), &mut effect),
            Update::Warning(_) | Update::Unusable(_) | Update::Hopeless(_) => {}
        }
        // Until all are listed, older services may be to come.
        if of_service && self.listed.contains(&Kind::Service) && self.without_schedulers.is_none() {
            self.tell_without_slots(&mut effect);
        }
        effect.is_node = node != *self.cluster.node();
        effect.is_change = self.cluster.has_changes() || effect.is_node || cidrs != self.cidrs;
        effect
    }

    /// Reports the services that do not have the scheduler that they ask for, each once: by one of them, others may
    /// have lost theirs.
    fn tell_without_slots(&mut self, effect: &mut Effect) {
        let now: BTreeSet<_> = self.cluster.services_without_slots().cloned().collect();
        for name in now.difference(&self.without_slots) {
            let warning = self.cluster.scheduler_without_slots(name).map(|warning| warning.to_string());
            effect.concerning.extend(warning.iter().map(|warning| (name.clone(), warning.clone())));
            effect.problems.extend(warning);
        }
        self.without_slots = now;
    }

    /// Leaves out a service that the kernel refuses. It is retried after `wait`, and after twice the time for
    /// each further refusal.
    pub fn refuse(&mut self, name: &ServiceName, why: String, wait: Duration, now: Instant) {
        let entry = self.left_out.entry(name.clone()).or_default();
        if let Some(service) = self.cluster.service(name) {
            let mut service = service.clone();
            // It is put back with what it asks for.
            if let Some(Warning::SchedulerWithoutEffect { scheduler, .. }) =
                self.cluster.scheduler_without_slots(name)
            {
                service.scheduler = Some(scheduler);
            }
            entry.service = Some(service);
        }
        let doubled = entry.refused.as_ref().map(|before| before.wait.saturating_mul(2));
        let wait = doubled.unwrap_or_default().max(wait).min(LONGEST_RETRY);
        entry.refused = Some(Refused { why, again: now + wait, wait, is_readmitted: false });
        self.cluster.set_service(name, None);
    }

    /// Leaves a service out for now, to see whether the rest can be programmed.
    pub fn set_aside(&mut self, name: &ServiceName, now: Instant) {
        self.refuse(
            name,
            "left out while the service that the kernel refuses is searched for".to_owned(),
            Duration::ZERO,
            now,
        );
    }

    /// Puts a service that is left out back into the cluster, to be retried.
    pub fn readmit(&mut self, name: &ServiceName) {
        if let Some(entry) = self.left_out.get_mut(name)
            && let Some(refused) = &mut entry.refused
        {
            refused.is_readmitted = true;
            self.cluster.set_service(name, entry.service.clone());
        }
    }

    /// Puts the refused services whose retry time has come back into the cluster, or all of them.
    pub fn retry(&mut self, now: Instant, all: bool) {
        for (name, entry) in &mut self.left_out {
            let Some(refused) = &mut entry.refused else { continue };
            if !refused.is_readmitted && (all || refused.again <= now) {
                refused.is_readmitted = true;
                self.cluster.set_service(name, entry.service.clone());
            }
        }
    }

    /// Records that everything in the cluster is programmed, so that retried services are accepted.
    pub fn accepted(&mut self) {
        self.left_out.retain(|_, entry| {
            entry.refused.take_if(|refused| refused.is_readmitted);
            entry.refused.is_some()
        });
    }

    /// Returns the services that the kernel refuses, each with its reason.
    pub fn refused(&self) -> impl Iterator<Item = (&ServiceName, &str)> {
        let refused = self.left_out.iter().filter_map(|(name, entry)| Some((name, entry.refused.as_ref()?)));
        refused
            .filter(|(_, refused)| !refused.is_readmitted)
            .map(|(name, refused)| (name, refused.why.as_str()))
    }

    fn set(&mut self, object: &Object, effect: &mut Effect) {
        let Validated { entry, left_out, .. } = Validated::of(object);
        let mut problems = match &entry {
            Some(Entry::Service { name, service: Some(service), .. }) => self.warnings(name, service),
            // What is wrong with the object of another node is that node's to report.
            Some(Entry::Node(node)) if node.name != self.this.name => return self.set_other(node, effect),
            _ => Vec::new(),
        };
        problems.extend(left_out.iter().map(ToString::to_string));
        if let Some(name) = service_of(object) {
            effect.concerning.extend(problems.iter().map(|problem| (name.clone(), problem.clone())));
        }
        effect.problems.append(&mut problems);
        if let Some(entry) = entry {
            self.put(entry);
        }
    }

    /// Returns what is valid of a service and has no effect here, or another than its author may believe.
    fn warnings(&self, name: &ServiceName, service: &Service) -> Vec<String> {
        let mut warnings: Vec<_> = service.open_to_all(name).map(|warning| warning.to_string()).collect();
        let unused = match self.without_schedulers {
            Some(why) => service.scheduler_not_used(name, why),
            None => service.scheduler_without_effect(name),
        };
        warnings.extend(unused.map(|warning| warning.to_string()));
        if self.forbids_external_ips && !service.external_ips.is_empty() {
            let list: Vec<_> = service.external_ips.iter().map(ToString::to_string).collect();
            warnings.push(format!(
                "Service {name}: spec.externalIPs: {} left out: the configuration forbids external IPs",
                list.join(", ")
            ));
        }
        warnings
    }

    fn set_other(&mut self, node: &Node, effect: &mut Effect) {
        effect.is_other_node |= self.others.get(&node.name) != Some(node);
        self.others.insert(node.name.clone(), node.clone());
    }

    fn delete(&mut self, name: &ObjectName, effect: &mut Effect) {
        match name {
            ObjectName::Service { namespace, name } => {
                // A service with an invalid name was never added.
                if let Ok(name) = ServiceName::new(namespace, name) {
                    self.put(Entry::no_service(name));
                }
            }
            ObjectName::EndpointSlice { namespace, name } => self.put(Entry::no_slice(namespace, name)),
            ObjectName::Node { name } => {
                if *name == self.this.name {
                    self.lose_node();
                }
                effect.is_other_node |= self.others.remove(name).is_some();
            }
            ObjectName::ServiceCidr { name } => {
                self.put(Entry::ServiceCidr { name: name.clone(), cidrs: Vec::new() });
            }
        }
    }

    fn replace(&mut self, kind: Kind, objects: &[Object], effect: &mut Effect) {
        self.begin_list(kind);
        let names: BTreeSet<ObjectName> = objects.iter().map(ObjectName::of).collect();
        self.unlisted.entry(kind).or_default().retain(|name| !names.contains(name));
        // Deleted before the others are set: what one loses, another may have.
        self.end_list(kind, effect);
        for object in objects {
            self.set(object, effect);
        }
    }

    fn begin_list(&mut self, kind: Kind) {
        let known = self.names(kind);
        self.unlisted.insert(kind, known.into_iter().collect());
    }

    fn end_list(&mut self, kind: Kind, effect: &mut Effect) {
        for name in self.unlisted.remove(&kind).unwrap_or_default() {
            self.delete(&name, effect);
        }
        self.listed.insert(kind);
    }

    /// Keeps an object that a list has and that cannot be read, or all of the kind where it is not known which
    /// one that is. Of the first list nothing is known that could be kept, which is a problem.
    fn keep(&mut self, kind: Kind, name: Option<&ObjectName>, effect: &mut Effect) {
        let Some(unlisted) = self.unlisted.get_mut(&kind) else { return };
        let is_known = match name {
            Some(name) => unlisted.remove(name),
            None => {
                unlisted.clear();
                false
            }
        };
        if !is_known && !self.listed.contains(&kind) {
            let object = name.map_or_else(|| format!("a {kind} without a name"), ToString::to_string);
            effect.problems.push(format!(
                "{object} cannot be read and was not since the start: it is left out, and what an earlier run has \
                 programmed for it is removed"
            ));
        }
    }

    /// Sets an object, which may be one of a list.
    fn list(&mut self, object: &Object, effect: &mut Effect) {
        // Nearly always there is no list, and of the first one nothing is known before.
        if self.unlisted.values().any(|names| !names.is_empty()) {
            let name = ObjectName::of(object);
            if let Some(names) = self.unlisted.get_mut(&name.kind()) {
                names.remove(&name);
            }
        }
        self.set(object, effect);
    }

    /// Returns the names of all known objects of a kind.
    fn names(&self, kind: Kind) -> Vec<ObjectName> {
        match kind {
            Kind::Service => {
                let names = self.cluster.service_names().chain(self.left_out.keys());
                let names = names.chain(self.cluster.not_served().map(|(name, _)| name));
                let name = |name: &ServiceName| ObjectName::Service {
                    namespace: name.namespace().to_owned(),
                    name: name.name().to_owned(),
                };
                names.map(name).collect()
            }
            Kind::EndpointSlice => {
                let name = |name: &SliceName| ObjectName::EndpointSlice {
                    namespace: name.namespace.to_string(),
                    name: name.name.to_string(),
                };
                self.cluster.slice_names().map(name).collect()
            }
            Kind::Node => {
                let names = self.node.iter().chain(self.others.values()).map(|node| node.name.clone());
                names.map(|name| ObjectName::Node { name }).collect()
            }
            Kind::ServiceCidr => {
                self.cidrs.keys().map(|name| ObjectName::ServiceCidr { name: name.clone() }).collect()
            }
        }
    }

    /// Puts what the cluster keeps of an object into it, but for a service that the kernel refuses.
    fn put(&mut self, entry: Entry) {
        match entry {
            Entry::Service { name, service, not_served } if self.left_out.contains_key(&name) => {
                self.cluster.set_not_served(&name, not_served);
                self.put_refused(&name, service.map(|service| *service));
            }
            Entry::Node(node) => {
                self.cluster.set_node(self.this.with(Some(&node)));
                self.node = Some(*node);
            }
            entry => {
                match &entry {
                    Entry::Slice { slice: Some(slice), .. } => self.retry_owner(slice),
                    Entry::ServiceCidr { name, cidrs } if cidrs.is_empty() => {
                        self.cidrs.remove(name);
                    }
                    Entry::ServiceCidr { name, cidrs } => {
                        self.cidrs.insert(name.clone(), cidrs.clone());
                    }
                    _ => {}
                }
                entry.put(&mut self.cluster);
            }
        }
    }

    /// Sets a service that the kernel refuses. One that differs from what was refused is tried at once.
    fn put_refused(&mut self, name: &ServiceName, service: Option<Service>) {
        if let Some(entry) = self.left_out.get_mut(name) {
            if entry.service != service {
                entry.refused = None;
            }
            entry.service = service;
        }
        self.settle(name);
    }

    /// Tries a refused service at once when one of its slices differs from those that it was refused with.
    fn retry_owner(&mut self, slice: &Slice) {
        let owner = &slice.service;
        if let Some(entry) = self.left_out.get_mut(owner)
            && !self.cluster.slices(owner).any(|known| known == slice)
        {
            entry.refused = None;
            self.settle(owner);
        }
    }

    /// Returns a service to the cluster when there is no reason left to leave it out.
    fn settle(&mut self, name: &ServiceName) {
        let free = |entry: &LeftOut| entry.refused.is_none();
        if self.left_out.get(name).is_some_and(free)
            && let Some(entry) = self.left_out.remove(name)
        {
            self.cluster.set_service(name, entry.service);
        }
    }

    /// Handles a deleted Node object: its last state stays in use, but load balancers should send nothing new
    /// here.
    fn lose_node(&mut self) {
        if let Some(node) = self.node.take() {
            self.cluster.set_node(Node { is_leaving: true, ..self.this.with(Some(&node)) });
        }
    }
}

/// The longest time until a refused service is retried.
const LONGEST_RETRY: Duration = Duration::from_secs(3600);

#[cfg(test)]
mod tests;
