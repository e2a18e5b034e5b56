//! The storage of an element: types, bytes and timeouts of its key and value in one byte string, inline if it
//! is short.
//!
//! Lists of elements are the largest values of this crate, so an element takes 48 bytes, and few need an
//! allocation: those with a long value, a statement, or both a name and a comment.

use std::ops::Range;

use crate::key::Key;
use crate::name::{Comment, Name};
use crate::tree::Statement;

/// The content of an element, in the smallest variant that it fits.
#[derive(Clone)]
pub(super) enum Store {
    /// Only types and bytes.
    Plain { head: Head, bytes: [u8; PLAIN] },
    /// With the name of a chain or an object.
    Named { head: Head, bytes: [u8; SHORT], name: Name },
    /// With a comment.
    Commented { head: Head, bytes: [u8; SHORT], comment: Comment },
    /// More bytes than fit inline.
    Long { head: Head, bytes: Box<[u8]> },
    /// Any content.
    Full(Box<Full>),
}

#[derive(Clone)]
pub(super) struct Full {
    head: Head,
    bytes: Box<[u8]>,
    name: Option<Name>,
    comment: Option<Comment>,
    statements: Vec<Statement>,
}

/// The layout of the bytes: types of the key, the key, its upper bound, types of the value, the value, its
/// upper bound, timeout and expiration. Absent parts are left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Head {
    /// The number of parts of the key in the lower four bits, of the value in the upper ones.
    parts: u8,
    /// The length of a key in bytes.
    key: u8,
    /// The length of a value in bytes.
    value: u8,
    /// Flags for the optional sections in the lower four bits, the kind of data in the upper ones.
    flags: u8,
}

/// The lengths and types of a key and its value.
pub(super) struct Shape {
    head: Head,
    /// The bits of a number of eight bytes that are types of the key, and of the value.
    key: u64,
    value: u64,
    value_at: usize,
    /// The types of both as numbers: comparing slices would call a function for each of two bytes.
    types: (u64, u64),
}

impl Shape {
    #[inline]
    fn types_of(&self, store: &Store) -> Option<(u64, u64)> {
        let Store::Plain { bytes, .. } = store else { return None };
        let word = |at: usize| bytes.get(at..)?.first_chunk().map(|bytes| u64::from_le_bytes(*bytes));
        Some((word(0)? & self.key, word(self.value_at)? & self.value))
    }

    /// Returns whether a store has this shape.
    #[inline]
    pub(super) fn has(&self, store: &Store) -> bool {
        let Store::Plain { head, .. } = store else { return false };
        *head == self.head && self.types_of(store) == Some(self.types)
    }

    /// Returns where the bytes of the key and of the value are.
    pub(super) fn places(&self) -> (Range<usize>, Range<usize>) {
        let (at, value_at) = (self.head.key_parts(), self.value_at + self.head.value_parts());
        (at..at + usize::from(self.head.key), value_at..value_at + usize::from(self.head.value))
    }
}

const END: u8 = 1;
const VALUE_END: u8 = 2;
const TIMEOUT: u8 = 4;
const EXPIRES: u8 = 8;

/// The kind of an element's data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Data {
    None,
    Value,
    Object,
    Accept,
    Drop,
    Continue,
    Return,
    Jump,
    Goto,
}

impl Data {
    const ALL: [Self; 9] = [
        Self::None,
        Self::Value,
        Self::Object,
        Self::Accept,
        Self::Drop,
        Self::Continue,
        Self::Return,
        Self::Jump,
        Self::Goto,
    ];
}

/// The content of an element, borrowed.
#[derive(Clone, Copy)]
pub(super) struct View<'a> {
    head: Head,
    bytes: &'a [u8],
    name: Option<&'a Name>,
    pub(super) comment: Option<&'a Comment>,
    pub(super) statements: &'a [Statement],
}

/// The sections of an element's bytes.
#[derive(Clone, Copy, Default)]
pub(super) struct Sections<'a> {
    pub(super) key: Packed<'a>,
    pub(super) end: Option<&'a [u8]>,
    pub(super) data: u8,
    pub(super) value: Packed<'a>,
    pub(super) value_end: Option<&'a [u8]>,
    /// The timeout in milliseconds; likewise the expiration.
    pub(super) timeout: Option<u64>,
    pub(super) expires: Option<u64>,
}

/// A key as a byte for the type of each part, and its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Packed<'a> {
    pub(crate) kinds: &'a [u8],
    pub(crate) bytes: &'a [u8],
}

