//! Chooses the endpoints that get traffic, by readiness, termination, traffic policies and topology hints.

use crate::{Endpoint, ServicePort};

/// The name and zone of this node, which the topology hints of endpoints are compared with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Topology {
    /// The node's name.
    pub node: String,
    /// Its zone, when it has one.
    pub zone: Option<String>,
}

/// The endpoints of a service port, sorted by use. Each list keeps the order of [`ServicePort::endpoints`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Categorized<'a> {
    /// For traffic with policy Cluster.
    pub cluster: Vec<&'a Endpoint>,
    /// For traffic with policy Local.
    pub local: Vec<&'a Endpoint>,
    /// The endpoints of both lists, each once; `None` where `local` is not used.
    either: Option<Vec<&'a Endpoint>>,
    /// Whether there is an endpoint on any node. Traffic that no endpoint is left for is rejected if there is
    /// none at all, and dropped if there are some elsewhere.
    pub has_any: bool,
}

/// Sorts the endpoints of `port`.
///
/// Ready endpoints are used; where there are none, those that still serve while terminating. For policy
/// Cluster the ready ones are narrowed to those meant for this node, or else for its zone, but only when
/// every ready endpoint carries such a hint and one of them names us.
#[must_use]
pub fn categorize<'a>(port: &'a ServicePort<'_>, topology: &Topology) -> Categorized<'a> {
    let endpoints = &port.endpoints;
    let (uses_cluster, uses_local) = (port.uses_cluster_endpoints(), port.uses_local_endpoints());
    let preference = if uses_cluster { Preference::of(endpoints, topology) } else { Preference::None };
    let ready = |e: &Endpoint| e.ready && preference.admits(e, topology);
    let cluster_falls_back = !endpoints.iter().any(ready);
    let in_cluster =
        |e: &Endpoint| uses_cluster && if cluster_falls_back { e.serves_terminating() } else { ready(e) };
    let cluster = pick(endpoints, in_cluster);
    if !uses_local {
        let has_any = !cluster.is_empty();
        return Categorized { cluster, local: Vec::new(), either: None, has_any };
    }
    let local_falls_back = !endpoints.iter().any(|e| e.is_local && e.ready);
    let in_local =
        |e: &Endpoint| e.is_local && if local_falls_back { e.serves_terminating() } else { e.ready };
    let local = pick(endpoints, in_local);
    // Where no hint narrows them, this is `cluster` with what `local` fell back to.
    let either = Some(pick(endpoints, |e| in_cluster(e) || in_local(e)));
    let has_any = endpoints.iter().any(|e| e.ready || e.serves_terminating());
    Categorized { cluster, local, either, has_any }
}

impl<'a> Categorized<'a> {
    /// Returns every endpoint that some traffic may reach from here.
    #[must_use]
    pub fn all_reachable(&self) -> &[&'a Endpoint] {
        self.either.as_deref().unwrap_or(&self.cluster)
    }
}

/// The level of topology hints that applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Preference {
    None,
    SameNode,
    SameZone,
}

impl Preference {
    fn of(endpoints: &[Endpoint], topology: &Topology) -> Self {
        let (mut any_ready, mut all_nodes, mut all_zones) = (false, true, true);
        let (mut our_node, mut our_zone) = (false, false);
        for endpoint in endpoints.iter().filter(|e| e.ready) {
            any_ready = true;
            let hints = endpoint.hints.as_deref();
            all_nodes &= hints.is_some_and(|h| !h.nodes.is_empty());
            all_zones &= hints.is_some_and(|h| !h.zones.is_empty());
            our_node |= Self::SameNode.admits(endpoint, topology);
            our_zone |= Self::SameZone.admits(endpoint, topology);
        }
        match any_ready {
            true if all_nodes && our_node => Self::SameNode,
            true if all_zones && our_zone => Self::SameZone,
            _ => Self::None,
        }
    }

    fn admits(self, endpoint: &Endpoint, topology: &Topology) -> bool {
        let hints = endpoint.hints.as_deref();
        match self {
            Self::None => true,
            Self::SameNode => hints.is_some_and(|h| h.nodes.iter().any(|node| **node == topology.node)),
            Self::SameZone => topology
                .zone
                .as_deref()
                .is_some_and(|zone| hints.is_some_and(|h| h.zones.iter().any(|hint| **hint == *zone))),
        }
    }
}

fn pick(endpoints: &[Endpoint], wanted: impl Fn(&Endpoint) -> bool) -> Vec<&Endpoint> {
    let mut picked = Vec::new();
    for endpoint in endpoints.iter().filter(|e| wanted(e)) {
        if picked.is_empty() {
            // Mostly all of them, for which a list that grows would be copied again and again.
            picked.reserve_exact(endpoints.len());
        }
        picked.push(endpoint);
    }
    picked
}

#[cfg(test)]
mod tests;
