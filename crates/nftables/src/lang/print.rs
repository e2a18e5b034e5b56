//! nft text of the tree: what `nft -f` reads, in the words in which `nft list` writes.

use std::fmt::{self, Display, Formatter};
use std::time::Duration;

use crate::datatype::DataType;
use crate::expr::{FibFlags, LogFlags, MetaKey, NatFlags, ObjectKind, SocketKey};
use crate::key::{Part, write_number, write_part};
use crate::lang::expression::*;
use crate::lang::statement::*;
use crate::name::Name;

impl Display for Expression {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        Typed(self, &[]).fmt(f)
    }
}

/// An expression, and the types that its context gives to its constants.
struct Typed<'a>(&'a Expression, &'a [Part]);

impl Display for Typed<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self(expression, parts) = *self;
        match expression {
            Expression::Payload(payload) => payload.fmt(f),
            Expression::RawPayload(raw) => write!(f, "@{},{},{}", raw.base, raw.offset, raw.bits),
            Expression::Exthdr(exthdr) => exthdr.fmt(f),
            Expression::Meta(key) => write_meta(f, *key),
            Expression::Ct(ct) => ct.fmt(f),
            Expression::Rt(rt) => write!(f, "rt {}", rt.key),
            Expression::Socket(socket) => socket.fmt(f),
            Expression::Osf(osf) => osf.fmt(f),
            Expression::Fib(fib) => fib.fmt(f),
            Expression::Numgen(numgen) => numgen.fmt(f),
            Expression::Jhash(jhash) => jhash.fmt(f),
            Expression::Symhash(symhash) => {
                write!(f, "symhash mod {}", symhash.modulus)?;
                write_offset(f, symhash.offset)
            }
            Expression::Ipsec(ipsec) => ipsec.fmt(f),
            Expression::Concat(list) => write_concat(f, list, parts),
            Expression::Binary(binary) => write_binary(f, binary, parts),
            Expression::Map(map) => {
                write!(f, "{} map ", map.key)?;
                write_mapping(f, &map.map, &map.key.parts(), |value, f| Typed(value, parts).fmt(f))
            }
            Expression::Value(value) => write_value(f, value, parts.first().copied()),
            Expression::Prefix(prefix) => {
                write_value(f, &prefix.value, parts.first().copied())?;
                write!(f, "/{}", prefix.length)
            }
            Expression::Range(range) => {
                write_value(f, &range.0, parts.first().copied())?;
                f.write_str("-")?;
                write_value(f, &range.1, parts.first().copied())
            }
            Expression::Set(members) => write_set(f, members, parts),
            Expression::Named(name) => write!(f, "@{name}"),
        }
    }
}

/// Constants of a concatenation have one type each.
fn write_concat(f: &mut Formatter<'_>, list: &[Expression], parts: &[Part]) -> fmt::Result {
    for (i, expression) in list.iter().enumerate() {
        if i > 0 {
            f.write_str(" . ")?;
        }
        Typed(expression, parts.get(i..=i).unwrap_or_default()).fmt(f)?;
    }
    Ok(())
}

fn write_binary(f: &mut Formatter<'_>, binary: &Binary, parts: &[Part]) -> fmt::Result {
    let own = binary.left.parts();
    let parts = if own.is_empty() { parts } else { &own };
    let parts = match binary.op {
        // How far to shift is a plain number whatever is shifted.
        BinaryOp::ShiftLeft | BinaryOp::ShiftRight => &[],
        _ => parts,
    };
    match &binary.left {
        Expression::Binary(inner) if inner.op.binds() < binary.op.binds() => write!(f, "({})", binary.left)?,
        left => write!(f, "{left}")?,
    }
    write!(f, " {} ", binary.op)?;
    match (&binary.right, parts.first()) {
        // Here a comma would be nft's list, not its "or".
        (Expression::Value(Value::Number(number)), Some(part)) if part.data_type().is_bitmask() => {
            let bits = Typed(&Value::Number(*number).into(), parts).to_string();
            match bits.contains(',') {
                true => write!(f, "({})", bits.replace(',', " | ")),
                false => f.write_str(&bits),
            }
        }
        _ => Typed(&binary.right, parts).fmt(f),
    }
}

