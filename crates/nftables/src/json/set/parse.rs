//! Sets and maps: what their types, flags and elements are in JSON.

use crate::datatype::{DataType, Order};
use crate::json::element::parse_elements;
use crate::json::expression::of_packet;
use crate::json::node::{Node, Parsed};
use crate::json::object::{KINDS, comment, flags, own_name, seconds, table_id};
use crate::json::scope::{Scope, Within};
use crate::json::statement::of_set;
use crate::key::Part;
use crate::object::*;
use crate::tree::Expression;

/// A set or a map, and the elements that it is to start with.
pub(in crate::json) fn parse(of: &Node<'_>, is_map: bool, scope: &Scope<'_>) -> Parsed<(Set, Vec<Element>)> {
    let table = table_id(of)?;
    let name = own_name(of)?;
    let within = Within { scope, table: &table };
    let words = [
        ("constant", SetFlags::CONSTANT),
        ("interval", SetFlags::INTERVAL),
        ("timeout", SetFlags::TIMEOUT),
        ("dynamic", SetFlags::DYNAMIC),
    ];
    let key = type_of(&of.need("type", "a type")?, within)?;
    let data = match of.given("map") {
        Some(node) => Some(data_of(&node, of, within)?),
        None if is_map => Some(data_of(&of.need("map", "what the map maps to")?, of, within)?),
        None => None,
    };
    let policies = [("performance", SetPolicy::Performance), ("memory", SetPolicy::Memory)];
    let time = |name: &str| of.given(name).map(|node| seconds(&node)).transpose();
    let all = flags(of, "a flag of a set", &words)?;
    let set = Set {
        id: SetId { table: table.clone(), name, map: data.is_some() },
        key,
        data,
        flags: all.into_iter().fold(SetFlags::empty(), |all, flag| all | flag),
        // nft takes 0, which firewalld sends, for none.
        timeout: time("timeout")?.filter(|timeout| !timeout.is_zero()),
        gc_interval: time("gc-interval")?.filter(|interval| !interval.is_zero()),
        size: of.given("size").map(|node| node.number("a number of 32 bits")).transpose()?,
        policy: of.given("policy").map(|node| node.word("a policy", &policies)).transpose()?,
        auto_merge: of.given("auto-merge").map_or(Ok(false), |node| node.is_true())?,
        statements: of_set(of, within)?,
        comment: comment(of)?,
    };
    let elements = match of.given("elem") {
        Some(node) => parse_elements(&node, &set, within)?,
        None => Vec::new(),
    };
    Ok((set, elements))
}

/// A type: a name, several, or what an expression is of.
fn type_of(node: &Node<'_>, within: Within<'_>) -> Parsed<SetType> {
    if let Some(of) = node.given("typeof") {
        let parts = of.one_or_more();
        let typed = SetType::Typeof(match parts.as_slice() {
            [only] => of_packet(only, within)?,
            several => Expression::concat(
                several.iter().map(|part| of_packet(part, within)).collect::<Parsed<Vec<_>>>()?,
            ),
        });
        return match typed.check() {
            Ok(()) => Ok(typed),
            Err(error) => Err(of.wrong(&format!("an expression that has a type ({error})"))),
        };
    }
    // nft prints the types of values in one string.
    let text = node.value.as_str();
    if let Some(text) = text.filter(|text| text.contains('.')) {
        let names = text.split('.').map(str::trim);
        return Ok(SetType::Types(names.map(|name| named(node, name)).collect::<Parsed<_>>()?));
    }
    if text == Some("queue") {
        return Ok(SetType::Queue);
    }
    let nodes = node.one_or_more();
    let parts: Vec<Part> = nodes.iter().map(part).collect::<Parsed<_>>()?;
    let types: Option<Vec<DataType>> = parts
        .iter()
        .map(|part| match part {
            Part::Type(of) => Some(*of),
            _ => None,
        })
        .collect();
    if parts.is_empty() {
        return Err(node.wrong("a type"));
    }
    Ok(match types {
        Some(types) => SetType::Types(types),
        None => SetType::Parts(parts),
    })
}

fn part(node: &Node<'_>) -> Parsed<Part> {
    if let Some(of) = node.given("integer") {
        let bytes_node = of.need("bytes", "a number of bytes")?;
        let bytes = bytes_node.number("a number of bytes")?;
        if !(1..=16).contains(&bytes) {
            return Err(bytes_node.wrong("1 to 16 bytes"));
        }
        let orders = [("host", Order::Host), ("network", Order::Network)];
        return Ok(Part::Integer { bytes, order: of.need("order", "an order")?.word("an order", &orders)? });
    }
    if let Some(of) = node.given("wide") {
        return Ok(Part::Wide(named(&of, of.text("a type")?)?));
    }
    Ok(Part::Type(named(node, node.text("a type")?)?))
}

fn named(node: &Node<'_>, name: &str) -> Parsed<DataType> {
    match DataType::from_name(name) {
        // How wide it is only an expression says.
        Some(DataType::INTEGER | DataType::STRING | DataType::BITMASK) => {
            Err(node
                .wrong("a type with a width, or {\"typeof\": ...} (nft does not list how wide integers are)"))
        }
        Some(of) => Ok(of),
        None => {
            let names: Vec<_> = DataType::ALL.iter().map(|of| of.name()).collect();
            Err(node.unknown_word("a type", name, &names))
        }
    }
}

/// What a map maps to. That it maps to intervals nft does not say; then its elements do.
fn data_of(node: &Node<'_>, set: &Node<'_>, within: Within<'_>) -> Parsed<SetData> {
    match node.value.as_str() {
        Some("verdict") => return Ok(SetData::Verdict),
        Some(text) => {
            if let Some((_, kind)) = KINDS.iter().find(|(word, _)| *word == text) {
                return Ok(SetData::Object(*kind));
            }
        }
        None => {}
    }
    if let Some(of) = node.given("interval") {
        return Ok(SetData::Interval(type_of(&of, within)?));
    }
    let of = type_of(node, within)?;
    Ok(if has_intervals(set) { SetData::Interval(of) } else { SetData::Value(of) })
}

/// Whether a value of the map is a prefix or a range.
fn has_intervals(set: &Node<'_>) -> bool {
    let is_interval =
        |value: &serde_json::Value| value.get("prefix").or_else(|| value.get("range")).is_some();
    let of_parts = |value: &serde_json::Value| {
        let parts = value.get("concat").and_then(serde_json::Value::as_array);
        is_interval(value) || parts.is_some_and(|parts| parts.iter().any(is_interval))
    };
    let elements = set.value.get("elem").and_then(serde_json::Value::as_array);
    elements.into_iter().flatten().filter_map(|pair| pair.get(1)).any(of_parts)
}
