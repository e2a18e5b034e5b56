//! nftables at the sizes that hurt: 100,000 elements of one map, and 30,000 rules listed.
//!
//! Elements: values made, encoded, sent and committed, beside the kernel alone with the same bytes, and `nft
//! -f` with the same text. Rules: listed as low-level expressions, beside a bare `recv` loop over the same
//! dump, which is the kernel's own time. `decode` is the same without the kernel, from datagrams that were
//! kept; `content` and `print` are what comes behind it, the typed language and its text. Both kinds: read,
//! typed and printed, beside `nft -s list`. Following: an element more in a copy of the ruleset that hears of
//! it, beside reading the ruleset again.
//!
//! A line `... times (... to ...)` compares two things that are run in turn, by processor time, the kernel's
//! part included, so that what else runs here counts little.
//!
//! It runs in a network namespace of its own, and is left out with a word where none can be made.

#![allow(missing_docs, reason = "criterion_group makes a public function")]

use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use benches::kernel::{send, socket};
use benches::timing::{compare, cpu_time, cpu_time_of_rounds, time_of_tool};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use sluicegate_netlink::message::{Flags, Messages, NLMSG_DONE};
use sluicegate_netlink::{Batch, Error, Socket, Transport, Wait};
use sluicegate_nftables::lang::{Counter, Match, Payload, Verdict};
use sluicegate_nftables::monitor::{Follower, GROUP, Monitor};
use sluicegate_nftables::*;

const ELEMENTS: [u32; 4] = [100, 1_000, 10_000, 100_000];
const RULES: [u32; 3] = [300, 3_000, 30_000];
/// The number from which on the time of a tool is compared: the shell measures it in hundredths of a second.
const FEWEST: u32 = 3_000;

fn name(name: &str) -> Name {
    Name::new(name).expect("a name of the bench")
}

fn table() -> TableId {
    TableId::new(Family::IP, name("scale"))
}

/// A frontend's endpoint: `10.x.y.z . tcp . 80 . 0 : 10.x.y.z . 8080`.
fn element(number: u32) -> Element {
    let key = (Ipv4Addr::from(0x0a60_0000 + number), Protocol::TCP, Port(80), Number(0));
    Element::new(key).value((Ipv4Addr::from(0x0af4_0000 + number), Port(8080)))
}

/// Returns the transaction that creates the table with an empty map for this number of elements.
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

