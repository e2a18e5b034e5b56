//! ipvs mode in kernels that have IPVS: user-mode Linux with iptables' legacy back end, and a virtual machine
//! with the nft one.
//!
//! Run by `cargo xtask test`, or by hand with `umlrun` or `qemurun` as the runner (see CONTRIBUTING.md).
//! Every test makes its own network namespaces, each of which has an IPVS of its own.
#![forbid(unsafe_code)]

mod counting;
mod daemon;
mod fastpath;
mod keeping;
mod moving;
mod traffic;

use sluicegate_service_rules::iptables::BackEnd;

/// The back end of iptables that works in this guest; skips the test outside of guests.
fn back_end() -> Option<BackEnd> {
    match testns::guest().as_deref() {
        // Its kernel has nf_tables for bridges only.
        Some("uml") => {
            // No library loads a module; the tool does.
            let _ = testns::sh("modprobe -a ip_tables ip6_tables");
            Some(BackEnd::Legacy)
        }
        Some(_) => Some(BackEnd::Nft),
        None => {
            testns::skip("runs in a guest kernel only (umlrun, qemurun)");
            None
        }
    }
}
