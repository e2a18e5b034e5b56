//! Why a command fails. Each displays as the text that nft prints for it, where it prints one.

use std::fmt;

use super::arguments::Misuse;
use super::report;

/// Why a command fails.
#[derive(Debug)]
pub(crate) enum CommandError {
    /// The command line is wrong.
    Misuse(Misuse),
    /// Commands of a script are wrong, or the kernel refuses them: lines of the script, each with its message.
    Script(String),
    /// A file cannot be opened.
    Open { file: String, reason: String },
    /// No file has the name that `include` asks for.
    NoFile,
    /// A document is to be JSON, and has bytes that JSON has not.
    NotText { name: String },
    /// What is to be listed as JSON has bytes that JSON has not.
    NotJson { text: String },
    /// An expression of a rule has no words in the output for debugging.
    NoWords { expression: String },
    /// A command that nft has and this program has not.
    Unsupported { command: String },
    /// Standard input cannot be read.
    Input(std::io::Error),
    /// A library, a socket or a file says why.
    Cause(Box<dyn std::error::Error>),
}

impl CommandError {
    /// Returns the failure that an error is the cause of.
    pub(crate) fn cause(error: impl Into<Box<dyn std::error::Error>>) -> Self {
        Self::Cause(error.into())
    }
}

impl fmt::Display for CommandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Misuse(misuse) => misuse.fmt(f),
            Self::Script(text) => f.write_str(text),
            Self::Open { file, reason } => {
                f.write_str(&report::internal(&format!("Could not open file \"{file}\": {reason}\n\n")))
            }
            Self::NoFile => f.write_str("no such file"),
            Self::NotText { name } => write!(f, "Error: {name}: JSON is UTF-8, and this is not"),
            Self::NotJson { text } => {
                write!(f, "Error: JSON is UTF-8, and \"{text}\" is not: list it without -j")
            }
            Self::NoWords { expression } => {
                write!(f, "Error: --debug=netlink: there are no words for the expression `{expression}`")
            }
            Self::Unsupported { command } => write!(f, "Error: `{command}` is not supported here"),
            Self::Input(error) => write!(f, "Error: standard input: {error}"),
            Self::Cause(error) => write!(f, "Error: {error}"),
        }
    }
}

impl std::error::Error for CommandError {}

impl From<Misuse> for CommandError {
    fn from(misuse: Misuse) -> Self {
        Self::Misuse(misuse)
    }
}
