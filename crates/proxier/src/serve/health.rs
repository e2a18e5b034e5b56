//! Whether changes reach the kernel in time, and whether this node should get new connections.

use std::collections::BTreeMap;
use std::time::{Duration, Instant, SystemTime};

use k8s_openapi::chrono::{DateTime, SecondsFormat};
use serde::Serialize;

use super::{Answer, JSON, answer};
use crate::model::Family;

/// What is known of the proxy's health. It is told the time, and so can be asked about any.
///
/// A family is unhealthy when the oldest change that waits for it has waited for the time-out: twice the sync period. It is
/// healthy until its first sync has succeeded: starting up may take a while. All of this goes by a clock that does not
/// jump ([`Instant`]); the wall clock is only printed.
///
/// ```
/// use std::time::{Duration, Instant, SystemTime};
/// use sluicegate_proxier::model::Family;
/// use sluicegate_proxier::serve::ProxyHealth;
///
/// let (start, wall) = (Instant::now(), SystemTime::now());
/// let mut health = ProxyHealth::new(Duration::from_secs(60));
/// health.updated(Family::V4, wall);
/// health.queued(Family::V4, start);
/// assert!(health.health(start + Duration::from_secs(59)).healthy);
/// assert!(!health.health(start + Duration::from_secs(60)).healthy);
/// health.updated(Family::V4, wall);
/// assert!(health.health(start + Duration::from_secs(60)).healthy);
/// ```
#[derive(Clone, Debug)]
pub struct ProxyHealth {
    timeout: Duration,
    families: [State; 2],
    node_eligible: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct State {
    /// The wall clock at the last sync that succeeded.
    updated: Option<SystemTime>,
    /// When the oldest change was queued that no sync has programmed.
    oldest_queued: Option<Instant>,
}

/// The health at one moment, the node left aside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Health {
    /// Every family is healthy.
    pub healthy: bool,
    /// The latest sync that succeeded, by the wall clock.
    pub last_updated: Option<SystemTime>,
    /// Each family that was synced before.
    pub families: BTreeMap<Family, FamilyHealth>,
}

/// The health of one family at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FamilyHealth {
    /// Its latest sync that succeeded, by the wall clock.
    pub last_updated: SystemTime,
    /// No change waits for longer than the time-out.
    pub healthy: bool,
}

impl ProxyHealth {
    /// Healthy so far, on a node that should get connections.
    #[must_use]
    pub fn new(timeout: Duration) -> Self {
        Self { timeout, families: [State::default(); 2], node_eligible: true }
    }

    /// A change waits for the next sync of this family. Of several that wait the first counts.
    pub fn queued(&mut self, family: Family, now: Instant) {
        self.families[family as usize].oldest_queued.get_or_insert(now);
    }

    /// A sync of this family succeeded, at this time of the wall clock.
    pub fn updated(&mut self, family: Family, now: SystemTime) {
        self.families[family as usize] = State { updated: Some(now), oldest_queued: None };
    }

    /// This node should get new connections: it exists, and neither is being deleted nor about to be.
    pub fn set_node_eligible(&mut self, eligible: bool) {
        self.node_eligible = eligible;
    }

    /// The health at a moment.
    #[must_use]
    pub fn health(&self, now: Instant) -> Health {
        let mut health = Health { healthy: true, last_updated: None, families: BTreeMap::new() };
        for (family, state) in Family::BOTH.into_iter().zip(&self.families) {
            let Some(last_updated) = state.updated else { continue };
            let waited = state.oldest_queued.map(|queued| now.saturating_duration_since(queued));
            let healthy = waited.is_none_or(|waited| waited < self.timeout);
            health.healthy &= healthy;
            health.last_updated = health.last_updated.max(Some(last_updated));
            health.families.insert(family, FamilyHealth { last_updated, healthy });
        }
        health
    }

    /// The answer of `/healthz`: 200, or 503 when the proxy is unhealthy or its node should get no new connections.
    #[must_use]
    pub fn healthz(&self, now: Instant, wall: SystemTime) -> Answer {
        let health = self.health(now);
        let ok = health.healthy && self.node_eligible;
        reply(&health, ok, Some(self.node_eligible), wall)
    }

    /// The answer of `/livez`: 200, or 503 when the proxy is unhealthy. A node that goes keeps its proxy.
    #[must_use]
    pub fn livez(&self, now: Instant, wall: SystemTime) -> Answer {
        let health = self.health(now);
        reply(&health, health.healthy, None, wall)
    }
}

