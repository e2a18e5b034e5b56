//! The wanted content of one family's table, stored so that the cost of a change depends on the changed
//! service only.
//!
//! The objects of a service port's plan are of two classes. Cluster IPs, hairpin elements and balancing
//! chains are shared and counted: they exist as long as a service port uses them. All others belong to a
//! single service port. That holds for frontends, too: of several services that claim one, the model gives
//! it to one ([`Cluster::conflicts`](sluicegate_services::Cluster::conflicts)).

use std::collections::{BTreeMap, HashSet};
use std::hash::Hash;
use std::net::IpAddr;

// Hashing took a quarter of the time of a plan by SipHash. Keys are made of what others choose, so each table
// has a random seed.
use rapidhash::RapidHashMap as HashMap;
use sluicegate_services::{PortName, Protocol, ServiceName};

use super::element::{
    Balance, ChainId, Container, Element, ElementKey, ElementValue, EndpointAddr, Frontend, Order, PortChain,
    Sink, Target,
};
use super::port::{ChainPlan, FrontendPlan, PortPlan};

/// The content of the table that the services require.
#[derive(Debug)]
pub(super) struct Content {
    services: HashMap<ServiceName, Box<[PortPlan]>>,
    /// The shared objects, with the number of service ports that use each.
    cluster_ips: HashMap<IpAddr, usize>,
    hairpins: HashMap<(EndpointAddr, Protocol), usize>,
    balancers: HashMap<Balance, usize>,
    /// The number of chains that belong to a service port: none in layout `maps`.
    port_chains: usize,
    /// The number of elements of each container.
    elements: [usize; Container::ALL.len()],
}

/// The changes to the table: elements and chains by key, each with its state before and after.
///
/// What is noted of an object may come in any order, as a frontend may pass from one service to another: the
/// state before comes from the previous plan that has it, the state after from the new one.
#[derive(Debug, Default)]
pub(super) struct Delta {
    pub(super) elements: BTreeMap<(Container, ElementKey), Edit<Element>>,
    pub(super) chains: BTreeMap<ChainId, Edit<Option<ChainPlan>>>,
}

/// The state before and after a change; `None` where the object does not exist.
#[derive(Clone, Debug)]
pub(super) struct Edit<T> {
    pub(super) before: Option<T>,
    pub(super) after: Option<T>,
}

impl<T> Default for Edit<T> {
    fn default() -> Self {
        Self { before: None, after: None }
    }
}

impl Default for Content {
    fn default() -> Self {
        Self {
            services: HashMap::default(),
            cluster_ips: HashMap::default(),
            hairpins: HashMap::default(),
            balancers: HashMap::default(),
            port_chains: 0,
            elements: [0; Container::ALL.len()],
        }
    }
}

impl Content {
    /// Reserves memory for this number of services.
    pub(super) fn reserve(&mut self, services: usize) {
        self.services.reserve(services);
        self.cluster_ips.reserve(services);
    }

    /// Sets the plans of a service; none for a deleted one. The difference is noted in `delta`, once for each
    /// service. Without it, the service must be new.
    pub(super) fn set(
        &mut self,
        name: &ServiceName,
        plans: impl Iterator<Item = PortPlan>,
        mut delta: Option<&mut Delta>,
    ) {
        let known = delta.as_ref().and_then(|_| self.services.get_mut(name)).map(std::mem::take);
        let is_known = known.is_some();
        let before = known.unwrap_or_default();
        let mut plans: Box<[PortPlan]> = plans.collect();
        leave_to_the_first(&mut plans);
        // Added before the others are removed, so that shared objects that remain are never removed.
        for plan in &plans {
            self.acquire(plan, delta.as_deref_mut());
        }
        for plan in &before {
            self.release(plan, delta.as_deref_mut());
        }
        if let Some(delta) = delta {
            delta.replan(&before, &plans);
        }
        match (is_known, plans.is_empty()) {
            (true, true) => drop(self.services.remove(name)),
            (false, true) => {}
            (_, false) => drop(self.services.insert(name.clone(), plans)),
        }
    }

