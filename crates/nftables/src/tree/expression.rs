//! Expressions of the rule language: packet fields, metadata, constants, and their combinations. Nodes have
//! the names of libnftables-json(5).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::RangeInclusive;

use crate::Protocol;
use crate::datatype::{DataType, Order};
use crate::expr::{
    CtKey, Direction, FibFlags, FibResult, InnerType, MetaKey, NumgenMode, PayloadBase, RtKey, SocketKey,
    TunnelKey, XfrmKey,
};
use crate::family::Family;
use crate::key::{EtherAddr, Mark, Part, Port};
use crate::name::{Comment, InterfaceName, Name};
use crate::tree::exthdr::Exthdr;
use crate::tree::{
    AddressType, ArpOperation, CtState, CtStatus, IcmpCode, IcmpType, Icmpv6Code, Icmpv6Type, MptcpSubtype,
    PacketType, Payload, Statement, TcpFlags, Value, Verdict,
};

/// An expression of nft's language: a packet field, metadata, a constant, a set, or a combination of these.
///
/// ```
/// use sluicegate_nftables::lang::{Expression, Match, Payload};
/// use sluicegate_nftables::{Family, TableId};
///
/// let input = TableId::new(Family::IP, "firewall".parse()?).chain("input".parse()?);
/// let pair = Expression::concat([Payload::IP_SADDR.into(), Payload::TCP_DPORT.into()]);
/// let rule = input.rule().then(Match::new(pair, Expression::named(&"open".parse()?)));
/// assert_eq!(rule.body().to_string(), "ip saddr . tcp dport @open");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Expression {
    /// A header field by name: `ip daddr`.
    Payload(Payload),
    /// Header bits by offset: `@th,16,16`.
    RawPayload(RawPayload),
    /// An IPv6 extension header, an IP or TCP option, an SCTP chunk, or a field of one.
    Exthdr(Exthdr),
    /// Metadata of the packet: `meta mark`.
    Meta(MetaKey),
    /// Data of the connection tracking entry of the packet: `ct state`.
    Ct(Ct),
    /// Data of the route of the packet: `rt classid`.
    Rt(Rt),
    /// Data of the socket of the packet: `socket mark`.
    Socket(Socket),
    /// The guessed operating system of the sender: `osf name`.
    Osf(Osf),
    /// A route lookup for addresses of the packet: `fib daddr type`.
    Fib(Fib),
    /// An incremental or random number: `numgen random mod 2`.
    Numgen(Numgen),
    /// Jenkins hash of an expression: `jhash ip saddr mod 2`.
    Jhash(Box<Jhash>),
    /// The symmetric hash of the packet: `symhash mod 2`.
    Symhash(Symhash),
    /// Data of an IPsec transformation of the packet: `ipsec in reqid`.
    Ipsec(Ipsec),
    /// Metadata of the tunnel that the packet came through or is sent into: `tunnel id`. Only in tables of
    /// family netdev; nft reads it since 1.1.6, nft 1.0.6 cannot list it.
    Tunnel(TunnelKey),
    /// A header field of the encapsulated packet: `vxlan ip saddr`.
    Inner(Inner),
    /// A concatenation: `ip daddr . th dport`.
    Concat(Vec<Expression>),
    /// A bitwise operation: `meta mark & 0xff`.
    Binary(Box<Binary>),
    /// The value that a map contains for a key: `ip saddr map @m`.
    Map(Box<Map>),
    /// A constant.
    Value(Value),
    /// A prefix: `10.0.0.0/8`.
    Prefix(Box<Prefix>),
    /// A range, both ends included: `1024-65535`.
    Range(Box<(Value, Value)>),
    /// An anonymous set: `{ 80, 443 }`. Its members are values, prefixes, ranges, concatenations of them, or
    /// [`Elem`]s that contain one of these.
    Set(Vec<Expression>),
    /// A member of an anonymous set, or a key of an anonymous map, with a comment or statements: `22 comment
    /// "ssh"`.
    Elem(Box<Elem>),
    /// The wildcard `*` as a key of an anonymous map: everything that no other key matches.
    Any,
    /// A named set: `@s`. An expression that is looked up in it must have the type of its keys: where the
    /// transaction adds the set, any other type is refused before anything is sent, as nft does
    /// ([`LowerError::KeyType`](crate::lang::LowerError::KeyType)). For a set that is already in the kernel
    /// this is not checked, because the kernel does not store types: a rule that looks up ports in a set of
    /// addresses never matches.
    Named(Name),
}

