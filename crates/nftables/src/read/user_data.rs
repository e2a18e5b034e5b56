//! User data: what nft notes with an object so that it can show it again. To the kernel these are bytes.
//!
//! It is a list of (type, length, value) with one byte for each of the first two, in the order in which nft and libnftnl
//! write it.

/// The parts of some user data. Ends where the bytes are no longer a list.
#[derive(Debug, Clone)]
pub struct UserData<'a> {
    rest: &'a [u8],
}

impl<'a> UserData<'a> {
    /// Reads user data of any object.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// The value of the first part of this type.
    #[must_use]
    pub fn find(mut self, kind: u8) -> Option<&'a [u8]> {
        self.find_map(|(found, value)| (found == kind).then_some(value))
    }

    /// The comment of a table, chain, rule, element or object.
    #[must_use]
    pub fn comment(self) -> Option<&'a str> {
        text(self.find(COMMENT)?)
    }

    /// The comment of a set or map.
    #[must_use]
    pub fn set_comment(self) -> Option<&'a str> {
        text(self.find(SET_COMMENT)?)
    }
}

impl<'a> Iterator for UserData<'a> {
    type Item = (u8, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let ([kind, length], rest) = self.rest.split_first_chunk::<2>()?;
        let (value, rest) = rest.split_at_checked(usize::from(*length))?;
        self.rest = rest;
        Some((*kind, value))
    }
}

fn text(value: &[u8]) -> Option<&str> {
    std::str::from_utf8(value.strip_suffix(&[0]).unwrap_or(value)).ok()
}

/// `NFTNL_UDATA_RULE_COMMENT`, and the same number for tables, chains, elements and objects.
const COMMENT: u8 = 0;
/// `NFTNL_UDATA_SET_COMMENT`.
const SET_COMMENT: u8 = 7;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_found_and_a_cut_end_is_no_part() {
        // Byte order of the key, then a comment, then two bytes that promise more than there is.
        let bytes = [0, 4, 1, 0, 0, 0, 7, 3, b'h', b'i', 0, 2, 9];
        assert_eq!(UserData::new(&bytes).find(0), Some(&[1, 0, 0, 0][..]));
        assert_eq!(UserData::new(&bytes).set_comment(), Some("hi"));
        assert_eq!(UserData::new(&bytes).count(), 2);
        assert_eq!(UserData::new(&[]).comment(), None);
    }
}
