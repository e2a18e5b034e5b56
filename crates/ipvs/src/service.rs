//! Services: what identifies one, how it is configured, and what the kernel says of it.

use std::cmp::Ordering;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::num::NonZeroU32;

use bitflags::bitflags;

use crate::error::{Error, Invalid};
use crate::name::{Engine, Scheduler};
use crate::stats::Stats;

/// An address and a port: of a service, or of a real server, where it is the whole identity of a destination within
/// its service.
///
/// Unlike [`SocketAddr`] it has no flow label and no scope, which IPVS does not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Endpoint {
    /// The address.
    pub address: IpAddr,
    /// The port; 0 is every port, which only a persistent service and destinations of a fwmark service may have.
    pub port: u16,
}

impl Endpoint {
    /// An address with a port.
    #[must_use]
    pub fn new(address: impl Into<IpAddr>, port: u16) -> Self {
        Self { address: address.into(), port }
    }

    /// The family of the address.
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

/// The family of addresses that a service takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Family {
    /// `AF_INET`
    Ipv4,
    /// `AF_INET6`
    Ipv6,
}

impl Family {
    /// The family of an address.
    #[must_use]
    pub fn of(address: IpAddr) -> Self {
        if address.is_ipv4() { Self::Ipv4 } else { Self::Ipv6 }
    }
}

/// A transport protocol, by its IP protocol number. IPVS balances the three named here.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Protocol(pub u16);

impl Protocol {
    /// `IPPROTO_TCP`
    pub const TCP: Self = Self(6);
    /// `IPPROTO_UDP`
    pub const UDP: Self = Self(17);
    /// `IPPROTO_SCTP`
    pub const SCTP: Self = Self(132);
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::TCP => f.pad("TCP"),
            Self::UDP => f.pad("UDP"),
            Self::SCTP => f.pad("SCTP"),
            Self(number) => write!(f, "protocol {number}"),
        }
    }
}

impl fmt::Debug for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// What identifies a service: nothing of it can be edited.
///
/// The order is that of a table: by kind (marks last), family, protocol, address, port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ServiceId {
    /// A virtual address, port and protocol.
    Virtual {
        /// TCP, UDP or SCTP.
        protocol: Protocol,
        /// The virtual address and port.
        endpoint: Endpoint,
    },
    /// Every packet that a firewall rule gave this mark.
    Mark {
        /// The mark, as of `meta mark set` or `-j MARK`.
        mark: NonZeroU32,
        /// Which packets: a mark is one service for each family.
        family: Family,
    },
}

impl ServiceId {
    /// A TCP service.
    #[must_use]
    pub fn tcp(endpoint: impl Into<Endpoint>) -> Self {
        Self::Virtual { protocol: Protocol::TCP, endpoint: endpoint.into() }
    }

    /// A UDP service.
    #[must_use]
    pub fn udp(endpoint: impl Into<Endpoint>) -> Self {
        Self::Virtual { protocol: Protocol::UDP, endpoint: endpoint.into() }
    }

    /// An SCTP service.
    #[must_use]
    pub fn sctp(endpoint: impl Into<Endpoint>) -> Self {
        Self::Virtual { protocol: Protocol::SCTP, endpoint: endpoint.into() }
    }

    /// The service of a firewall mark, `None` for mark 0, which is no mark.
    #[must_use]
    pub fn mark(mark: u32, family: Family) -> Option<Self> {
        NonZeroU32::new(mark).map(|mark| Self::Mark { mark, family })
    }

    /// The family of addresses that it takes.
    #[must_use]
    pub fn family(&self) -> Family {
        match self {
            Self::Virtual { endpoint, .. } => endpoint.family(),
            Self::Mark { family, .. } => *family,
        }
    }

    /// The protocol, which a fwmark service leaves to the packets.
    #[must_use]
    pub fn protocol(&self) -> Option<Protocol> {
        match self {
            Self::Virtual { protocol, .. } => Some(*protocol),
            Self::Mark { .. } => None,
        }
    }

    /// The virtual port; `None` for a fwmark service.
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
    /// As a person would say it: `TCP 10.0.0.1:80`, `fwmark 7 (IPv6)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Virtual { protocol, endpoint } => write!(f, "{protocol} {endpoint}"),
            Self::Mark { mark, family: Family::Ipv4 } => write!(f, "fwmark {mark}"),
            Self::Mark { mark, family: Family::Ipv6 } => write!(f, "fwmark {mark} (IPv6)"),
        }
    }
}

