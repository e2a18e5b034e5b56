//! Any text as JSON for nft: nothing panics, what can be read is written as JSON and as a script that read
//! as the same transaction.
use sluicegate_nftables::lang::parse::ParseOptions;
use sluicegate_nftables::{ApplyOptions, Transaction};

pub(crate) fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let mut options = ParseOptions::default();
    options.interfaces.insert("lo".to_owned(), 1);
    let transaction = match Transaction::from_json_with(text, &options) {
        Ok(transaction) => transaction,
        Err(error) => return drop(error.to_string()),
    };
    let sent = |transaction: &Transaction| {
        transaction.encode(ApplyOptions::default()).ok().map(|batch| format!("{:?}", batch.bytes()))
    };
    // Only what can be sent has words for all of it.
    let Some(before) = sent(&transaction) else { return };
    let json = transaction.to_json().to_string();
    let read = Transaction::from_json_with(&json, &options).unwrap_or_else(|e| panic!("{json}\n{e}"));
    assert!(
        read == transaction || sent(&read).as_ref() == Some(&before),
        "{json}\n{transaction:?}\n{read:?}"
    );
    assert_eq!(read.to_json().to_string(), json);
}
