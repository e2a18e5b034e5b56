//! What a transaction leaves to be asked of the kernel: where rules go that are placed by counting the rules of their chain (`index`), and chains
//! that are renamed, which the kernel knows by handles alone; and which sets hold intervals.
//!
//! Rules of the same batch are known by numbers, too. So the rules are listed, and what the transaction itself does to them is played
//! through on that list. A batch with places is for the generation that was listed.

use std::collections::HashMap;

use sluicegate_netlink::Transport;
use sluicegate_netlink::attr::Writer;

use crate::error::Error;
use crate::lang::lower::Intervals;
use crate::object::{ChainId, Rule, SetFlags, SetId, TableId};
use crate::read;
use crate::transaction::{Flush, Object, Operation, Target, Transaction};

/// A rule beside which another goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// One that is there, by its handle.
    Handle(u64),
    /// One of the transaction, by its operation.
    Operation(usize),
}

/// Where the rules with an index go and the handles of chains that are renamed, by their operation; and sets that hold intervals.
#[derive(Debug, Default)]
pub(crate) struct Places {
    of: HashMap<usize, Place>,
    chains: HashMap<usize, u64>,
    intervals: Intervals,
}

/// The rules of the chains in which rules are counted.
type Chains<'t> = HashMap<&'t ChainId, Vec<Place>>;

impl Places {
    /// Finds the places, on what the kernel holds now.
    pub(crate) fn find(
        transaction: &Transaction,
        transport: &mut (impl Transport + ?Sized),
    ) -> Result<Self, Error> {
        let mut chains = Chains::new();
        for rule in transaction.indexed() {
            if !chains.contains_key(&rule.chain) {
                let (table, chain) = (&rule.chain.table, &rule.chain.name);
                let rules = read::rules(transport, table.family, Some(&table.name), Some(chain))?;
                chains.insert(&rule.chain, rules.iter().map(|rule| Place::Handle(rule.handle)).collect());
            }
        }
        let mut places = Self::default();
        for (index, operation) in transaction.operations().iter().enumerate() {
            places.play(&mut chains, index, operation)?;
        }
        for (operation, chain) in transaction.renamed() {
            let held = read::chain(transport, chain.table.family, &chain.table.name, &chain.name)?;
            let held = held.ok_or_else(|| Error::Rename { operation, chain: chain.clone(), asked: true })?;
            places.chains.insert(operation, held.handle);
        }
        Ok(places)
    }

