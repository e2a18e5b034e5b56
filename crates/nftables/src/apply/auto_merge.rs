//! Merges and splits the elements of sets with `auto-merge`.
//!
//! The kernel only stores the flag: it refuses an interval that overlaps another one, and deletes an interval
//! only as a whole. nft therefore compares what is added or deleted with the elements that the set has, and
//! sends other elements. This module does the same, for all operations of a transaction in their order:
//!
//! * An interval that overlaps or touches others is joined with them. If an existing interval contains it,
//!   nothing is sent; otherwise it replaces the existing ones, and its comment, timeout and statements are
//!   those of the result (nft 1.0.6).
//! * The deletion of a part of an interval leaves the rest, with its comment, timeout and statements (nft
//!   does so since 1.0.3; the 1.0.6 of Debian 12 refuses it). What is in no single interval is sent as it is:
//!   the kernel refuses it and names it.
//!
//! All changes of a set are sent together, with the last operation on its elements: Linux 6.18 does not find
//! an interval that the same batch has added where it has deleted one with the same start.

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap, HashSet};

use sluicegate_netlink::Transport;

use crate::error::Error;
use crate::family::Family;
use crate::key::Key;
#[cfg(feature = "reconcile")]
use crate::object::element::order;
use crate::object::element::{Form, compare, sortable, successor};
use crate::object::set::known;
use crate::object::{Element, Elements, Set, SetFlags, SetId, TableId};
use crate::read;
use crate::read::typed_set;
use crate::sort;
use crate::transaction::{Flush, HandleId, Object, Operation, Target, Transaction};

/// What is sent instead of an operation: elements to delete, then elements to add.
#[derive(Debug, Default)]
pub(crate) struct Change {
    pub(crate) deleted: Sent,
    pub(crate) added: Sent,
}

/// Elements, each with the element of an operation that it stems from.
#[derive(Debug, Default)]
pub(crate) struct Sent {
    pub(crate) list: Vec<Element>,
    pub(crate) origins: Vec<Origin>,
}

/// An element of an operation: the index of the operation, and that of the element in it.
pub(crate) type Origin = (usize, usize);

/// What is sent instead of operations, by their index.
pub(crate) type Changes = HashMap<usize, Change>;

/// The definitions of existing sets that were asked for; `None` if the kernel does not have the set.
pub(crate) type Existing = HashMap<SetId, Option<read::Set>>;

impl Sent {
    fn push(&mut self, element: Element, origin: Origin) {
        self.list.push(element);
        self.origins.push(origin);
    }
}

/// Returns the sets whose elements the transaction changes and may have to merge, each as the id of a set:
/// those that it knows to merge, and those that it does not know.
pub(crate) fn candidates(transaction: &Transaction) -> HashSet<SetId> {
    if transaction.is_exact() {
        return HashSet::new();
    }
    let sets = transaction.known_sets();
    let is_candidate = |elements: &&Elements| match known(&sets, &elements.set) {
        Some(set) => merges(set),
        None => {
            let first = elements.list.iter().find(|element| !element.is_catch_all());
            first.is_some_and(|first| first.packed_key().kinds.len() == 1 && first.maps_to_nothing())
        }
    };
    let changed = transaction.operations().iter().filter_map(Operation::elements);
    changed.filter(is_candidate).map(|elements| as_set(&elements.set)).collect()
}

/// Returns whether elements of a set with this definition are merged: maps and concatenations are not.
pub(crate) fn merges(set: &Set) -> bool {
    set.auto_merge && set.data.is_none() && Form::of(set) == Form::Interval
}

/// Returns whether elements of a set are merged, by its definition in the transaction, else in the kernel.
pub(crate) fn merges_as(defined: Option<&Set>, existing: Option<&read::Set>) -> bool {
    let typed = |set: &read::Set| typed_set::set_of(&TableId::new(set.family, set.table.clone()), set);
    defined.map_or_else(|| existing.is_some_and(|existing| merges(&typed(existing))), merges)
}

/// The sets of a transaction that merge their elements, with what they contain.
#[derive(Debug, Default)]
pub(crate) struct Merging {
    sets: HashMap<SetId, Content>,
    /// The names of tables that the transaction deletes by their handles.
    tables: HashMap<(Family, u64), TableId>,
    changes: Changes,
}

