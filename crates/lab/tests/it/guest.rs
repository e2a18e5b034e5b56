//! The matrix of connections in ipvs mode, in kernels that have IPVS: user-mode Linux with iptables' legacy
//! back end, and a virtual machine with the nft one.
//!
//! Run by `cargo xtask test`, or by hand with `umlrun` or `qemurun` as the runner (see CONTRIBUTING.md).
#![forbid(unsafe_code)]

use std::process::ExitCode;

#[test]
#[ignore = "needs a kernel of its own: cargo xtask test guest"]
fn connections_are_answered_as_they_should_be() {
    let back_end = match testns::guest().as_deref() {
        // Its kernel has nf_tables for bridges only.
        Some("uml") => "legacy",
        Some(_) => "nft",
        None => return testns::skip("runs in a guest kernel only (umlrun, qemurun)"),
    };
    // No library loads a module; the tool does.
    let _ = testns::try_sh("modprobe -a ip_tables ip6_tables");
    let words = ["sluicegate-lab", "matrix", "--proxy-mode", "ipvs", "--iptables-backend", back_end];
    // One processor, and that a slow one.
    let words = words.into_iter().chain(["--workers", "8", "--one-of", "13"]);
    let code = sluicegate_lab::run(words).unwrap();
    assert_eq!(format!("{code:?}"), format!("{:?}", ExitCode::SUCCESS));
}