/// Measures `load`, each time with an empty map.
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
        let mut socket = socket();
        let empty = empty(count);
        let mut load = || {
            empty.apply(&mut socket).expect("a table of ours can be made anew");
            cpu_time(|| elements(count).apply(&mut socket).expect("it can be applied"))
        };
        let mut other = benches::kernel::socket();
        let alone = || {
            empty.apply(&mut other).expect("a table of ours can be made anew");
            cpu_time(|| send(&mut other, &batch))
        };
        compare(15, &format!("{count} elements made, encoded, sent"), "the kernel alone", &mut load, alone);
        if nft {
            let text = tx.to_string();
            let tool = || {
                empty.apply(&mut other).expect("a table of ours can be made anew");
                time_of_tool("nft -f -", &text)
            };
            if count >= FEWEST {
                compare(5, &format!("{count} elements made, encoded, sent"), "nft -f", &mut load, tool);
                compare_listing(&mut socket, &format!("{count} elements"));
            }
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

/// Returns a transaction with this number of rules `ip saddr 10.x.y.z tcp dport 80 counter drop`.
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

/// A recorded dump, which is read again without the kernel.
struct Kept {
    datagrams: Vec<Vec<u8>>,
    next: usize,
}

impl Kept {
    /// The rules of the table.
    fn rules(socket: &mut Socket) -> Self {
        let mut datagrams = Vec::new();
        receive(socket, |datagram| datagrams.push(datagram.to_vec()));
        Self { datagrams, next: 0 }
    }
}

impl Transport for Kept {
    fn send(&mut self, _: &[u8]) -> Result<(), Error> {
        self.next = 0;
        Ok(())
    }

    fn receive(&mut self, buffer: &mut Vec<u8>, wait: Wait) -> Result<bool, Error> {
        let found = self.datagrams.get(self.next).filter(|_| wait == Wait::Answer);
        if let Some(datagram) = found {
            buffer.clear();
            buffer.extend_from_slice(datagram);
            self.next += 1;
        }
        Ok(found.is_some())
    }

    fn send_limit(&mut self, size: usize) -> usize {
        size
    }
}

/// Reads a dump of rules to its end, only the headers. Returns the number of rules.
fn receive_only(socket: &mut Socket) -> usize {
    receive(socket, |_| ())
}

fn receive(socket: &mut Socket, mut on_datagram: impl FnMut(&[u8])) -> usize {
    let mut request = Batch::new();
    // NFT_MSG_GETRULE of NFNL_SUBSYS_NFTABLES, for one table (NFTA_RULE_TABLE).
    let mut message = request.netfilter(10, 7, Flags::DUMP, Family::IP.0, 0);
    message.put_str(1, "scale");
    drop(message);
    socket.send(request.bytes().expect("it is short")).expect("it can be sent");
    let (mut buffer, mut count) = (Vec::new(), 0);
    loop {
        assert!(socket.receive(&mut buffer, Wait::Answer).expect("a datagram"));
        on_datagram(&buffer);
        for message in Messages::new(&buffer) {
            if message.expect("a message").header.kind == NLMSG_DONE {
                return count;
            }
            count += 1;
        }
    }
}

/// Reads the ruleset, converts it to the typed language and prints it; compared with nft, which prints the
/// same.
fn compare_listing(socket: &mut Socket, what: &str) {
    let print = || {
        cpu_time(|| {
            let held = read::ruleset(socket, table()).expect("a ruleset");
            held.content().iter().map(|table| table.to_string().len()).sum::<usize>()
        })
    };
    let tool = || time_of_tool("nft -s list table ip scale", "");
    compare(5, &format!("{what} read, typed, printed"), "nft -s list", print, tool);
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
            b.iter_custom(|rounds| {
                cpu_time_of_rounds(rounds, || assert_eq!(receive_only(&mut socket), expected))
            });
        });
        group.bench_function(BenchmarkId::new("list", count), |b| {
            b.iter_custom(|rounds| {
                cpu_time_of_rounds(rounds, || {
                    let list = read::rules(&mut socket, table()).expect("a list");
                    assert_eq!(list.len(), expected);
                    list
                })
            });
        });
        let mut other = benches::kernel::socket();
        let list = || cpu_time(|| read::rules(&mut socket, table()).expect("a list"));
        compare(15, &format!("{count} rules listed"), "recv alone", list, || {
            cpu_time(|| receive_only(&mut other))
        });
        let mut kept = Kept::rules(&mut socket);
        group.bench_function(BenchmarkId::new("decode", count), |b| {
            b.iter_custom(|rounds| {
                cpu_time_of_rounds(rounds, || read::rules(&mut kept, Family::IP).expect("a list"))
            });
        });
        let held = read::ruleset(&mut socket, table()).expect("a ruleset");
        group.bench_function(BenchmarkId::new("content", count), |b| {
            b.iter_custom(|rounds| cpu_time_of_rounds(rounds, || held.content()));
        });
        let content = held.content().remove(0);
        group.bench_function(BenchmarkId::new("print", count), |b| {
            b.iter_custom(|rounds| cpu_time_of_rounds(rounds, || content.to_string()));
        });
        if count >= FEWEST && testns::have(&["nft"]) {
            compare_listing(&mut socket, &format!("{count} rules"));
        }
    }
    group.finish();
}

/// Measures the update of a copy of the ruleset after one more element, compared with reading the ruleset
/// again.
fn follow(c: &mut Criterion) {
    let mut group = c.benchmark_group("nftables following");
    for count in [10, 100, 1_000, 10_000] {
        let (mut writer, mut reader, mut listener) = (socket(), socket(), socket());
        empty(count).apply(&mut writer).expect("it can be applied");
        elements(count).apply(&mut writer).expect("it can be applied");
        listener.join(GROUP).expect("the group of events");
        let mut monitor = Monitor::with_transport(listener);
        let mut copy = Follower::read(&mut reader, Family::UNSPEC).expect("a ruleset");
        let set = table().map(name("m"));
        let (mut more, mut less) = (Transaction::new(), Transaction::new());
        more.add_element(&set, element(count));
        less.delete_element(&set, element(count));
        let mut one = || {
            more.apply(&mut writer).expect("it can be applied");
            less.apply(&mut writer).expect("it can be applied");
            let took = cpu_time(|| {
                let mut commits = 0;
                while commits < 2 {
                    for event in monitor.events().expect("events") {
                        commits += usize::from(copy.apply(event).expect("the copy follows").is_some());
                    }
                }
            });
            took / 2
        };
        let mut again = || cpu_time(|| read::ruleset(&mut reader, Family::UNSPEC).expect("a ruleset"));
        group.bench_function(BenchmarkId::new("a commit of one", count), |b| {
            b.iter_custom(|rounds| (0..rounds).map(|_| one()).sum());
        });
        group.bench_function(BenchmarkId::new("read again", count), |b| {
            b.iter_custom(|rounds| (0..rounds).map(|_| again()).sum());
        });
        compare(15, &format!("one element more than {count} followed"), "read again", one, again);
    }
    group.finish();
}

fn in_a_namespace(c: &mut Criterion) {
    let Some(namespace) = testns::Netns::new() else { return };
    namespace.run_here(|| {
        add_elements(c);
        list_rules(c);
        follow(c);
    });
}

criterion_group!(benches, in_a_namespace);
criterion_main!(benches);
