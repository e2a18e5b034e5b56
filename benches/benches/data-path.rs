//! What rules cost the packets: TCP connections a second and the processor time of each, and the round trip
//! of the first UDP packet, through a node with no rules, one rule, and the rules of each mode.
//!
//! A pod connects to Services whose endpoints are on another node; each kind of rules has a network of its
//! own, in throw-away namespaces, and the kinds take turns in each round, so that all meet the same load of
//! the machine. Medians of the rounds are printed as a Markdown table. One service is the last of all, the
//! one that a list of rules finds last; the others are taken in no order. Every measurement is made again
//! while 100 services change each second.
//!
//! - *no rules*: the pod connects to the endpoint itself, and nothing is tracked.
//! - *one rule*: nftables with a single rule that rewrites the destination, the least that any proxy costs.
//! - *ipvs*: only in a guest kernel that has IPVS (`cargo xtask bench data-path --guest`). Times there
//!   compare
//!   with each other only.
//!
//! The processor time is that of client, server and kernel: packets cross the namespaces within the system
//! call that sends them, and are charged to it. On a busy machine it is the steadiest figure.
//!
//! `cargo bench -p benches --bench data-path` takes a quarter of an hour. With `-- --smoke`, and under `cargo
//! test`, it takes seconds, and only shows that it works. Names of rules as in the table choose among them:
//! `-- none "nftables, maps"`. `SLUICEGATE_BENCH_ROUNDS` says how many rounds (9); `SLUICEGATE_BENCH_ALL`
//! adds what takes minutes to be loaded.

use std::cell::Cell;
use std::io::Read as _;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use benches::record::{self, Unit};
use benches::timing::{is_measuring, nanoseconds, process_time};
use sluicegate_lab::{Network, NetworkSpec, PodSpec, Wire};
use sluicegate_nftables::Transaction;
use sluicegate_proxier::sysctl;
use sluicegate_service_rules::iptables::BackEnd;
use sluicegate_service_rules::nftables::{Applier, Counting, Layout, Settings};
use sluicegate_service_rules::{Backend, iptables, ipvs};
use sluicegate_services::{
    Cluster, DetectLocal, Family, Node, Port, Protocol, Scheduler, Service, ServiceName, Slice,
    SliceEndpoint, SliceName, SlicePort, Slots,
};

fn main() {
    // Says so where no namespaces can be made.
    if testns::Netns::new().is_none() {
        return;
    }
    let mut effort = match is_measuring() && !std::env::args().any(|argument| argument == "--smoke") {
        true => Effort::MEASURE,
        false => Effort::SMOKE,
    };
    if testns::guest().is_some() && is_measuring() {
        // Its clock counts instructions, which are the same each time, and take ten times as long.
        (effort.quiet, effort.changing) = (Duration::from_millis(40), Duration::from_millis(200));
    }
    let rounds = std::env::var("SLUICEGATE_BENCH_ROUNDS").ok().and_then(|rounds| rounds.parse().ok());
    effort.rounds = rounds.unwrap_or(effort.rounds);
    println!("{HEAD}");
    for &services in effort.sizes {
        for affinity in [false, true] {
            measure(&effort, services, affinity);
        }
    }
}

/// How much is measured.
struct Effort {
    sizes: &'static [u32],
    rounds: usize,
    /// The time of a measurement.
    quiet: Duration,
    /// The same while services change.
    changing: Duration,
}

impl Effort {
    const MEASURE: Self = Self {
        sizes: &[1, 100, 10_000],
        rounds: 9,
        quiet: Duration::from_millis(200),
        changing: Duration::from_millis(1_000),
    };
    const SMOKE: Self = Self {
        sizes: &[100],
        rounds: 1,
        quiet: Duration::from_millis(5),
        changing: Duration::from_millis(20),
    };
}

/// A kind of rules on the node.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rules {
    No,
    One,
    Nftables(Layout),
    /// The layout maps, with a scheduler.
    Scheduled(Scheduler),
    /// The layout maps, whose connections are counted by frontend and endpoint.
    Counted,
    Iptables(BackEnd),
    Ipvs,
}

