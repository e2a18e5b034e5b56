//! Finds elements that the kernel would misinterpret: keys whose parts have other lengths than those of the
//! set, although the total is the same, and ranges that end before they start. And those that nft would not load
//! again: with statements that their set does not have.

use std::net::IpAddr;

use crate::check::LowerError;
use crate::datatype::DataType;
use crate::key::{Key, Part, is_byte_swapped, types_of};
use crate::object::{Element, ElementData, Set, SetData, SetFlags};

/// Returns the error for the first element whose key or value has parts of other lengths than those of the
/// set.
///
/// A different number of parts is not an error: the parts of an expression are not always known. Types of the
/// same length are considered equal, because not every type has a Rust type of its own.
pub(crate) fn type_mismatch(set: &Set, elements: &[Element]) -> Option<LowerError> {
    let keys = set.key.parts();
    let values = match &set.data {
        Some(SetData::Value(of) | SetData::Interval(of)) => of.parts(),
        _ => Vec::new(),
    };
    // Most elements of a list have the types of the one before.
    let mut fits: (&[u8], &[u8]) = (&[], &[]);
    elements.iter().find_map(|element| {
        let kinds = (element.packed_key().kinds, element.value_kinds());
        if kinds == fits {
            return None;
        }
        if is_mismatch(kinds.0, &keys) {
            let key = element.key();
            return Some(LowerError::KeyType {
                set: set.id.name.clone(),
                expression: key.to_string(),
                has: text(key.types()),
                wanted: text(keys.iter().copied()),
            });
        }
        let value = match element.data() {
            _ if !is_mismatch(kinds.1, &values) => {
                fits = kinds;
                return None;
            }
            ElementData::Value(value) | ElementData::Range(value, _) => value,
            _ => return None,
        };
        Some(LowerError::ValueType {
            map: set.id.name.clone(),
            has: text(values.iter().copied()),
            wanted: format!("{}, as `{value}` is", text(value.types())),
        })
    })
}

/// Returns the error for the first element with statements in a set that declares none, which the kernel would
/// take, and nft lists as what it refuses. Rules give statements to the elements of dynamic sets.
pub(crate) fn undeclared_statement(set: &Set, elements: &[Element]) -> Option<LowerError> {
    if takes_statements(set) {
        return None;
    }
    let statement = elements.iter().find_map(|element| element.statements().first())?;
    let (message, help) = no_statements(set);
    Some(LowerError::Misplaced { message: format!("{message}, found `{statement}`"), help: Some(help) })
}

/// Returns whether elements of the set may have statements.
pub(crate) fn takes_statements(set: &Set) -> bool {
    !set.statements.is_empty() || set.flags.contains(SetFlags::DYNAMIC)
}

/// Returns why elements of the set have no statements, and what to say instead.
pub(crate) fn no_statements(set: &Set) -> (String, String) {
    let name = &set.id.name;
    (
        format!("expected an element without a statement, since the set `{name}` declares none"),
        "give the set the statement too, as `counter;`".to_owned(),
    )
}

/// Returns the first range that ends before it starts. In an interval set its end would belong to no
/// interval, and the kernel would extend the range up to the next element.
pub(crate) fn backwards_range(elements: &[Element]) -> Option<LowerError> {
    let range = first_range(elements, |low, high| !is_ordered(low, high))?;
    Some(LowerError::Backwards { range })
}

/// Returns the error for the first range from a name to another: nft refuses it, and the kernel would compare
/// the letters. A pattern as `eth*` is a range as well. One that another program has added may be deleted.
pub(crate) fn range_of_names(elements: &[Element]) -> Option<LowerError> {
    let is_name = |part: Part| matches!(part.data_type(), DataType::IFNAME | DataType::STRING);
    let expression = first_range(elements, |low, high| {
        let mut parts = low.parts().zip(high.parts());
        parts.any(|((part, low), (_, high))| is_name(part) && !is_pattern(low, high))
    })?;
    Some(LowerError::Unsupported { what: NAMES_HAVE_NO_ORDER, expression })
}

/// Why there is no range of names.
pub(crate) const NAMES_HAVE_NO_ORDER: &str = "names have no order, so that there are no ranges of them";

/// Returns the first range of keys or values that is such.
fn first_range(elements: &[Element], is_such: impl Fn(&Key, &Key) -> bool) -> Option<String> {
    elements.iter().filter(|element| element.has_ranges()).find_map(|element| {
        let keys = element.end().map(|end| (element.key(), end));
        let values = match element.data() {
            ElementData::Range(low, high) => Some((low, high)),
            _ => None,
        };
        let (low, high) = [keys, values].into_iter().flatten().find(|(low, high)| is_such(low, high))?;
        Some(format!("{low}-{high}"))
    })
}

/// Whether these are the first and the last of the names that begin alike, or one name.
fn is_pattern(low: &[u8], high: &[u8]) -> bool {
    let mut differing = low.iter().zip(high).skip_while(|(low, high)| low == high);
    differing.all(|bounds| bounds == (&0, &0xff))
}

fn is_ordered(low: &Key, high: &Key) -> bool {
    low.parts().zip(high.parts()).all(|((part, low), (_, high))| match is_byte_swapped(part) {
        true => low.iter().rev().le(high.iter().rev()),
        false => low <= high,
    })
}

fn is_mismatch(kinds: &[u8], parts: &[Part]) -> bool {
    kinds.len() == parts.len() && types_of(kinds).zip(parts).any(|(has, part)| has.bytes() != part.bytes())
}

fn text(parts: impl Iterator<Item = Part>) -> String {
    parts.map(|part| part.data_type().name()).collect::<Vec<_>>().join(" . ")
}

