//! Words of a rule: split as iptables-restore splits a line, quoted as iptables-save quotes a string.
//!
//! The rules of iptables-restore 1.8.9, found by experiment: blanks, tabs and line ends separate words. A
//! double quote opens a quotation anywhere in a word; inside it a backslash makes the next character plain;
//! the closing quote ends the word. Outside a quotation backslashes and single quotes are ordinary
//! characters. Only a quotation gives an empty word.

use std::borrow::Cow;

use memchr::{memchr, memchr2};

use crate::Error;

/// A word of a line, and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Word<'a> {
    /// The word without its quotation; borrowed unless a backslash or a quote inside it forces a copy.
    pub text: Cow<'a, str>,
    /// The offset at which it starts, its quote included, in bytes from the start of the line.
    pub offset: usize,
    /// Whether any of it was in double quotes.
    pub quoted: bool,
}

/// Splits `line` as iptables-restore does.
///
/// ```
/// let line = r#"-m comment --comment "a \"b\"" -j A"#;
/// let words: Result<Vec<_>, _> = sluicegate_iptables_save::split(line).collect();
/// let texts: Vec<_> = words.unwrap().into_iter().map(|word| word.text).collect();
/// assert_eq!(texts, ["-m", "comment", "--comment", r#"a "b""#, "-j", "A"]);
/// ```
#[must_use]
pub fn split(line: &str) -> Words<'_> {
    Words { line, at: 0 }
}

/// Iterator over the words of a line. An unclosed quotation is an error, and the last item.
#[derive(Debug, Clone)]
pub struct Words<'a> {
    line: &'a str,
    at: usize,
}

impl<'a> Words<'a> {
    /// Returns the rest of the line that has not been read yet, without leading blanks.
    #[must_use]
    pub fn rest(&self) -> &'a str {
        self.line.get(self.at..).unwrap_or_default().trim_start_matches(is_blank)
    }

    fn unclosed(&mut self, offset: usize) -> Error {
        self.at = self.line.len();
        Error::Rule {
            line: 1,
            column: column(self.line, offset),
            word: self.line.get(offset..).unwrap_or_default().to_owned(),
            reason: "the quotation is not closed".to_owned(),
            fault: Box::new(crate::RuleFault::Other),
        }
    }

    /// Returns a word with a quotation in it: `start..open` is plain, `open` is at the quote.
    fn quoted(&mut self, start: usize, open: usize) -> Result<Word<'a>, Error> {
        let bytes = self.line.as_bytes();
        let mut text = Cow::Borrowed(self.line.get(start..open).unwrap_or_default());
        let mut at = open + 1;
        loop {
            let Some(found) = bytes.get(at..).and_then(|rest| memchr2(b'"', b'\\', rest)) else {
                return Err(self.unclosed(open));
            };
            append(&mut text, self.line.get(at..at + found).unwrap_or_default());
            at += found;
            if bytes.get(at) == Some(&b'"') {
                self.at = at + 1;
                return Ok(Word { text, offset: start, quoted: true });
            }
            let Some(escaped) = self.line.get(at + 1..).and_then(|rest| rest.chars().next()) else {
                return Err(self.unclosed(open));
            };
            let end = at + 1 + escaped.len_utf8();
            append(&mut text, self.line.get(at + 1..end).unwrap_or_default());
            at = end;
        }
    }
}

impl<'a> Iterator for Words<'a> {
    type Item = Result<Word<'a>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let bytes = self.line.as_bytes();
        let start = self.at + bytes.get(self.at..)?.iter().position(|byte| !blank(*byte))?;
        let mut end = start;
        while let Some(byte) = bytes.get(end)
            && !blank(*byte)
        {
            if *byte == b'"' {
                return Some(self.quoted(start, end));
            }
            end += 1;
        }
        self.at = end;
        let text = Cow::Borrowed(self.line.get(start..end).unwrap_or_default());
        Some(Ok(Word { text, offset: start, quoted: false }))
    }
}

/// Quotes a word as iptables-save does a string: plain if it is of ASCII letters, digits, `_` and `-` alone,
/// else in double quotes with a backslash before `"`, `\` and `'`.
///
/// # Errors
/// [`Error::Unquotable`] for a line end or a zero byte: iptables-restore reads lines of C strings.
pub fn quote(word: &str) -> Result<Cow<'_, str>, Error> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    quote_unless(word, !word.is_empty() && word.bytes().all(plain))
}

