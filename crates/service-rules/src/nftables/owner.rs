//! Finds the services that the objects of a transaction belong to, for error messages.

use std::collections::HashMap;

use sluicegate_nftables::{ChainId, Key, Object, Operation, SetId};

use sluicegate_services::ServiceName;

/// The services that chains, sets and elements of a plan belong to. Created by
/// [`Planner::owners`](super::Planner::owners).
#[derive(Debug, Default)]
pub struct Owners {
    pub(super) chains: HashMap<ChainId, ServiceName>,
    pub(super) sets: HashMap<SetId, ServiceName>,
    elements: HashMap<SetId, HashMap<(Key, Option<Key>), ServiceName>>,
}

impl Owners {
    /// Returns the service that an operation of a transaction belongs to, or one element of it. `None` for
    /// objects of no single service: tables, base chains, and chains that services share.
    #[must_use]
    pub fn of(&self, operation: &Operation, element: Option<usize>) -> Option<&ServiceName> {
        let object = match operation {
            Operation::Add(object) => object,
            Operation::Insert(rule) => return self.chains.get(&rule.chain),
            _ => return None,
        };
        match object {
            Object::Chain(chain) => self.chains.get(&chain.id),
            Object::Rule(rule) => self.chains.get(&rule.chain),
            Object::Set(set) => self.sets.get(&set.id),
            Object::Elements(elements) => {
                let wanted = elements.list.get(element?)?;
                self.elements.get(&elements.set)?.get(&(wanted.key(), wanted.end()))
            }
            _ => None,
        }
    }

    /// Records the service of an element; of several services, the first by name.
    pub(super) fn own_element(&mut self, set: SetId, low: Key, high: Option<Key>, service: &ServiceName) {
        let of_set = self.elements.entry(set).or_default();
        let owner = of_set.entry((low, high)).or_insert_with(|| service.clone());
        if service < owner {
            owner.clone_from(service);
        }
    }
}
