//! Expressions as a rule takes them up: registers that have been written, sets and objects that exist, verdicts that lead somewhere.

use sluicegate_netlink::attr::Attribute;

use crate::Family;
use crate::expr::{
    Counter, CtKey, Data, DynsetFlags, DynsetOp, Expr, FibResult, LimitType, Lookup, LookupFlags, Objref,
    Quota, Register, TunnelKey,
};
use crate::fake::batch::GROWN;
use crate::fake::element::{find_by_id, verdict_of};
use crate::fake::message::{
    Attrs, Done, EBUSY, EINVAL, ENODATA, ENOENT, EOPNOTSUPP, EOVERFLOW, ERANGE, Refusal, refusal, refuse,
};
use crate::fake::set::{Binding, Set, VERDICT};
use crate::fake::state::{Held, Reference, Table};
use crate::fake::store::Form;
use crate::name::Name;
use crate::read::SetFlags;

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
    fn load(&self, register: Register, len: usize) -> Done {
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

    fn load_some(&self, register: Option<Register>, len: usize) -> Done {
        register.map_or(Ok(()), |register| self.load(register, len))
    }

    fn store(&mut self, register: Register, len: usize) -> Done {
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

    fn store_some(&mut self, register: Option<Register>, len: usize) -> Done {
        register.map_or(Ok(()), |register| self.store(register, len))
    }
}

/// What the kernel looks at in all expressions of a rule before it takes up the first.
pub(super) fn look_at(expr: &Expr) -> Done {
    match expr {
        Expr::Cmp(e) => bytes(&e.data).map(|_| ()),
        Expr::Objref(e)
            if (e.sreg.is_none() || e.set.is_none()) && (e.kind.is_none() || e.name.is_none()) =>
        {
            refuse(EOPNOTSUPP)
        }
        _ => Ok(()),
    }
}

/// Takes an expression into a rule: checks it, and counts what it refers to.
pub(super) fn take(
    table: &mut Table,
    frame: &mut Frame<'_>,
    item: &Attribute<'_>,
    mut expr: Expr,
) -> Result<Held, Refusal> {
    check_state(&expr)?;
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
            registers(frame, Family(table.family), other)?;
            None
        }
    };
    match refers {
        Some(Reference::Set(_)) | None => {}
        Some(reference) => table.count(reference, true),
    }
    complete(&mut expr);
    if super::checks::is_checked(&expr) {
        table.need_checks();
    }
    Ok(Held { expr, refers })
}

/// The chain that a transaction has given a number.
pub(super) fn chain_by_id(ids: &[(u64, u32, u64)], table: &Table, id: u32) -> Option<u64> {
    ids.iter().find(|(of, number, _)| *of == table.handle && *number == id).map(|(_, _, chain)| *chain)
}

