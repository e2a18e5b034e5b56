//! The elements of the table's sets and maps, in a compact form.

use std::net::IpAddr;

use ipnet::IpNet;

use sluicegate_services::{Endpoint, PortName, Protocol};

use super::schema::OWN_PRIORITY_BIT;

/// The destination that clients connect to: an address and port, or a port of the node itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Frontend {
    /// The address; `None` for a node port.
    pub(super) address: Option<IpAddr>,
    /// The protocol.
    pub(super) protocol: Protocol,
    /// The port.
    pub(super) port: u16,
}

impl Frontend {
    /// Returns a frontend that sorts among others as its address does.
    pub(super) fn of_ip(ip: IpAddr) -> Self {
        Self { address: Some(ip), protocol: Protocol::Tcp, port: 0 }
    }

    /// Returns a number that sorts as the frontend does. Numbers are compared in one step, where enums take one
    /// for each of their parts.
    pub(super) fn order(&self) -> Order {
        let port = u32::from(self.protocol as u8) << 16 | u32::from(self.port);
        match self.address {
            None => Order::Short(port.into()),
            Some(IpAddr::V4(ip)) => Order::Short(1 << 56 | u64::from(ip.to_bits()) << 24 | u64::from(port)),
            Some(IpAddr::V6(ip)) => Order::Long(ip.to_bits(), port),
        }
    }

    /// Returns whether the key of its elements has an address.
    pub(super) const fn scope(&self) -> Scope {
        if self.address.is_some() { Scope::Address } else { Scope::NodePort }
    }
}

/// A number that sorts as a frontend does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Order {
    /// Of a port of the node, or of an IPv4 address with protocol and port.
    Short(u64),
    /// An IPv6 address, and its protocol and port.
    Long(u128, u32),
}

/// The endpoint that connections are sent to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct EndpointAddr {
    /// The endpoint's address.
    pub(super) ip: IpAddr,
    /// Its port.
    pub(super) port: u16,
}

impl From<&Endpoint> for EndpointAddr {
    fn from(endpoint: &Endpoint) -> Self {
        Self { ip: endpoint.address.ip(), port: endpoint.address.port() }
    }
}

/// The two kinds of frontends. They have separate maps because their keys differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Scope {
    /// `address . protocol . port`.
    Address,
    /// `protocol . port`, on the node's addresses.
    NodePort,
}

/// One of the two endpoint lists of a frontend: with `externalTrafficPolicy: Local`, pods and the node itself
/// may use all endpoints, and other clients only those of this node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Path {
    /// The list for all clients.
    Main,
    /// The list for pods and the node itself, if the frontend has one.
    Shortcut,
}

/// A set or map of the table. The layouts share most of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Container {
    /// `cluster-ips`: every cluster IP.
    ClusterIps,
    /// `nodeport-ips`: the addresses that answer node ports, unless all do.
    NodeportIps,
    /// `hairpin-connections`: an endpoint that may be of this node, and reaches itself through its service.
    Hairpin,
    /// `endpoints-tcp` and similar: (frontend, number) to endpoint. Layout `maps`.
    ///
    /// There is one map for each protocol. With `th dport` in its type, nft 1.0.6 cannot add a rule for
    /// several protocols once the map is in the kernel; with `tcp dport` it reads a rule for all protocols as
    /// one for TCP.
    Endpoints(Scope, Path, Protocol),
    /// `sticky-ids-tcp` and similar: (frontend, number) to the id of an endpoint, for frontends with session
    /// affinity. Layout `maps`.
    StickyIds(Scope, Path, Protocol),
    /// `sticky-endpoints-tcp` and similar: (frontend, id) to endpoint, for frontends with session affinity.
    /// Layout `maps`.
    StickyEndpoints(Scope, Path, Protocol),
    /// `affinity-tcp`, `nodeport-affinity-tcp` and similar: (client, frontend) to the id of the endpoint that
    /// the client is bound to. Rules add its elements. Layout `maps`.
    Affinity(Scope, Protocol),
    /// `masquerade-ips`, `masquerade-nodeports`: frontends whose traffic is always masqueraded. Layout
    /// `maps`.
    Masquerade(Scope),
    /// `masquerade-local-ips`, `masquerade-local-nodeports`: the same for traffic of the node itself. Layout
    /// `maps`.
    MasqueradeLocal(Scope),
    /// `restricted-ips`: load-balancer frontends with source ranges. Layout `maps`.
    Restricted,
    /// `allowed-sources`: who may use them. Layout `maps`.
    Allowed,
    /// `firewall-ips`: load-balancer frontends with source ranges, each to a chain. Layout `chains`.
    Firewall,
    /// `no-endpoint-services`, `no-endpoint-nodeports`: frontends to reject or drop.
    NoEndpoint(Scope),
    /// `localhost-nodeports`: node ports whose packets to loopback addresses are rejected.
    LocalhostNodePorts,
    /// `balancers` and similar: protocol and [code](Balance::code) to the verdict that goes to a balancing
    /// chain. Layout `maps`.
    Balancers(Scope, Path),
    /// `service-ips`, `service-nodeports` and their short cuts: frontend to the code of its balancing chain
    /// in layout `maps`, and to the verdict in layout `chains`.
    Dispatch(Scope, Path),
}

