//! nftables at the sizes that hurt: 100,000 elements of one map, and 30,000 rules listed.
//!
//! Elements: values made, encoded, sent and committed, beside the kernel alone with the same bytes, and `nft -f` with the same text.
//! Rules: listed as typed expressions, beside a bare `recv` loop over the same dump, which is the kernel's own time. Both are timed by
//! the processor time of their thread, in which the kernel's part is included, so that what else runs here does not count.
//!
//! It runs in a network namespace of its own, and is left out with a word where none can be made.

#![allow(missing_docs, reason = "criterion_group makes a public function")]

use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use rustix::time::{ClockId, clock_gettime};
use sluicegate_netlink::message::{Flags, Messages, NLMSG_DONE};
use sluicegate_netlink::{
    Batch, Options, Protocol as NetlinkProtocol, Socket, Transport as _, Wait, exchange,
};
use sluicegate_nftables::lang::{Counter, Match, Payload, Verdict};
use sluicegate_nftables::*;

const ELEMENTS: [u32; 4] = [100, 1_000, 10_000, 100_000];
const RULES: [u32; 3] = [300, 3_000, 30_000];

fn name(name: &str) -> Name {
    Name::new(name).expect("a name of the bench")
}

fn table() -> TableId {
    TableId::new(Family::IP, name("scale"))
}

fn socket() -> Socket {
    Socket::open(NetlinkProtocol::NETFILTER, &Options::default()).expect("a socket in a namespace of ours")
}

/// A frontend's endpoint: `10.x.y.z . tcp . 80 . 0 : 10.x.y.z . 8080`.
fn element(number: u32) -> Element {
    let key = (Ipv4Addr::from(0x0a60_0000 + number), Protocol::TCP, Port(80), Number(0));
    Element::new(key).value((Ipv4Addr::from(0x0af4_0000 + number), Port(8080)))
}

/// An empty table with an empty map that has room for so many elements.
fn empty(count: u32) -> Transaction {
    let mut tx = Transaction::new();
    tx.add(Table::new(table())).delete(table()).add(Table::new(table()));
    let key = [DataType::IPV4_ADDR, DataType::INET_PROTO, DataType::INET_SERVICE, DataType::MARK];
    let data = [DataType::IPV4_ADDR, DataType::INET_SERVICE];
    tx.add(Set::map(table().map(name("m")), key, data).size(2 * count));
    tx
}

fn elements(count: u32) -> Transaction {
    let mut tx = Transaction::new();
    tx.add(Elements::new(&table().map(name("m")), (0..count).map(element)));
    tx
}

/// Sends what is encoded already: the kernel's own time.
fn send(socket: &mut Socket, batch: &Batch) {
    let mut last = Batch::starting_at(batch.next_sequence());
    drop(last.netfilter(10, 16, Flags::ACK, 0, 0));
    let report = exchange(socket, &[batch, &last], |_| Ok(())).expect("the kernel answers");
    assert!(report.errors.is_empty(), "{:?}", report.errors);
}

/// Times `load` alone, each time into an empty map.
fn timed(rounds: u64, count: u32, mut load: impl FnMut(&mut Socket)) -> Duration {
    let (mut socket, empty) = (socket(), empty(count));
    (0..rounds)
        .map(|_| {
            empty.apply(&mut socket).expect("a table of ours can be made anew");
            let start = Instant::now();
            load(&mut socket);
            start.elapsed()
        })
        .sum()
}

fn add_elements(c: &mut Criterion) {
    let mut group = c.benchmark_group("nftables elements");
    group.sample_size(10);
    let nft = testns::have(&["nft"]);
    for count in ELEMENTS {
        let tx = elements(count);
        group.throughput(Throughput::Elements(count.into()));
        group.bench_function(BenchmarkId::new("make", count), |b| b.iter(|| elements(count)));
        group.bench_function(BenchmarkId::new("encode", count), |b| {
            b.iter(|| tx.encode(ApplyOptions::default()).expect("it can be encoded"));
        });
        let batch = tx.encode(ApplyOptions::default()).expect("it can be encoded");
        group.bench_function(BenchmarkId::new("kernel alone", count), |b| {
            b.iter_custom(|rounds| timed(rounds, count, |socket| send(socket, &batch)));
        });
        group.bench_function(BenchmarkId::new("make, encode, send", count), |b| {
            b.iter_custom(|rounds| {
                timed(rounds, count, |socket| {
                    elements(count).apply(socket).expect("it can be applied");
                })
            });
        });
        if nft {
            let text = tx.to_string();
            group.bench_function(BenchmarkId::new("nft -f", count), |b| {
                b.iter_custom(|rounds| {
                    timed(rounds, count, |_| {
                        assert!(testns::feed(&["nft", "-f", "-"], &text).status.success());
                    })
                });
            });
        }
    }
    group.finish();
}

