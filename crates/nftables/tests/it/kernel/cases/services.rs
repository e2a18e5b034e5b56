//! Rules as service proxies make them.

use std::time::Duration;

use sluicegate_nftables::expr::{CtKey, MetaKey, NatFlags};

use super::*;

pub(super) fn cases() -> Vec<Case> {
    vec![maps_layout(), chains_layout()]
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
            lb.rule().then(Statement::dnat(Nat::to_concat(
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

fn frontend_key() -> Expression {
    Expression::concat([Payload::IP_DADDR.into(), MetaKey::L4PROTO.into(), Payload::TH_DPORT.into()])
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
                .then(Statement::masquerade(PortNat { port: None, flags: NatFlags::FULLY_RANDOM })),
        );
        tx.add(
            c.rule()
                .then(Match::new(CtKey::STATUS, CtStatus::DNAT))
                .then(Statement::masquerade(PortNat::default())),
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
            other.rule().then(Match::new(MetaKey::L4PROTO, Protocol::TCP)).then(Statement::dnat(
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
                .then(Statement::dnat(Nat::to_port(ip(10, 244, 0, 20), Port(53)))),
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
