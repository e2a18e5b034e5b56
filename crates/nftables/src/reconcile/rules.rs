//! Aligns the rules of a chain: determines which stay, which are deleted, and where new ones are added.

use std::collections::HashMap;

use crate::listing::without_position;
use crate::object::{ChainId, Rule, RuleId};
use crate::read;
use crate::reconcile::kernel::Kernel;
use crate::reconcile::sequence::common;
use crate::transaction::{Flush, Object, Operation, Target};

/// A rule in the kernel.
pub(super) struct KernelRule<'k> {
    pub(super) rule: &'k read::Rule,
    pub(super) body: Vec<u8>,
    /// Whether it refers to a replaced object, so that it has to be added again.
    pub(super) add_again: bool,
}

/// A rule of the resulting chain.
#[derive(Debug, Clone, Copy)]
pub(super) enum Item<'a> {
    /// A rule in the kernel that stays unchanged, wanted or not.
    Stays(&'a read::Rule),
    /// A wanted rule that is added.
    Wanted(&'a Rule),
    /// An unwanted rule in the kernel that stays, and that is added again.
    Again(&'a read::Rule),
}

/// Aligns the wanted rules with those in the kernel: determines which stay, including unwanted ones that
/// `keep` selects, and which are deleted.
pub(super) fn align<'a>(
    wanted: &[(&'a Rule, Vec<u8>)],
    kernel: &[KernelRule<'a>],
    keep: &dyn Fn(&'a read::Rule) -> bool,
) -> (Vec<Item<'a>>, Vec<&'a read::Rule>) {
    let mut numbers: HashMap<&[u8], usize> = HashMap::new();
    let mut number_of = |body| {
        let next = numbers.len();
        *numbers.entry(body).or_insert(next)
    };
    let ours: Vec<usize> = wanted.iter().map(|(_, body)| number_of(body.as_slice())).collect();
    let theirs: Vec<Option<usize>> =
        kernel.iter().map(|rule| (!rule.add_again).then(|| number_of(rule.body.as_slice()))).collect();
    // A rule with the body of a wanted one is not an unwanted rule.
    let mut renewed: HashMap<&[u8], usize> = HashMap::new();
    let (mut items, mut deleted) = (Vec::with_capacity(wanted.len()), Vec::new());
    let mut pairs = common(&ours, &theirs).into_iter();
    for (_, body) in wanted {
        *renewed.entry(body).or_default() += 1;
    }
    let (mut at, mut at_kernel) = (0, 0);
    loop {
        let pair = pairs.next();
        let (until, until_kernel) = pair.unwrap_or((wanted.len(), kernel.len()));
        for KernelRule { rule, body, add_again: again } in
            kernel.get(at_kernel..until_kernel).unwrap_or_default()
        {
            let is_wanted = *again
                && renewed.get_mut(body.as_slice()).is_some_and(|left| {
                    let some = *left > 0;
                    *left = left.saturating_sub(1);
                    some
                });
            match (is_wanted || !keep(rule), again) {
                (true, _) => deleted.push(*rule),
                (false, true) => {
                    deleted.push(*rule);
                    items.push(Item::Again(rule));
                }
                (false, false) => items.push(Item::Stays(rule)),
            }
        }
        items.extend(wanted.get(at..until).unwrap_or_default().iter().map(|(rule, _)| Item::Wanted(rule)));
        let Some((i, j)) = pair else { return (items, deleted) };
        items.extend(kernel.get(j).map(|kernel| Item::Stays(kernel.rule)));
        (at, at_kernel) = (i + 1, j + 1);
    }
}

/// Adds all rules after the first change again, because rules of this chain can only be appended.
pub(super) fn append_only<'a>(
    (mut items, mut deleted): (Vec<Item<'a>>, Vec<&'a read::Rule>),
    kernel: &[KernelRule<'a>],
) -> (Vec<Item<'a>>, Vec<&'a read::Rule>) {
    let same = |(item, kernel): &(&Item<'_>, &KernelRule<'_>)| match item {
        Item::Stays(rule) => rule.handle == kernel.rule.handle,
        _ => false,
    };
    let start = items.iter().zip(kernel).take_while(same).count();
    for item in items.get_mut(start..).unwrap_or_default() {
        if let Item::Stays(rule) = *item {
            deleted.push(rule);
            *item = Item::Again(rule);
        }
    }
    (items, deleted)
}

/// Returns the operations that add the new rules of a chain, each at its position.
pub(super) fn added(items: &[Item<'_>], kernel: Option<&Kernel<'_>>) -> Vec<Operation> {
    let mut operations = Vec::new();
    let mut waiting: Vec<Rule> = Vec::new();
    for item in items {
        match item {
            Item::Stays(next) => {
                let placed = waiting.drain(..).map(|rule| Operation::Insert(rule.position(next.handle)));
                operations.extend(placed);
            }
            Item::Wanted(rule) => waiting.push(without_position((*rule).clone())),
            Item::Again(rule) => {
                waiting.extend(kernel.and_then(|kernel| kernel.typed_rule(rule)).map(without_position));
            }
        }
    }
    operations.extend(waiting.into_iter().map(|rule| Operation::Add(Object::Rule(rule))));
    operations
}

/// Returns the operations that delete rules of a chain; a single one if all are deleted.
pub(super) fn delete_rules(chain: &ChainId, deleted: &[&read::Rule], all: usize) -> Vec<Operation> {
    if deleted.len() == all && all > 1 {
        return vec![Operation::Flush(Flush::Chain(chain.clone()))];
    }
    let one = |rule: &&read::Rule| {
        Operation::Delete(Target::Rule(RuleId { chain: chain.clone(), handle: rule.handle }))
    };
    deleted.iter().map(one).collect()
}
