//! What is known of connections, and what is done to TCP.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use sluicegate_nftables::expr::{CtKey, Direction, ExthdrOp, MetaKey, SocketKey};
use sluicegate_nftables::lang::exthdr::Exthdr;
use sluicegate_nftables::lang::*;
use socket2::SockRef;

use super::*;
use crate::kernel::needs;

/// Accepts a connection, and sends bytes both ways.
fn accepted(listener: &TcpListener, client: &mut TcpStream) -> TcpStream {
    let (mut server, from) = listener.accept().expect("a connection");
    assert_eq!(from, client.local_addr().expect("an address"), "nothing has changed the client's address");
    ping(client, &mut server);
    server
}

fn ping(client: &mut TcpStream, server: &mut TcpStream) {
    let mut byte = [0];
    client.set_read_timeout(Some(LONG)).expect("a time");
    server.set_read_timeout(Some(LONG)).expect("a time");
    client.write_all(b"?").expect("it is connected");
    server.read_exact(&mut byte).expect("it comes");
    server.write_all(b"!").expect("it is connected");
    client.read_exact(&mut byte).expect("it comes");
}

#[test]
fn states_marks_and_zones_of_connections_are_kept() {
    let Some(lab) = Lab::new() else { return };
    let is = |key: CtKey, value: Expression| Statement::from(Match::new(key, value));
    let to_server = || Statement::from(Match::new(Payload::IP_DADDR, SERVER));
    lab.load(Family::IP, |r| {
        r.base(ChainType::Filter, Hook::Prerouting, -300)
            .rule([to_port(1002), Statement::Notrack])
            .rule([to_port(1003), Mangle::new(CtKey::ZONE, 7_u32).into()]);
        let counts = ["new", "untracked", "zone", "answer", "marked", "reply"].map(|n| r.count(n));
        let [new, untracked, zone, answer, marked, reply] = counts;
        let sport = Match::new(Payload::UDP_SPORT, Port(1001));
        r.filter(Hook::Forward)
            .rule([to_server(), is(CtKey::STATE, CtState::NEW.into()), new])
            .rule([to_server(), is(CtKey::STATE, CtState::UNTRACKED.into()), untracked])
            .rule([is(CtKey::ZONE, 7_u32.into()), zone])
            .rule([to_port(1001), Mangle::new(CtKey::MARK, 0x77_u32).into()])
            .rule([sport.into(), is(CtKey::STATE, CtState::ESTABLISHED.into()), answer])
            .rule([Mangle::new(MetaKey::MARK, Expression::from(CtKey::MARK)).into()])
            .rule([is(CtKey::DIRECTION, u32::from(Direction::REPLY.0).into()), reply]);
        r.filter(Hook::Postrouting).rule([Match::new(MetaKey::MARK, 0x77_u32).into(), marked]);
    });
    let servers = [1001, 1002, 1003].map(|port| udp(&lab.server, (SERVER, port)));
    let clients = [1001, 1002, 1003].map(|port| lab.send((SERVER, port)));
    for (server, client) in servers.iter().zip(&clients) {
        server.send_to(b"!", received(server)).expect("an answer is sent");
        received(client);
    }
    let counted = ["new", "untracked", "zone", "answer", "marked"].map(|counter| lab.counted(counter));
    // The answer of the third is tracked outside of the zone, as a connection of its own.
    assert_eq!(counted, [2, 1, 1, 1, 2]);
    assert_eq!(lab.counted("reply"), 1);
}

