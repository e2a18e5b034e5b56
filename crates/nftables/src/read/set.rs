//! Sets and maps (`enum nft_set_attributes`).

use sluicegate_netlink::attr::{Attribute, Attributes};
use sluicegate_netlink::{DecodeError, Error, Transport};

use super::{UserData, expressions, list, name, need};
use crate::expr::{Expr, ObjectKind};
use crate::{Family, Name};

/// A set or map that the kernel holds, without its elements.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Set {
    /// The family of its table.
    pub family: Family,
    /// Its table.
    pub table: Name,
    /// Its name; `__set%d` or `__map%d` with a number when it is anonymous.
    pub name: Name,
    /// Its handle.
    pub handle: u64,
    /// What it is and can do.
    pub flags: SetFlags,
    /// The type of its keys as nft numbers types: six bits for each part of a concatenation. The kernel does not look.
    pub key_type: u32,
    /// Bytes of a key.
    pub key_len: u32,
    /// The type of a map's data, likewise; `0xffffff00` is a verdict.
    pub data_type: Option<u32>,
    /// Bytes of a map's data; 16 of a verdict.
    pub data_len: Option<u32>,
    /// The kind of object that a map of objects gives.
    pub object_kind: Option<ObjectKind>,
    /// How many elements fit; `None` without a limit.
    pub size: Option<u32>,
    /// Bytes of each part of a concatenation with ranges.
    pub fields: Vec<u32>,
    /// `NFT_SET_POL_*`: 0 for speed, 1 for memory.
    pub policy: Option<u32>,
    /// How long an element stays, in milliseconds.
    pub timeout: Option<u64>,
    /// How often old elements are looked for, in milliseconds.
    pub gc_interval: Option<u32>,
    /// The expressions that each element has.
    pub expressions: Vec<Expr>,
    /// What its maker noted with it: the types of its keys and data, their byte order, a comment.
    pub user_data: Vec<u8>,
}

bitflags::bitflags! {
    /// `enum nft_set_flags`.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub struct SetFlags: u32 {
        /// `NFT_SET_ANONYMOUS`: it belongs to one rule.
        const ANONYMOUS = 0x01;
        /// `NFT_SET_CONSTANT`: it does not change once a rule uses it.
        const CONSTANT = 0x02;
        /// `NFT_SET_INTERVAL`: it holds ranges.
        const INTERVAL = 0x04;
        /// `NFT_SET_MAP`: it gives data.
        const MAP = 0x08;
        /// `NFT_SET_TIMEOUT`: elements may go by themselves.
        const TIMEOUT = 0x10;
        /// `NFT_SET_EVAL`: the packet path may change it.
        const EVAL = 0x20;
        /// `NFT_SET_OBJECT`: it gives stateful objects.
        const OBJECT = 0x40;
        /// `NFT_SET_CONCAT`: it holds ranges in several dimensions.
        const CONCAT = 0x80;
        /// `NFT_SET_EXPR`: elements have expressions.
        const EXPR = 0x100;
        const _ = !0;
    }
}

impl Set {
    /// The comment, if it has one.
    #[must_use]
    pub fn comment(&self) -> Option<&str> {
        UserData::new(&self.user_data).set_comment()
    }

    /// Reads the attributes of a message about a set.
    ///
    /// # Errors
    /// When they are malformed, or without a table and name.
    pub fn decode(family: Family, attributes: Attributes<'_>) -> Result<Self, DecodeError> {
        let (mut table, mut named) = (None, None);
        let mut set = Self {
            family,
            table: Name::held(""),
            name: Name::held(""),
            handle: 0,
            flags: SetFlags::empty(),
            key_type: 0,
            key_len: 0,
            data_type: None,
            data_len: None,
            object_kind: None,
            size: None,
            fields: Vec::new(),
            policy: None,
            timeout: None,
            gc_interval: None,
            expressions: Vec::new(),
            user_data: Vec::new(),
        };
        for attribute in attributes {
            let attribute = attribute?;
            match attribute.kind {
                NFTA_SET_TABLE => table = Some(name(&attribute)?),
                NFTA_SET_NAME => named = Some(name(&attribute)?),
                NFTA_SET_FLAGS => set.flags = SetFlags::from_bits_retain(attribute.be32()?),
                NFTA_SET_KEY_TYPE => set.key_type = attribute.be32()?,
                NFTA_SET_KEY_LEN => set.key_len = attribute.be32()?,
                NFTA_SET_DATA_TYPE => set.data_type = Some(attribute.be32()?),
                NFTA_SET_DATA_LEN => set.data_len = Some(attribute.be32()?),
                NFTA_SET_POLICY => set.policy = Some(attribute.be32()?),
                NFTA_SET_DESC => set.describe(&attribute)?,
                NFTA_SET_TIMEOUT => set.timeout = Some(attribute.be64()?),
                NFTA_SET_GC_INTERVAL => set.gc_interval = Some(attribute.be32()?),
                NFTA_SET_USERDATA => set.user_data = attribute.payload.to_vec(),
                NFTA_SET_OBJ_TYPE => set.object_kind = Some(ObjectKind(attribute.be32()?)),
                NFTA_SET_HANDLE => set.handle = attribute.be64()?,
                NFTA_SET_EXPR => set.expressions = vec![Expr::decode(&attribute)?],
                NFTA_SET_EXPRESSIONS => set.expressions = expressions(&attribute)?,
                _ => {}
            }
        }
        set.table = need(table, "NFTA_SET_TABLE")?;
        set.name = need(named, "NFTA_SET_NAME")?;
        Ok(set)
    }

