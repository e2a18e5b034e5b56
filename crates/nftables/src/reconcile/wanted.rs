//! The wanted content of a table, indexed by name, with its rules lowered to the kernel's expressions.

use std::collections::{HashMap, HashSet};
use std::fmt::Display;
use std::hash::Hash;

use crate::check::KnownSets;
use crate::compile::lower::{Before, Intervals, Lowered, lower};
use crate::error::{ContentProblem, Error};
use crate::expr::ObjectKind;
use crate::listing::TableContent;
use crate::name::Name;
use crate::object::{
    Chain, Element, Flowtable, Rule, Set, SetData, SetFlags, SetId, StatefulObject, TableId,
};
use crate::reconcile::kernel::{Kernel, Ref, refs_of_expr};

/// The wanted content of a table, indexed by name.
pub(super) struct Wanted<'w> {
    pub(super) content: &'w TableContent,
    pub(super) chains: HashMap<&'w Name, &'w (Chain, Vec<Rule>)>,
    pub(super) sets: HashMap<&'w Name, &'w (Set, Vec<Element>)>,
    pub(super) objects: HashMap<(ObjectKind, &'w Name), &'w StatefulObject>,
    pub(super) flowtables: HashMap<&'w Name, &'w Flowtable>,
    known: KnownSets<'w>,
}

impl<'w> Wanted<'w> {
    /// Indexes the content of a table by name.
    pub(super) fn new(content: &'w TableContent) -> Result<Self, Error> {
        let table = &content.table.id;
        let mut wanted = Self {
            content,
            chains: HashMap::new(),
            sets: HashMap::new(),
            objects: HashMap::new(),
            flowtables: HashMap::new(),
            known: KnownSets::new(),
        };
        for chain in &content.chains {
            let (Chain { id, .. }, rules) = chain;
            is_in(table, &id.table, format_args!("chain {id}"))?;
            if let Some(rule) = rules.iter().find(|rule| rule.chain != *id) {
                let place = ContentProblem::Elsewhere(format!("chain {id}"));
                return Err(Error::content(rule, place));
            }
            once(&mut wanted.chains, &id.name, chain, format_args!("chain {id}"))?;
        }
        for set in &content.sets {
            let id = &set.0.id;
            let word = set.0.word();
            is_in(table, &id.table, format_args!("{word} {id}"))?;
            once(&mut wanted.sets, &id.name, set, format_args!("{word} {id}"))?;
            wanted.known.insert(id, &set.0);
        }
        for object in &content.objects {
            is_in(table, &object.id.table, &object.id)?;
            once(&mut wanted.objects, (object.id.kind, &object.id.name), object, &object.id)?;
        }
        for flowtable in &content.flowtables {
            let id = &flowtable.id;
            is_in(table, &id.table, format_args!("flowtable {id}"))?;
            once(&mut wanted.flowtables, &id.name, flowtable, format_args!("flowtable {id}"))?;
        }
        Ok(wanted)
    }

    /// Returns the existing interval sets that rules may use although they are not wanted.
    pub(super) fn intervals(&self, kernel: &Kernel<'_>) -> Intervals {
        let table = &self.content.table.id;
        let foreign = kernel.sets.iter().map(|(set, _)| set).filter(|set| !self.sets.contains_key(&set.name));
        let intervals = foreign.filter(|set| set.flags.contains(SetFlags::INTERVAL));
        intervals.map(|set| SetId { map: false, ..table.set(set.name.clone()) }).collect()
    }

    /// Lowers a rule to the kernel's expressions.
    pub(super) fn lower(&self, rule: &Rule, intervals: &Intervals) -> Result<Lowered, Error> {
        let lowered = lower(&self.content.table.id, &rule.statements.read(), &self.known, intervals, &mut 0);
        lowered.map_err(|refused| {
            let rule = Rule { handle: None, position: None, index: None, ..rule.clone() };
            Error::content(rule, ContentProblem::Statement(Box::new(refused.cause)))
        })
    }

    /// Returns whether an object with this name is wanted.
    pub(super) fn has(&self, reference: Ref<'_>) -> bool {
        match reference {
            Ref::Chain(name) => self.chains.contains_key(name),
            Ref::Set(name) => self.sets.contains_key(name),
            Ref::Object(kind, name) => self.objects.contains_key(&(kind, name)),
            Ref::Flowtable(name) => self.flowtables.contains_key(name),
        }
    }
}

/// Calls `found` with each object that a lowered rule refers to.
pub(super) fn refs_of_lowered<'l>(lowered: &'l Lowered, found: &mut dyn FnMut(Ref<'l>)) {
    lowered.exprs.iter().for_each(|expr| refs_of_expr(expr, found));
    for before in &lowered.before {
        match before {
            Before::Set(own) => own.elements.iter().for_each(|e| refs_of_wanted_element(&own.set, e, found)),
            Before::Rule { exprs, .. } => exprs.iter().for_each(|expr| refs_of_expr(expr, found)),
            Before::Chain(_) => {}
        }
    }
}

/// Calls `found` with each object that a wanted element refers to.
pub(super) fn refs_of_wanted_element<'e>(set: &Set, element: &'e Element, found: &mut dyn FnMut(Ref<'e>)) {
    if let Some(chain) = element.target() {
        found(Ref::Chain(chain));
    }
    if let (Some(name), Some(SetData::Object(kind))) = (element.object_name(), &set.data) {
        found(Ref::Object(*kind, name));
    }
}

fn is_in(table: &TableId, named: &TableId, object: impl Display) -> Result<(), Error> {
    if named == table {
        return Ok(());
    }
    Err(Error::content(object, ContentProblem::Elsewhere(format!("table {table}"))))
}

/// Inserts an object, and fails if another one has the same name.
fn once<K: Eq + Hash, V>(
    all: &mut HashMap<K, V>,
    key: K,
    value: V,
    object: impl Display,
) -> Result<(), Error> {
    match all.insert(key, value) {
        None => Ok(()),
        Some(_) => Err(Error::content(object, ContentProblem::Twice)),
    }
}

/// References to objects.
pub(super) type Refs<'a> = HashSet<Ref<'a>>;
