//! Services: identity, configuration, and the kernel's report.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::num::NonZeroU32;

use bitflags::bitflags;
use sluicegate_netlink::{Family, Protocol};

use crate::error::{Error, Invalid};
use crate::name::{Engine, Scheduler};
use crate::stats::Stats;

/// The address and port of a service, or of a real server. It identifies a destination within its service.
///
/// Unlike [`SocketAddr`] it has no flow label and no scope id, which IPVS does not have.
///
/// ```
/// use sluicegate_ipvs::Endpoint;
///
/// assert_eq!(Endpoint::new([10, 96, 0, 10], 80).to_string(), "10.96.0.10:80");
/// let address: std::net::SocketAddr = "[2001:db8::1]:80".parse()?;
/// assert_eq!(Endpoint::from(address).to_string(), "[2001:db8::1]:80");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Endpoint {
    /// The address.
    pub address: IpAddr,
    /// The port. 0 means every port, which only a persistent service and the destinations of a fwmark service
    /// may have.
    pub port: u16,
}

impl Endpoint {
    /// Returns an address with a port.
    #[must_use]
    pub fn new(address: impl Into<IpAddr>, port: u16) -> Self {
        Self { address: address.into(), port }
    }

    /// Returns the family of the address.
    #[must_use]
    pub fn family(&self) -> Family {
        Family::of(self.address)
    }
}

impl From<SocketAddr> for Endpoint {
    fn from(address: SocketAddr) -> Self {
        Self { address: address.ip(), port: address.port() }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.address {
            IpAddr::V4(address) => write!(f, "{address}:{}", self.port),
            IpAddr::V6(address) => write!(f, "[{address}]:{}", self.port),
        }
    }
}

/// Returns a protocol as ipvsadm prints it: `TCP`, not `tcp`.
pub(crate) fn protocol_name(protocol: Protocol) -> Cow<'static, str> {
    match protocol {
        Protocol::TCP => "TCP".into(),
        Protocol::UDP => "UDP".into(),
        Protocol::SCTP => "SCTP".into(),
        Protocol(number) => format!("protocol {number}").into(),
    }
}

/// The identity of a service, which cannot be edited.
///
/// Services are ordered by kind (fwmark services last), family, protocol, address, and port.
///
/// ```
/// use sluicegate_ipvs::{Endpoint, Family, ServiceId};
///
/// let dns = ServiceId::udp(Endpoint::new([10, 96, 0, 10], 53));
/// assert_ne!(dns, ServiceId::tcp(Endpoint::new([10, 96, 0, 10], 53)));
/// assert!(ServiceId::mark(0, Family::Ipv4).is_none(), "packets without a mark have 0");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ServiceId {
    /// A virtual address, port and protocol.
    Virtual {
        /// TCP, UDP or SCTP.
        protocol: Protocol,
        /// The virtual address and port.
        endpoint: Endpoint,
    },
    /// All packets with this firewall mark.
    Mark {
        /// The mark, as set by `meta mark set` or `-j MARK`.
        mark: NonZeroU32,
        /// The family of the packets: IPv4 and IPv6 packets of a mark are two services.
        family: Family,
    },
}

impl ServiceId {
    /// Returns a TCP service.
    #[must_use]
    pub fn tcp(endpoint: impl Into<Endpoint>) -> Self {
        Self::Virtual { protocol: Protocol::TCP, endpoint: endpoint.into() }
    }

    /// Returns a UDP service.
    #[must_use]
    pub fn udp(endpoint: impl Into<Endpoint>) -> Self {
        Self::Virtual { protocol: Protocol::UDP, endpoint: endpoint.into() }
    }

    /// Returns an SCTP service.
    #[must_use]
    pub fn sctp(endpoint: impl Into<Endpoint>) -> Self {
        Self::Virtual { protocol: Protocol::SCTP, endpoint: endpoint.into() }
    }

    /// Returns the service of a firewall mark; `None` for mark 0, which packets without a mark have.
    #[must_use]
    pub fn mark(mark: u32, family: Family) -> Option<Self> {
        NonZeroU32::new(mark).map(|mark| Self::Mark { mark, family })
    }

    /// Returns the address family of the service.
    #[must_use]
    pub fn family(&self) -> Family {
        match self {
            Self::Virtual { endpoint, .. } => endpoint.family(),
            Self::Mark { family, .. } => *family,
        }
    }

    /// Returns the protocol; `None` for a fwmark service, which balances every protocol.
    #[must_use]
    pub fn protocol(&self) -> Option<Protocol> {
        match self {
            Self::Virtual { protocol, .. } => Some(*protocol),
            Self::Mark { .. } => None,
        }
    }

    /// Returns the virtual port; `None` for a fwmark service.
    #[must_use]
    pub fn port(&self) -> Option<u16> {
        match self {
            Self::Virtual { endpoint, .. } => Some(endpoint.port),
            Self::Mark { .. } => None,
        }
    }
}

