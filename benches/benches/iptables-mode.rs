//! The iptables planner beside the tool that loads what it says: planning and rendering n services of 5 endpoints each,
//! `iptables-restore` of that text by both back ends in a namespace of its own, and the change of one endpoint, planned and loaded.
//! Before the times, what share of the full text a change of one endpoint is.
//!
//! `iptables-nft-restore` takes minutes for 5,000 services: it is left out there unless `SLUICEGATE_BENCH_ALL` is set.
#![allow(missing_docs, reason = "criterion's macros make functions without")]

use std::hint::black_box;
use std::net::IpAddr;
use std::num::NonZeroU16;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use sluicegate_proxier::model::{
    Cluster, DetectLocal, Family, Node, Port, Protocol, Service, ServiceName, Slice, SliceEndpoint,
    SliceName, SlicePort,
};
use sluicegate_proxier::plan::iptables::{Feature, Planner, Settings, Support};

const SIZES: [u32; 2] = [1_000, 5_000];
const ENDPOINTS: u32 = 5;
const BACK_ENDS: [&str; 2] = ["legacy", "nft"];

fn service_name(n: u32) -> ServiceName {
    ServiceName::new("demo", &format!("service-{n}")).expect("a name")
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

/// Five endpoints, or four.
fn set_slice(cluster: &mut Cluster, n: u32, endpoints: u32) {
    let endpoint = |i: u32| {
        let [_, a, b, c] = (n * 8 + i).to_be_bytes();
        let ip = IpAddr::from([10, 128 | a, b, c]);
        SliceEndpoint {
            ip,
            node: Some("other".into()),
            ready: true,
            serving: true,
            terminating: false,
            hints: None,
        }
    };
    let name = SliceName { namespace: "demo".into(), name: format!("service-{n}-abcde").into() };
    let slice = Slice {
        service: service_name(n),
        family: Family::V4,
        ports: [SlicePort { name: "http".into(), protocol: Protocol::Tcp, port: port(8080) }].into(),
        endpoints: (0..endpoints).map(endpoint).collect(),
        last_change: None,
    };
    cluster.set_slice(&name, Some(slice));
}

fn port(number: u16) -> NonZeroU16 {
    NonZeroU16::new(number).expect("not 0")
}

fn cluster(size: u32) -> Cluster {
    let mut cluster = Cluster::new(Node { name: "here".to_owned(), ..Node::default() });
    for n in 0..size {
        cluster.set_service(&service_name(n), Some(service(n)));
        set_slice(&mut cluster, n, ENDPOINTS);
    }
    cluster.take_changes();
    cluster
}

fn planner(cluster: &Cluster) -> Planner {
    let detect_local = DetectLocal {
        cluster_cidrs: vec!["10.128.0.0/9".parse().expect("a CIDR")],
        ..DetectLocal::default()
    };
    let settings = Settings { detect_local, ..Settings::default() };
    let support = Support::without([Feature::Nfacct]);
    Planner::new(Family::V4, &settings, support, cluster, None).expect("good settings")
}

/// Takes an endpoint away from one service, or gives it back.
fn change(planner: &mut Planner, cluster: &mut Cluster, turn: u32) -> String {
    set_slice(cluster, 500, ENDPOINTS - turn % 2);
    let changes = cluster.take_changes();
    planner.sync(cluster, &changes).expect("plans can be compared").to_string()
}

fn restore(back_end: &str, input: &str) {
    let tool = format!("iptables-{back_end}-restore");
    let output = testns::feed(&[&tool, "-w", "5", "--noflush", "--counters"], input);
    assert!(output.status.success(), "{tool}: {}", String::from_utf8_lossy(&output.stderr));
}

fn iptables_mode(c: &mut Criterion) {
    let mut group = c.benchmark_group("iptables-mode");
    group.sample_size(10).measurement_time(Duration::from_secs(3)).warm_up_time(Duration::from_millis(500));
    for size in SIZES {
        let mut cluster = cluster(size);
        let mut plan = planner(&cluster);
        let text = plan.input().to_string();
        let sent = change(&mut plan, &mut cluster, 1);
        eprintln!(
            "{size} services: {} bytes in {} lines; one endpoint less sends {} bytes, {:.4} %",
            text.len(),
            text.lines().count(),
            sent.len(),
            100.0 * sent.len() as f64 / text.len() as f64
        );
        group.bench_function(BenchmarkId::new("plan and render", size), |b| {
            b.iter(|| black_box(planner(&cluster).input().to_string()));
        });
        group.bench_function(BenchmarkId::new("render", size), |b| {
            b.iter(|| black_box(plan.input().to_string()));
        });
        let mut turn = 1;
        group.bench_function(BenchmarkId::new("plan one endpoint's change", size), |b| {
            b.iter(|| {
                turn += 1;
                black_box(change(&mut plan, &mut cluster, turn))
            });
        });
        for back_end in BACK_ENDS {
            if back_end == "nft" && size > 1_000 && std::env::var_os("SLUICEGATE_BENCH_ALL").is_none() {
                continue;
            }
            let Some(namespace) = testns::Netns::new().filter(|_| testns::have(&["iptables-legacy-restore"]))
            else {
                continue;
            };
            group.bench_function(
                BenchmarkId::new(format!("iptables-{back_end}-restore of all"), size),
                |b| {
                    namespace.run(|| b.iter(|| restore(back_end, &text)));
                },
            );
            let name = format!("one endpoint's change by iptables-{back_end}-restore");
            group.bench_function(BenchmarkId::new(name, size), |b| {
                let mut plan = planner(&cluster);
                let mut turn = 0;
                namespace.run(|| {
                    restore(back_end, &plan.input().to_string());
                    b.iter(|| {
                        turn += 1;
                        // What a service has already is no change, and no input.
                        restore(back_end, &change(&mut plan, &mut cluster, turn));
                    });
                });
            });
        }
    }
    group.finish();
}

criterion_group!(benches, iptables_mode);
criterion_main!(benches);
