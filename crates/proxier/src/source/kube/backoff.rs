//! What the watches of one source share: the pauses after failures, and what is reported of them.
//!
//! Watches that fail by one cause wait for the same moment, and a success ends the pauses of its cause for
//! all. An outage is reported when it begins and when it is over, and while it lasts only in long intervals
//! and when a failure of another kind has lasted, too.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::Tuning;
use super::request::{Cause, Refusal};
use crate::source::update::Kind;

/// The failures of one source. Clones share them.
#[derive(Clone, Debug)]
pub(super) struct Backoff(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    tuning: Tuning,
    pauses: BTreeMap<Cause, Pause>,
    streak: Option<FailureStreak>,
}

/// The pauses after failures of one cause: each twice the one before, up to a limit, with a random part, so
/// that nodes that lost the same server at the same time do not all come back at the same time.
#[derive(Debug)]
struct Pause {
    until: Instant,
    next: Duration,
}

/// The failures since all was well.
#[derive(Debug)]
struct FailureStreak {
    since: Instant,
    failures: u64,
    failing: BTreeSet<Kind>,
    causes: BTreeMap<(Cause, Option<Kind>), Report>,
    was_told: bool,
}

/// The failures of one cause, for one kind where it concerns only that.
#[derive(Debug)]
struct Report {
    since: Instant,
    failures: u64,
    told: Option<Instant>,
}

impl Backoff {
    pub(super) fn new(tuning: Tuning) -> Self {
        Self(Arc::new(Mutex::new(State { tuning, pauses: BTreeMap::new(), streak: None })))
    }

    /// Returns the time of the next attempt after one more failure, and whether no other watch waits for it
    /// yet. It is no earlier than the server asked for, unless it asked for more than five minutes: the rules
    /// would be stale for so long.
    pub(super) fn pause(&self, refusal: &Refusal) -> (Instant, bool) {
        let (now, mut state) = (Instant::now(), self.lock());
        let tuning = state.tuning;
        let asked = now + refusal.retry_after.unwrap_or_default().min(LONGEST_ASKED);
        let Some(pause) = state.pauses.get_mut(&refusal.cause) else {
            let (until, next) = match refusal.cause {
                // Listing again is what helps, so it is done at once, but not by all nodes at once.
                Cause::Stale => (now + fraction(2 * tuning.first), tuning.first),
                _ => (now + tuning.first + fraction(tuning.first), 2 * tuning.first),
            };
            state
                .pauses
                .insert(refusal.cause, Pause { until, next: next.min(limit(&tuning, refusal.cause)) });
            return (until.max(asked), true);
        };
        let is_new = pause.until <= now;
        if is_new {
            pause.until = now + pause.next + fraction(pause.next);
            pause.next = (2 * pause.next).min(limit(&tuning, refusal.cause));
        }
        (pause.until.max(asked), is_new)
    }

    /// Records a failure. Returns what to report of it.
    pub(super) fn failed(&self, kind: Kind, server: &str, refusal: &Refusal) -> Option<String> {
        let (now, mut state) = (Instant::now(), self.lock());
        let remind = state.tuning.remind;
        let streak = state.streak.get_or_insert_with(|| FailureStreak {
            since: now,
            failures: 0,
            failing: BTreeSet::new(),
            causes: BTreeMap::new(),
            was_told: false,
        });
        streak.failures += 1;
        streak.failing.insert(kind);
        let of = (!refusal.cause.concerns_all()).then_some(kind);
        let new = Report { since: now, failures: 0, told: None };
        let report = streak.causes.entry((refusal.cause, of)).or_insert(new);
        report.failures += 1;
        let lasts = now - report.since;
        let is_due = match report.told {
            Some(told) => now - told >= remind,
            None if streak.was_told => lasts >= LASTING,
            // A connection that breaks is no news, but one that cannot be made again is.
            None => refusal.cause != Cause::Broken || report.failures > MOST_BREAKS,
        };
        if !is_due {
            return None;
        }
        streak.was_told = true;
        let again = match report.told.replace(now) {
            Some(_) => format!(" ({} times in {})", report.failures, shown(lasts)),
            None => String::new(),
        };
        let what = of.map(|kind| format!("{kind}s from ")).unwrap_or_default();
        Some(format!("{what}the API server {server}: {}{again}", refusal.reason))
    }

