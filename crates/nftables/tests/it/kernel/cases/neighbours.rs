//! Fields that lie side by side, which are compared at once, and what they take for granted.

use std::net::Ipv6Addr;

use sluicegate_nftables::expr::{MetaKey, PayloadBase};

use super::*;

pub(super) fn cases() -> Vec<Case> {
    vec![
        rules("neighbours, ip", Family::IP, of_ip()),
        rules("raw payload", Family::IP, of_raw()),
        rules("neighbours, icmp", Family::IP, of_icmp()),
        rules("neighbours, ip6", Family::IP6, of_ip6()),
        rules("neighbours, inet", Family::INET, of_inet()),
        rules("neighbours, bridge", Family::BRIDGE, of_bridge()),
        rules("neighbours, netdev", Family::NETDEV, of_netdev()),
        rules("neighbours, arp", Family::ARP, of_arp()),
        rules("before all else, inet", Family::INET, before_all_else()),
        rules("before all else, bridge", Family::BRIDGE, before_all_else_of_bridge()),
    ]
}

/// What an extension header or a reject takes for granted, behind other statements.
fn before_all_else() -> Vec<Vec<Statement>> {
    let counter = || Statement::from(Counter { packets: 0, bytes: 0 });
    let header = || number(exthdr(ExthdrOp::IPV6, "hbh", "nexthdr"), 6);
    vec![
        vec![counter(), header()],
        vec![counter(), is(Payload::TCP_DPORT, Port(2)), counter(), header()],
        vec![header(), counter(), number(Payload::IP6_HOPLIMIT, 5)],
        vec![counter(), Reject::TcpReset.into()],
        vec![counter(), Reject::Icmp(1).into()],
        vec![counter(), header(), counter(), Reject::Icmpv6(1).into()],
        vec![counter(), header(), counter(), Reject::TcpReset.into()],
        vec![number(MetaKey::MARK, 2), Reject::Icmpv6(1).into()],
    ]
}

fn before_all_else_of_bridge() -> Vec<Vec<Statement>> {
    let counter = || Statement::from(Counter { packets: 0, bytes: 0 });
    let header = || number(exthdr(ExthdrOp::IPV6, "hbh", "nexthdr"), 6);
    vec![vec![counter(), header()], vec![is(Payload::ETHER_SADDR, mac(6)), header()]]
}

fn is(left: impl Into<Expression>, right: impl Into<Expression>) -> Statement {
    Match::new(left, right).into()
}

fn number(left: impl Into<Expression>, right: u32) -> Statement {
    is(left, right)
}

fn mac(last: u8) -> EtherAddr {
    EtherAddr([1, 2, 3, 4, 5, last])
}

fn raw(base: PayloadBase, offset: u16, bits: u16) -> Expression {
    Expression::RawPayload(RawPayload { base, offset, bits })
}

