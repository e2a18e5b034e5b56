//! The schedulers, with packets: where connections arrive is what `explain` computes for their clients.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::num::NonZeroU16;
use std::thread;
use std::time::{Duration, Instant};

use sluicegate_service_rules::explain::{self, Question, Verdict, explain};
use sluicegate_service_rules::nftables::{Applier, Layout, Planner, Settings};
use sluicegate_services::{Cluster, Family, Protocol, Scheduler, Slots};

use crate::nftables::world::{World, cluster, run_nft_text, settings};

pub(super) const ENDPOINTS: u8 = 5;
pub(super) const CLIENTS: u8 = 40;
pub(super) const NODE_PORT: u16 = 30_080;

pub(super) fn address(family: Family, network: u8, last: u8) -> IpAddr {
    match family {
        Family::Ipv4 => IpAddr::from([10, network, 0, last]),
        Family::Ipv6 => Ipv6Addr::new(0xfd00, 0x10, network.into(), 0, 0, 0, 0, last.into()).into(),
    }
}

pub(super) fn service_ip(family: Family, number: u8) -> IpAddr {
    match family {
        Family::Ipv4 => IpAddr::from([172, 30, 0, number]),
        Family::Ipv6 => Ipv6Addr::new(0xfd00, 0x172, 0x30, 0, 0, 0, 0, number.into()).into(),
    }
}

/// Returns services of one family, numbered from 1, with these annotations, all with the same endpoints.
pub(super) fn manifests(family: Family, schedulers: &[Option<&str>], endpoints: &[u8]) -> String {
    let ports = |number: u16, extra: &str| {
        let port = |name: &str| {
            let protocol = name.to_uppercase();
            format!("{{name: {name}, port: {number}, protocol: {protocol}{extra}}}")
        };
        ["tcp", "udp", "sctp"].map(port).join(", ")
    };
    let list: Vec<String> = endpoints
        .iter()
        .map(|n| format!("{{addresses: ['{}'], nodeName: test-node}}", address(family, 244, *n)))
        .collect();
    let mut text = String::new();
    for (number, scheduler) in (1..).zip(schedulers) {
        let annotations = scheduler
            .map(|name| format!(", annotations: {{{}: '{name}'}}", Scheduler::ANNOTATION))
            .unwrap_or_default();
        let node_port = format!(", nodePort: {}", NODE_PORT + u16::from(number) - 1);
        let _ = write!(
            text,
            "apiVersion: v1\nkind: Service\nmetadata: {{namespace: demo, name: s{number}{annotations}}}\nspec: \
             {{type: NodePort, clusterIP: '{}', ports: [{}]}}\n---\napiVersion: discovery.k8s.io/v1\nkind: \
             EndpointSlice\nmetadata: {{namespace: demo, name: s{number}, labels: \
             {{kubernetes.io/service-name: s{number}}}}}\naddressType: {family}\nports: [{}]\nendpoints: \
             [{}]\n---\n",
            service_ip(family, number),
            ports(80, &node_port),
            ports(8080, ""),
            list.join(", ")
        );
    }
    text
}

/// The endpoints, and the clients' way to them.
pub(super) struct Network {
    family: Family,
    udp: BTreeMap<u8, UdpSocket>,
    tcp: BTreeMap<u8, TcpListener>,
}

impl Network {
    /// Configures the current network namespace.
    pub(super) fn new(family: Family) -> Self {
        let ips = (1..=ENDPOINTS).map(|n| address(family, 244, n));
        let ips = ips.chain((1..=CLIENTS).map(|n| address(family, 9, n)));
        let nodad = if family == Family::Ipv6 { " nodad" } else { "" };
        let mut script = vec!["ip link set lo up".to_owned()];
        script.extend(ips.map(|ip| format!("ip addr add {ip} dev lo{nodad}")));
        script.extend((1..=2).map(|n| format!("ip route add {} dev lo", service_ip(family, n))));
        assert_eq!(testns::sh(&script.join("; ")), "");
        let udp = |n: u8| {
            let socket = UdpSocket::bind((address(family, 244, n), 8080)).expect("an endpoint");
            socket.set_nonblocking(true).expect("it does not wait");
            (n, socket)
        };
        let tcp = |n: u8| {
            let listener = TcpListener::bind((address(family, 244, n), 8080)).expect("an endpoint");
            listener.set_nonblocking(true).expect("it does not wait");
            (n, listener)
        };
        Self { family, udp: (1..=ENDPOINTS).map(udp).collect(), tcp: (1..=ENDPOINTS).map(tcp).collect() }
    }

    /// Sends the first datagram of a connection, and returns its source and the endpoint that it came to.
    pub(super) fn udp(&self, client: u8, service: u8) -> (SocketAddr, u8) {
        let socket = UdpSocket::bind((address(self.family, 9, client), 0)).expect("a client");
        socket.connect((service_ip(self.family, service), 80)).expect("there is a route");
        socket.send(b"?").expect("it is sent");
        (socket.local_addr().expect("it is bound"), self.reached_by_udp())
    }

