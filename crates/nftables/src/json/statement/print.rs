//! Statements as nft prints them in JSON.

use crate::datatype::DataType;
use crate::expr::{CtKey, Expr, LogFlags, NatFlags, ObjectKind};
use crate::family::Family;
use crate::json::constant::{Bits, Context, seconds, signed};
use crate::json::expression::{self, any_of, element, expression, mapping, nft_key, set_name};
use crate::json::style::Style;
use crate::json::{Value, flags, object, single};
use crate::key::Part;
use crate::listing::indented;
use crate::text::print::{TypedUpdate, prefix_of};
use crate::tree::*;
use crate::wording::{Words, millis};

/// A statement.
pub(in crate::json) fn statement(of: &Statement, with: Style<'_>) -> Value {
    typed(of, with, |_| Default::default())
}

/// The statements of a rule or of what belongs to one.
fn list(statements: &[Statement], with: Style<'_>) -> Vec<Value> {
    statements.iter().map(|of| statement(of, with)).collect()
}

/// The statements of each element of a set: nft prints no counts for them.
pub(in crate::json) fn stateful_list(statements: &[Statement], with: Style<'_>) -> Option<Value> {
    (!statements.is_empty()).then(|| list(statements, with.for_new_elements()).into())
}

/// A statement, with the types of the keys and values of a set by its name.
pub(in crate::json) fn typed(
    of: &Statement,
    with: Style<'_>,
    set: impl Fn(&SetUpdate) -> [Vec<Part>; 2],
) -> Value {
    match of {
        // nft lists these as text.
        Statement::Bound(_) if !with.is_script() => indented(&format!("{:#}", of.worded(with.with))).into(),
        Statement::Set(update) if !with.is_script() && update.value.is_some() => {
            let [keys, values] = set(update);
            TypedUpdate(update, [&keys, &values]).worded(with.with).to_string().into()
        }
        Statement::Match(comparison) => single("match", self::comparison(comparison, with)),
        Statement::Verdict(verdict) => self::verdict(verdict),
        Statement::Bound(chain) => bound_chain(chain, with),
        Statement::Vmap(vmap) => {
            let data = mapping(&vmap.map, &vmap.key.parts(), with, verdict);
            single("vmap", object([("key", Some(expression(&vmap.key, with))), ("data", Some(data))]))
        }
        Statement::Counter(counter) => single("counter", self::counter(*counter, with)),
        Statement::Quota(quota) => single("quota", self::quota(*quota, with)),
        Statement::Limit(limit) => single("limit", self::limit(limit, ObjectMembers::Anonymous, with)),
        Statement::Last(last) => single("last", self::last(*last, with)),
        Statement::Log(log) => single("log", or_null(self::log(log))),
        Statement::Reject(reject) => single("reject", or_null(self::reject(*reject, with))),
        Statement::Dnat(nat) => single("dnat", or_null(translation(nat, with))),
        Statement::Snat(nat) => single("snat", or_null(translation(nat, with))),
        Statement::Masquerade(nat) => single("masquerade", or_null(port_translation(nat, with))),
        Statement::Redirect(nat) => single("redirect", or_null(port_translation(nat, with))),
        Statement::Tproxy(tproxy) => single(
            "tproxy",
            object([
                ("family", tproxy.family.map(|family| family.to_string().into())),
                ("addr", tproxy.address.as_ref().map(|address| address_of(address, with))),
                ("port", tproxy.port.as_ref().map(|port| port_of(port, with))),
            ]),
        ),
        Statement::Dup(dup) => {
            let device = dup.device.as_ref().map(|device| device_of(device, with));
            let address = dup.address.as_ref().map(|address| expression(address, with));
            // Of a device alone nft says that it is an address.
            let (address, device) = if address.is_none() { (device, None) } else { (address, device) };
            single("dup", or_null(object([("addr", address), ("dev", device)])))
        }
        Statement::Fwd(fwd) => {
            let (family, address) = fwd
                .address
                .as_ref()
                .map(|(family, address)| (Value::from(family.to_string()), expression(address, with)))
                .unzip();
            let device = Some(device_of(&fwd.device, with));
            single("fwd", object([("dev", device), ("family", family), ("addr", address)]))
        }
        Statement::Queue(queue) => {
            let names = [(queue.bypass, "bypass"), (queue.fanout, "fanout")];
            let names = names.into_iter().filter(|(is, _)| *is).map(|(_, name)| name);
            single("queue", object([("num", Some(expression(&queue.to, with))), ("flags", flags(names))]))
        }
        Statement::Notrack => single("notrack", Value::Null),
        Statement::Mangle(mangle) => single("mangle", self::mangle(mangle, with)),
        Statement::Set(update) => set_update(update, set(update), with),
        Statement::Meter(meter) => self::meter(meter, with),
        Statement::Connlimit(limit) => single(
            "ct count",
            object([("val", Some(limit.count.into())), ("inv", limit.over.then_some(Value::Bool(true)))]),
        ),
        Statement::Synproxy(synproxy) => single("synproxy", or_null(self::synproxy(*synproxy, with))),
        Statement::FlowAdd(flowtable) => {
            single("flow", object!({"op": "add", "flowtable": set_name(flowtable)}))
        }
        Statement::Object(reference) => object_reference(reference, with),
        Statement::ResetOption(option) => single("reset", expression(&(*option).into(), with)),
        Statement::Raw(expressions) => low_level(expressions),
    }
}

