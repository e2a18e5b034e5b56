//! What the kernel holds of this mode besides rules, and how it is brought along.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::Instant;

use nix::errno::Errno;
use sluicegate_ipset::{self as ipset, Difference, Exist};
use sluicegate_ipvs::{self as ipvs, Command, Connections, Drain, Endpoint, Protocol, ServiceId};
use sluicegate_netlink::Transport;

use super::links::Links;
use crate::Error;
use crate::model::Family;
use crate::plan::ipvs::{Change, Planner, Set, Settings};

/// The three parts of the kernel that are talked to by netlink.
#[derive(Debug)]
pub(super) struct Kernel<N, V> {
    pub(super) sets: ipset::Client<N>,
    pub(super) servers: ipvs::Client<V>,
    pub(super) links: Links<N>,
}

/// How the plan differs from what is there.
#[derive(Debug, Default)]
pub(super) struct Comparison {
    pub(super) change: Change,
    /// Sets that are too small for their entries, or of another type than they should be: they are made anew.
    pub(super) unfit: Vec<Set>,
}

impl<N: Transport, V: ipvs::Transport> Kernel<N, V> {
    /// From what is there to the plan, rules left out.
    pub(super) fn compare(&mut self, planner: &Planner, settings: &Settings) -> Result<Comparison, Error> {
        let mut comparison = Comparison::default();
        for set in Set::ALL {
            self.compare_set(planner, set, &mut comparison)?;
        }
        let change = &mut comparison.change;
        let family = planner.family();
        let listed =
            self.servers.listing(|id| is_of(id, family) && (settings.is_ours(id) || planner.wants(id)));
        let listed = listed.map_err(|error| Error::ipvs("listing virtual servers", error))?;
        let commands = ipvs::plan(&planner.table(), &listed.iter().cloned().collect());
        change.set_commands(commands);
        let bound = self.links.ours(family);
        change.bind = planner.addresses().filter(|ip| !bound.contains(ip)).collect();
        change.unbind = bound.into_iter().filter(|ip| !planner.wants_address(*ip)).collect();
        Ok(comparison)
    }

