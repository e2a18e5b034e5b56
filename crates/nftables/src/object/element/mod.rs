//! Elements of sets and maps (`enum nft_set_elem_attributes`): 48 bytes each, most of them without an
//! allocation.

pub(crate) mod decode;
mod packed;
pub(crate) mod query;
mod text;
pub(crate) mod wire;

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::RangeInclusive;
use std::time::Duration;

#[cfg(feature = "reconcile")]
use crate::expr;
use crate::key::Key;
use crate::name::{Comment, Name};
use crate::object::SetId;
use crate::tree::{Statement, Verdict};
use crate::wording::millis;
pub(crate) use packed::Packed;
use packed::{Data, Sections, Store};
pub(crate) use text::{prefix_length, wildcard};
pub(crate) use wire::{
    Form, compare, needs_start, order, sortable, successor, unswap_key, wire_count, wire_key,
};

/// An element of a set or a map.
///
/// ```
/// use std::time::Duration;
///
/// use sluicegate_nftables::{Element, Port, lang::Verdict};
///
/// let banned = Element::new(std::net::Ipv4Addr::new(192, 0, 2, 7)).timeout(Duration::from_secs(600));
/// assert_eq!(banned.get_timeout(), Some(Duration::from_secs(600)));
/// // A key of two parts, and what a verdict map has for it.
/// let web = Element::new((std::net::Ipv4Addr::new(10, 96, 0, 10), Port(80))).verdict(Verdict::Accept);
/// assert!(web.end().is_none(), "one key, not an interval");
/// ```
#[derive(Clone)]
pub struct Element(Store);

/// The data of an element: what its key maps to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ElementData {
    /// No data: an element of a set.
    None,
    /// A value.
    Value(Key),
    /// A range of values, both bounds included, in maps with interval data.
    Range(Key, Key),
    /// A verdict.
    Verdict(Verdict),
    /// A stateful object.
    Object(Name),
}

impl Element {
    /// The timeout of an element that never expires, even if its set has a timeout: `timeout never`. Linux
    /// lists it since 6.12, and nft supports it since 1.1.1; nft 1.0.6 refuses the keyword, and lists the
    /// element without it.
    pub const NEVER: Duration = Duration::ZERO;

    /// Creates an element with this key.
    #[inline]
    pub fn new(key: impl Into<Key>) -> Self {
        Self(Store::of_key(Packed::from(&key.into())))
    }

    /// Creates an element for all keys from `low` to `high`, both included, for a set with the flag
    /// `interval`.
    ///
    /// In such a set, single keys are intervals too, and one without an end would reach up to the next
    /// element. [`Transaction::apply`](crate::Transaction::apply) adds the ends: if the transaction does not
    /// create the set, it asks the kernel for the flags of the set. For
    /// [`Transaction::encode`](crate::Transaction::encode), which makes no queries, write a single key as a
    /// range with the same key as both bounds.
    ///
    /// A range of Rust converts to such an element, too:
    ///
    /// ```
    /// use sluicegate_nftables::{Element, Port};
    ///
    /// assert_eq!(Element::from(Port(8000)..=Port(8010)), Element::range(Port(8000), Port(8010)));
    /// ```
    ///
    /// # Panics
    /// If the keys differ in the number of parts or bytes.
    pub fn range(low: impl Into<Key>, high: impl Into<Key>) -> Self {
        let (low, high) = (low.into(), high.into());
        assert!(are_alike(&low, &high), "a range from {low} to {high}, which are of other types");
        Self::new(low).to(high)
    }

    /// Creates an element for the addresses of a network, whose prefix is not longer than an address.
    pub(crate) fn network(address: IpAddr, length: u8) -> Self {
        let bits: u8 = if address.is_ipv4() { 32 } else { 128 };
        let free = u128::MAX.checked_shr(128 - u32::from(bits.saturating_sub(length))).unwrap_or(0);
        match address {
            IpAddr::V4(address) => {
                // At most 32 bits are free.
                let (bits, free) = (address.to_bits(), u32::try_from(free).unwrap_or(u32::MAX));
                Self::range(Ipv4Addr::from_bits(bits & !free), Ipv4Addr::from_bits(bits | free))
            }
            IpAddr::V6(address) => {
                let bits = address.to_bits();
                Self::range(Ipv6Addr::from_bits(bits & !free), Ipv6Addr::from_bits(bits | free))
            }
        }
    }

