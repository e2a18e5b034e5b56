//! Where a set keeps its elements: put in, found, taken out, and gone when their time is up.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashSet};

use crate::expr::Expr;
use crate::fake::overlap::{first_of, last_of};

/// The elements of one set.
#[derive(Debug, Clone)]
pub(super) struct Store {
    pub(super) form: Form,
    pub(super) elements: BTreeMap<Slot, Element>,
    pub(super) catch_all: Option<Element>,
    /// Elements so far.
    numbers: u64,
    /// Elements that count towards the size.
    live: usize,
    /// Elements that the transaction deletes: the kernel counts them until it tells of that.
    gone: usize,
    pub(super) serial: i64,
    /// The start that was last found to be there already, or deleted: its end belongs to it.
    pub(super) start: Option<Slot>,
}

/// How a set keeps its elements.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Form {
    /// Single keys.
    Keys,
    /// Starts and ends. Of a set without a name, two starts may follow each other.
    Intervals { anonymous: bool },
    /// Concatenations with ranges, with the bytes of each part.
    Ranges(Vec<usize>),
}

/// An element that is held.
#[derive(Debug, Clone)]
pub(super) struct Element {
    pub(super) key: Vec<u8>,
    pub(super) key_end: Option<Vec<u8>>,
    /// `NFT_SET_ELEM_*`
    pub(super) flags: u32,
    pub(super) data: ElementData,
    /// How long it stays and how long it still stays, in milliseconds, in a set with timeouts; 0 for ever.
    pub(super) time: Option<(u64, u64)>,
    pub(super) exprs: Vec<Expr>,
    pub(super) user_data: Vec<u8>,
    /// Which it is, of those that the set has ever had.
    pub(super) number: u64,
    /// Of one that the transaction deletes: the neighbours of an interval see it until the end.
    pub(super) active: bool,
}

/// What an element maps to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ElementData {
    None,
    Value(Vec<u8>),
    /// A verdict's number and, of a jump, the chain's handle.
    Verdict(u32, Option<u64>),
    /// A stateful object's handle.
    Object(u64),
}

/// Where an element is: keys from the highest, at one key starts before ends.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Slot {
    pub(super) key: Reverse<Vec<u8>>,
    pub(super) end: bool,
    pub(super) order: i64,
}

/// Why an element cannot be put in.
pub(super) enum Clash<T = Slot> {
    /// It is there already.
    Same(T),
    /// It overlaps with one that is there.
    Overlap,
    /// The mark of the empty space at the start is there already.
    Mark,
    /// Its end is below its start.
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
    pub(super) fn new(form: Form) -> Self {
        Self {
            form,
            elements: BTreeMap::new(),
            catch_all: None,
            numbers: 0,
            live: 0,
            gone: 0,
            serial: 0,
            start: None,
        }
    }

