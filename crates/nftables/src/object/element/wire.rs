//! Encodes elements as netlink attributes: one by one, or as starts and ends of intervals.

use std::cmp::Ordering;
use std::ops::Range;

use sluicegate_netlink::attr::{self, Writer};
use sluicegate_netlink::text::encode;

use crate::expr::VerdictCode;
use crate::expr::data::{NFTA_DATA_VALUE, encode_code};
use crate::expr::wire::{EXPRESSION, EXPRESSIONS, NFTA_LIST_ELEM, list_of};
use crate::key::{Key, MAX_BYTES, Part, is_byte_swapped, types_of};
use crate::name::Name;
use crate::object::element::decode::ElementFlags;
use crate::object::element::packed::{Data, Packed, Shape, View};
use crate::object::{Element, Set, SetFlags, userdata};
use crate::tree::Statement;
use crate::tree::stateful::stateful;
use crate::wire::attributes::{Enumeration, attributes};

/// The encoding of elements that a set needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// Each element by its key.
    Plain,
    /// Each key with its upper bound: concatenations with intervals. If the bound is missing, nft takes the
    /// key of the next element for it.
    Concat,
    /// Each key starts an interval, which another element ends.
    Interval,
}

impl Form {
    /// Returns the encoding for a set with this definition.
    pub(crate) fn of(set: &Set) -> Self {
        match (set.flags.contains(SetFlags::INTERVAL), set.key.parts().len()) {
            (false, _) => Self::Plain,
            (true, 1) => Self::Interval,
            (true, _) => Self::Concat,
        }
    }

    /// Returns the encoding that elements suggest, if the definition of the set is not known.
    pub(crate) fn guess(elements: &[Element]) -> Self {
        match elements.iter().any(|e| e.end_bytes().is_some()) {
            false => Self::Plain,
            true => Self::of_intervals(elements),
        }
    }

    /// Returns the encoding for a set that is known to have intervals.
    pub(crate) fn of_intervals(elements: &[Element]) -> Self {
        match elements.iter().find(|e| !e.is_catch_all()).map(|e| e.packed_key().kinds.len()) {
            None | Some(1) => Self::Interval,
            Some(_) => Self::Concat,
        }
    }
}

/// Returns whether single keys are encoded differently in an interval set: those with one part, which need an
/// end, and those with a byte-swapped part. All keys of a set have the same parts.
pub(crate) fn differ_in_intervals(elements: &[Element]) -> bool {
    let first = elements.iter().find(|e| !e.is_catch_all());
    first.is_some_and(|e| {
        let kinds = e.packed_key().kinds;
        kinds.len() == 1 || types_of(kinds).any(is_byte_swapped)
    })
}

/// Returns the number of elements that the kernel counts for these.
pub(crate) fn wire_count(set: &Set, elements: &[Element]) -> usize {
    match Form::of(set) {
        Form::Plain | Form::Concat => elements.len(),
        Form::Interval => {
            let next = elements.iter().skip(1).map(|next| Some(next.key())).chain([None]);
            let ends = elements.iter().zip(next).filter(|(e, next)| {
                let behind = successor(&e.last());
                !e.is_catch_all() && behind.is_some() && behind != *next
            });
            elements.len() + ends.count() + usize::from(needs_start(elements))
        }
    }
}

/// Returns whether nft adds a marker for the empty space before the first interval, as it does in anonymous
/// sets and in named ones that are new.
pub(crate) fn needs_start(elements: &[Element]) -> bool {
    elements.iter().filter(|e| !e.is_catch_all()).all(|e| e.packed_key().bytes.iter().any(|byte| *byte != 0))
}

/// Returns the next key; `None` after the last one. Keys count as numbers in network byte order, whatever the
/// byte order of their parts.
pub(crate) fn successor(key: &Key) -> Option<Key> {
    let mut next = *key;
    next.increment().then_some(next)
}

/// Returns the bytes by which the keys of an interval set are sorted.
pub(crate) fn sortable(key: &Key) -> Vec<u8> {
    key.parts().flat_map(|(part, value)| in_network_order(part, value)).collect()
}

