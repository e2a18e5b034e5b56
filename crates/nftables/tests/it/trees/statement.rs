//! Statements.

use std::net::Ipv4Addr;
use std::time::Duration;

use proptest::prelude::*;
use sluicegate_nftables::expr::{CtKey, ExthdrOp, LogFlags, MetaKey, NatFlags, ObjectKind};
use sluicegate_nftables::lang::exthdr::Exthdr;
use sluicegate_nftables::lang::*;
use sluicegate_nftables::{Comment, DataType, Family, InterfaceName, Port, Protocol};

use crate::trees::expression::{self, comparison, lookup};
use crate::trees::name;

/// What a rule has to match before a statement that has ports.
pub(crate) fn tcp() -> Statement {
    Match::new(MetaKey::L4PROTO, Protocol::TCP).into()
}

/// The same statements behind a match of a protocol that has ports, where they need one.
pub(crate) fn with_ports(mut statements: Vec<Statement>) -> Vec<Statement> {
    let has_ports = |of: &Statement| {
        use Statement::{Dnat, Masquerade, Redirect, Snat, Synproxy, Tproxy};
        matches!(of, Dnat(_) | Snat(_) | Masquerade(_) | Redirect(_) | Tproxy(_) | Synproxy(_))
            || matches!(of, Statement::Reject(Reject::TcpReset))
    };
    if statements.iter().any(has_ports) {
        statements.insert(0, tcp());
    }
    statements
}

/// A statement with the family of a table that it can be in.
pub(crate) fn every_kind() -> impl Strategy<Value = (Family, Statement)> {
    let families = vec![Family::INET, Family::IP, Family::NETDEV];
    prop::sample::select(families)
        .prop_flat_map(|family| of_family(family).prop_map(move |statement| (family, statement)))
}

/// A statement for a table of a family.
pub(crate) fn of_family(family: Family) -> BoxedStrategy<Statement> {
    // What is compared may be of any family, which a table of one family has not.
    let compared = prop_oneof![4 => comparison().prop_map(Statement::from), 1 => bound()];
    let everywhere = prop_oneof![
        2 => verdict().prop_map(Statement::from),
        2 => vmap().prop_map(Statement::from),
        2 => stateful(),
        1 => log().prop_map(Statement::from),
        1 => queue().prop_map(Statement::from),
        2 => mangle().prop_map(Statement::from),
        1 => set_update().prop_map(Statement::from),
        1 => meter().prop_map(Statement::from),
        1 => synproxy().prop_map(Statement::from),
        1 => object_reference().prop_map(Statement::from),
        1 => Just(Statement::Notrack),
        1 => Just(Statement::FlowAdd(name("f"))),
        1 => option(),
    ];
    // The codes of one family are not for tables of another.
    let rejected = reject().prop_filter("of the family", move |of| match of {
        Reject::Icmpv6(_) | Reject::Icmpx(_) => family == Family::INET,
        _ => true,
    });
    let rejected = rejected.prop_map(Statement::from);
    match family {
        Family::NETDEV => prop_oneof![everywhere, dup(family), fwd()].boxed(),
        Family::INET => {
            prop_oneof![4 => compared, 4 => everywhere, 1 => rejected, 3 => translation(family)].boxed()
        }
        _ => prop_oneof![4 => everywhere, 1 => rejected, 3 => translation(family)].boxed(),
    }
}

fn translation(family: Family) -> BoxedStrategy<Statement> {
    prop_oneof![
        nat(family).prop_map(|nat| Statement::Dnat(nat.into())),
        nat(family).prop_map(|nat| Statement::Snat(nat.into())),
        port_nat().prop_map(|nat| Statement::Masquerade(nat.into())),
        port_nat().prop_map(|nat| Statement::Redirect(nat.into())),
        tproxy(family).prop_map(Statement::from),
        dup(Family::IP),
    ]
    .boxed()
}

pub(crate) fn verdict() -> impl Strategy<Value = Verdict> {
    prop::sample::select(vec![
        Verdict::Accept,
        Verdict::Drop,
        Verdict::Continue,
        Verdict::Return,
        Verdict::Jump(name("other")),
        Verdict::Goto(name("other")),
    ])
}

