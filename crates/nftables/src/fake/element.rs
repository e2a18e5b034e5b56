//! Elements: what one may say in its set, and what it refers to.

use std::sync::Arc;

use sluicegate_netlink::attr::Attribute;
use sluicegate_netlink::message::Flags;

use crate::expr::VerdictCode;
use crate::expr::data::NFTA_DATA_VALUE;
use crate::fake::batch::Work;
use crate::fake::message::{
    Attrs, Done, EBUSY, EEXIST, EINVAL, ENFILE, ENOENT, EOPNOTSUPP, EOVERFLOW, ERANGE, Refusal, Request,
    command, refusal, refuse,
};
use crate::fake::set::{MAX_VALUE, Set, stateful, stateful_list};
use crate::fake::state::{Checks, Later, Reference, Table};
use crate::fake::store::{CATCHALL, Clash, Element, ElementData, INTERVAL_END};
use crate::read::SetFlags;

/// `NFT_MSG_NEWSETELEM`
pub(super) fn add(work: &mut Work, request: &Request<'_>) -> Done {
    let attrs = &request.attrs;
    let list = *attrs.need(LIST_ELEMENTS)?;
    let table = work.state.table(request.family, attrs, LIST_TABLE)?;
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
    let table = work.state.table(request.family, attrs, LIST_TABLE)?;
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
        let gone = set.store.clear();
        gone.iter().for_each(|element| release(table, element));
        work.changes += gone.len();
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
    let new = New { data: element.data.clone(), expires, exclusive };
    let timeout = element.time.map(|(timeout, _)| timeout);
    let set = table.sets.get_mut(at).map(Arc::make_mut).ok_or(not(refusal(ENOENT)))?;
    match insert(set, element) {
        Ok(full) => {
            if let Some(refers) = refers {
                table.count(refers, true);
            }
            if full { Err((refusal(ENFILE), true)) } else { Ok(true) }
        }
        Err(Clash::Same(held)) => {
            let later = new.again(set.handle, &held, timeout).map_err(not)?;
            let renewed = later.is_some();
            table.pending.later.extend(later);
            Ok(renewed)
        }
        Err(Clash::Overlap) => Err((refusal(EEXIST), false)),
        Err(Clash::Mark) => Ok(false),
        Err(Clash::Backwards) => Err((refusal(EINVAL), false)),
    }
}

/// Puts an element in, and says whether the set is over full with it.
fn insert(set: &mut Set, element: Element) -> Result<bool, Clash<Known>> {
    let known = |held: &Element| Known { number: held.number, data: held.data.clone(), time: held.time };
    if element.is_catch_all() {
        return set.store.insert_catch_all(element).map_or(Ok(false), |held| Err(Clash::Same(known(held))));
    }
    match set.store.insert(element) {
        Ok(()) => {
            let limit = (set.size as usize).saturating_add(set.store.spare());
            Ok(set.size > 0 && set.store.live() > limit)
        }
        Err(Clash::Same(slot)) => {
            let held = set.store.get(&slot).map(known);
            Err(held.map_or(Clash::Overlap, Clash::Same))
        }
        Err(Clash::Overlap) => Err(Clash::Overlap),
        Err(Clash::Mark) => Err(Clash::Mark),
        Err(Clash::Backwards) => Err(Clash::Backwards),
    }
}

/// What of an element counts when it is added again.
struct Known {
    number: u64,
    data: ElementData,
    time: Option<(u64, u64)>,
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
    fn again(&self, set: u64, held: &Known, timeout: Option<u64>) -> Result<Option<Later>, Refusal> {
        if held.data != self.data || self.exclusive {
            return refuse(EEXIST);
        }
        let (Some((held_timeout, _)), Some(wanted)) = (held.time, timeout) else { return Ok(None) };
        let timeout = (wanted != held_timeout).then_some(wanted);
        let left = Some(self.expires).filter(|left| *left > 0).or(timeout).filter(|left| *left > 0);
        let renewed = timeout.is_some() || left.is_some();
        Ok(renewed.then_some(Later::Element { set, element: held.number, timeout, left }))
    }
}

fn expires_of(item: &Attribute<'_>) -> Result<u64, Refusal> {
    Ok(Attrs::nested(Some(item))?.be64(EXPIRATION)?.unwrap_or(0))
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
    release(table, &gone.ok_or(refusal(ENOENT))?);
    Ok(())
}

