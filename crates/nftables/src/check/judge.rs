//! Judges the statements of a rule, from left to right, whether they were read from text or JSON or are values
//! of a program: their order, the protocols that those before have left, and the types of what they take.
//!
//! What nft 1.0.6 refuses is refused, where the kernel would take it: its listing could not be loaded again, or
//! the rule would match other packets than it says.

use crate::check::constants::{self, Room};
use crate::check::context::{Clash, Context};
use crate::check::type_check::KeyUse;
use crate::check::{Definitions, LowerError};
use crate::datatype::{DataType, Order};
use crate::expr::{CtKey, MetaKey, RtKey, Verdict};
use crate::family::Family;
use crate::key::Part;
#[cfg(feature = "text")]
use crate::name::Name;
use crate::tree::{
    Binary, BinaryOp, Ct, Expression, Log, Mapping, Match, Nat, NatTarget, ObjectName, Payload, PortNat,
    Statement, Tproxy, Value,
};

/// What the statements of a rule so far have established.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Judge<'a> {
    definitions: Definitions<'a>,
    context: Context,
    /// Whether a statement has ended the rule for every packet.
    has_ended: bool,
    /// The bits of the number that a header's field is made: a mark has more than most fields.
    number_bits: u64,
}

impl<'a> Judge<'a> {
    pub(crate) fn new(definitions: Definitions<'a>) -> Self {
        Self { definitions, context: Context::of(definitions.table.family), has_ended: false, number_bits: 0 }
    }

    /// One for a statement in the middle of a rule.
    #[cfg(feature = "text")]
    pub(crate) fn behind(definitions: Definitions<'a>, context: Context) -> Self {
        Self { definitions, context, has_ended: false, number_bits: 0 }
    }

    /// What is known of the packets that the statements so far let through.
    pub(crate) fn context(&self) -> Context {
        self.context
    }

    /// Judges the next statement.
    pub(crate) fn statement(&mut self, statement: &Statement) -> Result<(), LowerError> {
        if self.has_ended {
            return Err(Clash::said(NEVER_REACHED).of(statement));
        }
        self.judge(statement)?;
        self.context.note_statement(statement);
        self.has_ended = is_terminal(statement);
        Ok(())
    }

    fn judge(&mut self, statement: &Statement) -> Result<(), LowerError> {
        match statement {
            Statement::Match(m) => self.matching(m),
            Statement::Vmap(vmap) => {
                self.key(&vmap.key)?;
                match &vmap.map {
                    Mapping::Named(name) => self.definitions.verdict_map(&vmap.key, name),
                    Mapping::Anonymous(pairs) => Self::keys(&vmap.key, pairs),
                }
            }
            Statement::Log(of) => log(of).map_err(|clash| clash.of(statement)),
            // The kernel has no `reject` there, and says so.
            Statement::Reject(_) if self.definitions.table.family == Family::ARP => Ok(()),
            Statement::Reject(reject) => {
                self.context.check_reject(*reject).map(drop).map_err(|clash| clash.of(statement))
            }
            Statement::Dnat(nat) | Statement::Snat(nat) => self.nat(nat, statement),
            Statement::Masquerade(nat) | Statement::Redirect(nat) => self.port_nat(nat, statement),
            Statement::Tproxy(tproxy) => self.tproxy(tproxy, statement),
            Statement::Dup(dup) => {
                let address = address_type(self.definitions.table.family);
                self.destination(dup.address.as_ref(), address)?;
                self.destination(dup.device.as_ref(), DataType::IFACE_INDEX)
            }
            Statement::Fwd(fwd) => {
                if let Some((family, address)) = &fwd.address {
                    self.destination(Some(address), address_type(*family))?;
                }
                self.destination(Some(&fwd.device), DataType::IFACE_INDEX)
            }
            Statement::Queue(queue) => {
                self.expression(&queue.to)?;
                self.definitions.check_map_values(&queue.to, &[Some(DataType::INTEGER)])
            }
            Statement::Mangle(mangle) => {
                self.expression(&mangle.key)?;
                let number = mangle.key.part().filter(|part| part.order() == Order::Host);
                self.number_bits = number.and_then(|part| u64::try_from(part.bytes() * 8).ok()).unwrap_or(0);
                let value = self.expression(&mangle.value);
                self.number_bits = 0;
                value?;
                self.definitions.mangled(mangle)
            }
            Statement::Set(update) => {
                self.expression(&update.key)?;
                update.value.iter().try_for_each(|value| self.expression(value))?;
                self.definitions.updated(update)
            }
            Statement::Meter(meter) => self.expression(&meter.key),
            Statement::Object(reference) => match &reference.object {
                ObjectName::Named(_) => Ok(()),
                ObjectName::Map(key, name) => {
                    self.key(key)?;
                    self.definitions.looked_up(key, name, KeyUse::Map)
                }
                ObjectName::Among(key, pairs) => {
                    self.key(key)?;
                    Self::keys(key, pairs)
                }
            },
            Statement::Limit(limit) if limit.rate == 0 => {
                Err(Clash::said("expected a rate above 0").of(statement))
            }
            Statement::Limit(limit) if limit.burst == Some(0) && !limit.bytes => {
                Err(Clash::said("expected a burst above 0").of(statement))
            }
            _ => Ok(()),
        }
    }

