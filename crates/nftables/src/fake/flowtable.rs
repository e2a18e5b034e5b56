//! Flowtables: made, given devices and robbed of them, deleted when no rule uses them.

use sluicegate_netlink::attr::Attribute;
use sluicegate_netlink::message::Flags;

use crate::fake::batch::Work;
use crate::fake::device::{self, Device};
use crate::fake::event::{Change, What};
use crate::fake::message::{
    Attrs, Done, EBUSY, EEXIST, EINVAL, ENOENT, EOPNOTSUPP, Refusal, Request, command, refusal, refuse,
};
use crate::fake::state::{Flowtable, Table};
use crate::family::Family;

/// `NFT_MSG_NEWFLOWTABLE`
pub(super) fn add(work: &mut Work, request: &Request<'_>) -> Done {
    let attrs = &request.attrs;
    let name = attrs.name(NFTA_FLOWTABLE_NAME)?.ok_or(refusal(EINVAL))?;
    if !attrs.has(NFTA_FLOWTABLE_TABLE) {
        return refuse(EINVAL);
    }
    let nest = *attrs.need(NFTA_FLOWTABLE_HOOK)?;
    let table = work.state.table(request, NFTA_FLOWTABLE_TABLE)?;
    let flags = attrs.be32(NFTA_FLOWTABLE_FLAGS)?;
    if let Some(held) = table.flowtables.iter().find(|flowtable| flowtable.name == name) {
        if request.flags.contains(Flags::EXCL) {
            return Err(refusal(EEXIST).at(attrs.get(NFTA_FLOWTABLE_NAME)));
        }
        let handle = held.handle;
        let (mut new, flags) = again(held, &nest, flags)?;
        new.retain(|device| !held.devices.iter().any(|held| held.is_same(device)));
        check_devices(table, &new)?;
        if let Some(held) = table.flowtables.iter_mut().find(|flowtable| flowtable.handle == handle) {
            held.flags = flags;
            held.devices.extend(new.iter().cloned());
        }
        table.tell(Change::New, What::Flowtable(handle, Some(new)));
        work.changes += 1;
        return Ok(());
    }
    let handle = table.next_handle();
    if ![Family::IP, Family::IP6, Family::INET].contains(&Family(table.family)) {
        return refuse(ENOENT);
    }
    let flags = flags.unwrap_or(0);
    if flags & !ALL_FLAGS != 0 {
        return refuse(EOPNOTSUPP);
    }
    let hook = Attrs::nested(Some(&nest))?;
    let (Some(number), Some(priority)) =
        (hook.be32(NFTA_FLOWTABLE_HOOK_NUM)?, hook.be32(NFTA_FLOWTABLE_HOOK_PRIORITY)?)
    else {
        return refuse(EINVAL);
    };
    if number != INGRESS {
        return refuse(EOPNOTSUPP);
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
    table.tell(Change::New, What::Flowtable(handle, None));
    work.changes += 1;
    Ok(())
}

/// What is said of a flowtable that is there: devices, and flags without that of hardware; all else has to be as it is.
fn again(held: &Flowtable, nest: &Attribute<'_>, flags: Option<u32>) -> Result<(Vec<Device>, u32), Refusal> {
    let hook = Attrs::nested(Some(nest))?;
    let number = hook.be32(NFTA_FLOWTABLE_HOOK_NUM)?.unwrap_or(held.hook);
    let priority = hook.be32(NFTA_FLOWTABLE_HOOK_PRIORITY)?.map_or(held.priority, u32::cast_signed);
    if number != held.hook || priority != held.priority {
        return refuse(EOPNOTSUPP);
    }
    let devices = devices_of(&hook)?;
    let flags = flags.unwrap_or(held.flags);
    if flags & !ALL_FLAGS != 0 || (flags ^ held.flags) & HW_OFFLOAD != 0 {
        return refuse(EOPNOTSUPP);
    }
    Ok((devices, flags))
}

fn devices_of(hook: &Attrs<'_>) -> Result<Vec<Device>, Refusal> {
    Ok(hook.get(NFTA_FLOWTABLE_HOOK_DEVS).map(device::list).transpose()?.unwrap_or_default())
}

/// A device is of one flowtable of a table at most.
fn check_devices(table: &Table, new: &[Device]) -> Done {
    let mut held = table.flowtables.iter().flat_map(|flowtable| &flowtable.devices);
    if held.any(|held| new.iter().any(|device| device.is_same(held))) { refuse(EEXIST) } else { Ok(()) }
}

/// `NFT_MSG_DELFLOWTABLE`, `NFT_MSG_DESTROYFLOWTABLE`
pub(super) fn delete(work: &mut Work, request: &Request<'_>) -> Done {
    let attrs = &request.attrs;
    if !attrs.has(NFTA_FLOWTABLE_NAME) && !attrs.has(NFTA_FLOWTABLE_HANDLE) {
        return refuse(EINVAL);
    }
    let table = work.state.table(request, NFTA_FLOWTABLE_TABLE)?;
    let handle = attrs.be64(NFTA_FLOWTABLE_HANDLE)?;
    let name = attrs.name(NFTA_FLOWTABLE_NAME)?;
    let kind = if handle.is_some() { NFTA_FLOWTABLE_HANDLE } else { NFTA_FLOWTABLE_NAME };
    let is_meant = |f: &&Flowtable| match handle {
        Some(handle) => f.handle == handle,
        None => name.as_ref() == Some(&f.name),
    };
    let Some(held) = table.flowtables.iter().find(is_meant) else {
        let destroy = request.command == command::DESTROYFLOWTABLE;
        return if destroy { Ok(()) } else { Err(refusal(ENOENT).at(attrs.get(kind))) };
    };
    let handle = held.handle;
    if attrs.has(NFTA_FLOWTABLE_HOOK) {
        let hook = Attrs::nested(attrs.get(NFTA_FLOWTABLE_HOOK))?;
        let devices = devices_of(&hook)?;
        let mut held = table.flowtables.iter_mut().find(|f| f.handle == handle);
        let gone = held.as_mut().and_then(|held| device::remove(&mut held.devices, &devices));
        let gone = gone.ok_or(refusal(ENOENT))?;
        table.tell(Change::Gone, What::Flowtable(handle, Some(gone)));
        work.changes += 1;
        return Ok(());
    }
    if held.uses > 0 {
        return Err(refusal(EBUSY).at(attrs.get(kind)));
    }
    table.tell(Change::Gone, What::Flowtable(handle, None));
    let gone = table.flowtables.extract_if(.., |flowtable| flowtable.handle == handle).collect::<Vec<_>>();
    table.pending.gone.flowtables.extend(gone);
    work.changes += 1;
    Ok(())
}

/// `NFT_FLOWTABLE_MASK`
const ALL_FLAGS: u32 = 3;
/// `NFT_FLOWTABLE_HW_OFFLOAD`
const HW_OFFLOAD: u32 = 1;
/// `NF_NETDEV_INGRESS`
const INGRESS: u32 = 0;

pub(super) const NFTA_FLOWTABLE_TABLE: u16 = 1;
pub(super) const NFTA_FLOWTABLE_NAME: u16 = 2;
pub(super) const NFTA_FLOWTABLE_HOOK: u16 = 3;
pub(super) const NFTA_FLOWTABLE_USE: u16 = 4;
pub(super) const NFTA_FLOWTABLE_HANDLE: u16 = 5;
pub(super) const NFTA_FLOWTABLE_FLAGS: u16 = 7;
pub(super) const NFTA_FLOWTABLE_HOOK_NUM: u16 = 1;
pub(super) const NFTA_FLOWTABLE_HOOK_PRIORITY: u16 = 2;
pub(super) const NFTA_FLOWTABLE_HOOK_DEVS: u16 = 3;
