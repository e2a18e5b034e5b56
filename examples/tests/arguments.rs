//! Arguments that are not UTF-8 are taken or refused with a message; no example panics.

mod side_by_side;

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::process::{Command, Stdio};

use testns::{Netns, example};

#[test]
fn no_example_panics_at_an_argument_that_is_not_utf8() {
    let Some(namespace) = Netns::new() else { return };
    namespace.run(|| {
        for name in ["conntrack", "ipset", "iptables-save", "nft", "nftables", "nftables-reconcile"] {
            for arguments in [&[&b"\xff"[..]][..], &[b"list", b"\xe9"], &[b"--diff", b"/\xff"]] {
                let output = Command::new(example(name))
                    .args(arguments.iter().map(|argument| OsStr::from_bytes(argument)))
                    .stdin(Stdio::null())
                    .output()
                    .expect("the example runs");
                let error = String::from_utf8_lossy(&output.stderr);
                assert!(!error.contains("panicked") && output.status.code().is_some(), "{name}: {error}");
                // The one that takes no arguments does what it always does.
                assert!(name == "nftables" || !error.is_empty(), "{name}");
            }
        }
    });
}
