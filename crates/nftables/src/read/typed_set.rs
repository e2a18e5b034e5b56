//! Converts sets, maps and their elements to the typed language.

use std::time::Duration;

use crate::datatype::{DataType, Order};
use crate::expr::data::NFT_DATA_VERDICT;
use crate::expr::{Data, Expr};
use crate::key::{Key, Part, width};
use crate::name::Comment;
use crate::object::element::{sortable, successor, unswap_key};
use crate::object::set::length as bytes_of;
use crate::object::userdata::{DATA_TYPEOF, KEY_TYPEOF, MERGE_ELEMENTS};
use crate::object::*;
use crate::read;
use crate::sort;
use crate::tree::Statement;
use crate::tree::stateful::state;

pub(crate) fn set_of(table: &TableId, from_kernel: &read::Set) -> Set {
    let map = from_kernel.flags.intersects(SetFlags::MAP | SetFlags::OBJECT);
    let id = SetId { table: table.clone(), name: from_kernel.name.clone(), map };
    let mut set = Set::new(
        id,
        type_of(from_kernel, KEY_TYPEOF, from_kernel.key_type, from_kernel.key_len, &from_kernel.fields),
    );
    set.data = match (from_kernel.data_type, from_kernel.object_kind) {
        (_, Some(kind)) => Some(SetData::Object(kind)),
        (Some(NFT_DATA_VERDICT), _) => Some(SetData::Verdict),
        (Some(code), _) => Some(data_type_of(from_kernel, code, from_kernel.data_len.unwrap_or(0))),
        (None, None) => None,
    };
    let is_typeof = |of: &SetType| matches!(of, SetType::Typeof(_));
    match &mut set.data {
        // If user data are stored only for the keys or only for the values, nft lists `type`.
        Some(SetData::Interval(of)) if is_typeof(of) != is_typeof(&set.key) => {
            *of = SetType::Parts(of.parts());
            set.key = SetType::Parts(set.key.parts());
        }
        _ => {}
    }
    set.flags = from_kernel.flags - (SetFlags::MAP | SetFlags::OBJECT | SetFlags::CONCAT | SetFlags::EXPR);
    set.timeout = from_kernel.timeout.filter(|t| *t != 0).map(Duration::from_millis);
    set.gc_interval = from_kernel.gc_interval.filter(|t| *t != 0).map(|t| Duration::from_millis(t.into()));
    set.size = from_kernel.size.filter(|size| *size != 0);
    set.policy = from_kernel.policy.filter(|policy| *policy == 1).map(|_| SetPolicy::Memory);
    let merge = read::UserData::new(&from_kernel.user_data).find(MERGE_ELEMENTS);
    set.auto_merge = merge.is_some_and(|value| value.iter().any(|byte| *byte != 0));
    set.statements = from_kernel.expressions.iter().filter_map(state_of).collect();
    set.comment = from_kernel.comment().map(|text| Comment::from_kernel(&text));
    set
}

/// Returns the type of a map's data: an interval if the data have twice the length of the type.
fn data_type_of(from_kernel: &read::Set, code: u32, length: u32) -> SetData {
    let one = type_of(from_kernel, DATA_TYPEOF, code, length / 2, &[]);
    let typed = !matches!(one, SetType::Parts(_));
    if typed && length.is_multiple_of(2) && bytes_of(&one.parts()) == length / 2 {
        return SetData::Interval(match one {
            SetType::Typeof(of) => SetType::Typeof(of),
            other => SetType::Parts(other.parts()),
        });
    }
    SetData::Value(type_of(from_kernel, DATA_TYPEOF, code, length, &[]))
}

