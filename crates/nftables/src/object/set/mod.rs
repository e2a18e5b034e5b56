//! Sets and maps (`enum nft_set_attributes`): a map is a set whose elements carry data.

mod text;
mod wire;

use std::fmt;
use std::time::Duration;

use bitflags::bitflags;

use crate::datatype::{DataType, Order};
use crate::expr::ObjectKind;
use crate::key::Part;
use crate::lang::{Expression, Statement};
use crate::name::{Comment, Name};
use crate::object::TableId;
pub(crate) use text::TypeLine;
pub(crate) use wire::length;
pub(crate) use wire::{DATA_TYPEOF, KEY_TYPEOF, NFTA_SET_NAME, NFTA_SET_TABLE};

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
    /// How often elements whose time is up are removed. It needs [`timeout`](Self::timeout) or its flag. nft 1.0.6 reads it of sets alone, and lists it of
    /// maps as well.
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
    /// `queue`, the numbers of queues that a map gives to the statement of that name. The keys of such a map are those of a [`Typeof`](Self::Typeof).
    /// nft reads and shows it since 1.1.2. What it notes with such a map ends nft 1.0.6, whatever that is asked of the table, with a segmentation
    /// fault; where that version is in use, give [`Parts`](Self::Parts) of one integer of two bytes in the host's order, which is noted as nothing.
    Queue,
    /// As [`Types`](Self::Types), with integers of any width, which `type` cannot say: what a set that was read from the kernel has, and one
    /// without a name.
    Parts(Vec<Part>),
}

/// What a map maps to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SetData {
    /// Values.
    Value(SetType),
    /// Intervals of values, as address translation takes them: `interval ipv4_addr`.
    Interval(SetType),
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

    /// With these flags, instead of those before. What [`timeout`](Self::timeout) needs is sent in either order.
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

    /// Bytes of a key in registers.
    pub(crate) fn key_bytes(&self) -> u32 {
        length(&self.key.parts())
    }

    /// Whether it belongs to a rule.
    pub(crate) fn is_anonymous(&self) -> bool {
        self.flags.contains(SetFlags::ANONYMOUS)
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
        // A set with a default timeout needs no flag for it, but nft shows it beside others.
        if self.timeout.is_some() && self.flags == SetFlags::TIMEOUT {
            return Vec::new();
        }
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
            Self::Queue => vec![Part::Integer { bytes: 2, order: Order::Host }],
            Self::Parts(parts) => parts.clone(),
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
