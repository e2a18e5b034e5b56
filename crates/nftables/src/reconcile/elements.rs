//! Compares the wanted elements of a set with those in the kernel, by their bytes.

use std::borrow::Cow;
use std::collections::HashMap;

use crate::error::{ContentProblem, Error};
use crate::expr::Data;
use crate::family::Family;
use crate::key::{Key, Part, types_of};
use crate::lang::millis;
use crate::name::Comment;
use crate::object::element::{Form, Packed, is_byte_swapped, successor, unswap_key, wire_key};
use crate::object::{Element, ElementData, Set, SetFlags};
use crate::read::{self, ElementFlags};
use crate::reconcile::body::{statements_of, write_expr, write_statements};
use crate::reconcile::kernel::{Ref, refs_of_element};
use crate::reconcile::{Foreign, Options};

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
pub(super) fn from_wanted(form: Form, element: &Element) -> Range<'_> {
    if element.is_catch_all() {
        return Range { start: Cow::Borrowed(&[]), end: None };
    }
    let key = element.packed_key();
    let swapped = form != Form::Plain && types_of(key.kinds).any(is_byte_swapped);
    let bytes = |bytes| match swapped {
        true => Cow::Owned(wire_key(&Packed { bytes, ..key }.into(), true)),
        false => Cow::Borrowed(bytes),
    };
    let start = bytes(key.bytes);
    let end = match form {
        Form::Plain => element.end_bytes().filter(|end| *end != key.bytes).map(Cow::Borrowed),
        Form::Concat => Some(bytes(element.end_bytes().unwrap_or(key.bytes))),
        Form::Interval => successor(&element.last()).map(|behind| Cow::Owned(wire_key(&behind, true))),
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
pub(super) fn from_kernel(form: Form, elements: &[read::Element]) -> Vec<Found<'_>> {
    fn found<'k>(element: &'k read::Element, end: Option<&'k [u8]>, unclosed: bool) -> Found<'k> {
        let range = Range { start: Cow::Borrowed(&element.key), end: end.map(Cow::Borrowed) };
        Found { range, element, unclosed }
    }
    // An element without an end in a set of concatenations has a single key.
    fn last(element: &read::Element) -> &[u8] {
        element.key_end.as_deref().unwrap_or(&element.key)
    }
    if form != Form::Interval {
        let has_end = |element: &read::Element| form == Form::Concat && !element.key.is_empty();
        return elements.iter().map(|e| found(e, has_end(e).then(|| last(e)), false)).collect();
    }
    let ends = |element: &read::Element| element.flags.contains(ElementFlags::INTERVAL_END);
    let is_catch_all = |element: &read::Element| element.flags.contains(ElementFlags::CATCHALL);
    // Keys of such a set are sorted by their bytes. At the same key, an end comes before a start.
    let mut sorted: Vec<_> = elements.iter().filter(|element| !is_catch_all(element)).collect();
    sorted.sort_unstable_by(|a, b| a.key.cmp(&b.key).then_with(|| ends(b).cmp(&ends(a))));
    let mut all: Vec<_> =
        elements.iter().filter(|e| is_catch_all(e)).map(|e| found(e, None, false)).collect();
    for (at, element) in sorted.iter().enumerate().filter(|(_, element)| !ends(element)) {
        let next = sorted.get(at + 1);
        all.push(found(element, next.map(|next| next.key.as_slice()), next.is_some_and(|next| !ends(next))));
    }
    all
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
        let index = index(self.wanted, wanted)?;
        let mut stays = vec![false; wanted.len()];
        let mut out = Elements::default();
        // If rules can add elements, those with a wanted key stay, and so do unwanted ones.
        let dynamic = self.kernel.flags.contains(SetFlags::DYNAMIC);
        let parts = self.wanted.key.parts();
        let mut any_unclosed = false;
        for Found { range, element, unclosed } in from_kernel(form, kernel) {
            any_unclosed |= unclosed;
            let found = at(&index, &range).and_then(|at| Some((wanted.get(at)?, stays.get_mut(at)?)));
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
        out.deleted.sort_unstable_by(|a, b| {
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
        let data = match (wanted.data(), &kernel.data) {
            (ElementData::None, None) => kernel.object.is_none(),
            (ElementData::Value(wanted), Some(Data::Value(kernel))) => wanted.bytes() == kernel.as_slice(),
            (ElementData::Verdict(wanted), Some(Data::Verdict(kernel))) => wanted == *kernel,
            (ElementData::Range(low, high), Some(Data::Value(kernel))) => {
                kernel.strip_prefix(low.bytes()).is_some_and(|rest| rest == high.bytes())
            }
            (ElementData::Object(wanted), None) => kernel.object.as_ref() == Some(&wanted),
            _ => false,
        };
        data && self.is_same_comment(wanted, kernel)
            && self.is_same_timeout(wanted, kernel)
            && self.carries_same(wanted, kernel)
    }

    fn is_same_comment(&self, wanted: &Element, kernel: &read::Element) -> bool {
        match (wanted.get_comment(), kernel.comment()) {
            (None, None) => true,
            (Some(wanted), Some(kernel)) => *wanted == Comment::lossy(kernel),
            _ => false,
        }
    }

    /// Compares timeouts. An element that never expires has no remaining lifetime, and before Linux 6.12 no
    /// timeout.
    fn is_same_timeout(&self, wanted: &Element, kernel: &read::Element) -> bool {
        let of_kernel = match (kernel.timeout, kernel.expiration) {
            (Some(own), _) => own,
            (None, Some(_)) => self.kernel.timeout.unwrap_or(0),
            (None, None) => 0,
        };
        wanted.get_timeout().or(self.wanted.timeout).map_or(0, millis) == of_kernel
    }

    fn carries_same(&self, wanted: &Element, kernel: &read::Element) -> bool {
        let statements = statements_of(wanted, &self.wanted.statements);
        if statements.is_empty() || kernel.expressions.is_empty() {
            return statements.is_empty() && kernel.expressions.is_empty();
        }
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        let wrote = write_statements(statements, self.family, &mut ours).and_then(|()| {
            kernel.expressions.iter().try_for_each(|e| write_expr(e.clone(), self.family, &mut theirs))
        });
        wrote.is_ok() && ours == theirs
    }
}

/// Returns the index of the wanted element with these keys.
fn at(index: &HashMap<Range<'_>, usize>, range: &Range<'_>) -> Option<usize> {
    index.get(range).copied()
}

/// Maps the keys of the wanted elements to their indices.
fn index<'w>(set: &Set, wanted: &'w [Element]) -> Result<HashMap<Range<'w>, usize>, Error> {
    let form = Form::of(set);
    let mut index = HashMap::with_capacity(wanted.len());
    for (at, element) in wanted.iter().enumerate() {
        let before = index.insert(from_wanted(form, element), at);
        // Like the kernel, accept an element twice if both are equal.
        if before.and_then(|before| wanted.get(before)).is_some_and(|before| before != element) {
            let object = format_args!("element {} {{ {} }}", set.id, element.key());
            return Err(Error::content(object, ContentProblem::Twice));
        }
    }
    Ok(index)
}

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