    /// Creates an element from the types and the bytes of its key.
    #[cfg(feature = "text")]
    pub(crate) fn of_packed(key: Packed<'_>) -> Self {
        Self(Store::of_key(key))
    }

    /// Returns the catch-all element `*`, which matches all keys that no other element matches. Since Linux
    /// 5.13.
    #[must_use]
    pub fn catch_all() -> Self {
        Self::new(Key::new())
    }

    /// Maps the key to a value.
    #[inline]
    #[must_use]
    pub fn value(self, value: impl Into<Key>) -> Self {
        self.packed_value(Packed::from(&value.into()))
    }

    /// Maps the key to a value from its types and bytes.
    #[inline]
    pub(crate) fn packed_value(mut self, value: Packed<'_>) -> Self {
        if !self.0.append_value(value) {
            self = self.maps(Data::Value, value, None, None);
        }
        self
    }

    /// Returns an element of the same types with other bytes, as the kernel stores them: to make tens of
    /// thousands of elements that are alike, in a tenth of the time that [`new`](Self::new) and
    /// [`value`](Self::value) take for each.
    ///
    /// Returns `None` if this element does not consist of a key and a value of these lengths, or if it is too
    /// long to be stored without an allocation: about 40 bytes.
    ///
    /// ```
    /// use std::net::Ipv4Addr;
    ///
    /// use sluicegate_nftables::{Element, Port};
    ///
    /// let first = Element::new(Ipv4Addr::new(10, 0, 0, 1)).value(Port(80));
    /// assert_eq!(first.with_bytes([10, 0, 0, 2], [0, 81]).unwrap().to_string(), "10.0.0.2 : 81");
    /// assert_eq!(first.with_bytes([10, 0, 0, 2], [0, 0, 0, 81]), None);
    /// ```
    #[inline]
    #[must_use]
    pub fn with_bytes<const K: usize, const V: usize>(&self, key: [u8; K], value: [u8; V]) -> Option<Self> {
        self.0.with_bytes(key, value).map(Self)
    }

    /// Maps the key to a range of values.
    ///
    /// # Panics
    /// If the values have not the same number of parts and bytes.
    #[must_use]
    pub fn value_range(self, low: impl Into<Key>, high: impl Into<Key>) -> Self {
        let (low, high) = (low.into(), high.into());
        assert!(are_alike(&low, &high), "a range from {low} to {high}, which are of other types");
        self.maps(Data::Value, Packed::from(&low), Some(high.bytes()), None)
    }

    /// Maps the key to a verdict.
    #[must_use]
    pub fn verdict(self, verdict: Verdict) -> Self {
        let (data, chain) = match verdict {
            Verdict::Accept => (Data::Accept, None),
            Verdict::Drop => (Data::Drop, None),
            Verdict::Continue => (Data::Continue, None),
            Verdict::Return => (Data::Return, None),
            Verdict::Jump(chain) => (Data::Jump, Some(chain)),
            Verdict::Goto(chain) => (Data::Goto, Some(chain)),
        };
        self.named(data, chain)
    }

    /// Maps the key to a stateful object.
    #[must_use]
    pub fn object(self, name: Name) -> Self {
        self.named(Data::Object, Some(name))
    }

    fn named(mut self, data: Data, name: Option<Name>) -> Self {
        match self.0.append_name(data, name) {
            Ok(()) => self,
            Err(name) => self.maps(data, Packed::default(), None, name),
        }
    }

    fn maps(&self, data: Data, value: Packed<'_>, end: Option<&[u8]>, name: Option<Name>) -> Self {
        let view = self.0.view();
        let sections = Sections { data: data.flags(), value, value_end: end, ..view.sections() };
        Self(Store::pack(sections, name, view.comment.cloned(), view.statements))
    }