    /// Whether all virtual servers are there, and as many entries as they should be: a look that costs little, and
    /// notices that somebody flushed or destroyed something.
    pub(super) fn is_as_planned(&mut self, planner: &Planner) -> Result<bool, Error> {
        let servers =
            self.servers.services().map_err(|error| Error::ipvs("listing virtual servers", error))?;
        let wanted = planner.table();
        let there = servers
            .iter()
            .filter(|service| wanted.get(&service.id).is_some_and(|wanted| wanted.config == service.config));
        if there.count() != wanted.len() {
            return Ok(false);
        }
        let mut sizes = BTreeMap::new();
        for name in self.sets.names().map_err(|error| Error::ipset("listing sets", error))? {
            if let Some(set) = Set::named(&name.to_text(), planner.family()) {
                let info =
                    self.sets.infos(Some(name)).map_err(|error| Error::ipset("listing sets", error))?;
                sizes.insert(set, info.first().and_then(|info| info.entries));
            }
        }
        let fits = |set: &Set| match sizes.get(set) {
            Some(Some(size)) => usize::try_from(*size) == Ok(planner.size(*set)),
            // Kernels before 4.9 do not count.
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
        let difference = difference.map_err(|reason| Error::ipset("comparing sets", reason.into()))?;
        if !difference.add.is_empty() {
            comparison.change.add.push((set, difference.add));
        }
        if !difference.delete.is_empty() {
            comparison.change.delete.push((set, difference.delete));
        }
        Ok(())
    }

    /// Gives a set that does not fit its entries at once; one of another type is destroyed first, for which no rule may
    /// refer to it.
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

    /// Makes sets and adds entries.
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
            let deleted = self.sets.del(set.spec(family).name(), entries, Exist::Ignore);
            deleted.map_err(|error| Error::ipset("deleting from sets", error))?;
        }
        Ok(())
    }

    /// Carries commands out. Those that are refused hold up no others, but come back.
    pub(super) fn serve(&mut self, commands: &[Command]) -> Result<Refused, Error> {
        let mut refused = Refused::default();
        let mut sound = Vec::with_capacity(commands.len());
        for command in commands {
            match command.check() {
                Ok(()) => sound.push(*command),
                Err(error) => refused.add_invalid(command, error),
            }
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

    /// Looks at the connections of destinations that get no new ones any more: deletions of those that have none are added to the
    /// change, the others are drained. Costs a listing of each of their services.
    pub(super) fn retire(
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

    /// Deletes the drained destinations that have no connections any more; when to look again.
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
        // One that somebody else deleted meanwhile is what it should be.
        let _ = self.serve(&step.commands)?;
        Ok((step.commands.len(), step.look_again))
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
        self.links.bind(ips).map_err(|error| Error::kernel("binding addresses of services", error))
    }

    /// Unbinds addresses.
    pub(super) fn unbind(&mut self, ips: &[IpAddr]) -> Result<(), Error> {
        self.links.unbind(ips).map_err(|error| Error::kernel("unbinding addresses of services", error))
    }
}

type Found = BTreeMap<Endpoint, (ipvs::DestinationConfig, Connections)>;

/// Commands that were refused: none, by default.
#[derive(Debug, Default)]
pub(super) struct Refused {
    /// The virtual servers that something was refused to, and why, where it is for their own sake.
    servers: BTreeMap<ServiceId, Option<String>>,
    /// What is said where no Kubernetes service can be blamed.
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

    /// Adds what would not be sent.
    fn add_invalid(&mut self, command: &Command, error: ipvs::Error) {
        if let Some(server) = command.service() {
            self.blame(*server, Some(format!("{}: {error}", command.summary())));
        }
        self.error.get_or_insert(error);
    }

    fn blame(&mut self, server: ServiceId, why: Option<String>) {
        let held = self.servers.entry(server).or_default();
        *held = held.take().or(why);
    }

    /// Adds what was refused later.
    pub(super) fn and(mut self, later: Self) -> Self {
        later.servers.into_iter().for_each(|(server, why)| self.blame(server, why));
        self.error = self.error.or(later.error);
        self
    }

    /// Whether the command is about none of the virtual servers that something was refused to.
    pub(super) fn spares(&self, command: &Command) -> bool {
        command.service().is_none_or(|server| !self.servers.contains_key(server))
    }

    /// An error where something was refused, with the Kubernetes services for whose sake it was, if it was for any's.
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

/// The kernel refuses it for what the virtual server is, and would take another. A scheduler that is not there, a lack of rights,
/// memory or IPv6 is nobody's fault.
fn is_own_fault(refusal: &ipvs::Refusal) -> bool {
    let is_scheduler = matches!(
        refusal.command(),
        Some(Command::NewService { .. } | Command::SetService { .. }) if refusal.is_not_found()
    );
    let errno = Errno::from_raw(refusal.errno);
    !is_scheduler && !matches!(errno, Errno::EPERM | Errno::ENOMEM | Errno::EAFNOSUPPORT)
}

/// A virtual server of an address of this family.
pub(super) fn is_of(id: &ServiceId, family: Family) -> bool {
    matches!(id, ServiceId::Virtual { endpoint, .. } if Family::of(endpoint.address) == family)
}

fn has_end(service: &ServiceId) -> bool {
    !matches!(service.protocol(), Some(Protocol::UDP | Protocol::SCTP))
}

/// Gives destinations that go, and whose connections have an end, weight 0 instead; returns them. Only then can it be told
/// that one has no connections, and will have none. What is being drained and wanted again gets its weight back.
pub(super) fn quieten(change: &mut Change, drain: &mut Drain) -> Vec<(ServiceId, Endpoint)> {
    for command in &mut change.serve {
        match *command {
            Command::NewDestination { service, id, config } => {
                if let Some(back) = drain.come_back(service, id, config) {
                    *command = back;
                }
            }
            Command::SetDestination { service, id, config } => {
                // The command is what it would answer.
                let _ = drain.come_back(service, id, config);
            }
            _ => {}
        }
    }
    let mut quiet = Vec::new();
    for command in std::mem::take(&mut change.retire) {
        match command {
            Command::DelDestination { service, id } if has_end(&service) => {
                let config = OURS.weight(0);
                change.serve.push(Command::SetDestination { service, id, config });
                quiet.push((service, id));
            }
            Command::DelService { id } => {
                forget(drain, &id);
                change.retire.push(command);
            }
            other => change.retire.push(other),
        }
    }
    quiet
}

/// What the plan wants is not drained any more, whatever it has come to be in the kernel.
pub(super) fn keep_wanted(drain: &mut Drain, planner: &Planner) {
    let table = planner.table();
    let wanted = |service: &ServiceId, id: &Endpoint| {
        table.get(service).is_some_and(|entry| entry.destinations.contains_key(id))
    };
    let kept: Vec<_> =
        drain.iter().filter(|(service, id)| wanted(service, id)).map(|(s, id)| (*s, *id)).collect();
    for (service, id) in kept {
        let _ = drain.come_back(service, id, OURS);
    }
}

/// With a service, its destinations go.
fn forget(drain: &mut Drain, service: &ServiceId) {
    let gone: Vec<_> = drain.iter().filter(|(of, _)| *of == service).map(|(_, id)| *id).collect();
    for id in gone {
        let _ = drain.come_back(*service, id, OURS);
    }
}

/// How every destination of ours is configured, weight aside.
const OURS: ipvs::DestinationConfig = ipvs::DestinationConfig {
    forward: ipvs::Forward::Masquerade,
    weight: 1,
    upper_threshold: 0,
    lower_threshold: 0,
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Cluster, Found as Objects, Node};
    use crate::source;

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
        let mut found = Objects::default();
        source::read_str("test.yaml", text, |manifest| found.add(manifest)).unwrap();
        found.into_cluster(Node::default()).0
    }

    fn refusal(command: Command, errno: Errno) -> ipvs::Error {
        let operation = ipvs::Operation::Command { index: 0, command: Box::new(command) };
        let refusal = ipvs::Refusal { operation, errno: errno as i32, message: None };
        ipvs::Error::SomeRefused { failed: vec![refusal], more: false }
    }

    fn blamed(refused: Refused) -> Vec<String> {
        let planner = Planner::new(Family::V4, &Settings::default(), &cluster(), None).unwrap();
        let error = refused.into_result(&planner).unwrap_err();
        error.refused().iter().map(|(name, why)| format!("{name}: {why}")).collect()
    }

    #[test]
    fn a_refusal_names_the_service_whose_virtual_server_it_is_about() {
        let server = |ip: [u8; 4]| ServiceId::tcp(Endpoint::new(ip, 80));
        let destination = |ip, to: [u8; 4]| Command::NewDestination {
            service: server(ip),
            id: Endpoint::new(to, 8080),
            config: OURS,
        };
        let mut refused = Refused::default();
        refused.add(refusal(destination([172, 30, 10, 2], [10, 0, 0, 255]), Errno::EINVAL));
        let mut later = Refused::default();
        later.add(refusal(Command::DelService { id: server([192, 0, 2, 1]) }, Errno::EBUSY));
        let refused = refused.and(later);
        assert!(!refused.spares(&Command::DelService { id: server([172, 30, 10, 2]) }));
        assert!(refused.spares(&Command::DelService { id: server([172, 30, 10, 1]) }));
        let blamed = blamed(refused);
        assert_eq!(blamed.len(), 2, "{blamed:?}");
        assert!(blamed[0].starts_with("demo/web: ") && blamed[0].contains("192.0.2.1:80"), "{blamed:?}");
        assert!(blamed[1].starts_with("demo/xeb: ") && blamed[1].contains("10.0.0.255:8080"), "{blamed:?}");
    }

    #[test]
    fn what_would_not_be_sent_names_its_service_too() {
        let mut refused = Refused::default();
        let service = ServiceId::tcp(Endpoint::new([172, 30, 10, 1], 80));
        let command =
            Command::NewDestination { service, id: Endpoint::new([224, 0, 0, 1], 80), config: OURS };
        refused.add_invalid(&command, command.check().unwrap_err());
        let blamed = blamed(refused);
        assert!(blamed[0].starts_with("demo/web: ") && blamed[0].contains("unicast"), "{blamed:?}");
    }

    #[test]
    fn what_the_kernel_lacks_is_no_services_fault() {
        let id = ServiceId::tcp(Endpoint::new([172, 30, 10, 1], 80));
        let config = ipvs::ServiceConfig::new(ipvs::Scheduler::MH);
        for errno in [Errno::ENOENT, Errno::EPERM, Errno::EAFNOSUPPORT] {
            let mut refused = Refused::default();
            refused.add(refusal(Command::NewService { id, config }, errno));
            assert_eq!(blamed(refused), [""; 0]);
        }
        // One of nobody that is known.
        let mut refused = Refused::default();
        let id = ServiceId::tcp(Endpoint::new([172, 30, 10, 9], 80));
        refused.add(refusal(Command::DelService { id }, Errno::EBUSY));
        assert_eq!(blamed(refused), [""; 0]);
        let planner = Planner::new(Family::V4, &Settings::default(), &cluster(), None).unwrap();
        assert!(Refused::default().into_result(&planner).is_ok());
    }
}
