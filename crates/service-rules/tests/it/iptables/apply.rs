//! Applying: what is there is compared, what changes is sent, what others have is left alone, and what
//! somebody breaks is mended.

use std::time::{Duration, Instant};

use sluicegate_service_rules::Found;
use sluicegate_service_rules::iptables::{Applier, BackEnd, Feature, choose, jumps};
use sluicegate_services::{Cluster, Family};

use crate::iptables::world::{cluster, difference, have_iptables, restore, saved, settings};
use crate::manifests::Manifests;

const SERVICES: &str = include_str!("../../../testdata/kube-proxy/services.yaml");
const RESTORE1: &str = include_str!("../../../testdata/kube-proxy/ipt_restore1.txt");
const ENDPOINT: &str = "  - {addresses: [10.244.1.10], nodeName: other-node, conditions: {ready: true}}\n";
const BOTH: [(&str, BackEnd); 2] = [("legacy", BackEnd::Legacy), ("nft", BackEnd::Nft)];

fn applier(back_end: BackEnd, families: &[Family]) -> Applier {
    Applier::open(Some(back_end), families, settings()).expect("sockets")
}

/// Removes an endpoint of the service `web`.
fn lose_endpoint(cluster: &mut Cluster) {
    for (name, slice) in Manifests::read(&SERVICES.replacen(ENDPOINT, "", 1)).slices {
        cluster.set_slice(&name, Some(slice));
    }
}

fn in_both(test: impl Fn(&str, BackEnd) + Send + Sync) {
    if have_iptables() {
        for (name, back_end) in BOTH {
            testns::netns(|| test(name, back_end));
        }
    }
}

#[test]
fn a_sync_has_the_result_of_kube_proxy_including_jumps_and_counters() {
    let theirs = |name: &str| {
        let mut lines = Vec::new();
        testns::netns(|| {
            // The counters must exist before rules can name them; the applier creates them.
            let back_end = if name == "legacy" { BackEnd::Legacy } else { BackEnd::Nft };
            let mut applier = applier(back_end, &[Family::Ipv4]);
            applier.sync(&mut cluster(""), Instant::now()).unwrap();
            let support = applier.support(Family::Ipv4).unwrap().clone();
            assert!(applier.cleanup().failed.is_empty());
            let tool = format!("iptables-{name}");
            let _ = testns::sh(&format!(
                "{tool} -F; {tool} -X; for t in filter nat mangle; do {tool} -t $t -N KUBE-PROXY-CANARY; done"
            ));
            for jump in jumps(&support, true) {
                let (table, to, from) = (jump.table, jump.to, jump.from);
                let _ = testns::sh(&format!(
                    "{tool} -w 5 -N {to} -t {table} 2>/dev/null; {tool} -w 5 -I {from} -t {table} {}",
                    jump.words
                ));
            }
            let mut input = RESTORE1.replace("-j MASQUERADE\n", "-j MASQUERADE --random-fully\n");
            if !support.has(Feature::Nfacct) {
                input = input
                    .lines()
                    .filter(|line| !line.contains("localhost_nps"))
                    .map(|line| line.to_owned() + "\n")
                    .collect();
                input = input.replace("-m nfacct --nfacct-name ct_state_invalid_dropped_pkts ", "");
            }
            restore(Family::Ipv4, name, &input);
            lines = saved(Family::Ipv4, name);
        });
        lines.sort();
        lines
    };
    in_both(|name, back_end| {
        let theirs = std::thread::scope(|scope| scope.spawn(|| theirs(name)).join().unwrap());
        applier(back_end, &[Family::Ipv4]).sync(&mut cluster(SERVICES), Instant::now()).unwrap();
        let mut ours = saved(Family::Ipv4, name);
        let built_in = |lines: &[String]| -> Vec<String> {
            let hooks = ["INPUT", "FORWARD", "OUTPUT", "PREROUTING", "POSTROUTING"];
            lines
                .iter()
                .filter(|line| hooks.iter().any(|hook| line.contains(&format!("-A {hook} "))))
                .cloned()
                .collect()
        };
        let jumps = built_in(&ours);
        assert_eq!(jumps.len(), 14, "{jumps:?}");
        assert!(
            jumps[0].starts_with("filter -A FORWARD") && jumps[0].contains("load balancer firewall"),
            "{jumps:?}"
        );
        ours.sort();
        assert_eq!(ours, theirs, "{name}\n{}", difference(&theirs, &ours));
    });
}

