//! Reads what is to be done, and does it.

use std::cell::RefCell;
use std::ffi::OsStr;
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use sluicegate_nftables::json::Value;
use sluicegate_nftables::lang::parse::{Included, ParseOptions, Script};
use sluicegate_nftables::monitor::{Event, Follower, GROUP, Monitor};
use sluicegate_nftables::netlink::text::{decode, encode, is_utf8};
use sluicegate_nftables::netlink::{Errno, NetlinkFamily, Socket};
use sluicegate_nftables::{
    ApplyOptions, Command, Error, Family, ListOptions, Object, Operation, Set, SetFlags, SetId, Transaction,
    read,
};

use super::arguments::{Action, Arguments, BUILD, HELP, VERSION};
use super::error::CommandError;
use super::names::{add_names, list_options, open, with_hosts};
use super::report::{self, Fault, Part, Refusal};
use super::{debug, describe, echo, glob, interactive, list, monitor, near, optimize, query};

pub(crate) fn run(arguments: &Arguments) -> Result<(), CommandError> {
    match &arguments.action {
        Action::Help => print(HELP),
        Action::Version => print(&format!("{VERSION}\n")),
        Action::ExtendedVersion => print(&format!("{VERSION}\n{BUILD}")),
        Action::Words(text) => execute(text, None, arguments),
        Action::Interactive => interactive::interactive(arguments),
        Action::File(file) => {
            let name = if file == "-" { "/dev/stdin" } else { file };
            execute(&contents(file)?, Some(name), arguments)
        }
    }
}

/// Does what a text says, which has a name where it is a file.
pub(crate) fn execute(text: &str, name: Option<&str>, arguments: &Arguments) -> Result<(), CommandError> {
    let mut script = script(text, name, arguments)?;
    // Which command of the text each one is.
    let mut origins: Vec<usize> = (0..script.commands.len()).collect();
    if arguments.optimize && !is_json(text, arguments) {
        let places = with_options(arguments, None, |options| Ok(Script::places(text, options)))?;
        let merged;
        (merged, origins) = optimize::merge(&mut script.commands, &places);
        let rules: Vec<_> =
            merged.iter().map(|merged| merged.rule.body_with(&ListOptions::default()).to_string()).collect();
        crate::output::tell_text(&optimize::report(&merged, &places, name));
        print(&rules.concat())?;
    }
    let is_operation = |command: &Command| matches!(command, Command::Operation(_));
    let operations: Vec<usize> = script
        .commands
        .iter()
        .zip(&origins)
        .filter(|(command, _)| is_operation(command))
        .map(|(_, origin)| *origin)
        .collect();
    let is_query = |command: &&Command| !is_operation(command);
    let both = script.commands.iter().zip(&origins);
    let mut queries: Vec<usize> = both.filter(|(command, _)| is_query(command)).map(|(_, at)| *at).collect();
    let before = script.commands.iter().take_while(is_query).count();
    let (transaction, commands) = script.split();
    let after = queries.split_off(before);
    let (first, rest) = commands.split_at(before);
    let place = |at: usize, command: &Command, fault| {
        let object = match command {
            Command::List(subject) | Command::Reset(subject) => subject.to_string(),
            Command::Get(elements) => elements.to_string(),
            _ => String::new(),
        };
        located_query(fault, at, &object, text, name, arguments)
    };
    let ask = |at: &[usize], commands: &[Command]| {
        at.iter().zip(commands).try_for_each(|(at, command)| {
            answer(command, arguments).map_err(|fault| place(*at, command, fault))
        })
    };
    ask(&queries, first)?;
    let echoes_document = arguments.echo && is_json(text, arguments);
    if !transaction.is_empty() {
        let tell = |error: &Error| located(error, &transaction, &operations, text, name, arguments);
        apply(&transaction, arguments, echoes_document.then_some(text), tell)?;
    } else if echoes_document {
        print_document(text, &[])?;
    }
    // nft 1.0.6 lists tables, chains and sets that the same script made, but not its rules.
    ask(&after, rest)
}

/// Writes to standard output. Whoever reads it may have gone.
pub(crate) fn print(text: &str) -> Result<(), CommandError> {
    crate::output::print(encode(text)).map_err(CommandError::cause)
}

/// Writes a line of JSON to standard output, if its strings are text: JSON has no other bytes.
pub(crate) fn print_json(value: &Value) -> Result<(), CommandError> {
    match value.string_of_bytes() {
        None => print(&format!("{value}\n")),
        Some(text) => Err(CommandError::NotJson { text: text.to_owned() }),
    }
}

fn contents(file: &str) -> Result<String, CommandError> {
    let failed = |error: std::io::Error| {
        let reason = error.to_string();
        let reason = reason.split(" (os error").next().unwrap_or_default().to_owned();
        CommandError::Open { file: file.to_owned(), reason }
    };
    let bytes = if matches!(file, "-" | "/dev/stdin") {
        let mut bytes = Vec::new();
        std::io::stdin().lock().read_to_end(&mut bytes).map_err(failed)?;
        bytes
    } else {
        std::fs::read(OsStr::from_bytes(&encode(file))).map_err(failed)?
    };
    Ok(decode(&bytes).into_owned())
}

