//! What an error number means for what was asked, and of what. The kernel itself says a number and, at best, an attribute.

use std::borrow::Cow;

use sluicegate_netlink::attr::{Attribute, Attributes};
use sluicegate_netlink::message::{Header, Message};

use super::path::AttributePath;
use super::*;
use crate::expr::{Data, Expr};
use crate::family::Family;
use crate::lang::{Statement, Verdict};
use crate::object::{Element, ElementData, Rule};
use crate::transaction::Flush;

/// What the kernel blames in a message.
pub(super) struct Blame<'a> {
    family: Family,
    /// The name of the table, which is the first attribute of every message.
    table: Option<Name>,
    /// The innermost attribute.
    attribute: Option<(&'static str, Attribute<'a>)>,
    /// The expression that is blamed, if it is one of a rule.
    expression: Option<Expr>,
}

impl<'a> Blame<'a> {
    pub(super) fn of(header: Header, payload: &'a [u8], path: Option<&AttributePath>) -> Option<Self> {
        let (netfilter, attributes) = Message { header, payload }.netfilter().ok()?;
        let first = attributes.clone().next().and_then(Result::ok).filter(|first| first.kind == 1);
        Some(Self {
            family: Family(netfilter.family),
            table: first.and_then(|first| first.str().ok()).map(Name::held),
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

    /// A name, escaped where it is one that somebody else has chosen.
    fn text(&self) -> Name {
        let text = self.attribute.as_ref().and_then(|(_, attribute)| attribute.str().ok());
        Name::held(text.unwrap_or_default())
    }

    fn table(&self) -> String {
        self.table.as_ref().map(Name::to_string).unwrap_or_default()
    }

    fn number(&self) -> u64 {
        self.attribute.as_ref().and_then(|(_, attribute)| attribute.be64().ok()).unwrap_or_default()
    }

    /// What is missing, by its name.
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
            ("NFTA_HOOK_DEV" | "NFTA_DEVICE_NAME", _) => format!("there is no device `{}`", self.text()),
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

    /// What an expression names.
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

    /// The verdict of an element that is blamed: of a map of a rule's own, which the operation does not give as elements.
    fn jump(&self) -> Option<Verdict> {
        let (_, element) = self.attribute.as_ref().filter(|(name, _)| *name == "NFTA_LIST_ELEM")?;
        let data = element.attributes().find(NFTA_SET_ELEM_DATA).ok()??;
        match Data::decode(&data).ok()? {
            (Data::Verdict(verdict), _) => Some(verdict),
            _ => None,
        }
    }

    /// The set, or the chain, that a blamed expression names.
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

/// The attribute at the end of a path. Where the path leads into a list, that list's name is enough.
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

/// What an error number means for an operation, or for the batch as a whole.
pub(super) fn meaning(
    operation: Option<&Operation>,
    element: Option<&Element>,
    blame: Option<&Blame<'_>>,
    code: i32,
) -> Option<Cow<'static, str>> {
    let special = match code {
        ENOENT => element
            .and_then(|element| missing_of_element(operation?, element, blame?))
            .or_else(|| blame?.missing())
            .or_else(|| missing_set(operation?, blame?))
            .map(Cow::Owned),
        EINVAL => element.filter(|_| is_addition(operation)).map(|element| unfit_element(element).into()),
        EOPNOTSUPP => not_possible(operation, element, blame).map(Cow::Owned),
        _ => None,
    };
    special.or_else(|| usual(operation, blame, code).map(Cow::Borrowed))
}

fn is_addition(operation: Option<&Operation>) -> bool {
    matches!(operation, Some(Operation::Add(_) | Operation::Create(_)))
}

/// What an element names, or the element itself.
fn missing_of_element(operation: &Operation, element: &Element, blame: &Blame<'_>) -> Option<String> {
    if blame.name() != Some("NFTA_LIST_ELEM") {
        return None;
    }
    if !is_addition(Some(operation)) {
        return Some("the set does not hold this element".to_owned());
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

/// Linux 6.1 names everything but the set that elements are for.
fn missing_set(operation: &Operation, blame: &Blame<'_>) -> Option<String> {
    let set = match operation {
        Operation::Flush(Flush::Set(set)) => set,
        _ => &operation.elements()?.set,
    };
    blame.attribute.is_none().then(|| format!("set {set} does not exist"))
}

/// What of an element may not suit its set.
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
    let mut said = String::new();
    if element.end().is_some() {
        said.push_str("the set lacks `flags interval`, which a range needs; or ");
    }
    if element.get_timeout().is_some() {
        said.push_str("the set lacks `flags timeout`, which a timeout needs; or ");
    }
    said + &format!("the set is of another type: the element has {key} and gives {gives}")
}

/// What is not possible there.
fn not_possible(
    operation: Option<&Operation>,
    element: Option<&Element>,
    blame: Option<&Blame<'_>>,
) -> Option<String> {
    let of_element = match element.map(Element::data) {
        Some(ElementData::Verdict(verdict)) => Some(verdict.clone()),
        _ => blame.and_then(Blame::jump),
    };
    if let Some(Verdict::Jump(to) | Verdict::Goto(to)) = of_element {
        return Some(format!("`{to}` is a base chain, and nothing can jump to one"));
    }
    if let Some(blame) = blame
        && let Some(named) = blame.named()
    {
        return Some(match blame.expression {
            Some(Expr::Immediate(_)) => format!("`{named}` is a base chain, and nothing can jump to one"),
            Some(Expr::Dynset(_)) => format!(
                "rules cannot change set `{named}`: it lacks `flags dynamic`, or its kind cannot be changed so"
            ),
            _ => format!("set `{named}` cannot be looked up so"),
        });
    }
    let rule = match operation? {
        Operation::Add(Object::Rule(rule)) | Operation::Create(Object::Rule(rule)) => rule,
        Operation::Insert(rule) | Operation::Replace(rule) => rule,
        _ => return None,
    };
    particular(rule)
}

/// The statements of a rule that are not possible everywhere, and where they are.
fn particular(rule: &Rule) -> Option<String> {
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
    let said: Vec<_> = rule
        .statements
        .iter()
        .filter_map(|statement| Some(format!("`{statement}` is possible in {} only", place(statement)?)))
        .collect();
    (!said.is_empty()).then(|| said.join("; "))
}

/// What is said where nothing more is known.
fn usual(operation: Option<&Operation>, blame: Option<&Blame<'_>>, code: i32) -> Option<&'static str> {
    use Operation::{Add, Create, Delete, Destroy, Flush, Insert, Rename, Replace};
    let Some(operation) = operation else {
        return match code {
            EPERM => Some("CAP_NET_ADMIN is missing in the namespace of this network"),
            ENOMEM => Some("the kernel is out of memory"),
            EINVAL => Some("a set or chain without a name is used by no rule"),
            EOPNOTSUPP => Some(
                "a chain with `flags offload` has the policy `drop`, or a rule of such a chain is inserted or replaced: devices take rules at the end only, or one of them refuses what it is to do",
            ),
            _ => None,
        };
    };
    Some(match (operation, code) {
        (_, EPERM) if blame.is_some_and(|blame| blame.attribute.is_some()) => {
            "the table belongs to another process"
        }
        (_, EPERM) => "CAP_NET_ADMIN is missing, or the table belongs to another process",
        (_, EACCES) => "not permitted",
        (_, ENOMEM) => "the kernel is out of memory",
        (_, EAFNOSUPPORT) => "this kernel has no tables of this family",
        (Add(Object::Elements(_)) | Create(Object::Elements(_)), ENOENT) => {
            "the table, the set, or the chain or object that the element names does not exist"
        }
        (Add(Object::Elements(_)), EEXIST) => {
            "the key is there with other data, or its interval overlaps another"
        }
        (Create(Object::Elements(_)), EEXIST) => {
            "the element exists already, or its interval overlaps another"
        }
        (Add(Object::Elements(_)) | Create(Object::Elements(_)), ENFILE) => {
            "the set is full: its size is reached"
        }
        (Add(Object::Elements(_)) | Create(Object::Elements(_)), EBUSY) => {
            "the set is constant and in use, or has no room for this element now"
        }
        (Add(Object::Elements(_)) | Create(Object::Elements(_)), ENOTEMPTY) => {
            "the interval overlaps another"
        }
        (Add(Object::Elements(_)) | Create(Object::Elements(_)), EINVAL) => {
            "the key or data is not of the set's type and length, or the set lacks a flag that this needs"
        }
        (Delete(Target::Elements(_)), ENOENT) => "the table, the set or the element does not exist",
        (_, EMLINK | ELOOP) => "the jumps make a loop, or nest too deeply",
        (Add(Object::Rule(_)) | Create(Object::Rule(_)) | Insert(_) | Replace(_), ENOENT) => {
            "the table, the chain, the rule's handle, a set or chain that it names, or one of its expressions does not exist in this kernel"
        }
        (Add(Object::Rule(_)) | Create(Object::Rule(_)) | Insert(_) | Replace(_), EOPNOTSUPP) => {
            "an expression is not possible in this chain's family, type or hook; or the chain belongs to another rule alone, or it has `flags offload`, which takes rules at its end only, and such as a device can follow"
        }
        (Replace(rule), EINVAL) if rule.handle.is_none() => {
            "it does not say which rule it replaces: it needs a handle"
        }
        (Add(Object::Rule(_)) | Create(Object::Rule(_)) | Insert(_) | Replace(_), EINVAL) => {
            match blame.and_then(|blame| blame.expression.as_ref()) {
                Some(Expr::XtMatch(_) | Expr::XtTarget(_)) => {
                    "the module of xtables refuses it: its data are of another size or make no sense, or it has to stand in another chain, or behind a match of the protocol that it is for"
                }
                _ if blame.is_none_or(|blame| blame.named().is_none()) => {
                    "an expression is refused: a wrong type, length or register"
                }
                Some(Expr::Lookup(_) | Expr::Dynset(_)) => {
                    "the keys of the set, or what it gives, are of another type or length than the rule has; or it is no map, or is one"
                }
                Some(Expr::Immediate(_)) => "the chain that it jumps to belongs to another rule alone",
                _ => "an expression is refused: a wrong type, length or register",
            }
        }
        (Add(Object::Table(table)) | Create(Object::Table(table)), EOPNOTSUPP) => {
            match table.flags.is_empty() {
                true => "this kernel has no tables of this family",
                false => {
                    "the flags of a table that is there cannot be changed so, or this kernel does not know them"
                }
            }
        }
        (Add(Object::Set(_)) | Create(Object::Set(_)), EINVAL | EOPNOTSUPP) => {
            "its keys or values are of no type, or of more than 64 bytes; or its flags, or what its elements carry, do not go together"
        }
        (Add(Object::Set(_)), EEXIST) => "it is there with another type or other flags",
        (Add(Object::Chain(chain)), EEXIST) if chain.base.is_some() => {
            "it is there without a hook, or with another type, hook or priority, or with other devices"
        }
        (Add(Object::Chain(_)), EEXIST) => "the chain exists with another type, hook or priority",
        (Add(Object::Chain(chain)) | Create(Object::Chain(chain)), EOPNOTSUPP)
            if chain.base.as_ref().is_some_and(|base| base.offload) =>
        {
            "`flags offload` is possible at the ingress hook of family netdev, with a priority of 1 to 65535, on devices whose drivers can do it; and a chain that is there without stays without"
        }
        (Add(Object::Chain(_)) | Create(Object::Chain(_)), EOPNOTSUPP) => {
            "there is no such hook for this family and type of chain, or not at this priority; or the chain is there with another hook or priority"
        }
        (Add(Object::Stateful(object)) | Create(Object::Stateful(object)), ENOENT | EINVAL)
            if matches!(object.config, ObjectConfig::Secmark(_)) =>
        {
            "its table does not exist, or no security module of this kernel knows the context"
        }
        (Add(Object::Stateful(object)) | Create(Object::Stateful(object)), ENOENT)
            if matches!(object.config, ObjectConfig::CtHelper { .. }) =>
        {
            "this kernel has no such helper for this family and protocol, or its module is not loaded"
        }
        (Add(Object::Stateful(object)) | Create(Object::Stateful(object)), EOPNOTSUPP)
            if matches!(
                object.config,
                ObjectConfig::CtTimeout { .. } | ObjectConfig::CtExpectation { .. }
            ) =>
        {
            "this kernel does not track connections of this protocol by themselves"
        }
        (Add(Object::Stateful(_)), EEXIST) => "it is there as an object of another kind",
        (Add(Object::Flowtable(_)) | Create(Object::Flowtable(_)), ENOENT) => {
            "one of its devices does not exist, or this kernel has no flowtables of this family, or their module is not loaded"
        }
        (Create(_), EEXIST) => "it exists already",
        (Add(_) | Create(_), ENOENT) => "its table does not exist, or the kernel lacks what it needs",
        (Add(_) | Create(_) | Insert(_) | Replace(_), ERANGE) => {
            "a name is too long, or a number out of range"
        }
        (Rename(_), ENOENT) => "the table, or a chain with this handle in it, does not exist",
        (Rename(_), EEXIST) => "a chain of the table has the new name already",
        (Rename(_), ERANGE) => "the new name is too long",
        (Delete(Target::Devices(_)), EINVAL) => {
            "this kernel cannot delete devices of a chain (it can since Linux 6.4): it would have deleted the chain"
        }
        (Delete(Target::Devices(_)), ENOENT) => {
            "the table, the chain or flowtable, or one of the devices in it does not exist"
        }
        (Delete(Target::Chain(_)), EBUSY) => {
            "rules or map elements still jump to the chain, or it has rules that were not flushed"
        }
        (Delete(Target::Set(_)), EBUSY) => "rules still use the set",
        (Delete(Target::Stateful(_) | Target::Flowtable(_)), EBUSY) => "rules or elements still use it",
        (Delete(_), EBUSY) => "it is still in use",
        (Delete(_) | Flush(_), ENOENT) => "it does not exist",
        (Destroy(_), EINVAL) => "this kernel has no destroy (it came with Linux 6.3): add it, then delete it",
        (Delete(_) | Destroy(_), EOPNOTSUPP) => "it cannot be deleted so",
        _ => return None,
    })
}

const NFTA_RULE_EXPRESSIONS: u16 = 4;
const NFTA_SET_ELEM_DATA: u16 = 2;
