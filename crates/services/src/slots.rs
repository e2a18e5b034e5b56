//! How many slots of tables ([`Scheduler::Maglev`]) all services together may ask for.
//!
//! Each slot is an element in maps of the kernel, on every node, and whoever may write a Service asks for them by an
//! annotation. Above the bound the services that were there first have theirs, whatever the order of events.

use std::collections::BTreeMap;
use std::time::SystemTime;

use crate::{Family, Scheduler, Service, ServiceName};

/// The most slots that the annotations of all services together have: some 100 MiB of the memory of Linux 6.1.
pub(crate) const MOST_SLOTS: usize = 1 << 20;

/// The end of a sentence about a service that has none.
pub(crate) const NO_SLOTS: &str =
    "older Services have so much of the 1048576 slots of tables that too few are left; random is used";

/// What services ask for, and which of them have it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tables {
    /// By age: those whose age is not known come last, then the first by name.
    wishes: BTreeMap<(bool, Option<SystemTime>, ServiceName), Wish>,
    created: BTreeMap<ServiceName, Option<SystemTime>>,
    total: usize,
    /// The number of those that are left out.
    left_out: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Wish {
    scheduler: Scheduler,
    slots: usize,
    is_granted: bool,
}

impl Tables {
    /// Takes what a service asks for, or with `None` that it is gone, and sets the scheduler that it has. Returns the
    /// other services that have another scheduler now.
    pub(crate) fn set(
        &mut self,
        name: &ServiceName,
        service: Option<&mut Service>,
    ) -> Vec<(ServiceName, Scheduler)> {
        let asked = service.as_ref().map_or(0, |service| slots(service));
        let wish = service.as_ref().and_then(|service| {
            let wish = Wish { scheduler: service.scheduler?, slots: asked, is_granted: true };
            (asked > 0).then_some((service.created, wish))
        });
        if let Some(created) = self.created.remove(name)
            && let Some(before) = self.wishes.remove(&(created.is_none(), created, name.clone()))
        {
            self.total -= before.slots;
            self.left_out -= usize::from(!before.is_granted);
        }
        if let Some((created, wish)) = wish {
            self.total += wish.slots;
            self.created.insert(name.clone(), created);
            self.wishes.insert((created.is_none(), created, name.clone()), wish);
        }
        // The usual case costs nothing.
        if self.total <= MOST_SLOTS && self.left_out == 0 {
            return Vec::new();
        }
        let mut changed = self.grant();
        changed.retain(|(other, _)| other != name);
        if let (Some(service), Some(_)) = (service, self.refused(name)) {
            service.scheduler = Some(Scheduler::Random);
        }
        changed
    }

    /// Returns what a service asked for and does not have.
    pub(crate) fn refused(&self, name: &ServiceName) -> Option<Scheduler> {
        let created = *self.created.get(name)?;
        let wish = self.wishes.get(&(created.is_none(), created, name.clone()))?;
        (!wish.is_granted).then_some(wish.scheduler)
    }

    /// Returns the services that do not have what they asked for.
    pub(crate) fn all_refused(&self) -> impl Iterator<Item = &ServiceName> {
        let refused = self.wishes.iter().filter(|(_, wish)| !wish.is_granted);
        // In the usual case nobody has to be asked.
        refused.take(self.left_out).map(|((.., name), _)| name)
    }

    /// Gives slots to each in turn that asks for no more than are left, and returns those for which that has changed.
    fn grant(&mut self) -> Vec<(ServiceName, Scheduler)> {
        let mut left = MOST_SLOTS;
        let mut changed = Vec::new();
        self.left_out = 0;
        for ((.., name), wish) in &mut self.wishes {
            let is_granted = wish.slots <= left;
            if is_granted {
                left -= wish.slots;
            } else {
                self.left_out += 1;
            }
            if is_granted != wish.is_granted {
                wish.is_granted = is_granted;
                changed.push((name.clone(), if is_granted { wish.scheduler } else { Scheduler::Random }));
            }
        }
        changed
    }
}

