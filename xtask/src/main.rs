//! `cargo xtask test|bench|image|fuzz|differential|api|doc`: the commands of continuous integration and of developers.
//!
//! - `test` makes the checks that need nothing but cargo, `test --all` every one, `test NAME...` those. It
//!   goes on after a failure, and ends with a summary and the line `N passed, N failed, N skipped`. `test
//!   --list` tells what each is and takes.
//! - `bench` runs the benchmarks of BENCHMARKS.md and writes it; `bench AREA [-- ARGS]` runs those of one file,
//!   `bench --smoke` runs each once.
//! - `image` builds the container image of the proxier, `image tools` that of the tools, without a daemon.
//! - `release` writes the files of a release beside the packages.
//! - `programs` runs programs of the distribution over our tools.
//! - `fuzz` fuzzes every target for 20 minutes, or those that are named, and writes `fuzz/RESULTS.md`;
//!   `fuzz --smoke` makes a fixed number of runs, as the check `fuzz` does.
//! - `differential` tries generated rules on nft and on us for `--seconds N`, others than the test does.
//! - `api` writes the public API of every published library to `api/`, which the check `api` compares.
//! - `book` makes the site of the guide with mdBook and checks its links.
//! - `doc [--open]` builds the documentation as the check does.
//!
//! Nothing is skipped silently: checks and tests that could not run are listed with the reason, and fail if
//! `SLUICEGATE_NO_SKIP` is set.
#![forbid(unsafe_code)]

mod alone;
mod api;
mod bench;
mod book;
mod checks;
mod children;
mod dependents;
mod differential;
mod distribution;
#[cfg(test)]
mod documents;
mod fuzz;
mod guest;
mod image;
mod miri;
mod msrv;
mod namespace;
mod package;
mod parallel;
mod programs;
mod progress;
mod release;
mod report;
mod session;
mod test_run;
mod times;

use std::process::{self, ExitCode};
use std::thread;

use clap::{Parser, Subcommand};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::checks::Check;
use crate::report::Report;
use crate::session::Session;
use crate::times::Times;

