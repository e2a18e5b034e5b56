//! Explains what an errno of the kernel means for the operation that was refused. The kernel only reports a
//! number and sometimes an attribute.

use std::borrow::Cow;

use sluicegate_netlink::attr::{Attribute, Attributes};
use sluicegate_netlink::message::{Header, Message};

use super::path::AttributePath;
use super::*;
use crate::expr::{Data, Expr};
use crate::family::Family;
use crate::object::element::wire::NFTA_SET_ELEM_DATA;
use crate::object::rule::wire::NFTA_RULE_EXPRESSIONS;
use crate::object::{Element, ElementData, Rule};
use crate::transaction::Flush;
use crate::tree::{Statement, Verdict};

/// The part of a message that the kernel's error refers to.
pub(super) struct Blame<'a> {
    family: Family,
    /// The name of the table, which is the first attribute of most messages.
    table: Option<Name>,
    /// The innermost attribute.
    attribute: Option<(&'static str, Attribute<'a>)>,
    /// The expression that contains the attribute, if it is one of a rule.
    expression: Option<Expr>,
}

impl<'a> Blame<'a> {
    pub(super) fn of(header: Header, payload: &'a [u8], path: Option<&AttributePath>) -> Option<Self> {
        let (netfilter, attributes) = Message { header, payload }.netfilter().ok()?;
        let first = attributes.clone().next().and_then(Result::ok).filter(|first| first.kind == 1);
        Some(Self {
            family: Family(netfilter.family),
            table: first.and_then(|first| first.text().ok()).map(|name| Name::from_kernel(&name)),
            attribute: path.and_then(|path| innermost(attributes.clone(), path)),
            expression: path.and_then(AttributePath::expression).and_then(|(index, _)| {
                let list = attributes.find(NFTA_RULE_EXPRESSIONS).ok()??;
                Expr::decode(&list.attributes().nth(index)?.ok()?).ok()
            }),
        })
    }

