//! Connections that a flowtable forwards, in a kernel that has them: what is sped up, and what stays as it
//! is.

use std::io::{Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::num::NonZeroU32;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use sluicegate_conntrack::{Client, Filter, Layer4, Status, Table};
use sluicegate_lab::{Namespace, Network};
use sluicegate_netlink::{NetlinkFamily, Options, Socket};
use sluicegate_nftables::Transaction;
use sluicegate_service_rules::Backend as _;
use sluicegate_service_rules::flows::PreviouslyProgrammed;
use sluicegate_service_rules::nftables::{Applier, Fastpath, Layout, Settings};
use sluicegate_services::{
    Cluster, DetectLocal, Family, Node, NodePortAddresses, Port, Protocol, Service, ServiceName, Slice,
    SliceEndpoint, SliceName, SlicePort,
};

use crate::guest::{NODE, Running, eventually, network, pod_ip, v6};

/// nft 1.0.6 converts the protocol to the byte order of the network for an interval, which Debian's Linux
/// 6.12 refuses.
const BYTEORDER: &str = "table ip t {
    set s {
        type inet_proto . ipv4_addr
        flags interval
    }
    chain c {
        meta l4proto . ip saddr @s drop
    }
}
";
/// The packets that pass the chains first.
const AFTER: u32 = 6;
const NODE_PORT: u16 = 30_080;
const ECHO: u16 = 9_090;
/// For an answer that comes: an emulated processor stands still at times.
const PATIENCE: Duration = Duration::from_secs(30);
/// For one that does not.
const SILENCE: Duration = Duration::from_millis(500);

fn vip(family: Family) -> IpAddr {
    match family {
        Family::Ipv4 => [172, 30, 0, 1].into(),
        Family::Ipv6 => v6(0x172, 1).into(),
    }
}

fn node(family: Family) -> IpAddr {
    match family {
        Family::Ipv4 => NODE.0.into(),
        Family::Ipv6 => NODE.1.into(),
    }
}

/// A node with a client outside and three pods, of which the first asks and the others answer.
struct World {
    network: Network,
    cluster: Cluster,
    applier: Applier,
}

impl World {
    fn new(layout: Layout) -> Self {
        let network = network(&["asking", "one", "two"]);
        for pod in &network.pods[1..] {
            let listener = pod.namespace.run(|| TcpListener::bind((Ipv6Addr::UNSPECIFIED, ECHO)).unwrap());
            std::thread::spawn(move || echo(&listener));
        }
        let mut cluster = Cluster::new(Node::new("node", [NODE.0.into(), NODE.1.into()]));
        let port = |protocol, name| Port::new(protocol, name, 80).unwrap().with_node_port(NODE_PORT).unwrap();
        let ports = [port(Protocol::Tcp, "tcp"), port(Protocol::Udp, "udp")];
        cluster.set_service(&name(), Service::new(Family::BOTH.map(vip), ports).unwrap());
        let settings = Settings {
            layout,
            detect_local: DetectLocal::ClusterCidrs(vec![
                "10.244.0.0/16".parse().unwrap(),
                "fd00:244::/30".parse().unwrap(),
            ]),
            node_port_addresses: NodePortAddresses::every(),
            fastpath: NonZeroU32::new(AFTER).map(|after| Fastpath { after, devices: Vec::new() }),
            ..Settings::default()
        };
        let applier = network.node.namespace.run(|| Applier::open(settings).unwrap());
        let mut world = Self { network, cluster, applier };
        world.endpoints(&[1]);
        world
    }

    fn node(&self) -> &Namespace {
        &self.network.node.namespace
    }

    /// Gives the service these pods as endpoints, programs it, and removes stale flows.
    fn endpoints(&mut self, pods: &[u8]) {
        for family in Family::BOTH {
            let ports = [("tcp", Protocol::Tcp, ECHO), ("udp", Protocol::Udp, 8080)];
            let ports = ports.map(|(name, protocol, port)| SlicePort::new(protocol, name, port).unwrap());
            let endpoints = pods.iter().map(|pod| SliceEndpoint::new(pod_ip(family, *pod)));
            let slice = Slice::new(name(), family, ports, endpoints).unwrap();
            self.cluster.set_slice(&SliceName::new("demo", &format!("web-{family}")), slice);
        }
        let (applier, cluster) = (&mut self.applier, &mut self.cluster);
        self.network.node.namespace.run(|| {
            applier.sync(cluster, Instant::now()).unwrap();
            for family in Family::BOTH {
                applier.clean_flows(cluster, &PreviouslyProgrammed::everything(), family).unwrap();
            }
        });
    }

