//! Expressions of the rule language: what a packet has, constants, and what joins them. Node names are those of
//! libnftables-json(5).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use bitflags::bitflags;

use crate::datatype::{DataType, Order};
use crate::expr::{
    CtKey, Direction, FibFlags, FibResult, MetaKey, NumgenMode, PayloadBase, RtKey, SocketKey, XfrmKey,
};
use crate::family::Family;
use crate::key::{EtherAddr, Mark, Part, Port, Protocol};
use crate::lang::exthdr::Exthdr;
use crate::lang::{Payload, Verdict};
use crate::name::{InterfaceName, Name};

/// An expression.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Expression {
    /// A header field by name: `ip daddr`.
    Payload(Payload),
    /// Bits of a header by place: `@th,16,16`.
    RawPayload(RawPayload),
    /// An IPv6 extension header, an IP or TCP option, an SCTP chunk, or a field of one.
    Exthdr(Exthdr),
    /// What the kernel knows of the packet: `meta mark`.
    Meta(MetaKey),
    /// What it knows of the packet's connection: `ct state`.
    Ct(Ct),
    /// Its route: `rt classid`.
    Rt(Rt),
    /// Its socket: `socket mark`.
    Socket(Socket),
    /// The operating system that sent it, guessed: `osf name`.
    Osf(Osf),
    /// A look-up of its addresses in the routing tables: `fib daddr type`.
    Fib(Fib),
    /// A counting or random number: `numgen random mod 2`.
    Numgen(Numgen),
    /// Jenkins' hash of an expression: `jhash ip saddr mod 2`.
    Jhash(Box<Jhash>),
    /// The packet's symmetric hash: `symhash mod 2`.
    Symhash(Symhash),
    /// How `IPsec` transformed it: `ipsec in reqid`.
    Ipsec(Ipsec),
    /// Several side by side: `ip daddr . th dport`.
    Concat(Vec<Expression>),
    /// Arithmetic on bits: `meta mark & 0xff`.
    Binary(Box<Binary>),
    /// What a map gives for a key: `ip saddr map @m`.
    Map(Box<Map>),
    /// A constant.
    Value(Value),
    /// All addresses that start alike: `10.0.0.0/8`.
    Prefix(Prefix),
    /// From one constant to another, both included: `1024-65535`.
    Range(Box<(Value, Value)>),
    /// A set without a name: `{ 80, 443 }`. Its members are values, prefixes, ranges and concatenations of them.
    Set(Vec<Expression>),
    /// A set with a name: `@s`.
    Named(Name),
}

/// A constant. How it is written and how many bytes it has follows from what it is compared with.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Value {
    /// A number; prints by its name where the type has names (`tcp`, `established`).
    Number(u64),
    /// An IP address.
    Address(IpAddr),
    /// A link-layer address.
    Ether(EtherAddr),
    /// An interface name, or a prefix of one with `*`.
    Interface(InterfaceName),
    /// Text of 1 to 15 bytes: `ct helper "ftp"`, `osf name "Linux"`.
    Text(InterfaceName),
    /// Bytes of a width that no other kind has.
    Bytes(Vec<u8>),
}

/// `@base,offset,length`: bits of a header by place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RawPayload {
    /// Where offsets count from.
    pub base: PayloadBase,
    /// Bits from there.
    pub offset: u16,
    /// Bits of the value.
    pub bits: u16,
}

/// `ct [original|reply] [ip|ip6] KEY`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ct {
    /// What of the connection.
    pub key: CtKey,
    /// Which of its directions, for keys that have one.
    pub direction: Option<Direction>,
}

/// `rt [ip|ip6] KEY`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rt {
    /// What of the route.
    pub key: RtKey,
}

/// `socket KEY`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Socket {
    /// What of the socket.
    pub key: SocketKey,
    /// The ancestor's level, for `cgroupv2`.
    pub level: Option<u32>,
}

/// `osf [ttl loose|skip] name|version`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Osf {
    /// 0: compare the TTL, 1: loosely, 2: not at all.
    pub ttl: u8,
    /// `osf version` instead of `osf name`.
    pub version: bool,
}

/// `fib FLAGS RESULT`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fib {
    /// What to look up, and with what.
    pub flags: FibFlags,
    /// What to give: the type of the address, the interface.
    pub result: FibResult,
    /// Whether only the existence of a route is asked for (`exists`, `missing`).
    pub check: bool,
}

/// `numgen inc|random mod N [offset N]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Numgen {
    /// Counting or random.
    pub mode: NumgenMode,
    /// The results are below this.
    pub modulus: u32,
    /// Added to each result.
    pub offset: u32,
}

