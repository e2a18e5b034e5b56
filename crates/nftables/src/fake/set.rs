//! Sets and maps: how they are made, what they may be, how they go.

use std::sync::Arc;

use sluicegate_netlink::attr::Attribute;
use sluicegate_netlink::message::Flags;

use crate::expr::Expr;
use crate::expr::wire::NFTA_LIST_ELEM;
use crate::fake::batch::Work;
use crate::fake::message::{
    Attrs, Done, E2BIG, EAFNOSUPPORT, EBUSY, EEXIST, EINVAL, ENFILE, ENOENT, EOPNOTSUPP, Refusal, Request,
    command, refusal, refuse,
};
use crate::fake::state::{Later, Table};
use crate::fake::store::{Form, Store};
use crate::name::Name;
use crate::read::SetFlags;

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
    pub(super) user_data: Vec<u8>,
    /// Rules that use it.
    pub(super) uses: u32,
    pub(super) bindings: Vec<Binding>,
    pub(super) store: Store,
    /// Made by the transaction under way.
    pub(super) fresh: bool,
}

/// What a set is: what has to be equal where it is added again.
#[derive(Debug, Clone)]
pub(super) struct Shape {
    pub(super) flags: SetFlags,
    pub(super) key_type: u32,
    pub(super) key_len: usize,
    pub(super) data_type: u32,
    pub(super) data_len: usize,
    pub(super) object_kind: u32,
    pub(super) fields: Vec<u32>,
    pub(super) exprs: Vec<Expr>,
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

    /// The size as its user gave it.
    pub(super) fn user_size(&self) -> u32 {
        if let Form::Intervals { .. } = self.store.form { self.size / 2 } else { self.size }
    }
}

impl Shape {
    fn is_same(&self, other: &Self) -> bool {
        let names = |shape: &Self| shape.exprs.iter().map(|e| e.name().to_owned()).collect::<Vec<_>>();
        self.flags == other.flags
            && self.key_type == other.key_type
            && self.key_len == other.key_len
            && self.data_type == other.data_type
            && self.data_len == other.data_len
            && self.fields == other.fields
            && names(self) == names(other)
    }

    /// How the kernel would keep it; `None` where no representation can all that is asked for.
    fn form(&self) -> Option<Form> {
        if !self.flags.contains(SetFlags::INTERVAL) {
            return Some(Form::Keys);
        }
        if self.flags.contains(SetFlags::EVAL) {
            return None;
        }
        Some(match self.fields.as_slice() {
            [] | [_] => Form::Intervals { anonymous: self.flags.contains(SetFlags::ANONYMOUS) },
            fields => Form::Ranges(fields.iter().map(|bytes| *bytes as usize).collect()),
        })
    }
}

/// `NFT_MSG_NEWSET`
pub(super) fn add(work: &mut Work, request: &Request<'_>) -> Done {
    let attrs = &request.attrs;
    if [NFTA_SET_TABLE, NFTA_SET_NAME, NFTA_SET_KEY_LEN, NFTA_SET_ID].iter().any(|kind| !attrs.has(*kind)) {
        return refuse(EINVAL);
    }
    let mut shape = shape(attrs)?;
    let policy = attrs.be32(NFTA_SET_POLICY)?.unwrap_or(0);
    let (timeout, gc_interval) = times(attrs, shape.flags)?;
    if policy > 1 {
        return refuse(EOPNOTSUPP);
    }
    let size = describe(attrs, &mut shape)?;
    let name_attr = attrs.get(NFTA_SET_NAME);
    let name = attrs.name(NFTA_SET_NAME)?.ok_or(refusal(EINVAL))?;
    let table = work.state.table(request.family, attrs, NFTA_SET_TABLE)?;
    if let Ok(held) = table.set_named(name_attr) {
        if request.flags.contains(Flags::EXCL) {
            return Err(refusal(EEXIST).at(name_attr));
        }
        if request.flags.contains(Flags::REPLACE) || held.is_anonymous() {
            return refuse(EOPNOTSUPP);
        }
        shape.exprs = stateful_of(attrs, shape.flags)?;
        if !held.shape.is_same(&shape) {
            return Err(refusal(EEXIST).at(name_attr));
        }
        let size = kernel_size(&held.store.form, size);
        table.pending.later.push(Later::Set { set: held.handle, timeout, gc_interval, size });
        work.changes += 1;
        return Ok(());
    }
    if !request.flags.contains(Flags::CREATE) {
        return refuse(ENOENT);
    }
    let form = shape.form().ok_or(refusal(EOPNOTSUPP))?;
    let name = allocate_name(table, &name)?;
    shape.exprs = stateful_of(attrs, shape.flags)?;
    let handle = table.next_handle();
    let set = Set {
        name,
        handle,
        policy,
        timeout,
        gc_interval,
        size: kernel_size(&form, size),
        user_data: attrs.bytes(NFTA_SET_USERDATA),
        uses: 0,
        bindings: Vec::new(),
        store: Store::new(form),
        shape,
        fresh: true,
    };
    let table_handle = table.handle;
    table.sets.push(Arc::new(set));
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
    let table = work.state.table(request.family, attrs, NFTA_SET_TABLE)?;
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
}

