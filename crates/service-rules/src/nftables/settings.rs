//! The settings of nftables mode.

use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;

use sluicegate_nftables::InterfaceName;
use sluicegate_services::{DetectLocal, Family, NodePortAddresses, Scheduler};

use super::OnLocalhost;
use crate::{MasqueradeBit, UnknownName};

/// The operator's settings.
///
/// ```
/// use sluicegate_service_rules::nftables::{Layout, Settings};
/// use sluicegate_services::{DetectLocal, Family};
///
/// let settings = Settings {
///     layout: "maps".parse()?,
///     families: vec![Family::Ipv4],
///     detect_local: DetectLocal::ClusterCidrs(vec!["10.244.0.0/16".parse()?]),
///     ..Settings::default()
/// };
/// assert_eq!(settings.layout, Layout::Maps);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
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
    /// What becomes of connections to node ports on loopback addresses.
    pub on_localhost: OnLocalhost,
    /// How an endpoint is chosen for the connections of services that do not say it themselves.
    pub scheduler: Scheduler,
    /// Which connections are counted, in layout `maps`; the other layout counts none.
    pub counting: Counting,
    /// Which connections a flowtable forwards once they are established; `None` for none.
    pub fastpath: Option<Fastpath>,
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
            on_localhost: OnLocalhost::default(),
            scheduler: Scheduler::default(),
            counting: Counting::default(),
            fastpath: None,
        }
    }
}

/// Established connections to services that a flowtable forwards: no chain of any table sees their packets any
/// more. So are others whose destination a rule of another program translated, which the kernel does not tell
/// apart.
///
/// A kernel without flowtables forwards them as before, and the first sync has a notice that says so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fastpath {
    /// The number of packets in both directions that pass the chains first.
    pub after: NonZeroU32,
    /// The devices between which they are forwarded, by names and prefixes (`veth*`), the loop-back never;
    /// empty for all. The first 255 of those that there are, by age.
    pub devices: Vec<InterfaceName>,
}

impl Fastpath {
    /// Returns the devices to forward between, among those of the node.
    pub(super) fn choose(&self, links: &BTreeMap<u32, InterfaceName>) -> Vec<Device> {
        let is_wanted = |name: &InterfaceName| {
            let is_named = |wanted: &InterfaceName| match wanted.prefix() {
                Some(prefix) => name.as_str().starts_with(prefix),
                None => wanted == name,
            };
            name.as_str() != LOOPBACK && (self.devices.is_empty() || self.devices.iter().any(is_named))
        };
        let wanted = links.iter().filter(|(_, name)| is_wanted(name));
        wanted.map(|(index, name)| (*index, name.clone())).take(MOST_DEVICES).collect()
    }
}

/// A device: its number, which no other gets, and its name.
pub(super) type Device = (u32, InterfaceName);

/// The name of the loop-back in every network namespace.
pub const LOOPBACK: &str = "lo";
/// One less than `NFT_NETDEVICE_MAX`, at which the kernel refuses the devices of a message.
const MOST_DEVICES: usize = 255;

/// How the table is built.
///
/// ```
/// use sluicegate_service_rules::nftables::Layout;
///
/// assert_eq!("chains".parse::<Layout>()?, Layout::Chains);
/// assert_eq!(
///     "chain".parse::<Layout>().unwrap_err().to_string(),
///     "expected maps or chains, found \"chain\""
/// );
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
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
