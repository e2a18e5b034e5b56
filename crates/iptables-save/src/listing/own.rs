//! What `-L` writes for extensions whose options are listed in another order, or with other values, than they
//! are saved.

use crate::spec::{Module, OptionUse};
use crate::value::protocol_number;
use crate::vocabulary;

/// Returns what is listed for an option; nothing without it.
fn of(module: &Module<'_>, name: &str, text: impl FnOnce(&str, bool) -> String) -> String {
    let option = module.option(name);
    option.map_or_else(String::new, |option| text(option.value().unwrap_or_default(), option.negated))
}

fn not(negated: bool) -> &'static str {
    if negated { "! " } else { "" }
}

/// Returns an s for a range, as in `spis:1:10`.
fn plural(value: &str) -> &'static str {
    if value.contains(':') { "s" } else { "" }
}

fn id(label: &str, value: &str, negated: bool) -> String {
    format!("{label}{}:{}{value}", plural(value), if negated { "!" } else { "" })
}

pub(super) fn ah_of_ipv4(module: &Module<'_>) -> String {
    format!(" ah {}", of(module, "ahspi", |spi, not| id("spi", spi, not)))
}

/// The tool leaves out the blank between the index and the length.
pub(super) fn ah_of_ipv6(module: &Module<'_>) -> String {
    let spi = of(module, "ahspi", |spi, not| id("spi", spi, not));
    let length = of(module, "ahlen", |length, not| id("length", length, not));
    let reserved = of(module, "ahres", |_, _| " reserved".to_owned());
    format!(" ah {spi}{length}{reserved}")
}

pub(super) fn frag(module: &Module<'_>) -> String {
    let mut text = format!(" frag {}", of(module, "fragid", |spi, not| id("id", spi, not)));
    text += &of(module, "fraglen", |length, not| format!(" {}", id("length", length, not)));
    for (name, word) in
        [("fragres", "reserved"), ("fragfirst", "first"), ("fragmore", "more"), ("fraglast", "last")]
    {
        text += &of(module, name, |_, _| format!(" {word}"));
    }
    text
}

/// The number of instructions is left out, and so is the blank before the text. The tool ends it with a zero
/// byte.
pub(super) fn bpf(module: &Module<'_>) -> String {
    let program = of(module, "bytecode", |code, _| {
        let (_, instructions) = code.split_once(',').unwrap_or_default();
        format!("match bpf {instructions}\0")
    });
    program + &of(module, "object-pinned", |path, _| format!("match bpf pinned {path}"))
}

/// Rates in bytes, unlike the saved ones, and the comparison in another place for packets.
pub(super) fn rateest(module: &Module<'_>) -> String {
    let modes = ["lt", "gt", "eq"].into_iter();
    let mode: String = modes
        .map(|mode| of(module, &format!("rateest-{mode}"), |_, negated| format!(" {}{mode}", not(negated))))
        .collect();
    let delta = module.option("rateest-delta").is_some();
    let value = |name: &str| {
        let rate = module.value(name).unwrap_or("0");
        format!(" {}", bytes_of(rate).map_or_else(|| rate.to_owned(), |bytes| bytes.to_string()))
    };
    let second = module.value("rateest2");
    let mut text = format!(" rateest match {}", module.value("rateest1").unwrap_or_default());
    if delta {
        text += " delta";
    }
    let units = ["bps", "pps"].into_iter();
    let units: Vec<_> = units.filter(|unit| module.option(&format!("rateest-{unit}2")).is_some()).collect();
    for unit in &units {
        text += &format!(" {unit}");
        if delta {
            text += &value(&format!("rateest-{unit}1"));
        }
        let limit = value(&format!("rateest-{unit}2"));
        match (second, *unit) {
            (Some(_), _) => (),
            (None, "bps") => text += &format!("{limit}{mode}"),
            (None, _) => text += &format!("{mode}{limit}"),
        }
    }
    let Some(second) = second else { return text };
    text += &format!("{mode} {second}");
    for unit in units {
        text += &format!(" {unit}");
        if delta {
            text += &value(&format!("rateest-{unit}2"));
        }
    }
    text
}

/// Returns the bytes of a rate as iptables-save has it.
fn bytes_of(rate: &str) -> Option<u64> {
    let (digits, factor) = match (rate.strip_suffix("Mbit"), rate.strip_suffix("Kbit")) {
        (Some(digits), _) => (digits, 1_000_000),
        (_, Some(digits)) => (digits, 1000),
        _ => (rate.strip_suffix("bit")?, 1),
    };
    digits.parse::<u64>().ok()?.checked_mul(factor).map(|bits| bits / 8)
}

