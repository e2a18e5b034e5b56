//! Graceful termination: a destination that is no longer wanted keeps its connections until they end.
//!
//! A value without clock and kernel: it is told the time and what was observed, and says what to do now and when to look
//! again.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use crate::command::Command;
use crate::destination::{Destination, DestinationConfig};
use crate::plan::Listing;
use crate::service::{Endpoint, Protocol, ServiceId};
use crate::stats::Connections;

/// How long to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// A destination goes after so long even if it still has connections; `None` waits for them forever.
    pub limit: Option<Duration>,
    /// How long to wait between two looks at the connections.
    pub interval: Duration,
}

/// The destinations that are being drained.
///
/// * TCP, and services of a firewall mark: the weight becomes 0, so that no new connection goes there, and the
///   destination is deleted when it has no connection, or after the limit.
/// * UDP and SCTP: deleted at once. They have no end that could be waited for, and whoever keeps sending would keep the
///   destination.
///
/// A client that persistence binds to a destination still gets there with weight 0, unless the sysctl
/// `net.ipv4.vs.expire_quiescent_template` is 1.
///
/// ```
/// use std::time::{Duration, Instant};
/// use sluicegate_ipvs::{Command, Connections, DestinationConfig, Drain, Endpoint, Forward, Patience, ServiceId};
///
/// let now = Instant::now();
/// let mut drain = Drain::new(Patience { limit: None, interval: Duration::from_secs(60) });
/// let web = ServiceId::tcp(Endpoint::new([10, 0, 0, 1], 80));
/// let server = Endpoint::new([192, 168, 0, 1], 8080);
///
/// let busy = Connections { active: 2, ..Connections::default() };
/// let command = drain.begin(web, server, DestinationConfig::new(Forward::Masquerade), busy, now);
/// assert_eq!(command.unwrap().to_string(), "-e -t 10.0.0.1:80 -r 192.168.0.1:8080 -m -w 0");
///
/// // A minute later its connections have ended.
/// let later = now + Duration::from_secs(60);
/// let step = drain.step(later, |_, _| Some(Connections::default()));
/// assert_eq!(step.commands, [Command::DelDestination { service: web, id: server }]);
/// assert_eq!(step.look_again, None);
/// ```
#[derive(Clone, Debug)]
pub struct Drain {
    patience: Patience,
    draining: BTreeMap<(ServiceId, Endpoint), Instant>,
}

/// What to do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Step {
    /// Now.
    pub commands: Vec<Command>,
    /// When to call [`Drain::step`] again; `None` when nothing is being drained.
    pub look_again: Option<Instant>,
}

impl Drain {
    /// Nothing is being drained.
    #[must_use]
    pub fn new(patience: Patience) -> Self {
        Self { patience, draining: BTreeMap::new() }
    }

    /// What is being drained.
    pub fn iter(&self) -> impl Iterator<Item = (&ServiceId, &Endpoint)> {
        self.draining.keys().map(|(service, destination)| (service, destination))
    }

    /// Whether this destination is being drained.
    #[must_use]
    pub fn contains(&self, service: &ServiceId, destination: &Endpoint) -> bool {
        self.draining.contains_key(&(*service, *destination))
    }

