//! Failures in the words and with the exit status of iptables 1.8.9: programs read them.

use sluicegate_iptables_save::{self as save, Family};
use sluicegate_xtables::netlink::Errno;
use sluicegate_xtables::{BackEnd, CompileError, Error, Fault};

/// What ends a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Failure {
    pub(super) status: u8,
    pub(super) message: String,
}

/// `PARAMETER_PROBLEM`: the words are wrong.
pub(super) const PARAMETER: u8 = 2;
/// `VERSION_PROBLEM`: the kernel lacks something.
pub(super) const VERSION: u8 = 3;
/// `RESOURCE_PROBLEM`: a lock, or the kernel in a batch.
pub(super) const RESOURCE: u8 = 4;
/// `OTHER_PROBLEM`
pub(super) const OTHER: u8 = 1;

/// Returns the failure of words that are wrong.
pub(super) fn parameter(message: impl Into<String>) -> Failure {
    Failure { status: PARAMETER, message: message.into() }
}

impl Failure {
    /// Returns one of which nothing is said but where help is.
    pub(super) fn usage() -> Self {
        parameter("")
    }

    /// Returns what the tool tells of what the kernel said, without its version.
    pub(super) fn other(message: impl Into<String>) -> Self {
        Self { status: OTHER, message: message.into() }
    }

    /// Returns the failure of a chain that iptables-nft does not take for its own, which it tells with its
    /// version.
    pub(super) fn incompatible(chain: &str, table: &str) -> Self {
        let chain = chain.escape_debug();
        Self::other(format!("chain `{chain}'{INCOMPATIBLE}`{table}' is incompatible, use 'nft' tool."))
    }

    /// Returns what is told on standard error. `name` is that of the tool, `version` behind it.
    pub(super) fn text(&self, name: &str, version: &str) -> String {
        let mut lines = Vec::new();
        if !self.message.is_empty() {
            let without = self.status == OTHER && !self.message.contains(INCOMPATIBLE);
            let version = if without { String::new() } else { format!(" {version}") };
            lines.push(format!("{name}{version}: {}", self.message));
        }
        match self.status {
            PARAMETER => {
                lines.push(format!("Try `{name} -h' or '{name} --help' for more information."));
            }
            VERSION => lines.push(format!("Perhaps {name} or your kernel needs to be upgraded.")),
            _ => (),
        }
        lines.join("\n")
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self::other(error.to_string())
    }
}

/// What was asked for when an error came, which some words depend on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asked<'a> {
    pub(super) back_end: BackEnd,
    pub(super) family: Family,
    pub(super) command: char,
    pub(super) chain: &'a str,
}

/// Puts an error into the words of the tool.
pub(super) fn of(error: &Error, asked: Asked<'_>) -> Failure {
    let Asked { back_end, command, chain, .. } = asked;
    let tables = if asked.family == Family::Ipv4 { "iptables" } else { "ip6tables" };
    match error {
        Error::Line { fault, reason, .. } => line(*fault, reason, asked),
        Error::Rule { source, .. } => rule(source, asked),
        Error::Kernel { table, errno: Errno::ENOENT, operation: "reading", .. } => Failure {
            status: VERSION,
            message: match back_end {
                BackEnd::Nft => format!("table '{table}' does not exist"),
                BackEnd::Legacy => format!(
                    "can't initialize {tables} table `{table}': Table does not exist (do you need to insmod?)"
                ),
            },
        },
        Error::Kernel { table, errno, operation: "reading", .. } if back_end == BackEnd::Legacy => Failure {
            status: VERSION,
            message: format!(
                "can't initialize {tables} table `{table}': {}",
                if *errno == Errno::EPERM {
                    "Permission denied (you must be root)".to_owned()
                } else {
                    said(*errno)
                }
            ),
        },
        Error::Socket { errno: Errno::EPERM, .. } => Failure {
            status: VERSION,
            message: "Could not fetch rule set generation id: Permission denied (you must be root)"
                .to_owned(),
        },
        Error::Kernel { errno, .. } => Failure::other(kernel(*errno)),
        Error::Refused { errno, .. } => {
            let (operation, object) = operation(command);
            let message = format!(" {operation} failed ({}): {object} {chain}", said(*errno));
            Failure { status: RESOURCE, message }
        }
        Error::Locked { .. } => Failure {
            status: RESOURCE,
            message:
                "Another app is currently holding the xtables lock. Perhaps you want to use the -w option?"
                    .to_owned(),
        },
        other => Failure::other(other.to_string()),
    }
}

/// Returns what a command asks of the kernel, in the words of the tool.
fn operation(command: char) -> (&'static str, &'static str) {
    match command {
        'A' => ("RULE_APPEND", "rule in chain"),
        'I' => ("RULE_INSERT", "rule in chain"),
        'R' => ("RULE_REPLACE", "rule in chain"),
        'D' => ("RULE_DELETE", "rule in chain"),
        'N' => ("CHAIN_ADD", "chain"),
        'X' => ("CHAIN_DEL", "chain"),
        'E' => ("CHAIN_RENAME", "chain"),
        'P' => ("CHAIN_UPDATE", "chain"),
        'F' => ("RULE_FLUSH", "rule in chain"),
        _ => ("TRANSACTION", "chain"),
    }
}

