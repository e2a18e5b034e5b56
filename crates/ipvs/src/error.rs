//! Everything that can go wrong, in one type.

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr};

use crate::command::Command;
use crate::service::{Family, Protocol};
use crate::text::ParseError;

/// The error of every operation of this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The kernel has no IPVS, and could not load it.
    #[error(
        "this kernel offers no IPVS: load the module (`modprobe ip_vs`, as root outside of containers), or use a kernel with CONFIG_IP_VS"
    )]
    Absent,
    /// A value that IPVS cannot have. Nothing was sent.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// The kernel refused one operation.
    #[error("{0}")]
    Refused(Refusal),
    /// The kernel refused some of several commands; all the others were carried out.
    #[error("{}", refusals(.failed, *.more))]
    SomeRefused {
        /// The refused ones, in the order in which they were given.
        failed: Vec<Refusal>,
        /// The kernel refused more than it could say (its answers did not fit the receive buffer).
        more: bool,
    },
    /// Services or destinations changed while they were listed, again and again.
    #[error("the kernel's table changed during each of {attempts} attempts to list {what}")]
    Interrupted {
        /// What was listed.
        what: String,
        /// How often.
        attempts: u32,
    },
    /// The socket failed.
    #[error("{doing}: {source}")]
    Io {
        /// What was being done.
        doing: &'static str,
        /// Why it failed.
        #[source]
        source: io::Error,
    },
    /// The kernel did not answer a request, although it answers every one.
    #[error("the kernel gave no answer to: {0}")]
    NoAnswer(String),
    /// The kernel's answer is not understood.
    #[error("answer of the kernel: {0}")]
    Decode(#[from] DecodeError),
    /// A text is not what ipvsadm would take.
    #[error(transparent)]
    Parse(#[from] ParseError),
}

impl Error {
    /// The kernel has no IPVS.
    #[must_use]
    pub fn is_absent(&self) -> bool {
        matches!(self, Self::Absent)
    }

    /// The service or destination, or the daemon to stop, does not exist; or the scheduler or persistence engine.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        self.all_refusals(Refusal::is_not_found)
    }

    /// The service or destination exists already, or the daemon runs already.
    #[must_use]
    pub fn is_already_exists(&self) -> bool {
        self.all_refusals(Refusal::is_already_exists)
    }

    /// The caller lacks `CAP_NET_ADMIN` in the network namespace.
    #[must_use]
    pub fn is_permission_denied(&self) -> bool {
        self.all_refusals(|refusal| refusal.errno == errno::EPERM)
            || matches!(self, Self::Io { source, .. } if source.kind() == io::ErrorKind::PermissionDenied)
    }

    /// A value was refused before anything was sent.
    #[must_use]
    pub fn is_invalid(&self) -> bool {
        matches!(self, Self::Invalid(_) | Self::Parse(_))
    }

    /// What the kernel refused; empty when the error is of another kind.
    #[must_use]
    pub fn refusals(&self) -> &[Refusal] {
        match self {
            Self::Refused(refusal) => std::slice::from_ref(refusal),
            Self::SomeRefused { failed, .. } => failed,
            _ => &[],
        }
    }

    fn all_refusals(&self, test: impl Fn(&Refusal) -> bool) -> bool {
        let refusals = self.refusals();
        !refusals.is_empty() && refusals.iter().all(test)
    }
}

/// An operation that the kernel refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// What was asked.
    pub operation: Operation,
    /// The number of the error (`errno(3)`), positive.
    pub errno: i32,
    /// What the kernel said in words (`NLMSGERR_ATTR_MSG`); IPVS itself says nothing.
    pub message: Option<String>,
}

/// What a refused operation was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// The command at this place (from 0) in the list of those that were given.
    Command {
        /// The place.
        index: usize,
        /// The command.
        command: Box<Command>,
    },
    /// A question, in words.
    Query(String),
}

