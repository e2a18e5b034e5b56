//! Statements of the rule language: matches and actions. Nodes have the names of libnftables-json(5).

use std::time::Duration;

use crate::expr::{self, LogFlags, NatFlags, ObjectKind, Verdict};
use crate::family::Family;
use crate::name::{Comment, Name};
use crate::tree::exthdr::Exthdr;
use crate::tree::{BoundChain, Expression, IcmpCode, Icmpv6Code, IcmpxCode, Mapping};

/// A statement of a rule. A rule is a list of statements; the first match that fails ends its evaluation.
///
/// Statements with expressions are boxed, which keeps a list of statements short.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Statement {
    /// `LEFT [OP] RIGHT`
    Match(Box<Match>),
    /// `accept`, `jump CHAIN` and the like.
    Verdict(Verdict),
    /// `jump { ... }` or `goto { ... }`: a chain that belongs to the rule.
    Bound(Box<BoundChain>),
    /// `KEY vmap ...`
    Vmap(Box<Vmap>),
    /// `counter`
    Counter(Counter),
    /// `quota`
    Quota(Quota),
    /// `limit`
    Limit(Limit),
    /// `last`
    Last(Last),
    /// `log`
    Log(Box<Log>),
    /// `reject`
    Reject(Reject),
    /// `dnat`
    Dnat(Box<Nat>),
    /// `snat`
    Snat(Box<Nat>),
    /// `masquerade`
    Masquerade(Box<PortNat>),
    /// `redirect`
    Redirect(Box<PortNat>),
    /// `tproxy`
    Tproxy(Box<Tproxy>),
    /// `dup`
    Dup(Box<Dup>),
    /// `fwd`
    Fwd(Box<Fwd>),
    /// `queue`
    Queue(Box<Queue>),
    /// `notrack`
    Notrack,
    /// `KEY set VALUE`
    Mangle(Box<Mangle>),
    /// `add|update|delete @SET { ... }`
    Set(Box<SetUpdate>),
    /// `meter NAME { ... }`
    Meter(Box<Meter>),
    /// `ct count [over] N`
    Connlimit(Connlimit),
    /// `synproxy`
    Synproxy(Synproxy),
    /// `flow add @FLOWTABLE`
    FlowAdd(Name),
    /// `counter name "x"` and the like: a stateful object.
    Object(Box<ObjectReference>),
    /// `reset tcp option NAME`: removes the option.
    ResetOption(Exthdr),
    /// Low-level expressions that the language cannot represent. They are sent unchanged, and print as `xt match
    /// "NAME"` if they are modules of xtables, as in nft, or as `unknown expressions`: no reader takes such a
    /// rule.
    Raw(Vec<expr::Expr>),
}

/// Compares an expression with a value: `LEFT [OP] RIGHT`.
///
/// ```
/// use sluicegate_nftables::lang::{CtState, Match, MatchOp, Payload};
/// use sluicegate_nftables::{Family, Port, TableId, expr::CtKey};
///
/// let input = TableId::new(Family::INET, "firewall".parse()?).chain("input".parse()?);
/// let rule = input
///     .rule()
///     .then(Match::new(CtKey::STATE, CtState::NEW))
///     .then(Match::with(Payload::TCP_DPORT, MatchOp::Gte, Port(1024)));
/// assert_eq!(rule.body().to_string(), "ct state new tcp dport >= 1024");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Match {
    /// The expression that is compared.
    pub left: Expression,
    /// The operator.
    pub op: MatchOp,
    /// The value: a constant, a prefix, a range or a set.
    pub right: Expression,
}

/// A comparison operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MatchOp {
    /// No operator: equal to the value or in the set; for bit masks (`ct state new,related`), any of the
    /// bits is set.
    In,
    /// `==`
    Eq,
    /// `!=`: not equal, or not in the set.
    Neq,
    /// `<`
    Lt,
    /// `>`
    Gt,
    /// `<=`
    Lte,
    /// `>=`
    Gte,
    /// `! BITS`: none of the bits is set.
    None,
}

/// Takes the verdict that a map has for a key: `KEY vmap @MAP` or `KEY vmap { key : verdict, ... }`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Vmap {
    /// The key expression.
    pub key: Expression,
    /// The map.
    pub map: Mapping<Verdict>,
}

