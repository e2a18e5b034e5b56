//! Netlink attributes: `struct nlattr { u16 len; u16 type; }` in host order, then the payload, padded to four bytes.

use crate::error::{DecodeError, Problem};

/// `NLA_F_NESTED`
const NESTED: u16 = 1 << 15;
/// `NLA_TYPE_MASK`: the type without `NLA_F_NESTED` and `NLA_F_NET_BYTEORDER`.
const TYPE_MASK: u16 = !(3 << 14);
/// `NLA_HDRLEN`
const HEADER: usize = 4;

/// The next multiple of four (`NLMSG_ALIGN`, `NLA_ALIGN`).
pub(crate) const fn align(length: usize) -> usize {
    length.wrapping_add(3) & !3
}

/// Appends attributes to a buffer.
pub(crate) struct Writer<'a>(pub(crate) &'a mut Vec<u8>);

impl Writer<'_> {
    pub(crate) fn u8(&mut self, kind: u16, value: u8) {
        self.put(kind, &[value]);
    }

    /// In host order.
    pub(crate) fn u16(&mut self, kind: u16, value: u16) {
        self.put(kind, &value.to_ne_bytes());
    }

    /// In network order.
    pub(crate) fn be16(&mut self, kind: u16, value: u16) {
        self.put(kind, &value.to_be_bytes());
    }

    /// In host order.
    pub(crate) fn u32(&mut self, kind: u16, value: u32) {
        self.put(kind, &value.to_ne_bytes());
    }

    /// A string of at most 15 bytes with its final NUL.
    pub(crate) fn name(&mut self, kind: u16, name: &str) {
        let mut bytes = [0; 16];
        for (to, from) in bytes.iter_mut().take(15).zip(name.bytes()) {
            *to = from;
        }
        self.put(kind, bytes.get(..=name.len()).unwrap_or(&bytes));
    }

    /// `N` bytes as they are. The length is a constant, so that it cannot wrap.
    pub(crate) fn bytes<const N: usize>(&mut self, kind: u16, payload: &[u8; N]) {
        const { assert!(N + HEADER <= u16::MAX as usize) };
        self.put(kind, payload);
    }

    fn put(&mut self, kind: u16, payload: &[u8]) {
        let length = HEADER + payload.len();
        // Only the fixed sizes above come here.
        self.0.extend_from_slice(&u16::try_from(length).expect("at most 20 bytes").to_ne_bytes());
        self.0.extend_from_slice(&kind.to_ne_bytes());
        self.0.extend_from_slice(payload);
        self.0.resize(self.0.len() + align(length) - length, 0);
    }

    /// An attribute of attributes; its length is set when `inside` has written them.
    pub(crate) fn nest(&mut self, kind: u16, inside: impl FnOnce(&mut Writer<'_>)) {
        let start = self.0.len();
        self.0.extend_from_slice(&[0; 2]);
        self.0.extend_from_slice(&(kind | NESTED).to_ne_bytes());
        inside(self);
        let length =
            u16::try_from(self.0.len() - start).expect("a nest holds a few attributes of fixed size");
        for (to, from) in self.0.iter_mut().skip(start).zip(length.to_ne_bytes()) {
            *to = from;
        }
    }
}

/// An attribute of a received message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attribute<'a> {
    /// The object that it was found in, for errors.
    object: &'static str,
    pub(crate) kind: u16,
    pub(crate) payload: &'a [u8],
}

impl<'a> Attribute<'a> {
    pub(crate) fn u8(&self) -> Result<u8, DecodeError> {
        self.array().map(|[byte]| byte)
    }

    pub(crate) fn u16(&self) -> Result<u16, DecodeError> {
        self.array().map(u16::from_ne_bytes)
    }

    pub(crate) fn be16(&self) -> Result<u16, DecodeError> {
        self.array().map(u16::from_be_bytes)
    }

    pub(crate) fn u32(&self) -> Result<u32, DecodeError> {
        self.array().map(u32::from_ne_bytes)
    }

    pub(crate) fn u64(&self) -> Result<u64, DecodeError> {
        self.array().map(u64::from_ne_bytes)
    }

    /// The first `N` bytes of a payload that may be longer (addresses come in 16 bytes whatever their family).
    pub(crate) fn prefix<const N: usize>(&self) -> Result<[u8; N], DecodeError> {
        self.payload.first_chunk().copied().ok_or_else(|| self.size(N))
    }

