//! What commands print: text for people, or one JSON object for programs.
//!
//! Nothing here panics: a reader that has gone away, as in `| head`, ends a command without an error, and a full
//! disk is an error.

use std::fmt::Display;
use std::io::{self, Write as _};

use clap::{Args, ValueEnum};
use serde_json::Value;

use crate::Visible;

/// The form of the output, as options of a command line.
///
/// ```
/// use sluicegate_proxier::output::OutputArgs;
///
/// OutputArgs::TEXT.print("one line\n", || serde_json::json!({"lines": 1}))?;
/// # Ok::<(), sluicegate_proxier::output::Error>(())
/// ```
#[derive(Args, Clone, Copy, Debug)]
#[command(next_help_heading = "Output")]
pub struct OutputArgs {
    /// The form of the output: text, or one JSON object.
    #[arg(long, short = 'o', value_name = "FORM", value_enum, default_value_t = Form::Text)]
    output: Form,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Form {
    Text,
    Json,
}

/// Standard output cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("standard output: {0}")]
pub struct Error(#[source] io::Error);

impl OutputArgs {
    /// The form for people.
    pub const TEXT: Self = Self { output: Form::Text };

    /// Returns `true` for the form for programs.
    #[must_use]
    pub fn is_json(self) -> bool {
        self.output == Form::Json
    }

    /// Prints the text, or the object.
    ///
    /// # Errors
    /// When standard output cannot be written.
    pub fn print(self, text: &str, object: impl FnOnce() -> Value) -> Result<(), Error> {
        match self.output {
            Form::Text => print(text),
            Form::Json => self.object(object),
        }
    }

    /// Prints a line of a text that comes bit by bit; in the other form nothing.
    ///
    /// # Errors
    /// When standard output cannot be written.
    pub fn say(self, line: impl Display) -> Result<(), Error> {
        if self.is_json() { Ok(()) } else { print(&format!("{line}\n")) }
    }

    /// Prints the object at the end of what was said bit by bit; in the form for people nothing.
    ///
    /// # Errors
    /// When standard output cannot be written.
    pub fn object(self, object: impl FnOnce() -> Value) -> Result<(), Error> {
        if self.is_json() { print(&Visible::json(&format!("{:#}\n", object()))) } else { Ok(()) }
    }
}

/// Prints to standard output, at once, with nothing in it that acts on a terminal.
///
/// # Errors
/// When standard output cannot be written.
pub fn print(text: &str) -> Result<(), Error> {
    let mut out = io::stdout().lock();
    written(out.write_all(Visible::lines(text).as_bytes()).and_then(|()| out.flush()))
}

/// Returns the result of writing to standard output: that nobody reads it is no error.
///
/// # Errors
/// Any other failure.
pub fn written(result: io::Result<()>) -> Result<(), Error> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result.map_err(Error),
    }
}