fn write_set(f: &mut Formatter<'_>, members: &[Expression], parts: &[Part]) -> fmt::Result {
    if members.is_empty() {
        return f.write_str("*");
    }
    f.write_str("{ ")?;
    for (i, member) in members.iter().enumerate() {
        if i > 0 {
            f.write_str(", ")?;
        }
        Typed(member, parts).fmt(f)?;
    }
    f.write_str(" }")
}

fn write_mapping<V>(
    f: &mut Formatter<'_>,
    map: &Mapping<V>,
    parts: &[Part],
    value: impl Fn(&V, &mut Formatter<'_>) -> fmt::Result,
) -> fmt::Result {
    let pairs = match map {
        Mapping::Named(name) => return write!(f, "@{name}"),
        Mapping::Anonymous(pairs) => pairs,
    };
    f.write_str("{ ")?;
    for (i, (key, v)) in pairs.iter().enumerate() {
        if i > 0 {
            f.write_str(", ")?;
        }
        Typed(key, parts).fmt(f)?;
        f.write_str(" : ")?;
        value(v, f)?;
    }
    f.write_str(" }")
}

fn write_value(f: &mut Formatter<'_>, value: &Value, part: Option<Part>) -> fmt::Result {
    match (value, part) {
        (Value::Number(number), Some(part)) => write_number(f, part.data_type(), *number),
        (Value::Number(number), None) => write!(f, "{number}"),
        (Value::Address(address), _) => address.fmt(f),
        (Value::Ether(address), _) => address.fmt(f),
        (Value::Interface(name) | Value::Text(name), _) => name.fmt(f),
        (Value::Bytes(bytes), Some(part)) if part.bytes() == bytes.len() => write_part(f, part, bytes),
        (Value::Bytes(bytes), _) => {
            f.write_str("0x")?;
            bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
        }
    }
}

fn write_meta(f: &mut Formatter<'_>, key: MetaKey) -> fmt::Result {
    match key {
        MetaKey::IIF
        | MetaKey::OIF
        | MetaKey::IIFNAME
        | MetaKey::OIFNAME
        | MetaKey::IIFGROUP
        | MetaKey::OIFGROUP => key.fmt(f),
        key => write!(f, "meta {key}"),
    }
}

impl Display for Ct {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.direction {
            Some(direction) => write!(f, "ct {direction} {}", self.key),
            None => write!(f, "ct {}", self.key),
        }
    }
}

impl Display for Socket {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "socket {}", self.key)?;
        match self.level {
            Some(level) if self.key == SocketKey::CGROUPV2 => write!(f, " level {level}"),
            _ => Ok(()),
        }
    }
}

impl Display for Osf {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self.ttl {
            1 => "osf ttl loose ",
            2 => "osf ttl skip ",
            _ => "osf ",
        })?;
        f.write_str(if self.version { "version" } else { "name" })
    }
}

impl Display for Fib {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        const NAMES: [(FibFlags, &str); 5] = [
            (FibFlags::SADDR, "saddr"),
            (FibFlags::DADDR, "daddr"),
            (FibFlags::MARK, "mark"),
            (FibFlags::IIF, "iif"),
            (FibFlags::OIF, "oif"),
        ];
        f.write_str("fib ")?;
        let names = NAMES.iter().filter(|(flag, _)| self.flags.contains(*flag)).map(|(_, name)| *name);
        for (i, name) in names.enumerate() {
            if i > 0 {
                f.write_str(" . ")?;
            }
            f.write_str(name)?;
        }
        write!(f, " {}", self.result)
    }
}

impl Display for Numgen {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "numgen {} mod {}", self.mode, self.modulus)?;
        write_offset(f, self.offset)
    }
}

impl Display for Jhash {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "jhash {} mod {}", self.of, self.modulus)?;
        if let Some(seed) = self.seed {
            write!(f, " seed {seed:#x}")?;
        }
        write_offset(f, self.offset)
    }
}

