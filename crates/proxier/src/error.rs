//! The one error type of the crate.

use std::path::PathBuf;

use crate::source::ManifestError;

/// Why something was not done.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file or directory cannot be read.
    #[error("{}: {source}", path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The output cannot be written.
    #[error("standard output: {source}")]
    Write {
        /// What the system said.
        source: std::io::Error,
    },
    /// Documents that do not parse, all of them.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Manifests(Vec<ManifestError>),
    /// A flag is missing, or its value cannot be used.
    #[error("{flag}: {reason}")]
    Flag {
        /// Which.
        flag: String,
        /// Why.
        reason: String,
    },
}

impl Error {
    /// True when a document of a manifest file does not parse.
    #[must_use]
    pub const fn is_manifest(&self) -> bool {
        matches!(self, Self::Manifests(_))
    }

    /// True when a flag is missing or has a bad value.
    #[must_use]
    pub const fn is_flag(&self) -> bool {
        matches!(self, Self::Flag { .. })
    }
}
