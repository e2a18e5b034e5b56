//! Elements of sets and maps (`enum nft_set_elem_attributes`).

use sluicegate_netlink::attr::{Attribute, Attributes, Writer};
use sluicegate_netlink::message::{Flags, Message};
use sluicegate_netlink::{Batch, DecodeError, Error, MessageWriter, Transport, dump_into, dump_once};

use super::{NFTA_LIST_ELEM, SUBSYSTEM, UserData, name, one, split};
use crate::expr::define::keep;
use crate::expr::{Bytes, Data, Expr};
use crate::{Family, Name};

/// An element that the kernel holds.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Element {
    /// The bytes of its key; empty of the catch-all element. Of a range, its start.
    pub key: Bytes,
    /// The end of a range, included, in a set of concatenations. In other sets a range is two elements, the second of
    /// which has [`ElementFlags::INTERVAL_END`] and is the first key behind the range.
    pub key_end: Option<Bytes>,
    /// What a map gives for it.
    pub data: Option<Data>,
    /// The stateful object that a map of objects gives for it.
    pub object: Option<Name>,
    /// Its flags.
    pub flags: ElementFlags,
    /// How long it stays, in milliseconds.
    pub timeout: Option<u64>,
    /// How long it still stays, in milliseconds.
    pub expiration: Option<u64>,
    /// Its expressions, with their state.
    pub expressions: Vec<Expr>,
    /// What its maker noted with it.
    pub user_data: Vec<u8>,
    /// Attributes that only a newer kernel has, or that say more than the fields above can, as they came: none so far.
    pub rest: Vec<u8>,
}

bitflags::bitflags! {
    /// `enum nft_set_elem_flags`.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub struct ElementFlags: u32 {
        /// `NFT_SET_ELEM_INTERVAL_END`.
        const INTERVAL_END = 1;
        /// `NFT_SET_ELEM_CATCHALL`: stands for every key that is not in the set.
        const CATCHALL = 2;
        const _ = !0;
    }
}

impl Element {
    /// The comment, if it has one.
    #[must_use]
    pub fn comment(&self) -> Option<&str> {
        UserData::new(&self.user_data).comment()
    }

    /// Reads the elements out of the attributes of a message about elements (`enum nft_set_elem_list_attributes`).
    ///
    /// # Errors
    /// When they are malformed.
    pub fn decode_list(attributes: Attributes<'_>) -> Result<Vec<Self>, DecodeError> {
        let mut all = Vec::new();
        Self::decode_onto(attributes, &mut all)?;
        Ok(all)
    }

    /// As [`decode_list`](Self::decode_list), to the end of a list.
    fn decode_onto(attributes: Attributes<'_>, list: &mut Vec<Self>) -> Result<(), DecodeError> {
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
        let (mut expressions, mut user_data, mut rest) = (Vec::new(), Vec::new(), Vec::new());
        for attribute in element.attributes() {
            let attribute = attribute?;
            match attribute.kind {
                NFTA_SET_ELEM_KEY => key = Some(value(element, &attribute, &mut rest)?),
                NFTA_SET_ELEM_DATA => data = Some(data_of(element, &attribute, &mut rest)?),
                NFTA_SET_ELEM_FLAGS => flags = ElementFlags::from_bits_retain(attribute.be32()?),
                NFTA_SET_ELEM_TIMEOUT => timeout = Some(attribute.be64()?),
                NFTA_SET_ELEM_EXPIRATION => expiration = Some(attribute.be64()?),
                NFTA_SET_ELEM_USERDATA => user_data = attribute.payload.to_vec(),
                NFTA_SET_ELEM_EXPR => Expr::decode_onto(&attribute, &mut expressions)?,
                NFTA_SET_ELEM_OBJREF => object = Some(name(&attribute)?),
                NFTA_SET_ELEM_KEY_END => key_end = Some(value(element, &attribute, &mut rest)?),
                NFTA_SET_ELEM_EXPRESSIONS => expressions = super::expressions(&attribute)?,
                NFTA_SET_ELEM_PAD => {}
                _ => keep(&mut rest, element, &attribute),
            }
        }
        let key = key.unwrap_or_default();
        Ok(Self { key, key_end, data, object, flags, timeout, expiration, expressions, user_data, rest })
    }
}