    /// Opens a connection, and returns its source and the endpoint that it came to.
    pub(super) fn tcp(&self, service: u8) -> (SocketAddr, u8) {
        let stream = TcpStream::connect((service_ip(self.family, service), 80)).expect("it is accepted");
        let reached =
            || self.tcp.iter().filter(|(_, endpoint)| endpoint.accept().is_ok()).map(|(n, _)| *n).collect();
        (stream.local_addr().expect("it is bound"), only(reached))
    }

    fn reached_by_udp(&self) -> u8 {
        only(|| {
            self.udp.iter().filter(|(_, endpoint)| endpoint.recv(&mut [0]).is_ok()).map(|(n, _)| *n).collect()
        })
    }
}

/// Returns the one endpoint that is reached: a client may be done before the packet has been handled.
fn only(look: impl Fn() -> Vec<u8>) -> u8 {
    let end = Instant::now() + Duration::from_secs(20);
    loop {
        match look()[..] {
            [one] => return one,
            [] if Instant::now() < end => thread::sleep(Duration::from_millis(1)),
            ref found => panic!("expected one endpoint, found {found:?}"),
        }
    }
}

/// Returns the only endpoint that a connection from this client may be sent to, as `explain` has it.
fn explained(cluster: &Cluster, default: Scheduler, from: SocketAddr, protocol: Protocol) -> u8 {
    let settings = explain::Settings {
        scheduler: default,
        local_addresses: Some(vec![from.ip()]),
        ..Default::default()
    };
    let to = SocketAddr::new(service_ip(Family::of(from.ip()), 1), 80);
    let from_port = NonZeroU16::new(from.port());
    let question = Question { from: from.ip(), from_port, interface: None, to, protocol };
    let explanation = explain(cluster, &settings, &question).expect("an answer");
    let Verdict::Forwarded { choices, .. } = &explanation.verdict else { panic!("{explanation}") };
    let [choice] = choices[..] else { panic!("one endpoint: {explanation}") };
    match choice.endpoint.ip() {
        IpAddr::V4(ip) => ip.octets()[3],
        IpAddr::V6(ip) => ip.octets()[15],
    }
}

pub(super) fn all() -> Vec<u8> {
    (1..=ENDPOINTS).collect()
}

fn program(settings: &Settings, manifests: &str) -> Cluster {
    let mut cluster = cluster(manifests);
    let mut applier = Applier::open(settings.clone()).expect("nf_tables");
    applier.sync(&mut cluster, Instant::now()).expect("it is programmed");
    cluster
}

#[test]
fn hashes_lead_each_client_where_explain_says() {
    let schedulers = [Scheduler::SourceHash, Scheduler::Maglev(Slots::default())];
    for (layout, family) in both() {
        for (scheduler, by_annotation) in schedulers.into_iter().flat_map(|s| [(s, true), (s, false)]) {
            testns::netns(|| {
                let network = Network::new(family);
                let name = scheduler.to_string();
                let default = if by_annotation { Scheduler::Random } else { scheduler };
                let settings = Settings { scheduler: default, ..settings(layout) };
                let annotation = by_annotation.then_some(name.as_str());
                let cluster = program(&settings, &manifests(family, &[annotation], &all()));
                let mut seen = BTreeSet::new();
                for client in 1..=CLIENTS {
                    if client == CLIENTS / 2 && testns::have(&["nft"]) {
                        // What nft makes of its own text leads there as well.
                        run_nft_text(&format!("flush ruleset\n{}", testns::sh("nft -s list ruleset")));
                    }
                    let (from, reached) = network.udp(client, 1);
                    let wanted = explained(&cluster, default, from, Protocol::Udp);
                    assert_eq!(reached, wanted, "{layout:?} {scheduler}: {from}");
                    let (from, reached) = network.tcp(1);
                    let wanted = explained(&cluster, default, from, Protocol::Tcp);
                    assert_eq!(reached, wanted, "{layout:?} {scheduler}: {from}");
                    seen.insert(reached);
                    if scheduler == Scheduler::SourceHash {
                        assert_eq!(network.udp(client, 1).1, network.udp(client, 1).1);
                    }
                }
                // All connections of TCP have one address.
                assert_eq!(seen.len() > 1, scheduler != Scheduler::SourceHash, "{seen:?}");
            });
        }
    }
}

