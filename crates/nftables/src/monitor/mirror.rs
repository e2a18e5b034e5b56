//! A copy of the ruleset that events update. The cost of an event does not depend on the size of the
//! ruleset, except for the number of rules in the chain concerned.

use std::collections::{BTreeMap, HashMap};

use crate::expr::{Bytes, Data, Expr};
use crate::family::Family;
use crate::monitor::{Change, Event, Lost, RuleChange, RulePosition, SetName};
use crate::name::Name;
use crate::read::{self, ChainFlags, ElementFlags};
use crate::sort;
use crate::tree::Verdict;

/// Objects by handle. [`in_order`] brings them into the order in which the kernel lists them.
#[derive(Debug, Clone, Default)]
pub(super) struct Mirror {
    tables: HashMap<u64, Table>,
    names: HashMap<(Family, Name), u64>,
}

#[derive(Debug, Clone)]
pub(super) struct Table {
    pub(super) from_kernel: read::Table,
    chains: HashMap<u64, Chain>,
    chain_names: HashMap<Name, u64>,
    sets: HashMap<u64, Set>,
    set_names: HashMap<Name, u64>,
    objects: HashMap<u64, read::Object>,
    flowtables: HashMap<u64, read::Flowtable>,
}

#[derive(Debug, Clone)]
pub(super) struct Chain {
    pub(super) from_kernel: read::Chain,
    pub(super) rules: Vec<read::Rule>,
    /// The position of the rule that was deleted last.
    gap: usize,
    /// Rules whose preceding rule has not been reported yet, by the handle of that rule: all rules of a
    /// commit are in place before the first one is reported.
    waiting: HashMap<u64, read::Rule>,
}

#[derive(Debug, Clone)]
pub(super) struct Set {
    pub(super) from_kernel: read::Set,
    elements: Elements,
}

