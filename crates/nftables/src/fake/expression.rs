//! Expressions as a rule takes them up: registers that have been written, sets and objects that exist, verdicts that lead somewhere.

use sluicegate_netlink::attr::Attribute;

use crate::Family;
use crate::expr::{DynsetFlags, DynsetOp, Expr, Lookup, LookupFlags, Objref, Register};
use crate::fake::batch::GROWN;
use crate::fake::carried;
use crate::fake::demand::{self, bytes};
use crate::fake::element::find_by_id;
use crate::fake::element_attrs::{MAX_MILLIS, verdict_of};
use crate::fake::message::{
    Attrs, Done, E2BIG, EBUSY, EINVAL, ENODATA, ENOENT, EOPNOTSUPP, ERANGE, Refusal, refusal, refuse,
};
use crate::fake::set::Binding;
use crate::fake::shape::VERDICT;
use crate::fake::state::{Held, Reference, Table};
use crate::name::Name;
use crate::object::SetFlags;

/// A rule that is being made.
pub(super) struct Frame<'w> {
    pub(super) rule: u64,
    /// Words of registers that have been written, a bit each.
    written: u32,
    set_ids: &'w [(u64, u32, u64)],
    chain_ids: &'w [(u64, u32, u64)],
    /// Sets, each with its table, that get a size.
    sized: &'w mut Vec<(u64, u64)>,
}

impl<'w> Frame<'w> {
    pub(super) fn new(
        rule: u64,
        set_ids: &'w [(u64, u32, u64)],
        chain_ids: &'w [(u64, u32, u64)],
        sized: &'w mut Vec<(u64, u64)>,
    ) -> Self {
        Self { rule, written: 0, set_ids, chain_ids, sized }
    }

    /// A register that is read has to have been written.
    pub(super) fn load(&self, register: Register, len: usize) -> Done {
        let word = word(register)?;
        if word < FIRST_WORD || len == 0 {
            return refuse(EINVAL);
        }
        if word * 4 + len > WORDS * 4 {
            return refuse(ERANGE);
        }
        let wanted = (word..word + len.div_ceil(4)).fold(0, |bits, word| bits | 1 << word);
        if self.written & wanted == wanted { Ok(()) } else { refuse(ENODATA) }
    }

    pub(super) fn load_some(&self, register: Option<Register>, len: usize) -> Done {
        register.map_or(Ok(()), |register| self.load(register, len))
    }

    pub(super) fn store(&mut self, register: Register, len: usize) -> Done {
        let word = word(register)?;
        if word < FIRST_WORD || len == 0 {
            return refuse(EINVAL);
        }
        if word * 4 + len > WORDS * 4 {
            return refuse(ERANGE);
        }
        self.written |= (word..word + len.div_ceil(4)).fold(0, |bits, word| bits | 1 << word);
        Ok(())
    }

    pub(super) fn store_some(&mut self, register: Option<Register>, len: usize) -> Done {
        register.map_or(Ok(()), |register| self.store(register, len))
    }
}

/// Takes an expression into a rule: checks it, and counts what it refers to.
pub(super) fn take(
    table: &mut Table,
    frame: &mut Frame<'_>,
    item: &Attribute<'_>,
    mut expr: Expr,
) -> Result<Held, Refusal> {
    let refers = match &mut expr {
        Expr::Immediate(immediate) => {
            if immediate.dreg == Register(0) {
                verdict(table, frame, item)?
            } else {
                let len = bytes(&immediate.data)?;
                frame.store(immediate.dreg, len)?;
                None
            }
        }
        Expr::Lookup(expr) => Some(lookup(table, frame, expr)?),
        Expr::Dynset(_) => Some(dynset(table, frame, &mut expr)?),
        Expr::Objref(expr) => Some(objref(table, frame, expr)?),
        Expr::FlowOffload(expr) => {
            let flowtable = table.flowtables.iter().find(|f| f.name == expr.flowtable);
            Some(Reference::Flowtable(flowtable.ok_or(refusal(ENOENT))?.handle))
        }
        other => {
            demand::check(frame, Family(table.family), other)?;
            None
        }
    };
    match refers {
        Some(Reference::Set(_)) | None => {}
        Some(reference) => table.count(reference, true),
    }
    super::complete::complete(&mut expr, Family(table.family));
    if super::checks::is_checked(&expr) {
        table.need_checks();
    }
    Ok(Held { expr, refers })
}

