//! Addresses that are changed on the way, and changed back.

use sluicegate_nftables::expr::{MetaKey, NatFlags, NumgenMode};
use sluicegate_nftables::lang::*;

use super::*;

/// Sends a datagram there, which this socket gets and answers; the answer comes from where the client sent
/// to. Returns whom the server saw.
fn exchange(lab: &Lab, to: impl Into<SocketAddr>, server: &UdpSocket) -> SocketAddr {
    let to = to.into();
    let client = lab.send(to);
    let from = received(server);
    server.send_to(b"!", from).expect("an answer is sent");
    assert_eq!(received(&client), to, "the answer");
    from
}

#[test]
fn destinations_are_changed_and_changed_back() {
    let Some(lab) = Lab::new() else { return };
    lab.load(Family::IP, |r| {
        let map = r.table.map(name("services"));
        let key = [DataType::IPV4_ADDR, DataType::INET_SERVICE];
        r.tx.add(Set::map(map.clone(), key, key));
        let service = Element::new((ip(10, 96, 0, 1), Port(53))).value((OTHER_SERVER, Port(1002)));
        r.tx.add_element(&map, service);
        let service = Expression::concat([Payload::IP_DADDR.into(), Payload::UDP_DPORT.into()]);
        let mut prefix = Nat::to(Expression::prefix(ip(10, 2, 0, 0), 24));
        prefix.flags = NatFlags::NETMAP;
        r.nat(Hook::Prerouting)
            .rule([to_port(53), Statement::dnat(Nat::to_concat(Family::IP, service.map(&map.name)))])
            .rule([to_port(54), Statement::dnat(Nat::to_port(SERVER, Port(1001)))])
            .rule([
                to_port(55),
                Statement::redirect(PortNat { port: Some(Port(1003).into()), ..PortNat::default() }),
            ])
            .rule([
                Match::new(Payload::IP_DADDR, Expression::prefix(ip(10, 9, 0, 0), 24)).into(),
                Statement::dnat(prefix),
            ]);
    });
    let server = udp(&lab.server, (SERVER, 1001));
    let other = udp(&lab.server, (OTHER_SERVER, 1002));
    let router = udp(&lab.router, ("0.0.0.0", 1003));
    assert_eq!(exchange(&lab, (ip(10, 96, 0, 1), 53), &other).ip(), CLIENT, "a map");
    assert_eq!(exchange(&lab, (NEAR, 54), &server).ip(), CLIENT, "an address and a port");
    assert_eq!(exchange(&lab, (SERVER, 55), &router).ip(), CLIENT, "the router itself");
    assert_eq!(exchange(&lab, (ip(10, 9, 0, 2), 1001), &server).ip(), CLIENT, "a prefix");
    assert_eq!(exchange(&lab, (ip(10, 9, 0, 3), 1002), &other).ip(), CLIENT, "a prefix");
}

#[test]
fn sources_are_changed_and_changed_back() {
    let Some(lab) = Lab::new() else { return };
    let ports = |low, high| Some(Expression::range(Port(low), Port(high)));
    lab.load(Family::IP, |r| {
        // Of the router's own network, but nobody's address.
        let range = Expression::range(ip(10, 2, 0, 7), ip(10, 2, 0, 8));
        r.nat(Hook::Postrouting)
            .rule([
                to_port(1001),
                Statement::masquerade(PortNat { port: ports(5000, 5001), ..PortNat::default() }),
            ])
            .rule([to_port(1002), Statement::snat(Nat::to_port(FAR, Port(6000)))])
            .rule([to_port(1003), Statement::snat(Nat::to(range))]);
    });
    let sockets = [1001, 1002, 1003].map(|port| udp(&lab.server, (SERVER, port)));
    let seen = exchange(&lab, (SERVER, 1001), &sockets[0]);
    assert!(seen.ip() == FAR && (5000..=5001).contains(&seen.port()), "{seen}");
    assert_eq!(exchange(&lab, (SERVER, 1002), &sockets[1]), (FAR, 6000).into());
    lab.send((SERVER, 1003));
    let seen = received(&sockets[2]).ip();
    assert!([ip(10, 2, 0, 7), ip(10, 2, 0, 8)].map(IpAddr::from).contains(&seen), "{seen}");
}

