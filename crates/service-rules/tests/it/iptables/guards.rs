//! What guards traffic stays, and is missed where it is not there: a passing failure is not a lack, a lack is
//! an error state that ends with it, stale jumps go, and what the kubelet has stays.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use sluicegate_service_rules::Summary;
use sluicegate_service_rules::iptables::{Applier, Feature, Settings};
use sluicegate_services::{Family, NodePortAddresses};

use crate::iptables::faulty_tables::{Fault, FaultyTables};
use crate::iptables::world::{BACK_ENDS, cluster, difference, have_iptables, restore, saved, settings};

const SERVICES: &str = include_str!("../../../testdata/kube-proxy/services.yaml");

fn in_both(family: Family, test: impl Fn(&'static str, &FaultyTables) + Send + Sync) {
    if have_iptables() {
        for name in BACK_ENDS {
            testns::netns(|| test(name, &FaultyTables::new(name, family)));
        }
    }
}

fn applier(tables: &FaultyTables) -> Applier {
    Applier::with_tables(tables.open(), settings())
}

/// The jumps to our chains.
fn jumps(name: &str) -> Vec<String> {
    let hooks = ["INPUT", "FORWARD", "OUTPUT", "PREROUTING", "POSTROUTING"];
    let is_jump = |line: &String| {
        hooks.iter().any(|hook| line.contains(&format!("-A {hook} "))) && line.contains("-j KUBE-")
    };
    saved(Family::Ipv4, name).into_iter().filter(is_jump).collect()
}

fn guards(name: &str) -> [bool; 3] {
    let lines = saved(Family::Ipv4, name);
    ["-j MASQUERADE", "block incoming localnet connections", "--ctstate INVALID"]
        .map(|words| lines.iter().any(|line| line.contains(words)))
}

#[test]
fn a_kernel_without_memory_lacks_nothing() {
    in_both(Family::Ipv4, |name, tables| {
        let (mut applier, mut cluster, start) = (applier(tables), cluster(SERVICES), Instant::now());
        for seconds in 0..3 {
            tables.set(Fault::NoMemory);
            let now = start + Duration::from_secs(seconds);
            let error = applier.sync(&mut cluster, now).expect_err("there is no memory");
            assert!(!error.is_refusal(), "{name}: {error}");
            assert!(error.refused().is_empty(), "{name}: {error}");
            assert_eq!(applier.support(Family::Ipv4), None, "{name}: nothing is known");
        }
        tables.set(Fault::Nothing);
        let synced = applier.sync(&mut cluster, start + Duration::from_secs(6)).expect("there is memory");
        assert_eq!(synced.faults().count(), 0, "{name}: {synced:?}");
        assert_eq!(guards(name), [true; 3], "{name}");
        assert_eq!(jumps(name).len(), 14, "{name}: {:?}", jumps(name));
        // And a failure later changes nothing of what is known.
        tables.set(Fault::NoMemory);
        applier.invalidate();
        applier.sync(&mut cluster, start + Duration::from_secs(7)).expect("nothing is to be restored");
        tables.set(Fault::Nothing);
        assert_eq!(guards(name), [true; 3], "{name}");
    });
}

#[test]
fn a_guard_that_is_missing_is_an_error_until_it_is_there_and_leaves_no_jump_behind() {
    in_both(Family::Ipv4, |name, tables| {
        let (mut applier, mut cluster, start) = (applier(tables), cluster(SERVICES), Instant::now());
        tables.set(Fault::NoMatch("conntrack"));
        let synced = applier.sync(&mut cluster, start).expect("the rest can be programmed");
        let faults: Vec<_> = synced.faults().collect();
        assert!(
            matches!(&*faults, [fault] if fault.contains("invalid packets are not dropped")),
            "{faults:?}"
        );
        assert_eq!(Summary::from(synced).faults, faults);
        assert_eq!(guards(name), [true, false, false], "{name}");
        let route_localnet = || testns::sh("cat /proc/sys/net/ipv4/conf/all/route_localnet");
        assert_eq!(route_localnet(), "0\n", "{name}: loopback is not opened where it cannot be guarded");
        assert!(!applier.support(Family::Ipv4).unwrap().has(Feature::Conntrack), "{name}");
        let synced = applier.sync(&mut cluster, start + Duration::from_secs(1)).unwrap();
        assert_eq!(synced.faults().count(), 1, "{name}: a sync that finds no change still has the fault");

        tables.set(Fault::Nothing);
        let synced = applier.sync(&mut cluster, start + Duration::from_secs(62)).unwrap();
        assert_eq!(synced.faults().count(), 0, "{name}: {synced:?}");
        assert_eq!((guards(name), route_localnet()), ([true; 3], "1\n".to_owned()), "{name}");
        let jumps = jumps(name);
        let conditional = jumps.iter().filter(|line| line.contains("--ctstate NEW")).count();
        assert_eq!((jumps.len(), conditional), (14, 7), "{name}: {jumps:?}");
    });
}

#[test]
fn jumps_of_ours_that_are_stale_or_there_twice_go_at_a_resync_and_those_of_others_stay() {
    in_both(Family::Ipv4, |name, tables| {
        let mut cluster = cluster(SERVICES);
        applier(tables).sync(&mut cluster, Instant::now()).unwrap();
        let before = saved(Family::Ipv4, name);
        let foreign = "*filter\n:MINE - [0:0]\n-A INPUT -m comment --comment KUBE-SERVICES -j MINE\n\
            -A MINE -j KUBE-FORWARD\nCOMMIT\n";
        restore(Family::Ipv4, name, foreign);
        let with_theirs = saved(Family::Ipv4, name);
        restore(
            Family::Ipv4,
            name,
            "*filter\n-I INPUT -j KUBE-EXTERNAL-SERVICES\n-A FORWARD -j KUBE-SERVICES\n\
                -I OUTPUT -p tcp -j KUBE-SERVICES\n\
             -A FORWARD -m comment --comment \"kubernetes forwarding rules\" -j KUBE-FORWARD\nCOMMIT\n\
             *nat\n:KUBE-SVC-STALESTALESTALES - [0:0]\n-A OUTPUT -j KUBE-SVC-STALESTALESTALES\n\
             -A POSTROUTING -j KUBE-POSTROUTING\n\
             -A PREROUTING -m comment --comment \"kubernetes service portals\" -j KUBE-SERVICES\nCOMMIT\n",
        );
        applier(tables).sync(&mut cluster, Instant::now()).unwrap();
        let sorted = |mut lines: Vec<String>| {
            lines.sort();
            lines
        };
        let (after, with_theirs) = (sorted(saved(Family::Ipv4, name)), sorted(with_theirs));
        assert_eq!(after, with_theirs, "{name}\n{}", difference(&with_theirs, &after));
        restore(
            Family::Ipv4,
            name,
            "*filter\n-D INPUT -m comment --comment KUBE-SERVICES -j MINE\n-F MINE\n-X MINE\nCOMMIT\n",
        );
        let cleaned = applier(tables).cleanup();
        assert!(cleaned.failed.is_empty(), "{cleaned:?}");
        let left = jumps(name).into_iter().filter(|line| !line.contains("KUBE-FIREWALL")).count();
        assert_eq!(left, 0, "{name}, of {before:?}");
    });
}

#[test]
fn what_the_kubelet_has_in_its_chain_stays_whatever_is_set() {
    for family in Family::BOTH {
        in_both(family, |name, tables| {
            let net = if family == Family::Ipv4 { "192.0.2.0/24" } else { "2001:db8::/32" };
            let theirs = format!(
                "*filter\n:KUBE-FIREWALL - [0:0]\n:KUBE-KUBELET-CANARY - [0:0]\n-A INPUT -j KUBE-FIREWALL\n\
                    -A OUTPUT -j KUBE-FIREWALL\n\
                 -A KUBE-FIREWALL -m comment --comment \"of the kubelet\" -s {net} -j DROP\nCOMMIT\n"
            );
            restore(family, name, &theirs);
            let theirs = saved(family, name);
            let all_there = |when: &str| {
                let now = saved(family, name);
                let missing: Vec<_> = theirs.iter().filter(|line| !now.contains(line)).collect();
                assert!(missing.is_empty(), "{name} {family} {when}: {missing:?}");
                now
            };
            let localhost = Settings { localhost_node_ports: true, ..settings() };
            let addresses: NodePortAddresses = "192.168.0.0/16".parse().unwrap();
            let variants = [
                ("loopback", localhost.clone(), true),
                ("switched off", Settings { localhost_node_ports: false, ..settings() }, false),
                (
                    "not among the addresses",
                    Settings { node_port_addresses: addresses, ..localhost.clone() },
                    false,
                ),
                ("loopback again", localhost, true),
            ];
            for (when, settings, guarded) in variants {
                let mut applier = Applier::with_tables(tables.open(), settings);
                for _ in 0..2 {
                    applier.sync(&mut cluster(SERVICES), Instant::now()).unwrap();
                    applier.invalidate();
                }
                let now = all_there(when);
                let guards = now.iter().filter(|line| line.contains("block incoming localnet")).count();
                // Switched off, the rule stays: it may be the kubelet's, which makes the same.
                let most = usize::from(family == Family::Ipv4);
                assert!(guards <= most && (!guarded || guards == most), "{name} {family} {when}: {now:?}");
                let jumps = now.iter().filter(|line| line.ends_with("-j KUBE-FIREWALL")).count();
                assert_eq!(jumps, 2, "{name} {family} {when}: {now:?}");
            }
            let mut applier = Applier::with_tables(tables.open(), settings());
            let cleaned = applier.cleanup();
            assert!(cleaned.failed.is_empty(), "{cleaned:?}");
            all_there("after a cleanup");
        });
    }
}

#[test]
fn without_localhost_node_ports_the_kubelets_chain_is_not_made() {
    in_both(Family::Ipv4, |name, tables| {
        let settings = Settings { localhost_node_ports: false, ..settings() };
        Applier::with_tables(tables.open(), settings).sync(&mut cluster(SERVICES), Instant::now()).unwrap();
        let named: Vec<_> =
            saved(Family::Ipv4, name).into_iter().filter(|line| line.contains("KUBE-FIREWALL")).collect();
        assert!(named.is_empty(), "{name}: {named:?}");
    });
}

#[test]
fn two_capabilities_are_enough() {
    if let Ok(step) = std::env::var(STEP) {
        return with_two_capabilities(&step);
    }
    if !testns::have(&["setpriv"]) {
        return;
    }
    in_both(Family::Ipv4, |name, _| {
        if testns::sh("id -u").trim() != "0" {
            return testns::skip("only root can become another user");
        }
        // This very test again, as another user, who can read neither its program nor the usual lock.
        let directory = std::env::temp_dir().join(format!("sluicegate-rights-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let (program, lock) = (directory.join("test"), directory.join("lock"));
        std::fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
        std::fs::write(&lock, "").unwrap();
        let _ = testns::sh(&format!("chmod 755 {0}; chmod 666 {0}/lock", directory.display()));
        let step = |step: &str, lock: Option<&Path>| {
            let mut command = Command::new("setpriv");
            command
                .args(["--reuid", "54321", "--regid", "54321", "--clear-groups"])
                .args(["--inh-caps=+net_admin,+net_raw", "--ambient-caps=+net_admin,+net_raw"])
                .arg(&program)
                .args(["--exact", "iptables::guards::two_capabilities_are_enough"])
                .env(STEP, format!("{step} {name}"));
            command.envs(lock.map(|lock| ("XTABLES_LOCKFILE", lock)));
            let output = command.output().unwrap();
            assert!(output.status.success(), "{name}, {step}: {}", String::from_utf8_lossy(&output.stdout));
        };
        step("sync", Some(&lock));
        assert_eq!(guards(name), [true; 3], "{name}");
        step("cleanup", Some(&lock));
        let left = jumps(name).into_iter().filter(|line| !line.contains("KUBE-FIREWALL")).count();
        assert_eq!(left, 0, "{name}");
        if name == "legacy" {
            step("locked", None);
        }
        std::fs::remove_dir_all(&directory).unwrap();
    });
}

/// A step in a process with two capabilities, in the network namespace of the test that started it.
fn with_two_capabilities(step: &str) {
    let (step, name) = step.split_once(' ').expect("a step and a back end");
    let mut applier = applier(&FaultyTables::new(name, Family::Ipv4));
    match step {
        "sync" => {
            applier.sync(&mut cluster(SERVICES), Instant::now()).expect("two capabilities are enough");
            let differences = applier.difference(&cluster(SERVICES)).expect("it can be read");
            assert!(differences.iter().all(|(_, input)| input.items.is_empty()), "{differences:?}");
        }
        "cleanup" => {
            let cleaned = applier.cleanup();
            assert!(cleaned.failed.is_empty() && cleaned.removed.len() == 1, "{cleaned:?}");
        }
        _ => {
            let error = applier.sync(&mut cluster(SERVICES), Instant::now()).expect_err("no lock");
            let text = error.to_string();
            assert!(error.is_permission_denied() && text.contains("XTABLES_LOCKFILE"), "{text}");
        }
    }
}

/// The environment variable that tells a test which step it is.
const STEP: &str = "SLUICEGATE_TWO_CAPABILITIES";
