//! The generation: a number that every commit to `nf_tables` in this namespace moves on (`enum nft_gen_attributes`).

use sluicegate_netlink::attr::Attributes;
use sluicegate_netlink::message::Flags;
use sluicegate_netlink::{Batch, DecodeError, Error, Transport, exchange};

use super::{SUBSYSTEM, need, split};

/// The current generation, and in events who made it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Generation {
    /// The number.
    pub id: u32,
    /// The process that committed; only in events.
    pub process: Option<u32>,
    /// Its name; only in events.
    pub process_name: Option<String>,
}

impl Generation {
    /// Reads the attributes of a message about a generation.
    ///
    /// # Errors
    /// When they are malformed or without a number.
    pub fn decode(attributes: Attributes<'_>) -> Result<Self, DecodeError> {
        let (mut id, mut process, mut process_name) = (None, None, None);
        for attribute in attributes {
            let attribute = attribute?;
            match attribute.kind {
                NFTA_GEN_ID => id = Some(attribute.be32()?),
                NFTA_GEN_PROC_PID => process = Some(attribute.be32()?),
                NFTA_GEN_PROC_NAME => process_name = Some(attribute.str()?.to_owned()),
                _ => {}
            }
        }
        Ok(Self { id: need(id, "NFTA_GEN_ID")?, process, process_name })
    }
}

/// Asks for the current generation.
///
/// # Errors
/// When the kernel has no `nf_tables`, refuses, or does not answer.
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

/// `NFT_MSG_GETGEN`.
const NFT_MSG_GETGEN: u8 = 16;
/// `NFTA_GEN_ID`.
const NFTA_GEN_ID: u16 = 1;
/// `NFTA_GEN_PROC_PID`.
const NFTA_GEN_PROC_PID: u16 = 2;
/// `NFTA_GEN_PROC_NAME`.
const NFTA_GEN_PROC_NAME: u16 = 3;
