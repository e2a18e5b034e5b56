//! Chains: their hooks and policies, and what prevents their deletion.

use sluicegate_netlink::Errno;
use sluicegate_netlink::attr::Attribute;
use sluicegate_netlink::message::Flags;

use crate::Family;
use crate::fake::batch::Work;
use crate::fake::device::{self, Device};
use crate::fake::event::{Change, Subject};
use crate::fake::message::{Attrs, Done, Refusal, Request, refusal, refuse};
use crate::fake::pending::Deferred;
use crate::fake::rule;
use crate::fake::state::{Base, Chain, Table};
use crate::name::Name;
use crate::object::chain::wire::*;
use crate::wire::message::*;

/// Handles `NFT_MSG_NEWCHAIN`.
pub(super) fn add(work: &mut Work, request: &Request<'_>) -> Done {
    let attrs = &request.attrs;
    let table = work.state.table(request, NFTA_CHAIN_TABLE)?;
    let (attribute, existing) = find(table, attrs)?;
    let base = existing.and_then(|handle| table.chain(handle)).map(|chain| chain.base.is_some());
    let policy = attrs.be32(NFTA_CHAIN_POLICY)?;
    if policy.is_some() && !base.unwrap_or(attrs.has(NFTA_CHAIN_HOOK)) {
        return Err(refusal(Errno::EOPNOTSUPP).at(attrs.get(NFTA_CHAIN_POLICY)));
    }
    if policy.is_some_and(|policy| policy > ACCEPT) {
        return refuse(Errno::EINVAL);
    }
    let flags = attrs.be32(NFTA_CHAIN_FLAGS)?;
    if flags.is_some_and(|flags| flags & !(BASE | HW_OFFLOAD | BINDING) != 0) {
        return refuse(Errno::EOPNOTSUPP);
    }
    match existing {
        Some(existing) => {
            if table.chain(existing).is_some_and(|chain| chain.flags & BINDING != 0) {
                return refuse(Errno::EINVAL);
            }
            if request.flags.contains(Flags::EXCL) {
                return Err(refusal(Errno::EEXIST).at(attribute));
            }
            if request.flags.contains(Flags::REPLACE) {
                return refuse(Errno::EOPNOTSUPP);
            }
            update(table, existing, attrs, attribute, policy, flags)?;
        }
        None => {
            let flags = flags.unwrap_or(0);
            let handle = create(table, request.family, attrs, policy, flags)?;
            let of_devices = Family(table.family) == Family::NETDEV && flags & HW_OFFLOAD != 0;
            let table = table.handle;
            work.offload_fails |= of_devices && policy == Some(DROP);
            if let Some(id) = attrs.be32(NFTA_CHAIN_ID)? {
                work.chain_ids.push((table, id, handle));
            }
        }
    }
    work.changes += 1;
    Ok(())
}

/// Handles `NFT_MSG_DELCHAIN` and `NFT_MSG_DESTROYCHAIN`.
pub(super) fn delete(work: &mut Work, request: &Request<'_>) -> Done {
    let attrs = &request.attrs;
    let table = work.state.table(request, NFTA_CHAIN_TABLE)?;
    let (attribute, found) = match attrs.be64(NFTA_CHAIN_HANDLE)? {
        Some(handle) => (attrs.get(NFTA_CHAIN_HANDLE), table.chain(handle).ok_or(refusal(Errno::ENOENT))),
        None => (attrs.get(NFTA_CHAIN_NAME), table.chain_named(attrs.get(NFTA_CHAIN_NAME))),
    };
    let chain = match found {
        Ok(chain) => chain,
        Err(Refusal { errno: Errno::ENOENT, .. }) if request.command == NFT_MSG_DESTROYCHAIN => {
            return Ok(());
        }
        Err(refusal) => return Err(refusal.at(attribute)),
    };
    if chain.flags & BINDING != 0 {
        return refuse(Errno::EOPNOTSUPP);
    }
    let handle = chain.handle;
    if attrs.has(NFTA_CHAIN_HOOK) {
        if request.command == NFT_MSG_DESTROYCHAIN {
            return refuse(Errno::EOPNOTSUPP);
        }
        if let Some(base) = &chain.base
            && is_of_device(request.family, base.hook)
        {
            delete_devices(table, handle, attrs)?;
            work.changes += 1;
            return Ok(());
        }
    }
    if request.flags.contains(Flags::NONREC) && chain.uses > 0 {
        return refuse(Errno::EBUSY);
    }
    // The rules are deleted first, and the deletion is not undone if other references keep the chain.
    let rules = chain.rules().count();
    let jumps = (chain.uses as usize).saturating_sub(rules);
    work.changes += rules + 1;
    rule::delete_all(table, handle, true)?;
    if jumps > 0 {
        return Err(refusal(Errno::EBUSY).at(attribute));
    }
    table.pending.chain |= table.chain(handle).is_some_and(|chain| chain.base.is_some());
    table.record(Change::Deleted, Subject::Chain(handle, None));
    table.remove_chain(handle);
    Ok(())
}

