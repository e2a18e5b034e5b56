//! What packets a rule is left with: tests of bits, in a form that two ways to say the same share.

use std::ops::Range;

use crate::compile::raise::meaning::set::Members;

/// A bit of a register.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Bit {
    Const(bool),
    /// Bit `at` of something that was loaded, or its opposite.
    Of {
        source: u32,
        at: u32,
        inverted: bool,
    },
}

impl Bit {
    pub(super) fn inverted(self) -> Self {
        match self {
            Self::Const(bit) => Self::Const(!bit),
            Self::Of { source, at, inverted } => Self::Of { source, at, inverted: !inverted },
        }
    }
}

/// A bit of something that was loaded.
type Place = (u32, u32);

/// Keys with their values, in the order of the keys, which mostly come in this order. A rule has few of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Sorted<K, V>(Vec<(K, V)>);

impl<K, V> Default for Sorted<K, V> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<K: Copy + Ord, V: Copy> Sorted<K, V> {
    pub(super) fn iter(&self) -> std::slice::Iter<'_, (K, V)> {
        self.0.iter()
    }

    pub(super) fn get(&self, key: K) -> Option<V> {
        let at = self.0.binary_search_by_key(&key, |(key, _)| *key).ok()?;
        self.0.get(at).map(|(_, value)| *value)
    }

    pub(super) fn set(&mut self, key: K, value: V) {
        match self.0.binary_search_by_key(&key, |(key, _)| *key) {
            Ok(at) => self.0.get_mut(at).into_iter().for_each(|(_, before)| *before = value),
            Err(at) => self.0.insert(at, (key, value)),
        }
    }

    /// Returns the value of a key, which it is given if it has none.
    fn get_or_set(&mut self, key: K, value: V) -> V {
        self.get(key).unwrap_or_else(|| {
            self.set(key, value);
            value
        })
    }
}

/// A test that is more than a bit with a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Test {
    /// Not all of these bits have these values.
    Differ(Sorted<Place, bool>),
    /// The number of these bits is within two bounds, or is not.
    Within { bits: Vec<Bit>, low: Vec<bool>, high: Vec<bool>, negated: bool },
    /// The key is among these, or is not.
    Among { members: Members, negated: bool },
}

/// All of the tests between two things that a rule does.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Tests {
    /// Nothing passes.
    pub(super) never: bool,
    /// Bits with their values.
    pub(super) fixed: Sorted<Place, bool>,
    others: Vec<Test>,
}

impl Tests {
    /// Whether both let the same packets through.
    pub(super) fn are_same(&self, other: &Self) -> bool {
        let all = |of: &Self, among: &Self| of.others.iter().all(|test| among.others.contains(test));
        self.never && other.never
            || self.never == other.never && self.fixed == other.fixed && all(self, other) && all(other, self)
    }

    /// Leaves out what was known before, and finds what contradicts it.
    pub(super) fn behind(&mut self, known: &Sorted<Place, bool>) {
        self.never |=
            self.fixed.iter().any(|(place, bit)| known.get(*place).is_some_and(|other| other != *bit));
        self.fixed.0.retain(|(place, _)| known.get(*place).is_none());
    }

    pub(super) fn add(&mut self, test: Test) {
        match test {
            Test::Within { bits, low, high, negated } => self.within(bits, low, high, negated),
            other if self.others.contains(&other) => {}
            other => self.others.push(other),
        }
    }

    /// Adds that a number is within two bounds, or is not.
    fn within(&mut self, mut bits: Vec<Bit>, mut low: Vec<bool>, mut high: Vec<bool>, negated: bool) {
        if !narrow(&mut bits, &mut low, &mut high) {
            self.never |= !negated;
            return;
        }
        if !negated {
            let same =
                |test: &Test| matches!(test, Test::Within { bits: of, negated: false, .. } if *of == bits);
            // `>=` and `<=` of one key are a range.
            if let Some(at) = self.others.iter().position(same)
                && let Test::Within { low: other_low, high: other_high, .. } = self.others.remove(at)
            {
                (low, high) = (low.max(other_low), high.min(other_high));
            }
        }
        if low > high {
            self.never = true;
            return;
        }
        let equal = low.iter().zip(&high).take_while(|(low, high)| low == high).count();
        let is_whole = low.iter().skip(equal).all(|bit| !bit) && high.iter().skip(equal).all(|bit| *bit);
        if !is_whole {
            let test = Test::Within { bits, low, high, negated };
            if !self.others.contains(&test) {
                self.others.push(test);
            }
            return;
        }
        let mut wanted = Sorted::default();
        for (bit, value) in bits.into_iter().zip(low).take(equal) {
            let is_possible = match bit {
                Bit::Const(bit) => bit == value,
                Bit::Of { source, at, inverted } => {
                    let value = value != inverted;
                    wanted.get_or_set((source, at), value) == value
                }
            };
            if !is_possible {
                self.never |= !negated;
                return;
            }
        }
        match (negated, wanted.0.len()) {
            (true, 0) => self.never = true,
            (true, 1) => wanted.0.into_iter().for_each(|(place, bit)| self.fix(place, !bit)),
            (true, _) => self.add(Test::Differ(wanted)),
            (false, _) => wanted.0.into_iter().for_each(|(place, bit)| self.fix(place, bit)),
        }
    }

