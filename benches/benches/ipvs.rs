//! IPVS: making the bytes of commands, beside neli's own builders; reading and comparing tables; and, in a
//! guest kernel with IPVS, filling the kernel's table, beside `ipvsadm -R` and beside one send of bytes that
//! were made before.
//!
//! ```text
//! cargo bench -p benches --bench ipvs
//! cargo xtask bench ipvs --guest -- kernel      # needs a kernel of its own
//! ```

#![allow(missing_docs, reason = "criterion's macros make functions without")]

use std::hint::black_box;
use std::io::Cursor;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use neli::ToBytes;
use neli::consts::nl::NlmF;
use neli::genl::{AttrTypeBuilder, Genlmsghdr, GenlmsghdrBuilder, Nlattr, NlattrBuilder};
use neli::nl::{NlPayload, NlmsghdrBuilder};
use neli::types::{Buffer, GenlBuffer};
use netlink_sys::Socket as RawSocket;
use netlink_sys::protocols::NETLINK_GENERIC;
use rustix::net::sockopt;
use sluicegate_ipvs::netlink::{Error, NetlinkFamily, Options, Socket, Transport, Wait, generic};
use sluicegate_ipvs::{
    Client, Command, DestinationConfig, Endpoint, Forward, Scheduler, ServiceConfig, ServiceId, Table, diff,
    text,
};

const SIZES: [u16; 4] = [10, 100, 1_000, 10_000];
const DESTINATIONS: u8 = 5;
/// The number of the family where there is no kernel to ask.
const FAMILY: u16 = 0x1d;

/// So many services, each with five destinations.
fn commands(services: u16) -> Vec<Command> {
    let mut commands = Vec::new();
    for number in 0..services {
        let [high, low] = number.to_be_bytes();
        let id = ServiceId::tcp(Endpoint::new([10, 96, high, low], 80));
        commands.push(Command::AddService { id, config: ServiceConfig::new(Scheduler::RR) });
        for server in 1..=DESTINATIONS {
            let destination = Endpoint::new([10, 128 + server, high, low], 8080);
            let config = DestinationConfig::new(Forward::Masquerade);
            commands.push(Command::AddDestination { service: id, id: destination, config });
        }
    }
    commands
}

/// A kernel that agrees to everything at once, so that only the client's own work is measured.
#[derive(Default)]
struct Agreeable {
    answer: Vec<u8>,
    /// What was sent, if wanted.
    record: Option<Vec<u8>>,
}

impl Transport for Agreeable {
    fn send(&mut self, messages: &[u8]) -> Result<(), Error> {
        if let Some(record) = &mut self.record {
            record.extend_from_slice(messages);
        }
        let last = headers(messages).last().map_or(0, |at| at);
        self.answer.clear();
        if word(messages, last + 4) & 0xffff == u32::from(generic::GENL_ID_CTRL) {
            self.answer = generic::family_answer(word(messages, last + 8), FAMILY);
        } else {
            self.answer.extend([36, 0, 0, 0, 2, 0, 0, 0]);
            self.answer.extend_from_slice(&messages[last + 8..last + 12]);
            self.answer.extend([0; 24]);
        }
        Ok(())
    }

    fn receive(&mut self, buffer: &mut Vec<u8>, _: Wait) -> Result<bool, Error> {
        buffer.clear();
        buffer.append(&mut self.answer);
        Ok(!buffer.is_empty())
    }

