//! Decides when to sync next. The caller passes in the time.
//!
//! As kube-proxy's runner: a change is programmed at once after a quiet time, changes that come faster than
//! the minimum interval are programmed together, and a failure is retried. Without changes there is a check
//! every sync period, which costs little when the rules are intact, and a full comparison every hour.
//!
//! Times are [`Instant`]s: setting the clock changes nothing. An instant earlier than the last one counts as
//! that one.

use std::time::{Duration, Instant};

use super::Error;
use crate::Mode;

/// How often to sync.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Intervals {
    /// The least time between the end of a sync and the start of the next (`--iptables-min-sync-period` and
    /// the like).
    pub min: Duration,
    /// The time between checks without changes, and the longest wait after a failure
    /// (`--iptables-sync-period` and the like).
    pub sync: Duration,
    /// The time between comparisons of everything with the kernel.
    pub full: Duration,
}

impl Default for Intervals {
    /// Returns kube-proxy's intervals, which are the same in each mode: 1 s, 30 s, 1 h.
    fn default() -> Self {
        Self::of(Mode::Iptables)
    }
}

impl Intervals {
    /// Returns the intervals of a mode when none are given: kube-proxy's, but in nftables mode 50 ms in place of
    /// 1 s. A change costs the same there however many services there are, so there is no need to gather them.
    #[must_use]
    pub const fn of(mode: Mode) -> Self {
        let min = match mode {
            Mode::Nftables => Duration::from_millis(50),
            Mode::Iptables | Mode::Ipvs => Duration::from_secs(1),
        };
        Self { min, sync: Duration::from_secs(30), full: Duration::from_secs(3600) }
    }

    /// Checks that the intervals are consistent.
    ///
    /// # Errors
    /// [`Error::Intervals`] when the sync period is zero or less than the minimum.
    pub fn check(&self) -> Result<(), Error> {
        let Self { sync, min, .. } = *self;
        if sync.is_zero() || sync < min { Err(Error::Intervals { sync, min }) } else { Ok(()) }
    }
}

/// What a sync has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Job {
    /// Whether to compare everything with the kernel.
    pub is_full: bool,
    /// When the oldest change that waits was queued. `None` when this is only a check.
    pub queued: Option<Instant>,
}

/// How a sync ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Everything is programmed.
    Done,
    /// It has to be retried.
    Failed,
}

/// Decides when to sync. Nothing is due before the first [`request`](Self::request).
///
/// ```
/// use std::time::{Duration, Instant};
/// use sluicegate_proxier::run::{Intervals, Outcome, Schedule};
///
/// let start = Instant::now();
/// let after = |ms| start + Duration::from_millis(ms);
/// let mut schedule = Schedule::new(Intervals::default());
/// assert_eq!(schedule.due(), None);
/// schedule.request(after(0));
/// assert_eq!(schedule.due(), Some(after(0)));
/// assert!(schedule.begin(after(0)).is_some());
/// schedule.end(after(20), Outcome::Done);
/// schedule.request(after(30));
/// schedule.request(after(40));
/// assert_eq!(schedule.due(), Some(after(1020)));
/// ```
#[derive(Clone, Debug)]
pub struct Schedule {
    intervals: Intervals,
    /// When the first request since the last sync began came.
    waiting: Option<Instant>,
    /// When the oldest change came that is not programmed.
    oldest: Option<Instant>,
    wants_full: bool,
    follow_up: Option<Instant>,
    ended: Option<Instant>,
    compared: Option<Instant>,
    failures: u32,
}

impl Schedule {
    /// Returns a schedule without requests.
    #[must_use]
    pub const fn new(intervals: Intervals) -> Self {
        Self {
            intervals,
            waiting: None,
            oldest: None,
            wants_full: false,
            follow_up: None,
            ended: None,
            compared: None,
            failures: 0,
        }
    }

    /// Requests a sync because something changed.
    pub fn request(&mut self, now: Instant) {
        self.waiting.get_or_insert(now);
        self.oldest.get_or_insert(now);
    }

    /// Requests a full comparison: the operator asked for it, or another program changed our rules.
    pub fn request_full(&mut self, now: Instant) {
        self.waiting.get_or_insert(now);
        self.wants_full = true;
    }

    /// Requests one sync at `at`, for work that is left to do then.
    pub fn follow_up(&mut self, at: Instant) {
        self.follow_up = Some(self.follow_up.map_or(at, |other| other.min(at)));
    }

    /// Returns when the next sync should begin. `None` before the first request.
    #[must_use]
    pub fn due(&self) -> Option<Instant> {
        let Some(ended) = self.ended else { return self.waiting };
        let earliest = ended + self.intervals.min;
        let idle = if self.failures > 0 { self.back_off() } else { self.intervals.sync };
        let full = self.compared.map(|compared| compared + self.intervals.full);
        let wanted = [self.waiting, self.follow_up, full, Some(ended + idle)];
        wanted.into_iter().flatten().min().map(|at| at.max(earliest))
    }