impl Ord for ServiceId {
    fn cmp(&self, other: &Self) -> Ordering {
        let key = |id: &Self| match *id {
            Self::Virtual { protocol, endpoint } => {
                (0, endpoint.family(), protocol, endpoint.address, endpoint.port)
            }
            Self::Mark { mark, family } => (mark.get(), family, Protocol(0), Ipv4Addr::UNSPECIFIED.into(), 0),
        };
        key(self).cmp(&key(other))
    }
}

impl PartialOrd for ServiceId {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for ServiceId {
    /// Prints the service for messages: `TCP 10.0.0.1:80`, `fwmark 7 (IPv6)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Virtual { protocol, endpoint } => write!(f, "{} {endpoint}", protocol_name(*protocol)),
            Self::Mark { mark, family: Family::Ipv4 } => write!(f, "fwmark {mark}"),
            Self::Mark { mark, family: Family::Ipv6 } => write!(f, "fwmark {mark} (IPv6)"),
        }
    }
}

bitflags! {
    /// The three flags whose meaning depends on the scheduler (`IP_VS_SVC_F_SCHED1` to `3`).
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub struct SchedulerFlags: u32 {
        /// `IP_VS_SVC_F_SCHED1`: `sh` and `mh` choose another destination if the first is unavailable.
        const FALLBACK = 0x0008;
        /// `IP_VS_SVC_F_SCHED2`: `sh` and `mh` include the client's port in the hash.
        const PORT = 0x0010;
        /// `IP_VS_SVC_F_SCHED3`: without a meaning for the kernel's own schedulers.
        const THIRD = 0x0020;
    }
}

/// The configuration of a service. Wanted and observed configurations can be compared with `==`: flags that
/// only the kernel sets are not part of one.
///
/// ```
/// use sluicegate_ipvs::{Scheduler, ServiceConfig};
///
/// let config = ServiceConfig::new(Scheduler::RR).persistent(10_800);
/// assert_eq!(config.persistence.map(|persistence| persistence.timeout), Some(10_800));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub struct ServiceConfig {
    /// The scheduler that chooses a destination.
    pub scheduler: Scheduler,
    /// Flags of the scheduler.
    pub scheduler_flags: SchedulerFlags,
    /// Persistence: whether connections of one client go to one destination, and for how long.
    pub persistence: Option<Persistence>,
    /// The persistence engine; without `persistence` it has no effect.
    pub engine: Option<Engine>,
    /// One-packet scheduling (`IP_VS_SVC_F_ONEPACKET`): every datagram is balanced on its own. UDP only.
    pub one_packet: bool,
}

impl ServiceConfig {
    /// Returns a configuration with this scheduler, without persistence, engine and flags.
    #[must_use]
    pub fn new(scheduler: Scheduler) -> Self {
        Self {
            scheduler,
            scheduler_flags: SchedulerFlags::empty(),
            persistence: None,
            engine: None,
            one_packet: false,
        }
    }

    /// Sets persistence by client address, for `timeout` seconds.
    #[must_use]
    pub fn persistent(self, timeout: u32) -> Self {
        Self { persistence: Some(Persistence { timeout, granularity: None }), ..self }
    }

    /// Sets persistence.
    #[must_use]
    pub fn persistence(self, persistence: Persistence) -> Self {
        Self { persistence: Some(persistence), ..self }
    }

    /// Sets the flags of the scheduler.
    #[must_use]
    pub fn scheduler_flags(self, scheduler_flags: SchedulerFlags) -> Self {
        Self { scheduler_flags, ..self }
    }

    /// Sets the persistence engine.
    #[must_use]
    pub fn engine(self, engine: Engine) -> Self {
        Self { engine: Some(engine), ..self }
    }

    /// Sets one-packet scheduling.
    #[must_use]
    pub fn one_packet(self) -> Self {
        Self { one_packet: true, ..self }
    }

    /// Checks the configuration of the service `id`: for values that the kernel accepts although they cannot
    /// work, and values that it refuses with `EINVAL` only.
    ///
    /// # Errors
    /// [`Error::Invalid`], with the reason.
    pub fn check(&self, id: &ServiceId) -> Result<(), Error> {
        if let ServiceId::Virtual { protocol, endpoint } = id {
            if ![Protocol::TCP, Protocol::UDP, Protocol::SCTP].contains(protocol) {
                return Err(Invalid::Protocol(*protocol).into());
            }
            if endpoint.port == 0 && self.persistence.is_none() {
                return Err(Invalid::PortZero.into());
            }
            if self.one_packet && *protocol != Protocol::UDP {
                return Err(Invalid::OnePacket(*protocol).into());
            }
        }
        if let Some(persistence) = &self.persistence {
            persistence.check(id.family())?;
        }
        let unknown = self.scheduler_flags.difference(SchedulerFlags::all());
        if unknown.is_empty() { Ok(()) } else { Err(Invalid::SchedulerFlags(unknown.bits()).into()) }
    }
}

/// Persistence of a service: connections of one client go to one destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Persistence {
    /// The number of seconds without a connection after which the binding to the destination ends: 1 to
    /// [`Persistence::MAX_TIMEOUT`].
    pub timeout: u32,
    /// The prefix within which clients go to the same destination; `None` distinguishes all addresses.
    pub granularity: Option<Granularity>,
}

