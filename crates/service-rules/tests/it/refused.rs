//! A batch that the kernel refuses because of one service: the error names it, and the others can be
//! programmed without it.

use std::net::Ipv4Addr;
use std::time::Instant;

use sluicegate_netlink::{Error as NetlinkError, NetlinkFamily, Options, Socket, Transport, Wait};
use sluicegate_service_rules::Error;
use sluicegate_service_rules::nftables::{Applier, Layout, Settings};
use sluicegate_services::{Cluster, Node, ServiceName};

use crate::manifests::Manifests;

/// A real socket that replaces an address by another in what it sends, so that the kernel gets a frontend
/// that it has already, with other data.
struct Forger {
    socket: Socket,
    from: Ipv4Addr,
    to: Ipv4Addr,
}

impl Transport for Forger {
    fn send(&mut self, datagram: &[u8]) -> Result<(), NetlinkError> {
        let mut forged = datagram.to_vec();
        for start in 0..forged.len().saturating_sub(3) {
            if forged[start..start + 4] == self.from.octets() {
                forged[start..start + 4].copy_from_slice(&self.to.octets());
            }
        }
        self.socket.send(&forged)
    }

    fn receive(&mut self, buffer: &mut Vec<u8>, wait: Wait) -> Result<bool, NetlinkError> {
        self.socket.receive(buffer, wait)
    }

    fn send_limit(&mut self, size: usize) -> usize {
        self.socket.send_limit(size)
    }
}

fn service(name: &str, ip: &str, endpoints: &str, affinity: &str) -> String {
    format!(
        "apiVersion: v1
kind: Service
metadata: {{name: {name}, namespace: demo}}
spec: {{clusterIP: {ip}, ports: [{{name: p, port: 80}}], sessionAffinity: {affinity}}}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {{name: {name}-1, namespace: demo, labels: {{kubernetes.io/service-name: {name}}}}}
addressType: IPv4
ports: [{{name: p, port: 8080, protocol: TCP}}]
endpoints: [{endpoints}]
---
"
    )
}

fn cluster(affinity: &str) -> Cluster {
    let text = service("a", "172.30.0.1", "{addresses: [10.0.0.1]}", affinity)
        + &service("bad", "172.30.99.99", "{addresses: [10.0.0.2]}, {addresses: [10.0.0.3]}", affinity)
        + &service("c", "172.30.0.3", "{addresses: [10.0.0.4]}", affinity);
    Manifests::read(&text).into_cluster(Node::default())
}

#[test]
fn the_refused_service_is_named_and_the_others_are_programmed_without_it() {
    for (layout, affinity) in [
        (Layout::Maps, "None"),
        (Layout::Chains, "None"),
        (Layout::Maps, "ClientIP"),
        (Layout::Chains, "ClientIP"),
    ] {
        testns::netns(|| {
            let mut cluster = cluster(affinity);
            let socket = Socket::open(NetlinkFamily::NETFILTER, &Options::default()).expect("a socket");
            let (from, to) = (Ipv4Addr::new(172, 30, 99, 99), Ipv4Addr::new(172, 30, 0, 1));
            let settings = Settings { layout, ..Settings::default() };
            let mut applier = Applier::with_transport(Forger { socket, from, to }, settings);
            let bad = ServiceName::new("demo", "bad").expect("a name");
            let spec = cluster.service(&bad).cloned();
            cluster.set_service(&bad, None);
            applier.sync(&mut cluster, Instant::now()).expect("nothing is wrong with these two");
            cluster.set_service(&bad, spec);
            let error = applier.sync(&mut cluster, Instant::now()).expect_err("it is refused");
            let Error::Refused { services } = &error else { panic!("{layout:?}: {error:?}") };
            let names: Vec<_> = services.iter().map(|(name, _)| name.to_string()).collect();
            assert_eq!(names, ["demo/bad"], "{layout:?}: {error}");
            let text = error.to_string();
            assert!(text.contains("service demo/bad: operation "), "{text}");
            assert!(text.contains("{ 172.30.99.99 . ") && text.contains("EEXIST"), "{text}");

            cluster.set_service(&bad, None);
            applier.sync(&mut cluster, Instant::now()).expect("the rest can be programmed");
            let again = applier.sync(&mut cluster, Instant::now()).expect("and is");
            assert_eq!(again.batches, 0);
            if testns::have(&["nft"]) {
                let table = testns::sh("nft list map ip kube-proxy service-ips");
                assert!(table.contains("172.30.0.1") && table.contains("172.30.0.3"), "{table}");
            }
        });
    }
}
