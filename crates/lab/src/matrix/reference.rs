//! What must happen to a connection, from the Kubernetes documentation (Service, "Virtual IPs and service
//! proxies", "Traffic policies", "Session affinity", `loadBalancerSourceRanges`): a second opinion that knows
//! nothing of any planner.

use std::collections::BTreeSet;

use sluicegate_proxier::Mode;

/// A kind of service that the matrix has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Variation {
    pub(super) endpoints: Endpoints,
    pub(super) internal: Policy,
    pub(super) external: Policy,
    pub(super) extra: Extra,
}

/// Where endpoints are, and in which state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Endpoints {
    Local,
    Remote,
    Both,
    None,
    /// The local one is being shut down but still serves; the remote one is ready.
    LocalTerminating,
    /// Both are being shut down but still serve.
    AllTerminating,
    /// Two on this node and one far away, all ready: something to choose from under either policy.
    Several,
}

/// A traffic policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Policy {
    Cluster,
    Local,
}

/// What else a service asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extra {
    Plain,
    Affinity,
    /// Everybody in the laboratory may use the load balancer.
    RangesAllow,
    /// Nobody may.
    RangesRefuse,
    /// Only this node may.
    RangesNode,
}

/// Who asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Client {
    /// A pod of this node that is no endpoint.
    LocalPod,
    /// The endpoint on this node.
    Endpoint,
    /// The node itself.
    Node,
    /// A pod of another node.
    RemotePod,
    /// Somebody outside the cluster.
    Outside,
}

/// Which address of the service is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Front {
    ClusterIp,
    NodePort,
    ExternalIp,
    LoadBalancerIp,
}

/// An endpoint by where it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Place {
    Here,
    /// Another pod of this node.
    Beside,
    There,
}

/// The source address that an endpoint sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    Client,
    Node,
    /// The address that was asked, which the node has itself.
    Target,
}

/// What must come of a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Expectation {
    /// One of these answers, each with some probability, or always the same where the client sticks to it.
    Answered { by: BTreeSet<Place>, sticky: bool },
    /// Refused at once.
    Refused,
    /// Silently dropped.
    Dropped,
}

impl Variation {
    /// What must come of it when `client` asks this service at `front`.
    pub(super) fn expect(&self, front: Front, client: Client, mode: Mode) -> Expectation {
        if mode == Mode::Iptables && self.endpoints == Endpoints::None {
            return Self::expect_of_iptables_without_endpoints(front, client);
        }
        // In ipvs mode what the node sends is stopped by its connection, of which there is none without
        // endpoints.
        let unseen = mode == Mode::Ipvs && client == Client::Node && self.endpoints == Endpoints::None;
        if front == Front::LoadBalancerIp && !self.extra.admits(client) && !unseen {
            return Expectation::Dropped;
        }
        let by = match (front, self.policy(front)) {
            (_, Policy::Local) if mode == Mode::Ipvs => self.endpoints.of_node_or_cluster(),
            (_, Policy::Cluster) => self.endpoints.of_cluster(),
            (Front::ClusterIp, Policy::Local) => self.endpoints.of_node(),
            // "Local" is about traffic from outside; who is inside the cluster may use every endpoint.
            (_, Policy::Local) if client != Client::Outside => self.endpoints.of_cluster(),
            (_, Policy::Local) => self.endpoints.of_node(),
        };
        if self.endpoints == Endpoints::None {
            Expectation::Refused
        } else if by.is_empty() {
            Expectation::Dropped
        } else {
            Expectation::Answered { by, sticky: self.extra == Extra::Affinity }
        }
    }

    /// In iptables mode the source ranges of a service without endpoints are not looked at, and what refuses
    /// traffic to external addresses is not in the way of what the node itself sends: its packets leave for
    /// nowhere.
    fn expect_of_iptables_without_endpoints(front: Front, client: Client) -> Expectation {
        match (front, client) {
            (Front::ExternalIp | Front::LoadBalancerIp, Client::Node) => Expectation::Dropped,
            _ => Expectation::Refused,
        }
    }

