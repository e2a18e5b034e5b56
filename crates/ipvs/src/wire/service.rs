//! `IPVS_CMD_ATTR_SERVICE`: identity, configuration and counters of a service.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use sluicegate_netlink::attr::{Attribute, Attributes, Writer};
use sluicegate_netlink::{Family, Protocol};

use super::{first_bytes, invalid_value, required, stats, top};
use crate::error::Problem;
use crate::name::{Engine, Scheduler};
use crate::service::{Endpoint, Granularity, Persistence, SchedulerFlags, Service, ServiceConfig, ServiceId};

/// `IPVS_SVC_ATTR_*` of `linux/ip_vs.h`.
pub(crate) mod attr {
    /// `u16`: `AF_INET` or `AF_INET6`.
    pub(crate) const AF: u16 = 1;
    /// `u16`, although the header says nothing of its size.
    pub(crate) const PROTOCOL: u16 = 2;
    /// `union nf_inet_addr`: 16 bytes, of which IPv4 uses the first four.
    pub(crate) const ADDR: u16 = 3;
    /// `be16`
    pub(crate) const PORT: u16 = 4;
    /// `u32`
    pub(crate) const FWMARK: u16 = 5;
    /// String of at most 15 bytes, and a NUL.
    pub(crate) const SCHED_NAME: u16 = 6;
    /// `struct ip_vs_flags { u32 flags; u32 mask; }`
    pub(crate) const FLAGS: u16 = 7;
    /// `u32`, seconds.
    pub(crate) const TIMEOUT: u16 = 8;
    /// IPv4: `be32`, a netmask. IPv6: `u32`, a prefix length.
    pub(crate) const NETMASK: u16 = 9;
    /// Nest of `stats::attr`, 32 bits.
    pub(crate) const STATS: u16 = 10;
    /// String of at most 15 bytes, and a NUL.
    pub(crate) const PE_NAME: u16 = 11;
    /// Nest of `stats::attr`, 64 bits (Linux 4.1).
    pub(crate) const STATS64: u16 = 12;
}

/// `IP_VS_SVC_F_PERSISTENT`
const PERSISTENT: u32 = 0x0001;
/// `IP_VS_SVC_F_ONEPACKET`
const ONE_PACKET: u32 = 0x0004;
/// The flags that a service is configured by: all but `IP_VS_SVC_F_HASHED` (2), which is the kernel's own.
const CONFIGURED: u32 = PERSISTENT | ONE_PACKET | SchedulerFlags::all().bits();

pub(crate) fn family(attribute: &Attribute<'_>) -> Result<Family, Problem> {
    let number = attribute.u16()?;
    let family = u8::try_from(number).ok().and_then(Family::from_number);
    family.ok_or_else(|| invalid_value(attribute, number))
}

fn protocol(attribute: &Attribute<'_>) -> Result<Protocol, Problem> {
    let number = attribute.u16()?;
    u8::try_from(number).map(Protocol).map_err(|_| invalid_value(attribute, number))
}

/// `union nf_inet_addr`
pub(crate) fn encode_address(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V6(address) => address.octets(),
        IpAddr::V4(address) => {
            let [a, b, c, d] = address.octets();
            [a, b, c, d, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
        }
    }
}

pub(crate) fn decode_address(attribute: &Attribute<'_>, family: Family) -> Result<IpAddr, Problem> {
    match family {
        Family::Ipv4 => first_bytes::<4>(attribute).map(|bytes| Ipv4Addr::from(bytes).into()),
        Family::Ipv6 => Ok(Ipv6Addr::from(attribute.array::<16>()?).into()),
    }
}

pub(crate) fn encode(writer: &mut Writer<'_>, id: &ServiceId, config: Option<&ServiceConfig>) {
    let mut nest = writer.nest(top::SERVICE);
    nest.put_u16(attr::AF, id.family().number().into());
    match id {
        ServiceId::Virtual { protocol, endpoint } => {
            nest.put_u16(attr::PROTOCOL, protocol.0.into());
            nest.put(attr::ADDR, &encode_address(endpoint.address));
            nest.put_be16(attr::PORT, endpoint.port);
        }
        ServiceId::Mark { mark, .. } => nest.put_u32(attr::FWMARK, mark.get()),
    }
    if let Some(config) = config {
        encode_config(&mut nest, id.family(), config);
    }
}

