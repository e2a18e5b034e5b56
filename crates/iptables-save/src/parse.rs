//! From text to the tree: one pass over the lines; nothing is copied from a line in iptables-save's own form.

use std::borrow::Cow;

use std::ops::Range;

use memchr::memchr;

use crate::command::entry;
use crate::encoding::decode;
use crate::tree::{Entry, Item, Rule, Save, Source, Table};
use crate::words::{column, is_blank};
use crate::{Error, Limits};

impl<'a> Save<'a> {
    /// Reads a whole save, within the default [`Limits`].
    ///
    /// # Errors
    /// [`Error::Syntax`] for a line of another form, [`Error::Limit`] for too large an input.
    pub fn parse(text: &'a str) -> Result<Self, Error> {
        Self::parse_within(text, Limits::default())
    }

    /// Reads a whole save from bytes, within the default [`Limits`]. Lines that are not UTF-8 are kept as
    /// [`decode`](crate::decode) represents them; [`Save::to_bytes`] writes the same bytes again.
    ///
    /// # Errors
    /// As [`Save::parse`].
    pub fn parse_bytes(bytes: &'a [u8]) -> Result<Self, Error> {
        Self::parse_bytes_within(bytes, Limits::default())
    }

    /// Reads a whole save within `limits`.
    ///
    /// # Errors
    /// As [`Save::parse`].
    pub fn parse_within(text: &'a str, limits: Limits) -> Result<Self, Error> {
        parse(Input::Text(text), limits)
    }

    /// As [`Save::parse_bytes`], within `limits`.
    ///
    /// # Errors
    /// As [`Save::parse`].
    pub fn parse_bytes_within(bytes: &'a [u8], limits: Limits) -> Result<Self, Error> {
        match decode(bytes) {
            Cow::Borrowed(text) => parse(Input::Text(text), limits),
            Cow::Owned(_) => parse(Input::Bytes(bytes), limits),
        }
    }
}

impl<'a> Rule<'a> {
    /// Reads one rule line as it stands in a table, without `-t`: `[1:2] -A CHAIN -j ACCEPT`.
    ///
    /// # Errors
    /// [`Error::Syntax`] unless it is a rule line.
    pub fn parse(text: &'a str) -> Result<Self, Error> {
        let line = Line::new(text, 1);
        match entry(&line)? {
            Entry::Rule(rule) => Ok(rule),
            _ => Err(line.expected(0, "a rule, as in `-A CHAIN ... -j TARGET`")),
        }
    }
}

/// What is parsed.
#[derive(Clone, Copy)]
enum Input<'a> {
    /// Text without bytes that need decoding.
    Text(&'a str),
    Bytes(&'a [u8]),
}

impl<'a> Input<'a> {
    fn bytes(self) -> &'a [u8] {
        match self {
            Self::Text(text) => text.as_bytes(),
            Self::Bytes(bytes) => bytes,
        }
    }

    fn text(self, from: usize, to: usize) -> Cow<'a, str> {
        match self {
            Self::Text(text) => Cow::Borrowed(text.get(from..to).unwrap_or_default()),
            Self::Bytes(bytes) => decode(bytes.get(from..to).unwrap_or_default()),
        }
    }
}

fn parse(input: Input<'_>, limits: Limits) -> Result<Save<'_>, Error> {
    let bytes = input.bytes();
    over("the input, in bytes,", bytes.len(), limits.input, 1)?;
    let mut parser = Parser { input, save: Save::default(), table: None, text: None };
    let (mut at, mut number) = (0, 0);
    while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
        number += 1;
        over("the number of lines", number, limits.lines, number)?;
        let length = memchr(b'\n', rest).map_or(rest.len(), |end| end + 1);
        over("the line, in bytes,", length, limits.line, number)?;
        let in_table = parser.table.is_some();
        let part = match input.text(at, at + length) {
            Cow::Borrowed(whole) => Part::read(&Line::new(whole, number), in_table)?,
            Cow::Owned(whole) => Part::read(&Line::new(&whole, number), in_table)?.into_owned(),
        };
        parser.add(part, at..at + length);
        at += length;
    }
    parser.end(number)
}

/// A line of the input.
pub(crate) struct Line<'a> {
    /// With its end.
    pub(crate) whole: &'a str,
    /// The line without its end.
    pub(crate) text: &'a str,
    pub(crate) number: usize,
}

impl<'a> Line<'a> {
    fn new(whole: &'a str, number: usize) -> Self {
        Self { whole, text: whole.strip_suffix('\n').unwrap_or(whole), number }
    }

