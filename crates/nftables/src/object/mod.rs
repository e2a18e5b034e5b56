//! The objects of `nf_tables`, each in its own folder: its id, its configuration, its text, and its
//! attributes.
//!
//! `wire.rs` of each folder declares the attributes once (`wire/attributes.rs`),
//! encodes the configured value, and decodes what the kernel lists ([`read`](mod@crate::read) re-exports that
//! type).
//!
//! # To add a kind of stateful object
//!
//! | file | what to add |
//! |---|---|
//! | `expr/kinds/numbers.rs` | its number in `ObjectKind` |
//! | `object/stateful/mod.rs` | a variant of `ObjectConfig`, its kind and its properties as text |
//! | `object/stateful/wire.rs` | its attributes; a case in `encode` and in `decode` |
//! | `text/parse/`, `json/object/` | its text and its JSON |
//! | `fake/object.rs` | what the kernel checks and lists |
//! | `probe/feature.rs` | a feature, if not every supported kernel has it |
//! | `tests/it/kernel/objects.rs` | cases, compared with nft |
//!
//! # To add an object with messages of its own
//!
//! Places to change: `message.rs` (message types), a folder here, `read/` (the requests),
//! `transaction/operation.rs`, `apply/encode.rs` (the operations), `error/meaning.rs` (its errors), `listing/`
//! (the listing), `monitor/` (its events, and the copy that follows them) and `fake/`.

pub(crate) mod chain;
pub(crate) mod device_list;
pub(crate) mod devices;
pub(crate) mod element;
pub(crate) mod flowtable;
pub(crate) mod generation;
pub(crate) mod id;
pub(crate) mod rule;
pub(crate) mod set;
pub(crate) mod stateful;
pub(crate) mod table;
pub(crate) mod typeof_data;
pub(crate) mod userdata;

pub use chain::{BaseChain, Chain, ChainType, Hook, Policy, Priority};
pub use devices::{HookDevices, HookOwner};
pub use element::{Element, ElementData, Elements};
pub use flowtable::{Flowtable, FlowtableFlags};
pub use id::{ChainId, FlowtableId, ObjectId, SetId, TableId};
pub use rule::{Rule, RuleId};
pub use set::{Set, SetData, SetFlags, SetPolicy, SetType};
pub use stateful::tunnel::{GeneveOption, Tunnel, TunnelEndpoints, TunnelFlags, TunnelOptions};
pub use stateful::{ObjectConfig, StatefulObject, timeout_states};
pub use table::{Table, TableFlags};
