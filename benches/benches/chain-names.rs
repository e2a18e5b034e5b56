//! Names per second: this crate, compared with the few lines with `format!` that one would write without it.

#![allow(missing_docs, reason = "criterion's macros make functions without")]

use std::hint::black_box;
use std::net::{IpAddr, Ipv4Addr};
use std::num::NonZero;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use sha2::{Digest, Sha256};
use sluicegate_chain_names::{Endpoint, Protocol, ServicePort};

const PORT: NonZero<u16> = NonZero::new(8080).expect("not 0");
const SIZES: [u32; 4] = [10, 100, 1_000, 10_000];

fn services(count: u32) -> Vec<(String, String, Endpoint)> {
    (0..count)
        .map(|i| {
            let ip = IpAddr::V4(Ipv4Addr::from(0x0af4_0000 + i));
            (format!("namespace-{}", i % 100), format!("service-{i}"), Endpoint::new(ip, PORT))
        })
        .collect()
}

/// The four chains of a service port and the one of an endpoint.
fn iptables(c: &mut Criterion) {
    let mut group = c.benchmark_group("chain-names/iptables");
    for size in SIZES {
        let services = services(size);
        group.throughput(Throughput::Elements(u64::from(size) * 5));
        group.bench_function(BenchmarkId::new("sluicegate", size), |b| {
            b.iter(|| {
                for (namespace, name, endpoint) in &services {
                    let port =
                        ServicePort::new(namespace, name, "http", Protocol::Tcp).expect("a valid service");
                    let names = port.iptables();
                    black_box((names.service(), names.local(), names.external(), names.firewall()));
                    black_box(port.iptables_endpoint(endpoint));
                }
            });
        });
        group.bench_function(BenchmarkId::new("format", size), |b| {
            b.iter(|| {
                for (namespace, name, endpoint) in &services {
                    let text = format!("{namespace}/{name}:httptcp");
                    let hash = base32(&text, 16);
                    black_box(["SVC", "SVL", "EXT", "FW"].map(|kind| format!("KUBE-{kind}-{hash}")));
                    black_box(format!("KUBE-SEP-{}", base32(&format!("{text}{endpoint}"), 16)));
                }
            });
        });
    }
    group.finish();
}

/// The four chains of a service port, the chain and the set of an endpoint.
fn nftables(c: &mut Criterion) {
    let mut group = c.benchmark_group("chain-names/nftables");
    for size in SIZES {
        let services = services(size);
        group.throughput(Throughput::Elements(u64::from(size) * 6));
        group.bench_function(BenchmarkId::new("sluicegate", size), |b| {
            b.iter(|| {
                for (namespace, name, endpoint) in &services {
                    let port =
                        ServicePort::new(namespace, name, "http", Protocol::Tcp).expect("a valid service");
                    let names = port.nftables();
                    black_box((names.service(), names.local(), names.external(), names.firewall()));
                    let names = port.nftables_endpoint(endpoint);
                    black_box((names.chain(), names.affinity()));
                }
            });
        });
        group.bench_function(BenchmarkId::new("format", size), |b| {
            b.iter(|| {
                for (namespace, name, endpoint) in &services {
                    let text = format!("{namespace}/{name}/tcp/http");
                    let hash = base32(&text, 8);
                    black_box(
                        ["service", "local", "external", "firewall"]
                            .map(|kind| format!("{kind}-{hash}-{text}")),
                    );
                    let text = format!(
                        "{text}__{}/{}",
                        endpoint.ip().to_string().replace(':', "."),
                        endpoint.port()
                    );
                    let hash = base32(&text, 8);
                    black_box(["endpoint", "affinity"].map(|kind| format!("{kind}-{hash}-{text}")));
                }
            });
        });
    }
    group.finish();
}

fn base32(text: &str, length: usize) -> String {
    let mut hash = data_encoding::BASE32.encode(&Sha256::digest(text));
    hash.truncate(length);
    hash
}

criterion_group!(benches, iptables, nftables);
criterion_main!(benches);
