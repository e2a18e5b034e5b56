//! Graceful termination: a destination that is no longer wanted keeps its connections until they end.
//!
//! A [`Drain`] uses neither clock nor kernel: it is given the time and the observed connections, and returns
//! the commands to send now and the time of the next step.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use crate::Protocol;
use crate::command::Command;
use crate::destination::{Destination, DestinationConfig};
use crate::diff::Listing;
use crate::service::{Endpoint, ServiceId};
use crate::stats::Connections;

/// The time limits of a [`Drain`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DrainTiming {
    /// The time after which a destination is deleted even if it still has connections; `None` waits forever.
    pub limit: Option<Duration>,
    /// The time between two checks of the connections.
    pub interval: Duration,
}

impl DrainTiming {
    /// Returns time limits with this interval, which wait for the end of the connections forever.
    #[must_use]
    pub const fn new(interval: Duration) -> Self {
        Self { limit: None, interval }
    }

    /// Sets the time after which a destination is deleted even if it still has connections.
    #[must_use]
    pub const fn limit(self, limit: Duration) -> Self {
        Self { limit: Some(limit), ..self }
    }
}

/// The destinations that are being drained.
///
/// * TCP, and services of a firewall mark: the weight becomes 0, so that no new connection goes there, and
///   the destination is deleted when it has no connection, or after the limit.
/// * UDP and SCTP: the destination is deleted at once. Such flows have no end to wait for, and a client that
///   keeps sending would keep the destination.
///
/// A client that persistence binds to a destination is still sent there with weight 0, unless the sysctl
/// `net.ipv4.vs.expire_quiescent_template` is 1.
///
/// ```
/// use std::time::{Duration, Instant};
/// use sluicegate_ipvs::*;
///
/// let now = Instant::now();
/// let mut drain = Drain::new(DrainTiming::new(Duration::from_secs(60)));
/// let web = ServiceId::tcp(Endpoint::new([10, 0, 0, 1], 80));
/// let server = Endpoint::new([192, 168, 0, 1], 8080);
///
/// let mut busy = Connections::default();
/// busy.active = 2;
/// let command = drain.begin(web, server, DestinationConfig::new(Forward::Masquerade), busy, now);
/// assert_eq!(command.unwrap().to_string(), "-e -t 10.0.0.1:80 -r 192.168.0.1:8080 -m -w 0");
///
/// // A minute later its connections have ended.
/// let later = now + Duration::from_secs(60);
/// let step = drain.step(later, |_, _| Some(Connections::default()));
/// assert_eq!(step.commands, [Command::DeleteDestination { service: web, id: server }]);
/// assert_eq!(step.next_step, None);
/// ```
#[derive(Clone, Debug)]
pub struct Drain {
    timing: DrainTiming,
    draining: BTreeMap<(ServiceId, Endpoint), Instant>,
}

/// The commands to run now, and the time of the next step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Step {
    /// The commands to run now.
    pub commands: Vec<Command>,
    /// When to call [`Drain::step`] again; `None` if nothing is being drained.
    pub next_step: Option<Instant>,
}

impl Drain {
    /// Creates a drain without destinations.
    #[must_use]
    pub fn new(timing: DrainTiming) -> Self {
        Self { timing, draining: BTreeMap::new() }
    }

    /// Iterates over the destinations that are being drained.
    pub fn iter(&self) -> impl Iterator<Item = (&ServiceId, &Endpoint)> {
        self.draining.keys().map(|(service, destination)| (service, destination))
    }

    /// Returns whether this destination is being drained.
    #[must_use]
    pub fn contains(&self, service: &ServiceId, destination: &Endpoint) -> bool {
        self.draining.contains_key(&(*service, *destination))
    }

    /// Begins to drain a destination with the given configuration and connections, and returns the command to
    /// send; `None` if its weight is 0 already.
    #[must_use]
    pub fn begin(
        &mut self,
        service: ServiceId,
        destination: Endpoint,
        config: DestinationConfig,
        connections: Connections,
        now: Instant,
    ) -> Option<Command> {
        let since = *self.draining.entry((service, destination)).or_insert(now);
        if self.is_over(&service, connections, since, now) {
            self.draining.remove(&(service, destination));
            return Some(Command::DeleteDestination { service, id: destination });
        }
        let quiet = Command::EditDestination { service, id: destination, config: config.weight(0) };
        (config.weight != 0).then_some(quiet)
    }

    /// Stops draining a destination that is wanted again, and returns the command that restores its
    /// configuration; `None` if it was not being drained.
    #[must_use]
    pub fn cancel(
        &mut self,
        service: ServiceId,
        destination: Endpoint,
        config: DestinationConfig,
    ) -> Option<Command> {
        self.draining.remove(&(service, destination))?;
        Some(Command::EditDestination { service, id: destination, config })
    }

