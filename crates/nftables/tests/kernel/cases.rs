//! Transactions that between them use every construct, for the tests that compare ways of loading them.

#![allow(clippy::unwrap_used, reason = "constants of the tests")]

use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use sluicegate_nftables::expr::{
    CtKey, Direction, ExthdrOp, FibFlags, FibResult, LogFlags, MetaKey, NatFlags, NumgenMode, ObjectKind,
    PayloadBase, RtKey, SocketKey, XfrmKey,
};
use sluicegate_nftables::lang::exthdr::Exthdr;
use sluicegate_nftables::lang::*;
use sluicegate_nftables::*;

pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) transaction: Transaction,
}

pub(crate) fn name(name: &str) -> Name {
    Name::new(name).unwrap()
}

pub(crate) fn comment(text: &str) -> Comment {
    Comment::new(text).unwrap()
}

fn ip(a: u8, b: u8, c: u8, d: u8) -> Ipv4Addr {
    Ipv4Addr::new(a, b, c, d)
}

/// A table of its own with one regular chain `c`, and what `fill` puts there.
fn case(case: &'static str, family: Family, fill: impl FnOnce(&mut Transaction, &TableId, &ChainId)) -> Case {
    let table = TableId::new(family, name("t"));
    let chain = table.chain(name("c"));
    let mut transaction = Transaction::new();
    transaction.add(Table::new(table.clone())).add(Chain::new(chain.clone()));
    fill(&mut transaction, &table, &chain);
    Case { name: case, transaction }
}

/// Rules in such a chain, each of some statements.
fn rules(name: &'static str, family: Family, list: impl IntoIterator<Item = Vec<Statement>>) -> Case {
    case(name, family, |tx, _, chain| {
        for statements in list {
            tx.add(Rule { statements, ..chain.rule() });
        }
    })
}

fn frontend_key() -> Expression {
    Expression::concat([Payload::IP_DADDR.into(), MetaKey::L4PROTO.into(), Payload::TH_DPORT.into()])
}

pub(crate) fn all() -> Vec<Case> {
    let mut cases = vec![objects(), conntrack(), maps_layout(), chains_layout()];
    cases.extend(matches());
    cases.extend(statements());
    cases.extend(more_expressions());
    cases.extend(more_statements());
    cases
}

/// The objects of conntrack.
pub(crate) fn conntrack_objects(t: &TableId) -> Vec<StatefulObject> {
    let object =
        |n: &str, config: ObjectConfig| StatefulObject::new(t.object(config.kind(), name(n)), config);
    let policy = vec![("established", Duration::from_secs(100)), ("close", Duration::from_secs(4))];
    vec![
        object(
            "ftp-standard",
            ObjectConfig::CtHelper { helper: name("ftp"), protocol: Protocol::TCP, family: Some(Family::IP) },
        ),
        object(
            "aggressive",
            ObjectConfig::CtTimeout { protocol: Protocol::TCP, family: Some(Family::IP), policy },
        ),
        object(
            "expected",
            ObjectConfig::CtExpectation {
                protocol: Protocol::TCP,
                port: 9876,
                timeout: Duration::from_secs(120),
                size: 12,
                family: Some(Family::IP),
            },
        ),
    ]
}

fn conntrack() -> Case {
    case("conntrack objects", Family::IP, |tx, t, chain| {
        for object in conntrack_objects(t) {
            let reference =
                ObjectReference { kind: object.id.kind, object: ObjectName::Named(object.id.name.clone()) };
            tx.add(object);
            let port = Match::new(Payload::TCP_DPORT, Port(21));
            tx.add(chain.rule().then(port).then(Statement::Object(reference)));
        }
    })
}

