//! Compares and changes the sets, virtual servers and addresses of this mode in the kernel.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU16;
use std::time::Instant;

use sluicegate_ipset::{self as ipset, Difference, Exist};
use sluicegate_ipvs::{self as ipvs, Command, Connections, Drain, Endpoint, Protocol, ServiceId};
use sluicegate_netlink::{Errno, Transport};
use sluicegate_services::{Family, Frontend};

use super::links::Links;
use super::wanted::DESTINATION;
use super::{Change, Planner, Set, Settings};
use crate::Error;
use crate::flows::Programmed;

/// Clients of the three netlink interfaces that this mode uses.
#[derive(Debug)]
pub(super) struct Kernel<T> {
    pub(super) sets: ipset::Client<T>,
    pub(super) servers: ipvs::Client<T>,
    pub(super) links: Links<T>,
    /// What comparisons found before a sync changed it.
    pub(super) found: Programmed,
}

/// The difference between the plan and the kernel.
#[derive(Debug, Default)]
pub(super) struct Comparison {
    pub(super) change: Change,
    /// Sets that are too small for their entries, or of a wrong type: they are recreated.
    pub(super) unfit: Vec<Set>,
}

impl<T: Transport> Kernel<T> {
    /// Compares the kernel's state with the plan, except for rules.
    pub(super) fn compare(&mut self, planner: &Planner, settings: &Settings) -> Result<Comparison, Error> {
        let mut comparison = Comparison::default();
        for set in Set::ALL {
            self.compare_set(planner, set, &mut comparison)?;
        }
        let change = &mut comparison.change;
        let family = planner.family();
        let listed = self.servers.list(|id| is_of(id, family) && (settings.is_ours(id) || planner.wants(id)));
        let listed = listed.map_err(|error| Error::ipvs("listing virtual servers", error))?;
        self.found.append(programmed(&listed));
        change.set_commands(planner.commands(&listed.into_iter().collect()));
        let bound = self.links.ours(family);
        change.bind = planner.addresses().filter(|ip| !bound.contains(ip)).collect();
        change.unbind = bound.into_iter().filter(|ip| !planner.wants_address(*ip)).collect();
        Ok(comparison)
    }

    /// Returns whether all virtual servers exist, some of them have their destinations, and every set has the
    /// planned number of entries: a cheap check, which notices that another program changed something.
    ///
    /// Destinations take one request for each virtual server: the next ones after `looked` are asked for, and
    /// it becomes the last of these.
    pub(super) fn is_as_planned(
        &mut self,
        planner: &Planner,
        drain: &Drain,
        looked: &mut Option<ServiceId>,
    ) -> Result<bool, Error> {
        let servers =
            self.servers.services().map_err(|error| Error::ipvs("listing virtual servers", error))?;
        let there = servers.iter().filter(|service| planner.server(&service.id) == Some(&service.config));
        if there.count() != planner.server_count() {
            return Ok(false);
        }
        let next: Vec<_> = planner.servers_after(looked.as_ref()).take(LOOKED_AT).collect();
        *looked = next.last().map(|(id, _)| **id);
        for (id, server) in next {
            let found = self.destinations(id)?;
            let wanted: BTreeSet<_> = server.endpoints.iter().collect();
            let is_there = |to: &&Endpoint| found.get(*to).is_some_and(|(config, _)| *config == DESTINATION);
            let is_expected = |to: &Endpoint| wanted.contains(to) || drain.contains(id, to);
            if !(wanted.iter().all(is_there) && found.keys().all(is_expected)) {
                return Ok(false);
            }
        }
        let mut sizes = BTreeMap::new();
        for name in self.sets.names().map_err(|error| Error::ipset("listing sets", error))? {
            let Some(set) = Set::named(&name.to_text(), planner.family()) else { continue };
            match self.sets.infos(Some(name)) {
                Ok(info) => drop(sizes.insert(set, info.first().and_then(|info| info.entries))),
                // Another program has destroyed it since.
                Err(error) if error.is_not_found() => return Ok(false),
                Err(error) => return Err(Error::ipset("listing sets", error)),
            }
        }
        let fits = |set: &Set| match sizes.get(set) {
            Some(Some(size)) => usize::try_from(*size) == Ok(planner.size(*set)),
            // Kernels before 4.9 do not report the number of entries.
            Some(None) => true,
            None => false,
        };
        Ok(Set::ALL.iter().all(fits))
    }

