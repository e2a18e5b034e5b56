//! Places in a document: a value, and how it is reached; and which members were read.
//!
//! nft passes over members that it does not know, so that a misspelt `"dev"` makes a chain of no device. Here
//! whoever wants a member asks for it by name, which notes it, and what nobody has asked for is a mistake.

use std::cell::RefCell;

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

/// The members that were read, as the addresses of their values.
#[derive(Debug, Default)]
pub(super) struct ReadMembers(RefCell<Vec<usize>>);

impl ReadMembers {
    fn note(&self, value: &Value) {
        self.0.borrow_mut().push(address(value));
    }

    fn note_all(&self, value: &Value) {
        match value {
            Value::Array(list) => list.iter().for_each(|value| self.note_all(value)),
            Value::Object(members) => members.values().for_each(|value| {
                self.note(value);
                self.note_all(value);
            }),
            _ => {}
        }
    }

    /// Checks that all members of what was read were, and forgets them.
    pub(super) fn check_whole(&self, node: &Node<'_>) -> Parsed<()> {
        let mut read = self.0.take();
        read.sort_unstable();
        let checked = node.check_members(&read);
        // The room serves for the next command.
        read.clear();
        self.0.replace(read);
        checked
    }

    /// Forgets what was read of a command that is wrong in another way.
    pub(super) fn clear(&self) {
        self.0.borrow_mut().clear();
    }
}

/// Nothing moves while a document is read: the address tells a value from all others.
fn address(value: &Value) -> usize {
    std::ptr::from_ref(value).addr()
}

/// A value of a document and its place in it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Node<'a> {
    pub(super) value: &'a Value,
    parent: Option<&'a Node<'a>>,
    step: Step<'a>,
    read: &'a ReadMembers,
}

#[derive(Debug, Clone, Copy)]
enum Step<'a> {
    Root,
    Member(&'a str),
    Index(usize),
}

impl<'a> Node<'a> {
    /// The whole document.
    pub(super) fn root(value: &'a Value, read: &'a ReadMembers) -> Self {
        Self { value, parent: None, step: Step::Root, read }
    }

    fn child<'s>(&'s self, value: &'s Value, step: Step<'s>) -> Node<'s> {
        Node { value, parent: Some(self), step, read: self.read }
    }

    /// Whether a member is there and not null, without reading it.
    pub(super) fn has(&self, name: &str) -> bool {
        self.value.get(name).is_some_and(|value| !value.is_null())
    }

    /// Passes over members of these names: a listing has them, and they say nothing here.
    pub(super) fn pass_over(&self, names: &[&str]) {
        for value in names.iter().filter_map(|name| self.value.get(name)) {
            self.read.note(value);
            self.read.note_all(value);
        }
    }

    /// Passes over whatever this value contains.
    pub(super) fn pass_over_all(&self) {
        self.read.note_all(self.value);
    }

    fn check_members(&self, read: &[usize]) -> Parsed<()> {
        match self.value {
            Value::Array(list) => list
                .iter()
                .enumerate()
                .filter(|(_, value)| value.is_array() || value.is_object())
                .try_for_each(|(i, value)| self.child(value, Step::Index(i)).check_members(read)),
            Value::Object(members) => members.iter().try_for_each(|(name, value)| {
                let member = self.child(value, Step::Member(name));
                match read.binary_search(&address(value)) {
                    Ok(_) => member.check_members(read),
                    Err(_) => Err(member.wrong("no member of this name, which has no meaning here")),
                }
            }),
            _ => Ok(()),
        }
    }

    /// A member of an object, if it is there.
    pub(super) fn member<'s>(&'s self, name: &'s str) -> Option<Node<'s>> {
        let value = self.value.get(name)?;
        self.read.note(value);
        Some(self.child(value, Step::Member(name)))
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
                self.read.note(value);
                Ok((name, self.child(value, Step::Member(name))))
            }
            _ => Err(self.wrong(&format!("{expected}, with one member"))),
        }
    }

    /// The values of a list.
    pub(super) fn list(&self, expected: &str) -> Parsed<impl Iterator<Item = Node<'_>>> {
        let list = self.value.as_array().ok_or_else(|| self.wrong(expected))?;
        Ok(list.iter().enumerate().map(|(i, value)| self.child(value, Step::Index(i))))
    }

    /// The values of a list, or the only one.
    pub(super) fn one_or_more(&self) -> Vec<Node<'_>> {
        match self.value.as_array() {
            Some(list) => {
                list.iter().enumerate().map(|(i, value)| self.child(value, Step::Index(i))).collect()
            }
            None => vec![*self],
        }
    }

    /// The same, where nft refuses an empty list.
    pub(super) fn some(&self, expected: &str) -> Parsed<Vec<Node<'_>>> {
        let list = self.one_or_more();
        if list.is_empty() { Err(self.wrong(expected)) } else { Ok(list) }
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

    /// `null`, or an object without members, where there is nothing to say.
    pub(super) fn null(&self) -> Parsed<()> {
        let is_empty = self.value.as_object().is_some_and(serde_json::Map::is_empty);
        if is_empty || self.value.is_null() { Ok(()) } else { Err(self.wrong("null")) }
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
