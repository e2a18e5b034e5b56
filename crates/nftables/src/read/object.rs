//! Stateful objects (`enum nft_object_attributes`).

use sluicegate_netlink::attr::Attributes;
use sluicegate_netlink::{DecodeError, Error, MessageWriter, Transport};

use super::{UserData, list, name, need, one};
use crate::expr::ObjectKind;
use crate::{Family, Name};

/// A stateful object that the kernel holds.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Object {
    /// The family of its table.
    pub family: Family,
    /// Its table.
    pub table: Name,
    /// Its name, unique among objects of its type in the table.
    pub name: Name,
    /// Its type.
    pub object_kind: ObjectKind,
    /// Its settings and state: the attributes of its type, as they came.
    pub data: Vec<u8>,
    /// How many rules and elements refer to it.
    pub uses: u32,
    /// Its handle.
    pub handle: u64,
    /// What its maker noted with it.
    pub user_data: Vec<u8>,
}

impl Object {
    /// The comment, if it has one.
    #[must_use]
    pub fn comment(&self) -> Option<&str> {
        UserData::new(&self.user_data).comment()
    }

    /// Reads the attributes of a message about an object.
    ///
    /// # Errors
    /// When they are malformed, or without table, name and type.
    pub fn decode(family: Family, attributes: Attributes<'_>) -> Result<Self, DecodeError> {
        let (mut table, mut named, mut object_kind) = (None, None, None);
        let (mut data, mut uses, mut handle, mut user_data) = (Vec::new(), 0, 0, Vec::new());
        for attribute in attributes {
            let attribute = attribute?;
            match attribute.kind {
                NFTA_OBJ_TABLE => table = Some(name(&attribute)?),
                NFTA_OBJ_NAME => named = Some(name(&attribute)?),
                NFTA_OBJ_TYPE => object_kind = Some(ObjectKind(attribute.be32()?)),
                NFTA_OBJ_DATA => data = attribute.payload.to_vec(),
                NFTA_OBJ_USE => uses = attribute.be32()?,
                NFTA_OBJ_HANDLE => handle = attribute.be64()?,
                NFTA_OBJ_USERDATA => user_data = attribute.payload.to_vec(),
                _ => {}
            }
        }
        Ok(Self {
            family,
            table: need(table, "NFTA_OBJ_TABLE")?,
            name: need(named, "NFTA_OBJ_NAME")?,
            object_kind: need(object_kind, "NFTA_OBJ_TYPE")?,
            data,
            uses,
            handle,
            user_data,
        })
    }
}

/// Reads the stateful objects of a family, or those of one table.
///
/// # Errors
/// See [`tables`](super::tables).
pub fn objects(
    transport: &mut (impl Transport + ?Sized),
    family: Family,
    table: Option<&str>,
) -> Result<Vec<Object>, Error> {
    objects_by(NFT_MSG_GETOBJ, transport, family, table)
}

/// Reads the stateful objects as [`objects`] does and sets those that count back to nought, each in one step: what comes after is
/// counted anew, and nothing is lost in between. As `nft reset counters` and `nft reset quotas`, in one.
///
/// # Errors
/// As [`objects`]. A dump that changed while it was read is an error here ([`Error::Interrupted`]): what was reset is not read again.
pub fn reset_objects(
    transport: &mut (impl Transport + ?Sized),
    family: Family,
    table: Option<&str>,
) -> Result<Vec<Object>, Error> {
    objects_by(NFT_MSG_GETOBJ_RESET, transport, family, table)
}

/// Reads one stateful object by its kind and name; `None` when there is none.
///
/// # Errors
/// When the kernel refuses for another reason than that, or does not answer.
pub fn object(
    transport: &mut (impl Transport + ?Sized),
    family: Family,
    table: &str,
    kind: ObjectKind,
    name: &str,
) -> Result<Option<Object>, Error> {
    object_by(NFT_MSG_GETOBJ, transport, family, table, kind, name)
}

/// Reads one stateful object as [`object`] does and sets it back to nought in one step, as `nft reset counter` and `nft reset quota`. Of other kinds
/// nothing is reset.
///
/// # Errors
/// As [`object`].
pub fn reset_object(
    transport: &mut (impl Transport + ?Sized),
    family: Family,
    table: &str,
    kind: ObjectKind,
    name: &str,
) -> Result<Option<Object>, Error> {
    object_by(NFT_MSG_GETOBJ_RESET, transport, family, table, kind, name)
}

fn object_by(
    command: u8,
    transport: &mut (impl Transport + ?Sized),
    family: Family,
    table: &str,
    kind: ObjectKind,
    name: &str,
) -> Result<Option<Object>, Error> {
    let write = |request: &mut MessageWriter<'_>| {
        request.put_str(NFTA_OBJ_TABLE, table);
        request.put_str(NFTA_OBJ_NAME, name);
        request.put_be32(NFTA_OBJ_TYPE, kind.0);
    };
    one(transport, command, family, write, Object::decode)
}

fn objects_by(
    command: u8,
    transport: &mut (impl Transport + ?Sized),
    family: Family,
    table: Option<&str>,
) -> Result<Vec<Object>, Error> {
    list(
        transport,
        command,
        family,
        |request| {
            if let Some(table) = table {
                request.put_str(NFTA_OBJ_TABLE, table);
            }
        },
        Object::decode,
        |object| table.is_none_or(|table| object.table.as_str() == table),
    )
}

/// `NFT_MSG_GETOBJ`.
const NFT_MSG_GETOBJ: u8 = 19;
/// `NFT_MSG_GETOBJ_RESET`.
pub(super) const NFT_MSG_GETOBJ_RESET: u8 = 21;
/// `NFTA_OBJ_TABLE`.
const NFTA_OBJ_TABLE: u16 = 1;
/// `NFTA_OBJ_NAME`.
const NFTA_OBJ_NAME: u16 = 2;
/// `NFTA_OBJ_TYPE`.
const NFTA_OBJ_TYPE: u16 = 3;
/// `NFTA_OBJ_DATA`.
const NFTA_OBJ_DATA: u16 = 4;
/// `NFTA_OBJ_USE`.
const NFTA_OBJ_USE: u16 = 5;
/// `NFTA_OBJ_HANDLE`.
const NFTA_OBJ_HANDLE: u16 = 6;
/// `NFTA_OBJ_USERDATA`.
const NFTA_OBJ_USERDATA: u16 = 8;
