//! Tests with a real kernel and the real ipvsadm, in a guest: every command, parity in both directions, the
//! data path.
//!
//! Run by `cargo xtask test`, or by hand with `umlrun` or `qemurun` as the runner (see CONTRIBUTING.md).
//! Every test creates its own network namespaces, each of which has an IPVS of its own.
#![forbid(unsafe_code)]

mod commands;
mod data_path;
mod lab;
mod parity;
mod termination;

use std::sync::Once;

/// Runs a test in a new network namespace of the guest; skips it outside of guests.
fn in_guest(test: impl FnOnce() + Send) {
    if testns::guest().is_none() {
        return testns::skip("runs in a guest kernel only (umlrun, qemurun)");
    }
    // Loaded while the namespace of an earlier test goes, they wait for it and it for them, for ever: see
    // `Scheduler::LBLC`. User-mode Linux has them built in.
    static LOADED: Once = Once::new();
    LOADED.call_once(|| drop(testns::try_sh("modprobe -a ip_vs_lblc ip_vs_lblcr")));
    testns::netns(test);
}
