//! Resets counters and quotas when they are listed with a reset request.

use std::collections::HashSet;

use crate::expr::{Expr, ObjectKind};
use crate::fake::object::reset_state;
use crate::fake::set::Set;
use crate::fake::state::{Chain, Object, Rule, State, Table};
use crate::fake::store::Element;

/// A listed object that may contain counters, and its table.
#[derive(Debug, Clone)]
pub(super) struct Counted {
    table: u64,
    place: Place,
}

#[derive(Debug, Clone)]
enum Place {
    /// The handle of a chain and the number of a rule.
    Rule(u64, u64),
    /// The handle of a set and the numbers of its elements.
    Elements(u64, HashSet<u64>),
    Object(u64),
}

impl Counted {
    pub(super) fn rule(table: &Table, chain: &Chain, rule: &Rule) -> Self {
        Self { table: table.handle, place: Place::Rule(chain.handle, rule.number) }
    }

    pub(super) fn elements(table: &Table, set: &Set, elements: &[&Element]) -> Self {
        let numbers = elements.iter().map(|element| element.number).collect();
        Self { table: table.handle, place: Place::Elements(set.handle, numbers) }
    }

    pub(super) fn object(table: &Table, object: &Object) -> Self {
        Self { table: table.handle, place: Place::Object(object.handle) }
    }
}

/// Resets all of these. This does not change the generation.
pub(super) fn all(state: &mut State, counted: &[Counted]) {
    for Counted { table, place } in counted {
        let Some(table) = state.tables.iter_mut().find(|stored| stored.handle == *table) else { continue };
        match place {
            Place::Rule(chain, number) => {
                let Ok(chain) = table.chain_mut(*chain) else { continue };
                let rules = chain.rules.iter_mut().filter(|rule| rule.number == *number);
                rules.flat_map(|rule| &mut rule.exprs).for_each(|stored| one(&mut stored.expr));
            }
            Place::Elements(set, numbers) => {
                let Ok(set) = table.set_mut(*set) else { continue };
                set.store.exprs_of(numbers).for_each(one);
            }
            Place::Object(handle) => {
                let objects = table.objects.iter_mut().filter(|object| object.handle == *handle);
                objects.for_each(|object| reset_state(ObjectKind(object.kind), &mut object.data));
            }
        }
    }
}

/// Resets the state of an expression and of those nested in it.
pub(super) fn one(expr: &mut Expr) {
    match expr {
        Expr::Counter(counter) => (counter.bytes, counter.packets) = (Some(0), Some(0)),
        Expr::Quota(quota) => quota.consumed = Some(0),
        Expr::Dynset(dynset) => {
            dynset.expr.as_deref_mut().into_iter().chain(&mut dynset.exprs).for_each(one);
        }
        _ => {}
    }
}
