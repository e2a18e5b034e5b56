//! Devices of a hook: those of a base chain or a flowtable that come and go while it stays.

use std::fmt;

use sluicegate_netlink::attr::Writer;

use crate::lang::Wording;
use crate::name::{InterfaceName, is_escaped};
use crate::object::chain::{NFTA_CHAIN_NAME, NFTA_CHAIN_TABLE, encode_device};
use crate::object::{ChainId, FlowtableId};

/// Some devices of a base chain or a flowtable, to delete them and nothing else. More devices come by adding the chain or flowtable again, with
/// them.
///
/// Devices of chains: since Linux 6.4 ([`Feature::DeviceDeletion`](crate::probe::Feature::DeviceDeletion)), and text that nft reads from 1.0.8 on. An older
/// kernel does not see the devices and would delete the chain with all its rules: it gets a second message that it then refuses (`EINVAL`), and
/// with it the batch.
///
/// ```
/// use sluicegate_nftables::{Family, TableId, Transaction};
///
/// let chain = TableId::new(Family::NETDEV, "t".parse()?).chain("c".parse()?);
/// let mut transaction = Transaction::new();
/// transaction.delete(chain.devices(["eth0".parse()?]));
/// assert_eq!(transaction.to_string(), "delete chain netdev t c { devices = { \"eth0\" } ; }\n");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookDevices {
    /// What they belong to.
    pub hook: HookOwner,
    /// The devices.
    pub devices: Vec<InterfaceName>,
}

/// What has devices.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum HookOwner {
    /// A base chain.
    Chain(ChainId),
    /// A flowtable.
    Flowtable(FlowtableId),
}

impl ChainId {
    /// Some of its devices.
    pub fn devices(&self, devices: impl IntoIterator<Item = InterfaceName>) -> HookDevices {
        HookDevices { hook: HookOwner::Chain(self.clone()), devices: devices.into_iter().collect() }
    }
}

impl FlowtableId {
    /// Some of its devices.
    pub fn devices(&self, devices: impl IntoIterator<Item = InterfaceName>) -> HookDevices {
        HookDevices { hook: HookOwner::Flowtable(self.clone()), devices: devices.into_iter().collect() }
    }
}

impl HookDevices {
    pub(crate) fn encode(&self, w: &mut Writer<'_>) {
        let (kind, list) = match &self.hook {
            HookOwner::Chain(chain) => {
                w.put_str(NFTA_CHAIN_TABLE, &chain.table.name);
                w.put_str(NFTA_CHAIN_NAME, &chain.name);
                (NFTA_CHAIN_HOOK, NFTA_HOOK_DEVS)
            }
            HookOwner::Flowtable(flowtable) => {
                flowtable.encode(w);
                (NFTA_FLOWTABLE_HOOK, NFTA_FLOWTABLE_HOOK_DEVS)
            }
        };
        let mut hook = w.nest(kind);
        let mut list = hook.nest(list);
        self.devices.iter().for_each(|device| encode_device(device, &mut list));
    }
}

/// Says again that a chain is a base chain, and nothing else: no change to one that is there, and refused where it is not.
pub(crate) fn encode_still_there(chain: &ChainId, w: &mut Writer<'_>) {
    w.put_str(NFTA_CHAIN_TABLE, &chain.table.name);
    w.put_str(NFTA_CHAIN_NAME, &chain.name);
    w.put_be32(NFTA_CHAIN_FLAGS, NFT_CHAIN_BASE);
}

/// As nft's commands say it: `chain netdev t c { devices = { "eth0", "eth1" } ; }`.
impl fmt::Display for HookDevices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {{ {} ; }}", self.hook, device_list(&self.devices, Wording::SCRIPT))
    }
}

/// `devices = { "eth0", "lo" }`, in the order of the alphabet. In such a list nft 1.0.6 reads names in quotes and lists them without.
pub(crate) fn device_list(devices: &[InterfaceName], with: Wording<'_>) -> String {
    let mut devices: Vec<_> = devices.iter().collect();
    devices.sort_unstable();
    // A name that is a word of nft's language, or starts with a digit, has to be in quotes for nft to read it.
    // Listings do without, as nft does, but for what has to be escaped.
    let names =
        devices.into_iter().map(|device| match with.is_script() || device.as_str().contains(is_escaped) {
            true => device.to_string(),
            false => device.as_str().to_owned(),
        });
    format!("devices = {{ {} }}", names.collect::<Vec<_>>().join(", "))
}

impl fmt::Display for HookOwner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Chain(chain) => write!(f, "chain {chain}"),
            Self::Flowtable(flowtable) => write!(f, "flowtable {flowtable}"),
        }
    }
}

const NFTA_CHAIN_HOOK: u16 = 4;
const NFTA_CHAIN_FLAGS: u16 = 10;
const NFT_CHAIN_BASE: u32 = 1;
const NFTA_FLOWTABLE_HOOK: u16 = 3;
const NFTA_HOOK_DEVS: u16 = 4;
const NFTA_FLOWTABLE_HOOK_DEVS: u16 = 3;
