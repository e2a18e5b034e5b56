//! The settings of IPVS mode.

use ipnet::IpNet;
use sluicegate_ipvs::{Scheduler, SchedulerFlags, ServiceConfig, ServiceId, Timeouts};
use sluicegate_services::{DetectLocal, NodePortAddresses};

use crate::{Error, MasqueradeBit};

/// The operator's settings.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Whether all traffic to cluster IPs is masqueraded.
    pub masquerade_all: bool,
    /// The bit of the packet mark that requests masquerading.
    pub masquerade_bit: MasqueradeBit,
    /// The detector of traffic from pods.
    pub detect_local: DetectLocal,
    /// The addresses that answer node ports; by default all, as in kube-proxy.
    pub node_port_addresses: NodePortAddresses,
    /// The scheduler of virtual servers. With `mh`, the hash includes the client's port.
    pub scheduler: Scheduler,
    /// The networks whose virtual servers belong to other programs and are not removed.
    pub exclude_cidrs: Vec<IpNet>,
    /// Whether ARP requests are answered only for addresses of the device that received them.
    pub strict_arp: bool,
    /// The timeouts of connections.
    pub timeouts: ConnectionTimeouts,
    /// Whether masquerading chooses random source ports.
    pub random_fully: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            masquerade_all: false,
            masquerade_bit: MasqueradeBit::default(),
            detect_local: DetectLocal::default(),
            node_port_addresses: NodePortAddresses::every(),
            scheduler: Scheduler::RR,
            exclude_cidrs: Vec::new(),
            strict_arp: false,
            timeouts: ConnectionTimeouts::default(),
            random_fully: false,
        }
    }
}

impl Settings {
    /// Returns whether a virtual server that is not planned is removed: if its address is outside of
    /// [`Settings::exclude_cidrs`]. Those of firewall marks are kept.
    #[must_use]
    pub fn is_ours(&self, id: &ServiceId) -> bool {
        match id {
            ServiceId::Virtual { endpoint, .. } => {
                !self.exclude_cidrs.iter().any(|net| net.contains(&endpoint.address))
            }
            ServiceId::Mark { .. } => false,
        }
    }

    pub(super) fn server(&self) -> ServiceConfig {
        let mut config = ServiceConfig::new(self.scheduler);
        if self.scheduler == Scheduler::MH {
            config.scheduler_flags = SchedulerFlags::PORT;
        }
        config
    }
}

/// Valid timeouts of connections; 0, the default, leaves a timeout as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConnectionTimeouts(Timeouts);

impl ConnectionTimeouts {
    /// Checks timeouts.
    ///
    /// # Errors
    /// [`Error::Timeouts`] when one is longer than the kernel accepts.
    pub fn new(timeouts: Timeouts) -> Result<Self, Error> {
        match timeouts.check() {
            Ok(()) => Ok(Self(timeouts)),
            Err(error) => Err(Error::Timeouts { source: Box::new(error) }),
        }
    }

    /// Returns the timeouts as those of `sluicegate_ipvs`.
    #[must_use]
    pub const fn get(self) -> Timeouts {
        self.0
    }
}
