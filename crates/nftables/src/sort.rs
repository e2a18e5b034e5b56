//! Sorting with one sort for all types. The standard library's is compiled again for each type and each order
//! that it is used with, at 14 KB of machine code: twenty of them were a fifteenth of this crate, which whoever
//! depends on it compiles.

use std::cmp::Ordering;

/// Sorts a list, and leaves equals in their order.
pub(crate) fn by<T>(list: &mut [T], compare: impl Fn(&T, &T) -> Ordering) {
    let order = order(list.len(), &|one, other| match (list.get(one), list.get(other)) {
        (Some(one), Some(other)) => compare(one, other),
        _ => Ordering::Equal,
    });
    arrange(order, &mut |one, other| list.swap(one, other));
}

/// Sorts a list by a key, which is made once for each, and leaves equals in their order.
pub(crate) fn by_key<T, K: Ord>(list: &mut [T], key: impl Fn(&T) -> K) {
    let keys: Vec<K> = list.iter().map(key).collect();
    let order = order(keys.len(), &|one, other| keys.get(one).cmp(&keys.get(other)));
    arrange(order, &mut |one, other| list.swap(one, other));
}

/// Returns the index of what belongs in each place.
fn order(length: usize, compare: &dyn Fn(usize, usize) -> Ordering) -> Vec<usize> {
    // Most lists of a rule have one thing, or none.
    if length < 2 {
        return Vec::new();
    }
    let mut order: Vec<usize> = (0..length).collect();
    order.sort_by(|one, other| compare(*one, *other));
    order
}

/// Brings everything to its place, along one cycle after the other.
fn arrange(mut order: Vec<usize>, swap: &mut dyn FnMut(usize, usize)) {
    for start in 0..order.len() {
        let mut at = start;
        while let Some(from) = order.get_mut(at).map(|from| std::mem::replace(from, at))
            && from != start
        {
            swap(at, from);
            at = from;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn lists_are_sorted_as_by_the_standard_library(list in prop::collection::vec((0_u8..20, any::<u8>()), 0..60)) {
            let mut wanted = list.clone();
            wanted.sort_by_key(|(key, _)| *key);
            let (mut compared, mut keyed) = (list.clone(), list);
            by(&mut compared, |(one, _), (other, _)| one.cmp(other));
            by_key(&mut keyed, |(key, _)| *key);
            prop_assert_eq!(&compared, &wanted);
            prop_assert_eq!(keyed, wanted);
        }
    }
}
