//! The devices of a base chain or a flowtable, as text and as attributes.

use sluicegate_netlink::DecodeError;
use sluicegate_netlink::attr::{Attribute, Writer};

use crate::name::{InterfaceName, is_escaped};
use crate::sort;
use crate::wire::attributes::attributes;
use crate::wording::Wording;

/// Returns `devices = { "eth0", "lo" }`, in alphabetical order. nft 1.0.6 reads such names with quotes, but
/// lists them without.
pub(crate) fn device_list(devices: &[InterfaceName], with: Wording<'_>) -> String {
    let mut devices: Vec<_> = devices.iter().collect();
    sort::by(&mut devices, Ord::cmp);
    // A name that is a keyword of nft, or starts with a digit, needs quotes for nft to read it. Listings have
    // no quotes, as in nft, except for names with special characters.
    let names =
        devices.into_iter().map(|device| match with.is_script() || device.as_str().contains(is_escaped) {
            true => device.to_string(),
            false => device.as_str().to_owned(),
        });
    format!("devices = {{ {} }}", names.collect::<Vec<_>>().join(", "))
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
