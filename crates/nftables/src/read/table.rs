//! Tables (`enum nft_table_attributes`).

use sluicegate_netlink::attr::Attributes;
use sluicegate_netlink::{DecodeError, Error, Transport};

use super::{UserData, list, name, need, one};
use crate::{Family, Name, TableFlags};

/// A table that the kernel holds.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Table {
    /// Its family.
    pub family: Family,
    /// Its name, unique in the family.
    pub name: Name,
    /// Its flags.
    pub flags: TableFlags,
    /// How many chains, sets, objects and flowtables it has.
    pub uses: u32,
    /// Its handle.
    pub handle: u64,
    /// The port id of the socket that owns it, with [`TableFlags::OWNER`].
    pub owner: Option<u32>,
    /// What its maker noted with it.
    pub user_data: Vec<u8>,
}

impl Table {
    /// The comment, if it has one.
    #[must_use]
    pub fn comment(&self) -> Option<&str> {
        UserData::new(&self.user_data).comment()
    }

    /// Reads the attributes of a message about a table.
    ///
    /// # Errors
    /// When they are malformed or without a name.
    pub fn decode(family: Family, attributes: Attributes<'_>) -> Result<Self, DecodeError> {
        let (mut flags, mut uses, mut handle) = (TableFlags::empty(), 0, 0);
        let (mut named, mut owner, mut user_data) = (None, None, Vec::new());
        for attribute in attributes {
            let attribute = attribute?;
            match attribute.kind {
                NFTA_TABLE_NAME => named = Some(name(&attribute)?),
                NFTA_TABLE_FLAGS => flags = TableFlags::from_bits_retain(attribute.be32()?),
                NFTA_TABLE_USE => uses = attribute.be32()?,
                NFTA_TABLE_HANDLE => handle = attribute.be64()?,
                NFTA_TABLE_USERDATA => user_data = attribute.payload.to_vec(),
                NFTA_TABLE_OWNER => owner = Some(attribute.be32()?),
                _ => {}
            }
        }
        Ok(Self { family, name: need(named, "NFTA_TABLE_NAME")?, flags, uses, handle, owner, user_data })
    }
}

/// Reads the tables of a family, or of all with [`Family::UNSPEC`].
///
/// # Errors
/// See [`sluicegate_netlink::dump`]; so for the other lists.
pub fn tables(transport: &mut (impl Transport + ?Sized), family: Family) -> Result<Vec<Table>, Error> {
    list(transport, NFT_MSG_GETTABLE, family, |_| {}, Table::decode, |_| true)
}

/// Reads one table by its name; `None` when there is none.
///
/// # Errors
/// When the kernel refuses for another reason than that, or does not answer.
pub fn table(
    transport: &mut (impl Transport + ?Sized),
    family: Family,
    name: &str,
) -> Result<Option<Table>, Error> {
    one(transport, NFT_MSG_GETTABLE, family, |request| request.put_str(NFTA_TABLE_NAME, name), Table::decode)
}

/// `NFT_MSG_GETTABLE`.
const NFT_MSG_GETTABLE: u8 = 1;
/// `NFTA_TABLE_NAME`.
const NFTA_TABLE_NAME: u16 = 1;
/// `NFTA_TABLE_FLAGS`.
const NFTA_TABLE_FLAGS: u16 = 2;
/// `NFTA_TABLE_USE`.
const NFTA_TABLE_USE: u16 = 3;
/// `NFTA_TABLE_HANDLE`.
const NFTA_TABLE_HANDLE: u16 = 4;
/// `NFTA_TABLE_USERDATA`.
const NFTA_TABLE_USERDATA: u16 = 6;
/// `NFTA_TABLE_OWNER`.
const NFTA_TABLE_OWNER: u16 = 7;
