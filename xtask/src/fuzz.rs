//! Fuzzes the targets of `fuzz/`, each starting with its corpus and its regressions.
//!
//! The check makes a fixed number of runs with a fixed seed, so that a failure is due to the change that is
//! checked, and not to a machine that gets further. A campaign (`cargo xtask fuzz`) searches for a time, with
//! another seed each time, and tells what came of it in `fuzz/RESULTS.md`.
//!
//! New inputs are kept below the target directory, where the next campaign goes on from them; an input that
//! makes a target fail is left in `fuzz/artifacts/TARGET`, to be moved to `fuzz/regressions/TARGET` with the
//! fix.

mod results;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::report::Outcome;
use crate::session::{Session, shown, works};
use crate::{children, progress};
use results::{Campaign, Results};

pub(crate) fn check(session: &Session) -> Result<Outcome, String> {
    if let Some(missing) = missing() {
        return Ok(Outcome::skipped(missing));
    }
    build(session, CHECKED)?;
    let mut outcome = Outcome::default();
    for target in targets(session)? {
        let found = session.scratch.join("fuzz").join(&target);
        // What an earlier check found would make this one another.
        let _ = fs::remove_dir_all(&found);
        let arguments =
            [format!("-runs={RUNS}"), format!("-max_total_time={MOST_SECONDS}"), "-seed=1".into()];
        match fuzz(session, &target, &found, &arguments, CHECKED) {
            Ok(_) => outcome.passed += 1,
            Err(why) => outcome.failures.push(format!("{target}: {why}")),
        }
    }
    Ok(outcome)
}

/// Fuzzes these targets, or all, so many seconds each, and writes the results. With `keep`, the inputs that
/// reach what the corpus does not are added to it.
pub(crate) fn campaign(session: &Session, names: &[String], seconds: u64, keep: bool) -> Result<(), String> {
    if let Some(missing) = missing() {
        return Err(missing);
    }
    let all = targets(session)?;
    if let Some(unknown) = names.iter().find(|name| !all.contains(name)) {
        return Err(format!("no target is called {unknown}; there are {}", all.join(", ")));
    }
    build(session, SEARCHING)?;
    let path = session.root.join("fuzz/RESULTS.md");
    let mut failed = Vec::new();
    for target in all.iter().filter(|target| names.is_empty() || names.contains(target)) {
        let found = session.target().join("fuzz-found").join(target);
        let result = fuzz(session, target, &found, &[format!("-max_total_time={seconds}")], SEARCHING);
        let log = match &result {
            Ok(log) => log,
            Err(why) => {
                failed.push(format!("{target}: {why}"));
                continue;
            }
        };
        let done = Campaign::of_log(log).ok_or_else(|| format!("{target}: libFuzzer told no result"))?;
        progress::say(format!("{target}: {} runs, {} edges", done.runs, done.edges));
        // Read again for each: a campaign is long, and another may have ended.
        let mut results = Results::read(&path)?;
        results.set(target, done);
        fs::write(&path, results.to_string()).map_err(|e| format!("{}: {e}", path.display()))?;
        if keep {
            merge(session, target, &found)?;
        }
    }
    if failed.is_empty() { Ok(()) } else { Err(failed.join("\n")) }
}

/// Adds to the corpus the inputs that reach what it does not.
fn merge(session: &Session, target: &str, found: &Path) -> Result<(), String> {
    let mut cargo = cargo_fuzz(session, "run", SEARCHING);
    let corpus = session.root.join("fuzz/corpus").join(target);
    cargo.args(["--sanitizer", "none", target]).arg(corpus).arg(found).args(["--", "-merge=1"]);
    quietly(&mut cargo).map(drop)
}

/// Returns what fuzzing lacks here.
fn missing() -> Option<String> {
    if !works("rustup", &["run", "nightly", "cargo", "--version"]) {
        return Some(
            "no nightly toolchain, which fuzzing needs (rustup toolchain install nightly)".to_owned(),
        );
    }
    let is_there = works("cargo-fuzz", &["--version"]);
    (!is_there).then(|| "cargo-fuzz is not installed (cargo install --locked cargo-fuzz)".to_owned())
}

fn build(session: &Session, optimised: &str) -> Result<(), String> {
    // The code under test has no `unsafe`: a sanitizer would find nothing, and takes another build and half
    // of the speed.
    session.run(cargo_fuzz(session, "build", optimised).args(["--sanitizer", "none"]))
}

/// Fuzzes a target, and returns libFuzzer's output. What it finds goes to a directory.
fn fuzz(
    session: &Session,
    target: &str,
    found: &Path,
    arguments: &[String],
    optimised: &str,
) -> Result<String, String> {
    fs::create_dir_all(found).map_err(|e| format!("{}: {e}", found.display()))?;
    let mut cargo = cargo_fuzz(session, "run", optimised);
    // libFuzzer writes into the first directory.
    cargo.args(["--sanitizer", "none", target]).arg(found).args(seeds(session, target));
    cargo.args(["--", "-timeout=10"]).args(arguments);
    quietly(&mut cargo)
}

/// Returns the directories of inputs that a target begins with.
fn seeds(session: &Session, target: &str) -> Vec<PathBuf> {
    let directories = ["corpus", "regressions"].map(|kind| session.root.join("fuzz").join(kind).join(target));
    directories.into_iter().filter(|directory| directory.is_dir()).collect()
}

/// Runs libFuzzer, and shows the last lines of its output, which have the number of runs or the failure: it
/// prints a line for every input that it keeps. Returns all.
fn quietly(command: &mut Command) -> Result<String, String> {
    progress::say(format!("$ {}", shown(command)));
    let Output { status, stderr, .. } =
        children::output(command.stderr(Stdio::piped())).map_err(|e| format!("{}: {e}", shown(command)))?;
    let log = String::from_utf8_lossy(&stderr).into_owned();
    let lines: Vec<_> = log.lines().collect();
    let last = if status.success() { 1 } else { LAST_LINES };
    for line in &lines[lines.len().saturating_sub(last)..] {
        progress::say(line);
    }
    if status.success() { Ok(log) } else { Err(format!("`{}`: {status}", shown(command))) }
}

fn cargo_fuzz(session: &Session, command: &str, optimised: &str) -> Command {
    let mut cargo = session.nightly();
    cargo.args(["fuzz", command]).env("CARGO_PROFILE_RELEASE_OPT_LEVEL", optimised);
    cargo
}

/// Returns the targets, one for each file. A file without its `[[bin]]` in `fuzz/Cargo.toml` fails.
fn targets(session: &Session) -> Result<Vec<String>, String> {
    let directory = session.root.join("fuzz/fuzz_targets");
    let entries = fs::read_dir(&directory).map_err(|e| format!("{}: {e}", directory.display()))?;
    let mut targets: Vec<_> = entries
        .filter_map(|entry| Some(Path::new(&entry.ok()?.file_name()).file_stem()?.to_str()?.to_owned()))
        .collect();
    targets.sort();
    Ok(targets)
}

/// The level of optimisation of the check, most of whose time is that of the compiler.
const CHECKED: &str = "1";
/// That of a campaign.
const SEARCHING: &str = "3";
/// The runs of the check for each target: the slowest takes about five seconds.
const RUNS: u32 = 15_000;
/// The most that they may take, on a machine that is very slow.
const MOST_SECONDS: u32 = 60;
/// The number of lines to show: enough for a panic with its backtrace and input.
const LAST_LINES: usize = 80;
