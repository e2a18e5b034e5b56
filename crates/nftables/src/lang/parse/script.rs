//! Scripts, and the texts that they include.

use std::collections::HashSet;

use crate::lang::parse::error::{ParseError, Problem};
use crate::lang::parse::lexer::{Kind, Span};
use crate::lang::parse::options::ParseOptions;
use crate::lang::parse::parser::Parser;
use crate::lang::parse::source::{Included, Includes, Source, includes};
use crate::lang::parse::variable::Value;
use crate::object::{Set, SetFlags, SetId};
use crate::transaction::{Command, Object, Operation, Transaction};

/// A script: operations and queries in order.
///
/// ```
/// use sluicegate_nftables::Command;
/// use sluicegate_nftables::lang::parse::{ParseOptions, Script};
///
/// let script = Script::parse("add table inet t\nlist table inet t", &ParseOptions::default())?;
/// let [Command::Operation(_), Command::List(subject)] = script.commands.as_slice() else { panic!() };
/// assert_eq!(subject.to_string(), "table inet t");
/// # Ok::<(), sluicegate_nftables::lang::parse::ParseError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Script {
    /// The commands.
    pub commands: Vec<Command>,
    /// The sets that [`ParseOptions::sets`] returned.
    pub(crate) known: Vec<Set>,
}

impl Script {
    /// Parses a script as `nft -f` reads it.
    ///
    /// # Errors
    /// [`ParseError`] with every mistake of the script.
    pub fn parse(text: &str, options: &ParseOptions<'_>) -> Result<Self, ParseError> {
        read(text, options, false)
    }

    /// Splits the script into its operations, as one transaction, and its queries. The transaction knows the
    /// sets that [`ParseOptions::sets`] returned: types are checked against them, and the kernel is not asked
    /// for them again.
    #[must_use]
    pub fn split(self) -> (Transaction, Vec<Command>) {
        let (mut transaction, mut queries) = (Transaction::new(), Vec::new());
        self.known.into_iter().for_each(|set| transaction.register_set(set));
        for command in self.commands {
            match command {
                Command::Operation(operation) => {
                    transaction.push(operation);
                }
                query => queries.push(query),
            }
        }
        (transaction, queries)
    }
}

impl Transaction {
    /// Parses a script of operations as `nft -f` reads it. [`Script`] reads queries as well.
    ///
    /// ```
    /// use sluicegate_nftables::Transaction;
    ///
    /// let transaction = Transaction::parse(
    ///     "table inet filter {
    ///         set admins { type ipv4_addr; elements = { 10.0.0.1, 10.0.0.2 } }
    ///         chain input {
    ///             type filter hook input priority filter; policy drop;
    ///             ct state established,related accept
    ///             ip saddr @admins tcp dport { ssh, 443 } accept
    ///         }
    ///     }",
    /// )?;
    /// assert_eq!(
    ///     transaction.to_string(),
    ///     "\
    /// add table inet filter
    /// add chain inet filter input { type filter hook input priority 0 ; policy drop ; }
    /// add set inet filter admins { type ipv4_addr ; }
    /// add element inet filter admins { 10.0.0.1, 10.0.0.2 }
    /// add rule inet filter input ct state established,related accept
    /// add rule inet filter input ip saddr @admins tcp dport { 22, 443 } accept
    /// "
    /// );
    /// # Ok::<(), sluicegate_nftables::lang::parse::ParseError>(())
    /// ```
    ///
    /// # Errors
    /// [`ParseError`] with every mistake of the script; a query is a mistake.
    pub fn parse(script: &str) -> Result<Self, ParseError> {
        Self::parse_with(script, &ParseOptions::default())
    }

    /// Parses as [`parse`](Self::parse) does, with options for names, sets and files that the script refers
    /// to.
    ///
    /// # Errors
    /// As [`parse`](Self::parse).
    pub fn parse_with(script: &str, options: &ParseOptions<'_>) -> Result<Self, ParseError> {
        let script = read(script, options, true)?;
        let operation = |command| match command {
            Command::Operation(operation) => Some(operation),
            _ => None,
        };
        // A command is as large as an operation, so the list stays where it is.
        let mut transaction = Self::of(script.commands.into_iter().filter_map(operation).collect());
        script.known.into_iter().for_each(|set| transaction.register_set(set));
        Ok(transaction)
    }
}

impl std::str::FromStr for Transaction {
    type Err = ParseError;

    fn from_str(script: &str) -> Result<Self, ParseError> {
        Self::parse(script)
    }
}

