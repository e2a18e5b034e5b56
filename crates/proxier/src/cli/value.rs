//! Values of flags, and what is wrong with one.

use std::fmt;

/// Why the value of a flag cannot be used.
#[derive(Debug)]
pub(crate) enum ValueError {
    /// It is not what is expected.
    Unexpected {
        /// The part of the value that is wrong, where that is not all of it, or what is wrong with it.
        part: Option<String>,
        /// What is expected.
        expected: String,
        /// The value, or the part of it.
        found: String,
    },
    /// A duration that is shorter than the shortest.
    TooShort { shortest: String, found: String },
    /// The loop-back device, where packets that are forwarded come through.
    Loopback,
    /// The type of the value says why.
    Invalid(Box<dyn std::error::Error + Send + Sync>),
}

impl ValueError {
    /// Returns the error of a value that is not what is expected.
    pub(crate) fn expected(expected: impl Into<String>, found: &str) -> Self {
        Self::Unexpected { part: None, expected: expected.into(), found: found.to_owned() }
    }

    /// Returns the error of a value of which a part is wrong.
    pub(crate) fn part(part: impl Into<String>, expected: &str, found: &str) -> Self {
        Self::Unexpected { part: Some(part.into()), expected: expected.to_owned(), found: found.to_owned() }
    }

    /// Returns the error of a type that the value is not one of.
    pub(crate) fn invalid(error: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self::Invalid(Box::new(error))
    }
}

impl fmt::Display for ValueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unexpected { part, expected, found } => {
                part.iter().try_for_each(|part| write!(f, "{part}: "))?;
                write!(f, "expected {expected}, found {found:?}")
            }
            Self::TooShort { shortest, found } => write!(f, "expected at least {shortest}, found {found}"),
            Self::Loopback => {
                f.write_str("expected another device: what passes the loop-back is not forwarded")
            }
            Self::Invalid(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ValueError {}
