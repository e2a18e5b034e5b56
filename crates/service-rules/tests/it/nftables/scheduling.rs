//! The schedulers, with packets: where connections arrive is what `explain` computes for their clients.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::num::NonZeroU16;
use std::os::fd::OwnedFd;
use std::thread;
use std::time::{Duration, Instant};

use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketType, ipproto};
use sluicegate_service_rules::explain::{self, Question, Verdict, explain};
use sluicegate_service_rules::nftables::{Applier, Layout, Planner, Settings};
use sluicegate_services::{Cluster, Family, Protocol, Scheduler, Slots};

use crate::nftables::world::{World, cluster, run_nft_text, settings};

pub(super) const ENDPOINTS: u16 = 5;
pub(super) const CLIENTS: u16 = 40;
/// More than a layout has counters of turns, or a byte has values.
const MANY: u16 = 300;
pub(super) const NODE_PORT: u16 = 30_080;

pub(super) fn address(family: Family, network: u8, number: u16) -> IpAddr {
    let [high, low] = number.to_be_bytes();
    match family {
        Family::Ipv4 => IpAddr::from([10, network, high, low]),
        Family::Ipv6 => Ipv6Addr::new(0xfd00, 0x10, network.into(), 0, 0, 0, 0, number).into(),
    }
}

pub(super) fn service_ip(family: Family, number: u16) -> IpAddr {
    let [high, low] = number.to_be_bytes();
    match family {
        Family::Ipv4 => IpAddr::from([172, 30, high, low]),
        Family::Ipv6 => Ipv6Addr::new(0xfd00, 0x172, 0x30, 0, 0, 0, 0, number).into(),
    }
}

/// Returns services of one family, numbered from 1, with these annotations, all with the same endpoints.
pub(super) fn manifests(family: Family, schedulers: &[Option<&str>], endpoints: &[u16]) -> String {
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
        let node_port = format!(", nodePort: {}", NODE_PORT + number - 1);
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
    udp: BTreeMap<u16, UdpSocket>,
    tcp: BTreeMap<u16, TcpListener>,
    /// The kernel need not have sockets of SCTP: connection tracking translates its packets by itself.
    sctp: BTreeMap<u16, OwnedFd>,
    /// The source port of the next connection.
    next: Cell<u16>,
}

impl Network {
    /// Configures the current network namespace.
    pub(super) fn new(family: Family) -> Self {
        Self::with_endpoints(family, ENDPOINTS)
    }

    fn with_endpoints(family: Family, count: u16) -> Self {
        let ips = (1..=count).map(|n| address(family, 244, n));
        let ips = ips.chain((1..=CLIENTS).map(|n| address(family, 9, n)));
        let nodad = if family == Family::Ipv6 { " nodad" } else { "" };
        let mut script = vec!["link set lo up".to_owned()];
        script.extend(ips.map(|ip| format!("addr add {ip} dev lo{nodad}")));
        script.push(match family {
            Family::Ipv4 => "route add 172.30.0.0/16 dev lo".to_owned(),
            Family::Ipv6 => "route add fd00:172:30::/112 dev lo".to_owned(),
        });
        let output = testns::feed(&["ip", "-batch", "-"], &script.join("\n"));
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let at = |n| SocketAddr::new(address(family, 244, n), 8080);
        let udp = |n| {
            let socket = UdpSocket::bind(at(n)).expect("an endpoint");
            socket.set_nonblocking(true).expect("it does not wait");
            (n, socket)
        };
        let tcp = |n| {
            let listener = TcpListener::bind(at(n)).expect("an endpoint");
            listener.set_nonblocking(true).expect("it does not wait");
            (n, listener)
        };
        Self {
            family,
            udp: (1..=count).map(udp).collect(),
            tcp: (1..=count).map(tcp).collect(),
            sctp: (1..=count).map(|n| (n, sctp::socket(at(n).ip()))).collect(),
            next: Cell::new(20_000),
        }
    }