/// Returns the type that the user data describe, or else the type by nft's numbers and the lengths.
fn type_of(from_kernel: &read::Set, note: u8, code: u32, length: u32, fields: &[u32]) -> SetType {
    if let Some(of) = read::UserData::new(&from_kernel.user_data).find(note).and_then(typeof_data::decode)
        && (note == DATA_TYPEOF || of != SetType::Queue)
    {
        // Another program may use the same user data with another meaning.
        if has_length(&of.parts(), length) {
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
            // Integers can have any length.
            _ if types.contains(&DataType::INTEGER) => false,
            [only] => bytes(only) == length,
            several => several.iter().map(|of| bytes(of).next_multiple_of(4)).sum::<u32>() == length,
        }
    };
    let integer = |bytes: u32| Part::Integer {
        bytes: u8::try_from(bytes.clamp(1, 16)).unwrap_or(16),
        order: order(from_kernel, note),
    };
    match types {
        Some(types) if fits(&types) => SetType::Types(types),
        Some(types) if matches!(types.as_slice(), [only] if is_wide(*only, length)) => {
            SetType::Parts(types.into_iter().map(Part::Wide).collect())
        }
        // Untyped data of other programs can also have any length.
        Some(types) if types.len() == 1 => SetType::Parts(vec![integer(length)]),
        Some(types) if types.len() == fields.len() => {
            let part = |(of, bytes): (&DataType, &u32)| {
                if u32::try_from(of.bytes()) == Ok(*bytes) { Part::Type(*of) } else { integer(*bytes) }
            };
            SetType::Parts(types.iter().zip(fields).map(part).collect())
        }
        Some(types) if fields.is_empty() && bytes_per_integer(&types, length).is_some() => {
            let bytes = bytes_per_integer(&types, length).unwrap_or_default();
            let part = |of| if of == DataType::INTEGER { integer(bytes) } else { Part::Type(of) };
            SetType::Parts(types.into_iter().map(part).collect())
        }
        _ if !fields.is_empty() => SetType::Parts(fields.iter().map(|bytes| integer(*bytes)).collect()),
        _ => SetType::Parts(words(length).map(integer).collect()),
    }
}

/// Returns the length of each integer of a concatenation, if the total length can be divided among them.
fn bytes_per_integer(types: &[DataType], length: u32) -> Option<u32> {
    let padded = |of: &DataType| u32::try_from(of.bytes().next_multiple_of(4)).unwrap_or(0);
    let (integers, named): (Vec<&DataType>, Vec<_>) = types.iter().partition(|of| **of == DataType::INTEGER);
    let rest = length.checked_sub(named.into_iter().map(padded).sum())?;
    let integers = u32::try_from(integers.len()).ok().filter(|number| *number > 0)?;
    Some(rest / integers).filter(|bytes| *bytes > 0 && bytes.is_multiple_of(4) && bytes * integers == rest)
}

/// Returns whether a key with these parts has this length; `true` if a type is unknown.
fn has_length(parts: &[Part], length: u32) -> bool {
    parts.is_empty() || bytes_of(parts) == length
}

/// Returns whether the keys are one byte longer than the type, because a bit field crosses a byte.
fn is_wide(of: DataType, length: u32) -> bool {
    !of.bits().is_multiple_of(8) && u32::try_from(of.bytes() + 1) == Ok(length)
}

/// Divides a length into parts that a key can have.
fn words(length: u32) -> impl Iterator<Item = u32> {
    // NFT_DATA_VALUE_MAXLEN
    let length = length.min(64);
    (0..length / 16).map(|_| 16).chain((!length.is_multiple_of(16)).then_some(length % 16))
}

/// Returns the byte order that the user data give for the keys or the data of the set.
fn order(from_kernel: &read::Set, note: u8) -> Order {
    const BIG_ENDIAN: u32 = 2;
    let order = read::UserData::new(&from_kernel.user_data)
        .find(u8::from(note == DATA_TYPEOF))
        .and_then(|value| value.try_into().ok());
    if order.map(u32::from_ne_bytes) == Some(BIG_ENDIAN) { Order::Network } else { Order::Host }
}

pub(crate) fn elements_of(set: &Set, from_kernel: &[read::Element]) -> Vec<Element> {
    let parts = set.key.parts();
    let interval = set.flags.contains(SetFlags::INTERVAL) && parts.len() == 1;
    let mut typed: Vec<(Element, bool)> =
        from_kernel.iter().filter_map(|element| element_of(set, &parts, element)).collect();
    if !interval {
        // nft lists intervals of concatenations in the order in which they were added.
        if !set.flags.contains(SetFlags::INTERVAL) {
            // Of equal elements nft lists the last one first.
            typed.reverse();
            let last = last_rank(set);
            sort::by_key(&mut typed, |(element, _)| match element.is_catch_all() {
                true => last.clone(),
                false => rank(&element.key()),
            });
        }
        return typed.into_iter().map(|(element, _)| element).collect();
    }
    // Intervals are stored as starts and ends; at the same key an end sorts before a start.
    sort::by_key(&mut typed, |(element, end)| (element.is_catch_all(), sortable(&element.key()), !end));
    let mut out: Vec<Element> = Vec::new();
    let mut open: Option<Element> = None;
    for (element, end) in typed {
        if element.is_catch_all() {
            out.extend(open.take().map(|start| close(start, None)));
            out.push(element);
            continue;
        }
        if let Some(start) = open.take() {
            out.push(close(start, Some(element.key())));
        }
        if !end {
            open = Some(element);
        }
    }
    out.extend(open.map(|start| close(start, None)));
    out
}

