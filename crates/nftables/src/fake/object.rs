//! Stateful objects: what is named in a table and referred to by rules and elements.

use sluicegate_netlink::attr::{self, Attributes, Writer};
use sluicegate_netlink::message::Flags;

use crate::expr::{Expr, ObjectKind, Quota};
use crate::fake::batch::Work;
use crate::fake::complete::{complete, shown};
use crate::fake::conntrack;
use crate::fake::demand;
use crate::fake::event::{Change, What};
use crate::fake::message::{
    Attrs, Done, EBUSY, EEXIST, EINVAL, ENOENT, EOPNOTSUPP, ERANGE, Refusal, Request, command, refusal,
    refuse,
};
use crate::fake::pending::Later;
use crate::fake::state::Object;
use crate::family::Family;
use crate::object::{Tunnel, TunnelOptions};

/// `NFT_MSG_NEWOBJ`
pub(super) fn add(work: &mut Work, request: &Request<'_>) -> Done {
    let attrs = &request.attrs;
    let kind = attrs.be32(NFTA_OBJ_TYPE)?.ok_or(refusal(EINVAL))?;
    let name = attrs.name(NFTA_OBJ_NAME)?.ok_or(refusal(EINVAL))?;
    let data = attrs.need(NFTA_OBJ_DATA)?.payload;
    let table = work.state.table(request, NFTA_OBJ_TABLE)?;
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
        let data = configuration(ObjectKind(kind), Family(table.family), data)?;
        table.later(Later::Object { object, data });
        table.tell(Change::New, What::Object(object));
        work.changes += 1;
        return Ok(());
    }
    // Tunnels are of tables of family netdev alone.
    let of_family = ObjectKind(kind) != ObjectKind::TUNNEL || Family(table.family) == Family::NETDEV;
    if !(1..=SYNPROXY).contains(&kind) || !of_family {
        return refuse(ENOENT);
    }
    let data = configuration(ObjectKind(kind), Family(table.family), data)?;
    let handle = table.next_handle();
    let user_data = attrs.bytes(NFTA_OBJ_USERDATA);
    table.objects.push(Object { name, kind, handle, uses: 0, data, user_data });
    table.tell(Change::New, What::Object(handle));
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
    let table = work.state.table(request, NFTA_OBJ_TABLE)?;
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
    table.tell(Change::Gone, What::Object(handle));
    let gone = table.objects.extract_if(.., |object| object.handle == handle).collect::<Vec<_>>();
    table.pending.gone.objects.extend(gone);
    work.changes += 1;
    Ok(())
}

/// The data of an object as the kernel will show it.
fn configuration(kind: ObjectKind, family: Family, data: &[u8]) -> Result<Vec<u8>, Refusal> {
    let Some(name) = state_of(kind) else {
        let attrs = Attrs::read(Attributes::new(data))?;
        if let Some(shown) = conntrack::shown(kind, family, &attrs) {
            return shown;
        }
        return match kind {
            ObjectKind::TUNNEL => {
                let tunnel = Tunnel::decode(data).ok_or(refusal(EINVAL))?;
                check_tunnel(&tunnel)?;
                let data = attr::encode(|w| tunnel.encode(w)).map_err(|_| refusal(EINVAL))?;
                unmarked(&data, tunnel.options.is_none())
            }
            _ => Ok(data.to_vec()),
        };
    };
    let mut expr = Expr::decode_bytes(name, data).map_err(|_| refusal(EINVAL))?;
    demand::object(family, &expr)?;
    complete(&mut expr, family);
    attr::encode(|w| write_state(&expr, w)).map_err(|_| refusal(EINVAL))
}

fn check_tunnel(tunnel: &Tunnel) -> Done {
    // NFT_TUNNEL_F_MASK
    if tunnel.flags.bits() > 7 {
        return refuse(EOPNOTSUPP);
    }
    let Some(TunnelOptions::Geneve(options)) = &tunnel.options else { return Ok(()) };
    match options.iter().map(|option| option.data.len()).find(|len| *len > MAX_OPTION || len % 4 != 0) {
        Some(len) if len > MAX_OPTION => refuse(ERANGE),
        Some(_) => refuse(EINVAL),
        None => Ok(()),
    }
}

