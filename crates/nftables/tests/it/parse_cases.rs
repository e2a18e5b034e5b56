//! What the typed language prints is read back: the transactions that the kernel's tests send, as text and as
//! typed operations.

use crate::kernel::cases;

use proptest::prelude::*;
use sluicegate_nftables::lang::parse::{ParseOptions, Script};
use sluicegate_nftables::{ApplyOptions, Object, Operation, Rule, Transaction};

/// Rules that are other trees and the same to the kernel: what nft knows only the width of is printed as a
/// number.
fn is_sent_alike(one: &Rule, other: &Rule) -> bool {
    let sent = |rule: &Rule| {
        let mut transaction = Transaction::new();
        transaction.add(rule.clone());
        transaction.encode(ApplyOptions::default()).map(|batch| format!("{batch:?}")).ok()
    };
    sent(one).is_some() && sent(one) == sent(other)
}

#[test]
fn rules_are_read_as_they_were_built() {
    let (mut count, mut failed) = (0, Vec::new());
    for case in cases::all().into_iter().chain(cases::newer()) {
        for operation in case.transaction.operations() {
            let (Operation::Add(Object::Rule(rule)) | Operation::Insert(rule)) = operation else { continue };
            count += 1;
            let text = rule.body().to_string();
            let parsed = match Rule::parse(&rule.chain, &text) {
                Err(error) => {
                    failed.push(format!("{}: {text}\n{error}", case.name));
                    continue;
                }
                Ok(parsed) => parsed,
            };
            let again = parsed.body().to_string();
            let mut bare = rule.clone();
            (bare.handle, bare.position, bare.index) = (None, None, None);
            if again != text {
                failed.push(format!("{}: {text}\n  is read as {again}", case.name));
            } else if parsed != bare && !is_sent_alike(&parsed, &bare) && !text.contains("map @endpoints") {
                failed.push(format!(
                    "{}: {text}\n  built {:?}\n  read  {:?}",
                    case.name, rule.statements, parsed.statements
                ));
            }
        }
    }
    assert!(failed.is_empty(), "{} of {count} fail:\n{}", failed.len(), failed.join("\n"));
}

#[test]
fn scripts_are_read_as_they_were_built() {
    let (mut count, mut failed) = (0, Vec::new());
    for case in cases::all().into_iter().chain(cases::newer()) {
        let text = case.transaction.to_string();
        let parsed = match Transaction::parse(&text) {
            Err(error) => {
                failed.push(format!("{}: {error}", case.name));
                continue;
            }
            Ok(parsed) => parsed,
        };
        let built: Vec<_> = case.transaction.operations().iter().collect();
        let read: Vec<_> = parsed.operations().iter().collect();
        if built.len() != read.len() {
            failed.push(format!("{}: {} operations are read as {}", case.name, built.len(), read.len()));
        }
        for (built, read) in built.iter().zip(&read) {
            count += 1;
            // `mark` behind `typeof` is the packet's, not the type of that name.
            let is_mark = |operation: &Operation| operation.to_string().contains(" : mark ;");
            if is_mark(built) && built.to_string().contains("typeof") {
                continue;
            }
            if built.to_string() != read.to_string() {
                failed.push(format!("{}: {built}\n  is read as {read}", case.name));
            } else if built != read && !are_rules(built, read) {
                failed.push(format!("{}: {built}\n  built {built:?}\n  read  {read:?}", case.name));
            }
        }
        if case.name != "keys of bits across bytes" && sent(&case.transaction) != sent(&parsed) {
            failed.push(format!("{}: it is sent otherwise", case.name));
        }
    }
    assert!(failed.is_empty(), "{} of {count} fail:\n{}", failed.len(), failed.join("\n"));
}

/// What rules are is compared by what is sent.
fn are_rules(built: &Operation, read: &Operation) -> bool {
    let is_rule = |operation: &Operation| {
        matches!(operation, Operation::Add(Object::Rule(_)) | Operation::Insert(_) | Operation::Replace(_))
    };
    is_rule(built) && is_rule(read)
}

fn sent(transaction: &Transaction) -> Result<String, String> {
    let batch = transaction.encode(ApplyOptions::default());
    batch.map(|batch| format!("{batch:?}")).map_err(|error| error.to_string())
}

/// Words, marks and numbers that texts are made of at random.
fn piece() -> impl Strategy<Value = String> {
    const PIECES: &[&str] = &[
        "add",
        "table",
        "chain",
        "rule",
        "set",
        "map",
        "element",
        "ip",
        "inet",
        "t",
        "c",
        "{",
        "}",
        ";",
        "\n",
        ",",
        ":",
        "@s",
        "$x",
        "=",
        "define",
        "tcp",
        "dport",
        "22",
        "80-90",
        "accept",
        "ct",
        "state",
        "new",
        "vmap",
        "10.0.0.0/8",
        "::1",
        "(",
        ")",
        "&",
        "|",
        "!=",
        "<",
        ".",
        "-",
        "/",
        "*",
        "\"x\"",
        "\"",
        "counter",
        "limit",
        "rate",
        "dnat",
        "to",
        "type",
        "ipv4_addr",
        "typeof",
        "elements",
        "flags",
        "interval",
        "jump",
        "meta",
        "mark",
        "include",
        "#",
        "\\",
        "fib",
        "daddr",
        "oif",
        "log",
        "prefix",
        "hook",
        "filter",
        "priority",
        "99999999999999999999",
        "0x",
        "\u{20ac}",
    ];
    prop_oneof![8 => prop::sample::select(PIECES).prop_map(str::to_owned), 1 => ".{0,4}"]
}

proptest! {
    #[test]
    fn no_text_makes_the_parser_panic(pieces in prop::collection::vec(piece(), 0..60)) {
        let options = ParseOptions::default();
        for text in [pieces.join(" "), pieces.concat()] {
            if let Err(error) = Script::parse(&text, &options) {
                prop_assert!(!error.mistakes.is_empty() && !error.to_string().is_empty());
            }
        }
    }

    #[test]
    fn what_is_read_is_printed_as_it_is_read(pieces in prop::collection::vec(piece(), 0..12)) {
        let text = format!("add rule inet t c {}", pieces.join(" "));
        if let Ok(transaction) = Transaction::parse(&text) {
            let printed = transaction.to_string();
            let again = Transaction::parse(&printed).map_err(|error| TestCaseError::fail(error.to_string()))?;
            prop_assert_eq!(again.to_string(), printed);
        }
    }
}
