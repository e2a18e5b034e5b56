//! Packets that pass, and packets that do not: verdicts, limits, quotas, refusals, sets that packets fill.

use sluicegate_nftables::expr::{CtKey, FibFlags, FibResult, MetaKey};
use sluicegate_nftables::lang::*;

use super::*;

#[test]
fn a_verdict_map_decides_and_its_elements_change() {
    let Some(lab) = Lab::new() else { return };
    let map = TableId::new(Family::IP, name("t")).map(name("ports"));
    let element = |port, verdict| Element::new(Port(port)).verdict(verdict);
    lab.load(Family::IP, |r| {
        r.tx.add(Set::verdict_map(map.clone(), DataType::INET_SERVICE));
        let there = r.table.chain(name("there"));
        let (every, went) = (r.count("every"), r.count("there"));
        r.tx.add(Chain::new(there.clone()));
        r.tx.add(there.rule().then(went).then(Verdict::Accept));
        r.tx.add(Elements::new(
            &map,
            [
                element(1001, Verdict::Accept),
                element(1002, Verdict::Drop),
                element(1003, Verdict::Goto(there.name)),
            ],
        ));
        r.filter(Hook::Forward)
            .rule([every])
            .rule([Vmap::new(Payload::UDP_DPORT, &map.name).into()])
            .rule([Match::new(CtKey::STATE, CtState::NEW).into(), Verdict::Drop.into()]);
    });
    let sockets = [1001, 1002, 1003, 1004].map(|port| udp(&lab.server, (SERVER, port)));
    lab.send_each(&[1001, 1002, 1003, 1004]);
    lab.wait("every", 4);
    assert_eq!(lab.counted("there"), 1);
    received(&sockets[0]);
    received(&sockets[2]);
    assert_eq!([&sockets[1], &sockets[3]].map(waiting), [0, 0]);

    let mut tx = Transaction::new();
    tx.delete(Elements::new(&map, [Element::new(Port(1001)), Element::new(Port(1002))]));
    tx.add(Elements::new(&map, [element(1002, Verdict::Accept)]));
    lab.router.run(|| apply(&tx));
    lab.send_each(&[1001, 1002]);
    lab.wait("every", 6);
    received(&sockets[1]);
    assert_eq!(waiting(&sockets[0]), 0);
}

#[test]
fn limits_and_quotas_let_pass_what_they_say() {
    let Some(lab) = Lab::new() else { return };
    lab.load(Family::IP, |r| {
        let (limit, quota) = (r.count("limited"), r.count("metered"));
        let per_hour = Limit { rate: 1, per: TimeUnit::Hour, burst: Some(3), bytes: false, over: true };
        r.filter(Hook::Forward)
            .rule([to_port(1001), limit])
            .rule([to_port(1001), per_hour.into(), Verdict::Drop.into()])
            .rule([to_port(1002), quota])
            // A datagram of one byte has 29 with its headers.
            .rule([to_port(1002), Quota { bytes: 70, used: 0, over: true }.into(), Verdict::Drop.into()]);
    });
    let sockets = [1001, 1002].map(|port| udp(&lab.server, (SERVER, port)));
    for _ in 0..6 {
        lab.send_each(&[1001, 1002]);
    }
    lab.wait("limited", 6);
    lab.wait("metered", 6);
    for (socket, passed) in sockets.iter().zip([3, 2]) {
        for _ in 0..passed {
            received(socket);
        }
        assert_eq!(waiting(socket), 0);
    }
}

