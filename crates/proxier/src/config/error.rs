//! Why a configuration file cannot be used.

use std::io;
use std::path::PathBuf;

use super::Note;

/// Why a configuration file cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file cannot be read.
    #[error("{}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file does not parse, or fields have values that they cannot have.
    #[error("{}", problems.iter().map(|note| format!("{}: \
        {note}", path.display())).collect::<Vec<_>>().join("\n"))]
    Invalid {
        /// The file.
        path: PathBuf,
        /// Every problem, in the order of lines.
        problems: Vec<Note>,
    },
}
