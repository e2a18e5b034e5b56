//! Decodes the attributes of elements, with the checks that depend on their set.

use sluicegate_netlink::Errno;
use sluicegate_netlink::attr::Attribute;

use crate::Family;
use crate::expr::data::*;
use crate::expr::{Expr, VerdictCode};
use crate::fake::element_exprs::{self, Carriers};
use crate::fake::message::{Attrs, Done, Refusal, refusal, refuse};
use crate::fake::set::Set;
use crate::fake::shape::MAX_VALUE;
use crate::fake::state::Table;
use crate::fake::store::{CATCHALL, Element, ElementData, INTERVAL_END};
use crate::object::SetFlags;
use crate::object::element::wire::*;

/// Decodes an element, with all checks that do not depend on other elements.
pub(super) fn element_of(table: &Table, set: &Set, item: &Attribute<'_>) -> Result<Element, Refusal> {
    let attrs = Attrs::nested(Some(item))?;
    let flags = flags_of(set, &attrs)?;
    let end = flags & INTERVAL_END != 0;
    if attrs.has(NFTA_SET_ELEM_KEY) == (flags & CATCHALL != 0) {
        return refuse(Errno::EINVAL);
    }
    for (kind, data) in [(NFTA_SET_ELEM_DATA, SetFlags::MAP), (NFTA_SET_ELEM_OBJREF, SetFlags::OBJECT)] {
        let wrong = if set.has(data) { !attrs.has(kind) && !end } else { attrs.has(kind) };
        if wrong {
            return refuse(Errno::EINVAL);
        }
    }
    check_key_end(set, &attrs, flags)?;
    let more = [
        NFTA_SET_ELEM_DATA,
        NFTA_SET_ELEM_OBJREF,
        NFTA_SET_ELEM_TIMEOUT,
        NFTA_SET_ELEM_EXPIRATION,
        NFTA_SET_ELEM_USERDATA,
        NFTA_SET_ELEM_EXPR,
        NFTA_SET_ELEM_KEY_END,
        NFTA_SET_ELEM_EXPRESSIONS,
    ];
    if end && more.iter().any(|kind| attrs.has(*kind)) {
        return refuse(Errno::EINVAL);
    }
    let time = time_of(set, &attrs, end)?;
    let exprs = exprs_of(Family(table.family), set, &attrs, end)?;
    let key = key_of(set, &attrs, NFTA_SET_ELEM_KEY)?.unwrap_or_default();
    let mut element = Element::new(key, key_of(set, &attrs, NFTA_SET_ELEM_KEY_END)?, flags);
    element.time = time;
    element.exprs = exprs;
    if attrs.has(NFTA_SET_ELEM_OBJREF) {
        let object = table.object_named(set.shape.object_kind, attrs.get(NFTA_SET_ELEM_OBJREF))?;
        element.data = ElementData::Object(object.handle);
    }
    if let Some(data) = attrs.get(NFTA_SET_ELEM_DATA) {
        element.data = data_of(table, set, data)?;
    }
    element.user_data = attrs.bytes(NFTA_SET_ELEM_USERDATA);
    Ok(element)
}

pub(super) fn flags_of(set: &Set, attrs: &Attrs<'_>) -> Result<u32, Refusal> {
    let flags = attrs.be32(NFTA_SET_ELEM_FLAGS)?.unwrap_or(0);
    if flags & !(INTERVAL_END | CATCHALL) != 0 {
        return refuse(Errno::EOPNOTSUPP);
    }
    let end = flags & INTERVAL_END != 0;
    if end && (!set.has(SetFlags::INTERVAL) || flags & CATCHALL != 0) {
        return refuse(Errno::EINVAL);
    }
    Ok(flags)
}

pub(super) fn check_key_end(set: &Set, attrs: &Attrs<'_>, flags: u32) -> Done {
    let wrong = if set.has(SetFlags::CONCAT | SetFlags::INTERVAL) {
        flags & INTERVAL_END != 0 || (attrs.has(NFTA_SET_ELEM_KEY_END) && flags & CATCHALL != 0)
    } else {
        attrs.has(NFTA_SET_ELEM_KEY_END)
    };
    if wrong { refuse(Errno::EINVAL) } else { Ok(()) }
}