fn shape(attrs: &Attrs<'_>) -> Result<Shape, Refusal> {
    let key_type = attrs.be32(NFTA_SET_KEY_TYPE)?.unwrap_or(0);
    let key_len = attrs.be32(NFTA_SET_KEY_LEN)?.unwrap_or(0) as usize;
    if key_type & RESERVED == RESERVED || key_len == 0 || key_len > MAX_VALUE {
        return refuse(EINVAL);
    }
    let flags = SetFlags::from_bits_retain(attrs.be32(NFTA_SET_FLAGS)?.unwrap_or(0));
    let all = |of: SetFlags| flags.contains(of);
    let known = SetFlags::from_bits_retain(0x1ff);
    if !(flags - known).is_empty()
        || all(SetFlags::MAP | SetFlags::OBJECT)
        || all(SetFlags::EVAL | SetFlags::OBJECT)
        || (all(SetFlags::ANONYMOUS | SetFlags::TIMEOUT) && !all(SetFlags::EVAL))
        || all(SetFlags::CONSTANT | SetFlags::TIMEOUT)
    {
        return refuse(EOPNOTSUPP);
    }
    let (mut data_type, mut data_len) = (0, 0);
    match attrs.be32(NFTA_SET_DATA_TYPE)? {
        None if all(SetFlags::MAP) => return refuse(EINVAL),
        None => {}
        Some(_) if !all(SetFlags::MAP) => return refuse(EINVAL),
        Some(VERDICT) => (data_type, data_len) = (VERDICT, VERDICT_BYTES),
        Some(of) => {
            let len = attrs.be32(NFTA_SET_DATA_LEN)?.unwrap_or(0) as usize;
            if of & RESERVED == RESERVED || len == 0 || len > MAX_VALUE {
                return refuse(EINVAL);
            }
            (data_type, data_len) = (of, len);
        }
    }
    let object_kind = match attrs.be32(NFTA_SET_OBJ_TYPE)? {
        None if all(SetFlags::OBJECT) => return refuse(EINVAL),
        None => 0,
        Some(_) if !all(SetFlags::OBJECT) => return refuse(EINVAL),
        Some(kind @ 1..=MAX_OBJECT) => kind,
        Some(_) => return refuse(EOPNOTSUPP),
    };
    Ok(Shape {
        flags,
        key_type,
        key_len,
        data_type,
        data_len,
        object_kind,
        fields: Vec::new(),
        exprs: Vec::new(),
    })
}

fn times(attrs: &Attrs<'_>, flags: SetFlags) -> Result<(u64, u32), Refusal> {
    let timeout = attrs.be64(NFTA_SET_TIMEOUT)?;
    let interval = attrs.be32(NFTA_SET_GC_INTERVAL)?;
    if timeout.is_some() || interval.is_some() {
        if !flags.contains(SetFlags::TIMEOUT) {
            return refuse(EINVAL);
        }
        if flags.contains(SetFlags::ANONYMOUS) {
            return refuse(EOPNOTSUPP);
        }
    }
    Ok((timeout.unwrap_or(0), interval.unwrap_or(0)))
}

