//! What needs a kernel: each test in a network namespace of its own.

mod cases;
mod errors;
mod listing;
mod parity;
mod reset;
mod verbs;
mod watching;

#[test]
fn text_and_netlink_load_to_the_same_ruleset() {
    if !testns::have(&["nft"]) {
        return;
    }
    let cases = cases::all().into_iter().filter(|case| case.name != parity::GUEST_ONLY);
    let failed: Vec<String> = cases.filter_map(|case| parity::compare(&case).err()).collect();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}
