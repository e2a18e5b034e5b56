//! The state of the cluster as it follows a source: updates in, [`Cluster`] out.
//!
//! An object that is invalid is left out alone and named. So is a service that the kernel refuses: it is held back, and tried
//! again when it changes or its time has come.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::IpAddr;
use std::time::{Duration, Instant};

use ipnet::IpNet;
use k8s_openapi::api::core::v1 as core;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::api::networking::v1::ServiceCIDR;

use crate::model::{
    Admission, Changes, Cluster, Invalid, Node, Service, ServiceName, Slice, SliceName, parse_cidr,
};
use crate::source::Object;
use crate::source::update::{Kind, ObjectName, Update};

/// What is known of this node before its Node object is, and what stands above that.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThisNode {
    /// Its name.
    pub name: String,
    /// Its primary addresses, one for each family at most, instead of those of the object.
    pub addresses: Vec<IpAddr>,
    /// The networks of its pods, instead of those of the object.
    pub pod_cidrs: Vec<IpNet>,
}

impl ThisNode {
    /// The node as it is to be used: the object's, if there is one, and what stands above it.
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

/// What an update led to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Effect {
    /// There is something to program.
    pub is_change: bool,
    /// This node is another than before.
    pub is_node: bool,
    /// What was invalid and is left out.
    pub problems: Vec<String>,
}

/// The cluster, and what is kept out of it.
#[derive(Debug)]
pub struct World {
    this: ThisNode,
    node: Option<Node>,
    cluster: Cluster,
    listed: BTreeSet<Kind>,
    cidrs: BTreeMap<String, Vec<IpNet>>,
    held: BTreeMap<ServiceName, Held>,
    /// The slices that are invalid, by their services.
    bad_slices: HashMap<SliceName, ServiceName>,
}

/// A service that is left out for the time being.
#[derive(Debug, Default)]
struct Held {
    service: Option<Service>,
    bad_slices: BTreeSet<SliceName>,
    refused: Option<Refused>,
}

/// The kernel's refusal of a service.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Refused {
    why: String,
    again: Instant,
    wait: Duration,
    /// It is in the cluster at the moment, to be tried.
    on_trial: bool,
}

impl World {
    /// Nothing is known yet but this node.
    #[must_use]
    pub fn new(this: ThisNode) -> Self {
        let cluster = Cluster::new(this.with(None));
        Self {
            this,
            node: None,
            cluster,
            listed: BTreeSet::new(),
            cidrs: BTreeMap::new(),
            held: BTreeMap::new(),
            bad_slices: HashMap::new(),
        }
    }

    /// The cluster, without what is held back.
    #[must_use]
    pub const fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// Adds networks of cluster IPs to those of objects, under a name that no object has.
    pub fn set_service_cidr(&mut self, name: &str, cidrs: &[IpNet]) {
        self.cluster.set_service_cidr(name, cidrs);
    }