/// Elements by key, and in the order in which the kernel lists them, where it defines one: the order in
/// which they were added.
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
    /// Creates a copy of the tables of a ruleset.
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

    /// Returns the copy in the form of a dump.
    pub(super) fn ruleset(&self, generation: u32) -> read::Ruleset {
        let mut ruleset = read::Ruleset { generation, ..read::Ruleset::default() };
        for table in in_order(&self.tables) {
            ruleset.tables.push(table.from_kernel.clone());
            for chain in in_order(&table.chains) {
                ruleset.chains.push(chain.from_kernel.clone());
                let mut before = None;
                for rule in &chain.rules {
                    ruleset.rules.push(read::Rule { position: before, ..rule.clone() });
                    before = Some(rule.handle);
                }
            }
            let elements = |set: &Set| set.elements.in_order.values().cloned().collect();
            // The current number is not reported.
            let from_kernel = |set: &Set| read::Set { count: None, ..set.from_kernel.clone() };
            ruleset.sets.extend(in_order(&table.sets).map(|set| (from_kernel(set), elements(set))));
            ruleset.objects.extend(in_order(&table.objects).cloned());
            ruleset.flowtables.extend(in_order(&table.flowtables).cloned());
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

    fn add_table(&mut self, from_kernel: read::Table) {
        self.names.insert((from_kernel.family, from_kernel.name.clone()), from_kernel.handle);
        let table = Table {
            chains: HashMap::new(),
            chain_names: HashMap::new(),
            sets: HashMap::new(),
            set_names: HashMap::new(),
            objects: HashMap::new(),
            flowtables: HashMap::new(),
            from_kernel,
        };
        self.tables.insert(table.from_kernel.handle, table);
    }

    /// Applies an event.
    pub(super) fn apply(&mut self, event: &Event) -> Done {
        match event {
            Event::Table(change, reported) => self.apply_table(*change, reported),
            Event::Chain(change, reported) => {
                self.table_mut(reported.family, &reported.table)?.apply_chain(*change, reported)
            }
            Event::Rule(RuleChange::New(place) | RuleChange::Inserted(place), reported) => {
                self.table_mut(reported.family, &reported.table)?.limit_sets(&reported.expressions);
                self.chain_mut(reported)?.put_rule(*place, reported.clone())
            }
            Event::Rule(RuleChange::Deleted, reported) => {
                let rule = self.chain_mut(reported)?.delete_rule(reported)?;
                self.table_mut(reported.family, &reported.table)?.delete_own_chain(&rule.expressions);
                Ok(())
            }
            Event::Set(change, reported) => {
                self.table_mut(reported.family, &reported.table)?.apply_set(*change, reported)
            }
            Event::Elements(change, name, elements) => self.apply_elements(*change, name, elements),
            Event::Object(change, reported) => {
                let table = self.table_mut(reported.family, &reported.table)?;
                match change {
                    Change::New | Change::Created => {
                        drop(table.objects.insert(reported.handle, reported.clone()));
                    }
                    Change::Deleted if table.objects.remove(&reported.handle).is_some() => {}
                    Change::Deleted => {
                        return Err(Lost::unknown(
                            "object",
                            reported.family,
                            [&reported.table, &reported.name],
                        ));
                    }
                }
                Ok(())
            }
            Event::Flowtable(change, reported) => {
                self.table_mut(reported.family, &reported.table)?.apply_flowtable(*change, reported)
            }
            Event::Generation(_) | Event::Trace(_) | Event::Overrun | Event::Unknown(_) => Ok(()),
        }
    }

    fn apply_table(&mut self, change: Change, reported: &read::Table) -> Done {
        let known = self.names.get(&(reported.family, reported.name.clone())).copied();
        match change {
            Change::New | Change::Created => match self.tables.get_mut(&reported.handle) {
                Some(table) => table.from_kernel = reported.clone(),
                None => {
                    // A table of this name may have been deleted without an event, together with its owner.
                    known.map(|handle| self.tables.remove(&handle));
                    self.add_table(reported.clone());
                }
            },
            Change::Deleted => {
                let handle =
                    known.ok_or_else(|| Lost::unknown("table", reported.family, [&reported.name]))?;
                self.tables.remove(&handle);
                self.names.remove(&(reported.family, reported.name.clone()));
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
                Change::New | Change::Created => set.put(element.clone()),
                // Elements that packets have added are not reported.
                Change::Deleted => set.elements.remove(element),
            }
        }
        Ok(())
    }

    /// Returns whether every rule has found its position, as at the end of a commit.
    pub(super) fn is_complete(&self, event: &Event) -> bool {
        let Event::Rule(RuleChange::New(_) | RuleChange::Inserted(_), rule) = event else { return true };
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

    fn put_chain(&mut self, from_kernel: read::Chain) {
        self.chain_names.insert(from_kernel.name.clone(), from_kernel.handle);
        let chain = Chain { rules: Vec::new(), gap: 0, waiting: HashMap::new(), from_kernel };
        self.chains.insert(chain.from_kernel.handle, chain);
    }

    fn put_set(&mut self, from_kernel: read::Set) -> &mut Set {
        self.set_names.insert(from_kernel.name.clone(), from_kernel.handle);
        let handle = from_kernel.handle;
        self.sets.entry(handle).or_insert_with(|| Set { elements: Elements::default(), from_kernel })
    }

    fn apply_chain(&mut self, change: Change, reported: &read::Chain) -> Done {
        let unknown = || Lost::unknown("chain", reported.family, [&reported.table, &reported.name]);
        let Some(chain) = self.chains.get_mut(&reported.handle) else {
            return match change {
                Change::New | Change::Created => {
                    self.put_chain(reported.clone());
                    Ok(())
                }
                Change::Deleted => Err(unknown()),
            };
        };
        match (change, &mut chain.from_kernel.hook) {
            (Change::New | Change::Created, _) => {
                let devices = with(chain.from_kernel.devices(), reported.devices());
                let before = std::mem::replace(&mut chain.from_kernel, reported.clone());
                if let Some(hook) = &mut chain.from_kernel.hook {
                    hook.devices = devices;
                }
                if before.name != reported.name {
                    self.rename_chain(&before.name, reported);
                }
            }
            (Change::Deleted, Some(hook)) if !is_whole(&hook.devices, reported.devices(), reported.uses) => {
                without(&mut hook.devices, reported.devices());
            }
            (Change::Deleted, _) => {
                self.chains.remove(&reported.handle);
                self.chain_names.remove(&reported.name);
            }
        }
        Ok(())
    }

    /// Renames a chain in what refers to it: the kernel lists the new name.
    fn rename_chain(&mut self, before: &Name, reported: &read::Chain) {
        self.chain_names.remove(before);
        self.chain_names.insert(reported.name.clone(), reported.handle);
        let rename = |data: &mut Data| {
            if let Data::Verdict(Verdict::Jump(to) | Verdict::Goto(to)) = data
                && to == before
            {
                *to = reported.name.clone();
            }
        };
        for chain in self.chains.values_mut() {
            for rule in &mut chain.rules {
                if rule.chain == *before {
                    rule.chain = reported.name.clone();
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

    /// Deletes the chain that belongs to a rule with its rules; the kernel sends no events for them.
    fn delete_own_chain(&mut self, expressions: &[Expr]) {
        for expr in expressions {
            if let Expr::Immediate(immediate) = expr
                && let Data::Verdict(Verdict::Jump(to) | Verdict::Goto(to)) = &immediate.data
                && self.chain(to).is_some_and(|chain| chain.from_kernel.flags.contains(ChainFlags::BINDING))
                && let Some(handle) = self.chain_names.remove(to)
            {
                self.chains.remove(&handle);
            }
        }
    }

    fn apply_set(&mut self, change: Change, reported: &read::Set) -> Done {
        match (change, self.sets.get_mut(&reported.handle)) {
            (Change::New | Change::Created, Some(set)) => set.from_kernel = reported.clone(),
            (Change::New | Change::Created, None) => drop(self.put_set(reported.clone())),
            (Change::Deleted, Some(_)) => {
                self.sets.remove(&reported.handle);
                self.set_names.remove(&reported.name);
            }
            (Change::Deleted, None) => {
                return Err(Lost::unknown("set", reported.family, [&reported.table, &reported.name]));
            }
        }
        Ok(())
    }

    /// Sets the size of a set that rules fill, if it has none: the kernel does so (`nft_dynset_init`)
    /// without an event.
    fn limit_sets(&mut self, expressions: &[Expr]) {
        const LIMIT: u32 = 0xffff;
        for expr in expressions {
            if let Expr::Dynset(dynset) = expr
                && let Some(handle) = self.set_names.get(&dynset.set)
                && let Some(set) = self.sets.get_mut(handle)
            {
                set.from_kernel.size = set.from_kernel.size.filter(|size| *size != 0).or(Some(LIMIT));
            }
        }
    }

    fn apply_flowtable(&mut self, change: Change, reported: &read::Flowtable) -> Done {
        match (change, self.flowtables.get_mut(&reported.handle)) {
            (Change::New | Change::Created, Some(from_kernel)) => {
                let devices = with(&from_kernel.devices, &reported.devices);
                *from_kernel = read::Flowtable { devices, ..reported.clone() };
            }
            (Change::New | Change::Created, None) => {
                drop(self.flowtables.insert(reported.handle, reported.clone()));
            }
            (Change::Deleted, Some(from_kernel))
                if !is_whole(&from_kernel.devices, &reported.devices, reported.uses) =>
            {
                without(&mut from_kernel.devices, &reported.devices);
            }
            (Change::Deleted, Some(_)) => drop(self.flowtables.remove(&reported.handle)),
            (Change::Deleted, None) => {
                return Err(Lost::unknown("flowtable", reported.family, [&reported.table, &reported.name]));
            }
        }
        Ok(())
    }

    pub(super) fn flowtable(&self, handle: u64) -> Option<&read::Flowtable> {
        self.flowtables.get(&handle)
    }
}

/// Returns objects in the order of their handles, which is the one in which the kernel lists them: it counts
/// them up for each table, and never gives one again.
fn in_order<T>(objects: &HashMap<u64, T>) -> impl Iterator<Item = &T> {
    let mut sorted: Vec<_> = objects.iter().collect();
    sort::by_key(&mut sorted, |(handle, _)| **handle);
    sorted.into_iter().map(|(_, object)| object)
}

/// Returns the error for a rule whose preceding rule was never reported.
pub(super) fn missing_predecessor(behind: &read::Rule) -> Lost {
    Lost::unknown("rule before another one of chain", behind.family, [&behind.table, &behind.chain])
}

/// Returns whether an object as a whole is deleted, and not only some of its devices, which are then listed.
/// Before Linux 6.4 the devices are listed either way.
pub(super) fn is_whole(own: &[String], reported: &[String], uses: u32) -> bool {
    reported.is_empty() || (uses == 0 && own.iter().all(|device| reported.contains(device)))
}

/// Returns the union of devices and those of an event. The kernel reports a single one twice.
fn with(own: &[String], reported: &[String]) -> Vec<String> {
    if own.is_empty() {
        return reported.to_vec();
    }
    let mut all: Vec<String> = Vec::with_capacity(own.len() + reported.len());
    for device in own.iter().chain(reported) {
        if !all.contains(device) {
            all.push(device.clone());
        }
    }
    all
}

fn without(own: &mut Vec<String>, reported: &[String]) {
    own.retain(|device| !reported.contains(device));
}

impl Chain {
    fn put_rule(&mut self, place: RulePosition, rule: read::Rule) -> Done {
        let at = match place {
            RulePosition::First => 0,
            RulePosition::Last => self.rules.len(),
            RulePosition::Replaced => self.gap.min(self.rules.len()),
            // Search from the end: for rules that are added one after the other, it is the last.
            RulePosition::After(handle) => match self.rules.iter().rposition(|rule| rule.handle == handle) {
                Some(at) => at + 1,
                None => {
                    return match self.waiting.insert(handle, rule) {
                        None => Ok(()),
                        // No two rules follow the same one.
                        Some(other) => Err(missing_predecessor(&other)),
                    };
                }
            },
        };
        // Any number of rules may wait for this one, each for the one before it, as many as a commit has
        // inserted.
        let mut run = vec![rule];
        while let Some(next) = run.last().and_then(|last| self.waiting.remove(&last.handle)) {
            run.push(next);
        }
        self.rules.splice(at..at, run);
        Ok(())
    }

    fn delete_rule(&mut self, reported: &read::Rule) -> Result<read::Rule, Lost> {
        let Some(at) = self.rules.iter().position(|rule| rule.handle == reported.handle) else {
            return Err(Lost::unknown(
                &format!("rule with handle {} of chain", reported.handle),
                reported.family,
                [&reported.table, &reported.chain],
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
        // The catch-all element comes last, whenever it was added.
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
        Self(element.key.clone(), element.details().key_end.clone(), element.flags)
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

    /// A script of many `insert rule` commands: the last one inserted comes first, and is reported last.
    #[test]
    fn as_many_rules_may_wait_for_one_as_a_commit_has() {
        const MANY: u64 = 100_000;
        let mut chain = Chain { from_kernel: chain(), rules: Vec::new(), gap: 0, waiting: HashMap::new() };
        for handle in 1..MANY {
            chain.put_rule(RulePosition::After(handle + 1), rule(handle)).unwrap();
        }
        assert_eq!(chain.rules.len(), 0);
        chain.put_rule(RulePosition::First, rule(MANY)).unwrap();
        assert!(chain.waiting.is_empty());
        assert!(chain.rules.iter().map(|rule| rule.handle).eq((1..=MANY).rev()));
    }

    #[test]
    fn two_rules_behind_the_same_are_a_loss() {
        let mut chain = Chain { from_kernel: chain(), rules: Vec::new(), gap: 0, waiting: HashMap::new() };
        chain.put_rule(RulePosition::After(9), rule(1)).unwrap();
        let lost = Err(Lost::Unknown("rule before another one of chain ip t c".to_owned()));
        assert_eq!(chain.put_rule(RulePosition::After(9), rule(2)), lost);
    }

    fn chain() -> read::Chain {
        use crate::{Chain, Table, TableId, Transaction, fake::Fake};

        let chain = TableId::new(Family::IP, Name::from_kernel("t")).chain(Name::from_kernel("c"));
        let (mut fake, mut tx) = (Fake::new(), Transaction::new());
        tx.add(Table::new(chain.table.clone())).add(Chain::new(chain));
        tx.apply(&mut fake).expect("the kernel takes it");
        let Ruleset { mut chains, .. } = fake.ruleset();
        chains.remove(0)
    }
}
