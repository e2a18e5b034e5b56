//! Sets and maps in JSON.

use crate::datatype::{DataType, Order};
use crate::expr::FibResult;
use crate::json::Value;
use crate::json::element::list;
use crate::json::expression::expression;
use crate::json::object::time;
use crate::json::statement::stateful_list;
use crate::json::style::Style;
use crate::json::{object, single};
use crate::key::Part;
use crate::object::*;
use crate::tree::{Expression, Fib};

/// A set or a map, with its elements where they are to be said.
pub(in crate::json) fn set(
    of: &Set,
    elements: Option<&[Element]>,
    handle: Option<u64>,
    with: Style<'_>,
) -> Value {
    let constant = of.flags.contains(SetFlags::CONSTANT) && !with.is_script();
    let policy = of.policy.filter(|policy| !constant && *policy == SetPolicy::Memory);
    let flags = flags_of(of, with);
    let elements = elements.filter(|elements| !elements.is_empty());
    object([
        ("family", Some(of.id.table.family.to_string().into())),
        ("name", Some(of.id.name.as_str().into())),
        ("table", Some(of.id.table.name.as_str().into())),
        ("type", Some(type_of(&of.key, with))),
        ("handle", handle.map(Value::from)),
        ("comment", of.comment.as_ref().map(|comment| comment.as_str().into())),
        ("map", of.data.as_ref().map(|data| data_type(data, with))),
        ("policy", policy.map(|_| "memory".into())),
        ("size", of.size.filter(|_| !constant).map(Value::from)),
        ("flags", (!flags.is_empty()).then(|| flags.into())),
        ("timeout", of.timeout.map(|timeout| time(timeout, with))),
        ("gc-interval", of.gc_interval.map(|interval| time(interval, with))),
        // nft 1.0.6 does not print it.
        ("auto-merge", (of.auto_merge && with.is_script()).then_some(Value::Bool(true))),
        ("elem", elements.map(|elements| list(elements, with))),
        ("stmt", stateful_list(&of.statements, with)),
    ])
}

/// nft 1.0.6 does not print that rules may change a set.
fn flags_of(of: &Set, with: Style<'_>) -> Vec<Value> {
    const NAMES: [(SetFlags, &str); 4] = [
        (SetFlags::CONSTANT, "constant"),
        (SetFlags::INTERVAL, "interval"),
        (SetFlags::TIMEOUT, "timeout"),
        (SetFlags::DYNAMIC, "dynamic"),
    ];
    let said = NAMES.iter().filter(|(flag, _)| of.flags.contains(*flag));
    let said = said.filter(|(flag, _)| with.is_script() || *flag != SetFlags::DYNAMIC);
    said.map(|(_, name)| (*name).into()).collect()
}

/// A type: its name, or a list of several.
fn type_of(of: &SetType, with: Style<'_>) -> Value {
    match of {
        SetType::Typeof(of) if with.is_script() => single("typeof", expression(of, with)),
        SetType::Queue => "queue".into(),
        // So nft lists it.
        SetType::Typeof(Expression::Fib(Fib { result: FibResult::OIFNAME, check: false, .. })) => {
            DataType::STRING.name().into()
        }
        of => {
            let mut names: Vec<Value> = of.parts().into_iter().map(|part| part_name(part, with)).collect();
            if names.len() == 1 { names.remove(0) } else { names.into() }
        }
    }
}

/// nft says of integers, and of fields across bytes, only what they are; how wide they are has no form in its
/// JSON.
fn part_name(part: Part, with: Style<'_>) -> Value {
    match part {
        Part::Integer { bytes, order } if with.is_script() => {
            let order = if order == Order::Host { "host" } else { "network" };
            single("integer", object!({"bytes": bytes, "order": order}))
        }
        Part::Wide(of) if with.is_script() => single("wide", of.name()),
        part => part.data_type().name().into(),
    }
}

/// What a map maps to: nft writes several types as in its text.
fn data_type(of: &SetData, with: Style<'_>) -> Value {
    match of {
        SetData::Verdict => "verdict".into(),
        SetData::Object(kind) => kind.to_string().into(),
        SetData::Value(of) if with.is_script() => type_of(of, with),
        SetData::Interval(of) if with.is_script() => single("interval", type_of(of, with)),
        SetData::Value(SetType::Queue) => "queue".into(),
        SetData::Value(of) | SetData::Interval(of) => {
            let names: Vec<_> = of.parts().into_iter().map(|part| part.data_type().name()).collect();
            names.join(" . ").into()
        }
    }
}
