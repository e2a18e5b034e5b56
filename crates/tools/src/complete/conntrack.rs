//! conntrack's options, protocols, states and tables.

use super::{PROTOCOLS, texts};

pub(super) fn offered(before: &[&str]) -> Vec<String> {
    match before.last() {
        Some(&("-p" | "--proto")) => texts(PROTOCOLS),
        Some(&"--state") => texts(STATES),
        Some(&("-f" | "--family")) => texts(["ipv4", "ipv6"]),
        Some(&("-u" | "--status")) => texts(["ASSURED", "SEEN_REPLY", "FIXED_TIMEOUT", "UNSET", "EXPECTED"]),
        Some(&("-L" | "--dump")) => {
            [texts(["conntrack", "dying", "expect", "unconfirmed"]), texts(OPTIONS)].concat()
        }
        _ => texts(OPTIONS),
    }
}

/// Those of TCP.
const STATES: [&str; 9] = [
    "NONE",
    "SYN_SENT",
    "SYN_RECV",
    "ESTABLISHED",
    "FIN_WAIT",
    "CLOSE_WAIT",
    "LAST_ACK",
    "TIME_WAIT",
    "CLOSE",
];
const OPTIONS: [&str; 31] = [
    "--any-nat",
    "--buffer-size",
    "--count",
    "--create",
    "--delete",
    "--dport",
    "--dst-nat",
    "--dump",
    "--event",
    "--event-mask",
    "--family",
    "--flush",
    "--get",
    "--mark",
    "--orig-dst",
    "--orig-src",
    "--orig-zone",
    "--output",
    "--proto",
    "--reply-dst",
    "--reply-src",
    "--sport",
    "--src-nat",
    "--state",
    "--stats",
    "--status",
    "--timeout",
    "--update",
    "--version",
    "--zero",
    "--zone",
];
