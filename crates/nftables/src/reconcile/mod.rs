//! Compares wanted tables with the kernel's, and computes the smallest transaction that makes them equal.
//!
//! A program that maintains tables in the kernel describes their wanted content as values
//! ([`TableContent`]), built directly or from a transaction that creates them
//! ([`Transaction::into_content`](crate::Transaction::into_content)). [`sync`] makes the kernel's tables
//! equal to them and does not touch objects that are equal already: unchanged rules keep their handles and
//! counters, sets their elements, objects their counts. [`difference`] computes the transaction without
//! sending it.
//!
//! ```
//! use sluicegate_nftables::fake::Fake;
//! use sluicegate_nftables::lang::{Match, Payload, Verdict};
//! use sluicegate_nftables::reconcile::{self, Options};
//! use sluicegate_nftables::{Chain, ChainType, Family, Hook, Port, Priority, Table, TableContent, TableId};
//!
//! fn wanted(ports: &[u16]) -> Result<TableContent, Box<dyn std::error::Error>> {
//!     let input = TableId::new(Family::INET, "guard".parse()?).chain("input".parse()?);
//!     let close = |port| input.rule().then(Match::new(Payload::TCP_DPORT, Port(port))).then(Verdict::Drop);
//!     let rules: Vec<_> = ports.iter().copied().map(close).collect();
//!     let chain = Chain::base(input.clone(), ChainType::Filter, Hook::Input, Priority::FILTER);
//!     Ok(TableContent::new(Table::new(input.table)).chain(chain, rules))
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut kernel = Fake::new(); // or a socket
//! reconcile::sync(&mut kernel, &[wanted(&[22, 80])?], &Options::default())?;
//! let synced = reconcile::sync(&mut kernel, &[wanted(&[22, 23, 80])?], &Options::default())?;
//! let text = synced.difference.transaction.to_string();
//! assert_eq!(text, "insert rule inet guard input position 3 tcp dport 23 drop\n");
//! # Ok(())
//! # }
//! ```
//!
//! # What is compared
//!
//! Rules are compared by the expressions that the kernel runs, including the values it fills in itself, by
//! the content of the sets and chains that belong to a rule, and by their comments. The rules that stay are
//! found by the longest common subsequence, so that as many as possible stay. Elements are compared by their
//! bytes. State is not compared: counters, the used part of a quota, the remaining time of an element, and
//! elements that packets have added to sets with the flag `dynamic`.
//!
//! # What cannot be changed in place
//!
//! Where the kernel cannot change an object in place (the type of a set, the hook of a chain, any comment),
//! the whole object is replaced in the same transaction, together with the rules and elements that refer to
//! it; where it cannot change a table, the whole table. [`Difference::replaced`] lists each replaced object
//! with the reason. A replaced object loses its state, except for the counts of counters and quotas, and for
//! the elements that packets have added to a set whose types stay.
//!
//! # What is not wanted
//!
//! Unwanted objects in a wanted table are deleted, and tables that are not wanted stay, unless
//! [`Options::keep`] decides otherwise. Every object that a remaining object refers to stays as well.

mod body;
mod chain;
mod elements;
mod foreign;
mod kernel;
mod members;
mod object;
mod plan;
mod report;
mod rules;
mod sequence;
mod set;
mod sync;
mod table;
mod wanted;

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::fmt;

use crate::apply::auto_merge::{joined, merges};
use crate::error::{ContentProblem, Error};
use crate::listing::TableContent;
use crate::object::TableId;
use crate::read;
use crate::transaction::{Operation, Target};
use kernel::Kernel;
pub use report::{Counts, Difference, Reason, Replaced};
pub use sync::{Synced, sync, sync_with};

/// How wanted tables are compared with the kernel's.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct Options<'a> {
    /// Whether an unwanted object in the kernel stays. By default tables stay, and everything else is
    /// deleted.
    ///
    /// ```
    /// use sluicegate_nftables::reconcile::{Foreign, Options};
    ///
    /// // Rules of others, which the comments of ours tell apart, and tables of others stay.
    /// let keep = |foreign: Foreign<'_>| match foreign {
    ///     Foreign::Rule(rule) => rule.comment().as_deref() != Some("ours"),
    ///     Foreign::Table(_) => true,
    ///     _ => false,
    /// };
    /// let options = Options::default().keep(&keep);
    /// # let _ = options;
    /// ```
    pub keep: &'a (dyn Fn(Foreign<'_>) -> bool + Sync),
    /// Whether a set keeps the size that it has in the kernel as long as the wanted elements fit.
    pub keep_sizes: bool,
    /// Whether the size, the timeout and the garbage collection interval of a set are changed in place.
    /// Linux before 6.6 accepts a new size without effect, and before 6.2 also new times. Without this the
    /// set is replaced.
    pub update_sets: bool,
    /// Whether a chain that is to be deleted is only flushed if deleted elements refer to it; the next
    /// comparison deletes it.
    ///
    /// Linux before 6.2 counts the references of deleted elements for a while, and refuses to delete the
    /// chain in the same transaction.
    pub empty_first: bool,
}

