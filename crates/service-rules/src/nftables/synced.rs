//! The result of a sync of nftables mode.

use std::fmt;
use std::time::Duration;

use sluicegate_nftables::{Flush, Object, Operation, Target, Transaction};

use crate::summary::counted;
use crate::{Found, Summary, Verb};

/// The result of one sync.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Synced {
    /// How the sync found the difference.
    pub found: Found,
    /// The objects that were added and deleted.
    pub changes: Changes,
    /// The number of messages that were sent.
    pub messages: usize,
    /// The number of bytes that were sent.
    pub bytes: usize,
    /// The number of batches that were sent: none without a change, several if the send buffer was too small
    /// for one.
    pub batches: usize,
    /// The time in the kernel: `sendmsg` returns when the batch is applied.
    pub kernel: Duration,
    /// Whether unused chains could not be deleted yet. They are empty, and a later sync deletes them.
    pub is_stale_kept: bool,
    /// What the settings ask for and this kernel does not have, with the consequence; told once.
    pub notices: Vec<String>,
}

/// The numbers of objects that a transaction adds and deletes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Changes {
    /// Tables, chains and sets that were added or deleted.
    pub objects: usize,
    /// Rules that were added.
    pub rules: usize,
    /// Elements that were added.
    pub elements_added: usize,
    /// Elements that were deleted.
    pub elements_deleted: usize,
}

impl Changes {
    pub(super) fn of(transaction: &Transaction) -> Self {
        let mut changes = Self::default();
        for operation in transaction.operations() {
            match operation {
                Operation::Add(Object::Elements(elements)) => changes.elements_added += elements.list.len(),
                Operation::Delete(Target::Elements(elements)) => {
                    changes.elements_deleted += elements.list.len();
                }
                Operation::Add(Object::Rule(_)) | Operation::Insert(_) => changes.rules += 1,
                Operation::Flush(Flush::Chain(_)) | Operation::Delete(Target::Rule(_)) => {}
                _ => changes.objects += 1,
            }
        }
        changes
    }
}

impl fmt::Display for Synced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.batches == 0 {
            return f.write_str("nothing to change");
        }
        let Changes { objects, rules, elements_added, elements_deleted } = self.changes;
        let how = match self.found {
            Found::Changed | Found::Compared => "",
            Found::Replaced => "replaced all: ",
        };
        write!(
            f,
            "{how}{}, {}, {} added, {elements_deleted} deleted; {} in {}",
            counted(objects, "object"),
            counted(rules, "rule"),
            counted(elements_added, "element"),
            counted(self.bytes, "byte"),
            counted(self.messages, "message"),
        )?;
        if self.batches > 1 {
            write!(f, ", split into {} batches because the send buffer may not grow", self.batches)?;
        }
        Ok(())
    }
}

/// The [`Measure`](crate::Measure) that is 1 after a sync that could not delete all unused chains.
pub const STALE_CHAINS_KEPT: &str = "stale_chains_kept";

impl From<Synced> for Summary {
    fn from(synced: Synced) -> Self {
        let Changes { objects, rules, elements_added, elements_deleted } = synced.changes;
        let mut summary = Self::new(synced.found, synced.to_string())
            .count("object", Verb::Any, objects)
            .count("rule", Verb::Added, rules)
            .count("element", Verb::Added, elements_added)
            .count("element", Verb::Deleted, elements_deleted)
            .measure(STALE_CHAINS_KEPT, synced.is_stale_kept.into());
        // Flushing a chain adds and deletes nothing, but is sent.
        summary.is_unchanged = synced.batches == 0;
        summary.batches = synced.batches;
        summary.messages = synced.messages;
        summary.bytes = synced.bytes;
        summary.kernel = Some(synced.kernel);
        summary.notices = synced.notices;
        summary
    }
}
