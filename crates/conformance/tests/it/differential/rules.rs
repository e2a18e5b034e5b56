//! The rules: all combinations of keys with the shapes of matches and statements, and of values.

use std::fmt;

use sluicegate_nftables::lang::Payload;
use sluicegate_nftables::lang::exthdr::Exthdr;

/// A rule in a table of a family.
#[derive(Debug, Clone)]
pub(crate) struct Sample {
    pub(crate) family: &'static str,
    pub(crate) rule: String,
    pub(crate) about: About,
}

/// What a rule is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum About {
    Bits,
    Operators,
    Contexts,
    Shifts,
    Addresses,
    Given,
}

impl Sample {
    /// Returns a script of one table, whose name has the number.
    pub(crate) fn script(&self, number: usize) -> String {
        format!("table {} t{number} {{\n chain c {{\n  {}\n }}\n}}\n", self.family, self.rule)
    }
}

impl fmt::Display for Sample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.family, self.rule)
    }
}

/// Returns all of them, in a fixed order.
pub(crate) fn all() -> Vec<Sample> {
    [bit_fields(), operators(), contexts(), shifts(), addresses()].concat()
}

/// Returns the rules of a file: each line is a family, and a rule.
pub(crate) fn of_file(path: &str) -> Vec<Sample> {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let sample = |line: &str| {
        let (family, rule) = line.split_once(' ')?;
        let families = ["ip", "ip6", "inet", "arp", "bridge", "netdev"];
        let family = families.into_iter().find(|of| *of == family)?;
        Some(Sample { family, rule: rule.to_owned(), about: About::Given })
    };
    text.lines().filter_map(sample).collect()
}

/// A key that a rule compares, with values of it: the least, some between, the greatest.
struct Field {
    family: &'static str,
    text: String,
    bits: u16,
}

impl Field {
    fn values(&self) -> [u64; 4] {
        let max = 1_u64.checked_shl(self.bits.into()).map_or(u64::MAX, |end| end - 1);
        [0, 1.min(max), max / 2, max]
    }
}

/// Returns the fields that do not fill whole bytes, and those that lie within them at an odd place.
fn fields() -> Vec<Field> {
    let is_odd = |bits: u16, offset: u16| !(bits.is_multiple_of(8) && offset.is_multiple_of(8));
    let family = |protocol: &str| match protocol {
        "ip" | "igmp" | "icmp" => "ip",
        "ip6" | "icmpv6" => "ip6",
        "ether" | "vlan" => "bridge",
        "arp" => "arp",
        _ => "inet",
    };
    let payload = Payload::ALL.iter().filter(|field| is_odd(field.bits(), field.offset()));
    let payload = payload.map(|field| Field {
        family: family(field.protocol()),
        text: field.to_string(),
        bits: field.bits(),
    });
    let options = Exthdr::all()
        .filter(|field| !field.is_presence() && field.header().is_some())
        .filter(|field| is_odd(field.bits(), field.offset()));
    let options = options.map(|field| Field { family: "inet", text: field.to_string(), bits: field.bits() });
    payload.chain(options).collect()
}

