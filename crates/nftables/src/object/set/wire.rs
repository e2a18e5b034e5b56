//! Encodes and decodes sets and maps as netlink attributes, with the user data that nft stores.

use std::borrow::Cow;

use sluicegate_netlink::DecodeError;
use sluicegate_netlink::attr::{Attribute, Attributes, Writer};

use crate::datatype::{DataType, Order};
use crate::expr::data::NFT_DATA_VERDICT;
use crate::expr::define::keep_alone;
use crate::expr::wire::{EXPRESSION, EXPRESSIONS, NFTA_LIST_ELEM, expressions, list_of};
use crate::expr::{Expr, ObjectKind};
use crate::family::Family;
use crate::key::{Part, width};
use crate::name::Name;
use crate::object::userdata::{self, UserData};
use crate::object::{SetData, SetFlags, SetPolicy, SetType, typeof_data};
use crate::tree::stateful::stateful;
use crate::wire::attributes::{Enumeration, attributes};
use crate::wire::decode::{name, need};
use crate::wording::millis;

impl super::Set {
    /// Appends the attributes of the set. `number` is its number in the batch.
    pub(crate) fn encode(&self, w: &mut Writer<'_>, number: u32) {
        self.encode_typed(w, number, None);
    }

    /// Appends the attributes as `encode` does, for keys that are wider than their type.
    pub(crate) fn encode_typed(&self, w: &mut Writer<'_>, number: u32, key_type: Option<DataType>) {
        let key = self.key.parts();
        w.put_str(NFTA_SET_TABLE, &self.id.table.name);
        w.put_str(NFTA_SET_NAME, &self.id.name);
        w.put_be32(NFTA_SET_FLAGS, self.wire_flags(key.len()).bits());
        w.put_be32(NFTA_SET_KEY_TYPE, key_type.map_or_else(|| type_code(&key), |of| of.id().into()));
        w.put_be32(NFTA_SET_KEY_LEN, length(&key));
        match &self.data {
            None => {}
            Some(SetData::Value(of)) => {
                let parts = of.parts();
                w.put_be32(NFTA_SET_DATA_TYPE, type_code(&parts));
                w.put_be32(NFTA_SET_DATA_LEN, length(&parts));
            }
            Some(SetData::Interval(of)) => {
                let parts = of.parts();
                w.put_be32(NFTA_SET_DATA_TYPE, type_code(&parts));
                w.put_be32(NFTA_SET_DATA_LEN, 2 * length(&parts));
            }
            Some(SetData::Verdict) => {
                w.put_be32(NFTA_SET_DATA_TYPE, NFT_DATA_VERDICT);
                w.put_be32(NFTA_SET_DATA_LEN, 0);
            }
            Some(SetData::Object(kind)) => w.put_be32(NFTA_SET_OBJ_TYPE, kind.0),
        }
        w.put_be32(NFTA_SET_ID, number);
        if self.policy == Some(SetPolicy::Memory) {
            w.put_be32(NFTA_SET_POLICY, 1);
        }
        self.encode_description(&key, w);
        if let Some(timeout) = self.timeout {
            w.put_be64(NFTA_SET_TIMEOUT, millis(timeout));
        }
        if let Some(interval) = self.gc_interval {
            w.put_be32(NFTA_SET_GC_INTERVAL, u32::try_from(millis(interval)).unwrap_or(u32::MAX));
        }
        w.put(NFTA_SET_USERDATA, &self.user_data(&key));
        let exprs: Vec<_> = self.statements.iter().filter_map(stateful).collect();
        match exprs.as_slice() {
            [] => {}
            [one] => one.encode(w, NFTA_SET_EXPR),
            several => {
                let mut list = w.nest(NFTA_SET_EXPRESSIONS);
                several.iter().for_each(|expr| expr.encode(&mut list, NFTA_LIST_ELEM));
            }
        }
    }

    fn wire_flags(&self, parts: usize) -> SetFlags {
        let mut flags = self.flags;
        match self.data {
            None => {}
            Some(SetData::Object(_)) => flags |= SetFlags::OBJECT,
            Some(_) => flags |= SetFlags::MAP,
        }
        flags.set(SetFlags::TIMEOUT, self.timeout.is_some() || flags.contains(SetFlags::TIMEOUT));
        flags.set(SetFlags::CONCAT, parts > 1 && flags.contains(SetFlags::INTERVAL));
        flags.set(SetFlags::EXPR, self.statements.len() > 1);
        flags
    }

