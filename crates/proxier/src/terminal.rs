//! The size of the terminal that standard output is, which tables are made for.

use std::io;

/// Returns the size of the terminal, in columns and rows; `None` where standard output is none.
#[must_use]
pub fn size() -> Option<(u16, u16)> {
    let (columns, rows) = terminal_size::terminal_size_of(io::stdout())?;
    Some((columns.0, rows.0))
}

/// Returns the columns that a table may have: those of the terminal, or the variable `COLUMNS`. `None` where
/// neither says so: each row then stays on a line of its own, for grep(1).
///
/// ```
/// let most = sluicegate_proxier::terminal::width().unwrap_or(u16::MAX);
/// assert!(most > 0);
/// ```
#[must_use]
pub fn width() -> Option<u16> {
    let of_terminal = size().map(|(columns, _)| columns);
    let said = || std::env::var("COLUMNS").ok()?.parse().ok();
    of_terminal.or_else(said).filter(|columns| *columns > 0)
}
