//! Expressions, and what they are compared with.

use std::net::{Ipv4Addr, Ipv6Addr};

use proptest::prelude::*;
use sluicegate_nftables::expr::{
    CtKey, Direction, FibFlags, FibResult, InnerType, MetaKey, NumgenMode, PayloadBase, RtKey, SocketKey,
    TunnelKey, XfrmKey,
};
use sluicegate_nftables::lang::exthdr::Exthdr;
use sluicegate_nftables::lang::*;
use sluicegate_nftables::{Comment, DataType, EtherAddr, InterfaceName, Order, Part};

use crate::trees::{name, statement};

/// Any expression that can be on the left side of a comparison, with the bits that a value of it has.
pub(crate) fn of_packet() -> impl Strategy<Value = Expression> {
    prop_oneof![
        6 => prop::sample::select(Payload::ALL).prop_map(Expression::from),
        2 => raw_payload(),
        3 => prop::sample::select(Exthdr::all().collect::<Vec<_>>()).prop_map(Expression::Exthdr),
        4 => meta(),
        4 => ct(),
        1 => route(),
        1 => socket(),
        1 => any::<(bool, u8)>().prop_map(|(version, ttl)| Expression::Osf(Osf { ttl: ttl % 3, version })),
        2 => fib(),
        1 => numgen(),
        1 => hash(),
        1 => ipsec(),
        1 => prop_oneof![Just(TunnelKey::PATH), Just(TunnelKey::ID)].prop_map(Expression::Tunnel),
        1 => inner(),
    ]
}

/// Every kind of expression, in one list.
pub(crate) fn every_kind() -> impl Strategy<Value = Expression> {
    prop_oneof![
        of_packet(),
        comparison().prop_map(|of| of.left),
        comparison().prop_map(|of| of.right),
        lookup(DataType::MARK),
        comparison().prop_filter_map("a member", |of| match of.right {
            Expression::Set(members) => members.into_iter().next(),
            _ => None,
        }),
        statement::vmap().prop_filter_map("the last key", |of| match of.map {
            Mapping::Anonymous(pairs) => pairs.into_iter().last().map(|(key, _)| key),
            Mapping::Named(_) => None,
        }),
    ]
}

/// Every kind of constant.
pub(crate) fn value() -> impl Strategy<Value = Value> {
    of_packet().prop_flat_map(|of| constant(&of))
}

/// The names of the operators of calculated expressions.
pub(crate) fn calculated() -> impl Strategy<Value = String> {
    calculation().prop_map(|of| match of {
        Expression::Binary(binary) => format!("{:?}", binary.op),
        other => panic!("{other:?}"),
    })
}

fn raw_payload() -> impl Strategy<Value = Expression> {
    let bases = prop::sample::select(vec![
        PayloadBase::LINK,
        PayloadBase::NETWORK,
        PayloadBase::TRANSPORT,
        PayloadBase::INNER,
    ]);
    (bases, 0_u16..1000, 1_u16..=128)
        .prop_map(|(base, offset, bits)| Expression::RawPayload(RawPayload { base, offset, bits }))
}

fn meta() -> impl Strategy<Value = Expression> {
    // What can be set and not compared.
    const NOT_READ: [MetaKey; 2] = [MetaKey::BROUTE, MetaKey::SECMARK];
    let keys: Vec<_> = MetaKey::ALL.iter().copied().filter(|key| !NOT_READ.contains(key)).collect();
    prop::sample::select(keys).prop_map(Expression::Meta)
}

