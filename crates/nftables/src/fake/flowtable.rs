//! Flowtables: created, changed in their devices, and deleted if no rule uses them.

use sluicegate_netlink::Errno;
use sluicegate_netlink::attr::Attribute;
use sluicegate_netlink::message::Flags;

use crate::fake::batch::Work;
use crate::fake::device::{self, Device};
use crate::fake::event::{Change, Subject};
use crate::fake::message::{Attrs, Done, Refusal, Request, refusal, refuse};
use crate::fake::state::{Flowtable, Table};
use crate::family::Family;
use crate::object::flowtable::wire::*;
use crate::wire::message::*;

/// Handles `NFT_MSG_NEWFLOWTABLE`.
pub(super) fn add(work: &mut Work, request: &Request<'_>) -> Done {
    let attrs = &request.attrs;
    let name = attrs.name(NFTA_FLOWTABLE_NAME)?.ok_or(refusal(Errno::EINVAL))?;
    if !attrs.has(NFTA_FLOWTABLE_TABLE) {
        return refuse(Errno::EINVAL);
    }
    let nest = *attrs.need(NFTA_FLOWTABLE_HOOK)?;
    let table = work.state.table(request, NFTA_FLOWTABLE_TABLE)?;
    let flags = attrs.be32(NFTA_FLOWTABLE_FLAGS)?;
    if let Some(existing) = table.flowtables.iter().find(|flowtable| flowtable.name == name) {
        if request.flags.contains(Flags::EXCL) {
            return Err(refusal(Errno::EEXIST).at(attrs.get(NFTA_FLOWTABLE_NAME)));
        }
        let handle = existing.handle;
        let (mut new, flags) = update(existing, &nest, flags)?;
        new.retain(|device| !existing.devices.iter().any(|existing| existing.is_same(device)));
        check_devices(table, &new)?;
        if let Some(existing) = table.flowtables.iter_mut().find(|flowtable| flowtable.handle == handle) {
            existing.flags = flags;
            existing.devices.extend(new.iter().cloned());
        }
        table.record(Change::New, Subject::Flowtable(handle, Some(new)));
        work.changes += 1;
        return Ok(());
    }
    let handle = table.next_handle();
    if ![Family::IP, Family::IP6, Family::INET].contains(&Family(table.family)) {
        return refuse(Errno::ENOENT);
    }
    let flags = flags.unwrap_or(0);
    if flags & !ALL_FLAGS != 0 {
        return refuse(Errno::EOPNOTSUPP);
    }
    let hook = Attrs::nested(Some(&nest))?;
    let (Some(number), Some(priority)) =
        (hook.be32(NFTA_FLOWTABLE_HOOK_NUM)?, hook.be32(NFTA_FLOWTABLE_HOOK_PRIORITY)?)
    else {
        return refuse(Errno::EINVAL);
    };
    if number != INGRESS {
        return refuse(Errno::EOPNOTSUPP);
    }
    let devices = devices_of(&hook)?;
    check_devices(table, &devices)?;
    table.flowtables.push(Flowtable {
        name,
        handle,
        uses: 0,
        hook: number,
        priority: priority.cast_signed(),
        flags,
        devices,
    });
    table.record(Change::New, Subject::Flowtable(handle, None));
    work.changes += 1;
    Ok(())
}

/// Decodes a request for a flowtable that exists already. It may add devices and change flags, except the one
/// for hardware offload; everything else has to match.
fn update(
    existing: &Flowtable,
    nest: &Attribute<'_>,
    flags: Option<u32>,
) -> Result<(Vec<Device>, u32), Refusal> {
    let hook = Attrs::nested(Some(nest))?;
    let number = hook.be32(NFTA_FLOWTABLE_HOOK_NUM)?.unwrap_or(existing.hook);
    let priority = hook.be32(NFTA_FLOWTABLE_HOOK_PRIORITY)?.map_or(existing.priority, u32::cast_signed);
    if number != existing.hook || priority != existing.priority {
        return refuse(Errno::EOPNOTSUPP);
    }
    let devices = devices_of(&hook)?;
    let flags = flags.unwrap_or(existing.flags);
    if flags & !ALL_FLAGS != 0 || (flags ^ existing.flags) & HW_OFFLOAD != 0 {
        return refuse(Errno::EOPNOTSUPP);
    }
    Ok((devices, flags))
}

fn devices_of(hook: &Attrs<'_>) -> Result<Vec<Device>, Refusal> {
    Ok(hook.get(NFTA_FLOWTABLE_HOOK_DEVS).map(device::list).transpose()?.unwrap_or_default())
}

/// Refuses a device that belongs to another flowtable of the table.
fn check_devices(table: &Table, new: &[Device]) -> Done {
    let mut existing = table.flowtables.iter().flat_map(|flowtable| &flowtable.devices);
    if existing.any(|existing| new.iter().any(|device| device.is_same(existing))) {
        refuse(Errno::EEXIST)
    } else {
        Ok(())
    }
}

/// Handles `NFT_MSG_DELFLOWTABLE` and `NFT_MSG_DESTROYFLOWTABLE`.
pub(super) fn delete(work: &mut Work, request: &Request<'_>) -> Done {
    let attrs = &request.attrs;
    if !attrs.has(NFTA_FLOWTABLE_NAME) && !attrs.has(NFTA_FLOWTABLE_HANDLE) {
        return refuse(Errno::EINVAL);
    }
    let table = work.state.table(request, NFTA_FLOWTABLE_TABLE)?;
    let handle = attrs.be64(NFTA_FLOWTABLE_HANDLE)?;
    let name = attrs.name(NFTA_FLOWTABLE_NAME)?;
    let kind = if handle.is_some() { NFTA_FLOWTABLE_HANDLE } else { NFTA_FLOWTABLE_NAME };
    let is_meant = |f: &&Flowtable| match handle {
        Some(handle) => f.handle == handle,
        None => name.as_ref() == Some(&f.name),
    };
    let Some(existing) = table.flowtables.iter().find(is_meant) else {
        let destroy = request.command == NFT_MSG_DESTROYFLOWTABLE;
        return if destroy { Ok(()) } else { Err(refusal(Errno::ENOENT).at(attrs.get(kind))) };
    };
    let handle = existing.handle;
    if attrs.has(NFTA_FLOWTABLE_HOOK) {
        let hook = Attrs::nested(attrs.get(NFTA_FLOWTABLE_HOOK))?;
        let devices = devices_of(&hook)?;
        let mut existing = table.flowtables.iter_mut().find(|f| f.handle == handle);
        let gone = existing.as_mut().and_then(|existing| device::remove(&mut existing.devices, &devices));
        let gone = gone.ok_or(refusal(Errno::ENOENT))?;
        table.record(Change::Deleted, Subject::Flowtable(handle, Some(gone)));
        work.changes += 1;
        return Ok(());
    }
    if existing.uses > 0 {
        return Err(refusal(Errno::EBUSY).at(attrs.get(kind)));
    }
    table.record(Change::Deleted, Subject::Flowtable(handle, None));
    let gone = table.flowtables.extract_if(.., |flowtable| flowtable.handle == handle).collect::<Vec<_>>();
    table.pending.deleted.flowtables.extend(gone);
    work.changes += 1;
    Ok(())
}

/// `NFT_FLOWTABLE_MASK`
const ALL_FLAGS: u32 = 3;
/// `NFT_FLOWTABLE_HW_OFFLOAD`
const HW_OFFLOAD: u32 = 1;
/// `NF_NETDEV_INGRESS`
const INGRESS: u32 = 0;
