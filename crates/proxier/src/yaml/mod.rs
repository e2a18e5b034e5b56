//! Parses YAML into a tree whose nodes know their line and column: manifests and the configuration file.
//!
//! Plain scalars mean what they mean to Kubernetes, whose libraries read YAML 1.1: `yes` and `on` are
//! booleans, `010` is octal. A duplicate key is an error. Aliases and merge keys work, up to a limit on the
//! size they expand to.
//!
//! Time and memory are linear in the text. Anchors share their value with the tree instead of copying it;
//! what aliases expand to is bounded by the length of the text, with at least [`MIN_BUDGET`] nodes. Reading
//! takes up to 200 bytes of memory for each byte of the text: a list of one-letter strings takes 90, one
//! inside 90 others 160. A long list can be read element by element: [`outline`] says what a document is, and
//! [`elements`] passes on one tree at a time.

mod deserialize;
mod long;

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use saphyr_parser::{Event, Parser, ScalarStyle, ScanError, StrInput, Tag};

pub(crate) use deserialize::typed;
pub(crate) use long::{elements, outline};

/// An error in a file, and its place there.
#[derive(Debug)]
pub(crate) struct Fault {
    /// The line, from 1.
    pub(crate) line: usize,
    /// The column, from 1, where it is known.
    pub(crate) column: Option<usize>,
    pub(crate) reason: String,
}

/// Decodes the bytes of a file as UTF-8, without a byte order mark.
pub(crate) fn decode(bytes: Vec<u8>) -> Result<String, Fault> {
    let mut text = String::from_utf8(bytes).map_err(|error| {
        let valid = error.as_bytes().iter().take(error.utf8_error().valid_up_to());
        let line = 1 + valid.filter(|byte| **byte == b'\n').count();
        Fault { line, column: None, reason: "expected UTF-8, found other bytes".to_owned() }
    })?;
    if text.starts_with('\u{feff}') {
        text.drain(..'\u{feff}'.len_utf8());
    }
    Ok(text)
}

/// Parses one document that begins on line `first_line` of its file. Returns `None` when the document is
/// empty.
pub(crate) fn parse(text: &str, first_line: usize) -> Result<Option<Node<'_>>, Fault> {
    Builder::new(text, first_line).document(|builder, event, place| builder.node(event, place, 0))
}

/// Parses one document as [`parse`] does, but for a key that comes twice: the last one counts, and each is
/// returned as a fault.
pub(crate) fn parse_leniently(
    text: &str,
    first_line: usize,
) -> Result<(Option<Node<'_>>, Vec<Fault>), Fault> {
    let mut builder = Builder::new(text, first_line);
    builder.doubled = Some(Vec::new());
    let node = builder.document(|builder, event, place| builder.node(event, place, 0))?;
    Ok((node, builder.doubled.unwrap_or_default()))
}

