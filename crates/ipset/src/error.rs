//! The crate's errors, and descriptions of the kernel's error numbers.

use std::fmt;

use sluicegate_netlink::Errno;

use crate::set_type::Method;
use crate::text::ParseError;
use crate::{Entry, Family, Reason, Revisions, SetName, SetType};

/// Any failure of this crate.
///
/// ```no_run
/// use sluicegate_ipset::{Client, Exist, SetName};
///
/// let blocked = SetName::new("blocked")?;
/// match Client::open()?.destroy(blocked, Exist::Fail) {
///     Err(error) if error.is_not_found() => println!("there was none"),
///     result => result?, // such as: a rule still refers to it
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A value that cannot be sent.
    #[error(transparent)]
    Invalid(#[from] Reason),
    /// A word of a restore file or command line that is not valid.
    #[error(transparent)]
    Parse(#[from] ParseError),
    /// The kernel refused a command.
    #[error(transparent)]
    Refused(Box<Refusal>),
    /// The socket failed, or the kernel's answer cannot be decoded.
    #[error("{command}: {source}")]
    Netlink {
        /// The command.
        command: &'static str,
        /// The underlying error.
        source: sluicegate_netlink::Error,
    },
    /// The kernel's answer lacks a required attribute.
    #[error("{command}: the kernel's answer lacks {attribute}")]
    Answer {
        /// The command.
        command: &'static str,
        /// The C name of the attribute.
        attribute: &'static str,
    },
    /// The kernel has a set of a type that this crate does not know.
    #[error("set {set} is of the unknown type {kind} with family number {family}")]
    UnknownType {
        /// The set.
        set: SetName,
        /// The type's name.
        kind: String,
        /// The number of its family.
        family: u8,
    },
    /// The kernel and this crate have no version of the protocol in common.
    #[error("the kernel speaks versions {min} to {max} of the ipset protocol, this crate 6 and 7")]
    ProtocolVersion {
        /// The oldest version of the kernel.
        min: u8,
        /// The newest version of the kernel.
        max: u8,
    },
    /// The kernel and this crate have no revision of the type in common.
    #[error(
        "the kernel has revisions {} to {} of set type {kind} with family {family}, this crate {} to {}",
        .kernel.min,
        .kernel.max,
        .kind.revisions().0,
        .kind.revisions().1
    )]
    TypeRevision {
        /// The type.
        kind: SetType,
        /// The family.
        family: Family,
        /// The kernel's revisions.
        kernel: Revisions,
    },
    /// An option needs a later revision of the type than the kernel has.
    #[error("option {option} of set type {kind} needs revision {needs} in the kernel, which has {has}")]
    NeedsRevision {
        /// The option.
        option: &'static str,
        /// The type.
        kind: SetType,
        /// The revision that introduced the option.
        needs: u8,
        /// The newest revision of the kernel.
        has: u8,
    },
    /// A set was still in use after all attempts.
    #[error("set {set} stayed busy ({tries} tries)")]
    Busy {
        /// The set.
        set: SetName,
        /// The number of attempts.
        tries: u32,
    },
    /// A set of the name exists with another type or family.
    #[error("set {set} exists as {found}, not as {wanted}")]
    Different {
        /// The set.
        set: SetName,
        /// The description of the existing set.
        found: String,
        /// The description of the wanted set.
        wanted: String,
    },
}

