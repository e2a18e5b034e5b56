//! One line, or one command line: its command, its arguments, and the options of `ipset` itself.
//!
//! The rules are those of ipset(8): options may be anywhere; a command may be abbreviated to any prefix that
//! no earlier command in the list has; two dashes before a word are ignored.

use std::fmt;

use super::{ParseError, Word};
use crate::set_type::Feature;
use crate::spec::parse as create;
use crate::{
    Comment, Element, Entry, EntryOptions, Family, Names, Place, Reason, SetName, SetSpec, SetType, SkbMark,
    SkbPrio, number,
};

/// A command with its arguments. Elements are not parsed yet, as the type of their set is not known.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Statement<'l> {
    /// `create`, `new`, `-N`.
    Create(SetSpec),
    /// `add`, `-A`; `del`, `-D`; `test`, `-T`.
    Entry(EntryWords<'l>),
    /// `destroy`, `x`, `-X`.
    Destroy(Option<SetName>),
    /// `list`, `-L`.
    List(Option<SetName>),
    /// `save`, `-S`.
    Save(Option<SetName>),
    /// `restore`, `-R`.
    Restore,
    /// `flush`, `-F`.
    Flush(Option<SetName>),
    /// `rename`, `e`, `-E`.
    Rename(SetName, SetName),
    /// `swap`, `w`, `-W`.
    Swap(SetName, SetName),
    /// `help`, `-h`, `-H`, of a type or of all.
    Help(Option<String>),
    /// `version`, `-v`, `-V`.
    Version,
    /// `quit`.
    Quit,
    /// `-`: read commands from standard input.
    Interactive,
}

/// An `add`, `del` or `test` whose element is not parsed yet.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct EntryWords<'l> {
    /// The operation: add, delete or test.
    pub verb: Verb,
    /// The set.
    pub set: SetName,
    /// The element.
    pub element: Word<'l>,
    /// The options after the element.
    pub options: Vec<Word<'l>>,
}

/// The operation on an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    /// `add`.
    Add,
    /// `del`.
    Delete,
    /// `test`.
    Test,
}

impl Verb {
    /// Returns the name of the command.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Add => "add",
            Self::Delete => "del",
            Self::Test => "test",
        }
    }
}

/// The options of `ipset` itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// `-!`, `-exist`: adding an existing entry, or deleting one that does not exist, is not an error.
    pub exist: bool,
    /// `-q`, `-quiet`: no messages.
    pub quiet: bool,
    /// `-r`, `-resolve`: host names in listings.
    pub resolve: bool,
    /// `-s`, `-sorted`: entries in order.
    pub sorted: bool,
    /// `-n`, `-name`: names of sets only.
    pub names: bool,
    /// `-t`, `-terse`: no entries.
    pub terse: bool,
    /// `-o`, `-output`.
    pub output: Option<Output>,
    /// `-f`, `-file`.
    pub file: Option<String>,
    /// Warnings: obsolete options that have no effect.
    pub warnings: Vec<IgnoredOption>,
}

/// An option of older versions that is read and has no effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IgnoredOption {
    /// The option, as it was written: `--probes`.
    pub option: String,
    /// Its value.
    pub value: String,
}

impl fmt::Display for IgnoredOption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "option {} {} has no effect", self.option, self.value)
    }
}

/// The output formats of a listing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Output {
    /// Plain text.
    Plain,
    /// A restore file.
    Save,
    /// XML.
    Xml,
}

impl<'l> Statement<'l> {
    /// Reads the words of a line.
    ///
    /// # Errors
    /// The first word that is not valid. [`EntryWords::read`] reads the element and the options of an entry.
    pub fn parse(mut words: Vec<Word<'l>>, names: &dyn Names) -> Result<(Self, Options), ParseError> {
        let end = words.last().map_or(1, |word| word.column);
        let mut options = Options::default();
        if words.iter().any(Word::is_option) {
            take_options(&mut words, &mut options, end)?;
        }
        let mut words = words.into_iter();
        let Some(first) = words.next() else {
            return Err(missed(end, Reason::NoCommand));
        };
        if first.text == "-" {
            return Ok((Self::Interactive, options));
        }
        let name = match_command(&first.text)
            .ok_or_else(|| first.wrong(Reason::UnknownCommand(first.text.to_string())))?;
        let mut arguments = Arguments { command: name, words, end };
        let statement = Self::read(&mut arguments, &mut options, names)?;
        match arguments.words.next() {
            None => Ok((statement, options)),
            Some(word) => Err(word.wrong(Reason::SurplusArgument(word.text.to_string()))),
        }
    }