pub(super) fn clusterip(module: &Module<'_>) -> String {
    let mut text = " CLUSTERIP".to_owned();
    for (name, label) in [
        ("hashmode", "hashmode"),
        ("clustermac", "clustermac"),
        ("total-nodes", "total_nodes"),
        ("local-node", "local_node"),
        ("hash-init", "hash_init"),
    ] {
        text += &of(module, name, |value, _| format!(" {label}={value}"));
    }
    text
}

pub(super) fn led(module: &Module<'_>) -> String {
    let id = module.value("led-trigger-id").unwrap_or_default();
    let delay = match module.value("led-delay") {
        Some("inf") => "inf".to_owned(),
        delay => format!("{}ms", delay.unwrap_or("0")),
    };
    let blink = of(module, "led-always-blink", |_, _| " led-always-blink".to_owned());
    format!(" led-trigger-id:\"{id}\" led-delay:{delay}{blink}")
}

pub(super) fn ulog(module: &Module<'_>) -> String {
    let value = |name, default| module.value(name).unwrap_or(default);
    let prefix = of(module, "ulog-prefix", |prefix, _| format!(" prefix \"{prefix}\""));
    format!(
        " ULOG copy_range {} nlgroup {}{prefix} queue_threshold {}",
        value("ulog-cprange", "0"),
        value("ulog-nlgroup", "1"),
        value("ulog-qthreshold", "1")
    )
}

pub(super) fn connlimit(module: &Module<'_>) -> String {
    let side = if module.option("connlimit-daddr").is_some() { "dst" } else { "src" };
    let mask = module.value("connlimit-mask").unwrap_or_default();
    let upto = of(module, "connlimit-upto", |count, _| format!("<= {count}"));
    let above = of(module, "connlimit-above", |count, _| format!("> {count}"));
    format!(" #conn {side}/{mask} {upto}{above}")
}

pub(super) fn dccp(option: &OptionUse<'_>) -> Option<String> {
    let types = option.value().filter(|_| option.name == "dccp-types")?;
    // In the order of the words, each type by its number.
    let numbers = types.split(',').flat_map(|name| {
        let bits = vocabulary::bits(name, vocabulary::DCCP_TYPES);
        (0..u32::BITS).filter(move |number| bits & 1 << number != 0).map(|number| number.to_string())
    });
    let numbers: Vec<_> = numbers.collect();
    Some(format!("{}{}", not(option.negated), numbers.join(",")))
}

pub(super) fn sctp(option: &OptionUse<'_>) -> Option<String> {
    let [mode, chunks] = option.values.as_slice() else { return None };
    let number = |chunk: &str| {
        let (name, flags) = chunk.find(':').map_or((chunk, ""), |at| chunk.split_at(at));
        let chunk = vocabulary::SCTP_CHUNKS.iter().find(|(known, ..)| *known == name);
        chunk.map_or(name.to_owned(), |(_, number, _)| format!("0x{number:04X}{flags}"))
    };
    let chunks: Vec<_> = chunks.split(',').map(number).collect();
    Some(format!("{}{mode} {}", not(option.negated), chunks.join(",")))
}

pub(super) fn tcp(option: &OptionUse<'_>) -> Option<String> {
    let [mask, set] = option.values.as_slice() else { return None };
    let bits = |names: &str| vocabulary::bits(names, vocabulary::TCP_FLAGS);
    let negated = if option.negated { "!" } else { "" };
    Some(format!("flags:{negated}0x{:02X}/0x{:02X}", bits(mask), bits(set)))
}

/// `3/4` is listed as `icmptype 3 code 4`, `any` by the number that the kernel has for it.
pub(super) fn icmp(module: &Module<'_>, plain: &str, negated: &str) -> String {
    let option = module.options.first();
    let value = option.and_then(OptionUse::value).unwrap_or_default();
    let (kind, code) = match value.split_once('/') {
        Some((kind, code)) => (kind, Some(code)),
        None if value == "any" => ("255", None),
        None => (value, None),
    };
    let head = match option.is_some_and(|option| option.negated) {
        true => format!("{negated} !type"),
        false => plain.to_owned(),
    };
    let code = code.map_or_else(String::new, |code| format!(" code {code}"));
    format!(" {head} {kind}{code}")
}

/// The tool knows the group 0 by no name here.
pub(super) fn devgroup(option: &OptionUse<'_>) -> Option<String> {
    (option.value()? == "default").then(|| format!("{}{} 0x0", not(option.negated), option.name))
}

pub(super) fn ipv6header(option: &OptionUse<'_>) -> Option<String> {
    let headers = option.value()?;
    let bits = vocabulary::bits(headers, vocabulary::IPV6_HEADERS);
    Some(format!("flags:{}0x{bits:02X}", if option.negated { "!" } else { "" }))
}

