//! The first look at the kernel's entries: where chains are, and which entries jump. Of each entry no more is
//! read than its offsets and the name of its target.

use std::ops::Range;

use sluicegate_iptables_save::Family;

use super::layout::{EXTENSION, Info, entry_size, offsets_at};

/// What there is in a table.
#[derive(Debug)]
pub(super) struct Scan {
    pub(super) chains: Vec<OldChain>,
    /// For each chain where its first rule is, in ascending order.
    pub(super) starts: Vec<u32>,
    /// In order.
    pub(super) jumps: Vec<OldJump>,
    /// Whether built-in chains come first, and the others in the order of their names.
    pub(super) is_sorted: bool,
}

/// A chain of the kernel. Ranges are of bytes of the entries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OldChain {
    /// The number of the hook of a built-in chain.
    pub(super) hook: Option<usize>,
    /// The name of a user-defined chain.
    pub(super) name: Range<usize>,
    /// With the entry in front of a user-defined chain, and the one that ends it or has the policy.
    pub(super) whole: Range<usize>,
    pub(super) rules: Range<usize>,
    /// The numbers of the entries of the rules.
    pub(super) numbers: Range<usize>,
}

impl OldChain {
    /// Returns the numbers of the entries of the whole.
    pub(super) fn all_numbers(&self) -> Range<usize> {
        self.numbers.start.saturating_sub(usize::from(self.hook.is_none()))..self.numbers.end + 1
    }
}

/// An entry whose verdict is an offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct OldJump {
    at: u32,
    to: u32,
}

impl OldJump {
    /// Returns where the verdict is.
    pub(super) fn at(self) -> usize {
        self.at as usize
    }

    /// Returns where the chain begins that it leads to; `None` for the next entry.
    pub(super) fn to(self) -> Option<u32> {
        (self.to != NEXT).then_some(self.to)
    }
}

/// A chain whose end has not been found yet.
struct Open {
    hook: Option<usize>,
    name: Range<usize>,
    head: usize,
    start: usize,
    first: usize,
}

impl Scan {
    /// Looks through entries. An error is an offset with what is wrong there.
    pub(super) fn new(family: Family, entries: &[u8], info: &Info) -> Result<Self, (usize, &'static str)> {
        if u32::try_from(entries.len()).is_err() {
            return Err((0, "expected a table of at most 4 GiB"));
        }
        let mut scan = Self { chains: Vec::new(), starts: Vec::new(), jumps: Vec::new(), is_sorted: true };
        let mut begins = Offsets::new(entries.len());
        let mut hooks: Vec<_> = info.starts.iter().map(|start| *start as usize).zip(0..).collect();
        hooks.retain(|(_, hook)| info.valid_hooks & 1 << hook != 0);
        hooks.sort_unstable();
        let mut hooks = hooks.into_iter().peekable();
        let (mut offset, mut last, mut number) = (0, 0, 0);
        let mut open: Option<Open> = None;
        while offset < entries.len() {
            let entry = Bounds::of(entries, offset, family).ok_or((offset, "expected an entry"))?;
            let next = entry.next;
            while let Some((start, hook)) = hooks.next_if(|(start, _)| *start <= offset) {
                // Of two hooks with one chain the first has it.
                if start == offset && open.as_ref().is_none_or(|open| open.start != offset) {
                    open = Some(Open {
                        hook: Some(hook),
                        name: 0..0,
                        head: offset,
                        start: offset,
                        first: number,
                    });
                }
            }
            if let Some(name) = entry.error_name(entries) {
                scan.close(open.take(), last, offset, number)?;
                // The last entry of all ends the table.
                if next < entries.len() {
                    begins.insert(next);
                    let (head, start, first) = (offset, next, number + 1);
                    open = Some(Open { hook: None, name, head, start, first });
                }
            } else {
                let chain = open.as_ref().ok_or((offset, "an entry outside of a chain"))?;
                let policy = chain.hook.and_then(|hook| info.policies.get(hook));
                if policy.is_some_and(|policy| *policy as usize == offset) {
                    scan.add(open.take(), offset, next, number);
                } else if let Some((at, to)) = entry.jump(entries) {
                    let to = if to as usize == next { NEXT } else { to };
                    scan.jumps.push(OldJump { at, to });
                }
            }
            (last, offset) = (offset, next);
            number += 1;
        }
        if number != info.entries as usize {
            return Err((offset, "the number of entries is another one"));
        }
        match scan.jumps.iter().find(|jump| jump.to != NEXT && !begins.contains(jump.to as usize)) {
            Some(jump) => Err((jump.at(), "a jump to where no chain starts")),
            None => {
                let key = |chain: &OldChain| (chain.hook.is_none(), entries.get(chain.name.clone()));
                scan.is_sorted = scan.chains.is_sorted_by(|a, b| key(a) <= key(b));
                Ok(scan)
            }
        }
    }

