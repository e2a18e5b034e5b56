//! Rules made by dice, with nft as the judge: both take the same ones, and make the same of them.
//!
//! The dice are always the same, so that what is known of them can be listed in `known.rs`;
//! `SLUICEGATE_DICE` is another start for a search.

use std::fmt::Write as _;

use crate::beside;
use crate::language::format::Context;
use testns::Netns;

use crate::language::kernel::{self, namespace, open};
use crate::language::known;
use crate::language::rules::{self, Other, parse, parse_beside};
use sluicegate_netlink::NetlinkFamily;

#[test]
fn of_random_rules_those_that_nft_takes_are_taken_and_made_alike() {
    if !testns::have(&["nft", "ip"]) {
        return;
    }
    let start = std::env::var("SLUICEGATE_DICE").ok().and_then(|start| start.parse().ok());
    let mut dice = Dice(start.unwrap_or(0x9e37_79b9_7f4a_7c15));
    let mut groups = Vec::new();
    for family in ["ip", "ip6", "inet", "bridge"] {
        let rules: Vec<&str> = (0..150).map(|_| &*dice.rule(family).leak()).collect();
        groups.extend(rules.chunks(50).map(|rules| (family, rules.to_vec())));
    }
    let judged = beside::each(&groups, namespace, judged);
    if judged.is_empty() {
        return;
    }
    let (mut others, mut taken, mut texts) = (Vec::new(), 0, String::new());
    for (head, rules, differing) in judged {
        if !texts.contains(head) {
            texts += head;
        }
        for rule in &rules {
            writeln!(texts, "{rule}").expect("a string grows");
        }
        taken += rules.len();
        others.extend(differing);
    }
    let contexts = Context::all("random", Box::leak(texts.into_boxed_str()));
    others.extend(rules::each_file(Box::leak(contexts.into_boxed_slice()), rules::compare));
    println!("{taken} rules are taken, {} are otherwise", others.len());
    assert!(taken >= 200, "{taken} rules are taken");
    known::check(known::RANDOM, &others);
}

