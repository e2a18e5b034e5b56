//! Looks up what the kernel has to answer before a transaction can be encoded: the place of a rule that is
//! given by counting the rules of its chain (`index`), the handle of a chain to rename, whether existing sets
//! have intervals, and the elements of sets that merge them (`auto_merge.rs`).
//!
//! A rule may also go beside one of the same batch, which has a number instead of a handle. Therefore the
//! rules of the chain are listed, and the operations of the transaction are simulated on that list. The
//! result is valid only for the generation of the ruleset that was listed.

use std::collections::{HashMap, HashSet};

use sluicegate_netlink::Transport;
use sluicegate_netlink::attr::Writer;

use crate::apply::auto_merge::{self, Change, Changes, Existing, Merging};
use crate::compile::lower::Intervals;
use crate::error::Error;
use crate::object::rule::wire::{NFTA_RULE_ID, NFTA_RULE_POSITION, NFTA_RULE_POSITION_ID};
use crate::object::set::known;
use crate::object::{ChainId, Rule, SetId, TableId};
use crate::read;
use crate::transaction::{Flush, Object, Operation, Target, Transaction};

/// The rule before or after which another one goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Position {
    /// An existing rule, by its handle.
    Handle(u64),
    /// A rule of the transaction, by the index of its operation.
    Operation(usize),
}

/// The places of rules with an index and the handles of renamed chains, by the index of their operation; and
/// the existing sets that have intervals.
#[derive(Debug, Default)]
pub(crate) struct Resolved {
    of: HashMap<usize, Position>,
    chains: HashMap<usize, u64>,
    intervals: Intervals,
    /// The sets that were asked for because their elements may have to be merged.
    existing: Existing,
    changes: Changes,
}

/// The rules of the chains in which a rule is placed by index.
type Chains<'t> = HashMap<&'t ChainId, Vec<Position>>;

impl Resolved {
    /// Lists the rules of chains in which a rule is placed by index, and looks up the handles of chains to
    /// rename.
    pub(crate) fn resolve(
        &mut self,
        transaction: &Transaction,
        transport: &mut (impl Transport + ?Sized),
    ) -> Result<(), Error> {
        let mut chains = Chains::new();
        for rule in transaction.indexed() {
            if !chains.contains_key(&rule.chain) {
                let rules = read::chain_rules(transport, &rule.chain)?;
                chains.insert(&rule.chain, rules.iter().map(|rule| Position::Handle(rule.handle)).collect());
            }
        }
        for (index, operation) in transaction.operations().iter().enumerate() {
            self.simulate(&mut chains, index, operation)?;
        }
        for (operation, chain) in transaction.renamed() {
            let existing = read::chain(transport, chain)?;
            let existing =
                existing.ok_or_else(|| Error::Rename { operation, chain: chain.clone(), asked: true })?;
            self.chains.insert(operation, existing.handle);
        }
        Ok(())
    }

    /// Merges the elements of the sets that the transaction itself defines.
    pub(crate) fn merging_alone(transaction: &Transaction) -> Self {
        Self { changes: Merging::empty(transaction).simulate(transaction), ..Self::default() }
    }

