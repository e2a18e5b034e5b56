//! Judges a tree for its place: what a map, a set or a statement takes.

pub(crate) mod constants;
pub(crate) mod context;
pub(crate) mod elements;
mod error;
pub(crate) mod judge;
mod objects;
pub(crate) mod type_check;

pub use error::LowerError;

use std::collections::HashMap;

use crate::name::Name;
use crate::object::set::known;
use crate::object::{Set, SetId, TableId};

/// The sets whose definition is known, by id.
pub(crate) type KnownSets<'a> = HashMap<&'a SetId, &'a Set>;

/// What the names in a rule refer to, as far as that is known.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Definitions<'a> {
    /// The table of the rule.
    pub(crate) table: &'a TableId,
    pub(crate) sets: &'a KnownSets<'a>,
}

impl<'a> Definitions<'a> {
    /// Returns a named set or map, if its definition is known.
    pub(crate) fn set(self, name: &Name) -> Option<&'a Set> {
        known(self.sets, &self.table.set(name.clone()))
    }
}
