//! Checks that incremental and fresh content agree for random clusters and sequences of changes.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use sluicegate_services::{
    Cluster, Family, Hints, Node, Port, Protocol, Scheduler, Service, ServiceName, Slice, SliceEndpoint,
    SliceName, SlicePort, Slots, categorize,
};

use super::Layout;
use super::element::{ChainId, Choice, Container, Element, ElementKey, ElementValue, Target};
use super::port::{ChainPlan, PortPlan};
use super::table::{Content, Delta};

type Elements = BTreeMap<(Container, ElementKey), ElementValue>;
type Chains = BTreeMap<ChainId, Option<ChainPlan>>;

/// A model of the kernel's table.
#[derive(Debug, Default, PartialEq)]
struct Kernel {
    elements: Elements,
    chains: Chains,
}

impl Kernel {
    fn of(content: &Content) -> Self {
        let mut kernel = Self::default();
        content.elements(&mut |Element { container, key, value, .. }: Element| {
            assert_eq!(kernel.elements.insert((container, key), value), None, "{container:?} {key:?} twice");
        });
        kernel.chains.extend(content.chains().map(|(id, plan)| (id, plan.cloned())));
        kernel
    }

    /// Applies a change as strictly as the kernel: deleted objects must exist, and added ones must not.
    fn apply(&mut self, delta: Delta) {
        for ((container, key), edit) in delta.elements {
            let before = self.elements.remove(&(container, key));
            assert_eq!(before, edit.before.map(|e| e.value), "{container:?} {key:?}");
            if let Some(after) = edit.after {
                self.elements.insert((container, key), after.value);
            }
        }
        for (id, edit) in delta.chains {
            assert_eq!(self.chains.remove(&id), edit.before, "{id:?}");
            if let Some(after) = edit.after {
                self.chains.insert(id, after);
            }
        }
    }

    /// Checks that no element refers to an object that does not exist.
    fn check(&self, content: &Content) {
        let mut counts: BTreeMap<Container, usize> = BTreeMap::new();
        for ((container, _), value) in &self.elements {
            *counts.entry(*container).or_default() += 1;
            if let ElementValue::Verdict(Target::Goto(chain)) = value {
                assert!(self.chains.contains_key(chain), "{container:?} goes to {chain:?}");
            }
        }
        for container in Container::ALL {
            assert_eq!(
                content.count(container),
                counts.get(&container).copied().unwrap_or(0),
                "{container:?}"
            );
        }
        let mut wanted = BTreeSet::new();
        for ((container, key), value) in &self.elements {
            let (Container::Dispatch(scope, path), ElementKey::Frontend(frontend)) = (container, key) else {
                continue;
            };
            let ElementValue::Balancer(balance) = value else { continue };
            let balancer = (Container::Balancers(*scope, *path), ElementKey::Balancer(*balance));
            assert!(self.elements.contains_key(&balancer), "{balance:?} has no chain");
            assert_eq!((balance.scope, balance.path), (*scope, *path));
            let numbers = match balance.choice {
                Choice::Affinity(_) => Container::StickyIds(balance.scope, balance.path, balance.protocol),
                _ => Container::Endpoints(balance.scope, balance.path, balance.protocol),
            };
            for index in 0..balance.count {
                wanted.insert((numbers, ElementKey::Indexed(*frontend, index)));
            }
        }
        let numbered = self.elements.keys().filter(|(_, key)| matches!(key, ElementKey::Indexed(..)));
        let numbered: BTreeSet<_> = numbered.copied().collect();
        assert_eq!(numbered, wanted, "endpoints are numbered from 0 to the count of the verdict");
        let mut identified = 0;
        for ((container, key), value) in &self.elements {
            let (Container::StickyIds(scope, path, protocol), ElementKey::Indexed(frontend, _)) =
                (container, key)
            else {
                continue;
            };
            let ElementValue::Id(id) = value else { panic!("{value:?} instead of an id") };
            let endpoint = (
                Container::StickyEndpoints(*scope, *path, *protocol),
                ElementKey::Identified(*frontend, *id),
            );
            assert!(self.elements.contains_key(&endpoint), "{endpoint:?}");
            identified += 1;
        }
        let endpoints =
            self.elements.keys().filter(|(container, _)| matches!(container, Container::StickyEndpoints(..)));
        assert_eq!(endpoints.count(), identified, "every endpoint has one number");
    }
}

fn service() -> impl Strategy<Value = Option<Service>> {
    let port = (0..3u8, 1..4u16, prop::option::of(30000..30002u16), prop::bool::ANY);
    let service = (prop::collection::vec(port, 0..3), 0..4u8, 0..3u8, any::<(bool, bool)>(), 0..6u8);
    let make = |(ports, external, balancer, (external_local, internal_local), other)| {
        let ip = |n: u8| std::net::IpAddr::from([10, 0, 0, n]);
        let mut names = BTreeSet::new();
        let ports: Vec<Port> =
            ports_of(ports).filter(|port| names.insert((port.name.clone(), port.protocol))).collect();
        Service {
            cluster_ips: [Some(ip(ip_of(external, balancer))), None],
            ports: ports.into(),
            external_ips: (external > 0).then(|| ip(100 + external)).into_iter().collect(),
            forbidden_external_ips: Box::default(),
            load_balancer_ips: (0..balancer).map(|n| ip(101 + n)).collect(),
            source_ranges: match other {
                0 => ["10.0.0.0/8", "10.1.0.0/16", "192.168.0.0/24"].map(|net| net.parse().unwrap()).into(),
                1 => ["203.0.113.0/24"].map(|net| net.parse().unwrap()).into(),
                _ => Box::default(),
            },
            external_local,
            internal_local,
            affinity_seconds: (other > 3).then_some(u32::from(other) * 100),
            health_check_node_port: None,
            scheduler: [
                None,
                Some(Scheduler::RoundRobin),
                Some(Scheduler::SourceHash),
                Slots::new(11).map(Scheduler::Maglev),
            ][usize::from(other % 4)],
            created: None,
            source_ranges_incomplete: false,
        }
    };
    fn ip_of(external: u8, balancer: u8) -> u8 {
        1 + external * 3 + balancer
    }
    fn ports_of(ports: Vec<(u8, u16, Option<u16>, bool)>) -> impl Iterator<Item = Port> {
        ports.into_iter().map(|(name, port, node_port, udp)| Port {
            name: ["", "a", "b"][usize::from(name)].into(),
            protocol: if udp { Protocol::Udp } else { Protocol::Tcp },
            port: port.try_into().unwrap(),
            node_port: node_port.map(|port| port.try_into().unwrap()),
        })
    }
    prop::option::weighted(0.8, service.prop_map(make))
}

