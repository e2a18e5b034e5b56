//! The options of an entry: the arguments of `add` after the element.

use sluicegate_netlink::text::encode;

use crate::set_type::Feature;
use crate::{Reason, SetType, number};

/// The options of an entry. In a listed entry, the values that the set has for it.
///
/// The set must have been created with the extension: `timeout`, `counters` for packets and bytes, `comment`,
/// `skbinfo` for the three `skb` fields.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct EntryOptions {
    /// The number of seconds after which the entry is deleted, at most [`EntryOptions::MAX_TIMEOUT`]; 0 means
    /// forever.
    pub timeout: Option<u32>,
    /// Whether the entry is an exception (`hash:*net*`): addresses that match it are not in the set.
    pub nomatch: bool,
    /// Whether the interface name is a prefix (`hash:net,iface`).
    pub wildcard: bool,
    /// The packet counter.
    pub packets: Option<u64>,
    /// The byte counter.
    pub bytes: Option<u64>,
    /// A comment.
    pub comment: Option<Comment>,
    /// The packet mark for `--map-mark` of the SET target.
    pub skbmark: Option<SkbMark>,
    /// The priority for `--map-prio`.
    pub skbprio: Option<SkbPrio>,
    /// The hardware queue for `--map-queue`.
    pub skbqueue: Option<u16>,
}

impl EntryOptions {
    /// The longest timeout: the kernel counts milliseconds in 31 bits.
    pub const MAX_TIMEOUT: u32 = (u32::MAX >> 1) / 1000;

    /// No options.
    pub(crate) const NONE: Self = Self {
        timeout: None,
        nomatch: false,
        wildcard: false,
        packets: None,
        bytes: None,
        comment: None,
        skbmark: None,
        skbprio: None,
        skbqueue: None,
    };

    pub(crate) fn boxed(self) -> Option<Box<Self>> {
        if self == Self::NONE { None } else { Some(Box::new(self)) }
    }

    /// Checks that the type and the command have the options that are set.
    pub(crate) fn check(&self, kind: SetType, command: &'static str) -> Result<(), Reason> {
        let refuse = |option| Err(Reason::NoSuchOption { option, kind, command });
        if self.timeout.is_some_and(|seconds| seconds > Self::MAX_TIMEOUT) {
            return Err(Reason::OutOfRange {
                text: self.timeout.unwrap_or_default().to_string(),
                min: 0,
                max: u64::from(Self::MAX_TIMEOUT),
            });
        }
        if self.nomatch && kind.since(Feature::Nomatch).is_none() {
            return refuse("nomatch");
        }
        if self.wildcard && kind.since(Feature::Wildcard).is_none() {
            return refuse("wildcard");
        }
        Ok(())
    }
}

/// The comment of an entry: at most 255 bytes (`IPSET_MAX_COMMENT_SIZE`).
///
/// A comment that [`new`](Self::new) returns has neither double quotes, which the text form of ipset cannot
/// represent, nor control characters. The comment of another program may have them. It is printed with U+FFFD
/// in their place, so that it cannot be read as another line or word.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Comment(Box<[u8]>);

impl Comment {
    /// The maximum length in bytes.
    pub const MAX: usize = 255;

    /// Checks a comment.
    ///
    /// # Errors
    /// [`Reason::Comment`], [`Reason::CommentTooLong`].
    pub fn new(text: &str) -> Result<Self, Reason> {
        let bytes = encode(text);
        if bytes.len() > Self::MAX {
            return Err(Reason::CommentTooLong { length: bytes.len() });
        }
        if text.contains(|c: char| c == '"' || c.is_control()) {
            return Err(Reason::Comment);
        }
        Ok(Self(bytes.into_owned().into()))
    }

    /// Returns its bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Returns whether the comment is empty. The kernel does not store an empty comment.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn from_kernel(payload: &[u8]) -> Self {
        Self(payload.split(|b| *b == 0).next().unwrap_or_default().into())
    }
}

/// A packet mark with a mask. It prints as `0x10/0xff`, or as `0x10` if the mask has all bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SkbMark {
    /// The mark.
    pub mark: u32,
    /// The mask.
    pub mask: u32,
}

impl SkbMark {
    pub(crate) fn parse(text: &str) -> Result<Self, Reason> {
        let parsed = match text.split_once('/') {
            Some((mark, mask)) => number::parse_hex(mark).zip(number::parse_hex(mask)),
            None => number::parse_hex(text).map(|mark| (mark, u32::MAX)),
        };
        let (mark, mask) = parsed.ok_or_else(|| Reason::SkbMark(text.to_owned()))?;
        Ok(Self { mark, mask })
    }
}

/// A traffic control class, `MAJOR:MINOR` in hexadecimal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SkbPrio {
    /// The number of the queueing discipline.
    pub major: u16,
    /// The number of the class.
    pub minor: u16,
}

impl SkbPrio {
    pub(crate) fn parse(text: &str) -> Result<Self, Reason> {
        let hex = |digits: &str| {
            if digits.starts_with('+') { None } else { u16::from_str_radix(digits, 16).ok() }
        };
        text.split_once(':')
            .and_then(|(major, minor)| Some(Self { major: hex(major)?, minor: hex(minor)? }))
            .ok_or_else(|| Reason::SkbPrio(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comment_with_quotes_or_control_characters_is_refused() {
        assert!(Comment::new("to the SMB share \\\\server\\").is_ok());
        assert_eq!(Comment::new("a\"b"), Err(Reason::Comment));
        assert_eq!(Comment::new("a\nadd x y"), Err(Reason::Comment));
        assert!(Comment::new(&"x".repeat(255)).is_ok());
        assert_eq!(Comment::new(&"x".repeat(256)), Err(Reason::CommentTooLong { length: 256 }));
    }

    #[test]
    fn marks_and_priorities_are_hexadecimal() {
        assert_eq!(SkbMark::parse("0x10/0xff"), Ok(SkbMark { mark: 0x10, mask: 0xff }));
        assert_eq!(SkbMark::parse("0x10"), Ok(SkbMark { mark: 0x10, mask: u32::MAX }));
        for bad in ["10", "0x", "0x1g", "0x1/2", "0x123456789", "0x+1"] {
            assert!(SkbMark::parse(bad).is_err(), "{bad}");
        }
        assert_eq!(SkbPrio::parse("1:10"), Ok(SkbPrio { major: 1, minor: 0x10 }));
        for bad in ["1", "1:", "x:1", "12345:1", "1:+1"] {
            assert!(SkbPrio::parse(bad).is_err(), "{bad}");
        }
    }
}
