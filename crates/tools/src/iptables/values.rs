//! What iptables 1.8.9 says of a value that an option does not take, and of options that are missing: each extension
//! has sentences of its own, which are here by extension and option.

use sluicegate_iptables_save::{Condition, Family};

use super::arguments::leading_number;

/// How the tool says it: with the word as it stands for `{}`.
enum Said {
    /// In these words.
    Words(&'static str),
    /// As `xtables_parse_mark_mask`: a number, or what is behind it.
    Mark,
    /// By the function, where it has a sentence.
    By(fn(&str) -> Option<String>),
    /// In these words, with the first of the parts between commas that is not taken.
    Part(fn(&str) -> bool, &'static str),
    /// In these words, with what begins at the first of the parts between commas that is none of the names.
    Rest(&'static [&'static str], &'static str),
    /// In these words, with the end of a range of addresses that is none, or all of it.
    Addresses(&'static str),
    /// As `xtopt_parse_mint`: a number up to this one, or a range.
    Range(u64),
    /// The same for a range that must not go down.
    Rising(u64),
    /// As `xtopt_parse_int`: a number from one to another.
    Number(u32, u32),
    /// A type of service, by name or number.
    Tos,
    /// As `xtopt_parse_plenmask`: a mask of an address.
    Mask,
    /// As `xtopt_parse_mapped_name`: a name of a file of numbers.
    Mapped,
    /// The general sentence of a bad value.
    BadValue,
}

use Said::{Addresses, BadValue, By, Mapped, Mark, Mask, Number, Part, Range, Rest, Rising, Tos, Words};

/// Returns what the tool says of a value.
pub(super) fn wrong(extension: &str, option: &str, word: &str, family: Family) -> Option<String> {
    let row = VALUES.iter().find(|(of, options, _)| *of == extension && options.contains(&option));
    let general = |near: &str, range: &str| {
        format!("{extension}: bad value for option \"--{option}\"{near}, or out of range{range}.\n")
    };
    Some(match &row?.2 {
        Words(words) => words.replace("{}", word),
        By(say) => return say(word),
        Part(takes, words) => words.replace("{}", word.split(',').find(|part| !takes(part))?),
        Rest(names, words) => words.replace("{}", rest(word, names)),
        Addresses(words) => {
            let is_address = |part: &&str| match family {
                Family::Ipv4 => part.parse::<std::net::Ipv4Addr>().is_ok(),
                Family::Ipv6 => part.parse::<std::net::Ipv6Addr>().is_ok(),
            };
            match (nat_port(word, family), word.contains('-')) {
                (Some(port), _) if option.starts_with("to-") => {
                    port_range(port).unwrap_or_else(|| words.replace("{}", word))
                }
                (_, false) => words.replace("{}", word),
                (_, true) => {
                    words.replace("{}", word.splitn(2, '-').find(|part| !is_address(part)).unwrap_or(word))
                }
            }
        }
        BadValue => format!("{extension}: Bad value for \"--{option}\" option: \"{word}\""),
        Number(from, to) => general("", &format!(" ({from}-{to})")),
        Tos if leading_number(word).0.is_some_and(|number| number <= u8::MAX.into()) => {
            format!("Illegal value: \"{word}\"")
        }
        Tos => format!("Symbolic name \"{word}\" is unknown"),
        Mapped => {
            format!("{extension}: could not map name {word} to an integer value for option \"--{option}\".\n")
        }
        Mask => {
            let bits = if family == Family::Ipv4 { 32 } else { 128 };
            format!(
                "{extension}: bad value for option \"--{option}\", neither a valid network mask nor valid CIDR \
                 (0-{bits}).\n"
            )
        }
        Mark => {
            let is_number = |number: Option<u128>| number.is_some_and(|number| number <= u32::MAX.into());
            let (number, rest) = leading_number(word);
            let mask = rest.strip_prefix('/').map(|mask| leading_number(mask).0);
            match is_number(number) && mask.is_none_or(is_number) {
                true if !rest.is_empty() => {
                    format!("{extension}: trailing garbage after value for option \"--{option}\".\n")
                }
                _ => format!("{extension}: bad integer value for option \"--{option}\", or out of range.\n"),
            }
        }
        Rising(most) if !word.is_empty() && word.split(':').all(|part| is_number_to(part, *most)) => {
            match word.split_once(':') {
                Some((from, to)) => format!("{from} should be less than {to}"),
                None => format!("Bad range \"{word}\""),
            }
        }
        Range(most) | Rising(most) => {
            let mut part = word;
            loop {
                let (number, rest) = leading_number(part);
                if number.is_none_or(|number| number > (*most).into()) {
                    break general(&format!(" near \"{part}\""), &format!(" (0-{most})"));
                }
                match rest.strip_prefix(':') {
                    Some(next) => part = next,
                    None => {
                        break format!(
                            "{extension}: Argument to \"--{option}\" has unexpected characters near \"{rest}\".\n"
                        );
                    }
                }
            }
        }
    })
}

fn is_number_to(word: &str, most: u64) -> bool {
    let (number, rest) = leading_number(word);
    rest.is_empty() && number.is_some_and(|number| number <= most.into())
}

/// Returns what begins at the first part that is none of the names, or all of a word that has none.
fn rest<'w>(word: &'w str, names: &[&str]) -> &'w str {
    let mut rest = word;
    loop {
        let (part, behind) = rest.split_once(',').map_or((rest, None), |(part, rest)| (part, Some(rest)));
        if !names.iter().any(|name| name.eq_ignore_ascii_case(part)) {
            return rest;
        }
        match behind {
            Some(behind) => rest = behind,
            None => return word,
        }
    }
}

/// Returns the ports behind the addresses of a translation.
fn nat_port(word: &str, family: Family) -> Option<&str> {
    let (_, port) = match family {
        Family::Ipv4 => word.split_once(':')?,
        Family::Ipv6 if word.starts_with('[') => word.split_once("]:")?,
        Family::Ipv6 => return word.strip_prefix(':').filter(|port| !port.starts_with(':')),
    };
    Some(port)
}

/// Returns what is wrong with the ports of a translation.
fn port_range(word: &str) -> Option<String> {
    let port = |part: &str| part.parse::<u16>().ok();
    let invalid = |part: &str| Some(format!("Port `{part}' not valid"));
    let (low, high) = match word.split_once('-') {
        Some((low, high)) if port(low).is_some() => (low, high),
        None if port(word).is_some() => return None,
        _ => return invalid(word),
    };
    let (number, behind) = leading_number(high);
    match number {
        Some(number) if number > u16::MAX.into() => invalid(high),
        None => invalid(high),
        Some(_) if !behind.is_empty() => Some(format!("Garbage after port range: `{behind}'")),
        Some(number) if number < port(low)?.into() => Some(format!("Port range `{high}' funky")),
        Some(_) => None,
    }
}

/// Returns what is wrong with a program of the Berkeley packet filter.
fn bpf(word: &str) -> Option<String> {
    let said = |words: &str| Some(format!("bpf: {words}"));
    let Some((length, program)) = word.split_once(',') else { return said("error parsing program length") };
    let Ok(length) = length.parse::<u16>() else { return said("error parsing program length") };
    // `BPF_MAXINSNS` of xt_bpf.
    if length > 64 {
        return said("number of instructions exceeds maximum");
    }
    let instructions = program.split(',').filter(|instruction| !instruction.is_empty());
    let mut count = 0;
    for instruction in instructions {
        if count >= length {
            return said("real program length exceeds the encoded length parameter");
        }
        let numbers = instruction.split_ascii_whitespace().map_while(|number| number.parse::<u32>().ok());
        if numbers.count() < 4 {
            return said(&format!("error at instr {count}"));
        }
        count += 1;
    }
    match count < length {
        true => said("parsed program length is less than the encoded length parameter"),
        false => said("error parsing program length"),
    }
}

/// Returns what is wrong with a rate of `limit`.
fn rate(word: &str) -> Option<String> {
    let (number, unit) = word.split_once('/').map_or((word, "s"), |(number, unit)| (number, unit));
    let is_unit = ["second", "minute", "hour", "day"].iter().any(|name| name.starts_with(unit));
    let digits = number.strip_prefix('-').unwrap_or(number);
    let is_number = digits.bytes().all(|c| c.is_ascii_digit()) && digits.bytes().any(|c| c != b'0');
    Some(match is_number && is_unit && !unit.is_empty() {
        true => format!("Rate too fast \"{word}\""),
        false => format!("bad rate \"{word}\"'"),
    })
}

/// Returns the character between bars that is not hexadecimal.
fn hex(word: &str) -> Option<String> {
    let mut blocks = word.split('|').skip(1).step_by(2);
    let wrong = blocks.find_map(|block| block.chars().find(|c| !c.is_ascii_hexdigit() && *c != ' '))?;
    Some(format!("Invalid hex char '{wrong}'"))
}

/// Returns what is wrong with days of the week.
fn weekdays(word: &str) -> Option<String> {
    word.split(',').find_map(|part| match part {
        "" | "0" => Some("No, the week does NOT begin with Sunday.".to_owned()),
        part if part.bytes().all(|c| c.is_ascii_digit()) => None,
        part if ["Mo", "Tu", "We", "Th", "Fr", "Sa", "Su"].iter().any(|day| part.starts_with(day)) => None,
        part => Some(format!("{part} is not a valid day specifier")),
    })
}

/// Returns the first word that is not a flag of TCP.
fn tcp_flags(word: &str) -> Option<String> {
    let names = ["SYN", "ACK", "FIN", "RST", "URG", "PSH", "ALL", "NONE"];
    let is_flag = |part: &&str| part.is_empty() || names.iter().any(|name| name.eq_ignore_ascii_case(part));
    word.split(',').find(|part| !is_flag(part)).map(|part| format!("Unknown TCP flag `{part}'"))
}

/// Returns what is wrong with the type or the code of a message.
fn icmp(word: &str, name: &str) -> String {
    let is_byte = |number: Option<u128>| number.is_some_and(|number| number <= u8::MAX.into());
    let (kind, code) = word.split_once('/').map_or((word, None), |(kind, code)| (kind, Some(code)));
    let (number, behind) = leading_number(kind);
    match code.map(leading_number) {
        Some((code, rest)) if is_byte(number) && behind.is_empty() => match rest.chars().next() {
            Some(wrong) if is_byte(code) => format!("unknown character {wrong}"),
            _ => format!("Unknown {name} code `{word}'"),
        },
        _ => format!("Unknown {name} type `{word}'"),
    }
}

/// Returns what is wrong with a type of ICMPv6: of names that begin several, the tool names two.
fn icmpv6(word: &str) -> Option<String> {
    let starts = ["destination-unreachable", "echo-request", "neighbour-solicitation", "router-solicitation"];
    match starts.iter().any(|name| name.starts_with(word)) {
        true => None,
        false => Some(icmp(word, "ICMPv6")),
    }
}

/// Returns that the name of an interface is too long.
fn interface(word: &str) -> Option<String> {
    (word.len() > 15).then(|| super::failure::long_interface(word).message)
}

/// Returns what the tool says of options that a match or target lacks.
pub(super) fn lacks(extension: &str, condition: Option<&Condition>) -> Option<&'static str> {
    use Condition::{Excludes, Needs, OneOf, Value};
    match (extension, condition) {
        ("statistic", Some(OneOf(of))) if of.contains(&"every") => return Some(NTH),
        ("statistic", Some(Excludes { option: "probability", .. })) => return Some(NTH),
        ("statistic", Some(Value { option: "packet", .. })) => {
            return Some("the --packet p must be 0 <= p <= n-1");
        }
        ("string", Some(OneOf(_))) => {
            return Some("STRING match: You must specify `--string' or `--hex-string'");
        }
        ("policy", Some(Excludes { option: "strict", .. })) => {
            return Some("policy match: policy none but --strict given");
        }
        ("policy", Some(Needs { option: "tunnel-src" | "tunnel-dst", .. })) => {
            return Some("policy match: --tunnel-src/--tunnel-dst is only valid in tunnel mode");
        }
        ("rt", Some(Needs { option: "rt-0-res", .. })) => {
            return Some("`--rt-type 0' required before `--rt-0-res'");
        }
        ("rt", Some(Needs { option: "rt-0-addrs", .. })) => {
            return Some("`--rt-type 0' required before `--rt-0-addrs'");
        }
        ("LOG" | "NFLOG", Some(Needs { option: "log-prefix" | "nflog-prefix", .. })) => {
            return Some("Argument must have a minimum length of 1 characters");
        }
        ("DNAT" | "SNAT" | "MASQUERADE" | "REDIRECT", Some(Needs { .. })) => {
            return Some("Need TCP, UDP, SCTP or DCCP with port specification");
        }
        _ => (),
    }
    // Others than the lack of options are told in the sentences of each.
    if condition.is_some_and(|condition| !matches!(condition, OneOf(_))) {
        return None;
    }
    LACKING.iter().find(|(of, _)| *of == extension).map(|(_, words)| *words)
}

