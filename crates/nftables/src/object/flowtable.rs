//! Flowtables (`enum nft_flowtable_attributes`): connections that are forwarded past the rules.

use std::fmt;

use bitflags::bitflags;
use sluicegate_netlink::attr::Writer;

use crate::lang::Wording;
use crate::name::{InterfaceName, Name};
use crate::object::chain::encode_device;
use crate::object::devices::device_list;
use crate::object::{Priority, TableId};

/// What names a flowtable: its table and its name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowtableId {
    /// The table.
    pub table: TableId,
    /// The name.
    pub name: Name,
}

impl fmt::Display for FlowtableId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.table, self.name)
    }
}

/// A flowtable at the ingress hook of some devices.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flowtable {
    /// What names it.
    pub id: FlowtableId,
    /// Its place among what is hooked in at ingress.
    pub priority: Priority,
    /// The devices between which connections are forwarded.
    pub devices: Vec<InterfaceName>,
    /// Its flags.
    pub flags: FlowtableFlags,
}

bitflags! {
    /// Flags of a flowtable (`enum nft_flowtable_flags`).
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub struct FlowtableFlags: u32 {
        /// `offload`: to the network card.
        const OFFLOAD = 1;
        /// `counter`
        const COUNTER = 2;

        const _ = !0;
    }
}

impl Flowtable {
    /// A flowtable of no device yet.
    #[must_use]
    pub fn new(id: FlowtableId, priority: Priority) -> Self {
        Self { id, priority, devices: Vec::new(), flags: FlowtableFlags::empty() }
    }

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

    /// What it says, in nft's words, one property each.
    pub(crate) fn properties(&self, with: Wording<'_>) -> Vec<String> {
        let priority = self.priority.name(crate::Family::NETDEV, crate::Hook::Ingress);
        let mut lines = vec![format!("hook ingress priority {priority}")];
        if !self.devices.is_empty() {
            lines.push(device_list(&self.devices, with));
        }
        if self.flags.contains(FlowtableFlags::OFFLOAD) {
            lines.push("flags offload".to_owned());
        }
        if self.flags.contains(FlowtableFlags::COUNTER) {
            lines.push("counter".to_owned());
        }
        lines
    }
}

impl FlowtableId {
    pub(crate) fn encode(&self, w: &mut Writer<'_>) {
        w.put_str(NFTA_FLOWTABLE_TABLE, &self.table.name);
        w.put_str(NFTA_FLOWTABLE_NAME, &self.name);
    }
}

/// As nft's commands say it: `flowtable inet t ft { hook ingress priority filter ; devices = { "eth0" } ; }`.
impl fmt::Display for Flowtable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "flowtable {} {{", self.id)?;
        self.properties(Wording::SCRIPT).iter().try_for_each(|line| write!(f, " {line} ;"))?;
        f.write_str(" }")
    }
}

const NFTA_FLOWTABLE_TABLE: u16 = 1;
const NFTA_FLOWTABLE_NAME: u16 = 2;
const NFTA_FLOWTABLE_HOOK: u16 = 3;
const NFTA_FLOWTABLE_FLAGS: u16 = 7;
const NFTA_FLOWTABLE_HOOK_NUM: u16 = 1;
const NFTA_FLOWTABLE_HOOK_PRIORITY: u16 = 2;
const NFTA_FLOWTABLE_HOOK_DEVS: u16 = 3;
/// `NF_NETDEV_INGRESS`
const INGRESS: u32 = 0;