#[test]
fn helpers_timeouts_and_expectations_are_assigned() {
    let Some(lab) = Lab::new() else { return };
    lab.load(Family::IP, |r| {
        let object = |r: &Rules, n: &str, config: ObjectConfig| {
            let id = r.table.object(config.kind(), name(n));
            let statement = Statement::from(ObjectReference {
                kind: id.kind,
                object: ObjectName::Named(id.name.clone()),
            });
            (StatefulObject::new(id, config), statement)
        };
        let (family, protocol) = (Some(Family::IP), Protocol::UDP);
        let helper = ObjectConfig::CtHelper { helper: name("tftp"), protocol, family };
        let policy = vec![("unreplied", Duration::from_secs(7777))];
        let timeout = ObjectConfig::CtTimeout { protocol, family, policy };
        let (port, size) = (9876, 12);
        let expectation =
            ObjectConfig::CtExpectation { protocol, port, timeout: Duration::from_secs(60), size, family };
        let (helper, use_helper) = object(r, "h", helper);
        let (timeout, use_timeout) = object(r, "o", timeout);
        let (expectation, use_expectation) = object(r, "e", expectation);
        let [helped, long, expected] = ["helped", "long", "expected"].map(|counter| r.count(counter));
        r.tx.add(helper).add(timeout).add(expectation);
        r.base(ChainType::Filter, Hook::Prerouting, -150)
            .rule([to_port(1001), use_helper])
            .rule([to_port(1002), use_timeout])
            .rule([to_port(1003), use_expectation]);
        let tftp = Expression::Value(Value::Text(InterfaceName::new("tftp").expect("a name")));
        let over_an_hour = Match::with(CtKey::EXPIRATION, MatchOp::Gt, 3_600_000_u32);
        let related = || Statement::from(Match::new(CtKey::STATE, CtState::RELATED));
        r.filter(Hook::Postrouting)
            .rule([related(), Match::new(CtKey::HELPER, tftp).into(), helped])
            .rule([to_port(1002), over_an_hour.into(), long])
            .rule([related(), to_port(9876), expected]);
    });
    let sockets = [1001, 1002, 1003].map(|port| udp(&lab.server, (SERVER, port)));
    // A file is asked for by TFTP, and comes from another port.
    let client = udp(&lab.client, (CLIENT, 0));
    client.send_to(b"\0\x01file\0octet\0", (SERVER, 1001)).expect("a datagram is sent");
    udp(&lab.server, (SERVER, 0)).send_to(b"?", received(&sockets[0])).expect("a datagram is sent");
    received(&client);
    assert_eq!(lab.counted("helped"), 1);
    // Twice, as what is left is left after the packet before.
    let client = lab.send((SERVER, 1002));
    client.send_to(b"?", (SERVER, 1002)).expect("a datagram is sent");
    (0..2).for_each(|_| assert_eq!(received(&sockets[1]).ip(), CLIENT));
    assert!(lab.counted("long") > 0);
    // After a connection there, the server is expected to make one back.
    let client = udp(&lab.client, (CLIENT, 9876));
    lab.send((SERVER, 1003));
    received(&sockets[2]);
    udp(&lab.server, (SERVER, 0)).send_to(b"?", (CLIENT, 9876)).expect("a datagram is sent");
    received(&client);
    assert_eq!(lab.counted("expected"), 1);
}

#[test]
fn connections_over_a_limit_are_refused() {
    let Some(lab) = Lab::new() else { return };
    lab.load(Family::IP, |r| {
        let conns =
            Set::new(r.table.set(name("conns")), DataType::IPV4_ADDR).flags(SetFlags::DYNAMIC).size(99);
        r.tx.add(conns);
        let over = Connlimit { count: 2, over: true };
        let by_source = SetUpdate::update(&name("conns"), Payload::IP_SADDR);
        let new = || Statement::from(Match::new(CtKey::STATE, CtState::NEW));
        r.filter(Hook::Forward).rule([to_tcp_port(1001), new(), over.into(), Reject::TcpReset.into()]).rule(
            [
                to_tcp_port(1002),
                new(),
                SetUpdate { op: SetOp::Add, statements: vec![over.into()], ..by_source }.into(),
                Reject::TcpReset.into(),
            ],
        );
    });
    let servers = [1001, 1002].map(|port| listener(&lab.server, (SERVER, port)));
    let listed: Vec<_> =
        [1001, 1001, 1002, 1002].map(|port| lab.connect((SERVER, port)).expect("two of each")).into();
    for port in [1001, 1002] {
        let error = lab.connect((SERVER, port)).expect_err("the third");
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused, "{port}");
    }
    drop((listed, servers));
}

#[test]
fn the_segment_size_is_clamped_for_both_ends() {
    let Some(lab) = Lab::new() else { return };
    let server = listener(&lab.server, (SERVER, 1001));
    let sizes = |lab: &Lab| {
        let mut client = lab.connect((SERVER, 1001)).expect("a server");
        let server = accepted(&server, &mut client);
        [&client, &server].map(|stream| SockRef::from(stream).tcp_mss().expect("a size"))
    };
    assert!(sizes(&lab).iter().all(|size| *size > 1000));
    lab.load(Family::IP, |r| {
        let size = Exthdr::find(ExthdrOp::TCPOPT, "maxseg", "size").expect("a field");
        let syn = Match::new(Payload::TCP_FLAGS, TcpFlags::SYN);
        r.filter(Hook::Forward).rule([syn.into(), Mangle::new(size, 600_u32).into()]);
    });
    let sizes = sizes(&lab);
    // Less what other options take.
    assert!(sizes.iter().all(|size| (500..=600).contains(size)), "{sizes:?}");
}

