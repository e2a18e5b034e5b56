//! Sets and maps: how they are created, checked and deleted.

use std::sync::Arc;

use sluicegate_netlink::Errno;
use sluicegate_netlink::message::Flags;

use crate::Family;
use crate::expr::data::NFT_DATA_VERDICT;
use crate::fake::batch::Work;
use crate::fake::element_exprs::{self, Carriers};
use crate::fake::event::{Change, Subject};
use crate::fake::message::{Done, Refusal, Request, refusal, refuse};
use crate::fake::pending::Deferred;
use crate::fake::shape::{self, Shape};
use crate::fake::state::Table;
use crate::fake::store::{SetBackend, Store};
use crate::name::Name;
use crate::object::SetFlags;
use crate::object::set::wire::*;
use crate::wire::message::*;

/// A set or map.
#[derive(Debug, Clone)]
pub(super) struct Set {
    pub(super) name: Name,
    pub(super) handle: u64,
    pub(super) shape: Shape,
    pub(super) policy: u32,
    pub(super) timeout: u64,
    pub(super) gc_interval: u32,
    /// The maximum number of elements as the kernel counts them, an interval as two; 0 for no limit.
    pub(super) size: u32,
    /// Whether the kernel uses the resizable hash table (`nft_set_rhash`).
    pub(super) resizable: bool,
    pub(super) user_data: Vec<u8>,
    /// The number of rules that use the set.
    pub(super) uses: u32,
    pub(super) bindings: Vec<Binding>,
    pub(super) store: Store,
    /// Whether the transaction in progress created it.
    pub(super) is_new: bool,
}

/// The use of a set by a rule.
#[derive(Debug, Clone)]
pub(super) struct Binding {
    pub(super) rule: u64,
    /// Whether the rule uses the map's values.
    pub(super) map: bool,
    /// Whether the transaction in progress deletes the rule.
    pub(super) rule_deleted: bool,
}

impl Set {
    pub(super) fn has(&self, flag: SetFlags) -> bool {
        self.shape.flags.contains(flag)
    }

    pub(super) fn is_anonymous(&self) -> bool {
        self.has(SetFlags::ANONYMOUS)
    }

    pub(super) fn is_verdict_map(&self) -> bool {
        self.has(SetFlags::MAP) && self.shape.data_type == NFT_DATA_VERDICT
    }

    /// Returns whether the kernel can garbage-collect elements by their expressions, which `ct count` needs.
    pub(super) fn supports_gc(&self) -> bool {
        self.shape.supports_gc(self.resizable)
    }

    /// Returns the size that the user gave.
    pub(super) fn user_size(&self) -> u32 {
        if let SetBackend::Intervals { .. } = self.store.backend { self.size / 2 } else { self.size }
    }
}

/// Handles `NFT_MSG_NEWSET`.
pub(super) fn add(work: &mut Work, request: &Request<'_>) -> Done {
    let attrs = &request.attrs;
    if [NFTA_SET_TABLE, NFTA_SET_NAME, NFTA_SET_KEY_LEN, NFTA_SET_ID].iter().any(|kind| !attrs.has(*kind)) {
        return refuse(Errno::EINVAL);
    }
    let mut shape = shape::read(attrs)?;
    let policy = attrs.be32(NFTA_SET_POLICY)?.unwrap_or(0);
    let (timeout, gc_interval) = shape::times(attrs, shape.flags)?;
    if policy > 1 {
        return refuse(Errno::EOPNOTSUPP);
    }
    let size = shape::describe(attrs, &mut shape)?;
    let name_attr = attrs.get(NFTA_SET_NAME);
    let name = attrs.name(NFTA_SET_NAME)?.ok_or(refusal(Errno::EINVAL))?;
    let table = work.state.table(request, NFTA_SET_TABLE)?;
    let family = Family(table.family);
    if let Ok(existing) = table.set_named(name_attr) {
        if request.flags.contains(Flags::EXCL) {
            return Err(refusal(Errno::EEXIST).at(name_attr));
        }
        if request.flags.contains(Flags::REPLACE) || existing.is_anonymous() {
            return refuse(Errno::EOPNOTSUPP);
        }
        shape.exprs = element_exprs::of_set(
            Carriers { family, supports_gc: existing.supports_gc(), all: &[] },
            attrs,
            shape.flags,
        )?;
        if !existing.shape.is_same(&shape) {
            return Err(refusal(Errno::EEXIST).at(name_attr));
        }
        let size = kernel_size(&existing.store.backend, size);
        let set = existing.handle;
        table.defer(Deferred::Set { set, timeout, gc_interval, size });
        table.record(Change::New, Subject::Set(set));
        work.changes += 1;
        return Ok(());
    }
    if !request.flags.contains(Flags::CREATE) {
        return refuse(Errno::ENOENT);
    }
    let backend = shape.backend().ok_or(refusal(Errno::EOPNOTSUPP))?;
    let name = allocate_name(table, &name)?;
    let size = kernel_size(&backend, size);
    let carries = attrs.has(NFTA_SET_EXPR) || attrs.has(NFTA_SET_EXPRESSIONS);
    let resizable = shape.resizable(size, carries);
    shape.exprs = element_exprs::of_set(
        Carriers { family, supports_gc: shape.supports_gc(resizable), all: &[] },
        attrs,
        shape.flags,
    )?;
    let handle = table.next_handle();
    let set = Set {
        name,
        handle,
        policy,
        timeout,
        gc_interval,
        size,
        resizable,
        user_data: attrs.bytes(NFTA_SET_USERDATA),
        uses: 0,
        bindings: Vec::new(),
        store: Store::new(backend),
        shape,
        is_new: true,
    };
    let table_handle = table.handle;
    table.sets.push(Arc::new(set));
    table.record(Change::New, Subject::Set(handle));
    let id = attrs.be32(NFTA_SET_ID)?.unwrap_or(0);
    work.set_ids.push((table_handle, id, handle));
    work.changes += 1;
    Ok(())
}

