//! Elements that the kernel would take for others: whose parts are not those of their set, although all together are as long, and ranges that end
//! before they start.

use crate::key::{Key, Part};
use crate::lang::LowerError;
use crate::object::element::is_turned;
use crate::object::{Element, ElementData, Set, SetData};

/// What is wrong with the first element whose key or value has parts of other widths than those of the set.
///
/// Of another number of parts nothing is said: what an expression has is not always known. Types of one width stand for each other: not every
/// type has a Rust type of its own.
pub(crate) fn misfit(set: &Set, elements: &[Element]) -> Option<LowerError> {
    let keys = set.key.parts();
    let values = match &set.data {
        Some(SetData::Value(of) | SetData::Interval(of)) => of.parts(),
        _ => Vec::new(),
    };
    elements.iter().find_map(|element| {
        let bounds = [Some(element.key()), element.end()];
        if let Some(key) = bounds.into_iter().flatten().find(|key| is_misfit(key, &keys)) {
            return Some(LowerError::KeyType {
                set: set.id.name.clone(),
                expression: key.to_string(),
                has: text(key.types()),
                wanted: text(keys.iter().copied()),
            });
        }
        let value = match element.data() {
            ElementData::Value(value) => Some(value),
            ElementData::Range(range) => Some(&range.0),
            _ => None,
        };
        let value = value.filter(|value| is_misfit(value, &values))?;
        Some(LowerError::ValueType {
            map: set.id.name.clone(),
            has: text(values.iter().copied()),
            wanted: format!("{}, as `{value}` is", text(value.types())),
        })
    })
}

/// The first range that ends before it starts. In a set of intervals its end is that of nothing, and the kernel takes it for all keys from its start
/// on, up to the next element.
pub(crate) fn backwards(elements: &[Element]) -> Option<LowerError> {
    elements.iter().find_map(|element| {
        let keys = element.end().map(|end| (element.key(), end));
        let values = match element.data() {
            ElementData::Range(range) => Some((&range.0, &range.1)),
            _ => None,
        };
        let (low, high) = [keys, values].into_iter().flatten().find(|(low, high)| !is_ordered(low, high))?;
        Some(LowerError::Backwards { range: format!("{low}-{high}") })
    })
}

fn is_ordered(low: &Key, high: &Key) -> bool {
    low.parts().zip(high.parts()).all(|((part, low), (_, high))| match is_turned(part) {
        true => low.iter().rev().le(high.iter().rev()),
        false => low <= high,
    })
}

fn is_misfit(key: &Key, parts: &[Part]) -> bool {
    key.types().len() == parts.len() && key.types().zip(parts).any(|(has, part)| has.bytes() != part.bytes())
}

fn text(parts: impl Iterator<Item = Part>) -> String {
    parts.map(|part| part.data_type().name()).collect::<Vec<_>>().join(" . ")
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;
    use crate::{DataType, Family, Mark, Number, Port, Protocol, TableId};

    const IP: Ipv4Addr = Ipv4Addr::LOCALHOST;

    fn said(set: &Set, element: impl Into<Element>) -> Option<String> {
        misfit(set, &[element.into()]).map(|error| error.to_string())
    }

    #[test]
    fn parts_in_another_order_are_found_in_keys_and_values() {
        let table = TableId::new(Family::IP, "t".parse().unwrap());
        let pair = [DataType::IPV4_ADDR, DataType::INET_SERVICE];
        let map = Set::map(table.map("m".parse().unwrap()), pair, pair);
        assert_eq!(said(&map, Element::new((IP, Port(1))).value((IP, Port(2)))), None);
        assert_eq!(
            said(&map, Element::new((Port(1), IP)).value((IP, Port(2)))).unwrap(),
            "`1 . 127.0.0.1` is of type inet_service . ipv4_addr, but the keys of @m are of type ipv4_addr . inet_service"
        );
        assert_eq!(
            said(&map, Element::new((IP, Port(1))).value((Port(2), IP))).unwrap(),
            "the values of @m are of type ipv4_addr . inet_service, not inet_service . ipv4_addr, as `2 . 127.0.0.1` is"
        );
    }

    #[test]
    fn ranges_end_behind_their_start_part_by_part() {
        let said = |element| backwards(&[element]).map(|error| error.to_string());
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