    fn encode_description(&self, key: &[Part], w: &mut Writer<'_>) {
        let fields = key.len() > 1 && self.flags.contains(SetFlags::INTERVAL);
        if self.size.is_none() && !fields {
            return;
        }
        let mut description = w.nest(NFTA_SET_DESC);
        if let Some(size) = self.size {
            description.put_be32(NFTA_SET_DESC_SIZE, size);
        }
        if fields {
            let mut concat = description.nest(NFTA_SET_DESC_CONCAT);
            for part in key {
                let bytes = u32::try_from(part.bytes()).unwrap_or(0);
                concat.nest(NFTA_LIST_ELEM).put_be32(NFTA_SET_FIELD_LEN, bytes);
            }
        }
    }

    /// Returns the user data that nft stores: byte orders, types, comment. Without them `nft list` prints
    /// numbers byte-swapped.
    fn user_data(&self, key: &[Part]) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(64);
        userdata::push_u32(&mut bytes, userdata::KEYBYTEORDER, byte_order(key));
        match &self.data {
            Some(SetData::Value(of) | SetData::Interval(of)) => {
                userdata::push_u32(&mut bytes, userdata::DATABYTEORDER, byte_order(&of.parts()));
            }
            Some(SetData::Verdict) => userdata::push_u32(&mut bytes, userdata::DATABYTEORDER, 0),
            _ => {}
        }
        if self.auto_merge {
            userdata::push_u32(&mut bytes, userdata::MERGE_ELEMENTS, 1);
        }
        if let Some(of) = typeof_data::encode(&self.key) {
            userdata::push(&mut bytes, userdata::KEY_TYPEOF, &of);
        }
        if let Some(SetData::Value(data) | SetData::Interval(data)) = &self.data
            && let Some(of) = typeof_data::encode(data)
        {
            userdata::push(&mut bytes, userdata::DATA_TYPEOF, &of);
        }
        if let (SetType::Typeof(_), Some(SetData::Verdict)) = (&self.key, &self.data) {
            userdata::push(&mut bytes, userdata::DATA_TYPEOF, &typeof_data::verdict());
        }
        if self.data.is_some() {
            let interval = matches!(self.data, Some(SetData::Interval(_)));
            userdata::push_u32(&mut bytes, userdata::DATA_INTERVAL, interval.into());
        }
        if let Some(comment) = &self.comment {
            userdata::push_comment(&mut bytes, userdata::SET_COMMENT, comment);
        }
        bytes
    }
}

/// Returns nft's number of a type: six bits for each part.
pub(crate) fn type_code(parts: &[Part]) -> u32 {
    parts.iter().fold(0, |code, part| code << 6 | u32::from(part.data_type().id()))
}

/// Returns the length of a value for `NFTA_SET_KEY_LEN` and `NFTA_SET_DATA_LEN`.
pub(crate) fn length(parts: &[Part]) -> u32 {
    u32::try_from(width(parts)).unwrap_or(u32::MAX)
}

/// Returns nft's number of a byte order; 0 for a concatenation, whose parts may differ.
fn byte_order(parts: &[Part]) -> u32 {
    match parts {
        [only] if only.order() == Order::Host => 1,
        [_] => 2,
        _ => 0,
    }
}

