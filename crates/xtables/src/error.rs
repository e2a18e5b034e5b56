//! The error type.

use std::path::PathBuf;
use std::time::Duration;

use sluicegate_iptables_save::Family;
use sluicegate_netlink::Errno;

use crate::rule::CompileError;

/// An error of reading, checking or changing the rules of the kernel.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A rule of the input that cannot be encoded.
    #[error("table {table}, chain {chain}{}: `{rule}`: {source}", line_text(*.line))]
    Rule {
        /// The table.
        table: String,
        /// The chain.
        chain: String,
        /// The line of the input, from 1; 0 if the rule was not read from text.
        line: usize,
        /// The words of the rule.
        rule: String,
        /// The reason.
        source: Box<CompileError>,
    },
    /// A line of the input that cannot be carried out: no such chain, no such rule, a chain in use.
    #[error("table {table}{}: {reason}", line_text(*.line))]
    Line {
        /// The table.
        table: String,
        /// The line of the input, from 1; 0 if it was not read from text.
        line: usize,
        /// The reason.
        reason: String,
        /// Whether what the line names does not exist.
        missing: bool,
    },
    /// The kernel refused a request.
    #[error("{operation} of table {table} ({family:?}): {errno}: {reason}")]
    Kernel {
        /// The operation.
        operation: &'static str,
        /// The table.
        table: String,
        /// The family.
        family: Family,
        /// The number of the error.
        errno: Errno,
        /// What the number means here.
        reason: String,
    },
    /// The socket could not be opened.
    #[error("raw socket ({family:?}): {errno}: CAP_NET_RAW and CAP_NET_ADMIN are needed")]
    Socket {
        /// The family.
        family: Family,
        /// The number of the error.
        errno: Errno,
    },
    /// Another program has the lock of iptables.
    #[error("{}: held by another program for {} s", .path.display(), .waited.as_secs_f64())]
    Locked {
        /// The file of the lock.
        path: PathBuf,
        /// How long it was waited for.
        waited: Duration,
    },
    /// The file of the lock could not be opened or locked.
    #[error("{}: {reason}", .path.display())]
    LockFile {
        /// The file of the lock.
        path: PathBuf,
        /// The reason of the operating system.
        reason: String,
    },
    /// What the kernel returned is not a table.
    #[error("table {table}: {reason}, at byte {offset} of its entries")]
    Malformed {
        /// The table.
        table: String,
        /// The offset in the entries.
        offset: usize,
        /// The reason.
        reason: &'static str,
    },
    /// A chain or rule of the kernel cannot be represented as text.
    #[error("table {table}: {source}")]
    Text {
        /// The table.
        table: String,
        /// The reason.
        source: sluicegate_iptables_save::Error,
    },
}

fn line_text(line: usize) -> String {
    if line == 0 { String::new() } else { format!(", line {line}") }
}

impl Error {
    /// Returns whether a table, chain or rule does not exist.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        match self {
            Self::Line { missing, .. } => *missing,
            Self::Kernel { errno, .. } => *errno == Errno::ENOENT,
            _ => false,
        }
    }

    /// Returns whether another program had the lock of iptables for too long.
    #[must_use]
    pub fn is_locked(&self) -> bool {
        matches!(self, Self::Locked { .. })
    }

    /// Returns whether the kernel or this library lacks an extension, or the kernel has no iptables.
    #[must_use]
    pub fn is_unsupported(&self) -> bool {
        match self {
            Self::Rule { source, .. } => matches!(**source, CompileError::Unsupported(_)),
            Self::Kernel { errno, .. } => *errno == ENOPROTOOPT,
            _ => false,
        }
    }

    /// Returns the line of the input that is at fault, if it is known.
    #[must_use]
    pub fn line(&self) -> Option<usize> {
        match self {
            Self::Rule { line, .. } | Self::Line { line, .. } => Some(*line).filter(|line| *line > 0),
            _ => None,
        }
    }
}

/// `ENOPROTOOPT`: the kernel has no iptables of this family.
pub(crate) const ENOPROTOOPT: Errno = Errno(92);
