//! JSON errors: each mistake with its place in the document.

use std::fmt::{self, Display, Formatter};

use crate::error::readable;

/// The error for a document that is not JSON, or that nft would refuse: lists every mistake found.
///
/// ```
/// use sluicegate_nftables::Transaction;
///
/// let error = Transaction::from_json(r#"{"nftables": [
///     {"add": {"table": {"family": "ipv4", "name": "t"}}},
///     {"add": {"rule": {"family": "ip", "table": "t", "chain": "c", "expr": [{"acept": null}]}}}
/// ]}"#).unwrap_err();
/// assert_eq!(error.to_string(), "\
/// /nftables/0/add/table/family: expected a family (ip, ip6, inet, arp, bridge, netdev), found \"ipv4\"
/// /nftables/1/add/rule/expr/0: expected a statement, found \"acept\"; did you mean \"accept\"?");
/// assert_eq!(Transaction::from_json("{\n  nftables").unwrap_err().mistakes[0].line, Some(2));
/// ```
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct JsonError {
    /// The mistakes, in the order of the document.
    pub mistakes: Vec<JsonMistake>,
    /// Whether reading stopped because there were too many
    /// ([`ParseOptions::max_mistakes`](crate::lang::parse::ParseOptions::max_mistakes)).
    pub is_cut: bool,
}

/// One mistake in a document: what was expected, what was found, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct JsonMistake {
    /// The place in the document as a JSON pointer (RFC 6901): `/nftables/3/add/rule/expr/1/match/right`.
    /// Empty for the document itself, and where the text is not JSON.
    pub path: Box<str>,
    /// What was expected there.
    pub expected: Box<str>,
    /// What was found there, shortened; `None` where something is missing, or the text is not JSON.
    pub found: Option<Box<str>>,
    /// The word that was probably meant.
    pub suggestion: Option<Box<str>>,
    /// The line, from 1, where the text is not JSON.
    pub line: Option<u32>,
    /// The column in that line, from 1.
    pub column: Option<u32>,
}

impl JsonError {
    pub(super) fn syntax(error: &serde_json::Error) -> Self {
        let text = error.to_string();
        let reason = text.split(" at line ").next().unwrap_or(&text);
        Self::of(JsonMistake {
            path: "".into(),
            expected: format!("JSON: {reason}").into(),
            found: None,
            suggestion: None,
            line: u32::try_from(error.line()).ok(),
            column: u32::try_from(error.column()).ok(),
        })
    }

    /// Returns the error for one mistake.
    pub(super) fn of(mistake: JsonMistake) -> Self {
        Self { mistakes: vec![mistake], is_cut: false }
    }

    /// Returns the error for what cannot be read only because of mistakes that were reported before.
    pub(super) fn consequence() -> Self {
        Self { mistakes: Vec::new(), is_cut: false }
    }

    /// Replaces what was found.
    pub(super) fn found(mut self, found: Option<&str>) -> Self {
        self.mistakes.iter_mut().for_each(|mistake| mistake.found = found.map(Into::into));
        self
    }

    /// Adds the word that was probably meant.
    pub(super) fn meant(mut self, word: Option<&str>) -> Self {
        self.mistakes.iter_mut().for_each(|mistake| mistake.suggestion = word.map(Into::into));
        self
    }

    /// Appends the mistakes of another error; returns whether there are now too many.
    pub(super) fn append(&mut self, other: Self, max_mistakes: usize) -> bool {
        self.mistakes.extend(other.mistakes);
        self.is_cut |= other.is_cut || self.mistakes.len() > max_mistakes.max(1);
        self.mistakes.truncate(max_mistakes.max(1));
        self.is_cut
    }
}

impl std::error::Error for JsonError {}

readable! { JsonError }

impl Display for JsonError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (i, mistake) in self.mistakes.iter().enumerate() {
            f.write_str(if i > 0 { "\n" } else { "" })?;
            mistake.fmt(f)?;
        }
        if self.is_cut {
            f.write_str("\ntoo many mistakes; the rest of the document was not read")?;
        }
        Ok(())
    }
}

impl Display for JsonMistake {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if let (Some(line), Some(column)) = (self.line, self.column) {
            return write!(f, "line {line}, column {column}: expected {}", self.expected);
        }
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        write!(f, "expected {}", self.expected)?;
        match &self.found {
            Some(found) => write!(f, ", found {found}")?,
            None => f.write_str(", found nothing")?,
        }
        match &self.suggestion {
            Some(meant) => write!(f, "; did you mean {meant:?}?"),
            None => Ok(()),
        }
    }
}
