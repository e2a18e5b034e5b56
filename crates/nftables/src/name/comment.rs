//! Text in quotes: comments and security contexts. nft has no way to escape what ends the quotes.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::name::{NameError, NameProblem, shown};

/// A comment of a table, chain, set, rule or element: up to 128 bytes of UTF-8 without control characters and `"`,
/// which nft has no way to escape.
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
    /// Checks a comment.
    ///
    /// # Errors
    /// [`NameError`] when it is over 128 bytes (`NFTNL_UDATA_COMMENT_MAXLEN`), or has a `"` or a control character.
    pub fn new(comment: &str) -> Result<Self, NameError> {
        let error = |reason| Err(NameError { name: shown(comment), reason });
        if comment.len() > MAX_COMMENT {
            return error(NameProblem::TooLong { length: comment.len(), limit: MAX_COMMENT });
        }
        match comment.chars().find(|c| is_forbidden(*c)) {
            Some(character) => error(NameProblem::Character(character)),
            None => Ok(Self(comment.into())),
        }
    }

    /// The nearest comment to any text: forbidden characters become spaces, and it is cut at 128 bytes between
    /// characters. For comments that carry names from outside and decide nothing.
    #[must_use]
    pub fn lossy(text: &str) -> Self {
        let mut kept = String::with_capacity(text.len().min(MAX_COMMENT));
        for c in text.chars().map(|c| if is_forbidden(c) { ' ' } else { c }) {
            if kept.len() + c.len_utf8() > MAX_COMMENT {
                break;
            }
            kept.push(c);
        }
        Self(kept.into())
    }

    /// The comment.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// What would end a comment, or its line.
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

/// As nft writes it: in quotes.
impl fmt::Display for Comment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.0)
    }
}

impl fmt::Debug for Comment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", &*self.0)
    }
}

/// A security context as the kernel's security module knows it (`system_u:object_r:ssh_server_packet_t:s0`): 1 to 255 bytes
/// (`NFT_SECMARK_CTX_MAXLEN` 256 counts the NUL) without control characters and `"`.
///
/// ```
/// use sluicegate_nftables::SecurityContext;
///
/// assert_eq!(SecurityContext::new("system_u:object_r:http_packet_t:s0")?.to_string(), "\"system_u:object_r:http_packet_t:s0\"");
/// assert!(SecurityContext::new("").is_err());
/// # Ok::<(), sluicegate_nftables::NameError>(())
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SecurityContext(Arc<str>);

impl SecurityContext {
    /// Checks a security context; whether the security module knows it, the kernel says.
    ///
    /// # Errors
    /// [`NameError`] when it is empty, over 255 bytes, or has a `"` or a control character.
    pub fn new(context: &str) -> Result<Self, NameError> {
        let error = |reason| Err(NameError { name: shown(context), reason });
        if context.is_empty() {
            return error(NameProblem::Empty);
        }
        if context.len() > MAX_CONTEXT {
            return error(NameProblem::TooLong { length: context.len(), limit: MAX_CONTEXT });
        }
        match context.chars().find(|c| *c == '"' || c.is_control()) {
            Some(character) => error(NameProblem::Character(character)),
            None => Ok(Self(context.into())),
        }
    }

    /// One that the kernel holds; `None` where nft could not say it.
    pub(crate) fn held(context: &str) -> Option<Self> {
        Self::new(context).ok()
    }

    /// The security context.
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

/// As nft writes it: in quotes.
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
