//! Operations: a verb and what it is about, as nft's commands say them.

use std::fmt;

use crate::expr::ObjectKind;
use crate::family::Family;
use crate::name::Name;
use crate::object::{
    Chain, ChainId, Elements, Flowtable, FlowtableId, HookDevices, ObjectId, Rule, RuleId, Set, SetId,
    StatefulObject, Table, TableId,
};

/// One operation of a transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Operation {
    /// `add`: makes it; no error where it exists already.
    Add(Object),
    /// `create`: makes it; an error where it exists already.
    Create(Object),
    /// `insert rule`: at the start of the chain, or before another rule.
    Insert(Rule),
    /// `replace rule`: puts it in the place of the one with its handle.
    Replace(Rule),
    /// `rename chain`: gives a chain another name.
    Rename(Rename),
    /// `delete`: an error where it does not exist.
    Delete(Target),
    /// `destroy`: deletes it; no error where it does not exist. Needs Linux 6.3, and nft 1.0.7 for the text.
    Destroy(Target),
    /// `flush`: removes what it holds: the rules of a table or chain, the elements of a set.
    Flush(Flush),
}

/// What can be made.
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
    Set(Set),
    /// Elements of a set or a map.
    Elements(Elements),
    /// A stateful object.
    Stateful(StatefulObject),
    /// A flowtable.
    Flowtable(Flowtable),
}

/// Another name for a chain.
///
/// The kernel finds the chain by its handle alone, nft by its name: where both are given, they have to be of one chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rename {
    /// The chain, by the name that it has.
    pub chain: ChainId,
    /// Its handle, see [`read::Chain::handle`](crate::read::Chain::handle); without one, it is asked for.
    pub handle: Option<u64>,
    /// The name that it gets.
    pub name: Name,
}

/// What can be deleted: by what names it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Target {
    /// A table with all that is in it.
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
    /// Devices of a base chain or a flowtable, which stays.
    Devices(HookDevices),
}

/// An object by the handle that the kernel gave it: what lists and events tell beside its name. A handle is never given again, a name may be.
///
/// Rules have no other name: see [`RuleId`].
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

/// What can be emptied.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Flush {
    /// Everything, of one family or, with [`Family::UNSPEC`], of all: tables, too, are gone.
    Ruleset(Family),
    /// The rules of all chains of a table.
    Table(TableId),
    /// The rules of a chain.
    Chain(ChainId),
    /// The elements of a set or a map.
    Set(SetId),
}

impl Operation {
    /// The verb.
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

    /// What it deletes.
    pub(crate) fn deleted(&self) -> Option<&Target> {
        match self {
            Self::Delete(target) | Self::Destroy(target) => Some(target),
            _ => None,
        }
    }

    /// The elements that it adds or deletes.
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

    /// What it is about, in few words: `set ip t s`.
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
    /// The table that it is, or that it is in.
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
    /// The table that it is in; `None` of a table itself.
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

/// As nft's command says it: `chain ip t old new`.
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
    Set => Object::Set;
    Elements => Object::Elements;
    StatefulObject => Object::Stateful;
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
