//! Compares the objects and the settings with this node's interfaces and addresses.

use std::collections::BTreeMap;
use std::fs;
use std::net::IpAddr;

use ipnet::IpNet;
use sluicegate_iptables_save::Save;
use sluicegate_service_rules::iptables::{self, BackEnd};
use sluicegate_services::{Cluster, DetectLocal, Family, Node, NodePortAddress, NodePortAddresses};

use crate::Visible;

/// Returns why no traffic is recognised as that of pods, where it is recognised by an interface and there is
/// none of that name; `None` where there is one, or pods are recognised by their addresses.
///
/// The interfaces are those of the calling thread's network namespace.
#[must_use]
pub fn missing_device(detect_local: &DetectLocal) -> Option<String> {
    let devices = fs::read_to_string("/proc/thread-self/net/dev").ok()?;
    missing_among(detect_local, &devices)
}

fn missing_among(detect_local: &DetectLocal, devices: &str) -> Option<String> {
    let mut names = devices.lines().skip(2).filter_map(|line| Some(line.split_once(':')?.0.trim()));
    let (what, flag) = match detect_local {
        DetectLocal::Interface(name) if !names.any(|device| device == name.as_str()) => {
            (format!("is called {name}"), "--pod-bridge-interface")
        }
        DetectLocal::InterfacePrefix(prefix) if !names.any(|device| device.starts_with(prefix.as_str())) => {
            (format!("has a name that begins with {prefix}"), "--pod-interface-name-prefix")
        }
        _ => return None,
    };
    Some(format!(
        "no interface of this node {what} ({flag}): as long as there is none, pods are taken for clients from outside"
    ))
}

/// Returns what is not known of this node, each in a sentence with what follows: that no Node object has its
/// name, and that node ports are answered everywhere for want of its address. `nodes` are all Node objects.
#[must_use]
pub fn of_this_node<'n>(
    cluster: &Cluster,
    nodes: impl IntoIterator<Item = &'n Node>,
    node_ports: &NodePortAddresses,
) -> Vec<String> {
    let this = cluster.node();
    let name = Visible(&this.name);
    let mut names: Vec<_> = nodes.into_iter().map(|node| node.name.as_str()).collect();
    names.sort_unstable();
    let mut told = Vec::new();
    if !names.is_empty() && !names.contains(&&*this.name) {
        let others: Vec<_> = names.iter().take(MOST_NAMED).map(|name| Visible(name).to_string()).collect();
        let more = if names.len() > MOST_NAMED { ", ..." } else { "" };
        told.push(format!(
            "no Node is called {name}, expected {}{more} (--hostname-override): endpoints of this node are not known \
             as such",
            others.join(", ")
        ));
    }
    let is_primary = node_ports.entries().eq([NodePortAddress::Primary]);
    for family in Family::BOTH.into_iter().filter(|family| is_primary && this.primary(*family).is_none()) {
        let mut ports = cluster.service_names().flat_map(|name| cluster.ports(name, family));
        if ports.any(|port| port.node_port.is_some()) {
            told.push(format!(
                "node {name} has no {family} address that is known: every local address answers its {family} node \
                 ports, where nodePortAddresses is `primary`"
            ));
        }
    }
    told
}

/// The most names of nodes in a sentence.
const MOST_NAMED: usize = 5;