    fn matching(&mut self, m: &Match) -> Result<(), LowerError> {
        self.expression(&m.left)?;
        is_key(&m.left)?;
        constants::compared(&m.left, &m.right)?;
        match &m.right {
            Expression::Set(members) if members.is_empty() => return Err(empty("set")),
            Expression::Named(name) => {
                has_family(&m.left)?;
                self.definitions.looked_up(&m.left, name, KeyUse::Set)?;
            }
            Expression::Set(_) => has_family(&m.left)?,
            _ => {}
        }
        Ok(())
    }

    /// Judges what is looked up in a map.
    fn key(&mut self, key: &Expression) -> Result<(), LowerError> {
        self.expression(key)?;
        is_key(key)?;
        has_family(key)
    }

    /// Judges the keys that a map has, of what is looked up in it.
    fn keys<V>(key: &Expression, pairs: &[(Expression, V)]) -> Result<(), LowerError> {
        if pairs.is_empty() {
            return Err(empty("map"));
        }
        pairs.iter().try_for_each(|(of, _)| constants::looked_up(key, of))
    }

    /// Judges an expression in the order in which it is read: the protocols that its fields imply, and what is
    /// done to their bits.
    fn expression(&mut self, expression: &Expression) -> Result<(), LowerError> {
        match expression {
            Expression::Payload(field) => self.context.meets(*field).map_err(|clash| clash.of(field)),
            Expression::Exthdr(field) => {
                self.context.meets_extension(*field).map_err(|clash| clash.of(field))
            }
            Expression::Meta(key) => self.context.check_meta(*key).map_err(|clash| clash.of(expression)),
            Expression::Ct(ct) => match ct.key {
                CtKey::SADDR_IP | CtKey::DADDR_IP => self.network(Family::IP, expression),
                CtKey::SADDR_IP6 | CtKey::DADDR_IP6 => self.network(Family::IP6, expression),
                CtKey::SADDR | CtKey::DADDR => match ct.family {
                    Some(family) => self.network(family, expression),
                    None if self.context.may_be_of_two_families() => Err(needs_family().of(expression)),
                    None => Ok(()),
                },
                _ => Ok(()),
            },
            // What the rule has matched before does not count: nft lists such a rule, which never matches.
            Expression::Rt(rt) => match (rt.key, self.definitions.table.family) {
                (RtKey::NEXTHOP_IP, Family::IP6) | (RtKey::NEXTHOP_IP6, Family::IP) => {
                    Err(Clash::said("packets of this family have no such next hop").of(expression))
                }
                _ => Ok(()),
            },
            Expression::Concat(parts) => {
                parts.iter().try_for_each(|part| self.expression(part))?;
                match parts.iter().any(Expression::has_family_of_two) {
                    true => Err(needs_family().of(expression)),
                    false => no_pattern(parts),
                }
            }
            Expression::Binary(binary) => {
                self.expression(&binary.left)?;
                self.expression(&binary.right)?;
                if let BinaryOp::ShiftLeft | BinaryOp::ShiftRight = binary.op
                    && let Expression::Value(Value::Number(by)) = binary.right
                    && let Some(bits) = bits_of(&binary.left).map(|bits| bits.max(self.number_bits))
                    && by >= bits
                {
                    return Err(shifted_too_far(by, bits).of(expression));
                }
                self.operands(binary)
            }
            Expression::Map(map) => {
                self.key(&map.key)?;
                match &map.map {
                    Mapping::Named(name) => self.definitions.looked_up(&map.key, name, KeyUse::Map),
                    Mapping::Anonymous(pairs) => Self::keys(&map.key, pairs),
                }
            }
            Expression::Jhash(jhash) => self.expression(&jhash.of),
            _ => Ok(()),
        }
    }

