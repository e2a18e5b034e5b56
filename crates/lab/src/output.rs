//! What the commands print: text for people, as it happens, or one JSON object at the end. `schemas/v1` says
//! what the objects have.

use clap::{Args, ValueEnum};
use serde_json::Value;

/// The form of the output.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct OutputArgs {
    /// The form of the output: text, or one JSON object at the end.
    #[arg(long, short = 'o', value_name = "FORM", value_enum, default_value_t = Form::Text)]
    output: Form,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Form {
    Text,
    Json,
}

impl OutputArgs {
    /// Prints a line of the text.
    pub(crate) fn say(self, line: impl std::fmt::Display) {
        if self.output == Form::Text {
            println!("{line}");
        }
    }

    /// Prints the object.
    pub(crate) fn object(self, object: impl FnOnce() -> Value) {
        if self.output == Form::Json {
            println!("{:#}", object());
        }
    }
}
