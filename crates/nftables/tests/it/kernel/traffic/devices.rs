//! Hooks of devices and of the stack, copies and short cuts to another device, and packets for programs.

use sluicegate_nftables::expr::MetaKey;
use sluicegate_nftables::lang::*;
use sluicegate_nftables::probe::{Feature, supports};

use super::*;
use crate::kernel::needs;

fn device(name: &str) -> InterfaceName {
    InterfaceName::new(name).expect("a name")
}

#[test]
fn a_packet_is_dropped_at_every_hook_it_passes() {
    let Some(lab) = Lab::new() else { return };
    let egress = lab.router.run(|| {
        let mut socket = netlink();
        supports(&mut socket, Feature::Egress).expect("it answers")
    });
    let mut hooks = vec![
        (Family::NETDEV, Hook::Ingress, Some("r0")),
        (Family::INET, Hook::Ingress, Some("r0")),
        (Family::IP, Hook::Prerouting, None),
        (Family::INET, Hook::Forward, None),
        (Family::IP, Hook::Postrouting, None),
    ];
    if egress {
        hooks.push((Family::NETDEV, Hook::Egress, Some("r1")));
    } else {
        testns::lacks("egress");
    }
    let (server, other) = (udp(&lab.server, (SERVER, 1001)), udp(&lab.server, (SERVER, 1002)));
    for (family, hook, on) in hooks {
        lab.load(family, |r| {
            let dropped = r.count("dropped");
            let id = r.table.chain(name("c"));
            let chain = Chain::base(id, ChainType::Filter, hook, Priority(0));
            r.begin(chain.devices(on.map(device))).rule([to_port(1002), dropped, Verdict::Drop.into()]);
        });
        lab.send_each(&[1002, 1001]);
        received(&server);
        lab.wait("dropped", 1);
        assert_eq!(waiting(&other), 0, "{family} {hook}");
        lab.clear();
        lab.send((SERVER, 1002));
        received(&other);
    }
    // Where they start and where they end.
    load(&lab.server, Family::IP, |r| {
        let dropped = r.count("dropped");
        r.filter(Hook::Input).rule([to_port(1002), dropped, Verdict::Drop.into()]);
    });
    load(&lab.client, Family::IP, |r| {
        r.filter(Hook::Output).rule([to_port(1003), Verdict::Drop.into()]);
    });
    lab.send_each(&[1002, 1001]);
    received(&server);
    wait(&lab.server, "dropped", 1);
    assert_eq!(waiting(&other), 0);
    let error = udp(&lab.client, (CLIENT, 0)).send_to(b"?", (SERVER, 1003)).expect_err("it is not let out");
    assert_eq!(error.kind(), ErrorKind::PermissionDenied);
}

/// A third network behind the router, `r2`, where somebody has the server's address and the router's hardware
/// address.
fn watcher(lab: &Lab) -> Option<(Netns, u32)> {
    let watcher = Netns::new()?;
    shell(
        &lab.router,
        &format!(
            "ip link add r2 type veth peer name w0 address 02:00:00:00:00:01 netns {}
             ip addr add 10.3.0.1/24 dev r2; ip link set r2 up",
            watcher.path()
        ),
    );
    shell(
        &watcher,
        "echo 0 >/proc/sys/net/ipv4/conf/all/rp_filter; echo 0 >/proc/sys/net/ipv4/conf/w0/rp_filter
         ip addr add 10.3.0.2/24 dev w0; ip link set w0 up; ip addr add 10.2.0.2/32 dev lo;
         ip route add default via 10.3.0.1",
    );
    let shown = lab.router.run(|| testns::sh("ip -o link show r2"));
    let index = shown.split(':').next().and_then(|index| index.parse().ok()).expect("an index");
    Some((watcher, index))
}

