//! `get element` and `reset`.

use sluicegate_nftables::expr::ObjectKind;
use sluicegate_nftables::netlink::{Errno, NetlinkFamily, Socket};
use sluicegate_nftables::{Element, Elements, Error, Set, Subject, TableId, Within, read};

use super::arguments::Arguments;
use super::error::CommandError;
use super::list::{Part, Shown};
use super::names::{list_options, open};
use super::report::Fault;

/// Prints the elements that keys belong to, as text whatever was asked for: so does nft.
pub(crate) fn get(elements: &Elements, arguments: &Arguments) -> Result<(), Fault> {
    let found = found(elements, read::find)?;
    Ok(found.print(&list_options(arguments)?, &Arguments { json: false, ..arguments.clone() })?)
}

/// Looks elements up by a function that may reset them.
fn found(
    elements: &Elements,
    find: impl Fn(&mut Socket, &Set, &Element) -> Result<Option<Element>, Error>,
) -> Result<Shown, Fault> {
    let mut socket = open(NetlinkFamily::NETFILTER)?;
    let id = &elements.set;
    let no_table = || Fault::Missing(id.table.name.to_string());
    let table = read::table(&mut socket, &id.table)?.ok_or_else(no_table)?;
    let missing = || Fault::Missing(id.name.to_string());
    let mut ruleset = read::Ruleset::new(vec![table]);
    ruleset.sets.push((read::set(&mut socket, id)?.ok_or_else(missing)?, Vec::new()));
    let mut content = ruleset.content();
    let (set, found) = content.iter_mut().flat_map(|table| &mut table.sets).next().ok_or_else(missing)?;
    for element in &elements.list {
        let one = find(&mut socket, set, element)?;
        found.push(one.ok_or(Fault::Refused(Errno::ENOENT))?);
    }
    Ok(Shown::part(content))
}

/// Prints what there is, and sets it back in the same step. nft 1.0.6 resets counters and quotas; rules, sets
/// and elements are from later versions.
pub(crate) fn reset(subject: &Subject, arguments: &Arguments) -> Result<(), Fault> {
    let mut socket = open(NetlinkFamily::NETFILTER)?;
    let shown = match subject {
        Subject::Objects(kind @ (ObjectKind::COUNTER | ObjectKind::QUOTA), within) => {
            let tables = match within {
                Within::Family(family) => read::tables(&mut socket, *family)?,
                Within::Table(table) => {
                    let missing = || Fault::Missing(table.name.to_string());
                    vec![read::table(&mut socket, table)?.ok_or_else(missing)?]
                }
            };
            let mut ruleset = read::Ruleset::new(tables);
            let objects = read::objects(&mut socket, within)?;
            for of in objects.into_iter().filter(|of| of.object_kind == *kind) {
                let id = TableId::new(of.family, of.table).object(*kind, of.name);
                let reset = read::reset_object(&mut socket, &id);
                ruleset.objects.extend(reset?);
            }
            let mut content = ruleset.content();
            content.retain(|table| !table.objects.is_empty());
            Shown::part(content)
        }
        Subject::Object(of) => {
            let id = &of.table;
            let missing = || Fault::Refused(Errno::ENOENT);
            let table = read::table(&mut socket, id)?.ok_or_else(missing)?;
            let reset = read::reset_object(&mut socket, of);
            let reset = reset?.ok_or_else(missing)?;
            let mut ruleset = read::Ruleset::new(vec![table]);
            ruleset.objects.push(reset);
            Shown::part(ruleset.content())
        }
        Subject::Rules(within) => {
            reset_rules(&mut socket, subject, within, |socket| read::reset_rules(socket, within))?
        }
        Subject::RulesOf(chain) => reset_rules(&mut socket, subject, &(&chain.table).into(), |socket| {
            read::reset_chain_rules(socket, chain)
        })?,
        Subject::Rule(rule) => reset_rules(&mut socket, subject, &(&rule.chain.table).into(), |socket| {
            Ok(read::reset_rule(socket, &rule.chain, rule.handle)?.into_iter().collect())
        })?,
        Subject::Set(id) => {
            let missing = || Fault::Missing(id.name.to_string());
            let table = read::table(&mut socket, &id.table)?.ok_or_else(missing)?;
            let set = read::set(&mut socket, id)?.ok_or_else(missing)?;
            let elements = read::reset_elements(&mut socket, id)?;
            let mut ruleset = read::Ruleset::new(vec![table]);
            ruleset.sets.push((set, elements));
            Shown::part(ruleset.content())
        }
        Subject::Elements(elements) => found(elements, read::find_and_reset)?,
        other => return Err(CommandError::Unsupported { command: format!("reset {other}") }.into()),
    };
    Ok(shown.print(&list_options(arguments)?, arguments)?)
}

/// The chains of rules that are reset, with the counts that they had: those that the kernel answers with, so
/// that no packet is left out in between.
fn reset_rules(
    socket: &mut Socket,
    subject: &Subject,
    within: &Within,
    reset: impl FnOnce(&mut Socket) -> Result<Vec<read::Rule>, Error>,
) -> Result<Shown, Fault> {
    let mut ruleset = read::ruleset(socket, within)?;
    ruleset.rules = reset(socket)?;
    Part::of(subject).select(ruleset.content())
}
