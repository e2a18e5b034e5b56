//! `--echo`: what was added, as text; or, where the commands were a JSON document, that document with the handles
//! of what it has added.

use std::collections::VecDeque;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use sluicegate_nftables::Name;
use sluicegate_nftables::json::Value;
use sluicegate_nftables::monitor::{Change, Event, RuleChange};

/// Returns the document with the handles that the kernel has given, where nft 1.0.6 writes them: within the
/// objects of `add`, `insert` and commands without a verb, beside those of `create` and `replace`.
pub(crate) fn filled_in(document: &str, events: &[Event]) -> Result<Value, serde_json::Error> {
    let Ordered(mut document) = serde_json::from_str(document)?;
    let mut handles = Handles::of(events);
    let Value::Object(members) = &mut document else { return Ok(document) };
    let commands = members.iter_mut().filter(|(name, _)| name == "nftables").map(|(_, commands)| commands);
    for command in commands.filter_map(|commands| match commands {
        Value::Array(list) => Some(list),
        _ => None,
    }) {
        command.iter_mut().for_each(|command| fill_in(command, &mut handles));
    }
    Ok(document)
}

fn fill_in(command: &mut Value, handles: &mut Handles) {
    let Value::Object(members) = command else { return };
    let Some((verb, content)) = members.first_mut() else { return };
    match &**verb {
        "add" | "insert" => {
            if let Value::Object(objects) = content
                && let Some((kind, object)) = objects.first_mut()
            {
                fill_in_object(kind, object, handles);
            }
        }
        verb @ ("create" | "replace") => {
            let verb = verb.to_owned();
            let Value::Object(objects) = content else { return };
            let Some((kind, object)) = objects.first_mut() else { return };
            let mut handle = handles.take(kind, object);
            if verb == "replace" {
                let Value::Object(fields) = object else { return };
                // The first event of a replacement is about the rule that goes.
                let own = fields.iter().position(|(name, _)| name == "handle").map(|at| fields.remove(at).1);
                handle = handle.and(own);
            }
            objects.extend(handle.map(|handle| ("handle".into(), handle)));
        }
        "metainfo" | "delete" | "destroy" | "flush" | "list" | "reset" | "rename" => {}
        kind => {
            let kind = kind.to_owned();
            fill_in_object(&kind, content, handles);
        }
    }
}

fn fill_in_object(kind: &str, object: &mut Value, handles: &mut Handles) {
    let handle = handles.take(kind, object);
    let Value::Object(fields) = object else { return };
    if let Some(handle) = handle {
        fields.retain(|(name, _)| name != "handle");
        fields.push(("handle".into(), handle));
    }
}

/// The handles of what events say is new, in order.
struct Handles(VecDeque<(&'static str, [String; 3], u64)>);

impl Handles {
    fn of(events: &[Event]) -> Self {
        let all = events.iter().filter_map(|event| {
            let (family, table) = event.table()?;
            let own = |name: &Name| [family.to_string(), table.to_string(), name.to_string()];
            Some(match event {
                Event::Table(change, of) if *change != Change::Deleted => ("table", own(&of.name), of.handle),
                Event::Chain(change, of) if *change != Change::Deleted => ("chain", own(&of.name), of.handle),
                Event::Rule(RuleChange::New(_) | RuleChange::Inserted(_), of) => {
                    ("rule", own(&of.chain), of.handle)
                }
                Event::Set(change, of) if *change != Change::Deleted => ("set", own(&of.name), of.handle),
                Event::Object(change, of) if *change != Change::Deleted => {
                    ("object", own(&of.name), of.handle)
                }
                Event::Flowtable(change, of) if *change != Change::Deleted => {
                    ("flowtable", own(&of.name), of.handle)
                }
                _ => return None,
            })
        });
        Self(all.collect())
    }

    /// The handle of an object of the document, if it is new: rules are added in the order of their events.
    fn take(&mut self, kind: &str, object: &Value) -> Option<Value> {
        let text = |name: &str| match object.get(name) {
            Some(Value::String(text)) => text.clone(),
            _ => String::new(),
        };
        let kind = match kind {
            "table" | "chain" | "rule" | "flowtable" => kind,
            "set" | "map" => "set",
            "element" => return None,
            _ => "object",
        };
        let table = if kind == "table" { text("name") } else { text("table") };
        let name = if kind == "rule" { text("chain") } else { text("name") };
        let of = [text("family"), table, name];
        let at = self.0.iter().position(|(other, names, _)| *other == kind && *names == of)?;
        self.0.remove(at).map(|(_, _, handle)| Value::Unsigned(handle))
    }
}

/// A JSON value whose members keep their order, as nft keeps them.
struct Ordered(Value);

impl<'de> Deserialize<'de> for Ordered {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(InOrder).map(Self)
    }
}

struct InOrder;

impl<'de> Visitor<'de> for InOrder {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: Error>(self, of: bool) -> Result<Value, E> {
        Ok(Value::Bool(of))
    }

    fn visit_u64<E: Error>(self, of: u64) -> Result<Value, E> {
        Ok(Value::Unsigned(of))
    }

    fn visit_i64<E: Error>(self, of: i64) -> Result<Value, E> {
        Ok(Value::Signed(of))
    }

    fn visit_f64<E: Error>(self, of: f64) -> Result<Value, E> {
        Ok(Value::Float(of))
    }

    fn visit_str<E: Error>(self, of: &str) -> Result<Value, E> {
        Ok(Value::String(of.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut of: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(Ordered(value)) = of.next_element()? {
            list.push(value);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut of: A) -> Result<Value, A::Error> {
        let mut members: Vec<(std::borrow::Cow<'static, str>, Value)> = Vec::new();
        while let Some((name, Ordered(value))) = of.next_entry::<String, Ordered>()? {
            // As jansson, which keeps the last of a name, at the place of the first.
            match members.iter_mut().find(|(other, _)| *other == name) {
                Some((_, old)) => *old = value,
                None => members.push((name.into(), value)),
            }
        }
        Ok(Value::Object(members))
    }
}
