//! iptables-restore(8).

use std::borrow::Cow;
use std::io::Read as _;

use sluicegate_iptables_save::{
    Action, Counters, Error as TextError, Item, Listing, Rule, Save, Table, encode, normalise,
    quote_if_needed, split,
};
use sluicegate_xtables::legacy::Restore;
use sluicegate_xtables::{BackEnd, ForeignReason};

use super::client::Client;
use super::failure::{self, Asked, Failure, parameter, reason};
use super::line::Line;
use super::{Tool, arguments};
use crate::output::{print, tell};

pub(super) fn run(tool: &Tool, arguments: &[String]) -> Result<(), Failure> {
    let mut how = Restore::default().flush();
    let (mut test, mut verbose, mut waits, mut interval) = (false, false, false, false);
    let (mut only, mut file, mut wait) = (None, None, None);
    let mut found = letters(tool, arguments, &OPTIONS)?.into_iter().peekable();
    while let Some((letter, value)) = found.next() {
        match letter {
            'n' => how.flush = false,
            'c' => how.counters = true,
            't' => test = true,
            'v' => verbose = true,
            'T' => only = value,
            'b' => tell("-b/--binary option is not implemented"),
            'w' | 'W' => {
                let value = match value {
                    None => found.next_if(|(letter, _)| *letter == '\0').and_then(|(_, value)| value),
                    value => value,
                };
                // iptables-nft-restore has nothing to wait for, and does not look at it.
                if tool.back_end == BackEnd::Legacy {
                    interval |= letter == 'W';
                    let read = if letter == 'w' { arguments::seconds } else { arguments::interval };
                    let seconds = value.as_deref().map(read).transpose();
                    let seconds = seconds.map_err(|failure| failure.with("Error occurred at line: 0"))?;
                    if letter == 'w' {
                        waits = true;
                        wait = seconds;
                    }
                }
            }
            'h' => {
                tell(help(tool).trim_end());
                return Ok(());
            }
            'V' => return Ok(print(format!("{} {}\n", tool.name, tool.version()))?),
            '\0' if file.is_some() => {
                return Err(Failure::plain("Unknown arguments found on commandline"));
            }
            '\0' => file = value,
            _ => (),
        }
    }
    if interval && !waits {
        return Err(Failure::plain("Option --wait-interval requires option --wait"));
    }
    let mut bytes = Vec::new();
    match &file {
        None => drop(std::io::stdin().read_to_end(&mut bytes)?),
        Some(file) => {
            let cannot =
                |error: std::io::Error| Failure::plain(format!("Can't open {file}: {}", reason(&error)));
            bytes = std::fs::read(&**file).map_err(cannot)?;
        }
    }
    let mut input = Save::parse_bytes(&bytes).map_err(|error| unreadable(&error, &bytes, tool))?;
    if let Some(only) = &only {
        input.items.retain(|item| !matches!(item, Item::Table(table) if table.name() != only));
    }
    for rule in input.tables_mut().flat_map(Table::rules_mut) {
        if rule.is_for(tool.family) && has_name(rule.text()) {
            resolve(rule, tool)?;
        }
    }
    check_chains(&input, &bytes, how.counters, tool)?;
    check_end(&bytes, tool)?;
    let told = |error: sluicegate_xtables::Error| told(&error, &bytes, tool);
    let client = Client::open(tool.back_end, tool.family, wait).map_err(told)?;
    // It takes about a third of a restore of ten thousand rules, and is all that tells what others lose.
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
    for item in &input.items {
        let table = match item {
            Item::Table(table) => table,
            Item::Text(text) => {
                said.push_str(text);
                continue;
            }
            _ => continue,
        };
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
            tool.tell(&format!("Warning: removes from table `{table}' what others wrote: {foreign}"));
        }
    }
}

