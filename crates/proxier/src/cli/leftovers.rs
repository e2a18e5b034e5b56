//! The rules of other modes, removed once those of this one work.

use std::sync::atomic::{AtomicBool, Ordering};

use sluicegate_proxier::Mode;
use sluicegate_proxier::run::{Observer, SyncReport};
use sluicegate_service_rules::remove_other_modes;

/// Removes what other modes left after the first sync, so that services are answered all the while.
#[derive(Debug)]
pub(super) struct Leftovers {
    running: Mode,
    is_done: AtomicBool,
}

impl Leftovers {
    pub(super) const fn new(running: Mode) -> Self {
        Self { running, is_done: AtomicBool::new(false) }
    }
}

impl Observer for Leftovers {
    fn synced(&self, _: &SyncReport) {
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