#[test]
fn a_second_sync_sends_nothing_and_a_change_only_its_rules() {
    in_both(|name, back_end| {
        let mut cluster = cluster(SERVICES);
        let mut applier = applier(back_end, &Family::BOTH);
        let first = applier.sync(&mut cluster, Instant::now()).unwrap();
        assert!(first.families.iter().all(|family| family.found == Found::Compared && family.bytes > 0));
        let second = applier.sync(&mut cluster, Instant::now()).unwrap();
        assert!(
            second.families.iter().all(|family| family.found == Found::Changed && family.bytes == 0),
            "{second:?}"
        );
        lose_endpoint(&mut cluster);
        let third = applier.sync(&mut cluster, Instant::now()).unwrap();
        assert_eq!(third.families[0].found, Found::Changed, "{third:?}");
        assert!((1..600).contains(&third.families[0].bytes) && third.families[1].bytes == 0, "{third:?}");
        let later = applier.sync(&mut cluster, Instant::now() + Duration::from_secs(3601)).unwrap();
        assert!(
            later.families.iter().all(|family| family.found == Found::Compared && family.bytes == 0),
            "{later:?}"
        );
        // A new process compares, and finds no difference.
        let mut again = Applier::open(Some(back_end), &Family::BOTH, settings()).unwrap();
        for (family, input) in again.difference(&cluster).unwrap() {
            assert_eq!(input.to_string(), "", "{name} {family}");
        }
    });
}

#[test]
fn rules_and_chains_of_others_stay() {
    in_both(|name, back_end| {
        let foreign = "*filter\n:KUBE-ROUTER-INPUT - [0:0]\n:OTHER - [0:0]\n-A INPUT -p tcp -m tcp --dport \
                       22 -j ACCEPT\n-A OTHER -s 192.0.2.1/32 -j \
                       DROP\nCOMMIT\n*nat\n:KUBE-SVC-STALESTALESTALES - [0:0]\n:CNI-HOSTPORT - [0:0]\n-A \
                       CNI-HOSTPORT -j RETURN\n-A KUBE-SVC-STALESTALESTALES -j RETURN\nCOMMIT\n";
        restore(Family::Ipv4, name, foreign);
        let theirs: Vec<_> =
            saved(Family::Ipv4, name).into_iter().filter(|line| !line.contains("STALE")).collect();
        let mut applier = applier(back_end, &[Family::Ipv4]);
        applier.sync(&mut cluster(SERVICES), Instant::now()).unwrap();
        let held = saved(Family::Ipv4, name);
        assert!(theirs.iter().all(|line| held.contains(line)), "{}", difference(&theirs, &held));
        assert!(!held.iter().any(|line| line.contains("STALE")), "a stale chain is left");
        let removed = applier.cleanup().removed;
        assert_eq!(removed.len(), 1, "{removed:?}");
        let left: Vec<_> = saved(Family::Ipv4, name)
            .into_iter()
            .filter(|line| !line.contains("KUBE-FIREWALL") && !line.starts_with("mangle"))
            .collect();
        assert_eq!(left, theirs, "{}", difference(&theirs, &left));
        let again = applier.cleanup();
        assert!(again.removed.is_empty() && again.failed.is_empty(), "{again:?}");
    });
}

#[test]
fn damage_by_other_programs_is_repaired() {
    in_both(|name, back_end| {
        let mut cluster = cluster(SERVICES);
        let mut applier = applier(back_end, &[Family::Ipv4]);
        applier.sync(&mut cluster, Instant::now()).unwrap();
        let whole = saved(Family::Ipv4, name);
        let tool = format!("iptables-{name}");

        // A flush deletes the canary; the next sync notices that even without a change of services.
        let _ = testns::sh(&format!("for t in filter nat mangle; do {tool} -t $t -F; {tool} -t $t -X; done"));
        let mended = applier.sync(&mut cluster, Instant::now()).unwrap();
        assert_eq!(mended.families[0].found, Found::Compared);
        assert!(!mended.families[0].was_refused);
        assert_eq!(saved(Family::Ipv4, name), whole);

        // A chain is emptied behind our back, so everything is compared: in the nft back end the generation
        // shows it, in the other the sizes of the tables.
        lose_endpoint(&mut cluster);
        let _ = testns::sh(&format!(
            "{tool} -t nat -F KUBE-SVC-XRY76EGRC3BSCIIJ; {tool} -t nat -F KUBE-SERVICES"
        ));
        let mended = applier.sync(&mut cluster, Instant::now()).unwrap();
        assert_eq!(mended.families[0].found, Found::Compared, "{mended:?}");
        assert!(!mended.families[0].was_refused);
        assert!(applier.difference(&cluster).unwrap().iter().all(|(_, input)| input.items.is_empty()));
    });
}

