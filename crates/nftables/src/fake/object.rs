//! Stateful objects and flowtables: what is named in a table and referred to by rules and elements.

use sluicegate_netlink::message::Flags;

use crate::expr::{Expr, ObjectKind};
use crate::fake::batch::Work;
use crate::fake::chain::device_list;
use crate::fake::expression::check_state;
use crate::fake::message::{
    Attrs, Done, EBUSY, EEXIST, EINVAL, ENOENT, EOPNOTSUPP, Refusal, Request, command, refusal, refuse,
};
use crate::fake::state::{Flowtable, Later, Object};

/// `NFT_MSG_NEWOBJ`
pub(super) fn add(work: &mut Work, request: &Request<'_>) -> Done {
    let attrs = &request.attrs;
    let kind = attrs.be32(NFTA_OBJ_TYPE)?.ok_or(refusal(EINVAL))?;
    let name = attrs.name(NFTA_OBJ_NAME)?.ok_or(refusal(EINVAL))?;
    let data = attrs.need(NFTA_OBJ_DATA)?.payload;
    let table = work.state.table(request.family, attrs, NFTA_OBJ_TABLE)?;
    if let Ok(held) = table.object_named(kind, attrs.get(NFTA_OBJ_NAME)) {
        if request.flags.contains(Flags::EXCL) {
            return Err(refusal(EEXIST).at(attrs.get(NFTA_OBJ_NAME)));
        }
        if request.flags.contains(Flags::REPLACE) {
            return refuse(EOPNOTSUPP);
        }
        // Only these can be changed; of all others the request is taken and nothing done.
        if !matches!(ObjectKind(kind), ObjectKind::QUOTA | ObjectKind::SYNPROXY) {
            return Ok(());
        }
        let object = held.handle;
        let data = configuration(ObjectKind(kind), data)?;
        table.pending.later.push(Later::Object { object, data });
        work.changes += 1;
        return Ok(());
    }
    if !(1..=SYNPROXY).contains(&kind) || ObjectKind(kind) == ObjectKind::CONNLIMIT {
        return refuse(ENOENT);
    }
    let data = configuration(ObjectKind(kind), data)?;
    let handle = table.next_handle();
    let user_data = attrs.bytes(NFTA_OBJ_USERDATA);
    table.objects.push(Object { name, kind, handle, uses: 0, data, user_data });
    work.changes += 1;
    Ok(())
}

/// `NFT_MSG_DELOBJ`, `NFT_MSG_DESTROYOBJ`
pub(super) fn delete(work: &mut Work, request: &Request<'_>) -> Done {
    let attrs = &request.attrs;
    let kind = attrs.be32(NFTA_OBJ_TYPE)?.ok_or(refusal(EINVAL))?;
    if !attrs.has(NFTA_OBJ_NAME) && !attrs.has(NFTA_OBJ_HANDLE) {
        return refuse(EINVAL);
    }
    let table = work.state.table(request.family, attrs, NFTA_OBJ_TABLE)?;
    let (attribute, found) = match attrs.be64(NFTA_OBJ_HANDLE)? {
        Some(handle) => {
            let found = table.objects.iter().find(|o| o.handle == handle && o.kind == kind);
            (attrs.get(NFTA_OBJ_HANDLE), found.ok_or(refusal(ENOENT)))
        }
        None => (attrs.get(NFTA_OBJ_NAME), table.object_named(kind, attrs.get(NFTA_OBJ_NAME))),
    };
    let object = match found {
        Ok(object) => object,
        Err(Refusal { code: ENOENT, .. }) if request.command == command::DESTROYOBJ => return Ok(()),
        Err(refusal) => return Err(refusal.at(attribute)),
    };
    if object.uses > 0 {
        return Err(refusal(EBUSY).at(attribute));
    }
    let handle = object.handle;
    table.objects.retain(|object| object.handle != handle);
    work.changes += 1;
    Ok(())
}

