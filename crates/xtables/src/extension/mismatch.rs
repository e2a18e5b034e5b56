//! Why a match or target has no binary form.

use std::borrow::Cow;
use std::fmt;

use sluicegate_netlink::Errno;

/// The reason why a codec cannot write a match or target: what was expected of an option, and what was found.
///
/// Prints as part of a sentence: ``expected an IPv4 address for --gateway, found `fe80::1` ``.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Mismatch {
    /// A word does not fit the field of the kernel's structure that it goes to, or is missing.
    Word {
        /// What was expected.
        expected: Cow<'static, str>,
        /// The option, without its dashes.
        option: Option<Cow<'static, str>>,
        /// What was found; `None` if nothing was.
        found: Option<String>,
    },
    /// The number of a set is needed, and was not found.
    Set(SetMismatch),
    /// The back end has no such verdict.
    Verdict {
        /// The name of the target.
        name: String,
    },
    /// The encoder wrote another length than the structure has.
    Length {
        /// The extension.
        name: &'static str,
        /// The size of its structure in bytes.
        expected: usize,
        /// The bytes that were written.
        found: usize,
    },
}

/// The reason why the number of a set was not found.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SetMismatch {
    /// Nobody was asked for sets.
    #[error("the number of the set `{name}` is not known here")]
    Unknown {
        /// The set.
        name: String,
    },
    /// The kernel has no ipset.
    #[error("the kernel has no ipset")]
    NoIpset,
    /// There is no set of this name.
    #[error("there is no set `{name}`")]
    Missing {
        /// The set.
        name: String,
    },
    /// The set is for the other family.
    #[error("the set `{name}` does not have {family} addresses")]
    Family {
        /// The set.
        name: String,
        /// The family of the rule, as in `IPv4`.
        family: &'static str,
    },
    /// The kernel did not answer.
    #[error("asking for the set `{name}`: {errno}")]
    Refused {
        /// The set.
        name: String,
        /// Its error.
        errno: Errno,
    },
}

impl Mismatch {
    /// Creates the mismatch of a word that is missing, or that [`found`](Self::found) adds.
    pub(crate) fn expected(what: impl Into<Cow<'static, str>>) -> Self {
        Self::Word { expected: what.into(), option: None, found: None }
    }

    /// Adds the option.
    pub(crate) fn option(mut self, name: &str) -> Self {
        if let Self::Word { option, .. } = &mut self {
            *option = Some(name.to_owned().into());
        }
        self
    }

    /// Adds what was found.
    pub(crate) fn found(mut self, what: impl fmt::Display) -> Self {
        if let Self::Word { found, .. } = &mut self {
            *found = Some(what.to_string());
        }
        self
    }
}

impl std::error::Error for Mismatch {}

impl From<SetMismatch> for Mismatch {
    fn from(set: SetMismatch) -> Self {
        Self::Set(set)
    }
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Word { expected, option, found } => {
                write!(f, "expected {expected}")?;
                if let Some(option) = option {
                    write!(f, " for --{option}")?;
                }
                found.as_ref().map_or(Ok(()), |found| write!(f, ", found `{found}`"))
            }
            Self::Set(set) => set.fmt(f),
            Self::Verdict { name } => {
                write!(f, "the nft back end has no target {name}: NFQUEUE does the same")
            }
            Self::Length { name, expected, found } => {
                write!(f, "expected {expected} bytes of {name}, found {found}, which its encoder wrote")
            }
        }
    }
}
