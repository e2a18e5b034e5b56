//! The plan of one service port: its frontends, each with endpoints and conditions, and its own chains.
//!
//! It determines for both layouts which traffic may go where; they differ in how that is expressed.

use std::collections::HashSet;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use ipnet::IpNet;
use sluicegate_services::{Categorized, Endpoint, PortName, Protocol, Scheduler, ServicePort};

use super::Layout;
use super::element::{
    Balance, ChainId, Choice, Container, Element, ElementKey, ElementValue, EndpointAddr, Frontend,
    MAX_SCHEDULED, MAX_SECONDS, MAX_STICKY, Path, PortChain, Sink, Target,
};
use super::schema::OWN_PRIORITY_BIT;
use crate::scheduling::{maglev, octets};

/// The plan of one service port in one family.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PortPlan {
    pub(super) name: PortName,
    pub(super) cluster_ip: Option<IpAddr>,
    /// The local endpoints, each of which may connect to itself through the service.
    pub(super) hairpins: Box<[EndpointAddr]>,
    pub(super) chains: Box<[(PortChain, ChainPlan)]>,
    pub(super) frontends: Vec<FrontendPlan>,
}

/// The rules for traffic to one frontend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FrontendPlan {
    pub(super) frontend: Frontend,
    /// The endpoints for all clients.
    main: Option<Route>,
    /// The endpoints for pods and the node itself, where they differ.
    shortcut: Option<Route>,
    masquerade: Masquerade,
    /// The verdict for clients that have no endpoint.
    refusal: Option<Refusal>,
    /// The clients that may use it; `None` for all.
    firewall: Option<Firewall>,
    /// Whether packets to the node port are rejected on loopback addresses.
    rejected_on_localhost: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Route {
    /// To one of these endpoints, chosen in this way. For Maglev they are those of its slots.
    Balance(Arc<[EndpointAddr]>, Choice),
    /// To a chain of the service port.
    Chain(PortChain),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Masquerade {
    /// Not by itself: the rules for cluster IPs or a chain decide.
    No,
    /// Traffic from the node itself.
    Local,
    /// All traffic.
    All,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Refusal {
    Reject,
    Drop,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Firewall {
    /// These networks, none inside another.
    Sources(Arc<[IpNet]>),
    /// The clients that a chain of the service port admits.
    Chain,
}

/// The content of a chain of a service port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ChainPlan {
    /// Sends a connection to one of these endpoints, chosen in this way.
    Spread(Arc<[EndpointAddr]>, Choice),
    /// Sends a connection to one of these endpoints, and that of a known client to its last one. A client is
    /// known for this number of seconds after its last connection.
    Sticky { backends: Arc<[EndpointAddr]>, seconds: u32 },
    /// Records the client and sends the connection to this endpoint.
    Endpoint { seconds: u32 },
    /// Marks and short-circuits traffic from outside, and sends it to the chain of the policy if that has
    /// endpoints.
    External { shortcut: bool, policy: Option<PortChain> },
    /// Drops traffic from other networks.
    Firewall(Arc<[IpNet]>),
}

impl PortPlan {
    /// Plans `port` with its categorized endpoints. `scheduler` is for services that do not ask for one;
    /// `node_ip` is this node's primary address of the family.
    pub(super) fn new(
        layout: Layout,
        scheduler: Scheduler,
        port: &ServicePort<'_>,
        endpoints: &Categorized<'_>,
        node_ip: Option<IpAddr>,
    ) -> Self {
        let context = Context::new(layout, scheduler, port, endpoints, node_ip);
        let may_be_here = endpoints.all_reachable().iter().filter(|endpoint| !endpoint.is_remote);
        let hairpins = may_be_here.map(|endpoint| EndpointAddr::from(*endpoint)).collect();
        Self {
            name: port.name.clone(),
            cluster_ip: port.cluster_ip,
            hairpins,
            chains: context.chains(),
            frontends: context.frontends(),
        }
    }

    /// Has packets to the node port rejected on loopback addresses, if it is one of these protocols.
    pub(super) fn reject_on_localhost(mut self, protocols: &[Protocol]) -> Self {
        for plan in self.frontends.iter_mut().filter(|plan| plan.frontend.address.is_none()) {
            plan.rejected_on_localhost = protocols.contains(&plan.frontend.protocol);
        }
        self
    }

    /// Returns the plan of one of its frontends.
    pub(super) fn frontend(&self, frontend: Frontend) -> Option<&FrontendPlan> {
        self.frontends.iter().find(|plan| plan.frontend == frontend)
    }

    /// Returns the content of one of its chains.
    pub(super) fn chain(&self, kind: PortChain) -> Option<&ChainPlan> {
        self.chains.iter().find(|(other, _)| *other == kind).map(|(_, plan)| plan)
    }
}

/// The decisions that several frontends and chains of a service port share.
struct Context<'a> {
    layout: Layout,
    port: &'a ServicePort<'a>,
    endpoints: &'a Categorized<'a>,
    /// `None` under session affinity.
    scheduler: Option<Scheduler>,
    /// All endpoints, or the slots of their table.
    cluster: Arc<[EndpointAddr]>,
    /// The same of this node.
    local: Arc<[EndpointAddr]>,
    has_internal: bool,
    has_external: bool,
    sources: Option<Arc<[IpNet]>>,
}

impl<'a> Context<'a> {
    fn new(
        layout: Layout,
        default: Scheduler,
        port: &'a ServicePort<'a>,
        endpoints: &'a Categorized<'a>,
        node_ip: Option<IpAddr>,
    ) -> Self {
        let scheduler = port.service.scheduler(default);
        let backends = |list: &[&Endpoint]| match (list, scheduler) {
            // Shared by all, where collecting allocates.
            ([], _) => Arc::default(),
            (list, Some(Scheduler::Maglev(slots))) => {
                let addresses: Vec<SocketAddr> = list.iter().map(|endpoint| endpoint.address).collect();
                let slots = maglev(&addresses, slots);
                slots
                    .into_iter()
                    .filter_map(|place| list.get(place))
                    .map(|e| EndpointAddr::from(*e))
                    .collect()
            }
            (list, _) => list.iter().map(|endpoint| EndpointAddr::from(*endpoint)).collect(),
        };
        let (service, no_local) = (port.service, endpoints.local.is_empty());
        Self {
            layout,
            port,
            endpoints,
            scheduler,
            cluster: backends(&endpoints.cluster),
            local: backends(&endpoints.local),
            has_internal: endpoints.has_any && !(service.internal_local && no_local),
            has_external: endpoints.has_any && !(service.external_local && no_local),
            sources: sources(port, node_ip),
        }
    }

    fn frontends(&self) -> Vec<FrontendPlan> {
        let mut plans: Vec<_> = self.port.cluster_ip.map(|ip| self.internal(ip)).into_iter().collect();
        for ip in &self.port.external_ips {
            merge(&mut plans, self.external(Some(*ip), None));
        }
        let firewall = self.sources.as_ref().map(|sources| match self.layout {
            Layout::Maps => Firewall::Sources(Arc::clone(sources)),
            Layout::Chains => Firewall::Chain,
        });
        for ip in &self.port.load_balancer_ips {
            merge(&mut plans, self.external(Some(*ip), firewall.clone()));
        }
        if self.port.node_port.is_some() {
            merge(&mut plans, self.external(None, None));
        }
        plans
    }

    /// Returns the cluster IP.
    fn internal(&self, cluster_ip: IpAddr) -> FrontendPlan {
        let local = self.port.service.internal_local;
        FrontendPlan {
            frontend: self.frontend(Some(cluster_ip)),
            main: self.has_internal.then(|| self.route(Some(cluster_ip), local)),
            shortcut: None,
            masquerade: Masquerade::No,
            refusal: self.refusal(self.has_internal),
            firewall: None,
            rejected_on_localhost: false,
        }
    }

    /// Returns the plan of an external IP or load-balancer IP, or with `None` of the node port.
    fn external(&self, address: Option<IpAddr>, firewall: Option<Firewall>) -> FrontendPlan {
        let local = self.port.service.external_local;
        let any = self.endpoints.has_any;
        let (main, shortcut, masquerade) = match self.layout {
            Layout::Chains => (any.then_some(Route::Chain(PortChain::External)), None, Masquerade::No),
            Layout::Maps if !any => (None, None, Masquerade::No),
            Layout::Maps if local => {
                let route = |local| self.route(address, local);
                (self.has_external.then(|| route(true)), Some(route(false)), Masquerade::Local)
            }
            Layout::Maps => (Some(self.route(address, false)), None, Masquerade::All),
        };
        let refusal = self.refusal(self.has_external);
        let (frontend, rejected_on_localhost) = (self.frontend(address), false);
        FrontendPlan { frontend, main, shortcut, masquerade, refusal, firewall, rejected_on_localhost }
    }

    /// Returns the route from an address, or with `None` a node port, to all endpoints or to those of this
    /// node.
    fn route(&self, address: Option<IpAddr>, local: bool) -> Route {
        match self.layout {
            Layout::Maps => {
                let backends = if local { &self.local } else { &self.cluster };
                let choice = self.choice(&self.frontend(address));
                let most = match choice {
                    Choice::Random => usize::MAX,
                    Choice::Affinity(_) => MAX_STICKY,
                    Choice::RoundRobin(_) | Choice::SourceHash | Choice::Maglev => MAX_SCHEDULED,
                };
                Route::Balance(at_most(most, backends), choice)
            }
            Layout::Chains => Route::Chain(if local { PortChain::Local } else { PortChain::Service }),
        }
    }

    /// Returns how an endpoint is chosen for connections to a frontend.
    fn choice(&self, frontend: &Frontend) -> Choice {
        match (self.scheduler, self.port.service.affinity_seconds) {
            (None, seconds) => Choice::Affinity(seconds.unwrap_or(MAX_SECONDS).min(MAX_SECONDS)),
            (Some(Scheduler::Random), _) => Choice::Random,
            (Some(Scheduler::RoundRobin), _) => Choice::RoundRobin(turn(frontend)),
            (Some(Scheduler::SourceHash), _) => Choice::SourceHash,
            (Some(Scheduler::Maglev(_)), _) => Choice::Maglev,
        }
    }

    fn refusal(&self, has_endpoints: bool) -> Option<Refusal> {
        match (has_endpoints, self.endpoints.has_any) {
            (true, _) => None,
            (false, true) => Some(Refusal::Drop),
            (false, false) => Some(Refusal::Reject),
        }
    }

    fn frontend(&self, address: Option<IpAddr>) -> Frontend {
        let port = match (address, self.port.node_port) {
            (None, Some(node_port)) => node_port,
            _ => self.port.port,
        };
        Frontend { address, protocol: self.port.name.protocol, port: port.get() }
    }

    fn chains(&self) -> Box<[(PortChain, ChainPlan)]> {
        if self.layout == Layout::Maps {
            return Box::default();
        }
        let mut chains = Vec::new();
        let affinity = self.port.service.affinity_seconds;
        // Each chain has a counter of its own.
        let choice = self.choice(&Frontend { address: None, ..self.frontend(self.port.cluster_ip) });
        if let Some(seconds) = affinity {
            let reachable = self.endpoints.all_reachable().iter();
            chains.extend(
                reachable
                    .map(|e| (PortChain::Endpoint(EndpointAddr::from(*e)), ChainPlan::Endpoint { seconds })),
            );
        }
        let spread = |backends: &Arc<[EndpointAddr]>| match affinity {
            Some(seconds) => ChainPlan::Sticky { backends: Arc::clone(backends), seconds },
            None => ChainPlan::Spread(Arc::clone(backends), choice),
        };
        if !self.cluster.is_empty() {
            chains.push((PortChain::Service, spread(&self.cluster)));
        }
        if !self.local.is_empty() {
            chains.push((PortChain::Local, spread(&self.local)));
        }
        self.outside_chains(&mut chains);
        chains.into()
    }

    fn outside_chains(&self, chains: &mut Vec<(PortChain, ChainPlan)>) {
        let local = self.port.service.external_local;
        if self.endpoints.has_any && self.port.externally_accessible() {
            let policy = if local { PortChain::Local } else { PortChain::Service };
            let plan = ChainPlan::External { shortcut: local, policy: self.has_external.then_some(policy) };
            chains.push((PortChain::External, plan));
        }
        let is_balanced = !self.port.load_balancer_ips.is_empty();
        if let Some(sources) = self.sources.as_ref().filter(|_| is_balanced) {
            chains.push((PortChain::Firewall, ChainPlan::Firewall(Arc::clone(sources))));
        }
    }
}

/// Returns the endpoints that clients may be sent to: all but those that the code of the chain has no room to
/// count.
fn at_most(most: usize, backends: &Arc<[EndpointAddr]>) -> Arc<[EndpointAddr]> {
    match backends.get(..most) {
        Some(first) if first.len() < backends.len() => first.into(),
        _ => Arc::clone(backends),
    }
}

/// Returns the networks that may use the load balancer's addresses; `None` for all. If a range contains the
/// node's address, the node may use them as well; the source of its packets is then the destination address
/// itself.
fn sources(port: &ServicePort<'_>, node_ip: Option<IpAddr>) -> Option<Arc<[IpNet]>> {
    let mut allowed: Vec<IpNet> = port.service.source_ranges(port.family)?.copied().collect();
    if node_ip.is_some_and(|ip| allowed.iter().any(|net| net.contains(&ip))) {
        allowed.extend(port.load_balancer_ips.iter().copied().map(IpNet::from));
    }
    Some(allowed.into())
}

/// Adds a frontend. An existing one (an external IP that the load balancer has too) is only changed by the
/// firewall of the load balancer.
fn merge(plans: &mut Vec<FrontendPlan>, plan: FrontendPlan) {
    match plans.iter_mut().find(|other| other.frontend == plan.frontend) {
        Some(other) => other.firewall = other.firewall.take().or(plan.firewall),
        None => plans.push(plan),
    }
}

impl FrontendPlan {
    /// Passes all elements of the frontend to `sink`; `owner` is its service port.
    pub(super) fn elements(&self, owner: &PortName, sink: &mut impl Sink) {
        let (frontend, scope) = (self.frontend, self.frontend.scope());
        let key = ElementKey::Frontend(frontend);
        for (path, route) in self.routes() {
            match route {
                Route::Balance(backends, Choice::Affinity(_)) => {
                    let numbers = Container::StickyIds(scope, path, frontend.protocol);
                    let endpoints = Container::StickyEndpoints(scope, path, frontend.protocol);
                    for ((index, backend), id) in (0..).zip(backends.iter()).zip(endpoint_ids(backends)) {
                        sink.plain(numbers, ElementKey::Indexed(frontend, index), ElementValue::Id(id));
                        let value = ElementValue::Endpoint(*backend);
                        sink.plain(endpoints, ElementKey::Identified(frontend, id), value);
                    }
                }
                Route::Balance(backends, _) => {
                    sink.endpoints(Container::Endpoints(scope, path, frontend.protocol), frontend, backends);
                }
                Route::Chain(_) => {}
            }
            let value = match route {
                Route::Balance(backends, choice) => {
                    ElementValue::Balancer(self.balance(path, backends, *choice))
                }
                Route::Chain(chain) => {
                    ElementValue::Verdict(Target::Goto(ChainId::Port(owner.clone(), *chain).into()))
                }
            };
            sink.plain(Container::Dispatch(scope, path), key, value);
        }
        match self.masquerade {
            Masquerade::No => {}
            Masquerade::Local => sink.plain(Container::MasqueradeLocal(scope), key, ElementValue::None),
            Masquerade::All => sink.plain(Container::Masquerade(scope), key, ElementValue::None),
        }
        match &self.firewall {
            None => {}
            Some(Firewall::Chain) => {
                let target = Target::Goto(ChainId::Port(owner.clone(), PortChain::Firewall).into());
                sink.plain(Container::Firewall, key, ElementValue::Verdict(target));
            }
            Some(Firewall::Sources(sources)) => {
                sink.plain(Container::Restricted, key, ElementValue::None);
                for net in outermost(sources) {
                    sink.plain(Container::Allowed, ElementKey::Source(frontend, net), ElementValue::None);
                }
            }
        }
        if self.rejected_on_localhost {
            sink.plain(Container::LocalhostNodePorts, key, ElementValue::None);
        }
        if let Some(refusal) = self.refusal {
            let target = if refusal == Refusal::Drop { Target::Drop } else { Target::Reject };
            let (container, value) = (Container::NoEndpoint(scope), ElementValue::Verdict(target));
            sink.element(Element { container, key, value, comment: Some(owner.clone().into()) });
        }
    }

    /// Passes the number of elements in each container to `add`.
    pub(super) fn count(&self, mut add: impl FnMut(Container, usize)) {
        let scope = self.frontend.scope();
        for (path, route) in self.routes() {
            if let Route::Balance(backends, choice) = route {
                let uses = self.balance(path, backends, *choice).uses();
                uses.for_each(|container| add(container, backends.len()));
            }
            add(Container::Dispatch(scope, path), 1);
        }
        match self.masquerade {
            Masquerade::No => {}
            Masquerade::Local => add(Container::MasqueradeLocal(scope), 1),
            Masquerade::All => add(Container::Masquerade(scope), 1),
        }
        match &self.firewall {
            None => {}
            Some(Firewall::Chain) => add(Container::Firewall, 1),
            Some(Firewall::Sources(sources)) => {
                add(Container::Restricted, 1);
                add(Container::Allowed, outermost(sources).len());
            }
        }
        if self.rejected_on_localhost {
            add(Container::LocalhostNodePorts, 1);
        }
        if self.refusal.is_some() {
            add(Container::NoEndpoint(scope), 1);
        }
    }

    /// Returns the shared chains that its codes stand for.
    pub(super) fn balancers(&self) -> impl Iterator<Item = Balance> + '_ {
        let balanced = |(path, route): (Path, &Route)| match route {
            Route::Balance(backends, choice) => Some(self.balance(path, backends, *choice)),
            Route::Chain(_) => None,
        };
        self.routes().filter_map(balanced)
    }

    fn balance(&self, path: Path, backends: &[EndpointAddr], choice: Choice) -> Balance {
        let count = u32::try_from(backends.len()).unwrap_or(u32::MAX);
        Balance { scope: self.frontend.scope(), path, protocol: self.frontend.protocol, count, choice }
    }

    fn routes(&self) -> impl Iterator<Item = (Path, &Route)> {
        let main = self.main.iter().map(|route| (Path::Main, route));
        main.chain(self.shortcut.iter().map(|route| (Path::Shortcut, route)))
    }
}