    /// Sends the first packet of a connection to port 80, and returns its source and the endpoint that it
    /// came to.
    pub(super) fn reach(&self, protocol: Protocol, client: u16, service: u16) -> (SocketAddr, u16) {
        let (from, to) = (address(self.family, 9, client), service_ip(self.family, service));
        // The kernel would give a port again whose connection it still tracks.
        let next = || self.next.replace(self.next.get() + 1);
        match protocol {
            Protocol::Udp => {
                let socket = UdpSocket::bind((from, next())).expect("a client");
                socket.connect((to, 80)).expect("there is a route");
                socket.send(b"?").expect("it is sent");
                (socket.local_addr().expect("it is bound"), self.reached(protocol))
            }
            Protocol::Tcp => {
                let family = if from.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
                let socket = rustix::net::socket(family, SocketType::STREAM, None).expect("a client");
                rustix::net::bind(&socket, &SocketAddr::new(from, 0)).expect("its address");
                rustix::net::connect(&socket, &SocketAddr::new(to, 80)).expect("it is accepted");
                let stream = TcpStream::from(socket);
                (stream.local_addr().expect("it is bound"), self.reached(protocol))
            }
            Protocol::Sctp => {
                let from = SocketAddr::new(from, next());
                sctp::send(from, SocketAddr::new(to, 80));
                (from, self.reached(protocol))
            }
        }
    }

    fn reached(&self, protocol: Protocol) -> u16 {
        fn of<T>(sockets: &BTreeMap<u16, T>, has: impl Fn(&T) -> bool) -> Vec<u16> {
            sockets.iter().filter(|(_, socket)| has(socket)).map(|(n, _)| *n).collect()
        }
        only(|| match protocol {
            Protocol::Tcp => of(&self.tcp, |endpoint| endpoint.accept().is_ok()),
            Protocol::Udp => of(&self.udp, |endpoint| endpoint.recv(&mut [0]).is_ok()),
            Protocol::Sctp => of(&self.sctp, |endpoint| sctp::has_arrived(endpoint, 8080)),
        })
    }
}

/// Packets of SCTP (RFC 9260) by raw sockets.
mod sctp {
    use super::*;

    pub(super) fn socket(ip: IpAddr) -> OwnedFd {
        let family = if ip.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let socket = rustix::net::socket(family, SocketType::RAW, Some(ipproto::SCTP))
            .expect("rights for raw sockets");
        rustix::net::bind(&socket, &SocketAddr::new(ip, 0)).expect("its address");
        socket
    }

    /// Sends the packet that opens an association.
    pub(super) fn send(from: SocketAddr, to: SocketAddr) {
        // The common header: ports, no tag yet, the checksum; and a chunk INIT of 20 bytes: tag, window,
        // streams and the first number.
        let mut packet = [from.port().to_be_bytes(), to.port().to_be_bytes()].concat();
        packet.extend([0; 8]);
        packet.extend([1, 0, 0, 20, 0, 0, 0, 7, 0, 1, 0, 0, 0, 1, 0, 1, 0, 0, 0, 9]);
        let sum = checksum(&packet);
        packet[8..12].copy_from_slice(&sum);
        rustix::net::sendto(socket(from.ip()), &packet, SendFlags::empty(), &SocketAddr::new(to.ip(), 0))
            .expect("there is a route");
    }

    /// Returns whether a packet to this port has come, which must be whole.
    pub(super) fn has_arrived(socket: &OwnedFd, port: u16) -> bool {
        let mut buffer = [0; 256];
        let Ok((length, _)) = rustix::net::recv(socket, &mut buffer[..], RecvFlags::DONTWAIT) else {
            return false;
        };
        // The header of IPv4 comes along, that of IPv6 does not.
        let mut packet = buffer[if length == 52 { 20 } else { 0 }..length].to_vec();
        assert_eq!(packet.len(), 32, "{packet:?}");
        assert_eq!(packet[2..4], port.to_be_bytes(), "{packet:?}");
        let sum = packet[8..12].to_vec();
        packet[8..12].fill(0);
        assert_eq!(sum, checksum(&packet), "the checksum of {packet:?}");
        true
    }