/// A set or map as the kernel lists it, without its elements.
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
    /// The properties of the set.
    pub flags: SetFlags,
    /// The type of its keys, as nft numbers types: six bits for each part of a concatenation. The kernel does
    /// not interpret it.
    pub key_type: u32,
    /// The length of a key in bytes.
    pub key_len: u32,
    /// The type of a map's data, with the same numbers; `0xffffff00` for verdicts.
    pub data_type: Option<u32>,
    /// The length of a map's data in bytes; 16 for verdicts.
    pub data_len: Option<u32>,
    /// The kind of objects in a map of objects.
    pub object_kind: Option<ObjectKind>,
    /// The maximum number of elements; `None` for no limit.
    pub size: Option<u32>,
    /// The length of each field of a concatenation with ranges, in bytes.
    pub fields: Vec<u32>,
    /// `NFT_SET_POL_*`: 0 for performance, 1 for memory.
    pub policy: Option<u32>,
    /// The timeout of elements in milliseconds.
    pub timeout: Option<u64>,
    /// The interval of garbage collection in milliseconds.
    pub gc_interval: Option<u32>,
    /// The expressions that each element carries.
    pub expressions: Vec<Expr>,
    /// User data, in which nft stores the types of keys and data, their byte order, and a comment.
    pub user_data: Vec<u8>,
    /// The number of elements, without the catch-all element. For intervals it is half the number of bounds;
    /// an interval up to the last key has only one. Since Linux 6.16.
    pub count: Option<u32>,
    /// The backend that stores the elements, by the name of its operations in the kernel (for example
    /// `nft_set_rhash_type`), or an address in a kernel without symbols. It is informative only. Since Linux
    /// 6.16.
    pub backend: Option<String>,
    /// Unknown attributes, and known ones with content that the fields above cannot represent, as they were
    /// received. There are none so far.
    pub rest: Vec<u8>,
}

impl Set {
    /// Returns the comment in the user data, if there is one.
    #[must_use]
    pub fn comment(&self) -> Option<Cow<'_, str>> {
        UserData::new(&self.user_data).set_comment()
    }

    /// Decodes the attributes of a message about a set.
    ///
    /// # Errors
    /// If they are malformed, or lack the table or the name.
    pub fn decode(family: Family, attributes: Attributes<'_>) -> Result<Self, DecodeError> {
        let (mut table, mut named) = (None, None);
        let mut set = Self {
            family,
            table: Name::from_kernel(""),
            name: Name::from_kernel(""),
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
                NFTA_SET_TYPE => set.backend = Some(attribute.text()?.into_owned()),
                NFTA_SET_COUNT => set.count = Some(attribute.be32()?),
                // The number in the batch is only sent.
                NFTA_SET_ID | NFTA_SET_PAD => {}
                _ => keep_alone(&mut set.rest, &attribute),
            }
        }
        set.table = need(table, "NFTA_SET_TABLE")?;
        set.name = need(named, "NFTA_SET_NAME")?;
        Ok(set)
    }

    /// Decodes the size and the fields, and returns whether the description contains nothing else.
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

/// The fields of a concatenation.
const FIELDS: Enumeration = &[list_of(FIELD)];

attributes! {
    SET: "enum nft_set_attributes, linux/netfilter/nf_tables.h" {
        NFTA_SET_TABLE = 1,
        NFTA_SET_NAME = 2,
        NFTA_SET_FLAGS = 3,
        NFTA_SET_KEY_TYPE = 4,
        NFTA_SET_KEY_LEN = 5,
        NFTA_SET_DATA_TYPE = 6,
        NFTA_SET_DATA_LEN = 7,
        NFTA_SET_POLICY = 8,
        NFTA_SET_DESC = 9 => DESCRIPTION,
        NFTA_SET_ID = 10,
        NFTA_SET_TIMEOUT = 11,
        NFTA_SET_GC_INTERVAL = 12,
        NFTA_SET_USERDATA = 13,
        NFTA_SET_PAD = 14,
        NFTA_SET_OBJ_TYPE = 15,
        NFTA_SET_HANDLE = 16,
        NFTA_SET_EXPR = 17 => EXPRESSION,
        NFTA_SET_EXPRESSIONS = 18 => EXPRESSIONS,
        /// Since Linux 6.16.
        NFTA_SET_TYPE = 19,
        /// Since Linux 6.16.
        NFTA_SET_COUNT = 20,
    }

    DESCRIPTION: "enum nft_set_desc_attributes, linux/netfilter/nf_tables.h" {
        NFTA_SET_DESC_SIZE = 1,
        NFTA_SET_DESC_CONCAT = 2 => FIELDS,
    }

    FIELD: "enum nft_set_field_attributes, linux/netfilter/nf_tables.h" {
        NFTA_SET_FIELD_LEN = 1,
    }
}

#[cfg(test)]
mod tests {
    use sluicegate_netlink::attr;

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
