//! Decides which service has a frontend that several services claim.
//!
//! The decision depends on the services alone, not on the order in which they came: a cluster IP wins over
//! every other claim, since the API server allocates it while users write the rest; among equals the older
//! object wins, then the first by name.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::collections::hash_map::{Entry, HashMap};
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU16;
use std::time::SystemTime;

use crate::{Family, Node, Protocol, Service, ServiceName};

/// The destination of packets to a service, which only one service can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Frontend {
    /// A port of one address.
    Address(IpAddr, Protocol, NonZeroU16),
    /// A port of all addresses of this node in one family.
    NodePort(Family, Protocol, NonZeroU16),
}

impl fmt::Display for Frontend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(ip, protocol, port) => {
                write!(f, "{}/{protocol}", SocketAddr::new(*ip, port.get()))
            }
            Self::NodePort(family, protocol, port) => write!(f, "{port}/{protocol} ({family})"),
        }
    }
}

/// The field by which a service claims a frontend.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ClaimKind {
    /// `spec.clusterIPs`.
    ClusterIp,
    /// `spec.externalIPs`.
    ExternalIp,
    /// `status.loadBalancer.ingress`.
    LoadBalancerIp,
    /// `spec.ports[].nodePort`, on this node's addresses as well.
    NodePort,
    /// `spec.healthCheckNodePort`.
    HealthCheckNodePort,
}

impl fmt::Display for ClaimKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ClusterIp => "cluster IP",
            Self::ExternalIp => "external IP",
            Self::LoadBalancerIp => "load-balancer IP",
            Self::NodePort => "node port",
            Self::HealthCheckNodePort => "health-check node port",
        })
    }
}

/// A frontend that two services claim, and the service that has it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct Conflict {
    /// The frontend.
    pub frontend: Frontend,
    /// The service that has it.
    pub winner: ServiceName,
    /// The field by which that one claims it.
    pub winner_kind: ClaimKind,
    /// The service that claims it in vain. Its other frontends are not concerned.
    pub loser: ServiceName,
    /// The field by which that one claims it.
    pub loser_kind: ClaimKind,
}

impl fmt::Display for Conflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { frontend, winner, winner_kind, loser, loser_kind } = self;
        write!(
            f,
            "Service {loser}: {loser_kind} {frontend} is left out: Service {winner} has it as its \
                {winner_kind}"
        )
    }
}

/// A claim of one service to a frontend. The smallest one wins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Claim {
    pub(crate) kind: ClaimKind,
    created: Option<SystemTime>,
    pub(crate) service: ServiceName,
}

impl Ord for Claim {
    fn cmp(&self, other: &Self) -> Ordering {
        // An object without a time of creation did not come from an API server: it counts as the youngest.
        let key = |claim: &Self| (claim.kind != ClaimKind::ClusterIp, claim.created.is_none(), claim.created);
        let by_key = key(self).cmp(&key(other)).then_with(|| self.service.cmp(&other.service));
        by_key.then_with(|| self.kind.cmp(&other.kind))
    }
}

impl PartialOrd for Claim {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The frontends that a service claims, each by one field, in order.
pub(crate) struct ServiceClaims {
    created: Option<SystemTime>,
    list: Vec<(Frontend, ClaimKind)>,
}

impl ServiceClaims {
    /// Returns what `service` claims on this node. In a family without a cluster IP it claims nothing: it is
    /// not proxied there.
    pub(crate) fn of(service: &Service, node: &Node) -> Self {
        let mut list = Vec::with_capacity(service.ports.len());
        for family in Family::BOTH {
            let Some(cluster_ip) = service.cluster_ip(family) else { continue };
            for port in &service.ports {
                let mut add =
                    |ip, number, kind| list.push((Frontend::Address(ip, port.protocol, number), kind));
                add(cluster_ip, port.port, ClaimKind::ClusterIp);
                service.external_ips(family).for_each(|ip| add(ip, port.port, ClaimKind::ExternalIp));
                service
                    .load_balancer_ips(family)
                    .for_each(|ip| add(ip, port.port, ClaimKind::LoadBalancerIp));
                if let Some(number) = port.node_port {
                    let here = node.addresses.iter().filter(|ip| Family::of(**ip) == family);
                    here.for_each(|ip| add(*ip, number, ClaimKind::NodePort));
                    list.push((Frontend::NodePort(family, port.protocol, number), ClaimKind::NodePort));
                }
            }
            if let Some(number) = service.health_check_node_port {
                let frontend = Frontend::NodePort(family, Protocol::Tcp, number);
                list.push((frontend, ClaimKind::HealthCheckNodePort));
            }
        }
        list.sort_unstable();
        list.dedup_by_key(|(frontend, _)| *frontend);
        Self { created: service.created, list }
    }

