//! The name of a set: 1 to 31 bytes, checked once.

use std::borrow::Cow;
use std::fmt::{self, Write as _};
use std::str::FromStr;

use sluicegate_netlink::text::{decode, encode};

use crate::Reason;

/// The name of a set.
///
/// It has 1 to 31 bytes (`IPSET_MAXNAMELEN` of `linux/netfilter/ipset/ip_set.h` counts the NUL). A name that
/// [`new`](Self::new) returns has no control characters and no double quotes, and is not an option of
/// `ipset`, so that it can be used in any command line or restore file. A name that was read from the kernel
/// may have any bytes, and [`Display`](fmt::Display) then prints control characters and quotes as `\x0a`.
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
    /// The maximum length of a name in bytes.
    pub const MAX: usize = 31;

    /// Checks a name.
    ///
    /// # Errors
    /// [`Reason::Name`], [`Reason::NameTooLong`].
    pub fn new(name: &str) -> Result<Self, Reason> {
        let bytes = encode(name);
        if bytes.len() > Self::MAX {
            return Err(Reason::NameTooLong { name: name.to_owned(), max: Self::MAX });
        }
        if name.is_empty() || name.contains(|c: char| c.is_control() || c == '"') || reads_as_option(name) {
            return Err(Reason::Name(name.to_owned()));
        }
        Ok(Self::padded(&bytes))
    }

    /// Returns the name's bytes, without the NUL.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.split(|b| *b == 0).next().unwrap_or_default()
    }

    /// Returns the name as text; bytes that are not UTF-8 are represented as [`decode`] does.
    #[must_use]
    pub fn to_text(&self) -> Cow<'_, str> {
        decode(self.as_bytes())
    }

    /// Returns a name that the kernel sent. `None` when it is empty or too long.
    pub(crate) fn from_kernel(payload: &[u8]) -> Option<Self> {
        let name = payload.split(|b| *b == 0).next().unwrap_or_default();
        (name.len() <= Self::MAX).then(|| Self::padded(name))
    }

    /// Returns the name with its NUL, as in an attribute.
    pub(crate) fn with_nul(&self) -> &[u8] {
        self.bytes.get(..=self.as_bytes().len()).unwrap_or(&self.bytes)
    }

    /// Returns the name as in a restore file: quoted if it has spaces.
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
        self.to_text().chars().try_for_each(|c| match c {
            '"' => f.write_str("\\x22"),
            c if c.is_control() => write!(f, "\\x{:02x}", u32::from(c)),
            c => f.write_char(c),
        })
    }
}

impl fmt::Debug for SetName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.to_text())
    }
}

/// Returns true for words that `ipset` reads as options anywhere on a line (ipset(8), OTHER OPTIONS), also
/// with a second dash.
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
            format!("expected a set name of at most 31 bytes, found '{}'", "x".repeat(32))
        );
    }

    #[test]
    fn names_that_could_be_read_as_another_word_are_refused() {
        for bad in ["", "a\nadd b 1.1.1.1", "a\"", "a\0b", "-exist", "--quiet", "-!"] {
            assert!(SetName::new(bad).is_err(), "{bad:?}");
        }
        assert!(SetName::new("-foo").is_ok());
    }

    #[test]
    fn a_name_that_is_not_utf8_is_read_and_printed_as_its_bytes() {
        let name = SetName::new(&decode(b"caf\xe9")).unwrap();
        assert_eq!(name.as_bytes(), b"caf\xe9");
        assert_eq!(*encode(&name.to_string()), *b"caf\xe9");
        let long = [0xe9; SetName::MAX];
        assert_eq!(SetName::new(&decode(&long)).unwrap().as_bytes(), long);
    }

    #[test]
    fn a_name_from_the_kernel_prints_on_one_line() {
        let name = SetName::from_kernel(b"a\nb\xff\"\0").unwrap();
        assert_eq!(name.to_string(), "a\\x0ab\u{10ffff}\\x22");
        assert_eq!(name.with_nul(), b"a\nb\xff\"\0");
        assert_eq!(SetName::new("a b").unwrap().quoted(), "\"a b\"");
    }
}
