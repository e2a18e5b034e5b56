//! Statements.

mod nat;
mod parse;
mod print;

pub(super) use parse::{carried, limit as parse_limit, list, of_set, types_in};
pub(super) use print::{ObjectMembers, limit, stateful_list, statement, typed, verdict};

/// syslog's levels by number, and behind them that of the audit log.
const LEVELS: [&str; 9] = ["emerg", "alert", "crit", "err", "warn", "notice", "info", "debug", "audit"];
/// Units of bytes.
const BYTES: [(&str, u64); 3] = [("bytes", 1), ("kbytes", 1 << 10), ("mbytes", 1 << 20)];