    /// Returns the deletions of destinations whose connections have ended or whose time is up. `observe`
    /// returns the connections of a destination, or `None` if it does not exist.
    pub fn step(
        &mut self,
        now: Instant,
        mut observe: impl FnMut(&ServiceId, &Endpoint) -> Option<Connections>,
    ) -> Step {
        let mut commands = Vec::new();
        for ((service, destination), since) in std::mem::take(&mut self.draining) {
            let Some(connections) = observe(&service, &destination) else { continue };
            if self.is_over(&service, connections, since, now) {
                commands.push(Command::DeleteDestination { service, id: destination });
            } else {
                self.draining.insert((service, destination), since);
            }
        }
        Step { commands, next_step: self.next(now) }
    }

    /// Replaces the deletions of destinations in a plan (see [`diff`](crate::diff())) by drains, and stops
    /// draining destinations that are wanted again or were deleted. `actual` is the listing that the plan was
    /// computed from.
    ///
    /// Deletions of whole services remain: they break the connections of the service.
    pub fn adopt(&mut self, plan: Vec<Command>, actual: &[Listing], now: Instant) -> Step {
        let present: BTreeMap<_, _> = actual
            .iter()
            .flat_map(|listing| listing.destinations.iter().map(|it| ((listing.service.id, it.id), it)))
            .collect();
        self.forget(&plan, actual);
        let commands = plan.into_iter().filter_map(|command| match command {
            Command::DeleteDestination { service, id } => match present.get(&(service, id)) {
                Some(Destination { config, connections, .. }) => {
                    self.begin(service, id, *config, *connections, now)
                }
                None => Some(command),
            },
            command => Some(command),
        });
        let commands = commands.collect();
        Step { commands, next_step: self.next(now) }
    }

    /// Stops draining destinations of the listed services that the plan does not delete.
    fn forget(&mut self, plan: &[Command], actual: &[Listing]) {
        let looked_at: BTreeSet<_> = actual.iter().map(|listing| listing.service.id).collect();
        let going: BTreeSet<_> = plan
            .iter()
            .filter_map(|command| match command {
                Command::DeleteDestination { service, id } => Some((*service, *id)),
                _ => None,
            })
            .collect();
        self.draining.retain(|key, _| going.contains(key) || !looked_at.contains(&key.0));
    }

    fn is_over(&self, service: &ServiceId, connections: Connections, since: Instant, now: Instant) -> bool {
        let endless = matches!(service.protocol(), Some(Protocol::UDP | Protocol::SCTP));
        let late = self.timing.limit.is_some_and(|limit| now.saturating_duration_since(since) >= limit);
        endless || late || connections.is_idle()
    }

