//! The effects of a transaction in progress that take place when it commits, and what it forbids until then.

use std::sync::Arc;

use crate::fake::event::Event;
use crate::fake::set::Set;
use crate::fake::state::{Chain, Flowtable, Object};
use crate::name::Name;

/// Whether the chains of a table have to be walked before a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Checks {
    /// No relevant change so far.
    #[default]
    None,
    /// Check at the end of the transaction.
    AtCommit,
    /// Check after each operation: the check at the end failed, and this is how the kernel finds the
    /// operation at fault.
    AtOnce,
}

/// The uncommitted changes of a transaction in progress to a table.
#[derive(Debug, Clone, Default)]
pub(super) struct Pending {
    /// Its flags have changed.
    pub(super) table: bool,
    /// An existing chain was added again, or a base chain deleted.
    pub(super) chain: bool,
    /// The table is deleted with all its content.
    pub(super) table_deleted: bool,
    /// The new names of chains that are renamed.
    pub(super) names: Vec<Name>,
    /// The steps of the commit, in order.
    pub(super) steps: Vec<Step>,
    /// Whether a socket listens to events.
    pub(super) notify: bool,
    /// The deleted objects, if a socket listens.
    pub(super) deleted: Deleted,
}

/// A step of a commit.
#[derive(Debug, Clone)]
pub(super) enum Step {
    Apply(Deferred),
    Notify(Event),
}

/// The objects that a transaction deletes: they are needed to build the events of the commit.
#[derive(Debug, Clone, Default)]
pub(super) struct Deleted {
    pub(super) chains: Vec<Arc<Chain>>,
    pub(super) sets: Vec<Arc<Set>>,
    pub(super) objects: Vec<Object>,
    pub(super) flowtables: Vec<Flowtable>,
}

/// A change that takes effect when the transaction commits.
#[derive(Debug, Clone)]
pub(super) enum Deferred {
    Rename {
        chain: u64,
        name: Name,
    },
    Policy {
        chain: u64,
        policy: u32,
    },
    Set {
        set: u64,
        timeout: u64,
        gc_interval: u32,
        size: u32,
    },
    Object {
        object: u64,
        data: Vec<u8>,
    },
    /// The new timeout and remaining lifetime of an element.
    Element {
        set: u64,
        element: u64,
        timeout: Option<u64>,
        left: Option<u64>,
    },
}
