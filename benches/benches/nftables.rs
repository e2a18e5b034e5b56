//! nftables: a table of n services with 5 endpoints each, in two maps: built, printed, encoded and applied;
//! compared with the time of the kernel for the same batch, and with `nft -f` for the same text.
//!
//! Benchmarks that need the kernel run in a network namespace, and are skipped with a message if none can be
//! created.

#![allow(missing_docs, reason = "criterion_group makes a public function")]

use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use benches::kernel::{send, socket};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use sluicegate_netlink::Socket;
use sluicegate_nftables::expr::MetaKey;
use sluicegate_nftables::lang::{Expression, Nat, Payload, Statement, Verdict, Vmap};
use sluicegate_nftables::*;

const SIZES: [u32; 4] = [10, 100, 1_000, 10_000];
const ENDPOINTS: u32 = 5;

fn name(name: &str) -> Name {
    Name::new(name).expect("a name of the bench")
}

fn table() -> TableId {
    TableId::new(Family::IP, name("bench"))
}

fn cluster_ip(service: u32) -> Ipv4Addr {
    Ipv4Addr::from(0x0a60_0000 + service)
}

fn endpoint_key(service: u32, index: u32) -> Key {
    Key::from((cluster_ip(service), Protocol::TCP, Port(80), Number(index)))
}

fn endpoint(service: u32, index: u32) -> Element {
    let address = Ipv4Addr::from(0x0af4_0000 + service * ENDPOINTS + index);
    Element::new(endpoint_key(service, index)).value((address, Port(8080)))
}

/// Returns the transaction that creates the table with this number of services.
fn services(count: u32) -> Transaction {
    let t = table();
    let (lb, services) = (t.chain(name("lb-5")), t.chain(name("services")));
    let (endpoints, frontends) = (t.map(name("endpoints")), t.map(name("frontends")));
    let frontend = [Payload::IP_DADDR.into(), MetaKey::L4PROTO.into(), Payload::TH_DPORT.into()];
    let mut key = frontend.to_vec();
    key.push(Expression::random(ENDPOINTS));
    let data = Expression::concat([Payload::IP_DADDR.into(), Payload::TH_DPORT.into()]);

    let mut tx = Transaction::new();
    tx.add(Table::new(t.clone())).add(Chain::new(lb.clone())).add(Chain::new(services.clone()));
    tx.add(
        Set::map(endpoints.clone(), Expression::Concat(key.clone()), data).size(2 * count * ENDPOINTS + 64),
    );
    let types = [DataType::IPV4_ADDR, DataType::INET_PROTO, DataType::INET_SERVICE];
    tx.add(Set::verdict_map(frontends.clone(), types).size(2 * count + 64));
    let to = Expression::Concat(key).map(&endpoints.name);
    tx.add(lb.rule().then(Statement::dnat(Nat::to_concat(Family::IP, to))));
    let all = (0..count).flat_map(|s| (0..ENDPOINTS).map(move |i| endpoint(s, i)));
    tx.add(Elements::new(&endpoints, all));
    let verdict = Verdict::Goto(lb.name.clone());
    let all =
        (0..count).map(|s| Element::new((cluster_ip(s), Protocol::TCP, Port(80))).verdict(verdict.clone()));
    tx.add(Elements::new(&frontends, all));
    tx.add(services.rule().then(Vmap::new(Expression::concat(frontend), &frontends.name)));
    tx.add(Chain::base(t.chain(name("entry")), ChainType::Nat, Hook::Prerouting, Priority::DSTNAT));
    tx.add(t.chain(name("entry")).rule().then(Verdict::Jump(services.name)));
    tx
}

/// Returns the transaction that replaces one endpoint.
fn change(service: u32) -> Transaction {
    let endpoints = table().map(name("endpoints"));
    let mut tx = Transaction::new();
    tx.delete_element(&endpoints, endpoint_key(service, 0));
    tx.add_element(&endpoints, endpoint(service, 0));
    tx
}

fn user_space(c: &mut Criterion) {
    let mut group = c.benchmark_group("nftables");
    for size in SIZES {
        let tx = services(size);
        group.throughput(Throughput::Elements(u64::from(size * (ENDPOINTS + 1))));
        group.bench_function(BenchmarkId::new("build", size), |b| b.iter(|| services(size)));
        group.bench_function(BenchmarkId::new("print", size), |b| b.iter(|| tx.to_string()));
        group.bench_function(BenchmarkId::new("encode", size), |b| {
            b.iter(|| tx.encode(ApplyOptions::default()).expect("it can be encoded"));
        });
    }
    group.finish();
}

fn remove(socket: &mut Socket) {
    let mut tx = Transaction::new();
    tx.add(Table::new(table())).delete(table());
    tx.apply(socket).expect("a table of ours can be deleted");
}

/// Measures `load`, each time without the table.
fn timed(rounds: u64, mut load: impl FnMut(&mut Socket)) -> Duration {
    let mut socket = socket();
    (0..rounds)
        .map(|_| {
            remove(&mut socket);
            let start = Instant::now();
            load(&mut socket);
            start.elapsed()
        })
        .sum()
}

fn kernel(c: &mut Criterion) {
    let Some(namespace) = testns::Netns::new() else { return };
    namespace.run_here(|| {
        let mut group = c.benchmark_group("nftables kernel");
        group.sample_size(10);
        let nft = testns::have(&["nft"]);
        for size in SIZES {
            let tx = services(size);
            let batch = tx.encode(ApplyOptions::default()).expect("it can be encoded");
            let text = tx.to_string();
            group.throughput(Throughput::Elements(u64::from(size * (ENDPOINTS + 1))));
            group.bench_function(BenchmarkId::new("kernel alone", size), |b| {
                b.iter_custom(|rounds| timed(rounds, |socket| send(socket, &batch)));
            });
            group.bench_function(BenchmarkId::new("build, encode, send", size), |b| {
                b.iter_custom(|rounds| {
                    timed(rounds, |socket| {
                        services(size).apply(socket).expect("it can be applied");
                    })
                });
            });
            if nft {
                group.bench_function(BenchmarkId::new("nft -f", size), |b| {
                    b.iter_custom(|rounds| {
                        timed(rounds, |_| assert!(testns::feed(&["nft", "-f", "-"], &text).status.success()))
                    });
                });
            }
            let mut socket = socket();
            group.throughput(Throughput::Elements(1));
            group.bench_function(BenchmarkId::new("change one endpoint", size), |b| {
                b.iter(|| change(size / 2).apply(&mut socket).expect("it can be changed"));
            });
            if nft {
                let text = change(size / 2).to_string();
                group.bench_function(BenchmarkId::new("change one endpoint, nft -f", size), |b| {
                    b.iter(|| assert!(testns::feed(&["nft", "-f", "-"], &text).status.success()));
                });
            }
            group.throughput(Throughput::Elements(u64::from(size * ENDPOINTS)));
            group.bench_function(BenchmarkId::new("read endpoints", size), |b| {
                b.iter(|| {
                    read::elements(
                        &mut socket,
                        &TableId::new(Family::IP, name("bench")).set(name("endpoints")),
                    )
                    .expect("it can be read")
                });
            });
        }
        group.finish();
    });
}

criterion_group!(benches, user_space, kernel);
criterion_main!(benches);
