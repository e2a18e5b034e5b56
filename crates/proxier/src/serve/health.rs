//! The health of the proxy: whether changes reach the kernel in time, and whether this node should get new
//! connections.

use std::collections::BTreeMap;
use std::time::{Duration, Instant, SystemTime};

use k8s_openapi::chrono::{DateTime, SecondsFormat};
use serde::Serialize;
use sluicegate_services::Family;

use super::readyz::Condition;
use super::{Answer, JSON, answer};
use crate::run::Heartbeat;

/// The health of the proxy. Callers pass in the time.
///
/// The proxy is unhealthy while something that guards traffic is missing ([`set_faults`](Self::set_faults)).
/// A family is unhealthy when its oldest unprogrammed change has waited for the timeout, which is twice the
/// sync period. Until its first sync has succeeded it is alive, since starting may take a while, but gets no
/// traffic. All times are monotonic ([`Instant`]); the wall clock is only printed.
///
/// ```
/// use std::time::{Duration, Instant, SystemTime};
/// use sluicegate_services::Family;
/// use sluicegate_proxier::serve::ProxyHealth;
///
/// let (start, wall) = (Instant::now(), SystemTime::now());
/// let mut health = ProxyHealth::new(Duration::from_secs(60));
/// health.updated(Family::Ipv4, wall);
/// health.queued(Family::Ipv4, start);
/// assert!(health.health(start + Duration::from_secs(59)).healthy);
/// assert!(!health.health(start + Duration::from_secs(60)).healthy);
/// health.updated(Family::Ipv4, wall);
/// assert!(health.health(start + Duration::from_secs(60)).healthy);
/// ```
#[derive(Clone, Debug)]
pub struct ProxyHealth {
    timeout: Duration,
    families: [State; 2],
    node_eligible: bool,
    faults: Vec<String>,
    /// Why the last sync failed.
    failure: Option<String>,
    heartbeat: Option<Heartbeat>,
}

#[derive(Clone, Copy, Debug, Default)]
struct State {
    /// The wall-clock time of the last sync that succeeded.
    updated: Option<SystemTime>,
    /// When the oldest unprogrammed change was queued.
    oldest_queued: Option<Instant>,
}

/// The health at one moment, without that of the node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Health {
    /// Whether every family is healthy, and nothing that guards traffic is missing.
    pub healthy: bool,
    /// What guards traffic and is missing, with what follows.
    pub faults: Vec<String>,
    /// The wall-clock time of the latest sync that succeeded.
    pub last_updated: Option<SystemTime>,
    /// The health of each family that was synced before.
    pub families: BTreeMap<Family, FamilyHealth>,
}

/// The health of one family at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FamilyHealth {
    /// The wall-clock time of its latest sync that succeeded.
    pub last_updated: SystemTime,
    /// Whether no change has waited for longer than the timeout.
    pub healthy: bool,
}

impl ProxyHealth {
    /// Returns a healthy state, on a node that should get new connections.
    #[must_use]
    pub fn new(timeout: Duration) -> Self {
        Self {
            timeout,
            families: [State::default(); 2],
            node_eligible: true,
            faults: Vec::new(),
            failure: None,
            heartbeat: None,
        }
    }

    /// Has a run loop that does not move make the proxy unhealthy.
    #[must_use]
    pub fn with_heartbeat(mut self, heartbeat: Option<Heartbeat>) -> Self {
        self.heartbeat = heartbeat;
        self
    }

    /// Records that a change waits for the next sync of this family. Of several, the first one counts.
    pub fn queued(&mut self, family: Family, now: Instant) {
        self.families[family as usize].oldest_queued.get_or_insert(now);
    }

    /// Records a sync of this family that succeeded, with the wall-clock time.
    pub fn updated(&mut self, family: Family, now: SystemTime) {
        self.families[family as usize] = State { updated: Some(now), oldest_queued: None };
        self.failure = None;
    }

    /// Records a sync that failed: it has to be repeated, so it waits like a change.
    pub fn failed(&mut self, family: Family, reason: &str, now: Instant) {
        self.queued(family, now);
        self.failure = Some(reason.to_owned());
    }

    /// Sets the faults of the last sync: protections of traffic that could not be programmed.
    pub fn set_faults(&mut self, faults: &[String]) {
        self.faults = faults.to_vec();
    }

    /// Sets whether this node should get new connections: it exists, and is not about to be deleted.
    pub fn set_node_eligible(&mut self, eligible: bool) {
        self.node_eligible = eligible;
    }