    fn with<'a>(&'a self, change: impl FnOnce(&mut Sections<'a>)) -> Self {
        let view = self.0.view();
        let mut sections = view.sections();
        change(&mut sections);
        Self(Store::pack(sections, view.name().cloned(), view.comment.cloned(), view.statements))
    }

    /// Sets the comment.
    #[must_use]
    pub fn comment(self, comment: Comment) -> Self {
        let view = self.0.view();
        Self(Store::pack(view.sections(), view.name().cloned(), Some(comment), view.statements))
    }

    /// Sets the timeout: whole milliseconds, at least one, or [zero](Element::NEVER) for never.
    #[must_use]
    pub fn timeout(self, timeout: Duration) -> Self {
        self.with(|sections| sections.timeout = Some(millis(timeout)))
    }

    /// Sets the remaining lifetime of the element in whole milliseconds, which may differ from its timeout.
    #[must_use]
    pub fn expires(self, expires: Duration) -> Self {
        self.with(|sections| sections.expires = Some(millis(expires)))
    }

    /// Adds a counter, a limit or the like to the element.
    #[must_use]
    pub fn statement(mut self, statement: impl Into<Statement>) -> Self {
        self.0.push(statement.into());
        self
    }

    /// Returns the key: for a range the lower bound; for the catch-all element a key without parts.
    #[inline]
    #[must_use]
    pub fn key(&self) -> Key {
        self.packed_key().into()
    }

    /// Returns the upper bound of a range.
    #[inline]
    #[must_use]
    pub fn end(&self) -> Option<Key> {
        let view = self.0.view();
        view.end().map(|bytes| Packed { bytes, ..view.key() }.into())
    }

    /// Returns the highest key of a range, or the only one.
    pub(crate) fn last(&self) -> Key {
        self.end().unwrap_or_else(|| self.key())
    }

    /// Returns what the key maps to.
    #[must_use]
    pub fn data(&self) -> ElementData {
        let view = self.0.view();
        let name = || view.name().cloned();
        let data = match (view.data(), view.value_end()) {
            (Data::None, _) => None,
            (Data::Value, None) => Some(ElementData::Value(view.value().into())),
            (Data::Value, Some(bytes)) => {
                let end = Packed { bytes, ..view.value() };
                Some(ElementData::Range(view.value().into(), end.into()))
            }
            (Data::Object, _) => name().map(ElementData::Object),
            (Data::Accept, _) => Some(ElementData::Verdict(Verdict::Accept)),
            (Data::Drop, _) => Some(ElementData::Verdict(Verdict::Drop)),
            (Data::Continue, _) => Some(ElementData::Verdict(Verdict::Continue)),
            (Data::Return, _) => Some(ElementData::Verdict(Verdict::Return)),
            (Data::Jump, _) => name().map(|chain| ElementData::Verdict(Verdict::Jump(chain))),
            (Data::Goto, _) => name().map(|chain| ElementData::Verdict(Verdict::Goto(chain))),
        };
        data.unwrap_or(ElementData::None)
    }

    /// Returns the chain that its verdict jumps to.
    #[cfg(any(feature = "json", feature = "reconcile"))]
    pub(crate) fn target(&self) -> Option<&Name> {
        let view = self.0.view();
        view.name().filter(|_| matches!(view.data(), Data::Jump | Data::Goto))
    }

    /// Returns the stateful object that the key maps to.
    pub(crate) fn object_name(&self) -> Option<&Name> {
        let view = self.0.view();
        view.name().filter(|_| view.data() == Data::Object)
    }

