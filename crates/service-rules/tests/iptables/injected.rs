//! Failures in the middle of batches that change tables which are there: a tool that fails, or is killed,
//! before or after it did its work or between two tables. What guards traffic stays, and the next sync ends
//! where one without failures does.

use std::time::{Duration, Instant};

use sluicegate_service_rules::iptables::Applier;
use sluicegate_services::Family;

use crate::toggles::{Toggles, injections};
use crate::world::{BACK_ENDS, cluster, have_iptables, saved, settings};
use crate::wrapped::Wrapped;

const SERVICES: &str = include_str!("../../testdata/kube-proxy/services.yaml");

/// Pieces of shell for the run that fails, and whether they are about runs of `save` or of `restore`.
const FAULTS: [(&str, &str); 6] = [
    // It fails before anything.
    ("restore", "cat >/dev/null; echo 'iptables: Memory allocation problem.' >&2; exit 1"),
    // It is killed when it has done everything.
    ("restore", "$real \"$@\"; kill -9 $$"),
    // It is killed when it has done the first table.
    ("restore", "sed '/^COMMIT/q' | $real \"$@\"; kill -9 $$"),
    // It is killed in the middle of the first table.
    ("restore", "head -n 3 | $real \"$@\" 2>/dev/null; kill -9 $$"),
    // It is killed before anything is printed.
    ("save", "kill -9 $$"),
    // It is killed when it has printed a part.
    ("save", "$real \"$@\" | head -c 700; kill -9 $$"),
];

fn inject(name: &'static str, wrapped: &Wrapped) {
    let mut toggles = Toggles::new(SERVICES, name.len() as u64);
    let mut wanted = cluster(SERVICES);
    let open = || Applier::new(vec![wrapped.tool.clone()], settings());
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
        let (what, how) = FAULTS[toggles.roll(FAULTS.len())];
        let after = toggles.roll(2);
        wrapped.fail(&format!(
            "if [ \"$what\" = {what} ]; then
                 echo >>$dir/count
                 if [ $(wc -l <$dir/count) = {} ]; then {how}; fi
             fi",
            after + 1
        ));
        now += Duration::from_secs(2);
        let result = applier.sync(&mut wanted, now);
        failed += u32::from(result.is_err());
        assert_eq!(guards(), guarded, "{name}, round {round}, {how}: {result:?}");
        wrapped.fail("");
        let is_whole = || {
            let mut again = cluster(SERVICES);
            toggles.apply(&mut again);
            open().difference(&again).expect("it can be read")[0].1.items.is_empty()
        };
        assert!(result.is_err() || is_whole(), "{name}, round {round}, {how}: it said that it succeeded");
        // The process was killed, or goes on.
        if round % 2 == 0 {
            applier = open();
        }
        now += Duration::from_secs(2);
        let result = applier.sync(&mut wanted, now);
        assert!(result.is_ok() && is_whole(), "{name}, round {round}, {how}: {result:?}");
    }
    assert!(failed > injections / 10, "{name}: {failed} of {injections} failed");
}

#[test]
fn a_tool_that_fails_in_the_middle_leaves_every_guard_and_the_next_sync_converges() {
    if have_iptables() {
        for name in BACK_ENDS {
            testns::netns(|| inject(name, &Wrapped::new(name, Family::Ipv4)));
        }
    }
}
