//! Connection tracking over ctnetlink: list, filter and delete flows, hear of them, and clean up after services.
//!
//! Whoever knows conntrack(8) knows the words. A *flow* is what the kernel remembers of a connection: a *tuple* in each
//! direction (addresses, protocol, ports), a *status*, a *mark*, a *zone*, a timeout and an *id*. Four kinds of values:
//!
//! * identity: [`FlowKey`], the original tuple with zone and id;
//! * observed: [`Flow`], all that the kernel tells of one;
//! * wanted: [`NewFlow`], for who creates flows himself, and [`FlowChange`], for who changes some that are there;
//! * chosen: [`Filter`], which flows are meant. What it leaves open is not compared; one that leaves everything open
//!   chooses all flows, and is good for listing only.
//!
//! [`Client`] lists ([`list`](Client::list)), looks up ([`get`](Client::get)), counts, creates, changes and deletes flows, and tells
//! what each processor has counted ([`statistics`](Client::statistics)); [`Monitor`] gives events; [`reconcile`] removes the stale UDP flows of services, and [`Format`] prints a flow as
//! conntrack(8) does. The command itself, made of this crate, is in the repository's `examples`.
//!
//! ```no_run
//! use sluicegate_conntrack::{Client, Filter, Protocol};
//!
//! let mut client = Client::open()?;
//! let mut filter = Filter { protocol: Some(Protocol::UDP), ..Filter::default() };
//! filter.original.destination = Some("10.96.0.10/32".parse().unwrap());
//! filter.original.destination_port = Some(53);
//! for flow in client.delete_matching(&filter)? {
//!     println!("{flow}");
//! }
//! # Ok::<(), sluicegate_conntrack::Error>(())
//! ```
//!
//! # Nothing is flushed by accident
//!
//! To the kernel, a deletion that names no tuple empties the table, and one whose filter it does not know is a deletion
//! that names no tuple. So this crate never sends a filtered deletion. It lists, compares every flow itself, and
//! deletes by tuple and id: what it did not look at, it cannot delete. The kernel's filter only makes that list shorter,
//! and is left out where it is known to be wrong: Linux 6.1 and 6.18 invert comparisons of IPv6 addresses. An empty
//! filter is refused ([`Error::NoCriterion`]). [`Client::flush`] is the one call that empties the table.
//!
//! # Errors
//!
//! [`Error`] says which command failed, on which flow, and the kernel's errno in words. That a flow is gone when it is to
//! be deleted is none: flows go by themselves all the time.
//!
//! # What it does not do
//!
//! It only counts expectations, and knows nothing of sysctls, time-out policies or helpers' inner life, loads no module, resolves no names and
//! has no global state. A kernel without `nf_conntrack_netlink` is an error ([`Error::is_unsupported`]).
//!
//! Reading needs `CAP_NET_ADMIN` as everything here does. All of it works in the network namespace in which the socket was
//! opened.
//!
//! Sources: conntrack(8) 1.4.7; `linux/netfilter/nfnetlink_conntrack.h`, `nf_conntrack_common.h`, `nf_conntrack_tcp.h`;
//! behaviour measured on Linux 6.1, 6.12 and 6.18.
#![forbid(unsafe_code)]

mod change;
mod client;
mod error;
mod filter;
mod flow;
mod format;
mod message;
mod monitor;
mod new_flow;
mod protocol;
mod protocol_info;
pub mod reconcile;
mod statistics;
mod status;
mod tuple;
mod wire;

pub use change::FlowChange;
pub use client::{Client, Deleted, Table};
pub use error::Error;
pub use filter::{AddressPort, Filter, MarkMatch, NatMatch, Side, StatusMatch};
pub use flow::{Counters, Flow, FlowKey, Timestamps};
pub use format::{Format, Layout, Verb};
pub use monitor::{Event, GROUPS, Heard, Monitor};
pub use new_flow::NewFlow;
pub use protocol::{Family, Protocol};
pub use protocol_info::{DccpState, ProtocolInfo, SctpState, TcpState};
pub use statistics::{ExpectationStatistic, PerCpu, Statistic};
pub use status::Status;
pub use tuple::{Layer4, Tuple};
