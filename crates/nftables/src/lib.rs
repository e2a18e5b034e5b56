#![doc = include_str!("../README.md")]
//!
//! # Where to find what
//!
//! * Describe objects: [`Table`], [`Chain`], [`Rule`], [`Set`] (a map is a set with data), [`Element`],
//!   [`StatefulObject`], [`Flowtable`]. Their `...Id`s name them.
//! * Write rules: [`lang`] has matches, statements and expressions, named as in libnftables-json(5), and what
//!   they are made of. Numbers, text, addresses, ranges, arrays and tuples convert to expressions.
//! * Read nft text: [`Transaction::parse`] for scripts, [`Rule::parse`] for rules, both in [`lang::parse`];
//!   they report every mistake with its line and column. `Transaction::from_json` reads nft's JSON (feature
//!   `json`).
//! * Make tables equal to wanted ones: [`reconcile`] takes them as values and finds the smallest transaction.
//! * Learn what was refused, and why: [`Error`] names the operation, the object down to the element, the
//!   error, and what it means there.
//! * List the ruleset: [`read::ruleset`]. [`read::Ruleset::content`] converts it to the typed language
//!   ([`TableContent`]), which prints as `nft list ruleset` does.
//! * List what sees packets in which order, as `nft list hooks`: [`read::hooks`].
//! * Follow changes: [`monitor::Follower`] for a copy of the ruleset that stays up to date and for changes in
//!   the typed language, [`monitor::Monitor`] for the kernel's events, [`monitor::Trace`] for traced packets.
//! * Ask what a kernel supports: [`probe`].
//! * Test without a kernel: [`fake::Fake`] takes the same messages and refuses what the kernel refuses.
//! * Work with the kernel's bytecode: [`expr`], with a struct of [`expr::kind`] for each expression.
//! * Come from knftables, nftables-rs or google/nftables: [`guide`] has ten tasks in each.
//!
//! # What to expect
//!
//! * A transaction is one netlink batch: the kernel applies all of it, or nothing. Printed, it is a script
//!   that `nft -f` reads. Both give the same ruleset, and `nft list` shows it as its own: types and comments
//!   are stored as nft 1.0.6 stores them.
//! * Names and comments are checked on construction ([`Name`], [`Comment`]), so nothing printed can break out
//!   of its place. Elements ([`Element`], [`Key`]) are packed as the kernel stores them, without an
//!   allocation each, and are sent 64 KiB a message.
//! * Listings print interfaces by number and times in UTC, unless [`ListOptions`] contain the names and the
//!   time zone; [`read::list_options`] reads the names from the machine.
//!
//! # What this crate does not do
//!
//! It keeps no state except in a [`Follower`](monitor::Follower) that the caller creates. It loads no
//! module, opens no file, and starts no process and no thread. It talks to the kernel only through the
//! [`Transport`](sluicegate_netlink::Transport) that it is given. Elements are not checked for
//! overlap before they are sent, because the kernel checks them, and are merged only in sets that ask for it
//! ([`Set::auto_merge`]).
//!
//! # Features
//!
//! By default `text`, `monitor` and `reconcile`. Printing, listings and [`probe`] are always there.
//!
//! * `text`: reads nft's text, [`Transaction::parse`] and [`lang::parse`].
//! * `monitor`: the module [`monitor`]. The events themselves are in [`read`].
//! * `reconcile`: the module [`reconcile`].
//! * `fake`: the module [`fake`], for tests.
//! * `tokio`: `Transaction::apply_async` and `Monitor::next`, which do not block a task. Without it no
//!   runtime is needed.
//! * `ipnet`: the networks of the crate `ipnet` (`IpNet`, `Ipv4Net`, `Ipv6Net`) convert to elements of sets.
//! * `json`: the module `json`, which prints and reads libnftables-json(5): what `nft -j list ruleset` and
//!   `nft -j monitor` print, and what `nft -j -f` reads. Adds `serde_json`.
//!
//! Sources: nft(8), libnftables-json(5), `linux/netfilter/nf_tables.h`; the user data that nft stores was
//! captured from nft 1.0.6; behaviour was measured on Linux 6.1, 6.12 and 6.18.
#![forbid(unsafe_code)]

mod apply;
mod check;
mod compile;
mod datatype;
mod error;
pub mod expr;
#[cfg(feature = "fake")]
pub mod fake;
mod family;
pub mod guide;
#[cfg(feature = "json")]
pub mod json;
mod key;
pub mod lang;
mod listing;
#[cfg(feature = "monitor")]
pub mod monitor;
mod name;
mod object;
pub mod probe;
pub mod read;
#[cfg(feature = "reconcile")]
pub mod reconcile;
mod sort;
mod text;
mod time_zone;
mod transaction;
mod tree;
mod wire;
mod wording;

pub use apply::{Applied, ApplyOptions};
pub use datatype::{DataType, Order};
pub use error::{AttributePath, ContentProblem, Error, Failure};
pub use family::{Family, UnknownFamily};
pub use key::{EtherAddr, Key, KeyPart, Mark, Number, Part, Port, QueueNumber};
pub use listing::{Handles, TableContent};
pub use name::{Comment, InterfaceName, Name, NameError, NameProblem, SecurityContext};
pub use object::*;
pub use sluicegate_netlink::{self as netlink, Errno, Protocol};
pub use time_zone::TimeZone;
pub use transaction::{
    Command, Description, Flush, HandleId, MonitorEvent, MonitorFilter, MonitorObject, Object, Operation,
    Rename, Subject, Target, Transaction, Within,
};
pub use wording::ListOptions;
