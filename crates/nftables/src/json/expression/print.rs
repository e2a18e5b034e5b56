//! Expressions as nft prints them in JSON.

use crate::datatype::Order;
use crate::expr::{ExthdrOp, FibFlags, RtKey, SocketKey, XfrmKey};
use crate::json::Value;
use crate::json::constant::{self, Bits, Context};
use crate::json::statement::statement;
use crate::json::style::Style;
use crate::json::{object, single};
use crate::key::Part;
use crate::name::Name;
use crate::tree::exthdr::Exthdr;
use crate::tree::*;

/// An expression that determines its own types.
pub(in crate::json) fn expression(of: &Expression, with: Style<'_>) -> Value {
    typed(of, Context::new(&[], Bits::List, with))
}

/// An expression, with the types that its context gives to constants in it.
pub(in crate::json) fn typed(of: &Expression, context: Context<'_>) -> Value {
    let with = context.with;
    match of {
        Expression::Payload(field) => single("payload", header_field(*field, None)),
        Expression::Inner(inner) => {
            single("payload", header_field(inner.field, Some(inner.tunnel.to_string())))
        }
        Expression::RawPayload(raw) => single(
            "payload",
            object([
                ("base", Some(raw.base.to_string().into())),
                ("offset", Some(raw.offset.into())),
                ("len", Some(raw.bits.into())),
            ]),
        ),
        Expression::Exthdr(field) => extension_header(*field),
        Expression::Meta(key) => single("meta", single("key", key.to_string())),
        Expression::Ct(ct) => single(
            "ct",
            object([
                ("key", Some(ct.key.to_string().into())),
                ("dir", ct.direction.map(|direction| direction.to_string().into())),
            ]),
        ),
        Expression::Rt(rt) => {
            let (key, family) = match rt.key {
                RtKey::NEXTHOP_IP => ("nexthop".to_owned(), Some("ip")),
                RtKey::NEXTHOP_IP6 => ("nexthop".to_owned(), Some("ip6")),
                key => (key.to_string(), None),
            };
            single("rt", object([("key", Some(key.into())), ("family", family.map(Value::from))]))
        }
        Expression::Socket(socket) => {
            // nft 1.0.6 leaves the level out.
            let level = socket.level.filter(|_| with.is_script() && socket.key == SocketKey::CGROUPV2);
            let key = socket.key.to_string();
            single("socket", object([("key", Some(key.into())), ("level", level.map(Value::from))]))
        }
        Expression::Osf(osf) => {
            let ttl = match osf.ttl {
                1 => Some("loose".into()),
                2 => Some("skip".into()),
                _ => None,
            };
            let key = if osf.version { "version" } else { "name" };
            single("osf", object([("key", Some(key.into())), ("ttl", ttl)]))
        }
        Expression::Fib(fib) => route(*fib, with),
        Expression::Numgen(numgen) => single(
            "numgen",
            object([
                ("mode", Some(numgen.mode.to_string().into())),
                ("mod", Some(numgen.modulus.into())),
                ("offset", Some(numgen.offset.into())),
            ]),
        ),
        Expression::Jhash(hash) => single(
            "jhash",
            object([
                ("mod", Some(hash.modulus.into())),
                ("seed", hash.seed.map(Value::from)),
                ("offset", offset(hash.offset)),
                ("expr", Some(expression(&hash.of, with))),
            ]),
        ),
        Expression::Symhash(hash) => {
            single("symhash", object([("mod", Some(hash.modulus.into())), ("offset", offset(hash.offset))]))
        }
        Expression::Ipsec(ipsec) => transformation(*ipsec),
        Expression::Tunnel(key) => single("tunnel", single("key", key.to_string())),
        Expression::Concat(parts) => single(
            "concat",
            parts.iter().enumerate().map(|(i, part)| concatenated(part, context.part(i))).collect::<Vec<_>>(),
        ),
        Expression::Binary(binary) => calculation(binary, context),
        Expression::Map(map) => {
            let keys = map.key.parts();
            let data = mapping(&map.map, &keys, with, |value| typed(value, context));
            single("map", object([("key", Some(expression(&map.key, with))), ("data", Some(data))]))
        }
        Expression::Value(value) => constant::value(value, context),
        Expression::Prefix(prefix) => single(
            "prefix",
            object([
                ("addr", Some(constant::value(&prefix.value, context))),
                ("len", Some(prefix.length.into())),
            ]),
        ),
        Expression::Range(range) => {
            let bound = |value| constant::value(value, context.bound());
            single("range", vec![bound(&range.0), bound(&range.1)])
        }
        Expression::Any => "*".into(),
        Expression::Set(members) => {
            let context = Context { bits: Bits::Or, ..context };
            single("set", members.iter().map(|member| typed(member, context)).collect::<Vec<_>>())
        }
        Expression::Elem(elem) => {
            let comment = elem.comment.as_ref().map(|comment| comment.as_str().into());
            element(typed(&elem.value, context), [None, None, comment], &elem.statements, with)
        }
        Expression::Named(name) => set_name(name),
    }
}

