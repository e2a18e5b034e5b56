//! A copy of the ruleset, changed as events tell. What an event costs does not depend on how much there is, but for the rules of one chain.

use std::collections::{BTreeMap, HashMap};

use crate::expr::{Bytes, Data, Expr};
use crate::family::Family;
use crate::lang::Verdict;
use crate::monitor::{Change, Event, Lost, Place, RuleChange, SetName};
use crate::name::Name;
use crate::read::{self, ChainFlags, ElementFlags};

/// Everything by its handle, which is the order in which the kernel lists: a handle is never given again.
#[derive(Debug, Clone, Default)]
pub(super) struct Mirror {
    tables: BTreeMap<u64, Table>,
    names: HashMap<(Family, Name), u64>,
}

#[derive(Debug, Clone)]
pub(super) struct Table {
    pub(super) held: read::Table,
    chains: BTreeMap<u64, Chain>,
    chain_names: HashMap<Name, u64>,
    sets: BTreeMap<u64, Set>,
    set_names: HashMap<Name, u64>,
    objects: BTreeMap<u64, read::Object>,
    flowtables: BTreeMap<u64, read::Flowtable>,
}

#[derive(Debug, Clone)]
pub(super) struct Chain {
    pub(super) held: read::Chain,
    pub(super) rules: Vec<read::Rule>,
    /// Where the rule was that was deleted last.
    gap: usize,
    /// Rules that stand behind one that has not been told of yet, by its handle: all rules of a commit are in their places before the first
    /// is told of.
    waiting: HashMap<u64, read::Rule>,
}

#[derive(Debug, Clone)]
pub(super) struct Set {
    pub(super) held: read::Set,
    elements: Elements,
}

/// Elements by what names them, and in the order in which the kernel lists them, where it has one: that in which they came.
#[derive(Debug, Clone, Default)]
struct Elements {
    in_order: BTreeMap<u64, read::Element>,
    numbers: HashMap<ElementId, u64>,
    next: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct ElementId(Bytes, Option<Bytes>, ElementFlags);

type Done = Result<(), Lost>;

impl Mirror {
    /// Of what is in the tables that the ruleset has.
    pub(super) fn new(ruleset: read::Ruleset) -> Self {
        let mut copy = Self::default();
        ruleset.tables.into_iter().for_each(|table| copy.add_table(table));
        for chain in ruleset.chains {
            if let Ok(table) = copy.table_mut(chain.family, &chain.table) {
                table.put_chain(chain);
            }
        }
        for rule in ruleset.rules {
            if let Ok(chain) = copy.chain_mut(&rule) {
                chain.rules.push(rule);
            }
        }
        for (set, elements) in ruleset.sets {
            if let Ok(table) = copy.table_mut(set.family, &set.table) {
                let own = table.put_set(set);
                elements.into_iter().for_each(|element| own.put(element));
            }
        }
        for object in ruleset.objects {
            if let Ok(table) = copy.table_mut(object.family, &object.table) {
                table.objects.insert(object.handle, object);
            }
        }
        for flowtable in ruleset.flowtables {
            if let Ok(table) = copy.table_mut(flowtable.family, &flowtable.table) {
                table.flowtables.insert(flowtable.handle, flowtable);
            }
        }
        copy
    }

    /// As a dump would give it.
    pub(super) fn ruleset(&self, generation: u32) -> read::Ruleset {
        let mut ruleset = read::Ruleset { generation, ..read::Ruleset::default() };
        for table in self.tables.values() {
            ruleset.tables.push(table.held.clone());
            for chain in table.chains.values() {
                ruleset.chains.push(chain.held.clone());
                let mut before = None;
                for rule in &chain.rules {
                    ruleset.rules.push(read::Rule { position: before, ..rule.clone() });
                    before = Some(rule.handle);
                }
            }
            let elements = |set: &Set| set.elements.in_order.values().cloned().collect();
            // How many there are now, nobody has told.
            let held = |set: &Set| read::Set { count: None, ..set.held.clone() };
            ruleset.sets.extend(table.sets.values().map(|set| (held(set), elements(set))));
            ruleset.objects.extend(table.objects.values().cloned());
            ruleset.flowtables.extend(table.flowtables.values().cloned());
        }
        ruleset
    }

