//! The rules of other modes, removed once those of this one work.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use sluicegate_proxier::Mode;
use sluicegate_proxier::config::format_duration;
use sluicegate_proxier::run::{Observer, SyncReport};
use sluicegate_service_rules::{
    Error as RulesError, Present, ipvs, present_in_other_modes, remove_other_modes,
};
use sluicegate_services::Cluster;

/// Removes what other modes left after the first sync, so that services are answered all the while.
#[derive(Debug)]
pub(super) struct Leftovers {
    running: Mode,
    /// Whether they stay while most of what they serve is missing in the cluster.
    is_guarded: bool,
    /// How long connections of IPVS are waited for.
    drain: Duration,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Whether this mode has programmed anything.
    is_programmed: bool,
    is_done: bool,
    /// Since when connections of IPVS are waited for.
    draining: Option<Instant>,
    /// When they were last counted.
    counted: Option<Instant>,
    /// What the others serve while they stay, and when that was listed.
    listed: Option<(Instant, Result<Present, RulesError>)>,
    /// Why they stay, as it was last told.
    told: Option<String>,
}

impl State {
    /// Warns, unless the same was told last.
    fn warn(&mut self, text: String) {
        if self.told.as_ref() != Some(&text) {
            tracing::warn!("{text}");
            self.told = Some(text);
        }
    }
}

impl Leftovers {
    pub(super) fn new(running: Mode, is_guarded: bool, drain: Duration) -> Self {
        Self { running, is_guarded, drain, state: Mutex::default() }
    }

    /// Removes them once the connections of IPVS have ended.
    fn finish(&self, state: &mut State) {
        if self.drains(state) {
            return;
        }
        state.is_done = true;
        state.listed = None;
        self.remove();
    }

    /// Returns whether connections of IPVS are left to wait for: they end with its virtual servers. New ones are
    /// translated by the rules that stand now, which come before its hooks.
    fn drains(&self, state: &mut State) -> bool {
        if self.drain.is_zero() {
            return false;
        }
        let is_first = state.draining.is_none();
        let is_over = state.draining.get_or_insert_with(Instant::now).elapsed() >= self.drain;
        // Syncs may come often, and each virtual server is asked for its destinations.
        if !is_over && state.counted.is_some_and(|at| at.elapsed() < LIST_EVERY) {
            return true;
        }
        state.counted = Some(Instant::now());
        let (most, connections) = (format_duration(self.drain), ipvs::connections());
        match (connections, is_over) {
            (Ok(0), _) => return false,
            (Ok(left), false) if is_first => tracing::info!(
                "IPVS has {left} connections: what ipvs mode left stays until they have ended, {most} at most"
            ),
            (Err(error), false) => state.warn(format!(
                "the connections of IPVS cannot be counted, so that what ipvs mode left stays for all of \
                 --ipvs-drain {most}: {error}"
            )),
            (Ok(left), true) => {
                tracing::warn!("{left} connections of IPVS are ended: --ipvs-drain {most} is over");
            }
            (Ok(_), false) | (Err(_), true) => {}
        }
        !is_over
    }

    /// Returns why the rules of other modes have to stay for now.
    fn obstacle(&self, state: &mut State, cluster: &Cluster) -> Option<String> {
        // Syncs may come often, and listing takes long where there are many rules.
        state.listed.take_if(|(at, _)| at.elapsed() >= LIST_EVERY);
        let list = || present_in_other_modes(self.running);
        let (_, listed) = state.listed.get_or_insert_with(|| (Instant::now(), list()));
        let reason = match listed {
            Ok(present) => present.lost_in(cluster)?.to_string(),
            Err(error) => error.to_string(),
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
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.is_programmed = true;
        // Syncs come from time to time, also where no service changes.
        if state.draining.is_some() && !state.is_done {
            self.finish(&mut state);
        }
    }

    fn services(&self, cluster: &Cluster) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if !state.is_programmed || state.is_done || state.draining.is_some() {
            return;
        }
        if self.is_guarded
            && let Some(obstacle) = self.obstacle(&mut state, cluster)
        {
            return state.warn(obstacle);
        }
        self.finish(&mut state);
    }
}

/// The least time between two lists of what other modes serve, and between two of connections.
const LIST_EVERY: Duration = Duration::from_secs(5);