/// Handles `NFT_MSG_DELSET` and `NFT_MSG_DESTROYSET`.
pub(super) fn delete(work: &mut Work, request: &Request<'_>) -> Done {
    let attrs = &request.attrs;
    if request.family == 0 {
        return refuse(Errno::EAFNOSUPPORT);
    }
    let table = work.state.table(request, NFTA_SET_TABLE)?;
    let (attribute, found) = match attrs.be64(NFTA_SET_HANDLE)? {
        Some(handle) => (attrs.get(NFTA_SET_HANDLE), table.set(handle).ok_or(refusal(Errno::ENOENT))),
        None => (attrs.get(NFTA_SET_NAME), table.set_named(attrs.get(NFTA_SET_NAME))),
    };
    let set = match found {
        Ok(set) => set,
        Err(Refusal { errno: Errno::ENOENT, .. }) if request.command == NFT_MSG_DESTROYSET => return Ok(()),
        Err(refusal) => return Err(refusal.at(attribute)),
    };
    let filled = request.flags.contains(Flags::NONREC) && set.store.live() > 0;
    if set.uses > 0 || filled {
        return Err(refusal(Errno::EBUSY).at(attribute));
    }
    let handle = set.handle;
    table.record(Change::Deleted, Subject::Set(handle));
    remove(table, handle);
    work.changes += 1;
    Ok(())
}

/// Removes a set from its table, and releases the references of its elements.
pub(super) fn remove(table: &mut Table, handle: u64) {
    let Some(at) = table.place_of_set(handle) else { return };
    let set = table.sets.remove(at);
    for element in set.store.iter() {
        super::element::release(table, element);
    }
    if table.pending.notify {
        table.pending.deleted.sets.push(set);
    }
}

fn kernel_size(backend: &SetBackend, size: u32) -> u32 {
    if let SetBackend::Intervals { .. } = backend { size.wrapping_mul(2) } else { size }
}

/// Returns the name of a new set, with `%d` replaced by the lowest free number.
fn allocate_name(table: &Table, wanted: &Name) -> Result<Name, Refusal> {
    let Some((before, after)) = wanted.as_str().split_once('%') else { return Ok(wanted.clone()) };
    let Some(after) = after.strip_prefix('d').filter(|after| !after.contains('%')) else {
        return refuse(Errno::EINVAL);
    };
    if wanted.as_str().len() >= MAX_ANONYMOUS {
        return refuse(Errno::EINVAL);
    }
    let number = |set: &Arc<Set>| set.name.as_str().strip_prefix(before)?.parse::<u32>().ok();
    let taken: std::collections::HashSet<u32> = table.sets.iter().filter_map(number).collect();
    let free = (0..).find(|number| !taken.contains(number)).ok_or(refusal(Errno::ENFILE))?;
    Ok(Name::from_kernel(&format!("{before}{free}{after}")))
}

/// `NFT_SET_MAX_ANONLEN`
const MAX_ANONYMOUS: usize = 16;
