//! The daemons that keep connections in step between two directors, and the three time-outs of connections.

use std::fmt;
use std::net::IpAddr;

use crate::error::{Error, Invalid};
use crate::name::Interface;

/// Which side a sync daemon is on; a director can run one of each.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DaemonRole(pub u32);

impl DaemonRole {
    /// `IP_VS_STATE_MASTER`: tells of its connections.
    pub const MASTER: Self = Self(1);
    /// `IP_VS_STATE_BACKUP`: listens.
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

/// A sync daemon. What is `None` is left to the kernel when it is started, and filled in when it is listed (Linux 4.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Daemon {
    /// Master or backup.
    pub role: DaemonRole,
    /// The interface that it speaks over.
    pub interface: Interface,
    /// Which masters a backup listens to: 0 to 255, 0 is every one.
    pub sync_id: u32,
    /// The longest message, in bytes of UDP payload.
    pub max_length: Option<u16>,
    /// The multicast group, 224.0.0.81 if not said.
    pub group: Option<IpAddr>,
    /// The UDP port, 8848 if not said.
    pub port: Option<u16>,
    /// The time to live, 1 if not said.
    pub ttl: Option<u8>,
}

impl Daemon {
    /// A daemon with the kernel's defaults.
    #[must_use]
    pub fn new(role: DaemonRole, interface: Interface) -> Self {
        Self { role, interface, sync_id: 0, max_length: None, group: None, port: None, ttl: None }
    }

    /// Refuses what the kernel would silently replace by a default or answer with a bare error.
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

/// Seconds after which an idle connection is forgotten. When they are set, 0 leaves one as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timeouts {
    /// Of an established TCP connection; 900 at boot.
    pub tcp: u32,
    /// Of a TCP connection after a FIN; 120 at boot.
    pub tcp_fin: u32,
    /// Of a UDP flow; 300 at boot.
    pub udp: u32,
}

impl Timeouts {
    /// 31 days, the longest that ipvsadm takes.
    pub const MAX: u32 = 31 * 86400;

    /// Refuses what would overflow the kernel's clock.
    ///
    /// # Errors
    /// [`Error::Invalid`], with the value.
    pub fn check(&self) -> Result<(), Error> {
        match [self.tcp, self.tcp_fin, self.udp].into_iter().find(|seconds| *seconds > Self::MAX) {
            Some(seconds) => Err(Invalid::Timeout(seconds).into()),
            None => Ok(()),
        }
    }
}

/// What the kernel says of IPVS as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Info {
    /// The version of IPVS: major, minor, patch. 1.2.1 since 2004.
    pub version: (u8, u8, u8),
    /// Buckets of the connection table.
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
        assert_eq!(refusal(Daemon { sync_id: 256, ..daemon }), "sync id 256: 0 to 255");
        assert_eq!(
            refusal(Daemon { group: Some([10, 0, 0, 1].into()), ..daemon }),
            "10.0.0.1 is not a multicast group"
        );
        assert_eq!(refusal(Daemon { ttl: Some(0), ..daemon }), "TTL 0 of a sync daemon");
        assert_eq!(
            refusal(Daemon { role: DaemonRole(3), ..daemon }),
            "a sync daemon is master or backup, not 0x3"
        );
    }

    #[test]
    fn a_timeout_stays_below_a_month() {
        assert!(Timeouts { udp: Timeouts::MAX + 1, ..Timeouts::default() }.check().is_err());
        Timeouts { tcp: Timeouts::MAX, tcp_fin: 0, udp: 1 }.check().unwrap();
    }
}
