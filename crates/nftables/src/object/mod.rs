//! The objects of `nf_tables`, one file each: what names it, what it is configured with, its text, its attributes.

pub(crate) mod chain;
pub(crate) mod compat;
pub(crate) mod devices;
pub(crate) mod element;
pub(crate) mod flowtable;
pub(crate) mod rule;
pub(crate) mod set;
pub(crate) mod stateful;
pub(crate) mod table;
pub(crate) mod tunnel;
pub(crate) mod typeof_data;
pub(crate) mod userdata;

pub use chain::{BaseChain, Chain, ChainId, ChainType, Hook, Policy, Priority};
pub use devices::{HookDevices, HookOwner};
pub use element::{Element, ElementData, Elements};
pub use flowtable::{Flowtable, FlowtableFlags, FlowtableId};
pub use rule::{Rule, RuleId};
pub use set::{Set, SetData, SetFlags, SetId, SetPolicy, SetType};
pub use stateful::{ObjectConfig, ObjectId, StatefulObject, timeout_states};
pub use table::{Table, TableFlags, TableId};
pub use tunnel::{GeneveOption, Tunnel, TunnelEndpoints, TunnelFlags, TunnelOptions};
