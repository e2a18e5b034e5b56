//! JSON manifests: one value or several in sequence, each with its place in the file.
//!
//! `serde_json` accepts an object with the same key twice, of which the last one counts or the first, as the
//! reader happens to be written. A pass over each value refuses them, as in YAML.

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::HashSet;
use std::fmt;
use std::rc::Rc;

use serde::Deserialize;
use serde::de::{self, DeserializeOwned, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::document::{self, Head, Unknown};
use crate::yaml::Fault;

/// Returns the values of a JSON text, up to the first error.
pub(super) fn documents(text: &str) -> impl Iterator<Item = Result<Value<'_>, Fault>> {
    let file = Rc::new(File { text, last: Cell::new((0, Place { line: 1, column: 1 })) });
    // The iterator of serde_json repeats an error forever.
    let stream = serde_json::Deserializer::from_str(text).into_iter::<&RawValue>();
    let mut failed = false;
    stream.map_while(move |next| {
        let ended = std::mem::replace(&mut failed, next.is_err());
        (!ended).then(|| match next {
            Ok(raw) => Ok(Value { file: Rc::clone(&file), raw }),
            Err(e) => Err(fault(Place { line: 1, column: 1 }, &e, "")),
        })
    })
}

/// The text of a file, and the place that was asked for last, with its offset: places are asked for in order,
/// and the beginnings of all lines would take several times the text.
struct File<'a> {
    text: &'a str,
    last: Cell<(usize, Place)>,
}

impl File<'_> {
    fn place(&self, offset: usize) -> Place {
        let (from, last) = match self.last.get() {
            (from, last) if from <= offset => (from, last),
            _ => (0, Place { line: 1, column: 1 }),
        };
        let between = self.text.as_bytes().get(from..offset).unwrap_or_default();
        let place = match between.iter().rposition(|byte| *byte == b'\n') {
            None => Place { line: last.line, column: last.column + between.len() },
            Some(end) => Place {
                line: last.line + between.iter().filter(|byte| **byte == b'\n').count(),
                column: between.len() - end,
            },
        };
        self.last.set((offset, place));
        place
    }
}

/// A JSON value inside the text of its file.
pub(super) struct Value<'a> {
    file: Rc<File<'a>>,
    raw: &'a RawValue,
}

impl<'a> Value<'a> {
    pub(super) fn text(&self) -> &'a str {
        self.raw.get()
    }

    /// Refuses a value in which an object has the same key twice.
    pub(super) fn check_keys(&self) -> Result<(), Fault> {
        match serde_json::from_str(self.raw.get()) {
            Ok(UniqueKeys) => Ok(()),
            Err(e) => Err(fault(self.place(), &e, "")),
        }
    }

    fn place(&self) -> Place {
        // The raw value is a slice of the text, so the difference of addresses is its offset.
        let offset = (self.raw.get().as_ptr() as usize).saturating_sub(self.file.text.as_ptr() as usize);
        self.file.place(offset)
    }

    fn with(&self, items: Vec<&'a RawValue>) -> Vec<Self> {
        items.into_iter().map(|raw| Value { file: Rc::clone(&self.file), raw }).collect()
    }
}

impl document::Value for Value<'_> {
    fn line(&self) -> usize {
        self.place().line
    }

    fn head(&self) -> Result<Head, Fault> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase", expecting = "an object with apiVersion and kind")]
        struct Fields {
            api_version: Option<String>,
            kind: Option<String>,
        }
        let fields: Fields = serde_json::from_str(self.raw.get()).map_err(|e| fault(self.place(), &e, ""))?;
        Ok(Head { api_version: fields.api_version, kind: fields.kind })
    }

    fn elements(&self) -> Result<Option<Vec<Self>>, Fault> {
        if !self.raw.get().starts_with('[') {
            return Ok(None);
        }
        let items = serde_json::from_str(self.raw.get()).map_err(|e| fault(self.place(), &e, ""))?;
        Ok(Some(self.with(items)))
    }

    fn items(&self) -> Result<Option<Vec<Self>>, Fault> {
        #[derive(Deserialize)]
        struct Fields<'a> {
            #[serde(borrow)]
            items: Option<Vec<&'a RawValue>>,
        }
        let fields: Fields<'_> =
            serde_json::from_str(self.raw.get()).map_err(|e| fault(self.place(), &e, ""))?;
        Ok(fields.items.map(|items| self.with(items)))
    }

    fn typed<T: DeserializeOwned>(&self, path: &str) -> Result<(T, Vec<String>), Fault> {
        let mut unknown = Unknown::default();
        let mut deserializer = serde_json::Deserializer::from_str(self.raw.get());
        let object = serde_ignored::deserialize(&mut deserializer, |path| unknown.note(&path));
        match object.and_then(|object| deserializer.end().map(|()| object)) {
            Ok(object) => Ok((object, unknown.fields)),
            Err(error) => Err(fault(self.place(), &error, path)),
        }
    }
}

/// Any value in which no object has the same key twice.
struct UniqueKeys;

impl<'de> Deserialize<'de> for UniqueKeys {
    fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(UniqueKeysVisitor)
    }
}

struct UniqueKeysVisitor;

impl<'de> Visitor<'de> for UniqueKeysVisitor {
    type Value = UniqueKeys;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<UniqueKeys, E> {
        Ok(UniqueKeys)
    }

    fn visit_bool<E>(self, _: bool) -> Result<UniqueKeys, E> {
        Ok(UniqueKeys)
    }

    fn visit_i64<E>(self, _: i64) -> Result<UniqueKeys, E> {
        Ok(UniqueKeys)
    }

    fn visit_u64<E>(self, _: u64) -> Result<UniqueKeys, E> {
        Ok(UniqueKeys)
    }

    fn visit_f64<E>(self, _: f64) -> Result<UniqueKeys, E> {
        Ok(UniqueKeys)
    }

    fn visit_str<E>(self, _: &str) -> Result<UniqueKeys, E> {
        Ok(UniqueKeys)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<UniqueKeys, A::Error> {
        while items.next_element::<UniqueKeys>()?.is_some() {}
        Ok(UniqueKeys)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<UniqueKeys, A::Error> {
        let mut keys = HashSet::new();
        while let Some(Key(key)) = entries.next_key()? {
            if keys.contains(&key) {
                return Err(de::Error::custom(format_args!("the key {key} comes twice")));
            }
            keys.insert(key);
            entries.next_value::<UniqueKeys>()?;
        }
        Ok(UniqueKeys)
    }
}

/// A key, borrowed from the text unless it has escapes.
#[derive(Deserialize)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

#[derive(Clone, Copy)]
struct Place {
    line: usize,
    column: usize,
}

/// Converts an error of `serde_json`, whose place is relative to the value, to a place in the file.
fn fault(start: Place, error: &serde_json::Error, path: &str) -> Fault {
    let (line, column) = match error.line() {
        0 | 1 => (start.line, start.column + error.column().saturating_sub(1)),
        n => (start.line + n - 1, error.column()),
    };
    let text = error.to_string();
    let reason = text.rsplit_once(" at line ").map_or(text.as_str(), |(reason, _)| reason);
    let reason = if path.is_empty() { reason.to_owned() } else { format!("{path}: {reason}") };
    Fault { line, column: Some(column.max(1)), reason }
}
