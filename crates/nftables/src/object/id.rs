//! The ids of objects: what each is found by.
//!
//! All in one file, because that of a table makes those of what is in it, and they have its id.

use std::fmt;

use crate::expr::ObjectKind;
use crate::family::Family;
use crate::name::Name;

/// The id of a table: its family and its name.
///
/// ```
/// use sluicegate_nftables::{Family, TableId};
///
/// let table = TableId::new(Family::INET, "firewall".parse()?);
/// assert_eq!(table.chain("input".parse()?).to_string(), "inet firewall input");
/// assert_eq!(table.set("blocked".parse()?).to_string(), "inet firewall blocked");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TableId {
    /// The family.
    pub family: Family,
    /// The name.
    pub name: Name,
}

impl TableId {
    /// Creates the id of a table.
    #[must_use]
    pub fn new(family: Family, name: Name) -> Self {
        Self { family, name }
    }

    /// Returns the id of a chain in the table.
    #[must_use]
    pub fn chain(&self, name: Name) -> ChainId {
        ChainId { table: self.clone(), name }
    }

    /// Returns the id of a set in the table.
    #[must_use]
    pub fn set(&self, name: Name) -> SetId {
        SetId { table: self.clone(), name, map: false }
    }

    /// Returns the id of a map in the table.
    #[must_use]
    pub fn map(&self, name: Name) -> SetId {
        SetId { table: self.clone(), name, map: true }
    }

    /// Returns the id of a stateful object in the table.
    #[must_use]
    pub fn object(&self, kind: ObjectKind, name: Name) -> ObjectId {
        ObjectId { table: self.clone(), kind, name }
    }

    /// Returns the id of a flowtable in the table.
    #[must_use]
    pub fn flowtable(&self, name: Name) -> FlowtableId {
        FlowtableId { table: self.clone(), name }
    }
}

impl fmt::Display for TableId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.family, self.name)
    }
}

/// The id of a chain: its table and its name.
///
/// ```
/// use sluicegate_nftables::{Family, TableId, lang::Verdict};
///
/// let input = TableId::new(Family::INET, "firewall".parse()?).chain("input".parse()?);
/// let rule = input.rule().then(Verdict::Drop); // a rule of this chain
/// assert_eq!(rule.body().to_string(), "drop");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChainId {
    /// The table.
    pub table: TableId,
    /// The name.
    pub name: Name,
}

impl fmt::Display for ChainId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.table, self.name)
    }
}

/// The id of a set or a map: its table and its name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SetId {
    /// The table.
    pub table: TableId,
    /// The name.
    pub name: Name,
    /// Whether it is a map. The kernel makes no difference; nft's syntax does.
    pub map: bool,
}

impl fmt::Display for SetId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.table, self.name)
    }
}

/// The id of a flowtable: its table and its name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowtableId {
    /// The table.
    pub table: TableId,
    /// The name.
    pub name: Name,
}

impl fmt::Display for FlowtableId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.table, self.name)
    }
}

/// The id of a stateful object: its table, its kind and its name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectId {
    /// The table.
    pub table: TableId,
    /// The kind. Objects of different kinds can have the same name.
    pub kind: ObjectKind,
    /// The name.
    pub name: Name,
}

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.kind, self.table, self.name)
    }
}
