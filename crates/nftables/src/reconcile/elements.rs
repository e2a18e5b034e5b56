//! Compares the wanted elements of a set with those in the kernel, by their bytes.

use std::borrow::Cow;
use std::hash::{BuildHasher, Hasher, RandomState};

use crate::error::{ContentProblem, Error};
use crate::family::Family;
use crate::key::{Key, Part, is_byte_swapped, types_of};
use crate::name::Comment;
use crate::object::element::{Form, Packed, successor, unswap_key, wire_key};
use crate::object::{Element, Set, SetFlags};
use crate::read::{self, ElementFlags};
use crate::reconcile::body::{statements_of, write_expr, write_statements};
use crate::reconcile::kernel::{Ref, refs_of_element};
use crate::reconcile::{Foreign, Options};
use crate::sort;
use crate::wording::millis;

/// The range of keys of an element, as the kernel stores them.
///
/// The end is the last key of a concatenation of ranges, or the first key after an interval; `None` for a
/// single key and for an interval that ends with the last possible key. The start is empty only for the
/// catch-all element.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Range<'a> {
    pub(super) start: Cow<'a, [u8]>,
    pub(super) end: Option<Cow<'a, [u8]>>,
}

/// Returns the keys of a wanted element.
#[inline]
pub(super) fn from_wanted(form: Form, element: &Element) -> Range<'_> {
    let (key, end) = element.packed_bounds();
    match form {
        // The key of the catch-all element has no bytes.
        Form::Plain => {
            let end = end.filter(|end| *end != key.bytes).map(Cow::Borrowed);
            Range { start: Cow::Borrowed(key.bytes), end }
        }
        Form::Concat | Form::Interval => of_intervals(form, element),
    }
}

/// Returns the keys of a wanted element of a set with intervals.
fn of_intervals(form: Form, element: &Element) -> Range<'_> {
    if element.is_catch_all() {
        return Range { start: Cow::Borrowed(&[]), end: None };
    }
    let key = element.packed_key();
    let swapped = types_of(key.kinds).any(is_byte_swapped);
    let bytes = |bytes| match swapped {
        true => Cow::Owned(wire_key(&Packed { bytes, ..key }.into(), true)),
        false => Cow::Borrowed(bytes),
    };
    let start = bytes(key.bytes);
    let end = match form {
        Form::Interval => successor(&element.last()).map(|behind| Cow::Owned(wire_key(&behind, true))),
        Form::Plain | Form::Concat => Some(bytes(element.end_bytes().unwrap_or(key.bytes))),
    };
    Range { start, end }
}

/// An element in the kernel.
pub(super) struct Found<'k> {
    pub(super) range: Range<'k>,
    pub(super) element: &'k read::Element,
    /// Whether it is an interval without its own end: it extends to the start of the next one, and would grow
    /// if that were deleted.
    unclosed: bool,
}

/// Returns the elements in the kernel with their keys, without those that only end an interval.
pub(super) fn from_kernel(form: Form, elements: &[read::Element]) -> impl Iterator<Item = Found<'_>> {
    let (elements, intervals) = match form {
        Form::Plain | Form::Concat => (elements, Vec::new()),
        Form::Interval => (&[][..], intervals(elements)),
    };
    // An element without an end in a set of concatenations has a single key.
    let has_end = move |element: &read::Element| form == Form::Concat && !element.key.is_empty();
    let plain = elements.iter().map(move |element| {
        let end = has_end(element).then(|| element.details().key_end.as_deref().unwrap_or(&element.key));
        found(element, end, false)
    });
    plain.chain(intervals)
}

/// Returns the elements of a set of intervals.
fn intervals(elements: &[read::Element]) -> Vec<Found<'_>> {
    let ends = |element: &read::Element| element.flags.contains(ElementFlags::INTERVAL_END);
    let is_catch_all = |element: &read::Element| element.flags.contains(ElementFlags::CATCHALL);
    // Keys of such a set are sorted by their bytes. At the same key, an end comes before a start.
    let mut sorted: Vec<_> = elements.iter().filter(|element| !is_catch_all(element)).collect();
    sort::by(&mut sorted, |a, b| a.key.cmp(&b.key).then_with(|| ends(b).cmp(&ends(a))));
    let mut all: Vec<_> =
        elements.iter().filter(|e| is_catch_all(e)).map(|e| found(e, None, false)).collect();
    for (at, element) in sorted.iter().enumerate().filter(|(_, element)| !ends(element)) {
        let next = sorted.get(at + 1);
        all.push(found(element, next.map(|next| next.key.as_slice()), next.is_some_and(|next| !ends(next))));
    }
    all
}

fn found<'k>(element: &'k read::Element, end: Option<&'k [u8]>, unclosed: bool) -> Found<'k> {
    let range = Range { start: Cow::Borrowed(&element.key), end: end.map(Cow::Borrowed) };
    Found { range, element, unclosed }
}

