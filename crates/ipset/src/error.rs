//! The crate's errors, and the kernel's codes in words.

use std::fmt;

use sluicegate_netlink::errno_name;

use crate::set_type::Method;
use crate::text::ParseError;
use crate::{Entry, Family, Reason, Revisions, SetName, SetType};

/// Any failure of this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A value that cannot be sent.
    #[error(transparent)]
    Invalid(#[from] Reason),
    /// A word of a restore file or command line that is wrong.
    #[error(transparent)]
    Parse(#[from] ParseError),
    /// The kernel refused a command.
    #[error(transparent)]
    Refused(Box<Refusal>),
    /// The socket failed, or the kernel's answer could not be understood.
    #[error("{command}: {source}")]
    Netlink {
        /// The command.
        command: &'static str,
        /// What went wrong.
        source: sluicegate_netlink::Error,
    },
    /// The kernel answered without what the command asked for.
    #[error("{command}: the kernel's answer lacks {what}")]
    Answer {
        /// The command.
        command: &'static str,
        /// The C name of what is missing.
        what: &'static str,
    },
    /// The kernel has a set of a type that this crate does not know.
    #[error("set {set} is of type {kind} with family number {family}, which is not known here")]
    UnknownType {
        /// The set.
        set: SetName,
        /// The type's name.
        kind: String,
        /// The number of its family.
        family: u8,
    },
    /// Kernel and crate have no version of the protocol in common.
    #[error("the kernel speaks versions {min} to {max} of the ipset protocol, this crate 6 and 7")]
    ProtocolVersion {
        /// The kernel's oldest.
        min: u8,
        /// The kernel's newest.
        max: u8,
    },
    /// Kernel and crate have no revision of the type in common.
    #[error("the kernel has revisions {} to {} of set type {kind} with family {family}, this crate {} to {}", .kernel.min, .kernel.max, .kind.revisions().0, .kind.revisions().1)]
    TypeRevision {
        /// The type.
        kind: SetType,
        /// The family.
        family: Family,
        /// The kernel's revisions.
        kernel: Revisions,
    },
    /// An option came with a later revision of the type than the kernel has.
    #[error("option {option} of set type {kind} needs revision {needs} in the kernel, which has {has}")]
    NeedsRevision {
        /// The option.
        option: &'static str,
        /// The type.
        kind: SetType,
        /// The revision that brought the option.
        needs: u8,
        /// The kernel's newest.
        has: u8,
    },
    /// A temporary set was still in use after every try.
    #[error("set {set} stayed busy ({tries} tries)")]
    Busy {
        /// The set.
        set: SetName,
        /// How often it was tried.
        tries: u32,
    },
    /// A set exists that is not what is wanted, and cannot become so.
    #[error("set {set} exists as {found}, not as {wanted}")]
    Different {
        /// The set.
        set: SetName,
        /// What it is.
        found: String,
        /// What it should be.
        wanted: String,
    },
}

impl Error {
    /// True when the set that is named does not exist.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        self.code() == Some(Code::NOENT)
    }

    /// True when what was to be created or added is there already, or what was to be deleted is not there.
    #[must_use]
    pub fn is_already_exists(&self) -> bool {
        matches!(self.code(), Some(Code::EXIST | Code::ALREADY))
    }

    /// True when the set is referred to by a rule, or by a list, or is being listed.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        matches!(self, Self::Busy { .. })
            || matches!(self.code(), Some(Code::LISTED | Code::BUSY | Code::REFERENCED))
    }

    /// True when the set has no room for more.
    #[must_use]
    pub fn is_full(&self) -> bool {
        match self {
            Self::Refused(refusal) => {
                refusal.code == Code::TYPE_SPECIFIC && refusal.method() == Some(Method::Hash)
            }
            _ => false,
        }
    }

    /// True when the kernel does not have the set type, or not ipset at all.
    #[must_use]
    pub fn is_unsupported(&self) -> bool {
        match self {
            Self::Netlink { source, .. } => source.is_unsupported(),
            Self::TypeRevision { .. } | Self::NeedsRevision { .. } | Self::ProtocolVersion { .. } => true,
            _ => matches!(self.code(), Some(Code::FIND_TYPE | Code::INVAL_SUBSYSTEM)),
        }
    }

    /// True when a capability is missing.
    #[must_use]
    pub fn is_permission_denied(&self) -> bool {
        match self {
            Self::Netlink { source, .. } => source.is_permission_denied(),
            _ => self.code() == Some(Code::PERM),
        }
    }

    /// The kernel's code, if the kernel refused.
    #[must_use]
    pub fn code(&self) -> Option<Code> {
        match self {
            Self::Refused(refusal) => Some(refusal.code),
            _ => None,
        }
    }
}

