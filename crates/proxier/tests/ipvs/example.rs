//! The worked example: what we want of the kernel is what kube-proxy makes.

use sluicegate_proxier::model::{Cluster, DetectLocal, Family, Found, Node};
use sluicegate_proxier::plan::ipvs::{Planner, Settings};
use sluicegate_proxier::source;

const SERVICES: &str = include_str!("../../testdata/kube-proxy/services.yaml");
const SETS: &str = include_str!("../../testdata/kube-proxy/ipvs_ipset_restore.txt");
const SERVERS: &str = include_str!("../../testdata/kube-proxy/ipvsadm_restore.txt");
const RULES: &str = include_str!("../../testdata/kube-proxy/ipvs_restore1.txt");

/// A cluster, seen from the node of the example.
pub(crate) fn cluster(manifests: &str) -> Cluster {
    let mut found = Found::default();
    source::read_str("test.yaml", manifests, |manifest| found.add(manifest)).expect("the manifests parse");
    let node = Node {
        name: "test-node".to_owned(),
        addresses: ["192.168.0.2", "fd00:192:168::2"].map(|ip| ip.parse().expect("an address")).into(),
        ..Node::default()
    };
    let (cluster, problems) = found.into_cluster(node);
    assert_eq!(problems, []);
    cluster
}

pub(crate) fn settings() -> Settings {
    let nets = ["10.244.0.0/16", "fd00:10:244::/48"].map(|net| net.parse().expect("a network"));
    let detect_local = DetectLocal { cluster_cidrs: nets.into(), ..DetectLocal::default() };
    Settings { detect_local, ..Settings::default() }
}

/// The lines below each heading.
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
fn everything_is_as_kube_proxy_has_it() {
    let planner = Planner::new(Family::V4, &settings(), &cluster(SERVICES), None).unwrap();
    let script = planner.whole().script(Family::V4).to_string();
    let [(h1, sets), (h2, servers), (h3, addresses), (h4, rules)] = &sections(&script)[..] else {
        panic!("{script}");
    };
    let headings =
        ["ipset restore", "ipvsadm -R", "addresses of kube-ipvs0: ip -batch -", "iptables-restore --noflush"];
    assert_eq!([h1, h2, h3, h4].map(|heading| *heading), headings);
    assert_eq!(sorted(sets.iter().copied()), sorted(SETS.lines()));
    assert_eq!(sorted(servers.iter().copied()), sorted(SERVERS.lines()));
    // Rules stand in an order, which is kube-proxy's: in each chain, and of tables and chains.
    assert_eq!(in_chains(rules), in_chains(&RULES.lines().collect::<Vec<_>>()));
    let bound = SETS.lines().filter_map(|line| line.strip_prefix("add KUBE-IPVS-IPS "));
    let bound = bound.map(|ip| format!("address add {ip}/32 dev kube-ipvs0"));
    assert_eq!(sorted(addresses.iter().copied()), sorted(bound));
}

/// Rules by table and chain, in order.
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
    let mut planner = Planner::new(Family::V4, &settings(), &cluster, None).unwrap();
    let slice = cluster.slice_names().find(|name| &*name.name == "web-1").unwrap().clone();
    let service = cluster.service_names().find(|name| name.name() == "web").unwrap().clone();
    let mut web = cluster.slices(&service).next().unwrap().clone();
    web.endpoints =
        web.endpoints.iter().filter(|e| e.node.as_deref() == Some("test-node")).cloned().collect();
    cluster.set_slice(&slice, Some(web));
    let changes = cluster.take_changes();
    let change = planner.sync(&cluster, &changes).unwrap();
    assert_eq!(
        change.script(Family::V4).to_string(),
        "# ipvsadm -R\n-d -t 172.30.10.1:80 -r 10.244.1.10:8080\n"
    );
}