/// Returns what is wrong with addresses of the node and of services, each fault in a sentence: an address of
/// the node that none of its interfaces has, and an external IP that belongs to a neighbour on a link.
///
/// `networks` are the addresses of this node's interfaces with the prefixes of their networks.
#[must_use]
pub fn of_objects(cluster: &Cluster, networks: &[IpNet]) -> Vec<String> {
    let is_ours = |ip: IpAddr| networks.iter().any(|net| net.addr() == ip);
    let node = cluster.node();
    let strange = node.addresses.iter().filter(|ip| !is_ours(**ip));
    let mut faults: Vec<_> = strange
        .map(|ip| {
            format!(
                "node {}: no interface of this node has its address {ip}: node ports are not answered there",
                node.name
            )
        })
        .collect();
    let mut names: Vec<_> = cluster.service_names().collect();
    names.sort();
    for name in names {
        let ips = cluster.service(name).into_iter().flat_map(|service| &service.external_ips);
        for ip in ips.filter(|ip| !is_ours(**ip)) {
            // A network of one address has no neighbours.
            let net = networks.iter().find(|net| net.prefix_len() < net.max_prefix_len() && net.contains(ip));
            if let Some(net) = net {
                faults.push(format!(
                    "Service {name}: the external IP {ip} is in the network {} of this node, where it may be \
                     the address of a neighbour: this node takes what is sent there",
                    net.trunc()
                ));
            }
        }
    }
    faults
}

/// Returns whether a rule of iptables keeps what comes in from a link away from 127.0.0.0/8, as the kubelet's chain
/// `KUBE-FIREWALL` does and that of a proxy in iptables mode. What cannot be read is no guard.
#[must_use]
pub fn localnet_is_guarded() -> bool {
    let guards = |back_end: BackEnd| {
        if back_end == BackEnd::Legacy && !super::legacy_is_there(Family::Ipv4) {
            return false;
        }
        let opened = iptables::open(Some(back_end), &[Family::Ipv4]).ok();
        let saved = opened.into_iter().flatten().next().and_then(|mut tables| tables.list().ok());
        saved.is_some_and(|save| is_guarded(&save))
    };
    BackEnd::BOTH.into_iter().any(guards)
}

fn is_guarded(save: &Save<'_>) -> bool {
    save.tables().filter(|table| table.name() == "filter").any(|table| {
        let words = |chain: &str| -> Vec<String> {
            table
                .rules()
                .filter(|rule| rule.chain() == chain)
                .map(|rule| format!(" {} ", rule.text()))
                .collect()
        };
        // A jump that some packets do not take guards nobody from these.
        let jumps = |rule: &String| rule.trim() == "-j KUBE-FIREWALL";
        let drops = |rule: &String| {
            ["! -s 127.0.0.0/8 ", " -d 127.0.0.0/8 ", " -j DROP "].iter().all(|words| rule.contains(words))
        };
        words("INPUT").iter().any(jumps) && words("KUBE-FIREWALL").iter().any(drops)
    })
}

/// Returns, for ipvs mode, the addresses of services that are addresses of other nodes: this node takes such
/// an address for its own, and no longer reaches that node.
#[must_use]
pub fn of_other_nodes<'n>(cluster: &Cluster, nodes: impl IntoIterator<Item = &'n Node>) -> Vec<String> {
    let this = cluster.node();
    let others = nodes.into_iter().filter(|node| node.name != this.name);
    let owners: BTreeMap<IpAddr, &str> = others
        .flat_map(|node| node.addresses.iter().map(|ip| (*ip, node.name.as_str())))
        .filter(|(ip, _)| !this.addresses.contains(ip))
        .collect();
    if owners.is_empty() {
        return Vec::new();
    }
    let mut faults = Vec::new();
    // A run loop asks often, and hardly ever is there one: only what is found is sorted.
    for name in cluster.service_names() {
        let Some(service) = cluster.service(name) else { continue };
        let external = service.external_ips.iter().map(|ip| (*ip, "external IP"));
        let balanced = service.load_balancer_ips.iter().map(|ip| (*ip, "load-balancer IP"));
        for (ip, what) in external.chain(balanced) {
            if let Some(node) = owners.get(&ip) {
                faults.push((
                    name,
                    format!(
                        "Service {name}: the {what} {ip} is an address of node {}: ipvs mode binds it to \
                     kube-ipvs0, so that this node reaches nothing else of that one there",
                        Visible(node)
                    ),
                ));
            }
        }
    }
    faults.sort();
    faults.into_iter().map(|(_, fault)| fault).collect()
}

