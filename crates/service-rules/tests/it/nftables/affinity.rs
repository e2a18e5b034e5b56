//! Session affinity of the layout `maps`, with packets: clients with addresses of their own send datagrams to
//! a service in a network namespace, and the endpoint that each arrives at is compared.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv6Addr, UdpSocket};
use std::thread::sleep;
use std::time::{Duration, Instant};

use sluicegate_netlink::{NetlinkFamily, Options, Socket};
use sluicegate_nftables::{Name, TableId, read};
use sluicegate_service_rules::nftables::{Applier, Layout, Settings};
use sluicegate_services::{Cluster, Family};

use crate::nftables::world::{cluster, settings};

use Family::{Ipv4, Ipv6};

const CLIENTS: u8 = 64;

fn service_ip(family: Family) -> IpAddr {
    match family {
        Ipv4 => IpAddr::from([172, 30, 0, 1]),
        Ipv6 => Ipv6Addr::new(0xfd00, 0x172, 0x30, 0, 0, 0, 0, 1).into(),
    }
}

fn endpoint_ip(family: Family, n: u8) -> IpAddr {
    match family {
        Ipv4 => IpAddr::from([10, 244, 0, n]),
        Ipv6 => Ipv6Addr::new(0xfd00, 0x10, 0x244, 0, 0, 0, 0, n.into()).into(),
    }
}

fn client_ip(family: Family, n: u8) -> IpAddr {
    match family {
        Ipv4 => IpAddr::from([10, 9, 0, n]),
        Ipv6 => Ipv6Addr::new(0xfd00, 0x9, 0, 0, 0, 0, 0, n.into()).into(),
    }
}

/// Returns the manifests of a service with these endpoints and this timeout.
fn service(family: Family, endpoints: &[u8], seconds: u32) -> String {
    let service = service_ip(family);
    let list: Vec<_> = endpoints
        .iter()
        .map(|n| format!("{{addresses: ['{}'], nodeName: test-node}}", endpoint_ip(family, *n)))
        .collect();
    format!(
        "apiVersion: v1\nkind: Service\nmetadata: {{namespace: demo, name: s}}\nspec: {{clusterIP: '{service}', \
         sessionAffinity: ClientIP, sessionAffinityConfig: {{clientIP: {{timeoutSeconds: {seconds}}}}}, ports: \
         [{{name: p, port: 80, protocol: UDP}}]}}\n---\napiVersion: discovery.k8s.io/v1\nkind: \
         EndpointSlice\nmetadata: {{namespace: demo, name: s, labels: {{kubernetes.io/service-name: \
         s}}}}\naddressType: {family}\nports: [{{name: p, port: 8080, protocol: UDP}}]\nendpoints: [{}]\n---\n",
        list.join(", ")
    )
}

/// The endpoints, and the clients' way to them.
struct Network {
    family: Family,
    endpoints: BTreeMap<u8, UdpSocket>,
}

impl Network {
    /// Configures the current network namespace.
    fn new(family: Family, endpoints: &[u8]) -> Self {
        let ips = endpoints.iter().map(|n| endpoint_ip(family, *n));
        let ips = ips.chain((1..=CLIENTS).map(|n| client_ip(family, n)));
        let add = |ip| match family {
            Ipv4 => format!("ip addr add {ip} dev lo"),
            Ipv6 => format!("ip addr add {ip} dev lo nodad"),
        };
        let mut script: Vec<String> = vec!["ip link set lo up".to_owned()];
        script.extend(ips.map(add));
        script.push(format!("ip route add {} dev lo", service_ip(family)));
        assert_eq!(testns::sh(&script.join("; ")), "");
        let bind = |n: &u8| {
            let socket = UdpSocket::bind((endpoint_ip(family, *n), 8080)).expect("an endpoint");
            socket.set_nonblocking(true).expect("it does not wait");
            (*n, socket)
        };
        Self { family, endpoints: endpoints.iter().map(bind).collect() }
    }

    /// Sends the first datagram of a connection, and returns the endpoint that it has arrived at. Packets of
    /// the loopback interface have arrived when they are sent.
    fn ask(&self, client: u8) -> u8 {
        let socket = UdpSocket::bind((client_ip(self.family, client), 0)).expect("a client");
        socket.connect((service_ip(self.family), 80)).expect("there is a route");
        socket.send(b"?").expect("it is sent");
        let reached = self.endpoints.iter().filter(|(_, endpoint)| endpoint.recv(&mut [0]).is_ok());
        let reached: Vec<u8> = reached.map(|(n, _)| *n).collect();
        let [one] = reached[..] else { panic!("client {client} reached {reached:?}") };
        one
    }

    fn ask_all(&self) -> BTreeMap<u8, u8> {
        (1..=CLIENTS).map(|client| (client, self.ask(client))).collect()
    }
}

/// The proxier of the namespace.
struct Proxier {
    applier: Applier,
    settings: Settings,
}

impl Proxier {
    fn new() -> Self {
        let settings = settings(Layout::Maps);
        Self { applier: Applier::open(settings.clone()).expect("nf_tables"), settings }
    }

    fn sync(&mut self, manifests: &str) -> usize {
        let mut cluster: Cluster = cluster(manifests);
        // A fresh cluster each time: the applier compares it with the kernel, as after a restart.
        self.applier = Applier::open(self.settings.clone()).expect("nf_tables");
        self.applier.sync(&mut cluster, Instant::now()).expect("it is programmed").batches
    }
}