/// The chain that a transaction has given a number.
pub(super) fn chain_by_id(ids: &[(u64, u32, u64)], table: &Table, id: u32) -> Option<u64> {
    ids.iter().find(|(of, number, _)| *of == table.handle && *number == id).map(|(_, _, chain)| *chain)
}

fn verdict(table: &mut Table, frame: &Frame<'_>, item: &Attribute<'_>) -> Result<Option<Reference>, Refusal> {
    let data = Attrs::nested(Attrs::nested(Some(item))?.get(NFTA_EXPR_DATA))?;
    let data = Attrs::nested(data.get(NFTA_IMMEDIATE_DATA))?;
    let attribute = data.need(NFTA_DATA_VERDICT)?;
    let (_, chain) = verdict_of(table, attribute, |id| chain_by_id(frame.chain_ids, table, id))?;
    let Some(chain) = chain else { return Ok(None) };
    let held = table.chain_mut(chain)?;
    if held.flags & super::chain::BINDING != 0 {
        held.bound = true;
    }
    Ok(Some(Reference::Chain(chain)))
}

fn lookup(table: &mut Table, frame: &mut Frame<'_>, expr: &mut Lookup) -> Result<Reference, Refusal> {
    let handle = find_set(table, frame, Some(&expr.set), expr.set_id)?;
    let set = table.set(handle).ok_or(refusal(ENOENT))?;
    frame.load(expr.sreg, set.shape.key_len)?;
    let flags = expr.flags.unwrap_or_default();
    if !(flags - LookupFlags::INVERT).is_empty() {
        return refuse(EINVAL);
    }
    match expr.dreg {
        Some(dreg) => {
            if !flags.is_empty() || !set.has(SetFlags::MAP) {
                return refuse(EINVAL);
            }
            if set.shape.data_type == VERDICT {
                if dreg != Register(0) {
                    return refuse(EINVAL);
                }
            } else {
                frame.store(dreg, set.shape.data_len)?;
            }
        }
        None if set.has(SetFlags::MAP | SetFlags::ANONYMOUS) => return refuse(EINVAL),
        None => {}
    }
    expr.set = set.name.clone();
    expr.set_id = None;
    expr.flags = Some(flags);
    bind(table, frame, handle)
}

fn dynset(table: &mut Table, frame: &mut Frame<'_>, expr: &mut Expr) -> Result<Reference, Refusal> {
    let Expr::Dynset(expr) = expr else { return refuse(EINVAL) };
    let flags = expr.flags.unwrap_or(DynsetFlags::empty());
    if !(flags - DynsetFlags::all_named()).is_empty() {
        return refuse(EOPNOTSUPP);
    }
    let handle = find_set(table, frame, Some(&expr.set), expr.set_id)?;
    let set = table.set(handle).ok_or(refusal(ENOENT))?;
    // Only the representation that grows by itself can be changed by packets.
    if set.has(SetFlags::OBJECT) || !set.grows {
        return refuse(EOPNOTSUPP);
    }
    if set.has(SetFlags::CONSTANT) {
        return refuse(EBUSY);
    }
    if expr.op.0 > DynsetOp::DELETE.0 {
        return refuse(EOPNOTSUPP);
    }
    if expr.timeout.is_some() && !set.has(SetFlags::TIMEOUT) {
        return refuse(EOPNOTSUPP);
    }
    if expr.timeout.is_some_and(|timeout| timeout >= MAX_MILLIS) {
        return refuse(ERANGE);
    }
    frame.load(expr.key, set.shape.key_len)?;
    match expr.data {
        Some(_) if !set.has(SetFlags::MAP) || set.shape.data_type == VERDICT => return refuse(EOPNOTSUPP),
        Some(data) => frame.load(data, set.shape.data_len)?,
        None if set.has(SetFlags::MAP) => return refuse(EINVAL),
        None => {}
    }
    let exprs: Vec<&Expr> = expr.expr.as_deref().into_iter().chain(&expr.exprs).collect();
    if !exprs.is_empty() && !set.has(SetFlags::DYNAMIC) {
        return refuse(EINVAL);
    }
    let all = &set.shape.exprs;
    for (at, carried) in exprs.iter().enumerate() {
        if at == carried::MAX_EXPRS {
            return refuse(E2BIG);
        }
        carried::is_stateful(carried)?;
        demand::check(frame, Family(table.family), carried)?;
        carried::can_go(carried, set.cleans())?;
        match all.get(at) {
            Some(wanted) if !carried::is_alike(wanted, carried) => return refuse(EOPNOTSUPP),
            None if !all.is_empty() => return refuse(EINVAL),
            _ => {}
        }
    }
    if !exprs.is_empty() && exprs.len() < all.len() {
        return refuse(EOPNOTSUPP);
    }
    expr.set = set.name.clone();
    expr.set_id = None;
    expr.timeout = Some(expr.timeout.unwrap_or(0));
    expr.flags = Some(flags & DynsetFlags::INVERT);
    if !set.shape.exprs.is_empty() {
        expr.expr = None;
        expr.exprs = Vec::new();
    }
    let bound = bind(table, frame, handle)?;
    let of = table.handle;
    let set = table.set_mut(handle)?;
    if set.size == 0 {
        set.size = GROWN;
        frame.sized.push((of, handle));
    }
    Ok(bound)
}

