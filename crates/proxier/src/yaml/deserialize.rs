//! A serde deserializer over a tree, whose errors have the line, the column and the path of the field.

use std::fmt;

use serde::de::value::StrDeserializer;
use serde::de::{self, DeserializeOwned, DeserializeSeed, IntoDeserializer as _, Visitor};
use serde::forward_to_deserialize_any;

use super::{Fault, Node, Value, key_text};

/// Deserializes a node. `path` is the path to the node, for messages.
pub(crate) fn typed<T: DeserializeOwned>(
    node: &Node<'_>,
    path: &str,
    ignored: impl FnMut(serde_ignored::Path<'_>),
) -> Result<T, Fault> {
    serde_ignored::deserialize(node, ignored).map_err(|error: Error| {
        let (line, column) = error.place.unwrap_or((node.line, node.column));
        let path =
            [path, &error.path].iter().filter(|part| !part.is_empty()).copied().collect::<Vec<_>>().join(".");
        let reason = if path.is_empty() { error.reason } else { format!("{path}: {}", error.reason) };
        Fault { line, column: Some(column), reason }
    })
}

/// An error of serde, with the path and the place of the innermost node that it is about.
#[derive(Debug)]
pub(crate) struct Error {
    reason: String,
    path: String,
    place: Option<(usize, usize)>,
}

impl Error {
    fn at(mut self, node: &Node<'_>) -> Self {
        self.place.get_or_insert((node.line, node.column));
        self
    }

    fn under(mut self, step: &str) -> Self {
        let joint = if self.path.is_empty() || self.path.starts_with('[') { "" } else { "." };
        self.path = format!("{step}{joint}{}", self.path);
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}

impl std::error::Error for Error {}

impl de::Error for Error {
    fn custom<T: fmt::Display>(reason: T) -> Self {
        Self { reason: reason.to_string(), path: String::new(), place: None }
    }
}

impl<'de, 'a: 'de> de::Deserializer<'de> for &'de Node<'a> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match &self.value {
            Value::Null => visitor.visit_unit(),
            Value::Bool(value) => visitor.visit_bool(*value),
            Value::Integer(value) => visitor.visit_i64(*value),
            Value::Float(value) => visitor.visit_f64(*value),
            Value::String(value) => visitor.visit_borrowed_str(value),
            Value::Sequence(items) => visitor.visit_seq(Items { items: items.iter(), index: 0 }),
            Value::Mapping(entries) => visitor.visit_map(Entries { entries: entries.iter(), value: None }),
        }
        .map_err(|error| error.at(self))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.value {
            Value::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
        .map_err(|error: Error| error.at(self))
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self).map_err(|error: Error| error.at(self))
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map struct enum identifier
    }
}

struct Items<'de> {
    items: std::slice::Iter<'de, Node<'de>>,
    index: usize,
}

impl<'de> de::SeqAccess<'de> for Items<'de> {
    type Error = Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Error> {
        let Some(item) = self.items.next() else { return Ok(None) };
        let index = self.index;
        self.index += 1;
        seed.deserialize(item).map(Some).map_err(|error| error.under(&format!("[{index}]")))
    }
}

struct Entries<'de> {
    entries: std::slice::Iter<'de, (Node<'de>, Node<'de>)>,
    value: Option<(&'de Node<'de>, &'de Node<'de>)>,
}

impl<'de> de::MapAccess<'de> for Entries<'de> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Error> {
        let Some((key, value)) = self.entries.next() else { return Ok(None) };
        self.value = Some((key, value));
        let text = key_text(key);
        let name: StrDeserializer<'_, Error> = (*text).into_deserializer();
        seed.deserialize(name).map(Some).map_err(|error| error.at(key))
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, Error> {
        let (key, value) =
            self.value.take().ok_or_else(|| de::Error::custom("a value was asked for before its key"))?;
        seed.deserialize(value).map_err(|error| error.under(&key_text(key)))
    }
}
