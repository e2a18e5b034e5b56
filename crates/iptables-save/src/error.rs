//! The error type: where in the input, which word, and what was expected; for runs of the tools, their
//! message.

use std::borrow::Cow;

use crate::Condition;
use crate::encoding::byte_len;

/// An error of reading text, building a rule, or running a tool.
///
/// Lines and columns count from 1, columns in characters. A rule that was read on its own is line 1.
///
/// ```
/// use sluicegate_iptables_save::Save;
///
/// let error = Save::parse("*filter\n-Q INPUT\nCOMMIT\n").unwrap_err();
/// assert!(error.to_string().starts_with("line 2, column 1: `-Q`: expected "), "{error}");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A line is not a table, chain, rule, command, comment or `COMMIT`.
    #[error("line {line}, column {column}: {}expected {expected}", Shown(.word))]
    Syntax {
        /// Line, from 1.
        line: usize,
        /// Column in characters, from 1.
        column: usize,
        /// The word found there; empty at the end of a line.
        word: String,
        /// The input that was expected.
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
        /// The problem with it, or the input that was expected.
        reason: String,
        /// The kind of problem, for those who say it in other words.
        fault: Box<RuleFault>,
    },
    /// The words can be a rule, but the kernel refuses it in this place: another table, chain or protocol.
    #[error("line {line}, column {column}: {}{reason}", Shown(.word))]
    Place {
        /// Line, from 1.
        line: usize,
        /// Column in characters, from 1.
        column: usize,
        /// The word at fault; empty when the fault is of the whole rule.
        word: String,
        /// What the kernel demands.
        reason: String,
        /// The kind of demand, for those who say it in other words.
        fault: Box<RuleFault>,
    },
    /// A size that the caller's [`Limits`](crate::Limits) do not allow.
    #[error("line {line}: {what} is {found}, over the limit of {limit}")]
    Limit {
        /// Line, from 1.
        line: usize,
        /// The thing that is too large, with its unit.
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
        /// The reason.
        reason: &'static str,
    },
    /// A chain cannot be changed as wanted.
    #[error("table {table}, chain {chain}: {reason}")]
    Diff {
        /// The table.
        table: String,
        /// The chain.
        chain: String,
        /// The reason.
        reason: String,
    },
    /// A tool could not be started, fed or read.
    #[error("{command}: {reason}")]
    Run {
        /// The command line.
        command: String,
        /// The operating system's reason.
        reason: String,
        /// Whether the program does not exist.
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

/// Kinds of faults in the words of a rule. Extensions and options are named as iptables-extensions(8) does,
/// options without dashes.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum RuleFault {
    /// Any other: the sentence tells.
    Other,
    /// An option that may stand once stands twice.
    Repeated {
        /// The match or target.
        extension: &'static str,
        /// The option.
        option: &'static str,
    },
    /// A `!` before an option that cannot be negated.
    Negated {
        /// The match or target.
        extension: &'static str,
        /// The option.
        option: &'static str,
    },
    /// An option without which the extension cannot be used.
    Required {
        /// The match or target.
        extension: &'static str,
        /// The option.
        option: &'static str,
    },
    /// Two options of which a rule can have one.
    Exclusive {
        /// The match or target.
        extension: &'static str,
        /// The option that stands first.
        option: &'static str,
        /// The other.
        other: &'static str,
    },
    /// An option without the one that it belongs to.
    Alone {
        /// The match or target.
        extension: &'static str,
        /// The option.
        option: &'static str,
        /// The one that is missing.
        needs: &'static str,
    },
    /// A number out of the range of an option, or no number; see [`OptionRow::range`](crate::OptionRow::range).
    OutOfRange {
        /// The match or target.
        extension: &'static str,
        /// The option.
        option: &'static str,
    },
    /// Another value that an option does not take.
    Value {
        /// The match or target.
        extension: &'static str,
        /// The option.
        option: &'static str,
    },
    /// A word that is not a port.
    Port {
        /// The match or target.
        extension: &'static str,
    },
    /// A range of ports that ends below its start.
    PortRange,
    /// A word that is not a protocol.
    Protocol,
    /// `! -p all`, which no packet can match.
    NoProtocol,
    /// An extension of a protocol in a rule of another, or of all.
    NeedsProtocol {
        /// The match or target.
        extension: &'static str,
    },
    /// A word that is not a type of rejection of the family.
    RejectType,
    /// A word that is not the mask of an address.
    Mask,
    /// A word that is not an address.
    Address,
    /// `!` before several addresses.
    NegatedAddresses,
    /// The empty name of an interface.
    NoInterface,
    /// The name of an interface that is too long.
    LongInterface,
    /// The empty name of a target.
    NoTarget,
    /// The name of a target that is too long.
    LongTarget,
    /// The name of a target that none can have.
    TargetName,
    /// `-g` with what is not a chain.
    NotAChain,
    /// A second target.
    SecondTarget,
    /// A chain that jumps to itself.
    OwnChain,
    /// A jump to a built-in chain.
    BuiltInChain,
    /// A match or target whose options, taken together, it does not take, or not in such a rule.
    Condition {
        /// The match or target.
        extension: &'static str,
        /// What is not met.
        condition: Condition,
    },
}