    fn name(&self) -> Option<&'static str> {
        self.attribute.as_ref().map(|(name, _)| *name)
    }

    /// Returns the attribute as a name, escaped for printing: another program may have chosen it.
    fn text(&self) -> Name {
        let text = self.attribute.as_ref().and_then(|(_, attribute)| attribute.text().ok());
        Name::from_kernel(&text.unwrap_or_default())
    }

    fn table(&self) -> String {
        self.table.as_ref().map(Name::to_string).unwrap_or_default()
    }

    fn number(&self) -> u64 {
        self.attribute.as_ref().and_then(|(_, attribute)| attribute.be64().ok()).unwrap_or_default()
    }

    /// Describes the object that does not exist.
    fn missing(&self) -> Option<String> {
        let (family, table) = (self.family, self.table());
        Some(match (self.name()?, &self.expression) {
            (_, Some(expression)) => self.missing_in(expression),
            (
                "NFTA_TABLE_NAME"
                | "NFTA_CHAIN_TABLE"
                | "NFTA_RULE_TABLE"
                | "NFTA_SET_TABLE"
                | "NFTA_OBJ_TABLE"
                | "NFTA_SET_ELEM_LIST_TABLE"
                | "NFTA_FLOWTABLE_TABLE",
                _,
            ) => format!("table {family} {} does not exist", self.text()),
            ("NFTA_RULE_CHAIN" | "NFTA_CHAIN_NAME", _) => {
                format!("chain {family} {table} {} does not exist", self.text())
            }
            ("NFTA_RULE_HANDLE" | "NFTA_RULE_POSITION", _) => {
                format!("the chain has no rule with handle {}", self.number())
            }
            ("NFTA_SET_ELEM_LIST_SET" | "NFTA_SET_NAME", _) => {
                format!("set {family} {table} {} does not exist", self.text())
            }
            ("NFTA_CHAIN_TYPE", _) => {
                format!(
                    "family {family} has no chain type `{}` in this kernel, or its module is not loaded",
                    self.text()
                )
            }
            ("NFTA_HOOK_DEV" | "NFTA_DEVICE_NAME", _) => format!("device `{}` does not exist", self.text()),
            ("NFTA_OBJ_NAME", _) => {
                format!("table {family} {table} has no object `{}` of this kind", self.text())
            }
            ("NFTA_LIST_ELEM", _) => match self.jump()? {
                Verdict::Jump(to) | Verdict::Goto(to) => {
                    format!("chain {family} {table} {to} does not exist")
                }
                _ => return None,
            },
            ("NFTA_FLOWTABLE_NAME", _) => {
                format!("flowtable {family} {table} {} does not exist", self.text())
            }
            (attribute, _) => {
                let kind = match attribute {
                    "NFTA_TABLE_HANDLE" => {
                        return Some(format!("no table of family {family} has handle {}", self.number()));
                    }
                    "NFTA_CHAIN_HANDLE" => "chain",
                    "NFTA_SET_HANDLE" => "set",
                    "NFTA_OBJ_HANDLE" => "object of this kind",
                    "NFTA_FLOWTABLE_HANDLE" => "flowtable",
                    _ => return None,
                };
                format!("table {family} {table} has no {kind} with handle {}", self.number())
            }
        })
    }

    /// Describes the object that an expression refers to.
    fn missing_in(&self, expression: &Expr) -> String {
        let named = |kind: &str, name: &Name| {
            format!("{kind} {} {} {name} does not exist", self.family, self.table())
        };
        match expression {
            Expr::Immediate(immediate) => match &immediate.data {
                Data::Verdict(Verdict::Jump(to) | Verdict::Goto(to)) => named("chain", to),
                _ => String::from("what it names does not exist"),
            },
            Expr::Lookup(lookup) => named("set", &lookup.set),
            Expr::Dynset(dynset) => named("set", &dynset.set),
            Expr::Objref(reference) => match (&reference.name, &reference.set, reference.kind) {
                (Some(name), _, Some(kind)) => named(&kind.to_string(), name),
                (_, Some(map), _) => named("map", map),
                _ => String::from("the object does not exist"),
            },
            Expr::FlowOffload(flow) => named("flowtable", &flow.flowtable),
            other => {
                let name = other.name();
                format!("this kernel has no `{name}` for family {}, or its module is not loaded", self.family)
            }
        }
    }

    /// Returns the verdict of the element at fault if it belongs to an anonymous map of a rule: the operation
    /// does not contain such elements.
    fn jump(&self) -> Option<Verdict> {
        let (_, element) = self.attribute.as_ref().filter(|(name, _)| *name == "NFTA_LIST_ELEM")?;
        let data = element.attributes().find(NFTA_SET_ELEM_DATA).ok()??;
        match Data::decode(&data).ok()? {
            (Data::Verdict(verdict), _) => Some(verdict),
            _ => None,
        }
    }

    /// Returns the set or chain that the expression at fault refers to.
    fn named(&self) -> Option<&Name> {
        match self.expression.as_ref()? {
            Expr::Lookup(lookup) => Some(&lookup.set),
            Expr::Dynset(dynset) => Some(&dynset.set),
            Expr::Immediate(immediate) => match &immediate.data {
                Data::Verdict(Verdict::Jump(to) | Verdict::Goto(to)) => Some(to),
                _ => None,
            },
            _ => None,
        }
    }
}

/// Returns the attribute at the end of a path. If the path leads into a list, the name of the list entry is
/// enough.
fn innermost<'a>(attributes: Attributes<'a>, path: &AttributePath) -> Option<(&'static str, Attribute<'a>)> {
    let mut level = attributes;
    let mut found = None;
    for (name, kind, index) in path.steps() {
        let mut of_kind = level.filter_map(Result::ok);
        let attribute = match index {
            Some(index) => of_kind.nth(index)?,
            None => of_kind.find(|attribute| attribute.kind == kind)?,
        };
        level = attribute.attributes();
        found = name.map(|name| (name, attribute));
    }
    found
}

/// Explains what an errno means for an operation, or for the batch as a whole.
pub(super) fn meaning(
    operation: Option<&Operation>,
    element: Option<&Element>,
    blame: Option<&Blame<'_>>,
    errno: Errno,
) -> Option<Cow<'static, str>> {
    let special = match errno {
        Errno::ENOENT => element
            .and_then(|element| missing_of_element(operation?, element, blame?))
            .or_else(|| blame?.missing())
            .or_else(|| missing_set(operation?, blame?))
            .map(Cow::Owned),
        Errno::EINVAL => {
            element.filter(|_| is_addition(operation)).map(|element| unfit_element(element).into())
        }
        Errno::EOPNOTSUPP => not_possible(operation, element, blame).map(Cow::Owned),
        _ => None,
    };
    special.or_else(|| errno_meaning(operation, blame, errno).map(Cow::Borrowed))
}

fn is_addition(operation: Option<&Operation>) -> bool {
    matches!(operation, Some(Operation::Add(_) | Operation::Create(_)))
}