fn encode_config(w: &mut Writer<'_>, family: Family, config: &ServiceConfig) {
    w.put_str(attr::SCHED_NAME, config.scheduler.as_str());
    if let Some(engine) = &config.engine {
        w.put_str(attr::PE_NAME, engine.as_str());
    }
    let mut flags = config.scheduler_flags.bits();
    if config.persistence.is_some() {
        flags |= PERSISTENT;
    }
    if config.one_packet {
        flags |= ONE_PACKET;
    }
    let [f0, f1, f2, f3] = flags.to_ne_bytes();
    // All bits in the mask: what is not set here is cleared.
    w.put(attr::FLAGS, &[f0, f1, f2, f3, 0xff, 0xff, 0xff, 0xff]);
    w.put_u32(attr::TIMEOUT, config.persistence.map_or(0, |persistence| persistence.timeout));
    match (config.persistence.and_then(|persistence| persistence.granularity), family) {
        (Some(Granularity::Netmask(mask)), _) => w.put(attr::NETMASK, &mask.octets()),
        (Some(Granularity::Prefix(length)), _) => w.put_u32(attr::NETMASK, length),
        (None, Family::Ipv4) => w.put(attr::NETMASK, &[0xff; 4]),
        (None, Family::Ipv6) => w.put_u32(attr::NETMASK, 128),
    }
}

pub(crate) fn decode(attributes: Attributes<'_>) -> Result<Service, Problem> {
    let mut found = Found::default();
    for attribute in attributes {
        found.take(&attribute?)?;
    }
    let family = family(&required(found.af, attr::AF)?)?;
    Ok(Service { id: found.id(family)?, config: found.config(family)?, stats: found.stats.finish() })
}

/// The attributes of a service, in whatever order they come.
#[derive(Default)]
struct Found<'a> {
    af: Option<Attribute<'a>>,
    protocol: Option<Protocol>,
    address: Option<Attribute<'a>>,
    port: Option<u16>,
    mark: Option<u32>,
    scheduler: Option<Scheduler>,
    engine: Option<Engine>,
    flags: u32,
    timeout: u32,
    netmask: Option<Attribute<'a>>,
    stats: stats::Decoder,
}

impl<'a> Found<'a> {
    fn take(&mut self, attribute: &Attribute<'a>) -> Result<(), Problem> {
        let name = |_| Problem::Name(attribute.kind);
        match attribute.kind {
            attr::AF => self.af = Some(*attribute),
            attr::PROTOCOL => self.protocol = Some(protocol(attribute)?),
            attr::ADDR => self.address = Some(*attribute),
            attr::PORT => self.port = Some(attribute.be16()?),
            attr::FWMARK => self.mark = Some(attribute.u32()?),
            attr::SCHED_NAME => self.scheduler = Some(Scheduler::new(attribute.str()?).map_err(name)?),
            attr::PE_NAME if !attribute.str()?.is_empty() => {
                self.engine = Some(Engine::new(attribute.str()?).map_err(name)?);
            }
            attr::FLAGS => {
                let [f0, f1, f2, f3] = first_bytes(attribute)?;
                self.flags = u32::from_ne_bytes([f0, f1, f2, f3]) & CONFIGURED;
            }
            attr::TIMEOUT => self.timeout = attribute.u32()?,
            attr::NETMASK => self.netmask = Some(*attribute),
            attr::STATS => self.stats.narrow(attribute.attributes())?,
            attr::STATS64 => self.stats.wide(attribute.attributes())?,
            // A newer kernel may say more.
            _ => {}
        }
        Ok(())
    }

    fn id(&self, family: Family) -> Result<ServiceId, Problem> {
        if let Some(id) = self.mark.and_then(|mark| ServiceId::mark(mark, family)) {
            return Ok(id);
        }
        let address = decode_address(&required(self.address, attr::ADDR)?, family)?;
        let port = required(self.port, attr::PORT)?;
        let protocol = required(self.protocol, attr::PROTOCOL)?;
        Ok(ServiceId::Virtual { protocol, endpoint: Endpoint { address, port } })
    }

    fn config(&self, family: Family) -> Result<ServiceConfig, Problem> {
        let persistence = if self.flags & PERSISTENT == 0 {
            None
        } else {
            Some(Persistence { timeout: self.timeout, granularity: self.granularity(family)? })
        };
        Ok(ServiceConfig {
            scheduler: required(self.scheduler, attr::SCHED_NAME)?,
            scheduler_flags: SchedulerFlags::from_bits_truncate(self.flags),
            persistence,
            engine: self.engine,
            one_packet: self.flags & ONE_PACKET != 0,
        })
    }

    /// `None` for the whole address, so that a configuration compares equal whichever way it was said.
    fn granularity(&self, family: Family) -> Result<Option<Granularity>, Problem> {
        let attribute = required(self.netmask, attr::NETMASK)?;
        Ok(match family {
            Family::Ipv4 => Some(Ipv4Addr::from(attribute.array::<4>()?))
                .filter(|mask| *mask != Ipv4Addr::BROADCAST)
                .map(Granularity::Netmask),
            Family::Ipv6 => Some(attribute.u32()?).filter(|length| *length != 128).map(Granularity::Prefix),
        })
    }
}
