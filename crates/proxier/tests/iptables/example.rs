//! The worked example: what we load is what kube-proxy loads, at first and after a change, by both back ends.

use sluicegate_proxier::model::Family;
use sluicegate_proxier::plan::iptables::{Planner, Support};

use crate::world::{BACK_ENDS, World, cluster, difference, have_iptables, restore, saved, settings};

const SERVICES: &str = include_str!("../../testdata/kube-proxy/services.yaml");
const RESTORE1: &str = include_str!("../../testdata/kube-proxy/ipt_restore1.txt");
const RESTORE2: &str = include_str!("../../testdata/kube-proxy/ipt_restore2.txt");
const ENDPOINT: &str = "  - {addresses: [10.244.1.10], nodeName: other-node, conditions: {ready: true}}\n";

#[test]
fn the_text_has_kube_proxys_lines() {
    let planner =
        Planner::new(Family::V4, &settings(), Support::default(), &cluster(SERVICES), None).unwrap();
    let sorted = |text: &str| {
        let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    let theirs = RESTORE1.replace("-j MASQUERADE\n", "-j MASQUERADE --random-fully\n");
    let (ours, theirs) = (sorted(&planner.input().to_string()), sorted(&theirs));
    assert_eq!(ours, theirs, "{}", difference(&theirs, &ours));
}

/// Services come in another order, which iptables-save shows in the shared chains.
fn in_order_of_services(mut lines: Vec<String>) -> Vec<String> {
    let shared = |line: &String| line.starts_with("nat -A KUBE-SERVICES ");
    let end = lines.iter().rposition(shared).expect("there are services");
    let start = lines.iter().position(shared).expect("there are services");
    assert!(lines[end].contains("must be the last rule"), "{}", lines[end]);
    lines[start..end].sort();
    lines
}

#[test]
fn both_back_ends_hold_what_they_hold_of_kube_proxy() {
    if !have_iptables() {
        return;
    }
    for back_end in BACK_ENDS {
        let theirs = |inputs: &[&str]| {
            let mut lines = Vec::new();
            testns::netns(|| {
                for input in inputs {
                    restore(Family::V4, back_end, &without_counters(input));
                }
                lines = in_order_of_services(saved(Family::V4, back_end));
            });
            lines
        };
        let (first, second) = (theirs(&[RESTORE1]), theirs(&[RESTORE1, RESTORE2]));
        testns::netns(|| {
            let mut world = World::new(Family::V4, back_end, &settings(), SERVICES);
            world.load();
            let ours = in_order_of_services(saved(Family::V4, back_end));
            assert_eq!(ours, first, "{back_end}\n{}", difference(&first, &ours));

            let sent = world.become_(&SERVICES.replacen(ENDPOINT, "", 1)).to_string();
            assert!(sent.lines().count() <= 8, "{back_end}: {sent}");
            assert!(!sent.contains("demo/api") && !sent.contains("KUBE-SERVICES"), "{back_end}: {sent}");
            let ours = in_order_of_services(saved(Family::V4, back_end));
            assert_eq!(ours, second, "{back_end}\n{}", difference(&second, &ours));
        });
    }
}

/// What kube-proxy writes where the counters of nfacct cannot be had.
fn without_counters(input: &str) -> String {
    let lines = input.lines().filter(|line| !line.contains("localhost_nps_accepted_pkts"));
    lines
        .map(|line| line.replace("-m nfacct --nfacct-name ct_state_invalid_dropped_pkts ", "") + "\n")
        .collect()
}
