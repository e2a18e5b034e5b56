//! The command line of iptables, read as `getopt_long(3)` and iptables 1.8.9 read it.
//!
//! An option of an extension belongs to a match or target that was named before it, and takes its words
//! whatever they look like: `--comment -D` is no command. Long names may be cut where that is unambiguous.
//! `-s`, `-d`, `-p` and `-j` take the word behind them alone, as 1.8.9 does: `-p=tcp` and `-ptcp` are refused.

use std::net::IpAddr;

use sluicegate_iptables_save::{
    Counters, Extension, Family, OptionRow, encode, find_match, find_target, protocol_name, protocol_number,
};

use sluicegate_xtables::BackEnd;

use super::failure::{Failure, long_interface, no_protocol, parameter};
use super::{Tool, hosts};
use crate::output::tell;

/// A command line.
#[derive(Debug, Default)]
pub(super) struct Arguments {
    /// The letters of the command, and of `-Z` beside `-L` or `-S`.
    pub(super) command: Option<char>,
    pub(super) zero: bool,
    /// Whether `-Z` has a number of its own: it is of that rule.
    pub(super) zeroes_rule: bool,
    pub(super) table: Option<String>,
    pub(super) chain: Option<String>,
    /// The new name of a chain, or a policy.
    pub(super) argument: Option<String>,
    pub(super) number: Option<u32>,
    /// The options and values of the rule, one by one.
    pub(super) words: Vec<String>,
    pub(super) counters: Option<Counters>,
    pub(super) verbose: bool,
    pub(super) numeric: bool,
    pub(super) exact: bool,
    pub(super) line_numbers: bool,
    /// How many seconds `-w` waits; `Some(None)` for as long as it takes.
    pub(super) wait: Option<Option<u64>>,
    /// `-h` or `-V`, which end everything where they stand.
    pub(super) ends: Option<char>,
    /// The matches and targets that `-h` tells of.
    pub(super) extensions: Vec<&'static Extension>,
    /// Where among the words the networks of `-s` and `-d` are.
    networks: Vec<usize>,
}

/// Reads the words behind the name of the tool.
pub(super) fn read(words: &[String], family: Family) -> Result<Arguments, Failure> {
    let mut reader = Reader {
        words,
        at: 0,
        family,
        found: Arguments::default(),
        seen: Vec::new(),
        loaded: Vec::new(),
        protocol: None,
        inverted: false,
        reads_interval: false,
    };
    reader.all()?;
    Ok(reader.found)
}

struct Reader<'a> {
    words: &'a [String],
    at: usize,
    family: Family,
    found: Arguments,
    /// The options of which there may be one, by their letters.
    seen: Vec<char>,
    loaded: Vec<&'static Extension>,
    /// The match that `-p` loads when an option of it comes.
    protocol: Option<&'static Extension>,
    /// Whether a `!` stands before this word.
    inverted: bool,
    reads_interval: bool,
}

/// An option of iptables itself.
struct Known {
    long: &'static str,
    letter: char,
    value: Takes,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Takes {
    Nothing,
    /// A value in the same word, if any.
    Perhaps,
    Value,
}

impl Reader<'_> {
    fn all(&mut self) -> Result<(), Failure> {
        while let Some(word) = self.words.get(self.at).filter(|_| self.found.ends.is_none()) {
            self.at += 1;
            if word == "--" {
                if self.at < self.words.len() {
                    return Err(parameter("unknown arguments found on commandline"));
                }
            } else if let Some(long) = word.strip_prefix("--") {
                self.long(long, word)?;
            } else if let Some(letters) = word.strip_prefix('-').filter(|letters| !letters.is_empty()) {
                self.letters(letters)?;
            } else if word == "!" {
                if self.inverted {
                    return Err(parameter("multiple consecutive ! not allowed"));
                }
                self.inverted = true;
            } else {
                return Err(Failure::bare(format!("Bad argument `{word}'")));
            }
        }
        if self.found.ends.is_some() {
            return Ok(());
        }
        if self.inverted {
            return Err(parameter("nothing appropriate following !"));
        }
        let Some(command) = self.found.command else { return Err(parameter("no command specified")) };
        self.check(command)?;
        for at in std::mem::take(&mut self.found.networks) {
            if let Some(word) = self.found.words.get_mut(at) {
                *word = hosts::resolved(word, self.family)?;
            }
        }
        Ok(())
    }

