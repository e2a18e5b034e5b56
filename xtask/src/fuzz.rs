//! Fuzzes the targets of `fuzz/`, each starting with its corpus and its regressions. They are one program, which
//! is built as `cargo fuzz` would, without a sanitizer.
//!
//! The check makes a fixed number of runs with a fixed seed, so that a failure is due to the change that is
//! checked, and not to a machine that gets further. A campaign (`cargo xtask fuzz`) searches for a time, with
//! another seed each time, and tells what came of it in `fuzz/RESULTS.md`.
//!
//! New inputs are kept below the target directory, where the next campaign goes on from them; an input that
//! makes a target fail is left in `fuzz/artifacts/TARGET`, to be moved to `fuzz/regressions/TARGET` with the
//! fix.

mod results;

use std::env::consts::ARCH;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::report::Outcome;
use crate::session::{Session, shown, works};
use crate::{children, parallel, programs, progress};
use results::{Campaign, Results};

pub(crate) fn check(session: &Session) -> Result<Outcome, String> {
    if let Some(missing) = missing() {
        return Ok(Outcome::skipped(missing));
    }
    let program = build(session, CHECKED)?;
    let targets: Vec<_> = targets(session)?;
    let is_asked = |target: &&String| session.only.as_ref().is_none_or(|only| only == *target);
    let targets: Vec<_> = targets.iter().filter(is_asked).collect();
    Ok(parallel::each(&targets, |target| {
        let found = session.scratch.join("fuzz").join(target);
        // What an earlier check found would make this one another.
        let _ = fs::remove_dir_all(&found);
        let arguments =
            [format!("-runs={RUNS}"), format!("-max_total_time={MOST_SECONDS}"), "-seed=1".into()];
        let result = fuzz(session, &program, target, &found, &arguments);
        match result {
            Ok(log) if Campaign::of_log(&log).is_some_and(|done| done.runs > 0) => Ok(Outcome::passed()),
            Ok(_) => Err(format!("{target}: libFuzzer told of no runs")),
            Err(why) => Err(format!("{target}: {why}\n{}", programs::again("fuzz", target))),
        }
    }))
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
    let program = build(session, SEARCHING)?;
    let path = session.root.join("fuzz/RESULTS.md");
    let mut failed = Vec::new();
    for target in all.iter().filter(|target| names.is_empty() || names.contains(target)) {
        let found = session.target().join("fuzz-found").join(target);
        let result = fuzz(session, &program, target, &found, &[format!("-max_total_time={seconds}")]);
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
            merge(session, &program, target, &found)?;
        }
    }
    if failed.is_empty() { Ok(()) } else { Err(failed.join("\n")) }
}

/// Adds to the corpus the inputs that reach what it does not.
fn merge(session: &Session, program: &Path, target: &str, found: &Path) -> Result<(), String> {
    let corpus = session.root.join("fuzz/corpus").join(target);
    quietly(libfuzzer(session, program, target).arg("-merge=1").arg(corpus).arg(found)).map(drop)
}

/// Returns what fuzzing lacks here.
fn missing() -> Option<String> {
    if !works("rustup", &["run", "nightly", "cargo", "--version"]) {
        return Some(
            "no nightly toolchain, which fuzzing needs (rustup toolchain install nightly)".to_owned(),
        );
    }
    (!works("c++", &["--version"])).then(|| "no C++ compiler, which libFuzzer needs (Debian: g++)".to_owned())
}

/// Builds the program of all targets, and returns its path.
fn build(session: &Session, optimised: &str) -> Result<PathBuf, String> {
    let (target, directory) = (format!("{ARCH}-unknown-linux-gnu"), session.target().join("fuzz"));
    let mut cargo = session.nightly();
    // With the target named, the flags are not those of build scripts and procedural macros.
    cargo.args(["build", "--release", "--manifest-path", "fuzz/Cargo.toml", "--target", &target]);
    cargo.arg("--target-dir").arg(&directory);
    cargo
        .env("CARGO_ENCODED_RUSTFLAGS", FLAGS.join("\u{1f}"))
        .env("CARGO_PROFILE_RELEASE_OPT_LEVEL", optimised);
    session.run(&mut cargo)?;
    Ok(directory.join(target).join("release/sluicegate-fuzz"))
}

/// What `cargo fuzz` compiles with. The code under test has no `unsafe`: a sanitizer would find nothing, and takes
/// another build and half of the speed.
const FLAGS: &[&str] = &[
    "--cfg=fuzzing",
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "-Cllvm-args=-sanitizer-coverage-stack-depth",
    "-Cdebug-assertions",
];

/// Fuzzes a target, and returns libFuzzer's output. What it finds goes to a directory.
fn fuzz(
    session: &Session,
    program: &Path,
    target: &str,
    found: &Path,
    arguments: &[String],
) -> Result<String, String> {
    let artifacts = session.root.join("fuzz/artifacts").join(target);
    for directory in [found, &artifacts] {
        fs::create_dir_all(directory).map_err(|e| format!("{}: {e}", directory.display()))?;
    }
    let mut fuzzer = libfuzzer(session, program, target);
    fuzzer.arg(format!("-artifact_prefix={}/", artifacts.display())).arg("-timeout=10").args(arguments);
    // libFuzzer writes into the first directory.
    quietly(fuzzer.arg(found).args(seeds(session, target)))
}

fn libfuzzer(session: &Session, program: &Path, target: &str) -> Command {
    let mut fuzzer = Command::new(program);
    fuzzer.current_dir(session.root.join("fuzz")).env("SLUICEGATE_FUZZ_TARGET", target);
    fuzzer
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

/// Returns the targets, one for each file. A file without its line in `TARGETS` of `fuzz/src/main.rs` fails.
fn targets(session: &Session) -> Result<Vec<String>, String> {
    let directory = session.root.join("fuzz/src");
    let entries = fs::read_dir(&directory).map_err(|e| format!("{}: {e}", directory.display()))?;
    let mut targets: Vec<_> = entries
        .filter_map(|entry| {
            Some(Path::new(&entry.ok()?.file_name()).file_stem()?.to_str()?.replace('_', "-"))
        })
        .filter(|name| name != "main")
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