#[test]
fn packets_fill_sets_which_forget_them() {
    let Some(lab) = Lab::new() else { return };
    let table = TableId::new(Family::IP, name("t"));
    let dynamic =
        |n: &str| Set::new(table.set(name(n)), DataType::IPV4_ADDR).flags(SetFlags::DYNAMIC).size(99);
    lab.load(Family::IP, |r| {
        r.tx.add(dynamic("seen").timeout(Duration::from_secs(3600)));
        r.tx.add(dynamic("short").timeout(Duration::from_secs(3600)));
        r.tx.add(dynamic("pace"));
        let (known, every) = (r.count("known"), r.count("every"));
        let seen = |n: &str| SetUpdate::update(&name(n), Payload::IP_SADDR);
        let few = Limit { rate: 1, per: TimeUnit::Hour, burst: Some(2), bytes: false, over: true };
        let brief = Some(Duration::from_millis(200));
        r.filter(Hook::Forward)
            .rule([Match::new(Payload::IP_SADDR, Expression::named(&name("seen"))).into(), known])
            .rule([SetUpdate { statements: vec![Counter::default().into()], ..seen("seen") }.into()])
            .rule([SetUpdate { timeout: brief, ..seen("short") }.into()])
            .rule([every])
            .rule([
                SetUpdate { op: SetOp::Add, statements: vec![few.into()], ..seen("pace") }.into(),
                Verdict::Drop.into(),
            ]);
    });
    let server = udp(&lab.server, (SERVER, 1001));
    for from in [CLIENT, CLIENT, OTHER_CLIENT, CLIENT, CLIENT] {
        udp(&lab.client, (from, 0)).send_to(b"?", (SERVER, 1001)).expect("a datagram is sent");
    }
    lab.wait("every", 5);
    assert_eq!(lab.counted("known"), 3);
    let mut from: Vec<_> = (0..3).map(|_| received(&server).ip()).collect();
    from.sort_unstable();
    assert_eq!(from, [CLIENT, CLIENT, OTHER_CLIENT]);
    assert_eq!(waiting(&server), 0, "two an address");
    let elements = |set: &'static str| {
        lab.router.run(|| {
            let mut socket = netlink();
            let listed = read::ruleset(&mut socket, Family::IP).expect("a ruleset").content().remove(0);
            let (_, mut elements) = listed.sets.into_iter().find(|(s, _)| *s.id.name == *set).expect("a set");
            elements.sort_by_key(|element| format!("{element}"));
            elements
        })
    };
    let listed = elements("seen");
    assert_eq!(listed.len(), 2, "{listed:?}");
    // What looks an element up is counted, too.
    assert!(listed[0].to_string().starts_with("10.1.0.2 counter packets 7 bytes 203"), "{}", listed[0]);
    assert!(listed[1].to_string().starts_with("10.1.0.3 counter packets 1 bytes 29"), "{}", listed[1]);
    let until = Instant::now() + LONG;
    while !elements("short").is_empty() && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(elements("short").is_empty(), "they go after 200 ms");
    assert_eq!(elements("seen").len(), 2, "and these stay");
}

/// Every kind of refusal, as the client is told of it.
#[test]
fn a_refusal_is_told_to_the_client_as_its_kind() {
    use nix::errno::Errno::{self, *};
    let Some(lab) = Lab::new() else { return };
    // `icmp_err_convert` of `net/ipv4/icmp.c`, `tab_unreach` of `net/ipv6/icmp.c`.
    let kinds: [(IpAddr, Reject, Errno); 17] = [
        (SERVER.into(), Reject::TcpReset, ECONNREFUSED),
        (SERVER.into(), Reject::Icmp(0), ENETUNREACH),
        (SERVER.into(), Reject::Icmp(1), EHOSTUNREACH),
        (SERVER.into(), Reject::Icmp(2), ENOPROTOOPT),
        (SERVER.into(), Reject::Icmp(3), ECONNREFUSED),
        (SERVER.into(), Reject::Icmp(9), ENETUNREACH),
        (SERVER.into(), Reject::Icmp(10), EHOSTUNREACH),
        (SERVER.into(), Reject::Icmp(13), EHOSTUNREACH),
        (SERVER.into(), Reject::Icmpx(0), ENETUNREACH),
        (SERVER.into(), Reject::Icmpx(2), EHOSTUNREACH),
        (SERVER6.into(), Reject::TcpReset, ECONNREFUSED),
        (SERVER6.into(), Reject::Icmpv6(0), ENETUNREACH),
        (SERVER6.into(), Reject::Icmpv6(1), EACCES),
        (SERVER6.into(), Reject::Icmpv6(3), EHOSTUNREACH),
        (SERVER6.into(), Reject::Icmpv6(4), ECONNREFUSED),
        (SERVER6.into(), Reject::Icmpx(3), EACCES),
        (SERVER6.into(), Reject::Icmpx(1), ECONNREFUSED),
    ];
    let servers = [listener(&lab.server, (SERVER, 2000)), listener(&lab.server, (SERVER6, 2000))];
    lab.load(Family::INET, |r| {
        r.filter(Hook::Forward);
        for (port, (_, kind, _)) in (1000..).zip(kinds) {
            r.rule([to_tcp_port(port), kind.into()]);
        }
        r.rule([to_port(1000), Reject::Default.into()]);
    });
    for (port, (to, kind, errno)) in (1000..).zip(kinds) {
        let error = lab.connect((to, port)).expect_err("it is refused");
        assert_eq!(error.raw_os_error(), Some(errno as i32), "{to} {kind:?}: {error}");
    }
    for server in [IpAddr::from(SERVER), SERVER6.into()] {
        lab.connect((server, 2000)).expect("the others are not");
        // ICMP of the packet's family.
        let socket = udp(&lab.client, (to_unspecified(&(server, 0)), 0));
        socket.connect((server, 1000)).expect("a datagram's address");
        socket.send(b"?").expect("a datagram is sent");
        let error = socket.recv(&mut [0]).expect_err("it is refused");
        assert_eq!(error.raw_os_error(), Some(ECONNREFUSED as i32), "{error}");
    }
    drop(servers);
}

