//! Random changes of a cluster result in the same kernel state as a fresh load.

use std::time::Instant;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use sluicegate_service_rules::nftables::{Applier, Layout, Planner, Settings};
use sluicegate_services::{Family, Node, NodePortAddresses, Scheduler};

use crate::nftables::world::{World, cluster, difference, listing, run_nft, run_nft_text, settings};

/// Loads the current plan into a new namespace and compares.
fn assert_as_fresh(world: &World, settings: &Settings) {
    for table in ["ip kube-proxy", "ip6 kube-proxy"] {
        let changed = listing(table);
        let mut fresh = Vec::new();
        testns::netns(|| {
            let mut planner = Planner::new(settings, &world.cluster, None).expect("the settings are good");
            run_nft(&planner.script());
            fresh = listing(table);
        });
        // Only the difference is printed, which two whole listings would hide.

        let difference = difference(&fresh, &changed);
        assert!(changed == fresh, "fresh (-) and changed (+) in table {table}:\n{difference}");
    }
}

/// Returns the manifests of a service; each letter of `kind` stands for a field that it has, `1`, `2` and `3`
/// for a scheduler.
pub(crate) fn service(index: usize, kind: &str, endpoints: &[(u8, &str)]) -> String {
    let has = |letter: char| kind.contains(letter);
    let v6 = has('6');
    let (ip, range, lb, family) = match v6 {
        false => (
            format!("172.30.0.{}", index + 1),
            "[10.0.0.0/8, 10.1.0.0/16, 203.0.113.0/24]",
            "5.6.7.8",
            "IPv4",
        ),
        true => (format!("fd00:172:30::{}", index + 1), "['fd00::/16', 'fd00:1::/32']", "fd00:5::8", "IPv6"),
    };
    let mut spec = format!("clusterIP: '{ip}', type: LoadBalancer, ");
    if has('e') {
        spec += "externalTrafficPolicy: Local, ";
    }
    if has('i') {
        spec += "internalTrafficPolicy: Local, ";
    }
    if has('r') {
        spec += &format!("loadBalancerSourceRanges: {range}, ");
    }
    if has('a') {
        let seconds = if has('l') { 60 } else { 300 };
        spec += &format!(
            "sessionAffinity: ClientIP, sessionAffinityConfig: {{clientIP: {{timeoutSeconds: {seconds}}}}}, "
        );
    }
    if has('x') {
        let external =
            if v6 { format!("fd00:6::{}", index + 1) } else { format!("198.51.100.{}", index + 1) };
        let shared = if has('b') { format!(", '{lb}'") } else { String::new() };
        spec += &format!("externalIPs: ['{external}'{shared}], ");
    }
    let protocol = match (has('u'), has('s')) {
        (true, _) => "UDP",
        (_, true) => "SCTP",
        _ => "TCP",
    };
    let schedulers = [('1', "round-robin"), ('2', "source-hash"), ('3', "maglev:11")];
    let annotations = match schedulers.into_iter().find(|(letter, _)| has(*letter)) {
        Some((_, name)) => format!(", annotations: {{{}: '{name}'}}", Scheduler::ANNOTATION),
        None => String::new(),
    };
    let node_port = if has('n') { format!(", nodePort: {}", 30000 + index) } else { String::new() };
    spec += &format!("ports: [{{name: p, port: 80, protocol: {protocol}{node_port}}}]");
    let ingress = if has('b') { format!("[{{ip: '{lb}'}}]") } else { "[]".to_owned() };
    let list: Vec<String> = endpoints
        .iter()
        .map(|(n, state)| {
            let address = if v6 { format!("fd00:10:244::{n}") } else { format!("10.244.0.{n}") };
            let node = if state.starts_with('l') { "test-node" } else { "other" };
            let ready = state.ends_with('r');
            format!(
                "{{addresses: ['{address}'], nodeName: {node}, conditions: {{ready: {ready}, serving: \
                     true, terminating: {}}}}}",
                !ready
            )
        })
        .collect();
    format!(
        "apiVersion: v1\nkind: Service\nmetadata: {{namespace: demo, name: s{index}{annotations}}}\nspec: \
         {{{spec}}}\nstatus: {{loadBalancer: {{ingress: {ingress}}}}}\n---\n\
         apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {{namespace: demo, name: s{index}, \
         labels: {{kubernetes.io/service-name: s{index}}}}}\naddressType: {family}\nports: [{{name: p, \
         port: 8080, protocol: {protocol}}}]\nendpoints: [{}]\n---\n",
        list.join(", ")
    )
}