fn ct() -> impl Strategy<Value = Expression> {
    const DIRECTED: [CtKey; 10] = [
        CtKey::SADDR_IP,
        CtKey::DADDR_IP,
        CtKey::SADDR_IP6,
        CtKey::DADDR_IP6,
        CtKey::PROTO_SRC,
        CtKey::PROTO_DST,
        CtKey::PROTOCOL,
        CtKey::L3PROTO,
        CtKey::ZONE,
        CtKey::AVGPKT,
    ];
    // Whose type the family of the rule gives, and what can only be set.
    const OTHER: [CtKey; 4] = [CtKey::SADDR, CtKey::DADDR, CtKey::EVENT, CtKey::SECMARK];
    let plain: Vec<_> =
        CtKey::ALL.iter().copied().filter(|key| !DIRECTED.contains(key) && !OTHER.contains(key)).collect();
    let directions = prop::sample::select(vec![Direction::ORIGINAL, Direction::REPLY]);
    prop_oneof![
        prop::sample::select(plain).prop_map(|key| Ct { key, direction: None, family: None }),
        (prop::sample::select(DIRECTED.to_vec()), directions).prop_map(|(key, direction)| Ct {
            key,
            direction: Some(direction),
            family: None
        }),
    ]
    .prop_map(Expression::Ct)
}

fn route() -> impl Strategy<Value = Expression> {
    prop::sample::select(RtKey::ALL).prop_map(|key| Expression::Rt(Rt { key }))
}

fn socket() -> impl Strategy<Value = Expression> {
    (prop::sample::select(SocketKey::ALL), any::<u8>()).prop_map(|(key, level)| {
        let level = (key == SocketKey::CGROUPV2).then_some(u32::from(level));
        Expression::Socket(Socket { key, level })
    })
}

fn fib() -> impl Strategy<Value = Expression> {
    let flags = prop::sample::select(vec![
        FibFlags::SADDR,
        FibFlags::DADDR,
        FibFlags::SADDR | FibFlags::IIF,
        FibFlags::DADDR | FibFlags::MARK | FibFlags::OIF,
    ]);
    let results = prop::sample::select(vec![
        (FibResult::OIF, true),
        (FibResult::OIF, false),
        (FibResult::OIFNAME, false),
        (FibResult::ADDRTYPE, false),
    ]);
    (flags, results).prop_map(|(flags, (result, check))| Expression::Fib(Fib { flags, result, check }))
}

fn numgen() -> impl Strategy<Value = Expression> {
    let modes = prop::sample::select(vec![NumgenMode::INCREMENTAL, NumgenMode::RANDOM]);
    (modes, 1_u32.., any::<u16>()).prop_map(|(mode, modulus, offset)| {
        Expression::Numgen(Numgen { mode, modulus, offset: u32::from(offset) })
    })
}

fn hash() -> impl Strategy<Value = Expression> {
    let of = prop::sample::select(vec![
        Expression::from(Payload::IP_SADDR),
        Expression::concat([Payload::IP6_SADDR.into(), Payload::TCP_SPORT.into()]),
    ]);
    let numbers = (1_u32.., any::<Option<u32>>(), any::<u16>());
    prop_oneof![
        (of, numbers).prop_map(|(of, (modulus, seed, offset))| {
            Expression::Jhash(Box::new(Jhash { of, modulus, seed, offset: offset.into() }))
        }),
        (1_u32.., any::<u16>())
            .prop_map(|(modulus, offset)| Expression::Symhash(Symhash { modulus, offset: offset.into() })),
    ]
}

fn ipsec() -> impl Strategy<Value = Expression> {
    (prop::sample::select(XfrmKey::ALL), any::<bool>(), any::<u8>())
        .prop_map(|(key, out, number)| Expression::Ipsec(Ipsec { key, out, number: number.into() }))
}

fn inner() -> impl Strategy<Value = Expression> {
    let tunnels =
        prop::sample::select(vec![InnerType::VXLAN, InnerType::GENEVE, InnerType::GRE, InnerType::GRETAP]);
    let fields = prop::sample::select(vec![
        Payload::IP_SADDR,
        Payload::TCP_DPORT,
        Payload::IP6_DADDR,
        Payload::UDP_SPORT,
    ]);
    (tunnels, fields).prop_map(|(tunnel, field)| Expression::Inner(Inner { tunnel, field }))
}