fn of_ip() -> Vec<Vec<Statement>> {
    use Payload as P;
    let (sport, dport) = (|n| is(P::TCP_SPORT, Port(n)), |n| is(P::TCP_DPORT, Port(n)));
    let mark = || number(MetaKey::MARK, 2);
    let bits = |offset, width, n| number(raw(PayloadBase::TRANSPORT, offset, width), n);
    vec![
        vec![sport(1), dport(2)],
        vec![dport(2), sport(1)],
        vec![sport(1), mark(), dport(3)],
        vec![dport(3), mark(), sport(1)],
        vec![sport(1), is(P::TCP_DPORT, Expression::set([Port(3)]))],
        vec![sport(1), is(P::TCP_DPORT, Expression::set([Port(3), Port(4)]))],
        vec![sport(1), is(P::TCP_DPORT, Expression::range(Port(3), Port(4)))],
        vec![dport(3), sport(2), sport(2)],
        vec![Match::not(P::TCP_SPORT, Port(1)).into(), dport(2)],
        vec![Match::not(P::TCP_SPORT, Port(1)).into(), dport(2), sport(3)],
        vec![sport(1), Match::with(P::TCP_DPORT, MatchOp::Lt, Port(2)).into()],
        vec![is(P::IP_SADDR, ip(1, 2, 3, 4)), is(P::IP_DADDR, ip(5, 6, 7, 8))],
        vec![is(P::IP_SADDR, Expression::prefix(ip(1, 2, 0, 0), 16)), is(P::IP_DADDR, ip(5, 6, 7, 8))],
        vec![is(P::IP_SADDR, Expression::prefix(ip(1, 2, 48, 0), 20)), is(P::IP_DADDR, ip(5, 6, 7, 8))],
        vec![number(P::IP_TTL, 64), is(P::IP_PROTOCOL, Protocol::TCP)],
        vec![number(P::IP_TTL, 64), is(P::IP_PROTOCOL, Protocol::TCP), number(P::IP_CHECKSUM, 3)],
        vec![is(P::IP_PROTOCOL, Protocol::TCP), number(P::IP_TTL, 5), dport(80)],
        vec![is(P::IP_PROTOCOL, Protocol::TCP), is(P::IP_SADDR, ip(1, 2, 3, 4)), dport(80)],
        vec![number(P::IP_FRAG_OFF, 1), number(P::IP_TTL, 5)],
        vec![number(P::IP_LENGTH, 100), number(P::IP_ID, 5)],
        vec![number(P::IP_VERSION, 4), number(P::IP_HDRLENGTH, 5)],
        vec![number(P::IP_DSCP, 8), number(P::IP_LENGTH, 5)],
        vec![number(P::TCP_SEQUENCE, 1), number(P::TCP_ACKSEQ, 2)],
        vec![dport(3), number(P::TCP_SEQUENCE, 4)],
        vec![Match::with(P::TCP_FLAGS, MatchOp::Eq, TcpFlags::SYN).into(), number(P::TCP_WINDOW, 3)],
        vec![number(P::TCP_DOFF, 5), Match::with(P::TCP_FLAGS, MatchOp::Eq, TcpFlags::SYN).into()],
        vec![number(P::TCP_WINDOW, 3), number(P::TCP_CHECKSUM, 4), number(P::TCP_URGPTR, 5)],
        vec![
            is(P::UDP_SPORT, Port(1)),
            is(P::UDP_DPORT, Port(2)),
            number(P::UDP_LENGTH, 3),
            number(P::UDP_CHECKSUM, 4),
        ],
        vec![is(MetaKey::PROTOCOL, 0x0800_u32), dport(3)],
        vec![is(MetaKey::PROTOCOL, 0x0800_u32)],
        vec![is(MetaKey::L4PROTO, Expression::set([Protocol::TCP])), dport(3)],
        vec![is(P::TH_SPORT, Port(1)), is(P::TH_DPORT, Port(2))],
        vec![is(MetaKey::L4PROTO, Protocol::TCP), is(P::TH_SPORT, Port(1)), is(P::TH_DPORT, Port(2))],
        vec![bits(0, 16, 1), bits(16, 16, 2)],
        vec![bits(8, 8, 2), mark(), bits(0, 8, 1)],
        vec![is(P::ETHER_SADDR, mac(6)), is(P::ETHER_DADDR, mac(7))],
        vec![is(P::ETHER_SADDR, mac(6)), is(P::IP_SADDR, ip(1, 2, 3, 4))],
        vec![number(P::ETHER_TYPE, 0x0800), is(P::IP_SADDR, ip(1, 2, 3, 4))],
        vec![number(P::SCTP_VTAG, 3), is(P::SCTP_SPORT, Port(1)), is(P::SCTP_DPORT, Port(2))],
        vec![number(P::ESP_SPI, 1), number(P::ESP_SEQUENCE, 2)],
        vec![number(P::AH_HDRLENGTH, 4), number(P::AH_RESERVED, 3)],
        vec![
            sport(1),
            dport(2),
            Counter::default().into(),
            number(P::IP_TTL, 3),
            is(P::IP_PROTOCOL, Protocol::TCP),
        ],
    ]
}

