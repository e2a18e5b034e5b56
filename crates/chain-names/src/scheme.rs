//! The general form of names: a prefix, a hash, and a rule for text that is too long.

use std::marker::PhantomData;

use crate::error::{Error, What};
use crate::hashing::Hashing;
use crate::name::{Name, Text};

/// A scheme for names of kind `N`; see [`schemes`](crate::schemes) for those that are in use.
///
/// ```
/// use sluicegate_chain_names::{Encoding, Form, HashFunction, Hashing, Scheme, XtName};
///
/// // A chain for every peer: MESH- and 20 characters of the SHA-256 of its key.
/// const HASHING: Hashing =
///     Hashing { function: HashFunction::Sha256, encoding: Encoding::Base32, length: 20 };
/// const PEER: Scheme<XtName> = Scheme::new("MESH-", HASHING, Form::Hash);
///
/// let chain: XtName = PEER.name(&["peer", "/", "fd00::17"])?;
/// assert!(chain.starts_with("MESH-") && chain.len() == 25);
/// # Ok::<(), sluicegate_chain_names::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scheme<'a, N> {
    prefix: &'a str,
    hashing: Hashing,
    form: Form<'a>,
    limit: usize,
    kind: PhantomData<fn() -> N>,
}

/// The part of a name after its prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Form<'a> {
    /// The hash alone: every name has the same length. kube-proxy's iptables mode, kube-router, the CNI
    /// plugins.
    Hash,
    /// The hash, a separator and the text, truncated if that is too long: kube-proxy's nftables mode.
    HashAndText {
        /// The separator between hash and text.
        separator: &'a str,
        /// The maximum length in bytes of hash, separator and text together.
        most: usize,
        /// The end of a truncated text. It counts towards the `most` bytes.
        ellipsis: &'a str,
    },
    /// The text itself if the name does not exceed the limit; otherwise a mark and as many characters of the
    /// text's hash as fit, up to the scheme's hash length: Calico's chains.
    TextOrHash {
        /// The mark before the hash. A text that begins with it and has a name of exactly the limit is hashed
        /// as well, so that no text equals the hash of another. For an empty text the name ends with it.
        mark: &'a str,
    },
}

impl<'a, N: Name> Scheme<'a, N> {
    /// Returns a scheme with the limit of the kind of name.
    #[must_use]
    pub const fn new(prefix: &'a str, hashing: Hashing, form: Form<'a>) -> Self {
        Self { prefix, hashing, form, limit: N::LIMIT, kind: PhantomData }
    }

    /// Returns the scheme with another limit in bytes, which cannot exceed that of the kind of name.
    #[must_use]
    pub const fn limit(self, limit: usize) -> Self {
        let limit = if limit < N::LIMIT { limit } else { N::LIMIT };
        Self { limit, ..self }
    }

    /// Returns the prefix of all names of the scheme.
    #[must_use]
    pub const fn prefix(&self) -> &'a str {
        self.prefix
    }

    /// Returns the hashing of the scheme's names.
    #[must_use]
    pub const fn hashing(&self) -> Hashing {
        self.hashing
    }

    /// Returns the name for the concatenation of `pieces`.
    ///
    /// If the name contains only a hash of the pieces, they can be any text.
    ///
    /// # Errors
    /// When all pieces are empty (except in [`Form::TextOrHash`]), the result is too long, or text that
    /// becomes part of the name has characters which that kind of name does not allow.
    pub fn name(&self, pieces: &[&str]) -> Result<N, Error> {
        let tail = self.tail::<TAIL>(pieces)?;
        if self.prefix.len() + tail.as_str().len() > self.limit {
            return Err(self.too_long(tail.as_str()));
        }
        N::join(&[self.prefix, tail.as_str()])
    }

    /// Returns the part after the prefix.
    pub(crate) fn tail<const M: usize>(&self, pieces: &[&str]) -> Result<Text<M>, Error> {
        let length: usize = pieces.iter().map(|piece| piece.len()).sum();
        if length == 0 && !matches!(self.form, Form::TextOrHash { .. }) {
            return Err(Error::Empty { what: What::Input });
        }
        let mut tail = Text::new();
        let fits = match self.form {
            Form::Hash => tail.push(self.hashing.of(pieces)?.as_str()),
            Form::HashAndText { separator, most, ellipsis } => {
                tail.push(self.hashing.of(pieces)?.as_str())
                    && tail.push(separator)
                    && push_or_cut(&mut tail, pieces, length, most, ellipsis)
            }
            Form::TextOrHash { mark } => self.push_text_or_hash(&mut tail, pieces, length, mark)?,
        };
        if fits { Ok(tail) } else { Err(self.too_long(tail.as_str())) }
    }

    fn too_long(&self, tail: &str) -> Error {
        Error::TooLong { what: N::WHAT, text: [self.prefix, tail].concat(), limit: self.limit }
    }

    fn push_text_or_hash<const M: usize>(
        &self,
        tail: &mut Text<M>,
        pieces: &[&str],
        length: usize,
        mark: &str,
    ) -> Result<bool, Error> {
        if length == 0 {
            return Ok(tail.push(mark));
        }
        let whole = self.prefix.len() + length;
        if whole < self.limit || (whole == self.limit && !begins_with(pieces, mark)) {
            return Ok(push_all(tail, pieces));
        }
        let room = self.limit.saturating_sub(self.prefix.len() + mark.len()).min(self.hashing.length);
        Ok(tail.push(mark) && tail.push(Hashing { length: room, ..self.hashing }.of(pieces)?.as_str()))
    }
}