impl Rules {
    fn all() -> [Self; 10] {
        let slots = Slots::new(SLOTS).expect("a prime");
        [
            Self::No,
            Self::One,
            Self::Nftables(Layout::Maps),
            Self::Scheduled(Scheduler::SourceHash),
            Self::Scheduled(Scheduler::Maglev(slots)),
            Self::Counted,
            Self::Nftables(Layout::Chains),
            Self::Iptables(BackEnd::Nft),
            Self::Iptables(BackEnd::Legacy),
            Self::Ipvs,
        ]
    }

    const fn name(self) -> &'static str {
        match self {
            Self::No => "none",
            Self::One => "one rule",
            Self::Nftables(Layout::Maps) => "nftables, maps",
            Self::Nftables(Layout::Chains) => "nftables, chains",
            Self::Scheduled(Scheduler::Maglev(_)) => "maps, maglev",
            Self::Scheduled(_) => "maps, source-hash",
            Self::Counted => "maps, counted",
            Self::Iptables(BackEnd::Nft) => "iptables-nft",
            Self::Iptables(_) => "iptables-legacy",
            Self::Ipvs => "ipvs",
        }
    }

    /// Returns whether it can be loaded, in a time that fits the others'.
    fn is_possible(self, services: u32, affinity: bool) -> bool {
        let guest = testns::guest();
        match self {
            // Affinity goes before them.
            Self::Scheduled(_) if affinity => false,
            Self::Ipvs => guest.is_some(),
            // It has nf_tables for bridges only.
            Self::One
            | Self::Nftables(_)
            | Self::Scheduled(_)
            | Self::Counted
            | Self::Iptables(BackEnd::Nft)
                if guest.as_deref() == Some("uml") =>
            {
                false
            }
            _ if services > 1_000 && self.is_slow_to_load() && std::env::var_os(EVERYTHING).is_none() => {
                eprintln!(
                    "{}: {services} services take minutes to load: left out without {EVERYTHING}",
                    self.name()
                );
                false
            }
            Self::Iptables(BackEnd::Nft) => testns::have(&["iptables-nft-restore"]),
            Self::Iptables(_) => testns::have(&["iptables-legacy-restore"]),
            _ => true,
        }
    }

    /// Returns whether thousands of services take minutes: the kernel walks all chains with each change of
    /// verdicts.
    const fn is_slow_to_load(self) -> bool {
        matches!(self, Self::Iptables(BackEnd::Nft) | Self::Nftables(Layout::Chains))
    }

    /// Loads the rules on the node. Returns what changes them later, and is none for those that stay.
    fn load(self, network: &Network, cluster: &mut Cluster) -> Option<Box<dyn Backend + Send>> {
        let detect_local = DetectLocal::ClusterCidrs(vec!["10.244.0.0/16".parse().expect("a network")]);
        let families = vec![Family::Ipv4];
        network.node.namespace.run(|| {
            let mut backend: Box<dyn Backend + Send> = match self {
                Self::No => return None,
                Self::One => {
                    let rule = Transaction::parse(ONE_RULE).expect("a script");
                    rule.apply(&mut benches::kernel::socket()).expect("nf_tables");
                    return None;
                }
                Self::Nftables(layout) => {
                    let settings = Settings { layout, families, detect_local, ..Settings::default() };
                    Box::new(Applier::open(settings).expect("a socket"))
                }
                Self::Scheduled(scheduler) => {
                    let settings = Settings { scheduler, families, detect_local, ..Settings::default() };
                    Box::new(Applier::open(settings).expect("a socket"))
                }
                Self::Counted => {
                    let counting = Counting::Endpoints;
                    let settings = Settings { counting, families, detect_local, ..Settings::default() };
                    Box::new(Applier::open(settings).expect("a socket"))
                }
                Self::Iptables(back_end) => {
                    let settings = iptables::Settings { detect_local, ..iptables::Settings::default() };
                    let found = iptables::Applier::open(Some(back_end), &families, settings);
                    Box::new(found.expect("the tools"))
                }
                Self::Ipvs => {
                    ipvs::Transports::open().and_then(ipvs::Transports::load).expect("a kernel with IPVS");
                    for sysctl in sysctl::of_ipvs(false, (6, 1)) {
                        let (path, value) = (sysctl.path, sysctl.value);
                        std::fs::write(format!("/proc/sys/{path}"), value).expect("a sysctl of IPVS");
                    }
                    let settings = ipvs::Settings { detect_local, ..ipvs::Settings::default() };
                    let found = ipvs::Applier::open(Some(BackEnd::Legacy), &families, settings);
                    Box::new(found.expect("a kernel with IPVS"))
                }
            };
            let changes = cluster.take_changes();
            backend.sync(cluster, &changes, Instant::now()).expect("the rules are loaded");
            Some(backend)
        })
    }
}

