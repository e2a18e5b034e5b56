//! Expressions of the rule language: what a packet has, constants, and what joins them. Node names are those of
//! libnftables-json(5).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::datatype::{DataType, Order};
use crate::expr::{
    CtKey, Direction, FibFlags, FibResult, InnerType, MetaKey, NumgenMode, PayloadBase, RtKey, SocketKey,
    TunnelKey, XfrmKey,
};
use crate::family::Family;
use crate::key::{EtherAddr, Mark, Part, Port, Protocol};
use crate::lang::exthdr::Exthdr;
use crate::lang::{
    AddressType, CtState, CtStatus, MptcpSubtype, Payload, Statement, TcpFlags, Value, Verdict,
};
use crate::name::{Comment, InterfaceName, Name};

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
    /// What the kernel noted of the tunnel that it came through, or goes into: `tunnel id`. In tables of family
    /// netdev only; nft reads it since 1.1.6, nft 1.0.6 cannot list it.
    Tunnel(TunnelKey),
    /// A header field of the packet inside a tunnel's: `vxlan ip saddr`.
    Inner(Inner),
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
    /// A set without a name: `{ 80, 443 }`. Its members are values, prefixes, ranges and concatenations of them, and [`Elem`]s of such.
    Set(Vec<Expression>),
    /// A member of such a set, or a key of such a map, that has more than its value: `22 comment "ssh"`.
    Elem(Box<Elem>),
    /// A set with a name: `@s`. What is looked up in it has to be of the type of its keys: where the transaction adds the set, anything else is a
    /// [`LowerError::KeyType`](crate::lang::LowerError::KeyType) before something is sent, as nft has it. What a kernel has already it knows without types:
    /// there, a rule that looks for ports among addresses only never matches.
    Named(Name),
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
    /// Whether only the existence of a route is asked for (`exists`, `missing`). With the result [`FibResult::OIF`], which a comparison with one of
    /// these words prints as `fib daddr oif exists`; anything else as `fib daddr check`, which nft reads since 1.1.4, and nft 1.0.6 refuses. With
    /// another result it can only be compared.
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

/// `vxlan ip saddr`: a header field of the packet that a tunnel's packet carries.
///
/// Linux 6.2 and nft 1.0.7; nft 1.0.6 cannot list a rule that has one. The fields of the tunnel's own header are [`Payload`]s:
/// `vxlan vni`, `geneve type`, `gre version`. GRE is implied by `gre` and `gretap`; before `vxlan` and `geneve`, as in nft, the rule has to
/// match on UDP, usually on its port.
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
    /// What the packet is wrapped in.
    pub tunnel: InnerType,
    /// The field, of a header inside.
    pub field: Payload,
}

/// Two expressions and what joins them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binary {
    /// The first.
    pub left: Expression,
    /// What is done.
    pub op: BinaryOp,
    /// The second. Before Linux 6.13 and nft 1.1.2 a constant; by how much to shift has to be one anyway.
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
    /// `@name`. Where the transaction adds the map, its keys have to be of the type of what is looked up, and its values of the type that they are used
    /// for ([`LowerError::ValueType`](crate::lang::LowerError::ValueType)).
    Named(Name),
    /// `{ key : value, ... }`. A key [`Expression::any`] is the wildcard `*`; one that has a comment or carries a counter is an [`Elem`].
    Anonymous(Vec<(Expression, V)>),
}

/// A member of a set without a name, or a key of such a map, with what it carries and a comment: `established counter comment "x"`.
///
/// nft 1.0.6 reads comments of both, and of sets also what members carry; since 1.0.8 it reads that of the keys of maps, too. Of an only
/// member nft makes a plain comparison, and forgets its comment, and 1.0.6 also what it carries; by netlink they stay.
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
    /// Its value, which is none of these again.
    pub value: Expression,
    /// What it carries: counters, limits and the like.
    pub statements: Vec<Statement>,
    /// Its comment.
    pub comment: Option<Comment>,
}

/// The addresses (or numbers) that agree in their first bits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prefix {
    /// The first of them.
    pub value: Value,
    /// Bits that agree.
    pub length: u8,
}

impl Elem {
    /// A value with nothing more, which is the same as the value itself.
    pub fn new(value: impl Into<Expression>) -> Self {
        Self { value: value.into(), statements: Vec::new(), comment: None }
    }

    /// With a comment.
    #[must_use]
    pub fn comment(mut self, comment: Comment) -> Self {
        self.comment = Some(comment);
        self
    }

    /// That carries a counter, a limit or the like.
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

    /// How many bits a field of a packet has.
    pub(crate) fn bits(&self) -> Option<u16> {
        match self {
            Self::Payload(field) | Self::Inner(Inner { field, .. }) => Some(field.bits()),
            Self::RawPayload(raw) => Some(raw.bits),
            Self::Exthdr(field) => Some(field.bits()),
            _ => None,
        }
    }

    /// `a . b . c`. Of a part that is a concatenation itself the parts are taken: there is none within another.
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
            Self::Tunnel(key) => Some(key.part()),
            Self::Inner(inner) => Some(inner.field.part()),
            Self::Binary(binary) if binary.left.is_constant() => binary.right.part(),
            Self::Binary(binary) => binary.left.part().or_else(|| binary.right.part()),
            Self::Value(Value::Address(IpAddr::V4(_))) => Some(DataType::IPV4_ADDR.into()),
            Self::Value(Value::Address(IpAddr::V6(_))) => Some(DataType::IPV6_ADDR.into()),
            Self::Value(Value::Ether(_)) => Some(DataType::ETHER_ADDR.into()),
            Self::Value(Value::Interface(_)) => Some(DataType::IFNAME.into()),
            Self::Map(_) | Self::Concat(_) | Self::Value(_) | Self::Prefix(_) | Self::Range(_) => None,
            Self::Set(_) | Self::Named(_) | Self::Elem(_) => None,
        }
    }

    /// The value of a member of a set or of a key of a map, whatever else that has.
    pub(crate) fn member(&self) -> &Self {
        match self {
            Self::Elem(elem) => &elem.value,
            plain => plain,
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
        if self.check { DataType::BOOLEAN.into() } else { self.held_part() }
    }

    /// Whether nft has a word for it where it is not compared: for a route's having an interface of some name it has none.
    pub(crate) fn has_word(&self) -> bool {
        !self.check || self.result == FibResult::OIF
    }

    /// What the kernel would leave in the register, did it not only check.
    pub(crate) fn held_part(&self) -> Part {
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
    CtKey, v => Self::Ct(Ct { key: v, direction: None });
    Ct, v => Self::Ct(v);
    Fib, v => Self::Fib(v);
    Numgen, v => Self::Numgen(v);
    Exthdr, v => Self::Exthdr(v);
    Inner, v => Self::Inner(v);
    TunnelKey, v => Self::Tunnel(v);
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
    MptcpSubtype, v => Value::from(v).into();
    Family, v => Value::Number(v.0.into()).into();
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