/// `ip saddr 10.x.y.z tcp dport 80 counter drop`, so many times.
fn rules(count: u32) -> Transaction {
    let chain = table().chain(name("c"));
    let mut tx = Transaction::new();
    tx.add(Table::new(table())).delete(table()).add(Table::new(table())).add(Chain::new(chain.clone()));
    for number in 0..count {
        let rule = chain.rule().then(Match::new(Payload::IP_SADDR, Ipv4Addr::from(0x0a60_0000 + number)));
        tx.add(
            rule.then(Match::new(Payload::TCP_DPORT, Port(80))).then(Counter::default()).then(Verdict::Drop),
        );
    }
    tx
}

/// Says how many times as long a listing takes as the kernel's dump alone: the fastest of rounds in turn, so that both meet the same
/// machine. A mere check of the bench leaves it out.
fn compare(socket: &mut Socket, count: u32) {
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let (mut alone, mut list) = (Duration::MAX, Duration::MAX);
    for _ in 0..15 {
        alone = alone.min(cpu_time(1, || receive_only(socket)));
        list =
            list.min(cpu_time(1, || read::rules(socket, Family::IP, Some("scale"), None).expect("a list")));
    }
    let ratio = list.as_secs_f64() / alone.as_secs_f64();
    println!("{count} rules: recv alone {alone:?}, list {list:?}: {ratio:.2} times");
}

/// The processor time of this thread, in user space and in the kernel, for so many rounds; not for dropping what they give.
fn cpu_time<T>(rounds: u64, mut work: impl FnMut() -> T) -> Duration {
    let now = || Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).expect("it is not negative");
    (0..rounds)
        .map(|_| {
            let start = now();
            let done = work();
            let took = now() - start;
            drop(done);
            took
        })
        .sum()
}

/// Reads a dump of rules to its end and looks at nothing but the headers. Returns how many there were.
fn receive_only(socket: &mut Socket) -> usize {
    let mut request = Batch::new();
    // NFT_MSG_GETRULE of NFNL_SUBSYS_NFTABLES, for one table (NFTA_RULE_TABLE).
    let mut message = request.netfilter(10, 7, Flags::DUMP, Family::IP.0, 0);
    message.put_str(1, "scale");
    drop(message);
    socket.send(request.bytes().expect("it is short")).expect("it can be sent");
    let (mut buffer, mut count) = (Vec::new(), 0);
    loop {
        assert!(socket.receive(&mut buffer, Wait::Answer).expect("a datagram"));
        for message in Messages::new(&buffer) {
            if message.expect("a message").header.kind == NLMSG_DONE {
                return count;
            }
            count += 1;
        }
    }
}

fn list_rules(c: &mut Criterion) {
    let mut group = c.benchmark_group("nftables rules");
    group.sample_size(20);
    for count in RULES {
        let mut socket = socket();
        rules(count).apply(&mut socket).expect("it can be applied");
        let expected = usize::try_from(count).expect("it fits");
        group.throughput(Throughput::Elements(count.into()));
        group.bench_function(BenchmarkId::new("recv alone", count), |b| {
            b.iter_custom(|rounds| cpu_time(rounds, || assert_eq!(receive_only(&mut socket), expected)));
        });
        group.bench_function(BenchmarkId::new("list", count), |b| {
            b.iter_custom(|rounds| {
                cpu_time(rounds, || {
                    let list = read::rules(&mut socket, Family::IP, Some("scale"), None).expect("a list");
                    assert_eq!(list.len(), expected);
                    list
                })
            });
        });
        compare(&mut socket, count);
        if testns::have(&["nft"]) {
            group.bench_function(BenchmarkId::new("nft list", count), |b| {
                b.iter(|| testns::sh("nft -n list table ip scale"));
            });
        }
    }
    group.finish();
}

fn in_a_namespace(_: &mut Criterion) {
    let Some(namespace) = testns::Netns::new() else { return };
    namespace.run(|| {
        // The one outside cannot come along to the thread that is in the namespace.
        let mut c = Criterion::default().configure_from_args();
        add_elements(&mut c);
        list_rules(&mut c);
    });
}

criterion_group!(benches, in_a_namespace);
criterion_main!(benches);
