//! Constants that a key cannot have: of every key, in every place where a constant may be, with nft as the judge.
//!
//! What nft refuses is refused, and what it takes is taken. What we do otherwise is told by a few kinds (`MEANT`),
//! each with its number of rules. `SLUICEGATE_ALL_CONSTANTS` has all rules tried, which takes a minute.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use sluicegate_nftables::lang::exthdr::Exthdr;
use sluicegate_nftables::lang::{Expression, Payload};
use sluicegate_nftables::{ApplyOptions, DataType, Part, Transaction};

use crate::language::kernel::namespace;

/// A key of the language, and the table in which it may be asked for.
struct Key {
    family: &'static str,
    text: String,
    of: Option<DataType>,
    bits: u32,
}

/// Keys that are no fields of headers.
const OTHERS: &[(&str, DataType, u32)] = &[
    ("meta mark", DataType::MARK, 32),
    ("meta length", DataType::INTEGER, 32),
    ("meta priority", DataType::CLASSID, 32),
    ("meta skuid", DataType::UID, 32),
    ("meta skgid", DataType::GID, 32),
    ("meta iif", DataType::IFACE_INDEX, 31),
    ("meta oif", DataType::IFACE_INDEX, 31),
    ("meta sdif", DataType::IFACE_INDEX, 31),
    ("meta iiftype", DataType::IFACE_TYPE, 16),
    ("meta iifgroup", DataType::DEVGROUP, 32),
    ("meta rtclassid", DataType::REALM, 32),
    ("meta pkttype", DataType::PKT_TYPE, 8),
    ("meta cpu", DataType::INTEGER, 32),
    ("meta cgroup", DataType::INTEGER, 32),
    ("meta l4proto", DataType::INET_PROTO, 8),
    ("meta protocol", DataType::ETHER_TYPE, 16),
    ("meta hour", DataType::HOUR, 32),
    ("ct mark", DataType::MARK, 32),
    ("ct zone", DataType::INTEGER, 16),
    ("ct original packets", DataType::INTEGER, 64),
    ("ct original proto-dst", DataType::INET_SERVICE, 16),
    ("rt classid", DataType::REALM, 32),
    ("rt mtu", DataType::INTEGER, 16),
    ("socket transparent", DataType::INTEGER, 1),
    ("socket wildcard", DataType::INTEGER, 1),
    ("socket mark", DataType::MARK, 32),
    ("fib saddr oif", DataType::IFACE_INDEX, 31),
    ("fib daddr type", DataType::FIB_ADDRTYPE, 32),
    ("numgen inc mod 4", DataType::INTEGER, 2),
    ("symhash mod 4", DataType::INTEGER, 2),
    ("jhash ip saddr mod 4", DataType::INTEGER, 2),
    ("ipsec in reqid", DataType::INTEGER, 32),
    ("numgen random mod 5 offset 3", DataType::INTEGER, 3),
];

fn keys() -> Vec<Key> {
    let family = |protocol: &str| match protocol {
        "arp" => "arp",
        "ether" | "vlan" => "bridge",
        _ => "inet",
    };
    let of = |expression: &Expression| expression.part().map(Part::data_type);
    let payload = Payload::ALL.iter().map(|field| Key {
        family: family(field.protocol()),
        text: field.to_string(),
        of: of(&(*field).into()),
        bits: field.bits().into(),
    });
    let options = Exthdr::all().filter(|field| !field.is_presence()).map(|field| Key {
        family: "inet",
        text: field.to_string(),
        of: of(&field.into()),
        bits: field.bits().into(),
    });
    let others = OTHERS.iter().map(|(text, of, bits)| Key {
        family: "inet",
        text: (*text).to_owned(),
        of: Some(*of),
        bits: *bits,
    });
    payload.chain(options).chain(others).collect()
}

/// The constant is written where `#` is, and behind it one that the key can have.
const SHAPES: &[&str] = &[
    "K #",
    "K != #",
    "K { # }",
    "K { 1, # }",
    "K 1-#",
    "K & 1 == #",
    "K & # == 1",
    "K | # == 1",
    "K ^ 1 == #",
    "K & 1 | # == 1",
    "K & 1 { # }",
    "K . meta mark { # . 1 }",
    "K vmap { # : drop }",
    "K & 1 vmap { # : drop }",
    "meta mark set K map { # : 1 }",
];

