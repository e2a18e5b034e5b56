//! What came of a transaction, and what is held then, in a form that can be compared.

use std::time::Duration;

use sluicegate_netlink::Transport;
use sluicegate_nftables::*;

use crate::history::Step;

/// The operation, the element in it, the error, and the place that is to blame.
pub(crate) type Refusal = (Option<usize>, Option<usize>, i32, Option<u32>);

/// What came of a transaction.
#[derive(Debug, PartialEq)]
pub(crate) enum Outcome {
    /// By so much the generation moved on.
    Applied(u32),
    /// Each refusal.
    Refused(Vec<Refusal>),
    GenerationChanged,
    /// Before anything was sent.
    Unsayable,
}

impl Outcome {
    pub(crate) fn of(transport: &mut impl Transport, step: &Step) -> Self {
        let before = read::generation(transport).expect("the generation can be asked for").id;
        let generation = step.bound.then_some(if step.stale { before + 1 } else { before });
        let options = ApplyOptions { generation, check: step.check };
        match step.transaction.apply_with(transport, options) {
            Ok(applied) => Self::Applied(applied.generation.wrapping_sub(before)),
            Err(Error::GenerationChanged { .. }) => Self::GenerationChanged,
            Err(Error::Rejected { failures, .. }) => Self::Refused(
                failures.iter().map(|f| (f.operation, f.element, f.error.code, f.error.offset)).collect(),
            ),
            Err(Error::Statement { .. } | Error::Index { .. }) => Self::Unsayable,
            Err(error) => panic!("{error}"),
        }
    }
}

/// All that is held: what is typed, with handles and uses. Times that are left are not compared; how far they are gone is chance.
pub(crate) fn held(ruleset: &read::Ruleset) -> impl std::fmt::Debug + PartialEq + use<> {
    let mut content = ruleset.content();
    for (_, elements) in content.iter_mut().flat_map(|table| &mut table.sets) {
        for element in elements.iter_mut().filter(|element| element.get_expires().is_some()) {
            *element = element.clone().expires(Duration::ZERO);
        }
    }
    let chains: Vec<_> = ruleset.chains.iter().map(|c| (c.name.clone(), c.handle, c.uses, c.flags)).collect();
    let sets: Vec<_> =
        ruleset.sets.iter().map(|(s, e)| (s.name.clone(), s.handle, s.flags, s.size, e.len())).collect();
    let objects: Vec<_> = ruleset.objects.iter().map(|o| (o.name.clone(), o.handle, o.uses)).collect();
    (content, chains, sets, objects)
}