/// Describes what an element refers to, or the element itself.
fn missing_of_element(operation: &Operation, element: &Element, blame: &Blame<'_>) -> Option<String> {
    if blame.name() != Some("NFTA_LIST_ELEM") {
        return None;
    }
    if !is_addition(Some(operation)) {
        return Some("the element is not in the set".to_owned());
    }
    let (family, table) = (blame.family, blame.table());
    match element.data() {
        ElementData::Verdict(Verdict::Jump(to) | Verdict::Goto(to)) => {
            Some(format!("chain {family} {table} {to} does not exist"))
        }
        ElementData::Object(named) => {
            Some(format!("table {family} {table} has no object `{named}` of the map's kind"))
        }
        _ => None,
    }
}

/// Describes the set that elements belong to. For a missing set Linux 6.1 reports no attribute; it does for
/// everything else.
fn missing_set(operation: &Operation, blame: &Blame<'_>) -> Option<String> {
    let set = match operation {
        Operation::Flush(Flush::Set(set)) => set,
        _ => &operation.elements()?.set,
    };
    blame.attribute.is_none().then(|| format!("set {set} does not exist"))
}

/// Describes why an element may not fit its set.
fn unfit_element(element: &Element) -> String {
    let gives = match element.data() {
        ElementData::None => Cow::Borrowed("nothing, as in a set"),
        ElementData::Verdict(_) => "a verdict".into(),
        ElementData::Object(_) => "an object".into(),
        ElementData::Value(value) => format!("a value of {} bytes", value.bytes().len()).into(),
        ElementData::Range(..) => "a range of values".into(),
    };
    let key = match element.is_catch_all() {
        true => "the key `*`".to_owned(),
        false => format!("a key of {} bytes", element.key().bytes().len()),
    };
    let mut hints = String::new();
    if element.end().is_some() {
        hints.push_str("the set lacks `flags interval`, which a range needs; or ");
    }
    if element.get_timeout().is_some() {
        hints.push_str("the set lacks `flags timeout`, which a timeout needs; or ");
    }
    hints + &format!("the set is of another type: the element has {key} and gives {gives}")
}

/// Explains `EOPNOTSUPP` for an operation.
fn not_possible(
    operation: Option<&Operation>,
    element: Option<&Element>,
    blame: Option<&Blame<'_>>,
) -> Option<String> {
    let of_element = match element.map(Element::data) {
        Some(ElementData::Verdict(verdict)) => Some(verdict),
        _ => blame.and_then(Blame::jump),
    };
    if let Some(Verdict::Jump(to) | Verdict::Goto(to)) = of_element {
        return Some(format!("`{to}` is a base chain, which cannot be the target of a jump"));
    }
    if let Some(blame) = blame
        && let Some(named) = blame.named()
    {
        return Some(match blame.expression {
            Some(Expr::Immediate(_)) => {
                format!("`{named}` is a base chain, which cannot be the target of a jump")
            }
            Some(Expr::Dynset(_)) => format!(
                "rules cannot change set `{named}`: it lacks `flags dynamic`, or rules cannot change its \
                 kind of set"
            ),
            _ => format!("set `{named}` cannot be looked up in this way"),
        });
    }
    let rule = match operation? {
        Operation::Add(Object::Rule(rule)) | Operation::Create(Object::Rule(rule)) => rule,
        Operation::Insert(rule) | Operation::Replace(rule) => rule,
        _ => return None,
    };
    restrictions(rule)
}

/// Describes where the statements of a rule are possible that are not possible everywhere.
fn restrictions(rule: &Rule) -> Option<String> {
    let place = |statement: &Statement| {
        Some(match statement {
            Statement::Dnat(_) | Statement::Redirect(_) => "chains of type nat at prerouting or output",
            Statement::Snat(_) => "chains of type nat at postrouting or input",
            Statement::Masquerade(_) => "chains of type nat at postrouting",
            Statement::Reject(_) => "chains of type filter at prerouting, input, forward or output",
            Statement::Tproxy(_) => "chains of type filter at prerouting",
            Statement::Synproxy(_) => "chains of type filter at input or forward",
            Statement::FlowAdd(_) => "chains of type filter at forward",
            Statement::Fwd(_) => "chains of family netdev",
            Statement::Dup(_) => "some families and hooks",
            Statement::Queue(_) => "some families and hooks",
            Statement::Notrack => "chains of the families ip, ip6, inet and bridge",
            _ => return None,
        })
    };
    let hints: Vec<_> = rule
        .statements
        .read()
        .iter()
        .filter_map(|statement| Some(format!("`{statement}` is possible in {} only", place(statement)?)))
        .collect();
    (!hints.is_empty()).then(|| hints.join("; "))
}

