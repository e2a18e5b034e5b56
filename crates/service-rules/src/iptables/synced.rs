//! The result of a sync of iptables mode.

use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

use sluicegate_services::Family;
use sluicegate_xtables::BackEnd;

use super::RuleCounts;
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
    /// The kernel interface.
    pub back_end: BackEnd,
    /// How the sync found the difference.
    pub found: Found,
    /// The number of chains that were created, flushed or deleted.
    pub chains: usize,
    /// The number of rules that were added or deleted one by one.
    pub rules: usize,
    /// The size of the change in bytes, as input of iptables-restore.
    pub bytes: usize,
    /// The time that listing and changing rules took.
    pub kernel: Duration,
    /// The numbers of our rules, except for jumps to our chains.
    pub total: RuleCounts,
    /// The numbers of our rules that were written.
    pub written: RuleCounts,
    /// Whether the change was refused, so that everything was compared.
    pub was_refused: bool,
    /// What guards traffic and is missing, with what follows.
    pub faults: Vec<String>,
    /// Deviations from the expected state and their consequences.
    pub notices: Vec<String>,
}

impl Synced {
    /// Returns the deviations from the expected state, each once.
    pub fn notices(&self) -> impl Iterator<Item = String> + '_ {
        self.each_once(|family| &family.notices)
    }

    /// Returns the protections of traffic that are missing, without duplicates.
    pub fn faults(&self) -> impl Iterator<Item = String> + '_ {
        self.each_once(|family| &family.faults)
    }

    fn each_once(
        &self,
        texts: fn(&FamilySynced) -> &[String],
    ) -> std::collections::btree_set::IntoIter<String> {
        let all = self
            .families
            .iter()
            .flat_map(|synced| texts(synced).iter().map(|text| format!("{}: {text}", synced.family)));
        all.collect::<BTreeSet<_>>().into_iter()
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
        write!(f, "{} ({}): ", self.family, self.back_end)?;
        match self.bytes {
            0 => f.write_str("nothing to change"),
            bytes => {
                let (chains, rules) = (counted(self.chains, "chain"), counted(self.rules, "rule"));
                write!(f, "{chains} and {rules} in {}", counted(bytes, "byte"))
            }
        }
    }
}

/// The [`Measure`](crate::Measure) of the number of our rules, by family and table.
pub const RULES: &str = "rules";
/// The [`Measure`](crate::Measure) of the number of rules that this sync wrote, by family and table.
pub const RULES_WRITTEN: &str = "rules_written";
/// The [`Measure`](crate::Measure) of changes that were refused, so that everything was compared.
pub const CHANGES_REFUSED: &str = "changes_refused";

impl From<Synced> for Summary {
    fn from(synced: Synced) -> Self {
        let is_full = synced.families.iter().any(|family| family.found != Found::Changed);
        let found = if is_full { Found::Compared } else { Found::Changed };
        let mut summary = Self::new(found, synced.to_string());
        summary.notices = synced.notices().collect();
        summary.faults = synced.faults().collect();
        let mut took = Duration::ZERO;
        for family in &synced.families {
            summary.batches += usize::from(family.bytes > 0);
            summary.messages += family.chains + family.rules;
            summary.bytes += family.bytes;
            took += family.kernel;
            let of = Some(family.family);
            summary = summary
                .count("chain", Verb::Any, family.chains)
                .count("rule", Verb::Any, family.rules)
                .measure_of(CHANGES_REFUSED, of, None, family.was_refused.into())
                .measure_of(RULES, of, Some("filter"), family.total.filter as u64)
                .measure_of(RULES, of, Some("nat"), family.total.nat as u64)
                .measure_of(RULES_WRITTEN, of, Some("filter"), family.written.filter as u64)
                .measure_of(RULES_WRITTEN, of, Some("nat"), family.written.nat as u64);
        }
        summary.is_unchanged = summary.bytes == 0;
        summary.kernel = Some(took);
        summary
    }
}
