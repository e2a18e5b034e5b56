//! Elements as attributes: what one may say in its set.

use sluicegate_netlink::attr::Attribute;

use crate::Family;
use crate::expr::data::NFTA_DATA_VALUE;
use crate::expr::{Expr, VerdictCode};
use crate::fake::carried::{self, Carriers};
use crate::fake::message::{
    Attrs, Done, EINVAL, ENOENT, EOPNOTSUPP, EOVERFLOW, ERANGE, Refusal, refusal, refuse,
};
use crate::fake::set::Set;
use crate::fake::shape::MAX_VALUE;
use crate::fake::state::Table;
use crate::fake::store::{CATCHALL, Element, ElementData, INTERVAL_END};
use crate::object::SetFlags;

/// What an element says, checked as far as that goes without the others.
pub(super) fn element_of(table: &Table, set: &Set, item: &Attribute<'_>) -> Result<Element, Refusal> {
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
    let exprs = exprs_of(Family(table.family), set, &attrs, end)?;
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

pub(super) fn flags_of(set: &Set, attrs: &Attrs<'_>) -> Result<u32, Refusal> {
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

pub(super) fn check_key_end(set: &Set, attrs: &Attrs<'_>, flags: u32) -> Done {
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
fn exprs_of(family: Family, set: &Set, attrs: &Attrs<'_>, end: bool) -> Result<Vec<Expr>, Refusal> {
    let all = set.shape.exprs.as_slice();
    let of = Carriers { family, cleans: set.cleans(), all };
    let Some(one) = attrs.get(EXPR) else {
        let usual = || if end { Vec::new() } else { all.to_vec() };
        return attrs.get(EXPRESSIONS).map_or_else(|| Ok(usual()), |list| of.list(list));
    };
    if all.len() > 1 {
        return refuse(EOPNOTSUPP);
    }
    let expr = of.one(one)?;
    if all.iter().all(|wanted| carried::is_alike(wanted, &expr)) {
        Ok(vec![expr])
    } else {
        refuse(EOPNOTSUPP)
    }
}

pub(super) fn key_of(set: &Set, attrs: &Attrs<'_>, kind: u16) -> Result<Option<Vec<u8>>, Refusal> {
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

pub(super) fn expires_of(item: &Attribute<'_>) -> Result<u64, Refusal> {
    Ok(Attrs::nested(Some(item))?.be64(EXPIRATION)?.unwrap_or(0))
}

/// The first number of milliseconds that the kernel cannot count in nanoseconds.
pub(super) const MAX_MILLIS: u64 = u64::MAX / 1_000_000;

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
