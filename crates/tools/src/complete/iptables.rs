//! The tables, chains, extensions and their options of iptables and ip6tables.

use sluicegate_iptables_save::{Extension, Family, all_matches, all_targets, find_match, find_target};
use sluicegate_nftables::netlink::NetlinkFamily;
use sluicegate_nftables::{Family as NftFamily, TableId, read};
use sluicegate_xtables::{BackEnd, legacy};

use super::{PROTOCOLS, interfaces, texts};
use crate::iptables::{back_end, legacy_tables};
use crate::nft::open;

pub(super) fn offered(tool: &str, before: &[&str]) -> Vec<String> {
    let family = if tool.starts_with("ip6") { Family::Ipv6 } else { Family::Ipv4 };
    let value = |names: [&str; 2]| {
        let at = before.iter().rposition(|word| names.contains(word))?;
        before.get(at + 1).copied()
    };
    let table = value(["-t", "--table"]).unwrap_or("filter");
    let last_two = (before.len().checked_sub(2).map(|at| before[at]), before.last().copied());
    if let (Some("-P" | "--policy"), Some(_)) = last_two {
        return texts(["ACCEPT", "DROP"]);
    }
    let Some(option) = last_two.1 else { return options(before, family) };
    match option {
        "-t" | "--table" => texts(TABLES.map(|(name, _)| name)),
        "-P" | "--policy" => texts(builtin(table)),
        "-X" | "--delete-chain" | "-E" | "--rename-chain" | "-g" | "--goto" => {
            own_chains(tool, family, table)
        }
        "-j" | "--jump" => {
            let targets = all_targets().filter(|target| target.supports(family)).map(Extension::name);
            let verdicts = ["ACCEPT", "DROP", "RETURN"];
            [texts(targets), texts(verdicts), own_chains(tool, family, table)].concat()
        }
        "-m" | "--match" => texts(all_matches().filter(|found| found.supports(family)).map(Extension::name)),
        "-p" | "--protocol" => texts(PROTOCOLS),
        "-i" | "-o" | "--in-interface" | "--out-interface" => interfaces(),
        _ if OF_CHAIN.contains(&option) => [texts(builtin(table)), own_chains(tool, family, table)].concat(),
        _ => options(before, family),
    }
}

/// The options of iptables, and those of the extensions that were named.
fn options(before: &[&str], family: Family) -> Vec<String> {
    let named = before.windows(2).filter_map(|pair| match pair {
        ["-m" | "--match" | "-p" | "--protocol", name] => find_match(name, family),
        ["-j" | "--jump", name] => find_target(name, family),
        _ => None,
    });
    let of_extensions = named.flat_map(Extension::options);
    let of_extensions = of_extensions.map(|option| format!("--{}", option.name())).collect();
    [texts(OPTIONS), of_extensions].concat()
}

fn builtin(table: &str) -> Vec<&'static str> {
    let found = TABLES.iter().find(|(name, _)| *name == table);
    found.map(|(_, chains)| chains.split(' ').collect()).unwrap_or_default()
}

/// The chains of a table that somebody made.
fn own_chains(tool: &str, family: Family, table: &str) -> Vec<String> {
    let chains = match back_end(tool) {
        Ok(BackEnd::Nft) => nft_chains(family, table),
        Ok(BackEnd::Legacy) => legacy_chains(family, table),
        Err(_) => None,
    };
    let builtin = builtin(table);
    chains.unwrap_or_default().into_iter().filter(|chain| !builtin.contains(&chain.as_str())).collect()
}

/// The chains without the rules, of which there may be many.
fn nft_chains(family: Family, table: &str) -> Option<Vec<String>> {
    let family = if family == Family::Ipv6 { NftFamily::IP6 } else { NftFamily::IP };
    let table = TableId::new(family, table.parse().ok()?);
    let chains = read::chains(&mut open(NetlinkFamily::NETFILTER).ok()?, &table).ok()?;
    Some(chains.into_iter().map(|chain| chain.name.to_string()).collect())
}

fn legacy_chains(family: Family, table: &str) -> Option<Vec<String>> {
    // The kernel makes a table when it is read.
    legacy_tables(family)?.into_iter().find(|name| name == table)?;
    let view = legacy::Client::open(family).ok()?.view(table, false).ok()?;
    Some(view.table.chains().map(|chain| chain.name().to_owned()).collect())
}

/// The tables with the chains that the kernel has.
const TABLES: [(&str, &str); 5] = [
    ("filter", "INPUT FORWARD OUTPUT"),
    ("nat", "PREROUTING INPUT OUTPUT POSTROUTING"),
    ("mangle", "PREROUTING INPUT FORWARD OUTPUT POSTROUTING"),
    ("raw", "PREROUTING OUTPUT"),
    ("security", "INPUT FORWARD OUTPUT"),
];
const OF_CHAIN: [&str; 18] = [
    "-A",
    "--append",
    "-C",
    "--check",
    "-D",
    "--delete",
    "-F",
    "--flush",
    "-I",
    "--insert",
    "-L",
    "--list",
    "-R",
    "--replace",
    "-S",
    "--list-rules",
    "-Z",
    "--zero",
];
const OPTIONS: [&str; 28] = [
    "--append",
    "--check",
    "--delete",
    "--delete-chain",
    "--destination",
    "--exact",
    "--flush",
    "--fragment",
    "--goto",
    "--in-interface",
    "--insert",
    "--jump",
    "--line-numbers",
    "--list",
    "--list-rules",
    "--match",
    "--new-chain",
    "--numeric",
    "--out-interface",
    "--policy",
    "--protocol",
    "--rename-chain",
    "--replace",
    "--source",
    "--table",
    "--verbose",
    "--wait",
    "--zero",
];
