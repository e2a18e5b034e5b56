//! Who has a frontend, whatever the order in which its claimants come and go.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::{Cluster, Port};

fn name(text: &str) -> ServiceName {
    ServiceName::new("demo", text).unwrap()
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn at(seconds: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
}

fn service(cluster_ip: &str, port: Port) -> Service {
    Service::new([ip(cluster_ip)], [port]).unwrap()
}

/// Returns the frontends of each service, as texts.
fn frontends(cluster: &Cluster) -> BTreeMap<ServiceName, BTreeSet<String>> {
    let mut found: BTreeMap<ServiceName, BTreeSet<String>> = BTreeMap::new();
    for name in cluster.service_names() {
        for port in Family::BOTH.into_iter().flat_map(|family| cluster.ports(name, family)) {
            let entry = found.entry(name.clone()).or_default();
            let addresses = port.cluster_ip.iter().chain(&port.external_ips).chain(&port.load_balancer_ips);
            entry.extend(addresses.map(|ip| format!("{ip} {} {}", port.port, port.name.protocol)));
            entry.extend(
                port.node_port.map(|number| format!("{} node {number} {}", port.family, port.name.protocol)),
            );
            entry
                .extend(port.health_check_node_port.map(|number| format!("{} health {number}", port.family)));
        }
    }
    found
}

fn messages(cluster: &Cluster) -> Vec<String> {
    assert_eq!(cluster.conflicts().count(), cluster.conflict_count());
    cluster.conflicts().map(|conflict| conflict.to_string()).collect()
}

#[test]
fn a_cluster_ip_wins_over_everything_whoever_comes_first_by_name_or_age() {
    let dns = service("10.96.0.10", Port::udp("dns", 53).unwrap()).with_created(at(9));
    let evil = service("10.96.0.66", Port::udp("x", 53).unwrap()).with_created(at(1));
    for (evil, kind) in [
        (evil.clone().with_external_ips([ip("10.96.0.10"), ip("192.0.2.1")]), "external IP"),
        (evil.clone().with_load_balancer_ips([ip("10.96.0.10"), ip("192.0.2.1")]), "load-balancer IP"),
    ] {
        for evil_first in [true, false] {
            let mut cluster = Cluster::default();
            let mut services = [("a-evil", &evil), ("dns", &dns)];
            if !evil_first {
                services.reverse();
            }
            services
                .into_iter()
                .for_each(|(text, service)| cluster.set_service(&name(text), service.clone()));
            assert_eq!(
                messages(&cluster),
                [format!(
                    "Service demo/a-evil: {kind} 10.96.0.10:53/udp is left out: Service demo/dns has it as \
                        its cluster IP"
                )]
            );
            let found = frontends(&cluster);
            assert_eq!(found[&name("dns")], BTreeSet::from(["10.96.0.10 53 udp".to_owned()]));
            // What does not collide stays.
            let rest = ["10.96.0.66 53 udp", "192.0.2.1 53 udp"].map(str::to_owned);
            assert_eq!(found[&name("a-evil")], BTreeSet::from(rest));
        }
    }
}

#[test]
fn among_equals_the_older_object_wins_then_the_name_and_one_without_age_is_the_youngest() {
    let shared = |cluster_ip: &str| {
        service(cluster_ip, Port::tcp("", 80).unwrap()).with_external_ips([ip("192.0.2.1")])
    };
    let winner = |a: Option<u64>, b: Option<u64>| {
        let mut cluster = Cluster::default();
        for (text, cluster_ip, created) in [("a", "10.96.0.1", a), ("b", "10.96.0.2", b)] {
            let created = created.map(at);
            cluster.set_service(&name(text), Service { created, ..shared(cluster_ip) });
        }
        cluster.conflicts().next().unwrap().winner.name().to_owned()
    };
    assert_eq!(winner(Some(1), Some(2)), "a");
    assert_eq!(winner(Some(2), Some(1)), "b");
    assert_eq!(winner(Some(1), Some(1)), "a");
    assert_eq!(winner(None, None), "a");
    assert_eq!(winner(None, Some(1)), "b");
}

#[test]
fn ports_and_protocols_are_apart_and_a_port_without_a_frontend_is_none() {
    let mut cluster = Cluster::default();
    let with = |port: Result<Port, crate::Error>| service("10.96.0.1", port.unwrap());
    cluster.set_service(&name("a"), with(Port::tcp("x", 80)));
    cluster.set_service(&name("b"), with(Port::udp("x", 80)));
    cluster.set_service(&name("c"), with(Port::tcp("x", 81)));
    assert_eq!(cluster.conflict_count(), 0);
    cluster.set_service(&name("d"), with(Port::tcp("x", 80)));
    assert_eq!(
        messages(&cluster),
        ["Service demo/d: cluster IP 10.96.0.1:80/tcp is left out: Service demo/a has it as its cluster IP"]
    );
    assert!(cluster.ports(&name("d"), Family::Ipv4).is_empty());
}

#[test]
fn the_loser_and_the_winner_change_together() {
    let mut cluster = Cluster::default();
    let node_port =
        |cluster_ip| service(cluster_ip, Port::tcp("", 80).unwrap().with_node_port(30000).unwrap());
    cluster.set_service(&name("b"), node_port("10.96.0.2"));
    cluster.take_changes();
    cluster.set_service(&name("a"), node_port("10.96.0.1"));
    let changes = cluster.take_changes();
    assert_eq!(changes.names().cloned().collect::<Vec<_>>(), [name("a"), name("b")], "b lost its node port");
    let before = changes.iter().last().unwrap().ports_before(Family::Ipv4, "");
    assert_eq!(before[0].node_port.map(NonZeroU16::get), Some(30000));
    assert_eq!(cluster.ports(&name("b"), Family::Ipv4)[0].node_port, None);
    cluster.set_service(&name("a"), None);
    assert_eq!(cluster.take_changes().names().len(), 2);
    assert_eq!(cluster.ports(&name("b"), Family::Ipv4)[0].node_port.map(NonZeroU16::get), Some(30000));
    assert_eq!(cluster.conflict_count(), 0);
}

#[test]
fn an_external_ip_that_is_the_nodes_address_competes_with_node_ports() {
    let node = |address: &str| Node::new("n", [ip(address)]);
    let web = service("10.96.0.1", Port::tcp("", 80).unwrap().with_node_port(30000).unwrap());
    let evil = service("10.96.0.2", Port::tcp("", 30000).unwrap()).with_external_ips([ip("192.0.2.9")]);
    let mut cluster = Cluster::new(node("192.0.2.9"));
    cluster.set_service(&name("a-evil"), evil.clone().with_created(at(2)));
    cluster.set_service(&name("web"), web.with_created(at(1)));
    assert_eq!(
        messages(&cluster),
        ["Service demo/a-evil: external IP 192.0.2.9:30000/tcp is left out: Service demo/web has it as \
                its node port"]
    );
    assert!(cluster.ports(&name("a-evil"), Family::Ipv4)[0].external_ips.is_empty());
    cluster.take_changes();
    cluster.set_node(node("192.0.2.10"));
    assert_eq!(cluster.conflict_count(), 0);
    assert_eq!(cluster.take_changes().names().collect::<Vec<_>>(), [&name("a-evil")]);
    cluster.set_node(node("192.0.2.9"));
    // The older one has the address: its owner's node port is answered elsewhere only.
    cluster.set_service(&name("a-evil"), evil.with_created(at(0)));
    assert_eq!(cluster.conflicts().next().unwrap().loser, name("web"));
    assert_eq!(cluster.ports(&name("web"), Family::Ipv4)[0].node_port.map(NonZeroU16::get), Some(30000));
}

/// An event, with few names, addresses and numbers, so that most services collide.
#[derive(Clone, Debug)]
enum Event {
    Set(u8, Option<Service>),
    Node(u8),
}

fn any_service() -> impl Strategy<Value = Service> {
    let address = || (0u8..4).prop_map(|n| IpAddr::from([10, 96, 0, n + 1]));
    let ports = prop::collection::vec((0u8..2, 80u16..82, prop::option::of(80u16..83)), 0..3);
    let addresses = || prop::collection::vec(address(), 0..2);
    let rest = (prop::option::of(0u64..3), any::<bool>(), prop::option::of(80u16..82));
    (address(), any::<bool>(), ports, addresses(), addresses(), rest).prop_map(
        |(cluster_ip, dual, ports, external, balancer, (created, local, health))| {
            let mut service = Service::new([cluster_ip], []).unwrap();
            if dual {
                service.cluster_ips[1] = Some(ip("fd00::1"));
            }
            let ports = ports.into_iter().enumerate().map(|(index, (protocol, number, node_port))| Port {
                name: format!("p{index}").into(),
                protocol: Protocol::ALL[usize::from(protocol)],
                port: number.try_into().unwrap(),
                node_port: node_port.and_then(NonZeroU16::new),
            });
            Service {
                ports: ports.collect(),
                created: created.map(at),
                external_local: local,
                health_check_node_port: health.and_then(NonZeroU16::new),
                ..service.with_external_ips(external).with_load_balancer_ips(balancer)
            }
        },
    )
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        8 => (0u8..5, prop::option::weighted(0.8, any_service())).prop_map(|(n, service)| Event::Set(n, service)),
        1 => (0u8..4).prop_map(Event::Node),
    ]
}

