//! The elements of a set: inserted, found, deleted, and removed when they expire.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashSet};

use crate::expr::Expr;
use crate::fake::overlap::{first_of, last_of};
use crate::object::element::decode::ElementFlags;

/// The elements of one set.
#[derive(Debug, Clone)]
pub(super) struct Store {
    pub(super) backend: SetBackend,
    pub(super) elements: BTreeMap<Slot, Element>,
    pub(super) catch_all: Option<Element>,
    /// The number of elements added so far.
    numbers: u64,
    /// The number of elements that count towards the size.
    live: usize,
    /// The number of elements that the transaction deletes: the kernel counts them until it sends the event.
    deleted: usize,
    pub(super) serial: i64,
    /// The start that was last found to exist already, or deleted: the end that follows belongs to it.
    pub(super) start: Option<Slot>,
}

/// The backend of a set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SetBackend {
    /// Single keys.
    Keys,
    /// Starts and ends of intervals. In an anonymous set two starts may follow each other.
    Intervals { anonymous: bool },
    /// Concatenations with ranges, with the length of each field in bytes.
    Ranges(Vec<usize>),
}

/// A stored element.
#[derive(Debug, Clone)]
pub(super) struct Element {
    pub(super) key: Vec<u8>,
    pub(super) key_end: Option<Vec<u8>>,
    /// `NFT_SET_ELEM_*`
    pub(super) flags: u32,
    pub(super) data: ElementData,
    /// The timeout and the remaining lifetime in milliseconds, in a set with timeouts; 0 for none.
    pub(super) time: Option<(u64, u64)>,
    pub(super) exprs: Vec<Expr>,
    pub(super) user_data: Vec<u8>,
    /// The number of the element among all that the set has ever had.
    pub(super) number: u64,
    /// `false` if the transaction deletes the element: neighbouring intervals see it until the commit.
    pub(super) active: bool,
}

/// The data of an element.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ElementData {
    None,
    Value(Vec<u8>),
    /// The number of a verdict and, for a jump, the handle of the chain.
    Verdict(u32, Option<u64>),
    /// The handle of a stateful object.
    Object(u64),
}

/// The place of an element: by descending key, and for the same key starts before ends.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Slot {
    pub(super) key: Reverse<Vec<u8>>,
    pub(super) end: bool,
    pub(super) order: i64,
}

/// The reason why an element cannot be inserted.
pub(super) enum Clash<T = Slot> {
    /// The element exists already.
    Same(T),
    /// It overlaps with an existing one.
    Overlap,
    /// The marker of the empty space before all intervals exists already.
    Mark,
    /// The end is below the start.
    Backwards,
}

impl Element {
    pub(super) fn new(key: Vec<u8>, key_end: Option<Vec<u8>>, flags: u32) -> Self {
        Self {
            key,
            key_end,
            flags,
            data: ElementData::None,
            time: None,
            exprs: Vec::new(),
            user_data: Vec::new(),
            number: 0,
            active: true,
        }
    }

    pub(super) fn is_end(&self) -> bool {
        self.flags & INTERVAL_END != 0
    }

    pub(super) fn is_catch_all(&self) -> bool {
        self.flags & CATCHALL != 0
    }

    pub(super) fn last(&self) -> &[u8] {
        self.key_end.as_deref().unwrap_or(&self.key)
    }

    pub(super) fn is_mark(&self) -> bool {
        self.is_end() && self.key.iter().all(|byte| *byte == 0)
    }
}

impl Store {
    pub(super) fn new(backend: SetBackend) -> Self {
        Self {
            backend,
            elements: BTreeMap::new(),
            catch_all: None,
            numbers: 0,
            live: 0,
            deleted: 0,
            serial: 0,
            start: None,
        }
    }

