//! The rules of other modes, removed once those of this one work.

use std::sync::atomic::{AtomicBool, Ordering};

use sluicegate_proxier::Mode;
use sluicegate_proxier::run::{Observer, SyncReport};
use sluicegate_service_rules::remove_other_modes;

/// Removes what other modes left after the first sync, so that services are answered all the while.
#[derive(Debug)]
pub(super) struct Leftovers {
    running: Mode,
    /// Whether nothing is removed while there is no service.
    is_guarded: bool,
    is_told: AtomicBool,
    is_done: AtomicBool,
}

impl Leftovers {
    pub(super) const fn new(running: Mode, is_guarded: bool) -> Self {
        let (is_told, is_done) = (AtomicBool::new(false), AtomicBool::new(false));
        Self { running, is_guarded, is_told, is_done }
    }
}

impl Observer for Leftovers {
    fn synced(&self, report: &SyncReport) {
        if self.is_guarded && report.services == 0 {
            if !self.is_told.swap(true, Ordering::Relaxed) {
                tracing::warn!(
                    "there is no service among the manifests: what another mode than {} may have left stays for now; \
                     --allow-empty removes it",
                    self.running
                );
            }
            return;
        }
        if self.is_done.swap(true, Ordering::Relaxed) {
            return;
        }
        let cleaned = remove_other_modes(self.running);
        for what in &cleaned.removed {
            tracing::warn!("removed what another mode than {} had left: {what}", self.running);
        }
        for error in &cleaned.failed {
            tracing::warn!(
                "what another mode than {} may have left is still there, and goes on sending connections: {error}; \
                 `sluicegate-proxier cleanup` removes everything",
                self.running
            );
        }
    }
}
