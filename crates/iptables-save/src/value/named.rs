//! Values that have names: protocols, ports, ICMP types, flags, priorities.

use super::{Read, number::decimal, number::integer};
use crate::ext::Family;
use crate::names;
use crate::vocabulary::TCP_FLAGS;

/// Returns a protocol by name or number, in the spelling of iptables-save.
pub(super) fn protocol(word: &str) -> Read {
    match protocol_number(word).filter(|_| names::is_exact(word)) {
        Some(number) => Ok(names::protocol_name(number).map_or_else(|| number.to_string(), str::to_owned)),
        None => Err("expected a protocol by name or number".into()),
    }
}

/// Reads a protocol. Where the tool has not made a word small before (`-p` does), `all` is no name in
/// capitals.
pub(super) fn protocol_as_number(word: &str) -> Read {
    if word != "all" && word.eq_ignore_ascii_case("all") {
        return Err("expected a protocol by name or number (`all` in small letters)".into());
    }
    protocol_number(word)
        .filter(|_| names::is_exact(word))
        .map(|number| number.to_string())
        .ok_or_else(|| "expected a protocol by name or number".into())
}

/// Returns the number of a protocol, by name in any case or by number; 0 for `all`.
#[must_use]
pub fn protocol_number(word: &str) -> Option<u8> {
    match integer(word) {
        Some(number) => u8::try_from(number).ok(),
        // The first two of /etc/protocols have the number of all.
        None if ["all", "ip", "hopopt"].iter().any(|all| word.eq_ignore_ascii_case(all)) => Some(0),
        None => names::protocol_number(word),
    }
}

/// Returns the number of a port that is written as a number or as the name of a service.
#[must_use]
pub fn port_number(word: &str) -> Option<u16> {
    port(word).ok()
}

pub(crate) fn port(word: &str) -> Result<u16, std::borrow::Cow<'static, str>> {
    let number = match integer(word) {
        Some(number) => u16::try_from(number).ok(),
        None => names::service_port(word),
    };
    number.ok_or_else(|| "expected a port from 0 to 65535, or the name of a service".into())
}

/// Reads a port as getaddrinfo(3) does: a decimal number, or a name.
pub(super) fn service_port(word: &str) -> Result<u16, std::borrow::Cow<'static, str>> {
    match decimal(word) {
        None if integer(word).is_some() => Err("expected a port in decimal, or the name of a service".into()),
        None => port(word),
        number => number
            .and_then(|number| u16::try_from(number).ok())
            .ok_or_else(|| "expected a port from 0 to 65535, or the name of a service".into()),
    }
}

/// Reads a range of ports of `-m tcp` and `-m sctp`.
pub(super) fn port_range(word: &str) -> Read {
    match range_of(word, port)? {
        (low, high) if low > high => Err("expected a range of ports that ends at or above its start".into()),
        range => Ok(shown(range)),
    }
}

/// Reads a range of ports of other matches, where it may end below its start.
pub(super) fn service_port_range(word: &str) -> Read {
    range_of(word, service_port).map(shown)
}

fn range_of(
    word: &str,
    port: fn(&str) -> Result<u16, std::borrow::Cow<'static, str>>,
) -> Result<(u16, u16), std::borrow::Cow<'static, str>> {
    if word.is_empty() {
        return Err("expected a port or a range of ports (`a:b`)".into());
    }
    let (low, high) = word.split_once(':').unwrap_or((word, word));
    let low = if low.is_empty() { 0 } else { port(low)? };
    let high = if high.is_empty() { u16::MAX } else { port(high)? };
    Ok((low, high))
}

fn shown((low, high): (u16, u16)) -> String {
    if low == high { low.to_string() } else { format!("{low}:{high}") }
}

