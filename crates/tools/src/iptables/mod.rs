//! Takes the command line of iptables and ip6tables, of iptables-save and of iptables-restore, without those
//! tools.
//!
//! Commands are `-A -I -D -R -C -N -X -E -P -F -Z -S -L`; `-t TABLE`, `-w [SECONDS]`, `-4`, `-6`, `--backend nft`
//! (the default) or `legacy`, and `-c PACKETS BYTES` are options of all. `-L` takes `-v`, `-x`, `--line-numbers`
//! and `-n`, which is always meant: names of hosts and services are not looked up.

use std::ffi::OsString;
use std::io::Read as _;
use std::process::ExitCode;
use std::time::Duration;

use crate::output::{print, tell};
use sluicegate_iptables_save::{Changes, Family, Listing, Save, Table, decode, encode, quote_if_needed};
use sluicegate_xtables::Error as TableError;
use sluicegate_xtables::legacy::{self, Lock, Restore};
use sluicegate_xtables::nft;

type Error = Box<dyn std::error::Error>;

/// The tables in the order in which iptables-legacy-save prints them.
const TABLES: [&str; 5] = ["mangle", "raw", "security", "nat", "filter"];

/// Runs the tool of this name, such as `ip6tables-legacy-save`.
pub(crate) fn main(name: &str, arguments: &[OsString]) -> ExitCode {
    let arguments = arguments.iter().map(|word| decode(word.as_encoded_bytes()).into_owned());
    let arguments = as_named(name).into_iter().map(str::to_owned).chain(arguments).collect();
    match run(arguments) {
        Ok(found) => ExitCode::from(u8::from(!found)),
        Err(error) => {
            tell(format_args!("iptables: {error}"));
            let locked = error.downcast_ref::<TableError>().is_some_and(TableError::is_locked);
            ExitCode::from(if locked { 4 } else { 1 })
        }
    }
}

const USAGE: &str = "\
usage: iptables [--backend nft | legacy] [-t TABLE] [-w [SECONDS]] [-4 | -6] COMMAND
       iptables [--backend nft | legacy] [-t TABLE] save [--counters]
       iptables [--backend nft | legacy] restore [--noflush] [--counters] < rules

Commands are -A -I -D -R -C -N -X -E -P -F -Z -S -L, as iptables has them; -L takes -n (always meant), -v, -x
and --line-numbers.
";

/// Returns the arguments that the name of a tool stands for.
fn as_named(name: &str) -> Vec<&'static str> {
    let Some(rest) = name.strip_prefix("ip6tables").or(name.strip_prefix("iptables")) else {
        return Vec::new();
    };
    let mut arguments = Vec::new();
    if name.starts_with("ip6") {
        arguments.push("-6");
    }
    if rest.starts_with("-legacy") {
        arguments.extend(["--backend", "legacy"]);
    }
    match rest.rsplit('-').next() {
        Some("save") => arguments.push("save"),
        Some("restore") => arguments.push("restore"),
        _ => (),
    }
    arguments
}

/// A client of either back end.
enum Client {
    Nft(nft::Client),
    Legacy(legacy::Client),
}

impl Client {
    fn open(options: &Options) -> Result<Self, TableError> {
        if options.legacy {
            let lock = Lock::default().wait(options.wait);
            return Ok(Self::Legacy(legacy::Client::open(options.family)?.with_lock(lock)));
        }
        nft::Client::open(options.family).map(Self::Nft)
    }

