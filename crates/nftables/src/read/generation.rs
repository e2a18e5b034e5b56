//! Reads the generation of the ruleset.

use sluicegate_netlink::message::Flags;
use sluicegate_netlink::{Batch, Transport, exchange};

use super::split;
use crate::error::Error;
pub use crate::object::generation::Generation;
use crate::wire::decode::need;
use crate::wire::message::{NFT_MSG_GETGEN, SUBSYSTEM};

/// Reads the current generation of the ruleset.
///
/// # Errors
/// If the kernel has no `nf_tables`, refuses, or does not answer.
pub fn generation(transport: &mut (impl Transport + ?Sized)) -> Result<Generation, Error> {
    let mut request = Batch::new();
    drop(request.netfilter(SUBSYSTEM, NFT_MSG_GETGEN, Flags::ACK, 0, 0));
    let mut answer = None;
    let report = exchange(transport, &[&request], |message| {
        answer = Some(Generation::decode(split(message)?.1)?);
        Ok(())
    })?;
    match report.errors.into_iter().next() {
        Some(error) => Err(error.into()),
        None => Ok(need(answer, "the answer to NFT_MSG_GETGEN")?),
    }
}