    /// Returns the health at a moment.
    #[must_use]
    pub fn health(&self, now: Instant) -> Health {
        let mut health = Health {
            healthy: self.faults.is_empty(),
            faults: self.faults.clone(),
            last_updated: None,
            families: BTreeMap::new(),
        };
        let silent = self.heartbeat.as_ref().map(|heartbeat| heartbeat.age(now)).unwrap_or_default();
        if silent >= self.timeout.max(LEAST_STALL) {
            health.healthy = false;
            health.faults.push(format!("the run loop has not moved for {} s", silent.as_secs()));
        }
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

    /// Returns the response to `/healthz`: 200, or 503 when the proxy is unhealthy, has not synced yet, or
    /// its node should get no new connections.
    #[must_use]
    pub fn healthz(&self, now: Instant, wall: SystemTime) -> Answer {
        let mut health = self.health(now);
        if health.families.is_empty() {
            // Unlike kube-proxy, which says 200 for as long as it does nothing.
            health.healthy = false;
            let why = self.failure.as_deref().unwrap_or("the source of services is not read yet");
            health.faults.push(format!("nothing was programmed yet: {why}"));
        }
        let ok = health.healthy && self.node_eligible;
        reply(&health, ok, Some(self.node_eligible), wall)
    }

    /// Returns the response to `/livez`: 200, or 503 when the proxy is unhealthy. The node does not matter.
    #[must_use]
    pub fn livez(&self, now: Instant, wall: SystemTime) -> Answer {
        let health = self.health(now);
        reply(&health, health.healthy, None, wall)
    }
}

impl ProxyHealth {
    /// Returns the conditions of `/readyz` that lie here: the rules, what guards traffic, and the node.
    pub(super) fn conditions(&self, now: Instant) -> [Condition; 3] {
        let health = self.health(now);
        let because = self.failure.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
        let rules = if health.families.is_empty() {
            Some(format!("nothing was programmed yet{because}"))
        } else if health.families.values().all(|family| family.healthy) {
            None
        } else {
            Some(format!("changes wait for longer than {:?}{because}", self.timeout))
        };
        let guards = (!self.faults.is_empty()).then(|| self.faults.join("; "));
        let node = (!self.node_eligible).then(|| "it is about to leave the cluster, or gone".to_owned());
        [Condition::new("rules", rules), Condition::new("guards", guards), Condition::new("node", node)]
    }
}

/// Returns the response of both paths, which differ in `nodeEligible`. When healthy, `lastUpdated` is now: an
/// idle proxy is not stale.
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
        faults: &health.faults,
        status: status.collect(),
    };
    // The body has nothing that JSON cannot represent.
    let text = serde_json::to_string(&body).unwrap_or_default();
    answer(if ok { 200 } else { 503 }, JSON, text)
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a> {
    last_updated: String,
    current_time: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    node_eligible: Option<bool>,
    healthy: bool,
    /// kube-proxy has no such field.
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    faults: &'a [String],
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    status: BTreeMap<String, StatusBody>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct StatusBody {
    last_updated: String,
    healthy: bool,
}

/// Formats a time as RFC 3339. `None` is the year 1, as in kube-proxy.
fn rfc3339(time: Option<SystemTime>) -> String {
    let since = time.and_then(|time| time.duration_since(SystemTime::UNIX_EPOCH).ok());
    let seconds = since.and_then(|since| i64::try_from(since.as_secs()).ok());
    let time = seconds.and_then(|seconds| DateTime::from_timestamp(seconds, since?.subsec_nanos()));
    time.map_or_else(|| NEVER.to_owned(), |time| time.to_rfc3339_opts(SecondsFormat::AutoSi, true))
}

/// A loop that moves beats every second. Even its longest sync on a busy machine is shorter than this.
const LEAST_STALL: Duration = Duration::from_secs(30);
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
    fn before_the_first_sync_the_proxy_is_alive_however_long_that_takes_and_gets_no_traffic() {
        let (clock, mut health) = (Clock(Instant::now()), ProxyHealth::new(TIMEOUT));
        health.queued(Family::Ipv4, clock.at(0));
        let answer = health.livez(clock.at(3600), Clock::wall(3600));
        let expected =
            r#"{"lastUpdated":"1970-01-01T01:00:00Z","currentTime":"1970-01-01T01:00:00Z","healthy":true}"#;
        assert_eq!(shown(&answer), (200, expected));
        let answer = health.healthz(clock.at(1), Clock::wall(1));
        let expected = r#"{"lastUpdated":"0001-01-01T00:00:00Z","currentTime":"1970-01-01T00:00:01Z","nodeEligible":true,"healthy":false,"faults":["nothing was programmed yet: the source of services is not read yet"]}"#;
        assert_eq!(shown(&answer), (503, expected));
        health.failed(Family::Ipv4, "no room", clock.at(2));
        assert!(health.healthz(clock.at(2), Clock::wall(2)).body().contains("programmed yet: no room"));
        assert_eq!(health.livez(clock.at(2), Clock::wall(2)).status(), 200);
    }

    #[test]
    fn syncs_that_fail_for_longer_than_the_timeout_make_the_proxy_unhealthy_without_a_change() {
        let (clock, mut health) = (Clock(Instant::now()), ProxyHealth::new(TIMEOUT));
        let rules = |health: &ProxyHealth, seconds| health.conditions(clock.at(seconds))[0].to_string();
        assert_eq!(rules(&health, 0), "[-]rules failed: nothing was programmed yet");
        health.updated(Family::Ipv4, Clock::wall(1));
        health.failed(Family::Ipv4, "no room", clock.at(10));
        assert_eq!(health.healthz(clock.at(69), Clock::wall(69)).status(), 200);
        assert_eq!(rules(&health, 69), "[+]rules ok");
        assert_eq!(health.healthz(clock.at(70), Clock::wall(70)).status(), 503);
        assert_eq!(rules(&health, 70), "[-]rules failed: changes wait for longer than 60s: no room");
        health.updated(Family::Ipv4, Clock::wall(71));
        assert_eq!(rules(&health, 71), "[+]rules ok");
    }

    #[test]
    fn a_change_that_waits_for_too_long_makes_its_family_unhealthy_until_it_is_programmed() {
        let (clock, mut health) = (Clock(Instant::now()), ProxyHealth::new(TIMEOUT));
        health.updated(Family::Ipv4, Clock::wall(1));
        health.updated(Family::Ipv6, Clock::wall(2));
        health.queued(Family::Ipv6, clock.at(10));
        health.queued(Family::Ipv6, clock.at(50));
        assert_eq!(health.healthz(clock.at(69), Clock::wall(69)).status(), 200);
        let late = health.healthz(clock.at(70), Clock::wall(70));
        let expected = concat!(
            r#"{"lastUpdated":"1970-01-01T00:00:02Z","currentTime":"1970-01-01T00:01:10Z","nodeEligible":true,"healthy":false,"#,
            r#""status":{"IPv4":{"lastUpdated":"1970-01-01T00:00:01Z","healthy":true},"IPv6":{"lastUpdated":"1970-01-01T00:00:02Z","healthy":false}}}"#
        );
        assert_eq!(shown(&late), (503, expected));
        assert_eq!(health.livez(clock.at(70), Clock::wall(70)).status(), 503);
        health.updated(Family::Ipv6, Clock::wall(71));
        assert_eq!(health.healthz(clock.at(3600), Clock::wall(3600)).status(), 200);
    }

    #[test]
    fn a_guard_that_is_missing_makes_the_proxy_unhealthy() {
        let (clock, mut health) = (Clock(Instant::now()), ProxyHealth::new(TIMEOUT));
        health.updated(Family::Ipv4, Clock::wall(1));
        health.set_faults(&["nothing is masqueraded".to_owned()]);
        let late = health.livez(clock.at(5), Clock::wall(5));
        assert_eq!(shown(&late).0, 503);
        assert!(shown(&late).1.contains(r#""healthy":false,"faults":["nothing is masqueraded"],"status""#));
        assert_eq!(health.healthz(clock.at(5), Clock::wall(5)).status(), 503);
        health.set_faults(&[]);
        assert_eq!(health.healthz(clock.at(5), Clock::wall(5)).status(), 200);
    }

    #[test]
    fn a_loop_that_does_not_move_makes_the_proxy_unhealthy_before_and_after_its_first_sync() {
        let heartbeat = Heartbeat::default();
        let clock = Clock(Instant::now());
        let mut health = ProxyHealth::new(TIMEOUT).with_heartbeat(Some(heartbeat.clone()));
        for _ in 0..2 {
            assert_eq!(health.livez(clock.at(59), Clock::wall(59)).status(), 200);
            let late = health.livez(clock.at(61), Clock::wall(61));
            assert!(shown(&late).0 == 503 && shown(&late).1.contains("has not moved for 6"), "{late:?}");
            assert_eq!(health.healthz(clock.at(61), Clock::wall(61)).status(), 503);
            health.updated(Family::Ipv4, Clock::wall(1));
        }
    }

    #[test]
    fn a_node_that_goes_fails_healthz_and_not_livez() {
        let (clock, mut health) = (Clock(Instant::now()), ProxyHealth::new(TIMEOUT));
        health.updated(Family::Ipv4, Clock::wall(1));
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
        health.updated(Family::Ipv4, Clock::wall(1_000_000));
        health.queued(Family::Ipv4, clock.at(10));
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
