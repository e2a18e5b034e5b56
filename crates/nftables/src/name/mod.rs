//! Names and comments: checked once, so that nothing printed or sent later can break out of its place.

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

/// The name of a table, chain, set, map, flowtable or stateful object, or of a log prefix's owner: what nft calls an
/// identifier.
///
/// 1 to 255 bytes (`NFT_NAME_MAXLEN` 256 counts the NUL): a letter, `_` or `.` first, then letters, digits and any of
/// `_ . - /`. Words of nft's own language (`ip`, `counter`, `le`) are refused, because nft cannot read them back as
/// names. Cloning costs a reference count.
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
    /// Checks a name.
    ///
    /// # Errors
    /// [`NameError`] when it is empty, too long, has another character, or is a word of nft's language.
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

    /// A name that the kernel holds. Other programs may have chosen one that nft could not print; it is kept as it is,
    /// and quoted and escaped when shown.
    pub(crate) fn held(name: &str) -> Self {
        Self(name.into())
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// In quotes, where a word of nft's language is a name as any other.
    pub(crate) fn quoted(&self) -> impl fmt::Display {
        struct Quoted<'a>(&'a str);

        impl fmt::Display for Quoted<'_> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write_quoted(f, self.0)
            }
        }

        Quoted(&self.0)
    }

    /// True when it is a clone of the other one, or the other way round.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// True when nft's language can say this name. Always so for [`Name::new`]; a name read from the kernel may have been
    /// made by a program that did not care.
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

/// A name or comment that cannot be one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{name:?} {reason}")]
pub struct NameError {
    /// What was given, cut after 60 characters.
    pub name: String,
    /// What is wrong with it.
    pub reason: NameProblem,
}

/// Why a name is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NameProblem {
    /// Nothing was given.
    #[error("is empty")]
    Empty,
    /// More bytes than the kernel keeps.
    #[error("has {length} bytes, the limit is {limit}")]
    TooLong {
        /// Its bytes.
        length: usize,
        /// The most there may be.
        limit: usize,
    },
    /// The first character of an identifier.
    #[error("must start with a letter, '_' or '.'")]
    Start,
    /// A character that has no place in it.
    #[error("contains {0:?}")]
    Character(char),
    /// A word of nft's language.
    #[error("is a word of nft's language and cannot be a name")]
    Keyword,
}

fn in_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-' | '/')
}

/// In quotes, with nothing inside that ends them or the line. nft knows no escapes: behind `\"`, too, it reads on as its language.
fn write_quoted(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    f.write_str("\"")?;
    text.chars().try_for_each(|c| match c {
        '"' => f.write_str("\\u{22}"),
        c if is_escaped(c) => write!(f, "{}", c.escape_debug()),
        c => write!(f, "{c}"),
    })?;
    f.write_str("\"")
}

/// Whether a character would end a name in quotes, or its line.
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
        assert_eq!(Name::new("a b").unwrap_err().to_string(), "\"a b\" contains ' '");
        assert_eq!(
            Name::new("drop").unwrap_err().to_string(),
            "\"drop\" is a word of nft's language and cannot be a name"
        );
        assert_eq!(Comment::new("a\"b").unwrap_err().to_string(), "\"a\\\"b\" contains '\"'");
    }

    #[test]
    fn a_held_name_cannot_inject() {
        assert_eq!(Name::held("a\n\" }").to_string(), "\"a\\n\\u{22} }\"");
        assert_eq!(Name::held("a\" }").quoted().to_string(), "\"a\\u{22} }\"");
        assert_eq!(Name::held("drop").quoted().to_string(), "\"drop\"");
        assert_eq!(InterfaceName::held("x\"drop#\u{1b}").to_string(), "\"x\\u{22}drop#\\u{1b}\"");
        assert_eq!(InterfaceName::held("veth\\*").to_string(), "\"veth\\*\"");
    }
}