fn objects() -> Case {
    case("objects", Family::IP, |tx, t, _| {
        let base =
            |n: &str, kind, hook, priority| Chain::base(t.chain(name(n)), kind, hook, Priority(priority));
        tx.add(Table::new(t.clone()).comment(comment("rules for kube-proxy")));
        tx.add(base("pre", ChainType::Nat, Hook::Prerouting, -100).policy(Policy::Accept));
        tx.add(base("out", ChainType::Route, Hook::Output, -110));
        tx.add(
            base("forwarded", ChainType::Filter, Hook::Forward, 7)
                .policy(Policy::Drop)
                .comment(comment("what passes")),
        );
        tx.add(Chain::new(t.chain(name("service-AXK6CI2C-demo/web/tcp/http"))).comment(comment("a chain")));
        let set = t.set(name("plain"));
        tx.add(Set::new(set.clone(), DataType::IPV4_ADDR).comment(comment("hello")).size(100));
        tx.add(Elements::new(&set, [ip(1, 2, 3, 4), ip(5, 6, 7, 8)]));
        tx.add_element(&set, Element::new(ip(9, 9, 9, 9)).comment(comment("an element")));
        let timed = t.set(name("timed"));
        tx.add(Set::new(timed.clone(), DataType::INET_SERVICE).timeout(Duration::from_secs(10800)));
        tx.add_element(&timed, Element::new(Port(80)).timeout(Duration::from_secs(3600)));
        let mut affinity =
            Set::new(t.set(name("affinity")), DataType::IPV4_ADDR).timeout(Duration::from_secs(10800));
        affinity.flags |= SetFlags::DYNAMIC;
        tx.add(affinity);
        let ranges = t.set(name("ranges"));
        tx.add(Set::new(ranges.clone(), DataType::IPV4_ADDR).flags(SetFlags::INTERVAL));
        tx.add_element(&ranges, Element::range(ip(10, 0, 0, 0), ip(10, 255, 255, 255)));
        tx.add_element(&ranges, Element::range(ip(192, 168, 0, 1), ip(192, 168, 0, 9)));
        tx.add_element(&ranges, ip(1, 1, 1, 1));
        let both = t.set(name("allowed"));
        let types = [DataType::IPV4_ADDR, DataType::INET_PROTO, DataType::INET_SERVICE, DataType::IPV4_ADDR];
        tx.add(Set::new(both.clone(), types).flags(SetFlags::INTERVAL));
        let low = (ip(10, 0, 0, 1), Protocol::TCP, Port(80), ip(10, 1, 0, 0));
        let high = (ip(10, 0, 0, 1), Protocol::TCP, Port(90), ip(10, 1, 255, 255));
        tx.add_element(&both, Element::range(low, high));
        let single = (ip(10, 0, 0, 2), Protocol::TCP, Port(80), ip(10, 1, 0, 0));
        tx.add_element(&both, single);
        let verdicts = t.map(name("verdicts"));
        let types = [DataType::IPV4_ADDR, DataType::INET_PROTO, DataType::INET_SERVICE];
        tx.add(Set::verdict_map(verdicts.clone(), types).comment(comment("where to")));
        let key = |port| Key::from((ip(1, 2, 3, 4), Protocol::TCP, Port(port)));
        tx.add_element(
            &verdicts,
            Element::new(key(80)).comment(comment("demo/empty")).verdict(Verdict::Goto(name("c"))),
        );
        tx.add_element(&verdicts, Element::new(key(81)).verdict(Verdict::Drop));
        tx.add_element(&verdicts, Element::catch_all().verdict(Verdict::Jump(name("c"))));
        let marks = t.map(name("marks"));
        tx.add(Set::map(marks.clone(), DataType::MARK, DataType::IPV4_ADDR));
        tx.add_element(&marks, Element::new(Mark(7)).value(ip(1, 1, 1, 1)));
        tx.add(Set::new(t.set(name("names")), DataType::IFNAME));
        tx.add_element(&t.set(name("names")), InterfaceName::new("eth0").unwrap());
        tx.add(Set::map(
            t.map(name("portmap")),
            DataType::INET_SERVICE,
            [DataType::IPV4_ADDR, DataType::INET_SERVICE],
        ));
    })
}

