//! Elements as netlink attributes: one by one, or as the starts and ends of intervals.

use sluicegate_netlink::attr::Writer;

use crate::datatype::{DataType, Order};
use crate::expr::data::{NFTA_DATA_VALUE, encode_verdict};
use crate::expr::wire::NFTA_LIST_ELEM;
use crate::key::{Key, Part};
use crate::lang::{millis, stateful};
use crate::object::element::Rare;
use crate::object::{Element, ElementData, Set, SetFlags, userdata};

/// How a set takes its elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// One by one.
    Plain,
    /// Every key with its end: concatenations with intervals. nft takes the next element's key for an end that is not there.
    Concat,
    /// Every key starts an interval, and another element ends it.
    Interval,
}

impl Form {
    /// That of a set of which only its definition is known.
    pub(crate) fn of(set: &Set) -> Self {
        match (set.flags.contains(SetFlags::INTERVAL), set.key.parts().len()) {
            (false, _) => Self::Plain,
            (true, 1) => Self::Interval,
            (true, _) => Self::Concat,
        }
    }

    /// That of a set that is not known, by its elements.
    pub(crate) fn guess(elements: &[Element]) -> Self {
        match elements.iter().any(|e| e.end().is_some()) {
            false => Self::Plain,
            true => Self::of_intervals(elements),
        }
    }

    /// That of a set of which only is known that it holds intervals, by its elements.
    pub(crate) fn of_intervals(elements: &[Element]) -> Self {
        match elements.iter().find(|e| !e.is_catch_all()).map(|e| e.key.types().len()) {
            None | Some(1) => Self::Interval,
            Some(_) => Self::Concat,
        }
    }
}

/// Whether single keys are otherwise in a set that holds intervals: where they have one part, and need an end, and where one is turned. All keys
/// of a set have the same parts.
pub(crate) fn are_otherwise_in_intervals(elements: &[Element]) -> bool {
    let first = elements.iter().find(|e| !e.is_catch_all());
    first.is_some_and(|e| e.key.types().len() == 1 || e.key.types().any(is_turned))
}

/// Elements that the kernel counts for these.
pub(crate) fn wire_count(set: &Set, elements: &[Element]) -> usize {
    match Form::of(set) {
        Form::Plain | Form::Concat => elements.len(),
        Form::Interval => {
            let ends = elements
                .iter()
                .filter(|e| !e.is_catch_all() && successor(e.end().unwrap_or(&e.key)).is_some());
            elements.len() + ends.count() + usize::from(needs_start(elements))
        }
    }
}

/// nft marks the space before the first interval of a set without a name.
pub(crate) fn needs_start(elements: &[Element]) -> bool {
    elements.iter().filter(|e| !e.is_catch_all()).all(|e| e.key.bytes().iter().any(|byte| *byte != 0))
}

/// The next key; `None` behind the last. Keys count as numbers in network order, whatever their parts' own.
pub(crate) fn successor(key: &Key) -> Option<Key> {
    let mut next = *key;
    next.increment().then_some(next)
}

/// Bytes by which keys of an interval set sort.
pub(crate) fn sortable(key: &Key) -> Vec<u8> {
    key.parts().flat_map(|(part, value)| in_network_order(part, value)).collect()
}

/// A value's bytes, the most significant first: intervals are compared so.
pub(crate) fn in_network_order(part: Part, value: &[u8]) -> Vec<u8> {
    let mut bytes = value.to_vec();
    if is_turned(part) {
        bytes.reverse();
    }
    bytes
}

/// Whether an interval set keeps values of this type with their bytes turned: numbers in host order, on hosts where that matters.
pub(crate) fn is_turned(part: Part) -> bool {
    let text = matches!(part.data_type(), DataType::IFNAME | DataType::STRING);
    part.order() == Order::Host && !text && cfg!(target_endian = "little")
}

impl Element {
    /// Appends it as `NFTA_LIST_ELEM` attributes of a list: one, or two for an interval. `key_only` is for deletions.
    pub(crate) fn encode(&self, list: &mut Writer<'_>, form: Form, key_only: bool) {
        match form {
            Form::Plain => self.encode_one(list, None, false, key_only),
            Form::Concat => self.encode_one(list, Some(self.end().unwrap_or(&self.key)), true, key_only),
            Form::Interval => {
                self.encode_one(list, None, true, key_only);
                let last = self.end().unwrap_or(&self.key);
                if !self.is_catch_all()
                    && let Some(behind) = successor(last)
                {
                    encode_end(&behind, list);
                }
            }
        }
    }

