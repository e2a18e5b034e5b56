//! Callbacks of the run loop, for health checks and metrics.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use sluicegate_conntrack::stale::Report;
use sluicegate_service_rules::{Error, Summary};
use sluicegate_services::{Cluster, Conflict, Family, ServiceName};

use crate::source::update::Kind;

/// Callbacks of the run loop. Every method does nothing by default.
///
/// The loop calls the methods on its own thread, between its steps, so they must return quickly.
pub trait Observer: Send + Sync {
    /// Called when changes are queued. `cluster` includes them, the kernel does not yet. Called also when
    /// others are queued already.
    fn queued(&self, now: Instant, cluster: &Cluster) {
        let _ = (now, cluster);
    }

    /// Called when a sync is about to begin.
    fn syncing(&self, now: Instant) {
        let _ = now;
    }

    /// Called when a sync succeeded. [`SyncReport::refused`] has the services that the kernel refuses; all
    /// others are programmed.
    fn synced(&self, report: &SyncReport) {
        let _ = report;
    }

    /// Called when a sync failed as a whole. It is retried after the retry interval.
    fn failed(&self, error: &Error) {
        let _ = error;
    }

    /// Called when the stale UDP flows of a family were removed, with the time that took.
    fn flows(&self, family: Family, report: &Report, took: Duration) {
        let _ = (family, report, took);
    }

    /// Called with all services after each sync that succeeded, and when this node changed.
    fn services(&self, cluster: &Cluster) {
        let _ = cluster;
    }

    /// Called when all objects of a kind were read, at the start or anew.
    fn listed(&self, kind: Kind) {
        let _ = kind;
    }

    /// Called when another program changed our tables, or may have, so that everything is compared.
    fn disturbed(&self) {}

    /// Called when other files than before cannot be used, with all that cannot be, and the reasons.
    fn unusable(&self, files: &[String]) {
        let _ = files;
    }

    /// Called for each frontend that a service claims in vain since the last sync.
    fn conflict(&self, conflict: &Conflict) {
        let _ = conflict;
    }

    /// Called when something is wrong with the objects of a service, or probably not meant. The same text is
    /// given to [`warning`](Self::warning).
    fn concerns(&self, service: &ServiceName, problem: &str) {
        let _ = (service, problem);
    }

    /// Called when a source has a problem. The source keeps retrying.
    fn warning(&self, warning: &str) {
        let _ = warning;
    }
}

/// The observer that ignores everything.
impl Observer for () {}

/// Several observers, called in order.
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

    fn listed(&self, kind: Kind) {
        self.iter().for_each(|observer| observer.listed(kind));
    }

    fn disturbed(&self) {
        self.iter().for_each(|observer| observer.disturbed());
    }

    fn unusable(&self, files: &[String]) {
        self.iter().for_each(|observer| observer.unusable(files));
    }

    fn conflict(&self, conflict: &Conflict) {
        self.iter().for_each(|observer| observer.conflict(conflict));
    }

    fn concerns(&self, service: &ServiceName, problem: &str) {
        self.iter().for_each(|observer| observer.concerns(service, problem));
    }

    fn warning(&self, warning: &str) {
        self.iter().for_each(|observer| observer.warning(warning));
    }
}

/// One sync that succeeded.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SyncReport {
    /// When the sync began.
    pub began: Instant,
    /// When the oldest change that it programmed was queued. `None` for a sync without changes.
    pub queued: Option<Instant>,
    /// How long the sync took.
    pub took: Duration,
    /// Whether it compared everything with the kernel, not only what changed.
    pub is_full: bool,
    /// The number of services.
    pub services: usize,
    /// The number of services that changed since the last sync.
    pub changed: usize,
    /// Whether a service that changed has a UDP port, so that connection tracking may have stale flows.
    pub concerns_udp: bool,
    /// The times of the events that led to the endpoints it programmed: see
    /// [`Change::triggers`](sluicegate_services::Change::triggers).
    pub triggers: Vec<(Family, SystemTime)>,
    /// What was sent to the kernel.
    pub sent: Summary,
    /// The services that the kernel refused, each with its error.
    pub refused: Vec<(ServiceName, String)>,
}

impl fmt::Display for SyncReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = if self.services == 1 { "" } else { "s" };
        write!(f, "{} service{plural}, {} changed: {}", self.services, self.changed, self.sent)?;
        if !self.refused.is_empty() {
            write!(f, "; {} refused by the kernel", self.refused.len())?;
        }
        write!(f, "; took {:.1?}", self.took)
    }
}
