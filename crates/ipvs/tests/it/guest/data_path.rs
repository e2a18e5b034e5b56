//! Real TCP and UDP traffic through a virtual service, for every forwarding method.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use sluicegate_ipvs::*;

use crate::guest::in_guest;
use crate::guest::lab::{DIRECT, DIRECT6, Lab, MASQUERADE, MASQUERADE6, PORT, ask, ip, sysctl, wait_for};

/// Adds TCP and UDP services that balance over all servers of the lab by round robin.
fn balance(lab: &Lab, virtual_address: IpAddr, port: u16, forward: Forward, config: ServiceConfig) -> Client {
    let mut client = lab.ipvs();
    for id in [
        ServiceId::tcp(Endpoint::new(virtual_address, port)),
        ServiceId::udp(Endpoint::new(virtual_address, port)),
    ] {
        client.run(&Command::AddService { id, config }).unwrap();
        for number in 1..=u8::try_from(lab.servers.len()).unwrap() {
            let destination = Endpoint::new(lab.server(number, virtual_address), PORT);
            let config = DestinationConfig::new(forward);
            client.run(&Command::AddDestination { service: id, id: destination, config }).unwrap();
        }
    }
    client
}

fn each(count: usize) -> BTreeMap<String, usize> {
    BTreeMap::from([("s1".to_owned(), count), ("s2".to_owned(), count)])
}

fn round_robin() -> ServiceConfig {
    ServiceConfig::new(Scheduler::RR)
}

fn masquerade(virtual_address: IpAddr) {
    in_guest(|| {
        let lab = Lab::new(2);
        balance(&lab, virtual_address, 80, Forward::Masquerade, round_robin());
        assert_eq!(lab.tcp(virtual_address, 80, 10), each(5));
        assert_eq!(lab.udp(virtual_address, 80, 10), each(5));
    });
}

#[test]
#[ignore = "needs a kernel of its own: cargo xtask test guest"]
fn masquerading_balances_ipv4() {
    masquerade(MASQUERADE);
}

#[test]
#[ignore = "needs a kernel of its own: cargo xtask test guest"]
fn masquerading_balances_ipv6() {
    masquerade(MASQUERADE6);
}

fn direct(virtual_address: IpAddr, forward: Forward, prepare: impl FnOnce(&Lab) + Send) {
    in_guest(|| {
        let lab = Lab::new(2);
        prepare(&lab);
        balance(&lab, virtual_address, PORT, forward, round_robin());
        assert_eq!(lab.tcp(virtual_address, PORT, 10), each(5));
        assert_eq!(lab.udp(virtual_address, PORT, 10), each(5));
    });
}

#[test]
#[ignore = "needs a kernel of its own: cargo xtask test guest"]
fn direct_routing_balances_ipv4() {
    direct(DIRECT, Forward::DirectRoute, |_| {});
}

#[test]
#[ignore = "needs a kernel of its own: cargo xtask test guest"]
fn direct_routing_balances_ipv6() {
    direct(DIRECT6, Forward::DirectRoute, |_| {});
}

/// Makes every server decapsulate packets. `batch` returns the commands for a server with this address.
fn unwrap_on_servers(lab: &Lab, module: &str, device: &str, batch: impl Fn(IpAddr) -> String) {
    let _ = testns::sh(&format!("modprobe {module}"));
    for (number, server) in (1..).zip(&lab.servers) {
        let batch = batch(lab.server(number, DIRECT));
        server.run(|| {
            ip(&batch);
            sysctl(&format!("ipv4/conf/{device}/rp_filter"), "0");
            sysctl("ipv4/conf/all/rp_filter", "0");
        });
    }
}

#[test]
#[ignore = "needs a kernel of its own: cargo xtask test guest"]
fn ip_in_ip_tunnels_balance() {
    direct(DIRECT, Forward::Tunnel(Tunnel::Ipip), |lab| {
        unwrap_on_servers(lab, "ipip", "tunl0", |_| "link set tunl0 up\n".to_owned());
    });
}

