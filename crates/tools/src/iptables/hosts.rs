//! Names of hosts as addresses of rules, and what `-L` shows by name.

use std::net::IpAddr;
use std::sync::OnceLock;

use sluicegate_iptables_save::{Family, Names, decode};

use super::failure::{Failure, parameter};

/// Returns the value of `-s` or `-d` with the addresses of the names in it.
pub(super) fn resolved(value: &str, family: Family) -> Result<String, Failure> {
    let parts: Result<Vec<_>, _> = value.split(',').map(|part| network(part.trim_start(), family)).collect();
    Ok(parts?.join(","))
}

fn network(part: &str, family: Family) -> Result<String, Failure> {
    let (name, mask) = part.split_once('/').map_or((part, ""), |(name, _)| (name, &part[name.len()..]));
    // Digits, dots and colons are an address, or are refused as one with the rule.
    let is_number = name.contains(':') || name.starts_with(|c: char| c.is_ascii_digit());
    if is_number && !name.contains(|c: char| c.is_ascii_alphabetic() && !c.is_ascii_hexdigit() && c != 'x') {
        return Ok(part.to_owned());
    }
    if matches!(mask, "/0" | "/0.0.0.0" | "/::") {
        return Ok(part.to_owned());
    }
    let wanted = |address: &IpAddr| address.is_ipv4() == (family == Family::Ipv4);
    let mut found: Vec<IpAddr> = Vec::new();
    let addresses = match name {
        "" => Vec::new(),
        name => dns_lookup::lookup_host(name).map(Vec::from_iter).unwrap_or_default(),
    };
    for address in addresses.into_iter().filter(wanted) {
        if !found.contains(&address) {
            found.push(address);
        }
    }
    if found.is_empty() {
        return Err(parameter(format!("host/network `{name}' not found")));
    }
    let networks: Vec<_> = found.iter().map(|address| format!("{address}{mask}")).collect();
    Ok(networks.join(","))
}

/// Returns where a list without `-n` has its names from.
pub(super) fn names() -> Names {
    Names {
        host,
        service,
        user: |number| account("/etc/passwd", number),
        group: |number| account("/etc/group", number),
    }
}

/// Returns the name of a number in the file of users or groups.
fn account(file: &str, number: u32) -> Option<String> {
    let accounts = std::fs::read(file).ok()?;
    accounts.split(|byte| *byte == b'\n').find_map(|line| {
        let mut fields = line.split(|byte| *byte == b':');
        let name = fields.next()?;
        (fields.nth(1)? == number.to_string().as_bytes()).then(|| decode(name).into_owned())
    })
}

/// Returns the name of a host.
pub(crate) fn host(address: IpAddr) -> Option<String> {
    dns_lookup::lookup_addr(&address).ok().filter(|name| *name != address.to_string())
}

/// Returns the name of a port in `/etc/services`.
pub(crate) fn service(port: u16, protocol: &str) -> Option<String> {
    let place = format!("{port}/{protocol}");
    services().find_map(|mut words| {
        let name = words.next()?;
        (words.next()? == place).then(|| name.to_owned())
    })
}

/// Returns the port that has this name, or alias, in `/etc/services`.
pub(crate) fn port(name: &str, protocol: &str) -> Option<u16> {
    services().find_map(|mut words| {
        let first = words.next()?;
        let port = words.next()?.strip_suffix(protocol)?.strip_suffix('/')?;
        (first == name || words.any(|alias| alias == name)).then(|| port.parse().ok()).flatten()
    })
}

/// Returns the words of each line of `/etc/services`.
fn services() -> impl Iterator<Item = std::str::SplitWhitespace<'static>> {
    static FILE: OnceLock<String> = OnceLock::new();
    let file = FILE.get_or_init(|| {
        String::from_utf8_lossy(&std::fs::read("/etc/services").unwrap_or_default()).into_owned()
    });
    file.lines().map(|line| line.split('#').next().unwrap_or_default().split_whitespace())
}
