//! The questions of the demonstration, and the expected answers.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use sluicegate_services::{Cluster, Family, Protocol, ServiceName, ServicePort};

use crate::{Answer, Network, Transport, ask};

/// A question to a service, of either family.
pub(super) struct Case {
    /// The host that asks.
    pub(super) from: &'static str,
    /// The service, in the namespace `demo`.
    pub(super) service: &'static str,
    pub(super) transport: Transport,
    pub(super) by: By,
    pub(super) expected: Expected,
}

/// The address of a service that is asked.
#[derive(Clone, Copy)]
pub(super) enum By {
    ClusterIp,
    NodePort,
    ExternalIp,
    LoadBalancerIp,
    /// The cluster IP, at a port that is not the service's.
    WrongPort,
}

/// The expected answers.
pub(super) enum Expected {
    /// All of these endpoints answer and no others, and they see this source.
    Answers { by: &'static [&'static str], source: Source },
    /// The connection is refused at once.
    Refused,
}

/// The source address that an endpoint must see.
#[derive(Clone, Copy)]
pub(super) enum Source {
    /// The client's own.
    Client,
    /// The node's, because traffic from outside the cluster must come back this way.
    Node,
}

/// The outcome of a case.
pub(super) struct Outcome {
    pub(super) family: Family,
    pub(super) from: &'static str,
    pub(super) asked: String,
    pub(super) answers: String,
    pub(super) sources: String,
    pub(super) expected: String,
    pub(super) ok: bool,
}

pub(super) const CASES: &[Case] = &[
    answered("pod", "web", Transport::Tcp, By::ClusterIp, WEB, Source::Client),
    answered("node", "web", Transport::Tcp, By::ClusterIp, WEB, Source::Node),
    answered("client", "web", Transport::Tcp, By::ClusterIp, WEB, Source::Node),
    answered("client", "web", Transport::Tcp, By::NodePort, WEB, Source::Node),
    answered("client", "web", Transport::Tcp, By::ExternalIp, WEB, Source::Node),
    answered("client", "web", Transport::Tcp, By::LoadBalancerIp, WEB, Source::Node),
    answered("pod", "dns", Transport::Udp, By::ClusterIp, DNS, Source::Client),
    answered("pod", "dns", Transport::Tcp, By::ClusterIp, DNS, Source::Client),
    answered("mirror", "mirror", Transport::Tcp, By::ClusterIp, &["mirror"], Source::Node),
    refused("pod", "empty", By::ClusterIp),
    refused("client", "empty", By::ClusterIp),
    refused("client", "empty", By::NodePort),
    refused("pod", "web", By::WrongPort),
];

const WEB: &[&str] = &["web-here", "web-there"];
const DNS: &[&str] = &["dns-here", "dns-there"];

const fn answered(
    from: &'static str,
    service: &'static str,
    transport: Transport,
    by: By,
    endpoints: &'static [&'static str],
    source: Source,
) -> Case {
    Case { from, service, transport, by, expected: Expected::Answers { by: endpoints, source } }
}

const fn refused(from: &'static str, service: &'static str, by: By) -> Case {
    Case { from, service, transport: Transport::Tcp, by, expected: Expected::Refused }
}

impl Case {
    /// Runs the case, and compares the answers. `gateway` is the source address of masqueraded traffic.
    pub(super) fn run(
        &self,
        network: &Network,
        cluster: &Cluster,
        family: Family,
        gateway: IpAddr,
    ) -> Result<Outcome, String> {
        let host = network.host(self.from).ok_or_else(|| format!("there is no host {}", self.from))?;
        let target = self.target(cluster, family)?;
        let client = host.address_of(family);
        let times = match self.expected {
            Expected::Answers { .. } => TIMES,
            Expected::Refused => TIMES_REFUSED,
        };
        let answers = host.namespace.run(|| ask(self.transport, target, times, PATIENCE));
        let tally = Tally::of(&answers);
        let wanted = self.expected.tally(client, gateway);
        Ok(Outcome {
            family,
            from: self.from,
            asked: format!("{} {} {} ({target})", self.service, self.transport, self.by.words()),
            answers: tally.answers(),
            sources: join(&tally.sources),
            expected: wanted.words(),
            ok: wanted.is_met_by(&tally),
        })
    }