    fn encode_one(&self, list: &mut Writer<'_>, end: Option<&Key>, turned: bool, key_only: bool) {
        let mut element = list.nest(NFTA_LIST_ELEM);
        if self.is_catch_all() {
            element.put_be32(NFTA_SET_ELEM_FLAGS, CATCHALL);
        } else {
            put_key(&mut element, NFTA_SET_ELEM_KEY, &self.key, turned);
        }
        if let Some(end) = end.filter(|_| !self.is_catch_all()) {
            put_key(&mut element, NFTA_SET_ELEM_KEY_END, end, turned);
        }
        if key_only {
            return;
        }
        match &self.data {
            ElementData::None => {}
            ElementData::Value(value) => put_key(&mut element, NFTA_SET_ELEM_DATA, value, false),
            ElementData::Range(range) => {
                let both = [range.0.bytes(), range.1.bytes()];
                element.nest(NFTA_SET_ELEM_DATA).put_parts(NFTA_DATA_VALUE, &both);
            }
            ElementData::Verdict(verdict) => {
                encode_verdict(verdict, &mut element.nest(NFTA_SET_ELEM_DATA));
            }
            ElementData::Object(name) => element.put_str(NFTA_SET_ELEM_OBJREF, name),
        }
        if let Some(rare) = &self.rare {
            rare.encode(&mut element);
        }
    }
}

fn encode_end(key: &Key, list: &mut Writer<'_>) {
    let mut element = list.nest(NFTA_LIST_ELEM);
    element.put_be32(NFTA_SET_ELEM_FLAGS, INTERVAL_END);
    put_key(&mut element, NFTA_SET_ELEM_KEY, key, true);
}

/// Appends what nft puts before the first interval of a set without a name: the end of nothing.
pub(crate) fn encode_start(first: &Key, list: &mut Writer<'_>) {
    let mut element = list.nest(NFTA_LIST_ELEM);
    element.put_be32(NFTA_SET_ELEM_FLAGS, INTERVAL_END);
    let zero = [0; 64];
    let length = first.bytes().len();
    element.nest(NFTA_SET_ELEM_KEY).put(NFTA_DATA_VALUE, zero.get(..length).unwrap_or_default());
}

fn put_key(w: &mut Writer<'_>, kind: u16, key: &Key, turned: bool) {
    let mut data = w.nest(kind);
    if turned && key.types().any(is_turned) {
        let mut bytes = *key;
        let bytes = bytes.bytes_mut();
        turn(key.types(), bytes);
        data.put(NFTA_DATA_VALUE, bytes);
    } else {
        data.put(NFTA_DATA_VALUE, key.bytes());
    }
}

/// The bytes by which the kernel knows a key; of a set of intervals, or of concatenations with intervals, with numbers of host order turned.
pub(crate) fn wire_key(key: &Key, turned: bool) -> Vec<u8> {
    let mut bytes = key.bytes().to_vec();
    if turned {
        turn(key.types(), &mut bytes);
    }
    bytes
}

/// Bytes of an interval set's key with numbers of host order turned back.
pub(crate) fn turned_back(parts: &[Part], bytes: &[u8]) -> Vec<u8> {
    let mut out = bytes.to_vec();
    turn(parts.iter().copied(), &mut out);
    out
}

/// Turns the numbers of host order among the parts of a key.
fn turn(parts: impl Iterator<Item = Part>, key: &mut [u8]) {
    let mut at = 0;
    for part in parts {
        if let Some(value) = key.get_mut(at..at + part.bytes())
            && is_turned(part)
        {
            value.reverse();
        }
        at += part.bytes().next_multiple_of(4);
    }
}

impl Rare {
    fn encode(&self, element: &mut Writer<'_>) {
        if let Some(timeout) = self.timeout {
            element.put_be64(NFTA_SET_ELEM_TIMEOUT, millis(timeout));
        }
        if let Some(expires) = self.expires {
            element.put_be64(NFTA_SET_ELEM_EXPIRATION, millis(expires));
        }
        if let Some(comment) = &self.comment {
            let text = comment.as_str().as_bytes();
            let length = u8::try_from(text.len() + 1).unwrap_or(u8::MAX);
            element.put_parts(NFTA_SET_ELEM_USERDATA, &[&[userdata::ELEMENT_COMMENT, length], text, &[0]]);
        }
        let mut exprs = self.statements.iter().filter_map(stateful);
        match (exprs.next(), exprs.next()) {
            (Some(only), None) => only.encode(element, NFTA_SET_ELEM_EXPR),
            (first, second) => {
                let mut several = first.into_iter().chain(second).chain(exprs).peekable();
                if several.peek().is_some() {
                    let mut list = element.nest(NFTA_SET_ELEM_EXPRESSIONS);
                    several.for_each(|expr| expr.encode(&mut list, NFTA_LIST_ELEM));
                }
            }
        }
    }
}

const NFTA_SET_ELEM_KEY: u16 = 1;
const NFTA_SET_ELEM_DATA: u16 = 2;
const NFTA_SET_ELEM_FLAGS: u16 = 3;
const NFTA_SET_ELEM_TIMEOUT: u16 = 4;
const NFTA_SET_ELEM_EXPIRATION: u16 = 5;
const NFTA_SET_ELEM_USERDATA: u16 = 6;
const NFTA_SET_ELEM_EXPR: u16 = 7;
const NFTA_SET_ELEM_OBJREF: u16 = 9;
const NFTA_SET_ELEM_KEY_END: u16 = 10;
const NFTA_SET_ELEM_EXPRESSIONS: u16 = 11;
/// `NFT_SET_ELEM_INTERVAL_END`
const INTERVAL_END: u32 = 1;
/// `NFT_SET_ELEM_CATCHALL`
const CATCHALL: u32 = 2;
