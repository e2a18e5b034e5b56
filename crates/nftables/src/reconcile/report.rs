//! The result of a comparison.

use std::fmt;

use crate::error::Error;
use crate::object::{ChainId, SetId};
use crate::transaction::{Target, Transaction};

/// The changes that make the kernel's tables equal to the wanted ones.
///
/// It prints as a summary of the changes.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Difference {
    /// The operations; empty if the tables are equal.
    pub transaction: Transaction,
    /// The generation of the ruleset that was compared.
    pub generation: u32,
    /// The numbers of added objects.
    pub added: Counts,
    /// The numbers of deleted objects.
    pub deleted: Counts,
    /// The numbers of objects changed in place.
    pub changed: Counts,
    /// Objects that are replaced as a whole, because they cannot be changed in place. Their rules and
    /// elements, and those that refer to them, are counted as deleted and added.
    pub replaced: Vec<Replaced>,
    /// The sets that keep a size other than the wanted one
    /// ([`Options::keep_sizes`](super::Options::keep_sizes)), with that size.
    pub sizes: Vec<(SetId, u32)>,
    /// The chains that are flushed but not deleted ([`Options::empty_first`](super::Options::empty_first)).
    pub emptied: Vec<ChainId>,
}

/// Numbers of objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Counts {
    /// Tables.
    pub tables: usize,
    /// Chains.
    pub chains: usize,
    /// Rules.
    pub rules: usize,
    /// Sets and maps.
    pub sets: usize,
    /// Elements.
    pub elements: usize,
    /// Stateful objects.
    pub objects: usize,
    /// Flowtables.
    pub flowtables: usize,
}

impl std::ops::AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.tables += other.tables;
        self.chains += other.chains;
        self.rules += other.rules;
        self.sets += other.sets;
        self.elements += other.elements;
        self.objects += other.objects;
        self.flowtables += other.flowtables;
    }
}

/// An object that is replaced as a whole.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Replaced {
    /// The object: a table, a chain, a set, a stateful object or a flowtable.
    pub object: Target,
    /// The reason that it cannot be changed in place.
    pub reason: Reason,
}

/// The reason why an object cannot be changed in place.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// The comment differs.
    Comment,
    /// The flags differ.
    Flags,
    /// The type of a chain differs, or only one of the two is a base chain.
    ChainType,
    /// The hook of a chain differs.
    Hook,
    /// The priority of a chain or a flowtable differs.
    Priority,
    /// The type of the keys of a set differs.
    KeyType,
    /// The type of the values of a map differs.
    DataType,
    /// The size of a set differs.
    Size,
    /// The timeout or the garbage collection interval of a set differs.
    Timeout,
    /// The `policy` of a set differs.
    Policy,
    /// The statements of the elements of a set differ.
    Statements,
    /// The user data that nft stores with a set differs: its types, their byte order, `auto-merge`.
    Notes,
    /// The elements of a set with the flag `constant` differ.
    Constant,
    /// A set has elements that its types cannot represent.
    Elements,
    /// The configuration of a stateful object differs.
    Configuration,
    /// The flag `dormant` of a table differs, which the kernel does not change in one transaction with new
    /// base chains or devices.
    Dormant,
    /// The kernel refused to change the table in place.
    Refused(String),
}

impl Difference {
    pub(super) fn new(generation: u32) -> Self {
        Self {
            transaction: Transaction::new(),
            generation,
            added: Counts::default(),
            deleted: Counts::default(),
            changed: Counts::default(),
            replaced: Vec::new(),
            sizes: Vec::new(),
            emptied: Vec::new(),
        }
    }

    /// Returns whether the kernel's tables are equal to the wanted ones.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.transaction.is_empty()
    }

    /// Appends the changes of another table.
    pub(super) fn append(&mut self, part: Self) {
        let Self { transaction, generation: _, added, deleted, changed, replaced, sizes, emptied } = part;
        self.transaction.append(transaction);
        self.added += added;
        self.deleted += deleted;
        self.changed += changed;
        self.replaced.extend(replaced);
        self.sizes.extend(sizes);
        self.emptied.extend(emptied);
    }

    pub(super) fn replace(&mut self, object: impl Into<Target>, reason: Reason) {
        self.replaced.push(Replaced { object: object.into(), reason });
    }
}

impl Reason {
    pub(super) fn refused(error: &Error) -> Self {
        Self::Refused(error.to_string())
    }
}

/// Formats a summary:
/// `1 chain and 3 rules added, 2 rules deleted; set ip t s replaced: the type of its keys differs`.
impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str("nothing to change");
        }
        let verbs = [("added", &self.added), ("deleted", &self.deleted), ("changed", &self.changed)];
        let mut parts: Vec<String> = verbs
            .iter()
            .filter(|(_, counts)| **counts != Counts::default())
            .map(|(verb, counts)| format!("{counts} {verb}"))
            .collect();
        parts.extend(self.replaced.iter().map(ToString::to_string));
        parts.extend(self.emptied.iter().map(|chain| format!("chain {chain} emptied")));
        f.write_str(&parts.join("; "))
    }
}

/// Formats the numbers that are not zero: `1 chain, 3 rules`.
impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = [
            (self.tables, "table"),
            (self.chains, "chain"),
            (self.rules, "rule"),
            (self.sets, "set"),
            (self.elements, "element"),
            (self.objects, "object"),
            (self.flowtables, "flowtable"),
        ];
        let some = all.iter().filter(|(count, _)| *count > 0);
        let parts: Vec<_> = some
            .map(|(count, what)| format!("{count} {what}{}", if *count == 1 { "" } else { "s" }))
            .collect();
        f.write_str(&parts.join(", "))
    }
}

/// Formats the object with the reason: `set ip t s replaced: the type of its keys differs`.
impl fmt::Display for Replaced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} replaced: {}", self.object, self.reason)
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Comment => "its comment differs",
            Self::Flags => "its flags differ",
            Self::ChainType => "its type differs",
            Self::Hook => "its hook differs",
            Self::Priority => "its priority differs",
            Self::KeyType => "the type of its keys differs",
            Self::DataType => "the type of its values differs",
            Self::Size => "its size differs",
            Self::Timeout => "its timeout or garbage collection interval differs",
            Self::Policy => "its policy differs",
            Self::Statements => "what its elements carry differs",
            Self::Notes => "what nft notes with it differs",
            Self::Constant => "it is constant, and its elements differ",
            Self::Elements => "it has elements that its types cannot say",
            Self::Configuration => "its configuration differs",
            Self::Dormant => "it cannot become dormant or awake together with new base chains or devices",
            Self::Refused(error) => return write!(f, "the kernel refused to change it in place: {error}"),
        })
    }
}
