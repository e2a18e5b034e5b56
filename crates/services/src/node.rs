//! This node: its name, its addresses, its zone, its pods' networks.

use std::net::IpAddr;

use ipnet::IpNet;

use crate::Family;

/// The properties of a node that matter to a proxy.
///
/// ```
/// use sluicegate_services::{Family, Node};
///
/// let node = Node::new("node-1", ["192.168.0.2".parse()?, "fd00::2".parse()?]);
/// assert_eq!(node.primary(Family::Ipv6), Some("fd00::2".parse()?));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Node {
    /// The name by which endpoints refer to it.
    pub name: String,
    /// Its addresses, the internal ones first.
    pub addresses: Vec<IpAddr>,
    /// The value of its label `topology.kubernetes.io/zone`.
    pub zone: Option<String>,
    /// `spec.podCIDRs`.
    pub pod_cidrs: Vec<IpNet>,
    /// It is about to go (deleted, or tainted by the cluster autoscaler): load balancers should send it
    /// nothing new.
    pub is_leaving: bool,
}

impl Node {
    /// Creates a node with this name and these addresses, the primary one of each family first.
    #[must_use]
    pub fn new(name: &str, addresses: impl IntoIterator<Item = IpAddr>) -> Self {
        Self { name: name.to_owned(), addresses: addresses.into_iter().collect(), ..Self::default() }
    }

    /// Returns the first address of a family: the one that other nodes and load balancers use.
    #[must_use]
    pub fn primary(&self, family: Family) -> Option<IpAddr> {
        self.addresses.iter().copied().find(|ip| Family::of(*ip) == family)
    }
}
