//! Finds the services for which the kernel refuses a change, where its error does not name them.
//!
//! The changed services are left out, and then added again by halves. Only services that changed since the
//! last sync that succeeded are touched, so that all others work meanwhile. At the start, when that would be
//! every service, there is no search.

use std::time::Instant;

use sluicegate_service_rules::{Error, Summary};
use sluicegate_services::ServiceName;

use super::Loop;

impl Loop {
    /// Programs all services but those that caused `refusal`, which are left out and reported.
    ///
    /// # Errors
    /// The refusal itself, when no service that changed caused it.
    pub(super) fn isolate(&mut self, refusal: Error, now: Instant) -> Result<Summary, Error> {
        let changed = self.unprogrammed.services.iter();
        let suspects: Vec<_> =
            changed.filter(|name| self.world.cluster().service(name).is_some()).cloned().collect();
        if suspects.is_empty() {
            return Err(refusal);
        }
        tracing::warn!(
            "{refusal}; searching the {} services that changed for the one that is refused",
            suspects.len()
        );
        suspects.iter().for_each(|name| self.world.set_aside(name, now));
        if self.trial(now).is_err() {
            // None of them is the cause. The next sync reports the error again.
            suspects.iter().for_each(|name| self.world.readmit(name));
            self.world.accepted();
            return Err(refusal);
        }
        let mut trials = MOST_TRIALS;
        self.admit(&suspects, &mut trials, now);
        self.trial(now)
    }

    /// Adds a group of services again, by halves when it is refused as a whole.
    fn admit(&mut self, group: &[ServiceName], trials: &mut u32, now: Instant) {
        let Some(left) = trials.checked_sub(1) else { return };
        *trials = left;
        group.iter().for_each(|name| self.world.readmit(name));
        match (self.trial(now), group) {
            (Ok(_), _) => self.world.accepted(),
            (Err(error), [culprit]) => {
                tracing::error!("service {culprit} is left out: {error}");
                self.world.refuse(culprit, error.to_string(), self.intervals.sync, now);
            }
            (Err(_), _) => {
                group.iter().for_each(|name| self.world.set_aside(name, now));
                let (first, second) = group.split_at(group.len() / 2);
                self.admit(first, trials, now);
                self.admit(second, trials, now);
            }
        }
    }

    fn trial(&mut self, now: Instant) -> Result<Summary, Error> {
        let changes = self.world.take_changes();
        self.unprogrammed.add(&changes, self.world.cluster());
        self.former.add(&changes, self.world.cluster());
        self.backend.sync(self.world.cluster(), &changes, now)
    }
}

/// The most syncs in one search. Services that are left then are retried later, with the refused ones.
const MOST_TRIALS: u32 = 64;
