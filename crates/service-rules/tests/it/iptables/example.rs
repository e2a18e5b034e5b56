//! The worked example: our rules equal those of kube-proxy, at first and after a change, with both back ends.

use sluicegate_service_rules::iptables::{Planner, Support};
use sluicegate_services::Family;

use crate::iptables::world::{
    BACK_ENDS, World, cluster, difference, have_iptables, restore, saved, settings,
};

const SERVICES: &str = include_str!("../../../testdata/kube-proxy/services.yaml");
const RESTORE1: &str = include_str!("../../../testdata/kube-proxy/ipt_restore1.txt");
const RESTORE2: &str = include_str!("../../../testdata/kube-proxy/ipt_restore2.txt");
const ENDPOINT: &str = "  - {addresses: [10.244.1.10], nodeName: other-node, conditions: {ready: true}}\n";

#[test]
fn the_text_has_kube_proxys_lines() {
    let planner =
        Planner::new(Family::Ipv4, &settings(), Support::default(), &cluster(SERVICES), None).unwrap();
    let sorted = |text: &str| {
        let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    let theirs = RESTORE1.replace("-j MASQUERADE\n", "-j MASQUERADE --random-fully\n");
    let ours = planner.kube_proxy_input().to_string();
    assert_eq!(sorted(&ours), sorted(&theirs), "{}", difference(&sorted(&theirs), &sorted(&ours)));
    // kube-proxy empties the kubelet's chain and puts this one rule into it. Here it is put beside what is
    // there.
    let ours = planner.input().to_string();
    assert_eq!(sorted(&ours), sorted(&without_guard(&theirs)));
}

/// Sorts the rules of shared chains by service, as ours are in another order than kube-proxy's.
fn in_order_of_services(mut lines: Vec<String>) -> Vec<String> {
    let shared = |line: &String| line.starts_with("nat -A KUBE-SERVICES ");
    let end = lines.iter().rposition(shared).expect("there are services");
    let start = lines.iter().position(shared).expect("there are services");
    assert!(lines[end].contains("must be the last rule"), "{}", lines[end]);
    lines[start..end].sort();
    lines
}

#[test]
fn both_back_ends_have_the_same_rules_as_with_kube_proxy() {
    if !have_iptables() {
        return;
    }
    for back_end in BACK_ENDS {
        let theirs = |inputs: &[&str]| {
            let mut lines = Vec::new();
            testns::netns(|| {
                for input in inputs {
                    restore(Family::Ipv4, back_end, &without_counters(input));
                }
                lines = in_order_of_services(saved(Family::Ipv4, back_end));
            });
            lines
        };
        let (first, second) = (theirs(&[RESTORE1]), theirs(&[RESTORE1, RESTORE2]));
        testns::netns(|| {
            let mut world = World::new(Family::Ipv4, back_end, &settings(), SERVICES);
            world.load();
            let ours = in_order_of_services(saved(Family::Ipv4, back_end));
            assert_eq!(ours, first, "{back_end}\n{}", difference(&first, &ours));

            let sent = world.become_(&SERVICES.replacen(ENDPOINT, "", 1)).to_string();
            assert!(sent.lines().count() <= 8, "{back_end}: {sent}");
            assert!(!sent.contains("demo/api") && !sent.contains("KUBE-SERVICES"), "{back_end}: {sent}");
            let ours = in_order_of_services(saved(Family::Ipv4, back_end));
            assert_eq!(ours, second, "{back_end}\n{}", difference(&second, &ours));
        });
    }
}

/// All but the kubelet's chain.
fn without_guard(input: &str) -> String {
    let lines = input.lines().filter(|line| !line.contains("KUBE-FIREWALL "));
    lines.map(|line| line.to_owned() + "\n").collect()
}

/// Returns kube-proxy's input for a kernel without nfacct counters.
fn without_counters(input: &str) -> String {
    let input = without_guard(input);
    let lines = input.lines().filter(|line| !line.contains("localhost_nps_accepted_pkts"));
    lines
        .map(|line| line.replace("-m nfacct --nfacct-name ct_state_invalid_dropped_pkts ", "") + "\n")
        .collect()
}