/// Bits by place: joined as fields are, and named where they are one.
fn of_raw() -> Vec<Vec<Statement>> {
    let th = |offset, bits| raw(PayloadBase::TRANSPORT, offset, bits);
    let tcp = || is(MetaKey::L4PROTO, Protocol::TCP);
    let bytes = |bytes: &[u8]| Expression::Value(Value::Bytes(bytes.into()));
    vec![
        vec![number(th(64, 16), 3)],
        vec![number(th(64, 12), 3)],
        vec![number(th(60, 4), 3)],
        vec![number(th(65, 6), 3)],
        vec![is(th(64, 128), bytes(&[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 3]))],
        vec![is(th(64, 96), bytes(&[1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 3]))],
        vec![is(th(64, 16), Expression::set([3_u32, 4]))],
        vec![is(th(64, 16), Expression::range(3_u32, 5_u32))],
        vec![Match::not(th(64, 16), Expression::range(3_u32, 5_u32)).into()],
        vec![Match::with(th(64, 16), MatchOp::Gt, 5_u32).into()],
        vec![Match::with(th(64, 16).and(0xff_u32), MatchOp::Eq, 3_u32).into()],
        vec![is(
            Expression::concat([th(64, 16), Payload::IP_SADDR.into()]),
            Expression::set([Expression::concat([3_u32.into(), ip(1, 2, 3, 4).into()])]),
        )],
        vec![Vmap::new(th(64, 16), vec![(3_u32.into(), Verdict::Accept)]).into()],
        vec![number(raw(PayloadBase::LINK, 0, 16), 3)],
        vec![number(raw(PayloadBase::INNER, 0, 16), 3)],
        vec![number(raw(PayloadBase::NETWORK, 0, 16), 0x4500)],
        vec![number(raw(PayloadBase::NETWORK, 64, 24), 0x40_0605)],
        vec![number(raw(PayloadBase::NETWORK, 96, 64), 0x0102_0304)],
        vec![number(raw(PayloadBase::NETWORK, 128, 8), 10)],
        vec![number(th(0, 24), 3)],
        vec![tcp(), number(th(64, 16), 3)],
        vec![tcp(), number(th(64, 48), 3)],
        vec![tcp(), number(th(112, 24), 3)],
        vec![tcp(), number(th(0, 40), 3)],
        vec![tcp(), number(th(0, 8), 3)],
        vec![tcp(), Match::not(th(0, 8), 3_u32).into()],
        vec![number(th(64, 16), 3), number(th(80, 8), 4), number(th(88, 8), 5)],
    ]
}

fn of_ip6() -> Vec<Vec<Statement>> {
    use Payload as P;
    let v6 = |last| Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, last);
    vec![
        vec![is(P::IP6_SADDR, v6(1)), is(P::IP6_DADDR, v6(2))],
        vec![number(P::IP6_HOPLIMIT, 1), is(P::IP6_SADDR, v6(1))],
        vec![number(P::IP6_LENGTH, 1), is(P::IP6_NEXTHDR, Protocol::TCP), number(P::IP6_HOPLIMIT, 3)],
        vec![is(P::IP6_NEXTHDR, Protocol::TCP), number(P::IP6_HOPLIMIT, 3), is(P::TCP_DPORT, Port(4))],
        vec![is(P::IP6_NEXTHDR, Protocol::UDP), is(P::UDP_DPORT, Port(3)), number(P::IP6_LENGTH, 4)],
        vec![number(P::IP6_FLOWLABEL, 2), number(P::IP6_LENGTH, 4)],
        vec![is(MetaKey::PROTOCOL, 0x86dd_u32), is(P::TCP_DPORT, Port(3))],
        vec![number(P::ICMPV6_TYPE, 1), number(P::ICMPV6_CODE, 2)],
        vec![number(P::ICMPV6_TYPE, 128), number(P::ICMPV6_ID, 2), number(P::ICMPV6_SEQUENCE, 3)],
        vec![number(P::ICMPV6_ID, 2), number(P::ICMPV6_SEQUENCE, 3)],
        vec![number(P::ICMPV6_PACKET_TOO_BIG, 2)],
        vec![number(P::ICMPV6_MAX_DELAY, 2)],
        vec![number(raw(PayloadBase::NETWORK, 32, 16), 2), number(raw(PayloadBase::NETWORK, 48, 8), 17)],
    ]
}

fn of_icmp() -> Vec<Vec<Statement>> {
    use Payload as P;
    let of = |number| is(P::ICMP_TYPE, Expression::from(number));
    vec![
        vec![number(P::ICMP_ID, 3)],
        vec![number(P::ICMP_ID, 3), number(P::ICMP_SEQUENCE, 4)],
        vec![number(P::ICMP_GATEWAY, 3)],
        vec![number(P::ICMP_MTU, 3)],
        vec![number(P::ICMP_MTU, 3), number(P::ICMP_MTU, 4)],
        vec![of(8_u32), number(P::ICMP_ID, 3)],
        vec![of(5_u32), number(P::ICMP_GATEWAY, 3)],
        vec![of(5_u32)],
        vec![of(3_u32), number(P::ICMP_MTU, 4), number(P::ICMP_CODE, 1)],
        vec![is(P::ICMP_TYPE, Expression::set([8_u32, 0])), number(P::ICMP_ID, 3)],
        vec![number(P::ICMP_CODE, 3), number(P::ICMP_ID, 4)],
        vec![Match::not(P::ICMP_TYPE, 3_u32).into(), number(P::ICMP_ID, 4)],
        vec![is(P::ICMP_ID, Expression::set([3_u32, 4]))],
        vec![number(P::ICMP_GATEWAY, 3), number(P::ICMP_CODE, 1)],
        vec![Mangle::new(P::ICMP_ID, 3_u32).into()],
        vec![is(P::IP_DSCP, Expression::range(1_u32, 3_u32))],
        vec![Match::not(P::IP_DSCP, Expression::range(1_u32, 3_u32)).into()],
        vec![Match::with(P::IP_DSCP, MatchOp::Gt, 3_u32).into()],
        vec![Match::with(Expression::from(MetaKey::MARK).and(0xff_u32), MatchOp::Gt, 3_u32).into()],
    ]
}

