//! The messages of IPVS (`linux/ip_vs.h`): one file per wire object, encoder beside decoder.
//!
//! Nothing here touches a socket. Encoders append to a [`Batch`](sluicegate_netlink::Batch) and allocate
//! nothing else; decoders take the attributes of a message, check every length, and never panic.

pub(crate) mod config;
pub(crate) mod daemon;
pub(crate) mod destination;
pub(crate) mod message;
pub(crate) mod service;
pub(crate) mod stats;

use sluicegate_netlink::DecodeError as WireError;
use sluicegate_netlink::attr::Attribute;

use crate::error::Problem;

/// `IPVS_GENL_NAME`
pub(crate) const FAMILY_NAME: &str = "IPVS";
/// `IPVS_GENL_VERSION`
pub(crate) const FAMILY_VERSION: u8 = 1;

/// `IPVS_CMD_*` of `linux/ip_vs.h`, the command of the generic-netlink header.
pub(crate) mod cmd {
    pub(crate) const NEW_SERVICE: u8 = 1;
    pub(crate) const SET_SERVICE: u8 = 2;
    pub(crate) const DEL_SERVICE: u8 = 3;
    pub(crate) const GET_SERVICE: u8 = 4;
    pub(crate) const NEW_DEST: u8 = 5;
    pub(crate) const SET_DEST: u8 = 6;
    pub(crate) const DEL_DEST: u8 = 7;
    pub(crate) const GET_DEST: u8 = 8;
    pub(crate) const NEW_DAEMON: u8 = 9;
    pub(crate) const DEL_DAEMON: u8 = 10;
    pub(crate) const GET_DAEMON: u8 = 11;
    pub(crate) const SET_CONFIG: u8 = 12;
    pub(crate) const GET_CONFIG: u8 = 13;
    // 14 is SET_INFO, which only comes as the answer to GET_INFO.
    pub(crate) const GET_INFO: u8 = 15;
    pub(crate) const ZERO: u8 = 16;
    pub(crate) const FLUSH: u8 = 17;
}

/// `IPVS_CMD_ATTR_*` of `linux/ip_vs.h`, the attributes of every command.
pub(crate) mod top {
    /// Nest of `service::attr`.
    pub(crate) const SERVICE: u16 = 1;
    /// Nest of `destination::attr`.
    pub(crate) const DEST: u16 = 2;
    /// Nest of `daemon::attr`.
    pub(crate) const DAEMON: u16 = 3;
    /// `u32`, seconds.
    pub(crate) const TIMEOUT_TCP: u16 = 4;
    /// `u32`, seconds.
    pub(crate) const TIMEOUT_TCP_FIN: u16 = 5;
    /// `u32`, seconds.
    pub(crate) const TIMEOUT_UDP: u16 = 6;
}

/// Refuses a value that has the right size and is none that this crate knows.
fn invalid_value(attribute: &Attribute<'_>, value: impl Into<u64>) -> Problem {
    Problem::Value { kind: attribute.kind, value: value.into() }
}

/// Returns the first `N` bytes of a payload that may be longer: addresses come in 16 bytes whatever their
/// family.
fn first_bytes<const N: usize>(attribute: &Attribute<'_>) -> Result<[u8; N], Problem> {
    attribute.payload.first_chunk().copied().ok_or_else(|| {
        WireError::Size { kind: attribute.kind, need: N, have: attribute.payload.len() }.into()
    })
}

/// Returns the value of a required attribute.
fn required<T>(value: Option<T>, kind: u16) -> Result<T, Problem> {
    value.ok_or(Problem::Missing(kind))
}