    /// Judges what bits are combined with, or by how much they are shifted.
    fn operands(&self, binary: &Binary) -> Result<(), LowerError> {
        if let Expression::Prefix(_) | Expression::Range(_) = binary.right {
            return Err(LowerError::NotConstant { expression: binary.right.to_string() });
        }
        if binary.op.is_shift() {
            let of = binary.left.part().map(Part::data_type);
            return match matches!(of, Some(DataType::IFNAME | DataType::STRING)) {
                true => Err(Clash::said("a name has no bits that could be shifted").of(&binary.left)),
                false => Ok(()),
            };
        }
        match (&binary.right, Room::of(&binary.left)) {
            // A number that is made for a mark may be wider than the field that it starts from.
            (Expression::Value(value), Some(room)) if self.number_bits == 0 => room.value(value),
            _ => Ok(()),
        }
    }

    fn network(&self, family: Family, expression: &Expression) -> Result<(), LowerError> {
        self.context.check_network(family).map_err(|clash| clash.of(expression))
    }

    /// Judges a value that is sent somewhere, which has to be of a type.
    fn destination(&mut self, value: Option<&Expression>, wanted: DataType) -> Result<(), LowerError> {
        let Some(value) = value else { return Ok(()) };
        self.expression(value)?;
        self.definitions.check_destination(value, wanted)
    }

    fn port(&mut self, port: &Expression, statement: &Statement) -> Result<(), LowerError> {
        // A field of a header in the port itself does not count.
        let before = self.context;
        self.destination(Some(port), DataType::INET_SERVICE)?;
        before.check_transport("a port").map_err(|clash| clash.of(statement))
    }

    fn nat(&mut self, nat: &Nat, statement: &Statement) -> Result<(), LowerError> {
        let own = self.definitions.table.family;
        let family = nat.family.or(self.context.network).unwrap_or(own);
        if let Some(family) = nat.family {
            self.context.check_only(family).map_err(|clash| clash.of(statement))?;
        }
        let has_address = !matches!(nat.to, NatTarget::Port(_));
        if has_address && nat.family.is_none() && self.context.may_be_of_two_families() {
            let clash = Clash::said(format!("an address needs a family in a table of family {own}"));
            return Err(clash.help("say `ip to` or `ip6 to`").of(statement));
        }
        let address = address_type(family);
        match &nat.to {
            NatTarget::Address(to) | NatTarget::Interval(to) => self.destination(Some(to), address),
            NatTarget::Port(port) => self.port(port, statement),
            // The address may be looked up by a port, which says the protocol.
            NatTarget::AddressPort(to, port) => {
                self.destination(Some(to), address)?;
                if looks_up_transport(to) {
                    return self.destination(Some(port), DataType::INET_SERVICE);
                }
                self.port(port, statement)
            }
            NatTarget::Concat(to) | NatTarget::ConcatInterval(to) => {
                self.expression(to)?;
                if !looks_up_transport(to) {
                    self.context.check_transport("a map of ports").map_err(|clash| clash.of(statement))?;
                }
                self.definitions.check_map_values(to, &[Some(address), Some(DataType::INET_SERVICE)])
            }
        }
    }

    fn port_nat(&mut self, nat: &PortNat, statement: &Statement) -> Result<(), LowerError> {
        nat.port.as_ref().map_or(Ok(()), |port| self.port(port, statement))
    }

    fn tproxy(&mut self, tproxy: &Tproxy, statement: &Statement) -> Result<(), LowerError> {
        check_tproxy(self.context, tproxy).map_err(|clash| clash.of(statement))?;
        let family = tproxy.family.unwrap_or(self.definitions.table.family);
        self.destination(tproxy.address.as_ref(), address_type(family))?;
        self.destination(tproxy.port.as_ref(), DataType::INET_SERVICE)?;
        self.context.check_transport("`tproxy`").map_err(|clash| clash.of(statement))
    }
}

