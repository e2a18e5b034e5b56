//! Elements: what one may say in its set, and what it refers to.

use std::sync::Arc;

use sluicegate_netlink::attr::Attribute;
use sluicegate_netlink::message::Flags;

use crate::fake::batch::Work;
use crate::fake::element_attrs::{KEY, KEY_END, check_key_end, element_of, expires_of, flags_of, key_of};
use crate::fake::event::{Change, What};
use crate::fake::message::{
    Attrs, Done, EBUSY, EEXIST, EINVAL, ENFILE, ENOENT, EOPNOTSUPP, Refusal, Request, command, refusal,
    refuse,
};
use crate::fake::pending::{Checks, Later};
use crate::fake::set::Set;
use crate::fake::state::{Reference, Table};
use crate::fake::store::{CATCHALL, Clash, Element, ElementData};
use crate::object::SetFlags;

/// `NFT_MSG_NEWSETELEM`
pub(super) fn add(work: &mut Work, request: &Request<'_>) -> Done {
    let attrs = &request.attrs;
    let list = *attrs.need(LIST_ELEMENTS)?;
    let table = work.state.table(request, LIST_TABLE)?;
    let named = table.set_named(attrs.get(LIST_SET)).map(|set| set.handle);
    let handle = match (named, attrs.be32(LIST_SET_ID)?) {
        (Ok(handle), _) => handle,
        (Err(_), Some(id)) => {
            find_by_id(&work.set_ids, table, id).ok_or(refusal(ENOENT).at(attrs.get(LIST_SET)))?
        }
        (Err(refusal), None) => return Err(refusal.at(attrs.get(LIST_SET))),
    };
    let at = place(table, handle)?;
    if let Some(set) = table.sets.get(at)
        && !set.bindings.is_empty()
        && set.shape.flags.intersects(SetFlags::CONSTANT | SetFlags::ANONYMOUS)
    {
        return refuse(EBUSY);
    }
    for item in list.attributes() {
        let item = item.map_err(|_| refusal(EINVAL))?;
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

/// `NFT_MSG_DELSETELEM`, `NFT_MSG_DESTROYSETELEM`
pub(super) fn delete(work: &mut Work, request: &Request<'_>) -> Done {
    let attrs = &request.attrs;
    let table = work.state.table(request, LIST_TABLE)?;
    let attribute = attrs.get(LIST_SET);
    let set = table.set_named(attribute).map_err(|r| r.at(attribute))?;
    if set.is_anonymous() {
        return refuse(EOPNOTSUPP);
    }
    if !set.bindings.is_empty() && set.has(SetFlags::CONSTANT) {
        return refuse(EBUSY);
    }
    let at = place(table, set.handle)?;
    let Some(list) = attrs.get(LIST_ELEMENTS) else {
        let Some(set) = table.sets.get_mut(at).map(Arc::make_mut) else { return Ok(()) };
        let (handle, gone) = (set.handle, set.store.clear());
        work.changes += gone.len();
        for element in gone {
            release(table, &element);
            tell(table, Change::Gone, handle, &element);
        }
        return Ok(());
    };
    for item in list.attributes() {
        let item = item.map_err(|_| refusal(EINVAL))?;
        match delete_one(table, at, &item) {
            Ok(()) => work.changes += 1,
            Err(Refusal { code: ENOENT, .. }) if request.command == command::DESTROYSETELEM => {}
            Err(refusal) => return Err(refusal.at(Some(&item))),
        }
    }
    Ok(())
}

/// Gives the references of an element back.
pub(super) fn release(table: &mut Table, element: &Element) {
    if let Some(reference) = reference(element) {
        table.count(reference, false);
    }
}

/// What an element refers to.
pub(super) fn reference(element: &Element) -> Option<Reference> {
    match &element.data {
        ElementData::Verdict(_, Some(chain)) => Some(Reference::Chain(*chain)),
        ElementData::Object(object) => Some(Reference::Object(*object)),
        _ => None,
    }
}

/// The set that a transaction has given a number.
pub(super) fn find_by_id(ids: &[(u64, u32, u64)], table: &Table, id: u32) -> Option<u64> {
    ids.iter()
        .rev()
        .find(|(of, number, set)| *of == table.handle && *number == id && table.set(*set).is_some())
        .map(|(_, _, set)| *set)
}

/// Adds one; says whether that changed anything, also where it is refused.
fn add_one(
    table: &mut Table,
    at: usize,
    item: &Attribute<'_>,
    exclusive: bool,
) -> Result<bool, (Refusal, bool)> {
    let not = |refusal: Refusal| (refusal, false);
    let set = table.sets.get(at).ok_or(not(refusal(ENOENT)))?;
    let element = element_of(table, set, item).map_err(not)?;
    let jumps = matches!(element.data, ElementData::Verdict(_, Some(_)));
    if jumps && set.bindings.iter().any(|binding| binding.map) {
        table.need_checks();
    }
    let refers = reference(&element);
    let expires = if element.time.is_some() { expires_of(item).map_err(not)? } else { 0 };
    let told = table.pending.told.then(|| element.clone());
    let set = table.sets.get(at).ok_or(not(refusal(ENOENT)))?;
    let handle = set.handle;
    let new = New { data: element.data.clone(), expires, exclusive };
    let timeout = element.time.map(|(timeout, _)| timeout);
    let set = table.sets.get_mut(at).map(Arc::make_mut).ok_or(not(refusal(ENOENT)))?;
    match insert(set, element) {
        Ok(full) => {
            if let Some(refers) = refers {
                table.count(refers, true);
            }
            if let Some(element) = told {
                table.tell(Change::New, What::Element(handle, Box::new(element)));
            }
            if full { Err((refusal(ENFILE), true)) } else { Ok(true) }
        }
        Err(Clash::Same(held)) => {
            let Some((left, renewed)) = new.again(&held, timeout).map_err(not)? else { return Ok(false) };
            let element = held.number;
            table.later(Later::Element { set: handle, element, timeout: left.0, left: left.1 });
            tell(table, Change::New, handle, &renewed);
            Ok(true)
        }
        Err(Clash::Overlap) => Err((refusal(EEXIST), false)),
        Err(Clash::Mark) => Ok(false),
        Err(Clash::Backwards) => Err((refusal(EINVAL), false)),
    }
}

/// Puts an element in, and says whether the set is over full with it.
fn insert(set: &mut Set, element: Element) -> Result<bool, Clash<Box<Element>>> {
    if element.is_catch_all() {
        return set
            .store
            .insert_catch_all(element)
            .map_or(Ok(false), |held| Err(Clash::Same(Box::new(held.clone()))));
    }
    match set.store.insert(element) {
        Ok(()) => {
            let limit = (set.size as usize).saturating_add(set.store.spare());
            Ok(set.size > 0 && set.store.live() > limit)
        }
        Err(Clash::Same(slot)) => {
            let held = set.store.get(&slot).cloned().map(Box::new);
            Err(held.map_or(Clash::Overlap, Clash::Same))
        }
        Err(Clash::Overlap) => Err(Clash::Overlap),
        Err(Clash::Mark) => Err(Clash::Mark),
        Err(Clash::Backwards) => Err(Clash::Backwards),
    }
}

/// What of the one that is added counts then.
struct New {
    data: ElementData,
    /// How long it is to stay this time; 0 where it does not say.
    expires: u64,
    exclusive: bool,
}

impl New {
    /// It is no fault that it is there already, unless that is asked for or it maps to something else. Its times are renewed, at the end.
    /// Gives the new times, and the element with them.
    fn again(&self, held: &Element, timeout: Option<u64>) -> Result<Option<(Times, Element)>, Refusal> {
        if held.data != self.data || self.exclusive {
            return refuse(EEXIST);
        }
        let (Some((held_timeout, held_left)), Some(wanted)) = (held.time, timeout) else { return Ok(None) };
        let timeout = (wanted != held_timeout).then_some(wanted);
        let left = Some(self.expires).filter(|left| *left > 0).or(timeout).filter(|left| *left > 0);
        if timeout.is_none() && left.is_none() {
            return Ok(None);
        }
        let mut renewed = held.clone();
        renewed.time = Some((timeout.unwrap_or(held_timeout), left.unwrap_or(held_left)));
        Ok(Some(((timeout, left), renewed)))
    }
}

/// A new timeout, and how long the element stays this time.
type Times = (Option<u64>, Option<u64>);

fn tell(table: &mut Table, change: Change, set: u64, element: &Element) {
    if table.pending.told {
        table.tell(change, What::Element(set, Box::new(element.clone())));
    }
}

fn delete_one(table: &mut Table, at: usize, item: &Attribute<'_>) -> Done {
    let set = table.sets.get(at).ok_or(refusal(ENOENT))?;
    let attrs = Attrs::nested(Some(item))?;
    let flags = flags_of(set, &attrs)?;
    if !attrs.has(KEY) && flags & CATCHALL == 0 {
        return refuse(EINVAL);
    }
    check_key_end(set, &attrs, flags)?;
    let key = key_of(set, &attrs, KEY)?.unwrap_or_default();
    let wanted = Element::new(key, key_of(set, &attrs, KEY_END)?, flags);
    let set = table.sets.get_mut(at).map(Arc::make_mut).ok_or(refusal(ENOENT))?;
    let gone = if wanted.is_catch_all() { set.store.catch_all.take() } else { set.store.delete(&wanted) };
    let (handle, gone) = (set.handle, gone.ok_or(refusal(ENOENT))?);
    release(table, &gone);
    tell(table, Change::Gone, handle, &gone);
    Ok(())
}

fn place(table: &Table, handle: u64) -> Result<usize, Refusal> {
    table.place_of_set(handle).ok_or(refusal(ENOENT))
}

pub(super) const LIST_TABLE: u16 = 1;
pub(super) const LIST_SET: u16 = 2;
pub(super) const LIST_ELEMENTS: u16 = 3;
const LIST_SET_ID: u16 = 4;
