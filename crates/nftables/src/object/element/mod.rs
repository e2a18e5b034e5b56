//! Elements of sets and maps (`enum nft_set_elem_attributes`): small, without an allocation each in the usual case.

mod misfit;
mod text;
mod wire;

use std::time::Duration;

use crate::key::Key;
use crate::lang::{Statement, Verdict};
use crate::name::{Comment, Name};
use crate::object::SetId;
pub(crate) use misfit::{backwards, misfit};
pub(crate) use text::{prefix_length, wildcard};
pub(crate) use wire::{
    Form, are_otherwise_in_intervals, encode_start, is_turned, needs_start, sortable, successor, turned_back,
    wire_count, wire_key,
};

/// An element of a set or a map.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Element {
    key: Key,
    data: ElementData,
    /// What few elements have.
    rare: Option<Box<Rare>>,
}

/// What an element of a map maps to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ElementData {
    /// Nothing: it is an element of a set.
    None,
    /// A value.
    Value(Key),
    /// A range of values, in maps that are made for it.
    Range(Box<(Key, Key)>),
    /// A verdict.
    Verdict(Verdict),
    /// A stateful object.
    Object(Name),
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Rare {
    end: Option<Key>,
    timeout: Option<Duration>,
    expires: Option<Duration>,
    comment: Option<Comment>,
    statements: Vec<Statement>,
}

impl Element {
    /// The timeout of an element that stays, whatever the timeout of its set: `timeout never`. Linux tells it since 6.12, and nft reads and shows it
    /// since 1.1.1; nft 1.0.6 refuses the word, and lists the element without it.
    pub const NEVER: Duration = Duration::ZERO;

    /// An element with this key.
    #[inline]
    pub fn new(key: impl Into<Key>) -> Self {
        Self { key: key.into(), data: ElementData::None, rare: None }
    }

    /// An element for all keys from `low` to `high`, both included, of a set with the flag `interval`.
    ///
    /// In such a set, single keys are intervals too, and one that is sent without its end would reach up to the next element.
    /// [`Transaction::apply`](crate::Transaction::apply) sees to that: of a set that the transaction does not make, it asks the kernel. Give the same
    /// key twice to save it the question, and to [`Transaction::encode`](crate::Transaction::encode), which asks nobody.
    pub fn range(low: impl Into<Key>, high: impl Into<Key>) -> Self {
        let mut element = Self::new(low);
        element.rare().end = Some(high.into());
        element
    }

    /// The element `*`, for all keys that no other element matches. Since Linux 5.13.
    #[must_use]
    pub fn catch_all() -> Self {
        Self::new(Key::new())
    }

    /// That maps to a value.
    #[inline]
    #[must_use]
    pub fn value(mut self, value: impl Into<Key>) -> Self {
        self.data = ElementData::Value(value.into());
        self
    }

    /// That maps to a range of values.
    #[must_use]
    pub fn value_range(mut self, low: impl Into<Key>, high: impl Into<Key>) -> Self {
        self.data = ElementData::Range(Box::new((low.into(), high.into())));
        self
    }

    /// That maps to a verdict.
    #[inline]
    #[must_use]
    pub fn verdict(mut self, verdict: Verdict) -> Self {
        self.data = ElementData::Verdict(verdict);
        self
    }

    /// That maps to a stateful object.
    #[must_use]
    pub fn object(mut self, name: Name) -> Self {
        self.data = ElementData::Object(name);
        self
    }

    /// With a comment.
    #[must_use]
    pub fn comment(mut self, comment: Comment) -> Self {
        self.rare().comment = Some(comment);
        self
    }

    /// That goes after so long, in milliseconds; one at least, unless it is [zero](Element::NEVER).
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        let least = if timeout == Self::NEVER { timeout } else { Duration::from_millis(1) };
        self.rare().timeout = Some(timeout.max(least));
        self
    }

    /// That goes after so long this once, whatever its timeout is.
    #[must_use]
    pub fn expires(mut self, expires: Duration) -> Self {
        self.rare().expires = Some(expires);
        self
    }

    /// That carries a counter, a limit or the like.
    #[must_use]
    pub fn statement(mut self, statement: impl Into<Statement>) -> Self {
        self.rare().statements.push(statement.into());
        self
    }

    /// Its key; of a range, the lowest; of the element `*`, one of no part.
    #[inline]
    #[must_use]
    pub fn key(&self) -> &Key {
        &self.key
    }

    /// The highest key of a range.
    #[inline]
    #[must_use]
    pub fn end(&self) -> Option<&Key> {
        self.rare.as_ref()?.end.as_ref()
    }

    /// What it maps to.
    #[inline]
    #[must_use]
    pub fn data(&self) -> &ElementData {
        &self.data
    }

    /// Its comment.
    #[must_use]
    pub fn get_comment(&self) -> Option<&Comment> {
        self.rare.as_ref()?.comment.as_ref()
    }

    /// Its own timeout, which may be [never](Element::NEVER).
    #[must_use]
    pub fn get_timeout(&self) -> Option<Duration> {
        self.rare.as_ref()?.timeout
    }

    /// When it goes.
    #[must_use]
    pub fn get_expires(&self) -> Option<Duration> {
        self.rare.as_ref()?.expires
    }

    /// What it carries.
    #[must_use]
    pub fn statements(&self) -> &[Statement] {
        self.rare.as_ref().map_or(&[], |rare| &rare.statements)
    }

    /// Whether it is the element `*`.
    #[inline]
    #[must_use]
    pub fn is_catch_all(&self) -> bool {
        self.key.types().len() == 0
    }

    /// Whether it carries the same as another, and has the same comment.
    pub(crate) fn carries_like(&self, other: &Self) -> bool {
        (self.statements(), self.get_comment()) == (other.statements(), other.get_comment())
    }

    /// Whether it is for more than one key.
    pub(crate) fn is_range(&self) -> bool {
        self.end().is_some_and(|end| *end != self.key)
    }

    /// With another end.
    pub(crate) fn to(mut self, end: Key) -> Self {
        self.rare().end = Some(end);
        self
    }

    fn rare(&mut self) -> &mut Rare {
        self.rare.get_or_insert_default()
    }
}

impl<K: Into<Key>> From<K> for Element {
    fn from(key: K) -> Self {
        Self::new(key)
    }
}

/// Elements of one set or map.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Elements {
    /// The set.
    pub set: SetId,
    /// The elements.
    pub list: Vec<Element>,
}

impl Elements {
    /// Elements of a set.
    pub fn new<E: Into<Element>>(set: &SetId, list: impl IntoIterator<Item = E>) -> Self {
        Self { set: set.clone(), list: list.into_iter().map(Into::into).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_element_is_small() {
        assert!(size_of::<Element>() <= 180, "{}", size_of::<Element>());
    }
}