    pub(crate) fn array<const N: usize>(&self) -> Result<[u8; N], DecodeError> {
        self.payload.try_into().map_err(|_| self.size(N))
    }

    /// Text up to the first NUL.
    pub(crate) fn text(&self) -> Result<&'a str, DecodeError> {
        let text = self.payload.split(|byte| *byte == 0).next().unwrap_or_default();
        std::str::from_utf8(text)
            .map_err(|_| DecodeError { object: self.object, problem: Problem::Name(self.kind) })
    }

    /// The attributes inside.
    pub(crate) fn nested(&self, object: &'static str) -> Attributes<'a> {
        Attributes::new(object, self.payload)
    }

    /// A value that has the right size and makes no sense.
    pub(crate) fn wrong(&self, value: impl Into<u64>) -> DecodeError {
        let problem = Problem::Value { kind: self.kind, value: value.into() };
        DecodeError { object: self.object, problem }
    }

    fn size(&self, need: usize) -> DecodeError {
        let problem = Problem::AttributeSize { kind: self.kind, have: self.payload.len(), need };
        DecodeError { object: self.object, problem }
    }
}

/// Iterates over attributes; a wrong length ends it with an error.
#[derive(Clone, Debug)]
pub(crate) struct Attributes<'a> {
    object: &'static str,
    rest: &'a [u8],
}

impl<'a> Attributes<'a> {
    pub(crate) fn new(object: &'static str, bytes: &'a [u8]) -> Self {
        Self { object, rest: bytes }
    }

    fn fail(&mut self, problem: Problem) -> DecodeError {
        self.rest = &[];
        DecodeError { object: self.object, problem }
    }
}

impl<'a> Iterator for Attributes<'a> {
    type Item = Result<Attribute<'a>, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let room = self.rest.len();
        let Some((&[l0, l1, k0, k1], _)) = self.rest.split_first_chunk() else {
            return Some(Err(self.fail(Problem::Short { have: room, need: HEADER })));
        };
        let length = usize::from(u16::from_ne_bytes([l0, l1]));
        let Some(payload) = self.rest.get(HEADER..length) else {
            return Some(Err(self.fail(Problem::Length { length, room })));
        };
        // The padding of the last attribute may be missing.
        self.rest = self.rest.get(align(length)..).unwrap_or_default();
        let kind = u16::from_ne_bytes([k0, k1]) & TYPE_MASK;
        Some(Ok(Attribute { object: self.object, kind, payload }))
    }
}

/// For what an object cannot be without.
pub(crate) fn required<T>(value: Option<T>, object: &'static str, kind: u16) -> Result<T, DecodeError> {
    value.ok_or(DecodeError { object, problem: Problem::Missing(kind) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read() {
        let mut buffer = Vec::new();
        let mut writer = Writer(&mut buffer);
        writer.nest(1, |inner| {
            inner.u8(2, 7);
            inner.be16(3, 80);
            inner.name(4, "wlc");
        });
        writer.u32(5, 900);
        assert_eq!(buffer.len() % 4, 0);
        let all: Vec<_> = Attributes::new("test", &buffer).collect::<Result<_, _>>().unwrap();
        assert_eq!(all.iter().map(|a| a.kind).collect::<Vec<_>>(), [1, 5]);
        let inner: Vec<_> = all[0].nested("inner").collect::<Result<_, _>>().unwrap();
        assert_eq!(inner[0].u8().unwrap(), 7);
        assert_eq!(inner[1].be16().unwrap(), 80);
        assert_eq!(inner[2].text().unwrap(), "wlc");
        assert_eq!(inner[2].payload, b"wlc\0");
        assert_eq!(all[1].u32().unwrap(), 900);
    }

    #[test]
    fn a_length_beyond_the_end_is_an_error_and_the_end() {
        for bytes in [&[9, 0, 1, 0, 0][..], &[3, 0, 1, 0], &[0, 0, 0, 0], &[4, 0, 1]] {
            let mut attributes = Attributes::new("test", bytes);
            assert!(attributes.next().unwrap().is_err(), "{bytes:?}");
            assert!(attributes.next().is_none());
        }
    }

    #[test]
    fn a_wrong_size_says_which_attribute() {
        let bytes = [6, 0, 3, 0, 1, 2];
        let attribute = Attributes::new("service", &bytes).next().unwrap().unwrap();
        assert_eq!(attribute.u32().unwrap_err().to_string(), "service: attribute 3 has 2 bytes, not 4");
    }
}