    /// Asks for these sets, and returns those whose elements may have to be merged.
    pub(crate) fn query_merging<'s>(
        &mut self,
        transaction: &Transaction,
        sets: &'s HashSet<SetId>,
        transport: &mut (impl Transport + ?Sized),
    ) -> Result<HashSet<&'s SetId>, Error> {
        let definitions = transaction.known_sets();
        let mut merging = HashSet::new();
        for id in sets {
            let existing = query(transport, id)?;
            if existing.as_ref().is_some_and(auto_merge::has_intervals) {
                self.intervals.insert(id.clone());
            }
            if auto_merge::merges_as(known(&definitions, id), existing.as_ref()) {
                merging.insert(id);
            }
            self.existing.insert(id.clone(), existing);
        }
        Ok(merging)
    }

    /// Reads the elements of these sets, and merges those of the transaction with them.
    pub(crate) fn merge(
        &mut self,
        transaction: &Transaction,
        sets: &HashSet<&SetId>,
        transport: &mut (impl Transport + ?Sized),
    ) -> Result<(), Error> {
        let merging = Merging::read(transaction, sets, &self.existing, transport)?;
        self.changes = merging.simulate(transaction);
        Ok(())
    }

    /// Returns what is sent instead of an operation on elements.
    pub(crate) fn change(&self, operation: usize) -> Option<&Change> {
        self.changes.get(&operation)
    }

    /// Looks up which of these sets have intervals, and returns whether any has.
    ///
    /// In an interval set, a key without an end stands for all keys up to the next one, and numbers in host
    /// byte order are byte-swapped before the lookup. The flags of a set never change, so the answer does not
    /// depend on the generation.
    pub(crate) fn query_intervals<'s>(
        &mut self,
        sets: impl IntoIterator<Item = &'s SetId>,
        transport: &mut (impl Transport + ?Sized),
    ) -> Result<bool, Error> {
        let mut any = false;
        for set in sets {
            if self.existing.contains_key(set) {
                continue;
            }
            if query(transport, set)?.as_ref().is_some_and(auto_merge::has_intervals) {
                any = true;
                self.intervals.insert(set.clone());
            }
        }
        Ok(any)
    }

    /// Returns the existing sets that turned out to have intervals.
    pub(crate) fn intervals(&self) -> &Intervals {
        &self.intervals
    }

    /// Returns the handle of the chain that an operation renames, if it was looked up.
    pub(crate) fn chain(&self, operation: usize) -> Option<u64> {
        self.chains.get(&operation).copied()
    }

    fn simulate(&mut self, chains: &mut Chains<'_>, operation: usize, what: &Operation) -> Result<(), Error> {
        match what {
            Operation::Add(Object::Rule(rule)) | Operation::Create(Object::Rule(rule)) => {
                if let Some(rules) = chains.get_mut(&rule.chain) {
                    let anchor = self.anchor(rules, operation, rule)?;
                    rules.insert(anchor.map_or(rules.len(), |at| at + 1), Position::Operation(operation));
                }
            }
            Operation::Insert(rule) => {
                if let Some(rules) = chains.get_mut(&rule.chain) {
                    let anchor = self.anchor(rules, operation, rule)?;
                    rules.insert(anchor.unwrap_or(0), Position::Operation(operation));
                }
            }
            Operation::Replace(rule) => {
                if let (Some(rules), Some(handle)) = (chains.get_mut(&rule.chain), rule.handle)
                    && let Some(place) = position_of(rules, handle).and_then(|at| rules.get_mut(at))
                {
                    *place = Position::Operation(operation);
                }
            }
            Operation::Delete(target) | Operation::Destroy(target) => match target {
                Target::Rule(rule) => {
                    if let Some(rules) = chains.get_mut(&rule.chain)
                        && let Some(at) = position_of(rules, rule.handle)
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

    /// Returns the position in the list of the rule that a new one goes beside, if the rule names one.
    fn anchor(&mut self, rules: &[Position], operation: usize, rule: &Rule) -> Result<Option<usize>, Error> {
        if let Some(handle) = rule.position {
            return Ok(position_of(rules, handle));
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

    /// Appends the place of an operation's rule, and the number by which other rules of the batch may refer
    /// to it.
    pub(crate) fn encode(&self, operation: usize, rule: &Rule, w: &mut Writer<'_>) -> Result<(), Error> {
        if !self.of.is_empty() {
            w.put_be32(NFTA_RULE_ID, number(operation));
        }
        if rule.index.is_none() || rule.position.is_some() {
            return Ok(());
        }
        match self.of.get(&operation) {
            Some(Position::Handle(handle)) => w.put_be64(NFTA_RULE_POSITION, *handle),
            Some(Position::Operation(other)) => w.put_be32(NFTA_RULE_POSITION_ID, number(*other)),
            None => return Err(Error::Index { operation, rule: rule.to_string(), rules: None }),
        }
        Ok(())
    }
}

fn query(transport: &mut (impl Transport + ?Sized), set: &SetId) -> Result<Option<read::Set>, Error> {
    match read::set(transport, set) {
        // The kernel refuses the operation as well, with an error that names it.
        Err(error) if error.is_permission_denied() => Ok(None),
        result => Ok(result?),
    }
}

/// Returns the position in the list of the rule with a handle. A linear search is enough: the kernel searches
/// the same list, and takes longer.
fn position_of(rules: &[Position], handle: u64) -> Option<usize> {
    rules.iter().position(|place| *place == Position::Handle(handle))
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
