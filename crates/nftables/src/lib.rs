//! nftables for Rust: no `nft` binary, no C library, errors that name the object.
//!
//! * [`Table`], [`Chain`], [`Rule`], [`Set`] (a map is a set with data) and [`Elements`] are what nft(8) calls so; their
//!   `...Id`s name them.
//! * [`lang`] is the rule language as a typed tree whose nodes have the names of libnftables-json(5): matches, statements,
//!   expressions.
//! * [`Transaction`] is a list of operations: `add`, `create`, `insert`, `replace`, `rename`, `delete`, `destroy`, `flush`. Printed, it is a script that
//!   `nft -f` reads. Applied ([`Transaction::apply`]), it is one netlink batch: all of it happens, or nothing. Both give the same ruleset, and
//!   `nft list` shows it as its own: types, comments and rules are noted as nft 1.0.6 notes them. [`Applied::handle`] gives the handles.
//! * [`Error`] names every refused operation of a batch: its number, its verb, the object down to the element, the error and what it means there.
//! * [`expr`] holds the expressions that the kernel runs. They encode and decode; rules are lowered to them, and dumps give them back.
//! * [`read`] lists what the kernel holds; [`read::Ruleset::content`] gives it back in the typed language ([`TableContent`]), which prints as
//!   `nft -s list ruleset` does: with interfaces by number and times in UTC, or as [`ListOptions`] says, which [`read::machine`] fills; with counts
//!   (`nft list ruleset`) and handles (`nft -a`) where they are asked for. [`read::hooks`] says what sees packets in which order, nftables' or not
//!   (`nft list hooks`).
//! * [`fake`] is an in-memory kernel for unit tests: it takes the same batches, refuses what the kernel refuses, and lists what it holds.
//! * [`monitor`] reads the events of commits, and [`monitor::Follower`] keeps a copy of the ruleset up to date by them; [`monitor::Trace`] is what a
//!   packet meets that is traced; [`probe`] asks what this kernel can do.
//! * With the feature `tokio`, `Transaction::apply_async` and `Monitor::next` do not block a task. Without it, no runtime is needed.
//!
//! Names and comments are checked when they are made ([`Name`], [`Comment`]): nothing that is printed can break out of its place.
//! Elements ([`Element`], [`Key`]) are packed as the kernel keeps them, without an allocation each, and travel 64 KiB a message.
//!
//! # What it does not do
//!
//! It does not read nft text. It keeps no state and no cache but a [`Follower`](monitor::Follower) that is asked for, loads no module, starts no process and no thread; only what is given a
//! [`Transport`](sluicegate_netlink::Transport) talks to the kernel. Elements are not merged or checked for overlap before they are sent; the
//! kernel is the judge.
//!
//! # Example
//!
//! ```
//! use sluicegate_nftables::lang::{Match, Payload, Verdict};
//! use sluicegate_nftables::{Chain, DataType, Element, Family, Port, Protocol, Set, Table, TableId, Transaction};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//!
//! let table = TableId::new(Family::IP, "demo".parse()?);
//! let (services, drops) = (table.chain("services".parse()?), table.chain("drops".parse()?));
//! let frontends = table.map("frontends".parse()?);
//!
//! let mut tx = Transaction::new();
//! tx.add(Table::new(table.clone()));
//! tx.add(Chain::new(services.clone())).add(Chain::new(drops.clone()));
//! let key = [DataType::IPV4_ADDR, DataType::INET_SERVICE];
//! tx.add(Set::verdict_map(frontends.clone(), key).size(1000));
//! let address = std::net::Ipv4Addr::new(10, 96, 0, 1);
//! tx.add_element(&frontends, Element::new((address, Port(80))).verdict(Verdict::Goto(drops.name.clone())));
//! tx.add(drops.rule().then(Match::new(Payload::TCP_DPORT, Port(80))).then(Verdict::Drop));
//!
//! assert_eq!(tx.to_string(), "\
//! add table ip demo
//! add chain ip demo services
//! add chain ip demo drops
//! add map ip demo frontends { type ipv4_addr . inet_service : verdict ; size 1000 ; }
//! add element ip demo frontends { 10.96.0.1 . 80 : goto drops }
//! add rule ip demo drops tcp dport 80 drop
//! ");
//! # Ok(())
//! # }
//! ```
//!
//! Sources: nft(8), libnftables-json(5), `linux/netfilter/nf_tables.h`; what user space notes for itself was captured from nft 1.0.6;
//! behaviour was measured on Linux 6.1, 6.12 and 6.18.
#![forbid(unsafe_code)]

mod apply;
mod datatype;
mod echo;
mod encode;
mod error;
pub mod expr;
pub mod fake;
mod family;
mod key;
pub mod lang;
mod listing;
pub mod monitor;
mod name;
mod object;
mod place;
pub mod probe;
pub mod read;
mod transaction;

pub use apply::ApplyOptions;
pub use datatype::{DataType, Order};
pub use echo::Applied;
pub use error::{AttributePath, Error, Failure};
pub use family::{Family, UnknownFamily};
pub use key::{EtherAddr, Key, KeyPart, Mark, Number, Part, Port, Protocol, QueueNumber};
pub use listing::{Handles, ListOptions, TableContent};
pub use name::{Comment, InterfaceName, Name, NameError, NameProblem, SecurityContext};
pub use object::*;
pub use transaction::{Flush, HandleId, Object, Operation, Rename, Target, Transaction};