/// Counts the packets and bytes that reach it: `counter [packets N bytes N]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counter {
    /// Packets: the initial value, or the packets counted.
    pub packets: u64,
    /// Bytes: the initial value, or the bytes counted.
    pub bytes: u64,
}

/// Matches until a number of bytes has passed, or from then on: `quota [over] N bytes [used N bytes]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Quota {
    /// The limit in bytes.
    pub bytes: u64,
    /// Bytes used so far.
    pub used: u64,
    /// Match above the limit instead of below it.
    pub over: bool,
}

/// Records when a rule or an element was last matched: `last [used TIME]`. Since Linux 5.14; nft 1.0.6 does
/// not support it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Last {
    /// The time since the last match; `None` for never.
    pub used: Option<Duration>,
}

/// Matches up to a rate of packets or bytes, or above it: `limit rate [over] N[bytes]/UNIT [burst N]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    /// Packets, or bytes, per unit of time.
    pub rate: u64,
    /// The unit of time.
    pub per: TimeUnit,
    /// The burst; `None` for nft's default: 5 packets, or no bytes.
    pub burst: Option<u32>,
    /// Whether bytes are counted instead of packets.
    pub bytes: bool,
    /// Match above the limit instead of below it.
    pub over: bool,
}

/// The unit of time of a limit.
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

impl TimeUnit {
    /// The units by nft's words for them.
    pub(crate) const NAMES: [(&'static str, Self); 5] = [
        ("second", Self::Second),
        ("minute", Self::Minute),
        ("hour", Self::Hour),
        ("day", Self::Day),
        ("week", Self::Week),
    ];
}

/// Units of bytes by nft's words for them.
#[cfg(feature = "text")]
pub(crate) const BYTE_UNITS: [(&str, u64); 3] = [("bytes", 1), ("kbytes", 1 << 10), ("mbytes", 1 << 20)];

/// Logs the packet in the kernel's log, or to a group of `nfnetlink_log`:
/// `log [prefix "x"] [level x] [flags x] [group N] [snaplen N] [queue-threshold N]`
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Log {
    /// The prefix of the log line, at most 127 bytes. nft reads a `$` in it as the start of a variable, so
    /// it cannot load a text that contains one; sent by this crate, it is an ordinary character.
    pub prefix: Option<Comment>,
    /// The syslog level, 0 (`emerg`) to 7 (`debug`), or 8 (`audit`); `None` for 4, `warn`.
    pub level: Option<u8>,
    /// The parts of the packet that are logged.
    pub flags: LogFlags,
    /// Send to this `nfnetlink_log` group instead of the kernel's log.
    pub group: Option<u16>,
    /// Bytes of each packet that are sent to the group.
    pub snaplen: Option<u32>,
    /// Packets that are queued in the kernel before they are sent.
    pub queue_threshold: Option<u16>,
}

impl Log {
    /// nft's words for the levels, by number: syslog's, and `NFT_LOGLEVEL_AUDIT` behind them.
    pub(crate) const LEVELS: [&'static str; 9] =
        ["emerg", "alert", "crit", "err", "warn", "notice", "info", "debug", "audit"];
}

/// Drops the packet and tells its sender by an ICMP message or a TCP reset: `reject [with ...]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reject {
    /// `reject`: ICMP "port unreachable" in the packet's own family.
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

/// Translates the destination or source of a connection: `dnat|snat [ip|ip6] to TARGET [FLAGS]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Nat {
    /// `ip` or `ip6`; required in tables of family inet (in nft text; sent by this crate, an address implies
    /// it), and for [`NatTarget::Concat`] and [`NatTarget::ConcatInterval`].
    pub family: Option<Family>,
    /// The new address, port, or both.
    pub to: NatTarget,
    /// How an address and a port are selected from several.
    pub flags: NatFlags,
}

/// The new address or port of a translation, or both.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NatTarget {
    /// `to ADDRESS`: a constant, a range, a map whose values are addresses, or a prefix. A prefix is used as
    /// a range, unless [`NatFlags::NETMAP`] keeps the host bits of the packet's address.
    Address(Expression),
    /// `to :PORT`
    Port(Expression),
    /// `to ADDRESS:PORT`
    AddressPort(Expression, Expression),
    /// `ip to MAP`: an expression, usually a map, whose value is `address . port`.
    Concat(Expression),
    /// `to MAP` with an interval map whose values are ranges or prefixes of addresses.
    Interval(Expression),
    /// `ip to MAP` with an interval map whose values are ranges of addresses and of ports: `10.0.0.0/24 .
    /// 8000-8080`.
    ConcatInterval(Expression),
}

