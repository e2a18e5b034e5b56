//! One program that takes the place of nft, iptables, ipset, ipvsadm and conntrack, without their libraries.
//!
//! It acts by its name, or else by its first word:
//!
//! ```text
//! sluicegate-tools nft list ruleset
//! sluicegate-tools install /usr/local/sbin    # links of all names
//! iptables-save -c                            # by such a link
//! ```
//!
//! - [`nft`]: nft(8). [`iptables`]: iptables(8), iptables-save(8), iptables-restore(8), and those of ip6tables.
//! - [`ipset`]: ipset(8). [`ipvsadm`]: ipvsadm(8). [`conntrack`]: conntrack(8).
//! - [`chain_names`]: the names that kube-proxy gives to its chains.
//! - [`install`]: the links. [`complete`]: what a shell offers for a word. [`man`]: the page of the program.

mod chain_names;
mod complete;
mod conntrack;
mod install;
mod ipset;
mod iptables;
mod ipvsadm;
mod man;
mod near;
mod nft;
mod output;

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::ExitCode;

use output::{print, tell};

/// The names of this program, each that of a tool.
pub(crate) const NAMES: [&str; 24] = [
    "nft",
    "iptables",
    "iptables-save",
    "iptables-restore",
    "iptables-nft",
    "iptables-nft-save",
    "iptables-nft-restore",
    "iptables-legacy",
    "iptables-legacy-save",
    "iptables-legacy-restore",
    "ip6tables",
    "ip6tables-save",
    "ip6tables-restore",
    "ip6tables-nft",
    "ip6tables-nft-save",
    "ip6tables-nft-restore",
    "ip6tables-legacy",
    "ip6tables-legacy-save",
    "ip6tables-legacy-restore",
    "ipset",
    "ipvsadm",
    "ipvsadm-save",
    "ipvsadm-restore",
    "conntrack",
];

fn main() -> ExitCode {
    let mut words = std::env::args_os();
    let path = words.next().unwrap_or_default();
    let name = Path::new(&path).file_name().unwrap_or_default().to_owned();
    let arguments: Vec<_> = words.collect();
    if let Some(tool) = tool(&name) {
        return run(tool, arguments);
    }
    let mut arguments = arguments.into_iter();
    let first = arguments.next();
    let arguments: Vec<_> = arguments.collect();
    match first.as_deref().and_then(OsStr::to_str) {
        Some("-h" | "--help" | "help") => printed(&usage()),
        Some("-V" | "--version" | "version") => {
            printed(&format!("{PROGRAM} {}\n", env!("CARGO_PKG_VERSION")))
        }
        Some("install") => install::main(&arguments),
        Some("completions") => complete::script(&arguments),
        Some("man") => man::main(&arguments),
        Some("complete") => complete::main(&arguments),
        Some(word) if tool(OsStr::new(word)).is_some() => run(word, arguments),
        _ => {
            match first {
                Some(word) => {
                    tell(format_args!("{PROGRAM}: expected the name of a tool, found `{}`", word.display()));
                }
                None => tell(format_args!("{PROGRAM}: expected the name of a tool")),
            }
            tell(usage().trim_end());
            ExitCode::from(2)
        }
    }
}

/// Returns the tool of this name.
fn tool(name: &OsStr) -> Option<&'static str> {
    NAMES.into_iter().chain(["chain-names"]).find(|tool| name == *tool)
}

/// Runs the tool of a name of [`NAMES`], or `chain-names`.
fn run(tool: &str, arguments: Vec<OsString>) -> ExitCode {
    match tool {
        "nft" => nft::main(arguments),
        "ipset" => ipset::main(&arguments),
        "ipvsadm" | "ipvsadm-save" | "ipvsadm-restore" => ipvsadm::main(tool, &arguments),
        "conntrack" => conntrack::main(&arguments),
        "chain-names" => chain_names::main(&arguments),
        _ => iptables::main(tool, &arguments),
    }
}

fn printed(text: &str) -> ExitCode {
    match print(text) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tell(format_args!("{PROGRAM}: {error}"));
            ExitCode::FAILURE
        }
    }
}

fn usage() -> String {
    let mut text = format!(
        "usage: {PROGRAM} TOOL [ARGUMENT...]\n       {PROGRAM} install DIRECTORY    links of all names\n       \
         {PROGRAM} completions bash|zsh|fish    the script of the shell\n       \
         {PROGRAM} man    its page for man(1)\n\n\
         Called by one of these names, it is that tool:\n"
    );
    for names in NAMES.chunks(3) {
        text.push_str(&format!("  {}\n", names.join(", ")));
    }
    text.push_str("and, by its first word only: chain-names\n");
    text
}

const PROGRAM: &str = "sluicegate-tools";
