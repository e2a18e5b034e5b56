//! The order of elements in a set, and which elements exclude each other.
//!
//! The kernel has several set backends. Those with single keys behave alike. Intervals are starts and ends in
//! one tree, and an overlap is detected by looking at the neighbours. Concatenations with ranges are a list,
//! in which a key is searched from the front. This file reproduces which overlaps each of them detects.

use std::cmp::Reverse;

use crate::fake::store::{Clash, Element, Slot, Store};

impl Store {
    pub(super) fn place_of_key(&self, element: &Element) -> Result<Slot, Clash> {
        let slot = Slot { key: Reverse(element.key.clone()), end: false, order: 0 };
        if self.elements.contains_key(&slot) { Err(Clash::Same(slot)) } else { Ok(slot) }
    }

    /// Returns the place of a start or an end, compared with its neighbours as the transaction sees them.
    pub(super) fn place_of_bound(&mut self, new: &Element, anonymous: bool) -> Result<Slot, Clash> {
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

    /// Returns the bound with exactly this key. An end can only be deleted after its start.
    pub(super) fn bound_to_delete(&mut self, wanted: &Element) -> Option<Slot> {
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

    pub(super) fn place_of_range(&mut self, new: &Element, parts: &[usize]) -> Result<Slot, Clash> {
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

    /// Returns the first added one of the elements that contain a key.
    pub(super) fn containing(&self, key: &[u8], parts: &[usize]) -> Option<Slot> {
        let holds = |element: &Element| {
            fields(&element.key, parts)
                .zip(fields(element.last(), parts))
                .zip(fields(key, parts))
                .all(|((low, high), value)| low <= value && value <= high)
        };
        self.elements.iter().find(|(_, element)| holds(element)).map(|(slot, _)| slot.clone())
    }
}

/// Returns the position before all elements of a key.
pub(super) fn first_of(key: &[u8]) -> Slot {
    Slot { key: Reverse(key.to_vec()), end: false, order: i64::MIN }
}

/// Returns the position after all elements of a key.
pub(super) fn last_of(key: &[u8]) -> Slot {
    Slot { key: Reverse(key.to_vec()), end: true, order: i64::MAX }
}

/// Splits a key into its fields, each padded to four bytes in the key.
fn fields<'a>(key: &'a [u8], parts: &'a [usize]) -> impl Iterator<Item = &'a [u8]> {
    let mut at = 0;
    parts.iter().map(move |bytes| {
        let field = key.get(at..at + bytes).unwrap_or_default();
        at += bytes.next_multiple_of(4);
        field
    })
}