    pub(super) fn table(&self, family: Family, name: &Name) -> Option<&Table> {
        self.tables.get(self.names.get(&(family, name.clone()))?)
    }

    fn table_mut(&mut self, family: Family, name: &Name) -> Result<&mut Table, Lost> {
        let handle = self.names.get(&(family, name.clone()));
        let table = handle.and_then(|handle| self.tables.get_mut(handle));
        table.ok_or_else(|| Lost::unknown("table", family, [name]))
    }

    fn chain_mut(&mut self, rule: &read::Rule) -> Result<&mut Chain, Lost> {
        let table = self.table_mut(rule.family, &rule.table)?;
        let handle = table.chain_names.get(&rule.chain);
        let chain = handle.and_then(|handle| table.chains.get_mut(handle));
        chain.ok_or_else(|| Lost::unknown("chain", rule.family, [&rule.table, &rule.chain]))
    }

    fn add_table(&mut self, held: read::Table) {
        self.names.insert((held.family, held.name.clone()), held.handle);
        let table = Table {
            chains: BTreeMap::new(),
            chain_names: HashMap::new(),
            sets: BTreeMap::new(),
            set_names: HashMap::new(),
            objects: BTreeMap::new(),
            flowtables: BTreeMap::new(),
            held,
        };
        self.tables.insert(table.held.handle, table);
    }

    /// Does what an event tells.
    pub(super) fn apply(&mut self, event: &Event) -> Done {
        match event {
            Event::Table(change, told) => self.apply_table(*change, told),
            Event::Chain(change, told) => {
                self.table_mut(told.family, &told.table)?.apply_chain(*change, told)
            }
            Event::Rule(RuleChange::New(place), told) => {
                self.table_mut(told.family, &told.table)?.limit_sets(&told.expressions);
                self.chain_mut(told)?.put_rule(*place, told.clone())
            }
            Event::Rule(RuleChange::Deleted, told) => {
                let rule = self.chain_mut(told)?.delete_rule(told)?;
                self.table_mut(told.family, &told.table)?.delete_own_chain(&rule.expressions);
                Ok(())
            }
            Event::Set(change, told) => self.table_mut(told.family, &told.table)?.apply_set(*change, told),
            Event::Elements(change, name, elements) => self.apply_elements(*change, name, elements),
            Event::Object(change, told) => {
                let table = self.table_mut(told.family, &told.table)?;
                match change {
                    Change::New => drop(table.objects.insert(told.handle, told.clone())),
                    Change::Deleted if table.objects.remove(&told.handle).is_some() => {}
                    Change::Deleted => {
                        return Err(Lost::unknown("object", told.family, [&told.table, &told.name]));
                    }
                }
                Ok(())
            }
            Event::Flowtable(change, told) => {
                self.table_mut(told.family, &told.table)?.apply_flowtable(*change, told)
            }
            Event::Generation(_) | Event::Trace(_) | Event::Overrun | Event::Unknown(_) => Ok(()),
        }
    }

    fn apply_table(&mut self, change: Change, told: &read::Table) -> Done {
        let known = self.names.get(&(told.family, told.name.clone())).copied();
        match change {
            Change::New => match self.tables.get_mut(&told.handle) {
                Some(table) => table.held = told.clone(),
                None => {
                    // One of this name may have gone without a word, with its owner.
                    known.map(|handle| self.tables.remove(&handle));
                    self.add_table(told.clone());
                }
            },
            Change::Deleted => {
                let handle = known.ok_or_else(|| Lost::unknown("table", told.family, [&told.name]))?;
                self.tables.remove(&handle);
                self.names.remove(&(told.family, told.name.clone()));
            }
        }
        Ok(())
    }

