//! Probes for the matches and targets that the kernel has.
//!
//! That the kernel has a revision of an extension does not tell whether it takes it in a rule. So rules with
//! each of them are added to a scratch chain that no packet reaches, and removed with it. What a rule that is
//! there already has needs no trial.
//!
//! In a table with thousands of services each trial costs as much as a change of a service, or two: the
//! kernel validates all of it, or replaces it. So what works in any table is tried in table mangle, which is
//! small.
//!
//! A feature is missing where the kernel has no such match, target or protocol. Whatever else goes wrong (no
//! memory, no rights, another program's change) says nothing about features and fails the probe.

use std::collections::{BTreeMap, BTreeSet};

use sluicegate_iptables_save::Save;
use sluicegate_xtables as xtables;

use super::applier::{iptables, rules};
use super::counters::Counters;
use super::fixed::PROBE;
use super::{Feature, INVALID_COUNTER, LOCALHOST_COUNTER, Support, Tables, is_ours};
use crate::Error;

/// Returns the supported features, found by trial in the kernel, which has the rules of `current`.
pub(super) fn by_trial(tables: &mut dyn Tables, current: &Save<'_>) -> Result<Support, Error> {
    let mut features = Feature::ALL.to_vec();
    if !counters_are_there() {
        features.retain(|feature| *feature != Feature::Nfacct);
    }
    let mut there = in_use(current);
    features.retain(|feature| !there.contains(feature));
    if !features.is_empty() {
        // A kernel may lack the table.
        let any = if tables.has_chain(ANY_TABLE, "INPUT").map_err(iptables(DOING))? { ANY_TABLE } else { "" };
        let loaded = loadable(tables, &features, any);
        let removed = remove(tables, &features, any);
        there.extend(loaded?);
        removed?;
    }
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
fn loadable(tables: &mut dyn Tables, features: &[Feature], any: &str) -> Result<Vec<Feature>, Error> {
    match apply(tables, features, any)? {
        Ok(()) => return Ok(features.to_vec()),
        Err(error) if error.is_unsupported() || error.is_refusal() => {}
        Err(error) => return Err(iptables(DOING)(error)),
    }
    let mut there = Vec::new();
    for feature in features {
        match apply(tables, &[*feature], any)? {
            Ok(()) => there.push(*feature),
            // The chain is made with the rules, so that it is the match or target that there is none of.
            Err(error) if error.is_unsupported() || error.is_not_found() => {}
            Err(error) => return Err(iptables(DOING)(error)),
        }
    }
    Ok(there)
}

/// Adds rules with these features to the scratch chains.
fn apply(
    tables: &mut dyn Tables,
    features: &[Feature],
    any: &str,
) -> Result<Result<(), xtables::Error>, Error> {
    let mut text = String::new();
    for (table, features) in by_table(features, any) {
        text += &format!("*{table}\n:{PROBE} - [0:0]\n");
        for feature in features {
            feature.probe().1.iter().for_each(|words| text += &format!("-A {PROBE} {words}\n"));
        }
        text += "COMMIT\n";
    }
    Ok(tables.apply(&Save::parse(&text).map_err(rules(DOING))?))
}

/// Returns the tables in which features are tried. `any` is one for those that work in every table, or empty.
fn by_table<'a>(features: &[Feature], any: &'a str) -> BTreeMap<&'a str, Vec<Feature>> {
    let mut tables: BTreeMap<&str, Vec<Feature>> = BTreeMap::new();
    for feature in features {
        let is_bound = matches!(feature, Feature::Masquerade | Feature::RandomFully | Feature::Reject);
        let table = if is_bound || any.is_empty() { feature.probe().0 } else { any };
        tables.entry(table).or_default().push(*feature);
    }
    tables
}

/// Returns the features that our rules in the kernel have. One whose counters may be missing is not among
/// them.
fn in_use(current: &Save<'_>) -> BTreeSet<Feature> {
    let mut missing: Vec<_> =
        Feature::ALL.into_iter().filter(|feature| *feature != Feature::Nfacct).collect();
    let mut parts: BTreeSet<&str> = BTreeSet::new();
    for table in current.tables() {
        for rule in table.rules().filter(|rule| is_ours(table.name(), rule.chain())) {
            if missing.is_empty() {
                break;
            }
            let news: Vec<_> = missing.iter().flat_map(|feature| signs(*feature)).copied().collect();
            // Reading a rule costs more than looking for words, which a comment may have as well.
            let news: Vec<_> = news.into_iter().filter(|sign| rule.text().contains(sign)).collect();
            if news.iter().all(|sign| parts.contains(sign)) {
                continue;
            }
            let Ok(spec) = rule.spec() else { continue };
            let matches = spec.matches.iter();
            let target = spec.target.iter().map(|target| &target.module);
            for module in matches.chain(target) {
                parts.extend(news.iter().filter(|sign| *module.name == ***sign));
                let has =
                    |sign: &str| sign.strip_prefix("--").is_some_and(|name| module.option(name).is_some());
                parts.extend(news.iter().filter(|sign| has(sign)));
            }
            missing.retain(|feature| !signs(*feature).iter().all(|sign| parts.contains(sign)));
        }
    }
    Feature::ALL
        .into_iter()
        .filter(|feature| *feature != Feature::Nfacct && !missing.contains(feature))
        .collect()
}

/// Returns the matches, targets and options that a feature consists of.
fn signs(feature: Feature) -> &'static [&'static str] {
    match feature {
        Feature::Comment => &["comment"],
        Feature::Conntrack => &["conntrack"],
        Feature::Addrtype => &["addrtype"],
        Feature::Statistic => &["statistic"],
        Feature::Recent => &["recent"],
        Feature::Nfacct => &["nfacct"],
        Feature::Sctp => &["sctp"],
        Feature::Masquerade => &["mark", "MARK", "MASQUERADE"],
        Feature::RandomFully => &["--random-fully"],
        Feature::Reject => &["REJECT"],
    }
}

fn remove(tables: &mut dyn Tables, features: &[Feature], any: &str) -> Result<(), Error> {
    let table = |name: &str| format!("*{name}\n:{PROBE} - [0:0]\n-X {PROBE}\nCOMMIT\n");
    let text: String = by_table(features, any).into_keys().map(table).collect();
    let input = Save::parse(&text).map_err(rules(DOING))?;
    tables.apply(&input).map_err(iptables("removing the chain of the trial"))
}

/// Creates the two nfacct counters unless they exist. Returns false if the kernel does not have nfacct, or if
/// they cannot be created: rules are planned without them then.
fn counters_are_there() -> bool {
    let Ok(mut counters) = Counters::open() else { return false };
    [INVALID_COUNTER, LOCALHOST_COUNTER].into_iter().all(|name| counters.ensure(name).is_ok())
}

/// The table in which is tried what works in every one.
const ANY_TABLE: &str = "mangle";
const DOING: &str = "finding out which matches and targets the kernel has";
