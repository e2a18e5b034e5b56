//! Errors of sockets and conversations, and of messages that cannot be decoded or encoded.

use std::error::Error as StdError;
use std::time::Duration;
use std::{fmt, io};

use crate::{Errno, KernelError};

/// Any failure of a conversation over netlink.
///
/// ```no_run
/// use sluicegate_netlink::{Error, NetlinkFamily, Options, Socket};
///
/// match Socket::open(NetlinkFamily::NETFILTER, &Options::default()) {
///     Ok(_) => println!("the kernel has netfilter"),
///     Err(Error::Io { operation, source }) => println!("{operation}: {source}"),
///     Err(error) => println!("{error}"),
/// }
/// ```
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A system call on the socket failed.
    #[error("{operation} failed on the netlink socket: {source}")]
    Io {
        /// The system call or option, such as `bind` or `SO_RCVBUF`.
        operation: &'static str,
        /// Its errno.
        source: io::Error,
    },
    /// The datagram is larger than the socket may send, and the send buffer could not be raised (`EMSGSIZE`).
    ///
    /// More than `net.core.wmem_max` needs `CAP_NET_ADMIN` in the initial user namespace.
    #[error(
        "{size} bytes in one datagram, but this socket can send {limit}; a larger buffer needs CAP_NET_ADMIN \
         in the initial user namespace, or a larger net.core.wmem_max"
    )]
    TooBig {
        /// Bytes that were to be sent.
        size: usize,
        /// Bytes that can be sent.
        limit: usize,
    },
    /// The receive buffer could not hold all messages of the kernel (`ENOBUFS`): some are lost.
    #[error("the receive buffer overflowed and messages of the kernel were lost (ENOBUFS)")]
    Overrun,
    /// A datagram did not fit the buffer that it was read into. It is discarded.
    #[error("a datagram of {size} bytes was cut to {read} (MSG_TRUNC)")]
    Truncated {
        /// Bytes that were read.
        read: usize,
        /// Bytes that the datagram had.
        size: usize,
    },
    /// The kernel did not answer in time.
    #[error("no answer from the kernel within {0:?}")]
    TimedOut(Duration),
    /// The transport does not wait ([`Socket::set_non_blocking`](crate::Socket::set_non_blocking)), and the
    /// request has not been answered yet. The kernel may still carry it out.
    #[error("the kernel has not answered yet, and the socket is non-blocking")]
    WouldBlock,
    /// The dumped objects kept changing while they were read (`NLM_F_DUMP_INTR`).
    #[error("the dump was interrupted by changes {0} times in a row (NLM_F_DUMP_INTR)")]
    Interrupted(u32),
    /// The kernel's answer cannot be decoded.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// The request cannot be encoded.
    #[error(transparent)]
    TooLong(#[from] TooLong),
    /// The kernel refused a request.
    #[error(transparent)]
    Kernel(#[from] KernelError),
}

impl Error {
    /// Returns true for `ENOENT`: the object that the request names does not exist.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        self.errno() == Some(Errno::ENOENT)
    }

    /// Returns true for `EEXIST`: the object that the request creates exists already.
    #[must_use]
    pub fn is_already_exists(&self) -> bool {
        self.errno() == Some(Errno::EEXIST)
    }

    /// Returns true for `EPERM` and `EACCES`, of the kernel's answer or of a system call: a capability is
    /// missing.
    #[must_use]
    pub fn is_permission_denied(&self) -> bool {
        match self {
            Self::Io { source, .. } => source.kind() == io::ErrorKind::PermissionDenied,
            _ => matches!(self.errno(), Some(Errno::EPERM | Errno::EACCES)),
        }
    }

    /// Returns true when the kernel has no such protocol, subsystem or command compiled in or loaded.
    #[must_use]
    pub fn is_unsupported(&self) -> bool {
        match self {
            Self::Io { source, .. } => matches!(
                Errno::from_io(source),
                Some(Errno::EPROTONOSUPPORT | Errno::EAFNOSUPPORT | Errno::EOPNOTSUPP)
            ),
            _ => self.errno() == Some(Errno::EOPNOTSUPP),
        }
    }

    /// Returns the error number with which the kernel refused the request, `None` for any other failure.
    #[must_use]
    pub fn errno(&self) -> Option<Errno> {
        match self {
            Self::Kernel(error) => Some(error.errno),
            _ => None,
        }
    }

    pub(crate) fn io(operation: &'static str, source: impl Into<io::Error>) -> Self {
        Self::Io { operation, source: source.into() }
    }
}