/// A command that the kernel refused: which, about what, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Refusal {
    /// The command, as `ipset` calls it.
    pub command: &'static str,
    /// The set, if one was named.
    pub set: Option<SetName>,
    /// The type of the set, as far as it is known.
    pub kind: Option<SetType>,
    /// The entry at fault.
    pub entry: Option<Entry>,
    /// Its place among the entries that were given, from 0.
    pub index: Option<usize>,
    /// The line of the restore file that it came from.
    pub line: Option<u32>,
    /// Why.
    pub code: Code,
    /// How many more refusals came with it.
    pub more: usize,
}

impl Refusal {
    fn method(&self) -> Option<Method> {
        self.kind.map(SetType::method)
    }

    /// Why, in words.
    #[must_use]
    pub fn reason(&self) -> String {
        self.code.explain(self.command, self.method())
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

/// Why the kernel refused: an errno, or from 4096 on a code of ipset (`enum ipset_errno` of
/// `linux/netfilter/ipset/ip_set.h`). From 4352 on the meaning depends on the kind of set.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Code(pub i32);

impl Code {
    /// `EPERM`.
    pub const PERM: Self = Self(1);
    /// `ENOENT`: no set of that name.
    pub const NOENT: Self = Self(2);
    /// `EBUSY`: a set that is being listed cannot be swapped.
    pub const LISTED: Self = Self(16);
    /// `EEXIST`: a set of that name, with other properties.
    pub const ALREADY: Self = Self(17);
    /// `EINVAL`: among others, a kernel without ipset.
    pub const INVAL_SUBSYSTEM: Self = Self(22);
    /// `IPSET_ERR_PROTOCOL`: a malformed message.
    pub const PROTOCOL: Self = Self(4097);
    /// `IPSET_ERR_FIND_TYPE`: no such type or revision.
    pub const FIND_TYPE: Self = Self(4098);
    /// `IPSET_ERR_MAX_SETS`.
    pub const MAX_SETS: Self = Self(4099);
    /// `IPSET_ERR_BUSY`: the set has references.
    pub const BUSY: Self = Self(4100);
    /// `IPSET_ERR_EXIST_SETNAME2`: for rename it exists, for swap it does not.
    pub const EXIST_SETNAME2: Self = Self(4101);
    /// `IPSET_ERR_TYPE_MISMATCH`.
    pub const TYPE_MISMATCH: Self = Self(4102);
    /// `IPSET_ERR_EXIST`: an entry that is there (add) or not there (del, test).
    pub const EXIST: Self = Self(4103);
    /// `IPSET_ERR_INVALID_CIDR`.
    pub const INVALID_CIDR: Self = Self(4104);
    /// `IPSET_ERR_INVALID_NETMASK`.
    pub const INVALID_NETMASK: Self = Self(4105);
    /// `IPSET_ERR_INVALID_FAMILY`.
    pub const INVALID_FAMILY: Self = Self(4106);
    /// `IPSET_ERR_TIMEOUT`.
    pub const TIMEOUT: Self = Self(4107);
    /// `IPSET_ERR_REFERENCED`.
    pub const REFERENCED: Self = Self(4108);
    /// `IPSET_ERR_IPADDR_IPV4`.
    pub const IPADDR_IPV4: Self = Self(4109);
    /// `IPSET_ERR_IPADDR_IPV6`.
    pub const IPADDR_IPV6: Self = Self(4110);
    /// `IPSET_ERR_COUNTER`.
    pub const COUNTER: Self = Self(4111);
    /// `IPSET_ERR_COMMENT`.
    pub const COMMENT: Self = Self(4112);
    /// `IPSET_ERR_INVALID_MARKMASK`.
    pub const INVALID_MARKMASK: Self = Self(4113);
    /// `IPSET_ERR_SKBINFO`.
    pub const SKBINFO: Self = Self(4114);
    /// `IPSET_ERR_BITMASK_NETMASK_EXCL`.
    pub const MASKS_EXCLUSIVE: Self = Self(4115);
    /// `IPSET_ERR_TYPE_SPECIFIC`: the first code of a kind of set. `IPSET_ERR_HASH_FULL`, `IPSET_ERR_BITMAP_RANGE`,
    /// `IPSET_ERR_NAME`.
    pub const TYPE_SPECIFIC: Self = Self(4352);

    fn explain(self, command: &str, method: Option<Method>) -> String {
        let known = method.and_then(|method| self.of_method(method)).or_else(|| self.of_all(command));
        match (known, errno_name(self.0)) {
            (Some(words), _) => words.to_owned(),
            (None, Some(name)) => {
                let text = std::io::Error::from_raw_os_error(self.0).to_string();
                format!("{} ({name})", text.split(" (os error").next().unwrap_or_default())
            }
            (None, None) => format!("the kernel gave error {}", self.0),
        }
    }

    fn of_all(self, command: &str) -> Option<&'static str> {
        Some(match (self, command) {
            (Self::NOENT, _) => "there is no set of that name",
            (Self::LISTED, _) => "the set is being listed",
            (Self::ALREADY, "create") => {
                "a set of that name exists already, with another type or other options"
            }
            (Self::ALREADY, "type") | (Self::FIND_TYPE, _) => "the kernel does not have the set type",
            (Self::PROTOCOL, _) => "the kernel took the message for malformed (IPSET_ERR_PROTOCOL)",
            (Self::MAX_SETS, _) => "the kernel cannot hold more sets",
            (Self::BUSY, "destroy") => "the set is in use: a rule or a list refers to it",
            (Self::BUSY, _) => "the set is in use",
            (Self::EXIST_SETNAME2, "swap") => "there is no set of the second name",
            (Self::EXIST_SETNAME2, _) => "a set of the new name exists already",
            (Self::TYPE_MISMATCH, _) => "the two sets differ in type or family",
            (Self::EXIST, "add") => "the entry is in the set already",
            (Self::EXIST, _) => "the entry is not in the set",
            (Self::INVALID_CIDR, _) => "the prefix length of the address is not possible here",
            (Self::INVALID_NETMASK, _) => "the netmask or bitmask is not valid",
            (Self::INVALID_FAMILY, _) => "the set type does not have the family",
            (Self::TIMEOUT, _) => "the set was created without timeout, so entries cannot have one",
            (Self::REFERENCED, _) => "the set is in use: a rule or a list refers to it",
            (Self::IPADDR_IPV4, _) => "an IPv4 address is needed",
            (Self::IPADDR_IPV6, _) => "an IPv6 address is needed",
            (Self::COUNTER, _) => "the set was created without counters, so entries cannot have them",
            (Self::COMMENT, _) => "the set was created without comment, so entries cannot have one",
            (Self::INVALID_MARKMASK, _) => "the markmask is not valid",
            (Self::SKBINFO, _) => "the set was created without skbinfo, so entries cannot have it",
            (Self::MASKS_EXCLUSIVE, _) => "netmask and bitmask exclude each other",
            _ => return None,
        })
    }

    /// Codes of `ip_set_bitmap.h`, `ip_set_hash.h` and `ip_set_list.h`.
    fn of_method(self, method: Method) -> Option<&'static str> {
        let number = self.0.checked_sub(Self::TYPE_SPECIFIC.0)?;
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
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match errno_name(self.0) {
            Some(name) => write!(f, "Code({name})"),
            None => write!(f, "Code({})", self.0),
        }
    }
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
            code: Code(code),
            more: 0,
        }
    }

    #[test]
    fn codes_above_4352_mean_what_the_kind_of_set_says() {
        for (command, kind, code, text) in [
            ("add", SetType::BitmapIp, 4352, "line 4: add s: the entry is outside the set's range"),
            ("add", SetType::HashIp, 4352, "line 4: add s: the set is full (maxelem)"),
            ("add", SetType::ListSet, 4352, "line 4: add s: the set that is to be the entry does not exist"),
            ("add", SetType::HashIp, 4103, "line 4: add s: the entry is in the set already"),
            ("del", SetType::HashIp, 4103, "line 4: del s: the entry is not in the set"),
            ("swap", SetType::HashIp, 4101, "line 4: swap s: there is no set of the second name"),
            ("rename", SetType::HashIp, 4101, "line 4: rename s: a set of the new name exists already"),
            ("add", SetType::HashIp, 12, "line 4: add s: Cannot allocate memory (ENOMEM)"),
            ("add", SetType::HashIp, 5000, "line 4: add s: the kernel gave error 5000"),
        ] {
            assert_eq!(refusal(command, kind, code).to_string(), text);
        }
    }

    #[test]
    fn predicates_look_at_the_code() {
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
