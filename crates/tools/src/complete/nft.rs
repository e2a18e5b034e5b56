//! nft's commands, kinds of objects and families, and the names in the kernel.

use sluicegate_nftables::expr::ObjectKind;
use sluicegate_nftables::netlink::{NetlinkFamily, Socket};
use sluicegate_nftables::{Family, Name, SetFlags, TableId, read};

use super::{interfaces, texts};
use crate::nft::{FAMILIES, open};

pub(super) fn offered(before: &[&str], last: &str) -> Vec<String> {
    let (mut words, mut options) = (before, 0);
    while let Some((word, rest)) = words.split_first().filter(|(word, _)| word.starts_with('-')) {
        let takes_value = matches!(*word, "-f" | "--file" | "-D" | "--define" | "-I" | "--includepath");
        if takes_value && rest.is_empty() {
            return Vec::new(); // a file, which the shell knows
        }
        words = &rest[usize::from(takes_value)..];
        options += 1;
    }
    let Some((command, words)) = words.split_first() else {
        return match last.starts_with('-') {
            true => texts(OPTIONS),
            false if options > 0 || before.is_empty() => texts(COMMANDS),
            false => Vec::new(),
        };
    };
    let Some((kind, words)) = words.split_first() else { return texts(kinds(command)) };
    let (family, words) = match words.split_first() {
        Some((family, words)) if FAMILIES.contains(family) => (Some(*family), words),
        _ => (None, words),
    };
    let Ok(mut socket) = open(NetlinkFamily::NETFILTER) else { return Vec::new() };
    // Without a word for it the family is ip.
    let of: Family = family.and_then(|word| word.parse().ok()).unwrap_or(Family::IP);
    let Some((table, words)) = words.split_first() else {
        let families = if family.is_none() { texts(FAMILIES) } else { Vec::new() };
        let is_new = *kind == "table" && ["add", "create"].contains(command);
        let takes_table = !["ruleset", "tables"].contains(kind) && !is_new;
        let tables = if takes_table { tables(&mut socket, of) } else { Vec::new() };
        return [families, tables].concat();
    };
    let Ok(name) = table.parse::<Name>() else { return Vec::new() };
    let table = TableId::new(of, name);
    if words.is_empty() {
        let is_new = ["add", "create"].contains(command) && !["rule", "element"].contains(kind);
        return if is_new { Vec::new() } else { names(&mut socket, kind, &table) };
    }
    match words.last() {
        _ if last.starts_with('@') => {
            names(&mut socket, "set", &table).into_iter().map(|name| format!("@{name}")).collect()
        }
        Some(&("jump" | "goto")) => names(&mut socket, "chain", &table),
        Some(&("iif" | "oif" | "iifname" | "oifname" | "device")) => interfaces(),
        _ => Vec::new(),
    }
}

fn tables(socket: &mut Socket, family: Family) -> Vec<String> {
    let tables = read::tables(socket, family).unwrap_or_default();
    tables.into_iter().map(|table| table.name.to_string()).collect()
}

/// The names in a table of the kind that a command has a word for.
fn names(socket: &mut Socket, kind: &str, table: &TableId) -> Vec<String> {
    let name = |name: Name| name.to_string();
    match kind {
        "chain" | "rule" | "rules" => {
            let chains = read::chains(socket, table).unwrap_or_default();
            chains.into_iter().map(|of| name(of.name)).collect()
        }
        "set" | "map" | "element" | "meter" => {
            let sets = read::sets(socket, table).unwrap_or_default().into_iter();
            // Anonymous sets are parts of rules. A set that is a map is listed as one alone.
            let is_meant = |flags: SetFlags| match kind {
                "map" => flags.contains(SetFlags::MAP),
                "element" => true,
                "meter" => flags.contains(SetFlags::DYNAMIC),
                _ => !flags.contains(SetFlags::MAP),
            };
            sets.filter(|of| !of.flags.contains(SetFlags::ANONYMOUS) && is_meant(of.flags))
                .map(|of| name(of.name))
                .collect()
        }
        "flowtable" => {
            let flowtables = read::flowtables(socket, table).unwrap_or_default();
            flowtables.into_iter().map(|of| name(of.name)).collect()
        }
        _ => match ObjectKind::ALL.iter().find(|of| of.name() == Some(kind)) {
            None => Vec::new(),
            Some(kind) => {
                let objects = read::objects(socket, table).unwrap_or_default();
                objects.into_iter().filter(|of| of.object_kind == *kind).map(|of| name(of.name)).collect()
            }
        },
    }
}

/// The kinds of objects that a command takes, as nft(8) lists them.
fn kinds(command: &str) -> Vec<&'static str> {
    const OF_TABLE: [&str; 10] =
        ["table", "chain", "set", "map", "flowtable", "counter", "quota", "limit", "secmark", "synproxy"];
    let more: &[&str] = match command {
        "add" | "delete" | "destroy" => &["rule", "element"],
        "create" => &["element"],
        "insert" | "replace" => return vec!["rule"],
        "rename" => return vec!["chain"],
        "get" => return vec!["element"],
        "flush" => return vec!["ruleset", "table", "chain", "set", "map"],
        "list" => &[
            "ruleset",
            "tables",
            "chains",
            "sets",
            "maps",
            "flowtables",
            "counters",
            "quotas",
            "limits",
            "rule",
            "rules",
            "meter",
            "meters",
            "hooks",
        ],
        "reset" => {
            return vec!["counter", "counters", "quota", "quotas", "rule", "rules", "set", "map", "element"];
        }
        "monitor" => {
            return vec![
                "new", "destroy", "trace", "ruleset", "tables", "chains", "sets", "rules", "elements",
            ];
        }
        _ => return Vec::new(),
    };
    [&OF_TABLE[..], more].concat()
}

const COMMANDS: [&str; 13] = [
    "add", "create", "delete", "describe", "destroy", "flush", "get", "insert", "list", "monitor", "rename",
    "replace", "reset",
];
const OPTIONS: [&str; 15] = [
    "--check",
    "--debug",
    "--define",
    "--echo",
    "--file",
    "--handle",
    "--help",
    "--includepath",
    "--interactive",
    "--json",
    "--numeric",
    "--optimize",
    "--stateless",
    "--terse",
    "--version",
];