fn comparison(of: &Match, with: Style<'_>) -> Value {
    let parts = of.left.parts();
    let compared = |op: &str, left: Value, right: Value| object!({"op": op, "left": left, "right": right});
    if let Some((bits, mask)) = of.flags_of() {
        let list = Context::new(&parts, Bits::List, with);
        let left = single("&", vec![expression(bits, with), expression::typed(mask, list)]);
        let op = if of.op == MatchOp::Neq { "!=" } else { "==" };
        return compared(op, left, expression::typed(&of.right, list));
    }
    let calculated = matches!(of.left, Expression::Binary(_));
    let several = matches!(of.right, Expression::Set(_) | Expression::Named(_) | Expression::Range(_));
    let is_bitmask = parts.iter().any(|part| part.data_type().is_bitmask());
    let any_bit = is_bitmask && !several && !calculated;
    // nft takes a set of one for that one.
    let is_one = |of: &Expression| matches!(of, Expression::Set(members) if members.len() == 1);
    let any_bit = any_bit || (with.is_script() && !calculated && is_one(&of.right) && is_bitmask);
    let op = match of.op {
        MatchOp::In if any_bit => "in",
        MatchOp::In => "==",
        MatchOp::None => "!",
        op => op.text().unwrap_or("=="),
    };
    let bits = match of.op {
        _ if calculated => Bits::Or,
        MatchOp::In | MatchOp::None => Bits::List,
        _ if matches!(of.left, Expression::Payload(_)) => Bits::Number,
        _ => Bits::Or,
    };
    let left = match &of.left {
        // What it is compared with says that.
        Expression::Fib(fib) if !matches!(of.right, Expression::Set(_) | Expression::Named(_)) => {
            expression(&Fib { check: false, ..*fib }.into(), with)
        }
        left => expression(left, with),
    };
    // The kernel byte-swaps it to compare its order, which makes nft forget the names of these numbers.
    let is_link_type = parts.contains(&DataType::IFACE_TYPE.into());
    let numeric = of.lists_number() || (is_link_type && matches!(of.right, Expression::Range(_)));
    let context = Context { numeric, ..Context::new(&parts, bits, with) };
    compared(op, left, expression::typed(&of.right, context))
}

/// A verdict, as a statement or as what a map gives.
pub(in crate::json) fn verdict(of: &Verdict) -> Value {
    match of {
        Verdict::Accept => single("accept", Value::Null),
        Verdict::Drop => single("drop", Value::Null),
        Verdict::Continue => single("continue", Value::Null),
        Verdict::Return => single("return", Value::Null),
        Verdict::Jump(chain) => single("jump", single("target", chain.as_str())),
        Verdict::Goto(chain) => single("goto", single("target", chain.as_str())),
    }
}

