//! Probes for the matches and targets that tool and kernel have.
//!
//! `iptables-restore --test` detects features that the tool lacks, but does not ask the kernel (measured with
//! 1.8.9, both back ends). So rules with each of them are added to a scratch chain that no packet reaches,
//! and removed with it.
//!
//! A feature is missing where the tool says that there is no such match, target or protocol. Whatever else
//! goes wrong (no memory, no rights, another program's change) says nothing about features and fails the
//! probe. Legacy `iptables-restore` gives no reason for what the kernel refuses; `iptables` itself does, and
//! is asked.

use sluicegate_iptables_save::Cause;
use sluicegate_iptables_save::restore::{BackEnd, Restore, Tool};

use super::applier::{HOW, iptables};
use super::counters::Counters;
use super::fixed::PROBE;
use super::{Feature, INVALID_COUNTER, LOCALHOST_COUNTER, Support};
use crate::Error;

/// Returns the supported features, found by trial in the kernel.
pub(super) fn by_trial(tool: &Tool) -> Result<Support, Error> {
    let mut features = known_to(tool);
    if !counters_are_there() {
        features.retain(|feature| *feature != Feature::Nfacct);
    }
    let known = loadable(tool, &features, TEST)?;
    let there = loadable(tool, &known, HOW);
    let removed = remove(tool);
    let there = there?;
    removed?;
    Ok(Support::without(Feature::ALL.into_iter().filter(|feature| !there.contains(feature))))
}

/// Returns the features that the tool supports, without asking the kernel. `counted` tells whether there are
/// rules with nfacct already.
pub(super) fn by_test(tool: &Tool, counted: bool) -> Result<Support, Error> {
    let mut features = known_to(tool);
    if !counted {
        features.retain(|feature| *feature != Feature::Nfacct);
    }
    let there = loadable(tool, &features, TEST)?;
    Ok(Support::without(Feature::ALL.into_iter().filter(|feature| !there.contains(feature))))
}

/// Returns the features that a tool of this version may have.
fn known_to(tool: &Tool) -> Vec<Feature> {
    let old = tool.version() < (1, 6, 2);
    Feature::ALL.into_iter().filter(|feature| !(old && *feature == Feature::RandomFully)).collect()
}

/// Returns those of `features` that can be loaded: tries all together, and if that fails each separately.
fn loadable(tool: &Tool, features: &[Feature], how: Restore) -> Result<Vec<Feature>, Error> {
    if try_these(tool, features, how)? {
        return Ok(features.to_vec());
    }
    let mut there = Vec::new();
    for feature in features {
        if try_these(tool, &[*feature], how)? {
            there.push(*feature);
        }
    }
    Ok(there)
}

/// Returns whether rules with all of these can be loaded. A failure that does not tell is an error.
fn try_these(tool: &Tool, features: &[Feature], how: Restore) -> Result<bool, Error> {
    let Err(error) = tool.apply_text(&input(features), how) else { return Ok(true) };
    match (error.cause(), features) {
        (Some(Cause::Unsupported), _) => Ok(false),
        (Some(Cause::Invalid), [feature]) if tool.back_end() == BackEnd::Legacy => by_itself(tool, *feature),
        (Some(Cause::Invalid), [_, _, ..]) if tool.back_end() == BackEnd::Legacy => Ok(false),
        _ => Err(iptables(DOING)(error)),
    }
}

/// Returns whether rules with the feature can be appended one by one, by the tool that gives reasons.
fn by_itself(tool: &Tool, feature: Feature) -> Result<bool, Error> {
    tool.apply_text(&input(&[]), HOW).map_err(iptables(DOING))?;
    let (table, rules) = feature.probe();
    for words in rules {
        match tool.append(table, PROBE, words) {
            Ok(()) => {}
            // The chain was made above, so that it is the match or target that there is none of.
            Err(error) if matches!(error.cause(), Some(Cause::Missing | Cause::Unsupported)) => {
                return Ok(false);
            }
            Err(error) => return Err(iptables(DOING)(error)),
        }
    }
    Ok(true)
}

fn input(features: &[Feature]) -> String {
    let mut text = String::new();
    for table in ["filter", "nat"] {
        text += &format!("*{table}\n:{PROBE} - [0:0]\n");
        for feature in features.iter().filter(|feature| feature.probe().0 == table) {
            feature.probe().1.iter().for_each(|words| text += &format!("-A {PROBE} {words}\n"));
        }
        text += "COMMIT\n";
    }
    text
}

fn remove(tool: &Tool) -> Result<(), Error> {
    let table = |name: &str| format!("*{name}\n:{PROBE} - [0:0]\n-X {PROBE}\nCOMMIT\n");
    let removed = tool.apply_text(&(table("filter") + &table("nat")), HOW);
    removed.map_err(iptables("removing the chain of the trial"))
}

/// Creates the two nfacct counters unless they exist. Returns false if the kernel does not have nfacct, or if
/// they cannot be created: rules are planned without them then.
fn counters_are_there() -> bool {
    let Ok(mut counters) = Counters::open() else { return false };
    [INVALID_COUNTER, LOCALHOST_COUNTER].into_iter().all(|name| counters.ensure(name).is_ok())
}

const DOING: &str = "finding out what iptables can do";
const TEST: Restore = Restore { counters: true, test: true, wait: Some(5), wait_interval: None };
