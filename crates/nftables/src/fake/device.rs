//! The devices of hooks: single names, and prefixes of names.

use sluicegate_netlink::Errno;
use sluicegate_netlink::attr::{Attribute, Writer};

use crate::fake::message::{Refusal, refusal, refuse};
use crate::object::device_list::{NFTA_DEVICE_NAME, NFTA_DEVICE_PREFIX};

/// A device of a hook. Since Linux 6.16 it need not exist; before, a missing one was `ENOENT`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Device {
    name: String,
    /// Whether the name is a prefix: the hook then covers all devices whose names start with it.
    prefix: bool,
}

impl Device {
    pub(super) fn read(attribute: &Attribute<'_>, prefix: bool) -> Result<Self, Refusal> {
        let name = attribute.text().map_err(|_| refusal(Errno::EINVAL).at(Some(attribute)))?;
        Ok(Self { name: name.into_owned(), prefix })
    }

    /// Returns whether the kernel considers them the same: a prefix covers the names and prefixes that start
    /// with it.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.name == other.name
            || (self.prefix && other.name.starts_with(&self.name))
            || (other.prefix && self.name.starts_with(&other.name))
    }
}

/// Decodes a list of devices without duplicates.
pub(super) fn list(list: &Attribute<'_>) -> Result<Vec<Device>, Refusal> {
    let mut devices: Vec<Device> = Vec::new();
    for item in list.attributes() {
        let item = item.map_err(|_| refusal(Errno::EINVAL))?;
        let device = match item.kind {
            NFTA_DEVICE_NAME => Device::read(&item, false)?,
            NFTA_DEVICE_PREFIX => Device::read(&item, true)?,
            _ => return refuse(Errno::EINVAL),
        };
        if devices.iter().any(|existing| existing.is_same(&device)) {
            return Err(refusal(Errno::EEXIST).at(Some(&item)));
        }
        devices.push(device);
        if devices.len() == MAX_DEVICES {
            return refuse(Errno::EFBIG);
        }
    }
    Ok(devices)
}

/// Removes devices from a list, or none of them if one is not in the list.
pub(super) fn remove(existing: &mut Vec<Device>, devices: &[Device]) -> Option<Vec<Device>> {
    let mut rest = existing.clone();
    let mut gone = Vec::new();
    for device in devices {
        let at = rest.iter().position(|existing| existing.is_same(device))?;
        gone.push(rest.remove(at));
    }
    *existing = rest;
    Some(gone)
}

/// Appends the devices as the kernel lists them.
pub(super) fn write(devices: &[Device], list: &mut Writer<'_>) {
    for device in devices {
        list.put_str(if device.prefix { NFTA_DEVICE_PREFIX } else { NFTA_DEVICE_NAME }, &device.name);
    }
}

/// Returns the device's name if there is exactly one and it is not a prefix.
pub(super) fn only(devices: &[Device]) -> Option<&str> {
    match devices {
        [only] if !only.prefix => Some(&only.name),
        _ => None,
    }
}

/// `NFT_NETDEVICE_MAX`
const MAX_DEVICES: usize = 256;
