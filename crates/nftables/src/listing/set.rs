//! Sets, maps and their elements in the typed language.

use std::time::Duration;

use crate::datatype::{DataType, Order};
use crate::expr::{Data, Expr};
use crate::key::{Key, Part, width};
use crate::lang::Statement;
use crate::lang::raise::state;
use crate::listing::comment;
use crate::object::element::{sortable, successor, turned_back};
use crate::object::set::{DATA_TYPEOF, KEY_TYPEOF, length as bytes_of};
use crate::object::*;
use crate::read;

pub(crate) fn set_of(table: &TableId, held: &read::Set) -> Set {
    let map = held.flags.intersects(SetFlags::MAP | SetFlags::OBJECT);
    let id = SetId { table: table.clone(), name: held.name.clone(), map };
    let mut set = Set::new(id, type_of(held, KEY_TYPEOF, held.key_type, held.key_len, &held.fields));
    set.data = match (held.data_type, held.object_kind) {
        (_, Some(kind)) => Some(SetData::Object(kind)),
        (Some(NFT_DATA_VERDICT), _) => Some(SetData::Verdict),
        (Some(code), _) => Some(data_type_of(held, code, held.data_len.unwrap_or(0))),
        (None, None) => None,
    };
    let noted = |of: &SetType| matches!(of, SetType::Typeof(_));
    match &mut set.data {
        // Of which only one is noted, that is said as a type.
        Some(SetData::Interval(of)) if noted(of) != noted(&set.key) => {
            *of = SetType::Parts(of.parts());
            set.key = SetType::Parts(set.key.parts());
        }
        _ => {}
    }
    set.flags = held.flags - (SetFlags::MAP | SetFlags::OBJECT | SetFlags::CONCAT | SetFlags::EXPR);
    set.timeout = held.timeout.filter(|t| *t != 0).map(Duration::from_millis);
    set.gc_interval = held.gc_interval.filter(|t| *t != 0).map(|t| Duration::from_millis(t.into()));
    set.size = held.size.filter(|size| *size != 0);
    set.policy = held.policy.filter(|policy| *policy == 1).map(|_| SetPolicy::Memory);
    let merge = read::UserData::new(&held.user_data).find(MERGE_ELEMENTS);
    set.auto_merge = merge.is_some_and(|value| value.iter().any(|byte| *byte != 0));
    set.statements = held.expressions.iter().filter_map(state_of).collect();
    set.comment = comment(held.comment());
    set
}

/// What a map maps to: two values of its type, where they are the ends of an interval.
fn data_type_of(held: &read::Set, code: u32, length: u32) -> SetData {
    let one = type_of(held, DATA_TYPEOF, code, length / 2, &[]);
    let typed = !matches!(one, SetType::Parts(_));
    if typed && length.is_multiple_of(2) && bytes_of(&one.parts()) == length / 2 {
        return SetData::Interval(match one {
            SetType::Typeof(of) => SetType::Typeof(of),
            other => SetType::Parts(other.parts()),
        });
    }
    SetData::Value(type_of(held, DATA_TYPEOF, code, length, &[]))
}

/// A type as its maker noted it, else by nft's numbers and the lengths.
fn type_of(held: &read::Set, note: u8, code: u32, length: u32, fields: &[u32]) -> SetType {
    if let Some(of) = read::UserData::new(&held.user_data).find(note).and_then(typeof_data::decode)
        && (note == DATA_TYPEOF || of != SetType::Queue)
    {
        // Who wrote the note may have meant something else by its numbers.
        if is_as_long(&of.parts(), length) {
            return of;
        }
    }
    let mut ids = Vec::new();
    let mut rest = code;
    while rest != 0 {
        ids.push(u8::try_from(rest & 0x3f).unwrap_or(0));
        rest >>= 6;
    }
    ids.reverse();
    let types: Option<Vec<_>> = ids.iter().map(|id| DataType::from_id(*id)).collect();
    let fits = |types: &[DataType]| {
        let bytes = |of: &DataType| u32::try_from(of.bytes()).unwrap_or(0);
        match types {
            // Integers have any width.
            _ if types.contains(&DataType::INTEGER) => false,
            [only] => bytes(only) == length,
            several => several.iter().map(|of| bytes(of).next_multiple_of(4)).sum::<u32>() == length,
        }
    };
    let integer = |bytes: u32| Part::Integer {
        bytes: u8::try_from(bytes.clamp(1, 16)).unwrap_or(16),
        order: order(held, note),
    };
    match types {
        Some(types) if fits(&types) => SetType::Types(types),
        Some(types) if matches!(types.as_slice(), [only] if is_wide(*only, length)) => {
            SetType::Parts(types.into_iter().map(Part::Wide).collect())
        }
        // What other programs keep without a type has any width, too.
        Some(types) if types.len() == 1 => SetType::Parts(vec![integer(length)]),
        Some(types) if types.len() == fields.len() => {
            let part = |(of, bytes): (&DataType, &u32)| {
                if u32::try_from(of.bytes()) == Ok(*bytes) { Part::Type(*of) } else { integer(*bytes) }
            };
            SetType::Parts(types.iter().zip(fields).map(part).collect())
        }
        Some(types) if fields.is_empty() && share(&types, length).is_some() => {
            let bytes = share(&types, length).unwrap_or_default();
            let part = |of| if of == DataType::INTEGER { integer(bytes) } else { Part::Type(of) };
            SetType::Parts(types.into_iter().map(part).collect())
        }
        _ if !fields.is_empty() => SetType::Parts(fields.iter().map(|bytes| integer(*bytes)).collect()),
        _ => SetType::Parts(words(length).map(integer).collect()),
    }
}