    fn is_offloaded(&self, protocol: Protocol, from: u16) -> bool {
        is_offloaded(self.node(), protocol, from)
    }
}

/// Returns whether a flowtable forwards the connection from this port.
fn is_offloaded(node: &Namespace, protocol: Protocol, from: u16) -> bool {
    node.run(|| {
        let mut client = Client::open().unwrap();
        let flows: Vec<_> = client.flows(Table::Conntrack, &Filter::default()).unwrap().collect();
        let flow = flows.into_iter().map(Result::unwrap).find(|flow| {
            let is_from = matches!(flow.original.layer4, Layer4::Ports { source, .. } if source == from);
            is_from && flow.original.protocol.0 == protocol.number()
        });
        flow.expect("it is tracked").status.is_some_and(|status| status.contains(Status::OFFLOAD))
    })
}

fn name() -> ServiceName {
    ServiceName::new("demo", "web").unwrap()
}

fn echo(listener: &TcpListener) {
    while let Ok((mut stream, _)) = listener.accept() {
        std::thread::spawn(move || {
            let mut buffer = vec![0; 1 << 16];
            while let Ok(length @ 1..) = stream.read(&mut buffer) {
                if stream.write_all(&buffer[..length]).is_err() {
                    return;
                }
            }
        });
    }
}

/// A client of the service that keeps its connection.
struct Asking(UdpSocket);

impl Asking {
    fn new(from: &Namespace, to: SocketAddr) -> Self {
        let any: IpAddr =
            if to.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
        let socket = from.run(|| UdpSocket::bind((any, 0)).unwrap());
        socket.connect(to).unwrap();
        Self(socket)
    }

    /// Returns the name of the endpoint that answers; nothing if none does.
    fn ask(&self) -> Option<String> {
        self.ask_within(PATIENCE)
    }

    fn ask_within(&self, time: Duration) -> Option<String> {
        self.ask_by(b"who?", time)
    }

    fn ask_by(&self, question: &[u8], time: Duration) -> Option<String> {
        self.0.set_read_timeout(Some(time)).unwrap();
        let mut buffer = [0; 64];
        let sent = self.0.send(question);
        let length = sent.and_then(|_| self.0.recv(&mut buffer)).ok()?;
        String::from_utf8_lossy(&buffer[..length]).split(' ').next().map(str::to_owned)
    }

    fn port(&self) -> u16 {
        self.0.local_addr().unwrap().port()
    }
}

/// Sends these bytes and returns whether the same come back.
fn is_echoed(stream: &mut TcpStream, bytes: &[u8]) -> bool {
    let mut back = vec![0; bytes.len()];
    let mut writing = stream.try_clone().unwrap();
    std::thread::scope(|scope| {
        // Where the other end is gone, nothing comes back.
        scope.spawn(|| writing.write_all(bytes));
        stream.read_exact(&mut back).is_ok()
    }) && back == bytes
}

/// Skips where there are no flowtables: in user-mode Linux.
fn has_flowtables() -> bool {
    match testns::guest().as_deref() {
        Some("uml") | None => {
            testns::skip("runs in a guest kernel with nf_tables only (qemurun)");
            false
        }
        Some(_) => {
            let _ = testns::sh("modprobe -a nf_flow_table nft_flow_offload");
            true
        }
    }
}

