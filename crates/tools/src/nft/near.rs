//! The name that was meant where the kernel has none of that name, in nft's words. nft 1.0.6 says so of some
//! commands; here it is said of all that name a table or what is in one.

use sluicegate_nftables::netlink::{NetlinkFamily, Socket};
use sluicegate_nftables::{Error, Family, Name, SetFlags, TableId, read};

use super::names::open;
use super::report::FAMILIES;
use crate::near::nearest;

/// Returns `; did you mean ...?`, or nothing, for an object in nft's words: its kind, its family, its table,
/// and its name if it is not the table. Where the kernel cannot be asked, nothing is meant.
pub(crate) fn meant(object: &str) -> String {
    found(object).map(|meant| format!("; did you mean {meant}?")).unwrap_or_default()
}

fn found(object: &str) -> Option<String> {
    let words: Vec<_> = object.split_whitespace().collect();
    let family = words.iter().position(|word| FAMILIES.contains(word))?;
    let (kind, table) = (*words.first()?, *words.get(family + 1)?);
    let mut socket = open(NetlinkFamily::NETFILTER).ok()?;
    let tables = read::tables(&mut socket, Family::UNSPEC).ok()?;
    let of_family = |table: &&read::Table| table.family.to_string() == words[family];
    let here = tables.iter().filter(of_family);
    let Some(id) = here.clone().find(|of| of.name.to_string() == table) else {
        // The name in another family is nearer than another name.
        let others = tables.iter().find(|of| of.name.to_string() == table);
        let near = || nearest(table, here.map(|of| of.name.to_string()));
        let meant = others.map(|of| (of.family, of.name.to_string()));
        let (family, name) = meant.or_else(|| Some((words[family].parse().ok()?, near()?)))?;
        return Some(format!("table ‘{name}’ in family {family}"));
    };
    let id = TableId::new(id.family, id.name.clone());
    let name = words.get(family + 2)?;
    let near = |names: &[(Kind, Name)]| {
        if names.iter().any(|(_, of)| of.to_string() == **name) {
            return None;
        }
        let meant = nearest(name, names.iter().map(|(_, name)| name.to_string()))?;
        let (kind, _) = names.iter().find(|(_, name)| name.to_string() == meant)?;
        Some(format!("{kind} ‘{meant}’ in table {} ‘{}’", id.family, id.name))
    };
    near(&names(&mut socket, kind, &id).ok()?)
}

type Kind = &'static str;

/// Returns the names of a table that may have been meant, with what nft calls their kind.
fn names(socket: &mut Socket, kind: &str, table: &TableId) -> Result<Vec<(Kind, Name)>, Error> {
    Ok(match kind {
        "chain" | "rule" | "rules" => {
            read::chains(socket, table)?.into_iter().map(|of| ("chain", of.name)).collect()
        }
        "set" | "map" | "element" | "meter" => {
            // Anonymous sets are parts of rules, and have names that nobody writes.
            let sets =
                read::sets(socket, table)?.into_iter().filter(|of| !of.flags.contains(SetFlags::ANONYMOUS));
            let kind = |flags: SetFlags| if flags.contains(SetFlags::MAP) { "map" } else { "set" };
            sets.map(|of| (kind(of.flags), of.name)).collect()
        }
        "flowtable" => {
            read::flowtables(socket, table)?.into_iter().map(|of| ("flowtable", of.name)).collect()
        }
        _ => read::objects(socket, table)?.into_iter().map(|of| ("obj", of.name)).collect(),
    })
}