/// Returns the chain that a request names, if it exists, and the attribute that names it.
fn find<'r, 'a>(
    table: &Table,
    attrs: &'r Attrs<'a>,
) -> Result<(Option<&'r Attribute<'a>>, Option<u64>), Refusal> {
    if let Some(handle) = attrs.be64(NFTA_CHAIN_HANDLE)? {
        let attribute = attrs.get(NFTA_CHAIN_HANDLE);
        let chain = table.chain(handle).ok_or(refusal(Errno::ENOENT).at(attribute))?;
        return Ok((attribute, Some(chain.handle)));
    }
    let attribute = attrs.get(NFTA_CHAIN_NAME);
    if attrs.name(NFTA_CHAIN_NAME)?.is_none() {
        return if attrs.has(NFTA_CHAIN_ID) { Ok((None, None)) } else { refuse(Errno::EINVAL) };
    }
    match table.chain_named(attribute) {
        Ok(chain) => Ok((attribute, Some(chain.handle))),
        Err(Refusal { errno: Errno::ENOENT, .. }) => Ok((attribute, None)),
        Err(refusal) => Err(refusal.at(attribute)),
    }
}

fn create(
    table: &mut Table,
    family: u8,
    attrs: &Attrs<'_>,
    policy: Option<u32>,
    flags: u32,
) -> Result<u64, Refusal> {
    let mut base = None;
    if attrs.has(NFTA_CHAIN_HOOK) {
        if table.pending.table {
            return refuse(Errno::EINVAL);
        }
        if flags & BINDING != 0 {
            return refuse(Errno::EOPNOTSUPP);
        }
        let hook = hook_of(family, attrs)?;
        // Drivers number priorities from 1 on.
        if flags & HW_OFFLOAD != 0 && !(1..=i32::from(u16::MAX)).contains(&hook.priority) {
            return refuse(Errno::EOPNOTSUPP);
        }
        base = Some(Base { policy: policy.unwrap_or(ACCEPT), ..hook });
    } else {
        if flags & BASE != 0 {
            return refuse(Errno::EINVAL);
        }
        if flags & HW_OFFLOAD != 0 {
            return refuse(Errno::EOPNOTSUPP);
        }
    }
    let handle = table.next_handle();
    let name = match attrs.name(NFTA_CHAIN_NAME)? {
        Some(name) => name,
        None if flags & BINDING != 0 => Name::from_kernel(&format!("__chain{handle}")),
        None => return refuse(Errno::EINVAL),
    };
    let flags = if base.is_some() { flags | BASE } else { flags };
    let user_data = attrs.bytes(NFTA_CHAIN_USERDATA);
    table.record(Change::New, Subject::Chain(handle, None));
    table.add_chain(Chain { name, handle, base, flags, user_data, rules: Vec::new(), uses: 0, bound: false });
    Ok(handle)
}

/// Updates an existing chain with a policy, devices or a name; everything else has to match.
fn update(
    table: &mut Table,
    handle: u64,
    attrs: &Attrs<'_>,
    attribute: Option<&Attribute<'_>>,
    policy: Option<u32>,
    flags: Option<u32>,
) -> Done {
    let (pending, family) = (table.pending.table, table.family);
    let Some(chain) = table.chain(handle) else { return refuse(Errno::ENOENT) };
    if flags.is_some_and(|flags| flags | (chain.flags & BASE) != chain.flags) {
        return refuse(Errno::EOPNOTSUPP);
    }
    let mut devices = Vec::new();
    if attrs.has(NFTA_CHAIN_HOOK) {
        let Some(base) = &chain.base else { return Err(refusal(Errno::EEXIST).at(attribute)) };
        let hook = existing_hook(family, attrs, base)?;
        if hook.kind != base.kind {
            return Err(refusal(Errno::EEXIST).at(attribute));
        }
        let is_new = |device: &Device| !base.devices.iter().any(|existing| existing.is_same(device));
        devices = hook.devices.into_iter().filter(is_new).collect();
    }
    let rename = attrs.name(NFTA_CHAIN_NAME)?.filter(|_| attrs.has(NFTA_CHAIN_HANDLE));
    if let Some(name) = &rename
        && (table.has_chain(name) || table.pending.names.contains(name))
    {
        return Err(refusal(Errno::EEXIST).at(attrs.get(NFTA_CHAIN_NAME)));
    }
    if pending && !devices.is_empty() {
        return Err(refusal(Errno::EOPNOTSUPP).at(attribute));
    }
    let chain = table.chain_mut(handle)?;
    let new_devices = chain.base.is_some().then(|| devices.clone());
    if let Some(base) = &mut chain.base {
        base.devices.append(&mut devices);
    }
    table.pending.chain = true;
    if let Some(policy) = policy {
        table.defer(Deferred::Policy { chain: handle, policy });
    }
    if let Some(name) = rename {
        table.defer(Deferred::Rename { chain: handle, name });
    }
    table.record(Change::New, Subject::Chain(handle, new_devices));
    Ok(())
}