/// Returns the remaining lifetime of each element of the map of clients, in milliseconds.
fn lifetimes() -> Vec<u64> {
    let mut socket = Socket::open(NetlinkFamily::NETFILTER, &Options::default()).expect("a socket");
    let table = TableId::new(sluicegate_nftables::Family::IP, Name::new("kube-proxy").expect("a name"));
    let set = table.map(Name::new("affinity-udp").expect("a name"));
    let elements = read::elements(&mut socket, &set).expect("the map exists");
    elements.iter().map(|element| element.details().expiration.expect("it expires")).collect()
}

#[test]
fn clients_stay_with_their_endpoint_until_it_is_removed() {
    for family in Family::BOTH {
        testns::netns(|| stays(family));
    }
}

fn stays(family: Family) {
    let all = [1, 2, 3, 4, 5];
    let network = Network::new(family, &all);
    let mut proxier = Proxier::new();
    proxier.sync(&service(family, &all, 10800));

    let first = network.ask_all();
    assert_eq!(first.values().copied().collect::<BTreeSet<_>>(), BTreeSet::from(all), "all are drawn");
    for _ in 0..3 {
        assert_eq!(network.ask_all(), first);
    }
    assert_eq!(proxier.sync(&service(family, &all, 10800)), 0, "a restart changes nothing");
    assert_eq!(network.ask_all(), first);

    // The first of the list, so that the others get other numbers.
    proxier.sync(&service(family, &[2, 3, 4, 5], 10800));
    let without = network.ask_all();
    for (client, endpoint) in &first {
        match endpoint {
            1 => assert_ne!(without[client], 1, "an endpoint that is removed"),
            other => assert_eq!(without[client], *other, "the endpoint of client {client}"),
        }
    }
    assert_eq!(network.ask_all(), without, "clients stay with their new endpoints");
    proxier.sync(&service(family, &all, 10800));
    assert_eq!(network.ask_all(), without, "an endpoint that returns takes no clients from others");
}

/// The clients of one service can fill the map. Without an element a client is at its endpoint all the same.
#[test]
fn clients_that_are_not_remembered_stay_with_their_endpoint() {
    if !testns::have(&["nft"]) {
        return;
    }
    for family in Family::BOTH {
        testns::netns(|| {
            let all = [1, 2, 3, 4, 5];
            let network = Network::new(family, &all);
            Proxier::new().sync(&service(family, &all, 10800));
            let first = network.ask_all();
            let table = if family == Ipv4 { "ip" } else { "ip6" };
            for _ in 0..3 {
                assert_eq!(testns::sh(&format!("nft flush map {table} kube-proxy affinity-udp")), "");
                assert_eq!(network.ask_all(), first);
            }
        });
    }
}

#[test]
fn the_limit_of_clients_is_raised_where_the_kernel_can() {
    testns::netns(|| {
        Proxier::new().sync(&service(Ipv4, &[1, 2], 60));
        let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").expect("Linux");
        let mut numbers = release.split(['.', '-']).map_while(|number| number.parse::<u32>().ok());
        let kernel = (numbers.next().expect("a version"), numbers.next().expect("a version"));
        let mut socket = Socket::open(NetlinkFamily::NETFILTER, &Options::default()).expect("a socket");
        let sets = read::sets(&mut socket, sluicegate_nftables::Family::IP).expect("a list");
        let clients = sets.iter().find(|set| set.name.as_str() == "affinity-udp").expect("the map exists");
        assert_eq!(clients.size, Some(if kernel >= (6, 5) { 1 << 18 } else { 65_535 }));
        assert_eq!(Proxier::new().sync(&service(Ipv4, &[1, 2], 60)), 0, "a restart leaves it");
    });
}

#[test]
fn every_connection_renews_the_time_of_a_client() {
    testns::netns(|| {
        let network = Network::new(Ipv4, &[1, 2]);
        let mut proxier = Proxier::new();
        proxier.sync(&service(Ipv4, &[1, 2], 60));
        let endpoint = network.ask(1);
        let [start] = lifetimes()[..] else { panic!("one client") };
        assert!(start <= 60_000, "{start}");
        sleep(Duration::from_millis(300));
        let [later] = lifetimes()[..] else { panic!("one client") };
        assert!(later + 200 < start, "{later} after {start}");
        assert_eq!(network.ask(1), endpoint);
        let [renewed] = lifetimes()[..] else { panic!("one client") };
        assert!(renewed > later, "{renewed} after {later}");

        // Another time concerns a client from its next connection on.
        proxier.sync(&service(Ipv4, &[1, 2], 1));
        assert_eq!(network.ask(1), endpoint);
        assert!(lifetimes().iter().all(|left| *left <= 1000));
        let start = Instant::now();
        while !lifetimes().is_empty() {
            assert!(start.elapsed() < Duration::from_secs(20), "the client is never forgotten");
            sleep(Duration::from_millis(100));
        }
    });
}

#[test]
fn packets_leave_the_node_with_their_own_priority() {
    if !testns::have(&["nft"]) {
        return;
    }
    testns::netns(|| {
        let network = Network::new(Ipv4, &[1, 2]);
        Proxier::new().sync(&service(Ipv4, &[1, 2], 60));
        let watch = "table ip watch {
            chain before { type filter hook output priority 0; meta priority >= 8000:0 counter; }
            chain after { type filter hook postrouting priority 200; meta priority >= 8000:0 counter; }
        }";
        let loaded = testns::feed(&["nft", "-f", "-"], watch);
        assert!(loaded.status.success(), "{}", String::from_utf8_lossy(&loaded.stderr));
        for _ in 0..10 {
            network.ask(1);
        }
        let packets = |chain: &str| testns::sh(&format!("nft list chain ip watch {chain}"));
        assert!(packets("before").contains("counter packets 10 "), "{}", packets("before"));
        assert!(packets("after").contains("counter packets 0 "), "{}", packets("after"));
    });
}
