//! The bytes of generic netlink as IPVS speaks it: one file per wire object, encoder beside decoder.
//!
//! Nothing here touches a socket. Encoders append to a buffer of the caller and allocate nothing else; decoders take a
//! slice, check every length, and never panic. `neli` has types for attributes and generic-netlink messages, but they
//! allocate several times per attribute and wrap lengths of more than 16 bits; see `ARCHITECTURE.md`.

pub(crate) mod answer;
pub(crate) mod attributes;
pub(crate) mod config;
pub(crate) mod daemon;
pub(crate) mod destination;
pub(crate) mod family;
pub(crate) mod message;
pub(crate) mod service;
pub(crate) mod stats;

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
