//! The three kinds of names: inline text that is checked when it is created.

use std::borrow::Borrow;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Deref;
use std::str::FromStr;

use crate::error::{Error, What};

/// The trait of the three kinds of names; a [`Scheme`](crate::Scheme) produces any of them.
pub trait Name: sealed::Sealed + Copy + Eq + Ord + Hash + fmt::Debug + fmt::Display + AsRef<str> {
    /// The maximum length in bytes that the tool and the kernel accept.
    const LIMIT: usize;

    /// The kind of name, for errors.
    const WHAT: What;

    /// Checks a name.
    ///
    /// # Errors
    /// When it is empty, longer than [`LIMIT`](Self::LIMIT), or the tool would not read it back as one word.
    fn new(text: &str) -> Result<Self, Error> {
        Self::join(&[text])
    }

    /// Checks the concatenation of several texts as a name.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    fn join(texts: &[&str]) -> Result<Self, Error>;

    /// Returns the name.
    fn as_str(&self) -> &str;
}

/// Text of at most `N` bytes, stored inline. Only complete `str`s are appended, so that it is UTF-8.
#[derive(Clone, Copy)]
pub(crate) struct Text<const N: usize> {
    len: usize,
    bytes: [u8; N],
}

impl<const N: usize> Text<N> {
    pub(crate) const fn new() -> Self {
        Self { len: 0, bytes: [0; N] }
    }

    /// Appends `text` if it fits completely; otherwise changes nothing and returns false.
    #[must_use]
    pub(crate) fn push(&mut self, text: &str) -> bool {
        let Some(room) = self.bytes.get_mut(self.len..self.len + text.len()) else { return false };
        room.copy_from_slice(text.as_bytes());
        self.len += text.len();
        true
    }

    pub(crate) fn as_str(&self) -> &str {
        std::str::from_utf8(&self.bytes[..self.len]).expect("only whole strings are pushed")
    }
}

impl<const N: usize> fmt::Write for Text<N> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.push(text) { Ok(()) } else { Err(fmt::Error) }
    }
}

macro_rules! name_type {
    ($(#[$doc:meta])* $name:ident, $limit:literal, $check:path) => {
        $(#[$doc])*
        #[derive(Clone, Copy)]
        pub struct $name(Text<$limit>);

        impl $name {
            /// The maximum length in bytes that the tool and the kernel accept.
            pub const LIMIT: usize = $limit;

            /// Checks a name.
            ///
            /// # Errors
            /// When it is empty, too long, or the tool would not read it back as one word.
            pub fn new(text: &str) -> Result<Self, Error> {
                <Self as Name>::new(text)
            }

            /// Returns the name.
            #[must_use]
            pub fn as_str(&self) -> &str {
                self.0.as_str()
            }
        }

        impl sealed::Sealed for $name {
            fn assemble(texts: &[&str]) -> Result<Self, Error> {
                let mut name = Text::new();
                for text in texts {
                    if !name.push(text) {
                        let text = format!("{}{text}", name.as_str());
                        return Err(Error::TooLong { what: What::$name, text, limit: $limit });
                    }
                }
                Ok(Self(name))
            }
        }

        impl Name for $name {
            const LIMIT: usize = $limit;
            const WHAT: What = What::$name;

            fn join(texts: &[&str]) -> Result<Self, Error> {
                let name = <Self as sealed::Sealed>::assemble(texts)?;
                $check(name.as_str())?;
                Ok(name)
            }

            fn as_str(&self) -> &str {
                self.0.as_str()
            }
        }

        impl FromStr for $name {
            type Err = Error;

            fn from_str(text: &str) -> Result<Self, Error> {
                Self::new(text)
            }
        }

        impl Deref for $name {
            type Target = str;

            fn deref(&self) -> &str {
                self.as_str()
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                self.as_str()
            }
        }

        // Equality, order and hash are those of the text, as `Borrow` requires: a `&str` can be looked up in
        // a map.
        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                self.as_str()
            }
        }

        impl PartialEq for $name {
            fn eq(&self, other: &Self) -> bool {
                self.as_str() == other.as_str()
            }
        }

        impl Eq for $name {}

        impl PartialEq<str> for $name {
            fn eq(&self, other: &str) -> bool {
                self.as_str() == other
            }
        }

        impl PartialEq<&str> for $name {
            fn eq(&self, other: &&str) -> bool {
                self.as_str() == *other
            }
        }

        impl PartialOrd for $name {
            fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
                Some(self.cmp(other))
            }
        }

        impl Ord for $name {
            fn cmp(&self, other: &Self) -> std::cmp::Ordering {
                self.as_str().cmp(other.as_str())
            }
        }

        impl Hash for $name {
            fn hash<H: Hasher>(&self, state: &mut H) {
                self.as_str().hash(state);
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({:?})"), self.as_str())
            }
        }
    };
}