    /// Begins a sync if one is due. The caller must call [`end`](Self::end) afterwards.
    pub fn begin(&mut self, now: Instant) -> Option<Job> {
        self.due().filter(|due| *due <= now)?;
        let overdue = self.compared.is_none_or(|compared| now >= compared + self.intervals.full);
        let is_full = std::mem::take(&mut self.wants_full) || overdue;
        self.waiting = None;
        self.follow_up = self.follow_up.filter(|at| *at > now);
        if is_full {
            self.compared = Some(now);
        }
        Some(Job { is_full, queued: self.oldest })
    }

    /// Records how the sync ended. After consecutive failures the next try comes after one, two, four
    /// seconds, and so on up to the sync period. A change in between is tried after the minimum interval
    /// nevertheless.
    pub fn end(&mut self, now: Instant, outcome: Outcome) {
        self.ended = Some(self.ended.map_or(now, |ended| ended.max(now)));
        match outcome {
            Outcome::Done => {
                self.failures = 0;
                // What came while the sync ran waits for the next one.
                self.oldest = self.waiting;
            }
            Outcome::Failed => {
                self.failures = self.failures.saturating_add(1);
                self.wants_full = true;
            }
        }
    }

    /// Returns true when the last sync succeeded, so that nothing has to be retried.
    #[must_use]
    pub const fn is_content(&self) -> bool {
        self.failures == 0
    }

    fn back_off(&self) -> Duration {
        let first = self.intervals.min.max(FIRST_RETRY);
        let doubled = 1u32.checked_shl(self.failures.saturating_sub(1)).unwrap_or(u32::MAX);
        first.saturating_mul(doubled).min(self.intervals.sync.max(self.intervals.min))
    }
}

