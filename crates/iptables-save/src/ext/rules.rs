//! The conditions of an extension on its options taken together, and on the rest of the rule.

use std::borrow::Cow;

use super::{Family, Whole};
use crate::Condition::{self, Excludes, Needs, NoUse, Repeated};
use crate::names;
use crate::spec::OptionUse;
use crate::value::{Network, Value, hash_rate, integer, lists, protocol_number, seconds};

pub(super) type Checked = Result<(), Condition>;

impl Whole<'_> {
    fn has(&self, option: &str) -> bool {
        self.module.option(option).is_some()
    }

    fn any(&self, options: &[&str]) -> bool {
        options.iter().any(|option| self.has(option))
    }

    fn number(&self, option: &str) -> Option<u64> {
        integer(self.module.value(option)?)
    }

    fn protocol(&self) -> Option<u8> {
        protocol_number(self.spec.generic("protocol").filter(|option| !option.negated)?.value()?)
    }

    fn needs_one_of(&self, options: &[&'static str]) -> Checked {
        if self.any(options) { Ok(()) } else { Err(Condition::OneOf(options.to_vec())) }
    }

    /// Returns the error of a value that does not fit to the others.
    fn value(&self, option: &'static str, expected: impl Into<Cow<'static, str>>) -> Condition {
        let found = self.module.value(option).unwrap_or_default().to_owned();
        Condition::Value { option, expected: expected.into(), found }
    }

    fn no_use(&self, option: &'static str) -> Checked {
        Err(NoUse { option, chain: self.chain.to_owned() })
    }

    fn chain_is(&self, chains: &[&str]) -> bool {
        chains.contains(&self.chain)
    }
}

pub(super) fn nothing_more(_: &Whole<'_>) -> Checked {
    Ok(())
}

/// Checks that an option of group 1 is used.
pub(super) fn one_of_them(whole: &Whole<'_>) -> Checked {
    let rows = whole.extension.options.iter().filter(|row| row.group == 1);
    whole.needs_one_of(&rows.map(|row| row.name).collect::<Vec<_>>())
}

pub(super) fn one_at_least(whole: &Whole<'_>) -> Checked {
    whole.needs_one_of(&whole.extension.options.iter().map(|row| row.name).collect::<Vec<_>>())
}

pub(super) fn log_prefix(whole: &Whole<'_>) -> Checked {
    match ["log-prefix", "nflog-prefix"].into_iter().find(|name| whole.module.value(name) == Some("")) {
        Some(option) => Err(Needs { option, needs: "at least one character" }),
        None => Ok(()),
    }
}

pub(super) fn addrtype(whole: &Whole<'_>) -> Checked {
    whole.needs_one_of(&["src-type", "dst-type"])?;
    if whole.family == Family::Ipv6 {
        let kinds = Value::BeginningsOf(lists::ADDRESS_TYPES);
        let only_v4 = ["BROADCAST", "BLACKHOLE", "PROHIBIT", "THROW", "NAT", "XRESOLVE"];
        let is_unknown = |option: &&'static str| {
            let value = whole.module.value(option).and_then(|value| kinds.read(value, whole.family).ok());
            value.is_some_and(|value| value.split(',').any(|kind| only_v4.contains(&kind)))
        };
        if let Some(option) = ["src-type", "dst-type"].into_iter().find(is_unknown) {
            return Err(whole.value(option, "types that IPv6 has"));
        }
    }
    if whole.has("limit-iface-in") && whole.chain_is(&["OUTPUT", "POSTROUTING"]) {
        return whole.no_use("limit-iface-in");
    }
    if whole.has("limit-iface-out") && whole.chain_is(&["PREROUTING", "INPUT"]) {
        return whole.no_use("limit-iface-out");
    }
    Ok(())
}

pub(super) fn cluster(whole: &Whole<'_>) -> Checked {
    whole.needs_one_of(&["cluster-local-node", "cluster-local-nodemask"])?;
    let total = whole.number("cluster-total-nodes").unwrap_or_default();
    match whole.number("cluster-local-node") {
        Some(node) if node > total => {
            Err(whole.value("cluster-local-node", format!("at most --cluster-total-nodes, {total}")))
        }
        _ => match whole.number("cluster-local-nodemask") {
            Some(0) => Err(whole.value("cluster-local-nodemask", "at least one node")),
            Some(mask) if total < 32 && mask >= 1 << total => {
                let expected = format!("nodes up to --cluster-total-nodes, {total}");
                Err(whole.value("cluster-local-nodemask", expected))
            }
            _ => Ok(()),
        },
    }
}

