//! `IPVS_CMD_ATTR_DAEMON`: a sync daemon.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use sluicegate_netlink::attr::{Attribute, Attributes, Writer};

use super::{required, top};
use crate::daemon::{Daemon, DaemonRole};
use crate::error::Problem;
use crate::name::Interface;

/// `IPVS_DAEMON_ATTR_*` of `linux/ip_vs.h`; those from `SYNC_MAXLEN` on since Linux 4.3.
mod attr {
    /// `u32`: `IP_VS_STATE_*`.
    pub(super) const STATE: u16 = 1;
    /// String of at most 15 bytes, and a NUL.
    pub(super) const MCAST_IFN: u16 = 2;
    /// `u32`, 0 to 255.
    pub(super) const SYNC_ID: u16 = 3;
    /// `u16`
    pub(super) const SYNC_MAXLEN: u16 = 4;
    /// `be32`, an IPv4 address.
    pub(super) const MCAST_GROUP: u16 = 5;
    /// 16 bytes, an IPv6 address.
    pub(super) const MCAST_GROUP6: u16 = 6;
    /// `u16` in host order, unlike other ports.
    pub(super) const MCAST_PORT: u16 = 7;
    /// `u8`
    pub(super) const MCAST_TTL: u16 = 8;
}

pub(crate) fn encode(writer: &mut Writer<'_>, daemon: &Daemon) {
    let mut nest = writer.nest(top::DAEMON);
    nest.put_u32(attr::STATE, daemon.role.0);
    nest.put_str(attr::MCAST_IFN, daemon.interface.as_str());
    nest.put_u32(attr::SYNC_ID, daemon.sync_id);
    if let Some(length) = daemon.max_length {
        nest.put_u16(attr::SYNC_MAXLEN, length);
    }
    match daemon.group {
        Some(IpAddr::V4(group)) => nest.put(attr::MCAST_GROUP, &group.octets()),
        Some(IpAddr::V6(group)) => nest.put(attr::MCAST_GROUP6, &group.octets()),
        None => {}
    }
    if let Some(port) = daemon.port {
        nest.put_u16(attr::MCAST_PORT, port);
    }
    if let Some(ttl) = daemon.ttl {
        nest.put_u8(attr::MCAST_TTL, ttl);
    }
}

/// Encodes the role, the only attribute of the command that stops a daemon.
pub(crate) fn encode_role(writer: &mut Writer<'_>, role: DaemonRole) {
    writer.nest(top::DAEMON).put_u32(attr::STATE, role.0);
}

pub(crate) fn decode(attributes: Attributes<'_>) -> Result<Daemon, Problem> {
    let (mut role, mut interface, mut sync_id) = (None, None, None);
    let (mut max_length, mut group, mut port, mut ttl) = (None, None, None, None);
    for attribute in attributes {
        let attribute = attribute?;
        match attribute.kind {
            attr::STATE => role = Some(DaemonRole(attribute.u32()?)),
            attr::MCAST_IFN => interface = Some(decode_interface(&attribute)?),
            attr::SYNC_ID => sync_id = Some(attribute.u32()?),
            attr::SYNC_MAXLEN => max_length = Some(attribute.u16()?),
            attr::MCAST_GROUP => group = Some(Ipv4Addr::from(attribute.array::<4>()?).into()),
            attr::MCAST_GROUP6 => group = Some(Ipv6Addr::from(attribute.array::<16>()?).into()),
            attr::MCAST_PORT => port = Some(attribute.u16()?),
            attr::MCAST_TTL => ttl = Some(attribute.u8()?),
            // A newer kernel may say more.
            _ => {}
        }
    }
    Ok(Daemon {
        role: required(role, attr::STATE)?,
        interface: required(interface, attr::MCAST_IFN)?,
        sync_id: required(sync_id, attr::SYNC_ID)?,
        max_length,
        group,
        port,
        ttl,
    })
}

fn decode_interface(attribute: &Attribute<'_>) -> Result<Interface, Problem> {
    Interface::new(attribute.str()?).map_err(|_| Problem::Name(attribute.kind))
}

#[cfg(test)]
mod tests {
    use super::*;
    use sluicegate_netlink::attr;

    #[test]
    fn a_daemon_is_decoded_as_it_was_encoded() {
        let plain = Daemon::new(DaemonRole::MASTER, Interface::new("eth0").unwrap());
        let full = Daemon {
            role: DaemonRole::BACKUP,
            sync_id: 7,
            max_length: Some(1400),
            group: Some("ff02::99".parse().unwrap()),
            port: Some(9000),
            ttl: Some(3),
            ..plain
        };
        for daemon in [plain, full] {
            let bytes = attr::encode(|w| encode(w, &daemon)).unwrap();
            let nest = Attributes::new(&bytes).next().unwrap().unwrap();
            assert_eq!(nest.kind, top::DAEMON);
            assert_eq!(decode(nest.attributes()).unwrap(), daemon);
        }
    }
}
