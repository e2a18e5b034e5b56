//! Errors of names and of their parts.

use std::fmt;

/// An invalid name, or part of a name. Texts are quoted and escaped, so that they cannot break a log.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A part or a name without characters.
    #[error("{what}: expected at least one character, found none")]
    Empty {
        /// The part, or the kind of name.
        what: What,
    },
    /// A name exceeds its limit.
    #[error("{what}: expected at most {limit} bytes, found {text:?}")]
    TooLong {
        /// The kind of name.
        what: What,
        /// The text, up to and including the piece that does not fit.
        text: String,
        /// The limit in bytes.
        limit: usize,
    },
    /// A character that the tool or the formula does not allow.
    #[error("{what}: expected {allowed}, found {character:?} at byte {at} of {text:?}")]
    Character {
        /// The part, or the kind of name.
        what: What,
        /// The whole text.
        text: String,
        /// The first offending character.
        character: char,
        /// Its offset in bytes.
        at: usize,
        /// The characters that are allowed, in words.
        allowed: &'static str,
    },
    /// The name of a target, which iptables refuses as that of a chain.
    #[error("{what}: expected a word that is not the name of a target, found {text:?}")]
    Target {
        /// The kind of name.
        what: What,
        /// The name.
        text: String,
    },
    /// A protocol other than tcp, udp and sctp.
    #[error("expected the protocol tcp, udp or sctp, found {text:?}")]
    UnknownProtocol {
        /// The text.
        text: String,
    },
    /// Text that is not an address and a port.
    #[error("expected {expected}, found {text:?}")]
    Endpoint {
        /// The text.
        text: String,
        /// What was expected, in words.
        expected: &'static str,
    },
    /// A [`Scheme`](crate::Scheme) with more characters than its hash has.
    #[error("expected a hash of 1 to {available} characters, found {asked}")]
    HashLength {
        /// The number of characters that the scheme asks for.
        asked: usize,
        /// The number of characters that the hash has in that encoding.
        available: usize,
    },
}

impl Error {
    /// Returns true when a name would exceed its limit.
    #[must_use]
    pub fn is_too_long(&self) -> bool {
        matches!(self, Self::TooLong { .. })
    }

    /// Returns true when a name or a part of it is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        matches!(self, Self::Empty { .. })
    }

    /// Returns true when a character is not allowed where it stands.
    #[must_use]
    pub fn is_invalid_character(&self) -> bool {
        matches!(self, Self::Character { .. })
    }
}

/// The subject of an [`Error`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum What {
    /// The namespace of a service.
    Namespace,
    /// The name of a service.
    ServiceName,
    /// The name of a service's port.
    PortName,
    /// The input of a scheme's hash.
    Input,
    /// A chain of iptables.
    XtName,
    /// A set of ipset.
    IpsetName,
    /// A chain, set or map of nftables.
    NftName,
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Namespace => "namespace",
            Self::ServiceName => "service name",
            Self::PortName => "port name",
            Self::Input => "the text to be hashed",
            Self::XtName => "iptables chain name",
            Self::IpsetName => "ipset name",
            Self::NftName => "nftables name",
        })
    }
}
