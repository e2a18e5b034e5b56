//! Statements of the rule language: what is asked of a packet and done to it. Node names are those of
//! libnftables-json(5).

use std::time::Duration;

use crate::expr::{self, LogFlags, NatFlags, ObjectKind};
use crate::family::Family;
use crate::lang::exthdr::Exthdr;
use crate::lang::{BoundChain, Expression, Mapping};
use crate::name::{Comment, Name};

/// A statement of a rule. A rule is a list of them; the first match that fails ends it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Statement {
    /// `LEFT [OP] RIGHT`
    Match(Match),
    /// `accept`, `jump CHAIN` and the like.
    Verdict(Verdict),
    /// `jump { ... }` or `goto { ... }`: a chain of the rule's own.
    Bound(BoundChain),
    /// `KEY vmap ...`
    Vmap(Vmap),
    /// `counter`
    Counter(Counter),
    /// `quota`
    Quota(Quota),
    /// `limit`
    Limit(Limit),
    /// `last`
    Last(Last),
    /// `log`
    Log(Log),
    /// `reject`
    Reject(Reject),
    /// `dnat`
    Dnat(Nat),
    /// `snat`
    Snat(Nat),
    /// `masquerade`
    Masquerade(PortNat),
    /// `redirect`
    Redirect(PortNat),
    /// `tproxy`
    Tproxy(Tproxy),
    /// `dup`
    Dup(Dup),
    /// `fwd`
    Fwd(Fwd),
    /// `queue`
    Queue(Queue),
    /// `notrack`
    Notrack,
    /// `KEY set VALUE`
    Mangle(Mangle),
    /// `add|update|delete @SET { ... }`
    Set(SetUpdate),
    /// `meter NAME { ... }`
    Meter(Meter),
    /// `ct count [over] N`
    Connlimit(Connlimit),
    /// `synproxy`
    Synproxy(Synproxy),
    /// `flow add @FLOWTABLE`
    FlowAdd(Name),
    /// `counter name "x"` and the like: a stateful object.
    Object(ObjectReference),
    /// `reset tcp option NAME`: removes it.
    ResetOption(Exthdr),
    /// Low-level expressions that the language has no words for. They are sent as they are, and print as a comment, which nft would refuse:
    /// a rule that has one cannot be given to nft.
    Raw(Vec<expr::Expr>),
}

/// `LEFT [OP] RIGHT`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Match {
    /// Something of the packet.
    pub left: Expression,
    /// How they are compared.
    pub op: MatchOp,
    /// A constant, a prefix, a range or a set.
    pub right: Expression,
}

/// How two expressions are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MatchOp {
    /// No operator: equal or in the set; for bit masks (`ct state new,related`), any of the bits.
    In,
    /// `==`
    Eq,
    /// `!=`: unequal or not in the set.
    Neq,
    /// `<`
    Lt,
    /// `>`
    Gt,
    /// `<=`
    Lte,
    /// `>=`
    Gte,
    /// `! BITS`: none of the bits of a bit mask.
    None,
}

/// What becomes of the packet.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// `accept`: it may pass, as far as this base chain is concerned.
    Accept,
    /// `drop`
    Drop,
    /// `continue`: the next rule.
    Continue,
    /// `return`: back to the rule after the jump.
    Return,
    /// `jump CHAIN`: to come back.
    Jump(Name),
    /// `goto CHAIN`: not to come back.
    Goto(Name),
}

/// `KEY vmap @MAP` or `KEY vmap { key : verdict, ... }`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Vmap {
    /// What is looked up.
    pub key: Expression,
    /// Where.
    pub map: Mapping<Verdict>,
}

/// `counter [packets N bytes N]`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counter {
    /// Packets to start with, or counted.
    pub packets: u64,
    /// Bytes to start with, or counted.
    pub bytes: u64,
}

/// `quota [over] N bytes [used N bytes]`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Quota {
    /// The limit.
    pub bytes: u64,
    /// Bytes used up.
    pub used: u64,
    /// Match above the limit instead of below.
    pub over: bool,
}

/// `last [used TIME]`: when the rule or the element was last reached. Since Linux 5.14; nft 1.0.6 does not know it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Last {
    /// How long ago; `None` is never.
    pub used: Option<Duration>,
}

/// `limit rate [over] N[bytes]/UNIT [burst N]`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    /// Packets, or bytes, in a unit of time.
    pub rate: u64,
    /// The unit of time.
    pub per: TimeUnit,
    /// What may come at once; `None` is nft's default: 5 packets, no bytes.
    pub burst: Option<u32>,
    /// Count bytes, not packets.
    pub bytes: bool,
    /// Match above the limit instead of below.
    pub over: bool,
}

