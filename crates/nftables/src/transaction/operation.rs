//! Operations: a verb and its object, as in nft's commands.

use std::fmt;

use crate::expr::ObjectKind;
use crate::family::Family;
use crate::name::Name;
#[cfg(feature = "reconcile")]
use crate::object::HookOwner;
use crate::object::{
    Chain, ChainId, Element, Elements, Flowtable, FlowtableId, HookDevices, ObjectId, Rule, RuleId, Set,
    SetId, StatefulObject, Table, TableId,
};

/// One operation of a transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Operation {
    /// `add`: adds an object; it is not an error if it exists.
    Add(Object),
    /// `create`: adds an object; it is an error if it exists.
    Create(Object),
    /// `insert rule`: adds a rule at the start of its chain, or before another rule.
    Insert(Rule),
    /// `replace rule`: replaces the rule with the same handle.
    Replace(Rule),
    /// `rename chain`: renames a chain.
    Rename(Rename),
    /// `delete`: deletes an object; it is an error if it does not exist.
    Delete(Target),
    /// `destroy`: deletes an object; it is not an error if it does not exist. Needs Linux 6.3, and nft 1.0.7
    /// for the text.
    Destroy(Target),
    /// `flush`: removes the rules of a table or chain, or the elements of a set.
    Flush(Flush),
}

/// An object that can be added.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Object {
    /// A table.
    Table(Table),
    /// A chain.
    Chain(Chain),
    /// A rule, at the end of its chain.
    Rule(Rule),
    /// A set or a map.
    Set(Box<Set>),
    /// Elements of a set or a map.
    Elements(Elements),
    /// A stateful object.
    Stateful(Box<StatefulObject>),
    /// A flowtable.
    Flowtable(Flowtable),
}

/// A new name for a chain.
///
/// The kernel finds the chain only by its handle, nft by its name: if both are given, they have to identify
/// the same chain.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rename {
    /// The chain, by its current name.
    pub chain: ChainId,
    /// The handle of the chain, see [`read::Chain::handle`](crate::read::Chain::handle); without one, it is
    /// queried.
    pub handle: Option<u64>,
    /// The new name.
    pub name: Name,
}

impl Rename {
    /// Gives the chain another name; its handle is queried when the transaction is applied.
    #[must_use]
    pub fn new(chain: ChainId, name: Name) -> Self {
        Self { chain, handle: None, name }
    }

    /// Sets the handle of the chain, so that none has to be queried.
    #[must_use]
    pub fn handle(mut self, handle: u64) -> Self {
        self.handle = Some(handle);
        self
    }
}

/// An object to delete, by its id.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Target {
    /// A table with its content.
    Table(TableId),
    /// A chain, with its rules; nothing may jump to it.
    Chain(ChainId),
    /// A rule.
    Rule(RuleId),
    /// A set or a map; no rule may use it.
    Set(SetId),
    /// Elements of a set or a map; only their keys matter.
    Elements(Elements),
    /// A stateful object; nothing may use it.
    Stateful(ObjectId),
    /// A flowtable; no rule may use it.
    Flowtable(FlowtableId),
    /// Any of these by its handle.
    Handle(HandleId),
    /// Devices of a base chain or a flowtable, which itself stays.
    Devices(HookDevices),
}

/// An object by the handle that the kernel gave it, which listings and events report. Handles are never
/// reused; names may be.
///
/// Rules are always identified by their handle: see [`RuleId`].
///
/// ```
/// use sluicegate_nftables::{Family, HandleId, TableId, Transaction};
///
/// let table = TableId::new(Family::IP, "t".parse()?);
/// let mut transaction = Transaction::new();
/// transaction.delete(HandleId::Set(table, 7)).delete(HandleId::Table(Family::IP6, 2));
/// assert_eq!(transaction.to_string(), "delete set ip t handle 7\ndelete table ip6 handle 2\n");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum HandleId {
    /// A table.
    Table(Family, u64),
    /// A chain.
    Chain(TableId, u64),
    /// A set or a map.
    Set(TableId, u64),
    /// A stateful object.
    Stateful(TableId, ObjectKind, u64),
    /// A flowtable.
    Flowtable(TableId, u64),
}

/// An object whose content can be removed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Flush {
    /// The whole ruleset of one family, or with [`Family::UNSPEC`] of all: the tables are deleted as well.
    Ruleset(Family),
    /// The rules of all chains of a table.
    Table(TableId),
    /// The rules of a chain.
    Chain(ChainId),
    /// The elements of a set or a map.
    Set(SetId),
}

