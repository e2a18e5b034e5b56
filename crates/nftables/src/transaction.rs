//! Transactions: operations in order, that print as nft text and are applied as a whole.

use std::collections::HashMap;
use std::fmt;

use crate::family::Family;
use crate::name::Name;
use crate::object::{
    Chain, ChainId, Element, Elements, Flowtable, FlowtableId, ObjectId, Rule, RuleId, Set, SetId,
    StatefulObject, Table, TableId,
};

/// Operations in the order in which the kernel is to take them.
///
/// Printed, it is a script that `nft -f` reads; applied, it is one netlink batch. Nothing of it happens unless all of it
/// can.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Transaction {
    operations: Vec<Operation>,
}

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
/// The kernel finds the chain by its handle alone, nft by its name: the two have to be of one chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rename {
    /// The chain, by the name that it has.
    pub chain: ChainId,
    /// Its handle, see [`read::Chain::handle`](crate::read::Chain::handle).
    pub handle: u64,
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

impl Transaction {
    /// Without operations.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// `add`: makes something; no error where it exists already. Rules are always made, at the end of their chain.
    pub fn add(&mut self, object: impl Into<Object>) -> &mut Self {
        self.push(Operation::Add(object.into()))
    }

    /// `create`: makes something; an error where it exists already. For rules as [`add`](Self::add).
    pub fn create(&mut self, object: impl Into<Object>) -> &mut Self {
        self.push(Operation::Create(object.into()))
    }

    /// `insert rule`: makes a rule at the start of its chain, or before the rule at its position.
    pub fn insert(&mut self, rule: Rule) -> &mut Self {
        self.push(Operation::Insert(rule))
    }

    /// `replace rule`: puts a rule in the place of the one with its handle.
    pub fn replace(&mut self, rule: Rule) -> &mut Self {
        self.push(Operation::Replace(rule))
    }

    /// `rename chain`: gives the chain with this handle another name, which no other chain of the table may have.
    ///
    /// What refers to the chain keeps doing so. The other operations of the transaction still know it by its old name. A chain that
    /// the transaction itself makes has no handle yet and cannot be renamed by it.
    ///
    /// ```
    /// use sluicegate_nftables::{Family, TableId, Transaction};
    ///
    /// let chain = TableId::new(Family::INET, "filter".parse()?).chain("old".parse()?);
    /// let mut transaction = Transaction::new();
    /// // `read::chains` tells the handle.
    /// transaction.rename(chain, 7, "new".parse()?);
    /// assert_eq!(transaction.to_string(), "rename chain inet filter old new\n");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn rename(&mut self, chain: ChainId, handle: u64, name: Name) -> &mut Self {
        self.push(Operation::Rename(Rename { chain, handle, name }))
    }

    /// `delete`: an error where it does not exist.
    pub fn delete(&mut self, target: impl Into<Target>) -> &mut Self {
        self.push(Operation::Delete(target.into()))
    }

    /// `destroy`: deletes; no error where it does not exist. Needs Linux 6.3; elsewhere, add and then delete.
    pub fn destroy(&mut self, target: impl Into<Target>) -> &mut Self {
        self.push(Operation::Destroy(target.into()))
    }

    /// `flush`: removes what it holds.
    pub fn flush(&mut self, target: impl Into<Flush>) -> &mut Self {
        self.push(Operation::Flush(target.into()))
    }

    /// Adds one element; one after the other to the same set become one operation.
    pub fn add_element(&mut self, set: &SetId, element: impl Into<Element>) -> &mut Self {
        if let Some(Operation::Add(Object::Elements(last))) = self.operations.last_mut()
            && last.set == *set
        {
            last.list.push(element.into());
            return self;
        }
        self.add(Elements::new(set, [element.into()]))
    }

    /// Deletes one element; one after the other from the same set become one operation.
    pub fn delete_element(&mut self, set: &SetId, element: impl Into<Element>) -> &mut Self {
        if let Some(Operation::Delete(Target::Elements(last))) = self.operations.last_mut()
            && last.set == *set
        {
            last.list.push(element.into());
            return self;
        }
        self.delete(Elements::new(set, [element.into()]))
    }

    /// Appends an operation.
    pub fn push(&mut self, operation: Operation) -> &mut Self {
        self.operations.push(operation);
        self
    }

    /// Appends all operations of another transaction.
    pub fn append(&mut self, mut other: Self) -> &mut Self {
        self.operations.append(&mut other.operations);
        self
    }

    /// The operations.
    #[must_use]
    pub fn operations(&self) -> &[Operation] {
        &self.operations
    }

    /// The sets that it makes.
    pub(crate) fn sets(&self) -> HashMap<&SetId, &Set> {
        let mut sets = HashMap::new();
        for operation in &self.operations {
            if let Operation::Add(Object::Set(set)) | Operation::Create(Object::Set(set)) = operation {
                sets.insert(&set.id, set);
            }
        }
        sets
    }

    /// The rules that are placed by counting.
    pub(crate) fn indexed(&self) -> impl Iterator<Item = &Rule> {
        self.operations.iter().filter_map(|operation| match operation {
            Operation::Add(Object::Rule(rule))
            | Operation::Create(Object::Rule(rule))
            | Operation::Insert(rule) => (rule.index.is_some() && rule.position.is_none()).then_some(rule),
            _ => None,
        })
    }

    /// Whether there is no operation.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.operations.is_empty()
    }
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

impl Target {
    fn title(&self) -> String {
        match self {
            Self::Elements(elements) => format!("element {}", elements.set),
            other => other.to_string(),
        }
    }
}

/// The whole script, one operation a line.
impl fmt::Display for Transaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.operations.iter().try_for_each(|operation| writeln!(f, "{operation}"))
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.verb())?;
        match self {
            Self::Add(object) | Self::Create(object) => object.fmt(f),
            Self::Insert(rule) | Self::Replace(rule) => rule.fmt(f),
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
            Self::Rule(rule) => rule.fmt(f),
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
