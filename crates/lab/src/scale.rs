//! Uniform clusters of any size, to measure how the cost of a sync grows.

use std::net::Ipv4Addr;
use std::num::NonZeroU16;
use std::sync::Arc;

use sluicegate_services::{
    Cluster, Family, Node, Port, Protocol, Service, ServiceName, Slice, SliceEndpoint, SliceName, SlicePort,
};

/// Returns a cluster of `services` services with one TCP port and `endpoints` ready endpoints each (15 at
/// most), on another node.
#[must_use]
pub fn uniform_cluster(services: u32, endpoints: u32) -> Cluster {
    let mut cluster = Cluster::new(Node {
        name: "node".to_owned(),
        addresses: vec![Ipv4Addr::new(192, 168, 0, 2).into()],
        ..Node::default()
    });
    for index in 0..services {
        cluster.set_service(&service_name(index), Some(service(index)));
        cluster.set_slice(&slice_name(index), Some(slice(index, 0..endpoints)));
    }
    cluster
}

/// Replaces the last endpoint of the service with this index by one that it has not had; and back, the next
/// time.
pub fn change_one(cluster: &mut Cluster, index: u32, endpoints: u32) {
    let last = slice(index, 0..endpoints);
    let name = slice_name(index);
    let is_first = cluster.slices(&last.service).any(|current| *current == last);
    let others = (0..endpoints.saturating_sub(1)).chain([if is_first { endpoints } else { endpoints - 1 }]);
    cluster.set_slice(&name, Some(slice(index, others)));
}

fn service(index: u32) -> Service {
    let [_, a, b, c] = index.to_be_bytes();
    Service {
        cluster_ips: [Some(Ipv4Addr::new(172, 30 + a, b, c).into()), None],
        ports: Box::new([Port { name: "http".into(), protocol: Protocol::Tcp, port: HTTP, node_port: None }]),
        external_ips: Box::default(),
        forbidden_external_ips: Box::default(),
        load_balancer_ips: Box::default(),
        source_ranges: Box::default(),
        external_local: false,
        internal_local: false,
        affinity_seconds: None,
        health_check_node_port: None,
        scheduler: None,
        created: None,
        source_ranges_incomplete: false,
    }
}

fn slice(index: u32, endpoints: impl Iterator<Item = u32>) -> Slice {
    let node: Arc<str> = "other-node".into();
    let endpoint = |place: u32| SliceEndpoint {
        ip: Ipv4Addr::from_bits(Ipv4Addr::new(10, 0, 0, 0).to_bits() + index * 16 + place + 1).into(),
        node: Some(Arc::clone(&node)),
        ready: true,
        serving: true,
        terminating: false,
        hints: None,
    };
    Slice {
        service: service_name(index),
        family: Family::Ipv4,
        ports: Box::new([SlicePort { name: "http".into(), protocol: Protocol::Tcp, port: TARGET }]),
        endpoints: endpoints.map(endpoint).collect(),
        last_change: None,
    }
}

fn service_name(index: u32) -> ServiceName {
    ServiceName::new("scale", &format!("service-{index}")).expect("a DNS label")
}

fn slice_name(index: u32) -> SliceName {
    SliceName { namespace: "scale".into(), name: format!("service-{index}").into() }
}

const HTTP: NonZeroU16 = NonZeroU16::new(80).unwrap();
const TARGET: NonZeroU16 = NonZeroU16::new(8080).unwrap();
