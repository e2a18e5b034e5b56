//! nft's language: text to the kernel, beside `nft -f` with the same text.
//!
//! Services: 10 to 10,000, in maps of addresses (elements, and two rules for all services) and in chains (one
//! for each service and each endpoint). `parse` is the text alone, in bytes a second; `parse, encode,
//! send` is what `nft -f` does; `kernel alone` sends bytes that are encoded already, which no program can
//! undercut.
//!
//! Parsing alone: lists of addresses, maps and rules, of 1, 10 and 100 MB. A line `grows` compares the time
//! for a byte with that in the smallest text: 1.00 is linear. A line `bytes of memory a byte of text` gives
//! what parsing needs at its peak, the result included.
//!
//! A line `... times (... to ...)` compares two things that are run in turn, by processor time, the
//! kernel's part included: `0.10 times` is ten times faster.
//!
//! It runs in a network namespace of its own, and says so where none can be made.

#![allow(missing_docs, reason = "criterion_group makes a public function")]

use std::fmt::Write as _;
use std::net::Ipv4Addr;

use benches::kernel::{send, socket};
use benches::timing::{compare, cpu_time, is_measuring, time_of_tool};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use sluicegate_nftables::{ApplyOptions, Transaction};

const SERVICES: [u32; 4] = [10, 100, 1_000, 10_000];
/// Bytes of the texts that are only parsed.
const SIZES: [usize; 3] = [1_000_000, 10_000_000, 100_000_000];
/// Lines from which the length of one is taken.
const SAMPLE: u32 = 1_000;
/// From so many services on, a tool's time is compared: the shell tells it in hundredths of a second.
const FEWEST: u32 = 1_000;

fn service(number: u32) -> Ipv4Addr {
    Ipv4Addr::from(0x0a60_0000 + number)
}

fn endpoint(number: u32) -> Ipv4Addr {
    Ipv4Addr::from(0x0af4_0000 + number)
}

/// Services in a map of verdicts, each with a chain, and endpoints in a map of addresses.
fn maps(count: u32) -> String {
    let mut text =
        "add table ip services\ndelete table ip services\ntable ip services {\n\tmap endpoints {\n\
        \t\ttype ipv4_addr . \
                    inet_proto . inet_service . mark : ipv4_addr . inet_service\n\t\telements = {\n"
            .to_owned();
    for number in 0..count {
        for slot in 0..2 {
            let to = endpoint(2 * number + slot);
            let _ = writeln!(text, "\t\t\t{} . tcp . 80 . {slot} : {to} . 8080,", service(number));
        }
    }
    text += "\t\t}\n\t}\n\tmap numbers {\n\t\ttype ipv4_addr . inet_proto . inet_service : mark\n\
        \t\telements = {\n";
    for number in 0..count {
        let _ = writeln!(text, "\t\t\t{} . tcp . 80 : 2,", service(number));
    }
    text += "\t\t}\n\t}\n\tchain prerouting {\n\t\ttype nat hook prerouting priority dstnat; policy accept;\n\
        \t\tmeta mark set ip daddr . \
             meta l4proto . th dport map @numbers\n\
             \t\tdnat ip to ip daddr . meta l4proto . th dport . meta mark map @endpoints\n\t}\n}\n";
    text
}

/// Services in chains, as a proxier writes them: a chain each, and one for each endpoint.
fn chains(count: u32) -> String {
    let mut text = "add table ip services\ndelete table ip services\nadd table ip services\n\
        add map ip services service-ips { type ipv4_addr . \
                    inet_proto . inet_service : verdict ; }\n"
        .to_owned();
    for number in 0..count {
        for slot in 0..2 {
            let (chain, to) = (format!("endpoint-{number}-{slot}"), endpoint(2 * number + slot));
            let _ = write!(
                text,
                "add chain ip services {chain}\n\
                    add rule ip services {chain} ip saddr {to} meta mark set meta mark or 0x4000\n\
                 add rule ip services {chain} meta l4proto tcp dnat to {to}:8080\n"
            );
        }
        let _ = write!(
            text,
            "add chain ip services service-{number}\n\
                add rule ip services service-{number} numgen random mod 2 vmap {{ 0 : goto \
             endpoint-{number}-0 , 1 : goto endpoint-{number}-1 }}\n\
             add element ip services service-ips {{ {} . tcp . 80 : goto \
             service-{number} }}\n",
            service(number)
        );
    }
    text
}

fn addresses(count: u32) -> String {
    list("set s {\n\t\ttype ipv4_addr", count, |number| service(number).to_string())
}

fn endpoints(count: u32) -> String {
    let head = "map m {\n\t\ttype ipv4_addr . inet_proto . inet_service . mark : ipv4_addr . inet_service";
    list(head, count, |number| {
        format!("{} . tcp . 80 . {} : {} . 8080", service(number / 2), number % 2, endpoint(number))
    })
}

/// A set or map with its elements, as nft lists them.
fn list(head: &str, count: u32, element: impl Fn(u32) -> String) -> String {
    let list: Vec<_> = (0..count).map(element).collect();
    format!("table ip t {{\n\t{head}\n\t\telements = {{ {} }}\n\t}}\n}}\n", list.join(",\n\t\t\t"))
}

