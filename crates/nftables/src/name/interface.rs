//! Names of network interfaces.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::name::{NameError, NameProblem, shown, write_quoted};

/// The name of a network interface, as nft matches it: 1 to 15 bytes (`IFNAMSIZ` 16 counts the NUL), no space, `/`, `"`, `\` or
/// control character; a `*` only at its end, where it stands for any continuation.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InterfaceName(Arc<str>);

impl InterfaceName {
    /// Checks an interface name or a prefix of one (`veth*`).
    ///
    /// # Errors
    /// [`NameError`] when it is empty, over 15 bytes, or has a character that no interface name may have.
    pub fn new(name: &str) -> Result<Self, NameError> {
        let error = |reason| Err(NameError { name: shown(name), reason });
        if name.is_empty() || name == "*" {
            return error(NameProblem::Empty);
        }
        if name.len() > MAX_INTERFACE {
            return error(NameProblem::TooLong { length: name.len(), limit: MAX_INTERFACE });
        }
        let stem = name.strip_suffix('*').unwrap_or(name);
        match stem
            .chars()
            .find(|c| matches!(c, '/' | '"' | '\\' | '*') || c.is_whitespace() || c.is_control())
        {
            Some(character) => error(NameProblem::Character(character)),
            None => Ok(Self(name.into())),
        }
    }

    pub(crate) fn held(name: &str) -> Self {
        Self(name.into())
    }

    /// What all the names that it stands for start with, if it ends with a `*`.
    #[must_use]
    pub fn prefix(&self) -> Option<&str> {
        self.0.strip_suffix('*').filter(|stem| !stem.ends_with('\\'))
    }

    /// The name as the kernel has it: nft writes a `*` that is meant as `\*`.
    pub(crate) fn literal(&self) -> Cow<'_, str> {
        match self.0.strip_suffix("\\*") {
            Some(stem) => Cow::Owned(format!("{stem}*")),
            None => Cow::Borrowed(&self.0),
        }
    }

    /// The name, with its `*` if it has one.
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

/// As nft writes it: in quotes. The kernel takes almost any name; what nft has no way to say is escaped.
impl fmt::Display for InterfaceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_quoted(f, &self.0)
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
        assert!(InterfaceName::new("abcdefghijklmnop").is_err());
    }
}
