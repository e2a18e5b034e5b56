//! The crate's errors: what went wrong between us and the kernel, and what could not be read or written.

use std::io;
use std::time::Duration;

use crate::KernelError;

/// Any failure of a conversation over netlink.
#[derive(Debug, thiserror::Error)]
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
        "{size} bytes in one datagram, but this socket can send {limit}; a larger buffer needs CAP_NET_ADMIN in the initial user namespace, or a larger net.core.wmem_max"
    )]
    TooBig {
        /// Bytes that were to be sent.
        size: usize,
        /// Bytes that can be sent.
        limit: usize,
    },
    /// The kernel had more to say than the receive buffer could hold (`ENOBUFS`): some messages are lost.
    #[error("the receive buffer overflowed and messages of the kernel were lost (ENOBUFS)")]
    Overrun,
    /// A datagram did not fit the buffer that it was read into. Nothing of it is used.
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
    /// The dumped objects kept changing while they were read (`NLM_F_DUMP_INTR`).
    #[error("the dump was interrupted by changes {0} times in a row (NLM_F_DUMP_INTR)")]
    Interrupted(u32),
    /// What the kernel sent cannot be understood.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// What was to be sent cannot be expressed.
    #[error(transparent)]
    TooLong(#[from] TooLong),
    /// The kernel refused a request.
    #[error(transparent)]
    Kernel(#[from] KernelError),
}

impl Error {
    /// True for `ENOENT`: what the request names does not exist.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        self.kernel_code() == Some(ENOENT)
    }

    /// True for `EEXIST`: what the request creates is there already.
    #[must_use]
    pub fn is_already_exists(&self) -> bool {
        self.kernel_code() == Some(EEXIST)
    }

    /// True for `EPERM` and `EACCES`, of the kernel's answer or of a system call: a capability is missing.
    #[must_use]
    pub fn is_permission_denied(&self) -> bool {
        match self {
            Self::Io { source, .. } => source.kind() == io::ErrorKind::PermissionDenied,
            _ => matches!(self.kernel_code(), Some(EPERM | EACCES)),
        }
    }

    /// True when the kernel has no such protocol, subsystem or command compiled in or loaded.
    #[must_use]
    pub fn is_unsupported(&self) -> bool {
        match self {
            Self::Io { source, .. } => {
                matches!(source.raw_os_error(), Some(EPROTONOSUPPORT | EAFNOSUPPORT | EOPNOTSUPP))
            }
            _ => self.kernel_code() == Some(EOPNOTSUPP),
        }
    }

    /// The code of the kernel's refusal, if that is what this is. See [`KernelError::code`].
    #[must_use]
    pub fn kernel_code(&self) -> Option<i32> {
        match self {
            Self::Kernel(error) => Some(error.code),
            _ => None,
        }
    }

    pub(crate) fn io(operation: &'static str, source: impl Into<io::Error>) -> Self {
        Self::Io { operation, source: source.into() }
    }
}

/// Bytes of the kernel (or of a capture) that are not the message they should be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// A header or a fixed part is longer than what is left.
    #[error("{what} needs {need} bytes, {have} are left at offset {offset}")]
    Short {
        /// The part that was to be read.
        what: &'static str,
        /// Its length.
        need: usize,
        /// What is left.
        have: usize,
        /// Where, in bytes from the start of what is being decoded.
        offset: usize,
    },
    /// An attribute or message claims a length that its surroundings do not have, or one below its own header.
    #[error("{what} at offset {offset} claims {claims} bytes, {have} are left")]
    Length {
        /// `nlattr` or `nlmsghdr`.
        what: &'static str,
        /// The length field.
        claims: usize,
        /// What is left.
        have: usize,
        /// Where, in bytes from the start of what is being decoded.
        offset: usize,
    },
    /// An attribute's payload has the wrong size for its type.
    #[error("attribute {kind} has {have} bytes, its type needs {need}")]
    Size {
        /// The attribute's type, flags masked.
        kind: u16,
        /// Bytes of the type.
        need: usize,
        /// Bytes there are.
        have: usize,
    },
    /// A string attribute is not UTF-8 or has a NUL inside.
    #[error("attribute {kind} is not a string")]
    NotText {
        /// The attribute's type, flags masked.
        kind: u16,
    },
    /// An attribute that the message cannot do without is absent.
    #[error("{what} is missing")]
    Missing {
        /// The C name of the attribute.
        what: &'static str,
    },
}

