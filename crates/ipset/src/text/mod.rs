//! The text of `ipset save` and `ipset restore`, which is that of its command line.
//!
//! [`parse`] reads a whole file and returns typed [`Command`]s with their lines; [`Display`](fmt::Display) of
//! a command writes it again. To parse an `add`, the type of its set has to be known: from a `create` before
//! it, or from the caller, who may ask the kernel.
//!
//! ```
//! use sluicegate_ipset::{Numeric, text};
//!
//! let file = "create allowed hash:net family inet6\nadd allowed 2001:db8::/32 comment \"documentation\"\n";
//! let error = text::parse(file, &Numeric, |_| None).unwrap();
//! assert_eq!(error[1].command.to_string(), "add allowed 2001:db8::/32 comment \"documentation\"");
//!
//! let error = text::parse("create a hash:ip\nadd a 10.0.0.256\n", &Numeric, |_| None).unwrap_err();
//! assert_eq!(error.to_string(), "line 2, column 7: expected an IPv4 address, found '10.0.0.256'");
//! ```
//!
//! Names and comments are any bytes. [`decode`](crate::netlink::text::decode) represents those of a file that
//! is not UTF-8 as text, and [`encode`](crate::netlink::text::encode) gives back the bytes of what is printed
//! here and by [`Style`](crate::Style).
//!
//! A [`Statement`] is one line or command line, split into command, options and arguments; its element is not
//! parsed yet.

mod command;
mod statement;
mod words;

use std::collections::HashMap;
use std::fmt;

use crate::{Family, Names, Reason, SetName, SetType};

pub use command::{Command, Line};
pub(crate) use statement::GLOBAL_OPTIONS;
pub use statement::{EntryWords, IgnoredOption, Options, Output, Statement, Verb};
pub use words::Word;

/// A word that is not valid, and its position.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct ParseError {
    /// The line of the file, from 1. `None` for a command line.
    pub line: Option<u32>,
    /// The column of the word, from 1; on a command line, the number of the word.
    pub column: u32,
    /// The problem with it.
    #[source]
    pub reason: Reason,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "line {line}, column {}: {}", self.column, self.reason),
            None => self.reason.fmt(f),
        }
    }
}

/// Reads a restore file. It ends with a line `quit`, whatever follows.
///
/// `known` returns the type and family of a set that the file does not create.
///
/// # Errors
/// The first word that is not valid.
pub fn parse(
    text: &str,
    names: &dyn Names,
    mut known: impl FnMut(&SetName) -> Option<(SetType, Family)>,
) -> Result<Vec<Line>, ParseError> {
    let mut sets: HashMap<SetName, Option<(SetType, Family)>> = HashMap::new();
    let mut lines = Vec::new();
    let mut last: Option<(SetName, (SetType, Family))> = None;
    let mut exist = false;
    for (number, line) in (1..).zip(text.lines()) {
        let at_line = |error: ParseError| ParseError { line: Some(number), ..error };
        let words = Word::split(line).map_err(at_line)?;
        let Some(first) = words.first() else { continue };
        if first.text == "COMMIT" && words.len() == 1 {
            continue;
        }
        let column = first.column;
        let wrong = |reason| ParseError { line: Some(number), column, reason };
        let (statement, options) = Statement::parse(words, names).map_err(at_line)?;
        if statement == Statement::Quit {
            break;
        }
        // As in ipset, the option applies from this line to the end.
        exist |= options.exist;
        let command = Command::from_statement(statement, names, |set| match last {
            // Usually the set of the previous line.
            Some((name, kind)) if name == *set => Some(kind),
            _ => {
                let kind = *sets.entry(*set).or_insert_with(|| known(set));
                last = kind.map(|kind| (*set, kind));
                kind
            }
        });
        let command = match command {
            Ok(Some(command)) => command,
            Ok(None) => return Err(wrong(Reason::UnknownCommand(line.trim().to_owned()))),
            Err(error) => return Err(at_line(error)),
        };
        if command.follow(&mut sets) {
            last = None;
        }
        lines.push(Line { number, exist, command });
    }
    Ok(lines)
}
