//! Random changes: all changes together result in a fresh plan.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::num::NonZeroU16;

use proptest::prelude::*;
use sluicegate_ipset::Entry;
use sluicegate_iptables_save::{Family as ToolFamily, Save, State, diff};
use sluicegate_ipvs::{Command, Table};
use sluicegate_service_rules::ipvs::{Change, Planner, Set};
use sluicegate_services::{
    Cluster, Family, Node, Port, Protocol, Service, ServiceName, Slice, SliceEndpoint, SliceName, SlicePort,
};

use crate::ipvs::example::settings;

/// A model of the kernel that applies changes, and panics on those that the real one would refuse.
#[derive(Default)]
struct Kernel {
    entries: BTreeSet<(Set, String)>,
    servers: Table,
    addresses: BTreeSet<IpAddr>,
}

impl Kernel {
    fn apply(&mut self, change: &Change) {
        let key = |set: &Set, entry: &Entry| (*set, entry.to_string());
        for (set, entries) in &change.add {
            entries.iter().for_each(|entry| assert!(self.entries.insert(key(set, entry)), "{entry} again"));
        }
        change.serve.iter().for_each(|command| self.serve(command));
        change.bind.iter().for_each(|ip| assert!(self.addresses.insert(*ip), "{ip} again"));
        change.unbind.iter().for_each(|ip| assert!(self.addresses.remove(ip), "{ip} is not there"));
        change.retire.iter().for_each(|command| self.serve(command));
        for (set, entries) in &change.delete {
            entries
                .iter()
                .for_each(|entry| assert!(self.entries.remove(&key(set, entry)), "{entry} is gone"));
        }
    }

    fn serve(&mut self, command: &Command) {
        match command {
            Command::AddService { id, config } => {
                assert!(self.servers.get(id).is_none(), "{command} again");
                self.servers.service(*id, *config);
            }
            Command::EditService { id, config } => {
                assert!(self.servers.get(id).is_some(), "{command} without it");
                self.servers.service(*id, *config);
            }
            Command::DeleteService { id } => {
                assert!(self.servers.remove(id).is_some(), "{command} without it");
            }
            Command::AddDestination { service, id, config } => {
                let mut entry = self.servers.remove(service).expect("its service");
                assert!(entry.destinations.insert(*id, *config).is_none(), "{command} again");
                self.servers.service(*service, entry.config).destinations = entry.destinations;
            }
            Command::DeleteDestination { service, id } => {
                let mut entry = self.servers.remove(service).expect("its service");
                assert!(entry.destinations.remove(id).is_some(), "{command} without it");
                self.servers.service(*service, entry.config).destinations = entry.destinations;
            }
            other => panic!("nobody asked for {other}"),
        }
    }
}

#[derive(Clone, Debug)]
enum Step {
    Service(u8, Option<Spec>),
    Endpoints(u8, Vec<(u8, bool, bool)>),
    Node(Vec<u8>),
}

#[derive(Clone, Debug)]
struct Spec {
    ip: u8,
    ports: u8,
    external: Vec<u8>,
    balancer: Vec<u8>,
    ranges: u8,
    local: (bool, bool),
    sticky: bool,
    node_port: bool,
    protocol: Protocol,
}

fn spec() -> impl Strategy<Value = Spec> {
    let few = || prop::collection::vec(0..4u8, 0..3);
    let protocol = prop::sample::select(Protocol::ALL.to_vec());
    (0..3u8, 1..3u8, few(), few(), 0..3u8, any::<(bool, bool)>(), any::<bool>(), any::<bool>(), protocol)
        .prop_map(|(ip, ports, external, balancer, ranges, local, sticky, node_port, protocol)| Spec {
            ip,
            ports,
            external,
            balancer,
            ranges,
            local,
            sticky,
            node_port,
            protocol,
        })
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..4u8, prop::option::weighted(0.8, spec())).prop_map(|(name, spec)| Step::Service(name, spec)),
        4 => (0..4u8, prop::collection::vec((0..5u8, any::<bool>(), any::<bool>()), 0..4))
            .prop_map(|(name, endpoints)| Step::Endpoints(name, endpoints)),
        1 => prop::collection::vec(0..4u8, 0..3).prop_map(Step::Node),
    ]
}

fn address(family: Family, kind: u8, number: u8) -> IpAddr {
    match family {
        Family::Ipv4 => [10, kind, 0, number + 1].into(),
        Family::Ipv6 => [0xfd00, kind.into(), 0, 0, 0, 0, 0, u16::from(number) + 1].into(),
    }
}

fn number(base: u16, more: u8) -> NonZeroU16 {
    NonZeroU16::new(base + u16::from(more)).expect("not 0")
}

