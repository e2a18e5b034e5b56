//! JSON values whose members keep their order, printed with the spaces that nft writes.

use std::borrow::Cow;
use std::fmt::{self, Display, Formatter};

use sluicegate_netlink::text::is_utf8;

/// A JSON value as nft prints it: in one line, `, ` between members and `: ` behind names.
///
/// Members keep the order in which they were added, which is nft's.
///
/// ```
/// use sluicegate_nftables::json::Value;
///
/// let command = Value::Object(vec![("flush".into(), Value::Object(vec![("ruleset".into(), Value::Null)]))]);
/// let document = Value::Object(vec![("nftables".into(), Value::from(vec![command, 1.into()]))]);
/// assert_eq!(document.to_string(), r#"{"nftables": [{"flush": {"ruleset": null}}, 1]}"#);
/// assert_eq!(serde_json::Value::from(document)["nftables"][1], 1);
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Value {
    /// `null`
    #[default]
    Null,
    /// `true` or `false`
    Bool(bool),
    /// An integer from nought up.
    Unsigned(u64),
    /// An integer below nought.
    Signed(i64),
    /// A number with a fraction; JSON has `null` for one that is not finite.
    Float(f64),
    /// A string, without quotes and escapes.
    String(String),
    /// A list.
    Array(Vec<Value>),
    /// Members with their names, in order.
    Object(Vec<(Cow<'static, str>, Value)>),
}

impl Value {
    /// Returns the member of an object with a name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Value> {
        let Self::Object(members) = self else { return None };
        members.iter().find(|(of, _)| of == name).map(|(_, value)| value)
    }

    /// Returns the values of a list.
    #[must_use]
    pub fn as_array(&self) -> Option<&[Value]> {
        match self {
            Self::Array(values) => Some(values),
            _ => None,
        }
    }

    /// Puts a member behind those of an object, or in the place of the one with its name.
    pub(super) fn insert(&mut self, name: impl Into<Cow<'static, str>>, value: Value) {
        let Self::Object(members) = self else { return };
        let name = name.into();
        match members.iter_mut().find(|(of, _)| *of == name) {
            Some((_, old)) => *old = value,
            None => members.push((name, value)),
        }
    }

    /// Inserts the members of another object.
    pub(super) fn extend(&mut self, other: Value) {
        let Self::Object(members) = other else { return };
        for (name, value) in members {
            self.insert(name, value);
        }
    }
}

impl Value {
    /// Returns the first string of it that is not text: a name or a comment of the kernel that is not UTF-8,
    /// whose bytes are represented as [`netlink::text`](crate::netlink::text) describes. JSON cannot hold
    /// such bytes, so that what is printed would be another name.
    #[must_use]
    pub fn string_of_bytes(&self) -> Option<&str> {
        match self {
            Self::String(text) => Some(text.as_ref()).filter(|text: &&str| !is_utf8(text)),
            Self::Array(list) => list.iter().find_map(Self::string_of_bytes),
            Self::Object(members) => members.iter().find_map(|(name, value)| {
                Some(name.as_ref()).filter(|name: &&str| !is_utf8(name)).or_else(|| value.string_of_bytes())
            }),
            _ => None,
        }
    }
}

impl Display for Value {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Bool(of) => write!(f, "{of}"),
            Self::Unsigned(number) => write!(f, "{number}"),
            Self::Signed(number) => write!(f, "{number}"),
            Self::Float(number) => write!(f, "{}", serde_json::Value::from(*number)),
            Self::String(text) => write_string(f, text),
            Self::Array(list) => {
                f.write_str("[")?;
                for (i, value) in list.iter().enumerate() {
                    write!(f, "{}{value}", if i > 0 { ", " } else { "" })?;
                }
                f.write_str("]")
            }
            Self::Object(members) => {
                f.write_str("{")?;
                for (i, (name, value)) in members.iter().enumerate() {
                    f.write_str(if i > 0 { ", " } else { "" })?;
                    write_string(f, name)?;
                    write!(f, ": {value}")?;
                }
                f.write_str("}")
            }
        }
    }
}