fn bound() -> impl Strategy<Value = Statement> {
    let comment = prop::option::of("[a-z]{1,9}").prop_map(|text| text.map(|text| comment(&text)));
    let comparison = comparison()
        .prop_filter("of all families", |of| !Statement::from(of.clone()).to_string().starts_with("arp "));
    let statements = (comparison, any::<bool>(), verdict()).prop_map(|(matching, counted, verdict)| {
        let counter = counted.then(|| Statement::from(Counter::default()));
        [Some(matching.into()), counter, Some(verdict.into())].into_iter().flatten().collect::<Vec<_>>()
    });
    let rule = (statements, comment).prop_map(|(statements, comment)| {
        let mut rule = BoundRule::new();
        (rule.statements, rule.comment) = (statements, comment);
        rule
    });
    (any::<bool>(), prop::collection::vec(rule, 1..4))
        .prop_map(|(goto, rules)| if goto { BoundChain::goto(rules) } else { BoundChain::jump(rules) })
        .prop_map(Statement::from)
}

fn comment(text: &str) -> Comment {
    Comment::new(text).expect("a comment")
}

pub(crate) fn vmap() -> impl Strategy<Value = Vmap> {
    let ports = prop::collection::btree_set(any::<u16>(), 1..5);
    let verdicts = prop::collection::vec(verdict(), 5);
    prop_oneof![
        Just(Vmap::new(Payload::TCP_DPORT, Mapping::Named(name("verdicts")))),
        (ports, verdicts, any::<bool>()).prop_map(|(ports, verdicts, has_others)| {
            let others = has_others.then_some((Expression::Any, Verdict::Drop));
            let pairs = ports.into_iter().map(Expression::from).zip(verdicts).chain(others).collect();
            Vmap::new(Payload::TCP_DPORT, Mapping::Anonymous(pairs))
        }),
    ]
}

/// What counts.
pub(crate) fn stateful() -> BoxedStrategy<Statement> {
    prop_oneof![
        any::<(u64, u64)>().prop_map(|(packets, bytes)| Counter { packets, bytes }.into()),
        quota().prop_map(Statement::from),
        limit().prop_map(Statement::from),
        prop::option::of((0_u64..1 << 40).prop_map(Duration::from_millis))
            .prop_map(|used| Last { used }.into()),
        any::<(u32, bool)>().prop_map(|(count, over)| Connlimit { count, over }.into()),
    ]
    .boxed()
}

pub(crate) fn quota() -> impl Strategy<Value = Quota> {
    (bytes(), prop_oneof![Just(0), bytes()], any::<bool>()).prop_map(|(bytes, used, over)| Quota {
        bytes,
        used,
        over,
    })
}

/// Numbers of bytes in units of all sizes.
fn bytes() -> impl Strategy<Value = u64> {
    prop_oneof![1_u64..10_000, (1_u64..10_000).prop_map(|n| n << 10), (1_u64..10_000).prop_map(|n| n << 20)]
}

pub(crate) fn limit() -> impl Strategy<Value = Limit> {
    use TimeUnit::{Day, Hour, Minute, Second, Week};
    let per = prop::sample::select(vec![Second, Minute, Hour, Day, Week]);
    // No burst, and that of nft, are printed alike.
    let burst = prop::option::of(6_u32..100_000);
    (bytes(), per, burst, any::<bool>(), any::<bool>()).prop_map(|(rate, per, burst, bytes, over)| Limit {
        rate,
        per,
        burst,
        bytes,
        over,
    })
}

fn log() -> impl Strategy<Value = Log> {
    let prefix = prop::option::of("[a-zA-Z0-9:]{1,20}").prop_map(|text| text.map(|text| comment(&text)));
    // The level 4 is that of the kernel, which is not printed.
    let level = prop::option::of((0_u8..8).prop_filter("printed", |level| *level != 4));
    let flags = prop::sample::select(vec![
        LogFlags::empty(),
        LogFlags::TCP_SEQUENCE,
        LogFlags::TCP_OPTIONS | LogFlags::TCP_SEQUENCE,
        LogFlags::IP_OPTIONS | LogFlags::SKUID,
        LogFlags::ETHER,
        LogFlags::all(),
    ]);
    prop_oneof![
        // The audit log takes nothing else.
        1 => Just(Log { level: Some(8), ..Log::default() }),
        6 => (prefix.clone(), level, flags)
            .prop_map(|(prefix, level, flags)| Log { prefix, level, flags, ..Log::default() }),
        6 => (prefix, any::<u16>(), any::<Option<u32>>(), any::<Option<u16>>()).prop_map(
            |(prefix, group, snaplen, queue_threshold)| Log {
                prefix,
                group: Some(group),
                snaplen,
                queue_threshold,
                ..Log::default()
            }
        ),
    ]
}

pub(crate) fn reject() -> impl Strategy<Value = Reject> {
    prop_oneof![
        Just(Reject::Default),
        Just(Reject::TcpReset),
        (0_u8..14).prop_map(Reject::Icmp),
        (0_u8..7).prop_map(Reject::Icmpv6),
        (0_u8..4).prop_map(Reject::Icmpx),
    ]
}

