//! Deletes the flows that a change of services has made stale: UDP flows to endpoints that no longer serve, or
//! of frontends that no longer exist, and SCTP associations with endpoints that are gone.
//!
//! [`PreviouslyProgrammed`] collects what was programmed until now; [`clean_up`] deletes what became stale of it after a
//! successful sync. As in kube-proxy, a UDP flow is kept if it goes to any *serving* endpoint of its service,
//! ready or terminating, regardless of traffic policies and hints. The frontends of a service are its cluster
//! IP, load balancer IPs and external IPs, each with the port, and the node port on the addresses of the node.
//!
//! There are some differences to kube-proxy. Flows end with the last endpoint, the frontend or the service as
//! well, where kube-proxy leaves a sender at an endpoint that may be another's by now. Left alone are flows
//! that no service made: those to a port of another host that is the node port of a service, those of other
//! zones of connection tracking, and those that another program translated. And a frontend that two services
//! claim has the endpoints of one.

use std::collections::{BTreeSet, HashSet};
use std::net::{IpAddr, SocketAddr};

use sluicegate_conntrack::stale::{self, Report, Services};
use sluicegate_conntrack::{Client, Error, Protocol as IpProtocol};

use sluicegate_services::{
    Changes, Cluster, Endpoint, Family, Frontend, NodePorts, Protocol, ServiceName, ServicePort,
};

use crate::addresses;

/// What was programmed until now, whose flows may be stale.
#[derive(Debug, Clone, Default)]
pub struct PreviouslyProgrammed {
    /// Whether every service is checked: nobody knows what happened before.
    is_everything: bool,
    /// Whether the kernel had what was programmed before the start.
    is_known: bool,
    /// The services that changed.
    services: BTreeSet<ServiceName>,
    programmed: Programmed,
}

/// Frontends that lead somewhere by the rules of the kernel, and the endpoints that they lead to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Programmed {
    /// The frontends of protocols whose flows may become stale.
    pub frontends: HashSet<Frontend>,
    /// The endpoints of these frontends, and maybe of others.
    pub endpoints: HashSet<SocketAddr>,
}

impl Programmed {
    /// Returns true for protocols whose flows may become stale: TCP ends by itself.
    #[must_use]
    pub fn may_become_stale(protocol: Protocol) -> bool {
        protocol != Protocol::Tcp
    }

    /// Adds all that `other` has.
    pub fn append(&mut self, other: Self) {
        self.frontends.extend(other.frontends);
        self.endpoints.extend(other.endpoints);
    }

    fn is_empty(&self) -> bool {
        self.frontends.is_empty()
    }

    fn add(&mut self, port: &ServicePort<'_>) {
        self.frontends.extend(port.frontends());
        self.endpoints.extend(port.endpoints.iter().map(|endpoint| endpoint.address));
    }
}

impl PreviouslyProgrammed {
    /// Returns the state of a program that starts: the flows of all services are checked.
    #[must_use]
    pub fn everything() -> Self {
        Self { is_everything: true, ..Self::default() }
    }

    /// Adds what `changes` replaced or removed in `cluster`.
    pub fn add(&mut self, changes: &Changes, cluster: &Cluster) {
        for change in changes.concerning(cluster, Programmed::may_become_stale) {
            for family in Family::BOTH {
                let before = change.ports_before(family, &cluster.node().name);
                let before = before.iter().filter(|port| Programmed::may_become_stale(port.name.protocol));
                before.for_each(|port| self.programmed.add(port));
            }
            self.services.insert(change.name.clone());
        }
    }

    /// Adds what a comparison found in the kernel before it was changed. At the start it is what shows which
    /// flows are ours: without anything, all that lead from a frontend to somewhere else are taken for stale.
    pub fn add_programmed(&mut self, found: Programmed) {
        self.is_known |= !found.is_empty();
        self.programmed.append(found);
    }

    /// Adds all that `other` has.
    pub fn append(&mut self, other: Self) {
        self.is_everything |= other.is_everything;
        self.is_known |= other.is_known;
        self.services.extend(other.services);
        self.programmed.append(other.programmed);
    }

    /// Returns what single changes replaced or removed, without the check of every service.
    #[must_use]
    pub fn without_everything(mut self) -> Self {
        self.is_everything = false;
        self
    }