/// A unit of time of a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TimeUnit {
    /// `second`
    Second,
    /// `minute`
    Minute,
    /// `hour`
    Hour,
    /// `day`
    Day,
    /// `week`
    Week,
}

/// `log [prefix "x"] [level x] [flags x] [group N] [snaplen N] [queue-threshold N]`
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Log {
    /// What the line starts with, at most 127 bytes. nft takes a `$` in it for a variable, and reads no text that has one; by netlink it is a `$`.
    pub prefix: Option<Comment>,
    /// syslog's level, 0 (`emerg`) to 7 (`debug`), or 8 (`audit`); `None` is 4, `warn`.
    pub level: Option<u8>,
    /// What to say of the packet.
    pub flags: LogFlags,
    /// Send it to this `nfnetlink_log` group instead of the kernel's log.
    pub group: Option<u16>,
    /// Bytes of the packet to send to the group.
    pub snaplen: Option<u32>,
    /// Packets to collect before they are sent.
    pub queue_threshold: Option<u16>,
}

/// `reject [with ...]`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reject {
    /// `reject`: ICMP's "port unreachable" of the packet's own family.
    Default,
    /// `with tcp reset`
    TcpReset,
    /// `with icmp CODE`
    Icmp(u8),
    /// `with icmpv6 CODE`
    Icmpv6(u8),
    /// `with icmpx CODE`: 0 no-route, 1 port-unreachable, 2 host-unreachable, 3 admin-prohibited.
    Icmpx(u8),
}

/// `dnat|snat [ip|ip6] to TARGET [FLAGS]`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Nat {
    /// `ip` or `ip6`; needed in tables of family inet (nft reads no text without it; by netlink an address says it itself), and for [`NatTarget::Concat`] and [`NatTarget::ConcatInterval`].
    pub family: Option<Family>,
    /// Where to.
    pub to: NatTarget,
    /// How to choose among several.
    pub flags: NatFlags,
}

/// The new address, port or both.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NatTarget {
    /// `to ADDRESS`: a constant, a range, a map to one, or a prefix, which is a range as well unless [`NatFlags::NETMAP`] keeps the rest of
    /// the packet's address.
    Address(Expression),
    /// `to :PORT`
    Port(Expression),
    /// `to ADDRESS:PORT`
    AddressPort(Expression, Expression),
    /// `ip to MAP`: an expression, usually a map, that gives `address . port`.
    Concat(Expression),
    /// `to MAP` of an interval map whose values are ranges or prefixes of addresses.
    Interval(Expression),
    /// `ip to MAP` of an interval map whose values are ranges of addresses and of ports: `10.0.0.0/24 . 8000-8080`.
    ConcatInterval(Expression),
}

/// `masquerade|redirect [to :PORT] [FLAGS]`
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PortNat {
    /// A port or a range of ports.
    pub port: Option<Expression>,
    /// How to choose among several.
    pub flags: NatFlags,
}

/// `tproxy [ip|ip6] to [ADDRESS][:PORT]`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tproxy {
    /// `ip` or `ip6`, in tables of family inet.
    pub family: Option<Family>,
    /// The address of the socket.
    pub address: Option<Expression>,
    /// Its port.
    pub port: Option<Expression>,
}

/// `dup to ADDRESS [device DEVICE]`, or in family netdev `dup to DEVICE`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dup {
    /// The address of the gateway; absent in family netdev.
    pub address: Option<Expression>,
    /// The index of a device.
    pub device: Option<Expression>,
}

/// `fwd to DEVICE`, or `fwd ip|ip6 to ADDRESS device DEVICE`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fwd {
    /// The index of a device.
    pub device: Expression,
    /// The address of a neighbour on it.
    pub address: Option<(Family, Expression)>,
}

/// `queue [flags ...] to NUMBER`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Queue {
    /// A number, a range, or an expression that gives one.
    pub to: Expression,
    /// Let packets pass when nobody listens.
    pub bypass: bool,
    /// Spread over the range by processor.
    pub fanout: bool,
}

/// `KEY set VALUE`: changes the packet or what is known of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mangle {
    /// What is changed: payload, meta, ct, or an option.
    pub key: Expression,
    /// To what.
    pub value: Expression,
}

/// `add|update|delete @SET { KEY [timeout T] [STATEMENTS] [: VALUE] }`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetUpdate {
    /// Add it, add it or renew its timeout, or delete it.
    pub op: SetOp,
    /// The set or map; it needs the flag `dynamic`.
    pub set: Name,
    /// The key. Constants in it have the types of the set's keys, if the transaction adds the set; else only those are possible that have a type of
    /// their own, such as addresses. Anything else has to be of these types, too.
    pub key: Expression,
    /// For maps: the value. nft before 1.0.9 aborts when it lists a rule whose value comes from a map; give something of the packet.
    pub value: Option<Expression>,
    /// When the element is to go, if not after the set's own time.
    pub timeout: Option<Duration>,
    /// What the element carries: counters, limits and the like.
    pub statements: Vec<Statement>,
}