/// Returns whether a network of the words may be the name of a host, or a number that of a user or group: most rules
/// are spared a second reading.
fn has_name(words: &str) -> bool {
    const NETWORKS: [&str; 6] = ["-s", "-d", "--source", "--src", "--destination", "--dst"];
    let is_name = |part: &str| {
        part.trim_start_matches('"').starts_with(|c: char| c.is_ascii_alphabetic()) && !part.contains(':')
    };
    let mut before = "";
    let names_host = words.split([' ', '\t']).filter(|word| !word.is_empty()).any(|word| {
        let (option, value) = match word.starts_with("--") {
            true => word.split_once('=').unwrap_or((before, word)),
            false => (before, word),
        };
        before = word;
        NETWORKS.contains(&option) && (value.contains(',') || is_name(value))
    });
    names_host || words.contains("id-owner")
}

/// Writes addresses in the place of the names of hosts, and numbers in that of users and groups: the words are read
/// as those of a command line, so that the text of a comment is not taken for an option.
fn resolve(rule: &mut Rule<'_>, tool: &Tool) -> Result<(), Failure> {
    let line = rule.line();
    let at = |failure: Failure| failure.with(&format!("Error occurred at line: {line}"));
    let of_text = |error: TextError| at(parameter(error.to_string()));
    let mut words = vec!["-A".to_owned(), "X".to_owned()];
    for word in split(rule.text()) {
        words.push(word.map_err(of_text)?.text.into_owned());
    }
    let mut found = arguments::read(&words, tool.family).map_err(at)?;
    if found.table.is_some() || found.wait.is_some() || found.ends.is_some() {
        // These are refused, or read, where the rule is.
        return Ok(());
    }
    if let Some(Counters { packets, bytes }) = found.counters {
        found.words.extend(["-c".to_owned(), packets.to_string(), bytes.to_string()]);
    }
    let quoted = found.words.iter().map(|word| quote_if_needed(word).map(Cow::into_owned));
    let words = quoted.collect::<Result<Vec<_>, _>>().map_err(of_text)?;
    rule.set_text(words.join(" ")).map_err(of_text)
}

/// Input that is not of the form of a save: nothing of it was carried out.
fn unreadable(error: &TextError, input: &[u8], tool: &Tool) -> Failure {
    let Some(number) = error.line() else { return parameter(error.to_string()) };
    match (error, Line::find(input, number)) {
        (TextError::Syntax { .. }, None) => Failure::other(format!("COMMIT expected at line {number}")),
        (TextError::Syntax { .. }, Some(line)) => {
            let reason = error.to_string();
            line.unreadable(tool, &reason).unwrap_or_else(|| line.at(parameter(reason)))
        }
        _ => parameter(format!("{error}\nError occurred at line: {number}")),
    }
}

/// Refuses a last line `COMMIT` without an end, which iptables-legacy-restore takes for a rule.
fn check_end(bytes: &[u8], tool: &Tool) -> Result<(), Failure> {
    let mut lines = bytes.split(|byte| *byte == b'\n');
    if tool.back_end == BackEnd::Nft || lines.next_back() != Some(b"COMMIT") {
        return Ok(());
    }
    let number = lines.count() + 1;
    Err(parameter("Bad argument `COMMIT'").with(&format!("Error occurred at line: {number}")))
}