/// A field or a mark that is calculated with.
pub(crate) fn calculation() -> impl Strategy<Value = Expression> {
    let left = prop::sample::select(vec![
        Expression::Meta(MetaKey::MARK),
        Expression::Ct(Ct { key: CtKey::MARK, direction: None, family: None }),
        Expression::Payload(Payload::TCP_DPORT),
        Expression::Payload(Payload::IP6_FLOWLABEL),
    ]);
    let ops = prop::sample::select(vec![
        BinaryOp::And,
        BinaryOp::Or,
        BinaryOp::Xor,
        BinaryOp::ShiftLeft,
        BinaryOp::ShiftRight,
    ]);
    (left, ops, 1_u32..256).prop_map(|(left, op, number)| {
        let shift = matches!(op, BinaryOp::ShiftLeft | BinaryOp::ShiftRight);
        left.binary(op, if shift { number % 8 + 1 } else { number })
    })
}

/// A value looked up in a map, with or without a name, whose values are marks or addresses.
pub(crate) fn lookup(of: DataType) -> BoxedStrategy<Expression> {
    let named = if of == DataType::MARK { "marks" } else { "addresses" };
    let value = move |number: u32| match of {
        DataType::MARK => Expression::from(number),
        _ => Ipv4Addr::from(number).into(),
    };
    let keys = prop::collection::btree_set(any::<u16>(), 1..4);
    prop_oneof![
        Just(Expression::from(Payload::TCP_DPORT).map(&name(named))),
        (keys, any::<u32>()).prop_map(move |(keys, number)| {
            let pairs = keys.into_iter().map(|key| (Expression::from(key), value(number)));
            Expression::from(Payload::TCP_DPORT).map_anonymous(pairs)
        }),
    ]
    .boxed()
}

/// What a value of an expression is: its type, and how many bits it has.
fn kind(of: &Expression) -> (Part, u32) {
    let part = of.part().expect("a type");
    let bits = match of {
        Expression::Payload(field) | Expression::Inner(Inner { field, .. }) => u32::from(field.bits()),
        Expression::RawPayload(raw) => u32::from(raw.bits),
        Expression::Exthdr(field) if field.is_presence() => 1,
        Expression::Exthdr(field) => u32::from(field.bits()),
        Expression::Socket(Socket { key: SocketKey::TRANSPARENT | SocketKey::WILDCARD, .. })
        | Expression::Meta(MetaKey::NFTRACE) => 1,
        _ => match part {
            Part::Type(of) => u32::from(of.bits()),
            other => u32::try_from(other.bytes() * 8).expect("a few"),
        },
    };
    (part, bits)
}

/// A constant that an expression can be compared with.
pub(crate) fn constant(of: &Expression) -> BoxedStrategy<Value> {
    let (part, bits) = kind(of);
    let below = |limit: u64| (0..limit).prop_map(Value::Number).boxed();
    match part.data_type() {
        DataType::IPV4_ADDR => any::<Ipv4Addr>().prop_map(Value::from).boxed(),
        DataType::IPV6_ADDR => any::<Ipv6Addr>().prop_map(Value::from).boxed(),
        DataType::ETHER_ADDR | DataType::LL_ADDR => {
            any::<[u8; 6]>().prop_map(|bytes| Value::Ether(EtherAddr(bytes))).boxed()
        }
        DataType::IFNAME => "[a-z][a-z0-9]{0,13}".prop_map(|text| Value::Interface(interface(&text))).boxed(),
        DataType::STRING => "[a-z][a-z0-9]{0,13}".prop_map(|text| Value::Text(interface(&text))).boxed(),
        DataType::CT_LABEL => (0_u32..128).prop_map(label).boxed(),
        DataType::TIME => (0_u64..1 << 32).prop_map(Value::Number).boxed(),
        DataType::DATE => (0_u64..1 << 33).prop_map(|s| Value::Number(s * 1_000_000_000)).boxed(),
        DataType::HOUR => below(24 * 60 * 60),
        DataType::DAY => below(7),
        // The index of an interface is an int.
        DataType::IFACE_INDEX => below(1 << 31),
        DataType::BOOLEAN => below(2),
        of if of.is_bitmask() => {
            let known = of.symbols().iter().fold(0, |all, (_, bit)| all | bit);
            any::<u64>().prop_map(move |bits| Value::Number(bits & known)).boxed()
        }
        _ if bits > 64 => wide(part, bits),
        _ => {
            let largest = if bits == 64 { u64::MAX } else { (1 << bits) - 1 };
            let largest = largest_result(of).map_or(largest, |result| result.min(largest));
            (0..=largest).prop_map(Value::Number).boxed()
        }
    }
}

