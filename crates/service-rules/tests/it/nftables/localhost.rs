//! Node ports on loopback addresses, with packets: what the rules of KEP-6032 reject and count, and what passes
//! to programs that listen there.

use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::time::Instant;

use rustix::net::{AddressFamily, SendFlags, SocketType, ipproto, sendto, socket};
use sluicegate_netlink::{NetlinkFamily, Options, Socket};
use sluicegate_service_rules::nftables::{Applier, Layout, OnLocalhost, Settings, rejected_on_localhost};
use sluicegate_services::{Family, Protocol};

use crate::nftables::world::{World, cluster, run_nft_text, settings};

/// The node port of a service without endpoints.
const EMPTY: u16 = 30080;
/// The node port of a service with an endpoint.
const FULL: u16 = 30081;
/// A port of no service.
const FREE: u16 = 30082;

fn manifests() -> String {
    let mut text = String::new();
    for (family, cluster_ip, endpoint) in
        [("IPv4", "172.30.0", "10.244.0.9"), ("IPv6", "fd00:172:30:", "fd00:10:244::9")]
    {
        let dot = if family == "IPv4" { "." } else { ":" };
        for (number, node_port) in [(1, EMPTY), (2, FULL)] {
            let name = format!("s{number}-{}", family.to_lowercase());
            let ports: Vec<_> = ["TCP", "UDP", "SCTP"]
                .map(|protocol| {
                    let name = protocol.to_lowercase();
                    format!("{{name: {name}, port: 80, protocol: {protocol}, nodePort: {node_port}}}")
                })
                .into();
            text += &format!(
                "apiVersion: v1\nkind: Service\nmetadata: {{namespace: demo, name: {name}}}\nspec: {{type: NodePort, \
                 clusterIP: '{cluster_ip}{dot}{number}', ports: [{}]}}\n---\n",
                ports.join(", ")
            );
        }
        text += &format!(
            "apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {{namespace: demo, name: s2-{family}, \
             labels: {{kubernetes.io/service-name: s2-{}}}}}\naddressType: {family}\nports: [{{name: tcp, port: 8080}}, \
             {{name: udp, port: 8080, protocol: UDP}}, {{name: sctp, port: 8080, protocol: SCTP}}]\nendpoints: \
             [{{addresses: ['{endpoint}']}}]\n---\n",
            family.to_lowercase()
        );
    }
    text
}

fn localhost(family: Family) -> IpAddr {
    match family {
        Family::Ipv4 => Ipv4Addr::LOCALHOST.into(),
        Family::Ipv6 => Ipv6Addr::LOCALHOST.into(),
    }
}

/// Whether a program that listens on the loopback address gets what is sent to it.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    Arrives,
    Refused,
}
use Outcome::{Arrives, Refused};

fn tcp(address: SocketAddr) -> Outcome {
    let _listener = TcpListener::bind(address).expect("the port is free");
    match TcpStream::connect(address) {
        Ok(_) => Arrives,
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => Refused,
        Err(error) => panic!("{address}: {error}"),
    }
}

/// Packets of the loopback interface have arrived when they are sent.
fn udp(address: SocketAddr) -> Outcome {
    let listener = UdpSocket::bind(address).expect("the port is free");
    listener.set_nonblocking(true).expect("it does not wait");
    let client = UdpSocket::bind((address.ip(), 0)).expect("a port");
    client.connect(address).expect("there is a route");
    // The kernel reports what the output chain did with the packet (EPERM), and then the ICMP error.
    let sent = client.send(b"?").map_err(|error| error.kind());
    let after = client.take_error().expect("it is asked").map(|error| error.kind());
    match (listener.recv(&mut [0]).is_ok(), sent, after) {
        (true, Ok(1), None) => Arrives,
        (false, Err(ErrorKind::PermissionDenied), Some(ErrorKind::ConnectionRefused)) => Refused,
        other => panic!("{address}: {other:?}"),
    }
}

