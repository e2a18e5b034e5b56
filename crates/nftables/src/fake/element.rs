//! Elements: adding and deleting them, and what they refer to.

use std::sync::Arc;

use sluicegate_netlink::Errno;
use sluicegate_netlink::attr::Attribute;
use sluicegate_netlink::message::Flags;

use crate::fake::batch::Work;
use crate::fake::element_attrs::{check_key_end, element_of, expires_of, flags_of, key_of};
use crate::fake::event::{Change, Subject};
use crate::fake::message::{Attrs, Done, Refusal, Request, refusal, refuse};
use crate::fake::pending::{Checks, Deferred};
use crate::fake::set::Set;
use crate::fake::state::{Reference, Table};
use crate::fake::store::{CATCHALL, Clash, Element, ElementData};
use crate::object::SetFlags;
use crate::object::element::wire::*;
use crate::wire::message::*;

/// Handles `NFT_MSG_NEWSETELEM`.
pub(super) fn add(work: &mut Work, request: &Request<'_>) -> Done {
    let attrs = &request.attrs;
    let list = *attrs.need(NFTA_SET_ELEM_LIST_ELEMENTS)?;
    let table = work.state.table(request, NFTA_SET_ELEM_LIST_TABLE)?;
    let named = table.set_named(attrs.get(NFTA_SET_ELEM_LIST_SET)).map(|set| set.handle);
    let handle = match (named, attrs.be32(NFTA_SET_ELEM_LIST_SET_ID)?) {
        (Ok(handle), _) => handle,
        (Err(_), Some(id)) => find_by_id(&work.set_ids, table, id)
            .ok_or(refusal(Errno::ENOENT).at(attrs.get(NFTA_SET_ELEM_LIST_SET)))?,
        (Err(refusal), None) => return Err(refusal.at(attrs.get(NFTA_SET_ELEM_LIST_SET))),
    };
    let at = place(table, handle)?;
    if let Some(set) = table.sets.get(at)
        && !set.bindings.is_empty()
        && set.shape.flags.intersects(SetFlags::CONSTANT | SetFlags::ANONYMOUS)
    {
        return refuse(Errno::EBUSY);
    }
    for item in list.attributes() {
        let item = item.map_err(|_| refusal(Errno::EINVAL))?;
        match add_one(table, at, &item, request.flags.contains(Flags::EXCL)) {
            Ok(changed) => work.changes += usize::from(changed),
            Err((refusal, changed)) => {
                work.changes += usize::from(changed);
                return Err(refusal.at(Some(&item)));
            }
        }
    }
    if table.checks == Checks::AtOnce { super::checks::table(table) } else { Ok(()) }
}

/// Handles `NFT_MSG_DELSETELEM` and `NFT_MSG_DESTROYSETELEM`.
pub(super) fn delete(work: &mut Work, request: &Request<'_>) -> Done {
    let attrs = &request.attrs;
    let table = work.state.table(request, NFTA_SET_ELEM_LIST_TABLE)?;
    let attribute = attrs.get(NFTA_SET_ELEM_LIST_SET);
    let set = table.set_named(attribute).map_err(|r| r.at(attribute))?;
    if set.is_anonymous() {
        return refuse(Errno::EOPNOTSUPP);
    }
    if !set.bindings.is_empty() && set.has(SetFlags::CONSTANT) {
        return refuse(Errno::EBUSY);
    }
    let at = place(table, set.handle)?;
    let Some(list) = attrs.get(NFTA_SET_ELEM_LIST_ELEMENTS) else {
        let Some(set) = table.sets.get_mut(at).map(Arc::make_mut) else { return Ok(()) };
        let (handle, deleted) = (set.handle, set.store.clear());
        work.changes += deleted.len();
        for element in deleted {
            release(table, &element);
            record(table, Change::Deleted, handle, &element);
        }
        return Ok(());
    };
    for item in list.attributes() {
        let item = item.map_err(|_| refusal(Errno::EINVAL))?;
        match delete_one(table, at, &item) {
            Ok(()) => work.changes += 1,
            Err(Refusal { errno: Errno::ENOENT, .. }) if request.command == NFT_MSG_DESTROYSETELEM => {}
            Err(refusal) => return Err(refusal.at(Some(&item))),
        }
    }
    Ok(())
}

/// Releases the references of an element.
pub(super) fn release(table: &mut Table, element: &Element) {
    if let Some(reference) = reference(element) {
        table.count(reference, false);
    }
}

/// Returns the chain or object that an element refers to.
pub(super) fn reference(element: &Element) -> Option<Reference> {
    match &element.data {
        ElementData::Verdict(_, Some(chain)) => Some(Reference::Chain(*chain)),
        ElementData::Object(object) => Some(Reference::Object(*object)),
        _ => None,
    }
}

/// Returns the set to which the transaction assigned a number.
pub(super) fn find_by_id(ids: &[(u64, u32, u64)], table: &Table, id: u32) -> Option<u64> {
    ids.iter()
        .rev()
        .find(|(of, number, set)| *of == table.handle && *number == id && table.set(*set).is_some())
        .map(|(_, _, set)| *set)
}

