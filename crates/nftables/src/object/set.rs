//! Sets and maps (`enum nft_set_attributes`): a map is a set whose elements carry data.

use std::fmt;
use std::time::Duration;

use bitflags::bitflags;

use crate::datatype::DataType;
use crate::expr::ObjectKind;
use crate::key::Part;
use crate::lang::{Expression, Statement};
use crate::name::{Comment, Name};
use crate::object::TableId;

/// What names a set or a map: its table and its name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SetId {
    /// The table.
    pub table: TableId,
    /// The name.
    pub name: Name,
    /// Whether it is a map. The kernel does not care; nft's text does.
    pub map: bool,
}

impl fmt::Display for SetId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.table, self.name)
    }
}

/// A set or a map.
///
/// Give a `size` where you can: a set with one uses a table of fixed size and takes elements two to three times as fast.
/// It is a hard limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Set {
    /// What names it.
    pub id: SetId,
    /// The type of its keys.
    pub key: SetType,
    /// For maps: what they map to.
    pub data: Option<SetData>,
    /// Its flags.
    pub flags: SetFlags,
    /// When an element goes, unless it says otherwise.
    pub timeout: Option<Duration>,
    /// How often elements whose time is up are removed.
    pub gc_interval: Option<Duration>,
    /// The most elements that there may be.
    pub size: Option<u32>,
    /// What to prefer when the kernel chooses a representation.
    pub policy: Option<SetPolicy>,
    /// Whether nft merges intervals that overlap or touch. User space's business: the kernel only keeps the word.
    pub auto_merge: bool,
    /// What each element carries: counters, limits and the like.
    pub statements: Vec<Statement>,
    /// Its comment.
    pub comment: Option<Comment>,
}

/// The type of a key or of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SetType {
    /// `type a . b`
    Types(Vec<DataType>),
    /// `typeof EXPRESSION`: that of an expression, a concatenation mostly. Needed for what has no type of its own (`numgen`, raw payload).
    Typeof(Expression),
}

/// What a map maps to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SetData {
    /// Values.
    Value(SetType),
    /// Verdicts.
    Verdict,
    /// Stateful objects.
    Object(ObjectKind),
}

/// What to prefer when the kernel chooses a set's representation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SetPolicy {
    /// `performance`, the default.
    Performance,
    /// `memory`
    Memory,
}

bitflags! {
    /// Flags of a set (`enum nft_set_flags`) that its owner chooses. The kernel's other ones follow from the rest.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub struct SetFlags: u32 {
        /// `NFT_SET_ANONYMOUS`: it belongs to a rule and goes with it.
        const ANONYMOUS = 1;
        /// `constant`: its elements do not change once a rule uses it.
        const CONSTANT = 2;
        /// `interval`: elements may be ranges and prefixes.
        const INTERVAL = 4;
        /// `NFT_SET_MAP`: it is a map of values or verdicts.
        const MAP = 8;
        /// `timeout`: elements may go by themselves.
        const TIMEOUT = 0x10;
        /// `dynamic` (`NFT_SET_EVAL`): rules may change it.
        const DYNAMIC = 0x20;
        /// `NFT_SET_OBJECT`: it is a map of stateful objects.
        const OBJECT = 0x40;
        /// `NFT_SET_CONCAT`: its intervals are of concatenations.
        const CONCAT = 0x80;
        /// `NFT_SET_EXPR`: its elements carry several expressions.
        const EXPR = 0x100;

        const _ = !0;
    }
}

impl Set {
    /// A set of keys.
    pub fn new(id: SetId, key: impl Into<SetType>) -> Self {
        Self {
            id,
            key: key.into(),
            data: None,
            flags: SetFlags::empty(),
            timeout: None,
            gc_interval: None,
            size: None,
            policy: None,
            auto_merge: false,
            statements: Vec::new(),
            comment: None,
        }
    }

    /// A map from keys to values.
    pub fn map(id: SetId, key: impl Into<SetType>, data: impl Into<SetType>) -> Self {
        Self { data: Some(SetData::Value(data.into())), ..Self::new(id, key) }.named_as_map()
    }

    /// A map from keys to verdicts.
    pub fn verdict_map(id: SetId, key: impl Into<SetType>) -> Self {
        Self { data: Some(SetData::Verdict), ..Self::new(id, key) }.named_as_map()
    }

