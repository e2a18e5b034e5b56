//! Reads flowtables (`enum nft_flowtable_attributes`).

use sluicegate_netlink::{MessageWriter, Transport};

use super::{list, one};
use crate::error::Error;
pub use crate::object::flowtable::wire::Flowtable;
use crate::object::flowtable::wire::{NFTA_FLOWTABLE_NAME, NFTA_FLOWTABLE_TABLE};
use crate::wire::message::NFT_MSG_GETFLOWTABLE;
use crate::{FlowtableId, Within};

/// Reads the flowtables of a family, or those of one table.
///
/// # Errors
/// See [`tables`](super::tables).
pub fn flowtables(
    transport: &mut (impl Transport + ?Sized),
    within: impl Into<Within>,
) -> Result<Vec<Flowtable>, Error> {
    let within = within.into();
    list(
        transport,
        NFT_MSG_GETFLOWTABLE,
        within.family(),
        |request| {
            if let Some(table) = within.table() {
                request.put_str(NFTA_FLOWTABLE_TABLE, table);
            }
        },
        Flowtable::decode,
        |flowtable| within.has(&flowtable.table),
    )
}

/// Reads one flowtable; `None` if it does not exist.
///
/// # Errors
/// If the kernel refuses for another reason, or does not answer.
pub fn flowtable(
    transport: &mut (impl Transport + ?Sized),
    id: &FlowtableId,
) -> Result<Option<Flowtable>, Error> {
    let write = |request: &mut MessageWriter<'_>| {
        request.put_str(NFTA_FLOWTABLE_TABLE, &id.table.name);
        request.put_str(NFTA_FLOWTABLE_NAME, &id.name);
    };
    one(transport, NFT_MSG_GETFLOWTABLE, id.table.family, write, Flowtable::decode)
}
