//! What this machine's kernel may lack, on a kernel that has it: `cargo xtask test guest` runs this in a guest.

#[allow(dead_code, unreachable_pub, reason = "shared with the tests on this machine's kernel")]
#[path = "kernel/cases.rs"]
mod cases;
#[allow(dead_code, unreachable_pub, reason = "shared with the tests on this machine's kernel")]
#[path = "kernel/parity.rs"]
mod parity;

#[test]
fn flowtables_load_alike_as_text_and_by_netlink() {
    if testns::guest().is_none() {
        return testns::skip("runs in a guest kernel only (qemurun)");
    }
    let case = cases::all().into_iter().find(|case| case.name == parity::GUEST_ONLY).expect("the case");
    parity::compare(&case).unwrap_or_else(|why| panic!("{why}"));
}
