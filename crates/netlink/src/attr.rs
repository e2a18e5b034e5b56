//! Attributes (`struct nlattr` of `linux/netlink.h`): a writer that appends to one buffer, and a reader that
//! checks every length.
//!
//! An attribute is a u16 length (header and payload), a u16 type, the payload, and padding to four bytes.
//! Numbers in netfilter's attributes are mostly in network order (`be`), elsewhere in host order.

use std::borrow::Cow;
use std::ops::{Deref, DerefMut};

use crate::{DecodeError, TooLong, text};

/// Appends attributes to a message. Created by [`Batch::message`](crate::Batch::message) and by [`encode`].
///
/// Writing cannot fail: a length that does not fit its field is recorded, and the finished bytes are then an
/// error ([`TooLong`]), so that a wrapped length is never sent.
///
/// ```
/// use sluicegate_netlink::attr::{Attributes, encode};
///
/// let bytes = encode(|writer| {
///     writer.put_be32(2, 80);
///     writer.nest(3).put_str(1, "inner");
/// })?;
/// let port = Attributes::new(&bytes).find(2)?.expect("it was written");
/// assert_eq!(port.be32()?, 80);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Writer<'b> {
    pub(crate) bytes: &'b mut Vec<u8>,
    pub(crate) tags: &'b mut Vec<Tag>,
    pub(crate) too_long: &'b mut Option<TooLong>,
    /// The offset of the message in `bytes`.
    pub(crate) start: usize,
    pub(crate) sequence: u32,
}

/// The position of an attribute that the caller has tagged: its message and its offset in the message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Tag {
    pub(crate) sequence: u32,
    /// From the start of the message's `nlmsghdr`; 0 is the message itself.
    pub(crate) offset: u32,
    /// The length of each attribute of a list whose objects have consecutive numbers; 0 for a single one.
    pub(crate) stride: u32,
    pub(crate) object: u64,
}

impl Tag {
    /// Returns the object at an offset that is not before the tag.
    pub(crate) fn object_at(&self, offset: u32) -> u64 {
        let number = offset.saturating_sub(self.offset).checked_div(self.stride);
        self.object.saturating_add(number.map_or(0, u64::from))
    }
}

impl<'b> Writer<'b> {
    /// Appends an attribute with these bytes as payload.
    #[inline]
    pub fn put(&mut self, kind: u16, payload: &[u8]) {
        self.put_parts(kind, &[payload]);
    }

    /// Appends an attribute whose payload is the concatenation of these parts.
    #[inline]
    pub fn put_parts(&mut self, kind: u16, parts: &[&[u8]]) {
        let length = HEADER + parts.iter().map(|part| part.len()).sum::<usize>();
        let field = self.checked(kind, length);
        self.bytes.extend_from_slice(&header(field, kind));
        for part in parts {
            self.bytes.extend_from_slice(part);
        }
        self.pad();
    }

    /// Appends a byte.
    #[inline]
    pub fn put_u8(&mut self, kind: u16, value: u8) {
        self.put(kind, &[value]);
    }

    /// Appends a number in host order.
    #[inline]
    pub fn put_u16(&mut self, kind: u16, value: u16) {
        self.put(kind, &value.to_ne_bytes());
    }

    /// Appends a number in host order.
    #[inline]
    pub fn put_u32(&mut self, kind: u16, value: u32) {
        self.put(kind, &value.to_ne_bytes());
    }

    /// Appends a number in host order.
    #[inline]
    pub fn put_u64(&mut self, kind: u16, value: u64) {
        self.put(kind, &value.to_ne_bytes());
    }

    /// Appends a number in network order.
    #[inline]
    pub fn put_be16(&mut self, kind: u16, value: u16) {
        self.put(kind, &value.to_be_bytes());
    }

    /// Appends a number in network order.
    #[inline]
    pub fn put_be32(&mut self, kind: u16, value: u32) {
        self.put(kind, &value.to_be_bytes());
    }

    /// Appends a number in network order.
    #[inline]
    pub fn put_be64(&mut self, kind: u16, value: u64) {
        self.put(kind, &value.to_be_bytes());
    }

