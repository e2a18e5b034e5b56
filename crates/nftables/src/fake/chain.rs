//! Chains: hooks, policies, and what keeps one from being deleted.

use sluicegate_netlink::attr::Attribute;
use sluicegate_netlink::message::Flags;

use crate::Family;
use crate::fake::batch::Work;
use crate::fake::device::{self, Device};
use crate::fake::event::{Change, What};
use crate::fake::message::{
    Attrs, Done, EBUSY, EEXIST, EINVAL, ENOENT, EOPNOTSUPP, Refusal, Request, command, refusal, refuse,
};
use crate::fake::pending::Later;
use crate::fake::rule;
use crate::fake::state::{Base, Chain, Table};
use crate::name::Name;

/// `NFT_MSG_NEWCHAIN`
pub(super) fn add(work: &mut Work, request: &Request<'_>) -> Done {
    let attrs = &request.attrs;
    let table = work.state.table(request, NFTA_CHAIN_TABLE)?;
    let (attribute, held) = find(table, attrs)?;
    let base = held.and_then(|handle| table.chain(handle)).map(|chain| chain.base.is_some());
    let policy = attrs.be32(NFTA_CHAIN_POLICY)?;
    if policy.is_some() && !base.unwrap_or(attrs.has(NFTA_CHAIN_HOOK)) {
        return Err(refusal(EOPNOTSUPP).at(attrs.get(NFTA_CHAIN_POLICY)));
    }
    if policy.is_some_and(|policy| policy > ACCEPT) {
        return refuse(EINVAL);
    }
    let flags = attrs.be32(NFTA_CHAIN_FLAGS)?;
    if flags.is_some_and(|flags| flags & !(BASE | HW_OFFLOAD | BINDING) != 0) {
        return refuse(EOPNOTSUPP);
    }
    match held {
        Some(held) => {
            if table.chain(held).is_some_and(|chain| chain.flags & BINDING != 0) {
                return refuse(EINVAL);
            }
            if request.flags.contains(Flags::EXCL) {
                return Err(refusal(EEXIST).at(attribute));
            }
            if request.flags.contains(Flags::REPLACE) {
                return refuse(EOPNOTSUPP);
            }
            update(table, held, attrs, attribute, policy, flags)?;
        }
        None => {
            let flags = flags.unwrap_or(0);
            let handle = create(table, request.family, attrs, policy, flags)?;
            let of_devices = Family(table.family) == Family::NETDEV && flags & HW_OFFLOAD != 0;
            let table = table.handle;
            work.not_of_devices |= of_devices && policy == Some(DROP);
            if let Some(id) = attrs.be32(NFTA_CHAIN_ID)? {
                work.chain_ids.push((table, id, handle));
            }
        }
    }
    work.changes += 1;
    Ok(())
}

