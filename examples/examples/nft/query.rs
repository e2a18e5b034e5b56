//! `get element` and `reset`.

use sluicegate_nftables::expr::ObjectKind;
use sluicegate_nftables::netlink::NetlinkFamily;
use sluicegate_nftables::{Elements, Subject, TableId, Within, read};

use crate::arguments::Arguments;
use crate::list::{Kind, Shown, list};
use crate::names::{list_options, open};
use crate::run::set_in_kernel;

/// Prints the elements that keys belong to, as text whatever was asked for: so does nft.
pub(crate) fn get(elements: &Elements, arguments: &Arguments) -> Result<(), String> {
    let mut socket = open(NetlinkFamily::NETFILTER)?;
    let id = &elements.set;
    let missing = || format!("Error: No such file or directory: there is no set {id}");
    let table = read::table(&mut socket, &id.table).map_err(failed)?.ok_or_else(missing)?;
    let set = set_in_kernel(&mut socket, id).ok_or_else(missing)?;
    let mut found = Vec::new();
    for element in &elements.list {
        let one = read::find(&mut socket, &set, element).map_err(failed)?;
        found.push(one.ok_or_else(|| {
            format!(
                "Error: Could not process rule: No such file or directory: there is no element \
                     {element} in set {id}"
            )
        })?);
    }
    let mut content = read::Ruleset { tables: vec![table], ..Default::default() }.content();
    content.iter_mut().for_each(|table| table.sets = vec![(set.clone(), found.clone())]);
    Shown { content, kind: Kind::Part }.print(&list_options(arguments)?, false)
}

/// Prints what there is, and sets it back in the same step.
pub(crate) fn reset(subject: &Subject, arguments: &Arguments) -> Result<(), String> {
    let mut socket = open(NetlinkFamily::NETFILTER)?;
    match subject {
        Subject::Objects(kind @ (ObjectKind::COUNTER | ObjectKind::QUOTA), within) => {
            let tables = match within {
                Within::Family(family) => read::tables(&mut socket, *family).map_err(failed)?,
                Within::Table(table) => {
                    read::table(&mut socket, table).map_err(failed)?.into_iter().collect()
                }
            };
            let mut ruleset = read::Ruleset { tables, ..Default::default() };
            let objects = read::objects(&mut socket, within).map_err(failed)?;
            for of in objects.into_iter().filter(|of| of.object_kind == *kind) {
                let id = TableId::new(of.family, of.table).object(*kind, of.name);
                let reset = read::reset_object(&mut socket, &id);
                ruleset.objects.extend(reset.map_err(failed)?);
            }
            let mut content = ruleset.content();
            content.retain(|table| !table.objects.is_empty());
            Shown { content, kind: Kind::Part }.print(&list_options(arguments)?, arguments.json)
        }
        Subject::Object(of) => {
            let id = &of.table;
            let missing = || format!("Error: No such file or directory: there is no {of}");
            let table = read::table(&mut socket, id).map_err(failed)?.ok_or_else(missing)?;
            let reset = read::reset_object(&mut socket, of);
            let reset = reset.map_err(failed)?.ok_or_else(missing)?;
            let ruleset = read::Ruleset { tables: vec![table], objects: vec![reset], ..Default::default() };
            let shown = Shown { content: ruleset.content(), kind: Kind::Part };
            shown.print(&list_options(arguments)?, arguments.json)
        }
        Subject::Rules(within) => {
            list(subject, arguments)?;
            read::reset_rules(&mut socket, within).map(drop).map_err(failed)
        }
        Subject::RulesOf(chain) => {
            list(subject, arguments)?;
            read::reset_chain_rules(&mut socket, chain).map(drop).map_err(failed)
        }
        other => Err(format!("Error: `reset {other}` is not supported here")),
    }
}

fn failed(error: impl std::fmt::Display) -> String {
    format!("Error: {error}")
}