    fn read(
        arguments: &mut Arguments<'l>,
        options: &mut Options,
        names: &dyn Names,
    ) -> Result<Self, ParseError> {
        Ok(match arguments.command {
            "create" => {
                let (set, kind) = arguments.two()?;
                let words: Vec<_> = arguments.words.by_ref().collect();
                Self::Create(create::spec(&set, &kind, words, arguments.end, names, &mut options.warnings)?)
            }
            "add" => Self::Entry(arguments.entry(Verb::Add)?),
            "del" => Self::Entry(arguments.entry(Verb::Delete)?),
            "test" => Self::Entry(arguments.entry(Verb::Test)?),
            "destroy" => Self::Destroy(arguments.optional_set()?),
            "list" => Self::List(arguments.optional_set()?),
            "save" => Self::Save(arguments.optional_set()?),
            "flush" => Self::Flush(arguments.optional_set()?),
            "rename" => arguments.two_sets().map(|(from, to)| Self::Rename(from, to))?,
            "swap" => arguments.two_sets().map(|(from, to)| Self::Swap(from, to))?,
            "restore" => Self::Restore,
            "help" => Self::Help(arguments.words.next().map(|word| word.text.into_owned())),
            "version" => Self::Version,
            _ => {
                // As ipset, which ends here and looks at nothing more.
                arguments.words.by_ref().for_each(drop);
                Self::Quit
            }
        })
    }
}

impl EntryWords<'_> {
    /// Reads the element and the options for a set of this type.
    ///
    /// # Errors
    /// The first word that is not valid.
    pub fn read(&self, kind: SetType, family: Family, names: &dyn Names) -> Result<Entry, ParseError> {
        let entry = Entry::parse(kind, family, &self.element.text, names)
            .map_err(|reason| self.element.wrong(reason))?;
        let mut place = None;
        let mut options = EntryOptions::default();
        let mut given: Vec<&'static str> = Vec::new();
        let mut words = self.options.iter();
        while let Some(word) = words.next() {
            let name = self.option(kind, word)?;
            let is_flag = matches!(name, "nomatch" | "wildcard");
            // Before or after is one option by two names; flags may stand twice.
            let same = |known: &&str| *known == name || [*known, name].iter().all(|name| is_place(name));
            if !is_flag && given.iter().any(same) {
                return Err(word.wrong(Reason::Twice(name)));
            }
            given.push(name);
            let value = if is_flag {
                word
            } else {
                words.next().ok_or_else(|| word.wrong(Reason::MissingValue(name)))?
            };
            set_option(&mut options, &mut place, name, value).map_err(|reason| value.wrong(reason))?;
        }
        let entry = match (*entry.element(), place) {
            (Element::Set(set, None), place) => Entry::new(kind, family, Element::Set(set, place)),
            (Element::Set(_, Some(_)), Some(Place::Before(_))) => Err(Reason::Twice("before")),
            (Element::Set(_, Some(_)), Some(Place::After(_))) => Err(Reason::Twice("after")),
            _ => Ok(entry),
        };
        let entry =
            entry.and_then(|entry| entry.with(options)).map_err(|reason| self.element.wrong(reason))?;
        if self.verb == Verb::Test {
            entry.check_test().map_err(|reason| self.element.wrong(reason))?;
        }
        Ok(entry)
    }

    /// Returns the option that a word names, if the command has it with this type.
    fn option(&self, kind: SetType, word: &Word<'_>) -> Result<&'static str, ParseError> {
        let text = word.text.strip_prefix("--").unwrap_or(&word.text);
        let list = kind == SetType::ListSet;
        let adds = self.verb == Verb::Add;
        ENTRY_OPTIONS
            .iter()
            .copied()
            .find(|name| *name == text)
            .filter(|name| match *name {
                "nomatch" => self.verb != Verb::Delete && kind.since(Feature::Nomatch).is_some(),
                "wildcard" => adds && kind.since(Feature::Wildcard).is_some(),
                "before" | "after" => list,
                _ => adds,
            })
            .ok_or_else(|| word.wrong(Reason::UnknownArgument(word.text.to_string())))
    }
}

fn is_place(name: &str) -> bool {
    matches!(name, "before" | "after")
}

const ENTRY_OPTIONS: [&str; 11] = [
    "timeout", "nomatch", "wildcard", "packets", "bytes", "comment", "skbmark", "skbprio", "skbqueue",
    "before", "after",
];

fn set_option(
    options: &mut EntryOptions,
    place: &mut Option<Place>,
    name: &'static str,
    value: &Word<'_>,
) -> Result<(), Reason> {
    let text: &str = &value.text;
    match name {
        "timeout" => options.timeout = Some(create::timeout(text)?),
        "nomatch" => options.nomatch = true,
        "wildcard" => options.wildcard = true,
        // 2^64 - 1 is an overflow to ipset.
        "packets" => options.packets = Some(number::parse(text, 0, u64::MAX - 1)?),
        "bytes" => options.bytes = Some(number::parse(text, 0, u64::MAX - 1)?),
        "comment" => options.comment = Some(Comment::new(text)?),
        "skbmark" => options.skbmark = Some(SkbMark::parse(text)?),
        "skbprio" => options.skbprio = Some(SkbPrio::parse(text)?),
        "skbqueue" => options.skbqueue = Some(number::parse_u16(text)?),
        _ => {
            let other = SetName::new(text)?;
            *place = Some(if name == "before" { Place::Before(other) } else { Place::After(other) });
        }
    }
    Ok(())
}

