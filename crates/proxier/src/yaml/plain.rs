//! Reads the YAML that Kubernetes' tools print and that people write for them, many times faster than a parser
//! of all of YAML: mappings and sequences in block style, scalars and flow collections on one line, literal
//! blocks.
//!
//! This is a reader of a part of YAML: it gives the events that the full parser gives, or says that the text
//! is [`Foreign`], which means nothing but that the full parser is to be asked. So it has no words for
//! errors, and what is rare or doubtful (tabs, anchors, tags, quoted keys, scalars over several lines) is left
//! to the other.

use std::borrow::Cow;

use saphyr_parser::{Event, ScalarStyle};

use super::Place;

/// The text has something that is not read here, or is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Foreign;

/// The events of a text.
pub(super) struct Reader<'a> {
    text: &'a str,
    /// The offset of the line that is read next, and its number.
    offset: usize,
    line: usize,
    /// The collections that are open, from the outermost.
    open: Vec<Level>,
    /// The value that the next lines may have: that of the document, of the last key, or of the last `-`.
    awaited: Awaited,
    /// The events of the last lines, and how many of them were returned.
    events: Vec<(Event<'a>, Place)>,
    returned: usize,
    has_ended: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Awaited {
    Nothing,
    Document,
    /// The value of an entry. Without one, it is null, at this place.
    Entry(Place),
}

#[derive(Clone, Copy)]
struct Level {
    indent: usize,
    is_sequence: bool,
}

impl<'a> Reader<'a> {
    /// Returns a reader whose first line has this number.
    pub(super) fn new(text: &'a str, first_line: usize) -> Self {
        Self {
            text,
            offset: 0,
            line: first_line,
            open: Vec::new(),
            awaited: Awaited::Document,
            events: Vec::new(),
            returned: 0,
            has_ended: false,
        }
    }

    /// Returns the next event, [`Event::StreamEnd`] at the end and ever after.
    pub(super) fn next(&mut self) -> Result<(Event<'a>, Place), Foreign> {
        loop {
            if let Some((event, place)) = self.events.get_mut(self.returned) {
                self.returned += 1;
                return Ok((std::mem::replace(event, Event::Nothing), *place));
            }
            self.events.clear();
            self.returned = 0;
            if self.has_ended {
                return Ok((Event::StreamEnd, Place { line: self.line, column: 1 }));
            }
            match self.next_line() {
                Some(line) => self.content(line)?,
                None => self.end(),
            }
        }
    }

    /// Returns the next line that has more than a comment.
    fn next_line(&mut self) -> Option<Line<'a>> {
        loop {
            let line = self.raw_line()?;
            if !matches!(line.content.as_bytes().first(), None | Some(b'#')) {
                return Some(line);
            }
        }
    }

    fn raw_line(&mut self) -> Option<Line<'a>> {
        let rest = self.text.get(self.offset..).filter(|rest| !rest.is_empty())?;
        let length = rest.find('\n').unwrap_or(rest.len());
        let text = rest.get(..length)?;
        let indent = text.bytes().position(|byte| byte != b' ').unwrap_or(text.len());
        let line = Line { number: self.line, indent, content: text.get(indent..)? };
        self.offset += length + 1;
        self.line += 1;
        Some(line)
    }

    fn end(&mut self) {
        let place = Place { line: self.line, column: 1 };
        self.put_null();
        while let Some(level) = self.open.pop() {
            self.events.push((end_of(level), place));
        }
        self.events.push((Event::StreamEnd, place));
        self.has_ended = true;
    }

    /// Ends an entry without a value.
    fn put_null(&mut self) {
        if let Awaited::Entry(place) = std::mem::replace(&mut self.awaited, Awaited::Nothing) {
            self.events.push((scalar(Cow::Borrowed(""), ScalarStyle::Plain), place));
        }
    }

    fn content(&mut self, line: Line<'a>) -> Result<(), Foreign> {
        // Markers of directives and of the end of a document.
        if line.indent == 0 && (line.content.starts_with("---") || line.content.starts_with("...")) {
            return Err(Foreign);
        }
        let is_item = is_item(line.content);
        let is_nested = match (self.awaited, self.open.last()) {
            (Awaited::Nothing, _) => false,
            (_, None) => true,
            // The items of a sequence may stand below the key without indentation.
            (_, Some(top)) => {
                line.indent > top.indent || (line.indent == top.indent && is_item && !top.is_sequence)
            }
        };
        if is_nested {
            self.awaited = Awaited::Nothing;
            self.begin(line, is_item);
        } else {
            self.put_null();
            self.close(line, is_item)?;
        }
        self.entry(line)
    }

    /// Begins the collection whose first entry a line has.
    fn begin(&mut self, line: Line<'a>, is_sequence: bool) {
        let start = if is_sequence { Event::SequenceStart(0, None) } else { Event::MappingStart(0, None) };
        self.events.push((start, line.place(0)));
        self.open.push(Level { indent: line.indent, is_sequence });
    }

    /// Ends the collections that a line does not belong to.
    fn close(&mut self, line: Line<'a>, is_item: bool) -> Result<(), Foreign> {
        while let Some(level) = self.open.last().copied() {
            if level.indent == line.indent && level.is_sequence == is_item {
                return Ok(());
            }
            // Of the same indentation, only a sequence in a mapping can end.
            if level.indent < line.indent || (level.indent == line.indent && !level.is_sequence) {
                return Err(Foreign);
            }
            self.open.pop();
            self.events.push((end_of(level), line.place(0)));
        }
        Err(Foreign)
    }

    /// Reads an entry of the innermost collection.
    fn entry(&mut self, mut line: Line<'a>) -> Result<(), Foreign> {
        while is_item(line.content) {
            let dash = line.place(0);
            line = line.after(1)?;
            if line.is_blank() {
                self.awaited = Awaited::Entry(dash);
                return Ok(());
            }
            // The item may be a collection whose first entry is on this line.
            let is_sequence = is_item(line.content);
            if !is_sequence && key_length(line.content)?.is_none() {
                return self.value(line);
            }
            self.begin(line, is_sequence);
        }
        let length = key_length(line.content)?.ok_or(Foreign)?;
        let key = line.content.get(..length).ok_or(Foreign)?;
        self.events.push((scalar(Cow::Borrowed(key), ScalarStyle::Plain), line.place(0)));
        let colon = line.place(length);
        line = line.after(length + 1)?;
        if line.is_blank() {
            self.awaited = Awaited::Entry(colon);
            return Ok(());
        }
        self.value(line)
    }

    /// Reads the value at the beginning of `line`, which ends with that line or is a literal block.
    fn value(&mut self, line: Line<'a>) -> Result<(), Foreign> {
        let place = line.place(0);
        let (event, rest) = match line.content.as_bytes() {
            [b'{' | b'[', ..] => {
                let rest = self.flow(line, 0)?;
                return if ends_line(rest.content) { Ok(()) } else { Err(Foreign) };
            }
            [b'"', ..] => {
                let (text, length) = double_quoted(line.content)?;
                (scalar(text, ScalarStyle::DoubleQuoted), line.content.get(length..))
            }
            [b'\'', ..] => {
                let (text, length) = single_quoted(line.content)?;
                (scalar(text, ScalarStyle::SingleQuoted), line.content.get(length..))
            }
            [b'|', ..] => return self.literal(line),
            _ => (scalar(Cow::Borrowed(plain(line.content)?), ScalarStyle::Plain), Some("")),
        };
        if !ends_line(rest.ok_or(Foreign)?) {
            return Err(Foreign);
        }
        self.events.push((event, place));
        Ok(())
    }

    /// Reads a flow collection, or a value in one, at the beginning of `line`. Returns what follows it.
    fn flow(&mut self, line: Line<'a>, depth: usize) -> Result<Line<'a>, Foreign> {
        let place = line.place(0);
        let (start, end, close) = match line.content.as_bytes().first() {
            Some(b'{') => (Event::MappingStart(0, None), Event::MappingEnd, '}'),
            Some(b'[') => (Event::SequenceStart(0, None), Event::SequenceEnd, ']'),
            Some(b'"') => {
                let (text, length) = double_quoted(line.content)?;
                self.events.push((scalar(text, ScalarStyle::DoubleQuoted), place));
                return line.skip(length);
            }
            Some(b'\'') => {
                let (text, length) = single_quoted(line.content)?;
                self.events.push((scalar(text, ScalarStyle::SingleQuoted), place));
                return line.skip(length);
            }
            _ => {
                let length = flow_length(line.content)?;
                let text = line.content.get(..length).ok_or(Foreign)?;
                self.events.push((scalar(Cow::Borrowed(text), ScalarStyle::Plain), place));
                return line.skip(length);
            }
        };
        if depth > DEEPEST {
            return Err(Foreign);
        }
        self.events.push((start, place));
        let mut rest = line.after(1)?;
        let mut is_first = true;
        while !rest.content.starts_with(close) {
            if !is_first {
                // Not a comma after the last one.
                rest = if rest.content.starts_with(',') { rest.after(1)? } else { return Err(Foreign) };
            }
            is_first = false;
            if close == '}' {
                let length = flow_length(rest.content)?;
                let (key, value) = rest.content.split_at_checked(length).ok_or(Foreign)?;
                if !value.starts_with(": ") {
                    return Err(Foreign);
                }
                self.events.push((scalar(Cow::Borrowed(key), ScalarStyle::Plain), rest.place(0)));
                rest = rest.after(length + 1)?;
            }
            rest = self.flow(rest, depth + 1)?.after(0)?;
        }
        self.events.push((end, rest.place(0)));
        rest.skip(1)
    }

    /// Reads a literal block: `|` keeps one line break at its end, `|-` none.
    fn literal(&mut self, header: Line<'a>) -> Result<(), Foreign> {
        let (is_stripped, rest) = match header.content.strip_prefix("|-") {
            Some(rest) => (true, rest),
            None => (false, header.content.get(1..).ok_or(Foreign)?),
        };
        // The last line of a block may lack its line break in more than one way.
        if !ends_line(rest) || !self.text.ends_with('\n') {
            return Err(Foreign);
        }
        let parent = self.open.last().ok_or(Foreign)?.indent;
        let first = self.raw_line().filter(|line| line.indent > parent && !line.content.is_empty());
        let first = first.ok_or(Foreign)?;
        let start = self.start_of(first)?;
        // The block in the text, and whether it is as in the text: on one line.
        let (mut end, mut owned) = (self.offset, None);
        check_literal(first.content)?;
        loop {
            let (before, before_line) = (self.offset, self.line);
            let Some(line) = self.raw_line() else { break };
            if line.content.is_empty() {
                // Spaces beyond the indentation are content.
                if line.indent > first.indent {
                    return Err(Foreign);
                }
                continue;
            }
            if line.indent < first.indent {
                (self.offset, self.line) = (before, before_line);
                break;
            }
            check_literal(line.content)?;
            let text: &mut String =
                owned.get_or_insert_with(|| self.text.get(start..end).unwrap_or_default().to_owned());
            let blank = self.text.get(end..before).ok_or(Foreign)?;
            text.extend(blank.bytes().filter(|byte| *byte == b'\n').map(char::from));
            let inner = before + first.indent;
            text.push_str(self.text.get(inner..self.offset).ok_or(Foreign)?);
            end = self.offset;
        }
        let mut text = match owned {
            Some(text) => Cow::Owned(text),
            None => Cow::Borrowed(self.text.get(start..end).ok_or(Foreign)?),
        };
        if is_stripped {
            match &mut text {
                Cow::Owned(text) => drop(text.pop()),
                Cow::Borrowed(text) => *text = text.strip_suffix('\n').unwrap_or(text),
            }
        }
        self.events.push((scalar(text, ScalarStyle::Literal), first.place(0)));
        Ok(())
    }

    /// Returns the offset of the content of the line that was read last.
    fn start_of(&self, line: Line<'a>) -> Result<usize, Foreign> {
        self.offset.checked_sub(line.content.len() + 1).ok_or(Foreign)
    }
}

