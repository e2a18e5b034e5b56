//! The run loop: waits for updates, signals, commits of other programs and timers, and syncs.

mod isolate;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use tokio::sync::mpsc::Receiver;

use super::Error;
use super::commits::{Commits, Foreign};
use super::heartbeat::{BEAT, Heartbeat};
use super::observer::{Observer, SyncReport};
use super::repeats::Repeats;
use super::schedule::{Intervals, Job, Outcome, Schedule};
use super::world::World;
use crate::Visible;
use crate::source::update::Update;
use sluicegate_service_rules::flows::PreviouslyProgrammed;
use sluicegate_service_rules::{Backend, Error as RulesError, Loss, Present, Summary};
use sluicegate_services::{Changes, Cluster, Conflict, Error as ServicesError, Family, ServiceName};

/// A request of the operator to a running proxier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// Stop, and leave all rules in place.
    Stop,
    /// Compare everything with the kernel, and retry what was refused.
    Resync,
}

/// A function that takes what it needs of the state of a running loop, which calls it between two steps on its
/// own thread, one a turn. It must return quickly: whoever reads for long takes a copy.
pub type Inspection = Box<dyn FnOnce(&World) + Send>;

/// A function that finds what is probably not meant among the objects, each in a sentence.
pub type Lint = Box<dyn Fn(&World) -> Vec<String> + Send>;

/// Programs the updates of a source into the kernel.
pub struct Loop {
    world: World,
    backend: Box<dyn Backend>,
    observer: Arc<dyn Observer>,
    schedule: Schedule,
    intervals: Intervals,
    inspections: Option<Receiver<Inspection>>,
    heartbeat: Heartbeat,
    /// When to look next for changes of other programs of which there are no events.
    next_look: Instant,
    /// How long the last comparison of everything took.
    took: Duration,
    commits: Option<Commits>,
    /// What changed since the last sync that succeeded.
    unprogrammed: Unprogrammed,
    /// What was programmed, as far as flows of it may be left.
    former: PreviouslyProgrammed,
    /// The same of before the last clean-up, for a second look at the next sync: a packet that was on its way
    /// through the old rules may have made a flow after the clean-up had listed them.
    cleaned: PreviouslyProgrammed,
    /// Whether a sync has succeeded, so that the rules in the kernel are known to work.
    was_programmed: bool,
    is_ready: bool,
    /// The conflicts between services that were logged.
    conflicts: BTreeSet<Conflict>,
    /// What is probably not meant, of what was told.
    findings: BTreeSet<String>,
    /// Finds that among the objects.
    lint: Option<Lint>,
    /// The faults of the last sync that succeeded.
    faults: Vec<String>,
    /// The failures since the last sync that succeeded.
    failing: Option<Failing>,
    /// Since when the first sync waits for something that is missing.
    missing_since: Option<Instant>,
    /// Changes that other programs made to our tables, and events that were lost.
    interference: Repeats,
    /// Whether the next sync repairs what is only counted, so that it is not told either.
    is_counted: bool,
    /// Whether the first sync waits while it would remove most of what the kernel serves.
    is_guarded: bool,
    /// What the kernel serves while it waits, and when that was listed.
    present: Option<(Instant, Present)>,
}

/// Why the first sync waits.
#[derive(Debug, thiserror::Error)]
#[error(
    "{0}; it goes on when most of them are among the manifests, and --allow-empty removes those that are missing \
     there"
)]
struct Withheld(Loss);

/// Failures of consecutive syncs.
#[derive(Debug)]
struct Failing {
    since: Instant,
    count: u64,
    /// The error that was logged last, and when.
    logged: (String, Instant),
}