impl<'a> From<&'a Key> for Packed<'a> {
    #[inline]
    fn from(key: &'a Key) -> Self {
        Self { kinds: key.kinds(), bytes: key.bytes() }
    }
}

impl From<Packed<'_>> for Key {
    fn from(packed: Packed<'_>) -> Self {
        Self::unpack(packed.kinds, packed.bytes)
    }
}

impl Store {
    /// Stores a key without anything else.
    #[inline]
    pub(super) fn of_key(key: Packed<'_>) -> Self {
        let head = Head { parts: small(key.kinds.len()), key: small(key.bytes.len()), value: 0, flags: 0 };
        let mut bytes = [0; PLAIN];
        match put(&mut bytes, 0, key) {
            Some(()) => Self::Plain { head, bytes },
            None => Self::pack(Sections { key, ..Sections::default() }, None, None, &[]),
        }
    }

    /// Adds a value to an element without one; returns `false`, and adds nothing, if the element has to be
    /// packed again.
    #[inline]
    pub(super) fn append_value(&mut self, value: Packed<'_>) -> bool {
        let Self::Plain { head, bytes } = self else { return false };
        if head.flags & !END != 0 || put(bytes, head.length(), value).is_none() {
            return false;
        }
        head.parts |= small(value.kinds.len()) << 4;
        head.value = small(value.bytes.len());
        head.flags |= Data::Value.flags();
        true
    }

    /// Adds the upper bound of the key to an element without other sections, as
    /// [`append_value`](Self::append_value) does.
    #[inline]
    pub(super) fn append_end(&mut self, end: &[u8]) -> bool {
        let Self::Plain { head, bytes } = self else { return false };
        if head.flags != 0 || put(bytes, head.length(), Packed { kinds: &[], bytes: end }).is_none() {
            return false;
        }
        head.flags = END;
        true
    }

    /// Adds a verdict or an object to an element without data; returns the name if the element has to be
    /// packed again.
    #[inline]
    pub(super) fn append_name(&mut self, data: Data, name: Option<Name>) -> Result<(), Option<Name>> {
        let Self::Plain { head, bytes } = self else { return Err(name) };
        let (Some(short), 0) = (bytes.first_chunk(), head.flags & !END) else { return Err(name) };
        match name {
            None => head.flags |= data.flags(),
            Some(name) if head.length() <= SHORT => {
                let head = Head { flags: head.flags | data.flags(), ..*head };
                *self = Self::Named { head, bytes: *short, name };
            }
            Some(_) => return Err(name),
        }
        Ok(())
    }

    /// Stores any content.
    pub(super) fn pack(
        sections: Sections<'_>,
        name: Option<Name>,
        comment: Option<Comment>,
        statements: &[Statement],
    ) -> Self {
        let mut all = Vec::with_capacity(PLAIN);
        let head = sections.write(&mut all);
        let plain = name.is_none() && comment.is_none();
        if !statements.is_empty() || name.is_some() && comment.is_some() || !plain && all.len() > SHORT {
            let (bytes, statements) = (all.into_boxed_slice(), statements.to_vec());
            return Self::Full(Box::new(Full { head, bytes, name, comment, statements }));
        }
        match (name, comment) {
            (Some(name), _) => Self::Named { head, bytes: inline(&all), name },
            (_, Some(comment)) => Self::Commented { head, bytes: inline(&all), comment },
            _ if all.len() <= PLAIN => Self::Plain { head, bytes: inline(&all) },
            _ => Self::Long { head, bytes: all.into_boxed_slice() },
        }
    }

    /// Adds a statement.
    pub(super) fn push(&mut self, statement: Statement) {
        if let Self::Full(full) = self {
            full.statements.push(statement);
            return;
        }
        let view = self.view();
        *self = Self::Full(Box::new(Full {
            head: view.head,
            bytes: view.used().into(),
            name: view.name.cloned(),
            comment: view.comment.cloned(),
            statements: vec![statement],
        }));
    }

    #[inline]
    pub(super) fn view(&self) -> View<'_> {
        let (head, bytes, name, comment, statements): (_, &[u8], _, _, &[Statement]) = match self {
            Self::Plain { head, bytes } => (*head, bytes, None, None, &[]),
            Self::Named { head, bytes, name } => (*head, bytes, Some(name), None, &[]),
            Self::Commented { head, bytes, comment } => (*head, bytes, None, Some(comment), &[]),
            Self::Long { head, bytes } => (*head, bytes, None, None, &[]),
            Self::Full(full) => {
                (full.head, &full.bytes, full.name.as_ref(), full.comment.as_ref(), &full.statements)
            }
        };
        View { head, bytes, name, comment, statements }
    }
}