/// A set, map or flowtable by its name, which has no quotes in JSON.
pub(in crate::json) fn set_name(name: &Name) -> Value {
    format!("@{}", name.as_str()).into()
}

/// A member of a set with what it carries; the value alone, where it carries nothing. `details` are timeout,
/// expiration and comment.
pub(in crate::json) fn element(
    value: Value,
    details: [Option<Value>; 3],
    statements: &[Statement],
    with: Style<'_>,
) -> Value {
    let [timeout, expires, comment] = details;
    let mut element =
        object([("val", Some(value)), ("timeout", timeout), ("expires", expires), ("comment", comment)]);
    // nft 1.0.6 prints only the first.
    let limit = if with.is_script() { statements.len() } else { 1 };
    for statement in statements.iter().take(limit).map(|of| statement(of, with)) {
        element.extend(statement);
    }
    match element {
        Value::Object(mut members) if members.len() == 1 => {
            members.pop().map(|(_, value)| value).unwrap_or_default()
        }
        element => single("elem", element),
    }
}

/// What a map maps to what: its name, or pairs of keys of these types and values.
pub(in crate::json) fn mapping<V>(
    map: &Mapping<V>,
    keys: &[Part],
    with: Style<'_>,
    value: impl Fn(&V) -> Value,
) -> Value {
    match map {
        Mapping::Named(name) => set_name(name),
        Mapping::Anonymous(pairs) => any_of(pairs, keys, with, value),
    }
}

/// `{"set": [[KEY, VALUE], ...]}`
pub(in crate::json) fn any_of<V>(
    pairs: &[(Expression, V)],
    keys: &[Part],
    with: Style<'_>,
    value: impl Fn(&V) -> Value,
) -> Value {
    let context = Context::new(keys, Bits::Or, with);
    let pair = |(key, v): &(_, _)| Value::Array(vec![typed(key, context), value(v)]);
    single("set", pairs.iter().map(pair).collect::<Vec<_>>())
}

/// A part of a concatenation. nft does not list that a single address is a range, and does not read a prefix
/// of numbers in the host's order.
fn concatenated(of: &Expression, context: Context<'_>) -> Value {
    if let Some(key) = nft_key(of, context.with) {
        return key;
    }
    let (Expression::Prefix(prefix), [part]) = (of, context.parts) else { return typed(of, context) };
    let is_whole = usize::from(prefix.length) == 8 * part.bytes();
    if !context.with.is_script() && is_whole {
        return constant::value(&prefix.value, context);
    }
    typed(of, context)
}

/// A field of bits within bytes, in a key: nft 1.0.6 lists that it is shifted, beside what it is.
pub(in crate::json) fn nft_key(of: &Expression, with: Style<'_>) -> Option<Value> {
    let Expression::Payload(field) = of else { return None };
    let shift = shift_of(*field).filter(|_| !with.is_script())?;
    Some(single(">>", vec![expression(of, with), shift.into()]))
}

