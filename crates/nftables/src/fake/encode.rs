//! The attributes of each object in the fake kernel's dumps and events.

use sluicegate_netlink::attr::Writer;

use crate::expr::complete::as_listed;
use crate::expr::data::*;
use crate::expr::wire::*;
use crate::expr::{Data, Expr, VerdictCode};
use crate::fake::device::{self, Device};
use crate::fake::event;
use crate::fake::object::write_data;
use crate::fake::set::Set;
use crate::fake::state::{Chain, Flowtable, Object, Reference, Rule, Table};
use crate::fake::store::{Element, ElementData};
use crate::object::SetFlags;
use crate::object::chain::wire::*;
use crate::object::element::wire::*;
use crate::object::flowtable::wire::*;
use crate::object::generation::*;
use crate::object::rule::wire::*;
use crate::object::set::wire::*;
use crate::object::stateful::wire::*;
use crate::object::table::wire::*;
use crate::tree::Verdict;

pub(super) fn write_table(table: &Table, w: &mut Writer<'_>) {
    w.put_str(NFTA_TABLE_NAME, &table.name);
    w.put_be32(NFTA_TABLE_FLAGS, table.flags);
    w.put_be32(NFTA_TABLE_USE, number(table.uses()));
    w.put_be64(NFTA_TABLE_HANDLE, table.handle);
    if let Some(owner) = table.owner {
        w.put_be32(NFTA_TABLE_OWNER, owner);
    }
    put_some(w, NFTA_TABLE_USERDATA, &table.user_data);
}

pub(super) fn write_generation(generation: u32, process: &str, w: &mut Writer<'_>) {
    w.put_be32(NFTA_GEN_ID, generation);
    w.put_be32(NFTA_GEN_PROC_PID, std::process::id());
    w.put_str(NFTA_GEN_PROC_NAME, process);
}

/// Appends the attributes that the kernel reports for a deleted table.
pub(super) fn write_table_name(table: &Table, w: &mut Writer<'_>) {
    w.put_str(NFTA_TABLE_NAME, &table.name);
    w.put_be64(NFTA_TABLE_HANDLE, table.handle);
}

/// Appends the attributes of a chain, with all its devices or with these only.
pub(super) fn write_chain(table: &Table, chain: &Chain, devices: Option<&[Device]>, w: &mut Writer<'_>) {
    w.put_str(NFTA_CHAIN_TABLE, &table.name);
    w.put_be64(NFTA_CHAIN_HANDLE, chain.handle);
    w.put_str(NFTA_CHAIN_NAME, &chain.name);
    if let Some(base) = &chain.base {
        let mut hook = w.nest(NFTA_CHAIN_HOOK);
        hook.put_be32(NFTA_HOOK_HOOKNUM, base.hook);
        hook.put_be32(NFTA_HOOK_PRIORITY, base.priority.cast_unsigned());
        let devices = devices.unwrap_or(&base.devices);
        if !devices.is_empty() {
            if let Some(only) = device::only(devices) {
                hook.put_str(NFTA_HOOK_DEV, only);
            }
            device::write(devices, &mut hook.nest(NFTA_HOOK_DEVS));
        }
        drop(hook);
        w.put_be32(NFTA_CHAIN_POLICY, base.policy);
        w.put_str(NFTA_CHAIN_TYPE, &base.kind);
    }
    if chain.flags != 0 {
        w.put_be32(NFTA_CHAIN_FLAGS, chain.flags);
    }
    // The rule that owns an anonymous chain counts as a reference, beside the jump.
    w.put_be32(NFTA_CHAIN_USE, chain.uses + u32::from(chain.bound));
    put_some(w, NFTA_CHAIN_USERDATA, &chain.user_data);
}

