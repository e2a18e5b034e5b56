//! `cargo xtask bench`: runs the benchmarks of BENCHMARKS.md, and writes it with its pictures from what they
//! recorded. No number of it is typed.
//!
//! The records are in `target/bench`: criterion's own, and those of `benches::record`. `--report` writes from
//! the records that are there, `--smoke` runs each benchmark once, as the check `bench` does.

mod facts;
mod picture;
mod records;
mod sheet;

use std::path::Path;
use std::{env, fs};

use crate::report::Outcome;
use crate::session::Session;
use crate::test_run;
use records::Records;
use sheet::AREAS;

/// Runs the benchmarks of one file, with arguments for it. Writes no report.
pub(crate) fn one(session: &Session, file: &str, arguments: &[String]) -> Result<(), String> {
    session
        .run(session.cargo().args(["bench", "--package", "benches", "--bench", file, "--"]).args(arguments))
}

/// Runs the benchmarks of every area, and writes the report.
pub(crate) fn all(session: &Session) -> Result<(), String> {
    let directory = session.target().join(DIRECTORY);
    empty(&directory)?;
    let rounds = env::var_os(ROUNDS).unwrap_or_else(|| "3".into());
    for area in AREAS {
        facts::note_load(&directory, area.bench)?;
        let mut cargo = session.cargo();
        cargo.args(["bench", "--package", "benches", "--bench", area.bench, "--"]).args(area.arguments);
        cargo.env("CRITERION_HOME", directory.join(CRITERION)).env("SLUICEGATE_BENCH_RECORDS", &directory);
        cargo.env(ROUNDS, &rounds);
        session.run(&mut cargo)?;
    }
    report(session)
}

/// Writes BENCHMARKS.md and its pictures from the records of the last run.
pub(crate) fn report(session: &Session) -> Result<(), String> {
    let directory = session.target().join(DIRECTORY);
    let records = Records::read(&directory)?;
    let facts = facts::gather(session, &directory)?;
    write(&session.root, &records, &facts)
}

/// Runs each benchmark once, in the profile of the tests, so that nothing has to be built again; and makes a
/// report of what they recorded.
pub(crate) fn smoke(session: &Session) -> Result<Outcome, String> {
    let directory = session.scratch.join(DIRECTORY);
    empty(&directory)?;
    let mut cargo = session.cargo_test();
    cargo.args(["--package", "benches", "--benches"]).env("SLUICEGATE_BENCH_RECORDS", &directory);
    let outcome = test_run::run(&mut cargo)?;
    let records = Records::read(&directory)?;
    // Criterion records nothing of a run that only checks; the others do, where namespaces can be made.
    if outcome.skips.is_empty() && records.is_empty() {
        return Err(format!("{}: no benchmark recorded anything", directory.display()));
    }
    write(&directory, &records, &facts::gather(session, &directory)?)?;
    Ok(outcome)
}

fn write(root: &Path, records: &Records, facts: &str) -> Result<(), String> {
    let save = |name: &str, text: &str| {
        let path = root.join(name);
        fs::write(&path, text).map_err(|e| format!("{}: {e}", path.display()))
    };
    let pictures = root.join(PICTURES);
    fs::create_dir_all(&pictures).map_err(|e| format!("{}: {e}", pictures.display()))?;
    for area in AREAS {
        if let Some((file, text)) = area.picture(records) {
            save(&format!("{PICTURES}/{file}"), &text)?;
        }
    }
    save("BENCHMARKS.md", &sheet::text(records, facts))
}

fn empty(directory: &Path) -> Result<(), String> {
    // It need not exist.
    let _ = fs::remove_dir_all(directory);
    fs::create_dir_all(directory).map_err(|e| format!("{}: {e}", directory.display()))
}

/// The number of rounds of the benchmarks without criterion.
const ROUNDS: &str = "SLUICEGATE_BENCH_ROUNDS";
/// Below cargo's target directory.
const DIRECTORY: &str = "bench";
/// Below the directory of records.
const CRITERION: &str = "criterion";
/// Below the root of the tree.
const PICTURES: &str = "benches/pictures";