    /// Returns the names of the tables to save, in the order of the tool.
    fn tables(&self) -> Result<Vec<&'static str>, TableError> {
        match self {
            Self::Nft(client) => client.tables(),
            Self::Legacy(_) => Ok(TABLES.to_vec()),
        }
    }

    fn list(&self, table: &str, counters: bool) -> Result<Table<'static>, TableError> {
        match self {
            Self::Nft(client) => client.list(table, counters),
            Self::Legacy(client) => client.list(table, counters),
        }
    }

    fn restore(&self, input: &Save<'_>, how: Restore) -> Result<(), TableError> {
        match self {
            Self::Nft(client) => client.restore(input, how),
            Self::Legacy(client) => client.restore(input, how),
        }
    }

    fn apply(&self, changes: &Changes<'_>) -> Result<(), TableError> {
        self.restore(changes.as_save(), Restore::default())
    }

    fn check(&self, table: &str, chain: &str, words: &str) -> Result<bool, TableError> {
        match self {
            Self::Nft(client) => client.check(table, chain, words),
            Self::Legacy(client) => client.check(table, chain, words),
        }
    }
}

/// Options that are not of a rule.
struct Options {
    legacy: bool,
    table: Option<String>,
    family: Family,
    wait: Duration,
}

/// Runs a command line; false if `-C` finds no rule.
fn run(mut arguments: Vec<String>) -> Result<bool, Error> {
    if matches!(arguments.first().map(String::as_str), Some("--help" | "-h")) {
        print(USAGE)?;
        return Ok(true);
    }
    let options = Options::take(&mut arguments)?;
    let client = Client::open(&options)?;
    let words: Vec<_> = arguments.iter().map(String::as_str).collect();
    let table = options.table.as_deref();
    if let Some((listing, place)) = listing(&words, options.family)? {
        print_listing(&client.list(table.unwrap_or("filter"), true)?, listing, &place)?;
        return Ok(true);
    }
    match words[..] {
        ["save", ref rest @ ..] => {
            let counters = rest.iter().any(|word| matches!(*word, "-c" | "--counters"));
            let names = client.tables()?.into_iter();
            for name in names.filter(|name| table.is_none_or(|table| table == *name)) {
                match client.list(name, counters) {
                    Ok(table) => print(table.to_string())?,
                    Err(TableError::Incompatible { table, .. }) => {
                        print(format!("# Table `{table}' is incompatible, use 'nft' tool.\n"))?;
                    }
                    Err(error) if error.is_not_found() && table.is_none() => (),
                    Err(error) => return Err(error.into()),
                }
            }
        }
        ["restore", ref rest @ ..] => {
            let has = |names: [&str; 2]| rest.iter().any(|word| names.contains(word));
            let mut how = Restore::default();
            how.flush = !has(["-n", "--noflush"]);
            how.counters = has(["-c", "--counters"]);
            let mut input = Vec::new();
            std::io::stdin().read_to_end(&mut input)?;
            client.restore(&Save::parse_bytes(&input)?, how)?;
        }
        ["-S" | "--list-rules", ref rest @ ..] => {
            let listed = client.list(table.unwrap_or("filter"), false)?;
            print_rules(&listed, rest.first().copied())?;
        }
        ["-C" | "--check", chain, ..] => {
            let rule = line(&arguments[2..])?;
            return Ok(client.check(table.unwrap_or("filter"), chain, &rule)?);
        }
        [] => {
            return Err(
                "expected a command: -A, -I, -D, -R, -C, -N, -X, -E, -P, -F, -Z, -S, -L, save, restore"
                    .into(),
            );
        }
        _ => {
            let table = table.unwrap_or("filter");
            let input = format!("*{table}\n{}\nCOMMIT\n", line(&arguments)?);
            client.apply(&Changes::from_save(Save::parse(&input)?))?;
        }
    }
    Ok(true)
}

impl Options {
    /// Takes the options out of the arguments.
    fn take(arguments: &mut Vec<String>) -> Result<Self, Error> {
        let mut options = Self { legacy: false, table: None, family: Family::Ipv4, wait: Duration::ZERO };
        let mut rest = Vec::new();
        let mut words = std::mem::take(arguments).into_iter().peekable();
        while let Some(word) = words.next() {
            match word.as_str() {
                "-t" | "--table" => options.table = Some(words.next().ok_or("-t takes the name of a table")?),
                "--backend" => {
                    options.legacy = match words.next().as_deref() {
                        Some("nft") => false,
                        Some("legacy") => true,
                        _ => return Err("--backend takes nft or legacy".into()),
                    };
                }
                "-4" | "--ipv4" => options.family = Family::Ipv4,
                "-6" | "--ipv6" => options.family = Family::Ipv6,
                "-w" | "--wait" => {
                    let seconds = words.next_if(|word| word.parse::<u64>().is_ok());
                    let seconds = seconds.and_then(|word| word.parse().ok());
                    options.wait = Duration::from_secs(seconds.unwrap_or(u64::from(u32::MAX)));
                }
                _ => rest.push(word),
            }
        }
        *arguments = rest;
        Ok(options)
    }
}