impl Container {
    /// All containers, those that make others reachable last, as a change in several batches requires.
    pub(super) const ALL: [Self; 63] = {
        use Path::{Main, Shortcut};
        use Protocol::{Sctp, Tcp, Udp};
        use Scope::{Address, NodePort};
        [
            Self::ClusterIps,
            Self::NodeportIps,
            Self::Hairpin,
            Self::Masquerade(Address),
            Self::Masquerade(NodePort),
            Self::MasqueradeLocal(Address),
            Self::MasqueradeLocal(NodePort),
            Self::Restricted,
            Self::Allowed,
            Self::Firewall,
            Self::Endpoints(Address, Main, Tcp),
            Self::Endpoints(Address, Main, Udp),
            Self::Endpoints(Address, Main, Sctp),
            Self::Endpoints(Address, Shortcut, Tcp),
            Self::Endpoints(Address, Shortcut, Udp),
            Self::Endpoints(Address, Shortcut, Sctp),
            Self::Endpoints(NodePort, Main, Tcp),
            Self::Endpoints(NodePort, Main, Udp),
            Self::Endpoints(NodePort, Main, Sctp),
            Self::Endpoints(NodePort, Shortcut, Tcp),
            Self::Endpoints(NodePort, Shortcut, Udp),
            Self::Endpoints(NodePort, Shortcut, Sctp),
            Self::StickyIds(Address, Main, Tcp),
            Self::StickyIds(Address, Main, Udp),
            Self::StickyIds(Address, Main, Sctp),
            Self::StickyIds(Address, Shortcut, Tcp),
            Self::StickyIds(Address, Shortcut, Udp),
            Self::StickyIds(Address, Shortcut, Sctp),
            Self::StickyIds(NodePort, Main, Tcp),
            Self::StickyIds(NodePort, Main, Udp),
            Self::StickyIds(NodePort, Main, Sctp),
            Self::StickyIds(NodePort, Shortcut, Tcp),
            Self::StickyIds(NodePort, Shortcut, Udp),
            Self::StickyIds(NodePort, Shortcut, Sctp),
            Self::StickyEndpoints(Address, Main, Tcp),
            Self::StickyEndpoints(Address, Main, Udp),
            Self::StickyEndpoints(Address, Main, Sctp),
            Self::StickyEndpoints(Address, Shortcut, Tcp),
            Self::StickyEndpoints(Address, Shortcut, Udp),
            Self::StickyEndpoints(Address, Shortcut, Sctp),
            Self::StickyEndpoints(NodePort, Main, Tcp),
            Self::StickyEndpoints(NodePort, Main, Udp),
            Self::StickyEndpoints(NodePort, Main, Sctp),
            Self::StickyEndpoints(NodePort, Shortcut, Tcp),
            Self::StickyEndpoints(NodePort, Shortcut, Udp),
            Self::StickyEndpoints(NodePort, Shortcut, Sctp),
            Self::Affinity(Address, Tcp),
            Self::Affinity(Address, Udp),
            Self::Affinity(Address, Sctp),
            Self::Affinity(NodePort, Tcp),
            Self::Affinity(NodePort, Udp),
            Self::Affinity(NodePort, Sctp),
            Self::NoEndpoint(Address),
            Self::NoEndpoint(NodePort),
            Self::LocalhostNodePorts,
            Self::Balancers(Address, Main),
            Self::Balancers(Address, Shortcut),
            Self::Balancers(NodePort, Main),
            Self::Balancers(NodePort, Shortcut),
            Self::Dispatch(Address, Main),
            Self::Dispatch(Address, Shortcut),
            Self::Dispatch(NodePort, Main),
            Self::Dispatch(NodePort, Shortcut),
        ]
    };

