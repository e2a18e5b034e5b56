//! The result of a sync, independent of the mode.

use std::fmt;
use std::time::Duration;

use sluicegate_services::Family;

/// The result of one sync of any mode, for the log and the metrics of a run loop.
///
/// Objects and measures are named by strings, so that a mode from outside of this crate can have its own:
///
/// ```
/// use sluicegate_service_rules::{Found, Summary, Verb};
///
/// let summary = Summary::new(Found::Changed, "2 routes replaced")
///     .count("route", Verb::Added, 2)
///     .measure("routes", 40);
/// assert!(!summary.is_unchanged);
/// assert_eq!(summary.to_string(), "2 routes replaced");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Summary {
    /// How the sync found the difference.
    pub found: Found,
    /// Whether there was nothing to change.
    pub is_unchanged: bool,
    /// The numbers of objects added and deleted, by kind.
    pub changes: Vec<Change>,
    /// The number of batches, transactions or inputs that were sent.
    pub batches: usize,
    /// The number of messages or lines in them.
    pub messages: usize,
    /// Their size in bytes.
    pub bytes: usize,
    /// The time that the kernel or the tool took for them; `None` if it was not measured.
    pub kernel: Option<Duration>,
    /// Deviations from the expected state with their consequences, for the log.
    pub notices: Vec<String>,
    /// Deviations that leave traffic without a guard, as rules that this kernel cannot load. A run loop
    /// reports itself unhealthy until a sync has none.
    pub faults: Vec<String>,
    /// Numbers that are specific to the mode, for metrics.
    pub measures: Vec<Measure>,
    /// A description of the sync, in words.
    pub text: String,
}

/// How a sync found out what to change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Found {
    /// From the changes in the cluster since the last sync.
    #[default]
    Changed,
    /// By comparing with the state of the kernel.
    Compared,
    /// It was not computed: the existing objects, of another program or layout, were replaced as a whole.
    Replaced,
}

/// The number of objects of a kind that were changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Change {
    /// The kind, in the singular: `rule`, `element`.
    pub object: &'static str,
    /// The operation on them.
    pub verb: Verb,
    /// Their number.
    pub count: usize,
}

/// An operation on objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// They were added.
    Added,
    /// They were deleted.
    Deleted,
    /// They were added, changed or deleted, which is not distinguished.
    Any,
}

impl Verb {
    /// Returns the name in metrics: `added`, `deleted`, `any`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Deleted => "deleted",
            Self::Any => "any",
        }
    }
}

/// A number that is specific to a mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Measure {
    /// The name of the measure; each mode documents its own.
    pub name: &'static str,
    /// The family that it is measured for; `None` for both together.
    pub family: Option<Family>,
    /// A further label among measures of the same name: the table of rules, for example.
    pub part: Option<&'static str>,
    /// The number.
    pub value: u64,
}

impl Summary {
    /// Creates a summary without counts. It is [unchanged](Self::is_unchanged) until the first
    /// [`count`](Self::count) above zero.
    #[must_use]
    pub fn new(found: Found, text: impl Into<String>) -> Self {
        Self { found, is_unchanged: true, text: text.into(), ..Self::default() }
    }

    /// Adds the number of objects of a kind that were changed.
    #[must_use]
    pub fn count(mut self, object: &'static str, verb: Verb, count: usize) -> Self {
        self.is_unchanged &= count == 0;
        self.changes.push(Change { object, verb, count });
        self
    }

    /// Adds a measure for both families together.
    #[must_use]
    pub fn measure(self, name: &'static str, value: u64) -> Self {
        self.measure_of(name, None, None, value)
    }

    /// Adds a measure for a family and a part.
    #[must_use]
    pub fn measure_of(
        mut self,
        name: &'static str,
        family: Option<Family>,
        part: Option<&'static str>,
        value: u64,
    ) -> Self {
        self.measures.push(Measure { name, family, part, value });
        self
    }

    /// Returns `true` if everything was compared with the kernel or replaced.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.found != Found::Changed
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Returns a number with its noun: `1 rule`, `2 rules`.
#[cfg(any(feature = "nftables", feature = "iptables"))]
pub(crate) fn counted(number: usize, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}