#[derive(Debug, Default)]
struct Content {
    intervals: Intervals,
    /// The handle of the set, if it exists.
    handle: Option<u64>,
    /// The last operation on its elements.
    last: Option<usize>,
}

impl Merging {
    /// Returns the sets that the transaction defines, as if none of them had elements before.
    pub(crate) fn empty(transaction: &Transaction) -> Self {
        let sets = transaction.sets();
        let all = candidates(transaction).into_iter().filter(|id| known(&sets, id).is_some());
        Self { sets: all.map(|id| (id, Content::default())).collect(), ..Self::default() }
    }

    /// Reads the elements of these sets.
    pub(crate) fn read(
        transaction: &Transaction,
        sets: &HashSet<&SetId>,
        existing: &Existing,
        transport: &mut (impl Transport + ?Sized),
    ) -> Result<Self, Error> {
        let mut merging = Self::default();
        for id in sets {
            let mut content = Content::default();
            if let Some(from_kernel) = existing.get(*id).and_then(Option::as_ref) {
                let typed = typed_set::set_of(&id.table, from_kernel);
                content.handle = Some(from_kernel.handle);
                if Form::of(&typed) == Form::Interval {
                    let elements = read::elements(transport, id)?;
                    content.intervals = Intervals::of(&typed_set::elements_of(&typed, &elements));
                }
            }
            merging.sets.insert((*id).clone(), content);
        }
        if !merging.sets.is_empty() {
            merging.read_tables(transaction, transport)?;
        }
        Ok(merging)
    }

    /// Looks up the tables that the transaction deletes by their handles.
    fn read_tables(
        &mut self,
        transaction: &Transaction,
        transport: &mut (impl Transport + ?Sized),
    ) -> Result<(), Error> {
        let by_handle = transaction.operations().iter().filter_map(Operation::deleted);
        let by_handle = by_handle.filter_map(|target| match target {
            Target::Handle(HandleId::Table(family, _)) => Some(*family),
            _ => None,
        });
        for family in by_handle.collect::<HashSet<_>>() {
            for table in read::tables(transport, family)? {
                let id = TableId::new(table.family, table.name);
                self.tables.insert((table.family, table.handle), id);
            }
        }
        Ok(())
    }

    /// Carries out the operations of the transaction, and returns what is sent instead of those that change
    /// elements of these sets.
    pub(crate) fn simulate(mut self, transaction: &Transaction) -> Changes {
        for (index, operation) in transaction.operations().iter().enumerate() {
            match operation {
                Operation::Add(Object::Elements(elements))
                | Operation::Create(Object::Elements(elements)) => {
                    if let Some(content) = self.content(&elements.set, index) {
                        content.intervals.add(index, &elements.list);
                    }
                }
                Operation::Delete(Target::Elements(elements)) => {
                    if let Some(content) = self.content(&elements.set, index) {
                        content.intervals.delete(index, &elements.list, false);
                    }
                }
                Operation::Destroy(Target::Elements(elements)) => {
                    if let Some(content) = self.content(&elements.set, index) {
                        content.intervals.delete(index, &elements.list, true);
                    }
                }
                Operation::Flush(Flush::Set(set)) => self.empty_where(|id, _| *id == as_set(set)),
                Operation::Flush(Flush::Ruleset(family)) => {
                    self.empty_where(|id, _| *family == Family::UNSPEC || id.table.family == *family);
                }
                operation => operation.deleted().into_iter().for_each(|target| self.delete(target)),
            }
        }
        self.empty_where(|_, _| true);
        self.changes
    }

    /// Returns the content of a set that the operation changes.
    fn content(&mut self, set: &SetId, operation: usize) -> Option<&mut Content> {
        let content = self.sets.get_mut(&as_set(set))?;
        // Nothing is sent for this operation, unless it is the last one.
        self.changes.insert(operation, Change::default());
        content.last = Some(operation);
        Some(content)
    }