#[derive(Parser)]
#[command(name = "cargo xtask", about = "The project's own commands")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// The tests and whatever else cargo alone can check, in some minutes
    Test {
        /// Only these checks, by name
        names: Vec<String>,
        /// Every check, as continuous integration makes them
        #[arg(long, conflicts_with = "names")]
        all: bool,
        /// Of the named checks only the test, or the fuzz target, with this name
        #[arg(long, value_name = "TEST", requires = "names")]
        only: Option<String>,
        /// Tell what each check is and how long it takes, and make none
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
        /// Run nothing: write BENCHMARKS.md from the records of the last run; with an area, run it and write its
        /// chapters
        #[arg(long)]
        report: bool,
        /// In the guest of its area, for those that need IPVS or flowtables
        #[arg(long, requires = "area")]
        guest: bool,
        /// For the benchmarks of the area
        #[arg(last = true, requires = "area")]
        arguments: Vec<String>,
    },
    /// The container image of the proxier, as target/oci/sluicegate-proxier.tar
    Image {
        /// That of the tools, as target/oci-tools/sluicegate-tools.tar
        #[arg(value_parser = ["tools"])]
        what: Option<String>,
    },
    /// The files of a release beside the packages, in target/release-files: of the proxier and of the tools the
    /// program, man pages, completion, licences, bill of materials, image; checksums
    Release,
    /// Programs of the distribution over our tools, compared with the tools that are installed
    Programs {
        /// Only these: ufw, fail2ban, cni, ferm, netavark, sshuttle, shorewall, firewalld, docker
        names: Vec<String>,
    },
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
    /// Generated rules beside nft 1.0.6, others than those of the test
    Differential {
        /// How long, building not included
        #[arg(long, value_name = "N", default_value_t = 600)]
        seconds: u64,
        /// The seed of a run before, to repeat it
        #[arg(long, value_name = "SEED")]
        seed: Option<u64>,
    },
    /// Writes the public API of every published library to api/
    Api,
    /// The guide as a site, in target/book, with its links checked; takes mdBook
    Book,
    /// The documentation of all our crates
    Doc {
        /// Show it in a browser
        #[arg(long)]
        open: bool,
    },
    /// Starts a test program; cargo calls this
    #[command(hide = true)]
    Runner {
        /// As a user without rights, where we are root
        #[arg(long)]
        as_user: bool,
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
    if !matches!(command, Command::Runner { .. } | Command::Test { .. }) {
        on_interrupt(|| {})?;
    }
    match command {
        Command::Runner { as_user, program } => Err(namespace::run(&program, as_user)),
        Command::Test { list: true, .. } => list().map(|()| ExitCode::SUCCESS),
        Command::Test { names, all, only, list: false } => test(&names, all, only),
        Command::Bench { smoke: true, .. } => test(&["bench".to_owned()], false, None),
        Command::Bench { area, report, guest, arguments, smoke: false } => {
            let session = Session::new()?;
            match area {
                Some(area) => bench::one(&session, &area, guest, report, &arguments),
                None if report => bench::report(&session),
                None => bench::all(&session),
            }
            .map(|()| ExitCode::SUCCESS)
        }
        Command::Image { what } => {
            let session = Session::new()?;
            let built = if what.is_some() { image::build_tools(&session) } else { image::build(&session) };
            built.map(|_| ExitCode::SUCCESS)
        }
        Command::Release => {
            let directory = image::release(&Session::new()?)?;
            println!("{}", directory.display());
            Ok(ExitCode::SUCCESS)
        }
        Command::Programs { names } => {
            let outcome = distribution::run(&Session::new()?, &names)?;
            outcome.failures.iter().for_each(|failure| eprintln!("{failure}"));
            outcome.skips.iter().for_each(|skip| eprintln!("skipped: {skip}"));
            Ok(if outcome.failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
        }
        Command::Api => api::write(&Session::new()?).map(|()| ExitCode::SUCCESS),
        Command::Fuzz { smoke: true, .. } => test(&["fuzz".to_owned()], false, None),
        Command::Fuzz { targets, seconds, keep, smoke: false } => {
            fuzz::campaign(&Session::new()?, &targets, seconds, keep).map(|()| ExitCode::SUCCESS)
        }
        Command::Differential { seconds, seed } => {
            differential::run(&Session::new()?, seconds, seed).map(|()| ExitCode::SUCCESS)
        }
        Command::Book => book::build(&Session::new()?).map(|()| ExitCode::SUCCESS),
        Command::Doc { open } => {
            let session = Session::new()?;
            let mut cargo = session.cargo();
            cargo.arg("doc").args(checks::EVERYTHING).arg("--no-deps");
            if open {
                cargo.arg("--open");
            }
            session.run(&mut cargo).map(|()| ExitCode::SUCCESS)
        }
    }
}

/// Makes the checks called `names`; without names the quick ones, or all.
fn test(names: &[String], all: bool, only: Option<String>) -> Result<ExitCode, String> {
    if let Some(unknown) =
        names.iter().find(|name| checks::ALL.iter().all(|check| check.name != name.as_str()))
    {
        return Err(format!("no check is called {unknown}; `cargo xtask test --list` names them"));
    }
    if let (Some(only), Some(whole)) =
        (&only, names.iter().find(|name| !checks::OF_TESTS.contains(&name.as_str())))
    {
        let of_tests = checks::OF_TESTS.join(", ");
        return Err(format!("--only {only} is for {of_tests}: {whole} is made as a whole"));
    }
    let is_named = |check: &Check| names.iter().any(|name| name == check.name);
    let is_asked = |check: &&Check| is_named(check) || names.is_empty() && (all || check.is_quick);
    let asked: Vec<_> = checks::ALL.iter().filter(is_asked).collect();
    let mut session = Session::new()?;
    session.only = only;
    let report = Report::new();
    let (interrupted, no_skip) = (report.clone(), session.no_skip);
    on_interrupt(move || {
        let place = progress::place();
        progress::end();
        progress::say(format!("\n=== interrupted in {}", place.as_deref().unwrap_or("no check")));
        interrupted.finish(no_skip);
    })?;
    report.make(&asked, &session);
    Ok(report.finish(session.no_skip))
}

fn list() -> Result<(), String> {
    let times = Times::read(&Session::new()?);
    for check in checks::ALL {
        let minutes = times.of(check).as_secs_f64() / 60.0;
        let quick = if check.is_quick { '*' } else { ' ' };
        println!("{quick} {:<10} {minutes:>5.1} min  {}", check.name, check.what);
    }
    println!("\n`cargo xtask test` makes those with a star, `--all` every one, `NAME...` those.");
    Ok(())
}

/// With Ctrl-C, ends what runs, does `last`, and exits with the status that shells give to that.
fn on_interrupt(last: impl Fn() + Send + 'static) -> Result<(), String> {
    let mut signals = Signals::new([SIGINT, SIGTERM]).map_err(|error| format!("Ctrl-C: {error}"))?;
    thread::spawn(move || {
        if let Some(signal) = signals.forever().next() {
            children::interrupt();
            last();
            process::exit(128 + signal);
        }
    });
    Ok(())
}
