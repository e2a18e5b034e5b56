//! Objects as nft prints them in JSON.

use std::collections::HashMap;

use crate::json::constant::{seconds, signed};
use crate::json::statement::{self, ObjectMembers, limit};
use crate::json::style::Style;
use crate::json::{Value, flags, object, single};
use crate::key::Part;
use crate::listing::TableContent;
use crate::name::{InterfaceName, Name};
use crate::object::*;
use crate::tree::{SetUpdate, Statement};
use crate::wording::{ListOptions, Wording, millis};

/// Everything as `nft -j list ruleset` prints it: an object with the list `nftables`, whose first member says
/// that its words are those of nft 1.0.6.
///
/// ```
/// use sluicegate_nftables::fake::Fake;
/// use sluicegate_nftables::json::ruleset;
/// use sluicegate_nftables::{Family, ListOptions, Table, TableId, Transaction};
///
/// let mut kernel = Fake::new();
/// let mut transaction = Transaction::new();
/// transaction.add(Table::new(TableId::new(Family::INET, "filter".parse()?)));
/// transaction.apply(&mut kernel)?;
/// let listed = ruleset(&kernel.ruleset().content(), &ListOptions::default());
/// assert!(listed.to_string().starts_with(r#"{"nftables": [{"metainfo": {"version": "1.0.6", "#));
/// assert_eq!(serde_json::Value::from(listed)["nftables"][1]["table"]["name"], "filter");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub fn ruleset(tables: &[TableContent], options: &ListOptions) -> Value {
    let mut list = vec![metainfo()];
    list.extend(tables.iter().flat_map(|table| table.to_json(options)));
    single("nftables", list)
}

/// What opens every listing.
pub(in crate::json) fn metainfo() -> Value {
    single(
        "metainfo",
        object!({"version": "1.0.6", "release_name": "Lester Gooch #5", "json_schema_version": 1}),
    )
}

impl TableContent {
    /// The table and what is in it as `nft -j list table` prints it: one value for each object, in nft's
    /// order. Handles are always said.
    ///
    /// Like nft 1.0.6 this leaves out comments of tables and chains, devices of chains, and of which
    /// expressions a type is made; a [`Transaction`](crate::Transaction) prints all that. What nft has no
    /// JSON for, such as a chain of a rule's own, is its text, which
    /// [`from_json`](crate::Transaction::from_json) reads.
    #[must_use]
    pub fn to_json(&self, options: &ListOptions) -> Vec<Value> {
        let with = Style::listed(Wording::new(options), self.table.id.family);
        let Self { table, objects, sets, flowtables, chains, handles } = self;
        let mut list = vec![single("table", self::table(table, Some(handles.table), with))];
        for object in objects {
            let handle = handles.objects.get(&(object.id.kind, object.id.name.clone())).copied();
            list.push(single(object.id.kind.to_string(), stateful(object, handle, with)));
        }
        for (set, elements) in sets {
            let handle = handles.sets.get(&set.id.name).copied();
            list.push(single(set.word(), crate::json::set::set(set, Some(elements), handle, with)));
        }
        for flowtable in flowtables {
            let handle = handles.flowtables.get(&flowtable.id.name).copied();
            list.push(single("flowtable", self::flowtable(flowtable, handle)));
        }
        for (chain, _) in chains {
            let handle = handles.chains.get(&chain.id.name).copied();
            list.push(single("chain", self::chain(chain, handle, with)));
        }
        let sets: HashMap<&Name, &Set> = sets.iter().map(|(set, _)| (&set.id.name, set)).collect();
        let rules = chains.iter().flat_map(|(_, rules)| rules);
        list.extend(rules.map(|rule| {
            let types =
                |update: &SetUpdate| sets.get(&update.set).map(|set| types_of(set)).unwrap_or_default();
            single("rule", self::rule(rule, [rule.handle, None], with, types))
        }));
        list
    }
}

/// The types of keys and values.
fn types_of(set: &Set) -> [Vec<Part>; 2] {
    let values = match &set.data {
        Some(SetData::Value(of)) => of.parts(),
        _ => Vec::new(),
    };
    [set.key.parts(), values]
}

pub(in crate::json) fn table(of: &Table, handle: Option<u64>, with: Style<'_>) -> Value {
    object([
        ("family", Some(of.id.family.to_string().into())),
        ("name", Some(of.id.name.as_str().into())),
        ("handle", handle.map(Value::from)),
        ("flags", flags(of.flag_names())),
        // nft 1.0.6 does not print it.
        ("comment", of.comment.as_ref().filter(|_| with.is_script()).map(|comment| comment.as_str().into())),
    ])
}

pub(in crate::json) fn chain(of: &Chain, handle: Option<u64>, with: Style<'_>) -> Value {
    let said = with.is_script();
    let base = of.base.as_ref();
    let devices = base.filter(|base| said && !base.devices.is_empty());
    let policy = base.map_or(of.policy, |base| base.policy);
    object([
        ("family", Some(of.id.table.family.to_string().into())),
        ("table", Some(of.id.table.name.as_str().into())),
        ("name", Some(of.id.name.as_str().into())),
        ("handle", handle.map(Value::from)),
        ("comment", of.comment.as_ref().filter(|_| said).map(|comment| comment.as_str().into())),
        ("type", base.map(|base| base.kind.name().into())),
        ("hook", base.map(|base| base.hook.to_string().into())),
        ("prio", base.map(|base| base.priority.0.into())),
        ("dev", devices.map(|base| device_names(&base.devices))),
        ("policy", policy.map(|policy| policy.to_string().into())),
        ("flags", base.filter(|base| said && base.offload).map(|_| vec!["offload"].into())),
    ])
}