pub(super) fn connlimit(whole: &Whole<'_>) -> Checked {
    whole.needs_one_of(&["connlimit-upto", "connlimit-above"])
}

pub(super) fn devgroup(whole: &Whole<'_>) -> Checked {
    whole.needs_one_of(&["src-group", "dst-group"])?;
    if whole.has("src-group") && whole.chain_is(&["OUTPUT", "POSTROUTING"]) {
        return whole.no_use("src-group");
    }
    if whole.has("dst-group") && whole.chain_is(&["PREROUTING", "INPUT"]) {
        return whole.no_use("dst-group");
    }
    Ok(())
}

pub(super) fn ecn(whole: &Whole<'_>) -> Checked {
    one_at_least(whole)?;
    tcp_for(whole, &["ecn-tcp-cwr", "ecn-tcp-ece"])
}

pub(super) fn ecn_target(whole: &Whole<'_>) -> Checked {
    one_at_least(whole)?;
    tcp_for(whole, &["ecn-tcp-remove", "ecn-tcp-cwr", "ecn-tcp-ece"])
}

fn tcp_for(whole: &Whole<'_>, options: &[&'static str]) -> Checked {
    match options.iter().find(|option| whole.has(option)) {
        Some(option) if whole.protocol() != Some(6) => Err(Needs { option, needs: "-p tcp" }),
        _ => Ok(()),
    }
}

pub(super) fn hashlimit(whole: &Whole<'_>) -> Checked {
    whole.needs_one_of(&["hashlimit-upto", "hashlimit-above"])?;
    if whole.has("hashlimit-rate-interval") && !whole.has("hashlimit-rate-match") {
        return Err(Needs { option: "hashlimit-rate-interval", needs: "--hashlimit-rate-match" });
    }
    let rate = ["hashlimit-upto", "hashlimit-above"]
        .iter()
        .find_map(|option| hash_rate(whole.module.value(option)?));
    let burst = whole.module.value("hashlimit-burst");
    match (rate, burst, burst.and_then(hash_rate)) {
        (Some(rate), Some(_), Some(bytes)) if bytes < rate => {
            Err(whole.value("hashlimit-burst", format!("at least the rate, {rate} bytes")))
        }
        (None, Some(_), Some(_)) => {
            Err(whole.value("hashlimit-burst", "a number of packets, as the rate is in packets"))
        }
        (Some(_), Some(_), None) => {
            Err(whole.value("hashlimit-burst", "bytes, as in `16kb`, as the rate is in bytes"))
        }
        _ => Ok(()),
    }
}

pub(super) fn multiport(whole: &Whole<'_>) -> Checked {
    one_of_them(whole)?;
    let protocol = whole.protocol().unwrap_or_default();
    let values = whole.module.options.iter().filter_map(OptionUse::value);
    match values.flat_map(|value| value.split([',', ':'])).find(|port| unknown_service(port, protocol)) {
        Some(port) => Err(Condition::Service(port.to_owned())),
        None => Ok(()),
    }
}

/// Service names of ports, where the tool asks for those of the match's own protocol (not those of UDP and
/// DCCP).
pub(super) fn own_services(whole: &Whole<'_>) -> Checked {
    let protocol = protocol_number(whole.extension.name).unwrap_or_default();
    let ports = ["source-port", "destination-port"].iter().filter_map(|name| whole.module.value(name));
    let mut ports = ports.flat_map(|value| value.split(':')).filter(|port| !port.is_empty());
    match ports.find(|port| unknown_service(port, protocol)) {
        Some(port) => Err(Condition::Service(port.to_owned())),
        None => Ok(()),
    }
}

fn unknown_service(port: &str, protocol: u8) -> bool {
    integer(port).is_none() && !names::service_has(port, protocol)
}

pub(super) fn time(whole: &Whole<'_>) -> Checked {
    let seconds = |option| whole.module.value(option).and_then(crate::value::seconds_of_day);
    match (whole.has("contiguous"), seconds("timestart").unwrap_or(0), seconds("timestop").unwrap_or(86_399))
    {
        // A period that ends on the day that it begins on is contiguous by itself.
        (true, start, stop) if start < stop => {
            Err(Needs { option: "contiguous", needs: "--timestop below --timestart, after midnight" })
        }
        _ => Ok(()),
    }
}

