//! ipvs mode in kernels that have IPVS: failures in the middle of changes leave no address open to those whom
//! its source ranges keep out, and the next sync converges; flows end with what made them.

use std::time::{Duration, Instant};

use sluicegate_netlink::NetlinkFamily;
use sluicegate_service_rules::iptables::{self, BackEnd};
use sluicegate_service_rules::ipvs::{Applier, Settings, Transports};
use sluicegate_services::{Cluster, Family, Node};

use crate::faulty::{Fault, Faulty, KINDS};
use crate::manifests::Manifests;
use crate::toggles::{Toggles, injections};

const SERVICES: &str = include_str!("../../testdata/kube-proxy/services.yaml");

fn cluster() -> Cluster {
    let mut found = Manifests::read(SERVICES);
    let node = found
        .nodes
        .pop()
        .unwrap_or_else(|| Node::new("test-node", ["192.168.0.2".parse().expect("an address")]));
    found.into_cluster(node)
}

/// Where the address of the load balancer is bound, the rules that guard it are there.
fn assert_guarded(stem: &str, when: &str) {
    let bound = testns::try_sh("ip -4 address show dev kube-ipvs0").stdout;
    if !String::from_utf8_lossy(&bound).contains("5.6.7.8/") {
        return;
    }
    let entry = testns::try_sh("ipset test KUBE-LOAD-BALANCER-FW 5.6.7.8,tcp:443").status.success();
    let rules = testns::sh(&format!("{stem}-save -t filter"));
    for words in [
        "-A INPUT -m comment --comment \"kube-proxy firewall rules\" -j KUBE-PROXY-FIREWALL",
        "-j KUBE-SOURCE-RANGES-FIREWALL",
        "-A KUBE-SOURCE-RANGES-FIREWALL -j DROP",
    ] {
        let servers = testns::sh("ipvsadm -Sn");
        let is_served = servers.contains("5.6.7.8:443");
        assert!(!is_served || (entry && rules.contains(words)), "{when}: {words}, {entry}\n{servers}{rules}");
    }
}

/// The matrix of `flows.rs`, whose other modes run everywhere.
#[cfg(feature = "nftables")]
#[test]
#[ignore = "needs a kernel of its own: cargo xtask test guest"]
fn flows_end_with_what_made_them_and_no_others_do() {
    let mode = match testns::guest().as_deref() {
        Some("uml") => "ipvs-legacy",
        Some(_) => "ipvs-nft",
        None => return testns::skip("runs in a guest kernel only (umlrun, qemurun)"),
    };
    // No library loads a module; the tool does.
    let _ = testns::sh("modprobe -a ip_tables ip6_tables");
    assert!(crate::flows::in_modes(&[mode]) > 0, "{mode}");
}

#[test]
#[ignore = "needs a kernel of its own: cargo xtask test guest"]
fn a_failure_in_the_middle_of_a_change_opens_nothing_and_the_next_sync_converges() {
    let (back_end, stem) = match testns::guest().as_deref() {
        Some("uml") => (BackEnd::Legacy, "iptables-legacy"),
        Some(_) => (BackEnd::Nft, "iptables-nft"),
        None => return testns::skip("runs in a guest kernel only (umlrun, qemurun)"),
    };
    // No library loads a module; the tool does.
    let _ = testns::sh("modprobe -a ip_tables ip6_tables");
    testns::netns(|| {
        let fault = Fault::default();
        let open = || {
            let socket = |family| Faulty::open(family, &fault);
            let transports = Transports {
                sets: socket(NetlinkFamily::NETFILTER),
                servers: socket(NetlinkFamily::GENERIC),
                links: socket(NetlinkFamily::ROUTE),
                events: None,
            };
            let tables = iptables::open(Some(back_end), &[Family::Ipv4]).expect("sockets");
            Applier::with_transports(tables, Settings::default(), transports).expect("IPVS")
        };
        let mut toggles = Toggles::new(SERVICES, 7);
        let (mut wanted, mut applier, mut now) = (cluster(), open(), Instant::now());
        applier.sync(&mut wanted, now).expect("the first sync");
        assert_guarded(stem, "at first");
        let (mut failed, injections) = (0, injections(60));
        for round in 0..injections {
            toggles.toggle(&mut wanted);
            let (kind, after) = (KINDS[toggles.roll(4)], toggles.roll(14));
            fault.set(kind, after);
            now += Duration::from_secs(2);
            let result = applier.sync(&mut wanted, now);
            fault.clear();
            let when = format!("round {round}, {kind:?} after {after}: {result:?}");
            failed += u32::from(result.is_err());
            assert_guarded(stem, &when);
            // The process was killed, or goes on.
            if round % 2 == 0 {
                applier = open();
            }
            now += Duration::from_secs(2);
            let again = applier.sync(&mut wanted, now);
            assert!(again.is_ok(), "{when}, then {again:?}");
            assert_guarded(stem, &when);
            let mut fresh = cluster();
            toggles.apply(&mut fresh);
            let differences = open().difference(&fresh).expect("it can be read");
            assert!(differences.iter().all(|(_, change)| change.is_empty()), "{when}, then {differences:?}");
        }
        assert!(failed > injections / 8, "{failed} of {injections} failed");
    });
}
