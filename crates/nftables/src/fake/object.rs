//! Stateful objects: defined by name in a table, and used by rules and elements.

use sluicegate_netlink::Errno;
use sluicegate_netlink::attr::{self, Attributes, Writer};
use sluicegate_netlink::message::Flags;

use crate::expr::complete::{as_listed, complete};
use crate::expr::wire::*;
use crate::expr::{Expr, ObjectKind, Quota};
use crate::fake::batch::Work;
use crate::fake::conntrack;
use crate::fake::event::{Change, Subject};
use crate::fake::message::{Attrs, Done, Refusal, Request, refusal, refuse};
use crate::fake::pending::Deferred;
use crate::fake::state::Object;
use crate::fake::validate;
use crate::family::Family;
use crate::object::stateful::tunnel::*;
use crate::object::stateful::wire::*;
use crate::object::{Tunnel, TunnelOptions};
use crate::wire::message::*;

/// Handles `NFT_MSG_NEWOBJ`.
pub(super) fn add(work: &mut Work, request: &Request<'_>) -> Done {
    let attrs = &request.attrs;
    let kind = attrs.be32(NFTA_OBJ_TYPE)?.ok_or(refusal(Errno::EINVAL))?;
    let name = attrs.name(NFTA_OBJ_NAME)?.ok_or(refusal(Errno::EINVAL))?;
    let data = attrs.need(NFTA_OBJ_DATA)?.payload;
    let table = work.state.table(request, NFTA_OBJ_TABLE)?;
    if let Ok(existing) = table.object_named(kind, attrs.get(NFTA_OBJ_NAME)) {
        if request.flags.contains(Flags::EXCL) {
            return Err(refusal(Errno::EEXIST).at(attrs.get(NFTA_OBJ_NAME)));
        }
        if request.flags.contains(Flags::REPLACE) {
            return refuse(Errno::EOPNOTSUPP);
        }
        // The kernel accepts an update of any other kind without doing anything.
        if !matches!(ObjectKind(kind), ObjectKind::QUOTA | ObjectKind::SYNPROXY) {
            return Ok(());
        }
        let object = existing.handle;
        let data = configuration(ObjectKind(kind), Family(table.family), data)?;
        table.defer(Deferred::Object { object, data });
        table.record(Change::New, Subject::Object(object));
        work.changes += 1;
        return Ok(());
    }
    // The kernel has tunnel objects in tables of family netdev only.
    let of_family = ObjectKind(kind) != ObjectKind::TUNNEL || Family(table.family) == Family::NETDEV;
    if !(1..=SYNPROXY).contains(&kind) || !of_family {
        return refuse(Errno::ENOENT);
    }
    let data = configuration(ObjectKind(kind), Family(table.family), data)?;
    let handle = table.next_handle();
    let user_data = attrs.bytes(NFTA_OBJ_USERDATA);
    table.objects.push(Object { name, kind, handle, uses: 0, data, user_data });
    table.record(Change::New, Subject::Object(handle));
    work.changes += 1;
    Ok(())
}

/// Handles `NFT_MSG_DELOBJ` and `NFT_MSG_DESTROYOBJ`.
pub(super) fn delete(work: &mut Work, request: &Request<'_>) -> Done {
    let attrs = &request.attrs;
    let kind = attrs.be32(NFTA_OBJ_TYPE)?.ok_or(refusal(Errno::EINVAL))?;
    if !attrs.has(NFTA_OBJ_NAME) && !attrs.has(NFTA_OBJ_HANDLE) {
        return refuse(Errno::EINVAL);
    }
    let table = work.state.table(request, NFTA_OBJ_TABLE)?;
    let (attribute, found) = match attrs.be64(NFTA_OBJ_HANDLE)? {
        Some(handle) => {
            let found = table.objects.iter().find(|o| o.handle == handle && o.kind == kind);
            (attrs.get(NFTA_OBJ_HANDLE), found.ok_or(refusal(Errno::ENOENT)))
        }
        None => (attrs.get(NFTA_OBJ_NAME), table.object_named(kind, attrs.get(NFTA_OBJ_NAME))),
    };
    let object = match found {
        Ok(object) => object,
        Err(Refusal { errno: Errno::ENOENT, .. }) if request.command == NFT_MSG_DESTROYOBJ => return Ok(()),
        Err(refusal) => return Err(refusal.at(attribute)),
    };
    if object.uses > 0 {
        return Err(refusal(Errno::EBUSY).at(attribute));
    }
    let handle = object.handle;
    table.record(Change::Deleted, Subject::Object(handle));
    let deleted = table.objects.extract_if(.., |object| object.handle == handle).collect::<Vec<_>>();
    table.pending.deleted.objects.extend(deleted);
    work.changes += 1;
    Ok(())
}