    /// Returns the number of elements of a set or map.
    pub(super) fn count(&self, container: Container) -> usize {
        self.elements[container.index()]
    }

    /// Passes all elements to `sink`, in the order of their keys: what is printed is to be the same each
    /// time.
    pub(super) fn elements(&self, sink: &mut impl Sink) {
        let cluster_ips = self.cluster_ips.keys().map(|ip| (Frontend::of_ip(*ip), *ip));
        by_frontend(cluster_ips, |ip| sink.element(cluster_ip(ip)));
        in_order(self.hairpins.keys().copied())
            .for_each(|(backend, protocol)| sink.element(hairpin(backend, protocol)));
        in_order(self.balancers.keys().copied()).for_each(|balance| sink.element(balancer(balance)));
        let frontends = self.plans().flat_map(|plan| plan.frontends.iter().map(|each| (&plan.name, each)));
        by_frontend(frontends.map(|(name, each)| (each.frontend, (name, each))), |(name, each)| {
            each.elements(name, sink);
        });
    }

    /// Passes the elements of one set or map to `sink`, in the order of their keys.
    pub(super) fn elements_of(&self, container: Container, mut sink: impl FnMut(Element)) {
        self.elements(&mut |element: Element| {
            if element.container == container {
                sink(element);
            }
        });
    }

    /// Passes each element to `sink`, once for each service that uses it.
    pub(super) fn owned_elements(&self, mut sink: impl FnMut(Element, &ServiceName)) {
        for plan in self.plans() {
            let PortName { service, protocol, .. } = &plan.name;
            for frontend in &plan.frontends {
                frontend.elements(&plan.name, &mut |element: Element| sink(element, service));
            }
            plan.cluster_ip.into_iter().for_each(|ip| sink(cluster_ip(ip), service));
            plan.hairpins.iter().for_each(|backend| sink(hairpin(*backend, *protocol), service));
        }
    }

    /// Returns all chains, with the content of those that belong to a service port.
    pub(super) fn chains(&self) -> impl Iterator<Item = (ChainId, Option<&ChainPlan>)> {
        let shared = self.balancers.keys().map(|balance| (ChainId::Balance(*balance), None));
        // Without any, the services are not read for them.
        let plans = (self.port_chains > 0).then(|| self.plans()).into_iter().flatten();
        let own = plans.flat_map(|plan| {
            plan.chains.iter().map(|(kind, chain)| (ChainId::Port(plan.name.clone(), *kind), Some(chain)))
        });
        shared.chain(own)
    }

    fn plans(&self) -> impl Iterator<Item = &PortPlan> {
        self.services.values().flat_map(|plans| plans.iter())
    }

    /// Counts what a service port has, and notes the shared objects that did not exist.
    fn acquire(&mut self, plan: &PortPlan, mut delta: Option<&mut Delta>) {
        if let Some(ip) = plan.cluster_ip.filter(|ip| acquire(&mut self.cluster_ips, *ip)) {
            self.enter(cluster_ip(ip), delta.as_deref_mut());
        }
        for backend in &plan.hairpins {
            if acquire(&mut self.hairpins, (*backend, plan.name.protocol)) {
                self.enter(hairpin(*backend, plan.name.protocol), delta.as_deref_mut());
            }
        }
        for frontend in &plan.frontends {
            frontend.count(|container, count| self.elements[container.index()] += count);
            for balance in frontend.balancers() {
                if acquire(&mut self.balancers, balance) {
                    self.enter(balancer(balance), delta.as_deref_mut());
                    if let Some(delta) = delta.as_deref_mut() {
                        delta.chains.entry(ChainId::Balance(balance)).or_default().after = Some(None);
                    }
                }
            }
        }
        self.port_chains += plan.chains.len();
    }