/// A network with rules of one kind.
struct World {
    rules: Rules,
    network: Network,
    cluster: Cluster,
    backend: Option<Box<dyn Backend + Send>>,
    services: u32,
    /// The source port of the next datagram: no two have the same connection.
    source: Cell<u16>,
    /// What was measured, a value for each round.
    figures: Vec<Figures>,
}

/// What one round measures, in the order of the columns.
#[derive(Clone, Copy, Default)]
struct Figures {
    /// A second, and the processor time of one.
    connections: [(f64, Duration); 3],
    /// The median and the 99th percentile.
    packets: [(Duration, Duration); 3],
}

impl World {
    fn new(rules: Rules, services: u32, affinity: bool) -> Self {
        let network = network();
        let mut cluster = cluster(services, affinity);
        let backend = rules.load(&network, &mut cluster);
        Self { rules, network, cluster, backend, services, source: Cell::new(5_000), figures: Vec::new() }
    }

    fn measure(&mut self, effort: &Effort) {
        let (last, any) = (self.last(), self.in_no_order());
        let mut figures = Figures::default();
        figures.connections[0] = self.connections(&last, effort.quiet);
        figures.packets[0] = self.first_packets(&last, effort.quiet);
        figures.connections[1] = self.connections(&any, effort.quiet);
        figures.packets[1] = self.first_packets(&any, effort.quiet);
        if let Some(mut backend) = self.backend.take_if(|_| self.services >= CHANGED) {
            let stop = AtomicBool::new(false);
            let mut cluster = std::mem::take(&mut self.cluster);
            std::thread::scope(|scope| {
                let namespace = &self.network.node.namespace;
                let changer =
                    scope.spawn(|| namespace.run(|| change_until(&stop, &mut *backend, &mut cluster)));
                figures.connections[2] = self.connections(&any, effort.changing);
                figures.packets[2] = self.first_packets(&any, effort.changing);
                stop.store(true, Ordering::Relaxed);
                changer.join().expect("services change");
            });
            (self.backend, self.cluster) = (Some(backend), cluster);
        }
        self.figures.push(figures);
    }

    /// Returns the address of the last service, or what is asked instead.
    fn last(&self) -> Vec<IpAddr> {
        match self.rules {
            Rules::No => vec![endpoint(0).into()],
            Rules::One => vec![service_ip(0).into()],
            _ => vec![service_ip(self.services - 1).into()],
        }
    }

    /// Returns the addresses of all services, in no order that a list of rules could have.
    fn in_no_order(&self) -> Vec<IpAddr> {
        match self.rules {
            Rules::No | Rules::One => self.last(),
            // A prime that divides no size, so that no service is left out.
            _ => (0..self.services).map(|n| service_ip(n * 7_919 % self.services).into()).collect(),
        }
    }

    /// The port of the service, or of the endpoint where there is none.
    const fn port(&self) -> u16 {
        match self.rules {
            Rules::No => TARGET_PORT,
            _ => SERVICE_PORT,
        }
    }