/// Bits of a packet header by their offset: `@base,offset,length`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RawPayload {
    /// The header where the offset starts.
    pub base: PayloadBase,
    /// Offset in bits.
    pub offset: u16,
    /// Length in bits.
    pub bits: u16,
}

impl RawPayload {
    /// Returns the port that nft takes these bytes of the transport header for: `th sport` or `th dport`.
    pub(crate) fn port(self) -> Option<Payload> {
        let is_here =
            |port: &Payload| (self.base, self.offset, self.bits) == (port.base(), port.offset(), port.bits());
        [Payload::TH_SPORT, Payload::TH_DPORT].into_iter().find(is_here)
    }
}

/// A property of the packet's tracked connection: `ct [original|reply] [ip|ip6] KEY`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ct {
    /// The key: which data of the connection.
    pub key: CtKey,
    /// The direction, for keys that have one.
    pub direction: Option<Direction>,
    /// The IP version of the addresses that `CtKey::SADDR` and `CtKey::DADDR` stand for, if it is known; the
    /// other keys have their own.
    ///
    /// nft 1.0.6 sends these keys where no version is given (`ct original saddr` in a table of family ip),
    /// and lists them with the version that the rest of the rule determines. The kernel is not told.
    pub family: Option<Family>,
}

impl Ct {
    /// Returns the type of the value.
    #[must_use]
    pub fn part(self) -> Part {
        match (self.key, self.family) {
            (CtKey::SADDR | CtKey::DADDR, Some(Family::IP6)) => DataType::IPV6_ADDR.into(),
            (key, _) => key.part(),
        }
    }
}

/// A property of the packet's route: `rt [ip|ip6] KEY`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rt {
    /// The key: which data of the route.
    pub key: RtKey,
}

/// A property of the local socket that gets the packet: `socket KEY`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Socket {
    /// The key: which data of the socket.
    pub key: SocketKey,
    /// The level of the ancestor, for `cgroupv2`.
    pub level: Option<u32>,
}

/// The sender's operating system, guessed from its TCP SYN packet: `osf [ttl loose|skip] name|version`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Osf {
    /// 0: compare the TTL, 1: loosely, 2: not at all.
    pub ttl: u8,
    /// `osf version` instead of `osf name`.
    pub version: bool,
}

/// The result of a lookup in the routing tables: `fib FLAGS RESULT`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fib {
    /// The address, mark and device that the lookup uses.
    pub flags: FibFlags,
    /// The result: the type of the address, or the interface.
    pub result: FibResult,
    /// Whether only the existence of a route is checked (`exists`, `missing`). With the result
    /// [`FibResult::OIF`], a comparison with one of these words prints as `fib daddr oif exists`, and any
    /// other use prints as `fib daddr check`, which nft reads since 1.1.4 and nft 1.0.6 refuses. With
    /// another result it can only be used in a comparison.
    pub check: bool,
}

/// A number that is incremented or chosen at random for each packet: `numgen inc|random mod N [offset N]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Numgen {
    /// Incremental or random.
    pub mode: NumgenMode,
    /// The modulus: results are less than this.
    pub modulus: u32,
    /// The offset, added to each result.
    pub offset: u32,
}

/// The Jenkins hash of an expression: `jhash EXPRESSION mod N [seed N] [offset N]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Jhash {
    /// The expression that is hashed.
    pub of: Expression,
    /// The modulus: results are less than this.
    pub modulus: u32,
    /// The seed; without one the kernel generates a random seed.
    pub seed: Option<u32>,
    /// The offset, added to each result.
    pub offset: u32,
}

/// A hash of the packet's connection, the same in both directions: `symhash mod N [offset N]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Symhash {
    /// The modulus: results are less than this.
    pub modulus: u32,
    /// The offset, added to each result.
    pub offset: u32,
}

