//! Failures in the middle of batches that change a table which is there: the kernel has the old rules or the
//! new ones, and the next sync ends where one without failures does.

use std::time::{Duration, Instant};

use sluicegate_netlink::NetlinkFamily;
use sluicegate_service_rules::nftables::{Applier, Layout};
use sluicegate_services::Cluster;

use crate::faulty::{Fault, Faulty, KINDS};
use crate::nftables::world::{cluster, settings};
use crate::toggles::{Toggles, injections};

const SERVICES: &str = include_str!("../../../testdata/kube-proxy/services.yaml");

/// Whether the kernel has exactly these rules, but for chains that nothing uses any more.
fn has(layout: Layout, cluster: &Cluster) -> bool {
    let mut applier = Applier::open(settings(layout)).expect("nf_tables");
    let difference = applier.difference(cluster).expect("it can be read").to_string();
    difference.lines().all(|line| line.starts_with("delete chain "))
}

fn inject(layout: Layout) {
    let mut toggles = Toggles::new(SERVICES, layout as u64);
    let mut wanted = cluster(SERVICES);
    let fault = Fault::default();
    let open = || Applier::with_transport(Faulty::open(NetlinkFamily::NETFILTER, &fault), settings(layout));
    let mut applier = open();
    let mut now = Instant::now();
    applier.sync(&mut wanted, now).expect("the first sync");
    let (mut failed, mut old_kept, injections) = (0, 0, injections(50));
    for round in 0..injections {
        let mut before = cluster(SERVICES);
        toggles.apply(&mut before);
        toggles.toggle(&mut wanted);
        let (kind, after) = (KINDS[toggles.roll(4)], toggles.roll(5));
        fault.set(kind, after);
        now += Duration::from_secs(2);
        let result = applier.sync(&mut wanted, now);
        let (is_new, is_old) = (has(layout, &wanted), has(layout, &before));
        assert!(is_new || is_old, "{layout:?}, round {round}, {kind:?}: neither, {result:?}");
        assert!(result.is_err() || is_new, "{layout:?}, round {round}, {kind:?}: it said that it succeeded");
        failed += u32::from(result.is_err());
        old_kept += u32::from(!is_new);
        fault.clear();
        // The process was killed, or goes on.
        if toggles.roll(2) == 0 {
            applier = open();
        }
        now += Duration::from_secs(2);
        let result = applier.sync(&mut wanted, now);
        assert!(result.is_ok() && has(layout, &wanted), "{layout:?}, round {round}, {kind:?}: {result:?}");
    }
    assert!(
        failed > injections / 4 && old_kept > injections / 10,
        "{layout:?}: {failed} of {injections} failed, {old_kept} kept the old rules"
    );
}

#[test]
fn a_failure_in_the_middle_of_a_change_leaves_the_old_rules_or_the_new_ones_and_the_next_sync_converges() {
    for layout in [Layout::Maps, Layout::Chains] {
        testns::netns(|| inject(layout));
    }
}