/// What an element says, checked as far as that goes without the others.
fn element_of(table: &Table, set: &Set, item: &Attribute<'_>) -> Result<Element, Refusal> {
    let attrs = Attrs::nested(Some(item))?;
    let flags = flags_of(set, &attrs)?;
    let end = flags & INTERVAL_END != 0;
    if attrs.has(KEY) == (flags & CATCHALL != 0) {
        return refuse(EINVAL);
    }
    for (kind, data) in [(DATA, SetFlags::MAP), (OBJREF, SetFlags::OBJECT)] {
        let wrong = if set.has(data) { !attrs.has(kind) && !end } else { attrs.has(kind) };
        if wrong {
            return refuse(EINVAL);
        }
    }
    check_key_end(set, &attrs, flags)?;
    let more = [DATA, OBJREF, TIMEOUT, EXPIRATION, USERDATA, EXPR, KEY_END, EXPRESSIONS];
    if end && more.iter().any(|kind| attrs.has(*kind)) {
        return refuse(EINVAL);
    }
    let time = time_of(set, &attrs, end)?;
    let exprs = exprs_of(set, &attrs, end)?;
    let key = key_of(set, &attrs, KEY)?.unwrap_or_default();
    let mut element = Element::new(key, key_of(set, &attrs, KEY_END)?, flags);
    element.time = time;
    element.exprs = exprs;
    if attrs.has(OBJREF) {
        let object = table.object_named(set.shape.object_kind, attrs.get(OBJREF))?;
        element.data = ElementData::Object(object.handle);
    }
    if let Some(data) = attrs.get(DATA) {
        element.data = data_of(table, set, data)?;
    }
    element.user_data = attrs.bytes(USERDATA);
    Ok(element)
}

fn flags_of(set: &Set, attrs: &Attrs<'_>) -> Result<u32, Refusal> {
    let flags = attrs.be32(FLAGS)?.unwrap_or(0);
    if flags & !(INTERVAL_END | CATCHALL) != 0 {
        return refuse(EOPNOTSUPP);
    }
    let end = flags & INTERVAL_END != 0;
    if end && (!set.has(SetFlags::INTERVAL) || flags & CATCHALL != 0) {
        return refuse(EINVAL);
    }
    Ok(flags)
}

fn check_key_end(set: &Set, attrs: &Attrs<'_>, flags: u32) -> Done {
    let wrong = if set.has(SetFlags::CONCAT | SetFlags::INTERVAL) {
        flags & INTERVAL_END != 0 || (attrs.has(KEY_END) && flags & CATCHALL != 0)
    } else {
        attrs.has(KEY_END)
    };
    if wrong { refuse(EINVAL) } else { Ok(()) }
}

/// Its timeout and how long it stays this time; `None` in a set without timeouts. The end of an interval has none of its own.
fn time_of(set: &Set, attrs: &Attrs<'_>, end: bool) -> Result<Option<(u64, u64)>, Refusal> {
    let (timeout, expires) = (attrs.be64(TIMEOUT)?, attrs.be64(EXPIRATION)?);
    if !set.has(SetFlags::TIMEOUT) {
        return if timeout.is_some() || expires.is_some() { refuse(EINVAL) } else { Ok(None) };
    }
    if timeout.is_some_and(|timeout| timeout >= MAX_MILLIS) {
        return refuse(ERANGE);
    }
    let timeout = timeout.unwrap_or(if end { 0 } else { set.timeout });
    match expires {
        Some(_) if timeout == 0 => refuse(EOPNOTSUPP),
        Some(expires) if expires > timeout => refuse(ERANGE),
        None | Some(0) => Ok(Some((timeout, timeout))),
        Some(expires) => Ok(Some((timeout, expires))),
    }
}

/// What it carries: its own, else what its set says that all carry.
fn exprs_of(set: &Set, attrs: &Attrs<'_>, end: bool) -> Result<Vec<crate::expr::Expr>, Refusal> {
    let wanted = &set.shape.exprs;
    let exprs = if let Some(one) = attrs.get(EXPR) {
        if wanted.len() > 1 {
            return refuse(EOPNOTSUPP);
        }
        vec![stateful(one, set.shape.flags)?]
    } else if let Some(list) = attrs.get(EXPRESSIONS) {
        let exprs = stateful_list(list, set.shape.flags)?;
        if !wanted.is_empty() && exprs.len() > wanted.len() {
            return refuse(super::message::E2BIG);
        }
        exprs
    } else {
        return Ok(if end { Vec::new() } else { wanted.clone() });
    };
    let same = exprs.len() == wanted.len() && exprs.iter().zip(wanted).all(|(a, b)| a.name() == b.name());
    if wanted.is_empty() || same { Ok(exprs) } else { refuse(EOPNOTSUPP) }
}