    /// Whose address the endpoint at `place` sees.
    pub(super) fn source(&self, front: Front, client: Client, place: Place, mode: Mode) -> Source {
        // An endpoint that reaches itself must not see its own address: it would answer past the node.
        if client == Client::Endpoint && place == Place::Here {
            return Source::Node;
        }
        match (front, self.policy(front), client) {
            (Front::ClusterIp, _, Client::Node | Client::Outside) => Source::Node,
            (Front::ClusterIp, ..) => Source::Client,
            (_, Policy::Cluster, _) => Source::Node,
            // IPVS needs no masquerading for what the node sends to an address of its own.
            (_, Policy::Local, Client::Node) if mode == Mode::Ipvs => Source::Target,
            (_, Policy::Local, Client::Node) => Source::Node,
            (_, Policy::Local, _) => Source::Client,
        }
    }

    fn policy(&self, front: Front) -> Policy {
        if front == Front::ClusterIp { self.internal } else { self.external }
    }
}

impl Endpoints {
    pub(super) const ALL: [Self; 7] = [
        Self::Local,
        Self::Remote,
        Self::Both,
        Self::None,
        Self::LocalTerminating,
        Self::AllTerminating,
        Self::Several,
    ];

    /// Those of the whole cluster that take traffic: ready ones, or, without any, those that serve their
    /// last.
    fn of_cluster(self) -> BTreeSet<Place> {
        match self {
            Self::Local => [Place::Here].into(),
            Self::Remote | Self::LocalTerminating => [Place::There].into(),
            Self::Both | Self::AllTerminating => [Place::Here, Place::There].into(),
            Self::Several => Place::ALL.into(),
            Self::None => BTreeSet::new(),
        }
    }

    /// Those of this node that take traffic, by the same rule.
    fn of_node(self) -> BTreeSet<Place> {
        match self {
            Self::Local | Self::Both | Self::LocalTerminating | Self::AllTerminating => [Place::Here].into(),
            Self::Several => [Place::Here, Place::Beside].into(),
            Self::Remote | Self::None => BTreeSet::new(),
        }
    }

    /// In ipvs mode a virtual server does not know who asks: policy Local means the endpoints of this node,
    /// and without any, for the sake of pods of this node, those of the cluster.
    fn of_node_or_cluster(self) -> BTreeSet<Place> {
        let here = self.of_node();
        if here.is_empty() { self.of_cluster() } else { here }
    }
}

impl Extra {
    fn admits(self, client: Client) -> bool {
        match self {
            Self::Plain | Self::Affinity | Self::RangesAllow => true,
            Self::RangesRefuse => false,
            Self::RangesNode => client == Client::Node,
        }
    }
}

impl Client {
    pub(super) const ALL: [Self; 5] =
        [Self::LocalPod, Self::Endpoint, Self::Node, Self::RemotePod, Self::Outside];

    /// The host of the laboratory.
    pub(super) const fn host(self) -> &'static str {
        match self {
            Self::LocalPod => "pod",
            Self::Endpoint => "here",
            Self::Node => "node",
            Self::RemotePod => "far",
            Self::Outside => "client",
        }
    }
}

impl Front {
    pub(super) const ALL: [Self; 4] =
        [Self::ClusterIp, Self::NodePort, Self::ExternalIp, Self::LoadBalancerIp];
}

impl Place {
    pub(super) const ALL: [Self; 3] = [Self::Here, Self::Beside, Self::There];

    /// The host of the laboratory.
    pub(super) const fn host(self) -> &'static str {
        match self {
            Self::Here => "here",
            Self::Beside => "beside",
            Self::There => "there",
        }
    }
}

/// Every variation that means something.
pub(super) fn variations() -> Vec<Variation> {
    let mut all = Vec::new();
    for endpoints in Endpoints::ALL {
        for internal in [Policy::Cluster, Policy::Local] {
            for external in [Policy::Cluster, Policy::Local] {
                for extra in [
                    Extra::Plain,
                    Extra::Affinity,
                    Extra::RangesAllow,
                    Extra::RangesRefuse,
                    Extra::RangesNode,
                ] {
                    all.push(Variation { endpoints, internal, external, extra });
                }
            }
        }
    }
    all
}
