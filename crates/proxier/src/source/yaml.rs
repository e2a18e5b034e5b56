//! YAML text to a tree whose every node knows its line and column.
//!
//! Plain scalars mean what they mean to Kubernetes (YAML 1.1 as its libraries read it): `yes` and `on` are booleans,
//! `010` is octal. A key that comes twice is an error. Aliases and merge keys work, within a limit on what they expand to.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use saphyr_parser::{Event, Parser, ScalarStyle, ScanError, Span, StrInput, Tag};
use serde::de::DeserializeOwned;

use super::deserialize;
use super::document::{self, Fault, Head};

/// Parses one document that begins on line `first_line` of its file; `None` when it holds nothing.
pub(crate) fn parse(text: &str, first_line: usize) -> Result<Option<Node>, Fault> {
    let mut builder = Builder {
        parser: Parser::new_from_str(text),
        line_offset: first_line - 1,
        anchors: HashMap::new(),
        budget: (text.len() / NODE_BYTES).max(MIN_BUDGET),
    };
    builder.document()
}

/// A value and the place where it begins.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) value: Value,
    pub(crate) line: usize,
    pub(crate) column: usize,
}

#[derive(Clone, Debug)]
pub(crate) enum Value {
    Null,
    Bool(bool),
    Integer(i64),
    Float(f64),
    String(String),
    Sequence(Vec<Node>),
    Mapping(Vec<(Node, Node)>),
}

impl Node {
    fn get(&self, key: &str) -> Option<&Node> {
        let Value::Mapping(entries) = &self.value else { return None };
        entries
            .iter()
            .find(|(k, _)| matches!(&k.value, Value::String(text) if text == key))
            .map(|(_, value)| value)
    }

    fn text(&self, key: &str) -> Result<Option<String>, Fault> {
        match self.get(key).map(|node| (&node.value, node)) {
            None | Some((Value::Null, _)) => Ok(None),
            Some((Value::String(text), _)) => Ok(Some(text.clone())),
            Some((_, node)) => Err(node.fault(format!("{key} is not a string"))),
        }
    }

    pub(crate) fn fault(&self, reason: String) -> Fault {
        Fault { line: self.line, column: Some(self.column), reason }
    }

    /// How much memory it takes, in nodes; long text counts for several.
    fn size(&self) -> usize {
        1 + match &self.value {
            Value::String(text) => text.len() / NODE_BYTES,
            Value::Sequence(items) => items.iter().map(Self::size).sum(),
            Value::Mapping(entries) => entries.iter().map(|(key, value)| key.size() + value.size()).sum(),
            _ => 0,
        }
    }
}

impl document::Value for Node {
    fn line(&self) -> usize {
        self.line
    }

    fn head(&self) -> Result<Head, Fault> {
        if !matches!(self.value, Value::Mapping(_)) {
            return Err(self.fault("expected an object with apiVersion and kind".to_owned()));
        }
        Ok(Head { api_version: self.text("apiVersion")?, kind: self.text("kind")? })
    }

    fn items(&self) -> Result<Vec<Self>, Fault> {
        match self.get("items").map(|node| (&node.value, node)) {
            None | Some((Value::Null, _)) => Ok(Vec::new()),
            Some((Value::Sequence(items), _)) => Ok(items.clone()),
            Some((_, node)) => Err(node.fault("items is not a list".to_owned())),
        }
    }

    fn typed<T: DeserializeOwned>(&self, path: &str) -> Result<T, Fault> {
        deserialize::typed(self, path)
    }
}

struct Builder<'a> {
    parser: Parser<'a, StrInput<'a>>,
    line_offset: usize,
    anchors: HashMap<usize, Node>,
    /// How much aliases may still add, in nodes.
    budget: usize,
}

impl<'a> Builder<'a> {
    fn document(&mut self) -> Result<Option<Node>, Fault> {
        let mut found = None;
        loop {
            let (event, span) = self.next()?;
            match event {
                Event::StreamEnd => return Ok(found),
                Event::StreamStart | Event::DocumentStart(_) | Event::DocumentEnd | Event::Nothing => {}
                _ if found.is_some() => {
                    return Err(self.fault(span, "a second document begins without a line `---`"));
                }
                event => found = Some(self.node(event, span, 0)?),
            }
        }
    }

    fn next(&mut self) -> Result<(Event<'a>, Span), Fault> {
        match self.parser.next_event() {
            Some(Ok(next)) => Ok(next),
            Some(Err(error)) => Err(self.scan_fault(&error)),
            None => Ok((Event::StreamEnd, Span::default())),
        }
    }

    fn node(&mut self, event: Event<'a>, span: Span, depth: usize) -> Result<Node, Fault> {
        if depth > MAX_DEPTH {
            return Err(self.fault(span, "nested deeper than 100 levels"));
        }
        let (value, anchor) = match event {
            Event::Scalar(text, style, anchor, tag) => {
                (self.scalar(text, style, tag.as_deref(), span)?, anchor)
            }
            Event::SequenceStart(anchor, _) => (self.sequence(depth)?, anchor),
            Event::MappingStart(anchor, _) => (self.mapping(depth)?, anchor),
            Event::Alias(anchor) => return self.alias(anchor, span),
            _ => return Err(self.fault(span, "expected a value")),
        };
        let node = Node { value, line: self.line_offset + span.start.line(), column: span.start.col() + 1 };
        if anchor != 0 {
            self.anchors.insert(anchor, node.clone());
        }
        Ok(node)
    }