fn write_offset(f: &mut Formatter<'_>, offset: u32) -> fmt::Result {
    if offset == 0 { Ok(()) } else { write!(f, " offset {offset}") }
}

impl Display for Ipsec {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "ipsec {} ", if self.out { "out" } else { "in" })?;
        if self.number > 0 {
            write!(f, "spnum {} ", self.number)?;
        }
        self.key.fmt(f)
    }
}

impl BinaryOp {
    /// How tightly it binds in nft's language; what binds less needs parentheses inside.
    fn binds(self) -> u8 {
        match self {
            Self::Or => 0,
            Self::Xor => 1,
            Self::And => 2,
            Self::ShiftLeft | Self::ShiftRight => 3,
        }
    }
}

impl Display for BinaryOp {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::And => "&",
            Self::Or => "|",
            Self::Xor => "^",
            Self::ShiftLeft => "<<",
            Self::ShiftRight => ">>",
        })
    }
}

impl Display for Statement {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Match(m) => m.fmt(f),
            Self::Verdict(verdict) => verdict.fmt(f),
            Self::Vmap(vmap) => {
                write!(f, "{} vmap ", vmap.key)?;
                write_mapping(f, &vmap.map, &vmap.key.parts(), Verdict::fmt)
            }
            Self::Counter(counter) => counter.fmt(f),
            Self::Quota(quota) => write!(f, "quota {quota}"),
            Self::Limit(limit) => write!(f, "limit {limit}"),
            Self::Last => f.write_str("last"),
            Self::Log(log) => log.fmt(f),
            Self::Reject(reject) => reject.fmt(f),
            Self::Dnat(nat) => write_nat(f, "dnat", nat),
            Self::Snat(nat) => write_nat(f, "snat", nat),
            Self::Masquerade(nat) => write_port_nat(f, "masquerade", nat),
            Self::Redirect(nat) => write_port_nat(f, "redirect", nat),
            Self::Tproxy(tproxy) => tproxy.fmt(f),
            Self::Dup(dup) => dup.fmt(f),
            Self::Fwd(fwd) => fwd.fmt(f),
            Self::Queue(queue) => queue.fmt(f),
            Self::Notrack => f.write_str("notrack"),
            Self::Mangle(mangle) => {
                write!(f, "{} set ", mangle.key)?;
                Typed(&mangle.value, &mangle.key.parts()).fmt(f)
            }
            Self::Set(update) => update.fmt(f),
            Self::Connlimit(limit) => {
                write!(f, "ct count {}{}", if limit.over { "over " } else { "" }, limit.count)
            }
            Self::Synproxy(synproxy) => write!(f, "synproxy{synproxy}"),
            Self::FlowAdd(flowtable) => write!(f, "flow add @{flowtable}"),
            Self::Object(reference) => reference.fmt(f),
            Self::ResetOption(option) => write!(f, "reset {option}"),
            Self::Raw(exprs) => {
                let names: Vec<_> = exprs.iter().map(|e| format!("{:?}", e.name())).collect();
                write!(f, "# {} low-level expressions: {}", exprs.len(), names.join(", "))
            }
        }
    }
}

impl Display for Match {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if let Some((bits, mask)) = self.flags_of() {
            let parts = bits.parts();
            let op = if self.op == MatchOp::Neq { "!= " } else { "" };
            return write!(f, "{bits} {op}{} / {}", Typed(&self.right, &parts), Typed(mask, &parts));
        }
        write!(f, "{} ", self.left)?;
        if let Some(op) = self.op.text() {
            write!(f, "{op} ")?;
        }
        match (&self.left, &self.right) {
            (Expression::Fib(Fib { check: true, .. }), right) => {
                Typed(right, &[DataType::BOOLEAN.into()]).fmt(f)
            }
            (left, right) => Typed(right, &left.parts()).fmt(f),
        }
    }
}

