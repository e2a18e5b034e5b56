//! Sets and maps: how they are made, what they may be, how they go.

use std::sync::Arc;

use sluicegate_netlink::message::Flags;

use crate::Family;
use crate::fake::batch::Work;
use crate::fake::carried::{self, Carriers};
use crate::fake::event::{Change, What};
use crate::fake::message::{
    Done, EAFNOSUPPORT, EBUSY, EEXIST, EINVAL, ENFILE, ENOENT, EOPNOTSUPP, Refusal, Request, command,
    refusal, refuse,
};
use crate::fake::pending::Later;
use crate::fake::shape::{self, Shape, VERDICT};
use crate::fake::state::Table;
use crate::fake::store::{Form, Store};
use crate::name::Name;
use crate::object::SetFlags;

/// A set or map.
#[derive(Debug, Clone)]
pub(super) struct Set {
    pub(super) name: Name,
    pub(super) handle: u64,
    pub(super) shape: Shape,
    pub(super) policy: u32,
    pub(super) timeout: u64,
    pub(super) gc_interval: u32,
    /// How many elements, as the kernel counts them: the two bounds of an interval are two. 0 is no limit.
    pub(super) size: u32,
    /// Whether the kernel keeps it in the hash table that grows.
    pub(super) grows: bool,
    pub(super) user_data: Vec<u8>,
    /// Rules that use it.
    pub(super) uses: u32,
    pub(super) bindings: Vec<Binding>,
    pub(super) store: Store,
    /// Made by the transaction under way.
    pub(super) fresh: bool,
}

/// A rule's use of a set.
#[derive(Debug, Clone)]
pub(super) struct Binding {
    pub(super) rule: u64,
    /// Whether it is the values that are used.
    pub(super) map: bool,
    /// The rule is deleted by the transaction under way.
    pub(super) gone: bool,
}

impl Set {
    pub(super) fn has(&self, flag: SetFlags) -> bool {
        self.shape.flags.contains(flag)
    }

    pub(super) fn is_anonymous(&self) -> bool {
        self.has(SetFlags::ANONYMOUS)
    }

    pub(super) fn is_verdict_map(&self) -> bool {
        self.has(SetFlags::MAP) && self.shape.data_type == VERDICT
    }

    /// Whether what its elements carry can be cleaned up.
    pub(super) fn cleans(&self) -> bool {
        self.shape.cleans(self.grows)
    }

    /// The size as its user gave it.
    pub(super) fn user_size(&self) -> u32 {
        if let Form::Intervals { .. } = self.store.form { self.size / 2 } else { self.size }
    }
}

/// `NFT_MSG_NEWSET`
pub(super) fn add(work: &mut Work, request: &Request<'_>) -> Done {
    let attrs = &request.attrs;
    if [NFTA_SET_TABLE, NFTA_SET_NAME, NFTA_SET_KEY_LEN, NFTA_SET_ID].iter().any(|kind| !attrs.has(*kind)) {
        return refuse(EINVAL);
    }
    let mut shape = shape::read(attrs)?;
    let policy = attrs.be32(NFTA_SET_POLICY)?.unwrap_or(0);
    let (timeout, gc_interval) = shape::times(attrs, shape.flags)?;
    if policy > 1 {
        return refuse(EOPNOTSUPP);
    }
    let size = shape::describe(attrs, &mut shape)?;
    let name_attr = attrs.get(NFTA_SET_NAME);
    let name = attrs.name(NFTA_SET_NAME)?.ok_or(refusal(EINVAL))?;
    let table = work.state.table(request, NFTA_SET_TABLE)?;
    let family = Family(table.family);
    if let Ok(held) = table.set_named(name_attr) {
        if request.flags.contains(Flags::EXCL) {
            return Err(refusal(EEXIST).at(name_attr));
        }
        if request.flags.contains(Flags::REPLACE) || held.is_anonymous() {
            return refuse(EOPNOTSUPP);
        }
        shape.exprs =
            carried::of_set(Carriers { family, cleans: held.cleans(), all: &[] }, attrs, shape.flags)?;
        if !held.shape.is_same(&shape) {
            return Err(refusal(EEXIST).at(name_attr));
        }
        let size = kernel_size(&held.store.form, size);
        let set = held.handle;
        table.later(Later::Set { set, timeout, gc_interval, size });
        table.tell(Change::New, What::Set(set));
        work.changes += 1;
        return Ok(());
    }
    if !request.flags.contains(Flags::CREATE) {
        return refuse(ENOENT);
    }
    let form = shape.form().ok_or(refusal(EOPNOTSUPP))?;
    let name = allocate_name(table, &name)?;
    let size = kernel_size(&form, size);
    let carries = attrs.has(NFTA_SET_EXPR) || attrs.has(NFTA_SET_EXPRESSIONS);
    let grows = shape.grows(size, carries);
    shape.exprs =
        carried::of_set(Carriers { family, cleans: shape.cleans(grows), all: &[] }, attrs, shape.flags)?;
    let handle = table.next_handle();
    let set = Set {
        name,
        handle,
        policy,
        timeout,
        gc_interval,
        size,
        grows,
        user_data: attrs.bytes(NFTA_SET_USERDATA),
        uses: 0,
        bindings: Vec::new(),
        store: Store::new(form),
        shape,
        fresh: true,
    };
    let table_handle = table.handle;
    table.sets.push(Arc::new(set));
    table.tell(Change::New, What::Set(handle));
    let id = attrs.be32(NFTA_SET_ID)?.unwrap_or(0);
    work.set_ids.push((table_handle, id, handle));
    work.changes += 1;
    Ok(())
}