#[test]
#[ignore = "needs a kernel of its own: cargo xtask test guest"]
fn established_connections_pass_the_flowtable_and_new_ones_the_chains() {
    if !has_flowtables() {
        return;
    }
    for layout in [Layout::Maps, Layout::Chains] {
        let mut world = World::new(layout);
        for family in Family::BOTH {
            let outside = &world.network.client.namespace;
            let pod = &world.network.pods[0].namespace;
            // From outside the source is masqueraded, from the pod it is not.
            for (from, to, port) in [(pod, vip(family), 80), (outside, node(family), NODE_PORT)] {
                let to = SocketAddr::new(to, port);
                let udp = Asking::new(from, to);
                for number in 0..3 * AFTER {
                    assert_eq!(udp.ask().as_deref(), Some("one"), "{layout:?}, {to}, {number}");
                }
                assert!(world.is_offloaded(Protocol::Udp, udp.port()), "{layout:?}, UDP to {to}");

                let mut tcp = from.run(|| TcpStream::connect_timeout(&to, PATIENCE).unwrap());
                tcp.set_read_timeout(Some(PATIENCE)).unwrap();
                for _ in 0..2 * AFTER {
                    assert!(is_echoed(&mut tcp, b"short"), "{layout:?}, TCP to {to}");
                }
                let port = tcp.local_addr().unwrap().port();
                assert!(world.is_offloaded(Protocol::Tcp, port), "{layout:?}, TCP to {to}");
                let long: Vec<u8> = (0..300_000_u32).map(|n| n.to_le_bytes()[0]).collect();
                assert!(is_echoed(&mut tcp, &long), "{layout:?}, TCP to {to}");
            }
        }

        // The endpoint goes: flows of UDP go on to another one, that of TCP to where it was.
        let pod = &world.network.pods[0].namespace;
        let clients = Family::BOTH.map(|family| {
            let to = SocketAddr::new(vip(family), 80);
            let udp = Asking::new(pod, to);
            (0..3 * AFTER).for_each(|_| assert_eq!(udp.ask().as_deref(), Some("one")));
            assert!(world.is_offloaded(Protocol::Udp, udp.port()));
            let mut tcp = pod.run(|| TcpStream::connect_timeout(&to, PATIENCE).unwrap());
            tcp.set_read_timeout(Some(PATIENCE)).unwrap();
            (0..2 * AFTER).for_each(|_| assert!(is_echoed(&mut tcp, b"short")));
            (udp, tcp)
        });
        world.endpoints(&[2]);
        for (udp, mut tcp) in clients {
            assert_eq!(udp.ask().as_deref(), Some("two"), "{layout:?}");
            assert!(is_echoed(&mut tcp, b"still there"), "{layout:?}");
        }
        if testns::have(&["nft"]) {
            world.node().run(|| {
                let listed = testns::sh("nft -s list ruleset");
                assert!(
                    listed.contains(&format!("ct status dnat ct packets > {AFTER} flow add @ft")),
                    "{listed}"
                );
                let anew = format!("flush ruleset\n{listed}");
                if testns::feed(&["nft", "-c", "-f", "-"], BYTEORDER).status.success() {
                    let loaded = testns::feed(&["nft", "-f", "-"], &anew);
                    assert!(loaded.status.success(), "{}", String::from_utf8_lossy(&loaded.stderr));
                } else {
                    testns::lacks("byteorder of a single byte, which nft 1.0.6 sends for source ranges");
                    let mut socket = Socket::open(NetlinkFamily::NETFILTER, &Options::default()).unwrap();
                    Transaction::parse(&anew).unwrap().apply(&mut socket).unwrap();
                }
                assert_eq!(testns::sh("nft -s list ruleset"), listed);
            });
        }
    }
}