    pub(crate) fn source(&self) -> Source<'a> {
        Source(Cow::Borrowed(self.whole))
    }

    pub(crate) fn number(&self) -> u32 {
        u32::try_from(self.number).unwrap_or(u32::MAX)
    }

    /// "expected ..." at byte `offset` of the line, with the word that stands there.
    pub(crate) fn expected(&self, offset: usize, expected: impl Into<Cow<'static, str>>) -> Error {
        let rest = self.text.get(offset..).unwrap_or_default();
        let trimmed = rest.trim_start_matches(is_blank);
        let word = trimmed.split(is_blank).next().unwrap_or_default();
        Error::Syntax {
            line: self.number,
            column: column(self.text, self.text.len() - trimmed.len()),
            word: word.to_owned(),
            expected: expected.into(),
        }
    }

    /// Returns the offset of `rest`, the end of the line.
    pub(crate) fn offset(&self, rest: &str) -> usize {
        self.text.len() - rest.len()
    }
}

/// What a line is.
enum Part<'a> {
    /// A comment, or blank.
    Text,
    Head(Table<'a>),
    Entry(Entry<'a>),
    Commit(Source<'a>),
}

impl<'a> Part<'a> {
    fn read(line: &Line<'a>, in_table: bool) -> Result<Self, Error> {
        if let Some(zero) = memchr(0, line.text.as_bytes()) {
            return Err(line.expected(zero, "no zero byte"));
        }
        if line.text.starts_with('#') || line.text.bytes().all(|byte| matches!(byte, b' ' | b'\t')) {
            return Ok(Self::Text);
        }
        // iptables-restore takes it for a part of the last word: of a target, a chain, a comment.
        if line.text.ends_with('\r') {
            return Err(line.expected(line.text.len(), "a line that ends in `\\n`, not in `\\r\\n`"));
        }
        match (in_table, line.text) {
            (false, text) if text.starts_with('*') => Ok(Self::Head(head(line)?)),
            (false, _) => Err(line.expected(0, "`*` and the name of a table, or a comment")),
            (true, "COMMIT") => Ok(Self::Commit(line.source())),
            (true, _) => Ok(Self::Entry(entry(line)?)),
        }
    }

    fn into_owned(self) -> Part<'static> {
        match self {
            Self::Text => Part::Text,
            Self::Head(table) => Part::Head(table.into_owned()),
            Self::Entry(entry) => Part::Entry(entry.into_owned()),
            Self::Commit(source) => Part::Commit(source.into_owned()),
        }
    }
}

struct Parser<'a> {
    input: Input<'a>,
    save: Save<'a>,
    table: Option<Table<'a>>,
    /// The comment and blank lines read last, as byte offsets of the input.
    text: Option<Range<usize>>,
}

impl<'a> Parser<'a> {
    fn add(&mut self, part: Part<'a>, at: Range<usize>) {
        if let Part::Text = part {
            let start = self.text.as_ref().map_or(at.start, |text| text.start);
            self.text = Some(start..at.end);
            return;
        }
        self.end_text();
        match (part, &mut self.table) {
            (Part::Head(table), _) => self.table = Some(table),
            (Part::Entry(entry), Some(table)) => table.entries.push(entry),
            (Part::Commit(commit), _) => {
                let table = self.table.take().map(|table| Item::Table(Table { commit, ..table }));
                self.save.items.extend(table);
            }
            _ => (),
        }
    }

    fn end_text(&mut self) {
        let Some(Range { start, end }) = self.text.take() else { return };
        let text = self.input.text(start, end);
        match &mut self.table {
            Some(table) => table.entries.push(Entry::Text(text)),
            None => self.save.items.push(Item::Text(text)),
        }
    }

    fn end(mut self, lines: usize) -> Result<Save<'a>, Error> {
        self.end_text();
        match self.table {
            None => Ok(self.save),
            Some(table) => Err(Error::Syntax {
                line: lines + 1,
                column: 1,
                word: String::new(),
                expected: format!("`COMMIT` of table {}, which starts at line {}", table.name, table.line)
                    .into(),
            }),
        }
    }
}

