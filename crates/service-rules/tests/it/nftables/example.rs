//! The worked example: layout `chains` loads the rules of kube-proxy, and layout `maps` can be listed and
//! loaded again without loss.

use sluicegate_nftables::Transaction;
use sluicegate_service_rules::nftables::{Layout, Planner};

use crate::nftables::world::{World, difference, listing, run_nft, run_nft_text, settings};

const SERVICES: &str = include_str!("../../../testdata/kube-proxy/services.yaml");
const TX1: &str = include_str!("../../../testdata/kube-proxy/nft_tx1.nft");
const TX2: &str = include_str!("../../../testdata/kube-proxy/nft_tx2.nft");
const TX3: &str = include_str!("../../../testdata/kube-proxy/nft_tx3.nft");
const TX4: &str = include_str!("../../../testdata/kube-proxy/nft_tx4.nft");

fn theirs(scripts: &[&str]) -> Vec<String> {
    let mut lines = Vec::new();
    testns::netns(|| {
        scripts.iter().for_each(|script| run_nft_text(script));
        lines = listing("ip kube-proxy");
    });
    lines
}

fn without_web() -> String {
    let is_web = |document: &&str| {
        document.contains("name: web,") || document.contains("name: web}") || document.contains("web-1")
    };
    let documents: Vec<_> = SERVICES.split("\n---\n").filter(|document| !is_web(document)).collect();
    assert_eq!(documents.len(), 5);
    documents.join("\n---\n")
}

#[test]
fn the_chains_layout_equals_that_of_kube_proxy_before_and_after_a_change() {
    if !testns::have(&["nft"]) {
        return;
    }
    let (first, second) = (theirs(&[TX1]), theirs(&[TX1, TX2]));
    let (third, fourth) = (theirs(&[TX1, TX2, TX3]), theirs(&[TX1, TX2, TX3, TX4]));
    testns::netns(|| {
        let mut world = World::new(&settings(Layout::Chains), SERVICES);
        world.load();
        let ours = listing("ip kube-proxy");
        assert_eq!(ours, first, "{}", difference(&first, &ours));

        let line = "  - {addresses: [10.244.1.10], nodeName: other-node, conditions: {ready: true}}\n";
        let sent = world.become_(&SERVICES.replacen(line, "", 1));
        assert_eq!(sent.operations().len(), 2, "flush the chain, add its rule: {sent}");
        let ours = listing("ip kube-proxy");
        assert_eq!(ours, second, "{}", difference(&second, &ours));

        world.become_(&without_web());
        let ours = listing("ip kube-proxy");
        assert_eq!(ours, third, "{}", difference(&third, &ours));

        world.settle();
        let ours = listing("ip kube-proxy");
        assert_eq!(ours, fourth, "{}", difference(&fourth, &ours));
    });
}

#[test]
fn the_listing_of_the_maps_layout_can_be_loaded_again() {
    if !testns::have(&["nft"]) {
        return;
    }
    testns::netns(|| {
        let mut world = World::new(&settings(Layout::Maps), SERVICES);
        world.load();
        let listed = testns::sh("nft list ruleset");
        run_nft_text(&format!("flush ruleset\n{listed}"));
        assert_eq!(testns::sh("nft list ruleset"), listed);
        run_nft(&Planner::cleanup());
        assert_eq!(testns::sh("nft list ruleset"), "");
        run_nft(&Planner::cleanup());
    });
}

#[test]
fn a_script_replaces_a_table_of_either_layout() {
    if !testns::have(&["nft"]) {
        return;
    }
    testns::netns(|| {
        let mut fresh = Vec::new();
        for layout in [Layout::Chains, Layout::Maps, Layout::Chains, Layout::Maps, Layout::Maps] {
            World::new(&settings(layout), SERVICES).load();
            fresh.push((layout, listing("ip kube-proxy"), listing("ip6 kube-proxy")));
        }
        assert_eq!(fresh[0], fresh[2]);
        assert_eq!(fresh[1], fresh[3]);
        assert_eq!(fresh[1], fresh[4]);
        assert_ne!(fresh[0].1, fresh[1].1);
    });
}

#[test]
fn the_number_of_rules_and_chains_does_not_depend_on_the_number_of_services() {
    let shape = |count: u32| {
        let service = |n: u32| {
            let (ip, endpoint) = (
                format!("172.30.{}.{}", n / 250, n % 250 + 1),
                format!("10.244.{}.{}", n / 250, n % 250 + 1),
            );
            format!(
                "apiVersion: v1\nkind: Service\nmetadata: {{name: s{n}}}\nspec: {{clusterIP: {ip}, type: \
                 LoadBalancer, externalTrafficPolicy: Local, loadBalancerSourceRanges: [10.0.0.0/8], ports: \
                 [{{port: 80, nodePort: {}}}]}}\nstatus: {{loadBalancer: {{ingress: [{{ip: \
                 5.5.{}.{}}}]}}}}\n---\napiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: \
                 {{name: s{n}, labels: {{kubernetes.io/service-name: s{n}}}}}\naddressType: IPv4\nports: \
                 [{{name: '', port: 80}}]\nendpoints: [{{addresses: [{endpoint}], nodeName: \
                 test-node}}]\n---\n",
                30000 + n,
                n / 250,
                n % 250 + 1
            )
        };
        let manifests: String = (0..count).map(service).collect();
        let script = World::new(&settings(Layout::Maps), &manifests).planner.script().to_string();
        let count = |word: &str| script.lines().filter(|line| line.starts_with(word)).count();
        (count("add rule"), count("add chain"), count("add set") + count("add map"))
    };
    assert_eq!(shape(10), shape(1000));
}

#[test]
fn an_empty_change_sends_nothing() {
    let mut world = World::new(&settings(Layout::Maps), SERVICES);
    world.planner.script();
    let changes = world.cluster.take_changes();
    let sent = world.planner.sync(&world.cluster, &changes, std::time::Instant::now());
    assert_eq!(sent, Transaction::new());
}
