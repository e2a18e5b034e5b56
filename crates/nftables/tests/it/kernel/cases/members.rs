//! Members of sets and maps without a name that have a comment, or carry something.

use sluicegate_nftables::expr::{CtKey, MetaKey, ObjectKind};

use super::*;

/// What nft 1.0.6 reads: comments, and what members of sets carry.
pub(super) fn cases() -> Vec<Case> {
    let ports = |members: Vec<Elem>| vec![Match::new(Payload::TCP_DPORT, Expression::set(members)).into()];
    let both = Expression::concat([Payload::IP_SADDR.into(), Payload::TCP_DPORT.into()]);
    let pair = |a, p| Expression::concat([ip(10, 0, 0, a).into(), port(p)]);
    let range = |low, high| Elem::new(Expression::range(Port(low), Port(high)));
    let limit = Limit { rate: 5, per: TimeUnit::Minute, burst: None, bytes: false, over: true };
    vec![
        rules(
            "comments of members",
            Family::INET,
            [
                ports(vec![Elem::new(Port(22)).comment(comment("ssh")), Elem::new(Port(80))]),
                ports(vec![range(20, 23).comment(comment("old, and \tplain")), range(80, 90), range(99, 99)]),
                // Of two that overlap the first is kept.
                ports(vec![
                    Elem::new(Port(22)).comment(comment("a")),
                    range(20, 40).comment(comment("b")),
                    range(99, 99),
                ]),
                ports(vec![
                    range(20, 22).comment(comment("a")),
                    range(22, 40).comment(comment("b")),
                    range(99, 99),
                ]),
                ports(vec![
                    range(20, 22).comment(comment("a")),
                    range(23, 40).comment(comment("a")),
                    range(99, 99),
                ]),
                vec![
                    Match::not(
                        both.clone(),
                        Expression::set([
                            Elem::new(pair(1, 22)).comment(comment("one")),
                            Elem::new(pair(2, 22)).comment(comment("two")),
                        ]),
                    )
                    .into(),
                ],
                vec![
                    Match::new(
                        both,
                        Expression::set([
                            Elem::new(Expression::concat([
                                Expression::prefix(ip(10, 1, 0, 0), 16),
                                port(22),
                            ]))
                            .comment(comment("net")),
                            Elem::new(pair(2, 22)),
                        ]),
                    )
                    .into(),
                ],
                vec![
                    Match::new(
                        Payload::IP_DSCP,
                        Expression::set([
                            Elem::new(0x2e_u32).comment(comment("voice")),
                            Elem::new(0x22_u32).comment(comment("video")),
                        ]),
                    )
                    .into(),
                ],
                vec![
                    Match::new(
                        MetaKey::IIFNAME,
                        Expression::set([
                            Elem::new(InterfaceName::new("veth*").unwrap()).comment(comment("pods")),
                            Elem::new(InterfaceName::new("eth0").unwrap()),
                        ]),
                    )
                    .into(),
                ],
                vec![
                    Vmap::new(
                        Payload::ICMP_TYPE,
                        vec![
                            (Elem::new(8_u32).comment(comment("ping")).into(), Verdict::Accept),
                            (Elem::new(Expression::any()).comment(comment("else")).into(), Verdict::Continue),
                        ],
                    )
                    .into(),
                ],
                vec![
                    Match::new(
                        Payload::ICMP_TYPE,
                        Expression::set([Elem::new(8_u32).comment(comment("ping")), Elem::new(0_u32)]),
                    )
                    .into(),
                    Match::new(Payload::ICMP_ID, 7_u32).into(),
                ],
                vec![
                    Mangle::new(
                        MetaKey::MARK,
                        Expression::from(Payload::TCP_DPORT).map_anonymous([
                            (range(22, 23).comment(comment("x")).into(), 1_u32.into()),
                            (port(80), 2_u32.into()),
                        ]),
                    )
                    .into(),
                ],
            ],
        ),
        case("comments of members of a map of objects", Family::IP, |tx, t, c| {
            let counter = |n| t.object(ObjectKind::COUNTER, name(n));
            tx.add(StatefulObject::new(counter("a"), ObjectConfig::Counter(Counter::default())));
            tx.add(StatefulObject::new(counter("b"), ObjectConfig::Counter(Counter::default())));
            let pairs =
                vec![(Elem::new(Port(22)).comment(comment("ssh")).into(), name("a")), (port(80), name("b"))];
            let key = Box::new(Payload::TCP_DPORT.into());
            let object = ObjectName::Among(key, pairs);
            tx.add(c.rule().then(ObjectReference { kind: ObjectKind::COUNTER, object }));
        }),
        rules(
            "members of sets that count and limit",
            Family::INET,
            [
                ports(vec![Elem::new(Port(22)).statement(Counter::default()), Elem::new(Port(80))]),
                ports(vec![
                    range(20, 23).statement(Counter::default()).comment(comment("counted")),
                    range(80, 90).statement(Counter::default()),
                ]),
                vec![
                    Match::new(
                        CtKey::STATE,
                        Expression::set([
                            Elem::new(CtState::NEW).statement(limit),
                            Elem::new(CtState::ESTABLISHED),
                        ]),
                    )
                    .into(),
                ],
            ],
        ),
    ]
}

/// What nft reads since 1.0.8: what keys of maps carry, and quotas. And what no nft makes of text: an only
/// member that has a comment, members side by side with comments that differ.
pub(super) fn newer() -> Vec<Case> {
    let ports = |members: Vec<Elem>| vec![Match::new(Payload::TCP_DPORT, Expression::set(members)).into()];
    let range = |low, high| Elem::new(Expression::range(Port(low), Port(high)));
    let counted = |key: Expression| Elem::new(key).statement(Counter::default());
    vec![rules(
        "keys that count, and comments that nft forgets",
        Family::INET,
        [
            vec![
                Vmap::new(
                    CtKey::STATE,
                    vec![
                        (counted(CtState::ESTABLISHED.into()).into(), Verdict::Accept),
                        (counted(CtState::NEW.into()).comment(comment("first")).into(), Verdict::Continue),
                        (CtState::INVALID.into(), Verdict::Drop),
                    ],
                )
                .into(),
            ],
            vec![
                Vmap::new(
                    Payload::IP_SADDR,
                    vec![
                        (counted(Expression::prefix(ip(10, 0, 0, 0), 8)).into(), Verdict::Accept),
                        (counted(Expression::any()).into(), Verdict::Drop),
                    ],
                )
                .into(),
            ],
            vec![
                Mangle::new(
                    MetaKey::MARK,
                    Expression::from(Payload::TCP_DPORT)
                        .map_anonymous([(counted(port(22)).into(), 1_u32.into()), (port(80), 2_u32.into())]),
                )
                .into(),
            ],
            ports(vec![counted(port(22))]),
            ports(vec![
                range(80, 90).statement(Quota { bytes: 1000, used: 0, over: true }),
                Elem::new(Port(9)),
            ]),
            ports(vec![Elem::new(Port(22)).comment(comment("ssh"))]),
            ports(vec![range(20, 22).comment(comment("a")), range(23, 40).comment(comment("b"))]),
        ],
    )]
}