    fn compare_set(&mut self, planner: &Planner, set: Set, comparison: &mut Comparison) -> Result<(), Error> {
        let spec = set.spec(planner.family());
        let wanted = planner.entries(set);
        let listing = match self.sets.list(Some(spec.name())) {
            Ok(listings) => listings.into_iter().next(),
            Err(error) if error.is_not_found() => None,
            Err(error) => return Err(Error::ipset("listing sets", error)),
        };
        let Some(listing) = listing else {
            comparison.change.create.push(spec.sized_for(wanted.len()));
            if !wanted.is_empty() {
                comparison.change.add.push((set, wanted));
            }
            return Ok(());
        };
        let info = &listing.info;
        let room = info.options.maxelem.map_or(usize::MAX, |max| usize::try_from(max).unwrap_or(usize::MAX));
        if (info.kind, info.family) != (spec.set_type(), spec.family()) || wanted.len() > room {
            comparison.unfit.push(set);
            return Ok(());
        }
        let difference = Difference::between(&wanted, &listing.entries, &info.options);
        let mut difference = difference.map_err(|reason| Error::ipset("comparing sets", reason.into()))?;
        if !difference.add.is_empty() {
            comparison.change.add.push((set, difference.add));
        }
        if !difference.delete.is_empty() {
            // The kernel lists them in the order of its hash.
            difference.delete.sort_unstable_by_key(|entry| *entry.element());
            comparison.change.delete.push((set, difference.delete));
        }
        Ok(())
    }

    /// Replaces a set that is too small for its entries atomically. A set of another type is destroyed first,
    /// which requires that no rule refers to it.
    pub(super) fn replace(&mut self, planner: &Planner, set: Set) -> Result<(), Error> {
        let entries = planner.entries(set);
        let spec = set.spec(planner.family()).sized_for(entries.len());
        let replaced = match self.sets.replace(&spec, &entries) {
            Err(ipset::Error::Different { .. }) => self
                .sets
                .destroy(spec.name(), Exist::Ignore)
                .and_then(|()| self.sets.replace(&spec, &entries)),
            other => other,
        };
        replaced.map_err(|error| Error::ipset("replacing a set", error))
    }

    /// Creates sets and adds entries.
    pub(super) fn fill(&mut self, family: Family, change: &Change) -> Result<(), Error> {
        let failed = |error| Error::ipset("adding to sets", error);
        for spec in &change.create {
            self.sets.create(spec, Exist::Ignore).map_err(failed)?;
        }
        for (set, entries) in &change.add {
            self.sets.add(set.spec(family).name(), entries, Exist::Ignore).map_err(failed)?;
        }
        Ok(())
    }

    /// Deletes entries.
    pub(super) fn empty(&mut self, family: Family, change: &Change) -> Result<(), Error> {
        for (set, entries) in &change.delete {
            let deleted = self.sets.delete(set.spec(family).name(), entries, Exist::Ignore);
            deleted.map_err(|error| Error::ipset("deleting from sets", error))?;
        }
        Ok(())
    }

    /// Carries out commands, including those after a refused one, and returns the refusals.
    pub(super) fn run_commands(&mut self, commands: &[Command]) -> Result<Refused, Error> {
        let (mut refused, mut sound) = (Refused::default(), Cow::Borrowed(commands));
        let invalid = |command| Some((command, Command::check(command).err()?));
        let invalid: Vec<_> = commands.iter().filter_map(invalid).collect();
        if !invalid.is_empty() {
            sound.to_mut().retain(|command| command.check().is_ok());
        }
        for (command, error) in invalid {
            refused.add_invalid(command, error);
        }
        if sound.is_empty() {
            return Ok(refused);
        }
        match self.servers.run_all(&sound) {
            Ok(()) => Ok(refused),
            Err(error @ ipvs::Error::SomeRefused { .. }) => {
                refused.add(error);
                Ok(refused)
            }
            Err(error) => Err(Error::ipvs("programming virtual servers", error)),
        }
    }

    /// Checks the connections of destinations whose weight was set to 0: deletions of those without
    /// connections are added to the change, and the others are drained. Lists each of their services.
    pub(super) fn begin_draining(
        &mut self,
        quiet: Vec<(ServiceId, Endpoint)>,
        change: &mut Change,
        drain: &mut Drain,
        now: Instant,
    ) -> Result<(), Error> {
        let services: BTreeSet<_> = quiet.iter().map(|(service, _)| *service).collect();
        let mut listed = BTreeMap::new();
        for service in services {
            listed.insert(service, self.destinations(&service)?);
        }
        for (service, id) in quiet {
            let found = listed.get(&service).and_then(|found| found.get(&id));
            let Some((config, connections)) = found.copied() else { continue };
            change.retire.extend(drain.begin(service, id, config, connections, now));
        }
        Ok(())
    }