    /// Returns true if no flow can be stale.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        !self.is_everything && self.services.is_empty() && self.programmed.is_empty()
    }
}

/// Deletes the stale flows of a family, in the network namespace of the calling thread. `node_ports` returns
/// which of the node's addresses answer node ports.
///
/// New flows follow the programmed rules. After a failure only old flows can be stale: call it again with all
/// that was collected since the last success.
///
/// # Errors
/// [`Error::is_permission_denied`] without `CAP_NET_ADMIN`, [`Error::is_unsupported`] if the kernel has no
/// connection tracking over netlink, and other errors of the kernel.
pub fn clean_up(
    cluster: &Cluster,
    former: &PreviouslyProgrammed,
    family: Family,
    node_ports: impl FnOnce(&[IpAddr]) -> NodePorts,
) -> Result<Report, Error> {
    let mut services = services(cluster, former, &[family]);
    if services.is_empty() {
        return Ok(Report::default());
    }
    let local = addresses::listed().map_err(|source| Error::Netlink { command: "list addresses", source })?;
    let answering = match node_ports(&local) {
        NodePorts::All => local.clone(),
        NodePorts::On(addresses) => addresses.into_iter().collect(),
    };
    services.node_addresses(local, answering);
    stale::sync(&mut Client::open()?, &services)
}

/// Returns the frontends whose flows may be stale, with the endpoints that they may go to.
#[must_use]
pub fn services(cluster: &Cluster, former: &PreviouslyProgrammed, families: &[Family]) -> Services {
    let mut services = Services::new();
    let Programmed { frontends, endpoints } = &former.programmed;
    for family in families.iter().copied() {
        if former.is_everything {
            cluster.services().for_each(|service| add_all(&mut services, &service.ports(family)));
            continue;
        }
        let heirs = frontends.iter().filter_map(|frontend| cluster.owner(frontend)).map(|(name, _)| name);
        let names: BTreeSet<&ServiceName> = former.services.iter().chain(heirs).collect();
        names.into_iter().for_each(|name| add_all(&mut services, &cluster.ports(name, family)));
    }
    let is_gone = |frontend: &&Frontend| {
        let owner = match **frontend {
            // IPVS serves node ports at single addresses, some of which the cluster may not know.
            Frontend::Address(ip, protocol, port) => {
                cluster.owner(&Frontend::NodePort(Family::of(ip), protocol, port))
            }
            Frontend::NodePort(..) => None,
        };
        families.contains(&family_of(frontend)) && owner.or_else(|| cluster.owner(frontend)).is_none()
    };
    let gone: Vec<&Frontend> = frontends.iter().filter(is_gone).collect();
    let left = match gone.iter().any(|frontend| protocol_of(frontend) == Protocol::Sctp) {
        true => associated(cluster, former),
        false => Vec::new(),
    };
    for frontend in gone {
        match *frontend {
            Frontend::Address(ip, protocol, port) => {
                let (protocol, frontend) = (ip_protocol(protocol), SocketAddr::new(ip, port.get()));
                services.gone(protocol, frontend, servers_left(protocol, &left));
            }
            Frontend::NodePort(family, protocol, port) => {
                let (protocol, family) = (ip_protocol(protocol), flow_family(family));
                services.gone_node_port(protocol, family, port.get(), servers_left(protocol, &left));
            }
        }
    }
    if !former.is_everything || former.is_known {
        services.only_former();
    }
    services.former(endpoints.iter().copied());
    services
}

/// Returns the endpoints of a frontend that is gone whose associations go on.
fn servers_left(protocol: IpProtocol, left: &[SocketAddr]) -> impl Iterator<Item = SocketAddr> {
    let left = if protocol == IpProtocol::SCTP { left } else { &[] };
    left.iter().copied()
}

/// Returns the SCTP endpoints that slices still have, of services that changed or exist.
fn associated(cluster: &Cluster, former: &PreviouslyProgrammed) -> Vec<SocketAddr> {
    let names: BTreeSet<&ServiceName> = former.services.iter().chain(cluster.service_names()).collect();
    let slices = names.into_iter().flat_map(|name| cluster.slices(name));
    let endpoints = slices.flat_map(|slice| {
        let ports = slice.ports.iter().filter(|port| port.protocol == Protocol::Sctp);
        ports.flat_map(|port| slice.endpoints.iter().map(|e| SocketAddr::new(e.ip, port.port.get())))
    });
    endpoints.collect()
}

