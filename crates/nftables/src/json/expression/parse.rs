//! Expressions: what the value of a packet, a constant or a set is in JSON.

use crate::datatype::DataType;
use crate::expr::{
    CtKey, Direction, ExthdrOp, FibFlags, FibResult, InnerType, MetaKey, NumgenMode, PayloadBase, RtKey,
    SocketKey, TunnelKey, XfrmKey,
};
use crate::family::Family;
use crate::json::constant;
use crate::json::expression::print::shift_of;
use crate::json::node::{Node, Parsed, all};
use crate::json::object::{checked_name, comment, name};
use crate::json::scope::Within;
use crate::json::statement;
use crate::name::Name;
use crate::text::parse::constant::Typed;
use crate::tree::exthdr::Exthdr;
use crate::tree::*;

/// An expression; constants in it are of these types, one for each part, where they are known.
pub(in crate::json) fn parse(node: &Node<'_>, types: &[Typed], within: Within<'_>) -> Parsed<Expression> {
    match node.value {
        serde_json::Value::Object(_) => of_object(node, types, within),
        serde_json::Value::Array(_) => list(node, types, within),
        serde_json::Value::String(text) => match text.strip_prefix('@') {
            Some(set) => Ok(Expression::Named(name_of(node, set)?)),
            None if text == "*" => Ok(Expression::any()),
            None => Ok(constant::parse(node, types.first().copied(), within)?.into()),
        },
        _ => Ok(constant::parse(node, types.first().copied(), within)?.into()),
    }
}

/// A packet expression, which determines its own types.
pub(in crate::json) fn of_packet(node: &Node<'_>, within: Within<'_>) -> Parsed<Expression> {
    if !node.value.is_object() {
        return Err(node.wrong("something of a packet, as {\"payload\": ...} or {\"meta\": ...}"));
    }
    parse(node, &[], within)
}

/// The types of an expression's value.
pub(in crate::json) fn types_of(of: &Expression) -> Vec<Typed> {
    match of {
        Expression::Concat(parts) => Typed::concatenated(&parts.iter().map(types_of).collect::<Vec<_>>()),
        Expression::Binary(binary) if Typed::of(of).is_none() => types_of(&binary.left),
        single => Typed::of(single).into_iter().collect(),
    }
}

