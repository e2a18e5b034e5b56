//! `cargo xtask test|bench|fuzz-smoke|doc`: the commands of continuous integration and of developers.
//!
//! - `test` runs all checks, continues after a failure, and ends with a summary and the line `N passed, N
//!   failed, N skipped`. `test NAME...` runs some of them; `test --list` lists them.
//! - `bench [AREA] [-- ARGS]` runs the benchmarks, or those of one area.
//! - `fuzz-smoke` fuzzes every target for five seconds with a fixed seed, or for `SLUICEGATE_FUZZ_SECONDS`
//!   with a random one.
//! - `doc [--open]` builds the documentation as the check does.
//!
//! Nothing is skipped silently: checks and tests that could not run are listed with the reason, and fail if
//! `SLUICEGATE_NO_SKIP` is set.
#![forbid(unsafe_code)]

mod checks;
mod dependents;
mod fuzz;
mod guest;
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
    /// Benchmarks with their peers, by criterion
    Bench {
        /// One area: the name of a file in benches/benches
        area: Option<String>,
        /// For criterion
        #[arg(last = true)]
        arguments: Vec<String>,
    },
    /// A few seconds of fuzzing for every target, from corpus and regressions
    FuzzSmoke,
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
        Command::Bench { area, arguments } => {
            let session = Session::new()?;
            let mut cargo = session.cargo();
            cargo.args(["bench", "--package", "benches"]);
            area.iter().for_each(|area| {
                cargo.args(["--bench", area]);
            });
            cargo.arg("--").args(arguments);
            session.run(&mut cargo).map(|()| ExitCode::SUCCESS)
        }
        Command::FuzzSmoke => test(&["fuzz".to_owned()]),
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
