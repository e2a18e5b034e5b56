//! Says what must happen to a packet, and why: which frontend of which service it is addressed to, which
//! endpoints it may reach with which probability, which source address they see, or why it is refused or
//! dropped.
//!
//! [`explain`] is a pure function of the services. It uses neither a planner nor
//! [`categorize`](sluicegate_services::categorize()), so that it can judge both.

mod endpoints;
mod frontend;
mod text;
mod traffic;

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU16;

use ipnet::IpNet;
use sluicegate_services::{
    ClaimKind, Cluster, DetectLocal, Family, InterfaceName, NodePortAddresses, PortName, Protocol, Scheduler,
};

use crate::Mode;

/// A packet that opens a connection.
///
/// ```
/// use sluicegate_service_rules::explain::Question;
/// use sluicegate_services::Protocol;
///
/// let question = Question {
///     from: "10.244.0.9".parse()?,
///     from_port: None,
///     interface: None,
///     to: "10.96.0.10:80".parse()?,
///     protocol: Protocol::Tcp,
/// };
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// Its source address.
    pub from: IpAddr,
    /// Its source port, if it is known: [`Scheduler::Maglev`] chooses by it.
    pub from_port: Option<NonZeroU16>,
    /// The interface that it comes in through, where pods are detected by interfaces.
    pub interface: Option<InterfaceName>,
    /// Its destination.
    pub to: SocketAddr,
    /// Its protocol.
    pub protocol: Protocol,
}

/// The settings of the proxy that decide about packets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// The mode.
    pub mode: Mode,
    /// Whether all traffic to cluster IPs is masqueraded.
    pub masquerade_all: bool,
    /// How traffic of pods is recognised.
    pub detect_local: DetectLocal,
    /// The addresses that serve node ports.
    pub node_port_addresses: NodePortAddresses,
    /// How an endpoint is chosen for the connections of services that do not say it themselves, in nftables
    /// mode.
    pub scheduler: Scheduler,
    /// The scheduler of IPVS, as ipvsadm calls it, in ipvs mode: `rr` where this is `None`.
    pub ipvs_scheduler: Option<String>,
    /// Whether node ports are served on localhost: in iptables mode by rules, on 127.0.0.1; in nftables mode
    /// those of TCP, by the proxier itself.
    pub localhost_node_ports: bool,
    /// The protocols whose node ports are rejected on loopback addresses, in nftables mode.
    pub rejected_on_localhost: Vec<Protocol>,
    /// The addresses of this node's interfaces; `None` where they are not known, and those of the Node object
    /// stand for them.
    pub local_addresses: Option<Vec<IpAddr>>,
}

/// Why a question has no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The source and the destination are of different families.
    #[error("expected two addresses of one family, found the source {from} and the destination {to}")]
    Families {
        /// The source.
        from: IpAddr,
        /// The destination.
        to: IpAddr,
    },
    /// Pods are detected by their interface, and that of the packet is not known.
    #[error("pods are detected by their interface: expected the one that the packet comes in through")]
    NoInterface,
    /// Pods are detected by the node's networks, and it has none.
    #[error(transparent)]
    Services(#[from] sluicegate_services::Error),
}

/// What must happen to a packet.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Explanation {
    /// The packet.
    pub question: Question,
    /// The name of this node.
    pub node: String,
    /// The mode.
    pub mode: Mode,
    /// What the source is, as far as it matters.
    pub client: Client,
    /// The frontend that it is addressed to; `None` when it is to none.
    pub frontend: Option<Frontend>,
    /// What was decided, in order.
    pub decisions: Vec<Decision>,
    /// Every endpoint of the service port, used or not.
    pub endpoints: Vec<Considered>,
    /// What happens.
    pub verdict: Verdict,
}

/// What the source of a packet is. Both can be true, as for the node's address in its pods' network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Client {
    /// It is an address of this node.
    pub is_node: bool,
    /// The local detector takes it for a pod.
    pub is_pod: bool,
}

/// The frontend of a service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frontend {
    /// The service and its port.
    pub port: PortName,
    /// Every field by which the service has the frontend; the first is the one that counts.
    pub kinds: Vec<ClaimKind>,
}

/// One decision, with the field that it follows from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The object: `Service demo/web`, or `configuration`.
    pub object: String,
    /// Its field.
    pub field: &'static str,
    /// The value of the field.
    pub value: String,
    /// What follows.
    pub effect: String,
}

