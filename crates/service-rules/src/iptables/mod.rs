//! Services by iptables: kube-proxy's chains in the tables filter and nat, without a program of iptables.
//!
//! [`Settings`] are the operator's configuration, [`Planner`] computes the lines of `iptables-restore` for a
//! cluster in one family, [`Applier`] carries them out in the kernel through [`Tables`], and [`Synced`] is the
//! result of a sync. As a [`Backend`](crate::Backend) it has the measures [`RULES`], [`RULES_WRITTEN`] and
//! [`CHANGES_REFUSED`].
//!
//! # How it works
//!
//! * The planner writes every rule as kube-proxy does, in the order of service names. Each family has a
//!   planner.
//! * A service's own chains are compared by `sluicegate_iptables_save::diff` with what was planned before.
//!   In chains that services share, rules are deleted by their words, so that a chain which somebody else
//!   has changed leads to a refusal instead of the loss of a foreign rule, and inserted by position, which
//!   the planner counts. After a refusal everything is compared.
//! * What the kernel lacks is a [`Feature`], which says what the rules are without it. The probe puts rules
//!   into a scratch chain. Only what the kernel says that it has not is missing: any other failure fails the
//!   sync. What is missing is asked for again whenever everything is compared,
//!   and what guards traffic ([`Feature::unguarded`]) is an error state of the sync
//!   ([`FamilySynced::faults`]) as long as it is missing. The counters of nfacct are made by netlink before
//!   rules name them.
//! * Jumps from built-in chains, the rule in the kubelet's chain and canaries are not part of the planner's
//!   input: they stand among the rules of others, and are only ever added or deleted one by one.
//!
//! # The back end
//!
//! The kernel has two: `ip_tables` (legacy) and `nf_tables`. Rules belong into the one that the kubelet and
//! other programs of the node use, as none sees the rules of the other, and packets pass both. [`choose`]
//! looks for it, as the scripts in kube-proxy's image do; whoever knows better says so when opening an
//! applier. A sync reports rules of a service proxy in the other one.
//!
//! # Rights
//!
//! `CAP_NET_ADMIN` and `CAP_NET_RAW` in the network namespace are enough. The lock of the legacy back end is a
//! file that only root may open; another user sets `XTABLES_LOCKFILE` to one that all who use iptables share.

mod applier;
mod change;
pub mod counters;
mod fixed;
mod host;
mod jumps;
mod planner;
mod port;
mod present;
mod probe;
mod programmed;
mod settings;
mod support;
mod synced;
mod table_change;
mod tables;
mod words;

pub use applier::{Applier, cleanup, cleanup_except};
pub use fixed::{CANARY, CANARY_TABLES, FIREWALL, INVALID_COUNTER, Jump, LOCALHOST_COUNTER, is_ours, jumps};
pub use planner::{Planner, RuleCounts, tool_family};
pub use present::present;
pub use settings::Settings;
pub use sluicegate_xtables::BackEnd;
pub use support::{Feature, Support};
pub use synced::{CHANGES_REFUSED, FamilySynced, RULES, RULES_WRITTEN, Synced};
pub use table_change::is_touched;
pub use tables::{Generation, Tables, choose, open};

#[cfg(feature = "ipvs")]
pub(crate) use applier::{TRUSTED, iptables, rules, text_len};
#[cfg(feature = "ipvs")]
pub(crate) use change::{chain, rule, table};
#[cfg(feature = "ipvs")]
pub(crate) use jumps::{change_jumps, removal, take_jumps};
#[cfg(feature = "ipvs")]
pub(crate) use tables::open_used;