/// Returns the list of the multiport match: at most 15 places, a range takes two.
pub(super) fn ports(word: &str) -> Read {
    let mut places = 0;
    let mut parts = Vec::new();
    for part in word.split(',') {
        let Some((low, high)) = part.split_once(':') else {
            places += 1;
            parts.push(port(part)?.to_string());
            continue;
        };
        places += 2;
        let (low, high) = (port(low)?, port(high)?);
        if low >= high {
            return Err("expected a range of ports that ends above its start".into());
        }
        parts.push(format!("{low}:{high}"));
    }
    if places > 15 {
        Err("expected at most 15 ports, of which a range takes two".into())
    } else {
        Ok(parts.join(","))
    }
}

pub(super) fn icmp(word: &str, types: &[(&str, u8, Option<u8>)], what: &str, any: bool) -> Read {
    if any && word.eq_ignore_ascii_case("any") {
        return Ok("any".to_owned());
    }
    let lower = word.to_ascii_lowercase();
    let exact = types.iter().find(|(name, ..)| name.eq_ignore_ascii_case(word));
    let mut begins =
        types.iter().filter(|(name, ..)| !word.is_empty() && name.to_ascii_lowercase().starts_with(&lower));
    let found = exact.or_else(|| {
        let first = begins.next()?;
        begins.next().is_none().then_some(first)
    });
    if let Some((_, kind, code)) = found {
        return Ok(code.map_or_else(|| kind.to_string(), |code| format!("{kind}/{code}")));
    }
    let byte = |part: &str| integer(part).and_then(|number| u8::try_from(number).ok());
    let number = match word.split_once('/') {
        Some((kind, code)) => byte(kind).zip(byte(code)).map(|(kind, code)| format!("{kind}/{code}")),
        None => byte(word).map(|kind| kind.to_string()),
    };
    number.ok_or_else(|| format!("expected an {what} type by name or number, as in `8` or `3/4`").into())
}

pub(super) fn mh(word: &str) -> Read {
    let one = |part: &str| {
        let named =
            names::MH.iter().find(|(name, _)| name.eq_ignore_ascii_case(part)).map(|(_, number)| *number);
        named.or_else(|| integer(part).and_then(|number| u8::try_from(number).ok()))
    };
    let wrong = || "expected a type of Mobility Header by name or number, or a range (`a:b`)".into();
    let Some((low, high)) = word.split_once(':') else {
        return one(word).map(|kind| kind.to_string()).ok_or_else(wrong);
    };
    let low = if low.is_empty() { Some(0) } else { one(low) };
    let high = if high.is_empty() { Some(u8::MAX) } else { one(high) };
    match low.zip(high) {
        Some((low, high)) if low == high => Ok(low.to_string()),
        Some((low, high)) if low < high => Ok(format!("{low}:{high}")),
        _ => Err(wrong()),
    }
}

pub(super) fn reject(word: &str, family: Family) -> Read {
    let kinds = if family == Family::Ipv4 { REJECT } else { REJECT6 };
    // iptables takes any prefix, and uses the first name that fits.
    let found = kinds.iter().find(|(name, alias)| {
        !word.is_empty()
            && [name, alias]
                .iter()
                .any(|full| full.get(..word.len()).is_some_and(|head| head.eq_ignore_ascii_case(word)))
    });
    found.map(|(name, _)| (*name).to_owned()).ok_or_else(|| {
        format!("expected one of {}", kinds.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", "))
            .into()
    })
}

pub(super) fn packet_type(word: &str) -> Read {
    match word.to_ascii_lowercase().as_str() {
        "unicast" | "host" => Ok("unicast".to_owned()),
        "broadcast" | "bcast" => Ok("broadcast".to_owned()),
        "multicast" | "mcast" => Ok("multicast".to_owned()),
        "otherhost" => Ok("otherhost".to_owned()),
        _ => Err("expected one of unicast, broadcast, multicast, otherhost".into()),
    }
}

