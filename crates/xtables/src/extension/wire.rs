//! The bytes of a C structure: written in order with the padding that the compiler puts in, read by a bounded
//! cursor.
//!
//! Numbers are in the byte order of the machine unless a function says otherwise. Layouts are those of a
//! 64-bit kernel: pointers have eight bytes.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::Range;

use crate::extension::Mismatch;
use sluicegate_iptables_save::{Family, decode, encode};

/// Returns `size` rounded up to what every entry, match and target is aligned to (`XT_ALIGN`,
/// `linux/netfilter/x_tables.h`): the alignment of `__u64`.
pub(crate) const fn xt_align(size: usize) -> usize {
    size.next_multiple_of(align_of::<u64>())
}

/// Writes a structure.
#[derive(Debug, Default)]
pub(crate) struct Writer(Vec<u8>);

impl Writer {
    pub(crate) fn with_capacity(size: usize) -> Self {
        Self(Vec::with_capacity(size))
    }

    pub(crate) fn finish(self) -> Vec<u8> {
        self.0
    }

    pub(crate) fn u8(&mut self, value: u8) {
        self.0.push(value);
    }

    pub(crate) fn u16(&mut self, value: u16) {
        self.bytes(&value.to_ne_bytes());
    }

    pub(crate) fn u32(&mut self, value: u32) {
        self.bytes(&value.to_ne_bytes());
    }

    pub(crate) fn u64(&mut self, value: u64) {
        self.bytes(&value.to_ne_bytes());
    }

    pub(crate) fn be16(&mut self, value: u16) {
        self.bytes(&value.to_be_bytes());
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    pub(crate) fn zeros(&mut self, count: usize) {
        self.0.resize(self.0.len() + count, 0);
    }

    /// Fills up to a multiple of `alignment`.
    pub(crate) fn align(&mut self, alignment: usize) {
        self.0.resize(self.0.len().next_multiple_of(alignment), 0);
    }

    /// Writes `char[size]`, whose last byte stays zero.
    pub(crate) fn text(&mut self, text: &str, size: usize) -> Result<(), Mismatch> {
        let bytes = encode(text);
        if bytes.len() >= size {
            let most = size - 1;
            return Err(Mismatch::expected(format!("at most {most} bytes")).found(text));
        }
        self.bytes(&bytes);
        self.zeros(size - bytes.len());
        Ok(())
    }

    /// Writes a mask as `union nf_inet_addr`. Of an IPv4 mask the tool fills the rest with ones if nobody
    /// gave it.
    pub(crate) fn mask(&mut self, mask: IpAddr, given: bool) {
        match mask {
            IpAddr::V4(mask) if !given => {
                self.bytes(&mask.octets());
                self.bytes(&[u8::MAX; 12]);
            }
            mask => self.inet(mask),
        }
    }

    /// Writes `union nf_inet_addr`: 16 bytes, of which an IPv4 address takes the first four.
    pub(crate) fn inet(&mut self, address: IpAddr) {
        match address {
            IpAddr::V4(address) => {
                self.bytes(&address.octets());
                self.zeros(12);
            }
            IpAddr::V6(address) => self.bytes(&address.octets()),
        }
    }
}

/// Reads a structure. Whatever is missing is `None`.
#[derive(Debug, Clone)]
pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    ignored: Vec<Range<usize>>,
    ignored_bits: Vec<(usize, u8)>,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0, ignored: Vec::new(), ignored_bits: Vec::new() }
    }

    pub(crate) fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let taken = self.bytes.get(self.at..self.at.checked_add(count)?)?;
        self.at += count;
        Some(taken)
    }

    /// Notes that the last bytes that were read mean nothing.
    pub(crate) fn ignore(&mut self, count: usize) {
        self.ignored.push(self.at.saturating_sub(count)..self.at);
    }

    /// Notes that bytes mean nothing, by their offsets in the structure.
    pub(crate) fn ignore_at(&mut self, range: Range<usize>) {
        self.ignored.push(range);
    }

    /// Notes that bits of the byte at an offset mean nothing.
    pub(crate) fn ignore_bits_at(&mut self, offset: usize, bits: u8) {
        self.ignored_bits.push((offset, bits));
    }

    /// Returns whether other bytes are the same up to `end`, without those that mean nothing: padding, and
    /// what follows the end of a text.
    pub(crate) fn is_same(&self, other: &[u8], end: usize) -> bool {
        let ignored = |at: usize| self.ignored.iter().any(|range| range.contains(&at));
        let bits = |at: usize| {
            let here = self.ignored_bits.iter().filter(|(offset, _)| *offset == at);
            here.fold(0, |bits, (_, more)| bits | more)
        };
        let (Some(own), Some(other)) = (self.bytes.get(..end), other.get(..end)) else { return false };
        let same = |(at, (a, b)): (usize, (&u8, &u8))| (a ^ b) & !bits(at) == 0 || ignored(at);
        own == other || own.iter().zip(other).enumerate().all(same)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    pub(crate) fn u8(&mut self) -> Option<u8> {
        self.array().map(|[byte]| byte)
    }

    pub(crate) fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_ne_bytes)
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_ne_bytes)
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_ne_bytes)
    }

    pub(crate) fn be16(&mut self) -> Option<u16> {
        self.array().map(u16::from_be_bytes)
    }

    /// Reads padding.
    pub(crate) fn skip(&mut self, count: usize) -> Option<()> {
        self.take(count)?;
        self.ignore(count);
        Some(())
    }

    /// Reads `char[size]` up to its first zero.
    pub(crate) fn text(&mut self, size: usize) -> Option<String> {
        let bytes = self.take(size)?;
        let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(size);
        self.ignore(size - end);
        Some(decode(bytes.get(..end)?).into_owned())
    }

    /// Reads `union nf_inet_addr`.
    pub(crate) fn inet(&mut self, family: Family) -> Option<IpAddr> {
        let bytes: [u8; 16] = self.array()?;
        Some(match family {
            Family::Ipv6 => IpAddr::V6(Ipv6Addr::from(bytes)),
            Family::Ipv4 => {
                self.ignore(12);
                let (head, _) = bytes.split_first_chunk::<4>()?;
                IpAddr::V4(Ipv4Addr::from(*head))
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_rounded_up_to_eight() {
        assert_eq!([0, 1, 8, 9, 84].map(xt_align), [0, 8, 8, 16, 88]);
    }

    #[test]
    fn a_text_that_does_not_fit_is_refused_and_a_short_structure_is_none() {
        let mut writer = Writer::default();
        writer.text("abc", 4).unwrap();
        let error = writer.text("abcd", 4).unwrap_err();
        assert_eq!(error.to_string(), "expected at most 3 bytes, found `abcd`");
        let bytes = writer.finish();
        let mut reader = Reader::new(&bytes);
        assert_eq!(reader.text(4).as_deref(), Some("abc"));
        assert_eq!(reader.u8(), None);
    }
}