fn rules(count: u32) -> String {
    let mut text = "table ip t {\n\tchain c {\n".to_owned();
    for number in 0..count {
        let (from, port) = (service(number), number % 65536);
        let _ = writeln!(text, "\t\tip saddr {from} tcp dport {port} counter accept");
    }
    text + "\t}\n}\n"
}

/// A text of about this size.
fn of_size(bytes: usize, script: fn(u32) -> String) -> String {
    let lines = bytes * SAMPLE as usize / script(SAMPLE).len();
    script(u32::try_from(lines).expect("a number of lines"))
}

fn parse(text: &str) -> Transaction {
    Transaction::parse(text).expect("a script of the bench")
}

fn text_to_kernel(c: &mut Criterion) {
    let nft = testns::have(&["nft"]);
    for (layout, script) in [("maps", maps as fn(u32) -> String), ("chains", chains)] {
        let mut group = c.benchmark_group(format!("nft language, {layout}"));
        group.sample_size(10);
        for count in SERVICES {
            // The kernel takes a minute for 10,000 chains in a map of verdicts: once is enough, and for a mere
            // check of the bench none.
            let is_slow = layout == "chains" && count > 1_000;
            if is_slow && !is_measuring() {
                continue;
            }
            let text = script(count);
            if is_slow {
                compare_loads(1, layout, count, &text, nft);
                continue;
            }
            group.throughput(Throughput::Bytes(text.len() as u64));
            group.bench_function(BenchmarkId::new("parse", count), |b| b.iter(|| parse(&text)));
            let transaction = parse(&text);
            group.bench_function(BenchmarkId::new("encode", count), |b| {
                b.iter(|| transaction.encode(ApplyOptions::default()).expect("it can be encoded"));
            });
            let mut kernel = socket();
            group.bench_function(BenchmarkId::new("parse, encode, send", count), |b| {
                b.iter(|| parse(&text).apply(&mut kernel).expect("it can be applied"));
            });
            let batch = transaction.encode(ApplyOptions::default()).expect("it can be encoded");
            group.bench_function(BenchmarkId::new("kernel alone", count), |b| {
                b.iter(|| send(&mut kernel, &batch));
            });
            compare_loads(7, layout, count, &text, nft);
            if nft {
                group.bench_function(BenchmarkId::new("nft -f", count), |b| {
                    b.iter(|| assert!(testns::feed(&["nft", "-f", "-"], &text).status.success()));
                });
            }
        }
        group.finish();
    }
}

/// Compares the way from text to the kernel with the kernel's share, and with `nft -f`, each into an empty
/// ruleset.
fn compare_loads(rounds: u32, layout: &str, count: u32, text: &str, nft: bool) {
    let (mut kernel, mut other) = (socket(), socket());
    let batch = parse(text).encode(ApplyOptions::default()).expect("it can be encoded");
    // A load in place of another takes the kernel longer than a first one, with 10,000 chains three times as long.
    let flush = || drop(parse("flush ruleset").apply(&mut socket()).expect("nothing refuses that"));
    let mut load = || {
        flush();
        cpu_time(|| parse(text).apply(&mut kernel).expect("it can be applied"))
    };
    let what = format!("{layout} of {count} services from text to kernel");
    compare(rounds, &what, "the kernel alone", &mut load, || {
        flush();
        cpu_time(|| send(&mut other, &batch))
    });
    if nft && count >= FEWEST {
        compare(rounds, &what, "nft -f", &mut load, || {
            flush();
            time_of_tool("nft -f -", text)
        });
    }
}

fn parse_alone(c: &mut Criterion) {
    let kinds = [("addresses", addresses as fn(u32) -> String), ("maps", endpoints), ("rules", rules)];
    for (what, script) in kinds {
        let mut group = c.benchmark_group(format!("nft language, {what}"));
        group.sample_size(10);
        let mut smallest = None;
        for size in SIZES {
            // For a mere check of the bench, once over the shortest is enough.
            if size > SIZES[0] && !is_measuring() {
                continue;
            }
            let text = of_size(size, script);
            let used = allocation_counter::measure(|| drop(parse(&text)));
            let memory = used.bytes_max as f64 / text.len() as f64;
            println!("{what}, {size} bytes: {memory:.1} bytes of memory a byte of text");
            if size < SIZES[2] {
                group.throughput(Throughput::Bytes(text.len() as u64));
                group.bench_function(BenchmarkId::new("parse", size), |b| b.iter(|| parse(&text)));
            }
            if is_measuring() {
                let took = (0..3).map(|_| cpu_time(|| parse(&text))).min().expect("three rounds");
                let rate = text.len() as f64 / took.as_secs_f64();
                let grown = *smallest.get_or_insert(rate) / rate;
                println!("{what}, {size} bytes: {:.0} MB/s, grows {grown:.2}", rate / 1e6);
            }
        }
        group.finish();
    }
}

fn in_a_namespace(c: &mut Criterion) {
    parse_alone(c);
    // Criterion is no value to be sent elsewhere: the namespace makes its own.
    testns::netns(|| text_to_kernel(&mut Criterion::default().configure_from_args()));
}

criterion_group!(benches, in_a_namespace);
criterion_main!(benches);
