//! The daemon: keeps the kernel where the objects of a source say, until it is told to stop.
//!
//! [`Loop`] is fed with the [`Update`]s of a source and with [`Signal`]s, and drives one [`Backend`]:
//!
//! - Nothing is programmed before all Services and all EndpointSlices have been heard of once.
//! - [`Schedule`] decides when to sync: changes together, not too often, again after a failure.
//! - What others change in our tables is heard of through the events of `nf_tables` ([`Commits`]) and mended; in iptables mode the
//!   canaries are looked for every sync period.
//! - A service that the kernel refuses is held back, named, and tried again later; the others work.
//! - Stopping leaves everything in place: connections go on, and the next start compares and changes what differs.
//!
//! An [`Observer`] is told of all of it, for health checks and metrics.

mod backend;
mod commits;
mod engine;
mod lock;
mod observer;
mod schedule;
mod world;

pub use backend::Backend;
pub use commits::{Commits, Foreign};
pub use engine::{Loop, Signal};
pub use lock::Lock;
pub use observer::{Observer, Sent, SyncReport};
pub use schedule::{Intervals, Job, Outcome, Schedule};
pub use world::{Effect, ThisNode, World};

#[cfg(doc)]
use crate::source::update::Update;
