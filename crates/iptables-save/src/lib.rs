//! Reads, checks, compares, changes and writes what `iptables-save` prints and `iptables-restore` takes.
#![forbid(unsafe_code)]

mod check;
mod command;
mod diff;
mod error;
mod ext;
mod limits;
mod names;
mod normal;
mod parse;
mod print;
mod read;
#[cfg(feature = "restore")]
pub mod restore;
mod spec;
mod state;
mod tree;
mod value;
mod words;

pub use check::{CheckedLine, Place, check, check_line};
pub use diff::diff;
pub use error::{Cause, Error, Refusal};
pub use ext::{Extension, Family, OptionRow, find_match, find_target, matches, targets};
pub use limits::Limits;
pub use normal::normalise;
pub use spec::{Module, OptionUse, Spec, Target, Values};
pub use state::State;
pub use tree::{Action, Chain, Command, Counters, Entry, Item, Rule, Save, Table, Verb};
pub use words::{Word, Words, quote, quote_if_needed, split};
