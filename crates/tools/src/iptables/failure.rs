//! Failures in the words and with the exit status of iptables 1.8.9: programs read them.

use sluicegate_iptables_save::{
    self as save, Condition, Family, OptionRow, RuleFault, find_match, find_target, port_number, printable,
};
use sluicegate_xtables::netlink::Errno;
use sluicegate_xtables::{BackEnd, CompileError, Error, Fault, Mismatch, SetMismatch};

use super::arguments::LONGEST_CHAIN;
use super::values;

/// What ends a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(super) status: u8,
    pub(super) message: String,
    said_with: SaidWith,
}

/// What stands before a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SaidWith {
    Nothing,
    Name,
    NameAndVersion,
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
    Failure { message: message.into(), ..Failure::status(PARAMETER) }
}

impl Failure {
    /// Returns one of this status without a word.
    pub(super) fn status(status: u8) -> Self {
        Self { status, message: String::new(), said_with: SaidWith::NameAndVersion }
    }

    /// Returns one of a kernel that lacks something.
    pub(super) fn version(message: impl Into<String>) -> Self {
        Self { message: message.into(), ..Self::status(VERSION) }
    }

    /// Returns one of a lock or of the kernel.
    pub(super) fn resource(message: impl Into<String>) -> Self {
        Self { message: message.into(), ..Self::status(RESOURCE) }
    }

    /// Returns one of words that are wrong, which the tool tells without its name.
    pub(super) fn bare(message: impl Into<String>) -> Self {
        Self { said_with: SaidWith::Nothing, ..parameter(message) }
    }

    /// Returns one that the tool tells without its name.
    pub(super) fn plain(message: impl Into<String>) -> Self {
        Self { said_with: SaidWith::Nothing, ..Self::other(message) }
    }

    /// Returns one of which nothing is said but where help is.
    pub(super) fn usage() -> Self {
        parameter("")
    }

    /// Returns what the tool tells of what the kernel said, without its version.
    pub(super) fn other(message: impl Into<String>) -> Self {
        Self { message: message.into(), said_with: SaidWith::Name, ..Self::status(OTHER) }
    }

    /// Returns the failure of a chain that iptables-nft does not take for its own, which it tells with its
    /// version.
    pub(super) fn incompatible(chain: &str, table: &str) -> Self {
        let chain = printable(chain);
        Self::whole(format!("chain `{chain}' in table `{table}' is incompatible, use 'nft' tool."))
    }

    /// Returns one that the tool tells with its version.
    pub(super) fn whole(message: impl Into<String>) -> Self {
        Self { message: message.into(), ..Self::status(OTHER) }
    }

    /// Adds a line.
    pub(super) fn with(mut self, line: &str) -> Self {
        self.message = format!("{}\n{line}", self.message);
        self
    }

