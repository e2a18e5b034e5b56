//! Reads, checks, compares, changes and writes what `iptables-save` prints and `iptables-restore` takes.
//!
//! For programs that live beside iptables: service proxies, network plug-ins, firewalls, tools that explain rules. No C
//! library, no process (but for the feature `restore`), no IO at all: text in, text out.
//!
//! | you have | you call | you get |
//! | --- | --- | --- |
//! | the text of a save | [`Save::parse`] | a tree that borrows from it: [`Table`]s of [`Chain`]s, [`Rule`]s, [`Command`]s |
//! | a tree | `to_string()` | the same text byte for byte, with the nodes that were changed written anew |
//! | a [`Rule`] | [`Rule::spec`] | its [`Spec`]: generic options, matches and target with their options |
//! | a [`Spec`] | [`Spec::to_words`], [`typed`] | the words of a rule; structures for the usual matches and targets |
//! | a line, perhaps a rule | [`check_line`], [`check`] | what is wrong with it, with the column, or nothing |
//! | two spellings of a rule | [`normalise`] | the spelling that they share if iptables saves them alike |
//! | a tree with commands in it | [`State::of`] | which chains there are in the end, with which rules |
//! | two states | [`diff`] | the smallest `iptables-restore --noflush` input from one to the other, for the chains that are yours |
//! | a text to load (feature `restore`) | `restore::Tool` | loaded, or an error with line, rule and cause |
//!
//! ```
//! use sluicegate_iptables_save::{Counters, Save};
//!
//! let text = "*nat\n:KUBE-SVC - [0:0]\n[7:420] -A KUBE-SVC  -p tcp --dport 80 -j KUBE-SEP\nCOMMIT\n";
//! let mut save = Save::parse(text)?;
//! assert_eq!(save.to_string(), text);
//!
//! let rule = save.table("nat").unwrap().rules().next().unwrap();
//! let spec = rule.spec()?;
//! assert_eq!(spec.find("tcp").unwrap().value("destination-port"), Some("80"));
//! assert_eq!(spec.target_name(), Some("KUBE-SEP"));
//!
//! save.tables_mut().next().unwrap().rules_mut().next().unwrap().set_counters(Some(Counters::default()));
//! assert_eq!(save.to_string(), text.replace("[7:420] -A KUBE-SVC  -p", "[0:0] -A KUBE-SVC -p"));
//! # Ok::<(), sluicegate_iptables_save::Error>(())
//! ```
//!
//! # What holds
//!
//! - **Nothing is lost.** Spacing, comments, blank lines, CRLF, a last line without an end: an untouched tree renders what
//!   was read. What cannot be read is an [`Error`] with line, column, the word, and what was expected.
//! - **Nothing is injected.** No name or value can end a word, a line or a table; what no quoting can carry is refused.
//! - **Nothing is copied** that the input has in its usual form: lines, names and words are borrowed, unless a backslash
//!   in a quotation or an option before its command forces a copy. `into_owned` cuts the tie.
//! - **Nothing grows faster than the input**, and [`Limits`] bound that. The parser does not panic.
//! - **The extensions are data**: [`all_matches`] and [`all_targets`] list all of iptables-extensions(8) with options,
//!   arity, negation and print order. A module that is not among them keeps its words; [`check`] refuses it, as the tool
//!   without its plug-in does.
//! - Both back ends are the reference: legacy and nft, of iptables 1.8.9, both families. The tests restore and save some
//!   2,200 rules with each, and compare.
//!
//! # What it does not do
//!
//! It does not look at this machine: names of services and protocols are those of a table inside; host names, names of
//! users and groups other than `root`, and files of iproute2 are not looked up, and whether chains, sets and interfaces
//! exist is not asked. It does not read arptables and ebtables. It does not translate to nftables. It reads UTF-8.
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
pub mod typed;
mod value;
mod words;

pub use check::{CheckedLine, Place, check, check_line};
pub use diff::diff;
pub use error::{Cause, Error, Refusal};
pub use ext::{Extension, Family, OptionRow, all_matches, all_targets, find_match, find_target};
pub use limits::Limits;
pub use normal::normalise;
pub use spec::{Module, OptionUse, Spec, Target, Values};
pub use state::State;
pub use tree::{Action, Chain, Command, Counters, Entry, Item, Rule, Save, Table, Verb};
pub use words::{Word, Words, quote, quote_if_needed, split};