impl Error {
    /// Returns true when the named set does not exist.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        self.errno() == Some(Errno::ENOENT)
    }

    /// Returns true when the set or entry exists already, or the entry to delete does not exist: the kernel
    /// has one error number for both.
    #[must_use]
    pub fn is_already_exists(&self) -> bool {
        matches!(self.errno(), Some(ipset_errno::EXIST | Errno::EEXIST))
    }

    /// Returns true when the set is referred to by a rule, or by a list, or is being listed.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        matches!(self, Self::Busy { .. })
            || matches!(self.errno(), Some(Errno::EBUSY | ipset_errno::BUSY | ipset_errno::REFERENCED))
    }

    /// Returns true when a hash has no room for more entries.
    #[must_use]
    pub fn is_full(&self) -> bool {
        match self {
            Self::Refused(refusal) => {
                refusal.errno == ipset_errno::TYPE_SPECIFIC && refusal.method() == Some(Method::Hash)
            }
            _ => false,
        }
    }

    /// Returns true when the kernel does not have the set type, or does not have ipset.
    #[must_use]
    pub fn is_unsupported(&self) -> bool {
        match self {
            Self::Netlink { source, .. } => source.is_unsupported(),
            Self::TypeRevision { .. } | Self::NeedsRevision { .. } | Self::ProtocolVersion { .. } => true,
            _ => matches!(self.errno(), Some(ipset_errno::FIND_TYPE | Errno::EINVAL)),
        }
    }

    /// Returns true when a capability is missing.
    #[must_use]
    pub fn is_permission_denied(&self) -> bool {
        match self {
            Self::Netlink { source, .. } => source.is_permission_denied(),
            _ => self.errno() == Some(Errno::EPERM),
        }
    }

    /// Returns the error number with which the kernel refused a command, `None` for any other failure.
    ///
    /// Numbers from 4096 on are those of [`ipset_errno`].
    #[must_use]
    pub fn errno(&self) -> Option<Errno> {
        match self {
            Self::Refused(refusal) => Some(refusal.errno),
            _ => None,
        }
    }
}

/// A command that the kernel refused, with its set, the entry at fault, and the error number.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Refusal {
    /// The name of the command, as of `ipset`.
    pub command: &'static str,
    /// The set, if one was named.
    pub set: Option<SetName>,
    /// The type of the set, if it is known.
    pub kind: Option<SetType>,
    /// The entry at fault.
    pub entry: Option<Entry>,
    /// Its index among the entries that were given.
    pub index: Option<usize>,
    /// Its line in the restore file.
    pub line: Option<u32>,
    /// The error number: an errno, or one of [`ipset_errno`].
    pub errno: Errno,
    /// The number of further refusals.
    pub more: usize,
}

impl Refusal {
    fn method(&self) -> Option<Method> {
        self.kind.map(SetType::method)
    }

    /// Returns a description of the error number for this command.
    #[must_use]
    pub fn reason(&self) -> String {
        describe(self.errno, self.command, self.method())
    }
}

impl std::error::Error for Refusal {}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(line) = self.line {
            write!(f, "line {line}: ")?;
        }
        f.write_str(self.command)?;
        if let Some(set) = &self.set {
            write!(f, " {set}")?;
        }
        if let Some(entry) = &self.entry {
            write!(f, " {}", entry.element())?;
        }
        write!(f, ": {}", self.reason())?;
        match self.more {
            0 => Ok(()),
            more => write!(f, " (and {more} more)"),
        }
    }
}

/// Error numbers of ipset (`enum ipset_errno` of `linux/netfilter/ipset/ip_set.h`).
///
/// The kernel answers with an errno or with one of these, which begin at 4096 (`IPSET_ERR_PRIVATE`), above
/// all errnos. Both are [`Errno`]s, as the kernel sends them in the same field.
pub mod ipset_errno {
    use sluicegate_netlink::Errno;