fn maps_layout() -> Case {
    case("maps layout", Family::IP, |tx, t, _| {
        let index = || Expression::random(2);
        let mut key = vec![Payload::IP_DADDR.into(), MetaKey::L4PROTO.into(), Payload::TH_DPORT.into()];
        key.push(index());
        let endpoints = t.map(name("endpoints"));
        let data = Expression::concat([Payload::IP_DADDR.into(), Payload::TH_DPORT.into()]);
        tx.add(Set::map(endpoints.clone(), Expression::Concat(key.clone()), data).size(1000));
        let at = |i| Key::from((ip(10, 96, 0, 1), Protocol::UDP, Port(53), Number(i)));
        tx.add_element(&endpoints, Element::new(at(0)).value((ip(10, 244, 0, 1), Port(5353))));
        tx.add_element(&endpoints, Element::new(at(1)).value((ip(10, 244, 0, 2), Port(5353))));
        let lb = t.chain(name("lb-2"));
        tx.add(Chain::new(lb.clone()));
        tx.add(
            lb.rule().then(Statement::Dnat(Nat::to_concat(
                Family::IP,
                Expression::Concat(key).map(&endpoints.name),
            ))),
        );
        let frontends = t.map(name("frontends"));
        let types = [DataType::IPV4_ADDR, DataType::INET_PROTO, DataType::INET_SERVICE];
        tx.add(Set::verdict_map(frontends.clone(), types).size(1000));
        let frontend = (ip(10, 96, 0, 1), Protocol::UDP, Port(53));
        tx.add_element(&frontends, Element::new(frontend).verdict(Verdict::Goto(name("lb-2"))));
        let services = t.chain(name("services"));
        tx.add(Chain::new(services.clone()));
        tx.add(services.rule().then(Vmap::new(frontend_key(), &frontends.name)));
    })
}

/// Rules as kube-proxy makes them.
fn chains_layout() -> Case {
    case("chains layout", Family::IP, |tx, t, c| {
        let mark = || Expression::Meta(MetaKey::MARK);
        let cluster_ips = t.set(name("cluster-ips"));
        tx.add(Set::new(cluster_ips.clone(), DataType::IPV4_ADDR));
        let other = t.chain(name("other"));
        tx.add(Chain::new(other.clone()));
        let set_mark = || Mangle::new(mark(), mark().or(0x4000_u32));
        let not_local = Match::not(Payload::IP_DADDR, Expression::prefix(ip(127, 0, 0, 0), 8));
        tx.add(c.rule().then(Match::new(CtKey::STATE, CtState::NEW)).then(Verdict::Jump(name("other"))));
        tx.add(
            c.rule()
                .then(Match::new(Payload::IP_DADDR, Expression::named(&cluster_ips.name)))
                .then(Match::not(Payload::IP_SADDR, Expression::prefix(ip(10, 244, 0, 0), 16)))
                .then(set_mark())
                .comment(comment("masquerade clusterIP traffic from outside cluster")),
        );
        tx.add(
            c.rule()
                .then(Match::new(Expression::FIB_DADDR_TYPE, AddressType::LOCAL))
                .then(not_local)
                .then(Verdict::Return),
        );
        tx.add(
            c.rule()
                .then(Match::with(mark().and(0x4000_u32), MatchOp::Neq, 0_u32))
                .then(Mangle::new(mark(), mark().xor(0x4000_u32)))
                .then(Statement::Masquerade(PortNat { port: None, flags: NatFlags::FULLY_RANDOM })),
        );
        tx.add(
            c.rule()
                .then(Match::new(CtKey::STATUS, CtStatus::DNAT))
                .then(Statement::Masquerade(PortNat::default())),
        );
        tx.add(
            c.rule()
                .then(Match::new(
                    Payload::IP_DADDR,
                    Expression::set([Expression::prefix(ip(172, 30, 0, 0), 16)]),
                ))
                .then(Verdict::Drop),
        );
        let pairs = [(0_u32, 10), (1, 20)].map(|(i, d)| {
            let to = Expression::concat([ip(10, 244, 0, d).into(), Port(8080).into()]);
            (Expression::from(i), to)
        });
        tx.add(
            other.rule().then(Match::new(MetaKey::L4PROTO, Protocol::TCP)).then(Statement::Dnat(
                Nat::to_concat(Family::IP, Expression::random(2).map_anonymous(pairs)),
            )),
        );
        let affinity = t.set(name("affinity-PAAF6AAY-demo/dns/udp/dns__10.244.0.20/53"));
        let mut set = Set::new(affinity.clone(), DataType::IPV4_ADDR).timeout(Duration::from_secs(10800));
        set.flags |= SetFlags::DYNAMIC;
        tx.add(set);
        tx.add(other.rule().then(SetUpdate::update(&affinity.name, Payload::IP_SADDR)));
        tx.add(
            other
                .rule()
                .then(Match::new(MetaKey::L4PROTO, Protocol::UDP))
                .then(Statement::Dnat(Nat::to_port(ip(10, 244, 0, 20), Port(53)))),
        );
        let third = t.chain(name("third"));
        tx.add(Chain::new(third.clone()));
        let verdicts =
            vec![(0_u32.into(), Verdict::Goto(name("other"))), (1_u32.into(), Verdict::Goto(name("c")))];
        tx.add(third.rule().then(Vmap::new(Expression::random(2), verdicts)));
        tx.add(
            third
                .rule()
                .then(Reject::Default)
                .comment(comment("Reject traffic to invalid ports of ClusterIPs")),
        );
    })
}