/// The words after the command.
struct Arguments<'l> {
    command: &'static str,
    words: std::vec::IntoIter<Word<'l>>,
    /// The column of the end of the line, for errors about missing words.
    end: u32,
}

impl<'l> Arguments<'l> {
    fn one(&mut self, which: &'static str) -> Result<Word<'l>, ParseError> {
        let command = self.command;
        self.words.next().ok_or_else(|| missed(self.end, Reason::MissingArgument { command, which }))
    }

    fn two(&mut self) -> Result<(Word<'l>, Word<'l>), ParseError> {
        Ok((self.one("first")?, self.one("second")?))
    }

    fn two_sets(&mut self) -> Result<(SetName, SetName), ParseError> {
        let (from, to) = self.two()?;
        Ok((set_name(&from)?, set_name(&to)?))
    }

    fn optional_set(&mut self) -> Result<Option<SetName>, ParseError> {
        self.words.next().map(|word| set_name(&word)).transpose()
    }

    fn entry(&mut self, verb: Verb) -> Result<EntryWords<'l>, ParseError> {
        let (set, element) = self.two()?;
        Ok(EntryWords { verb, set: set_name(&set)?, element, options: self.words.by_ref().collect() })
    }
}

fn set_name(word: &Word<'_>) -> Result<SetName, ParseError> {
    SetName::new(&word.text).map_err(|reason| word.wrong(reason))
}

/// The commands and their aliases. The order determines which command an abbreviation means.
const COMMANDS: &[(&str, &[&str])] = &[
    ("create", &["create", "new", "-N"]),
    ("add", &["add", "-A"]),
    ("del", &["del", "-D"]),
    ("test", &["test", "-T"]),
    ("destroy", &["destroy", "x", "-X"]),
    ("list", &["list", "-L"]),
    ("save", &["save", "-S"]),
    ("restore", &["restore", "-R"]),
    ("flush", &["flush", "-F"]),
    ("rename", &["rename", "e", "-E"]),
    ("swap", &["swap", "w", "-W"]),
    ("help", &["help", "-h", "-H"]),
    ("version", &["version", "-v", "-V"]),
    ("quit", &["quit"]),
];

fn match_command(word: &str) -> Option<&'static str> {
    if word == "add" {
        return Some("add");
    }
    let start = word.strip_prefix("--").unwrap_or(word);
    if start.is_empty() || word == "-" {
        return None;
    }
    COMMANDS.iter().find(|(_, names)| names.iter().any(|name| name.starts_with(start))).map(|(name, _)| *name)
}

/// The short and the long form of each option, and whether a value follows.
pub(crate) const GLOBAL_OPTIONS: &[(&str, &str, bool)] = &[
    ("-o", "-output", true),
    ("-s", "-sorted", false),
    ("-q", "-quiet", false),
    ("-r", "-resolve", false),
    ("-!", "-exist", false),
    ("-n", "-name", false),
    ("-t", "-terse", false),
    ("-f", "-file", true),
];

/// Removes the options of `ipset` from a line, wherever they are.
fn take_options(words: &mut Vec<Word<'_>>, options: &mut Options, end: u32) -> Result<(), ParseError> {
    let mut all = std::mem::take(words).into_iter();
    while let Some(word) = all.next() {
        if !word.is_option() {
            words.push(word);
            continue;
        }
        let text =
            if word.text.starts_with("--") { word.text.get(1..).unwrap_or_default() } else { &word.text };
        let mut value = |name| all.next().ok_or_else(|| missed(end, Reason::MissingValue(name)));
        match text {
            "-s" | "-sorted" => options.sorted = true,
            "-q" | "-quiet" => options.quiet = true,
            "-r" | "-resolve" => options.resolve = true,
            "-!" | "-exist" => options.exist = true,
            "-n" | "-name" => options.names = true,
            "-t" | "-terse" => options.terse = true,
            "-f" | "-file" => options.file = Some(value("-file")?.text.into_owned()),
            _ => {
                let mode = value("-output")?;
                options.output = Some(match &*mode.text {
                    "plain" => Output::Plain,
                    "save" => Output::Save,
                    "xml" => Output::Xml,
                    _ => return Err(mode.wrong(Reason::OutputMode(mode.text.to_string()))),
                });
            }
        }
    }
    Ok(())
}

fn missed(column: u32, reason: Reason) -> ParseError {
    ParseError { line: None, column, reason }
}
