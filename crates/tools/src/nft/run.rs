//! Reads what is to be done, and does it.

use std::cell::RefCell;
use std::io::Read as _;
use std::path::Path;

use sluicegate_nftables::json::Value;
use sluicegate_nftables::lang::parse::{Included, Mistake, ParseOptions, Script};
use sluicegate_nftables::monitor::{Follower, GROUP, Monitor};
use sluicegate_nftables::netlink::{NetlinkFamily, Socket};
use sluicegate_nftables::{ApplyOptions, Command, Error, Failure, Family, Set, SetId, Transaction, read};

use super::arguments::{Action, Arguments, BUILD, HELP, VERSION};
use super::names::{add_names, list_options, open, with_hosts};
use super::{describe, glob, list, monitor, query};

pub(crate) fn run(arguments: &Arguments) -> Result<(), String> {
    let (text, name) = match &arguments.action {
        Action::Help => return print(HELP),
        Action::Version => return print(&format!("{VERSION}\n")),
        Action::ExtendedVersion => {
            return print(&format!("{VERSION}\n{BUILD}"));
        }
        Action::Words(text) => (text.clone(), None),
        Action::File(file) => (contents(file)?, Some(file.clone())),
    };
    let script = script(&text, name.as_deref(), arguments)?;
    let is_query = |command: &&Command| !matches!(command, Command::Operation(_));
    let before = script.commands.iter().take_while(is_query).count();
    let (transaction, queries) = script.split();
    let (before, after) = queries.split_at(before);
    before.iter().try_for_each(|command| answer(command, arguments))?;
    if !transaction.is_empty() {
        apply(&transaction, arguments, |error| located(error, &text, name.as_deref(), arguments))?;
    }
    // nft 1.0.6 lists tables, chains and sets that the same script made, but not its rules.
    after.iter().try_for_each(|command| answer(command, arguments))
}

/// Writes to standard output. Whoever reads it may have gone.
pub(crate) fn print(text: &str) -> Result<(), String> {
    crate::output::print(text).map_err(|error| format!("Error: {error}"))
}

fn contents(file: &str) -> Result<String, String> {
    let failed = |error: std::io::Error| {
        let reason = error.to_string();
        let reason = reason.split(" (os error").next().unwrap_or_default().to_owned();
        format!("Error: Could not open file \"{file}\": {reason}")
    };
    let bytes = if matches!(file, "-" | "/dev/stdin") {
        let mut bytes = Vec::new();
        std::io::stdin().lock().read_to_end(&mut bytes).map_err(failed)?;
        bytes
    } else {
        std::fs::read(file).map_err(failed)?
    };
    String::from_utf8(bytes).map_err(|_| format!("Error: {file}: this is not text in UTF-8"))
}

fn script(text: &str, name: Option<&str>, arguments: &Arguments) -> Result<Script, String> {
    with_options(arguments, |options| {
        if is_json(text, arguments) {
            return Script::from_json(text, options).map_err(|error| {
                let mistakes: Vec<_> =
                    error.mistakes.iter().map(|mistake| format!("Error: {mistake}")).collect();
                mistakes.join("\n")
            });
        }
        Script::parse(text, options).map_err(|mut error| {
            error.mistakes.iter_mut().for_each(|mistake| name_source(mistake, name));
            error.to_string()
        })
    })
}

/// As nft, which reads text where it is no JSON.
fn is_json(text: &str, arguments: &Arguments) -> bool {
    arguments.json && text.trim_start().starts_with('{')
}

/// Names the file that a mistake is in, unless that is an included one.
fn name_source(mistake: &mut Mistake, name: Option<&str>) {
    if mistake.source.is_none() {
        mistake.source = name.map(str::to_owned);
    }
}

/// The error, with the lines of the commands, elements or statements that were refused, if it is about any.
fn located(error: &Error, text: &str, name: Option<&str>, arguments: &Arguments) -> String {
    /// More of them than one reads.
    const MOST: usize = 20;
    let refused: Vec<(usize, Option<&Failure>, String)> = match error {
        Error::Rejected { failures, .. } => {
            let each = failures.iter().filter_map(|of| Some((of.operation?, Some(of), of.to_string())));
            each.take(MOST).collect()
        }
        Error::Statement { operation, .. }
        | Error::Index { operation, .. }
        | Error::Rename { operation, .. } => vec![(*operation, None, error.to_string())],
        _ => Vec::new(),
    };
    let plain = format!("Error: {error}");
    if refused.is_empty() || is_json(text, arguments) {
        return plain;
    }
    let lines = with_options(arguments, |options| {
        let line = |(operation, failure, message): &(usize, Option<&Failure>, String)| {
            let number = format!("operation {}: ", operation + 1);
            let message = message.strip_prefix(&number).unwrap_or(message);
            let element = failure.and_then(|of| of.element);
            let expression = failure.and_then(|of| of.attribute.as_ref()?.expression());
            let mut mistake = match (element, expression) {
                (Some(element), _) => Script::locate_element(text, options, *operation, element, message)?,
                (None, Some((at, _))) => Script::locate_expression(text, options, *operation, at, message)?,
                (None, None) => Script::locate(text, options, *operation, message)?,
            };
            name_source(&mut mistake, name);
            Some(mistake.to_string())
        };
        refused.iter().map(line).collect::<Option<Vec<_>>>().ok_or(plain.clone())
    });
    lines.map_or(plain, |lines| lines.join("\n"))
}

