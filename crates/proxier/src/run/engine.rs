//! The loop itself: waits for news, signals, other programs' commits and the time, and syncs.

mod isolate;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use tokio::sync::mpsc::Receiver;

use super::backend::Backend;
use super::commits::{Commits, Foreign};
use super::observer::{Observer, Sent, SyncReport};
use super::schedule::{Intervals, Job, Outcome, Schedule};
use super::world::World;
use crate::Error;
use crate::apply::conntrack::Scope;
use crate::model::{Changes, Cluster, Family, ServiceName};
use crate::source::update::Update;

/// What the operator tells a running proxier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// Stop, and leave all rules in place.
    Stop,
    /// Compare everything with what the kernel holds, and try again what was refused.
    Resync,
}

/// Keeps the kernel where the updates of a source say.
pub struct Loop {
    world: World,
    backend: Box<dyn Backend>,
    observer: Arc<dyn Observer>,
    schedule: Schedule,
    intervals: Intervals,
    commits: Option<Commits>,
    /// What changed since the last sync that succeeded.
    unprogrammed: Unprogrammed,
    /// Flows have to be looked for among all services: some clean-up failed, or there was none yet.
    all_flows: bool,
    /// A sync has succeeded, so that what is in the kernel is ours and known to work.
    was_programmed: bool,
    is_ready: bool,
}

/// What a report has to say of several attempts.
#[derive(Debug, Default)]
struct Unprogrammed {
    services: BTreeSet<ServiceName>,
    concerns_udp: bool,
    triggers: Vec<(Family, SystemTime)>,
}

impl std::fmt::Debug for Loop {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Loop").field("schedule", &self.schedule).finish_non_exhaustive()
    }
}

impl Loop {
    /// A loop that has not begun.
    ///
    /// # Errors
    /// [`Error::Flag`] when the intervals contradict each other.
    pub fn new(
        world: World,
        backend: Box<dyn Backend>,
        intervals: Intervals,
        observer: Arc<dyn Observer>,
    ) -> Result<Self, Error> {
        intervals.check()?;
        Ok(Self {
            world,
            backend,
            observer,
            schedule: Schedule::new(intervals),
            intervals,
            commits: None,
            unprogrammed: Unprogrammed::default(),
            all_flows: true,
            was_programmed: false,
            is_ready: false,
        })
    }

    /// Tells this one as well.
    #[must_use]
    pub fn observed_by(mut self, other: Option<Arc<dyn Observer>>) -> Self {
        if let Some(other) = other {
            self.observer = Arc::new(vec![self.observer, other]);
        }
        self
    }

    /// Runs until it is told to stop. Rules stay in place, however it ends.
    ///
    /// A sync blocks the thread that polls this: use `block_on` of a runtime whose other tasks have threads of their own. The backend's
    /// sockets belong to the network namespace of the thread that opened them, so this must be polled there.
    ///
    /// # Errors
    /// [`Error::SourceEnded`] when nobody is left to send updates. Whatever else fails is told and tried again.
    pub async fn run(
        mut self,
        mut updates: Receiver<Update>,
        mut signals: Receiver<Signal>,
    ) -> Result<(), Error> {
        let mut news = Vec::new();
        loop {
            let due = self.schedule.due();
            tokio::select! {
                biased;
                signal = signals.recv() => match signal {
                    Some(Signal::Resync) => self.resync(),
                    Some(Signal::Stop) | None => break,
                },
                count = updates.recv_many(&mut news, MOST_AT_ONCE) => {
                    if count == 0 {
                        return Err(Error::SourceEnded);
                    }
                    self.take(&mut news);
                }
                seen = next(&mut self.commits) => self.foreign(seen),
                () = until(due) => self.sync(),
            }
        }
        tracing::info!("stopped; all rules stay in place");
        Ok(())
    }

    /// Takes what a source tells.
    fn take(&mut self, news: &mut Vec<Update>) {
        let now = Instant::now();
        let (mut is_change, mut is_node) = (false, false);
        for update in news.drain(..) {
            if let Update::Trouble(trouble) = &update {
                tracing::warn!("{trouble}");
                self.observer.trouble(trouble);
            }
            let effect = self.world.apply(update);
            for problem in effect.problems {
                tracing::warn!("{problem}");
            }
            is_change |= effect.is_change;
            is_node |= effect.is_node;
        }
        if is_node {
            self.backend.set_node(self.world.cluster().node());
            self.observer.services(self.world.cluster());
        }
        if !self.world.is_complete() {
            return;
        }
        if !self.is_ready {
            self.is_ready = true;
            self.backend.set_node(self.world.cluster().node());
            is_change = true;
        }
        if is_change {
            self.observer.queued(now, self.world.cluster());
            self.schedule.request(now);
        }
    }

    fn resync(&mut self) {
        tracing::info!("told to compare everything with what the kernel holds");
        if self.is_ready {
            self.world.retry(Instant::now(), true);
            self.schedule.request_full(Instant::now());
        }
    }

    /// Takes what others did.
    fn foreign(&mut self, seen: Vec<Foreign>) {
        for foreign in seen {
            match foreign {
                Foreign::Elsewhere(generation) => self.backend.pass_over(generation),
                Foreign::Ours { by } => {
                    tracing::warn!("{by} changed our tables; mending them");
                    self.backend.distrust();
                    self.schedule.request_full(Instant::now());
                }
                Foreign::Lost(why) => {
                    tracing::warn!("changes of others may have been missed ({why}); comparing everything");
                    self.backend.distrust();
                    self.schedule.request_full(Instant::now());
                }
            }
        }
    }

