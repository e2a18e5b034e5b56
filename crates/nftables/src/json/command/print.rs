//! Transactions as commands that `nft -j -f` reads.

use crate::family::Family;
use crate::json::Value;
use crate::json::element::elements;
use crate::json::object::{chain, device_names, flowtable, rule, stateful, table};
use crate::json::set::set;
use crate::json::style::Style;
use crate::json::{object, single};
use crate::object::*;
use crate::transaction::{Flush, HandleId, Object, Operation, Rename, Target, Transaction};

impl Transaction {
    /// The commands in JSON, one for each operation.
    ///
    /// What the JSON of nft has no form for is in one of our own: rules of a chain of a rule's own (`{"jump":
    /// {"rules": [...]}}`), how wide an integer is that a type has (`{"integer": {"bytes": 2, "order":
    /// "host"}}`), maps to intervals (`{"interval": "ipv4_addr"}`), devices that are deleted from a chain.
    /// nft refuses those.
    ///
    /// ```
    /// use sluicegate_nftables::{Family, TableId, Transaction};
    ///
    /// let mut transaction = Transaction::new();
    /// transaction.delete(TableId::new(Family::IP, "t".parse()?));
    /// assert_eq!(
    ///     transaction.to_json().to_string(),
    ///     r#"{"nftables": [{"delete": {"table": {"family": "ip", "name": "t"}}}]}"#
    /// );
    /// # Ok::<(), sluicegate_nftables::NameError>(())
    /// ```
    #[must_use]
    pub fn to_json(&self) -> Value {
        single("nftables", self.operations().iter().map(Operation::to_json).collect::<Vec<_>>())
    }
}

impl Operation {
    /// The command in JSON: an object with the verb as its only member.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let of = match self {
            Self::Add(object) | Self::Create(object) => added(object),
            Self::Insert(rule) => placed(rule),
            Self::Replace(rule) => single("rule", of_rule(rule, rule.handle, None)),
            Self::Rename(rename) => renamed(rename),
            Self::Delete(target) | Self::Destroy(target) => deleted(target),
            Self::Flush(target) => flushed(target),
        };
        single(self.verb(), of)
    }
}

const WITH: Style<'static> = Style::SCRIPT;

fn added(of: &Object) -> Value {
    match of {
        Object::Table(of) => single("table", table(of, None, WITH)),
        Object::Chain(of) => single("chain", chain(of, None, WITH)),
        Object::Rule(of) => placed(of),
        Object::Set(of) => single(of.word(), set(of, None, None, WITH)),
        Object::Elements(of) => single("element", elements(of, false, WITH)),
        Object::Stateful(of) => single(of.id.kind.to_string(), stateful(of, None, WITH)),
        Object::Flowtable(of) => single("flowtable", flowtable(of, None)),
    }
}

/// A rule with its place: the handle of the rule that it follows or precedes, or an index.
fn placed(of: &Rule) -> Value {
    let index = if of.position.is_some() { None } else { of.index };
    single("rule", of_rule(of, of.position, index))
}

fn of_rule(of: &Rule, handle: Option<u64>, index: Option<u32>) -> Value {
    rule(of, [handle, index.map(u64::from)], WITH, |_| Default::default())
}

fn renamed(of: &Rename) -> Value {
    let mut members = named(&of.chain.table, Some(of.chain.name.as_str()), of.handle);
    members.insert("newname", of.name.as_str().into());
    single("chain", members)
}

/// What is in a table, by its name or its handle.
fn named(table: &TableId, name: Option<&str>, handle: Option<u64>) -> Value {
    object([
        ("family", Some(table.family.to_string().into())),
        ("table", Some(table.name.as_str().into())),
        ("name", name.map(Value::from)),
        ("handle", handle.map(Value::from)),
    ])
}

fn of_table(of: &TableId) -> Value {
    object!({"family": of.family.to_string(), "name": of.name.as_str()})
}

fn deleted(of: &Target) -> Value {
    match of {
        Target::Table(of) => single("table", of_table(of)),
        Target::Chain(of) => single("chain", named(&of.table, Some(&of.name), None)),
        Target::Rule(RuleId { chain, handle }) => single(
            "rule",
            object!({
                "family": chain.table.family.to_string(), "table": chain.table.name.as_str(),
                "chain": chain.name.as_str(), "handle": *handle,
            }),
        ),
        Target::Set(of) => single(word(of), named(&of.table, Some(&of.name), None)),
        Target::Elements(of) => single("element", elements(of, true, WITH)),
        Target::Stateful(of) => single(of.kind.to_string(), named(&of.table, Some(&of.name), None)),
        Target::Flowtable(of) => single("flowtable", named(&of.table, Some(&of.name), None)),
        Target::Handle(of) => by_handle(of),
        Target::Devices(of) => {
            let (word, mut members) = match &of.hook {
                HookOwner::Chain(of) => ("chain", named(&of.table, Some(&of.name), None)),
                HookOwner::Flowtable(of) => ("flowtable", named(&of.table, Some(&of.name), None)),
            };
            members.insert("dev", device_names(&of.devices));
            single(word, members)
        }
    }
}

fn by_handle(of: &HandleId) -> Value {
    match of {
        HandleId::Table(family, handle) => {
            single("table", object!({"family": family.to_string(), "handle": *handle}))
        }
        HandleId::Chain(table, handle) => single("chain", named(table, None, Some(*handle))),
        HandleId::Set(table, handle) => single("set", named(table, None, Some(*handle))),
        HandleId::Stateful(table, kind, handle) => {
            single(kind.to_string(), named(table, None, Some(*handle)))
        }
        HandleId::Flowtable(table, handle) => single("flowtable", named(table, None, Some(*handle))),
    }
}

fn flushed(of: &Flush) -> Value {
    match of {
        Flush::Ruleset(Family::UNSPEC) => single("ruleset", Value::Null),
        Flush::Ruleset(family) => single("ruleset", single("family", family.to_string())),
        Flush::Table(of) => single("table", of_table(of)),
        Flush::Chain(of) => single("chain", named(&of.table, Some(&of.name), None)),
        Flush::Set(of) => single(word(of), named(&of.table, Some(&of.name), None)),
    }
}

fn word(of: &SetId) -> &'static str {
    if of.map { "map" } else { "set" }
}
