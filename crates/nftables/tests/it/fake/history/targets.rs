//! What is deleted, emptied and renamed.

use sluicegate_nftables::expr::ObjectKind;
use sluicegate_nftables::*;

use super::Bytes;
use super::chains::{chain_name, devices};
use super::objects::{KINDS_OF_OBJECTS, object_id};
use super::sets::{KINDS, set_id};
use crate::kernel::cases::name;

pub(super) fn target(t: &TableId, bytes: &mut Bytes<'_>) -> Target {
    match bytes.below(20) {
        0 => t.clone().into(),
        1..=4 => t.chain(chain_name(bytes)).into(),
        5..=8 => RuleId { chain: t.chain(chain_name(bytes)), handle: bytes.handle() }.into(),
        9..=12 => set_id(t, bytes.below(KINDS)).into(),
        13 | 14 => object_id(t, bytes).into(),
        15 => t.chain(chain_name(bytes)).devices(devices(bytes)).into(),
        16 => t.flowtable(name("f")).into(),
        _ => by_handle(t, bytes).into(),
    }
}

fn by_handle(t: &TableId, bytes: &mut Bytes<'_>) -> HandleId {
    let handle = bytes.handle();
    match bytes.below(8) {
        // Which handles tables have is chance.
        0 => HandleId::Table(t.family, 1 << 60),
        1..=3 => HandleId::Chain(t.clone(), handle),
        4 | 5 => HandleId::Set(t.clone(), handle),
        6 => HandleId::Flowtable(t.clone(), handle),
        _ => HandleId::Stateful(t.clone(), bytes.pick::<ObjectKind>(&KINDS_OF_OBJECTS), handle),
    }
}

pub(super) fn flush(tx: &mut Transaction, t: TableId, bytes: &mut Bytes<'_>) {
    match bytes.below(8) {
        0 => tx.flush(Flush::Ruleset(bytes.pick(&[
            Family::UNSPEC,
            Family::IP,
            Family::INET,
            Family::IP6,
            Family::NETDEV,
        ]))),
        1 => tx.flush(t),
        2..=4 => tx.flush(t.chain(chain_name(bytes))),
        _ => tx.flush(set_id(&t, bytes.below(KINDS))),
    };
}

/// To names that nothing adds: the kernel lets one transaction rename a chain and make another of that name,
/// which then are two.
pub(super) fn rename(tx: &mut Transaction, t: &TableId, bytes: &mut Bytes<'_>) {
    let old = t.chain(chain_name(bytes));
    let new = name(bytes.pick(&["e", "f"]));
    // Without a handle, nothing is sent where there is no such chain.
    if bytes.one_in(4) {
        tx.rename(old, new)
    } else {
        tx.rename_handle(old, u64::from(bytes.below(12)) + 1, new)
    };
}
