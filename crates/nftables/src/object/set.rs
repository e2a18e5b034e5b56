//! Sets and maps (`enum nft_set_attributes`): a map is a set whose elements carry data.

use std::fmt;
use std::time::Duration;

use bitflags::bitflags;
use sluicegate_netlink::attr::Writer;

use crate::datatype::{DataType, Order};
use crate::expr::ObjectKind;
use crate::expr::wire::NFTA_LIST_ELEM;
use crate::key::Part;
use crate::lang::{Expression, Statement, Time, stateful};
use crate::name::{Comment, Name};
use crate::object::{TableId, typeof_data, userdata};

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
    /// As [`Types`](Self::Types), with integers of any width, which `type` cannot say: what a set that was read from the kernel has, and one
    /// without a name.
    Parts(Vec<Part>),
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

impl fmt::Display for SetType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Typeof(expression) => expression.fmt(f),
            Self::Types(types) => write_types(f, types.iter().copied()),
            Self::Parts(parts) => write_types(f, parts.iter().map(|part| part.data_type())),
        }
    }
}

fn write_types(f: &mut fmt::Formatter<'_>, types: impl Iterator<Item = DataType>) -> fmt::Result {
    for (i, of) in types.enumerate() {
        write!(f, "{}{of}", if i > 0 { " . " } else { "" })?;
    }
    Ok(())
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
        let flags = self.flag_names();
        let policy = match self.policy {
            Some(SetPolicy::Memory) => Some("policy memory".to_owned()),
            _ => None,
        };
        let statements: Vec<_> = self.statements.iter().map(ToString::to_string).collect();
        let mut lines: Vec<String> = [
            policy,
            self.size.map(|size| format!("size {size}")),
            (!flags.is_empty()).then(|| format!("flags {}", flags.join(","))),
            self.auto_merge.then(|| "auto-merge".to_owned()),
            (!statements.is_empty()).then(|| statements.join(" ")),
            self.timeout.map(|timeout| format!("timeout {}", Time(timeout))),
            self.gc_interval.map(|interval| format!("gc-interval {}", Time(interval))),
        ]
        .into_iter()
        .flatten()
        .collect();
        lines.extend(self.comment.as_ref().map(|comment| format!("comment {comment}")));
        lines
    }
}

impl Set {
    /// Appends its attributes. `number` is its number in the batch.
    pub(crate) fn encode(&self, w: &mut Writer<'_>, number: u32) {
        let key = self.key.parts();
        w.put_str(NFTA_SET_TABLE, &self.id.table.name);
        w.put_str(NFTA_SET_NAME, &self.id.name);
        w.put_be32(NFTA_SET_FLAGS, self.wire_flags(key.len()).bits());
        w.put_be32(NFTA_SET_KEY_TYPE, type_code(&key));
        w.put_be32(NFTA_SET_KEY_LEN, length(&key));
        match &self.data {
            None => {}
            Some(SetData::Value(of)) => {
                let parts = of.parts();
                w.put_be32(NFTA_SET_DATA_TYPE, type_code(&parts));
                w.put_be32(NFTA_SET_DATA_LEN, length(&parts));
            }
            Some(SetData::Verdict) => {
                w.put_be32(NFTA_SET_DATA_TYPE, NFT_DATA_VERDICT);
                w.put_be32(NFTA_SET_DATA_LEN, 0);
            }
            Some(SetData::Object(kind)) => w.put_be32(NFTA_SET_OBJ_TYPE, kind.0),
        }
        w.put_be32(NFTA_SET_ID, number);
        if self.policy == Some(SetPolicy::Memory) {
            w.put_be32(NFTA_SET_POLICY, 1);
        }
        self.encode_description(&key, w);
        if let Some(timeout) = self.timeout {
            w.put_be64(NFTA_SET_TIMEOUT, u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX));
        }
        if let Some(interval) = self.gc_interval {
            w.put_be32(NFTA_SET_GC_INTERVAL, u32::try_from(interval.as_millis()).unwrap_or(u32::MAX));
        }
        w.put(NFTA_SET_USERDATA, &self.user_data(&key));
        let exprs: Vec<_> = self.statements.iter().filter_map(stateful).collect();
        match exprs.as_slice() {
            [] => {}
            [one] => one.encode(w, NFTA_SET_EXPR),
            several => {
                let mut list = w.nest(NFTA_SET_EXPRESSIONS);
                several.iter().for_each(|expr| expr.encode(&mut list, NFTA_LIST_ELEM));
            }
        }
    }

    fn wire_flags(&self, parts: usize) -> SetFlags {
        let mut flags = self.flags;
        match self.data {
            None => {}
            Some(SetData::Object(_)) => flags |= SetFlags::OBJECT,
            Some(_) => flags |= SetFlags::MAP,
        }
        flags.set(SetFlags::TIMEOUT, self.timeout.is_some() || flags.contains(SetFlags::TIMEOUT));
        flags.set(SetFlags::CONCAT, parts > 1 && flags.contains(SetFlags::INTERVAL));
        flags.set(SetFlags::EXPR, self.statements.len() > 1);
        flags
    }

    fn encode_description(&self, key: &[Part], w: &mut Writer<'_>) {
        let fields = key.len() > 1 && self.flags.contains(SetFlags::INTERVAL);
        if self.size.is_none() && !fields {
            return;
        }
        let mut description = w.nest(NFTA_SET_DESC);
        if let Some(size) = self.size {
            description.put_be32(NFTA_SET_DESC_SIZE, size);
        }
        if fields {
            let mut concat = description.nest(NFTA_SET_DESC_CONCAT);
            for part in key {
                let bytes = u32::try_from(part.bytes()).unwrap_or(0);
                concat.nest(NFTA_LIST_ELEM).put_be32(NFTA_SET_FIELD_LEN, bytes);
            }
        }
    }

    /// What nft keeps for itself: byte orders, types, comment. Without it `nft list` shows numbers turned round.
    fn user_data(&self, key: &[Part]) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(64);
        userdata::push_u32(&mut bytes, KEYBYTEORDER, byte_order(key));
        match &self.data {
            Some(SetData::Value(of)) => {
                userdata::push_u32(&mut bytes, DATABYTEORDER, byte_order(&of.parts()));
            }
            Some(SetData::Verdict) => userdata::push_u32(&mut bytes, DATABYTEORDER, 0),
            _ => {}
        }
        if self.auto_merge {
            userdata::push_u32(&mut bytes, MERGE_ELEMENTS, 1);
        }
        if let Some(of) = typeof_data::encode(&self.key) {
            userdata::push(&mut bytes, KEY_TYPEOF, &of);
        }
        if let Some(SetData::Value(data)) = &self.data
            && let Some(of) = typeof_data::encode(data)
        {
            userdata::push(&mut bytes, DATA_TYPEOF, &of);
        }
        if self.data.is_some() {
            userdata::push_u32(&mut bytes, DATA_INTERVAL, 0);
        }
        if let Some(comment) = &self.comment {
            userdata::push_comment(&mut bytes, SET_COMMENT, comment);
        }
        bytes
    }
}

