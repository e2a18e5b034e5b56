#![doc = include_str!("../README.md")]
//!
//! # Terms
//!
//! The terms are those of ipset(8): a *set* has a name, a type ([`SetType`]) and, for most types, a family;
//! an *entry* is an element of that type with options. There are three kinds of values:
//!
//! * wanted: [`SetSpec`] (a `create` command) and [`Entry`] (an `add` command). Either always matches its
//!   type: it has addresses where the type has addresses, only options of the type, and numbers within their
//!   limits;
//! * identity: [`SetName`], at most 31 bytes, checked when it is created; [`Header`];
//! * observed: [`SetInfo`] and [`Listing`], which the kernel reports.
//!
//! [`Client`] has one method for each command of the kernel's protocol (versions 6 and 7): create, destroy,
//! flush, rename, swap, list, save, add, del, test, header, type, protocol, get by name and by index. A
//! message has up to 64 KiB of entries. Two methods use several commands: [`replace`](Client::replace) fills
//! a temporary set and swaps it in, and [`sync`](Client::sync) changes a set to the wanted entries with the
//! fewest additions and deletions. [`SetSpec::sized_for`] sizes a hash for the entries to come.
//!
//! [`text`] reads and writes restore files, and its errors have the line and column of the wrong word;
//! [`Style`] lists sets as `ipset list` and `ipset save` do. The command `ipset` itself, implemented with
//! this crate, is in the repository's `examples`.
//!
//! # Errors
//!
//! An [`Error`] names the command and the set, the entry at fault and its index among those that were given,
//! and describes the kernel's error number ([`Refusal`]). A value that is not valid is a [`Reason`], before
//! anything is sent.
//!
//! # Ranges
//!
//! An element may be a range or a network if ipset accepts one. It is sent as such: the kernel expands it if
//! the type stores single addresses or ports, and splits a range into networks if the type stores networks.
//!
//! # What it does not do
//!
//! It runs no process, loads no module, resolves no names by itself (implement [`Names`] for that) and has no
//! global state. Adding many entries is not a transaction, because the kernel has none: see [`Client::add`]
//! for what happens when one is refused. Rules that match sets are written with the crates for nftables and
//! iptables; the sets of nftables itself are a different kind of object.
//!
//! Sources: ipset(8) and the listings of ipset 7.17; `linux/netfilter/ipset/ip_set*.h`; behaviour on Linux
//! 6.1 and 6.18.
//!
//! # How it works
//!
//! * Wanted (`SetSpec`, `Entry`), identity (`SetName`, `Header`) and observed (`SetInfo`, `Listing`) are
//!   different types. A wanted value always matches its type; a value from the kernel may be one that no
//!   command can give (any bytes in a name or comment) and is escaped when printed.
//! * `set_type` alone describes the types: parts, options in the order of ipset, and the revision that
//!   introduced each. Parsing, printing and encoding use it.
//! * A revision is never assumed: the client asks the kernel for each type, and an option that its revision
//!   lacks is an error before anything is sent.
//! * The number of each entry is sent as its `IPSET_ATTR_LINENO`. The kernel returns that of the failing
//!   one, so that an error names the entry among a hundred thousand.
//! * No method pretends to be a transaction. `add` continues after a message that failed, `add_in_order`
//!   stops, `replace` swaps a filled set in.
//! * `Entry::stored` predicts the entries that the kernel stores for a range or mask.
//! * `sort.rs` sorts as `ipset -sorted` does. That comparison is not a total order, and the standard
//!   library's sort may panic on such a comparison, hence a merge sort of our own.
#![forbid(unsafe_code)]

mod address;
mod client;
mod entry;
mod error;
mod family;
mod icmp;
mod info;
mod message;
mod name;
mod names;
mod number;
mod port;
mod reason;
mod render;
mod set_type;
mod sort;
mod spec;
mod sync;
pub mod text;
mod wire;

pub use address::Addresses;
pub use client::Client;
pub use entry::{Comment, Element, Entry, EntryOptions, Interface, Mac, Place, SkbMark, SkbPrio};
pub use error::{Error, Refusal, ipset_errno};
pub use family::Family;
pub use info::{Header, Listing, Revisions, SetInfo};
pub use message::Exist;
pub use name::SetName;
pub use names::{Names, Numeric};
pub use port::Port;
pub use reason::Reason;
pub use render::Style;
pub use set_type::SetType;
pub use sluicegate_netlink::{self as netlink, Errno, Protocol};
pub use spec::{CreateOptions, Range, SetSpec};
pub use sync::{Changes, Difference};

/// The version of this crate.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