    /// Deletes the drained destinations without connections. Returns the time of the next check.
    pub(super) fn look_at_drained(
        &mut self,
        drain: &mut Drain,
        now: Instant,
    ) -> Result<(usize, Option<Instant>), Error> {
        let services: BTreeSet<ServiceId> = drain.iter().map(|(service, _)| *service).collect();
        let mut found = BTreeMap::new();
        for service in services {
            found.insert(service, self.destinations(&service)?);
        }
        let step = drain.step(now, |service, id| Some(found.get(service)?.get(id)?.1));
        // A destination that another program has deleted meanwhile is not an error.
        let _ = self.run_commands(&step.commands)?;
        Ok((step.commands.len(), step.next_step))
    }

    fn destinations(&mut self, service: &ServiceId) -> Result<Found, Error> {
        match self.servers.destinations(service) {
            Ok(found) => Ok(found.into_iter().map(|it| (it.id, (it.config, it.connections))).collect()),
            Err(error) if error.is_not_found() => Ok(Found::new()),
            Err(error) => Err(Error::ipvs("listing destinations", error)),
        }
    }

    /// Binds addresses.
    pub(super) fn bind(&mut self, ips: &[IpAddr]) -> Result<(), Error> {
        self.links.bind(ips).map_err(|error| Error::netlink("binding addresses of services", error))
    }

    /// Unbinds addresses.
    pub(super) fn unbind(&mut self, ips: &[IpAddr]) -> Result<(), Error> {
        self.links.unbind(ips).map_err(|error| Error::netlink("unbinding addresses of services", error))
    }
}

/// The number of virtual servers whose destinations are looked at each time: some 20 ms.
const LOOKED_AT: usize = 1000;

type Found = BTreeMap<Endpoint, (ipvs::DestinationConfig, Connections)>;

/// Commands that were refused: none, by default.
#[derive(Debug, Default)]
pub(super) struct Refused {
    /// The virtual servers with refused commands, each with the reason if that is its own configuration.
    servers: BTreeMap<ServiceId, Option<String>>,
    /// The error to return if no Kubernetes service caused it.
    error: Option<ipvs::Error>,
}

impl Refused {
    fn add(&mut self, error: ipvs::Error) {
        for refusal in error.refusals() {
            if let Some(server) = refusal.command().and_then(Command::service) {
                self.blame(*server, is_own_fault(refusal).then(|| refusal.to_string()));
            }
        }
        self.error.get_or_insert(error);
    }

    /// Adds a command that is not valid and was not sent.
    fn add_invalid(&mut self, command: &Command, error: ipvs::Error) {
        if let Some(server) = command.service() {
            self.blame(*server, Some(format!("{}: {error}", command.summary())));
        }
        self.error.get_or_insert(error);
    }

    fn blame(&mut self, server: ServiceId, why: Option<String>) {
        let reason = self.servers.entry(server).or_default();
        *reason = reason.take().or(why);
    }

    /// Adds later refusals.
    pub(super) fn and(mut self, later: Self) -> Self {
        later.servers.into_iter().for_each(|(server, why)| self.blame(server, why));
        self.error = self.error.or(later.error);
        self
    }

    /// Returns whether the command is about a virtual server without refusals.
    pub(super) fn spares(&self, command: &Command) -> bool {
        command.service().is_none_or(|server| !self.servers.contains_key(server))
    }

    /// Returns an error if commands were refused, with the Kubernetes services that caused it, if any.
    pub(super) fn into_result(self, planner: &Planner) -> Result<(), Error> {
        let Some(error) = self.error else { return Ok(()) };
        let mut services = BTreeMap::new();
        for (server, why) in self.servers {
            if let (Some(owner), Some(why)) = (planner.owner(&server), why) {
                services.entry(owner.clone()).or_insert(why);
            }
        }
        if services.is_empty() {
            return Err(Error::ipvs("programming virtual servers", error));
        }
        Err(Error::Refused { services: services.into_iter().collect() })
    }
}