    fn target(&self, cluster: &Cluster, family: Family) -> Result<SocketAddr, String> {
        let protocol = match self.transport {
            Transport::Tcp => Protocol::Tcp,
            Transport::Udp => Protocol::Udp,
        };
        let missing = |what: &str| format!("demo/{} has no {what} for {family}", self.service);
        let name = ServiceName::new("demo", self.service).map_err(|_| missing("name"))?;
        let ports = cluster.ports(&name, family);
        let port = ports.iter().find(|port| port.name.protocol == protocol).ok_or_else(|| missing("port"))?;
        self.by.target(port, cluster).ok_or_else(|| missing(self.by.words()))
    }
}

impl By {
    fn target(self, port: &ServicePort<'_>, cluster: &Cluster) -> Option<SocketAddr> {
        let (address, number) = match self {
            Self::ClusterIp => (port.cluster_ip?, port.port.get()),
            Self::WrongPort => (port.cluster_ip?, WRONG_PORT),
            Self::NodePort => (cluster.node().primary(port.family)?, port.node_port?.get()),
            Self::ExternalIp => (*port.external_ips.first()?, port.port.get()),
            Self::LoadBalancerIp => (*port.load_balancer_ips.first()?, port.port.get()),
        };
        Some(SocketAddr::new(address, number))
    }

    const fn words(self) -> &'static str {
        match self {
            Self::ClusterIp => "by cluster IP",
            Self::NodePort => "by node port",
            Self::ExternalIp => "by external IP",
            Self::LoadBalancerIp => "by load-balancer IP",
            Self::WrongPort => "at a wrong port",
        }
    }
}

/// The number of answers of each kind.
#[derive(Default)]
struct Tally {
    endpoints: BTreeMap<String, usize>,
    sources: BTreeSet<String>,
    others: BTreeMap<String, usize>,
}

impl Tally {
    fn of(answers: &[Answer]) -> Self {
        let mut tally = Self::default();
        for answer in answers {
            match answer {
                Answer::From { name, source } => {
                    *tally.endpoints.entry(name.clone()).or_default() += 1;
                    tally.sources.insert(source.to_string());
                }
                Answer::Refused => *tally.others.entry(REFUSED.to_owned()).or_default() += 1,
                Answer::Stopped => *tally.others.entry("stopped on the way out".to_owned()).or_default() += 1,
                Answer::Silence => *tally.others.entry("no answer".to_owned()).or_default() += 1,
                Answer::Failed(why) => *tally.others.entry(why.clone()).or_default() += 1,
            }
        }
        tally
    }

    fn answers(&self) -> String {
        let counts: Vec<_> = self
            .endpoints
            .iter()
            .chain(&self.others)
            .map(|(name, count)| format!("{name} {count}"))
            .collect();
        counts.join(", ")
    }
}

/// The expected answers in one family.
struct Wanted {
    endpoints: Option<(BTreeSet<String>, String)>,
}

impl Expected {
    fn tally(&self, client: IpAddr, gateway: IpAddr) -> Wanted {
        match self {
            Self::Refused => Wanted { endpoints: None },
            Self::Answers { by, source } => {
                let source = match source {
                    Source::Client => client,
                    Source::Node => gateway,
                };
                let names = by.iter().map(|name| (*name).to_owned()).collect();
                Wanted { endpoints: Some((names, source.to_string())) }
            }
        }
    }
}

impl Wanted {
    fn is_met_by(&self, tally: &Tally) -> bool {
        match &self.endpoints {
            None => tally.endpoints.is_empty() && tally.others.keys().eq([REFUSED]),
            Some((names, source)) => {
                tally.others.is_empty()
                    && tally.endpoints.keys().eq(names)
                    && tally.sources.iter().eq([source])
            }
        }
    }

    fn words(&self) -> String {
        match &self.endpoints {
            None => REFUSED.to_owned(),
            Some((names, source)) => format!("{} from {source}", join(names)),
        }
    }
}

fn join(words: &BTreeSet<String>) -> String {
    words.iter().map(String::as_str).collect::<Vec<_>>().join(", ")
}

const REFUSED: &str = "refused";
/// So many that an endpoint of two is left out by chance once in eight million runs.
const TIMES: usize = 24;
/// Few, because the kernel sends ICMP errors at a limited rate.
const TIMES_REFUSED: usize = 4;
/// Longer than an answer takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(5);
const WRONG_PORT: u16 = 8;
