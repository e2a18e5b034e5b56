//! Which rules of a list are kept on the way to another list: the most that can stay, and of several such
//! choices the one that keeps the longest text.
//!
//! Lines that begin or end both lists are kept at once; what occurs in one list alone cannot be kept. Of the
//! rest, rules that occur a few times are chosen exactly by the pairs of equal rules (Hunt and Szymanski
//! 1977), in memory that is bounded by a multiple of the lists. Where rules repeat so often that there are
//! too many pairs, the linear-space algorithm of Myers (1986) keeps as many rules, without regard to their
//! length, at a cost that follows the number of differences. Over a bounded effort it settles for a choice
//! that may keep fewer than possible.

use std::collections::HashMap;
use std::ops::Range;

/// Returns the pairs of indices of the rules that are kept, in order.
pub(super) fn kept(old: &[&str], new: &[&str]) -> Vec<(usize, usize)> {
    kept_within(old, new, EFFORT)
}

fn kept_within(old: &[&str], new: &[&str], effort: usize) -> Vec<(usize, usize)> {
    let head = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let tail =
        old.iter().skip(head).rev().zip(new.iter().skip(head).rev()).take_while(|(a, b)| a == b).count();
    let middle = |list: &[&str]| head..list.len() - tail;
    let mut pairs: Vec<_> = (0..head).map(|at| (at, at)).collect();
    pairs.extend(kept_between(old, middle(old), new, middle(new), effort));
    pairs.extend((0..tail).rev().map(|at| (old.len() - 1 - at, new.len() - 1 - at)));
    pairs
}

/// Returns what is kept of two parts that share neither their first nor their last rule.
fn kept_between(
    old: &[&str],
    old_part: Range<usize>,
    new: &[&str],
    new_part: Range<usize>,
    effort: usize,
) -> Vec<(usize, usize)> {
    let mut places: HashMap<&str, Places> = HashMap::new();
    for at in new_part.clone() {
        if let Some(text) = new.get(at) {
            places.entry(text).or_default().new.push(at);
        }
    }
    let mut olds = Vec::new();
    for at in old_part {
        if let Some((text, found)) = old.get(at).and_then(|text| Some((*text, places.get_mut(text)?))) {
            found.old += 1;
            olds.push((at, text));
        }
    }
    let pairs = places.values().fold(0_usize, |sum, places| sum.saturating_add(places.pairs()));
    if pairs <= (olds.len() + new_part.len()).saturating_mul(PAIRS_PER_RULE) {
        return heaviest(&olds, &places, new_part);
    }
    let mut ids: HashMap<&str, u32> = HashMap::new();
    let mut id = |text| {
        let next = u32::try_from(ids.len()).unwrap_or(u32::MAX);
        *ids.entry(text).or_insert(next)
    };
    let a: Vec<_> = olds.iter().map(|(at, text)| (*at, id(*text))).collect();
    let shared = new_part.filter_map(|at| new.get(at).map(|text| (at, *text)));
    let b: Vec<_> =
        shared.filter(|(_, text)| places.get(text).is_some_and(|places| places.old > 0)).collect();
    let b: Vec<_> = b.into_iter().map(|(at, text)| (at, id(text))).collect();
    let ids = |list: &[(usize, u32)]| list.iter().map(|(_, id)| *id).collect::<Vec<_>>();
    let found = Myers::new(ids(&a), ids(&b), effort).run();
    found.into_iter().filter_map(|(x, y)| Some((a.get(x)?.0, b.get(y)?.0))).collect()
}

/// Where one rule stands in the parts that are compared.
#[derive(Default)]
struct Places {
    old: usize,
    new: Vec<usize>,
}

impl Places {
    fn pairs(&self) -> usize {
        self.old.saturating_mul(self.new.len())
    }
}

/// What a choice keeps: rules, then bytes of their text.
type Weight = (u32, u64);

/// The last pair of a choice, and the choice before it.
struct Link {
    pair: (usize, usize),
    before: Option<u32>,
}

