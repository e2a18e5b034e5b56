//! From one plan to the next, by the smallest input of `iptables-restore --noflush`.
//!
//! Chains of a service's own are compared with what was applied last. In a chain that services share, the rules of the
//! service are deleted by their words and inserted by their place, so that nobody else's are sent.

use std::ops::Range;

use sluicegate_iptables_save::{
    Action, Chain, Counters, Entry, Error, Family, Item, Rule, Save, State, Table, Verb, diff,
};

use super::fixed::MARK_MASQ;
use super::port::PortPlan;

/// What is to be done in the two tables, in order.
#[derive(Debug, Default)]
pub(super) struct Change {
    filter: Vec<Entry<'static>>,
    nat: Vec<Entry<'static>>,
}

impl Change {
    /// The rules `old` of a chain, behind `before` others, become `new`; `last` if none follow them.
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

    /// The input that does this, after the chains of services that were planned as `old` became those of `new`.
    pub(super) fn finish<'p>(
        self,
        family: Family,
        old: impl Iterator<Item = &'p PortPlan>,
        new: impl Iterator<Item = &'p PortPlan>,
    ) -> Result<Save<'static>, Error> {
        let own = diff(&own_chains(family, old)?, &own_chains(family, new)?, |_, _| true)?;
        let entries = own.items.into_iter().flat_map(|item| match item {
            Item::Table(table) => table.entries,
            _ => Vec::new(),
        });
        let is_last = |entry: &Entry<'_>| matches!(entry, Entry::Command(command) if matches!(command.verb(), Verb::DeleteChain(_)));
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

/// The chains of services alone, and the one that they all jump to.
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

/// What two lists do not share at their beginning and end.
fn differing(old: &[&str], new: &[&str]) -> (Range<usize>, Range<usize>) {
    let head = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let rest = old.iter().skip(head).rev().zip(new.iter().skip(head).rev());
    let tail = rest.take_while(|(a, b)| a == b).count();
    (head..old.len() - tail, head..new.len() - tail)
}

/// A table of the input; its name is one of ours.
pub(in crate::plan) fn table<'a>(name: &'static str, entries: Vec<Entry<'a>>) -> Table<'a> {
    let mut table = Table::new(name).expect("a name of this crate");
    table.entries = entries;
    table
}

/// A chain line, which makes a chain and empties it.
pub(in crate::plan) fn chain(name: std::borrow::Cow<'_, str>) -> Entry<'_> {
    let chain = Chain::new(name, None, Some(Counters::default()));
    Entry::Chain(chain.expect("names of chains are made here"))
}

/// A rule line.
pub(in crate::plan) fn rule<'a>(
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
        fn what_differs_is_between_what_does_not(old in prop::collection::vec("[a-c]", 0..8), new in prop::collection::vec("[a-c]", 0..8)) {
            let (old, new): (Vec<&str>, Vec<&str>) = (old.iter().map(String::as_str).collect(), new.iter().map(String::as_str).collect());
            let (gone, come) = differing(&old, &new);
            let mut list = old.clone();
            list.splice(gone, new[come].iter().copied());
            prop_assert_eq!(list, new);
        }
    }
}
