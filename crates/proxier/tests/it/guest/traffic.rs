//! Connections while services change.

use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU16;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use sluicegate_lab::{Answer, Namespace, Network, Transport, ask};
use sluicegate_proxier::sysctl;
use sluicegate_service_rules::ipvs::Applier;
use sluicegate_service_rules::ipvs::Settings;
use sluicegate_services::{
    Cluster, Family, Node, Port, Protocol, Service, ServiceName, Slice, SliceEndpoint, SliceName, SlicePort,
};

use crate::guest::{NODE, back_end, network, pod_ip, v6};

/// A node with a client outside, two endpoints, and services to ask for.
pub(crate) struct World {
    pub(crate) network: Network,
    pub(crate) cluster: Cluster,
    /// A cluster IP, with its port.
    pub(crate) vip: SocketAddr,
}

impl World {
    pub(crate) fn new() -> Self {
        let network = network(&["here", "there"]);
        let namespace = &network.node.namespace;
        namespace.run(|| sluicegate_ipvs::Client::open().map(drop)).unwrap();
        sysctl::of_ipvs(false, (6, 1))
            .for_each(|sysctl| namespace.sysctl(sysctl.path, sysctl.value).unwrap());
        let mut cluster = Cluster::new(Node {
            name: "node".to_owned(),
            addresses: vec![NODE.0.into(), NODE.1.into()],
            ..Node::default()
        });
        service(&mut cluster, 1, true);
        endpoints(&mut cluster, &["here", "there"]);
        Self { network, cluster, vip: SocketAddr::from(([172, 30, 0, 1], 80)) }
    }

    pub(crate) fn node(&self) -> &Namespace {
        &self.network.node.namespace
    }

    pub(crate) fn sync(&mut self, applier: &mut Applier, now: Instant) {
        let cluster = &mut self.cluster;
        self.network.node.namespace.run(|| applier.sync(cluster, now)).unwrap();
    }
}

/// An applier of the namespace of this thread.
pub(crate) fn applier(settings: Settings) -> Applier {
    Applier::open(back_end(), &Family::BOTH, settings).unwrap()
}

/// Adds or removes a service of this number; all of them have the endpoints of the first.
fn service(cluster: &mut Cluster, number: u8, there: bool) {
    let port = |protocol: Protocol| Port {
        name: protocol.as_str().into(),
        protocol,
        port: NonZeroU16::new(80).unwrap(),
        node_port: NonZeroU16::new(30_000 + u16::from(number)),
    };
    let service = Service {
        cluster_ips: [Some(IpAddr::from([172, 30, 0, number])), Some(v6(0x172, number.into()).into())],
        ports: [Protocol::Tcp, Protocol::Udp].map(port).into(),
        external_ips: if number.is_multiple_of(2) {
            [IpAddr::from([172, 30, 1, number])].into()
        } else {
            Box::default()
        },
        forbidden_external_ips: Box::default(),
        load_balancer_ips: if number.is_multiple_of(3) {
            [IpAddr::from([172, 30, 2, number])].into()
        } else {
            Box::default()
        },
        source_ranges: if number.is_multiple_of(6) {
            ["10.0.0.0/8".parse().unwrap()].into()
        } else {
            Box::default()
        },
        external_local: false,
        internal_local: false,
        affinity_seconds: None,
        health_check_node_port: None,
        scheduler: None,
        created: None,
        source_ranges_incomplete: false,
    };
    cluster.set_service(&name(number), there.then_some(service));
}

fn name(number: u8) -> ServiceName {
    ServiceName::new("ns", &format!("s{number}")).unwrap()
}

/// Gives the first service these endpoints.
pub(crate) fn endpoints(cluster: &mut Cluster, pods: &[&str]) {
    for family in Family::BOTH {
        let endpoint = |pod: &&str| {
            let net = u8::from(*pod == "there");
            SliceEndpoint {
                ip: pod_ip(family, net),
                node: Some(if net == 0 { "node" } else { "other" }.into()),
                ready: true,
                serving: true,
                terminating: false,
                hints: None,
            }
        };
        let port = |protocol: Protocol| SlicePort {
            name: protocol.as_str().into(),
            protocol,
            port: NonZeroU16::new(8080).unwrap(),
        };
        let slice = Slice {
            service: name(1),
            family,
            ports: [Protocol::Tcp, Protocol::Udp].map(port).into(),
            endpoints: pods.iter().map(endpoint).collect(),
            last_change: None,
        };
        let name = SliceName { namespace: "ns".into(), name: format!("s1-{family}").into() };
        cluster.set_slice(&name, Some(slice));
    }
}

#[test]
#[ignore = "needs a kernel of its own: cargo xtask test guest"]
fn every_address_stays_reachable_while_services_change() {
    if back_end().is_none() {
        return;
    }
    let mut world = World::new();
    let mut current = world.node().run(|| applier(Settings::default()));
    world.sync(&mut current, Instant::now());
    let fronts = [world.vip, SocketAddr::from((v6(0x172, 1), 80)), SocketAddr::from((NODE.0, 30_001))];
    let (stop, asked) = (AtomicBool::new(false), AtomicUsize::new(0));
    let client = &world.network.client.namespace;
    let (cluster, node) = (&mut world.cluster, &world.network.node.namespace);
    std::thread::scope(|scope| {
        let askers: Vec<_> = fronts
            .iter()
            .map(|front| {
                scope.spawn(|| {
                    client.run(|| {
                        let mut wrong = Vec::new();
                        while !stop.load(Ordering::Relaxed) {
                            // Not so fast that ports are used again before everybody has forgotten them.
                            std::thread::sleep(Duration::from_millis(20));
                            for transport in [Transport::Tcp, Transport::Udp] {
                                let mut answers = ask(transport, *front, 1, PATIENCE);
                                asked.fetch_add(1, Ordering::Relaxed);
                                // A datagram from a port that an endpoint was asked from which is gone by now
                                // is lost; with it IPVS forgets the flow.
                                if transport == Transport::Udp && answers == [Answer::Silence] {
                                    answers = ask(transport, *front, 1, PATIENCE);
                                }
                                let bad = answers.into_iter().filter(|it| !matches!(it, Answer::From { .. }));
                                wrong.extend(bad.map(|answer| (transport, *front, answer)));
                            }
                        }
                        wrong
                    })
                })
            })
            .collect();
        let enough = testns::RaiseOnDrop(&stop);
        for round in 0..ROUNDS {
            // The endpoints that are asked change, and services come and go beside them; sets become empty
            // and are so no longer.
            endpoints(cluster, if round % 2 == 0 { &["here"] } else { &["here", "there"] });
            (2..8).for_each(|number| service(cluster, number, round % 3 == 0));
            node.run(|| {
                if round % 5 == 4 {
                    current = applier(Settings::default());
                }
                current.sync(cluster, Instant::now()).unwrap();
                std::thread::sleep(Duration::from_millis(200));
            });
        }
        drop(enough);
        let wrong: Vec<_> = askers.into_iter().flat_map(|asker| asker.join().unwrap()).collect();
        println!("{} questions while {ROUNDS} syncs", asked.load(Ordering::Relaxed));
        assert_eq!(wrong, []);
    });
    assert!(asked.load(Ordering::Relaxed) > ROUNDS, "too few to tell anything");
}

const ROUNDS: usize = 20;
const PATIENCE: Duration = Duration::from_secs(8);