fn objref(table: &mut Table, frame: &mut Frame<'_>, expr: &mut Objref) -> Result<Reference, Refusal> {
    if let Some(sreg) = expr.sreg.filter(|_| expr.set.is_some() || expr.set_id.is_some()) {
        let handle = find_set(table, frame, expr.set.as_ref(), expr.set_id)?;
        let set = table.set(handle).ok_or(refusal(ENOENT))?;
        if !set.has(SetFlags::OBJECT) {
            return refuse(EINVAL);
        }
        frame.load(sreg, set.shape.key_len)?;
        // What else is said is forgotten, here as below.
        *expr = Objref { kind: None, name: None, set: Some(set.name.clone()), set_id: None, ..*expr };
        return bind(table, frame, handle);
    }
    let (Some(kind), Some(name)) = (expr.kind, &expr.name) else { return refuse(EOPNOTSUPP) };
    let object = table.objects.iter().find(|object| object.kind == kind.0 && object.name == *name);
    let handle = object.ok_or(refusal(ENOENT))?.handle;
    (expr.sreg, expr.set, expr.set_id) = (None, None, None);
    Ok(Reference::Object(handle))
}

fn find_set(table: &Table, frame: &Frame<'_>, name: Option<&Name>, id: Option<u32>) -> Result<u64, Refusal> {
    let named = name.and_then(|name| table.sets.iter().find(|set| set.name == *name)).map(|set| set.handle);
    named.or_else(|| find_by_id(frame.set_ids, table, id?)).ok_or(refusal(ENOENT))
}

/// A set without a name is for one rule only.
fn bind(table: &mut Table, frame: &Frame<'_>, handle: u64) -> Result<Reference, Refusal> {
    let set = table.set_mut(handle)?;
    if set.is_anonymous() && !set.bindings.is_empty() {
        return refuse(EBUSY);
    }
    let map = set.has(SetFlags::MAP);
    set.bindings.push(Binding { rule: frame.rule, map, gone: false });
    set.uses += 1;
    Ok(Reference::Set(handle))
}

/// The first of the 32-bit words that a register is: the verdict's four come before all others.
fn word(Register(number): Register) -> Result<usize, Refusal> {
    match number {
        0..=4 => Ok(number as usize * 4),
        8..=23 => Ok(number as usize - 4),
        _ => refuse(ERANGE),
    }
}

impl DynsetFlags {
    fn all_named() -> Self {
        Self::INVERT | Self::EXPR
    }
}

/// Words of all registers, and the first behind the verdict.
const WORDS: usize = 20;
const FIRST_WORD: usize = 4;
const NFTA_EXPR_DATA: u16 = 2;
const NFTA_IMMEDIATE_DATA: u16 = 2;
const NFTA_DATA_VERDICT: u16 = 2;
