//! `IPVS_CMD_ATTR_DEST`: identity, configuration, connections and counters of a destination.

use sluicegate_netlink::Family;
use sluicegate_netlink::attr::{Attribute, Attributes, Writer};

use super::service::{decode_address, encode_address, family};
use super::{required, stats, top};
use crate::destination::{Destination, DestinationConfig, Forward, Tunnel, TunnelFlags};
use crate::error::Problem;
use crate::service::Endpoint;
use crate::stats::Connections;

/// `IPVS_DEST_ATTR_*` of `linux/ip_vs.h`.
pub(crate) mod attr {
    /// `union nf_inet_addr`: 16 bytes, of which IPv4 uses the first four.
    pub(crate) const ADDR: u16 = 1;
    /// `be16`
    pub(crate) const PORT: u16 = 2;
    /// `u32`: `IP_VS_CONN_F_*` below `IP_VS_CONN_F_FWD_MASK`.
    pub(crate) const FWD_METHOD: u16 = 3;
    /// `u32`, read as an `int` by the kernel.
    pub(crate) const WEIGHT: u16 = 4;
    /// `u32`
    pub(crate) const U_THRESH: u16 = 5;
    /// `u32`
    pub(crate) const L_THRESH: u16 = 6;
    /// `u32`
    pub(crate) const ACTIVE_CONNS: u16 = 7;
    /// `u32`
    pub(crate) const INACT_CONNS: u16 = 8;
    /// `u32`
    pub(crate) const PERSIST_CONNS: u16 = 9;
    /// Nest of `stats::attr`, 32 bits.
    pub(crate) const STATS: u16 = 10;
    /// `u16` (Linux 3.18); absent it is the family of the service.
    pub(crate) const ADDR_FAMILY: u16 = 11;
    /// Nest of `stats::attr`, 64 bits (Linux 4.1).
    pub(crate) const STATS64: u16 = 12;
    /// `u8`: `IP_VS_CONN_F_TUNNEL_TYPE_*` (Linux 5.3).
    pub(crate) const TUN_TYPE: u16 = 13;
    /// `be16` (Linux 5.3).
    pub(crate) const TUN_PORT: u16 = 14;
    /// `u16`: `IP_VS_TUNNEL_ENCAP_FLAG_*` (Linux 5.3).
    pub(crate) const TUN_FLAGS: u16 = 15;
}

/// `IP_VS_CONN_F_MASQ`
const MASQUERADE: u32 = 0;
/// `IP_VS_CONN_F_LOCALNODE`
const LOCAL: u32 = 1;
/// `IP_VS_CONN_F_TUNNEL`
const TUNNEL: u32 = 2;
/// `IP_VS_CONN_F_DROUTE`
const DIRECT_ROUTE: u32 = 3;

/// `IP_VS_CONN_F_TUNNEL_TYPE_IPIP`
const IPIP: u8 = 0;
/// `IP_VS_CONN_F_TUNNEL_TYPE_GUE`
const GUE: u8 = 1;
/// `IP_VS_CONN_F_TUNNEL_TYPE_GRE`
const GRE: u8 = 2;

pub(crate) fn encode(writer: &mut Writer<'_>, id: &Endpoint, config: Option<&DestinationConfig>) {
    let mut nest = writer.nest(top::DEST);
    nest.put_u16(attr::ADDR_FAMILY, id.family().number().into());
    nest.put(attr::ADDR, &encode_address(id.address));
    nest.put_be16(attr::PORT, id.port);
    if let Some(config) = config {
        encode_forward(&mut nest, config.forward);
        nest.put_u32(attr::WEIGHT, config.weight);
        nest.put_u32(attr::U_THRESH, config.upper_threshold);
        nest.put_u32(attr::L_THRESH, config.lower_threshold);
    }
}

