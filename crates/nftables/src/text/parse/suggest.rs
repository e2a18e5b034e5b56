//! The word that a misspelt one was meant to be.

/// The nearest of some words, if one is near enough.
pub(crate) fn nearest<'w>(word: &str, words: impl IntoIterator<Item = &'w str>) -> Option<&'w str> {
    if !(2..=MAX_WORD).contains(&word.len()) {
        return None;
    }
    let most = if word.len() <= 3 { 1 } else { word.len() / 3 };
    let mut words = words.into_iter();
    nearest_of(word, most, &mut || words.next())
}

/// Apart, and with what comes next as a closure of no known type: so it is compiled once, not for every list of
/// words.
fn nearest_of<'w>(word: &str, most: usize, next: &mut dyn FnMut() -> Option<&'w str>) -> Option<&'w str> {
    std::iter::from_fn(next)
        .filter(|other| other.len().abs_diff(word.len()) <= most && *other != word)
        .map(|other| (distance(word.as_bytes(), other.as_bytes()), other))
        .filter(|(distance, _)| *distance <= most)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, other)| other)
}

/// How many bytes have to be changed, added, left out, or swapped with their neighbour.
fn distance(a: &[u8], b: &[u8]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut row = Vec::with_capacity(b.len() + 1);
        row.push(i + 1);
        for (j, y) in b.iter().enumerate() {
            let at = |row: &[usize], j: usize| row.get(j).copied().unwrap_or(usize::MAX / 2);
            let mut least = (at(&above, j) + usize::from(!x.eq_ignore_ascii_case(y)))
                .min(at(&above, j + 1) + 1)
                .min(at(&row, j) + 1);
            let swapped = i > 0 && j > 0 && a.get(i - 1) == Some(y) && b.get(j - 1) == Some(x);
            if swapped {
                least = least.min(at(&before, j - 1) + 1);
            }
            row.push(least);
        }
        before = std::mem::replace(&mut above, row);
    }
    above.last().copied().unwrap_or(0)
}

const MAX_WORD: usize = 40;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_mended() {
        let words = ["accept", "drop", "established", "saddr", "daddr", "ssh"];
        assert_eq!(nearest("acept", words), Some("accept"));
        assert_eq!(nearest("dorp", words), Some("drop"));
        assert_eq!(nearest("estabilshed", words), Some("established"));
        assert_eq!(nearest("ssh2", words), Some("ssh"));
        assert_eq!(nearest("masquerade", words), None);
        assert_eq!(nearest("x", words), None);
        assert_eq!(nearest("drop", words), None);
    }
}
