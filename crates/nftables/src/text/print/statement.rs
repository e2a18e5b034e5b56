//! Formats statements in nft's syntax.

use std::fmt::{self, Display, Formatter};
use std::time::Duration;

use crate::datatype::DataType;
use crate::expr::{CtKey, Expr, LogFlags, ObjectKind, Verdict};
use crate::key::text::write_number;
use crate::key::{Part, is_byte_swapped};
use crate::name::Name;
use crate::text::print::expression::{
    Bits, Kind, Typed, key_kinds, kinds, with_bits, without_raw, write_mapping,
};
use crate::text::print::nat::{write_nat, write_port_nat};
use crate::tree::Payload;
use crate::tree::expression::*;
use crate::tree::statement::*;
use crate::tree::value::*;
use crate::wording::{Wording, Words};

impl Words for Statement {
    fn write(&self, f: &mut Formatter<'_>, with: Wording<'_>) -> fmt::Result {
        match self {
            Self::Match(m) => m.write(f, with),
            Self::Verdict(verdict) => verdict.fmt(f),
            Self::Bound(chain) => chain.write(f, with),
            Self::Vmap(vmap) => {
                write!(f, "{} vmap ", vmap.key.worded(with))?;
                write_mapping(f, &vmap.map, &key_kinds(&vmap.key), with, Verdict::fmt)
            }
            Self::Counter(counter) => counter.write(f, with),
            Self::Quota(quota) => write!(f, "quota {}", quota.worded(with)),
            Self::Limit(limit) => write!(f, "limit {limit}"),
            Self::Last(last) => last.write(f, with),
            Self::Log(log) => log.fmt(f),
            Self::Reject(reject) => reject.write(f, with),
            Self::Dnat(nat) => write_nat(f, "dnat", nat, with),
            Self::Snat(nat) => write_nat(f, "snat", nat, with),
            Self::Masquerade(nat) => write_port_nat(f, "masquerade", nat, with),
            Self::Redirect(nat) => write_port_nat(f, "redirect", nat, with),
            Self::Tproxy(tproxy) => tproxy.write(f, with),
            Self::Dup(dup) => dup.write(f, with),
            Self::Fwd(fwd) => fwd.write(f, with),
            Self::Queue(queue) => queue.write(f, with),
            Self::Notrack => f.write_str("notrack"),
            Self::Mangle(mangle) => {
                write!(f, "{} set ", mangle.key.worded(with))?;
                // After `set` nft does not read names of protocols, which are keywords of its language.
                let of_protocol =
                    matches!(mangle.key, Expression::Payload(Payload::IP_PROTOCOL | Payload::IP6_NEXTHDR));
                if let Expression::Value(Value::Number(number)) = mangle.value
                    && of_protocol
                    && with.is_script()
                {
                    return write!(f, "{number}");
                }
                Typed(&mangle.value, &mangle_kinds(&mangle.key), with).fmt(f)
            }
            Self::Set(update) => update.write(f, with),
            Self::Meter(meter) => meter.write(f, with),
            Self::Connlimit(limit) => {
                write!(f, "ct count {}{}", if limit.over { "over " } else { "" }, limit.count)
            }
            Self::Synproxy(synproxy) => write!(f, "synproxy{synproxy}"),
            Self::FlowAdd(flowtable) => write!(f, "flow add @{flowtable}"),
            Self::Object(reference) => reference.write(f, with),
            Self::ResetOption(option) => write!(f, "reset {option}"),
            Self::Raw(exprs) => write_raw(f, exprs),
        }
    }
}

/// Writes what stands for expressions that the language has no words for. No reader takes it, ours as little as
/// nft's: a rule that is left out of what is loaded would match packets that it did not match.
fn write_raw(f: &mut Formatter<'_>, exprs: &[Expr]) -> fmt::Result {
    let module = |expr: &Expr| match expr {
        Expr::XtMatch(module) => Some(format!("xt match {}", Name::from_kernel(&module.name))),
        Expr::XtTarget(module) => Some(format!("xt target {}", Name::from_kernel(&module.name))),
        _ => None,
    };
    if let Some(modules) = exprs.iter().map(module).collect::<Option<Vec<_>>>()
        && !modules.is_empty()
    {
        return f.write_str(&modules.join(" "));
    }
    let names: Vec<_> = exprs.iter().map(|expr| format!("{:?}", expr.name())).collect();
    write!(f, "unknown expressions {}", names.join(", "))
}

/// Returns the types of the value that is set: several bits are joined by `|`, but events are a list.
fn mangle_kinds(key: &Expression) -> Vec<Kind> {
    let list = matches!(key, Expression::Ct(ct) if ct.key == CtKey::EVENT);
    with_bits(if list { Bits::List } else { Bits::Or }, kinds(key))
}