/// Returns the networks that are not inside another one: the elements of an interval set must not overlap.
fn outermost(nets: &[IpNet]) -> Vec<IpNet> {
    IpNet::aggregate(&nets.to_vec())
}

/// Returns the turn of a frontend among those with round robin and the same number of endpoints.
fn turn(frontend: &Frontend) -> u8 {
    let port = frontend.port.to_be_bytes();
    let [high, _, _, low] =
        fnv(frontend.address.map(octets).unwrap_or_default().iter().chain(&port)).to_be_bytes();
    high ^ low
}

/// Returns an id for each endpoint of a frontend, by which clients are bound to it. It depends on the
/// endpoint, not on its place in the list, so that it stays the same when others come and go, and after a
/// restart.
fn endpoint_ids(backends: &[EndpointAddr]) -> Vec<u32> {
    let mut taken = HashSet::with_capacity(backends.len());
    let free = |backend: &EndpointAddr| {
        let mut id = endpoint_id(backend);
        // Of two endpoints with the same hash, the later one gets the next id that is free.
        while !taken.insert(id) {
            id = id.wrapping_add(1) | OWN_PRIORITY_BIT;
        }
        id
    };
    backends.iter().map(free).collect()
}

/// Returns the FNV-1a hash of an endpoint's address and port, with the bit of all ids. The kernel keeps ids,
/// so the function must not change.
fn endpoint_id(backend: &EndpointAddr) -> u32 {
    let port = backend.port.to_be_bytes();
    let hash = match backend.ip {
        IpAddr::V4(ip) => fnv(ip.octets().iter().chain(&port)),
        IpAddr::V6(ip) => fnv(ip.octets().iter().chain(&port)),
    };
    hash | OWN_PRIORITY_BIT
}

