//! What a transaction under way leaves to its end, or forbids before it.

use std::sync::Arc;

use crate::fake::event::Event;
use crate::fake::set::Set;
use crate::fake::state::{Chain, Flowtable, Object};
use crate::name::Name;

/// Whether the chains of a table have to be walked before a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Checks {
    /// Nothing has changed that matters.
    #[default]
    None,
    /// At the end of the transaction.
    AtCommit,
    /// After each operation: the end of the transaction found a fault, and this is how the kernel finds whose it is.
    AtOnce,
}

/// What of a transaction waits for its end, or forbids things before it.
#[derive(Debug, Clone, Default)]
pub(super) struct Pending {
    /// Its flags have changed.
    pub(super) table: bool,
    /// A chain that was there has been added again, or a base chain deleted.
    pub(super) chain: bool,
    /// It is deleted, and so is all that was in it.
    pub(super) doomed: bool,
    /// Names that chains will get.
    pub(super) names: Vec<Name>,
    /// What happens at the end, in this order.
    pub(super) steps: Vec<Step>,
    /// Somebody wants to be told.
    pub(super) told: bool,
    /// What has been deleted, if somebody wants to be told.
    pub(super) gone: Gone,
}

/// One step of a commit.
#[derive(Debug, Clone)]
pub(super) enum Step {
    Settle(Later),
    Tell(Event),
}

/// What a transaction deletes: its end still has to say so.
#[derive(Debug, Clone, Default)]
pub(super) struct Gone {
    pub(super) chains: Vec<Arc<Chain>>,
    pub(super) sets: Vec<Arc<Set>>,
    pub(super) objects: Vec<Object>,
    pub(super) flowtables: Vec<Flowtable>,
}

/// A change that becomes visible at the end of its transaction.
#[derive(Debug, Clone)]
pub(super) enum Later {
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
    /// An element's timeout, and how long it stays this time.
    Element {
        set: u64,
        element: u64,
        timeout: Option<u64>,
        left: Option<u64>,
    },
}