#[test]
fn both_families_are_translated_in_one_table() {
    let Some(lab) = Lab::new() else { return };
    lab.load(Family::INET, |r| {
        r.nat(Hook::Prerouting)
            .rule([
                Match::new(MetaKey::NFPROTO, Family::IP6).into(),
                to_port(53),
                Statement::dnat(Nat { family: Some(Family::IP6), ..Nat::to_port(SERVER6, Port(1001)) }),
            ])
            .rule([
                Match::new(MetaKey::NFPROTO, Family::IP).into(),
                to_port(53),
                Statement::dnat(Nat { family: Some(Family::IP), ..Nat::to_port(SERVER, Port(1002)) }),
            ]);
        r.nat(Hook::Postrouting).rule([Statement::masquerade(PortNat::default())]);
    });
    let (six, four) = (udp(&lab.server, (SERVER6, 1001)), udp(&lab.server, (SERVER, 1002)));
    let near6 = Ipv6Addr::new(0xfd01, 0, 0, 0, 0, 0, 0, 1);
    let far6 = Ipv6Addr::new(0xfd02, 0, 0, 0, 0, 0, 0, 1);
    assert_eq!(exchange(&lab, (near6, 53), &six).ip(), far6);
    assert_eq!(exchange(&lab, (NEAR, 53), &four).ip(), FAR);
}

/// In turn, by chance, and by what is hashed.
#[test]
fn connections_are_spread_over_servers() {
    let Some(lab) = Lab::new() else { return };
    let jhash = Jhash { of: Payload::UDP_SPORT.into(), modulus: 2, seed: Some(7), offset: 0 };
    let by_address = Jhash { of: Payload::IP_SADDR.into(), ..jhash.clone() };
    let in_turn = Numgen { mode: NumgenMode::INCREMENTAL, modulus: 2, offset: 0 };
    lab.load(Family::IP, |r| {
        r.nat(Hook::Prerouting);
        for (port, number) in (1000..).zip([
            Expression::Numgen(in_turn),
            Expression::random(2),
            Expression::Jhash(Box::new(jhash)),
            Expression::Jhash(Box::new(by_address)),
        ]) {
            let servers = [(0_u32.into(), SERVER.into()), (1_u32.into(), OTHER_SERVER.into())];
            r.rule([to_port(port), Statement::dnat(Nat::to(number.map_anonymous(servers)))]);
        }
    });
    // So many that chance gives one server all of them never.
    for (port, all) in (1000..).zip([10, 64, 64, 10]) {
        let servers = [SERVER, OTHER_SERVER].map(|address| udp(&lab.server, (address, port)));
        let clients: Vec<_> = (0..all).map(|_| lab.send((NEAR, port))).collect();
        let until = Instant::now() + LONG;
        let mut came = [0, 0];
        while came[0] + came[1] < all && Instant::now() < until {
            came = [came[0] + waiting(&servers[0]), came[1] + waiting(&servers[1])];
        }
        assert_eq!(came[0] + came[1], all, "{port}: all come");
        match port {
            1000 => assert_eq!(came, [all / 2; 2], "in turn"),
            1003 => assert!(came.contains(&0), "one address has one server: {came:?}"),
            _ => assert!(!came.contains(&0), "{port}: to both: {came:?}"),
        }
        drop(clients);
    }
}

/// What counts and what hashes is of the host's order, addresses and ports are not.
#[test]
fn numbers_are_addresses_and_ports() {
    let Some(lab) = Lab::new() else { return };
    let number = |offset| Expression::Numgen(Numgen { mode: NumgenMode::INCREMENTAL, modulus: 1, offset });
    let hash = |offset| {
        Expression::Jhash(Box::new(Jhash { of: Payload::IP_SADDR.into(), modulus: 1, seed: None, offset }))
    };
    let other = u32::from(OTHER_SERVER);
    lab.load(Family::IP, |r| {
        r.nat(Hook::Prerouting)
            .rule([to_port(53), Statement::dnat(Nat::to(number(other)))])
            .rule([to_port(54), Statement::dnat(Nat::to(hash(other)))])
            .rule([to_port(55), Statement::dnat(Nat::to_port(number(other), number(0x1234)))])
            .rule([
                to_port(56),
                Statement::redirect(PortNat { port: Some(number(0x1234)), ..PortNat::default() }),
            ]);
        r.filter(Hook::Forward)
            .rule([to_port(57), Mangle::new(Payload::UDP_DPORT, number(0x1234)).into()])
            .rule([to_port(58), Mangle::new(Payload::IP_SADDR, number(0x0a01_004d)).into()]);
    });
    let other = [53, 54, 0x1234].map(|port| udp(&lab.server, (OTHER_SERVER, port)));
    for (port, server) in [53, 54, 55].into_iter().zip(&other) {
        assert_eq!(exchange(&lab, (NEAR, port), server).ip(), CLIENT, "{port}");
    }
    let router = udp(&lab.router, ("0.0.0.0", 0x1234));
    assert_eq!(exchange(&lab, (SERVER, 56), &router).ip(), CLIENT);
    let server = [0x1234, 58].map(|port| udp(&lab.server, (SERVER, port)));
    lab.send_each(&[57, 58]);
    assert_eq!(server.each_ref().map(|server| received(server).ip()), [CLIENT, ip(10, 1, 0, 77)]);
}
