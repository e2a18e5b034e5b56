//! Splits a line of a restore file into words with their columns.

use std::borrow::Cow;

use crate::text::ParseError;
use crate::{Reason, name::reads_as_option};

/// A word and its column.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Word<'l> {
    /// The word without its quotes.
    pub text: Cow<'l, str>,
    /// The column, from 1, in characters. For a word of a command line, the number of the word.
    pub column: u32,
    /// Whether it had quotes. Such a word is never an option of `ipset` itself.
    pub quoted: bool,
}

impl<'l> Word<'l> {
    /// Splits a line: words are separated by white space, and double quotes keep it inside a word.
    ///
    /// An empty line and a comment (`#`) have no words.
    ///
    /// # Errors
    /// [`Reason::Quote`] when a quote is not closed.
    pub fn split(line: &'l str) -> Result<Vec<Self>, ParseError> {
        let mut words = Vec::with_capacity(4);
        let mut rest = line.trim_ascii_start();
        if rest.starts_with('#') {
            return Ok(words);
        }
        let mut column = column_after(1, line.get(..line.len() - rest.len()).unwrap_or_default());
        while !rest.is_empty() {
            let length = length_of_word(rest).map_err(|at| {
                let reason = Reason::Quote;
                ParseError {
                    line: None,
                    column: column_after(column, rest.get(..at).unwrap_or_default()),
                    reason,
                }
            })?;
            let (raw, after) = rest.split_at_checked(length).unwrap_or((rest, ""));
            let quoted = raw.contains('"');
            let text = if quoted { Cow::Owned(raw.replace('"', "")) } else { Cow::Borrowed(raw) };
            words.push(Self { text, column, quoted });
            let next = after.trim_ascii_start();
            column = column_after(column, rest.get(..rest.len() - next.len()).unwrap_or_default());
            rest = next;
        }
        Ok(words)
    }

    /// Returns the words of a command line, as a shell has split them.
    #[must_use]
    pub fn from_arguments(arguments: impl IntoIterator<Item = String>) -> Vec<Word<'static>> {
        (1..)
            .zip(arguments)
            .map(|(column, text)| Word { text: Cow::Owned(text), column, quoted: false })
            .collect()
    }

    /// Returns an error with this reason and the position of this word.
    #[must_use]
    pub fn wrong(&self, reason: Reason) -> ParseError {
        ParseError { line: None, column: self.column, reason }
    }

    pub(crate) fn is_option(&self) -> bool {
        self.text.starts_with('-') && !self.quoted && reads_as_option(&self.text)
    }
}

/// Returns the length of the first word in bytes, or the offset of a quote that is not closed.
fn length_of_word(text: &str) -> Result<usize, usize> {
    let mut open = None;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'"' => open = if open.is_some() { None } else { Some(at) },
            byte if byte.is_ascii_whitespace() && open.is_none() => return Ok(at),
            _ => {}
        }
    }
    open.map_or(Ok(text.len()), Err)
}

fn column_after(column: u32, text: &str) -> u32 {
    column.saturating_add(u32::try_from(text.chars().count()).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(line: &str) -> Vec<(String, u32)> {
        Word::split(line).unwrap().into_iter().map(|word| (word.text.into_owned(), word.column)).collect()
    }

    #[test]
    fn words_keep_their_columns() {
        assert_eq!(
            split("  add a 1.1.1.1\tcomment \"x  y\" z\"1 2\"w\r\n"),
            [("add", 3), ("a", 7), ("1.1.1.1", 9), ("comment", 17), ("x  y", 25), ("z1 2w", 32)]
                .map(|(word, column)| (word.to_owned(), column))
        );
    }

    #[test]
    fn a_file_ends_with_quit() {
        use crate::{Numeric, text};
        let file = "create n hash:net,iface\nadd n 10.0.0.0/8,\"a b\"\nquit now\nno command\n";
        let lines = text::parse(file, &Numeric, |_| None).unwrap();
        let printed: Vec<_> = lines.iter().map(|line| line.command.to_string()).collect();
        assert_eq!(printed.last().map(String::as_str), Some("add n 10.0.0.0/8,\"a b\""));
    }

    #[test]
    fn comments_and_blank_lines_have_no_words() {
        assert!(split("# add a 1.1.1.1").is_empty());
        assert!(split("   # x").is_empty());
        assert!(split(" \t").is_empty());
        assert_eq!(split("a #b").len(), 2);
    }

    #[test]
    fn an_open_quote_is_reported_where_it_opens() {
        let error = Word::split("add a 1.1.1.1 comment \"x y").unwrap_err();
        assert_eq!((error.column, error.reason), (23, Reason::Quote));
    }
}
