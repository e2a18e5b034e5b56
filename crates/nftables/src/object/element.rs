//! Elements of sets and maps (`enum nft_set_elem_attributes`): small, without an allocation each in the usual case.

use std::fmt::{self, Display};
use std::time::Duration;

use sluicegate_netlink::attr::Writer;

use crate::datatype::{DataType, Order};
use crate::expr::data::{NFTA_DATA_VALUE, encode_verdict};
use crate::expr::wire::NFTA_LIST_ELEM;
use crate::key::{Key, Part};
use crate::lang::{Statement, Time, Verdict, stateful};
use crate::name::{Comment, Name};
use crate::object::{Set, SetFlags, SetId, userdata};

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
    #[inline]
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

    /// With another end.
    pub(crate) fn to(mut self, end: Key) -> Self {
        self.rare().end = Some(end);
        self
    }

    /// Without what time and packets have made of it.
    pub(crate) fn set_stateless(&mut self, stateless: impl Fn(&Statement) -> Statement) {
        if let Some(rare) = &mut self.rare {
            rare.expires = None;
            rare.statements = rare.statements.iter().map(stateless).collect();
        }
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
        if let Some(stem) = wildcard(part, low, high) {
            write!(f, "\"{stem}*\"")?;
            continue;
        }
        single(low).fmt(f)?;
        match prefix_length(part, low, high) {
            _ if low == high => {}
            Some(length) => write!(f, "/{length}")?,
            None => write!(f, "-{}", single(high))?,
        }
    }
    Ok(())
}

/// What interface names start with, if a range is of all that start so: zeros below, ones above.
pub(crate) fn wildcard(part: Part, low: &[u8], high: &[u8]) -> Option<String> {
    let length = low.iter().zip(high).take_while(|(l, h)| l == h).count();
    let rest =
        |bytes: &[u8], byte: u8| bytes.get(length..).is_some_and(|rest| rest.iter().all(|b| *b == byte));
    let whole =
        part.data_type() == DataType::IFNAME && length < low.len() && rest(low, 0) && rest(high, 0xff);
    whole.then(|| String::from_utf8_lossy(low.get(..length).unwrap_or_default()).into_owned())
}

/// How many leading bits agree, if all others are 0 in `low` and 1 in `high`; for addresses, which nft shows so.
pub(crate) fn prefix_length(part: Part, low: &[u8], high: &[u8]) -> Option<u32> {
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

/// How a set takes its elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// One by one.
    Plain,
    /// Every key with its end: concatenations with intervals. nft takes the next element's key for an end that is not there.
    Concat,
    /// Every key starts an interval, and another element ends it.
    Interval,
}

impl Form {
    /// That of a set of which only its definition is known.
    pub(crate) fn of(set: &Set) -> Self {
        match (set.flags.contains(SetFlags::INTERVAL), set.key.parts().len()) {
            (false, _) => Self::Plain,
            (true, 1) => Self::Interval,
            (true, _) => Self::Concat,
        }
    }

    /// That of a set that is not known, by its elements.
    pub(crate) fn guess(elements: &[Element]) -> Self {
        match elements.iter().find(|e| e.end().is_some()).map(|e| e.key.types().len()) {
            None => Self::Plain,
            Some(1) => Self::Interval,
            Some(_) => Self::Concat,
        }
    }
}

/// Elements that the kernel counts for these.
pub(crate) fn wire_count(set: &Set, elements: &[Element]) -> usize {
    match Form::of(set) {
        Form::Plain | Form::Concat => elements.len(),
        Form::Interval => {
            let ends = elements
                .iter()
                .filter(|e| !e.is_catch_all() && successor(e.end().unwrap_or(&e.key)).is_some());
            elements.len() + ends.count() + usize::from(needs_start(elements))
        }
    }
}

/// nft marks the space before the first interval of a set without a name.
pub(crate) fn needs_start(elements: &[Element]) -> bool {
    elements.iter().filter(|e| !e.is_catch_all()).all(|e| e.key.bytes().iter().any(|byte| *byte != 0))
}

/// The next key; `None` behind the last. Keys count as numbers in network order, whatever their parts' own.
pub(crate) fn successor(key: &Key) -> Option<Key> {
    let mut next = *key;
    next.increment().then_some(next)
}

/// Bytes by which keys of an interval set sort.
pub(crate) fn sortable(key: &Key) -> Vec<u8> {
    key.parts().flat_map(|(part, value)| in_network_order(part, value)).collect()
}

/// A value's bytes, the most significant first: intervals are compared so.
pub(crate) fn in_network_order(part: Part, value: &[u8]) -> Vec<u8> {
    let mut bytes = value.to_vec();
    if is_turned(part) {
        bytes.reverse();
    }
    bytes
}

/// Whether an interval set keeps values of this type with their bytes turned: numbers in host order, on hosts where that matters.
pub(crate) fn is_turned(part: Part) -> bool {
    let text = matches!(part.data_type(), DataType::IFNAME | DataType::STRING);
    part.order() == Order::Host && !text && cfg!(target_endian = "little")
}

impl Element {
    /// Appends it as `NFTA_LIST_ELEM` attributes of a list: one, or two for an interval. `key_only` is for deletions.
    pub(crate) fn encode(&self, list: &mut Writer<'_>, form: Form, key_only: bool) {
        match form {
            Form::Plain => self.encode_one(list, None, false, key_only),
            Form::Concat => self.encode_one(list, Some(self.end().unwrap_or(&self.key)), true, key_only),
            Form::Interval => {
                self.encode_one(list, None, true, key_only);
                let last = self.end().unwrap_or(&self.key);
                if !self.is_catch_all()
                    && let Some(behind) = successor(last)
                {
                    encode_end(&behind, list);
                }
            }
        }
    }