fn fnv<'a>(bytes: impl Iterator<Item = &'a u8>) -> u32 {
    bytes.fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn backend(last: u8, port: u16) -> EndpointAddr {
        EndpointAddr { ip: IpAddr::from([10, 244, 0, last]), port }
    }

    #[test]
    fn the_id_of_an_endpoint_does_not_depend_on_the_others() {
        let all: Vec<_> = (1..=200).map(|last| backend(last, 8080)).collect();
        let ids = endpoint_ids(&all);
        assert_eq!(endpoint_ids(&all[100..]), ids[100..]);
        assert_ne!(endpoint_id(&backend(1, 8080)), endpoint_id(&backend(1, 8081)));
        // The kernel keeps them over an update of this program.
        assert_eq!(ids[0], 0xb84a_b1d7);
    }

    #[test]
    fn session_affinity_leaves_out_the_endpoints_that_no_code_can_count() {
        let all: Arc<[_]> = (1..=16_384).map(|port| backend(1, port)).collect();
        assert_eq!(*at_most(MAX_STICKY, &all), all[..MAX_STICKY]);
        let fitting: Arc<[_]> = all[..MAX_STICKY].into();
        assert!(Arc::ptr_eq(&at_most(MAX_STICKY, &fitting), &fitting));
    }

    #[test]
    fn endpoints_with_the_same_hash_get_different_ids() {
        let mut seen = std::collections::HashMap::new();
        let all = (0..500_000u32).map(|n| n.wrapping_mul(2_654_435_761)).map(|n| {
            let [a, b, c, d] = n.to_be_bytes();
            EndpointAddr { ip: IpAddr::from([10, a, b, c]), port: 1 + u16::from(d) * 251 }
        });
        let mut pairs =
            all.filter_map(|new| seen.insert(endpoint_id(&new), new).map(|old: EndpointAddr| [old, new]));
        let pair = pairs.find(|[old, new]| old != new).expect("so many endpoints have fewer hashes");
        let [first, second] = endpoint_ids(&pair)[..] else { panic!("two endpoints") };
        assert_eq!(endpoint_id(&pair[0]), endpoint_id(&pair[1]));
        assert_eq!((first, second), (endpoint_id(&pair[0]), first.wrapping_add(1) | OWN_PRIORITY_BIT));
    }
}
