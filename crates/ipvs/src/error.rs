//! The error type of the crate, and the refusals of the kernel.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr};

use sluicegate_netlink::{Errno, Family, Protocol};

use crate::command::Command;
use crate::service::protocol_name;
use crate::text::ParseError;

/// The error of every operation of this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The kernel has no IPVS, and could not load the module.
    #[error(
        "this kernel has no IPVS: load the module (`modprobe ip_vs`, as root outside of containers), or use \
         a kernel with CONFIG_IP_VS"
    )]
    Absent,
    /// A value that IPVS cannot have. Nothing was sent.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// The kernel refused one operation.
    #[error("{0}")]
    Refused(Refusal),
    /// The kernel refused some of several commands. All others were carried out.
    #[error("{}", refusals(.failed, *.more))]
    SomeRefused {
        /// The refused commands, in the order in which they were given.
        failed: Vec<Refusal>,
        /// Whether there may be more refused commands, because answers did not fit the receive buffer.
        more: bool,
    },
    /// Services or destinations changed during each attempt to list them.
    #[error("the kernel's table changed during each of {attempts} attempts to list {objects}")]
    Interrupted {
        /// The objects that were listed.
        objects: String,
        /// The number of attempts.
        attempts: u32,
    },
    /// The socket failed, or the kernel's answer is not a netlink message.
    #[error("{operation}: {source}")]
    Netlink {
        /// The operation that failed, such as `open a netlink socket`.
        operation: &'static str,
        /// The underlying error.
        source: sluicegate_netlink::Error,
    },
    /// The kernel did not answer a request.
    #[error("the kernel gave no answer to: {0}")]
    NoAnswer(String),
    /// An answer of the kernel cannot be decoded.
    #[error("answer of the kernel: {0}")]
    Decode(#[from] DecodeError),
    /// A text is not a command of ipvsadm.
    #[error(transparent)]
    Parse(#[from] ParseError),
}

impl Error {
    /// Returns true when the kernel has no IPVS.
    #[must_use]
    pub fn is_absent(&self) -> bool {
        matches!(self, Self::Absent)
    }

    /// Returns true when the service or destination, or the daemon to stop, does not exist; or the scheduler
    /// or persistence engine.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        self.all_refusals(Refusal::is_not_found)
    }

    /// Returns true when the service or destination exists already, or the daemon runs already.
    #[must_use]
    pub fn is_already_exists(&self) -> bool {
        self.all_refusals(Refusal::is_already_exists)
    }

    /// Returns true when the caller lacks `CAP_NET_ADMIN` in the network namespace.
    #[must_use]
    pub fn is_permission_denied(&self) -> bool {
        self.all_refusals(|refusal| refusal.errno == Errno::EPERM)
            || matches!(self, Self::Netlink { source, .. } if source.is_permission_denied())
    }

    /// Returns true when a value was refused before anything was sent.
    #[must_use]
    pub fn is_invalid(&self) -> bool {
        matches!(self, Self::Invalid(_) | Self::Parse(_))
    }

    /// Returns the operations that the kernel refused; empty if the error is of another kind.
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
#[non_exhaustive]
pub struct Refusal {
    /// The operation that was refused.
    pub operation: Operation,
    /// The error number; [`meaning`](Self::meaning) explains it for this operation.
    pub errno: Errno,
    /// The kernel's message (`NLMSGERR_ATTR_MSG`); IPVS itself sends none.
    pub message: Option<String>,
}

/// The kind of a refused operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// A command.
    Command {
        /// Its index in the list of commands that were given.
        index: usize,
        /// The command.
        command: Box<Command>,
    },
    /// A request for objects, described in words.
    Query(String),
}

impl Refusal {
    /// Returns a refusal without a message of the kernel, for tests of what handles it.
    #[must_use]
    pub fn new(operation: Operation, errno: Errno) -> Self {
        Self { operation, errno, message: None }
    }