/// Sends the first packet of an association, by hand, as not every kernel has SCTP.
fn sctp(address: SocketAddr) {
    let domain = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let raw = socket(domain, SocketType::RAW, Some(ipproto::SCTP)).expect("a raw socket");
    let [high, low] = address.port().to_be_bytes();
    // The header with tag and checksum 0, and a chunk INIT of 20 bytes (RFC 9260, 3.1 and 3.3.2).
    let packet = [
        0x80, 0, high, low, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 20, 0, 0, 0, 1, 0, 0, 0x20, 0, 0, 1, 0, 1, 0, 0,
        0, 1,
    ];
    // A raw socket of IPv6 takes no port.
    let to = SocketAddr::new(address.ip(), 0);
    let _ = sendto(&raw, &packet, SendFlags::empty(), &to);
}

fn counted(family: Family) -> Vec<(Protocol, u64)> {
    let mut kernel = Socket::open(NetlinkFamily::NETFILTER, &Options::default()).expect("a socket");
    let all = rejected_on_localhost(&mut kernel).expect("the counters are read");
    all.into_iter()
        .filter(|(of, ..)| *of == family)
        .map(|(_, protocol, packets)| (protocol, packets))
        .collect()
}

#[test]
fn without_them_the_plan_is_as_before() {
    for layout in [Layout::Maps, Layout::Chains] {
        let script = World::new(&settings(layout), &manifests()).planner.script().to_string();
        assert!(!script.contains("localhost"), "{script}");
    }
}

#[test]
fn node_ports_on_loopback_are_rejected_and_counted_unless_somebody_forwards_them() {
    for layout in [Layout::Maps, Layout::Chains] {
        for forwarded in [vec![], vec![Family::Ipv4], Family::BOTH.to_vec()] {
            let on_localhost = OnLocalhost::Rejected { forwarded: forwarded.clone() };
            let settings = Settings { on_localhost, ..settings(layout) };
            testns::netns(|| rejects(&settings, &forwarded));
        }
    }
}

fn rejects(settings: &Settings, forwarded: &[Family]) {
    let _ = testns::sh("ip link set lo up");
    let mut services = cluster(&manifests());
    let sync = |services: &mut _| {
        let mut applier = Applier::open(settings.clone()).expect("nf_tables");
        applier.sync(services, Instant::now()).expect("it is programmed");
        assert!(applier.difference(services).expect("it is compared").is_empty());
    };
    sync(&mut services);
    for family in Family::BOTH {
        let (ip, passes) = (localhost(family), forwarded.contains(&family));
        let mut expected = vec![(Protocol::Udp, 2), (Protocol::Sctp, 2)];
        if !passes {
            expected.insert(0, (Protocol::Tcp, 2));
        }
        for port in [EMPTY, FULL] {
            let to = SocketAddr::new(ip, port);
            assert_eq!(
                (tcp(to), udp(to)),
                (if passes { Arrives } else { Refused }, Refused),
                "{to} {settings:?}"
            );
            sctp(to);
        }
        let free = SocketAddr::new(ip, FREE);
        assert_eq!((tcp(free), udp(free)), (Arrives, Arrives), "{free}");
        sctp(free);
        assert_eq!(counted(family), expected, "{family} {settings:?}");
        // A restart keeps what was counted, and nft lists what it can load again.
        sync(&mut services);
        assert_eq!(counted(family), expected, "{family} {settings:?}");
    }
    let listed = testns::sh("nft list ruleset");
    run_nft_text(&format!("flush ruleset\n{listed}"));
    assert_eq!(testns::sh("nft list ruleset"), listed);
    // Without the service its port is anybody's.
    let gone: Vec<_> = services.service_names().cloned().collect();
    let mut applier = Applier::open(settings.clone()).expect("nf_tables");
    applier.sync(&mut services, Instant::now()).expect("it is programmed");
    gone.iter().for_each(|name| services.set_service(name, None));
    applier.sync(&mut services, Instant::now()).expect("it is programmed");
    for family in Family::BOTH {
        let to = SocketAddr::new(localhost(family), FULL);
        assert_eq!((tcp(to), udp(to)), (Arrives, Arrives), "{to}");
    }
}
