//! `IPVS_CMD_SET_CONFIG` and `IPVS_CMD_SET_INFO`, whose attributes are not nested: timeouts, version, table
//! size.

use sluicegate_netlink::attr::{Attributes, Writer};

use super::{required, top};
use crate::daemon::{Info, Timeouts};
use crate::error::Problem;

/// `IPVS_INFO_ATTR_VERSION` of `linux/ip_vs.h`: `u32`, a byte each for major, minor, patch.
const INFO_VERSION: u16 = 1;
/// `IPVS_INFO_ATTR_CONN_TAB_SIZE` of `linux/ip_vs.h`: `u32`.
const INFO_CONN_TAB_SIZE: u16 = 2;

pub(crate) fn encode_timeouts(w: &mut Writer<'_>, timeouts: &Timeouts) {
    w.put_u32(top::TIMEOUT_TCP, timeouts.tcp);
    w.put_u32(top::TIMEOUT_TCP_FIN, timeouts.tcp_fin);
    w.put_u32(top::TIMEOUT_UDP, timeouts.udp);
}

/// Decodes the timeouts. That of a protocol that was compiled out of the kernel is 0.
pub(crate) fn decode_timeouts(attributes: Attributes<'_>) -> Result<Timeouts, Problem> {
    let mut timeouts = Timeouts::default();
    for attribute in attributes {
        let attribute = attribute?;
        match attribute.kind {
            top::TIMEOUT_TCP => timeouts.tcp = attribute.u32()?,
            top::TIMEOUT_TCP_FIN => timeouts.tcp_fin = attribute.u32()?,
            top::TIMEOUT_UDP => timeouts.udp = attribute.u32()?,
            // A newer kernel may say more.
            _ => {}
        }
    }
    Ok(timeouts)
}

pub(crate) fn decode_info(attributes: Attributes<'_>) -> Result<Info, Problem> {
    let (mut version, mut size) = (None, None);
    for attribute in attributes {
        let attribute = attribute?;
        match attribute.kind {
            INFO_VERSION => version = Some(attribute.u32()?),
            INFO_CONN_TAB_SIZE => size = Some(attribute.u32()?),
            // A newer kernel may say more.
            _ => {}
        }
    }
    let [_, major, minor, patch] = required(version, INFO_VERSION)?.to_be_bytes();
    let connection_table_size = required(size, INFO_CONN_TAB_SIZE)?;
    Ok(Info { version: (major, minor, patch), connection_table_size })
}
