//! Services by iptables: kube-proxy's chains in the tables filter and nat, through `iptables-restore
//! --noflush`.
//!
//! [`Settings`] are the operator's configuration, [`Planner`] computes input for a cluster in one family,
//! [`Applier`] runs the tools of the families, and [`Synced`] is the result of a sync. As a
//! [`Backend`](crate::Backend) it has the measures [`RULES`], [`RULES_WRITTEN`] and [`CHANGES_REFUSED`].
//!
//! # How it works
//!
//! * The planner writes every rule as kube-proxy does, in the order of service names. Each family has a
//!   planner.
//! * A service's own chains are compared by `sluicegate_iptables_save::diff` with what was planned before.
//!   In chains that services share, rules are deleted by their words, so that a chain which somebody else
//!   has changed makes the tool refuse instead of deleting a foreign rule, and inserted by position, which
//!   the planner counts. A refusal leads to a comparison with `iptables-save`.
//! * What tool or kernel lacks is a `Feature`, which says what the rules are without it. `--test` does not
//!   ask the kernel, so the probe puts rules into a scratch chain. Only a tool that says so lacks something:
//!   any other failure fails the sync. What is missing is asked for again whenever everything is compared,
//!   and what guards traffic ([`Feature::unguarded`]) is an error state of the sync
//!   ([`FamilySynced::faults`]) as long as it is missing. The counters of nfacct are made by netlink before
//!   rules name them.
//! * Jumps from built-in chains, the rule in the kubelet's chain and canaries are not part of the planner's
//!   input: they stand among the rules of others, and are only ever added or deleted one by one.
//!
//! # Rights
//!
//! `CAP_NET_ADMIN` and `CAP_NET_RAW` in the network namespace are enough. The legacy tools take a lock of a
//! file that only root may open; another user sets `XTABLES_LOCKFILE` to one that all who use iptables share.

mod applier;
mod change;
pub mod counters;
mod fixed;
mod host;
mod jumps;
mod planner;
mod port;
mod probe;
mod settings;
mod support;
mod synced;
mod words;

pub use applier::{Applier, all_tools};
pub use fixed::{CANARY, CANARY_TABLES, FIREWALL, INVALID_COUNTER, Jump, LOCALHOST_COUNTER, is_ours, jumps};
pub use planner::{Planner, RuleCounts, tool_family};
pub use settings::Settings;
pub use support::{Feature, Support};
pub use synced::{CHANGES_REFUSED, FamilySynced, RULES, RULES_WRITTEN, Synced};

#[cfg(feature = "ipvs")]
pub(crate) use applier::{HOW, TRUSTED, find_tool, iptables};
#[cfg(feature = "ipvs")]
pub(crate) use change::{chain, rule, table};
#[cfg(feature = "ipvs")]
pub(crate) use jumps::{change_jumps, list, removal, take_jumps};
#[cfg(feature = "ipvs")]
pub(crate) use synced::back_end;
