//! Flowtables (`enum nft_flowtable_attributes`).

use sluicegate_netlink::attr::{Attribute, Attributes};
use sluicegate_netlink::{DecodeError, Error, MessageWriter, Transport};

use super::chain::device;
use super::{list, name, need, one};
use crate::{Family, FlowtableFlags, Name};

/// A flowtable that the kernel holds.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Flowtable {
    /// The family of its table.
    pub family: Family,
    /// Its table.
    pub table: Name,
    /// Its name.
    pub name: Name,
    /// The hook: 0, ingress.
    pub hook: u32,
    /// The lower, the earlier.
    pub priority: i32,
    /// The devices that it serves.
    pub devices: Vec<String>,
    /// Its flags.
    pub flags: FlowtableFlags,
    /// How many rules refer to it.
    pub uses: u32,
    /// Its handle.
    pub handle: u64,
}

impl Flowtable {
    /// Reads the attributes of a message about a flowtable.
    ///
    /// # Errors
    /// When they are malformed, or without a table and name.
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
                    devices.push(device(&listed?)?);
                }
            }
            _ => {}
        }
    }
    Ok((hook, priority, devices))
}

/// Reads the flowtables of a family, or those of one table.
///
/// # Errors
/// See [`tables`](super::tables).
pub fn flowtables(
    transport: &mut (impl Transport + ?Sized),
    family: Family,
    table: Option<&str>,
) -> Result<Vec<Flowtable>, Error> {
    list(
        transport,
        NFT_MSG_GETFLOWTABLE,
        family,
        |request| {
            if let Some(table) = table {
                request.put_str(NFTA_FLOWTABLE_TABLE, table);
            }
        },
        Flowtable::decode,
        |flowtable| table.is_none_or(|table| flowtable.table.as_str() == table),
    )
}

/// Reads one flowtable by its name; `None` when there is none.
///
/// # Errors
/// When the kernel refuses for another reason than that, or does not answer.
pub fn flowtable(
    transport: &mut (impl Transport + ?Sized),
    family: Family,
    table: &str,
    name: &str,
) -> Result<Option<Flowtable>, Error> {
    let write = |request: &mut MessageWriter<'_>| {
        request.put_str(NFTA_FLOWTABLE_TABLE, table);
        request.put_str(NFTA_FLOWTABLE_NAME, name);
    };
    one(transport, NFT_MSG_GETFLOWTABLE, family, write, Flowtable::decode)
}

/// `NFT_MSG_GETFLOWTABLE`.
const NFT_MSG_GETFLOWTABLE: u8 = 23;
/// `NFTA_FLOWTABLE_TABLE`.
const NFTA_FLOWTABLE_TABLE: u16 = 1;
/// `NFTA_FLOWTABLE_NAME`.
const NFTA_FLOWTABLE_NAME: u16 = 2;
/// `NFTA_FLOWTABLE_HOOK`.
const NFTA_FLOWTABLE_HOOK: u16 = 3;
/// `NFTA_FLOWTABLE_USE`.
const NFTA_FLOWTABLE_USE: u16 = 4;
/// `NFTA_FLOWTABLE_HANDLE`.
const NFTA_FLOWTABLE_HANDLE: u16 = 5;
/// `NFTA_FLOWTABLE_FLAGS`.
const NFTA_FLOWTABLE_FLAGS: u16 = 7;
/// `NFTA_FLOWTABLE_HOOK_NUM`.
const NFTA_FLOWTABLE_HOOK_NUM: u16 = 1;
/// `NFTA_FLOWTABLE_HOOK_PRIORITY`.
const NFTA_FLOWTABLE_HOOK_PRIORITY: u16 = 2;
/// `NFTA_FLOWTABLE_HOOK_DEVS`.
const NFTA_FLOWTABLE_HOOK_DEVS: u16 = 3;
