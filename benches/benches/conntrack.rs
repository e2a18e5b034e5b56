//! The UDP flows of one service among many others: found and deleted by our client, reconciled for 1 and for
//! 20 services, and listed; compared with `conntrack -D` and `conntrack -L` with the same arguments.
//!
//!     cargo bench -p benches --bench conntrack
//!
//! One flow in a hundred belongs to a service whose server has gone. What is deleted is created anew between
//! the rounds, which is not timed. 100,000 flows take minutes in all: they are left out unless
//! `SLUICEGATE_BENCH_ALL` is set. Needs root or a user namespace; works in a network namespace of its own.

use std::hint::black_box;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, Throughput};
use sluicegate_conntrack::stale::{How, Services, sync};
use sluicegate_conntrack::{Client, Filter, NewFlow, Protocol, Tuple};

fn main() {
    // Criterion does not move between threads, and the namespace belongs to one.
    testns::netns(|| {
        let mut criterion = Criterion::default().configure_from_args();
        for count in [100, 1_000, 10_000, 100_000] {
            if count < 100_000 || std::env::var_os("SLUICEGATE_BENCH_ALL").is_some() {
                among(&mut criterion, count);
            }
        }
        criterion.final_summary();
    });
}

fn among(criterion: &mut Criterion, count: u32) {
    let mut client = Client::open().expect("a socket");
    client.flush(None).expect("an empty table");
    let (stale, others): (Vec<_>, Vec<_>) = (0..count).partition(|n| n % 100 == 0);
    let stale: Vec<_> = stale.into_iter().map(|n| flow(n, service(0))).collect();
    let others: Vec<_> = others.into_iter().map(|n| flow(n, service(1 + n % 1_000))).collect();
    client.create(&stale).expect("flows");
    client.create(&others).expect("flows");

    let mut group = criterion.benchmark_group("conntrack/among");
    group.sample_size(10).throughput(Throughput::Elements(count.into()));
    if count >= 100_000 {
        group.measurement_time(Duration::from_secs(8));
    }
    let filter = of_service();
    group.bench_function(BenchmarkId::new("delete one service's", count), |bencher| {
        bencher.iter_custom(|times| {
            timed(times, &mut client, &stale, |client| {
                let deleted = client.delete_matching(black_box(&filter)).expect("deleted");
                assert_eq!(deleted.len(), stale.len());
            })
        });
    });
    for (services, how) in [(1, How::Filtered), (20, How::Whole)] {
        let name = format!("reconcile {services} services");
        let wanted = wanted(services);
        group.bench_function(BenchmarkId::new(name, count), |bencher| {
            bencher.iter_custom(|times| {
                timed(times, &mut client, &stale, |client| {
                    let report = sync(client, black_box(&wanted)).expect("reconciled");
                    assert_eq!((report.how, report.deleted), (how, stale.len()));
                })
            });
        });
    }
    group.bench_function(BenchmarkId::new("list all", count), |bencher| {
        bencher.iter(|| client.list(&Filter::default()).expect("a list").len());
    });
    if testns::have(&["conntrack"]) {
        let words = "conntrack -D -p udp -d 10.96.0.1 --dport 53";
        group.bench_function(BenchmarkId::new(words, count), |bencher| {
            bencher.iter_custom(|times| timed(times, &mut client, &stale, |_| run(words)));
        });
        group.bench_function(BenchmarkId::new("conntrack -L", count), |bencher| {
            bencher.iter(|| run("conntrack -L"));
        });
    }
    group.finish();
    client.flush(None).expect("an empty table");
}

/// Returns the time that `delete` takes, `times` times, without creating the deleted flows again.
fn timed(
    times: u64,
    client: &mut Client,
    stale: &[NewFlow],
    mut delete: impl FnMut(&mut Client),
) -> Duration {
    let mut total = Duration::ZERO;
    for _ in 0..times {
        let start = Instant::now();
        delete(client);
        total += start.elapsed();
        client.create(stale).expect("flows");
    }
    total
}

fn run(words: &str) {
    let done = testns::try_sh(&format!("{words} >/dev/null 2>&1"));
    assert!(done.status.success(), "{words}: {}", done.status);
}

fn service(n: u32) -> SocketAddr {
    SocketAddr::new(IpAddr::from((0x0a60_0001 + n).to_be_bytes()), 53)
}

/// The previous server of all services, which the first service has no longer.
fn server() -> SocketAddr {
    "10.244.0.5:53".parse().expect("an address")
}

fn flow(n: u32, service: SocketAddr) -> NewFlow {
    let port = 1_024 + u16::try_from(n % 60_000).expect("a port");
    let client = SocketAddr::new(IpAddr::from((0x0a00_0001 + n / 60_000).to_be_bytes()), port);
    let original = Tuple::with_ports(Protocol::UDP, client, service).expect("one family");
    let mut flow = NewFlow::new(original, 3_600);
    flow.reply = Tuple::with_ports(Protocol::UDP, server(), client).expect("one family");
    flow
}

fn of_service() -> Filter {
    let mut filter = Filter::default();
    filter.protocol = Some(Protocol::UDP);
    filter.original.destination = Some(service(0).ip().into());
    filter.original.destination_port = Some(53);
    filter
}

/// Returns this number of services: the first has another server now, and the others have the previous one.
fn wanted(count: u32) -> Services {
    let mut services = Services::new();
    services.frontend(Protocol::UDP, service(0), ["10.244.0.6:53".parse().expect("an address")]);
    for n in 1..count {
        services.frontend(Protocol::UDP, service(n), [server()]);
    }
    services
}
