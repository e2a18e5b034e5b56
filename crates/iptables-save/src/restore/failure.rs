//! Parsers of the tools' output: their version, and the reason why they refused an input.

use super::BackEnd;
use super::process::ProcessOutput;
use crate::error::{Cause, Refusal};
use crate::{Error, Save};

/// `iptables-restore v1.8.9 (nf_tables)`; tools before 1.8 name no back end and are legacy.
pub(super) fn version(said: &str) -> Option<((u32, u32, u32), BackEnd)> {
    let mut words = said.split_whitespace();
    let version = words.find_map(|word| {
        word.strip_prefix('v').filter(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    })?;
    let mut parts = version.split('.').map(|part| part.parse().unwrap_or(0));
    let version = (parts.next()?, parts.next().unwrap_or(0), parts.next().unwrap_or(0));
    let back_end = if words.next() == Some("(nf_tables)") { BackEnd::Nft } else { BackEnd::Legacy };
    Some((version, back_end))
}

/// Returns the error of a tool that failed with `input`.
pub(super) fn of(said: &ProcessOutput, input: &str) -> Error {
    let words = String::from_utf8_lossy(&said.error);
    Error::Refused(Box::new(Refusal::read(&said.command, said.status.code(), &words, input)))
}

impl Refusal {
    /// Reads what a tool wrote to standard error when it failed with `input`: for programs that run the tools
    /// themselves, in the C locale. `status` is the exit status, `None` after a signal.
    ///
    /// ```
    /// use sluicegate_iptables_save::{Cause, Refusal};
    ///
    /// let said = "iptables-nft-restore: line 2 failed: Chain already exists.\n";
    /// let refusal = Refusal::read("iptables-restore", Some(1), said, "*filter\n-N X\nCOMMIT\n");
    /// assert_eq!((refusal.cause, refusal.text.as_deref()), (Cause::Exists, Some("-N X")));
    /// ```
    #[must_use]
    pub fn read(command: &str, status: Option<i32>, words: &str, input: &str) -> Self {
        let line = line_of(words);
        let message = message(words);
        let cause = cause(&message, words, status, line, input);
        let text = line.and_then(|line| input.lines().nth(line.checked_sub(1)?)).map(str::to_owned);
        Self { command: command.to_owned(), line, text, cause, message, status }
    }
}

/// `line 5 failed`, `Error occurred at line: 5`, `line 5: RULE_APPEND failed`, `COMMIT expected at line 5`,
/// `Bad line 5`.
fn line_of(words: &str) -> Option<usize> {
    words.match_indices("line").find_map(|(at, _)| {
        let rest = words.get(at + "line".len()..)?.trim_start_matches([':', ' ']);
        rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
    })
}

/// Returns the message without the name of the tool, warnings, advice, and the line number.
fn message(words: &str) -> String {
    let said = words.lines().map(str::trim).filter(|line| {
        let empty = ["Error occurred at line", "Try `", "warn:", "# Warning", "Ignoring deprecated"];
        !line.is_empty() && !empty.iter().any(|start| line.starts_with(start))
    });
    let said: Vec<_> = said.map(without_tool).filter(|line| !line.is_empty()).collect();
    said.join("; ")
}

fn without_tool(line: &str) -> &str {
    let rest = match line.split_once(": ") {
        Some((tool, rest)) if tool.contains("tables") && tool.contains("restore") => rest,
        _ if line.ends_with(':') && line.contains("tables") => "",
        _ => line,
    };
    rest.trim()
}

/// Decides by what the tools of 1.8.9 print. Text that is none of these says nothing about the input: it is
/// [`Cause::Other`], so that nobody takes a passing failure for an answer.
fn cause(message: &str, words: &str, status: Option<i32>, line: Option<usize>, input: &str) -> Cause {
    let says = |any: &[&str]| any.iter().any(|part| message.contains(part));
    if says(&["xtables lock", "Resource temporarily unavailable"]) {
        Cause::Locked
    } else if says(&["Permission denied", "you must be root", "Operation not permitted"]) {
        Cause::Permission
    } else if says(&EXHAUSTED) {
        Cause::Exhausted
    } else if says(&["unable to initialize table", "kernel ABI is broken"]) {
        // The tool says this of whatever keeps it from reading the kernel's state.
        Cause::Other
    } else if says(&LACKS) {
        Cause::Unsupported
    } else if says(&["Too many levels", "Too many links", "loop"]) {
        Cause::Loop
    } else if says(&["Device or resource busy", "Directory not empty", "Too many references"]) {
        Cause::Busy
    } else if says(&["File exists", "already exists"]) {
        Cause::Exists
    } else if says(&["No such file or directory"]) && says(&["RULE_"]) {
        // The kernel has no such match or target, or the rule jumps to a chain that is not there.
        if jumps_to_unknown(line, input) { Cause::Missing } else { Cause::Unsupported }
    } else if says(&MISSING) {
        Cause::Missing
    } else if says(&["Invalid argument", "Operation not supported", "Numerical result"]) {
        Cause::Invalid
    } else if status == Some(2) || words.contains("Error occurred at line") || says(&["COMMIT expected"]) {
        Cause::Syntax
    } else if line.is_some_and(|line| message == format!("line {line} failed")) {
        // The legacy back end reports nothing else of what the kernel refused.
        Cause::Invalid
    } else if line.is_some() && !says(&[" failed ("]) {
        Cause::Syntax
    } else {
        Cause::Other
    }
}

/// The texts of `ENOMEM`, `ENOBUFS`, `EMFILE`, `ENFILE` and `EINTR`; the first one is libiptc's.
const EXHAUSTED: [&str; 6] = [
    "Memory allocation problem",
    "Cannot allocate memory",
    "No buffer space available",
    "Too many open files",
    "Interrupted system call",
    "Out of memory",
];
/// What both back ends print of a match, target or protocol that the tool or the kernel does not know.
const LACKS: [&str; 6] = [
    "Couldn't load match",
    "Couldn't load target",
    "Couldn't find match",
    "Couldn't find target",
    "missing kernel module",
    "unknown protocol",
];
/// What both back ends print of a chain, rule, table or set that is not there.
const MISSING: [&str; 5] = [
    "No such file or directory",
    "does not exist",
    "doesn't exist",
    "No chain/target/match",
    "does a matching rule exist",
];

/// Returns whether the rule in that line jumps to a chain that its table of the input does not create.
fn jumps_to_unknown(line: Option<usize>, input: &str) -> bool {
    let Some(line) = line else { return false };
    let Ok(save) = Save::parse(input) else { return false };
    let found =
        save.tables().find_map(|table| Some((table, table.rules().find(|rule| rule.line() == line)?)));
    let Some((table, rule)) = found else { return false };
    let Ok(spec) = rule.spec() else { return false };
    let known = |name: &str| {
        crate::find_target(name, crate::Family::Ipv4)
            .or_else(|| crate::find_target(name, crate::Family::Ipv6))
            .is_some()
    };
    spec.target_name().is_some_and(|name| table.chain(name).is_none() && !known(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    // What iptables 1.8.9 of Debian 12 said on Linux 6.18.
    #[test]
    fn messages_of_both_back_ends_give_line_cause_and_words() {
        let input = "*filter\n-A INPUT -j NOWHERE\nCOMMIT\n";
        for (words, status, line, cause_wanted, said) in [
            (
                "iptables-restore v1.8.9 (legacy): unknown option \"--foo\"\nError occurred at line: 2\n\
                 Try `iptables-restore -h' or 'iptables-restore --help' for more information.\n",
                2,
                Some(2),
                Cause::Syntax,
                "unknown option \"--foo\"",
            ),
            ("iptables-restore: line 3 failed\n", 1, Some(3), Cause::Invalid, "line 3 failed"),
            (
                "iptables-nft-restore v1.8.9 (nf_tables): \n\
                 line 2: RULE_APPEND failed (Invalid argument): rule in chain INPUT\n",
                4,
                Some(2),
                Cause::Invalid,
                "line 2: RULE_APPEND failed (Invalid argument): rule in chain INPUT",
            ),
            (
                "iptables-nft-restore v1.8.9 (nf_tables): \n\
                 line 2: RULE_APPEND failed (No such file or directory): rule in chain INPUT\n",
                4,
                Some(2),
                Cause::Missing,
                "line 2: RULE_APPEND failed (No such file or directory): rule in chain INPUT",
            ),
            (
                "Another app is currently holding the xtables lock. Perhaps you want to use the -w option?\n",
                4,
                None,
                Cause::Locked,
                "Another app is currently holding the xtables lock. Perhaps you want to use the -w option?",
            ),
            (
                "iptables-nft-restore v1.8.9 (nf_tables): \n\
                    line 2: RULE_APPEND failed (Cannot allocate memory): rule in chain INPUT\n",
                4,
                Some(2),
                Cause::Exhausted,
                "line 2: RULE_APPEND failed (Cannot allocate memory): rule in chain INPUT",
            ),
            (
                "iptables-nft-restore v1.8.9 (nf_tables): \n\
                    line 2: RULE_APPEND failed (Stale file handle): rule in chain INPUT\n",
                4,
                Some(2),
                Cause::Other,
                "line 2: RULE_APPEND failed (Stale file handle): rule in chain INPUT",
            ),
            (
                "iptables-nft-restore v1.8.9 (nf_tables): Could not fetch rule set generation id: Memory \
                    allocation problem\n",
                4,
                None,
                Cause::Exhausted,
                "Could not fetch rule set generation id: Memory allocation problem",
            ),
            (
                "iptables-restore v1.8.9 (legacy): iptables-restore: unable to initialize table 'filter'\n\
                    Error occurred at line: 1\n\
                    Try `iptables-restore -h' or 'iptables-restore --help' for more information.\n",
                2,
                Some(1),
                Cause::Other,
                "iptables-restore: unable to initialize table 'filter'",
            ),
            (
                "iptables-restore v1.8.9 (legacy): unknown protocol \"sctp\" specified\n\
                    Error occurred at line: 2\n",
                2,
                Some(2),
                Cause::Unsupported,
                "unknown protocol \"sctp\" specified",
            ),
            (
                "iptables-nft-restore: line 2 failed: Bad rule (does a matching rule exist in that \
                    chain?).\n",
                1,
                Some(2),
                Cause::Missing,
                "line 2 failed: Bad rule (does a matching rule exist in that chain?).",
            ),
            (
                "iptables: No chain/target/match by that name.\n",
                1,
                None,
                Cause::Missing,
                "iptables: No chain/target/match by that name.",
            ),
            (
                "iptables: Memory allocation problem.\n",
                1,
                None,
                Cause::Exhausted,
                "iptables: Memory allocation problem.",
            ),
        ] {
            assert_eq!(line_of(words), line, "{words}");
            assert_eq!(message(words), said, "{words}");
            assert_eq!(cause(&message(words), words, Some(status), line, input), cause_wanted, "{words}");
        }
    }

    #[test]
    fn versions_name_the_back_end_from_1_8_on() {
        assert_eq!(version("iptables-restore v1.8.9 (nf_tables)\n"), Some(((1, 8, 9), BackEnd::Nft)));
        assert_eq!(version("ip6tables-restore v1.8.9 (legacy)\n"), Some(((1, 8, 9), BackEnd::Legacy)));
        assert_eq!(version("iptables-restore v1.6.1\n"), Some(((1, 6, 1), BackEnd::Legacy)));
        assert_eq!(version("nonsense"), None);
    }
}