    /// Records an answer of the server, whatever its status: it can be reached.
    pub(super) fn answered(&self) {
        self.lock().pauses.remove(&Cause::Connection);
    }

    /// Records a list, or the beginning of a watch: the requests of this kind succeed.
    pub(super) fn succeeded(&self, kind: Kind) {
        let mut state = self.lock();
        state.pauses.retain(|cause, _| cause.ends_with_a_steady_watch());
        let Some(streak) = &mut state.streak else { return };
        streak.failing.remove(&kind);
        streak.causes.retain(|(_, of), _| *of != Some(kind));
        let Some(over) = state.streak.take_if(|streak| streak.failing.is_empty()) else { return };
        let (lasted, failures) = (shown(over.since.elapsed()), over.failures);
        if over.was_told {
            tracing::info!("the API server answers again, after {lasted} and {failures} failures");
        } else {
            tracing::debug!("the API server answers again, after {lasted} and {failures} failures");
        }
    }

    /// Records a watch that works: it lasted, or gave an event.
    pub(super) fn is_steady(&self) {
        self.lock().pauses.retain(|cause, _| !cause.ends_with_a_steady_watch());
    }

    /// Locks the state, also after a panic: it is consistent at every moment.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the longest pause after failures of a cause, without the random part.
fn limit(tuning: &Tuning, cause: Cause) -> Duration {
    match cause {
        Cause::Connection => tuning.unreachable,
        Cause::Credentials => tuning.longest.min(2 * tuning.unreachable),
        _ => tuning.longest,
    }
}

/// Formats a time for a message: in seconds, or in milliseconds below one.
fn shown(time: Duration) -> String {
    if time < Duration::from_secs(1) {
        format!("{} ms", time.as_millis())
    } else {
        format!("{} s", time.as_secs())
    }
}

/// Returns a random part of `whole`.
pub(super) fn fraction(whole: Duration) -> Duration {
    // The only source of randomness in the standard library: every state has random keys.
    let chance = RandomState::new().build_hasher().finish();
    whole.mul_f64(f64::from((chance >> 32) as u32) / f64::from(u32::MAX))
}

/// The longest time that a server may ask to wait.
const LONGEST_ASKED: Duration = Duration::from_secs(300);
/// The time after which a failure is reported that began in an outage of another cause.
const LASTING: Duration = Duration::from_secs(15);
/// The number of broken connections in a row, over all watches, that are not reported.
const MOST_BREAKS: u64 = 8;

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(cause: Cause) -> Refusal {
        Refusal::new(cause, "told to fail")
    }

    /// Fails, waits until the next attempt, and returns how long that took.
    async fn pause(backoff: &Backoff, refusal: &Refusal) -> Duration {
        let (began, until) = (Instant::now(), backoff.pause(refusal).0);
        tokio::time::sleep_until(until).await;
        until - began
    }