/// The changes since the last sync that succeeded, over several attempts.
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
    /// Creates a loop, which does nothing before [`run`](Self::run).
    ///
    /// # Errors
    /// [`Error::Intervals`] when the intervals are not consistent.
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
            inspections: None,
            heartbeat: Heartbeat::default(),
            next_look: now(),
            took: Duration::ZERO,
            commits: None,
            unprogrammed: Unprogrammed::default(),
            former: PreviouslyProgrammed::everything(),
            cleaned: PreviouslyProgrammed::default(),
            was_programmed: false,
            is_ready: false,
            conflicts: BTreeSet::new(),
            findings: BTreeSet::new(),
            lint: None,
            faults: Vec::new(),
            failing: None,
            missing_since: None,
            interference: Repeats::default(),
            is_counted: false,
            is_guarded: false,
            present: None,
        })
    }

    /// Adds another observer.
    #[must_use]
    pub fn observed_by(mut self, other: Option<Arc<dyn Observer>>) -> Self {
        if let Some(other) = other {
            self.observer = Arc::new(vec![self.observer, other]);
        }
        self
    }

    /// Sets where functions that read the state of the loop come from; it calls them between two steps.
    #[must_use]
    pub fn inspected_by(mut self, inspections: Option<Receiver<Inspection>>) -> Self {
        self.inspections = inspections;
        self
    }

    /// Lets the first sync wait while most of what the kernel serves is missing in what the source has: an
    /// empty directory is a volume that is not mounted more often than a wish. That is reported as a failure
    /// to program, and looked at again with each change.
    #[must_use]
    pub const fn guarded(mut self, is_guarded: bool) -> Self {
        self.is_guarded = is_guarded;
        self
    }

    /// Sets what finds among the objects that which is probably not meant. It is asked before each sync for
    /// changes, and each of its sentences is told once for as long as it says it.
    #[must_use]
    pub fn linted_by(mut self, lint: Lint) -> Self {
        self.lint = Some(lint);
        self
    }

    /// Sets the heartbeat, which shows others that the loop moves.
    #[must_use]
    pub fn with_heartbeat(mut self, heartbeat: Heartbeat) -> Self {
        self.heartbeat = heartbeat;
        self
    }

    /// Runs until a signal stops it. All rules stay in place, however it ends.
    ///
    /// A sync blocks the thread that polls this: use `block_on` of a runtime whose other tasks have threads
    /// of their own. The backend's sockets belong to the network namespace of the thread that opened them, so
    /// this must be polled there.
    ///
    /// # Errors
    /// [`Error::SourceEnded`] when all senders of updates are gone. What waiting does not mend, before the
    /// first sync that succeeds: [`Error::Forbidden`], [`Error::Missing`] and [`Error::Hopeless`]. All other
    /// failures are logged and retried.
    pub async fn run(
        mut self,
        mut updates: Receiver<Update>,
        mut signals: Receiver<Signal>,
    ) -> Result<(), Error> {
        let mut news = Vec::new();
        loop {
            self.heartbeat.beat();
            let due = self.schedule.due();
            if due.is_some_and(|due| due <= now()) {
                self.sync()?;
            }
            // Each turn takes a bounded number of one source, which is chosen at random among those that have
            // something, and then the next sync may be due: nobody who always has something keeps the others
            // from their turn.
            let due = self.schedule.due();
            tokio::select! {
                signal = signals.recv() => match signal {
                    Some(Signal::Resync) => self.resync(),
                    Some(Signal::Stop) | None => break,
                },
                count = updates.recv_many(&mut news, MOST_AT_ONCE) => {
                    if count == 0 {
                        return Err(Error::SourceEnded);
                    }
                    self.take(&mut news)?;
                }
                seen = next(&mut self.commits) => self.foreign(seen),
                inspect = next_inspection(&mut self.inspections) => inspect(&self.world),
                () = until(due) => {}
                () = tokio::time::sleep(BEAT) => {}
                () = tokio::time::sleep_until(self.next_look.into()) => self.look(),
            }
        }
        tracing::info!("stopped; all rules stay in place");
        Ok(())
    }

    /// Applies updates of a source.
    fn take(&mut self, news: &mut Vec<Update>) -> Result<(), Error> {
        let now = now();
        let (mut is_change, mut is_node, mut is_other_node) = (false, false, false);
        for update in news.drain(..) {
            match &update {
                Update::Warning(warning) | Update::Unreadable(.., warning) => {
                    let warning = Visible(warning).to_string();
                    tracing::warn!("{warning}");
                    self.observer.warning(&warning);
                }
                Update::Unusable(files) => self.observer.unusable(files),
                Update::Hopeless(reason) if !self.was_programmed => {
                    return Err(Error::Hopeless(reason.clone()));
                }
                Update::Replace(kind, _) | Update::Listed(kind) => self.observer.listed(*kind),
                _ => {}
            }
            let effect = self.world.apply(update);
            for (service, problem) in &effect.concerning {
                self.observer.concerns(service, problem);
            }
            for problem in effect.problems {
                tracing::warn!("{problem}");
                self.observer.warning(&problem);
            }
            is_change |= effect.is_change;
            is_node |= effect.is_node;
            is_other_node |= effect.is_other_node;
        }
        if is_node {
            self.backend.node_changed();
            self.observer.services(self.world.cluster());
        }
        if !self.world.is_complete() {
            return Ok(());
        }
        if !self.is_ready {
            self.is_ready = true;
            self.backend.node_changed();
            is_change = true;
        }
        if is_change {
            self.observer.queued(now, self.world.cluster());
            self.schedule.request(now);
        } else if is_other_node {
            // No sync comes, which would ask.
            self.log_findings();
        }
        Ok(())
    }

    fn resync(&mut self) {
        tracing::info!("comparing everything with the kernel, as requested by a signal");
        if self.is_ready {
            self.world.retry(now(), true);
            self.schedule.request_full(now());
        }
    }

    /// Looks whether another program changed rules of which there are no events.
    fn look(&mut self) {
        let began = now();
        let mut is_disturbed = false;
        if self.was_programmed && self.schedule.is_content() {
            match self.backend.is_disturbed() {
                Ok(found) => is_disturbed = found,
                Err(error) => tracing::debug!("{error}"),
            }
        }
        if self.was_programmed && self.schedule.is_content() {
            match self.backend.is_outdated() {
                Ok(true) => self.schedule.request(began),
                Ok(false) => {}
                Err(error) => tracing::debug!("{error}"),
            }
        }
        if is_disturbed {
            self.disturbed("another program added or removed rules; comparing everything");
        }
        // A comparison reads all rules: not more than a tenth of the time goes into those that others cause.
        let rest = if is_disturbed { self.took * 9 } else { Duration::ZERO };
        self.next_look = began + rest.max(LOOK_EVERY);
    }

    /// Handles commits of other programs.
    fn foreign(&mut self, seen: Vec<Foreign>) {
        for foreign in seen {
            match foreign {
                Foreign::OtherTables(generation) => self.backend.ignore_commit(generation),
                Foreign::OurTables { by } => {
                    self.disturbed(&format!("{by} changed our tables; repairing them"));
                }
                Foreign::Lost(why) => {
                    self.disturbed(&format!(
                        "commits of other programs may have been missed ({why}); comparing everything"
                    ));
                }
            }
        }
    }

    /// Compares everything because of other programs. One that does it in a loop would fill the log.
    fn disturbed(&mut self, how: &str) {
        let now = now();
        self.observer.disturbed();
        self.is_counted = !self.interference.count(now);
        if self.is_counted {
            tracing::debug!("{how}");
        } else {
            tracing::warn!("{how}");
            self.observer.warning(how);
        }
        self.backend.invalidate();
        self.schedule.request_full(now);
    }

    /// Tells how often other programs disturbed, where that was only counted.
    fn tell_interference(&mut self, now: Instant) {
        let Some((times, lasted)) = self.interference.summary(now) else { return };
        let again = format!(
            "other programs changed our tables {times} more times in {} s, and each time they were repaired: two \
             programs that undo each other's work never end; stop the other, or keep it from the tables \
             `kube-proxy`",
            lasted.as_secs()
        );
        tracing::warn!("{again}");
        self.observer.warning(&again);
    }

    fn sync(&mut self) -> Result<(), Error> {
        if let Some(mut commits) = self.commits.take() {
            // Events up to now were received; later commits show in the generation.
            self.foreign(commits.drain());
        }
        let began = now();
        let Some(job) = self.schedule.begin(began) else { return Ok(()) };
        self.tell_interference(began);
        if job.is_full {
            self.backend.invalidate();
        }
        self.world.retry(began, job.is_full);
        self.log_conflicts();
        if job.queued.is_some() {
            self.log_findings();
        }
        self.observer.syncing(began);
        let outcome = match self.attempt(began) {
            Ok(sent) => {
                self.succeeded(job, began, sent);
                Outcome::Done
            }
            Err(error) => {
                if let Some(reason) = self.hopeless(&error, began) {
                    return Err(reason);
                }
                self.log_failure(&error, began);
                self.observer.failed(&error);
                Outcome::Failed
            }
        };
        self.schedule.end(now(), outcome);
        if self.backend.has_leftovers() {
            self.schedule.follow_up(now() + LEFTOVERS_AFTER);
        }
        self.listen();
        Ok(())
    }

    /// Returns why the process should end, before the first sync that succeeds: what waiting does not mend
    /// is told by its exit, and restarting it does no harm.
    fn hopeless(&mut self, error: &RulesError, now: Instant) -> Option<Error> {
        if self.was_programmed {
            return None;
        }
        if error.is_permission_denied() {
            return Some(Error::Forbidden(error.to_string()));
        }
        if !matches!(error, RulesError::Services(ServicesError::NoPodCidrs { .. })) {
            self.missing_since = None;
            return None;
        }
        let waited = now - *self.missing_since.get_or_insert(now);
        (waited >= GIVE_UP).then(|| Error::Missing { reason: error.to_string(), waited })
    }

    /// Logs a failure, and counts those that repeat it.
    fn log_failure(&mut self, error: &RulesError, now: Instant) {
        let text = error.to_string();
        let Some(failing) = &mut self.failing else {
            tracing::error!("{text}");
            self.failing = Some(Failing { since: now, count: 1, logged: (text, now) });
            return;
        };
        failing.count += 1;
        let (last, at) = &failing.logged;
        if *last == text && now - *at < REMIND {
            tracing::debug!("{text}");
            return;
        }
        tracing::error!("{text} (failure {} in {} s)", failing.count, (now - failing.since).as_secs());
        failing.logged = (text, now);
    }

    /// Logs the conflicts that are new since the last sync, and those that are gone.
    fn log_conflicts(&mut self) {
        if self.conflicts.is_empty() && self.world.cluster().conflict_count() == 0 {
            return;
        }
        let conflicts: BTreeSet<Conflict> = self.world.cluster().conflicts().collect();
        for conflict in conflicts.difference(&self.conflicts) {
            tracing::warn!("{conflict}");
            self.observer.conflict(conflict);
        }
        for Conflict { frontend, loser, loser_kind, .. } in self.conflicts.difference(&conflicts) {
            tracing::info!("Service {loser}: {loser_kind} {frontend}: this conflict is over");
        }
        self.conflicts = conflicts;
    }

    /// Logs what is probably not meant, where that is new.
    fn log_findings(&mut self) {
        let Some(lint) = &self.lint else { return };
        let findings: BTreeSet<String> = lint(&self.world).into_iter().collect();
        for new in findings.difference(&self.findings) {
            tracing::warn!("{new}");
            self.observer.warning(new);
        }
        self.findings = findings;
    }

    /// Fails before the first sync if it would remove most of what the kernel serves.
    fn keep_most(&mut self, now: Instant) -> Result<(), RulesError> {
        if !self.is_guarded || self.was_programmed {
            return Ok(());
        }
        // Changes may come often, and listing takes long where there are many rules. Others hardly change them.
        let listed = self.present.take().filter(|(at, _)| now.saturating_duration_since(*at) < LIST_EVERY);
        let (at, present) = match listed {
            Some(listed) => listed,
            None => match self.backend.present()? {
                Some(present) => (now, present),
                None => return Ok(()),
            },
        };
        let loss = present.lost_in(self.world.cluster());
        let Some(loss) = loss else { return Ok(()) };
        self.present = Some((at, present));
        Err(RulesError::backend("nothing is programmed, and the rules of before stay in use", Withheld(loss)))
    }

    /// Syncs, and leaves refused services out until the rest succeeds.
    fn attempt(&mut self, now: Instant) -> Result<Summary, RulesError> {
        self.keep_most(now)?;
        loop {
            let changes = self.world.take_changes();
            self.unprogrammed.add(&changes, self.world.cluster());
            self.former.add(&changes, self.world.cluster());
            let error = match self.backend.sync(self.world.cluster(), &changes, now) {
                Ok(sent) => {
                    self.clean_flows();
                    return Ok(sent);
                }
                Err(error) => error,
            };
            let mut is_news = false;
            for (name, why) in error.refused() {
                // A service that is not in the cluster cannot be left out.
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
                self.clean_flows();
                return Ok(sent);
            }
        }
    }

    /// Removes flows that the changes since the last time made stale. A failure is retried after the next
    /// sync.
    fn clean_flows(&mut self) {
        self.former.add_programmed(self.backend.take_found());
        let fresh = self.former.clone();
        self.former.append(std::mem::take(&mut self.cleaned));
        if self.former.is_empty() {
            return;
        }
        let mut is_clean = true;
        for family in Family::BOTH {
            let began = now();
            match self.backend.clean_flows(self.world.cluster(), &self.former, family) {
                Ok(None) => {}
                Ok(Some(report)) => {
                    tracing::debug!("stale flows, {family}: {report:?}, took {:.1?}", began.elapsed());
                    self.observer.flows(family, &report, began.elapsed());
                }
                // Without connection tracking there are no stale flows.
                Err(error) if error.is_unsupported() => tracing::debug!("stale flows, {family}: {error}"),
                Err(error) => {
                    is_clean = false;
                    tracing::warn!("removing stale flows, {family}: {error}");
                }
            }
        }
        if is_clean {
            self.former = PreviouslyProgrammed::default();
            self.cleaned = fresh.without_everything();
        }
    }

    fn succeeded(&mut self, job: Job, began: Instant, sent: Summary) {
        self.world.accepted();
        self.was_programmed = true;
        if let Some(Failing { since, count, .. }) = self.failing.take() {
            tracing::info!(
                "programming works again, after {count} failures in {} s",
                (began - since).as_secs()
            );
        }
        if sent.is_full() {
            self.took = began.elapsed();
        }
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
        for notice in &report.sent.notices {
            tracing::warn!("{notice}");
        }
        if self.faults != report.sent.faults {
            self.faults.clone_from(&report.sent.faults);
            self.faults.iter().for_each(|fault| tracing::error!("{fault}"));
            if self.faults.is_empty() {
                tracing::info!("nothing that guards traffic is missing any more");
            }
        }
        let is_idle = !job.is_full && job.queued.is_none() && report.sent.is_unchanged;
        let is_counted = std::mem::take(&mut self.is_counted) && job.queued.is_none();
        if is_idle || is_counted {
            tracing::debug!("{report}");
        } else {
            tracing::info!("{report}");
        }
        self.observer.synced(&report);
        self.observer.services(cluster);
    }

    /// Starts to listen for commits of other programs; one since the sync shows in the generation.
    fn listen(&mut self) {
        let commits = match self.backend.watches().map(Commits::listen).transpose() {
            Ok(commits) => commits,
            Err(error) => {
                tracing::warn!("{error}; checking every {:?} instead", self.intervals.sync);
                None
            }
        };
        if commits.is_some() && !self.backend.is_current().unwrap_or(false) && self.schedule.is_content() {
            tracing::debug!("another program committed to nf_tables during the sync; comparing everything");
            self.schedule.request_full(now());
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

/// Returns the time by the clock of the runtime, which a test can pause.
fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}

/// Waits for the next commits of other programs; forever when there is no listener.
async fn next(commits: &mut Option<Commits>) -> Vec<Foreign> {
    match commits {
        Some(commits) => commits.next().await,
        None => std::future::pending().await,
    }
}

/// Waits for the next inspection; for ever, when nobody is left who might send one.
async fn next_inspection(inspections: &mut Option<Receiver<Inspection>>) -> Inspection {
    if let Some(inspect) = match inspections {
        Some(inspections) => inspections.recv().await,
        None => None,
    } {
        return inspect;
    }
    *inspections = None;
    std::future::pending().await
}

async fn until(due: Option<Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due.into()).await,
        None => std::future::pending().await,
    }
}

/// The most updates that are applied before timers are checked again.
const MOST_AT_ONCE: usize = 4096;
/// Longer than the second for which an unused chain is kept before it is deleted.
const LEFTOVERS_AFTER: Duration = Duration::from_millis(1500);
/// How long the first sync waits for the pod networks of this node, as in kube-proxy.
const GIVE_UP: Duration = Duration::from_secs(300);
/// The interval of looks for changes of which there are no events.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// The least time between two lists of what the kernel serves, while the first sync waits.
const LIST_EVERY: Duration = Duration::from_secs(5);
/// The interval of logging a failure that lasts.
const REMIND: Duration = Duration::from_secs(300);

#[cfg(test)]
mod tests;
