//! Adds expressions to rules: registers must have been written before they are read, sets and objects must
//! exist, and jumps must have a target.

use sluicegate_netlink::Errno;
use sluicegate_netlink::attr::Attribute;

use crate::Family;
use crate::expr::data::NFT_DATA_VERDICT;
use crate::expr::data::*;
use crate::expr::wire::*;
use crate::expr::{DynsetFlags, DynsetOp, Expr, Lookup, LookupFlags, Objref, Register};
use crate::fake::batch::GROWN;
use crate::fake::element::find_by_id;
use crate::fake::element_attrs::{MAX_MILLIS, verdict_of};
use crate::fake::element_exprs;
use crate::fake::message::{Attrs, Done, Refusal, refusal, refuse};
use crate::fake::set::Binding;
use crate::fake::state::{Reference, StoredExpr, Table};
use crate::fake::validate::{self, bytes};
use crate::name::Name;
use crate::object::SetFlags;

/// A rule that is being created.
pub(super) struct RuleContext<'w> {
    pub(super) rule: u64,
    /// The 32-bit words of registers that have been written, one bit each.
    written: u32,
    set_ids: &'w [(u64, u32, u64)],
    chain_ids: &'w [(u64, u32, u64)],
    /// Sets, each with its table, that get a size because a rule adds elements.
    sized: &'w mut Vec<(u64, u64)>,
}

impl<'w> RuleContext<'w> {
    pub(super) fn new(
        rule: u64,
        set_ids: &'w [(u64, u32, u64)],
        chain_ids: &'w [(u64, u32, u64)],
        sized: &'w mut Vec<(u64, u64)>,
    ) -> Self {
        Self { rule, written: 0, set_ids, chain_ids, sized }
    }

    /// Checks that a register was written before it is read.
    pub(super) fn load(&self, register: Register, len: usize) -> Done {
        let word = word(register)?;
        if word < FIRST_WORD || len == 0 {
            return refuse(Errno::EINVAL);
        }
        if word * 4 + len > WORDS * 4 {
            return refuse(Errno::ERANGE);
        }
        let wanted = (word..word + len.div_ceil(4)).fold(0, |bits, word| bits | 1 << word);
        if self.written & wanted == wanted { Ok(()) } else { refuse(Errno::ENODATA) }
    }

    pub(super) fn load_some(&self, register: Option<Register>, len: usize) -> Done {
        register.map_or(Ok(()), |register| self.load(register, len))
    }

    pub(super) fn store(&mut self, register: Register, len: usize) -> Done {
        let word = word(register)?;
        if word < FIRST_WORD || len == 0 {
            return refuse(Errno::EINVAL);
        }
        if word * 4 + len > WORDS * 4 {
            return refuse(Errno::ERANGE);
        }
        self.written |= (word..word + len.div_ceil(4)).fold(0, |bits, word| bits | 1 << word);
        Ok(())
    }

    pub(super) fn store_some(&mut self, register: Option<Register>, len: usize) -> Done {
        register.map_or(Ok(()), |register| self.store(register, len))
    }
}

/// Adds an expression to a rule: checks it, and counts its references.
pub(super) fn add_to_rule(
    table: &mut Table,
    context: &mut RuleContext<'_>,
    item: &Attribute<'_>,
    mut expr: Expr,
) -> Result<StoredExpr, Refusal> {
    let refers = match &mut expr {
        Expr::Immediate(immediate) => {
            if immediate.dreg == Register(0) {
                verdict(table, context, item)?
            } else {
                let len = bytes(&immediate.data)?;
                context.store(immediate.dreg, len)?;
                None
            }
        }
        Expr::Lookup(expr) => Some(lookup(table, context, expr)?),
        Expr::Dynset(_) => Some(dynset(table, context, &mut expr)?),
        Expr::Objref(expr) => Some(objref(table, context, expr)?),
        Expr::FlowOffload(expr) => {
            let flowtable = table.flowtables.iter().find(|f| f.name == expr.flowtable);
            Some(Reference::Flowtable(flowtable.ok_or(refusal(Errno::ENOENT))?.handle))
        }
        other => {
            validate::check(context, Family(table.family), other)?;
            None
        }
    };
    match refers {
        Some(Reference::Set(_)) | None => {}
        Some(reference) => table.count(reference, true),
    }
    crate::expr::complete::complete(&mut expr, Family(table.family));
    if super::checks::is_checked(&expr) {
        table.need_checks();
    }
    Ok(StoredExpr { expr, refers })
}