    /// Letters of one word: an option without a value may be followed by others.
    fn letters(&mut self, letters: &str) -> Result<(), Failure> {
        let mut rest = letters.chars();
        while let Some(letter) = rest.next() {
            let option = OPTIONS.iter().find(|option| option.letter == letter && letter != '0');
            let Some(option) = option else {
                return Err(parameter(format!("unknown option \"-{letter}\"")));
            };
            let attached = Some(rest.as_str().to_owned()).filter(|value| !value.is_empty());
            match option.value {
                Takes::Nothing => self.option(letter, None)?,
                Takes::Perhaps => return self.option(letter, attached),
                Takes::Value => {
                    let name = format!("-{letter}");
                    let value = self.value(letter, attached, &name)?;
                    return self.option(letter, Some(value));
                }
            }
            if self.found.ends.is_some() {
                return Ok(());
            }
        }
        Ok(())
    }

    /// The value of an option. Of some the tool takes the last word that was read, not the value in it: the
    /// name of an interface that this would make is refused.
    fn value(&mut self, letter: char, attached: Option<String>, name: &str) -> Result<String, Failure> {
        let value = match attached {
            Some(value) if "io".contains(letter) => {
                let mut word = self.words.get(self.at.saturating_sub(1)).cloned().unwrap_or_default();
                word.truncate(word.len() - value.len());
                return Err(parameter(format!("expected a blank behind `{word}`, found `{value}`")));
            }
            Some(_) if "spdj".contains(letter) => self.words.get(self.at.saturating_sub(1)).cloned(),
            Some(value) => Some(value),
            None => {
                self.at += 1;
                self.words.get(self.at - 1).cloned()
            }
        };
        value.ok_or_else(|| parameter(format!("option \"{name}\" requires an argument")))
    }

