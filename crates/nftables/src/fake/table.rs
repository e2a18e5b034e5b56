//! Tables: made, switched off and on, deleted with all that is in them.

use sluicegate_netlink::message::Flags;

use crate::fake::batch::Work;
use crate::fake::message::{
    Done, EEXIST, EINVAL, ENOENT, EOPNOTSUPP, Refusal, Request, command, refusal, refuse,
};
use crate::fake::state::Table;
use crate::{Family, TableFlags};

/// `NFT_MSG_NEWTABLE`
pub(super) fn add(work: &mut Work, request: &Request<'_>) -> Done {
    let attrs = &request.attrs;
    let families = [Family::IP, Family::IP6, Family::INET, Family::ARP, Family::BRIDGE, Family::NETDEV];
    if !families.contains(&Family(request.family)) {
        return refuse(EOPNOTSUPP);
    }
    let flags = attrs.be32(NFTA_TABLE_FLAGS)?;
    let known = TableFlags::DORMANT | TableFlags::OWNER | TableFlags::PERSIST;
    match work.state.find_table(request.family, attrs, NFTA_TABLE_NAME) {
        Ok(at) => {
            if request.flags.contains(Flags::EXCL) {
                return Err(refusal(EEXIST).at(attrs.get(NFTA_TABLE_NAME)));
            }
            if request.flags.contains(Flags::REPLACE) {
                return refuse(EOPNOTSUPP);
            }
            let Some(table) = work.state.tables.get_mut(at) else { return Ok(()) };
            let Some(flags) = flags else { return Ok(()) };
            if flags & !known.bits() != 0 {
                return refuse(EOPNOTSUPP);
            }
            work.changes += usize::from(update(table, TableFlags::from_bits_retain(flags))?);
            Ok(())
        }
        Err(Refusal { code: ENOENT, .. }) => {
            if flags.is_some_and(|flags| flags & !known.bits() != 0) {
                return refuse(EOPNOTSUPP);
            }
            work.state.table_handles += 1;
            let name = attrs.name(NFTA_TABLE_NAME)?.ok_or(refusal(EINVAL))?;
            let mut table = Table::new(request.family, name, work.state.table_handles);
            table.flags = flags.unwrap_or(0);
            table.user_data = attrs.bytes(NFTA_TABLE_USERDATA);
            table.checks = work.checks_of_new;
            work.state.tables.push(table);
            work.changes += 1;
            Ok(())
        }
        Err(refusal) => Err(refusal),
    }
}

/// `NFT_MSG_DELTABLE`, `NFT_MSG_DESTROYTABLE`: one table, or all of a family.
pub(super) fn delete(work: &mut Work, request: &Request<'_>) -> Done {
    let attrs = &request.attrs;
    let handle = attrs.be64(NFTA_TABLE_HANDLE)?;
    if request.family == 0 || (!attrs.has(NFTA_TABLE_NAME) && handle.is_none()) {
        let name = attrs.name(NFTA_TABLE_NAME)?;
        let before = work.state.tables.len();
        let goes = |table: &Table| {
            (request.family == 0 || table.family == request.family)
                && name.as_ref().is_none_or(|name| *name == table.name)
        };
        work.deleted.extend(work.state.tables.iter().filter(|t| goes(t)).map(|t| (t.handle, t.handles)));
        work.state.tables.retain(|table| !goes(table));
        work.changes += before - work.state.tables.len();
        return Ok(());
    }
    let (attribute, found) = match handle {
        Some(handle) => (
            attrs.get(NFTA_TABLE_HANDLE),
            work.state
                .tables
                .iter()
                .position(|table| table.family == request.family && table.handle == handle)
                .ok_or(refusal(ENOENT)),
        ),
        None => (attrs.get(NFTA_TABLE_NAME), work.state.find_table(request.family, attrs, NFTA_TABLE_NAME)),
    };
    match found {
        Ok(at) => {
            let table = work.state.tables.remove(at);
            work.deleted.push((table.handle, table.handles));
            work.changes += 1;
            Ok(())
        }
        Err(Refusal { code: ENOENT, .. }) if request.command == command::DESTROYTABLE => Ok(()),
        Err(refusal) => Err(refusal.at(attribute)),
    }
}

/// Only being dormant can be changed, and only once in a transaction, and not along with base chains.
fn update(table: &mut Table, flags: TableFlags) -> Result<bool, Refusal> {
    let held = TableFlags::from_bits_retain(table.flags);
    if flags == held {
        return Ok(false);
    }
    if (held ^ flags).intersects(TableFlags::OWNER | TableFlags::PERSIST)
        && !(flags.contains(TableFlags::OWNER) && held.contains(TableFlags::PERSIST))
    {
        return refuse(EOPNOTSUPP);
    }
    if table.pending.table || table.pending.chain {
        return refuse(EINVAL);
    }
    table.pending.table = true;
    table.flags = flags.bits();
    Ok(true)
}

pub(super) const NFTA_TABLE_NAME: u16 = 1;
pub(super) const NFTA_TABLE_FLAGS: u16 = 2;
pub(super) const NFTA_TABLE_USE: u16 = 3;
pub(super) const NFTA_TABLE_HANDLE: u16 = 4;
pub(super) const NFTA_TABLE_USERDATA: u16 = 6;
pub(super) const NFTA_TABLE_OWNER: u16 = 7;