    fn delete(&mut self, target: &Target) {
        match target {
            Target::Table(table) => self.empty_where(|id, _| id.table == *table),
            Target::Set(set) => self.empty_where(|id, _| *id == as_set(set)),
            Target::Handle(HandleId::Table(family, handle)) => {
                if let Some(table) = self.tables.get(&(*family, *handle)).cloned() {
                    self.empty_where(|id, _| id.table == table);
                }
            }
            Target::Handle(HandleId::Set(table, handle)) => {
                self.empty_where(|id, content| id.table == *table && content.handle == Some(*handle));
            }
            _ => {}
        }
    }

    /// Completes the changes of sets, and continues with empty ones.
    fn empty_where(&mut self, which: impl Fn(&SetId, &Content) -> bool) {
        for (id, content) in &mut self.sets {
            if which(id, content) {
                let done = std::mem::take(content);
                if let Some(last) = done.last {
                    self.changes.insert(last, done.intervals.into_change());
                }
            }
        }
    }
}

/// Disjoint intervals by the bytes of their lowest key, the most significant first.
#[derive(Debug, Default)]
struct Intervals {
    all: BTreeMap<Vec<u8>, Interval>,
    /// Elements that the kernel has and the set no longer contains, and deletions that it is to refuse.
    deleted: Sent,
    /// Catch-all elements.
    others: Sent,
}

/// An element with the bounds of the keys that it stands for.
#[derive(Debug, Clone)]
struct Interval {
    low: Key,
    high: Key,
    /// The element with the comment, timeout and statements, whatever its bounds are.
    element: Element,
    /// Where it stems from; `None` for an interval that the kernel has.
    origin: Option<Origin>,
}

impl Interval {
    fn new(element: &Element, origin: Option<Origin>) -> Self {
        Self { low: element.key(), high: element.last(), element: element.clone(), origin }
    }

    fn into_element(self) -> Element {
        self.element.with_bounds(&self.low, &self.high)
    }

    /// Returns whether `key` is the one directly behind this interval.
    fn touches(&self, key: &Key) -> bool {
        successor(&self.high).is_some_and(|next| compare(&next, key) == Ordering::Equal)
    }
}

impl Intervals {
    fn of(elements: &[Element]) -> Self {
        let intervals = elements.iter().filter(|element| !element.is_catch_all());
        let intervals = intervals.map(|element| Interval::new(element, None));
        let all = intervals.map(|interval| (sortable(&interval.low), interval)).collect();
        Self { all, ..Self::default() }
    }

    /// Returns what is sent: what the kernel has to delete, then what it does not have yet.
    fn into_change(self) -> Change {
        let mut added = self.others;
        for interval in self.all.into_values() {
            if let Some(origin) = interval.origin {
                added.push(interval.into_element(), origin);
            }
        }
        Change { deleted: self.deleted, added }
    }

    fn add(&mut self, operation: usize, elements: &[Element]) {
        // Each with whether it is added by this operation.
        let mut all = Vec::with_capacity(elements.len());
        for (index, element) in elements.iter().enumerate() {
            let origin = (operation, index);
            match element.is_catch_all() {
                true => self.others.push(element.clone(), origin),
                false => all.push((Interval::new(element, Some(origin)), true)),
            }
        }
        for at in 0..all.len() {
            let Some((low, high)) = all.get(at).map(|(new, _)| (new.low, new.high)) else { break };
            self.take_near(low, high, &mut all);
        }
        // The sort is stable: of two that start with the same key, the new one comes first, as in nft.
        sort::by(&mut all, |(a, _), (b, _)| compare(&a.low, &b.low));
        let mut last: Option<(Interval, bool)> = None;
        for (next, next_is_new) in all {
            let Some((before, before_is_new)) = &mut last else {
                last = Some((next, next_is_new));
                continue;
            };
            let overlaps = compare(&next.low, &before.high).is_le();
            // Two existing ones may be side by side if another program has added them.
            let joins = (overlaps || before.touches(&next.low)) && (*before_is_new || next_is_new);
            if overlaps && compare(&next.high, &before.high).is_le() {
                // An existing one that it contains makes way.
                self.remove(next, (operation, 0));
            } else if joins && *before_is_new {
                before.high = next.high;
                self.remove(next, (operation, 0));
            } else if joins {
                let joined = Interval { low: before.low, ..next };
                self.remove(std::mem::replace(before, joined), (operation, 0));
                *before_is_new = true;
            } else {
                self.keep(std::mem::replace(before, next));
                *before_is_new = next_is_new;
            }
        }
        last.into_iter().for_each(|(last, _)| self.keep(last));
    }