/// Prefixes, shifts and operands of every key.
const OTHER_SHAPES: &[&str] = &[
    "K 1/1",
    "K != 1/1",
    "K 1/0",
    "K { 1/1 }",
    "K . meta mark { 1/1 . 1 }",
    "K & 1 == 1/1",
    "K << 1 == 2",
    "K >> 1 != 1",
    "K << 1 == ssh",
    "K & ct mark == 1",
    "K & 1-2 == 1",
    "K & 1/1 == 1",
    "K & (1|2) == 1 / (1|2)",
];

struct Sample {
    family: &'static str,
    rule: String,
    shape: &'static str,
}

fn samples() -> Vec<Sample> {
    let mut samples = Vec::new();
    for key in keys() {
        // Addresses are not written as numbers.
        let is_number = !matches!(
            key.of,
            Some(DataType::IPV4_ADDR | DataType::IPV6_ADDR | DataType::ETHER_ADDR | DataType::LL_ADDR)
        );
        let mut add = |shape: &'static str, constant: &str| {
            let rule = shape.replace('K', &key.text).replace('#', constant);
            samples.push(Sample { family: key.family, rule, shape });
        };
        let end = 1_u128 << key.bits.min(64);
        for shape in SHAPES.iter().filter(|_| is_number) {
            add(shape, &end.to_string());
            if key.bits < 64 {
                add(shape, &(end - 1).to_string());
            }
        }
        OTHER_SHAPES.iter().for_each(|shape| add(shape, ""));
    }
    samples
}

