#![doc = include_str!("../README.md")]
//!
//! # Terms
//!
//! The terms are those of conntrack(8). A *flow* is the kernel's record of a connection: a *tuple* in each
//! direction (addresses, protocol, ports), a *status*, a *mark*, a *zone*, a timeout and an *id*. There are
//! four kinds of values:
//!
//! * identity: [`FlowKey`], the original tuple with zone and id;
//! * observed: [`Flow`], as the kernel reports it;
//! * wanted: [`NewFlow`], a flow to create, and [`FlowChange`], the changes to an existing one;
//! * selection: [`Filter`], the criteria that flows have to match. All flows match an empty filter, which can
//!   only be used for listing.
//!
//! [`Client`] lists ([`list`](Client::list), or [`flows`](Client::flows) as they come), looks up
//! ([`get`](Client::get)), counts, creates, changes and deletes flows, and reads the statistics of each
//! processor ([`statistics`](Client::statistics)). It lists, looks up and deletes expectations as well
//! ([`expectations`](Client::expectations)). [`Monitor`] receives events; [`stale::sync`] deletes the stale
//! UDP flows of services, and [`Format`] prints a flow as conntrack(8) does. The command itself, implemented
//! with this crate, is in the repository's `examples`.
//!
//! # Nothing is flushed by accident
//!
//! For the kernel, a deletion without a tuple empties the table, and so does one whose filter it does not
//! support. So this crate never sends a deletion with a filter. It lists flows, compares each, and deletes by
//! tuple and id, so that it cannot delete a flow that it did not compare. The kernel's filter only makes that
//! list shorter, and is not used where it is known to be wrong: Linux 6.1 and 6.18 invert comparisons of IPv6
//! addresses. An empty filter is refused ([`Error::NoCriterion`]). Only [`Client::flush`] empties the table.
//!
//! # Errors
//!
//! An [`Error`] names the command and the flow, and describes the kernel's error number. To delete a flow
//! that does not exist any more is not an error: flows expire at any time.
//!
//! # What it does not do
//!
//! It does not create expectations, does not configure sysctls, timeout policies or helpers, loads no module,
//! resolves no names and has no global state. A kernel without `nf_conntrack_netlink` is an error
//! ([`Error::is_unsupported`]).
//!
//! All commands need `CAP_NET_ADMIN`, including those that read. They apply to the network namespace in which
//! the socket was opened.
//!
//! Sources: conntrack(8) 1.4.7; `linux/netfilter/nfnetlink_conntrack.h`, `nf_conntrack_common.h`,
//! `nf_conntrack_tcp.h`; behaviour measured on Linux 6.1, 6.12 and 6.18.
//!
//! # How it works
//!
//! * Only `flush` can empty the table. A deletion always has a tuple and never a filter; flows that match the
//!   filter are listed, compared by `Filter::matches`, and deleted by tuple and id.
//! * The kernel's filter only shortens the list. `Filter::kernel_part` omits criteria that some kernels
//!   compare wrongly: IPv6 addresses, whose comparison is inverted in 6.1 and 6.18. If a kernel refuses the
//!   filter, the list is requested without it.
//! * A datagram has at most 128 deletions: a receive buffer of the default size has room for that many
//!   refusals, so that none is lost.
//! * `format.rs` prints exactly as conntrack 1.4.7 does, including its errors (the state of SCTP in XML).
#![forbid(unsafe_code)]

mod change;
mod client;
mod error;
mod expectation;
mod filter;
mod flow;
mod flows;
mod format;
mod labels;
mod message;
mod monitor;
mod new_flow;
pub mod protocol;
mod protocol_info;
pub mod stale;
mod statistics;
mod status;
mod tuple;
mod wire;

pub use change::FlowChange;
pub use client::{Client, Deleted, Table};
pub use error::Error;
pub use expectation::{Expectation, ExpectationFlags, ExpectationKey};
pub use filter::{AddressPort, Filter, MarkMatch, NatMatch, Side, StatusMatch};
pub use flow::{Counters, Flow, FlowKey, Timestamps};
pub use flows::Flows;
pub use format::{Format, Layout, Verb};
pub use labels::{LabelNames, Labels};
pub use monitor::{EXPECTATION_GROUPS, Event, EventWithPort, GROUPS, Monitor};
pub use new_flow::NewFlow;
pub use protocol_info::{DccpState, ProtocolInfo, SctpState, TcpState};
pub use sluicegate_netlink::{self as netlink, Errno, Family, Protocol};
pub use statistics::{ExpectationStatistic, PerCpu, Statistic};
pub use status::Status;
pub use tuple::{Layer4, Tuple};