/// `jhash EXPRESSION mod N [seed N] [offset N]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Jhash {
    /// What is hashed.
    pub of: Expression,
    /// The results are below this.
    pub modulus: u32,
    /// The seed; the kernel takes a random one where there is none.
    pub seed: Option<u32>,
    /// Added to each result.
    pub offset: u32,
}

/// `symhash mod N [offset N]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Symhash {
    /// The results are below this.
    pub modulus: u32,
    /// Added to each result.
    pub offset: u32,
}

/// `ipsec in|out [spnum N] KEY`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ipsec {
    /// What of the transformation (`enum nft_xfrm_keys`): 1, 2 the IPv4 addresses, 3, 4 the IPv6 ones, 5 reqid, 6 spi.
    pub key: XfrmKey,
    /// Packets that leave, not those that came.
    pub out: bool,
    /// Which of several transformations, from 0.
    pub number: u32,
}

/// Two expressions and what joins them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binary {
    /// The first.
    pub left: Expression,
    /// What is done.
    pub op: BinaryOp,
    /// The second; a constant, in what the kernel can do.
    pub right: Expression,
}

/// What joins two expressions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BinaryOp {
    /// `&`
    And,
    /// `|`
    Or,
    /// `^`
    Xor,
    /// `<<`
    ShiftLeft,
    /// `>>`
    ShiftRight,
}

/// `KEY map @NAME` or `KEY map { ... }`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Map {
    /// What is looked up.
    pub key: Expression,
    /// Where.
    pub map: Mapping<Expression>,
}

/// A map, named or given in place. `V` is what it maps to: an [`Expression`] or a [`Verdict`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mapping<V> {
    /// `@name`
    Named(Name),
    /// `{ key : value, ... }`. A key [`Expression::any`] is the wildcard `*`.
    Anonymous(Vec<(Expression, V)>),
}

/// The addresses (or numbers) that agree in their first bits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prefix {
    /// The first of them.
    pub value: Value,
    /// Bits that agree.
    pub length: u8,
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

/// What `fib ... type` gives (`RTN_*` of `linux/rtnetlink.h`).
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

impl Expression {
    /// `fib daddr type`: what kind of address the packet goes to.
    pub const FIB_DADDR_TYPE: Self =
        Self::Fib(Fib { flags: FibFlags::DADDR, result: FibResult::ADDRTYPE, check: false });
    /// `fib saddr type`: what kind of address the packet comes from.
    pub const FIB_SADDR_TYPE: Self =
        Self::Fib(Fib { flags: FibFlags::SADDR, result: FibResult::ADDRTYPE, check: false });

    /// `@name`
    #[must_use]
    pub fn named(name: &Name) -> Self {
        Self::Named(name.clone())
    }

    /// `a . b . c`
    pub fn concat(parts: impl IntoIterator<Item = Self>) -> Self {
        Self::Concat(parts.into_iter().collect())
    }

    /// `{ a, b, c }`
    pub fn set<T: Into<Self>>(members: impl IntoIterator<Item = T>) -> Self {
        Self::Set(members.into_iter().map(Into::into).collect())
    }

    /// The wildcard `*` as the key of a map given in place: everything that no other key matches.
    #[must_use]
    pub fn any() -> Self {
        Self::Set(Vec::new())
    }

    /// `a-b`, both included.
    pub fn range(low: impl Into<Value>, high: impl Into<Value>) -> Self {
        Self::Range(Box::new((low.into(), high.into())))
    }

    /// `a/length`
    pub fn prefix(value: impl Into<Value>, length: u8) -> Self {
        Self::Prefix(Prefix { value: value.into(), length })
    }

    /// `numgen random mod N`
    #[must_use]
    pub fn random(modulus: u32) -> Self {
        Self::Numgen(Numgen { mode: NumgenMode::RANDOM, modulus, offset: 0 })
    }

    /// `self map @name`
    #[must_use]
    pub fn map(self, name: &Name) -> Self {
        Self::Map(Box::new(Map { key: self, map: Mapping::Named(name.clone()) }))
    }

    /// `self map { key : value, ... }`
    pub fn map_anonymous(self, pairs: impl IntoIterator<Item = (Self, Self)>) -> Self {
        Self::Map(Box::new(Map { key: self, map: Mapping::Anonymous(pairs.into_iter().collect()) }))
    }

    /// `self & value`
    #[must_use]
    pub fn and(self, value: impl Into<Self>) -> Self {
        self.binary(BinaryOp::And, value)
    }

    /// `self | value`
    #[must_use]
    pub fn or(self, value: impl Into<Self>) -> Self {
        self.binary(BinaryOp::Or, value)
    }

    /// `self ^ value`
    #[must_use]
    pub fn xor(self, value: impl Into<Self>) -> Self {
        self.binary(BinaryOp::Xor, value)
    }