    fn encode_one(&self, list: &mut Writer<'_>, end: Option<&Key>, turned: bool, key_only: bool) {
        let mut element = list.nest(NFTA_LIST_ELEM);
        if self.is_catch_all() {
            element.put_be32(NFTA_SET_ELEM_FLAGS, CATCHALL);
        } else {
            put_key(&mut element, NFTA_SET_ELEM_KEY, &self.key, turned);
        }
        if let Some(end) = end.filter(|_| !self.is_catch_all()) {
            put_key(&mut element, NFTA_SET_ELEM_KEY_END, end, turned);
        }
        if key_only {
            return;
        }
        match &self.data {
            ElementData::None => {}
            ElementData::Value(value) => put_key(&mut element, NFTA_SET_ELEM_DATA, value, false),
            ElementData::Range(range) => {
                let both = [range.0.padded(), range.1.padded()];
                element.nest(NFTA_SET_ELEM_DATA).put_parts(NFTA_DATA_VALUE, &both);
            }
            ElementData::Verdict(verdict) => {
                encode_verdict(verdict, &mut element.nest(NFTA_SET_ELEM_DATA));
            }
            ElementData::Object(name) => element.put_str(NFTA_SET_ELEM_OBJREF, name),
        }
        if let Some(rare) = &self.rare {
            rare.encode(&mut element);
        }
    }
}

fn encode_end(key: &Key, list: &mut Writer<'_>) {
    let mut element = list.nest(NFTA_LIST_ELEM);
    element.put_be32(NFTA_SET_ELEM_FLAGS, INTERVAL_END);
    put_key(&mut element, NFTA_SET_ELEM_KEY, key, true);
}

/// Appends what nft puts before the first interval of a set without a name: the end of nothing.
pub(crate) fn encode_start(first: &Key, list: &mut Writer<'_>) {
    let mut element = list.nest(NFTA_LIST_ELEM);
    element.put_be32(NFTA_SET_ELEM_FLAGS, INTERVAL_END);
    let zero = [0; 64];
    let length = first.bytes().len();
    element.nest(NFTA_SET_ELEM_KEY).put(NFTA_DATA_VALUE, zero.get(..length).unwrap_or_default());
}

fn put_key(w: &mut Writer<'_>, kind: u16, key: &Key, turned: bool) {
    let mut data = w.nest(kind);
    if turned && key.types().any(is_turned) {
        let mut bytes = *key;
        let bytes = bytes.bytes_mut();
        turn(key.types(), bytes);
        data.put(NFTA_DATA_VALUE, bytes);
    } else {
        data.put(NFTA_DATA_VALUE, key.bytes());
    }
}

/// Bytes of an interval set's key with numbers of host order turned back.
pub(crate) fn turned_back(parts: &[Part], bytes: &[u8]) -> Vec<u8> {
    let mut out = bytes.to_vec();
    turn(parts.iter().copied(), &mut out);
    out
}

/// Turns the numbers of host order among the parts of a key.
fn turn(parts: impl Iterator<Item = Part>, key: &mut [u8]) {
    let mut at = 0;
    for part in parts {
        if let Some(value) = key.get_mut(at..at + part.bytes())
            && is_turned(part)
        {
            value.reverse();
        }
        at += part.bytes().next_multiple_of(4);
    }
}

impl Rare {
    fn encode(&self, element: &mut Writer<'_>) {
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        if let Some(timeout) = self.timeout {
            element.put_be64(NFTA_SET_ELEM_TIMEOUT, millis(timeout));
        }
        if let Some(expires) = self.expires {
            element.put_be64(NFTA_SET_ELEM_EXPIRATION, millis(expires));
        }
        if let Some(comment) = &self.comment {
            let text = comment.as_str().as_bytes();
            let length = u8::try_from(text.len() + 1).unwrap_or(u8::MAX);
            element.put_parts(NFTA_SET_ELEM_USERDATA, &[&[userdata::ELEMENT_COMMENT, length], text, &[0]]);
        }
        let mut exprs = self.statements.iter().filter_map(stateful);
        match (exprs.next(), exprs.next()) {
            (Some(only), None) => only.encode(element, NFTA_SET_ELEM_EXPR),
            (first, second) => {
                let mut several = first.into_iter().chain(second).chain(exprs).peekable();
                if several.peek().is_some() {
                    let mut list = element.nest(NFTA_SET_ELEM_EXPRESSIONS);
                    several.for_each(|expr| expr.encode(&mut list, NFTA_LIST_ELEM));
                }
            }
        }
    }
}

const NFTA_SET_ELEM_KEY: u16 = 1;
const NFTA_SET_ELEM_DATA: u16 = 2;
const NFTA_SET_ELEM_FLAGS: u16 = 3;
const NFTA_SET_ELEM_TIMEOUT: u16 = 4;
const NFTA_SET_ELEM_EXPIRATION: u16 = 5;
const NFTA_SET_ELEM_USERDATA: u16 = 6;
const NFTA_SET_ELEM_EXPR: u16 = 7;
const NFTA_SET_ELEM_OBJREF: u16 = 9;
const NFTA_SET_ELEM_KEY_END: u16 = 10;
const NFTA_SET_ELEM_EXPRESSIONS: u16 = 11;
/// `NFT_SET_ELEM_INTERVAL_END`
const INTERVAL_END: u32 = 1;
/// `NFT_SET_ELEM_CATCHALL`
const CATCHALL: u32 = 2;

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