fn matches() -> Vec<Case> {
    let m = |l: Expression, r: Expression| vec![Statement::from(Match::new(l, r))];
    let v6 = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1);
    vec![
        rules(
            "matches, ip",
            Family::IP,
            [
                m(Payload::IP_SADDR.into(), ip(10, 0, 0, 1).into()),
                m(Payload::IP_SADDR.into(), Expression::prefix(ip(10, 0, 0, 0), 8)),
                m(Payload::IP_SADDR.into(), Expression::prefix(ip(10, 0, 16, 0), 20)),
                m(Payload::IP_SADDR.into(), Expression::range(ip(10, 0, 0, 1), ip(10, 0, 0, 9))),
                vec![
                    Match::not(Payload::IP_SADDR, Expression::range(ip(10, 0, 0, 1), ip(10, 0, 0, 9))).into(),
                ],
                m(Payload::IP_SADDR.into(), Expression::set([ip(10, 0, 0, 1), ip(10, 0, 0, 2)])),
                m(Payload::IP_PROTOCOL.into(), Protocol::TCP.into()),
                m(Payload::IP_TTL.into(), 64_u32.into()),
                vec![Match::with(Payload::IP_TTL, MatchOp::Lt, 5_u32).into()],
                m(Payload::TCP_DPORT.into(), port(80)),
                m(Payload::TCP_DPORT.into(), Expression::set([port(80), port(443)])),
                m(Payload::TCP_DPORT.into(), Expression::range(Port(1024), Port(65535))),
                vec![Match::with(Payload::UDP_SPORT, MatchOp::Gte, Port(1024)).into()],
                m(Payload::TCP_FLAGS.into(), TcpFlags::SYN.into()),
                vec![Match::with(Payload::TCP_FLAGS, MatchOp::Eq, TcpFlags::SYN).into()],
                m(Payload::IP_DSCP.into(), 0x2e_u32.into()),
                m(Payload::TH_DPORT.into(), port(53)),
                m(MetaKey::IIFNAME.into(), InterfaceName::new("eth0").unwrap().into()),
                m(MetaKey::IIFNAME.into(), InterfaceName::new("veth*").unwrap().into()),
                vec![Match::not(MetaKey::OIFNAME, InterfaceName::new("lo").unwrap()).into()],
                m(MetaKey::SKUID.into(), 0_u32.into()),
                m(MetaKey::MARK.into(), 7_u32.into()),
                m(CtKey::STATE.into(), (CtState::ESTABLISHED | CtState::RELATED).into()),
                m(CtKey::MARK.into(), 1_u32.into()),
                m(Expression::FIB_SADDR_TYPE, AddressType::LOCAL.into()),
                m(
                    Expression::concat([Payload::IP_SADDR.into(), Payload::TCP_DPORT.into()]),
                    Expression::set([Expression::concat([ip(1, 1, 1, 1).into(), port(22)])]),
                ),
            ],
        ),
        rules(
            "matches, ip6",
            Family::IP6,
            [
                m(Payload::IP6_SADDR.into(), v6.into()),
                m(
                    Payload::IP6_DADDR.into(),
                    Expression::prefix(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 0), 64),
                ),
                vec![Match::not(Payload::IP6_DADDR, Ipv6Addr::LOCALHOST).into()],
                m(Payload::TCP_DPORT.into(), port(80)),
            ],
        ),
        rules(
            "matches, inet",
            Family::INET,
            [
                m(Payload::IP_SADDR.into(), ip(10, 0, 0, 1).into()),
                m(Payload::IP6_SADDR.into(), v6.into()),
                m(Payload::TCP_DPORT.into(), port(80)),
                vec![
                    Match::new(Payload::IP_SADDR, ip(10, 0, 0, 1)).into(),
                    Match::new(Payload::TCP_DPORT, Port(80)).into(),
                ],
                m(MetaKey::NFPROTO.into(), Family::IP.into()),
            ],
        ),
    ]
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
                s(Statement::Dnat(Nat::to(ip(1, 2, 3, 4)))),
                s(Statement::Snat(Nat::to(ip(1, 2, 3, 4)))),
                vec![port_80(), Statement::Dnat(Nat::to_port(ip(1, 2, 3, 4), Port(80)))],
                s(Statement::Masquerade(PortNat::default())),
                s(Statement::Masquerade(PortNat {
                    port: None,
                    flags: NatFlags::RANDOM | NatFlags::PERSISTENT,
                })),
                vec![
                    port_80(),
                    Statement::Redirect(PortNat { port: Some(port(8080)), flags: NatFlags::empty() }),
                ],
                s(Statement::Redirect(PortNat::default())),
            ],
        ),
    ]
}

