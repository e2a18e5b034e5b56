//! The tables and base chains of nftables, read name by name as bytes: what others make, whatever they call
//! it, is counted and told.

use sluicegate_netlink::attr::Attributes;
use sluicegate_netlink::message::Flags;
use sluicegate_netlink::{Batch, DecodeError, Error, Socket, dump};
use sluicegate_nftables::{Family, Hook};

/// A table of nftables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Table {
    pub(super) family: Family,
    pub(super) name: Vec<u8>,
}

/// A chain of nftables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Chain {
    pub(super) family: Family,
    pub(super) table: Vec<u8>,
    pub(super) name: Vec<u8>,
    /// `None` for a chain that others jump to.
    pub(super) base: Option<Base>,
}

/// Where packets enter a base chain, and what becomes of those that reach its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Base {
    /// `NF_INET_*`, or the number of the family's own hook.
    pub(super) hook: u32,
    pub(super) drops: bool,
}

/// Reads the tables of all families.
pub(super) fn tables(socket: &mut Socket) -> Result<Vec<Table>, Error> {
    read(socket, GET_TABLE, |family, attributes| {
        Ok(Some(Table { family, name: bytes(attributes, TABLE_NAME)? }))
    })
}

/// Reads the chains of all families.
pub(super) fn chains(socket: &mut Socket) -> Result<Vec<Chain>, Error> {
    read(socket, GET_CHAIN, |family, attributes| {
        let base = match attributes.clone().find(CHAIN_HOOK)? {
            None => None,
            Some(hook) => {
                let number = hook.attributes().find(HOOK_NUMBER)?.map(|number| number.be32()).transpose()?;
                let policy =
                    attributes.clone().find(CHAIN_POLICY)?.map(|policy| policy.be32()).transpose()?;
                number.map(|hook| Base { hook, drops: policy == Some(DROP) })
            }
        };
        let (table, name) = (bytes(attributes.clone(), CHAIN_TABLE)?, bytes(attributes, CHAIN_NAME)?);
        Ok(Some(Chain { family, table, name, base }))
    })
}

impl Base {
    /// Returns the name of the hook, or its number.
    pub(super) fn hook_name(self, family: Family) -> String {
        let is_it = |hook: &&Hook| hook.number(family) == Some(self.hook);
        Hook::ALL.iter().find(is_it).map_or_else(|| self.hook.to_string(), ToString::to_string)
    }
}

/// Returns a name as text: what is no text, or would break a line, is escaped.
pub(super) fn shown(name: &[u8]) -> String {
    match std::str::from_utf8(name) {
        Ok(text) if !text.is_empty() && !text.chars().any(char::is_control) => text.to_owned(),
        _ => format!("\"{}\"", name.escape_ascii()),
    }
}

fn read<T>(
    socket: &mut Socket,
    command: u8,
    decode: impl Fn(Family, Attributes<'_>) -> Result<Option<T>, DecodeError>,
) -> Result<Vec<T>, Error> {
    let mut batch = Batch::new();
    drop(batch.netfilter(NF_TABLES, command, Flags::DUMP, Family::UNSPEC.0, 0));
    dump(socket, &batch, |message| {
        let (header, attributes) = message.netfilter()?;
        Ok(decode(Family(header.family), attributes)?)
    })
}

/// Returns the bytes of a name, without the zero at its end.
fn bytes(attributes: Attributes<'_>, kind: u16) -> Result<Vec<u8>, DecodeError> {
    let name = attributes.find(kind)?.map(|name| name.payload).unwrap_or_default();
    Ok(name.strip_suffix(&[0]).unwrap_or(name).to_vec())
}

/// `NFNL_SUBSYS_NFTABLES` (linux/netfilter/nfnetlink.h)
const NF_TABLES: u8 = 10;
/// `NFT_MSG_GETTABLE` (`linux/netfilter/nf_tables.h`, as all that follow)
const GET_TABLE: u8 = 1;
/// `NFT_MSG_GETCHAIN`
const GET_CHAIN: u8 = 4;
/// `NFTA_TABLE_NAME`
const TABLE_NAME: u16 = 1;
/// `NFTA_CHAIN_TABLE`
const CHAIN_TABLE: u16 = 1;
/// `NFTA_CHAIN_NAME`
const CHAIN_NAME: u16 = 3;
/// `NFTA_CHAIN_HOOK`
const CHAIN_HOOK: u16 = 4;
/// `NFTA_CHAIN_POLICY`
const CHAIN_POLICY: u16 = 5;
/// `NFTA_HOOK_HOOKNUM`
const HOOK_NUMBER: u16 = 1;
/// `NF_DROP` (linux/netfilter.h)
const DROP: u32 = 0;