    /// Ends a user-defined chain before the entry at `offset`: its last entry is the return to the caller.
    fn close(
        &mut self,
        open: Option<Open>,
        last: usize,
        offset: usize,
        number: usize,
    ) -> Result<(), (usize, &'static str)> {
        match open {
            None => Ok(()),
            Some(open) if open.hook.is_none() && number > open.first => {
                self.add(Some(open), last, offset, number - 1);
                Ok(())
            }
            Some(_) => Err((offset, "a chain without an end")),
        }
    }

    /// Adds a chain whose last entry is from `end` to `next` and has the number `number`.
    fn add(&mut self, open: Option<Open>, end: usize, next: usize, number: usize) {
        let Some(Open { hook, name, head, start, first }) = open else { return };
        self.starts.push(u32::try_from(start).unwrap_or(u32::MAX));
        let (whole, rules) = (head..next, start..end);
        self.chains.push(OldChain { hook, name, whole, rules, numbers: first..number });
    }
}

/// Where an entry has its target, and where it ends.
struct Bounds {
    target: usize,
    next: usize,
}

impl Bounds {
    /// Returns those of the entry at an offset; `None` if they contradict each other.
    fn of(entries: &[u8], at: usize, family: Family) -> Option<Self> {
        let short = |at: usize| Some(usize::from(u16::from_ne_bytes(*entries.get(at..)?.first_chunk()?)));
        let offsets = at + offsets_at(family);
        let (target, next) = (short(offsets)?, short(offsets + 2)?);
        let is_whole = target >= entry_size(family)
            && next >= target + EXTENSION
            && next.is_multiple_of(ALIGNMENT)
            && entries.len() - at >= next
            && short(at + target)? == next - target;
        is_whole.then_some(Self { target: at + target, next: at + next })
    }

    fn name<'a>(&self, entries: &'a [u8]) -> &'a [u8] {
        entries.get(self.target + 2..self.target + 31).unwrap_or_default()
    }

    /// Returns the place of the name of a chain, or of `ERROR` at the end of a table.
    fn error_name(&self, entries: &[u8]) -> Option<Range<usize>> {
        if !self.name(entries).starts_with(b"ERROR\0") {
            return None;
        }
        let start = self.target + EXTENSION;
        let name = entries.get(start..self.next)?.first_chunk::<30>()?;
        let length = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
        Some(start..start + length)
    }

    /// Returns the place of a verdict that is an offset, and the offset.
    fn jump(&self, entries: &[u8]) -> Option<(u32, u32)> {
        if self.name(entries).first() != Some(&0) {
            return None;
        }
        let at = self.target + EXTENSION;
        let verdict = u32::from_ne_bytes(*entries.get(at..self.next)?.first_chunk()?);
        (verdict.cast_signed() >= 0).then_some((u32::try_from(at).ok()?, verdict))
    }
}

/// A set of offsets of entries.
#[derive(Debug)]
pub(super) struct Offsets(Vec<u64>);

impl Offsets {
    pub(super) fn new(size: usize) -> Self {
        Self(vec![0; size / ALIGNMENT / 64 + 1])
    }

    pub(super) fn insert(&mut self, offset: usize) {
        let bit = offset / ALIGNMENT;
        self.0.get_mut(bit / 64).into_iter().for_each(|word| *word |= 1 << (bit % 64));
    }

    pub(super) fn contains(&self, offset: usize) -> bool {
        let bit = offset / ALIGNMENT;
        offset.is_multiple_of(ALIGNMENT)
            && self.0.get(bit / 64).is_some_and(|word| word & 1 << (bit % 64) != 0)
    }
}

/// What the kernel aligns entries to.
const ALIGNMENT: usize = 8;
/// Of a jump to the next entry: no chain begins there.
const NEXT: u32 = u32::MAX;