#[test]
#[ignore = "needs a kernel of its own: cargo xtask test guest"]
fn chains_of_others_see_new_connections_and_no_packets_of_the_flowtable() {
    if !has_flowtables() {
        return;
    }
    for chain in ["policy drop; }", "}; add rule inet others forward drop"] {
        let world = World::new(Layout::Maps);
        let pod = &world.network.pods[0].namespace;
        let clients = Family::BOTH.map(|family| {
            let to = SocketAddr::new(vip(family), 80);
            let [taken, young] = [Asking::new(pod, to), Asking::new(pod, to)];
            (0..3 * AFTER).for_each(|_| assert_eq!(taken.ask().as_deref(), Some("one"), "{to}"));
            assert_eq!(young.ask().as_deref(), Some("one"), "{to}");
            (to, taken, young)
        });
        world.node().run(|| {
            let policy = format!(
                "add table inet others; add chain inet others forward {{ type filter hook forward priority 0; {chain}"
            );
            assert!(testns::feed(&["nft", "-f", "-"], &policy).status.success(), "{policy}");
        });
        // A filter of each packet stops what the chains still see, however late ours is among them.
        for (to, taken, young) in clients {
            assert_eq!(Asking::new(pod, to).ask_within(SILENCE), None, "{to}");
            let refused = pod.run(|| TcpStream::connect_timeout(&to, SILENCE));
            assert!(refused.is_err(), "a new connection to {to}");
            (0..3 * AFTER).for_each(|_| drop(young.0.send(b"who?")));
            assert_eq!(young.ask_within(SILENCE), None, "{to}");
            assert_eq!(
                taken.ask().as_deref(),
                Some("one"),
                "{to}: what the flowtable has taken passes no chain"
            );
        }
    }
}

/// The endpoint's link is smaller than the client's, and the endpoint does not say so: the client learns it
/// from the node, through the translation.
#[test]
#[ignore = "needs a kernel of its own: cargo xtask test guest"]
fn clients_learn_of_a_smaller_link_while_the_flowtable_forwards() {
    const SMALLER: u16 = 1_300;
    if !has_flowtables() {
        return;
    }
    let world = World::new(Layout::Maps);
    world.node().run(|| testns::sh(&format!("ip link set pod1 mtu {SMALLER}")));
    world.network.pods[1].namespace.run(|| {
        testns::sh(&format!(
            "ip link set eth0 mtu {SMALLER}; for family in -4 -6; do ip $family route show | grep -v ^fe80 | while read \
             route; do ip $family route replace $route advmss 1400; done; done"
        ))
    });
    let (outside, pod) = (&world.network.client.namespace, &world.network.pods[0].namespace);
    for family in Family::BOTH {
        for (from, to, port) in [(pod, vip(family), 80), (outside, node(family), NODE_PORT)] {
            let to = SocketAddr::new(to, port);
            let mtu = || from.run(|| testns::sh(&format!("ip route get {}", to.ip())));
            let learnt = format!("mtu {SMALLER}");

            let mut tcp = from.run(|| TcpStream::connect_timeout(&to, PATIENCE).unwrap());
            tcp.set_read_timeout(Some(PATIENCE)).unwrap();
            for _ in 0..2 * AFTER {
                assert!(is_echoed(&mut tcp, b"short"), "TCP to {to}");
            }
            let port = tcp.local_addr().unwrap().port();
            assert!(world.is_offloaded(Protocol::Tcp, port), "TCP to {to}");
            assert!(!mtu().contains(&learnt), "{to} before a large packet: {}", mtu());
            let long: Vec<u8> = (0..300_000_u32).map(|n| n.to_le_bytes()[0]).collect();
            assert!(is_echoed(&mut tcp, &long), "TCP to {to}");
            assert!(mtu().contains(&learnt), "{to}: {}", mtu());
            assert!(is_echoed(&mut tcp, b"short"), "TCP to {to} afterwards");

            let udp = Asking::new(from, to);
            (0..3 * AFTER).for_each(|_| assert_eq!(udp.ask().as_deref(), Some("one"), "UDP to {to}"));
            assert!(world.is_offloaded(Protocol::Udp, udp.port()), "UDP to {to}");
            // In fragments, as the client knows by now.
            let large = [b'?'; 1_400];
            assert_eq!(udp.ask_by(&large, PATIENCE).as_deref(), Some("one"), "large UDP to {to}");
        }
    }
}

