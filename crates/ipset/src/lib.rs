//! ipset without the ipset binary: every set type, typed, over netlink, and the text of `ipset save`.
//!
//! Whoever knows ipset(8) knows the words: a *set* has a name, a type ([`SetType`]) and, for most types, a family; an
//! *entry* is an element of that type with options. They are three kinds of values:
//!
//! * wanted: [`SetSpec`] (what `create` says) and [`Entry`] (what `add` says). Either can only be made so that it matches
//!   its type: an address where the type has addresses, an option that the type knows, numbers within their limits;
//! * identity: [`SetName`], at most 31 bytes, checked once; [`Header`];
//! * observed: [`SetInfo`] and [`Listing`], which the kernel gives back.
//!
//! [`Client`] has one method for each command of the kernel's protocol (versions 6 and 7): create, destroy, flush, rename,
//! swap, list, save, add, del, test, header, type, protocol, get by name and by index. Entries go out packed, up to
//! 64 KiB a message. Three methods are made of several commands: [`replace`](Client::replace) fills a temporary set and
//! swaps it in, [`sync`](Client::sync) makes a set what it should be with the fewest adds and dels, and
//! [`SetSpec::sized_for`] makes room beforehand.
//!
//! [`text`] reads and writes restore files, with the line and column of what is wrong; [`Style`] lists sets as `ipset list`
//! and `ipset save` do. The command `ipset` itself, made of this crate, is in the repository's `examples`.
//!
//! ```no_run
//! use sluicegate_ipset::{Client, CreateOptions, Entry, Exist, Family, Numeric, SetName, SetSpec, SetType};
//!
//! let set = SetSpec::new(SetName::new("allowed")?, SetType::HashNet, Family::Inet, CreateOptions::default())?;
//! let networks = ["192.0.2.0/24", "198.51.100.0/24"]
//!     .map(|network| Entry::parse(SetType::HashNet, Family::Inet, network, &Numeric))
//!     .into_iter()
//!     .collect::<Result<Vec<_>, _>>()?;
//!
//! let mut client = Client::open()?;
//! client.replace(&set, &networks)?; // at once: rules that match the set never see half of it
//! let listing = client.list(Some(set.name()))?;
//! # Ok::<(), sluicegate_ipset::Error>(())
//! ```
//!
//! # Errors
//!
//! [`Error`] says which command on which set failed, which entry was at fault and where it stood among those that were
//! given, and the kernel's code in words ([`Refusal`]). A value that is wrong is a [`Reason`] before anything is sent.
//!
//! # Ranges
//!
//! An element may be a range or a network where ipset takes one. It stays one on the wire: the kernel expands it where
//! the type stores single addresses or ports, and splits a range into networks where it stores networks.
//!
//! # What it does not do
//!
//! It runs no process, loads no module, resolves no names by itself ([`Names`] is there for who wants them) and has no
//! global state. Adding many entries is no transaction, because the kernel has none: [`Client::add`] says what is done
//! when one is refused. Matching sets in rules is the business of nftables' or iptables' own crates; nftables sets are
//! something else altogether.
//!
//! Sources: ipset(8) and the listings of ipset 7.17; `linux/netfilter/ipset/ip_set*.h`; behaviour on Linux 6.1 and 6.18.
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
pub use error::{Code, Error, Refusal};
pub use family::Family;
pub use info::{Header, Listing, Revisions, SetInfo};
pub use message::Exist;
pub use name::SetName;
pub use names::{Names, Numeric};
pub use port::{Port, Protocol};
pub use reason::Reason;
pub use render::Style;
pub use set_type::SetType;
pub use spec::{CreateOptions, Range, SetSpec};
pub use sync::{Changes, Difference};

/// The version of this crate.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