fn head<'a>(line: &Line<'a>) -> Result<Table<'a>, Error> {
    let rest = line.text.get(1..).unwrap_or_default();
    let mut words = rest.split(is_blank).filter(|word| !word.is_empty());
    let name = words.next().ok_or_else(|| line.expected(1, "the name of a table"))?;
    let behind = rest.trim_start_matches(is_blank).trim_start_matches(|c| !is_blank(c));
    if words.next().is_some() {
        return Err(line.expected(line.offset(behind), "nothing behind the name of the table"));
    }
    Ok(Table::read(line.source(), name.into(), line.number()))
}

fn over(what: &'static str, found: usize, limit: usize, line: usize) -> Result<(), Error> {
    if found > limit { Err(Error::Limit { line, what, found, limit }) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{Action, Counters};

    const SAVE: &str = "# Generated by iptables-save v1.8.9 (nf_tables) on Sat Nov 21 01:00:00 2026\n*nat\n\
        :PREROUTING ACCEPT [1:2]\n:X - [0:0]\n\n# odd place\n[3:4] -A X  -s 10.0.0.1/32   -j ACCEPT\n\
        -I X 2 -j RETURN\n\
        -N Y\nCOMMIT\n\n*filter\nCOMMIT\n# Completed\n";

    #[test]
    fn reads_tables_chains_rules_and_commands() {
        let save = Save::parse(SAVE).unwrap();
        let nat = save.table("nat").unwrap();
        assert_eq!(nat.chain("PREROUTING").unwrap().policy(), Some("ACCEPT"));
        assert_eq!(nat.chain("X").unwrap().counters(), Some(Counters::default()));
        let rules: Vec<_> = nat.rules().map(|rule| (rule.action(), rule.text(), rule.line())).collect();
        assert_eq!(
            rules,
            [(Action::Append, "-s 10.0.0.1/32   -j ACCEPT", 7), (Action::Insert(Some(2)), "-j RETURN", 8)]
        );
        assert_eq!(nat.commands().count(), 1);
        assert_eq!(save.tables().count(), 2);
    }

    #[test]
    fn an_untouched_tree_renders_the_input() {
        for text in
            [SAVE, "# x\r\n*t\nCOMMIT\n", "", "\n\n", "# x", "*t\nCOMMIT", " \t\n*t\n\n# y\n-F\nCOMMIT\n \n"]
        {
            assert_eq!(Save::parse(text).unwrap().to_string(), text);
            assert_eq!(Save::parse(text).unwrap().into_owned().to_string(), text);
        }
    }

    #[test]
    fn a_changed_rule_is_rendered_anew_and_nothing_else() {
        let mut save = Save::parse(SAVE).unwrap();
        let rule = save.tables_mut().next().unwrap().rules_mut().next().unwrap();
        rule.set_counters(None);
        assert_eq!(save.to_string(), SAVE.replace("[3:4] -A X  -s", "-A X -s"));
    }

    #[test]
    fn errors_say_line_column_word_and_what_was_expected() {
        for (text, message) in [
            ("-A X\n", "line 1, column 1: `-A`: expected `*` and the name of a table, or a comment"),
            ("*\n", "line 1, column 2: expected the name of a table"),
            ("*t\n# a\0b\n", "line 2, column 4: `\u{fffd}b`: expected no zero byte"),
            ("*a b\n", "line 1, column 4: `b`: expected nothing behind the name of the table"),
            ("*nat at\n", "line 1, column 6: `at`: expected nothing behind the name of the table"),
            ("*t\n:\n", "line 2, column 2: expected the name of a chain"),
            ("*t\n:X\n", "line 2, column 3: expected a policy, or `-` for a user-defined chain"),
            ("*t\n:X - [1:x]\n", "line 2, column 6: `[1:x]`: expected counters, as in `[packets:bytes]`"),
            ("*t\n:X - [1:2] y\n", "line 2, column 12: `y`: expected nothing behind the counters"),
            ("*t\n[1:2\nCOMMIT\n", "line 2, column 1: `[1:2`: expected counters, as in `[packets:bytes]`"),
            ("*t\nfoo\n", "line 2, column 1: `foo`: expected a command, as in `-A CHAIN`"),
            ("*t\nCOMMIT \n", "line 2, column 1: `COMMIT`: expected a command, as in `-A CHAIN`"),
            ("*t\r\n", "line 1, column 4: expected a line that ends in `\\n`, not in `\\r\\n`"),
            ("*t\n:X - [0:0]\r\n", "line 2, column 12: expected a line that ends in `\\n`, not in `\\r\\n`"),
            ("*t\n-A X -j DROP\r", "line 2, column 14: expected a line that ends in `\\n`, not in `\\r\\n`"),
            ("*t\n\r\n", "line 2, column 2: expected a line that ends in `\\n`, not in `\\r\\n`"),
            ("*t\nCOMMIT\r\n", "line 2, column 8: expected a line that ends in `\\n`, not in `\\r\\n`"),
            ("*t\n-A\n", "line 2, column 3: expected the name of a chain"),
            ("*t\n-R X\n", "line 2, column 5: expected a rule number"),
            ("*t\n-R X 0\n", "line 2, column 6: `0`: expected a rule number"),
            ("*t\n-E X\n", "line 2, column 5: expected the new name of the chain"),
            (
                "*t\n-t nat -A X\n",
                "line 2, column 1: `-t`: expected no `-t`: the table is given by `*t` and so on",
            ),
            ("*t\n-A X\n", "line 3, column 1: expected `COMMIT` of table t, which starts at line 1"),
        ] {
            assert_eq!(Save::parse(text).unwrap_err().to_string(), message, "{text:?}");
        }
        // A byte that is not UTF-8 is one column.
        let error = Save::parse_bytes(b"*t\n:\xff X [\xff]\n").unwrap_err();
        assert!(error.to_string().starts_with("line 2, column 6: "), "{error}");
    }

    #[test]
    fn limits_refuse_large_inputs_lines_and_counts() {
        let limits = Limits { input: 20, line: 10, lines: 3 };
        let error = |text| Save::parse_within(text, limits).unwrap_err().to_string();
        assert_eq!(error("#\n#\n#\n#\n"), "line 4: the number of lines is 4, over the limit of 3");
        assert_eq!(error("#\n# 345678901\n"), "line 2: the line, in bytes, is 12, over the limit of 10");
        assert_eq!(error(&"#".repeat(21)), "line 1: the input, in bytes, is 21, over the limit of 20");
    }

    #[test]
    fn bytes_that_are_not_utf8_are_kept_and_rendered_as_they_came() {
        let bytes = b"# caf\xe9\n*filter\n:\xfcber - [0:0]\n\
                      -A INPUT -m comment --comment \"caf\xe9 \xc3\xa9\" -j LOG\n# \xff\nCOMMIT\n";
        let save = Save::parse_bytes(bytes).unwrap();
        assert_eq!(save.to_bytes(), bytes);
        assert_eq!(save.clone().into_owned().to_bytes(), bytes);
        let table = save.table("filter").unwrap();
        assert_eq!(*crate::encode(table.chains().next().unwrap().name()), *b"\xfcber");
        let mut rule = table.rules().next().unwrap().clone();
        assert_eq!(*crate::encode(rule.spec().unwrap().comment().unwrap()), *b"caf\xe9 \xc3\xa9");
        // Written anew from the words, it has the same bytes.
        rule.set_text(rule.spec().unwrap().to_words().unwrap()).unwrap();
        assert_eq!(
            *crate::encode(&rule.to_string()),
            *b"-A INPUT -m comment --comment \"caf\xe9 \xc3\xa9\" -j LOG\n"
        );
    }

    proptest! {
        #[test]
        fn bytes_that_parse_render_identically(line in prop::collection::vec(any::<u8>(), 0..30)) {
            let bytes = [b"*t\n# ", &line[..], b"\n-A X ", &line[..], b"\nCOMMIT\n"].concat();
            if let Ok(save) = Save::parse_bytes(&bytes) {
                prop_assert_eq!(save.to_bytes(), bytes);
            }
        }

        #[test]
        fn what_parses_renders_identically(
            lines in prop::collection::vec(line_of_a_table(), 0..20),
            end in "\r?\n",
        ) {
            let lines: String = lines.iter().map(|line| format!("{line}{end}")).collect();
            let text = format!("*t{end}{lines}COMMIT");
            if let Ok(save) = Save::parse(&text) {
                prop_assert_eq!(save.to_string(), text);
            }
        }

        #[test]
        fn parsing_never_panics(text in ".*") {
            let _ = Save::parse(&format!("*t\n{text}\nCOMMIT"));
        }
    }

    fn line_of_a_table() -> impl Strategy<Value = String> {
        prop_oneof![
            "#.*",
            "[ \t]*",
            ":[A-Z]{1,4} (ACCEPT|-)( \\[[0-9]{1,3}:[0-9]{1,3}\\])?",
            "(\\[[0-9]:[0-9]\\] ?)?-[AID] [A-Z]{1,4} [-a-z \"']{0,20}",
            "-[NXFZ] [A-Z]{1,4}",
        ]
    }
}