    fn next(&self, now: Instant) -> Option<Instant> {
        let first = self.draining.values().min()?;
        let soon = now + self.timing.interval;
        let end = self.timing.limit.and_then(|limit| first.checked_add(limit));
        Some(end.map_or(soon, |end| end.min(soon)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::destination::Forward;
    use crate::diff::{Table, diff};
    use crate::name::Scheduler;
    use crate::service::{Service, ServiceConfig};
    use crate::stats::Stats;

    const MINUTE: Duration = Duration::from_secs(60);
    const BUSY: Connections = Connections { active: 1, inactive: 1, persistent: 0 };
    const IDLE: Connections = Connections { active: 0, inactive: 0, persistent: 3 };

    fn patient() -> Drain {
        Drain::new(DrainTiming { limit: Some(10 * MINUTE), interval: MINUTE })
    }

    fn web() -> ServiceId {
        ServiceId::tcp(Endpoint::new([10, 0, 0, 1], 80))
    }

    fn server() -> Endpoint {
        Endpoint::new([1, 1, 1, 1], 8080)
    }

    fn config() -> DestinationConfig {
        DestinationConfig::new(Forward::Masquerade).weight(5)
    }

    #[test]
    fn a_busy_destination_gets_weight_zero_and_is_deleted_when_idle() {
        let (mut drain, now) = (patient(), Instant::now());
        let command = drain.begin(web(), server(), config(), BUSY, now).unwrap();
        assert_eq!(command.to_string(), "-e -t 10.0.0.1:80 -r 1.1.1.1:8080 -m -w 0");
        assert_eq!(drain.begin(web(), server(), config().weight(0), BUSY, now), None);

        let step = drain.step(now + MINUTE, |_, _| Some(BUSY));
        assert_eq!(step, Step { commands: vec![], next_step: Some(now + 2 * MINUTE) });
        let step = drain.step(now + 2 * MINUTE, |_, _| Some(IDLE));
        let gone = Command::DeleteDestination { service: web(), id: server() };
        assert_eq!(step, Step { commands: vec![gone], next_step: None });
        assert_eq!(drain.step(now + 3 * MINUTE, |_, _| Some(IDLE)), Step::default());
    }

    #[test]
    fn the_limit_applies_even_if_it_is_shorter_than_the_interval() {
        let mut drain = Drain::new(DrainTiming { limit: Some(MINUTE / 2), interval: MINUTE });
        let now = Instant::now();
        let _ = drain.begin(web(), server(), config(), BUSY, now);
        let step = drain.step(now, |_, _| Some(BUSY));
        assert_eq!(step, Step { commands: vec![], next_step: Some(now + MINUTE / 2) });
        assert_eq!(drain.step(now + MINUTE / 2, |_, _| Some(BUSY)).commands.len(), 1);
    }

    #[test]
    fn udp_and_idle_destinations_are_deleted_at_once() {
        let now = Instant::now();
        for service in [ServiceId::udp(server()), ServiceId::sctp(server())] {
            let command = patient().begin(service, server(), config(), BUSY, now);
            assert_eq!(command, Some(Command::DeleteDestination { service, id: server() }));
        }
        let command = patient().begin(web(), server(), config(), IDLE, now);
        assert_eq!(command, Some(Command::DeleteDestination { service: web(), id: server() }));
    }

    #[test]
    fn a_destination_that_is_wanted_again_is_restored() {
        let (mut drain, now) = (patient(), Instant::now());
        assert_eq!(drain.cancel(web(), server(), config()), None);
        let _ = drain.begin(web(), server(), config(), BUSY, now);
        let command = drain.cancel(web(), server(), config()).unwrap();
        assert_eq!(command.to_string(), "-e -t 10.0.0.1:80 -r 1.1.1.1:8080 -m -w 5");
        assert_eq!(drain.step(now + MINUTE, |_, _| Some(IDLE)), Step::default());
    }

    #[test]
    fn a_destination_that_another_program_deleted_is_no_longer_drained() {
        let (mut drain, now) = (patient(), Instant::now());
        let _ = drain.begin(web(), server(), config(), BUSY, now);
        assert_eq!(drain.step(now + MINUTE, |_, _| None), Step::default());
    }

    fn listing(weight: u32, connections: Connections) -> Vec<Listing> {
        let service =
            Service { id: web(), config: ServiceConfig::new(Scheduler::RR), stats: Stats::default() };
        let destination = Destination {
            id: server(),
            config: config().weight(weight),
            connections,
            stats: Stats::default(),
        };
        vec![Listing { service, destinations: vec![destination] }]
    }

    #[test]
    fn a_plan_drains_instead_of_deleting_until_the_destination_is_wanted_again() {
        let (mut drain, now) = (patient(), Instant::now());
        let mut desired = Table::new();
        desired.service(web(), ServiceConfig::new(Scheduler::RR));
        let mut adopt = |desired: &Table, actual: &[Listing], now| {
            let commands = diff(desired, &actual.iter().cloned().collect());
            drain.adopt(commands, actual, now)
        };
        let shown = |step: &Step| step.commands.iter().map(ToString::to_string).collect::<Vec<_>>();

        let step = adopt(&desired, &listing(5, BUSY), now);
        assert_eq!(shown(&step), ["-e -t 10.0.0.1:80 -r 1.1.1.1:8080 -m -w 0"]);
        assert_eq!(step.next_step, Some(now + MINUTE));
        // The next sync finds it draining, and changes nothing.
        assert_eq!(shown(&adopt(&desired, &listing(0, BUSY), now + MINUTE)), [""; 0]);

        desired.service(web(), ServiceConfig::new(Scheduler::RR)).destination(server(), config());
        let step = adopt(&desired, &listing(0, BUSY), now + MINUTE);
        assert_eq!(shown(&step), ["-e -t 10.0.0.1:80 -r 1.1.1.1:8080 -m -w 5"]);
        assert_eq!(step.next_step, None);
    }

    #[test]
    fn a_destination_with_wanted_weight_zero_is_not_drained() {
        let (mut drain, now) = (patient(), Instant::now());
        let _ = drain.begin(web(), server(), config(), BUSY, now);
        let mut desired = Table::new();
        desired.service(web(), ServiceConfig::new(Scheduler::RR)).destination(server(), config().weight(0));
        let actual = listing(0, IDLE);
        let step = drain.adopt(diff(&desired, &actual.iter().cloned().collect()), &actual, now);
        assert_eq!(step, Step::default());
        assert_eq!(drain.step(now + MINUTE, |_, _| Some(IDLE)), Step::default());
    }
}