/// Calls a function with what texts may refer to: names of this machine, sets of the kernel, files.
fn with_options<T>(
    arguments: &Arguments,
    call: impl FnOnce(&ParseOptions<'_>) -> Result<T, String>,
) -> Result<T, String> {
    let known = list_options(&Arguments::default())?;
    let mut options = ParseOptions::from(&known);
    add_names(&mut options);
    options.defines.clone_from(&arguments.defines);
    let socket = RefCell::new(open(NetlinkFamily::NETFILTER)?);
    let sets = |id: &SetId| set_in_kernel(&mut socket.borrow_mut(), id);
    options.sets = Some(&sets);
    let include = |path: &str| included(path, arguments);
    options.include = Some(&include);
    call(&options)
}

/// A set as its type and flags are, without its elements.
pub(crate) fn set_in_kernel(socket: &mut Socket, id: &SetId) -> Option<Set> {
    let table = read::table(socket, &id.table).ok()??;
    let set = read::set(socket, id).ok()??;
    let mut ruleset = read::Ruleset::new(vec![table]);
    ruleset.sets.push((set, Vec::new()));
    let mut content = ruleset.content();
    let mut table = content.pop()?;
    table.sets.pop().map(|(set, _)| set)
}

/// The files that `include` asks for: of a path that does not say where, those in the first directory that
/// has any.
fn included(path: &str, arguments: &Arguments) -> Result<Vec<Included>, String> {
    let direct = path.starts_with(['/', '.']);
    let mut directories: Vec<&Path> = arguments.include_paths.iter().map(AsRef::as_ref).collect();
    directories.push(Path::new("/etc"));
    let candidates: Vec<String> = match direct {
        true => vec![path.to_owned()],
        false => {
            directories.iter().map(|directory| directory.join(path).to_string_lossy().into_owned()).collect()
        }
    };
    for candidate in &candidates {
        let files = glob::files(candidate);
        if !files.is_empty() {
            let text = |file: &std::path::PathBuf| {
                let name = file.to_string_lossy().into_owned();
                contents(&name).map(|text| Included { name, text })
            };
            return files.iter().map(text).collect();
        }
    }
    // nft takes a pattern that nothing matches.
    if glob::is_pattern(path) { Ok(Vec::new()) } else { Err("no such file".to_owned()) }
}

fn answer(command: &Command, arguments: &Arguments) -> Result<(), String> {
    match command {
        Command::List(subject) => list::list(subject, arguments),
        Command::Reset(subject) => query::reset(subject, arguments),
        Command::Get(elements) => query::get(elements, arguments),
        Command::Monitor(filter) => monitor::monitor(*filter, arguments),
        Command::Describe(description) => print(&describe::describe(description)),
        other => Err(format!("Error: `{other}` is not supported here")),
    }
}

fn apply(
    transaction: &Transaction,
    arguments: &Arguments,
    tell: impl FnOnce(&Error) -> String,
) -> Result<(), String> {
    let mut socket = open(NetlinkFamily::NETFILTER)?;
    let mut echo = None;
    if arguments.echo && !arguments.check {
        let mut listener = open(NetlinkFamily::NETFILTER)?;
        listener.join(GROUP).map_err(|error| format!("Error: {error}"))?;
        let follower =
            Follower::read(&mut socket, Family::UNSPEC).map_err(|error| format!("Error: {error}"))?;
        echo = Some((Monitor::with_transport(listener), follower));
    }
    let mut options = ApplyOptions::default();
    options.check = arguments.check;
    let applied = transaction.apply_with(&mut socket, options).map_err(|error| tell(&error))?;
    let Some((mut monitor, mut follower)) = echo else { return Ok(()) };
    let options = list_options(arguments)?;
    while follower.generation() != applied.generation {
        let events = monitor.events().map_err(|error| format!("Error: {error}"))?;
        if events.is_empty() {
            break;
        }
        for event in events {
            let commit = follower.apply(event).map_err(|error| format!("Error: {error}"))?;
            let Some(commit) = commit.filter(|commit| commit.generation.id == applied.generation) else {
                continue;
            };
            match arguments.json {
                true => {
                    let list = Value::Object(vec![("nftables".into(), commit.to_json(&options).into())]);
                    print(&format!("{}\n", list))?;
                }
                false => {
                    let text = format!("{}\n", commit.lines(&options).join("\n"));
                    print(&with_hosts(text, arguments))?;
                }
            }
        }
    }
    Ok(())
}