/// Generates the manifests of up to four services with any of these letters.
pub(crate) fn state(letters: &'static str) -> impl Strategy<Value = String> {
    let endpoint = (1..6u8, prop::sample::select(vec!["lr", "rr", "lt", "rt"]));
    let one = prop::option::weighted(
        0.8,
        (
            prop::sample::subsequence(letters.chars().collect::<Vec<_>>(), 0..letters.len()),
            prop::collection::vec(endpoint, 0..4),
        ),
    );
    prop::collection::vec(one, 4).prop_map(|services| {
        let wanted =
            services.into_iter().enumerate().filter_map(|(index, service)| service.map(|s| (index, s)));
        // Only one service may have the load balancer's address; the model would leave the others out.
        let mut taken = [false; 2];
        wanted
            .map(|(index, (mut letters, endpoints))| {
                let v6 = usize::from(letters.contains(&'6'));
                if taken[v6] {
                    letters.retain(|letter| *letter != 'b');
                }
                taken[v6] |= letters.contains(&'b');
                service(index, &letters.iter().collect::<String>(), &endpoints)
            })
            .collect()
    })
}

fn random_changes(layout: Layout) {
    if !testns::have(&["nft"]) {
        return;
    }
    let settings = settings(layout);
    let mut runner = TestRunner::new(Config { cases: 12, failure_persistence: None, ..Config::default() });
    let run = |states: Vec<String>| {
        testns::netns(|| {
            let mut world = World::new(&settings, "");
            world.load();
            for state in states {
                world.become_(&state);
                assert_reloaded_text_is_stable();
            }
            world.settle();
            assert_as_fresh(&world, &settings);
        });
        Ok(())
    };
    runner.run(&prop::collection::vec(state("eirabnuls6123"), 1..6), run).expect("changed and fresh agree");
}

/// Checks that nft can load its own listing.
fn assert_reloaded_text_is_stable() {
    let listed = testns::sh("nft -s list ruleset");
    let checked = testns::feed(&["nft", "-c", "-f", "-"], &format!("flush ruleset\n{listed}"));
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
}

#[test]
fn random_changes_of_the_maps_layout_equal_a_fresh_load() {
    random_changes(Layout::Maps);
}

#[test]
fn random_changes_of_the_chains_layout_equal_a_fresh_load() {
    random_changes(Layout::Chains);
}

#[test]
fn a_rejected_address_that_goes_to_another_service_names_that_one() {
    if !testns::have(&["nft"]) {
        return;
    }
    for layout in [Layout::Maps, Layout::Chains] {
        let settings = settings(layout);
        testns::netns(|| {
            let mut world = World::new(&settings, &service(0, "b", &[]));
            world.load();
            let sent = world.become_(&service(2, "b", &[])).to_string();
            assert!(sent.contains("demo/s2:p"), "{sent}");
            assert_as_fresh(&world, &settings);
        });
    }
}

#[test]
fn maps_that_outgrow_their_size_are_replaced_in_the_same_transaction() {
    if !testns::have(&["nft"]) {
        return;
    }
    let settings = settings(Layout::Maps);
    let many = |count: usize| -> String {
        let one = |n: usize| {
            service(n, "", &[(1, "lr"), (2, "rr")])
                .replace(&format!("172.30.0.{}'", n + 1), &format!("172.30.{}.{}'", n / 200, n % 200 + 1))
        };
        (0..count).map(one).collect()
    };
    testns::netns(|| {
        let mut world = World::new(&settings, &many(3));
        world.load();
        let sent = world.become_(&many(1200)).to_string();
        assert!(
            sent.contains("delete map ip kube-proxy endpoints-tcp")
                && sent.contains("delete map ip kube-proxy service-ips")
        );
        assert!(sent.contains("flush chain ip kube-proxy lb-tcp-2"));
        assert_as_fresh(&world, &settings);
        let sent = world.become_(&many(1201)).to_string();
        assert!(!sent.contains("delete map"), "there is room now");
        world.become_(&many(2));
        world.settle();
        assert_as_fresh(&world, &settings);
    });
}

/// The table of an earlier version, whose services had a verdict each.
const WITH_VERDICTS: &str = "table ip kube-proxy {
    map endpoints-tcp {
        typeof ip daddr . tcp dport . numgen random mod 2 : ip daddr . tcp dport
        size 1024
        elements = { 172.30.0.1 . 80 . 0 : 10.244.0.1 . 8080, 172.30.0.1 . 80 . 1 : 10.244.0.2 . 8080 }
    }
    map service-ips {
        type ipv4_addr . inet_proto . inet_service : verdict
        size 1024
        elements = { 172.30.0.1 . tcp . 80 : goto lb-tcp-2 }
    }
    map shortcut-ips {
        type ipv4_addr . inet_proto . inet_service : verdict
        size 1024
    }
    chain lb-tcp-2 {
        meta l4proto tcp dnat ip to ip daddr . tcp dport . numgen random mod 2 map @endpoints-tcp
    }
    chain node-traffic {
        ip daddr . meta l4proto . th dport vmap @shortcut-ips
    }
    chain services {
        fib saddr type local jump node-traffic
        ip daddr . meta l4proto . th dport vmap @service-ips
    }
    chain nat-prerouting {
        type nat hook prerouting priority -100;
        jump services
    }
}";

