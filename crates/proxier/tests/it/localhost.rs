//! Node ports on 127.0.0.1, with real connections: reached where they are asked for, closed where not, and
//! what listens on loopback alone stays hidden from the link.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use sluicegate_lab::{Answer, Network, NetworkSpec, PodSpec, Transport, ask, serve};
use sluicegate_proxier::source::{self, Manifests};
use sluicegate_service_rules::iptables::{Applier, BackEnd, Settings};
use sluicegate_services::{Cluster, DetectLocal, Family, Node};

const SERVICE: &str = "
apiVersion: v1
kind: Service
metadata: {namespace: demo, name: web}
spec:
  type: NodePort
  clusterIP: 172.30.10.1
  ports: [{name: tcp, port: 80, protocol: TCP, nodePort: 30080}, {name: udp, port: 80, protocol: UDP, \
  nodePort: 30080}]
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {namespace: demo, name: web, labels: {kubernetes.io/service-name: web}}
addressType: IPv4
ports: [{name: tcp, port: 8080, protocol: TCP}, {name: udp, port: 8080, protocol: UDP}]
endpoints: [{addresses: [10.244.0.10], nodeName: test-node}]
";

fn cluster() -> Cluster {
    let mut found = Manifests::default();
    source::read_str("test.yaml", SERVICE, |manifest| found.add(manifest)).expect("the manifests parse");
    let addresses = ["192.168.0.2", "fd00:192:168::2"].map(|ip| ip.parse().expect("an address"));
    found.into_cluster(Node::new("test-node", addresses)).0
}

fn settings() -> Settings {
    let nets = ["10.244.0.0/16", "fd00:10:244::/56"].map(|net| net.parse().expect("a CIDR"));
    Settings { detect_local: DetectLocal::ClusterCidrs(nets.into()), ..Settings::default() }
}

fn network() -> Network {
    let both = |v4: &str, v6: &str| (v4.parse().expect("an address"), v6.parse().expect("an address"));
    let spec = NetworkSpec {
        node: both("192.168.0.2", "fd00:192:168::2"),
        client: both("192.168.0.100", "fd00:192:168::100"),
        gateway: both("10.244.0.1", "fd00:10:244::1"),
        pods: vec![PodSpec {
            name: "here",
            address: both("10.244.0.10", "fd00:10:244::10"),
            ports: vec![8080],
        }],
        // Somebody on the link who tries to get at loopback.
        routed: vec!["127.66.0.0/16".parse().expect("a network")],
    };
    Network::build(&spec).expect("a network")
}

#[test]
fn node_ports_on_loopback_lead_to_endpoints() {
    if !testns::have(&["iptables-legacy-restore", "iptables-nft-restore"])
        || !testns::have(&["ip"])
        || testns::Netns::new().is_none()
    {
        return;
    }
    for back_end in BackEnd::BOTH {
        let network = network();
        let within = |seconds, host: &str, transport, to: &str| {
            let target: SocketAddr = to.parse().expect("an address and a port");
            let host = network.host(host).expect("a host of the network");
            host.namespace.run(|| ask(transport, target, 1, Duration::from_secs(seconds))).remove(0)
        };
        // Longer than an answer takes on a busy machine.
        let once = |host: &str, transport, to: &str| within(30, host, transport, to);
        let program = |settings: Settings| {
            network.node.namespace.run(|| {
                let mut applier = Applier::open(Some(back_end), &[Family::Ipv4], settings)?;
                applier.sync(&mut cluster(), Instant::now())
            })
        };
        let from = |source: &str| Answer::From {
            name: "here".into(),
            source: source.parse().expect("a value that is valid here"),
        };
        // Without rules, with the sysctl, a server that only listens on loopback could be reached from the
        // link.
        serve(&network.node.namespace, "node", &[9999]).expect("a server");
        network
            .node
            .namespace
            .sysctl("net/ipv4/conf/all/route_localnet", "1")
            .expect("a value that is valid here");
        network
            .client
            .namespace
            .sysctl("net/ipv4/conf/all/route_localnet", "1")
            .expect("a value that is valid here");
        let _ =
            network.client.namespace.run(|| testns::sh("ip route del local 127.0.0.0/8 dev lo table local"));
        let reached = Answer::From {
            name: "node".into(),
            source: "192.168.0.100".parse().expect("a value that is valid here"),
        };
        assert_eq!(once("client", Transport::Tcp, "127.66.0.1:9999"), reached, "{back_end:?}");
        network
            .node
            .namespace
            .sysctl("net/ipv4/conf/all/route_localnet", "0")
            .expect("a value that is valid here");

        program(settings()).expect("a value that is valid here");
        for transport in [Transport::Tcp, Transport::Udp] {
            assert_eq!(
                once("node", transport, "127.0.0.1:30080"),
                from("10.244.0.1"),
                "{back_end:?} {transport}"
            );
            assert_eq!(
                once("node", transport, "192.168.0.2:30080"),
                from("10.244.0.1"),
                "{back_end:?} {transport}"
            );
            assert_eq!(
                once("client", transport, "192.168.0.2:30080"),
                from("10.244.0.1"),
                "{back_end:?} {transport}"
            );
        }
        // With route_localnet the kernel itself no longer refuses packets from the link to loopback; the rule
        // does.
        let hidden = within(2, "client", Transport::Tcp, "127.66.0.1:9999");
        assert_eq!(hidden, Answer::Silence, "{back_end:?}");

        program(Settings { localhost_node_ports: false, ..settings() }).expect("a value that is valid here");
        assert_eq!(once("node", Transport::Tcp, "127.0.0.1:30080"), Answer::Refused, "{back_end:?}");
        assert_eq!(once("node", Transport::Tcp, "192.168.0.2:30080"), from("10.244.0.1"), "{back_end:?}");
    }
}