/// A tunnel as the kernel shows it: nests do not say that they are nests, and there is one for options even where there are none.
fn unmarked(data: &[u8], no_options: bool) -> Result<Vec<u8>, Refusal> {
    let mut plain = Vec::new();
    for attribute in Attributes::new(data) {
        let attribute = attribute.map_err(|_| refusal(EINVAL))?;
        let payload = match attribute.nested {
            true => unmarked(attribute.payload, false)?,
            false => attribute.payload.to_vec(),
        };
        plain.push((attribute.kind, payload));
    }
    if no_options {
        plain.push((NFTA_TUNNEL_KEY_OPTS, Vec::new()));
    }
    attr::encode(|w| plain.iter().for_each(|(kind, payload)| w.put(*kind, payload)))
        .map_err(|_| refusal(EINVAL))
}

/// Gives an object other settings. What a quota has counted stays.
pub(super) fn update(object: &mut Object, data: Vec<u8>) {
    let quota = |data: &[u8]| match Expr::decode_bytes("quota", data) {
        Ok(Expr::Quota(quota)) if ObjectKind(object.kind) == ObjectKind::QUOTA => Some(quota),
        _ => None,
    };
    object.data = match (quota(&object.data), quota(&data)) {
        (Some(held), Some(new)) => {
            let expr = Expr::Quota(Quota { consumed: held.consumed, ..new });
            attr::encode(|w| write_state(&expr, w)).unwrap_or(data)
        }
        _ => data,
    };
}

/// The data of an object as it is shown.
pub(super) fn write_data(object: &Object, w: &mut Writer<'_>) {
    let quota = || Expr::decode_bytes("quota", &object.data).ok();
    match quota().filter(|_| ObjectKind(object.kind) == ObjectKind::QUOTA) {
        Some(quota) => write_state(&shown(&quota), w),
        None => w.raw(&object.data),
    }
}

/// Sets an object that counts back.
pub(super) fn reset_state(kind: ObjectKind, data: &mut Vec<u8>) {
    let Some(mut expr) = state_of(kind).and_then(|name| Expr::decode_bytes(name, data).ok()) else { return };
    super::reset::one(&mut expr);
    if let Ok(reset) = attr::encode(|w| write_state(&expr, w)) {
        *data = reset;
    }
}

/// The expression that has the same state as an object of this kind.
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

/// The attributes of an object's state in the kernel's order.
fn write_state(expr: &Expr, w: &mut Writer<'_>) {
    let Expr::Quota(quota) = expr else { return expr.encode_data(w) };
    w.put_be64(NFTA_QUOTA_BYTES, quota.bytes);
    w.put_be64(NFTA_QUOTA_CONSUMED, quota.consumed.unwrap_or(0));
    w.put_be32(NFTA_QUOTA_FLAGS, quota.flags.unwrap_or_default().bits());
}

/// Bytes of an option of GENEVE that the kernel's policy lets pass.
const MAX_OPTION: usize = 127;
/// `NFT_OBJECT_SYNPROXY`, the last.
const SYNPROXY: u32 = 10;
const NFTA_QUOTA_BYTES: u16 = 1;
const NFTA_QUOTA_FLAGS: u16 = 2;
const NFTA_QUOTA_CONSUMED: u16 = 4;
const NFTA_TUNNEL_KEY_OPTS: u16 = 9;
pub(super) const NFTA_OBJ_TABLE: u16 = 1;
pub(super) const NFTA_OBJ_NAME: u16 = 2;
pub(super) const NFTA_OBJ_TYPE: u16 = 3;
pub(super) const NFTA_OBJ_DATA: u16 = 4;
pub(super) const NFTA_OBJ_USE: u16 = 5;
pub(super) const NFTA_OBJ_HANDLE: u16 = 6;
pub(super) const NFTA_OBJ_USERDATA: u16 = 8;