    /// Returns the checksum, a `CRC32c`, in its order of bytes (RFC 9260, appendix A).
    fn checksum(bytes: &[u8]) -> [u8; 4] {
        let mut sum = u32::MAX;
        for byte in bytes {
            sum ^= u32::from(*byte);
            for _ in 0..8 {
                sum = (sum >> 1) ^ if sum & 1 == 1 { 0x82f6_3b78 } else { 0 };
            }
        }
        (!sum).to_le_bytes()
    }
}

/// Returns the one endpoint that is reached: a client may be done before the packet has been handled.
fn only(look: impl Fn() -> Vec<u16>) -> u16 {
    let end = Instant::now() + Duration::from_secs(20);
    loop {
        match look()[..] {
            [one] => return one,
            [] if Instant::now() < end => thread::sleep(Duration::from_millis(1)),
            ref found => panic!("expected one endpoint, found {found:?}"),
        }
    }
}

/// Returns the only endpoint that a connection from this client to the first service may be sent to, as
/// `explain` has it.
fn explained(cluster: &Cluster, default: Scheduler, from: SocketAddr, protocol: Protocol) -> u16 {
    explained_of(cluster, 1, default, from, protocol)
}

fn explained_of(
    cluster: &Cluster,
    service: u16,
    default: Scheduler,
    from: SocketAddr,
    protocol: Protocol,
) -> u16 {
    let settings = explain::Settings {
        scheduler: default,
        local_addresses: Some(vec![from.ip()]),
        ..Default::default()
    };
    let to = SocketAddr::new(service_ip(Family::of(from.ip()), service), 80);
    let from_port = NonZeroU16::new(from.port());
    let question = Question { from: from.ip(), from_port, interface: None, to, protocol };
    let explanation = explain(cluster, &settings, &question).expect("an answer");
    let Verdict::Forwarded { choices, .. } = &explanation.verdict else { panic!("{explanation}") };
    let [choice] = choices[..] else { panic!("one endpoint: {explanation}") };
    match choice.endpoint.ip() {
        IpAddr::V4(ip) => u16::from_be_bytes([ip.octets()[2], ip.octets()[3]]),
        IpAddr::V6(ip) => ip.segments()[7],
    }
}

pub(super) fn all() -> Vec<u16> {
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
                let mut seen: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
                for client in 1..=CLIENTS {
                    if client == CLIENTS / 2 && testns::have(&["nft"]) {
                        // What nft makes of its own text leads there as well.
                        run_nft_text(&format!("flush ruleset\n{}", testns::sh("nft -s list ruleset")));
                    }
                    for protocol in Protocol::ALL {
                        let (from, reached) = network.reach(protocol, client, 1);
                        let wanted = explained(&cluster, default, from, protocol);
                        assert_eq!(reached, wanted, "{layout:?} {scheduler}: {protocol} from {from}");
                        seen.entry(protocol.as_str()).or_default().insert(reached);
                        if scheduler == Scheduler::SourceHash {
                            assert_eq!(
                                network.reach(protocol, client, 1).1,
                                reached,
                                "{protocol} from {from}"
                            );
                        }
                    }
                }
                assert!(seen.values().all(|seen| seen.len() > 1), "{layout:?} {scheduler}: {seen:?}");
            });
        }
    }
}

#[test]
fn at_random_every_endpoint_gets_connections() {
    for (layout, family) in both() {
        testns::netns(|| {
            let network = Network::new(family);
            program(&settings(layout), &manifests(family, &[Some("random")], &all()));
            for protocol in Protocol::ALL {
                // One of five is left out by chance once in 10^11 runs.
                let mut left: BTreeSet<_> = all().into_iter().collect();
                for _ in 0..120 {
                    left.remove(&network.reach(protocol, 1, 1).1);
                }
                assert!(left.is_empty(), "{layout:?} {protocol}: {left:?}");
            }
        });
    }
}

