//! Places in a document: a value, and how it is reached.

use serde_json::Value;

use crate::json::error::{JsonError, JsonMistake};
use crate::text::parse::suggest::nearest;

pub(super) type Parsed<T> = Result<T, JsonError>;

/// Collects results, with the mistakes of all of them up to a number.
pub(super) fn all<T>(results: impl Iterator<Item = Parsed<T>>, max_mistakes: usize) -> Parsed<Vec<T>> {
    let mut values = Vec::with_capacity(results.size_hint().0);
    let mut failed: Option<JsonError> = None;
    for result in results {
        match (result, &mut failed) {
            (Ok(value), None) => values.push(value),
            (Ok(_), Some(_)) => {}
            (Err(error), None) => {
                values = Vec::new();
                if failed.insert(JsonError::consequence()).append(error, max_mistakes) {
                    break;
                }
            }
            (Err(error), Some(before)) => {
                if before.append(error, max_mistakes) {
                    break;
                }
            }
        }
    }
    failed.map_or(Ok(values), Err)
}

/// A value of a document and its place in it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Node<'a> {
    pub(super) value: &'a Value,
    parent: Option<&'a Node<'a>>,
    step: Step<'a>,
}

#[derive(Debug, Clone, Copy)]
enum Step<'a> {
    Root,
    Member(&'a str),
    Index(usize),
}

impl<'a> Node<'a> {
    /// The whole document.
    pub(super) fn root(value: &'a Value) -> Self {
        Self { value, parent: None, step: Step::Root }
    }

    /// A member of an object, if it is there.
    pub(super) fn member<'s>(&'s self, name: &'s str) -> Option<Node<'s>> {
        let value = self.value.get(name)?;
        Some(Node { value, parent: Some(self), step: Step::Member(name) })
    }

    /// A member that is there and not null.
    pub(super) fn given<'s>(&'s self, name: &'s str) -> Option<Node<'s>> {
        self.member(name).filter(|node| !node.value.is_null())
    }

    /// A member that has to be there.
    pub(super) fn need<'s>(&'s self, name: &'s str, expected: &str) -> Parsed<Node<'s>> {
        if !self.value.is_object() {
            return Err(self.wrong("an object"));
        }
        self.member(name).ok_or_else(|| self.wrong(&format!("a member {name:?}: {expected}")).found(None))
    }

    /// The one member of an object.
    pub(super) fn only(&self, expected: &str) -> Parsed<(&str, Node<'_>)> {
        let members = self.value.as_object().ok_or_else(|| self.wrong(expected))?;
        let mut members = members.iter();
        match (members.next(), members.next()) {
            (Some((name, value)), None) => {
                Ok((name, Node { value, parent: Some(self), step: Step::Member(name) }))
            }
            _ => Err(self.wrong(&format!("{expected}, with one member"))),
        }
    }

    /// The values of a list.
    pub(super) fn list(&self, expected: &str) -> Parsed<impl Iterator<Item = Node<'_>>> {
        let list = self.value.as_array().ok_or_else(|| self.wrong(expected))?;
        Ok(list.iter().enumerate().map(|(i, value)| Node { value, parent: Some(self), step: Step::Index(i) }))
    }

    /// The values of a list, or the only one.
    pub(super) fn one_or_more(&self) -> Vec<Node<'_>> {
        match self.value.as_array() {
            Some(list) => {
                let node = |(i, value)| Node { value, parent: Some(self), step: Step::Index(i) };
                list.iter().enumerate().map(node).collect()
            }
            None => vec![*self],
        }
    }

    /// Both values of a list of two.
    pub(super) fn pair(&self, expected: &str) -> Parsed<[Node<'_>; 2]> {
        let list: Vec<_> = self.list(expected)?.collect();
        <[Node<'_>; 2]>::try_from(list).map_err(|_| self.wrong(expected))
    }

    /// A string.
    pub(super) fn text(&self, expected: &str) -> Parsed<&'a str> {
        self.value.as_str().ok_or_else(|| self.wrong(expected))
    }

    /// A number that fits.
    pub(super) fn number<T: TryFrom<u64>>(&self, expected: &str) -> Parsed<T> {
        let number = self.value.as_u64().and_then(|number| T::try_from(number).ok());
        number.ok_or_else(|| self.wrong(expected))
    }

    /// A number of 64 bits. nft reads and prints those with a sign: from 2^63 on they are negative.
    pub(super) fn number64(&self, expected: &str) -> Parsed<u64> {
        let signed = || self.value.as_i64().map(i64::cast_unsigned);
        self.value.as_u64().or_else(signed).ok_or_else(|| self.wrong(expected))
    }

    /// `true` or `false`.
    pub(super) fn is_true(&self) -> Parsed<bool> {
        self.value.as_bool().ok_or_else(|| self.wrong("true or false"))
    }

    /// One of some words, as the value that it means.
    pub(super) fn word<T: Copy>(&self, what: &str, words: &[(&str, T)]) -> Parsed<T> {
        let text = self.text(what)?;
        match words.iter().find(|(word, _)| *word == text) {
            Some((_, value)) => Ok(*value),
            None => {
                let names: Vec<_> = words.iter().map(|(word, _)| *word).collect();
                Err(self.unknown(what, &names))
            }
        }
    }

    /// An error that says what is possible here, with the nearest of it where there is one.
    pub(super) fn unknown(&self, what: &str, words: &[&str]) -> JsonError {
        let text = self.value.as_str().unwrap_or_default();
        self.unknown_word(what, text, words)
    }

    /// The same of a name that is not the value.
    pub(super) fn unknown_word(&self, what: &str, text: &str, words: &[&str]) -> JsonError {
        let list = if words.len() > 12 { String::new() } else { format!(" ({})", words.join(", ")) };
        let found = shortened(&Value::from(text));
        self.wrong(&format!("{what}{list}")).found(Some(&found)).meant(nearest(text, words.iter().copied()))
    }

    /// A mistake that is said as a whole: what stands here is not possible in its place.
    pub(super) fn refused(&self, why: &str) -> JsonError {
        JsonError::of(JsonMistake {
            path: self.path().into(),
            expected: format!("a statement that nft takes ({why})").into(),
            found: Some(shortened(self.value).into()),
            suggestion: None,
            line: None,
            column: None,
        })
    }

    /// An error about this value.
    pub(super) fn wrong(&self, expected: &str) -> JsonError {
        JsonError::of(JsonMistake {
            path: self.path().into(),
            expected: expected.into(),
            found: Some(shortened(self.value).into()),
            suggestion: None,
            line: None,
            column: None,
        })
    }

    /// The place as a JSON pointer (RFC 6901).
    fn path(&self) -> String {
        let mut path = self.parent.map(Node::path).unwrap_or_default();
        match self.step {
            Step::Root => {}
            Step::Member(name) => {
                path.push('/');
                path.push_str(&name.replace('~', "~0").replace('/', "~1"));
            }
            Step::Index(index) => path.push_str(&format!("/{index}")),
        }
        path
    }
}

fn shortened(value: &Value) -> String {
    match value {
        Value::Array(list) if list.is_empty() => "an empty list".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(members) => match members.keys().next() {
            Some(name) if members.len() == 1 => format!("an object with {:?}", cut(name)),
            Some(_) => "an object".to_owned(),
            None => "an empty object".to_owned(),
        },
        Value::String(text) => format!("{:?}", cut(text)),
        other => other.to_string(),
    }
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(60) {
        Some((at, _)) => format!("{}...", text.get(..at).unwrap_or_default()),
        None => text.to_owned(),
    }
}