    /// Returns the number of TCP connections a second, each opened, accepted, closed by the server and reset,
    /// and the processor time of one.
    fn connections(&self, to: &[IpAddr], time: Duration) -> (f64, Duration) {
        let port = self.port();
        self.client().run(|| {
            let (start, used, mut count) = (Instant::now(), process_time(), 0_u32);
            for ip in to.iter().cycle() {
                let mut stream = TcpStream::connect((*ip, port)).expect("a connection");
                assert_eq!(stream.read(&mut [0]).expect("the end of the stream"), 0);
                // No connection waits for packets that come late, so that the client never lacks a port.
                rustix::net::sockopt::set_socket_linger(&stream, Some(Duration::ZERO))
                    .expect("a socket option");
                count += 1;
                if start.elapsed() >= time {
                    break;
                }
            }
            (f64::from(count) / start.elapsed().as_secs_f64(), (process_time() - used) / count)
        })
    }

    /// Returns the median and the 99th percentile of the time from the first datagram of a connection to its
    /// answer.
    fn first_packets(&self, to: &[IpAddr], time: Duration) -> (Duration, Duration) {
        let (port, mut source) = (self.port(), self.source.get());
        let mut times = self.client().run(|| {
            let (start, mut times) = (Instant::now(), Vec::new());
            for ip in to.iter().cycle() {
                let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, source)).expect("a socket");
                source = source.checked_add(1).unwrap_or(5_000);
                socket.set_read_timeout(Some(Duration::from_secs(5))).expect("a socket option");
                socket.connect(SocketAddr::from((*ip, port))).expect("an address");
                let sent = Instant::now();
                socket.send(&[0]).expect("it is sent");
                socket.recv(&mut [0]).expect("an answer");
                times.push(sent.elapsed());
                if start.elapsed() >= time {
                    break;
                }
                std::thread::sleep(PAUSE);
            }
            times
        });
        self.source.set(source);
        times.sort_unstable();
        (times[times.len() / 2], times[times.len() * 99 / 100])
    }

    fn client(&self) -> &sluicegate_lab::Namespace {
        &self.network.pods[0].namespace
    }

    /// Returns the row of the table.
    fn row(&self, services: u32, affinity: bool) -> String {
        let affinity = if affinity { "yes" } else { "no" };
        let mut row = match self.rules {
            Rules::No | Rules::One => format!("| | | {}", self.rules.name()),
            _ => format!("| {services} | {affinity} | {}", self.rules.name()),
        };
        for column in 0..3 {
            let of = |value: fn(&Figures, usize) -> f64| {
                median(self.figures.iter().map(|figures| value(figures, column)), f64::total_cmp)
            };
            let rate = of(|figures, column| figures.connections[column].0);
            let used =
                median(self.figures.iter().map(|figures| figures.connections[column].1), Duration::cmp);
            let half = median(self.figures.iter().map(|figures| figures.packets[column].0), Duration::cmp);
            let most = median(self.figures.iter().map(|figures| figures.packets[column].1), Duration::cmp);
            row += &match self.has(column) {
                true => {
                    format!(
                        " | {rate:.0} / {:.1} | {} / {}",
                        used.as_nanos() as f64 / 1e3,
                        half.as_micros(),
                        most.as_micros()
                    )
                }
                false => " | | ".to_owned(),
            };
        }
        row + " |"
    }

    /// Returns whether a column says anything.
    fn has(&self, column: usize) -> bool {
        match column {
            // The last is any, where there is one.
            0 => self.services > 1,
            1 => true,
            _ => self.backend.is_some() && self.services >= CHANGED,
        }
    }

    /// Keeps the columns of the row, a sample for each round.
    fn keep(&self, services: u32, affinity: bool) {
        let affinity = if affinity { ", session affinity" } else { "" };
        let area = if testns::guest().is_some() { "data path, guest" } else { "data path" };
        for (column, name) in
            ["the last service", "any service", "any, 100 change a second"].iter().enumerate()
        {
            if !self.has(column) {
                continue;
            }
            let keep = |what: &str, unit, value: fn(&Figures, usize) -> f64| {
                let samples: Vec<_> = self.figures.iter().map(|figures| value(figures, column)).collect();
                let what = format!("{what}: {name}{affinity}");
                record::keep(area, &what, self.rules.name(), services, unit, &samples);
            };
            keep("TCP connections", Unit::PerSecond, |figures, column| figures.connections[column].0);
            // What changes the services takes processor time, too.
            if column < 2 {
                keep("processor time of a connection", Unit::Nanoseconds, |figures, column| {
                    nanoseconds(figures.connections[column].1)
                });
            }
            keep("first UDP packet, p50", Unit::Nanoseconds, |figures, column| {
                nanoseconds(figures.packets[column].0)
            });
            keep("first UDP packet, p99", Unit::Nanoseconds, |figures, column| {
                nanoseconds(figures.packets[column].1)
            });
        }
    }
}

