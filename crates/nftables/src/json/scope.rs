//! What is known while a document is read: the table that a rule is in, and the sets that were added before.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};

use crate::family::Family;
use crate::name::Name;
use crate::object::{Set, SetId, TableId};
use crate::text::parse::ParseOptions;

/// What the whole document refers to.
pub(super) struct Scope<'a> {
    pub(super) options: &'a ParseOptions<'a>,
    /// The sets that the document itself adds, by table and name: kernel and nft do not care whether one is
    /// called a map.
    sets: HashMap<(TableId, Name), Set>,
    /// The sets that the options knew, for the transaction: constants get their types from them.
    found: RefCell<HashMap<(TableId, Name), Set>>,
    /// The sets that the document adds, and that could not be read.
    wrong: HashSet<(TableId, Name)>,
}

impl<'a> Scope<'a> {
    pub(super) fn new(options: &'a ParseOptions<'a>) -> Self {
        Self { options, sets: HashMap::new(), found: RefCell::default(), wrong: HashSet::new() }
    }

    /// Notes a set that the document adds.
    pub(super) fn add(&mut self, set: &Set) {
        self.sets.insert((set.id.table.clone(), set.id.name.clone()), set.clone());
    }

    /// Notes a set that could not be read: what refers to it is not reported.
    pub(super) fn add_wrong(&mut self, table: TableId, name: Name) {
        self.wrong.insert((table, name));
    }

    /// Whether the document adds a set of this name that could not be read.
    pub(super) fn is_wrong(&self, table: &TableId, name: &Name) -> bool {
        !self.wrong.is_empty() && self.wrong.contains(&(table.clone(), name.clone()))
    }

    /// A set by its name: of the document, or one that the options know.
    pub(super) fn set(&self, table: &TableId, name: &Name) -> Option<Set> {
        if let Some(set) = self.sets.get(&(table.clone(), name.clone())) {
            return Some(set.clone());
        }
        let key = (table.clone(), name.clone());
        if let Some(set) = self.found.borrow().get(&key) {
            return Some(set.clone());
        }
        let find = self.options.sets?;
        let id = |map| SetId { table: table.clone(), name: name.clone(), map };
        let set = find(&id(false)).or_else(|| find(&id(true)))?;
        self.found.borrow_mut().insert(key, set.clone());
        Some(set)
    }

    /// Returns the sets that the options knew.
    pub(super) fn into_found(self) -> Vec<Set> {
        self.found.into_inner().into_values().collect()
    }
}

/// What is known in a rule.
#[derive(Clone, Copy)]
pub(super) struct Within<'a> {
    pub(super) scope: &'a Scope<'a>,
    pub(super) table: &'a TableId,
}

impl<'a> Within<'a> {
    pub(super) fn options(&self) -> &'a ParseOptions<'a> {
        self.scope.options
    }

    pub(super) fn max_mistakes(&self) -> usize {
        self.options().max_mistakes
    }

    /// Whether the document adds a set of this name that could not be read.
    pub(super) fn is_wrong(&self, name: &Name) -> bool {
        self.scope.is_wrong(self.table, name)
    }

    pub(super) fn family(&self) -> Family {
        self.table.family
    }

    pub(super) fn set(&self, name: &Name) -> Option<Set> {
        self.scope.set(self.table, name)
    }
}