impl Match {
    /// `tcp flags BITS / MASK`: which of some bits are set.
    fn flags_of(&self) -> Option<(&Expression, &Expression)> {
        let Expression::Binary(binary) = &self.left else { return None };
        let number = |e: &Expression| matches!(e, Expression::Value(Value::Number(n)) if *n != 0);
        let flags = binary.op == BinaryOp::And
            && matches!(self.op, MatchOp::In | MatchOp::Eq | MatchOp::Neq)
            && binary.left == Expression::Payload(crate::lang::Payload::TCP_FLAGS);
        (flags && number(&self.right) && number(&binary.right)).then_some((&binary.left, &binary.right))
    }
}

impl MatchOp {
    fn text(self) -> Option<&'static str> {
        Some(match self {
            Self::In => return None,
            Self::Eq => "==",
            Self::Neq => "!=",
            Self::Lt => "<",
            Self::Gt => ">",
            Self::Lte => "<=",
            Self::Gte => ">=",
            Self::None => "!",
        })
    }
}

impl Display for Verdict {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Accept => f.write_str("accept"),
            Self::Drop => f.write_str("drop"),
            Self::Continue => f.write_str("continue"),
            Self::Return => f.write_str("return"),
            Self::Jump(chain) => write!(f, "jump {chain}"),
            Self::Goto(chain) => write!(f, "goto {chain}"),
        }
    }
}

impl Display for Counter {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("counter")?;
        match (self.packets, self.bytes) {
            (0, 0) => Ok(()),
            (packets, bytes) => write!(f, " packets {packets} bytes {bytes}"),
        }
    }
}

impl Display for Quota {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if self.over {
            f.write_str("over ")?;
        }
        write_bytes(f, self.bytes)?;
        if self.used > 0 {
            f.write_str(" used ")?;
            write_bytes(f, self.used)?;
        }
        Ok(())
    }
}

/// In the largest unit that divides the number.
fn write_bytes(f: &mut Formatter<'_>, bytes: u64) -> fmt::Result {
    match bytes {
        0 => f.write_str("0 bytes"),
        n if n.is_multiple_of(1 << 20) => write!(f, "{} mbytes", n >> 20),
        n if n.is_multiple_of(1 << 10) => write!(f, "{} kbytes", n >> 10),
        n => write!(f, "{n} bytes"),
    }
}

impl Display for Limit {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let over = if self.over { "over " } else { "" };
        if self.bytes {
            write!(f, "rate {over}")?;
            write_bytes(f, self.rate)?;
            write!(f, "/{}", self.per)?;
            if let Some(burst) = self.burst.filter(|burst| *burst > 0) {
                f.write_str(" burst ")?;
                write_bytes(f, burst.into())?;
            }
            return Ok(());
        }
        write!(f, "rate {over}{}/{}", self.rate, self.per)?;
        match self.burst {
            Some(burst) if burst != 5 => write!(f, " burst {burst} packets"),
            _ => Ok(()),
        }
    }
}

impl TimeUnit {
    /// Its seconds.
    #[must_use]
    pub fn seconds(self) -> u64 {
        match self {
            Self::Second => 1,
            Self::Minute => 60,
            Self::Hour => 60 * 60,
            Self::Day => 24 * 60 * 60,
            Self::Week => 7 * 24 * 60 * 60,
        }
    }
}

impl Display for TimeUnit {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Second => "second",
            Self::Minute => "minute",
            Self::Hour => "hour",
            Self::Day => "day",
            Self::Week => "week",
        })
    }
}

impl Display for Log {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        const LEVELS: [&str; 9] =
            ["emerg", "alert", "crit", "err", "warn", "notice", "info", "debug", "audit"];
        const FLAGS: [(LogFlags, &str); 3] =
            [(LogFlags::IP_OPTIONS, "ip options"), (LogFlags::SKUID, "skuid"), (LogFlags::ETHER, "ether")];
        f.write_str("log")?;
        if let Some(prefix) = &self.prefix {
            write!(f, " prefix {prefix}")?;
        }
        if let Some(group) = self.group {
            write!(f, " group {group}")?;
        }
        if let Some(snaplen) = self.snaplen {
            write!(f, " snaplen {snaplen}")?;
        }
        if let Some(threshold) = self.queue_threshold {
            write!(f, " queue-threshold {threshold}")?;
        }
        if let Some(level) =
            self.level.and_then(|level| LEVELS.get(usize::from(level))).filter(|l| **l != "warn")
        {
            write!(f, " level {level}")?;
        }
        if self.flags.contains(LogFlags::all() & ALL_LOG_FLAGS) {
            return f.write_str(" flags all");
        }
        match (self.flags.contains(LogFlags::TCP_SEQUENCE), self.flags.contains(LogFlags::TCP_OPTIONS)) {
            (true, true) => f.write_str(" flags tcp sequence,options")?,
            (true, false) => f.write_str(" flags tcp sequence")?,
            (false, true) => f.write_str(" flags tcp options")?,
            (false, false) => {}
        }
        FLAGS
            .iter()
            .filter(|(flag, _)| self.flags.contains(*flag))
            .try_for_each(|(_, name)| write!(f, " flags {name}"))
    }
}

