//! Compares one table: it is created, changed in place, or replaced as a whole.

use crate::compile::lower::Intervals;
use crate::error::Error;
use crate::listing::TableContent;
use crate::name::{Comment, Name};
use crate::object::{Table, TableFlags};
use crate::read;
use crate::reconcile::body::Bodies;
use crate::reconcile::kernel::Kernel;
use crate::reconcile::plan::Plan;
use crate::reconcile::set::too_long;
use crate::reconcile::wanted::Wanted;
use crate::reconcile::{Difference, Options, Reason};

/// Creates a table that does not exist.
pub(super) fn create(content: &TableContent, out: &mut Difference) -> Result<(), Error> {
    let wanted = Wanted::new(content)?;
    let (none, nothing) = (Intervals::new(), |_: &Name| false);
    let bodies = Bodies { family: content.table.id.family, defines_state: &nothing };
    for rule in content.chains.iter().flat_map(|(_, rules)| rules) {
        // Only to check that the rule can be encoded: the error names the rule.
        bodies.wanted(&wanted.lower(rule, &none)?, None, &mut Vec::new()).map_err(too_long)?;
    }
    out.added.tables += 1;
    out.added.chains += content.chains.len();
    out.added.rules += content.chains.iter().map(|(_, rules)| rules.len()).sum::<usize>();
    out.added.sets += content.sets.len();
    out.added.elements += content.sets.iter().map(|(_, elements)| elements.len()).sum::<usize>();
    out.added.objects += content.objects.len();
    out.added.flowtables += content.flowtables.len();
    out.transaction.append(content.to_transaction());
    Ok(())
}

/// Compares a table with the existing one. With a reason, the whole table is replaced.
pub(super) fn compare(
    content: &TableContent,
    kernel: &Kernel<'_>,
    options: &Options<'_>,
    whole: Option<Reason>,
    out: &mut Difference,
) -> Result<(), Error> {
    let wanted = Wanted::new(content)?;
    let plan = |whole: Option<Reason>| Plan::new(&wanted, kernel, options, whole).parts();
    let part = match (whole, fate(&content.table, kernel.table)) {
        (Some(reason), _) | (None, Action::Replaced(reason)) => plan(Some(reason))?.finish(false),
        (None, Action::Same) => plan(None)?.finish(false),
        (None, Action::Toggled) => match plan(None)? {
            hooks if hooks.adds_hooks => plan(Some(Reason::Dormant))?.finish(false),
            rest => rest.finish(true),
        },
    };
    out.append(part);
    Ok(())
}

/// The action for the table itself.
enum Action {
    Same,
    /// Its flag `dormant` is set or cleared.
    Toggled,
    Replaced(Reason),
}

fn fate(wanted: &Table, kernel: &read::Table) -> Action {
    let differ = wanted.flags ^ kernel.flags;
    if wanted.comment != kernel.comment().map(|text| Comment::from_kernel(&text)) {
        return Action::Replaced(Reason::Comment);
    }
    // The kernel does not change the flags of a table with an owner.
    let can_toggle = differ == TableFlags::DORMANT && !wanted.flags.contains(TableFlags::OWNER);
    match (differ.is_empty(), can_toggle) {
        (true, _) => Action::Same,
        (false, true) => Action::Toggled,
        (false, false) => Action::Replaced(Reason::Flags),
    }
}
