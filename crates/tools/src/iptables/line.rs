//! What iptables-restore says of a line of its input: a rule is read as iptables reads its command line.

use sluicegate_iptables_save::{decode, split};

use super::failure::{Failure, parameter};
use super::{Tool, arguments};

/// A line of the input.
pub(super) struct Line {
    number: usize,
    text: String,
    /// Whether a table is open where it begins.
    in_table: bool,
}

/// A command that a line gives.
pub(super) struct Given {
    pub(super) command: char,
    pub(super) chain: String,
}

impl Line {
    /// Returns the line of this number, from 1; none behind the end.
    pub(super) fn find(input: &[u8], number: usize) -> Option<Self> {
        let mut in_table = false;
        for (at, line) in input.split_inclusive(|byte| *byte == b'\n').enumerate() {
            // A carriage return is a part of the last word.
            let blank = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\n');
            let end = line.iter().rposition(|byte| !blank(byte)).map_or(0, |last| last + 1);
            let line = line.get(..end).unwrap_or_default();
            if at + 1 == number {
                return Some(Self { number, text: decode(line).into_owned(), in_table });
            }
            in_table = (in_table || line.starts_with(b"*")) && line != b"COMMIT";
        }
        None
    }

    /// Returns what the tool says of a line that is not of the form of a save, if it has words for it. `reason`
    /// is our own sentence.
    pub(super) fn unreadable(&self, tool: &Tool, reason: &str) -> Option<Failure> {
        let Self { number, text, in_table } = self;
        let wrong = |what: &str| Some(self.at(parameter(format!("{}: line {number} {what}", tool.name))));
        if !in_table && !text.starts_with('*') {
            return Some(Failure::other(format!("line {number} failed\n{reason}")));
        }
        if !in_table {
            return if text.len() == 1 { wrong("table name invalid") } else { None };
        }
        if let Some(chain) = text.strip_prefix(':') {
            let mut words = chain.split_ascii_whitespace();
            return match (words.next(), words.next()) {
                (None, _) => wrong("chain name invalid"),
                (Some(_), None) => wrong("policy invalid"),
                (Some(chain), Some(policy)) if policy != "-" => Some(self.no_counters(chain)),
                _ => None,
            };
        }
        if text.starts_with('[') {
            let (counters, _) = text.split_once(']').unwrap_or((text, ""));
            if counters.len() == text.len() || !counters.contains(':') {
                return Some(self.at(parameter(format!("Bad line {number}: need ]"))));
            }
        }
        self.refused(tool)
    }

    /// Returns the failure of a policy whose counters are asked for and cannot be read.
    pub(super) fn no_counters(&self, chain: &str) -> Failure {
        self.at(parameter(format!("invalid policy counters for chain '{chain}'")))
    }

    /// Returns how the tool refuses the words of the line, if it does.
    pub(super) fn refused(&self, tool: &Tool) -> Option<Failure> {
        let failure = match arguments::read(&self.words()?, tool.family) {
            Err(failure) => failure,
            Ok(found) if found.table.is_some() => {
                parameter(format!("The -t option cannot be used in {}.\n", tool.name))
            }
            Ok(found) if found.wait.is_some() => parameter("You cannot use `-w' from iptables-restore"),
            Ok(_) => return None,
        };
        Some(self.at(failure))
    }

    /// Returns the command of the line.
    pub(super) fn given(&self, tool: &Tool) -> Option<Given> {
        if let Some(chain) = self.text.strip_prefix(':') {
            let chain = chain.split_ascii_whitespace().next().unwrap_or_default();
            return Some(Given { command: ':', chain: chain.to_owned() });
        }
        let found = arguments::read(&self.words()?, tool.family).ok()?;
        Some(Given { command: found.command?, chain: found.chain.unwrap_or_default() })
    }

    /// Returns the chain and the policy of a line that sets one.
    pub(super) fn policy(&self) -> Option<(&str, &str)> {
        let mut words = self.text.strip_prefix(':')?.split_ascii_whitespace();
        Some((words.next()?, words.next().filter(|policy| *policy != "-")?))
    }

    /// Adds where it is.
    pub(super) fn at(&self, failure: Failure) -> Failure {
        failure.with(&format!("Error occurred at line: {}", self.number))
    }

    fn words(&self) -> Option<Vec<String>> {
        let rule = match self.text.strip_prefix('[') {
            None => &*self.text,
            Some(rest) => rest.split_once(']')?.1,
        };
        split(rule).map(|word| Some(word.ok()?.text.into_owned())).collect()
    }
}