/// Translates the source to an address of the outgoing device, or the destination to this host:
/// `masquerade|redirect [to :PORT] [FLAGS]`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PortNat {
    /// A port or a range of ports.
    pub port: Option<Expression>,
    /// How a port is selected from several.
    pub flags: NatFlags,
}

/// Gives the packet to a local socket without changing it: `tproxy [ip|ip6] to [ADDRESS][:PORT]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tproxy {
    /// `ip` or `ip6`, in tables of family inet.
    pub family: Option<Family>,
    /// The address of the socket.
    pub address: Option<Expression>,
    /// The port of the socket.
    pub port: Option<Expression>,
}

/// Sends a copy of the packet elsewhere: `dup to ADDRESS [device DEVICE]`, or in family netdev
/// `dup to DEVICE`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dup {
    /// The address of the gateway; absent in family netdev.
    pub address: Option<Expression>,
    /// The index of the output device.
    pub device: Option<Expression>,
}

/// Sends the packet out of a device, past the routing tables: `fwd to DEVICE`, or
/// `fwd ip|ip6 to ADDRESS device DEVICE`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fwd {
    /// The index of the output device.
    pub device: Expression,
    /// The address of a neighbour on the device.
    pub address: Option<(Family, Expression)>,
}

/// Passes the packet to a program that reads from a queue: `queue [flags ...] to NUMBER`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Queue {
    /// The queue number, a range of them, or an expression whose value is one.
    pub to: Expression,
    /// Accept packets when no program listens on the queue.
    pub bypass: bool,
    /// Distribute packets over the range by processor.
    pub fanout: bool,
}

/// Changes the packet, its metadata or its connection tracking entry: `KEY set VALUE`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mangle {
    /// The key: payload, meta, ct, or an option.
    pub key: Expression,
    /// The new value.
    pub value: Expression,
}

/// Changes an element of a set or map from a rule:
/// `add|update|delete @SET { KEY [timeout T] [STATEMENTS] [: VALUE] }`.
///
/// ```
/// use std::time::Duration;
///
/// use sluicegate_nftables::lang::{Counter, Payload, SetUpdate, Statement};
///
/// let seen = SetUpdate::update(&"seen".parse()?, Payload::IP_SADDR);
/// let seen: Statement = seen.timeout(Duration::from_secs(60)).then(Counter::default()).into();
/// assert_eq!(seen.to_string(), "update @seen { ip saddr timeout 1m counter }");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetUpdate {
    /// Add an element, add it or renew its timeout, or delete it.
    pub op: SetOp,
    /// The set or map; it must have the flag `dynamic`.
    pub set: Name,
    /// The key. Constants in it get the types of the set's keys, if the transaction adds the set; otherwise
    /// only constants that have a type of their own, such as addresses, are possible. All other expressions
    /// must have these types as well.
    pub key: Expression,
    /// The value, for maps. nft before 1.0.9 aborts when it lists a rule whose value comes from a map; use
    /// an expression that reads the packet.
    pub value: Option<Expression>,
    /// The timeout of the element, if not the timeout of the set.
    pub timeout: Option<Duration>,
    /// The statements of the element: counters, limits and the like.
    pub statements: Vec<Statement>,
}

/// A set that belongs to the rule, with a statement for each key:
/// `meter NAME [size N] { KEY [timeout T] STATEMENT }`. nft calls meters obsolete; a [`SetUpdate`] does the
/// same with a set of the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Meter {
    /// The name, which no set of the table may have.
    pub name: Name,
    /// The maximum number of elements.
    pub size: u32,
    /// The key.
    pub key: Expression,
    /// The timeout of an element, if any.
    pub timeout: Option<Duration>,
    /// The statement of an element.
    pub statements: Vec<Statement>,
}

/// The operation of a [`SetUpdate`] on an element.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SetOp {
    /// `add`
    Add,
    /// `update`
    Update,
    /// `delete`
    Delete,
}