    fn apply_elements(&mut self, change: Change, name: &SetName, elements: &[read::Element]) -> Done {
        let table = self.table_mut(name.family, &name.table)?;
        let handle = table.set_names.get(&name.set);
        let set = handle.and_then(|handle| table.sets.get_mut(handle));
        let set = set.ok_or_else(|| Lost::unknown("set", name.family, [&name.table, &name.set]))?;
        for element in elements {
            match change {
                Change::New => set.put(element.clone()),
                // Of those that packets have made nobody has told.
                Change::Deleted => set.elements.remove(element),
            }
        }
        Ok(())
    }

    /// Once a commit is complete: nothing waits for what was to be told of.
    pub(super) fn is_settled(&self, event: &Event) -> bool {
        let Event::Rule(RuleChange::New(_), rule) = event else { return true };
        let chain = self.table(rule.family, &rule.table).and_then(|table| table.chain(&rule.chain));
        chain.is_none_or(|chain| chain.waiting.is_empty())
    }
}

impl Table {
    pub(super) fn chain(&self, name: &Name) -> Option<&Chain> {
        self.chains.get(self.chain_names.get(name)?)
    }

    pub(super) fn chain_by_handle(&self, handle: u64) -> Option<&Chain> {
        self.chains.get(&handle)
    }

    pub(super) fn set(&self, name: &Name) -> Option<&Set> {
        self.sets.get(self.set_names.get(name)?)
    }

    fn put_chain(&mut self, held: read::Chain) {
        self.chain_names.insert(held.name.clone(), held.handle);
        let chain = Chain { rules: Vec::new(), gap: 0, waiting: HashMap::new(), held };
        self.chains.insert(chain.held.handle, chain);
    }

    fn put_set(&mut self, held: read::Set) -> &mut Set {
        self.set_names.insert(held.name.clone(), held.handle);
        let handle = held.handle;
        self.sets.entry(handle).or_insert_with(|| Set { elements: Elements::default(), held })
    }

    fn apply_chain(&mut self, change: Change, told: &read::Chain) -> Done {
        let unknown = || Lost::unknown("chain", told.family, [&told.table, &told.name]);
        let Some(chain) = self.chains.get_mut(&told.handle) else {
            return match change {
                Change::New => {
                    self.put_chain(told.clone());
                    Ok(())
                }
                Change::Deleted => Err(unknown()),
            };
        };
        match (change, &mut chain.held.hook) {
            (Change::New, _) => {
                let devices = with(chain.held.devices(), told.devices());
                let before = std::mem::replace(&mut chain.held, told.clone());
                if let Some(hook) = &mut chain.held.hook {
                    hook.devices = devices;
                }
                if before.name != told.name {
                    self.rename_chain(&before.name, told);
                }
            }
            (Change::Deleted, Some(hook)) if !is_whole(&hook.devices, told.devices(), told.uses) => {
                without(&mut hook.devices, told.devices());
            }
            (Change::Deleted, _) => {
                self.chains.remove(&told.handle);
                self.chain_names.remove(&told.name);
            }
        }
        Ok(())
    }

    /// What refers to it follows: the kernel lists the new name.
    fn rename_chain(&mut self, before: &Name, told: &read::Chain) {
        self.chain_names.remove(before);
        self.chain_names.insert(told.name.clone(), told.handle);
        let rename = |data: &mut Data| {
            if let Data::Verdict(Verdict::Jump(to) | Verdict::Goto(to)) = data
                && to == before
            {
                *to = told.name.clone();
            }
        };
        for chain in self.chains.values_mut() {
            for rule in &mut chain.rules {
                if rule.chain == *before {
                    rule.chain = told.name.clone();
                }
                for expr in &mut rule.expressions {
                    if let Expr::Immediate(immediate) = expr {
                        rename(&mut immediate.data);
                    }
                }
            }
        }
        for set in self.sets.values_mut() {
            set.elements.in_order.values_mut().filter_map(|element| element.data.as_mut()).for_each(rename);
        }
    }