/// A line, or the end of one.
#[derive(Clone, Copy)]
struct Line<'a> {
    number: usize,
    /// The column of the content, from 0. What is before it is ASCII.
    indent: usize,
    content: &'a str,
}

impl Line<'_> {
    /// Returns the place of a byte of the content.
    fn place(&self, at: usize) -> Place {
        Place { line: self.number, column: self.indent + at + 1 }
    }

    /// Returns what is left after some bytes of the content, and the spaces that follow.
    fn after(self, bytes: usize) -> Result<Self, Foreign> {
        let rest = self.content.get(bytes..).ok_or(Foreign)?;
        let content = rest.trim_start_matches(' ');
        Ok(Self { indent: self.indent + bytes + rest.len() - content.len(), content, ..self })
    }

    /// Returns what is left after some bytes of the content. The column is right if these are ASCII.
    fn skip(self, bytes: usize) -> Result<Self, Foreign> {
        let (before, content) = self.content.split_at_checked(bytes).ok_or(Foreign)?;
        if before.is_ascii() {
            Ok(Self { indent: self.indent + bytes, content, ..self })
        } else {
            Err(Foreign)
        }
    }

    /// Returns true if there is nothing but a comment. Spaces are before it.
    fn is_blank(&self) -> bool {
        matches!(self.content.as_bytes().first(), None | Some(b'#'))
    }
}

