//! Another program that changes the tables at the same time: in the legacy back end, which has neither events nor
//! a generation, its change is seen before, during and behind one of ours; and no service is blamed for it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use sluicegate_service_rules::Found;
use sluicegate_service_rules::iptables::{Applier, BackEnd};
use sluicegate_services::Family;

use crate::iptables::faulty_tables::{Fault, FaultyTables, Moment};
use crate::iptables::world::{cluster, have_iptables, settings};
use crate::manifests::Manifests;

const SERVICES: &str = include_str!("../../../testdata/kube-proxy/services.yaml");
const ENDPOINT: &str = "  - {addresses: [10.244.1.10], nodeName: other-node, conditions: {ready: true}}\n";

fn applier(tables: &FaultyTables) -> Applier {
    Applier::with_tables(tables.open(), settings())
}

/// Each rule differs, so that the table never gets back to a size that it had.
fn add_a_rule(_: BackEnd) {
    static RULES: AtomicUsize = AtomicUsize::new(0);
    let number = RULES.fetch_add(1, Ordering::Relaxed);
    let _ = testns::sh(&format!("iptables-legacy -w 20 -t nat -A OUTPUT -s 192.0.2.{number} -j ACCEPT"));
}

#[test]
fn a_change_of_another_program_is_seen_whenever_it_comes() {
    if !have_iptables() {
        return;
    }
    testns::netns(|| {
        let tables = FaultyTables::new("legacy", Family::Ipv4);
        let mut applier = applier(&tables);
        let mut cluster = cluster(SERVICES);
        let mut rounds = 0..;
        // Each sync has something to change.
        let mut sync = |applier: &mut Applier| {
            let ready = rounds.next().is_some_and(|number: u32| number.is_multiple_of(2));
            let services = SERVICES.replacen(ENDPOINT, if ready { ENDPOINT } else { "" }, 1);
            for (name, slice) in Manifests::read(&services).slices {
                cluster.set_slice(&name, Some(slice));
            }
            applier.sync(&mut cluster, Instant::now()).unwrap().families[0].found
        };
        sync(&mut applier);
        assert!(!applier.is_disturbed().unwrap());
        assert_eq!(sync(&mut applier), Found::Changed);
        assert!(!applier.is_disturbed().unwrap());

        for moment in [Moment::Before, Moment::After] {
            tables.set(Fault::Act(moment, add_a_rule));
            sync(&mut applier);
            assert!(tables.is_over(), "the other program acted");
            assert!(applier.is_disturbed().unwrap(), "{moment:?}");
            assert_eq!(sync(&mut applier), Found::Compared, "{moment:?}");
            assert!(!applier.is_disturbed().unwrap(), "{moment:?}, once it was compared");
            assert_eq!(sync(&mut applier), Found::Changed, "{moment:?}");
        }

        add_a_rule(BackEnd::Legacy);
        assert!(applier.is_disturbed().unwrap(), "between two syncs");
        assert!(!applier.is_disturbed().unwrap(), "it is told once");
        sync(&mut applier);
        add_a_rule(BackEnd::Legacy);
        assert_eq!(sync(&mut applier), Found::Compared, "a sync looks by itself");
        assert!(!applier.is_disturbed().unwrap());
    });
}

/// Removes all rules and chains of others from the tables that services are in.
fn remove_everything(back_end: BackEnd) {
    let tool = if back_end == BackEnd::Nft { "iptables-nft" } else { "iptables-legacy" };
    let of_table = |table: &str| format!("{tool} -w 20 -t {table} -F; {tool} -w 20 -t {table} -X; ");
    let _ = testns::sh(&["filter", "nat", "mangle"].map(of_table).concat());
}

#[test]
fn no_service_is_blamed_for_chains_that_another_program_removed_since_they_were_listed() {
    if !have_iptables() {
        return;
    }
    for back_end in ["legacy", "nft"] {
        testns::netns(|| {
            let tables = FaultyTables::new(back_end, Family::Ipv4);
            let mut cluster = cluster(SERVICES);
            applier(&tables).sync(&mut cluster, Instant::now()).unwrap();
            // A restart with other services, whose rules go into chains that were there.
            let without = SERVICES.replacen(ENDPOINT, "", 1);
            for (name, slice) in Manifests::read(&without).slices {
                cluster.set_slice(&name, Some(slice));
            }
            let mut applier = applier(&tables);
            tables.set(Fault::Act(Moment::Before, remove_everything));
            applier.sync(&mut cluster, Instant::now()).unwrap();
            assert!(tables.is_over(), "the other program acted");
            for (_, left) in applier.difference(&cluster).unwrap() {
                assert_eq!(left.to_string(), "", "{back_end}");
            }
        });
    }
}