/// A socket of the router's gets what was meant for the server, under the server's address.
#[test]
fn a_transparent_proxy_gets_the_connections_of_others() {
    let Some(lab) = Lab::new() else { return };
    shell(&lab.router, "ip rule add fwmark 1 lookup 100; ip route add local default dev lo table 100");
    let proxy = listener(&lab.router, ("0.0.0.0", 3128));
    SockRef::from(&proxy).set_ip_transparent_v4(true).expect("a transparent socket");
    lab.load(Family::IP, |r| {
        let [found, input] = ["found", "input"].map(|counter| r.count(counter));
        let transparent = Expression::Socket(Socket { key: SocketKey::TRANSPARENT, level: None });
        let mark = || Statement::from(Mangle::new(MetaKey::MARK, 1_u32));
        r.base(ChainType::Filter, Hook::Prerouting, -150)
            .rule([Match::new(transparent, 1_u32).into(), mark(), found, Verdict::Accept.into()])
            .rule([
                to_tcp_port(80),
                Tproxy { family: None, address: None, port: Some(Port(3128).into()) }.into(),
                mark(),
            ]);
        r.filter(Hook::Input).rule([to_tcp_port(80), input]);
    });
    let mut client = lab.connect((SERVER, 80)).expect("the proxy");
    let met = accepted(&proxy, &mut client);
    assert_eq!(met.local_addr().expect("an address"), (SERVER, 80).into());
    assert!(lab.counted("found") > 0, "packets of the connection find its socket");
    assert!(lab.counted("input") > lab.counted("found"), "the first one does not");
}

/// The router shakes hands first: a client is connected before the server has refused it.
#[test]
fn a_synproxy_shakes_hands_for_the_server() {
    let Some(lab) = Lab::new() else { return };
    shell(
        &lab.router,
        "cd /proc/sys/net; echo 0 >netfilter/nf_conntrack_tcp_loose; echo 2 >ipv4/tcp_syncookies; echo 1 \
         >ipv4/tcp_timestamps",
    );
    let server = listener(&lab.server, (SERVER, 1001));
    let refused = lab.connect((SERVER, 1002)).expect_err("nobody listens");
    assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
    lab.load(Family::IP, |r| {
        let syn = Match::new(Payload::TCP_FLAGS, TcpFlags::SYN);
        let invalid = || Expression::from(CtState::INVALID);
        let proxied = r.count("proxied");
        r.base(ChainType::Filter, Hook::Prerouting, -300).rule([
            Match::new(MetaKey::IIFNAME, InterfaceName::new("r0").expect("a name")).into(),
            syn.into(),
            Statement::Notrack,
        ]);
        r.filter(Hook::Forward)
            .rule([
                Match::new(CtKey::STATE, CtState::INVALID | CtState::UNTRACKED).into(),
                proxied,
                Synproxy { mss: Some(1400), wscale: Some(7), timestamp: true, sack_perm: true }.into(),
            ])
            .rule([Match::new(CtKey::STATE, invalid()).into(), Verdict::Drop.into()]);
    });
    let mut client = lab.connect((SERVER, 1001)).expect("the server");
    drop(accepted(&server, &mut client));
    match lab.connect((SERVER, 1002)) {
        // With the router, for nobody: the server's refusal comes afterwards.
        Ok(_) => {}
        Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset),
    }
    assert!(lab.counted("proxied") >= 4, "a SYN and an ACK each");
}

/// What is offloaded passes the rules by.
#[test]
fn a_flow_that_is_offloaded_is_seen_by_no_rule() {
    if !needs::met("flowtable") {
        return;
    }
    let Some(lab) = Lab::new() else { return };
    lab.load(Family::IP, |r| {
        let devices = ["r0", "r1"].map(|device| InterfaceName::new(device).expect("a name"));
        r.tx.add(Flowtable::new(r.table.flowtable(name("f")), Priority(0)).devices(devices));
        let seen = r.count("seen");
        r.filter(Hook::Forward).rule([seen]).rule([to_tcp_port(1001), Statement::FlowAdd(name("f"))]);
    });
    let servers = [1001, 1002].map(|port| listener(&lab.server, (SERVER, port)));
    for (port, listener, offloaded) in [(1001, &servers[0], true), (1002, &servers[1], false)] {
        let mut client = lab.connect((SERVER, port)).expect("a server");
        let mut server = accepted(listener, &mut client);
        (0..5).for_each(|_| ping(&mut client, &mut server));
        let before = lab.counted("seen");
        (0..50).for_each(|_| ping(&mut client, &mut server));
        let seen = lab.counted("seen") - before;
        assert!(if offloaded { seen == 0 } else { seen >= 100 }, "{port}: {seen}");
    }
}