/// Returns the data of an object as the kernel lists them.
fn configuration(kind: ObjectKind, family: Family, data: &[u8]) -> Result<Vec<u8>, Refusal> {
    let Some(name) = state_of(kind) else {
        let attrs = Attrs::read(Attributes::new(data))?;
        if let Some(data) = conntrack::listed_data(kind, family, &attrs) {
            return data;
        }
        return match kind {
            ObjectKind::TUNNEL => {
                let tunnel = Tunnel::decode(data).ok_or(refusal(Errno::EINVAL))?;
                check_tunnel(&tunnel)?;
                let data = attr::encode(|w| tunnel.encode(w)).map_err(|_| refusal(Errno::EINVAL))?;
                listed_tunnel(&data, tunnel.options.is_none())
            }
            _ => Ok(data.to_vec()),
        };
    };
    let mut expr = Expr::decode_bytes(name, data).map_err(|_| refusal(Errno::EINVAL))?;
    validate::object(family, &expr)?;
    complete(&mut expr, family);
    attr::encode(|w| write_state(&expr, w)).map_err(|_| refusal(Errno::EINVAL))
}

fn check_tunnel(tunnel: &Tunnel) -> Done {
    // NFT_TUNNEL_F_MASK
    if tunnel.flags.bits() > 7 {
        return refuse(Errno::EOPNOTSUPP);
    }
    let Some(TunnelOptions::Geneve(options)) = &tunnel.options else { return Ok(()) };
    match options.iter().map(|option| option.data.len()).find(|len| *len > MAX_OPTION || len % 4 != 0) {
        Some(len) if len > MAX_OPTION => refuse(Errno::ERANGE),
        Some(_) => refuse(Errno::EINVAL),
        None => Ok(()),
    }
}

/// Returns the data of a tunnel as the kernel lists them: nests lack the nested flag, and there is an (empty)
/// nest for options even if none were given.
fn listed_tunnel(data: &[u8], no_options: bool) -> Result<Vec<u8>, Refusal> {
    let mut plain = Vec::new();
    for attribute in Attributes::new(data) {
        let attribute = attribute.map_err(|_| refusal(Errno::EINVAL))?;
        let payload = match attribute.nested {
            true => listed_tunnel(attribute.payload, false)?,
            false => attribute.payload.to_vec(),
        };
        plain.push((attribute.kind, payload));
    }
    if no_options {
        plain.push((NFTA_TUNNEL_KEY_OPTS, Vec::new()));
    }
    attr::encode(|w| plain.iter().for_each(|(kind, payload)| w.put(*kind, payload)))
        .map_err(|_| refusal(Errno::EINVAL))
}

/// Updates an object with new settings. A quota keeps what it has consumed.
pub(super) fn update(object: &mut Object, data: Vec<u8>) {
    let quota = |data: &[u8]| match Expr::decode_bytes("quota", data) {
        Ok(Expr::Quota(quota)) if ObjectKind(object.kind) == ObjectKind::QUOTA => Some(quota),
        _ => None,
    };
    object.data = match (quota(&object.data), quota(&data)) {
        (Some(existing), Some(new)) => {
            let expr = Expr::Quota(Quota { consumed: existing.consumed, ..new });
            attr::encode(|w| write_state(&expr, w)).unwrap_or(data)
        }
        _ => data,
    };
}

/// Appends the data of an object as the kernel lists it.
pub(super) fn write_data(object: &Object, w: &mut Writer<'_>) {
    let quota = || Expr::decode_bytes("quota", &object.data).ok();
    match quota().filter(|_| ObjectKind(object.kind) == ObjectKind::QUOTA) {
        Some(quota) => write_state(&as_listed(&quota), w),
        None => w.raw(&object.data),
    }
}

/// Resets the state of an object.
pub(super) fn reset_state(kind: ObjectKind, data: &mut Vec<u8>) {
    let Some(mut expr) = state_of(kind).and_then(|name| Expr::decode_bytes(name, data).ok()) else { return };
    super::reset::one(&mut expr);
    if let Ok(reset) = attr::encode(|w| write_state(&expr, w)) {
        *data = reset;
    }
}

/// Returns the name of the expression with the same state as an object of this kind.
fn state_of(kind: ObjectKind) -> Option<&'static str> {
    match kind {
        ObjectKind::COUNTER => Some("counter"),
        ObjectKind::QUOTA => Some("quota"),
        ObjectKind::LIMIT => Some("limit"),
        ObjectKind::CONNLIMIT => Some("connlimit"),
        ObjectKind::SYNPROXY => Some("synproxy"),
        _ => None,
    }
}

/// Appends the attributes of an object's state in the kernel's order.
fn write_state(expr: &Expr, w: &mut Writer<'_>) {
    let Expr::Quota(quota) = expr else { return expr.encode_data(w) };
    w.put_be64(NFTA_QUOTA_BYTES, quota.bytes);
    w.put_be64(NFTA_QUOTA_CONSUMED, quota.consumed.unwrap_or(0));
    w.put_be32(NFTA_QUOTA_FLAGS, quota.flags.unwrap_or_default().bits());
}

/// The maximum length of a GENEVE option that the kernel's policy accepts.
const MAX_OPTION: usize = 127;
/// `NFT_OBJECT_SYNPROXY`, the last kind.
const SYNPROXY: u32 = 10;