/// Compares keys as an interval set sorts them.
pub(crate) fn compare(a: &Key, b: &Key) -> Ordering {
    match a.types().chain(b.types()).any(is_byte_swapped) {
        true => sortable(a).cmp(&sortable(b)),
        false => a.bytes().cmp(b.bytes()),
    }
}

/// Compares elements by their keys as an interval set sorts them, the catch-all element last.
pub(crate) fn order(a: &Element, b: &Element) -> Ordering {
    let keys = || compare(&a.key(), &b.key());
    a.is_catch_all().cmp(&b.is_catch_all()).then_with(keys)
}

/// Returns a value's bytes, the most significant first: intervals are compared so.
pub(crate) fn in_network_order(part: Part, value: &[u8]) -> Vec<u8> {
    let mut bytes = value.to_vec();
    if is_byte_swapped(part) {
        bytes.reverse();
    }
    bytes
}

impl Element {
    /// Returns about how many bytes the element takes in a message.
    pub(crate) fn encoded_size(&self) -> usize {
        let view = self.0.view();
        // The headers of a list entry, a key and its value.
        20 + view.key().bytes.len() + view.value().bytes.len()
    }

    /// Appends the element to a list as `NFTA_LIST_ELEM` attributes: one, or for an interval two, unless the
    /// `next` element begins where it ends. `key_only` is for deletions.
    pub(crate) fn encode(&self, list: &mut Writer<'_>, form: Form, key_only: bool, next: Option<&Self>) {
        let view = self.0.view();
        match form {
            Form::Plain => encode_one(view, list, Bound::None, false, key_only),
            Form::Concat => {
                let end = view.end().unwrap_or(view.key().bytes);
                encode_one(view, list, Bound::At(end), true, key_only);
            }
            Form::Interval if self.is_catch_all() => encode_one(view, list, Bound::None, true, key_only),
            Form::Interval => match successor(&self.last()) {
                None => encode_one(view, list, Bound::Open, true, key_only),
                Some(behind) => {
                    encode_one(view, list, Bound::None, true, key_only);
                    if next.is_none_or(|next| next.key() != behind) {
                        encode_end(&behind, list);
                    }
                }
            },
        }
    }
}

/// Returns whether elements consist of a key and perhaps a value of the same types as another.
#[inline]
pub(crate) fn are_alike(first: &Element, others: &[Element]) -> bool {
    first.0.shape().is_some_and(|shape| others.iter().all(|other| shape.has(&other.0)))
}

/// The bytes of an element of a set without intervals, in which those of other elements of the same types are
/// put in place: a fifth of the instructions that writing their attributes takes.
pub(crate) struct Template {
    shape: Shape,
    bytes: Vec<u8>,
    /// Where the key is, in an element and here.
    key: (Range<usize>, Range<usize>),
    /// The same of the value; `None` if there is none, or if it is not sent.
    value: Option<(Range<usize>, Range<usize>)>,
}

impl Template {
    /// Creates the template of elements like this one; `None` if it has more than a key and a value.
    pub(crate) fn of(first: &Element, key_only: bool) -> Option<Self> {
        let shape = first.0.shape()?;
        let (key, value) = shape.places();
        let bytes = attr::encode(|w| first.encode(w, Form::Plain, key_only, None)).ok()?;
        // Each behind the headers of three attributes: the entry of the list, the key, and its value.
        let place = 12..12 + key.len();
        let value_at = place.end.next_multiple_of(4) + 8;
        let value_place = value_at..value_at + value.len();
        let value = (!key_only && !value.is_empty()).then_some((value, value_place));
        Some(Self { shape, bytes, key: (key, place), value })
    }

    /// Returns the number of bytes of each element.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Returns whether an element consists of a key and perhaps a value of the same types.
    #[inline]
    pub(crate) fn fits(&self, element: &Element) -> bool {
        self.shape.has(&element.0)
    }

