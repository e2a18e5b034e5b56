//! The iptables rules: our chains, which are restored by one input, and the jumps to them among other rules.
//!
//! Our own chains are rewritten, so that their current rules need not be read. Where no service changes, and
//! where everything is compared, the tables are listed to see whether the jumps exist.

use sluicegate_iptables_save::{Entry, Save, State, diff};

use super::{Planner, is_ours, is_ours_alone, jumps};
use crate::Error;
use crate::iptables::{Tables, change_jumps, iptables, removal, rules, take_jumps, text_len, tool_family};

/// Carries out lines, and returns their size in bytes.
pub(super) fn restore(tables: &mut dyn Tables, input: &Save<'_>) -> Result<usize, Error> {
    if input.items.is_empty() {
        return Ok(0);
    }
    tables.apply(input).map_err(iptables("programming the rules"))?;
    Ok(text_len(input))
}

/// Makes the jumps that are missing and deletes stale ones; how many.
pub(super) fn ensure_jumps(tables: &mut dyn Tables) -> Result<usize, Error> {
    let input = jump_changes(tables)?;
    if !input.items.is_empty() {
        tables.apply(&input).map_err(iptables("making the jumps to our chains"))?;
    }
    Ok(input.tables().map(|table| table.entries.len()).sum())
}

/// Returns whether every jump is there, and no stale one.
pub(super) fn has_jumps(tables: &mut dyn Tables) -> Result<bool, Error> {
    Ok(jump_changes(tables)?.items.is_empty())
}

fn jump_changes(tables: &mut dyn Tables) -> Result<Save<'static>, Error> {
    let current = tables.list().map_err(iptables(JUMPS))?;
    let looking = rules(JUMPS);
    let state = State::of_family(&current, tool_family(tables.family())).map_err(&looking)?;
    let mut input = Save::default();
    change_jumps(&mut input, &state, jumps(), is_ours).map_err(&looking)?;
    Ok(input)
}

/// Returns the lines that change the current rules and jumps into those of the plan.
pub(super) fn difference(tables: &mut dyn Tables, planner: &Planner) -> Result<Save<'static>, Error> {
    let comparing = rules("comparing with the plan");
    let current = tables.list().map_err(iptables("listing what there is"))?;
    let family = tool_family(planner.family());
    let state = State::of_family(&current, family).map_err(&comparing)?;
    let wanted = planner.input();
    let wanted = State::of_family(&wanted, family).map_err(&comparing)?;
    let mut rest = current.clone();
    drop(take_jumps(&mut rest, is_ours));
    let rest = State::of_family(&rest, family).map_err(&comparing)?;
    let mut input = diff(&rest, &wanted, is_ours).map_err(&comparing)?.into_save();
    change_jumps(&mut input, &state, jumps(), is_ours).map_err(&comparing)?;
    Ok(input)
}

/// Removes those of our chains that `goes` selects and the jumps to them, and returns the number of chains.
/// Removes nothing if there is no chain that only this mode has: the others may belong to iptables mode.
pub(super) fn remove(tables: &mut dyn Tables, goes: impl Fn(&str, &str) -> bool) -> Result<usize, Error> {
    let mut current = tables.list().map_err(iptables("listing what there is"))?;
    let marked =
        current.tables().any(|table| table.chains().any(|chain| is_ours_alone(table.name(), chain.name())));
    if !marked {
        return Ok(0);
    }
    let input = removal(&mut current, goes).map_err(rules("finding what is ours"))?;
    tables.apply(&input).map_err(iptables("removing what is ours"))?;
    let chains = input.tables().flat_map(|table| &table.entries);
    Ok(chains.filter(|entry| matches!(entry, Entry::Command(_))).count())
}

const JUMPS: &str = "looking for the jumps to our chains";