/// Returns the number of slots that the annotation of a service asks for: for each port and address, and twice where
/// clients of this node may have other endpoints than those from outside.
fn slots(service: &Service) -> usize {
    let Some(Scheduler::Maglev(slots)) = service.scheduler.filter(|_| service.affinity_seconds.is_none())
    else {
        return 0;
    };
    let mut frontends = 0;
    for family in Family::BOTH {
        let outside = service.external_ips(family).count() + service.load_balancer_ips(family).count();
        let of_external = if service.external_local { 2 } else { 1 };
        for port in &service.ports {
            let is_there = service.cluster_ip(family).is_some();
            let node_port = usize::from(is_there && port.node_port.is_some());
            frontends += usize::from(is_there) + (outside + node_port) * of_external;
        }
    }
    usize::try_from(slots.get()).unwrap_or(usize::MAX).saturating_mul(frontends)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;
    use crate::{Cluster, Port, Slots};

    fn name(number: usize) -> ServiceName {
        ServiceName::new("demo", &format!("s-{number}")).unwrap()
    }

    /// A service of one frontend, that many seconds old.
    fn service(slots: u32, created: Option<u64>) -> Service {
        let ports = [Port::tcp("http", 80).unwrap()];
        let service = Service::new(["172.30.0.1".parse().unwrap()], ports).unwrap();
        let service = service.with_scheduler(Scheduler::Maglev(Slots::new(slots).unwrap()));
        match created {
            Some(seconds) => service.with_created(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)),
            None => service,
        }
    }

    /// The services that have another scheduler than they asked for.
    fn refused(cluster: &Cluster, count: usize) -> Vec<usize> {
        (0..count)
            .filter(|number| {
                let is_refused = cluster.scheduler_without_slots(&name(*number)).is_some();
                if let Some(service) = cluster.service(&name(*number)) {
                    assert_eq!(is_refused, service.scheduler == Some(Scheduler::Random), "{number}");
                }
                is_refused
            })
            .collect()
    }

    #[test]
    fn every_slot_of_a_frontend_counts() {
        let plain = service(251, None);
        assert_eq!(slots(&plain), 251);
        assert_eq!(slots(&plain.clone().with_affinity_seconds(9)), 0);
        let mut outside = plain.clone().with_external_ips(["192.0.2.1".parse().unwrap()]);
        assert_eq!(slots(&outside), 2 * 251);
        outside.external_local = true;
        assert_eq!(slots(&outside), 3 * 251);
        assert_eq!(slots(&plain.with_scheduler(Scheduler::SourceHash)), 0);
    }

    #[test]
    fn services_beyond_the_bound_choose_at_random_and_get_their_table_when_there_is_room() {
        let fit = MOST_SLOTS / 65_521;
        let mut cluster = Cluster::default();
        // The youngest come first.
        for number in (0..fit + 2).rev() {
            cluster.set_service(&name(number), service(65_521, Some(number as u64)));
        }
        assert_eq!(refused(&cluster, fit + 2), [fit, fit + 1]);
        assert!(cluster.services_without_slots().eq([&name(fit), &name(fit + 1)]));
        let told: Vec<_> = cluster.warnings().iter().map(ToString::to_string).collect();
        let told = told.iter().filter(|line| line.contains(&MOST_SLOTS.to_string())).count();
        assert_eq!(told, 2);
        // What is small enough still fits, and nobody else loses anything by it.
        cluster.set_service(&name(fit + 5), service(11, Some(1_000)));
        assert_eq!(refused(&cluster, fit + 6), [fit, fit + 1]);
        drop(cluster.take_changes());
        cluster.set_service(&name(3), None);
        assert_eq!(refused(&cluster, fit + 2), [fit + 1]);
        let changed: BTreeSet<_> = cluster.take_changes().names().cloned().collect();
        assert_eq!(changed, [name(fit), name(3)].into());
        // The same object again is no change.
        cluster.set_service(&name(fit + 1), service(65_521, Some(fit as u64 + 1)));
        assert!(!cluster.has_changes());
    }

    /// The slots of a service, and its age.
    fn asked() -> impl Strategy<Value = (u32, Option<u64>)> {
        (prop::sample::select(vec![11, 4_093, 65_521]), prop::option::of(0_u64..9))
    }

    proptest! {
        /// Whatever came and went before, what services have depends on those that are there alone.
        #[test]
        fn the_order_of_events_does_not_matter(
            steps in prop::collection::vec((0_usize..40, prop::option::of(asked())), 1..120)
        ) {
            let (mut cluster, mut there) = (Cluster::default(), BTreeMap::new());
            for (number, asked) in steps {
                let asked = asked.map(|(slots, created)| service(slots, created));
                cluster.set_service(&name(number), asked.clone());
                match asked {
                    Some(service) => there.insert(number, service),
                    None => there.remove(&number),
                };
            }
            let mut fresh = Cluster::default();
            for (number, service) in &there {
                fresh.set_service(&name(*number), service.clone());
            }
            prop_assert_eq!(refused(&cluster, 40), refused(&fresh, 40));
            let granted = there.iter().filter(|(number, _)| cluster.scheduler_without_slots(&name(**number)).is_none());
            prop_assert!(granted.map(|(_, service)| slots(service)).sum::<usize>() <= MOST_SLOTS);
        }
    }
}