impl Refusal {
    /// See [`Error::is_not_found`].
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        matches!(self.errno, errno::ENOENT | errno::ESRCH)
    }

    /// See [`Error::is_already_exists`].
    #[must_use]
    pub fn is_already_exists(&self) -> bool {
        self.errno == errno::EEXIST
    }

    /// The command that was refused; `None` for a question.
    #[must_use]
    pub fn command(&self) -> Option<&Command> {
        match &self.operation {
            Operation::Command { command, .. } => Some(command),
            Operation::Query(_) => None,
        }
    }

    /// What the number means for this operation, in IPVS' own terms.
    #[must_use]
    pub fn meaning(&self) -> String {
        let words = match (self.errno, self.command()) {
            (errno::EEXIST, Some(Command::NewService { .. })) => "the service exists already",
            (errno::EEXIST, Some(Command::NewDestination { .. })) => "the destination exists already",
            (errno::EEXIST, Some(Command::StartDaemon(_))) => "this daemon runs already",
            (errno::ENOENT, Some(Command::NewService { .. } | Command::SetService { .. })) => {
                "the kernel has no such scheduler or persistence engine"
            }
            (errno::ENOENT, Some(_)) => "the service has no such destination",
            (errno::ESRCH, Some(Command::StopDaemon(_))) => "no such daemon runs",
            (errno::ESRCH, _) => "there is no such service",
            (errno::ENODEV, _) => "there is no such interface",
            (errno::EPERM, _) => "not permitted: CAP_NET_ADMIN in this network namespace is needed",
            (errno::ERANGE, _) => "a weight or threshold is out of range",
            (errno::EINVAL, Some(Command::NewDestination { .. } | Command::SetDestination { .. })) => {
                "invalid: is the address a unicast address, and of the family of the service? (another family needs a tunnel and no sync daemon)"
            }
            (errno::EINVAL, Some(Command::StartDaemon(_))) => {
                "invalid: sync daemons and destinations of another family than their service exclude each other"
            }
            (errno::EAFNOSUPPORT, _) => "this kernel has no IPVS for IPv6",
            (errno::EOPNOTSUPP, _) => "this kernel does not know the command",
            _ => return io::Error::from_raw_os_error(self.errno).to_string(),
        };
        format!("{words} (errno {})", self.errno)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.operation {
            Operation::Command { command, .. } => write!(f, "{}", command.summary())?,
            Operation::Query(what) => write!(f, "{what}")?,
        }
        write!(f, ": {}", self.meaning())?;
        match &self.message {
            Some(message) => write!(f, ": {message}"),
            None => Ok(()),
        }
    }
}

fn refusals(failed: &[Refusal], more: bool) -> String {
    let more = if more { " and more" } else { "" };
    match failed {
        [] => "commands were refused, and the kernel could not say which".to_owned(),
        [first] => format!("{first}{more}"),
        [first, rest @ ..] => format!("{first} (and {} other commands{more})", rest.len()),
    }
}

