//! What commands print, with [`sluicegate_proxier::output`], and what they say beside it. The shapes of the objects are
//! in the crate's README.
//!
//! Where standard error cannot be written, nothing can be reported.

use std::fmt::Display;
use std::io::{self, Write as _};

use sluicegate_proxier::Visible;
pub(crate) use sluicegate_proxier::output::{OutputArgs, print, written};

/// Prints a line to standard error, or the lines of several errors.
pub(crate) fn tell(line: impl Display) {
    let _ = writeln!(io::stderr(), "{}", Visible::lines(&line.to_string()));
}

/// Returns a number with its noun: `1 service`, `2 services`.
pub(crate) fn counted(number: usize, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}