/// A property of the packet's IPsec transformation: `ipsec in|out [spnum N] KEY`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ipsec {
    /// The key (`enum nft_xfrm_keys`): 1 and 2 for the IPv4 addresses, 3 and 4 for the IPv6 addresses, 5 for
    /// reqid, 6 for spi.
    pub key: XfrmKey,
    /// `out` instead of `in`.
    pub out: bool,
    /// The index of the transformation, from 0.
    pub number: u32,
}

/// A header field of a packet that is encapsulated in a tunnel: `vxlan ip saddr`.
///
/// Linux 6.2 and nft 1.0.7; nft 1.0.6 cannot list a rule that has one. The fields of the tunnel's own header
/// are [`Payload`]s: `vxlan vni`, `geneve type`, `gre version`. GRE is implied by `gre` and `gretap`; before
/// `vxlan` and `geneve`, as in nft, the rule has to match on UDP, usually on its port.
///
/// ```
/// use sluicegate_nftables::expr::InnerType;
/// use sluicegate_nftables::lang::{Inner, Match, Payload};
/// use sluicegate_nftables::{Family, Name, Port, TableId};
///
/// let chain = TableId::new(Family::INET, Name::new("t")?).chain(Name::new("c")?);
/// let web = Inner { tunnel: InnerType::VXLAN, field: Payload::TCP_DPORT };
/// let rule = chain.rule().then(Match::new(Payload::UDP_DPORT, Port(4789))).then(Match::new(web, Port(80)));
/// assert!(rule.to_string().ends_with("udp dport 4789 vxlan tcp dport 80"));
/// # Ok::<(), sluicegate_nftables::NameError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Inner {
    /// The type of the tunnel.
    pub tunnel: InnerType,
    /// The field of an inner header.
    pub field: Payload,
}

/// A bitwise operation on two expressions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binary {
    /// The left operand.
    pub left: Expression,
    /// The operator.
    pub op: BinaryOp,
    /// The right operand. Before Linux 6.13 and nft 1.1.2 it must be a constant; a shift count always must
    /// be.
    pub right: Expression,
}

/// A bitwise operator.
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

/// The value that a map has for a key: `KEY map @NAME` or `KEY map { ... }`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Map {
    /// The key expression.
    pub key: Expression,
    /// The map.
    pub map: Mapping<Expression>,
}

/// A named map, or an anonymous one. `V` is the type of its values: [`Expression`] or [`Verdict`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mapping<V> {
    /// `@name`. Where the transaction adds the map, its keys must have the type of the expression that is
    /// looked up, and its values the type that their use requires
    /// ([`LowerError::ValueType`](crate::lang::LowerError::ValueType)).
    Named(Name),
    /// `{ key : value, ... }`. The key [`Expression::any`] is the wildcard `*`; a key with a comment or
    /// statements is an [`Elem`].
    Anonymous(Vec<(Expression, V)>),
}

/// A member of an anonymous set, or a key of an anonymous map, with its statements and comment: `established
/// counter comment "x"`.
///
/// nft 1.0.6 reads the comments of both, and the statements of members of sets; since 1.0.8 it also reads
/// the statements of keys of maps. nft turns a set of a single member into a plain comparison and drops its
/// comment, and 1.0.6 also its statements; sent by this crate, both stay.
///
/// ```
/// use sluicegate_nftables::lang::{Elem, Expression, Match, Payload};
/// use sluicegate_nftables::{Comment, Port};
///
/// let ssh = Elem::new(Port(22)).comment(Comment::new("ssh")?);
/// let ports = Match::new(Payload::TCP_DPORT, Expression::set([ssh, Elem::new(Port(80))]));
/// assert_eq!(ports.to_string(), "tcp dport { 22 comment \"ssh\", 80 }");
/// # Ok::<(), sluicegate_nftables::NameError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Elem {
    /// The value, which is not another `Elem`.
    pub value: Expression,
    /// The statements: counters, limits and the like.
    pub statements: Vec<Statement>,
    /// The comment.
    pub comment: Option<Comment>,
}

