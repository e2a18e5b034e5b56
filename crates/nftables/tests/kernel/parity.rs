//! The two outputs of a transaction, text and netlink, against nft itself.

use crate::cases;

#[test]
fn nft_reads_what_a_transaction_prints() {
    if !testns::have(&["nft"]) {
        return;
    }
    let mut failed = Vec::new();
    for case in cases::all() {
        let Some(namespace) = testns::Netns::new() else { return };
        let script = case.transaction.to_string();
        let output = namespace.run(|| testns::feed(&["nft", "-f", "-"], &script));
        if !output.status.success() {
            failed.push(format!("{}:\n{}\n{script}", case.name, String::from_utf8_lossy(&output.stderr)));
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}
