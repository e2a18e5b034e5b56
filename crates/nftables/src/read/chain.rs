//! Reads chains (`enum nft_chain_attributes`).

use sluicegate_netlink::{MessageWriter, Transport};

use super::{list, one};
use crate::error::Error;
pub use crate::object::chain::wire::{Chain, ChainFlags, Hook};
use crate::object::chain::wire::{NFTA_CHAIN_NAME, NFTA_CHAIN_TABLE};
use crate::wire::message::NFT_MSG_GETCHAIN;
use crate::{ChainId, Within};

/// Reads the chains of a family, or those of one table.
///
/// # Errors
/// See [`tables`](super::tables).
pub fn chains(
    transport: &mut (impl Transport + ?Sized),
    within: impl Into<Within>,
) -> Result<Vec<Chain>, Error> {
    let within = within.into();
    let filter = |chain: &Chain| within.has(&chain.table);
    list(transport, NFT_MSG_GETCHAIN, within.family(), |_| {}, Chain::decode, filter)
}

/// Reads one chain; `None` if it does not exist.
///
/// # Errors
/// If the kernel refuses for another reason, or does not answer.
pub fn chain(transport: &mut (impl Transport + ?Sized), id: &ChainId) -> Result<Option<Chain>, Error> {
    let write = |request: &mut MessageWriter<'_>| {
        request.put_str(NFTA_CHAIN_TABLE, &id.table.name);
        request.put_str(NFTA_CHAIN_NAME, &id.name);
    };
    one(transport, NFT_MSG_GETCHAIN, id.table.family, write, Chain::decode)
}