    /// The chain that belongs to a rule goes with it, and so do the rules in it; nobody tells.
    fn delete_own_chain(&mut self, expressions: &[Expr]) {
        for expr in expressions {
            if let Expr::Immediate(immediate) = expr
                && let Data::Verdict(Verdict::Jump(to) | Verdict::Goto(to)) = &immediate.data
                && self.chain(to).is_some_and(|chain| chain.held.flags.contains(ChainFlags::BINDING))
                && let Some(handle) = self.chain_names.remove(to)
            {
                self.chains.remove(&handle);
            }
        }
    }

    fn apply_set(&mut self, change: Change, told: &read::Set) -> Done {
        match (change, self.sets.get_mut(&told.handle)) {
            (Change::New, Some(set)) => set.held = told.clone(),
            (Change::New, None) => drop(self.put_set(told.clone())),
            (Change::Deleted, Some(_)) => {
                self.sets.remove(&told.handle);
                self.set_names.remove(&told.name);
            }
            (Change::Deleted, None) => {
                return Err(Lost::unknown("set", told.family, [&told.table, &told.name]));
            }
        }
        Ok(())
    }

    /// A set that rules fill gets a limit, if it has none (`nft_dynset_init`); nobody tells.
    fn limit_sets(&mut self, expressions: &[Expr]) {
        const LIMIT: u32 = 0xffff;
        for expr in expressions {
            if let Expr::Dynset(dynset) = expr
                && let Some(handle) = self.set_names.get(&dynset.set)
                && let Some(set) = self.sets.get_mut(handle)
            {
                set.held.size = set.held.size.filter(|size| *size != 0).or(Some(LIMIT));
            }
        }
    }

    fn apply_flowtable(&mut self, change: Change, told: &read::Flowtable) -> Done {
        match (change, self.flowtables.get_mut(&told.handle)) {
            (Change::New, Some(held)) => {
                let devices = with(&held.devices, &told.devices);
                *held = read::Flowtable { devices, ..told.clone() };
            }
            (Change::New, None) => drop(self.flowtables.insert(told.handle, told.clone())),
            (Change::Deleted, Some(held)) if !is_whole(&held.devices, &told.devices, told.uses) => {
                without(&mut held.devices, &told.devices);
            }
            (Change::Deleted, Some(_)) => drop(self.flowtables.remove(&told.handle)),
            (Change::Deleted, None) => {
                return Err(Lost::unknown("flowtable", told.family, [&told.table, &told.name]));
            }
        }
        Ok(())
    }

    pub(super) fn flowtable(&self, handle: u64) -> Option<&read::Flowtable> {
        self.flowtables.get(&handle)
    }
}

/// A rule stands behind one that nobody has told of.
pub(super) fn not_told(behind: &read::Rule) -> Lost {
    Lost::unknown("rule before another one of chain", behind.family, [&behind.table, &behind.chain])
}

/// Whether all of something is deleted, and not some of its devices, which are told then. Before Linux 6.4 the devices are told either way.
pub(super) fn is_whole(own: &[String], told: &[String], uses: u32) -> bool {
    told.is_empty() || (uses == 0 && own.iter().all(|device| told.contains(device)))
}

/// Devices, and those that are told beside them. The kernel says a single one twice.
fn with(own: &[String], told: &[String]) -> Vec<String> {
    if own.is_empty() {
        return told.to_vec();
    }
    let mut all: Vec<String> = Vec::with_capacity(own.len() + told.len());
    for device in own.iter().chain(told) {
        if !all.contains(device) {
            all.push(device.clone());
        }
    }
    all
}

fn without(own: &mut Vec<String>, told: &[String]) {
    own.retain(|device| !told.contains(device));
}

impl Chain {
    fn put_rule(&mut self, place: Place, rule: read::Rule) -> Done {
        let at = match place {
            Place::First => 0,
            Place::Last => self.rules.len(),
            Place::Replaced => self.gap.min(self.rules.len()),
            // From the end: of rules that are added one after the other, it is the last.
            Place::After(handle) => match self.rules.iter().rposition(|rule| rule.handle == handle) {
                Some(at) => at + 1,
                None => {
                    return match self.waiting.insert(handle, rule) {
                        None => Ok(()),
                        // No two stand behind the same.
                        Some(other) => Err(not_told(&other)),
                    };
                }
            },
        };
        // As many may wait for this one, each for the one before, as a commit has inserted.
        let mut run = vec![rule];
        while let Some(next) = run.last().and_then(|last| self.waiting.remove(&last.handle)) {
            run.push(next);
        }
        self.rules.splice(at..at, run);
        Ok(())
    }