fn gre(flags: TunnelFlags, option: &str) {
    direct(DIRECT, Forward::Tunnel(Tunnel::Gre { flags }), |lab| {
        unwrap_on_servers(lab, "ip_gre", "gre1", |own| {
            format!("link add gre1 type gre local {own} remote 10.0.0.1 {option}\nlink set gre1 up\n")
        });
    });
}

#[test]
#[ignore = "needs a kernel of its own: cargo xtask test guest"]
fn gre_tunnels_balance_without_checksums() {
    gre(TunnelFlags::empty(), "");
}

#[test]
#[ignore = "needs a kernel of its own: cargo xtask test guest"]
fn gre_tunnels_balance_with_checksums() {
    gre(TunnelFlags::CHECKSUM, "icsum");
}

fn gue(flags: TunnelFlags) {
    direct(DIRECT, Forward::Tunnel(Tunnel::Gue { port: 6080, flags }), |lab| {
        let _ = testns::sh("modprobe ipip");
        unwrap_on_servers(lab, "fou", "tunl0", |_| "fou add port 6080 gue\nlink set tunl0 up\n".to_owned());
    });
}

#[test]
#[ignore = "needs a kernel of its own: cargo xtask test guest"]
fn gue_tunnels_balance_without_checksums() {
    gue(TunnelFlags::empty());
}

#[test]
#[ignore = "needs a kernel of its own: cargo xtask test guest"]
fn gue_tunnels_balance_with_checksums() {
    gue(TunnelFlags::CHECKSUM);
}

#[test]
#[ignore = "needs a kernel of its own: cargo xtask test guest"]
fn gue_tunnels_balance_with_remote_checksums() {
    gue(TunnelFlags::REMOTE_CHECKSUM);
}

#[test]
#[ignore = "needs a kernel of its own: cargo xtask test guest"]
fn persistence_keeps_a_client_with_its_server() {
    in_guest(|| {
        let lab = Lab::new(2);
        let mut client = balance(&lab, MASQUERADE, 80, Forward::Masquerade, round_robin().persistent(100));
        let answers = lab.tcp(MASQUERADE, 80, 6);
        assert_eq!(answers.len(), 1, "{answers:?}");
        assert_eq!(answers.values().sum::<usize>(), 6);
        let service = ServiceId::tcp(Endpoint::new(MASQUERADE, 80));
        let bound: u32 =
            client.destinations(&service).unwrap().iter().map(|it| it.connections.persistent).sum();
        assert_eq!(bound, 1);
    });
}

#[test]
#[ignore = "needs a kernel of its own: cargo xtask test guest"]
fn a_service_on_every_port_takes_every_port() {
    in_guest(|| {
        let lab = Lab::new(1);
        let mut client = lab.ipvs();
        let id = ServiceId::tcp(Endpoint::new(DIRECT, 0));
        let destination = Endpoint::new(lab.server(1, DIRECT), 0);
        let config = DestinationConfig::new(Forward::DirectRoute);
        client
            .run_all(&[
                Command::AddService { id, config: round_robin().persistent(100) },
                Command::AddDestination { service: id, id: destination, config },
            ])
            .unwrap();
        assert_eq!(lab.tcp(DIRECT, PORT, 1), BTreeMap::from([("s1".to_owned(), 1)]));
    });
}

#[test]
#[ignore = "needs a kernel of its own: cargo xtask test guest"]
fn one_packet_scheduling_balances_the_datagrams_of_one_socket() {
    in_guest(|| {
        let lab = Lab::new(2);
        let config = round_robin().one_packet();
        let id = ServiceId::udp(Endpoint::new(DIRECT, PORT));
        let mut client = lab.ipvs();
        client.run(&Command::AddService { id, config }).unwrap();
        for number in [1, 2] {
            let destination = Endpoint::new(lab.server(number, DIRECT), PORT);
            let config = DestinationConfig::new(Forward::DirectRoute);
            client.run(&Command::AddDestination { service: id, id: destination, config }).unwrap();
        }
        let socket = lab.udp_socket(DIRECT, PORT);
        let mut answers = BTreeMap::new();
        for _ in 0..10 {
            *answers.entry(ask(&socket)).or_default() += 1;
        }
        assert_eq!(answers, each(5));
    });
}