    /// Appends a string and the NUL that `NLA_NUL_STRING` and `NLA_STRING` of netfilter expect. Characters
    /// that stand for bytes are those bytes ([`text::encode`]).
    #[inline]
    pub fn put_str(&mut self, kind: u16, value: &str) {
        self.put_parts(kind, &[&text::encode(value), &[0]]);
    }

    /// Appends an attribute without payload (`NLA_FLAG`).
    #[inline]
    pub fn put_flag(&mut self, kind: u16) {
        self.put(kind, &[]);
    }

    /// Opens a nested attribute. Attributes that are written to the guard are nested in it; dropping the
    /// guard closes it.
    #[inline]
    pub fn nest(&mut self, kind: u16) -> Nest<'_, 'b> {
        let at = self.bytes.len();
        self.bytes.extend_from_slice(&header(0, kind | NLA_F_NESTED));
        Nest { at, kind, writer: self }
    }

    /// Appends a nested attribute that contains a single attribute with these bytes, in one step: faster than
    /// [`nest`](Self::nest) and [`put`](Self::put), for lists of thousands.
    #[inline]
    pub fn put_nested(&mut self, kind: u16, inner: u16, payload: &[u8]) {
        let length = HEADER + payload.len();
        let field = self.checked(kind, HEADER + align(length));
        let inner_field = self.checked(inner, length);
        let ([o0, o1, o2, o3], [i0, i1, i2, i3]) =
            (header(field, kind | NLA_F_NESTED), header(inner_field, inner));
        self.bytes.reserve(HEADER + align(length));
        self.bytes.extend_from_slice(&[o0, o1, o2, o3, i0, i1, i2, i3]);
        self.bytes.extend_from_slice(payload);
        self.pad();
    }

    /// Appends a nested attribute that contains, for each of these, what [`put_nested`](Self::put_nested)
    /// appends: an element of a list with its key and its value, in one step.
    ///
    /// ```
    /// use sluicegate_netlink::attr;
    ///
    /// let once = attr::encode(|w| w.put_nested_list(1, &[(2, 3, &[7]), (4, 5, &[8])]))?;
    /// let step_by_step = attr::encode(|w| {
    ///     let mut list = w.nest(1);
    ///     list.nest(2).put(3, &[7]);
    ///     list.nest(4).put(5, &[8]);
    /// })?;
    /// assert_eq!(once, step_by_step);
    /// # Ok::<(), sluicegate_netlink::TooLong>(())
    /// ```
    #[inline]
    pub fn put_nested_list(&mut self, kind: u16, attributes: &[(u16, u16, &[u8])]) {
        let sizes = attributes.iter().map(|(.., payload)| HEADER + align(HEADER + payload.len()));
        let length = HEADER + sizes.sum::<usize>();
        let field = self.checked(kind, length);
        self.bytes.reserve(length);
        self.bytes.extend_from_slice(&header(field, kind | NLA_F_NESTED));
        for (kind, inner, payload) in attributes {
            self.put_nested(*kind, *inner, payload);
        }
    }

    /// Tags the next attribute with `object`, a number of the caller's.
    ///
    /// [`Batch::object`](crate::Batch::object) returns it for an error whose offset is that of the attribute,
    /// or lies between it and the next tagged one.
    pub fn tag(&mut self, object: u64) {
        self.push_tag(object, 0);
    }

    /// Tags all attributes from here to the next tag or the end of the message, each of which takes this many
    /// bytes with its padding: the first with `object`, and each other with the number after the one before
    /// it. For lists of thousands this takes the memory of one tag.
    ///
    /// ```
    /// use sluicegate_netlink::message::Flags;
    /// use sluicegate_netlink::{Batch, Errno, KernelError};
    ///
    /// let mut batch = Batch::new();
    /// let mut message = batch.netfilter(10, 12, Flags::CREATE, 2, 0);
    /// message.tag_each(7, 8);
    /// (0..3).for_each(|number| message.put_u32(1, number));
    /// drop(message);
    /// // The third one follows 20 bytes of headers and two attributes of eight.
    /// let mut error = KernelError::new(1, Errno::EEXIST);
    /// error.offset = Some(36);
    /// assert_eq!(batch.object(&error), Some(9));
    /// ```
    pub fn tag_each(&mut self, object: u64, bytes: u32) {
        self.push_tag(object, bytes);
    }