/// Extensions, options and how a wrong value of theirs is told.
const VALUES: &[(&str, &[&str], Said)] = &[
    ("addrtype", &["src-type", "dst-type"], Words("addrtype: bad type \"{}\"")),
    ("ah", &["ahspi"], Range(u32::MAX as u64)),
    ("bpf", &["bytecode"], By(bpf)),
    ("cluster", &["cluster-local-nodemask"], Number(1, 32)),
    ("connbytes", &["connbytes"], Rising(u64::MAX)),
    ("connbytes", &["connbytes-dir"], Words("Unknown --connbytes-dir `{}'")),
    ("connbytes", &["connbytes-mode"], Words("Unknown --connbytes-mode `{}'")),
    ("connlimit", &["connlimit-mask"], Mask),
    ("connmark", &["mark"], Mark),
    ("conntrack", &["ctstate"], Rest(&STATES, "Bad ctstate \"{}\"")),
    (
        "conntrack",
        &["ctstatus"],
        Rest(&["NONE", "EXPECTED", "SEEN_REPLY", "ASSURED", "CONFIRMED"], "Bad ctstatus \"{}\""),
    ),
    ("conntrack", &["ctexpire"], Range(u32::MAX as u64)),
    ("conntrack", &["ctdir"], BadValue),
    ("dccp", &["dccp-types"], Words("Unknown DCCP type `{}'")),
    ("devgroup", &["src-group", "dst-group"], Mapped),
    ("dscp", &["dscp-class"], Words("Invalid DSCP value `{}'")),
    ("esp", &["espspi"], Range(u32::MAX as u64)),
    (
        "hashlimit",
        &["hashlimit-upto", "hashlimit-above", "hashlimit-mode", "hashlimit-rate-interval"],
        BadValue,
    ),
    ("hashlimit", &["hashlimit-srcmask", "hashlimit-dstmask"], Mask),
    ("hashlimit", &["hashlimit-htable-gcinterval"], Number(0, u32::MAX)),
    (
        "hashlimit",
        &["hashlimit-burst"],
        Words("bad value for option \"--hashlimit-burst\", or out of range (1-1000000)."),
    ),
    ("frag", &["fragid"], Range(u32::MAX as u64)),
    ("icmp", &["icmp-type"], By(|word| Some(icmp(word, "ICMP")))),
    ("icmp6", &["icmpv6-type"], By(icmpv6)),
    ("iprange", &["src-range"], Addresses("iprange: Bad value for \"--src-range\" option: \"{}\"")),
    ("iprange", &["dst-range"], Addresses("iprange: Bad value for \"--dst-range\" option: \"{}\"")),
    ("ipvs", &["vdir", "vmethod"], BadValue),
    ("length", &["length"], Range(u16::MAX as u64)),
    ("limit", &["limit"], By(rate)),
    ("mac", &["mac-source"], Words("Invalid MAC address specified.")),
    ("mark", &["mark"], Mark),
    ("owner", &["uid-owner", "gid-owner"], BadValue),
    ("mh", &["mh-type"], Words("Invalid MH type `{}'")),
    ("physdev", &["physdev-in", "physdev-out"], By(interface)),
    ("pkttype", &["pkt-type"], Words("Bad packet type '{}'")),
    ("policy", &["dir"], Words("policy_match: invalid dir \"{}\"")),
    ("policy", &["pol"], Words("policy match: invalid policy \"{}\"")),
    ("policy", &["mode"], Words("policy match: invalid mode \"{}\"")),
    ("rateest", &["rateest-bps1", "rateest-bps2"], Words("rateest: could not parse rate `{}'")),
    ("rateest", &["rateest-pps1", "rateest-pps2"], Words("rateest: could not parse pps `{}'")),
    ("realm", &["realm"], Mapped),
    ("recent", &["seconds"], Number(1, u32::MAX)),
    (
        "set",
        &["packets-eq", "packets-lt", "packets-gt", "bytes-eq", "bytes-lt", "bytes-gt"],
        Words("Cannot parse {} as a counter value"),
    ),
    ("state", &["state"], Rest(&STATES, "Bad state \"{}\"")),
    ("string", &["hex-string"], By(hex)),
    ("statistic", &["mode"], Words("Bad mode \"{}\"")),
    (
        "statistic",
        &["probability"],
        Words("statistic: bad value for option \"--probability\", or out of range (0-1).\n"),
    ),
    ("tcp", &["tcp-flags"], By(tcp_flags)),
    ("tcp", &["tcp-option"], Words("Bad TCP option \"{}\"")),
    ("tcpmss", &["mss"], Range(u16::MAX as u64)),
    (
        "time",
        &["datestart", "datestop"],
        Words("Invalid date \"{}\" specified. Should be YYYY[-MM[-DD[Thh[:mm[:ss]]]]]"),
    ),
    (
        "time",
        &["timestart", "timestop"],
        Words("invalid time \"{}\" specified, should be hh:mm[:ss] format and within the boundaries"),
    ),
    ("time", &["weekdays"], By(weekdays)),
    (
        "time",
        &["monthdays"],
        Part(|day| day.parse::<u8>().is_ok_and(|day| day <= 31), "{} is not a valid day for --monthdays"),
    ),
    ("tos", &["tos"], Tos),
    ("AUDIT", &["type"], Words("Bad action type value \"{}\"")),
    ("CLASSIFY", &["set-class"], Words("Bad class value \"{}\"")),
    ("CLUSTERIP", &["hashmode"], Words("Unknown hashmode \"{}\"")),
    ("CLUSTERIP", &["clustermac"], Words("Invalid MAC address specified.")),
    ("CLUSTERIP", &["total-nodes", "local-node"], Number(0, 16)),
    ("CONNMARK", &["set-xmark", "set-mark"], Mark),
    ("CONNMARK", &["left-shift-mark", "right-shift-mark"], Number(0, 32)),
    ("CT", &["ctevents", "expevents"], Words("Unknown event type \"{}\"")),
    ("CT", &["zone", "zone-orig", "zone-reply"], Words("Cannot parse {} as a zone ID")),
    ("DNAT", &["to-destination"], Addresses("Bad IP address \"{}\"")),
    ("DSCP", &["set-dscp-class"], Words("Invalid DSCP value `{}'")),
    ("HMARK", &["hmark-tuple"], Words("Bad type \"{}\"")),
    ("HMARK", &["hmark-src-prefix", "hmark-dst-prefix"], Mask),
    ("IDLETIMER", &["timeout"], Number(0, u32::MAX)),
    ("LED", &["led-delay"], Words("Delay value must be within range 0..4294967295")),
    ("LOG", &["log-level"], Words("log level \"{}\" unknown\n")),
    ("MARK", &["set-xmark", "set-mark"], Mark),
    ("MASQUERADE", &["to-ports"], By(port_range)),
    ("NFQUEUE", &["queue-balance"], Rising(u16::MAX as u64)),
    ("RATEEST", &["rateest-interval"], Words("RATEEST: bad interval value \"{}\"")),
    ("RATEEST", &["rateest-ewmalog"], Words("RATEEST: bad ewmalog value \"{}\"")),
    ("REDIRECT", &["to-ports"], By(port_range)),
    ("SET", &["timeout"], Words("Invalid value for option --timeout or out of range 0-4294967294")),
    ("SNAT", &["to-source"], Addresses("Bad IP address \"{}\"")),
    ("SYNPROXY", &["wscale", "mss"], Number(0, u32::MAX)),
    (
        "TCPMSS",
        &["set-mss"],
        Words("TCPMSS: bad value for option \"--set-mss\", or out of range (0-65515).\n"),
    ),
    ("TCPOPTSTRIP", &["strip-options"], Words("Bad TCP option value \"{}\"")),
    ("TOS", &["set-tos"], Tos),
    ("TPROXY", &["tproxy-mark"], Mark),
];

