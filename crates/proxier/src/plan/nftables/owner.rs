//! Whose things are, for the account of an error.

use std::collections::HashMap;

use sluicegate_nftables::{ChainId, Key, Object, Operation, SetId};

use crate::model::ServiceName;

/// The services that chains, sets and elements of a plan belong to. Made by [`Planner::owners`](super::Planner::owners).
#[derive(Debug, Default)]
pub struct Owners {
    pub(super) chains: HashMap<ChainId, ServiceName>,
    pub(super) sets: HashMap<SetId, ServiceName>,
    elements: HashMap<SetId, HashMap<(Key, Option<Key>), ServiceName>>,
}

impl Owners {
    /// The service that an operation of a transaction is about; with the number of an element, that element's. None for what
    /// belongs to no service, or to several alike: tables, base chains, chains that services share.
    #[must_use]
    pub fn of(&self, operation: &Operation, element: Option<usize>) -> Option<&ServiceName> {
        let Operation::Add(object) = operation else { return None };
        match object {
            Object::Chain(chain) => self.chains.get(&chain.id),
            Object::Rule(rule) => self.chains.get(&rule.chain),
            Object::Set(set) => self.sets.get(&set.id),
            Object::Elements(elements) => {
                let wanted = elements.list.get(element?)?;
                self.elements.get(&elements.set)?.get(&(*wanted.key(), wanted.end().copied()))
            }
            _ => None,
        }
    }

    /// Notes whose an element is: of several services, the first by name.
    pub(super) fn own_element(&mut self, set: SetId, low: Key, high: Option<Key>, service: &ServiceName) {
        let of_set = self.elements.entry(set).or_default();
        let owner = of_set.entry((low, high)).or_insert_with(|| service.clone());
        if service < owner {
            owner.clone_from(service);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::uniform_cluster;
    use crate::plan::nftables::{Layout, Planner, Settings};

    #[test]
    fn what_has_the_name_of_a_service_is_its_own() {
        let cluster = uniform_cluster(3, 2);
        let settings = Settings { layout: Layout::Chains, ..Settings::default() };
        let mut planner = Planner::new(&settings, &cluster, None).unwrap();
        let owners = planner.owners();
        let mut owned = 0;
        for operation in planner.script().operations() {
            let chain = match operation {
                Operation::Add(Object::Chain(chain)) => &chain.id.name,
                Operation::Add(Object::Rule(rule)) => &rule.chain.name,
                _ => continue,
            };
            // kube-proxy's names say the service: `service-AXK6CI2C-demo/web/tcp/http`.
            let is_own = owners.of(operation, None).is_some_and(|owner| chain.contains(owner.as_str()));
            assert_eq!(is_own, chain.contains('/'), "{chain}");
            owned += usize::from(chain.contains('/'));
        }
        assert_eq!(owned, 6, "a chain of each service, and its rule");
    }
}