    fn alias(&mut self, anchor: usize, span: Span) -> Result<Node, Fault> {
        let Some(node) = self.anchors.get(&anchor).cloned() else {
            return Err(self.fault(span, "an alias inside the value that it names"));
        };
        match self.budget.checked_sub(node.size()) {
            Some(left) => self.budget = left,
            None => return Err(self.fault(span, "aliases expand to more than this file can mean")),
        }
        Ok(node)
    }

    fn sequence(&mut self, depth: usize) -> Result<Value, Fault> {
        let mut items = Vec::new();
        loop {
            match self.next()? {
                (Event::SequenceEnd, _) => return Ok(Value::Sequence(items)),
                (event, span) => items.push(self.node(event, span, depth + 1)?),
            }
        }
    }

    fn mapping(&mut self, depth: usize) -> Result<Value, Fault> {
        let mut entries: Vec<(Node, Node)> = Vec::new();
        let mut keys = Keys::default();
        let mut merged = Vec::new();
        loop {
            let (event, span) = self.next()?;
            if event == Event::MappingEnd {
                break;
            }
            let is_merge = matches!(&event, Event::Scalar(text, ScalarStyle::Plain, _, None) if text == "<<");
            let key = self.node(event, span, depth + 1)?;
            let (event, span) = self.next()?;
            let value = self.node(event, span, depth + 1)?;
            if is_merge {
                merged.push(value);
            } else if keys.holds(&entries, &key) {
                return Err(key.fault(format!("the key {} comes twice", key_text(&key))));
            } else {
                entries.push((key, value));
            }
        }
        merged.into_iter().try_for_each(|node| merge(&mut entries, node))?;
        Ok(Value::Mapping(entries))
    }

    fn scalar(
        &self,
        text: Cow<'a, str>,
        style: ScalarStyle,
        tag: Option<&Tag>,
        span: Span,
    ) -> Result<Value, Fault> {
        match tag {
            Some(tag) if tag.is_yaml_core_schema() && tag.suffix == "str" => {
                Ok(Value::String(text.into_owned()))
            }
            Some(tag) if !tag.is_yaml_core_schema() && tag.suffix != "!" && !tag.suffix.is_empty() => {
                Err(self.fault(span, &format!("the tag {tag} has no meaning here")))
            }
            Some(_) => Ok(resolve(text)),
            None if style == ScalarStyle::Plain => Ok(resolve(text)),
            None => Ok(Value::String(text.into_owned())),
        }
    }

    fn fault(&self, span: Span, reason: &str) -> Fault {
        Fault {
            line: self.line_offset + span.start.line().max(1),
            column: Some(span.start.col() + 1),
            reason: reason.to_owned(),
        }
    }

    fn scan_fault(&self, error: &ScanError) -> Fault {
        Fault {
            line: self.line_offset + error.marker().line().max(1),
            column: Some(error.marker().col() + 1),
            reason: format!("not YAML: {}", error.info()),
        }
    }
}

/// Finds keys that come twice: by looking through a few, by a set of many.
#[derive(Default)]
struct Keys(HashSet<String>);

impl Keys {
    /// Whether `key` is among `entries`, each of which was asked for before it was added.
    fn holds(&mut self, entries: &[(Node, Node)], key: &Node) -> bool {
        if entries.len() < FEW_KEYS {
            return entries.iter().any(|(other, _)| same_key(other, key));
        }
        if self.0.is_empty() {
            self.0.extend(entries.iter().map(|(other, _)| key_text(other)));
        }
        !self.0.insert(key_text(key))
    }
}

/// Adds the entries of a mapping, or of each in a list, that are not there yet: the meaning of `<<`.
fn merge(entries: &mut Vec<(Node, Node)>, node: Node) -> Result<(), Fault> {
    match node.value {
        Value::Mapping(more) => {
            for (key, value) in more {
                if !entries.iter().any(|(other, _)| same_key(other, &key)) {
                    entries.push((key, value));
                }
            }
            Ok(())
        }
        Value::Sequence(nodes) => nodes.into_iter().try_for_each(|node| merge(entries, node)),
        _ => {
            Err(Fault { line: node.line, column: Some(node.column), reason: "<< needs a mapping".to_owned() })
        }
    }
}

fn same_key(a: &Node, b: &Node) -> bool {
    match (&a.value, &b.value) {
        (Value::String(a), Value::String(b)) => a == b,
        (Value::Integer(a), Value::Integer(b)) => a == b,
        (Value::Bool(a), Value::Bool(b)) => a == b,
        (Value::Null, Value::Null) => true,
        _ => false,
    }
}

pub(super) fn key_text(key: &Node) -> String {
    match &key.value {
        Value::String(text) => text.clone(),
        Value::Integer(n) => n.to_string(),
        Value::Bool(b) => b.to_string(),
        Value::Float(x) => x.to_string(),
        Value::Null => "null".to_owned(),
        Value::Sequence(_) | Value::Mapping(_) => "(a collection)".to_owned(),
    }
}

/// The value of a plain scalar.
fn resolve(text: Cow<'_, str>) -> Value {
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
    Value::String(text.into_owned())
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
