//! Tables (`enum nft_table_attributes`).

use std::fmt;

use bitflags::bitflags;
use sluicegate_netlink::attr::Writer;

use crate::expr::ObjectKind;
use crate::family::Family;
use crate::name::{Comment, Name};
use crate::object::userdata;
use crate::object::{ChainId, FlowtableId, ObjectId, SetId};

/// What names a table: its family and its name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TableId {
    /// The family.
    pub family: Family,
    /// The name.
    pub name: Name,
}

impl TableId {
    /// Names a table.
    #[must_use]
    pub fn new(family: Family, name: Name) -> Self {
        Self { family, name }
    }

    /// Names a chain in it.
    #[must_use]
    pub fn chain(&self, name: Name) -> ChainId {
        ChainId { table: self.clone(), name }
    }

    /// Names a set in it.
    #[must_use]
    pub fn set(&self, name: Name) -> SetId {
        SetId { table: self.clone(), name, map: false }
    }

    /// Names a map in it.
    #[must_use]
    pub fn map(&self, name: Name) -> SetId {
        SetId { table: self.clone(), name, map: true }
    }

    /// Names a stateful object in it.
    #[must_use]
    pub fn object(&self, kind: ObjectKind, name: Name) -> ObjectId {
        ObjectId { table: self.clone(), kind, name }
    }

    /// Names a flowtable in it.
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

/// A table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    /// What names it.
    pub id: TableId,
    /// Its flags.
    pub flags: TableFlags,
    /// Its comment.
    pub comment: Option<Comment>,
}

bitflags! {
    /// Flags of a table (`enum nft_table_flags`).
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub struct TableFlags: u32 {
        /// `dormant`: its base chains are not hooked in.
        const DORMANT = 1;
        /// `owner`: it belongs to the socket that made it, and goes with it.
        const OWNER = 2;
        /// `persist`: it stays when its owner goes. Since Linux 6.9.
        const PERSIST = 4;

        const _ = !0;
    }
}

impl Table {
    /// A table without flags and comment.
    #[must_use]
    pub fn new(id: TableId) -> Self {
        Self { id, flags: TableFlags::empty(), comment: None }
    }

    /// With a comment.
    #[must_use]
    pub fn comment(mut self, comment: Comment) -> Self {
        self.comment = Some(comment);
        self
    }

    /// With these flags.
    #[must_use]
    pub fn flags(mut self, flags: TableFlags) -> Self {
        self.flags = flags;
        self
    }

    pub(crate) fn encode(&self, w: &mut Writer<'_>) {
        w.put_str(NFTA_TABLE_NAME, &self.id.name);
        w.put_be32(NFTA_TABLE_FLAGS, self.flags.bits());
        if let Some(comment) = &self.comment {
            w.put(NFTA_TABLE_USERDATA, &userdata::comment(userdata::TABLE_COMMENT, comment));
        }
    }

    /// What its text says in `flags`.
    pub(crate) fn flag_names(&self) -> Vec<&'static str> {
        [(TableFlags::DORMANT, "dormant"), (TableFlags::OWNER, "owner"), (TableFlags::PERSIST, "persist")]
            .into_iter()
            .filter(|(flag, _)| self.flags.contains(*flag))
            .map(|(_, name)| name)
            .collect()
    }
}

/// As nft's commands say it: `table ip t { comment "x" ; }`.
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

pub(crate) const NFTA_TABLE_NAME: u16 = 1;
const NFTA_TABLE_FLAGS: u16 = 2;
const NFTA_TABLE_USERDATA: u16 = 6;