/// The data in an attribute of an element; what more that says goes to the rest.
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

/// A key is data, and always a value.
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

/// Reads all elements of one set.
///
/// # Errors
/// [`Error::Kernel`] with `ENOENT` when there is no such set; see also [`tables`](super::tables).
pub fn elements(
    transport: &mut (impl Transport + ?Sized),
    family: Family,
    table: &str,
    set: &str,
) -> Result<Vec<Element>, Error> {
    elements_by(NFT_MSG_GETSETELEM, transport, family, table, set)
}

/// Reads all elements of one set as [`elements`] does and sets their counters and quotas back to nought, each in one step. As
/// `nft reset set`. Since Linux 6.5.
///
/// # Errors
/// As [`elements`]; `EINVAL` from an older kernel. A dump that changed while it was read is an error ([`Error::Interrupted`]): what
/// was reset is not read again.
pub fn reset_elements(
    transport: &mut (impl Transport + ?Sized),
    family: Family,
    table: &str,
    set: &str,
) -> Result<Vec<Element>, Error> {
    elements_by(NFT_MSG_GETSETELEM_RESET, transport, family, table, set)
}

fn elements_by(
    command: u8,
    transport: &mut (impl Transport + ?Sized),
    family: Family,
    table: &str,
    set: &str,
) -> Result<Vec<Element>, Error> {
    let mut request = Batch::new();
    address(&mut request.netfilter(SUBSYSTEM, command, Flags::DUMP, family.0, 0), table, set);
    let decode =
        |message: Message<'_>, list: &mut Vec<Element>| Ok(Element::decode_onto(split(message)?.1, list)?);
    match command {
        NFT_MSG_GETSETELEM => dump_into(transport, &request, decode),
        _ => dump_once(transport, &request, decode),
    }
}

/// Which element is looked up, by the bytes that the kernel keeps. [`find`](super::find) does so by values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Wanted<'a> {
    /// That of a key. In a set of intervals, the start of the interval that the key is in.
    Key(&'a [u8]),
    /// In a set of intervals: the first end from this key on. Where two intervals meet at this very key, it is the end of either.
    End(&'a [u8]),
    /// In a set of concatenations with intervals: that of a key, and the end that it has. Kernels look the first one up only.
    Range(&'a [u8], &'a [u8]),
    /// The catch-all element.
    CatchAll,
}

impl<'a, K: AsRef<[u8]> + ?Sized> From<&'a K> for Wanted<'a> {
    fn from(key: &'a K) -> Self {
        Self::Key(key.as_ref())
    }
}

impl Wanted<'_> {
    fn encode(self, element: &mut Writer<'_>) {
        let mut put = |kind, key: &[u8]| Data::Value(key.into()).encode(element, kind);
        match self {
            Self::Key(key) => put(NFTA_SET_ELEM_KEY, key),
            Self::Range(key, end) => {
                put(NFTA_SET_ELEM_KEY, key);
                put(NFTA_SET_ELEM_KEY_END, end);
            }
            Self::End(key) => {
                put(NFTA_SET_ELEM_KEY, key);
                element.put_be32(NFTA_SET_ELEM_FLAGS, ElementFlags::INTERVAL_END.bits());
            }
            Self::CatchAll => element.put_be32(NFTA_SET_ELEM_FLAGS, ElementFlags::CATCHALL.bits()),
        }
    }
}

