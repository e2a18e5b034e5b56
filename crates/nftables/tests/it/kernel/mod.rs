//! What needs a kernel: each test in a network namespace of its own. `cargo xtask test guest` runs all of it
//! in guests as well, whose kernels are older and have what this machine's may lack.

pub(crate) mod cases;
mod corpus;
mod counts;
mod devices;
mod echo;
mod errors;
mod field_pairs;
mod fields;
mod find;
mod flowtables;
mod hooks;
#[cfg(feature = "json")]
mod json;
mod listing;
mod merging;
mod needs;
mod nft_monitor;
mod objects;
mod openings;
mod pairs;
mod parity;
mod probed;
mod probing;
mod reconcile;
mod registered_hooks;
mod reset;
mod set_types;
mod traffic;
mod verbs;
mod watching;
mod wrong;
mod xtables;

#[test]
fn text_and_netlink_load_to_the_same_ruleset() {
    if !testns::have(&["nft"]) {
        return;
    }
    let cases = cases::all().into_iter().filter(|case| needs::met(case.name));
    let failed: Vec<String> = cases.filter_map(|case| parity::compare(&case).err()).collect();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}
