//! Reads elements of sets and maps (`enum nft_set_elem_attributes`).

use sluicegate_netlink::attr::Attributes;
use sluicegate_netlink::message::{Flags, Message};
use sluicegate_netlink::{Batch, MessageWriter, Transport, dump_into, dump_once};

use super::{one, split};
use crate::SetId;
use crate::error::Error;
use crate::expr::wire::NFTA_LIST_ELEM;
pub use crate::object::element::decode::{Element, ElementDetails, ElementFlags};
use crate::object::element::query::ElementQuery;
use crate::object::element::wire::*;
use crate::wire::message::{NFT_MSG_GETSETELEM, NFT_MSG_GETSETELEM_RESET, SUBSYSTEM};

/// Reads all elements of one set.
///
/// # Errors
/// If the set does not exist ([`Error::is_not_found`]); see also [`tables`](super::tables).
pub fn elements(transport: &mut (impl Transport + ?Sized), set: &SetId) -> Result<Vec<Element>, Error> {
    elements_by(NFT_MSG_GETSETELEM, transport, set)
}

/// Reads all elements of one set and resets their counters and quotas, each element in one step, as
/// `nft reset set` does. Since Linux 6.5.
///
/// # Errors
/// As [`elements`]; `EINVAL` from an older kernel. If the set changes during the dump, that is an error
/// ([`Interrupted`](sluicegate_netlink::Error::Interrupted)): a second dump would not show what the first one has reset.
pub fn reset_elements(transport: &mut (impl Transport + ?Sized), set: &SetId) -> Result<Vec<Element>, Error> {
    elements_by(NFT_MSG_GETSETELEM_RESET, transport, set)
}

fn elements_by(
    command: u8,
    transport: &mut (impl Transport + ?Sized),
    set: &SetId,
) -> Result<Vec<Element>, Error> {
    let mut request = Batch::new();
    address(&mut request.netfilter(SUBSYSTEM, command, Flags::DUMP, set.table.family.0, 0), set);
    let decode =
        |message: Message<'_>, list: &mut Vec<Element>| Ok(Element::decode_onto(split(message)?.1, list)?);
    match command {
        NFT_MSG_GETSETELEM => Ok(dump_into(transport, &request, decode)?),
        _ => Ok(dump_once(transport, &request, decode)?),
    }
}

/// Looks up one element, by its key or another [`ElementQuery`]; `None` if it is not in the set.
///
/// # Errors
/// If the kernel refuses for another reason, or does not answer.
pub fn element<'a>(
    transport: &mut (impl Transport + ?Sized),
    set: &SetId,
    wanted: impl Into<ElementQuery<'a>>,
) -> Result<Option<Element>, Error> {
    element_by(NFT_MSG_GETSETELEM, transport, set, wanted.into())
}

/// Looks up one element and resets its counters and quotas in one step, as `nft reset element` does. Since
/// Linux 6.5.
///
/// # Errors
/// As [`element`]; `EINVAL` from an older kernel.
pub fn reset_element<'a>(
    transport: &mut (impl Transport + ?Sized),
    set: &SetId,
    wanted: impl Into<ElementQuery<'a>>,
) -> Result<Option<Element>, Error> {
    element_by(NFT_MSG_GETSETELEM_RESET, transport, set, wanted.into())
}

fn element_by(
    command: u8,
    transport: &mut (impl Transport + ?Sized),
    set: &SetId,
    wanted: ElementQuery<'_>,
) -> Result<Option<Element>, Error> {
    let write = |request: &mut MessageWriter<'_>| {
        address(request, set);
        wanted.encode(&mut request.nest(NFTA_SET_ELEM_LIST_ELEMENTS).nest(NFTA_LIST_ELEM));
    };
    let decode = |_, attributes: Attributes<'_>| Element::decode_list(attributes);
    Ok(one(transport, command, set.table.family, write, decode)?.and_then(|found| found.into_iter().next()))
}

fn address(message: &mut MessageWriter<'_>, set: &SetId) {
    message.put_str(NFTA_SET_ELEM_LIST_TABLE, &set.table.name);
    message.put_str(NFTA_SET_ELEM_LIST_SET, &set.name);
}