/// The largest number that an expression gives which is calculated modulo another.
fn largest_result(of: &Expression) -> Option<u64> {
    let (modulus, offset) = match of {
        Expression::Numgen(of) => (of.modulus, of.offset),
        Expression::Jhash(of) => (of.modulus, of.offset),
        Expression::Symhash(of) => (of.modulus, of.offset),
        _ => return None,
    };
    Some(u64::from(modulus).saturating_sub(1) + u64::from(offset))
}

fn interface(text: &str) -> InterfaceName {
    InterfaceName::new(text).expect("a name")
}

/// The mask of one label of a connection.
fn label(bit: u32) -> Value {
    match bit {
        0..64 => Value::Number(1 << bit),
        _ => Value::Bytes((1_u128 << bit).to_ne_bytes().into()),
    }
}

/// A number of more than 64 bits is its bytes, a smaller one a number.
fn wide(part: Part, bits: u32) -> BoxedStrategy<Value> {
    let Part::Integer { bytes, order } = part else { panic!("{part:?}") };
    let largest = if bits == 128 { u128::MAX } else { (1 << bits) - 1 };
    (any::<u128>(), any::<bool>())
        .prop_map(move |(number, small)| {
            let number = if small { number % (1 << 64) } else { number & largest };
            if let Ok(small) = u64::try_from(number) {
                return Value::Number(small);
            }
            let mut bytes = number.to_be_bytes()[16 - usize::from(bytes)..].to_vec();
            if order == Order::Host && cfg!(target_endian = "little") {
                bytes.reverse();
            }
            Value::Bytes(bytes.into())
        })
        .boxed()
}

/// A comparison: with a constant, a range, a prefix, a set or what is looked up.
pub(crate) fn comparison() -> BoxedStrategy<Match> {
    prop_oneof![
        8 => of_packet().prop_flat_map(|left| compared(&left)),
        1 => (calculation().prop_filter("a \
            comparison", |of| !flips(of)), any::<u8>(), any::<bool>()).prop_map(|(left, number, not)| {
            // What is calculated is compared in so many words.
            let op = if not { MatchOp::Neq } else { MatchOp::Eq };
            Match { left, op, right: u32::from(number).into() }
        }),
        1 => concatenation(),
    ]
    .boxed()
}

/// Whether bits are flipped: where that is compared, those of the constant are flipped instead.
fn flips(of: &Expression) -> bool {
    matches!(of, Expression::Binary(binary) if binary.op == BinaryOp::Xor)
}

