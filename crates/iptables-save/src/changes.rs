//! Changes to the rules that are there: input of `iptables-restore --noflush`.

use std::fmt;

use crate::{Save, Table};

/// Input of `iptables-restore --noflush`: it changes the chains that it names and leaves the others alone.
///
/// [`diff`](crate::diff) returns it. Restored without `--noflush`, the same text would delete every chain
/// that it does not name, so it has a type of its own: `restore::Tool::apply` takes it,
/// `restore::Tool::restore` does not.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Changes<'a> {
    save: Save<'a>,
}

impl<'a> Changes<'a> {
    /// Returns the lines of `save` as changes to what is there.
    #[must_use]
    pub fn from_save(save: Save<'a>) -> Self {
        Self { save }
    }

    /// Returns whether there is nothing to change.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.save.tables().all(|table| table.entries.is_empty())
    }

    /// Returns the lines, as a tree.
    #[must_use]
    pub fn as_save(&self) -> &Save<'a> {
        &self.save
    }

    /// Returns the lines, as a tree to be changed.
    pub fn as_save_mut(&mut self) -> &mut Save<'a> {
        &mut self.save
    }

    /// Returns the lines, as a tree, which no longer says how it is to be restored.
    #[must_use]
    pub fn into_save(self) -> Save<'a> {
        self.save
    }

    /// Returns the text, as [`Save::to_bytes`] does.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        self.save.to_bytes()
    }

    /// Returns the tables that are changed, in order.
    pub fn tables(&self) -> impl Iterator<Item = &Table<'a>> {
        self.save.tables()
    }
}

impl fmt::Display for Changes<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.save.fmt(f)
    }
}
