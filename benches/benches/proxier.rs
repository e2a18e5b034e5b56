//! The proxier end to end, from model to kernel, for n services of 5 endpoints each: the first sync in both
//! layouts (`chains` has the shape of kube-proxy's rules), a change of one endpoint, and a change of a hundred
//! services at once; compared with `nft -f` of the `chains` text.
//!
//! With 10,000 services the shape of `chains` takes the kernel a quarter of a minute, whoever sends it: that is
//! measured twice, and not when the benchmarks are only checked.
#![allow(missing_docs, reason = "criterion's macros make functions without")]

use std::time::{Duration, Instant};

use benches::record::{self, Unit};
use benches::timing::is_measuring;
use criterion::{BenchmarkId, Criterion, SamplingMode, criterion_group, criterion_main};
use sluicegate_lab::{change_one, uniform_cluster};
use sluicegate_service_rules::nftables::Applier;
use sluicegate_service_rules::nftables::{Layout, Planner, Settings};
use sluicegate_services::DetectLocal;
use testns::Netns;

const SIZES: [u32; 4] = [10, 100, 1_000, 10_000];
const ENDPOINTS: u32 = 5;
const WARM_UP: u32 = 20;

fn settings(layout: Layout) -> Settings {
    let mut settings = Settings { layout, ..Settings::default() };
    settings.detect_local = DetectLocal::ClusterCidrs(vec!["10.0.0.0/8".parse().expect("a network")]);
    settings
}

fn first_sync(c: &mut Criterion) {
    let mut group = c.benchmark_group("proxier/first sync");
    group.sample_size(10).sampling_mode(SamplingMode::Flat);
    for services in SIZES {
        group.bench_function(BenchmarkId::new("maps", services), |b| {
            b.iter_custom(|times| (0..times).map(|_| sync_once(services, Layout::Maps).0).sum());
        });
        // The part of the kernel: the time in sendmsg.
        group.bench_function(BenchmarkId::new("maps, kernel", services), |b| {
            b.iter_custom(|times| (0..times).map(|_| sync_once(services, Layout::Maps).1).sum());
        });
        if services < 10_000 {
            group.bench_function(BenchmarkId::new("chains", services), |b| {
                b.iter_custom(|times| (0..times).map(|_| sync_once(services, Layout::Chains).0).sum());
            });
            group.bench_function(BenchmarkId::new("nft -f of chains", services), |b| {
                b.iter_custom(|times| (0..times).map(|_| nft_once(services)).sum());
            });
        } else if is_measuring() {
            twice("chains", services, || sync_once(services, Layout::Chains).0);
            twice("nft -f of chains", services, || nft_once(services));
        }
    }
    group.finish();
}

/// Measures and records what takes too long for the ten samples that criterion wants.
fn twice(who: &str, services: u32, mut work: impl FnMut() -> Duration) {
    let times = [work(), work()];
    println!("proxier/first sync/{who}/{services}: {times:?}");
    let samples = times.map(|time| time.as_secs_f64() * 1e9);
    record::keep("proxier", "first sync", who, services, Unit::Nanoseconds, &samples);
}

fn changes(c: &mut Criterion) {
    let mut group = c.benchmark_group("proxier/change");
    group.sample_size(20);
    for services in SIZES {
        for (name, changed) in [("one endpoint", 1), ("100 services", 100.min(services))] {
            group.bench_function(BenchmarkId::new(name, services), |b| {
                b.iter_custom(|times| change(services, changed, times));
            });
        }
    }
    group.finish();
}

/// Returns the time of a first sync in a new namespace, and the part of the kernel.
fn sync_once(services: u32, layout: Layout) -> (Duration, Duration) {
    in_namespace(|| {
        let mut cluster = uniform_cluster(services, ENDPOINTS);
        let mut applier = Applier::open(settings(layout)).expect("a socket");
        let start = Instant::now();
        let synced = applier.sync(&mut cluster, start).expect("a sync");
        (start.elapsed(), synced.kernel)
    })
}

fn nft_once(services: u32) -> Duration {
    let cluster = uniform_cluster(services, ENDPOINTS);
    let script =
        Planner::new(&settings(Layout::Chains), &cluster, None).expect("a plan").script().to_string();
    in_namespace(|| {
        let start = Instant::now();
        let output = testns::feed(&["nft", "-f", "-"], &script);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        start.elapsed()
    })
}

fn change(services: u32, changed: u32, times: u64) -> Duration {
    in_namespace(|| {
        let mut cluster = uniform_cluster(services, ENDPOINTS);
        let mut applier = Applier::open(settings(Layout::Maps)).expect("a socket");
        applier.sync(&mut cluster, Instant::now()).expect("a sync");
        let mut took = Duration::ZERO;
        // The first changes after the first sync run with cold caches, unlike those of a running proxier.
        for round in 0..WARM_UP {
            change_one(&mut cluster, round % services, ENDPOINTS);
            applier.sync(&mut cluster, Instant::now()).expect("a sync");
        }
        for round in 0..times {
            let first = u32::try_from(round % u64::from(services)).unwrap_or(0);
            for index in (first..first + changed).map(|index| index % services) {
                change_one(&mut cluster, index, ENDPOINTS);
            }
            let start = Instant::now();
            let synced = applier.sync(&mut cluster, start).expect("a sync");
            took += start.elapsed();
            assert_eq!(synced.batches, 1, "one batch, however many services changed");
        }
        took
    })
}

fn in_namespace<T>(f: impl FnOnce() -> T) -> T {
    Netns::new().expect("a network namespace: run as root").run_here(f)
}

criterion_group!(benches, first_sync, changes);
criterion_main!(benches);
