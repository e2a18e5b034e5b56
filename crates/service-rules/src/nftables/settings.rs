//! The settings of nftables mode.

use std::str::FromStr;

use sluicegate_services::{DetectLocal, Family, NodePortAddresses, Scheduler};

use crate::{MasqueradeBit, UnknownName};

/// The operator's settings.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The layout of the tables.
    pub layout: Layout,
    /// The families that get a table.
    pub families: Vec<Family>,
    /// Whether all traffic to cluster IPs is masqueraded.
    pub masquerade_all: bool,
    /// The bit of the packet mark that requests masquerading.
    pub masquerade_bit: MasqueradeBit,
    /// The detector of traffic from pods.
    pub detect_local: DetectLocal,
    /// The addresses on which node ports are answered.
    pub node_port_addresses: NodePortAddresses,
    /// How an endpoint is chosen for the connections of services that do not say it themselves.
    pub scheduler: Scheduler,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            layout: Layout::default(),
            families: Family::BOTH.into(),
            masquerade_all: false,
            masquerade_bit: MasqueradeBit::default(),
            detect_local: DetectLocal::default(),
            node_port_addresses: NodePortAddresses::default(),
            scheduler: Scheduler::default(),
        }
    }
}

/// How the table is built.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Layout {
    /// All state of services is in elements; the number of rules and chains does not depend on the number of
    /// services.
    #[default]
    Maps,
    /// The layout of kube-proxy 1.36, with a chain for every service port.
    Chains,
}

impl FromStr for Layout {
    type Err = UnknownName;

    fn from_str(text: &str) -> Result<Self, UnknownName> {
        match text {
            "maps" => Ok(Self::Maps),
            "chains" => Ok(Self::Chains),
            _ => Err(UnknownName::new(["maps", "chains"], text)),
        }
    }
}