#[test]
fn packets_are_copied_and_sent_elsewhere() {
    let Some(lab) = Lab::new() else { return };
    let Some((watcher, r2)) = watcher(&lab) else { return };
    lab.load(Family::NETDEV, |r| {
        let chain = Chain::base(r.table.chain(name("c")), ChainType::Filter, Hook::Ingress, Priority(0));
        let to_ip = || Statement::from(Match::new(Payload::IP_DADDR, SERVER));
        r.begin(chain.devices([device("r0")]))
            .rule([to_ip(), to_port(1001), Dup { address: None, device: Some(r2.into()) }.into()])
            .rule([to_ip(), to_port(1002), Fwd { device: r2.into(), address: None }.into()])
            .rule([
                to_ip(),
                to_port(1003),
                Fwd { device: r2.into(), address: Some((Family::IP, ip(10, 3, 0, 2).into())) }.into(),
            ]);
    });
    lab.load(Family::IP, |r| {
        r.filter(Hook::Prerouting).rule([
            to_port(1004),
            Dup { address: Some(ip(10, 3, 0, 2).into()), device: Some(r2.into()) }.into(),
        ]);
    });
    let ports = [1001, 1002, 1003, 1004];
    let at = |namespace: &Netns| ports.map(|port| udp(namespace, (SERVER, port)));
    let (servers, watchers) = (at(&lab.server), at(&watcher));
    lab.send_each(&ports);
    watchers.iter().for_each(|socket| assert_eq!(received(socket).ip(), CLIENT));
    for (socket, copied) in servers.iter().zip([true, false, false, true]) {
        if copied {
            received(socket);
        }
        assert_eq!(waiting(socket), 0);
    }
}

/// Without a program that listens: dropped, or let pass where the rule says so.
#[test]
fn packets_for_a_program_that_is_not_there_are_dropped_or_bypass_it() {
    if !needs::met("queue") {
        return;
    }
    let Some(lab) = Lab::new() else { return };
    lab.load(Family::IP, |r| {
        let queue = |bypass| Queue { to: Expression::range(1_u32, 2_u32), bypass, fanout: false };
        let queued = r.count("queued");
        r.filter(Hook::Forward).rule([to_port(1001), queue(true).into()]).rule([
            to_port(1002),
            queued,
            queue(false).into(),
        ]);
    });
    let (server, other) = (udp(&lab.server, (SERVER, 1001)), udp(&lab.server, (SERVER, 1002)));
    lab.send_each(&[1002, 1001]);
    received(&server);
    lab.wait("queued", 1);
    assert_eq!(waiting(&other), 0);
}

/// A bridge in the router's place: frames between two ports.
#[test]
fn frames_through_a_bridge_are_filtered() {
    let (Some(one), Some(bridge), Some(two)) = (Netns::new(), Netns::new(), Netns::new()) else { return };
    if !testns::have(&["ip"]) {
        return;
    }
    shell(
        &bridge,
        &format!(
            "ip link add br0 type bridge; ip link set br0 up
             ip link add p1 type veth peer name e0 netns {}; ip link add p2 type veth peer name e0 netns {}
             for p in p1 p2; do ip link set $p master br0; ip link set $p up; done",
            one.path(),
            two.path()
        ),
    );
    for (host, n) in [(&one, 2), (&two, 3)] {
        shell(host, &format!("ip addr add 10.1.0.{n}/24 dev e0; ip link set e0 up"));
    }
    load(&bridge, Family::BRIDGE, |r| {
        let [dropped, frames] = ["dropped", "frames"].map(|counter| r.count(counter));
        r.filter(Hook::Forward)
            .rule([
                Match::new(MetaKey::IIFNAME, device("p1")).into(),
                Match::new(MetaKey::PROTOCOL, 0x0800_u32).into(),
                frames,
            ])
            .rule([to_port(1002), dropped, Verdict::Drop.into()]);
    });
    let (server, other) = (udp(&two, (OTHER_CLIENT, 1001)), udp(&two, (OTHER_CLIENT, 1002)));
    for port in [1002, 1001] {
        udp(&one, (CLIENT, 0)).send_to(b"?", (OTHER_CLIENT, port)).expect("a datagram is sent");
    }
    assert_eq!(received(&server).ip(), CLIENT);
    wait(&bridge, "dropped", 1);
    wait(&bridge, "frames", 2);
    assert_eq!(waiting(&other), 0);
}