pub(super) fn tos(word: &str) -> Read {
    if let Some((_, value)) = names::TOS.iter().find(|(name, _)| name.eq_ignore_ascii_case(word)) {
        return Ok(format!("{value:#04x}/0x3f"));
    }
    let byte = |part: &str| integer(part).and_then(|number| u8::try_from(number).ok());
    let (value, mask) = match word.split_once('/') {
        Some((value, mask)) => (byte(value), byte(mask)),
        None => (byte(word), Some(u8::MAX)),
    };
    match value.zip(mask) {
        Some((value, mask)) => Ok(format!("{value:#04x}/{mask:#04x}")),
        None => {
            Err("expected a type of service of 8 bits, with a mask if wanted, or one of Minimize-Delay, \
                     Maximize-Throughput, Maximize-Reliability, Minimize-Cost, Normal-Service"
                .into())
        }
    }
}

pub(super) fn dscp_class(word: &str) -> Read {
    match names::DSCP_CLASSES.iter().find(|(name, _)| name.eq_ignore_ascii_case(word)) {
        Some((_, value)) => Ok(format!("{value:#04x}")),
        None => Err("expected a class of differentiated services: CS0 to CS7, BE, AF11 to AF43, EF".into()),
    }
}

pub(super) fn log_level(word: &str) -> Read {
    let named = names::LOG_LEVELS.iter().find(|(name, _)| *name == word).map(|(_, level)| u64::from(*level));
    match named.or_else(|| integer(word)) {
        Some(level) if level <= 7 => Ok(level.to_string()),
        _ => Err("expected a level from 0 to 7, or its name in syslog(3)".into()),
    }
}

pub(super) fn tcp_flags(word: &str) -> Read {
    let mut bits = 0;
    let all = TCP_FLAGS.iter().fold(0, |all, (_, bit)| all | bit);
    let groups = [("ALL", all), ("NONE", 0)];
    for part in word.split(',') {
        match TCP_FLAGS.iter().chain(&groups).find(|(name, _)| name.eq_ignore_ascii_case(part)) {
            Some((_, bit)) => bits |= bit,
            None => {
                return Err("expected TCP flags (`a,b`) of SYN, ACK, FIN, RST, URG, PSH, ALL, NONE".into());
            }
        }
    }
    let single = TCP_FLAGS.iter().filter(|(_, bit)| bits & bit != 0);
    let names: Vec<_> = single.map(|(name, _)| *name).collect();
    Ok(if names.is_empty() { "NONE".to_owned() } else { names.join(",") })
}

pub(super) fn tcp_options(word: &str) -> Read {
    let mut kinds = Vec::new();
    for part in word.split(',') {
        let named = names::TCP_OPTIONS.iter().find(|(name, _)| *name == part).map(|(_, kind)| *kind);
        let kind = named.or_else(|| integer(part).and_then(|number| u8::try_from(number).ok()));
        // 0 and 1 end the options and fill them up; they have no length.
        let kind = kind.filter(|kind| *kind > 1).ok_or(
            "expected TCP options (`a,b`) by kind from 2 to 255, or of wscale, mss, sack-permitted, sack, \
             timestamp, md5",
        )?;
        if kinds.contains(&kind) {
            return Err(format!("expected each TCP option once, found {part} again").into());
        }
        kinds.push(kind);
    }
    kinds.sort_unstable();
    Ok(kinds.iter().map(ToString::to_string).collect::<Vec<_>>().join(","))
}

const REJECT: &[(&str, &str)] = &[
    ("icmp-net-unreachable", "net-unreach"),
    ("icmp-host-unreachable", "host-unreach"),
    ("icmp-proto-unreachable", "proto-unreach"),
    ("icmp-port-unreachable", "port-unreach"),
    ("icmp-net-prohibited", "net-prohib"),
    ("icmp-host-prohibited", "host-prohib"),
    ("tcp-reset", "tcp-rst"),
    ("icmp-admin-prohibited", "admin-prohib"),
];

const REJECT6: &[(&str, &str)] = &[
    ("icmp6-no-route", "no-route"),
    ("icmp6-adm-prohibited", "adm-prohibited"),
    ("icmp6-addr-unreachable", "addr-unreach"),
    ("icmp6-port-unreachable", "port-unreach"),
    ("tcp-reset", "tcp-reset"),
    ("icmp6-policy-fail", "policy-fail"),
    ("icmp6-reject-route", "reject-route"),
];