    /// Begins to drain a destination with the configuration and connections that it has; says what to do now. `None` when
    /// its weight is 0 already, so that there is only to wait.
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
            return Some(Command::DelDestination { service, id: destination });
        }
        let quiet = Command::SetDestination { service, id: destination, config: config.weight(0) };
        (config.weight != 0).then_some(quiet)
    }

    /// The destination is wanted again: it is no longer drained, and gets the configuration that it should have. `None` when
    /// it was not being drained.
    #[must_use]
    pub fn come_back(
        &mut self,
        service: ServiceId,
        destination: Endpoint,
        config: DestinationConfig,
    ) -> Option<Command> {
        self.draining.remove(&(service, destination))?;
        Some(Command::SetDestination { service, id: destination, config })
    }

    /// Looks at what is being drained. `observe` gives the connections that a destination has now, or `None` when it is
    /// gone.
    pub fn step(
        &mut self,
        now: Instant,
        mut observe: impl FnMut(&ServiceId, &Endpoint) -> Option<Connections>,
    ) -> Step {
        let mut commands = Vec::new();
        for ((service, destination), since) in std::mem::take(&mut self.draining) {
            let Some(connections) = observe(&service, &destination) else { continue };
            if self.is_over(&service, connections, since, now) {
                commands.push(Command::DelDestination { service, id: destination });
            } else {
                self.draining.insert((service, destination), since);
            }
        }
        Step { commands, look_again: self.look_again(now) }
    }

    /// Replaces the deletions of destinations in a plan (see [`plan`](crate::plan())) by drains, and forgets what is wanted
    /// again or gone. `actual` is what the plan was made from.
    ///
    /// Deletions of whole services stay: with the service its connections are cut off.
    pub fn adopt(&mut self, plan: Vec<Command>, actual: &[Listing], now: Instant) -> Step {
        let present: BTreeMap<_, _> = actual
            .iter()
            .flat_map(|listing| listing.destinations.iter().map(|it| ((listing.service.id, it.id), it)))
            .collect();
        self.forget(&plan, actual);
        let commands = plan.into_iter().filter_map(|command| match command {
            Command::DelDestination { service, id } => match present.get(&(service, id)) {
                Some(Destination { config, connections, .. }) => {
                    self.begin(service, id, *config, *connections, now)
                }
                None => Some(command),
            },
            command => Some(command),
        });
        let commands = commands.collect();
        Step { commands, look_again: self.look_again(now) }
    }

    /// Of the services that were looked at, only what the plan would delete is still to be drained.
    fn forget(&mut self, plan: &[Command], actual: &[Listing]) {
        let looked_at: BTreeSet<_> = actual.iter().map(|listing| listing.service.id).collect();
        let going: BTreeSet<_> = plan
            .iter()
            .filter_map(|command| match command {
                Command::DelDestination { service, id } => Some((*service, *id)),
                _ => None,
            })
            .collect();
        self.draining.retain(|key, _| going.contains(key) || !looked_at.contains(&key.0));
    }

    fn is_over(&self, service: &ServiceId, connections: Connections, since: Instant, now: Instant) -> bool {
        let endless = matches!(service.protocol(), Some(Protocol::UDP | Protocol::SCTP));
        let late = self.patience.limit.is_some_and(|limit| now.saturating_duration_since(since) >= limit);
        endless || late || connections.is_idle()
    }

    fn look_again(&self, now: Instant) -> Option<Instant> {
        let first = self.draining.values().min()?;
        let soon = now + self.patience.interval;
        let end = self.patience.limit.and_then(|limit| first.checked_add(limit));
        Some(end.map_or(soon, |end| end.min(soon)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::destination::Forward;
    use crate::name::Scheduler;
    use crate::plan::{Table, plan};
    use crate::service::{Service, ServiceConfig};
    use crate::stats::Stats;

    const MINUTE: Duration = Duration::from_secs(60);
    const BUSY: Connections = Connections { active: 1, inactive: 1, persistent: 0 };
    const IDLE: Connections = Connections { active: 0, inactive: 0, persistent: 3 };

    fn patient() -> Drain {
        Drain::new(Patience { limit: Some(10 * MINUTE), interval: MINUTE })
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
    fn a_busy_destination_gets_weight_zero_and_goes_when_idle() {
        let (mut drain, now) = (patient(), Instant::now());
        let command = drain.begin(web(), server(), config(), BUSY, now).unwrap();
        assert_eq!(command.to_string(), "-e -t 10.0.0.1:80 -r 1.1.1.1:8080 -m -w 0");
        assert_eq!(drain.begin(web(), server(), config().weight(0), BUSY, now), None);

        let step = drain.step(now + MINUTE, |_, _| Some(BUSY));
        assert_eq!(step, Step { commands: vec![], look_again: Some(now + 2 * MINUTE) });
        let step = drain.step(now + 2 * MINUTE, |_, _| Some(IDLE));
        let gone = Command::DelDestination { service: web(), id: server() };
        assert_eq!(step, Step { commands: vec![gone], look_again: None });
        assert_eq!(drain.step(now + 3 * MINUTE, |_, _| Some(IDLE)), Step::default());
    }

    #[test]
    fn the_limit_ends_patience_even_if_it_comes_before_the_interval() {
        let mut drain = Drain::new(Patience { limit: Some(MINUTE / 2), interval: MINUTE });
        let now = Instant::now();
        let _ = drain.begin(web(), server(), config(), BUSY, now);
        let step = drain.step(now, |_, _| Some(BUSY));
        assert_eq!(step, Step { commands: vec![], look_again: Some(now + MINUTE / 2) });
        assert_eq!(drain.step(now + MINUTE / 2, |_, _| Some(BUSY)).commands.len(), 1);
    }

    #[test]
    fn datagrams_and_idle_destinations_go_at_once() {
        let now = Instant::now();
        for service in [ServiceId::udp(server()), ServiceId::sctp(server())] {
            let command = patient().begin(service, server(), config(), BUSY, now);
            assert_eq!(command, Some(Command::DelDestination { service, id: server() }));
        }
        let command = patient().begin(web(), server(), config(), IDLE, now);
        assert_eq!(command, Some(Command::DelDestination { service: web(), id: server() }));
    }

    #[test]
    fn what_comes_back_is_restored() {
        let (mut drain, now) = (patient(), Instant::now());
        assert_eq!(drain.come_back(web(), server(), config()), None);
        let _ = drain.begin(web(), server(), config(), BUSY, now);
        let command = drain.come_back(web(), server(), config()).unwrap();
        assert_eq!(command.to_string(), "-e -t 10.0.0.1:80 -r 1.1.1.1:8080 -m -w 5");
        assert_eq!(drain.step(now + MINUTE, |_, _| Some(IDLE)), Step::default());
    }

    #[test]
    fn what_somebody_else_deleted_is_forgotten() {
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
            let commands = plan(desired, &actual.iter().cloned().collect());
            drain.adopt(commands, actual, now)
        };
        let shown = |step: &Step| step.commands.iter().map(ToString::to_string).collect::<Vec<_>>();

        let step = adopt(&desired, &listing(5, BUSY), now);
        assert_eq!(shown(&step), ["-e -t 10.0.0.1:80 -r 1.1.1.1:8080 -m -w 0"]);
        assert_eq!(step.look_again, Some(now + MINUTE));
        // The next sync finds it draining: nothing to do.
        assert_eq!(shown(&adopt(&desired, &listing(0, BUSY), now + MINUTE)), [""; 0]);

        desired.service(web(), ServiceConfig::new(Scheduler::RR)).destination(server(), config());
        let step = adopt(&desired, &listing(0, BUSY), now + MINUTE);
        assert_eq!(shown(&step), ["-e -t 10.0.0.1:80 -r 1.1.1.1:8080 -m -w 5"]);
        assert_eq!(step.look_again, None);
    }

    #[test]
    fn a_wanted_weight_of_zero_is_no_drain() {
        let (mut drain, now) = (patient(), Instant::now());
        let _ = drain.begin(web(), server(), config(), BUSY, now);
        let mut desired = Table::new();
        desired.service(web(), ServiceConfig::new(Scheduler::RR)).destination(server(), config().weight(0));
        let actual = listing(0, IDLE);
        let step = drain.adopt(plan(&desired, &actual.iter().cloned().collect()), &actual, now);
        assert_eq!(step, Step::default());
        assert_eq!(drain.step(now + MINUTE, |_, _| Some(IDLE)), Step::default());
    }
}
