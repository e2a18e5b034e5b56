//! Commands of a script: operations and queries.

use std::fmt;

use crate::datatype::DataType;
use crate::expr::ObjectKind;
use crate::family::Family;
use crate::name::{InterfaceName, Name};
use crate::object::{ChainId, Elements, FlowtableId, ObjectId, RuleId, SetId, TableId};
use crate::transaction::Operation;
use crate::tree::Expression;

/// A command of a script: an operation or a query.
///
/// A [`Transaction`](crate::Transaction) consists of operations only; a
/// [`Script`](crate::lang::parse::Script) can have both.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Command {
    /// `add`, `delete` and the like.
    Operation(Operation),
    /// `list`
    List(Subject),
    /// `reset`: lists objects and resets their state.
    Reset(Subject),
    /// `get element`
    Get(Elements),
    /// `monitor`
    Monitor(MonitorFilter),
    /// `describe`
    Describe(Description),
}

/// The objects to list or reset.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Subject {
    /// `ruleset`: all tables of a family, or of all families with [`Family::UNSPEC`].
    Ruleset(Family),
    /// `tables`
    Tables(Family),
    /// `table`
    Table(TableId),
    /// `chains`
    Chains(Family),
    /// `chain`
    Chain(ChainId),
    /// `rules`
    Rules(Within),
    /// `rules chain`: the rules of a chain.
    RulesOf(ChainId),
    /// `rule`
    Rule(RuleId),
    /// `sets`
    Sets(Within),
    /// `maps`
    Maps(Within),
    /// `set` or `map`
    Set(SetId),
    /// `element`
    Elements(Elements),
    /// `meters`
    Meters(Within),
    /// `meter`
    Meter(SetId),
    /// `flowtables`
    Flowtables(Within),
    /// `flowtable`
    Flowtable(FlowtableId),
    /// `counters`, `quotas`, `ct helpers` and the like.
    Objects(ObjectKind, Within),
    /// `counter`, `quota`, `ct helper` and the like.
    Object(ObjectId),
    /// `hooks`
    Hooks {
        /// The family, or all families with [`Family::UNSPEC`].
        family: Family,
        /// The device.
        device: Option<InterfaceName>,
    },
}

/// The tables whose objects are listed: those of a family, or a single one.
///
/// The kernel filters a dump by either. The functions of [`read`](mod@crate::read) take a [`Family`] or a
/// [`TableId`] in its place.
///
/// ```
/// use sluicegate_nftables::fake::Fake;
/// use sluicegate_nftables::{Family, TableId, read};
///
/// let mut kernel = Fake::new();
/// let table = TableId::new(Family::INET, "filter".parse()?);
/// let rules_of_table = read::rules(&mut kernel, &table)?;
/// let all_rules = read::rules(&mut kernel, Family::UNSPEC)?;
/// assert!(rules_of_table.len() <= all_rules.len());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Within {
    /// All tables of a family, or of all families with [`Family::UNSPEC`].
    Family(Family),
    /// One table.
    Table(TableId),
}

/// The events that `monitor` prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct MonitorFilter {
    /// Only additions, or only deletions.
    pub event: Option<MonitorEvent>,
    /// Only events of these objects.
    pub object: Option<MonitorObject>,
    /// Print as JSON.
    pub json: bool,
}

/// An event of `monitor`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MonitorEvent {
    /// `new`
    New,
    /// `destroy`
    Destroy,
}

/// The objects whose events `monitor` prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MonitorObject {
    /// `tables`
    Tables,
    /// `chains`
    Chains,
    /// `rules`
    Rules,
    /// `sets`
    Sets,
    /// `elements`
    Elements,
    /// `ruleset`
    Ruleset,
    /// `trace`
    Trace,
}

/// The expression or type that `describe` explains.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Description {
    /// An expression: `describe tcp flags`.
    Expression(Expression),
    /// A data type: `describe ct_state`.
    Type(DataType),
}

impl From<Operation> for Command {
    fn from(operation: Operation) -> Self {
        Self::Operation(operation)
    }
}