const ALL_LOG_FLAGS: LogFlags = LogFlags::from_bits_retain(0x2f);

impl Display for Reject {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let (with, of, code) = match self {
            Self::Default => return f.write_str("reject"),
            Self::TcpReset => return f.write_str("reject with tcp reset"),
            Self::Icmp(code) => ("icmp", DataType::ICMP_CODE, code),
            Self::Icmpv6(code) => ("icmpv6", DataType::ICMPV6_CODE, code),
            Self::Icmpx(code) => ("icmpx", DataType::ICMPX_CODE, code),
        };
        write!(f, "reject with {with} ")?;
        write_number(f, of, u64::from(*code))
    }
}

fn write_nat(f: &mut Formatter<'_>, word: &str, nat: &Nat) -> fmt::Result {
    f.write_str(word)?;
    if let Some(family) = nat.family {
        write!(f, " {family}")?;
    }
    match &nat.to {
        NatTarget::Address(address) => write!(f, " to {address}")?,
        NatTarget::Port(port) => {
            f.write_str(" to :")?;
            write_port(f, port)?;
        }
        NatTarget::AddressPort(address, port) => {
            f.write_str(" to ")?;
            write_address_port(f, Some(address), Some(port))?;
        }
        NatTarget::Concat(of) => {
            let address = if nat.family == Some(crate::Family::IP6) {
                DataType::IPV6_ADDR
            } else {
                DataType::IPV4_ADDR
            };
            f.write_str(" to ")?;
            Typed(of, &[address.into(), DataType::INET_SERVICE.into()]).fmt(f)?;
        }
        NatTarget::Interval(of) => write!(f, " to {of}")?,
    }
    write_nat_flags(f, nat.flags)
}

fn write_port_nat(f: &mut Formatter<'_>, word: &str, nat: &PortNat) -> fmt::Result {
    f.write_str(word)?;
    if let Some(port) = &nat.port {
        f.write_str(" to :")?;
        write_port(f, port)?;
    }
    write_nat_flags(f, nat.flags)
}

fn write_nat_flags(f: &mut Formatter<'_>, flags: NatFlags) -> fmt::Result {
    const NAMES: [(NatFlags, &str); 3] = [
        (NatFlags::RANDOM, "random"),
        (NatFlags::FULLY_RANDOM, "fully-random"),
        (NatFlags::PERSISTENT, "persistent"),
    ];
    let names = NAMES.iter().filter(|(flag, _)| flags.contains(*flag));
    for (i, (_, name)) in names.enumerate() {
        f.write_str(if i == 0 { " " } else { "," })?;
        f.write_str(name)?;
    }
    Ok(())
}

fn write_port(f: &mut Formatter<'_>, port: &Expression) -> fmt::Result {
    Typed(port, &[DataType::INET_SERVICE.into()]).fmt(f)
}

/// IPv6 addresses in brackets where a port follows.
fn write_address_port(
    f: &mut Formatter<'_>,
    address: Option<&Expression>,
    port: Option<&Expression>,
) -> fmt::Result {
    match address {
        Some(Expression::Value(Value::Address(address))) if address.is_ipv6() && port.is_some() => {
            write!(f, "[{address}]")?;
        }
        Some(Expression::Range(range)) if port.is_some() => match &**range {
            (Value::Address(low), Value::Address(high)) if low.is_ipv6() => write!(f, "[{low}]-[{high}]")?,
            _ => write!(f, "{}", Expression::Range(range.clone()))?,
        },
        Some(address) => address.fmt(f)?,
        None => {}
    }
    match port {
        Some(port) => {
            f.write_str(":")?;
            write_port(f, port)
        }
        None => Ok(()),
    }
}