fn read(text: &str, options: &ParseOptions<'_>, operations_only: bool) -> Result<Script, ParseError> {
    let mut base = text.len() + 1;
    let mut place = |length: usize| {
        let at = base;
        base = base.saturating_add(length).saturating_add(1);
        at
    };
    let mut problems = Vec::new();
    let included = Inclusion::all(text, options, &mut place, &mut problems);
    let mut sources = vec![Source { name: None, text, base: 0 }];
    sources.extend(included.texts.iter().map(|(base, included)| Source {
        name: Some(included.name.as_str()),
        text: included.text.as_str(),
        base: *base,
    }));
    let first_define = sources.len();
    sources.extend(options.defines.iter().map(|(_, value)| Source {
        name: Some("a definition"),
        text: value.as_str(),
        base: place(value.len()),
    }));
    let mut parser = Parser::new(&sources, &included.places, options);
    parser.operations_only = operations_only;
    for ((name, _), source) in options.defines.iter().zip(sources.iter().skip(first_define)) {
        let span = Span { start: source.base, end: source.base + source.text.len() };
        let moment = parser.moment;
        parser.variables.define(name, moment, Some(Value { span, moment }));
        parser.moment = parser.variables.now(moment);
    }
    problems.into_iter().for_each(|problem| parser.note(problem));
    let mut commands = Vec::new();
    parser.commands(&mut commands);
    debug_assert!(parser.is(Kind::End) || parser.is_full());
    if let Some(error) = parser.error() {
        return Err(error);
    }
    make_dynamic(&mut commands, &parser.updated, options);
    let known = parser.found.iter().map(|set| Set::clone(set)).collect();
    Ok(Script { commands, known })
}

/// Adds `flags dynamic` to those sets of the commands that are updated: without the flag, the kernel may
/// choose a kind of set that refuses these rules. nft does so for the sets of a text, but not for maps.
pub(crate) fn make_dynamic(commands: &mut [Command], updated: &HashSet<SetId>, options: &ParseOptions<'_>) {
    if updated.is_empty() {
        return;
    }
    for command in commands {
        if let Command::Operation(
            Operation::Add(Object::Set(set)) | Operation::Create(Object::Set(set)),
        ) = command
            && updated.contains(&set.id)
            // The kernel refuses to add an existing set with other flags.
            && options.sets.is_none_or(|sets| sets(&set.id).is_none())
        {
            set.flags |= SetFlags::DYNAMIC;
        }
    }
}

/// The texts that a script includes, and that these include.
#[derive(Debug, Default)]
struct Inclusion {
    texts: Vec<(usize, Included)>,
    places: Includes,
}

impl Inclusion {
    fn all(
        text: &str,
        options: &ParseOptions<'_>,
        place: &mut dyn FnMut(usize) -> usize,
        problems: &mut Vec<Problem>,
    ) -> Self {
        let mut all = Self::default();
        // Each text is gone through once, in the order in which they were found.
        let mut wanted: Vec<(usize, u32)> = vec![(usize::MAX, 0)];
        let mut at = 0;
        let mut bytes = 0_usize;
        while let Some((index, depth)) = wanted.get(at).copied() {
            at += 1;
            let found = match all.texts.get(index) {
                Some((base, included)) => includes(&Source { name: None, text: &included.text, base: *base }),
                None => includes(&Source { name: None, text, base: 0 }),
            };
            for (start, span, path) in found {
                let texts = match (options.include, depth < MAX_INCLUDED) {
                    (_, false) => Err(format!("this is included in more than {MAX_INCLUDED} others")),
                    (None, _) => Err("this text may include nothing".to_owned()),
                    (Some(include), true) => include(&path),
                };
                match texts {
                    Err(error) => {
                        problems.push(*Problem::new(span, format!("cannot include \"{path}\": {error}")));
                    }
                    Ok(texts) => {
                        for included in texts {
                            bytes = bytes.saturating_add(included.text.len());
                            if bytes > MAX_BYTES || all.texts.len() >= MAX_TEXTS {
                                problems.push(*Problem::new(span, "too much text is included"));
                                return all;
                            }
                            let base = place(included.text.len());
                            all.places.entry(start).or_default().push(all.texts.len() + 1);
                            wanted.push((all.texts.len(), depth + 1));
                            all.texts.push((base, included));
                        }
                    }
                }
            }
        }
        all
    }
}

/// nft's limit.
const MAX_INCLUDED: u32 = 16;
/// Texts that may be included, together.
const MAX_TEXTS: usize = 10_000;
const MAX_BYTES: usize = 1 << 30;