/// Judges `log`.
pub(crate) fn log(log: &Log) -> Result<(), Clash> {
    /// `NFT_LOGLEVEL_AUDIT`
    const AUDIT: u8 = 8;
    let is_for_group = log.group.is_some() || log.snaplen.is_some() || log.queue_threshold.is_some();
    let has_flags = !log.flags.is_empty();
    if is_for_group && (log.level.is_some() || has_flags) {
        return Err(Clash::said(
            "`level` and `flags` are not for a log with a `group`, `snaplen` or `queue-threshold`",
        ));
    }
    if log.level == Some(AUDIT) && (log.prefix.is_some() || has_flags) {
        return Err(Clash::said("`log level audit` takes nothing else"));
    }
    if log.level.is_some_and(|level| level > AUDIT) {
        return Err(Clash::said("expected a level from 0 to 8"));
    }
    Ok(())
}

/// Judges the family of `tproxy` against the packets that the rule matches.
pub(crate) fn check_tproxy(context: Context, tproxy: &Tproxy) -> Result<(), Clash> {
    match (tproxy.family, context.family(), context.network) {
        (Some(family), Some(own @ (Family::IP | Family::IP6)), _) if family != own => {
            Err(Clash::said(format!("`tproxy {family}` is not for tables of family {own}")))
        }
        (Some(family), ..) => context.check_only(family),
        (None, Some(Family::INET), Some(network)) => {
            Err(Clash::said(format!("the rule matches {network}, `tproxy` both families"))
                .help(format!("say `tproxy {network} to`")))
        }
        _ => Ok(()),
    }
}

/// Whether a statement ends the evaluation of the rule for every packet.
pub(crate) fn is_terminal(statement: &Statement) -> bool {
    match statement {
        Statement::Verdict(verdict) => *verdict != Verdict::Continue,
        Statement::Reject(_)
        | Statement::Dnat(_)
        | Statement::Snat(_)
        | Statement::Masquerade(_)
        | Statement::Redirect(_)
        | Statement::Queue(_)
        | Statement::Fwd(_) => true,
        _ => false,
    }
}

/// Whether an address is looked up by a transport protocol and a port of it, so that each key says the protocol.
pub(crate) fn looks_up_transport(target: &Expression) -> bool {
    let Expression::Map(map) = target else { return false };
    let Expression::Concat(parts) = &map.key else { return false };
    let is_protocol = |part: &Expression| {
        let fields = [Payload::IP_PROTOCOL, Payload::IP6_NEXTHDR];
        *part == Expression::Meta(MetaKey::L4PROTO)
            || matches!(part, Expression::Payload(field) if fields.contains(field))
    };
    let is_port = |part: &Expression| part.part().is_some_and(|of| of.data_type() == DataType::INET_SERVICE);
    parts.iter().any(is_protocol) && parts.iter().any(is_port)
}

/// Refuses to calculate with two values of a packet where something is compared or looked up: no version of nft
/// reads that. What is assigned may be calculated from two, since Linux 6.13 and nft 1.1.2.
fn is_key(key: &Expression) -> Result<(), LowerError> {
    match key {
        Expression::Concat(parts) => parts.iter().try_for_each(is_key),
        Expression::Binary(binary) if !is_constant(&binary.right) => {
            Err(LowerError::NotConstant { expression: binary.right.to_string() })
        }
        Expression::Binary(binary) => is_key(&binary.left),
        _ => Ok(()),
    }
}

/// Whether an expression is a value, or calculated from values alone: addresses are calculated when they are sent.
fn is_constant(expression: &Expression) -> bool {
    match expression {
        Expression::Value(_) => true,
        Expression::Binary(binary) => is_constant(&binary.left) && is_constant(&binary.right),
        _ => false,
    }
}

/// Refuses an address of a connection of which the IP version is not said, as a key: its length is not known.
pub(crate) fn has_family(key: &Expression) -> Result<(), LowerError> {
    match key.has_family_of_two() {
        true => Err(needs_family().of(key)),
        false => Ok(()),
    }
}

impl Expression {
    /// Whether the expression is an address of a connection without the IP version.
    fn has_family_of_two(&self) -> bool {
        match self {
            Self::Ct(Ct { key: CtKey::SADDR | CtKey::DADDR, .. }) => true,
            Self::Concat(parts) => parts.iter().any(Self::has_family_of_two),
            _ => false,
        }
    }
}

