//! The checks; those that fail fast come first.

use std::fs;
use std::process::Command;

use crate::programs::How;
use crate::report::Outcome;
use crate::session::{Session, shown, works};
use crate::{
    alone, api, bench, dependents, distribution, fuzz, guest, image, miri, msrv, package, parallel, programs,
    test_run,
};

/// A check.
pub(crate) struct Check {
    /// The name on the command line and in the summary.
    pub name: &'static str,
    /// A description of it.
    pub what: &'static str,
    /// Whether it is made where nobody names it: it needs nothing but cargo.
    pub is_quick: bool,
    /// Whether it is made beside the checks after it, as it mostly waits, or has long parts for one processor. It
    /// counts no tests as it goes.
    pub is_beside: bool,
    /// The minutes that it usually takes on two processors, in the order of `--all`, building included.
    pub minutes: f64,
    /// Runs the check. An error is a failure.
    pub make: fn(&Session) -> Result<Outcome, String>,
}

impl Check {
    const fn quick(
        name: &'static str,
        minutes: f64,
        what: &'static str,
        make: fn(&Session) -> Result<Outcome, String>,
    ) -> Self {
        Self { name, what, is_quick: true, is_beside: false, minutes, make }
    }

    const fn of_all(
        name: &'static str,
        minutes: f64,
        what: &'static str,
        make: fn(&Session) -> Result<Outcome, String>,
    ) -> Self {
        Self { is_quick: false, ..Self::quick(name, minutes, what, make) }
    }

    const fn beside(self) -> Self {
        Self { is_beside: true, ..self }
    }
}

/// All checks.
pub(crate) const ALL: &[Check] = &[
    Check::quick("fmt", 0.1, "the code is formatted", fmt),
    Check::of_all("typos", 0.1, "the words are spelt as in a dictionary (typos)", typos),
    Check::of_all("deny", 0.1, "dependencies: bans, licences, sources (cargo-deny)", deny),
    Check::of_all("msrv", 0.9, "the oldest Rust that we promise, as far as it is installed", msrv::check),
    Check::quick("test", 5.0, "unit and integration tests, as root of a namespace or of the machine", test),
    Check::quick("doctest", 0.3, "examples in the documentation", doctest),
    Check::quick("demo", 0.5, "the demo of the README", demo),
    Check::of_all("user", 0.7, "the same tests as a user without rights: what they cannot do they say", user),
    Check::of_all(
        "features",
        2.2,
        "tests and documentation's examples with all features, where these differ",
        features,
    ),
    Check::of_all("clippy", 1.4, "lints, all targets, with all features and with the default ones", clippy),
    // Sieges and steps mostly wait: beside what compiles.
    Check::of_all("soak", 2.0, "the run loop under siege, in three forms of rules", soak).beside(),
    Check::of_all(
        "programs",
        1.2,
        "ufw, fail2ban, the CNI plug-ins and others do the same over our tools as over those they know",
        distribution::check,
    )
    .beside(),
    Check::of_all(
        "alone",
        4.5,
        "each library compiles alone with each feature on and off, without warnings",
        alone::check,
    ),
    Check::of_all(
        "doc",
        0.7,
        "documentation of each library alone, as docs.rs makes it, and of the rest",
        alone::doc,
    ),
    Check::of_all("api", 0.2, "the public API of each library is that of api/", api::check),
    Check::of_all("package", 0.3, "packages are complete and compile alone", package::check),
    Check::of_all(
        "dependents",
        0.1,
        "programs with another version of the Kubernetes API build with our libraries",
        dependents::check,
    ),
    Check::of_all(
        "guest",
        5.5,
        "tests in kernels of their own, those of each package's manifest",
        guest::check,
    ),
    // What is compiled beside each other has directories of its own, which cargo locks.
    Check::of_all("bench", 1.3, "every benchmark runs once, and a report is made", bench::smoke).beside(),
    // Its program is linked, and the slowest of its targets runs, on one processor.
    Check::of_all("fuzz", 7.5, "a fixed number of fuzzing runs for every target", fuzz::check).beside(),
    Check::of_all("miri", 1.9, "wire code in Miri, where it is installed", miri::check),
    Check::of_all(
        "image",
        9.0,
        "the container image: static, small, reproducible, and it proxies without being root",
        image::check::check,
    ),
];

/// The checks that can make one of their tests alone.
pub(crate) const OF_TESTS: [&str; 6] = ["test", "doctest", "user", "features", "guest", "fuzz"];

fn fmt(session: &Session) -> Result<Outcome, String> {
    if !works("cargo", &["fmt", "--version"]) {
        return Ok(Outcome::skipped("rustfmt is not installed (rustup component add rustfmt)"));
    }
    session.run(session.cargo().args(["fmt", "--all", "--check"]))?;
    let manifest = session.root.join("fuzz/Cargo.toml");
    if manifest.exists() {
        session.run(session.cargo().args(["fmt", "--check", "--manifest-path"]).arg(manifest))?;
    }
    Ok(Outcome::passed())
}

fn typos(session: &Session) -> Result<Outcome, String> {
    if !works("typos", &["--version"]) {
        return Ok(Outcome::skipped("typos is not installed (cargo install --locked typos-cli)"));
    }
    session.run(Command::new("typos").current_dir(&session.root).args(["--format", "brief"]))?;
    Ok(Outcome::passed())
}