fn push_all<const M: usize>(tail: &mut Text<M>, pieces: &[&str]) -> bool {
    pieces.iter().all(|piece| tail.push(piece))
}

/// Appends the pieces, `length` bytes in all, so that `tail` has at most `most` bytes; text that does not fit
/// is replaced by the ellipsis.
fn push_or_cut<const M: usize>(
    tail: &mut Text<M>,
    pieces: &[&str],
    length: usize,
    most: usize,
    ellipsis: &str,
) -> bool {
    let taken = tail.as_str().len();
    if taken + length <= most {
        return push_all(tail, pieces);
    }
    let Some(mut room) = most.checked_sub(taken + ellipsis.len()) else { return false };
    for piece in pieces {
        // Truncated at a character boundary. A name is ASCII in the end.
        let part = &piece[..floor_char_boundary(piece, room)];
        room -= part.len();
        if !tail.push(part) {
            return false;
        }
        if part.len() < piece.len() {
            break;
        }
    }
    tail.push(ellipsis)
}

/// Returns true when the pieces, taken together, begin with `mark`.
fn begins_with(pieces: &[&str], mark: &str) -> bool {
    let mut text = pieces.iter().flat_map(|piece| piece.bytes());
    mark.bytes().all(|byte| text.next() == Some(byte))
}

/// Returns the last boundary between characters at or before `at`; `str::floor_char_boundary` came with Rust
/// 1.91.
fn floor_char_boundary(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0)
}

/// More than the largest limit, so that an error can show a name that is slightly too long.
const TAIL: usize = 384;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hashing::{Encoding, HashFunction};
    use crate::name::{NftName, XtName};

    const HASHING: Hashing =
        Hashing { function: HashFunction::Sha256, encoding: Encoding::Base32, length: 8 };
    const CUT: Form<'static> = Form::HashAndText { separator: "-", most: 20, ellipsis: "..." };

    #[test]
    fn pieces_are_concatenated() {
        let scheme = Scheme::<NftName>::new("x-", HASHING, CUT);
        assert_eq!(
            scheme.name(&["abcdef", "ghijklm"]).unwrap(),
            scheme.name(&["abc", "", "defghijklm"]).unwrap()
        );
    }

    #[test]
    fn text_is_truncated_only_if_it_is_too_long() {
        let scheme = Scheme::<NftName>::new("x-", HASHING, CUT);
        let exact = scheme.name(&["abcdefghijk"]).unwrap();
        assert!(exact.ends_with("-abcdefghijk") && exact.len() == 22, "{exact}");
        let cut = scheme.name(&["abcdef", "ghijkl"]).unwrap();
        assert!(cut.ends_with("-abcdefgh...") && cut.len() == 22, "{cut}");
    }

    #[test]
    fn text_is_truncated_at_character_boundaries() {
        let scheme = Scheme::<NftName>::new("x-", HASHING, CUT);
        // The limit is inside the fourth e-acute: an error about the character, and not a panic.
        assert!(scheme.name(&["\u{e9}".repeat(9).as_str()]).unwrap_err().is_invalid_character());
    }

    #[test]
    fn a_form_that_cannot_fit_is_an_error() {
        let narrow = Form::HashAndText { separator: "-", most: 9, ellipsis: "..." };
        assert!(Scheme::<NftName>::new("x-", HASHING, narrow).name(&["abcdef"]).unwrap_err().is_too_long());
        let long = "a-prefix-of-25-characters";
        assert!(
            Scheme::<XtName>::new(long, HASHING, Form::Hash).name(&["abcdef"]).unwrap_err().is_too_long()
        );
        let full = "a-prefix-of-28-characters---";
        let hashed = Scheme::<XtName>::new(full, HASHING, Form::TextOrHash { mark: "_" });
        assert!(hashed.name(&["abcdef"]).is_err());
    }

    #[test]
    fn a_limit_can_be_lowered_and_not_raised() {
        let scheme = Scheme::<XtName>::new("KUBE-", HASHING, Form::Hash);
        assert!(scheme.limit(13).name(&["x"]).is_ok());
        assert!(scheme.limit(12).name(&["x"]).unwrap_err().is_too_long());
        let form = Form::TextOrHash { mark: "_" };
        assert_eq!(
            Scheme::<XtName>::new("", HASHING, form).limit(1000).name(&[&"a".repeat(28)]).unwrap().len(),
            28
        );
    }

    #[test]
    fn empty_text_has_no_hash() {
        assert!(Scheme::<XtName>::new("KUBE-", HASHING, Form::Hash).name(&["", ""]).unwrap_err().is_empty());
    }
}