fn measure(effort: &Effort, services: u32, affinity: bool) {
    let chosen: Vec<_> = std::env::args().skip(1).filter(|word| !word.starts_with("--")).collect();
    let is_chosen = |rules: &Rules| chosen.is_empty() || chosen.iter().any(|name| name == rules.name());
    let possible =
        Rules::all().into_iter().filter(is_chosen).filter(|rules| rules.is_possible(services, affinity));
    let mut worlds: Vec<_> = possible.map(|rules| World::new(rules, services, affinity)).collect();
    for _ in 0..effort.rounds {
        worlds.iter_mut().for_each(|world| world.measure(effort));
    }
    for world in &worlds {
        println!("{}", world.row(services, affinity));
        world.keep(services, affinity);
    }
}

/// Changes an endpoint of 100 services each second.
fn change_until(stop: &AtomicBool, backend: &mut (dyn Backend + Send), cluster: &mut Cluster) {
    let services = u32::try_from(cluster.service_count()).expect("few services");
    for round in 0_u32.. {
        let next = Instant::now() + Duration::from_secs(1);
        for n in 0..CHANGED {
            let index = (round * CHANGED + n) * 97 % services;
            let current = cluster.slices(&service_name(index)).next().expect("every service has one");
            let has_last =
                current.endpoints.iter().any(|one| one.ip == IpAddr::from(endpoint(ENDPOINTS - 1)));
            let last = if has_last { ENDPOINTS } else { ENDPOINTS - 1 };
            cluster.set_slice(&slice_name(index), Some(slice(index, (0..ENDPOINTS - 1).chain([last]))));
        }
        let changes = cluster.take_changes();
        backend.sync(cluster, &changes, Instant::now()).expect("services change");
        while Instant::now() < next && !stop.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(5));
        }
        if stop.load(Ordering::Relaxed) {
            return;
        }
    }
}

/// Builds a node with a pod that asks, and with another one, of another node, that has all endpoints and
/// answers.
fn network() -> Network {
    let v6 = |last: u16| std::net::Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, last);
    let pod = |name, there, last| PodSpec {
        name,
        address: (Ipv4Addr::new(10, 244, there, last), v6(last.into())),
        ports: Vec::new(),
    };
    let spec = NetworkSpec {
        node: (Ipv4Addr::new(192, 168, 0, 2), v6(0x102)),
        client: (Ipv4Addr::new(192, 168, 0, 100), v6(0x103)),
        gateway: (Ipv4Addr::new(10, 244, 0, 1), v6(0x104)),
        pods: vec![pod("client", 0, 5), pod("server", 1, 1)],
        routed: Vec::new(),
    };
    let network = Network::build(&spec).expect("a network");
    let server = &network.pods[1].namespace;
    for index in 0..=ENDPOINTS {
        let address = IpAddr::from(endpoint(index));
        if index > 0 {
            server.run(|| Wire::open()?.address("eth0", address.into())).expect("an address");
            let route = || Wire::open()?.route(address.into(), None, "pod1");
            network.node.namespace.run(route).expect("a route");
        }
        let socket = server.run(|| UdpSocket::bind((address, TARGET_PORT))).expect("a socket");
        std::thread::spawn(move || answer(&socket));
    }
    let any = (Ipv4Addr::UNSPECIFIED, TARGET_PORT);
    let listener = server.run(|| TcpListener::bind(any)).expect("a socket");
    // It closes each connection at once.
    std::thread::spawn(move || while listener.accept().is_ok() {});
    network
}

