//! What is done to packets, one rule each.

use std::net::Ipv6Addr;
use std::time::Duration;

use sluicegate_nftables::expr::{CtKey, LogFlags, MetaKey, NatFlags, ObjectKind};

use super::*;

pub(super) fn cases() -> Vec<Case> {
    [statements(), more_statements()].into_iter().flatten().collect()
}

fn statements() -> Vec<Case> {
    let s = |statement: Statement| vec![statement];
    let port_80 = || Statement::from(Match::new(MetaKey::L4PROTO, Protocol::TCP));
    vec![
        rules(
            "statements",
            Family::IP,
            [
                s(Verdict::Accept.into()),
                s(Verdict::Continue.into()),
                s(Verdict::Return.into()),
                s(Counter::default().into()),
                s(Counter { packets: 3, bytes: 400 }.into()),
                s(Limit { rate: 10, per: TimeUnit::Second, burst: None, bytes: false, over: false }.into()),
                s(Limit { rate: 400, per: TimeUnit::Minute, burst: Some(9), bytes: false, over: true }
                    .into()),
                s(Limit { rate: 2048, per: TimeUnit::Second, burst: Some(1024), bytes: true, over: false }
                    .into()),
                s(Quota { bytes: 1 << 20, used: 0, over: true }.into()),
                s(Log::default().into()),
                s(Log { prefix: Some(comment("dropped: ")), level: Some(6), ..Log::default() }.into()),
                s(Log { group: Some(3), snaplen: Some(64), queue_threshold: Some(10), ..Log::default() }
                    .into()),
                s(Log { flags: LogFlags::TCP_SEQUENCE | LogFlags::SKUID, ..Log::default() }.into()),
                s(Reject::Default.into()),
                s(Reject::Icmp(1).into()),
                vec![port_80(), Reject::TcpReset.into()],
                s(Statement::Notrack),
                s(Mangle::new(MetaKey::MARK, 0x4000_u32).into()),
                s(Mangle::new(CtKey::MARK, Expression::Meta(MetaKey::MARK)).into()),
            ],
        ),
        rules(
            "reject, inet",
            Family::INET,
            [
                s(Reject::Default.into()),
                s(Reject::Icmpx(3).into()),
                s(Reject::Icmp(1).into()),
                s(Reject::Icmpv6(1).into()),
                vec![port_80(), Reject::TcpReset.into()],
            ],
        ),
        rules(
            "nat",
            Family::IP,
            [
                s(Statement::dnat(Nat::to(ip(1, 2, 3, 4)))),
                s(Statement::snat(Nat::to(ip(1, 2, 3, 4)))),
                vec![port_80(), Statement::dnat(Nat::to_port(ip(1, 2, 3, 4), Port(80)))],
                s(Statement::masquerade(PortNat::default())),
                s(Statement::masquerade(PortNat {
                    port: None,
                    flags: NatFlags::RANDOM | NatFlags::PERSISTENT,
                })),
                vec![
                    port_80(),
                    Statement::redirect(PortNat { port: Some(port(8080)), flags: NatFlags::empty() }),
                ],
                s(Statement::redirect(PortNat::default())),
            ],
        ),
    ]
}