/// Has rules of a family judged by nft and by us. Returns the head of a corpus for them, those that both take, and
/// those that one takes.
fn judged(
    namespace: &Netns,
    (family, rules): &(&str, Vec<&'static str>),
) -> (&'static str, Vec<&'static str>, Vec<Other<'static>>) {
    let head: &str = format!(
        "#! table {family}\n#! set ports {{ type inet_service; flags dynamic; size 9; }}\n\
         #! chain other {{ }}\n"
    )
    .leak();
    let ground = &Context::all("random", head)[0];
    let script = ground.script([]);
    let (mut others, mut taken) = (Vec::new(), Vec::new());
    namespace.run(|| {
        kernel::nft(&format!("flush ruleset\n{script}")).expect("a table");
        let machine = kernel::machine();
        let options = machine.options();
        let parsed = parse(&script, &options).expect("a table");
        let mut socket = open(NetlinkFamily::NETFILTER);
        for rule in rules {
            let command = ground.command(rule);
            let by_nft = testns::feed(&["nft", "-c", "-f", "-"], &command);
            let by_us = parse_beside(&parsed, &command, &options)
                .and_then(|transaction| kernel::check(&mut socket, &transaction));
            match (by_nft.status.code(), by_us) {
                // Some it cannot list.
                (Some(0), Ok(())) if !is_listed(&command) => {}
                (Some(0), Ok(())) => taken.push(*rule),
                (Some(0), Err(detail)) => {
                    others.push(Other { file: "random", what: "refused", rule, detail });
                }
                // It fails an assertion on some rules.
                (Some(1), Ok(())) => {
                    let detail = String::from_utf8_lossy(&by_nft.stderr).into_owned();
                    others.push(Other { file: "random", what: "taken", rule, detail });
                }
                _ => {}
            }
        }
    });
    (head, taken, others)
}

/// Whether nft lists a rule, and not fails an assertion.
fn is_listed(command: &str) -> bool {
    let table = command.split(' ').skip(2).take(2).collect::<Vec<_>>().join(" ");
    kernel::nft(command).expect("nft took it before");
    let listed = testns::feed(&["nft", "-s", "list", "ruleset"], "");
    kernel::nft(&format!("flush chain {table} c\n")).expect("a chain");
    listed.status.success()
}

struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        // xorshift64
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % sides.max(1) as u64).expect("it is below a usize")
    }

    fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.roll(of.len())]
    }

    fn rule(&mut self, family: &str) -> String {
        let mut words: Vec<String> = (0..1 + self.roll(3)).map(|_| self.comparison(family)).collect();
        words.extend((0..self.roll(3)).map(|_| self.one(STATEMENTS).to_owned()));
        words.push(self.one(VERDICTS).to_owned());
        words.retain(|word| !word.is_empty());
        words.join(" ")
    }

    fn field(&mut self, family: &str) -> Field {
        let is_here = |field: &&Field| match family {
            "ip" => !field.0.starts_with("ip6 ") && !field.0.starts_with("ether "),
            "ip6" => !field.0.starts_with("ip ") && !field.0.starts_with("ether "),
            "bridge" => !field.0.starts_with("ct ") && !field.0.starts_with("fib "),
            _ => true,
        };
        let here: Vec<_> = FIELDS.iter().filter(is_here).copied().collect();
        self.one(&here)
    }

    fn comparison(&mut self, family: &str) -> String {
        let field @ (name, values, _) = self.field(family);
        match self.roll(10) {
            0 | 1 => format!("{name} {}", self.one(values)),
            2 => format!("{name} != {}", self.value(field, true)),
            3 => format!("{name} {}", self.value(field, true)),
            4 => format!("{name} {}{}", self.one(&["", "!= "]), self.set(field)),
            5 => {
                let (keys, verdicts) = (self.members(field), ["accept", "drop", "jump other", "return"]);
                let pairs: Vec<_> =
                    keys.into_iter().map(|key| format!("{key} : {}", self.one(&verdicts))).collect();
                format!("{name} vmap {{ {} }}", pairs.join(", "))
            }
            6 => {
                let (flags, bits): (&str, &[&str]) =
                    self.one(if family == "bridge" { &BITS[..1] } else { BITS });
                let list: Vec<_> = (0..1 + self.roll(3)).map(|_| self.one(bits)).collect();
                let first = list[0];
                match self.roll(5) {
                    0 => format!("{flags} {}", list.join(",")),
                    1 => format!("{flags} != {}", list.join(",")),
                    2 => format!("{flags} ! {}", list.join(",")),
                    3 => format!("{flags} & ({} | {first}) == {first}", list.join(" | ")),
                    _ => format!("{flags} {{ {} }}", list.join(", ")),
                }
            }
            _ => {
                // nft 1.0.6 does not know how wide plain numbers are that are part of a key.
                let fields = (0..2 + self.roll(2)).map(|_| self.field(family));
                let fields = fields.filter(|(name, ..)| !matches!(*name, "symhash mod 4" | "ip ttl"));
                let mut fields: Vec<_> = fields.collect();
                if fields.is_empty() {
                    fields.push(FIELDS[0]);
                }
                let names: Vec<_> = fields.iter().map(|(name, ..)| *name).collect();
                let intervals = self.roll(3) == 0;
                let element = |dice: &mut Self| {
                    let parts: Vec<_> = fields.iter().map(|field| dice.value(*field, intervals)).collect();
                    parts.join(" . ")
                };
                let elements: Vec<_> = (0..1 + self.roll(2)).map(|_| element(self)).collect();
                format!("{} {{ {} }}", names.join(" . "), elements.join(", "))
            }
        }
    }

    fn value(&mut self, (_, values, ranges): Field, intervals: bool) -> &'static str {
        if intervals && !ranges.is_empty() && self.roll(2) == 0 { self.one(ranges) } else { self.one(values) }
    }

    fn members(&mut self, field: Field) -> Vec<&'static str> {
        let intervals = self.roll(2) == 0;
        (0..1 + self.roll(4)).map(|_| self.value(field, intervals)).collect()
    }

    fn set(&mut self, field: Field) -> String {
        format!("{{ {} }}", self.members(field).join(", "))
    }
}