impl Display for Tproxy {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("tproxy")?;
        if let Some(family) = self.family {
            write!(f, " {family}")?;
        }
        f.write_str(" to ")?;
        write_address_port(f, self.address.as_ref(), self.port.as_ref())
    }
}

impl Display for Dup {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let iface = [DataType::IFACE_INDEX.into()];
        match (&self.address, &self.device) {
            (Some(address), Some(device)) => write!(f, "dup to {address} device {}", Typed(device, &iface)),
            (Some(address), None) => write!(f, "dup to {address}"),
            (None, Some(device)) => write!(f, "dup to {}", Typed(device, &iface)),
            (None, None) => f.write_str("dup"),
        }
    }
}

impl Display for Fwd {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let iface = [DataType::IFACE_INDEX.into()];
        let device = Typed(&self.device, &iface);
        match &self.address {
            Some((family, address)) => write!(f, "fwd {family} to {address} device {device}"),
            None => write!(f, "fwd to {device}"),
        }
    }
}

impl Display for Queue {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("queue")?;
        match (self.bypass, self.fanout) {
            (true, true) => f.write_str(" flags bypass,fanout")?,
            (true, false) => f.write_str(" flags bypass")?,
            (false, true) => f.write_str(" flags fanout")?,
            (false, false) => {}
        }
        write!(f, " to {}", self.to)
    }
}

impl Display for SetUpdate {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let op = match self.op {
            SetOp::Add => "add",
            SetOp::Update => "update",
            SetOp::Delete => "delete",
        };
        write!(f, "{op} @{} {{ {}", self.set, self.key)?;
        if let Some(timeout) = self.timeout {
            write!(f, " timeout {}", Time(timeout))?;
        }
        for statement in &self.statements {
            write!(f, " {statement}")?;
        }
        if let Some(value) = &self.value {
            write!(f, " : {value}")?;
        }
        f.write_str(" }")
    }
}

impl Display for Synproxy {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if let Some(mss) = self.mss {
            write!(f, " mss {mss}")?;
        }
        if let Some(wscale) = self.wscale {
            write!(f, " wscale {wscale}")?;
        }
        if self.timestamp {
            f.write_str(" timestamp")?;
        }
        if self.sack_perm {
            f.write_str(" sack-perm")?;
        }
        Ok(())
    }
}

impl Display for ObjectReference {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let quoted = |name: &Name| format!("\"{name}\"");
        let name = match &self.object {
            ObjectName::Named(name) => quoted(name),
            ObjectName::Map(key, map) => format!("{key} map @{map}"),
        };
        match self.kind {
            ObjectKind::CT_HELPER => write!(f, "ct helper set {name}"),
            ObjectKind::CT_TIMEOUT => write!(f, "ct timeout set {name}"),
            ObjectKind::CT_EXPECT => write!(f, "ct expectation set {name}"),
            ObjectKind::SECMARK => write!(f, "meta secmark set {name}"),
            kind => write!(f, "{kind} name {name}"),
        }
    }
}

/// A time as nft writes it: `1d2h3m4s5ms`.
pub(crate) struct Time(pub(crate) Duration);

impl Display for Time {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let seconds = self.0.as_secs();
        let parts = [
            (seconds / 86_400, "d"),
            (seconds / 3_600 % 24, "h"),
            (seconds / 60 % 60, "m"),
            (seconds % 60, "s"),
            (u64::from(self.0.subsec_millis()), "ms"),
        ];
        if parts.iter().all(|(n, _)| *n == 0) {
            return f.write_str("0s");
        }
        parts.iter().filter(|(n, _)| *n > 0).try_for_each(|(n, unit)| write!(f, "{n}{unit}"))
    }
}
