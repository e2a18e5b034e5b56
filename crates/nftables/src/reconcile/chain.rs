//! Compares chains and flowtables, and determines which differences can be changed in place.

use std::collections::HashSet;

use crate::listing::devices_of;
use crate::name::{Comment, InterfaceName};
use crate::object::{Chain, Flowtable, FlowtableFlags, Policy};
use crate::read::{self, ChainFlags};
use crate::reconcile::Reason;

/// The action for a wanted chain or flowtable that exists already.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Action {
    Same,
    /// It is added again, after these devices were deleted, to change its policy or flags or to add devices.
    Updated {
        again: bool,
        deleted: Vec<InterfaceName>,
    },
    Replaced(Reason),
}

impl Action {
    /// Returns the reason for a replacement. If the whole table is replaced, the reason does not matter.
    pub(super) fn reason(self) -> Reason {
        match self {
            Self::Replaced(reason) => reason,
            Self::Same | Self::Updated { .. } => Reason::Flags,
        }
    }
}

/// Compares a chain with the existing one.
pub(super) fn compare(wanted: &Chain, kernel: &read::Chain) -> Action {
    let comment = kernel.comment().map(|text| Comment::from_kernel(&text));
    let (base, hook) = match (&wanted.base, &kernel.hook) {
        (None, None) if wanted.comment == comment => return Action::Same,
        (None, None) => return Action::Replaced(Reason::Comment),
        (Some(base), Some(hook)) => (base, hook),
        _ => return Action::Replaced(Reason::ChainType),
    };
    let family = wanted.id.table.family;
    let same = [
        (kernel.kind.as_deref() == Some(base.kind.name()), Reason::ChainType),
        (base.hook.number(family) == Some(hook.number), Reason::Hook),
        (base.priority.0 == hook.priority, Reason::Priority),
        (base.offload == kernel.flags.contains(ChainFlags::HW_OFFLOAD), Reason::Flags),
        (wanted.comment == comment, Reason::Comment),
    ];
    if let Some((_, reason)) = same.into_iter().find(|(same, _)| !same) {
        return Action::Replaced(reason);
    }
    let policy = base.policy.unwrap_or(Policy::Accept).number() == kernel.policy.unwrap_or(ACCEPT);
    let devices = Devices::compare(&base.devices, &hook.devices);
    devices.fate(!policy)
}

/// Returns the chain with an explicit policy: without one, the kernel would keep its own.
pub(super) fn update(wanted: &Chain) -> Chain {
    let mut chain = wanted.clone();
    if let Some(base) = &mut chain.base {
        base.policy.get_or_insert(Policy::Accept);
    }
    chain
}

/// Compares a flowtable with the existing one.
pub(super) fn compare_flowtable(wanted: &Flowtable, kernel: &read::Flowtable) -> Action {
    if wanted.priority.0 != kernel.priority {
        return Action::Replaced(Reason::Priority);
    }
    let differ = wanted.flags ^ kernel.flags;
    if !(differ - FlowtableFlags::COUNTER).is_empty() {
        return Action::Replaced(Reason::Flags);
    }
    Devices::compare(&wanted.devices, &kernel.devices).fate(!differ.is_empty())
}

struct Devices {
    added: bool,
    deleted: Vec<InterfaceName>,
}

impl Devices {
    fn compare(wanted: &[InterfaceName], kernel: &[String]) -> Self {
        let kernel = devices_of(kernel);
        let (ours, theirs): (HashSet<_>, HashSet<_>) = (wanted.iter().collect(), kernel.iter().collect());
        let deleted = kernel.iter().filter(|device| !ours.contains(device)).cloned().collect();
        Self { added: wanted.iter().any(|device| !theirs.contains(device)), deleted }
    }

    fn fate(self, differs: bool) -> Action {
        let Self { added, deleted } = self;
        if !differs && !added && deleted.is_empty() {
            return Action::Same;
        }
        Action::Updated { again: differs || added, deleted }
    }
}

/// `NF_ACCEPT`
const ACCEPT: u32 = 1;