/// The addresses (or numbers) whose leading bits are equal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prefix {
    /// The first of the addresses.
    pub value: Value,
    /// The prefix length in bits.
    pub length: u8,
}

impl Elem {
    /// Creates an element without statements and comment, which is equivalent to the value itself.
    pub fn new(value: impl Into<Expression>) -> Self {
        Self { value: value.into(), statements: Vec::new(), comment: None }
    }

    /// Sets the comment.
    #[must_use]
    pub fn comment(mut self, comment: Comment) -> Self {
        self.comment = Some(comment);
        self
    }

    /// Adds a counter, a limit or the like to the element.
    #[must_use]
    pub fn statement(mut self, statement: impl Into<Statement>) -> Self {
        self.statements.push(statement.into());
        self
    }
}

impl From<Elem> for Expression {
    fn from(elem: Elem) -> Self {
        match elem.statements.is_empty() && elem.comment.is_none() {
            true => elem.value,
            false => Self::Elem(Box::new(elem)),
        }
    }
}

impl BinaryOp {
    /// Returns whether the operation is a shift.
    pub(crate) fn is_shift(self) -> bool {
        matches!(self, Self::ShiftLeft | Self::ShiftRight)
    }
}

impl Expression {
    /// `fib daddr type`: the type of the destination address.
    pub const FIB_DADDR_TYPE: Self =
        Self::Fib(Fib { flags: FibFlags::DADDR, result: FibResult::ADDRTYPE, check: false });
    /// `fib saddr type`: the type of the source address.
    pub const FIB_SADDR_TYPE: Self =
        Self::Fib(Fib { flags: FibFlags::SADDR, result: FibResult::ADDRTYPE, check: false });

    /// Creates `@name`.
    #[must_use]
    pub fn named(name: &Name) -> Self {
        Self::Named(name.clone())
    }

    /// Returns a packet field's length in bits.
    pub(crate) fn bits(&self) -> Option<u16> {
        match self {
            Self::Payload(field) | Self::Inner(Inner { field, .. }) => Some(field.bits()),
            Self::RawPayload(raw) => Some(raw.bits),
            Self::Exthdr(field) => Some(field.bits()),
            _ => None,
        }
    }

    /// Creates `a . b . c`. A part that is a concatenation itself is replaced by its parts: concatenations
    /// do not nest.
    pub fn concat(parts: impl IntoIterator<Item = Self>) -> Self {
        let mut list = Vec::new();
        for part in parts {
            match part {
                Self::Concat(inner) => list.extend(inner),
                single => list.push(single),
            }
        }
        Self::Concat(list)
    }

    /// Creates the set `{ a, b, c }`.
    pub fn set<T: Into<Self>>(members: impl IntoIterator<Item = T>) -> Self {
        Self::Set(members.into_iter().map(Into::into).collect())
    }

    /// Returns the wildcard `*` as a key of an anonymous map: it matches everything that no other key
    /// matches.
    #[must_use]
    pub fn any() -> Self {
        Self::Any
    }

    /// Creates the range `a-b`, both ends included.
    pub fn range(low: impl Into<Value>, high: impl Into<Value>) -> Self {
        Self::Range(Box::new((low.into(), high.into())))
    }

    /// Creates the prefix `a/length`.
    pub fn prefix(value: impl Into<Value>, length: u8) -> Self {
        Self::Prefix(Box::new(Prefix { value: value.into(), length }))
    }

    /// Creates `numgen random mod N`.
    #[must_use]
    pub fn random(modulus: u32) -> Self {
        Self::Numgen(Numgen { mode: NumgenMode::RANDOM, modulus, offset: 0 })
    }

    /// Creates `self map @name`.
    #[must_use]
    pub fn map(self, name: &Name) -> Self {
        Self::Map(Box::new(Map { key: self, map: Mapping::Named(name.clone()) }))
    }

    /// Creates `self map { key : value, ... }`.
    pub fn map_anonymous(self, pairs: impl IntoIterator<Item = (Self, Self)>) -> Self {
        Self::Map(Box::new(Map { key: self, map: Mapping::Anonymous(pairs.into_iter().collect()) }))
    }