/// Both bodies, which differ in `nodeEligible`. Where all is well, `lastUpdated` is now: a proxy that has nothing to do is not stale.
fn reply(health: &Health, ok: bool, node_eligible: Option<bool>, wall: SystemTime) -> Answer {
    let status = health.families.iter().map(|(family, state)| {
        let state = StatusBody { last_updated: rfc3339(Some(state.last_updated)), healthy: state.healthy };
        (family.to_string(), state)
    });
    let body = Body {
        last_updated: rfc3339(if ok { Some(wall) } else { health.last_updated }),
        current_time: rfc3339(Some(wall)),
        node_eligible,
        healthy: health.healthy,
        status: status.collect(),
    };
    // Nothing of the body can fail to be written as JSON.
    let text = serde_json::to_string(&body).unwrap_or_default();
    answer(if ok { 200 } else { 503 }, JSON, text)
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Body {
    last_updated: String,
    current_time: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    node_eligible: Option<bool>,
    healthy: bool,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    status: BTreeMap<String, StatusBody>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct StatusBody {
    last_updated: String,
    healthy: bool,
}

/// A time in the form of RFC 3339; one that never was is the year 1, as in kube-proxy.
fn rfc3339(time: Option<SystemTime>) -> String {
    let since = time.and_then(|time| time.duration_since(SystemTime::UNIX_EPOCH).ok());
    let seconds = since.and_then(|since| i64::try_from(since.as_secs()).ok());
    let time = seconds.and_then(|seconds| DateTime::from_timestamp(seconds, since?.subsec_nanos()));
    time.map_or_else(|| NEVER.to_owned(), |time| time.to_rfc3339_opts(SecondsFormat::AutoSi, true))
}

const NEVER: &str = "0001-01-01T00:00:00Z";

#[cfg(test)]
mod tests {
    use super::*;

    const TIMEOUT: Duration = Duration::from_secs(60);

    /// A clock that is set by hand: seconds since the test began, and since 1970.
    struct Clock(Instant);

    impl Clock {
        fn at(&self, seconds: u64) -> Instant {
            self.0 + Duration::from_secs(seconds)
        }

        fn wall(seconds: u64) -> SystemTime {
            SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
        }
    }

    fn shown(answer: &Answer) -> (u16, &str) {
        assert_eq!(answer.headers()["content-type"], "application/json");
        assert_eq!(answer.headers()["x-content-type-options"], "nosniff");
        (answer.status().as_u16(), answer.body())
    }

    #[test]
    fn before_the_first_sync_the_proxy_is_healthy_however_long_that_takes() {
        let (clock, mut health) = (Clock(Instant::now()), ProxyHealth::new(TIMEOUT));
        health.queued(Family::V4, clock.at(0));
        let answer = health.healthz(clock.at(3600), Clock::wall(3600));
        let expected = r#"{"lastUpdated":"1970-01-01T01:00:00Z","currentTime":"1970-01-01T01:00:00Z","nodeEligible":true,"healthy":true}"#;
        assert_eq!(shown(&answer), (200, expected));
    }

    #[test]
    fn a_change_that_waits_for_too_long_makes_its_family_unhealthy_until_it_is_programmed() {
        let (clock, mut health) = (Clock(Instant::now()), ProxyHealth::new(TIMEOUT));
        health.updated(Family::V4, Clock::wall(1));
        health.updated(Family::V6, Clock::wall(2));
        health.queued(Family::V6, clock.at(10));
        health.queued(Family::V6, clock.at(50));
        assert_eq!(health.healthz(clock.at(69), Clock::wall(69)).status(), 200);
        let late = health.healthz(clock.at(70), Clock::wall(70));
        let expected = concat!(
            r#"{"lastUpdated":"1970-01-01T00:00:02Z","currentTime":"1970-01-01T00:01:10Z","nodeEligible":true,"healthy":false,"#,
            r#""status":{"IPv4":{"lastUpdated":"1970-01-01T00:00:01Z","healthy":true},"IPv6":{"lastUpdated":"1970-01-01T00:00:02Z","healthy":false}}}"#
        );
        assert_eq!(shown(&late), (503, expected));
        assert_eq!(health.livez(clock.at(70), Clock::wall(70)).status(), 503);
        health.updated(Family::V6, Clock::wall(71));
        assert_eq!(health.healthz(clock.at(3600), Clock::wall(3600)).status(), 200);
    }

    #[test]
    fn a_node_that_goes_fails_healthz_and_not_livez() {
        let (clock, mut health) = (Clock(Instant::now()), ProxyHealth::new(TIMEOUT));
        health.updated(Family::V4, Clock::wall(1));
        health.set_node_eligible(false);
        let (status, body) = (503, r#""nodeEligible":false,"healthy":true"#);
        let answer = health.healthz(clock.at(5), Clock::wall(5));
        assert!(shown(&answer).0 == status && shown(&answer).1.contains(body), "{answer:?}");
        let answer = health.livez(clock.at(5), Clock::wall(5));
        let expected = concat!(
            r#"{"lastUpdated":"1970-01-01T00:00:05Z","currentTime":"1970-01-01T00:00:05Z","healthy":true,"#,
            r#""status":{"IPv4":{"lastUpdated":"1970-01-01T00:00:01Z","healthy":true}}}"#
        );
        assert_eq!(shown(&answer), (200, expected));
        health.set_node_eligible(true);
        assert_eq!(health.healthz(clock.at(5), Clock::wall(5)).status(), 200);
    }

    #[test]
    fn a_wall_clock_that_jumps_changes_no_health() {
        let (clock, mut health) = (Clock(Instant::now()), ProxyHealth::new(TIMEOUT));
        health.updated(Family::V4, Clock::wall(1_000_000));
        health.queued(Family::V4, clock.at(10));
        assert_eq!(health.healthz(clock.at(20), Clock::wall(9_000_000)).status(), 200);
        assert_eq!(health.healthz(clock.at(20), Clock::wall(0)).status(), 200);
        // A moment before the change was queued, from a thread that read its clock earlier.
        assert_eq!(health.healthz(clock.at(0), Clock::wall(0)).status(), 200);
    }

    #[test]
    fn times_are_printed_as_rfc_3339() {
        assert_eq!(rfc3339(None), "0001-01-01T00:00:00Z");
        let time = SystemTime::UNIX_EPOCH + Duration::new(1_795_238_400, 5_000_000);
        assert_eq!(rfc3339(Some(time)), "2026-11-21T05:20:00.005Z");
    }
}
