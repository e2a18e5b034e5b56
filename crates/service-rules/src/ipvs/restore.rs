//! The iptables rules: our chains, which are restored by one input, and the jumps to them among other rules.
//!
//! Our own chains are rewritten, so that their current rules need not be read. Where no service changes, and
//! where everything is compared, `iptables-save` shows whether the jumps exist: the `-C` of
//! `iptables-restore` fails alike for a rule that is missing and for a kernel without memory.

use sluicegate_iptables_save::restore::Tool;
use sluicegate_iptables_save::{Entry, Save, State, diff};

use super::{Planner, is_ours, is_ours_alone, jumps};
use crate::Error;
use crate::iptables::{HOW, change_jumps, iptables, list, removal, take_jumps, tool_family};

/// Restores an input, and returns its size in bytes.
pub(super) fn restore(tool: &Tool, input: &Save<'_>) -> Result<usize, Error> {
    if input.items.is_empty() {
        return Ok(0);
    }
    let text = input.to_string();
    tool.apply_text(&text, HOW).map_err(iptables("programming the rules"))?;
    Ok(text.len())
}

/// Makes the jumps that are missing and deletes stale ones; how many.
pub(super) fn ensure_jumps(tool: &Tool) -> Result<usize, Error> {
    let input = jump_changes(tool)?;
    if !input.items.is_empty() {
        tool.apply_text(&input.to_string(), HOW).map_err(iptables("making the jumps to our chains"))?;
    }
    Ok(input.tables().map(|table| table.entries.len()).sum())
}

/// Returns whether every jump is there, and no stale one.
pub(super) fn has_jumps(tool: &Tool) -> Result<bool, Error> {
    Ok(jump_changes(tool)?.items.is_empty())
}

fn jump_changes(tool: &Tool) -> Result<Save<'static>, Error> {
    let looking = iptables("looking for the jumps to our chains");
    let text = list(tool).map_err(&looking)?;
    let current = Save::parse(&text).map_err(&looking)?;
    let state = State::of_family(&current, tool.family()).map_err(&looking)?;
    let mut input = Save::default();
    change_jumps(&mut input, &state, jumps(), is_ours).map_err(&looking)?;
    Ok(input)
}

/// Returns the input that changes the current rules and jumps into those of the plan. Runs `iptables-save`.
pub(super) fn difference(tool: &Tool, planner: &Planner) -> Result<Save<'static>, Error> {
    let comparing = iptables("comparing with the plan");
    let text = list(tool).map_err(iptables("listing what there is"))?;
    let current = Save::parse(&text).map_err(iptables("reading iptables-save"))?;
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

/// Removes our chains and the jumps to them, and returns the number of chains. Removes nothing if there is no
/// chain that only this mode has: the others may belong to iptables mode.
pub(super) fn remove(tool: &Tool) -> Result<usize, Error> {
    let text = list(tool).map_err(iptables("listing what there is"))?;
    let mut current = Save::parse(&text).map_err(iptables("reading iptables-save"))?;
    let marked =
        current.tables().any(|table| table.chains().any(|chain| is_ours_alone(table.name(), chain.name())));
    if !marked {
        return Ok(0);
    }
    let input = removal(&mut current, is_ours).map_err(iptables("finding what is ours"))?;
    tool.apply_text(&input.to_string(), HOW).map_err(iptables("removing what is ours"))?;
    let chains = input.tables().flat_map(|table| &table.entries);
    Ok(chains.filter(|entry| matches!(entry, Entry::Command(_))).count())
}