    fn push_tag(&mut self, object: u64, stride: u32) {
        let offset = u32::try_from(self.bytes.len() - self.start).unwrap_or(u32::MAX);
        self.tags.push(Tag { sequence: self.sequence, offset, stride, object });
    }

    /// Appends bytes as they are, padded to four: the fixed header of a family (`nfgenmsg`, `genlmsghdr`,
    /// `ifinfomsg`).
    #[inline]
    pub fn raw(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        self.pad();
    }

    /// Appends `count` copies of an encoded attribute, padded to four bytes, and returns their bytes, so that
    /// the caller can overwrite the value in each: for lists of thousands of attributes that differ only there.
    ///
    /// ```
    /// use sluicegate_netlink::attr;
    ///
    /// let one = attr::encode(|writer| writer.put_u32(1, 0)).unwrap();
    /// let three = attr::encode(|writer| {
    ///     for (attribute, number) in writer.repeat(&one, 3).chunks_exact_mut(one.len()).zip(7_u32..) {
    ///         attribute[4..].copy_from_slice(&number.to_ne_bytes());
    ///     }
    /// });
    /// assert_eq!(three, attr::encode(|writer| (7..10).for_each(|number| writer.put_u32(1, number))));
    /// ```
    pub fn repeat(&mut self, attribute: &[u8], count: usize) -> &mut [u8] {
        debug_assert_eq!(attribute.len() % 4, 0, "attributes are padded to four");
        let (start, length) = (self.bytes.len(), attribute.len() * count);
        self.bytes.reserve(length);
        let mut written = attribute.len().min(length);
        self.bytes.extend_from_slice(attribute.get(..written).unwrap_or_default());
        while written < length {
            let more = written.min(length - written);
            self.bytes.extend_from_within(start..start + more);
            written += more;
        }
        self.bytes.get_mut(start..).unwrap_or_default()
    }

    /// Returns the number of bytes of the message so far, including its headers.
    #[must_use]
    #[inline]
    pub fn message_len(&self) -> usize {
        self.bytes.len() - self.start
    }

    #[inline]
    fn checked(&mut self, kind: u16, length: usize) -> u16 {
        u16::try_from(length).unwrap_or_else(|_| {
            self.too_long.get_or_insert(TooLong::Attribute { sequence: self.sequence, kind, length });
            0
        })
    }

    #[inline]
    fn pad(&mut self) {
        let length = self.bytes.len() - self.start;
        let missing = align(length) - length;
        if missing > 0 {
            self.bytes.extend_from_slice([0; HEADER].get(..missing).unwrap_or_default());
        }
    }
}

/// An open nested attribute; see [`Writer::nest`]. Dropping it checks its length and writes it into the
/// header.
#[derive(Debug)]
pub struct Nest<'w, 'b> {
    at: usize,
    kind: u16,
    writer: &'w mut Writer<'b>,
}

impl Nest<'_, '_> {
    /// Returns the number of bytes of the attribute so far, including its header of four: at most 65,535 when
    /// it is closed.
    #[must_use]
    pub fn nest_len(&self) -> usize {
        self.writer.bytes.len() - self.at
    }
}

impl<'b> Deref for Nest<'_, 'b> {
    type Target = Writer<'b>;

    fn deref(&self) -> &Self::Target {
        self.writer
    }
}

impl DerefMut for Nest<'_, '_> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        self.writer
    }
}

impl Drop for Nest<'_, '_> {
    fn drop(&mut self) {
        let field = self.writer.checked(self.kind, self.nest_len());
        if let Some(length) = self.writer.bytes.get_mut(self.at..self.at + 2) {
            length.copy_from_slice(&field.to_ne_bytes());
        }
    }
}

