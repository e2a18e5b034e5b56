//! `man`: the page of the program for man(1). Those of the tools are the tools' own.

use std::ffi::OsString;
use std::process::ExitCode;

use crate::output::tell;
use crate::{NAMES, PROGRAM, printed};

/// Prints the page.
pub(crate) fn main(arguments: &[OsString]) -> ExitCode {
    if let Some(word) = arguments.first() {
        tell(format_args!("man: expected no argument, found `{}`\nusage: {PROGRAM} man", word.display()));
        return ExitCode::from(2);
    }
    let names = NAMES.map(|name| name.replace('-', "\\-")).join(", ");
    printed(&include_str!("man.roff").replace("NAMES", &names).replace("VERSION", env!("CARGO_PKG_VERSION")))
}
