//! Destinations: the real servers of a service, how packets get to them, and what the kernel says of them.

use std::fmt;

use bitflags::bitflags;

use crate::error::{Error, Invalid};
use crate::service::{Endpoint, ServiceId};
use crate::stats::{Connections, Stats};

/// How packets get from the director to a destination (`IP_VS_CONN_F_FWD_MASK`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Forward {
    /// `IP_VS_CONN_F_MASQ`: the destination address and port are rewritten, and answers come back through the director.
    Masquerade,
    /// `IP_VS_CONN_F_LOCALNODE`: delivered on the director itself. The kernel does this for local addresses by itself.
    Local,
    /// `IP_VS_CONN_F_TUNNEL`: wrapped in another packet to the destination, which answers the client directly.
    Tunnel(Tunnel),
    /// `IP_VS_CONN_F_DROUTE`: only the link-layer address changes; the destination has the virtual address as well and
    /// answers the client directly. The default of ipvsadm.
    DirectRoute,
    /// A method that this version does not know, as the kernel numbers it. Cannot be sent.
    Other(u32),
}

impl Forward {
    /// Whether packets arrive with the virtual port, so that the destination cannot have another.
    #[must_use]
    pub fn keeps_port(&self) -> bool {
        matches!(self, Self::Tunnel(_) | Self::DirectRoute)
    }
}

/// The packet around the packet (Linux 5.3; before that always IP in IP).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Tunnel {
    /// `IP_VS_CONN_F_TUNNEL_TYPE_IPIP`: IP in IP.
    Ipip,
    /// `IP_VS_CONN_F_TUNNEL_TYPE_GUE`: generic UDP encapsulation.
    Gue {
        /// The UDP port of the far end, not 0.
        port: u16,
        /// Checksums of the outer packet.
        flags: TunnelFlags,
    },
    /// `IP_VS_CONN_F_TUNNEL_TYPE_GRE`: generic routing encapsulation.
    Gre {
        /// Checksums of the outer packet.
        flags: TunnelFlags,
    },
    /// A kind that this version does not know, as the kernel numbers it. Cannot be sent.
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
    /// `IP_VS_TUNNEL_ENCAP_FLAG_*`; none is without checksums.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub struct TunnelFlags: u16 {
        /// `IP_VS_TUNNEL_ENCAP_FLAG_CSUM`: with checksums.
        const CHECKSUM = 1;
        /// `IP_VS_TUNNEL_ENCAP_FLAG_REMCSUM`: remote checksum offload, GUE only.
        const REMOTE_CHECKSUM = 2;
        // Bits of a newer kernel survive.
        const _ = !0;
    }
}

/// How a destination is configured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DestinationConfig {
    /// How packets get there.
    pub forward: Forward,
    /// Its share of the load, relative to the others; 0 takes no new connections. At most 2,147,483,647.
    pub weight: u32,
    /// No new connections above so many; 0 is no limit.
    pub upper_threshold: u32,
    /// After the upper threshold was hit, new connections below so many again; 0 is three quarters of it.
    pub lower_threshold: u32,
}

impl DestinationConfig {
    /// Weight 1 and no thresholds.
    #[must_use]
    pub fn new(forward: Forward) -> Self {
        Self { forward, weight: 1, upper_threshold: 0, lower_threshold: 0 }
    }

    /// The same with another weight.
    #[must_use]
    pub fn weight(self, weight: u32) -> Self {
        Self { weight, ..self }
    }

    /// Refuses what the kernel would take although it cannot work, and what it would answer with a bare error.
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
            // Port 0 of a destination is the port that the packet came to.
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
pub struct Destination {
    /// Which, within its service.
    pub id: Endpoint,
    /// Its configuration.
    pub config: DestinationConfig,
    /// Its connections now; exact at the time of the answer.
    pub connections: Connections,
    /// What went through it; up to two seconds old.
    pub stats: Stats,
}

impl fmt::Display for Forward {
    /// As `ipvsadm -L` says it.
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
    fn what_the_kernel_takes_in_silence_is_refused() {
        let masquerade = DestinationConfig::new(Forward::Masquerade);
        let route = DestinationConfig::new(Forward::DirectRoute);
        let tunnel = |tunnel| DestinationConfig::new(Forward::Tunnel(tunnel));
        let cases = [
            (masquerade.weight(1 << 31), "1.2.3.4:80", "weight 2147483648: at most 2147483647"),
            (
                DestinationConfig { lower_threshold: 2, ..masquerade },
                "1.2.3.4:80",
                "lower threshold 2 is above the upper threshold 0",
            ),
            (
                masquerade,
                "[fd00::1]:80",
                "a destination of another address family than its service needs a tunnel",
            ),
            (masquerade, "224.0.0.1:80", "destination 224.0.0.1 is not a unicast address"),
            (masquerade, "0.0.0.0:80", "destination 0.0.0.0 is not a unicast address"),
            (
                route,
                "1.2.3.4:81",
                "port 81 of the destination: direct routing and tunnels deliver to the port of the service, 80",
            ),
            (
                tunnel(Tunnel::Gue { port: 0, flags: TunnelFlags::empty() }),
                "1.2.3.4:80",
                "a GUE tunnel needs a port",
            ),
            (
                tunnel(Tunnel::Gre { flags: TunnelFlags::REMOTE_CHECKSUM }),
                "1.2.3.4:80",
                "a gre tunnel cannot have the flags 0x2",
            ),
            (
                tunnel(Tunnel::Other { kind: 9, port: 0, flags: TunnelFlags::empty() }),
                "1.2.3.4:80",
                "tunnel type 9 is not known",
            ),
            (DestinationConfig::new(Forward::Other(4)), "1.2.3.4:80", "forwarding method 4 is not known"),
        ];
        for (config, to, why) in cases {
            assert_eq!(check(config, to).unwrap_err(), why);
        }
    }

    #[test]
    fn what_works_is_taken() {
        let tunnel = DestinationConfig::new(Forward::Tunnel(Tunnel::Ipip));
        check(tunnel, "[fd00::1]:80").unwrap();
        check(DestinationConfig::new(Forward::Masquerade), "1.2.3.4:8080").unwrap();
        check(DestinationConfig::new(Forward::DirectRoute).weight(0), "1.2.3.4:80").unwrap();
        let gue = Tunnel::Gue { port: 6080, flags: TunnelFlags::REMOTE_CHECKSUM };
        check(DestinationConfig::new(Forward::Tunnel(gue)), "1.2.3.4:80").unwrap();
    }
}
