//! Reads stateful objects (`enum nft_object_attributes`).

use sluicegate_netlink::{MessageWriter, Transport};

use super::{list, one};
use crate::error::Error;
pub use crate::object::stateful::wire::Object;
use crate::object::stateful::wire::{NFTA_OBJ_NAME, NFTA_OBJ_TABLE, NFTA_OBJ_TYPE};
use crate::wire::message::{NFT_MSG_GETOBJ, NFT_MSG_GETOBJ_RESET};
use crate::{ObjectId, Within};

/// Reads the stateful objects of a family, or those of one table.
///
/// # Errors
/// See [`tables`](super::tables).
pub fn objects(
    transport: &mut (impl Transport + ?Sized),
    within: impl Into<Within>,
) -> Result<Vec<Object>, Error> {
    objects_by(NFT_MSG_GETOBJ, transport, &within.into())
}

/// Reads the stateful objects and resets their counters and quotas, each object in one step, so that nothing
/// is lost in between, as `nft reset counters` and `nft reset quotas` together do.
///
/// # Errors
/// As [`objects`]. If the objects change during the dump, that is an error
/// ([`Interrupted`](sluicegate_netlink::Error::Interrupted)): a second dump would not show what the first one has reset.
pub fn reset_objects(
    transport: &mut (impl Transport + ?Sized),
    within: impl Into<Within>,
) -> Result<Vec<Object>, Error> {
    objects_by(NFT_MSG_GETOBJ_RESET, transport, &within.into())
}

/// Reads one stateful object; `None` if it does not exist.
///
/// # Errors
/// If the kernel refuses for another reason, or does not answer.
pub fn object(transport: &mut (impl Transport + ?Sized), id: &ObjectId) -> Result<Option<Object>, Error> {
    object_by(NFT_MSG_GETOBJ, transport, id)
}

/// Reads one stateful object and resets it in one step, as `nft reset counter` and `nft reset quota` do.
/// Objects of other kinds are not reset.
///
/// # Errors
/// As [`object`].
pub fn reset_object(
    transport: &mut (impl Transport + ?Sized),
    id: &ObjectId,
) -> Result<Option<Object>, Error> {
    object_by(NFT_MSG_GETOBJ_RESET, transport, id)
}

fn object_by(
    command: u8,
    transport: &mut (impl Transport + ?Sized),
    id: &ObjectId,
) -> Result<Option<Object>, Error> {
    let write = |request: &mut MessageWriter<'_>| {
        request.put_str(NFTA_OBJ_TABLE, &id.table.name);
        request.put_str(NFTA_OBJ_NAME, &id.name);
        request.put_be32(NFTA_OBJ_TYPE, id.kind.0);
    };
    one(transport, command, id.table.family, write, Object::decode)
}

fn objects_by(
    command: u8,
    transport: &mut (impl Transport + ?Sized),
    within: &Within,
) -> Result<Vec<Object>, Error> {
    list(
        transport,
        command,
        within.family(),
        |request| {
            if let Some(table) = within.table() {
                request.put_str(NFTA_OBJ_TABLE, table);
            }
        },
        Object::decode,
        |object| within.has(&object.table),
    )
}
