//! Devices of hooks: named, or all whose names start alike.

use sluicegate_netlink::attr::{Attribute, Writer};

use crate::fake::message::{EEXIST, EFBIG, EINVAL, Refusal, refusal, refuse};

/// A device, which need not exist (since Linux 6.16; before, that was `ENOENT`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Device {
    name: String,
    /// Any device whose name starts so.
    prefix: bool,
}

impl Device {
    pub(super) fn read(attribute: &Attribute<'_>, prefix: bool) -> Result<Self, Refusal> {
        let name = attribute.str().map_err(|_| refusal(EINVAL).at(Some(attribute)))?;
        Ok(Self { name: name.to_owned(), prefix })
    }

    /// Whether the kernel takes them for one: where the one stands for names, and the other is of them, too.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.name == other.name
            || (self.prefix && other.name.starts_with(&self.name))
            || (other.prefix && self.name.starts_with(&other.name))
    }
}

/// A list of devices, none of them twice.
pub(super) fn list(list: &Attribute<'_>) -> Result<Vec<Device>, Refusal> {
    let mut devices: Vec<Device> = Vec::new();
    for item in list.attributes() {
        let item = item.map_err(|_| refusal(EINVAL))?;
        let device = match item.kind {
            NFTA_DEVICE_NAME => Device::read(&item, false)?,
            NFTA_DEVICE_PREFIX => Device::read(&item, true)?,
            _ => return refuse(EINVAL),
        };
        if devices.iter().any(|held| held.is_same(&device)) {
            return Err(refusal(EEXIST).at(Some(&item)));
        }
        devices.push(device);
        if devices.len() == MAX_DEVICES {
            return refuse(EFBIG);
        }
    }
    Ok(devices)
}

/// Takes devices out of those that are held, or none of them where one is not held.
pub(super) fn remove(held: &mut Vec<Device>, devices: &[Device]) -> Option<Vec<Device>> {
    let mut rest = held.clone();
    let mut gone = Vec::new();
    for device in devices {
        let at = rest.iter().position(|held| held.is_same(device))?;
        gone.push(rest.remove(at));
    }
    *held = rest;
    Some(gone)
}

/// The list as it is shown.
pub(super) fn write(devices: &[Device], list: &mut Writer<'_>) {
    for device in devices {
        list.put_str(if device.prefix { NFTA_DEVICE_PREFIX } else { NFTA_DEVICE_NAME }, &device.name);
    }
}

/// The one device of a hook, if it is one and stands for itself.
pub(super) fn only(devices: &[Device]) -> Option<&str> {
    match devices {
        [only] if !only.prefix => Some(&only.name),
        _ => None,
    }
}

/// `NFT_NETDEVICE_MAX`
const MAX_DEVICES: usize = 256;
const NFTA_DEVICE_NAME: u16 = 1;
const NFTA_DEVICE_PREFIX: u16 = 2;
