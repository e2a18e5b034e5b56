//! Services by IPVS: virtual servers, ipsets and addresses over netlink, and a handful of iptables rules.
//!
//! [`Settings`] are the operator's configuration, [`Planner`] computes a [`Change`] for a cluster in one
//! family, [`Applier`] applies it, and [`Synced`] is the result of a sync.
//!
//! # How it works
//!
//! * The planner plans seventeen sets, virtual servers, addresses and rules of one family. Each entry has a
//!   count of the service ports that need it, so that the cost of a change depends on the changed services.
//!   The parts of a `Change` are in the order in which they are applied.
//! * Our own chains of iptables are written completely when everything is compared (at the start, each hour,
//!   after a failure), through [`Tables`](crate::iptables::Tables); the jumps among the rules of others are
//!   looked for.
//! * Addresses are changed by `sluicegate-netlink`, not by the crate `rtnetlink`: many in a message, without
//!   a runtime, and with a number of round trips that a test can count.
//! * A sync treats virtual servers outside of the excluded CIDRs as ours, as kube-proxy does; `cleanup`
//!   removes only those that our sets and our device name.

mod applier;
mod change;
mod cleanup;
mod kernel;
mod links;
mod planner;
mod port;
mod present;
mod restore;
mod rules;
mod set;
mod settings;
mod synced;
mod wanted;

pub use applier::{Applier, Transports};
pub use change::{Change, Script};
pub use cleanup::{cleanup, cleanup_beside_iptables, connections};
pub use planner::Planner;
pub use present::present;
pub use rules::{is_ours, is_ours_alone, jumps};
pub use set::Set;
pub use settings::{ConnectionTimeouts, Settings};
pub use synced::{FamilySynced, Synced};

/// The dummy device that has the addresses of services. It stays down: local addresses need no link.
pub const DEVICE: &str = "kube-ipvs0";