    /// The elements, the catch-all last.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Element> {
        self.elements.values().filter(|element| element.active).chain(&self.catch_all)
    }

    pub(super) fn get(&self, slot: &Slot) -> Option<&Element> {
        self.elements.get(slot)
    }

    /// Gives an element another time, if it is still there.
    pub(super) fn renew(&mut self, number: u64, timeout: Option<u64>, left: Option<u64>) {
        let all = self.elements.values_mut().chain(&mut self.catch_all);
        for (held_timeout, held_left) in all.filter(|e| e.number == number).filter_map(|e| e.time.as_mut()) {
            *held_timeout = timeout.unwrap_or(*held_timeout);
            *held_left = left.unwrap_or(*held_left);
        }
    }

    /// The expressions of those elements that have these numbers.
    pub(super) fn exprs_of(&mut self, numbers: &HashSet<u64>) -> impl Iterator<Item = &mut Expr> {
        let all = self.elements.values_mut().chain(&mut self.catch_all);
        all.filter(|element| numbers.contains(&element.number)).flat_map(|element| &mut element.exprs)
    }

    /// How many count towards the size.
    pub(super) fn live(&self) -> usize {
        self.live
    }

    /// How many the kernel says that there are.
    pub(super) fn count(&self) -> usize {
        let count = self.live + self.gone;
        if let Form::Intervals { .. } = self.form { count / 2 } else { count }
    }

    /// A deletion has been told.
    pub(super) fn told(&mut self) {
        self.gone = self.gone.saturating_sub(1);
    }

    /// One more than the size is allowed where the lowest element is the mark of the empty space before all intervals. The kernel
    /// recognises that by there being no byte of value 1 in it.
    pub(super) fn spare(&self) -> usize {
        let lowest = self.elements.iter().next_back();
        let mark = lowest.is_some_and(|(slot, _)| slot.end && !slot.key.0.contains(&1));
        usize::from(matches!(self.form, Form::Intervals { .. }) && mark)
    }

    /// Puts the catch-all in; where there is one already, it is returned.
    pub(super) fn insert_catch_all(&mut self, mut element: Element) -> Option<&Element> {
        if self.catch_all.is_some() {
            return self.catch_all.as_ref();
        }
        self.numbers += 1;
        element.number = self.numbers;
        self.catch_all = Some(element);
        None
    }

    /// Puts an element in.
    pub(super) fn insert(&mut self, mut element: Element) -> Result<(), Clash> {
        let slot = match &self.form {
            Form::Keys => self.place_of_key(&element)?,
            Form::Intervals { anonymous } => {
                let anonymous = *anonymous;
                self.place_of_bound(&element, anonymous)?
            }
            Form::Ranges(parts) => {
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

    /// Takes out the element that a key, and for intervals its being an end, finds.
    pub(super) fn delete(&mut self, wanted: &Element) -> Option<Element> {
        let slot = match &self.form {
            Form::Keys => {
                let slot = Slot { key: Reverse(wanted.key.clone()), end: false, order: 0 };
                self.elements.contains_key(&slot).then_some(slot)?
            }
            Form::Intervals { .. } => self.bound_to_delete(wanted)?,
            Form::Ranges(parts) => self.containing(&wanted.key, parts)?,
        };
        self.live -= 1;
        self.gone += 1;
        if let Form::Intervals { .. } = self.form {
            let element = self.elements.get_mut(&slot)?;
            element.active = false;
            return Some(element.clone());
        }
        self.elements.remove(&slot)
    }

    /// Takes all elements out.
    pub(super) fn clear(&mut self) -> Vec<Element> {
        self.gone += self.live;
        self.live = 0;
        let out: Vec<Element> = self.iter().cloned().collect();
        if let Form::Intervals { .. } = self.form {
            self.elements.values_mut().for_each(|element| element.active = false);
        } else {
            self.elements.clear();
        }
        self.catch_all = None;
        out
    }

    /// The element that holds a key.
    pub(super) fn find(&self, key: &[u8], end: bool) -> Option<&Element> {
        let slot = match &self.form {
            Form::Keys => Slot { key: Reverse(key.to_vec()), end: false, order: 0 },
            Form::Intervals { .. } if end => {
                let mut here = self.elements.range(first_of(key)..=last_of(key)).filter(|(_, e)| e.active);
                let found = here.find(|(slot, _)| slot.end).or_else(|| {
                    let above = self.elements.range(..first_of(key)).rfind(|(_, e)| e.active);
                    above.filter(|(slot, _)| slot.end)
                });
                found?.0.clone()
            }
            Form::Intervals { .. } => {
                let below = self.elements.range(first_of(key)..).filter(|(_, e)| e.active);
                let (slot, _) =
                    below.clone().find(|(slot, _)| slot.key.0 == key && !slot.end).or_else(|| {
                        let mut below = below;
                        below.next().filter(|(slot, _)| !slot.end)
                    })?;
                slot.clone()
            }
            Form::Ranges(parts) => self.containing(key, parts)?,
        };
        self.elements.get(&slot)
    }

    /// The end of a transaction: what it deleted is gone.
    pub(super) fn commit(&mut self) {
        self.elements.retain(|_, element| element.active);
        self.start = None;
        self.live = self.elements.len();
        self.gone = 0;
    }

    /// Lets time pass; returns the elements whose time is up.
    pub(super) fn advance(&mut self, millis: u64) -> Vec<Element> {
        let mut gone = Vec::new();
        let mut keep = |element: &mut Element| {
            let Some((1.., left)) = element.time.as_mut() else { return true };
            *left = left.saturating_sub(millis);
            let stays = *left > 0;
            if !stays {
                gone.push(element.clone());
            }
            stays
        };
        // An end has no time of its own and goes with the start below it, the next in the order.
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
        gone
    }
}

/// `NFT_SET_ELEM_INTERVAL_END`
pub(super) const INTERVAL_END: u32 = 1;
/// `NFT_SET_ELEM_CATCHALL`
pub(super) const CATCHALL: u32 = 2;