#[test]
#[ignore = "needs a kernel of its own: cargo xtask test guest"]
fn weights_are_shares() {
    in_guest(|| {
        let lab = Lab::new(2);
        let mut client =
            balance(&lab, MASQUERADE, 80, Forward::Masquerade, ServiceConfig::new(Scheduler::WRR));
        let service = ServiceId::tcp(Endpoint::new(MASQUERADE, 80));
        let id = Endpoint::new(lab.server(2, MASQUERADE), PORT);
        let config = DestinationConfig::new(Forward::Masquerade).weight(3);
        client.run(&Command::EditDestination { service, id, config }).unwrap();
        let answers = lab.tcp(MASQUERADE, 80, 12);
        assert_eq!(answers, BTreeMap::from([("s1".to_owned(), 3), ("s2".to_owned(), 9)]));
    });
}

#[test]
#[ignore = "needs a kernel of its own: cargo xtask test guest"]
fn a_firewall_mark_is_a_service() {
    in_guest(|| {
        if !testns::have(&["iptables-legacy"]) {
            return;
        }
        let lab = Lab::new(2);
        lab.director.run(|| {
            let _ =
                testns::sh("iptables-legacy -w -t mangle -A PREROUTING -d 10.1.0.10 -j MARK --set-mark 7");
        });
        let mut client = lab.ipvs();
        let id = ServiceId::mark(7, Family::Ipv4).unwrap();
        client.run(&Command::AddService { id, config: round_robin() }).unwrap();
        for number in [1, 2] {
            let destination = Endpoint::new(lab.server(number, MASQUERADE), PORT);
            let config = DestinationConfig::new(Forward::Masquerade);
            client.run(&Command::AddDestination { service: id, id: destination, config }).unwrap();
        }
        assert_eq!(lab.tcp(MASQUERADE, 80, 4), each(2));
        assert_eq!(lab.udp(MASQUERADE, 53, 4), each(2));
    });
}

#[test]
#[ignore = "needs a kernel of its own: cargo xtask test guest"]
fn counters_and_connections_are_those_that_ipvsadm_shows() {
    in_guest(|| {
        if !testns::have(&["ipvsadm"]) {
            return;
        }
        let lab = Lab::new(2);
        let mut client = balance(&lab, MASQUERADE, 80, Forward::Masquerade, round_robin());
        let id = ServiceId::tcp(Endpoint::new(MASQUERADE, 80));
        let kept: Vec<_> = (0..4).map(|_| lab.connect(MASQUERADE, 80)).collect();
        let active: Vec<_> =
            client.destinations(&id).unwrap().iter().map(|it| it.connections.active).collect();
        assert_eq!(active, [2, 2]);

        // The estimator updates the counters every two seconds, perhaps while these packets are sent.
        wait_for("the counters", || {
            let stats = client.service(&id).unwrap().stats;
            stats.connections == 4 && stats.packets_in >= 12 && stats.packets_out >= 8
        });
        let stats = client.service(&id).unwrap().stats;
        assert!(stats.connections == 4 && stats.bytes_in > 0 && stats.bytes_out > 0, "{stats:?}");
        let shown = lab.director.run(|| testns::sh("ipvsadm -L -n --exact --stats -t 10.1.0.10:80"));
        let line = shown.lines().find(|line| line.starts_with("TCP")).unwrap();
        let shown: Vec<u64> = line.split_whitespace().skip(2).map(|number| number.parse().unwrap()).collect();
        assert_eq!(
            shown,
            [stats.connections, stats.packets_in, stats.packets_out, stats.bytes_in, stats.bytes_out]
        );
        drop(kept);

        client.run(&Command::ZeroService { id }).unwrap();
        std::thread::sleep(Duration::from_millis(100));
        assert_eq!(client.service(&id).unwrap().stats.connections, 0);
        client.run(&Command::ZeroAll).unwrap();
    });
}
