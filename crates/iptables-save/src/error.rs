//! The one error type: where in the input, which word, what was expected; for runs of the tools, what they said.

use std::borrow::Cow;

/// Why text could not be read, a rule could not be made, or a tool run failed.
///
/// Lines and columns count from 1, columns in characters. A rule that was read on its own is line 1.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A line has not the form of a table, chain, rule, command, comment or `COMMIT`.
    #[error("line {line}, column {column}: {}expected {expected}", Shown(.word))]
    Syntax {
        /// Line, from 1.
        line: usize,
        /// Column in characters, from 1.
        column: usize,
        /// The word found there; empty at the end of a line.
        word: String,
        /// What would have been right.
        expected: Cow<'static, str>,
    },
    /// The words of a rule cannot be a rule.
    #[error("line {line}, column {column}: {}{reason}", Shown(.word))]
    Rule {
        /// Line, from 1.
        line: usize,
        /// Column in characters, from 1.
        column: usize,
        /// The word at fault; empty when the fault is of the whole rule.
        word: String,
        /// What is wrong with it, or what was expected.
        reason: String,
    },
    /// The input is not UTF-8.
    #[error("line {line}, column {column}: byte {byte:#04x} is not UTF-8")]
    NotUtf8 {
        /// Line, from 1.
        line: usize,
        /// Column in characters, from 1.
        column: usize,
        /// The first byte that is no UTF-8.
        byte: u8,
    },
    /// A size that the caller's [`Limits`](crate::Limits) do not allow.
    #[error("line {line}: {what} is {found}, over the limit of {limit}")]
    Limit {
        /// Line, from 1.
        line: usize,
        /// What is too large, with its unit.
        what: &'static str,
        /// Its size, or the size at which reading stopped.
        found: usize,
        /// The limit.
        limit: usize,
    },
    /// A word that no quoting can bring through iptables-restore.
    #[error("{word:?} cannot be written as a word: {reason}")]
    Unquotable {
        /// The word.
        word: String,
        /// Why.
        reason: &'static str,
    },
    /// A typed helper was asked to read a match or target whose options do not fit it.
    #[error("{module}: {reason}")]
    Value {
        /// The match or target.
        module: String,
        /// What is wrong.
        reason: String,
    },
    /// Chains cannot be changed as asked.
    #[error("table {table}, chain {chain}: {reason}")]
    Diff {
        /// The table.
        table: String,
        /// The chain.
        chain: String,
        /// Why.
        reason: String,
    },
    /// A tool could not be started, fed or read.
    #[error("{command}: {reason}")]
    Run {
        /// The command line.
        command: String,
        /// The operating system's reason.
        reason: String,
        /// True when there is no such program.
        missing: bool,
    },
    /// A tool ran longer than it was given, and was ended.
    #[error("{command}: still running after {} s, ended", .time.as_secs_f64())]
    TimedOut {
        /// The command line.
        command: String,
        /// The time it was given.
        time: std::time::Duration,
    },
    /// A tool wrote more than it was allowed to, and was ended.
    #[error("{command}: wrote more than {limit} bytes, ended")]
    Output {
        /// The command line.
        command: String,
        /// The limit in bytes.
        limit: usize,
    },
    /// iptables-restore refused its input.
    #[error("{0}")]
    Refused(Box<Refusal>),
}

/// What iptables-restore said when it refused its input, and what it was about.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Refusal {
    /// The command line.
    pub command: String,
    /// Line of the input, from 1, where the tool names one.
    pub line: Option<usize>,
    /// The text of that line.
    pub text: Option<String>,
    /// The kind of failure.
    pub cause: Cause,
    /// The tool's own words, without its name.
    pub message: String,
    /// The exit status; `None` after a signal.
    pub status: Option<i32>,
}

/// Kinds of failure of iptables-restore, the same for both back ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Cause {
    /// A line that the tool cannot read.
    Syntax,
    /// A chain, table, set or other object that does not exist.
    Missing,
    /// A chain that exists already.
    Exists,
    /// A chain that is still referred to or not empty.
    Busy,
    /// A match or target that the tool or the kernel does not have.
    Unsupported,
    /// The kernel refuses the rule (wrong table, hook, protocol or value).
    Invalid,
    /// Too many levels of jumps, or a loop.
    Loop,
    /// Another process holds the xtables lock.
    Locked,
    /// Not permitted (root, or `CAP_NET_ADMIN` in the namespace).
    Permission,
    /// Anything else.
    Other,
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: ", self.command)?;
        if let Some(line) = self.line {
            write!(f, "line {line}")?;
            match &self.text {
                Some(text) => write!(f, " ({text}): ")?,
                None => write!(f, ": ")?,
            }
        }
        write!(f, "{}", self.message)
    }
}

impl Error {
    /// The text, or a word of a rule, is not right.
    #[must_use]
    pub fn is_syntax(&self) -> bool {
        matches!(self, Self::Syntax { .. } | Self::Rule { .. } | Self::NotUtf8 { .. })
            || self.cause() == Some(Cause::Syntax)
    }

    /// A size limit of the caller was met.
    #[must_use]
    pub fn is_limit(&self) -> bool {
        matches!(self, Self::Limit { .. } | Self::Output { .. })
    }

    /// A tool ran out of time.
    #[must_use]
    pub fn is_timeout(&self) -> bool {
        matches!(self, Self::TimedOut { .. })
    }

    /// The program, or an object that the input names, does not exist.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Run { missing: true, .. }) || self.cause() == Some(Cause::Missing)
    }

    /// Another process holds the xtables lock; trying again later may succeed.
    #[must_use]
    pub fn is_locked(&self) -> bool {
        self.cause() == Some(Cause::Locked)
    }

    /// The kind of failure of iptables-restore, if it was that.
    #[must_use]
    pub fn cause(&self) -> Option<Cause> {
        match self {
            Self::Refused(refusal) => Some(refusal.cause),
            _ => None,
        }
    }

    /// The line of the input, from 1, where the error has one.
    #[must_use]
    pub fn line(&self) -> Option<usize> {
        match self {
            Self::Syntax { line, .. }
            | Self::Rule { line, .. }
            | Self::NotUtf8 { line, .. }
            | Self::Limit { line, .. } => Some(*line),
            Self::Refused(refusal) => refusal.line,
            _ => None,
        }
    }

    /// The column in characters, from 1, where the error has one.
    #[must_use]
    pub fn column(&self) -> Option<usize> {
        match self {
            Self::Syntax { column, .. } | Self::Rule { column, .. } | Self::NotUtf8 { column, .. } => {
                Some(*column)
            }
            _ => None,
        }
    }

    /// The same error, found in line `line` of something larger.
    #[must_use]
    pub(crate) fn on_line(mut self, at: usize) -> Self {
        if let Self::Syntax { line, .. } | Self::Rule { line, .. } | Self::Limit { line, .. } = &mut self {
            *line = at;
        }
        self
    }
}

/// "`word`: ", or nothing for no word; a long word is cut.
struct Shown<'a>(&'a String);

impl std::fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut chars = self.0.chars();
        let head: String =
            chars.by_ref().take(SHOWN).map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
        match (head.is_empty(), chars.next().is_some()) {
            (true, _) => Ok(()),
            (false, false) => write!(f, "`{head}`: "),
            (false, true) => write!(f, "`{head}...`: "),
        }
    }
}

const SHOWN: usize = 80;