/// The message of iptables-restore when it refused its input, and the line or rule that it refers to.
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
    /// A match, target or protocol that the tool or the kernel does not have.
    Unsupported,
    /// The kernel refuses the rule (wrong table, hook, protocol or value). Of the legacy back end it is every
    /// refusal of a commit, since `iptables-restore` says nothing of the reason.
    Invalid,
    /// Too many levels of jumps, or a loop.
    Loop,
    /// Another process holds the xtables lock.
    Locked,
    /// Not permitted (root, or `CAP_NET_ADMIN` in the namespace).
    Permission,
    /// Out of memory, buffers or file descriptors, or interrupted: trying again later may succeed.
    Exhausted,
    /// Anything else, which says nothing about the input.
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
    /// Returns true when the text, or a word of a rule, is not right.
    #[must_use]
    pub fn is_syntax(&self) -> bool {
        matches!(self, Self::Syntax { .. } | Self::Rule { .. } | Self::Place { .. })
            || self.cause() == Some(Cause::Syntax)
    }

    /// Returns true when a size limit of the caller was met.
    #[must_use]
    pub fn is_limit(&self) -> bool {
        matches!(self, Self::Limit { .. } | Self::Output { .. })
    }

    /// Returns true when a tool ran out of time.
    #[must_use]
    pub fn is_timeout(&self) -> bool {
        matches!(self, Self::TimedOut { .. })
    }

    /// Returns true when the program, or an object that the input names, does not exist.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Run { missing: true, .. }) || self.cause() == Some(Cause::Missing)
    }

    /// Returns true when another process holds the xtables lock; trying again later may succeed.
    #[must_use]
    pub fn is_locked(&self) -> bool {
        self.cause() == Some(Cause::Locked)
    }

    /// Returns the kind of failure of iptables-restore, if it was that.
    #[must_use]
    pub fn cause(&self) -> Option<Cause> {
        match self {
            Self::Refused(refusal) => Some(refusal.cause),
            _ => None,
        }
    }

    /// Returns the kind of fault in the words of a rule, if it is one.
    #[must_use]
    pub fn rule_fault(&self) -> Option<&RuleFault> {
        match self {
            Self::Rule { fault, .. } | Self::Place { fault, .. } => Some(fault),
            _ => None,
        }
    }

    /// Returns the same error with the kind of fault.
    pub(crate) fn with_fault(mut self, kind: RuleFault) -> Self {
        if let Self::Rule { fault, .. } | Self::Place { fault, .. } = &mut self {
            **fault = kind;
        }
        self
    }

    /// Returns the line of the input, from 1, where the error has one.
    #[must_use]
    pub fn line(&self) -> Option<usize> {
        match self {
            Self::Syntax { line, .. }
            | Self::Rule { line, .. }
            | Self::Place { line, .. }
            | Self::Limit { line, .. } => Some(*line),
            Self::Refused(refusal) => refusal.line,
            _ => None,
        }
    }

    /// Returns the column in characters, from 1, where the error has one.
    #[must_use]
    pub fn column(&self) -> Option<usize> {
        match self {
            Self::Syntax { column, .. } | Self::Rule { column, .. } | Self::Place { column, .. } => {
                Some(*column)
            }
            _ => None,
        }
    }

    /// Returns the same error, found in line `line` of something larger.
    #[must_use]
    pub(crate) fn on_line(mut self, at: usize) -> Self {
        if let Self::Syntax { line, .. }
        | Self::Rule { line, .. }
        | Self::Place { line, .. }
        | Self::Limit { line, .. } = &mut self
        {
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
            chars.by_ref().take(SHOWN).map(|c| if cannot_be_shown(c) { '\u{fffd}' } else { c }).collect();
        match (head.is_empty(), chars.next().is_some()) {
            (true, _) => Ok(()),
            (false, false) => write!(f, "`{head}`: "),
            (false, true) => write!(f, "`{head}...`: "),
        }
    }
}

/// Returns whether a terminal would act on a character, or has none for it as it stands for a byte.
fn cannot_be_shown(c: char) -> bool {
    c.is_control() || byte_len(c.encode_utf8(&mut [0; 4])) != c.len_utf8()
}

const SHOWN: usize = 80;
