//! Sets in a form that does not depend on where in a register the key's bits are.

use crate::compile::raise::meaning::test::{Bit, Test, bits_of, narrow, narrow_bounds};
use crate::name::Name;
use crate::object::element::wire_key;
use crate::object::{Element, ElementData, Set, SetFlags};
use crate::sort;
use crate::tree::Statement;

/// What a key is looked up among.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Members {
    /// A set with a name, and the key.
    Named(Name, Vec<Bit>),
    /// The set of a meter, with its size.
    Meter(Name, Vec<Bit>, Option<u32>),
    /// Members by the parts of the key.
    All { key: Vec<Vec<Bit>>, list: Vec<Member> },
}

/// A member of an anonymous set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Member {
    /// The bounds of each part; of none it is that which stands for all others.
    parts: Vec<(Vec<bool>, Vec<bool>)>,
    data: Data,
    statements: Vec<Statement>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Data {
    Bytes(Vec<u8>, Vec<u8>),
    Other(ElementData),
}

impl Members {
    /// Returns the set in which these bits of registers are looked up; `None` where they are not of one key.
    pub(super) fn of(key: &[Bit], set: &Set, elements: &[Element]) -> Option<Self> {
        if !set.is_anonymous() {
            return Some(Self::Named(set.id.name.clone(), key.to_vec()));
        }
        if set.flags.contains(SetFlags::DYNAMIC) {
            return Some(Self::Meter(set.id.name.clone(), key.to_vec(), set.size));
        }
        // Where there are no ranges it does not matter what the parts are: nft stores not always what they are.
        let widths: Vec<usize> = match elements.iter().any(Element::has_ranges) {
            true => set.key.parts().iter().map(|part| part.bytes()).collect(),
            false => vec![key.len() / 8],
        };
        let slices = |widths: &[usize]| {
            let mut at = 0;
            let mut part = |width: &usize| {
                let bits = key.get(at * 8..(at + width) * 8).map(<[Bit]>::to_vec);
                at += width.next_multiple_of(4);
                bits
            };
            widths.iter().map(&mut part).collect::<Option<Vec<_>>>()
        };
        let parts = slices(&widths)?;
        let mut list = Vec::new();
        for element in elements {
            if let Some(member) = Member::of(element, set, &parts)? {
                list.push(member);
            }
        }
        let mut key = parts;
        key.iter_mut().for_each(|bits| {
            let (mut low, mut high) = (vec![false; bits.len()], vec![true; bits.len()]);
            narrow(bits, &mut low, &mut high);
        });
        sort::by(&mut list, |a, b| a.parts.cmp(&b.parts));
        Some(Self::All { key, list })
    }

    /// Returns the tests that a look-up in it is; one member alone is compared.
    pub(super) fn tests(self, negated: bool) -> Vec<Test> {
        if let Self::All { key, list } = &self
            && let [Member { parts, data: Data::Other(ElementData::None), statements }] = list.as_slice()
            && statements.is_empty()
            && parts.len() == key.len()
            && (!negated || parts.len() == 1)
        {
            let of = |(bits, (low, high)): (&Vec<Bit>, &(Vec<bool>, Vec<bool>))| Test::Within {
                bits: bits.clone(),
                low: low.clone(),
                high: high.clone(),
                negated,
            };
            return key.iter().zip(parts).map(of).collect();
        }
        vec![Test::Among { members: self, negated }]
    }
}

impl Member {
    /// Returns a member, or `None` within for one that no key equals.
    fn of(element: &Element, set: &Set, key: &[Vec<Bit>]) -> Option<Option<Self>> {
        if element.get_timeout().is_some() || element.get_expires().is_some() {
            return None;
        }
        let data = match element.data() {
            ElementData::Value(value) => Data::Bytes(value.bytes().to_vec(), value.bytes().to_vec()),
            ElementData::Range(low, high) => Data::Bytes(low.bytes().to_vec(), high.bytes().to_vec()),
            other => Data::Other(other),
        };
        let mut member = Self { parts: Vec::new(), data, statements: element.statements().to_vec() };
        if element.is_catch_all() {
            return Some(Some(member));
        }
        let is_swapped = set.flags.contains(SetFlags::INTERVAL);
        let (low, high) = (wire_key(&element.key(), is_swapped), wire_key(&element.last(), is_swapped));
        let mut at = 0;
        for bits in key {
            let width = bits.len() / 8;
            let of = |bytes: &[u8]| bytes.get(at..at + width).map(bits_of);
            let (mut low, mut high) = (of(&low)?, of(&high)?);
            if narrow_bounds(bits, &mut low, &mut high).is_none() {
                return Some(None);
            }
            member.parts.push((low, high));
            at += width.next_multiple_of(4);
        }
        Some(Some(member))
    }
}
