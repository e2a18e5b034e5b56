//! Lines inside a table: chain lines, rule lines, and the commands that iptables-restore takes.

use std::borrow::Cow;

use crate::Error;
use crate::parse::Line;
use crate::tree::{Action, Chain, Command, Counters, Entry, Rule, Verb};
use crate::words::{Word, is_blank, quote_if_needed, split};

/// Reads a line of a table.
pub(crate) fn entry<'a>(line: &Line<'a>) -> Result<Entry<'a>, Error> {
    if line.text.starts_with(':') {
        return chain(line).map(Entry::Chain);
    }
    let (counters, rest) = leading_counters(line)?;
    match usual(rest) {
        Some((chain, words)) => Ok(Entry::Rule(Rule {
            source: line.source(),
            counters,
            action: Action::Append,
            chain: Cow::Borrowed(chain),
            words: Cow::Borrowed(words),
            line: line.number(),
        })),
        None => unusual(line, counters, rest),
    }
}

/// `-A CHAIN words`, as iptables-save prints it.
fn usual(rest: &str) -> Option<(&str, &str)> {
    let rest = rest.strip_prefix("-A ")?;
    let end = rest.bytes().position(|byte| matches!(byte, b' ' | b'\t' | b'"')).unwrap_or(rest.len());
    let (chain, words) = rest.split_at_checked(end)?;
    let plain = !chain.is_empty() && !words.starts_with('"') && !chain.starts_with(['-', '!']);
    plain.then(|| (chain, words.trim_start_matches(is_blank)))
}

fn chain<'a>(line: &Line<'a>) -> Result<Chain<'a>, Error> {
    let rest = line.text.get(1..).unwrap_or_default();
    let (name, rest) = next_word(rest);
    if name.is_empty() {
        return Err(line.expected(line.offset(rest), "the name of a chain"));
    }
    let (policy, rest) = next_word(rest);
    if policy.is_empty() {
        return Err(line.expected(line.offset(rest), "a policy, or `-` for a user-defined chain"));
    }
    let at = line.offset(rest.trim_start_matches(is_blank));
    let (counters, rest) = next_word(rest);
    let counters = match counters {
        "" => None,
        text => Some(brackets(text).ok_or_else(|| line.expected(at, COUNTERS))?),
    };
    if !next_word(rest).0.is_empty() {
        return Err(line.expected(line.offset(rest), "nothing behind the counters"));
    }
    let policy = (policy != "-").then_some(Cow::Borrowed(policy));
    Ok(Chain { source: line.source(), name: name.into(), policy, counters, line: line.number() })
}

/// Returns the next word of a chain line, which has no quoting, and the rest of the line.
fn next_word(text: &str) -> (&str, &str) {
    let text = text.trim_start_matches(is_blank);
    text.split_at_checked(text.find(is_blank).unwrap_or(text.len())).unwrap_or((text, ""))
}

fn leading_counters<'a>(line: &Line<'a>) -> Result<(Option<Counters>, &'a str), Error> {
    let text = line.text;
    if !text.starts_with('[') {
        return Ok((None, text.trim_start_matches(is_blank)));
    }
    let end = text.bytes().position(|byte| byte == b']').map(|at| at + 1);
    let parts = end.and_then(|end| text.split_at_checked(end));
    let (counters, rest) = parts.ok_or_else(|| line.expected(0, COUNTERS))?;
    let counters = brackets(counters).ok_or_else(|| line.expected(0, COUNTERS))?;
    Ok((Some(counters), rest.trim_start_matches(is_blank)))
}

/// `[packets:bytes]`
fn brackets(text: &str) -> Option<Counters> {
    let (packets, bytes) = text.strip_prefix('[')?.strip_suffix(']')?.split_once(':')?;
    Some(Counters { packets: decimal(packets)?, bytes: decimal(bytes)? })
}

fn decimal(digits: &str) -> Option<u64> {
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?
}

/// Any line of another form than `-A CHAIN ...`: other commands, long names, the command behind options.
fn unusual<'a>(line: &Line<'a>, counters: Option<Counters>, rest: &'a str) -> Result<Entry<'a>, Error> {
    let start = line.offset(rest);
    let mut before = Vec::new();
    let mut words = split(rest);
    loop {
        let word = words.next().transpose().map_err(|error| error.on_line(line.number))?;
        let Some(word) = word else {
            return Err(line.expected(start, "a command, as in `-A CHAIN`"));
        };
        let at = start + word.offset;
        if !word.text.starts_with('-') && before.is_empty() {
            return Err(line.expected(at, "a command, as in `-A CHAIN`"));
        }
        if matches!(&*word.text, "-t" | "--table") {
            return Err(line.expected(at, "no `-t`: the table is given by `*t` and so on"));
        }
        if let Some((letter, attached)) = command(&word) {
            let mut words = Tail { line, start, words };
            return words.entry(letter, attached, counters, &before, at);
        }
        before.push(word.text);
    }
}

/// Returns the letter of a command word, and the chain if it is attached (`-AINPUT`, `--append=INPUT`).
fn command<'a>(word: &Word<'a>) -> Option<(char, Option<String>)> {
    if let Some(long) = word.text.strip_prefix("--") {
        let (name, value) = long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value)));
        let (_, letter) = LONG.iter().find(|(long, _)| *long == name)?;
        return Some((*letter, value.map(str::to_owned)));
    }
    let mut letters = word.text.strip_prefix('-')?.chars();
    let letter = letters.next().filter(|letter| "AIRDCNXFPZE".contains(*letter))?;
    Some((letter, Some(letters.as_str().to_owned()).filter(|value| !value.is_empty())))
}

