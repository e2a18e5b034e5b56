//! What `-L` writes otherwise without `-n`: names of services, of users and groups, of types of
//! ICMP, of flags and of log levels.

use std::borrow::Cow;

use super::{Names, forms};
use crate::ext::Family;
use crate::names::{ICMP, ICMP6, LOG_LEVELS};
use crate::spec::{Module, OptionUse, Spec};

/// Adds what is listed for a match, with the blank before it.
pub(super) fn of_match(
    line: &mut String,
    module: &Module<'_>,
    spec: &Spec<'_>,
    family: Family,
    names: Names,
) {
    match &*module.name {
        "tcp" | "udp" | "multiport" => {
            let protocol = spec.generic("protocol").and_then(OptionUse::value).unwrap_or_default();
            let mut module = module.clone();
            let flags = module.options.iter().position(|option| option.name == "tcp-flags");
            let flags = flags.map(|at| module.options.remove(at));
            for option in &mut module.options {
                if is_of_ports(&option.name) {
                    let value = option.value().unwrap_or_default();
                    let named = services(value, protocol, names);
                    *option =
                        OptionUse::new(option.name.clone(), [Cow::Owned(named)]).negated(option.negated);
                }
            }
            forms::of_match(line, &module, family);
            line.extend(flags.map(|flags| tcp_flags(&flags)));
        }
        "owner" => {
            let mut module = module.clone();
            for option in &mut module.options {
                let name = match &*option.name {
                    "uid-owner" => names.user,
                    "gid-owner" => names.group,
                    _ => continue,
                };
                // A range has no name.
                let number = option.value().and_then(|value| value.parse().ok());
                if let Some(name) = number.and_then(name) {
                    *option = OptionUse::new(option.name.clone(), [Cow::Owned(name)]).negated(option.negated);
                }
            }
            forms::of_match(line, &module, family);
        }
        name => {
            let named = match name {
                "icmp" => icmp(module, "icmp-type", "icmp", ICMP),
                "icmp6" => icmp(module, "icmpv6-type", "ipv6-icmp", ICMP6),
                _ => None,
            };
            match named {
                Some(named) => line.push_str(&named),
                None => forms::of_match(line, module, family),
            }
        }
    }
}

/// Adds what is listed for a target, with the blank before it.
pub(super) fn of_target(line: &mut String, module: &Module<'_>, family: Family) {
    if module.name != "LOG" {
        return forms::of_target(line, module, family);
    }
    let number = module.value("log-level").and_then(|level| level.parse().ok()).unwrap_or(WARNING);
    let level = LOG_LEVELS.iter().find(|(_, level)| *level == number).map_or("", |(name, _)| name);
    let level = if number == WARNING { "warn" } else { level };
    line.extend([" LOG level ", level]);
    for (option, shown) in LOG_FLAGS {
        if module.option(option).is_some() {
            line.extend([" ", shown]);
        }
    }
    if let Some(prefix) = module.value("log-prefix") {
        line.extend([" prefix \"", prefix, "\""]);
    }
}

fn is_of_ports(name: &str) -> bool {
    matches!(
        name,
        "source-port"
            | "destination-port"
            | "ports"
            | "sports"
            | "dports"
            | "source-ports"
            | "destination-ports"
    )
}

/// Returns ports, their ranges and lists, with the names of those that have one.
fn services(value: &str, protocol: &str, names: Names) -> String {
    let named = |port: &str| {
        let number = port.parse().ok();
        number.and_then(|number| (names.service)(number, protocol)).unwrap_or_else(|| port.to_owned())
    };
    let range = |range: &str| range.split(':').map(named).collect::<Vec<_>>().join(":");
    value.split(',').map(range).collect::<Vec<_>>().join(",")
}

fn tcp_flags(option: &OptionUse<'_>) -> String {
    let [mask, flags] = option.values.as_slice() else { return String::new() };
    let not = if option.negated { "!" } else { "" };
    format!(" flags:{not}{mask}/{flags}")
}

/// Returns the type by its name, if it has one.
fn icmp(module: &Module<'_>, option: &str, head: &str, types: &[(&str, u8, Option<u8>)]) -> Option<String> {
    let option = module.option(option)?;
    let (kind, code) = option.value()?.split_once('/').map_or((option.value()?, None), |(k, c)| (k, Some(c)));
    let kind: u8 = kind.parse().ok()?;
    let code: Option<u8> = code.map(str::parse).transpose().ok()?;
    let found = types.iter().find(|(_, of, its)| *of == kind && *its == code);
    let not = if option.negated { "!" } else { "" };
    found.map(|(name, ..)| format!(" {head} {not}{name}"))
}

/// What `LOG` writes at, if nothing else is said.
const WARNING: u8 = 4;
const LOG_FLAGS: [(&str, &str); 5] = [
    ("log-tcp-sequence", "tcp-sequence"),
    ("log-tcp-options", "tcp-options"),
    ("log-ip-options", "ip-options"),
    ("log-uid", "uid"),
    ("log-macdecode", "macdecode"),
];
