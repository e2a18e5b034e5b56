//! What the run loop tells of itself: the hook for health checks and metrics.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use sluicegate_conntrack::reconcile::Report;

use crate::Error;
use crate::apply::ipvs::FamilySynced;
use crate::apply::{Found, Synced};
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

    /// The UDP flows of one family that a sync made stale were removed, which took so long.
    fn flows(&self, family: Family, report: &Report, took: Duration) {
        let _ = (family, report, took);
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

/// Several observers, told one after the other.
impl Observer for Vec<Arc<dyn Observer>> {
    fn queued(&self, now: Instant, cluster: &Cluster) {
        self.iter().for_each(|observer| observer.queued(now, cluster));
    }

    fn syncing(&self, now: Instant) {
        self.iter().for_each(|observer| observer.syncing(now));
    }

    fn synced(&self, report: &SyncReport) {
        self.iter().for_each(|observer| observer.synced(report));
    }

    fn failed(&self, error: &Error) {
        self.iter().for_each(|observer| observer.failed(error));
    }

    fn flows(&self, family: Family, report: &Report, took: Duration) {
        self.iter().for_each(|observer| observer.flows(family, report, took));
    }

    fn services(&self, cluster: &Cluster) {
        self.iter().for_each(|observer| observer.services(cluster));
    }

    fn trouble(&self, trouble: &str) {
        self.iter().for_each(|observer| observer.trouble(trouble));
    }
}

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

impl fmt::Display for SyncReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} services, {} changed: {}", self.services, self.changed, self.sent)?;
        if !self.refused.is_empty() {
            write!(f, "; {} refused by the kernel", self.refused.len())?;
        }
        write!(f, "; took {:.1?}", self.took)
    }
}

/// What a sync sent, by the mode.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Sent {
    /// By netlink to `nf_tables`.
    Nftables(Synced),
    /// Through `iptables-restore`.
    Iptables(crate::apply::iptables::Synced),
    /// By netlink to ipset, IPVS and rtnetlink, and through `iptables-restore`.
    Ipvs(crate::apply::ipvs::Synced),
}

impl Sent {
    /// Everything was compared with what the kernel holds, or replaced.
    #[must_use]
    pub fn is_full(&self) -> bool {
        match self {
            Self::Nftables(synced) => synced.found != Found::Changed,
            Self::Iptables(synced) => synced.families.iter().any(|family| family.found != Found::Changed),
            Self::Ipvs(synced) => synced.families.iter().any(|family| family.found != Found::Changed),
        }
    }

    /// There was nothing to send.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        match self {
            Self::Nftables(synced) => synced.batches == 0,
            Self::Iptables(synced) => synced.families.iter().all(|family| family.bytes == 0),
            Self::Ipvs(synced) => synced.families.iter().all(FamilySynced::is_unchanged),
        }
    }

    /// What is not as it should be, and what that means.
    pub(super) fn notices(&self) -> Vec<String> {
        match self {
            Self::Nftables(_) | Self::Ipvs(_) => Vec::new(),
            Self::Iptables(synced) => synced.notices().collect(),
        }
    }
}

impl fmt::Display for Sent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nftables(synced) => synced.fmt(f),
            Self::Iptables(synced) => synced.fmt(f),
            Self::Ipvs(synced) => synced.fmt(f),
        }
    }
}
