//! Elements of sets and maps (`enum nft_set_elem_attributes`).

use sluicegate_netlink::attr::{Attribute, Attributes};
use sluicegate_netlink::message::{Flags, Message};
use sluicegate_netlink::{Batch, DecodeError, Error, MessageWriter, Transport, dump, dump_once, exchange};

use super::{NFTA_LIST_ELEM, SUBSYSTEM, UserData, expressions, name, split};
use crate::expr::{Data, Expr};
use crate::{Family, Name};

/// An element that the kernel holds.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Element {
    /// The bytes of its key; empty of the catch-all element. Of a range, its start.
    pub key: Vec<u8>,
    /// The end of a range, included, in a set of concatenations. In other sets a range is two elements, the second of
    /// which has [`ElementFlags::INTERVAL_END`] and is the first key behind the range.
    pub key_end: Option<Vec<u8>>,
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
        for attribute in attributes {
            let attribute = attribute?;
            if attribute.kind == NFTA_SET_ELEM_LIST_ELEMENTS {
                for element in attribute.attributes() {
                    all.push(Self::decode(&element?)?);
                }
            }
        }
        Ok(all)
    }

    fn decode(element: &Attribute<'_>) -> Result<Self, DecodeError> {
        let mut decoded = Self::default();
        for attribute in element.attributes() {
            let attribute = attribute?;
            match attribute.kind {
                NFTA_SET_ELEM_KEY => decoded.key = value(&attribute)?,
                NFTA_SET_ELEM_DATA => decoded.data = Some(Data::decode(&attribute)?),
                NFTA_SET_ELEM_FLAGS => decoded.flags = ElementFlags::from_bits_retain(attribute.be32()?),
                NFTA_SET_ELEM_TIMEOUT => decoded.timeout = Some(attribute.be64()?),
                NFTA_SET_ELEM_EXPIRATION => decoded.expiration = Some(attribute.be64()?),
                NFTA_SET_ELEM_USERDATA => decoded.user_data = attribute.payload.to_vec(),
                NFTA_SET_ELEM_EXPR => decoded.expressions = vec![Expr::decode(&attribute)?],
                NFTA_SET_ELEM_OBJREF => decoded.object = Some(name(&attribute)?),
                NFTA_SET_ELEM_KEY_END => decoded.key_end = Some(value(&attribute)?),
                NFTA_SET_ELEM_EXPRESSIONS => decoded.expressions = expressions(&attribute)?,
                _ => {}
            }
        }
        Ok(decoded)
    }
}

/// A key is data, and always a value.
fn value(attribute: &Attribute<'_>) -> Result<Vec<u8>, DecodeError> {
    match Data::decode(attribute)? {
        Data::Value(bytes) => Ok(bytes),
        Data::Verdict(_) | Data::Code(_) => Err(DecodeError::Missing { what: "the value of a key" }),
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
    let decode = |message: Message<'_>| Ok(Some(Element::decode_list(split(message)?.1)?));
    let parts = match command {
        NFT_MSG_GETSETELEM => dump(transport, &request, decode),
        _ => dump_once(transport, &request, decode),
    }?;
    Ok(parts.into_iter().flatten().collect())
}

/// Looks one element up by its key; `None` when it is not in the set.
///
/// # Errors
/// When the kernel refuses for another reason than that, or does not answer.
pub fn element(
    transport: &mut (impl Transport + ?Sized),
    family: Family,
    table: &str,
    set: &str,
    key: &[u8],
) -> Result<Option<Element>, Error> {
    let mut request = Batch::new();
    let mut message = request.netfilter(SUBSYSTEM, NFT_MSG_GETSETELEM, Flags::ACK, family.0, 0);
    address(&mut message, table, set);
    let mut list = message.nest(NFTA_SET_ELEM_LIST_ELEMENTS);
    let mut item = list.nest(NFTA_LIST_ELEM);
    Data::Value(key.to_vec()).encode(&mut item, NFTA_SET_ELEM_KEY);
    drop(item);
    drop(list);
    drop(message);
    let mut found = Vec::new();
    let report = exchange(transport, &[&request], |message| {
        found.extend(Element::decode_list(split(message)?.1)?);
        Ok(())
    })?;
    match report.errors.into_iter().map(Error::from).next() {
        Some(error) if error.is_not_found() => Ok(None),
        Some(error) => Err(error),
        None => Ok(found.into_iter().next()),
    }
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
/// `NFTA_SET_ELEM_OBJREF`.
const NFTA_SET_ELEM_OBJREF: u16 = 9;
/// `NFTA_SET_ELEM_KEY_END`.
const NFTA_SET_ELEM_KEY_END: u16 = 10;
/// `NFTA_SET_ELEM_EXPRESSIONS`.
const NFTA_SET_ELEM_EXPRESSIONS: u16 = 11;