    /// Removes the intervals that overlap or touch these keys, and those that touch one of them in turn.
    fn take_near(&mut self, mut low: Key, mut high: Key, taken: &mut Vec<(Interval, bool)>) {
        loop {
            let behind = successor(&high).unwrap_or(high);
            let Some((start, near)) = self.all.range(..=sortable(&behind)).next_back() else { return };
            if compare(&near.high, &low).is_lt() && !near.touches(&low) {
                return;
            }
            let start = start.clone();
            let Some(near) = self.all.remove(&start) else { return };
            low = std::cmp::min_by(low, near.low, compare);
            high = std::cmp::max_by(high, near.high, compare);
            taken.push((near, false));
        }
    }

    fn keep(&mut self, interval: Interval) {
        self.all.insert(sortable(&interval.low), interval);
    }

    /// Deletes an interval that is no longer part of the set, if the kernel has it.
    fn remove(&mut self, interval: Interval, origin: Origin) {
        if interval.origin.is_none() {
            self.deleted.push(interval.into_element(), origin);
        }
    }

    /// Deletes elements, or parts of them; with `destroy`, those that are there.
    fn delete(&mut self, operation: usize, elements: &[Element], destroy: bool) {
        for (index, element) in elements.iter().enumerate() {
            let (part, origin) = (Interval::new(element, None), (operation, index));
            let around = if element.is_catch_all() { None } else { self.take_around(&part) };
            let Some(around) = around else {
                if !destroy {
                    self.deleted.push(element.clone(), origin);
                }
                continue;
            };
            let rest = |low, high| Interval { low, high, origin: Some(origin), ..around.clone() };
            if compare(&around.low, &part.low).is_lt() {
                let mut before = part.low;
                before.decrement();
                self.keep(rest(around.low, before));
            }
            if compare(&part.high, &around.high).is_lt()
                && let Some(behind) = successor(&part.high)
            {
                self.keep(rest(behind, around.high));
            }
            self.remove(around, origin);
        }
    }

    /// Removes the interval that contains another one, and returns it.
    fn take_around(&mut self, part: &Interval) -> Option<Interval> {
        let (start, around) = self.all.range(..=sortable(&part.low)).next_back()?;
        if compare(&part.high, &around.high).is_gt() {
            return None;
        }
        let start = start.clone();
        self.all.remove(&start)
    }
}

/// Joins the elements of a set that is created with them, as they are joined when they are added.
#[cfg(feature = "reconcile")]
pub(crate) fn joined(elements: &[Element]) -> Vec<Element> {
    let mut intervals = Intervals::default();
    intervals.add(0, elements);
    let mut joined = intervals.into_change().added.list;
    sort::by(&mut joined, order);
    joined
}

/// Returns the id of a set or map as that of a set: references do not distinguish the two.
pub(crate) fn as_set(id: &SetId) -> SetId {
    SetId { map: false, ..id.clone() }
}

