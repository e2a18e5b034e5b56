//! Errors as nft reports them: the message, the line, and marks below what it is about.
//!
//! Programs look for the system's text of an error in them (`No such file or directory`), and for the place at
//! the start of the line where a file is read. The kernel's error stands in these words, and below it what it
//! means for the command, which nft does not say.

use std::fmt::Write as _;

use sluicegate_nftables::lang::parse::{Mistake, ParseError};
use sluicegate_nftables::netlink::Errno;
use sluicegate_nftables::{Error, Failure, Operation, Transaction};

use super::error::CommandError;
use super::near;

/// Why a command is not done.
#[derive(Debug)]
pub(crate) enum Fault {
    /// It is about no part of a command.
    Failed(CommandError),
    /// Nothing has this name.
    Missing(String),
    /// The kernel refuses the command.
    Refused(Errno),
}

impl From<CommandError> for Fault {
    fn from(failure: CommandError) -> Self {
        Self::Failed(failure)
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        match error.errno() {
            Some(errno) => Self::Refused(errno),
            None => Self::Failed(CommandError::cause(error)),
        }
    }
}

/// The part of a command that an error is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Part {
    Whole,
    /// The name of the table.
    Table(String),
    /// The name of what is in the table.
    Name(String),
    /// What stands behind one of these words, or with that word itself.
    Behind(&'static [&'static str]),
    /// An element, by its index.
    Element(usize),
    /// The statement of an expression, by its index; of it the first or last word, the key of a match, or the
    /// name of a set.
    Expression(usize, Of),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Of {
    Statement,
    FirstWord,
    LastWord,
    Key,
    Set,
}

/// More errors than this nobody reads.
const MOST: usize = 20;

/// An error of an operation: nft's words, what it means, and the part that it is about.
pub(crate) struct Refusal {
    pub(crate) operation: usize,
    pub(crate) message: String,
    pub(crate) meaning: Option<String>,
    pub(crate) part: Part,
}

impl Refusal {
    /// The errors of a transaction that are about an operation.
    pub(crate) fn all(
        error: &Error,
        transaction: &Transaction,
        has_intervals: &dyn Fn(&Operation) -> bool,
    ) -> Vec<Self> {
        match error {
            Error::Rejected { failures, .. } => {
                // Each that names what is not there asks the kernel what was meant.
                let found =
                    failures.iter().filter_map(|failure| Self::of(failure, transaction, has_intervals));
                found.take(MOST).collect()
            }
            Error::Index { operation, .. } => vec![Self {
                operation: *operation,
                message: no_such(Errno::ENOENT),
                meaning: Some(error.to_string()),
                part: Part::Behind(&["index"]),
            }],
            Error::Rename { operation, chain, .. } => vec![Self {
                operation: *operation,
                message: missing(&format!("chain {chain}"), true),
                meaning: Some(error.to_string()),
                part: Part::Name(chain.name.to_string()),
            }],
            Error::Statement { operation, cause, .. } => vec![Self {
                operation: *operation,
                message: cause.to_string(),
                meaning: None,
                part: Part::Whole,
            }],
            _ => Vec::new(),
        }
    }

    fn of(
        failure: &Failure,
        transaction: &Transaction,
        has_intervals: &dyn Fn(&Operation) -> bool,
    ) -> Option<Self> {
        let index = failure.operation?;
        let operation = transaction.operations().get(index)?;
        let errno = failure.error.errno;
        let is_overlap = errno == Errno::EEXIST
            && failure.element.is_some()
            && matches!(operation, Operation::Add(_))
            && has_intervals(operation);
        let part = part(failure);
        let object = failure.object();
        let message_of_missing = || match &part {
            Part::Whole | Part::Table(_) | Part::Name(_) | Part::Behind(_) => {
                missing(&object, is_looked_up(&part, failure.verb, &object))
            }
            Part::Expression(_, Of::Set) => missing_set(&operation.to_string()),
            Part::Element(_) | Part::Expression(..) => no_such(errno),
        };
        let message = match is_overlap {
            true => "interval overlaps with an existing one".to_owned(),
            false if errno == Errno::ENOENT => message_of_missing(),
            false => no_such(errno),
        };
        let mut meaning = failure.meaning.as_ref().map(ToString::to_string);
        if let Some(said) = &failure.error.message {
            meaning = Some(meaning.map_or(said.clone(), |meaning| format!("{meaning}: {said}")));
        }
        Some(Self { operation: index, message, meaning, part })
    }
}