    /// Subtracts what a service port had, and notes the shared objects that no port uses any more.
    fn release(&mut self, plan: &PortPlan, mut delta: Option<&mut Delta>) {
        if let Some(ip) = plan.cluster_ip.filter(|ip| release(&mut self.cluster_ips, ip)) {
            self.leave(cluster_ip(ip), delta.as_deref_mut());
        }
        for backend in &plan.hairpins {
            if release(&mut self.hairpins, &(*backend, plan.name.protocol)) {
                self.leave(hairpin(*backend, plan.name.protocol), delta.as_deref_mut());
            }
        }
        for frontend in &plan.frontends {
            frontend.count(|container, count| self.elements[container.index()] -= count);
            for balance in frontend.balancers() {
                if release(&mut self.balancers, &balance) {
                    self.leave(balancer(balance), delta.as_deref_mut());
                    if let Some(delta) = delta.as_deref_mut() {
                        delta.chains.entry(ChainId::Balance(balance)).or_default().before = Some(None);
                    }
                }
            }
        }
        self.port_chains -= plan.chains.len();
    }

    fn enter(&mut self, element: Element, delta: Option<&mut Delta>) {
        self.elements[element.container.index()] += 1;
        if let Some(delta) = delta {
            let edit = delta.edit(&element);
            edit.after = Some(element);
        }
    }

    fn leave(&mut self, element: Element, delta: Option<&mut Delta>) {
        self.elements[element.container.index()] -= 1;
        if let Some(delta) = delta {
            let edit = delta.edit(&element);
            edit.before = Some(element);
        }
    }
}

impl Delta {
    /// Returns whether the change is empty.
    pub(super) fn is_empty(&self) -> bool {
        self.elements.is_empty() && self.chains.is_empty()
    }

    /// Removes edits that were reverted.
    pub(super) fn settle(&mut self) {
        // Comments are compared too: that of a frontend without endpoints names the service it belongs to.
        self.elements.retain(|_, edit| edit.before != edit.after);
        self.chains.retain(|_, edit| edit.before != edit.after);
    }

    /// Notes what differs between two plans of a service, but for the objects that others may use, too.
    fn replan(&mut self, before: &[PortPlan], after: &[PortPlan]) {
        for new in after {
            let old = same_port(before, new);
            for frontend in &new.frontends {
                let previous = old.and_then(|old| old.frontend(frontend.frontend));
                if previous != Some(frontend) {
                    self.exchange(elements(&new.name, previous), elements(&new.name, Some(frontend)));
                }
            }
            for (kind, chain) in &new.chains {
                self.chain(&new.name, *kind, old.and_then(|old| old.chain(*kind)), Some(chain));
            }
        }
        for old in before {
            let new = same_port(after, old);
            let is_gone =
                |frontend: &&FrontendPlan| new.is_none_or(|new| new.frontend(frontend.frontend).is_none());
            for frontend in old.frontends.iter().filter(is_gone) {
                self.exchange(elements(&old.name, Some(frontend)), Vec::new());
            }
            for (kind, chain) in &old.chains {
                if new.is_none_or(|new| new.chain(*kind).is_none()) {
                    self.chain(&old.name, *kind, Some(chain), None);
                }
            }
        }
    }

    /// Notes that `new` elements take the place of `old` ones.
    fn exchange(&mut self, mut old: Vec<Element>, mut new: Vec<Element>) {
        // Most elements of a frontend stay when it is planned again, so only those between the first and the
        // last difference are noted.
        let start = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
        let rest = old.iter().skip(start).rev().zip(new.iter().skip(start).rev());
        let end = rest.take_while(|(old, new)| old == new).count();
        old.truncate(old.len() - end);
        new.truncate(new.len() - end);
        for element in old.into_iter().skip(start) {
            let edit = self.edit(&element);
            edit.before = Some(element);
        }
        for element in new.into_iter().skip(start) {
            let edit = self.edit(&element);
            edit.after = Some(element);
        }
    }