    fn delete_rule(&mut self, told: &read::Rule) -> Result<read::Rule, Lost> {
        let Some(at) = self.rules.iter().position(|rule| rule.handle == told.handle) else {
            return Err(Lost::unknown(
                &format!("rule with handle {} of chain", told.handle),
                told.family,
                [&told.table, &told.chain],
            ));
        };
        self.gap = at;
        Ok(self.rules.remove(at))
    }
}

impl Set {
    pub(super) fn elements(&self) -> impl Iterator<Item = &read::Element> {
        self.elements.in_order.values()
    }

    fn put(&mut self, element: read::Element) {
        let Elements { in_order, numbers, next } = &mut self.elements;
        // The catch-all comes last, whenever it was made.
        let is_catch_all = element.flags.contains(ElementFlags::CATCHALL);
        let number = *numbers.entry(ElementId::of(&element)).or_insert_with(|| {
            *next += 1;
            if is_catch_all { u64::MAX } else { *next }
        });
        in_order.insert(number, element);
    }
}

impl Elements {
    fn remove(&mut self, element: &read::Element) {
        if let Some(number) = self.numbers.remove(&ElementId::of(element)) {
            self.in_order.remove(&number);
        }
    }
}

impl ElementId {
    fn of(element: &read::Element) -> Self {
        Self(element.key.clone(), element.key_end.clone(), element.flags)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::{Rule, Ruleset};

    fn rule(handle: u64) -> Rule {
        let bytes = sluicegate_netlink::attr::encode(|w| {
            w.put_str(1, "t");
            w.put_str(2, "c");
            w.put_be64(3, handle);
        });
        let bytes = bytes.expect("it is short");
        Rule::decode(Family::IP, sluicegate_netlink::attr::Attributes::new(&bytes)).expect("it is a rule")
    }

    /// As a script of many `insert rule` has them: the last is first, and told last.
    #[test]
    fn as_many_rules_may_wait_for_one_as_a_commit_has() {
        const MANY: u64 = 100_000;
        let mut chain = Chain { held: chain(), rules: Vec::new(), gap: 0, waiting: HashMap::new() };
        for handle in 1..MANY {
            chain.put_rule(Place::After(handle + 1), rule(handle)).unwrap();
        }
        assert_eq!(chain.rules.len(), 0);
        chain.put_rule(Place::First, rule(MANY)).unwrap();
        assert!(chain.waiting.is_empty());
        assert!(chain.rules.iter().map(|rule| rule.handle).eq((1..=MANY).rev()));
    }

    #[test]
    fn two_rules_behind_the_same_are_a_loss() {
        let mut chain = Chain { held: chain(), rules: Vec::new(), gap: 0, waiting: HashMap::new() };
        chain.put_rule(Place::After(9), rule(1)).unwrap();
        let lost = Err(Lost::Unknown("rule before another one of chain ip t c".to_owned()));
        assert_eq!(chain.put_rule(Place::After(9), rule(2)), lost);
    }

    fn chain() -> read::Chain {
        use crate::{Chain, Table, TableId, Transaction, fake::Fake};

        let chain = TableId::new(Family::IP, Name::held("t")).chain(Name::held("c"));
        let (mut fake, mut tx) = (Fake::new(), Transaction::new());
        tx.add(Table::new(chain.table.clone())).add(Chain::new(chain));
        tx.apply(&mut fake).expect("the kernel takes it");
        let Ruleset { mut chains, .. } = fake.ruleset();
        chains.remove(0)
    }
}
