//! The error type.

use std::path::PathBuf;
use std::time::Duration;

use sluicegate_iptables_save::Family;
use sluicegate_netlink::Errno;

use crate::rule::CompileError;

/// An error of reading, checking or changing the rules of the kernel.
///
/// ```no_run
/// use sluicegate_xtables::{Client as _, Error, Family, nft};
///
/// let client = nft::Client::open(Family::Ipv4)?;
/// match client.append("filter", "WEB", "-p tcp --dport 80 -j ACCEPT") {
///     Err(Error::Line { reason, .. }) => println!("no such chain: {reason}"),
///     result => result?,
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
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
        /// What is wrong with it.
        fault: Fault,
        /// The chain or target that this is about, where the line does not name it itself, or names several.
        name: String,
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
    /// The kernel refused a line of the input, with the whole input.
    #[error("table {table}{}: {operation}{}: {errno}: {reason}", line_text(*.line), rule_text(.rule))]
    Refused {
        /// The table.
        table: String,
        /// The line of the input, from 1; 0 if the operation is of none.
        line: usize,
        /// What was asked of the kernel, in the words of nft.
        operation: String,
        /// The words of the rule, if it is about one.
        rule: String,
        /// The number of the error.
        errno: Errno,
        /// What the number means here.
        reason: String,
    },
    /// A table that iptables-nft cannot show: a program other than iptables added a rule to it.
    #[error("table {table}: chain {chain} has a rule that iptables has no words for ({expression}): use nft")]
    Incompatible {
        /// The table.
        table: String,
        /// The chain.
        chain: String,
        /// The name of the first expression in the kernel that iptables does not have.
        expression: String,
    },
    /// The kernel could not be asked, or did not answer.
    #[error(transparent)]
    Netlink(#[from] sluicegate_netlink::Error),
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
    #[error("{}: {errno}; XTABLES_LOCKFILE names another file", .path.display())]
    LockFile {
        /// The file of the lock.
        path: PathBuf,
        /// The number of the error.
        errno: Errno,
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

/// Why a line cannot be carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Fault {
    /// There is no chain of that name.
    NoChain,
    /// There is neither a chain nor a target of the name that a rule jumps to.
    NoTarget,
    /// The chain has no such rule.
    NoRule,
    /// The chain has no rule of that number.
    NoNumber,
    /// A chain of that name exists already.
    Exists,
    /// A chain cannot have that name.
    Name,
    /// A built-in chain, which is neither deleted nor renamed.
    BuiltIn,
    /// A policy for a chain that is not a built-in one.
    NotBuiltIn,
    /// A policy that there is none of.
    Policy,
    /// A chain that has rules is not deleted.
    NotEmpty,
    /// A chain that a rule jumps to is not deleted.
    InUse,
    /// A rule that is replaced by several.
    Several,
    /// Something else.
    Other,
}

impl Fault {
    /// Returns whether what the line names does not exist.
    #[must_use]
    pub fn is_not_found(self) -> bool {
        matches!(self, Self::NoChain | Self::NoTarget | Self::NoRule | Self::NoNumber)
    }
}

fn line_text(line: usize) -> String {
    if line == 0 { String::new() } else { format!(", line {line}") }
}

fn rule_text(rule: &str) -> String {
    if rule.is_empty() { String::new() } else { format!(" (`{rule}`)") }
}

/// Reading fails with [`sluicegate_nftables::Error::Netlink`] alone.
impl From<sluicegate_nftables::Error> for Error {
    fn from(error: sluicegate_nftables::Error) -> Self {
        match error {
            sluicegate_nftables::Error::Netlink(error) => Self::Netlink(error),
            other => Self::Refused {
                table: String::new(),
                line: 0,
                operation: "reading the ruleset".to_owned(),
                rule: String::new(),
                errno: Errno::EINVAL,
                reason: other.to_string(),
            },
        }
    }
}

impl Error {
    /// Returns the same error about a chain or target of this name.
    pub(crate) fn about(mut self, chain: &str) -> Self {
        if let Self::Line { name, .. } = &mut self {
            chain.clone_into(name);
        }
        self
    }

    /// Returns whether a table, chain or rule does not exist.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        match self {
            Self::Line { fault, .. } => fault.is_not_found(),
            Self::Kernel { errno, .. } | Self::Refused { errno, .. } => *errno == Errno::ENOENT,
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
            Self::Socket { errno, .. } => *errno == Errno::EAFNOSUPPORT,
            // nfnetlink returns EINVAL for a subsystem that does not exist, and the requests are valid.
            Self::Netlink(error) => error.is_unsupported() || error.errno() == Some(Errno::EINVAL),
            _ => false,
        }
    }

    /// Returns whether a right is missing: a capability in the network namespace, or the right to write to the
    /// file of the lock.
    #[must_use]
    pub fn is_permission_denied(&self) -> bool {
        match self {
            Self::Kernel { errno, .. } | Self::Socket { errno, .. } | Self::LockFile { errno, .. } => {
                matches!(*errno, Errno::EPERM | Errno::EACCES)
            }
            Self::Refused { errno, .. } => *errno == Errno::EPERM,
            Self::Netlink(error) => error.is_permission_denied(),
            _ => false,
        }
    }

    /// Returns whether the content of the input is the reason, and not a lack of rights, memory or features,
    /// or another program.
    #[must_use]
    pub fn is_refusal(&self) -> bool {
        match self {
            Self::Rule { .. } | Self::Line { .. } => true,
            Self::Kernel { errno, .. } | Self::Refused { errno, .. } => {
                let others = [Errno::EPERM, Errno::EAGAIN, Errno::ENOMEM, Errno::EINTR, ENOPROTOOPT];
                !others.contains(errno)
            }
            _ => false,
        }
    }

    /// Returns the line of the input that is at fault, if it is known.
    #[must_use]
    pub fn line(&self) -> Option<usize> {
        match self {
            Self::Rule { line, .. } | Self::Line { line, .. } | Self::Refused { line, .. } => {
                Some(*line).filter(|line| *line > 0)
            }
            _ => None,
        }
    }
}

/// `ENOPROTOOPT`: the kernel has no iptables of this family.
pub(crate) const ENOPROTOOPT: Errno = Errno(92);