    /// Returns `true` if both claim the same, with the same right.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.list == other.list && (self.created == other.created || self.list.is_empty())
    }

    /// Returns the claims, as those of the service with this name.
    pub(crate) fn claims(self, name: &ServiceName) -> impl Iterator<Item = (Frontend, Claim)> {
        let created = self.created;
        let claim = move |kind| Claim { kind, created, service: name.clone() };
        self.list.into_iter().map(move |(frontend, kind)| (frontend, claim(kind)))
    }
}

/// All claims of all services.
#[derive(Clone, Debug, Default)]
pub(crate) struct Claims {
    frontends: HashMap<Frontend, Claimants>,
    /// The frontends with more than one claim.
    contested: BTreeSet<Frontend>,
}

#[derive(Clone, Debug)]
struct Claimants {
    winner: Claim,
    losers: BTreeSet<Claim>,
}

impl Claims {
    /// Adds a claim. Returns the service that is without the frontend because of that: the one that claims
    /// it, or the one that had it.
    pub(crate) fn add(&mut self, frontend: Frontend, claim: Claim) -> Option<ServiceName> {
        match self.frontends.entry(frontend) {
            Entry::Vacant(vacant) => {
                vacant.insert(Claimants { winner: claim, losers: BTreeSet::new() });
                None
            }
            Entry::Occupied(mut occupied) => {
                let claimants = occupied.get_mut();
                let loser = if claim < claimants.winner {
                    std::mem::replace(&mut claimants.winner, claim)
                } else {
                    claim
                };
                let name = loser.service.clone();
                claimants.losers.insert(loser);
                self.contested.insert(frontend);
                Some(name)
            }
        }
    }

    /// Removes a claim. Returns the service that is no longer without the frontend: the one that claimed it
    /// in vain, or the one that has it now.
    pub(crate) fn remove(&mut self, frontend: Frontend, claim: &Claim) -> Option<ServiceName> {
        let claimants = self.frontends.get_mut(&frontend)?;
        let freed = if claimants.winner == *claim {
            let Some(next) = claimants.losers.pop_first() else {
                self.frontends.remove(&frontend);
                return None;
            };
            claimants.winner = next;
            claimants.winner.service.clone()
        } else {
            claimants.losers.take(claim)?.service
        };
        if claimants.losers.is_empty() {
            self.contested.remove(&frontend);
        }
        Some(freed)
    }

    /// Returns the claim that has a frontend.
    pub(crate) fn winner(&self, frontend: &Frontend) -> Option<&Claim> {
        self.frontends.get(frontend).map(|claimants| &claimants.winner)
    }

    /// Iterates over every claim in vain, in the order of frontends and then of rights.
    pub(crate) fn conflicts(&self) -> impl Iterator<Item = Conflict> {
        let contested =
            self.contested.iter().filter_map(|frontend| Some((frontend, self.frontends.get(frontend)?)));
        contested.flat_map(|(frontend, Claimants { winner, losers })| {
            let conflict = |loser: &Claim| Conflict {
                frontend: *frontend,
                winner: winner.service.clone(),
                winner_kind: winner.kind,
                loser: loser.service.clone(),
                loser_kind: loser.kind,
            };
            losers.iter().map(conflict)
        })
    }

    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.frontends.is_empty() && self.contested.is_empty()
    }

    /// Returns the number of claims in vain.
    pub(crate) fn conflict_count(&self) -> usize {
        let losers = self.contested.iter().filter_map(|frontend| self.frontends.get(frontend));
        losers.map(|claimants| claimants.losers.len()).sum()
    }
}

#[cfg(test)]
mod tests;
