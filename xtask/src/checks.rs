//! The checks; those that fail fast come first.

use std::fs;
use std::process::Command;

use nix::unistd::geteuid;

use crate::report::Outcome;
use crate::session::{Session, works};
use crate::{api, bench, dependents, fuzz, guest, image, miri, msrv, package, test_run};

/// A check.
pub(crate) struct Check {
    /// The name on the command line and in the summary.
    pub name: &'static str,
    /// A description of it.
    pub what: &'static str,
    /// Runs the check. An error is a failure.
    pub make: fn(&Session) -> Result<Outcome, String>,
}

/// All checks.
pub(crate) const ALL: &[Check] = &[
    Check { name: "fmt", what: "the code is formatted", make: fmt },
    Check { name: "typos", what: "the words are spelt as in a dictionary (typos)", make: typos },
    Check { name: "deny", what: "dependencies: bans, licences, sources (cargo-deny)", make: deny },
    Check { name: "msrv", what: "the oldest Rust that we promise", make: msrv::check },
    Check {
        name: "clippy",
        what: "lints, all targets, with all features and with the default ones, warnings denied",
        make: clippy,
    },
    Check {
        name: "dependents",
        what: "programs with another version of the Kubernetes API build with our libraries",
        make: dependents::check,
    },
    Check { name: "package", what: "packages are complete and compile alone", make: package::check },
    Check { name: "api", what: "the public API of each library is that of api/", make: api::check },
    Check { name: "doc", what: "documentation, warnings denied", make: doc },
    Check { name: "test", what: "unit and integration tests", make: test },
    Check { name: "conformance", what: "our bytes against those of libnftnl and neli", make: conformance },
    Check { name: "doctest", what: "examples in the documentation", make: doctest },
    Check { name: "miri", what: "wire code in Miri, where it is installed", make: miri::check },
    Check { name: "bench", what: "every benchmark runs once, and a report is made", make: bench::smoke },
    Check {
        name: "guest",
        what: "tests in kernels of their own, those of each package's manifest",
        make: guest::check,
    },
    Check {
        name: "image",
        what: "the container image: static, small, reproducible, and it proxies without being root",
        make: image::check::check,
    },
    Check { name: "demo", what: "the demo of the README", make: demo },
    Check { name: "fuzz", what: "a fixed number of fuzzing runs for every target", make: fuzz::check },
];

fn fmt(session: &Session) -> Result<Outcome, String> {
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
    cargo.args([
        "clippy",
        "--workspace",
        "--exclude",
        CONFORMANCE,
        "--all-targets",
        "--all-features",
        "--keep-going",
        "--",
    ]);
    // The second lint finds items of the standard library that are newer than our MSRV.
    session.run(cargo.args(["-D", "warnings", "-D", "clippy::incompatible_msrv"]))?;
    // All other checks enable all features, so that everything is compiled once. Most users enable few.
    let mut cargo = session.cargo();
    cargo.args(["clippy", "--workspace", "--exclude", "benches", "--all-targets", "--keep-going", "--"]);
    session.run(cargo.args(["-D", "warnings"]))?;
    // What an embedder takes who wants little. Above another package always asks for more.
    for features in ["", "fake", "monitor", "text"] {
        let mut cargo = session.cargo();
        cargo.args(["clippy", "--package", "sluicegate-nftables", "--lib", "--no-default-features"]);
        session.run(cargo.args(["--features", features, "--", "-D", "warnings"]))?;
    }
    Ok(Outcome::passed())
}

/// Returns the `cargo doc` command of the check.
pub(crate) fn doc_command(session: &Session) -> Command {
    let mut cargo = session.cargo();
    cargo.arg("doc").args(EVERYTHING).args(["--no-deps", "--keep-going"]).env("RUSTDOCFLAGS", "-D warnings");
    cargo
}

fn doc(session: &Session) -> Result<Outcome, String> {
    session.run(&mut doc_command(session))?;
    Ok(Outcome::passed())
}

fn test(session: &Session) -> Result<Outcome, String> {
    // Tests append to it from their processes. It need not exist.
    let _ = fs::remove_file(&session.skipped);
    // Tests call the examples as programs, while `cargo test --examples` builds them as tests of their own.
    session.run(session.cargo().arg("build").args(EVERYTHING).arg("--examples"))?;
    let mut cargo = session.cargo_test();
    cargo.args(EVERYTHING).args(["--lib", "--bins", "--tests", "--examples"]);
    let mut outcome = test_run::run(&mut cargo)?;
    let logged = fs::read_to_string(&session.skipped).unwrap_or_default();
    test_run::take_skips(&mut outcome, &logged);
    Ok(outcome)
}

/// The feature of this package needs C libraries, so it is linted and tested separately.
fn conformance(session: &Session) -> Result<Outcome, String> {
    let missing: Vec<_> = ["libnftnl >= 1.2.4", "libmnl"]
        .into_iter()
        .filter(|library| !works("pkg-config", &["--exists", library]))
        .collect();
    if !missing.is_empty() {
        let why =
            format!("pkg-config does not find {} (Debian: libnftnl-dev libmnl-dev)", missing.join(" and "));
        // The comparison with neli needs no C library.
        let mut outcome = test_run::run(session.cargo_test().args(["--package", CONFORMANCE]))?;
        outcome.add(Outcome::skipped(why));
        return Ok(outcome);
    }
    let package = ["--package", CONFORMANCE, "--all-features"];
    session.run(session.cargo().arg("clippy").args(package).args([
        "--all-targets",
        "--",
        "-D",
        "warnings",
    ]))?;
    test_run::run(session.cargo_test().args(package))
}

/// The package that needs libnftnl.
pub(crate) const CONFORMANCE: &str = "sluicegate-conformance";

/// The packages and features that most checks build: the same, so that each is compiled once.
pub(crate) const EVERYTHING: [&str; 4] = ["--workspace", "--exclude", CONFORMANCE, "--all-features"];

fn doctest(session: &Session) -> Result<Outcome, String> {
    // With a runner, rustdoc runs all examples of a crate in one process. Root does not need ours.
    let mut cargo = if geteuid().is_root() { session.cargo() } else { session.cargo_test() };
    if geteuid().is_root() {
        cargo.args(["test", "--no-fail-fast"]);
    }
    test_run::run(cargo.args(EVERYTHING).arg("--doc"))
}

/// The command in the README.
fn demo(session: &Session) -> Result<Outcome, String> {
    let readme = fs::read_to_string(session.root.join("README.md")).map_err(|e| format!("README.md: {e}"))?;
    if !readme.contains(DEMO) {
        return Ok(Outcome::skipped(format!("README.md does not show `{DEMO}`")));
    }
    session.run(session.cargo().args(DEMO.split_whitespace().skip(1)))?;
    Ok(Outcome::passed())
}

const DEMO: &str = "cargo lab demo";