    /// Asks the kernel which of some sets hold intervals. Whether there are any.
    ///
    /// In such a set a key without an end stands for all keys behind it, up to the next one, and numbers in host order are looked up the other way
    /// round. A set has its flags as long as it lives, so this needs no generation.
    pub(crate) fn ask<'s>(
        &mut self,
        sets: impl IntoIterator<Item = &'s SetId>,
        transport: &mut (impl Transport + ?Sized),
    ) -> Result<bool, Error> {
        for set in sets {
            let held = match read::set(transport, set.table.family, &set.table.name, &set.name) {
                Ok(held) => held,
                // Then the operation is refused as well, with an error that names it.
                Err(error) if error.is_permission_denied() => None,
                Err(error) => return Err(error.into()),
            };
            if held.is_some_and(|held| held.flags.contains(SetFlags::INTERVAL)) {
                self.intervals.insert(set.clone());
            }
        }
        Ok(!self.intervals.is_empty())
    }

    /// The sets that the transaction does not make, and that were found to hold intervals.
    pub(crate) fn intervals(&self) -> &Intervals {
        &self.intervals
    }

    /// The handle of the chain that an operation renames, if it was asked for.
    pub(crate) fn chain(&self, operation: usize) -> Option<u64> {
        self.chains.get(&operation).copied()
    }

    fn play(&mut self, chains: &mut Chains<'_>, operation: usize, what: &Operation) -> Result<(), Error> {
        match what {
            Operation::Add(Object::Rule(rule)) | Operation::Create(Object::Rule(rule)) => {
                if let Some(rules) = chains.get_mut(&rule.chain) {
                    let beside = self.beside(rules, operation, rule)?;
                    rules.insert(beside.map_or(rules.len(), |at| at + 1), Place::Operation(operation));
                }
            }
            Operation::Insert(rule) => {
                if let Some(rules) = chains.get_mut(&rule.chain) {
                    let beside = self.beside(rules, operation, rule)?;
                    rules.insert(beside.unwrap_or(0), Place::Operation(operation));
                }
            }
            Operation::Replace(rule) => {
                if let (Some(rules), Some(handle)) = (chains.get_mut(&rule.chain), rule.handle)
                    && let Some(place) = find(rules, handle).and_then(|at| rules.get_mut(at))
                {
                    *place = Place::Operation(operation);
                }
            }
            Operation::Delete(target) | Operation::Destroy(target) => match target {
                Target::Rule(rule) => {
                    if let Some(rules) = chains.get_mut(&rule.chain)
                        && let Some(at) = find(rules, rule.handle)
                    {
                        rules.remove(at);
                    }
                }
                Target::Chain(chain) => empty(chains, |of| of == chain),
                Target::Table(table) => empty_table(chains, table),
                _ => {}
            },
            Operation::Flush(Flush::Chain(chain)) => empty(chains, |of| of == chain),
            Operation::Flush(Flush::Table(table)) => empty_table(chains, table),
            Operation::Flush(Flush::Ruleset(family)) => {
                empty(chains, |of| of.table.family == *family || family.0 == 0);
            }
            _ => {}
        }
        Ok(())
    }

    /// Where in the list the rule is that a new one goes beside, if it names one.
    fn beside(&mut self, rules: &[Place], operation: usize, rule: &Rule) -> Result<Option<usize>, Error> {
        if let Some(handle) = rule.position {
            return Ok(find(rules, handle));
        }
        let Some(index) = rule.index else { return Ok(None) };
        let at = usize::try_from(index).unwrap_or(usize::MAX);
        let place = rules.get(at).ok_or_else(|| Error::Index {
            operation,
            rule: rule.to_string(),
            rules: Some(rules.len()),
        })?;
        self.of.insert(operation, *place);
        Ok(Some(at))
    }

    /// Appends where the rule of an operation goes, and its own number where others may ask for it.
    pub(crate) fn encode(&self, operation: usize, rule: &Rule, w: &mut Writer<'_>) -> Result<(), Error> {
        if !self.of.is_empty() {
            w.put_be32(NFTA_RULE_ID, number(operation));
        }
        if rule.index.is_none() || rule.position.is_some() {
            return Ok(());
        }
        match self.of.get(&operation) {
            Some(Place::Handle(handle)) => w.put_be64(NFTA_RULE_POSITION, *handle),
            Some(Place::Operation(other)) => w.put_be32(NFTA_RULE_POSITION_ID, number(*other)),
            None => return Err(Error::Index { operation, rule: rule.to_string(), rules: None }),
        }
        Ok(())
    }
}

/// Where in the list the rule with a handle is. One after the other, as the kernel looks for it, which takes far longer over each.
fn find(rules: &[Place], handle: u64) -> Option<usize> {
    rules.iter().position(|place| *place == Place::Handle(handle))
}

fn empty(chains: &mut Chains<'_>, which: impl Fn(&ChainId) -> bool) {
    chains.iter_mut().filter(|(chain, _)| which(chain)).for_each(|(_, rules)| rules.clear());
}

fn empty_table(chains: &mut Chains<'_>, table: &TableId) {
    empty(chains, |of| of.table == *table);
}

fn number(operation: usize) -> u32 {
    u32::try_from(operation).unwrap_or(u32::MAX).saturating_add(1)
}

const NFTA_RULE_POSITION: u16 = 6;
const NFTA_RULE_ID: u16 = 9;
const NFTA_RULE_POSITION_ID: u16 = 10;
