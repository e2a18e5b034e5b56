//! Chains (`enum nft_chain_attributes`).

use sluicegate_netlink::attr::{Attribute, Attributes};
use sluicegate_netlink::{DecodeError, Error, MessageWriter, Transport};

use super::{UserData, list, name, need, one};
use crate::lang::Counter;
use crate::{Family, Name};

/// A chain that the kernel holds.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Chain {
    /// The family of its table.
    pub family: Family,
    /// Its table.
    pub table: Name,
    /// Its name.
    pub name: Name,
    /// Its handle.
    pub handle: u64,
    /// Where it is hooked into the packet path; `None` of a chain that is only jumped to.
    pub hook: Option<Hook>,
    /// `filter`, `nat` or `route`, of a base chain.
    pub kind: Option<String>,
    /// The verdict at its end (`NF_DROP` 0, `NF_ACCEPT` 1), of a base chain.
    pub policy: Option<u32>,
    /// Its flags.
    pub flags: ChainFlags,
    /// How many rules and jumps refer to it.
    pub uses: u32,
    /// What packets have come to the end of a base chain, and so to its policy. The kernel counts where its maker gave it a count to start
    /// from, as iptables-nft does.
    pub counter: Option<Counter>,
    /// What its maker noted with it.
    pub user_data: Vec<u8>,
}

/// Where a base chain is hooked (`enum nft_hook_attributes`).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Hook {
    /// `NF_INET_*`, `NF_NETDEV_*`, ... of the family.
    pub number: u32,
    /// The lower, the earlier.
    pub priority: i32,
    /// The devices, where the hook belongs to devices. One that ends with `*` stands for all whose names start so.
    pub devices: Vec<String>,
}

bitflags::bitflags! {
    /// `enum nft_chain_flags`.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub struct ChainFlags: u32 {
        /// `NFT_CHAIN_BASE`.
        const BASE = 1;
        /// `NFT_CHAIN_HW_OFFLOAD`.
        const HW_OFFLOAD = 2;
        /// `NFT_CHAIN_BINDING`: it belongs to the rule that jumps to it.
        const BINDING = 4;
        const _ = !0;
    }
}

impl Chain {
    /// The comment, if it has one.
    #[must_use]
    pub fn comment(&self) -> Option<&str> {
        UserData::new(&self.user_data).comment()
    }

    /// The devices that it is hooked to.
    pub(crate) fn devices(&self) -> &[String] {
        self.hook.as_ref().map_or(&[], |hook| &hook.devices)
    }

    /// Reads the attributes of a message about a chain.
    ///
    /// # Errors
    /// When they are malformed, or without a table and name.
    pub fn decode(family: Family, attributes: Attributes<'_>) -> Result<Self, DecodeError> {
        let (mut table, mut named, mut handle, mut uses) = (None, None, 0, 0);
        let (mut hook, mut kind, mut policy) = (None, None, None);
        let (mut flags, mut counter, mut user_data) = (ChainFlags::empty(), None, Vec::new());
        for attribute in attributes {
            let attribute = attribute?;
            match attribute.kind {
                NFTA_CHAIN_TABLE => table = Some(name(&attribute)?),
                NFTA_CHAIN_HANDLE => handle = attribute.be64()?,
                NFTA_CHAIN_NAME => named = Some(name(&attribute)?),
                NFTA_CHAIN_HOOK => hook = Some(Hook::decode(&attribute)?),
                NFTA_CHAIN_POLICY => policy = Some(attribute.be32()?),
                NFTA_CHAIN_USE => uses = attribute.be32()?,
                NFTA_CHAIN_TYPE => kind = Some(attribute.str()?.to_owned()),
                NFTA_CHAIN_COUNTERS => counter = Some(count(&attribute)?),
                NFTA_CHAIN_FLAGS => flags = ChainFlags::from_bits_retain(attribute.be32()?),
                NFTA_CHAIN_USERDATA => user_data = attribute.payload.to_vec(),
                _ => {}
            }
        }
        let (table, name) = (need(table, "NFTA_CHAIN_TABLE")?, need(named, "NFTA_CHAIN_NAME")?);
        Ok(Self { family, table, name, handle, hook, kind, policy, flags, uses, counter, user_data })
    }
}

fn count(counters: &Attribute<'_>) -> Result<Counter, DecodeError> {
    let mut counter = Counter::default();
    for attribute in counters.attributes() {
        let attribute = attribute?;
        match attribute.kind {
            NFTA_COUNTER_BYTES => counter.bytes = attribute.be64()?,
            NFTA_COUNTER_PACKETS => counter.packets = attribute.be64()?,
            _ => {}
        }
    }
    Ok(counter)
}

