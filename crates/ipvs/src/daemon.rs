//! The sync daemons, which replicate connections between directors, and the timeouts of connections.

use std::fmt;
use std::net::IpAddr;

use crate::error::{Error, Invalid};
use crate::name::Interface;

/// The role of a sync daemon; a director can run one of each.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DaemonRole(pub u32);

impl DaemonRole {
    /// `IP_VS_STATE_MASTER`: sends its connections to the backups.
    pub const MASTER: Self = Self(1);
    /// `IP_VS_STATE_BACKUP`: receives the connections of masters.
    pub const BACKUP: Self = Self(2);

    pub(crate) fn check(self) -> Result<(), Error> {
        if matches!(self, Self::MASTER | Self::BACKUP) {
            Ok(())
        } else {
            Err(Invalid::DaemonRole(self.0).into())
        }
    }
}

impl fmt::Display for DaemonRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::MASTER => f.pad("master"),
            Self::BACKUP => f.pad("backup"),
            Self(state) => write!(f, "state {state:#x}"),
        }
    }
}

impl fmt::Debug for DaemonRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// A sync daemon. Fields that are `None` get the kernel's default when the daemon is started; a kernel from
/// Linux 4.3 on reports their values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Daemon {
    /// The role: master or backup.
    pub role: DaemonRole,
    /// The interface that it sends and receives on.
    pub interface: Interface,
    /// The sync id of the masters that a backup listens to: 0 to 255, where 0 means all.
    pub sync_id: u32,
    /// The largest message, in bytes of UDP payload.
    pub max_length: Option<u16>,
    /// The multicast group; 224.0.0.81 by default.
    pub group: Option<IpAddr>,
    /// The UDP port; 8848 by default.
    pub port: Option<u16>,
    /// The time to live; 1 by default.
    pub ttl: Option<u8>,
}

impl Daemon {
    /// Returns a daemon with the kernel's defaults.
    #[must_use]
    pub fn new(role: DaemonRole, interface: Interface) -> Self {
        Self { role, interface, sync_id: 0, max_length: None, group: None, port: None, ttl: None }
    }

    /// Checks for values that the kernel silently replaces by a default, or refuses with an error number
    /// only.
    ///
    /// # Errors
    /// [`Error::Invalid`], with the reason.
    pub fn check(&self) -> Result<(), Error> {
        self.role.check()?;
        if self.sync_id > 255 {
            return Err(Invalid::SyncId(self.sync_id).into());
        }
        if let Some(group) = self.group
            && !group.is_multicast()
        {
            return Err(Invalid::McastGroup(group).into());
        }
        for (what, zero) in [
            ("maximum length", self.max_length == Some(0)),
            ("port", self.port == Some(0)),
            ("TTL", self.ttl == Some(0)),
        ] {
            if zero {
                return Err(Invalid::DaemonZero(what).into());
            }
        }
        Ok(())
    }
}

/// The seconds after which idle connections expire. In a command, 0 leaves a timeout as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timeouts {
    /// The timeout of an established TCP connection; 900 by default.
    pub tcp: u32,
    /// The timeout of a TCP connection after a FIN; 120 by default.
    pub tcp_fin: u32,
    /// The timeout of a UDP flow; 300 by default.
    pub udp: u32,
}

impl Timeouts {
    /// 31 days, the longest that ipvsadm accepts.
    pub const MAX: u32 = 31 * 86400;

    /// Checks that no timeout exceeds [`Timeouts::MAX`]: the kernel multiplies it by its `HZ` without a
    /// check.
    ///
    /// # Errors
    /// [`Error::Invalid`], with the name and the value of the first timeout that is too long.
    pub fn check(&self) -> Result<(), Error> {
        let timeouts = [("tcp", self.tcp), ("tcpfin", self.tcp_fin), ("udp", self.udp)];
        match timeouts.into_iter().find(|(_, seconds)| *seconds > Self::MAX) {
            Some((name, seconds)) => Err(Invalid::Timeout { name, seconds }.into()),
            None => Ok(()),
        }
    }
}

/// The version of IPVS and the size of its connection table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Info {
    /// The version of IPVS: major, minor, patch. It is 1.2.1 since 2004.
    pub version: (u8, u8, u8),
    /// The number of buckets of the connection table.
    pub connection_table_size: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_daemon_that_the_kernel_would_change_is_refused() {
        let daemon = Daemon::new(DaemonRole::MASTER, Interface::new("eth0").unwrap());
        daemon.check().unwrap();
        let refusal = |daemon: Daemon| daemon.check().unwrap_err().to_string();
        assert_eq!(refusal(Daemon { sync_id: 256, ..daemon }), "expected a sync id from 0 to 255, found 256");
        assert_eq!(
            refusal(Daemon { group: Some([10, 0, 0, 1].into()), ..daemon }),
            "expected a multicast group, found 10.0.0.1"
        );
        assert_eq!(
            refusal(Daemon { ttl: Some(0), ..daemon }),
            "expected a TTL of a sync daemon from 1, found 0"
        );
        assert_eq!(
            refusal(Daemon { role: DaemonRole(3), ..daemon }),
            "expected the role master or backup of a sync daemon, found 0x3"
        );
    }

    #[test]
    fn the_error_names_the_timeout_that_is_too_long() {
        let (long, fine) = (Timeouts::MAX + 1, Timeouts::default());
        for (timeouts, name) in [
            (Timeouts { tcp: long, ..fine }, "tcp"),
            (Timeouts { tcp_fin: long, ..fine }, "tcpfin"),
            (Timeouts { udp: long, ..fine }, "udp"),
        ] {
            assert_eq!(
                timeouts.check().unwrap_err().to_string(),
                format!("expected a {name} timeout up to 2678400 seconds, found 2678401")
            );
        }
        Timeouts { tcp: Timeouts::MAX, tcp_fin: 0, udp: 1 }.check().unwrap();
    }
}