fn more_statements() -> Vec<Case> {
    let s = |statement: Statement| vec![statement];
    let tcp = || Statement::from(Match::new(MetaKey::L4PROTO, Protocol::TCP));
    let to = |to: NatTarget, flags| Nat { family: None, to, flags };
    let none = NatFlags::empty();
    let v6 = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1);
    vec![
        rules(
            "nat, all forms",
            Family::IP,
            [
                s(Statement::dnat(to(
                    NatTarget::Address(Expression::range(ip(1, 2, 3, 4), ip(1, 2, 3, 9))),
                    NatFlags::PERSISTENT,
                ))),
                vec![
                    tcp(),
                    Statement::dnat(to(
                        NatTarget::AddressPort(
                            Expression::range(ip(1, 2, 3, 4), ip(1, 2, 3, 9)),
                            Expression::range(Port(80), Port(90)),
                        ),
                        NatFlags::RANDOM,
                    )),
                ],
                vec![tcp(), Statement::dnat(to(NatTarget::Port(port(80)), none))],
                vec![
                    tcp(),
                    Statement::masquerade(PortNat {
                        port: Some(Expression::range(Port(1024), Port(2048))),
                        flags: none,
                    }),
                ],
                s(Statement::dnat(to(
                    NatTarget::Address(Expression::from(Payload::IP_SADDR).map_anonymous([
                        (ip(1, 1, 1, 1).into(), ip(2, 2, 2, 2).into()),
                        (ip(1, 1, 1, 2).into(), ip(2, 2, 2, 3).into()),
                    ])),
                    none,
                ))),
            ],
        ),
        rules(
            "nat, ip6",
            Family::IP6,
            [
                s(Statement::dnat(Nat::to(v6))),
                vec![tcp(), Statement::dnat(Nat::to_port(v6, Port(80)))],
                vec![
                    tcp(),
                    Statement::dnat(Nat::to_concat(
                        Family::IP6,
                        Expression::random(2).map_anonymous([
                            (0_u32.into(), Expression::concat([v6.into(), port(80)])),
                            (1_u32.into(), Expression::concat([Ipv6Addr::LOCALHOST.into(), port(81)])),
                        ]),
                    )),
                ],
                s(Reject::Default.into()),
                s(Reject::Icmpv6(0).into()),
            ],
        ),
        rules(
            "nat, inet",
            Family::INET,
            [
                s(Statement::dnat(Nat { family: Some(Family::IP), ..Nat::to(ip(1, 2, 3, 4)) })),
                s(Statement::dnat(Nat { family: Some(Family::IP6), ..Nat::to(v6) })),
                s(Statement::masquerade(PortNat::default())),
            ],
        ),
        rules(
            "other statements",
            Family::IP,
            [
                s(Dup { address: Some(ip(1, 2, 3, 4).into()), device: None }.into()),
                vec![
                    tcp(),
                    Tproxy { family: None, address: Some(ip(1, 2, 3, 4).into()), port: Some(port(80)) }
                        .into(),
                ],
                vec![tcp(), Tproxy { family: None, address: None, port: Some(port(80)) }.into()],
                s(Connlimit { count: 3, over: true }.into()),
                s(Connlimit { count: 3, over: false }.into()),
                vec![
                    tcp(),
                    Synproxy { mss: Some(1460), wscale: Some(7), timestamp: true, sack_perm: true }.into(),
                ],
                s(Quota { bytes: 5000, used: 0, over: false }.into()),
                s(Log { flags: LogFlags::all(), ..Log::default() }.into()),
                s(Log { level: Some(8), ..Log::default() }.into()),
                s(Mangle::new(Payload::IP_SADDR, ip(1, 2, 3, 4)).into()),
                s(Mangle::new(Payload::IP_DSCP, 0x2e_u32).into()),
                s(Mangle::new(Payload::IP_TTL, 5_u32).into()),
                s(Mangle::new(Payload::TCP_DPORT, Port(80)).into()),
                s(Mangle::new(exthdr(ExthdrOp::TCPOPT, "maxseg", "size"), 500_u32).into()),
                s(Statement::ResetOption(Exthdr::find(ExthdrOp::TCPOPT, "sack-perm", "").unwrap())),
                s(Mangle::new(MetaKey::PRIORITY, 7_u32).into()),
                s(Mangle::new(CtKey::ZONE, 7_u32).into()),
            ],
        ),
        case("dynamic sets", Family::IP, |tx, t, c| {
            let dynamic = |n: &str, kind: DataType| {
                Set::new(t.set(name(n)), kind)
                    .timeout(Duration::from_secs(60))
                    .flags(SetFlags::DYNAMIC | SetFlags::TIMEOUT)
                    .size(1024)
            };
            tx.add(dynamic("seen", DataType::IPV4_ADDR));
            let mut counted = dynamic("counted", DataType::IPV4_ADDR);
            counted.statements = vec![Counter::default().into()];
            tx.add(counted);
            let mut map = Set::map(t.map(name("where")), DataType::IPV4_ADDR, DataType::MARK)
                .timeout(Duration::from_secs(60));
            map.flags |= SetFlags::DYNAMIC;
            tx.add(map.size(1024));
            let update = |n: &str| SetUpdate::update(&name(n), Payload::IP_SADDR);
            tx.add(c.rule().then(SetUpdate { op: SetOp::Add, ..update("seen") }));
            tx.add(c.rule().then(SetUpdate { timeout: Some(Duration::from_millis(1500)), ..update("seen") }));
            tx.add(c.rule().then(SetUpdate { op: SetOp::Delete, ..update("seen") }));
            let limit = Limit { rate: 3, per: TimeUnit::Minute, burst: None, bytes: false, over: true };
            tx.add(
                c.rule()
                    .then(SetUpdate { statements: vec![limit.into()], ..update("seen") })
                    .then(Verdict::Drop),
            );
            tx.add(c.rule().then(update("counted")));
            tx.add(c.rule().then(SetUpdate { value: Some(MetaKey::MARK.into()), ..update("where") }));
            tx.add_element(
                &t.set(name("counted")),
                Element::new(ip(1, 1, 1, 1)).statement(Counter { packets: 3, bytes: 4 }),
            );
        }),
        case("constants in keys", Family::IP, |tx, t, c| {
            let dynamic = |set: Set| set.size(99).flags(SetFlags::DYNAMIC);
            let address = DataType::IPV4_ADDR;
            tx.add(dynamic(Set::new(t.set(name("s")), [address, address, DataType::INET_SERVICE])));
            tx.add(dynamic(Set::map(t.map(name("m")), [address, DataType::INET_SERVICE], DataType::MARK)));
            let source = || Expression::from(Payload::IP_SADDR);
            for key in [
                [source(), ip(10, 180, 0, 4).into(), port(80)],
                [ip(10, 180, 0, 4).into(), source(), port(80)],
                [source(), Payload::IP_DADDR.into(), port(80)],
                [source(), ip(10, 180, 0, 4).into(), Payload::TCP_DPORT.into()],
            ] {
                tx.add(c.rule().then(SetUpdate::update(&name("s"), Expression::concat(key))));
            }
            let key = Expression::concat([source(), port(80)]);
            let value = Some(MetaKey::MARK.into());
            tx.add(c.rule().then(SetUpdate { value, ..SetUpdate::update(&name("m"), key) }));
        }),
        case("meters", Family::IP, |tx, _, c| {
            let meter = |n: &str, key: Expression| Meter {
                name: name(n),
                size: 128,
                key,
                timeout: None,
                statements: vec![Counter::default().into()],
            };
            tx.add(c.rule().then(meter("senders", Payload::IP_SADDR.into())));
            let pairs = Expression::concat([Payload::IP_SADDR.into(), Payload::TCP_DPORT.into()]);
            let timed = Meter { timeout: Some(Duration::from_secs(90)), ..meter("pairs", pairs) };
            tx.add(c.rule().then(timed).then(Verdict::Drop));
        }),
        case("rules in places", Family::IP, |tx, _, c| {
            tx.add(c.rule().then(Verdict::Accept).comment(comment("second")));
            tx.insert(c.rule().then(Verdict::Accept).comment(comment("first")));
        }),
        case("stateful objects", Family::IP, |tx, t, c| {
            let object =
                |n: &str, config: ObjectConfig| StatefulObject::new(t.object(config.kind(), name(n)), config);
            tx.add(object("hits", ObjectConfig::Counter(Counter::default())).comment(comment("how many")));
            tx.add(object("volume", ObjectConfig::Quota(Quota { bytes: 1 << 20, used: 0, over: true })));
            let limit = Limit { rate: 3, per: TimeUnit::Minute, burst: Some(9), bytes: false, over: false };
            tx.add(object("pace", ObjectConfig::Limit(limit)));
            tx.add(object(
                "syn",
                ObjectConfig::Synproxy(Synproxy {
                    mss: Some(1460),
                    wscale: Some(7),
                    timestamp: true,
                    sack_perm: true,
                }),
            ));
            let reference = |kind, n: &str| ObjectReference { kind, object: ObjectName::Named(name(n)) };
            tx.add(c.rule().then(reference(ObjectKind::COUNTER, "hits")));
            tx.add(c.rule().then(reference(ObjectKind::QUOTA, "volume")).then(Verdict::Drop));
            tx.add(c.rule().then(reference(ObjectKind::LIMIT, "pace")));
            let map = t.map(name("counters"));
            tx.add(Set::object_map(map.clone(), DataType::IPV4_ADDR, ObjectKind::COUNTER));
            tx.add_element(&map, Element::new(ip(1, 1, 1, 1)).object(name("hits")));
            tx.add(c.rule().then(ObjectReference {
                kind: ObjectKind::COUNTER,
                object: ObjectName::Map(Box::new(Payload::IP_SADDR.into()), map.name),
            }));
        }),
        case("flowtable", Family::INET, |tx, t, c| {
            let mut flowtable = Flowtable::new(t.flowtable(name("ft")), Priority(0));
            flowtable.devices.push(InterfaceName::new("lo").unwrap());
            tx.add(flowtable);
            tx.add(
                c.rule()
                    .then(Match::new(MetaKey::L4PROTO, Protocol::TCP))
                    .then(Statement::FlowAdd(name("ft"))),
            );
        }),
        rules(
            "queue",
            Family::IP,
            [
                s(Queue { to: 3_u32.into(), bypass: false, fanout: false }.into()),
                s(Queue { to: Expression::range(1_u32, 4_u32), bypass: true, fanout: true }.into()),
                s(Queue {
                    to: Expression::Symhash(Symhash { modulus: 2, offset: 1 }),
                    bypass: true,
                    fanout: false,
                }
                .into()),
                s(Queue {
                    to: Expression::from(MetaKey::L4PROTO).map_anonymous([
                        (Protocol::TCP.into(), 2_u32.into()),
                        (Protocol::UDP.into(), 3_u32.into()),
                    ]),
                    bypass: false,
                    fanout: false,
                }
                .into()),
            ],
        ),
        case("devices", Family::NETDEV, |tx, t, c| {
            let lo = InterfaceName::new("lo").unwrap();
            let base = Chain::base(t.chain(name("in")), ChainType::Filter, Hook::Ingress, Priority(-500));
            tx.add(base.devices([lo]).policy(Policy::Accept));
            tx.add(c.rule().then(Match::new(Payload::IP_SADDR, ip(1, 1, 1, 1))).then(Verdict::Drop));
            tx.add(c.rule().then(Match::new(Payload::UDP_DPORT, Port(53))).then(Counter::default()));
        }),
    ]
}
