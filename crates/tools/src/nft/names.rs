//! What nft asks the machine for: interfaces, marks, users, groups and services, by name and by number.

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, ToSocketAddrs};
use std::path::Path;

use sluicegate_nftables::lang::parse::ParseOptions;
use sluicegate_nftables::netlink::{NetlinkFamily, Options, Socket};
use sluicegate_nftables::{DataType, ListOptions, Name, read};

use super::arguments::Arguments;
use super::error::CommandError;
use super::zone;

pub(crate) fn open(family: NetlinkFamily) -> Result<Socket, CommandError> {
    Socket::open(family, &Options::default()).map_err(CommandError::cause)
}

/// How listings are to be printed.
pub(crate) fn list_options(arguments: &Arguments) -> Result<ListOptions, CommandError> {
    let mut options = read::list_options(&mut open(NetlinkFamily::ROUTE)?).map_err(CommandError::cause)?;
    options.state = !arguments.stateless;
    options.handles = arguments.handles;
    options.numeric_priority = arguments.numeric_priority;
    options.numeric_protocol = arguments.numeric_protocol;
    options.numeric_time = arguments.numeric_time;
    options.numeric_symbols = arguments.numeric_symbols;
    options.time_zone = Some(zone::local());
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
    options.hosts = Some(&addresses);
}

/// The addresses of a host, from /etc/hosts or the name service.
fn addresses(host: &str) -> Vec<IpAddr> {
    let found = (host, 0).to_socket_addrs().into_iter().flatten();
    found.map(|address| address.ip()).collect()
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

/// The names of protocols by their numbers. If several have the same number, the first counts.
pub(crate) fn protocols() -> BTreeMap<u8, String> {
    let mut all = BTreeMap::new();
    for line in text("/etc/protocols").lines() {
        let mut words = line.split('#').next().unwrap_or_default().split_whitespace();
        if let (Some(name), Some(Ok(number))) = (words.next(), words.next().map(str::parse)) {
            all.entry(number).or_insert_with(|| name.to_owned());
        }
    }
    all
}

fn text(file: impl AsRef<Path>) -> String {
    String::from_utf8_lossy(&std::fs::read(file).unwrap_or_default()).into_owned()
}

/// The text of a listing with the names of the hosts that addresses belong to, if that is asked for (`-N`).
/// The name service is asked once for each address, and an address without a name stays as it is.
pub(crate) fn with_hosts(text: String, arguments: &Arguments) -> String {
    if !arguments.reverse_dns {
        return text;
    }
    let mut names: HashMap<IpAddr, String> = HashMap::new();
    let is_address = |c: char| c.is_ascii_hexdigit() || matches!(c, '.' | ':');
    let mut out = String::with_capacity(text.len());
    for (number, part) in text.split('"').enumerate() {
        if number > 0 {
            out.push('"');
        }
        if number % 2 == 1 {
            out.push_str(part);
            continue;
        }
        for words in part.split_inclusive(|c: char| !is_address(c)) {
            let end = words.find(|c: char| !is_address(c)).unwrap_or(words.len());
            let (word, behind) = words.split_at(end);
            // A port may follow an address of IPv4.
            let (word, port) = match word.split_once(':') {
                Some((address, _)) if address.contains('.') => word.split_at(address.len()),
                _ => (word, ""),
            };
            match word.parse::<IpAddr>() {
                Ok(address) => {
                    let name = || dns_lookup::lookup_addr(&address).unwrap_or_else(|_| address.to_string());
                    out.push_str(names.entry(address).or_insert_with(name));
                }
                Err(_) => out.push_str(word),
            }
            out.push_str(port);
            out.push_str(behind);
        }
    }
    out
}