impl Operation {
    /// Returns the verb of the operation.
    #[must_use]
    pub fn verb(&self) -> &'static str {
        match self {
            Self::Add(_) => "add",
            Self::Create(_) => "create",
            Self::Insert(_) => "insert",
            Self::Replace(_) => "replace",
            Self::Rename(_) => "rename",
            Self::Delete(_) => "delete",
            Self::Destroy(_) => "destroy",
            Self::Flush(_) => "flush",
        }
    }

    /// Returns the object that the operation deletes.
    pub(crate) fn deleted(&self) -> Option<&Target> {
        match self {
            Self::Delete(target) | Self::Destroy(target) => Some(target),
            _ => None,
        }
    }

    /// Returns the elements that the operation adds or deletes.
    pub(crate) fn elements(&self) -> Option<&Elements> {
        match self {
            Self::Add(Object::Elements(elements)) | Self::Create(Object::Elements(elements)) => {
                Some(elements)
            }
            other => match other.deleted()? {
                Target::Elements(elements) => Some(elements),
                _ => None,
            },
        }
    }

    /// Returns the operation on one of its elements alone; on none if there is none to tell. Operations on
    /// other objects are as they are.
    pub(crate) fn with_element(&self, element: Option<&Element>) -> Self {
        let Some(elements) = self.elements() else { return self.clone() };
        let one = Elements { set: elements.set.clone(), list: element.cloned().into_iter().collect() };
        match self {
            Self::Create(_) => Self::Create(one.into()),
            Self::Add(_) => Self::Add(one.into()),
            Self::Destroy(_) => Self::Destroy(Target::Elements(one)),
            _ => Self::Delete(Target::Elements(one)),
        }
    }

    /// Returns the rule that the operation adds, inserts or puts in place of another.
    #[cfg(feature = "text")]
    pub(crate) fn rule(&self) -> Option<&Rule> {
        match self {
            Self::Add(Object::Rule(rule))
            | Self::Create(Object::Rule(rule))
            | Self::Insert(rule)
            | Self::Replace(rule) => Some(rule),
            _ => None,
        }
    }

    /// Returns the set or map that the operation creates.
    pub(crate) fn set(&self) -> Option<&Set> {
        match self {
            Self::Add(Object::Set(set)) | Self::Create(Object::Set(set)) => Some(set),
            _ => None,
        }
    }

    /// Returns the table of the operation's object, or the object if it is a table; `None` if there are
    /// several tables, or if the table is given by its handle.
    #[cfg(feature = "reconcile")]
    pub(crate) fn in_table(&self) -> Option<&TableId> {
        match self {
            Self::Add(object) | Self::Create(object) => Some(object.in_table()),
            Self::Insert(rule) | Self::Replace(rule) => Some(&rule.chain.table),
            Self::Rename(rename) => Some(&rename.chain.table),
            Self::Delete(target) | Self::Destroy(target) => target.in_table(),
            Self::Flush(target) => match target {
                Flush::Ruleset(_) => None,
                Flush::Table(table) => Some(table),
                Flush::Chain(chain) => Some(&chain.table),
                Flush::Set(set) => Some(&set.table),
            },
        }
    }

    /// Returns the operation's object in nft's syntax: `set ip t s`.
    #[must_use]
    pub fn object(&self) -> String {
        match self {
            Self::Add(object) | Self::Create(object) => object.title(),
            Self::Insert(rule) | Self::Replace(rule) => format!("rule {}", rule.chain),
            Self::Rename(rename) => format!("chain {}", rename.chain),
            Self::Delete(target) | Self::Destroy(target) => target.title(),
            Self::Flush(target) => target.to_string(),
        }
    }
}

impl Object {
    /// Returns the table of the object, or the object if it is a table.
    pub(crate) fn in_table(&self) -> &TableId {
        match self {
            Self::Table(table) => &table.id,
            Self::Chain(chain) => &chain.id.table,
            Self::Rule(rule) => &rule.chain.table,
            Self::Set(set) => &set.id.table,
            Self::Elements(elements) => &elements.set.table,
            Self::Stateful(object) => &object.id.table,
            Self::Flowtable(flowtable) => &flowtable.id.table,
        }
    }

    fn title(&self) -> String {
        match self {
            Self::Table(table) => format!("table {}", table.id),
            Self::Chain(chain) => format!("chain {}", chain.id),
            Self::Rule(rule) => format!("rule {}", rule.chain),
            Self::Set(set) => format!("{} {}", set.word(), set.id),
            Self::Elements(elements) => format!("element {}", elements.set),
            Self::Stateful(object) => object.id.to_string(),
            Self::Flowtable(flowtable) => format!("flowtable {}", flowtable.id),
        }
    }
}

impl HandleId {
    /// Returns the table of the object; `None` for a table.
    pub(crate) fn in_table(&self) -> Option<&TableId> {
        match self {
            Self::Table(..) => None,
            Self::Chain(table, _)
            | Self::Set(table, _)
            | Self::Stateful(table, ..)
            | Self::Flowtable(table, _) => Some(table),
        }
    }
}