impl Hook {
    fn decode(hook: &Attribute<'_>) -> Result<Self, DecodeError> {
        let (mut number, mut priority, mut devices) = (None, None, Vec::new());
        for attribute in hook.attributes() {
            let attribute = attribute?;
            match attribute.kind {
                NFTA_HOOK_HOOKNUM => number = Some(attribute.be32()?),
                NFTA_HOOK_PRIORITY => priority = Some(attribute.be32()?.cast_signed()),
                NFTA_HOOK_DEV => devices.push(attribute.str()?.to_owned()),
                NFTA_HOOK_DEVS => {
                    for listed in attribute.attributes() {
                        devices.push(device(&listed?)?);
                    }
                }
                _ => {}
            }
        }
        let (number, priority) = (need(number, "NFTA_HOOK_HOOKNUM")?, need(priority, "NFTA_HOOK_PRIORITY")?);
        Ok(Self { number, priority, devices })
    }
}

/// A device in a list of them; with a `*` behind it, all whose names start so.
pub(super) fn device(listed: &Attribute<'_>) -> Result<String, DecodeError> {
    let name = listed.str()?;
    Ok(if listed.kind == NFTA_DEVICE_PREFIX { format!("{name}*") } else { name.to_owned() })
}

/// Reads the chains of a family, or those of one table.
///
/// # Errors
/// See [`tables`](super::tables).
pub fn chains(
    transport: &mut (impl Transport + ?Sized),
    family: Family,
    table: Option<&str>,
) -> Result<Vec<Chain>, Error> {
    let filter = |chain: &Chain| table.is_none_or(|table| chain.table.as_str() == table);
    list(transport, NFT_MSG_GETCHAIN, family, |_| {}, Chain::decode, filter)
}

/// Reads one chain by its name; `None` when there is none.
///
/// # Errors
/// When the kernel refuses for another reason than that, or does not answer.
pub fn chain(
    transport: &mut (impl Transport + ?Sized),
    family: Family,
    table: &str,
    name: &str,
) -> Result<Option<Chain>, Error> {
    let write = |request: &mut MessageWriter<'_>| {
        request.put_str(NFTA_CHAIN_TABLE, table);
        request.put_str(NFTA_CHAIN_NAME, name);
    };
    one(transport, NFT_MSG_GETCHAIN, family, write, Chain::decode)
}

/// `NFT_MSG_GETCHAIN`.
const NFT_MSG_GETCHAIN: u8 = 4;
/// `NFTA_CHAIN_TABLE`.
const NFTA_CHAIN_TABLE: u16 = 1;
/// `NFTA_CHAIN_HANDLE`.
const NFTA_CHAIN_HANDLE: u16 = 2;
/// `NFTA_CHAIN_NAME`.
const NFTA_CHAIN_NAME: u16 = 3;
/// `NFTA_CHAIN_HOOK`.
const NFTA_CHAIN_HOOK: u16 = 4;
/// `NFTA_CHAIN_POLICY`.
const NFTA_CHAIN_POLICY: u16 = 5;
/// `NFTA_CHAIN_USE`.
const NFTA_CHAIN_USE: u16 = 6;
/// `NFTA_CHAIN_TYPE`.
const NFTA_CHAIN_TYPE: u16 = 7;
/// `NFTA_CHAIN_COUNTERS`.
const NFTA_CHAIN_COUNTERS: u16 = 8;
/// `NFTA_CHAIN_FLAGS`.
const NFTA_CHAIN_FLAGS: u16 = 10;
/// `NFTA_CHAIN_USERDATA`.
const NFTA_CHAIN_USERDATA: u16 = 12;
/// `NFTA_COUNTER_BYTES`.
const NFTA_COUNTER_BYTES: u16 = 1;
/// `NFTA_COUNTER_PACKETS`.
const NFTA_COUNTER_PACKETS: u16 = 2;
/// `NFTA_HOOK_HOOKNUM`.
const NFTA_HOOK_HOOKNUM: u16 = 1;
/// `NFTA_HOOK_PRIORITY`.
const NFTA_HOOK_PRIORITY: u16 = 2;
/// `NFTA_HOOK_DEV`.
const NFTA_HOOK_DEV: u16 = 3;
/// `NFTA_HOOK_DEVS`.
const NFTA_HOOK_DEVS: u16 = 4;
/// `NFTA_DEVICE_PREFIX`, since Linux 6.17, and 6.16.6 of the stable series.
const NFTA_DEVICE_PREFIX: u16 = 2;