impl Store {
    /// Returns the shape of a store that consists of a key and perhaps a value; `None` if there is more to it.
    pub(super) fn shape(&self) -> Option<Shape> {
        let Self::Plain { head, .. } = self else { return None };
        // The flags have nothing but the kind of the data: there are no ranges and times.
        let has_value = head.flags == Data::Value.flags() && head.value > 0;
        let is_plain = head.key > 0 && (has_value || head.flags == Data::None.flags());
        let mask = |parts: usize| {
            let unused = 64_u32.checked_sub(u32::try_from(parts).ok()? * 8)?;
            Some(u64::MAX.checked_shr(unused).unwrap_or(0))
        };
        let (key, value) = (mask(head.key_parts())?, mask(head.value_parts())?);
        // A value behind a long key may be too near to the end for reading its types as a number; without
        // one, the types of the key are read twice.
        let value_at = if has_value { head.behind_keys() } else { 0 };
        let mut shape = Shape { head: *head, key, value, value_at, types: (0, 0) };
        shape.types = shape.types_of(self)?;
        is_plain.then_some(shape)
    }

    /// Returns a store of the same shape with other bytes; `None` where it has a shape of another length.
    #[inline]
    pub(super) fn with_bytes<const K: usize, const V: usize>(
        &self,
        key: [u8; K],
        value: [u8; V],
    ) -> Option<Self> {
        let Self::Plain { head, mut bytes } = *self else { return None };
        if head.flags != Data::Value.flags() || usize::from(head.key) != K || usize::from(head.value) != V {
            return None;
        }
        let (at, value_at) = (head.key_parts(), head.behind_keys() + head.value_parts());
        *bytes.get_mut(at..)?.first_chunk_mut()? = key;
        *bytes.get_mut(value_at..)?.first_chunk_mut()? = value;
        Some(Self::Plain { head, bytes })
    }
}

impl<'a> View<'a> {
    #[inline]
    pub(super) fn key(self) -> Packed<'a> {
        let kinds = self.head.key_parts();
        Packed { kinds: self.part(0, kinds), bytes: self.part(kinds, self.head.key.into()) }
    }

    /// Returns the bytes of the upper bound of a range.
    #[inline]
    pub(super) fn end(self) -> Option<&'a [u8]> {
        let length = usize::from(self.head.key);
        self.head.has(END).then(|| self.part(self.head.key_parts() + length, length))
    }

    #[inline]
    pub(super) fn value(self) -> Packed<'a> {
        let (at, kinds) = (self.head.behind_keys(), self.head.value_parts());
        Packed { kinds: self.part(at, kinds), bytes: self.part(at + kinds, self.head.value.into()) }
    }

    #[inline]
    pub(super) fn value_end(self) -> Option<&'a [u8]> {
        let length = usize::from(self.head.value);
        let at = self.head.behind_keys() + self.head.value_parts() + length;
        self.head.has(VALUE_END).then(|| self.part(at, length))
    }

    /// Returns the value of an element that has nothing else beside its key, or no bytes if it has not even
    /// that; `None` for any other element.
    #[inline]
    pub(super) fn only_value(self) -> Option<&'a [u8]> {
        let is_plain = self.head.flags & 0xf == 0 && self.comment.is_none() && self.statements.is_empty();
        let is_complete = match self.data() {
            Data::None => true,
            Data::Value => self.head.value > 0,
            _ => false,
        };
        (is_plain && is_complete && self.head.key > 0).then(|| self.value().bytes)
    }

    pub(super) fn timeout(self) -> Option<u64> {
        self.head.has(TIMEOUT).then(|| self.time(self.head.behind_values()))
    }

    pub(super) fn expires(self) -> Option<u64> {
        let behind_timeout = self.head.behind_values() + if self.head.has(TIMEOUT) { 8 } else { 0 };
        self.head.has(EXPIRES).then(|| self.time(behind_timeout))
    }

    #[inline]
    pub(super) fn data(self) -> Data {
        Data::ALL.get(usize::from(self.head.flags >> 4)).copied().unwrap_or(Data::None)
    }

    /// Returns the name of the chain of a verdict, or of an object.
    #[inline]
    pub(super) fn name(self) -> Option<&'a Name> {
        self.name
    }

    /// Returns the sections of the bytes.
    pub(super) fn sections(self) -> Sections<'a> {
        Sections {
            key: self.key(),
            end: self.end(),
            data: self.head.flags & 0xf0,
            value: self.value(),
            value_end: self.value_end(),
            timeout: self.timeout(),
            expires: self.expires(),
        }
    }

    /// Returns the bytes at a [place](Shape::places).
    #[inline]
    pub(super) fn at(self, place: &Range<usize>) -> &'a [u8] {
        self.bytes.get(place.clone()).unwrap_or_default()
    }

    fn used(self) -> &'a [u8] {
        self.part(0, self.head.length())
    }

    #[inline]
    fn part(self, at: usize, length: usize) -> &'a [u8] {
        self.bytes.get(at..at + length).unwrap_or_default()
    }

    fn time(self, at: usize) -> u64 {
        self.part(at, 8).try_into().map_or(0, u64::from_ne_bytes)
    }
}

