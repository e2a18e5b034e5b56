//! The order of decisions about a packet: the frontend, the source ranges, the traffic policy, the endpoints,
//! session affinity, masquerading.

use std::net::SocketAddr;
use std::num::NonZeroU16;

use sluicegate_services::{ClaimKind, LocalDetector, Scheduler, ServicePort, Unserved};

use super::endpoints::{self, Scope};
use super::frontend::{self, Destination};
use super::{
    Choice, Considered, Context, Decision, Error, Explanation, Frontend, Question, Source, Verdict, list,
};
use crate::{Mode, scheduling};

/// Returns whether the detector takes the packet for one of a pod.
pub(super) fn is_pod(detector: &LocalDetector, question: &Question, is_node: bool) -> Result<bool, Error> {
    let of_interface = |is_it: &dyn Fn(&str) -> bool| match &question.interface {
        // What the node itself sends comes in through no interface.
        _ if is_node => Ok(false),
        Some(name) => Ok(is_it(name.as_str())),
        None => Err(Error::NoInterface),
    };
    match detector {
        LocalDetector::None => Ok(false),
        LocalDetector::Cidr(net) => Ok(net.contains(&question.from)),
        LocalDetector::Interface(bridge) => of_interface(&|name| name == bridge.as_str()),
        LocalDetector::InterfacePrefix(prefix) => of_interface(&|name| name.starts_with(prefix.as_str())),
    }
}

/// Explains the packet of the context.
pub(super) fn explanation(context: &Context<'_>) -> Explanation {
    let mut explanation = Explanation {
        question: context.question.clone(),
        node: context.cluster.node().name.clone(),
        mode: context.settings.mode,
        client: context.client,
        frontend: None,
        decisions: Vec::new(),
        endpoints: Vec::new(),
        verdict: Verdict::Untouched(String::new()),
    };
    match context.destination() {
        Destination::Other(verdict) => explanation.verdict = verdict,
        Destination::HealthCheck(name) => {
            let decision = Decision {
                object: format!("Service {name}"),
                field: frontend::field(ClaimKind::HealthCheckNodePort),
                value: context.question.to.port().to_string(),
                effect: "load balancers ask here whether this node has endpoints".to_owned(),
            };
            explanation.decisions.push(decision);
            explanation.verdict = Verdict::Untouched(
                "the proxier itself answers health-check node ports: 200 where the service has a ready \
                 endpoint on this node, 503 where it has none"
                    .to_owned(),
            );
        }
        Destination::Frontend(port, kinds) => {
            let frontend = Frontend { port: port.name.clone(), kinds };
            Traffic { context, port: &port, kinds: &frontend.kinds }.decide(&mut explanation);
            explanation.frontend = Some(frontend);
        }
    }
    explanation
}

/// A packet to a frontend of a service.
struct Traffic<'a> {
    context: &'a Context<'a>,
    port: &'a ServicePort<'a>,
    kinds: &'a [ClaimKind],
}