/// One name, or a list of several.
pub(in crate::json) fn device_names(devices: &[InterfaceName]) -> Value {
    let mut names: Vec<Value> = devices.iter().map(|device| device.as_str().into()).collect();
    if names.len() == 1 { names.remove(0) } else { names.into() }
}

/// A rule; `places` are its handle, or that of another, and its index.
pub(in crate::json) fn rule(
    of: &Rule,
    [handle, index]: [Option<u64>; 2],
    with: Style<'_>,
    types: impl Fn(&SetUpdate) -> [Vec<Part>; 2],
) -> Value {
    let statements: Vec<_> =
        of.statements.read().iter().map(|of: &Statement| statement::typed(of, with, &types)).collect();
    object([
        ("family", Some(of.chain.table.family.to_string().into())),
        ("table", Some(of.chain.table.name.as_str().into())),
        ("chain", Some(of.chain.name.as_str().into())),
        ("handle", handle.map(Value::from)),
        ("index", index.map(Value::from)),
        ("comment", of.comment.as_ref().map(|comment| comment.as_str().into())),
        ("expr", Some(statements.into())),
    ])
}

pub(in crate::json) fn flowtable(of: &Flowtable, handle: Option<u64>) -> Value {
    let mut devices: Vec<_> = of.devices.clone();
    devices.sort_unstable();
    let names = [(FlowtableFlags::OFFLOAD, "offload"), (FlowtableFlags::COUNTER, "counter")];
    let flags: Vec<Value> =
        names.into_iter().filter(|(flag, _)| of.flags.contains(*flag)).map(|(_, name)| name.into()).collect();
    object([
        ("family", Some(of.id.table.family.to_string().into())),
        ("name", Some(of.id.name.as_str().into())),
        ("table", Some(of.id.table.name.as_str().into())),
        ("handle", handle.map(Value::from)),
        ("hook", Some("ingress".into())),
        ("prio", Some(of.priority.0.into())),
        ("dev", (!devices.is_empty()).then(|| device_names(&devices))),
        ("flags", (handle.is_none() && !flags.is_empty()).then(|| flags.into())),
    ])
}

pub(in crate::json) fn stateful(of: &StatefulObject, handle: Option<u64>, with: Style<'_>) -> Value {
    let mut value = object([
        ("family", Some(of.id.table.family.to_string().into())),
        ("name", Some(of.id.name.as_str().into())),
        ("table", Some(of.id.table.name.as_str().into())),
        ("handle", handle.map(Value::from)),
        ("comment", of.comment.as_ref().map(|comment| comment.as_str().into())),
    ]);
    value.extend(configuration(of, with));
    value
}

fn configuration(of: &StatefulObject, with: Style<'_>) -> Value {
    let l3 = |family: &Option<crate::Family>| family.map(|family| Value::from(family.to_string()));
    let protocol = |protocol: &crate::Protocol| Some(Value::from(protocol.to_string()));
    match &of.config {
        ObjectConfig::Counter(counter) => {
            object!({"packets": signed(counter.packets), "bytes": signed(counter.bytes)})
        }
        ObjectConfig::Quota(quota) => {
            object!({"bytes": signed(quota.bytes), "used": signed(quota.used), "inv": quota.over})
        }
        ObjectConfig::Limit(of) => limit(of, ObjectMembers::Named, with),
        ObjectConfig::Synproxy(synproxy) => {
            let names = [(synproxy.timestamp, "timestamp"), (synproxy.sack_perm, "sack-perm")];
            let names: Vec<Value> =
                names.into_iter().filter(|(is, _)| *is).map(|(_, name)| name.into()).collect();
            let number = |number: Option<u64>| number.or((!with.is_script()).then_some(0)).map(Value::from);
            object([
                ("mss", number(synproxy.mss.map(u64::from))),
                ("wscale", number(synproxy.wscale.map(u64::from))),
                ("flags", (!names.is_empty()).then(|| names.into())),
            ])
        }
        ObjectConfig::CtHelper { helper, protocol: of, family } => object([
            ("type", Some(helper.as_str().into())),
            ("protocol", protocol(of)),
            ("l3proto", l3(family)),
        ]),
        ObjectConfig::CtTimeout { protocol: of, family, policy } => {
            let policy: Vec<_> =
                policy.iter().map(|(state, time)| ((*state).into(), time.as_secs().into())).collect();
            let policy = if policy.is_empty() { Value::Null } else { Value::Object(policy) };
            object([("protocol", protocol(of)), ("l3proto", l3(family)), ("policy", Some(policy))])
        }
        ObjectConfig::CtExpectation { protocol: of, port, timeout, size, family } => object([
            ("protocol", protocol(of)),
            ("dport", Some((*port).into())),
            ("timeout", Some(millis(*timeout).into())),
            ("size", Some((*size).into())),
            ("l3proto", l3(family)),
        ]),
        ObjectConfig::Secmark(context) => single("context", context.as_str()),
        ObjectConfig::Connlimit(limit) => {
            object([("val", Some(limit.count.into())), ("inv", limit.over.then_some(Value::Bool(true)))])
        }
        ObjectConfig::Tunnel(of) => super::tunnel::print(of),
    }
}

/// A time in the seconds that nft prints.
pub(in crate::json) fn time(of: std::time::Duration, with: Style<'_>) -> Value {
    seconds(millis(of), with)
}