impl Persistence {
    /// 31 days, the longest that ipvsadm accepts. The kernel does not check it, and wraps at a larger number
    /// that depends on its `HZ`.
    pub const MAX_TIMEOUT: u32 = 31 * 86400;

    fn check(&self, family: Family) -> Result<(), Error> {
        if !(1..=Self::MAX_TIMEOUT).contains(&self.timeout) {
            return Err(Invalid::PersistenceTimeout(self.timeout).into());
        }
        match (self.granularity, family) {
            (None, _) => Ok(()),
            (Some(Granularity::Netmask(mask)), Family::Ipv4) => {
                // In a mask of ones followed by zeros, the complement plus one is a power of two, or zero.
                let hosts = !mask.to_bits();
                if hosts & hosts.wrapping_add(1) == 0 { Ok(()) } else { Err(Invalid::Netmask(mask).into()) }
            }
            (Some(Granularity::Prefix(1..=128)), Family::Ipv6) => Ok(()),
            (Some(Granularity::Prefix(length)), Family::Ipv6) => Err(Invalid::PrefixLength(length).into()),
            (Some(_), family) => Err(Invalid::GranularityFamily(family).into()),
        }
    }
}

/// The prefix length within which persistence treats clients as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Granularity {
    /// For an IPv4 service: clients whose addresses are equal in these bits.
    Netmask(Ipv4Addr),
    /// For an IPv6 service: clients whose addresses are equal in this number of leading bits, 1 to 128.
    Prefix(u32),
}

/// A service as the kernel reports it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Service {
    /// Its identity.
    pub id: ServiceId,
    /// Its configuration.
    pub config: ServiceConfig,
    /// Traffic counters.
    pub stats: Stats,
}

impl Service {
    /// Returns a service without traffic, as it is right after it was added.
    #[must_use]
    pub fn new(id: ServiceId, config: ServiceConfig) -> Self {
        Self { id, config, stats: Stats::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(id: ServiceId, config: ServiceConfig) -> String {
        config.check(&id).unwrap_err().to_string()
    }

    fn tcp(port: u16) -> ServiceId {
        ServiceId::tcp(Endpoint::new([10, 0, 0, 1], port))
    }

    #[test]
    fn port_zero_needs_persistence() {
        let config = ServiceConfig::new(Scheduler::RR);
        assert_eq!(refusal(tcp(0), config), "port 0 means every port, which needs persistence");
        config.persistent(60).check(&tcp(0)).unwrap();
    }

    #[test]
    fn a_netmask_is_ones_then_zeros() {
        let with = |mask: [u8; 4]| ServiceConfig {
            persistence: Some(Persistence {
                timeout: 1,
                granularity: Some(Granularity::Netmask(mask.into())),
            }),
            ..ServiceConfig::new(Scheduler::RR)
        };
        for mask in [[255, 255, 255, 255], [255, 255, 255, 0], [128, 0, 0, 0], [0, 0, 0, 0]] {
            with(mask).check(&tcp(80)).unwrap();
        }
        assert_eq!(
            refusal(tcp(80), with([255, 0, 255, 0])),
            "expected a netmask of ones followed by zeros, found 255.0.255.0"
        );
    }

    #[test]
    fn a_prefix_belongs_to_ipv6() {
        let with = |length| ServiceConfig {
            persistence: Some(Persistence { timeout: 1, granularity: Some(Granularity::Prefix(length)) }),
            ..ServiceConfig::new(Scheduler::RR)
        };
        let six = ServiceId::mark(7, Family::Ipv6).unwrap();
        with(64).check(&six).unwrap();
        assert_eq!(refusal(six, with(129)), "expected a prefix length from 1 to 128, found 129");
        assert_eq!(refusal(tcp(80), with(64)), "expected a netmask for the persistence of an IPv4 service");
    }

    #[test]
    fn one_packet_scheduling_is_for_datagrams() {
        let config = ServiceConfig { one_packet: true, ..ServiceConfig::new(Scheduler::RR) };
        assert_eq!(refusal(tcp(80), config), "one-packet scheduling is for UDP, not TCP");
        config.check(&ServiceId::udp(Endpoint::new([10, 0, 0, 1], 53))).unwrap();
        config.check(&ServiceId::mark(1, Family::Ipv4).unwrap()).unwrap();
    }

    #[test]
    fn a_protocol_that_ipvs_does_not_balance_is_refused() {
        let id = ServiceId::Virtual { protocol: Protocol(1), endpoint: Endpoint::new([10, 0, 0, 1], 1) };
        assert_eq!(
            refusal(id, ServiceConfig::new(Scheduler::RR)),
            "expected TCP, UDP or SCTP, which IPVS balances, found protocol 1"
        );
    }

    #[test]
    fn marks_come_after_addresses() {
        let mut ids = [ServiceId::mark(1, Family::Ipv4).unwrap(), tcp(443), tcp(80)];
        ids.sort();
        assert_eq!(ids, [tcp(80), tcp(443), ServiceId::mark(1, Family::Ipv4).unwrap()]);
    }
}
