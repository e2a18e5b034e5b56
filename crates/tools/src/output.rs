//! Printing, so that neither a reader who goes away nor a full disk makes a tool panic.

use std::fmt::Display;
use std::io::{self, ErrorKind, Write as _};

/// Prints to standard output, at once. A reader that has gone away, as in `| head`, is no error.
///
/// # Errors
/// When it cannot be written otherwise: the disk is full.
pub(crate) fn print(text: impl AsRef<[u8]>) -> io::Result<()> {
    stream(text).map(drop)
}

/// Prints to standard output, at once. Returns false when the reader has gone away: whoever would print for ever
/// ends then.
///
/// # Errors
/// As [`print()`].
pub(crate) fn stream(text: impl AsRef<[u8]>) -> io::Result<bool> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_ref()).and_then(|()| out.flush()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(io::Error::new(error.kind(), format!("standard output: {error}"))),
    }
}

/// Prints a line, which need not be UTF-8, to standard error.
pub(crate) fn tell_bytes(line: &[u8]) {
    let _ = io::stderr().write_all(&[line, b"\n"].concat());
}

/// Prints a line to standard error. Where that is not possible, nothing can be reported.
pub(crate) fn tell(line: impl Display) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// Prints a text to standard error as it is.
pub(crate) fn tell_text(text: &str) {
    let _ = io::stderr().write_all(text.as_bytes());
}
