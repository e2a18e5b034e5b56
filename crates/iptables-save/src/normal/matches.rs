//! The saved form of a match beyond the order and spelling of its options: defaults, and options that stand
//! for others.

use super::options::Options;
use crate::ext::Family;
use crate::value::{bit_rate_text, hash_rate, string_bytes};

pub(super) fn fix(name: &str, options: &mut Options, family: Family) {
    match name {
        "tcp" => tcp(options),
        "udp" => ports(options, true),
        // The tool notes that they are said, even where they say nothing.
        "dccp" | "sctp" => ports(options, false),
        "ah" => drop_full(options, &["ahspi"]),
        "esp" => drop_full(options, &["espspi"]),
        "ipcomp" => {
            if options.has("compres") {
                options.default("ipcompspi", "0");
            }
            drop_full(options, &["ipcompspi"]);
        }
        "frag" => drop_full(options, &["fragid"]),
        "rt" => drop_full(options, &["rt-segsleft"]),
        "mh" => options.drop_value("mh-type", "0:255"),
        "icmp" => icmp(options),
        "ipv6header" => ipv6header(options),
        "cluster" => cluster(options),
        "connlimit" => connlimit(options, family),
        "conntrack" => conntrack(options),
        "dscp" => {
            if let Some(value) = options.value("dscp-class").map(str::to_owned) {
                options.replace("dscp-class", "dscp", [value]);
            }
        }
        "hashlimit" => hashlimit(options, family),
        "policy" => policy(options),
        "limit" => limit(options),
        "rateest" => rateest(options),
        "recent" => recent(options, family),
        "set" => counters_of_set(options),
        "statistic" => options.default("mode", "random"),
        "string" => string(options),
        "time" => time(options),
        _ => (),
    }
}

fn tcp(options: &mut Options) {
    options.replace("syn", "tcp-flags", ["FIN,SYN,RST,ACK".to_owned(), "SYN".to_owned()]);
    ports(options, true);
}

/// A negated range that starts or ends with all ports is the rest of them; the nft back end saves it so.
fn ports(options: &mut Options, drop_all: bool) {
    for name in ["source-port", "destination-port"] {
        if drop_all {
            options.drop_default(name, "0:65535");
        }
        let range =
            options.value(name).filter(|_| options.is_negated(name)).and_then(|value| value.split_once(':'));
        let rest = match range.map(|(low, high)| (low.parse::<u16>(), high.parse::<u16>())) {
            Some((Ok(0), Ok(high))) if high < u16::MAX => Some((high + 1, u16::MAX)),
            Some((Ok(low), Ok(u16::MAX))) if low > 0 => Some((0, low - 1)),
            _ => None,
        };
        if let Some((low, high)) = rest {
            options.flip(name);
            options.set(name, if low == high { low.to_string() } else { format!("{low}:{high}") });
        }
    }
}

fn drop_full(options: &mut Options, names: &[&str]) {
    names.iter().for_each(|name| options.drop_value(name, "0:4294967295"));
}

/// Of the names for one header, and its number, the longest is saved.
fn ipv6header(options: &mut Options) {
    let Some(headers) = options.value("header") else { return };
    let full = headers.split(',').map(|header| match header {
        "hop" | "0" => "hop-by-hop",
        "dst" | "60" => "ipv6-opts",
        "route" | "43" => "ipv6-route",
        "frag" | "44" => "ipv6-frag",
        "auth" | "51" => "ah",
        "none" | "59" => "ipv6-nonxt",
        "prot" | "255" => "protocol",
        "50" => "esp",
        other => other,
    });
    let mut full: Vec<_> = full.collect();
    full.dedup();
    let full = full.join(",");
    options.set("header", full);
}

fn icmp(options: &mut Options) {
    if matches!(options.value("icmp-type"), Some("255" | "255/255")) {
        options.set("icmp-type", "any");
    }
}

/// A node is saved as a mask of nodes.
fn cluster(options: &mut Options) {
    if let Some(node) = options.number("cluster-local-node").filter(|node| (1..=32).contains(node)) {
        options.replace(
            "cluster-local-node",
            "cluster-local-nodemask",
            [format!("{:#010x}", 1_u64 << (node - 1))],
        );
    }
}

fn connlimit(options: &mut Options, family: Family) {
    for (name, other) in [("connlimit-upto", "connlimit-above"), ("connlimit-above", "connlimit-upto")] {
        if options.is_negated(name) {
            let value = options.value(name).unwrap_or_default().to_owned();
            options.flip(name);
            options.replace(name, other, [value]);
            break;
        }
    }
    options.default("connlimit-mask", if family == Family::Ipv4 { "32" } else { "128" });
    if !options.has("connlimit-daddr") {
        options.default_flag("connlimit-saddr");
    }
}

fn conntrack(options: &mut Options) {
    if let Some(status) = options.value("ctstatus").and_then(|status| status.strip_prefix("NONE,")) {
        let status = status.to_owned();
        options.set("ctstatus", status);
    }
}