/// `meter NAME [size N] { KEY [timeout T] STATEMENT }`: a set of the rule's own. nft calls meters obsolete; a [`SetUpdate`] says the same with a
/// set that is not the rule's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Meter {
    /// Its name, which no set of the table may have.
    pub name: Name,
    /// The most elements that there may be.
    pub size: u32,
    /// The key.
    pub key: Expression,
    /// When an element is to go, if at all.
    pub timeout: Option<Duration>,
    /// What an element carries.
    pub statements: Vec<Statement>,
}

/// What is done with an element.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SetOp {
    /// `add`
    Add,
    /// `update`
    Update,
    /// `delete`
    Delete,
}

/// `ct count [over] N`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Connlimit {
    /// Connections.
    pub count: u32,
    /// Match above instead of below.
    pub over: bool,
}

/// `synproxy [mss N] [wscale N] [timestamp] [sack-perm]`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Synproxy {
    /// Maximum segment size to announce.
    pub mss: Option<u16>,
    /// Window scale to announce.
    pub wscale: Option<u8>,
    /// Announce time stamps.
    pub timestamp: bool,
    /// Announce selective acknowledgement.
    pub sack_perm: bool,
}

/// A stateful object that the rule uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectReference {
    /// What kind of object.
    pub kind: ObjectKind,
    /// Its name, or an expression over a map that gives its name.
    pub object: ObjectName,
}

/// Which object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ObjectName {
    /// This one.
    Named(Name),
    /// The one that a map of objects gives for a key.
    Map(Box<Expression>, Name),
    /// The same, with the map given in place: `ip saddr map { 1.1.1.1 : "x" }`.
    Among(Box<Expression>, Vec<(Expression, Name)>),
}

impl Match {
    /// `LEFT RIGHT`: equal, in the set, or any of the bits.
    pub fn new(left: impl Into<Expression>, right: impl Into<Expression>) -> Self {
        Self { left: left.into(), op: MatchOp::In, right: right.into() }
    }

    /// `LEFT != RIGHT`
    pub fn not(left: impl Into<Expression>, right: impl Into<Expression>) -> Self {
        Self { left: left.into(), op: MatchOp::Neq, right: right.into() }
    }

    /// `LEFT OP RIGHT`
    pub fn with(left: impl Into<Expression>, op: MatchOp, right: impl Into<Expression>) -> Self {
        Self { left: left.into(), op, right: right.into() }
    }
}

impl Vmap {
    /// `KEY vmap MAP`
    pub fn new(key: impl Into<Expression>, map: impl Into<Mapping<Verdict>>) -> Self {
        Self { key: key.into(), map: map.into() }
    }
}

impl Nat {
    /// `to ADDRESS`
    pub fn to(address: impl Into<Expression>) -> Self {
        Self { family: None, to: NatTarget::Address(address.into()), flags: NatFlags::empty() }
    }

    /// `to ADDRESS:PORT`
    pub fn to_port(address: impl Into<Expression>, port: impl Into<Expression>) -> Self {
        Self {
            family: None,
            to: NatTarget::AddressPort(address.into(), port.into()),
            flags: NatFlags::empty(),
        }
    }

    /// `FAMILY to EXPRESSION`, which gives `address . port`.
    pub fn to_concat(family: Family, of: impl Into<Expression>) -> Self {
        Self { family: Some(family), to: NatTarget::Concat(of.into()), flags: NatFlags::empty() }
    }
}

impl Mangle {
    /// `KEY set VALUE`
    pub fn new(key: impl Into<Expression>, value: impl Into<Expression>) -> Self {
        Self { key: key.into(), value: value.into() }
    }
}

impl SetUpdate {
    /// `update @SET { KEY }`
    pub fn update(set: &Name, key: impl Into<Expression>) -> Self {
        Self {
            op: SetOp::Update,
            set: set.clone(),
            key: key.into(),
            value: None,
            timeout: None,
            statements: Vec::new(),
        }
    }
}

macro_rules! into_statement {
    ($($kind:ident)*) => {$(
        impl From<$kind> for Statement {
            fn from(statement: $kind) -> Self {
                Self::$kind(statement)
            }
        }
    )*};
}

into_statement! { Match Verdict Vmap Counter Quota Last Limit Log Reject Tproxy Dup Fwd Queue Mangle Meter Connlimit Synproxy }

impl From<SetUpdate> for Statement {
    fn from(update: SetUpdate) -> Self {
        Self::Set(update)
    }
}

impl From<ObjectReference> for Statement {
    fn from(reference: ObjectReference) -> Self {
        Self::Object(reference)
    }
}
