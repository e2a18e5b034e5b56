//! Which endpoints of a service port get a packet, with the reason for each: readiness, termination, traffic
//! policy and topology hints.

use sluicegate_services::{Cluster, Endpoint, Hints, ServicePort};

use super::{Considered, Decision};

/// The nodes whose endpoints may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    /// All: policy Cluster.
    Everywhere,
    /// This one: policy Local.
    ThisNode,
}

/// Returns every endpoint of `port`, and whether it is used.
pub(super) fn consider(cluster: &Cluster, port: &ServicePort<'_>, scope: Scope) -> Vec<Considered> {
    let judge = Judge::new(cluster, port, scope);
    let considered = |endpoint: &Endpoint| {
        let (is_used, reason) = judge.judge(endpoint);
        let (slices, node) = places(cluster, port, endpoint);
        Considered { address: endpoint.address, slices, node, is_used, reason }
    };
    port.endpoints.iter().map(considered).collect()
}

/// Returns whether some endpoint, on whatever node, could be used.
pub(super) fn has_any(port: &ServicePort<'_>) -> bool {
    port.endpoints.iter().any(|endpoint| endpoint.ready || endpoint.serves_terminating())
}

/// Returns the decision that topology hints make; `None` where they change nothing.
pub(super) fn topology(cluster: &Cluster, port: &ServicePort<'_>) -> Option<Decision> {
    let (field, value, effect) = match Level::of(cluster, port) {
        Level::None => return None,
        Level::Node => {
            let effect = "every ready endpoint has such hints: only those for this node are used";
            ("endpoints[].hints.forNodes", cluster.node().name.clone(), effect)
        }
        Level::Zone => {
            let effect = "every ready endpoint has such hints: only those for this node's zone are used";
            ("endpoints[].hints.forZones", cluster.node().zone.clone().unwrap_or_default(), effect)
        }
    };
    let object = format!("EndpointSlices of Service {}", port.name.service);
    Some(Decision { object, field, value, effect: effect.to_owned() })
}

/// The level of topology hints that narrows the ready endpoints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Level {
    None,
    Node,
    Zone,
}

impl Level {
    fn of(cluster: &Cluster, port: &ServicePort<'_>) -> Self {
        let ready = || port.endpoints.iter().filter(|endpoint| endpoint.ready);
        let all = |has: fn(&Hints) -> bool| ready().all(|e| e.hints.as_deref().is_some_and(has));
        let names = |level: Self| ready().any(|endpoint| level.names_us(cluster, endpoint));
        if all(|hints| !hints.nodes.is_empty()) && names(Self::Node) {
            Self::Node
        } else if all(|hints| !hints.zones.is_empty()) && names(Self::Zone) {
            Self::Zone
        } else {
            Self::None
        }
    }

    /// Returns whether a hint of this level names this node or its zone.
    fn names_us(self, cluster: &Cluster, endpoint: &Endpoint) -> bool {
        let Some(hints) = endpoint.hints.as_deref() else { return self == Self::None };
        match (self, &cluster.node().zone) {
            (Self::None, _) => true,
            (Self::Node, _) => hints.nodes.iter().any(|node| **node == *cluster.node().name),
            (Self::Zone, Some(ours)) => hints.zones.iter().any(|zone| **zone == **ours),
            (Self::Zone, None) => false,
        }
    }
}

struct Judge<'a> {
    cluster: &'a Cluster,
    scope: Scope,
    level: Level,
    /// Whether an endpoint in scope is ready, so that terminating ones are not used.
    any_ready: bool,
}

impl<'a> Judge<'a> {
    fn new(cluster: &'a Cluster, port: &ServicePort<'_>, scope: Scope) -> Self {
        // Hints are about traffic that may go to any node.
        let level = if scope == Scope::Everywhere { Level::of(cluster, port) } else { Level::None };
        let in_scope = |endpoint: &&Endpoint| scope == Scope::Everywhere || endpoint.is_local;
        let any_ready = port.endpoints.iter().filter(in_scope).any(|endpoint| endpoint.ready);
        Self { cluster, scope, level, any_ready }
    }

    fn judge(&self, endpoint: &Endpoint) -> (bool, String) {
        let (is_used, reason) = if self.scope == Scope::ThisNode && !endpoint.is_local {
            (false, "nodeName: on another node, which policy Local leaves out")
        } else if endpoint.ready {
            match self.level {
                Level::None => (true, "conditions.ready"),
                level if level.names_us(self.cluster, endpoint) => {
                    (true, "conditions.ready, and hints for here")
                }
                _ => (false, "hints: meant for clients elsewhere"),
            }
        } else if !endpoint.serves_terminating() {
            (false, "conditions.ready: false")
        } else if self.any_ready {
            (false, "conditions.terminating: others are ready")
        } else {
            (true, "conditions.serving while terminating: no other is ready")
        };
        (is_used, reason.to_owned())
    }
}

/// Returns the slices that have an endpoint, and its node.
fn places(cluster: &Cluster, port: &ServicePort<'_>, endpoint: &Endpoint) -> (Vec<String>, Option<String>) {
    let (mut slices, mut node) = (Vec::new(), None);
    for (name, slice) in cluster.named_slices(&port.name.service) {
        let has_port = slice.ports.iter().any(|candidate| {
            (&candidate.name, candidate.protocol, candidate.port.get())
                == (&port.name.port, port.name.protocol, endpoint.address.port())
        });
        let found = slice.endpoints.iter().find(|candidate| candidate.ip == endpoint.address.ip());
        if let Some(found) = found.filter(|_| has_port) {
            slices.push(format!("{}/{name}", port.name.service.namespace()));
            node = node.or_else(|| found.node.as_deref().map(str::to_owned));
        }
    }
    if endpoint.is_local {
        node = Some(cluster.node().name.clone());
    }
    (slices, node)
}