pub(super) fn write_rule(table: &Table, chain: &Chain, rule: &Rule, before: Option<u64>, w: &mut Writer<'_>) {
    w.put_str(NFTA_RULE_TABLE, &table.name);
    w.put_str(NFTA_RULE_CHAIN, &chain.name);
    w.put_be64(NFTA_RULE_HANDLE, rule.handle);
    if let Some(before) = before {
        w.put_be64(NFTA_RULE_POSITION, before);
    }
    let mut list = w.nest(NFTA_RULE_EXPRESSIONS);
    for existing in &rule.exprs {
        // Names are looked up when the rule is listed: a chain may have been renamed, and an anonymous one
        // may be deleted in the transaction that the event reports.
        match (existing.refers, &existing.expr) {
            (Some(Reference::Chain(to)), Expr::Immediate(immediate)) => {
                let mut immediate = immediate.clone();
                let name = event::chain(table, to).map(|chain| chain.name.clone());
                match (&immediate.data, name) {
                    (Data::Verdict(Verdict::Jump(_)) | Data::ChainId(VerdictCode::JUMP, _), Some(name)) => {
                        immediate.data = Data::Verdict(Verdict::Jump(name));
                    }
                    (Data::Verdict(Verdict::Goto(_)) | Data::ChainId(VerdictCode::GOTO, _), Some(name)) => {
                        immediate.data = Data::Verdict(Verdict::Goto(name));
                    }
                    _ => {}
                }
                Expr::from(immediate).encode(&mut list, NFTA_LIST_ELEM);
            }
            (_, expr) => as_listed(expr).encode(&mut list, NFTA_LIST_ELEM),
        }
    }
    drop(list);
    put_some(w, NFTA_RULE_USERDATA, &rule.user_data);
}

pub(super) fn write_set(table: &Table, set: &Set, w: &mut Writer<'_>) {
    let shape = &set.shape;
    w.put_str(NFTA_SET_TABLE, &table.name);
    w.put_str(NFTA_SET_NAME, &set.name);
    w.put_be64(NFTA_SET_HANDLE, set.handle);
    if !shape.flags.is_empty() {
        w.put_be32(NFTA_SET_FLAGS, shape.flags.bits());
    }
    w.put_be32(NFTA_SET_KEY_TYPE, shape.key_type);
    w.put_be32(NFTA_SET_KEY_LEN, number(shape.key_len));
    if set.has(SetFlags::MAP) {
        w.put_be32(NFTA_SET_DATA_TYPE, shape.data_type);
        w.put_be32(NFTA_SET_DATA_LEN, number(shape.data_len));
    }
    if set.has(SetFlags::OBJECT) {
        w.put_be32(NFTA_SET_OBJ_TYPE, shape.object_kind);
    }
    if set.timeout > 0 {
        w.put_be64(NFTA_SET_TIMEOUT, set.timeout);
    }
    if set.gc_interval > 0 {
        w.put_be32(NFTA_SET_GC_INTERVAL, set.gc_interval);
    }
    if set.policy > 0 {
        w.put_be32(NFTA_SET_POLICY, set.policy);
    }
    put_some(w, NFTA_SET_USERDATA, &set.user_data);
    let mut description = w.nest(NFTA_SET_DESC);
    if set.size > 0 {
        description.put_be32(NFTA_SET_DESC_SIZE, set.user_size());
    }
    if shape.fields.len() > 1 {
        let mut concat = description.nest(NFTA_SET_DESC_CONCAT);
        for bytes in &shape.fields {
            concat.nest(NFTA_LIST_ELEM).put_be32(NFTA_SET_FIELD_LEN, *bytes);
        }
    }
    drop(description);
    w.put_be32(NFTA_SET_COUNT, number(set.store.count()));
    write_state(&shape.exprs, NFTA_SET_EXPR, NFTA_SET_EXPRESSIONS, w);
}