/// Refuses a pattern of names in a concatenation: what is looked up is one name.
fn no_pattern(parts: &[Expression]) -> Result<(), LowerError> {
    let is_pattern = |part: &&Expression| match part {
        Expression::Value(Value::Interface(name) | Value::Text(name)) => name.prefix().is_some(),
        _ => false,
    };
    match parts.iter().find(is_pattern) {
        Some(pattern) => {
            Err(Clash::said(format!("expected a name, found a pattern of names: {pattern}")).of(pattern))
        }
        None => Ok(()),
    }
}

/// The number of bits of what is shifted.
fn bits_of(shifted: &Expression) -> Option<u64> {
    match shifted {
        Expression::Binary(binary) => bits_of(&binary.left),
        other if other.is_constant() => None,
        other => match (other.bits(), other.part()?) {
            (Some(bits), _) => Some(bits.into()),
            (None, part) => u64::try_from(part.bytes() * 8).ok(),
        },
    }
}

pub(crate) fn shifted_too_far(by: u64, bits: u64) -> Clash {
    Clash::said(format!("expected a shift of less than the {bits} bits that there are, found {by}"))
}

fn needs_family() -> Clash {
    Clash::said("the addresses have two families here").help("say `ip saddr` or `ip6 saddr`")
}

fn empty(what: &str) -> LowerError {
    Clash::said(format!("expected a {what} that is not empty")).of(&what)
}

fn address_type(family: Family) -> DataType {
    if family == Family::IP6 { DataType::IPV6_ADDR } else { DataType::IPV4_ADDR }
}

/// Collects the names of the sets and maps that a statement looks something up in, or adds something to.
#[cfg(feature = "text")]
pub(crate) fn named_sets<'s>(statement: &'s Statement, found: &mut Vec<&'s Name>) {
    match statement {
        Statement::Match(m) => {
            named_in(&m.left, found);
            named_in(&m.right, found);
        }
        Statement::Vmap(vmap) => {
            named_in(&vmap.key, found);
            if let Mapping::Named(name) = &vmap.map {
                found.push(name);
            }
        }
        Statement::Mangle(mangle) => named_in(&mangle.value, found),
        Statement::Set(update) => {
            found.push(&update.set);
            named_in(&update.key, found);
            update.value.iter().for_each(|value| named_in(value, found));
        }
        Statement::Object(reference) => {
            if let ObjectName::Map(_, name) = &reference.object {
                found.push(name);
            }
        }
        Statement::Dnat(nat) | Statement::Snat(nat) => match &nat.to {
            NatTarget::AddressPort(to, port) => [to, port].into_iter().for_each(|of| named_in(of, found)),
            NatTarget::Address(to)
            | NatTarget::Port(to)
            | NatTarget::Concat(to)
            | NatTarget::Interval(to)
            | NatTarget::ConcatInterval(to) => named_in(to, found),
        },
        Statement::Masquerade(nat) | Statement::Redirect(nat) => {
            nat.port.iter().for_each(|port| named_in(port, found));
        }
        Statement::Tproxy(to) => to.address.iter().chain(&to.port).for_each(|of| named_in(of, found)),
        Statement::Dup(dup) => dup.address.iter().chain(&dup.device).for_each(|of| named_in(of, found)),
        Statement::Fwd(fwd) => named_in(&fwd.device, found),
        _ => {}
    }
}

#[cfg(feature = "text")]
fn named_in<'s>(expression: &'s Expression, found: &mut Vec<&'s Name>) {
    match expression {
        Expression::Named(name) => found.push(name),
        Expression::Map(map) => {
            named_in(&map.key, found);
            if let Mapping::Named(name) = &map.map {
                found.push(name);
            }
        }
        Expression::Binary(binary) => {
            named_in(&binary.left, found);
            named_in(&binary.right, found);
        }
        Expression::Concat(parts) => parts.iter().for_each(|part| named_in(part, found)),
        _ => {}
    }
}

pub(crate) const NEVER_REACHED: &str = "this is never reached: the statement before it ends the rule";

#[cfg(test)]
mod tests {
    use crate::tree::{Log, Statement};
    use crate::{ApplyOptions, Family, Name, Rule, TableId, Transaction};

