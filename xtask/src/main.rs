//! `cargo xtask test|bench|image|fuzz|api|doc`: the commands of continuous integration and of developers.
//!
//! - `test` runs all checks, continues after a failure, and ends with a summary and the line `N passed, N
//!   failed, N skipped`. `test NAME...` runs some of them; `test --list` lists them.
//! - `bench` runs the benchmarks of BENCHMARKS.md and writes it; `bench AREA [-- ARGS]` runs those of one file,
//!   `bench --smoke` runs each once.
//! - `image` builds the container image of the proxier, without a daemon.
//! - `fuzz` fuzzes every target for 20 minutes, or those that are named, and writes `fuzz/RESULTS.md`;
//!   `fuzz --smoke` makes a fixed number of runs, as the check `fuzz` does.
//! - `api` writes the public API of every published library to `api/`, which the check `api` compares.
//! - `doc [--open]` builds the documentation as the check does.
//!
//! Nothing is skipped silently: checks and tests that could not run are listed with the reason, and fail if
//! `SLUICEGATE_NO_SKIP` is set.
#![forbid(unsafe_code)]

mod api;
mod bench;
mod checks;
mod dependents;
#[cfg(test)]
mod documents;
mod fuzz;
mod guest;
mod image;
mod miri;
mod msrv;
mod namespace;
mod package;
mod report;
mod session;
mod test_run;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::report::Report;
use crate::session::Session;

#[derive(Parser)]
#[command(name = "cargo xtask", about = "The project's own commands")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Everything that continuous integration checks
    Test {
        /// Only these checks, by name
        names: Vec<String>,
        /// Name the checks and make none
        #[arg(long)]
        list: bool,
    },
    /// Benchmarks with their peers; without an area, writes BENCHMARKS.md and its pictures
    Bench {
        /// One area: the name of a file in benches/benches
        area: Option<String>,
        /// Run each benchmark once, as continuous integration does
        #[arg(long, conflicts_with_all = ["area", "report"])]
        smoke: bool,
        /// Run nothing: write BENCHMARKS.md from the records of the last run
        #[arg(long, conflicts_with = "area")]
        report: bool,
        /// In user-mode Linux, for those that need IPVS
        #[arg(long, requires = "area")]
        guest: bool,
        /// For the benchmarks of the area
        #[arg(last = true, requires = "area")]
        arguments: Vec<String>,
    },
    /// The container image of the proxier, as target/oci/sluicegate-proxier.tar
    Image,
    /// A campaign of fuzzing from corpus and regressions; writes fuzz/RESULTS.md
    Fuzz {
        /// Only these targets
        targets: Vec<String>,
        /// For each target
        #[arg(long, value_name = "N", default_value_t = 1200)]
        seconds: u64,
        /// Add inputs that reach more to the corpus
        #[arg(long)]
        keep: bool,
        /// A fixed number of runs of every target, as continuous integration makes
        #[arg(long, conflicts_with_all = ["targets", "seconds", "keep"])]
        smoke: bool,
    },
    /// Writes the public API of every published library to api/
    Api,
    /// The documentation of our crates
    Doc {
        /// Show it in a browser
        #[arg(long)]
        open: bool,
    },
    /// Starts a test program; cargo calls this
    #[command(hide = true)]
    Runner {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
        program: Vec<String>,
    },
}

fn main() -> ExitCode {
    if let Some(error) = api::become_rustdoc() {
        eprintln!("xtask: {error}");
        return ExitCode::FAILURE;
    }
    match run(Arguments::parse().command) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("xtask: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> Result<ExitCode, String> {
    match command {
        Command::Runner { program } => Err(namespace::run(&program)),
        Command::Test { list: true, .. } => {
            for check in checks::ALL {
                println!("{:<10} {}", check.name, check.what);
            }
            Ok(ExitCode::SUCCESS)
        }
        Command::Test { names, list: false } => test(&names),
        Command::Bench { smoke: true, .. } => test(&["bench".to_owned()]),
        Command::Bench { area, report, guest, arguments, smoke: false } => {
            let session = Session::new()?;
            match area {
                Some(area) => bench::one(&session, &area, guest, &arguments),
                None if report => bench::report(&session),
                None => bench::all(&session),
            }
            .map(|()| ExitCode::SUCCESS)
        }
        Command::Image => image::build(&Session::new()?).map(|_| ExitCode::SUCCESS),
        Command::Api => api::write(&Session::new()?).map(|()| ExitCode::SUCCESS),
        Command::Fuzz { smoke: true, .. } => test(&["fuzz".to_owned()]),
        Command::Fuzz { targets, seconds, keep, smoke: false } => {
            fuzz::campaign(&Session::new()?, &targets, seconds, keep).map(|()| ExitCode::SUCCESS)
        }
        Command::Doc { open } => {
            let session = Session::new()?;
            let mut cargo = checks::doc_command(&session);
            if open {
                cargo.arg("--open");
            }
            session.run(&mut cargo).map(|()| ExitCode::SUCCESS)
        }
    }
}

/// Runs the checks called `names`, or all, in their order.
fn test(names: &[String]) -> Result<ExitCode, String> {
    if let Some(unknown) =
        names.iter().find(|name| checks::ALL.iter().all(|check| check.name != name.as_str()))
    {
        return Err(format!("no check is called {unknown}; `cargo xtask test --list` names them"));
    }
    let session = Session::new()?;
    let mut report = Report::default();
    for check in checks::ALL {
        if names.is_empty() || names.iter().any(|name| name == check.name) {
            report.make(check, &session);
        }
    }
    Ok(report.finish(session.no_skip))
}