    fn sync(&mut self) {
        if let Some(mut commits) = self.commits.take() {
            // Up to here we have heard; from here on the generation tells.
            self.foreign(commits.drain());
        }
        let began = Instant::now();
        let Some(job) = self.schedule.begin(began) else { return };
        if job.is_full {
            self.backend.distrust();
        }
        self.world.retry(began, job.is_full);
        self.observer.syncing(began);
        let outcome = match self.attempt(began) {
            Ok(sent) => {
                self.succeeded(job, began, sent);
                Outcome::Done
            }
            Err(error) => {
                tracing::error!("{error}");
                self.observer.failed(&error);
                Outcome::Failed
            }
        };
        self.schedule.end(Instant::now(), outcome);
        if self.backend.has_leftovers() {
            self.schedule.follow_up(Instant::now() + LEFTOVERS_AFTER);
        }
        self.listen();
    }

    /// Syncs; what is refused is left out until the rest succeeds.
    fn attempt(&mut self, now: Instant) -> Result<Sent, Error> {
        loop {
            let changes = self.world.take_changes();
            self.unprogrammed.add(&changes, self.world.cluster());
            let error = match self.backend.sync(self.world.cluster(), &changes, now) {
                Ok(sent) => {
                    self.clean_flows(&changes);
                    return Ok(sent);
                }
                Err(error) => error,
            };
            // What these changes made stale is looked for after a sync that succeeds.
            self.all_flows |= self.unprogrammed.concerns_udp;
            let mut is_news = false;
            for (name, why) in error.refused() {
                // One that is not in the cluster cannot be left out.
                if self.world.cluster().service(name).is_some() {
                    tracing::error!("service {name} is left out: {why}");
                    self.world.refuse(name, why.clone(), self.intervals.sync, now);
                    is_news = true;
                }
            }
            if !is_news {
                if !(self.was_programmed && error.is_refusal()) {
                    return Err(error);
                }
                let sent = self.isolate(error, now)?;
                self.clean_flows(&Changes::default());
                return Ok(sent);
            }
        }
    }

    /// Removes the flows to UDP endpoints that are no more. What fails is tried again after the next sync with a change.
    fn clean_flows(&mut self, changes: &Changes) {
        if !self.unprogrammed.concerns_udp {
            return;
        }
        let scope = if self.all_flows { Scope::All } else { Scope::Changed(changes) };
        self.all_flows = false;
        for family in Family::BOTH {
            let began = Instant::now();
            match self.backend.clean_flows(self.world.cluster(), scope, family) {
                Ok(None) => {}
                Ok(Some(report)) => {
                    tracing::debug!("stale UDP flows, {family}: {report:?}, took {:.1?}", began.elapsed());
                    self.observer.flows(family, &report, began.elapsed());
                }
                // Where nothing is tracked, nothing goes to the wrong endpoint.
                Err(error) if error.is_unsupported() => tracing::debug!("stale UDP flows, {family}: {error}"),
                Err(error) => {
                    self.all_flows = true;
                    tracing::warn!("stale UDP flows could not be removed, {family}: {error}");
                }
            }
        }
    }

    fn succeeded(&mut self, job: Job, began: Instant, sent: Sent) {
        self.world.accepted();
        self.was_programmed = true;
        let unprogrammed = std::mem::take(&mut self.unprogrammed);
        let cluster = self.world.cluster();
        let report = SyncReport {
            began,
            queued: job.queued,
            took: began.elapsed(),
            is_full: job.is_full || sent.is_full(),
            services: cluster.service_count(),
            changed: unprogrammed.services.len(),
            concerns_udp: unprogrammed.concerns_udp,
            triggers: unprogrammed.triggers,
            sent,
            refused: self.world.refused().map(|(name, why)| (name.clone(), why.to_owned())).collect(),
        };
        for notice in report.sent.notices() {
            tracing::warn!("{notice}");
        }
        let is_idle = !job.is_full && job.queued.is_none() && report.sent.is_nothing();
        if is_idle {
            tracing::debug!("{report}");
        } else {
            tracing::info!("{report}");
        }
        self.observer.synced(&report);
        self.observer.services(cluster);
    }

    /// Listens for commits from now on; one that came since the sync shows in the generation.
    fn listen(&mut self) {
        let commits = match self.backend.listen() {
            Ok(commits) => commits,
            Err(error) => {
                tracing::warn!("{error}; looking every {:?} instead", self.intervals.sync);
                None
            }
        };
        if commits.is_some() && !self.backend.is_current().unwrap_or(false) && self.schedule.is_content() {
            tracing::debug!("somebody committed to nf_tables during the sync; comparing everything");
            self.schedule.request_full(Instant::now());
        }
        self.commits = commits;
    }
}

impl Unprogrammed {
    fn add(&mut self, changes: &Changes, cluster: &Cluster) {
        self.services.extend(changes.names().cloned());
        self.concerns_udp |= changes.concerns_udp(cluster);
        self.triggers.extend(changes.iter().flat_map(|change| change.triggers().iter().copied()));
    }
}

/// The next commits of others; never where nobody listens.
async fn next(commits: &mut Option<Commits>) -> Vec<Foreign> {
    match commits {
        Some(commits) => commits.next().await,
        None => std::future::pending().await,
    }
}

async fn until(due: Option<Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due.into()).await,
        None => std::future::pending().await,
    }
}

/// As many updates are taken in before the time is looked at again.
const MOST_AT_ONCE: usize = 4096;
/// Unused chains are deleted when they have been unused for over a second.
const LEFTOVERS_AFTER: Duration = Duration::from_millis(1500);

#[cfg(test)]
mod tests;