#[test]
fn a_source_that_is_not_routed_back_there_is_found_by_fib() {
    let Some(lab) = Lab::new() else { return };
    shell(&lab.client, "ip addr add 172.16.0.1/32 dev c0");
    lab.load(Family::IP, |r| {
        let spoofed = r.count("spoofed");
        let back = Fib { flags: FibFlags::SADDR | FibFlags::IIF, result: FibResult::OIF, check: true };
        let (routed, unrouted) = (r.count("routed"), r.count("unrouted"));
        let sets = [(0_u32, unrouted), (1, routed)].map(|(exists, counted)| {
            let found = Expression::set([Expression::concat([exists.into(), Protocol::UDP.into()])]);
            let of = Expression::concat([Expression::Fib(back), MetaKey::L4PROTO.into()]);
            [Match::new(of, found).into(), counted]
        });
        let [unrouted, routed] = sets;
        let first = r.base(ChainType::Filter, Hook::Prerouting, -200);
        first.rule(unrouted).rule(routed);
        r.filter(Hook::Prerouting).rule([
            Match::new(Expression::Fib(back), 0_u32).into(),
            spoofed,
            Verdict::Drop.into(),
        ]);
    });
    let server = udp(&lab.server, (SERVER, 1001));
    for from in [ip(172, 16, 0, 1), CLIENT] {
        udp(&lab.client, (from, 0)).send_to(b"?", (SERVER, 1001)).expect("a datagram is sent");
    }
    lab.wait("spoofed", 1);
    assert_eq!((lab.counted("routed"), lab.counted("unrouted")), (1, 1));
    assert_eq!(received(&server).ip(), CLIENT);
    assert_eq!(waiting(&server), 0);
}

/// What the router writes into packets, the server's own rules see.
#[test]
fn fields_are_changed_and_the_checksums_with_them() {
    let Some(lab) = Lab::new() else { return };
    lab.load(Family::IP, |r| {
        r.base(ChainType::Filter, Hook::Forward, -150)
            .rule([to_port(1001), Mangle::new(Payload::IP_DSCP, 0x2e_u32).into()])
            .rule([to_port(1001), Mangle::new(Payload::IP_TTL, 5_u32).into()])
            .rule([to_port(1002), Mangle::new(Payload::UDP_DPORT, Port(1003)).into()])
            .rule([to_port(1004), Mangle::new(Payload::IP_SADDR, ip(10, 1, 0, 77)).into()])
            .rule([Mangle::new(MetaKey::MARK, 7_u32).into()]);
        let marked = r.count("marked");
        r.filter(Hook::Postrouting).rule([Match::new(MetaKey::MARK, 7_u32).into(), marked]);
    });
    load(&lab.server, Family::IP, |r| {
        let seen = r.count("seen");
        r.filter(Hook::Input).rule([
            Match::new(Payload::IP_DSCP, 0x2e_u32).into(),
            Match::new(Payload::IP_TTL, 5_u32).into(),
            seen,
        ]);
    });
    let sockets = [1001, 1003, 1004].map(|port| udp(&lab.server, (SERVER, port)));
    lab.send_each(&[1001, 1002, 1004]);
    assert_eq!(sockets.each_ref().map(|s| received(s).ip()), [CLIENT, CLIENT, ip(10, 1, 0, 77)]);
    assert_eq!(lab.server.run(|| counted("seen")), 1);
    assert_eq!(lab.counted("marked"), 3);
}