/// Returns whether the kernel stores intervals in a set.
pub(crate) fn has_intervals(set: &read::Set) -> bool {
    set.flags.contains(SetFlags::INTERVAL)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{Comment, Number};

    fn element(low: u32, high: u32) -> Element {
        Element::range(Number(low), Number(high))
    }

    fn commented(low: u32, high: u32, comment: &str) -> Element {
        element(low, high).comment(Comment::lossy(comment))
    }

    /// Returns what is sent for operations, which add or delete elements, as text.
    fn sent(there: &[Element], operations: &[(bool, &[Element])]) -> (String, String) {
        let mut set = Intervals::of(there);
        for (operation, (add, elements)) in operations.iter().enumerate() {
            match add {
                true => set.add(operation, elements),
                false => set.delete(operation, elements, false),
            }
        }
        let change = set.into_change();
        let text = |sent: &Sent| sent.list.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        (text(&change.deleted), text(&change.added))
    }

    fn pair(deleted: &str, added: &str) -> (String, String) {
        (deleted.to_owned(), added.to_owned())
    }

    #[test]
    fn what_an_interval_contains_is_not_sent() {
        let added = [element(12, 15), element(20, 20)];
        assert_eq!(sent(&[element(10, 20)], &[(true, &added)]), pair("", ""));
    }

    #[test]
    fn what_overlaps_or_touches_is_replaced_by_the_whole() {
        let there = [commented(0, 9, "a"), element(20, 30), element(31, 40), element(50, 60)];
        let change = sent(&there, &[(true, &[commented(10, 19, "b")])]);
        assert_eq!(change, pair("0-9 comment \"a\", 20-30, 31-40", "0-40 comment \"b\""));
    }

    #[test]
    fn a_part_is_cut_out_and_the_rest_keeps_its_comment() {
        let there = [commented(0, 9, "a")];
        let change = sent(&there, &[(false, &[element(3, 3), element(5, 6)])]);
        let rests = "0-2 comment \"a\", 4 comment \"a\", 7-9 comment \"a\"";
        assert_eq!(change, pair("0-9 comment \"a\"", rests));
        // What is in no single interval is left to the kernel.
        assert_eq!(sent(&[element(0, 2), element(4, 4)], &[(false, &[element(2, 4)])]), pair("2-4", ""));
    }

    #[test]
    fn what_a_transaction_adds_and_deletes_again_is_not_sent() {
        let change = sent(&[element(5, 9)], &[(true, &[element(1, 4)]), (false, &[element(1, 9)])]);
        assert_eq!(change, pair("5-9", ""));
    }

    #[test]
    fn the_ends_of_the_type_are_keys_like_others() {
        let ends = [element(0, 0), element(u32::MAX, u32::MAX)];
        let there = [element(0, u32::MAX)];
        assert_eq!(sent(&there, &[(false, &ends)]), pair("0-4294967295", "1-4294967294"));
        let there = [element(1, u32::MAX - 1)];
        assert_eq!(sent(&there, &[(true, &ends)]), pair("1-4294967294", "0-4294967295"));
    }

    proptest! {
        /// The kernel's view: whatever is sent deletes what is there and adds what overlaps nothing, and the
        /// keys are those of the sum of all operations.
        #[test]
        fn what_is_sent_leads_to_the_same_keys(
            history in prop::collection::vec(
                prop::collection::vec(
                    (any::<bool>(), prop::collection::vec((0_u32..60, 0_u32..8), 1..5)), 1..4), 1..8)
        ) {
            let mut kernel: Vec<Element> = Vec::new();
            let mut keys = [false; 80];
            for transaction in history {
                let mut set = Intervals::of(&kernel);
                for (operation, (add, ranges)) in transaction.iter().enumerate() {
                    let mut ranges = ranges.clone();
                    if !add {
                        // Only what is there, each key once.
                        ranges.retain(|(low, more)| {
                            let range = &mut keys[*low as usize..=(low + more) as usize];
                            let all = range.iter().all(|key| *key);
                            if all { range.fill(false); }
                            all
                        });
                    }
                    let elements: Vec<_> = ranges.iter().map(|(low, more)| element(*low, low + more)).collect();
                    if *add {
                        for (low, more) in &ranges {
                            keys[*low as usize..=(low + more) as usize].fill(true);
                        }
                        set.add(operation, &elements);
                    } else {
                        set.delete(operation, &elements, false);
                    }
                }
                let change = set.into_change();
                for deleted in &change.deleted.list {
                    let at = kernel.iter().position(|there| there == deleted);
                    prop_assert!(at.is_some(), "{deleted:?} is not there: {kernel:?}");
                    kernel.remove(at.unwrap());
                }
                let bounds = |element: &Element| {
                    let number = |key: Key| u32::from_ne_bytes(key.bytes().try_into().unwrap());
                    (number(element.key()), number(element.last()))
                };
                for added in change.added.list {
                    let (low, high) = bounds(&added);
                    let apart = |there: &Element| high + 1 < bounds(there).0 || bounds(there).1 + 1 < low;
                    prop_assert!(kernel.iter().all(apart), "{added:?} touches one of {kernel:?}");
                    kernel.push(added);
                }
                let mut there = [false; 80];
                for (low, high) in kernel.iter().map(bounds) {
                    there[low as usize..=high as usize].fill(true);
                }
                prop_assert_eq!(there, keys);
            }
        }
    }
}
