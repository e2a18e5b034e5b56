//! `-R`: the commands of a file, such as `-L -o save` prints.
//!
//! All lines are read before the first is done, as conntrack(8) does it: a mistake in the last leaves nothing
//! behind. They are then done one after the other, until one fails; how many flows a line has made or changed is
//! not said.

use std::io::Read as _;
use std::process::ExitCode;

use sluicegate_conntrack::netlink::text::decode;
use sluicegate_conntrack::{Client, Verb};

use super::arguments::{Arguments, Command, Failure, usage};
use super::{add, changing, create, operation, perform, show};

pub(crate) fn load(file: &str) -> Result<ExitCode, Failure> {
    let mut bytes = Vec::new();
    let read = match file {
        "-" => std::io::stdin().lock().read_to_end(&mut bytes),
        path => std::fs::File::open(path).and_then(|mut file| file.read_to_end(&mut bytes)),
    };
    read.map_err(|_| Failure::Usage(format!("Failed to open file {file} for reading")))?;
    let text = decode(&bytes);
    let mut lines = Vec::new();
    for line in text.lines() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let arguments = Arguments::parse(words(line)?.into_iter())?;
        let name = match arguments.command {
            Command::Add | Command::Create | Command::Update | Command::Delete | Command::Flush(_) => None,
            Command::List(_) | Command::ListExpectations => Some("-L"),
            Command::Get | Command::GetExpectation => Some("-G"),
            Command::DeleteExpectation => None,
            Command::Events(_) => Some("-E"),
            Command::Count(_) => Some("-C"),
            Command::Statistics(_) => Some("-S"),
            Command::Load(_) => Some("-R"),
            Command::Version => Some("-V"),
            Command::Help => Some("unknown"),
        };
        if let Some(name) = name {
            return usage(format!("Cannot use command `{name}' with --load-file"));
        }
        lines.push(arguments);
    }
    let mut client = Client::open().map_err(|error| operation(&error))?;
    lines.iter().try_for_each(|line| done(line, &mut client))?;
    Ok(ExitCode::SUCCESS)
}

fn done(line: &Arguments, client: &mut Client) -> Result<(), Failure> {
    match line.command {
        Command::Add => add(line, client).map(drop),
        Command::Create => create(line, client),
        Command::Update if !line.nothing_labelled => {
            let flows = changing::update(line, client).map_err(|error| operation(&error))?;
            show(line, Verb::Listed, flows.into_iter().map(Ok)).map(drop)
        }
        Command::Delete if !line.nothing_labelled && !line.nothing_matches => {
            let flows = client.delete_matching(&line.filter).map_err(|error| operation(&error))?;
            show(line, Verb::Deleted, flows.into_iter().map(Ok)).map(drop)
        }
        _ => perform(line, client).map(drop),
    }
}

/// The words of a line; one in double quotes may have blanks.
fn words(line: &str) -> Result<Vec<String>, Failure> {
    let mut words = Vec::new();
    let mut rest = line.trim_start();
    while !rest.is_empty() {
        let (word, after) = match rest.strip_prefix('"') {
            Some(quoted) => match quoted.split_once('"') {
                Some(parts) => parts,
                None => return usage(format!("expected a closing quotation mark behind `{rest}'")),
            },
            None => rest.split_at(rest.find(char::is_whitespace).unwrap_or(rest.len())),
        };
        words.push(word.to_owned());
        rest = after.trim_start();
    }
    Ok(words)
}
