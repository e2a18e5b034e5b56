//! Finds the services for which the kernel refuses a change, where its error does not name them.
//!
//! The changed services are taken out, and then let in again by halves. Only what changed since the last sync that succeeded is
//! touched, so that everything else goes on working meanwhile; at the start, when that would be everything, nobody is
//! looked for.

use std::time::Instant;

use super::Loop;
use crate::Error;
use crate::model::ServiceName;
use crate::run::observer::Sent;

impl Loop {
    /// Programs all but the culprits of `refusal`, which are held back and named.
    ///
    /// # Errors
    /// The refusal itself, when it is not for the sake of services that changed.
    pub(super) fn isolate(&mut self, refusal: Error, now: Instant) -> Result<Sent, Error> {
        let changed = self.unprogrammed.services.iter();
        let suspects: Vec<_> =
            changed.filter(|name| self.world.cluster().service(name).is_some()).cloned().collect();
        if suspects.is_empty() {
            return Err(refusal);
        }
        tracing::warn!("{refusal}; looking for the culprit among {} services that changed", suspects.len());
        suspects.iter().for_each(|name| self.world.set_aside(name, now));
        if self.trial(now).is_err() {
            // It is none of them. What is wrong with the rest is for the next try.
            suspects.iter().for_each(|name| self.world.put_on_trial(name));
            self.world.accepted();
            return Err(refusal);
        }
        let mut trials = MOST_TRIALS;
        self.admit(&suspects, &mut trials, now);
        self.trial(now)
    }

    /// Lets a group in again, by halves where it is refused as a whole.
    fn admit(&mut self, group: &[ServiceName], trials: &mut u32, now: Instant) {
        let Some(left) = trials.checked_sub(1) else { return };
        *trials = left;
        group.iter().for_each(|name| self.world.put_on_trial(name));
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

    fn trial(&mut self, now: Instant) -> Result<Sent, Error> {
        let changes = self.world.take_changes();
        self.unprogrammed.add(&changes, self.world.cluster());
        self.backend.sync(self.world.cluster(), &changes, now)
    }
}

/// As many syncs at most for one search; who is left then waits with the culprits for the next one.
const MOST_TRIALS: u32 = 64;