    #[tokio::test(start_paused = true)]
    async fn pauses_double_up_to_the_longest_of_the_cause_and_begin_again() {
        let backoff = Backoff::new(Tuning::default());
        let expect = async |cause, least: &[u64]| {
            for least in least.iter().map(|ms| Duration::from_millis(*ms)) {
                let pause = pause(&backoff, &refusal(cause)).await;
                assert!((least..=2 * least).contains(&pause), "{cause:?}: {pause:?}, at least {least:?}");
            }
        };
        expect(Cause::Status(500), &[800, 1_600, 3_200, 6_400, 12_800, 25_600, 30_000, 30_000]).await;
        expect(Cause::Connection, &[800, 1_600, 2_000, 2_000, 2_000]).await;
        expect(Cause::Credentials, &[800, 1_600, 3_200, 4_000, 4_000]).await;
        backoff.answered();
        expect(Cause::Connection, &[800, 1_600]).await;
        expect(Cause::Status(500), &[30_000]).await;
        backoff.succeeded(Kind::Node);
        expect(Cause::Status(500), &[800]).await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_version_that_is_gone_is_no_reason_to_wait_unless_it_happens_again() {
        let backoff = Backoff::new(Tuning::default());
        assert!(pause(&backoff, &refusal(Cause::Stale)).await <= Duration::from_millis(1_600));
        backoff.succeeded(Kind::Service);
        assert!(pause(&backoff, &refusal(Cause::Stale)).await >= Duration::from_millis(800));
        assert!(pause(&backoff, &refusal(Cause::Stale)).await >= Duration::from_millis(1_600));
        backoff.is_steady();
        assert!(pause(&backoff, &refusal(Cause::Stale)).await <= Duration::from_millis(1_600));
    }

    #[tokio::test(start_paused = true)]
    async fn watches_that_fail_by_one_cause_wait_for_the_same_moment() {
        let backoff = Backoff::new(Tuning::default());
        let (first, is_new) = backoff.pause(&refusal(Cause::Connection));
        assert!(is_new);
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert_eq!(backoff.pause(&refusal(Cause::Connection)), (first, false));
        assert_ne!(backoff.pause(&refusal(Cause::Status(403))).0, first, "another cause");
        tokio::time::sleep_until(first).await;
        assert!(backoff.pause(&refusal(Cause::Connection)).0 > first);
    }

    #[tokio::test(start_paused = true)]
    async fn the_server_may_ask_for_more_and_not_for_less() {
        let backoff = Backoff::new(Tuning::default());
        let asked = |time| Refusal { retry_after: Some(time), ..refusal(Cause::Status(429)) };
        assert!(pause(&backoff, &asked(Duration::from_secs(7))).await >= Duration::from_secs(7));
        assert!(pause(&backoff, &asked(Duration::ZERO)).await >= Duration::from_millis(1_600));
        let longest = pause(&backoff, &asked(Duration::MAX)).await;
        assert!(longest < Duration::from_secs(310), "five minutes are enough, found {longest:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn an_outage_is_reported_when_it_begins_and_other_causes_when_they_last() {
        let backoff = Backoff::new(Tuning::default());
        let failed = |kind, cause| backoff.failed(kind, "https://a", &refusal(cause));
        assert_eq!(failed(Kind::Service, Cause::Broken), None, "the first broken connection");
        let refused = failed(Kind::Service, Cause::Connection);
        assert_eq!(refused.as_deref(), Some("the API server https://a: told to fail"));
        for kind in Kind::ALL {
            assert_eq!(failed(kind, Cause::Connection), None);
            assert_eq!(failed(kind, Cause::Status(403)), None);
        }
        tokio::time::sleep(LASTING).await;
        let lasting = failed(Kind::Node, Cause::Status(403));
        assert_eq!(lasting.as_deref(), Some("Nodes from the API server https://a: told to fail"));
        tokio::time::sleep(Tuning::default().remind).await;
        let again = failed(Kind::Node, Cause::Connection);
        assert_eq!(again.as_deref(), Some("the API server https://a: told to fail (6 times in 315 s)"));
        Kind::ALL.iter().for_each(|kind| backoff.succeeded(*kind));
        assert!(failed(Kind::Node, Cause::Status(403)).is_some(), "a new outage");
    }

    #[test]
    fn chance_differs() {
        let hour = Duration::from_secs(3_600);
        let parts: BTreeSet<_> = (0..16).map(|_| fraction(hour)).collect();
        assert!(parts.len() > 8 && parts.iter().all(|part| *part <= hour), "{parts:?}");
    }
}