/// The rules of a chain of the rule's own, for which nft has no JSON.
fn bound_chain(chain: &BoundChain, with: Style<'_>) -> Value {
    let rule = |rule: &BoundRule| {
        object([
            ("comment", rule.comment.as_ref().map(|comment| comment.as_str().into())),
            ("expr", Some(list(&rule.statements, with).into())),
        ])
    };
    let rules: Vec<_> = chain.rules.iter().map(rule).collect();
    single(if chain.goto { "goto" } else { "jump" }, single("rules", rules))
}

fn counter(of: Counter, with: Style<'_>) -> Value {
    match with.shows_state(of != Counter::default()) {
        true => object!({"packets": signed(of.packets), "bytes": signed(of.bytes)}),
        false => Value::Null,
    }
}

fn quota(of: Quota, with: Style<'_>) -> Value {
    let (value, unit) = bytes(of.bytes);
    let used = (of.used > 0 && with.shows_state(true)).then(|| bytes(of.used));
    object([
        ("val", Some(signed(value))),
        ("val_unit", Some(unit.into())),
        ("inv", of.over.then_some(Value::Bool(true))),
        ("used", used.map(|(used, _)| signed(used))),
        ("used_unit", used.map(|(_, unit)| unit.into())),
    ])
}

/// The largest unit that divides a number of bytes, and how many of it.
fn bytes(of: u64) -> (u64, &'static str) {
    match of {
        0 => (0, "bytes"),
        n if n.is_multiple_of(1 << 20) => (n >> 20, "mbytes"),
        n if n.is_multiple_of(1 << 10) => (n >> 10, "kbytes"),
        n => (n, "bytes"),
    }
}

/// What a limit belongs to: nft orders the members of a statement and of an object each in its own way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::json) enum ObjectMembers {
    /// A statement.
    Anonymous,
    /// An object with a name.
    Named,
}

/// The members of a limit.
pub(in crate::json) fn limit(of: &Limit, members: ObjectMembers, with: Style<'_>) -> Value {
    let (rate, rate_unit) = if of.bytes { bytes(of.rate) } else { (of.rate, "packets") };
    let burst = of.burst.unwrap_or(if of.bytes { 0 } else { 5 }).into();
    let (burst, burst_unit) = if of.bytes { bytes(burst) } else { (burst, "packets") };
    let per = Some(Value::from(of.per.to_string()));
    let inv = of.over.then_some(Value::Bool(true));
    // Listings say what the kernel made of it where nothing was said.
    let is_said = !with.is_script() || of.burst.is_some();
    let (rate, burst_value) = (Some(signed(rate)), Some(Value::from(burst)).filter(|_| is_said));
    let rate_unit = of.bytes.then(|| rate_unit.into());
    let burst_unit = (of.bytes && is_said).then(|| Value::from(burst_unit));
    match members {
        ObjectMembers::Anonymous => object([
            ("rate", rate),
            ("burst", burst_value),
            ("per", per),
            ("inv", inv),
            ("rate_unit", rate_unit),
            ("burst_unit", burst_unit),
        ]),
        ObjectMembers::Named => object([
            ("rate", rate),
            ("per", per),
            ("inv", inv),
            ("rate_unit", rate_unit),
            ("burst", burst_value.filter(|_| burst > 0)),
            ("burst_unit", burst_unit.filter(|_| burst > 0)),
        ]),
    }
}

fn last(of: Last, with: Style<'_>) -> Value {
    match of.used.filter(|_| with.shows_state(true)) {
        Some(used) => single("used", millis(used)),
        None => Value::Null,
    }
}

fn log(of: &Log) -> Value {
    const FLAGS: [(LogFlags, &str); 5] = [
        (LogFlags::TCP_SEQUENCE, "tcp sequence"),
        (LogFlags::TCP_OPTIONS, "tcp options"),
        (LogFlags::IP_OPTIONS, "ip options"),
        (LogFlags::SKUID, "skuid"),
        (LogFlags::ETHER, "ether"),
    ];
    let level =
        of.level.and_then(|level| Log::LEVELS.get(usize::from(level))).filter(|level| **level != "warn");
    let names = match of.flags.contains(LogFlags::all()) {
        true => vec!["all"],
        false => FLAGS.iter().filter(|(flag, _)| of.flags.contains(*flag)).map(|(_, name)| *name).collect(),
    };
    object([
        ("prefix", of.prefix.as_ref().map(|prefix| prefix.as_str().into())),
        ("group", of.group.map(Value::from)),
        ("snaplen", of.snaplen.map(Value::from)),
        ("queue-threshold", of.queue_threshold.map(Value::from)),
        ("level", level.map(|level| (*level).into())),
        ("flags", flags(names)),
    ])
}

