//! User data: bytes that the kernel stores for nft without interpreting them. They are a list of entries,
//! each with one byte for the type, one for the length, and a payload (`struct nftnl_udata`). The format was
//! captured from nft 1.0.6.

use std::borrow::Cow;

use sluicegate_netlink::text::{decode, encode};

use crate::name::Comment;

/// `NFTNL_UDATA_TABLE_COMMENT`
pub(crate) const TABLE_COMMENT: u8 = 0;
/// `NFTNL_UDATA_CHAIN_COMMENT`
pub(crate) const CHAIN_COMMENT: u8 = 0;
/// `NFTNL_UDATA_RULE_COMMENT`
pub(crate) const RULE_COMMENT: u8 = 0;
/// `NFTNL_UDATA_OBJ_COMMENT`
pub(crate) const OBJECT_COMMENT: u8 = 0;
/// `NFTNL_UDATA_SET_ELEM_COMMENT`
pub(crate) const ELEMENT_COMMENT: u8 = 0;
/// `NFTNL_UDATA_SET_ELEM_FLAGS`
pub(crate) const ELEMENT_FLAGS: u8 = 1;
/// `NFTNL_UDATA_SET_KEYBYTEORDER`
pub(crate) const KEYBYTEORDER: u8 = 0;
/// `NFTNL_UDATA_SET_DATABYTEORDER`
pub(crate) const DATABYTEORDER: u8 = 1;
/// `NFTNL_UDATA_SET_MERGE_ELEMENTS`
pub(crate) const MERGE_ELEMENTS: u8 = 2;
/// `NFTNL_UDATA_SET_KEY_TYPEOF`
pub(crate) const KEY_TYPEOF: u8 = 3;
/// `NFTNL_UDATA_SET_DATA_TYPEOF`
pub(crate) const DATA_TYPEOF: u8 = 4;
/// `NFTNL_UDATA_SET_DATA_INTERVAL`
pub(crate) const DATA_INTERVAL: u8 = 6;
/// `NFTNL_UDATA_SET_COMMENT`
pub(crate) const SET_COMMENT: u8 = 7;

/// Appends one entry. No payload is longer than 255 bytes.
pub(crate) fn push(bytes: &mut Vec<u8>, kind: u8, payload: &[u8]) {
    let length = u8::try_from(payload.len()).unwrap_or(u8::MAX);
    bytes.extend_from_slice(&[kind, length]);
    bytes.extend_from_slice(payload.get(..usize::from(length)).unwrap_or_default());
}

/// Appends a number in host byte order.
pub(crate) fn push_u32(bytes: &mut Vec<u8>, kind: u8, value: u32) {
    push(bytes, kind, &value.to_ne_bytes());
}

/// Returns user data that contain only a comment.
pub(crate) fn comment(kind: u8, comment: &Comment) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(comment.as_str().len() + 3);
    push_comment(&mut bytes, kind, comment);
    bytes
}

/// Appends a comment with its NUL.
pub(crate) fn push_comment(bytes: &mut Vec<u8>, kind: u8, comment: &Comment) {
    let text = encode(comment.as_str());
    bytes.extend_from_slice(&[kind, u8::try_from(text.len() + 1).unwrap_or(u8::MAX)]);
    bytes.extend_from_slice(&text);
    bytes.push(0);
}

/// Iterates over the entries of user data, until the bytes are no longer a valid list.
#[derive(Debug, Clone)]
pub struct UserData<'a> {
    rest: &'a [u8],
}

impl<'a> UserData<'a> {
    /// Creates an iterator over the user data of an object.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// Returns the payload of the first entry of this type.
    #[must_use]
    pub fn find(mut self, kind: u8) -> Option<&'a [u8]> {
        self.find_map(|(found, value)| (found == kind).then_some(value))
    }

    /// Returns the comment of a table, chain, rule, element or object.
    #[must_use]
    pub fn comment(self) -> Option<Cow<'a, str>> {
        self.find(RULE_COMMENT).map(text)
    }

    /// Returns the comment of a set or map.
    #[must_use]
    pub fn set_comment(self) -> Option<Cow<'a, str>> {
        self.find(SET_COMMENT).map(text)
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

fn text(value: &[u8]) -> Cow<'_, str> {
    decode(value.strip_suffix(&[0]).unwrap_or(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comment_is_what_nft_writes() {
        // strace of nft 1.0.6: add table ip t { comment "tc"; }
        let bytes = comment(TABLE_COMMENT, &Comment::new("tc").unwrap());
        assert_eq!(bytes, b"\x00\x03tc\x00");
        assert_eq!(UserData::new(&bytes).comment().as_deref(), Some("tc"));
    }

    #[test]
    fn parts_are_found_and_a_cut_end_is_no_part() {
        // The byte order of the key, a comment, and an entry whose length exceeds the data.
        let bytes = [0, 4, 1, 0, 0, 0, 7, 3, b'h', b'i', 0, 2, 9];
        assert_eq!(UserData::new(&bytes).find(0), Some(&[1, 0, 0, 0][..]));
        assert_eq!(UserData::new(&bytes).set_comment().as_deref(), Some("hi"));
        assert_eq!(UserData::new(&bytes).count(), 2);
        assert_eq!(UserData::new(&[]).comment(), None);
    }
}
