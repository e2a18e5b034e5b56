//! What can be matched and hashed and looked up, one rule each.

use sluicegate_nftables::expr::{
    CtKey, Direction, FibFlags, FibResult, MetaKey, NumgenMode, PayloadBase, RtKey, SocketKey, XfrmKey,
};

use super::*;

pub(super) fn cases() -> Vec<Case> {
    let m = |l: Expression, r: Expression| vec![Statement::from(Match::new(l, r))];
    let text = |t: &str| Expression::Value(Value::Text(InterfaceName::new(t).unwrap()));
    let meta = |key| Expression::Meta(key);
    let set_mark = |value: Expression| vec![Statement::from(Mangle::new(MetaKey::MARK, value))];
    let jhash = |of: Expression, seed| Expression::Jhash(Box::new(Jhash { of, modulus: 4, seed, offset: 1 }));
    let original = |key| Expression::Ct(Ct { key, direction: Some(Direction::ORIGINAL), family: None });
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
                vec![Match::not(fib(FibFlags::DADDR, FibResult::OIF, true), number(1)).into()],
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

/// Whether there is a route, where that is not compared: nft has a word for it since 1.1.4.
pub(super) fn newer() -> Vec<Case> {
    let check = |flags| Expression::Fib(Fib { flags, result: FibResult::OIF, check: true });
    let (to, from) = (check(FibFlags::DADDR), check(FibFlags::SADDR | FibFlags::IIF));
    let (missing, exists) = (|| Expression::from(0_u32), || Expression::from(1_u32));
    let both = Expression::concat([from.clone(), Payload::TCP_DPORT.into()]);
    let pair = Expression::concat([exists(), port(22)]);
    let marks = [(missing(), Expression::from(1_u32)), (exists(), 2_u32.into())];
    vec![rules(
        "whether there is a route",
        Family::INET,
        [
            vec![Vmap::new(to.clone(), vec![(missing(), Verdict::Drop), (exists(), Verdict::Accept)]).into()],
            vec![
                Vmap::new(
                    from.clone(),
                    vec![(missing(), Verdict::Drop), (Expression::any(), Verdict::Accept)],
                )
                .into(),
            ],
            vec![Match::new(to.clone(), Expression::set([missing(), exists()])).into()],
            vec![Match::new(both, Expression::set([pair])).into()],
            vec![Mangle::new(MetaKey::MARK, from.map_anonymous(marks)).into()],
            vec![Mangle::new(MetaKey::MARK, to).into()],
        ],
    )]
}
