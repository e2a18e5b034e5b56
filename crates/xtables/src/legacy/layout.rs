//! The layout of a table: `struct ipt_entry` and its targets, `struct ipt_getinfo` and `struct ipt_replace`
//! (`linux/netfilter_ipv4/ip_tables.h`; for IPv6 the same with another head).

use std::ops::Range;

use sluicegate_iptables_save::{Counters, Family, decode, encode};

use crate::entry::head_size;
use crate::extension::Mismatch;
use crate::extension::wire::{Reader, Writer, xt_align};

/// `sizeof(struct ipt_entry)`, `sizeof(struct ip6t_entry)`
pub(super) const fn entry_size(family: Family) -> usize {
    counters_at(family) + 16
}

/// The offset of the counters in an entry, which are aligned to eight bytes.
pub(super) const fn counters_at(family: Family) -> usize {
    (head_size(family) + 12).next_multiple_of(8)
}

/// The offset of `target_offset` and `next_offset` in an entry.
pub(super) const fn offsets_at(family: Family) -> usize {
    head_size(family) + 4
}

/// `sizeof(struct xt_entry_match)`, which is that of a target, too: size, name and revision.
pub(super) const EXTENSION: usize = 32;
/// The size of the standard target: a verdict behind the common part.
const STANDARD: usize = xt_align(EXTENSION + 4);
/// The size of the error target: a name of `XT_FUNCTION_MAXNAMELEN` bytes behind the common part.
const ERROR: usize = xt_align(EXTENSION + 30);

/// An entry of a table.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry<'a> {
    pub(super) bytes: &'a [u8],
    /// The offset of the target.
    pub(super) target: usize,
    pub(super) family: Family,
}

/// A match or target inside an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Extension<'a> {
    pub(super) name: &'a [u8],
    pub(super) revision: u8,
    pub(super) data: &'a [u8],
}

impl<'a> Entry<'a> {
    /// Reads the entry at the start of `bytes`; `None` if its offsets contradict each other.
    pub(super) fn first(bytes: &'a [u8], family: Family) -> Option<Self> {
        let mut offsets = Reader::new(bytes.get(offsets_at(family)..)?);
        let [target, next] = [usize::from(offsets.u16()?), usize::from(offsets.u16()?)];
        if target < entry_size(family) || next < target + EXTENSION {
            return None;
        }
        let entry = Self { bytes: bytes.get(..next)?, target, family };
        entry.target_extension().is_some().then_some(entry)
    }

    /// Returns the matches; `None` for one whose size is wrong, which ends them.
    pub(super) fn matches(self) -> impl Iterator<Item = Option<Extension<'a>>> {
        let mut at = entry_size(self.family);
        std::iter::from_fn(move || {
            if at >= self.target {
                return None;
            }
            let found = self.bytes.get(at..self.target).and_then(Extension::first);
            at = found.map_or(self.target, |(_, size)| at + size);
            Some(found.map(|(extension, _)| extension))
        })
    }

    pub(super) fn target_extension(self) -> Option<Extension<'a>> {
        let bytes = self.bytes.get(self.target..)?;
        Extension::first(bytes).filter(|(_, size)| *size == bytes.len()).map(|(extension, _)| extension)
    }

    /// Returns the verdict of the standard target: negative, or the offset of a jump.
    pub(super) fn verdict(self) -> Option<i32> {
        let target = self.target_extension().filter(|target| target.name.is_empty())?;
        Some(Reader::new(target.data).u32()?.cast_signed())
    }

    pub(super) fn counters(self) -> Counters {
        let mut data = Reader::new(self.bytes.get(counters_at(self.family)..).unwrap_or_default());
        Counters { packets: data.u64().unwrap_or_default(), bytes: data.u64().unwrap_or_default() }
    }
}

impl<'a> Extension<'a> {
    /// Reads the match or target at the start of `bytes`, with its whole size.
    fn first(bytes: &'a [u8]) -> Option<(Self, usize)> {
        let mut data = Reader::new(bytes);
        let size = usize::from(data.u16()?);
        let name = data.take(29)?;
        let name = name.get(..name.iter().position(|byte| *byte == 0).unwrap_or(29))?;
        let revision = data.u8()?;
        let data = bytes.get(EXTENSION..size)?;
        Some((Self { name, revision, data }, size))
    }

    pub(super) fn name(self) -> String {
        decode(self.name).into_owned()
    }
}

/// Writes an entry: head, matches, and a target with its data.
pub(super) fn write_entry(
    family: Family,
    head: &[u8],
    matches: &[(&str, u8, &[u8])],
    target: (&str, u8, &[u8]),
) -> Result<Vec<u8>, Mismatch> {
    let size = |data: &[u8]| EXTENSION + xt_align(data.len());
    let target_at = entry_size(family) + matches.iter().map(|(_, _, data)| size(data)).sum::<usize>();
    let short = |length: usize| {
        let limit = || Mismatch::expected("a rule of at most 65535 bytes").found(length);
        u16::try_from(length).map_err(|_| limit())
    };
    let mut out = Writer::with_capacity(target_at + size(target.2));
    out.bytes(head);
    out.zeros(4);
    out.u16(short(target_at)?);
    out.u16(short(target_at + size(target.2))?);
    out.zeros(entry_size(family) - offsets_at(family) - 4);
    for (name, revision, data) in matches.iter().copied().chain([target]) {
        out.u16(short(size(data))?);
        out.text(name, 29)?;
        out.u8(revision);
        out.bytes(data);
        out.align(8);
    }
    Ok(out.finish())
}