/// Reads the size and the parts of a concatenation.
fn describe(attrs: &Attrs<'_>, shape: &mut Shape) -> Result<u32, Refusal> {
    let description = Attrs::nested(attrs.get(NFTA_SET_DESC))?;
    if let Some(list) = description.get(NFTA_SET_DESC_CONCAT) {
        for field in list.attributes() {
            let field = field.map_err(|_| refusal(EINVAL))?;
            if field.kind != NFTA_LIST_ELEM {
                return refuse(EINVAL);
            }
            if shape.fields.len() == MAX_FIELDS {
                return refuse(E2BIG);
            }
            let length = Attrs::nested(Some(&field))?.be32(NFTA_SET_FIELD_LEN)?.ok_or(refusal(EINVAL))?;
            if length == 0 || length as usize > MAX_VALUE {
                return refuse(EINVAL);
            }
            shape.fields.push(length);
        }
        let words: usize = shape.fields.iter().map(|bytes| (*bytes as usize).div_ceil(4)).sum();
        if words != shape.key_len.div_ceil(4) {
            return refuse(EINVAL);
        }
    }
    if (shape.fields.len() > 1) != shape.flags.contains(SetFlags::CONCAT) {
        return refuse(EINVAL);
    }
    Ok(description.be32(NFTA_SET_DESC_SIZE)?.unwrap_or(0))
}

fn kernel_size(form: &Form, size: u32) -> u32 {
    if let Form::Intervals { .. } = form { size.saturating_mul(2) } else { size }
}

/// The expressions that each element carries.
fn stateful_of(attrs: &Attrs<'_>, flags: SetFlags) -> Result<Vec<Expr>, Refusal> {
    if let Some(one) = attrs.get(NFTA_SET_EXPR) {
        return Ok(vec![stateful(one, flags)?]);
    }
    let Some(list) = attrs.get(NFTA_SET_EXPRESSIONS) else { return Ok(Vec::new()) };
    if !flags.contains(SetFlags::EXPR) {
        return refuse(EINVAL);
    }
    stateful_list(list, flags)
}

/// A list of expressions that may be part of an element.
pub(super) fn stateful_list(list: &Attribute<'_>, flags: SetFlags) -> Result<Vec<Expr>, Refusal> {
    let mut exprs = Vec::new();
    for item in list.attributes() {
        let item = item.map_err(|_| refusal(EINVAL))?;
        if exprs.len() == MAX_EXPRS {
            return refuse(E2BIG);
        }
        exprs.push(stateful(&item, flags)?);
    }
    Ok(exprs)
}

/// An expression that may be part of an element.
pub(super) fn stateful(attribute: &Attribute<'_>, flags: SetFlags) -> Result<Expr, Refusal> {
    let expr = Expr::decode(attribute).map_err(|_| refusal(EINVAL))?;
    super::expression::check_state(&expr)?;
    match expr {
        Expr::Counter(_) | Expr::Quota(_) | Expr::Limit(_) | Expr::Last(_) => Ok(expr),
        // The kernel wants to clean them up, for which elements must not go by themselves.
        Expr::Connlimit(_) if !flags.contains(SetFlags::TIMEOUT) && flags.contains(SetFlags::EVAL) => {
            Ok(expr)
        }
        Expr::Unknown(_) => refuse(ENOENT),
        _ => refuse(EOPNOTSUPP),
    }
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

/// `NFT_DATA_VERDICT`
pub(super) const VERDICT: u32 = 0xffff_ff00;
/// `NFT_DATA_RESERVED_MASK`
const RESERVED: u32 = 0xffff_ff00;
/// `sizeof(struct nft_verdict)`
const VERDICT_BYTES: usize = 16;
/// `NFT_DATA_VALUE_MAXLEN`
pub(super) const MAX_VALUE: usize = 64;
/// `NFT_OBJECT_MAX`
const MAX_OBJECT: u32 = 10;
/// `NFT_REG32_COUNT`
const MAX_FIELDS: usize = 16;
/// `NFT_SET_EXPR_MAX`
pub(super) const MAX_EXPRS: usize = 2;
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
pub(super) const NFTA_SET_DESC_SIZE: u16 = 1;
pub(super) const NFTA_SET_DESC_CONCAT: u16 = 2;
pub(super) const NFTA_SET_FIELD_LEN: u16 = 1;
