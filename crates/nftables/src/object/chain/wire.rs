//! Encodes and decodes chains as netlink attributes.

use std::borrow::Cow;

use sluicegate_netlink::DecodeError;
use sluicegate_netlink::attr::{Attribute, Attributes, Writer};

use crate::expr::wire::{COUNTER, NFTA_COUNTER_BYTES, NFTA_COUNTER_PACKETS};
use crate::family::Family;
use crate::name::Name;
use crate::object::TableId;
use crate::object::chain::Policy;
use crate::object::device_list::{DEVICES, decode_device, encode_device};
use crate::object::userdata::{self, UserData};
use crate::tree::Counter;
use crate::wire::attributes::attributes;
use crate::wire::decode::{name, need};
use crate::wire::flags::flags;

impl super::Chain {
    pub(crate) fn encode(&self, w: &mut Writer<'_>) {
        w.put_str(NFTA_CHAIN_TABLE, &self.id.table.name);
        w.put_str(NFTA_CHAIN_NAME, &self.id.name);
        if let Some(base) = &self.base {
            w.put_str(NFTA_CHAIN_TYPE, base.kind.name());
            if let Some(policy) = base.policy {
                w.put_be32(NFTA_CHAIN_POLICY, policy.number());
            }
            let mut hook = w.nest(NFTA_CHAIN_HOOK);
            // If the family has no such hook, the kernel refuses this number.
            hook.put_be32(NFTA_HOOK_HOOKNUM, base.hook.number(self.id.table.family).unwrap_or(u32::MAX));
            hook.put_be32(NFTA_HOOK_PRIORITY, base.priority.0.cast_unsigned());
            match base.devices.as_slice() {
                [] => {}
                [device] if device.prefix().is_none() => hook.put_str(NFTA_HOOK_DEV, &device.literal()),
                devices => {
                    let mut list = hook.nest(NFTA_HOOK_DEVS);
                    devices.iter().for_each(|device| encode_device(device, &mut list));
                }
            }
            drop(hook);
            if base.offload {
                w.put_be32(NFTA_CHAIN_FLAGS, ChainFlags::HW_OFFLOAD.bits());
            }
        } else if let Some(policy) = self.policy {
            w.put_be32(NFTA_CHAIN_POLICY, policy.number());
        }
        if let Some(Counter { packets, bytes }) = self.counter {
            let mut counters = w.nest(NFTA_CHAIN_COUNTERS);
            counters.put_be64(NFTA_COUNTER_BYTES, bytes);
            counters.put_be64(NFTA_COUNTER_PACKETS, packets);
        }
        if let Some(comment) = &self.comment {
            w.put(NFTA_CHAIN_USERDATA, &userdata::comment(userdata::CHAIN_COMMENT, comment));
        }
    }
}

impl Policy {
    pub(crate) fn number(self) -> u32 {
        match self {
            Self::Drop => 0,
            Self::Accept => 1,
        }
    }
}

/// Appends the attributes of an anonymous chain. The kernel names it; until then the batch refers to it by
/// its number.
pub(crate) fn encode_bound(table: &TableId, number: u32, w: &mut Writer<'_>) {
    w.put_str(NFTA_CHAIN_TABLE, &table.name);
    w.put_be32(NFTA_CHAIN_ID, number);
    w.put_be32(NFTA_CHAIN_FLAGS, ChainFlags::BINDING.bits());
}

/// A chain as the kernel lists it.
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
    /// The hook of a base chain; `None` for a regular chain.
    pub hook: Option<Hook>,
    /// The type of a base chain: `filter`, `nat` or `route`.
    pub kind: Option<String>,
    /// The policy of a base chain (`NF_DROP` 0, `NF_ACCEPT` 1).
    pub policy: Option<u32>,
    /// Its flags.
    pub flags: ChainFlags,
    /// The number of its rules and of the jumps to it.
    pub uses: u32,
    /// The packets that reached the end of a base chain. The kernel counts them only if the chain was created
    /// with an initial count, as iptables-nft does.
    pub counter: Option<Counter>,
    /// User data: bytes that the kernel stores without interpreting them.
    pub user_data: Vec<u8>,
}

