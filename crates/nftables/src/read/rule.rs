//! Reads rules (`enum nft_rule_attributes`).

use sluicegate_netlink::{MessageWriter, Transport};

use super::{list, one};
use crate::error::Error;
pub use crate::object::rule::wire::Rule;
use crate::object::rule::wire::{NFTA_RULE_CHAIN, NFTA_RULE_HANDLE, NFTA_RULE_TABLE};
use crate::wire::message::{NFT_MSG_GETRULE, NFT_MSG_GETRULE_RESET};
use crate::{ChainId, Name, Within};

/// Reads the rules of a family, or those of one table, in the order of each chain.
///
/// # Errors
/// See [`tables`](super::tables).
pub fn rules(
    transport: &mut (impl Transport + ?Sized),
    within: impl Into<Within>,
) -> Result<Vec<Rule>, Error> {
    rules_by(NFT_MSG_GETRULE, transport, &within.into(), None)
}

/// Reads the rules of one chain, in order.
///
/// # Errors
/// See [`tables`](super::tables).
pub fn chain_rules(transport: &mut (impl Transport + ?Sized), chain: &ChainId) -> Result<Vec<Rule>, Error> {
    rules_by(NFT_MSG_GETRULE, transport, &(&chain.table).into(), Some(&chain.name))
}

/// Reads rules as [`rules`] does and resets their counters and quotas, each rule in one step, as
/// `nft reset rules` does. Since Linux 6.2.
///
/// # Errors
/// As [`rules`]; `EINVAL` from an older kernel. If the rules change during the dump, that is an error
/// ([`Interrupted`](sluicegate_netlink::Error::Interrupted)): a second dump would not show what the first one has reset.
pub fn reset_rules(
    transport: &mut (impl Transport + ?Sized),
    within: impl Into<Within>,
) -> Result<Vec<Rule>, Error> {
    rules_by(NFT_MSG_GETRULE_RESET, transport, &within.into(), None)
}

/// Reads the rules of one chain and resets their counters and quotas, as `nft reset rules chain` does. Since
/// Linux 6.2.
///
/// # Errors
/// As [`reset_rules`].
pub fn reset_chain_rules(
    transport: &mut (impl Transport + ?Sized),
    chain: &ChainId,
) -> Result<Vec<Rule>, Error> {
    rules_by(NFT_MSG_GETRULE_RESET, transport, &(&chain.table).into(), Some(&chain.name))
}

/// Reads one rule by its handle; `None` if it does not exist.
///
/// # Errors
/// If the kernel refuses for another reason, or does not answer.
pub fn rule(
    transport: &mut (impl Transport + ?Sized),
    chain: &ChainId,
    handle: u64,
) -> Result<Option<Rule>, Error> {
    rule_by(NFT_MSG_GETRULE, transport, chain, handle)
}

/// Reads one rule and resets its counters and quotas in one step, as `nft reset rule` does. Since Linux 6.2.
///
/// # Errors
/// As [`rule`]; `EINVAL` from an older kernel.
pub fn reset_rule(
    transport: &mut (impl Transport + ?Sized),
    chain: &ChainId,
    handle: u64,
) -> Result<Option<Rule>, Error> {
    rule_by(NFT_MSG_GETRULE_RESET, transport, chain, handle)
}

fn rule_by(
    command: u8,
    transport: &mut (impl Transport + ?Sized),
    chain: &ChainId,
    handle: u64,
) -> Result<Option<Rule>, Error> {
    let write = |request: &mut MessageWriter<'_>| {
        request.put_str(NFTA_RULE_TABLE, &chain.table.name);
        request.put_str(NFTA_RULE_CHAIN, &chain.name);
        request.put_be64(NFTA_RULE_HANDLE, handle);
    };
    one(transport, command, chain.table.family, write, Rule::decode)
}

fn rules_by(
    command: u8,
    transport: &mut (impl Transport + ?Sized),
    within: &Within,
    chain: Option<&Name>,
) -> Result<Vec<Rule>, Error> {
    let mut before = None;
    list(
        transport,
        command,
        within.family(),
        |request| {
            if let Some(table) = within.table() {
                request.put_str(NFTA_RULE_TABLE, table);
            }
            if let Some(chain) = chain {
                request.put_str(NFTA_RULE_CHAIN, chain);
            }
        },
        |family, attributes| Rule::decode_next(family, attributes, &mut before),
        |rule| within.has(&rule.table) && chain.is_none_or(|chain| rule.chain == *chain),
    )
}