/// Encodes attributes outside a message, as for user data of an object, or for tests.
///
/// ```
/// use sluicegate_netlink::attr;
///
/// let bytes = attr::encode(|w| w.put_be16(3, 80))?;
/// assert_eq!(bytes, [6, 0, 3, 0, 0, 80, 0, 0]); // on a little-endian host
/// # Ok::<(), sluicegate_netlink::TooLong>(())
/// ```
///
/// # Errors
/// [`TooLong`] when an attribute passes 65,535 bytes.
pub fn encode(write: impl FnOnce(&mut Writer<'_>)) -> Result<Vec<u8>, TooLong> {
    let (mut bytes, mut tags, mut too_long) = (Vec::new(), Vec::new(), None);
    write(&mut Writer { bytes: &mut bytes, tags: &mut tags, too_long: &mut too_long, start: 0, sequence: 0 });
    match too_long {
        None => Ok(bytes),
        Some(error) => Err(error),
    }
}

/// The attributes in a range of bytes, one after the other.
///
/// Ends with one error if the length of a header exceeds the remaining bytes, or if the remaining bytes are
/// too few for a header.
///
/// ```
/// use sluicegate_netlink::attr::{Attributes, encode};
///
/// let bytes = encode(|writer| writer.put_str(1, "inner"))?;
/// for attribute in Attributes::new(&bytes) {
///     let attribute = attribute?;
///     assert_eq!((attribute.kind, attribute.str()?), (1, "inner"));
/// }
/// assert!(Attributes::new(&bytes[..5]).next().is_some_and(|cut| cut.is_err()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Attributes<'a> {
    rest: &'a [u8],
    offset: usize,
}

impl<'a> Attributes<'a> {
    /// Reads `bytes` as attributes.
    #[must_use]
    #[inline]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self::at(bytes, 0)
    }

    /// Reads `bytes` as attributes; the offset of the first is `offset`, counted from the start of the
    /// message, for instance.
    #[must_use]
    #[inline]
    pub fn at(bytes: &'a [u8], offset: usize) -> Self {
        Self { rest: bytes, offset }
    }

    /// Returns the first attribute of this type.
    ///
    /// # Errors
    /// When the bytes before it are not attributes.
    #[inline]
    pub fn find(self, kind: u16) -> Result<Option<Attribute<'a>>, DecodeError> {
        for attribute in self {
            let attribute = attribute?;
            if attribute.kind == kind {
                return Ok(Some(attribute));
            }
        }
        Ok(None)
    }

    #[inline(always)]
    fn split(&mut self) -> Option<Attribute<'a>> {
        let (rest, offset) = (self.rest, self.offset);
        let (length, after) = rest.split_first_chunk::<2>()?;
        let (kind, _) = after.split_first_chunk::<2>()?;
        let length = usize::from(u16::from_ne_bytes(*length));
        let raw = u16::from_ne_bytes(*kind);
        let payload = rest.get(HEADER..length)?;
        // The last attribute of a message may come without its padding.
        let step = align(length).min(rest.len());
        self.rest = rest.get(step..).unwrap_or_default();
        self.offset = offset + step;
        Some(Attribute { kind: raw & NLA_TYPE_MASK, nested: raw & NLA_F_NESTED != 0, payload, offset })
    }

    /// Returns the error that describes why the rest is not an attribute, and discards the rest.
    #[cold]
    fn broken(&mut self) -> DecodeError {
        let (rest, offset) = (std::mem::take(&mut self.rest), self.offset);
        match rest.first_chunk::<HEADER>() {
            None => DecodeError::Short { what: "nlattr", need: HEADER, have: rest.len(), offset },
            Some([l0, l1, ..]) => {
                let claims = usize::from(u16::from_ne_bytes([*l0, *l1]));
                DecodeError::Length { what: "nlattr", claims, have: rest.len(), offset }
            }
        }
    }
}

impl<'a> Iterator for Attributes<'a> {
    type Item = Result<Attribute<'a>, DecodeError>;

    // Always inlined: most of the time of a dump is spent here, and a result that is passed through memory
    // takes longer than the work itself.
    #[inline(always)]
    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        Some(self.split().ok_or_else(|| self.broken()))
    }
}

/// One attribute that was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attribute<'a> {
    /// Its type, without `NLA_F_NESTED` and `NLA_F_NET_BYTEORDER`.
    pub kind: u16,
    /// Whether `NLA_F_NESTED` is set. The kernel does not set it on all nested attributes.
    pub nested: bool,
    /// Its payload without padding.
    pub payload: &'a [u8],
    /// The offset of its header; see [`Attributes::at`].
    pub offset: usize,
}