name_type! {
    /// The name of a user-defined chain of iptables, legacy or nft: at most 28 bytes
    /// (`XT_EXTENSION_MAXNAMELEN`, 29 with the NUL, `linux/netfilter/x_tables.h`).
    ///
    /// iptables 1.8.9 refuses: 29 bytes and more, nothing at all, white space, `-` or `!` in front, and the
    /// name of a target, be it built in (`ACCEPT`, `DROP`, `QUEUE`, `RETURN`) or an extension (`REJECT`,
    /// `DNAT`, ...). This type refuses those, and beyond them what would not survive a trip through
    /// `iptables-restore`: quotes, `\`, and all that is not printable ASCII. Extensions are those of iptables
    /// 1.8.9; a target that came later is not known here.
    ///
    /// ```
    /// use sluicegate_chain_names::XtName;
    ///
    /// let chain: XtName = "KUBE-SERVICES".parse()?;
    /// assert_eq!(format!("-A {chain} -j RETURN"), "-A KUBE-SERVICES -j RETURN");
    /// assert!(XtName::new("a-chain-name-of-29-characters").unwrap_err().is_too_long());
    /// # Ok::<(), sluicegate_chain_names::Error>(())
    /// ```
    XtName, 28, check_xt
}

name_type! {
    /// The name of an ipset: at most 31 bytes (`IPSET_MAXNAMELEN`, 32 with the NUL,
    /// `linux/netfilter/ipset/ip_set.h`).
    ///
    /// Allowed is printable ASCII that `ipset restore` reads back as one word: no white space, quotes or `\`,
    /// no comma (it ends the name in an entry of a `list:set`), no `-` in front.
    IpsetName, 31, check_ipset
}

name_type! {
    /// The name of a chain, set or map of nftables: at most 255 bytes (`NFT_NAME_MAXLEN`, 256 with the NUL,
    /// `linux/netfilter/nf_tables.h`).
    ///
    /// The kernel takes any bytes; the nft language takes a letter, `_` or `.`, then letters, digits and `/ -
    /// _ .`, and has no way to quote the rest. This type allows what can be written in the language. It does
    /// not know nft's keywords (`ip`, `drop`): names that these schemes make have a prefix that is none.
    ///
    /// The text is inline, 264 bytes in all, although most names are short. The alternatives were weighed: a
    /// `String` costs an allocation for every name and is not `Copy`; a name that borrows its parts and
    /// prints itself late is small, but has no `&str` to look up in a map or to hand to a message writer, and
    /// ties a plan to the lifetime of the objects it was made from. Copying 264 bytes is cheaper than one
    /// allocation. Who keeps very many of them turns each into a `Box<str>`: `name.as_str().into()`.
    NftName, 255, check_nft
}

