//! Devices of a base chain or a flowtable, which can be added and deleted while it exists.

use std::fmt;

use sluicegate_netlink::attr::Writer;

use crate::name::InterfaceName;
use crate::object::chain::wire::*;
use crate::object::device_list::{device_list, encode_device};
use crate::object::flowtable::wire::*;
use crate::object::{ChainId, FlowtableId};
use crate::wording::Wording;

/// Devices to delete from a base chain or a flowtable, which itself stays. Devices are added by adding the
/// chain or flowtable again with them.
///
/// For chains this exists since Linux 6.4
/// ([`Feature::DeviceDeletion`](crate::probe::Feature::DeviceDeletion)), and nft reads the text since 1.0.8.
/// An older kernel ignores the devices and would delete the chain with all its rules. To prevent that, the
/// batch contains a second message which such a kernel then refuses (`EINVAL`), and the batch with it.
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
#[non_exhaustive]
pub struct HookDevices {
    /// The chain or flowtable.
    pub hook: HookOwner,
    /// The devices.
    pub devices: Vec<InterfaceName>,
}

/// An object with devices.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum HookOwner {
    /// A base chain.
    Chain(ChainId),
    /// A flowtable.
    Flowtable(FlowtableId),
}

impl ChainId {
    /// Selects devices of the chain, to delete them.
    pub fn devices(&self, devices: impl IntoIterator<Item = InterfaceName>) -> HookDevices {
        HookDevices { hook: HookOwner::Chain(self.clone()), devices: devices.into_iter().collect() }
    }
}

impl FlowtableId {
    /// Selects devices of the flowtable, to delete them.
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

/// Encodes a base chain without any change: this does nothing if the chain exists, and is refused if it does
/// not.
pub(crate) fn encode_existing(chain: &ChainId, w: &mut Writer<'_>) {
    w.put_str(NFTA_CHAIN_TABLE, &chain.table.name);
    w.put_str(NFTA_CHAIN_NAME, &chain.name);
    w.put_be32(NFTA_CHAIN_FLAGS, ChainFlags::BASE.bits());
}

/// Formats the argument of an nft command: `chain netdev t c { devices = { "eth0", "eth1" } ; }`.
impl fmt::Display for HookDevices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {{ {} ; }}", self.hook, device_list(&self.devices, Wording::SCRIPT))
    }
}

impl fmt::Display for HookOwner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Chain(chain) => write!(f, "chain {chain}"),
            Self::Flowtable(flowtable) => write!(f, "flowtable {flowtable}"),
        }
    }
}