impl<'a> Attribute<'a> {
    /// Returns the payload as attributes.
    #[must_use]
    #[inline]
    pub fn attributes(&self) -> Attributes<'a> {
        Attributes::at(self.payload, self.offset + HEADER)
    }

    /// Returns the payload as a byte.
    ///
    /// # Errors
    /// [`DecodeError::Size`] when it has another size.
    #[inline]
    pub fn u8(&self) -> Result<u8, DecodeError> {
        self.array::<1>().map(|[value]| value)
    }

    /// Returns the payload as a number in host order.
    ///
    /// # Errors
    /// [`DecodeError::Size`] when it has another size.
    #[inline]
    pub fn u16(&self) -> Result<u16, DecodeError> {
        self.array().map(u16::from_ne_bytes)
    }

    /// Returns the payload as a number in host order.
    ///
    /// # Errors
    /// [`DecodeError::Size`] when it has another size.
    #[inline]
    pub fn u32(&self) -> Result<u32, DecodeError> {
        self.array().map(u32::from_ne_bytes)
    }

    /// Returns the payload as a number in host order.
    ///
    /// # Errors
    /// [`DecodeError::Size`] when it has another size.
    #[inline]
    pub fn u64(&self) -> Result<u64, DecodeError> {
        self.array().map(u64::from_ne_bytes)
    }

    /// Returns the payload as a number in network order.
    ///
    /// # Errors
    /// [`DecodeError::Size`] when it has another size.
    #[inline]
    pub fn be16(&self) -> Result<u16, DecodeError> {
        self.array().map(u16::from_be_bytes)
    }

    /// Returns the payload as a number in network order.
    ///
    /// # Errors
    /// [`DecodeError::Size`] when it has another size.
    #[inline]
    pub fn be32(&self) -> Result<u32, DecodeError> {
        self.array().map(u32::from_be_bytes)
    }

    /// Returns the payload as a number in network order.
    ///
    /// # Errors
    /// [`DecodeError::Size`] when it has another size.
    #[inline]
    pub fn be64(&self) -> Result<u64, DecodeError> {
        self.array().map(u64::from_be_bytes)
    }

    /// Returns the payload as a fixed number of bytes.
    ///
    /// # Errors
    /// [`DecodeError::Size`] when it has another size.
    #[inline]
    pub fn array<const N: usize>(&self) -> Result<[u8; N], DecodeError> {
        self.payload.try_into().map_err(|_| DecodeError::Size {
            kind: self.kind,
            need: N,
            have: self.payload.len(),
        })
    }

    /// Returns the payload as text, with or without a NUL at its end.
    ///
    /// # Errors
    /// [`DecodeError::NotText`] when it is not UTF-8 or has a NUL inside.
    #[inline]
    pub fn str(&self) -> Result<&'a str, DecodeError> {
        let text = self.payload.strip_suffix(&[0]).unwrap_or(self.payload);
        std::str::from_utf8(text)
            .ok()
            .filter(|text| !text.contains('\0'))
            .ok_or(DecodeError::NotText { kind: self.kind })
    }

    /// Returns the payload as text, with or without a NUL at its end; bytes that are not UTF-8 are represented
    /// by characters ([`text::decode`]).
    ///
    /// # Errors
    /// [`DecodeError::NotText`] when it has a NUL inside.
    #[inline]
    pub fn text(&self) -> Result<Cow<'a, str>, DecodeError> {
        let bytes = self.payload.strip_suffix(&[0]).unwrap_or(self.payload);
        if bytes.contains(&0) {
            return Err(DecodeError::NotText { kind: self.kind });
        }
        Ok(text::decode(bytes))
    }
}

/// Rounds up to the four bytes on which netlink aligns (`NLA_ALIGN`, `NLMSG_ALIGN`).
#[must_use]
pub const fn align(length: usize) -> usize {
    length.next_multiple_of(4)
}