fn check_xt(text: &str) -> Result<(), Error> {
    let what = What::XtName;
    check_word(what, text, |b| !matches!(b, b'"' | b'\'' | b'\\'), XT_ALLOWED)?;
    if text.starts_with(['-', '!']) {
        return Err(character(what, text, 0, XT_ALLOWED));
    }
    if text.len() <= LONGEST_TARGET && TARGETS.contains(&text) {
        return Err(Error::Target { what, text: text.to_owned() });
    }
    Ok(())
}

fn check_ipset(text: &str) -> Result<(), Error> {
    let what = What::IpsetName;
    check_word(what, text, |b| !matches!(b, b'"' | b'\'' | b'\\' | b','), IPSET_ALLOWED)?;
    if text.starts_with('-') {
        return Err(character(what, text, 0, IPSET_ALLOWED));
    }
    Ok(())
}

fn check_nft(text: &str) -> Result<(), Error> {
    let what = What::NftName;
    check_word(
        what,
        text,
        |b| b.is_ascii_alphanumeric() || matches!(b, b'/' | b'-' | b'_' | b'.'),
        NFT_ALLOWED,
    )?;
    if !text.starts_with(|c: char| c.is_ascii_alphabetic() || matches!(c, '_' | '.')) {
        return Err(character(what, text, 0, NFT_ALLOWED));
    }
    Ok(())
}

/// Refuses an empty text, and characters that are not printable ASCII or for which `good` returns false.
fn check_word(what: What, text: &str, good: impl Fn(u8) -> bool, allowed: &'static str) -> Result<(), Error> {
    if text.is_empty() {
        return Err(Error::Empty { what });
    }
    // Up to the first byte that is refused all is ASCII, so that byte begins a character.
    match text.bytes().position(|byte| !byte.is_ascii_graphic() || !good(byte)) {
        Some(at) => Err(character(what, text, at, allowed)),
        None => Ok(()),
    }
}

/// Returns the error about the character at byte `at` of `text`.
pub(crate) fn character(what: What, text: &str, at: usize, allowed: &'static str) -> Error {
    let character = text[at..].chars().next().unwrap_or('\u{fffd}');
    Error::Character { what, text: text.to_owned(), character, at, allowed }
}

const XT_ALLOWED: &str = "printable ASCII without quotes and backslashes, and no `-` or `!` at its beginning";
const IPSET_ALLOWED: &str =
    "printable ASCII without quotes, backslashes and commas, and no `-` at its beginning";
const NFT_ALLOWED: &str = "a letter, `_` or `.`, then letters, digits and `/ - _ .`";

/// The standard targets, and the extensions that iptables 1.8.9 comes with (`libxt_*.so`, `libipt_*.so`,
/// `libip6t_*.so`).
const TARGETS: [&str; 46] = [
    "ACCEPT",
    "AUDIT",
    "CHECKSUM",
    "CLASSIFY",
    "CLUSTERIP",
    "CONNMARK",
    "CONNSECMARK",
    "CT",
    "DNAT",
    "DNPT",
    "DROP",
    "DSCP",
    "ECN",
    "HL",
    "HMARK",
    "IDLETIMER",
    "LED",
    "LOG",
    "MARK",
    "MASQUERADE",
    "NAT",
    "NETMAP",
    "NFLOG",
    "NFQUEUE",
    "NOTRACK",
    "QUEUE",
    "RATEEST",
    "REDIRECT",
    "REJECT",
    "RETURN",
    "SECMARK",
    "SET",
    "SNAT",
    "SNPT",
    "SYNPROXY",
    "TCPMSS",
    "TCPOPTSTRIP",
    "TEE",
    "TOS",
    "TPROXY",
    "TRACE",
    "TTL",
    "ULOG",
    "standard",
    "ERROR",
    "NFACCT",
];

/// The length of the longest target. Most chains have longer names, and need not be looked up.
const LONGEST_TARGET: usize = 11;

pub(crate) mod sealed {
    use crate::error::Error;