/// Returns the heaviest chain of pairs that rise in both lists.
fn heaviest(
    olds: &[(usize, &str)],
    places: &HashMap<&str, Places>,
    new_part: Range<usize>,
) -> Vec<(usize, usize)> {
    let mut links: Vec<Link> = Vec::new();
    let mut best = Prefixes::new(new_part.len());
    for (old, text) in olds {
        // From the last place to the first, so that no pair follows one of the same rule.
        for new in places.get(text).into_iter().flat_map(|places| places.new.iter().rev()) {
            let at = new - new_part.start;
            let ((rules, bytes), before) = best.below(at);
            let link = u32::try_from(links.len()).ok();
            links.push(Link { pair: (*old, *new), before });
            best.raise(at, ((rules + 1, bytes + text.len() as u64), link));
        }
    }
    let mut pairs = Vec::new();
    let mut at = best.below(new_part.len()).1;
    while let Some(link) = at.and_then(|at| links.get(at as usize)) {
        pairs.push(link.pair);
        at = link.before;
    }
    pairs.reverse();
    pairs
}

/// The heaviest choice that ends before a place: a Fenwick tree of maxima.
struct Prefixes {
    tree: Vec<(Weight, Option<u32>)>,
}

impl Prefixes {
    fn new(length: usize) -> Self {
        Self { tree: vec![((0, 0), None); length + 1] }
    }

    fn below(&self, at: usize) -> (Weight, Option<u32>) {
        let (mut at, mut best) = (at, ((0, 0), None));
        while at > 0 {
            if let Some(found) = self.tree.get(at).filter(|found| found.0 > best.0) {
                best = *found;
            }
            at &= at - 1;
        }
        best
    }

    fn raise(&mut self, at: usize, found: (Weight, Option<u32>)) {
        let mut at = at + 1;
        while let Some(place) = self.tree.get_mut(at) {
            if place.0 < found.0 {
                *place = found;
            }
            at += at & at.wrapping_neg();
        }
    }
}

/// The divide and conquer of Myers over numbered rules.
struct Myers {
    old: Vec<u32>,
    new: Vec<u32>,
    /// For each diagonal, how far in `old` the search from the start has come, and the one from the end.
    forward: Vec<isize>,
    backward: Vec<isize>,
    /// Steps that the search may still take before it stops looking for the best division.
    effort: usize,
}

/// A part of both lists to be compared, or a run of equal rules behind the parts compared before it.
enum Work {
    Compare(Range<usize>, Range<usize>),
    Keep(usize, usize, usize),
}

impl Myers {
    fn new(old: Vec<u32>, new: Vec<u32>, effort: usize) -> Self {
        let diagonals = old.len() + new.len() + 3;
        Self { old, new, forward: vec![0; diagonals], backward: vec![0; diagonals], effort }
    }

    fn run(mut self) -> Vec<(usize, usize)> {
        let mut pairs = Vec::new();
        let mut work = vec![Work::Compare(0..self.old.len(), 0..self.new.len())];
        while let Some(next) = work.pop() {
            match next {
                Work::Keep(a, b, count) => pairs.extend((0..count).map(|at| (a + at, b + at))),
                Work::Compare(a, b) => {
                    let head = self.alike(a.clone().zip(b.clone()));
                    pairs.extend((0..head).map(|at| (a.start + at, b.start + at)));
                    let (a, b) = (a.start + head..a.end, b.start + head..b.end);
                    let tail = self.alike(a.clone().rev().zip(b.clone().rev()));
                    let (a, b) = (a.start..a.end - tail, b.start..b.end - tail);
                    work.push(Work::Keep(a.end, b.end, tail));
                    if let Some((x, y)) = self.division(&a, &b) {
                        work.push(Work::Compare(x..a.end, y..b.end));
                        work.push(Work::Compare(a.start..x, b.start..y));
                    }
                }
            }
        }
        pairs
    }

    fn alike(&self, pairs: impl Iterator<Item = (usize, usize)>) -> usize {
        pairs.take_while(|(a, b)| self.old.get(*a) == self.new.get(*b)).count()
    }

