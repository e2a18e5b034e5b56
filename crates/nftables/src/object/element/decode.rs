//! Decodes elements as the kernel lists them.

use sluicegate_netlink::DecodeError;
use sluicegate_netlink::attr::{Attribute, Attributes};

use crate::expr::define::keep;
use crate::expr::{Bytes, Data, Expr};
use crate::name::Name;
use crate::object::element::wire::*;
use crate::object::userdata::UserData;
use crate::read::{expressions, name};

/// An element as the kernel lists it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Element {
    /// The bytes of its key, for a range those of the lower bound; empty for the catch-all element.
    pub key: Bytes,
    /// The upper bound of a range (included), in a set of concatenations. In other sets a range is two
    /// elements; the second one has [`ElementFlags::INTERVAL_END`], and its key is the first one after the
    /// range.
    pub key_end: Option<Bytes>,
    /// The value or verdict, in a map.
    pub data: Option<Data>,
    /// The name of the stateful object, in a map of objects.
    pub object: Option<Name>,
    /// Its flags.
    pub flags: ElementFlags,
    /// The timeout in milliseconds.
    pub timeout: Option<u64>,
    /// The remaining lifetime in milliseconds.
    pub expiration: Option<u64>,
    /// The expressions of the element, with their state.
    pub expressions: Vec<Expr>,
    /// User data: bytes that the kernel stores without interpreting them.
    pub user_data: Vec<u8>,
    /// Unknown attributes, and known ones with content that the fields above cannot represent, as they were
    /// received. There are none so far.
    pub rest: Vec<u8>,
}

bitflags::bitflags! {
    /// `enum nft_set_elem_flags`.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub struct ElementFlags: u32 {
        /// `NFT_SET_ELEM_INTERVAL_END`.
        const INTERVAL_END = 1;
        /// `NFT_SET_ELEM_CATCHALL`: matches every key that is not in the set.
        const CATCHALL = 2;
        const _ = !0;
    }
}

impl Element {
    /// Returns the comment in the user data, if there is one.
    #[must_use]
    pub fn comment(&self) -> Option<&str> {
        UserData::new(&self.user_data).comment()
    }

    /// Decodes the elements in the attributes of a message about elements
    /// (`enum nft_set_elem_list_attributes`).
    ///
    /// # Errors
    /// If they are malformed.
    pub fn decode_list(attributes: Attributes<'_>) -> Result<Vec<Self>, DecodeError> {
        let mut all = Vec::new();
        Self::decode_onto(attributes, &mut all)?;
        Ok(all)
    }

    /// Decodes elements as [`decode_list`](Self::decode_list) does and appends them to a list.
    pub(crate) fn decode_onto(attributes: Attributes<'_>, list: &mut Vec<Self>) -> Result<(), DecodeError> {
        for attribute in attributes {
            let attribute = attribute?;
            if attribute.kind == NFTA_SET_ELEM_LIST_ELEMENTS {
                for element in attribute.attributes() {
                    list.push(Self::decode(&element?)?);
                }
            }
        }
        Ok(())
    }

    #[inline(always)]
    fn decode(element: &Attribute<'_>) -> Result<Self, DecodeError> {
        let (mut key, mut key_end, mut data, mut object) = (None, None, None, None);
        let (mut flags, mut timeout, mut expiration) = (ElementFlags::empty(), None, None);
        let (mut exprs, mut user_data, mut rest) = (Vec::new(), Vec::new(), Vec::new());
        for attribute in element.attributes() {
            let attribute = attribute?;
            match attribute.kind {
                NFTA_SET_ELEM_KEY => key = Some(value(element, &attribute, &mut rest)?),
                NFTA_SET_ELEM_DATA => data = Some(data_of(element, &attribute, &mut rest)?),
                NFTA_SET_ELEM_FLAGS => flags = ElementFlags::from_bits_retain(attribute.be32()?),
                NFTA_SET_ELEM_TIMEOUT => timeout = Some(attribute.be64()?),
                NFTA_SET_ELEM_EXPIRATION => expiration = Some(attribute.be64()?),
                NFTA_SET_ELEM_USERDATA => user_data = attribute.payload.to_vec(),
                NFTA_SET_ELEM_EXPR => Expr::decode_onto(&attribute, &mut exprs)?,
                NFTA_SET_ELEM_OBJREF => object = Some(name(&attribute)?),
                NFTA_SET_ELEM_KEY_END => key_end = Some(value(element, &attribute, &mut rest)?),
                NFTA_SET_ELEM_EXPRESSIONS => exprs = expressions(&attribute)?,
                NFTA_SET_ELEM_PAD => {}
                _ => keep(&mut rest, element, &attribute),
            }
        }
        let key = key.unwrap_or_default();
        Ok(Self {
            key,
            key_end,
            data,
            object,
            flags,
            timeout,
            expiration,
            expressions: exprs,
            user_data,
            rest,
        })
    }
}

/// Returns the data in an attribute of an element; what it contains beside them is added to `rest`.
#[inline(always)]
fn data_of(
    element: &Attribute<'_>,
    attribute: &Attribute<'_>,
    rest: &mut Vec<u8>,
) -> Result<Data, DecodeError> {
    if let Some(value) = Data::only_value(attribute) {
        return Ok(Data::Value(value));
    }
    let (data, whole) = Data::decode(attribute)?;
    if !whole {
        keep(rest, element, attribute);
    }
    Ok(data)
}

/// Decodes a key, which is a value.
#[inline(always)]
fn value(
    element: &Attribute<'_>,
    attribute: &Attribute<'_>,
    rest: &mut Vec<u8>,
) -> Result<Bytes, DecodeError> {
    match data_of(element, attribute, rest)? {
        Data::Value(bytes) => Ok(bytes),
        Data::Verdict(_) | Data::ChainId(..) | Data::Code(_) => {
            Err(DecodeError::Missing { what: "the value of a key" })
        }
    }
}