fn address() -> BoxedStrategy<Expression> {
    prop_oneof![
        any::<Ipv4Addr>().prop_map(Expression::from),
        (any::<u32>(), 1_u32..1000).prop_filter_map("no overflow", |(low, count)| {
            // One that begins with an odd address is not a prefix.
            let low = low | 1;
            Some(Expression::range(Ipv4Addr::from(low), Ipv4Addr::from(low.checked_add(count)?)))
        }),
        lookup(DataType::IPV4_ADDR),
    ]
    .boxed()
}

fn port() -> BoxedStrategy<Expression> {
    prop_oneof![
        any::<u16>().prop_map(|port| Expression::from(Port(port))),
        (0_u16..60_000, 1_u16..5000).prop_map(|(low, count)| Expression::range(Port(low), Port(low + count))),
    ]
    .boxed()
}

fn nat_flags() -> impl Strategy<Value = NatFlags> {
    prop::sample::select(vec![
        NatFlags::empty(),
        NatFlags::RANDOM,
        NatFlags::PERSISTENT,
        NatFlags::FULLY_RANDOM | NatFlags::PERSISTENT,
    ])
}

pub(crate) fn nat(family: Family) -> impl Strategy<Value = Nat> {
    let concat = || Expression::concat([Payload::IP_DADDR.into(), Payload::TCP_DPORT.into()]);
    let in_inet = family == Family::INET;
    let to = prop_oneof![
        address().prop_map(NatTarget::Address),
        port().prop_map(NatTarget::Port),
        (address(), port()).prop_map(|(address, port)| NatTarget::AddressPort(address, port)),
        Just(NatTarget::Concat(concat().map(&name("endpoints")))),
        Just(NatTarget::Interval(Expression::from(Payload::IP_DADDR).map(&name("ranges")))),
        Just(NatTarget::ConcatInterval(concat().map(&name("endpoint_ranges")))),
    ];
    (to, nat_flags()).prop_map(move |(to, flags)| {
        let typed =
            matches!(to, NatTarget::Concat(_) | NatTarget::Interval(_) | NatTarget::ConcatInterval(_));
        let by_port = matches!(to, NatTarget::Port(_));
        let family = (typed || (in_inet && !by_port)).then_some(Family::IP);
        Nat { family, to, flags }
    })
}

fn port_nat() -> impl Strategy<Value = PortNat> {
    (prop::option::of(port()), nat_flags()).prop_map(|(port, flags)| PortNat { port, flags })
}

fn tproxy(family: Family) -> impl Strategy<Value = Tproxy> {
    let address = prop::option::of(any::<Ipv4Addr>().prop_map(Expression::from));
    let port = any::<u16>().prop_map(|port| Expression::from(Port(port)));
    (address, prop::option::of(port)).prop_filter_map("something", move |(address, port)| {
        (address.is_some() || port.is_some()).then(|| {
            let family = (family == Family::INET && address.is_some()).then_some(Family::IP);
            Tproxy { family, address, port }
        })
    })
}

fn device() -> impl Strategy<Value = Expression> {
    (1_u32..100).prop_map(Expression::from)
}

fn dup(family: Family) -> BoxedStrategy<Statement> {
    if family == Family::NETDEV {
        return device().prop_map(|device| Dup { address: None, device: Some(device) }.into()).boxed();
    }
    (any::<Ipv4Addr>(), prop::option::of(device()))
        .prop_map(|(address, device)| Dup { address: Some(address.into()), device }.into())
        .boxed()
}

fn fwd() -> impl Strategy<Value = Statement> {
    let address = prop::option::of(any::<Ipv4Addr>().prop_map(|address| (Family::IP, address.into())));
    (device(), address).prop_map(|(device, address)| Fwd { device, address }.into())
}

fn queue() -> impl Strategy<Value = Queue> {
    let to = prop_oneof![
        any::<u16>().prop_map(Expression::from),
        (0_u16..60_000, 1_u16..1000).prop_map(|(low, count)| Expression::range(low, low + count)),
    ];
    (to, any::<bool>(), any::<bool>()).prop_map(|(to, bypass, fanout)| {
        let several = matches!(to, Expression::Range(_));
        Queue { to, bypass, fanout: fanout && several }
    })
}

