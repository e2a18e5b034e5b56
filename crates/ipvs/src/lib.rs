#![doc = include_str!("../README.md")]
//!
//! # The contract
//!
//! * **Three types for each object.** [`ServiceId`] and [`Endpoint`] identify it, [`ServiceConfig`] and
//!   [`DestinationConfig`] configure it, [`Service`] and [`Destination`] are the kernel's reports, with
//!   counters. An object has to change if `==` of two configurations is false: flags that only the kernel
//!   sets are not part of a configuration.
//! * **A [`Command`] is a value.** It prints as the ipvsadm arguments that do the same; [`Client::run`] sends
//!   one, [`Client::run_all`] many at a time. IPVS has no transactions: each command succeeds or fails alone,
//!   and those after a refused one are carried out. The error names each refused command.
//! * **Values that cannot work are refused before anything is sent** ([`Command::check`]), even if the kernel
//!   would accept them silently: a netmask with holes, port 0 without persistence, an unknown type of tunnel,
//!   a destination port that direct routing cannot deliver to.
//! * **An empty list means that there are no objects.** A kernel without IPVS is [`Error::Absent`], a missing
//!   service is an error with [`Error::is_not_found`], and a listing of a table that changed meanwhile is
//!   repeated, and after some attempts is [`Error::Interrupted`].
//! * **[`Client::sync`] makes a part of the kernel's table equal a [`Table`]**, by the smallest change
//!   ([`diff()`]), in an order in which no service is without destinations. [`Drain`] replaces deletions by
//!   graceful terminations.
//! * **No global state, no clock, no threads.** Everything but [`netlink::Socket`] is values in, values out;
//!   [`netlink::scripted::Script`] stands in for a kernel in tests. A client belongs to the network namespace
//!   in which it was opened.
//! * Traffic counters are up to two seconds old; the numbers of connections of destinations are exact.
//!
//! # What it does not do
//!
//! It does not configure addresses, routes, sysctls (`net.ipv4.vs.*`) or firewall marks, does not resolve
//! host or service names, starts no program, and does not list single connections (`/proc/net/ip_vs_conn`).
//!
//! It needs `CAP_NET_ADMIN` in the network namespace. The protocol is that of `linux/ip_vs.h`, family "IPVS"
//! version 1, which is the same from Linux 6.1 to 6.12; the documentation names the attributes that older
//! kernels do not have.
//!
//! # How it works
//!
//! * Only `client.rs` sends and receives. Everything else, including graceful termination, takes the time and
//!   the observed connections as arguments.
//! * A datagram has at most 128 commands: a receive buffer of the default size has room for that many
//!   refusals, so that none is lost.
//! * The kernel has answered when `send` returns, so the client never waits. A command that ends with `EINTR`
//!   inside the kernel is never answered; the one such case that succeeded (stopping a sync daemon whose
//!   thread never ran) is recognised by listing the daemons.
//! * `text/order.rs` sorts as ipvsadm does. That comparison is not a total order (it wraps), and the standard
//!   library's sort may panic on such a comparison, hence a merge sort of our own.
//! * A command is encoded without an allocation; `conformance` compares the bytes of every command with those
//!   that neli encodes.
#![forbid(unsafe_code)]

mod client;
mod command;
mod daemon;
mod destination;
mod diff;
mod drain;
mod error;
mod name;
mod service;
mod stats;
pub mod text;
mod wire;

pub use client::Client;
pub use command::Command;
pub use daemon::{Daemon, DaemonRole, Info, Timeouts};
pub use destination::{Destination, DestinationConfig, Forward, Tunnel, TunnelFlags};
pub use diff::{Entry, Listing, Table, diff};
pub use drain::{Drain, DrainTiming, Step};
pub use error::{DecodeError, Error, Invalid, Operation, Problem, Refusal};
pub use name::{Engine, Interface, Scheduler};
pub use service::{Endpoint, Granularity, Persistence, SchedulerFlags, Service, ServiceConfig, ServiceId};
pub use sluicegate_netlink::{self as netlink, Errno, Family, Protocol};
pub use stats::{Connections, Rate, Stats};