fn script(text: &str, name: Option<&str>, arguments: &Arguments) -> Result<Script, CommandError> {
    let missing = RefCell::new(Vec::new());
    with_options(arguments, Some(&missing), |options| {
        if is_json(text, arguments) {
            if !is_utf8(text) {
                return Err(CommandError::NotText { name: name.unwrap_or("-").to_owned() });
            }
            return Script::from_json(text, options).map_err(|error| {
                let mistakes: Vec<_> =
                    error.mistakes.iter().map(|mistake| report::internal(&mistake.to_string())).collect();
                CommandError::Script(mistakes.join("\n"))
            });
        }
        Script::parse(text, options).map_err(|mut error| {
            let missing = missing.borrow();
            for mistake in &mut error.mistakes {
                // A set whose type is not known is one that does not exist.
                let of_set = missing.iter().find(|id: &&SetId| {
                    let mut narrowed = mistake.clone();
                    report::narrow(&mut narrowed, &Part::Name(id.name.to_string()));
                    mistake.is_unknown_set && narrowed.width == id.name.to_string().chars().count()
                });
                if let Some(id) = of_set {
                    mistake.message =
                        format!("{}{}", Errno::ENOENT.description(), near::meant(&format!("set {id}")));
                    mistake.help = None;
                    let table = id.table.name.to_string();
                    let part = match missing_table(id, arguments) {
                        true => Part::Table(table),
                        false => Part::Name(id.name.to_string()),
                    };
                    report::narrow(mistake, &part);
                }
            }
            CommandError::Script(report::mistakes(&error, name))
        })
    })
}

/// As nft, which reads text where it is no JSON.
fn is_json(text: &str, arguments: &Arguments) -> bool {
    arguments.json && text.trim_start().starts_with('{')
}

/// The error, with the lines of the commands, elements or statements that were refused, if it is about any.
fn located(
    error: &Error,
    transaction: &Transaction,
    operations: &[usize],
    text: &str,
    name: Option<&str>,
    arguments: &Arguments,
) -> CommandError {
    let has_intervals = |operation: &Operation| match operation {
        Operation::Add(Object::Elements(elements)) => {
            let added = transaction.operations().iter().find_map(|operation| match operation {
                Operation::Add(Object::Set(set)) | Operation::Create(Object::Set(set)) => {
                    Some(set).filter(|set| set.id == elements.set)
                }
                _ => None,
            });
            let set = added.cloned().or_else(|| {
                Some(Box::new(set_in_kernel(&mut open(NetlinkFamily::NETFILTER).ok()?, &elements.set)?))
            });
            set.is_some_and(|set| set.flags.contains(SetFlags::INTERVAL))
        }
        _ => false,
    };
    let refusals = Refusal::all(error, transaction, &has_intervals);
    if refusals.is_empty() {
        return CommandError::Cause(error.to_string().into());
    }
    let meaning = |refusal: &Refusal| refusal.meaning.as_ref().map(|meaning| format!("\n({meaning})"));
    let plain = |refusal: &Refusal| {
        let error = report::internal(&refusal.message);
        error + &meaning(refusal).unwrap_or_default()
    };
    if is_json(text, arguments) {
        return CommandError::Script(refusals.iter().map(plain).collect::<Vec<_>>().join("\n"));
    }
    let lines = with_options(arguments, None, |options| {
        let line = |refusal: &Refusal| {
            let (operation, message) = (refusal.operation, &refusal.message);
            let found = match refusal.part {
                // A rule that was made of several: the first of them.
                _ if arguments.optimize => {
                    let command = operations.get(operation).copied().unwrap_or(operation);
                    Script::locate_command(text, options, command, message)
                }
                Part::Element(at) => Script::locate_element(text, options, operation, at, message),
                Part::Expression(at, _) => Script::locate_expression(text, options, operation, at, message),
                _ => Script::locate(text, options, operation, message),
            };
            let Some(mut found) = found else { return plain(refusal) };
            report::narrow(&mut found, &refusal.part);
            report::mistake(&found, name) + &meaning(refusal).unwrap_or_default()
        };
        Ok(refusals.iter().map(line).collect::<Vec<_>>())
    });
    lines.map_or_else(|failure| failure, |lines| CommandError::Script(lines.join("\n")))
}

