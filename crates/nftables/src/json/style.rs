//! How values are printed: for nft to read, or as nft lists them.

use std::ops::Deref;

use crate::family::Family;
use crate::wording::Wording;

/// The words, and the family of the table that they are in.
#[derive(Debug, Clone, Copy)]
pub(super) struct Style<'a> {
    pub(super) with: Wording<'a>,
    /// nft lists some of it by the family of its table; [`Family::UNSPEC`] where that is not known.
    pub(super) family: Family,
}

impl<'a> Style<'a> {
    /// As nft lists what is in a table of this family.
    pub(super) fn listed(with: Wording<'a>, family: Family) -> Self {
        Self { with, family }
    }

    /// The same for what new elements are to carry: nft lists no state of it.
    pub(super) fn for_new_elements(self) -> Self {
        Self { with: self.with.for_new_elements(), ..self }
    }
}

impl Style<'static> {
    /// For nft to read.
    pub(super) const SCRIPT: Self = Self { with: Wording::SCRIPT, family: Family::UNSPEC };
}

impl<'a> Deref for Style<'a> {
    type Target = Wording<'a>;

    fn deref(&self) -> &Wording<'a> {
        &self.with
    }
}
