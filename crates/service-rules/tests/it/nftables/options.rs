//! nft lists and loads again what every combination of options makes. A flowtable in both layouts is in
//! `proxier`'s tests of guests, whose kernels have them.

use std::time::Instant;

use sluicegate_service_rules::MasqueradeBit;
use sluicegate_service_rules::nftables::{Applier, Counting, Layout, Settings};
use sluicegate_services::{DetectLocal, NodePortAddresses, Scheduler, Slots};

use crate::nftables::changes::service;
use crate::nftables::world::{cluster, run_nft_text, settings};

const ENDPOINTS: [(u8, &str); 3] = [(1, "lr"), (2, "rr"), (3, "lt")];

const NODE: &str = "apiVersion: v1\nkind: Node\nmetadata: {name: test-node}\nstatus: {addresses: [{type: InternalIP, \
                    address: 192.168.0.2}, {type: InternalIP, address: 'fd00:192::2'}]}\n";

/// Returns services of both families with every policy, affinity, source ranges, node ports, addresses of others,
/// protocols, and schedulers of their own; one without endpoints.
fn manifests() -> String {
    let kinds = ["n", "eabrn", "iux", "eirs", "a1u", "2x", "3n"];
    let families = kinds.iter().flat_map(|kind| ["", "6"].map(|family| format!("{kind}{family}")));
    let with = (0..).zip(families).map(|(index, kind)| service(index, &kind, &ENDPOINTS));
    let others = [service(40, "nx", &[]), service(41, "er", &[(4, "rr")]), NODE.to_owned()];
    with.chain(others).collect()
}

/// Returns every combination of options, and a word that each has in the listing of nft.
fn combinations() -> Vec<(String, Settings, Vec<&'static str>)> {
    let maglev = Scheduler::Maglev(Slots::new(11).expect("a prime"));
    let schedulers = [
        (Scheduler::Random, "numgen random mod"),
        (Scheduler::RoundRobin, "numgen inc mod"),
        (Scheduler::SourceHash, "seed 0x4"),
        (maglev, "mod 11 seed 0x5"),
    ];
    let layouts = [
        (Layout::Maps, Counting::Off, "map service-ips"),
        (Layout::Maps, Counting::Frontends, "counter"),
        (Layout::Maps, Counting::Endpoints, "counter"),
        (Layout::Chains, Counting::Off, "chain service-"),
    ];
    let bit = MasqueradeBit::new(7).expect("a bit");
    let masquerades = [(false, MasqueradeBit::default(), "0x00004000"), (true, bit, "0x00000080")];
    let mut all = Vec::new();
    for (layout, counting, of_layout) in layouts {
        for (scheduler, of_scheduler) in schedulers {
            for (masquerade_all, masquerade_bit, of_masquerade) in masquerades {
                let common = settings(layout);
                // What is local is told by networks, or not at all; node ports are everywhere, or at one place.
                let (detect_local, node_port_addresses) = match masquerade_all {
                    false => (common.detect_local, NodePortAddresses::every()),
                    true => {
                        let networks = "192.168.0.0/24,fd00:192::/64".parse().expect("networks");
                        (DetectLocal::default(), networks)
                    }
                };
                let settings = Settings {
                    counting,
                    scheduler,
                    masquerade_all,
                    masquerade_bit,
                    detect_local,
                    node_port_addresses,
                    ..settings(layout)
                };
                let name = format!("{layout:?} {counting} {scheduler} masquerade_all: {masquerade_all}");
                all.push((name, settings, vec![of_layout, of_scheduler, of_masquerade]));
            }
        }
    }
    all
}

#[test]
fn nft_lists_and_loads_again_what_every_combination_of_options_makes() {
    if !testns::have(&["nft"]) {
        return;
    }
    let manifests = manifests();
    for (name, settings, words) in combinations() {
        testns::netns(|| {
            let mut applier = Applier::open(settings).expect("nf_tables");
            applier.sync(&mut cluster(&manifests), Instant::now()).expect("it is programmed");
            let listed = testns::sh("nft -s list ruleset");
            for word in words {
                assert!(listed.contains(word), "{name}: no {word}: {listed}");
            }
            run_nft_text(&format!("flush ruleset\n{listed}"));
            assert_eq!(testns::sh("nft -s list ruleset"), listed, "{name}");
        });
    }
}
