//! Destinations: the real servers of a service, the forwarding methods, and the kernel's report.

use std::fmt;

use bitflags::bitflags;

use crate::error::{Error, Invalid};
use crate::service::{Endpoint, ServiceId};
use crate::stats::{Connections, Stats};

/// The forwarding method from the director to a destination (`IP_VS_CONN_F_FWD_MASK`).
///
/// ```
/// use sluicegate_ipvs::Forward;
///
/// // Only masquerading can send on to another port than the client asked for.
/// assert!(Forward::DirectRoute.keeps_port());
/// assert!(!Forward::Masquerade.keeps_port());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Forward {
    /// `IP_VS_CONN_F_MASQ`: the destination address and port are rewritten, and answers come back through the
    /// director.
    Masquerade,
    /// `IP_VS_CONN_F_LOCALNODE`: packets are delivered on the director itself. The kernel uses this method
    /// for its own addresses, whatever was requested.
    Local,
    /// `IP_VS_CONN_F_TUNNEL`: packets are encapsulated and sent to the destination, which answers the client
    /// directly.
    Tunnel(Tunnel),
    /// `IP_VS_CONN_F_DROUTE`: only the link-layer address changes; the destination has the virtual address as
    /// well and answers the client directly. The default of ipvsadm.
    DirectRoute,
    /// An unknown method with the kernel's number. It cannot be sent.
    Other(u32),
}

impl Forward {
    /// Returns whether packets arrive with the virtual port, so that the destination cannot have another.
    #[must_use]
    pub fn keeps_port(&self) -> bool {
        matches!(self, Self::Tunnel(_) | Self::DirectRoute)
    }
}

/// The encapsulation of a tunnel (Linux 5.3; before that always IP in IP).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Tunnel {
    /// `IP_VS_CONN_F_TUNNEL_TYPE_IPIP`: IP in IP.
    Ipip,
    /// `IP_VS_CONN_F_TUNNEL_TYPE_GUE`: generic UDP encapsulation.
    Gue {
        /// The UDP port of the far end, not 0.
        port: u16,
        /// The checksums of the outer packet.
        flags: TunnelFlags,
    },
    /// `IP_VS_CONN_F_TUNNEL_TYPE_GRE`: generic routing encapsulation.
    Gre {
        /// Checksums of the outer packet.
        flags: TunnelFlags,
    },
    /// An unknown type with the kernel's number. It cannot be sent.
    Other {
        /// `IPVS_DEST_ATTR_TUN_TYPE`
        kind: u8,
        /// `IPVS_DEST_ATTR_TUN_PORT`
        port: u16,
        /// `IPVS_DEST_ATTR_TUN_FLAGS`
        flags: TunnelFlags,
    },
}

bitflags! {
    /// `IP_VS_TUNNEL_ENCAP_FLAG_*`. Without a flag the outer packet has no checksum.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub struct TunnelFlags: u16 {
        /// `IP_VS_TUNNEL_ENCAP_FLAG_CSUM`: with checksums.
        const CHECKSUM = 1;
        /// `IP_VS_TUNNEL_ENCAP_FLAG_REMCSUM`: remote checksum offload, GUE only.
        const REMOTE_CHECKSUM = 2;
        // Flags of a newer kernel are kept.
        const _ = !0;
    }
}

/// The configuration of a destination.
///
/// ```
/// use sluicegate_ipvs::{DestinationConfig, Forward};
///
/// // No new connections above 1,000, and again below 800.
/// let config = DestinationConfig::new(Forward::Masquerade).weight(3).thresholds(1_000, 800);
/// assert_eq!((config.weight, config.upper_threshold), (3, 1_000));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub struct DestinationConfig {
    /// The forwarding method.
    pub forward: Forward,
    /// Its share of the load, relative to the other destinations, at most 2,147,483,647. A destination with
    /// weight 0 gets no new connections.
    pub weight: u32,
    /// The number of connections above which it gets no new ones; 0 means no limit.
    pub upper_threshold: u32,
    /// The number of connections below which it gets new ones again after the upper threshold was reached; 0
    /// means three quarters of the upper threshold.
    pub lower_threshold: u32,
}