impl Traffic<'_> {
    fn decide(&self, explanation: &mut Explanation) {
        let has_any = endpoints::has_any(self.port);
        self.frontends(&mut explanation.decisions);
        let refused_first = !has_any && self.ignores_ranges_without_endpoints();
        if !refused_first && let Some(why) = self.source_ranges(&mut explanation.decisions) {
            explanation.endpoints = endpoints::consider(self.context.cluster, self.port, Scope::Everywhere);
            explanation.verdict = Verdict::Dropped(why);
            return;
        }
        explanation.endpoints = self.endpoints(&mut explanation.decisions);
        let used: Vec<&Considered> = explanation.endpoints.iter().filter(|e| e.is_used).collect();
        explanation.verdict = if used.is_empty() {
            self.without_endpoints(has_any)
        } else {
            self.affinity(&mut explanation.decisions);
            let masquerades = self.masquerades(&mut explanation.decisions);
            let scheduler = self.scheduler(&mut explanation.decisions);
            let sticky = self.port.service.affinity_seconds;
            Verdict::Forwarded { choices: self.choices(&used, scheduler, masquerades), scheduler, sticky }
        };
    }

    /// Returns the endpoints that the scheduler may choose for this client.
    fn choices(&self, used: &[&Considered], scheduler: Option<Scheduler>, masquerades: bool) -> Vec<Choice> {
        let addresses: Vec<SocketAddr> = used.iter().map(|considered| considered.address).collect();
        let port = self.context.question.from_port.map_or(0, NonZeroU16::get);
        let client = SocketAddr::new(self.context.question.from, port);
        let is_known = self.ipvs_scheduler().is_none_or(|name| name == ROUND_ROBIN);
        // Where the client has an endpoint already, none is preferred for all that is known here.
        let scheduler = scheduler.unwrap_or_default();
        let chosen = scheduling::chosen(scheduler, client, &addresses);
        let shares = scheduling::shares(scheduler, &addresses);
        let choice = |(considered, share): (&&Considered, f64)| {
            let is_chosen = chosen.is_none_or(|endpoint| endpoint == considered.address);
            is_chosen.then(|| Choice {
                endpoint: considered.address,
                probability: is_known.then_some(if chosen.is_some() { 1.0 } else { share }),
                source: self.source(considered, masquerades),
            })
        };
        used.iter().zip(shares).filter_map(choice).collect()
    }

    /// Returns how an endpoint is chosen, where a scheduler does that which is known here.
    fn scheduler(&self, decisions: &mut Vec<Decision>) -> Option<Scheduler> {
        let Context { settings, .. } = self.context;
        let own = self.port.service.scheduler;
        let scheduler = self.port.service.scheduler(settings.scheduler)?;
        match settings.mode {
            Mode::Nftables => {}
            Mode::Iptables => return Some(Scheduler::Random),
            // All services have one of the kernel's.
            Mode::Ipvs => {
                let name = self.ipvs_scheduler()?;
                decisions.push(Decision {
                    object: "configuration".to_owned(),
                    field: "ipvs.scheduler",
                    value: name.to_owned(),
                    effect: match name {
                        ROUND_ROBIN => "one endpoint after the other".to_owned(),
                        _ => "IPVS chooses by its state, or by the client, which is not computed here"
                            .to_owned(),
                    },
                });
                return None;
            }
        }
        let effect = match scheduler {
            Scheduler::Random if own.is_none() => return Some(scheduler),
            Scheduler::Random => "any of the endpoints, each with the same probability",
            Scheduler::RoundRobin => "one endpoint after the other",
            Scheduler::SourceHash => "a hash of the client's address chooses",
            Scheduler::Maglev(_) => "a hash of the client's address and port chooses a slot of the table",
        };
        decisions.push(match own {
            Some(_) => self.service(Scheduler::FIELD, scheduler.to_string(), effect),
            None => Decision {
                object: "configuration".to_owned(),
                field: "scheduler",
                value: scheduler.to_string(),
                effect: effect.to_owned(),
            },
        });
        Some(scheduler)
    }

    /// Returns the scheduler of IPVS, in ipvs mode.
    fn ipvs_scheduler(&self) -> Option<&str> {
        let settings = self.context.settings;
        let name = settings.ipvs_scheduler.as_deref().unwrap_or(ROUND_ROBIN);
        (settings.mode == Mode::Ipvs).then_some(name)
    }

    fn is_internal(&self) -> bool {
        self.kinds.first() == Some(&ClaimKind::ClusterIp)
    }

    fn is_local(&self) -> bool {
        if self.is_internal() { self.port.service.internal_local } else { self.port.service.external_local }
    }

    fn service(&self, field: &'static str, value: impl Into<String>, effect: impl Into<String>) -> Decision {
        let object = format!("Service {}", self.port.name.service);
        Decision { object, field, value: value.into(), effect: effect.into() }
    }

    /// Tells by which fields the service has the frontend, and which services are without it.
    fn frontends(&self, decisions: &mut Vec<Decision>) {
        let to = self.context.question.to;
        for kind in self.kinds {
            let value = match kind {
                ClaimKind::NodePort => to.port().to_string(),
                _ => to.ip().to_string(),
            };
            let name = if self.port.name.port.is_empty() { "its only port" } else { &*self.port.name.port };
            let effect = format!("the packet is for this service, port {name}");
            decisions.push(self.service(frontend::field(*kind), value, effect));
        }
        if self.kinds.contains(&ClaimKind::NodePort) {
            decisions.push(Decision {
                object: "configuration".to_owned(),
                field: "nodePortAddresses",
                value: frontend::configured(&self.context.settings.node_port_addresses),
                effect: format!("node ports are served on {}", to.ip()),
            });
        }
        let frontend = self.kinds.first().and_then(|kind| frontend::claimed(self.context, *kind));
        let conflicts =
            self.context.cluster.conflicts().filter(|conflict| Some(conflict.frontend) == frontend);
        for conflict in conflicts.filter(|conflict| conflict.loser != conflict.winner) {
            decisions.push(Decision {
                object: format!("Service {}", conflict.loser),
                field: frontend::field(conflict.loser_kind),
                value: conflict.frontend.to_string(),
                effect: format!("left out: Service {} has it", conflict.winner),
            });
        }
    }

    /// Returns whether a service without endpoints refuses before its source ranges are looked at: in
    /// iptables mode always; in ipvs mode what the node sends, which has no connection to be stopped by.
    fn ignores_ranges_without_endpoints(&self) -> bool {
        match self.context.settings.mode {
            Mode::Nftables => false,
            Mode::Iptables => true,
            Mode::Ipvs => self.context.client.is_node,
        }
    }

    /// Returns why the source ranges of a load balancer keep the packet out, if they do.
    fn source_ranges(&self, decisions: &mut Vec<Decision>) -> Option<String> {
        if !self.kinds.contains(&ClaimKind::LoadBalancerIp) {
            return None;
        }
        let field = "spec.loadBalancerSourceRanges";
        let ranges = self.port.service.source_ranges(self.port.family)?;
        let (from, value) = (self.context.question.from, list(ranges.clone()));
        let node = self.context.cluster.node().primary(self.port.family);
        let covers_node = node.is_some_and(|node| ranges.clone().any(|net| net.contains(&node)));
        let is_listed = ranges.clone().any(|net| net.contains(&from));
        // What a node sends to an address that it has itself comes from that address.
        let is_own = self.port.load_balancer_ips.contains(&from);
        let is_admitted = match self.context.settings.mode {
            Mode::Ipvs if self.context.client.is_node => covers_node,
            _ => is_listed || (is_own && covers_node),
        };
        if is_admitted {
            decisions.push(self.service(field, value, format!("{from} may use the load balancer")));
            return None;
        }
        decisions.push(self.service(field, value, format!("{from} is in none of them")));
        Some(format!("{field} of Service {} does not have {from}", self.port.name.service))
    }

    /// Chooses the endpoints by policy, hints and conditions.
    fn endpoints(&self, decisions: &mut Vec<Decision>) -> Vec<Considered> {
        let field =
            if self.is_internal() { "spec.internalTrafficPolicy" } else { "spec.externalTrafficPolicy" };
        let cluster = self.context.cluster;
        let consider = |scope| endpoints::consider(cluster, self.port, scope);
        let (scope, effect) = match self.is_local() {
            false => (Scope::Everywhere, "endpoints of every node"),
            true if !self.is_internal() && self.context.is_inside() => {
                (Scope::Everywhere, "endpoints of every node, as the client is inside the cluster")
            }
            true => (Scope::ThisNode, "endpoints of this node only"),
        };
        let value = if self.is_local() { "Local" } else { "Cluster" };
        decisions.push(self.service(field, value, effect));
        let mut found = consider(scope);
        let is_used = |found: &[Considered]| found.iter().any(|considered| considered.is_used);
        let mut scope = scope;
        if self.context.settings.mode == Mode::Ipvs
            && scope == Scope::ThisNode
            && !is_used(&found)
            && self.port.uses_cluster_endpoints()
        {
            let effect = "this node has no endpoint: a virtual server of IPVS does not know who asks, and \
                          has those of every node then";
            decisions.push(self.service(field, value, effect));
            scope = Scope::Everywhere;
            found = consider(scope);
        }
        if scope == Scope::Everywhere {
            decisions.extend(endpoints::topology(cluster, self.port));
        }
        found
    }

    fn without_endpoints(&self, has_any: bool) -> Verdict {
        let service = &self.port.name.service;
        let mut refusal =
            format!("Service {service} has no endpoint that is ready, or that serves while terminating");
        match self.context.cluster.unserved(self.port) {
            // The endpoints are listed, each with its conditions.
            None | Some(Unserved::NoneUsable { .. }) => {}
            Some(why @ Unserved::NoPort { .. }) => {
                let name = &self.port.name;
                let port = if name.port.is_empty() { "without a name" } else { &*name.port };
                refusal +=
                    &format!(": expected a port {port}/{} in its EndpointSlices, {why}", name.protocol);
            }
            Some(why) => refusal += &format!(": {why}"),
        }
        let policy = if self.is_internal() { "internalTrafficPolicy" } else { "externalTrafficPolicy" };
        let local = format!(
            "{policy} of Service {service} is Local, and none of its endpoints on this node can be used"
        );
        let is_of_address = !self.is_internal() && !self.kinds.contains(&ClaimKind::NodePort);
        match self.context.settings.mode {
            // A virtual server without destinations refuses, whatever the reason.
            Mode::Ipvs if has_any => Verdict::Refused(local),
            _ if has_any => Verdict::Dropped(local),
            Mode::Iptables if self.context.client.is_node && is_of_address => Verdict::Untouched(format!(
                "{refusal}, and kube-proxy's rules of this mode refuse external addresses on the way in alone"
            )),
            _ => Verdict::Refused(refusal),
        }
    }

    fn affinity(&self, decisions: &mut Vec<Decision>) {
        if let Some(seconds) = self.port.service.affinity_seconds {
            let field = "spec.sessionAffinityConfig.clientIP.timeoutSeconds";
            let effect = format!(
                "the client gets the endpoint that it had less than {seconds} s ago, if that is still used"
            );
            decisions.push(self.service(field, seconds.to_string(), effect));
        }
    }

    /// Returns whether the packet is masqueraded, whichever endpoint it is sent to.
    fn masquerades(&self, decisions: &mut Vec<Decision>) -> bool {
        let mut decide = |decision: Decision, does| {
            decisions.push(decision);
            does
        };
        let configuration = |field, value: String, effect: &str| Decision {
            object: "configuration".to_owned(),
            field,
            value,
            effect: effect.to_owned(),
        };
        let Context { settings, client, question, .. } = self.context;
        if settings.mode == Mode::Ipvs && question.from.is_loopback() {
            return false;
        }
        // Rules of nftables mode see the address alone, not by which service and port it is asked.
        let is_cluster_ip = self.is_internal()
            || (settings.mode == Mode::Nftables && self.context.is_cluster_ip(question.to.ip()));
        if is_cluster_ip {
            if settings.masquerade_all {
                return decide(configuration("masqueradeAll", "true".to_owned(), "masqueraded"), true);
            }
            match &self.context.detector {
                LocalDetector::None if settings.mode == Mode::Ipvs && client.is_node => return true,
                LocalDetector::None => {}
                _ if client.is_pod => {
                    let effect = "the client is a pod: not masqueraded for coming from elsewhere";
                    decide(configuration("detectLocal", self.detector(), effect), false);
                }
                _ => {
                    let effect = "the client is no pod, whose answers would take another way: masqueraded";
                    return decide(configuration("detectLocal", self.detector(), effect), true);
                }
            }
        }
        if self.is_internal() {
            return false;
        }
        let field = "spec.externalTrafficPolicy";
        match self.is_local() {
            false => {
                decide(self.service(field, "Cluster", "masqueraded, so that answers come back here"), true)
            }
            true if settings.mode != Mode::Ipvs && client.is_node && !client.is_pod => {
                decide(self.service(field, "Local", "the client is this node: masqueraded"), true)
            }
            true => decide(self.service(field, "Local", "the client keeps its address"), false),
        }
    }

    fn detector(&self) -> String {
        match &self.context.detector {
            LocalDetector::None => "none".to_owned(),
            LocalDetector::Cidr(net) => net.to_string(),
            LocalDetector::Interface(name) => name.to_string(),
            LocalDetector::InterfacePrefix(prefix) => format!("{prefix}*"),
        }
    }

    /// Returns the source that an endpoint sees.
    fn source(&self, endpoint: &Considered, masquerades: bool) -> Source {
        let Context { settings, client, question, cluster, .. } = self.context;
        let is_itself = endpoint.address.ip() == question.from;
        let is_remote = endpoint.node.as_deref().is_some_and(|node| node != cluster.node().name);
        // It would answer itself otherwise, past the node. kube-proxy's iptables rules do not look where the
        // endpoint runs.
        let is_hairpin = is_itself && (!is_remote || settings.mode == Mode::Iptables);
        if masquerades || is_hairpin {
            Source::Node
        } else if settings.mode == Mode::Ipvs && client.is_node && !self.is_internal() {
            // IPVS takes addresses of services to be the node's own.
            Source::Destination
        } else {
            Source::Client
        }
    }
}

/// The scheduler of IPVS that is the default: all destinations have the weight 1, so each gets its share.
const ROUND_ROBIN: &str = "rr";