    fn edit(&mut self, element: &Element) -> &mut Edit<Element> {
        self.elements.entry((element.container, element.key)).or_default()
    }

    fn chain(&mut self, port: &PortName, kind: PortChain, old: Option<&ChainPlan>, new: Option<&ChainPlan>) {
        if old != new {
            let state = |plan: Option<&ChainPlan>| plan.map(|plan| Some(plan.clone()));
            let edit = Edit { before: state(old), after: state(new) };
            self.chains.insert(ChainId::Port(port.clone(), kind), edit);
        }
    }
}

/// Leaves a frontend that several ports of a service have to the first of these by name. No API server admits
/// such a service.
fn leave_to_the_first(plans: &mut [PortPlan]) {
    if plans.len() > 1 {
        let mut by_name: Vec<&mut PortPlan> = plans.iter_mut().collect();
        by_name.sort_unstable_by(|one, other| one.name.cmp(&other.name));
        let mut taken = HashSet::new();
        for plan in by_name {
            plan.frontends.retain(|each| taken.insert(each.frontend));
        }
    }
}

fn same_port<'p>(plans: &'p [PortPlan], port: &PortPlan) -> Option<&'p PortPlan> {
    plans.iter().find(|plan| plan.name == port.name)
}

/// Passes values to `sink` in the order of their frontends.
fn by_frontend<T>(all: impl Iterator<Item = (Frontend, T)>, sink: impl FnMut(T)) {
    // Most have a number of 64 bits, and sorting by these takes a third of the time.
    let (mut short, mut long) = (Vec::new(), Vec::new());
    for (frontend, value) in all {
        match frontend.order() {
            Order::Short(number) => short.push((number, value)),
            Order::Long(address, port) => long.push(((address, port), value)),
        }
    }
    short.sort_unstable_by_key(|(number, _)| *number);
    long.sort_unstable_by_key(|(number, _)| *number);
    short.into_iter().map(|(_, value)| value).chain(long.into_iter().map(|(_, value)| value)).for_each(sink);
}

fn in_order<K: Ord>(keys: impl Iterator<Item = K>) -> impl Iterator<Item = K> {
    let mut keys: Vec<K> = keys.collect();
    keys.sort_unstable();
    keys.into_iter()
}

fn elements(owner: &PortName, plan: Option<&FrontendPlan>) -> Vec<Element> {
    let mut elements = Vec::new();
    if let Some(plan) = plan {
        let mut count = 0;
        plan.count(|_, more| count += more);
        elements.reserve_exact(count);
        plan.elements(owner, &mut |element: Element| elements.push(element));
    }
    elements
}

/// Increments a count. Returns true for the first.
fn acquire<K: Eq + Hash>(counts: &mut HashMap<K, usize>, key: K) -> bool {
    let count = counts.entry(key).or_default();
    *count += 1;
    *count == 1
}

/// Decrements a count. Returns true for the last.
fn release<K: Eq + Hash>(counts: &mut HashMap<K, usize>, key: &K) -> bool {
    let Some(count) = counts.get_mut(key) else { return false };
    *count -= 1;
    let last = *count == 0;
    if last {
        counts.remove(key);
    }
    last
}

fn cluster_ip(ip: IpAddr) -> Element {
    let key = ElementKey::Address(ip);
    Element { container: Container::ClusterIps, key, value: ElementValue::None, comment: None }
}

/// Returns the element that leads from the code of a chain to it.
fn balancer(balance: Balance) -> Element {
    Element {
        container: balance.container(),
        key: ElementKey::Balancer(balance),
        value: ElementValue::Verdict(Target::Goto(ChainId::Balance(balance).into())),
        comment: None,
    }
}

fn hairpin(backend: EndpointAddr, protocol: Protocol) -> Element {
    let key = ElementKey::Hairpin(backend, protocol);
    Element { container: Container::Hairpin, key, value: ElementValue::None, comment: None }
}