/// `NFT_MSG_DELCHAIN`, `NFT_MSG_DESTROYCHAIN`
pub(super) fn delete(work: &mut Work, request: &Request<'_>) -> Done {
    let attrs = &request.attrs;
    let table = work.state.table(request, NFTA_CHAIN_TABLE)?;
    let (attribute, found) = match attrs.be64(NFTA_CHAIN_HANDLE)? {
        Some(handle) => (attrs.get(NFTA_CHAIN_HANDLE), table.chain(handle).ok_or(refusal(ENOENT))),
        None => (attrs.get(NFTA_CHAIN_NAME), table.chain_named(attrs.get(NFTA_CHAIN_NAME))),
    };
    let chain = match found {
        Ok(chain) => chain,
        Err(Refusal { code: ENOENT, .. }) if request.command == command::DESTROYCHAIN => return Ok(()),
        Err(refusal) => return Err(refusal.at(attribute)),
    };
    if chain.flags & BINDING != 0 {
        return refuse(EOPNOTSUPP);
    }
    let handle = chain.handle;
    if attrs.has(NFTA_CHAIN_HOOK) {
        if request.command == command::DESTROYCHAIN {
            return refuse(EOPNOTSUPP);
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
        return refuse(EBUSY);
    }
    // Its own rules go first, and stay gone even where others keep the chain.
    let rules = chain.rules().count();
    let jumps = (chain.uses as usize).saturating_sub(rules);
    work.changes += rules + 1;
    rule::delete_all(table, handle, true)?;
    if jumps > 0 {
        return Err(refusal(EBUSY).at(attribute));
    }
    table.pending.chain |= table.chain(handle).is_some_and(|chain| chain.base.is_some());
    table.tell(Change::Gone, What::Chain(handle, None));
    table.remove_chain(handle);
    Ok(())
}

/// The chain that is meant, if there is one, and the attribute that says so.
fn find<'r, 'a>(
    table: &Table,
    attrs: &'r Attrs<'a>,
) -> Result<(Option<&'r Attribute<'a>>, Option<u64>), Refusal> {
    if let Some(handle) = attrs.be64(NFTA_CHAIN_HANDLE)? {
        let attribute = attrs.get(NFTA_CHAIN_HANDLE);
        let chain = table.chain(handle).ok_or(refusal(ENOENT).at(attribute))?;
        return Ok((attribute, Some(chain.handle)));
    }
    let attribute = attrs.get(NFTA_CHAIN_NAME);
    if attrs.name(NFTA_CHAIN_NAME)?.is_none() {
        return if attrs.has(NFTA_CHAIN_ID) { Ok((None, None)) } else { refuse(EINVAL) };
    }
    match table.chain_named(attribute) {
        Ok(chain) => Ok((attribute, Some(chain.handle))),
        Err(Refusal { code: ENOENT, .. }) => Ok((attribute, None)),
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
            return refuse(EINVAL);
        }
        if flags & BINDING != 0 {
            return refuse(EOPNOTSUPP);
        }
        let hook = hook_of(family, attrs)?;
        // Devices number what they do from 1 on.
        if flags & HW_OFFLOAD != 0 && !(1..=i32::from(u16::MAX)).contains(&hook.priority) {
            return refuse(EOPNOTSUPP);
        }
        base = Some(Base { policy: policy.unwrap_or(ACCEPT), ..hook });
    } else {
        if flags & BASE != 0 {
            return refuse(EINVAL);
        }
        if flags & HW_OFFLOAD != 0 {
            return refuse(EOPNOTSUPP);
        }
    }
    let handle = table.next_handle();
    let name = match attrs.name(NFTA_CHAIN_NAME)? {
        Some(name) => name,
        None if flags & BINDING != 0 => Name::held(&format!("__chain{handle}")),
        None => return refuse(EINVAL),
    };
    let flags = if base.is_some() { flags | BASE } else { flags };
    let user_data = attrs.bytes(NFTA_CHAIN_USERDATA);
    table.tell(Change::New, What::Chain(handle, None));
    table.add_chain(Chain { name, handle, base, flags, user_data, rules: Vec::new(), uses: 0, bound: false });
    Ok(handle)
}

/// A chain that is there: a policy, devices or a name may be given to it; all else has to be as it is.
fn update(
    table: &mut Table,
    handle: u64,
    attrs: &Attrs<'_>,
    attribute: Option<&Attribute<'_>>,
    policy: Option<u32>,
    flags: Option<u32>,
) -> Done {
    let (pending, family) = (table.pending.table, table.family);
    let Some(chain) = table.chain(handle) else { return refuse(ENOENT) };
    if flags.is_some_and(|flags| flags | (chain.flags & BASE) != chain.flags) {
        return refuse(EOPNOTSUPP);
    }
    let mut devices = Vec::new();
    if attrs.has(NFTA_CHAIN_HOOK) {
        let Some(base) = &chain.base else { return Err(refusal(EEXIST).at(attribute)) };
        let hook = hook_again(family, attrs, base)?;
        if hook.kind != base.kind {
            return Err(refusal(EEXIST).at(attribute));
        }
        let is_new = |device: &Device| !base.devices.iter().any(|held| held.is_same(device));
        devices = hook.devices.into_iter().filter(is_new).collect();
    }
    let rename = attrs.name(NFTA_CHAIN_NAME)?.filter(|_| attrs.has(NFTA_CHAIN_HANDLE));
    if let Some(name) = &rename
        && (table.has_chain(name) || table.pending.names.contains(name))
    {
        return Err(refusal(EEXIST).at(attrs.get(NFTA_CHAIN_NAME)));
    }
    if pending && !devices.is_empty() {
        return Err(refusal(EOPNOTSUPP).at(attribute));
    }
    let chain = table.chain_mut(handle)?;
    let new_devices = chain.base.is_some().then(|| devices.clone());
    if let Some(base) = &mut chain.base {
        base.devices.append(&mut devices);
    }
    table.pending.chain = true;
    if let Some(policy) = policy {
        table.later(Later::Policy { chain: handle, policy });
    }
    if let Some(name) = rename {
        table.later(Later::Rename { chain: handle, name });
    }
    table.tell(Change::New, What::Chain(handle, new_devices));
    Ok(())
}