/// Bytes after those that the header counts do not belong to the element.
impl PartialEq for View<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.head == other.head
            && self.used() == other.used()
            && (self.name, self.comment, self.statements) == (other.name, other.comment, other.statements)
    }
}

impl Sections<'_> {
    /// Appends all sections.
    fn write(self, all: &mut Vec<u8>) -> Head {
        let value = if self.data == Data::Value.flags() { self.value } else { Packed::default() };
        let value_end = self.value_end.filter(|_| self.data == Data::Value.flags());
        let mut flags = self.data;
        all.extend_from_slice(self.key.kinds);
        all.extend_from_slice(self.key.bytes);
        if let Some(end) = self.end {
            all.extend_from_slice(end);
            flags |= END;
        }
        all.extend_from_slice(value.kinds);
        all.extend_from_slice(value.bytes);
        if let Some(end) = value_end {
            all.extend_from_slice(end);
            flags |= VALUE_END;
        }
        for (time, flag) in [(self.timeout, TIMEOUT), (self.expires, EXPIRES)] {
            if let Some(time) = time {
                all.extend_from_slice(&time.to_ne_bytes());
                flags |= flag;
            }
        }
        let parts = small(self.key.kinds.len()) | small(value.kinds.len()) << 4;
        Head { parts, key: small(self.key.bytes.len()), value: small(value.bytes.len()), flags }
    }
}

impl Head {
    fn has(self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    fn key_parts(self) -> usize {
        usize::from(self.parts & 0xf)
    }

    fn value_parts(self) -> usize {
        usize::from(self.parts >> 4)
    }

    #[inline]
    fn behind_keys(self) -> usize {
        let keys = if self.has(END) { 2 } else { 1 };
        self.key_parts() + keys * usize::from(self.key)
    }

    #[inline]
    fn behind_values(self) -> usize {
        let values = if self.has(VALUE_END) { 2 } else { 1 };
        self.behind_keys() + self.value_parts() + values * usize::from(self.value)
    }

    #[inline]
    fn length(self) -> usize {
        self.behind_values() + 8 * (usize::from(self.has(TIMEOUT)) + usize::from(self.has(EXPIRES)))
    }
}

impl Data {
    pub(super) fn flags(self) -> u8 {
        (self as u8) << 4
    }
}

/// Writes a key at an offset; `None` if it does not fit.
#[inline]
fn put(bytes: &mut [u8; PLAIN], at: usize, key: Packed<'_>) -> Option<()> {
    let behind = at + key.kinds.len();
    // Nothing is written if it does not fit as a whole.
    bytes.get(behind..behind + key.bytes.len())?;
    bytes.get_mut(at..behind)?.copy_from_slice(key.kinds);
    bytes.get_mut(behind..behind + key.bytes.len())?.copy_from_slice(key.bytes);
    Some(())
}

/// Copies bytes if they fit.
fn inline<const N: usize>(from: &[u8]) -> [u8; N] {
    let mut bytes = [0; N];
    if let Some(to) = bytes.get_mut(..from.len()) {
        to.copy_from_slice(from);
    }
    bytes
}

/// Returns a length as a byte; keys have at most 64 bytes.
#[inline]
fn small(length: usize) -> u8 {
    u8::try_from(length).unwrap_or(u8::MAX)
}

/// The number of inline bytes: with a [`Head`] and the tag of [`Store`], 48 bytes in total.
const PLAIN: usize = 43;
/// The number of inline bytes next to a name.
const SHORT: usize = 27;
