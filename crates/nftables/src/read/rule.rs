//! Rules (`enum nft_rule_attributes`).

use sluicegate_netlink::attr::{Attribute, Attributes};
use sluicegate_netlink::{DecodeError, Error, MessageWriter, Transport};

use super::{UserData, list, need, one};
use crate::expr::Expr;
use crate::{Family, Name};

/// A rule that the kernel holds.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rule {
    /// The family of its table.
    pub family: Family,
    /// Its table.
    pub table: Name,
    /// Its chain.
    pub chain: Name,
    /// Its handle, by which alone it can be named.
    pub handle: u64,
    /// The handle of the rule before it. In events only where there is one behind it as well.
    pub position: Option<u64>,
    /// What it does.
    pub expressions: Vec<Expr>,
    /// What its maker noted with it.
    pub user_data: Vec<u8>,
}

impl Rule {
    /// The comment, if it has one.
    #[must_use]
    pub fn comment(&self) -> Option<&str> {
        UserData::new(&self.user_data).comment()
    }

    /// Reads the attributes of a message about a rule.
    ///
    /// # Errors
    /// When they are malformed, or without a table and chain.
    pub fn decode(family: Family, attributes: Attributes<'_>) -> Result<Self, DecodeError> {
        Self::decode_next(family, attributes, &mut None)
    }

    /// Reads one rule of a list. Its table and chain are mostly those of the one before, whose names are used again.
    #[inline(always)]
    fn decode_next(
        family: Family,
        attributes: Attributes<'_>,
        before: &mut Option<(Name, Name)>,
    ) -> Result<Self, DecodeError> {
        let (mut table, mut chain, mut handle, mut position) = (None, None, 0, None);
        let (mut expressions, mut user_data) = (Vec::new(), Vec::new());
        for attribute in attributes {
            let attribute = attribute?;
            match attribute.kind {
                NFTA_RULE_TABLE => {
                    table = Some(name_like(&attribute, before.as_ref().map(|(table, _)| table))?);
                }
                NFTA_RULE_CHAIN => {
                    chain = Some(name_like(&attribute, before.as_ref().map(|(_, chain)| chain))?);
                }
                NFTA_RULE_HANDLE => handle = attribute.be64()?,
                NFTA_RULE_EXPRESSIONS => expressions = super::expressions(&attribute)?,
                NFTA_RULE_POSITION => position = Some(attribute.be64()?),
                NFTA_RULE_USERDATA => user_data = attribute.payload.to_vec(),
                _ => {}
            }
        }
        let (table, chain) = (need(table, "NFTA_RULE_TABLE")?, need(chain, "NFTA_RULE_CHAIN")?);
        // Only where it is another one: counting references is what costs most here.
        if before.as_ref().is_none_or(|before| !before.0.is(&table) || !before.1.is(&chain)) {
            *before = Some((table.clone(), chain.clone()));
        }
        Ok(Self { family, table, chain, handle, position, expressions, user_data })
    }
}

/// A name; where it is the same as another one, that, which costs a reference count.
fn name_like(attribute: &Attribute<'_>, other: Option<&Name>) -> Result<Name, DecodeError> {
    let bytes = attribute.payload.strip_suffix(&[0]).unwrap_or(attribute.payload);
    match other {
        Some(other) if other.as_bytes() == bytes => Ok(other.clone()),
        _ => super::name(attribute),
    }
}

/// Reads the rules of a family, of one table, or of one chain, in their order.
///
/// # Errors
/// See [`tables`](super::tables).
pub fn rules(
    transport: &mut (impl Transport + ?Sized),
    family: Family,
    table: Option<&str>,
    chain: Option<&str>,
) -> Result<Vec<Rule>, Error> {
    rules_by(NFT_MSG_GETRULE, transport, family, table, chain)
}

/// Reads rules as [`rules`] does and sets their counters and quotas back to nought, each in one step. As `nft reset rules`. Since Linux
/// 6.2.
///
/// # Errors
/// As [`rules`]; `EINVAL` from an older kernel. A dump that changed while it was read is an error ([`Error::Interrupted`]): what was
/// reset is not read again.
pub fn reset_rules(
    transport: &mut (impl Transport + ?Sized),
    family: Family,
    table: Option<&str>,
    chain: Option<&str>,
) -> Result<Vec<Rule>, Error> {
    rules_by(NFT_MSG_GETRULE_RESET, transport, family, table, chain)
}

/// Reads one rule by its handle; `None` when there is none.
///
/// # Errors
/// When the kernel refuses for another reason than that, or does not answer.
pub fn rule(
    transport: &mut (impl Transport + ?Sized),
    family: Family,
    table: &str,
    chain: &str,
    handle: u64,
) -> Result<Option<Rule>, Error> {
    rule_by(NFT_MSG_GETRULE, transport, family, table, chain, handle)
}

/// Reads one rule as [`rule`] does and sets its counters and quotas back to nought in one step, as `nft reset rule`. Since Linux 6.2.
///
/// # Errors
/// As [`rule`]; `EINVAL` from an older kernel.
pub fn reset_rule(
    transport: &mut (impl Transport + ?Sized),
    family: Family,
    table: &str,
    chain: &str,
    handle: u64,
) -> Result<Option<Rule>, Error> {
    rule_by(NFT_MSG_GETRULE_RESET, transport, family, table, chain, handle)
}

fn rule_by(
    command: u8,
    transport: &mut (impl Transport + ?Sized),
    family: Family,
    table: &str,
    chain: &str,
    handle: u64,
) -> Result<Option<Rule>, Error> {
    let write = |request: &mut MessageWriter<'_>| {
        request.put_str(NFTA_RULE_TABLE, table);
        request.put_str(NFTA_RULE_CHAIN, chain);
        request.put_be64(NFTA_RULE_HANDLE, handle);
    };
    one(transport, command, family, write, Rule::decode)
}

fn rules_by(
    command: u8,
    transport: &mut (impl Transport + ?Sized),
    family: Family,
    table: Option<&str>,
    chain: Option<&str>,
) -> Result<Vec<Rule>, Error> {
    let mut before = None;
    list(
        transport,
        command,
        family,
        |request| {
            if let Some(table) = table {
                request.put_str(NFTA_RULE_TABLE, table);
            }
            if let Some(chain) = chain {
                request.put_str(NFTA_RULE_CHAIN, chain);
            }
        },
        |family, attributes| Rule::decode_next(family, attributes, &mut before),
        |rule| {
            table.is_none_or(|table| rule.table.as_str() == table)
                && chain.is_none_or(|chain| rule.chain.as_str() == chain)
        },
    )
}

/// `NFT_MSG_GETRULE`.
const NFT_MSG_GETRULE: u8 = 7;
/// `NFT_MSG_GETRULE_RESET`.
pub(super) const NFT_MSG_GETRULE_RESET: u8 = 25;
/// `NFTA_RULE_TABLE`.
const NFTA_RULE_TABLE: u16 = 1;
/// `NFTA_RULE_CHAIN`.
const NFTA_RULE_CHAIN: u16 = 2;
/// `NFTA_RULE_HANDLE`.
const NFTA_RULE_HANDLE: u16 = 3;
/// `NFTA_RULE_EXPRESSIONS`.
const NFTA_RULE_EXPRESSIONS: u16 = 4;
/// `NFTA_RULE_POSITION`.
const NFTA_RULE_POSITION: u16 = 6;
/// `NFTA_RULE_USERDATA`.
const NFTA_RULE_USERDATA: u16 = 7;
