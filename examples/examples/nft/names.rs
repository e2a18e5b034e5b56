//! What nft asks the machine for: interfaces, marks, users, groups and services, by name and by number.

use std::path::Path;

use sluicegate_nftables::lang::parse::ParseOptions;
use sluicegate_nftables::netlink::{NetlinkFamily, Options, Socket};
use sluicegate_nftables::{DataType, ListOptions, Name, read};

use crate::arguments::Arguments;

pub(crate) fn open(family: NetlinkFamily) -> Result<Socket, String> {
    Socket::open(family, &Options::default()).map_err(|error| format!("Error: {error}"))
}

/// How listings are to be printed.
pub(crate) fn list_options(arguments: &Arguments) -> Result<ListOptions, String> {
    let mut options =
        read::list_options(&mut open(NetlinkFamily::ROUTE)?).map_err(|error| format!("Error: {error}"))?;
    options.state = !arguments.stateless;
    options.handles = arguments.handles;
    options.numeric_priority = arguments.numeric_priority;
    options.numeric_protocol = arguments.numeric_protocol;
    options.numeric_time = arguments.numeric_time;
    options.numeric_symbols = arguments.numeric_symbols;
    options.utc_offset = if arguments.numeric_time { None } else { Some(utc_offset()) };
    if arguments.users {
        for (file, of) in USERS {
            options
                .symbols
                .extend(users(file).filter_map(|(name, id)| Some(((of, id), Name::new(&name).ok()?))));
        }
    }
    if arguments.services {
        for (name, port) in services() {
            // The first name of a port counts.
            if let Ok(name) = Name::new(&name) {
                options.symbols.entry((DataType::INET_SERVICE, port)).or_insert(name);
            }
        }
    }
    Ok(options)
}

/// Adds the names that may stand in rules.
pub(crate) fn add_names(options: &mut ParseOptions<'_>) {
    for (file, of) in USERS {
        options.symbols.extend(users(file).map(|(name, id)| ((of, name), id)));
    }
    for (name, port) in services() {
        options.symbols.entry((DataType::INET_SERVICE, name)).or_insert(port);
    }
}

const USERS: [(&str, DataType); 2] = [("/etc/passwd", DataType::UID), ("/etc/group", DataType::GID)];

/// Names and numbers of users or groups.
fn users(file: &str) -> impl Iterator<Item = (String, u64)> + use<> {
    let lines: Vec<_> = text(file)
        .lines()
        .filter_map(|line| {
            let mut fields = line.split(':');
            Some((fields.next()?.to_owned(), fields.nth(1)?.parse().ok()?))
        })
        .collect();
    lines.into_iter()
}

/// Names and aliases of services, and their ports.
fn services() -> impl Iterator<Item = (String, u64)> + use<> {
    let mut all = Vec::new();
    for line in text("/etc/services").lines() {
        let mut words = line.split('#').next().unwrap_or_default().split_whitespace();
        let (Some(name), Some(port)) = (words.next(), words.next()) else { continue };
        let Some(port) = port.split('/').next().and_then(|port| port.parse().ok()) else { continue };
        all.push((name.to_owned(), port));
        all.extend(words.map(|alias| (alias.to_owned(), port)));
    }
    all.into_iter()
}

fn text(file: impl AsRef<Path>) -> String {
    String::from_utf8_lossy(&std::fs::read(file).unwrap_or_default()).into_owned()
}

/// Seconds that local time is ahead of UTC: of `TZ` in the form of POSIX (`UTC-2` is two hours ahead); else
/// that of UTC.
fn utc_offset() -> i32 {
    let zone = std::env::var("TZ").unwrap_or_default();
    let digits = zone.trim_start_matches(|c: char| c.is_ascii_alphabetic() || c == ':');
    let (sign, digits) = match digits.strip_prefix('-') {
        Some(digits) => (1, digits),
        None => (-1, digits.trim_start_matches('+')),
    };
    let mut parts = digits.split(':').map(|part| part.parse::<i32>().unwrap_or(0));
    let (hours, minutes) = (parts.next().unwrap_or(0), parts.next().unwrap_or(0));
    sign * (hours * 3600 + minutes * 60)
}