fn hashlimit(options: &mut Options, family: Family) {
    for (name, other) in [("hashlimit-upto", "hashlimit-above"), ("hashlimit-above", "hashlimit-upto")] {
        if options.is_negated(name) {
            let value = options.value(name).unwrap_or_default().to_owned();
            options.flip(name);
            options.replace(name, other, [value]);
            break;
        }
    }
    let rate = options
        .value("hashlimit-upto")
        .or_else(|| options.value("hashlimit-above"))
        .unwrap_or_default()
        .to_owned();
    if hash_rate(&rate).is_none() {
        options.default("hashlimit-burst", "5");
    }
    if let Some(mode) = options
        .value("hashlimit-mode")
        .map(|mode| mode.split(',').filter(|part| *part != "none").collect::<Vec<_>>().join(","))
    {
        options.set("hashlimit-mode", mode);
        options.drop_default("hashlimit-mode", "");
    }
    let full = if family == Family::Ipv4 { "32" } else { "128" };
    options.drop_default("hashlimit-srcmask", full);
    options.drop_default("hashlimit-dstmask", full);
    options.drop_default("hashlimit-htable-gcinterval", "1000");
    options.drop_default("hashlimit-rate-interval", "1");
    options.drop_default("hashlimit-htable-expire", expiry_of(&rate));
    options.drop_default("hashlimit-htable-size", "0");
    options.drop_default("hashlimit-htable-max", "0");
}

/// Returns the default time, in milliseconds, after which an entry expires.
fn expiry_of(rate: &str) -> &'static str {
    match rate.split_once('/').map(|(_, unit)| unit) {
        Some("min") => "60000",
        Some("hour") => "3600000",
        Some("day") => "86400000",
        _ => "1000",
    }
}

/// Without IPsec there is nothing to be saved of it.
fn policy(options: &mut Options) {
    options.default("pol", "ipsec");
    if options.value("pol") == Some("none") {
        options.list.retain(|option| matches!(&*option.name, "dir" | "pol"));
    }
}

fn limit(options: &mut Options) {
    if !options.has("limit") {
        options.set("limit", "3/hour");
    }
    options.drop_default("limit-burst", "5");
}

/// Shows the rates that decide, and of the others those that are not zero. The tool leaves the others out
/// even so, though `-D` compares them.
fn rateest(options: &mut Options) {
    let (delta, between_two) = (options.has("rateest-delta"), options.has("rateest2"));
    for (first, second, zero) in
        [("rateest-bps1", "rateest-bps2", "0bit"), ("rateest-pps1", "rateest-pps2", "0")]
    {
        if !options.has(first) && !options.has(second) {
            continue;
        }
        for (name, decides) in [(first, delta), (second, delta || !between_two)] {
            let rate = options.value(name).unwrap_or(zero);
            let rate = if zero == "0bit" { bit_rate_text(rate) } else { Some(rate.to_owned()) };
            match rate {
                Some(rate) if decides || rate != zero => options.set(name, rate),
                Some(_) => {
                    options.drop(name);
                    if name == second {
                        options.default_flag(name);
                    }
                }
                None => (),
            }
        }
    }
}

fn recent(options: &mut Options, family: Family) {
    options.drop_default("hitcount", "0");
    options.default("name", "DEFAULT");
    options.default("mask", if family == Family::Ipv4 { "255.255.255.255" } else { FULL6 });
    if !options.has("rdest") {
        options.default_flag("rsource");
    }
}

/// Counters are updated unless it is negated.
fn counters_of_set(options: &mut Options) {
    options.list.retain(|option| {
        option.negated || !matches!(&*option.name, "update-counters" | "update-subcounters")
    });
}

/// Text that can be printed is saved as text, other bytes in hexadecimal, however they were written.
fn string(options: &mut Options) {
    options.drop_default("from", "0");
    options.drop_default("to", "65535");
    for name in ["string", "hex-string"] {
        let Some(value) = options.value(name) else { continue };
        let Some(bytes) = string_bytes(value, name == "hex-string") else { continue };
        if bytes.iter().all(|byte| (0x20..0x7f).contains(byte)) {
            let text = String::from_utf8_lossy(&bytes).into_owned();
            options.replace(name, "string", [text]);
        } else {
            let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            options.replace(name, "hex-string", [format!("|{digits}|")]);
        }
        return;
    }
}

fn time(options: &mut Options) {
    options.drop("utc");
    options.drop_default("timestart", "00:00:00");
    options.drop_default("timestop", "23:59:59");
    options.drop_default("datestart", "1970-01-01T00:00:00");
    options.default("datestop", "2038-01-19T03:14:07");
    complement(options, "weekdays", &["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"].map(str::to_owned));
    complement(options, "monthdays", &(1..=31).map(|day| day.to_string()).collect::<Vec<_>>());
}

/// Negated days are saved as the other days; all days are not saved.
fn complement(options: &mut Options, name: &str, all: &[String]) {
    let Some(value) = options.value(name) else { return };
    let given: Vec<_> = value.split(',').collect();
    let wanted = options.is_negated(name);
    let days: Vec<_> = all.iter().map(String::as_str).filter(|day| given.contains(day) != wanted).collect();
    if days.len() == all.len() {
        return options.drop(name);
    }
    let days = days.join(",");
    if wanted {
        options.flip(name);
    }
    options.set(name, days);
}

const FULL6: &str = "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff";
