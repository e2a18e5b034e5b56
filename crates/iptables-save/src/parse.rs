//! From text to the tree: one pass over the lines; nothing is copied from a line that has the usual form.

use std::borrow::Cow;

use memchr::memchr;

use crate::command::entry;
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

    /// Reads a whole save from bytes, within the default [`Limits`].
    ///
    /// # Errors
    /// As [`Save::parse`], and [`Error::NotUtf8`].
    pub fn parse_bytes(bytes: &'a [u8]) -> Result<Self, Error> {
        over("the input, in bytes,", bytes.len(), Limits::default().input, 1)?;
        Self::parse(std::str::from_utf8(bytes).map_err(|error| not_utf8(bytes, error.valid_up_to()))?)
    }

    /// Reads a whole save within `limits`.
    ///
    /// # Errors
    /// As [`Save::parse`].
    pub fn parse_within(text: &'a str, limits: Limits) -> Result<Self, Error> {
        over("the input, in bytes,", text.len(), limits.input, 1)?;
        let mut parser = Parser { input: text, save: Save::default(), table: None, text: None };
        let (mut at, mut number) = (0, 0);
        while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
            number += 1;
            over("the number of lines", number, limits.lines, number)?;
            let length = memchr(b'\n', rest.as_bytes()).map_or(rest.len(), |end| end + 1);
            over("the line, in bytes,", length, limits.line, number)?;
            let line = Line::new(rest.get(..length).unwrap_or(rest), number);
            if let Some(zero) = memchr(0, line.text.as_bytes()) {
                return Err(line.expected(zero, "no zero byte"));
            }
            parser.line(&line, at)?;
            at += length;
        }
        parser.end(number)
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

/// A line of the input.
pub(crate) struct Line<'a> {
    /// With its end.
    pub(crate) whole: &'a str,
    /// Without its end.
    pub(crate) text: &'a str,
    pub(crate) number: usize,
}

impl<'a> Line<'a> {
    fn new(whole: &'a str, number: usize) -> Self {
        let text = whole.strip_suffix('\n').unwrap_or(whole);
        Self { whole, text: text.strip_suffix('\r').unwrap_or(text), number }
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

    /// Where `rest`, the end of the line, starts.
    pub(crate) fn offset(&self, rest: &str) -> usize {
        self.text.len() - rest.len()
    }
}

struct Parser<'a> {
    input: &'a str,
    save: Save<'a>,
    table: Option<Table<'a>>,
    /// The comment and blank lines read last, as byte offsets of the input.
    text: Option<(usize, usize)>,
}

impl<'a> Parser<'a> {
    fn line(&mut self, line: &Line<'a>, at: usize) -> Result<(), Error> {
        if line.text.starts_with('#') || line.text.bytes().all(|byte| matches!(byte, b' ' | b'\t' | b'\r')) {
            let start = self.text.map_or(at, |(start, _)| start);
            self.text = Some((start, at + line.whole.len()));
            return Ok(());
        }
        self.end_text();
        match (&mut self.table, line.text) {
            (None, text) if text.starts_with('*') => self.table = Some(head(line)?),
            (None, _) => return Err(line.expected(0, "`*` and the name of a table, or a comment")),
            (Some(_), "COMMIT") => self.commit(line),
            (Some(table), _) => table.entries.push(entry(line)?),
        }
        Ok(())
    }

    fn commit(&mut self, line: &Line<'a>) {
        if let Some(mut table) = self.table.take() {
            table.commit = line.source();
            self.save.items.push(Item::Table(table));
        }
    }

    fn end_text(&mut self) {
        let Some((start, end)) = self.text.take() else { return };
        let text = Cow::Borrowed(self.input.get(start..end).unwrap_or_default());
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
    if let Some(more) = words.next() {
        // Slices of the same line: the difference is the offset.
        let at = rest.find(more).map_or(0, |at| at + 1);
        return Err(line.expected(at, "nothing behind the name of the table"));
    }
    Ok(Table::read(line.source(), name.into(), line.number()))
}

fn over(what: &'static str, found: usize, limit: usize, line: usize) -> Result<(), Error> {
    if found > limit { Err(Error::Limit { line, what, found, limit }) } else { Ok(()) }
}

pub(crate) fn not_utf8(bytes: &[u8], at: usize) -> Error {
    let valid = std::str::from_utf8(bytes.get(..at).unwrap_or_default()).unwrap_or_default();
    let start = valid.rfind('\n').map_or(0, |end| end + 1);
    Error::NotUtf8 {
        line: valid.matches('\n').count() + 1,
        column: column(valid.get(start..).unwrap_or_default(), valid.len() - start),
        byte: bytes.get(at).copied().unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{Action, Counters};

    const SAVE: &str = "# Generated by iptables-save v1.8.9 (nf_tables) on Sat Nov 21 01:00:00 2026\n*nat\n\
        :PREROUTING ACCEPT [1:2]\n:X - [0:0]\n\n# odd place\n[3:4] -A X  -s 10.0.0.1/32   -j ACCEPT\n-I X 2 -j RETURN\n\
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
        for text in [
            SAVE,
            &SAVE.replace('\n', "\r\n"),
            "",
            "\n\n",
            "# x",
            "*t\nCOMMIT",
            " \t\n*t\n\n# y\n-F\nCOMMIT\n \n",
        ] {
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
            ("*t\n:\n", "line 2, column 2: expected the name of a chain"),
            ("*t\n:X\n", "line 2, column 3: expected a policy, or `-` for a user-defined chain"),
            ("*t\n:X - [1:x]\n", "line 2, column 6: `[1:x]`: expected counters, as in `[packets:bytes]`"),
            ("*t\n:X - [1:2] y\n", "line 2, column 12: `y`: expected nothing behind the counters"),
            ("*t\n[1:2\nCOMMIT\n", "line 2, column 1: `[1:2`: expected counters, as in `[packets:bytes]`"),
            ("*t\nfoo\n", "line 2, column 1: `foo`: expected a command, as in `-A CHAIN`"),
            ("*t\nCOMMIT \n", "line 2, column 1: `COMMIT`: expected a command, as in `-A CHAIN`"),
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
        let error = Save::parse_bytes(b"*t\n# \xff\n").unwrap_err();
        assert_eq!(error.to_string(), "line 2, column 3: byte 0xff is not UTF-8");
    }

    #[test]
    fn limits_refuse_large_inputs_lines_and_counts() {
        let limits = Limits { input: 20, line: 10, lines: 3 };
        let error = |text| Save::parse_within(text, limits).unwrap_err().to_string();
        assert_eq!(error("#\n#\n#\n#\n"), "line 4: the number of lines is 4, over the limit of 3");
        assert_eq!(error("#\n# 345678901\n"), "line 2: the line, in bytes, is 12, over the limit of 10");
        assert_eq!(error(&"#".repeat(21)), "line 1: the input, in bytes, is 21, over the limit of 20");
    }

    proptest! {
        #[test]
        fn what_parses_renders_identically(lines in prop::collection::vec(line_of_a_table(), 0..20), end in "\r?\n") {
            let text = format!("*t{end}{}COMMIT", lines.iter().map(|line| format!("{line}{end}")).collect::<String>());
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
