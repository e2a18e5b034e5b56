//! The wanted content of one family's table, stored so that the cost of a change depends on the changed
//! service only.
//!
//! The objects of a service port's plan are of three classes. Of several services that claim a frontend, the
//! model gives it to one ([`Cluster::conflicts`](sluicegate_services::Cluster::conflicts)); but while
//! services are replanned one by one, a frontend that passes from one to another is for a moment planned by
//! both. Cluster IPs, hairpin elements and balancing chains are shared and counted: they exist as long as a
//! service port uses them. Other chains belong to a single service port.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::collections::hash_map::Entry;
use std::hash::Hash;
use std::net::IpAddr;

// Hashing took a quarter of the time of a plan by SipHash. Keys are made of what others choose, so each table
// has a random seed.
use rapidhash::RapidHashMap as HashMap;
use sluicegate_services::{PortName, Protocol, ServiceName};

use super::element::{
    Backend, Balance, ChainId, Container, Element, ElementKey, ElementValue, Frontend, Order, PortChain,
    Sink, Target,
};
use super::port::{ChainPlan, FrontendPlan, PortPlan};

/// The content of the table that the services require.
#[derive(Debug)]
pub(super) struct Content {
    services: HashMap<ServiceName, Box<[PortRecord]>>,
    claims: HashMap<Frontend, Claim>,
    /// The plans of other service ports for frontends that have a claim.
    rivals: BTreeMap<Frontend, BTreeMap<PortName, FrontendPlan>>,
    cluster_ips: HashMap<IpAddr, usize>,
    hairpins: HashMap<(Backend, Protocol), usize>,
    /// The number of chains that belong to a service port: none in layout `maps`.
    port_chains: usize,
    totals: Totals,
}

/// The numbers of elements, and the balancing chains that these lead to.
#[derive(Debug)]
struct Totals {
    elements: [usize; Container::ALL.len()],
    balancers: HashMap<Balance, usize>,
}

/// The part of a plan that is stored for a service port; the plans of its frontends are in the claims, or
/// among their rivals.
#[derive(Debug)]
struct PortRecord {
    name: PortName,
    cluster_ip: Option<IpAddr>,
    hairpins: Box<[Backend]>,
    chains: Box<[(PortChain, ChainPlan)]>,
    frontends: Box<[Frontend]>,
}

/// The plan of a frontend.
#[derive(Debug)]
struct Claim {
    owner: PortName,
    plan: FrontendPlan,
}

/// The changes to the table: elements and chains by key, each with its state before and after.
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

impl Default for Content {
    fn default() -> Self {
        Self {
            services: HashMap::default(),
            claims: HashMap::default(),
            rivals: BTreeMap::new(),
            cluster_ips: HashMap::default(),
            hairpins: HashMap::default(),
            port_chains: 0,
            totals: Totals { elements: [0; Container::ALL.len()], balancers: HashMap::default() },
        }
    }
}

impl Content {
    /// Reserves memory for this number of services.
    pub(super) fn reserve(&mut self, services: usize) {
        self.services.reserve(services);
        self.claims.reserve(services);
        self.cluster_ips.reserve(services);
    }

    /// Sets the plans of a service; none for a deleted one. The difference is recorded in `delta`. Without it,
    /// the service must be new.
    pub(super) fn set(
        &mut self,
        name: &ServiceName,
        plans: impl ExactSizeIterator<Item = PortPlan>,
        mut delta: Option<&mut Delta>,
    ) {
        let known = delta.as_ref().and_then(|_| self.services.get_mut(name)).map(std::mem::take);
        let is_known = known.is_some();
        let before = known.unwrap_or_default();
        let mut records = Vec::with_capacity(plans.len());
        // Add before removing, so that shared objects that remain are never removed.
        for plan in plans {
            let previous = before.iter().find(|record| record.name == plan.name);
            records.push(self.want(plan, previous, delta.as_deref_mut()));
        }
        for record in &before {
            let current = records.iter().find(|other| other.name == record.name);
            self.release(record, current, delta.as_deref_mut());
        }
        match (is_known, records.is_empty()) {
            (true, true) => drop(self.services.remove(name)),
            (false, true) => {}
            (_, false) => drop(self.services.insert(name.clone(), records.into())),
        }
    }

    /// Returns the number of elements of a set or map.
    pub(super) fn count(&self, container: Container) -> usize {
        self.totals.elements[container.index()]
    }

    /// Passes all elements to `sink`, in the order of their keys: what is printed is to be the same each
    /// time.
    pub(super) fn elements(&self, sink: &mut impl Sink) {
        let cluster_ips = self.cluster_ips.keys().map(|ip| (Frontend::of_ip(*ip), *ip));
        by_frontend(cluster_ips, |ip| sink.element(cluster_ip(ip)));
        in_order(self.hairpins.keys().copied())
            .for_each(|(backend, protocol)| sink.element(hairpin(backend, protocol)));
        in_order(self.totals.balancers.keys().copied()).for_each(|balance| sink.element(balancer(balance)));
        let claims = self.claims.iter().map(|(frontend, claim)| (*frontend, claim));
        by_frontend(claims, |claim| claim.plan.elements(&claim.owner, sink));
    }