fn add_all(services: &mut Services, ports: &[ServicePort<'_>]) {
    for port in ports {
        let protocol = port.name.protocol;
        let stays = |endpoint: &&Endpoint| match protocol {
            Protocol::Udp => endpoint.serving,
            // It has an association with this endpoint, and with no other.
            Protocol::Sctp => true,
            Protocol::Tcp => false,
        };
        if !Programmed::may_become_stale(protocol) {
            continue;
        }
        let servers: Vec<SocketAddr> = port.endpoints.iter().filter(stays).map(|e| e.address).collect();
        let protocol = ip_protocol(protocol);
        for frontend in port.frontends() {
            let servers = servers.iter().copied();
            match frontend {
                Frontend::Address(ip, _, port) => {
                    services.frontend(protocol, SocketAddr::new(ip, port.get()), servers);
                }
                Frontend::NodePort(family, _, port) => {
                    services.node_port(protocol, flow_family(family), port.get(), servers);
                }
            }
        }
    }
}

const fn family_of(frontend: &Frontend) -> Family {
    match frontend {
        Frontend::Address(ip, ..) => Family::of(*ip),
        Frontend::NodePort(family, ..) => *family,
    }
}

const fn protocol_of(frontend: &Frontend) -> Protocol {
    match frontend {
        Frontend::Address(_, protocol, _) | Frontend::NodePort(_, protocol, _) => *protocol,
    }
}

const fn flow_family(family: Family) -> sluicegate_conntrack::Family {
    match family {
        Family::Ipv4 => sluicegate_conntrack::Family::Ipv4,
        Family::Ipv6 => sluicegate_conntrack::Family::Ipv6,
    }
}

const fn ip_protocol(protocol: Protocol) -> IpProtocol {
    IpProtocol(protocol.number())
}

#[cfg(all(test, feature = "nftables"))]
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

    fn udp() -> sluicegate_conntrack::Protocol {
        sluicegate_conntrack::Protocol::UDP
    }

    fn everything(cluster: &Cluster, families: &[Family]) -> Services {
        services(cluster, &PreviouslyProgrammed::everything(), families)
    }

    #[test]
    fn every_front_end_is_there_with_the_endpoints_that_serve() {
        let cluster = cluster(&slice("10.244.0.5", "10.244.1.6", "10.244.0.7"));
        let serving = ["10.244.0.5:5353", "10.244.1.6:5353"].map(address);
        let mut expected = Services::new();
        for frontend in ["10.96.0.10:53", "198.51.100.9:53", "192.0.2.7:53"] {
            expected.frontend(udp(), address(frontend), serving);
        }
        expected.node_port(udp(), sluicegate_conntrack::Family::Ipv4, 30053, serving);
        expected.frontend(udp(), address("10.96.0.11:53"), []);
        assert_eq!(everything(&cluster, &[Family::Ipv4]), expected);
        assert!(services(&cluster, &PreviouslyProgrammed::default(), &Family::BOTH).is_empty());
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
            let clean_up = |cluster: &Cluster, former: &PreviouslyProgrammed| {
                clean_up(cluster, former, Family::Ipv4, |_| NodePorts::All).expect("cleaned up")
            };
            cluster.take_changes();
            assert_eq!(clean_up(&cluster, &PreviouslyProgrammed::everything()).deleted, 0);
            assert_eq!(ask(&client, &[&first, &second]), 0);

            let (name, slice) = one_slice(&only("10.244.0.6"));
            cluster.set_slice(&name, Some(slice));
            let mut former = PreviouslyProgrammed::default();
            let changes = cluster.take_changes();
            former.add(&changes, &cluster);
            applier.sync_changes(&cluster, &changes, Instant::now()).expect("a sync");
            assert_eq!(ask(&client, &[&first, &second]), 0, "the flow outlives the change");
            let report = clean_up(&cluster, &former);
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
