//! Matches of every kind.

use std::net::Ipv6Addr;

use sluicegate_nftables::expr::{CtKey, MetaKey};

use super::*;

pub(super) fn cases() -> Vec<Case> {
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
                m(CtKey::LABEL.into(), 1_u32.into()),
                vec![Mangle::new(CtKey::LABEL, 0x20_u32).into()],
                m(Expression::FIB_SADDR_TYPE, AddressType::LOCAL.into()),
                m(
                    Expression::concat([Payload::IP_SADDR.into(), Payload::TCP_DPORT.into()]),
                    Expression::set([Expression::concat([ip(1, 1, 1, 1).into(), port(22)])]),
                ),
                m(
                    Expression::concat([
                        Expression::concat([Payload::IP_SADDR.into(), Payload::IP_DADDR.into()]),
                        Payload::TCP_DPORT.into(),
                    ]),
                    Expression::set([Expression::concat([
                        ip(1, 1, 1, 1).into(),
                        Expression::concat([ip(2, 2, 2, 2).into(), port(22)]),
                    ])]),
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
