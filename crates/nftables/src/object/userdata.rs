//! User data: bytes that the kernel keeps for nft without looking at them. A list of one byte type, one byte length,
//! payload (`struct nftnl_udata`). Captured from nft 1.0.6.

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

/// Appends one entry. Entries are short: names of at most 255 bytes are not kept here.
pub(crate) fn push(bytes: &mut Vec<u8>, kind: u8, payload: &[u8]) {
    let length = u8::try_from(payload.len()).unwrap_or(u8::MAX);
    bytes.extend_from_slice(&[kind, length]);
    bytes.extend_from_slice(payload.get(..usize::from(length)).unwrap_or_default());
}

/// Appends a number in host order.
pub(crate) fn push_u32(bytes: &mut Vec<u8>, kind: u8, value: u32) {
    push(bytes, kind, &value.to_ne_bytes());
}

/// User data that is a comment only.
pub(crate) fn comment(kind: u8, comment: &Comment) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(comment.as_str().len() + 3);
    push_comment(&mut bytes, kind, comment);
    bytes
}

/// Appends a comment with its NUL.
pub(crate) fn push_comment(bytes: &mut Vec<u8>, kind: u8, comment: &Comment) {
    let text = comment.as_str().as_bytes();
    bytes.extend_from_slice(&[kind, u8::try_from(text.len() + 1).unwrap_or(u8::MAX)]);
    bytes.extend_from_slice(text);
    bytes.push(0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comment_is_what_nft_writes() {
        // strace of nft 1.0.6: add table ip t { comment "tc"; }
        let bytes = comment(TABLE_COMMENT, &Comment::new("tc").unwrap());
        assert_eq!(bytes, b"\x00\x03tc\x00");
        assert_eq!(crate::read::UserData::new(&bytes).comment(), Some("tc"));
    }
}
