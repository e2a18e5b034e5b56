//! Sets and maps (`enum nft_set_attributes`).

use sluicegate_netlink::attr::{Attribute, Attributes};
use sluicegate_netlink::{DecodeError, Error, MessageWriter, Transport};

use super::{UserData, expressions, list, name, need, one};
use crate::expr::define::keep_alone;
use crate::expr::{Expr, ObjectKind};
use crate::object::SetFlags;
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
    /// How many elements it has, without the catch-all. Of intervals, half of their bounds: one that ends with the last key of all has no second.
    /// From Linux 6.16 on.
    pub count: Option<u32>,
    /// How the kernel keeps its elements, by the name of the code that does it: to be shown, not to be decided by. A kernel without
    /// names of its code says an address. From Linux 6.16 on.
    pub backend: Option<String>,
    /// Attributes that only a newer kernel has, or that say more than the fields above can, as they came: none so far.
    pub rest: Vec<u8>,
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
            count: None,
            backend: None,
            rest: Vec::new(),
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
                NFTA_SET_DESC => {
                    if !set.describe(&attribute)? {
                        keep_alone(&mut set.rest, &attribute);
                    }
                }
                NFTA_SET_TIMEOUT => set.timeout = Some(attribute.be64()?),
                NFTA_SET_GC_INTERVAL => set.gc_interval = Some(attribute.be32()?),
                NFTA_SET_USERDATA => set.user_data = attribute.payload.to_vec(),
                NFTA_SET_OBJ_TYPE => set.object_kind = Some(ObjectKind(attribute.be32()?)),
                NFTA_SET_HANDLE => set.handle = attribute.be64()?,
                NFTA_SET_EXPR => set.expressions = vec![Expr::decode(&attribute)?],
                NFTA_SET_EXPRESSIONS => set.expressions = expressions(&attribute)?,
                NFTA_SET_TYPE => set.backend = Some(attribute.str()?.to_owned()),
                NFTA_SET_COUNT => set.count = Some(attribute.be32()?),
                // What is only sent has its number.
                NFTA_SET_ID | NFTA_SET_PAD => {}
                _ => keep_alone(&mut set.rest, &attribute),
            }
        }
        set.table = need(table, "NFTA_SET_TABLE")?;
        set.name = need(named, "NFTA_SET_NAME")?;
        Ok(set)
    }

    /// Reads the size and the parts; tells whether that is all that was said.
    fn describe(&mut self, description: &Attribute<'_>) -> Result<bool, DecodeError> {
        let mut whole = true;
        for attribute in description.attributes() {
            let attribute = attribute?;
            match attribute.kind {
                NFTA_SET_DESC_SIZE => self.size = Some(attribute.be32()?),
                NFTA_SET_DESC_CONCAT => {
                    for field in attribute.attributes() {
                        let field = field?;
                        let length = field.attributes().find(NFTA_SET_FIELD_LEN)?;
                        self.fields.push(need(length, "NFTA_SET_FIELD_LEN")?.be32()?);
                        whole &= field.attributes().count() == 1;
                    }
                }
                _ => whole = false,
            }
        }
        Ok(whole)
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

/// Reads one set or map by its name; `None` when there is none.
///
/// # Errors
/// When the kernel refuses for another reason than that, or does not answer.
pub fn set(
    transport: &mut (impl Transport + ?Sized),
    family: Family,
    table: &str,
    name: &str,
) -> Result<Option<Set>, Error> {
    let write = |request: &mut MessageWriter<'_>| {
        request.put_str(NFTA_SET_TABLE, table);
        request.put_str(NFTA_SET_NAME, name);
    };
    one(transport, NFT_MSG_GETSET, family, write, Set::decode)
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
/// `NFTA_SET_ID`.
const NFTA_SET_ID: u16 = 10;
/// `NFTA_SET_TIMEOUT`.
const NFTA_SET_TIMEOUT: u16 = 11;
/// `NFTA_SET_GC_INTERVAL`.
const NFTA_SET_GC_INTERVAL: u16 = 12;
/// `NFTA_SET_USERDATA`.
const NFTA_SET_USERDATA: u16 = 13;
/// `NFTA_SET_PAD`.
const NFTA_SET_PAD: u16 = 14;
/// `NFTA_SET_OBJ_TYPE`.
const NFTA_SET_OBJ_TYPE: u16 = 15;
/// `NFTA_SET_HANDLE`.
const NFTA_SET_HANDLE: u16 = 16;
/// `NFTA_SET_EXPR`.
const NFTA_SET_EXPR: u16 = 17;
/// `NFTA_SET_EXPRESSIONS`.
const NFTA_SET_EXPRESSIONS: u16 = 18;
/// `NFTA_SET_TYPE`.
const NFTA_SET_TYPE: u16 = 19;
/// `NFTA_SET_COUNT`.
const NFTA_SET_COUNT: u16 = 20;
/// `NFTA_SET_DESC_SIZE`.
const NFTA_SET_DESC_SIZE: u16 = 1;
/// `NFTA_SET_DESC_CONCAT`.
const NFTA_SET_DESC_CONCAT: u16 = 2;
/// `NFTA_SET_FIELD_LEN`.
const NFTA_SET_FIELD_LEN: u16 = 1;

#[cfg(test)]
mod tests {
    use sluicegate_netlink::attr::{self, Writer};

    use super::*;

    fn read(write: impl FnOnce(&mut Writer<'_>)) -> Set {
        let bytes = attr::encode(|w| {
            w.put_str(NFTA_SET_TABLE, "t");
            w.put_str(NFTA_SET_NAME, "s");
            write(w);
        })
        .unwrap();
        Set::decode(Family::IP, Attributes::new(&bytes)).unwrap()
    }

    #[test]
    fn what_a_kernel_says_of_the_elements_is_read() {
        let set = read(|w| {
            w.put_str(NFTA_SET_TYPE, "nft_set_rbtree_type");
            w.put_be32(NFTA_SET_COUNT, 3);
        });
        assert_eq!(set.backend.as_deref(), Some("nft_set_rbtree_type"));
        assert_eq!((set.count, set.rest.len()), (Some(3), 0));
    }

    #[test]
    fn what_only_a_newer_kernel_says_is_kept() {
        let newer = |w: &mut Writer<'_>| {
            w.put_u8(77, 5);
            w.nest(78).put_be32(1, 9);
        };
        assert_eq!(read(newer).rest, attr::encode(newer).unwrap());
        let described = |w: &mut Writer<'_>| {
            let mut description = w.nest(NFTA_SET_DESC);
            description.put_be32(NFTA_SET_DESC_SIZE, 7);
            description.put_be32(9, 1);
        };
        let set = read(described);
        assert_eq!((set.size, set.rest), (Some(7), attr::encode(described).unwrap()));
        let field = |w: &mut Writer<'_>| {
            let mut description = w.nest(NFTA_SET_DESC);
            let mut field = description.nest(NFTA_SET_DESC_CONCAT);
            let mut field = field.nest(1);
            field.put_be32(NFTA_SET_FIELD_LEN, 4);
            field.put_u8(2, 1);
        };
        let set = read(field);
        assert_eq!((set.fields, set.rest), (vec![4], attr::encode(field).unwrap()));
    }
}