    /// Passes the elements of one set or map to `sink`, in the order of their keys.
    pub(super) fn elements_of(&self, container: Container, mut sink: impl FnMut(Element)) {
        self.elements(&mut |element: Element| {
            if element.container == container {
                sink(element);
            }
        });
    }

    /// Passes each element with its services to `sink`; a frontend with the one that it belongs to.
    pub(super) fn owned_elements(&self, mut sink: impl FnMut(Element, &ServiceName)) {
        for claim in self.claims.values() {
            claim.plan.elements(&claim.owner, &mut |element: Element| sink(element, &claim.owner.service));
        }
        for record in self.services.values().flat_map(|records| records.iter()) {
            let PortName { service, protocol, .. } = &record.name;
            record.cluster_ip.into_iter().for_each(|ip| sink(cluster_ip(ip), service));
            record.hairpins.iter().for_each(|backend| sink(hairpin(*backend, *protocol), service));
        }
    }

    /// Returns all chains, with the content of those that belong to a service port.
    pub(super) fn chains(&self) -> impl Iterator<Item = (ChainId, Option<&ChainPlan>)> {
        let shared = self.totals.balancers.keys().map(|balance| (ChainId::Balance(*balance), None));
        // Without any, the services are not read for them.
        let services = (self.port_chains > 0).then(|| self.services.values());
        let records = services.into_iter().flatten().flat_map(|records| records.iter());
        let own = records.flat_map(|record| {
            record.chains.iter().map(|(kind, plan)| (ChainId::Port(record.name.clone(), *kind), Some(plan)))
        });
        shared.chain(own)
    }

    fn want(
        &mut self,
        plan: PortPlan,
        previous: Option<&PortRecord>,
        mut delta: Option<&mut Delta>,
    ) -> PortRecord {
        let PortPlan { name, cluster_ip: ip, hairpins, chains, frontends } = plan;
        if let Some(ip) = ip.filter(|ip| acquire(&mut self.cluster_ips, *ip)) {
            self.enter(cluster_ip(ip), delta.as_deref_mut());
        }
        for backend in &hairpins {
            if acquire(&mut self.hairpins, (*backend, name.protocol)) {
                self.enter(hairpin(*backend, name.protocol), delta.as_deref_mut());
            }
        }
        if let Some(delta) = delta.as_deref_mut() {
            for (kind, plan) in &chains {
                let before = previous.and_then(|record| record.chain(*kind));
                delta.chain(ChainId::Port(name.clone(), *kind), before, Some(plan));
            }
        }
        self.port_chains += chains.len();
        let keys = frontends.iter().map(|plan| plan.frontend).collect();
        for plan in frontends {
            self.claim(&name, plan, delta.as_deref_mut());
        }
        PortRecord { name, cluster_ip: ip, hairpins, chains, frontends: keys }
    }

    fn release(&mut self, record: &PortRecord, current: Option<&PortRecord>, mut delta: Option<&mut Delta>) {
        for frontend in &record.frontends {
            if !current.is_some_and(|current| current.frontends.contains(frontend)) {
                self.disclaim(&record.name, *frontend, delta.as_deref_mut());
            }
        }
        if let Some(delta) = delta.as_deref_mut() {
            let gone = |kind| current.and_then(|current| current.chain(kind)).is_none();
            for (kind, plan) in record.chains.iter().filter(|(kind, _)| gone(*kind)) {
                delta.chain(ChainId::Port(record.name.clone(), *kind), Some(plan), None);
            }
        }
        self.port_chains -= record.chains.len();
        for backend in &record.hairpins {
            if release(&mut self.hairpins, &(*backend, record.name.protocol)) {
                self.leave(hairpin(*backend, record.name.protocol), delta.as_deref_mut());
            }
        }
        if let Some(ip) = record.cluster_ip.filter(|ip| release(&mut self.cluster_ips, ip)) {
            self.leave(cluster_ip(ip), delta);
        }
    }

    fn claim(&mut self, owner: &PortName, plan: FrontendPlan, delta: Option<&mut Delta>) {
        let frontend = plan.frontend;
        let claim = Claim { owner: owner.clone(), plan };
        match self.claims.entry(frontend) {
            Entry::Vacant(free) => self.totals.exchange(None, Some(free.insert(claim)), delta),
            // The first by name has it.
            Entry::Occupied(mut taken) => match claim.owner.cmp(&taken.get().owner) {
                Ordering::Greater => {
                    self.rivals.entry(frontend).or_default().insert(claim.owner, claim.plan);
                }
                order => {
                    let previous = taken.insert(claim);
                    self.totals.exchange(Some(&previous), Some(taken.get()), delta);
                    if order == Ordering::Less {
                        self.rivals.entry(frontend).or_default().insert(previous.owner, previous.plan);
                    }
                }
            },
        }
    }