/// Returns arguments as a line, each a word of its own.
fn line(arguments: &[String]) -> Result<String, Error> {
    let words = arguments.iter().map(|word| quote_if_needed(word).map(std::borrow::Cow::into_owned));
    Ok(words.collect::<Result<Vec<_>, _>>()?.join(" "))
}

/// Reads `-L` with its options, which may be one word, as in `-nvL`. Returns how to list, and the words that say
/// what; `None` for another command.
fn listing<'a>(words: &[&'a str], family: Family) -> Result<Option<(Listing, Vec<&'a str>)>, Error> {
    // `--line-numbers` and the like may stand before the command; the words of a rule may be anything.
    let mut before = words.iter().take_while(|word| word.starts_with("--") || letters(word).is_some());
    if !before.any(|word| *word == "--list" || letters(word).is_some_and(|rest| rest.contains('L'))) {
        return Ok(None);
    }
    let mut listing = Listing::new(family);
    let mut place = Vec::new();
    for word in words {
        match (*word, letters(word)) {
            (_, Some(letters)) => {
                listing.verbose |= letters.contains('v');
                listing.exact |= letters.contains('x');
            }
            ("--verbose", _) => listing.verbose = true,
            ("--exact", _) => listing.exact = true,
            ("--line-numbers" | "--line-number", _) => listing.line_numbers = true,
            ("--list" | "--numeric", _) => (),
            (option, _) if option.starts_with('-') => return Err(format!("-L does not take {option}").into()),
            (word, _) => place.push(word),
        }
    }
    Ok(Some((listing, place)))
}

/// Returns the letters of a word that has options of `-L` alone.
fn letters(word: &str) -> Option<&str> {
    word.strip_prefix('-').filter(|letters| letters.chars().all(|letter| "Lnvx".contains(letter)))
}

/// Prints all chains, one, or one rule of one.
fn print_listing(table: &Table<'_>, listing: Listing, place: &[&str]) -> Result<(), Error> {
    let no_chain = |chain| format!("there is no chain {chain}");
    let text = match *place {
        [] => listing.table(table)?,
        [chain] => listing.chain(table, chain)?.ok_or_else(|| no_chain(chain))?,
        [chain, _] if table.chain(chain).is_none() => return Err(no_chain(chain).into()),
        [chain, number] => match number.parse() {
            Ok(number @ 1..) => listing.rule(table, chain, number)?,
            _ => return Err(format!("expected the number of a rule, found {number}").into()),
        },
        _ => return Err("-L takes a chain and the number of a rule".into()),
    };
    Ok(print(encode(&text))?)
}

/// Prints chains and rules as the commands that make them.
fn print_rules(table: &Table<'_>, only: Option<&str>) -> Result<(), Error> {
    let wanted = |chain: &str| only.is_none_or(|only| only == chain);
    if let Some(only) = only.filter(|only| table.chain(only).is_none()) {
        return Err(format!("there is no chain {only}").into());
    }
    for chain in table.chains().filter(|chain| wanted(chain.name())) {
        match chain.policy() {
            Some(policy) => print(format!("-P {} {policy}\n", chain.name()))?,
            None => print(format!("-N {}\n", chain.name()))?,
        }
    }
    for rule in table.rules().filter(|rule| wanted(rule.chain())) {
        let text = rule.to_string();
        print(format!("{}\n", decode(text.trim_end().as_bytes())))?;
    }
    Ok(())
}
