//! The elements of the table's sets and maps, in a compact form.

use std::net::IpAddr;

use ipnet::IpNet;

use sluicegate_services::{Endpoint, PortName, Protocol};

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
    /// Returns whether the key of its elements has an address.
    pub(super) const fn scope(&self) -> Scope {
        if self.address.is_some() { Scope::Address } else { Scope::NodePort }
    }
}

/// The endpoint that connections are sent to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Backend {
    /// The endpoint's address.
    pub(super) ip: IpAddr,
    /// Its port.
    pub(super) port: u16,
}

impl From<&Endpoint> for Backend {
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
    /// `hairpin-connections`: a local endpoint that reaches itself through its service.
    Hairpin,
    /// `endpoints-tcp` and similar: (frontend, number) to endpoint. Layout `maps`.
    ///
    /// There is one map for each protocol. With `th dport` in its type, nft 1.0.6 cannot add a rule for
    /// several protocols once the map is in the kernel; with `tcp dport` it reads a rule for all protocols as
    /// one for TCP.
    Endpoints(Scope, Path, Protocol),
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
    /// `service-ips`, `service-nodeports` and their short cuts: frontend to verdict.
    Dispatch(Scope, Path),
}

impl Container {
    /// All containers, data before the verdicts that make it reachable, as a change in several batches
    /// requires.
    pub(super) const ALL: [Self; 28] = {
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
            Self::NoEndpoint(Address),
            Self::NoEndpoint(NodePort),
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
            Self::Endpoints(scope, path, protocol) => {
                10 + 6 * scope as usize + 3 * path as usize + protocol as usize
            }
            Self::NoEndpoint(scope) => 22 + scope as usize,
            Self::Dispatch(scope, path) => 24 + 2 * scope as usize + path as usize,
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
            Self::Masquerade(Address) => "masquerade-ips",
            Self::Masquerade(NodePort) => "masquerade-nodeports",
            Self::MasqueradeLocal(Address) => "masquerade-local-ips",
            Self::MasqueradeLocal(NodePort) => "masquerade-local-nodeports",
            Self::Restricted => "restricted-ips",
            Self::Allowed => "allowed-sources",
            Self::Firewall => "firewall-ips",
            Self::NoEndpoint(Address) => "no-endpoint-services",
            Self::NoEndpoint(NodePort) => "no-endpoint-nodeports",
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

/// The key of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum ElementKey {
    /// An address.
    Address(IpAddr),
    /// A frontend.
    Frontend(Frontend),
    /// A frontend and the number of one of its endpoints.
    Indexed(Frontend, u32),
    /// An endpoint that reaches itself.
    Hairpin(Backend, Protocol),
    /// A frontend and a network that may use it.
    Source(Frontend, IpNet),
}

/// The value that an element maps to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ElementValue {
    /// No value: the element of a set.
    None,
    /// An endpoint.
    Backend(Backend),
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
    /// `goto` a chain.
    Goto(ChainId),
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
    /// The number of endpoints of each.
    pub(super) count: u32,
}

impl Balance {
    /// Returns the map that has the endpoints.
    pub(super) const fn endpoints(&self) -> Container {
        Container::Endpoints(self.scope, self.path, self.protocol)
    }
}

/// The chains that a service port may have, by kube-proxy's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum PortChain {
    /// `endpoint-`: one endpoint, under session affinity.
    Endpoint(Backend),
    /// `service-`: all endpoints.
    Service,
    /// `local-`: this node's endpoints.
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
    pub(super) comment: Option<PortName>,
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
}