/// Every field that is not whole bytes in every shape that a key has.
fn bit_fields() -> Vec<Sample> {
    let mut samples = Vec::new();
    for field in fields() {
        let Field { family, text: f, bits } = &field;
        let [zero, one, middle, max] = field.values();
        let mut add = |rule: String| samples.push(Sample { family, rule, about: About::Bits });
        for value in [zero, one, middle, max] {
            for op in ["", "!= ", "< ", "> ", "<= ", ">= "] {
                add(format!("{f} {op}{value}"));
                add(format!("{f} & {middle} {} {value}", if op.is_empty() { "== " } else { op }));
            }
            for op in ["&", "|", "^"] {
                add(format!("{f} {op} {one} == {value}"));
                add(format!("{f} {op} {max} != {value}"));
                add(format!("meta mark set {f} {op} {value}"));
                add(format!("ct mark set {f} {op} {value}"));
            }
            add(format!("{f} set {value}"));
            add(format!("{f} {{ {value} }}"));
            add(format!("{f} . meta mark {{ {value} . 7 }}"));
            add(format!("meta mark . {f} {{ 7 . {value}, 8 . {one} }}"));
            add(format!("meta mark . {f} != {{ 7 . {value} }}"));
            add(format!("{f} vmap {{ {value} : drop }}"));
            add(format!("meta mark set {f} map {{ {value} : 9 }}"));
            add(format!("{f} . meta mark vmap {{ {value} . 1-7 : drop }}"));
        }
        for (low, high) in [(zero, one), (one, middle), (middle, max), (zero, max)] {
            add(format!("{f} {low}-{high}"));
            add(format!("{f} != {low}-{high}"));
            add(format!("{f} {{ {low}-{high} }}"));
            add(format!("{f} != {{ {low}-{high} }}"));
            add(format!("{f} vmap {{ {low}-{high} : accept, * : drop }}"));
            add(format!("{f} map {{ {low}-{high} : 3 }} == 3"));
            add(format!("meta mark . {f} {{ 7 . {low}-{high} }}"));
            add(format!("meta mark set {f} map {{ {low}-{high} : 3 }}"));
        }
        for length in 1..=(*bits).min(20) {
            for value in [zero, middle, max] {
                add(format!("{f} {value}/{length}"));
                add(format!("{f} != {value}/{length}"));
                add(format!("{f} {{ {value}/{length} }}"));
                add(format!("meta mark . {f} {{ 7 . {value}/{length} }}"));
            }
        }
        for by in [1, 2, *bits - 1, *bits, *bits + 1] {
            for op in ["<<", ">>"] {
                add(format!("{f} {op} {by} == {one}"));
                add(format!("{f} {op} {by} != {middle}"));
                add(format!("{f} {op} {by} {{ {one}, {middle} }}"));
                add(format!("meta mark set {f} {op} {by}"));
                add(format!("meta mark set {f} {op} {by} | 0x10"));
                add(format!("{f} set {f} {op} {by}"));
            }
        }
    }
    samples
}

/// Every binary operator against every comparison.
fn operators() -> Vec<Sample> {
    let keys = ["meta mark", "ct mark", "tcp dport", "ip daddr", "meta priority", "ip dscp", "meta length"];
    let mut samples = Vec::new();
    let mut add = |rule: String| samples.push(Sample { family: "inet", rule, about: About::Operators });
    for key in keys {
        let value = |n: u32| match key {
            "ip daddr" => std::net::Ipv4Addr::from(n).to_string(),
            _ => n.to_string(),
        };
        for op in ["&", "|", "^", "<<", ">>"] {
            for operand in [0, 1, 3, 6, 63] {
                let operand =
                    if matches!(op, "<<" | ">>") { (operand % 17).to_string() } else { value(operand) };
                for right in [0, 1, 3, 4, 63] {
                    for comparison in ["==", "!=", "<", ">", "<=", ">="] {
                        add(format!("{key} {op} {operand} {comparison} {}", value(right)));
                    }
                    let (low, high) = (value(right), value(right + 5));
                    add(format!("{key} {op} {operand} {low}-{high}"));
                    add(format!("{key} {op} {operand} != {low}-{high}"));
                    add(format!("{key} {op} {operand} {{ {low}, {high} }}"));
                    add(format!("{key} {op} {operand} != {{ {low}-{high} }}"));
                    add(format!("{key} {op} {operand} vmap {{ {low} : drop }}"));
                }
                for second in ["&", "|", "^"] {
                    add(format!("{key} {op} {operand} {second} {} == {}", value(5), value(7)));
                    add(format!("{key} {op} {operand} {second} {} > {}", value(5), value(7)));
                }
            }
        }
    }
    samples
}