/// The hook of a base chain (`enum nft_hook_attributes`).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Hook {
    /// The number of the hook in its family (`NF_INET_*`, `NF_NETDEV_*`, ...).
    pub number: u32,
    /// The priority: chains with a lower one come first.
    pub priority: i32,
    /// The devices of an ingress or egress hook. A name that ends with `*` stands for all devices with this
    /// prefix.
    pub devices: Vec<String>,
}

flags! {
    /// `enum nft_chain_flags`.
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub struct ChainFlags: u32 {
        /// `NFT_CHAIN_BASE`.
        const BASE = 1;
        /// `NFT_CHAIN_HW_OFFLOAD`.
        const HW_OFFLOAD = 2;
        /// `NFT_CHAIN_BINDING`: an anonymous chain, which belongs to the rule that jumps to it.
        const BINDING = 4;
        const _ = !0;
    }
}

impl Chain {
    /// Returns the comment in the user data, if there is one.
    #[must_use]
    pub fn comment(&self) -> Option<Cow<'_, str>> {
        UserData::new(&self.user_data).comment()
    }

    /// Returns the devices of its hook.
    #[cfg(feature = "monitor")]
    pub(crate) fn devices(&self) -> &[String] {
        self.hook.as_ref().map_or(&[], |hook| &hook.devices)
    }

    /// Decodes the attributes of a message about a chain.
    ///
    /// # Errors
    /// If they are malformed, or lack the table or the name.
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
                NFTA_CHAIN_TYPE => kind = Some(attribute.text()?.into_owned()),
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

impl Hook {
    fn decode(hook: &Attribute<'_>) -> Result<Self, DecodeError> {
        let (mut number, mut priority, mut devices) = (None, None, Vec::new());
        for attribute in hook.attributes() {
            let attribute = attribute?;
            match attribute.kind {
                NFTA_HOOK_HOOKNUM => number = Some(attribute.be32()?),
                NFTA_HOOK_PRIORITY => priority = Some(attribute.be32()?.cast_signed()),
                NFTA_HOOK_DEV => devices.push(attribute.text()?.into_owned()),
                NFTA_HOOK_DEVS => {
                    for listed in attribute.attributes() {
                        devices.push(decode_device(&listed?)?);
                    }
                }
                _ => {}
            }
        }
        let (number, priority) = (need(number, "NFTA_HOOK_HOOKNUM")?, need(priority, "NFTA_HOOK_PRIORITY")?);
        Ok(Self { number, priority, devices })
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

attributes! {
    CHAIN: "enum nft_chain_attributes, linux/netfilter/nf_tables.h" {
        NFTA_CHAIN_TABLE = 1,
        NFTA_CHAIN_HANDLE = 2,
        NFTA_CHAIN_NAME = 3,
        NFTA_CHAIN_HOOK = 4 => HOOK,
        NFTA_CHAIN_POLICY = 5,
        NFTA_CHAIN_USE = 6,
        NFTA_CHAIN_TYPE = 7,
        NFTA_CHAIN_COUNTERS = 8 => COUNTER,
        NFTA_CHAIN_PAD = 9,
        NFTA_CHAIN_FLAGS = 10,
        NFTA_CHAIN_ID = 11,
        NFTA_CHAIN_USERDATA = 12,
    }

    HOOK: "enum nft_hook_attributes, linux/netfilter/nf_tables.h" {
        NFTA_HOOK_HOOKNUM = 1,
        NFTA_HOOK_PRIORITY = 2,
        NFTA_HOOK_DEV = 3,
        NFTA_HOOK_DEVS = 4 => DEVICES,
    }
}