fn slice(owner: ServiceName) -> impl Strategy<Value = Option<Slice>> {
    let endpoint = (1..6u8, 0..3u8, 0..4u8, 0..4u8).prop_map(|(ip, node, state, hint)| SliceEndpoint {
        ip: std::net::IpAddr::from([10, 244, 0, ip]),
        node: ["here", "there"].get(usize::from(node)).map(|node| (*node).into()),
        ready: state < 2,
        serving: state < 3,
        terminating: state >= 2,
        hints: (hint < 2).then(|| {
            let zone: Box<str> = ["z", "y"][usize::from(hint)].into();
            Hints { zones: [zone].into(), nodes: Box::default() }.into()
        }),
    });
    let ports =
        |name: &str, protocol| SlicePort { name: name.into(), protocol, port: 8080.try_into().unwrap() };
    let ports: Box<[SlicePort]> =
        [("", Protocol::Tcp), ("a", Protocol::Tcp), ("a", Protocol::Udp), ("b", Protocol::Tcp)]
            .map(|(name, protocol)| ports(name, protocol))
            .into();
    let slice = prop::collection::vec(endpoint, 0..5).prop_map(move |endpoints| Slice {
        service: owner.clone(),
        family: Family::Ipv4,
        ports: ports.clone(),
        endpoints: endpoints.into(),
        last_change: None,
    });
    prop::option::weighted(0.8, slice)
}

#[derive(Clone, Debug)]
enum Event {
    Service(usize, Option<Service>),
    Slice(usize, usize, Option<Slice>),
    Zone(Option<&'static str>),
    Sync,
}

fn name(index: usize) -> ServiceName {
    ServiceName::new("demo", ["a", "b", "c"][index]).unwrap()
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let event = prop_oneof![
        4 => (0..3usize, service()).prop_map(|(index, service)| Event::Service(index, service)),
        6 => (0..3usize, 0..2usize).prop_flat_map(|(index, which)| {
            slice(name(index)).prop_map(move |slice| Event::Slice(index, which, slice))
        }),
        1 => prop::sample::select(vec![None, Some("z"), Some("y")]).prop_map(Event::Zone),
        3 => Just(Event::Sync),
    ];
    prop::collection::vec(event, 1..40)
}

fn plans(cluster: &Cluster, name: &ServiceName, layout: Layout) -> Vec<PortPlan> {
    let topology = cluster.topology();
    let ports = cluster.ports(name, Family::Ipv4);
    let node_ip = cluster.node().primary(Family::Ipv4);
    let plan = |port| PortPlan::new(layout, Scheduler::Random, port, &categorize(port, &topology), node_ip);
    ports.iter().map(plan).collect()
}

fn node(zone: Option<&str>) -> Node {
    Node {
        name: "here".to_owned(),
        addresses: vec!["10.9.9.9".parse().unwrap()],
        zone: zone.map(str::to_owned),
        ..Node::default()
    }
}

fn run(layout: Layout, events: Vec<Event>) {
    let mut cluster = Cluster::new(node(None));
    let (mut content, mut kernel) = (Content::default(), Kernel::default());
    for event in events.into_iter().chain([Event::Sync]) {
        match event {
            Event::Service(index, service) => cluster.set_service(&name(index), service),
            Event::Slice(index, which, slice) => {
                let slice_name =
                    SliceName { namespace: "demo".into(), name: format!("{index}-{which}").into() };
                cluster.set_slice(&slice_name, slice);
            }
            Event::Zone(zone) => cluster.set_node(node(zone)),
            Event::Sync => {
                let mut delta = Delta::default();
                for name in cluster.take_changes().names() {
                    content.set(name, plans(&cluster, name, layout).into_iter(), Some(&mut delta));
                }
                delta.settle();
                kernel.apply(delta);
                kernel.check(&content);
                let mut fresh = Content::default();
                for name in cluster.service_names() {
                    fresh.set(name, plans(&cluster, name, layout).into_iter(), None);
                }
                assert_eq!(Kernel::of(&fresh), kernel, "a fresh plan");
                assert_eq!(Kernel::of(&content), kernel, "what the content says");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn incremental_and_fresh_agree_in_the_maps_layout(events in events()) {
        run(Layout::Maps, events);
    }

    #[test]
    fn incremental_and_fresh_agree_in_the_chains_layout(events in events()) {
        run(Layout::Chains, events);
    }
}