fn of_object(node: &Node<'_>, types: &[Typed], within: Within<'_>) -> Parsed<Expression> {
    let (word, of) = node.only("an expression")?;
    Ok(match word {
        "payload" => header_field(&of)?,
        "exthdr" => extension_header(&of, ExthdrOp::IPV6)?.into(),
        "tcp option" => extension_header(&of, ExthdrOp::TCPOPT)?.into(),
        "ip option" => extension_header(&of, ExthdrOp::IPV4)?.into(),
        "sctp chunk" => extension_header(&of, ExthdrOp::SCTP)?.into(),
        "dccp option" => {
            Exthdr::dccp_option(of.need("type", "the option's number")?.number("a number up to 255")?).into()
        }
        "meta" => meta_key(&of.need("key", "what of the packet")?)?.into(),
        "ct" => connection(&of, within)?.into(),
        "rt" => Expression::Rt(Rt { key: route_key(&of)? }),
        "socket" => socket(&of)?,
        "osf" => fingerprint(&of)?,
        "fib" => route(&of)?.into(),
        "numgen" => numgen(&of)?.into(),
        "jhash" => hash(&of, within)?,
        "symhash" => {
            let modulus = number(&of.need("mod", "a number")?)?;
            Expression::Symhash(Symhash { modulus, offset: optional_number(&of, "offset")?.unwrap_or(0) })
        }
        "ipsec" => transformation(&of)?,
        "tunnel" => {
            Expression::Tunnel(of.need("key", "what of the tunnel")?.word("a key of a tunnel", &TUNNEL_KEYS)?)
        }
        "concat" => {
            let part =
                |(i, part): (usize, Node<'_>)| parse(&part, types.get(i..=i).unwrap_or_default(), within);
            let parts = all(of.list("a list of the parts")?.enumerate().map(part), within.max_mistakes())?;
            let parts: Vec<_> = parts.into_iter().map(without_shift).collect();
            if !types.is_empty() && types.len() != parts.len() {
                return Err(of.wrong(&format!("{} parts ({})", types.len(), names(types))));
            }
            Expression::concat(parts)
        }
        "map" => {
            let key = of_packet(&of.need("key", "what is looked up")?, within)?;
            let data = of.need("data", "a map")?;
            let map = mapping(&data, &key, within, |value| parse(value, types, within))?;
            Expression::Map(Box::new(Map { key, map }))
        }
        "prefix" => {
            let value = constant::parse(&of.need("addr", "an address")?, types.first().copied(), within)?;
            let node = of.need("len", "the length of the prefix")?;
            let length = node.number("the length of a prefix")?;
            let bits = match &value {
                Value::Address(address) if address.is_ipv4() => 32,
                Value::Address(_) => 128,
                _ => types.first().map_or(u8::MAX, |of| u8::try_from(of.width()).unwrap_or(u8::MAX)),
            };
            if length > bits {
                return Err(node.wrong(&format!("the length of a prefix, up to {bits}")));
            }
            Expression::prefix(value, length)
        }
        "range" => {
            let [low, high] = of.pair("a list of two bounds")?;
            let bound = |node: &Node<'_>| constant::parse(node, types.first().copied(), within);
            Expression::Range(Box::new((bound(&low)?, bound(&high)?)))
        }
        "set" => {
            let members = of.one_or_more();
            if members.is_empty() {
                return Err(of.wrong("members of a set"));
            }
            let members = members.iter().map(|member| parse(member, types, within));
            Expression::Set(all(members, within.max_mistakes())?)
        }
        "elem" => element(&of, types, within)?,
        "&" | "|" | "^" | "<<" | ">>" => calculation(word, &of, types, within)?,
        _ => return Err(node.unknown_word("an expression", word, WORDS)),
    })
}

/// A part of a key: nft 1.0.6 lists a field of bits as if it were shifted once more.
pub(in crate::json) fn without_shift(of: Expression) -> Expression {
    let Expression::Binary(binary) = &of else { return of };
    match (&binary.left, binary.op, &binary.right) {
        (Expression::Payload(field), BinaryOp::ShiftRight, Expression::Value(Value::Number(shift)))
            if shift_of(*field).map(u64::from) == Some(*shift) =>
        {
            (*field).into()
        }
        _ => of,
    }
}

/// Bits of which any will do, or all of which are meant.
fn list(node: &Node<'_>, types: &[Typed], within: Within<'_>) -> Parsed<Expression> {
    let [of] = types else { return Err(node.wrong("a single value")) };
    if !of.data_type().is_bitmask() {
        let error = node.wrong(&format!("a value of type {}; only bits are given as a list", of.data_type()));
        return Err(error.meant(Some("{\"set\": [...]}")));
    }
    let mut all = None;
    for bit in node.list("a list of bits")? {
        let value = constant::parse(&bit, Some(*of), within)?;
        all = Some(match all {
            None => value,
            Some(before) => joined(BinaryOp::Or, &before, &value).ok_or_else(|| bit.wrong("a bit"))?,
        });
    }
    all.map(Expression::Value).ok_or_else(|| node.wrong("bits"))
}

/// What constants are when they are calculated with.
fn joined(op: BinaryOp, left: &Value, right: &Value) -> Option<Value> {
    let wide = |value: &Value| match value {
        Value::Number(number) => Some(u128::from(*number)),
        Value::Bytes(bytes) => (&**bytes).try_into().ok().map(u128::from_ne_bytes),
        _ => None,
    };
    if let (Value::Number(a), Value::Number(b)) = (left, right) {
        let shift = u32::try_from(*b).unwrap_or(u32::MAX);
        return Some(Value::Number(match op {
            BinaryOp::And => a & b,
            BinaryOp::Or => a | b,
            BinaryOp::Xor => a ^ b,
            BinaryOp::ShiftLeft => a.checked_shl(shift).unwrap_or(0),
            BinaryOp::ShiftRight => a.checked_shr(shift).unwrap_or(0),
        }));
    }
    let bits = wide(left)? | wide(right)?;
    (op == BinaryOp::Or).then(|| Value::Bytes(bits.to_ne_bytes().into()))
}

fn calculation(word: &str, of: &Node<'_>, types: &[Typed], within: Within<'_>) -> Parsed<Expression> {
    let op = match word {
        "&" => BinaryOp::And,
        "|" => BinaryOp::Or,
        "^" => BinaryOp::Xor,
        "<<" => BinaryOp::ShiftLeft,
        _ => BinaryOp::ShiftRight,
    };
    let operands: Vec<_> = of.list("a list of two expressions")?.collect();
    // nft 1.0.6 joins two; later versions any number.
    let [first, rest @ ..] = operands.as_slice() else { return Err(of.wrong("two expressions")) };
    if rest.is_empty() {
        return Err(of.wrong("two expressions"));
    }
    let mut left = parse(first, types, within)?;
    for operand in rest {
        let own = types_of(&left);
        let shift = [Typed::from(DataType::INTEGER)];
        let right = match op {
            BinaryOp::ShiftLeft | BinaryOp::ShiftRight => parse(operand, &shift, within)?,
            _ if own.is_empty() || left.is_constant() => parse(operand, types, within)?,
            // What the result is for may be wider.
            _ => match parse(operand, &own, within) {
                Err(error) if !types.is_empty() => parse(operand, types, within).map_err(|_| error)?,
                parsed => parsed?,
            },
        };
        left = match (&left, &right) {
            (Expression::Value(_), Expression::Value(Value::Number(by)))
                if op.is_shift() && types.first().is_some_and(|typed| *by >= typed.width() as u64) =>
            {
                return Err(operand.wrong("a shift of less than the bits that there are"));
            }
            (Expression::Value(a), Expression::Value(b)) => {
                joined(op, a, b).ok_or_else(|| operand.wrong("a number or bits to calculate with"))?.into()
            }
            _ => left.binary(op, right),
        };
    }
    Ok(left)
}

/// A member of a set without a name, with what it carries.
fn element(of: &Node<'_>, types: &[Typed], within: Within<'_>) -> Parsed<Expression> {
    for word in ["timeout", "expires"] {
        if let Some(node) = of.given(word) {
            return Err(node.wrong("nothing: only elements of sets with a name go by themselves"));
        }
    }
    let elem = Elem {
        value: parse(&of.need("val", "a value")?, types, within)?,
        statements: statement::carried(of, within)?,
        comment: comment(of)?,
    };
    Ok(elem.into())
}

/// A map: its name, or pairs of keys and values.
pub(in crate::json) fn mapping<V>(
    node: &Node<'_>,
    key: &Expression,
    within: Within<'_>,
    value: impl Fn(&Node<'_>) -> Parsed<V>,
) -> Parsed<Mapping<V>> {
    if let Some(text) = node.value.as_str() {
        return match text.strip_prefix('@') {
            Some(map) => Ok(Mapping::Named(name_of(node, map)?)),
            None => Err(node.wrong("a map: \"@name\" or {\"set\": [[KEY, VALUE], ...]}")),
        };
    }
    // nft does not compare what is looked up in a map with the results that there may be.
    let types: Vec<_> = types_of(key).into_iter().map(Typed::without_limit).collect();
    let pairs = node.need("set", "pairs of keys and values")?;
    let pair = |pair: Node<'_>| {
        let [key, to] = pair.pair("a pair of a key and a value")?;
        Ok((parse(&key, &types, within)?, value(&to)?))
    };
    let pairs = all(pairs.list("pairs of keys and values")?.map(pair), within.max_mistakes())?;
    if pairs.is_empty() { Err(node.wrong("pairs of keys and values")) } else { Ok(Mapping::Anonymous(pairs)) }
}

/// A verdict.
pub(in crate::json) fn verdict(node: &Node<'_>) -> Parsed<Verdict> {
    if let Some(text) = node.value.as_str() {
        return Err(node.unknown_word("a verdict, as {\"accept\": null}", text, &[]));
    }
    let (word, of) = node.only("a verdict")?;
    let target = || name(&of.need("target", "the name of a chain")?, "the name of a chain");
    if !matches!(word, "jump" | "goto") {
        of.null()?;
    }
    Ok(match word {
        "accept" => Verdict::Accept,
        "drop" => Verdict::Drop,
        "continue" => Verdict::Continue,
        "return" => Verdict::Return,
        "jump" => Verdict::Jump(target()?),
        "goto" => Verdict::Goto(target()?),
        _ => {
            let words = ["accept", "drop", "continue", "return", "jump", "goto"];
            return Err(node.unknown_word("a verdict", word, &words));
        }
    })
}

fn name_of(node: &Node<'_>, text: &str) -> Parsed<Name> {
    checked_name(node, text, "the name of a set")
}

fn header_field(of: &Node<'_>) -> Parsed<Expression> {
    if of.has("base") {
        let base = of.need("base", "a header")?.word("a header", &BASES)?;
        let offset = of.need("offset", "an offset in bits")?.number("an offset in bits")?;
        let node = of.need("len", "a length in bits")?;
        let bits = node.number("a length in bits")?;
        if !(1..=128).contains(&bits) {
            return Err(node.wrong("a length from 1 to 128 bits"));
        }
        return Ok(RawPayload { base, offset, bits }.into());
    }
    let protocol_node = of.need("protocol", "a header")?;
    let field_node = of.need("field", "a field")?;
    let (protocol, field) = (protocol_node.text("a header")?, field_node.text("a field of a header")?);
    let Some(found) = field_named(protocol, field) else {
        let fields: Vec<_> =
            Payload::ALL.iter().filter(|of| of.protocol() == protocol).map(|of| of.field()).collect();
        if fields.is_empty() {
            let mut protocols: Vec<_> = Payload::ALL.iter().map(|of| of.protocol()).collect();
            protocols.dedup();
            return Err(protocol_node.unknown("a header", &protocols));
        }
        return Err(field_node.unknown(&format!("a field of {protocol}"), &fields));
    };
    match of.given("tunnel") {
        Some(tunnel) => {
            let tunnels = [
                ("vxlan", InnerType::VXLAN),
                ("geneve", InnerType::GENEVE),
                ("gre", InnerType::GRE),
                ("gretap", InnerType::GRETAP),
            ];
            Ok(Inner { tunnel: tunnel.word("a tunnel", &tunnels)?, field: found }.into())
        }
        None => Ok(found.into()),
    }
}

/// With the words that nft has for some fields beside those that it prints.
fn field_named(protocol: &str, field: &str) -> Option<Payload> {
    let field = match (protocol, field) {
        ("icmpv6", "param-problem") => "parameter-problem",
        ("icmpv6", "packet-too-big") => "mtu",
        ("ip", "protocol") => "protocol",
        (_, field) => field,
    };
    Payload::find(protocol, field)
}

fn extension_header(of: &Node<'_>, op: ExthdrOp) -> Parsed<Exthdr> {
    if op == ExthdrOp::TCPOPT && of.has("base") {
        let kind = of.need("base", "the option's number")?.number("a number up to 255")?;
        let offset: u16 = of.need("offset", "an offset in bits")?.number("an offset in bits")?;
        let bits: u16 = of.need("len", "a length in bits")?.number("a length in bits")?;
        return Ok(match (offset, bits) {
            (0, 8) => Exthdr::tcp_option(kind),
            _ => Exthdr::tcp_option_at(kind, offset, bits),
        });
    }
    let header_node = of.need("name", "the name of a header")?;
    let header = header_node.text("the name of a header")?;
    let field_node = of.given("field");
    let field = match &field_node {
        Some(node) => node.text("the name of a field")?,
        None => "",
    };
    // Before nft 1.0.7 the place of an address in a routing header was a number beside its name.
    let index_node = of.given("offset");
    let index: Option<u64> = index_node.as_ref().map(|node| node.number("a number")).transpose()?;
    let indexed =
        index.and_then(|at| Exthdr::find(op, header, &format!("{field}[{}]", at.saturating_add(1))));
    let found = indexed.or_else(|| Exthdr::find(op, header, field));
    if let (None, Some(_), Some(node)) = (indexed, found, index_node.filter(|_| index != Some(0))) {
        return Err(node.wrong("0, or the place of one of several fields"));
    }
    found.ok_or_else(|| {
        let of_op = || Exthdr::all().filter(|of| of.op() == op);
        let fields: Vec<_> = of_op()
            .filter(|of| of.header() == Some(header))
            .map(Exthdr::field_name)
            .filter(|name| !name.is_empty())
            .collect();
        match &field_node {
            Some(node) if !fields.is_empty() => node.unknown(&format!("a field of {header}"), &fields),
            _ => {
                let mut headers: Vec<_> = of_op().filter_map(Exthdr::header).collect();
                headers.dedup();
                header_node.unknown("a header", &headers)
            }
        }
    })
}

fn meta_key(node: &Node<'_>) -> Parsed<MetaKey> {
    let text = node.text("a key of meta")?;
    let alias = match text {
        "ibridgename" | "ibriport" => Some(MetaKey::IBRNAME),
        "obridgename" | "obriport" => Some(MetaKey::OBRNAME),
        "secpath" => Some(MetaKey::IPSEC),
        "iifgroup" => Some(MetaKey::IIFGROUP),
        _ => None,
    };
    let found = alias.or_else(|| MetaKey::ALL.iter().copied().find(|key| key.name() == Some(text)));
    found.ok_or_else(|| {
        let names: Vec<_> = MetaKey::ALL.iter().filter_map(|key| key.name()).collect();
        node.unknown("a key of meta", &names)
    })
}

fn connection(of: &Node<'_>, within: Within<'_>) -> Parsed<Ct> {
    let node = of.need("key", "what of the connection")?;
    let text = node.text("a key of ct")?;
    let given = match of.given("family") {
        Some(family) => Some(family.word("a family", &[("ip", Family::IP), ("ip6", Family::IP6)])?),
        None => None,
    };
    if let (Some(family), false) = (of.given("family"), matches!(text, "saddr" | "daddr")) {
        return Err(family.wrong("no family, which only the keys `saddr` and `daddr` have"));
    }
    let text = match (given, text) {
        (Some(Family::IP6), "saddr") => "ip6 saddr",
        (Some(Family::IP6), "daddr") => "ip6 daddr",
        (Some(Family::IP), "saddr") => "ip saddr",
        (Some(Family::IP), "daddr") => "ip daddr",
        (_, text) => text,
    };
    let key = CtKey::ALL.iter().copied().find(|key| key.name() == Some(text)).ok_or_else(|| {
        let names: Vec<_> = CtKey::ALL.iter().filter_map(|key| key.name()).collect();
        node.unknown("a key of ct", &names)
    })?;
    let directions = [("original", Direction::ORIGINAL), ("reply", Direction::REPLY)];
    let direction = match of.given("dir") {
        Some(dir) => Some(dir.word("a direction", &directions)?),
        None => None,
    };
    let of_table = Some(within.family()).filter(|of| matches!(*of, Family::IP | Family::IP6));
    Ok(Ct { key, direction, family: of_table.filter(|_| matches!(key, CtKey::SADDR | CtKey::DADDR)) })
}

fn route_key(of: &Node<'_>) -> Parsed<RtKey> {
    let family = match of.given("family") {
        Some(family) => Some(family.word("a family", &[("ip", Family::IP), ("ip6", Family::IP6)])?),
        None => None,
    };
    let node = of.need("key", "what of the route")?;
    if let (Some(family), Some("classid" | "mtu" | "ipsec")) = (of.given("family"), node.value.as_str()) {
        return Err(family.wrong("no family, which only the key `nexthop` has"));
    }
    Ok(match (node.text("a key of rt")?, family) {
        ("nexthop", Some(Family::IP6)) => RtKey::NEXTHOP_IP6,
        ("nexthop", Some(_)) => RtKey::NEXTHOP_IP,
        ("nexthop", None) => return Err(of.wrong("a member \"family\": ip or ip6")),
        _ => node.word(
            "a key of rt",
            &[("classid", RtKey::CLASSID), ("mtu", RtKey::MTU), ("ipsec", RtKey::IPSEC)],
        )?,
    })
}

fn socket(of: &Node<'_>) -> Parsed<Expression> {
    let keys = [
        ("transparent", SocketKey::TRANSPARENT),
        ("mark", SocketKey::MARK),
        ("wildcard", SocketKey::WILDCARD),
        ("cgroupv2", SocketKey::CGROUPV2),
    ];
    let key = of.need("key", "what of the socket")?.word("a key of socket", &keys)?;
    Ok(Expression::Socket(Socket { key, level: optional_number(of, "level")? }))
}

fn fingerprint(of: &Node<'_>) -> Parsed<Expression> {
    let version =
        of.need("key", "name or version")?.word("a key of osf", &[("name", false), ("version", true)])?;
    let ttl = match of.given("ttl") {
        Some(ttl) => ttl.word("how to compare the TTL", &[("loose", 1), ("skip", 2)])?,
        None => 0,
    };
    Ok(Expression::Osf(Osf { ttl, version }))
}

fn route(of: &Node<'_>) -> Parsed<Fib> {
    const FLAGS: [(&str, FibFlags); 5] = [
        ("saddr", FibFlags::SADDR),
        ("daddr", FibFlags::DADDR),
        ("mark", FibFlags::MARK),
        ("iif", FibFlags::IIF),
        ("oif", FibFlags::OIF),
    ];
    let results = [
        ("oif", (FibResult::OIF, false)),
        ("oifname", (FibResult::OIFNAME, false)),
        ("type", (FibResult::ADDRTYPE, false)),
        ("check", (FibResult::OIF, true)),
    ];
    let (result, check) = of.need("result", "what to give")?.word("a result of fib", &results)?;
    let node = of.need("flags", "what to look up")?;
    let mut flags = FibFlags::empty();
    for flag in node.one_or_more() {
        flags |= flag.word("a flag of fib", &FLAGS)?;
    }
    if !flags.intersects(FibFlags::SADDR | FibFlags::DADDR) {
        return Err(node.wrong("saddr or daddr among the flags"));
    }
    Ok(Fib { flags, result, check })
}

fn numgen(of: &Node<'_>) -> Parsed<Numgen> {
    let modes = [("inc", NumgenMode::INCREMENTAL), ("random", NumgenMode::RANDOM)];
    Ok(Numgen {
        mode: of.need("mode", "inc or random")?.word("a mode of numgen", &modes)?,
        modulus: number(&of.need("mod", "a number")?)?,
        offset: optional_number(of, "offset")?.unwrap_or(0),
    })
}

fn hash(of: &Node<'_>, within: Within<'_>) -> Parsed<Expression> {
    Ok(Expression::Jhash(Box::new(Jhash {
        of: of_packet(&of.need("expr", "what is hashed")?, within)?,
        modulus: number(&of.need("mod", "a number")?)?,
        seed: optional_number(of, "seed")?,
        offset: optional_number(of, "offset")?.unwrap_or(0),
    })))
}

fn transformation(of: &Node<'_>) -> Parsed<Expression> {
    let family = match of.given("family") {
        Some(family) => Some(family.word("a family", &[("ip", Family::IP), ("ip6", Family::IP6)])?),
        None => None,
    };
    let node = of.need("key", "what of the transformation")?;
    if let (Some(family), Some("reqid" | "spi")) = (of.given("family"), node.value.as_str()) {
        return Err(family.wrong("no family, which only the keys `saddr` and `daddr` have"));
    }
    let key = match (node.text("a key of ipsec")?, family) {
        ("saddr", Some(Family::IP6)) => XfrmKey::SADDR_IP6,
        ("saddr", Some(_)) => XfrmKey::SADDR_IP,
        ("daddr", Some(Family::IP6)) => XfrmKey::DADDR_IP6,
        ("daddr", Some(_)) => XfrmKey::DADDR_IP,
        ("saddr" | "daddr", None) => return Err(of.wrong("a member \"family\": ip or ip6")),
        _ => node.word("a key of ipsec", &[("reqid", XfrmKey::REQID), ("spi", XfrmKey::SPI)])?,
    };
    let out = of.need("dir", "in or out")?.word("a direction", &[("in", false), ("out", true)])?;
    Ok(Expression::Ipsec(Ipsec { key, out, number: optional_number(of, "spnum")?.unwrap_or(0) }))
}

fn number(node: &Node<'_>) -> Parsed<u32> {
    node.number("a number of 32 bits")
}

fn optional_number(of: &Node<'_>, name: &str) -> Parsed<Option<u32>> {
    of.given(name).map(|node| number(&node)).transpose()
}

fn names(types: &[Typed]) -> String {
    types.iter().map(|of| of.data_type().name()).collect::<Vec<_>>().join(" . ")
}

const BASES: [(&str, PayloadBase); 4] = [
    ("ll", PayloadBase::LINK),
    ("nh", PayloadBase::NETWORK),
    ("th", PayloadBase::TRANSPORT),
    ("ih", PayloadBase::INNER),
];
const TUNNEL_KEYS: [(&str, TunnelKey); 2] = [("path", TunnelKey::PATH), ("id", TunnelKey::ID)];
const WORDS: &[&str] = &[
    "payload",
    "exthdr",
    "tcp option",
    "ip option",
    "sctp chunk",
    "dccp option",
    "meta",
    "ct",
    "rt",
    "socket",
    "osf",
    "fib",
    "numgen",
    "jhash",
    "symhash",
    "ipsec",
    "tunnel",
    "concat",
    "map",
    "prefix",
    "range",
    "set",
    "elem",
    "&",
    "|",
    "^",
    "<<",
    ">>",
];
