//! Which flows end with a change of services, and which do not: every kind of flow by every kind of change, in
//! each mode, with the kernel's connection tracking.

use std::collections::BTreeSet;
use std::time::Instant;

use sluicegate_conntrack::netlink::Errno;
use sluicegate_conntrack::{Client, Filter, NewFlow, Protocol, Tuple};
use sluicegate_service_rules::Backend;
use sluicegate_service_rules::flows::PreviouslyProgrammed;
use sluicegate_service_rules::iptables::{self, BackEnd};
use sluicegate_service_rules::ipvs;
use sluicegate_service_rules::nftables::{self, Layout};
use sluicegate_services::{Cluster, Family, Node, ServiceName};

use crate::manifests::Manifests;

/// The flows that there are before each change: their names, and protocol, destination and server of each.
const FLOWS: [(&str, Protocol, &str, &str); 17] = [
    ("cluster-ip", UDP, "172.30.0.10:53", A),
    ("external-ip", UDP, "198.51.100.1:53", A),
    ("load-balancer", UDP, "203.0.113.10:53", A),
    ("node-port", UDP, "192.168.0.2:30053", A),
    ("node-port-elsewhere", UDP, "10.1.0.1:30053", A),
    ("ipv6", UDP, "[fd00:172:30::10]:53", "[fd00:10:244::a]:5353"),
    ("to-b", UDP, "172.30.0.10:53", B),
    ("other-service", UDP, "172.30.0.20:53", A),
    ("sctp", Protocol::SCTP, "172.30.0.10:132", A),
    ("sctp-node-port", Protocol::SCTP, "192.168.0.2:30132", A),
    ("tcp", Protocol::TCP, "172.30.0.10:53", A),
    // What no service made.
    ("foreign-host", UDP, "192.0.2.9:30053", "192.0.2.9:30053"),
    ("foreign-nat", UDP, "192.168.0.2:30053", "172.17.0.2:53"),
    ("foreign-nat-elsewhere", UDP, "198.51.100.77:53", A),
    ("local-program", UDP, "192.168.0.2:999", "192.168.0.2:999"),
    ("zone", UDP, "172.30.0.10:53", A),
    // It began before the service did.
    ("untranslated", UDP, "172.30.0.10:53", "172.30.0.10:53"),
];
const UDP: Protocol = Protocol::UDP;
const A: &str = "10.244.0.10:5353";
const B: &str = "10.244.0.11:5353";
/// The flows of the service `dns` that lead to the endpoint `a`, and one that leads nowhere.
const TO_A: &str = "cluster-ip external-ip load-balancer node-port node-port-elsewhere untranslated";

/// The objects; a change replaces parts of the text.
const OBJECTS: &str = "
apiVersion: v1
kind: Service
metadata: {namespace: demo, name: dns}
spec:
  type: LoadBalancer
  clusterIP: 172.30.0.10
  clusterIPs: [172.30.0.10]
  ipFamilies: [IPv4]
  externalIPs: [198.51.100.1]
  ports:
  - {name: dns, port: 53, protocol: UDP, nodePort: 30053}
  - {name: tcp, port: 53, protocol: TCP, nodePort: 30054}