fn port(port: u16) -> Expression {
    Port(port).into()
}

fn exthdr(op: ExthdrOp, header: &str, field: &str) -> Expression {
    Exthdr::find(op, header, field).unwrap().into()
}

fn more_expressions() -> Vec<Case> {
    let m = |l: Expression, r: Expression| vec![Statement::from(Match::new(l, r))];
    let text = |t: &str| Expression::Value(Value::Text(InterfaceName::new(t).unwrap()));
    let meta = |key| Expression::Meta(key);
    let set_mark = |value: Expression| vec![Statement::from(Mangle::new(MetaKey::MARK, value))];
    let jhash = |of: Expression, seed| Expression::Jhash(Box::new(Jhash { of, modulus: 4, seed, offset: 1 }));
    let original = |key| Expression::Ct(Ct { key, direction: Some(Direction::ORIGINAL) });
    let fib = |flags, result, check| Expression::Fib(Fib { flags, result, check });
    let raw = |base, offset, bits| Expression::RawPayload(RawPayload { base, offset, bits });
    let number = |n: u32| Expression::from(n);
    vec![
        rules(
            "expressions, ip",
            Family::IP,
            [
                m(raw(PayloadBase::TRANSPORT, 0, 16), number(80)),
                m(raw(PayloadBase::NETWORK, 96, 32), number(0x0102_0304)),
                m(exthdr(ExthdrOp::TCPOPT, "maxseg", "size"), number(500)),
                m(exthdr(ExthdrOp::TCPOPT, "sack-perm", ""), number(1)),
                m(exthdr(ExthdrOp::TCPOPT, "window", "count"), number(7)),
                m(original(CtKey::SADDR_IP), ip(1, 2, 3, 4).into()),
                m(CtKey::DIRECTION.into(), number(1)),
                m(CtKey::HELPER.into(), text("ftp")),
                m(Expression::Rt(Rt { key: RtKey::CLASSID }), number(7)),
                m(Expression::Rt(Rt { key: RtKey::NEXTHOP_IP }), ip(1, 2, 3, 4).into()),
                m(Expression::Rt(Rt { key: RtKey::MTU }), number(1400)),
                m(Expression::Socket(Socket { key: SocketKey::TRANSPARENT, level: None }), number(1)),
                m(Expression::Socket(Socket { key: SocketKey::MARK, level: None }), number(1)),
                m(fib(FibFlags::SADDR | FibFlags::IIF, FibResult::OIF, true), number(0)),
                m(
                    fib(FibFlags::DADDR | FibFlags::MARK, FibResult::ADDRTYPE, false),
                    AddressType::BROADCAST.into(),
                ),
                m(meta(MetaKey::PKTTYPE), number(1)),
                m(meta(MetaKey::LEN), Expression::range(100_u32, 200_u32)),
                m(meta(MetaKey::CPU), number(1)),
                m(meta(MetaKey::PROTOCOL), number(0x0800)),
                m(meta(MetaKey::L4PROTO), Expression::set([Protocol::TCP, Protocol::UDP])),
                m(meta(MetaKey::MARK), Expression::range(5_u32, 9_u32)),
                m(meta(MetaKey::MARK).and(0xff_u32), number(7)),
                m(Expression::from(Payload::IP_SADDR).and(ip(255, 0, 0, 255)), ip(10, 0, 0, 1).into()),
                m(Payload::IP_DSCP.into(), Expression::set([0x2e_u32, 8])),
                m(Payload::IP_FRAG_OFF.into(), number(3)),
                m(Payload::ICMP_TYPE.into(), number(8)),
                m(Payload::UDP_LENGTH.into(), number(50)),
                m(Payload::SCTP_DPORT.into(), port(80)),
                m(
                    Payload::IP_SADDR.into(),
                    Expression::set([
                        Expression::prefix(ip(10, 0, 0, 0), 8),
                        ip(1, 1, 1, 1).into(),
                        Expression::range(ip(2, 0, 0, 1), ip(2, 0, 0, 9)),
                    ]),
                ),
                m(
                    Payload::TCP_DPORT.into(),
                    Expression::set([Expression::range(Port(100), Port(200)), port(80)]),
                ),
                m(
                    Expression::concat([Payload::IP_SADDR.into(), Payload::TCP_DPORT.into()]),
                    Expression::set([
                        Expression::concat([ip(1, 1, 1, 1).into(), port(22)]),
                        Expression::concat([
                            Expression::prefix(ip(10, 0, 0, 0), 8),
                            Expression::range(Port(80), Port(90)),
                        ]),
                    ]),
                ),
                vec![Match::with(Payload::TCP_FLAGS, MatchOp::None, TcpFlags::SYN).into()],
                vec![
                    Match::with(
                        Expression::from(Payload::TCP_FLAGS).and(TcpFlags::SYN | TcpFlags::ACK),
                        MatchOp::Eq,
                        TcpFlags::SYN,
                    )
                    .into(),
                ],
                vec![Match::with(MetaKey::MARK, MatchOp::Lt, 5_u32).into()],
                m(CtKey::STATE.into(), Expression::set([CtState::NEW, CtState::ESTABLISHED])),
                set_mark(jhash(Payload::IP_SADDR.into(), Some(7))),
                set_mark(jhash(
                    Expression::concat([Payload::IP_SADDR.into(), Payload::TCP_SPORT.into()]),
                    None,
                )),
                set_mark(Expression::Symhash(Symhash { modulus: 2, offset: 3 })),
                set_mark(Expression::Numgen(Numgen {
                    mode: NumgenMode::INCREMENTAL,
                    modulus: 5,
                    offset: 10,
                })),
                set_mark(meta(MetaKey::MARK).and(0xff_u32).or(0x100_u32)),
                set_mark(meta(MetaKey::MARK).binary(BinaryOp::ShiftLeft, 1_u32)),
                set_mark(
                    Expression::from(Payload::IP_SADDR).map_anonymous([
                        (ip(1, 1, 1, 1).into(), number(5)),
                        (ip(2, 2, 2, 2).into(), number(6)),
                    ]),
                ),
                set_mark(CtKey::MARK.into()),
            ],
        ),
        rules(
            "expressions, ip6",
            Family::IP6,
            [
                m(exthdr(ExthdrOp::IPV6, "frag", "more-fragments"), number(1)),
                m(exthdr(ExthdrOp::IPV6, "frag", "id"), number(7)),
                m(exthdr(ExthdrOp::IPV6, "hbh", ""), number(1)),
                m(exthdr(ExthdrOp::IPV6, "mh", "type"), number(1)),
                m(Payload::IP6_NEXTHDR.into(), Protocol::UDP.into()),
                m(Payload::IP6_HOPLIMIT.into(), number(1)),
                m(Payload::ICMPV6_TYPE.into(), number(135)),
                m(Payload::IP6_FLOWLABEL.into(), number(5)),
            ],
        ),
        rules(
            "expressions, inet",
            Family::INET,
            [
                m(Payload::ICMP_TYPE.into(), number(8)),
                m(Payload::ICMPV6_TYPE.into(), number(128)),
                m(Payload::ETHER_SADDR.into(), EtherAddr([1, 2, 3, 4, 5, 6]).into()),
                m(exthdr(ExthdrOp::IPV6, "frag", ""), number(1)),
                m(Expression::Ipsec(Ipsec { key: XfrmKey::REQID, out: false, number: 0 }), number(1)),
                m(
                    Expression::Ipsec(Ipsec { key: XfrmKey::SADDR_IP, out: true, number: 1 }),
                    ip(1, 2, 3, 4).into(),
                ),
                m(meta(MetaKey::IPSEC), number(1)),
                m(
                    Expression::concat([Payload::IP_SADDR.into(), Payload::TCP_DPORT.into()]),
                    Expression::set([
                        Expression::concat([ip(1, 1, 1, 1).into(), port(22)]),
                        Expression::concat([ip(2, 2, 2, 2).into(), port(33)]),
                    ]),
                ),
            ],
        ),
        rules(
            "expressions, bridge",
            Family::BRIDGE,
            [
                m(Payload::ETHER_DADDR.into(), EtherAddr([1, 2, 3, 4, 5, 6]).into()),
                m(Payload::IP_SADDR.into(), ip(1, 1, 1, 1).into()),
                m(Payload::TCP_DPORT.into(), port(80)),
                m(Payload::VLAN_ID.into(), number(7)),
            ],
        ),
        rules(
            "expressions, arp",
            Family::ARP,
            [
                m(Payload::ARP_OPERATION.into(), number(1)),
                m(Payload::ARP_SADDR_IP.into(), ip(1, 1, 1, 1).into()),
                m(Payload::ARP_SADDR_ETHER.into(), EtherAddr([1, 2, 3, 4, 5, 6]).into()),
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
                s(Statement::Dnat(to(
                    NatTarget::Address(Expression::range(ip(1, 2, 3, 4), ip(1, 2, 3, 9))),
                    NatFlags::PERSISTENT,
                ))),
                vec![
                    tcp(),
                    Statement::Dnat(to(
                        NatTarget::AddressPort(
                            Expression::range(ip(1, 2, 3, 4), ip(1, 2, 3, 9)),
                            Expression::range(Port(80), Port(90)),
                        ),
                        NatFlags::RANDOM,
                    )),
                ],
                vec![tcp(), Statement::Dnat(to(NatTarget::Port(port(80)), none))],
                vec![
                    tcp(),
                    Statement::Masquerade(PortNat {
                        port: Some(Expression::range(Port(1024), Port(2048))),
                        flags: none,
                    }),
                ],
                s(Statement::Dnat(to(
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
                s(Statement::Dnat(Nat::to(v6))),
                vec![tcp(), Statement::Dnat(Nat::to_port(v6, Port(80)))],
                vec![
                    tcp(),
                    Statement::Dnat(Nat::to_concat(
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
                s(Statement::Dnat(Nat { family: Some(Family::IP), ..Nat::to(ip(1, 2, 3, 4)) })),
                s(Statement::Dnat(Nat { family: Some(Family::IP6), ..Nat::to(v6) })),
                s(Statement::Masquerade(PortNat::default())),
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
                s(Log { flags: LogFlags::from_bits_retain(0x2f), ..Log::default() }.into()),
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
        case("interfaces by number", Family::NETDEV, |tx, t, _| {
            let base = Chain::base(t.chain(name("in")), ChainType::Filter, Hook::Ingress, Priority(0));
            tx.add(base.devices([InterfaceName::new("lo").unwrap()]));
            tx.add(t.chain(name("in")).rule().then(Fwd { device: 1_u32.into(), address: None }));
        }),
        case("devices", Family::NETDEV, |tx, t, c| {
            let lo = InterfaceName::new("lo").unwrap();
            let base = Chain::base(t.chain(name("in")), ChainType::Filter, Hook::Ingress, Priority(-500));
            tx.add(base.devices([lo]).policy(Policy::Accept));
            tx.add(c.rule().then(Match::new(Payload::IP_SADDR, ip(1, 1, 1, 1))).then(Verdict::Drop));
            tx.add(c.rule().then(Match::new(Payload::UDP_DPORT, Port(53))).then(Counter::default()));
        }),
    ]
}
