//! Encodes and decodes tables as netlink attributes.

use std::borrow::Cow;

use sluicegate_netlink::DecodeError;
use sluicegate_netlink::attr::{Attributes, Writer};

use crate::family::Family;
use crate::name::Name;
use crate::object::TableFlags;
use crate::object::userdata::{self, UserData};
use crate::wire::attributes::attributes;
use crate::wire::decode::{name, need};

impl super::Table {
    pub(crate) fn encode(&self, w: &mut Writer<'_>) {
        w.put_str(NFTA_TABLE_NAME, &self.id.name);
        w.put_be32(NFTA_TABLE_FLAGS, self.flags.bits());
        if let Some(comment) = &self.comment {
            w.put(NFTA_TABLE_USERDATA, &userdata::comment(userdata::TABLE_COMMENT, comment));
        }
    }
}

/// A table as the kernel lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Table {
    /// Its family.
    pub family: Family,
    /// Its name, which is unique in the family.
    pub name: Name,
    /// Its flags.
    pub flags: TableFlags,
    /// The number of its chains, sets, objects and flowtables.
    pub uses: u32,
    /// Its handle.
    pub handle: u64,
    /// The port id of the socket that owns it, if it has [`TableFlags::OWNER`].
    pub owner: Option<u32>,
    /// User data: bytes that the kernel stores without interpreting them.
    pub user_data: Vec<u8>,
}

impl Table {
    /// Returns the comment in the user data, if there is one.
    #[must_use]
    pub fn comment(&self) -> Option<Cow<'_, str>> {
        UserData::new(&self.user_data).comment()
    }

    /// Decodes the attributes of a message about a table.
    ///
    /// # Errors
    /// If they are malformed or lack the name.
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

attributes! {
    TABLE: "enum nft_table_attributes, linux/netfilter/nf_tables.h" {
        NFTA_TABLE_NAME = 1,
        NFTA_TABLE_FLAGS = 2,
        NFTA_TABLE_USE = 3,
        NFTA_TABLE_HANDLE = 4,
        NFTA_TABLE_PAD = 5,
        NFTA_TABLE_USERDATA = 6,
        NFTA_TABLE_OWNER = 7,
    }
}