#[test]
#[ignore = "needs a kernel of its own: cargo xtask test guest"]
fn devices_are_followed_as_they_come_and_go() {
    if !has_flowtables() {
        return;
    }
    let mut world = World::new(Layout::Maps);
    let (applier, cluster) = (&mut world.applier, &mut world.cluster);
    world.network.node.namespace.run(|| {
        let follow = |applier: &mut Applier, cluster: &mut Cluster, what: &str, is_there: bool| {
            let _ = testns::sh(what);
            assert!(applier.is_outdated().unwrap(), "{what}");
            applier.sync(cluster, Instant::now()).unwrap();
            assert!(!applier.is_outdated().unwrap(), "{what}");
            for family in ["ip", "ip6"] {
                let listed = testns::sh(&format!("nft list flowtable {family} kube-proxy ft"));
                let has =
                    |name: &str| listed.split(|c: char| !c.is_ascii_alphanumeric()).any(|word| word == name);
                assert!(has("pod0") && !has("lo"), "{what}: {listed}");
                assert_eq!(has("new0"), is_there, "{what}: {listed}");
            }
        };
        assert!(!applier.is_outdated().unwrap());
        follow(applier, cluster, "ip link add new0 type veth peer name new1", true);
        follow(applier, cluster, "ip link del new0", false);
        // In the time between two looks one of the same name comes.
        follow(applier, cluster, "ip link add new0 type veth peer name new1", true);
        follow(applier, cluster, "ip link del new0; ip link add new0 type veth peer name new1", true);
        let again = Applier::open(applier.settings_mut().clone()).unwrap().difference(cluster).unwrap();
        assert_eq!(again.to_string(), "");
    });
}

/// Returns whether the flowtables have this device.
fn have_device(name: &str) -> bool {
    ["ip", "ip6"].iter().all(|family| {
        let listed = testns::try_sh(&format!("nft list flowtable {family} kube-proxy ft")).stdout;
        let listed = String::from_utf8_lossy(&listed).into_owned();
        listed.split(|c: char| !c.is_ascii_alphanumeric()).any(|word| word == name)
    })
}

#[test]
#[ignore = "needs a kernel of its own: cargo xtask test guest"]
fn the_daemon_follows_devices_while_no_service_changes() {
    if !has_flowtables() {
        return;
    }
    let network = network(&["asking", "one"]);
    let manifests = std::env::temp_dir().join(format!("sluicegate-devices-{}", std::process::id()));
    std::fs::create_dir_all(&manifests).unwrap();
    let text = "{apiVersion: v1, kind: Service, metadata: {namespace: demo, name: web}, spec: {clusterIP: 172.30.0.1, \
                ports: [{name: udp, protocol: UDP, port: 80}]}}\n---\n{apiVersion: discovery.k8s.io/v1, kind: \
                EndpointSlice, metadata: {namespace: demo, name: web-4, labels: {kubernetes.io/service-name: web}}, \
                addressType: IPv4, ports: [{name: udp, protocol: UDP, port: 8080}], endpoints: [{addresses: \
                [10.244.1.10], nodeName: other}]}\n";
    std::fs::write(manifests.join("all.yaml"), text).unwrap();
    let node = &network.node.namespace;
    let _daemon = node.run(|| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sluicegate-proxier"));
        command.args(["run", "--hostname-override", "node", "--cluster-cidr", "10.244.0.0/16"]);
        command.args(["--nftables-fastpath-after", "6", "--nftables-fastpath-devices", "pod*,new0"]);
        command.arg("--manifests").arg(&manifests);
        Running(command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap())
    });
    let has = |name: &str| node.run(|| have_device(name));
    eventually("the flowtable has the devices that there are", || has("pod0") && has("pod1"));
    assert!(!has("new0"));
    for round in 0..2 {
        node.run(|| testns::sh("ip link add new0 type veth peer name new1"));
        eventually("the flowtable has a device that came", || has("new0"));
        assert!(!has("new1"), "{round}: it was not asked for");
        node.run(|| testns::sh("ip link del new0"));
        eventually("the flowtable has none that went", || !has("new0"));
    }
    // Connections are still taken.
    let asking = Asking::new(&network.pods[0].namespace, SocketAddr::new(vip(Family::Ipv4), 80));
    (0..3 * AFTER).for_each(|_| assert_eq!(asking.ask().as_deref(), Some("one")));
    assert!(is_offloaded(node, Protocol::Udp, asking.port()));
    let _ = std::fs::remove_dir_all(&manifests);
}
