//! Sets and maps (`enum nft_set_attributes`): a map is a set whose elements carry data.

mod text;
pub(crate) mod wire;

use std::collections::HashMap;
use std::time::Duration;

use crate::datatype::{DataType, Order};
use crate::expr::ObjectKind;
use crate::key::Part;
use crate::name::Comment;
use crate::object::SetId;
use crate::tree::{Expression, Mapping, Statement};
use crate::wire::flags::flags;
pub(crate) use text::TypeLine;
pub(crate) use wire::length;

/// A set or a map.
///
/// Set a `size` if possible: the kernel then uses a hash table of fixed size, which inserts elements two to
/// three times as fast. The size is a hard limit.
///
/// ```
/// use sluicegate_nftables::{DataType, Family, Set, SetFlags, TableId, Transaction};
///
/// let blocked = TableId::new(Family::INET, "firewall".parse()?).set("blocked".parse()?);
/// let mut transaction = Transaction::new();
/// transaction.add(Set::new(blocked, DataType::IPV4_ADDR).flags(SetFlags::INTERVAL));
/// assert_eq!(
///     transaction.to_string(),
///     "add set inet firewall blocked { type ipv4_addr ; flags interval ; }\n"
/// );
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Set {
    /// The identifier.
    pub id: SetId,
    /// The type of its keys.
    pub key: SetType,
    /// For maps: the type of the data.
    pub data: Option<SetData>,
    /// Its flags.
    pub flags: SetFlags,
    /// The default timeout of elements.
    pub timeout: Option<Duration>,
    /// The interval of garbage collection, which removes expired elements. It needs
    /// [`timeout`](Self::timeout) or its flag. nft 1.0.6 reads it only for sets, but lists it for maps as
    /// well.
    pub gc_interval: Option<Duration>,
    /// The maximum number of elements.
    pub size: Option<u32>,
    /// The kernel's preference when it chooses a backend.
    pub policy: Option<SetPolicy>,
    /// Whether intervals that overlap or touch are merged, and parts of them can be deleted. The kernel only
    /// stores the flag. [`Transaction::apply`](crate::Transaction::apply) does as nft does: it reads the
    /// elements that the set has, and sends what leads from them to the wanted ones; if another program
    /// commits in the meantime, it reads again. [`Transaction::encode`](crate::Transaction::encode), which
    /// asks no kernel, merges the elements of the transaction only.
    pub auto_merge: bool,
    /// The statements of each element: counters, limits and the like.
    pub statements: Vec<Statement>,
    /// Its comment.
    pub comment: Option<Comment>,
}

/// The type of a key or of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SetType {
    /// `type a . b`
    Types(Vec<DataType>),
    /// `typeof EXPRESSION`: the type of an expression, usually a concatenation. Needed for expressions
    /// without a named type (`numgen`, raw payload).
    Typeof(Expression),
    /// `queue`, the numbers of queues that a map gives to the statement of that name. The keys of such a map
    /// are those of a [`Typeof`](Self::Typeof). nft supports it since 1.1.2. The user data that it stores
    /// with such a map makes nft 1.0.6 crash with a segmentation fault on any query of the table; where that
    /// version is in use, give [`Parts`](Self::Parts) of one two-byte integer in host order, which stores no
    /// such user data.
    Queue,
    /// Like [`Types`](Self::Types), but with integers of any length, which `type` cannot express: the type of
    /// a set that was read from the kernel, or of an anonymous set.
    Parts(Vec<Part>),
}

/// The data of a map.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SetData {
    /// Values.
    Value(SetType),
    /// Intervals of values, for address translation: `interval ipv4_addr`.
    Interval(SetType),
    /// Verdicts.
    Verdict,
    /// Stateful objects.
    Object(ObjectKind),
}

/// The preference when the kernel chooses a backend for a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SetPolicy {
    /// `performance`, the default.
    Performance,
    /// `memory`
    Memory,
}

flags! {
    /// Flags of a set (`enum nft_set_flags`).
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub struct SetFlags: u32 {
        /// `NFT_SET_ANONYMOUS`: it belongs to a rule and is deleted with it.
        const ANONYMOUS = 1;
        /// `constant`: its elements cannot change once a rule uses it.
        const CONSTANT = 2;
        /// `interval`: elements may be ranges and prefixes.
        const INTERVAL = 4;
        /// `NFT_SET_MAP`: it is a map with values or verdicts.
        const MAP = 8;
        /// `timeout`: elements can have a timeout.
        const TIMEOUT = 0x10;
        /// `dynamic` (`NFT_SET_EVAL`): rules can add, update and delete elements.
        const DYNAMIC = 0x20;
        /// `NFT_SET_OBJECT`: it is a map with stateful objects.
        const OBJECT = 0x40;
        /// `NFT_SET_CONCAT`: its keys are concatenations with intervals.
        const CONCAT = 0x80;
        /// `NFT_SET_EXPR`: its elements carry several expressions.
        const EXPR = 0x100;

        const _ = !0;
    }
}

impl Set {
    /// Creates a set.
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

    /// Creates a map from keys to values.
    pub fn map(id: SetId, key: impl Into<SetType>, data: impl Into<SetType>) -> Self {
        Self { data: Some(SetData::Value(data.into())), ..Self::new(id, key) }.named_as_map()
    }

