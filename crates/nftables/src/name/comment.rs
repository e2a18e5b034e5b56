//! Text that nft prints in quotes: comments and security contexts. nft has no escape for a quotation mark.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use sluicegate_netlink::text::byte_len;

use crate::name::{NameError, NameProblem, shown, write_unknown};

/// A comment of a table, chain, set, rule or element: up to 128 bytes of UTF-8 without control characters and
/// `"`, which nft has no way to escape. One that was read, from a kernel or a script, may have others.
///
/// ```
/// use sluicegate_nftables::Comment;
///
/// assert_eq!(Comment::new("demo/web: port 80")?.as_str(), "demo/web: port 80");
/// assert!(Comment::new("\" ; flush ruleset").is_err());
/// # Ok::<(), sluicegate_nftables::NameError>(())
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Comment(Arc<str>);

impl Comment {
    /// Creates a comment from valid text.
    ///
    /// # Errors
    /// [`NameError`] if the text is longer than 128 bytes (`NFTNL_UDATA_COMMENT_MAXLEN`), or has a `"` or a
    /// control character.
    pub fn new(comment: &str) -> Result<Self, NameError> {
        let error = |reason| Err(NameError { name: shown(comment), reason });
        let length = byte_len(comment);
        if length > MAX_COMMENT {
            return error(NameProblem::TooLong { length, limit: MAX_COMMENT });
        }
        match comment.chars().find(|c| is_forbidden(*c)) {
            Some(character) => error(NameProblem::Character(character)),
            None => Ok(Self(comment.into())),
        }
    }

    /// Creates a comment from any text: characters that are not allowed become spaces, and the text is cut
    /// after at most 128 bytes. It is meant for informative comments with names from other sources.
    #[must_use]
    pub fn lossy(text: &str) -> Self {
        let mut kept = String::with_capacity(text.len().min(MAX_COMMENT));
        let mut length = 0;
        for c in text.chars().map(|c| if is_forbidden(c) { ' ' } else { c }) {
            let more = byte_len(c.encode_utf8(&mut [0; 4]));
            if length + more > MAX_COMMENT {
                break;
            }
            length += more;
            kept.push(c);
        }
        Self(kept.into())
    }

    /// Creates a comment that the kernel reported, or that another program gives: it is kept as it is. One with a
    /// `"`, for which nft has no syntax, is printed behind the word `unknown`, so that it cannot be loaded as
    /// another comment. What the kernel cannot have reported is cut: all from a NUL on, or from 255 bytes on.
    #[must_use]
    pub fn from_kernel(comment: &str) -> Self {
        let mut length = 0;
        let kept = comment.chars().take_while(|c| {
            length += byte_len(c.encode_utf8(&mut [0; 4]));
            *c != '\0' && length <= MAX_FROM_KERNEL
        });
        Self(kept.collect::<String>().into())
    }

    /// Creates a comment from what a script says, with all that nft takes there: of the bytes that are too many
    /// for [`new`](Self::new), all but NUL.
    #[cfg(any(feature = "text", feature = "json"))]
    pub(crate) fn from_script(comment: &str) -> Result<Self, NameError> {
        let error = |reason| Err(NameError { name: shown(comment), reason });
        match byte_len(comment) {
            length if length > MAX_COMMENT => error(NameProblem::TooLong { length, limit: MAX_COMMENT }),
            _ if comment.contains('\0') => error(NameProblem::Character('\0')),
            _ => Ok(Self(comment.into())),
        }
    }

    /// Returns whether nft has syntax for it.
    pub(crate) fn is_printable(&self) -> bool {
        !self.0.contains('"')
    }

    /// Returns the comment.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Returns whether a character would end the comment or the line.
fn is_forbidden(c: char) -> bool {
    c == '"' || c.is_control() && c != '\t'
}

impl FromStr for Comment {
    type Err = NameError;

    fn from_str(comment: &str) -> Result<Self, NameError> {
        Self::new(comment)
    }
}

impl TryFrom<&str> for Comment {
    type Error = NameError;

    fn try_from(comment: &str) -> Result<Self, NameError> {
        Self::new(comment)
    }
}

/// Formats the value in nft's syntax: in quotes.
impl fmt::Display for Comment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_printable() { write!(f, "\"{}\"", self.0) } else { write_unknown(f, &self.0) }
    }
}

impl fmt::Debug for Comment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", &*self.0)
    }
}

/// A security context of the kernel's security module (`system_u:object_r:ssh_server_packet_t:s0`): 1 to 255
/// bytes (`NFT_SECMARK_CTX_MAXLEN` 256 includes the NUL) without control characters and `"`.
///
/// ```
/// use sluicegate_nftables::SecurityContext;
///
/// let context = SecurityContext::new("system_u:object_r:http_packet_t:s0")?;
/// assert_eq!(context.to_string(), "\"system_u:object_r:http_packet_t:s0\"");
/// assert!(SecurityContext::new("").is_err());
/// # Ok::<(), sluicegate_nftables::NameError>(())
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SecurityContext(Arc<str>);

impl SecurityContext {
    /// Creates a security context from valid text. Only the kernel can check that its security module knows
    /// it.
    ///
    /// # Errors
    /// [`NameError`] if the text is empty, longer than 255 bytes, or has a `"` or a control character.
    pub fn new(context: &str) -> Result<Self, NameError> {
        let error = |reason| Err(NameError { name: shown(context), reason });
        if context.is_empty() {
            return error(NameProblem::Empty);
        }
        let length = byte_len(context);
        if length > MAX_CONTEXT {
            return error(NameProblem::TooLong { length, limit: MAX_CONTEXT });
        }
        match context.chars().find(|c| *c == '"' || c.is_control()) {
            Some(character) => error(NameProblem::Character(character)),
            None => Ok(Self(context.into())),
        }
    }

    /// Creates a security context that the kernel listed; `None` if nft has no syntax for it.
    pub(crate) fn from_kernel(context: &str) -> Option<Self> {
        Self::new(context).ok()
    }

    /// Returns the security context.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for SecurityContext {
    type Err = NameError;

    fn from_str(context: &str) -> Result<Self, NameError> {
        Self::new(context)
    }
}

/// Formats the value in nft's syntax: in quotes.
impl fmt::Display for SecurityContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.0)
    }
}

impl fmt::Debug for SecurityContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", &*self.0)
    }
}

const MAX_COMMENT: usize = 128;
/// The most bytes that user data can have of a comment, whose length counts its NUL in one byte.
const MAX_FROM_KERNEL: usize = 254;
const MAX_CONTEXT: usize = 255;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lossy_comment_is_always_a_comment() {
        let text = format!("a\"b\nc{}", "\u{20ac}".repeat(100));
        let comment = Comment::lossy(&text);
        assert_eq!(Comment::new(comment.as_str()).unwrap(), comment);
        assert!(comment.as_str().starts_with("a b c\u{20ac}"));
    }

    #[test]
    fn a_security_context_is_not_empty_and_not_too_long() {
        assert!(SecurityContext::new(&"a".repeat(255)).is_ok());
        for bad in ["", "a\"b", "a\nb", &"a".repeat(256)] {
            assert!(SecurityContext::new(bad).is_err(), "{bad:?}");
        }
    }
}