    /// Appends elements that [fit](Self::fits).
    pub(crate) fn encode(&self, elements: &[Element], list: &mut Writer<'_>) {
        let entries = list.repeat(&self.bytes, elements.len()).chunks_exact_mut(self.bytes.len());
        for (entry, element) in entries.zip(elements) {
            let view = element.0.view();
            for (from, to) in std::iter::once(&self.key).chain(&self.value) {
                if let Some(to) = entry.get_mut(to.clone()) {
                    copy(to, view.at(from));
                }
            }
        }
    }
}

/// Copies bytes, those of usual lengths without a call.
#[inline]
fn copy(to: &mut [u8], from: &[u8]) {
    fn fixed<const N: usize>(to: &mut [u8], from: &[u8]) {
        if let (Some(to), Some(from)) = (to.first_chunk_mut::<N>(), from.first_chunk::<N>()) {
            *to = *from;
        }
    }
    match (to.len(), from.len()) {
        (4, 4) => fixed::<4>(to, from),
        (8, 8) => fixed::<8>(to, from),
        (12, 12) => fixed::<12>(to, from),
        (16, 16) => fixed::<16>(to, from),
        _ => to.iter_mut().zip(from).for_each(|(to, from)| *to = *from),
    }
}

/// What an element says of the end of its interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bound<'a> {
    /// Nothing: it has none, or another element is the end.
    None,
    /// The upper bound.
    At(&'a [u8]),
    /// It goes up to the last key, behind which there is none that could end it. nft notes that in its user
    /// data.
    Open,
}

#[inline]
fn encode_one(view: View<'_>, list: &mut Writer<'_>, bound: Bound<'_>, byte_swapped: bool, key_only: bool) {
    let key = view.key();
    if let Some(value) = view.only_value()
        && bound == Bound::None
        && !byte_swapped
    {
        // Nearly all elements of large sets and maps.
        let both =
            [(NFTA_SET_ELEM_KEY, NFTA_DATA_VALUE, key.bytes), (NFTA_SET_ELEM_DATA, NFTA_DATA_VALUE, value)];
        let has_value = !key_only && !value.is_empty();
        let attributes = both.get(..if has_value { 2 } else { 1 }).unwrap_or_default();
        return list.put_nested_list(NFTA_LIST_ELEM, attributes);
    }
    let mut element = list.nest(NFTA_LIST_ELEM);
    if key.kinds.is_empty() {
        element.put_be32(NFTA_SET_ELEM_FLAGS, ElementFlags::CATCHALL.bits());
    } else {
        put_key(&mut element, NFTA_SET_ELEM_KEY, key, byte_swapped);
        if let Bound::At(bytes) = bound {
            put_key(&mut element, NFTA_SET_ELEM_KEY_END, Packed { bytes, ..key }, byte_swapped);
        }
    }
    if key_only {
        return;
    }
    encode_data(view, &mut element);
    if let Some(timeout) = view.timeout() {
        element.put_be64(NFTA_SET_ELEM_TIMEOUT, timeout);
    }
    if let Some(expires) = view.expires() {
        element.put_be64(NFTA_SET_ELEM_EXPIRATION, expires);
    }
    let open: &[u8] = if bound == Bound::Open { &INTERVAL_OPEN } else { &[] };
    if let Some(comment) = view.comment {
        let text = &*encode(comment.as_str());
        let length = u8::try_from(text.len() + 1).unwrap_or(u8::MAX);
        element.put_parts(NFTA_SET_ELEM_USERDATA, &[&[userdata::ELEMENT_COMMENT, length], text, &[0], open]);
    } else if !open.is_empty() {
        element.put(NFTA_SET_ELEM_USERDATA, open);
    }
    if !view.statements.is_empty() {
        encode_statements(view.statements, &mut element);
    }
}