/// Returns the timeout and the remaining lifetime of an element; `None` in a set without timeouts. The end of
/// an interval has none of its own.
fn time_of(set: &Set, attrs: &Attrs<'_>, end: bool) -> Result<Option<(u64, u64)>, Refusal> {
    let (timeout, expires) = (attrs.be64(NFTA_SET_ELEM_TIMEOUT)?, attrs.be64(NFTA_SET_ELEM_EXPIRATION)?);
    if !set.has(SetFlags::TIMEOUT) {
        return if timeout.is_some() || expires.is_some() { refuse(Errno::EINVAL) } else { Ok(None) };
    }
    if timeout.is_some_and(|timeout| timeout >= MAX_MILLIS) {
        return refuse(Errno::ERANGE);
    }
    let timeout = timeout.unwrap_or(if end { 0 } else { set.timeout });
    match expires {
        Some(_) if timeout == 0 => refuse(Errno::EOPNOTSUPP),
        Some(expires) if expires > timeout => refuse(Errno::ERANGE),
        None | Some(0) => Ok(Some((timeout, timeout))),
        Some(expires) => Ok(Some((timeout, expires))),
    }
}

/// Returns the expressions of an element: its own, or else those that its set defines for all elements.
fn exprs_of(family: Family, set: &Set, attrs: &Attrs<'_>, end: bool) -> Result<Vec<Expr>, Refusal> {
    let all = set.shape.exprs.as_slice();
    let of = Carriers { family, supports_gc: set.supports_gc(), all };
    let Some(one) = attrs.get(NFTA_SET_ELEM_EXPR) else {
        let usual = || if end { Vec::new() } else { all.to_vec() };
        return attrs.get(NFTA_SET_ELEM_EXPRESSIONS).map_or_else(|| Ok(usual()), |list| of.list(list));
    };
    if all.len() > 1 {
        return refuse(Errno::EOPNOTSUPP);
    }
    let expr = of.one(one)?;
    if all.iter().all(|wanted| element_exprs::is_alike(wanted, &expr)) {
        Ok(vec![expr])
    } else {
        refuse(Errno::EOPNOTSUPP)
    }
}

pub(super) fn key_of(set: &Set, attrs: &Attrs<'_>, kind: u16) -> Result<Option<Vec<u8>>, Refusal> {
    attrs.get(kind).map(|key| value_of(key, set.shape.key_len)).transpose()
}

/// Decodes a value of exactly this length.
fn value_of(attribute: &Attribute<'_>, len: usize) -> Result<Vec<u8>, Refusal> {
    let data = Attrs::nested(Some(attribute))?;
    let value = data.need(NFTA_DATA_VALUE)?.payload;
    if value.len() > MAX_VALUE {
        return refuse(Errno::EOVERFLOW);
    }
    if value.len() != len || value.is_empty() {
        return refuse(Errno::EINVAL);
    }
    Ok(value.to_vec())
}

fn data_of(table: &Table, set: &Set, attribute: &Attribute<'_>) -> Result<ElementData, Refusal> {
    let data = Attrs::nested(Some(attribute))?;
    if !set.is_verdict_map() {
        return value_of(attribute, set.shape.data_len).map(ElementData::Value);
    }
    if data.has(NFTA_DATA_VALUE) {
        return refuse(Errno::EINVAL);
    }
    let verdict = data.need(NFTA_DATA_VERDICT)?;
    let (code, chain) = verdict_of(table, verdict, |_| None)?;
    if chain.and_then(|chain| table.chain(chain)).is_some_and(|c| c.flags & super::chain::BINDING != 0) {
        return refuse(Errno::EINVAL);
    }
    Ok(ElementData::Verdict(code, chain))
}

/// Returns a verdict and, for a jump, the handle of the chain.
pub(super) fn verdict_of(
    table: &Table,
    attribute: &Attribute<'_>,
    by_id: impl FnOnce(u32) -> Option<u64>,
) -> Result<(u32, Option<u64>), Refusal> {
    let attrs = Attrs::nested(Some(attribute))?;
    let code = attrs.be32(NFTA_VERDICT_CODE)?.ok_or(refusal(Errno::EINVAL))?;
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
                    by_id(id).and_then(|handle| table.chain(handle)).ok_or(refusal(Errno::ENOENT))?
                }
                (None, None) => return refuse(Errno::EINVAL),
            };
            if chain.base.is_some() {
                return refuse(Errno::EOPNOTSUPP);
            }
            if chain.bound {
                return refuse(Errno::EINVAL);
            }
            Ok((code, Some(chain.handle)))
        }
        _ => refuse(Errno::EINVAL),
    }
}

pub(super) fn expires_of(item: &Attribute<'_>) -> Result<u64, Refusal> {
    Ok(Attrs::nested(Some(item))?.be64(NFTA_SET_ELEM_EXPIRATION)?.unwrap_or(0))
}

/// The first number of milliseconds that overflows the kernel's nanoseconds.
pub(super) const MAX_MILLIS: u64 = u64::MAX / 1_000_000;