/// The error of a query, with its place.
fn located_query(
    fault: Fault,
    command: usize,
    object: &str,
    text: &str,
    name: Option<&str>,
    arguments: &Arguments,
) -> CommandError {
    let (message, part) = match fault {
        Fault::Failed(failure) => return failure,
        Fault::Missing(name) => {
            (format!("{}{}", Errno::ENOENT.description(), near::meant(object)), Part::Name(name))
        }
        Fault::Refused(errno) => (format!("Could not process rule: {}", errno.description()), Part::Whole),
    };
    if is_json(text, arguments) {
        return CommandError::Script(report::internal(&message));
    }
    let found =
        with_options(arguments, None, |options| Ok(Script::locate_command(text, options, command, &message)));
    CommandError::Script(match found {
        Ok(Some(mut found)) => {
            report::narrow(&mut found, &part);
            report::mistake(&found, name)
        }
        _ => report::internal(&message),
    })
}

fn missing_table(id: &SetId, arguments: &Arguments) -> bool {
    let _ = arguments;
    open(NetlinkFamily::NETFILTER)
        .is_ok_and(|mut socket| matches!(read::table(&mut socket, &id.table), Ok(None)))
}

/// Calls a function with what texts may refer to: names of this machine, sets of the kernel, files.
/// Sets that the kernel does not have are noted.
fn with_options<T>(
    arguments: &Arguments,
    missing: Option<&RefCell<Vec<SetId>>>,
    call: impl FnOnce(&ParseOptions<'_>) -> Result<T, CommandError>,
) -> Result<T, CommandError> {
    let known = list_options(&Arguments::default())?;
    let mut options = ParseOptions::from(&known);
    add_names(&mut options);
    options.defines.clone_from(&arguments.defines);
    let socket = RefCell::new(open(NetlinkFamily::NETFILTER)?);
    let sets = |id: &SetId| {
        let found = set_in_kernel(&mut socket.borrow_mut(), id);
        if let (None, Some(missing)) = (&found, missing) {
            missing.borrow_mut().push(id.clone());
        }
        found
    };
    options.sets = Some(&sets);
    let include = |path: &str| included(path, arguments).map_err(Box::<dyn std::error::Error>::from);
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
fn included(path: &str, arguments: &Arguments) -> Result<Vec<Included>, CommandError> {
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
    if glob::is_pattern(path) { Ok(Vec::new()) } else { Err(CommandError::NoFile) }
}

fn answer(command: &Command, arguments: &Arguments) -> Result<(), Fault> {
    match command {
        Command::List(subject) => list::list(subject, arguments),
        Command::Reset(subject) => query::reset(subject, arguments),
        Command::Get(elements) => query::get(elements, arguments),
        Command::Monitor(filter) => Ok(monitor::monitor(*filter, arguments)?),
        Command::Describe(description) => Ok(print(&describe::describe(description))?),
        other => Err(CommandError::Unsupported { command: other.to_string() }.into()),
    }
}

/// Applies a transaction; echoes what it adds, or the document that it was written as.
fn apply(
    transaction: &Transaction,
    arguments: &Arguments,
    document: Option<&str>,
    tell: impl FnOnce(&Error) -> CommandError,
) -> Result<(), CommandError> {
    let mut socket = open(NetlinkFamily::NETFILTER)?;
    if arguments.debug_netlink {
        print(&debug::sent(transaction)?)?;
    }
    let mut options = ApplyOptions::default();
    options.check = arguments.check;
    if let Some(document) = document {
        options.echo = !arguments.check;
        let applied = transaction.apply_with(&mut socket, options).map_err(|error| tell(&error))?;
        return print_document(document, &applied.events);
    }
    let mut echo = None;
    if arguments.echo && !arguments.check {
        let mut listener = open(NetlinkFamily::NETFILTER)?;
        listener.join(GROUP).map_err(CommandError::cause)?;
        let follower = Follower::read(&mut socket, Family::UNSPEC).map_err(CommandError::cause)?;
        echo = Some((Monitor::with_transport(listener), follower));
    }
    let applied = transaction.apply_with(&mut socket, options).map_err(|error| tell(&error))?;
    let Some((mut monitor, mut follower)) = echo else { return Ok(()) };
    let options = list_options(arguments)?;
    while follower.generation() != applied.generation {
        let events = monitor.events().map_err(CommandError::cause)?;
        if events.is_empty() {
            break;
        }
        for event in events {
            let commit = follower.apply(event).map_err(CommandError::cause)?;
            let Some(commit) = commit.filter(|commit| commit.generation.id == applied.generation) else {
                continue;
            };
            if arguments.json {
                let list = commit.echo_json(transaction, &options);
                if !list.is_empty() {
                    let list = Value::Object(vec![("nftables".into(), list.into())]);
                    print_json(&list)?;
                }
                continue;
            }
            for line in commit.echo_lines(transaction, &options) {
                print(&with_hosts(format!("{line}\n"), arguments))?;
            }
        }
    }
    Ok(())
}

fn print_document(document: &str, events: &[Event]) -> Result<(), CommandError> {
    let document = echo::filled_in(document, events).map_err(CommandError::cause)?;
    print(&document.to_string())
}
