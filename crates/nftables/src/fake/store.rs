//! Where a set keeps its elements, and which of them exclude each other.
//!
//! The kernel has several representations. Those that hold single keys behave alike. Intervals are starts and ends in one
//! order, and an overlap is found by looking at the neighbours. Concatenations with ranges are a list, in which a key is
//! searched from the front. What they refuse, and what they let pass, is theirs.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::expr::Expr;

/// The elements of one set.
#[derive(Debug, Clone)]
pub(super) struct Store {
    pub(super) form: Form,
    elements: BTreeMap<Slot, Element>,
    pub(super) catch_all: Option<Element>,
    /// Elements so far.
    numbers: u64,
    /// Elements that count towards the size.
    live: usize,
    serial: i64,
    /// The start that was last found to be there already, or deleted: its end belongs to it.
    start: Option<Slot>,
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
    active: bool,
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
    key: Reverse<Vec<u8>>,
    end: bool,
    order: i64,
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

    fn last(&self) -> &[u8] {
        self.key_end.as_deref().unwrap_or(&self.key)
    }

    fn is_mark(&self) -> bool {
        self.is_end() && self.key.iter().all(|byte| *byte == 0)
    }
}

impl Store {
    pub(super) fn new(form: Form) -> Self {
        Self { form, elements: BTreeMap::new(), catch_all: None, numbers: 0, live: 0, serial: 0, start: None }
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

    /// How many count towards the size.
    pub(super) fn live(&self) -> usize {
        self.live
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
        if let Form::Intervals { .. } = self.form {
            let element = self.elements.get_mut(&slot)?;
            element.active = false;
            return Some(element.clone());
        }
        self.elements.remove(&slot)
    }

    /// Takes all elements out.
    pub(super) fn clear(&mut self) -> Vec<Element> {
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
            Form::Intervals { .. } => {
                let below = self.elements.range(first_of(key)..).filter(|(_, e)| e.active);
                let (slot, _) =
                    below.clone().find(|(slot, _)| slot.key.0 == key && slot.end == end).or_else(|| {
                        let mut below = below;
                        below.next().filter(|(slot, _)| slot.end == end)
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

    fn place_of_key(&self, element: &Element) -> Result<Slot, Clash> {
        let slot = Slot { key: Reverse(element.key.clone()), end: false, order: 0 };
        if self.elements.contains_key(&slot) { Err(Clash::Same(slot)) } else { Ok(slot) }
    }

    /// A start or an end, between its neighbours of the transaction's view.
    fn place_of_bound(&mut self, new: &Element, anonymous: bool) -> Result<Slot, Clash> {
        let end = new.is_end();
        let active = |range: &(&Slot, &Element)| range.1.active;
        let above = self.elements.range(..first_of(&new.key)).rfind(active).map(|(s, _)| s.clone());
        let here: Vec<Slot> = self
            .elements
            .range(first_of(&new.key)..=last_of(&new.key))
            .filter(active)
            .map(|(slot, _)| slot.clone())
            .collect();
        let start_here = here.iter().find(|slot| !slot.end).cloned();
        let end_here = here.iter().find(|slot| slot.end).cloned();
        let below = self
            .elements
            .range((std::ops::Bound::Excluded(last_of(&new.key)), std::ops::Bound::Unbounded))
            .find(active)
            .map(|(slot, _)| slot.clone());
        let lower = end_here.clone().or_else(|| below.clone());
        let upper = start_here.clone().or(above);

        if new.is_mark() || !end {
            self.start = None;
        }
        if !end && let Some(same) = start_here {
            self.start = Some(same.clone());
            return Err(Clash::Same(same));
        }
        if end && let Some(same) = end_here {
            if new.is_mark() {
                return Err(Clash::Mark);
            }
            let start = self.start.take();
            let next = below.filter(|slot| !slot.end);
            return Err(if start.is_none() || start == next { Clash::Same(same) } else { Clash::Overlap });
        }
        if let Some(lower) = &lower {
            if !lower.end && !end {
                let before = self.elements.range(..lower).next_back();
                if !anonymous || before.is_some_and(|(slot, _)| slot.end) {
                    return Err(Clash::Overlap);
                }
            }
            if lower.end && end {
                return Err(Clash::Overlap);
            }
        }
        if end && upper.is_some_and(|upper| upper.end) {
            return Err(Clash::Overlap);
        }
        self.serial += 1;
        let order = if end { -self.serial } else { self.serial };
        Ok(Slot { key: Reverse(new.key.clone()), end, order })
    }

    /// The bound with just this key. An end goes only with the start that went before it.
    fn bound_to_delete(&mut self, wanted: &Element) -> Option<Slot> {
        let end = wanted.is_end();
        if !end || wanted.is_mark() {
            self.start = None;
        }
        let (slot, _) = self
            .elements
            .range(first_of(&wanted.key)..=last_of(&wanted.key))
            .find(|(slot, element)| slot.end == end && element.active)?;
        let slot = slot.clone();
        if !end {
            self.start = Some(slot.clone());
            return Some(slot);
        }
        let Some(start) = self.start.take() else { return Some(slot) };
        let after = (std::ops::Bound::Excluded(slot.clone()), std::ops::Bound::Unbounded);
        let (next, element) = self.elements.range(after).next()?;
        (!next.end && !element.active && *next == start).then_some(slot)
    }

    fn place_of_range(&mut self, new: &Element, parts: &[usize]) -> Result<Slot, Clash> {
        if let Some(slot) = self.containing(&new.key, parts) {
            let same = self.elements.get(&slot).is_some_and(|e| e.key == new.key && e.last() == new.last());
            return Err(if same { Clash::Same(slot) } else { Clash::Overlap });
        }
        if self.containing(new.last(), parts).is_some() {
            return Err(Clash::Overlap);
        }
        if fields(&new.key, parts).zip(fields(new.last(), parts)).any(|(low, high)| low > high) {
            return Err(Clash::Backwards);
        }
        self.serial += 1;
        Ok(Slot { key: Reverse(Vec::new()), end: false, order: self.serial })
    }

    /// The first element that was put in of those that hold a key.
    fn containing(&self, key: &[u8], parts: &[usize]) -> Option<Slot> {
        let holds = |element: &Element| {
            fields(&element.key, parts)
                .zip(fields(element.last(), parts))
                .zip(fields(key, parts))
                .all(|((low, high), value)| low <= value && value <= high)
        };
        self.elements.iter().find(|(_, element)| holds(element)).map(|(slot, _)| slot.clone())
    }
}

/// Before all places of a key.
fn first_of(key: &[u8]) -> Slot {
    Slot { key: Reverse(key.to_vec()), end: false, order: i64::MIN }
}

/// Behind all places of a key.
fn last_of(key: &[u8]) -> Slot {
    Slot { key: Reverse(key.to_vec()), end: true, order: i64::MAX }
}

/// The parts of a key, each padded to four bytes in it.
fn fields<'a>(key: &'a [u8], parts: &'a [usize]) -> impl Iterator<Item = &'a [u8]> {
    let mut at = 0;
    parts.iter().map(move |bytes| {
        let field = key.get(at..at + bytes).unwrap_or_default();
        at += bytes.next_multiple_of(4);
        field
    })
}

/// `NFT_SET_ELEM_INTERVAL_END`
pub(super) const INTERVAL_END: u32 = 1;
/// `NFT_SET_ELEM_CATCHALL`
pub(super) const CATCHALL: u32 = 2;