/// Returns `true` if the kernel refused this virtual server because of its own properties, not because of a
/// missing scheduler or a lack of rights, memory or IPv6.
fn is_own_fault(refusal: &ipvs::Refusal) -> bool {
    let is_scheduler = matches!(
        refusal.command(),
        Some(Command::AddService { .. } | Command::EditService { .. }) if refusal.is_not_found()
    );
    !is_scheduler && !matches!(refusal.errno, Errno::EPERM | Errno::ENOMEM | Errno::EAFNOSUPPORT)
}

/// Returns the frontends whose flows may become stale, and their endpoints.
fn programmed(listed: &[ipvs::Listing]) -> Programmed {
    let mut programmed = Programmed::default();
    for ipvs::Listing { service, destinations, .. } in listed {
        let ServiceId::Virtual { protocol, endpoint } = service.id else { continue };
        let protocol = match protocol {
            Protocol::UDP => sluicegate_services::Protocol::Udp,
            Protocol::SCTP => sluicegate_services::Protocol::Sctp,
            _ => continue,
        };
        let Some(port) = NonZeroU16::new(endpoint.port) else { continue };
        programmed.frontends.insert(Frontend::Address(endpoint.address, protocol, port));
        let endpoints = destinations.iter().map(|to| SocketAddr::new(to.id.address, to.id.port));
        programmed.endpoints.extend(endpoints);
    }
    programmed
}

/// Returns whether a virtual server has an address of this family.
pub(super) fn is_of(id: &ServiceId, family: Family) -> bool {
    matches!(id, ServiceId::Virtual { endpoint, .. } if Family::of(endpoint.address) == family)
}

fn has_end(service: &ServiceId) -> bool {
    !matches!(service.protocol(), Some(Protocol::UDP | Protocol::SCTP))
}

/// Sets the weight of destinations to 0 instead of deleting them, if their connections can end, and returns
/// them: only at weight 0 does a destination get no new connections. A drained destination that is wanted
/// again gets its weight back.
pub(super) fn set_weights_to_zero(change: &mut Change, drain: &mut Drain) -> Vec<(ServiceId, Endpoint)> {
    for command in &mut change.serve {
        match *command {
            Command::AddDestination { service, id, config } => {
                if let Some(back) = drain.cancel(service, id, config) {
                    *command = back;
                }
            }
            Command::EditDestination { service, id, config } => {
                // The command to restore it is part of the change already.
                let _ = drain.cancel(service, id, config);
            }
            _ => {}
        }
    }
    let mut quiet = Vec::new();
    for command in std::mem::take(&mut change.retire) {
        match command {
            Command::DeleteDestination { service, id } if has_end(&service) => {
                let config = DESTINATION.weight(0);
                change.serve.push(Command::EditDestination { service, id, config });
                quiet.push((service, id));
            }
            Command::DeleteService { id } => {
                forget(drain, &id);
                change.retire.push(command);
            }
            other => change.retire.push(other),
        }
    }
    quiet
}

/// Stops draining destinations that are part of the plan, regardless of their state in the kernel.
pub(super) fn keep_wanted(drain: &mut Drain, planner: &Planner) {
    let wanted = |(service, id): &(&ServiceId, &Endpoint)| planner.wants_destination(service, id);
    let kept: Vec<_> = drain.iter().filter(wanted).map(|(service, id)| (*service, *id)).collect();
    for (service, id) in kept {
        let _ = drain.cancel(service, id, DESTINATION);
    }
}

/// Stops draining the destinations of a deleted service.
fn forget(drain: &mut Drain, service: &ServiceId) {
    let gone: Vec<_> = drain.iter().filter(|(of, _)| *of == service).map(|(_, id)| *id).collect();
    for id in gone {
        let _ = drain.cancel(*service, id, DESTINATION);
    }
}

#[cfg(test)]
mod tests {
    use sluicegate_services::{Cluster, Node};

    use super::*;
    use crate::manifests::Manifests;

    fn cluster() -> Cluster {
        let text = "apiVersion: v1
kind: Service
metadata: {namespace: demo, name: web}
spec: {clusterIP: 172.30.10.1, externalIPs: [192.0.2.1], ports: [{port: 80}]}
---
apiVersion: v1
kind: Service
metadata: {namespace: demo, name: xeb}
spec: {clusterIP: 172.30.10.2, ports: [{port: 80}]}
";
        Manifests::read(text).into_cluster(Node::default())
    }

