//! The generation of the ruleset: a number that every commit to `nf_tables` in the network namespace
//! increments (`enum nft_gen_attributes`).

use sluicegate_netlink::DecodeError;
use sluicegate_netlink::attr::Attributes;

use crate::wire::attributes::attributes;
use crate::wire::decode::need;

/// The generation of the ruleset; in events also the process that created it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Generation {
    /// The number.
    pub id: u32,
    /// The id of the committing process; only in events.
    pub process: Option<u32>,
    /// The name of the committing process; only in events.
    pub process_name: Option<String>,
}

impl Generation {
    /// Decodes the attributes of a message about a generation.
    ///
    /// # Errors
    /// If they are malformed or lack the number.
    pub fn decode(attributes: Attributes<'_>) -> Result<Self, DecodeError> {
        let (mut id, mut process, mut process_name) = (None, None, None);
        for attribute in attributes {
            let attribute = attribute?;
            match attribute.kind {
                NFTA_GEN_ID => id = Some(attribute.be32()?),
                NFTA_GEN_PROC_PID => process = Some(attribute.be32()?),
                NFTA_GEN_PROC_NAME => process_name = Some(attribute.text()?.into_owned()),
                _ => {}
            }
        }
        Ok(Self { id: need(id, "NFTA_GEN_ID")?, process, process_name })
    }
}

attributes! {
    GENERATION: "enum nft_gen_attributes, linux/netfilter/nf_tables.h" {
        NFTA_GEN_ID = 1,
        NFTA_GEN_PROC_PID = 2,
        NFTA_GEN_PROC_NAME = 3,
    }
}