/// Checks that the interval is one of six and the averaging constant a power of two of it that fits the
/// kernel's field.
pub(super) fn rateest_target(whole: &Whole<'_>) -> Checked {
    let time = |option| whole.module.value(option).and_then(seconds).unwrap_or_default();
    let (interval, average) = (time("rateest-interval"), time("rateest-ewmalog"));
    if ![0.25, 0.5, 1.0, 2.0, 4.0, 8.0].contains(&interval) {
        return Err(whole.value("rateest-interval", "one of 250ms, 500ms, 1s, 2s, 4s, 8s"));
    }
    let logs = (1..32).find(|log| -interval / (1.0 - 1.0 / f64::from(1_u32 << log)).ln() > average);
    match logs.unwrap_or(32) {
        2..=31 => Ok(()),
        _ => Err(whole.value("rateest-ewmalog", "a time in the range that goes with --rateest-interval")),
    }
}

pub(super) fn owner(whole: &Whole<'_>) -> Checked {
    whole.needs_one_of(&["uid-owner", "gid-owner", "socket-exists"])?;
    let place = |name| whole.module.options.iter().position(|option| option.name == name);
    match (place("gid-owner"), place("suppl-groups")) {
        (None, Some(_)) => Err(Needs { option: "suppl-groups", needs: "--gid-owner" }),
        (Some(group), Some(others)) if others < group => {
            Err(Needs { option: "suppl-groups", needs: "--gid-owner before it" })
        }
        _ => Ok(()),
    }
}

pub(super) fn policy(whole: &Whole<'_>) -> Checked {
    if whole.module.value("dir") == Some("in") && whole.chain_is(&["POSTROUTING", "OUTPUT"]) {
        return whole.no_use("dir in");
    }
    if whole.module.value("dir") == Some("out") && whole.chain_is(&["PREROUTING", "INPUT"]) {
        return whole.no_use("dir out");
    }
    if whole.module.value("pol") == Some("none") {
        for option in ["strict", "next"] {
            if whole.has(option) {
                return Err(Excludes { option, other: "--pol none" });
            }
        }
    }
    let elements = 1 + whole.module.options.iter().filter(|option| option.name == "next").count();
    if elements > 4 {
        return Err(Condition::PolicyElements(elements));
    }
    policy_elements(whole)
}

fn policy_elements(whole: &Whole<'_>) -> Checked {
    let (strict, none) = (whole.has("strict"), whole.module.value("pol") == Some("none"));
    let options = &whole.module.options;
    for element in options.split(|option| option.name == "next") {
        let has = |names: &[&str]| element.iter().any(|option| names.contains(&&*option.name));
        if strict && !has(&["reqid", "spi", "proto", "mode", "tunnel-src", "tunnel-dst"]) {
            return Err(Needs { option: "strict", needs: "an option in each policy element" });
        }
        let is_tunnel = |option: &OptionUse<'_>| {
            option.name == "mode" && (option.value() == Some("tunnel")) != option.negated
        };
        let needs_tunnel = !none && !element.iter().any(is_tunnel);
        let mut ends = ["tunnel-src", "tunnel-dst"].into_iter();
        if let Some(option) = ends.find(|option| needs_tunnel && has(&[option])) {
            return Err(Needs { option, needs: "--mode tunnel" });
        }
        let protocol =
            element.iter().filter(|option| option.name == "proto").find_map(|option| option.value());
        if let Some(value) = protocol.filter(|value| !matches!(protocol_number(value), Some(50 | 51 | 108))) {
            let expected = Cow::Borrowed("one of ah, esp, ipcomp");
            return Err(Condition::Value { option: "proto", expected, found: value.to_owned() });
        }
        for (at, option) in element.iter().enumerate() {
            if element.iter().skip(at + 1).any(|other| other.name == option.name) {
                return Err(Repeated(option.name.clone().into_owned()));
            }
        }
    }
    Ok(())
}

pub(super) fn rateest(whole: &Whole<'_>) -> Checked {
    whole.needs_one_of(&["rateest1"])?;
    whole.needs_one_of(&["rateest-lt", "rateest-gt", "rateest-eq"])?;
    whole.needs_one_of(&["rateest-bps1", "rateest-pps1", "rateest-bps2", "rateest-pps2"])
}