/// The changes to the elements of a set that is not replaced.
#[derive(Debug, Default)]
pub(super) struct Elements {
    pub(super) deleted: Vec<Element>,
    pub(super) added: Vec<Element>,
    /// The number of deleted elements.
    pub(super) deleted_count: usize,
    /// Whether the kernel has an element that the types of the set cannot represent.
    pub(super) unrepresentable: bool,
}

/// The properties of the set on which the comparison of its elements depends.
pub(super) struct Context<'a, 'k> {
    pub(super) family: Family,
    pub(super) wanted: &'a Set,
    pub(super) kernel: &'k read::Set,
    pub(super) options: &'a Options<'a>,
    /// Whether an object is replaced, so that elements that refer to it have to be added again.
    pub(super) is_replaced: &'a dyn Fn(Ref<'_>) -> bool,
    /// Whether all elements have to be added again, because the set is replaced.
    pub(super) renew_all: bool,
}

impl<'k> Context<'_, 'k> {
    /// Compares the elements of a set. `kept` is called for each unwanted element that stays, and told
    /// whether it has to be added again.
    pub(super) fn compare(
        &self,
        wanted: &[Element],
        kernel: &'k [read::Element],
        kept: &mut dyn FnMut(Range<'k>, &'k read::Element, bool),
    ) -> Result<Elements, Error> {
        let form = Form::of(self.wanted);
        let index = Index::new(self.wanted, wanted)?;
        let mut stays = vec![false; wanted.len()];
        let mut out = Elements::default();
        // If rules can add elements, those with a wanted key stay, and so do unwanted ones.
        let dynamic = self.kernel.flags.contains(SetFlags::DYNAMIC);
        let parts = self.wanted.key.parts();
        let mut any_unclosed = false;
        for Found { range, element, unclosed } in from_kernel(form, kernel) {
            any_unclosed |= unclosed;
            let found = index.get(&range).and_then(|at| Some((wanted.get(at)?, stays.get_mut(at)?)));
            let renewed = self.renew_all || self.refers(element);
            let key = || key_of(form, &parts, &range);
            let key = match found {
                Some((wanted, stays)) if !renewed && (dynamic || self.is_same(wanted, element)) => {
                    *stays = true;
                    continue;
                }
                None if dynamic || (self.options.keep)(Foreign::Element(self.kernel, element)) => {
                    let key = renewed.then(key);
                    kept(range, element, renewed);
                    match key {
                        Some(key) => key,
                        None => continue,
                    }
                }
                _ => key(),
            };
            out.deleted_count += 1;
            match key {
                Some(key) => out.deleted.push(key),
                None => out.unrepresentable = true,
            }
        }
        out.unrepresentable |= any_unclosed && !out.deleted.is_empty();
        // The kernel lists the elements of a hash in the order of the hash.
        sort::by(&mut out.deleted, |a, b| {
            (a.packed_key().bytes, a.end_bytes()).cmp(&(b.packed_key().bytes, b.end_bytes()))
        });
        let missing = wanted.iter().zip(&stays).filter(|(_, stays)| !**stays);
        out.added.extend(missing.map(|(element, _)| element.clone()));
        Ok(out)
    }

    fn refers(&self, element: &read::Element) -> bool {
        let mut refers = false;
        refs_of_element(self.kernel, element, &mut |reference| refers |= (self.is_replaced)(reference));
        refers
    }

    fn is_same(&self, wanted: &Element, kernel: &read::Element) -> bool {
        wanted.maps_to(kernel.data.as_ref(), kernel.details().object.as_ref())
            && self.is_same_comment(wanted, kernel)
            && self.is_same_timeout(wanted, kernel)
            && self.carries_same(wanted, kernel)
    }

    fn is_same_comment(&self, wanted: &Element, kernel: &read::Element) -> bool {
        match (wanted.get_comment(), kernel.comment()) {
            (None, None) => true,
            (Some(wanted), Some(kernel)) => *wanted == Comment::from_kernel(&kernel),
            _ => false,
        }
    }

    /// Compares timeouts. An element that never expires has no remaining lifetime, and before Linux 6.12 no
    /// timeout.
    fn is_same_timeout(&self, wanted: &Element, kernel: &read::Element) -> bool {
        let of_kernel = match (kernel.details().timeout, kernel.details().expiration) {
            (Some(own), _) => own,
            (None, Some(_)) => self.kernel.timeout.unwrap_or(0),
            (None, None) => 0,
        };
        wanted.get_timeout().or(self.wanted.timeout).map_or(0, millis) == of_kernel
    }

    fn carries_same(&self, wanted: &Element, kernel: &read::Element) -> bool {
        let statements = statements_of(wanted, &self.wanted.statements);
        if statements.is_empty() || kernel.details().expressions.is_empty() {
            return statements.is_empty() && kernel.details().expressions.is_empty();
        }
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        let wrote = write_statements(statements, self.family, &mut ours).and_then(|()| {
            kernel
                .details()
                .expressions
                .iter()
                .try_for_each(|e| write_expr(e.clone(), self.family, &mut theirs))
        });
        wrote.is_ok() && ours == theirs
    }
}