    /// `IPSET_ERR_PROTOCOL`: the message is malformed.
    pub const PROTOCOL: Errno = Errno(4097);
    /// `IPSET_ERR_FIND_TYPE`: the kernel does not have the set type or its revision.
    pub const FIND_TYPE: Errno = Errno(4098);
    /// `IPSET_ERR_MAX_SETS`: there is no room for another set.
    pub const MAX_SETS: Errno = Errno(4099);
    /// `IPSET_ERR_BUSY`: the set has references.
    pub const BUSY: Errno = Errno(4100);
    /// `IPSET_ERR_EXIST_SETNAME2`: the second name exists (rename), or does not exist (swap).
    pub const EXIST_SETNAME2: Errno = Errno(4101);
    /// `IPSET_ERR_TYPE_MISMATCH`: the sets to swap differ in type or family.
    pub const TYPE_MISMATCH: Errno = Errno(4102);
    /// `IPSET_ERR_EXIST`: the entry exists already (add), or does not exist (del, test).
    pub const EXIST: Errno = Errno(4103);
    /// `IPSET_ERR_INVALID_CIDR`: the prefix length is not valid.
    pub const INVALID_CIDR: Errno = Errno(4104);
    /// `IPSET_ERR_INVALID_NETMASK`: the netmask is not valid.
    pub const INVALID_NETMASK: Errno = Errno(4105);
    /// `IPSET_ERR_INVALID_FAMILY`: the set type does not have the family.
    pub const INVALID_FAMILY: Errno = Errno(4106);
    /// `IPSET_ERR_TIMEOUT`: the set was created without timeout.
    pub const TIMEOUT: Errno = Errno(4107);
    /// `IPSET_ERR_REFERENCED`: the set has references.
    pub const REFERENCED: Errno = Errno(4108);
    /// `IPSET_ERR_IPADDR_IPV4`: the address is not an IPv4 address.
    pub const IPADDR_IPV4: Errno = Errno(4109);
    /// `IPSET_ERR_IPADDR_IPV6`: the address is not an IPv6 address.
    pub const IPADDR_IPV6: Errno = Errno(4110);
    /// `IPSET_ERR_COUNTER`: the set was created without counters.
    pub const COUNTER: Errno = Errno(4111);
    /// `IPSET_ERR_COMMENT`: the set was created without comment.
    pub const COMMENT: Errno = Errno(4112);
    /// `IPSET_ERR_INVALID_MARKMASK`: the mark mask is not valid.
    pub const INVALID_MARKMASK: Errno = Errno(4113);
    /// `IPSET_ERR_SKBINFO`: the set was created without skbinfo.
    pub const SKBINFO: Errno = Errno(4114);
    /// `IPSET_ERR_BITMASK_NETMASK_EXCL`: netmask and bitmask exclude each other.
    pub const BITMASK_NETMASK_EXCL: Errno = Errno(4115);
    /// `IPSET_ERR_TYPE_SPECIFIC`: the first number whose meaning depends on the method of the set:
    /// `IPSET_ERR_HASH_FULL`, `IPSET_ERR_BITMAP_RANGE`, `IPSET_ERR_NAME`.
    pub const TYPE_SPECIFIC: Errno = Errno(4352);
}

/// Describes why the kernel refused a command with this error number.
fn describe(errno: Errno, command: &str, method: Option<Method>) -> String {
    let known =
        method.and_then(|method| describe_for_method(errno, method)).or_else(|| describe_for(errno, command));
    match (known, errno.name()) {
        (Some(words), _) => words.to_owned(),
        (None, Some(name)) => format!("{} ({name})", errno.description()),
        (None, None) => format!("the kernel answered with error {errno}"),
    }
}

fn describe_for(errno: Errno, command: &str) -> Option<&'static str> {
    Some(match (errno, command) {
        (Errno::ENOENT, _) => "no set has this name",
        (Errno::EBUSY, _) => "the set is being listed",
        (Errno::EEXIST, "create") => "a set of that name exists already, with another type or other options",
        (Errno::EEXIST, "type") | (ipset_errno::FIND_TYPE, _) => "the kernel does not have the set type",
        (ipset_errno::PROTOCOL, _) => "the kernel found the message malformed (IPSET_ERR_PROTOCOL)",
        (ipset_errno::MAX_SETS, _) => "the kernel cannot hold more sets",
        (ipset_errno::BUSY, "destroy") => "the set is in use: a rule or a list refers to it",
        (ipset_errno::BUSY, _) => "the set is in use",
        (ipset_errno::EXIST_SETNAME2, "swap") => "no set has the second name",
        (ipset_errno::EXIST_SETNAME2, _) => "a set of the new name exists already",
        (ipset_errno::TYPE_MISMATCH, _) => "the two sets differ in type or family",
        (ipset_errno::EXIST, "add") => "the entry is in the set already",
        (ipset_errno::EXIST, _) => "the entry is not in the set",
        (ipset_errno::INVALID_CIDR, _) => "the prefix length of the address is not possible here",
        (ipset_errno::INVALID_NETMASK, _) => "the netmask or bitmask is not valid",
        (ipset_errno::INVALID_FAMILY, _) => "the set type does not have the family",
        (ipset_errno::TIMEOUT, _) => "the set was created without timeout, so entries cannot have one",
        (ipset_errno::REFERENCED, _) => "the set is in use: a rule or a list refers to it",
        (ipset_errno::IPADDR_IPV4, _) => "expected an IPv4 address",
        (ipset_errno::IPADDR_IPV6, _) => "expected an IPv6 address",
        (ipset_errno::COUNTER, _) => "the set was created without counters, so entries cannot have them",
        (ipset_errno::COMMENT, _) => "the set was created without comment, so entries cannot have one",
        (ipset_errno::INVALID_MARKMASK, _) => "the markmask is not valid",
        (ipset_errno::SKBINFO, _) => "the set was created without skbinfo, so entries cannot have it",
        (ipset_errno::BITMASK_NETMASK_EXCL, _) => "netmask and bitmask exclude each other",
        _ => return None,
    })
}

