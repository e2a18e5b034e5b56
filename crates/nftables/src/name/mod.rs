//! Names and comments: they are validated on creation, so that they cannot be misread as anything else when
//! they are printed or sent.

mod comment;
mod interface;
mod keywords;

use std::borrow::Borrow;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

pub use comment::{Comment, SecurityContext};
pub use interface::InterfaceName;
use keywords::KEYWORDS;

/// The name of a table, chain, set, map, flowtable or stateful object: what nft calls an identifier.
///
/// A name has 1 to 255 bytes (`NFT_NAME_MAXLEN` 256 includes the NUL): first a letter, `_` or `.`, then
/// letters, digits and any of `_ . - /`. Keywords of nft's language (`ip`, `counter`, `le`) are refused,
/// because nft cannot read them as names. Cloning only increments a reference count.
///
/// ```
/// use sluicegate_nftables::Name;
///
/// let name: Name = "service-AXK6CI2C-demo/web/tcp/http".parse()?;
/// assert_eq!(name.as_str(), "service-AXK6CI2C-demo/web/tcp/http");
/// assert!(Name::new("a b; flush ruleset").is_err());
/// assert!(Name::new("drop").is_err());
/// # Ok::<(), sluicegate_nftables::NameError>(())
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(Arc<str>);

impl Name {
    /// Creates a name from valid text.
    ///
    /// # Errors
    /// [`NameError`] if the text is empty, too long, a keyword of nft's language, or has a character that is
    /// not allowed.
    pub fn new(name: &str) -> Result<Self, NameError> {
        let error = |reason| Err(NameError { name: shown(name), reason });
        let Some(first) = name.bytes().next() else {
            return error(NameProblem::Empty);
        };
        if name.len() > MAX_NAME {
            return error(NameProblem::TooLong { length: name.len(), limit: MAX_NAME });
        }
        if !(first.is_ascii_alphabetic() || matches!(first, b'_' | b'.')) {
            return error(NameProblem::Start);
        }
        if let Some(character) = name.chars().find(|c| !in_name(*c)) {
            return error(NameProblem::Character(character));
        }
        if KEYWORDS.binary_search(&name).is_ok() {
            return error(NameProblem::Keyword);
        }
        Ok(Self(name.into()))
    }

    /// Creates a name that the kernel reported, or that another program gives: iptables-nft has chains that
    /// nft cannot name, such as `1st` or `drop`. If nft has no syntax for it, it is preserved, and printed in
    /// quotes with escapes. The kernel refuses names that are empty or have more than 255 bytes.
    #[must_use]
    pub fn from_kernel(name: &str) -> Self {
        Self(name.into())
    }

    /// Returns the name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Formats the name in quotes, so that nft accepts even its own keywords.
    pub(crate) fn quoted(&self) -> impl fmt::Display {
        struct Quoted<'a>(&'a str);

        impl fmt::Display for Quoted<'_> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write_quoted(f, self.0)
            }
        }

        Quoted(&self.0)
    }

    /// Returns `true` if both share the same allocation, as clones do.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Returns `true` if nft has syntax for this name. This is always so for [`Name::new`]; other programs
    /// may use other names.
    #[must_use]
    pub fn is_printable(&self) -> bool {
        Self::new(self).is_ok()
    }
}

impl FromStr for Name {
    type Err = NameError;

    fn from_str(name: &str) -> Result<Self, NameError> {
        Self::new(name)
    }
}

impl TryFrom<&str> for Name {
    type Error = NameError;

    fn try_from(name: &str) -> Result<Self, NameError> {
        Self::new(name)
    }
}

impl AsRef<str> for Name {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for Name {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl std::ops::Deref for Name {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plain = self.0.chars().all(in_name) && !self.0.is_empty();
        if plain { f.write_str(&self.0) } else { write_quoted(f, &self.0) }
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", &*self.0)
    }
}

/// The error for text that is not a valid name or comment.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected {reason}, found {name:?}")]
#[non_exhaustive]
pub struct NameError {
    /// The text, cut after 60 characters.
    pub name: String,
    /// The reason.
    pub reason: NameProblem,
}

/// The reason why text is not a valid name or comment. Displays as what is expected instead: `at most 128 bytes`.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NameProblem {
    /// The text is empty.
    #[error("at least one character")]
    Empty,
    /// The text is longer than the kernel allows.
    #[error("at most {limit} bytes instead of {length}")]
    TooLong {
        /// The length in bytes.
        length: usize,
        /// The maximum length.
        limit: usize,
    },
    /// The first character is not one that starts an identifier.
    #[error("a letter, '_' or '.' at the start")]
    Start,
    /// A character is not allowed.
    #[error("text without {0:?}")]
    Character(char),
    /// The text is a keyword of nft's language.
    #[error("a name that is not a keyword of nft's language")]
    Keyword,
}

fn in_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-' | '/')
}

/// Writes text in quotes, and escapes characters that would end the quotes or the line. nft itself has no
/// escapes: it ends the text at a `\"` too.
fn write_quoted(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    f.write_str("\"")?;
    text.chars().try_for_each(|c| match c {
        '"' => f.write_str("\\u{22}"),
        c if is_escaped(c) => write!(f, "{}", c.escape_debug()),
        c => write!(f, "{c}"),
    })?;
    f.write_str("\"")
}

/// Writes text for which nft has no syntax, so that no reader takes it for another text: a word before quotes is an
/// error of syntax wherever quotes may be.
fn write_unknown(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    f.write_str("unknown ")?;
    write_quoted(f, text)
}

/// Returns whether a character would end a quoted name or the line.
pub(crate) fn is_escaped(c: char) -> bool {
    c == '"' || c.is_control()
}

fn shown(text: &str) -> String {
    match text.char_indices().nth(60) {
        Some((at, _)) => format!("{}...", &text[..at]),
        None => text.to_owned(),
    }
}

const MAX_NAME: usize = 255;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_would_break_out_are_refused() {
        for bad in
            ["", "1a", "a b", "a\nb", "a\0b", "a\"b", "a;b", "a{b", "\u{e9}", "-a", "/a", "accept", "le"]
        {
            assert!(Name::new(bad).is_err(), "{bad:?}");
        }
        assert!(Name::new(&"a".repeat(255)).is_ok());
        assert_eq!(
            Name::new(&"a".repeat(256)).unwrap_err().reason,
            NameProblem::TooLong { length: 256, limit: 255 }
        );
    }

    #[test]
    fn an_error_says_what_is_wrong() {
        assert_eq!(Name::new("a b").unwrap_err().to_string(), "expected text without ' ', found \"a b\"");
        assert_eq!(
            Name::new("drop").unwrap_err().to_string(),
            "expected a name that is not a keyword of nft's language, found \"drop\""
        );
        assert_eq!(
            Comment::new("a\"b").unwrap_err().to_string(),
            "expected text without '\"', found \"a\\\"b\""
        );
    }

    #[test]
    fn a_name_from_the_kernel_cannot_inject() {
        assert_eq!(Name::from_kernel("a\n\" }").to_string(), "\"a\\n\\u{22} }\"");
        assert_eq!(Name::from_kernel("a\" }").quoted().to_string(), "\"a\\u{22} }\"");
        assert_eq!(Name::from_kernel("drop").quoted().to_string(), "\"drop\"");
        assert_eq!(
            InterfaceName::from_kernel("x\"drop#\u{1b}").to_string(),
            "unknown \"x\\u{22}drop#\\u{1b}\""
        );
        assert_eq!(InterfaceName::from_kernel("veth\\*").to_string(), "\"veth\\*\"");
    }
}
