//! Each published library by itself, as its users build it. In the workspace, where cargo unifies features,
//! one package hides what another lacks.
//!
//! - [`check`] compiles and lints it without features, with each, and with all but each; a warning fails.
//!   Where
//!   `[package.metadata.alone]` has `tests = true`, its tests as well, each time in a run of their own, as what
//!   they depend on turns features on.
//! - [`doc`] documents it with all features, as docs.rs does.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Stdio;

use serde_json::Value;

use crate::report::Outcome;
use crate::session::{Session, shown};
use crate::{children, parallel, progress};

type Features = BTreeSet<String>;

pub(crate) fn check(session: &Session) -> Result<Outcome, String> {
    let packages: Vec<_> = session.published().collect();
    // A library is compiled by one thread, and cargo lets one process at a time into a directory.
    let directories = [session.target().to_owned(), session.target().join("alone")];
    Ok(parallel::each_in(&packages, &directories, |package, directory| {
        let mut outcome = Outcome::default();
        for features in choices(package) {
            for what in targets(package) {
                outcome
                    .add(lint(session, package, &features, what, directory).unwrap_or_else(Outcome::failed));
            }
        }
        Ok(outcome)
    }))
}

/// Returns what of a package is compiled: cargo's words for each run.
fn targets(package: &Value) -> &'static [&'static [&'static str]] {
    let with_tests = package["metadata"]["alone"]["tests"] == true;
    if with_tests { &[&[], &["--tests"]] } else { &[&[]] }
}

/// Compiles and lints a package with these features alone. A warning fails. Ours that it depends on are compiled as
/// well, and linted in their own turn.
fn lint(
    session: &Session,
    package: &Value,
    features: &Features,
    targets: &[&str],
    directory: &Path,
) -> Result<Outcome, String> {
    let mut cargo = session.cargo();
    cargo.args(["clippy", "--quiet", "--no-deps", "--no-default-features", "--package", name(package)]);
    if !features.is_empty() {
        cargo.arg("--features").arg(features.iter().map(String::as_str).collect::<Vec<_>>().join(","));
    }
    cargo.args(targets);
    let shown = shown(&cargo);
    progress::say(format!("$ {shown}"));
    cargo.env("CARGO_TARGET_DIR", directory).stderr(Stdio::piped());
    let output = children::output(&mut cargo).map_err(|e| format!("{shown}: {e}"))?;
    // Quiet, cargo prints warnings and errors alone; what it has compiled before it tells again.
    let said = String::from_utf8_lossy(&output.stderr);
    said.lines().for_each(progress::say);
    if output.status.success() && said.is_empty() {
        Ok(Outcome::passed())
    } else {
        Err(format!("{}\nagain: {shown}", name(package)))
    }
}

pub(crate) fn doc(session: &Session) -> Result<Outcome, String> {
    let mut outcome = Outcome::default();
    let document = |packages: &[&str]| {
        let mut cargo = session.cargo();
        cargo.args(["doc", "--no-deps", "--all-features"]).env("RUSTDOCFLAGS", "-D warnings");
        cargo.args(packages.iter().flat_map(|package| ["--package", package]));
        session.run(&mut cargo).map_err(|why| format!("{why}\nagain: {}", shown(&cargo)))
    };
    let mut take = |result| match result {
        Ok(()) => outcome.passed += 1,
        Err(why) => outcome.failures.push(why),
    };
    session.published().for_each(|package| take(document(&[name(package)])));
    let others: Vec<_> =
        session.members().filter(|package| !package["publish"].is_null()).map(name).collect();
    take(document(&others));
    Ok(outcome)
}

fn name(package: &Value) -> &str {
    package["name"].as_str().unwrap_or_default()
}

/// Returns the sets of features to try: none, each, all but each, and all; with what they turn on, each once.
fn choices(package: &Value) -> BTreeSet<Features> {
    let all: Features =
        package["features"].as_object().into_iter().flatten().map(|(name, _)| name.clone()).collect();
    let all: Features = all.into_iter().filter(|name| name != "default").collect();
    let one = |name: &String| Features::from([name.clone()]);
    let each = all.iter().map(one);
    let others = all.iter().map(|name| all.difference(&one(name)).cloned().collect());
    let choices = each.chain(others).chain([Features::new(), all.clone()]);
    choices.map(|features| turned_on(package, features)).collect()
}

fn turned_on(package: &Value, mut features: Features) -> Features {
    loop {
        let implied = features.iter().filter_map(|name| package["features"][name].as_array()).flatten();
        let implied =
            implied.filter_map(Value::as_str).filter(|name| package["features"].get(name).is_some());
        let more: Features = implied.map(str::to_owned).collect();
        if more.is_subset(&features) {
            return features;
        }
        features.extend(more);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_feature_is_tried_on_and_off() {
        let package = serde_json::json!({"features": {
            "default": ["cli"],
            "cli": ["daemon", "dep:clap"],
            "daemon": ["dep:tokio"],
            "kube": ["daemon", "x/y"],
        }});
        let tried: Vec<_> =
            choices(&package).into_iter().map(|set| set.into_iter().collect::<Vec<_>>().join(" ")).collect();
        assert_eq!(tried, ["", "cli daemon", "cli daemon kube", "daemon", "daemon kube"]);
        assert_eq!(choices(&serde_json::json!({"features": {}})).len(), 1);
    }
}
