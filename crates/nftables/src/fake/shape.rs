//! The properties of a set: types and lengths of its keys and values, its flags, and the backend that follows
//! from them.

use sluicegate_netlink::Errno;

use crate::expr::Expr;
use crate::expr::data::NFT_DATA_VERDICT;
use crate::expr::wire::*;
use crate::fake::element_exprs::is_alike;
use crate::fake::message::{Attrs, Refusal, refusal, refuse};
use crate::fake::store::SetBackend;
use crate::object::SetFlags;
use crate::object::set::wire::*;

/// The properties of a set that have to match if it is added again.
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

impl Shape {
    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.flags == other.flags
            && self.key_type == other.key_type
            && self.key_len == other.key_len
            && self.data_type == other.data_type
            && self.data_len == other.data_len
            && self.fields == other.fields
            && self.exprs.len() == other.exprs.len()
            && self.exprs.iter().zip(&other.exprs).all(|(a, b)| is_alike(a, b))
    }

    /// Returns the backend that the kernel would choose; `None` if none supports everything that was
    /// requested.
    pub(super) fn backend(&self) -> Option<SetBackend> {
        if !self.flags.contains(SetFlags::INTERVAL) {
            return Some(SetBackend::Keys);
        }
        if self.flags.contains(SetFlags::DYNAMIC) {
            return None;
        }
        Some(match self.fields.as_slice() {
            [] | [_] => SetBackend::Intervals { anonymous: self.flags.contains(SetFlags::ANONYMOUS) },
            fields => SetBackend::Ranges(fields.iter().map(|bytes| *bytes as usize).collect()),
        })
    }

    /// Returns whether the kernel would use the resizable hash table: for single keys, if the set has no size
    /// or needs a feature of that table.
    pub(super) fn resizable(&self, size: u32, carries: bool) -> bool {
        if self.backend() != Some(SetBackend::Keys) {
            return false;
        }
        let needs = self.flags.intersects(SetFlags::DYNAMIC | SetFlags::TIMEOUT);
        let bitmap =
            self.key_len <= 2 && !carries && !self.flags.intersects(SetFlags::MAP | SetFlags::OBJECT);
        needs || (size == 0 && !bitmap)
    }

    /// Returns whether the kernel can garbage-collect elements by their expressions (`NFT_EXPR_GC`): the
    /// backend has to support it, and elements must not have timeouts.
    pub(super) fn supports_gc(&self, resizable: bool) -> bool {
        (resizable || self.flags.contains(SetFlags::INTERVAL)) && !self.flags.contains(SetFlags::TIMEOUT)
    }
}

pub(super) fn read(attrs: &Attrs<'_>) -> Result<Shape, Refusal> {
    let key_type = attrs.be32(NFTA_SET_KEY_TYPE)?.unwrap_or(0);
    let key_len = attrs.be32(NFTA_SET_KEY_LEN)?.unwrap_or(0) as usize;
    if key_type & RESERVED == RESERVED || key_len == 0 || key_len > MAX_VALUE {
        return refuse(Errno::EINVAL);
    }
    let flags = SetFlags::from_bits_retain(attrs.be32(NFTA_SET_FLAGS)?.unwrap_or(0));
    let all = |of: SetFlags| flags.contains(of);
    let known = SetFlags::from_bits_retain(0x1ff);
    if !(flags - known).is_empty()
        || all(SetFlags::MAP | SetFlags::OBJECT)
        || all(SetFlags::DYNAMIC | SetFlags::OBJECT)
        || (all(SetFlags::ANONYMOUS | SetFlags::TIMEOUT) && !all(SetFlags::DYNAMIC))
        || all(SetFlags::CONSTANT | SetFlags::TIMEOUT)
    {
        return refuse(Errno::EOPNOTSUPP);
    }
    let (mut data_type, mut data_len) = (0, 0);
    match attrs.be32(NFTA_SET_DATA_TYPE)? {
        None if all(SetFlags::MAP) => return refuse(Errno::EINVAL),
        None => {}
        Some(_) if !all(SetFlags::MAP) => return refuse(Errno::EINVAL),
        Some(NFT_DATA_VERDICT) => (data_type, data_len) = (NFT_DATA_VERDICT, VERDICT_BYTES),
        Some(of) => {
            let len = attrs.be32(NFTA_SET_DATA_LEN)?.unwrap_or(0) as usize;
            if of & RESERVED == RESERVED || len == 0 || len > MAX_VALUE {
                return refuse(Errno::EINVAL);
            }
            (data_type, data_len) = (of, len);
        }
    }
    let object_kind = match attrs.be32(NFTA_SET_OBJ_TYPE)? {
        None if all(SetFlags::OBJECT) => return refuse(Errno::EINVAL),
        None => 0,
        Some(_) if !all(SetFlags::OBJECT) => return refuse(Errno::EINVAL),
        Some(kind @ 1..=MAX_OBJECT) => kind,
        Some(_) => return refuse(Errno::EOPNOTSUPP),
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

pub(super) fn times(attrs: &Attrs<'_>, flags: SetFlags) -> Result<(u64, u32), Refusal> {
    let timeout = attrs.be64(NFTA_SET_TIMEOUT)?;
    let interval = attrs.be32(NFTA_SET_GC_INTERVAL)?;
    if timeout.is_some() || interval.is_some() {
        if !flags.contains(SetFlags::TIMEOUT) {
            return refuse(Errno::EINVAL);
        }
        if flags.contains(SetFlags::ANONYMOUS) {
            return refuse(Errno::EOPNOTSUPP);
        }
    }
    Ok((timeout.unwrap_or(0), interval.unwrap_or(0)))
}

/// Decodes the size and the fields of a concatenation.
pub(super) fn describe(attrs: &Attrs<'_>, shape: &mut Shape) -> Result<u32, Refusal> {
    let description = Attrs::nested(attrs.get(NFTA_SET_DESC))?;
    if let Some(list) = description.get(NFTA_SET_DESC_CONCAT) {
        for field in list.attributes() {
            let field = field.map_err(|_| refusal(Errno::EINVAL))?;
            if field.kind != NFTA_LIST_ELEM {
                return refuse(Errno::EINVAL);
            }
            if shape.fields.len() == MAX_FIELDS {
                return refuse(Errno::E2BIG);
            }
            let length =
                Attrs::nested(Some(&field))?.be32(NFTA_SET_FIELD_LEN)?.ok_or(refusal(Errno::EINVAL))?;
            if length == 0 || length as usize > MAX_VALUE {
                return refuse(Errno::EINVAL);
            }
            shape.fields.push(length);
        }
        let words: usize = shape.fields.iter().map(|bytes| (*bytes as usize).div_ceil(4)).sum();
        if words != shape.key_len.div_ceil(4) {
            return refuse(Errno::EINVAL);
        }
    }
    if (shape.fields.len() > 1) != shape.flags.contains(SetFlags::CONCAT) {
        return refuse(Errno::EINVAL);
    }
    Ok(description.be32(NFTA_SET_DESC_SIZE)?.unwrap_or(0))
}

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