/// The argument of a command word.
struct Tail<'l, 'a> {
    line: &'l Line<'a>,
    /// The offset of the words in the line.
    start: usize,
    words: crate::words::Words<'a>,
}

impl<'a> Tail<'_, 'a> {
    fn entry(
        &mut self,
        letter: char,
        attached: Option<String>,
        counters: Option<Counters>,
        before: &[Cow<'a, str>],
        at: usize,
    ) -> Result<Entry<'a>, Error> {
        let chain = match attached {
            Some(chain) => Some(Cow::Owned(chain)),
            None => self.argument()?,
        };
        if matches!(letter, 'A' | 'I' | 'R' | 'D' | 'C') {
            let chain = chain.ok_or_else(|| self.expected("the name of a chain"))?;
            return self.rule(letter, chain, counters, before);
        }
        if !before.is_empty() || counters.is_some() {
            return Err(self.line.expected(at, "no options or counters with a command that is not of rules"));
        }
        let verb = self.verb(letter, chain)?;
        if !self.words.rest().is_empty() {
            return Err(self.expected("nothing behind the command"));
        }
        let Line { number, .. } = *self.line;
        let line = u32::try_from(number).unwrap_or(u32::MAX);
        Ok(Entry::Command(Command { source: self.line.source(), verb, line }))
    }

    fn rule(
        &mut self,
        letter: char,
        chain: Cow<'a, str>,
        counters: Option<Counters>,
        before: &[Cow<'a, str>],
    ) -> Result<Entry<'a>, Error> {
        let action = match letter {
            'A' => Action::Append,
            'C' => Action::Check,
            'I' => Action::Insert(self.number()?),
            'D' => self.number()?.map_or(Action::Delete, Action::DeleteNumber),
            _ => Action::Replace(self.number()?.ok_or_else(|| self.expected("a rule number"))?),
        };
        let mut words = Cow::Borrowed(self.words.rest());
        if !before.is_empty() {
            let quoted: Result<Vec<_>, _> = before.iter().map(|word| quote_if_needed(word)).collect();
            let quoted = quoted.map_err(|error| error.on_line(self.line.number))?;
            words = Cow::Owned(format!("{} {words}", quoted.join(" ")).trim_end().to_owned());
        }
        Ok(Entry::Rule(Rule {
            source: self.line.source(),
            counters,
            action,
            chain,
            words,
            line: self.line.number(),
        }))
    }

    fn verb(&mut self, letter: char, chain: Option<Cow<'a, str>>) -> Result<Verb<'a>, Error> {
        let named = |tail: &Self| chain.clone().ok_or_else(|| tail.expected("the name of a chain"));
        Ok(match letter {
            'N' => Verb::New(named(self)?),
            'X' => Verb::DeleteChain(chain),
            'F' => Verb::Flush(chain),
            'E' => {
                let old = named(self)?;
                Verb::Rename(old, self.argument()?.ok_or_else(|| self.expected("the new name of the chain"))?)
            }
            'P' => {
                let chain = named(self)?;
                let policy = self.argument()?.ok_or_else(|| self.expected("a policy"))?;
                Verb::Policy(chain, policy, self.set_counters()?)
            }
            _ => {
                let number = if chain.is_some() { self.number()? } else { None };
                Verb::Zero(chain, number)
            }
        })
    }

    /// Returns the next word, unless it is an option or `!`.
    fn argument(&mut self) -> Result<Option<Cow<'a, str>>, Error> {
        let mut ahead = self.words.clone();
        match ahead.next().transpose().map_err(|error| error.on_line(self.line.number))? {
            Some(word) if !word.text.starts_with(['-', '!']) && !word.text.is_empty() => {
                self.words = ahead;
                Ok(Some(word.text))
            }
            _ => Ok(None),
        }
    }

    /// Returns a rule number, if the next word is one; the tool takes any word here that is not an option.
    fn number(&mut self) -> Result<Option<u32>, Error> {
        let wrong = self.expected("a rule number");
        match self.argument()? {
            None => Ok(None),
            Some(word) => match decimal(&word).and_then(|number| i32::try_from(number).ok()) {
                Some(number) if number > 0 => Ok(Some(number.unsigned_abs())),
                _ => Err(wrong),
            },
        }
    }

    /// `-c packets bytes` behind a policy.
    fn set_counters(&mut self) -> Result<Option<Counters>, Error> {
        let mut ahead = self.words.clone();
        match ahead.next() {
            Some(Ok(word)) if matches!(&*word.text, "-c" | "--set-counters") => self.words = ahead,
            _ => return Ok(None),
        }
        let mut count = || {
            let wrong = self.expected("a number of packets, then one of bytes");
            self.argument()?.and_then(|word| decimal(&word)).ok_or(wrong)
        };
        Ok(Some(Counters { packets: count()?, bytes: count()? }))
    }

    fn expected(&self, expected: &'static str) -> Error {
        let rest = self.words.rest();
        let at = if rest.is_empty() { self.line.text.len() } else { self.line.offset(rest) };
        self.line.expected(at.max(self.start), expected)
    }
}

const COUNTERS: &str = "counters, as in `[packets:bytes]`";

/// Long names of commands (iptables(8)).
const LONG: [(&str, char); 11] = [
    ("append", 'A'),
    ("insert", 'I'),
    ("replace", 'R'),
    ("delete", 'D'),
    ("check", 'C'),
    ("new-chain", 'N'),
    ("delete-chain", 'X'),
    ("flush", 'F'),
    ("policy", 'P'),
    ("zero", 'Z'),
    ("rename-chain", 'E'),
];
