//! iptables-restore(8).

use std::borrow::Cow;
use std::io::Read as _;

use sluicegate_iptables_save::{
    Action, Error as TextError, Item, Listing, Rule, Save, Table, encode, normalise, quote_if_needed, split,
};
use sluicegate_xtables::legacy::Restore;
use sluicegate_xtables::{BackEnd, ForeignReason};

use super::client::Client;
use super::failure::{self, Asked, Failure, parameter};
use super::{Tool, hosts};
use crate::output::{print, tell};

pub(super) fn run(tool: &Tool, arguments: &[String]) -> Result<(), Failure> {
    let mut how = Restore::default().flush();
    let (mut test, mut verbose) = (false, false);
    let (mut only, mut file, mut wait) = (None, None, None);
    let mut found = letters(arguments, &OPTIONS)?.into_iter().peekable();
    while let Some((letter, value)) = found.next() {
        match letter {
            'n' => how.flush = false,
            'c' => how.counters = true,
            't' => test = true,
            'v' => verbose = true,
            'T' => only = value,
            'b' => tell("-b/--binary option is not implemented"),
            'W' if tool.back_end == BackEnd::Nft => {
                found.next_if(|(letter, value)| *letter == '\0' && is_number(value.as_deref()));
            }
            'W' => tell("Ignoring deprecated --wait-interval option."),
            'w' => {
                let attached = value.is_some();
                let word = match value {
                    None => found.next_if(|(letter, value)| *letter == '\0' && is_number(value.as_deref())),
                    value => Some(('w', value)),
                };
                let word = word.and_then(|(_, value)| value);
                if attached && !is_number(word.as_deref()) {
                    return Err(parameter("wait seconds not numeric"));
                }
                wait = word.and_then(|word| word.parse().ok());
            }
            'h' => return Ok(print(help(tool))?),
            'V' => return Ok(print(format!("{} {}\n", tool.name, tool.version()))?),
            '\0' if file.is_some() => {
                return Err(Failure::other("Unknown arguments found on commandline"));
            }
            '\0' => file = value,
            _ => (),
        }
    }
    let mut bytes = Vec::new();
    match &file {
        None => drop(std::io::stdin().read_to_end(&mut bytes)?),
        Some(file) => {
            let cannot = |error: std::io::Error| {
                let text = error.to_string();
                let text = text.split(" (os error").next().unwrap_or_default().to_owned();
                Failure::other(format!("Can't open {file}: {text}"))
            };
            bytes = std::fs::read(&**file).map_err(cannot)?;
        }
    }
    let mut input = Save::parse_bytes(&bytes).map_err(|error| unreadable(&error))?;
    if let Some(only) = &only {
        input.items.retain(|item| !matches!(item, Item::Table(table) if table.name() != only));
    }
    for rule in input.tables_mut().flat_map(Table::rules_mut) {
        if rule.is_for(tool.family) && has_name(rule.text()) {
            resolve(rule, tool)?;
        }
    }
    let asked = Asked { back_end: tool.back_end, family: tool.family, command: 'A', chain: "" };
    let told = |error: sluicegate_xtables::Error| {
        let line = error.line();
        let mut failure = failure::of(&error, asked);
        if let Some(line) = line {
            failure.message = match failure.status {
                failure::PARAMETER => format!("{}\nError occurred at line: {line}", failure.message),
                _ => format!("line {line} failed: {}", failure.message.trim()),
            };
        }
        failure
    };
    let client = Client::open(tool.back_end, tool.family, wait).map_err(told)?;
    if how.flush && !test {
        for table in input.tables() {
            tell_removed(&client, tool, table.name(), None);
        }
    }
    if test {
        return client.test(&input, how).map_err(told);
    }
    let said = if verbose && how.flush { said(&client, &input, tool) } else { String::new() };
    client.restore(&input, how).map_err(told)?;
    Ok(print(encode(&said))?)
}

/// Returns what a restore does, as `-v` says it.
fn said(client: &Client, input: &Save<'_>, tool: &Tool) -> String {
    let mut said = String::new();
    for table in input.tables() {
        let view = client.view(table.name()).ok();
        let chains = || view.iter().flat_map(|view| view.table.chains());
        chains().for_each(|chain| said.push_str(&format!("Flushing chain `{}'\n", chain.name())));
        let user = chains().filter(|chain| chain.policy().is_none());
        user.for_each(|chain| said.push_str(&format!("Deleting chain `{}'\n", chain.name())));
        for rule in table.rules().filter(|rule| rule.is_for(tool.family)) {
            for words in normalise(rule.text(), tool.family).unwrap_or_default() {
                let line = Rule::new(Action::Append, "X", words)
                    .and_then(|rule| Listing::new(tool.family).single(&rule));
                said.push_str(&line.unwrap_or_default());
            }
        }
    }
    said
}

/// Tells which rules without words go with a flush.
pub(super) fn tell_removed(client: &Client, tool: &Tool, table: &str, chain: Option<&str>) {
    if tool.back_end == BackEnd::Legacy {
        return;
    }
    let view = match chain {
        None => client.view(table).ok(),
        Some(chain) => client.view_chain(table, chain).ok().flatten(),
    };
    for foreign in view.into_iter().flat_map(|view| view.foreign) {
        if foreign.number.is_some() || foreign.reason == ForeignReason::BaseChain && chain.is_none() {
            tell(format_args!(
                "{}: Warning: removes from table `{table}' what others wrote: {foreign}",
                tool.name
            ));
        }
    }
}

