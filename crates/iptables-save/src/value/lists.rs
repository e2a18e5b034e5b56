//! Words of a fixed set, and lists of them.

use super::Read;
use crate::vocabulary::{self, words};

pub(crate) const ADDRESS_TYPES: &[&str] = &words::<12>(vocabulary::ADDRESS_TYPES);
pub(crate) const CONNTRACK_STATES: &[&str] = &words::<7>(vocabulary::CONNTRACK_STATES);
pub(crate) const CONNTRACK_STATUSES: &[&str] = &words::<5>(vocabulary::CONNTRACK_STATUSES);
/// Those that the match `state` knows, which is older than the states of translations.
pub(crate) const STATES: &[&str] = &words::<5>(vocabulary::CONNTRACK_STATES);
pub(crate) const CONNTRACK_EVENTS: &[&str] = &words::<10>(vocabulary::CONNTRACK_EVENTS);
pub(crate) const DCCP_TYPES: &[&str] = &words::<11>(vocabulary::DCCP_TYPES);
/// By their names, and by the number of the protocol as decimal digits: `0x2b` is not taken.
pub(crate) const IPV6_HEADERS: &[&str] = &[
    "hop-by-hop",
    "hop",
    "0",
    "dst",
    "ipv6-opts",
    "60",
    "route",
    "ipv6-route",
    "43",
    "frag",
    "ipv6-frag",
    "44",
    "auth",
    "ah",
    "51",
    "esp",
    "50",
    "none",
    "ipv6-nonxt",
    "59",
    "prot",
    "protocol",
    "255",
];

pub(super) fn one_of(word: &str, words: &[&str], any_case: bool) -> Read {
    let same = |known: &&&str| **known == word || any_case && known.eq_ignore_ascii_case(word);
    match words.iter().find(same) {
        Some(known) => Ok((*known).to_owned()),
        None => Err(format!("expected one of {}", words.join(", ")).into()),
    }
}

/// How the tool compares the names of a list.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Names {
    /// Letter by letter.
    Exact,
    /// In capitals or not.
    AnyCase,
    /// In capitals or not; a prefix suffices.
    Beginnings,
}

/// Reads names that are separated by commas.
pub(super) fn list_of(word: &str, words: &[&str], names: Names) -> Read {
    let mut seen = vec![false; words.len()];
    for part in word.split(',') {
        let at = words.iter().position(|known| match known.get(..part.len()) {
            Some(head) if names == Names::Beginnings && !part.is_empty() => head.eq_ignore_ascii_case(part),
            _ if names == Names::Exact => *known == part,
            _ => known.eq_ignore_ascii_case(part),
        });
        match at.and_then(|at| seen.get_mut(at)) {
            Some(place) => *place = true,
            None => return Err(format!("expected a list (`a,b`) of {}", words.join(", ")).into()),
        }
    }
    let names: Vec<_> = words.iter().zip(seen).filter_map(|(name, seen)| seen.then_some(*name)).collect();
    Ok(names.join(","))
}
