//! The end marker at key zero that nft sends with the first elements of a new interval set.
//!
//! To the kernel, an end without a start says nothing: what lies before the first interval is in none anyway.
//! Whoever compares two rulesets by their elements (`nft --debug=netlink`, a dump) sees it, however, so a set
//! that the transaction adds has it where nft gives it one: with the first elements that are added, unless an
//! interval of the transaction starts at zero.
//!
//! nft sends it to an existing set without elements too. That would take a dump of each set that elements are
//! added to.

use std::collections::{HashMap, HashSet};

use crate::apply::auto_merge::{as_set, merges};
use crate::family::Family;
use crate::object::element::{Form, needs_start};
use crate::object::{Set, SetId};
use crate::transaction::{Flush, Object, Operation, Target, Transaction};

/// A set that the transaction has created.
#[derive(Debug)]
struct New {
    /// Whether its elements are merged, so that all of them are sent with the last operation.
    merges: bool,
    /// The operations that the marker can be sent with.
    operations: Vec<usize>,
    /// Whether an interval starts at key zero.
    has_zero: bool,
}

/// Returns the indices of the operations whose elements follow a marker. Where elements are merged, these are
/// all operations on the set: only one of them adds something.
pub(crate) fn openings(transaction: &Transaction) -> HashSet<usize> {
    let (mut sets, mut found) = (HashMap::new(), HashSet::new());
    let mut close = |new: New| found.extend(new.operations.into_iter().filter(|_| !new.has_zero));
    for (index, operation) in transaction.operations().iter().enumerate() {
        match operation {
            // nft 1.0.6 gives it to none that `create` makes.
            Operation::Add(Object::Set(set)) => {
                if Form::of(set) == Form::Interval {
                    sets.entry(as_set(&set.id)).or_insert_with(|| New::of(set));
                }
            }
            Operation::Flush(Flush::Ruleset(family)) => {
                let gone = |id: &SetId, _: &mut New| *family == Family::UNSPEC || id.table.family == *family;
                sets.extract_if(gone).for_each(|(_, new)| close(new));
            }
            operation => match operation.deleted() {
                Some(Target::Set(set)) => sets.remove(&as_set(set)).into_iter().for_each(&mut close),
                Some(Target::Table(table)) => {
                    let gone = |id: &SetId, _: &mut New| id.table == *table;
                    sets.extract_if(gone).for_each(|(_, new)| close(new));
                }
                _ => note(&mut sets, index, operation),
            },
        }
    }
    sets.into_values().for_each(close);
    found
}

impl New {
    fn of(set: &Set) -> Self {
        Self { merges: merges(set), operations: Vec::new(), has_zero: false }
    }
}

/// Notes an operation on elements of a new set.
fn note(sets: &mut HashMap<SetId, New>, index: usize, operation: &Operation) {
    if sets.is_empty() {
        return;
    }
    let Some(elements) = operation.elements() else { return };
    let Some(new) = sets.get_mut(&as_set(&elements.set)) else { return };
    // `create` demands that nothing of what is sent exists; the set may have been there, with its marker.
    let adds = matches!(operation, Operation::Add(_)) && elements.list.iter().any(|e| !e.is_catch_all());
    if new.merges || (adds && new.operations.is_empty()) {
        new.operations.push(index);
    }
    new.has_zero |=
        !matches!(operation, Operation::Delete(_) | Operation::Destroy(_)) && !needs_start(&elements.list);
}