    fn fix(&mut self, place: Place, bit: bool) {
        self.never |= self.fixed.get_or_set(place, bit) != bit;
    }
}

/// Leaves out constant bits at either end of a number, and adapts its bounds. Returns false where no number is
/// within them.
pub(super) fn narrow(bits: &mut Vec<Bit>, low: &mut Vec<bool>, high: &mut Vec<bool>) -> bool {
    let Some(kept) = narrow_bounds(bits, low, high) else { return false };
    bits.truncate(kept.end);
    bits.drain(..kept.start);
    true
}

/// Adapts the bounds of a number to the constant bits at its ends, and returns which bits are between them; `None`
/// where no number is within the bounds.
pub(super) fn narrow_bounds(bits: &[Bit], low: &mut Vec<bool>, high: &mut Vec<bool>) -> Option<Range<usize>> {
    let (mut start, mut end) = (0, bits.len());
    while let (Some(Bit::Const(bit)), Some(from), Some(to)) =
        (bits.get(start), low.get(start), high.get(start))
    {
        let (is_below, is_above) = (from < bit, to > bit);
        if from > bit || to < bit {
            return None;
        }
        if is_below {
            low.get_mut(start..).unwrap_or_default().fill(false);
        }
        if is_above {
            high.get_mut(start..).unwrap_or_default().fill(true);
        }
        start += 1;
    }
    low.drain(..start);
    high.drain(..start);
    while let Some(Bit::Const(bit)) = bits.get(start..end).and_then(<[Bit]>::last) {
        let (from, to) = (low.pop(), high.pop());
        if from > Some(*bit) && !step(low, true) || to < Some(*bit) && !step(high, false) {
            return None;
        }
        end -= 1;
    }
    (low <= high).then_some(start..end)
}

/// Adds one to a number, or subtracts it; returns false where that has no room.
pub(super) fn step(number: &mut [bool], up: bool) -> bool {
    for bit in number.iter_mut().rev() {
        *bit = !*bit;
        if *bit == up {
            return true;
        }
    }
    false
}

/// Returns the bits of bytes, the highest first.
pub(super) fn bits_of(bytes: &[u8]) -> Vec<bool> {
    bytes.iter().flat_map(|byte| (0..8).rev().map(move |at| byte >> at & 1 == 1)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bit(at: u32) -> Bit {
        Bit::Of { source: 0, at, inverted: false }
    }

    fn compared(bits: Vec<Bit>, low: u8, high: u8, negated: bool) -> Tests {
        let of = |number: u8| bits_of(&[number])[8 - bits.len()..].to_vec();
        let (low, high) = (of(low), of(high));
        let mut tests = Tests::default();
        tests.add(Test::Within { bits, low, high, negated });
        tests
    }

    /// `ip dscp 5` with the bits where they are, and moved to the end of their byte.
    #[test]
    fn bits_are_the_same_wherever_they_are_in_a_register() {
        let own: Vec<_> = (8..14).map(bit).collect();
        let zeros = [Bit::Const(false); 2];
        let (left, right) = ([&own[..], &zeros].concat(), [&zeros[..], &own].concat());
        for (low, high) in [(5, 5), (0, 5), (5, 40), (62, 63), (0, 63)] {
            for negated in [false, true] {
                let first = compared(left.clone(), low << 2, high << 2, negated);
                assert!(first.are_same(&compared(right.clone(), low, high, negated)), "{low}-{high}");
                // Up to the next number above.
                let first = compared(left.clone(), low << 2, high << 2 | 3, negated);
                assert!(first.are_same(&compared(right.clone(), low, high, negated)), "{low}-{high}");
                let other = compared(left.clone(), low << 2, (high << 2).wrapping_sub(4) | 3, negated);
                assert!(!other.are_same(&first), "{low}-{high}");
            }
        }
    }

    #[test]
    fn what_no_packet_passes_is_the_same_however_it_is_said() {
        let never = compared(vec![bit(0), Bit::Const(false)], 1, 1, false);
        assert!(never.never && never.are_same(&compared(vec![Bit::Const(true)], 0, 0, false)));
        assert!(!never.are_same(&compared(vec![bit(0)], 0, 0, false)));
        // One bit that is not zero is one.
        assert!(compared(vec![bit(0)], 0, 0, true).are_same(&compared(vec![bit(0)], 1, 1, false)));
        let mut both = compared(vec![bit(0), bit(1)], 1, 1, false);
        both.add(Test::Within { bits: vec![bit(0)], low: vec![true], high: vec![true], negated: false });
        assert!(both.never);
    }

    /// `>=` and `<=` one after the other are a range, and a range of all that begins alike is a prefix.
    #[test]
    fn ranges_and_prefixes_are_said_in_more_than_one_way() {
        let all: Vec<_> = (0..8).map(bit).collect();
        let mut two = compared(all.clone(), 7, 255, false);
        two.add(Test::Within { bits: all.clone(), low: bits_of(&[0]), high: bits_of(&[9]), negated: false });
        assert!(two.are_same(&compared(all.clone(), 7, 9, false)));
        assert!(!two.are_same(&compared(all.clone(), 7, 10, false)));
        let prefix = compared(all[..4].to_vec(), 5, 5, false);
        assert!(prefix.are_same(&compared(all, 0x50, 0x5f, false)));
    }
}