/// A field with values and ranges of values.
type Field = (&'static str, &'static [&'static str], &'static [&'static str]);

const FIELDS: &[Field] = &[
    ("ip saddr", V4, V4_RANGES),
    ("ip daddr", V4, V4_RANGES),
    ("ip6 saddr", V6, V6_RANGES),
    ("ip6 daddr", V6, V6_RANGES),
    ("tcp dport", PORTS, PORT_RANGES),
    ("tcp sport", PORTS, PORT_RANGES),
    ("udp dport", PORTS, PORT_RANGES),
    ("th dport", PORTS, PORT_RANGES),
    ("ether saddr", &["00:11:22:33:44:55", "ff:ff:ff:ff:ff:ff"], &["00:00:00:00:00:01-00:00:00:00:00:09"]),
    ("meta l4proto", PROTOCOLS, &[]),
    ("ip protocol", PROTOCOLS, &[]),
    ("ip6 nexthdr", PROTOCOLS, &[]),
    ("iifname", &["\"eth0\"", "lo", "docker0", "\"a.b-c\""], &["\"wg*\"", "\"e*\""]),
    ("iif", &["lo", "\"d0\"", "d1"], &[]),
    ("meta mark", &["0", "1", "0xff", "4294967295"], &["5-10", "0x100-0xfff"]),
    ("ct mark", &["0", "7", "0x80000000"], &["16-31"]),
    ("ct direction", &["original", "reply"], &[]),
    ("meta pkttype", &["host", "broadcast", "multicast"], &[]),
    ("icmp type", &["echo-request", "echo-reply", "3"], &[]),
    ("icmpv6 type", &["echo-request", "nd-router-advert", "135"], &[]),
    ("ip ttl", &["0", "1", "64", "255"], &["2-5", "64-255"]),
    ("ip dscp", &["ef", "cs0", "af11", "0x3f"], &[]),
    ("fib daddr type", &["local", "broadcast", "unicast"], &[]),
    ("symhash mod 4", &["0", "3", "4"], &["1-2", "2-5"]),
];
const V4: &[&str] = &["10.0.0.1", "192.168.1.254", "0.0.0.0", "255.255.255.255", "127.0.0.1"];
const V4_RANGES: &[&str] =
    &["10.0.0.0/8", "192.168.1.1-192.168.1.9", "10.0.0.0/30", "0.0.0.0/0", "128.0.0.0/1"];
const V6: &[&str] = &["::", "::1", "fe80::1", "2001:db8::1", "::ffff:1.2.3.4"];
const V6_RANGES: &[&str] = &["fe80::/10", "2001:db8::1-2001:db8::9", "::/0", "fd00::/56"];
const PORTS: &[&str] = &["22", "ssh", "0", "65535", "https", "0x50", "8080"];
const PORT_RANGES: &[&str] = &["1-1023", "1024-65535", "80-90", "22-22"];
const PROTOCOLS: &[&str] = &["tcp", "udp", "icmp", "icmpv6", "sctp", "112"];
const BITS: &[(&str, &[&str])] = &[
    ("tcp flags", &["syn", "ack", "fin", "rst"]),
    ("ct state", &["new", "established", "related", "invalid"]),
    ("ct status", &["snat", "dnat", "assured"]),
];
const STATEMENTS: &[&str] = &[
    "counter",
    "limit rate 5/second",
    "limit rate over 10 mbytes/second",
    "log prefix \"a b\" level info",
    "meta mark set 0x10",
    "meta mark set meta mark & 0xff | 0x100",
    "meta priority set 1:2",
    "quota over 5 mbytes",
    "update @ports { tcp dport timeout 30s }",
    "add @ports { th dport }",
    "tcp dport set 80",
    "ip ttl set 64",
    "meta mark set tcp dport map { 22 : 1, 80 : 2 }",
    "meta mark set jhash ip saddr mod 8",
    "tcp option maxseg size set 1400",
];
const VERDICTS: &[&str] = &["", "", "accept", "drop", "return", "jump other", "continue", "comment \"x\""];