    /// Returns the types and bytes of the key, without making one of them.
    #[inline]
    pub(crate) fn packed_key(&self) -> Packed<'_> {
        self.0.view().key()
    }

    /// Returns the key, and the bytes of the upper bound of a range.
    #[cfg(feature = "reconcile")]
    #[inline]
    pub(crate) fn packed_bounds(&self) -> (Packed<'_>, Option<&[u8]>) {
        let view = self.0.view();
        (view.key(), view.end())
    }

    /// Returns whether the kernel lists the same data. Values are compared as bytes, without making a
    /// [`Key`] of them: a restart compares tens of thousands.
    #[cfg(feature = "reconcile")]
    pub(crate) fn maps_to(&self, data: Option<&expr::Data>, object: Option<&Name>) -> bool {
        let view = self.0.view();
        match (view.data(), data) {
            (Data::None, None) => object.is_none(),
            (Data::Object, None) => view.name() == object,
            (Data::Value, Some(expr::Data::Value(kernel))) => {
                let value = view.value().bytes;
                kernel.strip_prefix(value).is_some_and(|rest| rest == view.value_end().unwrap_or_default())
            }
            (_, Some(expr::Data::Verdict(kernel))) => {
                matches!(self.data(), ElementData::Verdict(wanted) if wanted == *kernel)
            }
            _ => false,
        }
    }

    /// Returns the types of its value, as [`Key::kinds`] does.
    #[inline]
    pub(crate) fn value_kinds(&self) -> &[u8] {
        self.0.view().value().kinds
    }

    /// Returns whether it is an element of a set, not of a map.
    pub(crate) fn maps_to_nothing(&self) -> bool {
        self.0.view().data() == Data::None
    }

    /// Returns whether it has a range of keys or of values.
    #[inline]
    pub(crate) fn has_ranges(&self) -> bool {
        let view = self.0.view();
        view.end().is_some() || view.value_end().is_some()
    }

    /// Returns the bytes of the highest key of a range.
    #[inline]
    pub(crate) fn end_bytes(&self) -> Option<&[u8]> {
        self.0.view().end()
    }

    /// Returns the comment.
    #[must_use]
    pub fn get_comment(&self) -> Option<&Comment> {
        self.0.view().comment
    }

    /// Returns the timeout of the element, which may be [never](Element::NEVER).
    #[must_use]
    pub fn get_timeout(&self) -> Option<Duration> {
        self.0.view().timeout().map(Duration::from_millis)
    }

    /// Returns the remaining lifetime of the element.
    #[must_use]
    pub fn get_expires(&self) -> Option<Duration> {
        self.0.view().expires().map(Duration::from_millis)
    }

    /// Returns the statements of the element.
    #[must_use]
    pub fn statements(&self) -> &[Statement] {
        self.0.view().statements
    }

    /// Returns whether this is the catch-all element `*`.
    #[inline]
    #[must_use]
    pub fn is_catch_all(&self) -> bool {
        self.packed_key().kinds.is_empty()
    }

    /// Returns whether both elements have the same statements and the same comment.
    pub(crate) fn has_same_state(&self, other: &Self) -> bool {
        (self.statements(), self.get_comment()) == (other.statements(), other.get_comment())
    }

    /// Returns whether the element is a range of keys.
    pub(crate) fn is_range(&self) -> bool {
        self.end_bytes().is_some_and(|end| end != self.packed_key().bytes)
    }

    /// Returns the element with other bounds: everything but the key stays.
    pub(crate) fn with_bounds(&self, low: &Key, high: &Key) -> Self {
        self.with(|sections| {
            sections.key = Packed::from(low);
            sections.end = (low.bytes() != high.bytes()).then(|| high.bytes());
        })
    }

    /// Replaces the end by one of the same types.
    pub(crate) fn to(self, end: Key) -> Self {
        match are_alike(&self.key(), &end) {
            true => self.with_end(end.bytes()),
            false => self,
        }
    }

    /// Sets the end to bytes of as many parts and bytes as the key.
    pub(crate) fn with_end(mut self, end: &[u8]) -> Self {
        if self.0.append_end(end) {
            return self;
        }
        let view = self.0.view();
        let sections = Sections { end: Some(end), ..view.sections() };
        Self(Store::pack(sections, view.name().cloned(), view.comment.cloned(), view.statements))
    }
}

