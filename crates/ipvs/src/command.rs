//! Commands: every change that IPVS takes, as a value.

use std::fmt;

use crate::daemon::{Daemon, DaemonRole, Timeouts};
use crate::destination::DestinationConfig;
use crate::error::Error;
use crate::service::{Endpoint, ServiceConfig, ServiceId};
use crate::text;

/// A change. It prints as the arguments of ipvsadm that would do the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the fields are what their types say")]
pub enum Command {
    /// `IPVS_CMD_NEW_SERVICE`: adds a service, which must not exist.
    NewService { id: ServiceId, config: ServiceConfig },
    /// `IPVS_CMD_SET_SERVICE`: changes the configuration of a service.
    SetService { id: ServiceId, config: ServiceConfig },
    /// `IPVS_CMD_DEL_SERVICE`: deletes a service with its destinations.
    DelService { id: ServiceId },
    /// `IPVS_CMD_NEW_DEST`: adds a destination, which must not exist in the service.
    NewDestination { service: ServiceId, id: Endpoint, config: DestinationConfig },
    /// `IPVS_CMD_SET_DEST`: changes the configuration of a destination.
    SetDestination { service: ServiceId, id: Endpoint, config: DestinationConfig },
    /// `IPVS_CMD_DEL_DEST`: deletes a destination. Its connections are cut off.
    DelDestination { service: ServiceId, id: Endpoint },
    /// `IPVS_CMD_ZERO` with a service: sets its counters and those of its destinations to zero.
    ZeroService { id: ServiceId },
    /// `IPVS_CMD_ZERO`: sets all counters to zero.
    ZeroAll,
    /// `IPVS_CMD_FLUSH`: deletes all services, of whoever.
    Flush,
    /// `IPVS_CMD_SET_CONFIG`: sets time-outs of connections; 0 leaves one as it is.
    SetTimeouts(Timeouts),
    /// `IPVS_CMD_NEW_DAEMON`: starts a sync daemon.
    StartDaemon(Daemon),
    /// `IPVS_CMD_DEL_DAEMON`: stops a sync daemon.
    StopDaemon(DaemonRole),
}

impl Command {
    /// Refuses what the kernel would take although it cannot work; a [`Client`](crate::Client) does this to all commands
    /// before it sends the first.
    ///
    /// # Errors
    /// [`Error::Invalid`], with the reason.
    pub fn check(&self) -> Result<(), Error> {
        match self {
            Self::NewService { id, config } | Self::SetService { id, config } => config.check(id),
            Self::NewDestination { service, id, config } | Self::SetDestination { service, id, config } => {
                config.check(service, id)
            }
            Self::SetTimeouts(timeouts) => timeouts.check(),
            Self::StartDaemon(daemon) => daemon.check(),
            Self::StopDaemon(role) => role.check(),
            Self::DelService { .. }
            | Self::DelDestination { .. }
            | Self::ZeroService { .. }
            | Self::ZeroAll
            | Self::Flush => Ok(()),
        }
    }

    /// The service that it is about.
    #[must_use]
    pub fn service(&self) -> Option<&ServiceId> {
        match self {
            Self::NewService { id, .. }
            | Self::SetService { id, .. }
            | Self::DelService { id }
            | Self::ZeroService { id } => Some(id),
            Self::NewDestination { service, .. }
            | Self::SetDestination { service, .. }
            | Self::DelDestination { service, .. } => Some(service),
            Self::ZeroAll
            | Self::Flush
            | Self::SetTimeouts(_)
            | Self::StartDaemon(_)
            | Self::StopDaemon(_) => None,
        }
    }

    /// Operation and object, without configuration, for messages.
    #[must_use]
    pub fn summary(&self) -> String {
        match self {
            Self::NewService { id, .. } => format!("new service {id}"),
            Self::SetService { id, .. } => format!("change service {id}"),
            Self::DelService { id } => format!("delete service {id}"),
            Self::NewDestination { service, id, .. } => format!("new destination {id} of service {service}"),
            Self::SetDestination { service, id, .. } => {
                format!("change destination {id} of service {service}")
            }
            Self::DelDestination { service, id } => format!("delete destination {id} of service {service}"),
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