impl Words for Match {
    fn write(&self, f: &mut Formatter<'_>, with: Wording<'_>) -> fmt::Result {
        if let Some((bits, mask)) = self.flags_of() {
            let kinds = kinds(bits);
            let op = if self.op == MatchOp::Neq { "!= " } else { "" };
            let mask = Typed(mask, &kinds, with).to_string();
            // One number behind the slash would be the length of a prefix.
            if mask.contains(',') || !mask.starts_with(|first: char| first.is_ascii_digit()) {
                return write!(f, "{bits} {op}{} / {mask}", Typed(&self.right, &kinds, with));
            }
        }
        match &self.left {
            // The comparison with `exists` or `missing` makes it a test for a route; a keyword for that
            // (`check`) exists only in later versions of nft.
            Expression::Fib(fib) if fib.check && self.is_boolean() => {
                write!(f, "{} ", Fib { check: false, ..*fib })?;
            }
            left => write!(f, "{} ", left.worded(with))?,
        }
        let calculated = matches!(self.left, Expression::Binary(_));
        let op = match (self.op, &self.right) {
            // nft does not list the `==` if the kernel byte-swaps the value to compare it.
            (MatchOp::In, Expression::Range(_)) if self.left.part().is_some_and(is_byte_swapped) => None,
            // nft compares the result of an operation with an explicit `==`.
            (MatchOp::In, _) if calculated => MatchOp::Eq.text(),
            (op, _) => op.text(),
        };
        if let Some(op) = op {
            write!(f, "{op} ")?;
        }
        let bits = match self.op {
            _ if calculated => Bits::Or,
            MatchOp::In | MatchOp::None => Bits::List,
            _ if matches!(self.left, Expression::Payload(_)) => Bits::Number,
            _ => Bits::Or,
        };
        let with = if self.lists_number() { with.bare() } else { with };
        match (&self.left, &self.right) {
            (left, Expression::Set(_)) if calculated => {
                Typed(&self.right, &with_bits(bits, without_raw(left)), with).fmt(f)
            }
            (left, right) => Typed(right, &with_bits(bits, kinds(left)), with).fmt(f),
        }
    }
}

impl Match {
    /// Returns whether it is a comparison with `exists` or `missing`.
    fn is_boolean(&self) -> bool {
        matches!(self.op, MatchOp::In | MatchOp::Eq | MatchOp::Neq)
            && matches!(self.right, Expression::Value(Value::Number(0 | 1)))
    }

    /// Returns whether nft lists a number instead of a name, as it does if the kernel byte-swaps the value to
    /// compare it.
    pub(crate) fn lists_number(&self) -> bool {
        let ordered = matches!(self.op, MatchOp::Lt | MatchOp::Gt | MatchOp::Lte | MatchOp::Gte);
        ordered
            && self.left.part().is_some_and(|part| {
                is_byte_swapped(part) && part.bytes() > 1 && !part.data_type().symbols().is_empty()
            })
    }

    /// Returns the bits and the mask of `tcp flags BITS / MASK`, which tests which bits of a mask are set.
    pub(crate) fn flags_of(&self) -> Option<(&Expression, &Expression)> {
        let Expression::Binary(binary) = &self.left else { return None };
        let bits = |e: &Expression| match e {
            Expression::Value(value) => value.count_ones(),
            _ => 0,
        };
        let flags = binary.op == BinaryOp::And
            && matches!(self.op, MatchOp::In | MatchOp::Eq | MatchOp::Neq)
            && !matches!(binary.left, Expression::Binary(_))
            && binary.left.part().is_some_and(|part| part.data_type().is_bitmask());
        // nft does not read a single bit after the slash.
        (flags && bits(&self.right) > 0 && bits(&binary.right) > 1).then_some((&binary.left, &binary.right))
    }
}

impl MatchOp {
    pub(crate) fn text(self) -> Option<&'static str> {
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

impl Words for Counter {
    fn write(&self, f: &mut Formatter<'_>, with: Wording<'_>) -> fmt::Result {
        f.write_str("counter")?;
        if !with.shows_state(*self != Self::default()) {
            return Ok(());
        }
        write!(f, " packets {} bytes {}", self.packets, self.bytes)
    }
}

impl Words for Last {
    fn write(&self, f: &mut Formatter<'_>, with: Wording<'_>) -> fmt::Result {
        f.write_str("last")?;
        match self.used {
            _ if !with.shows_state(self.used.is_some()) => Ok(()),
            Some(used) => write!(f, " used {}", with.time(used)),
            None => f.write_str(" used never"),
        }
    }
}

impl Words for Quota {
    fn write(&self, f: &mut Formatter<'_>, with: Wording<'_>) -> fmt::Result {
        if self.over {
            f.write_str("over ")?;
        }
        write_bytes(f, self.bytes)?;
        // Zero is not printed, even with state.
        if self.used > 0 && with.shows_state(true) {
            f.write_str(" used ")?;
            write_bytes(f, self.used)?;
        }
        Ok(())
    }
}

/// Writes a number of bytes in the largest unit that divides it.
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
    /// Returns the length of the unit in seconds.
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
        let name = Self::NAMES.iter().find(|(_, unit)| unit == self);
        f.write_str(name.map_or("second", |(name, _)| name))
    }
}