/// `NFT_MSG_DELSET`, `NFT_MSG_DESTROYSET`
pub(super) fn delete(work: &mut Work, request: &Request<'_>) -> Done {
    let attrs = &request.attrs;
    if request.family == 0 {
        return refuse(EAFNOSUPPORT);
    }
    let table = work.state.table(request, NFTA_SET_TABLE)?;
    let (attribute, found) = match attrs.be64(NFTA_SET_HANDLE)? {
        Some(handle) => (attrs.get(NFTA_SET_HANDLE), table.set(handle).ok_or(refusal(ENOENT))),
        None => (attrs.get(NFTA_SET_NAME), table.set_named(attrs.get(NFTA_SET_NAME))),
    };
    let set = match found {
        Ok(set) => set,
        Err(Refusal { code: ENOENT, .. }) if request.command == command::DESTROYSET => return Ok(()),
        Err(refusal) => return Err(refusal.at(attribute)),
    };
    let filled = request.flags.contains(Flags::NONREC) && set.store.live() > 0;
    if set.uses > 0 || filled {
        return Err(refusal(EBUSY).at(attribute));
    }
    let handle = set.handle;
    table.tell(Change::Gone, What::Set(handle));
    remove(table, handle);
    work.changes += 1;
    Ok(())
}

/// Takes a set out of its table, and with it the references of its elements.
pub(super) fn remove(table: &mut Table, handle: u64) {
    let Some(at) = table.place_of_set(handle) else { return };
    let set = table.sets.remove(at);
    for element in set.store.iter() {
        super::element::release(table, element);
    }
    if table.pending.told {
        table.pending.gone.sets.push(set);
    }
}

fn kernel_size(form: &Form, size: u32) -> u32 {
    if let Form::Intervals { .. } = form { size.wrapping_mul(2) } else { size }
}

/// A name with `%d` gets the lowest free number.
fn allocate_name(table: &Table, wanted: &Name) -> Result<Name, Refusal> {
    let Some((before, after)) = wanted.as_str().split_once('%') else { return Ok(wanted.clone()) };
    let Some(after) = after.strip_prefix('d').filter(|after| !after.contains('%')) else {
        return refuse(EINVAL);
    };
    if wanted.as_str().len() >= MAX_ANONYMOUS {
        return refuse(EINVAL);
    }
    let number = |set: &Arc<Set>| set.name.as_str().strip_prefix(before)?.parse::<u32>().ok();
    let taken: std::collections::HashSet<u32> = table.sets.iter().filter_map(number).collect();
    let free = (0..).find(|number| !taken.contains(number)).ok_or(refusal(ENFILE))?;
    Ok(Name::held(&format!("{before}{free}{after}")))
}

/// `NFT_SET_MAX_ANONLEN`
const MAX_ANONYMOUS: usize = 16;

pub(super) const NFTA_SET_TABLE: u16 = 1;
pub(super) const NFTA_SET_NAME: u16 = 2;
pub(super) const NFTA_SET_FLAGS: u16 = 3;
pub(super) const NFTA_SET_KEY_TYPE: u16 = 4;
pub(super) const NFTA_SET_KEY_LEN: u16 = 5;
pub(super) const NFTA_SET_DATA_TYPE: u16 = 6;
pub(super) const NFTA_SET_DATA_LEN: u16 = 7;
pub(super) const NFTA_SET_POLICY: u16 = 8;
pub(super) const NFTA_SET_DESC: u16 = 9;
const NFTA_SET_ID: u16 = 10;
pub(super) const NFTA_SET_TIMEOUT: u16 = 11;
pub(super) const NFTA_SET_GC_INTERVAL: u16 = 12;
pub(super) const NFTA_SET_USERDATA: u16 = 13;
pub(super) const NFTA_SET_OBJ_TYPE: u16 = 15;
pub(super) const NFTA_SET_HANDLE: u16 = 16;
pub(super) const NFTA_SET_EXPR: u16 = 17;
pub(super) const NFTA_SET_EXPRESSIONS: u16 = 18;
pub(super) const NFTA_SET_COUNT: u16 = 20;
pub(super) const NFTA_SET_DESC_SIZE: u16 = 1;
pub(super) const NFTA_SET_DESC_CONCAT: u16 = 2;
pub(super) const NFTA_SET_FIELD_LEN: u16 = 1;