/// nft's number of a type: six bits for each part.
pub(crate) fn type_code(parts: &[Part]) -> u32 {
    parts.iter().fold(0, |code, part| code << 6 | u32::from(part.data_type().id()))
}

/// Bytes of a value: one part as it is, several padded.
fn length(parts: &[Part]) -> u32 {
    let bytes = match parts {
        [only] => only.bytes(),
        parts => parts.iter().map(|part| part.bytes().next_multiple_of(4)).sum(),
    };
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

/// nft's number of a byte order: none for a concatenation, which has several.
fn byte_order(parts: &[Part]) -> u32 {
    match parts {
        [only] if only.order() == Order::Host => 1,
        [_] => 2,
        _ => 0,
    }
}

pub(crate) const NFTA_SET_TABLE: u16 = 1;
pub(crate) const NFTA_SET_NAME: u16 = 2;
const NFTA_SET_FLAGS: u16 = 3;
const NFTA_SET_KEY_TYPE: u16 = 4;
const NFTA_SET_KEY_LEN: u16 = 5;
const NFTA_SET_DATA_TYPE: u16 = 6;
const NFTA_SET_DATA_LEN: u16 = 7;
const NFTA_SET_POLICY: u16 = 8;
const NFTA_SET_DESC: u16 = 9;
const NFTA_SET_ID: u16 = 10;
const NFTA_SET_TIMEOUT: u16 = 11;
const NFTA_SET_GC_INTERVAL: u16 = 12;
const NFTA_SET_USERDATA: u16 = 13;
const NFTA_SET_OBJ_TYPE: u16 = 15;
const NFTA_SET_EXPR: u16 = 17;
const NFTA_SET_EXPRESSIONS: u16 = 18;
const NFTA_SET_DESC_SIZE: u16 = 1;
const NFTA_SET_DESC_CONCAT: u16 = 2;
const NFTA_SET_FIELD_LEN: u16 = 1;
/// `NFT_DATA_VERDICT`
const NFT_DATA_VERDICT: u32 = 0xffff_ff00;
/// `NFTNL_UDATA_SET_KEYBYTEORDER`
const KEYBYTEORDER: u8 = 0;
/// `NFTNL_UDATA_SET_DATABYTEORDER`
const DATABYTEORDER: u8 = 1;
/// `NFTNL_UDATA_SET_MERGE_ELEMENTS`
const MERGE_ELEMENTS: u8 = 2;
/// `NFTNL_UDATA_SET_KEY_TYPEOF`
pub(crate) const KEY_TYPEOF: u8 = 3;
/// `NFTNL_UDATA_SET_DATA_TYPEOF`
pub(crate) const DATA_TYPEOF: u8 = 4;
/// `NFTNL_UDATA_SET_DATA_INTERVAL`
const DATA_INTERVAL: u8 = 6;
/// `NFTNL_UDATA_SET_COMMENT`
const SET_COMMENT: u8 = 7;
