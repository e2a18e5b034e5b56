//! Constants: what a string, a number or a truth value is for a type.

use serde_json::Value;

use crate::datatype::DataType;
use crate::json::node::{Node, Parsed};
use crate::json::scope::Within;
use crate::key::Part;
use crate::text::parse::constant::{Typed, Wrong, constant, number, untyped};
use crate::tree;

/// A constant of a type, or, where the type is unknown, of the type that its form suggests.
pub(in crate::json) fn parse(node: &Node<'_>, of: Option<Typed>, within: Within<'_>) -> Parsed<tree::Value> {
    match (node.value, of) {
        // Of any other type nft says that a truth value is another.
        (Value::Bool(is), Some(of)) if of.data_type() == DataType::BOOLEAN => {
            resolved(node, number((*is).into(), of))
        }
        (Value::Number(_), of) => from_number(node, of),
        (Value::String(text), Some(of)) => resolved(node, constant(text, of, within.options())),
        (Value::String(text), None) => untyped(text).ok_or_else(|| node.wrong("an address or a number")),
        (_, Some(of)) => Err(node.wrong(&of.wanted())),
        (_, None) => Err(node.wrong("a constant")),
    }
}

fn from_number(node: &Node<'_>, of: Option<Typed>) -> Parsed<tree::Value> {
    let value = node.value;
    let Some(of) = of else {
        return value
            .as_u64()
            .or_else(|| value.as_i64().map(i64::cast_unsigned))
            .map(tree::Value::Number)
            .ok_or_else(|| node.wrong("a whole number"));
    };
    if let (DataType::TIME, Some(seconds)) = (of.data_type(), value.as_f64())
        && !value.is_u64()
        && (0.0..1e9).contains(&seconds)
    {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is in range")]
        return Ok(tree::Value::Number((seconds * 1000.0).round() as u64));
    }
    let whole = match (value.as_u64(), value.as_i64()) {
        (Some(whole), _) => Some(whole),
        // nft prints numbers of 64 bits with a sign.
        (None, Some(negative)) if of.width() == 64 => Some(negative.cast_unsigned()),
        _ => None,
    };
    match whole {
        Some(whole) => resolved(node, number(whole, of)),
        None => Err(node.wrong(&of.wanted())),
    }
}

fn resolved(node: &Node<'_>, value: Result<tree::Value, Wrong>) -> Parsed<tree::Value> {
    value.map_err(|wrong| node.wrong(&wrong.expected).meant(wrong.meant.as_deref()))
}

/// The types of some parts.
pub(in crate::json) fn types(parts: &[Part]) -> Vec<Typed> {
    parts.iter().map(|part| Typed::from(*part)).collect()
}