/// A burst of five is not saved, but listed.
pub(super) fn limit(module: &Module<'_>) -> String {
    let burst = module.value("limit-burst").unwrap_or("5");
    format!(" limit: avg {} burst {burst}", module.value("limit").unwrap_or_default())
}

/// The name is not listed. A rate over an interval is listed for a second, rounded down.
pub(super) fn hashlimit(module: &Module<'_>) -> String {
    let mut text = " limit:".to_owned();
    let interval = module.value("hashlimit-rate-interval").and_then(|seconds| seconds.parse::<u64>().ok());
    let rate = |rate: &str| match (rate.split_once('/'), interval) {
        (Some((count, unit)), Some(seconds)) if seconds > 0 => {
            let count = count.parse::<u64>().map_or(count.to_owned(), |count| (count / seconds).to_string());
            format!("{count}/{unit}")
        }
        _ => rate.to_owned(),
    };
    for option in &module.options {
        let value = option.value().unwrap_or_default();
        text += &match option.name.strip_prefix("hashlimit-").unwrap_or(&option.name) {
            "upto" => format!(" up to {}", rate(value)),
            "above" => format!(" above {}", rate(value)),
            "mode" => format!(" mode {}", value.replace(',', "-")),
            "name" => String::new(),
            "rate-match" => " rate-match".to_owned(),
            other => format!(" {other} {value}"),
        };
    }
    text
}

/// Elements are numbered if there are several; protocols are numbers.
pub(super) fn policy(module: &Module<'_>) -> String {
    let several = module.option("next").is_some();
    let mut text = " policy match".to_owned();
    let (mut element, mut begun) = (0, false);
    for option in &module.options {
        let value = option.value().unwrap_or_default();
        match &*option.name {
            "dir" | "pol" => text += &format!(" {} {value}", option.name),
            "strict" => text += " strict",
            "next" => (element, begun) = (element + 1, false),
            name => {
                if several && !std::mem::replace(&mut begun, true) {
                    text += &format!(" [{element}]");
                }
                let number = protocol_number(value).map(|number| number.to_string());
                let value = number.filter(|_| name == "proto").unwrap_or_else(|| value.to_owned());
                text += &format!(" {}{name} {value}", not(option.negated));
            }
        }
    }
    text
}

/// The side is listed before the mask.
pub(super) fn recent(module: &Module<'_>) -> String {
    let mut text = String::new();
    for (name, word) in [("set", "SET"), ("rcheck", "CHECK"), ("update", "UPDATE"), ("remove", "REMOVE")] {
        text += &of(module, name, |_, negated| format!(" {}recent: {word}", not(negated)));
    }
    text += &of(module, "seconds", |seconds, _| format!(" seconds: {seconds}"));
    text += &of(module, "reap", |_, _| " reap".to_owned());
    text += &of(module, "hitcount", |count, _| format!(" hit_count: {count}"));
    text += &of(module, "rttl", |_, _| " TTL-Match".to_owned());
    text += &of(module, "name", |name, _| format!(" name: {name}"));
    text += &of(module, "rsource", |_, _| " side: source".to_owned());
    text += &of(module, "rdest", |_, _| " side: dest".to_owned());
    text + &of(module, "mask", |mask, _| format!(" mask: {mask}"))
}

/// The first packet is not listed.
pub(super) fn statistic(option: &OptionUse<'_>) -> Option<String> {
    (option.name == "packet" && option.value() == Some("0")).then(String::new)
}

/// A blank stands where a negated one has `!`.
pub(super) fn string(option: &OptionUse<'_>) -> Option<String> {
    let value = option.value().filter(|_| matches!(&*option.name, "string" | "hex-string"))?;
    let value = value.replace('\\', "\\\\").replace('"', "\\\"");
    Some(format!("{} \"{value}\"", if option.negated { "!" } else { "" }))
}

/// The end of time is not listed.
pub(super) fn time(module: &Module<'_>) -> String {
    let mut text = " TIME".to_owned();
    text += &of(module, "timestart", |start, _| format!(" from {start}"));
    text += &of(module, "timestop", |stop, _| format!(" to {stop}"));
    text += &of(module, "weekdays", |days, negated| format!(" {}on {days}", not(negated)));
    text += &of(module, "monthdays", |days, negated| {
        let days: Vec<_> = days.split(',').map(ordinal).collect();
        format!(" {}on {}", not(negated), days.join(","))
    });
    text += &of(module, "datestart", |date, _| format!(" starting from {}", date.replace('T', " ")));
    let last = |date: &str| date.starts_with("2038-01-19T");
    if module.value("datestop").is_some_and(|date| !last(date)) {
        text += &of(module, "datestop", |date, _| format!(" until date {}", date.replace('T', " ")));
    }
    if module.option("kerneltz").is_none() {
        text += " UTC";
    }
    text + &of(module, "contiguous", |_, _| " contiguous".to_owned())
}