    /// Returns whether the service or destination does not exist, as [`Error::is_not_found`] does.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        matches!(self.errno, Errno::ENOENT | Errno::ESRCH)
    }

    /// Returns whether the object exists already, as [`Error::is_already_exists`] does.
    #[must_use]
    pub fn is_already_exists(&self) -> bool {
        self.errno == Errno::EEXIST
    }

    /// Returns the command that was refused; `None` for a request for objects.
    #[must_use]
    pub fn command(&self) -> Option<&Command> {
        match &self.operation {
            Operation::Command { command, .. } => Some(command),
            Operation::Query(_) => None,
        }
    }

    /// Returns the meaning of the error number for this operation, in terms of IPVS.
    #[must_use]
    pub fn meaning(&self) -> String {
        let words = match (self.errno, self.command()) {
            (Errno::EEXIST, Some(Command::AddService { .. })) => "the service exists already",
            (Errno::EEXIST, Some(Command::AddDestination { .. })) => "the destination exists already",
            (Errno::EEXIST, Some(Command::StartDaemon(_))) => "this daemon runs already",
            (Errno::ENOENT, Some(Command::AddService { .. } | Command::EditService { .. })) => {
                "the kernel has no such scheduler or persistence engine"
            }
            (Errno::ENOENT, Some(_)) => "the service has no such destination",
            (Errno::ESRCH, Some(Command::StopDaemon(_))) => "no such daemon runs",
            (Errno::ESRCH, _) => "there is no such service",
            (Errno::ENODEV, _) => "there is no such interface",
            (Errno::EPERM, _) => "not permitted; this needs CAP_NET_ADMIN in the network namespace",
            (Errno::ERANGE, _) => "a weight or threshold is out of range",
            (Errno::EINVAL, Some(Command::AddDestination { .. } | Command::EditDestination { .. })) => {
                "invalid: the address must be a unicast address of the family of the service (another family \
                 needs a tunnel and no sync daemon)"
            }
            (Errno::EINVAL, Some(Command::StartDaemon(_))) => {
                "invalid: sync daemons and destinations of another family than their service exclude each \
                 other"
            }
            (Errno::EAFNOSUPPORT, _) => "this kernel has no IPVS for IPv6",
            (Errno::EOPNOTSUPP, _) => "this kernel does not know the command",
            (errno, _) => return format!("{} ({errno})", errno.description()),
        };
        format!("{words} ({})", self.errno)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.operation {
            Operation::Command { command, .. } => write!(f, "{}", command.summary())?,
            Operation::Query(objects) => write!(f, "{objects}")?,
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
        [] => "the kernel refused commands, but its answers that name them were lost".to_owned(),
        [first] => format!("{first}{more}"),
        [first, rest @ ..] => format!("{first} (and {} other commands{more})", rest.len()),
    }
}