impl<'a> Options<'a> {
    /// Options that keep every unwanted object: missing objects are added, and differing ones changed.
    #[must_use]
    pub fn keep_all() -> Self {
        Self { keep: &|_| true, ..Self::default() }
    }

    /// Sets which unwanted objects stay ([`keep`](Self::keep)).
    #[must_use]
    pub fn keep(mut self, keep: &'a (dyn Fn(Foreign<'_>) -> bool + Sync)) -> Self {
        self.keep = keep;
        self
    }

    /// Lets a set keep the size that it has in the kernel as long as the wanted elements fit.
    #[must_use]
    pub fn keep_sizes(mut self) -> Self {
        self.keep_sizes = true;
        self
    }

    /// Sets whether a set is changed in place ([`update_sets`](Self::update_sets)) instead of being replaced.
    #[must_use]
    pub fn update_sets(mut self, update: bool) -> Self {
        self.update_sets = update;
        self
    }

    /// Only flushes a chain that deleted elements refer to; the next comparison deletes it
    /// ([`empty_first`](Self::empty_first)).
    #[must_use]
    pub fn empty_first(mut self) -> Self {
        self.empty_first = true;
        self
    }
}

/// Deletes every unwanted object in the wanted tables, and leaves other tables alone.
impl Default for Options<'_> {
    fn default() -> Self {
        let keep = &|foreign: Foreign<'_>| matches!(foreign, Foreign::Table(_));
        Self { keep, keep_sizes: false, update_sets: true, empty_first: false }
    }
}

impl fmt::Debug for Options<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("keep_sizes", &self.keep_sizes)
            .field("update_sets", &self.update_sets)
            .field("empty_first", &self.empty_first)
            .finish_non_exhaustive()
    }
}

/// An object in the kernel that is not wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Foreign<'k> {
    /// A table that is not among the wanted ones. All other variants are objects in a wanted table.
    Table(&'k read::Table),
    /// A chain; its rules are deleted or stay with it.
    Chain(&'k read::Chain),
    /// A rule of a wanted chain.
    Rule(&'k read::Rule),
    /// A set or a map; its elements are deleted or stay with it.
    Set(&'k read::Set),
    /// An element of a wanted set. For an interval, its start.
    Element(&'k read::Set, &'k read::Element),
    /// A stateful object.
    Object(&'k read::Object),
    /// A flowtable.
    Flowtable(&'k read::Flowtable),
}

/// Compares wanted tables with the kernel's, and returns the changes that make them equal.
///
/// `kernel` is the result of [`read::ruleset`]: for all families and tables, or at least for the wanted
/// ones. The transaction must be applied to the same generation
/// ([`ApplyOptions::generation`](crate::ApplyOptions::generation)), as [`sync`] does.
///
/// # Errors
/// [`Error::Content`] for a rule that cannot be sent, and where two wanted objects have the same name;
/// [`Error::Netlink`] for an object that does not fit into a message.
pub fn difference(
    wanted: &[TableContent],
    kernel: &read::Ruleset,
    options: &Options<'_>,
) -> Result<Difference, Error> {
    compare(wanted, kernel, options, &HashMap::new())
}

/// Joins the elements of sets with `auto-merge`, as the kernel has them once they were added.
fn merged(content: &TableContent) -> Cow<'_, TableContent> {
    let mut merged = Cow::Borrowed(content);
    for (index, (_, elements)) in content.sets.iter().enumerate().filter(|(_, (set, _))| merges(set)) {
        let joined = joined(elements);
        if joined != *elements
            && let Some((_, elements)) = merged.to_mut().sets.get_mut(index)
        {
            *elements = joined;
        }
    }
    merged
}

/// Does the same as [`difference`], but replaces the given tables as a whole, each for the given reason.
fn compare(
    wanted: &[TableContent],
    ruleset: &read::Ruleset,
    options: &Options<'_>,
    whole: &HashMap<TableId, Reason>,
) -> Result<Difference, Error> {
    let mut tables = Kernel::tables(ruleset);
    let mut out = Difference::new(ruleset.generation);
    let mut seen = HashSet::new();
    let wanted: Vec<_> = wanted.iter().map(merged).collect();
    for content in wanted.iter().map(AsRef::as_ref) {
        let id = &content.table.id;
        if !seen.insert(id) {
            return Err(Error::content(format_args!("table {id}"), ContentProblem::Twice));
        }
        let reason = whole.get(id).cloned();
        match tables.remove(&(id.family, &id.name)) {
            Some(kernel) => table::compare(content, &kernel, options, reason, &mut out)?,
            None => table::create(content, &mut out)?,
        }
    }
    let foreign = ruleset.tables.iter().filter(|table| tables.contains_key(&(table.family, &table.name)));
    for table in foreign.filter(|table| !(options.keep)(Foreign::Table(table))) {
        let id = TableId::new(table.family, table.name.clone());
        out.transaction.push(Operation::Delete(Target::Table(id)));
        out.deleted.tables += 1;
    }
    // Everything was compared with the elements that the kernel has, so there is nothing left to merge.
    out.transaction.set_exact();
    Ok(out)
}