/// Returns the chain to which the transaction assigned a number.
pub(super) fn chain_by_id(ids: &[(u64, u32, u64)], table: &Table, id: u32) -> Option<u64> {
    ids.iter().find(|(of, number, _)| *of == table.handle && *number == id).map(|(_, _, chain)| *chain)
}

fn verdict(
    table: &mut Table,
    context: &RuleContext<'_>,
    item: &Attribute<'_>,
) -> Result<Option<Reference>, Refusal> {
    let data = Attrs::nested(Attrs::nested(Some(item))?.get(NFTA_EXPR_DATA))?;
    let data = Attrs::nested(data.get(NFTA_IMMEDIATE_DATA))?;
    let attribute = data.need(NFTA_DATA_VERDICT)?;
    let (_, chain) = verdict_of(table, attribute, |id| chain_by_id(context.chain_ids, table, id))?;
    let Some(chain) = chain else { return Ok(None) };
    let existing = table.chain_mut(chain)?;
    if existing.flags & super::chain::BINDING != 0 {
        existing.bound = true;
    }
    Ok(Some(Reference::Chain(chain)))
}

fn lookup(table: &mut Table, context: &mut RuleContext<'_>, expr: &mut Lookup) -> Result<Reference, Refusal> {
    let handle = find_set(table, context, Some(&expr.set), expr.set_id)?;
    let set = table.set(handle).ok_or(refusal(Errno::ENOENT))?;
    context.load(expr.sreg, set.shape.key_len)?;
    let flags = expr.flags.unwrap_or_default();
    if !(flags - LookupFlags::INVERT).is_empty() {
        return refuse(Errno::EINVAL);
    }
    match expr.dreg {
        Some(dreg) => {
            if !flags.is_empty() || !set.has(SetFlags::MAP) {
                return refuse(Errno::EINVAL);
            }
            if set.shape.data_type == NFT_DATA_VERDICT {
                if dreg != Register(0) {
                    return refuse(Errno::EINVAL);
                }
            } else {
                context.store(dreg, set.shape.data_len)?;
            }
        }
        None if set.has(SetFlags::MAP | SetFlags::ANONYMOUS) => return refuse(Errno::EINVAL),
        None => {}
    }
    expr.set = set.name.clone();
    expr.set_id = None;
    expr.flags = Some(flags);
    bind(table, context, handle)
}

fn dynset(table: &mut Table, context: &mut RuleContext<'_>, expr: &mut Expr) -> Result<Reference, Refusal> {
    let Expr::Dynset(expr) = expr else { return refuse(Errno::EINVAL) };
    let flags = expr.flags.unwrap_or(DynsetFlags::empty());
    if !(flags - DynsetFlags::all_named()).is_empty() {
        return refuse(Errno::EOPNOTSUPP);
    }
    let handle = find_set(table, context, Some(&expr.set), expr.set_id)?;
    let set = table.set(handle).ok_or(refusal(Errno::ENOENT))?;
    // Of the kernel's set types only the resizable hash table (`nft_set_rhash`) lets rules change elements.
    if set.has(SetFlags::OBJECT) || !set.resizable {
        return refuse(Errno::EOPNOTSUPP);
    }
    if set.has(SetFlags::CONSTANT) {
        return refuse(Errno::EBUSY);
    }
    if expr.op.0 > DynsetOp::DELETE.0 {
        return refuse(Errno::EOPNOTSUPP);
    }
    if expr.timeout.is_some() && !set.has(SetFlags::TIMEOUT) {
        return refuse(Errno::EOPNOTSUPP);
    }
    if expr.timeout.is_some_and(|timeout| timeout >= MAX_MILLIS) {
        return refuse(Errno::ERANGE);
    }
    context.load(expr.key, set.shape.key_len)?;
    match expr.data {
        Some(_) if !set.has(SetFlags::MAP) || set.shape.data_type == NFT_DATA_VERDICT => {
            return refuse(Errno::EOPNOTSUPP);
        }
        Some(data) => context.load(data, set.shape.data_len)?,
        None if set.has(SetFlags::MAP) => return refuse(Errno::EINVAL),
        None => {}
    }
    let exprs: Vec<&Expr> = expr.expr.as_deref().into_iter().chain(&expr.exprs).collect();
    if !exprs.is_empty() && !set.has(SetFlags::DYNAMIC) {
        return refuse(Errno::EINVAL);
    }
    let all = &set.shape.exprs;
    for (at, carried) in exprs.iter().enumerate() {
        if at == element_exprs::MAX_EXPRS {
            return refuse(Errno::E2BIG);
        }
        element_exprs::is_stateful(carried)?;
        validate::check(context, Family(table.family), carried)?;
        element_exprs::check_gc(carried, set.supports_gc())?;
        match all.get(at) {
            Some(wanted) if !element_exprs::is_alike(wanted, carried) => return refuse(Errno::EOPNOTSUPP),
            None if !all.is_empty() => return refuse(Errno::EINVAL),
            _ => {}
        }
    }
    if !exprs.is_empty() && exprs.len() < all.len() {
        return refuse(Errno::EOPNOTSUPP);
    }
    expr.set = set.name.clone();
    expr.set_id = None;
    expr.timeout = Some(expr.timeout.unwrap_or(0));
    expr.flags = Some(flags & DynsetFlags::INVERT);
    if !set.shape.exprs.is_empty() {
        expr.expr = None;
        expr.exprs = Vec::new();
    }
    let bound = bind(table, context, handle)?;
    let of = table.handle;
    let set = table.set_mut(handle)?;
    if set.size == 0 {
        set.size = GROWN;
        context.sized.push((of, handle));
    }
    Ok(bound)
}