/// Every set or range of a key that says what follows it, and what needs to know.
fn contexts() -> Vec<Sample> {
    let keys: [(&str, &[&str]); 10] = [
        ("meta nfproto", &["ipv4", "ipv6", "1"]),
        ("meta protocol", &["ip", "ip6", "arp", "vlan"]),
        ("meta l4proto", &["tcp", "udp", "icmp", "ipv6-icmp", "sctp", "99"]),
        ("ether type", &["ip", "ip6", "arp", "vlan"]),
        ("ip protocol", &["tcp", "udp", "icmp", "99"]),
        ("ip6 nexthdr", &["tcp", "udp", "ipv6-icmp", "99"]),
        ("vlan type", &["ip", "ip6", "arp"]),
        ("ct l3proto", &["ipv4", "ipv6"]),
        ("ct protocol", &["tcp", "udp", "99"]),
        ("meta ibrvproto", &["0x8100"]),
    ];
    let followers = [
        "tcp dport 80",
        "udp sport != 80",
        "th dport 80",
        "ip saddr 10.0.0.1",
        "ip6 saddr 1::1",
        "icmp type echo-request",
        "icmpv6 type echo-request",
        "ip protocol tcp",
        "ether saddr 1:2:3:4:5:6",
        "vlan id 3",
        "ct original saddr 10.0.0.1",
        "ct original ip saddr 10.0.0.1",
        "reject",
        "reject with tcp reset",
        "reject with icmp host-unreachable",
        "reject with icmpv6 no-route",
        "reject with icmpx admin-prohibited",
        "meta mark set ip dscp",
        "meta mark 1",
        "rt nexthop 10.0.0.1",
        "exthdr frag exists",
    ];
    let mut samples = Vec::new();
    for family in ["ip", "ip6", "inet", "bridge", "netdev"] {
        for (key, values) in keys {
            let mut matches = Vec::new();
            for (at, first) in values.iter().enumerate() {
                matches.extend([format!("{key} {first}"), format!("{key} != {first}")]);
                let second = values[(at + 1) % values.len()];
                matches.extend([format!("{key} {{ {first} }}"), format!("{key} != {{ {first} }}")]);
                if first != &second {
                    matches.push(format!("{key} {{ {first}, {second} }}"));
                    matches.push(format!("{key} != {{ {first}, {second} }}"));
                    matches.push(format!("{key} {first}-{second}"));
                    matches.push(format!("{key} . meta mark {{ {first} . 1, {second} . 2 }}"));
                }
                matches.push(format!("{key} vmap {{ {first} : continue }}"));
                matches.push(format!("{key} > {first}"));
            }
            for matched in &matches {
                for follower in followers {
                    samples.push(Sample {
                        family,
                        rule: format!("{matched} {follower}"),
                        about: About::Contexts,
                    });
                }
            }
        }
        for first in followers {
            for second in followers {
                samples.push(Sample { family, rule: format!("{first} {second}"), about: About::Contexts });
            }
        }
    }
    samples
}

/// Shifts by about the width of what is shifted, and by more than any number has bits.
fn shifts() -> Vec<Sample> {
    let mut samples = Vec::new();
    for key in
        ["meta mark", "tcp dport", "ip ttl", "ct bytes", "ip saddr", "ip dscp", "tcp sequence", "@th,0,16"]
    {
        for by in ["7", "8", "15", "16", "31", "32", "33", "63", "64", "65", "128", "255", "4294967296"] {
            for op in ["<<", ">>"] {
                let mut add =
                    |rule: String| samples.push(Sample { family: "inet", rule, about: About::Shifts });
                add(format!("{key} {op} {by} == 1"));
                add(format!("{key} {op} {by} == 0"));
                add(format!("meta mark set {key} {op} {by}"));
                add(format!("{key} 1 {op} {by}"));
                add(format!("{key} {{ 1 {op} {by} }}"));
                add(format!("meta mark set 1 {op} {by}"));
                add(format!("{key} & (1 {op} {by}) == 0"));
            }
        }
    }
    samples
}

/// Link addresses as numbers and otherwise.
fn addresses() -> Vec<Sample> {
    let keys = ["ether saddr", "ip saddr", "ip6 saddr"];
    let texts = ["11", "0x11", "017", "1:2", "1:2:3:4:5:6", "1.2", "1.2.3.4", "10.0.0.0/8", "1::/16", "::1"];
    let mut samples = Vec::new();
    for key in keys {
        for text in texts {
            for rule in [
                format!("{key} {text}"),
                format!("{key} != {text}"),
                format!("{key} {{ {text} }}"),
                format!("{key} . meta mark {{ {text} . 1 }}"),
                format!("{key} set {text}"),
            ] {
                samples.push(Sample { family: "bridge", rule, about: About::Addresses });
            }
        }
    }
    samples
}
