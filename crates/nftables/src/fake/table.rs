//! Tables: created, made dormant, and deleted with their content.

use sluicegate_netlink::Errno;
use sluicegate_netlink::message::Flags;

use crate::fake::batch::Work;
use crate::fake::chain::BINDING;
use crate::fake::event::{Change, Subject};
use crate::fake::message::{Done, Refusal, Request, refusal, refuse};
use crate::fake::set::Set;
use crate::fake::state::{Reference, Table};
use crate::object::table::wire::*;
use crate::wire::message::*;
use crate::{Family, TableFlags};

/// Handles `NFT_MSG_NEWTABLE`.
pub(super) fn add(work: &mut Work, request: &Request<'_>) -> Done {
    let attrs = &request.attrs;
    let families = [Family::IP, Family::IP6, Family::INET, Family::ARP, Family::BRIDGE, Family::NETDEV];
    if !families.contains(&Family(request.family)) {
        return refuse(Errno::EOPNOTSUPP);
    }
    let flags = attrs.be32(NFTA_TABLE_FLAGS)?.map(TableFlags::from_bits_retain);
    let known = TableFlags::DORMANT | TableFlags::OWNER | TableFlags::PERSIST;
    let unknown = flags.is_some_and(|flags| !(flags - known).is_empty());
    match work.state.find_table(request.family, attrs, NFTA_TABLE_NAME) {
        Ok(at) => {
            let Some(table) = work.state.tables.get_mut(at) else { return Ok(()) };
            let table = table.for_client(request.port)?;
            if request.flags.contains(Flags::EXCL) {
                return Err(refusal(Errno::EEXIST).at(attrs.get(NFTA_TABLE_NAME)));
            }
            if request.flags.contains(Flags::REPLACE) || unknown {
                return refuse(Errno::EOPNOTSUPP);
            }
            work.changes += usize::from(update(table, flags, request.port)?);
            Ok(())
        }
        Err(Refusal { errno: Errno::ENOENT, .. }) => {
            if unknown {
                return refuse(Errno::EOPNOTSUPP);
            }
            let flags = flags.unwrap_or_default();
            work.state.table_handles += 1;
            let name = attrs.name(NFTA_TABLE_NAME)?.ok_or(refusal(Errno::EINVAL))?;
            let mut table = Table::new(request.family, name, work.state.table_handles);
            table.flags = flags.bits();
            table.owner = flags.contains(TableFlags::OWNER).then_some(request.port);
            table.user_data = attrs.bytes(NFTA_TABLE_USERDATA);
            table.checks = work.checks_of_new;
            table.pending.notify = work.notify;
            table.record(Change::New, Subject::Table);
            work.state.tables.push(table);
            work.changes += 1;
            Ok(())
        }
        Err(refusal) => Err(refusal),
    }
}

/// Handles `NFT_MSG_DELTABLE` and `NFT_MSG_DESTROYTABLE`: one table, or all of a family.
pub(super) fn delete(work: &mut Work, request: &Request<'_>) -> Done {
    let attrs = &request.attrs;
    let handle = attrs.be64(NFTA_TABLE_HANDLE)?;
    if request.family == 0 || (!attrs.has(NFTA_TABLE_NAME) && handle.is_none()) {
        let name = attrs.name(NFTA_TABLE_NAME)?;
        let goes = |table: &mut Table| {
            (request.family == 0 || table.family == request.family)
                && name.as_ref().is_none_or(|name| *name == table.name)
                && !table.is_foreign(request.port)
        };
        let gone: Vec<Table> = work.state.tables.extract_if(.., goes).collect();
        gone.into_iter().for_each(|table| work.record_deleted_table(table));
        return Ok(());
    }
    let (attribute, found) = match handle {
        Some(handle) => (
            attrs.get(NFTA_TABLE_HANDLE),
            work.state
                .tables
                .iter()
                .position(|table| table.family == request.family && table.handle == handle)
                .ok_or(refusal(Errno::ENOENT)),
        ),
        None => (attrs.get(NFTA_TABLE_NAME), work.state.find_table(request.family, attrs, NFTA_TABLE_NAME)),
    };
    let at = match found {
        Ok(at) => at,
        Err(Refusal { errno: Errno::ENOENT, .. }) if request.command == NFT_MSG_DESTROYTABLE => {
            return Ok(());
        }
        Err(refusal) => return Err(refusal.at(attribute)),
    };
    let Some(table) = work.state.tables.get_mut(at) else { return Ok(()) };
    table.for_client(request.port).map_err(|refusal| refusal.at(attribute))?;
    if request.flags.contains(Flags::NONREC) && table.uses() > 0 {
        return refuse(Errno::EBUSY);
    }
    let table = work.state.tables.remove(at);
    work.record_deleted_table(table);
    Ok(())
}

/// Records the deletion of a table's content, in the kernel's order.
pub(super) fn record_deleted(table: &mut Table) {
    let mut gone = Vec::new();
    for chain in table.chains.iter().filter(|chain| chain.flags & BINDING == 0) {
        for rule in chain.rules() {
            gone.push(Subject::Rule(chain.handle, rule.number));
            let sets = rule.exprs.iter().filter_map(|existing| match existing.refers {
                Some(Reference::Set(set)) => Some(set),
                _ => None,
            });
            let unnamed = |set: &u64| table.set(*set).is_some_and(Set::is_anonymous);
            gone.extend(sets.filter(unnamed).map(Subject::Set));
        }
    }
    gone.extend(table.sets.iter().filter(|set| !set.is_anonymous()).map(|set| Subject::Set(set.handle)));
    gone.extend(table.flowtables.iter().map(|flowtable| Subject::Flowtable(flowtable.handle, None)));
    gone.extend(table.objects.iter().map(|object| Subject::Object(object.handle)));
    let chains = table.chains.iter().filter(|chain| chain.flags & BINDING == 0);
    gone.extend(chains.map(|chain| Subject::Chain(chain.handle, None)));
    gone.push(Subject::Table);
    gone.into_iter().for_each(|subject| table.record(Change::Deleted, subject));
}

/// Changes the flags of a table. `dormant` can change only once in a transaction, and not together with base
/// chains; a table that persists without an owner can be given one.
fn update(table: &mut Table, flags: Option<TableFlags>, port: u32) -> Result<bool, Refusal> {
    let existing = TableFlags::from_bits_retain(table.flags);
    let Some(flags) = flags.filter(|flags| *flags != existing) else { return Ok(false) };
    let owned = |flags: TableFlags| flags.contains(TableFlags::OWNER);
    let orphan = existing.contains(TableFlags::PERSIST) && !owned(existing);
    let moved = (owned(existing) && !owned(flags)) || (owned(flags) && !orphan);
    if moved || (flags ^ existing).contains(TableFlags::PERSIST) {
        return refuse(Errno::EOPNOTSUPP);
    }
    if table.pending.table || table.pending.chain {
        return refuse(Errno::EINVAL);
    }
    table.pending.table = true;
    table.flags = flags.bits();
    table.owner = owned(flags).then_some(port);
    table.record(Change::New, Subject::Table);
    Ok(true)
}
