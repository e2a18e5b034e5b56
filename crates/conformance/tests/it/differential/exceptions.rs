//! What differs from nft 1.0.6 on purpose, each kind with the reason. The packets of fields of odd widths are
//! counted by the tests of `nftables/tests/it/kernel/traffic/order.rs`.

use super::Difference;
use super::rules::Sample;

/// A kind of rules that we make something else of.
struct Exception {
    holds: fn(&str, &Difference) -> bool,
    reason: &'static str,
}

const ALL: &[Exception] = &[
    Exception {
        holds: |_, d| d.said.contains("datatype mismatch") || d.said.contains("Could not parse integer"),
        reason: "nft compares no shifted key with a constant, and sets no mark to a field of another type; \
                 later versions do",
    },
    Exception {
        holds: |_, d| d.said.contains("BUG: invalid basetype") || d.said.contains("Assertion"),
        reason: "nft ends with a failed assertion: a shift of constants, a prefix of a field below a byte",
    },
    Exception {
        holds: |rule, d| d.said.contains("syntax error") && is_newer(rule),
        reason: "nft does not know the field yet, or not in statements",
    },
    Exception {
        holds: |rule, d| d.said.contains("is undefined for type of") && rule.contains(" set "),
        reason: "nft shifts within the width of the field, not of the mark that is set; later versions do",
    },
    Exception {
        holds: |rule, d| d.said.contains("No data available") && rule.contains(" >> "),
        reason: "nft moves a shift to the right to the other side, and the kernel refuses what comes of it",
    },
    Exception {
        holds: |rule, d| d.said.contains("Comparison is always false") && rule.contains(" << "),
        reason: "nft moves a shift to the left to the other side, and finds no value there",
    },
    Exception {
        holds: |rule, d| d.said.contains("exceeds valid range") && rule.contains(" set "),
        reason: "nft measures a number by the width of the field before it, not by the mark that is set",
    },
    Exception {
        holds: |rule, d| {
            is_context(rule) && (rule.contains('{') || rule.contains("vlan type")) && d.nft.is_none()
        },
        reason: "nft takes the last element of a set for the only one, or forgets the table's family behind \
                 the type of a frame, and refuses what follows",
    },
    Exception {
        holds: |_, d| d.said.contains("conflicting protocols") || d.said.contains("cannot use exthdr"),
        reason: "nft refuses what contradicts the match before; the match that we add keeps to the words",
    },
    Exception {
        holds: |rule, d| both(d) && rule.contains(" ^ "),
        reason: "nft moves the operand of ^ to the other side; of an order or a range that is something else",
    },
    Exception {
        holds: |rule, d| both(d) && rule.contains('/'),
        reason: "nft counts the bits of a prefix from the wrong end of a field that is not whole bytes",
    },
    Exception {
        holds: |rule, d| both(d) && (rule.contains(" << ") || rule.contains(" >> ")),
        reason: "nft moves a shift to the other side, which forgets bits, or shifts within one byte",
    },
    Exception {
        holds: |rule, d| both(d) && (rule.contains("frag-off") || rule.starts_with("ip6 dscp")),
        reason: "nft shifts across bytes in the order of the network",
    },
    Exception {
        holds: |rule, d| both(d) && (rule.contains("{") || rule.contains("!=")) && is_context(rule),
        reason: "nft takes the last element of a set for the only one",
    },
    Exception {
        holds: |rule, d| both(d) && (rule.contains(" & ") || rule.contains(" | ")),
        reason: "another width of the same number, or bits that the field does not have",
    },
    Exception {
        holds: |rule, d| d.ours.is_none() && is_context(rule),
        reason: "what contradicts each element of a set, or all but one, is refused",
    },
    Exception {
        holds: |rule, d| d.ours.is_none() && (rule.contains(" << ") || rule.contains(" >> ")),
        reason: "a shift by the width of the key or more, which leaves nothing to compare, is refused",
    },
];

/// Returns why this rule is not what nft makes of it; `None` where it has to be.
pub(crate) fn reason(sample: &Sample, difference: &Difference) -> Option<&'static str> {
    let holds = |exception: &&Exception| (exception.holds)(&sample.rule, difference);
    ALL.iter().find(holds).map(|exception| exception.reason)
}

/// Both sides take the rule.
fn both(difference: &Difference) -> bool {
    difference.nft.is_some() && difference.ours.is_some()
}

fn is_newer(rule: &str) -> bool {
    rule.contains("gre ") || ["frag", "tcp option", "mptcp"].iter().any(|word| rule.contains(word))
}

/// Whether a rule begins with a key that says what follows.
fn is_context(rule: &str) -> bool {
    let keys = ["meta nfproto", "meta protocol", "meta l4proto", "ether type", "ip protocol", "ip6 nexthdr"];
    let more = ["vlan type", "ct l3proto", "ct protocol"];
    keys.iter().chain(&more).any(|key| rule.starts_with(key))
}