/// A value and the place where it begins.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Node<'a> {
    pub(crate) value: Value<'a>,
    pub(crate) line: usize,
    pub(crate) column: usize,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value<'a> {
    Null,
    Bool(bool),
    Integer(i64),
    Float(f64),
    String(Cow<'a, str>),
    Sequence(Rc<[Node<'a>]>),
    Mapping(Rc<[(Node<'a>, Node<'a>)]>),
}

/// A place in the file: a line and a column, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    line: usize,
    column: usize,
}

impl<'a> Node<'a> {
    /// Returns the value of a key of a mapping.
    pub(crate) fn get(&self, key: &str) -> Option<&Self> {
        let Value::Mapping(entries) = &self.value else { return None };
        entries
            .iter()
            .find(|(k, _)| matches!(&k.value, Value::String(text) if text == key))
            .map(|(_, value)| value)
    }

    pub(crate) fn fault(&self, reason: String) -> Fault {
        Fault { line: self.line, column: Some(self.column), reason }
    }
}

struct Builder<'a> {
    parser: Parser<'a, StrInput<'a>>,
    line_offset: usize,
    /// The value of each anchor, and its size with what its own aliases expand to, in nodes.
    anchors: HashMap<usize, (Node<'a>, usize)>,
    /// The size of everything so far, in nodes; a long string counts as several.
    weight: usize,
    /// How much aliases may still add, in nodes.
    budget: usize,
    /// The items and the entries of the collections that are not at their end, the innermost last: so each of
    /// them is allocated once, when its length is known.
    items: Vec<Node<'a>>,
    entries: Vec<(Node<'a>, Node<'a>)>,
    /// The keys that came twice; `None` where that is an error.
    doubled: Option<Vec<Fault>>,
}

impl<'a> Builder<'a> {
    fn new(text: &'a str, first_line: usize) -> Self {
        Self {
            parser: Parser::new_from_str(text),
            line_offset: first_line - 1,
            anchors: HashMap::new(),
            weight: 0,
            budget: (text.len() / NODE_BYTES).max(MIN_BUDGET),
            items: Vec::new(),
            entries: Vec::new(),
            doubled: None,
        }
    }

    /// Returns what `root` makes of the document, from its first event; `None` for an empty one.
    fn document<T>(
        &mut self,
        mut root: impl FnMut(&mut Self, Event<'a>, Place) -> Result<T, Fault>,
    ) -> Result<Option<T>, Fault> {
        let mut found = None;
        loop {
            let (event, place) = self.next()?;
            match event {
                Event::StreamEnd => return Ok(found),
                Event::StreamStart | Event::DocumentStart(_) | Event::DocumentEnd | Event::Nothing => {}
                _ if found.is_some() => {
                    return Err(fault(place, "a second document begins without a line `---`"));
                }
                event => found = Some(root(self, event, place)?),
            }
        }
    }

    fn next(&mut self) -> Result<(Event<'a>, Place), Fault> {
        match self.parser.next_event() {
            Some(Ok((event, span))) => {
                let line = self.line_offset + span.start.line().max(1);
                Ok((event, Place { line, column: span.start.col() + 1 }))
            }
            Some(Err(error)) => Err(scan_fault(&error, self.line_offset)),
            None => Ok((Event::StreamEnd, Place { line: self.line_offset + 1, column: 1 })),
        }
    }

    fn node(&mut self, event: Event<'a>, place: Place, depth: usize) -> Result<Node<'a>, Fault> {
        if depth > MAX_DEPTH {
            return Err(fault(place, "nested deeper than 100 levels"));
        }
        let before = self.weight;
        self.weight += 1;
        let (value, anchor) = match event {
            Event::Scalar(text, style, anchor, tag) => {
                self.weight += text.len() / NODE_BYTES;
                (scalar(text, style, tag.as_deref(), place)?, anchor)
            }
            Event::SequenceStart(anchor, _) => (self.sequence(depth)?, anchor),
            Event::MappingStart(anchor, _) => (self.mapping(depth)?, anchor),
            Event::Alias(anchor) => return self.alias(anchor, place),
            _ => return Err(fault(place, "expected a value")),
        };
        let node = at(place, value);
        if anchor != 0 {
            self.anchors.insert(anchor, (node.clone(), self.weight - before));
        }
        Ok(node)
    }

    fn alias(&mut self, anchor: usize, place: Place) -> Result<Node<'a>, Fault> {
        let Some((node, size)) = self.anchors.get(&anchor).cloned() else {
            return Err(fault(place, "an alias inside the value that it names"));
        };
        match self.budget.checked_sub(size) {
            Some(left) => self.budget = left,
            None => return Err(fault(place, "aliases expand to more than this file can mean")),
        }
        self.weight += size;
        Ok(node)
    }

    fn sequence(&mut self, depth: usize) -> Result<Value<'a>, Fault> {
        let base = self.items.len();
        loop {
            match self.next()? {
                (Event::SequenceEnd, _) => return Ok(Value::Sequence(self.items.drain(base..).collect())),
                (event, place) => {
                    let item = self.node(event, place, depth + 1)?;
                    self.items.push(item);
                }
            }
        }
    }

    fn mapping(&mut self, depth: usize) -> Result<Value<'a>, Fault> {
        let base = self.entries.len();
        let mut keys = Keys::default();
        let mut merged = Vec::new();
        loop {
            let (event, place) = self.next()?;
            if event == Event::MappingEnd {
                break;
            }
            let is_merge = matches!(&event, Event::Scalar(text, ScalarStyle::Plain, _, None) if text == "<<");
            let key = self.node(event, place, depth + 1)?;
            if matches!(key.value, Value::Sequence(_) | Value::Mapping(_)) {
                return Err(key.fault("expected a scalar as key".to_owned()));
            }
            let (event, place) = self.next()?;
            let value = self.node(event, place, depth + 1)?;
            if is_merge {
                merged.push(value);
            } else if !keys.add(self.entries.get(base..).unwrap_or_default(), &key) {
                let twice = key.fault(format!("the key {} comes twice", key_text(&key)));
                let Some(doubled) = &mut self.doubled else { return Err(twice) };
                doubled.push(twice);
                let before = self.entries.iter_mut().skip(base).find(|(other, _)| is_same_key(other, &key));
                if let Some(before) = before {
                    *before = (key, value);
                }
            } else {
                self.entries.push((key, value));
            }
        }
        if merged.is_empty() {
            return Ok(Value::Mapping(self.entries.drain(base..).collect()));
        }
        let mut entries: Vec<_> = self.entries.drain(base..).collect();
        merged.iter().try_for_each(|node| merge(&mut entries, &mut keys, node))?;
        Ok(Value::Mapping(entries.into()))
    }
}