/// The reason that a value is not valid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "each variant's message says it")]
pub enum Invalid {
    #[error(
        "{kind} name `{}` is not valid: expected 1 to 15 printable ASCII characters without white space",
        .name.escape_debug()
    )]
    Name { kind: &'static str, name: String },
    #[error("expected TCP, UDP or SCTP, which IPVS balances, found {}", protocol_name(*.0))]
    Protocol(Protocol),
    #[error("port 0 means every port, which needs persistence")]
    PortZero,
    #[error("one-packet scheduling is for UDP, not {}", protocol_name(*.0))]
    OnePacket(Protocol),
    #[error("unknown scheduler flags {0:#x}")]
    SchedulerFlags(u32),
    #[error(
        "expected a persistence timeout from 1 to {max} seconds, found {0}",
        max = crate::Persistence::MAX_TIMEOUT
    )]
    PersistenceTimeout(u32),
    #[error("expected a netmask of ones followed by zeros, found {0}")]
    Netmask(Ipv4Addr),
    #[error("expected a prefix length from 1 to 128, found {0}")]
    PrefixLength(u32),
    #[error("expected {} service", match .0 {
        Family::Ipv4 => "a netmask for the persistence of an IPv4",
        Family::Ipv6 => "a prefix length for the persistence of an IPv6",
    })]
    GranularityFamily(Family),
    #[error("expected a weight up to 2147483647, found {0}")]
    Weight(u32),
    #[error("expected a lower threshold up to the upper one, {upper}, found {lower}")]
    Thresholds { upper: u32, lower: u32 },
    #[error("expected a tunnel to a destination of another address family, found another method")]
    MixedFamilies,
    #[error("expected the unicast address of a destination, found {0}")]
    NotUnicast(IpAddr),
    #[error(
        "expected port {service} of the service, which direct routing and tunnels keep, found {destination}"
    )]
    DestinationPort { destination: u16, service: u16 },
    #[error("expected the port of a GUE tunnel, found 0")]
    GuePort,
    #[error("expected flags of a {tunnel} tunnel, found {flags:#x}")]
    TunnelFlags { tunnel: &'static str, flags: u16 },
    #[error("expected the tunnel type 0, 1 or 2, found {0}")]
    TunnelType(u8),
    #[error("expected the forwarding method 0, 1, 2 or 3, found {0}")]
    Forward(u32),
    #[error("expected the role master or backup of a sync daemon, found {0:#x}")]
    DaemonRole(u32),
    #[error("expected a sync id from 0 to 255, found {0}")]
    SyncId(u32),
    #[error("expected a multicast group, found {0}")]
    McastGroup(IpAddr),
    #[error("expected a {0} of a sync daemon from 1, found 0")]
    DaemonZero(&'static str),
    #[error("expected a {name} timeout up to {max} seconds, found {seconds}", max = crate::Timeouts::MAX)]
    Timeout {
        /// The name of `ipvsadm --set`: `tcp`, `tcpfin` or `udp`.
        name: &'static str,
        seconds: u32,
    },
}

/// A problem with an answer of the kernel, and the object in which it was found.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{object}: {problem}")]
#[non_exhaustive]
pub struct DecodeError {
    /// The wire object.
    pub object: &'static str,
    /// The problem with it.
    pub problem: Problem,
}

/// A problem with the bytes of a wire object.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "each variant's message says it")]
pub enum Problem {
    #[error(transparent)]
    Netlink(#[from] sluicegate_netlink::DecodeError),
    #[error("expected attribute {0}, found none")]
    Missing(u16),
    #[error("attribute {kind}: expected a value that it can have, found {value}")]
    Value { kind: u16, value: u64 },
    #[error("attribute {0}: expected a name, found other bytes")]
    Name(u16),
    #[error("expected an answer of IPVS, found message type {0}")]
    MessageType(u16),
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Endpoint, Scheduler, ServiceConfig, ServiceId};

    fn refused(errno: Errno) -> Refusal {
        let id = ServiceId::tcp(Endpoint::new([10, 0, 0, 1], 80));
        let command = Command::AddService { id, config: ServiceConfig::new(Scheduler::RR) };
        Refusal {
            operation: Operation::Command { index: 4, command: Box::new(command) },
            errno,
            message: None,
        }
    }

    #[test]
    fn a_refusal_names_operation_object_and_cause() {
        assert_eq!(
            refused(Errno::EEXIST).to_string(),
            "add service TCP 10.0.0.1:80: the service exists already (EEXIST)"
        );
        assert_eq!(
            refused(Errno::ENOENT).to_string(),
            "add service TCP 10.0.0.1:80: the kernel has no such scheduler or persistence engine (ENOENT)"
        );
        assert_eq!(
            refused(Errno::ENOMEM).to_string(),
            "add service TCP 10.0.0.1:80: Cannot allocate memory (ENOMEM)"
        );
    }

    #[test]
    fn a_predicate_is_true_only_if_it_is_for_all_refusals() {
        let both =
            Error::SomeRefused { failed: vec![refused(Errno::EEXIST), refused(Errno::ENOENT)], more: false };
        assert!(!both.is_already_exists() && !both.is_not_found());
        assert!(Error::Refused(refused(Errno::EEXIST)).is_already_exists());
        assert!(!Error::Absent.is_not_found());
        assert!(Error::Absent.is_absent());
    }

    #[test]
    fn many_refusals_are_one_line() {
        let both =
            Error::SomeRefused { failed: vec![refused(Errno::EEXIST), refused(Errno::ENOENT)], more: true };
        assert_eq!(
            both.to_string(),
            "add service TCP 10.0.0.1:80: the service exists already (EEXIST) (and 1 other commands and more)"
        );
    }
}