fn deny(session: &Session) -> Result<Outcome, String> {
    if !works("cargo-deny", &["--version"]) {
        return Ok(Outcome::skipped("cargo-deny is not installed (cargo install --locked cargo-deny)"));
    }
    session.run(session.cargo().args([
        "deny",
        "--workspace",
        "--all-features",
        "check",
        "bans",
        "licenses",
        "sources",
    ]))?;
    Ok(Outcome::passed().note(
        "checked: bans, licences, sources. Not checked: advisories, whose database is on a host that need \
         not be \
         reachable; `cargo deny check advisories` does it",
    ))
}

fn clippy(session: &Session) -> Result<Outcome, String> {
    let mut cargo = session.cargo();
    cargo.arg("clippy").args(EVERYTHING).args(["--all-targets", "--keep-going", "--"]);
    // The second lint finds items of the standard library that are newer than our MSRV.
    session.run(cargo.args(["-D", "warnings", "-D", "clippy::incompatible_msrv"]))?;
    // Most users enable few features. What these do not change is not compiled again.
    let mut cargo = session.cargo();
    cargo.args(["clippy", "--workspace", "--exclude", "benches", "--all-targets", "--keep-going", "--"]);
    session.run(cargo.args(["-D", "warnings", "-D", "clippy::incompatible_msrv"]))?;
    Ok(Outcome::passed())
}

fn test(session: &Session) -> Result<Outcome, String> {
    let programs = programs::build(session, DEFAULT)?;
    let how = How { check: "test", runner: session.as_root(), skips_count: true };
    programs::run(session, &programs.iter().collect::<Vec<_>>(), &how)
}

/// What `cargo test --workspace` does for whoever is not root: the tests that cannot run there say so.
fn user(session: &Session) -> Result<Outcome, String> {
    let programs = programs::build(session, DEFAULT)?;
    let how = How { check: "user", runner: session.as_user(), skips_count: false };
    let mut outcome = programs::run(session, &programs.iter().collect::<Vec<_>>(), &how)?;
    if session.only.is_none() {
        let mut cargo = session.cargo_test(&session.as_user());
        cargo.args(DEFAULT).arg("--doc").env_remove("SLUICEGATE_NO_SKIP");
        outcome.add(test_run::run(&mut cargo)?);
    }
    let skips = std::mem::take(&mut outcome.skips).len();
    Ok(outcome.note(format!("{skips} tests said that they need rights, and passed in the check `test`")))
}

/// What `cargo test --workspace --all-features` has beside the programs of `test`.
fn features(session: &Session) -> Result<Outcome, String> {
    let (default, all) = (programs::build(session, DEFAULT)?, programs::build(session, &EVERYTHING)?);
    let how = How { check: "features", runner: session.as_root(), skips_count: true };
    let mut outcome = programs::run(session, &programs::without(&all, &default), &how)?;
    outcome.add(examples(session, "features", &EVERYTHING)?);
    Ok(outcome)
}

fn doctest(session: &Session) -> Result<Outcome, String> {
    examples(session, "doctest", DEFAULT)
}

/// Runs the examples in the documentation.
fn examples(session: &Session, check: &str, arguments: &[&str]) -> Result<Outcome, String> {
    // With a runner, rustdoc runs all examples of a crate in one process. Root does not need ours.
    let mut cargo = session.cargo_test(&session.as_root());
    cargo.args(arguments).arg("--doc").arg("--").args(session.only_tests());
    let mut outcome = test_run::run(&mut cargo)?;
    for failure in &mut outcome.failures {
        *failure = format!("{failure}\n{}", programs::again(check, failure));
    }
    Ok(outcome)
}

/// The packages and features of a plain `cargo test`.
const DEFAULT: &[&str] = &["--workspace"];

/// The packages and features that many checks build: the same, so that each is compiled once.
pub(crate) const EVERYTHING: [&str; 2] = ["--workspace", "--all-features"];

/// The command in the README.
fn demo(session: &Session) -> Result<Outcome, String> {
    let readme = fs::read_to_string(session.root.join("README.md")).map_err(|e| format!("README.md: {e}"))?;
    if !readme.contains(DEMO) {
        return Ok(Outcome::skipped(format!("README.md does not show `{DEMO}`")));
    }
    session.run(session.cargo().args(DEMO.split_whitespace().skip(1)))?;
    Ok(Outcome::passed())
}

/// The forms of rules beside each other, each in a namespace: a siege is mostly pauses.
fn soak(session: &Session) -> Result<Outcome, String> {
    session.run(session.cargo().args(["build", "--package", "sluicegate-lab", "--features", "soak"]))?;
    let lab = session.keep("sluicegate-lab")?;
    let sieges = [("maps", "1"), ("chains", "0.5"), ("iptables-nft", "0.5")];
    Ok(parallel::each_in(&sieges, &sieges.map(drop), |(rules, minutes), ()| {
        let mut siege = Command::new(&lab);
        siege.current_dir(&session.root).args(["soak", "--rules", rules, "--minutes", minutes]);
        let title = format!("$ {}", shown(&siege));
        let mut outcome = test_run::run_titled(&mut siege, &title)?;
        outcome.passed += usize::from(outcome.failures.is_empty());
        Ok(outcome)
    }))
}

const DEMO: &str = "cargo lab demo";