/// Bytes, of the kernel or of a capture, that are not a well-formed message of the expected type.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// A header or a fixed part is longer than what is left.
    #[error("expected {need} bytes of {what} at offset {offset}, found {have}")]
    Short {
        /// The part that was to be read.
        what: &'static str,
        /// Its length.
        need: usize,
        /// The bytes that are left.
        have: usize,
        /// The offset, in bytes from the start of the buffer that is being decoded.
        offset: usize,
    },
    /// The length field of an attribute or message exceeds the bytes that are left, or is less than its
    /// header.
    #[error(
        "expected a valid length of {what} at offset {offset}, where {have} bytes are left, found {claims}"
    )]
    Length {
        /// `nlattr` or `nlmsghdr`.
        what: &'static str,
        /// The length field.
        claims: usize,
        /// The bytes that are left.
        have: usize,
        /// The offset, in bytes from the start of the buffer that is being decoded.
        offset: usize,
    },
    /// An attribute's payload has the wrong size for its type.
    #[error("attribute {kind}: expected {need} bytes, found {have}")]
    Size {
        /// The attribute's type, flags masked.
        kind: u16,
        /// Bytes of the type.
        need: usize,
        /// Bytes of the payload.
        have: usize,
    },
    /// A string attribute is not UTF-8 or has a NUL inside.
    #[error("attribute {kind}: expected a string, found other bytes")]
    NotText {
        /// The attribute's type, flags masked.
        kind: u16,
    },
    /// A required attribute is absent.
    #[error("expected {what}, found none")]
    Missing {
        /// The C name of the attribute.
        what: &'static str,
    },
}

/// An attribute or message that is too long for its length field. A batch that contains one is never sent.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TooLong {
    /// An attribute over 65,535 bytes with its header.
    #[error(
        "message {sequence}: expected at most 65535 bytes of attribute {kind} with its header, found {length}"
    )]
    Attribute {
        /// The message's sequence number.
        sequence: u32,
        /// The attribute's type.
        kind: u16,
        /// Its length with the header.
        length: usize,
    },
    /// A message over 4 GiB.
    #[error("message {sequence}: expected at most 4294967295 bytes, found {length}")]
    Message {
        /// The message's sequence number.
        sequence: u32,
        /// Its length.
        length: usize,
    },
}

/// Writes an error as it is displayed, and the causes that its text does not tell already, a line each.
///
/// The errors of these crates have it as their `Debug`: a `main` that returns a `Result`, and `unwrap`, print
/// an error by `Debug`.
///
/// ```
/// use std::fmt;
///
/// #[derive(Clone)]
/// struct Broken;
///
/// impl fmt::Display for Broken {
///     fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
///         f.write_str("the socket is broken")
///     }
/// }
///
/// impl fmt::Debug for Broken {
///     fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
///         sluicegate_netlink::write_error(self, f)
///     }
/// }
///
/// impl std::error::Error for Broken {}
///
/// assert_eq!(format!("{:?}", Broken), "the socket is broken");
/// ```
///
/// # Errors
/// As the formatter.
pub fn write_error(error: &dyn StdError, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let mut text = error.to_string();
    f.write_str(&text)?;
    let mut source = error.source();
    while let Some(cause) = source {
        let next = cause.to_string();
        if !text.contains(&next) {
            write!(f, "\ncaused by: {next}")?;
            text = next;
        }
        source = cause.source();
    }
    Ok(())
}

macro_rules! readable {
    ($($error:ty)*) => {$(
        impl fmt::Debug for $error {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write_error(self, f)
            }
        }
    )*};
}

readable! { Error DecodeError TooLong }
