//! IPVS mode with n services of 5 endpoints each: planning, on any kernel; and in a guest kernel with IPVS,
//! the first sync and the change of one endpoint, each compared with programs that are started for every
//! object: `ipset create` and `ipset add`, `ipvsadm -A` and `-a`, `ip address add`, and `iptables-restore`
//! once. Both carry out the same plan, and the benchmark first checks that they have the same result. The
//! kernel's share of a first sync is to send the same netlink messages again in another namespace, without the
//! rules of iptables, which hardly depend on the services.
//!
//! In user-mode Linux a page fault takes about 150 us. A first sync of 1,000 services has some 500, and sending
//! its messages again has few, so what is ours appears to be several times what it is elsewhere. qemu emulates
//! page tables, so its ratio is closer to a machine's:
//! `xtask/guest/qemu/qemurun -m 1500M -- BENCHMARK --bench kernel`.
//!
//! ```text
//! cargo bench -p benches --bench ipvs-mode
//! cargo xtask bench ipvs-mode --guest -- kernel      # needs a kernel of its own
//! ```
//!
//! A first sync includes opening sockets, finding iptables, and the jumps to our chains, which the programs
//! do not create. 9,000 programs take minutes: for more than 10 services they are started only once, and only
//! with `SLUICEGATE_BENCH_ALL`.

#![allow(missing_docs, reason = "criterion's macros make functions without")]

use std::hint::black_box;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, SamplingMode, criterion_group, criterion_main};
use sluicegate_lab::{change_one, uniform_cluster};
use sluicegate_netlink::{Error, NetlinkFamily, Options, Socket, Transport, Wait};
use sluicegate_service_rules::iptables::{self, BackEnd};
use sluicegate_service_rules::ipvs::{Applier, Change, DEVICE, Planner, Settings, Transports};
use sluicegate_services::{Cluster, Family};
use testns::Netns;

const PLANNED: [u32; 4] = [10, 100, 1_000, 10_000];
const SYNCED: [u32; 3] = [10, 100, 1_000];
const ENDPOINTS: u32 = 5;

fn cluster(services: u32) -> Cluster {
    let mut cluster = uniform_cluster(services, ENDPOINTS);
    cluster.take_changes();
    cluster
}

fn planner(cluster: &Cluster) -> Planner {
    Planner::new(Family::Ipv4, &Settings::default(), cluster, Some(Vec::new())).expect("good settings")
}

/// Replaces an endpoint of one service by another, or back.
fn change(planner: &mut Planner, cluster: &mut Cluster) -> Change {
    change_one(cluster, 5, ENDPOINTS);
    let changes = cluster.take_changes();
    planner.sync(cluster, &changes).expect("it can be planned")
}

fn plan(c: &mut Criterion) {
    let mut group = c.benchmark_group("ipvs-mode/plan");
    for size in PLANNED {
        let mut cluster = cluster(size);
        group.bench_function(BenchmarkId::new("all", size), |b| {
            b.iter(|| black_box(planner(&cluster).whole()));
        });
        let mut plan = planner(&cluster);
        group.bench_function(BenchmarkId::new("one endpoint's change", size), |b| {
            b.iter(|| black_box(change(&mut plan, &mut cluster)));
        });
    }
    group.finish();
}

fn kernel(c: &mut Criterion) {
    let Some(guest) = testns::guest() else {
        println!("ipvs-mode/kernel: only in a guest kernel, see the head of benches/benches/ipvs-mode.rs");
        return;
    };
    // user-mode Linux has nf_tables for bridges only.
    let back_end = if guest == "uml" { BackEnd::Legacy } else { BackEnd::Nft };
    both_leave_the_same(back_end);
    let all = std::env::var_os("SLUICEGATE_BENCH_ALL").is_some();
    let mut group = c.benchmark_group("ipvs-mode/kernel");
    group.sample_size(10).sampling_mode(SamplingMode::Flat);
    group.warm_up_time(Duration::from_millis(1)).measurement_time(Duration::from_secs(1));
    for size in SYNCED {
        let mut cluster = cluster(size);
        group.bench_function(BenchmarkId::new("first sync", size), |b| {
            b.iter_custom(|rounds| (0..rounds).map(|_| first_sync(back_end, &mut cluster)).sum());
        });
        let steps = record(back_end, &mut cluster);
        group.bench_function(BenchmarkId::new("first sync, the kernel alone", size), |b| {
            b.iter_custom(|rounds| (0..rounds).map(|_| in_new_namespace(|| replay(&steps))).sum());
        });
        if size <= 10 {
            group.bench_function(BenchmarkId::new("first sync, a program for each object", size), |b| {
                b.iter_custom(|rounds| (0..rounds).map(|_| first_by_programs(back_end, &cluster)).sum());
            });
        } else if all {
            let programs = programs(&planner(&cluster).whole(), true).len() + 1;
            let (ours, theirs) = (first_sync(back_end, &mut cluster), first_by_programs(back_end, &cluster));
            println!(
                "ipvs-mode/kernel: first sync of {size} services, once each: sluicegate {ours:?}, \
                 {programs} programs \
                 {theirs:?}, {:.0} times as long",
                theirs.as_secs_f64() / ours.as_secs_f64()
            );
        }
        let namespace = Netns::new().expect("the guest's root may");
        let mut applier = namespace.run_here(|| open(back_end));
        namespace.run_here(|| applier.sync(&mut cluster, Instant::now()).expect("a guest with IPVS"));
        group.bench_function(BenchmarkId::new("one endpoint's change", size), |b| {
            b.iter_custom(|rounds| {
                namespace.run_here(|| (0..rounds).map(|_| one_change(&mut applier, &mut cluster)).sum())
            });
        });
        let mut plan = planner(&cluster);
        let name = "one endpoint's change, a program for each object";
        group.bench_function(BenchmarkId::new(name, size), |b| {
            b.iter_custom(|rounds| {
                namespace.run_here(|| (0..rounds).map(|_| one_by_programs(&mut plan, &mut cluster)).sum())
            });
        });
        end(namespace);
    }
    group.finish();
}

