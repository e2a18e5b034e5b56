//! Computes the tables that a transaction creates.

use std::collections::{HashMap, HashSet};

use crate::error::{ContentProblem, Error};
use crate::family::Family;
use crate::key::Key;
use crate::listing::TableContent;
use crate::name::Name;
use crate::object::*;
use crate::transaction::{Flush, Object, Operation, Rename, Target, Transaction};

impl Transaction {
    /// Returns the tables that the transaction creates in an empty ruleset, as
    /// [`reconcile`](crate::reconcile) takes them.
    ///
    /// Operations that delete or flush what earlier operations added are taken into account, and so are
    /// changes of policies and flags by adding an object again. The checks of the kernel are not made.
    ///
    /// ```
    /// use sluicegate_nftables::lang::Verdict;
    /// use sluicegate_nftables::{Chain, Family, Table, TableId, Transaction};
    ///
    /// let chain = TableId::new(Family::INET, "guard".parse()?).chain("input".parse()?);
    /// let mut transaction = Transaction::new();
    /// transaction.add(Table::new(chain.table.clone())).add(Chain::new(chain.clone()));
    /// transaction.add(chain.rule().then(Verdict::Accept));
    /// let content = transaction.into_content()?;
    /// assert_eq!(content[0].to_string(), "table inet guard {\n\tchain input {\n\t\taccept\n\t}\n}\n");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Content`] if an operation refers to an object that the transaction has not created before, or
    /// to a handle.
    pub fn into_content(self) -> Result<Vec<TableContent>, Error> {
        let mut tables = Tables::default();
        for operation in self.into_operations() {
            tables.play(operation)?;
        }
        Ok(tables
            .order
            .into_iter()
            .filter_map(|id| tables.all.remove(&id))
            .map(|table| table.content)
            .collect())
    }
}

/// The tables so far.
#[derive(Default)]
struct Tables {
    order: Vec<TableId>,
    all: HashMap<TableId, TableBuilder>,
}

/// A table under construction, with the positions of its objects.
struct TableBuilder {
    content: TableContent,
    chains: HashMap<Name, usize>,
    sets: HashMap<Name, usize>,
}

impl Tables {
    fn play(&mut self, operation: Operation) -> Result<(), Error> {
        let title = format!("{} {}", operation.verb(), operation.object());
        let unknown = || Err(Error::content(&title, ContentProblem::Unknown));
        match operation {
            Operation::Add(object) | Operation::Create(object) => self.add(object, &title),
            Operation::Insert(rule) => self.rule(rule, true, &title),
            Operation::Replace(_) => unknown(),
            Operation::Rename(Rename { chain, name, .. }) => {
                let table = self.table(&chain.table, &title)?;
                let at = table.chain(&chain, &title)?;
                table.chains.remove(&chain.name);
                table.chains.insert(name.clone(), at);
                if let Some((chain, rules)) = table.content.chains.get_mut(at) {
                    chain.id.name = name;
                    rules.iter_mut().for_each(|rule| rule.chain = chain.id.clone());
                }
                Ok(())
            }
            Operation::Delete(target) => self.delete(target, true, &title),
            Operation::Destroy(target) => self.delete(target, false, &title),
            Operation::Flush(Flush::Ruleset(family)) => {
                let goes = |id: &TableId| family == Family::UNSPEC || id.family == family;
                self.order.retain(|id| !goes(id));
                self.all.retain(|id, _| !goes(id));
                Ok(())
            }
            Operation::Flush(Flush::Table(table)) => {
                let table = self.table(&table, &title)?;
                table.content.chains.iter_mut().for_each(|(_, rules)| rules.clear());
                Ok(())
            }
            Operation::Flush(Flush::Chain(chain)) => {
                self.rules(&chain, &title)?.clear();
                Ok(())
            }
            Operation::Flush(Flush::Set(set)) => {
                self.set(&set, &title)?.1.clear();
                Ok(())
            }
        }
    }

    fn add(&mut self, object: Object, title: &str) -> Result<(), Error> {
        match object {
            Object::Table(table) => {
                if let Some(before) = self.all.get_mut(&table.id) {
                    before.content.table.flags = table.flags;
                    return Ok(());
                }
                self.order.push(table.id.clone());
                let (chains, sets) = (HashMap::new(), HashMap::new());
                let id = table.id.clone();
                self.all.insert(id, TableBuilder { content: TableContent::new(table), chains, sets });
            }
            Object::Chain(chain) => {
                let table = self.table(&chain.id.table, title)?;
                if let Some(at) = table.chains.get(&chain.id.name).copied() {
                    if let Some((before, _)) = table.content.chains.get_mut(at) {
                        update_base(before, chain.base);
                    }
                    return Ok(());
                }
                table.chains.insert(chain.id.name.clone(), table.content.chains.len());
                table.content.chains.push((chain, Vec::new()));
            }
            Object::Rule(rule) => self.rule(rule, false, title)?,
            Object::Set(set) => {
                let table = self.table(&set.id.table, title)?;
                if !table.sets.contains_key(&set.id.name) {
                    table.sets.insert(set.id.name.clone(), table.content.sets.len());
                    table.content.sets.push((*set, Vec::new()));
                }
            }
            Object::Elements(elements) => self.set(&elements.set, title)?.1.extend(elements.list),
            Object::Stateful(object) => {
                let objects = &mut self.table(&object.id.table, title)?.content.objects;
                match objects.iter_mut().find(|before| before.id == object.id) {
                    Some(before) => before.config = object.config,
                    None => objects.push(*object),
                }
            }
            Object::Flowtable(flowtable) => {
                let flowtables = &mut self.table(&flowtable.id.table, title)?.content.flowtables;
                match flowtables.iter_mut().find(|before| before.id == flowtable.id) {
                    Some(before) => {
                        before.flags = flowtable.flags;
                        extend(&mut before.devices, flowtable.devices);
                    }
                    None => flowtables.push(flowtable),
                }
            }
        }
        Ok(())
    }