/// As the tool has it: `11st`, `12nd`, `13rd`.
fn ordinal(day: &str) -> String {
    let ending = match day.bytes().last() {
        Some(b'1') => "st",
        Some(b'2') => "nd",
        Some(b'3') => "rd",
        _ => "th",
    };
    format!("{day}{ending}")
}

pub(super) fn classify(module: &Module<'_>) -> String {
    let class = module.value("set-class").unwrap_or_default();
    let short = |number: &str| match number.trim_start_matches('0') {
        "" => "0".to_owned(),
        number => number.to_owned(),
    };
    let (major, minor) = class.split_once(':').unwrap_or_default();
    format!(" CLASSIFY set {}:{}", short(major), short(minor))
}

pub(super) fn connmark(module: &Module<'_>) -> String {
    let mut text = " CONNMARK".to_owned();
    text += &of(module, "set-xmark", |value, _| set_mark(value));
    for (option, word, first, second) in
        [("save-mark", "save", "nfmask", "ctmask"), ("restore-mark", "restore", "ctmask", "nfmask")]
    {
        let [one, two] = [first, second].map(|name| module.value(name).unwrap_or_default());
        text += &of(module, option, |_, _| match (one, two) {
            ("0xffffffff", "0xffffffff") => format!(" {word}"),
            _ if one == two => format!(" {word} mask {one}"),
            _ => format!(" {word} {first} {one} {second} ~{two}"),
        });
    }
    for name in ["left-shift-mark", "right-shift-mark"] {
        text += &of(module, name, |bits, _| format!(" {name} {bits}"));
    }
    text
}

pub(super) fn mark(module: &Module<'_>) -> String {
    format!(" MARK{}", of(module, "set-xmark", |value, _| set_mark(value)))
}

/// A mark and its mask are listed as what they do.
fn set_mark(value: &str) -> String {
    let number = |digits: &str| u32::from_str_radix(digits.trim_start_matches("0x"), 16).unwrap_or_default();
    let (mark, mask) =
        value.split_once('/').map_or((number(value), u32::MAX), |(mark, mask)| (number(mark), number(mask)));
    match (mark, mask) {
        (0, mask) => format!(" and 0x{:x}", !mask),
        (mark, mask) if mark == mask => format!(" or 0x{mark:x}"),
        (mark, 0) => format!(" xor 0x{mark:x}"),
        (mark, u32::MAX) => format!(" set 0x{mark:x}"),
        (mark, mask) => format!(" xset 0x{mark:x}/0x{mask:x}"),
    }
}

/// The modulus comes first. ip6tables lists a prefix of all 128 bits as nothing.
pub(super) fn hmark(module: &Module<'_>) -> String {
    let hex = |value: &str| match value.trim_start_matches("0x").trim_start_matches('0') {
        "" => "0x0".to_owned(),
        digits => format!("0x{digits}"),
    };
    let mut text = " HMARK".to_owned();
    text += &of(module, "hmark-mod", |modulus, _| format!(" mod {modulus}"));
    text += &of(module, "hmark-offset", |offset, _| {
        offset.parse::<u32>().map_or_else(|_| format!(" + {offset}"), |offset| format!(" + 0x{offset:x}"))
    });
    text += &of(module, "hmark-tuple", |tuple, _| format!(" {tuple},"));
    for option in &module.options {
        let value = option.value().unwrap_or_default();
        let name = option.name.strip_prefix("hmark-").unwrap_or(&option.name);
        text += &match name {
            "mod" | "offset" | "tuple" => continue,
            "src-prefix" | "dst-prefix" if value == "128" => format!(" {name} "),
            "src-prefix" | "dst-prefix" => format!(" {name} {value}"),
            _ => format!(" {name} {}", hex(value)),
        };
    }
    text + " "
}

/// Flags are a number: `NF_LOG_*` of `linux/netfilter/nf_log.h`.
pub(super) fn log(module: &Module<'_>) -> String {
    let flags = [
        ("log-tcp-sequence", 1),
        ("log-tcp-options", 2),
        ("log-ip-options", 4),
        ("log-uid", 8),
        ("log-macdecode", 32),
    ];
    let flags: u8 = flags.iter().filter(|(name, _)| module.option(name).is_some()).map(|(_, bit)| bit).sum();
    let level = module.value("log-level").unwrap_or("4");
    let prefix = of(module, "log-prefix", |prefix, _| format!(" prefix \"{prefix}\""));
    format!(" LOG flags {flags} level {level}{prefix}")
}

pub(super) fn tproxy(module: &Module<'_>) -> String {
    let value = |name| module.value(name).unwrap_or_default();
    format!(" TPROXY redirect {}:{} mark {}", value("on-ip"), value("on-port"), value("tproxy-mark"))
}