    /// Returns the index in [`Container::ALL`].
    pub(super) const fn index(self) -> usize {
        match self {
            Self::ClusterIps => 0,
            Self::NodeportIps => 1,
            Self::Hairpin => 2,
            Self::Masquerade(scope) => 3 + scope as usize,
            Self::MasqueradeLocal(scope) => 5 + scope as usize,
            Self::Restricted => 7,
            Self::Allowed => 8,
            Self::Firewall => 9,
            Self::Endpoints(scope, path, protocol) => 10 + index_of(scope, path, protocol),
            Self::StickyIds(scope, path, protocol) => 22 + index_of(scope, path, protocol),
            Self::StickyEndpoints(scope, path, protocol) => 34 + index_of(scope, path, protocol),
            Self::Affinity(scope, protocol) => 46 + 3 * scope as usize + protocol as usize,
            Self::NoEndpoint(scope) => 52 + scope as usize,
            Self::LocalhostNodePorts => 54,
            Self::Balancers(scope, path) => 55 + 2 * scope as usize + path as usize,
            Self::Dispatch(scope, path) => 59 + 2 * scope as usize + path as usize,
        }
    }

    /// Returns the name in the kernel.
    #[must_use]
    pub(super) const fn name(self) -> &'static str {
        use Path::{Main, Shortcut};
        use Scope::{Address, NodePort};
        match self {
            Self::ClusterIps => "cluster-ips",
            Self::NodeportIps => "nodeport-ips",
            Self::Hairpin => "hairpin-connections",
            Self::Endpoints(scope, path, protocol) => endpoints_name(scope, path, protocol),
            Self::StickyIds(scope, path, protocol) => sticky_ids_name(scope, path, protocol),
            Self::StickyEndpoints(scope, path, protocol) => sticky_endpoints_name(scope, path, protocol),
            Self::Affinity(scope, protocol) => affinity_name(scope, protocol),
            Self::Masquerade(Address) => "masquerade-ips",
            Self::Masquerade(NodePort) => "masquerade-nodeports",
            Self::MasqueradeLocal(Address) => "masquerade-local-ips",
            Self::MasqueradeLocal(NodePort) => "masquerade-local-nodeports",
            Self::Restricted => "restricted-ips",
            Self::Allowed => "allowed-sources",
            Self::Firewall => "firewall-ips",
            Self::NoEndpoint(Address) => "no-endpoint-services",
            Self::NoEndpoint(NodePort) => "no-endpoint-nodeports",
            Self::LocalhostNodePorts => "localhost-nodeports",
            Self::Balancers(Address, Main) => "balancers",
            Self::Balancers(Address, Shortcut) => "shortcut-balancers",
            Self::Balancers(NodePort, Main) => "nodeport-balancers",
            Self::Balancers(NodePort, Shortcut) => "shortcut-nodeport-balancers",
            Self::Dispatch(Address, Main) => "service-ips",
            Self::Dispatch(Address, Shortcut) => "shortcut-ips",
            Self::Dispatch(NodePort, Main) => "service-nodeports",
            Self::Dispatch(NodePort, Shortcut) => "shortcut-nodeports",
        }
    }
}

const fn endpoints_name(scope: Scope, path: Path, protocol: Protocol) -> &'static str {
    use Path::{Main, Shortcut};
    use Protocol::{Sctp, Tcp, Udp};
    use Scope::{Address, NodePort};
    match (scope, path, protocol) {
        (Address, Main, Tcp) => "endpoints-tcp",
        (Address, Main, Udp) => "endpoints-udp",
        (Address, Main, Sctp) => "endpoints-sctp",
        (Address, Shortcut, Tcp) => "shortcut-endpoints-tcp",
        (Address, Shortcut, Udp) => "shortcut-endpoints-udp",
        (Address, Shortcut, Sctp) => "shortcut-endpoints-sctp",
        (NodePort, Main, Tcp) => "nodeport-endpoints-tcp",
        (NodePort, Main, Udp) => "nodeport-endpoints-udp",
        (NodePort, Main, Sctp) => "nodeport-endpoints-sctp",
        (NodePort, Shortcut, Tcp) => "shortcut-nodeport-endpoints-tcp",
        (NodePort, Shortcut, Udp) => "shortcut-nodeport-endpoints-udp",
        (NodePort, Shortcut, Sctp) => "shortcut-nodeport-endpoints-sctp",
    }
}