const FIRST_RETRY: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    /// A schedule, and a clock that a test sets.
    struct Clock {
        start: Instant,
        schedule: Schedule,
    }

    impl Clock {
        fn new(min: u64, sync: u64, full: u64) -> Self {
            let intervals = Intervals {
                min: Duration::from_millis(min),
                sync: Duration::from_millis(sync),
                full: Duration::from_millis(full),
            };
            // Far from the beginning of time, so that a test may also go back.
            Self { start: Instant::now() + Duration::from_secs(86_400), schedule: Schedule::new(intervals) }
        }

        fn at(&self, ms: u64) -> Instant {
            self.start + Duration::from_millis(ms)
        }

        fn request(&mut self, ms: u64) {
            let now = self.at(ms);
            self.schedule.request(now);
        }

        /// Milliseconds from the start to when it is due.
        fn due(&self) -> Option<u128> {
            self.schedule.due().map(|due| due.saturating_duration_since(self.start).as_millis())
        }

        fn run(&mut self, from: u64, to: u64, outcome: Outcome) -> Option<Job> {
            let (from, to) = (self.at(from), self.at(to));
            let job = self.schedule.begin(from)?;
            self.schedule.end(to, outcome);
            Some(job)
        }
    }

    #[test]
    fn nothing_happens_before_the_first_request() {
        let mut clock = Clock::new(1000, 30_000, 3_600_000);
        assert_eq!(clock.due(), None);
        assert_eq!(clock.run(999_999, 999_999, Outcome::Done), None);
    }

    #[test]
    fn the_first_change_after_a_quiet_time_is_programmed_at_once() {
        let mut clock = Clock::new(1000, 30_000, 3_600_000);
        clock.request(0);
        assert_eq!(clock.run(0, 10, Outcome::Done).map(|job| job.is_full), Some(true));
        clock.request(5000);
        assert_eq!(clock.due(), Some(5000));
        let job = clock.run(5000, 5001, Outcome::Done).expect("it is due");
        assert_eq!(job, Job { is_full: false, queued: Some(clock.at(5000)) });
    }

    #[test]
    fn changes_that_come_fast_are_programmed_together_a_minimum_interval_after_the_last_sync() {
        let mut clock = Clock::new(1000, 30_000, 3_600_000);
        clock.request(0);
        clock.run(0, 200, Outcome::Done);
        for ms in [210, 400, 900] {
            clock.request(ms);
            assert_eq!(clock.due(), Some(1200), "counted from the end of the last sync");
            assert_eq!(clock.run(ms, ms, Outcome::Done), None);
        }
        let job = clock.run(1200, 1201, Outcome::Done).expect("it is due");
        assert_eq!(job.queued, Some(clock.at(210)), "the oldest of them");
        assert_eq!(clock.due(), Some(31_201), "nothing waits any more");
    }

    #[test]
    fn a_change_that_comes_while_a_sync_runs_is_not_forgotten() {
        let mut clock = Clock::new(1000, 30_000, 3_600_000);
        clock.request(0);
        clock.schedule.begin(clock.at(0));
        clock.request(50);
        clock.schedule.end(clock.at(100), Outcome::Done);
        assert_eq!(clock.due(), Some(1100));
        assert_eq!(clock.run(1100, 1100, Outcome::Done).and_then(|job| job.queued), Some(clock.at(50)));
    }

    #[test]
    fn failures_are_tried_again_at_growing_intervals_up_to_the_sync_period() {
        let mut clock = Clock::new(1000, 30_000, 3_600_000);
        clock.request(0);
        let mut now = 0;
        let mut waits = Vec::new();
        for _ in 0..8 {
            clock.run(now, now, Outcome::Failed).expect("it is due");
            let due = u64::try_from(clock.due().expect("a retry")).expect("small");
            waits.push(due - now);
            now = due;
        }
        assert_eq!(waits, [1000, 2000, 4000, 8000, 16_000, 30_000, 30_000, 30_000]);
        let job = clock.run(now, now, Outcome::Done).expect("it is due");
        assert_eq!(
            job,
            Job { is_full: true, queued: Some(clock.at(0)) },
            "the first change waited all the time"
        );
        assert_eq!(clock.due(), Some(u128::from(now) + 30_000));
        clock.request(now + 5000);
        clock.run(now + 5000, now + 5000, Outcome::Failed).expect("it is due");
        assert_eq!(clock.due(), Some(u128::from(now) + 6000), "the count of failures began anew");
    }

    #[test]
    fn a_change_does_not_wait_for_the_retry() {
        let mut clock = Clock::new(1000, 30_000, 3_600_000);
        clock.request(0);
        for now in [0, 1000, 3000, 7000] {
            clock.run(now, now, Outcome::Failed).expect("it is due");
        }
        clock.request(7100);
        assert_eq!(clock.due(), Some(8000));
    }

    #[test]
    fn there_is_a_look_every_sync_period_and_a_comparison_every_full_period() {
        let mut clock = Clock::new(0, 100, 1000);
        clock.request(0);
        let mut jobs = Vec::new();
        let mut now = 0;
        while now < 2100 {
            let job = clock.run(now, now, Outcome::Done).expect("it is due");
            jobs.push((now, job.is_full));
            now = u64::try_from(clock.due().expect("always")).expect("small");
        }
        let full: Vec<_> = jobs.iter().filter(|(_, full)| *full).map(|(at, _)| *at).collect();
        assert_eq!(full, [0, 1000, 2000]);
        assert_eq!(jobs.len(), 21);
    }

    #[test]
    fn a_full_comparison_can_be_asked_for_and_a_follow_up_comes_once() {
        let mut clock = Clock::new(100, 30_000, 3_600_000);
        clock.request(0);
        clock.run(0, 0, Outcome::Done);
        clock.schedule.follow_up(clock.at(2000));
        assert_eq!(clock.due(), Some(2000));
        clock.schedule.request_full(clock.at(500));
        assert_eq!(clock.run(500, 500, Outcome::Done), Some(Job { is_full: true, queued: None }));
        assert_eq!(clock.run(2000, 2000, Outcome::Done), Some(Job { is_full: false, queued: None }));
        assert_eq!(clock.due(), Some(32_000));
    }

    #[test]
    fn a_clock_that_jumps_back_or_far_ahead_delays_nothing_and_hurries_nothing() {
        let mut clock = Clock::new(1000, 30_000, 3_600_000);
        clock.request(10_000);
        clock.run(10_000, 10_000, Outcome::Done);
        // An end that is before the last end, as if time had gone back.
        clock.request(10_500);
        clock.run(11_000, 4000, Outcome::Done).expect("it is due");
        assert_eq!(clock.due(), Some(40_000), "counted from the latest end that was seen");
        clock.request(5000);
        assert_eq!(clock.due(), Some(11_000));
        // A leap of a month: one sync, not many.
        let month = 2_592_000_000;
        assert!(clock.run(month, month, Outcome::Done).is_some_and(|job| job.is_full));
        assert_eq!(clock.run(month, month, Outcome::Done), None);
    }

    #[test]
    fn intervals_that_contradict_each_other_are_refused() {
        let check = |min, sync| {
            let intervals = Intervals {
                min: Duration::from_secs(min),
                sync: Duration::from_secs(sync),
                ..Intervals::default()
            };
            intervals.check().map_err(|error| error.to_string())
        };
        assert_eq!(check(1, 30), Ok(()));
        let error = |sync, min| {
            format!("expected a sync period above 0 and not below the minimum of {min}, found {sync}")
        };
        assert_eq!(check(0, 0), Err(error("0ns", "0ns")));
        assert_eq!(check(40, 30), Err(error("30s", "40s")));
    }
}
