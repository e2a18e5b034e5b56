//! What has to be read of the kernel to list a part of its tables: of a table with many rules or elements, a list
//! of something else in it needs none of them.

use std::collections::BTreeSet;

use sluicegate_nftables::expr::Expr;
use sluicegate_nftables::netlink::{self, Socket};
use sluicegate_nftables::read::{self, ChainFlags, Ruleset};
use sluicegate_nftables::{ChainId, Error, Family, Name, SetFlags, Subject, TableId, Within};

/// Reads what a list of this subject shows, as of one generation. `terse` leaves out the elements of sets that
/// have a name.
pub(super) fn read(
    socket: &mut Socket,
    subject: &Subject,
    within: &Within,
    terse: bool,
) -> Result<Ruleset, Error> {
    for _ in 0..TRIES {
        let before = read::generation(socket)?.id;
        let ruleset = once(socket, subject, within, terse);
        if read::generation(socket)?.id == before {
            return ruleset;
        }
    }
    Err(netlink::Error::Interrupted(TRIES).into())
}

/// The family, or the table, that something is listed of.
pub(super) fn within(subject: &Subject) -> Within {
    match subject {
        Subject::Ruleset(family) | Subject::Tables(family) | Subject::Chains(family) => (*family).into(),
        Subject::Table(table) => table.into(),
        Subject::Chain(chain) | Subject::RulesOf(chain) => (&chain.table).into(),
        Subject::Rule(rule) => (&rule.chain.table).into(),
        Subject::Set(set) | Subject::Meter(set) => (&set.table).into(),
        Subject::Elements(elements) => (&elements.set.table).into(),
        Subject::Flowtable(of) => (&of.table).into(),
        Subject::Object(of) => (&of.table).into(),
        Subject::Objects(_, of)
        | Subject::Rules(of)
        | Subject::Sets(of)
        | Subject::Maps(of)
        | Subject::Meters(of)
        | Subject::Flowtables(of) => of.clone(),
        _ => Family::UNSPEC.into(),
    }
}

fn once(socket: &mut Socket, subject: &Subject, within: &Within, terse: bool) -> Result<Ruleset, Error> {
    let mut ruleset = Ruleset::new(tables(socket, within)?);
    if ruleset.tables.is_empty() {
        return Ok(ruleset);
    }
    match subject {
        Subject::Tables(_) => {}
        Subject::Chains(_) => ruleset.chains = read::chains(socket, within)?,
        Subject::Set(id) => {
            if let Some(set) = read::set(socket, id)? {
                let elements = if terse { Vec::new() } else { read::elements(socket, id)? };
                ruleset.sets.push((set, elements));
            }
        }
        Subject::Sets(_) | Subject::Maps(_) => {
            let is_map = matches!(subject, Subject::Maps(_));
            // Of others the elements are not shown.
            let wanted = |set: &read::Set| set.flags.intersects(SetFlags::MAP | SetFlags::OBJECT) == is_map;
            ruleset.sets = sets(socket, within, |set| wanted(set) && !terse)?;
        }
        Subject::Objects(..) | Subject::Object(_) => ruleset.objects = read::objects(socket, within)?,
        Subject::Flowtables(_) | Subject::Flowtable(_) => {
            ruleset.flowtables = read::flowtables(socket, within)?;
        }
        Subject::Chain(id) | Subject::RulesOf(id) => chain(socket, id, within, &mut ruleset)?,
        Subject::Rule(rule) => chain(socket, &rule.chain, within, &mut ruleset)?,
        _ => {
            ruleset.chains = read::chains(socket, within)?;
            ruleset.rules = read::rules(socket, within)?;
            let is_shown = |set: &read::Set| !terse || set.flags.contains(SetFlags::ANONYMOUS);
            ruleset.sets = sets(socket, within, is_shown)?;
            ruleset.objects = read::objects(socket, within)?;
            ruleset.flowtables = read::flowtables(socket, within)?;
        }
    }
    Ok(ruleset)
}

fn tables(socket: &mut Socket, within: &Within) -> Result<Vec<read::Table>, Error> {
    match within {
        Within::Family(family) => read::tables(socket, *family),
        Within::Table(table) => Ok(read::table(socket, table)?.into_iter().collect()),
    }
}

/// Reads one chain with its rules, and of sets what the rules are printed with.
fn chain(socket: &mut Socket, id: &ChainId, within: &Within, ruleset: &mut Ruleset) -> Result<(), Error> {
    ruleset.chains = read::chains(socket, within)?;
    let is_bound = |chain: &read::Chain| chain.flags.contains(ChainFlags::BINDING);
    ruleset.rules = match ruleset.chains.iter().any(is_bound) {
        // The rules of a chain without a name are part of a rule.
        true => read::rules(socket, within)?,
        false => read::chain_rules(socket, id)?,
    };
    let looked_up: BTreeSet<&Name> =
        ruleset.rules.iter().flat_map(|rule| &rule.expressions).filter_map(set_of).collect();
    let shows = |set: &read::Set| set.flags.contains(SetFlags::ANONYMOUS) && looked_up.contains(&set.name);
    ruleset.sets = sets(socket, within, shows)?;
    Ok(())
}

/// Returns the set that an expression looks up in.
fn set_of(expr: &Expr) -> Option<&Name> {
    match expr {
        Expr::Lookup(lookup) => Some(&lookup.set),
        Expr::Dynset(dynset) => Some(&dynset.set),
        Expr::Objref(reference) => reference.set.as_ref(),
        _ => None,
    }
}

/// Reads sets, and the elements of some.
fn sets(
    socket: &mut Socket,
    within: &Within,
    has_elements: impl Fn(&read::Set) -> bool,
) -> Result<Vec<(read::Set, Vec<read::Element>)>, Error> {
    let mut list = Vec::new();
    for set in read::sets(socket, within)? {
        let id = TableId::new(set.family, set.table.clone()).set(set.name.clone());
        let elements = if has_elements(&set) { read::elements(socket, &id)? } else { Vec::new() };
        list.push((set, elements));
    }
    Ok(list)
}

/// How often it is read again while others commit.
const TRIES: u32 = 8;
