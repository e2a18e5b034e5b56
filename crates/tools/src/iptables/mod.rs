//! iptables(8), iptables-save(8) and iptables-restore(8), and those of ip6tables, with both back ends.
//!
//! Words, exit status and messages that programs read are those of iptables 1.8.9. Of a rule that iptables has
//! no words for, the list of all chains shows the text of nft in a comment and warns, with status 0, where the tool
//! lists nothing and fails; the list of its chain fails, and the save leaves its table out, as the tool's do. A rule
//! of iptables whose options cannot be shown is such a comment as well, but the list then fails.

mod arguments;
mod choose;
mod client;
mod command;
mod failure;
mod help;
pub(crate) mod hosts;
mod line;
mod restore;
mod save;
mod values;

use std::ffi::OsString;
use std::process::ExitCode;

use sluicegate_iptables_save::{Family, decode, encode, printable};
use sluicegate_xtables::{BackEnd, Foreign, ForeignReason};

use crate::output::{tell, tell_bytes};
use failure::Failure;

pub(crate) use choose::{back_end, legacy_tables};

/// The tool that the program is by its name.
struct Tool {
    /// The name that it was called by.
    called: String,
    /// The name in its messages.
    name: String,
    family: Family,
    back_end: BackEnd,
}

impl Tool {
    /// Returns what stands behind the name: the version whose behaviour this is.
    fn version(&self) -> String {
        let variant = if self.back_end == BackEnd::Nft { "nf_tables" } else { "legacy" };
        format!("{VERSION} ({variant})")
    }

    fn tables(&self) -> &'static str {
        if self.family == Family::Ipv4 { "iptables" } else { "ip6tables" }
    }

    /// Prints a message with the name of the tool to standard error, with bytes that are not UTF-8 as they are.
    fn tell(&self, message: &str) {
        tell_bytes(&encode(&format!("{}: {message}", self.name)));
    }

    /// Tells that the other back end has tables, too, as the tool does before it lists anything.
    fn warn_of_legacy(&self) {
        if self.back_end == BackEnd::Nft && legacy_tables(self.family).is_some_and(|names| !names.is_empty())
        {
            let name = self.tables();
            let save = if self.name.ends_with("-save") { "-save" } else { "" };
            tell(format_args!(
                "# Warning: {name}-legacy tables present, use {name}-legacy{save} to see them"
            ));
        }
    }
}

/// Runs the tool of this name, such as `ip6tables-legacy-save`.
pub(crate) fn main(name: &str, arguments: &[OsString]) -> ExitCode {
    let arguments: Vec<_> =
        arguments.iter().map(|word| decode(word.as_encoded_bytes()).into_owned()).collect();
    let family = if name.starts_with("ip6") { Family::Ipv6 } else { Family::Ipv4 };
    let mut tool = Tool { called: name.to_owned(), name: name.to_owned(), family, back_end: BackEnd::Nft };
    let ended = back_end(name).and_then(|back_end| {
        tool.back_end = back_end;
        if back_end == BackEnd::Legacy {
            // The legacy tools have this name whatever they were called by.
            tool.name = name.replace("-legacy", "");
        }
        if name.ends_with("-save") {
            save::run(&tool, &arguments)
        } else if name.ends_with("-restore") {
            restore::run(&tool, &arguments)
        } else {
            tool.name = tool.tables().to_owned();
            command::run(&tool, &arguments)
        }
    });
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            let text = failure.text(&tool.name, &tool.version());
            if !text.is_empty() {
                tell_bytes(&encode(&text));
            }
            ExitCode::from(failure.status)
        }
    }
}

/// The version whose behaviour this is.
const VERSION: &str = "v1.8.9";

/// Returns the failure of a chain or table with something that iptables has no words for.
fn incompatible(table: &str, foreign: &Foreign) -> Failure {
    let chain = printable(&foreign.chain);
    match &foreign.reason {
        ForeignReason::Expression(_) | ForeignReason::BaseChain => {
            Failure::incompatible(&foreign.chain, table)
        }
        reason => Failure::version(format!(
            "Parsing nftables rule failed: chain `{chain}' in table `{table}' has what iptables has no words \
                 for ({reason}): {}",
            foreign.text
        )),
    }
}
