//! Scripts, and the texts that they include.

use std::collections::HashSet;

use crate::check::KnownSets;
use crate::compile::lower::{Intervals, lower};
use crate::object::{Set, SetFlags, SetId};
use crate::text::parse::error::{Mistake, ParseError, Problem};
use crate::text::parse::lexer::{Kind, Span};
use crate::text::parse::options::ParseOptions;
use crate::text::parse::parser::Parser;
use crate::text::parse::places::Places;
use crate::text::parse::source::{Included, Includes, Source, includes};
use crate::text::parse::variable::Value;
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

    /// Returns where an operation of a script is, as a mistake with this message: the kernel's errors name an
    /// operation by its index ([`Failure::operation`](crate::Failure::operation)). `None` if the text is not a
    /// script, or has fewer operations.
    ///
    /// The text is parsed once more, with the same options, so that scripts that are not refused need no places.
    ///
    /// ```
    /// use sluicegate_nftables::lang::parse::{ParseOptions, Script};
    ///
    /// let script = "add table ip t\nadd rule ip t nope accept\n";
    /// let mistake = Script::locate(script, &ParseOptions::default(), 1, "there is no such chain").unwrap();
    /// assert_eq!((mistake.line, mistake.column, mistake.width), (2, 1, 25));
    /// ```
    #[must_use]
    pub fn locate(
        text: &str,
        options: &ParseOptions<'_>,
        operation: usize,
        message: impl Into<String>,
    ) -> Option<Mistake> {
        locate(text, options, operation, Part::Whole, message.into())
    }

    /// Returns where a command of a script is, by its index in [`commands`](Self::commands), as
    /// [`locate`](Self::locate) does for an operation.
    ///
    /// ```
    /// use sluicegate_nftables::lang::parse::{ParseOptions, Script};
    ///
    /// let script = "add table ip t; list table ip nope";
    /// let mistake = Script::locate_command(script, &ParseOptions::default(), 1, "there is no such table").unwrap();
    /// assert_eq!((mistake.line, mistake.column, mistake.width), (1, 17, 18));
    /// ```
    #[must_use]
    pub fn locate_command(
        text: &str,
        options: &ParseOptions<'_>,
        command: usize,
        message: impl Into<String>,
    ) -> Option<Mistake> {
        let mut found = None;
        let find = |parser: &Parser<'_, '_>| {
            let place = parser.places.as_ref()?.commands.get(command).copied()?;
            Some(Problem::new(place, message).mistake(parser.sources))
        };
        read_with(text, options, false, true, |parser, _| found = find(parser)).ok()?;
        found
    }

    /// Returns the place of each command of a script, as [`locate_command`](Self::locate_command) does for one.
    /// Empty if the text is not a script.
    #[must_use]
    pub fn places(text: &str, options: &ParseOptions<'_>) -> Vec<Mistake> {
        let mut found = Vec::new();
        let find = |parser: &Parser<'_, '_>| {
            let places = parser.places.iter().flat_map(|places| &places.commands);
            places.map(|place| Problem::new(*place, "").mistake(parser.sources)).collect()
        };
        let read = read_with(text, options, false, true, |parser, _| found = find(parser));
        if read.is_ok() { found } else { Vec::new() }
    }

    /// Returns where an element of an operation is, as [`locate`](Self::locate) does for the operation: the
    /// kernel's errors name an element by its index ([`Failure::element`](crate::Failure::element)). The key
    /// is marked, as nft does; of elements that `auto-merge` has made one, the first. Where the text does not
    /// have the element, the operation is marked.
    ///
    /// ```
    /// use sluicegate_nftables::lang::parse::{ParseOptions, Script};
    ///
    /// let script = "table ip t {
    ///     set s { type ipv4_addr; size 1; elements = { 10.0.0.1,
    ///         10.0.0.2 comment \"too many\" }; }
    /// }";
    /// let options = ParseOptions::default();
    /// let mistake = Script::locate_element(script, &options, 2, 1, "the set is full").unwrap();
    /// assert_eq!((mistake.line, mistake.column, mistake.width), (3, 9, 8));
    /// ```
    #[must_use]
    pub fn locate_element(
        text: &str,
        options: &ParseOptions<'_>,
        operation: usize,
        element: usize,
        message: impl Into<String>,
    ) -> Option<Mistake> {
        locate(text, options, operation, Part::Element(element), message.into())
    }

    /// Returns the place of the statement that an expression of a rule was made from, as
    /// [`locate`](Self::locate) does for the rule: the kernel's errors name an expression by its index
    /// ([`AttributePath::expression`](crate::AttributePath::expression)). Where no statement is found, the rule
    /// is marked.
    ///
    /// ```
    /// use sluicegate_nftables::lang::parse::{ParseOptions, Script};
    ///
    /// let script = "add table ip t
    /// add chain ip t c
    /// add rule ip t c tcp dport 22 limit rate 5/second counter";
    /// let options = ParseOptions::default();
    /// // The match is four expressions: protocol and port are loaded and compared.
    /// let mistake = Script::locate_expression(script, &options, 2, 4, "not supported").unwrap();
    /// assert_eq!((mistake.line, mistake.column, mistake.width), (3, 30, 19));
    /// ```
    #[must_use]
    pub fn locate_expression(
        text: &str,
        options: &ParseOptions<'_>,
        operation: usize,
        expression: usize,
        message: impl Into<String>,
    ) -> Option<Mistake> {
        locate(text, options, operation, Part::Expression(expression), message.into())
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

/// The part of an operation that is to be found.
#[derive(Clone, Copy)]
enum Part {
    Whole,
    /// An element, by its index.
    Element(usize),
    /// The statement of a rule, by the index of one of its expressions.
    Expression(usize),
}

/// Parses once more, and finds an operation or a part of it.
fn locate(
    text: &str,
    options: &ParseOptions<'_>,
    operation: usize,
    part: Part,
    message: String,
) -> Option<Mistake> {
    let mut found = None;
    let find = |parser: &Parser<'_, '_>, commands: &[Command]| {
        let places = parser.places.as_ref()?;
        let operations = commands.iter().zip(&places.commands).filter_map(|(command, place)| match command {
            Command::Operation(operation) => Some((operation, *place)),
            _ => None,
        });
        let (operation, place) = operations.clone().nth(operation)?;
        let of_part = match part {
            Part::Whole => None,
            Part::Element(index) => places.element(place, index),
            Part::Expression(index) => {
                let sets = operations.filter_map(|(operation, _)| operation.set());
                let statement = statement_of(operation, index, &sets.map(|set| (&set.id, set)).collect());
                statement.and_then(|index| places.statement(place, index))
            }
        };
        Some(Problem::new(of_part.unwrap_or(place), message).mistake(parser.sources))
    };
    read_with(text, options, false, true, |parser, commands| found = find(parser, commands)).ok()?;
    found
}

/// Returns the index of the statement that an expression of a rule belongs to: the first whose expressions
/// reach that far, with those of the statements before it.
fn statement_of(operation: &Operation, expression: usize, sets: &KnownSets<'_>) -> Option<usize> {
    let rule = operation.rule()?;
    let statements = rule.statements.read();
    (0..statements.len()).find(|&last| {
        let until = statements.get(..=last).unwrap_or_default();
        lower(&rule.chain.table, until, sets, &Intervals::new(), &mut 0)
            .is_ok_and(|lowered| lowered.exprs.len() > expression)
    })
}

fn read(text: &str, options: &ParseOptions<'_>, operations_only: bool) -> Result<Script, ParseError> {
    read_with(text, options, operations_only, false, |_, _| {})
}

/// Parses a script, notes where its commands are if that is asked for, and shows both.
fn read_with(
    text: &str,
    options: &ParseOptions<'_>,
    operations_only: bool,
    with_places: bool,
    show: impl FnOnce(&Parser<'_, '_>, &[Command]),
) -> Result<Script, ParseError> {
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
    parser.places = with_places.then(Places::default);
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
    show(&parser, &commands);
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
                    (_, false) => Err(format!("this is included in more than {MAX_INCLUDED} others").into()),
                    (None, _) => Err("this text may include nothing".into()),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_is_located() {
        let text = "list ruleset
add table ip t
table inet t {
  chain c {
    type filter hook input priority 0
    ip saddr @s drop
    tcp dport 22 accept
  }
  set s { type ipv4_addr; elements = { 10.0.0.1 } }
  counter hits { }
  chain d { accept; }
}
add chain inet t e {
  drop
  accept
}
delete table ip t
";
        let options = ParseOptions::default();
        let (transaction, _) = Script::parse(text, &options).unwrap().split();
        let place = |operation| {
            let mistake = Script::locate(text, &options, operation, "refused")?;
            let line = mistake.text.chars().skip(mistake.column - 1).take(mistake.width);
            Some((mistake.line, line.collect::<String>()))
        };
        let places: Vec<_> = (0..).map_while(place).collect();
        let expected = [
            (2, "add table ip t"),
            (3, "table inet t"),
            (4, "chain c"),
            (11, "chain d"),
            (10, "counter hits"),
            (9, "set s"),
            (9, "set s"),
            (6, "ip saddr @s drop"),
            (7, "tcp dport 22 accept"),
            (11, "accept"),
            (13, "add chain inet t e"),
            (14, "drop"),
            (15, "accept"),
            (17, "delete table ip t"),
        ];
        assert_eq!(places, expected.map(|(line, text)| (line, text.to_owned())));
        assert_eq!(places.len(), transaction.operations().len());
    }

    #[test]
    fn statements_are_located_by_their_expressions() {
        let text = "table inet t {
  map m { type inet_service : mark; }
  chain c {
    ip saddr { 10.0.0.1, 10.0.0.2 } jump { tcp dport 1 accept; counter; } # of its own
    tcp dport 22 log prefix \"x\" accept
  }
}
add rule inet t c ct mark set tcp dport map @m counter comment \"last\"
";
        let options = ParseOptions::default();
        let place = |operation, expression| {
            let mistake =
                Script::locate_expression(text, &options, operation, expression, "refused").unwrap();
            mistake.text.chars().skip(mistake.column - 1).take(mistake.width).collect::<String>()
        };
        let operations = [
            (3, "ip saddr { 10.0.0.1, 10.0.0.2 }"),
            (4, "tcp dport 22"),
            (5, "ct mark set tcp dport map @m"),
        ];
        for (operation, first) in operations {
            assert_eq!(place(operation, 0), first);
        }
        assert_eq!(
            [0, 3, 4, 5].map(|at| place(4, at)),
            ["tcp dport 22", "tcp dport 22", "log prefix \"x\"", "accept"]
        );
        assert_eq!(place(3, 4), "jump { tcp dport 1 accept; counter; }");
        assert_eq!(
            place(4, 99),
            "tcp dport 22 log prefix \"x\" accept",
            "an expression that the rule does not have"
        );
        assert_eq!(place(0, 0), "table inet t", "an operation without expressions");
    }

    #[test]
    fn every_element_is_located() {
        let text = "define two = { 3.0.0.1, 3.0.0.2 }
define one = 4.0.0.1
table ip t {
  set plain { type ipv4_addr; elements = { 1.0.0.1, 1.0.0.2 comment \"x\",
    1.0.0.3 }; elements = { $one } }
  map m { elements = { 2.0.0.1 . tcp : drop, * : accept }; type ipv4_addr . inet_proto : verdict; }
  set merged { type inet_service; flags interval; auto-merge; elements = { 9-12, 1-5, 20, 10-15, 6 } }
}
list ruleset
add element ip t plain $two
create element ip t plain { 5.0.0.1 timeout 5s, $one }
delete element ip t m { 6.0.0.1 . udp }
";
        let options = ParseOptions::default();
        let (transaction, _) = Script::parse(text, &options).unwrap().split();
        let place = |operation: usize, element: usize| {
            let mistake = Script::locate_element(text, &options, operation, element, "refused").unwrap();
            let line = mistake.text.chars().skip(mistake.column - 1).take(mistake.width);
            format!("{} {}", mistake.line, line.collect::<String>())
        };
        let lists = transaction.operations().iter().enumerate().filter_map(|(index, operation)| {
            let elements = operation.elements()?;
            Some((0..elements.list.len()).map(|at| place(index, at)).collect::<Vec<_>>())
        });
        let expected: [&[&str]; 6] = [
            &["4 1.0.0.1", "4 1.0.0.2", "5 1.0.0.3", "5 $one"],
            &["6 2.0.0.1 . tcp", "6 *"],
            &["7 1-5", "7 9-12", "7 20"],
            &["1 3.0.0.1", "1 3.0.0.2"],
            &["11 5.0.0.1", "11 $one"],
            &["12 6.0.0.1 . udp"],
        ];
        assert_eq!(lists.collect::<Vec<_>>(), expected);
        assert_eq!(place(0, 0), "3 table ip t", "an operation without elements");
        assert_eq!(place(4, 9), "4 set plain", "an element that the operation does not have");
    }
}