    fn rule(&mut self, rule: Rule, insert: bool, title: &str) -> Result<(), Error> {
        if rule.position.is_some() {
            return Err(Error::content(title, ContentProblem::Unknown));
        }
        let rules = self.rules(&rule.chain, title)?;
        let index = rule.index.map(|index| usize::try_from(index).unwrap_or(usize::MAX));
        if index.is_some_and(|index| index >= rules.len()) {
            return Err(Error::content(title, ContentProblem::Unknown));
        }
        let at = match (insert, index) {
            (false, index) => index.map_or(rules.len(), |index| index + 1),
            (true, index) => index.unwrap_or(0),
        };
        rules.insert(at, Rule { handle: None, index: None, ..rule });
        Ok(())
    }

    /// Deletes an object. If `must` is set, it is an error if the object does not exist.
    fn delete(&mut self, target: Target, must: bool, title: &str) -> Result<(), Error> {
        let found = match target {
            Target::Table(id) => {
                self.order.retain(|table| *table != id);
                self.all.remove(&id).is_some()
            }
            Target::Chain(id) => self.all.get_mut(&id.table).is_some_and(|table| {
                let at = table.chains.remove(&id.name);
                at.is_some_and(|at| {
                    table.content.chains.remove(at);
                    table.chains.values_mut().filter(|other| **other > at).for_each(|other| *other -= 1);
                    true
                })
            }),
            Target::Set(id) => self.all.get_mut(&id.table).is_some_and(|table| {
                let at = table.sets.remove(&id.name);
                at.is_some_and(|at| {
                    table.content.sets.remove(at);
                    table.sets.values_mut().filter(|other| **other > at).for_each(|other| *other -= 1);
                    true
                })
            }),
            Target::Elements(elements) => {
                let keys: HashSet<(Key, Option<Key>)> =
                    elements.list.iter().map(|element| (element.key(), element.end())).collect();
                let list = &mut self.set(&elements.set, title)?.1;
                let before = list.len();
                list.retain(|element| !keys.contains(&(element.key(), element.end())));
                before - list.len() >= keys.len()
            }
            Target::Stateful(id) => self.all.get_mut(&id.table).is_some_and(|table| {
                table.content.objects.extract_if(.., |object| object.id == id).count() > 0
            }),
            Target::Flowtable(id) => self.all.get_mut(&id.table).is_some_and(|table| {
                table.content.flowtables.extract_if(.., |flowtable| flowtable.id == id).count() > 0
            }),
            Target::Rule(_) | Target::Handle(_) => false,
            Target::Devices(HookDevices { hook, devices }) => {
                let held = match &hook {
                    HookOwner::Chain(chain) => {
                        let table = self.table(&chain.table, title)?;
                        let at = table.chain(chain, title)?;
                        let base =
                            table.content.chains.get_mut(at).and_then(|(chain, _)| chain.base.as_mut());
                        base.map(|base| &mut base.devices)
                    }
                    HookOwner::Flowtable(flowtable) => {
                        let flowtables = &mut self.table(&flowtable.table, title)?.content.flowtables;
                        flowtables.iter_mut().find(|f| f.id == *flowtable).map(|f| &mut f.devices)
                    }
                };
                held.is_some_and(|held| held.extract_if(.., |device| devices.contains(device)).count() > 0)
            }
        };
        if found || !must { Ok(()) } else { Err(Error::content(title, ContentProblem::Unknown)) }
    }

    fn table(&mut self, id: &TableId, title: &str) -> Result<&mut TableBuilder, Error> {
        self.all.get_mut(id).ok_or_else(|| missing(title, format!("table {id}")))
    }

    fn rules(&mut self, chain: &ChainId, title: &str) -> Result<&mut Vec<Rule>, Error> {
        let table = self.table(&chain.table, title)?;
        let at = table.chain(chain, title)?;
        let found = table.content.chains.get_mut(at).map(|(_, rules)| rules);
        found.ok_or_else(|| missing(title, format!("chain {chain}")))
    }

    fn set(&mut self, set: &SetId, title: &str) -> Result<&mut (Set, Vec<Element>), Error> {
        let table = self.table(&set.table, title)?;
        let at = table.sets.get(&set.name).copied();
        let found = at.and_then(|at| table.content.sets.get_mut(at));
        found.ok_or_else(|| missing(title, format!("set {set}")))
    }
}

impl TableBuilder {
    fn chain(&self, chain: &ChainId, title: &str) -> Result<usize, Error> {
        self.chains.get(&chain.name).copied().ok_or_else(|| missing(title, format!("chain {chain}")))
    }
}

/// Updates a base chain that is added again: it may get a policy and devices.
fn update_base(chain: &mut Chain, added: Option<BaseChain>) {
    let (Some(base), Some(added)) = (&mut chain.base, added) else { return };
    base.policy = added.policy.or(base.policy);
    extend(&mut base.devices, added.devices);
}

fn extend(devices: &mut Vec<crate::InterfaceName>, more: Vec<crate::InterfaceName>) {
    for device in more {
        if !devices.contains(&device) {
            devices.push(device);
        }
    }
}

fn missing(title: &str, what: String) -> Error {
    Error::content(title, ContentProblem::Missing(what))
}