const fn sticky_ids_name(scope: Scope, path: Path, protocol: Protocol) -> &'static str {
    use Path::{Main, Shortcut};
    use Protocol::{Sctp, Tcp, Udp};
    use Scope::{Address, NodePort};
    match (scope, path, protocol) {
        (Address, Main, Tcp) => "sticky-ids-tcp",
        (Address, Main, Udp) => "sticky-ids-udp",
        (Address, Main, Sctp) => "sticky-ids-sctp",
        (Address, Shortcut, Tcp) => "shortcut-sticky-ids-tcp",
        (Address, Shortcut, Udp) => "shortcut-sticky-ids-udp",
        (Address, Shortcut, Sctp) => "shortcut-sticky-ids-sctp",
        (NodePort, Main, Tcp) => "nodeport-sticky-ids-tcp",
        (NodePort, Main, Udp) => "nodeport-sticky-ids-udp",
        (NodePort, Main, Sctp) => "nodeport-sticky-ids-sctp",
        (NodePort, Shortcut, Tcp) => "shortcut-nodeport-sticky-ids-tcp",
        (NodePort, Shortcut, Udp) => "shortcut-nodeport-sticky-ids-udp",
        (NodePort, Shortcut, Sctp) => "shortcut-nodeport-sticky-ids-sctp",
    }
}

const fn sticky_endpoints_name(scope: Scope, path: Path, protocol: Protocol) -> &'static str {
    use Path::{Main, Shortcut};
    use Protocol::{Sctp, Tcp, Udp};
    use Scope::{Address, NodePort};
    match (scope, path, protocol) {
        (Address, Main, Tcp) => "sticky-endpoints-tcp",
        (Address, Main, Udp) => "sticky-endpoints-udp",
        (Address, Main, Sctp) => "sticky-endpoints-sctp",
        (Address, Shortcut, Tcp) => "shortcut-sticky-endpoints-tcp",
        (Address, Shortcut, Udp) => "shortcut-sticky-endpoints-udp",
        (Address, Shortcut, Sctp) => "shortcut-sticky-endpoints-sctp",
        (NodePort, Main, Tcp) => "nodeport-sticky-endpoints-tcp",
        (NodePort, Main, Udp) => "nodeport-sticky-endpoints-udp",
        (NodePort, Main, Sctp) => "nodeport-sticky-endpoints-sctp",
        (NodePort, Shortcut, Tcp) => "shortcut-nodeport-sticky-endpoints-tcp",
        (NodePort, Shortcut, Udp) => "shortcut-nodeport-sticky-endpoints-udp",
        (NodePort, Shortcut, Sctp) => "shortcut-nodeport-sticky-endpoints-sctp",
    }
}

const fn affinity_name(scope: Scope, protocol: Protocol) -> &'static str {
    match (scope, protocol) {
        (Scope::Address, Protocol::Tcp) => "affinity-tcp",
        (Scope::Address, Protocol::Udp) => "affinity-udp",
        (Scope::Address, Protocol::Sctp) => "affinity-sctp",
        (Scope::NodePort, Protocol::Tcp) => "nodeport-affinity-tcp",
        (Scope::NodePort, Protocol::Udp) => "nodeport-affinity-udp",
        (Scope::NodePort, Protocol::Sctp) => "nodeport-affinity-sctp",
    }
}

const fn index_of(scope: Scope, path: Path, protocol: Protocol) -> usize {
    6 * scope as usize + 3 * path as usize + protocol as usize
}

/// The key of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum ElementKey {
    /// An address.
    Address(IpAddr),
    /// A frontend.
    Frontend(Frontend),
    /// A frontend and the number of one of its endpoints.
    Indexed(Frontend, u32),
    /// A frontend and the id of one of its endpoints.
    Identified(Frontend, u32),
    /// An endpoint that reaches itself.
    Hairpin(EndpointAddr, Protocol),
    /// The protocol and the code of a balancing chain.
    Balancer(Balance),
    /// A frontend and a network that may use it.
    Source(Frontend, IpNet),
}

/// The value that an element maps to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ElementValue {
    /// No value: the element of a set.
    None,
    /// An endpoint.
    Endpoint(EndpointAddr),
    /// The id of an endpoint.
    Id(u32),
    /// The code of a balancing chain.
    Balancer(Balance),
    /// A verdict.
    Verdict(Target),
}

