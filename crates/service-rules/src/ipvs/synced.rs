//! The result of a sync of IPVS mode.

use std::fmt;

use sluicegate_services::Family;
use sluicegate_xtables::BackEnd;

use super::Change;
use crate::summary::counted;
use crate::{Found, Summary, Verb};

/// The result of one sync in each family.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Synced {
    /// The result of each family.
    pub families: Vec<FamilySynced>,
}

/// The result of one sync in one family.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FamilySynced {
    /// IPv4 or IPv6.
    pub family: Family,
    /// The kernel interface of iptables.
    pub back_end: BackEnd,
    /// How the sync found the difference.
    pub found: Found,
    /// The number of sets that were created.
    pub sets: usize,
    /// The number of entries that were added to sets.
    pub entries_added: usize,
    /// The number of entries that were deleted from sets.
    pub entries_deleted: usize,
    /// The number of commands that were sent to IPVS.
    pub commands: usize,
    /// The number of addresses that were bound.
    pub bound: usize,
    /// The number of addresses that were unbound.
    pub unbound: usize,
    /// The size of the change of rules in bytes, as input of iptables-restore; 0 for none.
    pub rules: usize,
    /// The number of missing jumps to our chains that were added.
    pub jumps: usize,
}

impl FamilySynced {
    pub(super) fn new(family: Family, back_end: BackEnd) -> Self {
        Self {
            family,
            back_end,
            found: Found::Changed,
            sets: 0,
            entries_added: 0,
            entries_deleted: 0,
            commands: 0,
            bound: 0,
            unbound: 0,
            rules: 0,
            jumps: 0,
        }
    }

    pub(super) fn count(&mut self, change: &Change) {
        self.sets += change.create.len();
        self.entries_added = change.add.iter().map(|(_, entries)| entries.len()).sum();
        self.entries_deleted = change.delete.iter().map(|(_, entries)| entries.len()).sum();
        self.commands += change.serve.len() + change.retire.len();
        (self.bound, self.unbound) = (change.bind.len(), change.unbind.len());
    }

    /// Returns `true` if nothing changed. Unchanged rules may have been written again.
    #[must_use]
    pub fn is_unchanged(&self) -> bool {
        let Self { sets, entries_added, entries_deleted, commands, bound, unbound, jumps, rules, .. } = self;
        let rules = if self.found == Found::Compared { 0 } else { *rules };
        [*sets, *entries_added, *entries_deleted, *commands, *bound, *unbound, *jumps, rules] == [0; 8]
    }
}

impl fmt::Display for Synced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let families: Vec<_> = self.families.iter().map(ToString::to_string).collect();
        f.write_str(&families.join("; "))
    }
}

impl fmt::Display for FamilySynced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (iptables: {}): ", self.family, self.back_end)?;
        if self.is_unchanged() {
            f.write_str("nothing to change")?;
        } else {
            let entries = if self.entries_added == 1 { "entry" } else { "entries" };
            let addresses = if self.bound == 1 { "address" } else { "addresses" };
            write!(
                f,
                "{}, {} {entries} added, {} deleted, {} to IPVS, {} {addresses} bound, {} unbound, {}",
                counted(self.sets, "set"),
                self.entries_added,
                self.entries_deleted,
                counted(self.commands, "command"),
                self.bound,
                self.unbound,
                counted(self.jumps, "jump"),
            )?;
        }
        if self.rules > 0 {
            write!(f, "; {} of rules written", counted(self.rules, "byte"))?;
        }
        Ok(())
    }
}

impl From<Synced> for Summary {
    fn from(synced: Synced) -> Self {
        let is_full = synced.families.iter().any(|family| family.found != Found::Changed);
        let found = if is_full { Found::Compared } else { Found::Changed };
        let mut summary = Self::new(found, synced.to_string());
        for family in &synced.families {
            summary.batches += usize::from(!family.is_unchanged());
            summary.bytes += family.rules;
            summary = summary
                .count("element", Verb::Added, family.entries_added)
                .count("element", Verb::Deleted, family.entries_deleted)
                .count("server", Verb::Any, family.commands)
                .count("address", Verb::Added, family.bound)
                .count("address", Verb::Deleted, family.unbound);
        }
        summary.is_unchanged = synced.families.iter().all(FamilySynced::is_unchanged);
        summary
    }
}
