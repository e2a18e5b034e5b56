//! Error numbers, with the names that the C headers and the manual pages use.

use std::fmt;
use std::io;

/// An error number of the kernel, always positive.
///
/// The numbers are those of `asm-generic/errno-base.h` and `asm-generic/errno.h`, which all architectures
/// share but Alpha, MIPS, PA-RISC and SPARC. The type is open: ipset answers with codes of its own from 4096
/// on, and a code that has no name here keeps its number.
///
/// ```
/// use sluicegate_netlink::Errno;
///
/// assert_eq!(Errno::EEXIST.to_string(), "EEXIST");
/// assert_eq!(Errno(2), Errno::ENOENT);
/// assert_eq!(Errno(4103).to_string(), "4103");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Errno(pub i32);

macro_rules! errnos {
    ($($name:ident = $number:literal $doc:literal;)*) => {
        impl Errno {
            $(#[doc = $doc] pub const $name: Self = Self($number);)*

            /// Returns the C name, `None` for a number that has no constant here.
            #[must_use]
            pub const fn name(self) -> Option<&'static str> {
                match self {
                    $(Self::$name => Some(stringify!($name)),)*
                    _ => None,
                }
            }
        }
    };
}

errnos! {
    EPERM = 1 "Operation not permitted: a capability is missing.";
    ENOENT = 2 "No such file or directory: the object does not exist.";
    ESRCH = 3 "No such process; IPVS: no such service.";
    EINTR = 4 "Interrupted system call.";
    EIO = 5 "Input/output error.";
    E2BIG = 7 "Argument list too long.";
    EAGAIN = 11 "Resource temporarily unavailable.";
    ENOMEM = 12 "Cannot allocate memory.";
    EACCES = 13 "Permission denied.";
    EFAULT = 14 "Bad address.";
    EBUSY = 16 "Device or resource busy: the object is in use.";
    EEXIST = 17 "File exists: the object exists already.";
    ENODEV = 19 "No such device.";
    ENOTDIR = 20 "Not a directory.";
    EINVAL = 22 "Invalid argument.";
    ENFILE = 23 "Too many open files in system; nftables: a set is full.";
    EMFILE = 24 "Too many open files.";
    EFBIG = 27 "File too large.";
    ENOSPC = 28 "No space left on device.";
    EMLINK = 31 "Too many links.";
    EDOM = 33 "Numerical argument out of domain.";
    ERANGE = 34 "Numerical result out of range.";
    ENAMETOOLONG = 36 "File name too long.";
    ENOTEMPTY = 39 "Directory not empty; nftables: an interval overlaps another.";
    ELOOP = 40 "Too many levels of symbolic links; nftables: chains that jump in a loop.";
    EBADE = 52 "Invalid exchange.";
    ENODATA = 61 "No data available.";
    ETIME = 62 "Timer expired.";
    EPROTO = 71 "Protocol error.";
    EBADMSG = 74 "Bad message.";
    EOVERFLOW = 75 "Value too large for defined data type.";
    ERESTART = 85 "Interrupted system call should be restarted; nftables: the generation changed.";
    EMSGSIZE = 90 "Message too long.";
    EPROTOTYPE = 91 "Protocol wrong type for socket.";
    EPROTONOSUPPORT = 93 "Protocol not supported.";
    EOPNOTSUPP = 95 "Operation not supported.";
    EAFNOSUPPORT = 97 "Address family not supported by protocol.";
    EADDRINUSE = 98 "Address already in use.";
    EADDRNOTAVAIL = 99 "Cannot assign requested address.";
    ENETUNREACH = 101 "Network is unreachable.";
    ECONNRESET = 104 "Connection reset by peer.";
    ENOBUFS = 105 "No buffer space available: the receive buffer overflowed.";
    ETIMEDOUT = 110 "Connection timed out.";
    ECONNREFUSED = 111 "Connection refused.";
    EUCLEAN = 117 "Structure needs cleaning.";
    ECANCELED = 125 "Operation canceled.";
}

impl Errno {
    /// Returns the C library's description, such as `No such file or directory`.
    #[must_use]
    pub fn description(self) -> String {
        let mut text = io::Error::from(self).to_string();
        if let Some(end) = text.rfind(" (os error") {
            text.truncate(end);
        }
        text
    }

    /// Returns the error number of a failed system call, `None` for an error that has none.
    #[must_use]
    pub fn from_io(error: &io::Error) -> Option<Self> {
        error.raw_os_error().map(Self)
    }
}

impl From<Errno> for io::Error {
    fn from(errno: Errno) -> Self {
        Self::from_raw_os_error(errno.0)
    }
}

/// The C name, or the number where there is none.
impl fmt::Display for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.pad(name),
            None => self.0.fmt(f),
        }
    }
}

impl fmt::Debug for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Errno({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_without_a_name_prints_as_a_number() {
        assert_eq!((Errno(4099).name(), Errno(4099).to_string()), (None, "4099".to_owned()));
        assert_eq!(format!("{:?} {:?}", Errno::ENOENT, Errno(4099)), "Errno(ENOENT) Errno(4099)");
    }

    #[test]
    fn the_description_is_that_of_the_c_library_without_the_number() {
        assert_eq!(Errno::EINVAL.description(), "Invalid argument");
        assert!(!Errno(4099).description().contains("os error"));
    }

    #[test]
    fn names_and_numbers_are_those_of_the_c_library() {
        use rustix::io::Errno as Known;
        for (ours, known) in [
            (Errno::EPERM, Known::PERM),
            (Errno::E2BIG, Known::TOOBIG),
            (Errno::EFBIG, Known::FBIG),
            (Errno::ENOTEMPTY, Known::NOTEMPTY),
            (Errno::ENODATA, Known::NODATA),
            (Errno::EOVERFLOW, Known::OVERFLOW),
            (Errno::EMSGSIZE, Known::MSGSIZE),
            (Errno::EAFNOSUPPORT, Known::AFNOSUPPORT),
            (Errno::ENOBUFS, Known::NOBUFS),
            (Errno::ECANCELED, Known::CANCELED),
        ] {
            assert_eq!(ours.0, known.raw_os_error(), "{ours}");
        }
    }
}