    /// Returns a point of a shortest way from the start of both parts to their end; `None` if nothing is
    /// kept.
    fn division(&mut self, a: &Range<usize>, b: &Range<usize>) -> Option<(usize, usize)> {
        if a.is_empty() || b.is_empty() {
            return None;
        }
        let (x0, x1) = (a.start.cast_signed(), a.end.cast_signed());
        let (y0, y1) = (b.start.cast_signed(), b.end.cast_signed());
        let base = self.new.len().cast_signed() + 1;
        let (start, end) = (x0 - y0, x1 - y1);
        let odd = (start - end) % 2 != 0;
        let (least, most) = (x0 - y1, x1 - y0);
        let (mut ahead, mut behind) = ((start, start), (end, end));
        put(&mut self.forward, base + start, x0);
        put(&mut self.backward, base + end, x1);
        for round in 1_usize.. {
            widen(&mut ahead, (least, most), |diagonal| put(&mut self.forward, base + diagonal, -1));
            for diagonal in (ahead.0..=ahead.1).rev().step_by(2) {
                let (below, above) =
                    (at(&self.forward, base + diagonal - 1), at(&self.forward, base + diagonal + 1));
                let mut x = above.max(below + 1);
                while x < x1 && x - diagonal < y1 && self.equal(x, x - diagonal) {
                    x += 1;
                }
                put(&mut self.forward, base + diagonal, x);
                let meets = odd && (behind.0..=behind.1).contains(&diagonal);
                if meets && at(&self.backward, base + diagonal) <= x {
                    return point(x, x - diagonal);
                }
            }
            widen(&mut behind, (least, most), |diagonal| {
                put(&mut self.backward, base + diagonal, isize::MAX);
            });
            for diagonal in (behind.0..=behind.1).rev().step_by(2) {
                let (below, above) =
                    (at(&self.backward, base + diagonal - 1), at(&self.backward, base + diagonal + 1));
                let mut x = below.min(above - 1);
                while x > x0 && x - diagonal > y0 && self.equal(x - 1, x - diagonal - 1) {
                    x -= 1;
                }
                put(&mut self.backward, base + diagonal, x);
                let meets = !odd && (ahead.0..=ahead.1).contains(&diagonal);
                if meets && x <= at(&self.forward, base + diagonal) {
                    return point(x, x - diagonal);
                }
            }
            self.effort = self.effort.saturating_sub(2 * round);
            if self.effort == 0 && round >= LEAST_ROUNDS {
                return self.furthest(ahead, base, (x1, y1));
            }
        }
        None
    }

    /// Returns the point that the search from the start has come to furthest.
    fn furthest(&self, ahead: (isize, isize), base: isize, end: (isize, isize)) -> Option<(usize, usize)> {
        let points = (ahead.0..=ahead.1).rev().step_by(2).map(|diagonal| {
            let x = at(&self.forward, base + diagonal).min(end.0).min(end.1 + diagonal);
            (x, x - diagonal)
        });
        let (x, y) = points.max_by_key(|(x, y)| x + y)?;
        point(x, y)
    }

    fn equal(&self, x: isize, y: isize) -> bool {
        let rule = |list: &[u32], at: isize| usize::try_from(at).ok().and_then(|at| list.get(at).copied());
        rule(&self.old, x) == rule(&self.new, y)
    }
}

/// Adds a diagonal on each side, or leaves one out where the parts end.
fn widen(range: &mut (isize, isize), limits: (isize, isize), mut unreached: impl FnMut(isize)) {
    if range.0 > limits.0 {
        range.0 -= 1;
        unreached(range.0 - 1);
    } else {
        range.0 += 1;
    }
    if range.1 < limits.1 {
        range.1 += 1;
        unreached(range.1 + 1);
    } else {
        range.1 -= 1;
    }
}

fn at(list: &[isize], index: isize) -> isize {
    usize::try_from(index).ok().and_then(|index| list.get(index).copied()).unwrap_or(-1)
}

fn put(list: &mut [isize], index: isize, value: isize) {
    if let Some(place) = usize::try_from(index).ok().and_then(|index| list.get_mut(index)) {
        *place = value;
    }
}

fn point(x: isize, y: isize) -> Option<(usize, usize)> {
    Some((usize::try_from(x).ok()?, usize::try_from(y).ok()?))
}

