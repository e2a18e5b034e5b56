//! Deletes UDP flows that a change of services has made stale: flows to endpoints that no longer serve.
//!
//! Call [`clean_up`] after a successful sync if [`Changes::concerns_udp`] returns true, or if the changes are
//! unknown. As in kube-proxy, a flow is kept if it goes to any *serving* endpoint of its service, ready or
//! terminating, regardless of traffic policies and hints, and the flows of a service without serving
//! endpoints are not changed. The frontends of a service are its cluster IP, load balancer IPs and external
//! IPs, each with the port, and the node port on any address.
//!
//! There are two differences to kube-proxy. A flow that is not stale for the frontend that it is addressed to
//! is kept even if its port is also the node port of another service. And a frontend that two services claim
//! has the endpoints of both.

use std::net::SocketAddr;

use sluicegate_conntrack::stale::{self, Report, Services};
use sluicegate_conntrack::{Client, Error};

use sluicegate_services::{Changes, Cluster, Family, Protocol, ServicePort};

/// The services whose flows are checked.
#[derive(Debug, Clone, Copy)]
pub enum Scope<'a> {
    /// All services: at the start, after a failure, and at intervals.
    All,
    /// The services that changed. The cost depends on their number, not on the size of the cluster.
    Changed(&'a Changes),
}

/// Deletes the stale UDP flows of these services, in the network namespace of the calling thread.
///
/// New flows follow the programmed rules. After a failure only old flows can be stale: call it again with
/// [`Scope::All`].
///
/// # Errors
/// [`Error::is_permission_denied`] without `CAP_NET_ADMIN`, [`Error::is_unsupported`] if the kernel has no
/// connection tracking over netlink, and other errors of the kernel.
pub fn clean_up(cluster: &Cluster, scope: Scope<'_>, families: &[Family]) -> Result<Report, Error> {
    let services = services(cluster, scope, families);
    if services.is_empty() {
        return Ok(Report::default());
    }
    stale::sync(&mut Client::open()?, &services)
}

/// Returns the frontends of the UDP services with their serving endpoints.
#[must_use]
pub fn services(cluster: &Cluster, scope: Scope<'_>, families: &[Family]) -> Services {
    let mut services = Services::new();
    for family in families.iter().copied() {
        match scope {
            Scope::All => {
                cluster.services().for_each(|service| add_all(&mut services, &service.ports(family)));
            }
            Scope::Changed(changes) => {
                changes.names().for_each(|name| add_all(&mut services, &cluster.ports(name, family)));
            }
        }
    }
    services
}

