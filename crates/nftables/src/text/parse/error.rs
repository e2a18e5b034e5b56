//! Parse errors and their positions.

use std::fmt;

use crate::text::parse::lexer::Span;
use crate::text::parse::source::{Source, place};

/// The error for a text that is not in nft's language, or that nft would refuse: lists every mistake found.
///
/// Displayed, each mistake is shown with its line and the words at fault underlined.
///
/// ```
/// use sluicegate_nftables::Transaction;
///
/// let error = Transaction::parse("add rule ip t c tcp dport sssh accept").unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "\
/// error: expected a port or the name of a service, found `sssh`
///  --> 1:27
///   |
/// 1 | add rule ip t c tcp dport sssh accept
///   |                           ^^^^ did you mean `ssh`?"
/// );
/// ```
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ParseError {
    /// The mistakes, in the order of the text.
    pub mistakes: Vec<Mistake>,
    /// Whether the parser stopped because there were too many
    /// ([`ParseOptions::max_mistakes`](super::ParseOptions)).
    pub is_cut: bool,
}

/// One mistake in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Mistake {
    /// What was expected, and what was found.
    pub message: String,
    /// A hint: the probably intended word, or how to correct the mistake.
    pub help: Option<String>,
    /// The name of the included text that contains it; `None` for the script itself.
    pub source: Option<String>,
    /// The line, from 1.
    pub line: usize,
    /// The column of the first character at fault, from 1.
    pub column: usize,
    /// How many characters are at fault in that line.
    pub width: usize,
    /// The byte offset in the text where it starts.
    pub offset: usize,
    /// The line; an excerpt around the mistake if the line is long.
    pub text: String,
    /// How many characters of the line are left out before [`text`](Self::text).
    pub cut: usize,
    /// Whether it is that a set is not known whose type is needed: neither the text adds it, nor does
    /// [`ParseOptions::sets`](super::ParseOptions::sets) return it.
    pub is_unknown_set: bool,
}

impl std::error::Error for ParseError {}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, mistake) in self.mistakes.iter().enumerate() {
            if i > 0 {
                f.write_str("\n")?;
            }
            mistake.fmt(f)?;
        }
        if self.is_cut {
            f.write_str("\nerror: too many mistakes; the rest of the text was not read")?;
        }
        Ok(())
    }
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = self.line.to_string();
        let margin = " ".repeat(number.len());
        write!(f, "error: {}\n{margin}--> ", self.message)?;
        if let Some(source) = &self.source {
            write!(f, "{source}:")?;
        }
        writeln!(f, "{}:{}", self.line, self.column)?;
        let dots = if self.cut > 0 { "..." } else { "" };
        writeln!(f, "{margin} |\n{number} | {dots}{}", self.text)?;
        // A tab above is a tab below, or the marks would not be under the words.
        let before = self.column.saturating_sub(1).saturating_sub(self.cut);
        let indent: String = self
            .text
            .chars()
            .take(before)
            .map(|character| if character == '\t' { '\t' } else { ' ' })
            .collect();
        let dots = " ".repeat(dots.len());
        let shown = self.text.chars().count().saturating_sub(before).max(1);
        write!(f, "{margin} | {dots}{indent}{}", "^".repeat(self.width.min(shown)))?;
        self.help.iter().try_for_each(|help| write!(f, " {help}"))
    }
}

/// A mistake whose line and column have not been computed yet.
#[derive(Debug, Clone)]
pub(crate) struct Problem {
    pub(crate) span: Span,
    pub(crate) message: String,
    pub(crate) help: Option<String>,
    /// Whether it is only a consequence of mistakes that have been reported.
    pub(crate) follows: bool,
    /// Whether it is about a set that is not known.
    pub(crate) is_unknown_set: bool,
}

impl Problem {
    pub(crate) fn new(span: Span, message: impl Into<String>) -> Box<Self> {
        Box::new(Self { span, message: message.into(), help: None, follows: false, is_unknown_set: false })
    }

    /// Marks it as a consequence of mistakes that have been reported.
    pub(crate) fn follows(mut self: Box<Self>, follows: bool) -> Box<Self> {
        self.follows = follows;
        self
    }

    /// Marks it as about a set that is not known.
    pub(crate) fn unknown_set(mut self: Box<Self>) -> Box<Self> {
        self.is_unknown_set = true;
        self
    }

    pub(crate) fn help(mut self: Box<Self>, help: impl Into<String>) -> Box<Self> {
        self.help = Some(help.into());
        self
    }

    /// Adds the word that was probably meant.
    pub(crate) fn meant(self: Box<Self>, word: Option<&str>) -> Box<Self> {
        match word {
            Some(word) => self.help(format!("did you mean `{word}`?")),
            None => self,
        }
    }

    pub(crate) fn mistake(&self, sources: &[Source<'_>]) -> Mistake {
        let place = place(sources, self.span);
        let cut = match place.column - 1 {
            column if column > MAX_COLUMN => column - MAX_COLUMN / 2,
            _ => 0,
        };
        let base = sources.iter().find(|source| source.contains(self.span.start)).map_or(0, |s| s.base);
        Mistake {
            message: self.message.clone(),
            help: self.help.clone(),
            source: place.name.map(str::to_owned),
            line: place.line,
            column: place.column,
            width: place.width,
            offset: self.span.start - base.min(self.span.start),
            text: place.text.chars().skip(cut).take(MAX_SHOWN).collect(),
            cut,
            is_unknown_set: self.is_unknown_set,
        }
    }
}

/// Lines are shown from their start up to a mistake in this column.
const MAX_COLUMN: usize = 100;
/// Characters of a line that are shown.
const MAX_SHOWN: usize = 160;

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str, start: usize, end: usize) -> String {
        let problem = Problem::new(Span { start, end }, "no").help("why");
        problem.mistake(&[Source { name: None, text, base: 0 }]).to_string()
    }

    #[test]
    fn the_words_at_fault_are_underlined() {
        assert_eq!(shown("a\n\tb c\nd", 5, 6), "error: no\n --> 2:4\n  |\n2 | \tb c\n  | \t  ^ why");
    }

    #[test]
    fn of_a_long_line_that_is_shown_which_is_near() {
        let line = format!("{}x{}", "a".repeat(1000), "b".repeat(1000));
        let text = shown(&line, 1000, 1001);
        assert!(text.contains(&format!("1 | ...{}x{}\n", "a".repeat(50), "b".repeat(109))), "{text}");
        assert!(text.ends_with(&format!("|    {}^ why", " ".repeat(50))), "{text}");
    }
}
