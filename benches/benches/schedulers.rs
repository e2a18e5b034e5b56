//! What schedulers and counters cost the node, and what schedulers do to clients.
//!
//! - Schedulers: 1,000 services of 10 endpoints in the layout maps: the elements of the tables, the processor
//!   time
//!   of the first sync and of one endpoint's change, the kernel's part included. In a guest the memory of the
//!   kernel's tables too: elsewhere others use it as well.
//! - Clients: the share that another endpoint serves when one of 10 goes, for each of the 10, and the largest
//!   share
//!   of an endpoint over the mean; as `explain` has it, which tests compare with packets.
//! - Counters: 10,000 services of 5 endpoints: the first sync, one change, and one reading of all counts.
//!
//! The kinds take turns in each round. `SLUICEGATE_BENCH_ROUNDS` says how many (3). It runs in network
//! namespaces of its own, and is left out with a word where none can be made.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::num::NonZeroU16;
use std::time::{Duration, Instant};

use benches::kernel::socket;
use benches::record::{Unit, keep};
use benches::timing::{cpu_time, is_measuring, nanoseconds};
use sluicegate_lab::{change_one, uniform_cluster};
use sluicegate_nftables::{TableId, read};
use sluicegate_service_rules::explain::{self, Question, Verdict, explain};
use sluicegate_service_rules::nftables::{Applier, Counting, Settings, TABLE, connections};
use sluicegate_services::{Cluster, Family, Protocol, Scheduler, ServiceName, SliceName, Slots};

fn main() {
    if testns::Netns::new().is_none() {
        return;
    }
    let rounds = std::env::var("SLUICEGATE_BENCH_ROUNDS").ok().and_then(|rounds| rounds.parse().ok());
    let (rounds, services, many) = match is_measuring() {
        true => (rounds.unwrap_or(3), 1_000, 10_000),
        false => (1, 10, 10),
    };
    let slots = |number| Scheduler::Maglev(Slots::new(number).expect("a prime"));
    let kinds = [Scheduler::Random, Scheduler::RoundRobin, Scheduler::SourceHash, slots(251), slots(1_021)];
    if testns::guest().is_some() {
        return kinds.into_iter().for_each(|scheduler| memory(scheduler, services));
    }
    let kinds = kinds.map(|scheduler| (scheduler.to_string(), Settings { scheduler, ..settings() }));
    schedulers(&kinds, services, rounds);
    [Scheduler::SourceHash, slots(251), slots(1_021)].into_iter().for_each(clients);
    let counted =
        [("off", Counting::Off), ("frontends", Counting::Frontends), ("endpoints", Counting::Endpoints)];
    let kinds = counted.map(|(name, counting)| (name.to_owned(), Settings { counting, ..settings() }));
    counters(&kinds, many, rounds);
}

fn settings() -> Settings {
    Settings { families: vec![Family::Ipv4], ..Settings::default() }
}

/// A kind of table: its name, and the samples of each measurement.
struct Kind<'a> {
    name: &'a str,
    samples: [Vec<f64>; 3],
}

impl Kind<'_> {
    fn keep(&self, area: &str, whats: [&str; 3], units: [Unit; 3], size: u32) {
        for ((what, unit), samples) in whats.iter().zip(units).zip(&self.samples) {
            println!("{area}, {size}: {what}: {}: {samples:.1?}", self.name);
            keep(area, what, self.name, size, unit, samples);
        }
    }
}

