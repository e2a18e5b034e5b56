//! The daemon: programs the objects of a source into the kernel, and keeps them there until it is stopped.
//!
//! [`Loop`] is fed with the [`Update`]s of a source and with [`Signal`]s, and drives one
//! [`Backend`](sluicegate_service_rules::Backend):
//!
//! - Nothing is programmed before all Services and all EndpointSlices were listed once.
//! - [`Schedule`] decides when to sync: changes together, not too often, again after a failure.
//! - Changes of other programs to our tables arrive as events of `nf_tables` ([`Commits`]) and are repaired;
//!   in iptables mode the canaries are looked for every sync period.
//! - A service that the kernel refuses is left out, reported, and retried later; the others work.
//! - Stopping leaves all rules in place: connections go on, and the next start changes only what differs.
//!
//! An [`Observer`] is called for each step, for health checks and metrics.

mod commits;
mod engine;
mod error;
mod heartbeat;
mod lock;
mod observer;
mod repeats;
mod schedule;
mod world;

pub use commits::{Commits, Foreign};
pub use engine::{Inspection, Lint, Loop, Signal};
pub use error::Error;
pub use heartbeat::Heartbeat;
pub use lock::Lock;
pub use observer::{Observer, SyncReport};
pub use schedule::{Intervals, Job, Outcome, Schedule};
pub use world::{Effect, Snapshot, ThisNode, World};

#[cfg(doc)]
use crate::source::update::Update;