fn reject(of: Reject, with: Style<'_>) -> Value {
    let (kind, types, code) = match of {
        Reject::Default if with.family == Family::UNSPEC => return object([]),
        Reject::Default => default_reject(with.family),
        Reject::TcpReset => return single("type", "tcp reset"),
        Reject::Icmp(code) => ("icmp", DataType::ICMP_CODE, code),
        Reject::Icmpv6(code) => ("icmpv6", DataType::ICMPV6_CODE, code),
        Reject::Icmpx(code) => ("icmpx", DataType::ICMPX_CODE, code),
    };
    let code = expression::typed(&u32::from(code).into(), Context::new(&[types.into()], Bits::List, with));
    object([("type", Some(kind.into())), ("expr", Some(code))])
}

/// What nft lists for `reject` in a table of a family.
fn default_reject(family: Family) -> (&'static str, DataType, u8) {
    match family {
        Family::IP => ("icmp", DataType::ICMP_CODE, 3),
        Family::IP6 => ("icmpv6", DataType::ICMPV6_CODE, 4),
        _ => ("icmpx", DataType::ICMPX_CODE, 1),
    }
}

fn translation(of: &Nat, with: Style<'_>) -> Value {
    let address = |of| Some(address_of(of, with));
    let (address, port) = match &of.to {
        NatTarget::Address(to) => (address(to), None),
        NatTarget::Port(port) => (None, Some(port_of(port, with))),
        NatTarget::AddressPort(to, port) => (address(to), Some(port_of(port, with))),
        NatTarget::Concat(to) | NatTarget::ConcatInterval(to) => {
            let of = match of.family {
                Some(Family::IP6) => DataType::IPV6_ADDR,
                _ => DataType::IPV4_ADDR,
            };
            let parts = [of.into(), DataType::INET_SERVICE.into()];
            (Some(expression::typed(to, Context::new(&parts, Bits::List, with))), None)
        }
        NatTarget::Interval(to) => (Some(expression(to, with)), None),
    };
    object([
        ("family", of.family.map(|family| family.to_string().into())),
        ("addr", address),
        ("port", port),
        ("flags", nat_flags(of.flags)),
        ("type_flags", of.flags.contains(NatFlags::NETMAP).then(|| "prefix".into())),
    ])
}

fn port_translation(of: &PortNat, with: Style<'_>) -> Value {
    let port = of.port.as_ref().map(|port| port_of(port, with));
    object([("port", port), ("flags", nat_flags(of.flags))])
}

fn nat_flags(of: NatFlags) -> Option<Value> {
    const NAMES: [(NatFlags, &str); 4] = [
        (NatFlags::RANDOM, "random"),
        (NatFlags::FULLY_RANDOM, "fully-random"),
        (NatFlags::PERSISTENT, "persistent"),
        (NatFlags::NETMAP, "netmap"),
    ];
    flags(NAMES.iter().filter(|(flag, _)| of.contains(*flag)).map(|(_, name)| *name))
}

fn mangle(of: &Mangle, with: Style<'_>) -> Value {
    let parts = of.key.parts();
    // Events are a list; other bits are joined by "or".
    let list = matches!(&of.key, Expression::Ct(ct) if ct.key == CtKey::EVENT);
    let bits = if list { Bits::List } else { Bits::Or };
    let value = expression::typed(&of.value, Context::new(&parts, bits, with));
    object([("key", Some(expression(&of.key, with))), ("value", Some(value))])
}