/// Looks one element up, by its key or as [`Wanted`] says; `None` when it is not in the set.
///
/// # Errors
/// When the kernel refuses for another reason than that, or does not answer.
pub fn element<'a>(
    transport: &mut (impl Transport + ?Sized),
    family: Family,
    table: &str,
    set: &str,
    wanted: impl Into<Wanted<'a>>,
) -> Result<Option<Element>, Error> {
    element_by(NFT_MSG_GETSETELEM, transport, family, table, set, wanted.into())
}

/// Looks one element up as [`element`] does and sets its counters and quotas back to nought in one step, as `nft reset element`. Since Linux 6.5.
///
/// # Errors
/// As [`element`]; `EINVAL` from an older kernel.
pub fn reset_element<'a>(
    transport: &mut (impl Transport + ?Sized),
    family: Family,
    table: &str,
    set: &str,
    wanted: impl Into<Wanted<'a>>,
) -> Result<Option<Element>, Error> {
    element_by(NFT_MSG_GETSETELEM_RESET, transport, family, table, set, wanted.into())
}

fn element_by(
    command: u8,
    transport: &mut (impl Transport + ?Sized),
    family: Family,
    table: &str,
    set: &str,
    wanted: Wanted<'_>,
) -> Result<Option<Element>, Error> {
    let write = |request: &mut MessageWriter<'_>| {
        address(request, table, set);
        wanted.encode(&mut request.nest(NFTA_SET_ELEM_LIST_ELEMENTS).nest(NFTA_LIST_ELEM));
    };
    let decode = |_, attributes: Attributes<'_>| Element::decode_list(attributes);
    Ok(one(transport, command, family, write, decode)?.and_then(|found| found.into_iter().next()))
}

fn address(message: &mut MessageWriter<'_>, table: &str, set: &str) {
    message.put_str(NFTA_SET_ELEM_LIST_TABLE, table);
    message.put_str(NFTA_SET_ELEM_LIST_SET, set);
}

/// `NFT_MSG_GETSETELEM`.
const NFT_MSG_GETSETELEM: u8 = 13;
/// `NFT_MSG_GETSETELEM_RESET`.
const NFT_MSG_GETSETELEM_RESET: u8 = 33;
/// `NFTA_SET_ELEM_LIST_TABLE`.
const NFTA_SET_ELEM_LIST_TABLE: u16 = 1;
/// `NFTA_SET_ELEM_LIST_SET`.
const NFTA_SET_ELEM_LIST_SET: u16 = 2;
/// `NFTA_SET_ELEM_LIST_ELEMENTS`.
const NFTA_SET_ELEM_LIST_ELEMENTS: u16 = 3;
/// `NFTA_SET_ELEM_KEY`.
const NFTA_SET_ELEM_KEY: u16 = 1;
/// `NFTA_SET_ELEM_DATA`.
const NFTA_SET_ELEM_DATA: u16 = 2;
/// `NFTA_SET_ELEM_FLAGS`.
const NFTA_SET_ELEM_FLAGS: u16 = 3;
/// `NFTA_SET_ELEM_TIMEOUT`.
const NFTA_SET_ELEM_TIMEOUT: u16 = 4;
/// `NFTA_SET_ELEM_EXPIRATION`.
const NFTA_SET_ELEM_EXPIRATION: u16 = 5;
/// `NFTA_SET_ELEM_USERDATA`.
const NFTA_SET_ELEM_USERDATA: u16 = 6;
/// `NFTA_SET_ELEM_EXPR`.
const NFTA_SET_ELEM_EXPR: u16 = 7;
/// `NFTA_SET_ELEM_PAD`.
const NFTA_SET_ELEM_PAD: u16 = 8;
/// `NFTA_SET_ELEM_OBJREF`.
const NFTA_SET_ELEM_OBJREF: u16 = 9;
/// `NFTA_SET_ELEM_KEY_END`.
const NFTA_SET_ELEM_KEY_END: u16 = 10;
/// `NFTA_SET_ELEM_EXPRESSIONS`.
const NFTA_SET_ELEM_EXPRESSIONS: u16 = 11;