fn objref(table: &mut Table, context: &mut RuleContext<'_>, expr: &mut Objref) -> Result<Reference, Refusal> {
    if let Some(sreg) = expr.sreg.filter(|_| expr.set.is_some() || expr.set_id.is_some()) {
        let handle = find_set(table, context, expr.set.as_ref(), expr.set_id)?;
        let set = table.set(handle).ok_or(refusal(Errno::ENOENT))?;
        if !set.has(SetFlags::OBJECT) {
            return refuse(Errno::EINVAL);
        }
        context.load(sreg, set.shape.key_len)?;
        // The kernel does not store the other attributes; likewise below.
        *expr = Objref { kind: None, name: None, set: Some(set.name.clone()), set_id: None, ..*expr };
        return bind(table, context, handle);
    }
    let (Some(kind), Some(name)) = (expr.kind, &expr.name) else { return refuse(Errno::EOPNOTSUPP) };
    let object = table.objects.iter().find(|object| object.kind == kind.0 && object.name == *name);
    let handle = object.ok_or(refusal(Errno::ENOENT))?.handle;
    (expr.sreg, expr.set, expr.set_id) = (None, None, None);
    Ok(Reference::Object(handle))
}

fn find_set(
    table: &Table,
    context: &RuleContext<'_>,
    name: Option<&Name>,
    id: Option<u32>,
) -> Result<u64, Refusal> {
    let named = name.and_then(|name| table.sets.iter().find(|set| set.name == *name)).map(|set| set.handle);
    named.or_else(|| find_by_id(context.set_ids, table, id?)).ok_or(refusal(Errno::ENOENT))
}

/// Binds a rule to a set; an anonymous set can be bound to one rule only.
fn bind(table: &mut Table, context: &RuleContext<'_>, handle: u64) -> Result<Reference, Refusal> {
    let set = table.set_mut(handle)?;
    if set.is_anonymous() && !set.bindings.is_empty() {
        return refuse(Errno::EBUSY);
    }
    let map = set.has(SetFlags::MAP);
    set.bindings.push(Binding { rule: context.rule, map, rule_deleted: false });
    set.uses += 1;
    Ok(Reference::Set(handle))
}

/// Returns the number of the first 32-bit word of a register; the four of the verdict register come first.
fn word(Register(number): Register) -> Result<usize, Refusal> {
    match number {
        0..=4 => Ok(number as usize * 4),
        8..=23 => Ok(number as usize - 4),
        _ => refuse(Errno::ERANGE),
    }
}

impl DynsetFlags {
    fn all_named() -> Self {
        Self::INVERT | Self::EXPR
    }
}

/// The number of 32-bit words in all registers, the verdict register included.
const WORDS: usize = 20;
const FIRST_WORD: usize = 4;
