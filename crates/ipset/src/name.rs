//! The name of a set: 1 to 31 bytes, checked once.

use std::borrow::Cow;
use std::fmt::{self, Write as _};
use std::str::FromStr;

use crate::Reason;

/// The name of a set.
///
/// 1 to 31 bytes (`IPSET_MAXNAMELEN` of `linux/netfilter/ipset/ip_set.h` counts the NUL). A name that is made here has
/// no control characters and no double quote, and is no word that `ipset` reads as an option, so that it can stand
/// in any command line or restore file. The kernel allows more: a name that was read from it may be any bytes, and
/// [`Display`](fmt::Display) then shows the unprintable ones as `\x0a`.
///
/// ```
/// use sluicegate_ipset::SetName;
///
/// let name = SetName::new("KUBE-CLUSTER-IP")?;
/// assert_eq!(name.to_string(), "KUBE-CLUSTER-IP");
/// assert!(SetName::new("a name of more than 31 characters").is_err());
/// # Ok::<(), sluicegate_ipset::Reason>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SetName {
    /// Padded with NUL; the last byte is always NUL.
    bytes: [u8; SetName::MAX + 1],
}

impl SetName {
    /// The most bytes that a name can have.
    pub const MAX: usize = 31;

    /// Checks a name.
    ///
    /// # Errors
    /// [`Reason::Name`], [`Reason::NameTooLong`].
    pub fn new(name: &str) -> Result<Self, Reason> {
        if name.len() > Self::MAX {
            return Err(Reason::NameTooLong { name: name.to_owned(), max: Self::MAX });
        }
        if name.is_empty() || name.contains(|c: char| c.is_control() || c == '"') || reads_as_option(name) {
            return Err(Reason::Name(name.to_owned()));
        }
        Ok(Self::padded(name.as_bytes()))
    }

    /// The name's bytes, without the NUL.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.split(|b| *b == 0).next().unwrap_or_default()
    }

    /// The name as text; bytes that are not UTF-8 are replaced.
    #[must_use]
    pub fn to_text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(self.as_bytes())
    }

    /// A name that the kernel sent. `None` when it is empty or too long.
    pub(crate) fn from_kernel(payload: &[u8]) -> Option<Self> {
        let name = payload.split(|b| *b == 0).next().unwrap_or_default();
        (name.len() <= Self::MAX).then(|| Self::padded(name))
    }

    /// With its NUL, as an attribute carries it.
    pub(crate) fn with_nul(&self) -> &[u8] {
        self.bytes.get(..=self.as_bytes().len()).unwrap_or(&self.bytes)
    }

    /// How the name is written in a restore file: quoted when it has spaces.
    pub(crate) fn quoted(&self) -> Cow<'static, str> {
        let text = self.to_string();
        if text.contains(char::is_whitespace) { format!("\"{text}\"").into() } else { text.into() }
    }

    fn padded(name: &[u8]) -> Self {
        let mut bytes = [0; Self::MAX + 1];
        for (to, from) in bytes.iter_mut().zip(name) {
            *to = *from;
        }
        Self { bytes }
    }
}

impl FromStr for SetName {
    type Err = Reason;

    fn from_str(name: &str) -> Result<Self, Reason> {
        Self::new(name)
    }
}

impl TryFrom<&str> for SetName {
    type Error = Reason;

    fn try_from(name: &str) -> Result<Self, Reason> {
        Self::new(name)
    }
}

impl fmt::Display for SetName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for part in self.as_bytes().utf8_chunks() {
            for c in part.valid().chars() {
                match c {
                    '"' => f.write_str("\\x22")?,
                    c if c.is_control() => write!(f, "\\x{:02x}", u32::from(c))?,
                    c => f.write_char(c)?,
                }
            }
            for byte in part.invalid() {
                write!(f, "\\x{byte:02x}")?;
            }
        }
        Ok(())
    }
}

impl fmt::Debug for SetName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.to_text())
    }
}

/// `ipset` takes these for options wherever they stand on a line (ipset(8), OTHER OPTIONS), with one more dash as well.
pub(crate) fn reads_as_option(word: &str) -> bool {
    if !word.starts_with('-') {
        return false;
    }
    let word = if word.starts_with("--") { word.get(1..).unwrap_or_default() } else { word };
    crate::text::GLOBAL_OPTIONS.iter().any(|(short, long, _)| word == *short || word == *long)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thirty_one_bytes_fit_and_thirty_two_do_not() {
        assert_eq!(SetName::new(&"x".repeat(31)).unwrap().as_bytes().len(), 31);
        assert_eq!(
            SetName::new(&"x".repeat(32)).unwrap_err().to_string(),
            format!("set name '{}' is longer than 31 bytes", "x".repeat(32))
        );
    }

    #[test]
    fn names_that_could_become_something_else_are_refused() {
        for bad in ["", "a\nadd b 1.1.1.1", "a\"", "a\0b", "-exist", "--quiet", "-!"] {
            assert!(SetName::new(bad).is_err(), "{bad:?}");
        }
        assert!(SetName::new("-foo").is_ok());
    }

    #[test]
    fn a_name_of_the_kernel_prints_on_one_line() {
        let name = SetName::from_kernel(b"a\nb\xff\"\0").unwrap();
        assert_eq!(name.to_string(), "a\\x0ab\\xff\\x22");
        assert_eq!(name.with_nul(), b"a\nb\xff\"\0");
        assert_eq!(SetName::new("a b").unwrap().quoted(), "\"a b\"");
    }
}