    /// Creates a map from keys to intervals of values, for address translation: `interval ipv4_addr`.
    pub fn interval_map(id: SetId, key: impl Into<SetType>, data: impl Into<SetType>) -> Self {
        Self { data: Some(SetData::Interval(data.into())), ..Self::new(id, key) }.named_as_map()
    }

    /// Creates a map from keys to verdicts.
    pub fn verdict_map(id: SetId, key: impl Into<SetType>) -> Self {
        Self { data: Some(SetData::Verdict), ..Self::new(id, key) }.named_as_map()
    }

    /// Creates a map from keys to stateful objects.
    pub fn object_map(id: SetId, key: impl Into<SetType>, of: ObjectKind) -> Self {
        Self { data: Some(SetData::Object(of)), ..Self::new(id, key) }.named_as_map()
    }

    /// Sets the flags, replacing those before. The flag that [`timeout`](Self::timeout) requires is always
    /// sent.
    #[must_use]
    pub fn flags(mut self, flags: SetFlags) -> Self {
        self.flags = flags;
        self
    }

    /// Merges intervals that overlap or touch ([`auto_merge`](Self::auto_merge)), and sets the flag
    /// `interval`.
    ///
    /// ```
    /// use std::net::Ipv4Addr;
    ///
    /// use sluicegate_nftables::fake::Fake;
    /// use sluicegate_nftables::{DataType, Element, Family, Set, Table, TableId, Transaction, read};
    ///
    /// let set = TableId::new(Family::INET, "t".parse()?).set("blocked".parse()?);
    /// let mut tx = Transaction::new();
    /// tx.add(Table::new(set.table.clone()));
    /// tx.add(Set::new(set.clone(), DataType::IPV4_ADDR).auto_merge());
    /// tx.add_element(&set, Element::prefix(Ipv4Addr::new(10, 0, 0, 0), 8)?);
    /// let mut kernel = Fake::new(); // or a socket
    /// tx.apply(&mut kernel)?;
    ///
    /// let mut tx = Transaction::new();
    /// tx.add_element(&set, Element::prefix(Ipv4Addr::new(10, 1, 0, 0), 16)?);
    /// tx.delete_element(&set, Ipv4Addr::new(10, 0, 0, 0));
    /// tx.apply(&mut kernel)?;
    /// let content = read::ruleset(&mut kernel, &set.table)?.content();
    /// let merged = Ipv4Addr::new(10, 0, 0, 1)..=Ipv4Addr::new(10, 255, 255, 255);
    /// assert_eq!(content[0].sets[0].1, [Element::from(merged)]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn auto_merge(mut self) -> Self {
        self.auto_merge = true;
        self.flags |= SetFlags::INTERVAL;
        self
    }

    /// Sets the maximum number of elements.
    #[must_use]
    pub fn size(mut self, size: u32) -> Self {
        self.size = Some(size);
        self
    }

    /// Sets the timeout of elements, and the flag for it.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self.flags |= SetFlags::TIMEOUT;
        self
    }

    /// Sets the interval at which the kernel removes expired elements.
    #[must_use]
    pub fn gc_interval(mut self, interval: Duration) -> Self {
        self.gc_interval = Some(interval);
        self
    }

    /// Sets what the kernel prefers when it chooses a backend.
    #[must_use]
    pub fn policy(mut self, policy: SetPolicy) -> Self {
        self.policy = Some(policy);
        self
    }

    /// Appends a statement that each element gets a copy of, such as a counter.
    #[must_use]
    pub fn statement(mut self, statement: impl Into<Statement>) -> Self {
        self.statements.push(statement.into());
        self
    }

    /// Sets the comment.
    #[must_use]
    pub fn comment(mut self, comment: Comment) -> Self {
        self.comment = Some(comment);
        self
    }

    /// Returns the length of a key in registers, in bytes.
    pub(crate) fn key_bytes(&self) -> u32 {
        length(&self.key.parts())
    }

    /// Returns whether it is an anonymous set, which belongs to a rule.
    pub(crate) fn is_anonymous(&self) -> bool {
        self.flags.contains(SetFlags::ANONYMOUS)
    }

    /// Returns `set` or `map`.
    pub(crate) fn word(&self) -> &'static str {
        if self.data.is_some() { "map" } else { "set" }
    }

    fn named_as_map(mut self) -> Self {
        self.id.map = true;
        self
    }

    /// Returns the flags that nft prints.
    pub(crate) fn flag_names(&self) -> Vec<&'static str> {
        // A default timeout implies the flag: nft prints it only next to other flags.
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
    /// Returns the types of its parts, one for each part of a concatenation.
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

impl<V> From<&SetId> for Mapping<V> {
    fn from(map: &SetId) -> Self {
        Self::Named(map.name.clone())
    }
}

impl From<&SetId> for Expression {
    fn from(set: &SetId) -> Self {
        Self::named(&set.name)
    }
}

/// Returns the known definition of a set or map. The kernel and nft's text do not distinguish the two in
/// references.
pub(crate) fn known<'s>(sets: &HashMap<&SetId, &'s Set>, id: &SetId) -> Option<&'s Set> {
    let other = || SetId { map: !id.map, ..id.clone() };
    sets.get(id).or_else(|| sets.get(&other())).copied()
}
