//! The rules of other modes, removed once those of this one work.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use sluicegate_proxier::Mode;
use sluicegate_proxier::run::{Observer, SyncReport};
use sluicegate_service_rules::{Present, present_in_other_modes, remove_other_modes};
use sluicegate_services::Cluster;

/// Removes what other modes left after the first sync, so that services are answered all the while.
#[derive(Debug)]
pub(super) struct Leftovers {
    running: Mode,
    /// Whether they stay while most of what they serve is missing in the cluster.
    is_guarded: bool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Whether this mode has programmed anything.
    is_programmed: bool,
    is_done: bool,
    /// What the others serve while they stay, and when that was listed.
    listed: Option<(Instant, Result<Present, String>)>,
    /// Why they stay, as it was told.
    told: Option<String>,
}

impl Leftovers {
    pub(super) fn new(running: Mode, is_guarded: bool) -> Self {
        Self { running, is_guarded, state: Mutex::default() }
    }

    /// Returns why the rules of other modes have to stay for now.
    fn obstacle(&self, state: &mut State, cluster: &Cluster) -> Option<String> {
        // Syncs may come often, and listing takes long where there are many rules.
        state.listed.take_if(|(at, _)| at.elapsed() >= LIST_EVERY);
        let list = || present_in_other_modes(self.running).map_err(|error| error.to_string());
        let (_, listed) = state.listed.get_or_insert_with(|| (Instant::now(), list()));
        let reason = match listed {
            Ok(present) => present.lost_in(cluster)?.to_string(),
            Err(error) => error.clone(),
        };
        Some(format!(
            "what another mode than {} may have left stays in use for now, beside what is programmed: {reason}; \
             --allow-empty removes it",
            self.running
        ))
    }

    fn remove(&self) {
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

impl Observer for Leftovers {
    fn synced(&self, _: &SyncReport) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).is_programmed = true;
    }

    fn services(&self, cluster: &Cluster) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if !state.is_programmed || state.is_done {
            return;
        }
        if self.is_guarded
            && let Some(obstacle) = self.obstacle(&mut state, cluster)
        {
            if state.told.as_ref() != Some(&obstacle) {
                tracing::warn!("{obstacle}");
                state.told = Some(obstacle);
            }
            return;
        }
        state.is_done = true;
        state.listed = None;
        self.remove();
    }
}

/// The least time between two lists of what other modes serve.
const LIST_EVERY: Duration = Duration::from_secs(5);
