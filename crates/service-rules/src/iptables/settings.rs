//! The settings of iptables mode.

use sluicegate_services::{Cluster, DetectLocal, Family, NodePortAddresses};

use crate::MasqueradeBit;

/// The operator's settings.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Whether all traffic to cluster IPs is masqueraded.
    pub masquerade_all: bool,
    /// The bit of the packet mark that requests masquerading.
    pub masquerade_bit: MasqueradeBit,
    /// The detector of traffic from pods.
    pub detect_local: DetectLocal,
    /// The addresses that answer node ports; by default all, as in kube-proxy.
    pub node_port_addresses: NodePortAddresses,
    /// Whether the IPv4 loopback address answers node ports as well, if [`Settings::node_port_addresses`]
    /// contains it. This needs the sysctl `net.ipv4.conf.all.route_localnet`.
    pub localhost_node_ports: bool,
    /// Whether the sysctl `net.netfilter.nf_conntrack_tcp_be_liberal` is set: invalid packets are then not
    /// dropped.
    pub tcp_be_liberal: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            masquerade_all: false,
            masquerade_bit: MasqueradeBit::default(),
            detect_local: DetectLocal::default(),
            node_port_addresses: NodePortAddresses::every(),
            localhost_node_ports: true,
            tcp_be_liberal: false,
        }
    }
}

impl Settings {
    /// Returns `true` if the loopback address answers node ports of `family`: if it is configured, possible
    /// in the family, and one of the configured addresses.
    #[must_use]
    pub fn answers_localhost(&self, family: Family, cluster: &Cluster) -> bool {
        let is_named = self.node_port_addresses.contain_loopback(family, cluster.node());
        family == Family::Ipv4 && self.localhost_node_ports && is_named
    }
}