#[cfg(test)]
mod tests {
    use sluicegate_services::{InterfaceName, InterfacePrefix, Port, Service, ServiceName};

    use super::*;

    const DEVICES: &str = "Inter-|   Receive\n face |bytes\n    lo:   0 0\n  eth0: 1 2\nveth-a: 3 4\n";

    #[test]
    fn a_device_that_pods_are_recognised_by_must_be_there() {
        let prefix = |text| DetectLocal::InterfacePrefix(InterfacePrefix::new(text).unwrap());
        let bridge = |text| DetectLocal::Interface(InterfaceName::new(text).unwrap());
        assert_eq!(missing_among(&prefix("veth"), DEVICES), None);
        assert_eq!(missing_among(&bridge("eth0"), DEVICES), None);
        assert_eq!(missing_among(&DetectLocal::NodeCidrs, DEVICES), None);
        assert!(missing_among(&prefix("azv"), DEVICES).is_some_and(|why| why.contains("begins with azv")));
        assert!(missing_among(&bridge("eth"), DEVICES).is_some_and(|why| why.contains("is called eth ")));
    }

    #[test]
    fn a_guard_of_localhost_is_one_that_every_packet_meets() {
        let guarded = |input: &str, firewall: &str| {
            let text = format!(
                "*filter\n:INPUT ACCEPT [0:0]\n:KUBE-FIREWALL - [0:0]\n-A INPUT {input}\n-A KUBE-FIREWALL \
                 {firewall}\nCOMMIT\n"
            );
            is_guarded(&Save::parse(&text).unwrap())
        };
        let rule = "! -s 127.0.0.0/8 -d 127.0.0.0/8 -m comment --comment \"block incoming localnet connections\" \
                    -m conntrack ! --ctstate RELATED,ESTABLISHED,DNAT -j DROP";
        assert!(guarded("-j KUBE-FIREWALL", rule));
        assert!(!guarded("-i eth1 -j KUBE-FIREWALL", rule));
        assert!(!guarded("-j ACCEPT", rule));
        assert!(!guarded("-j KUBE-FIREWALL", "-d 127.0.0.0/8 -j ACCEPT"));
        assert!(!guarded("-j KUBE-FIREWALL", "! -s 127.0.0.0/8 -d 10.0.0.0/8 -j DROP"));
    }

    #[test]
    fn addresses_of_nobody_and_of_neighbours_are_named() {
        let ip = |text: &str| text.parse::<IpAddr>().unwrap();
        let mut cluster = Cluster::new(Node::new("here", [ip("192.168.0.2"), ip("192.168.0.77")]));
        let service = Service::new([ip("172.30.0.1")], [Port::tcp("http", 80).unwrap()]).unwrap();
        let external = ["192.168.0.2", "192.168.0.9", "203.0.113.7", "10.0.0.6", "fd00::9"].map(ip);
        let name = ServiceName::new("demo", "web").unwrap();
        cluster.set_service(&name, service.with_external_ips(external));
        let networks = ["192.168.0.2/24", "10.0.0.5/32", "fd00::2/64"].map(|net| net.parse().unwrap());
        let found = of_objects(&cluster, &networks);
        assert_eq!(found.len(), 3, "{found:?}");
        for (fault, words) in found.iter().zip([
            ["node here", "192.168.0.77"],
            ["demo/web", "192.168.0.9 is in the network 192.168.0.0/24"],
            ["demo/web", "fd00::9 is in the network fd00::/64"],
        ]) {
            assert!(words.iter().all(|word| fault.contains(word)), "{fault}");
        }
        let nodes = [
            Node::new("here", [ip("192.168.0.2")]),
            Node::new("there", [ip("192.168.0.9"), ip("192.168.0.2")]),
        ];
        let found = of_other_nodes(&cluster, &nodes);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(
            found[0].starts_with("Service demo/web: the external IP 192.168.0.9 is an address of node there")
        );
    }
}