/// Matches up to a number of connections, or above it: `ct count [over] N`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Connlimit {
    /// The limit of connections.
    pub count: u32,
    /// Match above the limit instead of below it.
    pub over: bool,
}

/// Answers TCP SYN packets in place of the server, until the client has proved its address:
/// `synproxy [mss N] [wscale N] [timestamp] [sack-perm]`.
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
    /// The kind of object.
    pub kind: ObjectKind,
    /// The name, or a map that contains it.
    pub object: ObjectName,
}

/// The stateful object of an [`ObjectReference`]: one by its name, or a map that leads to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ObjectName {
    /// The object with this name.
    Named(Name),
    /// The object that a map of objects contains for a key.
    Map(Box<Expression>, Name),
    /// The object that an anonymous map contains for a key: `ip saddr map { 1.1.1.1 : "x" }`.
    Among(Box<Expression>, Vec<(Expression, Name)>),
}

impl Match {
    /// Creates `LEFT RIGHT`: equal to the value, in the set, or any of the bits is set.
    pub fn new(left: impl Into<Expression>, right: impl Into<Expression>) -> Self {
        Self { left: left.into(), op: MatchOp::In, right: right.into() }
    }

    /// Creates `LEFT != RIGHT`.
    pub fn not(left: impl Into<Expression>, right: impl Into<Expression>) -> Self {
        Self { left: left.into(), op: MatchOp::Neq, right: right.into() }
    }

    /// Creates `LEFT OP RIGHT`.
    pub fn with(left: impl Into<Expression>, op: MatchOp, right: impl Into<Expression>) -> Self {
        Self { left: left.into(), op, right: right.into() }
    }
}

impl Limit {
    /// Creates `limit rate N/UNIT`: matches while at most so many packets pass.
    ///
    /// ```
    /// use sluicegate_nftables::lang::{Limit, Statement, TimeUnit};
    ///
    /// let limit = Statement::from(Limit::packets(10, TimeUnit::Second).burst(20));
    /// assert_eq!(limit.to_string(), "limit rate 10/second burst 20 packets");
    /// let limit = Statement::from(Limit::bytes(1 << 20, TimeUnit::Second).over());
    /// assert_eq!(limit.to_string(), "limit rate over 1 mbytes/second");
    /// ```
    #[must_use]
    pub const fn packets(rate: u64, per: TimeUnit) -> Self {
        Self { rate, per, burst: None, bytes: false, over: false }
    }

    /// Creates `limit rate N bytes/UNIT`: matches while at most so many bytes pass.
    #[must_use]
    pub const fn bytes(rate: u64, per: TimeUnit) -> Self {
        Self { bytes: true, ..Self::packets(rate, per) }
    }

    /// Sets the burst: how many packets or bytes may pass at once.
    #[must_use]
    pub const fn burst(mut self, burst: u32) -> Self {
        self.burst = Some(burst);
        self
    }

    /// Matches what exceeds the limit instead.
    #[must_use]
    pub const fn over(mut self) -> Self {
        self.over = true;
        self
    }
}

impl Reject {
    /// `reject with icmp CODE`
    #[must_use]
    pub const fn icmp(code: IcmpCode) -> Self {
        Self::Icmp(code.0)
    }

    /// `reject with icmpv6 CODE`
    #[must_use]
    pub const fn icmpv6(code: Icmpv6Code) -> Self {
        Self::Icmpv6(code.0)
    }

    /// `reject with icmpx CODE`, for tables of several families.
    #[must_use]
    pub const fn icmpx(code: IcmpxCode) -> Self {
        Self::Icmpx(code.0)
    }
}

impl PortNat {
    /// Creates `to :PORT`, with a port or a range of ports.
    pub fn to(port: impl Into<Expression>) -> Self {
        Self { port: Some(port.into()), flags: NatFlags::empty() }
    }

    /// Sets how a port is selected from several.
    #[must_use]
    pub const fn flags(mut self, flags: NatFlags) -> Self {
        self.flags = flags;
        self
    }
}

/// Creates `to :PORT`.
impl<P: Into<Expression>> From<P> for PortNat {
    fn from(port: P) -> Self {
        Self::to(port)
    }
}

