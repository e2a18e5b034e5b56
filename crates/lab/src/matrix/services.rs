//! The services of the matrix, one a variation, and the network that they are asked in.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::num::NonZeroU16;
use std::sync::Arc;

use crate::{NetworkSpec, PodSpec};
use ipnet::IpNet;
use sluicegate_services::{
    Cluster, Family, Node, Port, Protocol, Service, ServiceName, Slice, SliceEndpoint, SliceName, SlicePort,
};

#[cfg(test)]
use super::reference::Client;
use super::reference::{Endpoints, Extra, Front, Place, Policy, Variation};

pub(super) const NODE: &str = "matrix-node";
pub(super) const GATEWAY: (Ipv4Addr, Ipv6Addr) =
    (Ipv4Addr::new(10, 244, 0, 1), Ipv6Addr::new(0xfd00, 0x10, 0x244, 0, 0, 0, 0, 1));
const NODE_ADDRESS: (Ipv4Addr, Ipv6Addr) =
    (Ipv4Addr::new(192, 168, 0, 2), Ipv6Addr::new(0xfd00, 0x192, 0x168, 0, 0, 0, 0, 2));
const HERE: (Ipv4Addr, Ipv6Addr) =
    (Ipv4Addr::new(10, 244, 0, 10), Ipv6Addr::new(0xfd00, 0x10, 0x244, 0, 0, 0, 0, 0x10));
const BESIDE: (Ipv4Addr, Ipv6Addr) =
    (Ipv4Addr::new(10, 244, 0, 11), Ipv6Addr::new(0xfd00, 0x10, 0x244, 0, 0, 0, 0, 0x11));
const THERE: (Ipv4Addr, Ipv6Addr) =
    (Ipv4Addr::new(10, 244, 1, 10), Ipv6Addr::new(0xfd00, 0x10, 0x244, 1, 0, 0, 0, 0x10));
const PORT: NonZeroU16 = NonZeroU16::new(80).unwrap();
const TARGET_PORT: NonZeroU16 = NonZeroU16::new(8080).unwrap();

/// The network: endpoints here and there, a pod here and one far away that are none, and a client outside.
pub(super) fn network() -> NetworkSpec {
    let pod = |name, last: u16, there: u16, ports| PodSpec {
        name,
        address: (
            Ipv4Addr::from([10, 244, there.to_be_bytes()[1], last.to_be_bytes()[1]]),
            Ipv6Addr::new(0xfd00, 0x10, 0x244, there, 0, 0, 0, last),
        ),
        ports,
    };
    NetworkSpec {
        node: NODE_ADDRESS,
        client: (Ipv4Addr::new(192, 168, 0, 100), Ipv6Addr::new(0xfd00, 0x192, 0x168, 0, 0, 0, 0, 0x100)),
        gateway: GATEWAY,
        pods: vec![
            PodSpec { name: "here", address: HERE, ports: vec![TARGET_PORT.get()] },
            PodSpec { name: "beside", address: BESIDE, ports: vec![TARGET_PORT.get()] },
            PodSpec { name: "there", address: THERE, ports: vec![TARGET_PORT.get()] },
            pod("pod", 0x20, 0, vec![]),
            pod("far", 0x20, 1, vec![]),
        ],
        routed: SERVICE_NETWORKS.iter().map(|net| net.parse().expect("a network of this file")).collect(),
    }
}

/// Where service addresses are; the client sends them to the node.
const SERVICE_NETWORKS: &[&str] = &[
    "172.30.0.0/16",
    "198.51.100.0/24",
    "203.0.113.0/24",
    "fd00:172:30::/112",
    "2001:db8:51::/112",
    "2001:db8:113::/112",
];

/// The networks of pods, for the local detector.
pub(super) fn cluster_cidrs() -> Vec<IpNet> {
    ["10.244.0.0/16", "fd00:10:244::/48"]
        .iter()
        .map(|net| net.parse().expect("a network of this file"))
        .collect()
}

/// The cluster with a service for each variation.
pub(super) fn cluster(variations: &[Variation]) -> Cluster {
    let mut cluster = Cluster::new(Node {
        name: NODE.to_owned(),
        addresses: vec![NODE_ADDRESS.0.into(), NODE_ADDRESS.1.into()],
        ..Node::default()
    });
    cluster.set_service_cidr(
        "matrix",
        &["172.30.0.0/16".parse().expect("a network"), "fd00:172:30::/112".parse().expect("a network")],
    );
    for (index, variation) in variations.iter().enumerate() {
        let name = service_name(index);
        cluster.set_service(&name, Some(service(variation, index)));
        for family in Family::BOTH {
            let slice = SliceName {
                namespace: "matrix".into(),
                name: format!("v{index}-{family}").to_lowercase().into(),
            };
            cluster.set_slice(&slice, Some(slice_of(&name, variation, family)));
        }
    }
    cluster
}