    fn refusal(command: Command, errno: Errno) -> ipvs::Error {
        let operation = ipvs::Operation::Command { index: 0, command: Box::new(command) };
        let refusal = ipvs::Refusal::new(operation, errno);
        ipvs::Error::SomeRefused { failed: vec![refusal], more: false }
    }

    fn blamed(refused: Refused) -> Vec<String> {
        let planner = Planner::new(Family::Ipv4, &Settings::default(), &cluster(), None).unwrap();
        let error = refused.into_result(&planner).unwrap_err();
        error.refused().iter().map(|(name, why)| format!("{name}: {why}")).collect()
    }

    #[test]
    fn a_refusal_names_the_service_whose_virtual_server_it_is_about() {
        let server = |ip: [u8; 4]| ServiceId::tcp(Endpoint::new(ip, 80));
        let destination = |ip, to: [u8; 4]| Command::AddDestination {
            service: server(ip),
            id: Endpoint::new(to, 8080),
            config: DESTINATION,
        };
        let mut refused = Refused::default();
        refused.add(refusal(destination([172, 30, 10, 2], [10, 0, 0, 255]), Errno::EINVAL));
        let mut later = Refused::default();
        later.add(refusal(Command::DeleteService { id: server([192, 0, 2, 1]) }, Errno::EBUSY));
        let refused = refused.and(later);
        assert!(!refused.spares(&Command::DeleteService { id: server([172, 30, 10, 2]) }));
        assert!(refused.spares(&Command::DeleteService { id: server([172, 30, 10, 1]) }));
        let blamed = blamed(refused);
        assert_eq!(blamed.len(), 2, "{blamed:?}");
        assert!(blamed[0].starts_with("demo/web: ") && blamed[0].contains("192.0.2.1:80"), "{blamed:?}");
        assert!(blamed[1].starts_with("demo/xeb: ") && blamed[1].contains("10.0.0.255:8080"), "{blamed:?}");
    }

    #[test]
    fn looks_at_destinations_go_round() {
        let planner = Planner::new(Family::Ipv4, &Settings::default(), &cluster(), None).unwrap();
        let after = |id: Option<&ServiceId>| -> Vec<_> {
            planner.servers_after(id).map(|(id, _)| id.to_string()).collect()
        };
        let all = ["TCP 172.30.10.1:80", "TCP 172.30.10.2:80", "TCP 192.0.2.1:80"];
        assert_eq!(after(None), all);
        let id = |ip: [u8; 4]| ServiceId::tcp(Endpoint::new(ip, 80));
        assert_eq!(after(Some(&id([172, 30, 10, 2]))), [all[2], all[0], all[1]]);
        assert_eq!(after(Some(&id([192, 0, 2, 1]))), all);
        // One that has gone meanwhile.
        assert_eq!(after(Some(&id([180, 0, 0, 1]))), [all[2], all[0], all[1]]);
    }

    #[test]
    fn an_invalid_command_names_its_service() {
        let mut refused = Refused::default();
        let service = ServiceId::tcp(Endpoint::new([172, 30, 10, 1], 80));
        let command =
            Command::AddDestination { service, id: Endpoint::new([224, 0, 0, 1], 80), config: DESTINATION };
        refused.add_invalid(&command, command.check().unwrap_err());
        let blamed = blamed(refused);
        assert!(blamed[0].starts_with("demo/web: ") && blamed[0].contains("unicast"), "{blamed:?}");
    }

    #[test]
    fn a_missing_feature_of_the_kernel_names_no_service() {
        let id = ServiceId::tcp(Endpoint::new([172, 30, 10, 1], 80));
        let config = ipvs::ServiceConfig::new(ipvs::Scheduler::MH);
        for errno in [Errno::ENOENT, Errno::EPERM, Errno::EAFNOSUPPORT] {
            let mut refused = Refused::default();
            refused.add(refusal(Command::AddService { id, config }, errno));
            assert_eq!(blamed(refused), [""; 0]);
        }
        // A virtual server that belongs to no known service.
        let mut refused = Refused::default();
        let id = ServiceId::tcp(Endpoint::new([172, 30, 10, 9], 80));
        refused.add(refusal(Command::DeleteService { id }, Errno::EBUSY));
        assert_eq!(blamed(refused), [""; 0]);
        let planner = Planner::new(Family::Ipv4, &Settings::default(), &cluster(), None).unwrap();
        assert!(Refused::default().into_result(&planner).is_ok());
    }
}
