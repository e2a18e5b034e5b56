//! Constants of the rule language, and flags and numbers with names.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::Protocol;
use crate::key::{EtherAddr, Mark, Port};
use crate::name::InterfaceName;
use crate::wire::flags::flags;

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

flags! {
    /// The states of `ct state` (`NF_CT_STATE_BIT`).
    #[derive(Clone, Copy, PartialEq, Eq, Hash)]
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
    #[derive(Clone, Copy, PartialEq, Eq, Hash)]
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
    #[derive(Clone, Copy, PartialEq, Eq, Hash)]
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

/// The type of an ICMP message (`icmp type`), with the names of nft.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct IcmpType(pub u8);

impl IcmpType {
    /// `echo-reply`
    pub const ECHO_REPLY: Self = Self(0);
    /// `destination-unreachable`
    pub const DESTINATION_UNREACHABLE: Self = Self(3);
    /// `source-quench`
    pub const SOURCE_QUENCH: Self = Self(4);
    /// `redirect`
    pub const REDIRECT: Self = Self(5);
    /// `echo-request`
    pub const ECHO_REQUEST: Self = Self(8);
    /// `router-advertisement`
    pub const ROUTER_ADVERTISEMENT: Self = Self(9);
    /// `router-solicitation`
    pub const ROUTER_SOLICITATION: Self = Self(10);
    /// `time-exceeded`
    pub const TIME_EXCEEDED: Self = Self(11);
    /// `parameter-problem`
    pub const PARAMETER_PROBLEM: Self = Self(12);
    /// `timestamp-request`
    pub const TIMESTAMP_REQUEST: Self = Self(13);
    /// `timestamp-reply`
    pub const TIMESTAMP_REPLY: Self = Self(14);
    /// `info-request`
    pub const INFO_REQUEST: Self = Self(15);
    /// `info-reply`
    pub const INFO_REPLY: Self = Self(16);
    /// `address-mask-request`
    pub const ADDRESS_MASK_REQUEST: Self = Self(17);
    /// `address-mask-reply`
    pub const ADDRESS_MASK_REPLY: Self = Self(18);
}

/// The type of an ICMPv6 message (`icmpv6 type`), with the names of nft.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Icmpv6Type(pub u8);

impl Icmpv6Type {
    /// `destination-unreachable`
    pub const DESTINATION_UNREACHABLE: Self = Self(1);
    /// `packet-too-big`
    pub const PACKET_TOO_BIG: Self = Self(2);
    /// `time-exceeded`
    pub const TIME_EXCEEDED: Self = Self(3);
    /// `parameter-problem`
    pub const PARAMETER_PROBLEM: Self = Self(4);
    /// `echo-request`
    pub const ECHO_REQUEST: Self = Self(128);
    /// `echo-reply`
    pub const ECHO_REPLY: Self = Self(129);
    /// `mld-listener-query`
    pub const MLD_LISTENER_QUERY: Self = Self(130);
    /// `mld-listener-report`
    pub const MLD_LISTENER_REPORT: Self = Self(131);
    /// `mld-listener-done`
    pub const MLD_LISTENER_DONE: Self = Self(132);
    /// `mld-listener-reduction`
    pub const MLD_LISTENER_REDUCTION: Self = Self(132);
    /// `nd-router-solicit`
    pub const ND_ROUTER_SOLICIT: Self = Self(133);
    /// `nd-router-advert`
    pub const ND_ROUTER_ADVERT: Self = Self(134);
    /// `nd-neighbor-solicit`
    pub const ND_NEIGHBOR_SOLICIT: Self = Self(135);
    /// `nd-neighbor-advert`
    pub const ND_NEIGHBOR_ADVERT: Self = Self(136);
    /// `nd-redirect`
    pub const ND_REDIRECT: Self = Self(137);
    /// `router-renumbering`
    pub const ROUTER_RENUMBERING: Self = Self(138);
    /// `ind-neighbor-solicit`
    pub const IND_NEIGHBOR_SOLICIT: Self = Self(141);
    /// `ind-neighbor-advert`
    pub const IND_NEIGHBOR_ADVERT: Self = Self(142);
    /// `mld2-listener-report`
    pub const MLD2_LISTENER_REPORT: Self = Self(143);
}

/// The code of an ICMP message (`icmp code`, `reject with icmp`), with the names of nft.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct IcmpCode(pub u8);

impl IcmpCode {
    /// `net-unreachable`
    pub const NET_UNREACHABLE: Self = Self(0);
    /// `host-unreachable`
    pub const HOST_UNREACHABLE: Self = Self(1);
    /// `prot-unreachable`
    pub const PROT_UNREACHABLE: Self = Self(2);
    /// `port-unreachable`
    pub const PORT_UNREACHABLE: Self = Self(3);
    /// `net-prohibited`
    pub const NET_PROHIBITED: Self = Self(9);
    /// `host-prohibited`
    pub const HOST_PROHIBITED: Self = Self(10);
    /// `admin-prohibited`
    pub const ADMIN_PROHIBITED: Self = Self(13);
    /// `frag-needed`
    pub const FRAG_NEEDED: Self = Self(4);
}

/// The code of an ICMPv6 message (`icmpv6 code`, `reject with icmpv6`), with the names of nft.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Icmpv6Code(pub u8);

impl Icmpv6Code {
    /// `no-route`
    pub const NO_ROUTE: Self = Self(0);
    /// `admin-prohibited`
    pub const ADMIN_PROHIBITED: Self = Self(1);
    /// `addr-unreachable`
    pub const ADDR_UNREACHABLE: Self = Self(3);
    /// `port-unreachable`
    pub const PORT_UNREACHABLE: Self = Self(4);
    /// `policy-fail`
    pub const POLICY_FAIL: Self = Self(5);
    /// `reject-route`
    pub const REJECT_ROUTE: Self = Self(6);
}

/// The abstract code of `reject with icmpx`, which the kernel translates to ICMP or ICMPv6.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct IcmpxCode(pub u8);

impl IcmpxCode {
    /// `port-unreachable`
    pub const PORT_UNREACHABLE: Self = Self(1);
    /// `admin-prohibited`
    pub const ADMIN_PROHIBITED: Self = Self(3);
    /// `no-route`
    pub const NO_ROUTE: Self = Self(0);
    /// `host-unreachable`
    pub const HOST_UNREACHABLE: Self = Self(2);
}

/// The type of a packet by its link-layer address (`meta pkttype`): `PACKET_*` of `linux/if_packet.h`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PacketType(pub u8);

impl PacketType {
    /// `host`
    pub const HOST: Self = Self(0);
    /// `unicast`
    pub const UNICAST: Self = Self(0);
    /// `broadcast`
    pub const BROADCAST: Self = Self(1);
    /// `multicast`
    pub const MULTICAST: Self = Self(2);
    /// `other`
    pub const OTHER: Self = Self(3);
}

/// The operation of an ARP packet (`arp operation`), with the names of nft.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ArpOperation(pub u16);

impl ArpOperation {
    /// `request`
    pub const REQUEST: Self = Self(1);
    /// `reply`
    pub const REPLY: Self = Self(2);
    /// `rrequest`
    pub const RREQUEST: Self = Self(3);
    /// `rreply`
    pub const RREPLY: Self = Self(4);
    /// `inrequest`
    pub const INREQUEST: Self = Self(8);
    /// `inreply`
    pub const INREPLY: Self = Self(9);
    /// `nak`
    pub const NAK: Self = Self(10);
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
    bool, v => Self::Number(v.into());
    u8, v => Self::Number(v.into());
    // Literals without a suffix. A negative number becomes one that no field has room for, so that it is
    // refused when the rule is sent.
    i32, v => Self::Number(i64::from(v).cast_unsigned());
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
    IcmpType, v => Self::Number(v.0.into());
    Icmpv6Type, v => Self::Number(v.0.into());
    IcmpCode, v => Self::Number(v.0.into());
    Icmpv6Code, v => Self::Number(v.0.into());
    IcmpxCode, v => Self::Number(v.0.into());
    PacketType, v => Self::Number(v.0.into());
    ArpOperation, v => Self::Number(v.0.into());
}

/// Creates text: the name of an interface (with a `*` at its end: of all that start so), of a connection
/// tracking helper or of an operating system. Text of no or more than 15 bytes is refused when the rule is
/// sent, and so is text where the expression is of another type.
impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(InterfaceName::from_kernel(text))
    }
}

impl From<&InterfaceName> for Value {
    fn from(name: &InterfaceName) -> Self {
        Self::Interface(name.clone())
    }
}
