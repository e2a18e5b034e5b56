#![doc = include_str!("../README.md")]
//!
//! # Overview
//!
//! | you have | you call | you get |
//! | --- | --- | --- |
//! | a family | [`nft::Client::open`], [`legacy::Client::open`] | the tables of one back end in the namespace of this thread |
//! | a table | [`nft::Client::list`] | its chains and rules, as `iptables-save` prints them |
//! | input of iptables-restore | [`nft::Client::restore`] | the tables changed, or an error with the line at fault |
//! | [`Changes`](sluicegate_iptables_save::Changes) of a diff | [`nft::Client::apply`] | exactly that changed |
//! | the words of a rule | [`nft::Client::check`] | whether the chain has it, as `iptables -C` says |
//! | the words of a rule | [`Rule::compile`] | the structures of the kernel: head, matches, target |
//! | one rule or chain to add, delete or ensure | [`Client::append`], [`Client::ensure_rule`] ... | what the command of iptables does |
//! | the name of an extension | [`codecs_of`], [`nft::Client::has_revision`] | the revisions known here, and those of the kernel |
//! | what the kernel has of an extension | [`decode_extension`] | its options |
//!
//! # Guarantees
//!
//! - **The same bytes.** What is written here and what iptables 1.8.9 writes for the same rule are equal, in
//!   both families; the tests compare some 4,500 rules, and what each of the two reads of the other.
//! - **Nothing is lost.** A match or target that is not known here stays in the table byte for byte when
//!   another rule is changed, and so does a structure that says more than options can. A list of words is
//!   refused where there is one; a view has it as what it is.
//! - **Nothing is assumed.** The revision of every extension is asked of the kernel before a rule has it.
//! - **Nothing is half done.** All lines of an input are read, checked and encoded before the first table is
//!   changed. The nft back end sends them as one batch, for the generation of the ruleset that it read; the
//!   legacy back end holds the lock of iptables, and carries over the counters of rules that stay.
//! - Decoders take any bytes and never panic.
//!
//! # What it does not do
//!
//! It loads no kernel module, and looks up no names of users, labels or iproute2, as `sluicegate-iptables-save`
//! does not. What it has no binary form for is listed above.
//!
//! # How it works
//!
//! * `extension/` has a [`Codec`] for each revision of an extension, its encoder beside its decoder, in files
//!   by what the extensions are about. They work on the options in the spelling of iptables-save, which
//!   `sluicegate-iptables-save` produces from any other.
//! * A decoder's result is encoded again and compared, so that what would change is never shown as options.
//! * `plain.rs` is a short way for the rules that tables are full of; the tests compare it with the long one.
//! * `entry.rs` has the head of a rule, `rule.rs` puts head, matches and target together.
//! * `legacy/layout.rs` knows the layout of a table, `legacy/ruleset.rs` keeps one in memory, in which rules
//!   that nobody touches stay the kernel's bytes and jumps are chains. `legacy/change.rs` carries out lines.
//! * `nft/encode.rs` has the expressions of a rule, `nft/decode.rs` the way back. `nft/state.rs` is what is
//!   known of the kernel's tables and what they are to be, `nft/change.rs` carries out lines on it, and
//!   `nft/plan.rs` leads from the one to the other with the operations of a batch.
//! * `legacy/socket.rs` has the two socket options, and all `unsafe` code of the crate.
#![deny(unsafe_code)]

mod back_end;
mod client;
mod entry;
mod error;
mod extension;
mod foreign;
pub mod legacy;
pub mod nft;
mod plain;
mod print;
mod rule;

pub use back_end::{BackEnd, UnknownBackEnd};
pub use client::Client;
pub use error::{Error, Fault};
pub use extension::{
    Binary, Codec, Kind, Mismatch, NoSets, SetMismatch, Sets, codec_for, codecs, codecs_of, decode_extension,
};
pub use foreign::{Foreign, ForeignReason, View};
pub use rule::{Action, CompileError, Kernel, NoWords, Rule, Unsupported};
pub use sluicegate_iptables_save as iptables_save;
pub use sluicegate_iptables_save::Family;
pub use sluicegate_netlink::{self as netlink, Errno};