impl Target {
    #[cfg(feature = "reconcile")]
    fn in_table(&self) -> Option<&TableId> {
        match self {
            Self::Table(table) => Some(table),
            Self::Chain(chain) => Some(&chain.table),
            Self::Rule(rule) => Some(&rule.chain.table),
            Self::Set(set) => Some(&set.table),
            Self::Elements(elements) => Some(&elements.set.table),
            Self::Stateful(object) => Some(&object.table),
            Self::Flowtable(flowtable) => Some(&flowtable.table),
            Self::Handle(handle) => handle.in_table(),
            Self::Devices(devices) => match &devices.hook {
                HookOwner::Chain(chain) => Some(&chain.table),
                HookOwner::Flowtable(flowtable) => Some(&flowtable.table),
            },
        }
    }

    fn title(&self) -> String {
        match self {
            Self::Elements(elements) => format!("element {}", elements.set),
            other => other.to_string(),
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.verb())?;
        match self {
            Self::Add(object) | Self::Create(object) => object.fmt(f),
            Self::Insert(rule) => rule.write(f, None),
            Self::Replace(rule) => rule.fmt(f),
            Self::Rename(rename) => rename.fmt(f),
            Self::Delete(target) | Self::Destroy(target) => target.fmt(f),
            Self::Flush(target) => target.fmt(f),
        }
    }
}

impl fmt::Display for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Table(table) => table.fmt(f),
            Self::Chain(chain) => chain.fmt(f),
            Self::Rule(rule) => rule.write(f, None),
            Self::Set(set) => set.fmt(f),
            Self::Elements(elements) => elements.fmt(f),
            Self::Stateful(object) => object.fmt(f),
            Self::Flowtable(flowtable) => flowtable.fmt(f),
        }
    }
}

/// Formats the argument of an nft command: `chain ip t old new`.
impl fmt::Display for Rename {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "chain {} {}", self.chain, self.name)
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Table(table) => write!(f, "table {table}"),
            Self::Chain(chain) => write!(f, "chain {chain}"),
            Self::Rule(rule) => write!(f, "rule {rule}"),
            Self::Set(set) => write!(f, "{} {set}", if set.map { "map" } else { "set" }),
            Self::Elements(elements) => elements.write(f, true),
            Self::Stateful(object) => object.fmt(f),
            Self::Flowtable(flowtable) => write!(f, "flowtable {flowtable}"),
            Self::Handle(handle) => handle.fmt(f),
            Self::Devices(devices) => devices.fmt(f),
        }
    }
}

impl fmt::Display for HandleId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Table(family, handle) => write!(f, "table {family} handle {handle}"),
            Self::Chain(table, handle) => write!(f, "chain {table} handle {handle}"),
            Self::Set(table, handle) => write!(f, "set {table} handle {handle}"),
            Self::Stateful(table, kind, handle) => write!(f, "{kind} {table} handle {handle}"),
            Self::Flowtable(table, handle) => write!(f, "flowtable {table} handle {handle}"),
        }
    }
}

impl fmt::Display for Flush {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ruleset(Family::UNSPEC) => f.write_str("ruleset"),
            Self::Ruleset(family) => write!(f, "ruleset {family}"),
            Self::Table(table) => write!(f, "table {table}"),
            Self::Chain(chain) => write!(f, "chain {chain}"),
            Self::Set(set) => write!(f, "{} {set}", if set.map { "map" } else { "set" }),
        }
    }
}

macro_rules! into {
    ($($from:ty => $to:ident::$variant:ident;)*) => {$(
        impl From<$from> for $to {
            fn from(value: $from) -> Self {
                Self::$variant(value)
            }
        }
    )*};
}

into! {
    Table => Object::Table;
    Chain => Object::Chain;
    Rule => Object::Rule;
    Elements => Object::Elements;
    Flowtable => Object::Flowtable;
    TableId => Target::Table;
    ChainId => Target::Chain;
    RuleId => Target::Rule;
    SetId => Target::Set;
    Elements => Target::Elements;
    ObjectId => Target::Stateful;
    FlowtableId => Target::Flowtable;
    HandleId => Target::Handle;
    HookDevices => Target::Devices;
    TableId => Flush::Table;
    ChainId => Flush::Chain;
    SetId => Flush::Set;
}

impl From<Set> for Object {
    fn from(set: Set) -> Self {
        Self::Set(Box::new(set))
    }
}

impl From<StatefulObject> for Object {
    fn from(object: StatefulObject) -> Self {
        Self::Stateful(Box::new(object))
    }
}

macro_rules! into_cloned {
    ($($from:ty => $to:ident::$variant:ident;)*) => {$(
        impl From<&$from> for $to {
            fn from(value: &$from) -> Self {
                Self::$variant(value.clone())
            }
        }
    )*};
}

into_cloned! {
    TableId => Target::Table;
    ChainId => Target::Chain;
    RuleId => Target::Rule;
    SetId => Target::Set;
    TableId => Flush::Table;
    ChainId => Flush::Chain;
    SetId => Flush::Set;
}
