//! Elements of sets and maps: their keys, what they map to and what they carry, in JSON.

use std::mem::discriminant;

use crate::compile::lower::set_element;
use crate::json::expression::{self, verdict};
use crate::json::node::{Node, Parsed, all};
use crate::json::object::{comment, name, seconds};
use crate::json::scope::Within;
use crate::json::statement::{carried, types_in};
use crate::object::*;
use crate::text::parse::constant::Typed;
use crate::tree::{Expression, Statement};

/// Elements of a set: a list of them, or one.
pub(in crate::json) fn elements(node: &Node<'_>, set: &Set, within: Within<'_>) -> Parsed<Vec<Element>> {
    let types = types_in(&set.key);
    each(node, set, within.max_mistakes(), |member| {
        let Some(data) = &set.data else { return key(member, &types, set, within) };
        let [at, to] = member.pair("a pair of a key and a value")?;
        let element = key(&at, &types, set, within)?;
        Ok(match data {
            SetData::Verdict => element.verdict(verdict(&to)?),
            SetData::Object(_) => element.object(name(&to, "the name of an object")?),
            SetData::Value(of) | SetData::Interval(of) => {
                let value = expression::parse(&to, &types_in(of), within)?;
                let value = packed(&to, of, &value)?;
                match (value.end(), data) {
                    (Some(end), SetData::Interval(_)) => element.value_range(value.key(), end),
                    (None, SetData::Interval(_)) => element.value_range(value.key(), value.key()),
                    (None, _) => element.value(value.key()),
                    (Some(_), _) => return Err(to.wrong("a single value")),
                }
            }
        })
    })
}

/// Keys of elements that are to be deleted; of a map, values may be given as well, and do not matter.
pub(in crate::json) fn keys(node: &Node<'_>, set: &Set, within: Within<'_>) -> Parsed<Vec<Element>> {
    let types = types_in(&set.key);
    let one = |member: &Node<'_>| match member.value.as_array() {
        Some(_) if set.data.is_some() => {
            let [at, to] = member.pair("a pair of a key and a value")?;
            to.pass_over_all();
            key(&at, &types, set, within)
        }
        _ => key(member, &types, set, within),
    };
    let inner = node.given("set");
    all(inner.as_ref().unwrap_or(node).some("elements")?.iter().map(one), within.max_mistakes())
}

fn each(
    node: &Node<'_>,
    set: &Set,
    max_mistakes: usize,
    element: impl Fn(&Node<'_>) -> Parsed<Element>,
) -> Parsed<Vec<Element>> {
    // `nft -j monitor` puts them in a set without a name.
    if let Some(inner) = node.given("set") {
        return all(inner.some("elements")?.iter().map(element), max_mistakes);
    }
    // A pair is a list as well.
    let one = set.data.is_some()
        && node.value.as_array().is_some_and(|list| !list.iter().all(serde_json::Value::is_array));
    match one {
        true => Ok(vec![element(node)?]),
        false => all(node.some("elements")?.iter().map(element), max_mistakes),
    }
}

fn key(node: &Node<'_>, types: &[Typed], set: &Set, within: Within<'_>) -> Parsed<Element> {
    let Some(elem) = node.given("elem") else { return plain(node, types, set, within) };
    let mut element = plain(&elem.need("val", "a key")?, types, set, within)?;
    if let Some(timeout) = elem.given("timeout") {
        element = element.timeout(seconds(&timeout)?);
    }
    if let Some(expires) = elem.given("expires") {
        element = element.expires(seconds(&expires)?);
    }
    if let Some(comment) = comment(&elem)? {
        element = element.comment(comment);
    }
    // The kernel wants them in the set's order, which members do not have, and either none or all of them.
    let mut statements = carried(&elem, within)?;
    if !statements.is_empty() {
        let is_missing =
            |of: &&Statement| statements.iter().all(|other| discriminant(other) != discriminant(*of));
        let more: Vec<_> = set.statements.iter().filter(is_missing).cloned().collect();
        statements.extend(more);
    }
    statements
        .sort_by_key(|of| set.statements.iter().position(|other| discriminant(other) == discriminant(of)));
    for statement in statements {
        element = element.statement(statement);
    }
    Ok(element)
}

fn plain(node: &Node<'_>, types: &[Typed], set: &Set, within: Within<'_>) -> Parsed<Element> {
    let value = expression::parse(node, types, within)?;
    packed(node, &set.key, &value)
}

/// A constant as the kernel keeps it.
fn packed(node: &Node<'_>, of: &SetType, value: &Expression) -> Parsed<Element> {
    set_element(&of.parts(), value)
        .map_err(|error| node.wrong(&format!("a value of the set's type ({error})")))
}