/// Includes the checks of the kernel (`recent_mt_check`).
pub(super) fn recent(whole: &Whole<'_>) -> Checked {
    whole.needs_one_of(&["set", "rcheck", "update", "remove"])?;
    for (action, other) in [("set", "--set"), ("remove", "--remove")] {
        for option in ["seconds", "hitcount", "rttl", "reap"] {
            if whole.has(action) && whole.has(option) {
                return Err(Excludes { option, other });
            }
        }
    }
    match whole.number("hitcount") {
        Some(hits) if hits > 65_535 => Err(whole.value("hitcount", "at most 65535")),
        _ => Ok(()),
    }
}

pub(super) fn rt(whole: &Whole<'_>) -> Checked {
    let zero = whole.number("rt-type") == Some(0)
        && whole.module.option("rt-type").is_some_and(|option| !option.negated);
    let of_zero = ["rt-0-res", "rt-0-addrs", "rt-0-not-strict"];
    if let Some(option) = of_zero.into_iter().find(|option| !zero && whole.has(option)) {
        return Err(Needs { option, needs: "--rt-type 0" });
    }
    if whole.has("rt-0-not-strict") && !whole.has("rt-0-addrs") {
        return Err(Needs { option: "rt-0-not-strict", needs: "--rt-0-addrs" });
    }
    Ok(())
}

pub(super) fn set(whole: &Whole<'_>) -> Checked {
    whole.needs_one_of(&["match-set"])
}

