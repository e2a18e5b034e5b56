//! The settings of nftables mode.

use std::fmt;
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
    /// Which connections are counted, in layout `maps`; the other layout counts none.
    pub counting: Counting,
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
            counting: Counting::default(),
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

/// Which connections the kernel counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Counting {
    /// None.
    #[default]
    Off,
    /// Those to each frontend.
    Frontends,
    /// Those to each frontend, and to each of its endpoints.
    Endpoints,
}

impl Counting {
    const ALL: [Self; 3] = [Self::Off, Self::Frontends, Self::Endpoints];

    /// Returns the name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Frontends => "frontends",
            Self::Endpoints => "endpoints",
        }
    }
}

impl fmt::Display for Counting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Counting {
    type Err = UnknownName;

    fn from_str(text: &str) -> Result<Self, UnknownName> {
        let found = Self::ALL.into_iter().find(|counting| counting.as_str() == text);
        found.ok_or_else(|| UnknownName::new(Self::ALL.into_iter().map(Self::as_str), text))
    }
}
