//! Failures in the middle of changes of tables which are there: before or after the kernel did its work, or
//! between two tables. What guards traffic stays, and the next sync ends where one without failures does.

use std::time::{Duration, Instant};

use sluicegate_service_rules::iptables::Applier;
use sluicegate_services::Family;

use crate::iptables::faulty_tables::{Fault, FaultyTables, MOMENTS};
use crate::iptables::world::{BACK_ENDS, cluster, have_iptables, saved, settings};
use crate::toggles::{Toggles, injections};

const SERVICES: &str = include_str!("../../../testdata/kube-proxy/services.yaml");

fn inject(name: &'static str, tables: &FaultyTables) {
    let mut toggles = Toggles::new(SERVICES, name.len() as u64);
    let mut wanted = cluster(SERVICES);
    let open = || Applier::with_tables(tables.open(), settings());
    let mut applier = open();
    let mut now = Instant::now();
    applier.sync(&mut wanted, now).expect("the first sync");
    let guards = || -> Vec<String> {
        let words = [" -A INPUT ", " -A FORWARD ", " -A OUTPUT ", "ROUTING ", "KUBE-FIREWALL", "INVALID"];
        saved(Family::Ipv4, name)
            .into_iter()
            .filter(|line| words.iter().any(|word| line.contains(word)))
            .collect()
    };
    let guarded = guards();
    assert!(guarded.len() > 14, "{guarded:?}");
    let (mut failed, injections) = (0, injections(25));
    for round in 0..injections {
        toggles.toggle(&mut wanted);
        let (moment, after) = (MOMENTS[toggles.roll(MOMENTS.len())], toggles.roll(2));
        tables.set(Fault::Once(moment, after));
        now += Duration::from_secs(2);
        let result = applier.sync(&mut wanted, now);
        failed += u32::from(result.is_err());
        assert_eq!(guards(), guarded, "{name}, round {round}, {moment:?}: {result:?}");
        tables.set(Fault::Nothing);
        let is_whole = || {
            let mut again = cluster(SERVICES);
            toggles.apply(&mut again);
            open().difference(&again).expect("it can be read")[0].1.items.is_empty()
        };
        assert!(
            result.is_err() || is_whole(),
            "{name}, round {round}, {moment:?}: it said that it succeeded"
        );
        // The process was killed, or goes on.
        if round % 2 == 0 {
            applier = open();
        }
        now += Duration::from_secs(2);
        let result = applier.sync(&mut wanted, now);
        assert!(result.is_ok() && is_whole(), "{name}, round {round}, {moment:?}: {result:?}");
    }
    assert!(failed > injections / 10, "{name}: {failed} of {injections} failed");
}

#[test]
fn a_failure_in_the_middle_leaves_every_guard_and_the_next_sync_converges() {
    if have_iptables() {
        for name in BACK_ENDS {
            testns::netns(|| inject(name, &FaultyTables::new(name, Family::Ipv4)));
        }
    }
}
