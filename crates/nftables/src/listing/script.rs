//! Builds the content of a table, and converts it to the transaction that creates it.

use crate::listing::{Handles, TableContent};
use crate::object::*;
use crate::transaction::{Object, Operation, Transaction};
#[cfg(feature = "reconcile")]
use crate::tree::Verdict;

impl TableContent {
    /// Returns the elements of a named set or map; none if the table has no such set.
    #[must_use]
    pub fn elements(&self, set: &str) -> &[Element] {
        let found = self.sets.iter().find(|(of, _)| of.id.name.as_str() == set);
        found.map_or(&[], |(_, elements)| elements)
    }

    /// Creates the content of an empty table.
    ///
    /// ```
    /// use sluicegate_nftables::lang::{Expression, Match, Payload, Verdict};
    /// use sluicegate_nftables::{
    ///     Chain, ChainType, DataType, Element, Family, Hook, Priority, Set, Table, TableContent, TableId,
    /// };
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    ///
    /// let table = TableId::new(Family::INET, "guard".parse()?);
    /// let blocked = table.set("blocked".parse()?);
    /// let input = table.chain("input".parse()?);
    /// let matches = Match::new(Payload::IP_SADDR, Expression::named(&blocked.name));
    /// let drop = input.rule().then(matches).then(Verdict::Drop);
    /// let address = std::net::Ipv4Addr::new(192, 0, 2, 7);
    ///
    /// let content = TableContent::new(Table::new(table))
    ///     .set(Set::new(blocked, DataType::IPV4_ADDR), [Element::new(address)])
    ///     .chain(Chain::base(input, ChainType::Filter, Hook::Input, Priority::FILTER), [drop]);
    /// assert_eq!(content.to_transaction().to_string(), "\
    /// add table inet guard
    /// add set inet guard blocked { type ipv4_addr ; }
    /// add chain inet guard input { type filter hook input priority 0 ; }
    /// add element inet guard blocked { 192.0.2.7 }
    /// add rule inet guard input ip saddr @blocked drop
    /// ");
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn new(table: Table) -> Self {
        Self {
            table,
            objects: Vec::new(),
            sets: Vec::new(),
            flowtables: Vec::new(),
            chains: Vec::new(),
            handles: Handles::default(),
        }
    }

    /// Adds a stateful object.
    #[must_use]
    pub fn object(mut self, object: StatefulObject) -> Self {
        self.objects.push(object);
        self
    }

    /// Adds a set or map with its elements.
    #[must_use]
    pub fn set(mut self, set: Set, elements: impl IntoIterator<Item = Element>) -> Self {
        self.sets.push((set, elements.into_iter().collect()));
        self
    }

    /// Adds a flowtable.
    #[must_use]
    pub fn flowtable(mut self, flowtable: Flowtable) -> Self {
        self.flowtables.push(flowtable);
        self
    }

    /// Adds a chain with its rules, in order.
    #[must_use]
    pub fn chain(mut self, chain: Chain, rules: impl IntoIterator<Item = Rule>) -> Self {
        self.chains.push((chain, rules.into_iter().collect()));
        self
    }

    /// Returns the transaction that creates the table with its content.
    ///
    /// Objects precede those that refer to them, and whatever directs packets to others comes last: stateful
    /// objects, sets, flowtables, chains, elements of sets and data maps, rules, elements of verdict maps,
    /// rules of base chains. nft reads the text in this order, and if the transaction has to be sent in
    /// several batches, packets never meet an incomplete ruleset.
    #[must_use]
    pub fn to_transaction(&self) -> Transaction {
        self.clone().into()
    }
}

/// Converts as [`TableContent::to_transaction`] does, without copying elements and rules.
impl From<TableContent> for Transaction {
    fn from(content: TableContent) -> Self {
        let mut script = Script::default();
        let TableContent { table, objects, sets, flowtables, chains, handles: _ } = content;
        script.table.push(Operation::Add(table.into()));
        objects.into_iter().for_each(|object| script.add(object));
        flowtables.into_iter().for_each(|flowtable| script.add(flowtable));
        for (set, list) in sets {
            script.elements(Elements { set: set.id.clone(), list }, is_constant(&set));
            script.add(set);
        }
        for (chain, rules) in chains {
            let base = chain.base.is_some();
            script.add(chain);
            rules
                .into_iter()
                .for_each(|rule| script.rule(Operation::Add(Object::Rule(without_position(rule))), base));
        }
        script.into()
    }
}

/// Operations, grouped by the order in which they have to be done.
#[derive(Debug, Default)]
pub(crate) struct Script {
    /// Operations on the tables themselves.
    pub(crate) table: Vec<Operation>,
    /// Deletions, in this order.
    pub(crate) deleted: Vec<Operation>,
    objects: Vec<Operation>,
    sets: Vec<Operation>,
    flowtables: Vec<Operation>,
    chains: Vec<Operation>,
    base_chains: Vec<Operation>,
    data: Vec<Operation>,
    rules: Vec<Operation>,
    verdicts: Vec<Operation>,
    base_rules: Vec<Operation>,
}

impl Script {
    /// Adds an object that is neither a rule nor an element.
    pub(crate) fn add(&mut self, object: impl Into<Object>) {
        let object = object.into();
        let step = match &object {
            Object::Stateful(_) => &mut self.objects,
            Object::Set(_) => &mut self.sets,
            Object::Flowtable(_) => &mut self.flowtables,
            Object::Chain(chain) if chain.base.is_some() => &mut self.base_chains,
            _ => &mut self.chains,
        };
        step.push(Operation::Add(object));
    }

    /// Adds elements. The elements of a constant set precede the rules, because it cannot change once a rule
    /// uses it.
    pub(crate) fn elements(&mut self, elements: Elements, constant: bool) {
        if elements.list.is_empty() {
            return;
        }
        let verdicts = elements.list.iter().any(|element| matches!(element.data(), ElementData::Verdict(_)));
        let step = if verdicts && !constant { &mut self.verdicts } else { &mut self.data };
        step.push(Operation::Add(elements.into()));
    }

    /// Adds or inserts a rule.
    pub(crate) fn rule(&mut self, operation: Operation, base: bool) {
        if base { &mut self.base_rules } else { &mut self.rules }.push(operation);
    }
}

impl From<Script> for Transaction {
    fn from(script: Script) -> Self {
        let Script {
            table,
            deleted,
            objects,
            sets,
            flowtables,
            chains,
            base_chains,
            data,
            rules,
            verdicts,
            base_rules,
        } = script;
        let steps = [table, deleted, objects, sets, flowtables, chains, base_chains];
        let mut transaction = Self::new();
        for operation in steps.into_iter().chain([data, rules, verdicts, base_rules]).flatten() {
            transaction.push(operation);
        }
        transaction
    }
}

/// Returns whether the elements of a set cannot change once a rule uses it.
pub(crate) fn is_constant(set: &Set) -> bool {
    set.flags.contains(SetFlags::CONSTANT)
}

/// Returns a rule without its position, so that it is appended to its chain.
pub(crate) fn without_position(rule: Rule) -> Rule {
    Rule { handle: None, position: None, index: None, ..rule }
}

/// Returns the chain that a verdict jumps to.
#[cfg(feature = "reconcile")]
pub(crate) fn target(verdict: &Verdict) -> Option<&crate::Name> {
    match verdict {
        Verdict::Jump(chain) | Verdict::Goto(chain) => Some(chain),
        _ => None,
    }
}