fn encode_forward(w: &mut Writer<'_>, forward: Forward) {
    w.put_u32(
        attr::FWD_METHOD,
        match forward {
            Forward::Masquerade => MASQUERADE,
            Forward::Local => LOCAL,
            Forward::Tunnel(_) => TUNNEL,
            Forward::DirectRoute => DIRECT_ROUTE,
            Forward::Other(number) => number,
        },
    );
    // No attribute for IP in IP: kernels before 5.3 have no other encapsulation, and it is the default of
    // newer ones.
    let (kind, port, flags) = match forward {
        Forward::Tunnel(Tunnel::Gue { port, flags }) => (GUE, port, flags),
        Forward::Tunnel(Tunnel::Gre { flags }) => (GRE, 0, flags),
        Forward::Tunnel(Tunnel::Other { kind, port, flags }) => (kind, port, flags),
        _ => return,
    };
    w.put_u8(attr::TUN_TYPE, kind);
    w.put_be16(attr::TUN_PORT, port);
    w.put_u16(attr::TUN_FLAGS, flags.bits());
}

/// Decodes a destination. `service` is the family of its service, which it has if the kernel does not report
/// another.
pub(crate) fn decode(attributes: Attributes<'_>, service: Family) -> Result<Destination, Problem> {
    let mut found = Found::default();
    for attribute in attributes {
        found.take(&attribute?)?;
    }
    found.finish(service)
}

/// The attributes of a destination, which may come in any order.
#[derive(Default)]
struct Found<'a> {
    family: Option<Family>,
    address: Option<Attribute<'a>>,
    port: Option<u16>,
    method: Option<u32>,
    weight: u32,
    upper_threshold: u32,
    lower_threshold: u32,
    connections: Connections,
    tunnel: (u8, u16, TunnelFlags),
    stats: stats::Decoder,
}

impl<'a> Found<'a> {
    fn take(&mut self, attribute: &Attribute<'a>) -> Result<(), Problem> {
        match attribute.kind {
            // Some kernels report 0 for the family of the service.
            attr::ADDR_FAMILY if attribute.u16()? != 0 => self.family = Some(family(attribute)?),
            attr::ADDR => self.address = Some(*attribute),
            attr::PORT => self.port = Some(attribute.be16()?),
            attr::FWD_METHOD => self.method = Some(attribute.u32()?),
            attr::WEIGHT => self.weight = attribute.u32()?,
            attr::U_THRESH => self.upper_threshold = attribute.u32()?,
            attr::L_THRESH => self.lower_threshold = attribute.u32()?,
            attr::ACTIVE_CONNS => self.connections.active = attribute.u32()?,
            attr::INACT_CONNS => self.connections.inactive = attribute.u32()?,
            attr::PERSIST_CONNS => self.connections.persistent = attribute.u32()?,
            attr::STATS => self.stats.narrow(attribute.attributes())?,
            attr::STATS64 => self.stats.wide(attribute.attributes())?,
            attr::TUN_TYPE => self.tunnel.0 = attribute.u8()?,
            attr::TUN_PORT => self.tunnel.1 = attribute.be16()?,
            attr::TUN_FLAGS => self.tunnel.2 = TunnelFlags::from_bits_retain(attribute.u16()?),
            // A newer kernel may say more.
            _ => {}
        }
        Ok(())
    }

    fn finish(&self, service: Family) -> Result<Destination, Problem> {
        let address = required(self.address, attr::ADDR)?;
        let address = decode_address(&address, self.family.unwrap_or(service))?;
        Ok(Destination {
            id: Endpoint { address, port: required(self.port, attr::PORT)? },
            config: DestinationConfig {
                forward: self.forward(required(self.method, attr::FWD_METHOD)?),
                weight: self.weight,
                upper_threshold: self.upper_threshold,
                lower_threshold: self.lower_threshold,
            },
            connections: self.connections,
            stats: self.stats.finish(),
        })
    }

    fn forward(&self, method: u32) -> Forward {
        match method {
            MASQUERADE => Forward::Masquerade,
            LOCAL => Forward::Local,
            DIRECT_ROUTE => Forward::DirectRoute,
            TUNNEL => Forward::Tunnel(match self.tunnel {
                (IPIP, _, _) => Tunnel::Ipip,
                (GUE, port, flags) => Tunnel::Gue { port, flags },
                (GRE, _, flags) => Tunnel::Gre { flags },
                (kind, port, flags) => Tunnel::Other { kind, port, flags },
            }),
            other => Forward::Other(other),
        }
    }
}
