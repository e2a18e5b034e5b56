//! The word that was meant by one with a slip.

/// Returns the word that differs by the fewest letters, if those are no more than a third of the longer one.
pub(crate) fn nearest(word: &str, words: impl IntoIterator<Item = impl Into<String>>) -> Option<String> {
    let letters = |of: &str| of.chars().count();
    let with_distance = |of: String| {
        let distance = strsim::osa_distance(word, &of);
        // One letter for another is no slip.
        let is_near = distance > 0
            && distance <= letters(&of).max(letters(word)).div_ceil(3)
            && letters(&of).min(letters(word)) > 1;
        is_near.then_some((distance, of))
    };
    words.into_iter().map(Into::into).filter_map(with_distance).min().map(|(_, of)| of)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_near_and_another_word_is_not() {
        let nearest = |name: &str| nearest(name, ["input", "output", "forward"]);
        assert_eq!(nearest("inptu").as_deref(), Some("input"));
        assert_eq!(nearest("forwxrd").as_deref(), Some("forward"));
        assert_eq!(nearest("i"), None);
        assert_eq!(nearest("input"), None);
        assert_eq!(nearest("postrouting"), None);
    }
}