impl PartialEq for Element {
    fn eq(&self, other: &Self) -> bool {
        self.0.view() == other.0.view()
    }
}

impl Eq for Element {}

impl fmt::Debug for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

fn are_alike(low: &Key, high: &Key) -> bool {
    low.kinds().len() == high.kinds().len() && low.bytes().len() == high.bytes().len()
}

impl<K: Into<Key>> From<K> for Element {
    fn from(key: K) -> Self {
        Self::new(key)
    }
}

/// Creates an element for all keys of the range, as [`Element::range`] does.
///
/// # Panics
/// As [`Element::range`].
impl<K: Into<Key>> From<RangeInclusive<K>> for Element {
    fn from(range: RangeInclusive<K>) -> Self {
        let (low, high) = range.into_inner();
        Self::range(low, high)
    }
}

#[cfg(feature = "ipnet")]
mod networks {
    use ipnet::{IpNet, Ipv4Net, Ipv6Net};

    use super::Element;

    impl From<IpNet> for Element {
        fn from(network: IpNet) -> Self {
            Self::network(network.addr(), network.prefix_len())
        }
    }

    impl From<Ipv4Net> for Element {
        fn from(network: Ipv4Net) -> Self {
            Self::network(network.addr().into(), network.prefix_len())
        }
    }

    impl From<Ipv6Net> for Element {
        fn from(network: Ipv6Net) -> Self {
            Self::network(network.addr().into(), network.prefix_len())
        }
    }
}

/// Returns the elements that have to be examined to know the types of all and what they carry: the first alone
/// if all consist of a key and a value of the same types.
pub(crate) fn representatives(elements: &[Element]) -> &[Element] {
    match elements.split_first() {
        Some((first, rest)) if wire::are_alike(first, rest) => std::slice::from_ref(first),
        _ => elements,
    }
}

/// Elements of one set or map.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Elements {
    /// The set.
    pub set: SetId,
    /// The elements.
    pub list: Vec<Element>,
}

