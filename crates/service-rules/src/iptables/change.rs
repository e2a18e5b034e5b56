//! Computes the smallest input of `iptables-restore --noflush` that leads from one plan to the next.
//!
//! The chains of a service are compared with those that were applied last. In a chain that services share,
//! the rules of the service are deleted by their specification and inserted by position, so that no rules of
//! other services are sent.

use std::ops::Range;

use sluicegate_iptables_save::{
    Action, Chain, Counters, Entry, Error, Family, Item, Rule, Save, State, Table, Verb, diff,
};

use super::fixed::MARK_MASQ;
use super::port::PortPlan;

/// The operations on the two tables, in order.
#[derive(Debug, Default)]
pub(super) struct Change {
    filter: Vec<Entry<'static>>,
    nat: Vec<Entry<'static>>,
}

impl Change {
    /// Replaces the rules `old` of a chain, which follow `before` others, by `new`. `last` tells whether no
    /// others follow them.
    pub(super) fn rules(
        &mut self,
        (table, chain): (&str, &'static str),
        old: &[&str],
        new: &[&str],
        before: usize,
        last: bool,
    ) {
        let (gone, come) = differing(old, new);
        let append = last && come.end == new.len();
        let entries = if table == "nat" { &mut self.nat } else { &mut self.filter };
        for words in old.get(gone).unwrap_or_default() {
            entries.push(rule(Action::Delete, chain.into(), (*words).to_owned().into()));
        }
        for (index, words) in new.iter().enumerate().take(come.end).skip(come.start) {
            let number = u32::try_from(before + index + 1).unwrap_or(u32::MAX);
            let action = if append { Action::Append } else { Action::Insert(Some(number)) };
            entries.push(rule(action, chain.into(), (*words).to_owned().into()));
        }
    }

    /// Returns the input for the recorded operations and for the change of the services' chains from `old` to
    /// `new`.
    pub(super) fn finish<'p>(
        self,
        family: Family,
        old: impl Iterator<Item = &'p PortPlan>,
        new: impl Iterator<Item = &'p PortPlan>,
    ) -> Result<Save<'static>, Error> {
        let own = diff(&own_chains(family, old)?, &own_chains(family, new)?, |_, _| true)?;
        let entries = own.into_save().items.into_iter().flat_map(|item| match item {
            Item::Table(table) => table.entries,
            _ => Vec::new(),
        });
        let is_last = |entry: &Entry<'_>| match entry {
            Entry::Command(command) => matches!(command.verb(), Verb::DeleteChain(_)),
            _ => false,
        };
        // A chain can be deleted when no rule of a shared chain jumps to it any more.
        let (deletions, mut nat): (Vec<_>, Vec<_>) = entries.partition(is_last);
        nat.extend(self.nat);
        nat.extend(deletions);
        let mut save = Save::default();
        for (name, entries) in [("filter", self.filter), ("nat", nat)] {
            if !entries.is_empty() {
                save.items.push(Item::Table(table(name, entries)));
            }
        }
        Ok(save)
    }
}

/// Returns the chains of services, and the chain that they all jump to.
fn own_chains<'p>(family: Family, plans: impl Iterator<Item = &'p PortPlan>) -> Result<State<'p>, Error> {
    let mut entries = vec![chain(MARK_MASQ.into())];
    let mut rules = Vec::new();
    for (name, words) in plans.flat_map(|plan| &plan.chains) {
        entries.push(chain(name.as_str().into()));
        rules.extend(words.iter().map(|words| rule(Action::Append, name.as_str().into(), words.into())));
    }
    entries.extend(rules);
    State::of_family(&Save { items: vec![Item::Table(table("nat", entries))] }, family)
}

/// Returns the parts of two lists that differ, their common beginning and end left out.
fn differing(old: &[&str], new: &[&str]) -> (Range<usize>, Range<usize>) {
    let head = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let rest = old.iter().skip(head).rev().zip(new.iter().skip(head).rev());
    let tail = rest.take_while(|(a, b)| a == b).count();
    (head..old.len() - tail, head..new.len() - tail)
}

/// Creates a table of the input; its name is one of ours.
pub(crate) fn table<'a>(name: &'static str, entries: Vec<Entry<'a>>) -> Table<'a> {
    let mut table = Table::new(name).expect("a name of this crate");
    table.entries = entries;
    table
}

/// Creates a chain line, which creates or flushes a chain.
pub(crate) fn chain(name: std::borrow::Cow<'_, str>) -> Entry<'_> {
    let chain = Chain::new(name, None, Some(Counters::default()));
    Entry::Chain(chain.expect("names of chains are made here"))
}

/// Creates a rule line.
pub(crate) fn rule<'a>(
    action: Action,
    chain: std::borrow::Cow<'a, str>,
    words: std::borrow::Cow<'a, str>,
) -> Entry<'a> {
    let rule = Rule::new(action, chain, words);
    Entry::Rule(rule.expect("names of services and interfaces are checked, and hold no line end"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_differing_parts_are_between_equal_beginnings_and_ends(
            old in prop::collection::vec("[a-c]", 0..8),
            new in prop::collection::vec("[a-c]", 0..8),
        ) {
            let old: Vec<&str> = old.iter().map(String::as_str).collect();
            let new: Vec<&str> = new.iter().map(String::as_str).collect();
            let (gone, come) = differing(&old, &new);
            let mut list = old.clone();
            list.splice(gone, new[come].iter().copied());
            prop_assert_eq!(list, new);
        }
    }
}
