//! Devices of a base chain or a flowtable, which can be added and deleted while it exists.

use std::fmt;

use sluicegate_netlink::DecodeError;
use sluicegate_netlink::attr::{Attribute, Writer};

use crate::name::{InterfaceName, is_escaped};
use crate::object::chain::wire::*;
use crate::object::flowtable::wire::*;
use crate::object::{ChainId, FlowtableId};
use crate::wire::attributes::attributes;
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

/// Returns `devices = { "eth0", "lo" }`, in alphabetical order. nft 1.0.6 reads such names with quotes, but
/// lists them without.
pub(crate) fn device_list(devices: &[InterfaceName], with: Wording<'_>) -> String {
    let mut devices: Vec<_> = devices.iter().collect();
    devices.sort_unstable();
    // A name that is a keyword of nft, or starts with a digit, needs quotes for nft to read it. Listings have
    // no quotes, as in nft, except for names with special characters.
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

/// Appends a device to a list, or all devices with a prefix.
pub(crate) fn encode_device(device: &InterfaceName, list: &mut Writer<'_>) {
    match device.prefix() {
        Some(prefix) => list.put_str(NFTA_DEVICE_PREFIX, prefix),
        None => list.put_str(NFTA_DEVICE_NAME, &device.literal()),
    }
}

/// Returns the name of a device in a list, or a prefix with `*` appended.
pub(crate) fn decode_device(listed: &Attribute<'_>) -> Result<String, DecodeError> {
    let name = listed.text()?;
    Ok(if listed.kind == NFTA_DEVICE_PREFIX { format!("{name}*") } else { name.into_owned() })
}

attributes! {
    DEVICES: "enum nft_devices_attributes, linux/netfilter/nf_tables.h" {
        NFTA_DEVICE_NAME = 1,
        /// Since Linux 6.17.
        NFTA_DEVICE_PREFIX = 2,
    }
}
