//! The throw-away network itself: every host reaches every other before any rule is there.

use std::net::SocketAddr;
use std::time::Duration;

use sluicegate_lab::{Answer, Network, NetworkSpec, PodSpec, Transport, ask};

fn spec() -> NetworkSpec {
    let both = |v4: &str, v6: &str| (v4.parse().expect("an address"), v6.parse().expect("an address"));
    NetworkSpec {
        node: both("192.168.0.2", "fd00:192:168::2"),
        client: both("192.168.0.100", "fd00:192:168::100"),
        gateway: both("10.244.0.1", "fd00:10:244::1"),
        pods: vec![
            PodSpec { name: "here", address: both("10.244.0.10", "fd00:10:244::10"), ports: vec![8080] },
            PodSpec { name: "there", address: both("10.244.1.10", "fd00:10:244:1::10"), ports: vec![8080] },
        ],
        routed: ["10.244.0.0/16", "fd00:10:244::/48"].map(|net| net.parse().expect("a network")).into(),
    }
}

fn once(network: &Network, from: &str, transport: Transport, to: &str) -> Answer {
    let target: SocketAddr = to.parse().expect("an address and a port");
    let host = network.host(from).expect("a host of the network");
    host.namespace.run(|| ask(transport, target, 1, Duration::from_secs(20))).remove(0)
}

#[test]
fn hosts_reach_each_other_and_endpoints_say_who_asked() {
    // Refused where a namespace cannot be made: then the other kernel tests of this crate say so as well.
    if testns::Netns::new().is_none() {
        return;
    }
    let network = Network::build(&spec()).expect("a network");
    let from = |name: &str, source: &str| Answer::From { name: name.into(), source: source.parse().unwrap() };
    for transport in [Transport::Tcp, Transport::Udp] {
        let ask = |host: &str, to: &str| once(&network, host, transport, to);
        assert_eq!(ask("client", "10.244.0.10:8080"), from("here", "192.168.0.100"));
        assert_eq!(ask("here", "10.244.1.10:8080"), from("there", "10.244.0.10"));
        assert_eq!(ask("there", "[fd00:10:244::10]:8080"), from("here", "fd00:10:244:1::10"));
        assert_eq!(ask("node", "10.244.0.10:8080"), from("here", "10.244.0.1"));
        assert_eq!(ask("client", "192.168.0.2:9"), Answer::Refused);
    }
}