    /// Returns the elements, the catch-all element last.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Element> {
        self.elements.values().filter(|element| element.active).chain(&self.catch_all)
    }

    pub(super) fn get(&self, slot: &Slot) -> Option<&Element> {
        self.elements.get(slot)
    }

    /// Updates the timeout of an element, if it still exists.
    pub(super) fn renew(&mut self, number: u64, timeout: Option<u64>, left: Option<u64>) {
        let all = self.elements.values_mut().chain(&mut self.catch_all);
        for (existing_timeout, existing_left) in
            all.filter(|e| e.number == number).filter_map(|e| e.time.as_mut())
        {
            *existing_timeout = timeout.unwrap_or(*existing_timeout);
            *existing_left = left.unwrap_or(*existing_left);
        }
    }

    /// Returns the expressions of the elements with these numbers.
    pub(super) fn exprs_of(&mut self, numbers: &HashSet<u64>) -> impl Iterator<Item = &mut Expr> {
        let all = self.elements.values_mut().chain(&mut self.catch_all);
        all.filter(|element| numbers.contains(&element.number)).flat_map(|element| &mut element.exprs)
    }

    /// Returns the number of elements that count towards the size.
    pub(super) fn live(&self) -> usize {
        self.live
    }

    /// Returns the number of elements that the kernel reports.
    pub(super) fn count(&self) -> usize {
        let count = self.live + self.deleted;
        if let SetBackend::Intervals { .. } = self.backend { count / 2 } else { count }
    }

    /// Counts an element as deleted, once its event has been built.
    pub(super) fn finish_deletion(&mut self) {
        self.deleted = self.deleted.saturating_sub(1);
    }

    /// Returns how many elements the set may have beyond its size: one if the lowest element is the marker of
    /// the empty space before all intervals. The kernel recognises the marker by a key without a byte of
    /// value 1.
    pub(super) fn size_allowance(&self) -> usize {
        let lowest = self.elements.iter().next_back();
        let mark = lowest.is_some_and(|(slot, _)| slot.end && !slot.key.0.contains(&1));
        usize::from(matches!(self.backend, SetBackend::Intervals { .. }) && mark)
    }

    /// Inserts the catch-all element; if there is one already, returns that.
    pub(super) fn insert_catch_all(&mut self, mut element: Element) -> Option<&Element> {
        if self.catch_all.is_some() {
            return self.catch_all.as_ref();
        }
        self.numbers += 1;
        element.number = self.numbers;
        self.catch_all = Some(element);
        None
    }

    /// Inserts an element.
    pub(super) fn insert(&mut self, mut element: Element) -> Result<(), Clash> {
        let slot = match &self.backend {
            SetBackend::Keys => self.place_of_key(&element)?,
            SetBackend::Intervals { anonymous } => {
                let anonymous = *anonymous;
                self.place_of_bound(&element, anonymous)?
            }
            SetBackend::Ranges(parts) => {
                let parts = parts.clone();
                self.place_of_range(&element, &parts)?
            }
        };
        self.live += 1;
        self.numbers += 1;
        element.number = self.numbers;
        self.elements.insert(slot, element);
        Ok(())
    }

    /// Deletes the element with the key, and for intervals with the same kind of bound.
    pub(super) fn delete(&mut self, wanted: &Element) -> Option<Element> {
        let slot = match &self.backend {
            SetBackend::Keys => {
                let slot = Slot { key: Reverse(wanted.key.clone()), end: false, order: 0 };
                self.elements.contains_key(&slot).then_some(slot)?
            }
            SetBackend::Intervals { .. } => self.bound_to_delete(wanted)?,
            SetBackend::Ranges(parts) => self.containing(&wanted.key, parts)?,
        };
        self.live -= 1;
        self.deleted += 1;
        if let SetBackend::Intervals { .. } = self.backend {
            let element = self.elements.get_mut(&slot)?;
            element.active = false;
            return Some(element.clone());
        }
        self.elements.remove(&slot)
    }

    /// Removes all elements.
    pub(super) fn clear(&mut self) -> Vec<Element> {
        self.deleted += self.live;
        self.live = 0;
        let out: Vec<Element> = self.iter().cloned().collect();
        if let SetBackend::Intervals { .. } = self.backend {
            self.elements.values_mut().for_each(|element| element.active = false);
        } else {
            self.elements.clear();
        }
        self.catch_all = None;
        out
    }

    /// Returns the element that contains a key.
    pub(super) fn find(&self, key: &[u8], end: bool) -> Option<&Element> {
        let slot = match &self.backend {
            SetBackend::Keys => Slot { key: Reverse(key.to_vec()), end: false, order: 0 },
            SetBackend::Intervals { .. } if end => {
                let mut here = self.elements.range(first_of(key)..=last_of(key)).filter(|(_, e)| e.active);
                let found = here.find(|(slot, _)| slot.end).or_else(|| {
                    let above = self.elements.range(..first_of(key)).rfind(|(_, e)| e.active);
                    above.filter(|(slot, _)| slot.end)
                });
                found?.0.clone()
            }
            SetBackend::Intervals { .. } => {
                let below = self.elements.range(first_of(key)..).filter(|(_, e)| e.active);
                let (slot, _) =
                    below.clone().find(|(slot, _)| slot.key.0 == key && !slot.end).or_else(|| {
                        let mut below = below;
                        below.next().filter(|(slot, _)| !slot.end)
                    })?;
                slot.clone()
            }
            SetBackend::Ranges(parts) => self.containing(key, parts)?,
        };
        self.elements.get(&slot)
    }

    /// Removes the elements that the transaction deleted.
    pub(super) fn commit(&mut self) {
        self.elements.retain(|_, element| element.active);
        self.start = None;
        self.live = self.elements.len();
        self.deleted = 0;
    }

    /// Advances the clock, and returns the expired elements.
    pub(super) fn advance(&mut self, millis: u64) -> Vec<Element> {
        let mut expired = Vec::new();
        let mut keep = |element: &mut Element| {
            let Some((1.., left)) = element.time.as_mut() else { return true };
            *left = left.saturating_sub(millis);
            let stays = *left > 0;
            if !stays {
                expired.push(element.clone());
            }
            stays
        };
        // An end has no timeout of its own and expires with its start, which follows it in the order.
        let mut ends = Vec::new();
        let mut dead = Vec::new();
        for (slot, element) in &mut self.elements {
            if slot.end {
                ends.push(slot.clone());
                continue;
            }
            let stays = keep(element);
            let end = ends.pop();
            ends.clear();
            if !stays {
                dead.extend(end);
                dead.push(slot.clone());
            }
        }
        for slot in dead {
            self.elements.remove(&slot);
        }
        if self.catch_all.as_mut().is_some_and(|element| !keep(element)) {
            self.catch_all = None;
        }
        self.live = self.elements.len();
        expired
    }
}

/// `NFT_SET_ELEM_INTERVAL_END`
pub(super) const INTERVAL_END: u32 = ElementFlags::INTERVAL_END.bits();
/// `NFT_SET_ELEM_CATCHALL`
pub(super) const CATCHALL: u32 = ElementFlags::CATCHALL.bits();