#[test]
fn round_robin_gives_every_endpoint_its_turn_whatever_another_service_does() {
    for (layout, family) in both() {
        testns::netns(|| {
            let network = Network::new(family);
            let annotations = [Some("round-robin"); 2];
            program(&settings(layout), &manifests(family, &annotations, &all()));
            for protocol in Protocol::ALL {
                let mut turns = [Vec::new(), Vec::new()];
                for _ in 0..2 * ENDPOINTS {
                    for (service, turns) in (1..).zip(&mut turns) {
                        turns.push(network.reach(protocol, 1, service).1);
                    }
                }
                for turns in turns {
                    let (first, second) = turns.split_at(usize::from(ENDPOINTS));
                    assert_eq!(first, second, "{layout:?} {family} {protocol}");
                    assert_eq!(first.iter().copied().collect::<BTreeSet<_>>(), all().into_iter().collect());
                }
            }
        });
    }
}

/// In the layout maps a hash of a frontend chooses one of 256 counters, so that some have the same: each
/// still takes turns while nobody else asks.
#[test]
fn round_robin_takes_turns_among_hundreds_of_frontends() {
    for (layout, family) in both() {
        testns::netns(|| {
            let network = Network::new(family);
            let annotations = vec![Some("round-robin"); MANY.into()];
            program(&settings(layout), &manifests(family, &annotations, &all()));
            if testns::have(&["nft"]) {
                let listed = testns::sh("nft -s list ruleset");
                if layout == Layout::Maps {
                    let counters = listed.matches("chain round-robin-lb-udp-5-").count();
                    assert!((150..=256).contains(&counters), "{counters}");
                }
                run_nft_text(&format!("flush ruleset\n{listed}"));
                assert_eq!(testns::sh("nft -s list ruleset"), listed);
            }
            for service in [1, 2, 255, 256, 257, 258, MANY] {
                let turns: BTreeSet<_> =
                    (0..ENDPOINTS).map(|_| network.reach(Protocol::Udp, 1, service).1).collect();
                assert_eq!(turns, all().into_iter().collect(), "{layout:?} {family} {service}");
            }
        });
    }
}

#[test]
fn every_scheduler_reaches_hundreds_of_endpoints() {
    let endpoints: Vec<_> = (1..=MANY).collect();
    for (layout, family) in both() {
        testns::netns(|| {
            let network = Network::with_endpoints(family, MANY);
            let names = ["round-robin", "source-hash", "maglev", "random"];
            let cluster = program(&settings(layout), &manifests(family, &names.map(Some), &endpoints));
            let turns: BTreeSet<_> = endpoints.iter().map(|_| network.reach(Protocol::Udp, 1, 1).1).collect();
            assert_eq!(turns.len(), endpoints.len(), "{layout:?} {family}");
            for client in 1..=CLIENTS {
                for service in [2, 3] {
                    let (from, reached) = network.reach(Protocol::Sctp, client, service);
                    let wanted = explained_of(&cluster, service, Scheduler::Random, from, Protocol::Sctp);
                    assert_eq!(reached, wanted, "{layout:?} {service}: {from}");
                }
            }
            let found: BTreeSet<_> = (0..50).map(|_| network.reach(Protocol::Udp, 1, 4).1).collect();
            assert!(found.len() > 25, "{layout:?} {family}: {found:?}");
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
        let ask_all = |cluster: &Cluster| -> Vec<u16> {
            let ask = |port| {
                let socket = UdpSocket::bind((address(family, 9, 1), port)).expect("a client");
                socket.connect((service_ip(family, 1), 80)).expect("there is a route");
                socket.send(b"?").expect("it is sent");
                let from = socket.local_addr().expect("it is bound");
                let reached = network.reached(Protocol::Udp);
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