fn scalar(text: Cow<'_, str>, style: ScalarStyle) -> Event<'_> {
    Event::Scalar(text, style, 0, None)
}

const fn end_of(level: Level) -> Event<'static> {
    if level.is_sequence { Event::SequenceEnd } else { Event::MappingEnd }
}

fn is_item(content: &str) -> bool {
    matches!(content.as_bytes(), [b'-'] | [b'-', b' ', ..])
}

/// Returns true for what may follow a value on its line: spaces, and after one a comment.
fn ends_line(rest: &str) -> bool {
    let trimmed = rest.trim_start_matches(' ');
    trimmed.is_empty() || (trimmed.len() < rest.len() && trimmed.starts_with('#'))
}

/// Returns the length of the plain key at the beginning of a line, or `None` if there is none.
fn key_length(content: &str) -> Result<Option<usize>, Foreign> {
    let bytes = content.as_bytes();
    if !bytes.first().is_some_and(|first| starts_plain(bytes, *first)) {
        // A quoted key is left to the full parser: `value` finds its colon.
        return Ok(None);
    }
    let mut before = b' ';
    for (at, byte) in bytes.iter().copied().enumerate() {
        match byte {
            b':' if matches!(bytes.get(at + 1), None | Some(b' ')) => {
                // The full parser takes keys of up to 1,024 characters.
                let is_key = before != b' ' && at <= LONGEST_KEY;
                return if is_key { Ok(Some(at)) } else { Err(Foreign) };
            }
            b'#' if before == b' ' => return Ok(None),
            b' '..=b'~' => before = byte,
            _ => return Ok(None),
        }
    }
    Ok(None)
}