    /// `self OP value`
    #[must_use]
    pub fn binary(self, op: BinaryOp, value: impl Into<Self>) -> Self {
        Self::Binary(Box::new(Binary { left: self, op, right: value.into() }))
    }

    /// The types of its value, one for each part; empty where only the context tells, as for a constant.
    #[must_use]
    pub fn parts(&self) -> Vec<Part> {
        match self {
            Self::Concat(parts) => parts.iter().flat_map(Self::parts).collect(),
            other => other.part().into_iter().collect(),
        }
    }

    /// The type of its value, unless it is a concatenation, a constant, or the result of a named map.
    #[must_use]
    pub fn part(&self) -> Option<Part> {
        let integer = |bytes, order| Some(Part::Integer { bytes, order });
        match self {
            Self::Payload(payload) => Some(payload.part()),
            Self::RawPayload(raw) => integer(u8::try_from(raw.bits.div_ceil(8)).ok()?, Order::Network),
            Self::Exthdr(exthdr) => Some(exthdr.part()),
            Self::Meta(key) => Some(key.part()),
            Self::Ct(ct) => Some(ct.key.part()),
            Self::Rt(rt) => Some(rt.key.part()),
            Self::Socket(socket) => Some(socket.key.part()),
            Self::Osf(_) => Some(DataType::STRING.into()),
            Self::Fib(fib) => Some(fib.part()),
            Self::Numgen(_) | Self::Jhash(_) | Self::Symhash(_) => integer(4, Order::Host),
            Self::Ipsec(ipsec) => Some(ipsec.key.part()),
            Self::Binary(binary) => binary.left.part().or_else(|| binary.right.part()),
            Self::Value(Value::Address(IpAddr::V4(_))) => Some(DataType::IPV4_ADDR.into()),
            Self::Value(Value::Address(IpAddr::V6(_))) => Some(DataType::IPV6_ADDR.into()),
            Self::Value(Value::Ether(_)) => Some(DataType::ETHER_ADDR.into()),
            Self::Value(Value::Interface(_)) => Some(DataType::IFNAME.into()),
            Self::Map(_) | Self::Concat(_) | Self::Value(_) | Self::Prefix(_) | Self::Range(_) => None,
            Self::Set(_) | Self::Named(_) => None,
        }
    }

    /// True for what does not depend on the packet.
    pub(crate) fn is_constant(&self) -> bool {
        match self {
            Self::Value(_) | Self::Prefix(_) | Self::Range(_) => true,
            Self::Concat(parts) => parts.iter().all(Self::is_constant),
            _ => false,
        }
    }
}

impl Fib {
    fn part(&self) -> Part {
        match self.result {
            _ if self.check => DataType::BOOLEAN.into(),
            FibResult::OIF => DataType::IFACE_INDEX.into(),
            FibResult::OIFNAME => DataType::IFNAME.into(),
            _ => DataType::FIB_ADDRTYPE.into(),
        }
    }
}

macro_rules! into_expression {
    ($($rust:ty, $v:ident => $value:expr;)*) => {$(
        impl From<$rust> for Expression {
            fn from($v: $rust) -> Self {
                $value
            }
        }
    )*};
}

into_expression! {
    Payload, v => Self::Payload(v);
    RawPayload, v => Self::RawPayload(v);
    MetaKey, v => Self::Meta(v);
    CtKey, v => Self::Ct(Ct { key: v, direction: None });
    Ct, v => Self::Ct(v);
    Fib, v => Self::Fib(v);
    Numgen, v => Self::Numgen(v);
    Exthdr, v => Self::Exthdr(v);
    Value, v => Self::Value(v);
    u16, v => Value::from(v).into();
    u32, v => Value::from(v).into();
    u64, v => Value::from(v).into();
    IpAddr, v => Value::from(v).into();
    Ipv4Addr, v => Value::from(v).into();
    Ipv6Addr, v => Value::from(v).into();
    Protocol, v => Value::from(v).into();
    Port, v => Value::from(v).into();
    Mark, v => Value::from(v).into();
    EtherAddr, v => Value::from(v).into();
    InterfaceName, v => Value::from(v).into();
    CtState, v => Value::from(v).into();
    CtStatus, v => Value::from(v).into();
    TcpFlags, v => Value::from(v).into();
    AddressType, v => Value::from(v).into();
    Family, v => Value::Number(v.0.into()).into();
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
}

impl From<Vec<(Expression, Verdict)>> for Mapping<Verdict> {
    fn from(pairs: Vec<(Expression, Verdict)>) -> Self {
        Self::Anonymous(pairs)
    }
}

impl<V> From<&Name> for Mapping<V> {
    fn from(name: &Name) -> Self {
        Self::Named(name.clone())
    }
}