/// Describes the error numbers of `ip_set_bitmap.h`, `ip_set_hash.h` and `ip_set_list.h`.
fn describe_for_method(errno: Errno, method: Method) -> Option<&'static str> {
    let number = errno.0.checked_sub(ipset_errno::TYPE_SPECIFIC.0)?;
    Some(match (method, number) {
        (Method::Bitmap, 0) => "the entry is outside the set's range",
        (Method::Bitmap, 1) => "the range has more than 65536 elements",
        (Method::Hash, 0) => "the set is full (maxelem)",
        (Method::Hash, 1) => "an element of zeros cannot be stored in a hash",
        (Method::Hash, 2) => "the protocol is not possible here",
        (Method::Hash, 3) => "the protocol is missing",
        (Method::Hash, 4) => "the network part of the element cannot be a range",
        (Method::Hash, 5) => "the range covers the whole address space",
        (Method::List, 0) => "the set that is to be the entry does not exist",
        (Method::List, 1) => "a list cannot hold a list",
        (Method::List, 2) => "before or after needs the name of a set",
        (Method::List, 3) => "the set named by before or after does not exist",
        (Method::List, 4) => "the list is full",
        (Method::List, 5) => "the set named by before or after is not in the list",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(command: &'static str, kind: SetType, code: i32) -> Refusal {
        Refusal {
            command,
            set: Some(SetName::new("s").unwrap()),
            kind: Some(kind),
            entry: None,
            index: None,
            line: Some(4),
            errno: Errno(code),
            more: 0,
        }
    }

    #[test]
    fn the_meaning_of_numbers_from_4352_on_depends_on_the_method_of_the_set() {
        for (command, kind, code, text) in [
            ("add", SetType::BitmapIp, 4352, "line 4: add s: the entry is outside the set's range"),
            ("add", SetType::HashIp, 4352, "line 4: add s: the set is full (maxelem)"),
            ("add", SetType::ListSet, 4352, "line 4: add s: the set that is to be the entry does not exist"),
            ("add", SetType::HashIp, 4103, "line 4: add s: the entry is in the set already"),
            ("del", SetType::HashIp, 4103, "line 4: del s: the entry is not in the set"),
            ("swap", SetType::HashIp, 4101, "line 4: swap s: no set has the second name"),
            ("rename", SetType::HashIp, 4101, "line 4: rename s: a set of the new name exists already"),
            ("add", SetType::HashIp, 12, "line 4: add s: Cannot allocate memory (ENOMEM)"),
            ("add", SetType::HashIp, 5000, "line 4: add s: the kernel answered with error 5000"),
        ] {
            assert_eq!(refusal(command, kind, code).to_string(), text);
        }
    }

    #[test]
    fn predicates_follow_from_the_error_number() {
        let error = |command, kind, code| Error::Refused(Box::new(refusal(command, kind, code)));
        assert!(error("list", SetType::HashIp, 2).is_not_found());
        assert!(error("add", SetType::HashIp, 4103).is_already_exists());
        assert!(error("create", SetType::HashIp, 17).is_already_exists());
        assert!(error("destroy", SetType::HashIp, 4100).is_busy());
        assert!(error("add", SetType::HashIp, 4352).is_full());
        assert!(!error("add", SetType::BitmapIp, 4352).is_full());
        assert!(error("create", SetType::HashMac, 4098).is_unsupported());
    }
}