    /// Rules that nft refuses for what they mean, and the kernel would take.
    const WRONG: &[(Family, &[&str])] = &[
        (Family::IP, &["accept", "counter"]),
        (Family::IP, &["drop", "accept"]),
        (Family::IP, &["redirect to :80"]),
        (Family::IP, &["dnat to 192.0.2.1:80"]),
        (Family::IP, &["dnat to tcp dport"]),
        (Family::IP, &["dup to meta mark"]),
        (Family::NETDEV, &["fwd to meta mark"]),
        (Family::INET, &["meta nfproto ipv4", "meta l4proto tcp", "tproxy ip6 to [::1]:50080"]),
        (Family::INET, &["ip saddr 192.0.2.1", "dnat ip6 to ::1"]),
        (Family::INET, &["meta l4proto { udp, sctp }", "reject with tcp reset"]),
        (Family::IP, &["ct original saddr . meta mark { 192.0.2.1 . 0x14 }"]),
        (Family::IP, &["meta mark set meta mark << 32"]),
        (Family::IP, &["rt ip6 nexthop ::1"]),
        (Family::IP6, &["rt ip nexthop 192.0.2.1"]),
        (Family::IP, &["dnat to th dport map { 80 : 192.0.2.1 . 80 }"]),
        (Family::IP, &["dnat to th dport map { 80 : 192.0.2.1 }:80"]),
        (Family::IP, &["dnat ip to meta l4proto map { tcp : 192.0.2.1 . 80 }"]),
    ];

    /// nft 1.0.6 takes and refuses the same.
    #[test]
    fn a_tcp_reset_is_held_against_the_protocol_that_was_written_last() {
        let chain = TableId::new(Family::INET, Name::from_kernel("t")).chain(Name::from_kernel("c"));
        let reads = |of: &str| Rule::parse(&chain, &format!("{of} reject with tcp reset")).is_ok();
        for taken in [
            "meta l4proto { udp, tcp }",
            "ip protocol { udp, tcp }",
            "ip6 nexthdr { sctp, udp, tcp }",
            "meta l4proto { 89, tcp }",
            "ip protocol { tcp, 89 }",
            "meta l4proto { tcp, 17-89 }",
            "meta l4proto udp ip protocol tcp",
            "meta l4proto != udp",
            "meta l4proto 1-17",
        ] {
            assert!(reads(taken), "{taken}");
        }
        for refused in [
            "meta l4proto { tcp, udp }",
            "ip protocol { tcp, udp }",
            "ip6 nexthdr { tcp, udp, 89 }",
            "meta l4proto { tcp, 89 }",
            "meta l4proto { udp, 6-89 }",
            "meta l4proto tcp meta l4proto udp",
            "udp dport 53",
        ] {
            assert!(!reads(refused), "{refused}");
        }
    }

    /// The same rule as text, as values, and as JSON.
    #[test]
    fn whatever_door_a_rule_comes_through_it_is_judged() {
        for (family, statements) in WRONG {
            let chain = TableId::new(*family, Name::from_kernel("t")).chain(Name::from_kernel("c"));
            let text = statements.join(" ");
            assert!(Rule::parse(&chain, &text).is_err(), "text: {text}");
            let mut rule = chain.rule();
            for statement in *statements {
                // A statement alone has nothing before it, and is not judged.
                rule = rule.then(Statement::parse(*family, statement).unwrap());
            }
            refused(rule, &text);
        }
        let chain = TableId::new(Family::IP, Name::from_kernel("t")).chain(Name::from_kernel("c"));
        for log in [
            Log { level: Some(8), prefix: Some("x".parse().unwrap()), ..Log::default() },
            Log { level: Some(8), snaplen: Some(5), ..Log::default() },
            Log { level: Some(5), group: Some(1), ..Log::default() },
        ] {
            refused(chain.rule().then(log), "a level of log");
        }
    }

    fn refused(rule: Rule, text: &str) {
        let mut transaction = Transaction::new();
        transaction.add(rule);
        assert!(transaction.encode(ApplyOptions::default()).is_err(), "values: {text}");
        #[cfg(feature = "json")]
        {
            let json = transaction.to_json().to_string();
            assert!(Transaction::from_json(&json).is_err(), "JSON: {json}");
        }
    }
}