/// Measures the kinds in turn: the first sync, one change, and a third thing, whose sample `look` returns.
fn measure<'a>(
    kinds: &'a [(String, Settings)],
    (services, endpoints): (u32, u32),
    rounds: usize,
    look: impl Fn(&Settings) -> f64 + Sync,
) -> Vec<Kind<'a>> {
    let mut all: Vec<_> = kinds.iter().map(|(name, _)| Kind { name, samples: Default::default() }).collect();
    for _ in 0..rounds {
        for ((_, settings), kind) in kinds.iter().zip(&mut all) {
            testns::netns(|| {
                let mut cluster = uniform_cluster(services, endpoints);
                let mut applier = Applier::open(settings.clone()).expect("nf_tables");
                let mut sync = |cluster: &mut Cluster| {
                    drop(applier.sync(cluster, Instant::now()).expect("it is programmed"));
                };
                let first = cpu_time(|| sync(&mut cluster));
                let changes: Vec<_> = (0..CHANGES)
                    .map(|n| {
                        change_one(&mut cluster, n * 97 % services, endpoints);
                        cpu_time(|| sync(&mut cluster))
                    })
                    .collect();
                let mean = changes.iter().sum::<Duration>() / CHANGES;
                let [firsts, means, looks] = &mut kind.samples;
                firsts.push(nanoseconds(first));
                means.push(nanoseconds(mean));
                looks.push(look(settings));
            });
        }
    }
    all
}

fn schedulers(kinds: &[(String, Settings)], services: u32, rounds: usize) {
    let all = measure(kinds, (services, 10), rounds, |_| {
        let table = TableId::new(sluicegate_nftables::Family::IP, TABLE.parse().expect("a name"));
        let found = read::ruleset(&mut socket(), table).expect("it is listed");
        let elements: usize = found.sets.iter().map(|(_, elements)| elements.len()).sum();
        f64::from(u32::try_from(elements).expect("few"))
    });
    for kind in all {
        let units = [Unit::Nanoseconds, Unit::Nanoseconds, Unit::Number];
        kind.keep("schedulers", ["first sync", "one endpoint changes", "elements"], units, services);
    }
}

fn counters(kinds: &[(String, Settings)], services: u32, rounds: usize) {
    let all = measure(kinds, (services, 5), rounds, |settings| {
        let mut socket = socket();
        let read =
            || connections(&mut socket, &settings.families, settings.counting).expect("they are listed");
        nanoseconds(cpu_time(read))
    });
    for kind in all {
        let whats = ["first sync", "one endpoint changes", "one reading of all counts"];
        kind.keep("counters", whats, [Unit::Nanoseconds; 3], services);
    }
}

/// Keeps the memory that the kernel takes for the tables.
fn memory(scheduler: Scheduler, services: u32) {
    testns::netns(|| {
        let mut cluster = uniform_cluster(services, 10);
        let mut applier = Applier::open(Settings { scheduler, ..settings() }).expect("nf_tables");
        // What the first batch of a kernel needs once, such as modules, is not the tables'.
        applier.sync(&mut uniform_cluster(1, 10), Instant::now()).expect("it is programmed");
        let before = kernel_memory();
        applier.sync(&mut cluster, Instant::now()).expect("it is programmed");
        let mebibytes = (kernel_memory() - before) / 1024.0;
        println!("{services} services, {scheduler}: {mebibytes:.1} MiB");
        let name = scheduler.to_string();
        keep(
            "schedulers, memory",
            "memory of the kernel's tables",
            &name,
            services,
            Unit::Mebibytes,
            &[mebibytes],
        );
    });
}

/// Returns what the kernel has allocated for itself, in kibibytes, once what was given back has been freed.
fn kernel_memory() -> f64 {
    // Elements and transactions are freed by workers, after a grace period of RCU.
    std::thread::sleep(Duration::from_secs(3));
    let text = fs::read_to_string("/proc/meminfo").expect("Linux");
    let of = |name: &str| {
        let line = text.lines().find(|line| line.starts_with(name)).expect("a line of this name");
        line.split_whitespace().nth(1).and_then(|number| number.parse::<f64>().ok()).expect("a number")
    };
    of("Slab:") + of("VmallocUsed:")
}