/// Pairs of equal rules, for each rule, up to which all of them are weighed.
const PAIRS_PER_RULE: usize = 16;

/// Steps of a comparison by differences, about a second of them.
const EFFORT: usize = 1 << 28;

/// Rounds of a search that is beyond its effort.
const LEAST_ROUNDS: usize = 256;

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use proptest::prelude::*;

    use super::*;

    /// The most that can be kept: rules, then bytes, by the full table.
    fn most(old: &[&str], new: &[&str]) -> Weight {
        let mut table = vec![vec![(0, 0); new.len() + 1]; old.len() + 1];
        for (row, a) in old.iter().enumerate() {
            for (column, b) in new.iter().enumerate() {
                let (rules, bytes): Weight = table[row][column];
                let both = if a == b { (rules + 1, bytes + a.len() as u64) } else { (0, 0) };
                table[row + 1][column + 1] = both.max(table[row][column + 1]).max(table[row + 1][column]);
            }
        }
        table[old.len()][new.len()]
    }

    fn weight(old: &[&str], pairs: &[(usize, usize)]) -> Weight {
        pairs.iter().fold((0, 0), |(rules, bytes), (at, _)| (rules + 1, bytes + old[*at].len() as u64))
    }

    fn is_common(old: &[&str], new: &[&str], pairs: &[(usize, usize)]) -> bool {
        pairs.iter().all(|(a, b)| old[*a] == new[*b])
            && pairs.windows(2).all(|two| two[0].0 < two[1].0 && two[0].1 < two[1].1)
    }

    fn numbered(list: &[u8]) -> Vec<u32> {
        list.iter().map(|id| u32::from(*id)).collect()
    }

    fn texts(list: &[u8]) -> Vec<&'static str> {
        list.iter()
            .map(|id| ["a", "bb", "ccc", "dddd", "eeeee", "f", "gg", "hhh"][usize::from(*id)])
            .collect()
    }

    proptest! {
        #[test]
        fn as_many_rules_as_possible_are_kept_and_of_those_the_longest(
            old in prop::collection::vec(0..8_u8, 0..14), new in prop::collection::vec(0..8_u8, 0..14),
        ) {
            let (old, new) = (texts(&old), texts(&new));
            let pairs = kept(&old, &new);
            prop_assert!(is_common(&old, &new, &pairs));
            prop_assert_eq!(weight(&old, &pairs), most(&old, &new));
        }

        #[test]
        fn by_differences_as_many_are_kept(
            old in prop::collection::vec(0..3_u8, 0..60), new in prop::collection::vec(0..3_u8, 0..60),
        ) {
            let pairs = Myers::new(numbered(&old), numbered(&new), EFFORT).run();
            let (old, new) = (texts(&old), texts(&new));
            prop_assert!(is_common(&old, &new, &pairs));
            prop_assert_eq!(pairs.len(), most(&old, &new).0 as usize);
        }

        #[test]
        fn without_effort_the_choice_is_still_one(
            old in prop::collection::vec(0..2_u8, 600..900), new in prop::collection::vec(0..2_u8, 600..900),
        ) {
            let pairs = Myers::new(numbered(&old), numbered(&new), 0).run();
            prop_assert!(is_common(&texts(&old), &texts(&new), &pairs));
        }
    }

    #[test]
    fn lists_without_a_common_rule_and_of_a_single_rule_take_no_time() {
        let start = Instant::now();
        let (old, new): (Vec<_>, Vec<_>) = (
            (0..20_000).map(|at| format!("old {at}")).collect(),
            (0..20_000).map(|at| format!("new {at}")).collect(),
        );
        let (old, new): (Vec<&str>, Vec<&str>) =
            (old.iter().map(String::as_str).collect(), new.iter().map(String::as_str).collect());
        assert!(kept(&old, &new).is_empty());
        assert_eq!(kept(&vec!["x"; 20_000], &vec!["x"; 30_000]).len(), 20_000);
        assert!(start.elapsed().as_secs() < 5, "{:?}", start.elapsed());
    }
}