/// Counters, quotas, limits, which are objects and parts of elements, too.
pub(super) fn check_state(expr: &Expr) -> Done {
    match expr {
        Expr::Quota(quota) if i64::try_from(quota.bytes).is_err() => refuse(EOVERFLOW),
        Expr::Quota(quota) if quota.flags.is_some_and(|flags| flags.bits() > 1) => refuse(EINVAL),
        Expr::Limit(limit) if limit.rate == 0 || limit.unit == 0 => refuse(EINVAL),
        Expr::Limit(limit) if limit.unit.checked_mul(1_000_000_000).is_none() => refuse(EOVERFLOW),
        _ => Ok(()),
    }
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
    let handle = find_set(table, frame, &expr.set, expr.set_id)?;
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
    let handle = find_set(table, frame, &expr.set, expr.set_id)?;
    let set = table.set(handle).ok_or(refusal(ENOENT))?;
    // Only the representation that grows by itself can be changed by packets.
    if set.has(SetFlags::OBJECT) || !is_growing(set) {
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
    frame.load(expr.key, set.shape.key_len)?;
    match expr.data {
        Some(_) if !set.has(SetFlags::MAP) || set.shape.data_type == VERDICT => return refuse(EOPNOTSUPP),
        Some(data) => frame.load(data, set.shape.data_len)?,
        None if set.has(SetFlags::MAP) => return refuse(EINVAL),
        None => {}
    }
    let carried: Vec<&Expr> = expr.expr.as_deref().into_iter().chain(&expr.exprs).collect();
    if !carried.is_empty() && !set.has(SetFlags::EVAL) {
        return refuse(EINVAL);
    }
    for carried in &carried {
        check_state(carried)?;
    }
    let same = carried.iter().map(|e| e.name()).eq(set.shape.exprs.iter().map(Expr::name));
    if !carried.is_empty() && !set.shape.exprs.is_empty() && !same {
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
    if let (Some(sreg), Some(name)) = (expr.sreg, expr.set.clone()) {
        let handle = find_set(table, frame, &name, expr.set_id)?;
        let set = table.set(handle).ok_or(refusal(ENOENT))?;
        if !set.has(SetFlags::OBJECT) {
            return refuse(EINVAL);
        }
        frame.load(sreg, set.shape.key_len)?;
        expr.set = Some(set.name.clone());
        expr.set_id = None;
        return bind(table, frame, handle);
    }
    let (Some(kind), Some(name)) = (expr.kind, &expr.name) else { return refuse(EOPNOTSUPP) };
    let object = table.objects.iter().find(|object| object.kind == kind.0 && object.name == *name);
    Ok(Reference::Object(object.ok_or(refusal(ENOENT))?.handle))
}

fn find_set(table: &Table, frame: &Frame<'_>, name: &Name, id: Option<u32>) -> Result<u64, Refusal> {
    let named = table.sets.iter().find(|set| set.name == *name).map(|set| set.handle);
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

/// Whether the kernel keeps it in the hash table that grows: of single keys, without a size or with what needs that table.
fn is_growing(set: &Set) -> bool {
    if set.store.form != Form::Keys {
        return false;
    }
    let needs = set.shape.flags.intersects(SetFlags::EVAL | SetFlags::TIMEOUT);
    let bitmap = set.shape.key_len <= 2
        && set.shape.exprs.is_empty()
        && !set.shape.flags.intersects(SetFlags::MAP | SetFlags::OBJECT);
    needs || (set.size == 0 && !bitmap)
}

/// The registers of expressions that refer to nothing else.
fn registers(frame: &mut Frame<'_>, family: Family, expr: &Expr) -> Done {
    match expr {
        Expr::Payload(e) => {
            frame.load_some(e.sreg, e.len as usize)?;
            e.dreg.map_or(Ok(()), |dreg| frame.store(dreg, e.len as usize))
        }
        Expr::Cmp(e) => frame.load(e.sreg, bytes(&e.data)?),
        Expr::Range(e) => {
            let (from, to) = (bytes(&e.from)?, bytes(&e.to)?);
            if from != to { refuse(EINVAL) } else { frame.load(e.sreg, from) }
        }
        Expr::Bitwise(e) => {
            frame.load(e.sreg, e.len as usize)?;
            frame.load_some(e.sreg2, e.len as usize)?;
            frame.store(e.dreg, e.len as usize)
        }
        Expr::Byteorder(e) => {
            if !matches!(e.size, 2 | 4 | 8) {
                return refuse(EINVAL);
            }
            frame.load(e.sreg, e.len as usize)?;
            frame.store(e.dreg, e.len as usize)
        }
        Expr::Meta(e) => {
            frame.load_some(e.sreg, e.key.part().bytes())?;
            frame.store_some(e.dreg, e.key.part().bytes())
        }
        Expr::Ct(e) => {
            let either = matches!(e.key, CtKey::SADDR | CtKey::DADDR) && family != Family::IP;
            let len = if either { 16 } else { e.key.part().bytes() };
            frame.load_some(e.sreg, len)?;
            frame.store_some(e.dreg, len)
        }
        Expr::Rt(e) => frame.store(e.dreg, e.key.part().bytes()),
        Expr::Socket(e) => frame.store(e.dreg, e.key.part().bytes()),
        Expr::Osf(e) => frame.store(e.dreg, NAME),
        Expr::Fib(e) => frame.store(e.dreg, if e.result == FibResult::OIFNAME { NAME } else { 4 }),
        Expr::Numgen(e) if e.modulus == 0 => refuse(ERANGE),
        Expr::Numgen(e) => frame.store(e.dreg, 4),
        Expr::Hash(e) if e.modulus == 0 => refuse(ERANGE),
        Expr::Hash(e) => {
            frame.load_some(e.sreg, e.len.unwrap_or(0).max(1) as usize)?;
            frame.store(e.dreg, 4)
        }
        Expr::Xfrm(e) => frame.store(e.dreg, e.key.part().bytes()),
        Expr::Tunnel(e) => frame.store(e.dreg, if e.key == TunnelKey::PATH { 1 } else { 4 }),
        Expr::Exthdr(e) => {
            let len = e.len.unwrap_or(1).max(1) as usize;
            frame.load_some(e.sreg, len)?;
            frame.store_some(e.dreg, len)
        }
        Expr::Inner(e) => registers(frame, family, &e.expr),
        Expr::Nat(e) => [e.addr_min, e.addr_max, e.proto_min, e.proto_max]
            .into_iter()
            .try_for_each(|register| frame.load_some(register, 1)),
        Expr::Masq(e) => frame.load_some(e.proto_min, 2).and(frame.load_some(e.proto_max, 2)),
        Expr::Redir(e) => frame.load_some(e.proto_min, 2).and(frame.load_some(e.proto_max, 2)),
        Expr::Tproxy(e) => frame.load_some(e.addr, 4).and(frame.load_some(e.port, 2)),
        Expr::Dup(e) => frame.load_some(e.addr, 4).and(frame.load_some(e.device, 4)),
        Expr::Fwd(e) => frame.load(e.device, 4).and(frame.load_some(e.addr, 4)),
        Expr::Queue(e) => frame.load_some(e.sreg, 2),
        _ => Ok(()),
    }
}

/// What the kernel adds to an expression when it shows it.
pub(super) fn complete(expr: &mut Expr) {
    match expr {
        Expr::Counter(Counter { bytes, packets }) => {
            *bytes = Some(bytes.unwrap_or(0));
            *packets = Some(packets.unwrap_or(0));
        }
        Expr::Quota(Quota { flags, consumed, .. }) => {
            *flags = Some(flags.unwrap_or_default());
            *consumed = Some(consumed.unwrap_or(0));
        }
        Expr::Limit(limit) => {
            limit.of = Some(limit.of.unwrap_or(LimitType::PACKETS));
            limit.flags = Some(limit.flags.unwrap_or_default());
        }
        _ => {}
    }
}

fn bytes(data: &Data) -> Result<usize, Refusal> {
    match data.value().map(<[u8]>::len) {
        None | Some(0) => refuse(EINVAL),
        Some(len) if len > MAX_CONSTANT => refuse(EOVERFLOW),
        Some(len) => Ok(len),
    }
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

/// `sizeof(struct nft_data)`: a constant in an expression is of one large register at most.
const MAX_CONSTANT: usize = 16;
/// `IFNAMSIZ`, and what osf writes.
const NAME: usize = 16;
/// Words of all registers, and the first behind the verdict.
const WORDS: usize = 20;
const FIRST_WORD: usize = 4;
const NFTA_EXPR_DATA: u16 = 2;
const NFTA_IMMEDIATE_DATA: u16 = 2;
const NFTA_DATA_VERDICT: u16 = 2;