/// Checks what the tool checks of tables and chains before it looks at a rule.
fn check_chains(input: &Save<'_>, bytes: &[u8], counters: bool, tool: &Tool) -> Result<(), Failure> {
    for table in input.tables() {
        let at = |line| Line::find(bytes, line).ok_or_else(|| Failure::other("no such line"));
        if !TABLES.contains(&table.name()) {
            let line = at(table.line())?;
            let (name, program, number) = (table.name(), &tool.name, table.line());
            return Err(line.at(parameter(match tool.back_end {
                BackEnd::Nft => format!("{program}: line {number} table name '{name}' invalid"),
                BackEnd::Legacy => format!("{program}: unable to initialize table '{name}'"),
            })));
        }
        for chain in table.chains() {
            if counters && chain.policy().is_some() && chain.counters().is_none() {
                return Err(at(chain.line())?.no_counters(chain.name()));
            }
            if let Err(failure) = arguments::restored_name(chain.name(), tool) {
                return Err(at(chain.line())?.at(failure));
            }
        }
        let counted = |rule: &&Rule<'_>| counters && rule.counters().is_some();
        let wrong = |rule: &&Rule<'_>| matches!(rule.action(), Action::Delete | Action::DeleteNumber(_));
        if let Some(rule) = table.rules().filter(counted).find(wrong) {
            return Err(at(rule.line())?.at(parameter("Illegal option `-c' with this command")));
        }
    }
    Ok(())
}

/// Puts an error of the kernel, or of a rule, into the words of the tool.
fn told(error: &sluicegate_xtables::Error, input: &[u8], tool: &Tool) -> Failure {
    let number = error.line();
    let line = number.and_then(|number| Line::find(input, number));
    let given = line.as_ref().and_then(|line| line.given(tool));
    let (command, chain) = given.as_ref().map_or(('A', ""), |given| (given.command, &*given.chain));
    if let (sluicegate_xtables::Error::Rule { .. }, Some(line)) = (error, &line)
        && let Some(failure) = line.refused(tool)
    {
        return failure;
    }
    let mut failure =
        failure::of(error, Asked { back_end: tool.back_end, family: tool.family, command, chain });
    if let Some(number) = number {
        let message = failure.message.trim();
        failure.message = match failure.status {
            failure::PARAMETER => format!("{}\nError occurred at line: {number}", failure.message),
            failure::RESOURCE => format!("\nline {number}: {message}"),
            _ => {
                let message = message.replacen(failure::DMESG, "", 1);
                match (tool.back_end, line.as_ref().and_then(|line| line.policy())) {
                    (BackEnd::Nft, _) => format!("line {number} failed: {message}"),
                    (BackEnd::Legacy, Some((chain, policy))) => {
                        let message = message.trim_end_matches('.');
                        return Failure::whole(format!(
                            "Can't set policy `{policy}' on `{chain}' line {number}: {message}"
                        ));
                    }
                    (BackEnd::Legacy, None) => format!("line {number} failed\n{message}"),
                }
            }
        };
    }
    failure
}

fn help(tool: &Tool) -> String {
    let (letters, wait, family) = match tool.back_end {
        BackEnd::Nft => (" [-T table] [-M command] [-4] [-6]", "", "\t   [ --ipv4 ]\n\t   [ --ipv6 ]\n"),
        BackEnd::Legacy => (" [-w secs] [-W usecs] [-T table] [-M command]", "\t   [ --wait=<seconds>\n", ""),
    };
    format!(
        "Usage: {} [-c] [-v] [-V] [-t] [-h] [-n]{letters} [file]\n\
         \t   [ --counters ]\n\t   [ --verbose ]\n\t   [ --version]\n\t   [ --test ]\n\t   [ --help ]\n\
         \t   [ --noflush ]\n{wait}\t   [ --table=<TABLE> ]\n\t   [ --modprobe=<command> ]\n{family}",
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
    tool: &Tool,
    arguments: &[String],
    options: &Letters,
) -> Result<Vec<(char, Option<String>)>, Failure> {
    let mut found = Vec::new();
    let mut words = arguments.iter();
    let hint = match tool.name.ends_with("-save") {
        true => format!("Look at manual page `{}.8' for more information.", tool.name),
        false => format!("Try `{} -h' for more information.", tool.name),
    };
    let wrong = |text: String| Failure::plain(format!("{}: {text}\n{hint}", tool.called));
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
            } else if options.flags.contains(*letter) && value.is_some() && !"wW".contains(*letter) {
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

const TABLES: [&str; 5] = ["filter", "nat", "mangle", "raw", "security"];
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