    fn describe(&mut self, description: &Attribute<'_>) -> Result<(), DecodeError> {
        for attribute in description.attributes() {
            let attribute = attribute?;
            match attribute.kind {
                NFTA_SET_DESC_SIZE => self.size = Some(attribute.be32()?),
                NFTA_SET_DESC_CONCAT => {
                    for field in attribute.attributes() {
                        let length = field?.attributes().find(NFTA_SET_FIELD_LEN)?;
                        self.fields.push(need(length, "NFTA_SET_FIELD_LEN")?.be32()?);
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// Reads the sets and maps of a family, or those of one table; anonymous ones too.
///
/// # Errors
/// See [`tables`](super::tables).
pub fn sets(
    transport: &mut (impl Transport + ?Sized),
    family: Family,
    table: Option<&str>,
) -> Result<Vec<Set>, Error> {
    list(
        transport,
        NFT_MSG_GETSET,
        family,
        |request| {
            // The kernel filters by table only where a family is given.
            if let Some(table) = table.filter(|_| family != Family::UNSPEC) {
                request.put_str(NFTA_SET_TABLE, table);
            }
        },
        Set::decode,
        |set| table.is_none_or(|table| set.table.as_str() == table),
    )
}

/// `NFT_MSG_GETSET`.
const NFT_MSG_GETSET: u8 = 10;
/// `NFTA_SET_TABLE`.
const NFTA_SET_TABLE: u16 = 1;
/// `NFTA_SET_NAME`.
const NFTA_SET_NAME: u16 = 2;
/// `NFTA_SET_FLAGS`.
const NFTA_SET_FLAGS: u16 = 3;
/// `NFTA_SET_KEY_TYPE`.
const NFTA_SET_KEY_TYPE: u16 = 4;
/// `NFTA_SET_KEY_LEN`.
const NFTA_SET_KEY_LEN: u16 = 5;
/// `NFTA_SET_DATA_TYPE`.
const NFTA_SET_DATA_TYPE: u16 = 6;
/// `NFTA_SET_DATA_LEN`.
const NFTA_SET_DATA_LEN: u16 = 7;
/// `NFTA_SET_POLICY`.
const NFTA_SET_POLICY: u16 = 8;
/// `NFTA_SET_DESC`.
const NFTA_SET_DESC: u16 = 9;
/// `NFTA_SET_TIMEOUT`.
const NFTA_SET_TIMEOUT: u16 = 11;
/// `NFTA_SET_GC_INTERVAL`.
const NFTA_SET_GC_INTERVAL: u16 = 12;
/// `NFTA_SET_USERDATA`.
const NFTA_SET_USERDATA: u16 = 13;
/// `NFTA_SET_OBJ_TYPE`.
const NFTA_SET_OBJ_TYPE: u16 = 15;
/// `NFTA_SET_HANDLE`.
const NFTA_SET_HANDLE: u16 = 16;
/// `NFTA_SET_EXPR`.
const NFTA_SET_EXPR: u16 = 17;
/// `NFTA_SET_EXPRESSIONS`.
const NFTA_SET_EXPRESSIONS: u16 = 18;
/// `NFTA_SET_DESC_SIZE`.
const NFTA_SET_DESC_SIZE: u16 = 1;
/// `NFTA_SET_DESC_CONCAT`.
const NFTA_SET_DESC_CONCAT: u16 = 2;
/// `NFTA_SET_FIELD_LEN`.
const NFTA_SET_FIELD_LEN: u16 = 1;