impl Elements {
    /// Creates a list of elements of a set.
    pub fn new<E: Into<Element>>(set: &SetId, list: impl IntoIterator<Item = E>) -> Self {
        Self { set: set.clone(), list: list.into_iter().map(Into::into).collect() }
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use super::*;
    use crate::key::{Number, Port};
    use crate::tree::Counter;

    const IP: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
    const SECOND: Duration = Duration::from_secs(1);

    fn name() -> Name {
        Name::new("web").unwrap()
    }

    fn comment() -> Comment {
        Comment::new("x").unwrap()
    }

    #[test]
    fn a_network_is_the_range_of_its_addresses() {
        let text = |address: IpAddr, length| Element::prefix(address, length).unwrap().to_string();
        let v4 = IpAddr::from([10, 1, 2, 3]);
        assert_eq!(
            [0, 8, 31, 32].map(|length| text(v4, length)),
            ["0.0.0.0/0", "10.0.0.0/8", "10.1.2.2/31", "10.1.2.3"]
        );
        let v6 = IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, 1]);
        assert_eq!(
            [0, 32, 127, 128].map(|length| text(v6, length)),
            ["::/0", "2001:db8::/32", "2001:db8::/127", "2001:db8::1"]
        );
        assert_eq!(Element::from(Port(1)..=Port(3)).to_string(), "1-3");
    }

    #[cfg(feature = "ipnet")]
    #[test]
    fn networks_of_ipnet_are_elements() {
        for text in ["10.0.0.0/8", "2001:db8::/32"] {
            let network: ipnet::IpNet = text.parse().unwrap();
            assert_eq!(Element::from(network).to_string(), text);
        }
    }

    #[test]
    fn an_element_is_small() {
        assert_eq!(size_of::<Element>(), 48);
    }

    #[test]
    fn usual_elements_need_no_allocation() {
        let inline = |element: Element| matches!(element.0, Store::Plain { .. } | Store::Named { .. });
        assert!(inline(Element::new((IP, crate::Protocol::TCP, Port(80), Number(0))).value((IP, Port(1)))));
        let six = (Ipv6Addr::LOCALHOST, crate::Protocol::TCP, Port(80));
        assert!(inline(Element::new(six).verdict(Verdict::Goto(name()))));
        assert!(inline(Element::range(Ipv6Addr::LOCALHOST, Ipv6Addr::LOCALHOST)));
        assert!(inline(Element::new(IP).timeout(SECOND).expires(SECOND)));
    }

    #[test]
    fn everything_is_kept_in_any_order() {
        type Step = (&'static str, fn(Element) -> Element);
        let steps: [Step; 5] = [
            ("value", |e| e.value((Ipv6Addr::LOCALHOST, Port(7)))),
            ("comment", |e| e.comment(comment())),
            ("timeout", |e| e.timeout(SECOND)),
            ("expires", |e| e.expires(2 * SECOND)),
            ("statement", |e| e.statement(Counter::default())),
        ];
        let mut all = Vec::new();
        for (at, _) in steps.iter().enumerate() {
            for reverse in [false, true] {
                let mut order: Vec<_> = (0..steps.len()).map(|i| steps[(i + at) % steps.len()]).collect();
                if reverse {
                    order.reverse();
                }
                let element = Element::range(IP, Ipv4Addr::BROADCAST);
                all.push(order.into_iter().fold(element, |element, (_, step)| step(element)));
            }
        }
        for element in &all {
            assert_eq!(*element, all[0]);
            assert_eq!(element.key(), Key::from(IP));
            assert_eq!(element.end(), Some(Key::from(Ipv4Addr::BROADCAST)));
            assert_eq!(element.data(), ElementData::Value(Key::from((Ipv6Addr::LOCALHOST, Port(7)))));
            assert_eq!((element.get_timeout(), element.get_expires()), (Some(SECOND), Some(2 * SECOND)));
            assert_eq!((element.get_comment(), element.statements().len()), (Some(&comment()), 1));
        }
    }

    #[test]
    fn data_is_replaced_whole() {
        let data = [
            ElementData::None,
            ElementData::Value(Key::from((IP, Port(80)))),
            ElementData::Range(Key::from(IP), Key::from(Ipv4Addr::BROADCAST)),
            ElementData::Verdict(Verdict::Drop),
            ElementData::Verdict(Verdict::Jump(name())),
            ElementData::Object(name()),
        ];
        let set = |element: Element, data: &ElementData| match data.clone() {
            ElementData::None => element,
            ElementData::Value(value) => element.value(value),
            ElementData::Range(low, high) => element.value_range(low, high),
            ElementData::Verdict(verdict) => element.verdict(verdict),
            ElementData::Object(name) => element.object(name),
        };
        for start in [Element::new(IP), Element::new(IP).timeout(SECOND), Element::new(IP).comment(comment())]
        {
            for before in &data {
                for after in &data[1..] {
                    let element = set(set(start.clone(), before), after);
                    assert_eq!(element.data(), *after);
                    assert_eq!(element, set(start.clone(), after));
                    assert_ne!(element, start);
                    assert_eq!((element.key(), element.end()), (Key::from(IP), None));
                    assert_eq!(element.get_timeout(), start.get_timeout());
                    assert_eq!(element.get_comment(), start.get_comment());
                }
            }
        }
    }

    #[test]
    fn the_longest_keys_are_kept() {
        let long = Key::from((Ipv6Addr::LOCALHOST, Ipv6Addr::UNSPECIFIED, Ipv6Addr::LOCALHOST))
            .and(Port(1))
            .and(Port(2))
            .and(Port(3))
            .and(Port(4));
        let element = Element::range(long, long).value_range(long, long);
        assert_eq!((element.key(), element.end()), (long, Some(long)));
        assert_eq!(element.data(), ElementData::Range(long, long));
        assert_eq!(element.verdict(Verdict::Accept).data(), ElementData::Verdict(Verdict::Accept));
    }

    #[test]
    #[should_panic(expected = "which are of other types")]
    fn a_range_is_of_one_type() {
        let _ = Element::range(IP, Port(80));
    }
}