/// What `-m statistic` lacks where it counts.
const NTH: &str = "--every and --packet must be specified when using nth mode";

/// The states of connections.
const STATES: [&str; 7] = ["INVALID", "NEW", "ESTABLISHED", "RELATED", "UNTRACKED", "SNAT", "DNAT"];

/// Extensions, and what the tool says of one without the options that it needs.
const LACKING: &[(&str, &str)] = &[
    ("addrtype", "addrtype: you must specify --src-type or --dst-type"),
    ("bpf", "bpf: one of --bytecode or --pinned is required"),
    ("connlimit", "You must specify \"--connlimit-above\" or \"--connlimit-upto\"."),
    ("conntrack", "conntrack: At least one option is required"),
    ("devgroup", "devgroup match: You must specify either '--src-group' or '--dst-group'"),
    ("dscp", "DSCP match: Parameter --dscp is required"),
    ("ecn", "ECN match: some option required"),
    ("hashlimit", "You have to specify --hashlimit"),
    ("hl", "HL match: You must specify one of `--hl-eq', `--hl-lt', `--hl-gt'"),
    ("iprange", "iprange match: You must specify `--src-range' or `--dst-range'"),
    ("owner", "owner: At least one of --uid-owner, --gid-owner or --socket-exists is required"),
    ("physdev", "PHYSDEV: no physdev option specified"),
    ("policy", "policy match: neither --dir in nor --dir out specified"),
    ("recent", "recent: you must specify one of `--set', `--rcheck' `--update' or `--remove'"),
    ("set", "You must specify `--match-set' with proper arguments"),
    ("statistic", "--probability must be specified when using random mode"),
    ("ttl", "TTL match: You must specify one of `--ttl-eq', `--ttl-lt', `--ttl-gt"),
    ("CONNMARK", "CONNMARK target: No operation specified"),
    ("CONNSECMARK", "CONNSECMARK target: parameter required"),
    ("DSCP", "DSCP target: Parameter --set-dscp is required"),
    ("ECN", "ECN target: An operation is required"),
    ("HL", "HL: You must specify an action"),
    ("HMARK", "--hmark-mod is mandatory"),
    ("MARK", "MARK: One of the --set-xmark, --{and,or,xor,set}-mark options is required"),
    ("SET", "You must specify either `--add-set' or `--del-set' or `--map-set'"),
    ("TCPMSS", "TCPMSS target: At least one parameter is required"),
    ("TOS", "TOS: An action is required"),
    ("TTL", "TTL: You must specify an action"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_no_number_or_has_more_behind_it() {
        let said = |word| wrong("MARK", "set-mark", word, Family::Ipv4).unwrap();
        for word in ["x", "", "-1", "99999999999"] {
            assert!(said(word).starts_with("MARK: bad integer value for option \"--set-mark\""), "{word}");
        }
        for word in ["1:", "0x", "0x1g", "1.1.1.1/33"] {
            assert!(said(word).starts_with("MARK: trailing garbage"), "{word}");
        }
    }

    #[test]
    fn a_range_is_wrong_at_the_part_that_is_not_a_number() {
        let said = |word| wrong("length", "length", word, Family::Ipv4).unwrap();
        assert_eq!(said("5-3"), "length: Argument to \"--length\" has unexpected characters near \"-3\".\n");
        let out = "length: bad value for option \"--length\" near \"80000\", or out of range (0-65535).\n";
        assert_eq!(said("7:80000"), out);
    }
}