fn add_all(services: &mut Services, ports: &[ServicePort<'_>]) {
    for port in ports.iter().filter(|port| port.name.protocol == Protocol::Udp) {
        let serving: Vec<SocketAddr> =
            port.endpoints.iter().filter(|endpoint| endpoint.serving).map(|e| e.address).collect();
        if serving.is_empty() {
            continue;
        }
        for ip in port.cluster_ip.iter().chain(&port.load_balancer_ips).chain(&port.external_ips) {
            services.frontend(SocketAddr::new(*ip, port.port.get()), serving.iter().copied());
        }
        if let Some(node_port) = port.node_port {
            let family = match port.family {
                Family::Ipv4 => sluicegate_conntrack::Family::Ipv4,
                Family::Ipv6 => sluicegate_conntrack::Family::Ipv6,
            };
            services.node_port(family, node_port.get(), serving.iter().copied());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::time::{Duration, Instant};

    use sluicegate_conntrack::{Filter, stale::How};
    use sluicegate_services::{Node, Slice, SliceName};

    use super::*;
    use crate::manifests::Manifests;
    use crate::nftables::{Applier, Settings};

    const SERVICE: &str = "
apiVersion: v1
kind: Service
metadata: {namespace: demo, name: dns}
spec:
  type: LoadBalancer
  clusterIP: 10.96.0.10
  clusterIPs: [10.96.0.10, 'fd00:96::10']
  ipFamilies: [IPv4, IPv6]
  externalIPs: [192.0.2.7]
  externalTrafficPolicy: Local
  internalTrafficPolicy: Local
  ports:
  - {name: dns, port: 53, protocol: UDP, nodePort: 30053}
  - {name: dns-tcp, port: 53, protocol: TCP, nodePort: 30054}
status: {loadBalancer: {ingress: [{ip: 198.51.100.9}]}}
---
apiVersion: v1
kind: Service
metadata: {namespace: demo, name: idle}
spec:
  clusterIP: 10.96.0.11
  clusterIPs: [10.96.0.11]
  ipFamilies: [IPv4]
  ports: [{port: 53, protocol: UDP}]
";

    /// Returns a slice of `dns` with endpoints in each state.
    fn slice(ready: &str, terminating: &str, failed: &str) -> String {
        format!(
            "
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {{namespace: demo, name: dns-1, labels: {{kubernetes.io/service-name: dns}}}}
addressType: IPv4
ports: [{{name: dns, port: 5353, protocol: UDP}}, {{name: dns-tcp, port: 5353, protocol: TCP}}]
endpoints:
- {{addresses: [{ready}], nodeName: here, conditions: {{ready: true}}}}
- {{addresses: [{terminating}], nodeName: there, conditions: {{ready: false, serving: true, terminating: \
true}}}}
- {{addresses: [{failed}], nodeName: here, conditions: {{ready: false, serving: false}}}}
"
        )
    }

    fn cluster(slice: &str) -> Cluster {
        let node = Node { name: "here".into(), ..Node::default() };
        Manifests::read(&format!("{SERVICE}{slice}")).into_cluster(node)
    }

    fn one_slice(text: &str) -> (SliceName, Slice) {
        Manifests::read(text).slices.remove(0)
    }

    fn address(text: &str) -> SocketAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn every_front_end_is_there_with_the_endpoints_that_serve() {
        let mut cluster = cluster(&slice("10.244.0.5", "10.244.1.6", "10.244.0.7"));
        let serving = ["10.244.0.5:5353", "10.244.1.6:5353"].map(address);
        let mut expected = Services::new();
        for frontend in ["10.96.0.10:53", "198.51.100.9:53", "192.0.2.7:53"] {
            expected.frontend(address(frontend), serving);
        }
        expected.node_port(sluicegate_conntrack::Family::Ipv4, 30053, serving);
        assert_eq!(services(&cluster, Scope::All, &Family::BOTH), expected);
        assert!(services(&cluster, Scope::All, &[Family::Ipv6]).is_empty());
        let changes = cluster.take_changes();
        assert_eq!(services(&cluster, Scope::Changed(&changes), &Family::BOTH), expected);
        let nothing = cluster.take_changes();
        assert!(services(&cluster, Scope::Changed(&nothing), &Family::BOTH).is_empty());
    }

    #[test]
    fn what_only_a_failed_endpoint_is_left_of_is_left_alone() {
        let (name, mut slice) = one_slice(&slice("10.244.0.5", "10.244.1.6", "10.244.0.7"));
        slice.endpoints.iter_mut().for_each(|endpoint| endpoint.serving = false);
        let mut cluster = cluster("");
        cluster.set_slice(&name, Some(slice));
        assert!(services(&cluster, Scope::All, &Family::BOTH).is_empty());
    }

    /// A client with one socket: without the clean-up its flow stays at the first endpoint.
    #[test]
    fn a_client_comes_to_the_endpoint_that_replaced_its_own() {
        if !testns::have(&["ip"]) {
            return;
        }
        testns::netns(|| {
            let _ = testns::sh(
                "ip addr add 10.0.0.1/32 dev lo; ip addr add 10.244.0.5/32 dev lo; ip addr add \
                 10.244.0.6/32 dev lo
                 ip route add 10.96.0.0/16 dev lo src 10.0.0.1",
            );
            let [first, second] = ["10.244.0.5:5353", "10.244.0.6:5353"].map(server);
            // Without another serving endpoint: a flow to one of those is not stale.
            let only =
                |ready| slice(ready, "10.244.1.9", "10.244.0.7").replace("serving: true", "serving: false");
            let mut cluster = cluster(&only("10.244.0.5"));
            let mut applier = Applier::open(Settings::default()).expect("a socket");
            applier.sync(&mut cluster, Instant::now()).expect("a sync");

            let client = UdpSocket::bind("10.0.0.1:0").expect("a socket");
            client.set_read_timeout(Some(Duration::from_secs(20))).expect("a time limit");
            client.connect("10.96.0.10:53").expect("connected");
            assert_eq!(ask(&client, &[&first, &second]), 0);
            assert_eq!(clean_up(&cluster, Scope::All, &Family::BOTH).expect("cleaned up").deleted, 0);
            assert_eq!(ask(&client, &[&first, &second]), 0);

            let (name, slice) = one_slice(&only("10.244.0.6"));
            cluster.set_slice(&name, Some(slice));
            applier.sync(&mut cluster, Instant::now()).expect("a sync");
            assert_eq!(ask(&client, &[&first, &second]), 0, "the flow outlives the change");
            let report = clean_up(&cluster, Scope::All, &Family::BOTH).expect("cleaned up");
            assert_eq!((report.how, report.deleted), (How::Filtered, 1), "{report:?}");
            assert_eq!(ask(&client, &[&first, &second]), 1);
            let left = Client::open().and_then(|mut client| client.list(&Filter::default()));
            assert!(left.is_ok_and(|left| {
                left.iter().all(|flow| flow.reply.source() != address("10.244.0.5:0").ip())
            }));
        });
    }

    fn server(address: &str) -> UdpSocket {
        let socket = UdpSocket::bind(address).expect("an address of this namespace");
        socket.set_nonblocking(true).expect("a socket that does not wait");
        socket
    }

    /// Sends a request, lets the server that received it answer, and returns its index.
    fn ask(client: &UdpSocket, servers: &[&UdpSocket]) -> usize {
        client.send(b"?").expect("sent");
        let end = Instant::now() + Duration::from_secs(20);
        let mut buffer = [0; 16];
        while Instant::now() < end {
            for (n, server) in servers.iter().enumerate() {
                if let Ok((_, from)) = server.recv_from(&mut buffer) {
                    server.send_to(b"!", from).expect("answered");
                    client.recv(&mut buffer).expect("an answer from where it asked");
                    return n;
                }
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        panic!("no server was asked");
    }
}