/// Explains an errno by the operation and the reported attribute alone.
fn errno_meaning(
    operation: Option<&Operation>,
    blame: Option<&Blame<'_>>,
    errno: Errno,
) -> Option<&'static str> {
    use Operation::{Add, Create, Delete, Destroy, Flush, Insert, Rename, Replace};
    let Some(operation) = operation else {
        return match errno {
            Errno::EPERM => {
                Some("CAP_NET_ADMIN is missing in the user namespace that owns this network namespace")
            }
            Errno::ENOMEM => Some("the kernel is out of memory"),
            Errno::EINVAL => Some("an anonymous set or chain is used by no rule"),
            Errno::EOPNOTSUPP => Some(
                "a chain with `flags offload` has the policy `drop`; or a rule of such a chain is inserted \
                 or replaced, and devices take rules at the end only; or a device refuses a rule",
            ),
            _ => None,
        };
    };
    Some(match (operation, errno) {
        (_, Errno::EPERM) if blame.is_some_and(|blame| blame.attribute.is_some()) => {
            "the table belongs to another process"
        }
        (_, Errno::EPERM) => "CAP_NET_ADMIN is missing, or the table belongs to another process",
        (_, Errno::EACCES) => "not permitted",
        (_, Errno::ENOMEM) => "the kernel is out of memory",
        (_, Errno::EAFNOSUPPORT) => "this kernel does not support tables of this family",
        (Add(Object::Elements(_)) | Create(Object::Elements(_)), Errno::ENOENT) => {
            "the table, the set, or the chain or object that the element names does not exist"
        }
        (Add(Object::Elements(_)), Errno::EEXIST) => {
            "the key exists with other data, or its interval overlaps another"
        }
        (Create(Object::Elements(_)), Errno::EEXIST) => {
            "the element exists already, or its interval overlaps another"
        }
        (Add(Object::Elements(_)) | Create(Object::Elements(_)), Errno::ENFILE) => {
            "the set is full: its size is reached"
        }
        (Add(Object::Elements(_)) | Create(Object::Elements(_)), Errno::EBUSY) => {
            "the set is constant and in use, or the kernel cannot insert the element at the moment"
        }
        (Add(Object::Elements(_)) | Create(Object::Elements(_)), Errno::ENOTEMPTY) => {
            "the interval overlaps another"
        }
        (Add(Object::Elements(_)) | Create(Object::Elements(_)), Errno::EINVAL) => {
            "the key or data does not have the type and length of the set, or the set lacks a flag that the \
             element needs"
        }
        (Delete(Target::Elements(_)), Errno::ENOENT) => "the table, the set or the element does not exist",
        (_, Errno::EMLINK | Errno::ELOOP) => "the jumps form a loop, or nest too deeply",
        (Add(Object::Rule(_)) | Create(Object::Rule(_)) | Insert(_) | Replace(_), Errno::ENOENT) => {
            "the table, the chain, the rule's handle, or a set or chain that the rule names does not exist, \
             or this kernel lacks one of its expressions"
        }
        (Add(Object::Rule(_)) | Create(Object::Rule(_)) | Insert(_) | Replace(_), Errno::EOPNOTSUPP) => {
            "the family, type or hook of the chain does not allow an expression; or the chain belongs to \
             another rule; or it has `flags offload`, which takes rules at the end only, and only rules that \
             a device can apply"
        }
        (Replace(rule), Errno::EINVAL) if rule.handle.is_none() => {
            "the handle of the rule to replace is missing"
        }
        (Add(Object::Rule(_)) | Create(Object::Rule(_)) | Insert(_) | Replace(_), Errno::EINVAL) => {
            match blame.and_then(|blame| blame.expression.as_ref()) {
                Some(Expr::XtMatch(_) | Expr::XtTarget(_)) => {
                    "the xtables module refuses it: its data have a wrong size or content, or it needs \
                     another chain, or a match for its protocol before it"
                }
                _ if blame.is_none_or(|blame| blame.named().is_none()) => {
                    "an expression has a wrong type, length or register"
                }
                Some(Expr::Lookup(_) | Expr::Dynset(_)) => {
                    "the keys or data of the set differ from the rule's in type or length; or a map is \
                     needed and it is a set, or the reverse"
                }
                Some(Expr::Immediate(_)) => "the target of the jump belongs to another rule",
                _ => "an expression has a wrong type, length or register",
            }
        }
        (Add(Object::Table(table)) | Create(Object::Table(table)), Errno::EOPNOTSUPP) => {
            match table.flags.is_empty() {
                true => "this kernel does not support tables of this family",
                false => {
                    "these flags of an existing table cannot be changed, or this kernel does not know them"
                }
            }
        }
        (Add(Object::Set(_)) | Create(Object::Set(_)), Errno::EINVAL | Errno::EOPNOTSUPP) => {
            "its keys or values have no type, or more than 64 bytes; or its flags, or the \
             statements of its elements, contradict each other"
        }
        (Add(Object::Set(_)), Errno::EEXIST) => "it exists with another type or other flags",
        (Add(Object::Chain(chain)), Errno::EEXIST) if chain.base.is_some() => {
            "it exists without a hook, or with another type, hook or priority, or with other devices"
        }
        (Add(Object::Chain(_)), Errno::EEXIST) => "the chain exists with another type, hook or priority",
        (Add(Object::Chain(chain)) | Create(Object::Chain(chain)), Errno::EOPNOTSUPP)
            if chain.base.as_ref().is_some_and(|base| base.offload) =>
        {
            "`flags offload` needs the ingress hook of family netdev, a priority of 1 to 65535, and devices \
             whose drivers support it; it cannot be added to an existing chain"
        }
        (Add(Object::Chain(_)) | Create(Object::Chain(_)), Errno::EOPNOTSUPP) => {
            "this family and type of chain does not have the hook, or not at this priority; or the chain \
             exists with another hook or priority"
        }
        (Add(Object::Stateful(object)) | Create(Object::Stateful(object)), Errno::ENOENT | Errno::EINVAL)
            if matches!(object.config, ObjectConfig::Secmark(_)) =>
        {
            "its table does not exist, or no security module of this kernel knows the context"
        }
        (Add(Object::Stateful(object)) | Create(Object::Stateful(object)), Errno::ENOENT)
            if matches!(object.config, ObjectConfig::CtHelper { .. }) =>
        {
            "this kernel has no such helper for this family and protocol, or its module is not loaded"
        }
        (Add(Object::Stateful(object)) | Create(Object::Stateful(object)), Errno::EOPNOTSUPP)
            if matches!(
                object.config,
                ObjectConfig::CtTimeout { .. } | ObjectConfig::CtExpectation { .. }
            ) =>
        {
            "this kernel has no connection tracking for this protocol"
        }
        (Add(Object::Stateful(_)), Errno::EEXIST) => "it exists as an object of another kind",
        (Add(Object::Flowtable(_)) | Create(Object::Flowtable(_)), Errno::ENOENT) => {
            "one of its devices does not exist, or this kernel does not support flowtables of this family, \
             or their module is not loaded"
        }
        (Create(_), Errno::EEXIST) => "it exists already",
        (Add(_) | Create(_), Errno::ENOENT) => "its table does not exist, or the kernel lacks what it needs",
        (Add(_) | Create(_) | Insert(_) | Replace(_), Errno::ERANGE) => {
            "a name is too long, or a number out of range"
        }
        (Rename(_), Errno::ENOENT) => "the table, or a chain with this handle in it, does not exist",
        (Rename(_), Errno::EEXIST) => "a chain of the table has the new name already",
        (Rename(_), Errno::ERANGE) => "the new name is too long",
        (Delete(Target::Devices(_)), Errno::EINVAL) => {
            "this kernel cannot delete devices of a chain (it can since Linux 6.4): it would have deleted \
             the chain"
        }
        (Delete(Target::Devices(_)), Errno::ENOENT) => {
            "the table, the chain or flowtable, or one of the devices in it does not exist"
        }
        (Delete(Target::Chain(_)), Errno::EBUSY) => {
            "rules or map elements still jump to the chain, or it has rules that were not flushed"
        }
        (Delete(Target::Set(_)), Errno::EBUSY) => "rules still use the set",
        (Delete(Target::Stateful(_) | Target::Flowtable(_)), Errno::EBUSY) => {
            "rules or elements still use it"
        }
        (Delete(_), Errno::EBUSY) => "it is still in use",
        (Delete(_) | Flush(_), Errno::ENOENT) => "it does not exist",
        (Destroy(_), Errno::EINVAL) => {
            "this kernel does not support `destroy` (Linux 6.3 does): add the object, then delete it"
        }
        (Delete(_) | Destroy(_), Errno::EOPNOTSUPP) => "it cannot be deleted in this way",
        _ => return None,
    })
}
