//! Any text as a script and as a rule of nft's language: nothing panics, what can be read prints as a
//! script and as JSON that read as the same transaction, and what is printed does not change any more.

use sluicegate_nftables::lang::parse::{Included, ParseOptions};
use sluicegate_nftables::{ApplyOptions, Family, Rule, TableId, Transaction};

pub(crate) fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    // What it includes is the text up to there, which includes nothing.
    let include = |path: &str| match path.strip_suffix(".nft") {
        Some(_) => Ok(vec![Included { name: path.to_owned(), text: text.replace("include", "") }]),
        None => Err(Box::<dyn std::error::Error>::from("no such file")),
    };
    let mut options = ParseOptions::default();
    options.include = Some(&include);
    options.interfaces.insert("lo".to_owned(), 1);
    options.interfaces.insert("eth0".to_owned(), 2);
    match Transaction::parse_with(text, &options) {
        Ok(transaction) => again(&transaction, &options),
        Err(error) => {
            assert!(!error.mistakes.is_empty());
            let _ = error.to_string();
        }
    }
    for family in [Family::IP, Family::INET, Family::BRIDGE, Family::ARP, Family::NETDEV] {
        let chain = TableId::new(family, "t".parse().unwrap()).chain("c".parse().unwrap());
        if let Ok(rule) = Rule::parse_with(&chain, text, &options) {
            let mut transaction = Transaction::new();
            transaction.add(rule);
            again(&transaction, &options);
        }
    }
}

/// Prints, reads, and prints again.
fn again(transaction: &Transaction, options: &ParseOptions<'_>) {
    let sent = |transaction: &Transaction| {
        transaction.encode(ApplyOptions::default()).ok().map(|batch| format!("{:?}", batch.bytes()))
    };
    // Only what can be sent has words for all of it.
    let Some(before) = sent(transaction) else { return };
    let printed = transaction.to_string();
    let read = Transaction::parse_with(&printed, options).unwrap_or_else(|e| panic!("{printed}\n{e}"));
    assert_eq!(read.to_string(), printed);
    assert!(
        read == *transaction || sent(&read).as_ref() == Some(&before),
        "{printed}\n{transaction:?}\n{read:?}"
    );
    let json = transaction.to_json().to_string();
    let read =
        Transaction::from_json_with(&json, options).unwrap_or_else(|e| panic!("{printed}\n{json}\n{e}"));
    assert!(sent(&read).as_ref() == Some(&before), "{printed}\n{json}\n{transaction:?}\n{read:?}");
    // And on to text again.
    let (printed, again) = (read.to_string(), Transaction::parse_with(&read.to_string(), options));
    let again = again.unwrap_or_else(|e| panic!("{json}\n{printed}\n{e}"));
    assert!(sent(&again) == Some(before), "{json}\n{printed}\n{read:?}\n{again:?}");
}
