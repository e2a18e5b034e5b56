//! The nftables planner alone, without a kernel: a whole cluster of n services of 5 endpoints each, one
//! endpoint that changes, a hundred services that change; and for comparison the encoding of the same for
//! netlink.
#![allow(missing_docs, reason = "criterion's macros make functions without")]

use std::hint::black_box;
use std::time::Instant;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use sluicegate_lab::{change_one, uniform_cluster};
use sluicegate_nftables::ApplyOptions;
use sluicegate_service_rules::nftables::{Layout, Planner, Settings};
use sluicegate_services::Cluster;

const SIZES: [u32; 4] = [10, 100, 1_000, 10_000];
const ENDPOINTS: u32 = 5;

fn cluster(services: u32) -> Cluster {
    let mut cluster = uniform_cluster(services, ENDPOINTS);
    cluster.take_changes();
    cluster
}

fn settings(layout: Layout) -> Settings {
    Settings { layout, ..Settings::default() }
}

fn first(c: &mut Criterion) {
    for (layout, name) in [(Layout::Maps, "maps"), (Layout::Chains, "chains")] {
        let mut group = c.benchmark_group(format!("planner/first/{name}"));
        group.sample_size(10);
        for size in SIZES {
            let cluster = cluster(size);
            let plan = || Planner::new(&settings(layout), &cluster, None).expect("good settings");
            group.bench_function(BenchmarkId::new("plan", size), |b| b.iter_with_large_drop(plan));
            let mut planner = plan();
            group.bench_function(BenchmarkId::new("script", size), |b| {
                b.iter_with_large_drop(|| planner.script());
            });
            let script = planner.script();
            group.bench_function(BenchmarkId::new("encode", size), |b| {
                b.iter(|| black_box(script.encode(ApplyOptions::default())));
            });
            group.bench_function(BenchmarkId::new("print", size), |b| {
                b.iter(|| black_box(script.to_string()));
            });
        }
        group.finish();
    }
}

fn change(c: &mut Criterion) {
    for (layout, name) in [(Layout::Maps, "maps"), (Layout::Chains, "chains")] {
        let mut group = c.benchmark_group(format!("planner/change/{name}"));
        for size in SIZES {
            let mut cluster = cluster(size);
            let mut planner = Planner::new(&settings(layout), &cluster, None).expect("good settings");
            planner.script();
            let now = Instant::now();
            for (changes, what) in [(1, "one-endpoint"), (100, "100-services")] {
                group.bench_function(BenchmarkId::new(what, size), |b| {
                    b.iter(|| {
                        (0..changes.min(size))
                            .for_each(|n| change_one(&mut cluster, n * 97 % size, ENDPOINTS));
                        let changes = cluster.take_changes();
                        black_box(planner.sync(&cluster, &changes, now).encode(ApplyOptions::default()))
                    });
                });
            }
        }
        group.finish();
    }
}

criterion_group!(benches, first, change);
criterion_main!(benches);