fn answer(socket: &UdpSocket) {
    let mut buffer = [0; 16];
    loop {
        if let Ok((length, from)) = socket.recv_from(&mut buffer) {
            // The client does not wait any longer where this fails.
            let _ = socket.send_to(&buffer[..length], from);
        }
    }
}

/// Returns services with a TCP and a UDP port, which have the same endpoints.
fn cluster(services: u32, affinity: bool) -> Cluster {
    let mut cluster = Cluster::new(Node {
        name: "node".to_owned(),
        addresses: vec![Ipv4Addr::new(192, 168, 0, 2).into()],
        ..Node::default()
    });
    let ports = [("tcp", Protocol::Tcp), ("udp", Protocol::Udp)].map(|(name, protocol)| Port {
        name: name.into(),
        protocol,
        port: SERVICE_PORT.try_into().expect("a port"),
        node_port: None,
    });
    for index in 0..services {
        let service = Service::new([service_ip(index).into()], ports.clone()).expect("a service");
        let service = if affinity { service.with_affinity_seconds(10_800) } else { service };
        cluster.set_service(&service_name(index), Some(service));
        cluster.set_slice(&slice_name(index), Some(slice(index, 0..ENDPOINTS)));
    }
    cluster
}

fn slice(index: u32, endpoints: impl IntoIterator<Item = u32>) -> Slice {
    let endpoint = |index| SliceEndpoint {
        ip: endpoint(index).into(),
        node: Some("other-node".into()),
        ready: true,
        serving: true,
        terminating: false,
        hints: None,
    };
    let ports = [("tcp", Protocol::Tcp), ("udp", Protocol::Udp)].map(|(name, protocol)| SlicePort {
        name: name.into(),
        protocol,
        port: TARGET_PORT.try_into().expect("a port"),
    });
    Slice {
        service: service_name(index),
        family: Family::Ipv4,
        ports: ports.into(),
        endpoints: endpoints.into_iter().map(endpoint).collect(),
        last_change: None,
    }
}

fn service_name(index: u32) -> ServiceName {
    ServiceName::new("bench", &format!("service-{index}")).expect("a DNS label")
}

fn slice_name(index: u32) -> SliceName {
    SliceName { namespace: "bench".into(), name: format!("service-{index}").into() }
}

fn service_ip(index: u32) -> Ipv4Addr {
    Ipv4Addr::from_bits(Ipv4Addr::new(172, 30, 0, 1).to_bits() + index)
}

fn endpoint(index: u32) -> Ipv4Addr {
    Ipv4Addr::from_bits(Ipv4Addr::new(10, 244, 1, 1).to_bits() + index)
}

fn median<T: Copy>(values: impl Iterator<Item = T>, order: impl Fn(&T, &T) -> std::cmp::Ordering) -> T {
    let mut all: Vec<_> = values.collect();
    all.sort_unstable_by(|a, b| order(a, b));
    all[all.len() / 2]
}

const HEAD: &str = "\
| services | affinity | rules | TCP/s, last / µs of a processor | first UDP packet, µs: p50 / p99 | TCP/s, any | UDP, any \
| TCP/s, any, 100 change a second | UDP, the same |
|---:|---|---|---:|---:|---:|---:|---:|---:|";
const ONE_RULE: &str = "table ip one {
    chain prerouting {
        type nat hook prerouting priority -100
        ip daddr 172.30.0.1 meta l4proto { tcp, udp } th dport 80 dnat to 10.244.1.1:8080
    }
}";
const EVERYTHING: &str = "SLUICEGATE_BENCH_ALL";
const SERVICE_PORT: u16 = 80;
const TARGET_PORT: u16 = 8080;
/// The number of endpoints of a service; one more takes the place of the last when it changes.
const ENDPOINTS: u32 = 3;
/// The number of services that change in a second.
const CHANGED: u32 = 100;
/// The time between two datagrams, so that no measurement uses up the source ports.
const PAUSE: Duration = Duration::from_micros(200);
/// The slots of maglev: 251 would make 2.5 million elements of 10,000 services.
const SLOTS: u32 = 31;
