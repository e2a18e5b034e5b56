//! Each tool beside the one whose place it takes: the same command lines to both, in namespaces of their own.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![forbid(unsafe_code)]

mod command_lines;
mod complete;
mod conntrack;
mod every_tool;
mod guest;
mod ipset;
mod ipset_words;
mod iptables;
mod nft;
mod nft_command_line;
mod side_by_side;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

const PROGRAM: &str = env!("CARGO_BIN_EXE_sluicegate-tools");

/// Returns the path of our tool of this name: a link to the program.
fn tool(name: &str) -> PathBuf {
    static LINKS: LazyLock<PathBuf> = LazyLock::new(|| {
        let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("links-{}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("a directory of links");
        let made = Command::new(PROGRAM).arg("install").arg(&directory).status().expect("it runs");
        assert!(made.success(), "{made}");
        directory
    });
    LINKS.join(name)
}