fn service(name: u8, spec: &Spec) -> Service {
    let both = |kind, numbers: &[u8]| -> Box<[IpAddr]> {
        let distinct: BTreeSet<_> = numbers.iter().collect();
        distinct.iter().flat_map(|n| Family::BOTH.map(|family| address(family, kind, **n))).collect()
    };
    let port = |index| Port {
        name: format!("p{index}").into(),
        protocol: spec.protocol,
        port: number(80, index),
        node_port: spec.node_port.then(|| number(30_000 + u16::from(name) * 10, index)),
    };
    let ranges = ["10.9.0.0/24", "fd00:9::/64", "192.168.0.2/32", "fd00:192:168::2/128"];
    let ranges = ranges.iter().take(usize::from(spec.ranges) * 2).map(|net| net.parse().expect("a network"));
    Service {
        cluster_ips: Family::BOTH.map(|family| Some(address(family, 1, spec.ip))),
        ports: (0..spec.ports).map(port).collect(),
        external_ips: both(2, &spec.external),
        // Some of them are external IPs or cluster IPs of other services.
        forbidden_external_ips: Box::default(),
        load_balancer_ips: both(if spec.sticky { 2 } else { 3 }, &spec.balancer),
        source_ranges: ranges.collect(),
        external_local: spec.local.0,
        internal_local: spec.local.1,
        affinity_seconds: spec.sticky.then_some(600),
        health_check_node_port: (spec.local.0 && spec.sticky).then(|| number(31_000, name)),
        scheduler: None,
        created: None,
        source_ranges_incomplete: false,
    }
}

fn change(cluster: &mut Cluster, step: &Step) {
    let service_name = |name: &u8| ServiceName::new("ns", &format!("s{name}")).expect("a DNS label");
    match step {
        Step::Service(name, spec) => {
            cluster.set_service(&service_name(name), spec.as_ref().map(|spec| service(*name, spec)));
        }
        Step::Endpoints(name, endpoints) => {
            for family in Family::BOTH {
                let slice_name =
                    SliceName { namespace: "ns".into(), name: format!("s{name}-{family}").into() };
                let endpoints = endpoints.iter().map(|(number, local, ready)| SliceEndpoint {
                    ip: address(family, 4, *number),
                    node: Some(if *local { "test-node" } else { "other" }.into()),
                    ready: *ready,
                    serving: true,
                    terminating: !ready,
                    hints: None,
                });
                let ports = |index| {
                    Protocol::ALL.map(|protocol| SlicePort {
                        name: format!("p{index}").into(),
                        protocol,
                        port: number(8080, index),
                    })
                };
                let slice = Slice {
                    service: service_name(name),
                    family,
                    ports: (0..2).flat_map(ports).collect(),
                    endpoints: endpoints.collect(),
                    last_change: None,
                };
                cluster.set_slice(&slice_name, Some(slice));
            }
        }
        Step::Node(addresses) => {
            let addresses = addresses.iter().flat_map(|n| Family::BOTH.map(|family| address(family, 2, *n)));
            cluster.set_node(Node { addresses: addresses.collect(), ..cluster.node().clone() });
        }
    }
}

fn rules(input: &Save<'_>, family: ToolFamily) -> String {
    let none = State::of_family(&Save::default(), family).expect("no rules");
    let state = State::of_family(input, family).expect("rules of ours");
    diff(&none, &state, |_, _| true).expect("a difference").to_string()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn changes_add_up_to_a_fresh_plan(steps in prop::collection::vec(step(), 1..14)) {
        let node = Node { name: "test-node".to_owned(), ..Node::default() };
        for family in Family::BOTH {
            let mut cluster = Cluster::new(node.clone());
            let mut planner = Planner::new(family, &settings(), &cluster, None).unwrap();
            let mut kernel = Kernel::default();
            kernel.apply(&planner.whole());
            for step in &steps {
                change(&mut cluster, step);
                let before = planner.input();
                let changes = cluster.take_changes();
                let sent = planner.sync(&cluster, &changes).unwrap();
                kernel.apply(&sent);

                let fresh = Planner::new(family, &settings(), &cluster, None).unwrap();
                let mut wanted = Kernel::default();
                wanted.apply(&fresh.whole());
                prop_assert_eq!(&kernel.entries, &wanted.entries);
                prop_assert_eq!(&kernel.servers, &wanted.servers);
                prop_assert_eq!(&kernel.addresses, &wanted.addresses);
                let tool = if family == Family::Ipv4 { ToolFamily::Ipv4 } else { ToolFamily::Ipv6 };
                prop_assert_eq!(rules(&planner.input(), tool), rules(&fresh.input(), tool));
                prop_assert_eq!(sent.rules.items.is_empty(), rules(&before, tool) == rules(&fresh.input(), tool));
            }
        }
    }
}