fn set_update(of: &SetUpdate, [keys, values]: [Vec<Part>; 2], with: Style<'_>) -> Value {
    let op = match of.op {
        SetOp::Add => "add",
        SetOp::Update => "update",
        SetOp::Delete => "delete",
    };
    let constant = |of, parts: &[Part]| expression::typed(of, Context::new(parts, Bits::Or, with));
    let timeout = of.timeout.map(|timeout| seconds(millis(timeout), with));
    let elem = element(
        nft_key(&of.key, with).unwrap_or_else(|| constant(&of.key, &keys)),
        [timeout, None, None],
        &[],
        with,
    );
    let (op, elem, set) = (Some(op.into()), Some(elem), Some(set_name(&of.set)));
    let statements = stateful_list(&of.statements, with);
    match &of.value {
        None => single("set", object([("op", op), ("elem", elem), ("set", set), ("stmt", statements)])),
        Some(value) => {
            let data = Some(constant(value, &values));
            let members = [("op", op), ("elem", elem), ("data", data), ("map", set), ("stmt", statements)];
            single("map", object(members))
        }
    }
}

fn meter(of: &Meter, with: Style<'_>) -> Value {
    let timeout = of.timeout.map(|timeout| seconds(millis(timeout), with));
    let key = element(expression(&of.key, with), [timeout, None, None], &[], with);
    let mut statements = list(&of.statements, with.for_new_elements());
    let statement = if statements.len() == 1 { statements.remove(0) } else { statements.into() };
    single(
        "meter",
        object([
            ("key", Some(key)),
            ("stmt", Some(statement)),
            ("size", Some(of.size.into())),
            ("name", Some(of.name.as_str().into())),
        ]),
    )
}

fn synproxy(of: Synproxy, with: Style<'_>) -> Value {
    // nft 1.0.6 takes nought for nothing.
    let said = |number: u64| with.is_script() || number != 0;
    let names = [(of.timestamp, "timestamp"), (of.sack_perm, "sack-perm")];
    let names: Vec<Value> = names.into_iter().filter(|(is, _)| *is).map(|(_, name)| name.into()).collect();
    object([
        ("mss", of.mss.filter(|mss| said((*mss).into())).map(Value::from)),
        ("wscale", of.wscale.filter(|wscale| said((*wscale).into())).map(Value::from)),
        ("flags", (!names.is_empty()).then(|| names.into())),
    ])
}

fn object_reference(of: &ObjectReference, with: Style<'_>) -> Value {
    let name = match of.kind {
        ObjectKind::CONNLIMIT => "ct count".to_owned(),
        kind => kind.to_string(),
    };
    let lookup = |key: &Expression, data: Value| {
        single("map", object([("key", Some(expression(key, with))), ("data", Some(data))]))
    };
    let object = match &of.object {
        ObjectName::Named(name) => name.as_str().into(),
        ObjectName::Map(key, map) => lookup(key, set_name(map)),
        ObjectName::Among(key, pairs) => {
            lookup(key, any_of(pairs, &key.parts(), with, |name| name.as_str().into()))
        }
    };
    single(name, object)
}

/// What xtables' modules do has a form of its own, which nft does not read. Other low-level expressions have
/// none.
fn low_level(expressions: &[Expr]) -> Value {
    let module = expressions.iter().find_map(|expr| match expr {
        Expr::XtMatch(module) => Some(("match", module.name.to_string())),
        Expr::XtTarget(module) => Some(("target", module.name.to_string())),
        _ => None,
    });
    match module {
        Some((kind, name)) => single("xt", object!({"type": kind, "name": name})),
        None => single("raw", expressions.iter().map(|expr| expr.name().into()).collect::<Vec<Value>>()),
    }
}

fn address_of(address: &Expression, with: Style<'_>) -> Value {
    if let Expression::Range(range) = address
        && let Some(length) = prefix_of(range)
    {
        let length = u8::try_from(length).unwrap_or(u8::MAX);
        return expression(&Expression::prefix(range.0.clone(), length), with);
    }
    expression(address, with)
}

fn port_of(port: &Expression, with: Style<'_>) -> Value {
    expression::typed(port, Context::new(&[DataType::INET_SERVICE.into()], Bits::List, with))
}

fn device_of(device: &Expression, with: Style<'_>) -> Value {
    expression::typed(device, Context::new(&[DataType::IFACE_INDEX.into()], Bits::List, with))
}

/// What has no member is null.
fn or_null(members: Value) -> Value {
    match &members {
        Value::Object(of) if of.is_empty() => Value::Null,
        _ => members,
    }
}