fn open(back_end: BackEnd) -> Applier {
    Applier::open(Some(back_end), &[Family::Ipv4], Settings::default()).expect("a guest with IPVS")
}

/// Ends a namespace and waits until the kernel has removed it, so that this is not measured.
fn end(namespace: Netns) {
    drop(namespace);
    std::thread::sleep(Duration::from_secs(1));
}

fn in_new_namespace<T>(f: impl FnOnce() -> T) -> T {
    let namespace = Netns::new().expect("the guest's root may");
    let result = namespace.run_here(f);
    end(namespace);
    result
}

/// Measures the first sync in a new namespace.
fn first_sync(back_end: BackEnd, cluster: &mut Cluster) -> Duration {
    in_new_namespace(|| sync_all(back_end, cluster))
}

fn sync_all(back_end: BackEnd, cluster: &mut Cluster) -> Duration {
    let start = Instant::now();
    let mut applier = open(back_end);
    let synced = applier.sync(cluster, Instant::now()).expect("a guest with IPVS");
    let took = start.elapsed();
    let services = cluster.service_names().count();
    assert_eq!(synced.families[0].commands, services * (1 + ENDPOINTS as usize), "{synced}");
    took
}

/// A call of a [`Transport`].
enum Step {
    Send(Vec<u8>),
    Receive(Wait),
    Limit(usize),
}

/// A socket that records its calls in a list that it shares with others.
struct Recorder {
    socket: Socket,
    /// The calls, each with the index of its socket.
    steps: Arc<Mutex<Vec<(usize, Step)>>>,
    index: usize,
}

/// The sockets of an applier: ipset, IPVS, addresses.
const SOCKETS: [NetlinkFamily; 3] = [NetlinkFamily::NETFILTER, NetlinkFamily::GENERIC, NetlinkFamily::ROUTE];

impl Recorder {
    fn note(&self, step: Step) {
        self.steps.lock().expect("no panic").push((self.index, step));
    }
}

impl Transport for Recorder {
    fn send(&mut self, datagram: &[u8]) -> Result<(), Error> {
        self.note(Step::Send(datagram.to_vec()));
        self.socket.send(datagram)
    }

    fn receive(&mut self, buffer: &mut Vec<u8>, wait: Wait) -> Result<bool, Error> {
        self.note(Step::Receive(wait));
        self.socket.receive(buffer, wait)
    }

    fn send_limit(&mut self, size: usize) -> usize {
        self.note(Step::Limit(size));
        self.socket.send_limit(size)
    }

    fn port(&self) -> Option<u32> {
        self.socket.port()
    }
}

fn socket(index: usize) -> Socket {
    Socket::open(SOCKETS[index], &Options::default()).expect("a netlink socket can be opened")
}

/// Returns the calls of a first sync, which leave the same behind when they are made again.
fn record(back_end: BackEnd, cluster: &mut Cluster) -> Vec<(usize, Step)> {
    let steps = Arc::new(Mutex::new(Vec::new()));
    let before = in_new_namespace(|| {
        let recorder = |index| Recorder { socket: socket(index), steps: Arc::clone(&steps), index };
        let transports =
            Transports { sets: recorder(0), servers: recorder(1), links: recorder(2), events: None };
        let tables = iptables::open(Some(back_end), &[Family::Ipv4]).expect("a guest with iptables");
        let mut applier =
            Applier::with_transports(tables, Settings::default(), transports).expect("a guest with IPVS");
        applier.sync(cluster, Instant::now()).expect("a guest with IPVS");
        left_behind()
    });
    let steps = Arc::into_inner(steps).and_then(|steps| steps.into_inner().ok()).expect("no applier is left");
    in_new_namespace(|| {
        replay(&steps);
        assert_eq!(left_behind(), before);
    });
    steps
}