pub(super) fn statistic(whole: &Whole<'_>) -> Checked {
    let (mode, needed, others): (_, _, &[&'static str]) = match whole.module.value("mode") {
        Some("random") => ("--mode random", "probability", &["every", "packet"]),
        _ => ("--mode nth", "every", &["probability"]),
    };
    if let Some(option) = others.iter().find(|option| whole.has(option)) {
        return Err(Excludes { option, other: mode });
    }
    whole.needs_one_of(&[needed])?;
    match (whole.number("packet"), whole.number("every")) {
        (Some(packet), Some(every)) if packet >= every => {
            Err(whole.value("packet", format!("less than --every, {every}")))
        }
        _ => Ok(()),
    }
}

pub(super) fn string(whole: &Whole<'_>) -> Checked {
    whole.needs_one_of(&["string", "hex-string"])?;
    match (whole.number("from"), whole.number("to")) {
        (Some(from), Some(to)) if from > to => Err(whole.value("from", format!("at most --to, {to}"))),
        _ => Ok(()),
    }
}

pub(super) fn clusterip(whole: &Whole<'_>) -> Checked {
    let needed = ["hashmode", "clustermac", "total-nodes", "local-node"];
    if !whole.has("new") {
        return match needed.iter().chain(&["hash-init"]).find(|option| whole.has(option)) {
            Some(option) => Err(Needs { option, needs: "--new" }),
            None => Ok(()),
        };
    }
    for option in needed {
        whole.needs_one_of(&[option])?;
    }
    // `01:00:5e` and the like: the bit of the first byte that says multicast.
    let first = whole.module.value("clustermac").and_then(|address| address.get(..2));
    match first.and_then(|first| u8::from_str_radix(first, 16).ok()) {
        Some(first) if first & 1 == 0 => Err(whole.value("clustermac", "a multicast address")),
        _ => Ok(()),
    }
}

pub(super) fn connmark(whole: &Whole<'_>) -> Checked {
    one_of_them(whole)?;
    let copies = whole.any(&["save-mark", "restore-mark"]);
    for option in ["nfmask", "ctmask", "mask"] {
        if whole.has(option) && !copies {
            return Err(Needs { option, needs: "--save-mark or --restore-mark" });
        }
    }
    if whole.has("mask") && whole.any(&["nfmask", "ctmask"]) {
        return Err(Excludes { option: "mask", other: "--nfmask and --ctmask" });
    }
    Ok(())
}

/// Checks that the protocol has ports.
pub(super) fn nat_ports(whole: &Whole<'_>) -> Checked {
    let with_port = ["to-ports", "to-destination", "to-source"].into_iter().find(|option| {
        whole.module.value(option).is_some_and(|value| {
            *option == "to-ports"
                || match whole.family {
                    Family::Ipv4 => value.contains(':'),
                    Family::Ipv6 => {
                        value.contains("]:") || value.starts_with(':') && !value.starts_with("::")
                    }
                }
        })
    });
    // The tool does not ask whether the protocol is negated.
    let protocol = whole.spec.generic("protocol").and_then(|option| protocol_number(option.value()?));
    match (with_port, protocol) {
        (Some(_), Some(6 | 17 | 33 | 132 | 1 | 58)) | (None, _) => Ok(()),
        (Some(option), _) => Err(Needs { option, needs: "-p tcp, udp, sctp or dccp for a port" }),
    }
}

pub(super) fn netmap(whole: &Whole<'_>) -> Checked {
    let value = whole.module.value("to").unwrap_or_default();
    let mask = value.split_once('/').map(|(_, mask)| mask);
    match mask.map(str::parse::<u32>) {
        Some(Err(_)) if Network::read(value, whole.family).is_ok_and(|network| !network.is_prefix()) => {
            Err(whole.value("to", "a mask that is a prefix"))
        }
        _ => Ok(()),
    }
}

pub(super) fn prefix_translation(whole: &Whole<'_>) -> Checked {
    for option in ["src-pfx", "dst-pfx"] {
        let value = whole.module.value(option).unwrap_or_default();
        let length = value.split_once('/').map(|(_, length)| length.parse::<u32>());
        if !matches!(length, Some(Ok(0..=64))) {
            return Err(whole.value(option, "a prefix of at most 64 bits"));
        }
        let network = Network::read(value, whole.family).map(Network::normal).ok();
        if network != Value::HostMask.read(value, whole.family).ok() {
            return Err(whole.value(option, "no bits behind the prefix"));
        }
    }
    Ok(())
}

pub(super) fn hmark(whole: &Whole<'_>) -> Checked {
    let ports = ["hmark-sport-mask", "hmark-dport-mask", "hmark-sport", "hmark-dport"];
    let has_spi = whole.any(&["hmark-spi-mask", "hmark-spi"]);
    if let Some(option) = ports.into_iter().find(|option| has_spi && whole.has(option)) {
        return Err(Excludes { option, other: "--hmark-spi and --hmark-spi-mask" });
    }
    whole.needs_one_of(&["hmark-rnd"])?;
    whole.needs_one_of(&[
        "hmark-tuple",
        "hmark-src-prefix",
        "hmark-dst-prefix",
        "hmark-sport-mask",
        "hmark-dport-mask",
        "hmark-spi-mask",
        "hmark-proto-mask",
    ])
}

pub(super) fn reject(whole: &Whole<'_>) -> Checked {
    match whole.module.value("reject-with") {
        Some(value) if value.starts_with("tcp") && whole.protocol() != Some(6) => {
            Err(Needs { option: "reject-with tcp-reset", needs: "-p tcp" })
        }
        _ => Ok(()),
    }
}

pub(super) fn set_target(whole: &Whole<'_>) -> Checked {
    whole.needs_one_of(&["add-set", "del-set", "map-set"])?;
    if whole.has("map-set") {
        whole.needs_one_of(&["map-mark", "map-prio", "map-queue"])?;
        if whole.table != "mangle" {
            return Err(Needs { option: "map-set", needs: "table mangle" });
        }
        if whole.has("map-prio") && whole.chain_is(&["PREROUTING", "INPUT"]) {
            return whole.no_use("map-prio");
        }
    }
    Ok(())
}

pub(super) fn tcpmss(whole: &Whole<'_>) -> Checked {
    if whole.has("clamp-mss-to-pmtu") && whole.chain_is(&["PREROUTING", "INPUT"]) {
        return whole.no_use("clamp-mss-to-pmtu");
    }
    match whole.spec.matches.iter().any(takes_only_syn) {
        true => Ok(()),
        false => Err(Condition::Syn),
    }
}

fn takes_only_syn(module: &crate::Module<'_>) -> bool {
    let flags = module.option("tcp-flags").filter(|option| !option.negated).is_some_and(|option| {
        let demanded = option.values.as_slice().get(1);
        demanded.is_some_and(|flags| {
            flags.split(',').any(|flag| matches!(flag.to_ascii_uppercase().as_str(), "SYN" | "ALL"))
        })
    });
    flags || module.option("syn").is_some_and(|option| !option.negated)
}
