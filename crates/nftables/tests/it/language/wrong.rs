//! Inputs that are refused: by us exactly when nft or the kernel refuses them, at the same word.
//!
//! Each input stands behind a line with the verdict, as nft 1.0.6 gave it in a namespace with
//! `wrong/world.nft`:
//!
//! * `@ nft 1:17-21 3:4-9`: nft refuses it; line and columns that it underlines, of all its mistakes.
//! * `@ kernel ENOENT 1:1-20`: nft reads it, and the kernel refuses it.
//!
//! The verdicts are recorded by `SLUICEGATE_RECORD=1 cargo test -p sluicegate-nftables --test language
//! verdicts`, which writes the files again and leaves out what is not refused, and what nft ends with a signal for.

use std::collections::BTreeSet;
use std::fs;
use std::ops::RangeInclusive;

use sluicegate_nftables::lang::parse::{ParseError, Script};
use sluicegate_nftables::{Command, SetId, Subject, TableContent, TableId};

use crate::language::format::{WRONG, Wrong, wrong};
use crate::language::kernel::{self, namespace};
use crate::language::known;
use crate::language::rules::Other;

pub(crate) const WORLD: &str = include_str!("wrong/world.nft");

/// A verdict of nft.
#[derive(Debug, PartialEq, Eq)]
struct Verdict {
    /// The errno of the kernel, if it was the kernel.
    errno: Option<String>,
    places: Vec<Place>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Place {
    line: usize,
    columns: RangeInclusive<usize>,
}

impl Verdict {
    fn parse(text: &str) -> Option<Self> {
        let mut words = text.split(' ');
        let errno = match words.next()? {
            "nft" => None,
            "kernel" => Some(words.next()?.to_owned()),
            _ => return None,
        };
        Some(Self { errno, places: words.map(Place::parse).collect::<Option<_>>()? })
    }
}

impl Place {
    /// `3:4-9`
    fn parse(text: &str) -> Option<Self> {
        let (line, columns) = text.split_once(':')?;
        let (first, last) = columns.split_once('-')?;
        Some(Self { line: line.parse().ok()?, columns: first.parse().ok()?..=last.parse().ok()? })
    }

    /// The same place, or the last word before it where nothing is there: nft missed something behind that
    /// word, and found the end of the line.
    fn at_word(&self, text: &str) -> Self {
        let line: Vec<char> = text.lines().nth(self.line - 1).unwrap_or_default().chars().collect();
        let is_blank = |column: usize| line.get(column - 1).is_none_or(|c| c.is_whitespace());
        let mut first = *self.columns.start();
        if !is_blank(first) {
            return self.clone();
        }
        while first > 1 && is_blank(first) {
            first -= 1;
        }
        let last = *self.columns.end();
        while first > 1 && !is_blank(first - 1) {
            first -= 1;
        }
        Self { line: self.line, columns: first..=last }
    }