status: {loadBalancer: {ingress: [{ip: 203.0.113.10}]}}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {namespace: demo, name: dns-1, labels: {kubernetes.io/service-name: dns}}
addressType: IPv4
ports: [{name: dns, port: 5353, protocol: UDP}, {name: tcp, port: 5353, protocol: TCP}]
endpoints:
- {addresses: [10.244.0.10], conditions: {ready: true}}
- {addresses: [10.244.0.11], conditions: {ready: true}}
---
apiVersion: v1
kind: Service
metadata: {namespace: demo, name: dns6}
spec:
  clusterIP: 'fd00:172:30::10'
  clusterIPs: ['fd00:172:30::10']
  ipFamilies: [IPv6]
  ports: [{name: dns, port: 53, protocol: UDP}]
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {namespace: demo, name: dns6-1, labels: {kubernetes.io/service-name: dns6}}
addressType: IPv6
ports: [{name: dns, port: 5353, protocol: UDP}]
endpoints: [{addresses: ['fd00:10:244::a']}]
---
apiVersion: v1
kind: Service
metadata: {namespace: demo, name: other}
spec: {clusterIP: 172.30.0.20, clusterIPs: [172.30.0.20], ports: [{name: dns, port: 53, protocol: UDP}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {namespace: demo, name: other-1, labels: {kubernetes.io/service-name: other}}
addressType: IPv4
ports: [{name: dns, port: 5353, protocol: UDP}]
endpoints: [{addresses: [10.244.0.10]}]
---
apiVersion: v1
kind: Service
metadata: {namespace: demo, name: signal}
spec:
  type: NodePort
  clusterIP: 172.30.0.10
  clusterIPs: [172.30.0.10]
  ports: [{name: m3ua, port: 132, protocol: SCTP, nodePort: 30132}]
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {namespace: demo, name: signal-1, labels: {kubernetes.io/service-name: signal}}
addressType: IPv4
ports: [{name: m3ua, port: 5353, protocol: SCTP}]
endpoints: [{addresses: [10.244.0.10], conditions: {ready: true, serving: true}}]
";

/// A change: its name, the part of the objects that is replaced, and the flows that end with it.
struct Change {
    name: &'static str,
    from: &'static str,
    to: &'static str,
    ends: &'static [&'static str],
}

const fn change(
    name: &'static str,
    from: &'static str,
    to: &'static str,
    ends: &'static [&'static str],
) -> Change {
    Change { name, from, to, ends }
}

const CHANGES: [Change; 17] = [
    change("nothing", "", "", &["untranslated"]),
    change("an endpoint moves", "[10.244.0.10], conditions: {ready: true}}", "[10.244.0.12]}", &[TO_A]),
    change(
        "an endpoint fails",
        "[10.244.0.10], conditions: {ready: true}}",
        "[10.244.0.10], conditions: {ready: false, serving: false}}",
        &[TO_A],
    ),
    change(
        "an endpoint terminates, and serves on",
        "[10.244.0.10], conditions: {ready: true}}",
        "[10.244.0.10], conditions: {ready: false, serving: true, terminating: true}}",
        &["untranslated"],
    ),
    change(
        "the last endpoints are gone",
        "endpoints:
- {addresses: [10.244.0.10], conditions: {ready: true}}
- {addresses: [10.244.0.11], conditions: {ready: true}}",
        "endpoints: []",
        // A packet that was not translated is rejected or routed as before, whoever made its flow.
        &["cluster-ip external-ip load-balancer node-port node-port-elsewhere to-b"],
    ),
    change(
        "the slice belongs to nobody",
        "name: dns}",
        "name: nobody}",
        &["cluster-ip external-ip load-balancer node-port node-port-elsewhere to-b"],
    ),
    change(
        "the service is deleted",
        "name: dns}\nspec",
        "name: dns-of-another-name}\nspec",
        &["cluster-ip external-ip load-balancer node-port node-port-elsewhere to-b"],
    ),
    change(
        "the cluster IP changes",
        "clusterIP: 172.30.0.10\n  clusterIPs: [172.30.0.10]\n  ipF",
        "clusterIP: 172.30.0.11\n  clusterIPs: [172.30.0.11]\n  ipF",
        &["cluster-ip to-b"],
    ),
    change("the external IP is removed", "[198.51.100.1]", "[]", &["external-ip untranslated"]),
    change(
        "the load balancer has another address",
        "203.0.113.10",
        "203.0.113.11",
        &["load-balancer untranslated"],
    ),
    change(
        "the node port changes",
        "nodePort: 30053",
        "nodePort: 30055",
        &["node-port node-port-elsewhere untranslated"],
    ),
    change(
        "the port changes",
        "{name: dns, port: 53, protocol: UDP, nodePort",
        "{name: dns, port: 54, protocol: UDP, nodePort",
        &["cluster-ip external-ip load-balancer to-b"],
    ),
    change(
        "the protocol changes",
        "{name: dns, port: 53, protocol: UDP, nodePort: 30053}",
        "{name: dns, port: 55, protocol: TCP, nodePort: 30053}",
        &["cluster-ip external-ip load-balancer node-port node-port-elsewhere to-b"],
    ),
    change(
        "the endpoint of IPv6 moves",
        "endpoints: [{addresses: ['fd00:10:244::a']}]",
        "endpoints: [{addresses: ['fd00:10:244::b']}]",
        &["ipv6 untranslated"],
    ),
    change(
        "the SCTP endpoint fails",
        "{ready: true, serving: true}",
        "{ready: false, serving: false}",
        &["untranslated"],
    ),
    change(
        "the SCTP endpoint is gone",
        "[10.244.0.10], conditions: {ready: true, serving: true}",
        "[10.244.0.12]",
        &["sctp sctp-node-port untranslated"],
    ),
    change(
        "another service takes the cluster IP over",
        "metadata: {namespace: demo, name: other}\nspec: {clusterIP: 172.30.0.20, clusterIPs: [172.30.0.20]",
        "metadata: {namespace: demo, name: other}\nspec: {clusterIP: 172.30.0.21, clusterIPs: [172.30.0.21]",
        &["other-service untranslated"],
    ),
];

