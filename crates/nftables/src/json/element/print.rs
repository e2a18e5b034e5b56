//! Elements of sets and maps in JSON.

use crate::json::Value;
use crate::json::constant::{Bits, Context, element_part};
use crate::json::expression::element;
use crate::json::object::time;
use crate::json::statement::verdict;
use crate::json::style::Style;
use crate::json::{object, single};
use crate::key::{Key, Part};
use crate::object::element::{prefix_length, wildcard};
use crate::object::*;

/// Elements with the set that they belong to; only their keys, where they are to be deleted.
pub(in crate::json) fn elements(of: &Elements, key_only: bool, with: Style<'_>) -> Value {
    let list: Vec<_> = of.list.iter().map(|element| member(element, key_only, with)).collect();
    object([
        ("family", Some(of.set.table.family.to_string().into())),
        ("table", Some(of.set.table.name.as_str().into())),
        ("name", Some(of.set.name.as_str().into())),
        ("elem", Some(list.into())),
    ])
}

/// The elements of a set.
pub(in crate::json) fn list(elements: &[Element], with: Style<'_>) -> Value {
    elements.iter().map(|element| member(element, false, with)).collect::<Vec<_>>().into()
}

/// An element of a set, or a pair of a key and a value.
fn member(of: &Element, key_only: bool, with: Style<'_>) -> Value {
    let context = Context::new(&[], Bits::Or, with);
    let key = match of.end() {
        _ if of.is_catch_all() => "*".into(),
        Some(end) => interval(&of.key(), &end, context, false),
        None => single_key(&of.key(), context),
    };
    if key_only {
        return key;
    }
    let timeout = of.get_timeout().filter(|timeout| with.is_script() || !timeout.is_zero());
    let details = [
        timeout.map(|timeout| time(timeout, with)),
        // nft prints it in JSON with `-s` as well.
        of.get_expires().map(|expires| time(expires, with)),
        of.get_comment().map(|comment| comment.as_str().into()),
    ];
    let key = element(key, details, of.statements(), with);
    let data = match of.data() {
        ElementData::None => return key,
        ElementData::Value(value) => single_key(&value, context),
        ElementData::Range(low, high) => interval(&low, &high, context, true),
        ElementData::Verdict(to) => verdict(&to),
        ElementData::Object(name) => name.as_str().into(),
    };
    Value::Array(vec![key, data])
}

fn single_key(key: &Key, context: Context<'_>) -> Value {
    concatenated(key.parts().map(|(part, bytes)| element_part(part, bytes, context)).collect())
}

fn concatenated(mut parts: Vec<Value>) -> Value {
    if parts.len() == 1 { parts.remove(0) } else { single("concat", parts) }
}

/// A range part by part. Of data a single address is a prefix of its whole length, unless there are several
/// parts.
fn interval(low: &Key, high: &Key, context: Context<'_>, of_data: bool) -> Value {
    let several = low.types().len() > 1;
    let as_prefix = of_data && low == high && (!several || context.with.is_script());
    let part = |part: Part, low: &[u8], high: &[u8]| {
        if let Some(stem) = wildcard(part, low, high) {
            return format!("{stem}*").into();
        }
        let prefix = prefix_length(part, low, high).filter(|_| !several || !context.with.avoids_prefix(part));
        match prefix {
            Some(length) if low != high || as_prefix => {
                single("prefix", object!({"addr": element_part(part, low, context), "len": length}))
            }
            _ if low == high => element_part(part, low, context),
            _ => {
                let bound = |bytes| element_part(part, bytes, context.bound());
                single("range", vec![bound(low), bound(high)])
            }
        }
    };
    concatenated(low.parts().zip(high.parts()).map(|((of, low), (_, high))| part(of, low, high)).collect())
}
