//! Numbers that have names on a machine: interfaces, groups of them, users.

use std::net::Ipv6Addr;

use sluicegate_nftables::expr::{FibFlags, FibResult, MetaKey, PayloadBase, RtKey};

use super::*;

pub(super) fn cases() -> Vec<Case> {
    vec![
        rules("names of the machine", Family::INET, of_inet()),
        rules("names of the machine, ip", Family::IP, of_ip()),
        sets(),
        case("interfaces by number", Family::NETDEV, |tx, t, _| {
            let base = Chain::base(t.chain(name("in")), ChainType::Filter, Hook::Ingress, Priority(0));
            tx.add(base.devices([InterfaceName::new("lo").unwrap()]));
            let chain = t.chain(name("in"));
            tx.add(chain.rule().then(Fwd { device: 1_u32.into(), address: None }));
            let address = Some((Family::IP, ip(1, 2, 3, 4).into()));
            tx.add(chain.rule().then(Fwd { device: 1_u32.into(), address }));
            tx.add(chain.rule().then(Dup { address: None, device: Some(1_u32.into()) }));
            tx.add(chain.rule().then(Dup { address: None, device: Some(77_u32.into()) }));
        }),
    ]
}

/// Interface 1 is `lo` in every network namespace; there is no 77.
fn of_inet() -> Vec<Vec<Statement>> {
    let is = |left: Expression, right: Expression| vec![Statement::from(Match::new(left, right))];
    let meta = Expression::Meta;
    let raw = |base, offset, bits| Expression::RawPayload(RawPayload { base, offset, bits });
    let fib = Expression::Fib(Fib { flags: FibFlags::DADDR, result: FibResult::OIF, check: false });
    vec![
        is(meta(MetaKey::IIF), 1_u32.into()),
        is(meta(MetaKey::OIF), 1_u32.into()),
        is(meta(MetaKey::IIF), 77_u32.into()),
        is(meta(MetaKey::SDIF), 1_u32.into()),
        vec![Match::not(MetaKey::IIF, 1_u32).into(), Counter::default().into()],
        is(meta(MetaKey::IIF), Expression::set([1_u32, 77])),
        is(meta(MetaKey::IIF), Expression::range(1_u32, 77_u32)),
        is(fib.clone(), 1_u32.into()),
        is(
            Expression::concat([meta(MetaKey::IIF), meta(MetaKey::MARK)]),
            Expression::set([
                Expression::concat([1_u32.into(), 3_u32.into()]),
                Expression::concat([77_u32.into(), 4_u32.into()]),
            ]),
        ),
        vec![
            Vmap::new(MetaKey::IIF, vec![(1_u32.into(), Verdict::Accept), (77_u32.into(), Verdict::Drop)])
                .into(),
        ],
        vec![
            Mangle::new(
                MetaKey::MARK,
                meta(MetaKey::OIF)
                    .map_anonymous([(1_u32.into(), 5_u32.into()), (77_u32.into(), 6_u32.into())]),
            )
            .into(),
        ],
        is(meta(MetaKey::IIFGROUP), 0_u32.into()),
        is(meta(MetaKey::OIFGROUP), 5_u32.into()),
        is(meta(MetaKey::IIFGROUP), Expression::set([0_u32, 5])),
        is(meta(MetaKey::IIFGROUP), Expression::range(0_u32, 5_u32)),
        is(meta(MetaKey::SKUID), 0_u32.into()),
        is(meta(MetaKey::SKGID), Expression::set([0_u32, 33])),
        is(meta(MetaKey::SKUID), Expression::range(1000_u32, 2000_u32)),
        is(meta(MetaKey::CGROUP), 3_u32.into()),
        is(meta(MetaKey::PRIORITY), 0_u32.into()),
        is(meta(MetaKey::PRIORITY), 0x1_0002_u32.into()),
        is(meta(MetaKey::RTCLASSID), 3_u32.into()),
        is(exthdr(ExthdrOp::TCPOPT, "mptcp", "subtype"), MptcpSubtype::MP_JOIN.into()),
        is(
            exthdr(ExthdrOp::TCPOPT, "mptcp", "subtype"),
            Expression::set([MptcpSubtype::MP_CAPABLE, MptcpSubtype::MP_TCPRST]),
        ),
        is(exthdr(ExthdrOp::IPV4, "rr", "addr"), ip(10, 0, 0, 1).into()),
        is(exthdr(ExthdrOp::IPV4, "lsrr", "addr"), Expression::set([ip(10, 0, 0, 1), ip(10, 0, 0, 2)])),
        is(exthdr(ExthdrOp::IPV4, "ssrr", "addr"), Expression::range(ip(10, 0, 0, 1), ip(10, 0, 0, 9))),
        is(raw(PayloadBase::NETWORK, 96, 32), ip(10, 0, 0, 1).into()),
        is(raw(PayloadBase::NETWORK, 192, 128), Ipv6Addr::LOCALHOST.into()),
        is(raw(PayloadBase::LINK, 48, 48), EtherAddr([2, 0, 0, 0, 0, 1]).into()),
        is(Expression::Rt(Rt { key: RtKey::CLASSID }), 10_u32.into()),
        is(Expression::Rt(Rt { key: RtKey::CLASSID }), Expression::set([0_u32, 10])),
    ]
}

fn of_ip() -> Vec<Vec<Statement>> {
    vec![
        vec![Dup { address: Some(ip(1, 2, 3, 4).into()), device: Some(1_u32.into()) }.into()],
        vec![Match::new(Payload::IP_DSCP, Expression::range(1_u32, 3_u32)).into()],
        vec![Match::not(Payload::IP_DSCP, Expression::range(8_u32, 16_u32)).into()],
        vec![Match::new(Payload::ICMP_TYPE, Expression::range(0_u32, 5_u32)).into()],
        vec![Match::new(MetaKey::L4PROTO, Expression::range(6_u32, 17_u32)).into()],
        vec![
            Match::new(Payload::IP_DSCP, Expression::set([Expression::range(1_u32, 3_u32), 10_u32.into()]))
                .into(),
        ],
    ]
}

fn sets() -> Case {
    case("sets of names", Family::INET, |tx, t, chain| {
        let element = |of: DataType, number: u32| {
            let mut key = Key::new();
            key.append(of.into(), &number.to_ne_bytes());
            key
        };
        for (n, of) in [
            ("links", DataType::IFACE_INDEX),
            ("groups", DataType::DEVGROUP),
            ("realms", DataType::REALM),
            ("marks", DataType::MARK),
            ("users", DataType::UID),
        ] {
            let set = t.set(name(n));
            tx.add(Set::new(set.clone(), of));
            tx.add(Elements::new(
                &set,
                [Element::new(element(of, 1)), Element::new(element(of, 0)), Element::new(element(of, 77))],
            ));
        }
        let map = t.map(name("to"));
        tx.add(Set::map(map.clone(), DataType::MARK, DataType::IFACE_INDEX));
        tx.add_element(&map, Element::new(Mark(7)).value(element(DataType::IFACE_INDEX, 1)));
        tx.add(chain.rule().then(Match::new(MetaKey::IIF, Expression::named(&name("links")))));
    })
}
