//! Arguments that are not UTF-8 are taken or refused with a message; no example panics.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::process::{Command, Stdio};

use testns::{Netns, example};

#[test]
fn no_example_panics_at_an_argument_that_is_not_utf8() {
    let Some(namespace) = Netns::new() else { return };
    namespace.run(|| {
        // All that stand in `examples/`, so that one that is moved or renamed is neither missed nor missing.
        let examples = fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/examples"));
        for entry in examples.expect("it is listed") {
            let path = entry.expect("it is listed").path();
            let name = path.file_stem().and_then(OsStr::to_str).expect("examples have names of letters");
            for arguments in [&[&b"\xff"[..]][..], &[b"list", b"\xe9"], &[b"--diff", b"/\xff"]] {
                let output = Command::new(example(name))
                    .args(arguments.iter().map(|argument| OsStr::from_bytes(argument)))
                    .stdin(Stdio::null())
                    .output()
                    .expect("the example runs");
                let error = String::from_utf8_lossy(&output.stderr);
                assert!(!error.contains("panicked") && output.status.code().is_some(), "{name}: {error}");
                // A CNI plug-in tells its refusal on standard output, as its specification asks.
                assert!(!(error.is_empty() && output.stdout.is_empty()), "{name} says nothing");
            }
        }
    });
}