/// Formats the argument of an nft command: `list table ip t`.
impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Operation(operation) => operation.fmt(f),
            Self::List(subject) => write!(f, "list {subject}"),
            Self::Reset(subject) => write!(f, "reset {subject}"),
            Self::Get(elements) => write!(f, "get {elements}"),
            Self::Monitor(filter) => filter.fmt(f),
            Self::Describe(Description::Expression(expression)) => write!(f, "describe {expression}"),
            Self::Describe(Description::Type(of)) => write!(f, "describe {of}"),
        }
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ruleset(family) => write_of(f, "ruleset", *family),
            Self::Tables(family) => write_of(f, "tables", *family),
            Self::Table(table) => write!(f, "table {table}"),
            Self::Chains(family) => write_of(f, "chains", *family),
            Self::Chain(chain) => write!(f, "chain {chain}"),
            Self::Rules(within) => within.write(f, "rules"),
            Self::RulesOf(chain) => write!(f, "rules chain {chain}"),
            Self::Rule(rule) => write!(f, "rule {rule}"),
            Self::Sets(within) => within.write(f, "sets"),
            Self::Maps(within) => within.write(f, "maps"),
            Self::Set(set) => write!(f, "{} {set}", if set.map { "map" } else { "set" }),
            Self::Elements(elements) => elements.fmt(f),
            Self::Meters(within) => within.write(f, "meters"),
            Self::Meter(meter) => write!(f, "meter {meter}"),
            Self::Flowtables(within) => within.write(f, "flowtables"),
            Self::Flowtable(flowtable) => write!(f, "flowtable {flowtable}"),
            Self::Objects(ObjectKind::CT_HELPER, within) => within.write(f, "ct helpers"),
            // nft has no plural for these kinds.
            Self::Objects(kind @ (ObjectKind::CT_TIMEOUT | ObjectKind::CT_EXPECT), within) => {
                within.write(f, kind.name().unwrap_or_default())
            }
            Self::Objects(kind, within) => within.write(f, &format!("{kind}s")),
            Self::Object(object) => object.fmt(f),
            Self::Hooks { family, device } => {
                write_of(f, "hooks", *family)?;
                device.iter().try_for_each(|device| write!(f, " device {device}"))
            }
        }
    }
}

impl Within {
    /// Returns the family of the tables; [`Family::UNSPEC`] for all families.
    pub(crate) fn family(&self) -> Family {
        match self {
            Self::Family(family) => *family,
            Self::Table(table) => table.family,
        }
    }

    /// Returns the name of the table, if it is a single one.
    pub(crate) fn table(&self) -> Option<&Name> {
        match self {
            Self::Family(_) => None,
            Self::Table(table) => Some(&table.name),
        }
    }

    /// Returns whether a table of the family is one of these tables.
    pub(crate) fn has(&self, table: &Name) -> bool {
        self.table().is_none_or(|name| name == table)
    }

    fn write(&self, f: &mut fmt::Formatter<'_>, what: &str) -> fmt::Result {
        match self {
            Self::Family(family) => write_of(f, what, *family),
            Self::Table(table) => write!(f, "{what} table {table}"),
        }
    }
}

impl From<Family> for Within {
    fn from(family: Family) -> Self {
        Self::Family(family)
    }
}

impl From<TableId> for Within {
    fn from(table: TableId) -> Self {
        Self::Table(table)
    }
}

impl From<&TableId> for Within {
    fn from(table: &TableId) -> Self {
        Self::Table(table.clone())
    }
}

impl From<&Within> for Within {
    fn from(within: &Within) -> Self {
        within.clone()
    }
}

fn write_of(f: &mut fmt::Formatter<'_>, what: &str, family: Family) -> fmt::Result {
    if family == Family::UNSPEC { f.write_str(what) } else { write!(f, "{what} {family}") }
}

impl fmt::Display for MonitorFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("monitor")?;
        match self.event {
            Some(MonitorEvent::New) => f.write_str(" new")?,
            Some(MonitorEvent::Destroy) => f.write_str(" destroy")?,
            None => {}
        }
        match self.object {
            Some(MonitorObject::Tables) => f.write_str(" tables")?,
            Some(MonitorObject::Chains) => f.write_str(" chains")?,
            Some(MonitorObject::Rules) => f.write_str(" rules")?,
            Some(MonitorObject::Sets) => f.write_str(" sets")?,
            Some(MonitorObject::Elements) => f.write_str(" elements")?,
            Some(MonitorObject::Ruleset) => f.write_str(" ruleset")?,
            Some(MonitorObject::Trace) => f.write_str(" trace")?,
            None => {}
        }
        if self.json { f.write_str(" json") } else { Ok(()) }
    }
}