/// Makes the calls again, with new sockets, and returns how long that took.
fn replay(steps: &[(usize, Step)]) -> Duration {
    let mut buffer = Vec::new();
    let start = Instant::now();
    let mut sockets = [0, 1, 2].map(socket);
    for (index, step) in steps {
        let socket = &mut sockets[*index];
        match step {
            Step::Send(datagram) => socket.send(datagram).expect("it was sent before"),
            Step::Receive(wait) => drop(socket.receive(&mut buffer, *wait).expect("it came before")),
            Step::Limit(size) => drop(socket.send_limit(*size)),
        }
    }
    start.elapsed()
}

fn first_by_programs(back_end: BackEnd, cluster: &Cluster) -> Duration {
    in_new_namespace(|| all_by_programs(back_end, cluster))
}

fn all_by_programs(back_end: BackEnd, cluster: &Cluster) -> Duration {
    let start = Instant::now();
    let whole = planner(cluster).whole();
    run(&programs(&whole, true));
    let tool = if back_end == BackEnd::Legacy { "legacy" } else { "nft" };
    let output = testns::feed(&[&format!("iptables-{tool}-restore"), "--noflush"], &whole.rules.to_string());
    assert!(output.status.success(), "{output:?}");
    start.elapsed()
}

fn one_change(applier: &mut Applier, cluster: &mut Cluster) -> Duration {
    change_one(cluster, 5, ENDPOINTS);
    let start = Instant::now();
    let synced = applier.sync(cluster, Instant::now()).expect("a guest with IPVS");
    let took = start.elapsed();
    // One destination is added, the weight of the other becomes 0, and that is deleted.
    assert_eq!(synced.families[0].commands, 3, "{synced}");
    took
}

/// Measures programs that change one endpoint, without checking the connections of the removed destination.
fn one_by_programs(plan: &mut Planner, cluster: &mut Cluster) -> Duration {
    change_one(cluster, 5, ENDPOINTS);
    let changes = cluster.take_changes();
    let start = Instant::now();
    let change = plan.sync(cluster, &changes).expect("it can be planned");
    let programs = programs(&change, false);
    run(&programs);
    let took = start.elapsed();
    assert_eq!(programs.len(), 2, "{programs:?}");
    took
}

/// Returns one command line for each object of a change, except for rules.
fn programs(change: &Change, device: bool) -> Vec<Vec<String>> {
    let text = change.script(Family::Ipv4).to_string();
    let mut lines: Vec<String> = Vec::new();
    let mut program = "";
    for line in text.lines() {
        if let Some(heading) = line.strip_prefix("# ") {
            program = match heading.split(' ').next() {
                Some("ipset") => "ipset",
                Some("ipvsadm") => "ipvsadm",
                Some("addresses") => "ip",
                _ => break,
            };
            if program == "ip" && device {
                lines.push(format!("ip link add {DEVICE} type dummy"));
            }
        } else {
            lines.push(format!("{program} {line}"));
        }
    }
    lines.iter().map(|line| line.split_whitespace().map(str::to_owned).collect()).collect()
}

fn run(programs: &[Vec<String>]) {
    for words in programs {
        let status = Command::new(&words[0]).args(&words[1..]).status().expect("it is installed");
        assert!(status.success(), "{words:?}: {status}");
    }
}

/// Returns the sets, virtual servers and addresses in the kernel.
fn left_behind() -> [Vec<String>; 3] {
    ["ipset save", "ipvsadm -Sn", "ip -o -4 address show dev kube-ipvs0"].map(|command| {
        let text = testns::sh(command);
        // The initial value of a set's hash is random, and the index of a device may differ.
        let line = |line: &str| -> String {
            let words = line.split_whitespace();
            let mut previous = "";
            let kept = words.filter(|word| {
                let is_seed = previous == "initval" || *word == "initval";
                previous = word;
                !is_seed && !word.ends_with(':')
            });
            kept.collect::<Vec<_>>().join(" ")
        };
        let mut lines: Vec<_> = text.lines().map(line).collect();
        lines.sort();
        lines
    })
}

fn both_leave_the_same(back_end: BackEnd) {
    let mut cluster = cluster(10);
    let ours = in_new_namespace(|| {
        sync_all(back_end, &mut cluster);
        left_behind()
    });
    let theirs = in_new_namespace(|| {
        all_by_programs(back_end, &cluster);
        left_behind()
    });
    assert_eq!(ours, theirs);
    assert!(ours[0].len() > 30 && ours[1].len() == 60 && ours[2].len() == 10, "{ours:?}");
}

criterion_group!(benches, plan, kernel);
criterion_main!(benches);