/// Why a value cannot be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "each variant's message says it")]
pub enum Invalid {
    #[error("{what} `{name}`: a name has 1 to 15 printable ASCII characters and no white space", name = .name.escape_debug())]
    Name { what: &'static str, name: String },
    #[error("{0}: IPVS balances TCP, UDP and SCTP")]
    Protocol(Protocol),
    #[error("port 0 stands for every port and needs persistence")]
    PortZero,
    #[error("one-packet scheduling is for UDP, not {0}")]
    OnePacket(Protocol),
    #[error("scheduler flags {0:#x} are not known")]
    SchedulerFlags(u32),
    #[error("persistence timeout {0}: 1 to {max} seconds", max = crate::Persistence::MAX_TIMEOUT)]
    PersistenceTimeout(u32),
    #[error("netmask {0}: the one bits of a netmask come first, without a gap")]
    Netmask(Ipv4Addr),
    #[error("prefix length {0}: 1 to 128 for IPv6")]
    PrefixLength(u32),
    #[error("persistence of an {}", match .0 { Family::Ipv4 => "IPv4 service takes a netmask", Family::Ipv6 => "IPv6 service takes a prefix length" })]
    GranularityFamily(Family),
    #[error("weight {0}: at most 2147483647")]
    Weight(u32),
    #[error("lower threshold {lower} is above the upper threshold {upper}")]
    Thresholds { upper: u32, lower: u32 },
    #[error("a destination of another address family than its service needs a tunnel")]
    MixedFamilies,
    #[error("destination {0} is not a unicast address")]
    NotUnicast(IpAddr),
    #[error(
        "port {destination} of the destination: direct routing and tunnels deliver to the port of the service, {service}"
    )]
    DestinationPort { destination: u16, service: u16 },
    #[error("a GUE tunnel needs a port")]
    GuePort,
    #[error("a {tunnel} tunnel cannot have the flags {flags:#x}")]
    TunnelFlags { tunnel: &'static str, flags: u16 },
    #[error("tunnel type {0} is not known")]
    TunnelType(u8),
    #[error("forwarding method {0} is not known")]
    Forward(u32),
    #[error("a sync daemon is master or backup, not {0:#x}")]
    DaemonRole(u32),
    #[error("sync id {0}: 0 to 255")]
    SyncId(u32),
    #[error("{0} is not a multicast group")]
    McastGroup(IpAddr),
    #[error("{0} 0 of a sync daemon")]
    DaemonZero(&'static str),
    #[error("timeout {0}: at most {max} seconds", max = crate::Timeouts::MAX)]
    Timeout(u32),
}

/// What is wrong with an answer of the kernel, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{object}: {problem}")]
pub struct DecodeError {
    /// The wire object.
    pub object: &'static str,
    /// What is wrong with it.
    pub problem: Problem,
}

/// What can be wrong with the bytes of a wire object.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "each variant's message says it")]
pub enum Problem {
    #[error("{have} bytes where {need} are needed")]
    Short { have: usize, need: usize },
    #[error("a length of {length} in {room} bytes")]
    Length { length: usize, room: usize },
    #[error("attribute {kind} has {have} bytes, not {need}")]
    AttributeSize { kind: u16, have: usize, need: usize },
    #[error("attribute {0} is missing")]
    Missing(u16),
    #[error("attribute {kind} has the value {value}")]
    Value { kind: u16, value: u64 },
    #[error("attribute {0} is not a name")]
    Name(u16),
    #[error("message type {0} was not expected")]
    MessageType(u16),
}

/// The numbers of `errno(3)` that IPVS answers with; they are the same on all architectures that Rust has `std` for on
/// Linux, but for the last two on MIPS and SPARC, where they only cost a message its words.
pub(crate) mod errno {
    pub(crate) const EPERM: i32 = 1;
    pub(crate) const ENOENT: i32 = 2;
    pub(crate) const ESRCH: i32 = 3;
    pub(crate) const EINTR: i32 = 4;
    pub(crate) const EEXIST: i32 = 17;
    pub(crate) const ENODEV: i32 = 19;
    pub(crate) const EINVAL: i32 = 22;
    pub(crate) const ERANGE: i32 = 34;
    pub(crate) const EOPNOTSUPP: i32 = 95;
    pub(crate) const EAFNOSUPPORT: i32 = 97;
    pub(crate) const ENOBUFS: i32 = 105;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Endpoint, Scheduler, ServiceConfig, ServiceId};

    fn refused(errno: i32) -> Refusal {
        let id = ServiceId::tcp(Endpoint::new([10, 0, 0, 1], 80));
        let command = Command::NewService { id, config: ServiceConfig::new(Scheduler::RR) };
        Refusal {
            operation: Operation::Command { index: 4, command: Box::new(command) },
            errno,
            message: None,
        }
    }

    #[test]
    fn a_refusal_names_operation_object_and_cause() {
        assert_eq!(
            refused(17).to_string(),
            "new service TCP 10.0.0.1:80: the service exists already (errno 17)"
        );
        assert_eq!(
            refused(2).to_string(),
            "new service TCP 10.0.0.1:80: the kernel has no such scheduler or persistence engine (errno 2)"
        );
        assert_eq!(
            refused(12).to_string(),
            "new service TCP 10.0.0.1:80: Cannot allocate memory (os error 12)"
        );
    }

    #[test]
    fn predicates_hold_only_when_all_refusals_agree() {
        let both = Error::SomeRefused { failed: vec![refused(17), refused(2)], more: false };
        assert!(!both.is_already_exists() && !both.is_not_found());
        assert!(Error::Refused(refused(17)).is_already_exists());
        assert!(!Error::Absent.is_not_found());
        assert!(Error::Absent.is_absent());
    }

    #[test]
    fn many_refusals_are_one_line() {
        let both = Error::SomeRefused { failed: vec![refused(17), refused(2)], more: true };
        assert_eq!(
            both.to_string(),
            "new service TCP 10.0.0.1:80: the service exists already (errno 17) (and 1 other commands and more)"
        );
    }
}
