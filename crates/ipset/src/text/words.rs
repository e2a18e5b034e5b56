//! Splits a line of a restore file into words, and remembers where each stood.

use crate::text::ParseError;
use crate::{Reason, name::reads_as_option};

/// A word and the column that it starts in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    /// The word without its quotes.
    pub text: String,
    /// Characters from the start of the line, from 1. For a word of a command line, its place among the words.
    pub column: u32,
    /// Quotes were in it: such a word is never taken for an option of `ipset` itself.
    pub quoted: bool,
}

impl Word {
    /// Splits a line: words are separated by white space, and double quotes keep it inside a word.
    ///
    /// A line without words, or a comment (`#`), gives no words.
    ///
    /// # Errors
    /// [`Reason::Quote`] when a quote is not closed.
    pub fn split(line: &str) -> Result<Vec<Self>, ParseError> {
        let mut words = Vec::new();
        let mut word: Option<Self> = None;
        let mut open: Option<u32> = None;
        let mut column = 0;
        for c in line.chars() {
            column += 1;
            match c {
                '"' => {
                    word.get_or_insert_with(|| Self::empty(column)).quoted = true;
                    open = if open.is_some() { None } else { Some(column) };
                }
                '#' if words.is_empty() && word.is_none() => return Ok(words),
                c if c.is_ascii_whitespace() && open.is_none() => words.extend(word.take()),
                c => word.get_or_insert_with(|| Self::empty(column)).text.push(c),
            }
        }
        match open {
            Some(column) => Err(ParseError { line: None, column, reason: Reason::Quote }),
            None => {
                words.extend(word);
                Ok(words)
            }
        }
    }

    /// The words of a command line, as a shell has split them.
    #[must_use]
    pub fn from_arguments(arguments: impl IntoIterator<Item = String>) -> Vec<Self> {
        (1..).zip(arguments).map(|(column, text)| Self { text, column, quoted: false }).collect()
    }

    /// This reason, with the place of this word.
    #[must_use]
    pub fn wrong(&self, reason: Reason) -> ParseError {
        ParseError { line: None, column: self.column, reason }
    }

    pub(crate) fn is_option(&self) -> bool {
        !self.quoted && reads_as_option(&self.text)
    }

    fn empty(column: u32) -> Self {
        Self { text: String::new(), column, quoted: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(line: &str) -> Vec<(String, u32)> {
        Word::split(line).unwrap().into_iter().map(|word| (word.text, word.column)).collect()
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