    fn long(&mut self, long: &str, word: &str) -> Result<(), Failure> {
        let (name, value) = long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value)));
        let value = value.map(str::to_owned);
        let unknown = || parameter(format!("unknown option \"{word}\""));
        match self.find(name) {
            None => Err(unknown()),
            Some(Found::Own(option)) => match option.value {
                Takes::Nothing if value.is_some() => Err(unknown()),
                Takes::Nothing => self.option(option.letter, None),
                Takes::Perhaps => self.option(option.letter, value),
                Takes::Value => {
                    let value = self.value(option.letter, value, &format!("--{name}"))?;
                    self.option(option.letter, Some(value))
                }
            },
            Some(Found::Extension(name, row)) => {
                self.invert();
                self.found.words.push(format!("--{name}"));
                if row.arity() == 0 && value.is_some() {
                    return Err(unknown());
                }
                let mut values = Vec::from_iter(value);
                while values.len() < row.arity() {
                    let is_last = values.len() + 1 == row.arity();
                    let next = self.words.get(self.at);
                    // A value that may be left out is none that begins as an option does.
                    if row.is_optional() && is_last && next.is_none_or(|next| next.starts_with(['-', '!'])) {
                        break;
                    }
                    let missing = match values.len() {
                        0 => format!("option \"{word}\" requires an argument"),
                        // Each extension of the tool has this sentence of its own.
                        _ if row.name() == "chunk-types" => "--chunk-types requires two args".to_owned(),
                        _ => format!("--{} requires two args.", row.name()),
                    };
                    values.push(next.ok_or_else(|| parameter(missing))?.clone());
                    self.at += 1;
                }
                for value in &mut values {
                    *value = account(row.name(), value).unwrap_or_else(|| std::mem::take(value));
                    // The tool looks accounts up before it asks for the place of the rule.
                    let is_account = matches!(row.name(), "uid-owner" | "gid-owner");
                    if is_account && value.starts_with(|c: char| c.is_ascii_alphabetic()) {
                        let option = row.name();
                        let message = format!("owner: Bad value for \"--{option}\" option: \"{value}\"");
                        return Err(parameter(message));
                    }
                }
                if matches!(row.name(), "src-range" | "dst-range") {
                    values.iter().for_each(|range| warn_of_reversed(range));
                }
                self.found.words.extend(values);
                Ok(())
            }
        }
    }

    /// Finds an option by its long name, or by the beginning of it if no other begins so.
    fn find(&mut self, name: &str) -> Option<Found> {
        let found = self.find_loaded(name);
        if found.is_some() {
            return found;
        }
        // The match of the protocol is loaded when an option is not known otherwise.
        let protocol = self.protocol.take()?;
        self.loaded.push(protocol);
        self.find_loaded(name)
    }

    fn find_loaded(&self, name: &str) -> Option<Found> {
        if let Some(option) = OPTIONS.iter().find(|option| option.long == name) {
            return Some(Found::Own(option));
        }
        let rows = || self.loaded.iter().rev().flat_map(|extension| extension.options());
        if let Some(row) = rows().find(|row| row.name() == name || row.aliases().contains(&name)) {
            return Some(Found::Extension(name.to_owned(), row));
        }
        let begins = |long: &str| !name.is_empty() && long.starts_with(name);
        let own: Vec<_> = OPTIONS.iter().filter(|option| begins(option.long)).collect();
        let mut others: Vec<(&str, &'static OptionRow)> = rows()
            .flat_map(|row| {
                std::iter::once(row.name()).chain(row.aliases().iter().copied()).map(move |n| (n, row))
            })
            .filter(|(long, _)| begins(long))
            .collect();
        others.dedup_by_key(|(_, row)| row.name());
        match (&own[..], &others[..]) {
            ([option], []) => Some(Found::Own(option)),
            // `--src` and `--source` are one option.
            ([option, rest @ ..], []) if rest.iter().all(|other| other.letter == option.letter) => {
                Some(Found::Own(option))
            }
            ([], [(long, row)]) => Some(Found::Extension((*long).to_owned(), row)),
            _ => None,
        }
    }

    /// Writes the `!` that stands before an option of the rule.
    fn invert(&mut self) {
        if std::mem::take(&mut self.inverted) {
            self.found.words.push("!".to_owned());
        }
    }

    /// Notes an option of which there may be one.
    fn once(&mut self, letter: char) -> Result<(), Failure> {
        if self.seen.contains(&letter) {
            return Err(parameter(format!("multiple -{letter} flags not allowed")));
        }
        self.seen.push(letter);
        Ok(())
    }

    /// Returns the next word unless it begins as an option does.
    fn next_argument(&mut self) -> Option<String> {
        let next = self.words.get(self.at).filter(|next| !next.starts_with(['-', '!']))?;
        self.at += 1;
        Some(next.clone())
    }

    fn option(&mut self, letter: char, value: Option<String>) -> Result<(), Failure> {
        match letter {
            'A' | 'C' | 'D' | 'I' | 'R' | 'N' | 'P' | 'E' | 'L' | 'S' | 'F' | 'X' | 'Z' => {
                self.command(letter, value)
            }
            's' | 'd' | 'p' | 'i' | 'o' | 'j' | 'g' | 'm' | 'f' => self.of_rule(letter, value),
            _ => self.of_run(letter, value),
        }
    }

    fn command(&mut self, letter: char, value: Option<String>) -> Result<(), Failure> {
        if std::mem::take(&mut self.inverted) {
            return Err(parameter("unexpected '!' flag"));
        }
        match (self.found.command, letter) {
            (None, _) => self.found.command = Some(letter),
            (Some('L' | 'S'), 'Z') => self.found.zero = true,
            (Some('Z'), 'L' | 'S') => {
                (self.found.command, self.found.zero) = (Some(letter), true);
            }
            (Some(before), _) => return Err(parameter(format!("Cannot use -{letter} with -{before}"))),
        }
        if letter == 'N' {
            new_name(value.as_deref().unwrap_or_default(), self.family)?;
        }
        let chain = match value {
            None => self.next_argument(),
            value => value,
        };
        if chain.is_some() || !self.found.zero {
            self.found.chain = chain;
        }
        let needs = |what: &str| parameter(format!("-{letter} requires {what}"));
        match letter {
            'D' | 'I' | 'L' | 'S' | 'Z' if self.found.chain.is_some() => {
                let word = self.next_argument();
                let number = word.as_deref().map(rule_number).transpose()?;
                if letter == 'Z' && number.is_some() {
                    self.found.zeroes_rule = true;
                    // With a number it is a command of its own, and one of a list before it is forgotten.
                    if self.found.zero {
                        (self.found.command, self.found.zero) = (Some('Z'), false);
                    }
                }
                self.found.number = number.or(self.found.number);
            }
            'R' => {
                let word = self.next_argument().ok_or_else(|| needs("a rule number"))?;
                self.found.number = Some(rule_number(&word)?);
            }
            'E' => {
                let name = self.next_argument();
                self.found.argument = Some(name.ok_or_else(|| needs("old-chain-name and new-chain-name"))?);
            }
            'P' => {
                let policy = self.next_argument();
                self.found.argument = Some(policy.ok_or_else(|| needs("a chain and a policy"))?);
            }
            _ => (),
        }
        Ok(())
    }

    fn of_rule(&mut self, letter: char, value: Option<String>) -> Result<(), Failure> {
        if letter != 'm' {
            // `-g` is `-j` to a chain.
            self.once(if letter == 'g' { 'j' } else { letter })?;
        }
        if self.inverted && "jgm".contains(letter) {
            return Err(match letter {
                'm' => parameter("unexpected ! flag before --match"),
                _ => parameter("cannot have ! before -j"),
            });
        }
        let mut value = value.unwrap_or_default();
        match letter {
            'p' => {
                value.make_ascii_lowercase();
                self.protocol = match_of_protocol(&value, self.family)?;
                let is_header = protocol_number(&value).is_some_and(|number| HEADERS.contains(&number));
                if is_header && self.family == Family::Ipv6 && !self.inverted {
                    tell(format_args!(
                        "Warning: never matched protocol: {value}. use extension match instead."
                    ));
                }
            }
            'i' | 'o' => interface(&value)?,
            'g' => target_name(&value)?,
            'm' => {
                let extension = find_match(&value, self.family);
                let missing =
                    || parameter(format!("Couldn't load match `{value}':No such file or directory\n"));
                self.loaded.push(extension.ok_or_else(missing)?);
            }
            'j' => {
                target_name(&value)?;
                self.loaded.extend(find_target(&value, self.family));
            }
            _ => (),
        }
        self.invert();
        self.found.words.push(format!("-{letter}"));
        if matches!(letter, 's' | 'd') {
            self.found.networks.push(self.found.words.len());
        }
        if letter != 'f' {
            self.found.words.push(value);
        }
        Ok(())
    }

    fn of_run(&mut self, letter: char, value: Option<String>) -> Result<(), Failure> {
        let inverted = std::mem::take(&mut self.inverted);
        match letter {
            't' if inverted => return Err(parameter("unexpected ! flag before --table")),
            't' => self.found.table = value,
            'v' => self.found.verbose = true,
            'n' => {
                self.once(letter)?;
                self.found.numeric = true;
            }
            'x' => {
                self.once(letter)?;
                self.found.exact = true;
            }
            '0' => {
                self.once(letter)?;
                self.found.line_numbers = true;
            }
            'h' | 'V' => {
                self.found.ends = Some(letter);
                self.found.extensions = std::mem::take(&mut self.loaded);
                if self.found.extensions.is_empty() {
                    self.found.extensions.extend(self.protocol);
                }
            }
            'w' => {
                let value = value.or_else(|| self.next_argument());
                self.found.wait = Some(value.as_deref().map(seconds).transpose()?);
            }
            'W' => {
                let value = value.or_else(|| self.next_argument());
                let value = value.ok_or_else(|| parameter("wait interval value required"))?;
                interval(&value)?;
                self.reads_interval = true;
            }
            'c' => {
                self.once(letter)?;
                let value = value.unwrap_or_default();
                let (packets, bytes) = match value.split_once(',') {
                    Some((packets, bytes)) => (packets.to_owned(), Some(bytes.to_owned())),
                    None => (value.clone(), self.next_argument()),
                };
                let bytes = bytes.ok_or_else(|| parameter("-c requires packet and byte counter"))?;
                let count = |text: &str, which: &str| {
                    text.parse().map_err(|_| parameter(format!("-c {which} counter not numeric")))
                };
                let (packets, bytes) = (count(&packets, "packet")?, count(&bytes, "byte")?);
                self.found.counters = Some(Counters { packets, bytes });
            }
            '4' if self.family == Family::Ipv6 => return Err(Failure::usage()),
            '6' if self.family == Family::Ipv4 => return Err(Failure::usage()),
            // A program that loads modules is never started here: the kernel loads them itself.
            _ => (),
        }
        Ok(())
    }

    /// Checks what the command does not go with.
    fn check(&self, command: char) -> Result<(), Failure> {
        if self.reads_interval && self.found.wait.is_none() {
            return Err(parameter("--wait-interval only makes sense with --wait\n"));
        }
        let has_rule =
            matches!(command, 'A' | 'C' | 'I' | 'R') || (command == 'D' && self.found.number.is_none());
        let allowed = |letter: char| match letter {
            's' | 'd' | 'p' | 'i' | 'o' | 'j' | 'g' | 'f' => has_rule,
            'n' | 'x' | '0' => command == 'L',
            'c' => matches!(command, 'A' | 'I' | 'R' | 'P'),
            _ => true,
        };
        if let Some(letter) = self.seen.iter().find(|letter| !allowed(**letter)) {
            return Err(parameter(format!("Illegal option `-{letter}' with this command")));
        }
        if !has_rule && !self.found.words.is_empty() {
            let word = self.found.words.iter().find(|word| *word != "!").cloned().unwrap_or_default();
            return Err(parameter(format!("Illegal option `{word}' with this command")));
        }
        if let Some(chain) = &self.found.chain {
            let length = encode(chain).len();
            if length > LONGEST_CHAIN {
                return Err(parameter(format!(
                    "chain name `{chain}' too long (must be under {} chars)",
                    LONGEST_CHAIN + 1
                )));
            }
        }
        let of_rule = |letter| self.seen.contains(&letter);
        for (letter, chains) in [('o', &["PREROUTING", "INPUT"]), ('i', &["POSTROUTING", "OUTPUT"])] {
            let chain = self.found.chain.as_deref().filter(|chain| has_rule && chains.contains(chain));
            if let Some(chain) = chain.filter(|_| of_rule(letter)) {
                return Err(parameter(format!("Can't use -{letter} with {chain}\n")));
            }
        }
        let needs_chain = matches!(command, 'A' | 'C' | 'D' | 'I' | 'R' | 'N' | 'P' | 'E');
        if needs_chain && self.found.chain.is_none() {
            return Err(parameter(format!("option \"-{command}\" requires an argument")));
        }
        Ok(())
    }
}