fn delete_devices(table: &mut Table, handle: u64, attrs: &Attrs<'_>) -> Done {
    if table.pending.table {
        return refuse(Errno::EOPNOTSUPP);
    }
    let family = table.family;
    let chain = table.chain_mut(handle)?;
    let Some(base) = &mut chain.base else { return Ok(()) };
    let hook = existing_hook(family, attrs, base)?;
    let removed = device::remove(&mut base.devices, &hook.devices).ok_or(refusal(Errno::ENOENT))?;
    table.record(Change::Deleted, Subject::Chain(handle, Some(removed)));
    Ok(())
}

/// Decodes the hook of a new base chain.
fn hook_of(family: u8, attrs: &Attrs<'_>) -> Result<Base, Refusal> {
    let hook = Attrs::nested(attrs.get(NFTA_CHAIN_HOOK))?;
    let (Some(number), Some(priority)) = (hook.be32(NFTA_HOOK_HOOKNUM)?, hook.be32(NFTA_HOOK_PRIORITY)?)
    else {
        return Err(refusal(Errno::ENOENT).at(attrs.get(NFTA_CHAIN_NAME)));
    };
    let kind = kind_of(family, attrs)?.unwrap_or(Name::from_kernel("filter"));
    let hooks = hooks(Family(family), kind.as_str());
    if !hooks.contains(&number) {
        return refuse(Errno::EOPNOTSUPP);
    }
    let priority = priority.cast_signed();
    // Translation needs the connection, which exists only after `NF_IP_PRI_CONNTRACK`.
    if kind.as_str() == "nat" && priority <= -200 {
        return refuse(Errno::EOPNOTSUPP);
    }
    let devices = devices_of(family, number, &hook)?;
    Ok(Base { kind, hook: number, priority, policy: ACCEPT, devices })
}

/// Decodes the hook in a request for a chain that exists already.
fn existing_hook(family: u8, attrs: &Attrs<'_>, base: &Base) -> Result<Base, Refusal> {
    let hook = Attrs::nested(attrs.get(NFTA_CHAIN_HOOK))?;
    let number = hook.be32(NFTA_HOOK_HOOKNUM)?.unwrap_or(base.hook);
    let priority = hook.be32(NFTA_HOOK_PRIORITY)?.map_or(base.priority, u32::cast_signed);
    if number != base.hook || priority != base.priority {
        return refuse(Errno::EOPNOTSUPP);
    }
    let kind = kind_of(family, attrs)?.unwrap_or_else(|| base.kind.clone());
    let devices = devices_of(family, number, &hook)?;
    Ok(Base { kind, hook: number, priority, policy: base.policy, devices })
}

/// Returns the chain type if one is given; it has to exist in the family.
fn kind_of(family: u8, attrs: &Attrs<'_>) -> Result<Option<Name>, Refusal> {
    let Some(kind) = attrs.name(NFTA_CHAIN_TYPE)? else { return Ok(None) };
    if hooks(Family(family), kind.as_str()).is_empty() {
        return Err(refusal(Errno::ENOENT).at(attrs.get(NFTA_CHAIN_TYPE)));
    }
    Ok(Some(kind))
}

fn devices_of(family: u8, number: u32, hook: &Attrs<'_>) -> Result<Vec<Device>, Refusal> {
    let (one, several) = (hook.get(NFTA_HOOK_DEV), hook.get(NFTA_HOOK_DEVS));
    if !is_of_device(family, number) {
        return if one.is_some() || several.is_some() { refuse(Errno::EOPNOTSUPP) } else { Ok(Vec::new()) };
    }
    match (one, several) {
        (Some(one), _) => Ok(vec![Device::read(one, false)?]),
        (None, Some(list)) => device::list(list),
        (None, None) => Ok(Vec::new()),
    }
}

fn is_of_device(family: u8, hook: u32) -> bool {
    Family(family) == Family::NETDEV || (Family(family) == Family::INET && hook == INET_INGRESS)
}

/// Returns the hooks of a chain type in a family; none if there is no such type.
fn hooks(family: Family, kind: &str) -> &'static [u32] {
    match (family, kind) {
        (Family::IP | Family::IP6 | Family::BRIDGE, "filter") => &[0, 1, 2, 3, 4],
        (Family::INET, "filter") => &[0, 1, 2, 3, 4, INET_INGRESS],
        (Family::ARP | Family::NETDEV, "filter") => &[0, 1],
        (Family::IP | Family::IP6 | Family::INET, "nat") => &[0, 1, 3, 4],
        (Family::IP | Family::IP6 | Family::INET, "route") => &[3],
        _ => &[],
    }
}

/// `NF_ACCEPT`
const ACCEPT: u32 = 1;
/// `NF_DROP`
const DROP: u32 = 0;
/// `NF_INET_INGRESS`
const INET_INGRESS: u32 = 5;
/// `NFT_CHAIN_BASE`
pub(super) const BASE: u32 = ChainFlags::BASE.bits();
/// `NFT_CHAIN_HW_OFFLOAD`
pub(super) const HW_OFFLOAD: u32 = ChainFlags::HW_OFFLOAD.bits();
/// `NFT_CHAIN_BINDING`
pub(super) const BINDING: u32 = ChainFlags::BINDING.bits();