/// Returns whether a network of the words may be the name of a host.
fn has_name(words: &str) -> bool {
    let value = |option: &str| {
        words.match_indices(option).any(|(at, _)| {
            let value = words.get(at + option.len()..).unwrap_or_default();
            value.split([' ', ',']).next().is_some_and(|part| {
                part.starts_with(|c: char| c.is_ascii_alphabetic()) && !part.contains(':')
            }) || value.split(' ').next().is_some_and(|value| value.contains(','))
        })
    };
    ["-s ", "-d ", "-s\t", "-d\t", "--source ", "--src ", "--destination ", "--dst "].into_iter().any(value)
}

/// Writes addresses in the place of the names of hosts.
fn resolve(rule: &mut Rule<'_>, tool: &Tool) -> Result<(), Failure> {
    let line = rule.line();
    let at = |mut failure: Failure| {
        failure.message = format!("{}\nError occurred at line: {line}", failure.message);
        failure
    };
    let mut words = Vec::new();
    let mut before = String::new();
    for word in split(rule.text()) {
        let word = word.map_err(|error| unreadable(&error))?;
        let is_network = matches!(&*before, "-s" | "-d" | "--source" | "--src" | "--destination" | "--dst");
        let text = match is_network {
            true => Cow::Owned(hosts::resolved(&word.text, tool.family).map_err(at)?),
            false => word.text.clone(),
        };
        words.push(quote_if_needed(&text).map_err(|error| unreadable(&error))?.into_owned());
        before = word.text.into_owned();
    }
    debug_assert!(!matches!(rule.action(), Action::DeleteNumber(_)));
    rule.set_text(words.join(" ")).map_err(|error| unreadable(&error))
}

/// Input that is not of the form of a save: nothing of it was carried out.
fn unreadable(error: &TextError) -> Failure {
    match error {
        TextError::Syntax { line, expected, .. } if expected.contains("COMMIT") => {
            Failure::other(format!("COMMIT expected at line {line}"))
        }
        error => match error.line() {
            Some(line) => parameter(format!("{error}\nError occurred at line: {line}")),
            None => parameter(error.to_string()),
        },
    }
}

fn is_number(word: Option<&str>) -> bool {
    word.is_some_and(|word| word.parse::<u64>().is_ok())
}

fn help(tool: &Tool) -> String {
    format!(
        "Usage: {} [-c] [-v] [-V] [-t] [-h] [-n] [-w secs] [-T table] [-M command] [file]\n\
         \t   [ --counters ]\n\t   [ --verbose ]\n\t   [ --version]\n\t   [ --test ]\n\t   [ --help ]\n\
         \t   [ --noflush ]\n\t   [ --wait=<seconds>\n\t   [ --table=<TABLE> ]\n\t   [ --modprobe=<command> ]\n",
        tool.name
    )
}

/// Options of one letter, without and with a value, and their long names.
pub(super) struct Letters {
    pub(super) flags: &'static str,
    pub(super) values: &'static str,
    pub(super) long: &'static [Long],
}

pub(super) struct Long(pub(super) &'static str, pub(super) char);

/// Reads options as `getopt_long(3)` does; `\0` stands for a word that is none. What is not known is an error,
/// and nothing is done.
pub(super) fn letters(
    arguments: &[String],
    options: &Letters,
) -> Result<Vec<(char, Option<String>)>, Failure> {
    let mut found = Vec::new();
    let mut words = arguments.iter();
    let wrong = |text: String| Failure::other(text);
    let needs = |option: &str| wrong(format!("option requires an argument -- '{option}'"));
    while let Some(word) = words.next() {
        if word == "--" {
            found.extend(words.by_ref().map(|word| ('\0', Some(word.clone()))));
        } else if let Some(long) = word.strip_prefix("--") {
            let (long, value) =
                long.split_once('=').map_or((long, None), |(long, value)| (long, Some(value)));
            let exact = options.long.iter().find(|Long(name, _)| *name == long);
            let begins: Vec<_> = options.long.iter().filter(|Long(name, _)| name.starts_with(long)).collect();
            let option = exact.or(match begins[..] {
                [one] => Some(one),
                _ => None,
            });
            let Some(Long(_, letter)) = option.filter(|Long(_, letter)| options.has(*letter)) else {
                return Err(wrong(format!("unrecognized option '{word}'")));
            };
            let mut value = value.map(str::to_owned);
            if options.values.contains(*letter) && value.is_none() {
                value = Some(words.next().ok_or_else(|| needs(long))?.clone());
            } else if options.flags.contains(*letter) && value.is_some() && *letter != 'w' {
                return Err(wrong(format!("option '--{long}' doesn't allow an argument")));
            }
            found.push((*letter, value));
        } else if let Some(cluster) = word.strip_prefix('-').filter(|cluster| !cluster.is_empty()) {
            let mut rest = cluster.chars();
            while let Some(letter) = rest.next() {
                if options.values.contains(letter) {
                    let attached = Some(rest.as_str().to_owned()).filter(|value| !value.is_empty());
                    let value = attached.or_else(|| words.next().cloned());
                    found.push((letter, Some(value.ok_or_else(|| needs(&letter.to_string()))?)));
                    break;
                }
                if !options.flags.contains(letter) {
                    return Err(wrong(format!("invalid option -- '{letter}'")));
                }
                found.push((letter, None));
            }
        } else {
            found.push(('\0', Some(word.clone())));
        }
    }
    Ok(found)
}

impl Letters {
    fn has(&self, letter: char) -> bool {
        self.flags.contains(letter) || self.values.contains(letter)
    }
}

const OPTIONS: Letters = Letters {
    flags: "bcvVthnwW",
    values: "MT",
    long: &[
        Long("counters", 'c'),
        Long("verbose", 'v'),
        Long("version", 'V'),
        Long("test", 't'),
        Long("help", 'h'),
        Long("noflush", 'n'),
        Long("modprobe", 'M'),
        Long("table", 'T'),
        Long("wait", 'w'),
        Long("wait-interval", 'W'),
    ],
};
