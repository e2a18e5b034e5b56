//! `cargo xtask bench`: runs the benchmarks of BENCHMARKS.md, and writes it with its pictures from what they
//! recorded. No number of it is typed.
//!
//! The records are in `target/bench`: criterion's own, and those of `benches::record`. `--report` writes from
//! the records that are there, and with the name of a file runs that and writes its chapters anew; `--smoke`
//! runs each benchmark once, as the check `bench` does.

mod facts;
mod figures;
mod picture;
mod records;
mod sheet;

use std::path::Path;
use std::process::Command;
use std::{env, fs};

use crate::checks::EVERYTHING;
use crate::image;
use crate::report::Outcome;
use crate::session::{Session, on_path};
use crate::test_run;
use records::Records;
use sheet::{AREAS, Area, Guest};

/// Runs the benchmarks of one file, with arguments for it; in a guest, those that need its kernel. Writes its
/// chapters of BENCHMARKS.md if `reports`, and otherwise nothing.
pub(crate) fn one(
    session: &Session,
    file: &str,
    in_guest: bool,
    reports: bool,
    arguments: &[String],
) -> Result<(), String> {
    let scratch = session.scratch.join(DIRECTORY);
    empty(&scratch)?;
    let of_area = AREAS.iter().filter(|area| area.bench == file).find_map(|area| area.guest);
    let mut cargo = bench(session, file, in_guest.then(|| of_area.unwrap_or(Guest::Uml)), &scratch)?;
    if in_guest || reports {
        cargo.env("CRITERION_HOME", scratch.join(CRITERION));
    }
    if reports {
        cargo.env("SLUICEGATE_BENCH_RECORDS", &scratch);
    }
    session.run(cargo.args(arguments))?;
    if reports {
        let records = Records::read(&scratch)?;
        let path = session.root.join(REPORT);
        let report = fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        let measured = AREAS.iter().filter(|area| area.bench == file && area.guest.is_some() == in_guest);
        let report = sheet::with_chapters(report, measured.clone(), &records)?;
        save(&path, &report)?;
        save_pictures(&session.root, measured, &records)?;
    }
    Ok(())
}

/// Returns the command that runs a file of benchmarks. A guest can write nowhere but in `records`.
fn bench(session: &Session, file: &str, guest: Option<Guest>, records: &Path) -> Result<Command, String> {
    let mut cargo = session.cargo();
    cargo.arg("bench");
    if file == "tools" {
        // What is measured is another process, of the program as it is shipped.
        cargo.args(["--profile", "dev"]).env("SLUICEGATE_TOOLS", image::tools(session)?);
    }
    if let Some(guest) = guest {
        let (program, options): (_, &[&str]) = match guest {
            Guest::Uml => ("uml/umlrun", &["-m", "1500M", "-t", "1800"]),
            Guest::Qemu => ("qemu/qemurun", &["-i", "-m", "3G", "-t", "5400"]),
        };
        let program = session.root.join("xtask/guest").join(program);
        let [program, records] = [program.as_path(), records].map(Path::to_string_lossy);
        // Tables of iptables are looked for before anything would load them.
        let modules = ["-M", "ip_tables,ip6_tables"];
        let words = [&[&*program], options, &modules, &["-w", &records, "--"]].concat();
        cargo.arg("--config").arg(format!("target.'cfg(all())'.runner={}", serde_json::json!(words)));
    }
    cargo.args(["--package", sheet::package(file), "--bench", file, "--"]);
    Ok(cargo)
}

/// Runs the benchmarks of every area, and writes the report.
pub(crate) fn all(session: &Session) -> Result<(), String> {
    let directory = session.target().join(DIRECTORY);
    empty(&directory)?;
    let rounds = env::var_os(ROUNDS).unwrap_or_else(|| "3".into());
    for (number, area) in AREAS.iter().enumerate() {
        let is_same = |other: &Area| {
            (other.bench, other.arguments, other.guest) == (area.bench, area.arguments, area.guest)
        };
        // One run is recorded for several areas.
        if AREAS[..number].iter().any(is_same) {
            continue;
        }
        let needed = match area.guest {
            Some(Guest::Uml) => Some(("linux.uml", "user-mode-linux")),
            Some(Guest::Qemu) => Some(("qemu-system-x86_64", "qemu-system-x86")),
            None => None,
        };
        if let Some((_, package)) = needed.filter(|(program, _)| !on_path(program)) {
            println!("left out: {}, as {package} is not installed", area.title);
            continue;
        }
        facts::note_load(&directory, area.bench)?;
        let mut cargo = bench(session, area.bench, area.guest, &directory)?;
        cargo.args(area.arguments);
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
    let mut cargo = session.cargo_test(&session.as_root());
    cargo.args(EVERYTHING).env("SLUICEGATE_BENCH_RECORDS", &directory);
    for name in names(session) {
        cargo.arg("--bench").arg(name);
    }
    let outcome = test_run::run(&mut cargo)?;
    if !outcome.failures.is_empty() {
        return Ok(outcome);
    }
    let records = Records::read(&directory)?;
    // Criterion records nothing of a run that only checks; the others do, where namespaces can be made.
    if outcome.skips.is_empty() && records.is_empty() {
        return Err(format!("{}: no benchmark recorded anything", directory.display()));
    }
    write(&directory, &records, &facts::gather(session, &directory)?)?;
    Ok(outcome)
}

/// Returns the names of all benchmarks.
fn names(session: &Session) -> Vec<String> {
    let targets = session.members().flat_map(|package| package["targets"].as_array().into_iter().flatten());
    let benches = targets.filter(|target| target["kind"][0] == "bench");
    benches.filter_map(|target| target["name"].as_str().map(str::to_owned)).collect()
}

fn write(root: &Path, records: &Records, facts: &str) -> Result<(), String> {
    save_pictures(root, AREAS.iter(), records)?;
    for (file, text) in figures::pictures()? {
        save(&root.join(PICTURES).join(file), &text)?;
    }
    save(&root.join(REPORT), &(sheet::text(records, facts) + &figures::chapter()?))
}

/// Draws the pictures of these areas of which enough was recorded.
fn save_pictures<'a>(
    root: &Path,
    areas: impl Iterator<Item = &'a Area>,
    records: &Records,
) -> Result<(), String> {
    let pictures = root.join(PICTURES);
    fs::create_dir_all(&pictures).map_err(|e| format!("{}: {e}", pictures.display()))?;
    for (file, text) in areas.filter_map(|area| area.picture(records)) {
        save(&pictures.join(file), &text)?;
    }
    Ok(())
}

fn save(path: &Path, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|e| format!("{}: {e}", path.display()))
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
const REPORT: &str = "BENCHMARKS.md";
const PICTURES: &str = "benches/pictures";
