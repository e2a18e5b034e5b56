//! Encodes and decodes rules as netlink attributes.

use std::borrow::Cow;

use sluicegate_netlink::DecodeError;
use sluicegate_netlink::attr::{Attribute, Attributes, Writer};
use sluicegate_netlink::text::encode;

use crate::expr::Expr;
use crate::expr::wire::{EXPRESSIONS, NFTA_LIST_ELEM};
use crate::family::Family;
use crate::name::{Comment, Name};
use crate::object::rule::compat::{self, COMPAT};
use crate::object::userdata::{self, UserData};
use crate::wire::attributes::attributes;
use crate::wire::decode::need;

impl super::Rule {
    /// Appends the attributes of the rule. `exprs` are its lowered statements, `replaced` is the handle of
    /// the rule that it replaces, if any.
    pub(crate) fn encode(&self, exprs: &[Expr], replaced: Option<u64>, w: &mut Writer<'_>) {
        w.put_str(NFTA_RULE_TABLE, &self.chain.table.name);
        w.put_str(NFTA_RULE_CHAIN, &self.chain.name);
        if let Some(handle) = replaced {
            w.put_be64(NFTA_RULE_HANDLE, handle);
        }
        if let Some(position) = self.position {
            w.put_be64(NFTA_RULE_POSITION, position);
        }
        encode_body(self.chain.table.family, exprs, self.comment.as_ref(), w);
    }
}

/// Appends the expressions of a rule, the protocol for its modules of xtables, and its comment.
pub(crate) fn encode_body(family: Family, exprs: &[Expr], comment: Option<&Comment>, w: &mut Writer<'_>) {
    let mut list = w.nest(NFTA_RULE_EXPRESSIONS);
    exprs.iter().for_each(|expr| expr.encode(&mut list, NFTA_LIST_ELEM));
    drop(list);
    compat::encode(family, exprs, w);
    if let Some(comment) = comment {
        w.put(NFTA_RULE_USERDATA, &userdata::comment(userdata::RULE_COMMENT, comment));
    }
}

/// A rule as the kernel lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rule {
    /// The family of its table.
    pub family: Family,
    /// Its table.
    pub table: Name,
    /// Its chain.
    pub chain: Name,
    /// Its handle, which identifies the rule.
    pub handle: u64,
    /// The handle of the rule before it. In events it is only present if there is also a rule after it.
    pub position: Option<u64>,
    /// Its expressions.
    pub expressions: Vec<Expr>,
    /// User data: bytes that the kernel stores without interpreting them.
    pub user_data: Vec<u8>,
}

impl Rule {
    /// Returns the comment in the user data, if there is one.
    #[must_use]
    pub fn comment(&self) -> Option<Cow<'_, str>> {
        UserData::new(&self.user_data).comment()
    }

    /// Decodes the attributes of a message about a rule.
    ///
    /// # Errors
    /// If they are malformed, or lack the table or the chain.
    pub fn decode(family: Family, attributes: Attributes<'_>) -> Result<Self, DecodeError> {
        Self::decode_next(family, attributes, &mut None)
    }

    /// Decodes one rule of a dump. Its table and chain are mostly those of the rule before, so their names
    /// are shared.
    #[inline(always)]
    pub(crate) fn decode_next(
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
                NFTA_RULE_EXPRESSIONS => expressions = crate::expr::wire::expressions(&attribute)?,
                NFTA_RULE_POSITION => position = Some(attribute.be64()?),
                NFTA_RULE_USERDATA => user_data = attribute.payload.to_vec(),
                _ => {}
            }
        }
        let (table, chain) = (need(table, "NFTA_RULE_TABLE")?, need(chain, "NFTA_RULE_CHAIN")?);
        // The names are cloned only if they changed: counting references takes most of the time here.
        if before.as_ref().is_none_or(|before| !before.0.is(&table) || !before.1.is(&chain)) {
            *before = Some((table.clone(), chain.clone()));
        }
        Ok(Self { family, table, chain, handle, position, expressions, user_data })
    }
}

/// Returns a name, sharing the other one if they are equal.
fn name_like(attribute: &Attribute<'_>, other: Option<&Name>) -> Result<Name, DecodeError> {
    let bytes = attribute.payload.strip_suffix(&[0]).unwrap_or(attribute.payload);
    match other {
        Some(other) if *encode(other) == *bytes => Ok(other.clone()),
        _ => crate::wire::decode::name(attribute),
    }
}

attributes! {
    RULE: "enum nft_rule_attributes, linux/netfilter/nf_tables.h" {
        NFTA_RULE_TABLE = 1,
        NFTA_RULE_CHAIN = 2,
        NFTA_RULE_HANDLE = 3,
        NFTA_RULE_EXPRESSIONS = 4 => EXPRESSIONS,
        NFTA_RULE_COMPAT = 5 => COMPAT,
        NFTA_RULE_POSITION = 6,
        NFTA_RULE_USERDATA = 7,
        NFTA_RULE_PAD = 8,
        NFTA_RULE_ID = 9,
        NFTA_RULE_POSITION_ID = 10,
        NFTA_RULE_CHAIN_ID = 11,
    }
}