fn write_string(f: &mut Formatter<'_>, text: &str) -> fmt::Result {
    f.write_str("\"")?;
    for c in text.chars() {
        match c {
            '"' => f.write_str("\\\"")?,
            '\\' => f.write_str("\\\\")?,
            '\u{8}' => f.write_str("\\b")?,
            '\u{c}' => f.write_str("\\f")?,
            '\n' => f.write_str("\\n")?,
            '\r' => f.write_str("\\r")?,
            '\t' => f.write_str("\\t")?,
            c if u32::from(c) < 0x20 => write!(f, "\\u{:04X}", u32::from(c))?,
            c => write!(f, "{c}")?,
        }
    }
    f.write_str("\"")
}

/// Converts to the value of `serde_json`, which does not keep the order of members.
impl From<Value> for serde_json::Value {
    fn from(value: Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(of) => of.into(),
            Value::Unsigned(number) => number.into(),
            Value::Signed(number) => number.into(),
            Value::Float(number) => number.into(),
            Value::String(text) => text.into(),
            Value::Array(list) => list.into_iter().map(Self::from).collect(),
            Value::Object(members) => {
                members.into_iter().map(|(name, value)| (name.into_owned(), Self::from(value))).collect()
            }
        }
    }
}

macro_rules! from {
    ($($of:ty => $value:expr;)*) => {
        $(impl From<$of> for Value {
            fn from(of: $of) -> Self {
                $value(of)
            }
        })*
    };
}

from! {
    bool => Self::Bool;
    u8 => |of| Self::Unsigned(u64::from(of));
    u16 => |of| Self::Unsigned(u64::from(of));
    u32 => |of| Self::Unsigned(u64::from(of));
    u64 => Self::Unsigned;
    usize => |of| Self::Unsigned(u64::try_from(of).unwrap_or(u64::MAX));
    i32 => |of| Self::from(i64::from(of));
    i64 => |of| u64::try_from(of).map_or(Self::Signed(of), Self::Unsigned);
    f64 => Self::Float;
    &str => |of: &str| Self::String(of.to_owned());
    String => Self::String;
}

impl<T: Into<Value>> From<Vec<T>> for Value {
    fn from(list: Vec<T>) -> Self {
        Self::Array(list.into_iter().map(Into::into).collect())
    }
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(of: Option<T>) -> Self {
        of.map_or(Self::Null, Into::into)
    }
}

/// Builds an object: `object!({"name": value, ...})`.
macro_rules! object {
    ({ $($name:literal: $value:expr),* $(,)? }) => {
        $crate::json::Value::Object(vec![$(($name.into(), $crate::json::Value::from($value))),*])
    };
}
pub(super) use object;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<u32>().prop_map(|number| Value::from(f64::from(number) / 1000.0)),
            any::<String>().prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 40, 5, |inner| {
            let members = prop::collection::hash_map(any::<String>(), inner.clone(), 0..5);
            prop_oneof![
                prop::collection::vec(inner, 0..5).prop_map(Value::from),
                members.prop_map(|members| Value::Object(
                    members.into_iter().map(|(name, value)| (name.into(), value)).collect()
                )),
            ]
        })
    }

    proptest! {
        #[test]
        fn what_is_printed_is_read_as_what_it_was(value in value()) {
            let read: serde_json::Value = serde_json::from_str(&value.to_string()).unwrap();
            prop_assert_eq!(read, serde_json::Value::from(value));
        }
    }

    #[test]
    fn members_keep_their_order() {
        let mut value = object!({"b": 1, "a": -1, "c": Value::Null});
        value.extend(object!({"a": 1.5, "A": "\u{1}\"/"}));
        assert_eq!(value.to_string(), r#"{"b": 1, "a": 1.5, "c": null, "A": "\u0001\"/"}"#);
    }
}