fn of_inet() -> Vec<Vec<Statement>> {
    use Payload as P;
    let from = || is(P::IP_SADDR, ip(1, 2, 3, 4));
    let (sport, dport) = (|| is(P::TCP_SPORT, Port(2)), || is(P::TCP_DPORT, Port(4)));
    let tcp = || is(P::IP_PROTOCOL, Protocol::TCP);
    let ether = || is(P::ETHER_SADDR, mac(6));
    vec![
        vec![from(), sport(), dport()],
        vec![sport(), from(), dport()],
        vec![tcp(), dport()],
        vec![is(P::IP6_NEXTHDR, Protocol::TCP), dport()],
        vec![tcp(), number(P::IP_TTL, 4), dport()],
        vec![is(MetaKey::L4PROTO, Protocol::TCP), number(P::IP_TTL, 4), tcp(), dport()],
        vec![is(MetaKey::NFPROTO, Family::IP), tcp(), dport()],
        vec![is(MetaKey::PROTOCOL, 0x0800_u32), from()],
        vec![is(MetaKey::PROTOCOL, 0x0800_u32), dport()],
        vec![ether(), is(P::ETHER_DADDR, mac(7))],
        vec![ether(), number(P::ETHER_TYPE, 0x0800)],
        vec![number(P::ETHER_TYPE, 0x0800), ether()],
        vec![ether(), from()],
        vec![from(), ether()],
        vec![ether(), is(P::IP6_SADDR, Ipv6Addr::LOCALHOST)],
        vec![ether(), dport()],
        vec![ether(), number(P::ICMP_TYPE, 8)],
        vec![is(MetaKey::IIFTYPE, 1_u32), ether(), from()],
        vec![is(MetaKey::NFPROTO, Family::IP), ether(), from()],
        vec![number(P::ETHER_TYPE, 0x0800), from(), dport()],
        vec![number(P::ETHER_TYPE, 0x0800), dport()],
        vec![number(P::VLAN_ID, 3), from()],
        vec![number(P::ICMP_TYPE, 8), number(P::ICMP_CODE, 3)],
        vec![number(P::ICMP_TYPE, 8), number(P::ICMP_ID, 3), number(P::ICMP_SEQUENCE, 4)],
        vec![is(P::IP_PROTOCOL, Protocol::ICMP), number(P::ICMP_TYPE, 8)],
        vec![is(MetaKey::L4PROTO, Protocol::ICMP), number(P::ICMP_TYPE, 8)],
        vec![is(MetaKey::L4PROTO, Expression::set([Protocol::TCP, Protocol::UDP])), is(P::TH_DPORT, Port(3))],
        vec![
            is(P::IP_SADDR, Expression::set([ip(1, 2, 3, 4)])),
            is(P::IP_DADDR, Expression::set([ip(1, 2, 3, 4), ip(1, 2, 3, 5)])),
            sport(),
            dport(),
        ],
    ]
}