impl Element {
    /// Creates an element for all addresses of a network, for a set with the flag `interval`. The bits behind
    /// the prefix are ignored, as nft ignores them. Feature `ipnet`: `IpNet`, `Ipv4Net` and `Ipv6Net` convert
    /// to such an element.
    ///
    /// ```
    /// use std::net::Ipv4Addr;
    ///
    /// use sluicegate_nftables::Element;
    ///
    /// assert_eq!(Element::prefix(Ipv4Addr::new(10, 1, 2, 3), 8)?.to_string(), "10.0.0.0/8");
    /// assert!(Element::prefix(Ipv4Addr::new(10, 1, 2, 3), 33).is_err());
    /// # Ok::<(), sluicegate_nftables::lang::LowerError>(())
    /// ```
    ///
    /// # Errors
    /// [`LowerError::PrefixLength`] if the prefix is longer than the address: 32 or 128 bits.
    pub fn prefix(address: impl Into<IpAddr>, length: u8) -> Result<Self, LowerError> {
        let address = address.into();
        let bits = if address.is_ipv4() { 32 } else { 128 };
        match length <= bits {
            true => Ok(Self::network(address, length)),
            false => Err(LowerError::PrefixLength { length, bits: bits.into() }),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;
    use crate::{DataType, Family, Mark, Number, Port, Protocol, TableId};

    const IP: Ipv4Addr = Ipv4Addr::LOCALHOST;

    fn said(set: &Set, element: impl Into<Element>) -> Option<String> {
        type_mismatch(set, &[element.into()]).map(|error| error.to_string())
    }

    #[test]
    fn parts_in_another_order_are_found_in_keys_and_values() {
        let table = TableId::new(Family::IP, "t".parse().unwrap());
        let pair = [DataType::IPV4_ADDR, DataType::INET_SERVICE];
        let map = Set::map(table.map("m".parse().unwrap()), pair, pair);
        assert_eq!(said(&map, Element::new((IP, Port(1))).value((IP, Port(2)))), None);
        assert_eq!(
            said(&map, Element::new((Port(1), IP)).value((IP, Port(2)))).unwrap(),
            "`1 . 127.0.0.1` is of type inet_service . ipv4_addr, but the keys of @m are of type ipv4_addr . \
             inet_service"
        );
        assert_eq!(
            said(&map, Element::new((IP, Port(1))).value((Port(2), IP))).unwrap(),
            "the values of @m are of type ipv4_addr . inet_service, not inet_service . ipv4_addr, as `2 . \
             127.0.0.1` is"
        );
    }

    #[test]
    fn ranges_end_behind_their_start_part_by_part() {
        let said = |element| backwards_range(&[element]).map(|error| error.to_string());
        assert_eq!(said(Element::range(Port(1), Port(1))), None);
        assert_eq!(said(Element::range(Mark(2), Mark(0x100))), None);
        assert_eq!(
            said(Element::range(Mark(0x100), Mark(2))).unwrap(),
            "the range 0x00000100-0x00000002 ends before it starts"
        );
        assert!(said(Element::range((IP, Port(9)), (Ipv4Addr::BROADCAST, Port(1)))).is_some());
        let value = Element::new(IP).value_range(Port(2), Port(1));
        assert_eq!(said(value).unwrap(), "the range 2-1 ends before it starts");
    }

    /// nft 1.0.6: `missing statement in set declaration`.
    #[test]
    fn elements_have_statements_where_their_set_declares_some() {
        use crate::tree::Counter;
        let table = TableId::new(Family::IP, "t".parse().unwrap());
        let set = || Set::new(table.set("s".parse().unwrap()), DataType::IPV4_ADDR);
        let counted = [Element::new(IP).statement(Counter::default())];
        let said = |set: Set| undeclared_statement(&set, &counted).map(|error| error.to_string());
        assert!(said(set()).unwrap().contains("the set `s` declares none, found `counter"));
        assert_eq!(undeclared_statement(&set(), &[IP.into()]), None);
        assert_eq!(said(set().statement(Counter::default())), None);
        assert_eq!(said(set().flags(SetFlags::DYNAMIC)), None);
    }

    #[test]
    fn names_have_no_ranges() {
        let name = |name: &str| crate::InterfaceName::new(name).unwrap();
        // `ab*`, as the kernel has it.
        let last = |stem: &[u8]| {
            let mut bytes = [0xff; 16];
            bytes.iter_mut().zip(stem).for_each(|(byte, of)| *byte = *of);
            let mut key = Key::new();
            key.try_append(Part::Type(DataType::IFNAME), &bytes).unwrap();
            key
        };
        let said = |element| range_of_names(&[element]).map(|error| error.to_string());
        assert!(said(Element::range(name("a"), name("b"))).unwrap().starts_with(NAMES_HAVE_NO_ORDER));
        assert!(said(Element::range((name("a"), Mark(1)), (name("b"), Mark(1)))).is_some());
        assert_eq!(said(Element::range((name("a"), Mark(1)), (name("a"), Mark(2)))), None);
        assert_eq!(said(Element::new(name("a"))), None);
        assert_eq!(said(Element::range(name("ab"), last(b"ab"))), None);
        assert!(said(Element::range(name("aa"), last(b"ab"))).is_some());
    }

    #[test]
    fn types_of_one_width_stand_for_each_other() {
        let table = TableId::new(Family::IP, "t".parse().unwrap());
        let set = Set::new(table.set("s".parse().unwrap()), [DataType::UID, DataType::ICMP_TYPE]);
        assert_eq!(said(&set, (Number(1), Protocol(8))), None);
        assert_eq!(said(&set, (Mark(1), Protocol(8))), None);
        assert_eq!(said(&set, Element::catch_all()), None);
        assert!(said(&set, (Port(1), Protocol(8))).is_some());
    }
}