/// The wanted elements by their keys, in a hash table of their indices.
///
/// It is a few bytes for each element, where a `HashMap` of the keys would be a cache line: a restart
/// compares tens of thousands of elements, in the order of the kernel's hash, and waits for memory most of
/// the time.
struct Index<'w> {
    form: Form,
    wanted: &'w [Element],
    /// The hash in the upper half, and the index plus one in the lower; 0 where there is none. Its length is
    /// a power of two, at least twice the number of elements.
    slots: Vec<u64>,
    seed: u64,
}

impl<'w> Index<'w> {
    fn new(set: &Set, wanted: &'w [Element]) -> Result<Self, Error> {
        let slots = vec![0; (wanted.len() * 2).next_power_of_two()];
        // A random seed, because the names and addresses in keys may come from others.
        let seed = RandomState::new().build_hasher().finish();
        let mut index = Self { form: Form::of(set), wanted, slots, seed };
        for (at, element) in wanted.iter().enumerate() {
            let range = from_wanted(index.form, element);
            let hash = index.hash(&range);
            match index.find(hash, &range) {
                // Like the kernel, accept an element twice if both are equal.
                Ok(before) if wanted.get(before).is_some_and(|before| before != element) => {
                    let object = format!("element {} {{ {} }}", set.id, element.key());
                    return Err(Error::content(object, ContentProblem::Twice));
                }
                Ok(_) => {}
                Err(free) => {
                    let entry = u64::try_from(at + 1).unwrap_or_default() | hash & HASH;
                    if let Some(slot) = index.slots.get_mut(free) {
                        *slot = entry;
                    }
                }
            }
        }
        Ok(index)
    }

    /// Returns the index of the wanted element with these keys.
    fn get(&self, range: &Range<'_>) -> Option<usize> {
        self.find(self.hash(range), range).ok()
    }

    /// Returns the index of the wanted element with these keys, or the slot for it.
    fn find(&self, hash: u64, range: &Range<'_>) -> Result<usize, usize> {
        let mask = self.slots.len().wrapping_sub(1);
        let mut slot = usize::try_from(hash >> 32).unwrap_or_default() & mask;
        loop {
            let entry = self.slots.get(slot).copied().unwrap_or_default();
            let at = usize::try_from(entry & !HASH).unwrap_or_default();
            if at == 0 {
                return Err(slot);
            }
            if entry & HASH == hash & HASH
                && let Some(element) = self.wanted.get(at - 1)
                && from_wanted(self.form, element) == *range
            {
                return Ok(at - 1);
            }
            slot = (slot + 1) & mask;
        }
    }

    fn hash(&self, Range { start, end }: &Range<'_>) -> u64 {
        let hash = fold(self.seed, start);
        end.as_deref().map_or(hash, |end| fold(!hash, end))
    }
}

/// Hashes the bytes, eight at a time, by multiplication to 128 bits and addition of the halves.
fn fold(seed: u64, bytes: &[u8]) -> u64 {
    let step = |hash: u64, word: u64| {
        let product = u128::from(hash ^ word) * u128::from(0x9e37_79b9_7f4a_7c15_u64);
        let [low, high] = [product, product >> 64].map(|half| u64::try_from(half & MASK).unwrap_or_default());
        (low ^ high).wrapping_add(0xd1b5_4a32_d192_ed03)
    };
    let mut hash = seed;
    let mut chunks = bytes.chunks_exact(8);
    for chunk in &mut chunks {
        hash = step(hash, chunk.try_into().map_or(0, u64::from_le_bytes));
    }
    let mut last = [0; 8];
    let rest = chunks.remainder();
    last.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
    step(step(hash, u64::from_le_bytes(last)), u64::try_from(bytes.len()).unwrap_or_default())
}

/// The half of an entry with the hash.
const HASH: u64 = 0xffff_ffff_0000_0000;
const MASK: u128 = 0xffff_ffff_ffff_ffff;

/// Returns the key to delete an element in the kernel; `None` if the types of the set cannot represent it.
fn key_of(form: Form, parts: &[Part], range: &Range<'_>) -> Option<Element> {
    if range.start.is_empty() {
        return Some(Element::catch_all());
    }
    let key = |bytes: &[u8]| match form {
        Form::Plain => Key::decode(parts, bytes),
        Form::Concat | Form::Interval => Key::decode(parts, &unswap_key(parts, bytes)),
    };
    let start = key(&range.start)?;
    Some(match (form, &range.end) {
        (Form::Plain, _) => Element::new(start),
        (Form::Concat, end) => Element::range(start, key(end.as_deref().unwrap_or(&range.start))?),
        (Form::Interval, None) => Element::range(start, start.last_of_type()),
        (Form::Interval, Some(behind)) => {
            let mut last = key(behind)?;
            last.decrement();
            Element::range(start, last)
        }
    })
}