impl Display for Log {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
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
            self.level.and_then(|level| Log::LEVELS.get(usize::from(level))).filter(|l| **l != "warn")
        {
            write!(f, " level {level}")?;
        }
        if self.flags.contains(LogFlags::all()) {
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

impl Words for Reject {
    fn write(&self, f: &mut Formatter<'_>, with: Wording<'_>) -> fmt::Result {
        let (by, of, code) = match self {
            Self::Default => return f.write_str("reject"),
            Self::TcpReset => return f.write_str("reject with tcp reset"),
            Self::Icmp(code) => ("icmp", DataType::ICMP_CODE, code),
            Self::Icmpv6(code) => ("icmpv6", DataType::ICMPV6_CODE, code),
            Self::Icmpx(code) => ("icmpx", DataType::ICMPX_CODE, code),
        };
        write!(f, "reject with {by} ")?;
        write_number(f, of, u64::from(*code), with)
    }
}

impl Words for Queue {
    fn write(&self, f: &mut Formatter<'_>, with: Wording<'_>) -> fmt::Result {
        f.write_str("queue")?;
        match (self.bypass, self.fanout) {
            (true, true) => f.write_str(" flags bypass,fanout")?,
            (true, false) => f.write_str(" flags bypass")?,
            (false, true) => f.write_str(" flags fanout")?,
            (false, false) => {}
        }
        write!(f, " to {}", self.to.worded(with))
    }
}

impl Words for SetUpdate {
    fn write(&self, f: &mut Formatter<'_>, with: Wording<'_>) -> fmt::Result {
        TypedUpdate(self, [&[], &[]]).write(f, with)
    }
}

/// An update of a set, with the types of the set's keys and values.
pub(crate) struct TypedUpdate<'a>(pub(crate) &'a SetUpdate, pub(crate) [&'a [Part]; 2]);

impl Words for TypedUpdate<'_> {
    fn write(&self, f: &mut Formatter<'_>, with: Wording<'_>) -> fmt::Result {
        let Self(update, [keys, values]) = *self;
        let kinds = |parts: &[Part]| parts.iter().map(|part| (*part).into()).collect::<Vec<Kind>>();
        let op = match update.op {
            SetOp::Add => "add",
            SetOp::Update => "update",
            SetOp::Delete => "delete",
        };
        write!(f, "{op} @{} {{ {}", update.set, Typed(&update.key, &kinds(keys), with))?;
        write_element(f, update.timeout, &update.statements, with)?;
        if let Some(value) = &update.value {
            write!(f, " : {}", Typed(value, &kinds(values), with))?;
        }
        f.write_str(" }")
    }
}

impl Words for Meter {
    fn write(&self, f: &mut Formatter<'_>, with: Wording<'_>) -> fmt::Result {
        write!(f, "meter {} size {} {{ {}", self.name, self.size, self.key.worded(with))?;
        write_element(f, self.timeout, &self.statements, with)?;
        f.write_str(" }")
    }
}

/// Writes the statements and the timeout of an element that a rule adds.
fn write_element(
    f: &mut Formatter<'_>,
    timeout: Option<Duration>,
    statements: &[Statement],
    with: Wording<'_>,
) -> fmt::Result {
    if let Some(timeout) = timeout {
        write!(f, " timeout {}", with.time(timeout))?;
    }
    let with = with.for_new_elements();
    statements.iter().try_for_each(|statement| write!(f, " {}", statement.worded(with)))
}

impl Display for Synproxy {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if self.mss.is_some() || self.wscale.is_some() {
            write!(f, " mss {} wscale {}", self.mss.unwrap_or(0), self.wscale.unwrap_or(0))?;
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

impl Words for ObjectReference {
    fn write(&self, f: &mut Formatter<'_>, with: Wording<'_>) -> fmt::Result {
        let quoted = |name: &Name| name.quoted().to_string();
        let name = match &self.object {
            ObjectName::Named(name) => quoted(name),
            ObjectName::Map(key, map) => format!("{} map @{map}", key.worded(with)),
            ObjectName::Among(key, pairs) => {
                let kinds = key_kinds(key);
                let pairs: Vec<_> = pairs
                    .iter()
                    .map(|(key, name)| format!("{} : {}", Typed(key, &kinds, with), quoted(name)))
                    .collect();
                format!("{} map {{ {} }}", key.worded(with), pairs.join(", "))
            }
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
