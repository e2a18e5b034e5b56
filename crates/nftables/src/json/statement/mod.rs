//! Statements.

mod nat;
mod parse;
mod print;

pub(super) use parse::{carried, limit as parse_limit, list, of_set, types_in};
pub(super) use print::{ObjectMembers, limit, stateful_list, statement, typed, verdict};