fn of_bridge() -> Vec<Vec<Statement>> {
    use Payload as P;
    let from = || is(P::IP_SADDR, ip(1, 2, 3, 4));
    let udp = || is(P::IP_PROTOCOL, Protocol::UDP);
    let dns = || is(P::UDP_DPORT, Port(53));
    let (source, target) = (|| is(P::ETHER_SADDR, mac(6)), || is(P::ETHER_DADDR, mac(7)));
    let vlan = || number(P::VLAN_ID, 2);
    vec![
        vec![source(), target()],
        vec![source(), target(), from()],
        vec![from(), source()],
        vec![number(P::ETHER_TYPE, 0x0800), from(), source()],
        vec![from(), number(P::ETHER_TYPE, 0x0800), source()],
        vec![vlan(), from()],
        vec![vlan(), number(P::VLAN_TYPE, 0x0800), from()],
        vec![source(), vlan()],
        vec![vlan(), source()],
        vec![target(), source(), vlan()],
        vec![source(), vlan(), from(), is(P::TCP_SPORT, Port(2)), is(P::TCP_DPORT, Port(4))],
        vec![number(P::ETHER_TYPE, 0x8100), vlan()],
        vec![number(P::ETHER_TYPE, 0x88a8), vlan()],
        vec![source(), number(P::ETHER_TYPE, 0x8100)],
        vec![number(P::VLAN_TYPE, 0x0800)],
        vec![is(P::VLAN_ID, Expression::set([1_u32, 2]))],
        vec![is(P::VLAN_ID, Expression::range(1_u32, 3_u32))],
        vec![vlan(), number(P::VLAN_PCP, 3)],
        vec![vlan(), number(P::ARP_OPERATION, 1)],
        vec![vlan(), is(P::IP6_SADDR, Ipv6Addr::LOCALHOST), dns()],
        vec![number(P::IP_TTL, 3), udp(), dns()],
        vec![udp(), dns(), number(P::IP_TTL, 4)],
        vec![number(P::ETHER_TYPE, 0x0800), udp(), dns()],
        vec![number(P::ETHER_TYPE, 0x0800), dns()],
        vec![is(MetaKey::PROTOCOL, 0x0800_u32), from()],
        vec![source(), number(P::ETHER_TYPE, 0x0806), number(P::ARP_OPERATION, 1)],
        vec![Match::not(P::ETHER_SADDR, mac(6)).into(), from()],
    ]
}

fn of_netdev() -> Vec<Vec<Statement>> {
    use Payload as P;
    let from = || is(P::IP_SADDR, ip(1, 2, 3, 4));
    let ether = || is(P::ETHER_SADDR, mac(6));
    let dport = || is(P::TCP_DPORT, Port(4));
    // A tag in a tag.
    let (outer, inner) = (number(P::ETHER_TYPE, 0x88a8), number(P::VLAN_TYPE, 0x8100));
    let tagged = |rest: Vec<Statement>| {
        [outer.clone(), number(P::VLAN_ID, 1), inner.clone()].into_iter().chain(rest).collect()
    };
    vec![
        tagged(vec![number(P::VLAN_ID, 2)]),
        tagged(vec![number(P::VLAN_ID, 2), number(P::VLAN_PCP, 3), number(P::VLAN_TYPE, 0x0800), from()]),
        tagged(vec![from(), dport()]),
        tagged(vec![number(P::VLAN_TYPE, 0x86dd)]),
        tagged(vec![is(P::VLAN_ID, Expression::set([1_u32, 2]))]),
        tagged(vec![inner.clone(), number(P::VLAN_ID, 3)]),
        vec![ether(), from()],
        vec![from(), ether()],
        vec![number(P::VLAN_ID, 3), dport()],
        vec![number(P::VLAN_ID, 3), from(), dport()],
        vec![number(P::VLAN_ID, 3), number(P::VLAN_PCP, 2)],
        vec![number(P::ETHER_TYPE, 0x0800), dport()],
        vec![number(P::VLAN_TYPE, 0x0800), dport()],
        vec![dport(), is(P::TCP_SPORT, Port(3))],
    ]
}

fn of_arp() -> Vec<Vec<Statement>> {
    use Payload as P;
    vec![
        vec![
            is(P::ARP_SADDR_ETHER, mac(6)),
            is(P::ARP_SADDR_IP, ip(1, 2, 3, 4)),
            is(P::ARP_DADDR_ETHER, mac(7)),
            is(P::ARP_DADDR_IP, ip(1, 2, 3, 5)),
        ],
        vec![number(P::ARP_HTYPE, 1), number(P::ARP_PTYPE, 0x0800)],
        vec![
            number(P::ARP_HTYPE, 1),
            number(P::ARP_PTYPE, 0x0800),
            number(P::ARP_HLEN, 6),
            number(P::ARP_PLEN, 4),
            number(P::ARP_OPERATION, 1),
        ],
        vec![number(P::ARP_OPERATION, 1), is(P::ARP_SADDR_IP, ip(1, 2, 3, 4))],
        vec![number(P::ARP_HTYPE, 1), number(P::ARP_OPERATION, 1)],
    ]
}