/// Keeps the share of clients that move when an endpoint goes, and how even the shares are.
fn clients(scheduler: Scheduler) {
    let name = ServiceName::new("scale", "service-0").expect("a name");
    let slice_name = SliceName { namespace: "scale".into(), name: "service-0".into() };
    let mut cluster = uniform_cluster(1, ENDPOINTS);
    let whole = cluster.slices(&name).next().expect("every service has one").clone();
    let before = reached(&cluster, scheduler);
    let mut moved = Vec::new();
    for gone in 0..whole.endpoints.len() {
        let mut less = whole.clone();
        less.endpoints =
            whole.endpoints.iter().enumerate().filter(|(n, _)| *n != gone).map(|(_, e)| e.clone()).collect();
        cluster.set_slice(&slice_name, Some(less));
        let after = reached(&cluster, scheduler);
        let others = before.iter().zip(&after).filter(|(old, new)| old != new).count();
        moved.push(100.0 * others as f64 / before.len() as f64);
    }
    let name = scheduler.to_string();
    println!("{name}: {moved:.1?} % of clients move");
    keep(
        "clients",
        "clients that move when one endpoint goes or comes",
        &name,
        ENDPOINTS,
        Unit::Percent,
        &moved,
    );
    let mut evenness = Vec::new();
    for endpoints in [5, 10, 15] {
        let shares = shares(&uniform_cluster(1, endpoints), scheduler);
        let largest = shares.iter().copied().fold(0.0, f64::max);
        evenness.push(largest * shares.len() as f64);
    }
    println!("{name}: largest share over the mean {evenness:.3?}");
    keep("clients", "largest share over the mean", &name, ENDPOINTS, Unit::Times, &evenness[1..2]);
}

/// Returns where each of many clients is sent.
fn reached(cluster: &Cluster, scheduler: Scheduler) -> Vec<SocketAddr> {
    let ask = |number: u16| {
        let [high, low] = number.to_be_bytes();
        // Neither addresses nor ports that follow one another.
        let from = Ipv4Addr::new(10, low.wrapping_mul(89), high.wrapping_add(low), low).into();
        let port = NonZeroU16::new(20_000 + number.wrapping_mul(7_919) % 40_000);
        match choices(cluster, scheduler, from, port)[..] {
            [(endpoint, _)] => endpoint,
            ref choices => panic!("{scheduler}: {choices:?}"),
        }
    };
    (0..CLIENTS).map(ask).collect()
}

/// Returns the shares of the endpoints, of clients that are any.
fn shares(cluster: &Cluster, scheduler: Scheduler) -> Vec<f64> {
    match scheduler {
        Scheduler::Maglev(_) => {
            let all = choices(cluster, scheduler, Ipv4Addr::new(10, 1, 2, 3).into(), None);
            all.into_iter().map(|(_, share)| share).collect()
        }
        // `explain` says where one client goes: the hash of all of them is as even as its numbers are.
        _ => {
            let mut counts = std::collections::BTreeMap::<_, f64>::new();
            let all = reached(cluster, scheduler);
            all.iter().for_each(|endpoint| *counts.entry(*endpoint).or_default() += 1.0);
            counts.into_values().map(|count| count / all.len() as f64).collect()
        }
    }
}

fn choices(
    cluster: &Cluster,
    scheduler: Scheduler,
    from: IpAddr,
    from_port: Option<NonZeroU16>,
) -> Vec<(SocketAddr, f64)> {
    let settings =
        explain::Settings { scheduler, local_addresses: Some(vec![from]), ..explain::Settings::default() };
    let to = SocketAddr::from(([172, 30, 0, 0], 80));
    let question = Question { from, from_port, interface: None, to, protocol: Protocol::Tcp };
    let explanation = explain(cluster, &settings, &question).expect("an answer");
    let Verdict::Forwarded { choices, .. } = &explanation.verdict else { panic!("{explanation}") };
    choices.iter().map(|choice| (choice.endpoint, choice.probability.expect("a probability"))).collect()
}

const CHANGES: u32 = 20;
/// Of the service whose clients are looked at.
const ENDPOINTS: u32 = 10;
const CLIENTS: u16 = 2_000;
