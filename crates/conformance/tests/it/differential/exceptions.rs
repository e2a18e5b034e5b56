//! What differs from nft 1.0.6 on purpose, each kind with the reason. The packets of fields of odd widths are
//! counted by the tests of `nftables/tests/it/kernel/traffic/order.rs`.

use super::Difference;
use super::rules::{About, Sample};

/// A kind of rules that we make something else of.
struct Exception {
    holds: fn(&Sample, &Difference) -> bool,
    reason: &'static str,
    /// How many rules of the test it holds for.
    most: usize,
}

const ALL: &[Exception] = &[
    Exception {
        holds: |_, d| d.said.contains("datatype mismatch") || d.said.contains("Could not parse integer"),
        reason: "nft compares no shifted key with a constant, and sets no mark to a field of another type; \
                 later versions do",
        most: 45,
    },
    Exception {
        holds: |_, d| d.said.contains("BUG: invalid basetype") || d.said.contains("Assertion"),
        reason: "nft ends with a failed assertion: a shift of constants, a prefix of a field below a byte",
        most: 11,
    },
    Exception {
        holds: |of, d| d.said.contains("syntax error") && is_newer(&of.rule),
        reason: "nft does not know the field yet, or not in statements",
        most: 6,
    },
    Exception {
        holds: |of, d| d.said.contains("is undefined for type of") && of.rule.contains(" set "),
        reason: "nft shifts within the width of the field, not of the mark that is set; later versions do",
        most: 1,
    },
    Exception {
        holds: |of, d| {
            let is_refused =
                ["No data available", "Invalid argument"].iter().any(|text| d.said.contains(text));
            is_refused && of.rule.contains(" >> ")
        },
        reason: "nft moves a shift to the right to the other side, and the kernel refuses what comes of it",
        most: 2,
    },
    Exception {
        holds: |of, d| d.said.contains("Comparison is always false") && of.rule.contains(" << "),
        reason: "nft moves a shift to the left to the other side, and finds no value there",
        most: 3,
    },
    Exception {
        holds: |of, d| d.said.contains("exceeds valid range") && of.rule.contains(" set "),
        reason: "nft measures a number by the width of the field before it, not by the mark that is set",
        most: 0,
    },
    Exception {
        holds: |of, d| {
            is_context(&of.rule)
                && (of.rule.contains('{') || of.rule.contains("vlan type"))
                && d.nft.is_none()
        },
        reason: "nft takes the last element of a set for the only one, or forgets the table's family behind \
                 the type of a frame, and refuses what follows",
        most: 4,
    },
    Exception {
        holds: |_, d| d.said.contains("conflicting protocols") || d.said.contains("cannot use exthdr"),
        reason: "nft refuses what contradicts the match before; the match that we add keeps to the words",
        most: 2,
    },
    Exception {
        holds: |of, d| both(d) && of.rule.contains(" ^ ") && (is_ordered(&of.rule) || !is_whole(of)),
        reason: "nft moves the operand of ^ to the other side; of an order or a range that is something else",
        most: 8,
    },
    Exception {
        holds: |of, d| both(d) && of.rule.matches(" ^ ").count() > 1,
        reason: "nft moves one of two operands of ^ to the other side",
        most: 0,
    },
    Exception {
        holds: |of, d| {
            let binds_tighter =
                [" ^ ", " | "].iter().any(|op| of.rule.contains(op)) && of.rule.contains(" & ");
            both(d) && of.rule.starts_with("ip daddr") && binds_tighter
        },
        reason: "nft folds `0.0.0.6 & 0.0.0.5`; two addresses are combined by the kernel here",
        most: 1,
    },
    Exception {
        holds: |of, d| both(d) && of.about == About::Bits && of.rule.contains('/'),
        reason: "nft counts the bits of a prefix from the wrong end of a field that is not whole bytes",
        most: 4,
    },
    Exception {
        holds: |of, d| both(d) && (of.rule.contains(" << ") || of.rule.contains(" >> ")),
        reason: "nft moves a shift to the other side, which forgets bits, or shifts within one byte",
        most: 3,
    },
    Exception {
        holds: |of, d| both(d) && (of.rule.contains("frag-off") || of.rule.starts_with("ip6 dscp")),
        reason: "nft shifts across bytes in the order of the network",
        most: 0,
    },
    Exception {
        holds: |of, d| both(d) && of.about == About::Bits && of.rule.ends_with("* : drop }"),
        reason: "nft leaves out the end of an interval that ends with the field",
        most: 0,
    },
    Exception {
        holds: |of, d| both(d) && of.about == About::Contexts && is_context(&of.rule) && is_set(&of.rule),
        reason: "nft takes the last element of a set for the only one",
        most: 2,
    },
    Exception {
        holds: |of, d| both(d) && !is_whole(of) && (of.rule.contains(" & ") || of.rule.contains(" | ")),
        reason: "another width of the same number, or bits that the field does not have",
        most: 1,
    },
    Exception {
        holds: |of, d| d.ours.is_none() && is_context(&of.rule),
        reason: "what contradicts each element of a set, or all but one, is refused",
        most: 1,
    },
    Exception {
        holds: |of, d| d.ours.is_none() && (of.rule.contains(" << ") || of.rule.contains(" >> ")),
        reason: "a shift by the width of the key or more, which leaves nothing to compare, is refused",
        most: 1,
    },
];

/// Returns why this rule is not what nft makes of it; `None` where it has to be.
pub(crate) fn reason(sample: &Sample, difference: &Difference) -> Option<&'static str> {
    let holds = |exception: &&Exception| (exception.holds)(sample, difference);
    ALL.iter().find(holds).map(|exception| exception.reason)
}

/// Returns for how many rules of the test this reason holds.
pub(crate) fn most(reason: &str) -> usize {
    ALL.iter().filter(|exception| exception.reason == reason).map(|exception| exception.most).sum()
}

/// Both sides take the rule.
fn both(difference: &Difference) -> bool {
    difference.nft.is_some() && difference.ours.is_some()
}

/// The key fills its bytes.
fn is_whole(sample: &Sample) -> bool {
    sample.about != About::Bits && !sample.rule.starts_with("ip dscp")
}

/// Something is below or above, or in a range.
fn is_ordered(rule: &str) -> bool {
    let is_range = |word: &str| word.split_once('-').is_some_and(|(low, _)| low.ends_with(char::is_numeric));
    rule.split(' ').any(|word| matches!(word, "<" | ">" | "<=" | ">=") || is_range(word))
}

fn is_set(rule: &str) -> bool {
    rule.contains('{') || rule.contains("!=")
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