fn key_of(set: &Set, attrs: &Attrs<'_>, kind: u16) -> Result<Option<Vec<u8>>, Refusal> {
    attrs.get(kind).map(|key| value_of(key, set.shape.key_len)).transpose()
}

/// Bytes, just so many.
fn value_of(attribute: &Attribute<'_>, len: usize) -> Result<Vec<u8>, Refusal> {
    let data = Attrs::nested(Some(attribute))?;
    let value = data.need(NFTA_DATA_VALUE)?.payload;
    if value.len() > MAX_VALUE {
        return refuse(EOVERFLOW);
    }
    if value.len() != len || value.is_empty() {
        return refuse(EINVAL);
    }
    Ok(value.to_vec())
}

fn data_of(table: &Table, set: &Set, attribute: &Attribute<'_>) -> Result<ElementData, Refusal> {
    let data = Attrs::nested(Some(attribute))?;
    if !set.is_verdict_map() {
        return value_of(attribute, set.shape.data_len).map(ElementData::Value);
    }
    if data.has(NFTA_DATA_VALUE) {
        return refuse(EINVAL);
    }
    let verdict = data.need(NFTA_DATA_VERDICT)?;
    let (code, chain) = verdict_of(table, verdict, |_| None)?;
    if chain.and_then(|chain| table.chain(chain)).is_some_and(|c| c.flags & super::chain::BINDING != 0) {
        return refuse(EINVAL);
    }
    Ok(ElementData::Verdict(code, chain))
}

/// A verdict and the chain that it leads to.
pub(super) fn verdict_of(
    table: &Table,
    attribute: &Attribute<'_>,
    by_id: impl FnOnce(u32) -> Option<u64>,
) -> Result<(u32, Option<u64>), Refusal> {
    let attrs = Attrs::nested(Some(attribute))?;
    let code = attrs.be32(NFTA_VERDICT_CODE)?.ok_or(refusal(EINVAL))?;
    match VerdictCode(code) {
        VerdictCode::ACCEPT
        | VerdictCode::DROP
        | VerdictCode::CONTINUE
        | VerdictCode::BREAK
        | VerdictCode::RETURN => Ok((code, None)),
        VerdictCode::JUMP | VerdictCode::GOTO => {
            let chain = match (attrs.get(NFTA_VERDICT_CHAIN), attrs.be32(NFTA_VERDICT_CHAIN_ID)?) {
                (name @ Some(_), _) => table.chain_named(name)?,
                (None, Some(id)) => {
                    by_id(id).and_then(|handle| table.chain(handle)).ok_or(refusal(ENOENT))?
                }
                (None, None) => return refuse(EINVAL),
            };
            if chain.base.is_some() {
                return refuse(EOPNOTSUPP);
            }
            if chain.bound {
                return refuse(EINVAL);
            }
            Ok((code, Some(chain.handle)))
        }
        _ => refuse(EINVAL),
    }
}

fn place(table: &Table, handle: u64) -> Result<usize, Refusal> {
    table.place_of_set(handle).ok_or(refusal(ENOENT))
}

/// The first number of milliseconds that the kernel cannot count in nanoseconds.
const MAX_MILLIS: u64 = u64::MAX / 1_000_000;

pub(super) const LIST_TABLE: u16 = 1;
pub(super) const LIST_SET: u16 = 2;
pub(super) const LIST_ELEMENTS: u16 = 3;
const LIST_SET_ID: u16 = 4;
pub(super) const KEY: u16 = 1;
pub(super) const DATA: u16 = 2;
pub(super) const FLAGS: u16 = 3;
pub(super) const TIMEOUT: u16 = 4;
pub(super) const EXPIRATION: u16 = 5;
pub(super) const USERDATA: u16 = 6;
pub(super) const EXPR: u16 = 7;
pub(super) const OBJREF: u16 = 9;
pub(super) const KEY_END: u16 = 10;
pub(super) const EXPRESSIONS: u16 = 11;
const NFTA_DATA_VERDICT: u16 = 2;
const NFTA_VERDICT_CODE: u16 = 1;
const NFTA_VERDICT_CHAIN: u16 = 2;
const NFTA_VERDICT_CHAIN_ID: u16 = 3;