/// Returns the bytes by which nft sorts the elements of a hash table: numbers by value, masks by their lowest
/// bit, and concatenations as one number whose last byte is the most significant.
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

/// Returns the sort key of the catch-all element: that of the last possible key, so that it is listed after
/// it.
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

/// Returns a number, most significant byte first, with only its lowest bit set.
fn lowest_bit(mut bytes: Vec<u8>) -> Vec<u8> {
    let mut seen = false;
    for byte in bytes.iter_mut().rev() {
        *byte = if seen { 0 } else { *byte & byte.wrapping_neg() };
        seen |= *byte != 0;
    }
    bytes
}

/// Returns an interval that ends before a key, or with the last possible key.
fn close(start: Element, behind: Option<Key>) -> Element {
    let last = match behind {
        Some(key) => predecessor(&key),
        None => None,
    };
    let end = last.unwrap_or_else(|| start.key().last_of_type());
    if end == start.key() { start } else { start.to(end) }
}

/// Returns the previous key: the one whose successor this is.
fn predecessor(key: &Key) -> Option<Key> {
    let mut before = *key;
    before.decrement();
    (successor(&before).as_ref() == Some(key)).then_some(before)
}

fn element_of(set: &Set, parts: &[Part], from_kernel: &read::Element) -> Option<(Element, bool)> {
    let byte_swapped = set.flags.contains(SetFlags::INTERVAL);
    let key_of = |bytes: &[u8]| match byte_swapped {
        true => Key::decode(parts, &unswap_key(parts, bytes)),
        false => Key::decode(parts, bytes),
    };
    let mut element = if from_kernel.flags.contains(read::ElementFlags::CATCHALL) {
        Element::catch_all()
    } else {
        Element::new(key_of(&from_kernel.key)?)
    };
    if let Some(end) =
        from_kernel.details().key_end.as_deref().and_then(key_of).filter(|end| *end != element.key())
    {
        element = element.to(end);
    }
    element = match (&from_kernel.data, &from_kernel.details().object, &set.data) {
        (Some(Data::Verdict(verdict)), _, _) => element.verdict(verdict.clone()),
        (Some(Data::Value(bytes)), _, Some(SetData::Value(of) | SetData::Interval(of))) => {
            data_of(element, &of.parts(), bytes)?
        }
        (_, Some(name), _) => element.object(name.clone()),
        _ => element,
    };
    if let Some(timeout) =
        from_kernel.details().timeout.filter(|timeout| set.timeout != Some(Duration::from_millis(*timeout)))
    {
        element = element.timeout(Duration::from_millis(timeout));
    }
    if let Some(expiration) = from_kernel.details().expiration {
        element = element.expires(Duration::from_millis(expiration));
    }
    if let Some(comment) = from_kernel.comment().map(|text| Comment::from_kernel(&text)) {
        element = element.comment(comment);
    }
    for statement in from_kernel.details().expressions.iter().filter_map(state_of) {
        element = element.statement(statement);
    }
    Some((element, from_kernel.flags.contains(read::ElementFlags::INTERVAL_END)))
}

/// Returns whether the language can express everything that the elements of an anonymous set carry. If not,
/// the rule is listed as raw expressions.
pub(crate) fn are_expressible(from_kernel: &[read::Element]) -> bool {
    from_kernel.iter().flat_map(|element| &element.details().expressions).all(|expr| state(expr).is_some())
}

/// Returns the statement of a stateful expression of a set or an element. Unknown attributes are ignored; the
/// listed object keeps them.
fn state_of(expr: &Expr) -> Option<Statement> {
    match expr {
        Expr::Unknown(newer) => state(&Expr::decode_bytes(&newer.name, newer.data.as_deref()?).ok()?),
        known => state(known),
    }
}

fn data_of(element: Element, parts: &[Part], bytes: &[u8]) -> Option<Element> {
    let (low, high) = bytes.split_at_checked(bytes.len() / 2)?;
    // With at most two bytes, both bounds fit into one 32-bit word.
    let is_one = u32::try_from(low.len()) != Ok(bytes_of(parts));
    if let Some(value) = Key::decode(parts, bytes).filter(|_| is_one) {
        return Some(element.value(value));
    }
    Some(element.value_range(Key::decode(parts, low)?, Key::decode(parts, high)?))
}
