//! Tables (`enum nft_table_attributes`).

pub(crate) mod wire;

use std::fmt;

use crate::name::Comment;
use crate::object::TableId;
use crate::wire::flags::flags;

/// A table.
///
/// ```
/// use sluicegate_nftables::{Family, Table, TableId, Transaction};
///
/// let id = TableId::new(Family::INET, "firewall".parse()?);
/// let mut transaction = Transaction::new();
/// transaction.add(Table::new(id).comment("ours".parse()?));
/// assert_eq!(transaction.to_string(), "add table inet firewall { comment \"ours\" ; }\n");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Table {
    /// The identifier.
    pub id: TableId,
    /// Its flags.
    pub flags: TableFlags,
    /// Its comment.
    pub comment: Option<Comment>,
}

flags! {
    /// Flags of a table (`enum nft_table_flags`).
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub struct TableFlags: u32 {
        /// `dormant`: its base chains are not registered at their hooks.
        const DORMANT = 1;
        /// `owner`: it belongs to the socket that created it, and is deleted with that.
        const OWNER = 2;
        /// `persist`: it is not deleted with its owner. Since Linux 6.9.
        const PERSIST = 4;

        const _ = !0;
    }
}

impl Table {
    /// Creates a table without flags and comment.
    #[must_use]
    pub fn new(id: TableId) -> Self {
        Self { id, flags: TableFlags::empty(), comment: None }
    }

    /// Sets the comment.
    #[must_use]
    pub fn comment(mut self, comment: Comment) -> Self {
        self.comment = Some(comment);
        self
    }

    /// Sets the flags.
    #[must_use]
    pub fn flags(mut self, flags: TableFlags) -> Self {
        self.flags = flags;
        self
    }

    /// Returns nft's keywords for the flags.
    pub(crate) fn flag_names(&self) -> Vec<&'static str> {
        [(TableFlags::DORMANT, "dormant"), (TableFlags::OWNER, "owner"), (TableFlags::PERSIST, "persist")]
            .into_iter()
            .filter(|(flag, _)| self.flags.contains(*flag))
            .map(|(_, name)| name)
            .collect()
    }
}

/// Formats the argument of an nft command: `table ip t { comment "x" ; }`.
impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "table {}", self.id)?;
        let flags = self.flag_names();
        if flags.is_empty() && self.comment.is_none() {
            return Ok(());
        }
        f.write_str(" {")?;
        if let Some(comment) = &self.comment {
            write!(f, " comment {comment} ;")?;
        }
        if !flags.is_empty() {
            write!(f, " flags {} ;", flags.join(","))?;
        }
        f.write_str(" }")
    }
}