/// Bytes of `struct nlattr` (`NLA_HDRLEN`).
pub const HEADER: usize = 4;
/// `NLA_F_NESTED`: the payload is attributes.
pub const NLA_F_NESTED: u16 = 1 << 15;
/// `NLA_F_NET_BYTEORDER`: the payload is in network order.
pub const NLA_F_NET_BYTEORDER: u16 = 1 << 14;
/// `NLA_TYPE_MASK`: the bits of the field that are the type.
pub const NLA_TYPE_MASK: u16 = !(NLA_F_NESTED | NLA_F_NET_BYTEORDER);

fn header(length: u16, kind: u16) -> [u8; HEADER] {
    let ([l0, l1], [k0, k1]) = (length.to_ne_bytes(), kind.to_ne_bytes());
    [l0, l1, k0, k1]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_nested_attribute_has_its_length_and_the_nested_flag() {
        let bytes = encode(|w| {
            let mut nest = w.nest(2);
            nest.put_str(1, "ab");
            nest.put_flag(9);
        })
        .unwrap();
        let outer = Attributes::new(&bytes).next().unwrap().unwrap();
        assert_eq!((outer.kind, outer.nested, outer.payload.len()), (2, true, 12));
        let inner: Vec<_> = outer.attributes().map(Result::unwrap).collect();
        assert_eq!(inner[0].str().unwrap(), "ab");
        assert_eq!((inner[1].kind, inner[1].payload, inner[1].offset), (9, &[][..], 12));
    }

    #[test]
    fn a_single_nested_attribute_is_written_in_one_step() {
        for length in 0..9 {
            let payload = vec![7; length];
            let one = encode(|w| w.put_nested(3, 1, &payload));
            assert_eq!(one, encode(|w| w.nest(3).put(1, &payload)));
        }
        let long = vec![0; 65_530];
        let error = TooLong::Attribute { sequence: 0, kind: 3, length: 65_540 };
        assert_eq!(encode(|w| w.put_nested(3, 1, &long)), Err(error));
    }

    #[test]
    fn a_length_over_16_bits_is_an_error() {
        let long = vec![0; 65_532];
        assert_eq!(
            encode(|w| w.put(7, &long)),
            Err(TooLong::Attribute { sequence: 0, kind: 7, length: 65_536 })
        );
        assert!(encode(|w| w.put(7, &long[1..])).is_ok());
        let nested = encode(|w| {
            let mut nest = w.nest(5);
            nest.put(1, &long[..40_000]);
            nest.put(1, &long[..40_000]);
        });
        assert_eq!(nested, Err(TooLong::Attribute { sequence: 0, kind: 5, length: 80_012 }));
    }

    #[test]
    fn a_header_that_claims_too_much_or_too_little_is_refused() {
        let claims = |length: u8| Attributes::new(&[length, 0, 1, 0, 9, 9]).next().unwrap().is_err();
        assert!(claims(7) && claims(3) && claims(0));
        assert!(!claims(6) && !claims(4));
        let mut trailing = Attributes::new(&[4, 0, 1, 0, 9, 9]);
        assert!(trailing.next().unwrap().is_ok());
        assert!(trailing.next().unwrap().is_err());
        assert!(trailing.next().is_none());
    }

    #[test]
    fn text_with_a_nul_inside_is_not_text() {
        let read = |payload| Attribute { kind: 1, nested: false, payload, offset: 0 }.str();
        assert_eq!(read(b"abc\0"), Ok("abc"));
        assert_eq!(read(b"abc"), Ok("abc"));
        assert!(read(b"a\0c\0").is_err());
        assert!(read(&[0xff, 0]).is_err());
    }

    proptest! {
        #[test]
        fn attributes_are_read_back_as_written(
            list in prop::collection::vec((0u16..0x3fff, prop::collection::vec(any::<u8>(), 0..40)), 0..20),
        ) {
            let bytes = encode(|w| list.iter().for_each(|(kind, payload)| w.put(*kind, payload))).unwrap();
            let read: Vec<_> =
                Attributes::new(&bytes).map(|a| a.map(|a| (a.kind, a.payload.to_vec())).unwrap()).collect();
            prop_assert_eq!(read, list);
        }

        #[test]
        fn no_input_makes_the_reader_panic_or_run_on(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let seen = Attributes::new(&bytes).count();
            prop_assert!(seen <= bytes.len() / HEADER + 1);
        }
    }
}