impl DestinationConfig {
    /// Returns a configuration with weight 1 and without thresholds.
    #[must_use]
    pub const fn new(forward: Forward) -> Self {
        Self { forward, weight: 1, upper_threshold: 0, lower_threshold: 0 }
    }

    /// Sets the number of connections above which the destination gets no new ones, and below which it gets
    /// them again.
    #[must_use]
    pub fn thresholds(self, upper: u32, lower: u32) -> Self {
        Self { upper_threshold: upper, lower_threshold: lower, ..self }
    }

    /// Sets the weight.
    #[must_use]
    pub fn weight(self, weight: u32) -> Self {
        Self { weight, ..self }
    }

    /// Checks the configuration of a destination of `service`: for values that the kernel accepts although
    /// they cannot work, and values that it refuses with an error number only.
    ///
    /// # Errors
    /// [`Error::Invalid`], with the reason.
    pub fn check(&self, service: &ServiceId, destination: &Endpoint) -> Result<(), Error> {
        if i32::try_from(self.weight).is_err() {
            return Err(Invalid::Weight(self.weight).into());
        }
        if self.lower_threshold > self.upper_threshold {
            return Err(
                Invalid::Thresholds { upper: self.upper_threshold, lower: self.lower_threshold }.into()
            );
        }
        if destination.family() != service.family() && !matches!(self.forward, Forward::Tunnel(_)) {
            return Err(Invalid::MixedFamilies.into());
        }
        self.check_address(destination)?;
        self.check_port(service, destination)?;
        self.check_forward()
    }

    fn check_address(&self, destination: &Endpoint) -> Result<(), Error> {
        let address = destination.address;
        let broadcast = address == std::net::IpAddr::V4(std::net::Ipv4Addr::BROADCAST);
        if address.is_unspecified() || address.is_multicast() || broadcast {
            return Err(Invalid::NotUnicast(address).into());
        }
        Ok(())
    }

    fn check_port(&self, service: &ServiceId, destination: &Endpoint) -> Result<(), Error> {
        match service.port() {
            // A destination with port 0 gets packets on the port that they were sent to.
            Some(port) if self.forward.keeps_port() && ![port, 0].contains(&destination.port) => {
                Err(Invalid::DestinationPort { destination: destination.port, service: port }.into())
            }
            _ => Ok(()),
        }
    }

    fn check_forward(&self) -> Result<(), Error> {
        let Forward::Tunnel(tunnel) = self.forward else {
            return match self.forward {
                Forward::Other(number) => Err(Invalid::Forward(number).into()),
                _ => Ok(()),
            };
        };
        match tunnel {
            Tunnel::Ipip => Ok(()),
            Tunnel::Gue { port: 0, .. } => Err(Invalid::GuePort.into()),
            Tunnel::Gue { flags, .. }
                if [TunnelFlags::empty(), TunnelFlags::CHECKSUM, TunnelFlags::REMOTE_CHECKSUM]
                    .contains(&flags) =>
            {
                Ok(())
            }
            Tunnel::Gre { flags } if [TunnelFlags::empty(), TunnelFlags::CHECKSUM].contains(&flags) => Ok(()),
            Tunnel::Gue { flags, .. } => {
                Err(Invalid::TunnelFlags { tunnel: "gue", flags: flags.bits() }.into())
            }
            Tunnel::Gre { flags } => Err(Invalid::TunnelFlags { tunnel: "gre", flags: flags.bits() }.into()),
            Tunnel::Other { kind, .. } => Err(Invalid::TunnelType(kind).into()),
        }
    }
}

