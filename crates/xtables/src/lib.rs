#![doc = include_str!("../README.md")]
//!
//! # Overview
//!
//! | you have | you call | you get |
//! | --- | --- | --- |
//! | a family | [`legacy::Client::open`] | the tables of `iptables-legacy` in the namespace of this thread |
//! | a table | [`legacy::Client::list`] | its chains and rules, as `iptables-legacy-save` prints them |
//! | input of iptables-restore | [`legacy::Client::restore`] | the tables changed, or an error with the line at fault |
//! | [`Changes`](sluicegate_iptables_save::Changes) of a diff | [`legacy::Client::apply`] | exactly that changed |
//! | the words of a rule | [`legacy::Client::check`] | whether the chain has it, as `iptables -C` says |
//! | the words of a rule | [`Rule::compile`] | the structures of the kernel: head, matches, target |
//! | the name of an extension | [`codecs_of`], [`legacy::Client::has_revision`] | the revisions known here, and those of the kernel |
//! | what the kernel has of an extension | [`decode_extension`] | its options |
//!
//! # Guarantees
//!
//! - **The same bytes.** What is written here and what iptables 1.8.9 writes for the same rule are equal, in
//!   both families; the tests compare some 4,500 rules, and what each of the two reads of the other.
//! - **Nothing is lost.** A match or target that is not known here stays in the table byte for byte when
//!   another rule is changed, and is shown as what it is. So does a structure that says more than options
//!   can.
//! - **Nothing is assumed.** The revision of every extension is asked of the kernel before a rule has it.
//! - **Nothing is half done.** All lines of an input are read, checked and encoded before the first table is
//!   replaced. The counters of rules that stay are carried over; the lock of iptables is held meanwhile.
//! - Decoders take any bytes and never panic.
//!
//! # What it does not do
//!
//! It has the legacy back end alone: rules of `iptables-nft` are expressions of nftables, which
//! `sluicegate-nftables` reads and writes. It loads no kernel module: where `ip_tables` is not loaded, a
//! request fails with an error that says so ([`Error::is_unsupported`]). It looks up no names of users,
//! labels or iproute2, as `sluicegate-iptables-save` does not. These have no binary form here, and can
//! neither be written nor shown with their options: the targets `CLUSTERIP`, `LED`, `RATEEST` and `ULOG`, the
//! matches `ipvs` and `rateest`, and `bpf --object-pinned`.
//!
//! # How it works
//!
//! * `extension/` has a [`Codec`] for each revision of an extension, its encoder beside its decoder, in files
//!   by what the extensions are about. They work on the options in the spelling of iptables-save, which
//!   `sluicegate-iptables-save` produces from any other.
//! * A decoder's result is encoded again and compared, so that what would change is never shown as options.
//! * `entry.rs` has the head of a rule, `rule.rs` puts head, matches and target together.
//! * `legacy/layout.rs` knows the layout of a table, `legacy/ruleset.rs` keeps one in memory, in which rules
//!   that nobody touches stay the kernel's bytes and jumps are chains. `legacy/change.rs` carries out lines.
//! * `legacy/socket.rs` has the two socket options, and all `unsafe` code of the crate.
#![deny(unsafe_code)]

mod entry;
mod error;
mod extension;
pub mod legacy;
mod print;
mod rule;

pub use error::Error;
pub use extension::{Binary, Codec, Kind, NoSets, Sets, codec_for, codecs, codecs_of, decode_extension};
pub use rule::{Action, CompileError, Kernel, Rule, Unsupported};
pub use sluicegate_iptables_save as iptables_save;
pub use sluicegate_iptables_save::Family;
pub use sluicegate_netlink::{self as netlink, Errno};
