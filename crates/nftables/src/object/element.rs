//! Elements of sets and maps (`enum nft_set_elem_attributes`): small, without an allocation each in the usual case.

use std::fmt::{self, Display};
use std::time::Duration;

use crate::key::{Key, Part};
use crate::lang::{Statement, Time, Verdict};
use crate::name::{Comment, Name};
use crate::object::SetId;

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
    /// An element with this key.
    pub fn new(key: impl Into<Key>) -> Self {
        Self { key: key.into(), data: ElementData::None, rare: None }
    }

    /// An element for all keys from `low` to `high`, both included, of a set with the flag `interval`. In such a set, single keys
    /// are intervals too: give the same key twice unless the transaction makes the set itself.
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

    /// That goes after so long.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.rare().timeout = Some(timeout);
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
    #[must_use]
    pub fn key(&self) -> &Key {
        &self.key
    }

    /// The highest key of a range.
    #[must_use]
    pub fn end(&self) -> Option<&Key> {
        self.rare.as_ref()?.end.as_ref()
    }

    /// What it maps to.
    #[must_use]
    pub fn data(&self) -> &ElementData {
        &self.data
    }

    /// Its comment.
    #[must_use]
    pub fn get_comment(&self) -> Option<&Comment> {
        self.rare.as_ref()?.comment.as_ref()
    }

    /// Its own timeout.
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
    #[must_use]
    pub fn is_catch_all(&self) -> bool {
        self.key.types().len() == 0
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

/// As nft writes it: `1.2.3.4 . tcp . 80 comment "x" : goto c`.
impl Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Printed { element: self, key_only: false }.fmt(f)
    }
}

/// An element, or, where it is to be deleted, only its key.
struct Printed<'a> {
    element: &'a Element,
    key_only: bool,
}

impl Display for Printed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let element = self.element;
        match element.end() {
            _ if element.is_catch_all() => f.write_str("*")?,
            Some(end) => write_interval(f, &element.key, end)?,
            None => element.key.fmt(f)?,
        }
        if self.key_only {
            return Ok(());
        }
        for statement in element.statements() {
            write!(f, " {statement}")?;
        }
        if let Some(timeout) = element.get_timeout() {
            write!(f, " timeout {}", Time(timeout))?;
        }
        if let Some(expires) = element.get_expires() {
            write!(f, " expires {}", Time(expires))?;
        }
        if let Some(comment) = element.get_comment() {
            write!(f, " comment {comment}")?;
        }
        match &element.data {
            ElementData::None => Ok(()),
            ElementData::Value(value) => write!(f, " : {value}"),
            ElementData::Range(range) => {
                f.write_str(" : ")?;
                write_interval(f, &range.0, &range.1)
            }
            ElementData::Verdict(verdict) => write!(f, " : {verdict}"),
            ElementData::Object(name) => write!(f, " : \"{name}\""),
        }
    }
}

/// A range part by part: a single value, a prefix where it is one, else both ends.
fn write_interval(f: &mut fmt::Formatter<'_>, low: &Key, high: &Key) -> fmt::Result {
    for (i, ((part, low), (_, high))) in low.parts().zip(high.parts()).enumerate() {
        if i > 0 {
            f.write_str(" . ")?;
        }
        let single = |value: &[u8]| {
            let mut key = Key::new();
            key.append(part, value);
            key
        };
        single(low).fmt(f)?;
        match prefix_length(part, low, high) {
            _ if low == high => {}
            Some(length) => write!(f, "/{length}")?,
            None => write!(f, "-{}", single(high))?,
        }
    }
    Ok(())
}

/// How many leading bits agree, if all others are 0 in `low` and 1 in `high`; for addresses, which nft shows so.
pub(crate) fn prefix_length(part: Part, low: &[u8], high: &[u8]) -> Option<u32> {
    use crate::datatype::DataType;
    if !matches!(part.data_type(), DataType::IPV4_ADDR | DataType::IPV6_ADDR) {
        return None;
    }
    let mut length = 0;
    let mut ended = false;
    for (l, h) in low.iter().zip(high) {
        let differ = l ^ h;
        let host = differ.count_ones();
        // The bits that differ must be the byte's lowest ones, 0 below and 1 above, and all of every later byte.
        let lowest = u8::try_from((1_u16 << host) - 1).ok()?;
        if differ != lowest || l & lowest != 0 || (ended && differ != 0xff) {
            return None;
        }
        length += 8 - host;
        ended |= differ != 0;
    }
    Some(length)
}

/// As nft's commands say it: `element ip t s { 1.2.3.4, 5.6.7.8 }`.
impl Display for Elements {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(f, false)
    }
}

impl Elements {
    pub(crate) fn write(&self, f: &mut fmt::Formatter<'_>, key_only: bool) -> fmt::Result {
        write!(f, "element {} {{ ", self.set)?;
        for (i, element) in self.list.iter().enumerate() {
            if i > 0 {
                f.write_str(", ")?;
            }
            Printed { element, key_only }.fmt(f)?;
        }
        f.write_str(" }")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::{Port, Protocol};
    use std::net::Ipv4Addr;

    #[test]
    fn elements_print_as_nft_reads_them() {
        let key = (Ipv4Addr::new(1, 2, 3, 4), Protocol::TCP, Port(80));
        let element = Element::new(key)
            .comment(Comment::new("demo/web").unwrap())
            .verdict(Verdict::Goto(Name::new("reject-chain").unwrap()));
        assert_eq!(element.to_string(), "1.2.3.4 . tcp . 80 comment \"demo/web\" : goto reject-chain");
    }

    #[test]
    fn ranges_print_as_prefixes_where_they_are() {
        let range = |a: [u8; 4], b: [u8; 4]| Element::range(Ipv4Addr::from(a), Ipv4Addr::from(b)).to_string();
        assert_eq!(range([10, 0, 0, 0], [10, 255, 255, 255]), "10.0.0.0/8");
        assert_eq!(range([10, 0, 0, 4], [10, 0, 0, 7]), "10.0.0.4/30");
        assert_eq!(range([10, 0, 0, 1], [10, 0, 0, 2]), "10.0.0.1-10.0.0.2");
        assert_eq!(range([10, 0, 0, 0], [10, 1, 0, 255]), "10.0.0.0-10.1.0.255");
        assert_eq!(range([1, 1, 1, 1], [1, 1, 1, 1]), "1.1.1.1");
        assert_eq!(range([0, 0, 0, 0], [255, 255, 255, 255]), "0.0.0.0/0");
    }

    #[test]
    fn an_element_is_small() {
        assert!(size_of::<Element>() <= 180, "{}", size_of::<Element>());
    }
}