fn compared(left: &Expression) -> BoxedStrategy<Match> {
    let of = kind(left).0.data_type();
    let text = matches!(of, DataType::IFNAME | DataType::STRING);
    // A check is asked for by what it is compared with.
    let check = matches!(left, Expression::Fib(Fib { check: true, .. }));
    let one = constant(left).prop_map(Expression::Value).boxed();
    let (bits, ordered) = (of.is_bitmask(), !text && of != DataType::BOOLEAN && !check);
    let mut options: Vec<BoxedStrategy<(MatchOp, Expression)>> =
        vec![(Just(MatchOp::In), one.clone()).boxed(), (Just(MatchOp::Neq), one.clone()).boxed()];
    if bits {
        options.push((prop_oneof![Just(MatchOp::Eq), Just(MatchOp::None)], one.clone()).boxed());
    } else if ordered {
        let ops = vec![MatchOp::Lt, MatchOp::Gt, MatchOp::Lte, MatchOp::Gte];
        options.push((prop::sample::select(ops), one).boxed());
        let range = (constant(left), constant(left)).prop_filter_map("a range", range);
        let not = prop::sample::select(vec![MatchOp::In, MatchOp::Neq]);
        options.push((not, range).boxed());
    }
    if matches!(of, DataType::IPV4_ADDR | DataType::IPV6_ADDR) {
        let longest: u8 = if of == DataType::IPV4_ADDR { 32 } else { 128 };
        let prefix = (constant(left), 1..longest).prop_map(|(value, length)| prefix(&value, length));
        options.push((prop::sample::select(vec![MatchOp::In, MatchOp::Neq]), prefix).boxed());
    }
    if !check {
        let not = || prop::sample::select(vec![MatchOp::In, MatchOp::Neq]);
        let comment = prop::option::of("[a-z ]{1,20}");
        let counted = any::<bool>();
        let member = (constant(left), comment, counted).prop_map(|(value, comment, counted)| {
            let comment = comment.and_then(|text| Comment::new(text.trim()).ok());
            let statements = if counted { vec![Counter { packets: 1, bytes: 2 }.into()] } else { Vec::new() };
            Expression::from(Elem { value: value.into(), statements, comment })
        });
        let members = prop::collection::vec(member, 1..4);
        options.push((not(), members.prop_map(Expression::Set)).boxed());
        options.push((not(), Just(Expression::named(&name("plain")))).boxed());
    }
    let left = left.clone();
    prop::strategy::Union::new(options)
        .prop_map(move |(op, right)| Match { left: left.clone(), op, right })
        .boxed()
}

fn range((one, other): (Value, Value)) -> Option<Expression> {
    let (low, high) = match (&one, &other) {
        (Value::Number(a), Value::Number(b)) if a < b => (one, other),
        (Value::Number(a), Value::Number(b)) if a > b => (other, one),
        (Value::Address(a), Value::Address(b)) if a < b => (one, other),
        (Value::Address(a), Value::Address(b)) if a > b => (other, one),
        (Value::Ether(a), Value::Ether(b)) if a.0 < b.0 => (one, other),
        (Value::Ether(a), Value::Ether(b)) if a.0 > b.0 => (other, one),
        _ => return None,
    };
    Some(Expression::range(low, high))
}

/// A prefix whose other bits are zero.
fn prefix(value: &Value, length: u8) -> Expression {
    match value {
        Value::Address(std::net::IpAddr::V4(address)) => {
            let mask = u32::MAX << (32 - u32::from(length));
            Expression::prefix(Ipv4Addr::from(u32::from(*address) & mask), length)
        }
        Value::Address(std::net::IpAddr::V6(address)) => {
            let mask = u128::MAX << (128 - u32::from(length));
            Expression::prefix(Ipv6Addr::from(u128::from(*address) & mask), length)
        }
        other => panic!("{other:?}"),
    }
}

fn concatenation() -> impl Strategy<Value = Match> {
    let parts = vec![
        Expression::from(Payload::IP_SADDR),
        Payload::TCP_DPORT.into(),
        Expression::Meta(MetaKey::MARK),
        Expression::Meta(MetaKey::IIFNAME),
        Expression::Meta(MetaKey::L4PROTO),
    ];
    prop::sample::subsequence(parts, 2..5).prop_flat_map(|parts| {
        let one: Vec<BoxedStrategy<Value>> = parts.iter().map(constant).collect();
        let member = one.prop_map(|values| Expression::concat(values.into_iter().map(Expression::Value)));
        let members = prop::collection::vec(member, 1..3).prop_map(Expression::Set);
        let right = prop_oneof![members, Just(Expression::named(&name("plain")))];
        right.prop_map(move |right| Match {
            left: Expression::concat(parts.iter().cloned()),
            op: MatchOp::In,
            right,
        })
    })
}
