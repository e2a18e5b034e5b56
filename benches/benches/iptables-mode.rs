//! The iptables planner and the tool that loads its plan: planning and rendering n services of 5 endpoints
//! each, `iptables-restore` of that text by both back ends in a namespace, and the change of one endpoint,
//! planned and loaded. It first prints the size of a change of one endpoint as a part of the full text.
//!
//! `iptables-nft-restore` takes minutes for 5,000 services: it is omitted unless `SLUICEGATE_BENCH_ALL` is
//! set.
#![allow(missing_docs, reason = "criterion's macros make functions without")]

use std::hint::black_box;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use sluicegate_lab::{change_one, uniform_cluster};
use sluicegate_service_rules::iptables::{Feature, Planner, Settings, Support};
use sluicegate_services::{Cluster, DetectLocal, Family};

const SIZES: [u32; 2] = [1_000, 5_000];
const ENDPOINTS: u32 = 5;
const BACK_ENDS: [&str; 2] = ["legacy", "nft"];

fn cluster(services: u32) -> Cluster {
    let mut cluster = uniform_cluster(services, ENDPOINTS);
    cluster.take_changes();
    cluster
}

fn planner(cluster: &Cluster) -> Planner {
    let detect_local = DetectLocal::ClusterCidrs(vec!["10.0.0.0/8".parse().expect("a CIDR")]);
    let settings = Settings { detect_local, ..Settings::default() };
    let support = Support::without([Feature::Nfacct]);
    Planner::new(Family::Ipv4, &settings, support, cluster, None).expect("good settings")
}

/// Replaces an endpoint of one service by another, or back.
fn change(planner: &mut Planner, cluster: &mut Cluster) -> String {
    change_one(cluster, 500, ENDPOINTS);
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
        let sent = change(&mut plan, &mut cluster);
        eprintln!(
            "{size} services: {} bytes in {} lines; one endpoint replaced sends {} bytes, {:.4} %",
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
        group.bench_function(BenchmarkId::new("plan one endpoint's change", size), |b| {
            b.iter(|| black_box(change(&mut plan, &mut cluster)));
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
                namespace.run(|| {
                    restore(back_end, &plan.input().to_string());
                    b.iter(|| restore(back_end, &change(&mut plan, &mut cluster)));
                });
            });
        }
    }
    group.finish();
}

criterion_group!(benches, iptables_mode);
criterion_main!(benches);