/// Returns whether nft 1.0.6 looks for the object itself before it sends the command; of the others it tells that
/// the kernel could not process them.
fn is_looked_up(part: &Part, verb: &str, object: &str) -> bool {
    let kind = object.split(' ').next().unwrap_or_default();
    match verb {
        "add" | "create" => matches!(part, Part::Table(_)) && !matches!(kind, "rule" | "element"),
        "flush" => matches!(kind, "set" | "map" | "meter"),
        _ => false,
    }
}

/// The message for an object that does not exist, in nft's words: its kind, its family and its names.
fn missing(object: &str, is_looked_up: bool) -> String {
    match near::meant(object) {
        meant if meant.is_empty() && !is_looked_up => no_such(Errno::ENOENT),
        meant => format!("{}{meant}", Errno::ENOENT.description()),
    }
}

/// The message for a set that a rule names and that does not exist.
fn missing_set(rule: &str) -> String {
    let words: Vec<_> = rule.split_whitespace().collect();
    let place = words.iter().position(|word| FAMILIES.contains(word)).and_then(|at| words.get(at..at + 2));
    let sets = words.iter().filter_map(|word| word.strip_prefix('@'));
    let meant = |set: &str| near::meant(&format!("set {} {set}", place.unwrap_or_default().join(" ")));
    let meant = sets.map(meant).find(|meant| !meant.is_empty()).unwrap_or_default();
    format!("{}{meant}", Errno::ENOENT.description())
}

fn no_such(errno: Errno) -> String {
    format!("Could not process rule: {}", errno.description())
}

/// The part of a command that the attribute stands for that the kernel complains of.
fn part(failure: &Failure) -> Part {
    if let Some(element) = failure.element {
        return Part::Element(element);
    }
    let Some(attribute) = &failure.attribute else { return Part::Whole };
    if let Some((index, name)) = attribute.expression() {
        let is_missing = failure.error.errno == Errno::ENOENT;
        let of = match name {
            "lookup" | "dynset" => Of::Set,
            "immediate" => Of::LastWord,
            "reject" | "queue" => Of::FirstWord,
            "meta" | "ct" => Of::Key,
            "objref" if is_missing => Of::LastWord,
            _ => Of::Statement,
        };
        return Part::Expression(index, of);
    }
    // `NFTA_TABLE_NAME`, `NFTA_CHAIN_TABLE` and so on are all 1; what names the object itself differs.
    let object = failure.object();
    let words: Vec<_> = object.split(' ').collect();
    let [kind, .., last] = words.as_slice() else { return Part::Whole };
    let of_table = words.iter().position(|word| FAMILIES.contains(word)).and_then(|at| words.get(at + 1));
    match (*kind, attribute.kinds().first()) {
        ("table", Some(1)) => Part::Table((*last).to_owned()),
        (_, Some(1)) => of_table.map_or(Part::Whole, |table| Part::Table((*table).to_owned())),
        ("chain", Some(3)) | ("rule", Some(2)) => name_of(&words),
        ("chain", Some(2)) if failure.verb == "flush" => name_of(&words),
        ("chain", Some(2)) | ("rule", Some(3)) | ("set" | "map", Some(16)) | ("table", Some(4)) => {
            Part::Behind(&["handle"])
        }
        ("rule", Some(6)) => Part::Behind(&["position", "handle"]),
        (_, Some(2)) => name_of(&words),
        _ => Part::Whole,
    }
}

/// The name behind family and table.
fn name_of(words: &[&str]) -> Part {
    let family = words.iter().position(|word| FAMILIES.contains(word));
    family.and_then(|at| words.get(at + 2)).map_or(Part::Whole, |name| Part::Name((*name).to_owned()))
}

pub(crate) const FAMILIES: [&str; 6] = ["ip", "ip6", "inet", "arp", "bridge", "netdev"];

