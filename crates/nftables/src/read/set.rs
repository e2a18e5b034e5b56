//! Reads sets and maps (`enum nft_set_attributes`).

use sluicegate_netlink::{MessageWriter, Transport};

use super::{list, one};
use crate::error::Error;
pub use crate::object::set::wire::Set;
use crate::object::set::wire::{NFTA_SET_NAME, NFTA_SET_TABLE};
use crate::wire::message::NFT_MSG_GETSET;
use crate::{Family, SetId, Within};

/// Reads the sets and maps of a family, or those of one table, including anonymous ones.
///
/// # Errors
/// See [`tables`](super::tables).
pub fn sets(transport: &mut (impl Transport + ?Sized), within: impl Into<Within>) -> Result<Vec<Set>, Error> {
    let within = within.into();
    list(
        transport,
        NFT_MSG_GETSET,
        within.family(),
        |request| {
            // The kernel filters sets by table only if a family is given.
            if let Some(table) = within.table().filter(|_| within.family() != Family::UNSPEC) {
                request.put_str(NFTA_SET_TABLE, table);
            }
        },
        Set::decode,
        |set| within.has(&set.table),
    )
}

/// Reads one set or map; `None` if it does not exist. The kernel finds it by table and name: it does not
/// matter whether the id is that of a set or a map, here and in the functions that read elements.
///
/// # Errors
/// If the kernel refuses for another reason, or does not answer.
pub fn set(transport: &mut (impl Transport + ?Sized), id: &SetId) -> Result<Option<Set>, Error> {
    let write = |request: &mut MessageWriter<'_>| {
        request.put_str(NFTA_SET_TABLE, &id.table.name);
        request.put_str(NFTA_SET_NAME, &id.name);
    };
    one(transport, NFT_MSG_GETSET, id.table.family, write, Set::decode)
}
