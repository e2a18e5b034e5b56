//! Which matches and targets tool and kernel have, asked once.
//!
//! `iptables-restore --test` tells what the tool lacks; it does not ask the kernel (measured with 1.8.9, both back ends). So rules
//! with each of them are put into a scratch chain that no packet meets, and removed with it.

use sluicegate_iptables_save::restore::{Restore, Tool};
use sluicegate_iptables_save::{self as save, Cause};

use super::counters::Counters;
use super::{HOW, iptables};
use crate::Error;
use crate::plan::iptables::{Feature, INVALID_COUNTER, LOCALHOST_COUNTER, Support};

/// What is missing, found by trial in the kernel.
pub(super) fn by_trial(tool: &Tool) -> Result<Support, Error> {
    let mut features = known_to(tool);
    if !counters_are_there() {
        features.retain(|feature| *feature != Feature::Nfacct);
    }
    let known = loadable(tool, &features, TEST)?;
    let there = loadable(tool, &known, HOW);
    remove(tool)?;
    let there = there?;
    Ok(Support::without(Feature::ALL.into_iter().filter(|feature| !there.contains(feature))))
}

/// What is missing as far as the tool alone knows; changes nothing. `counted`: there are rules with nfacct already.
pub(super) fn by_test(tool: &Tool, counted: bool) -> Result<Support, Error> {
    let mut features = known_to(tool);
    if !counted {
        features.retain(|feature| *feature != Feature::Nfacct);
    }
    let there = loadable(tool, &features, TEST)?;
    Ok(Support::without(Feature::ALL.into_iter().filter(|feature| !there.contains(feature))))
}

/// All that a tool of this version may have.
fn known_to(tool: &Tool) -> Vec<Feature> {
    let old = tool.version() < (1, 6, 2);
    Feature::ALL.into_iter().filter(|feature| !(old && *feature == Feature::RandomFully)).collect()
}

/// Those of `features` that can be loaded: all at once, or else each by itself.
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

/// Whether rules with all of these can be loaded. A failure for another reason is an error.
fn try_these(tool: &Tool, features: &[Feature], how: Restore) -> Result<bool, Error> {
    match tool.restore(&input(features), how) {
        Ok(()) => Ok(true),
        Err(error) if is_refusal(&error) => Ok(false),
        Err(error) => Err(iptables("finding out what iptables can do")(error)),
    }
}

fn is_refusal(error: &save::Error) -> bool {
    error.cause().is_some_and(|cause| !matches!(cause, Cause::Permission | Cause::Locked))
}

fn input(features: &[Feature]) -> String {
    let mut text = String::new();
    for table in ["filter", "nat"] {
        text += &format!("*{table}\n:{CHAIN} - [0:0]\n");
        for feature in features.iter().filter(|feature| feature.probe().0 == table) {
            feature.probe().1.iter().for_each(|words| text += &format!("-A {CHAIN} {words}\n"));
        }
        text += "COMMIT\n";
    }
    text
}

fn remove(tool: &Tool) -> Result<(), Error> {
    let table = |name: &str| format!("*{name}\n:{CHAIN} - [0:0]\n-X {CHAIN}\nCOMMIT\n");
    let removed = tool.restore(&(table("filter") + &table("nat")), HOW);
    removed.map_err(iptables("removing the chain of the trial"))
}

/// Makes the two counters of nfacct, unless they are there. False where the kernel has none, or they cannot be made: then
/// rules do without.
fn counters_are_there() -> bool {
    let Ok(mut counters) = Counters::open() else { return false };
    [INVALID_COUNTER, LOCALHOST_COUNTER].into_iter().all(|name| counters.ensure(name).is_ok())
}

const CHAIN: &str = "KUBE-PROXY-PROBE";
const TEST: Restore =
    Restore { noflush: true, counters: true, test: true, wait: Some(5), wait_interval: None };