/// The address and port of a service at one of its fronts.
pub(super) fn target(index: usize, front: Front, family: Family) -> SocketAddr {
    let [_, _, high, low] = u32::try_from(index + 1).unwrap_or(0).to_be_bytes();
    let tail = u16::from_be_bytes([high, low]);
    let ip: IpAddr = match (front, family) {
        (Front::ClusterIp, Family::Ipv4) => Ipv4Addr::from([172, 30, high + 1, low]).into(),
        (Front::ExternalIp, Family::Ipv4) => Ipv4Addr::from([198, 51, 100, low]).into(),
        (Front::LoadBalancerIp, Family::Ipv4) => Ipv4Addr::from([203, 0, 113, low]).into(),
        (Front::NodePort, Family::Ipv4) => NODE_ADDRESS.0.into(),
        (Front::ClusterIp, Family::Ipv6) => Ipv6Addr::new(0xfd00, 0x172, 0x30, 0, 0, 0, 0, tail).into(),
        (Front::ExternalIp, Family::Ipv6) => Ipv6Addr::new(0x2001, 0xdb8, 0x51, 0, 0, 0, 0, tail).into(),
        (Front::LoadBalancerIp, Family::Ipv6) => Ipv6Addr::new(0x2001, 0xdb8, 0x113, 0, 0, 0, 0, tail).into(),
        (Front::NodePort, Family::Ipv6) => NODE_ADDRESS.1.into(),
    };
    let port = if front == Front::NodePort { node_port(index) } else { PORT };
    SocketAddr::new(ip, port.get())
}

/// The address that a client asks from.
#[cfg(test)]
pub(super) fn source(client: Client, family: Family) -> IpAddr {
    let spec = network();
    let (ipv4, ipv6) = match client.host() {
        "node" => spec.node,
        "client" => spec.client,
        name => spec.pods.iter().find(|pod| pod.name == name).expect("a pod of the network").address,
    };
    match family {
        Family::Ipv4 => ipv4.into(),
        Family::Ipv6 => ipv6.into(),
    }
}

/// The place of an endpoint that a packet may be sent to.
#[cfg(test)]
pub(super) fn place_of(choice: &sluicegate_service_rules::explain::Choice) -> Place {
    let is_at = |(ipv4, ipv6): (Ipv4Addr, Ipv6Addr)| {
        [IpAddr::from(ipv4), ipv6.into()].contains(&choice.endpoint.ip())
            && choice.endpoint.port() == TARGET_PORT.get()
    };
    let place = Place::ALL.into_iter().find(|place| is_at(address_of(*place).0));
    place.unwrap_or_else(|| panic!("{choice} is no endpoint of the matrix"))
}

fn service(variation: &Variation, index: usize) -> Service {
    let both = |front| Family::BOTH.map(|family| target(index, front, family).ip());
    let ports = [Protocol::Tcp, Protocol::Udp].map(|protocol| Port {
        name: protocol.as_str().into(),
        protocol,
        port: PORT,
        node_port: Some(node_port(index)),
    });
    let ranges: &[&str] = match variation.extra {
        Extra::Plain | Extra::Affinity => &[],
        Extra::RangesAllow => &["192.168.0.0/24", "10.244.0.0/16", "fd00:192:168::/64", "fd00:10:244::/48"],
        Extra::RangesRefuse => &["192.0.2.0/24", "2001:db8::/64"],
        Extra::RangesNode => &["192.168.0.2/32", "fd00:192:168::2/128"],
    };
    Service {
        cluster_ips: both(Front::ClusterIp).map(Some),
        ports: Box::new(ports),
        external_ips: Box::new(both(Front::ExternalIp)),
        forbidden_external_ips: Box::default(),
        load_balancer_ips: Box::new(both(Front::LoadBalancerIp)),
        source_ranges: ranges.iter().map(|net| net.parse().expect("a network of this file")).collect(),
        external_local: variation.external == Policy::Local,
        internal_local: variation.internal == Policy::Local,
        affinity_seconds: (variation.extra == Extra::Affinity).then_some(3600),
        health_check_node_port: None,
        scheduler: None,
        created: None,
        source_ranges_incomplete: false,
    }
}

fn slice_of(service: &ServiceName, variation: &Variation, family: Family) -> Slice {
    let ports = [Protocol::Tcp, Protocol::Udp].map(|protocol| SlicePort {
        name: protocol.as_str().into(),
        protocol,
        port: TARGET_PORT,
    });
    let endpoint = |place: Place, terminating: bool| {
        let (address, node) = address_of(place);
        SliceEndpoint {
            ip: match family {
                Family::Ipv4 => address.0.into(),
                Family::Ipv6 => address.1.into(),
            },
            node: Some(Arc::from(node)),
            ready: !terminating,
            serving: true,
            terminating,
            hints: None,
        }
    };
    let endpoints = match variation.endpoints {
        Endpoints::Local => vec![endpoint(Place::Here, false)],
        Endpoints::Remote => vec![endpoint(Place::There, false)],
        Endpoints::Both => vec![endpoint(Place::Here, false), endpoint(Place::There, false)],
        Endpoints::Several => Place::ALL.map(|place| endpoint(place, false)).into(),
        Endpoints::None => vec![],
        Endpoints::LocalTerminating => vec![endpoint(Place::Here, true), endpoint(Place::There, false)],
        Endpoints::AllTerminating => vec![endpoint(Place::Here, true), endpoint(Place::There, true)],
    };
    Slice {
        service: service.clone(),
        family,
        ports: Box::new(ports),
        endpoints: endpoints.into(),
        last_change: None,
    }
}

/// The addresses of an endpoint, and the name of its node.
const fn address_of(place: Place) -> ((Ipv4Addr, Ipv6Addr), &'static str) {
    match place {
        Place::Here => (HERE, NODE),
        Place::Beside => (BESIDE, NODE),
        Place::There => (THERE, "other-node"),
    }
}

fn service_name(index: usize) -> ServiceName {
    ServiceName::new("matrix", &format!("v{index}")).expect("a DNS label")
}

fn node_port(index: usize) -> NonZeroU16 {
    u16::try_from(30_000 + index).ok().and_then(NonZeroU16::new).expect("a port")
}
