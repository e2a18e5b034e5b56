//! Names of network interfaces.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use sluicegate_netlink::text::{byte_len, decode};

use crate::name::{NameError, NameProblem, shown, write_unknown};

/// The name of a network interface, or a prefix of such names. It has 1 to 15 bytes (`IFNAMSIZ` 16 includes
/// the NUL), no space, `/`, `"`, `\` or control character. With a `*` at its end it stands for all names with
/// that prefix; a name that ends with a `*` itself is written with `\*`, as in nft.
///
/// ```
/// use sluicegate_nftables::InterfaceName;
///
/// assert_eq!(InterfaceName::new("veth*")?.prefix(), Some("veth"));
/// assert_eq!(InterfaceName::new(r"veth\*")?.prefix(), None);
/// # Ok::<(), sluicegate_nftables::NameError>(())
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InterfaceName(Arc<str>);

impl InterfaceName {
    /// Creates an interface name, or a prefix (`veth*`), from valid text.
    ///
    /// # Errors
    /// [`NameError`] if the text is empty, longer than 15 bytes, or has a character that is not allowed.
    pub fn new(name: &str) -> Result<Self, NameError> {
        let error = |reason| Err(NameError { name: shown(name), reason });
        if name.is_empty() || name == "*" {
            return error(NameProblem::Empty);
        }
        let escaped = name.strip_suffix("\\*");
        // The kernel's name has no backslash.
        let length = byte_len(name) - usize::from(escaped.is_some());
        if length > MAX_INTERFACE {
            return error(NameProblem::TooLong { length, limit: MAX_INTERFACE });
        }
        let stem = escaped.or_else(|| name.strip_suffix('*')).unwrap_or(name);
        match stem
            .chars()
            .find(|c| matches!(c, '/' | '"' | '\\' | '*') || c.is_whitespace() || c.is_control())
        {
            Some(character) => error(NameProblem::Character(character)),
            None => Ok(Self(name.into())),
        }
    }

    pub(crate) fn from_kernel(name: &str) -> Self {
        Self(name.into())
    }

    /// Creates a name from what a script says. Where the last `*` is escaped nft 1.0.6 drops every `\`.
    #[cfg(any(feature = "text", feature = "json"))]
    pub(crate) fn from_script(name: &str) -> Self {
        match name.strip_suffix("\\*") {
            Some(stem) if stem.contains('\\') => Self(format!("{}\\*", stem.replace('\\', "")).into()),
            _ => Self(name.into()),
        }
    }

    /// Creates a name from the bytes that a kernel compares: up to a NUL, or the start of names without one.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Self {
        let end = bytes.iter().position(|byte| *byte == 0);
        let text = decode(bytes.get(..end.unwrap_or(bytes.len())).unwrap_or_default());
        match text.strip_suffix('*') {
            _ if end.is_none() && bytes.len() <= MAX_INTERFACE => Self(format!("{text}*").into()),
            Some(stem) => Self(format!("{stem}\\*").into()),
            None => Self(text.as_ref().into()),
        }
    }

    /// Returns whether nft has syntax for it: quotes end at a `"`, and nft drops a `\` before an escaped `*`.
    fn is_printable(&self) -> bool {
        let is_escaped = self.0.strip_suffix("\\*").is_some_and(|stem| stem.contains('\\'));
        !self.0.contains('"') && !is_escaped
    }

    /// Returns the prefix, if the name ends with a `*`.
    #[must_use]
    pub fn prefix(&self) -> Option<&str> {
        self.0.strip_suffix('*').filter(|stem| !stem.ends_with('\\'))
    }

    /// Returns the name in the kernel: a `*` that belongs to the name is written as `\*` in nft's syntax.
    pub(crate) fn literal(&self) -> Cow<'_, str> {
        match self.0.strip_suffix("\\*") {
            Some(stem) => Cow::Owned(format!("{stem}*")),
            None => Cow::Borrowed(&self.0),
        }
    }

    /// Returns the name, including a `*` at its end.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for InterfaceName {
    type Err = NameError;

    fn from_str(name: &str) -> Result<Self, NameError> {
        Self::new(name)
    }
}

/// Formats the value in nft's syntax: in quotes, with each byte as it is. What the kernel allows, but nft has no
/// syntax for, is marked as unknown, so that it is not loaded as the name of another interface.
impl fmt::Display for InterfaceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_printable() { write!(f, "\"{}\"", self.0) } else { write_unknown(f, &self.0) }
    }
}

impl fmt::Debug for InterfaceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", &*self.0)
    }
}

const MAX_INTERFACE: usize = 15;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interface_names_end_with_a_star_at_most() {
        assert!(InterfaceName::new("veth*").is_ok());
        assert!(InterfaceName::new("ve*th").is_err());
        let literal = InterfaceName::new(r"abcdefghijklmn\*").unwrap();
        assert_eq!((literal.prefix(), &*literal.literal()), (None, "abcdefghijklmn*"));
        assert_eq!(literal.to_string(), r#""abcdefghijklmn\*""#);
        assert_eq!(&*InterfaceName::new(r"\*").unwrap().literal(), "*");
        for bad in [r"a\", r"a\\*", r"a\**", r"abcdefghijklmno\*"] {
            assert!(InterfaceName::new(bad).is_err(), "{bad}");
        }
        assert!(InterfaceName::new("abcdefghijklmnop").is_err());
    }
}