    /// Prevents implementations outside of this crate, which need not have the guarantees of these names.
    pub trait Sealed: Sized {
        /// [`join`](super::Name::join) for texts whose characters were checked before.
        fn assemble(texts: &[&str]) -> Result<Self, Error>;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_exact() {
        assert!(XtName::new(&"a".repeat(28)).is_ok());
        assert!(XtName::new(&"a".repeat(29)).unwrap_err().is_too_long());
        assert!(IpsetName::new(&"a".repeat(31)).is_ok());
        assert!(IpsetName::new(&"a".repeat(32)).unwrap_err().is_too_long());
        assert!(NftName::new(&"a".repeat(255)).is_ok());
        assert!(NftName::new(&"a".repeat(256)).unwrap_err().is_too_long());
    }

    #[test]
    fn nothing_is_not_a_name() {
        assert!(XtName::new("").unwrap_err().is_empty());
        assert!(IpsetName::new("").unwrap_err().is_empty());
        assert!(NftName::new("").unwrap_err().is_empty());
    }

    // The list was tried with `iptables-legacy -N` and `iptables-nft -N`, 1.8.9.
    #[test]
    fn an_iptables_chain_is_what_iptables_takes_and_restore_reads_back() {
        for good in ["KUBE-SERVICES", "a/b", "tcp", "a;b", "a!", "cali-pi-_l_CMLPBmpkyZIIwB62k"] {
            assert_eq!(XtName::new(good).unwrap(), good);
        }
        for bad in ["-x", "!x", "a b", "x\ny", "x\0", "a\"b", "a\\b", "a\u{e9}"] {
            assert!(XtName::new(bad).unwrap_err().is_invalid_character(), "{bad:?}");
        }
        for bad in ["ACCEPT", "RETURN", "QUEUE", "DROP", "REJECT", "DNAT"] {
            assert!(matches!(XtName::new(bad), Err(Error::Target { .. })), "{bad:?}");
        }
    }

    // The list was tried with `nft add chain`, 1.0.6.
    #[test]
    fn an_nftables_name_is_what_the_language_can_write() {
        for good in ["a/b", "a.b", "a_b", "a-b", "_a", ".a", "A1", "a..b", "a..."] {
            assert_eq!(NftName::new(good).unwrap(), good);
        }
        for bad in ["1a", "-x", "/a", "a+b", "a*", "a\\b", "a b", "x;y", "x\n", "\u{e9}", "fd00::1"] {
            assert!(NftName::new(bad).unwrap_err().is_invalid_character(), "{bad:?}");
        }
    }

    #[test]
    fn no_target_is_longer_than_said() {
        assert_eq!(TARGETS.iter().map(|target| target.len()).max(), Some(LONGEST_TARGET));
    }

    #[test]
    fn an_error_says_what_where_and_what_is_allowed() {
        assert_eq!(
            XtName::new("a\tb").unwrap_err().to_string(),
            "iptables chain name: expected printable ASCII without quotes and backslashes, and no `-` or `!` \
             at its beginning, found '\\t' at byte 1 of \"a\\tb\""
        );
        assert_eq!(
            XtName::new("a-chain-name-of-29-characters").unwrap_err().to_string(),
            "iptables chain name: expected at most 28 bytes, found \"a-chain-name-of-29-characters\""
        );
        assert_eq!(
            XtName::new("DROP").unwrap_err().to_string(),
            "iptables chain name: expected a word that is not the name of a target, found \"DROP\""
        );
    }

    #[test]
    fn a_map_of_names_is_asked_with_text() {
        let chains = std::collections::HashSet::from([XtName::new("KUBE-SERVICES").unwrap()]);
        assert!(chains.contains("KUBE-SERVICES"));
        assert!(!chains.contains("KUBE-NODEPORTS"));
    }

    #[test]
    fn names_print_as_their_text() {
        let name = NftName::new("services").unwrap();
        assert_eq!(format!("{name:>10}|{name:?}"), "  services|NftName(\"services\")");
    }
}