/// Marks only a part of what a mistake has marked.
pub(crate) fn narrow(mistake: &mut Mistake, part: &Part) {
    let from = mistake.column.saturating_sub(1).saturating_sub(mistake.cut);
    let words = words(&mistake.text, from, mistake.width);
    let found = match part {
        Part::Whole | Part::Element(_) | Part::Expression(_, Of::Statement) => None,
        Part::Table(name) => words.iter().skip(1).find(|(word, ..)| word == name).copied(),
        // A table and its chain may have the same name.
        Part::Name(name) => {
            let mut named = words.iter().skip(1).filter(|(word, ..)| word == name);
            let first = named.next().copied();
            let head = words.iter().take_while(|(word, ..)| !word.starts_with('{')).count();
            named
                .next()
                .filter(|of| words.iter().take(head.min(6)).any(|word| word == *of))
                .copied()
                .or(first)
        }
        Part::Behind(keywords) => words.windows(2).rev().find_map(|pair| match pair {
            [(keyword, start, _), (_, value, width)] if keywords.contains(keyword) => Some(match *keyword {
                // As nft: with its word, unless that is `handle`.
                "handle" => ("", *value, *width),
                _ => ("", *start, value + width - start),
            }),
            _ => None,
        }),
        // Of `queue flags FLAGS to NUMBER` nft marks all, of `queue num NUMBER FLAGS` this word.
        Part::Expression(_, Of::FirstWord) => match words.as_slice() {
            [("queue", ..), ("flags" | "to", ..), ..] => None,
            words => words.first().copied(),
        },
        // `meta KEY` or `ct KEY` before the value that it is compared with.
        Part::Expression(_, Of::Key) => match words.as_slice() {
            [
                ("meta" | "ct", ..),
                _,
                (".", ..) | ("set", ..) | ("vmap", ..) | ("map", ..) | ("and", ..) | ("&", ..),
                ..,
            ] => None,
            [("meta", start, _), (_, at, width), _, ..] => Some(("", *start, at + width - start)),
            [("ct", start, _), (key, at, width), _, ..] if !matches!(*key, "original" | "reply") => {
                Some(("", *start, at + width - start))
            }
            _ => None,
        },
        Part::Expression(_, Of::LastWord) => words.last().copied(),
        Part::Expression(_, Of::Set) => words.iter().rev().find(|(word, ..)| word.starts_with('@')).copied(),
    };
    if let Some((_, at, width)) = found {
        (mistake.column, mistake.width) = (at + mistake.cut + 1, width);
    }
}

/// The words of so many characters of a line, with where they start and how many characters they have.
fn words(line: &str, from: usize, width: usize) -> Vec<(&str, usize, usize)> {
    let is_end = |c: char| c.is_whitespace() || matches!(c, ';' | ',' | '{' | '}');
    let mut words = Vec::new();
    let mut start: Option<(usize, usize)> = None;
    let characters = line.char_indices().chain([(line.len(), ' ')]).enumerate().skip(from);
    for (number, (at, character)) in characters.take(width + 1) {
        let ends = is_end(character) || number == from + width;
        match start {
            Some((first, begin)) if ends => {
                words.push((line.get(begin..at).unwrap_or_default(), first, number - first));
                start = None;
            }
            None if !ends => start = Some((number, at)),
            _ => {}
        }
    }
    words
}

/// A mistake as nft prints it. The text that it is in has a name where it is a file.
pub(crate) fn mistake(of: &Mistake, name: Option<&str>) -> String {
    let mut text = String::new();
    if let Some(source) = of.source.as_deref().or(name) {
        let last = of.column + of.width.max(1) - 1;
        let _ = write!(text, "{source}:{}:{}-{last}: ", of.line, of.column);
    }
    // A tab is one mark wide.
    let line = of.text.replace('\t', " ");
    let before = of.column.saturating_sub(1).saturating_sub(of.cut);
    let shown = of.text.chars().count().saturating_sub(before).max(1);
    let marks = "^".repeat(of.width.clamp(1, shown));
    let _ = write!(text, "Error: {}\n{line}\n{}{marks}", of.message, " ".repeat(before));
    if let Some(help) = &of.help {
        let _ = write!(text, " {help}");
    }
    text
}

/// The mistakes of a text.
pub(crate) fn mistakes(of: &ParseError, name: Option<&str>) -> String {
    let mut lines: Vec<_> = of.mistakes.iter().map(|one| mistake(one, name)).collect();
    if of.is_cut {
        lines.push("Error: too many mistakes; the rest of the text was not read".to_owned());
    }
    lines.join("\n")
}

/// An error about a document, which has no lines.
pub(crate) fn internal(message: &str) -> String {
    format!("internal:0:0-0: Error: {message}")
}
