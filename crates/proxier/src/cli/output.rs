//! What commands print: text for people, or one JSON object for programs. Its shapes are in the crate's
//! README.
//!
//! Nothing here panics: a reader that has gone away, as in `| head`, ends a command without an error; a full
//! disk is an error; and where standard error cannot be written, nothing can be reported.

use std::fmt::Display;
use std::io::{self, Write as _};

use clap::{Args, ValueEnum};
use serde_json::Value;
use sluicegate_proxier::Visible;

use super::Error;

/// The form of the output.
#[derive(Args, Clone, Copy, Debug)]
#[command(next_help_heading = "Output")]
pub(crate) struct OutputArgs {
    /// The form of the output: text, or one JSON object.
    #[arg(long, short = 'o', value_name = "FORM", value_enum, default_value_t = Form::Text)]
    output: Form,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Form {
    Text,
    Json,
}

impl OutputArgs {
    /// The form for people.
    pub(crate) const TEXT: Self = Self { output: Form::Text };

    /// Returns `true` for the form for programs.
    pub(crate) fn is_json(self) -> bool {
        self.output == Form::Json
    }

    /// Prints the text, or the object.
    pub(crate) fn print(self, text: &str, object: impl FnOnce() -> Value) -> Result<(), Error> {
        match self.output {
            Form::Text => print(text),
            Form::Json => print(&Visible::json(&format!("{:#}\n", object()))),
        }
    }
}

/// Prints to standard output, at once, with nothing in it that acts on a terminal.
pub(crate) fn print(text: &str) -> Result<(), Error> {
    let mut out = io::stdout().lock();
    written(out.write_all(Visible::lines(text).as_bytes()).and_then(|()| out.flush()))
}

/// Returns the result of writing to standard output: that nobody reads it is no error.
pub(crate) fn written(result: io::Result<()>) -> Result<(), Error> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result.map_err(Error::Write),
    }
}

/// Prints a line to standard error, or the lines of several errors.
pub(crate) fn tell(line: impl Display) {
    let _ = writeln!(io::stderr(), "{}", Visible::lines(&line.to_string()));
}

/// Returns a number with its noun: `1 service`, `2 services`.
pub(crate) fn counted(number: usize, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}
