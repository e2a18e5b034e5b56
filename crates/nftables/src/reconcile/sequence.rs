//! Finds the longest common subsequence of two lists.

use std::collections::HashMap;
use std::hash::Hash;

/// Finds the longest common subsequence of two lists. Returns pairs of indices, both ascending. A `None` in
/// `b` is not equal to anything.
///
/// Uses the algorithm of Hunt and Szymanski. Its time depends on the number of pairs of equal items; if all
/// items differ, that is the length of the list. If there are very many pairs, only those at similar
/// distances from the start are considered, and the result may be shorter than the longest.
pub(super) fn common<T: Eq + Hash + Copy>(a: &[T], b: &[Option<T>]) -> Vec<(usize, usize)> {
    let equal = |(a, b): &(&T, &Option<T>)| b.as_ref() == Some(*a);
    let before = a.iter().zip(b).take_while(equal).count();
    let (a_rest, b_rest) = (a.get(before..).unwrap_or_default(), b.get(before..).unwrap_or_default());
    let behind = a_rest.iter().rev().zip(b_rest.iter().rev()).take_while(equal).count();
    let a_middle = a_rest.get(..a_rest.len() - behind).unwrap_or_default();
    let b_middle = b_rest.get(..b_rest.len() - behind).unwrap_or_default();

    let mut pairs: Vec<_> = (0..before).map(|i| (i, i)).collect();
    pairs.extend(of_middle(a_middle, b_middle).into_iter().map(|(i, j)| (before + i, before + j)));
    let (a_end, b_end) = (a.len() - behind, b.len() - behind);
    pairs.extend((0..behind).map(|i| (a_end + i, b_end + i)));
    pairs
}

/// A pair of equal items, and the one before it in the longest subsequence that ends with it.
struct Link {
    a: usize,
    b: usize,
    before: Option<usize>,
}

fn of_middle<T: Eq + Hash + Copy>(a: &[T], b: &[Option<T>]) -> Vec<(usize, usize)> {
    let mut places: HashMap<T, Vec<usize>> = HashMap::new();
    for (j, item) in b.iter().enumerate() {
        if let Some(item) = item {
            places.entry(*item).or_default().push(j);
        }
    }
    let pairs = a.iter().filter_map(|item| places.get(item)).map(Vec::len).fold(0, usize::saturating_add);
    let all = pairs <= MANY + 8 * (a.len() + b.len());
    let mut seen: HashMap<T, usize> = HashMap::new();
    let mut links: Vec<Link> = Vec::new();
    // For each length, the link that ends a subsequence of that length at the lowest index in `b`.
    let mut ends: Vec<usize> = Vec::new();
    for (i, item) in a.iter().enumerate() {
        let Some(places) = places.get(item) else { continue };
        let places = if all { places } else { near(places, seen.entry(*item).or_default()) };
        for j in places.iter().rev() {
            let at = ends.partition_point(|end| links.get(*end).is_some_and(|link| link.b < *j));
            let before = at.checked_sub(1).and_then(|at| ends.get(at)).copied();
            match ends.get_mut(at) {
                Some(end) if links.get(*end).is_some_and(|link| link.b == *j) => continue,
                Some(end) => *end = links.len(),
                None => ends.push(links.len()),
            }
            links.push(Link { a: i, b: *j, before });
        }
    }
    let mut found = Vec::with_capacity(ends.len());
    let mut next = ends.last().copied();
    while let Some(link) = next.and_then(|at| links.get(at)) {
        found.push((link.a, link.b));
        next = link.before;
    }
    found.reverse();
    found
}

/// Returns the positions within the window around the next item.
fn near<'p>(places: &'p [usize], passed: &mut usize) -> &'p [usize] {
    let at = *passed;
    *passed += 1;
    let (from, to) = (at.saturating_sub(WINDOW).min(places.len()), (at + WINDOW).min(places.len()));
    places.get(from..to).unwrap_or_default()
}

/// The number of pairs up to which all are considered.
const MANY: usize = 1 << 20;
/// The distance from its own index within which an item is searched if there are more pairs.
const WINDOW: usize = 16;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn length_of_longest(a: &[u8], b: &[Option<u8>]) -> usize {
        let mut row = vec![0; b.len() + 1];
        for item in a {
            let mut diagonal = 0;
            for j in 1..=b.len() {
                let above = row[j];
                row[j] = if b[j - 1] == Some(*item) { diagonal + 1 } else { above.max(row[j - 1]) };
                diagonal = above;
            }
        }
        row[b.len()]
    }

    proptest! {
        #[test]
        fn it_is_common_ascending_and_the_longest(
            a in prop::collection::vec(0..6_u8, 0..24),
            b in prop::collection::vec(prop::option::weighted(0.9, 0..6_u8), 0..24),
        ) {
            let found = common(&a, &b);
            prop_assert!(found.iter().all(|(i, j)| Some(a[*i]) == b[*j]));
            prop_assert!(found.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 < pair[1].1));
            prop_assert_eq!(found.len(), length_of_longest(&a, &b));
        }
    }

    #[test]
    fn many_equal_items_take_no_more_than_their_number_allows() {
        let a: Vec<u32> = (0..20_000).map(|n| n % 3).collect();
        let mut b: Vec<_> = a.iter().copied().map(Some).collect();
        b.remove(4);
        b.insert(19_000, Some(7));
        let found = common(&a, &b);
        assert!(found.len() > 19_900, "{}", found.len());
    }
}
