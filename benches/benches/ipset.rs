//! Filling a `hash:ip,port`: our client, from typed entries and from text, compared with `ipset restore` and
//! the kernel alone.
//!
//!     cargo bench -p benches --bench ipset
//!
//! `kernel` sends what the client would send, encoded beforehand: nobody can be faster. All sets are sized
//! beforehand alike, so that the hash does not grow while it is filled. Needs root or a user namespace; works
//! in a network namespace of its own.

use std::hint::black_box;
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, Throughput};
use sluicegate_ipset::text::{self, Command};
use sluicegate_ipset::{
    Client, CreateOptions, Element, Entry, Exist, Family, Numeric, Port, SetName, SetSpec, SetType,
};
use sluicegate_netlink::{
    Batch, NetlinkFamily, Options, Socket, Transport, Wait, message::Messages, scripted,
};

fn main() {
    // Criterion does not move between threads, and the namespace belongs to one.
    testns::netns(|| {
        let mut criterion = Criterion::default().configure_from_args();
        for count in [10, 100, 1_000, 10_000, 100_000] {
            fill(&mut criterion, count);
        }
        criterion.final_summary();
    });
}

fn fill(criterion: &mut Criterion, count: u32) {
    let spec = spec(count);
    let entries = entries(count);
    let text = restore_file(&entries);
    let datagrams = encoded(&entries);
    let mut group = criterion.benchmark_group("ipset/add hash:ip,port");
    group.sample_size(10).throughput(Throughput::Elements(count.into()));
    if count > 10_000 {
        group.measurement_time(Duration::from_secs(8));
    }
    group.bench_function(BenchmarkId::new("encoding alone", count), |bencher| {
        bencher.iter(|| encoded(black_box(&entries)));
    });
    group.bench_function(BenchmarkId::new("reading alone", count), |bencher| {
        bencher.iter(|| parsed(black_box(&text)));
    });
    let mut client = Client::open().expect("a socket");
    let mut raw = Socket::open(NetlinkFamily::NETFILTER, &Options::default()).expect("a socket");
    let mut buffer = Vec::new();
    group.bench_function(BenchmarkId::new("kernel", count), |bencher| {
        bencher.iter_custom(|times| {
            timed(times, &mut client, &spec, |_| {
                for (datagram, messages) in &datagrams {
                    raw.send(datagram).expect("sent");
                    for _ in 0..*messages {
                        assert!(raw.receive(&mut buffer, Wait::Answer).expect("an answer"));
                    }
                }
            })
        });
    });
    group.bench_function(BenchmarkId::new("client", count), |bencher| {
        bencher.iter_custom(|times| {
            timed(times, &mut client, &spec, |client| {
                client.add(spec.name(), black_box(&entries), Exist::Fail).expect("added");
            })
        });
    });
    group.bench_function(BenchmarkId::new("client from text", count), |bencher| {
        bencher.iter_custom(|times| {
            timed(times, &mut client, &spec, |client| {
                let entries = parsed(black_box(&text));
                client.add(spec.name(), &entries, Exist::Fail).expect("added");
            })
        });
    });
    if testns::have(&["ipset"]) {
        group.bench_function(BenchmarkId::new("ipset restore", count), |bencher| {
            bencher.iter_custom(|times| {
                timed(times, &mut client, &spec, |_| {
                    let output = testns::feed(&["ipset", "restore"], &text);
                    assert!(output.status.success());
                })
            });
        });
    }
    group.finish();
    client.destroy(spec.name(), Exist::Ignore).expect("destroyed");
}

/// Returns the time that `add` takes on an empty set, `times` times, without the creation of the set.
fn timed(times: u64, client: &mut Client, spec: &SetSpec, mut add: impl FnMut(&mut Client)) -> Duration {
    let mut total = Duration::ZERO;
    for _ in 0..times {
        client.destroy(spec.name(), Exist::Ignore).expect("destroyed");
        client.create(spec, Exist::Fail).expect("created");
        let start = Instant::now();
        add(client);
        total += start.elapsed();
    }
    total
}

fn spec(count: u32) -> SetSpec {
    let name = SetName::new("bench").expect("a name");
    SetSpec::new(name, SetType::HashIpPort, Family::Ipv4, CreateOptions::default())
        .expect("a specification")
        .sized_for(usize::try_from(count).expect("a small number"))
}

fn entries(count: u32) -> Vec<Entry> {
    (0..count)
        .map(|n| {
            let address = Ipv4Addr::from(0x0a00_0000 + n / 4);
            let port = Port::tcp(80 + u16::try_from(n % 4).expect("under four"));
            Entry::new(SetType::HashIpPort, Family::Ipv4, Element::IpPort(address.into(), port))
                .expect("an entry")
        })
        .collect()
}

fn restore_file(entries: &[Entry]) -> String {
    entries.iter().map(|entry| format!("add bench {entry}\n")).collect()
}

fn parsed(text: &str) -> Vec<Entry> {
    let lines =
        text::parse(text, &Numeric, |_| Some((SetType::HashIpPort, Family::Ipv4))).expect("a restore file");
    lines
        .into_iter()
        .map(|line| match line.command {
            Command::Add(_, entry) => entry,
            other => panic!("{other}"),
        })
        .collect()
}

/// Returns the datagrams that the client sends for the entries, each with its number of messages.
fn encoded(entries: &[Entry]) -> Vec<(Vec<u8>, usize)> {
    let mut client = Client::with_transport(Recorder::default());
    client.add(SetName::new("bench").expect("a name"), entries, Exist::Fail).expect("recorded");
    let datagrams = client.into_transport().sent;
    datagrams
        .into_iter()
        // The first requests the protocol version.
        .skip(1)
        .map(|datagram| {
            let messages = Messages::new(&datagram).count();
            (datagram, messages)
        })
        .collect()
}

/// A kernel that agrees to everything.
#[derive(Default)]
struct Recorder {
    sent: Vec<Vec<u8>>,
    answers: std::collections::VecDeque<Vec<u8>>,
}

impl Transport for Recorder {
    fn send(&mut self, datagram: &[u8]) -> Result<(), sluicegate_netlink::Error> {
        for message in Messages::new(datagram) {
            let header = message?.header;
            if header.kind & 0xff == 1 {
                let mut batch = Batch::starting_at(header.sequence);
                // IPSET_CMD_PROTOCOL: versions 6 to 7.
                let mut answer = batch.netfilter(6, 1, sluicegate_netlink::message::Flags::empty(), 2, 0);
                answer.put_u8(1, 7);
                answer.put_u8(10, 6);
                drop(answer);
                self.answers.push_back(batch.bytes()?.to_vec());
            }
            self.answers.push_back(scripted::ack(header.sequence));
        }
        self.sent.push(datagram.to_vec());
        Ok(())
    }

    fn receive(&mut self, buffer: &mut Vec<u8>, _: Wait) -> Result<bool, sluicegate_netlink::Error> {
        buffer.clear();
        let answer = self.answers.pop_front();
        buffer.extend(answer.iter().flatten());
        Ok(answer.is_some())
    }

    fn send_limit(&mut self, size: usize) -> usize {
        size
    }
}
