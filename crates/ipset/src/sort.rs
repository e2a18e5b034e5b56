//! The order of `ipset -sorted`: by the numbers in the text, part by part.
//!
//! It compares printed text, not values, and is not a total order (whether a network comes before or after
//! its address depends on the parts before it). The standard library's sort may panic on such a comparison,
//! so this is a merge sort of our own.

use std::cmp::Ordering;

/// Sorts lines by the numbers in them, hexadecimal digits and all.
pub(crate) fn by_numbers(lines: Vec<String>) -> Vec<String> {
    merge_sort(lines, &|a, b| compare(a.as_bytes(), b.as_bytes()))
}

/// Sorts lines as text, as `ipset` does with host names.
pub(crate) fn by_text(mut lines: Vec<String>) -> Vec<String> {
    lines.sort();
    lines
}

/// Sorts lines with a stable merge sort, which never panics, whatever `compare` returns.
fn merge_sort(mut lines: Vec<String>, compare: &dyn Fn(&str, &str) -> Ordering) -> Vec<String> {
    if lines.len() < 2 {
        return lines;
    }
    let right = merge_sort(lines.split_off(lines.len() / 2), compare);
    let left = merge_sort(lines, compare);
    let mut merged = Vec::with_capacity(left.len() + right.len());
    let (mut left, mut right) = (left.into_iter().peekable(), right.into_iter().peekable());
    while let (Some(a), Some(b)) = (left.peek(), right.peek()) {
        let next = if compare(a, b) == Ordering::Greater { right.next() } else { left.next() };
        merged.extend(next);
    }
    merged.extend(left);
    merged.extend(right);
    merged
}

/// Compares two lines part by part: number with number, word with word.
fn compare(mut a: &[u8], mut b: &[u8]) -> Ordering {
    // After a prefix length the order is reversed, so that larger networks come after smaller ones.
    let mut reversed = false;
    while !a.is_empty() && !b.is_empty() {
        let (Some((x, rest_a)), Some((y, rest_b))) = (leading_number(a), leading_number(b)) else {
            let (word_a, word_b) = (leading_word(a), leading_word(b));
            if word_a.is_empty() && word_b.is_empty() {
                return a.cmp(b);
            }
            match word_a.len().cmp(&word_b.len()).then_with(|| word_a.cmp(word_b)) {
                Ordering::Equal => {
                    a = a.get(word_a.len() + 1..).unwrap_or_default();
                    b = b.get(word_b.len() + 1..).unwrap_or_default();
                    reversed = false;
                    continue;
                }
                other => return other,
            }
        };
        if x != y {
            return if reversed { y.cmp(&x) } else { x.cmp(&y) };
        }
        match (rest_a.first(), rest_b.first()) {
            (Some(b'/'), Some(b'/')) => reversed = true,
            (Some(b'/'), _) => return Ordering::Greater,
            (_, Some(b'/')) => return Ordering::Less,
            _ => {}
        }
        a = rest_a.get(1..).unwrap_or_default();
        b = rest_b.get(1..).unwrap_or_default();
        // The `::` of IPv6 stands for zeros, so it comes first.
        match (a.first(), b.first()) {
            (Some(b':'), Some(b':')) => {
                a = a.get(1..).unwrap_or_default();
                b = b.get(1..).unwrap_or_default();
            }
            (Some(b':'), _) => return Ordering::Less,
            (_, Some(b':')) => return Ordering::Greater,
            _ => {}
        }
    }
    (!a.is_empty()).cmp(&!b.is_empty())
}

/// Returns the hexadecimal number at the start of the text, as `strtol(3)` reads it: after white space and
/// `0x`, if any.
fn leading_number(text: &[u8]) -> Option<(u64, &[u8])> {
    let text = text.trim_ascii_start();
    let digits = match text {
        [b'0', b'x' | b'X', rest @ ..] if rest.first().is_some_and(u8::is_ascii_hexdigit) => rest,
        _ => text,
    };
    let length = digits.iter().take_while(|b| b.is_ascii_hexdigit()).count();
    let (number, rest) = digits.split_at_checked(length)?;
    let value = number.iter().fold(0_u64, |value, digit| {
        let digit = char::from(*digit).to_digit(16).unwrap_or_default();
        value.saturating_mul(16).saturating_add(digit.into())
    });
    (length > 0).then_some((value, rest))
}

/// Returns the text before the next colon or comma.
fn leading_word(text: &[u8]) -> &[u8] {
    text.split(|b| matches!(b, b':' | b',')).next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sorted(lines: &[&str]) -> Vec<String> {
        let lines = lines.iter().map(|line| format!("{line}\n")).collect();
        by_numbers(lines).iter().map(|line| line.trim_end().to_owned()).collect()
    }

    /// The order in which ipset 7.17 listed these.
    #[test]
    fn ports_sort_after_their_address_and_by_the_length_of_the_protocol() {
        let order = [
            "10.0.0.0,tcp:80",
            "10.0.0.1,200:0",
            "10.0.0.1,gre:0",
            "10.0.0.1,tcp:0",
            "10.0.0.1,tcp:80",
            "10.0.0.1,tcp:81",
            "10.0.0.1,udp:53",
            "10.0.0.1,icmp:echo-request",
            "10.0.0.1,vrrp:0",
            "10.0.0.8,tcp:80",
            "10.0.0.10,tcp:80",
            "192.0.0.168,tcp:7",
        ];
        let mut shuffled = order;
        shuffled.reverse();
        shuffled.swap(2, 7);
        assert_eq!(sorted(&shuffled), order);
    }

    proptest! {
        #[test]
        fn no_line_is_lost(lines in prop::collection::vec("[0-9a-fx.:/, ]{0,12}", 0..50)) {
            let mut sorted = by_numbers(lines.clone());
            let mut lines = lines;
            sorted.sort();
            lines.sort();
            prop_assert_eq!(sorted, lines);
        }
    }
}