#[test]
fn flows_end_with_what_made_them_and_no_others_do() {
    if !testns::have(&["ip"]) {
        return;
    }
    let _ = in_modes(&["maps", "chains", "iptables-nft", "iptables-legacy"]);
}

/// Makes every change in these modes, in a network namespace. Returns the number of changes that were judged.
pub(crate) fn in_modes(modes: &[&str]) -> usize {
    let mut judged = 0;
    testns::netns(|| {
        let _ = testns::sh(
            "ip link set lo up; ip addr add 192.168.0.2/32 dev lo; ip addr add 10.1.0.1/32 dev lo",
        );
        let every = modes.iter().flat_map(|mode| CHANGES.iter().map(|change| (*mode, change)));
        judged = every.filter(|(mode, change)| run(mode, change)).count();
    });
    judged
}

/// Makes the change under a program that runs, then under one that starts anew. Returns false where the kernel
/// lacks the mode.
fn run(mode: &str, change: &Change) -> bool {
    let changed = OBJECTS.replacen(change.from, change.to, 1);
    // Both back ends of iptables have the same rules, and each takes its time.
    let ways: &[bool] = match mode {
        "iptables-nft" => &[false],
        "iptables-legacy" => &[true],
        _ => &[false, true],
    };
    for is_restarted in ways.iter().copied() {
        let Some(mut backend) = backend(mode) else { return false };
        let mut cluster = cluster(OBJECTS);
        sync(&mut *backend, &mut cluster, PreviouslyProgrammed::everything());
        let mut client = Client::open().expect("connection tracking");
        client.flush(None).expect("flushed");
        let (zoned, others): (Vec<_>, Vec<_>) = flows().into_iter().partition(|flow| flow.zone.is_some());
        client.create(&others).expect("created");
        let has_zones = match client.create(&zoned) {
            Ok(()) => true,
            // User-mode Linux is built without CONFIG_NF_CONNTRACK_ZONES.
            Err(error) if error.errno() == Some(Errno::EOPNOTSUPP) => false,
            Err(error) => panic!("{error}"),
        };
        let former = if is_restarted {
            backend = self::backend(mode).expect("as before");
            cluster = self::cluster(&changed);
            PreviouslyProgrammed::everything()
        } else {
            become_(&mut cluster, &changed);
            PreviouslyProgrammed::default()
        };
        sync(&mut *backend, &mut cluster, former);
        let found = client.list(&Filter::default()).expect("listed");
        let left: BTreeSet<&str> = FLOWS
            .iter()
            .zip(flows())
            .filter(|(_, made)| {
                found.iter().any(|flow| flow.original == made.original && flow.zone == made.zone)
            })
            .map(|((name, ..), _)| *name)
            .collect();
        let mut ends: BTreeSet<&str> = change.ends.iter().flat_map(|names| names.split(' ')).collect();
        if !is_restarted && !touches_dns(change) {
            // Nothing asks for it until the service changes.
            ends.remove("untranslated");
        }
        let made = FLOWS.iter().map(|(name, ..)| *name).filter(|name| has_zones || *name != "zone");
        let gone: BTreeSet<&str> = made.filter(|name| !left.contains(name)).collect();
        assert_eq!(gone, ends, "{mode}, {}, restarted: {is_restarted}", change.name);
    }
    true
}