/// A verdict of a verdict map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// `drop`: there are endpoints, but none that this traffic may use.
    Drop,
    /// `goto reject-chain`: there are no endpoints.
    Reject,
    /// `goto` a chain. In a box, as few elements of the layout `maps` have one, and all have its size.
    Goto(Box<ChainId>),
}

/// A chain that exists for services: one that service ports share, or one of a single service port.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum ChainId {
    /// A chain that chooses among a number of endpoints, for all frontends of a protocol. Layout `maps`.
    Balance(Balance),
    /// A chain of a service port.
    Port(PortName, PortChain),
}

/// The properties that all frontends of a balancing chain share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Balance {
    /// The kind of their keys.
    pub(super) scope: Scope,
    /// The endpoint list.
    pub(super) path: Path,
    /// Their protocol.
    pub(super) protocol: Protocol,
    /// The number of endpoints of each, or of the slots of its table.
    pub(super) count: u32,
    /// How one of these is chosen.
    pub(super) choice: Choice,
}

/// How a balancing chain chooses the number of an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Choice {
    /// At random.
    Random,
    /// One after the other. The chains of a number of endpoints differ in their turn, so that few frontends
    /// share a counter: with the same for all, a client that asks two services in turn would always get the
    /// same endpoint of each.
    RoundRobin(u8),
    /// By a hash of the client's address.
    SourceHash,
    /// By a hash of the client's address and port, among the slots of a table.
    Maglev,
    /// As the client had it; for a new one by a hash of its address. A client is known for this number of
    /// seconds.
    Affinity(u32),
}

impl Balance {
    /// Returns the number that stands for the chain among those of its scope, path and protocol: the number
    /// of endpoints, and how one is chosen. It is the same in every plan.
    ///
    /// ```text
    ///     31 30 28 27    20 19            14 13                0
    ///    +--+-----+--------+----------------+-------------------+
    ///    | 0|  0  |            number of endpoints              |  random
    ///    +--+-----+--------+----------------+-------------------+
    ///    | 0|  1  |  turn  |         number of endpoints        |  round-robin
    ///    +--+-----+--------+----------------+-------------------+
    ///    | 0| 2,3 |    0   |    number of endpoints, slots      |  source-hash, maglev
    ///    +--+-----+--------+----------------+-------------------+
    ///    | 1|             seconds           |number of endpoints|  session affinity
    ///    +--+-------------------------------+-------------------+
    /// ```
    pub(super) fn code(&self) -> u32 {
        match self.choice {
            Choice::Random => self.count,
            Choice::RoundRobin(turn) => 1 << CHOICE_BIT | u32::from(turn) << COUNT_BITS | self.count,
            Choice::SourceHash => 2 << CHOICE_BIT | self.count,
            Choice::Maglev => 3 << CHOICE_BIT | self.count,
            Choice::Affinity(seconds) => OWN_PRIORITY_BIT | seconds << STICKY_COUNT_BITS | self.count,
        }
    }

    /// Returns the map that leads from the code to the chain.
    pub(super) const fn container(&self) -> Container {
        Container::Balancers(self.scope, self.path)
    }

    /// Returns the maps that its rules use: of endpoints, and of ids under session affinity. The map that its
    /// rules fill is not among them.
    pub(super) fn uses(&self) -> impl Iterator<Item = Container> + use<> {
        let (scope, path, protocol) = (self.scope, self.path, self.protocol);
        let (endpoints, ids) = match self.choice {
            Choice::Affinity(_) => (
                Container::StickyEndpoints(scope, path, protocol),
                Some(Container::StickyIds(scope, path, protocol)),
            ),
            _ => (Container::Endpoints(scope, path, protocol), None),
        };
        [endpoints].into_iter().chain(ids)
    }
}

/// The lowest bit of the code of a chain that says how an endpoint is chosen.
const CHOICE_BIT: u32 = 28;
/// The bits for the number of endpoints in the code of a chain that chooses otherwise than at random.
const COUNT_BITS: u32 = 20;
/// The number of endpoints that a frontend of such a chain may have: 1048575.
pub(super) const MAX_SCHEDULED: usize = (1 << COUNT_BITS) - 1;
/// The bits for the number of endpoints in the code of a chain with session affinity. The seconds take the 17
/// bits above.
const STICKY_COUNT_BITS: u32 = 14;
/// The number of endpoints that a frontend with session affinity may have: 16383.
pub(super) const MAX_STICKY: usize = (1 << STICKY_COUNT_BITS) - 1;
/// The longest time of session affinity: 36 hours. Kubernetes admits a day.
pub(super) const MAX_SECONDS: u32 = (1 << (31 - STICKY_COUNT_BITS)) - 1;