    /// Creates `self & value`.
    #[must_use]
    pub fn and(self, value: impl Into<Self>) -> Self {
        self.binary(BinaryOp::And, value)
    }

    /// Creates `self | value`.
    #[must_use]
    pub fn or(self, value: impl Into<Self>) -> Self {
        self.binary(BinaryOp::Or, value)
    }

    /// Creates `self ^ value`.
    #[must_use]
    pub fn xor(self, value: impl Into<Self>) -> Self {
        self.binary(BinaryOp::Xor, value)
    }

    /// Creates `self OP value`.
    #[must_use]
    pub fn binary(self, op: BinaryOp, value: impl Into<Self>) -> Self {
        Self::Binary(Box::new(Binary { left: self, op, right: value.into() }))
    }

    /// Returns the types of the expression's value, one for each part of a concatenation; empty if the type
    /// depends on the context, as for a constant.
    #[must_use]
    pub fn parts(&self) -> Vec<Part> {
        match self {
            Self::Concat(parts) => parts.iter().flat_map(Self::parts).collect(),
            other => other.part().into_iter().collect(),
        }
    }

    /// Returns the type of the expression's value, unless it is a concatenation, a constant, or the result of
    /// a named map.
    #[must_use]
    pub fn part(&self) -> Option<Part> {
        let integer = |bytes, order| Some(Part::Integer { bytes, order });
        match self {
            Self::Payload(payload) => Some(payload.part()),
            Self::RawPayload(raw) if raw.port().is_some() => Some(DataType::INET_SERVICE.into()),
            Self::RawPayload(raw) => integer(u8::try_from(raw.bits.div_ceil(8)).ok()?, Order::Network),
            Self::Exthdr(exthdr) => Some(exthdr.part()),
            Self::Meta(key) => Some(key.part()),
            Self::Ct(ct) => Some(ct.part()),
            Self::Rt(rt) => Some(rt.key.part()),
            Self::Socket(socket) => Some(socket.key.part()),
            Self::Osf(_) => Some(DataType::STRING.into()),
            Self::Fib(fib) => Some(fib.part()),
            Self::Numgen(_) | Self::Jhash(_) | Self::Symhash(_) => integer(4, Order::Host),
            Self::Ipsec(ipsec) => Some(ipsec.key.part()),
            Self::Tunnel(key) => Some(key.part()),
            Self::Inner(inner) => Some(inner.field.part()),
            Self::Binary(binary) if binary.left.is_constant() => binary.right.part(),
            // To nft, since 1.0.7, what is shifted is a number. Of a mark it lists it as a mark.
            Self::Binary(binary) if binary.op.is_shift() => match binary.left.part()? {
                of @ Part::Type(DataType::MARK) => Some(of),
                of => integer(u8::try_from(of.bytes()).ok()?, of.order()),
            },
            Self::Binary(binary) => binary.left.part().or_else(|| binary.right.part()),
            Self::Value(Value::Address(IpAddr::V4(_))) => Some(DataType::IPV4_ADDR.into()),
            Self::Value(Value::Address(IpAddr::V6(_))) => Some(DataType::IPV6_ADDR.into()),
            Self::Value(Value::Ether(_)) => Some(DataType::ETHER_ADDR.into()),
            Self::Value(Value::Interface(_)) => Some(DataType::IFNAME.into()),
            Self::Map(_) | Self::Concat(_) | Self::Value(_) | Self::Prefix(_) | Self::Range(_) => None,
            Self::Set(_) | Self::Named(_) | Self::Elem(_) | Self::Any => None,
        }
    }

    /// Returns the value of a member of a set or of a key of a map, without its statements and comment.
    pub(crate) fn member(&self) -> &Self {
        match self {
            Self::Elem(elem) => &elem.value,
            plain => plain,
        }
    }

