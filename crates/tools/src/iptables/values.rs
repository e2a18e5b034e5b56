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
    /// As `xtopt_parse_mint`: a number up to this one, or a range.
    Range(u64),
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

use Said::{BadValue, Mapped, Mark, Mask, Number, Range, Tos, Words};

/// Returns what the tool says of a value.
pub(super) fn wrong(extension: &str, option: &str, word: &str, family: Family) -> Option<String> {
    let row = VALUES.iter().find(|(of, options, _)| *of == extension && options.contains(&option));
    let general = |near: &str, range: &str| {
        format!("{extension}: bad value for option \"--{option}\"{near}, or out of range{range}.\n")
    };
    Some(match &row?.2 {
        Words(words) => words.replace("{}", word),
        BadValue => format!("{extension}: Bad value for \"--{option}\" option: \"{word}\""),
        Number(from, to) => general("", &format!(" ({from}-{to})")),
        Tos if word.starts_with(|c: char| c.is_ascii_digit()) => format!("Illegal value: \"{word}\""),
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
            let (number, rest) = leading_number(word);
            match number.filter(|number| *number <= u32::MAX.into()) {
                Some(_) if !rest.is_empty() => {
                    format!("{extension}: trailing garbage after value for option \"--{option}\".\n")
                }
                _ => format!("{extension}: bad integer value for option \"--{option}\", or out of range.\n"),
            }
        }
        Range(most) => {
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

/// Returns what the tool says of options that a match or target lacks.
pub(super) fn lacks(extension: &str, condition: Option<&Condition>) -> Option<&'static str> {
    // Others than the lack of options are told in the sentences of each.
    if condition.is_some_and(|condition| !matches!(condition, Condition::OneOf(_))) {
        return None;
    }
    LACKING.iter().find(|(of, _)| *of == extension).map(|(_, words)| *words)
}

/// Extensions, options and how a wrong value of theirs is told.
const VALUES: &[(&str, &[&str], Said)] = &[
    ("addrtype", &["src-type", "dst-type"], Words("addrtype: bad type \"{}\"")),
    ("ah", &["ahspi"], Range(u32::MAX as u64)),
    ("bpf", &["bytecode"], Words("bpf: error parsing program length")),
    ("cluster", &["cluster-local-nodemask"], Number(1, 32)),
    ("connbytes", &["connbytes"], Range(u64::MAX)),
    ("connbytes", &["connbytes-dir"], Words("Unknown --connbytes-dir `{}'")),
    ("connbytes", &["connbytes-mode"], Words("Unknown --connbytes-mode `{}'")),
    ("connlimit", &["connlimit-mask"], Mask),
    ("connmark", &["mark"], Mark),
    ("conntrack", &["ctstate"], Words("Bad ctstate \"{}\"")),
    ("conntrack", &["ctstatus"], Words("Bad ctstatus \"{}\"")),
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
    ("icmp", &["icmp-type"], Words("Unknown ICMP type `{}'")),
    ("iprange", &["src-range", "dst-range"], BadValue),
    ("ipvs", &["vdir", "vmethod"], BadValue),
    ("length", &["length"], Range(u16::MAX as u64)),
    ("limit", &["limit"], Words("bad rate \"{}\"'")),
    ("mac", &["mac-source"], Words("Invalid MAC address specified.")),
    ("mark", &["mark"], Mark),
    ("owner", &["uid-owner", "gid-owner"], BadValue),
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
    ("state", &["state"], Words("Bad state \"{}\"")),
    ("statistic", &["mode"], Words("Bad mode \"{}\"")),
    (
        "statistic",
        &["probability"],
        Words("statistic: bad value for option \"--probability\", or out of range (0-1).\n"),
    ),
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
    ("DNAT", &["to-destination"], Words("Bad IP address \"{}\"")),
    ("DSCP", &["set-dscp-class"], Words("Invalid DSCP value `{}'")),
    ("HMARK", &["hmark-tuple"], Words("Bad type \"{}\"")),
    ("HMARK", &["hmark-src-prefix", "hmark-dst-prefix"], Mask),
    ("IDLETIMER", &["timeout"], Number(0, u32::MAX)),
    ("LED", &["led-delay"], Words("Delay value must be within range 0..4294967295")),
    ("LOG", &["log-level"], Words("log level \"{}\" unknown\n")),
    ("MARK", &["set-xmark", "set-mark"], Mark),
    ("MASQUERADE", &["to-ports"], Words("Port `{}' not valid")),
    ("NFQUEUE", &["queue-balance"], Range(u16::MAX as u64)),
    ("RATEEST", &["rateest-interval"], Words("RATEEST: bad interval value \"{}\"")),
    ("RATEEST", &["rateest-ewmalog"], Words("RATEEST: bad ewmalog value \"{}\"")),
    ("REDIRECT", &["to-ports"], Words("Port `{}' not valid")),
    ("SET", &["timeout"], Words("Invalid value for option --timeout or out of range 0-4294967294")),
    ("SNAT", &["to-source"], Words("Bad IP address \"{}\"")),
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

/// Extensions, and what the tool says of one without the options that it needs.
const LACKING: &[(&str, &str)] = &[
    ("addrtype", "addrtype: you must specify --src-type or --dst-type"),
    ("connlimit", "You must specify \"--connlimit-above\" or \"--connlimit-upto\"."),
    ("hashlimit", "You have to specify --hashlimit"),
    ("policy", "policy match: neither --dir in nor --dir out specified"),
    ("recent", "recent: you must specify one of `--set', `--rcheck' `--update' or `--remove'"),
    ("set", "You must specify `--match-set' with proper arguments"),
    ("CONNMARK", "CONNMARK target: No operation specified"),
    ("HMARK", "--hmark-mod is mandatory"),
    ("SET", "You must specify either `--add-set' or `--del-set' or `--map-set'"),
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