fn delete_devices(table: &mut Table, handle: u64, attrs: &Attrs<'_>) -> Done {
    if table.pending.table {
        return refuse(EOPNOTSUPP);
    }
    let family = table.family;
    let chain = table.chain_mut(handle)?;
    let Some(base) = &mut chain.base else { return Ok(()) };
    let hook = hook_again(family, attrs, base)?;
    let gone = device::remove(&mut base.devices, &hook.devices).ok_or(refusal(ENOENT))?;
    table.tell(Change::Gone, What::Chain(handle, Some(gone)));
    Ok(())
}

/// What a new base chain says of its hook.
fn hook_of(family: u8, attrs: &Attrs<'_>) -> Result<Base, Refusal> {
    let hook = Attrs::nested(attrs.get(NFTA_CHAIN_HOOK))?;
    let (Some(number), Some(priority)) = (hook.be32(NFTA_HOOK_HOOKNUM)?, hook.be32(NFTA_HOOK_PRIORITY)?)
    else {
        return Err(refusal(ENOENT).at(attrs.get(NFTA_CHAIN_NAME)));
    };
    let kind = kind_of(family, attrs)?.unwrap_or(Name::held("filter"));
    let hooks = hooks(Family(family), kind.as_str());
    if !hooks.contains(&number) {
        return refuse(EOPNOTSUPP);
    }
    let priority = priority.cast_signed();
    // A nat chain cannot come before connections are known (`NF_IP_PRI_CONNTRACK`).
    if kind.as_str() == "nat" && priority <= -200 {
        return refuse(EOPNOTSUPP);
    }
    let devices = devices_of(family, number, &hook)?;
    Ok(Base { kind, hook: number, priority, policy: ACCEPT, devices })
}

/// What is said of the hook of a chain that is there.
fn hook_again(family: u8, attrs: &Attrs<'_>, base: &Base) -> Result<Base, Refusal> {
    let hook = Attrs::nested(attrs.get(NFTA_CHAIN_HOOK))?;
    let number = hook.be32(NFTA_HOOK_HOOKNUM)?.unwrap_or(base.hook);
    let priority = hook.be32(NFTA_HOOK_PRIORITY)?.map_or(base.priority, u32::cast_signed);
    if number != base.hook || priority != base.priority {
        return refuse(EOPNOTSUPP);
    }
    let kind = kind_of(family, attrs)?.unwrap_or_else(|| base.kind.clone());
    let devices = devices_of(family, number, &hook)?;
    Ok(Base { kind, hook: number, priority, policy: base.policy, devices })
}

/// The type, where one is given; it has to exist in the family.
fn kind_of(family: u8, attrs: &Attrs<'_>) -> Result<Option<Name>, Refusal> {
    let Some(kind) = attrs.name(NFTA_CHAIN_TYPE)? else { return Ok(None) };
    if hooks(Family(family), kind.as_str()).is_empty() {
        return Err(refusal(ENOENT).at(attrs.get(NFTA_CHAIN_TYPE)));
    }
    Ok(Some(kind))
}

fn devices_of(family: u8, number: u32, hook: &Attrs<'_>) -> Result<Vec<Device>, Refusal> {
    let (one, several) = (hook.get(NFTA_HOOK_DEV), hook.get(NFTA_HOOK_DEVS));
    if !is_of_device(family, number) {
        return if one.is_some() || several.is_some() { refuse(EOPNOTSUPP) } else { Ok(Vec::new()) };
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

/// The hooks of a type of chains in a family; none where there is no such type.
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
pub(super) const BASE: u32 = 1;
/// `NFT_CHAIN_HW_OFFLOAD`
pub(super) const HW_OFFLOAD: u32 = 2;
/// `NFT_CHAIN_BINDING`
pub(super) const BINDING: u32 = 4;

pub(super) const NFTA_CHAIN_TABLE: u16 = 1;
pub(super) const NFTA_CHAIN_HANDLE: u16 = 2;
pub(super) const NFTA_CHAIN_NAME: u16 = 3;
pub(super) const NFTA_CHAIN_HOOK: u16 = 4;
pub(super) const NFTA_CHAIN_POLICY: u16 = 5;
pub(super) const NFTA_CHAIN_USE: u16 = 6;
pub(super) const NFTA_CHAIN_TYPE: u16 = 7;
pub(super) const NFTA_CHAIN_FLAGS: u16 = 10;
const NFTA_CHAIN_ID: u16 = 11;
pub(super) const NFTA_CHAIN_USERDATA: u16 = 12;
pub(super) const NFTA_HOOK_HOOKNUM: u16 = 1;
pub(super) const NFTA_HOOK_PRIORITY: u16 = 2;
pub(super) const NFTA_HOOK_DEV: u16 = 3;
pub(super) const NFTA_HOOK_DEVS: u16 = 4;
