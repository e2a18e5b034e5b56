//! The worked example: the plan equals the objects of kube-proxy.

use crate::manifests::Manifests;

use sluicegate_service_rules::ipvs::{Planner, Settings};
use sluicegate_services::{Cluster, DetectLocal, Family, Node};

const SERVICES: &str = include_str!("../../../testdata/kube-proxy/services.yaml");
const SETS: &str = include_str!("../../../testdata/kube-proxy/ipvs_ipset_restore.txt");
const SERVERS: &str = include_str!("../../../testdata/kube-proxy/ipvsadm_restore.txt");
const RULES: &str = include_str!("../../../testdata/kube-proxy/ipvs_restore1.txt");

/// Returns a cluster as seen from the node of the example.
pub(crate) fn cluster(manifests: &str) -> Cluster {
    let node = Node {
        name: "test-node".to_owned(),
        addresses: ["192.168.0.2", "fd00:192:168::2"].map(|ip| ip.parse().expect("an address")).into(),
        ..Node::default()
    };
    Manifests::read(manifests).into_cluster(node)
}

pub(crate) fn settings() -> Settings {
    let nets = ["10.244.0.0/16", "fd00:10:244::/48"].map(|net| net.parse().expect("a network"));
    let detect_local = DetectLocal::ClusterCidrs(nets.into());
    Settings { detect_local, ..Settings::default() }
}

/// Returns the lines after each heading.
pub(crate) fn sections(script: &str) -> Vec<(&str, Vec<&str>)> {
    let mut sections: Vec<(&str, Vec<&str>)> = Vec::new();
    for line in script.lines() {
        match (line.strip_prefix("# "), sections.last_mut()) {
            (Some(heading), _) => sections.push((heading, Vec::new())),
            (None, Some((_, lines))) => lines.push(line),
            (None, None) => panic!("a line before the first heading: {line}"),
        }
    }
    sections
}

fn sorted(lines: impl IntoIterator<Item = impl Into<String>>) -> Vec<String> {
    let mut lines: Vec<String> = lines.into_iter().map(Into::into).collect();
    lines.sort();
    lines
}

#[test]
fn all_objects_equal_those_of_kube_proxy() {
    let planner = Planner::new(Family::Ipv4, &settings(), &cluster(SERVICES), None).unwrap();
    let script = planner.whole().script(Family::Ipv4).to_string();
    let [(h1, sets), (h2, servers), (h3, addresses), (h4, rules)] = &sections(&script)[..] else {
        panic!("{script}");
    };
    let headings =
        ["ipset restore", "ipvsadm -R", "addresses of kube-ipvs0: ip -batch -", "iptables-restore --noflush"];
    assert_eq!([h1, h2, h3, h4].map(|heading| *heading), headings);
    assert_eq!(sorted(sets.iter().copied()), sorted(SETS.lines()));
    assert_eq!(sorted(servers.iter().copied()), sorted(SERVERS.lines()));
    // Rules are in kube-proxy's order: in each chain, and the tables and chains themselves.
    assert_eq!(in_chains(rules), in_chains(&RULES.lines().collect::<Vec<_>>()));
    let bound = SETS.lines().filter_map(|line| line.strip_prefix("add KUBE-IPVS-IPS "));
    let bound = bound.map(|ip| format!("address add {ip}/32 dev kube-ipvs0"));
    assert_eq!(sorted(addresses.iter().copied()), sorted(bound));
}

/// Returns the rules by table and chain, in order.
fn in_chains(lines: &[&str]) -> Vec<String> {
    let mut table = "";
    let mut rules = Vec::new();
    for line in lines {
        table = line.strip_prefix('*').unwrap_or(table);
        rules.push((table, line.split(' ').nth(1).unwrap_or_default(), *line));
    }
    rules.sort_by_key(|(table, chain, _)| (*table, *chain));
    rules.into_iter().map(|(table, _, line)| format!("{table}: {line}")).collect()
}

#[test]
fn a_lost_endpoint_is_one_command() {
    let mut cluster = cluster(SERVICES);
    cluster.take_changes();
    let mut planner = Planner::new(Family::Ipv4, &settings(), &cluster, None).unwrap();
    let slice = cluster.slice_names().find(|name| &*name.name == "web-1").unwrap().clone();
    let service = cluster.service_names().find(|name| name.name() == "web").unwrap().clone();
    let mut web = cluster.slices(&service).next().unwrap().clone();
    web.endpoints =
        web.endpoints.iter().filter(|e| e.node.as_deref() == Some("test-node")).cloned().collect();
    cluster.set_slice(&slice, Some(web));
    let changes = cluster.take_changes();
    let change = planner.sync(&cluster, &changes).unwrap();
    assert_eq!(
        change.script(Family::Ipv4).to_string(),
        "# ipvsadm -R\n-d -t 172.30.10.1:80 -r 10.244.1.10:8080\n"
    );
}