/// Creates `to ADDRESS`.
impl<A: Into<Expression>> From<A> for Nat {
    fn from(address: A) -> Self {
        Self::to(address)
    }
}

impl Vmap {
    /// Creates `KEY vmap MAP`.
    pub fn new(key: impl Into<Expression>, map: impl Into<Mapping<Verdict>>) -> Self {
        Self { key: key.into(), map: map.into() }
    }
}

impl Nat {
    /// Creates `to ADDRESS`.
    pub fn to(address: impl Into<Expression>) -> Self {
        Self { family: None, to: NatTarget::Address(address.into()), flags: NatFlags::empty() }
    }

    /// Creates `to ADDRESS:PORT`.
    pub fn to_port(address: impl Into<Expression>, port: impl Into<Expression>) -> Self {
        Self {
            family: None,
            to: NatTarget::AddressPort(address.into(), port.into()),
            flags: NatFlags::empty(),
        }
    }

    /// Creates `FAMILY to EXPRESSION`, where the value of the expression is `address . port`.
    pub fn to_concat(family: Family, of: impl Into<Expression>) -> Self {
        Self { family: Some(family), to: NatTarget::Concat(of.into()), flags: NatFlags::empty() }
    }
}

impl Mangle {
    /// Creates `KEY set VALUE`.
    pub fn new(key: impl Into<Expression>, value: impl Into<Expression>) -> Self {
        Self { key: key.into(), value: value.into() }
    }
}

impl SetUpdate {
    /// Creates `add @SET { KEY }`.
    pub fn add(set: &Name, key: impl Into<Expression>) -> Self {
        Self {
            op: SetOp::Add,
            set: set.clone(),
            key: key.into(),
            value: None,
            timeout: None,
            statements: Vec::new(),
        }
    }

    /// Creates `update @SET { KEY }`.
    pub fn update(set: &Name, key: impl Into<Expression>) -> Self {
        Self { op: SetOp::Update, ..Self::add(set, key) }
    }

    /// Creates `delete @SET { KEY }`.
    pub fn delete(set: &Name, key: impl Into<Expression>) -> Self {
        Self { op: SetOp::Delete, ..Self::add(set, key) }
    }

    /// Sets the value, for maps ([`value`](Self::value)).
    #[must_use]
    pub fn value(mut self, value: impl Into<Expression>) -> Self {
        self.value = Some(value.into());
        self
    }

    /// Sets the timeout of the element ([`timeout`](Self::timeout)).
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Adds a statement of the element.
    #[must_use]
    pub fn then(mut self, statement: impl Into<Statement>) -> Self {
        self.statements.push(statement.into());
        self
    }
}

impl Statement {
    /// Creates `dnat to ...`, with an address or a [`Nat`].
    pub fn dnat(nat: impl Into<Nat>) -> Self {
        Self::Dnat(Box::new(nat.into()))
    }

    /// Creates `snat to ...`, with an address or a [`Nat`].
    pub fn snat(nat: impl Into<Nat>) -> Self {
        Self::Snat(Box::new(nat.into()))
    }

    /// Creates `masquerade`, with a port, a range of ports or a [`PortNat`]; `PortNat::default()` for none.
    pub fn masquerade(nat: impl Into<PortNat>) -> Self {
        Self::Masquerade(Box::new(nat.into()))
    }

    /// Creates `redirect`, with a port, a range of ports or a [`PortNat`]; `PortNat::default()` for none.
    pub fn redirect(nat: impl Into<PortNat>) -> Self {
        Self::Redirect(Box::new(nat.into()))
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

into_statement! { Verdict Counter Quota Last Limit Reject Connlimit Synproxy }

macro_rules! into_boxed_statement {
    ($($kind:ident)*) => {$(
        impl From<$kind> for Statement {
            fn from(statement: $kind) -> Self {
                Self::$kind(Box::new(statement))
            }
        }
    )*};
}

into_boxed_statement! { Match Vmap Log Tproxy Dup Fwd Queue Mangle Meter }

impl From<SetUpdate> for Statement {
    fn from(update: SetUpdate) -> Self {
        Self::Set(Box::new(update))
    }
}

impl From<ObjectReference> for Statement {
    fn from(reference: ObjectReference) -> Self {
        Self::Object(Box::new(reference))
    }
}
