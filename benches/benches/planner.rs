//! The nftables planner alone, without a kernel: a whole cluster of n services of 5 endpoints each, one endpoint that
//! changes, a hundred services that change; and for comparison the encoding of the same for netlink.
#![allow(missing_docs, reason = "criterion's macros make functions without")]

use std::hint::black_box;
use std::net::IpAddr;
use std::num::NonZeroU16;
use std::sync::Arc;
use std::time::Instant;

use criterion::{BatchSize, BenchmarkId, Criterion, criterion_group, criterion_main};
use sluicegate_nftables::ApplyOptions;
use sluicegate_proxier::model::{
    Cluster, Family, Node, Port, Protocol, Service, ServiceName, Slice, SliceEndpoint, SliceName, SlicePort,
};
use sluicegate_proxier::plan::nftables::{Layout, Planner, Settings};

const SIZES: [u32; 4] = [10, 100, 1_000, 10_000];
const ENDPOINTS: u32 = 5;

fn service_name(n: u32) -> ServiceName {
    ServiceName::new("demo", &format!("service-{n}")).expect("a name")
}

fn slice_name(n: u32) -> SliceName {
    SliceName { namespace: "demo".into(), name: format!("service-{n}-abcde").into() }
}

fn service(n: u32) -> Service {
    let [_, _, a, b] = n.to_be_bytes();
    Service {
        cluster_ips: [Some(IpAddr::from([10, 96, a, b])), None],
        ports: [Port { name: "http".into(), protocol: Protocol::Tcp, port: port(80), node_port: None }]
            .into(),
        external_ips: Box::default(),
        load_balancer_ips: Box::default(),
        source_ranges: Box::default(),
        external_local: false,
        internal_local: false,
        affinity_seconds: None,
        health_check_node_port: None,
    }
}

/// Five endpoints; `version` moves the last one.
fn slice(n: u32, version: u32) -> Slice {
    let node: Arc<str> = "other".into();
    let endpoint = |i: u32| {
        let last = if i + 1 == ENDPOINTS { version % 2 } else { 0 };
        let [_, a, b, c] = (n * 8 + i + last).to_be_bytes();
        let ip = IpAddr::from([10, 128 | a, b, c]);
        SliceEndpoint {
            ip,
            node: Some(Arc::clone(&node)),
            ready: true,
            serving: true,
            terminating: false,
            hints: None,
        }
    };
    Slice {
        service: service_name(n),
        family: Family::V4,
        ports: [SlicePort { name: "http".into(), protocol: Protocol::Tcp, port: port(8080) }].into(),
        endpoints: (0..ENDPOINTS).map(endpoint).collect(),
        last_change: None,
    }
}

fn port(number: u16) -> NonZeroU16 {
    NonZeroU16::new(number).expect("not 0")
}

fn cluster(size: u32) -> Cluster {
    let mut cluster = Cluster::new(Node { name: "here".to_owned(), ..Node::default() });
    for n in 0..size {
        cluster.set_service(&service_name(n), Some(service(n)));
        cluster.set_slice(&slice_name(n), Some(slice(n, 0)));
    }
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
                let mut version = 0;
                group.bench_function(BenchmarkId::new(what, size), |b| {
                    b.iter_batched(
                        || {
                            version += 1;
                            (0..changes.min(size))
                                .map(|n| (slice_name(n * 97 % size), slice(n * 97 % size, version)))
                                .collect()
                        },
                        |slices: Vec<_>| {
                            for (name, slice) in slices {
                                cluster.set_slice(&name, Some(slice));
                            }
                            let changes = cluster.take_changes();
                            black_box(planner.sync(&cluster, &changes, now).encode(ApplyOptions::default()))
                        },
                        BatchSize::SmallInput,
                    );
                });
            }
        }
        group.finish();
    }
}

criterion_group!(benches, first, change);
criterion_main!(benches);