#[inline]
fn encode_data(view: View<'_>, element: &mut Writer<'_>) {
    let code = match view.data() {
        Data::None => return,
        Data::Value => {
            let value = view.value().bytes;
            return match view.value_end() {
                None => element.put_nested(NFTA_SET_ELEM_DATA, NFTA_DATA_VALUE, value),
                Some(end) => element.nest(NFTA_SET_ELEM_DATA).put_parts(NFTA_DATA_VALUE, &[value, end]),
            };
        }
        Data::Object => return element.put_str(NFTA_SET_ELEM_OBJREF, view.name().map_or("", Name::as_str)),
        Data::Accept => VerdictCode::ACCEPT,
        Data::Drop => VerdictCode::DROP,
        Data::Continue => VerdictCode::CONTINUE,
        Data::Return => VerdictCode::RETURN,
        Data::Jump => VerdictCode::JUMP,
        Data::Goto => VerdictCode::GOTO,
    };
    encode_code(code, view.name(), &mut element.nest(NFTA_SET_ELEM_DATA));
}

fn encode_end(key: &Key, list: &mut Writer<'_>) {
    let mut element = list.nest(NFTA_LIST_ELEM);
    element.put_be32(NFTA_SET_ELEM_FLAGS, ElementFlags::INTERVAL_END.bits());
    put_key(&mut element, NFTA_SET_ELEM_KEY, Packed::from(key), true);
}

/// Appends the marker that nft adds before the first interval of a new set: an end without a start.
pub(crate) fn encode_start(first: &Key, list: &mut Writer<'_>) {
    let mut element = list.nest(NFTA_LIST_ELEM);
    element.put_be32(NFTA_SET_ELEM_FLAGS, ElementFlags::INTERVAL_END.bits());
    let zero = [0; 64];
    let length = first.bytes().len();
    element.nest(NFTA_SET_ELEM_KEY).put(NFTA_DATA_VALUE, zero.get(..length).unwrap_or_default());
}

#[inline]
fn put_key(w: &mut Writer<'_>, kind: u16, key: Packed<'_>, byte_swapped: bool) {
    if byte_swapped && types_of(key.kinds).any(is_byte_swapped) {
        let mut bytes = [0; MAX_BYTES];
        let bytes = bytes.get_mut(..key.bytes.len()).unwrap_or_default();
        bytes.copy_from_slice(key.bytes);
        swap_parts(types_of(key.kinds), bytes);
        w.put_nested(kind, NFTA_DATA_VALUE, bytes);
    } else {
        w.put_nested(kind, NFTA_DATA_VALUE, key.bytes);
    }
}

/// Returns a key as the kernel stores it: in an interval set, also of concatenations, with byte-swapped
/// numbers if they are in host byte order.
pub(crate) fn wire_key(key: &Key, byte_swapped: bool) -> Vec<u8> {
    let mut bytes = key.bytes().to_vec();
    if byte_swapped {
        swap_parts(key.types(), &mut bytes);
    }
    bytes
}

/// Returns the key of an interval set with byte-swapped numbers converted back.
pub(crate) fn unswap_key(parts: &[Part], bytes: &[u8]) -> Vec<u8> {
    let mut out = bytes.to_vec();
    swap_parts(parts.iter().copied(), &mut out);
    out
}

/// Byte-swaps the numbers in host byte order among the parts of a key.
fn swap_parts(parts: impl Iterator<Item = Part>, key: &mut [u8]) {
    let mut at = 0;
    for part in parts {
        if let Some(value) = key.get_mut(at..at + part.bytes())
            && is_byte_swapped(part)
        {
            value.reverse();
        }
        at += part.bytes().next_multiple_of(4);
    }
}