/// `NFT_MSG_NEWFLOWTABLE`
pub(super) fn add_flowtable(work: &mut Work, request: &Request<'_>) -> Done {
    let attrs = &request.attrs;
    let name = attrs.name(NFTA_FLOWTABLE_NAME)?.ok_or(refusal(EINVAL))?;
    if !attrs.has(NFTA_FLOWTABLE_TABLE) {
        return refuse(EINVAL);
    }
    let nest = *attrs.need(NFTA_FLOWTABLE_HOOK)?;
    let table = work.state.table(request.family, attrs, NFTA_FLOWTABLE_TABLE)?;
    let hook = Attrs::nested(Some(&nest))?;
    let devices = hook.get(NFTA_FLOWTABLE_HOOK_DEVS).map(device_list).transpose()?.unwrap_or_default();
    let flags = attrs.be32(NFTA_FLOWTABLE_FLAGS)?.unwrap_or(0);
    if flags & !3 != 0 {
        return refuse(EOPNOTSUPP);
    }
    if let Some(held) = table.flowtables.iter_mut().find(|flowtable| flowtable.name == name) {
        if request.flags.contains(Flags::EXCL) {
            return Err(refusal(EEXIST).at(attrs.get(NFTA_FLOWTABLE_NAME)));
        }
        if held.flags != flags {
            return refuse(EOPNOTSUPP);
        }
        held.devices.extend(devices);
        held.devices.sort();
        held.devices.dedup();
        work.changes += 1;
        return Ok(());
    }
    let (Some(number), Some(priority)) =
        (hook.be32(NFTA_FLOWTABLE_HOOK_NUM)?, hook.be32(NFTA_FLOWTABLE_HOOK_PRIORITY)?)
    else {
        return refuse(EINVAL);
    };
    if number != INGRESS {
        return refuse(EOPNOTSUPP);
    }
    let handle = table.next_handle();
    table.flowtables.push(Flowtable {
        name,
        handle,
        uses: 0,
        hook: number,
        priority: priority.cast_signed(),
        flags,
        devices,
    });
    work.changes += 1;
    Ok(())
}

/// `NFT_MSG_DELFLOWTABLE`, `NFT_MSG_DESTROYFLOWTABLE`
pub(super) fn delete_flowtable(work: &mut Work, request: &Request<'_>) -> Done {
    let attrs = &request.attrs;
    if !attrs.has(NFTA_FLOWTABLE_NAME) && !attrs.has(NFTA_FLOWTABLE_HANDLE) {
        return refuse(EINVAL);
    }
    let table = work.state.table(request.family, attrs, NFTA_FLOWTABLE_TABLE)?;
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
    if held.uses > 0 {
        return Err(refusal(EBUSY).at(attrs.get(kind)));
    }
    let handle = held.handle;
    table.flowtables.retain(|flowtable| flowtable.handle != handle);
    work.changes += 1;
    Ok(())
}

/// The data of an object as the kernel will show it.
fn configuration(kind: ObjectKind, data: &[u8]) -> Result<Vec<u8>, Refusal> {
    let name = match kind {
        ObjectKind::COUNTER => "counter",
        ObjectKind::QUOTA => "quota",
        ObjectKind::LIMIT => "limit",
        ObjectKind::SYNPROXY => "synproxy",
        _ => return Ok(data.to_vec()),
    };
    let mut expr = Expr::decode_bytes(name, data).map_err(|_| refusal(EINVAL))?;
    check_state(&expr)?;
    super::expression::complete(&mut expr);
    sluicegate_netlink::attr::encode(|w| expr.encode_data(w)).map_err(|_| refusal(EINVAL))
}

/// `NFT_OBJECT_SYNPROXY`, the last.
const SYNPROXY: u32 = 10;
/// `NF_NETDEV_INGRESS`
const INGRESS: u32 = 0;

pub(super) const NFTA_OBJ_TABLE: u16 = 1;
pub(super) const NFTA_OBJ_NAME: u16 = 2;
pub(super) const NFTA_OBJ_TYPE: u16 = 3;
pub(super) const NFTA_OBJ_DATA: u16 = 4;
pub(super) const NFTA_OBJ_USE: u16 = 5;
pub(super) const NFTA_OBJ_HANDLE: u16 = 6;
pub(super) const NFTA_OBJ_USERDATA: u16 = 8;
pub(super) const NFTA_FLOWTABLE_TABLE: u16 = 1;
pub(super) const NFTA_FLOWTABLE_NAME: u16 = 2;
pub(super) const NFTA_FLOWTABLE_HOOK: u16 = 3;
pub(super) const NFTA_FLOWTABLE_USE: u16 = 4;
pub(super) const NFTA_FLOWTABLE_HANDLE: u16 = 5;
pub(super) const NFTA_FLOWTABLE_FLAGS: u16 = 7;
pub(super) const NFTA_FLOWTABLE_HOOK_NUM: u16 = 1;
pub(super) const NFTA_FLOWTABLE_HOOK_PRIORITY: u16 = 2;
pub(super) const NFTA_FLOWTABLE_HOOK_DEVS: u16 = 3;