#[test]
fn features_that_the_kernel_lacks_are_omitted_and_reported() {
    in_both(|name, back_end| {
        let mut cluster = cluster(SERVICES);
        let mut applier = applier(back_end, &[Family::Ipv4]);
        let synced = applier.sync(&mut cluster, Instant::now()).unwrap();
        let support = applier.support(Family::Ipv4).unwrap();
        let missing: Vec<_> = support.missing().filter(|feature| *feature != Feature::RandomFully).collect();
        assert_eq!(synced.notices().count(), missing.len(), "{name}: {missing:?}");
        // All kernels of nodes have these.
        for feature in
            [Feature::Comment, Feature::Conntrack, Feature::Statistic, Feature::Masquerade, Feature::Reject]
        {
            assert!(support.has(feature), "{name}: {feature}");
        }
        let there = saved(Family::Ipv4, name).iter().any(|line| line.contains("nfacct"));
        assert_eq!(there, support.has(Feature::Nfacct), "{name}");
        assert!(
            !saved(Family::Ipv4, name).iter().any(|line| line.contains("PROBE")),
            "{name}: the trial left its chain"
        );
    });
}

#[test]
fn liberal_tracking_drops_no_invalid_packets() {
    in_both(|name, back_end| {
        let _ = testns::sh(&format!("iptables-{name} -A INPUT -m conntrack --ctstate NEW"));
        let path = "/proc/sys/net/netfilter/nf_conntrack_tcp_be_liberal";
        if let Err(error) = std::fs::write(path, "1") {
            return testns::skip(&format!("{path}: {error}"));
        }
        applier(back_end, &[Family::Ipv4]).sync(&mut cluster(SERVICES), Instant::now()).unwrap();
        assert!(!saved(Family::Ipv4, name).iter().any(|line| line.contains("INVALID")));
    });
}

#[test]
fn rules_in_the_other_back_end_are_reported() {
    in_both(|name, back_end| {
        let other = if back_end == BackEnd::Nft { BackEnd::Legacy } else { BackEnd::Nft };
        applier(other, &[Family::Ipv4]).sync(&mut cluster(SERVICES), Instant::now()).unwrap();
        let synced = applier(back_end, &[Family::Ipv4]).sync(&mut cluster(SERVICES), Instant::now()).unwrap();
        let told = |notice: &String| notice.contains("holds rules of a service proxy too");
        assert_eq!(synced.notices().filter(told).count(), 1, "{name}: {synced:?}");
        assert!(applier(other, &[Family::Ipv4]).cleanup().failed.is_empty());
        let again = applier(back_end, &[Family::Ipv4]).sync(&mut cluster(SERVICES), Instant::now()).unwrap();
        assert_eq!(again.notices().filter(told).count(), 0, "{name}: {again:?}");
    });
}

#[test]
fn the_back_end_is_that_of_the_kubelet_or_of_a_service_proxy_or_of_most_rules() {
    if !have_iptables() {
        return;
    }
    testns::netns(|| {
        let chosen = |after: &str, wanted: BackEnd| {
            let _ = testns::sh(after);
            assert_eq!(choose().unwrap(), wanted, "{after}");
        };
        chosen("", BackEnd::Nft);
        chosen("iptables-legacy -A INPUT -j ACCEPT; iptables-legacy -A INPUT -j DROP", BackEnd::Legacy);
        chosen("ip6tables-nft -A INPUT -j ACCEPT", BackEnd::Legacy);
        chosen("ip6tables-nft -A INPUT -j DROP", BackEnd::Nft);
        chosen("iptables-legacy -t mangle -N KUBE-PROXY-CANARY", BackEnd::Legacy);
        chosen("iptables-nft -t mangle -N KUBE-KUBELET-CANARY", BackEnd::Nft);
        chosen("iptables-nft -t mangle -X; iptables-nft -F; ip6tables-nft -F", BackEnd::Legacy);
    });
}
