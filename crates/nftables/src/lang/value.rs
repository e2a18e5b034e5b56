//! Constants of the rule language, and flags and numbers with names.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use bitflags::bitflags;

use crate::Protocol;
use crate::key::{EtherAddr, Mark, Port};
use crate::name::InterfaceName;

/// A constant. How it prints and its length in bytes depend on the expression that it is compared with.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Value {
    /// A number; prints as a symbolic constant if the type has one for it (`tcp`, `established`).
    Number(u64),
    /// An IP address.
    Address(IpAddr),
    /// A link-layer address.
    Ether(EtherAddr),
    /// An interface name, or a prefix of one with `*`.
    Interface(InterfaceName),
    /// Text of 1 to 15 bytes: `ct helper "ftp"`, `osf name "Linux"`.
    Text(InterfaceName),
    /// Raw bytes, of a length that no other variant has.
    Bytes(Box<[u8]>),
}

impl Value {
    /// Returns the number of bits set in a mask.
    pub(crate) fn count_ones(&self) -> u32 {
        match self {
            Self::Number(number) => number.count_ones(),
            Self::Bytes(bytes) => bytes.iter().map(|byte| byte.count_ones()).sum(),
            _ => 0,
        }
    }
}

bitflags! {
    /// The states of `ct state` (`NF_CT_STATE_BIT`).
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub struct CtState: u32 {
        /// `invalid`
        const INVALID = 1;
        /// `established`
        const ESTABLISHED = 2;
        /// `related`
        const RELATED = 4;
        /// `new`
        const NEW = 8;
        /// `untracked`
        const UNTRACKED = 64;

        const _ = !0;
    }

    /// The bits of `ct status` (`enum ip_conntrack_status`).
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub struct CtStatus: u32 {
        /// `expected`
        const EXPECTED = 1;
        /// `seen-reply`
        const SEEN_REPLY = 2;
        /// `assured`
        const ASSURED = 4;
        /// `confirmed`
        const CONFIRMED = 8;
        /// `snat`
        const SNAT = 0x10;
        /// `dnat`
        const DNAT = 0x20;
        /// `dying`
        const DYING = 0x200;

        const _ = !0;
    }

    /// The bits of `tcp flags`.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub struct TcpFlags: u8 {
        /// `fin`
        const FIN = 1;
        /// `syn`
        const SYN = 2;
        /// `rst`
        const RST = 4;
        /// `psh`
        const PSH = 8;
        /// `ack`
        const ACK = 16;
        /// `urg`
        const URG = 32;
        /// `ecn`
        const ECN = 64;
        /// `cwr`
        const CWR = 128;
    }
}

/// The result of `fib ... type` (`RTN_*` of `linux/rtnetlink.h`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct AddressType(pub u32);

impl AddressType {
    /// `unicast`
    pub const UNICAST: Self = Self(1);
    /// `local`: an address of this machine.
    pub const LOCAL: Self = Self(2);
    /// `broadcast`
    pub const BROADCAST: Self = Self(3);
    /// `multicast`
    pub const MULTICAST: Self = Self(5);
}

/// The subtype of an MPTCP option (`tcp option mptcp subtype`, RFC 8684). It prints as a number, which every
/// version of nft reads; versions after 1.0.6 have these names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MptcpSubtype(pub u8);

impl MptcpSubtype {
    /// `mp-capable`
    pub const MP_CAPABLE: Self = Self(0);
    /// `mp-join`
    pub const MP_JOIN: Self = Self(1);
    /// `dss`
    pub const DSS: Self = Self(2);
    /// `add-addr`
    pub const ADD_ADDR: Self = Self(3);
    /// `remove-addr`
    pub const REMOVE_ADDR: Self = Self(4);
    /// `mp-prio`
    pub const MP_PRIO: Self = Self(5);
    /// `mp-fail`
    pub const MP_FAIL: Self = Self(6);
    /// `mp-fastclose`
    pub const MP_FASTCLOSE: Self = Self(7);
    /// `mp-tcprst`
    pub const MP_TCPRST: Self = Self(8);
}

macro_rules! into_value {
    ($($rust:ty, $v:ident => $value:expr;)*) => {$(
        impl From<$rust> for Value {
            fn from($v: $rust) -> Self {
                $value
            }
        }
    )*};
}

into_value! {
    u16, v => Self::Number(v.into());
    u32, v => Self::Number(v.into());
    u64, v => Self::Number(v);
    IpAddr, v => Self::Address(v);
    Ipv4Addr, v => Self::Address(v.into());
    Ipv6Addr, v => Self::Address(v.into());
    Protocol, v => Self::Number(v.0.into());
    Port, v => Self::Number(v.0.into());
    Mark, v => Self::Number(v.0.into());
    EtherAddr, v => Self::Ether(v);
    InterfaceName, v => Self::Interface(v);
    CtState, v => Self::Number(v.bits().into());
    CtStatus, v => Self::Number(v.bits().into());
    TcpFlags, v => Self::Number(v.bits().into());
    AddressType, v => Self::Number(v.0.into());
    MptcpSubtype, v => Self::Number(v.0.into());
}