/// Quotes a word only if iptables-restore would not read it back otherwise: numbers, addresses and lists stay
/// plain.
///
/// # Errors
/// As [`quote`].
pub fn quote_if_needed(word: &str) -> Result<Cow<'_, str>, Error> {
    quote_unless(
        word,
        !word.is_empty() && word.bytes().all(|byte| !blank(byte) && byte != b'"' && byte != b'\r'),
    )
}

fn quote_unless(word: &str, plain: bool) -> Result<Cow<'_, str>, Error> {
    let reason = if memchr(b'\n', word.as_bytes()).is_some() {
        "it has a line end"
    } else if memchr(0, word.as_bytes()).is_some() {
        "it has a zero byte"
    } else if plain {
        return Ok(Cow::Borrowed(word));
    } else {
        return Ok(Cow::Owned(in_quotes(word)));
    };
    Err(Error::Unquotable { word: word.to_owned(), reason })
}

fn in_quotes(word: &str) -> String {
    let mut quoted = String::with_capacity(word.len() + 2);
    quoted.push('"');
    for c in word.chars() {
        if matches!(c, '"' | '\\' | '\'') {
            quoted.push('\\');
        }
        quoted.push(c);
    }
    quoted.push('"');
    quoted
}

/// Returns the column, in characters from 1, of byte `offset` of `line`.
pub(crate) fn column(line: &str, offset: usize) -> usize {
    line.get(..offset).map_or(offset, |before| before.chars().count()) + 1
}

/// Returns true for the characters that separate words.
pub(crate) fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t')
}

fn blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n')
}

fn append<'a>(text: &mut Cow<'a, str>, more: &'a str) {
    if text.is_empty() {
        *text = Cow::Borrowed(more);
    } else if !more.is_empty() {
        text.to_mut().push_str(more);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn texts(line: &str) -> Vec<String> {
        split(line).map(|word| word.expect("closed").text.into_owned()).collect()
    }

    #[test]
    fn words_are_parted_by_blanks_tabs_and_line_ends() {
        assert_eq!(texts(" -A\tX  -j\nY "), ["-A", "X", "-j", "Y"]);
        assert_eq!(texts(""), Vec::<String>::new());
    }

    #[test]
    fn a_closing_quote_ends_the_word_and_an_opening_one_does_not_start_it() {
        assert_eq!(texts(r#"a"b c"d"#), ["ab c", "d"]);
        assert_eq!(texts(r#""" x"#), ["", "x"]);
    }

    #[test]
    fn backslashes_count_inside_quotations_alone_and_single_quotes_never() {
        assert_eq!(texts(r#"a\b "a\"b\\\c" 'x y'"#), [r"a\b", r#"a"b\c"#, "'x", "y'"]);
    }

    #[test]
    fn an_unclosed_quotation_is_named_with_its_column() {
        let error = split(r#"-j "X"#).nth(1).expect("a word").expect_err("unclosed");
        assert_eq!(error.to_string(), "line 1, column 4: `\"X`: the quotation is not closed");
        assert!(split("\"a\\").next().expect("a word").is_err());
    }

    #[test]
    fn quotes_as_the_tool_prints() {
        assert_eq!(quote("abc-_9").unwrap(), "abc-_9");
        assert_eq!(quote("").unwrap(), "\"\"");
        assert_eq!(quote(r#"a"b\c'd e"#).unwrap(), r#""a\"b\\c\'d e""#);
        assert_eq!(quote("a:b").unwrap(), "\"a:b\"");
        assert_eq!(quote_if_needed("a:b").unwrap(), "a:b");
        assert!(quote("a\nb").is_err() && quote("a\0b").is_err());
    }

    #[test]
    fn a_word_without_escapes_is_borrowed() {
        let words: Vec<_> = split(r#"-m "a b" c"#).map(Result::unwrap).collect();
        assert!(words.iter().all(|word| matches!(word.text, Cow::Borrowed(_))));
    }

    proptest! {
        #[test]
        fn quoting_then_splitting_gives_the_word(word in "[^\n\0]*", other in "[^\n\0]*") {
            for form in [quote, quote_if_needed] {
                let line = format!("{} {}", form(&word).unwrap(), form(&other).unwrap());
                prop_assert_eq!(texts(&line), vec![word.clone(), other.clone()]);
            }
        }

        #[test]
        fn splitting_never_panics(line in ".*") {
            let _ = split(&line).count();
        }
    }
}