/// A reason, the number of its rules, and whether it holds for one of which nft says this.
type Meant = (&'static str, usize, fn(&Sample, Option<&str>) -> bool);

/// Why one side takes what the other refuses, and of how many of the rules that are tried.
const MEANT: &[Meant] = &[
    (
        "a shift is a number, as to nft since 1.0.7, where 1.0.6 takes it for the type of the key",
        14,
        |of, said| of.is_shift() && has(said, &["datatype mismatch", "Could not resolve hostname"]),
    ),
    (
        "nft moves a shift to the other side, where the kernel refuses it, or it finds no value",
        6,
        |of, said| of.is_shift() && has(said, &["No data available", "exceeds valid range"]),
    ),
    ("nft 1.0.6 does not know the field, or not in statements", 33, |_, said| {
        has(said, &["syntax error", "invalid expressions", "invalid types", "(invalid)"])
    }),
    ("nft 1.0.6 takes these bits for a part without a length", 2, |_, said| has(said, &["types (bitmask)"])),
    ("nft does not measure a part of a key, and cuts it off", 0, |of, said| {
        said.is_none() && (of.rule.contains(" . ") || of.rule.contains(" map {"))
    }),
    ("nft cuts off what is more than 32 bits of an hour or a class", 2, |of, said| {
        said.is_none() && ["meta hour", "meta priority"].iter().any(|key| of.rule.contains(key))
    }),
    ("nft shifts the only bit out of the field", 0, |of, said| said.is_none() && of.is_shift()),
    ("a number behind `/` is refused where it could be a prefix or a mask", 0, |of, said| {
        said.is_none() && of.rule.starts_with("tcp flags") && of.rule.contains('/')
    }),
];

impl Sample {
    fn is_shift(&self) -> bool {
        self.shape.contains("<<") || self.shape.contains(">>")
    }
}

/// Whether nft says one of these.
fn has(said: Option<&str>, words: &[&str]) -> bool {
    said.is_some_and(|said| words.iter().any(|word| said.contains(word)))
}

/// Every so many rules are tried: each key in some shapes, each shape with many keys.
const STEP: usize = 11;

#[test]
fn constants_that_a_key_cannot_have_are_refused_as_by_nft() {
    if !testns::have(&["nft"]) {
        return;
    }
    let version = testns::sh("nft --version");
    if !version.contains("v1.0.6") {
        return testns::skip(&format!("nft 1.0.6 is the judge, found {}", version.trim()));
    }
    let Some(namespace) = namespace() else { return };
    let is_whole = std::env::var_os("SLUICEGATE_ALL_CONSTANTS").is_some();
    let samples: Vec<_> = samples().into_iter().step_by(if is_whole { 1 } else { STEP }).collect();
    let script = |sample: &Sample, number: usize| {
        format!("table {} t{number} {{\n chain c {{\n  {}\n }}\n}}\n", sample.family, sample.rule)
    };
    let ours: Vec<Option<String>> = samples
        .iter()
        .enumerate()
        .map(|(at, sample)| match Transaction::parse(&script(sample, at)) {
            Ok(read) => read.encode(ApplyOptions::default()).err().map(|error| error.to_string()),
            Err(error) => Some(error.to_string()),
        })
        .collect();
    let (mut counts, mut failures) = (BTreeMap::new(), String::new());
    namespace.run(|| {
        let nft = |part: &[usize]| {
            let text: String = part.iter().map(|at| script(&samples[*at], *at)).collect();
            let output = testns::feed(&["nft", "-c", "-f", "-"], &text);
            (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
        };
        let (refused, taken): (Vec<usize>, Vec<usize>) =
            (0..samples.len()).partition(|at| ours[*at].is_some());
        let mut judge = |at: usize| {
            let (sample, (status, said)) = (&samples[at], nft(&[at]));
            let said = match status {
                Some(0) => None,
                Some(_) => Some(said.lines().next().unwrap_or_default()),
                // It fails an assertion.
                None => return,
            };
            if said.is_some() == ours[at].is_some() {
                return;
            }
            match MEANT.iter().find(|(.., holds)| holds(sample, said)) {
                Some((reason, ..)) => *counts.entry(reason).or_insert(0) += 1,
                None => {
                    let (said, ours) = (said.unwrap_or("takes it"), ours[at].as_deref().unwrap_or("take it"));
                    let ours = ours.lines().next().unwrap_or_default();
                    writeln!(failures, "{} {}\n  nft: {said}\n  we: {ours}", sample.family, sample.rule)
                        .expect("a string grows");
                }
            }
        };
        // Those that both take are tried many at a time.
        for part in taken.chunks(50) {
            each_failing(part, &|part| nft(part).0 == Some(0), &mut judge);
        }
        // nft tells of nine mistakes at least.
        for part in refused.chunks(9) {
            let (status, said) = nft(part);
            let is_told = |line: usize| said.contains(&format!("/dev/stdin:{}:", line * 5 + 3));
            if status != Some(1) || !(0..part.len()).all(is_told) {
                part.iter().for_each(|at| judge(*at));
            }
        }
    });
    println!("{} rules, of which we refuse {}", samples.len(), ours.iter().flatten().count());
    counts.iter().for_each(|(reason, count)| println!("{count}: {reason}"));
    assert!(failures.is_empty(), "{} rules:\n{failures}", failures.lines().count() / 3);
    for (reason, count, _) in MEANT.iter().filter(|_| !is_whole) {
        assert_eq!(counts.get(reason).copied().unwrap_or(0), *count, "{reason}");
    }
}

#[test]
#[cfg(feature = "json")]
fn what_is_taken_as_text_is_the_same_through_json() {
    let (mut taken, mut failures) = (0, String::new());
    for sample in &samples() {
        let script = format!("table {} t {{\n chain c {{\n  {}\n }}\n}}\n", sample.family, sample.rule);
        let Ok(read) = Transaction::parse(&script) else { continue };
        let Ok(batch) = read.encode(ApplyOptions::default()) else { continue };
        taken += 1;
        let same = |other: &Transaction| match other.encode(ApplyOptions::default()) {
            Ok(other) if other.bytes().ok() == batch.bytes().ok() => Ok(()),
            Ok(_) => Err("another batch".to_owned()),
            Err(error) => Err(error.to_string()),
        };
        let json = read.to_json().to_string();
        let again = Transaction::from_json(&json).map_err(|error| error.to_string());
        let again = again.and_then(|of| same(&of).map(|()| of)).map_err(|error| format!("{json}: {error}"));
        let again = again.and_then(|of| {
            let text = of.to_string();
            let read = Transaction::parse(&text).map_err(|error| error.to_string());
            read.and_then(|of| same(&of)).map_err(|error| format!("{text}: {error}"))
        });
        if let Err(error) = again {
            writeln!(failures, "{} {}\n  {error}", sample.family, sample.rule).expect("a string grows");
        }
    }
    println!("{taken} rules");
    assert!(failures.is_empty(), "{failures}");
}

/// Calls `one` for each that fails, found by halves.
fn each_failing(part: &[usize], holds: &dyn Fn(&[usize]) -> bool, one: &mut dyn FnMut(usize)) {
    match part {
        [] => {}
        part if holds(part) => {}
        [only] => one(*only),
        part => {
            let (first, second) = part.split_at(part.len() / 2);
            each_failing(first, holds, one);
            each_failing(second, holds, one);
        }
    }
}
