//! What the run loop tells of itself: the hook for health checks and metrics.

use std::time::{Duration, Instant, SystemTime};

use crate::Error;
use crate::apply::Synced;
use crate::model::{Cluster, Family, ServiceName};

/// Is told what the run loop does. Every method does nothing unless it is written.
///
/// The methods are called from the loop's thread, between its steps: what takes long belongs elsewhere.
pub trait Observer: Send + Sync {
    /// Changes were queued that are not programmed yet: `cluster` has them. Called also when some wait already.
    fn queued(&self, now: Instant, cluster: &Cluster) {
        let _ = (now, cluster);
    }

    /// A sync is about to begin.
    fn syncing(&self, now: Instant) {
        let _ = now;
    }

    /// A sync succeeded. Services that the kernel refuses alone are in [`SyncReport::refused`]; all else is programmed.
    fn synced(&self, report: &SyncReport) {
        let _ = report;
    }

    /// A sync failed as a whole; it is tried again after the retry interval.
    fn failed(&self, error: &Error) {
        let _ = error;
    }

    /// What services there are now: after each sync that succeeded, and when this node changed.
    fn services(&self, cluster: &Cluster) {
        let _ = cluster;
    }

    /// A source has a problem, which it goes on trying to mend.
    fn trouble(&self, trouble: &str) {
        let _ = trouble;
    }
}

/// The observer that does not look.
impl Observer for () {}

/// One sync that succeeded.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SyncReport {
    /// When it began.
    pub began: Instant,
    /// When the oldest change that it programmed was queued; none for a sync that only looked after things.
    pub queued: Option<Instant>,
    /// How long it took.
    pub took: Duration,
    /// It compared everything with what the kernel holds, and did not only follow what changed.
    pub is_full: bool,
    /// How many services there are.
    pub services: usize,
    /// How many of them changed since the last sync.
    pub changed: usize,
    /// Among those that changed is a service with a UDP port: connection tracking may hold stale flows.
    pub concerns_udp: bool,
    /// When the events happened that led to the endpoints it programmed, see [`Change::triggers`](crate::model::Change::triggers).
    pub triggers: Vec<(Family, SystemTime)>,
    /// What was sent to the kernel.
    pub sent: Sent,
    /// The services that the kernel refused, each with its error; all others work.
    pub refused: Vec<(ServiceName, String)>,
}

/// What a sync sent, by the mode.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Sent {
    /// By netlink to `nf_tables`.
    Nftables(Synced),
    /// Through `iptables-restore`.
    Iptables(crate::apply::iptables::Synced),
}