    fn send_limit(&mut self, _: usize) -> usize {
        usize::MAX
    }
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

/// Where the messages begin.
fn headers(messages: &[u8]) -> impl Iterator<Item = usize> {
    let first = (!messages.is_empty()).then_some(0);
    std::iter::successors(first, |at| {
        let next = at + word(messages, *at) as usize;
        (next < messages.len()).then_some(next)
    })
}

fn attribute(kind: u16, payload: &[u8]) -> Nlattr<u16, Buffer> {
    let kind = AttrTypeBuilder::default().nla_type(kind).build().expect("a type");
    NlattrBuilder::default().nla_type(kind).nla_payload(Buffer::from(payload)).build().expect("an attribute")
}

fn nest(kind: u16, inside: &[Nlattr<u16, Buffer>]) -> Nlattr<u16, Buffer> {
    inside.iter().fold(attribute(kind, &[]), |outer, inner| outer.nest(inner).expect("room"))
}

fn address(address: IpAddr) -> [u8; 16] {
    let mut bytes = [0; 16];
    match address {
        IpAddr::V4(address) => bytes[..4].copy_from_slice(&address.octets()),
        IpAddr::V6(address) => bytes = address.octets(),
    }
    bytes
}

/// The same message by neli's builders, as far as this benchmark needs it.
fn by_neli(buffer: &mut Cursor<Vec<u8>>, command: &Command, sequence: u32, ack: bool) {
    let service = |id: &ServiceId, more: Vec<Nlattr<u16, Buffer>>| {
        let ServiceId::Virtual { protocol, endpoint } = id else { unreachable!("not in this benchmark") };
        let mut inside = vec![
            attribute(1, &2u16.to_ne_bytes()),
            attribute(2, &u16::from(protocol.0).to_ne_bytes()),
            attribute(3, &address(endpoint.address)),
            attribute(4, &endpoint.port.to_be_bytes()),
        ];
        inside.extend(more);
        nest(1, &inside)
    };
    let (cmd, attributes) = match command {
        Command::AddService { id, config } => {
            let name = [config.scheduler.as_str().as_bytes(), &[0]].concat();
            let more = vec![
                attribute(6, &name),
                attribute(7, &[0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff]),
                attribute(8, &[0; 4]),
                attribute(9, &[0xff; 4]),
            ];
            (1u8, vec![service(id, more)])
        }
        Command::AddDestination { service: id, id: destination, config } => {
            let inside = [
                attribute(11, &2u16.to_ne_bytes()),
                attribute(1, &address(destination.address)),
                attribute(2, &destination.port.to_be_bytes()),
                attribute(3, &0u32.to_ne_bytes()),
                attribute(4, &config.weight.to_ne_bytes()),
                attribute(5, &config.upper_threshold.to_ne_bytes()),
                attribute(6, &config.lower_threshold.to_ne_bytes()),
            ];
            (5u8, vec![service(id, Vec::new()), nest(2, &inside)])
        }
        other => unreachable!("not in this benchmark: {other}"),
    };
    let attributes: GenlBuffer<u16, Buffer> = attributes.into_iter().collect();
    let genl: Genlmsghdr<u8, u16> =
        GenlmsghdrBuilder::default().cmd(cmd).version(1).attrs(attributes).build().expect("a message");
    let flags = if ack { NlmF::REQUEST | NlmF::ACK } else { NlmF::REQUEST };
    let message = NlmsghdrBuilder::default()
        .nl_type(FAMILY)
        .nl_flags(flags)
        .nl_seq(sequence)
        .nl_payload(NlPayload::Payload(genl))
        .build()
        .expect("a message");
    message.to_bytes(buffer).expect("room");
}

/// All commands as a client would send them.
fn all_by_neli(commands: &[Command]) -> Vec<u8> {
    let mut buffer = Cursor::new(Vec::new());
    for (at, command) in commands.iter().enumerate() {
        let ack = (at + 1) % 128 == 0 || at + 1 == commands.len();
        by_neli(&mut buffer, command, u32::try_from(at + 2).expect("few"), ack);
    }
    buffer.into_inner()
}

fn recorded(commands: &[Command]) -> Vec<u8> {
    let transport = Agreeable { record: Some(Vec::new()), ..Agreeable::default() };
    let mut client = Client::with_transport(transport).expect("it agrees");
    let start = client.transport().record.as_ref().map_or(0, Vec::len);
    client.run_all(commands).expect("it agrees");
    client.transport().record.as_ref().expect("wanted")[start..].to_vec()
}

fn encode(c: &mut Criterion) {
    let sample = commands(100);
    assert_eq!(recorded(&sample), all_by_neli(&sample), "both make the same bytes");
    let messages = sample.len() as u64;
    let mut client = Client::with_transport(Agreeable::default()).expect("it agrees");
    let ours = allocation_counter::measure(|| client.run_all(&sample).expect("it agrees"));
    let theirs = allocation_counter::measure(|| drop(black_box(all_by_neli(&sample))));
    println!(
        "ipvs/encode: allocations for {messages} messages: sluicegate {}, neli's builders {} ({} a message)",
        ours.count_total,
        theirs.count_total,
        theirs.count_total / messages
    );

    let mut group = c.benchmark_group("ipvs/encode");
    for size in SIZES {
        let commands = commands(size);
        group.throughput(Throughput::Elements(commands.len() as u64));
        let mut client = Client::with_transport(Agreeable::default()).expect("it agrees");
        group.bench_function(BenchmarkId::new("sluicegate", size), |b| {
            b.iter(|| client.run_all(black_box(&commands)).expect("it agrees"));
        });
        group
            .bench_function(BenchmarkId::new("neli", size), |b| b.iter(|| all_by_neli(black_box(&commands))));
    }
    group.finish();
}

fn text_form(c: &mut Criterion) {
    let mut group = c.benchmark_group("ipvs/text");
    for size in SIZES {
        let commands = commands(size);
        let saved: String = commands.iter().map(|command| format!("{command}\n")).collect();
        group.throughput(Throughput::Elements(commands.len() as u64));
        group.bench_function(BenchmarkId::new("parse", size), |b| b.iter(|| text::parse(black_box(&saved))));
        group.bench_function(BenchmarkId::new("print", size), |b| {
            b.iter(|| commands.iter().fold(String::new(), |text, command| text + &format!("{command}\n")));
        });
    }
    group.finish();
}

fn table(commands: &[Command]) -> Table {
    let mut table = Table::new();
    for command in commands {
        match command {
            Command::AddService { id, config } => {
                table.service(*id, *config);
            }
            Command::AddDestination { service, id, config } => {
                table.service(*service, ServiceConfig::new(Scheduler::RR)).destination(*id, *config);
            }
            other => unreachable!("not in this benchmark: {other}"),
        }
    }
    table
}

/// One destination changed among all.
fn comparison(c: &mut Criterion) {
    let mut group = c.benchmark_group("ipvs/plan");
    for size in SIZES {
        let commands = commands(size);
        let actual = table(&commands);
        let mut desired = actual.clone();
        if let Some(Command::AddDestination { service, id, config }) = commands.last() {
            desired.service(*service, ServiceConfig::new(Scheduler::RR)).destination(*id, config.weight(7));
        }
        assert_eq!(diff(&desired, &actual).len(), 1);
        group.throughput(Throughput::Elements(commands.len() as u64));
        group.bench_function(BenchmarkId::new("one change", size), |b| {
            b.iter(|| diff(black_box(&desired), black_box(&actual)));
        });
    }
    group.finish();
}

/// Filling the empty table of a guest's kernel, and listing it.
fn kernel(c: &mut Criterion) {
    if testns::guest().is_none() {
        println!("ipvs/kernel: only in a guest kernel, see the head of benches/benches/ipvs.rs");
        return;
    }
    let mut group = c.benchmark_group("ipvs/kernel");
    group.sample_size(10).warm_up_time(Duration::from_millis(1)).measurement_time(Duration::from_secs(1));
    for size in [10, 100, 1_000] {
        let commands = commands(size);
        group.throughput(Throughput::Elements(commands.len() as u64));
        let mut client = Client::open().expect("a guest with IPVS");
        let mut flush = Client::open().expect("a guest with IPVS");
        let mut measure = |run: &mut dyn FnMut(), rounds: u64| {
            let mut total = Duration::ZERO;
            for _ in 0..rounds {
                flush.run(&Command::Flush).expect("a flush");
                // The kernel frees what was flushed later, and must not do so in our time.
                std::thread::sleep(Duration::from_millis(500));
                let start = Instant::now();
                run();
                total += start.elapsed();
            }
            assert_eq!(flush.services().expect("a list").len(), usize::from(size));
            total
        };
        group.bench_function(BenchmarkId::new("sluicegate", size), |b| {
            b.iter_custom(|rounds| measure(&mut || client.run_all(&commands).expect("all"), rounds));
        });
        let raw = Raw::new(&commands);
        group.bench_function(BenchmarkId::new("raw, one send", size), |b| {
            b.iter_custom(|rounds| measure(&mut || raw.send(), rounds));
        });
        let saved: String = commands.iter().map(|command| format!("{command}\n")).collect();
        group.bench_function(BenchmarkId::new("ipvsadm -R", size), |b| {
            let mut restore = || assert!(testns::feed(&["ipvsadm", "-R"], &saved).status.success());
            b.iter_custom(|rounds| measure(&mut restore, rounds));
        });
        measure(&mut || client.run_all(&commands).expect("all"), 1);
        group.bench_function(BenchmarkId::new("list, sluicegate", size), |b| {
            b.iter(|| client.list(|_| true).expect("a list"));
        });
        group.bench_function(BenchmarkId::new("list, ipvsadm -S -n", size), |b| {
            b.iter(|| testns::sh("ipvsadm -S -n"));
        });
    }
    group.finish();
}

/// Bytes that were made before, for one send with one acknowledgement at its end.
struct Raw {
    bytes: Vec<u8>,
    socket: RawSocket,
}

impl Raw {
    fn new(commands: &[Command]) -> Self {
        let mut bytes = recorded(commands);
        let family = family();
        let starts: Vec<_> = headers(&bytes).collect();
        let ack = NlmF::ACK.bits();
        for (number, at) in starts.iter().enumerate() {
            bytes[at + 4..at + 6].copy_from_slice(&family);
            let flags = u16::from_ne_bytes([bytes[at + 6], bytes[at + 7]]) & !ack;
            let flags = if number + 1 == starts.len() { flags | ack } else { flags };
            bytes[at + 6..at + 8].copy_from_slice(&flags.to_ne_bytes());
        }
        let mut socket = RawSocket::new(NETLINK_GENERIC).expect("a socket");
        socket.bind_auto().expect("an address");
        // More than a megabyte in one send needs more than the default.
        sockopt::set_socket_send_buffer_size_force(&socket, bytes.len() + 4096)
            .expect("the guest's root may");
        Self { bytes, socket }
    }

    fn send(&self) {
        self.socket.send(&self.bytes, 0).expect("a send");
        let (answer, _) = self.socket.recv_from_full().expect("an acknowledgement");
        assert_eq!((answer.len(), word(&answer, 16)), (36, 0));
    }
}

/// The number of the family IPVS in this kernel.
fn family() -> [u8; 2] {
    let mut socket = Socket::open(NetlinkFamily::GENERIC, &Options::default()).expect("a socket");
    generic::family(&mut socket, "IPVS").expect("a guest with IPVS").to_ne_bytes()
}

criterion_group!(benches, encode, text_form, comparison, kernel);
criterion_main!(benches);
