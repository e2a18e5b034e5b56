//! Reads, checks, compares, changes and writes what `iptables-save` prints and `iptables-restore` takes.
#![forbid(unsafe_code)]

mod check;
mod command;
mod error;
mod ext;
mod limits;
mod names;
mod parse;
mod print;
mod read;
mod spec;
mod tree;
mod value;
mod words;

pub use check::{CheckedLine, Place, check, check_line};
pub use error::{Cause, Error, Refusal};
pub use ext::{Extension, Family, OptionRow, find_match, find_target, matches, targets};
pub use limits::Limits;
pub use spec::{Module, OptionUse, Spec, Target, Values};
pub use tree::{Action, Chain, Command, Counters, Entry, Item, Rule, Save, Table, Verb};
pub use words::{Word, Words, quote, quote_if_needed, split};
