//! Text that need not be UTF-8: iptables takes any bytes for a comment, a prefix or a name, and prints them
//! as they are.
//!
//! A byte that is not part of valid UTF-8 is represented in a `str` by one character of the end of the last
//! private use area, U+10FF80 to U+10FFFF for 0x80 to 0xff. Such a character itself, which no standard
//! assigns, is represented by its four bytes, so that [`encode`] gives back whatever [`decode`] was given.
//! (PEP 383 does the same with surrogates, which a `str` cannot have.)

use std::borrow::Cow;

use memchr::memchr;

/// Returns the text of `bytes`, borrowed if it is valid UTF-8.
///
/// ```
/// use sluicegate_iptables_save::{decode, encode};
/// assert_eq!(decode("é".as_bytes()), "é");
/// let latin1 = b"caf\xe9";
/// assert_eq!(decode(latin1), "caf\u{10ffe9}");
/// assert_eq!(*encode(&decode(latin1)), *latin1);
/// ```
#[must_use]
pub fn decode(bytes: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(bytes) {
        Ok(text) if !has_escape(text) => Cow::Borrowed(text),
        _ => Cow::Owned(escaped(bytes)),
    }
}

/// Returns the bytes of `text`, in which single characters may stand for bytes that are not UTF-8; the
/// reverse of [`decode`].
#[must_use]
pub fn encode(text: &str) -> Cow<'_, [u8]> {
    if !has_escape(text) {
        return Cow::Borrowed(text.as_bytes());
    }
    let mut bytes = Vec::with_capacity(text.len());
    for c in text.chars() {
        match escaped_byte(c) {
            Some(byte) => bytes.push(byte),
            None => bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    Cow::Owned(bytes)
}

/// Returns text as a message can have it: control characters and quotes as Rust escapes them, bytes that are not
/// UTF-8 in hexadecimal.
///
/// ```
/// use sluicegate_iptables_save::{decode, printable};
/// assert_eq!(printable(&decode(b"caf\xe9\n")), "caf\\xe9\\n");
/// ```
#[must_use]
pub fn printable(text: &str) -> String {
    let mut printable = String::with_capacity(text.len());
    for c in text.chars() {
        match escaped_byte(c) {
            Some(byte) => printable.push_str(&format!("\\x{byte:02x}")),
            None => printable.extend(c.escape_debug()),
        }
    }
    printable
}

/// Returns how many bytes `text` has for iptables.
pub(crate) fn byte_len(text: &str) -> usize {
    match has_escape(text) {
        true => text.chars().map(|c| escaped_byte(c).map_or(c.len_utf8(), |_| 1)).sum(),
        false => text.len(),
    }
}

/// Returns the longest beginning of `text` that has at most so many bytes for iptables.
pub(crate) fn cut(text: &str, most: usize) -> Cow<'_, str> {
    match byte_len(text) <= most {
        true => Cow::Borrowed(text),
        // The tool cuts bytes, perhaps in the middle of a character.
        false => Cow::Owned(decode(encode(text).get(..most).unwrap_or_default()).into_owned()),
    }
}

pub(crate) fn has_escape(text: &str) -> bool {
    // The first byte of all characters from U+100000 on; hardly any text has one.
    memchr(0xf4, text.as_bytes()).is_some() && text.chars().any(|c| escaped_byte(c).is_some())
}

fn escaped(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match escaped_byte(c) {
                Some(_) => text.extend(c.encode_utf8(&mut [0; 4]).bytes().map(escape)),
                None => text.push(c),
            }
        }
        text.extend(chunk.invalid().iter().copied().map(escape));
    }
    text
}

/// Returns the character that stands for a byte, which is 0x80 or above.
fn escape(byte: u8) -> char {
    char::from_u32(FIRST + (u32::from(byte) & 0x7f)).unwrap_or(char::REPLACEMENT_CHARACTER)
}

fn escaped_byte(c: char) -> Option<u8> {
    u8::try_from(u32::from(c).checked_sub(FIRST)?).ok().filter(|low| *low < 0x80).map(|low| low | 0x80)
}

/// The character that stands for 0x80.
const FIRST: u32 = 0x10_ff80;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn text_that_is_utf8_is_borrowed() {
        for text in ["", "plain", "Grüße 🎉", "\u{10ff7f}\u{100000}"] {
            assert!(matches!(decode(text.as_bytes()), Cow::Borrowed(same) if same == text));
            assert!(matches!(encode(text), Cow::Borrowed(same) if same == text.as_bytes()));
        }
    }

    #[test]
    fn a_byte_is_one_character_and_one_byte_long() {
        let text = decode(b"a\xff\xfe");
        assert_eq!((text.chars().count(), byte_len(&text)), (3, 3));
        assert_eq!(cut("é", 1), "\u{10ffc3}");
        assert_eq!(cut("é", 2), "é");
    }

    proptest! {
        #[test]
        fn encoding_gives_back_what_was_decoded(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            let text = decode(&bytes);
            prop_assert_eq!(&*encode(&text), &*bytes);
            prop_assert_eq!(byte_len(&text), bytes.len());
        }

        #[test]
        fn so_do_characters_that_stand_for_bytes(text in "[\u{10ff70}-\u{10ffff}é]{0,9}") {
            let escaped = decode(text.as_bytes());
            prop_assert_eq!(&*encode(&escaped), text.as_bytes());
        }
    }
}