/// Adds an element, and returns whether that changed anything, also for a refusal.
fn add_one(
    table: &mut Table,
    at: usize,
    item: &Attribute<'_>,
    exclusive: bool,
) -> Result<bool, (Refusal, bool)> {
    let unchanged = |refusal: Refusal| (refusal, false);
    let set = table.sets.get(at).ok_or(unchanged(refusal(Errno::ENOENT)))?;
    let element = element_of(table, set, item).map_err(unchanged)?;
    let jumps = matches!(element.data, ElementData::Verdict(_, Some(_)));
    if jumps && set.bindings.iter().any(|binding| binding.map) {
        table.need_checks();
    }
    let refers = reference(&element);
    let expires = if element.time.is_some() { expires_of(item).map_err(unchanged)? } else { 0 };
    let added = table.pending.notify.then(|| element.clone());
    let set = table.sets.get(at).ok_or(unchanged(refusal(Errno::ENOENT)))?;
    let handle = set.handle;
    let new = New { data: element.data.clone(), expires, exclusive };
    let timeout = element.time.map(|(timeout, _)| timeout);
    let set = table.sets.get_mut(at).map(Arc::make_mut).ok_or(unchanged(refusal(Errno::ENOENT)))?;
    match insert(set, element) {
        Ok(full) => {
            if let Some(refers) = refers {
                table.count(refers, true);
            }
            if let Some(element) = added {
                table.record(Change::New, Subject::Element(handle, Box::new(element)));
            }
            if full { Err((refusal(Errno::ENFILE), true)) } else { Ok(true) }
        }
        Err(Clash::Same(existing)) => {
            let Some((left, renewed)) = new.update_existing(&existing, timeout).map_err(unchanged)? else {
                return Ok(false);
            };
            let element = existing.number;
            table.defer(Deferred::Element { set: handle, element, timeout: left.0, left: left.1 });
            record(table, Change::New, handle, &renewed);
            Ok(true)
        }
        Err(Clash::Overlap) => Err((refusal(Errno::EEXIST), false)),
        Err(Clash::Mark) => Ok(false),
        Err(Clash::Backwards) => Err((refusal(Errno::EINVAL), false)),
    }
}

/// Inserts an element, and returns whether the set then exceeds its size.
fn insert(set: &mut Set, element: Element) -> Result<bool, Clash<Box<Element>>> {
    if element.is_catch_all() {
        return set
            .store
            .insert_catch_all(element)
            .map_or(Ok(false), |existing| Err(Clash::Same(Box::new(existing.clone()))));
    }
    match set.store.insert(element) {
        Ok(()) => {
            let limit = (set.size as usize).saturating_add(set.store.size_allowance());
            Ok(set.size > 0 && set.store.live() > limit)
        }
        Err(Clash::Same(slot)) => {
            let existing = set.store.get(&slot).cloned().map(Box::new);
            Err(existing.map_or(Clash::Overlap, Clash::Same))
        }
        Err(Clash::Overlap) => Err(Clash::Overlap),
        Err(Clash::Mark) => Err(Clash::Mark),
        Err(Clash::Backwards) => Err(Clash::Backwards),
    }
}

/// The attributes of a new element that matter if it exists already.
struct New {
    data: ElementData,
    /// The remaining lifetime in milliseconds; 0 if none is given.
    expires: u64,
    exclusive: bool,
}

impl New {
    /// Handles an element that exists already. That is an error only with `NLM_F_EXCL` or if it maps to
    /// something else. Its timeouts are renewed when the transaction commits. Returns the new ones, with the
    /// element.
    fn update_existing(
        &self,
        existing: &Element,
        timeout: Option<u64>,
    ) -> Result<Option<(Times, Element)>, Refusal> {
        if existing.data != self.data || self.exclusive {
            return refuse(Errno::EEXIST);
        }
        let (Some((existing_timeout, existing_left)), Some(wanted)) = (existing.time, timeout) else {
            return Ok(None);
        };
        let timeout = (wanted != existing_timeout).then_some(wanted);
        let left = Some(self.expires).filter(|left| *left > 0).or(timeout).filter(|left| *left > 0);
        if timeout.is_none() && left.is_none() {
            return Ok(None);
        }
        let mut renewed = existing.clone();
        renewed.time = Some((timeout.unwrap_or(existing_timeout), left.unwrap_or(existing_left)));
        Ok(Some(((timeout, left), renewed)))
    }
}

/// A new timeout and remaining lifetime, in milliseconds.
type Times = (Option<u64>, Option<u64>);

fn record(table: &mut Table, change: Change, set: u64, element: &Element) {
    if table.pending.notify {
        table.record(change, Subject::Element(set, Box::new(element.clone())));
    }
}

fn delete_one(table: &mut Table, at: usize, item: &Attribute<'_>) -> Done {
    let set = table.sets.get(at).ok_or(refusal(Errno::ENOENT))?;
    let attrs = Attrs::nested(Some(item))?;
    let flags = flags_of(set, &attrs)?;
    if !attrs.has(NFTA_SET_ELEM_KEY) && flags & CATCHALL == 0 {
        return refuse(Errno::EINVAL);
    }
    check_key_end(set, &attrs, flags)?;
    let key = key_of(set, &attrs, NFTA_SET_ELEM_KEY)?.unwrap_or_default();
    let wanted = Element::new(key, key_of(set, &attrs, NFTA_SET_ELEM_KEY_END)?, flags);
    let set = table.sets.get_mut(at).map(Arc::make_mut).ok_or(refusal(Errno::ENOENT))?;
    let deleted = if wanted.is_catch_all() { set.store.catch_all.take() } else { set.store.delete(&wanted) };
    let (handle, deleted) = (set.handle, deleted.ok_or(refusal(Errno::ENOENT))?);
    release(table, &deleted);
    record(table, Change::Deleted, handle, &deleted);
    Ok(())
}

fn place(table: &Table, handle: u64) -> Result<usize, Refusal> {
    table.place_of_set(handle).ok_or(refusal(Errno::ENOENT))
}