#[test]
fn round_robin_gives_every_endpoint_its_turn_whatever_another_service_does() {
    for (layout, family) in both() {
        testns::netns(|| {
            let network = Network::new(family);
            let annotations = [Some("round-robin"); 2];
            program(&settings(layout), &manifests(family, &annotations, &all()));
            let mut turns = [Vec::new(), Vec::new()];
            for _ in 0..2 * ENDPOINTS {
                for (service, turns) in (1..).zip(&mut turns) {
                    turns.push(network.udp(1, service).1);
                }
            }
            for turns in turns {
                let (first, second) = turns.split_at(usize::from(ENDPOINTS));
                assert_eq!(first, second, "{layout:?} {family}");
                assert_eq!(first.iter().copied().collect::<BTreeSet<_>>(), all().into_iter().collect());
            }
        });
    }
}

/// One endpoint less: of the clients of others, maglev moves few.
#[test]
fn clients_of_other_endpoints_stay_with_maglev() {
    let family = Family::Ipv4;
    let scheduler = Some("maglev");
    testns::netns(|| {
        let network = Network::new(family);
        let settings = settings(Layout::Maps);
        let cluster = program(&settings, &manifests(family, &[scheduler], &all()));
        let ports = 40_000..40_120_u16;
        let ask_all = |cluster: &Cluster| -> Vec<u8> {
            let ask = |port| {
                let socket = UdpSocket::bind((address(family, 9, 1), port)).expect("a client");
                socket.connect((service_ip(family, 1), 80)).expect("there is a route");
                socket.send(b"?").expect("it is sent");
                let (reached, from) = (network.reached_by_udp(), socket.local_addr().expect("it is bound"));
                assert_eq!(reached, explained(cluster, Scheduler::Random, from, Protocol::Udp), "{from}");
                reached
            };
            ports.clone().map(ask).collect()
        };
        let before = ask_all(&cluster);
        // Connections that exist stay where they are in any case.
        let mut tracked = sluicegate_conntrack::Client::open().expect("connection tracking");
        tracked.flush(None).expect("it is emptied");
        let cluster = program(&settings, &manifests(family, &[scheduler], &[1, 2, 4, 5]));
        let after = ask_all(&cluster);
        assert!(!after.contains(&3));
        let moved = before.iter().zip(&after).filter(|(old, new)| **old != 3 && old != new).count();
        assert!(moved * 10 < before.len(), "{moved} of {} moved", before.len());
    });
}

#[test]
fn a_change_of_an_endpoint_sends_the_slots_that_move() {
    let mut world = World::new(&settings(Layout::Maps), &manifests(Family::Ipv4, &[Some("maglev")], &all()));
    world.planner.script();
    for slice in world.cluster.slice_names().cloned().collect::<Vec<_>>() {
        let service = world.cluster.service_names().next().cloned().expect("a service");
        let mut less = world.cluster.slices(&service).next().cloned().expect("a slice");
        less.endpoints = less.endpoints[1..].into();
        world.cluster.set_slice(&slice, less);
    }
    let changes = world.cluster.take_changes();
    let sent = world.planner.sync(&world.cluster, &changes, world.now).to_string();
    // Six frontends of 251 slots each, a fifth of which were those of the endpoint that has gone.
    let slots = sent.matches(" : 10.244.0.").count();
    assert!((6 * 45..6 * 110).contains(&slots), "{slots} slots");
    assert!(!sent.contains("add chain") && !sent.contains("service-ips"), "{sent}");
}

#[test]
fn nft_lists_and_loads_again_every_scheduler_in_both_layouts() {
    if !testns::have(&["nft"]) {
        return;
    }
    let names = [None, Some("random"), Some("round-robin"), Some("source-hash"), Some("maglev:11")];
    for (layout, family) in both() {
        testns::netns(|| {
            program(&settings(layout), &manifests(family, &names, &all()));
            let listed = testns::sh("nft -s list ruleset");
            for words in ["numgen inc mod 5", "jhash ip", "sport mod 11 seed 0x"] {
                assert!(listed.contains(words), "{words}: {listed}");
            }
            run_nft_text(&format!("flush ruleset\n{listed}"));
            assert_eq!(testns::sh("nft -s list ruleset"), listed);
        });
    }
}

#[test]
fn a_table_without_schedulers_is_as_before() {
    for (layout, family) in both() {
        let script = |names: &[Option<&str>]| {
            let cluster = cluster(&manifests(family, names, &all()));
            Planner::new(&settings(layout), &cluster, None)
                .expect("the settings are good")
                .script()
                .to_string()
        };
        let plain = script(&[None; 4]);
        assert_eq!(plain, script(&[Some("random"), None, Some("random"), None]));
        // An unknown name is random, and told with the object.
        assert!(!plain.contains("jhash") && !plain.contains("numgen inc"), "{plain}");
        assert!(plain.contains("numgen random mod 5"), "{plain}");
    }
}

fn both() -> impl Iterator<Item = (Layout, Family)> {
    let layouts = [Layout::Maps, Layout::Chains];
    layouts.into_iter().flat_map(|layout| Family::BOTH.map(|family| (layout, family)))
}