/// Returns true if a plain scalar may begin so. Some characters that could begin one are left out.
fn starts_plain(bytes: &[u8], first: u8) -> bool {
    match first {
        b'-' => bytes.get(1).is_some_and(u8::is_ascii_alphanumeric),
        b'_' | b'.' | b'/' | b'+' | b'~' | b'$' | b'(' | b'<' | b'=' | b'^' | b';' | 0x80.. => true,
        _ => first.is_ascii_alphanumeric(),
    }
}

/// Returns the plain scalar that is the rest of a line.
fn plain(content: &str) -> Result<&str, Foreign> {
    let bytes = content.as_bytes();
    if !bytes.first().is_some_and(|first| starts_plain(bytes, *first)) {
        return Err(Foreign);
    }
    let mut before = b' ';
    let mut end = bytes.len();
    for (at, byte) in bytes.iter().copied().enumerate() {
        match byte {
            // A key, where none can be.
            b':' if matches!(bytes.get(at + 1), None | Some(b' ')) => return Err(Foreign),
            b'#' if before == b' ' => {
                end = at;
                break;
            }
            b' '..=b'~' | 0x80.. => before = byte,
            _ => return Err(Foreign),
        }
    }
    let text = content.get(..end).ok_or(Foreign)?.trim_end_matches(' ');
    if has_mark(text) { Err(Foreign) } else { Ok(text) }
}

