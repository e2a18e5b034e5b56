//! Encodes and decodes flowtables as netlink attributes.

use sluicegate_netlink::DecodeError;
use sluicegate_netlink::attr::{Attribute, Attributes, Writer};

use crate::family::Family;
use crate::name::Name;
use crate::object::device_list::{DEVICES, decode_device, encode_device};
use crate::object::{FlowtableFlags, FlowtableId};
use crate::wire::attributes::attributes;
use crate::wire::decode::{name, need};

impl super::Flowtable {
    pub(crate) fn encode(&self, w: &mut Writer<'_>) {
        self.id.encode(w);
        let mut hook = w.nest(NFTA_FLOWTABLE_HOOK);
        hook.put_be32(NFTA_FLOWTABLE_HOOK_NUM, INGRESS);
        hook.put_be32(NFTA_FLOWTABLE_HOOK_PRIORITY, self.priority.0.cast_unsigned());
        let mut list = hook.nest(NFTA_FLOWTABLE_HOOK_DEVS);
        self.devices.iter().for_each(|device| encode_device(device, &mut list));
        drop(list);
        drop(hook);
        w.put_be32(NFTA_FLOWTABLE_FLAGS, self.flags.bits());
    }
}

impl FlowtableId {
    pub(crate) fn encode(&self, w: &mut Writer<'_>) {
        w.put_str(NFTA_FLOWTABLE_TABLE, &self.table.name);
        w.put_str(NFTA_FLOWTABLE_NAME, &self.name);
    }
}

/// A flowtable as the kernel lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Flowtable {
    /// The family of its table.
    pub family: Family,
    /// Its table.
    pub table: Name,
    /// Its name.
    pub name: Name,
    /// The hook: always 0 (ingress).
    pub hook: u32,
    /// The priority: functions with a lower one come first.
    pub priority: i32,
    /// The devices that it serves.
    pub devices: Vec<String>,
    /// Its flags.
    pub flags: FlowtableFlags,
    /// The number of rules that refer to it.
    pub uses: u32,
    /// Its handle.
    pub handle: u64,
}

impl Flowtable {
    /// Decodes the attributes of a message about a flowtable.
    ///
    /// # Errors
    /// If they are malformed, or lack the table or the name.
    pub fn decode(family: Family, attributes: Attributes<'_>) -> Result<Self, DecodeError> {
        let (mut table, mut named) = (None, None);
        let (mut hook, mut priority, mut devices) = (0, 0, Vec::new());
        let (mut flags, mut uses, mut handle) = (FlowtableFlags::empty(), 0, 0);
        for attribute in attributes {
            let attribute = attribute?;
            match attribute.kind {
                NFTA_FLOWTABLE_TABLE => table = Some(name(&attribute)?),
                NFTA_FLOWTABLE_NAME => named = Some(name(&attribute)?),
                NFTA_FLOWTABLE_HOOK => (hook, priority, devices) = decode_hook(&attribute)?,
                NFTA_FLOWTABLE_USE => uses = attribute.be32()?,
                NFTA_FLOWTABLE_HANDLE => handle = attribute.be64()?,
                NFTA_FLOWTABLE_FLAGS => flags = FlowtableFlags::from_bits_retain(attribute.be32()?),
                _ => {}
            }
        }
        let (table, name) = (need(table, "NFTA_FLOWTABLE_TABLE")?, need(named, "NFTA_FLOWTABLE_NAME")?);
        Ok(Self { family, table, name, hook, priority, devices, flags, uses, handle })
    }
}

fn decode_hook(attribute: &Attribute<'_>) -> Result<(u32, i32, Vec<String>), DecodeError> {
    let (mut hook, mut priority, mut devices) = (0, 0, Vec::new());
    for part in attribute.attributes() {
        let part = part?;
        match part.kind {
            NFTA_FLOWTABLE_HOOK_NUM => hook = part.be32()?,
            NFTA_FLOWTABLE_HOOK_PRIORITY => priority = part.be32()?.cast_signed(),
            NFTA_FLOWTABLE_HOOK_DEVS => {
                for listed in part.attributes() {
                    devices.push(decode_device(&listed?)?);
                }
            }
            _ => {}
        }
    }
    Ok((hook, priority, devices))
}

/// `NF_NETDEV_INGRESS` (`linux/netfilter.h`).
const INGRESS: u32 = 0;

attributes! {
    FLOWTABLE: "enum nft_flowtable_attributes, linux/netfilter/nf_tables.h" {
        NFTA_FLOWTABLE_TABLE = 1,
        NFTA_FLOWTABLE_NAME = 2,
        NFTA_FLOWTABLE_HOOK = 3 => FLOWTABLE_HOOK,
        NFTA_FLOWTABLE_USE = 4,
        NFTA_FLOWTABLE_HANDLE = 5,
        NFTA_FLOWTABLE_PAD = 6,
        NFTA_FLOWTABLE_FLAGS = 7,
    }

    FLOWTABLE_HOOK: "enum nft_flowtable_hook_attributes, linux/netfilter/nf_tables.h" {
        NFTA_FLOWTABLE_HOOK_NUM = 1,
        NFTA_FLOWTABLE_HOOK_PRIORITY = 2,
        NFTA_FLOWTABLE_HOOK_DEVS = 3 => DEVICES,
    }
}