enum Found {
    Own(&'static Known),
    Extension(String, &'static OptionRow),
}

/// Reads the number of a rule, from 1.
fn rule_number(word: &str) -> Result<u32, Failure> {
    let hex = word.strip_prefix("0x").or_else(|| word.strip_prefix("0X"));
    let (digits, radix) = match (hex, word.strip_prefix('0')) {
        (Some(hex), _) => (hex, 16),
        (None, Some(octal)) if !octal.is_empty() => (octal, 8),
        _ => (word, 10),
    };
    // `from_str_radix` would take a sign.
    let is_number = digits.chars().all(|digit| digit.is_digit(radix));
    let number = if is_number { u32::from_str_radix(digits, radix).ok() } else { None };
    let number = number.filter(|number| (1..=i32::MAX as u32).contains(number));
    number.ok_or_else(|| parameter(format!("Invalid rule number `{word}'")))
}

/// Reads for how many seconds to wait for the lock.
pub(super) fn seconds(word: &str) -> Result<u64, Failure> {
    leading_u64(word).ok_or_else(|| parameter("wait seconds not numeric"))
}

/// Reads how often to look at the lock, which is not heeded any more.
pub(super) fn interval(word: &str) -> Result<u64, Failure> {
    match leading_u64(word) {
        None => Err(parameter("wait interval not numeric")),
        Some(interval @ 1_000_000..) => {
            Err(parameter(format!("too long usec wait {interval} > 999999 usec")))
        }
        Some(interval) => {
            tell("Ignoring deprecated --wait-interval option.");
            Ok(interval)
        }
    }
}

fn leading_u64(word: &str) -> Option<u64> {
    leading_number(word).0?.try_into().ok()
}

/// Returns the number at the beginning of a word, as strtoul(3) and `sscanf("%i")` read it, and what stands behind
/// it. A number that is too large for them is the largest.
pub(super) fn leading_number(word: &str) -> (Option<u128>, &str) {
    let word = word.trim_ascii_start();
    let hex = word.strip_prefix("0x").or_else(|| word.strip_prefix("0X"));
    let (digits, radix) = match hex.filter(|hex| hex.starts_with(|c: char| c.is_ascii_hexdigit())) {
        Some(hex) => (hex, 16),
        None if word.starts_with('0') => (word, 8),
        None => (word, 10),
    };
    let end = digits.find(|c: char| !c.is_digit(radix)).unwrap_or(digits.len());
    match digits.split_at_checked(end) {
        Some((number, rest)) if end > 0 => {
            (Some(u128::from_str_radix(number, radix).unwrap_or(u128::MAX)), rest)
        }
        _ => (None, word),
    }
}

/// Returns the match that an option behind `-p` loads, if the protocol has one.
fn match_of_protocol(word: &str, family: Family) -> Result<Option<&'static Extension>, Failure> {
    let number = protocol_number(word).ok_or_else(|| no_protocol(word))?;
    let name = match word.starts_with(|c: char| c.is_ascii_digit()) {
        true => protocol_name(number).unwrap_or_default(),
        false => word,
    };
    Ok(find_match(name, family))
}

/// Checks the name of an interface; one that the kernel gives to none is taken with a warning.
fn interface(name: &str) -> Result<(), Failure> {
    match encode(name).len() {
        0 => return Err(parameter("Empty interface is likely to be undesired")),
        1..=LONGEST_INTERFACE => (),
        _ => return Err(long_interface(name)),
    }
    if name.contains([' ', '/']) {
        tell(format_args!(
            "Warning: weird character in interface `{name}' ('/' and ' ' are not allowed by the kernel)."
        ));
    }
    Ok(())
}

/// Returns the number of the user or group that is the value of an option, if it is one's name: name, password
/// and number stand first in a line of the file, which may have names of people in any encoding.
fn account(option: &str, name: &str) -> Option<String> {
    let file = match option {
        "uid-owner" => "/etc/passwd",
        "gid-owner" => "/etc/group",
        _ => return None,
    };
    let accounts = std::fs::read(file).ok()?;
    accounts.split(|byte| *byte == b'\n').find_map(|line| {
        let mut fields = line.split(|byte| *byte == b':');
        (fields.next() == Some(name.as_bytes())).then(|| fields.nth(1))?.and_then(id)
    })
}

/// Returns the number of an account, if it is one: not a range, which a rule would take as well.
fn id(field: &[u8]) -> Option<String> {
    let number: u32 = std::str::from_utf8(field).ok()?.parse().ok()?;
    Some(number.to_string())
}

/// Tells that a range of addresses has its ends in the wrong order.
fn warn_of_reversed(range: &str) {
    let ends = range.split_once('-').map(|(from, to)| (from.parse::<IpAddr>(), to.parse::<IpAddr>()));
    if let Some((Ok(from), Ok(to))) = ends
        && from > to
    {
        tell(format_args!("xt_iprange: range {range} is reversed and will never match"));
    }
}

/// Checks the name of a target or chain to jump to.
fn target_name(name: &str) -> Result<(), Failure> {
    match encode(name).len() {
        0 => Err(parameter("Invalid target name (too short)")),
        1..=LONGEST_CHAIN if name.contains(|c: char| c.is_ascii_whitespace()) => {
            Err(parameter(format!("Invalid target name `{name}'")))
        }
        1..=LONGEST_CHAIN => Ok(()),
        _ => Err(parameter(format!("Invalid target name `{name}' ({LONGEST_CHAIN} chars max)"))),
    }
}

/// Checks the name of a chain that is made.
pub(super) fn new_name(name: &str, family: Family) -> Result<(), Failure> {
    if let Some(first) = name.chars().next().filter(|first| ['-', '!'].contains(first)) {
        return Err(parameter(format!("chain name not allowed to start with `{first}'")));
    }
    if name.is_empty() || VERDICTS.contains(&name) || find_target(name, family).is_some() {
        return Err(parameter("chain name may not clash with target name"));
    }
    if name.contains(|c: char| c.is_ascii_whitespace() || c.is_ascii_control()) {
        return Err(parameter(format!("Invalid chain name `{name}'")));
    }
    Ok(())
}

/// Checks the name of a chain that iptables-restore makes: what it says is not what iptables says.
pub(super) fn restored_name(name: &str, tool: &Tool) -> Result<(), Failure> {
    let length = encode(name).len();
    if length > LONGEST_CHAIN {
        return Err(parameter(match tool.back_end {
            BackEnd::Nft => {
                let limit = LONGEST_CHAIN + 1;
                format!("chain name `{name}' too long (must be under {limit} chars)")
            }
            BackEnd::Legacy => format!("Invalid chain name `{name}' ({LONGEST_CHAIN} chars max)"),
        }));
    }
    if tool.back_end == BackEnd::Legacy && VERDICTS.contains(&name) {
        return Err(parameter(format!("error creating chain '{name}':File exists")));
    }
    new_name(name, tool.family)
}

const fn option(long: &'static str, letter: char, value: Takes) -> Known {
    Known { long, letter, value }
}

/// Targets that are no extension.
const VERDICTS: [&str; 4] = ["ACCEPT", "DROP", "QUEUE", "RETURN"];
/// Returns the options of iptables(8) with their letters.
pub(super) fn options() -> impl Iterator<Item = (&'static str, char)> {
    OPTIONS.iter().map(|option| (option.long, option.letter))
}

/// The options of iptables(8).
const OPTIONS: &[Known] = &[
    option("append", 'A', Takes::Value),
    option("delete", 'D', Takes::Value),
    option("check", 'C', Takes::Value),
    option("insert", 'I', Takes::Value),
    option("replace", 'R', Takes::Value),
    option("list", 'L', Takes::Perhaps),
    option("list-rules", 'S', Takes::Perhaps),
    option("flush", 'F', Takes::Perhaps),
    option("zero", 'Z', Takes::Perhaps),
    option("new-chain", 'N', Takes::Value),
    option("delete-chain", 'X', Takes::Perhaps),
    option("rename-chain", 'E', Takes::Value),
    option("policy", 'P', Takes::Value),
    option("source", 's', Takes::Value),
    option("destination", 'd', Takes::Value),
    option("src", 's', Takes::Value),
    option("dst", 'd', Takes::Value),
    option("protocol", 'p', Takes::Value),
    option("in-interface", 'i', Takes::Value),
    option("jump", 'j', Takes::Value),
    option("table", 't', Takes::Value),
    option("match", 'm', Takes::Value),
    option("numeric", 'n', Takes::Nothing),
    option("out-interface", 'o', Takes::Value),
    option("verbose", 'v', Takes::Nothing),
    option("wait", 'w', Takes::Perhaps),
    option("wait-interval", 'W', Takes::Perhaps),
    option("exact", 'x', Takes::Nothing),
    option("fragments", 'f', Takes::Nothing),
    option("version", 'V', Takes::Nothing),
    option("help", 'h', Takes::Perhaps),
    option("line-numbers", '0', Takes::Nothing),
    option("modprobe", 'M', Takes::Value),
    option("set-counters", 'c', Takes::Value),
    option("goto", 'g', Takes::Value),
    option("ipv4", '4', Takes::Nothing),
    option("ipv6", '6', Takes::Nothing),
];
/// Headers of IPv6 that are not the protocol of a packet: those of routing and fragments, AH, and of options for
/// the destination.
const HEADERS: [u8; 4] = [43, 44, 51, 60];
/// `XT_EXTENSION_MAXNAMELEN`, less the zero at its end.
pub(super) const LONGEST_CHAIN: usize = 28;
/// `IFNAMSIZ`, less the zero at its end.
const LONGEST_INTERFACE: usize = 15;