    fn disclaim(&mut self, owner: &PortName, frontend: Frontend, delta: Option<&mut Delta>) {
        let rivals = self.rivals.get_mut(&frontend);
        match self.claims.entry(frontend) {
            Entry::Occupied(mut claim) if claim.get().owner == *owner => {
                match rivals.and_then(BTreeMap::pop_first) {
                    Some((owner, plan)) => {
                        let removed = claim.insert(Claim { owner, plan });
                        self.totals.exchange(Some(&removed), Some(claim.get()), delta);
                    }
                    None => self.totals.exchange(Some(&claim.remove()), None, delta),
                }
            }
            _ => drop(rivals.and_then(|rivals| rivals.remove(owner))),
        }
        if self.rivals.get(&frontend).is_some_and(BTreeMap::is_empty) {
            self.rivals.remove(&frontend);
        }
    }

    fn enter(&mut self, element: Element, delta: Option<&mut Delta>) {
        self.totals.elements[element.container.index()] += 1;
        if let Some(delta) = delta {
            delta.exchange(Vec::new(), vec![element]);
        }
    }

    fn leave(&mut self, element: Element, delta: Option<&mut Delta>) {
        self.totals.elements[element.container.index()] -= 1;
        if let Some(delta) = delta {
            delta.exchange(vec![element], Vec::new());
        }
    }
}

impl Totals {
    /// Counts the elements of the claim of a frontend in place of those of its previous claim.
    fn exchange(&mut self, previous: Option<&Claim>, current: Option<&Claim>, mut delta: Option<&mut Delta>) {
        if let (Some(before), Some(now)) = (previous, current)
            && (&before.owner, &before.plan) == (&now.owner, &now.plan)
        {
            return;
        }
        if let Some(claim) = current {
            claim.plan.count(|container, count| self.elements[container.index()] += count);
            for balance in claim.plan.balancers().filter(|balance| acquire(&mut self.balancers, *balance)) {
                self.elements[balance.container().index()] += 1;
                delta.as_deref_mut().into_iter().for_each(|delta| delta.balancer(balance, true));
            }
        }
        if let Some(claim) = previous {
            claim.plan.count(|container, count| self.elements[container.index()] -= count);
            for balance in claim.plan.balancers().filter(|balance| release(&mut self.balancers, balance)) {
                self.elements[balance.container().index()] -= 1;
                delta.as_deref_mut().into_iter().for_each(|delta| delta.balancer(balance, false));
            }
        }
        if let Some(delta) = delta {
            delta.exchange(elements(previous), elements(current));
        }
    }
}

impl PortRecord {
    fn chain(&self, kind: PortChain) -> Option<&ChainPlan> {
        self.chains.iter().find(|(other, _)| *other == kind).map(|(_, plan)| plan)
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
            let edit = self.elements.entry((element.container, element.key));
            edit.or_insert_with(|| Edit { before: Some(element), after: None }).after = None;
        }
        for element in new.into_iter().skip(start) {
            let edit = self.elements.entry((element.container, element.key));
            edit.or_insert(Edit { before: None, after: None }).after = Some(element);
        }
    }

    fn chain(&mut self, id: ChainId, before: Option<&ChainPlan>, after: Option<&ChainPlan>) {
        if before != after {
            let plan = |plan: Option<&ChainPlan>| plan.map(|plan| Some(plan.clone()));
            let edit = self.chains.entry(id).or_insert_with(|| Edit { before: plan(before), after: None });
            edit.after = plan(after);
        }
    }

    /// Notes that a balancing chain is wanted or no longer wanted, with the element that leads to it.
    fn balancer(&mut self, balance: Balance, wanted: bool) {
        let element = vec![balancer(balance)];
        match wanted {
            true => self.exchange(Vec::new(), element),
            false => self.exchange(element, Vec::new()),
        }
        let before = if wanted { None } else { Some(None) };
        let edit = self.chains.entry(ChainId::Balance(balance)).or_insert(Edit { before, after: None });
        edit.after = wanted.then_some(None);
    }
}

/// Passes values to `sink` in the order of their frontends.
fn by_frontend<T>(all: impl Iterator<Item = (Frontend, T)>, sink: impl FnMut(T)) {
    // Most have a number of 64 bits, and sorting by these takes a third of the time.
    let (mut short, mut long) = (Vec::with_capacity(all.size_hint().1.unwrap_or(0)), Vec::new());
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

fn elements(claim: Option<&Claim>) -> Vec<Element> {
    let mut elements = Vec::new();
    if let Some(claim) = claim {
        let mut count = 0;
        claim.plan.count(|_, more| count += more);
        elements.reserve_exact(count);
        claim.plan.elements(&claim.owner, &mut |element: Element| elements.push(element));
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

fn hairpin(backend: Backend, protocol: Protocol) -> Element {
    let key = ElementKey::Hairpin(backend, protocol);
    Element { container: Container::Hairpin, key, value: ElementValue::None, comment: None }
}
