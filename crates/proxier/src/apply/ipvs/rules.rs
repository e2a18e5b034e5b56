//! The iptables part: our chains by one input, and the jumps to them among the rules of others.
//!
//! A sync runs `iptables-restore` and nothing else. It rewrites our own chains, of which nothing needs to be known; whether a
//! jump is there, `-C` tells.

use std::fmt::Write as _;

use sluicegate_iptables_save::restore::Tool;
use sluicegate_iptables_save::{Action, Cause, Entry, Rule, Save, State, diff};

use super::super::iptables::{HOW, add, has_jump, iptables, removal};
use crate::Error;
use crate::plan::iptables::{Jump, tool_family};
use crate::plan::ipvs::{Planner, is_ours, is_ours_alone, jumps};

/// Restores an input; bytes of it.
pub(super) fn restore(tool: &Tool, input: &Save<'_>) -> Result<usize, Error> {
    if input.items.is_empty() {
        return Ok(0);
    }
    let text = input.to_string();
    tool.restore(&text, HOW).map_err(iptables("programming the rules"))?;
    Ok(text.len())
}

/// Makes the jumps that are missing; how many.
pub(super) fn ensure_jumps(tool: &Tool) -> Result<usize, Error> {
    let all: Vec<_> = jumps().collect();
    if are_there(tool, &all)? {
        return Ok(0);
    }
    let mut missing = Vec::new();
    for jump in all {
        if !are_there(tool, std::slice::from_ref(&jump))? {
            missing.push(jump);
        }
    }
    let text = lines("-I", &missing);
    tool.restore(&text, HOW).map_err(iptables("making the jumps to our chains"))?;
    Ok(missing.len())
}

/// Whether every jump is there.
pub(super) fn has_jumps(tool: &Tool) -> Result<bool, Error> {
    are_there(tool, &jumps().collect::<Vec<_>>())
}

/// What would be sent to make the rules of the plan, and its jumps, of what is there. Runs `iptables-save`.
pub(super) fn difference(tool: &Tool, planner: &Planner) -> Result<Save<'static>, Error> {
    let comparing = iptables("comparing with the plan");
    let text = tool.save(None, false).map_err(iptables("listing what there is"))?;
    let current = Save::parse(&text).map_err(iptables("reading iptables-save"))?;
    let family = tool_family(planner.family());
    let state = State::of_family(&current, family).map_err(&comparing)?;
    let wanted = planner.input();
    let wanted = State::of_family(&wanted, family).map_err(&comparing)?;
    let mut input = diff(&state, &wanted, is_ours).map_err(&comparing)?;
    for jump in jumps() {
        if !has_jump(&state, &jump, family).map_err(&comparing)? {
            let rule = Rule::new(Action::Insert(None), jump.from, jump.words).map_err(&comparing)?;
            add(&mut input, jump.table, Entry::Rule(rule)).map_err(&comparing)?;
        }
    }
    Ok(input)
}

/// Removes our chains and the jumps to them; how many chains there were. Nothing without a chain that this mode alone has: the
/// others may be those of iptables mode.
pub(super) fn remove(tool: &Tool) -> Result<usize, Error> {
    let text = tool.save(None, false).map_err(iptables("listing what there is"))?;
    let mut current = Save::parse(&text).map_err(iptables("reading iptables-save"))?;
    let marked =
        current.tables().any(|table| table.chains().any(|chain| is_ours_alone(table.name(), chain.name())));
    if !marked {
        return Ok(0);
    }
    let input = removal(&mut current, is_ours).map_err(iptables("finding what is ours"))?;
    tool.restore(&input.to_string(), HOW).map_err(iptables("removing what is ours"))?;
    let chains = input.tables().flat_map(|table| &table.entries);
    Ok(chains.filter(|entry| matches!(entry, Entry::Command(_))).count())
}

fn are_there(tool: &Tool, jumps: &[Jump]) -> Result<bool, Error> {
    match tool.restore(&lines("-C", jumps), HOW) {
        Ok(()) => Ok(true),
        Err(error)
            if error.cause().is_some_and(|cause| !matches!(cause, Cause::Permission | Cause::Locked)) =>
        {
            Ok(false)
        }
        Err(error) => Err(iptables("looking for the jumps to our chains")(error)),
    }
}

/// One command for each jump.
fn lines(verb: &str, jumps: &[Jump]) -> String {
    let mut text = String::new();
    for table in ["nat", "filter"] {
        let of_table: Vec<_> = jumps.iter().filter(|jump| jump.table == table).collect();
        if of_table.is_empty() {
            continue;
        }
        let _ = writeln!(text, "*{table}");
        for jump in of_table {
            let _ = writeln!(text, "{verb} {} {}", jump.from, jump.words);
        }
        text += "COMMIT\n";
    }
    text
}