fn mangle() -> impl Strategy<Value = Mangle> {
    let mark = prop_oneof![any::<u32>().prop_map(Expression::from), lookup(DataType::MARK)];
    prop_oneof![
        mark.clone().prop_map(|value| Mangle::new(MetaKey::MARK, value)),
        mark.prop_map(|value| Mangle::new(CtKey::MARK, value)),
        expression::calculation()
            .prop_filter("a mark", |of| of.part() == Some(DataType::MARK.into()))
            .prop_map(|of| Mangle::new(MetaKey::MARK, of)),
        any::<u16>().prop_map(|port| Mangle::new(Payload::TCP_DPORT, Port(port))),
        any::<Ipv4Addr>().prop_map(|address| Mangle::new(Payload::IP_DADDR, address)),
        any::<u8>().prop_map(|ttl| Mangle::new(Payload::IP_TTL, u32::from(ttl))),
        (0_u32..64).prop_map(|dscp| Mangle::new(Payload::IP_DSCP, dscp)),
        any::<bool>().prop_map(|on| Mangle::new(MetaKey::NFTRACE, u32::from(on))),
        any::<u32>().prop_map(|number| Mangle::new(MetaKey::PRIORITY, number)),
        any::<u16>().prop_map(|size| {
            let maxseg = Exthdr::find(ExthdrOp::TCPOPT, "maxseg", "size").expect("an option");
            Mangle::new(Expression::Exthdr(maxseg), u32::from(size))
        }),
    ]
}

pub(crate) fn set_update() -> impl Strategy<Value = SetUpdate> {
    let ops = prop::sample::select(vec![SetOp::Add, SetOp::Update, SetOp::Delete]);
    let timeout = prop::option::of((1_u64..100_000).prop_map(Duration::from_millis));
    let statements = prop::collection::vec(stateful(), 0..2);
    (ops, timeout, statements, any::<Option<u32>>()).prop_map(|(op, timeout, statements, mark)| {
        let set = name(if mark.is_some() { "seen_marks" } else { "seen" });
        // nft has no state in maps that rules fill, nor anything about what it deletes.
        let plain = mark.is_some() || op == SetOp::Delete;
        SetUpdate {
            op,
            set,
            key: Payload::IP_SADDR.into(),
            value: mark.map(Expression::from),
            timeout: timeout.filter(|_| op != SetOp::Delete),
            statements: if plain { Vec::new() } else { statements },
        }
    })
}

fn meter() -> impl Strategy<Value = Meter> {
    let timeout = prop::option::of((1_u64..100_000).prop_map(Duration::from_millis));
    (1_u32.., timeout, limit()).prop_map(|(size, timeout, limit)| Meter {
        name: name("m"),
        size,
        key: Payload::IP_SADDR.into(),
        timeout,
        statements: vec![limit.into()],
    })
}

pub(crate) fn synproxy() -> impl Strategy<Value = Synproxy> {
    // nft takes zero for nothing.
    (1_u16.., 1_u8..15, any::<bool>(), any::<bool>()).prop_map(|(mss, wscale, timestamp, sack_perm)| {
        Synproxy { mss: Some(mss), wscale: Some(wscale), timestamp, sack_perm }
    })
}

pub(crate) fn object_reference() -> impl Strategy<Value = ObjectReference> {
    let kinds = prop::sample::select(vec![
        ObjectKind::COUNTER,
        ObjectKind::QUOTA,
        ObjectKind::LIMIT,
        ObjectKind::SYNPROXY,
        ObjectKind::CT_HELPER,
        ObjectKind::CT_TIMEOUT,
        ObjectKind::CT_EXPECT,
        ObjectKind::SECMARK,
        ObjectKind::TUNNEL,
    ]);
    let ports = prop::collection::btree_set(any::<u16>(), 1..4);
    (kinds, 0..3, ports).prop_map(|(kind, form, ports)| {
        let key = Box::new(Expression::from(Payload::TCP_DPORT));
        // nft sets these by their names only.
        let by_name = matches!(kind, ObjectKind::CT_TIMEOUT | ObjectKind::CT_EXPECT | ObjectKind::TUNNEL);
        let object = match form {
            _ if by_name => ObjectName::Named(name("o")),
            0 => ObjectName::Named(name("o")),
            1 => ObjectName::Map(key, name("objects")),
            _ => ObjectName::Among(
                key,
                ports.into_iter().map(|port| (Expression::from(port), name("o"))).collect(),
            ),
        };
        ObjectReference { kind, object }
    })
}

fn option() -> impl Strategy<Value = Statement> {
    let options: Vec<_> =
        Exthdr::all().filter(|of| of.op() == ExthdrOp::TCPOPT && of.is_presence()).collect();
    prop::sample::select(options).prop_map(Statement::ResetOption)
}

pub(crate) fn protocol() -> impl Strategy<Value = Protocol> {
    prop::sample::select(vec![Protocol::TCP, Protocol::UDP])
}

pub(crate) fn interface(text: &str) -> InterfaceName {
    InterfaceName::new(text).expect("a name")
}

pub(crate) fn expression_of_type() -> impl Strategy<Value = Expression> {
    expression::of_packet()
}