pub(super) fn write_element(table: &Table, set: &Set, element: &Element, w: &mut Writer<'_>) {
    if !element.is_catch_all() {
        w.nest(NFTA_SET_ELEM_KEY).put(NFTA_DATA_VALUE, &element.key);
    }
    if let Some(end) = &element.key_end {
        w.nest(NFTA_SET_ELEM_KEY_END).put(NFTA_DATA_VALUE, end);
    }
    match &element.data {
        ElementData::None => {}
        ElementData::Value(value) => w.nest(NFTA_SET_ELEM_DATA).put(NFTA_DATA_VALUE, value),
        ElementData::Verdict(code, chain) => {
            let mut data = w.nest(NFTA_SET_ELEM_DATA);
            match chain.and_then(|chain| event::chain(table, chain)) {
                Some(chain) => encode_verdict(&to_chain(VerdictCode(*code), chain), &mut data),
                None => {
                    data.nest(NFTA_DATA_VERDICT).put_be32(NFTA_VERDICT_CODE, *code);
                }
            }
        }
        ElementData::Object(object) => {
            if let Some(object) = table.objects.iter().find(|existing| existing.handle == *object) {
                w.put_str(NFTA_SET_ELEM_OBJREF, &object.name);
            }
        }
    }
    write_state(&element.exprs, NFTA_SET_ELEM_EXPR, NFTA_SET_ELEM_EXPRESSIONS, w);
    if element.flags != 0 {
        w.put_be32(NFTA_SET_ELEM_FLAGS, element.flags);
    }
    if let Some((timeout, left)) = element.time {
        if timeout != set.timeout {
            w.put_be64(NFTA_SET_ELEM_TIMEOUT, timeout);
        }
        if timeout > 0 {
            w.put_be64(NFTA_SET_ELEM_EXPIRATION, left);
        }
    }
    put_some(w, NFTA_SET_ELEM_USERDATA, &element.user_data);
}

fn to_chain(code: VerdictCode, chain: &Chain) -> Verdict {
    match code {
        VerdictCode::GOTO => Verdict::Goto(chain.name.clone()),
        _ => Verdict::Jump(chain.name.clone()),
    }
}

pub(super) fn write_object(table: &Table, object: &Object, w: &mut Writer<'_>) {
    w.put_str(NFTA_OBJ_TABLE, &table.name);
    w.put_str(NFTA_OBJ_NAME, &object.name);
    w.put_be32(NFTA_OBJ_TYPE, object.kind);
    w.put_be64(NFTA_OBJ_HANDLE, object.handle);
    w.put_be32(NFTA_OBJ_USE, object.uses);
    write_data(object, &mut w.nest(NFTA_OBJ_DATA));
    put_some(w, NFTA_OBJ_USERDATA, &object.user_data);
}

/// Appends the attributes of a flowtable, with all its devices or with these only.
pub(super) fn write_flowtable(
    table: &Table,
    flowtable: &Flowtable,
    devices: Option<&[Device]>,
    w: &mut Writer<'_>,
) {
    w.put_str(NFTA_FLOWTABLE_TABLE, &table.name);
    w.put_str(NFTA_FLOWTABLE_NAME, &flowtable.name);
    w.put_be64(NFTA_FLOWTABLE_HANDLE, flowtable.handle);
    w.put_be32(NFTA_FLOWTABLE_USE, flowtable.uses);
    w.put_be32(NFTA_FLOWTABLE_FLAGS, flowtable.flags);
    let mut hook = w.nest(NFTA_FLOWTABLE_HOOK);
    hook.put_be32(NFTA_FLOWTABLE_HOOK_NUM, flowtable.hook);
    hook.put_be32(NFTA_FLOWTABLE_HOOK_PRIORITY, flowtable.priority.cast_unsigned());
    device::write(devices.unwrap_or(&flowtable.devices), &mut hook.nest(NFTA_FLOWTABLE_HOOK_DEVS));
}

fn write_state(exprs: &[Expr], one: u16, several: u16, w: &mut Writer<'_>) {
    match exprs {
        [] => {}
        [expr] => as_listed(expr).encode(w, one),
        exprs => {
            let mut list = w.nest(several);
            exprs.iter().for_each(|expr| as_listed(expr).encode(&mut list, NFTA_LIST_ELEM));
        }
    }
}

pub(super) fn put_some(w: &mut Writer<'_>, kind: u16, bytes: &[u8]) {
    if !bytes.is_empty() {
        w.put(kind, bytes);
    }
}

pub(super) fn number(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}
