//! Commands: every change of IPVS as a value.

use std::fmt;

use crate::daemon::{Daemon, DaemonRole, Timeouts};
use crate::destination::DestinationConfig;
use crate::error::Error;
use crate::service::{Endpoint, ServiceConfig, ServiceId};
use crate::text;

/// A change of the kernel's IPVS table. It prints as the arguments of ipvsadm that do the same.
///
/// ```
/// use sluicegate_ipvs::{Command, Endpoint, Scheduler, ServiceConfig, ServiceId};
///
/// let id = ServiceId::udp(Endpoint::new([10, 96, 0, 10], 53));
/// let command = Command::AddService { id, config: ServiceConfig::new(Scheduler::RR) };
/// assert_eq!(command.to_string(), "-A -u 10.96.0.10:53 -s rr");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the types of the fields describe them")]
pub enum Command {
    /// `IPVS_CMD_NEW_SERVICE`: adds a service, which must not exist.
    AddService { id: ServiceId, config: ServiceConfig },
    /// `IPVS_CMD_SET_SERVICE`: changes the configuration of a service.
    EditService { id: ServiceId, config: ServiceConfig },
    /// `IPVS_CMD_DEL_SERVICE`: deletes a service with its destinations.
    DeleteService { id: ServiceId },
    /// `IPVS_CMD_NEW_DEST`: adds a destination, which must not exist in the service.
    AddDestination { service: ServiceId, id: Endpoint, config: DestinationConfig },
    /// `IPVS_CMD_SET_DEST`: changes the configuration of a destination.
    EditDestination { service: ServiceId, id: Endpoint, config: DestinationConfig },
    /// `IPVS_CMD_DEL_DEST`: deletes a destination and breaks its connections.
    DeleteDestination { service: ServiceId, id: Endpoint },
    /// `IPVS_CMD_ZERO` with a service: sets its counters and those of its destinations to zero.
    ZeroService { id: ServiceId },
    /// `IPVS_CMD_ZERO`: sets all counters to zero.
    ZeroAll,
    /// `IPVS_CMD_FLUSH`: deletes all services, including those of other programs.
    Flush,
    /// `IPVS_CMD_SET_CONFIG`: sets time-outs of connections; 0 leaves one as it is.
    SetTimeouts(Timeouts),
    /// `IPVS_CMD_NEW_DAEMON`: starts a sync daemon.
    StartDaemon(Daemon),
    /// `IPVS_CMD_DEL_DAEMON`: stops a sync daemon.
    StopDaemon(DaemonRole),
}

impl Command {
    /// Checks for values that the kernel accepts although they cannot work. A [`Client`](crate::Client)
    /// checks all commands before it sends the first.
    ///
    /// # Errors
    /// [`Error::Invalid`], with the reason.
    pub fn check(&self) -> Result<(), Error> {
        match self {
            Self::AddService { id, config } | Self::EditService { id, config } => config.check(id),
            Self::AddDestination { service, id, config } | Self::EditDestination { service, id, config } => {
                config.check(service, id)
            }
            Self::SetTimeouts(timeouts) => timeouts.check(),
            Self::StartDaemon(daemon) => daemon.check(),
            Self::StopDaemon(role) => role.check(),
            Self::DeleteService { .. }
            | Self::DeleteDestination { .. }
            | Self::ZeroService { .. }
            | Self::ZeroAll
            | Self::Flush => Ok(()),
        }
    }

    /// Returns the service that the command changes, if it changes one.
    #[must_use]
    pub fn service(&self) -> Option<&ServiceId> {
        match self {
            Self::AddService { id, .. }
            | Self::EditService { id, .. }
            | Self::DeleteService { id }
            | Self::ZeroService { id } => Some(id),
            Self::AddDestination { service, .. }
            | Self::EditDestination { service, .. }
            | Self::DeleteDestination { service, .. } => Some(service),
            Self::ZeroAll
            | Self::Flush
            | Self::SetTimeouts(_)
            | Self::StartDaemon(_)
            | Self::StopDaemon(_) => None,
        }
    }

    /// Returns the operation and the object, without the configuration, for messages.
    #[must_use]
    pub fn summary(&self) -> String {
        match self {
            Self::AddService { id, .. } => format!("add service {id}"),
            Self::EditService { id, .. } => format!("edit service {id}"),
            Self::DeleteService { id } => format!("delete service {id}"),
            Self::AddDestination { service, id, .. } => format!("add destination {id} of service {service}"),
            Self::EditDestination { service, id, .. } => {
                format!("edit destination {id} of service {service}")
            }
            Self::DeleteDestination { service, id } => {
                format!("delete destination {id} of service {service}")
            }
            Self::ZeroService { id } => format!("zero the counters of service {id}"),
            Self::ZeroAll => "zero all counters".to_owned(),
            Self::Flush => "delete all services".to_owned(),
            Self::SetTimeouts(_) => "set the timeouts".to_owned(),
            Self::StartDaemon(daemon) => {
                format!("start the {} sync daemon on {}", daemon.role, daemon.interface)
            }
            Self::StopDaemon(role) => format!("stop the {role} sync daemon"),
        }
    }
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        text::write_command(f, self)
    }
}