/// Whether a change concerns the service of the flow that was not translated.
fn touches_dns(change: &Change) -> bool {
    cluster_ports(OBJECTS) != cluster_ports(&OBJECTS.replacen(change.from, change.to, 1))
}

fn cluster_ports(objects: &str) -> String {
    let name = ServiceName::new("demo", "dns").expect("a name");
    format!("{:?}", cluster(objects).ports(&name, Family::Ipv4))
}

fn cluster(objects: &str) -> Cluster {
    let addresses = ["192.168.0.2".parse().expect("an address")];
    Manifests::read(objects).into_cluster(Node {
        name: "here".into(),
        addresses: addresses.into(),
        ..Node::default()
    })
}

fn become_(cluster: &mut Cluster, objects: &str) {
    let wanted = Manifests::read(objects);
    let is_wanted = |name: &ServiceName| wanted.services.iter().any(|(other, _)| other == name);
    let gone: Vec<_> = cluster.service_names().filter(|name| !is_wanted(name)).cloned().collect();
    gone.iter().for_each(|name| cluster.set_service(name, None));
    wanted.services.into_iter().for_each(|(name, service)| cluster.set_service(&name, service));
    wanted.slices.into_iter().for_each(|(name, slice)| cluster.set_slice(&name, slice));
}

fn sync(backend: &mut dyn Backend, cluster: &mut Cluster, mut former: PreviouslyProgrammed) {
    let changes = cluster.take_changes();
    former.add(&changes, cluster);
    backend.sync(cluster, &changes, Instant::now()).expect("a sync");
    former.add_programmed(backend.take_found());
    for family in Family::BOTH {
        backend.clean_flows(cluster, &former, family).expect("cleaned");
    }
}

/// Returns the back end of a mode, or `None` after a note where the kernel lacks it.
fn backend(mode: &str) -> Option<Box<dyn Backend>> {
    let back_end = match mode {
        "maps" | "chains" => {
            let layout = if mode == "maps" { Layout::Maps } else { Layout::Chains };
            let settings = nftables::Settings { layout, ..nftables::Settings::default() };
            return Some(Box::new(nftables::Applier::open(settings).expect("a socket")));
        }
        "iptables-nft" | "ipvs-nft" => BackEnd::Nft,
        _ => BackEnd::Legacy,
    };
    let opened: Result<Box<dyn Backend>, _> = match mode.starts_with("ipvs") {
        true => ipvs::Applier::open(Some(back_end), &Family::BOTH, ipvs::Settings::default())
            .map(|applier| Box::new(applier) as _),
        false => iptables::Applier::open(Some(back_end), &Family::BOTH, iptables::Settings::default())
            .map(|applier| Box::new(applier) as _),
    };
    match opened {
        Ok(backend) => Some(backend),
        Err(error) => {
            testns::skip(&format!("{mode}: {error}"));
            None
        }
    }
}

fn flows() -> Vec<NewFlow> {
    let make = |(source, (name, protocol, to, by)): (u16, &(&str, Protocol, &str, &str))| {
        let to = to.parse().expect("an address");
        let client = if matches!(to, std::net::SocketAddr::V4(_)) { "192.0.2.1" } else { "fd00:2::1" };
        let client = std::net::SocketAddr::new(client.parse().expect("an address"), source);
        let original = Tuple::with_ports(*protocol, client, to).expect("of one family");
        let mut flow = NewFlow::new(original, 600);
        flow.reply =
            Tuple::with_ports(*protocol, by.parse().expect("an address"), client).expect("of one family");
        flow.zone = (*name == "zone").then_some(5);
        flow
    };
    (1000..).zip(&FLOWS).map(make).collect()
}