fn encode_statements(statements: &[Statement], element: &mut Writer<'_>) {
    let mut exprs = statements.iter().filter_map(stateful);
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

/// The entry of user data that nft adds to an element whose interval has no end: `SET_ELEM_F_INTERVAL_OPEN`,
/// a number in host byte order.
const INTERVAL_OPEN: [u8; 6] = {
    let [a, b, c, d] = 1_u32.to_ne_bytes();
    [userdata::ELEMENT_FLAGS, 4, a, b, c, d]
};

/// The list of elements in a message.
const ELEMENTS: Enumeration = &[list_of(ELEMENT)];

attributes! {
    ELEMENT_LIST: "enum nft_set_elem_list_attributes, linux/netfilter/nf_tables.h" {
        NFTA_SET_ELEM_LIST_TABLE = 1,
        NFTA_SET_ELEM_LIST_SET = 2,
        NFTA_SET_ELEM_LIST_ELEMENTS = 3 => ELEMENTS,
        NFTA_SET_ELEM_LIST_SET_ID = 4,
    }

    ELEMENT: "enum nft_set_elem_attributes, linux/netfilter/nf_tables.h" {
        NFTA_SET_ELEM_KEY = 1,
        NFTA_SET_ELEM_DATA = 2,
        NFTA_SET_ELEM_FLAGS = 3,
        NFTA_SET_ELEM_TIMEOUT = 4,
        NFTA_SET_ELEM_EXPIRATION = 5,
        NFTA_SET_ELEM_USERDATA = 6,
        NFTA_SET_ELEM_EXPR = 7 => EXPRESSION,
        NFTA_SET_ELEM_PAD = 8,
        NFTA_SET_ELEM_OBJREF = 9,
        NFTA_SET_ELEM_KEY_END = 10,
        NFTA_SET_ELEM_EXPRESSIONS = 11 => EXPRESSIONS,
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use proptest::prelude::*;

    use super::*;
    use crate::key::{Mark, Number, Port};
    use crate::{EtherAddr, Protocol, tree};

    /// Makes elements of one kind from numbers.
    type Make = fn(u32) -> Element;

    const ALIKE: [Make; 9] = [
        |n| Element::new(Ipv4Addr::from(n)),
        |n| Element::new((Ipv4Addr::from(n), Protocol::TCP, Port(80))),
        |n| Element::new((Ipv4Addr::from(n), Port(1), Number(n))).value((Ipv4Addr::from(!n), Port(8080))),
        |n| Element::new(Port(u16::try_from(n >> 16).unwrap())).value(Mark(n)),
        |n| Element::new(Ipv6Addr::from(u128::from(n) << 9)).value(Port(1)),
        |n| Element::new((Ipv6Addr::from(u128::from(n)), Protocol::UDP, Port(53))),
        |n| Element::new((Ipv4Addr::from(n), Ipv4Addr::from(n), Protocol::UDP, Port(53))),
        |n| Element::new(EtherAddr([1, 2, 3, 4, 5, n.to_be_bytes()[3]])).value(Ipv6Addr::from(u128::from(n))),
        |n| Element::new(Number(n)).value(Protocol::SCTP),
    ];
    const OTHERS: [Make; 6] = [
        |_| Element::catch_all(),
        |n| Element::range(Port(1), Port(u16::try_from(n >> 16).unwrap())),
        |n| Element::new(Number(n)).verdict(tree::Verdict::Drop),
        |n| Element::new(Number(n)).timeout(std::time::Duration::from_secs(1)),
        |n| Element::new(Number(n)).statement(tree::Counter::default()),
        |n| Element::new(Number(n)).comment(crate::Comment::new("x").unwrap()),
    ];

    proptest! {
        #[test]
        fn a_template_writes_what_attributes_do(make in 0..ALIKE.len(), n: Vec<u32>, key_only: bool) {
            let elements: Vec<_> = [7].into_iter().chain(n).map(ALIKE[make]).collect();
            let template = Template::of(&elements[0], key_only).unwrap();
            prop_assert!(elements.iter().all(|element| template.fits(element)));
            let whole = attr::encode(|w| template.encode(&elements, w)).unwrap();
            let singly = attr::encode(|w| {
                elements.iter().for_each(|element| element.encode(w, Form::Plain, key_only, None));
            });
            prop_assert_eq!(whole, singly.unwrap());
        }
    }

    #[test]
    fn elements_of_other_types_or_with_more_do_not_fit() {
        for (at, one) in ALIKE.iter().enumerate() {
            let template = Template::of(&one(7), false).unwrap();
            let others = ALIKE.iter().enumerate().filter(|(other, _)| *other != at).map(|(_, make)| make);
            assert!(others.chain(&OTHERS).all(|other| !template.fits(&other(7))), "{}", one(7));
        }
        assert!(OTHERS.iter().all(|make| Template::of(&make(7), false).is_none()));
    }
}
