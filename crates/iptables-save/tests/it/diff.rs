//! `diff` against both back ends of the real tool: from a random state to another, in namespaces.

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use sluicegate_iptables_save::{Counters, Save, State, diff};
use testns::{feed, have, netns, sh};

const OWN: [&str; 5] = ["MINE-A", "MINE-B", "MINE-C", "MINE-D", "MINE-E"];

/// Rules of a chain that refer to chains behind it in the list alone, so that there are no loops.
fn rules(chain: usize, present: &[bool]) -> impl Strategy<Value = Vec<String>> + use<> {
    let later: Vec<_> = (chain + 1..OWN.len()).filter(|at| present[*at]).map(|at| OWN[at]).collect();
    let target = prop_oneof![
        Just("ACCEPT".to_owned()),
        Just("MARK --set-mark 0x4000".to_owned()),
        Just("FOREIGN".to_owned()),
        prop::sample::select(if later.is_empty() { vec!["RETURN"] } else { later }).prop_map(str::to_owned),
    ];
    let rule = (1_u16..6, prop::bool::ANY, target).prop_map(|(port, comment, target)| {
        let comment = if comment { " -m comment --comment \"port of \\\"it\\\"\"" } else { "" };
        format!("-p tcp --dport {port}{comment} -j {target}")
    });
    prop::collection::vec(rule, 0..7)
}

/// Returns the body of a table with some of our chains, every rule with its own counters.
fn state() -> impl Strategy<Value = String> {
    prop::collection::vec(prop::bool::weighted(0.7), OWN.len()).prop_flat_map(|present| {
        let all: Vec<_> = (0..OWN.len()).map(|chain| rules(chain, &present)).collect();
        all.prop_map(move |rules| {
            let mut text = String::new();
            let own = || OWN.iter().zip(&present).zip(&rules).filter(|((_, present), _)| **present);
            own().for_each(|((chain, _), _)| text.push_str(&format!(":{chain} - [0:0]\n")));
            for ((chain, _), rules) in own() {
                for (number, rule) in rules.iter().enumerate() {
                    text.push_str(&format!("[{}:{}] -A {chain} {rule}\n", number + 1, (number + 1) * 60));
                }
            }
            text
        })
    })
}

fn run(back_end: &str) {
    let (restore, save) =
        (format!("iptables-{back_end}-restore"), format!("iptables-{back_end}-save -c -t mangle"));
    if !have(&[&restore, &format!("iptables-{back_end}-save")]) {
        return;
    }
    netns(|| {
        let apply = |input: &str, arguments: &[&str]| {
            let output = feed(&[&[restore.as_str()], arguments].concat(), input);
            assert!(output.status.success(), "{}\n{input}", String::from_utf8_lossy(&output.stderr));
        };
        let foreign =
            ":FOREIGN - [0:0]\n[9:900] -A FOREIGN -s 10.0.0.1 -j ACCEPT\n[8:800] -A PREROUTING -j FOREIGN\n";
        let mut runner =
            TestRunner::new(Config { cases: 40, failure_persistence: None, ..Config::default() });
        let outcome = runner.run(&(state(), state()), |(before, after)| {
            apply(&format!("*mangle\n{foreign}{before}COMMIT\n"), &["-c"]);
            let had = sh(&save);
            let current = State::of(&Save::parse(&had).unwrap()).unwrap();
            let wanted = format!("*mangle\n{after}COMMIT\n");
            let desired = State::of(&Save::parse(&wanted).unwrap()).unwrap();
            let changes = diff(&current, &desired, |_, chain| OWN.contains(&chain)).unwrap();
            apply(&changes.to_string(), &["--noflush"]);
            let has = sh(&save);
            let now = State::of(&Save::parse(&has).unwrap()).unwrap();
            for chain in OWN {
                let normal = |state: &State<'_>| state.normal_of("mangle", chain).unwrap();
                prop_assert_eq!(normal(&now), normal(&desired), "{}", chain);
                if normal(&current) == normal(&desired) {
                    prop_assert_eq!(
                        counters(&now, chain),
                        counters(&current, chain),
                        "counters of {}",
                        chain
                    );
                }
            }
            let lines = |text: &str| {
                text.lines()
                    .filter(|line| line.contains("FOREIGN") && !line.contains("MINE"))
                    .map(str::to_owned)
                    .collect::<Vec<_>>()
            };
            prop_assert_eq!(lines(&has), lines(&had), "foreign");
            let again = diff(&now, &desired, |_, chain| OWN.contains(&chain)).unwrap();
            prop_assert_eq!(again.to_string(), "");
            Ok(())
        });
        outcome.unwrap_or_else(|error| panic!("{restore}: {error}"));
    });
}

fn counters(state: &State<'_>, chain: &str) -> Vec<Option<Counters>> {
    state
        .rules("mangle", chain)
        .unwrap_or_default()
        .iter()
        .map(sluicegate_iptables_save::Rule::counters)
        .collect()
}

#[test]
fn the_legacy_back_end_goes_from_any_state_to_any_other() {
    run("legacy");
}

#[test]
fn the_nft_back_end_goes_from_any_state_to_any_other() {
    run("nft");
}
