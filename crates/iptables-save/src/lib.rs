#![doc = include_str!("../README.md")]
//!
//! # Where to find what
//!
//! | you have | you call | you get |
//! | --- | --- | --- |
//! | the text of a save | [`Save::parse`] | a tree that borrows from it: [`Table`]s of [`Chain`]s, [`Rule`]s, [`Command`]s |
//! | a tree | `to_string()` | the same text byte for byte, with the nodes that were changed written anew |
//! | a [`Rule`] | [`Rule::spec`] | its [`Spec`]: generic options, matches and target with their options |
//! | a [`Spec`] | [`Spec::to_words`] | the words of a rule |
//! | a line, perhaps a rule | [`check_line`], [`check_words`], [`check`] | what is wrong with it, with the column, or nothing |
//! | a [`Table`] | [`Listing`] | its chains and rules in columns, as `iptables -L -n` lists them |
//! | two spellings of a rule | [`normalise`] | the spelling that they share if iptables saves them alike |
//! | a tree with commands in it | [`State::of`] | which chains there are in the end, with which rules |
//! | chains and rules of your own | [`State::new`], [`State::ensure_rule`] | a state that was built without text |
//! | two states | [`diff`], [`diff_owned`] | the smallest [`Changes`] to the chains, or single rules, that are yours |
//! | a save or changes to load (feature `restore`) | `restore::Tool` | loaded, or an error with line, rule and cause |
//! | a chain or rule that has to be there (same feature) | `restore::Tool::{ensure_chain, ensure_rule, remove_rule}` | whether it was changed |
//!
//! # Guarantees
//!
//! - **Nothing is lost.** Spacing, comments, blank lines, CRLF, a last line without an end, bytes that are
//!   not UTF-8: an untouched tree renders what was read. What cannot be read is an [`Error`] with line,
//!   column, the word, and what was expected.
//! - **Nobody else's rules are changed.** [`diff`] touches what is said to be owned; its result has a type of
//!   its own, so that it is not restored without `--noflush`. Rules in the chains of others are deleted by
//!   their words.
//! - **Nothing is injected.** No name or value can end a word, a line or a table; what no quoting can carry
//!   is refused.
//! - **Nothing is copied** that the input has in iptables-save's own form: lines, names and words are
//!   borrowed, unless a backslash in a quotation or an option before its command forces a copy. `into_owned`
//!   cuts the tie.
//! - **Nothing grows faster than the input**, and [`Limits`] bound that, but for the lists of addresses of
//!   `-s` and `-d`, which make up to [`Limits::RULES_OF_A_LINE`] rules of one line. The parser does not
//!   panic.
//! - **The extensions are data**: [`all_matches`] and [`all_targets`] list all of iptables-extensions(8) with
//!   options, arity, negation and print order. A module that is not among them keeps its words; [`check`]
//!   refuses it, as the tool without its plug-in does.
//! - Both back ends are the reference: legacy and nft, of iptables 1.8.9, both families. The tests restore
//!   and save some 2,200 rules with each, and compare.
//!
//! # What it does not do
//!
//! It does not look at this machine: names of services and protocols are those of a table inside; host names,
//! names of users and groups other than `root`, and files of iproute2 are not looked up, and whether chains,
//! sets and interfaces exist is not asked. It does not read arptables and ebtables. It does not translate to
//! nftables.
//!
//! # Bytes that are not UTF-8
//!
//! iptables takes any bytes for a comment or a name. [`Save::parse_bytes`] represents each byte that is not
//! UTF-8 by a character, as [`decode`] says, so that names, words and comments are `str` here;
//! [`Save::to_bytes`] and [`encode`] give the bytes back. `restore::Tool` does both by itself.
//!
//! # How it works
//!
//! * A node of the tree keeps the line that it was read from until it is changed, and renders as that line.
//! * Everything about an extension is a row of `ext/matches_a.rs`, `ext/matches_m.rs` or `ext/targets.rs`.
//!   What no row can say is a function of `ext/rules.rs` (checks) or `normal/` (how it is saved). Reading,
//!   checking, printing and normalising have no list of their own.
//! * `Spec::read` takes whatever has the form of options, `check` only what can be a rule. Both are one
//!   reader (`read.rs`).
//! * The normal form is what iptables 1.8.9 prints: two lines have equal normal forms exactly when their
//!   saves are equal, which `tests/it/parity.rs` compares. Two exceptions, where the back ends save different
//!   things: `NFLOG --nflog-range`, which the nft back end forgets, and `NFLOG --nflog-prefix` of more than
//!   63 bytes, which the legacy back end cuts.
//! * `diff/sequence.rs` decides which rules of a chain are kept: the most, and of those the longest.
//! * `listing/forms.rs` has the words in which `-L` lists an extension, a row each; those that no row can say
//!   are functions of `listing/own.rs`.
//! * `restore/failure.rs` is the only code that decides by the words of a message: the tools report line
//!   and cause in no other way.
#![forbid(unsafe_code)]

mod changes;
mod check;
mod command;
mod condition;
mod diff;
mod encoding;
mod error;
mod ext;
mod limits;
mod listing;
mod names;
mod normal;
mod owner;
mod parse;
mod print;
mod read;
#[cfg(feature = "restore")]
pub mod restore;
mod spec;
mod state;
mod tree;
mod value;
pub mod vocabulary;
mod words;

pub use changes::Changes;
pub use check::{CheckedLine, Place, check, check_line, check_words};
pub use condition::Condition;
pub use diff::{diff, diff_owned};
pub use encoding::{decode, encode, printable};
pub use error::{Cause, Error, Refusal, RuleFault};
pub use ext::{Extension, Family, OptionRow, all_matches, all_targets, find_match, find_target};
pub use limits::Limits;
pub use listing::{Listing, Names};
pub use names::{icmp_types, protocol_name};
pub use normal::normalise;
pub use owner::{Owned, Owner, Position};
pub use spec::{Module, OptionUse, Spec, Target, Values};
pub use state::State;
pub use tree::{Action, Chain, Command, Counters, Entry, Item, Rule, Save, Table, Verb};
pub use value::{port_number, protocol_number};
pub use words::{Word, Words, quote, quote_if_needed, split};
