//! Fuzzes every target of `fuzz/` for a few seconds, starting with its corpus and its regressions.
//!
//! With `SLUICEGATE_FUZZ_SECONDS` it searches for this number of seconds with a random seed. Without it, it
//! is a check of five seconds with a fixed seed, so that a failure is due to the change that is checked, not
//! to an older defect.
//!
//! New inputs are kept below the target directory and not in the tree; an input that makes a target fail is
//! left in `fuzz/artifacts/TARGET`, to be moved to `fuzz/regressions/TARGET` with the fix.

use std::path::Path;
use std::process::{Command, Stdio};
use std::{env, fs};

use crate::report::Outcome;
use crate::session::{Session, shown, works};

pub(crate) fn check(session: &Session) -> Result<Outcome, String> {
    if !works("rustup", &["run", "nightly", "cargo", "--version"]) {
        return Ok(Outcome::skipped(
            "no nightly toolchain, which fuzzing needs (rustup toolchain install nightly)",
        ));
    }
    if !works("cargo-fuzz", &["--version"]) {
        return Ok(Outcome::skipped("cargo-fuzz is not installed (cargo install --locked cargo-fuzz)"));
    }
    let length = Length::asked_for()?;
    // The code under test has no `unsafe`: a sanitizer would find nothing, and takes another build and half
    // of the speed.
    session.run(cargo_fuzz(session, "build").args(["--sanitizer", "none"]))?;
    let mut outcome = Outcome::default();
    for target in targets(session)? {
        match smoke(session, &target, length) {
            Ok(()) => outcome.passed += 1,
            Err(why) => outcome.failures.push(format!("{target}: {why}")),
        }
    }
    Ok(outcome)
}

fn smoke(session: &Session, target: &str, length: Length) -> Result<(), String> {
    // libFuzzer writes what it finds into the first directory.
    let found = session.scratch.join("fuzz").join(target);
    fs::create_dir_all(&found).map_err(|e| format!("{}: {e}", found.display()))?;
    let mut cargo = cargo_fuzz(session, "run");
    cargo.args(["--sanitizer", "none", target]).arg(found);
    for kind in ["corpus", "regressions"] {
        let seeds = session.root.join("fuzz").join(kind).join(target);
        if seeds.is_dir() {
            cargo.arg(seeds);
        }
    }
    cargo.args(["--", "-timeout=10"]).args(length.arguments());
    quietly(&mut cargo)
}

/// Returns the last lines of libFuzzer's output, which have the number of runs or the failure. It prints a
/// line for every input that it keeps.
fn quietly(command: &mut Command) -> Result<(), String> {
    println!("$ {}", shown(command));
    let output = command.stdin(Stdio::null()).output().map_err(|e| format!("{}: {e}", shown(command)))?;
    let log = String::from_utf8_lossy(&output.stderr);
    let lines: Vec<_> = log.lines().collect();
    let last = if output.status.success() { 1 } else { LAST_LINES };
    for line in &lines[lines.len().saturating_sub(last)..] {
        println!("{line}");
    }
    if output.status.success() { Ok(()) } else { Err(format!("`{}`: {}", shown(command), output.status)) }
}

fn cargo_fuzz(session: &Session, command: &str) -> Command {
    let mut cargo = Command::new("rustup");
    cargo.current_dir(&session.root).args(["run", "nightly", "cargo", "fuzz", command]);
    // The variables of the toolchain that runs xtask do not apply to nightly.
    for variable in ["CARGO", "RUSTC", "RUSTDOC", "RUSTUP_TOOLCHAIN"] {
        cargo.env_remove(variable);
    }
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

/// The time that each target runs.
#[derive(Clone, Copy)]
enum Length {
    Check,
    Search { seconds: u64 },
}

impl Length {
    fn asked_for() -> Result<Self, String> {
        match env::var("SLUICEGATE_FUZZ_SECONDS") {
            Ok(text) => {
                let seconds = text.parse();
                let seconds = seconds
                    .map_err(|_| format!("SLUICEGATE_FUZZ_SECONDS: {text:?} is no number of seconds"))?;
                Ok(Self::Search { seconds })
            }
            Err(_) => Ok(Self::Check),
        }
    }

    fn arguments(self) -> Vec<String> {
        match self {
            Self::Check => vec!["-max_total_time=5".to_owned(), "-seed=1".to_owned()],
            Self::Search { seconds } => vec![format!("-max_total_time={seconds}")],
        }
    }
}

/// The number of lines to show: enough for a panic with its backtrace and input.
const LAST_LINES: usize = 80;
