//! What is planned is printed in one order, byte for byte, in every mode and layout: whatever the hashes of
//! the process, and in whatever order the services came.

use std::fmt::Write as _;

use sluicegate_service_rules::nftables::Layout;
use sluicegate_service_rules::{iptables, ipvs, nftables};
use sluicegate_services::{Cluster, Family, Node};

use crate::manifests::Manifests;

/// Services of every kind, with endpoints here and elsewhere, external IPs, source ranges and affinity.
fn services() -> Vec<String> {
    let mut all = Vec::new();
    for n in 1..=40 {
        let (affinity, policy) = if n % 3 == 0 { ("ClientIP", "Local") } else { ("None", "Cluster") };
        let mut text = String::new();
        let _ = write!(
            text,
            "apiVersion: v1
kind: Service
metadata: {{namespace: demo, name: s{n}}}
spec:
  type: LoadBalancer
  clusterIP: 172.30.0.{n}
  clusterIPs: [172.30.0.{n}, 'fd00:30::{n}']
  ipFamilies: [IPv4, IPv6]
  externalIPs: [192.168.99.{n}, 'fd00:99::{n}']
  sessionAffinity: {affinity}
  externalTrafficPolicy: {policy}
  loadBalancerSourceRanges: [203.0.113.{n}/32, 198.51.100.0/24, '2001:db8::/32']
  ports: [{{name: a, port: 80, protocol: TCP, nodePort: 30{n:03}}}, {{name: b, port: 53, protocol: UDP, \
  nodePort: 31{n:03}}}]
status: {{loadBalancer: {{ingress: [{{ip: 5.6.7.{n}}}]}}}}
"
        );
        for (family, prefix) in [("IPv4", "10.244.0."), ("IPv6", "fd00:10::")] {
            if n % 5 == 0 {
                continue;
            }
            let _ = write!(
                text,
                "---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {{namespace: demo, name: s{n}-{family}, labels: {{kubernetes.io/service-name: s{n}}}}}
addressType: {family}
ports: [{{name: a, port: 8080, protocol: TCP}}, {{name: b, port: 8053, protocol: UDP}}]
endpoints: [{{addresses: ['{prefix}{n}'], nodeName: test-node}}, {{addresses: ['{prefix}1{n}'], nodeName: \
other}}]
"
            );
        }
        all.push(text);
    }
    all
}

fn cluster(services: &[String]) -> Cluster {
    let addresses = ["192.168.0.2", "fd00:192:168::2"].map(|ip| ip.parse().expect("an address"));
    Manifests::read(&services.join("---\n")).into_cluster(Node::new("test-node", addresses))
}

/// Each mode and layout, as it is printed.
fn printed(cluster: &Cluster) -> Vec<(String, String)> {
    let mut all = Vec::new();
    for layout in [Layout::Maps, Layout::Chains] {
        let settings = nftables::Settings { layout, ..nftables::Settings::default() };
        let mut planner = nftables::Planner::new(&settings, cluster, None).expect("the settings are good");
        all.push((format!("nftables, {layout:?}, replaced"), planner.replacement().to_string()));
        all.push((format!("nftables, {layout:?}"), planner.script().to_string()));
    }
    for family in Family::BOTH {
        let settings = iptables::Settings::default();
        let support = iptables::Support::default();
        let planner =
            iptables::Planner::new(family, &settings, support, cluster, None).expect("good settings");
        all.push((format!("iptables, {family}"), planner.input().to_string()));
        let planner =
            ipvs::Planner::new(family, &ipvs::Settings::default(), cluster, None).expect("good settings");
        all.push((format!("ipvs, {family}"), planner.whole().script(family).to_string()));
    }
    all
}

fn assert_same(a: &[(String, String)], b: &[(String, String)]) {
    assert_eq!(a.len(), b.len());
    for ((what, a), (_, b)) in a.iter().zip(b) {
        assert!(a.lines().count() > 100, "{what}: {a}");
        let differing = a.lines().zip(b.lines()).find(|(a, b)| a != b);
        assert!(a == b, "{what}: {differing:?}");
    }
}

#[test]
fn the_same_services_are_printed_alike_each_time_and_in_whatever_order_they_came() {
    let mut services = services();
    let first = printed(&cluster(&services));
    // Each hash map has keys of its own, so that another planner shows what depends on them.
    assert_same(&first, &printed(&cluster(&services)));
    services.reverse();
    assert_same(&first, &printed(&cluster(&services)));
    services.rotate_left(7);
    assert_same(&first, &printed(&cluster(&services)));
}

#[test]
fn a_plan_that_changed_is_printed_as_a_fresh_one() {
    let services = services();
    for layout in [Layout::Maps, Layout::Chains] {
        let settings = nftables::Settings { layout, ..nftables::Settings::default() };
        let mut cluster_of_all = cluster(&services);
        let fresh = nftables::Planner::new(&settings, &cluster_of_all, None).unwrap().script().to_string();
        cluster_of_all.take_changes();
        let mut planner = nftables::Planner::new(&settings, &cluster_of_all, None).unwrap();
        let mut names: Vec<_> = cluster_of_all.service_names().cloned().collect();
        names.sort();
        for name in names.iter().step_by(3) {
            let service = cluster_of_all.service(name).cloned();
            cluster_of_all.set_service(name, None);
            let changes = cluster_of_all.take_changes();
            planner.sync(&cluster_of_all, &changes, std::time::Instant::now());
            cluster_of_all.set_service(name, service);
            let changes = cluster_of_all.take_changes();
            planner.sync(&cluster_of_all, &changes, std::time::Instant::now());
        }
        assert_eq!(planner.script().to_string(), fresh, "{layout:?}");
    }
}
