//! Decodes elements as the kernel lists them.

use std::borrow::Cow;

use sluicegate_netlink::DecodeError;
use sluicegate_netlink::attr::{Attribute, Attributes};

use crate::expr::define::keep;
use crate::expr::wire::expressions;
use crate::expr::{Bytes, Data, Expr};
use crate::name::Name;
use crate::object::element::wire::*;
use crate::object::userdata::UserData;
use crate::wire::decode::name;
use crate::wire::flags::flags;

/// An element as the kernel lists it: 72 bytes, and [details](ElementDetails) that few elements have.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Element {
    /// The bytes of its key, for a range those of the lower bound; empty for the catch-all element.
    pub key: Bytes,
    /// The value or verdict, in a map.
    pub data: Option<Data>,
    /// Its flags.
    pub flags: ElementFlags,
    details: Option<Box<ElementDetails>>,
}

/// What an element may have beside a key and a value.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ElementDetails {
    /// The upper bound of a range (included), in a set of concatenations. In other sets a range is two
    /// elements; the second one has [`ElementFlags::INTERVAL_END`], and its key is the first one after the
    /// range.
    pub key_end: Option<Bytes>,
    /// The name of the stateful object, in a map of objects.
    pub object: Option<Name>,
    /// The timeout in milliseconds.
    pub timeout: Option<u64>,
    /// The remaining lifetime in milliseconds.
    pub expiration: Option<u64>,
    /// The expressions of the element, with their state.
    pub expressions: Vec<Expr>,
    /// User data: bytes that the kernel stores without interpreting them.
    pub user_data: Vec<u8>,
    /// Unknown attributes, and known ones with content that the fields above and those of the element cannot
    /// represent, as they were received. There are none so far.
    pub rest: Vec<u8>,
}

/// Details that were set and are empty are the same as none.
impl PartialEq for Element {
    fn eq(&self, other: &Self) -> bool {
        (&self.key, &self.data, self.flags, self.details())
            == (&other.key, &other.data, other.flags, other.details())
    }
}

impl Eq for Element {}

/// The details of an element that has none.
static NO_DETAILS: ElementDetails = ElementDetails {
    key_end: None,
    object: None,
    timeout: None,
    expiration: None,
    expressions: Vec::new(),
    user_data: Vec::new(),
    rest: Vec::new(),
};

flags! {
    /// `enum nft_set_elem_flags`.
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub struct ElementFlags: u32 {
        /// `NFT_SET_ELEM_INTERVAL_END`.
        const INTERVAL_END = 1;
        /// `NFT_SET_ELEM_CATCHALL`: matches every key that is not in the set.
        const CATCHALL = 2;
        const _ = !0;
    }
}

impl Element {
    /// Returns the element that ends an interval before this key.
    pub(crate) fn end_of_interval(key: Bytes) -> Self {
        Self { key, flags: ElementFlags::INTERVAL_END, ..Self::default() }
    }

    /// Returns what it has beside a key and a value; most elements have nothing.
    #[inline]
    #[must_use]
    pub fn details(&self) -> &ElementDetails {
        self.details.as_deref().unwrap_or(&NO_DETAILS)
    }

    /// Returns the details to be changed.
    pub fn details_mut(&mut self) -> &mut ElementDetails {
        self.details.get_or_insert_default()
    }

    /// Returns the comment in the user data, if there is one.
    #[must_use]
    pub fn comment(&self) -> Option<Cow<'_, str>> {
        UserData::new(&self.details().user_data).comment()
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
    fn decode(entry: &Attribute<'_>) -> Result<Self, DecodeError> {
        let (mut element, mut rest) = (Self::default(), Vec::new());
        for attribute in entry.attributes() {
            let attribute = attribute?;
            match attribute.kind {
                NFTA_SET_ELEM_KEY => element.key = value(entry, &attribute, &mut rest)?,
                NFTA_SET_ELEM_DATA => element.data = Some(data_of(entry, &attribute, &mut rest)?),
                NFTA_SET_ELEM_FLAGS => element.flags = ElementFlags::from_bits_retain(attribute.be32()?),
                NFTA_SET_ELEM_PAD => {}
                _ => element.details_mut().decode(entry, &attribute, &mut rest)?,
            }
        }
        if !rest.is_empty() {
            element.details_mut().rest = rest;
        }
        Ok(element)
    }
}

impl ElementDetails {
    fn decode(
        &mut self,
        entry: &Attribute<'_>,
        attribute: &Attribute<'_>,
        rest: &mut Vec<u8>,
    ) -> Result<(), DecodeError> {
        match attribute.kind {
            NFTA_SET_ELEM_TIMEOUT => self.timeout = Some(attribute.be64()?),
            NFTA_SET_ELEM_EXPIRATION => self.expiration = Some(attribute.be64()?),
            NFTA_SET_ELEM_USERDATA => self.user_data = attribute.payload.to_vec(),
            NFTA_SET_ELEM_EXPR => Expr::decode_onto(attribute, &mut self.expressions)?,
            NFTA_SET_ELEM_OBJREF => self.object = Some(name(attribute)?),
            NFTA_SET_ELEM_KEY_END => self.key_end = Some(value(entry, attribute, rest)?),
            NFTA_SET_ELEM_EXPRESSIONS => self.expressions = expressions(attribute)?,
            _ => keep(rest, entry, attribute),
        }
        Ok(())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_element_as_listed_takes_72_bytes_and_empty_details_are_none() {
        assert_eq!(size_of::<Element>(), 72);
        let (plain, mut touched) = (Element::default(), Element::default());
        assert_eq!(touched.details_mut(), plain.details());
        assert_eq!(touched, plain);
        touched.details_mut().timeout = Some(1);
        assert_ne!(touched, plain);
    }
}