/// How many bits there are between a field and the end of its last byte.
pub(in crate::json) fn shift_of(field: Payload) -> Option<u32> {
    let behind = u32::from((field.offset() + field.bits()).wrapping_neg() % 8);
    (behind > 0).then_some(behind)
}

fn header_field(field: Payload, tunnel: Option<String>) -> Value {
    object([
        ("tunnel", tunnel.map(Value::from)),
        ("protocol", Some(field.protocol().into())),
        ("field", Some(field.field().into())),
    ])
}

fn extension_header(field: Exthdr) -> Value {
    let word = match field.op() {
        ExthdrOp::TCPOPT => "tcp option",
        ExthdrOp::IPV4 => "ip option",
        ExthdrOp::SCTP => "sctp chunk",
        ExthdrOp::DCCP => return single("dccp option", single("type", field.kind())),
        _ => "exthdr",
    };
    let place = match field.header() {
        Some(name) => object([
            ("name", Some(name.into())),
            ("field", Some(field.field_name()).filter(|name| !name.is_empty()).map(Value::from)),
        ]),
        None => object([
            ("base", Some(field.kind().into())),
            ("offset", Some(field.offset().into())),
            ("len", Some(field.bits().into())),
        ]),
    };
    single(word, place)
}

fn route(fib: Fib, with: Style<'_>) -> Value {
    const NAMES: [(FibFlags, &str); 5] = [
        (FibFlags::SADDR, "saddr"),
        (FibFlags::DADDR, "daddr"),
        (FibFlags::MARK, "mark"),
        (FibFlags::IIF, "iif"),
        (FibFlags::OIF, "oif"),
    ];
    let flags = NAMES.iter().filter(|(flag, _)| fib.flags.contains(*flag)).map(|(_, name)| *name);
    let flags: Vec<_> = flags.map(Value::from).collect();
    // Later versions of nft have a word for asking whether there is a route at all, where it is not compared.
    let result = if fib.check && with.is_script() { "check".to_owned() } else { fib.result.to_string() };
    single("fib", object([("result", Some(result.into())), ("flags", Some(flags.into()))]))
}

fn transformation(ipsec: Ipsec) -> Value {
    let (key, family) = match ipsec.key {
        XfrmKey::DADDR_IP => ("daddr".to_owned(), Some("ip")),
        XfrmKey::DADDR_IP6 => ("daddr".to_owned(), Some("ip6")),
        XfrmKey::SADDR_IP => ("saddr".to_owned(), Some("ip")),
        XfrmKey::SADDR_IP6 => ("saddr".to_owned(), Some("ip6")),
        key => (key.to_string(), None),
    };
    single(
        "ipsec",
        object([
            ("key", Some(key.into())),
            ("family", family.map(Value::from)),
            ("dir", Some(if ipsec.out { "out" } else { "in" }.into())),
            ("spnum", Some(ipsec.number.into())),
        ]),
    )
}

fn calculation(binary: &Binary, context: Context<'_>) -> Value {
    let own = binary.left.parts();
    let parts = match binary.op {
        // How far to shift is a plain number whatever is shifted.
        BinaryOp::ShiftLeft | BinaryOp::ShiftRight => &[],
        _ if own.is_empty() => context.parts,
        // What is shifted, or made a mark, is a number, and no value of the field's type any more.
        _ if has_shift(&binary.left) => &[],
        _ => match (own.as_slice(), context.parts) {
            ([own], [of]) if own.order() == Order::Network && of.order() == Order::Host => context.parts,
            (own, _) => own,
        },
    };
    let right = Context { parts, bits: Bits::Or, bound: false, ..context };
    single(binary.op.to_string(), vec![typed(&binary.left, context), typed(&binary.right, right)])
}

fn has_shift(expression: &Expression) -> bool {
    matches!(expression, Expression::Binary(binary) if binary.op.is_shift() || has_shift(&binary.left))
}

fn offset(offset: u32) -> Option<Value> {
    (offset != 0).then(|| offset.into())
}
