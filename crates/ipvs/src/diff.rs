//! Wanted and listed tables, and the commands that lead from one to the other. Values in, values out.

use std::collections::BTreeMap;

use crate::command::Command;
use crate::destination::{Destination, DestinationConfig};
use crate::error::Error;
use crate::service::{Endpoint, Service, ServiceConfig, ServiceId};

/// A service with its destinations, as the kernel reports them.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Listing {
    /// The service.
    pub service: Service,
    /// Its destinations.
    pub destinations: Vec<Destination>,
}

impl Listing {
    /// Returns a service with destinations.
    #[must_use]
    pub fn new(service: Service, destinations: Vec<Destination>) -> Self {
        Self { service, destinations }
    }
}

/// The configuration of services and destinations, wanted or observed.
///
/// ```
/// use sluicegate_ipvs::{DestinationConfig, Endpoint, Forward, Scheduler, ServiceConfig, ServiceId, Table, diff};
///
/// let web = ServiceId::tcp(Endpoint::new([10, 96, 0, 10], 80));
/// let mut wanted = Table::new();
/// wanted
///     .service(web, ServiceConfig::new(Scheduler::RR))
///     .destination(Endpoint::new([10, 244, 1, 7], 8080), DestinationConfig::new(Forward::Masquerade));
/// let commands: Vec<String> = diff(&wanted, &Table::new()).iter().map(ToString::to_string).collect();
/// assert_eq!(
///     commands,
///     ["-A -t 10.96.0.10:80 -s rr", "-a -t 10.96.0.10:80 -r 10.244.1.7:8080 -m -w 1"]
/// );
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    services: BTreeMap<ServiceId, Entry>,
}

/// A service of a [`Table`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Entry {
    /// Its configuration.
    pub config: ServiceConfig,
    /// Its destinations.
    pub destinations: BTreeMap<Endpoint, DestinationConfig>,
}

impl Table {
    /// Returns a table without services.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a service without destinations, or sets the configuration of an existing one.
    pub fn service(&mut self, id: ServiceId, config: ServiceConfig) -> &mut Entry {
        let entry = self.services.entry(id).or_insert(Entry { config, destinations: BTreeMap::new() });
        entry.config = config;
        entry
    }

    /// Removes a service and returns it.
    pub fn remove(&mut self, id: &ServiceId) -> Option<Entry> {
        self.services.remove(id)
    }

    /// Returns a service.
    #[must_use]
    pub fn get(&self, id: &ServiceId) -> Option<&Entry> {
        self.services.get(id)
    }

    /// Returns the services, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&ServiceId, &Entry)> {
        self.services.iter()
    }

    /// Returns the number of services.
    #[must_use]
    pub fn len(&self) -> usize {
        self.services.len()
    }

    /// Returns `true` if there are no services.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.services.is_empty()
    }

    /// Checks that the table can work as a whole.
    ///
    /// # Errors
    /// [`Error::Invalid`], with the reason.
    pub fn check(&self) -> Result<(), Error> {
        diff(self, &Self::new()).iter().try_for_each(Command::check)
    }
}

impl Entry {
    /// Adds a destination, or sets the configuration of an existing one.
    pub fn destination(&mut self, id: impl Into<Endpoint>, config: DestinationConfig) -> &mut Self {
        self.destinations.insert(id.into(), config);
        self
    }
}

impl FromIterator<Listing> for Table {
    fn from_iter<I: IntoIterator<Item = Listing>>(listings: I) -> Self {
        let mut table = Self::new();
        for Listing { service, destinations } in listings {
            let destinations = destinations.into_iter().map(|it| (it.id, it.config)).collect();
            table.services.insert(service.id, Entry { config: service.config, destinations });
        }
        table
    }
}