/// Returns an entry with the standard target.
pub(super) fn standard_entry(family: Family, verdict: i32) -> Vec<u8> {
    let head = vec![0; head_size(family)];
    write_entry(family, &head, &[], ("", 0, &verdict.to_ne_bytes())).unwrap_or_default()
}

/// The entry in front of a chain, and at the end of a table, which are alike but for the name.
pub(super) struct ErrorEntry(Vec<u8>);

impl ErrorEntry {
    pub(super) fn new(family: Family) -> Self {
        let nameless = write_entry(family, &vec![0; head_size(family)], &[], ("ERROR", 0, &[0; 30]));
        Self(nameless.unwrap_or_default())
    }

    pub(super) fn write(&self, name: &str, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.0);
        let end = out.len();
        let place = out.get_mut(end - xt_align(30)..end).unwrap_or_default();
        place.iter_mut().zip(encode(name).iter().take(30)).for_each(|(place, byte)| *place = *byte);
    }
}

pub(super) const fn standard_size(family: Family) -> usize {
    entry_size(family) + STANDARD
}

pub(super) const fn error_size(family: Family) -> usize {
    entry_size(family) + ERROR
}

/// The place of the verdict in an entry with the standard target.
pub(super) fn verdict_at(entry: &[u8], family: Family) -> Option<Range<usize>> {
    let target = usize::from(Reader::new(entry.get(offsets_at(family)..)?).u16()?);
    Some(target + EXTENSION..target + EXTENSION + 4)
}

/// `struct ipt_getinfo`: which hooks a table has, and where their chains start and end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Info {
    pub(super) valid_hooks: u32,
    pub(super) starts: [u32; 5],
    pub(super) policies: [u32; 5],
    pub(super) entries: u32,
    pub(super) size: u32,
}

impl Info {
    pub(super) const SIZE: usize = 84;

    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let data = &mut Reader::new(bytes.get(TABLE_NAME..)?);
        let five =
            |data: &mut Reader<'_>| Some([data.u32()?, data.u32()?, data.u32()?, data.u32()?, data.u32()?]);
        Some(Self {
            valid_hooks: data.u32()?,
            starts: five(data)?,
            policies: five(data)?,
            entries: data.u32()?,
            size: data.u32()?,
        })
    }
}

impl Info {
    /// Writes the fields that `struct ipt_replace` has of a table, behind its name.
    pub(super) fn write_replace(&self, request: &mut [u8]) {
        let head = [self.valid_hooks, self.entries, self.size];
        let fields =
            head.iter().chain(&self.starts).chain(&self.policies).flat_map(|field| field.to_ne_bytes());
        let place = request.get_mut(TABLE_NAME..).unwrap_or_default();
        place.iter_mut().zip(fields).for_each(|(place, byte)| *place = byte);
    }
}

/// Returns the start of a request about a table.
pub(super) fn table_request(table: &str, size: usize) -> Result<Vec<u8>, Mismatch> {
    let mut out = Writer::default();
    out.text(table, TABLE_NAME)?;
    out.zeros(size.saturating_sub(TABLE_NAME));
    Ok(out.finish())
}

/// `XT_TABLE_MAXNAMELEN`
pub(super) const TABLE_NAME: usize = 32;
/// `offsetof(struct ipt_get_entries, entrytable)`: a name and a size, and entries aligned to eight bytes.
pub(super) const ENTRIES_AT: usize = TABLE_NAME + 8;
/// `sizeof(struct ipt_replace)`, without its entries.
pub(super) const REPLACE: usize = 96;
/// `sizeof(struct xt_counters_info)`, without its counters.
pub(super) const COUNTERS_INFO: usize = 40;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sizes_are_those_of_the_headers() {
        let sizes = |family| [entry_size(family), standard_size(family), error_size(family)];
        assert_eq!(sizes(Family::Ipv4), [112, 152, 176]);
        assert_eq!(sizes(Family::Ipv6), [168, 208, 232]);
    }

    #[test]
    fn an_entry_reads_back_and_a_cut_one_does_not() {
        let data = [1; 12];
        let bytes = write_entry(Family::Ipv4, &[0; 84], &[("mark", 1, &data)], ("", 0, &[0; 4])).unwrap();
        let entry = Entry::first(&bytes, Family::Ipv4).unwrap();
        let matches: Vec<_> = entry.matches().map(Option::unwrap).collect();
        assert_eq!(
            (matches[0].name(), matches[0].revision, matches[0].data.len()),
            ("mark".to_owned(), 1, 16)
        );
        assert_eq!(entry.verdict(), Some(0));
        for end in 0..bytes.len() {
            assert!(Entry::first(&bytes[..end], Family::Ipv4).is_none());
        }
    }
}