/// An attribute or message that is too long for its length field. What holds it is never sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TooLong {
    /// An attribute over 65,535 bytes with its header.
    #[error("attribute {kind} of message {sequence} has {length} bytes with its header, the limit is 65535")]
    Attribute {
        /// The message's sequence number.
        sequence: u32,
        /// The attribute's type.
        kind: u16,
        /// Its length with the header.
        length: usize,
    },
    /// A message over 4 GiB.
    #[error("message {sequence} has {length} bytes, the limit is 4294967295")]
    Message {
        /// The message's sequence number.
        sequence: u32,
        /// Its length.
        length: usize,
    },
}

/// The C name of an errno that netfilter and netlink are known to give, `None` for others.
///
/// ```
/// assert_eq!(sluicegate_netlink::errno_name(17), Some("EEXIST"));
/// assert_eq!(sluicegate_netlink::errno_name(4099), None);
/// ```
#[must_use]
pub fn errno_name(errno: i32) -> Option<&'static str> {
    NAMES.iter().find(|(code, _)| *code == errno).map(|(_, name)| *name)
}

pub(crate) const EPERM: i32 = 1;
pub(crate) const ENOENT: i32 = 2;
pub(crate) const EACCES: i32 = 13;
pub(crate) const EEXIST: i32 = 17;
pub(crate) const EPROTONOSUPPORT: i32 = 93;
pub(crate) const EOPNOTSUPP: i32 = 95;
pub(crate) const EAFNOSUPPORT: i32 = 97;
pub(crate) const ENOBUFS: i32 = 105;
pub(crate) const EMSGSIZE: i32 = 90;

/// `asm-generic/errno-base.h` and `asm-generic/errno.h`.
const NAMES: &[(i32, &str)] = &[
    (EPERM, "EPERM"),
    (ENOENT, "ENOENT"),
    (3, "ESRCH"),
    (4, "EINTR"),
    (5, "EIO"),
    (7, "E2BIG"),
    (11, "EAGAIN"),
    (12, "ENOMEM"),
    (EACCES, "EACCES"),
    (14, "EFAULT"),
    (16, "EBUSY"),
    (EEXIST, "EEXIST"),
    (19, "ENODEV"),
    (20, "ENOTDIR"),
    (22, "EINVAL"),
    (23, "ENFILE"),
    (24, "EMFILE"),
    (28, "ENOSPC"),
    (31, "EMLINK"),
    (33, "EDOM"),
    (34, "ERANGE"),
    (36, "ENAMETOOLONG"),
    (40, "ELOOP"),
    (52, "EBADE"),
    (61, "ENODATA"),
    (62, "ETIME"),
    (71, "EPROTO"),
    (74, "EBADMSG"),
    (75, "EOVERFLOW"),
    (85, "ERESTART"),
    (EMSGSIZE, "EMSGSIZE"),
    (91, "EPROTOTYPE"),
    (EPROTONOSUPPORT, "EPROTONOSUPPORT"),
    (EOPNOTSUPP, "EOPNOTSUPP"),
    (EAFNOSUPPORT, "EAFNOSUPPORT"),
    (98, "EADDRINUSE"),
    (99, "EADDRNOTAVAIL"),
    (101, "ENETUNREACH"),
    (104, "ECONNRESET"),
    (ENOBUFS, "ENOBUFS"),
    (110, "ETIMEDOUT"),
    (111, "ECONNREFUSED"),
    (117, "EUCLEAN"),
    (125, "ECANCELED"),
];