/// The bytes that each integer of a concatenation has, if they have so many each.
fn share(types: &[DataType], length: u32) -> Option<u32> {
    let padded = |of: &DataType| u32::try_from(of.bytes().next_multiple_of(4)).unwrap_or(0);
    let (integers, named): (Vec<&DataType>, Vec<_>) = types.iter().partition(|of| **of == DataType::INTEGER);
    let rest = length.checked_sub(named.into_iter().map(padded).sum())?;
    let integers = u32::try_from(integers.len()).ok().filter(|number| *number > 0)?;
    Some(rest / integers).filter(|bytes| *bytes > 0 && bytes.is_multiple_of(4) && bytes * integers == rest)
}

/// Whether a key of these parts has this length; where a type is not known here, it may.
fn is_as_long(parts: &[Part], length: u32) -> bool {
    parts.is_empty() || bytes_of(parts) == length
}

/// Whether a bit field of this type lies across a byte's border.
fn is_wide(of: DataType, length: u32) -> bool {
    !of.bits().is_multiple_of(8) && u32::try_from(of.bytes() + 1) == Ok(length)
}

/// A length in pieces that a part can have.
fn words(length: u32) -> impl Iterator<Item = u32> {
    // NFT_DATA_VALUE_MAXLEN
    let length = length.min(64);
    (0..length / 16).map(|_| 16).chain((!length.is_multiple_of(16)).then_some(length % 16))
}

/// As its maker noted it for keys, or for data.
fn order(held: &read::Set, note: u8) -> Order {
    const BIG_ENDIAN: u32 = 2;
    let noted = read::UserData::new(&held.user_data)
        .find(u8::from(note == DATA_TYPEOF))
        .and_then(|value| value.try_into().ok());
    if noted.map(u32::from_ne_bytes) == Some(BIG_ENDIAN) { Order::Network } else { Order::Host }
}

pub(crate) fn elements_of(set: &Set, held: &[read::Element]) -> Vec<Element> {
    let parts = set.key.parts();
    let interval = set.flags.contains(SetFlags::INTERVAL) && parts.len() == 1;
    let mut typed: Vec<(Element, bool)> =
        held.iter().filter_map(|element| element_of(set, &parts, element)).collect();
    if !interval {
        // Intervals of concatenations come as they were given.
        if !set.flags.contains(SetFlags::INTERVAL) {
            // Of equals, the last comes first.
            typed.reverse();
            let last = last_rank(set);
            typed.sort_by_cached_key(|(element, _)| match element.is_catch_all() {
                true => last.clone(),
                false => rank(element.key()),
            });
        }
        return typed.into_iter().map(|(element, _)| element).collect();
    }
    // Intervals are starts and ends; an end sorts before a start at the same place.
    typed.sort_by_cached_key(|(element, end)| (element.is_catch_all(), sortable(element.key()), !end));
    let mut out: Vec<Element> = Vec::new();
    let mut open: Option<Element> = None;
    for (element, end) in typed {
        if element.is_catch_all() {
            out.extend(open.take().map(|start| close(start, None)));
            out.push(element);
            continue;
        }
        if let Some(start) = open.take() {
            out.push(close(start, Some(*element.key())));
        }
        if !end {
            open = Some(element);
        }
    }
    out.extend(open.map(|start| close(start, None)));
    out
}

/// By what nft sorts the elements of a hash: numbers by their value, masks by their lowest bit, and several parts as one number of which the
/// last byte counts most.
fn rank(key: &Key) -> Vec<u8> {
    let reversed = |mut bytes: Vec<u8>| {
        bytes.reverse();
        bytes
    };
    let mut parts = key.parts();
    match (parts.next(), parts.next()) {
        (Some((part, value)), None) => {
            let mut bytes = value.to_vec();
            if part.order() == Order::Host && cfg!(target_endian = "little") {
                bytes.reverse();
            }
            match part.data_type().is_bitmask() {
                true => lowest_bit(bytes),
                false => bytes,
            }
        }
        _ => reversed(key.parts().flat_map(|(_, value)| value).copied().collect()),
    }
}

