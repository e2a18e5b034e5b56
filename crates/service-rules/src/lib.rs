#![doc = include_str!("../README.md")]
//!
//! # The contract
//!
//! * **A mode is a module and a feature**: `nftables` (the default), `iptables` and `ipvs`. Each has
//!   `Settings`, the operator's configuration; `Planner`, a pure value that computes the rules for a
//!   [`Cluster`](sluicegate_services::Cluster); `Applier`, which owns its sockets and sends the
//!   smallest change; and `Synced`, the result of a sync.
//! * **Settings are checked when they are created**: [`MasqueradeBit`],
//!   [`DetectLocal`](sluicegate_services::DetectLocal) and others are always valid. The only error of a
//!   planner is that of a node without pod CIDRs if these detect local traffic.
//! * **The first sync compares** the plan with the kernel, so that a restart disturbs nothing. The cost of
//!   later syncs depends on the changes. After a failure, and after another program has changed our objects,
//!   everything is compared again.
//! * **Services that the kernel refuses are named** ([`Error::refused`]): without them the others can be
//!   programmed.
//! * **[`Backend`] is the interface between a run loop and a mode**, and [`Summary`] its result, which does
//!   not depend on the mode. Other crates can implement further modes.
//! * Names, chains, sets, marks and behaviour are those of kube-proxy 1.36 wherever they are visible to users
//!   and other programs.
//! * **[`explain()`](explain::explain) says what must happen to a packet**, from the services alone: a second
//!   opinion on every plan.
//! * **[`flows`] removes stale UDP flows** from connection tracking after a sync, whatever the mode.
//!
//! # What it does not do
//!
//! It has no run loop, reads no Kubernetes objects, and writes no sysctl but `route_localnet` in iptables
//! mode, without which node ports on 127.0.0.1 do not work. It loads no kernel module. Sockets belong to the
//! network namespace of the thread that opens them.
#![forbid(unsafe_code)]

mod addresses;
mod backend;
mod cleaned;
mod error;
pub mod explain;
pub mod flows;
#[cfg(feature = "iptables")]
pub mod iptables;
#[cfg(feature = "ipvs")]
pub mod ipvs;
#[cfg(all(feature = "nftables", feature = "ipvs"))]
mod leftovers;
mod masquerade;
mod mode;
#[cfg(feature = "nftables")]
pub mod nftables;
mod present;
mod scheduling;
mod summary;

#[cfg(all(test, any(feature = "nftables", feature = "ipvs")))]
#[path = "../tests/it/manifests/mod.rs"]
mod manifests;

pub use addresses::{connected_networks, interface_addresses};
pub use backend::{Backend, IsOurs, Object, TableChange};
pub use cleaned::Cleaned;
pub use error::{Error, UnknownName};
#[cfg(all(feature = "nftables", feature = "ipvs"))]
pub use leftovers::{present_in_other_modes, remove_other_modes};
pub use masquerade::MasqueradeBit;
pub use mode::Mode;
pub use present::{Loss, Present};
pub use summary::{Change, Found, Measure, Summary, Verb};