    /// A map from keys to stateful objects.
    pub fn object_map(id: SetId, key: impl Into<SetType>, of: ObjectKind) -> Self {
        Self { data: Some(SetData::Object(of)), ..Self::new(id, key) }.named_as_map()
    }

    /// With these flags.
    #[must_use]
    pub fn flags(mut self, flags: SetFlags) -> Self {
        self.flags = flags;
        self
    }

    /// With room for so many elements.
    #[must_use]
    pub fn size(mut self, size: u32) -> Self {
        self.size = Some(size);
        self
    }

    /// With a time after which elements go; sets the flag too.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self.flags |= SetFlags::TIMEOUT;
        self
    }

    /// With a comment.
    #[must_use]
    pub fn comment(mut self, comment: Comment) -> Self {
        self.comment = Some(comment);
        self
    }

    /// `set` or `map`.
    pub(crate) fn word(&self) -> &'static str {
        if self.data.is_some() { "map" } else { "set" }
    }

    fn named_as_map(mut self) -> Self {
        self.id.map = true;
        self
    }

    /// The flags that nft's text shows.
    pub(crate) fn flag_names(&self) -> Vec<&'static str> {
        [
            (SetFlags::CONSTANT, "constant"),
            (SetFlags::DYNAMIC, "dynamic"),
            (SetFlags::INTERVAL, "interval"),
            (SetFlags::TIMEOUT, "timeout"),
        ]
        .into_iter()
        .filter(|(flag, _)| self.flags.contains(*flag))
        .map(|(_, name)| name)
        .collect()
    }
}

impl SetType {
    /// The types of its parts.
    #[must_use]
    pub fn parts(&self) -> Vec<Part> {
        match self {
            Self::Types(types) => types.iter().copied().map(Part::Type).collect(),
            Self::Typeof(expression) => expression.parts(),
        }
    }
}

impl From<DataType> for SetType {
    fn from(of: DataType) -> Self {
        Self::Types(vec![of])
    }
}

impl<const N: usize> From<[DataType; N]> for SetType {
    fn from(types: [DataType; N]) -> Self {
        Self::Types(types.into())
    }
}

impl From<Expression> for SetType {
    fn from(of: Expression) -> Self {
        Self::Typeof(of)
    }
}

impl fmt::Display for SetType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Typeof(expression) => expression.fmt(f),
            Self::Types(types) => {
                for (i, of) in types.iter().enumerate() {
                    write!(f, "{}{of}", if i > 0 { " . " } else { "" })?;
                }
                Ok(())
            }
        }
    }
}

/// `type a . b : c`, or `typeof a . b : c`.
pub(crate) struct TypeLine<'a>(pub(crate) &'a Set);

impl fmt::Display for TypeLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Set { key, data, .. } = self.0;
        f.write_str(if matches!(key, SetType::Typeof(_)) { "typeof " } else { "type " })?;
        key.fmt(f)?;
        match data {
            None => Ok(()),
            Some(SetData::Value(of)) => write!(f, " : {of}"),
            Some(SetData::Verdict) => f.write_str(" : verdict"),
            Some(SetData::Object(kind)) => write!(f, " : {kind}"),
        }
    }
}

/// As nft's commands say it: `set ip t s { type ipv4_addr ; size 10 ; }`.
impl fmt::Display for Set {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {{ {} ;", self.word(), self.id, TypeLine(self))?;
        for line in self.properties() {
            write!(f, " {line} ;")?;
        }
        f.write_str(" }")
    }
}

impl Set {
    /// Everything between the type and the elements, in nft's order.
    pub(crate) fn properties(&self) -> Vec<String> {
        use crate::lang::Time;
        let flags = self.flag_names();
        let policy = match self.policy {
            Some(SetPolicy::Memory) => Some("policy memory".to_owned()),
            _ => None,
        };
        let mut lines: Vec<String> = [
            policy,
            self.size.map(|size| format!("size {size}")),
            (!flags.is_empty()).then(|| format!("flags {}", flags.join(","))),
            self.timeout.map(|timeout| format!("timeout {}", Time(timeout))),
            self.gc_interval.map(|interval| format!("gc-interval {}", Time(interval))),
            self.auto_merge.then(|| "auto-merge".to_owned()),
        ]
        .into_iter()
        .flatten()
        .collect();
        if !self.statements.is_empty() {
            let statements: Vec<_> = self.statements.iter().map(ToString::to_string).collect();
            lines.push(statements.join(" "));
        }
        lines.extend(self.comment.as_ref().map(|comment| format!("comment {comment}")));
        lines
    }
}