#[test]
fn a_table_whose_services_have_verdicts_is_changed_in_one_transaction() {
    if !testns::have(&["nft"]) {
        return;
    }
    let settings = settings(Layout::Maps);
    testns::netns(|| {
        run_nft_text(WITH_VERDICTS);
        let mut world = World::new(&settings, &service(0, "", &[(1, "lr"), (2, "rr")]));
        let mut applier = Applier::open(settings.clone()).expect("a socket");
        let synced = applier.sync(&mut world.cluster, world.now).expect("the kernel takes it");
        assert_eq!(synced.batches, 1, "{synced}");
        assert_as_fresh(&world, &settings);
        assert!(applier.difference(&world.cluster).expect("it can be compared").is_empty());
    });
}

#[test]
fn the_nodes_addresses_and_the_service_networks_may_change() {
    if !testns::have(&["nft"]) {
        return;
    }
    for layout in [Layout::Maps, Layout::Chains] {
        let settings = Settings { node_port_addresses: NodePortAddresses::default(), ..settings(layout) };
        let manifests = service(0, "nb", &[(1, "lr")]) + &service(1, "n6", &[(1, "lr")]);
        testns::netns(|| {
            let mut world = World::new(&settings, &manifests);
            world.load();
            for addresses in
                [vec!["192.168.0.2"], vec!["192.168.0.3", "fd00::3"], vec![], vec!["192.168.0.2"]]
            {
                let addresses = addresses.into_iter().map(|ip| ip.parse().expect("an address")).collect();
                let node = Node { addresses, ..world.cluster.node().clone() };
                world.cluster.set_node(node);
                world.sync();
                assert_as_fresh(&world, &settings);
            }
            for cidrs in [
                vec!["172.30.0.0/16", "172.31.0.0/16", "fd00:172::/32"],
                vec![],
                vec!["172.30.0.0/15", "172.30.0.0/16"],
            ] {
                let cidrs: Vec<_> = cidrs.into_iter().map(|net| net.parse().expect("a CIDR")).collect();
                world.cluster.set_service_cidr("kubernetes", &cidrs);
                world.sync();
                assert_as_fresh(&world, &settings);
            }
        });
    }
}

#[test]
fn another_time_of_affinity_is_that_of_a_fresh_load() {
    if !testns::have(&["nft"]) {
        return;
    }
    for layout in [Layout::Maps, Layout::Chains] {
        let settings = settings(layout);
        testns::netns(|| {
            let endpoints = [(1, "lr"), (2, "rr")];
            let mut world = World::new(&settings, &service(0, "a", &endpoints));
            world.load();
            let sent = world.become_(&service(0, "al", &endpoints));
            match layout {
                // The clients and their endpoints stay: only the rules that bind them change.
                Layout::Maps => {
                    let sent = sent.to_string();
                    assert!(!sent.contains("delete map") && !sent.contains(" affinity-tcp {"), "{sent}");
                    assert!(sent.contains("update @affinity-tcp") && sent.contains("timeout 1m"), "{sent}");
                }
                Layout::Chains => {
                    let count = sent.to_string().matches("delete set ip kube-proxy affinity-").count();
                    assert_eq!(count, 2, "{sent}");
                }
            }
            world.settle();
            assert_as_fresh(&world, &settings);
            world.become_(&service(0, "", &endpoints));
            world.settle();
            assert_as_fresh(&world, &settings);
        });
    }
}

#[test]
fn a_chain_that_is_wanted_again_is_not_removed() {
    if !testns::have(&["nft"]) {
        return;
    }
    let settings = settings(Layout::Chains);
    let (with, without) = (service(0, "", &[(1, "lr")]), service(0, "", &[]));
    testns::netns(|| {
        let mut world = World::new(&settings, &with);
        world.load();
        world.become_(&without);
        assert!(world.planner.has_stale());
        assert!(world.planner.remove_stale(world.now).is_empty(), "a second has not passed");
        // The same sync in which it would have been deleted.
        let wanted = cluster(&with);
        for name in wanted.service_names().cloned().collect::<Vec<_>>() {
            wanted.slices(&name).for_each(|slice| {
                let slice_name =
                    sluicegate_services::SliceName { namespace: "demo".into(), name: "s0".into() };
                world.cluster.set_slice(&slice_name, Some(slice.clone()));
            });
        }
        let changes = world.cluster.take_changes();
        run_nft(&world.planner.sync(&world.cluster, &changes, world.now));
        assert!(!world.planner.has_stale());
        assert_as_fresh(&world, &settings);
    });
}

#[test]
fn a_failed_removal_is_repeated() {
    let settings = Settings { families: vec![Family::Ipv4], ..settings(Layout::Chains) };
    let mut world = World::new(&settings, &service(0, "", &[(1, "lr")]));
    world.planner.script();
    let gone = world.cluster.service_names().next().cloned().expect("there is one");
    world.cluster.set_service(&gone, None);
    let changes = world.cluster.take_changes();
    let start = Instant::now();
    world.planner.sync(&world.cluster, &changes, start);
    let later = start + std::time::Duration::from_secs(2);
    let first = world.planner.remove_stale(later);
    assert_eq!(first.operations().len(), 1, "{first}");
    assert!(!world.planner.has_stale());
    world.planner.keep_stale(later);
    assert!(world.planner.remove_stale(later).is_empty());
    assert_eq!(world.planner.remove_stale(later + std::time::Duration::from_secs(2)), first);
}
