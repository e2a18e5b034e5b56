//! Takes the command line of iptables-legacy and ip6tables-legacy, of iptables-save and of iptables-restore,
//! without those tools.
//!
//! ```sh
//! cargo run -q -p examples --example iptables-legacy -- -t nat -A PREROUTING -p tcp --dport 80 -j REDIRECT --to-ports 8080
//! cargo run -q -p examples --example iptables-legacy -- -t nat -S
//! cargo run -q -p examples --example iptables-legacy -- save -c > rules
//! cargo run -q -p examples --example iptables-legacy -- restore --noflush < rules
//! ```
//!
//! Commands are `-A -I -D -R -C -N -X -E -P -F -Z -S`; `-t TABLE`, `-w [SECONDS]`, `-4`, `-6` and
//! `-c PACKETS BYTES` are options of all. `-L` is not one: it prints rules in other words than those that put
//! them there.

use std::io::Read as _;
use std::process::ExitCode;
use std::time::Duration;

use examples::{print, tell};
use sluicegate_iptables_save::{Changes, Family, Save, Table, decode, quote_if_needed};
use sluicegate_xtables::Error as TableError;
use sluicegate_xtables::legacy::{Client, Lock, Restore};

type Error = Box<dyn std::error::Error>;

/// The tables in the order in which iptables-save prints them.
const TABLES: [&str; 5] = ["mangle", "raw", "security", "nat", "filter"];

fn main() -> ExitCode {
    let arguments = std::env::args_os().skip(1);
    let arguments: Vec<_> = arguments.map(|word| decode(word.as_encoded_bytes()).into_owned()).collect();
    match run(arguments) {
        Ok(found) => ExitCode::from(u8::from(!found)),
        Err(error) => {
            tell(format_args!("iptables-legacy: {error}"));
            let locked = error.downcast_ref::<TableError>().is_some_and(TableError::is_locked);
            ExitCode::from(if locked { 4 } else { 1 })
        }
    }
}

const USAGE: &str = "\
usage: iptables-legacy [-t TABLE] [-w [SECONDS]] [-4 | -6] COMMAND
       iptables-legacy [-t TABLE] save [--counters]
       iptables-legacy restore [--noflush] [--counters] < rules

Commands are -A -I -D -R -C -N -X -E -P -F -Z -S, as iptables-legacy has them.
";

/// Options that are not of a rule.
struct Options {
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
    let client = Client::open(options.family)?.with_lock(Lock { wait: options.wait, ..Lock::default() });
    let words: Vec<_> = arguments.iter().map(String::as_str).collect();
    let table = options.table.as_deref();
    match words[..] {
        ["save", ref rest @ ..] => {
            let counters = rest.iter().any(|word| matches!(*word, "-c" | "--counters"));
            let names = TABLES.into_iter().filter(|name| table.is_none_or(|table| table == *name));
            for name in names {
                match client.list(name, counters) {
                    Ok(table) => print(table.to_string())?,
                    Err(error) if error.is_not_found() && table.is_none() => (),
                    Err(error) => return Err(error.into()),
                }
            }
        }
        ["restore", ref rest @ ..] => {
            let has = |names: [&str; 2]| rest.iter().any(|word| names.contains(word));
            let how = Restore { flush: !has(["-n", "--noflush"]), counters: has(["-c", "--counters"]) };
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
                "expected a command: -A, -I, -D, -R, -C, -N, -X, -E, -P, -F, -Z, -S, save, restore".into()
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
        let mut options = Self { table: None, family: Family::Ipv4, wait: Duration::ZERO };
        let mut rest = Vec::new();
        let mut words = std::mem::take(arguments).into_iter().peekable();
        while let Some(word) = words.next() {
            match word.as_str() {
                "-t" | "--table" => options.table = Some(words.next().ok_or("-t takes the name of a table")?),
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
