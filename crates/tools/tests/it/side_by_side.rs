//! An example and the tool whose command line it takes: run, with all that is to be compared.

use std::io::Write as _;
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::mpsc::Sender;

/// What a command did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Done {
    pub(crate) status: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Runs a program to its end, `input` being its standard input.
#[allow(dead_code, reason = "not every test compares with a tool")]
pub(crate) fn run_with<'a>(tool: &Path, arguments: impl IntoIterator<Item = &'a str>, input: &str) -> Done {
    let mut child = start(tool, arguments);
    let mut stdin = child.stdin.take().expect("stdin was asked for");
    // One that stops reading early says why itself.
    let _ = stdin.write_all(input.as_bytes());
    drop(stdin);
    done(child)
}

/// Runs a program that somebody else ends; tells its number as soon as it has started.
#[allow(dead_code, reason = "not every tool runs on and on")]
#[allow(
    clippy::needless_pass_by_value,
    reason = "it ends with this, so that nobody waits for a number that never comes"
)]
pub(crate) fn run_and_tell(tool: &Path, arguments: &[&str], started: Sender<u32>) -> Done {
    let child = start(tool, arguments.iter().copied());
    started.send(child.id()).expect("somebody waits for it");
    done(child)
}

fn start<'a>(tool: &Path, arguments: impl IntoIterator<Item = &'a str>) -> Child {
    testns::command(tool)
        .args(arguments)
        // Times are printed in the reader's zone.
        .env("TZ", "UTC")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|e| panic!("{}: {e}", tool.display()))
}

fn done(child: Child) -> Done {
    let output = child.wait_with_output().expect("a child can be waited for");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Done { status: output.status.code(), stdout: text(&output.stdout), stderr: text(&output.stderr) }
}
