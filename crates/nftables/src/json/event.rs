//! Commits as `nft -j monitor` prints them.

use crate::expr::ObjectKind;
use crate::json::element::list;
use crate::json::object::{chain, flowtable, rule, stateful, table};
use crate::json::set::set;
use crate::json::style::Style;
use crate::json::{Value, object, single};
use crate::monitor::{Commit, Reported};
use crate::object::{Elements, Rule, TableId};
use crate::transaction::{Object, Operation, Rename, Target, Transaction};
use crate::wording::{ListOptions, Wording};

impl Commit {
    /// Returns what `nft -j monitor` prints of it: one value for each change, each element by itself.
    ///
    /// Of what is deleted, recent kernels report only name and handle. nft 1.0.6 prints the other members all
    /// the same, as if they were zero (`"type": "invalid"`, `"packets": 0`), and so does this. A map is then
    /// a set, and the sets of a deleted rule are reported like any other. Like nft it also reports chains
    /// that belong to a rule.
    ///
    /// The statements of a deleted rule are complete; nft 1.0.6 leaves out those that look something up in a
    /// set. Flowtables, which nft 1.0.6 does not report, are reported.
    #[must_use]
    pub fn to_json(&self, options: &ListOptions) -> Vec<Value> {
        self.reported.iter().map(|reported| reported.to_json(options)).collect()
    }

    /// Returns what `nft -j --echo` prints where this transaction made the commit, and was given as text: as
    /// [`echo_lines`](Self::echo_lines).
    #[must_use]
    pub fn echo_json(&self, sent: &Transaction, options: &ListOptions) -> Vec<Value> {
        self.echoed(sent).map(|reported| reported.to_json(options)).collect()
    }
}

impl Reported {
    fn to_json(&self, options: &ListOptions) -> Value {
        // Only the content of a rule depends on it.
        let family = match (&self.operation, &self.rule) {
            (Operation::Add(Object::Rule(rule)) | Operation::Insert(rule), _) | (_, Some(rule)) => {
                rule.chain.table.family
            }
            _ => crate::Family::UNSPEC,
        };
        let with = Style::listed(Wording::new(options), family);
        match &self.operation {
            Operation::Add(object) | Operation::Create(object) => single(self.verb, self.added(object, with)),
            Operation::Insert(of) => {
                single("insert", single("rule", self.rule(self.rule.as_ref().unwrap_or(of), with)))
            }
            Operation::Replace(of) => single("replace", single("rule", self.rule(of, with))),
            Operation::Rename(Rename { chain, name, .. }) => {
                single("add", single("chain", self.named(&chain.table, name)))
            }
            Operation::Delete(target) | Operation::Destroy(target) => {
                single("delete", self.deleted(target, with))
            }
            Operation::Flush(_) => self.operation.to_json(),
        }
    }

    fn added(&self, of: &Object, with: Style<'_>) -> Value {
        match of {
            Object::Table(of) => single("table", table(of, self.handle, with)),
            Object::Chain(of) => single("chain", chain(of, self.handle, with)),
            Object::Rule(of) => single("rule", self.rule(self.rule.as_ref().unwrap_or(of), with)),
            Object::Set(of) => single(of.word(), set(of, None, self.handle, with)),
            Object::Elements(of) => elements(of, with),
            Object::Stateful(of) => single(of.id.kind.to_string(), stateful(of, self.handle, with)),
            Object::Flowtable(of) => single("flowtable", flowtable(of, self.handle)),
        }
    }

    fn rule(&self, of: &Rule, with: Style<'_>) -> Value {
        rule(of, [self.handle, None], with, |_| Default::default())
    }

    fn deleted(&self, of: &Target, with: Style<'_>) -> Value {
        match of {
            Target::Table(of) => single(
                "table",
                object!({"family": of.family.to_string(), "name": of.name.as_str(), "handle": self.handle}),
            ),
            Target::Chain(of) => single(
                "chain",
                match &self.deleted {
                    Some(Object::Chain(of)) => chain(of, self.handle, with),
                    _ => self.named(&of.table, &of.name),
                },
            ),
            Target::Rule(of) => match &self.rule {
                Some(of) => single("rule", self.rule(of, with)),
                None => single(
                    "rule",
                    object!({
                        "family": of.chain.table.family.to_string(), "table": of.chain.table.name.as_str(),
                        "chain": of.chain.name.as_str(), "handle": of.handle,
                    }),
                ),
            },
            Target::Set(of) => match &self.deleted {
                Some(Object::Set(of)) => single(of.word(), set(of, None, self.handle, with)),
                _ => single("set", self.unknown(&of.table, &of.name, object!({"type": "invalid"}), true)),
            },
            Target::Elements(of) => elements(of, with),
            Target::Stateful(of) => single(
                of.kind.to_string(),
                match &self.deleted {
                    Some(Object::Stateful(of)) => stateful(of, self.handle, with),
                    _ => self.unknown(&of.table, &of.name, unknown_object(of.kind), false),
                },
            ),
            Target::Flowtable(of) => single("flowtable", self.named(&of.table, &of.name)),
            Target::Handle(_) | Target::Devices(_) => {
                Operation::Delete(of.clone()).to_json().get("delete").cloned().unwrap_or_default()
            }
        }
    }

    /// What nft prints where it knows only name and handle; the handle of a set comes last.
    fn unknown(&self, table: &TableId, name: &str, members: Value, handle_last: bool) -> Value {
        let mut of = object!({
            "family": table.family.to_string(), "name": name, "table": table.name.as_str(),
        });
        if handle_last {
            of.extend(members);
            of.insert("handle", self.handle.into());
        } else {
            of.insert("handle", self.handle.into());
            of.extend(members);
        }
        of
    }

    fn named(&self, table: &TableId, name: &str) -> Value {
        object!({
            "family": table.family.to_string(), "table": table.name.as_str(),
            "name": name, "handle": self.handle,
        })
    }
}

/// What nft prints for an object of which it knows nothing.
fn unknown_object(kind: ObjectKind) -> Value {
    match kind {
        ObjectKind::COUNTER => object!({"packets": 0, "bytes": 0}),
        ObjectKind::QUOTA => object!({"bytes": 0, "used": 0, "inv": false}),
        ObjectKind::LIMIT => object!({"rate": 0, "per": "error"}),
        ObjectKind::CT_HELPER => object!({"type": "(null)", "protocol": "ip", "l3proto": "unknown"}),
        ObjectKind::CT_EXPECT => {
            object!({"protocol": "ip", "dport": 0, "timeout": 0, "size": 0, "l3proto": "unknown"})
        }
        ObjectKind::SYNPROXY => object!({"mss": 0, "wscale": 0}),
        ObjectKind::SECMARK => object!({"context": ""}),
        // nft 1.0.6 crashes on a conntrack timeout, and does not know the others.
        _ => object([]),
    }
}

/// nft puts them in a set.
fn elements(of: &Elements, with: Style<'_>) -> Value {
    single(
        "element",
        object!({
            "family": of.set.table.family.to_string(), "table": of.set.table.name.as_str(),
            "name": of.set.name.as_str(), "elem": single("set", list(&of.list, with)),
        }),
    )
}
