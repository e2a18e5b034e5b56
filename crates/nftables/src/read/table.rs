//! Reads tables (`enum nft_table_attributes`).

use sluicegate_netlink::{MessageWriter, Transport};

use super::{list, one};
use crate::error::Error;
use crate::object::table::wire::NFTA_TABLE_NAME;
pub use crate::object::table::wire::Table;
use crate::wire::message::NFT_MSG_GETTABLE;
use crate::{Family, TableId};

/// Reads the tables of a family, or of all with [`Family::UNSPEC`].
///
/// # Errors
/// See [`sluicegate_netlink::dump`]; likewise for the other dumps.
pub fn tables(transport: &mut (impl Transport + ?Sized), family: Family) -> Result<Vec<Table>, Error> {
    list(transport, NFT_MSG_GETTABLE, family, |_| {}, Table::decode, |_| true)
}

/// Reads one table; `None` if it does not exist.
///
/// # Errors
/// If the kernel refuses for another reason, or does not answer.
pub fn table(transport: &mut (impl Transport + ?Sized), id: &TableId) -> Result<Option<Table>, Error> {
    let write = |request: &mut MessageWriter<'_>| request.put_str(NFTA_TABLE_NAME, &id.name);
    one(transport, NFT_MSG_GETTABLE, id.family, write, Table::decode)
}