proptest! {
    /// Random events end as the sorted whole does, and what is noted as changed is exactly what differs.
    #[test]
    fn incremental_changes_decide_as_a_fresh_build(events in prop::collection::vec(event(), 1..40)) {
        let mut cluster = Cluster::default();
        let mut services: BTreeMap<ServiceName, Service> = BTreeMap::new();
        for event in events {
            let before = frontends(&cluster);
            match event {
                Event::Set(index, service) => {
                    let name = name(&format!("s{index}"));
                    cluster.set_service(&name, service.clone());
                    match service {
                        Some(service) => drop(services.insert(name, service)),
                        None => drop(services.remove(&name)),
                    }
                }
                Event::Node(index) => cluster.set_node(Node::new("", [IpAddr::from([10, 96, 0, index])])),
            }
            let mut fresh = Cluster::new(cluster.node().clone());
            services.iter().for_each(|(name, service)| fresh.set_service(name, service.clone()));
            let after = frontends(&cluster);
            prop_assert_eq!(&after, &frontends(&fresh));
            prop_assert_eq!(messages(&cluster), messages(&fresh));

            let changes = cluster.take_changes();
            let changed: BTreeSet<_> = changes.names().cloned().collect();
            for name in before.keys().chain(after.keys()).filter(|name| !changed.contains(*name)) {
                prop_assert_eq!(before.get(name), after.get(name));
            }
            // Each frontend has one service.
            let mut owners = BTreeMap::new();
            for (name, frontends) in &after {
                for frontend in frontends {
                    prop_assert_eq!(owners.insert(frontend, name), None, "{}", frontend);
                }
            }
        }
        for name in services.keys() {
            cluster.set_service(name, None);
        }
        prop_assert!(cluster.claims_are_empty());
    }
}