    /// Returns `true` for an expression that does not depend on the packet.
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
        if self.check { DataType::BOOLEAN.into() } else { self.result_part() }
    }

    /// Returns whether nft can express it outside a comparison: it cannot express a check for a route with an
    /// interface name (`oifname exists`).
    pub(crate) fn is_expressible(&self) -> bool {
        !self.check || self.result == FibResult::OIF
    }

    /// Returns the type of the result that the kernel would load without the flag `present`.
    pub(crate) fn result_part(&self) -> Part {
        match self.result {
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
    CtKey, v => Self::Ct(Ct { key: v, direction: None, family: None });
    Ct, v => Self::Ct(v);
    Fib, v => Self::Fib(v);
    Numgen, v => Self::Numgen(v);
    Exthdr, v => Self::Exthdr(v);
    Inner, v => Self::Inner(v);
    TunnelKey, v => Self::Tunnel(v);
    Value, v => Self::Value(v);
    RtKey, v => Self::Rt(Rt { key: v });
    SocketKey, v => Self::Socket(Socket { key: v, level: None });
    bool, v => Value::from(v).into();
    u8, v => Value::from(v).into();
    i32, v => Value::from(v).into();
    &str, v => Value::from(v).into();
    &InterfaceName, v => Value::from(v).into();
    IcmpType, v => Value::from(v).into();
    Icmpv6Type, v => Value::from(v).into();
    IcmpCode, v => Value::from(v).into();
    Icmpv6Code, v => Value::from(v).into();
    PacketType, v => Value::from(v).into();
    ArpOperation, v => Value::from(v).into();
    &Name, v => Self::named(v);
    Name, v => Self::Named(v);
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
    MptcpSubtype, v => Value::from(v).into();
    Family, v => Value::Number(v.0.into()).into();
}

/// Several fields are a concatenation: `ip saddr . tcp dport`.
impl<const N: usize> From<[Payload; N]> for Expression {
    fn from(fields: [Payload; N]) -> Self {
        match fields.as_slice() {
            [only] => Self::Payload(*only),
            several => Self::concat(several.iter().copied().map(Self::from)),
        }
    }
}

macro_rules! array_of_constants {
    ($($constant:ty)*) => {$(
        #[doc = "Several constants are an anonymous set: `{ a, b }`."]
        impl<const N: usize> From<[$constant; N]> for Expression {
            fn from(members: [$constant; N]) -> Self {
                Self::set(members)
            }
        }
    )*};
}

array_of_constants! {
    u8 u16 u32 u64 i32 &str IpAddr Ipv4Addr Ipv6Addr Protocol Port Mark EtherAddr InterfaceName IcmpType
    Icmpv6Type PacketType ArpOperation
}

macro_rules! tuple_of_parts {
    ($(($($name:ident),*))*) => {$(
        #[doc = "A tuple is a concatenation: `a . b`."]
        impl<$($name: Into<Expression>),*> From<($($name,)*)> for Expression {
            #[allow(non_snake_case, reason = "the type's letter names its value")]
            fn from(($($name,)*): ($($name,)*)) -> Self {
                Self::concat([$($name.into()),*])
            }
        }
    )*};
}

tuple_of_parts! { (A, B) (A, B, C) (A, B, C, D) (A, B, C, D, E) }

/// Creates a range, both ends included: `1024-65535`.
impl<V: Into<Value>> From<RangeInclusive<V>> for Expression {
    fn from(range: RangeInclusive<V>) -> Self {
        let (low, high) = range.into_inner();
        Self::range(low, high)
    }
}

#[cfg(feature = "ipnet")]
impl From<ipnet::IpNet> for Expression {
    fn from(network: ipnet::IpNet) -> Self {
        Self::prefix(network.addr(), network.prefix_len())
    }
}

#[cfg(feature = "ipnet")]
impl From<ipnet::Ipv4Net> for Expression {
    fn from(network: ipnet::Ipv4Net) -> Self {
        Self::prefix(network.addr(), network.prefix_len())
    }
}

#[cfg(feature = "ipnet")]
impl From<ipnet::Ipv6Net> for Expression {
    fn from(network: ipnet::Ipv6Net) -> Self {
        Self::prefix(network.addr(), network.prefix_len())
    }
}

impl<K: Into<Expression>, const N: usize> From<[(K, Verdict); N]> for Mapping<Verdict> {
    fn from(pairs: [(K, Verdict); N]) -> Self {
        Self::Anonymous(pairs.into_iter().map(|(key, verdict)| (key.into(), verdict)).collect())
    }
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