    /// Whether two places have a column in common.
    fn meets(&self, other: &Self) -> bool {
        self.line == other.line
            && self.columns.start() <= other.columns.end()
            && other.columns.start() <= self.columns.end()
    }
}

#[test]
fn what_nft_refuses_is_refused_at_the_same_word() {
    if !testns::have(&["nft", "ip"]) {
        return;
    }
    let Some(namespace) = namespace() else { return };
    let inputs = wrong();
    let others = namespace.run(|| {
        kernel::nft(WORLD).expect("a world");
        inputs.iter().filter_map(compare).collect::<Vec<_>>()
    });
    println!("{} of {} inputs are refused otherwise", others.len(), inputs.len());
    known::check(known::WRONG, &others);
}

fn compare<'a>(input: &'a Wrong<'static>) -> Option<Other<'a>> {
    let verdict = Verdict::parse(input.verdict).unwrap_or_else(|| panic!("{input:?}"));
    let other = |what, detail| Some(Other { file: input.file, rule: &input.text, what, detail });
    let held = kernel::ruleset().content();
    let sets = |id: &SetId| kernel::find(&held, id);
    let mut options = kernel::machine().options();
    options.sets = Some(&sets);
    // As nft got it.
    let text = format!("{}\n", input.text);
    match (Script::parse(&text, &options).map(Script::split), &verdict.errno) {
        (Err(error), None) => {
            let ours = places(&error);
            // Whoever reads the first mistake of both has to look at the same word.
            let first = verdict.places.first()?.at_word(&text);
            if ours.first().is_some_and(|ours| ours.meets(&first)) {
                None
            } else {
                other("refused elsewhere", format!("nft: {:?}\n{error}", verdict.places))
            }
        }
        // Sooner is better.
        (Err(_), Some(_)) => None,
        // nft looks for it in what it has read before, and underlines the name; here nobody finds it.
        (Ok((_, queries)), _) if queries.iter().any(|query| is_missing(query, &held)) => None,
        (Ok((transaction, _)), errno) => match kernel::apply(&transaction) {
            Ok(()) => {
                kernel::nft(&format!("flush ruleset\n{WORLD}")).expect("a world");
                other("taken", format!("{transaction}where nft says {}", input.verdict))
            }
            Err(_) if errno.is_some() => None,
            // nft asks the kernel for its cache, and we the kernel.
            Err(_) => None,
        },
    }
}

/// Whether a query is about something that is not there.
fn is_missing(query: &Command, held: &[TableContent]) -> bool {
    let table = |id: &TableId| held.iter().find(|content| content.table.id == *id);
    match query {
        Command::List(Subject::Table(id)) => table(id).is_none(),
        Command::List(Subject::Chain(id)) => {
            !table(&id.table).is_some_and(|content| content.chains.iter().any(|(chain, _)| chain.id == *id))
        }
        Command::List(Subject::Set(id)) => kernel::find(held, id).is_none(),
        Command::Get(of) => {
            let mut sets = held.iter().flat_map(|content| &content.sets);
            let list = sets.find(|(set, _)| set.id == of.set).map(|(_, list)| list);
            !list.is_some_and(|list| of.list.iter().all(|element| list.contains(element)))
        }
        _ => false,
    }
}

fn places(error: &ParseError) -> Vec<Place> {
    let place =
        |line, column: usize, width: usize| Place { line, columns: column..=column + width.max(1) - 1 };
    error.mistakes.iter().map(|mistake| place(mistake.line, mistake.column, mistake.width)).collect()
}

#[test]
fn no_input_is_there_twice() {
    let inputs = wrong();
    let all: BTreeSet<_> = inputs.iter().map(|input| &input.text).collect();
    assert_eq!(all.len(), inputs.len());
}

/// Compares verdicts with those of this machine's nft, every fiftieth or, with `SLUICEGATE_RECORD`, all,
/// which are then written into the files. Columns are those that it underlines, as it counts: a tab is one.
#[test]
fn verdicts_are_those_of_nft() {
    if !testns::have(&["nft", "ip"]) {
        return;
    }
    let Some(namespace) = namespace() else { return };
    let verdict = |text: &str| {
        namespace.run(|| {
            kernel::nft(&format!("flush ruleset\n{WORLD}")).expect("a world");
            record_one(text)
        })
    };
    if std::env::var_os("SLUICEGATE_RECORD").is_none() {
        for input in wrong().iter().step_by(50) {
            assert_eq!(verdict(&input.text).as_deref(), Some(input.verdict), "{}", input.text);
        }
        return;
    }
    let mut seen = BTreeSet::new();
    for (file, text) in WRONG {
        let head = text.lines().take_while(|line| line.starts_with('#'));
        let mut out: String = head.map(|line| format!("{line}\n")).collect();
        for input in Wrong::all(file, text) {
            if let Some(verdict) = verdict(&input.text)
                && seen.insert(input.text.clone())
            {
                out += &format!("@ {verdict}\n{}\n", input.text);
            }
        }
        let path = format!("{}/tests/it/language/wrong/{file}.nft", env!("CARGO_MANIFEST_DIR"));
        fs::write(path, out).expect("the file can be written");
    }
}

/// What nft says, or `None` where it takes the input or crashes.
fn record_one(text: &str) -> Option<String> {
    let output = testns::feed(&["env", "TZ=UTC", "nft", "-f", "-"], &format!("{text}\n"));
    if output.status.code() != Some(1) {
        return None;
    }
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let mut places: Vec<&str> = Vec::new();
    let mut errno = None;
    for line in said.lines() {
        let Some(rest) = line.strip_prefix("/dev/stdin:") else { continue };
        let Some((place, message)) = rest.split_once(": Error: ") else { continue };
        if !places.contains(&place) && places.len() < 3 {
            places.push(place);
        }
        if let Some(why) = message.strip_prefix("Could not process rule: ") {
            errno.get_or_insert(
                ERRNOS.iter().find(|(_, text)| *text == why).map_or("other", |(name, _)| name),
            );
        }
    }
    if places.is_empty() || places.iter().any(|place| Place::parse(place).is_none()) {
        return None;
    }
    let by = errno.map_or("nft".to_owned(), |errno| format!("kernel {errno}"));
    Some(format!("{by} {}", places.join(" ")))
}

const ERRNOS: &[(&str, &str)] = &[
    ("ENOENT", "No such file or directory"),
    ("EEXIST", "File exists"),
    ("EBUSY", "Device or resource busy"),
    ("EINVAL", "Invalid argument"),
    ("EOPNOTSUPP", "Operation not supported"),
    ("ERANGE", "Numerical result out of range"),
    ("EDOM", "Numerical argument out of domain"),
    ("ENFILE", "Too many open files in system"),
    ("EMLINK", "Too many links"),
    ("ELOOP", "Too many levels of symbolic links"),
    ("EOVERFLOW", "Value too large for defined data type"),
    ("EPROTONOSUPPORT", "Protocol not supported"),
    ("EPROTO", "Protocol error"),
    ("ENOTEMPTY", "Directory not empty"),
    ("E2BIG", "Argument list too long"),
];