bitflags! {
    /// What a scheduler makes of its three flags (`IP_VS_SVC_F_SCHED1` to `3`).
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub struct SchedulerFlags: u32 {
        /// `IP_VS_SVC_F_SCHED1`: for `sh` and `mh`, take another destination when the chosen one is unavailable.
        const FALLBACK = 0x0008;
        /// `IP_VS_SVC_F_SCHED2`: for `sh` and `mh`, the client's port is part of the hash.
        const PORT = 0x0010;
        /// `IP_VS_SVC_F_SCHED3`: of no meaning to the kernel's own schedulers.
        const THIRD = 0x0020;
    }
}

/// How a service is configured. Comparing a wanted with an observed one is `==`: flags that only the kernel sets are
/// not part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServiceConfig {
    /// How it chooses a destination.
    pub scheduler: Scheduler,
    /// Flags of the scheduler.
    pub scheduler_flags: SchedulerFlags,
    /// Whether requests of one client go to one destination, and for how long.
    pub persistence: Option<Persistence>,
    /// The persistence engine; without `persistence` it has no effect.
    pub engine: Option<Engine>,
    /// One-packet scheduling (`IP_VS_SVC_F_ONEPACKET`): every datagram is balanced on its own. UDP only.
    pub one_packet: bool,
}

impl ServiceConfig {
    /// A service with this scheduler and nothing else.
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

    /// The same with persistence for `timeout` seconds, by client address.
    #[must_use]
    pub fn persistent(self, timeout: u32) -> Self {
        Self { persistence: Some(Persistence { timeout, granularity: None }), ..self }
    }

    /// Refuses what the kernel would take although it cannot work, and what it would answer with a bare `EINVAL`.
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

/// Requests of one client go to one destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Persistence {
    /// Seconds without a connection after which the client is forgotten: 1 to [`Persistence::MAX_TIMEOUT`].
    pub timeout: u32,
    /// Which clients count as one; `None` is each address for itself.
    pub granularity: Option<Granularity>,
}

impl Persistence {
    /// 31 days, the longest that ipvsadm takes. The kernel checks nothing and wraps at some larger number, which depends
    /// on its clock.
    pub const MAX_TIMEOUT: u32 = 31 * 86400;

    fn check(&self, family: Family) -> Result<(), Error> {
        if !(1..=Self::MAX_TIMEOUT).contains(&self.timeout) {
            return Err(Invalid::PersistenceTimeout(self.timeout).into());
        }
        match (self.granularity, family) {
            (None, _) => Ok(()),
            (Some(Granularity::Netmask(mask)), Family::Ipv4) => {
                // A mask that is not ones then zeros: its complement plus one is a power of two (or zero).
                let hosts = !mask.to_bits();
                if hosts & hosts.wrapping_add(1) == 0 { Ok(()) } else { Err(Invalid::Netmask(mask).into()) }
            }
            (Some(Granularity::Prefix(1..=128)), Family::Ipv6) => Ok(()),
            (Some(Granularity::Prefix(length)), Family::Ipv6) => Err(Invalid::PrefixLength(length).into()),
            (Some(_), family) => Err(Invalid::GranularityFamily(family).into()),
        }
    }
}

/// Which clients persistence takes as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Granularity {
    /// Of an IPv4 service: those whose addresses agree in these bits.
    Netmask(Ipv4Addr),
    /// Of an IPv6 service: those whose addresses agree in so many leading bits, 1 to 128.
    Prefix(u32),
}

/// A service as the kernel reports it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Service {
    /// Which.
    pub id: ServiceId,
    /// Its configuration.
    pub config: ServiceConfig,
    /// What went through it.
    pub stats: Stats,
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
        assert_eq!(refusal(tcp(0), config), "port 0 stands for every port and needs persistence");
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
            "netmask 255.0.255.0: the one bits of a netmask come first, without a gap"
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
        assert_eq!(refusal(six, with(129)), "prefix length 129: 1 to 128 for IPv6");
        assert_eq!(refusal(tcp(80), with(64)), "persistence of an IPv4 service takes a netmask");
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
            "protocol 1: IPVS balances TCP, UDP and SCTP"
        );
    }

    #[test]
    fn marks_come_after_addresses() {
        let mut ids = [ServiceId::mark(1, Family::Ipv4).unwrap(), tcp(443), tcp(80)];
        ids.sort();
        assert_eq!(ids, [tcp(80), tcp(443), ServiceId::mark(1, Family::Ipv4).unwrap()]);
    }
}