/// Returns the length of the plain scalar in a flow collection at the beginning of a text: one without spaces.
fn flow_length(content: &str) -> Result<usize, Foreign> {
    let bytes = content.as_bytes();
    if !bytes.first().is_some_and(|first| first.is_ascii() && starts_plain(bytes, *first)) {
        return Err(Foreign);
    }
    for (at, byte) in bytes.iter().copied().enumerate() {
        match byte {
            b' ' | b',' | b']' | b'}' => return Ok(at),
            b':' if bytes.get(at + 1) == Some(&b' ') => return Ok(at),
            b':' if matches!(bytes.get(at + 1), None | Some(b',' | b'[' | b']' | b'{' | b'}')) => {
                return Err(Foreign);
            }
            b'[' | b'{' => return Err(Foreign),
            b'!'..=b'~' => {}
            _ => return Err(Foreign),
        }
    }
    Err(Foreign)
}

/// Returns a scalar in double quotes, and its length with them.
fn double_quoted(content: &str) -> Result<(Cow<'_, str>, usize), Foreign> {
    let mut owned: Option<String> = None;
    // What was not taken over yet begins here.
    let mut start = 1;
    let mut bytes = content.bytes().enumerate().skip(1);
    while let Some((at, byte)) = bytes.next() {
        match byte {
            b'"' => {
                let last = content.get(start..at).ok_or(Foreign)?;
                let text = match owned {
                    Some(text) => Cow::Owned(text + last),
                    None => Cow::Borrowed(last),
                };
                return if has_mark(&text) { Err(Foreign) } else { Ok((text, at + 1)) };
            }
            b'\\' => {
                let meant = match bytes.next() {
                    Some((_, byte @ (b'"' | b'\\' | b'/'))) => char::from(byte),
                    Some((_, b'n')) => '\n',
                    Some((_, b't')) => '\t',
                    Some((_, b'r')) => '\r',
                    _ => return Err(Foreign),
                };
                let text = owned.get_or_insert_default();
                text.push_str(content.get(start..at).ok_or(Foreign)?);
                text.push(meant);
                start = at + 2;
            }
            b' '..=b'~' | 0x80.. => {}
            _ => return Err(Foreign),
        }
    }
    Err(Foreign)
}

/// Returns a scalar in single quotes, and its length with them.
fn single_quoted(content: &str) -> Result<(Cow<'_, str>, usize), Foreign> {
    let mut bytes = content.bytes().enumerate().skip(1).peekable();
    let mut has_quotes = false;
    while let Some((at, byte)) = bytes.next() {
        match byte {
            b'\'' if bytes.next_if(|(_, next)| *next == b'\'').is_some() => has_quotes = true,
            b'\'' => {
                let text = content.get(1..at).ok_or(Foreign)?;
                let text = if has_quotes { Cow::Owned(text.replace("''", "'")) } else { Cow::Borrowed(text) };
                return if has_mark(&text) { Err(Foreign) } else { Ok((text, at + 1)) };
            }
            b' '..=b'~' | 0x80.. => {}
            _ => return Err(Foreign),
        }
    }
    Err(Foreign)
}

fn check_literal(content: &str) -> Result<(), Foreign> {
    let is_text = |byte: u8| matches!(byte, b'\t' | b' '..=b'~' | 0x80..);
    if content.bytes().all(is_text) && !has_mark(content) { Ok(()) } else { Err(Foreign) }
}

/// Returns true if there is a byte order mark, which is no content for the full parser.
fn has_mark(text: &str) -> bool {
    !text.is_ascii() && text.contains('\u{feff}')
}

/// How deep flow collections are read.
const DEEPEST: usize = 16;
/// In bytes.
const LONGEST_KEY: usize = 1000;