/// An endpoint of the service port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Considered {
    /// Its address and port.
    pub address: SocketAddr,
    /// The EndpointSlices that have it, as `namespace/name`.
    pub slices: Vec<String>,
    /// Its node, where the slice says it.
    pub node: Option<String>,
    /// Whether the packet may be sent to it.
    pub is_used: bool,
    /// Why, or why not, naming fields of the slice.
    pub reason: String,
}

/// What happens to a packet.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// It is sent to one of these endpoints.
    Forwarded {
        /// The endpoints: one if the scheduler has chosen it for this client.
        choices: Vec<Choice>,
        /// How one of the endpoints is chosen: in nftables mode as the service or the node says, at random in
        /// iptables mode. `None` under session affinity, where the client has its endpoint, and in ipvs mode,
        /// where the kernel has schedulers of its own.
        scheduler: Option<Scheduler>,
        /// For how many seconds after its last connection a client stays with its endpoint.
        sticky: Option<u32>,
    },
    /// It is answered with an ICMP error, and this is why.
    Refused(String),
    /// It is discarded, and this is why.
    Dropped(String),
    /// No rule of the proxy changes or stops it, and this is why.
    Untouched(String),
}

/// An endpoint that a packet may be sent to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Choice {
    /// The endpoint.
    pub endpoint: SocketAddr,
    /// The probability that a client which sticks to none is sent to it; `None` where a scheduler of IPVS
    /// decides by what is not known here.
    pub probability: Option<f64>,
    /// The source address that it sees.
    pub source: Source,
}

/// The source address that an endpoint sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// That of the client.
    Client,
    /// An address of this node, on the way to the endpoint: the packet is masqueraded.
    Node,
    /// The address that was asked, which this node has itself (ipvs mode).
    Destination,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Client => "the client's",
            Self::Node => "this node's (masqueraded)",
            Self::Destination => "the address asked",
        })
    }
}

impl Verdict {
    /// Returns one word: `forwarded`, `refused`, `dropped` or `untouched`.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Forwarded { .. } => "forwarded",
            Self::Refused(_) => "refused",
            Self::Dropped(_) => "dropped",
            Self::Untouched(_) => "untouched",
        }
    }
}

/// Says what must happen to the packet of `question` on this node of `cluster`.
///
/// ```
/// use sluicegate_service_rules::explain::{Question, Settings, explain};
/// use sluicegate_services::{Cluster, Node, Port, Protocol, Service, ServiceName};
///
/// let mut cluster = Cluster::new(Node::new("node-1", ["192.168.0.2".parse()?]));
/// let web = ServiceName::new("demo", "web")?;
/// cluster.set_service(&web, Service::new(["172.30.0.41".parse()?], [Port::tcp("http", 80)?])?);
/// let question = Question {
///     from: "10.244.1.5".parse()?,
///     from_port: None,
///     interface: None,
///     to: "172.30.0.41:80".parse()?,
///     protocol: Protocol::Tcp,
/// };
/// let explanation = explain(&cluster, &Settings::default(), &question)?;
/// assert_eq!(explanation.verdict.as_str(), "refused");
/// assert!(explanation.to_string().contains("Service demo/web has no endpoint"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// [`Error`] when the question has no answer.
pub fn explain(cluster: &Cluster, settings: &Settings, question: &Question) -> Result<Explanation, Error> {
    let Question { from, to, .. } = question;
    let family = Family::of(to.ip());
    if Family::of(*from) != family {
        return Err(Error::Families { from: *from, to: to.ip() });
    }
    let local = settings.local_addresses.as_deref().unwrap_or(&cluster.node().addresses);
    let is_node = from.is_loopback() || local.contains(from);
    let [ipv4, ipv6] = settings.detect_local.detectors(cluster.node())?;
    let detector = if family == Family::Ipv4 { ipv4 } else { ipv6 };
    let is_pod = traffic::is_pod(&detector, question, is_node)?;
    let context =
        Context { cluster, settings, question, family, local, client: Client { is_node, is_pod }, detector };
    Ok(traffic::explanation(&context))
}

/// What all steps of an explanation look at.
struct Context<'a> {
    cluster: &'a Cluster,
    settings: &'a Settings,
    question: &'a Question,
    family: Family,
    local: &'a [IpAddr],
    client: Client,
    detector: sluicegate_services::LocalDetector,
}

impl Context<'_> {
    /// Returns whether the packet comes from inside the cluster, for which `externalTrafficPolicy` does not
    /// count. IPVS does not know who asks.
    fn is_inside(&self) -> bool {
        self.settings.mode != Mode::Ipvs && (self.client.is_pod || self.client.is_node)
    }
}

/// Returns the networks as one text.
fn list<'a>(nets: impl IntoIterator<Item = &'a IpNet>) -> String {
    nets.into_iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests;