/// By what nft sorts what stands for all other keys: as the last key of all, before that itself.
fn last_rank(set: &Set) -> Vec<u8> {
    let parts = set.key.parts();
    let [part] = parts.as_slice() else {
        return vec![0xff; width(&parts)];
    };
    let bits = match &set.key {
        SetType::Typeof(of) => of.bits(),
        _ => None,
    };
    let bits = bits.map_or(part.bytes() * 8, usize::from);
    let mut bytes = vec![0xff; part.bytes()];
    if let Some(first) = bytes.first_mut() {
        *first >>= (part.bytes() * 8).saturating_sub(bits).min(7);
    }
    bytes
}

/// A number, the most significant byte first, of which only the lowest bit is left.
fn lowest_bit(mut bytes: Vec<u8>) -> Vec<u8> {
    let mut seen = false;
    for byte in bytes.iter_mut().rev() {
        *byte = if seen { 0 } else { *byte & byte.wrapping_neg() };
        seen |= *byte != 0;
    }
    bytes
}

/// An interval that ends before a key, or with the last one.
fn close(start: Element, behind: Option<Key>) -> Element {
    let last = match behind {
        Some(key) => predecessor(&key),
        None => None,
    };
    let end = last.unwrap_or_else(|| start.key().last_of_type());
    if end == *start.key() { start } else { start.to(end) }
}

/// The key before: the one whose successor this is.
fn predecessor(key: &Key) -> Option<Key> {
    let mut before = *key;
    before.decrement();
    (successor(&before).as_ref() == Some(key)).then_some(before)
}

fn element_of(set: &Set, parts: &[Part], held: &read::Element) -> Option<(Element, bool)> {
    let turned = set.flags.contains(SetFlags::INTERVAL);
    let key_of = |bytes: &[u8]| match turned {
        true => Key::decode(parts, &turned_back(parts, bytes)),
        false => Key::decode(parts, bytes),
    };
    let mut element = if held.flags.contains(read::ElementFlags::CATCHALL) {
        Element::catch_all()
    } else {
        Element::new(key_of(&held.key)?)
    };
    if let Some(end) = held.key_end.as_deref().and_then(key_of).filter(|end| end != element.key()) {
        element = element.to(end);
    }
    element = match (&held.data, &held.object, &set.data) {
        (Some(Data::Verdict(verdict)), _, _) => element.verdict(verdict.clone()),
        (Some(Data::Value(bytes)), _, Some(SetData::Value(of) | SetData::Interval(of))) => {
            data_of(element, &of.parts(), bytes)?
        }
        (_, Some(name), _) => element.object(name.clone()),
        _ => element,
    };
    if let Some(timeout) = held.timeout.filter(|timeout| set.timeout != Some(Duration::from_millis(*timeout)))
    {
        element = element.timeout(Duration::from_millis(timeout));
    }
    if let Some(expiration) = held.expiration {
        element = element.expires(Duration::from_millis(expiration));
    }
    if let Some(comment) = comment(held.comment()) {
        element = element.comment(comment);
    }
    for statement in held.expressions.iter().filter_map(state_of) {
        element = element.statement(statement);
    }
    Some((element, held.flags.contains(read::ElementFlags::INTERVAL_END)))
}

/// Whether the language can say all that the members of a rule's own set carry. Where it cannot, that rule is left as its expressions.
pub(crate) fn have_words(held: &[read::Element]) -> bool {
    held.iter().flat_map(|element| &element.expressions).all(|expr| state(expr).is_some())
}

/// What a set or an element carries. Of a state that a newer kernel knows more of, that much as has a word; what was read keeps the rest.
fn state_of(expr: &Expr) -> Option<Statement> {
    match expr {
        Expr::Unknown(newer) => state(&Expr::decode_bytes(&newer.name, newer.data.as_deref()?).ok()?),
        known => state(known),
    }
}

fn data_of(element: Element, parts: &[Part], bytes: &[u8]) -> Option<Element> {
    let (low, high) = bytes.split_at_checked(bytes.len() / 2)?;
    // Of two bytes or fewer, both ends fit into the words of one.
    let is_one = u32::try_from(low.len()) != Ok(bytes_of(parts));
    if let Some(value) = Key::decode(parts, bytes).filter(|_| is_one) {
        return Some(element.value(value));
    }
    Some(element.value_range(Key::decode(parts, low)?, Key::decode(parts, high)?))
}

/// `NFT_DATA_VERDICT`
const NFT_DATA_VERDICT: u32 = 0xffff_ff00;

/// `NFTNL_UDATA_SET_MERGE_ELEMENTS`
const MERGE_ELEMENTS: u8 = 2;