    /// Returns what is told on standard error. `name` is that of the tool, `version` behind it.
    pub(super) fn text(&self, name: &str, version: &str) -> String {
        let mut lines = Vec::new();
        if !self.message.is_empty() {
            lines.push(match self.said_with {
                SaidWith::Nothing => self.message.clone(),
                SaidWith::Name => format!("{name}: {}", self.message),
                SaidWith::NameAndVersion => format!("{name} {version}: {}", self.message),
            });
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
        Error::Line { fault, reason, name, .. } => line(*fault, reason, name, asked),
        Error::Rule { source, .. } => rule(source, asked),
        Error::Kernel { table, errno: Errno::ENOENT, operation: "reading", .. } => {
            Failure::version(match back_end {
                BackEnd::Nft => format!("table '{table}' does not exist"),
                BackEnd::Legacy => format!(
                    "can't initialize {tables} table `{table}': Table does not exist (do you need to insmod?)"
                ),
            })
        }
        Error::Kernel { table, errno, operation: "reading", .. } if back_end == BackEnd::Legacy => {
            Failure::version(format!(
                "can't initialize {tables} table `{table}': {}",
                if *errno == Errno::EPERM {
                    "Permission denied (you must be root)".to_owned()
                } else {
                    said(*errno)
                }
            ))
        }
        Error::Socket { errno: Errno::EPERM, .. } => {
            Failure::version("Could not fetch rule set generation id: Permission denied (you must be root)")
        }
        Error::Kernel { errno, .. } => Failure::other(kernel(*errno)),
        Error::Refused { errno, .. } => {
            let (operation, object) = operation(command);
            Failure::resource(format!(" {operation} failed ({}): {object} {chain}", said(*errno)))
        }
        Error::Locked { .. } => Failure::resource(
            "Another app is currently holding the xtables lock. Perhaps you want to use the -w option?",
        ),
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

fn line(fault: Fault, reason: &str, name: &str, asked: Asked<'_>) -> Failure {
    let Asked { back_end, command, .. } = asked;
    let chain = if name.is_empty() { asked.chain } else { name };
    let busy = || match back_end {
        BackEnd::Nft => {
            Failure::resource(format!(" CHAIN_DEL failed (Device or resource busy): chain {chain}"))
        }
        BackEnd::Legacy => Failure::other("Too many links."),
    };
    match fault {
        Fault::NoRule => Failure::other("Bad rule (does a matching rule exist in that chain?)."),
        Fault::NoNumber => Failure::other(match command {
            'I' => "Index of insertion too big.",
            'R' => "Index of replacement too big.",
            'Z' | 'z' if back_end == BackEnd::Nft => "Bad rule (does a matching rule exist in that chain?).",
            'Z' | 'z' => "Index of counter too big.",
            _ => "Index of deletion too big.",
        }),
        Fault::NoChain if command == 'P' => Failure::other("Bad built-in chain name."),
        Fault::NoChain if matches!(command, 'C' | 'D') || command == 'z' && back_end == BackEnd::Nft => {
            Failure::other("Bad rule (does a matching rule exist in that chain?).")
        }
        Fault::NoChain => Failure::other("No chain/target/match by that name."),
        Fault::NoTarget => no_target(name, back_end),
        Fault::Exists if command == 'E' => Failure::other("File exists."),
        Fault::Exists if command == ':' && back_end == BackEnd::Legacy => {
            parameter(format!("error creating chain '{chain}':File exists"))
        }
        Fault::Exists | Fault::Name if matches!(command, 'N' | ':') => {
            Failure::other("Chain already exists.")
        }
        Fault::BuiltIn if command == 'E' => Failure::other("No chain/target/match by that name."),
        Fault::BuiltIn if back_end == BackEnd::Legacy => Failure::other(format!("Invalid argument.{DMESG}")),
        Fault::BuiltIn | Fault::InUse | Fault::NotEmpty => match (fault, back_end) {
            (Fault::NotEmpty, BackEnd::Legacy) => Failure::other("Directory not empty."),
            _ => busy(),
        },
        Fault::NotBuiltIn => Failure::other("Bad built-in chain name."),
        Fault::Policy => Failure::other(format!("Bad policy name.{DMESG}")),
        Fault::Several => parameter("Replacement rule does not specify a unique address"),
        _ => Failure::other(reason),
    }
}

/// Words that cannot be a rule: where a fault has a kind, in the words of the tool; the other sentences are our
/// own, for who reads them is a person.
pub(super) fn rule(error: &CompileError, asked: Asked<'_>) -> Failure {
    match error {
        CompileError::Words(save::Error::Place { reason, fault, .. }) => place(fault, reason, asked),
        CompileError::Words(save::Error::Rule { word, reason, fault, .. }) => {
            match of_kind(fault, word, asked) {
                Some(message) => parameter(message),
                None if word.is_empty() => parameter(reason),
                None => parameter(format!("`{word}': {reason}")),
            }
        }
        CompileError::Unsupported(unsupported) => {
            let name = &unsupported.name;
            // The kernel lacks it, which the tool learns from its refusal.
            let message = format!("{} {name}: {}", unsupported.kind, unsupported.reason);
            match asked.back_end {
                BackEnd::Nft => asked.refused("No such file or directory", &message),
                BackEnd::Legacy => Failure::other(format!("No chain/target/match by that name.\n{message}")),
            }
        }
        CompileError::Value { cause: Mismatch::Set(SetMismatch::Missing { name }), .. } => {
            parameter(format!("Set {name} doesn't exist.\n"))
        }
        // A name that no user or group has.
        CompileError::Value {
            cause: Mismatch::Word { option: Some(option), found: Some(found), .. },
            ..
        } if matches!(&**option, "uid-owner" | "gid-owner") => {
            parameter(format!("owner: Bad value for \"--{option}\" option: \"{found}\""))
        }
        other => parameter(other.to_string()),
    }
}

/// What the kernel does not take in this place.
fn place(fault: &RuleFault, reason: &str, asked: Asked<'_>) -> Failure {
    let nft = asked.back_end == BackEnd::Nft;
    let errno = match fault {
        // The tool itself looks at these two, with one back end, where they have options.
        RuleFault::NeedsProtocol { extension: name @ ("tcp" | "udp") } if nft => {
            let name = (name.to_uppercase(), name);
            return parameter(format!("{} match requires '-p {}'", name.0, name.1));
        }
        RuleFault::OwnChain if nft => EMLINK,
        RuleFault::OwnChain => Errno::ELOOP,
        RuleFault::BuiltInChain if nft => Errno::EOPNOTSUPP,
        _ => Errno::EINVAL,
    };
    match nft {
        true => asked.refused(&said(errno), reason),
        false => Failure::other(format!("{}\n{reason}", kernel(errno))),
    }
}

/// Returns what the tool says of a kind of fault.
fn of_kind(fault: &RuleFault, word: &str, asked: Asked<'_>) -> Option<String> {
    let before = word.split('/').next().unwrap_or_default();
    let of_extension = match fault {
        RuleFault::Required { extension, .. } | RuleFault::Alone { extension: extension @ "SET", .. } => {
            values::lacks(extension, None).map(str::to_owned)
        }
        RuleFault::Condition { extension: "policy", condition: Condition::Value { option: "proto", .. } } => {
            Some("policy match: protocol must be ah/esp/ipcomp".to_owned())
        }
        RuleFault::Condition { extension, condition } => {
            values::lacks(extension, Some(condition)).map(str::to_owned)
        }
        RuleFault::OutOfRange { extension, option } | RuleFault::Value { extension, option } => {
            values::wrong(extension, option, word, asked.family)
        }
        _ => None,
    };
    if of_extension.is_some() {
        return of_extension;
    }
    Some(match fault {
        RuleFault::Repeated { extension: "tcp" | "sctp" | "dccp", option } => match *option {
            "syn" | "tcp-flags" => "Only one of `--syn' or `--tcp-flags'  allowed".to_owned(),
            option => format!("Only one `--{option}' allowed"),
        },
        RuleFault::Repeated { extension, option } => {
            format!("{extension}: option \"--{option}\" can only be used once.\n")
        }
        RuleFault::Negated { extension, option } => {
            format!("{extension}: option \"--{option}\" cannot be inverted.\n")
        }
        RuleFault::Required { extension, option } => {
            format!("{extension}: option \"--{option}\" must be specified\n")
        }
        RuleFault::Exclusive { extension: "tcp", .. } => {
            "Only one of `--syn' or `--tcp-flags'  allowed".to_owned()
        }
        RuleFault::Exclusive { extension: "multiport", option, other } => {
            let name = |option| match option {
                "sports" => "source-ports",
                "dports" => "destination-ports",
                option => option,
            };
            let (option, other) = (name(option), name(other));
            format!("multiport: option \"--{other}\" cannot be used together with \"--{option}\".\n")
        }
        RuleFault::Exclusive { extension, option, other } => {
            format!("{extension}: option \"--{other}\" cannot be used together with \"--{option}\".\n")
        }
        RuleFault::Alone { extension, option, needs } => {
            format!("{extension}: option \"--{option}\" also requires \"--{needs}\".\n")
        }
        RuleFault::OutOfRange { extension, option } => {
            let row = find_match(extension, asked.family).and_then(|found| found.option(option));
            let row = row.or_else(|| find_target(extension, asked.family)?.option(option));
            let (from, to) = row.and_then(OptionRow::range)?;
            format!("{extension}: bad value for option \"--{option}\", or out of range ({from}-{to}).\n")
        }
        RuleFault::Port { extension: "multiport" }
            if word.split(',').map(|part| part.split(':').count()).sum::<usize>() > MULTIPORTS =>
        {
            "too many ports specified".to_owned()
        }
        RuleFault::Port { extension: "multiport" } if word.split(',').any(str::is_empty) => {
            "invalid port/service `' specified".to_owned()
        }
        RuleFault::Port { extension } => {
            let mut ports = word.split(',').flat_map(|range| range.splitn(2, ':'));
            let port = ports.find(|port| !is_port(port)).unwrap_or(word);
            let is_name = port.contains(|c: char| !c.is_ascii_digit());
            match *extension {
                "udp" | "udplite" | "dccp" | "conntrack" | "ipvs" | "TPROXY" if is_name => {
                    format!("Port \"{port}\" does not resolve to anything.\n")
                }
                _ => format!("invalid port/service `{port}' specified"),
            }
        }
        RuleFault::PortRange => "invalid portrange (min > max)".to_owned(),
        RuleFault::Protocol => return Some(no_protocol(word).message),
        RuleFault::NoProtocol => "rule would never match protocol".to_owned(),
        RuleFault::RejectType => format!("unknown reject type \"{word}\""),
        RuleFault::Mask => {
            format!("invalid mask `{}' specified", word.split_once('/').map_or("", |(_, mask)| mask))
        }
        RuleFault::Address => format!("host/network `{before}' not found"),
        RuleFault::NegatedAddresses => {
            "! not allowed with multiple source or destination IP addresses".to_owned()
        }
        RuleFault::NoInterface => "Empty interface is likely to be undesired".to_owned(),
        RuleFault::LongInterface => return Some(long_interface(word).message),
        RuleFault::NoTarget => "Invalid target name (too short)".to_owned(),
        RuleFault::LongTarget => format!("Invalid target name `{word}' ({LONGEST_CHAIN} chars max)"),
        RuleFault::NotAChain if asked.back_end == BackEnd::Legacy => format!("goto '{word}' is not a chain"),
        RuleFault::TargetName | RuleFault::NotAChain => {
            return Some(no_target(word, asked.back_end).message);
        }
        RuleFault::SecondTarget => "multiple -j flags not allowed".to_owned(),
        _ => return None,
    })
}

/// Returns whether an end of a range is left out, or is a port by its number or the name of a service.
fn is_port(port: &str) -> bool {
    port.is_empty() || port_number(port).is_some()
}

/// Returns the failure of a word that is not a protocol.
pub(super) fn no_protocol(word: &str) -> Failure {
    parameter(format!("unknown protocol \"{word}\" specified"))
}

/// Returns the failure of an interface whose name is too long.
pub(super) fn long_interface(name: &str) -> Failure {
    parameter(format!("interface name `{name}' must be shorter than IFNAMSIZ (15)"))
}

/// Returns the failure of a jump to what is neither a target nor a chain.
pub(super) fn no_target(name: &str, back_end: BackEnd) -> Failure {
    parameter(match back_end {
        BackEnd::Nft => format!("Chain '{name}' does not exist"),
        BackEnd::Legacy => format!("Couldn't load target `{name}':No such file or directory\n"),
    })
}

impl Asked<'_> {
    /// Returns the failure of a command that the kernel refuses, with why.
    fn refused(self, said: &str, reason: &str) -> Failure {
        let (operation, object) = operation(self.command);
        Failure::resource(format!(" {operation} failed ({said}): {object} {}\n{reason}", self.chain))
    }
}

/// Returns the text of the kernel's error with the hint of the tool.
fn kernel(errno: Errno) -> String {
    match errno {
        Errno::EINVAL => format!("Invalid argument.{DMESG}"),
        errno => format!("{}.", said(errno)),
    }
}

/// Returns the system's text of an error.
fn said(errno: Errno) -> String {
    reason(&std::io::Error::from_raw_os_error(errno.0))
}

/// Returns the system's text of an error, without its number.
pub(super) fn reason(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.rsplit_once(" (os error").map_or(text.clone(), |(text, _)| text.to_owned())
}

/// What iptables advises, and iptables-restore doesn't.
pub(super) const DMESG: &str = " Run `dmesg' for more information.";
/// `XT_MULTI_PORTS` (`linux/netfilter/xt_multiport.h`)
const MULTIPORTS: usize = 15;
/// `EMLINK` (`asm-generic/errno-base.h`)
const EMLINK: Errno = Errno(31);
