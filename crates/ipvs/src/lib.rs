//! IPVS, the load balancer in the Linux kernel, from Rust: over generic netlink, without ipvsadm and without a C library.
//!
//! ```no_run
//! use sluicegate_ipvs::*;
//!
//! # fn main() -> Result<(), Error> {
//! let web = ServiceId::tcp(Endpoint::new([10, 96, 0, 10], 80));
//! let mut client = Client::connect()?; // Error::Absent where the kernel has no IPVS
//! client.run_all(&[
//!     Command::NewService { id: web, config: ServiceConfig::new(Scheduler::RR) },
//!     Command::NewDestination {
//!         service: web,
//!         id: Endpoint::new([10, 244, 1, 7], 8080),
//!         config: DestinationConfig::new(Forward::Masquerade),
//!     },
//! ])?;
//! for destination in client.destinations(&web)? {
//!     println!("{} {} active", destination.id, destination.connections.active);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # The contract
//!
//! * **Three types a thing.** [`ServiceId`] and [`Endpoint`] identify, [`ServiceConfig`] and [`DestinationConfig`]
//!   configure, [`Service`] and [`Destination`] are what the kernel reports, with counters. Whether something has to
//!   change is `==` of two configurations: flags of the kernel's own are not part of one.
//! * **A [`Command`] is a value.** It prints as the ipvsadm arguments that do the same; [`Client::run`] sends one,
//!   [`Client::run_all`] many at a time. IPVS has no transactions: every command is on its own, and those after a refused
//!   one are carried out. The error names each refused command.
//! * **What cannot work is refused before anything is sent** ([`Command::check`]), also where the kernel would take it in
//!   silence: a netmask with holes, port 0 without persistence, an unknown kind of tunnel, a destination port that direct
//!   routing cannot deliver to.
//! * **An empty list means that there is nothing.** A kernel without IPVS is [`Error::Absent`], a missing service is an
//!   error with [`Error::is_not_found`], a listing that a change tore apart is repeated, and after some attempts
//!   [`Error::Interrupted`].
//! * **[`Client::sync`] makes a part of the table be a [`Table`]**, by the smallest change ([`plan()`]), in an order in
//!   which no service is without destinations. [`Drain`] turns deletions into graceful terminations.
//! * **No global state, no clock, no threads.** Everything but [`Socket`] is values in, values out; [`Script`] is a fake
//!   kernel for tests. A client belongs to the network namespace in which it was opened.
//! * Counters lag by up to two seconds, connection numbers of destinations do not.
//!
//! # What it does not do
//!
//! It does not configure addresses, routes, sysctls (`net.ipv4.vs.*`) or firewall marks, resolves no host or service names,
//! starts no program, and does not list single connections (`/proc/net/ip_vs_conn`).
//!
//! Needs `CAP_NET_ADMIN` in the network namespace. Protocol: `linux/ip_vs.h`, family "IPVS" version 1, the same from Linux 6.1
//! to 6.12; older kernels lack single attributes, which are documented where they matter.
#![forbid(unsafe_code)]

mod client;
mod command;
mod daemon;
mod destination;
mod drain;
mod error;
mod name;
mod plan;
mod script;
mod service;
mod socket;
mod stats;
pub mod text;
mod wire;

pub use client::Client;
pub use command::Command;
pub use daemon::{Daemon, DaemonRole, Info, Timeouts};
pub use destination::{Destination, DestinationConfig, Forward, Tunnel, TunnelFlags};
pub use drain::{Drain, Patience, Step};
pub use error::{DecodeError, Error, Invalid, Operation, Problem, Refusal};
pub use name::{Engine, Interface, Scheduler};
pub use plan::{Entry, Listing, Table, plan};
pub use script::Script;
pub use service::{
    Endpoint, Family, Granularity, Persistence, Protocol, SchedulerFlags, Service, ServiceConfig, ServiceId,
};
pub use socket::{Socket, Transport};
pub use stats::{Connections, Rate, Stats};