/// Returns the fewest commands that change `actual` into `desired`: additions and changes for each service,
/// then deletions of destinations, then those of services.
#[must_use]
pub fn diff(desired: &Table, actual: &Table) -> Vec<Command> {
    let (mut commands, mut removals) = (Vec::new(), Vec::new());
    for (id, wanted) in &desired.services {
        match actual.services.get(id) {
            Some(present) => plan_service(id, wanted, present, &mut commands, &mut removals),
            None => {
                commands.push(Command::AddService { id: *id, config: wanted.config });
                plan_destinations(id, wanted, None, &mut commands);
            }
        }
    }
    commands.append(&mut removals);
    let gone = actual.services.keys().filter(|id| !desired.services.contains_key(id));
    commands.extend(gone.map(|id| Command::DeleteService { id: *id }));
    commands
}

fn plan_service(
    id: &ServiceId,
    wanted: &Entry,
    present: &Entry,
    commands: &mut Vec<Command>,
    removals: &mut Vec<Command>,
) {
    if wanted.config != present.config {
        commands.push(Command::EditService { id: *id, config: wanted.config });
    }
    plan_destinations(id, wanted, Some(present), commands);
    let gone = present.destinations.keys().filter(|it| !wanted.destinations.contains_key(it));
    removals.extend(gone.map(|it| Command::DeleteDestination { service: *id, id: *it }));
}

fn plan_destinations(
    service: &ServiceId,
    wanted: &Entry,
    present: Option<&Entry>,
    commands: &mut Vec<Command>,
) {
    for (id, config) in &wanted.destinations {
        let (service, id, config) = (*service, *id, *config);
        match present.and_then(|present| present.destinations.get(&id)) {
            None => commands.push(Command::AddDestination { service, id, config }),
            Some(present) if *present != config => {
                commands.push(Command::EditDestination { service, id, config });
            }
            Some(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text;

    fn table(text: &str) -> Table {
        let mut table = Table::new();
        for command in text::parse(text).unwrap() {
            match command {
                Command::AddService { id, config } => {
                    table.service(id, config);
                }
                Command::AddDestination { service, id, config } => {
                    let config_of_service = table.get(&service).unwrap().config;
                    table.service(service, config_of_service).destination(id, config);
                }
                other => panic!("{other}"),
            }
        }
        table
    }

    fn planned(desired: &str, actual: &str) -> String {
        diff(&table(desired), &table(actual)).iter().map(|command| format!("{command}\n")).collect()
    }

    const WEB: &str = "-A -t 10.0.0.1:80 -s rr\n\
                       -a -t 10.0.0.1:80 -r 1.1.1.1:80 -m -w 1\n\
                       -a -t 10.0.0.1:80 -r 1.1.1.2:80 -m -w 1\n";

    #[test]
    fn equal_tables_have_no_difference() {
        assert_eq!(planned(WEB, WEB), "");
    }

    #[test]
    fn from_an_empty_table_all_services_are_added() {
        assert_eq!(planned(WEB, ""), WEB);
    }

    #[test]
    fn destinations_are_added_before_others_are_deleted_and_services_are_deleted_last() {
        let desired = "-A -t 10.0.0.1:80 -s wrr\n\
                       -a -t 10.0.0.1:80 -r 1.1.1.2:80 -m -w 5\n\
                       -a -t 10.0.0.1:80 -r 1.1.1.3:80 -m";
        let actual = format!("{WEB}-A -u 10.0.0.9:53 -s rr\n-a -u 10.0.0.9:53 -r 1.1.1.1:53 -m\n");
        assert_eq!(
            planned(desired, &actual),
            "-E -t 10.0.0.1:80 -s wrr\n\
             -e -t 10.0.0.1:80 -r 1.1.1.2:80 -m -w 5\n\
             -a -t 10.0.0.1:80 -r 1.1.1.3:80 -m -w 1\n\
             -d -t 10.0.0.1:80 -r 1.1.1.1:80\n\
             -D -u 10.0.0.9:53\n"
        );
    }
}