/// The chains that a service port may have, by kube-proxy's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum PortChain {
    /// `endpoint-`: one endpoint, under session affinity. Layout `chains`.
    Endpoint(EndpointAddr),
    /// `service-`: all endpoints. Layout `chains`.
    Service,
    /// `local-`: this node's endpoints. Layout `chains`.
    Local,
    /// `external-`: traffic from outside the cluster. Layout `chains`.
    External,
    /// `firewall-`: drops traffic from outside the source ranges. Layout `chains`.
    Firewall,
}

/// An element of a set or map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Element {
    /// The set or map it belongs to.
    pub(super) container: Container,
    /// Its key.
    pub(super) key: ElementKey,
    /// The value it maps to.
    pub(super) value: ElementValue,
    /// The service port that its comment names, if it has one. It is not compared with the kernel.
    pub(super) comment: Option<Box<PortName>>,
}

/// Takes the elements of a plan.
pub(super) trait Sink {
    /// Takes an element.
    fn element(&mut self, element: Element);

    /// Takes an element without a comment.
    fn plain(&mut self, container: Container, key: ElementKey, value: ElementValue) {
        self.element(Element { container, key, value, comment: None });
    }

    /// Takes the numbered endpoints of a frontend, most elements of a large cluster.
    fn endpoints(&mut self, container: Container, frontend: Frontend, backends: &[EndpointAddr]) {
        for (index, backend) in (0..).zip(backends) {
            self.plain(container, ElementKey::Indexed(frontend, index), ElementValue::Endpoint(*backend));
        }
    }
}

impl<F: FnMut(Element)> Sink for F {
    fn element(&mut self, element: Element) {
        self(element);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_container_has_its_index_and_a_unique_name() {
        let mut names = std::collections::BTreeSet::new();
        for (index, container) in Container::ALL.into_iter().enumerate() {
            assert_eq!(container.index(), index);
            assert!(names.insert(container.name()));
        }
    }

    #[test]
    fn the_number_of_a_frontend_sorts_as_it_does() {
        let addresses =
            [None, Some("9.0.0.1"), Some("10.0.0.1"), Some("10.0.0.2"), Some("::1"), Some("fd00::1")];
        let mut frontends = Vec::new();
        for address in addresses.map(|address| address.map(|text| text.parse().unwrap())) {
            for protocol in Protocol::ALL {
                frontends.extend([80, 443, 65535].map(|port| Frontend { address, protocol, port }));
            }
        }
        for (one, other) in frontends.iter().flat_map(|one| frontends.iter().map(move |other| (one, other))) {
            assert_eq!(one.order().cmp(&other.order()), one.cmp(other), "{one:?}, {other:?}");
        }
    }

    #[test]
    fn chains_that_differ_have_codes_that_differ() {
        let code = |count, choice| {
            Balance { scope: Scope::Address, path: Path::Main, protocol: Protocol::Tcp, count, choice }.code()
        };
        let most = |number: usize| u32::try_from(number).unwrap();
        let mut codes = std::collections::BTreeSet::new();
        for affinity in [1, 2, 10_800, 86_400, MAX_SECONDS].map(Choice::Affinity) {
            for count in [1, 2, 5, most(MAX_STICKY) - 1, most(MAX_STICKY)] {
                assert!(codes.insert(code(count, affinity)), "{count} endpoints, {affinity:?}");
            }
        }
        assert_eq!(codes.last(), Some(&u32::MAX));
        let turns = [0, 1, 2, 255].map(Choice::RoundRobin);
        for choice in [Choice::Random, Choice::SourceHash, Choice::Maglev].into_iter().chain(turns) {
            for count in [1, 2, 5, 251, most(MAX_STICKY), most(MAX_SCHEDULED) - 1, most(MAX_SCHEDULED)] {
                assert!(codes.insert(code(count, choice)), "{count} endpoints, {choice:?}");
                // It does not look like the id of an endpoint.
                assert_eq!(code(count, choice) & OWN_PRIORITY_BIT, 0);
            }
        }
        // nft shows it as `0:5`.
        assert_eq!(code(5, Choice::Random), 5);
        assert!(codes.insert(code(1 << 20, Choice::Random)));
    }
}
