//! Probes for the matches and targets that the kernel has.
//!
//! That the kernel has a revision of an extension does not tell whether it takes it in a rule. So rules with
//! each of them are added to a scratch chain that no packet reaches, and removed with it.
//!
//! A feature is missing where the kernel has no such match, target or protocol. Whatever else goes wrong (no
//! memory, no rights, another program's change) says nothing about features and fails the probe.

use sluicegate_iptables_save::Save;
use sluicegate_xtables as xtables;

use super::applier::{iptables, rules};
use super::counters::Counters;
use super::fixed::PROBE;
use super::{Feature, INVALID_COUNTER, LOCALHOST_COUNTER, Support, Tables};
use crate::Error;

/// Returns the supported features, found by trial in the kernel.
pub(super) fn by_trial(tables: &mut dyn Tables) -> Result<Support, Error> {
    let mut features = Feature::ALL.to_vec();
    if !counters_are_there() {
        features.retain(|feature| *feature != Feature::Nfacct);
    }
    let there = loadable(tables, &features);
    let removed = remove(tables);
    let there = there?;
    removed?;
    Ok(Support::without(Feature::ALL.into_iter().filter(|feature| !there.contains(feature))))
}

/// Returns the features whose matches and targets the kernel has, without changing anything. `counted` tells
/// whether there are rules with nfacct already.
pub(super) fn by_test(tables: &mut dyn Tables, counted: bool) -> Result<Support, Error> {
    let mut missing = Vec::new();
    for feature in Feature::ALL {
        let (table, rules) = feature.probe();
        let mut is_there = counted || feature != Feature::Nfacct;
        for words in rules {
            is_there = is_there && tables.has_extensions(table, words).map_err(iptables(DOING))?;
        }
        missing.extend((!is_there).then_some(feature));
    }
    Ok(Support::without(missing))
}

/// Returns those of `features` that can be loaded: tries all together, and if that fails each separately.
fn loadable(tables: &mut dyn Tables, features: &[Feature]) -> Result<Vec<Feature>, Error> {
    match apply(tables, features)? {
        Ok(()) => return Ok(features.to_vec()),
        Err(error) if error.is_unsupported() || error.is_refusal() => {}
        Err(error) => return Err(iptables(DOING)(error)),
    }
    let mut there = Vec::new();
    for feature in features {
        match apply(tables, &[*feature])? {
            Ok(()) => there.push(*feature),
            // The chain is made with the rules, so that it is the match or target that there is none of.
            Err(error) if error.is_unsupported() || error.is_not_found() => {}
            Err(error) => return Err(iptables(DOING)(error)),
        }
    }
    Ok(there)
}

/// Adds rules with these features to the scratch chains.
fn apply(tables: &mut dyn Tables, features: &[Feature]) -> Result<Result<(), xtables::Error>, Error> {
    let mut text = String::new();
    for table in ["filter", "nat"] {
        text += &format!("*{table}\n:{PROBE} - [0:0]\n");
        for feature in features.iter().filter(|feature| feature.probe().0 == table) {
            feature.probe().1.iter().for_each(|words| text += &format!("-A {PROBE} {words}\n"));
        }
        text += "COMMIT\n";
    }
    Ok(tables.apply(&Save::parse(&text).map_err(rules(DOING))?))
}

fn remove(tables: &mut dyn Tables) -> Result<(), Error> {
    let table = |name: &str| format!("*{name}\n:{PROBE} - [0:0]\n-X {PROBE}\nCOMMIT\n");
    let text = table("filter") + &table("nat");
    let input = Save::parse(&text).map_err(rules(DOING))?;
    tables.apply(&input).map_err(iptables("removing the chain of the trial"))
}

/// Creates the two nfacct counters unless they exist. Returns false if the kernel does not have nfacct, or if
/// they cannot be created: rules are planned without them then.
fn counters_are_there() -> bool {
    let Ok(mut counters) = Counters::open() else { return false };
    [INVALID_COUNTER, LOCALHOST_COUNTER].into_iter().all(|name| counters.ensure(name).is_ok())
}

const DOING: &str = "finding out which matches and targets the kernel has";
