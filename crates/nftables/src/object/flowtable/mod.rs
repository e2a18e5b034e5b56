//! Flowtables (`enum nft_flowtable_attributes`): their connections are forwarded without evaluating rules.

pub(crate) mod wire;

use std::fmt;

use crate::name::InterfaceName;
use crate::object::device_list::device_list;
use crate::object::{FlowtableId, Priority};
use crate::wire::flags::flags;
use crate::wording::Wording;

/// A flowtable at the ingress hook of some devices.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Flowtable {
    /// The identifier.
    pub id: FlowtableId,
    /// Its position among the functions at the ingress hook.
    pub priority: Priority,
    /// The devices between which connections are forwarded.
    pub devices: Vec<InterfaceName>,
    /// Its flags.
    pub flags: FlowtableFlags,
}

flags! {
    /// Flags of a flowtable (`enum nft_flowtable_flags`).
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub struct FlowtableFlags: u32 {
        /// `offload`: forward in hardware.
        const OFFLOAD = 1;
        /// `counter`
        const COUNTER = 2;

        const _ = !0;
    }
}

impl Flowtable {
    /// Creates a flowtable without devices.
    #[must_use]
    pub fn new(id: FlowtableId, priority: Priority) -> Self {
        Self { id, priority, devices: Vec::new(), flags: FlowtableFlags::empty() }
    }

    /// Sets the devices between which connections are forwarded.
    #[must_use]
    pub fn devices(mut self, devices: impl IntoIterator<Item = InterfaceName>) -> Self {
        self.devices = devices.into_iter().collect();
        self
    }

    /// Sets the flags.
    #[must_use]
    pub fn flags(mut self, flags: FlowtableFlags) -> Self {
        self.flags = flags;
        self
    }

    /// Returns the properties in nft's syntax, one string for each.
    pub(crate) fn properties(&self, with: Wording<'_>) -> Vec<String> {
        let priority = match with.options.numeric_priority {
            true => self.priority.0.to_string(),
            false => self.priority.name(crate::Family::NETDEV, crate::Hook::Ingress),
        };
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

/// Formats the argument of an nft command:
/// `flowtable inet t ft { hook ingress priority filter ; devices = { "eth0" } ; }`.
impl fmt::Display for Flowtable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "flowtable {} {{", self.id)?;
        self.properties(Wording::SCRIPT).iter().try_for_each(|line| write!(f, " {line} ;"))?;
        f.write_str(" }")
    }
}
