//! Random changes of random clusters: the planned change, applied line by line to the old state, results in
//! the new one. The lines are applied by the library that reads iptables-save, without a kernel.

use std::net::IpAddr;
use std::num::NonZeroU16;

use proptest::prelude::*;
use sluicegate_iptables_save::{Family as ToolFamily, Save, State};
use sluicegate_service_rules::iptables::Planner;
use sluicegate_services::{
    Cluster, Family, Node, Port, Protocol, Service, ServiceName, Slice, SliceEndpoint, SliceName, SlicePort,
};

use crate::iptables::world::{settings, support};

/// One service: which ports, addresses and policies it has, and which of four endpoints in which state.
#[derive(Clone, Debug)]
struct Wanted {
    flags: [bool; 8],
    endpoints: [u8; 4],
}

fn wanted() -> impl Strategy<Value = Option<Wanted>> {
    let one = (any::<[bool; 8]>(), prop::array::uniform4(0u8..6));
    prop::option::weighted(0.8, one.prop_map(|(flags, endpoints)| Wanted { flags, endpoints }))
}

/// Names whose order as texts differs from their order by namespace and name.
const NAMES: [(&str, &str); 6] =
    [("a", "web"), ("a-b", "web"), ("a", "x"), ("b", "dns"), ("b", "dns-2"), ("c", "api")];

fn set(cluster: &mut Cluster, number: usize, wanted: Option<&Wanted>) {
    let (namespace, name) = NAMES[number];
    let service = ServiceName::new(namespace, name).expect("a value that is valid here");
    let slice = SliceName { namespace: namespace.into(), name: format!("{name}-1").into() };
    cluster.set_service(&service, wanted.map(|wanted| wanted.service(number)));
    cluster.set_slice(&slice, wanted.map(|wanted| wanted.slice(&service)));
}

fn port(number: usize) -> NonZeroU16 {
    u16::try_from(number).ok().and_then(NonZeroU16::new).expect("a value that is valid here")
}

impl Wanted {
    fn service(&self, number: usize) -> Service {
        let [two_ports, node_port, external, balanced, ranges, external_local, internal_local, affine] =
            self.flags;
        let last = u8::try_from(number + 1).expect("a value that is valid here");
        let ip = |net: [u8; 3], there: bool| -> Box<[IpAddr]> {
            there.then(|| IpAddr::from([net[0], net[1], net[2], last])).into_iter().collect()
        };
        let of = |protocol: Protocol, offset: usize| Port {
            name: protocol.as_str().into(),
            protocol,
            port: port(80),
            node_port: node_port.then(|| port(30_000 + number * 2 + offset)),
        };
        let ports = [of(Protocol::Tcp, 0), of(Protocol::Udp, 1)];
        Service {
            cluster_ips: [Some(IpAddr::from([172, 30, 0, last])), None],
            ports: ports.into_iter().take(1 + usize::from(two_ports)).collect(),
            external_ips: ip([198, 51, 100], external),
            forbidden_external_ips: Box::default(),
            load_balancer_ips: ip([203, 0, 113], balanced),
            source_ranges: ranges
                .then(|| "192.168.0.0/24".parse().expect("a value that is valid here"))
                .into_iter()
                .collect(),
            external_local,
            internal_local,
            affinity_seconds: affine.then_some(10800),
            health_check_node_port: (balanced && external_local).then(|| port(31_000 + number)),
            scheduler: None,
            created: None,
            source_ranges_incomplete: false,
        }
    }

    fn slice(&self, service: &ServiceName) -> Slice {
        let states = self.endpoints.iter().enumerate().filter(|(_, state)| **state != 0);
        let endpoint = |(at, state): (usize, &u8)| SliceEndpoint {
            ip: IpAddr::from([
                10,
                244,
                u8::try_from(at % 2).expect("a value that is valid here"),
                u8::try_from(at + 9).expect("a value that is valid here"),
            ]),
            node: Some(if at % 2 == 0 { "test-node" } else { "other" }.into()),
            ready: *state > 2,
            serving: *state > 1,
            terminating: *state <= 2,
            hints: None,
        };
        let ports = [Protocol::Tcp, Protocol::Udp];
        let ports =
            ports.map(|protocol| SlicePort { name: protocol.as_str().into(), protocol, port: port(8080) });
        Slice {
            service: service.clone(),
            family: Family::Ipv4,
            ports: ports.into(),
            endpoints: states.map(endpoint).collect(),
            last_change: None,
        }
    }
}

fn normal(texts: &[&str]) -> String {
    let text = texts.concat();
    let save = Save::parse(&text).expect("a value that is valid here");
    State::of_family(&save, ToolFamily::Ipv4)
        .unwrap_or_else(|error| panic!("{error}\n{text}"))
        .normal()
        .expect("a value that is valid here")
}

fn fresh(cluster: &Cluster) -> Planner {
    Planner::new(Family::Ipv4, &settings(), support(), cluster, None).expect("a value that is valid here")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn the_change_leads_from_any_cluster_to_any_other(
        steps in prop::collection::vec(prop::collection::vec(wanted(), NAMES.len()), 2..4),
    ) {
        let address = "192.168.0.2".parse().expect("a valid address");
        let node = Node { name: "test-node".into(), addresses: vec![address], ..Node::default() };
        let mut cluster = Cluster::new(node);
        let mut planner = fresh(&cluster);
        let mut held = planner.input().to_string();
        for step in steps {
            for (number, wanted) in step.iter().enumerate() {
                set(&mut cluster, number, wanted.as_ref());
            }
            let changes = cluster.take_changes();
            let sent = planner.sync(&cluster, &changes).expect("a value that is valid here").to_string();
            let whole = fresh(&cluster).input().to_string();
            prop_assert_eq!(normal(&[&held, &sent]), normal(&[&whole]), "sent:\n{}", sent);
            prop_assert_eq!(planner.input().to_string(), whole.clone());
            let save = Save::parse(&whole).expect("it parses");
            let count = |table: &str| save.table(table).map_or(0, |table| table.rules().count());
            let counts = planner.rule_counts();
            prop_assert_eq!((counts.filter, counts.nat), (count("filter"), count("nat")));
            held = whole;
        }
    }

    #[test]
    fn another_address_of_the_node_changes_the_rules_that_depend_on_it(
    wanted in prop::collection::vec(wanted(), NAMES.len()),
    ) {
        let node = |ip: &str| Node {
            name: "test-node".into(),
            addresses: vec![ip.parse().expect("a valid address")],
            ..Node::default()
        };
        let mut cluster = Cluster::new(node("192.168.0.2"));
        for (number, wanted) in wanted.iter().enumerate() {
            set(&mut cluster, number, wanted.as_ref());
        }
        cluster.take_changes();
        let mut planner = fresh(&cluster);
        let held = planner.input().to_string();
        cluster.set_node(node("192.168.9.2"));
        let changes = cluster.take_changes();
        let sent = planner.sync(&cluster, &changes).expect("a value that is valid here").to_string();
        let whole = fresh(&cluster).input().to_string();
        prop_assert_eq!(normal(&[&held, &sent]), normal(&[&whole]), "sent:\n{}", sent);
    }
}
