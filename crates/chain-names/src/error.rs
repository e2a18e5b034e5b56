//! Why a name, or a part of one, is refused.

use std::fmt;

/// Why a name, or a part of one, is refused. Texts are shown quoted and escaped, so that they cannot garble a log.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Something must have at least one character.
    #[error("{what} is empty")]
    Empty {
        /// Which part, or which kind of name.
        what: What,
    },
    /// A name exceeds its limit.
    #[error("{what} {text:?} is longer than {limit} bytes")]
    TooLong {
        /// Which kind of name.
        what: What,
        /// The text, up to and with the piece that does not fit.
        text: String,
        /// The limit in bytes.
        limit: usize,
    },
    /// A character that the tool, or the formula, cannot take.
    #[error("{what} {text:?}: {character:?} at byte {at} is not allowed; {allowed}")]
    Character {
        /// Which part, or which kind of name.
        what: What,
        /// The whole text.
        text: String,
        /// The first offending character.
        character: char,
        /// Its offset in bytes.
        at: usize,
        /// What is allowed, in words.
        allowed: &'static str,
    },
    /// iptables takes this word for a target and refuses a chain of that name.
    #[error("{what} {text:?} is the name of a target")]
    Target {
        /// Which kind of name.
        what: What,
        /// The name.
        text: String,
    },
    /// Neither tcp, udp nor sctp.
    #[error("protocol {text:?} is not one of tcp, udp, sctp")]
    UnknownProtocol {
        /// The text.
        text: String,
    },
    /// Not an address and a port.
    #[error("endpoint {text:?} {why}")]
    Endpoint {
        /// The text.
        text: String,
        /// What is wrong with it, in words.
        why: &'static str,
    },
    /// A [`Scheme`](crate::Scheme) wants more characters than its hash has.
    #[error("a hash of {asked} characters is asked for, of 1 to {available}")]
    HashLength {
        /// What the scheme says.
        asked: usize,
        /// What the hash function gives in that encoding.
        available: usize,
    },
}

impl Error {
    /// True when a name would exceed its limit.
    #[must_use]
    pub fn is_too_long(&self) -> bool {
        matches!(self, Self::TooLong { .. })
    }

    /// True when a name or a part of it is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        matches!(self, Self::Empty { .. })
    }

    /// True when a character is not allowed where it stands.
    #[must_use]
    pub fn is_invalid_character(&self) -> bool {
        matches!(self, Self::Character { .. })
    }
}

/// What an [`Error`] is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum What {
    /// The namespace of a service.
    Namespace,
    /// The name of a service.
    ServiceName,
    /// The name of a service's port.
    PortName,
    /// What a scheme hashes.
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