const fn at(place: Place, value: Value<'_>) -> Node<'_> {
    Node { value, line: place.line, column: place.column }
}

fn scalar<'a>(
    text: Cow<'a, str>,
    style: ScalarStyle,
    tag: Option<&Tag>,
    place: Place,
) -> Result<Value<'a>, Fault> {
    match tag {
        Some(tag) if tag.is_yaml_core_schema() && tag.suffix == "str" => Ok(Value::String(text)),
        Some(tag) if !tag.is_yaml_core_schema() && tag.suffix != "!" && !tag.suffix.is_empty() => {
            Err(fault(place, &format!("the tag {tag} has no meaning here")))
        }
        Some(_) => Ok(resolve(text)),
        None if style == ScalarStyle::Plain => Ok(resolve(text)),
        None => Ok(Value::String(text)),
    }
}

fn fault(place: Place, reason: &str) -> Fault {
    Fault { line: place.line.max(1), column: Some(place.column), reason: reason.to_owned() }
}

fn scan_fault(error: &ScanError, line_offset: usize) -> Fault {
    Fault {
        line: line_offset + error.marker().line().max(1),
        column: Some(error.marker().col() + 1),
        reason: format!("not YAML: {}", error.info()),
    }
}

/// Finds keys that come twice: by looking through a few, by a set of many.
#[derive(Default)]
struct Keys(HashSet<String>);

impl Keys {
    /// Returns false if `key` is among `entries`, to which every key that was added here has to be added.
    fn add(&mut self, entries: &[(Node<'_>, Node<'_>)], key: &Node<'_>) -> bool {
        if entries.len() < FEW_KEYS {
            return !entries.iter().any(|(other, _)| is_same_key(other, key));
        }
        if self.0.is_empty() {
            self.0.extend(entries.iter().map(|(other, _)| key_text(other).into_owned()));
        }
        self.0.insert(key_text(key).into_owned())
    }
}

/// Adds the entries of a mapping, or of each in a list, that are not there yet: the meaning of `<<`.
fn merge<'a>(entries: &mut Vec<(Node<'a>, Node<'a>)>, keys: &mut Keys, node: &Node<'a>) -> Result<(), Fault> {
    match &node.value {
        Value::Mapping(more) => {
            for (key, value) in more.iter() {
                if keys.add(entries, key) {
                    entries.push((key.clone(), value.clone()));
                }
            }
            Ok(())
        }
        Value::Sequence(nodes) => nodes.iter().try_for_each(|node| merge(entries, keys, node)),
        _ => Err(node.fault("<< needs a mapping".to_owned())),
    }
}

/// Keys are the same if they have the same text: in an object of the API every key is a string.
fn is_same_key(a: &Node<'_>, b: &Node<'_>) -> bool {
    match (&a.value, &b.value) {
        (Value::String(a), Value::String(b)) => a == b,
        _ => key_text(a) == key_text(b),
    }
}

fn key_text<'a>(key: &'a Node<'_>) -> Cow<'a, str> {
    match &key.value {
        Value::String(text) => Cow::Borrowed(&**text),
        Value::Integer(n) => n.to_string().into(),
        Value::Bool(b) => b.to_string().into(),
        Value::Float(x) => x.to_string().into(),
        Value::Null => "null".into(),
        // The parser refuses them.
        Value::Sequence(_) | Value::Mapping(_) => "".into(),
    }
}

/// The value of a plain scalar.
fn resolve(text: Cow<'_, str>) -> Value<'_> {
    match &*text {
        "" | "~" | "null" | "Null" | "NULL" => return Value::Null,
        "true" | "True" | "TRUE" | "yes" | "Yes" | "YES" | "on" | "On" | "ON" => return Value::Bool(true),
        "false" | "False" | "FALSE" | "no" | "No" | "NO" | "off" | "Off" | "OFF" => {
            return Value::Bool(false);
        }
        _ => {}
    }
    if let Some(number) = integer(&text) {
        return Value::Integer(number);
    }
    // Only what begins like a number: Rust would also read `inf` and `nan`.
    if text.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c))
        && text.contains(|c: char| c.is_ascii_digit())
        && let Ok(number) = text.parse::<f64>()
    {
        return Value::Float(number);
    }
    Value::String(text)
}

fn integer(text: &str) -> Option<i64> {
    let (sign, digits) = match text.strip_prefix(['-', '+']) {
        Some(rest) => (if text.starts_with('-') { -1 } else { 1 }, rest),
        None => (1, text),
    };
    if !digits.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let magnitude = if let Some(hex) = digits.strip_prefix("0x") {
        i64::from_str_radix(hex, 16)
    } else if let Some(octal) = digits.strip_prefix("0o") {
        i64::from_str_radix(octal, 8)
    } else if digits.len() > 1 && digits.starts_with('0') {
        i64::from_str_radix(digits, 8)
    } else {
        digits.parse()
    };
    magnitude.ok().map(|n: i64| sign * n)
}

const MAX_DEPTH: usize = 100;
const FEW_KEYS: usize = 32;
/// About what a node takes.
const NODE_BYTES: usize = 64;
/// A short file may still use aliases freely.
const MIN_BUDGET: usize = 100_000;

#[cfg(test)]
mod tests;