/// A destination as the kernel reports it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Destination {
    /// The address and port that identify it within its service.
    pub id: Endpoint,
    /// Its configuration.
    pub config: DestinationConfig,
    /// Its connections at the time of the answer.
    pub connections: Connections,
    /// Traffic counters; up to two seconds old.
    pub stats: Stats,
}

impl Destination {
    /// Returns a destination without connections and traffic, as it is right after it was added.
    #[must_use]
    pub fn new(id: Endpoint, config: DestinationConfig) -> Self {
        Self { id, config, connections: Connections::default(), stats: Stats::default() }
    }
}

impl fmt::Display for Forward {
    /// Prints the method as `ipvsadm -L` does.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Masquerade => f.pad("Masq"),
            Self::Local => f.pad("Local"),
            Self::Tunnel(_) => f.pad("Tunnel"),
            Self::DirectRoute => f.pad("Route"),
            Self::Other(number) => write!(f, "method {number}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(config: DestinationConfig, to: &str) -> Result<(), String> {
        let service = ServiceId::tcp(Endpoint::new([10, 0, 0, 1], 80));
        let to: std::net::SocketAddr = to.parse().unwrap();
        config.check(&service, &to.into()).map_err(|e| e.to_string())
    }

    #[test]
    fn values_that_the_kernel_accepts_silently_are_refused() {
        let masquerade = DestinationConfig::new(Forward::Masquerade);
        let route = DestinationConfig::new(Forward::DirectRoute);
        let tunnel = |tunnel| DestinationConfig::new(Forward::Tunnel(tunnel));
        let cases = [
            (
                masquerade.weight(1 << 31),
                "1.2.3.4:80",
                "expected a weight up to 2147483647, found 2147483648",
            ),
            (
                DestinationConfig { lower_threshold: 2, ..masquerade },
                "1.2.3.4:80",
                "expected a lower threshold up to the upper one, 0, found 2",
            ),
            (
                masquerade,
                "[fd00::1]:80",
                "expected a tunnel to a destination of another address family, found another method",
            ),
            (masquerade, "224.0.0.1:80", "expected the unicast address of a destination, found 224.0.0.1"),
            (masquerade, "0.0.0.0:80", "expected the unicast address of a destination, found 0.0.0.0"),
            (
                route,
                "1.2.3.4:81",
                "expected port 80 of the service, which direct routing and tunnels keep, found 81",
            ),
            (
                tunnel(Tunnel::Gue { port: 0, flags: TunnelFlags::empty() }),
                "1.2.3.4:80",
                "expected the port of a GUE tunnel, found 0",
            ),
            (
                tunnel(Tunnel::Gre { flags: TunnelFlags::REMOTE_CHECKSUM }),
                "1.2.3.4:80",
                "expected flags of a gre tunnel, found 0x2",
            ),
            (
                tunnel(Tunnel::Other { kind: 9, port: 0, flags: TunnelFlags::empty() }),
                "1.2.3.4:80",
                "expected the tunnel type 0, 1 or 2, found 9",
            ),
            (
                DestinationConfig::new(Forward::Other(4)),
                "1.2.3.4:80",
                "expected the forwarding method 0, 1, 2 or 3, found 4",
            ),
        ];
        for (config, to, why) in cases {
            assert_eq!(check(config, to).unwrap_err(), why);
        }
    }

    #[test]
    fn configurations_that_work_are_accepted() {
        let tunnel = DestinationConfig::new(Forward::Tunnel(Tunnel::Ipip));
        check(tunnel, "[fd00::1]:80").unwrap();
        check(DestinationConfig::new(Forward::Masquerade), "1.2.3.4:8080").unwrap();
        check(DestinationConfig::new(Forward::DirectRoute).weight(0), "1.2.3.4:80").unwrap();
        let gue = Tunnel::Gue { port: 6080, flags: TunnelFlags::REMOTE_CHECKSUM };
        check(DestinationConfig::new(Forward::Tunnel(gue)), "1.2.3.4:80").unwrap();
    }
}