fn line(fault: Fault, reason: &str, asked: Asked<'_>) -> Failure {
    let Asked { back_end, command, chain, .. } = asked;
    let busy = || match back_end {
        BackEnd::Nft => Failure {
            status: RESOURCE,
            message: format!(" CHAIN_DEL failed (Device or resource busy): chain {chain}"),
        },
        BackEnd::Legacy => Failure::other("Too many links."),
    };
    match fault {
        Fault::NoRule => Failure::other("Bad rule (does a matching rule exist in that chain?)."),
        Fault::NoNumber => Failure::other(match command {
            'I' => "Index of insertion too big.",
            'R' => "Index of replacement too big.",
            'Z' => "Index of counter too big.",
            _ => "Index of deletion too big.",
        }),
        Fault::NoChain if command == 'P' => Failure::other("Bad built-in chain name."),
        Fault::NoChain if matches!(command, 'C' | 'D') => {
            Failure::other("Bad rule (does a matching rule exist in that chain?).")
        }
        Fault::NoChain => Failure::other("No chain/target/match by that name."),
        Fault::NoTarget => {
            let target = reason.rsplit(' ').next().unwrap_or_default();
            parameter(match back_end {
                BackEnd::Nft => format!("Chain '{target}' does not exist"),
                BackEnd::Legacy => format!("Couldn't load target `{target}':No such file or directory"),
            })
        }
        Fault::Exists if command == 'E' => Failure::other("File exists."),
        Fault::Exists | Fault::Name if command == 'N' => Failure::other("Chain already exists."),
        Fault::BuiltIn if command == 'E' => Failure::other("No chain/target/match by that name."),
        Fault::BuiltIn if back_end == BackEnd::Legacy => {
            Failure::other("Invalid argument. Run `dmesg' for more information.")
        }
        Fault::BuiltIn | Fault::InUse | Fault::NotEmpty => match (fault, back_end) {
            (Fault::NotEmpty, BackEnd::Legacy) => Failure::other("Directory not empty."),
            _ => busy(),
        },
        Fault::NotBuiltIn => Failure::other("Bad built-in chain name."),
        Fault::Policy => Failure::other("Bad policy name. Run `dmesg' for more information."),
        Fault::Several => parameter("Replacement rule does not specify a unique address"),
        _ => Failure::other(reason),
    }
}

/// Words that cannot be a rule. The sentences are our own: who reads them is a person.
fn rule(error: &CompileError, asked: Asked<'_>) -> Failure {
    match error {
        CompileError::Words(save::Error::Place { word, reason, .. }) => {
            let nft = asked.back_end == BackEnd::Nft;
            // The tool itself looks at these two, with one back end.
            let is_own = nft && (reason.starts_with("tcp needs") || reason.starts_with("udp needs"));
            let errno = match (reason.contains("a loop"), word == asked.chain && !word.is_empty(), nft) {
                (true, _, true) => EMLINK,
                (true, _, false) => Errno::ELOOP,
                _ if nft && reason.contains("built-in chain cannot") => Errno::EOPNOTSUPP,
                _ => Errno::EINVAL,
            };
            match (is_own, nft) {
                (true, _) => parameter(reason),
                (_, true) => Failure {
                    status: RESOURCE,
                    message: format!(
                        " {} failed ({}): rule in chain {}\n{reason}",
                        operation(asked.command).0,
                        said(errno),
                        asked.chain
                    ),
                },
                (_, false) => Failure::other(format!("{}\n{reason}", kernel(errno))),
            }
        }
        CompileError::Words(save::Error::Rule { word, reason, .. }) if word.is_empty() => parameter(reason),
        CompileError::Words(save::Error::Rule { word, reason, .. }) => {
            parameter(format!("`{word}': {reason}"))
        }
        CompileError::Unsupported(unsupported) => {
            let name = &unsupported.name;
            // The kernel lacks it, which the tool learns from its refusal.
            let message = format!("{} {name}: {}", unsupported.kind, unsupported.reason);
            match asked.back_end {
                BackEnd::Nft => Failure {
                    status: RESOURCE,
                    message: format!(
                        " {} failed (No such file or directory): rule in chain {}\n{message}",
                        operation(asked.command).0,
                        asked.chain
                    ),
                },
                BackEnd::Legacy => Failure::other(format!("No chain/target/match by that name.\n{message}")),
            }
        }
        other => parameter(other.to_string()),
    }
}

/// Returns the text of the kernel's error with the hint of the tool.
fn kernel(errno: Errno) -> String {
    match errno {
        Errno::EINVAL => "Invalid argument. Run `dmesg' for more information.".to_owned(),
        errno => format!("{}.", said(errno)),
    }
}

/// Returns the system's text of an error.
fn said(errno: Errno) -> String {
    let text = std::io::Error::from_raw_os_error(errno.0).to_string();
    text.rsplit_once(" (os error").map_or(text.clone(), |(text, _)| text.to_owned())
}

/// What is between the names of a chain and of its table.
const INCOMPATIBLE: &str = " in table ";
/// `EMLINK` (`asm-generic/errno-base.h`)
const EMLINK: Errno = Errno(31);
