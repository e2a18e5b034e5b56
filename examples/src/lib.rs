//! The examples of the repository: programs in `examples/`, and the guides, whose code is compiled here and
//! run where it needs no kernel.
//!
//! What several of the programs do is here as well: printing, so that neither a reader who goes away nor a
//! full disk makes one panic.

use std::fmt::Display;
use std::io::{self, ErrorKind, Write as _};

#[doc = include_str!("../../guide/commands.md")]
pub mod from_exec {}

#[doc = include_str!("../../guide/libraries.md")]
pub mod from_libraries {}

#[doc = include_str!("../../guide/errors.md")]
pub mod errors {}

#[doc = include_str!("../../guide/cni-plugin.md")]
pub mod cni_plugin {}

#[doc = include_str!("../../guide/maps-layout.md")]
pub mod maps_layout {}

/// Prints to standard output, at once. A reader that has gone away, as in `| head`, is no error.
///
/// # Errors
/// When it cannot be written otherwise: the disk is full.
pub fn print(text: impl AsRef<[u8]>) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_ref()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written.map_err(|error| io::Error::new(error.kind(), format!("standard output: {error}"))),
    }
}

/// Prints a line to standard error. Where that is not possible, nothing can be reported.
pub fn tell(line: impl Display) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// Returns whether the command line asks for help. Programs that have no other options use this.
#[must_use]
pub fn asks_for_help() -> bool {
    std::env::args_os().skip(1).any(|argument| argument == "--help" || argument == "-h")
}