    /// All services and all slices have been heard of once, so that what is missing is missing indeed.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.listed.contains(&Kind::Service) && self.listed.contains(&Kind::EndpointSlice)
    }

    /// What changed since the last call.
    pub fn take_changes(&mut self) -> Changes {
        self.cluster.take_changes()
    }

    /// Takes one piece of news. [`Update::Trouble`] changes nothing.
    pub fn apply(&mut self, update: Update) -> Effect {
        let mut effect = Effect::default();
        let (node, cidrs) = (self.cluster.node().clone(), self.cidrs.clone());
        match update {
            Update::Apply(object) => self.set(object, &mut effect),
            Update::Delete(name) => self.delete(&name),
            Update::Replace(kind, objects) => self.replace(kind, objects, &mut effect),
            Update::Trouble(_) => {}
        }
        effect.is_node = node != *self.cluster.node();
        effect.is_change = self.cluster.has_changes() || effect.is_node || cidrs != self.cidrs;
        effect
    }

    /// Holds a service back that the kernel refuses, and says when it is to be tried again: after `wait`, and after twice as long
    /// each time that it is refused.
    pub fn refuse(&mut self, name: &ServiceName, why: String, wait: Duration, now: Instant) {
        let held = self.held.entry(name.clone()).or_default();
        if let Some(service) = self.cluster.service(name) {
            held.service = Some(service.clone());
        }
        let doubled = held.refused.as_ref().map(|before| before.wait.saturating_mul(2));
        let wait = doubled.unwrap_or_default().max(wait).min(LONGEST_HOLD);
        held.refused = Some(Refused { why, again: now + wait, wait, on_trial: false });
        self.cluster.set_service(name, None);
    }

    /// Takes a service out for the moment, to see whether the rest can be programmed.
    pub fn set_aside(&mut self, name: &ServiceName, now: Instant) {
        self.refuse(
            name,
            "set aside while the culprit of a refusal is looked for".to_owned(),
            Duration::ZERO,
            now,
        );
    }

    /// Puts one that is held back into the cluster again, to be tried.
    pub fn put_on_trial(&mut self, name: &ServiceName) {
        if let Some(held) = self.held.get_mut(name)
            && held.bad_slices.is_empty()
            && let Some(refused) = &mut held.refused
        {
            refused.on_trial = true;
            self.cluster.set_service(name, held.service.clone());
        }
    }

    /// Puts back the refused services whose time has come, or all of them.
    pub fn retry(&mut self, now: Instant, all: bool) {
        for (name, held) in &mut self.held {
            let Some(refused) = &mut held.refused else { continue };
            if held.bad_slices.is_empty() && !refused.on_trial && (all || refused.again <= now) {
                refused.on_trial = true;
                self.cluster.set_service(name, held.service.clone());
            }
        }
    }

    /// Notes that everything in the cluster is programmed: what was on trial is accepted.
    pub fn accepted(&mut self) {
        self.held.retain(|_, held| {
            held.refused.take_if(|refused| refused.on_trial);
            held.refused.is_some() || !held.bad_slices.is_empty()
        });
    }

    /// The services that the kernel refuses, each with its reason.
    pub fn refused(&self) -> impl Iterator<Item = (&ServiceName, &str)> {
        let refused = self.held.iter().filter_map(|(name, held)| Some((name, held.refused.as_ref()?)));
        refused.filter(|(_, refused)| !refused.on_trial).map(|(name, refused)| (name, refused.why.as_str()))
    }

    fn set(&mut self, object: Object, effect: &mut Effect) {
        match object {
            Object::Service(object) => self.set_service(&object, effect),
            Object::EndpointSlice(object) => self.set_slice(&object, effect),
            Object::Node(object) => self.set_node(&object, effect),
            Object::ServiceCidr(object) => self.set_cidr(&object, effect),
        }
    }

    fn set_service(&mut self, object: &core::Service, effect: &mut Effect) {
        match Service::from_api(object) {
            Ok((name, Admission::Accepted(service))) => self.put(&name, Some(service)),
            Ok((name, Admission::PassedOver(_))) => self.put(&name, None),
            Err(invalid) => {
                let namespace = object.metadata.namespace.as_deref().unwrap_or("default");
                let name = ServiceName::new(namespace, object.metadata.name.as_deref().unwrap_or_default());
                if let Some(name) = &name {
                    self.put(name, None);
                }
                effect.problems.push(left_out(&invalid, name.as_ref()));
            }
        }
    }

    fn set_slice(&mut self, object: &EndpointSlice, effect: &mut Effect) {
        let read = Slice::from_api(object);
        let owner = Slice::owner(object);
        match read {
            Ok((name, Admission::Accepted(slice))) => self.put_slice(&name, Some(slice), None),
            Ok((name, Admission::PassedOver(_))) => self.put_slice(&name, None, None),
            Err(invalid) => {
                effect.problems.push(left_out(&invalid, owner.as_ref()));
                let namespace = object.metadata.namespace.as_deref().unwrap_or("default");
                let name = object.metadata.name.as_deref().unwrap_or_default();
                self.put_slice(&slice_name(namespace, name), None, owner);
            }
        }
    }

    fn set_node(&mut self, object: &core::Node, effect: &mut Effect) {
        if object.metadata.name.as_deref() != Some(self.this.name.as_str()) {
            return;
        }
        match Node::from_api(object) {
            Ok(node) => {
                self.cluster.set_node(self.this.with(Some(&node)));
                self.node = Some(node);
            }
            // What was known of it stays.
            Err(invalid) => effect.problems.push(left_out(&invalid, None)),
        }
    }

    fn set_cidr(&mut self, object: &ServiceCIDR, effect: &mut Effect) {
        let name = object.metadata.name.clone().unwrap_or_default();
        let texts = object.spec.iter().filter_map(|spec| spec.cidrs.as_deref()).flatten();
        let mut cidrs = Vec::new();
        for (index, text) in texts.enumerate() {
            let Some(cidr) = parse_cidr(text) else {
                let invalid = Invalid {
                    object: format!("ServiceCIDR {name}"),
                    field: format!("spec.cidrs[{index}]"),
                    reason: format!("{text:?} is not a CIDR"),
                };
                effect.problems.push(left_out(&invalid, None));
                return self.put_cidr(&name, Vec::new());
            };
            cidrs.push(cidr);
        }
        self.put_cidr(&name, cidrs);
    }

    fn delete(&mut self, name: &ObjectName) {
        match name {
            ObjectName::Service { namespace, name } => {
                // A name that is none was never taken.
                if let Some(name) = ServiceName::new(namespace, name) {
                    self.put(&name, None);
                }
            }
            ObjectName::EndpointSlice { namespace, name } => {
                self.put_slice(&slice_name(namespace, name), None, None);
            }
            ObjectName::Node { name } => {
                if *name == self.this.name {
                    self.lose_node();
                }
            }
            ObjectName::ServiceCidr { name } => self.put_cidr(name, Vec::new()),
        }
    }

    fn replace(&mut self, kind: Kind, objects: Vec<Object>, effect: &mut Effect) {
        let names: BTreeSet<ObjectName> = objects.iter().map(ObjectName::of).collect();
        for name in self.names(kind).into_iter().filter(|name| !names.contains(name)) {
            self.delete(&name);
        }
        for object in objects {
            self.set(object, effect);
        }
        self.listed.insert(kind);
    }

    /// What is known of a kind.
    fn names(&self, kind: Kind) -> Vec<ObjectName> {
        match kind {
            Kind::Service => {
                let names = self.cluster.service_names().chain(self.held.keys());
                let name = |name: &ServiceName| ObjectName::Service {
                    namespace: name.namespace().to_owned(),
                    name: name.name().to_owned(),
                };
                names.map(name).collect()
            }
            Kind::EndpointSlice => {
                let names = self.cluster.slice_names().chain(self.bad_slices.keys());
                let name = |name: &SliceName| ObjectName::EndpointSlice {
                    namespace: name.namespace.to_string(),
                    name: name.name.to_string(),
                };
                names.map(name).collect()
            }
            Kind::Node => self.node.iter().map(|node| ObjectName::Node { name: node.name.clone() }).collect(),
            Kind::ServiceCidr => {
                self.cidrs.keys().map(|name| ObjectName::ServiceCidr { name: name.clone() }).collect()
            }
        }
    }

    /// Sets what a service is to be, in the cluster or where it is held back.
    fn put(&mut self, name: &ServiceName, service: Option<Service>) {
        let Some(held) = self.held.get_mut(name) else { return self.cluster.set_service(name, service) };
        if held.service != service {
            // Another than the one that was refused.
            held.refused = None;
        }
        held.service = service;
        self.settle(name);
    }

    /// Sets what a slice is to be; with `bad` it is an invalid one of that service.
    fn put_slice(&mut self, name: &SliceName, slice: Option<Slice>, bad: Option<ServiceName>) {
        let owner = slice.as_ref().map(|slice| slice.service.clone());
        if let Some(owner) = owner.filter(|owner| self.held.contains_key(owner))
            && !self.cluster.slices(&owner).any(|known| Some(known) == slice.as_ref())
        {
            // Another than the one that was refused.
            self.held.entry(owner.clone()).and_modify(|held| held.refused = None);
            self.settle(&owner);
        }
        self.cluster.set_slice(name, slice);
        let before = match &bad {
            Some(owner) => self.bad_slices.insert(name.clone(), owner.clone()),
            None => self.bad_slices.remove(name),
        };
        if let Some(owner) = bad {
            let service = self.cluster.service(&owner).cloned();
            let held = self.held.entry(owner.clone()).or_insert_with(|| Held { service, ..Held::default() });
            held.bad_slices.insert(name.clone());
            self.cluster.set_service(&owner, None);
        }
        if let Some(owner) = before.filter(|owner| self.bad_slices.get(name) != Some(owner)) {
            if let Some(held) = self.held.get_mut(&owner) {
                held.bad_slices.remove(name);
            }
            self.settle(&owner);
        }
    }

    /// Lets a service go that nothing holds back any more.
    fn settle(&mut self, name: &ServiceName) {
        let free = |held: &Held| held.bad_slices.is_empty() && held.refused.is_none();
        if self.held.get(name).is_some_and(free)
            && let Some(held) = self.held.remove(name)
        {
            self.cluster.set_service(name, held.service);
        }
    }

    fn put_cidr(&mut self, name: &str, cidrs: Vec<IpNet>) {
        self.cluster.set_service_cidr(name, &cidrs);
        if cidrs.is_empty() {
            self.cidrs.remove(name);
        } else {
            self.cidrs.insert(name.to_owned(), cidrs);
        }
    }

    /// The object is gone while we still run: what was known stays in use, but nothing new should be sent here.
    fn lose_node(&mut self) {
        if let Some(node) = self.node.take() {
            self.cluster.set_node(Node { is_leaving: true, ..self.this.with(Some(&node)) });
        }
    }
}

fn slice_name(namespace: &str, name: &str) -> SliceName {
    SliceName { namespace: namespace.into(), name: name.into() }
}

fn left_out(invalid: &Invalid, service: Option<&ServiceName>) -> String {
    match service {
        Some(service) => format!("{invalid} (service {service} is left out)"),
        None => invalid.to_string(),
    }
}

/// How long a refused service waits at most.
const LONGEST_HOLD: Duration = Duration::from_secs(3600);

#[cfg(test)]
mod tests;
